//! Hours in which a channel is quiet, links to the page, and work for which nobody is there.

use serde_json::Value;

use super::receiver::{Got, Receiver, WEBHOOK, configure, daemon, sql};
use crate::support::{Place, wait_until};

fn asked(place: &Place, statement: &str) -> String {
    place.must(&["db", "psql", "--owner", "--", "-qAtc", statement]).out.trim().to_owned()
}

/// Hours of Tokyo, from so many hours before now to so many after it.
fn hours(place: &Place, before: i32, after: i32) -> String {
    let at = |hours: i32| {
        format!("to_char(clock_timestamp() at time zone 'Asia/Tokyo' + interval '{hours} hours', 'HH24:MI')")
    };
    asked(place, &format!("select {} || '-' || {}", at(-before), at(after)))
}

/// Asks for a page; returns the status and where it leads.
fn got(address: &str) -> String {
    let said = std::process::Command::new("curl")
        .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}", address])
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap()
}

fn types(receiver: &Receiver) -> Vec<String> {
    receiver.got().iter().map(|got| got.json()["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_told_in_quiet_hours_comes_afterwards_as_one_and_what_is_urgent_at_once() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let quiet = format!(
        "quiet = \"{}\"\nquiet_zone = \"Asia/Tokyo\"\nurgent = [\"run.cancelled\"]\n",
        hours(&place, 1, 2)
    );
    configure(&place, &format!("{WEBHOOK}{quiet}page = \"https://plans.example.org/\"\n"));
    let _daemon = daemon(&place, &receiver);
    for _ in 0..2 {
        assert_eq!(
            place.planctl(&["plan", "run", "p.md", "--again", "--no-wait", "--exec", &place.exec()]).code,
            3
        );
        place.must(&["plan", "cancel", "@last"]);
    }
    assert_eq!(
        place.planctl(&["plan", "run", "p.md", "--again", "--no-wait", "--exec", &place.exec()]).code,
        3
    );
    std::fs::copy(place.path("work/p.md"), place.path("work/q.md")).unwrap();
    assert_eq!(place.planctl(&["plan", "run", "q.md", "--no-wait", "--exec", &place.exec()]).code, 3);

    wait_until("the urgent ones", || types(&receiver).len() == 2);
    wait_until("the held ones", || {
        asked(&place, "select count(*) from deliveries where held and state = 'waiting'") == "2"
    });
    assert_eq!(types(&receiver), ["run.cancelled"; 2]);
    // The two may come in either order.
    let links = receiver.got().iter().map(|got| got.json()["data"]["link"].to_string()).collect::<Vec<_>>();
    assert!(links.contains(&"\"https://plans.example.org/runs/p-1\"".to_owned()), "{links:?}");
    let due = "select 1/(bool_and(due_at between clock_timestamp() + interval '118 minutes' and clock_timestamp() \
               + interval '121 minutes'))::int from deliveries where held and state = 'waiting'";
    sql(&place, due);
    let listed = place.json(&["notify", "deliveries", "--json"]);
    let waits = |row: &&Value| row["state"] == "waiting";
    assert_eq!(listed["deliveries"].as_array().unwrap().iter().filter(waits).count(), 2, "{listed}");

    // The hours end.
    sql(&place, "update deliveries set due_at = clock_timestamp() where held and state = 'waiting'");
    let got = receiver.await_got(3);
    let digest = got[2].json();
    assert_eq!(digest["type"], "digest", "{digest}");
    assert_eq!(digest["data"]["sentence"], "2 messages waited for the end of the quiet hours");
    let lines: Vec<&str> =
        digest["data"]["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(lines.iter().all(|line| line.contains("waits for you")), "{lines:?}");
    wait_until("all are delivered", || {
        asked(&place, "select count(*) from deliveries where state = 'waiting'") == "0"
    });
    assert_eq!(receiver.got().len(), 3, "the two came as one");
}

#[test]
fn outside_quiet_hours_a_message_comes_at_once_and_a_zone_that_is_none_is_said() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let quiet = format!("quiet = \"{}\"\nquiet_zone = \"Asia/Tokyo\"\n", hours(&place, -2, 4));
    configure(&place, &format!("{WEBHOOK}{quiet}page = \"https://plans.example.org\"\n"));
    let _daemon = daemon(&place, &receiver);
    assert_eq!(place.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &place.exec()]).code, 3);
    let opened: Got = receiver.await_got(1)[0].clone();
    assert_eq!(opened.json()["type"], "approval.opened");
    assert_eq!(opened.json()["data"]["link"], "https://plans.example.org/a/1");
    // The short form leads to the ask, which a browser without a session is not shown.
    let page = place.must(&["open", "--print"]).out;
    let page = page.trim().split("/open/").next().unwrap();
    assert_eq!(got(&format!("{page}/a/1")), format!("303 {page}/asks/1"));
    assert_eq!(got(&format!("{page}/asks/1")), "401 ");
    assert_eq!(got(&format!("{page}/a/nothing")), "401 ");
    configure(&place, &format!("{WEBHOOK}quiet = \"22:00-06:00\"\nquiet_zone = \"Europe/Atlantis\"\n"));
    let listed = place.json(&["notify", "ls", "--json"]);
    assert_eq!(
        listed["channels"][0]["trouble"],
        "there is no time zone Europe/Atlantis, so it is never quiet"
    );
    let mail = "to = \"smtp\"\nfrom = \"a@example.org\"\nrecipients = [\"b@example.org\"]";
    configure(
        &place,
        &format!(
            "[notify.number]\nto = \"webhook\"\nurl = \"https://10.0.0.1/\"\n\
             [notify.open]\nto = \"webhook\"\nurl = \"http://example.org/\"\n\
             [notify.post]\n{mail}\nserver = \"example.org\"\ntls = \"none\"\n"
        ),
    );
    let listed = place.json(&["notify", "ls", "--json"]);
    for (at, trouble) in ["10.0.0.1, which is not public", "must begin with https://", "needs allow_private"]
        .into_iter()
        .enumerate()
    {
        let told = listed["channels"][at]["trouble"].as_str().unwrap_or_default();
        assert!(told.contains(trouble), "what every delivery would meet is told: {listed}");
    }
}

