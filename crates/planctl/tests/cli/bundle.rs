//! A run's whole evidence in one file: written beside a database, checked without one, and no change to it goes unseen.

use crate::fixture::{Fixture, Said, plan};

/// Makes a run that failed once, printed bytes that are no text and more than history holds, and ended as done.
fn done() -> Fixture {
    let fixture = Fixture::new();
    let contract = "seq 3000; printf '\\377\\376'; test $(wc -l < tries) = 2";
    let steps = [("One", contract, "retry(1), then escalate"), ("Two", "test -e tries", "escalate")];
    fixture.write("p.md", &plan("Bundled", "5 minutes", &steps));
    let said =
        fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", "echo $PLANCTL_STEP >> tries"]);
    assert_eq!(said.code, 0, "{said:?}");
    fixture
}

/// Audits a bundle where there is no database and none can be made.
fn audited(fixture: &Fixture, file: &str) -> Said {
    let mut command = fixture.command(&["audit", file, "--json"]);
    command.env("PLANCTL_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    Said::from(command.output().unwrap())
}

#[test]
fn a_bundle_is_sound_without_the_database_it_comes_from_and_says_the_same_as_its_audit() {
    let fixture = done();
    let said = fixture.planctl(&["run", "export", "@last", "--bundle", "p.jsonl"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("next: planctl audit p.jsonl"), "{said:?}");
    let offline = audited(&fixture, "p.jsonl");
    assert_eq!(offline.code, 0, "{offline:?}");
    let here = fixture.json(&["audit", "@last", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&offline.out).unwrap(), here);
    assert!(fixture.read("p.jsonl").contains("\"hex\":\""), "the contract's output is no text");
    let again = fixture.planctl(&["run", "export", "@last", "--bundle", "p.jsonl"]);
    assert_eq!(again.code, 2, "{again:?}");
}

#[test]
fn whatever_is_changed_in_a_bundle_breaks_it_and_the_audit_says_where() {
    let fixture = done();
    assert_eq!(fixture.planctl(&["run", "export", "@last", "--bundle", "p.jsonl"]).code, 0);
    let whole = fixture.read("p.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().join("\n") + "\n";
    let place = |words: &str| lines.iter().position(|line| line.contains(words)).unwrap();
    let replaced = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}: {whole}");
        whole.replacen(from, to, 1)
    };
    let changes = [
        ("an output", replaced("\"hex\":\"310a", "\"hex\":\"320a"), "I23: output sha256:"),
        ("no output", without(place("\"is\":\"output\"")), "is named and not kept"),
        (
            "the plan's text",
            replaced("# Bundled", "# Bungled"),
            "I12: the text of the plan is not that of sha256:",
        ),
        ("no plan", without(place("\"is\":\"plan\"")), "I12: the text of revision sha256:"),
        (
            "a graph",
            replaced("{\\\"title\\\":\\\"Bundled", "{\\\"title\\\":\\\"Bungled"),
            "is not what was stored",
        ),
        ("no graph", without(place("\"is\":\"graph\"")), "is missing"),
        (
            "a verdict",
            replaced("\\\"exited\\\",\\\"code\\\":1", "\\\"exited\\\",\\\"code\\\":0"),
            "I4 at line",
        ),
        ("an event less", without(place("\"node_verified\"")), "I1 at line"),
        ("the end", lines[..lines.len() - 1].join("\n") + "\n", "I1: the run counts"),
        (
            "its state",
            replaced("\"status\":\"done\"", "\"status\":\"failed\""),
            "I2: it says failed, and its history says done",
        ),
        ("the head", replaced("\"head\":\"", "\"head\":\"00"), "I4: the run's own hash"),
    ];
    for (what, text, problem) in changes {
        fixture.write("changed.jsonl", &text);
        let said = audited(&fixture, "changed.jsonl");
        assert_eq!(said.code, 1, "{what}: {said:?}");
        assert!(said.out.contains(problem), "{what}: {said:?}");
    }
}

#[test]
fn a_file_that_is_no_bundle_is_named_with_its_line() {
    let fixture = done();
    assert_eq!(fixture.planctl(&["run", "export", "@last", "--bundle", "p.jsonl"]).code, 0);
    let whole = fixture.read("p.jsonl");
    let first = whole.lines().next().unwrap();
    for (text, problem) in [
        (String::new(), ":1: this is not a line of a bundle: it is empty"),
        ("{}\n".to_owned(), ":1: this is not a line of a bundle: missing field `is`"),
        (
            whole.lines().skip(1).collect::<Vec<_>>().join("\n") + "\n",
            ":1: this is not a line of a bundle: it must begin with the run",
        ),
        (format!("{first}\n{first}\n"), ":2: this is not a line of a bundle: it holds a second run"),
        (whole.trim_end().to_owned(), "its end is missing"),
        (
            whole.replacen("\"version\":1", "\"version\":9", 1),
            "its format is version 9, and this planctl reads 1",
        ),
    ] {
        fixture.write("odd.jsonl", &text);
        let said = audited(&fixture, "odd.jsonl");
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains(problem), "{problem}: {said:?}");
    }
}
