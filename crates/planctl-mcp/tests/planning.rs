//! The rows of the planning tools, T-01 to T-20 and, as far as they need no server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use planctl_mcp::planning::*;

fn steps(titles: &[&str]) -> Vec<NewStep> {
    titles.iter().map(|title| NewStep { title: (*title).to_owned(), details: None }).collect()
}

fn list(titles: &[&str]) -> List {
    List::setup(None, "ship it", &steps(titles)).unwrap()
}

fn said(refused: Result<List, Refusal>) -> String {
    refused.unwrap_err().to_string()
}

fn ids(list: &List) -> Vec<&str> {
    list.steps.iter().map(|step| step.step_id.as_str()).collect()
}

#[test]
fn t_01_a_session_has_one_list_and_setup_replaces_it() {
    let (sessions, me, now) = (Sessions::default(), Owner::new("me"), Instant::now());
    let (name, _) = sessions.begin(&me, list(&["one"]), now);
    let second = |before: &Arc<List>| Ok(Arc::new(List::setup(Some(before), "another", &[])?));
    sessions.change(&me, &name, now, second).unwrap();
    let read = sessions.read(&me, &name, now).unwrap();
    assert_eq!((read.objective.as_str(), read.steps.len()), ("another", 0));
}

#[test]
fn t_02_t_03_statuses_and_fields_are_written_as_agents_know_them() {
    let list = list(&["one", "two"]);
    let list = list.mark("S001", StepStatus::InProgress, Some("begun")).unwrap();
    let list = list.mark("S002", StepStatus::Blocked, None).unwrap();
    let written = serde_json::to_value(&list).unwrap();
    assert_eq!(written["status"], "active");
    let first = serde_json::json!({
        "step_id": "S001", "title": "one", "details": null, "status": "in_progress", "notes": ["begun"],
    });
    assert_eq!(written["steps"][0], first);
    assert_eq!(written["steps"][1]["status"], "blocked");
    let done =
        list.mark("S001", StepStatus::Done, None).unwrap().mark("S002", StepStatus::Done, None).unwrap();
    assert_eq!(serde_json::to_value(&done).unwrap()["status"], "completed");
    assert_eq!(serde_json::to_value(done.clear().unwrap()).unwrap()["status"], "abandoned");
}

#[test]
fn t_04_the_next_id_follows_the_highest_number() {
    let with = |ids: &[&str]| {
        let mut list = list(&vec!["step"; ids.len()]);
        for (step, id) in list.steps.iter_mut().zip(ids) {
            step.step_id = (*id).to_owned();
        }
        list.add(&steps(&["next"])).unwrap().steps.pop().unwrap().step_id
    };
    assert_eq!(with(&["S001", "S007"]), "S008");
    assert_eq!(with(&["S007", "S001"]), "S008");
    assert_eq!(with(&["S999"]), "S1000");
    assert_eq!(with(&["S1000"]), "S1001");
    assert_eq!(with(&["S002", "Sfour", "other"]), "S003");
    assert_eq!(with(&["Sfour"]), "S001");
    assert_eq!(with(&[]), "S001");
}

#[test]
fn t_05_setup_numbers_the_steps_in_order_and_the_list_is_active() {
    let list = list(&["one", "two", "three"]);
    assert_eq!(ids(&list), ["S001", "S002", "S003"]);
    assert_eq!(list.status, ListStatus::Active);
    assert!(list.steps.iter().all(|step| step.status == StepStatus::Pending && step.notes.is_empty()));
}

#[test]
fn t_06_each_text_has_its_length() {
    let setup = |objective: usize| List::setup(None, &"o".repeat(objective), &[]);
    assert!(setup(1).is_ok() && setup(240).is_ok());
    assert_eq!(said(setup(241)), "Objective must be <= 240 characters.");
    assert_eq!(said(setup(0)), "Objective must not be empty.");
    let list = list(&["one"]);
    assert!(list.add(&steps(&[&"t".repeat(160)])).is_ok());
    assert_eq!(said(list.add(&steps(&[&"t".repeat(161)]))), "Title must be <= 160 characters.");
    let details = |count: usize| list.update("S001", None, Some(&"d".repeat(count)));
    assert!(details(512).is_ok());
    assert_eq!(said(details(513)), "Details must be <= 512 characters.");
    let note = |count: usize| list.mark("S001", StepStatus::Done, Some(&"n".repeat(count)));
    assert!(note(512).is_ok());
    assert_eq!(said(note(513)), "Note must be <= 512 characters.");
}

