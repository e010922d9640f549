//! Views of a run for people and agents: the state of branches, the reason for an edge, the context of an agent.

use std::collections::BTreeMap;

use planctl_engine::{Fact, NodeId};
use planctl_view::{Form, Manual, Scene, Verify, decider_word};

use super::script::scene_after;

const FORK: &str = "f: fork j max 2  a: task retry 1  b: task  c: task  j: join  d: task  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  b -on_exhaust-> j  c -on_success-> j  parallel 2";

/// Draws where the branches of a run stand at the end of a conversation.
#[track_caller]
fn branches(conversation: &str, expected: &str) {
    let (graph, run, _) = scene_after(conversation);
    let drawn: Vec<String> = planctl_view::open_joins(&graph, &run)
        .into_iter()
        .map(|joining| {
            let branch = |branch: &planctl_view::Branch| {
                let at: Vec<&str> = branch.at.iter().map(NodeId::as_str).collect();
                format!("{:?} {}", branch.stands, at.join(" ")).trim_end().to_owned()
            };
            let branches: Vec<String> = joining.branches.iter().map(branch).collect();
            format!("{} {:?}: {}", joining.join, joining.policy, branches.join(", "))
        })
        .collect();
    assert_eq!(drawn.join("\n"), expected);
}

#[test]
fn branches_are_under_way_queued_joined_and_failed() {
    branches(&format!("plan  {FORK}\n approved"), "");
    let begun = format!(
        "plan  {FORK}
        approved
        -> clock admitted           a#1 to coder; b#1 to coder"
    );
    branches(&begun, "j All: UnderWay a, UnderWay b, Queued");
    let one = format!(
        "{begun}
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b settled failed; c#1 to coder"
    );
    branches(&one, "j All: UnderWay a, Failed b, UnderWay c");
    let two = format!(
        "{one}
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed"
    );
    branches(&two, "j All: UnderWay a, Failed b, Joined");
    let held = format!(
        "{two}
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent overran a#2        a held: escalation no_edge"
    );
    branches(&held, "j All: Held a, Failed b, Joined");
    let over = format!(
        "{held}
        -> human abort              a settled failed by the owner; ABORTED"
    );
    branches(&over, "j All: Left, Failed b, Joined");
}

#[test]
fn a_join_that_went_on_waits_for_nobody() {
    branches(
        "plan  f: fork j  a: task  b: task  j: join  d: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; d#1 to coder",
        "",
    );
}

/// Draws every choice of a conversation.
#[track_caller]
fn choices(conversation: &str, expected: &[&str]) {
    let (graph, _, facts) = scene_after(conversation);
    let drawn: Vec<String> = facts
        .iter()
        .filter_map(|fact| planctl_view::choice(&graph, fact))
        .map(|choice| {
            let looked: Vec<String> = choice
                .looked
                .iter()
                .map(|edge| {
                    let label = edge.label.as_ref().map(|label| format!(" @{label}")).unwrap_or_default();
                    let clauses: Vec<String> = edge
                        .clauses
                        .iter()
                        .map(|clause| format!(" [{} found {:?}]", clause.clause, clause.found))
                        .collect();
                    format!(
                        "{} on {}{label}{} {}",
                        edge.to,
                        edge.on.as_str(),
                        clauses.concat(),
                        edge.result.as_str()
                    )
                })
                .collect();
            format!("{} by {}: {}", choice.from, decider_word(choice.by), looked.join("; "))
        })
        .collect();
    assert_eq!(drawn, expected);
}

#[test]
fn e15_every_way_that_was_looked_at_is_told_and_why_it_was_not_taken() {
    choices(
        "plan  a: task  b: task  c: task  d: task  a -on_success-> b  a -always?outcome=success-> c  a -always?context.x=1-> d  a -on_fail-> d  c -on_success-> done
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder",
        &[
            "start by outcome: a on success taken",
            "a by condition: b on success outranked; c on always [outcome=success found Some(\"success\")] taken; \
             d on always [context.x=1 found None] condition_failed; d on fail other_outcome",
        ],
    );
}

