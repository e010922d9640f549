//! Traces of runs, as a collector gets them.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use super::collector::{Collector, Span, must_be_whole};
use crate::support::{Going, Place, wait_until};

/// A worker that notes which trace it was given, as a program of its own would continue it.
fn joining(place: &Place) -> String {
    let notes = place.path("parents");
    format!("echo \"work $TRACEPARENT\" >>{}; {}", notes.display(), place.exec())
}

/// The parents that workers and contracts were given.
fn parents(place: &Place) -> Vec<(String, String)> {
    let text = fs::read_to_string(place.path("parents")).unwrap_or_default();
    let read = |line: &str| {
        let parts: Vec<&str> = line.rsplit(' ').next().unwrap().split('-').collect();
        assert!(matches!(parts[..], ["00", _, _, "01"]), "{line}");
        (parts[1].to_owned(), parts[2].to_owned())
    };
    text.lines().map(read).collect()
}

/// Has contracts note which trace they were given, too.
fn let_contracts_note(place: &Place) {
    let check = fs::read_to_string(place.path("check.sh")).unwrap();
    let note = format!("echo \"gate $TRACEPARENT\" >>{}\n{check}", place.path("parents").display());
    fs::write(place.path("check.sh"), note).unwrap();
}

fn daemon(place: &Place, variables: &[(&str, &str)]) -> Going {
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    let mut daemon = place.start_with(&["daemon", "run"], &variables);
    daemon.hear("ready");
    daemon
}

fn run_id(place: &Place) -> String {
    place
        .must(&["db", "psql", "--owner", "--", "-Atc", "select replace(id::text, '-', '') from runs"])
        .out
        .trim()
        .to_owned()
}

fn of<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn a_trace_holds_the_run_its_steps_attempts_work_and_contracts_and_programs_join_it() {
    let (place, collector) = (Place::new(), Collector::new());
    place.plan(2, "");
    place.set("flaky-2");
    let_contracts_note(&place);
    let url = collector.url();
    let exporter = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=canary-of-the-collector"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=plans,service.version=7"),
        ("OTEL_SERVICE_NAME", "my-plans"),
    ];
    let daemon = daemon(&place, &exporter);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &joining(&place)]);
    let spans = collector.await_runs(1);

    must_be_whole(&spans);
    let run = of(&spans, "run p.md")[0];
    assert_eq!(run.trace, run_id(&place), "the trace is the run");
    assert!(spans.iter().all(|span| span.trace == run.trace && span.text("run.name") == "p-1"));
    assert_eq!((run.text("outcome"), run.parent.as_str(), run.has_failed), ("done", "", false));
    let second = of(&spans, "step 2")[0];
    assert_eq!((second.parent.as_str(), second.text("outcome")), (run.id.as_str(), "passed"));
    let attempts: Vec<&Span> =
        of(&spans, "attempt").into_iter().filter(|span| span.parent == second.id).collect();
    let verdicts: Vec<_> =
        attempts.iter().map(|span| (span.number("attempt"), span.text("verdict"))).collect();
    assert_eq!(verdicts, [(Some(1), "failed"), (Some(2), "passed")], "{attempts:#?}");
    assert!(attempts[0].has_failed && !attempts[1].has_failed);
    for (name, count) in [("work", 3), ("contract", 3), ("attempt", 3), ("ask", 1)] {
        assert_eq!(of(&spans, name).len(), count, "{name}: {spans:#?}");
    }
    let failed: Vec<&Span> = of(&spans, "contract").into_iter().filter(|span| span.has_failed).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].number("exit_code"), failed[0].number("step")), (Some(1), Some(2)));
    assert!(!failed[0].text("item.id").is_empty());
    assert_eq!(of(&spans, "ask")[0].text("answer"), "approve");

    // Programs that work at a try are given that try's span.
    let parents = parents(&place);
    assert_eq!(parents.len(), 6, "{parents:?}");
    for (trace, parent) in parents {
        assert!(
            of(&spans, "attempt").iter().any(|span| span.trace == trace && span.id == parent),
            "{parent}"
        );
    }
    assert_eq!(collector.resource()["service.name"], "my-plans");
    assert_eq!(collector.resource()["team"], "plans");
    assert_eq!(collector.resource()["service.version"], "7");
    assert_eq!(collector.header("x-key").as_deref(), Some("canary-of-the-collector"));
    assert!(!daemon.heard().contains("canary-of-the-collector"));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}

