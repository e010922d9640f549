//! Rows of DOT.md that are conversations: context, waits, epochs, what agents are told, plans within plans.

use planctl_engine::{Backoff, Fact, ItemId, NodeId};

use super::script::{scene_after, talk};

const BEGUN: &str = "approved
    -> clock admitted           a#1 to coder";

#[test]
fn a16_r6_conditions_of_a_node_that_may_be_partial_see_that_it_is() {
    for (condition, target) in [("outcome=partial_success", "c"), ("outcome=fail", "b")] {
        talk(&format!(
            "plan  a: task warn  b: task  c: task  a -on_success-> b  a -always?{condition}-> c
            {BEGUN}
            -> agent reported a#1       a#1 to harness
            -> harness found a#1 exit 1  a#1 failed; a settled warned; {target}#1 to coder"
        ));
    }
}

#[test]
fn a_fork_without_a_join_of_its_own_that_is_entered_again_is_awaited_anew() {
    // 2 needs nothing, 5 needs 2 and 3, 6 needs 3 and 4, and 7 leads back to the fork.
    talk(
        "plan  f: fork  2: call  3: call  4: call  j: join  k: join  7: call  f -always-> 2  f -always-> 3  f -always-> 4  2 -on_success-> j  3 -on_success-> g  g: fork  g -always-> j  g -always-> k  4 -on_success-> k  j -on_success-> l  k -on_success-> l  l: join  l -on_success-> 7  7 -on_fail-> f  7 -on_success-> done  parallel 3
        approved
        -> clock admitted           2#1 to harness; 3#1 to harness; 4#1 to harness
        -> harness found 2#1 exit 0  2#1 passed; 2 settled passed
        -> harness found 3#1 exit 0  3#1 passed; 3 settled passed; j joined 2 met, 0 failed; j settled passed
        -> harness found 4#1 exit 0  4#1 passed; 4 settled passed; k joined 2 met, 0 failed; k settled passed; l joined 2 met, 0 failed; l settled passed; 7#1 to harness
        -> harness found 7#1 exit 1  7#1 failed; 7 settled failed; 2#2 to harness; 3#2 to harness; 4#2 to harness
        -> harness found 4#2 exit 0  4#2 passed; 4 settled passed
        -> harness found 2#2 exit 0  2#2 passed; 2 settled passed
        -> harness found 3#2 exit 0  3#2 passed; 3 settled passed; j joined 2 met, 0 failed; j settled passed; k joined 2 met, 0 failed; k settled passed; l joined 2 met, 0 failed; l settled passed; 7#2 to harness",
    );
}

#[test]
fn a_fork_that_is_entered_again_leaves_what_came_before_it_as_it_is() {
    // The first fork's join lies before the second fork, and only one of its branches is run again.
    talk(
        "plan  f: fork  a: call  b: call  j: join  g: fork  c: call  d: call  k: join  e: call  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> g  g -always-> c  g -always-> d  c -on_success-> k  d -on_success-> k  k -on_success-> e  e -on_fail-> a  e -on_success-> done  parallel 2
        approved
        -> clock admitted           a#1 to harness; b#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to harness; d#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed
        -> harness found d#1 exit 0  d#1 passed; d settled passed; k joined 2 met, 0 failed; k settled passed; e#1 to harness
        -> harness found e#1 exit 1  e#1 failed; e settled failed; a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#2 to harness; d#2 to harness
        -> harness found d#2 exit 0  d#2 passed; d settled passed
        -> harness found c#2 exit 0  c#2 passed; c settled passed; k joined 2 met, 0 failed; k settled passed; e#2 to harness
        -> harness found e#2 exit 1  e#2 failed; e settled failed; a#3 to harness
        -> harness found a#3 exit 0  a#3 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#3 to harness; d#3 to harness",
    );
}