#[test]
fn where_only_the_outcome_decides_the_graph_tells_the_other_ways() {
    choices(
        "plan  a: task abort  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder",
        &[
            "start by outcome: a on success taken",
            "a by outcome: b on success taken; failed on exhaust other_outcome",
        ],
    );
}

#[test]
fn a_way_back_that_an_unmet_goal_asks_for_stands_alone() {
    let (graph, _, facts) = scene_after(
        "plan  a: task warn  b: task  goal a else a
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled warned; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; goal a unmet; a#2 to coder",
    );
    let back = facts.iter().filter_map(|fact| planctl_view::choice(&graph, fact)).next_back().unwrap();
    assert_eq!((back.to.as_str(), back.looked.len(), back.looked[0].result.as_str()), ("a", 1, "taken"));
    assert!(planctl_view::choice(&graph, &Fact::PlanActivated { resumed: false }).is_none());
    let said: Vec<String> = facts.iter().map(|fact| planctl_view::sentence(&graph, fact)).collect();
    let back = "a goal of the run was not met, so the run went to step 1 \"a\"";
    assert!(said.iter().any(|line| line == back), "{said:#?}");
}

#[track_caller]
fn told(conversation: &str, form: Form, expected: &str) {
    told_with(&BTreeMap::new(), conversation, form, expected);
}

#[track_caller]
fn told_with(manual: &BTreeMap<NodeId, Manual>, conversation: &str, form: Form, expected: &str) {
    let (graph, run, history) = scene_after(conversation);
    let scene = Scene {
        plan: "git_feature_branch",
        graph: &graph,
        run: &run,
        history: &history,
        is_cut: false,
        manual,
    };
    let expected: Vec<&str> = expected.lines().map(|line| line.trim_start_matches('|')).collect();
    assert_eq!(planctl_view::context(&scene, form).trim_end_matches('\n'), expected.join("\n"));
}

const SECOND: &str = "plan  a: task  b: task retry 2 escalate  c: task
    approved
    -> clock admitted           a#1 to coder
    -> agent reported a#1       a#1 to harness
    -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
    -> agent reported b#1       b#1 to harness
    -> harness found b#1 exit 1  b#1 failed; b#2 to coder, told #1 failed";

fn library() -> BTreeMap<NodeId, Manual> {
    let manual = Manual {
        action: Some("Create and checkout a new branch from main".to_owned()),
        tool: Some("code_execution_tool".to_owned()),
        hint: Some("git checkout -b feature/<name> main".to_owned()),
        verify: Some(Verify { kind: "output_contains".to_owned(), value: "Switched to".to_owned() }),
    };
    BTreeMap::from([(NodeId::new("b"), manual)])
}

#[test]
fn h40_the_long_form_tells_the_steps_where_it_is_and_what_to_do_now() {
    told_with(
        &library(),
        SECOND,
        Form::Long,
        "[ACTIVE PLAN: git_feature_branch]
|Step 1 of 3: a [COMPLETED]
|Step 2 of 3: b ← YOU ARE HERE
|  Action: Create and checkout a new branch from main
|  Tool: code_execution_tool
|  Command hint: git checkout -b feature/<name> main
|  Verify: the output contains \"Switched to\"
|Step 3 of 3: c [PENDING]
|
|INSTRUCTION: Execute Step 2 now. Do not skip ahead. Verify the result before proceeding.",
    );
}

