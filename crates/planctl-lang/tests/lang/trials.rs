//! Red first: the report of contracts tried before any work, and the contracts that are not tried.

use std::time::Duration;

use planctl_engine::{Ending, Verdict};
use planctl_lang::Code::{P103, P105, P106, P107, P116, P117};
use planctl_lang::Severity::{Note, Warning};
use planctl_lang::{
    Code, Facts, Levels, Obstacle, Severity, Source, Trial, TrialRun, Tried, candidates, parse, verify,
    workflow,
};

use crate::sample::{Expected, PLAN, expect_with, facts, found_with, with};

fn run(code: i32, millis: u64) -> TrialRun {
    let verdict = if code == 0 { Verdict::Passed } else { Verdict::Failed };
    TrialRun { verdict, ending: Ending::Exited { code }, duration: Duration::from_millis(millis) }
}

fn tried(runs: &[TrialRun], changed: &[&str]) -> Facts {
    let trial = Tried {
        runs: runs.to_vec(),
        printed: String::new(),
        output: String::new(),
        timeout: Duration::from_secs(600),
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        changed_count: changed.len(),
    };
    of_step_1(Trial::Tried(trial))
}

fn of_step_1(trial: Trial) -> Facts {
    Facts { trials: [(1, trial)].into(), ..facts() }
}

fn expected(code: Code, level: Severity, says: &'static str) -> Expected {
    Expected { code, level, says, line: 23 }
}

fn guarded() -> String {
    with("test -f one.txt\n```\nexit_code == 0\n", "test -f one.txt\n```\nexit_code == 0\n**guard:** yes\n")
}

#[test]
fn d13_where_another_exit_code_is_expected_the_added_check_ends_with_a_third() {
    let text = with("exit_code == 0\n**on_fail:** retry(2)", "exit_code == 1\n**on_fail:** retry(2)");
    let passed = TrialRun { verdict: Verdict::Passed, ..run(1, 10) };
    let facts = tried(&[passed, passed], &[]);
    let vacuous = found_with(&text, &facts).into_iter().find(|found| found.code == P103).expect("it passes");
    let help = vacuous.help.unwrap_or_default();
    assert!(
        help.starts_with("begin with a check that is false now") && help.ends_with("|| exit 99`"),
        "{help}"
    );
}

#[test]
fn d13_the_last_line_that_a_contract_printed_stands_beside_its_result() {
    let with_output = |facts: Facts| {
        let Some(Trial::Tried(tried)) = facts.trials.get(&1).cloned() else { panic!("it was tried") };
        of_step_1(Trial::Tried(Tried { printed: "No module named pytest".into(), ..tried }))
    };
    let note = "it printed: No module named pytest";
    for (text, code, runs) in [(PLAN.to_owned(), P103, [run(0, 10); 2]), (guarded(), P117, [run(1, 10); 2])] {
        let found = found_with(&text, &with_output(tried(&runs, &[])));
        let of_code = found.iter().find(|found| found.code == code).expect("it is found");
        assert!(of_code.notes.iter().any(|found| found == note), "{of_code:?}");
    }
}

#[test]
fn p103_a_contract_that_passes_before_any_work_proves_nothing() {
    let facts = tried(&[run(0, 3100), run(0, 2900)], &[]);
    let vacuous = expect_with(PLAN, &facts, &expected(P103, Warning, "passes before any work is done"));
    assert_eq!(vacuous.spans[0].text, "exit 0 in 3.1 s on a clean copy of the workspace");
    let source = Source::new("p.md", PLAN);
    assert_eq!(&PLAN[vacuous.spans[0].span.start..vacuous.spans[0].span.end], "test -f one.txt");
    assert!(vacuous.render(&source, false).contains("step 1 \"Make one\""));
    assert_eq!(
        vacuous.notes,
        [
            "a step whose contract is already true proves nothing when it finishes",
            "for a \"keep it green\" step write `**guard:** yes` to accept this"
        ]
    );
    assert_eq!(found_with(&guarded(), &facts), [], "a guard is meant to be green");
    assert_eq!(found_with(PLAN, &tried(&[run(1, 10), run(1, 10)], &[])), [], "red first");
}

