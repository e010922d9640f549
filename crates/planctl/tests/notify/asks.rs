//! Messages about an ask: that it opened, that it still waits, and who decided.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::receiver::{Got, Receiver, SECRET, WEBHOOK, configure, daemon, sql};
use crate::support::{Place, wait_until};

/// Verifies as a receiver of Standard Webhooks does.
fn is_signed(got: &Got) -> bool {
    let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let (id, at) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    mac.update(format!("{id}.{at}.{}", got.body).as_bytes());
    let signature = got.header("webhook-signature").strip_prefix("v1,").unwrap();
    mac.verify_slice(&STANDARD.decode(signature).unwrap()).is_ok()
}

fn types(got: &[Got]) -> Vec<String> {
    got.iter().map(|got| got.json()["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_ask_is_told_once_reminded_of_and_followed_by_who_decided() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, WEBHOOK);
    let _daemon = daemon(&place, &receiver);
    assert_eq!(place.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &place.exec()]).code, 3);

    let opened = receiver.await_got(1)[0].clone();
    let said = opened.json();
    assert!(is_signed(&opened), "{opened:?}");
    assert!(opened.header("webhook-id").starts_with("msg_"), "{opened:?}");
    let data = &said["data"];
    assert_eq!((&said["type"], &data["event"]), (&"approval.opened".into(), &"approval.opened".into()));
    assert_eq!(data["sentence"], "ask 1 waits for you: approve 1 step of \"Survive\"");
    assert_eq!((&data["plan"], &data["run"]), (&"p.md".into(), &"p-1".into()));
    assert_eq!(data["command"], "planctl approvals show 1");
    assert_eq!((&data["ask"]["id"], &data["ask"]["answer"]), (&1.into(), &serde_json::Value::Null));

    // Ten minutes pass, then an hour; a reminder that was sent moves the next one away.
    for (reminders, wait) in [(1, "1 hour"), (2, "24:00:00")] {
        sql(&place, "update announced_asks set remind_at = clock_timestamp()");
        let reminder = receiver.await_got(1 + reminders)[reminders].json();
        assert_eq!(reminder["type"], "approval.reminder");
        assert_eq!(reminder["data"]["ask"]["reminders"], reminders);
        let due = format!(
            "select 1/(count(*) filter (where remind_at between clock_timestamp() + interval '{wait}' - interval '5 minutes' \
             and clock_timestamp() + interval '{wait}'))::int from announced_asks"
        );
        sql(&place, &due);
    }

    place.must(&["approvals", "approve", "1", "--note", "looks right"]);
    place.await_state("done");
    let got = receiver.await_got(5);
    let told = types(&got);
    assert_eq!(told[..3], ["approval.opened", "approval.reminder", "approval.reminder"]);
    assert_eq!(
        told[3..].iter().map(String::as_str).collect::<BTreeSet<_>>(),
        BTreeSet::from(["approval.decided", "run.done"])
    );
    let decided = got.iter().map(Got::json).find(|said| said["type"] == "approval.decided").unwrap();
    assert_eq!(decided["data"]["sentence"], "ann answered ask 1 with approve: approve 1 step of \"Survive\"");
    assert_eq!(decided["data"]["ask"]["answer"]["note"], "looks right");
    assert!(got.iter().all(is_signed));
    let ids: BTreeSet<&str> = got.iter().map(|got| got.header("webhook-id")).collect();
    assert_eq!(ids.len(), 5, "each message has an id of its own");
    let list = place.json(&["notify", "deliveries", "--json"]);
    let states: Vec<&str> =
        list["deliveries"].as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["delivered"; 5]);
}

#[test]
fn m_35_an_ask_of_a_draft_is_told_without_its_prompt_and_so_is_who_decided() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let model =
        "[models.writer]\napi = \"messages\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m-1\"\nask = true\n";
    configure(&place, &format!("{WEBHOOK}{model}"));
    let _daemon = daemon(&place, &receiver);
    let goal = "Take the password out of src/login.sh";
    let said = place.planctl(&["plan", "draft", goal, "--model", "writer"]);
    assert_eq!(said.code, 3, "{said:?}");

    let opened = receiver.await_got(1)[0].json();
    let data = &opened["data"];
    let sentence = data["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("ask 1 waits for you: about ") && sentence.ends_with(" tokens to writer (m-1)")
    );
    assert_eq!(data["command"], "planctl approvals show 1");
    assert_eq!(
        (&data["run"], &data["lines"]),
        (&serde_json::Value::Null, &serde_json::json!([])),
        "no text of a prompt"
    );
    place.must(&["approvals", "approve", "1"]);
    let decided = receiver.await_got(2)[1].json();
    assert_eq!(decided["type"], "approval.decided");
    assert_eq!(decided["data"]["ask"]["answer"]["by"], "ann", "{decided}");
}

#[test]
fn a_failed_step_is_told_with_the_last_lines_of_its_contract() {
    let place = Place::new();
    let lines: String = (1..=14).map(|number| format!("echo line {number}; ")).collect();
    let text = format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Break\n\n**Budget:** 60 minutes\n\n## Steps\n\n\
         ### 1. Break it\n\n**target:** coder\n**task:**\nDo it.\n\n**contract:**\n```bash\n{lines}exit 3\n```\nexit_code == 0\n\
         **on_fail:** escalate\n"
    );
    std::fs::write(place.path("work/p.md"), text).unwrap();
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}on = [\"approval.opened\", \"run.cancelled\"]\n"));
    let _daemon = daemon(&place, &receiver);
    place.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", &place.exec()]);
    let data = receiver.await_ask("escalation").json()["data"].clone();
    let expected: Vec<String> = (5..=14).map(|number| format!("line {number}")).collect();
    assert_eq!(data["lines"], serde_json::json!(expected), "{data}");
    assert_eq!(data["step"]["title"], "Break it");
    let ask = data["ask"]["id"].to_string();
    place.must(&["approvals", "cancel", &ask]);
    wait_until("the end is told", || types(&receiver.got()).contains(&"run.cancelled".to_owned()));
    let told = types(&receiver.got());
    // The decision is not one of the channel's events.
    assert!(!told.contains(&"approval.decided".to_owned()), "{told:?}");
    let cancelled =
        receiver.got().iter().map(Got::json).find(|said| said["type"] == "run.cancelled").unwrap();
    // A run's name counts in its own workspace, and a message is read anywhere.
    let command = cancelled["data"]["command"].as_str().unwrap();
    assert!(command.starts_with("planctl -C /") && command.ends_with(" status p-1"), "{command}");
}

#[test]
fn an_ask_that_is_decided_before_a_channel_took_the_message_is_told_nobody_there() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, WEBHOOK);
    let daemon = daemon(&place, &receiver);
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    assert_eq!(place.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &place.exec()]).code, 3);
    // No daemon: the ask opens, and is answered, before anybody could be told.
    place.must(&["approvals", "reject", "1", "--note", "no"]);
    let _daemon = super::receiver::daemon(&place, &receiver);
    let got = receiver.await_got(1);
    assert_eq!(types(&got), ["run.cancelled"]);
    wait_until("nothing is announced", || {
        place.json(&["notify", "deliveries", "--json"])["deliveries"].as_array().unwrap().len() == 1
    });
}
