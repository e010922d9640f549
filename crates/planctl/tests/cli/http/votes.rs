//! Rules for asks: answers that several people have to agree on, and answers after a deadline (P-19, X-35, I17).

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use super::house::{Ask, House, Reply, plan};
use crate::fixture::{Said, plan as plan_of};

/// Moves open asks and their deadlines into the past.
const AN_HOUR_LATER: &str = "update asks set created_at = created_at - interval '1 hour', \
     deadline_at = deadline_at - interval '1 hour' where closed_at is null";

fn trusted(house: &House, rules: &str) {
    house.fixture.write("planctl.toml", rules);
    let said = house.fixture.planctl(&["trust", "."]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// Makes a token with which a person decides.
fn token(house: &House, person: &str) -> String {
    let body = json!({ "name": person, "scope": "approve" }).to_string();
    let key = format!("make-{person}");
    let made =
        house.local("POST", "/v1/tokens", &Ask { key: Some(&key), body: Some(body), ..Ask::default() });
    assert_eq!(made.status, 200, "{made:?}");
    made.json()["secret"].as_str().unwrap().to_owned()
}

fn vote(house: &House, token: &str, key: &str, ask: u64, answer: &str) -> Reply {
    let body = json!({ "answer": { "answer": answer }, "note": format!("by {key}") }).to_string();
    let how = Ask { token: Some(token), key: Some(key), body: Some(body), ..Ask::default() };
    house.network("POST", &format!("/v1/approvals/{ask}/answer"), &how)
}

fn run(house: &House, words: &[&str]) -> Said {
    house.fixture.planctl(&[&["plan", "run", "p.md", "--no-wait", "--simulate"], words].concat())
}

const TWO: &str = "[asks.release]\nkinds = [\"plan\"]\nplans = [\"p.md\"]\napprovals = 2\nof = [\"ann\", \"ben\", \"carl\"]\n\
    self_approval = false\n";

#[test]
fn p_19_a_plan_runs_once_as_many_people_agreed_as_its_rule_wants_and_history_names_them() {
    let house = House::new();
    trusted(&house, TWO);
    house.fixture.write("p.md", &plan("p", "hello"));
    let said = run(&house, &["--approve"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("the rule release wants 2 of ann, ben, carl"), "{said:?}");
    // The user of this machine is none of them, whichever name they sign with.
    let said = house.fixture.planctl(&["approve", "p.md"]);
    assert_eq!(said.code, 77, "{said:?}");
    let said = house.fixture.planctl(&["approvals", "approve", "1"]);
    assert_eq!(said.code, 77, "{said:?}");

    let (ann, ben, carl) = (token(&house, "ann"), token(&house, "ben"), token(&house, "carl"));
    let refused = vote(&house, &ann, "ann", 1, "approve");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "not_asked"),
        "ann owns the plan: {refused:?}"
    );
    let counted = vote(&house, &ben, "ben", 1, "approve");
    assert_eq!(counted.json()["voted"], json!({ "rule": "release", "have": 1, "needed": 2 }), "{counted:?}");
    let again = vote(&house, &ben, "ben-again", 1, "approve").json();
    assert_eq!(
        (&again["voted"]["have"], &again["repeated"]),
        (&json!(1), &json!(true)),
        "one person has one vote"
    );
    let shown = house.fixture.planctl(&["approvals", "show", "1"]).out;
    assert!(
        shown.contains("the rule release wants 2 of ann, ben, carl, and nobody for a plan of their own"),
        "{shown}"
    );
    assert!(shown.contains("    ben votes for approve, ") && shown.contains(": by ben\n"), "{shown}");
    assert_eq!(house.fixture.sql("select count(*) from approvals"), "0", "one vote approves nothing");

    let decided = vote(&house, &carl, "carl", 1, "approve");
    assert_eq!(decided.status, 200, "{decided:?}");
    assert!(decided.json().get("voted").is_none(), "{decided:?}");
    let late = vote(&house, &ben, "ben-late", 1, "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    let answered = house.fixture.events_named("p-1", "ask_answered");
    assert_eq!(answered.len(), 1, "{answered:?}");
    let answered = answered[0].to_string();
    assert!(answered.contains("\"carl\"") && answered.contains("agreed before: ben ("), "{answered}");
    assert!(answered.contains("Z): by ben"), "the words of all who agreed stand there: {answered}");
    assert_eq!(house.fixture.sql("select by from approvals"), "carl");
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

/// Starts a run that two people approved and that waits at its first step, and has ben edit the plan of its ask; returns the answer
/// with the tokens of ben and carl.
fn edited_by_ben(house: &House, rule: &str) -> (Reply, String, String) {
    trusted(house, rule);
    house
        .fixture
        .write("p.md", &plan_of("p", "5 minutes", &[("Write the fix", "test -e right", "escalate")]));
    let said = house.fixture.planctl(&["plan", "run", "p.md", "-d", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let (ben, carl) = (token(house, "ben"), token(house, "carl"));
    for (token, key) in [(&ben, "ben"), (&carl, "carl")] {
        assert_eq!(vote(house, token, key, 1, "approve").status, 200);
    }
    let ask = house.until("p-1", "waiting")["waiting_on"]["id"].clone();
    let path = format!("/v1/approvals/{ask}/edit");
    let seen = house.network("GET", &path, &Ask { token: Some(&ben), ..Ask::default() }).json();
    let text = seen["text"].as_str().unwrap().replace("test -e right", "test -e README");
    let body = json!({ "text": text, "file": seen["file"], "note": "mended" }).to_string();
    let how = Ask { token: Some(&ben), key: Some("edit"), body: Some(body), ..Ask::default() };
    (house.network("POST", &path, &how), ben, carl)
}

#[test]
fn p_19_another_text_of_a_paused_run_is_handed_in_and_the_run_goes_on_once_as_many_people_agreed() {
    let house = House::new();
    house.fixture.write("README", "here");
    let (edited, ben, carl) = edited_by_ben(&house, &TWO.replace("self_approval = false\n", ""));
    assert_eq!(edited.status, 200, "{edited:?}");
    let edited = edited.json();
    assert_eq!(edited["voted"], json!({ "rule": "release", "have": 1, "needed": 2 }), "{edited}");
    let ask = edited["ask"].as_u64().unwrap();
    assert_eq!(house.until("p-1", "paused")["state"], "paused");
    assert_eq!(house.until("p-2", "awaiting_approval")["waiting_on"]["id"], ask);
    let one = house.fixture.sql("select count(*) from approvals");

    let decided = vote(&house, &carl, "carl-again", ask, "approve");
    assert_eq!(decided.status, 200, "{decided:?}");
    assert_eq!(decided.json()["run"], "p-1", "{decided:?}");
    assert_eq!(house.until("p-1", "done")["approved_by"], "carl");
    let over = house.until("p-2", "cancelled");
    assert_eq!(over["spent"]["unmetered"], 0, "it never works: {over}");
    let ended = house.fixture.events_named("p-2", "plan_cancelled");
    assert!(ended[0].to_string().contains("p-1 goes on with this text"), "{ended:?}");
    assert_eq!((one.as_str(), house.fixture.sql("select count(*) from approvals").as_str()), ("1", "2"));
    // The paused run stays the plan's newest one.
    let late = vote(&house, &ben, "ben-late", ask, "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    assert_eq!(
        house.fixture.planctl(&["status", "p.md"]).out.lines().next().map(|line| line.contains("p-1")),
        Some(true)
    );
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p_19_who_hands_another_text_in_has_no_vote_on_it_by_a_rule_without_self_approval_and_its_own_text_can_be_approved_anew()
 {
    let house = House::new();
    house.fixture.write("README", "here");
    let (edited, ben, carl) = edited_by_ben(&house, &TWO.replace("\"ann\", \"ben\"", "\"ben\", \"dora\""));
    assert_eq!(edited.status, 200, "{edited:?}");
    let edited = edited.json();
    assert_eq!((&edited["decision"], edited.get("voted")), (&json!("hand in"), None), "{edited}");
    let ask = edited["ask"].as_u64().unwrap();
    let counted = vote(&house, &carl, "carl-again", ask, "approve");
    assert_eq!(counted.json()["voted"]["have"], 1, "{counted:?}");
    assert_eq!(vote(&house, &carl, "carl-no", ask, "reject").status, 200);
    house.until("p-2", "cancelled");
    assert_eq!(house.until("p-1", "paused")["state"], "paused");
    // Its own text was approved before the file had another one: put back, it is approved anew.
    let text = house.fixture.read("p.md").replace("test -e README", "test -e right");
    house.fixture.write("p.md", &text);
    let said = house.fixture.planctl(&["approve", "p.md", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let ask = serde_json::from_str::<Value>(&said.out).unwrap()["ask"].as_u64().unwrap();
    for (token, key) in [(&ben, "ben-anew"), (&carl, "carl-anew")] {
        assert_eq!(vote(&house, token, key, ask, "approve").status, 200);
    }
    house.until("p-3", "cancelled");
    assert_eq!(house.until("p-1", "waiting")["approved_by"], "carl");
}

#[test]
fn p_19_one_person_rejects_and_a_changed_plan_begins_its_votes_anew() {
    let house = House::new();
    trusted(&house, TWO);
    house.fixture.write("p.md", &plan("p", "hello"));
    assert_eq!(run(&house, &[]).code, 3);
    let (ben, carl) = (token(&house, "ben"), token(&house, "carl"));
    assert_eq!(vote(&house, &ben, "one", 1, "approve").json()["voted"]["have"], 1);
    // Another text is handed in: the ask with its vote is taken back.
    house.fixture.write("p.md", &plan("p", "goodbye"));
    assert_eq!(run(&house, &[]).code, 3);
    let late = vote(&house, &carl, "two", 1, "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    let first = vote(&house, &carl, "three", 2, "approve").json();
    assert_eq!(first["voted"]["have"], 1, "{first}");
    let rejected = vote(&house, &ben, "four", 2, "reject");
    assert_eq!(rejected.status, 200, "{rejected:?}");
    assert_eq!(house.until("p-2", "cancelled")["state"], "cancelled");
}

#[test]
fn p_19_a_client_that_leaves_a_rule_out_of_its_configuration_has_it_all_the_same() {
    let house = House::new();
    trusted(&house, TWO);
    let text = plan("p", "hello");
    house.fixture.write("p.md", &text);
    let call = json!({
        "plan": { "workspace": house.fixture.path(""), "path": "p.md", "text": text, "config": {} },
        "start": { "waits_for_workers": true, "approve": {} },
    });
    let how = Ask { key: Some("start"), body: Some(call.to_string()), ..Ask::default() };
    let started = house.local("POST", "/v1/runs", &how);
    assert_eq!(started.json()["started"], "needs_approval", "{started:?}");
    assert_eq!(house.fixture.sql("select count(*) from approvals"), "0");
}

#[test]
fn p_19_of_a_hundred_who_vote_at_once_one_decides_and_each_vote_before_is_counted_once() {
    const PEOPLE: usize = 100;
    let house = House::new();
    let people: Vec<String> = (0..PEOPLE).map(|at| format!("person-{at}")).collect();
    trusted(&house, &format!("[asks.many]\nkinds = [\"plan\"]\napprovals = 5\nof = {people:?}\n"));
    house.fixture.write("p.md", &plan("p", "hello"));
    assert_eq!(run(&house, &[]).code, 3);
    let tokens: Vec<String> = people.iter().map(|person| token(&house, person)).collect();
    let begin = Arc::new(Barrier::new(PEOPLE));
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let voters: Vec<_> = tokens
            .iter()
            .zip(&people)
            .map(|(token, person)| {
                let (begin, house) = (begin.clone(), &house);
                scope.spawn(move || {
                    begin.wait();
                    vote(house, token, person, 1, "approve")
                })
            })
            .collect();
        voters.into_iter().map(|voter| voter.join().unwrap()).collect()
    });
    let (mut counted, mut decided) = (Vec::new(), 0);
    for reply in &replies {
        match reply.status {
            200 if reply.json()["voted"].is_object() => counted.push(reply.json()["voted"]["have"].clone()),
            200 => decided += 1,
            _ => assert_eq!((reply.status, reply.code().as_str()), (409, "conflict"), "{reply:?}"),
        }
    }
    counted.sort_by_key(|have| have.as_u64());
    assert_eq!((counted, decided), (vec![json!(1), json!(2), json!(3), json!(4)], 1));
    assert_eq!(house.fixture.sql("select count(*) from votes where void is null"), "5");
    assert_eq!(house.fixture.events_named("p-1", "ask_answered").len(), 1);
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn x_35_a_rule_answers_an_ask_that_nobody_answered_in_time_also_after_a_restart_and_never_approves() {
    let mut house = House::new();
    trusted(&house, "[asks.soon]\ndeadline = \"1h\"\non_deadline = \"reject\"\n");
    house.fixture.write("p.md", &plan("p", "hello"));
    assert_eq!(run(&house, &[]).code, 3);
    let list = house.fixture.json(&["approvals", "--json"]);
    let deadline = &list["asks"][0]["deadline"];
    assert_eq!((&deadline["answer"], &deadline["rule"]), (&json!("reject"), &json!("soon")), "{list}");
    let shown = house.fixture.planctl(&["approvals"]).out;
    assert!(shown.contains("  DEADLINE  ") && shown.contains("reject in "), "{shown}");
    house.kill();
    house.fixture.sql(AN_HOUR_LATER);
    house.start_again();
    assert_eq!(house.until("p-1", "cancelled")["state"], "cancelled");
    let answered = house.fixture.events_named("p-1", "ask_answered");
    let answered = answered[0].to_string();
    assert!(
        answered.contains("policy:soon") && answered.contains("nobody answered within 1 h"),
        "{answered}"
    );

    // An escalation takes no `reject`: its run is aborted.
    house.fixture.write("p.md", &plan("p", "goodbye"));
    let said = house.fixture.run("true");
    assert_eq!(said.code, 3, "{said:?}");
    house.fixture.sql(AN_HOUR_LATER);
    assert_eq!(house.until("p-2", "failed")["state"], "failed");
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn x_35_a_plan_says_in_its_own_text_how_long_its_asks_wait_and_the_earliest_deadline_counts() {
    let house = House::new();
    let deadlines = "**ask_deadline:** 1 h, then reject\n\n## Steps";
    let of_step = "**ask_deadline:** 30 min, then reject\n**task:**";
    let text = plan("p", "hello").replacen("## Steps", deadlines, 1).replacen("**task:**", of_step, 1);
    house.fixture.write("p.md", &text);
    let shown = house.fixture.planctl(&["plan", "show", "p.md"]).out;
    assert!(shown.contains("1 h, then reject") && shown.contains("30 min, then reject"), "{shown}");
    assert_eq!(run(&house, &[]).code, 3);
    let list = house.fixture.json(&["approvals", "--json"]);
    let deadline = &list["asks"][0]["deadline"];
    assert_eq!((&deadline["answer"], &deadline["rule"]), (&json!("reject"), &json!("the plan")), "{list}");
    let shown = house.fixture.planctl(&["approvals", "show"]).out;
    assert!(shown.contains("the plan answers reject"), "{shown}");
    house.fixture.sql(AN_HOUR_LATER);
    assert_eq!(house.until("p-1", "cancelled")["state"], "cancelled");
    let answered = house.fixture.events_named("p-1", "ask_answered")[0].to_string();
    assert!(answered.contains("policy:the plan") && answered.contains("within 1 h"), "{answered}");

    // A step's own deadline goes before the plan's; a rule of the configuration that ends earlier goes before both.
    trusted(&house, "[asks.soon]\nkinds = [\"escalation\"]\ndeadline = \"40m\"\non_deadline = \"abort\"\n");
    let start = ["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "true"];
    assert_eq!(house.fixture.planctl(&start).code, 3);
    let ask = &house.fixture.json(&["approvals", "--json"])["asks"][0];
    assert_eq!(
        (&ask["kind"], &ask["deadline"]["rule"], &ask["deadline"]["answer"]),
        (&json!("escalation"), &json!("the plan"), &json!("abort"))
    );
    trusted(&house, "[asks.soon]\nkinds = [\"escalation\"]\ndeadline = \"20m\"\non_deadline = \"abort\"\n");
    house.fixture.write("q.md", &text.replace("# p", "# q"));
    let start = ["plan", "run", "q.md", "--approve", "--no-wait", "--exec", "true"];
    house.fixture.sql(AN_HOUR_LATER);
    assert_eq!(house.until("p-2", "failed")["state"], "failed");
    let said = house.fixture.planctl(&start);
    assert_eq!(said.code, 3, "{said:?}");
    let ask = &house.fixture.json(&["approvals", "--json"])["asks"][0];
    assert_eq!(ask["deadline"]["rule"], "soon", "{ask}");
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p_19_a_vote_is_a_line_of_history_and_one_that_nobody_cast_is_found_by_an_audit() {
    let house = House::new();
    trusted(&house, TWO);
    house.fixture.write("p.md", &plan("p", "hello"));
    assert_eq!(run(&house, &["--approve"]).code, 3);
    let ben = token(&house, "ben");
    assert_eq!(vote(&house, &ben, "ben", 1, "approve").status, 200);
    let voted = "select body #>> '{event,by}' from history where name = 'human.voted'";
    assert_eq!(house.fixture.sql(voted), "ben");
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
    house.fixture.sql(
        "insert into votes (item, voter, answer, about, note) select item, 'carl', answer, about, note from votes",
    );
    let said = house.fixture.planctl(&["audit"]);
    assert_ne!(said.code, 0, "{said:?}");
    let found = "the vote of carl on ask 1 is not in its history";
    assert!(said.out.contains(found) || said.err.contains(found), "{said:?}");
}