#[test]
fn t_07_texts_are_trimmed_and_ascii_and_blank_details_are_none() {
    let list = List::setup(None, "  ship it \n", &steps(&["\tone "])).unwrap();
    assert_eq!((list.objective.as_str(), list.steps[0].title.as_str()), ("ship it", "one"));
    let refused = List::setup(None, "caf\u{e9}", &[]).unwrap_err();
    assert_eq!((refused.to_string().as_str(), refused.kind().exit()), ("Objective must be ASCII.", 2));
    assert_eq!(said(list.add(&steps(&["\u{e9}"]))), "Title must be ASCII.");
    assert_eq!(said(list.update("S001", None, Some("\u{e9}"))), "Details must be ASCII.");
    assert_eq!(said(list.mark("S001", StepStatus::Done, Some("\u{e9}"))), "Note must be ASCII.");
    let blank = NewStep { title: "two".to_owned(), details: Some(" \n ".to_owned()) };
    assert_eq!(list.add(&[blank]).unwrap().steps[1].details, None);
    let note = list.mark("S001", StepStatus::Done, Some("  "));
    assert_eq!(said(note), "Note must not be empty when provided.");
    let spaced = list.mark(" S001 ", StepStatus::Done, Some(" seen ")).unwrap();
    assert_eq!(spaced.steps[0].notes, ["seen"]);
}

#[test]
fn t_08_steps_are_added_to_an_active_list_and_there_is_one_at_least() {
    let list = list(&["one"]);
    assert_eq!(said(list.add(&[])), "Provide at least one step to add.");
    let cleared = list.clear().unwrap();
    let refused = said(cleared.add(&steps(&["two"])));
    assert_eq!(refused, "Plan must be active to add steps to. Current status: abandoned.");
}

#[test]
fn t_09_an_update_changes_something_of_a_step_that_exists() {
    let list = list(&["one"]);
    let nothing = "Provide a new title or details to update a step.";
    assert_eq!(said(list.update("S001", None, None)), nothing);
    assert_eq!(said(list.update("S001", None, Some("  "))), nothing);
    assert_eq!(said(list.update("S009", Some("x"), None)), "Step S009 does not exist.");
    assert_eq!(said(list.update("  ", Some("x"), None)), "Step ID must be provided.");
    assert_eq!(said(list.update("S001", Some(" "), None)), "Title must not be empty.");
    let refused = said(list.clear().unwrap().update("S001", Some("x"), None));
    assert_eq!(refused, "Plan must be active to update steps in. Current status: abandoned.");
    let changed = list.update("S001", None, Some("more")).unwrap();
    assert_eq!((changed.steps[0].title.as_str(), changed.steps[0].details.as_deref()), ("one", Some("more")));
    let again = changed.update("S001", Some("uno"), None).unwrap();
    assert_eq!((again.steps[0].title.as_str(), again.steps[0].details.as_deref()), ("uno", Some("more")));
}

#[test]
fn t_10_a_mark_sets_the_status_adds_its_note_and_the_last_one_completes_the_list() {
    let list = list(&["one", "two"]);
    let first = list.mark("S001", StepStatus::Done, Some("a")).unwrap();
    assert_eq!((first.status, first.steps[0].status), (ListStatus::Active, StepStatus::Done));
    let noted = first.mark("S001", StepStatus::Done, Some("b")).unwrap();
    assert_eq!(noted.steps[0].notes, ["a", "b"]);
    assert_eq!(noted.mark("S002", StepStatus::Done, None).unwrap().status, ListStatus::Completed);
    assert_eq!(said(list.mark("S009", StepStatus::Done, None)), "Step S009 does not exist.");
    assert_eq!(said(list.mark("", StepStatus::Done, None)), "Step ID must be provided.");
}