#[test]
fn the_try_after_a_persons_retry_has_its_own_number() {
    let (place, collector) = (Place::new(), Collector::new());
    place.plan(2, "");
    let file = place.path("work/p.md");
    let text = fs::read_to_string(&file).unwrap().replace("retry(1), then abort", "escalate");
    fs::write(&file, text).unwrap();
    place.set("flaky-2");
    let url = collector.url();
    let _daemon = daemon(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())]);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &place.exec()]);
    let kind = || place.json(&["approvals", "--json"])["asks"][0]["kind"].clone();
    wait_until("the step waits for a person", || kind() == "escalation");
    place.must(&["approvals", "retry", "--note", "once more"]);
    let spans = collector.await_runs(1);

    must_be_whole(&spans);
    let second = of(&spans, "step 2")[0];
    let numbers = |name: &str| {
        let of_step = of(&spans, name).into_iter().filter(|span| span.number("step") == Some(2));
        of_step.map(|span| span.number("attempt")).collect::<Vec<_>>()
    };
    assert_eq!(numbers("work"), [Some(1), Some(2)], "{spans:#?}");
    let attempts: Vec<_> =
        of(&spans, "attempt").into_iter().filter(|span| span.parent == second.id).collect();
    let verdicts: Vec<_> =
        attempts.iter().map(|span| (span.number("attempt"), span.text("verdict"))).collect();
    assert_eq!(verdicts, [(Some(1), "failed"), (Some(2), "passed")], "{attempts:#?}");
}

#[test]
fn p10_a_killed_daemon_breaks_no_trace() {
    let (place, collector) = (Place::new(), Collector::new());
    place.plan(2, "");
    place.set("hold-work-1");
    let_contracts_note(&place);
    let url = collector.url();
    let exporter =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")];
    let first = daemon(&place, &exporter);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &joining(&place)]);
    place.await_note("work begin 1", 1);
    first.kill().unwrap();
    let next = daemon(&place, &exporter);
    place.await_note("work begin 1", 2);
    place.unset("hold-work-1");
    // Killed between the end of the first step and whatever else, at a place of its own each time.
    place.await_note("gate end 1", 1);
    next.kill().unwrap();
    let last = daemon(&place, &exporter);
    let spans = collector.await_runs(1);

    // Spans that were sent and not noted are sent again, each as the same span.
    let mut once: Vec<Span> = Vec::new();
    for span in &spans {
        match once.iter().find(|known| known.id == span.id) {
            Some(known) => assert_eq!(known, span, "made anew, it is the same"),
            None => once.push(span.clone()),
        }
    }
    must_be_whole(&once);
    assert_eq!(of(&once, "run p.md")[0].trace, run_id(&place));
    let is_lost = |span: &&Span| span.has_failed && span.number("step") == Some(1);
    let lost: Vec<&Span> = of(&once, "work").into_iter().filter(is_lost).collect();
    assert_eq!(lost.len(), 1, "the work that was killed shows as such: {once:#?}");
    for (trace, parent) in parents(&place) {
        assert!(once.iter().any(|span| span.trace == trace && span.id == parent), "{parent}: {once:#?}");
    }
    last.signal(Signal::TERM);
    assert_eq!(last.end().code, 0);
}

#[test]
fn a_collector_that_is_away_holds_up_nothing_and_gets_everything_later() {
    let place = Place::new();
    place.plan(3, "");
    // A port that nobody listens on.
    let port = Collector::new().port + 1;
    let url = format!("http://127.0.0.1:{port}");
    let daemon = daemon(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())]);
    for _ in 0..2 {
        place.must(&["plan", "run", "p.md", "--again", "--approve", "-d", "--exec", &place.exec()]);
        place.await_state("done");
    }
    wait_until("a word about the collector", || daemon.heard().contains("takes no traces"));
    let collector = Collector::at(&format!("127.0.0.1:{port}"));
    collector.answer(&["503 Service Unavailable"]);
    let spans = collector.await_runs(2);
    must_be_whole(&spans);
    assert_eq!(of(&spans, "step 3").len(), 2);
    assert_eq!(daemon.heard().matches("takes no traces").count(), 1, "it says so once: {}", daemon.heard());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}

