//! Decisions about a run that others decide about meanwhile.

use serde_json::Value;

use super::gone::{Asking, Locked};
use super::house::{Ask, House};

/// The text of the statement that reads an approval, from its table on.
const APPROVAL: &str = "from approvals where id = $1";

fn ask(key: &str) -> Ask<'_> {
    Ask { key: Some(key), body: Some("{}".to_owned()), ..Ask::default() }
}

/// Has a person resume a paused run, others do something between the look at it and the decision, and returns the answer.
fn resumed_after(others: &[&str]) -> Value {
    let house = House::new();
    let run = house.run("hello", "hello");
    let decide = |verb: &str| {
        let said = house.local("POST", &format!("/v1/runs/{run}/{verb}"), &ask(verb));
        assert_eq!(said.status, 200, "{said:?}");
    };
    decide("pause");
    let hidden = Locked::hide(&house, "approvals");
    let resuming = Asking::begin(&house, &format!("/v1/runs/{run}/resume"), &ask("resume"));
    hidden.await_waiting(APPROVAL);
    others.iter().for_each(|verb| decide(verb));
    drop(hidden);
    resuming.answer().unwrap()
}

#[test]
fn row_85_who_resumes_a_run_that_is_cancelled_meanwhile_is_told_that_it_is_over() {
    let problem = resumed_after(&["cancel"]);
    assert_eq!(problem["detail"], "could not resume hello-1: it is over", "{problem}");
    assert_eq!(problem["status"], 409, "{problem}");
}