#[test]
fn t_11_a_completed_list_takes_no_changes() {
    let done = list(&["one"]).mark("S001", StepStatus::Done, None).unwrap();
    let refused = [
        (said(done.add(&steps(&["two"]))), "add steps to"),
        (said(done.update("S001", Some("x"), None)), "update steps in"),
        (said(done.mark("S001", StepStatus::Pending, None)), "mark steps in"),
    ];
    for (text, action) in refused {
        assert_eq!(text, format!("Plan must be active to {action}. Current status: completed."));
    }
}

#[test]
fn t_12_a_cleared_list_is_abandoned_and_empty_and_is_cleared_once() {
    let cleared = list(&["one", "two"]).clear().unwrap();
    assert_eq!((cleared.status, cleared.steps.len()), (ListStatus::Abandoned, 0));
    assert_eq!(said(cleared.clear()), "Plan already abandoned.");
    let refused = cleared.mark("S001", StepStatus::Done, None);
    assert_eq!(said(refused), "Cannot mark steps on an abandoned plan.");
    assert_eq!(List::setup(Some(&cleared), "again", &[]).unwrap().status, ListStatus::Active);
}

#[test]
fn t_14_each_change_is_a_list_of_its_own_with_the_next_version_and_one_is_kept() {
    let (sessions, me, now) = (Sessions::default(), Owner::new("me"), Instant::now());
    let (name, first) = sessions.begin(&me, list(&["one"]), now);
    let add = |list: &Arc<List>| Ok(Arc::new(list.add(&steps(&["two"]))?));
    let second = sessions.change(&me, &name, now, add).unwrap();
    assert_eq!((first.version, first.steps.len()), (1, 1), "the list before is as it was");
    assert_eq!((second.version, second.steps.len()), (2, 2));
    let refused = sessions.change(&me, &name, now, |list| Ok(Arc::new(list.add(&[])?)));
    assert!(refused.is_err());
    assert!(Arc::ptr_eq(&sessions.read(&me, &name, now).unwrap(), &second), "a refusal leaves it");
    assert_eq!(Arc::strong_count(&first), 1, "nothing but this test holds the list before");
    let third = List::setup(Some(&second), "another", &[]).unwrap();
    assert_eq!(third.version, 3);
}

#[test]
fn t_15_the_texts_of_refusals_are_fixed() {
    let list = list(&["one"]);
    let done = list.mark("S001", StepStatus::Done, None).unwrap();
    let long = "t".repeat(161);
    let golden = [
        (List::setup(None, " ", &[]), "Objective must not be empty.", 2),
        (list.add(&steps(&[&long])), "Title must be <= 160 characters.", 2),
        (list.update("S001", None, Some("\u{2014}")), "Details must be ASCII.", 2),
        (list.mark("S009", StepStatus::Done, None), "Step S009 does not exist.", 4),
        (Err(Refusal::NoList), "No plan is currently initialised.", 4),
        (done.add(&steps(&["two"])), "Plan must be active to add steps to. Current status: completed.", 5),
        (list.clear().unwrap().clear(), "Plan already abandoned.", 5),
    ];
    for (refused, text, exit) in golden {
        let refusal = refused.unwrap_err();
        assert_eq!((refusal.to_string().as_str(), refusal.kind().exit()), (text, exit));
    }
}

#[test]
fn t_16_react_is_the_strategy_where_none_is_named() {
    assert_eq!(Strategy::default(), Strategy::React);
    assert_eq!(prompt(Strategy::default()), prompt(Strategy::React));
}

