//! Files that can't be read or written, and files that are no plan.

use crate::fixture::{Fixture, Said, plan};

fn one_step() -> String {
    plan("One step", "10k tokens, $0.10, 5 minutes", &[("First", "test -s one.txt", "abort")])
}

/// Commands that write, each with the file or folder that is to be written.
fn writers(place: &str) -> Vec<Vec<String>> {
    let name = |file: &str| format!("{place}/{file}");
    let lists = [
        vec!["new".to_owned(), name("new.md")],
        vec!["library".to_owned(), "export".to_owned(), "--output".to_owned(), name("library.json")],
        vec!["graph".to_owned(), "render".to_owned(), "p.md".to_owned(), "-o".to_owned(), name("p.svg")],
        vec!["export".to_owned(), "--to".to_owned(), name("run")],
        vec!["export".to_owned(), "--bundle".to_owned(), name("run.jsonl")],
        vec!["man".to_owned(), name("pages")],
        vec!["db".to_owned(), "backup".to_owned(), name("backup")],
    ];
    lists.to_vec()
}

#[test]
fn a_file_that_can_not_be_written_has_one_exit_code_whichever_command_writes_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--simulate"]).code, 1);
    // Nobody makes a file in /sys, and there is nothing below a device.
    for (place, code) in [("/sys", 77), ("/dev/null", 2)] {
        for words in writers(place) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = fixture.planctl(&words);
            assert_eq!(said.code, code, "{words:?} {said:?}");
            assert!(said.err.contains("could not write") && said.err.contains(place), "{words:?} {said:?}");
            assert!(!said.err.contains("at path"), "the name of a draft says nothing: {words:?} {said:?}");
        }
    }
    for words in [
        &["graph", "render", "p.md", "-o", "none/p.svg"][..],
        &["export", "--bundle", "none/run.jsonl"],
        &["db", "backup", "none/backup"],
    ] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 4, "its folder is missing: {words:?} {said:?}");
    }
    // No byte can be written: the limit stands for a full disk.
    for words in
        ["new n.md", "graph render p.md -o p.svg", "library export -o l.json", "man pages", "guard true"]
    {
        let said = fixture.shell(&format!("trap '' XFSZ; ulimit -f 0; planctl {words}"));
        assert_eq!(said.code, 75, "{words:?} {said:?}");
    }
}

#[test]
fn a_state_directory_that_can_not_be_written_has_one_exit_code_and_says_what_to_set() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step()).write("planctl.toml", "");
    for words in [
        &["run", "p.md", "--approve", "--simulate"][..],
        &["status"],
        &["daemon", "start"],
        &["daemon", "run"],
        &["guard", "true"],
        &["trust", "."],
        &["plan", "draft", "fix failing test t.sh"],
        &["goal", "stats"],
    ] {
        let mut command = fixture.command(words);
        command.env_remove("PLANCTL_DATABASE_URL").env("PLANCTL_STATE_DIR", "/sys/planctl");
        let said = Said::from(command.output().unwrap());
        assert_eq!(said.code, 77, "{words:?} {said:?}");
        assert!(said.err.contains("set PLANCTL_STATE_DIR to a directory"), "{words:?} {said:?}");
    }
}

#[test]
fn a_file_that_is_no_text_has_no_digest() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("program.md"), b"\x7fELF\x02\x01\x01\0\0\0\0\0").unwrap();
    std::fs::write(fixture.path("latin.md"), b"# Caf\xe9\n").unwrap();
    fixture.write("empty.md", "").write("p.md", &one_step());
    for file in ["program.md", "latin.md", "empty.md"] {
        let said = fixture.planctl(&["verify", file, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((said.code, &report["digest"]), (1, &serde_json::Value::Null), "{file}: {said:?}");
    }
    let large = fixture.shell("head -c 2000000 /dev/zero | tr '\\0' x | planctl verify - --json");
    assert!(large.code == 1 && large.out.contains("\"digest\":null"), "{large:?}");
    assert!(fixture.json(&["verify", "p.md", "--json"])["digest"].is_string());
}

#[test]
fn a_text_without_a_step_is_not_called_a_plan_in_planctl_s_form() {
    let fixture = Fixture::new();
    let text = "# A tool\n\n## Install\n\n* make\n* make install\n";
    fixture.write("README.md", text).write("p.md", &one_step()).write("graph.dot", "digraph G { a -> b }\n");
    for words in [&["fmt", "README.md"][..], &["fmt", "--check", "README.md"]] {
        let said = fixture.planctl(words);
        let sentence = "could not format README.md: it has no step that planctl can read";
        assert!(said.code == 1 && said.err.contains(sentence), "{said:?}");
        assert!(said.err.contains("next: planctl verify README.md"), "{said:?}");
    }
    let said = fixture.planctl(&["fmt", "README.md", "p.md"]);
    assert!(said.code == 1 && said.err.contains("README.md: it has no step"), "{said:?}");
    let graph = fixture.planctl(&["fmt", "graph.dot"]);
    assert!(graph.code == 1 && graph.err.contains("it is DOT, and only plans in markdown"), "{graph:?}");
    assert_eq!(fixture.read("README.md"), text);
    let said = fixture.shell("printf '# A tool\\n' | planctl fmt -");
    assert!(said.code == 1 && said.out.is_empty() && said.err.contains("no step"), "{said:?}");
}

#[test]
fn a_word_that_is_longer_than_any_name_is_not_found_like_any_other() {
    let fixture = Fixture::new();
    let word = "x".repeat(20_000);
    for words in [
        &["status", &word][..],
        &["watch", &word],
        &["logs", &word],
        &["why", &word, "1"],
        &["cancel", &word],
        &["show", &word],
        &["approvals", "--run", &word],
        &["token", "revoke", &word],
        &["worker", "pause", &word],
    ] {
        let said = fixture.planctl(words);
        let verb = words[..words.len() - 1].join(" ");
        assert_eq!(said.code, 4, "{verb}: {}", said.err);
        assert!(said.err.contains("xxx…") && said.err.contains("next: planctl"), "{verb}: {}", said.err);
        assert!(said.err.len() < 3_000, "{verb}: {}", said.err);
    }
    let said = fixture.planctl(&["topic", "show", &word]);
    assert!(said.code == 2 && said.err.contains("topics have up to 100 letters"), "{said:?}");
}

#[test]
fn a_file_with_a_line_break_in_its_name_and_a_pipe_are_told_on_one_line() {
    let fixture = Fixture::new();
    fixture.write("a\nb.md", "# A tool\n");
    let said = fixture.planctl(&["verify", "a\nb.md"]);
    assert!(said.out.contains("--> a\\nb.md:1:1\n") && !said.out.contains("a\nb"), "{said:?}");
    let said = fixture.shell("planctl verify <(echo '# A tool')");
    assert!(
        said.out.is_empty() && said.err.contains("it is a named pipe\nhelp: `planctl verify -`"),
        "{said:?}"
    );
}
