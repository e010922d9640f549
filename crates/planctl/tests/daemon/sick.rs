//! A run of which what is stored does not read: the daemon, the lists and the audit go on with all others.

use rustix::process::Signal;

use crate::support::{Place, wait_until};

#[test]
fn a_run_that_does_not_read_keeps_no_other_from_being_taken_up_listed_and_audited() {
    let place = Place::new();
    place.plan(1, "");
    let (other, exec) = (place.other("q.md"), place.exec());
    place.set("hold-work-1");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    // The lease that ends first is the sick run's.
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &exec]);
    place.await_note("work begin 1", 1);
    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    place.await_note("work begin 1", 2);
    daemon.kill().unwrap();
    let sicken = "update runs set head = '{}' where name = 'p-1'";
    place.must(&["db", "psql", "--owner", "--", "-c", sicken]);

    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.unset("hold-work-1");
    let state = |run: &str| place.json(&["plan", "status", run, "--json"])["state"].clone();
    wait_until("the other run is done", || state("q-1") == "done");
    let marked = || std::fs::read_to_string(place.path("other/q.md")).unwrap().contains("status: done");
    wait_until("the other run's marks", marked);

    let list = place.json(&["ls", "--all", "--json"]);
    assert_eq!((&list["runs"][0]["run"], &list["runs"][1]), (&"q-1".into(), &serde_json::Value::Null));
    assert_eq!(list["unread"][0]["run"], "p-1", "{list}");
    let said = place.must(&["plan", "status", "--all"]);
    assert!(said.out.contains("q-1"), "{said:?}");
    assert!(said.err.contains("p-1 can't be shown") && said.err.contains("planctl audit p-1"), "{said:?}");
    let one = place.planctl(&["audit", "p-1"]);
    assert!(one.out.contains("BROKEN") && one.out.contains("does not read"), "{one:?}");
    let audit = place.planctl(&["audit", "--json"]);
    let audit: serde_json::Value = serde_json::from_str(&audit.out).unwrap();
    let of = |run: &str| {
        let runs = audit["runs"].as_array().unwrap();
        runs.iter().find(|audited| audited["run"] == run).unwrap()["problems"].clone()
    };
    assert_eq!(of("q-1"), serde_json::json!([]));
    assert!(of("p-1")[0].as_str().unwrap().starts_with("I2: a run's head does not read"), "{audit}");

    let health = place.json(&["daemon", "status", "--json"])["health"].clone();
    assert_eq!((&health["state"], &health["is_alive"]), (&"running".into(), &true.into()), "{health}");
    assert!(health["last_error"]["what"].as_str().unwrap().contains("what is stored of run"), "{health}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}
