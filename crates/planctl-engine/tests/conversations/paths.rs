//! Edges: which one an outcome takes, loops, visits, stalls (DESIGN 6, X-07, X-08, G-19).

use super::script::talk;

#[test]
fn x07_exhaustion_takes_the_exhaust_edge_before_the_fail_edge() {
    talk(
        "
        plan  a: task  b: task  c: task  a -on_exhaust-> b  a -on_fail-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; b#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn g22_the_fail_edge_waits_until_no_retry_remains() {
    talk(
        "
        plan  a: task retry 1  b: task  c: task  a -on_fail-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent overran a#2        a settled failed; c#1 to coder, told #2 failed
        ",
    );
}

#[test]
fn an_always_edge_serves_success_and_exhaustion() {
    talk(
        "
        plan  a: task  b: task  a -always-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; b#1 to coder, told #1 failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn g15_a_retry_edge_leads_to_another_step_while_the_allowance_lasts() {
    talk(
        "
        plan  a: task  b: task retry 1 escalate  b -on_retry-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn g23_a_retry_that_comes_round_by_a_mending_node_spends_the_allowance() {
    talk(
        "
        plan  a: task retry 1  b: task  c: task  a -on_retry-> b  b -on_success-> a  a -on_exhaust-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        b#1 to coder, told #1 failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder, told #1 failed
        -> agent overran a#2        a settled failed; c#1 to coder, told #2 failed
        ",
    );
}

#[test]
fn g23_a_node_that_settled_has_all_its_attempts_again() {
    talk(
        "
        plan  a: task retry 1  b: task  c: task  a -on_retry-> b  b -on_success-> a  a -on_exhaust-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        b#1 to coder, told #1 failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; a#3 to coder
        -> agent overran a#3        b#3 to coder, told #3 failed
        ",
    );
}

#[test]
fn g19_an_outcome_without_an_edge_is_a_stall_that_asks() {
    talk(
        "
        plan  a: task
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation no_edge
        ",
    );
}

#[test]
fn x08_an_entry_beyond_the_visits_counts_as_exhausted() {
    talk(
        "
        plan  a: task visits 2 escalate  b: task  b -on_fail-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#2 to coder
        -> agent overran b#2        b settled failed; a held: escalation visits_limit
        ",
    );
}

#[test]
fn x08_the_allowance_refills_over_a_success_path_only() {
    talk(
        "
        plan  a: task retry 1 escalate  b: task  b -on_fail-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; a#3 to coder, told #1 failed
        -> agent overran a#3        a held: escalation exhausted
        ",
    );
}