#[test]
fn h41_h42_the_compact_form_has_a_line_for_each_step_and_none_for_what_is_absent() {
    told_with(
        &library(),
        SECOND,
        Form::Compact,
        "[ACTIVE PLAN: git_feature_branch]
|  Step 1/3: a [DONE]
|  Step 2/3: b << CURRENT
|    Action: Create and checkout a new branch from main
|    Tool: code_execution_tool
|    Hint: git checkout -b feature/<name> main
|    Verify: output_contains: Switched to
|  Step 3/3: c [PENDING]
|
|Execute Step 2 now. Do not skip ahead. Verify before proceeding.",
    );
    let mut manual = library();
    if let Some(manual) = manual.get_mut(&NodeId::new("b")) {
        manual.verify = Some(Verify { kind: "manual".to_owned(), value: String::new() });
        manual.tool = None;
    }
    // A person's check is not shown to the agent (H-41), and an absent text has no line (H-42).
    told_with(
        &manual,
        SECOND,
        Form::Compact,
        "[ACTIVE PLAN: git_feature_branch]
|  Step 1/3: a [DONE]
|  Step 2/3: b << CURRENT
|    Action: Create and checkout a new branch from main
|    Hint: git checkout -b feature/<name> main
|  Step 3/3: c [PENDING]
|
|Execute Step 2 now. Do not skip ahead. Verify before proceeding.",
    );
}

#[test]
fn h41_a_step_that_failed_or_was_left_out_is_told_as_failed() {
    told(
        "plan  a: task skip  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled skipped; b#1 to coder",
        Form::Compact,
        "[ACTIVE PLAN: git_feature_branch]
|  Step 1/2: a [FAILED]
|  Step 2/2: b << CURRENT
|    Action: do b
|    Verify: `./check b` exits with 0
|
|Execute Step 2 now. Do not skip ahead. Verify before proceeding.",
    );
}

#[test]
fn g33_the_workflow_form_tells_the_path_and_every_way_on() {
    told_with(
        &library(),
        SECOND,
        Form::Workflow,
        "[WORKFLOW: git_feature_branch]
|  a [DONE] → b << CURRENT (attempt 2/3)
|    Action: Create and checkout a new branch from main
|    Tool: code_execution_tool
|    Hint: git checkout -b feature/<name> main
|    Verify: the output contains \"Switched to\"
|    On success → c
|    On fail (retries left) → retry b
|    On fail (exhausted) → escalate
|
|Execute the current step. Do not skip ahead.",
    );
}

#[test]
fn g33_a_loop_is_told_visit_for_visit_and_branches_side_by_side() {
    told(
        "plan  a: task  b: task  a -on_success-> done  a -on_fail-> b  b -on_success-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; b#1 to coder, told #1 failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder",
        Form::Workflow,
        "[WORKFLOW: git_feature_branch]
|  a [FAILED] → b [DONE] → a << CURRENT (attempt 1/1)
|    Action: do a
|    Verify: `./check a` exits with 0
|    On success → done
|    On fail (exhausted) → b
|
|Execute the current step. Do not skip ahead.",
    );
    told(
        &format!("plan  {FORK}\n approved\n -> clock admitted  a#1 to coder; b#1 to coder"),
        Form::Workflow,
        "[WORKFLOW: git_feature_branch]
|  f [DONE]
|  a << CURRENT (attempt 1/2)
|    Action: do a
|    Verify: `./check a` exits with 0
|    On success → j
|    On fail (retries left) → retry a
|    On fail (exhausted) → a person is asked
|  b << CURRENT (attempt 1/1)
|    Action: do b
|    Verify: `./check b` exits with 0
|    On success → j
|    On fail (exhausted) → j
|
|Execute the current steps. Do not skip ahead.",
    );
}

#[test]
fn h43_nothing_is_told_where_no_plan_is_under_way_and_a_person_is_waited_for() {
    for form in Form::ALL {
        told("plan  a: task\n -> human submits  start held: plan submitted", form, "");
    }
    told(
        "plan  a: task  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation no_edge",
        Form::Long,
        "[ACTIVE PLAN: git_feature_branch]
|Step 1 of 2: a ← YOU ARE HERE (a person is asked)
|  Action: do a
|  Verify: `./check a` exits with 0
|Step 2 of 2: b [PENDING]
|
|INSTRUCTION: Step 1 waits for a person. Do nothing until they answer.",
    );
}
