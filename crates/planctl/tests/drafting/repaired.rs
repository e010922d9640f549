//! Repairs by the word of a policy: a run that a policy approved goes on with a repaired plan within what the policy says (M-40, P-19).

use planctl_server::testing::TestDatabase;
use serde_json::{Value, json};

use crate::home::{GOAL, Home, Said, app, good};
use crate::service::{Form, Reply, Service};

const WORDS: [&str; 6] =
    ["plan", "draft", GOAL, "--model", "writer", "--plan-budget=100k tokens, 30 minutes"];
const RUN: &str = "a-json-flag-1";
const POLICY: &str = "[roles.coder]\nagent = \"exec:bash worker.sh\"\n[approval.drafts]\nplans = [\"plans/*.md\"]\n\
                      budget = \"1M tokens, 1 hour\"\n";

/// A run that a policy approved, and that waits since its second step failed.
struct Failed {
    home: Home,
    _service: Service,
    database: TestDatabase,
}

impl Failed {
    /// The policy has these bounds, too; the writer repairs with these answers.
    fn new(bounds: &str, repairs: &[&Value]) -> Failed {
        let home = app();
        let first = good();
        let replies = [&first].into_iter().chain(repairs.iter().copied());
        let service =
            Service::start(Form::Messages, replies.map(|reply| Reply::Structured(reply.clone())).collect());
        home.models(&[("writer", &service)]);
        home.configure(&format!("{POLICY}{bounds}"));
        home.write("worker.sh", "echo 'echo \"{}\"' >>src/app.sh\n");
        let failed = Failed { home, _service: service, database: TestDatabase::migrated() };
        assert_eq!(failed.said(&WORDS).code, 0);
        let run = failed.said(&["plan", "run", "plans/a-json-flag.md", "--no-wait"]);
        assert!(run.code == 3 && run.err.contains("approved by the policy drafts"), "{run:?}");
        failed
    }

    fn said(&self, words: &[&str]) -> Said {
        self.home.planctl_with(words, &[("PLANCTL_DATABASE_URL", self.database.url().as_str())])
    }

    fn repair(&self) -> (Value, Said) {
        let said = self.said(&[&WORDS[..], &["--repair", RUN, "--json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let view: Value = serde_json::from_str(&said.out).unwrap();
        (view["revision"].clone(), said)
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.said(&["status", RUN, "--json"]).out).unwrap()
    }
}

fn with_task(task: &str) -> Value {
    let mut value = good();
    value["steps"][1]["task"] = json!(task);
    value
}

#[test]
fn m_40_p_19_a_policy_approves_as_many_repairs_of_its_run_as_it_says() {
    let repairs = [
        with_task("Describe --json in `README.md`, by `cat`."),
        with_task("Describe --json in `README.md`."),
    ];
    let failed = Failed::new("repairs = 1\n", &[&repairs[0], &repairs[1]]);
    let before = failed.status();
    let (revision, said) = failed.repair();
    assert_eq!((&revision["approved"], &revision["by_policy"]), (&json!(true), &json!("drafts")), "{said:?}");
    assert!(said.err.contains("by `cat`"), "what changes is shown: {said:?}");
    let after = failed.status();
    assert!(after["digest"] != before["digest"] && after["approved_by"] == "policy:drafts", "{after:#}");
    let events = failed.said(&["events", "--run", RUN]);
    assert!(events.out.contains("policy:drafts"), "{events:?}");
    assert_eq!(failed.said(&["audit", RUN]).code, 0);
    let run = failed.said(&["resume", RUN, "--no-wait"]);
    assert_eq!(run.code, 3, "the worker does as before: {run:?}");
    let (revision, said) = failed.repair();
    assert_eq!((&revision["approved"], failed.status()["digest"] == after["digest"]), (&json!(false), true));
    assert!(said.err.contains("it approves 1 of a run, and that many were made"), "{said:?}");
}

#[test]
fn m_40_p_19_a_policy_leaves_to_a_person_what_it_does_not_name() {
    let words = with_task("Describe --json in `README.md`, by `cat`.");
    let mut easier = good();
    easier["steps"][1]["contract"] = json!("grep -q json README.md");
    let mut owner = good();
    owner["steps"][1]["changes"] = json!(["README.md", "tests/app.sh"]);
    for (bounds, repair, why) in [
        ("", &words, "it approves no repairs"),
        ("repairs = 3\n", &easier, "the repair changes step 2 by more than the words of its task"),
        ("repairs = 3\n", &owner, "the repair changes step 2 by more than the words of its task"),
    ] {
        let failed = Failed::new(bounds, &[repair]);
        let before = failed.status();
        let (revision, said) = failed.repair();
        assert_eq!(revision["approved"], false, "{why}: {said:?}");
        assert!(said.err.contains(why), "{why}: {said:?}");
        assert_eq!(failed.status()["digest"], before["digest"]);
        let meant = failed.said(&[&WORDS[..], &["--repair", RUN, "--approve"]].concat());
        assert_eq!(meant.code, 0, "{meant:?}");
        assert_eq!(failed.status()["approved_by"], "ann");
    }
}