#[test]
fn p106_a_result_that_differs_is_said_once_and_with_its_likely_cause() {
    let chance = tried(&[run(0, 10), run(1, 20)], &[]);
    let flipped = expect_with(PLAN, &chance, &expected(P106, Warning, "differs between two runs"));
    assert_eq!(flipped.spans[0].text, "exit 0 in 0.0 s, then exit 1 in 0.0 s");
    assert!(flipped.notes[0].contains("by chance"));
    let found = found_with(PLAN, &tried(&[run(1, 10), run(0, 20)], &["one.txt"]));
    assert_eq!(found.iter().map(|found| found.code).collect::<Vec<_>>(), [P105, P106]);
    assert!(found[1].notes[0].contains("had changed (P105)"));
    assert_eq!(found_with(PLAN, &tried(&[run(1, 10), run(2, 10)], &[])), [], "it fails both times");
}

#[test]
fn p105_changed_files_are_named_but_a_few_and_safely() {
    let facts = tried(&[run(1, 10), run(1, 10)], &["a", "b\u{1b}[2J", "c", "d", "e", "f"]);
    let changes = expect_with(PLAN, &facts, &expected(P105, Warning, "changes the workspace"));
    assert_eq!(changes.spans[0].text, "changed `a`, `b\\u{1b}[2J`, `c`, `d` and 2 more");
}

#[test]
fn p107_most_of_the_time_is_more_than_four_fifths_of_it() {
    let facts = tried(&[run(1, 480_000), run(1, 481_000)], &[]);
    let slow = expect_with(PLAN, &facts, &expected(P107, Warning, "takes most of its time"));
    assert_eq!(slow.spans[0].text, "took 481.0 s of 10 min");
    assert_eq!(found_with(PLAN, &tried(&[run(1, 480_000); 2], &[])), []);
    let late =
        TrialRun { verdict: Verdict::TimedOut, ending: Ending::TimedOut, duration: Duration::from_secs(600) };
    for text in [PLAN.to_owned(), guarded()] {
        let over = expect_with(&text, &tried(&[late], &[]), &expected(P107, Warning, "ran past its time"));
        assert_eq!(over.spans[0].text, "ended after 10 min, its timeout");
    }
}

#[test]
fn p117_a_guard_that_is_red_before_the_work_guards_nothing() {
    let red = expect_with(
        &guarded(),
        &tried(&[run(2, 10), run(2, 10)], &[]),
        &expected(P117, Warning, "a guard's contract fails before any work"),
    );
    assert_eq!(red.spans[0].text, "exit 2 in 0.0 s on a clean copy of the workspace");
    let killed =
        TrialRun { ending: Ending::Signalled { signal: 9 }, verdict: Verdict::Failed, ..run(0, 1000) };
    let red = expect_with(
        &guarded(),
        &tried(&[killed; 2], &[]),
        &expected(P117, Warning, "a guard's contract fails before any work"),
    );
    assert!(red.spans[0].text.starts_with("ended by signal 9 after 1.0 s"));
}

#[test]
fn p116_what_was_not_tried_says_why() {
    let facts = of_step_1(Trial::Skipped { reason: "it names `/w`".to_owned() });
    let skipped = expect_with(PLAN, &facts, &expected(P116, Note, "the contract was not tried"));
    assert_eq!(skipped.spans[0].text, "it names `/w`");
}

#[test]
fn a_script_of_several_lines_is_marked_from_its_first_word_to_its_last() {
    let text = with("test -f one.txt\n```", "\n  test -f one.txt &&\n  test -s one.txt\n\n```");
    let facts = tried(&[run(0, 10), run(0, 10)], &[]);
    let found = found_with(&text, &facts);
    let span = found[0].spans[0].span;
    assert_eq!(&text[span.start..span.end], "test -f one.txt &&\n  test -s one.txt");
}