#[test]
fn x1_each_branch_has_a_context_of_its_own_that_no_other_and_nothing_after_sees() {
    let plan = "plan  z: task  f: fork j  a: task  b: task  c: task  d: task  j: join  e: decision  z -on_success-> f  f -always-> a  f -always-> b  a -always?context.x=b-> d  a -on_success-> j  b -always?context.x=b-> c  c -on_success-> j  d -on_success-> j  b -on_success-> j  j -on_success-> e  e -always?context.x=z-> z  e -on_success-> done  parallel 2";
    talk(&format!(
        "{plan}
        approved
        -> clock admitted           z#1 to coder
        -> agent reported z#1 notes x=z  z#1 to harness
        -> harness found z#1 exit 0  z#1 passed; z settled passed; a#1 to coder; b#1 to coder
        -> agent reported b#1 notes x=b  b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed; j joined 2 met, 0 failed; j settled passed; z#2 to coder"
    ));
}

#[test]
fn x2_the_built_in_names_of_the_context_are_there() {
    let told = |when: &str| {
        talk(&format!(
            "plan  a: call  b: task  d: decision  c: task  e: task  a -on_success-> b  a -on_exhaust-> b  b -on_success-> d  d -always?{when}-> c  d -on_success-> e
            approved
            -> clock admitted           a#1 to harness
            -> harness found a#1 exit 3 printing two  a#1 failed; a settled failed; b#1 to coder, told #1 failed
            -> agent reported b#1 prefers go  b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder"
        ));
    };
    for holds in [
        "context.outcome=success",
        "context.preferred_label=go",
        "context.current_node=d",
        "context.last_stage=b",
        "context.last_response=done",
        "context.internal.retry_count.a=1",
        "context.tool.output=two&&context.tool.exit_code=3",
        "context.retry.remaining=1",
        "context.exit_code=0",
        "context.failure_class=contract",
    ] {
        told(holds);
    }
    talk(
        "plan  a: call  b: task  c: task  a -on_exhaust-> b  a -always?context.failure_reason!=&&context.exit_code=4-> c  a -on_success-> done
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 4  a#1 failed; a settled failed; c#1 to coder, told #1 failed",
    );
}

#[test]
fn s7_what_a_call_printed_is_known_to_conditions() {
    talk(
        "plan  a: call  b: task  c: task  a -on_success-> b  a -always?context.tool.output=green-> c
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 0 printing green  a#1 passed; a settled passed; c#1 to coder",
    );
}

#[test]
fn x6_what_failed_stands_in_the_final_record_as_it_was_found() {
    let (_, run, facts) = scene_after(&format!(
        "plan  a: task abort
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 7 printing E42:_no_such_table  a#1 failed; a settled failed; FAILED"
    ));
    let failure = run.records()[&NodeId::from("a")].failure.as_ref().unwrap();
    assert_eq!(failure.stdout.tail, "E42:_no_such_table");
    assert!(matches!(facts.last(), Some(Fact::PlanFailed { node, .. }) if node.as_str() == "a"));
}

#[test]
fn e2_a_condition_that_holds_and_k1_the_state_after_every_step_is_all_there_is() {
    // A run that is put together from its stored head and records goes on as the one in memory: nothing else is state.
    let (graph, run, _) = scene_after(&format!(
        "plan  a: task retry 2  b: task  a -on_success-> b
        {BEGUN}
        -> agent reported a#1 notes x=1  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed"
    ));
    let head = serde_json::to_string(&run.head).unwrap();
    let records = serde_json::to_string(run.records()).unwrap();
    let stored = planctl_engine::Run::from_parts(
        run.id,
        serde_json::from_str(&head).unwrap(),
        planctl_engine::Scope::All,
        serde_json::from_str(&records).unwrap(),
    );
    assert_eq!(stored, run);
    assert_eq!(graph.task_count(), 2);
}

