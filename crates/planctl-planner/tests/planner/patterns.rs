//! Drafts without a model: whole or not at all.

use std::collections::BTreeSet;

use planctl_planner::{
    Answer, Asked, Conversation, Goal, Matched, Next, PATTERN_CONFIDENCE, PatternFacts, draft_by_pattern,
};

use crate::sample::{brief, look};

fn facts() -> PatternFacts {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    PatternFacts {
        files: set(&[
            "README.md",
            "src/app.sh",
            "tests/login.sh",
            "tests/test_login.py",
            "tests/a.rs",
            "x_test.go",
        ]),
        commands: set(&["bash", "python3", "cargo"]),
    }
}

fn drafted(goal: &str) -> Result<Matched, planctl_planner::Deferral> {
    draft_by_pattern(&Goal::read(goal, None), &facts())
}

#[test]
fn m_01_a_goal_of_a_known_form_is_drafted_with_confidence_0_9() {
    for (goal, contract) in [
        ("fix failing test tests/login.sh", "bash tests/login.sh"),
        ("Make the test tests/test_login.py pass.", "python3 -m unittest tests/test_login.py"),
        ("fix the broken test in tests/a.rs", "cargo test --test a"),
        ("remove src/app.sh", "test ! -e src/app.sh"),
        ("create docs/x.md with \"it's here\"", "grep -qF -- 'it'\\''s here' docs/x.md"),
        (
            "replace \"foo\" with `bar` in README.md",
            "grep -qF -- 'bar' README.md && ! grep -qF -- 'foo' README.md",
        ),
        ("document `--json` in README.md", "grep -qF -- '--json' README.md"),
        ("rename src/app.sh to src/main.sh", "test -s src/main.sh && test ! -e src/app.sh"),
    ] {
        let matched = drafted(goal).unwrap_or_else(|why| panic!("{goal}: {why:?}"));
        assert_eq!(matched.proposal.steps[0].contract, contract, "{goal}");
        assert_eq!(matched.proposal.confidence, PATTERN_CONFIDENCE);
        assert_eq!(drafted(goal).unwrap(), matched, "deterministic");
        let mut conversation = Conversation::new(brief(Goal::read(goal, None)));
        conversation
            .apply_answer(Asked::Writer, Answer::new(&serde_json::to_string(&matched.proposal).unwrap()));
        look(&mut conversation, &[]);
    }
}

#[test]
fn a_pattern_s_draft_is_held_to_the_same_rules() {
    let goal = "document `--json` in README.md";
    let matched = drafted(goal).unwrap();
    let mut conversation = Conversation::new(brief(Goal::read(goal, None)));
    conversation.apply_answer(Asked::Writer, Answer::new(&serde_json::to_string(&matched.proposal).unwrap()));
    look(&mut conversation, &[]);
    assert!(matches!(conversation.next(), Next::Done(_)), "{:#?}", conversation.rounds());
}

#[test]
fn m_02_a_sign_of_complexity_defers() {
    for goal in [
        "document `--json` in README.md after release",
        "fix failing test tests/login.sh and ask me which",
        "remove a.md and b.md and c.md",
    ] {
        assert!(!drafted(goal).unwrap_err().signals.is_empty(), "{goal}");
    }
}

#[test]
fn m_04_a_match_that_leaves_something_over_defers() {
    for goal in [
        "fix failing test tests/login.sh quickly without touching anything",
        "fix failing test tests/login.sh, document it in README.md",
        "document `--json` in README.md nicely",
        "replace \"a\" with \"a1\" in README.md",
        "fix failing test tests/none.sh",
        "fix failing test x_test.go",
        "remove ../secret.txt",
        "improve the performance",
    ] {
        let why = drafted(goal).unwrap_err();
        assert!(!why.reasons.is_empty(), "{goal}: {why:?}");
    }
}
