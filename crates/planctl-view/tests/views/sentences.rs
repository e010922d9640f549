//! Sentences for facts.

use planctl_engine::Fact;
use planctl_view::sentence;

use super::script::facts_after;

#[test]
fn e15_a_choice_is_told_as_the_signal_and_the_way_that_followed() {
    let (graph, facts) = facts_after(
        "
        plan  a: task  b: task  c: task  a -always?steps.a.exit_code=3-> b  a -on_success-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
    let chosen = |fact: &&Fact| matches!(fact, Fact::EdgeFollowed { from, .. } if from.as_str() == "a");
    let said = sentence(&graph, facts.iter().find(chosen).unwrap());
    assert_eq!(said, "step 1 \"a\" counts as met, so the run went to step 3 \"c\"");
}