#[test]
fn x7_the_context_keeps_small_values_and_what_was_printed_is_kept_by_its_digest() {
    let long = "x".repeat(5_000);
    let (_, run, _) = scene_after(&format!(
        "plan  a: task  b: task  a -on_success-> b  a -always?context.last_response=no-> b  a -always?context.tool.output=no-> b
        {BEGUN}
        -> agent reported a#1 notes x={long}  a#1 to harness"
    ));
    let context = &run.records()[&NodeId::from("a")].context;
    assert_eq!(context["x"].len(), 256);
    assert!(context.values().all(|value| value.len() <= 256), "{context:?}");
}

#[test]
fn p6_the_results_of_branches_are_known_in_their_order_with_what_they_printed() {
    talk(
        "plan  f: fork j  a: call  b: call  j: join partial  d: decision  c: task  e: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_success-> d  d -always?context.parallel.results=fail,success&&context.parallel.results.0.outcome=fail&&context.parallel.results.0.output=red&&context.parallel.results.1.output=green&&context.parallel.results.1.node=b-> c  d -on_success-> e  parallel 2
        approved
        -> clock admitted           a#1 to harness; b#1 to harness
        -> harness found b#1 exit 0 printing green  b#1 passed; b settled passed
        -> harness found a#1 exit 1 printing red  a#1 failed; a settled failed; j joined 1 met, 1 failed; j settled warned; c#1 to coder",
    );
}

#[test]
fn p7_a_join_waits_for_all_and_names_the_best_only_where_a_condition_asks() {
    talk(
        "plan  f: fork j  a: call  b: call  j: join partial  d: decision  c: task  e: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_success-> d  d -always?context.parallel.fan_in.best_id=b&&context.parallel.fan_in.best_outcome=success-> c  d -on_success-> e  parallel 2
        approved
        -> clock admitted           a#1 to harness; b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> harness found a#1 exit 1  a#1 failed; a settled failed; j joined 1 met, 1 failed; j settled warned; c#1 to coder",
    );
    let (_, run, _) = scene_after(
        "plan  f: fork j  a: call  b: call  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to harness; b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder",
    );
    let known: Vec<&String> = run.records()[&NodeId::from("j")].context.keys().collect();
    assert_eq!(known, ["parallel.results"]);
}

#[test]
fn r2_waits_grow_as_the_preset_says_up_to_a_minute_with_jitter_from_the_items_name() {
    let item = |name: &str| ItemId::from(name);
    let waits = |preset: &str| -> Vec<(u64, u64)> {
        let (backoff, _) = Backoff::from_word(preset).unwrap();
        let backoff = backoff.unwrap();
        (1..=12)
            .map(|failed| {
                let drawn: Vec<u64> = (0..40)
                    .map(|n| backoff.delay(&item(&format!("run.a.1.{n}.agent")), failed).as_millis() as u64)
                    .collect();
                (*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap())
            })
            .collect()
    };
    let ceilings = [
        ("standard", [200_u64, 400, 800, 1_600]),
        ("aggressive", [500, 1_000, 2_000, 4_000]),
        ("linear", [500, 500, 500, 500]),
        ("patient", [2_000, 6_000, 18_000, 54_000]),
    ];
    for (preset, ceilings) in ceilings {
        for ((least, most), ceiling) in waits(preset).into_iter().zip(ceilings) {
            assert!(
                least >= ceiling / 2 && most <= ceiling && least < most,
                "{preset} {ceiling}: {least} {most}"
            );
        }
        assert!(waits(preset).iter().all(|(_, most)| *most <= 60_000), "{preset}");
    }
    let standard = Backoff::from_word("standard").unwrap().0.unwrap();
    assert_eq!(standard.delay(&item("a"), 3), standard.delay(&item("a"), 3));
    assert_eq!(standard.delay(&item("a"), u16::MAX).max(Backoff::MOST), Backoff::MOST);
    assert_eq!(Backoff::from_word("none"), Some((None, 0)));
    assert_eq!(Backoff::from_word("hasty"), None);
}

