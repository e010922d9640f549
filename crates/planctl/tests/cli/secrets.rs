//! Values of configured variables stand in clear at no exit of planctl (A50).

use std::path::Path;

use crate::fixture::{Fixture, Said, plan};

/// A value with characters that each form writes in another way.
const CANARY: &str = "canary/wren+\\\"blue\\\"&";
/// The same as bash and TOML literals read it.
const VALUE: &str = "canary/wren+\"blue\"&";
/// A value that a worker gets.
const OF_ROLE: &str = "parrot-8812-green";

/// Parts of the values, in each form, that may stand nowhere. None is of digits alone: a time may have those.
fn forms() -> Vec<String> {
    let plain = ["canary/wren", "wren+", "parrot-8812"].map(str::to_owned);
    // `printf %s VALUE | base64`, and behind one and two more characters.
    let encoded =
        ["Y2FuYXJ5L3dyZW4r", "NhbmFyeS93cmVuK", "jYW5hcnkvd3JlbisiY", "cGFycm90LTg4MTIt"].map(str::to_owned);
    let escaped = ["canary%2Fwren", "canary%2fwren", "canary\\/wren"].map(str::to_owned);
    plain.into_iter().chain(encoded).chain(escaped).collect()
}

fn refuse(place: &str, text: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{place} has {form}: {text}");
    }
}

