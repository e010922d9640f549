//! A goal, a good answer, and what a workspace shows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{Ending, Verdict};
use planctl_lang::{Facts, FileFact, Levels, Source, Trial, TrialRun, Tried, Verification, verify};
use planctl_planner::{Answer, Asked, Brief, Conversation, Goal, Limits, Looked, Next, WorkspaceFacts};
use serde_json::{Value, json};

pub const GOAL: &str = "Add a --json flag to src/app.sh and document it in README.md";

pub fn brief(goal: Goal) -> Brief {
    Brief {
        goal,
        workspace: WorkspaceFacts {
            files: vec!["src/app.sh".into(), "README.md".into()],
            ..WorkspaceFacts::default()
        },
        owner: "ada".into(),
        budget: None,
        has_reviewer: false,
        limits: Limits::default(),
        key: "0123456789abcdef".into(),
    }
}

pub fn conversation(goal: &str) -> Conversation {
    Conversation::new(brief(Goal::read(goal, None)))
}

/// An answer that reaches [`GOAL`].
pub fn good() -> Value {
    json!({
        "title": "A --json flag",
        "confidence": 0.9,
        "steps": [
            { "title": "Add the flag", "role": "coder", "task": "Teach `src/app.sh` the flag --json.",
              "contract": "bash src/app.sh --json | grep -q '^{'", "changes": ["src/app.sh"] },
            { "title": "Document it", "role": "coder", "task": "Describe --json in `README.md`.",
              "contract": "grep -q -- '--json' README.md", "changes": ["README.md"] },
        ],
        "requirements": [{ "id": "R1", "steps": [1] }, { "id": "R2", "steps": [2] }],
        "questions": [],
    })
}

pub fn answer(value: &Value) -> Answer {
    Answer::new(&value.to_string())
}

/// How a contract ended, and what it printed.
pub fn tried(code: i32, output: &str) -> Trial {
    let verdict = if code == 0 { Verdict::Passed } else { Verdict::Failed };
    let run = TrialRun { verdict, ending: Ending::Exited { code }, duration: Duration::from_millis(5) };
    Trial::Tried(Tried {
        runs: vec![run, run],
        printed: String::new(),
        output: output.into(),
        timeout: Duration::from_secs(600),
        changed: Vec::new(),
        changed_count: 0,
    })
}

/// Verifies a draft where every contract ends with 1, but for those that are given.
pub fn verified(text: &str, trials: &[(u32, Trial)]) -> (Verification, BTreeMap<u32, Trial>) {
    let source = Source::new("draft.md", text);
    let steps = planctl_lang::parse(&source).0.steps.len();
    let mut all: BTreeMap<u32, Trial> =
        (1..=u32::try_from(steps).expect("few")).map(|step| (step, tried(1, ""))).collect();
    all.extend(trials.iter().cloned());
    let files = ["src/app.sh", "README.md"].map(|path| (path.to_owned(), FileFact::Regular { size: 10 }));
    let commands = ["bash", "grep", "test", "cat", "sed"].map(|name| (name.to_owned(), true));
    let facts = Facts {
        files: files.into(),
        commands: commands.into_iter().chain([("frobnicate".to_owned(), false)]).collect(),
        trials: all.clone(),
        plan_is_inside: Some(true),
        serves_every_role: true,
        ..Facts::default()
    };
    (verify(&source, &facts, &Levels::default()), all)
}

/// Hears an answer, and what looking at its text shows where there is one.
pub fn hear(conversation: &mut Conversation, value: &Value, trials: &[(u32, Trial)]) {
    conversation.apply_answer(Asked::Writer, answer(value));
    look(conversation, trials);
}

pub fn look(conversation: &mut Conversation, trials: &[(u32, Trial)]) {
    if let Next::Verify { text } = conversation.next() {
        let (verification, trials) = verified(&text, trials);
        let named = planctl_planner::named_files(&verification);
        let missing: BTreeSet<String> =
            named.into_iter().filter(|path| !["src/app.sh", "README.md"].contains(&path.as_str())).collect();
        conversation.apply_verification(Looked {
            verification: &verification,
            trials: &trials,
            missing: &missing,
        });
    }
}

/// Returns the messages of the last round's findings that have to be mended.
pub fn errors(conversation: &Conversation) -> Vec<String> {
    let findings = conversation.rounds().last().map(|round| round.findings()).unwrap_or_default();
    findings.into_iter().filter(|finding| finding.is_error).map(|finding| finding.message).collect()
}