#[test]
fn r7_a_wait_before_a_retry_is_part_of_the_item_and_loses_no_attempt() {
    talk(&format!(
        "plan  a: task retry 1 waits patient  b: call retry 1 waits patient
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder later, told #1 failed
        -> clock own lease lost a#2  a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b#2 to harness later
        -> harness found b#2 exit 0  b#2 passed; b settled passed; DONE"
    ));
}

#[test]
fn r8_the_budget_is_looked_at_before_a_retry_and_before_the_way_back_of_a_goal() {
    talk(
        "plan  a: task retry 3  budget 900 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 500 tokens  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: budget budget, 100 short",
    );
    talk(
        "plan  a: task  b: task  goal b else a  a -on_success-> b  b -on_exhaust-> done  b -on_success-> done  budget 900 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 450 tokens  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1 400 tokens  94 % used; b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b settled failed; goal b unmet; a held: budget budget, 400 short",
    );
}

#[test]
fn e12_a_restart_begins_the_run_anew_with_what_it_keeps_and_is_bounded() {
    let plan = "plan  a: task visits 1  f: fork j  b: task  c: task  j: join  d: decision  a -on_success-> f  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  j -on_success-> d  d -always?context.n!=2#n,parallel.results-> a  d -on_success-> done  limit restarts 1  parallel 2";
    let first = format!(
        "{plan}
        {BEGUN}
        -> agent reported a#1 notes n=1  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder; c#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed; j joined 2 met, 0 failed; j settled passed; epoch 1 at a, keeping n parallel.results; a#2 to coder"
    );
    // Work of the epoch before counts no more, and attempts are counted on.
    let (_, run, _) = scene_after(&first);
    assert_eq!(run.head.restarts, 1);
    assert_eq!(run.head.settled.total(), 0);
    assert_eq!(run.records()[&NodeId::from("a")].tally.visits, 1);
    assert_eq!(run.records()[&NodeId::from("a")].context["n"], "1");
    let second = |notes: &str, end: &str| {
        talk(&format!(
            "{first}
            -> agent reported a#1       refused: that attempt is over
            -> agent reported a#2 {notes}  a#2 to harness
            -> harness found a#2 exit 0  a#2 passed; a settled passed; b#2 to coder; c#2 to coder
            -> agent reported b#2       b#2 to harness
            -> harness found b#2 exit 0  b#2 passed; b settled passed
            -> agent reported c#2       c#2 to harness
            -> harness found c#2 exit 0  c#2 passed; c settled passed; j joined 2 met, 0 failed; j settled passed; {end}"
        ));
    };
    second("notes n=2", "DONE");
    second("notes n=3", "b held: escalation exhausted");
}

#[test]
fn dot_b18_after_a_restart_the_last_stage_is_the_start() {
    talk(&format!(
        "
        plan  d: decision  a: task  d -always?context.last_stage=start-> a  a -always?context.n!=2#n-> d  a -on_success-> done
        {BEGUN}
        -> agent reported a#1 notes n=1  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; epoch 1 at d, keeping n; a#2 to coder
        "
    ));
}

#[test]
fn e12_nothing_of_the_epoch_before_is_asked_about_or_done_again() {
    talk(
        "plan  a: task red-first deny  d: decision  b: task  a -on_success#-> d  d -always?context.x=1-> b
        approved
        -> clock admitted           a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a held: escalation not_red
        -> human waive \"fine\"     a settled waived by the owner; epoch 1 at d; d held: escalation no_edge
        -> human retry              d held: escalation no_edge
        -> human pauses             d#0 taken back from ask; paused
        -> human resumes            queued
        -> clock admitted           goes on; d held: escalation no_edge",
    );
}

#[test]
fn e12_a_restart_takes_back_what_other_branches_have_under_way() {
    talk(
        "plan  f: fork j  b: task  c: task  j: join  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  b -on_fail#-> f  parallel 2
        approved
        -> clock admitted           b#1 to coder; c#1 to coder
        -> agent overran b#1        b settled failed; epoch 1 at f; c#1 taken back from agent; b#2 to coder; c#2 to coder
        -> agent reported c#1       refused: that attempt is over",
    );
}

