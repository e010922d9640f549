//! The metrics of a daemon: each that is documented is there, and dashboard and alert rules name no other.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::receiver::{Receiver, WEBHOOK, configure, daemon};
use crate::support::{Place, wait_until};

fn get(place: &Place, path: &str) -> String {
    let status = place.json(&["daemon", "status", "--json"]);
    let mut stream = UnixStream::connect(status["daemon"]["socket"].as_str().unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn scrape(place: &Place) -> String {
    let text = get(place, "/metrics");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

/// Returns the value of the series that begins so.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Returns the metrics that a text has types of.
fn described(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
        .collect()
}

/// Returns the names of planctl's metrics in a text, without what a histogram adds to its name.
fn named(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_name(c))
        .filter(|word| word.starts_with("planctl_"))
        .map(|word| {
            let ends = ["_bucket", "_sum", "_count"];
            ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned()
        })
        .collect()
}

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_metric_is_counted_and_dashboard_and_alerts_name_no_other() {
    let place = Place::new();
    place.plan(2, "");
    place.set("flaky-1");
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}\n[budget]\nhost_per_day = \"1M tokens\"\n"));
    let _daemon = daemon(&place, &receiver);
    let usage = r#"{"planctl":"result/1","text":"done","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7,"cost_usd":0.5,"model":"m"}}"#;
    let exec = format!("{}; echo '{usage}'", place.exec());
    assert_eq!(place.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &exec]).code, 3);
    receiver.await_got(1);
    place.must(&["worker", "run", "--role", "reviewer", "--exec", "true", "--drain"]);
    assert!(get(&place, "/v1/plans/999").starts_with("HTTP/1.1 404"));
    let before = scrape(&place);
    assert_eq!(value(&before, "planctl_approvals_open{kind=\"plan\"}"), Some(1.0), "{before}");
    assert_eq!(value(&before, "planctl_budget_remaining_ratio{run=\"p-1\"}"), Some(1.0), "{before}");
    let of_day = "planctl_day_budget_remaining_ratio{of=\"host\",workspace=\"\"}";
    assert_eq!(value(&before, of_day), Some(1.0), "{before}");
    let limit = "planctl_day_budget_limit{of=\"host\",workspace=\"\",part=\"tokens\"}";
    assert_eq!(value(&before, limit), Some(1e6), "{before}");
    place.must(&["approvals", "approve", "1"]);
    place.await_state("done");
    wait_until("the end is told", || {
        value(&scrape(&place), "planctl_notifications_total{channel=\"team\",result=\"delivered\"}")
            == Some(3.0)
    });
    let text = scrape(&place);
    for (series, expected) in [
        ("planctl_gates_total{verdict=\"passed\"}", 2.0),
        ("planctl_gates_total{verdict=\"failed\"}", 1.0),
        ("planctl_contract_duration_seconds_count{verdict=\"passed\"}", 2.0),
        ("planctl_retries_total{reason=\"failed\"}", 1.0),
        ("planctl_attempt_duration_seconds_count{agent=\"exec\",outcome=\"reported\"}", 3.0),
        ("planctl_item_wait_seconds_count{role=\"coder\"}", 3.0),
        ("planctl_tokens_total{type=\"input\",model=\"m\",metering=\"reported\"}", 180.0),
        ("planctl_tokens_total{type=\"cached\",model=\"m\",metering=\"reported\"}", 120.0),
        ("planctl_cost_usd_total{model=\"m\",metering=\"reported\"}", 1.5),
        ("planctl_workers{role=\"reviewer\",state=\"idle\"}", 1.0),
        ("planctl_approval_wait_seconds_count", 1.0),
        ("planctl_approval_wait_seconds_bucket{le=\"+Inf\"}", 1.0),
        ("planctl_db_up", 1.0),
        ("planctl_up", 1.0),
        ("planctl_build_info{version=", 1.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}: {text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");

    // A metric without a series is not described: some are there only before the run's end.
    let there: BTreeSet<String> = described(&before).union(&described(&text)).cloned().collect();
    let table = named(&docs("operations.md"));
    assert_eq!(table, there, "the table of docs/operations.md");
    let dashboard: Value = serde_json::from_str(&docs("monitoring/dashboard.json")).unwrap();
    let expressions: Vec<&str> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(expressions.len() >= 16);
    let on_dashboard = named(&expressions.join("\n"));
    assert!(on_dashboard.is_subset(&there), "{:?}", on_dashboard.difference(&there));
    let rules: Value = serde_saphyr::from_str(&docs("monitoring/alerts.yml")).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 9);
    for rule in rules {
        let found = named(rule["expr"].as_str().unwrap());
        assert!(!found.is_empty() && found.is_subset(&there), "{rule}");
        assert!(rule["alert"].is_string() && rule["annotations"]["summary"].is_string(), "{rule}");
    }
}

#[test]
fn items_that_are_out_and_leases_that_run_out_are_counted() {
    let place = Place::new();
    place.plan(1, "");
    let _daemon = daemon(&place, &Receiver::new());
    let roles: Vec<String> = (0..60).map(|number| format!("role-{number}")).collect();
    let serves = roles.iter().flat_map(|role| ["--role", role.as_str()]);
    let worker: Vec<&str> =
        ["worker", "run", "--exec", "true", "--drain"].into_iter().chain(serves).collect();
    place.must(&worker);
    assert_eq!(value(&scrape(&place), "planctl_workers{role=\"other\",state=\"idle\"}"), Some(10.0));
    let out = |state: &str| {
        value(&scrape(&place), &format!("planctl_items{{state=\"{state}\",role=\"coder\"}}")).unwrap_or(0.0)
    };
    place.planctl(&["plan", "run", "p.md", "--approve", "--detach"]);
    wait_until("the work is queued", || out("queued") == 1.0);
    assert_eq!(value(&scrape(&place), "planctl_leases_expired_total"), Some(0.0));
    // Nobody renews this lease.
    place.must(&["item", "claim", "--role", "coder", "--lease", "5s", "--shell"]);
    assert_eq!((out("queued"), out("working")), (0.0, 1.0));
    wait_until("the lease has run out", || {
        value(&scrape(&place), "planctl_leases_expired_total") == Some(1.0)
    });
    wait_until("the work is queued once more", || out("queued") == 1.0);
}
