//! Workers that wait while work comes to be.

use serde_json::Value;

use super::house::{Ask, House};
use super::work::say;

/// As many steps as there are tries for a worker to wait already when a verdict is written.
const STEPS: usize = 6;

fn plan() -> String {
    let mut text =
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Words\n\n**Context:** a test\n\n## Steps\n"
            .to_owned();
    for number in 1..=STEPS {
        text.push_str(&format!(
            "\n### {number}. Write {number}\n\n**target:** coder\n\n**task:** Write {number} into {number}.txt.\n\n\
             **contract:**\n```bash\nsleep 0.2; grep -qx {number} {number}.txt\n```\nexit_code == 0\n"
        ));
    }
    text
}

#[test]
fn a_worker_that_waits_is_given_the_next_step_by_the_transaction_of_the_verdict() {
    let house = House::new();
    house.fixture.write("steps.md", &plan());
    let said = house.fixture.planctl(&["plan", "run", "steps.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let mut leased_at_once = 0;
    for number in 1..=STEPS {
        // Its claim waits until the contract of the step before has been checked.
        let claimed = house.claim();
        assert_eq!((&claimed["step"], &claimed["generation"]), (&Value::from(number), &Value::from(1)));
        let one =
            "select (i.xmin = r.xmin)::int from items i join runs r on r.id = i.run where i.state = 'leased'";
        leased_at_once += house.fixture.sql(one).parse::<usize>().unwrap();
        house.fixture.write(&format!("{number}.txt"), &format!("{number}\n"));
        assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    }
    house.until(said.out.trim(), "done");
    assert!(leased_at_once > 0, "a claim was made for each step");
}

/// The last look found nothing, and nobody leads the queue at the moment at which the work comes.
#[test]
fn work_that_comes_between_two_claims_is_found_by_the_next_one_at_once() {
    let house = House::new();
    let claim = |wait: u8| {
        let ask = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
        house.local("POST", &format!("/v1/items/claim?wait={wait}"), &ask)
    };
    assert_eq!(claim(0).status, 204);
    house.run("hello", "hello");
    house.until_sql("select count(*) from items where state = 'ready' and lane = 'agent'", "1");
    let claimed = claim(0);
    assert_eq!(claimed.status, 200, "{claimed:?}");
}