#[test]
fn f1_the_edge_says_before_the_node_how_much_an_agent_is_told_and_full_is_a_wish() {
    talk(
        "plan  a: task told compact  b: task told summary:low  c: task told full  a -on_success-> b  b -on_success~truncate-> c  c -on_fail-> c  c -on_success-> done
        approved
        -> clock admitted           a#1 to coder, told compact of start
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder, told summary:low of a
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder, told truncate of b
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 1  c#1 failed; c settled failed; c told summary:high; c#2 to coder, told #1 failed and summary:high of c",
    );
}

#[test]
fn f3_the_thread_is_the_nodes_or_the_edges_or_the_common_one_or_the_node_before() {
    talk(
        "plan  a: task told compact thread own class loop  b: task told compact class loop  c: task told compact class loop  d: decision  e: task told compact  a -on_success~compact~edge-> b  b -on_success-> c  c -on_success-> d  d -on_success-> e
        approved
        -> clock admitted           a#1 to coder, told compact of own
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder, told compact of edge
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder, told compact of loop
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed; e#1 to coder, told compact of c",
    );
}

#[test]
fn n1_a_manager_runs_its_plan_until_its_condition_holds_and_at_most_so_often() {
    talk(
        "plan  p: plan child.md until context.stack.child.status=never cycles 2  b: task  p -on_success-> done  p -on_fail-> b
        approved
        -> clock admitted           p#1 to its plan
        -> harness found p#1 begun  p has a run; p#1 to its plan later
        -> harness found p#1 ended done  p ended Done; p#2 to its plan
        -> harness found p#2 begun  p#2 to its plan later
        -> harness found p#2 ended done  p ended Done; p settled failed; b#1 to coder, told #2 failed",
    );
    talk(
        "plan  p: plan child.md until context.stack.child.outcome=success cycles 5
        approved
        -> clock admitted           p#1 to its plan
        -> harness found p#1 begun  p has a run; p#1 to its plan later
        -> harness found p#1 ended done  p ended Done; p settled passed; DONE",
    );
}

#[test]
fn h5_a_question_that_is_skipped_fails_and_takes_the_way_for_failures() {
    let plan = "plan  h: human yes no  a: task  b: task  h -on_success@yes-> a  h -on_success@no-> done";
    talk(&format!(
        "{plan}  h -on_fail-> b
        approved
        -> clock admitted           h held: choice planned
        -> human skip               refused: this answer needs a note that says why
        -> human skip \"nobody knows\"  h settled failed by the owner; b#1 to coder"
    ));
    talk(&format!(
        "{plan}
        approved
        -> clock admitted           h held: choice planned
        -> human skip \"nobody knows\"  h settled failed by the owner; h held: escalation no_edge"
    ));
}

#[test]
fn s11_a_command_that_crashes_has_failed_and_the_run_goes_on() {
    talk(
        "plan  a: call  b: task  a -on_fail-> b  a -on_success-> done
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 signal 11  a#1 failed; a settled failed; b#1 to coder, told #1 failed",
    );
}

#[test]
fn p11_what_any_branch_does_is_progress_of_the_run() {
    talk(
        "plan  f: fork j  a: task  b: task  c: task  j: join  f -always-> a  f -always-> b  a -on_success-> c  c -on_success-> j  b -on_success-> j  parallel 2  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder; b#1 to coder
        wait 50 seconds
        -> agent reported a#1       a#1 to harness
        wait 20 seconds
        -> clock stale              wake at 110 s
        wait 60 seconds
        -> clock stale              expired after 80 s; a#1 taken back from gate; a held: escalation stale; b#1 taken back from agent; b held: escalation stale; wake at 190 s",
    );
}
