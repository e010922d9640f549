//! Events and runs as people see them.

use super::*;
use planctl_api::wire::{BudgetView, LockView, RunState, SpentView, StepView, WorkedOnBy};
use serde_json::json;

fn still(lines_max: usize) -> Look {
    Look { now_unix_seconds: 0.0, lines_max, columns: None, ctrl_c: None }
}

fn line(event: &str, node: &str, data: Value) -> EventLine {
    EventLine {
        sentence: None,
        run: "fix-1".into(),
        seq: 1,
        at: "2026-01-01T12:04:31.5Z".into(),
        event: event.into(),
        node: (!node.is_empty()).then(|| node.to_owned()),
        visit: None,
        attempt: None,
        cause: "x".into(),
        data: data.as_object().cloned().unwrap_or_default(),
    }
}

fn step(number: u32, state: StepState) -> StepView {
    StepView {
        number,
        title: format!("Step {number}"),
        node: number.to_string(),
        kind: "task".into(),
        role: "coder".into(),
        state,
        attempts: 1,
        attempts_allowed: 3,
        visits: 1,
        visits_allowed: 10,
        verdict: None,
        grade: None,
        vacuous: false,
        before: None,
        pace: None,
        isolation: None,
        failure: None,
        run: None,
        lock: None,
        trouble: None,
        spent: SpentView::default(),
        since: None,
        guided: false,
    }
}

fn view(steps: Vec<StepView>) -> RunView {
    RunView {
        run: "fix-1".into(),
        id: String::new(),
        plan: "fix.md".into(),
        title: "Fix".into(),
        digest: String::new(),
        workspace: "/w".into(),
        folder: None,
        worktree: None,
        state: RunState::Running,
        end: None,
        reason: None,
        steps,
        passages: Vec::new(),
        joins: Vec::new(),
        pace_level: "primary".into(),
        waiting_on: None,
        worked_on_by: Some(WorkedOnBy::Run),
        holder: None,
        spent: SpentView::default(),
        budget: BudgetView::default(),
        day_budgets: Vec::new(),
        exec: None,
        agent: None,
        auto_answer: false,
        approved_by: None,
        approved_at: None,
        is_plan_file_changed: false,
        awaits_acknowledgement: false,
        acknowledged_by: None,
        started_at: None,
        ended_at: None,
    }
}

#[test]
fn a_failed_contract_is_one_line_with_its_exit_code_and_last_words() {
    let mut progress = Progress::new(Manner::Plain, CtrlC::Stops);
    let found = json!({"found": {"found": "evidence", "ending": {"how": "exited", "code": 1},
        "stdout": {"tail": "ran 3\nAssertionError: 30.1 > 30\n"}, "stderr": {"tail": ""}}});
    assert_eq!(progress.plain_line(&line("harness.evaluated", "2", found)), None);
    let verdict = line("node_verified", "2", json!({"attempt": 1, "verdict": "failed"}));
    assert_eq!(
        progress.plain_line(&verdict).unwrap(),
        "12:04:31 step=2 attempt=1 contract=failed exit=1 \"AssertionError: 30.1 > 30\""
    );
}

#[test]
fn a_step_that_rests_or_waits_for_a_lock_says_how_long_for_what_and_why() {
    let rests = StepView {
        trouble: Some("quota gone".into()),
        since: Some("2026-01-02T00:00:08Z".into()),
        ..step(1, StepState::Resting)
    };
    let lock = LockView { name: "db".into(), run: "p-1".into() };
    let waits = StepView { lock: Some(lock), ..step(2, StepState::Ready) };
    let shown = |now_unix_seconds| {
        let look = Look { now_unix_seconds, ..still(20) };
        picture(&view(vec![rests.clone(), waits.clone()]), &look).join("\n")
    };
    let midnight = 1_767_312_000.0;
    assert!(shown(midnight).contains("retrying in 8 s: quota gone"), "{}", shown(midnight));
    assert!(shown(midnight + 60.0).contains("retrying soon: quota gone"), "{}", shown(midnight + 60.0));
    assert!(shown(midnight).contains("waiting for the lock db, which run p-1 has"), "{}", shown(midnight));
}

#[test]
fn a_question_to_a_person_and_what_waits_is_no_work_that_is_out() {
    let mut progress = Progress::new(Manner::Plain, CtrlC::Stops);
    let entered = |node: &str| line("node_entered", node, json!({"attempt": 1}));
    let out = "12:04:31 step=3 attempt=1 work=out";
    assert_eq!(progress.lines(&entered("2")), Vec::<String>::new());
    let asked = line("ask_opened", "2", json!({"kind": "choice", "reason": "planned"}));
    assert_eq!(progress.lines(&asked), ["12:04:31 step=2 ask=choice reason=planned"]);
    assert_eq!(progress.lines(&entered("4")), Vec::<String>::new());
    assert_eq!(progress.lines(&line("node_queued", "4", json!({}))), ["12:04:31 step=4 work=queued"]);
    // An event of another node changes nothing, and neither does an event without facts.
    assert_eq!(progress.lines(&entered("3")), Vec::<String>::new());
    let other = line("ask_opened", "2", json!({"kind": "choice", "reason": "planned"}));
    assert_eq!(progress.lines(&other), [out, "12:04:31 step=2 ask=choice reason=planned"]);
    progress.lines(&entered("3"));
    let reported = line("agent.reported", "3", json!({}));
    assert_eq!(progress.lines(&reported), [out, "12:04:31 step=3 work=reported"]);
}