#[test]
fn work_for_which_no_worker_is_there_is_told_once() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}on = [\"worker.none_for_role\"]\n"));
    let _daemon = daemon(&place, &receiver);
    place.must(&["worker", "run", "--role", "coder", "--exec", "true", "--drain"]);
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    let waited =
        "update items set available_at = clock_timestamp() - interval '2 minutes' where lane = 'agent'";
    sql(&place, waited);
    // The one that was here a moment ago counts for a minute.
    sql(&place, "update workers set last_seen_at = clock_timestamp() - interval '2 minutes'");
    let told = receiver.await_got(1)[0].json();
    assert_eq!(told["type"], "worker.none_for_role");
    assert_eq!(told["data"]["sentence"], "p-1: work for the role coder waits, and no worker serves it");
    assert_eq!(told["data"]["command"], "planctl worker run --role coder --agent NAME");
    place.must(&["worker", "run", "--role", "coder", "--exec", &place.exec(), "--drain"]);
    place.await_state("done");
    assert_eq!(receiver.got().len(), 1, "it was told once");
}

#[test]
fn work_whose_only_worker_is_paused_is_told_with_the_command_that_resumes_it() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}on = [\"worker.none_for_role\"]\n"));
    let _daemon = daemon(&place, &receiver);
    place.must(&["worker", "run", "--role", "coder", "--exec", "true", "--drain", "--name", "mole"]);
    place.must(&["worker", "pause", "mole"]);
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    sql(
        &place,
        "update items set available_at = clock_timestamp() - interval '2 minutes' where lane = 'agent'",
    );
    let told = receiver.await_got(1)[0].json();
    assert_eq!(told["data"]["sentence"], "p-1: work for the role coder waits, and its worker mole is paused");
    assert_eq!(told["data"]["command"], "planctl worker resume mole");
}
