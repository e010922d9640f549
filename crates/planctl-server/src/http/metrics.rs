//! `/metrics`: what this process counted, and the state of the database at this moment, in the OpenMetrics format.
//!
//! While the database is away the answer has what the process knows, and `planctl_db_up 0`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header;
use axum::response::IntoResponse;
use planctl_api::wire::daemon::{DaemonHealthView, DaemonState};
use planctl_api::{Code, Problem};
use planctl_engine::{DayScope, Head, Role};
use planctl_store::{AskWaits, DayRow, ItemGroup, Page, Store, StoreError, WorkerRow};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Answer, Call};
use crate::mutex::lock;
use crate::node::metrics::Labels;
use crate::runs::worked_on::ONLINE;

/// How long the database may take; a scrape that gets no answer says that it is away.
const DATABASE_WITHIN: Duration = Duration::from_secs(3);
/// How many open runs have a series of their own.
const RUNS_MAX: i64 = 200;
/// How many roles of workers have a series of their own: a worker says which it serves.
const ROLES_MAX: usize = 50;

/// Counters of the API.
#[derive(Default)]
pub(super) struct Requests {
    refused: Mutex<BTreeMap<String, u64>>,
    requests: AtomicU64,
}

impl Requests {
    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refusal(&self, problem: &Problem) {
        let mut refused = lock(&self.refused);
        *refused.entry(problem.kind.to_string()).or_default() += 1;
    }
}

pub(super) async fn metrics(call: Call) -> Answer {
    let health = call.api.options().health.view();
    let server_node = call.server_node();
    let stored = match health.database_away_since {
        None => tokio::time::timeout(DATABASE_WITHIN, Stored::read(&server_node.store, server_node.host()))
            .await
            .ok()
            .and_then(Result::ok),
        Some(_) => None,
    };
    let mut registry = Registry::with_prefix("planctl");
    of_process(&mut registry, &health, call.api.requests());
    let called = Counter::<u64>::default();
    called.inc_by(server_node.store.database_calls());
    registry.register("db_calls", "Statements and transactions that were sent to the database", called);
    gauge(&mut registry, "db_up", "Whether the database answers", i64::from(stored.is_some()));
    if let Some(stored) = stored {
        stored.register(&mut registry);
    }
    let mut text = String::new();
    encode_registries(&mut text, &[server_node.metrics().registry(), &registry])
        .map_err(|error| Problem::new(Code::Defect, error.to_string()))?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}

fn encode_registries(text: &mut String, registries: &[&Registry]) -> fmt::Result {
    for registry in registries {
        encode_registry(text, registry)?;
    }
    encode_eof(text)
}

fn of_process(registry: &mut Registry, health: &DaemonHealthView, requests: &Requests) {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    register_gauges(registry, "build_info", "The version of planctl", [(version, 1)]);
    let is_up = health.state == DaemonState::Running;
    gauge(registry, "up", "Whether the daemon is neither degraded nor stopping", i64::from(is_up));
    let asked = Counter::<u64>::default();
    asked.inc_by(requests.requests.load(Ordering::Relaxed));
    registry.register("requests", "Requests that came to the API", asked);
    let expired = Counter::<u64>::default();
    expired.inc_by(health.leases_expired);
    registry.register("leases_expired", "Leases ended because their holders were gone or late", expired);
    let refused = Family::<Labels, Counter>::default();
    for (kind, count) in &*lock(&requests.refused) {
        refused.get_or_create(&vec![("problem", kind.clone())]).inc_by(*count);
    }
    registry.register("refusals", "Requests that were refused, by problem", refused);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn register_gauges(
    registry: &mut Registry,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, i64)>,
) {
    let gauges = Family::<Labels, Gauge>::default();
    for (labels, value) in series {
        gauges.get_or_create(&labels).inc_by(value);
    }
    registry.register(name, help, gauges);
}

/// The state of the database at one scrape.
struct Stored {
    items: Vec<ItemGroup>,
    waits: AskWaits,
    workers: Vec<WorkerRow>,
    runs: Vec<(String, Head)>,
    days: Vec<(i64, DayRow)>,
    online: u64,
}

impl Stored {
    async fn read(store: &Store, host: &str) -> Result<Stored, StoreError> {
        let runs = store.open_runs(host, RUNS_MAX).await?;
        Ok(Stored {
            items: store.item_groups().await?,
            waits: store.ask_waits().await?,
            workers: store.workers(&Page::ALL).await?,
            runs: runs.into_iter().flatten().map(|run| (run.name, run.head)).collect(),
            days: store.open_days(host, RUNS_MAX).await?,
            online: store.count_workers_seen(ONLINE).await?,
        })
    }