#[test]
fn a_contract_that_would_leave_the_copy_or_do_harm_is_no_candidate() {
    let obstacle = |script: &str| {
        let text = with("test -f one.txt", script);
        let source = Source::new("p.md", &text);
        let facts = Facts { commands: [("nosuch".to_owned(), false)].into(), ..facts() };
        let found = verify(&source, &facts, &Levels::default());
        let all = candidates(&found.workflow, found.with_allowed(), &["/home/ada/shop".to_owned()]);
        assert_eq!(all.iter().map(|one| one.step).collect::<Vec<_>>(), [1, 2], "{script}");
        assert_eq!(all[1].obstacle, None);
        all[0].obstacle.clone()
    };
    assert_eq!(obstacle("test -f one.txt"), None);
    assert_eq!(obstacle("test -f one.txt &&"), Some(Obstacle::Broken));
    assert_eq!(obstacle("nosuch --check"), Some(Obstacle::Broken));
    for (script, reason) in [
        ("cd /home/ada/shop && make", "it names `/home/ada/shop`, so it would not stay in the copy"),
        ("test -s ../lib/x", "it names `../lib/x`, outside the workspace, and a copy has no such neighbour"),
        ("echo x >/etc/motd", "it writes outside the workspace (P112)"),
    ] {
        assert_eq!(obstacle(script), Some(Obstacle::Unsafe(reason.to_owned())), "{script}");
    }
    assert_eq!(obstacle("test -d /home/ada/shop-2"), None);
    let allowed = with("test -f one.txt", "echo x >/etc/motd").replacen(
        "### 1. Make one\n",
        "### 1. Make one\n\n<!-- planctl: allow P112 it is the machine's -->\n",
        1,
    );
    let found = verify(&Source::new("p.md", allowed), &facts(), &Levels::default());
    assert_eq!(found.allowed.len(), 1);
    let harm = Obstacle::Unsafe("it writes outside the workspace (P112)".to_owned());
    assert_eq!(
        candidates(&found.workflow, found.with_allowed(), &[])[0].obstacle,
        Some(harm),
        "a finding that is allowed is true all the same"
    );
}

#[test]
fn a_candidate_has_its_steps_own_time_and_whatever_the_marks_say() {
    let text = with("### 1. Make one", "### 1. ✅ Make one").replace(
        "exit_code == 0\n**on_fail:** escalate",
        "exit_code == 3\n**contract_timeout:** 20 s\n**guard:** yes\n**on_fail:** escalate",
    );
    let source = Source::new("p.md", &text);
    let all = candidates(&workflow::of_plan(&source, &parse(&source).0).0, &[], &[]);
    let told = |at: usize| {
        let one = &all[at];
        (one.title.as_str(), one.contract.expect, one.contract.timeout.as_secs(), one.names_timeout)
    };
    assert_eq!(told(0), ("Make one", 0, 600, false));
    assert_eq!(told(1), ("Make two", 3, 20, true));
    assert!(all[1].contract.guard);
}

#[test]
fn p105_what_a_trial_shows_counts_in_place_of_what_the_text_says() {
    let text = with("test -f one.txt", "date > out.log && test -f one.txt");
    let written = found_with(&text, &facts());
    assert_eq!(written.iter().map(|found| found.code).collect::<Vec<_>>(), [P105]);
    assert!(written[0].message.contains("`out.log`"));
    let ignored = tried(&[run(1, 10), run(1, 10)], &[]);
    assert_eq!(found_with(&text, &ignored), [], "git ignores it");
    let shown = found_with(&text, &tried(&[run(1, 10), run(1, 10)], &["out.log"]));
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].spans[0].text, "changed `out.log`");
}

#[test]
fn a_graph_is_told_of_fields_in_the_words_of_its_file() {
    let text = "digraph G { start a [prompt=\"Do it.\", contract=\"test -f x\"] exit start -> a -> exit }";
    let facts = tried(&[run(0, 10), run(0, 10)], &[]);
    let found = verify(&Source::new("plan.dot", text), &facts, &Levels::default()).diagnostics;
    let vacuous = found.into_iter().find(|found| found.code == P103).expect("it passes");
    let words = "for a \"keep it green\" step write `guard=yes` to accept this";
    assert_eq!(
        vacuous.notes,
        ["a step whose contract is already true proves nothing when it finishes", words]
    );
}
