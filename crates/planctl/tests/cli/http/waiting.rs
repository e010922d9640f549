//! Workers that wait while work comes to be.

use serde_json::Value;

use super::gone::Asking;
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

/// Its look finds nothing though there is work.
#[test]
fn work_that_a_paused_worker_looked_past_goes_before_work_that_comes_later() {
    let house = House::new();
    let step = |number: u8, target: &str, fields: &str, contract: &str| {
        format!(
            "\n### {number}. Do {number}\n\n**target:** {target}\n\n{fields}**task:** Do it.\n\n\
             **contract:**\n```bash\n{contract}\n```\nexit_code == 0\n"
        )
    };
    let (head, _) =
        plan().split_once("\n### 1.").map(|(head, rest)| (head.to_owned(), rest.to_owned())).unwrap();
    let steps = [
        step(1, "tester", "", "until test -e go.txt; do sleep 0.02; done; test -e go.txt"),
        step(2, "coder", "", "test -e two.txt"),
        step(3, "coder", "**needs:** none\n\n", "test -e three.txt"),
    ];
    let text = head.replace("## Steps", "**parallel:** 2\n\n## Steps") + &steps.concat();
    house.fixture.write("steps.md", &text);
    let said = house.fixture.planctl(&["plan", "run", "steps.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let claim = |roles: &str| {
        let body = Some(format!(r#"{{"roles": [{roles}], "worker": "mole"}}"#));
        house.local("POST", "/v1/items/claim", &Ask { body, ..Ask::default() })
    };
    house.until_sql("select count(*) from items where state = 'ready' and lane = 'agent'", "2");
    let first = claim(r#""tester""#).json();
    assert_eq!(say(&house, &first, "complete", r#"{"text": "done"}"#).status, 200);
    assert_eq!(house.fixture.planctl(&["worker", "pause", "mole"]).code, 0);
    assert_eq!(claim(r#""coder", "tester""#).status, 204, "it is paused");
    let waiting = Asking::claim(&house, "other", None, 60);
    house.fixture.write("go.txt", "");
    let claimed = waiting.answer().unwrap();
    assert_eq!(claimed["step"], 3, "{claimed}");
}
