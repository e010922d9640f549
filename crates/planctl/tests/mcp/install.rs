//! The server in the settings of each agent: added once, shown before, taken away again, and nothing else touched.

use std::fs;

use serde_json::{Value, json};

use crate::support::Place;

/// Each agent, its file in a project, and settings that a person has there already.
const CLIENTS: [(&str, &str, &str); 5] = [
    ("claude", ".mcp.json", "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n"),
    ("codex", ".codex/config.toml", "# mine\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"x\"\n"),
    ("gemini", ".gemini/settings.json", "{\n  // mine\n  \"theme\": \"dark\"\n}\n"),
    ("opencode", "opencode.json", "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n"),
    ("vscode", ".vscode/mcp.json", "{\n  \"servers\": {},\n  \"inputs\": [] // none\n}\n"),
];

#[test]
fn the_server_is_added_once_and_taken_away_again_and_nothing_else_is_touched() {
    for (client, name, mine) in CLIENTS {
        let place = Place::untouched();
        let file = place.path("work").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, mine).unwrap();
        let dry = place.must(&["mcp", "install", client, "--dry-run"]);
        assert!(dry.out.contains("mcp"), "{dry:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), mine, "{client}: nothing is written");
        place.must(&["mcp", "install", client]);
        let with = fs::read_to_string(&file).unwrap();
        assert!(with.contains("planctl") && with.contains("mcp"), "{client}: {with}");
        let is_theirs = |line: &&str| ["mine", "none", "\"x\""].iter().any(|word| line.contains(word));
        let keeps_theirs = |text: &str| mine.lines().filter(is_theirs).all(|line| text.contains(line.trim()));
        assert!(keeps_theirs(&with), "{client}: {with}");
        let again = place.must(&["mcp", "install", client]);
        assert!(again.out.contains("has the server of planctl already"), "{again:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), with, "{client}");
        place.must(&["mcp", "install", client, "--remove"]);
        let without = fs::read_to_string(&file).unwrap();
        assert!(!without.contains("planctl"), "{client}: {without}");
        assert!(keeps_theirs(&without), "{client}: {without}");
    }
}

#[test]
fn a_file_of_planctls_own_goes_when_the_server_does() {
    for (client, name, _) in CLIENTS {
        let place = Place::untouched();
        let file = place.path("work").join(name);
        place.must(&["mcp", "install", client]);
        assert!(file.exists(), "{client}");
        place.must(&["mcp", "install", client, "--remove"]);
        assert!(!file.exists(), "{client}: {}", fs::read_to_string(&file).unwrap_or_default());
        let said = place.must(&["mcp", "install", client, "--remove"]);
        assert!(said.out.contains("has no server of planctl already"), "{said:?}");
    }
}

#[test]
fn each_agent_is_told_in_its_own_words_how_the_server_is_started() {
    let place = Place::untouched();
    let program = env!("CARGO_BIN_EXE_planctl");
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(place.path("home").join(name)).unwrap()).unwrap()
    };
    for (client, _, _) in CLIENTS {
        place.must(&["mcp", "install", client, "--user"]);
    }
    let usual = json!({ "command": program, "args": ["mcp"] });
    assert_eq!(read(".claude.json")["mcpServers"]["planctl"], usual);
    assert_eq!(read(".gemini/settings.json")["mcpServers"]["planctl"], usual);
    let vscode = json!({ "type": "stdio", "command": program, "args": ["mcp"] });
    assert_eq!(read(".config/Code/User/mcp.json")["servers"]["planctl"], vscode);
    let opencode = json!({ "type": "local", "command": [program, "mcp"], "enabled": true });
    assert_eq!(read(".config/opencode/opencode.json")["mcp"]["planctl"], opencode);
    let codex: toml::Table =
        toml::from_str(&fs::read_to_string(place.path("home/.codex/config.toml")).unwrap()).unwrap();
    assert_eq!(codex["mcp_servers"]["planctl"]["command"].as_str(), Some(program));
}

#[test]
fn settings_that_cant_be_read_are_left_alone() {
    let place = Place::untouched();
    for (client, name, broken) in [
        ("claude", ".mcp.json", "{ \"mcpServers\": [] }"),
        ("gemini", ".gemini/settings.json", "{ not json"),
        ("codex", ".codex/config.toml", "model = \n"),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n"),
    ] {
        let file = place.path("work").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, broken).unwrap();
        assert_eq!(place.planctl(&["mcp", "install", client]).code, 78, "{client}: {broken}");
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
}