#[test]
fn a_node_of_a_graph_is_named_whether_or_not_it_was_seen_to_begin() {
    let mut progress = Progress::new(Manner::Plain, CtrlC::Stops);
    let reported = progress.plain_line(&line("agent.reported", "build", json!({"attempt": 1}))).unwrap();
    assert!(reported.starts_with("12:04:31 node=build attempt=1 work=reported"), "{reported}");
    let settled = |node: &str, data| line("node_settled", node, data);
    let passed = progress.plain_line(&settled("build", json!({"attempt": 1, "outcome": "passed"})));
    assert_eq!(passed.unwrap(), "12:04:31 node=build attempt=1 settled=passed");
    assert_eq!(progress.plain_line(&settled("start", json!({"outcome": "passed"}))), None);
    let conflict = json!({"attempt": 1, "kind": "escalation", "reason": "conflict"});
    let asked = progress.plain_line(&line("ask_opened", "join-3", conflict)).unwrap();
    assert_eq!(asked, "12:04:31 node=join-3 attempt=1 ask=escalation reason=conflict");
    let plan = line("ask_opened", "start", json!({"kind": "plan", "reason": "submitted"}));
    assert_eq!(progress.plain_line(&plan).unwrap(), "12:04:31 ask=plan reason=submitted");
}

#[test]
fn the_words_of_strangers_are_made_safe() {
    let mut progress = Progress::new(Manner::Plain, CtrlC::Stops);
    let settled = line("node_settled", "2", json!({"outcome": "waived", "by": "ann", "note": "\u{1b}[2J"}));
    assert_eq!(
        progress.plain_line(&settled).unwrap(),
        "12:04:31 step=2 settled=waived by=\"ann\" \"\\u{1b}[2J\""
    );
}

#[test]
fn a_long_plan_shows_the_steps_around_the_one_that_moves() {
    let steps =
        (1..=5000).map(|n| step(n, if n < 2500 { StepState::Passed } else { StepState::Pending })).collect();
    let lines = picture(&view(steps), &still(24));
    assert!(lines.len() <= 24, "{}", lines.len());
    assert!(lines.iter().any(|line| line.contains("Step 2500")));
    assert!(lines[0].contains("steps before"));
}

#[test]
fn a_plan_without_steps_draws() {
    assert_eq!(picture(&view(Vec::new()), &still(24)).len(), 2);
}

#[test]
fn numbers_of_any_length_stand_apart_from_titles() {
    let lines =
        picture(&view((498..=1002).map(|n| step(n, StepState::Pending)).collect()), &still(usize::MAX));
    assert!(lines[0].contains(" 498  ") && lines[504].contains(" 1002 "), "{:?} {:?}", lines[0], lines[504]);
}

#[test]
fn what_is_under_way_is_as_long_under_way_as_it_is_and_only_who_watches_is_told_how_to_stop() {
    let mut working = step(1, StepState::Working);
    working.since = Some("2026-01-01T12:00:00Z".into());
    let now_unix_seconds = show::unix_seconds("2026-01-01T12:01:30Z").unwrap();
    let look = Look { now_unix_seconds, lines_max: 24, columns: None, ctrl_c: Some(CtrlC::Stops) };
    let drawn = picture(&view(vec![working.clone()]), &look);
    assert!(drawn[0].contains("working 1m30s"), "{drawn:?}");
    assert!(drawn.last().unwrap().contains("Ctrl-C stops it"), "{drawn:?}");
    let beside = picture(&view(vec![working.clone()]), &Look { ctrl_c: Some(CtrlC::Leaves), ..look });
    assert!(beside.last().unwrap().contains("Ctrl-C leaves it; the run goes on"), "{beside:?}");
    let still = picture(&view(vec![working]), &Look { ctrl_c: None, ..look });
    assert_eq!(still[0], drawn[0]);
    assert!(!still.last().unwrap().contains("running"), "its state stands above it: {still:?}");
    let mut unknown = view(vec![step(1, StepState::Working)]);
    unknown.worked_on_by = None;
    let own = picture(&unknown, &look);
    assert!(own.last().unwrap().contains("Ctrl-C stops it"), "this process works on it: {own:?}");
    let other = picture(&unknown, &Look { ctrl_c: Some(CtrlC::Leaves), ..look });
    assert!(other.last().unwrap().contains("nobody works on it: planctl resume"), "{other:?}");
}