fn refuse_in_folder(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            refuse_in_folder(&path);
        } else {
            refuse(&path.display().to_string(), &String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn a50_values_of_configured_variables_stand_in_clear_nowhere() {
    let fixture = Fixture::new();
    fixture.write(
        "planctl.toml",
        &format!(
            "[contracts]\nenv = {{ SERVICE_KEY = \"{CANARY}\" }}\n\
             [roles.coder]\nagent = \"exec:bash agent.sh\"\nenv = {{ OWN_TOKEN = \"{OF_ROLE}\" }}\n"
        ),
    );
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture.write(
        "check.sh",
        "echo \"plain $SERVICE_KEY\"; printf '%s' \"$SERVICE_KEY\" | base64; printf 'u%s' \"$SERVICE_KEY\" | base64 >&2\n\
         printf 'us%s' \"$SERVICE_KEY\" | base64; k=${SERVICE_KEY//\\//%2F}; echo \"${k//+/%2B}\" | sed 's/\"/%22/g; s/&/%26/'\n\
         python3 -c 'import json,os; print(json.dumps(os.environ[\"SERVICE_KEY\"]).replace(\"/\", chr(92) + \"/\"))' || true\n\
         printf '%s' \"$SERVICE_KEY\" | sha256sum | grep -q ^331f9cd45e80bd7d && test -e done\n",
    );
    fixture.write(
        "agent.sh",
        "cat >>prompts.txt; echo \"$OWN_TOKEN and $(grep -o 'canary.*&' planctl.toml)\" | tr -d '\\\\'; echo \"$OWN_TOKEN\" >&2\n\
         printf %s \"$OWN_TOKEN\" | sha256sum | grep -q ^3d27ad83c47f30d2 || touch wrong\n\
         [ -e asked ] || { touch asked; printf '{\"planctl\":\"result/1\",\"outcome\":\"needs_input\",\"question\":\"Is %s right?\"}' \"$OWN_TOKEN\" >$PLANCTL_RESULT_FILE; }\n",
    );
    fixture.write("notes.txt", &format!("The key is {VALUE}, or was.\n"));
    let text = plan("a", "max 1k tokens", &[("a", "bash check.sh", "retry(2), then escalate")]);
    fixture.write("a.md", &text.replace("coder\n", "coder\n**subscriptions:**\n- file:notes.txt\n"));
    let mut heard = Vec::new();
    let mut say = |words: &[&str], code: i32| -> Said {
        let said = fixture.planctl(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        heard.push((words.join(" "), format!("{}{}", said.out, said.err)));
        said
    };
    say(&["plan", "run", "a.md", "--approve", "--no-wait"], 3);
    let ask = fixture.ask();
    say(&["approvals"], 0);
    say(&["approvals", "show", &ask], 0);
    say(&["approvals", "show", &ask, "--json"], 0);
    // Each command is a process of its own: nothing but what is stored tells the next one the values.
    say(&["approvals", "answer", &ask, "--note", "yes"], 0);
    say(&["plan", "resume", "@last", "--no-wait"], 3);
    let ask = fixture.ask();
    say(&["approvals", "show", &ask], 0);
    say(&["approvals", "show", &ask, "--json"], 0);
    fixture.write("done", "");
    say(&["approvals", "retry", &ask], 0);
    say(&["plan", "resume", "@last", "--no-wait"], 0);
    assert!(!fixture.path("wrong").exists(), "the worker got its value");
    for words in [
        &["plan", "status", "@last", "--json"][..],
        &["plan", "logs", "@last"],
        &["plan", "logs", "@last", "--json"],
        &["events", "--run", "@last", "--json"],
        &["why", "@last", "1"],
        &["plan", "show", "a.md"],
        &["plan", "context", "@last"],
        &["audit", "@last"],
        &["config", "show"],
        &["plan", "export", "@last", "--to", "out"],
    ] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        heard.push((words.join(" "), format!("{}{}", said.out, said.err)));
    }
    for (place, text) in &heard {
        refuse(place, text);
    }
    refuse_in_folder(&fixture.path("out"));
    // The prompts of the retries hold what the contract printed, masked.
    let prompts = fixture.read("prompts.txt");
    refuse("a prompt", &prompts);
    assert!(prompts.contains("plain ****") && prompts.contains("The key is ****, or was."), "{prompts}");
    // All of the database.
    let psql = fixture.psql();
    let url = psql.get_args().next().unwrap().to_owned();
    let pg_dump = Path::new(psql.get_program()).with_file_name("pg_dump");
    let dump = Said::from(std::process::Command::new(pg_dump).arg(url).output().unwrap());
    assert_eq!(dump.code, 0, "{dump:?}");
    assert!(dump.out.contains("hmac-sha256:"), "the dump has the runs' settings");
    refuse("the database", &dump.out);
    // Output of a contract is kept beside the rows, as bytes.
    let outputs = fixture.sql("select convert_from(bytes, 'UTF8') from outputs where length(bytes) < 100000");
    refuse("outputs", &outputs);
    assert_eq!(VALUE.len() + 2, CANARY.len());
}

#[test]
fn a50_a_run_whose_values_are_not_kept_here_says_so_and_another_value_is_another_approval() {
    let fixture = Fixture::new();
    let configured = |value: &str| {
        fixture.write("planctl.toml", &format!("[contracts]\nenv = {{ SERVICE_KEY = \"{value}\" }}\n"));
        assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    };
    configured("first-value");
    fixture.write(
        "a.md",
        &plan("a", "max 1k tokens", &[("a", "test -n \"$SERVICE_KEY\"", "retry(1), then escalate")]),
    );
    assert_eq!(fixture.planctl(&["plan", "approve", "a.md"]).code, 0);
    configured("other-value");
    let said = fixture.planctl(&["plan", "run", "a.md", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "the approval was of another value: {said:?}");
    configured("first-value");
    std::fs::remove_dir_all(fixture.state().join("secrets")).unwrap();
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 5, "the key is another one");
}

#[test]
fn hole_15_a_credential_in_a_plan_is_drawn_as_stars_wherever_people_read() {
    let fixture = Fixture::new();
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = plan("a", "max 1k tokens", &[("Log in", "test -e done", "escalate")]);
    fixture.write("a.md", &text.replace("Log in, please.", &format!("Log in with {token}.")));
    let exec = ["plan", "run", "a.md", "--no-wait", "--exec", "true"];
    assert_eq!(fixture.planctl(&exec).code, 3);
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    assert_eq!(fixture.planctl(&exec).code, 3);
    let mut said = vec![shown, fixture.planctl(&["approvals", "show", &fixture.ask()])];
    for words in [
        &["plan", "verify", "a.md"][..],
        &["plan", "show", "a.md"],
        &["plan", "context", "@last"],
        &["plan", "logs", "@last"],
        &["why", "@last", "1"],
        &["plan", "export", "@last", "--to", "out"],
    ] {
        said.push(fixture.planctl(words));
    }
    for said in &said {
        assert!(said.code == 0 && !said.out.contains(token) && !said.err.contains(token), "{said:?}");
    }
    assert!(said.iter().any(|said| said.out.contains("Log in with ****")), "{said:?}");
    // The exported files that people read; the manifest is for programs.
    let grep = ["-rlF", "--exclude=*.json", "--exclude=*.jsonl", token, "."];
    let found =
        std::process::Command::new("grep").args(grep).current_dir(fixture.path("out")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert!(fixture.path("out").read_dir().unwrap().count() > 2);
}