#[test]
fn t_17_strategies_differ_in_the_words_about_the_way_of_working_alone() {
    let parts = |strategy| {
        let text = prompt(strategy);
        let (head, rest) = text.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let (mindset, body) = rest.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        (head, mindset, body)
    };
    let (head, react, body) = parts(Strategy::React);
    for strategy in [Strategy::PlanActReflect, Strategy::GoalDecomposeRouteSynthesise] {
        let (other_head, other, other_body) = parts(strategy);
        assert_eq!((&other_head, &other_body), (&head, &body));
        assert_ne!(other, react);
    }
    assert_eq!(prompt(Strategy::React).matches('#').count(), 2 + 3, "one heading, and S###");
    let at = |name: &str| body.find(&format!("`{name}`")).unwrap();
    let order: Vec<usize> = PROMPT_TOOLS.iter().map(|name| at(name)).collect();
    assert!(order.is_sorted(), "the tools come in their order: {order:?}");
}

#[test]
fn t_18_the_prompt_says_all_seven_things() {
    for strategy in Strategy::ALL {
        let text = prompt(strategy);
        for said in [
            "Answer directly when one step is enough",
            "Begin with `planning_setup_plan`",
            "Add steps with `planning_add_step`",
            "`planning_update_step`",
            "S###",
            "`planning_mark_step`: pending, in_progress, blocked or done",
            "`planning_clear_plan` discards the current plan",
            "Be brief, and write ASCII only",
        ] {
            assert!(text.contains(said), "{strategy:?}: {said}");
        }
        let items = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(items.count(), 7);
    }
}

#[test]
fn t_19_a_session_is_its_callers_own() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    let (me, other) = (Owner::new("me"), Owner::new("other"));
    let (name, _) = sessions.begin(&me, list(&["one"]), now);
    assert_eq!(sessions.read(&other, &name, now), Err(Refusal::ForeignSession));
    assert_eq!(sessions.read(&me, "made-up", now), Err(Refusal::ForeignSession));
    assert!(sessions.read(&me, &name, now).is_ok());
}

#[test]
fn t_20_a_list_ends_with_its_session() {
    let (sessions, me, start) = (Sessions::default(), Owner::new("me"), Instant::now());
    let (name, _) = sessions.begin(&me, list(&["one"]), start);
    let minutes = |count: u64| start + Duration::from_secs(60 * count);
    assert!(sessions.read(&me, &name, minutes(59)).is_ok(), "each call keeps it for another hour");
    assert!(sessions.read(&me, &name, minutes(118)).is_ok());
    let refused = sessions.read(&me, &name, minutes(178)).unwrap_err();
    assert_eq!((refused.kind().exit(), &refused), (4, &Refusal::ForeignSession));
}

#[test]
fn t_20_no_caller_fills_the_memory_with_sessions() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    let begin = |owner: &str, second: u64| {
        let now = start + Duration::from_secs(second);
        sessions.begin(&Owner::new(owner), list(&["one"]), now).0
    };
    let kept = begin("quiet", 0);
    let first = begin("loud", 1);
    for second in 2..40 {
        begin("loud", second);
    }
    let now = start + Duration::from_secs(60);
    assert!(sessions.read(&Owner::new("loud"), &first, now).is_err(), "its own oldest went");
    assert!(sessions.read(&Owner::new("quiet"), &kept, now).is_ok(), "and nobody else's");
    let full = list(&vec!["step"; 500]);
    assert_eq!(said(full.add(&steps(&["one more"]))), "Plan must have <= 500 steps.");
    let noted =
        (0..100).try_fold(list(&["one", "two"]), |list, _| list.mark("S001", StepStatus::Pending, Some("n")));
    let refused = noted.unwrap().mark("S001", StepStatus::Pending, Some("n"));
    assert_eq!(said(refused), "Step must have <= 100 notes.");
}

#[test]
fn x_36_an_empty_list_never_completes_itself() {
    let empty = List::setup(None, "nothing yet", &[]).unwrap();
    assert_eq!(empty.status, ListStatus::Active);
    assert!(empty.mark("S001", StepStatus::Done, None).is_err());
    assert_eq!(empty.add(&steps(&["one"])).unwrap().status, ListStatus::Active);
}

#[test]
fn x_37_the_prompt_is_ascii() {
    for strategy in Strategy::ALL {
        assert!(prompt(strategy).is_ascii(), "{strategy:?}");
    }
}