    fn register(self, registry: &mut Registry) {
        let labels = |state: &str, role: &str| vec![("state", state.to_owned()), ("role", role.to_owned())];
        let items = self.items.iter().map(|group| (labels(state_of(group), role_of(group)), group.count));
        register_gauges(registry, "items", "Items that are out, by what they wait for", items);
        let asks = self.items.iter().filter(|group| group.lane == "human");
        let asks = asks.map(|group| (vec![("kind", group.target.clone())], group.count));
        register_gauges(registry, "approvals_open", "Asks that wait for a person", asks);
        register_gauges(registry, "workers", "Workers that were seen, by role", self.workers());
        let online = i64::try_from(self.online).unwrap_or(i64::MAX);
        gauge(registry, "workers_online", "Workers seen within a minute", online);
        let left = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (name, head) in &self.runs {
            if let Some(ratio) = budget_left(head) {
                left.get_or_create(&vec![("run", name.clone())]).set(ratio);
            }
        }
        let help = "The part of the budget that is left, of the scarcest of its parts";
        registry.register("budget_remaining_ratio", help, left);
        register_days(registry, &self.days);
        registry.register_collector(Box::new(Waits(self.waits)));
    }

    fn workers(&self) -> Vec<(Labels, i64)> {
        let mut series = Vec::new();
        let mut roles = BTreeSet::new();
        for worker in &self.workers {
            let state = match (worker.is_paused, worker.holds.is_empty()) {
                (true, _) => "paused",
                (false, true) => "idle",
                (false, false) => "working",
            };
            for role in worker.roles.iter().map(Role::as_str) {
                if roles.len() < ROLES_MAX {
                    roles.insert(role);
                }
                let role = if roles.contains(role) { role } else { "other" };
                let labels = vec![("role", role.to_owned()), ("state", state.to_owned())];
                series.push((labels, 1));
            }
        }
        series
    }
}

/// Registers what is used, allowed and left of each budget of the day, and when the next day begins.
fn register_days(registry: &mut Registry, days: &[(i64, DayRow)]) {
    type Numbers = Family<Labels, Gauge<f64, AtomicU64>>;
    let [left, used, limit, renews] = [(); 4].map(|()| Numbers::default());
    for (workspace, day) in days {
        let labels = match day.day.of {
            DayScope::Project => vec![("of", "project".to_owned()), ("workspace", workspace.to_string())],
            DayScope::Host => vec![("of", "host".to_owned()), ("workspace", String::new())],
        };
        if let Some(ratio) = day.left() {
            left.get_or_create(&labels).set(ratio);
        }
        let parts = [
            ("tokens", day.limit.tokens.map(|limit| (day.tokens as f64, limit as f64))),
            ("usd", day.limit.micro_usd.map(|limit| (day.micro_usd as f64 / 1e6, limit as f64 / 1e6))),
        ];
        for (part, amounts) in parts {
            let Some((has_used, may_use)) = amounts else { continue };
            let labels: Labels = labels.iter().cloned().chain([("part", part.to_owned())]).collect();
            used.get_or_create(&labels).set(has_used);
            limit.get_or_create(&labels).set(may_use);
        }
        renews.get_or_create(&labels).set(day.day.until.as_micros() as f64 / 1e6);
    }
    registry.register("day_budget_remaining_ratio", "The part of the day's budget that is left", left);
    registry.register("day_budget_used", "What was used today of the day's budget", used);
    registry.register("day_budget_limit", "The day's budget, with what people added", limit);
    registry.register("day_budget_renews_timestamp_seconds", "When the next day begins", renews);
}

fn state_of(group: &ItemGroup) -> &'static str {
    match (group.lane.as_str(), group.state.as_str()) {
        (_, "withdrawn") => "withdrawn",
        ("agent", "ready") => "queued",
        ("agent", _) => "working",
        ("harness", _) => "gates",
        _ => "asks",
    }
}

fn role_of(group: &ItemGroup) -> &str {
    if group.lane == "agent" { &group.target } else { "" }
}

/// Returns the least part of the budget that is left; `None` where nothing is limited.
fn budget_left(head: &Head) -> Option<f64> {
    let left = |limit: Option<f64>, spent: f64| limit.map(|limit| ((limit - spent) / limit).max(0.0));
    let parts = [
        left(head.budget.tokens.map(|tokens| tokens as f64), head.spent.tokens as f64),
        left(head.budget.micro_usd.map(|usd| usd as f64), head.spent.micro_usd as f64),
        left(head.budget.time.map(|time| time.as_secs_f64()), head.spent.time.as_secs_f64()),
    ];
    parts.into_iter().flatten().filter(|ratio| ratio.is_finite()).min_by(f64::total_cmp)
}

/// How long asks waited, as a histogram.
#[derive(Debug)]
struct Waits(AskWaits);

impl Collector for Waits {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Seconds from when an ask was opened to its answer";
        let mut metric =
            encoder.encode_descriptor("approval_wait_seconds", help, None, MetricType::Histogram)?;
        let Waits(waits) = self;
        let mut buckets: Vec<(f64, u64)> = waits.within.to_vec();
        let counted: u64 = buckets.iter().map(|(_, count)| count).sum();
        buckets.push((f64::INFINITY, waits.count.saturating_sub(counted)));
        metric.encode_histogram::<NoLabelSet>(waits.seconds, waits.count, &buckets, None)
    }
}