#[test]
fn a_collector_that_refuses_spans_for_good_is_not_asked_for_ever() {
    let (place, collector) = (Place::new(), Collector::new());
    place.plan(1, "");
    collector.answer(&["400 Bad Request"]);
    let url = collector.url();
    let daemon = daemon(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())]);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &place.exec()]);
    wait_until("the refusal", || daemon.heard().contains("refuses spans"));
    // The refused spans are gone, perhaps all of the first run's.
    place.must(&["plan", "run", "p.md", "--again", "--approve", "-d", "--exec", &place.exec()]);
    collector.await_runs(1);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}

#[test]
fn a40_no_secret_is_in_a_span_and_a_command_without_a_daemon_sends_its_run() {
    let (place, collector) = (Place::new(), Collector::new());
    let config = format!(
        "[postgres]\nstop_after = \"0s\"\n[traces]\nendpoint = \"{}\"\nprotocol = \"http/json\"\nservice = \"by-file\"\n\
         [contracts.env]\nCANARY = \"canary-of-a-contract\"\n",
        collector.url()
    );
    fs::write(place.path("home/.config/planctl/planctl.toml"), config).unwrap();
    place.plan(1, "");
    let text = fs::read_to_string(place.path("work/p.md")).unwrap();
    let text = text
        .replace("Do it.", "Do it with canary-of-the-task.")
        .replace("### 1. Step 1", "### 1. Step ghp_c4n4ryc4n4ryc4n4ryc4n4ryc4n4ryc4n4ry");
    fs::write(place.path("work/p.md"), text).unwrap();
    let worker = format!("echo canary-of-the-worker; {}", place.exec());
    let said = place.must(&["plan", "run", "p.md", "--approve", "--exec", &worker]);
    let spans = collector.spans();
    must_be_whole(&spans);
    assert_eq!(of(&spans, "run p.md").len(), 1, "it is sent before the command is over: {said:?}");
    assert_eq!(collector.resource()["service.name"], "by-file");
    for secret in ["canary", "c4n4ry", "planctl_item_"] {
        assert!(!collector.saw(secret), "{secret}: {spans:#?}");
    }
}

#[test]
fn a_call_that_belongs_to_a_trace_is_a_span_of_it() {
    let (place, collector) = (Place::new(), Collector::new());
    let url = collector.url();
    let daemon = daemon(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    // planctl itself hands on the trace that it was started in.
    let words: &[&str] = &["ls", "--json"];
    let said = place.start_with(words, &[("TRACEPARENT", parent.as_ref())]).end();
    assert_eq!(said.code, 0, "{said:?}");
    place.must(words);
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--unix-socket"]).arg(place.path("state/daemon.sock"));
    curl.args(["--header", "traceparent: 00-not-a-parent-01", "http://localhost/v1/runs"]);
    assert!(curl.output().unwrap().status.success());
    wait_until("the call", || !collector.spans().is_empty());
    let spans = collector.named("GET /v1/runs");
    assert_eq!(spans.len(), 1, "{:#?}", collector.spans());
    assert_eq!(spans[0].trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(spans[0].parent, "b7ad6b7169203331");
    assert_eq!(spans[0].number("http.response.status_code"), Some(200));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}

#[test]
fn logs_in_json_have_the_ids_of_what_they_are_about_as_fields() {
    let place = Place::new();
    place.plan(1, "");
    let variables = [("PLANCTL_PLANTED_DEFECT", "p-1".as_ref())];
    let mut daemon = place.start_with(&["daemon", "run", "--log-format", "json"], &variables);
    daemon.hear("ready");
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &place.exec()]);
    daemon.hear("a defect of planctl");
    let heard = daemon.heard();
    let lines: Vec<serde_json::Value> =
        heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_it = |line: &&serde_json::Value| {
        line["fields"]["message"].as_str().is_some_and(|said| said.starts_with("a defect"))
    };
    let ids = &lines.iter().find(is_it).unwrap()["span"];
    assert_eq!((&ids["run.name"], &ids["attempt"]), (&"p-1".into(), &1.into()), "{ids}");
    assert_eq!(ids["run.id"].as_str().unwrap().replace('-', ""), run_id(&place));
    assert!(
        !ids["item.id"].as_str().unwrap().is_empty() && !ids["node.id"].as_str().unwrap().is_empty(),
        "{ids}"
    );
}
