//! Counters and histograms of this process, for `/metrics`. A transition pays a few additions for them.
//!
//! The values of labels are few: names of models, which workers say, are cut and bounded in number.

use std::collections::BTreeSet;
use std::sync::Mutex;

use planctl_engine::{AgentSaid, Event, Fact, HarnessResult, Item, Usage, Verdict, Work};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::clock;
use crate::mutex::lock;

/// The bounds of waits, of attempts and of contracts, in seconds: from a moment to a day.
const SECONDS: [f64; 14] =
    [0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14_400.0, 43_200.0, 86_400.0];

/// How many models have series of their own; further ones are counted together.
const MODELS_MAX: usize = 50;
const MODEL_CHARACTERS_MAX: usize = 64;

/// The labels of one series.
pub(crate) type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The counters and histograms of a process.
pub(crate) struct Metrics {
    registry: Registry,
    item_wait: Histograms,
    attempt_duration: Histograms,
    contract_duration: Histograms,
    gates: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    tokens: Family<Labels, Counter>,
    cost: Family<Labels, Counter<f64, std::sync::atomic::AtomicU64>>,
    notifications: Family<Labels, Counter>,
    models: Mutex<BTreeSet<String>>,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Metrics {
    fn default() -> Metrics {
        let histograms = || Family::new_with_constructor(seconds as fn() -> Histogram);
        let mut metrics = Metrics {
            registry: Registry::with_prefix("planctl"),
            item_wait: histograms(),
            attempt_duration: histograms(),
            contract_duration: histograms(),
            gates: Family::default(),
            retries: Family::default(),
            tokens: Family::default(),
            cost: Family::default(),
            notifications: Family::default(),
            models: Mutex::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        let wait = "Seconds from when an item was due to its claim";
        registry.register("item_wait_seconds", wait, self.item_wait.clone());
        let attempt = "Seconds that an agent worked on one attempt";
        registry.register("attempt_duration_seconds", attempt, self.attempt_duration.clone());
        let contract = "Seconds that a contract ran, by its verdict";
        registry.register("contract_duration_seconds", contract, self.contract_duration.clone());
        registry.register("gates", "Verdicts of contracts", self.gates.clone());
        registry.register("retries", "Further attempts, by why", self.retries.clone());
        registry.register("tokens", "Tokens that workers reported and judges used", self.tokens.clone());
        registry.register(
            "cost_usd",
            "US dollars that workers and judges reported or prices give",
            self.cost.clone(),
        );
        let notifications = "Tries to deliver a message, by channel";
        registry.register("notifications", notifications, self.notifications.clone());
    }

    /// The registry that `/metrics` writes.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Notes that an item was claimed. The two clocks, of this machine and of the database, are not exactly one.
    pub(crate) fn count_claim(&self, item: &Item) {
        let role = match &item.work {
            Work::Agent { role, .. } => role.as_str(),
            Work::Harness { .. } | Work::Human { .. } => "",
        };
        let waited = clock::now().as_micros().saturating_sub(item.available_at.as_micros()).max(0);
        self.item_wait.get_or_create(&vec![("role", role.to_owned())]).observe(waited as f64 / 1e6);
    }

    /// Notes that a try to deliver a message ended.
    pub(crate) fn count_delivery(&self, channel: &str, result: &str) {
        let labels = vec![("channel", channel.to_owned()), ("result", result.to_owned())];
        self.notifications.get_or_create(&labels).inc();
    }

    /// Notes what a transition says that was written: `agent` is whose attempt it is about.
    pub(crate) fn count_event(&self, agent: &str, event: &Event, facts: &[Fact]) {
        let mut reason = "interrupted";
        match event {
            Event::Agent(event) => reason = self.count_work(agent, &event.said),
            Event::Harness(event) => {
                if let Some(usage) = event.found.judge_usage() {
                    self.count_usage(usage);
                }
                let verdict = facts.iter().find_map(verdict_of);
                if let (HarnessResult::Evidence(evidence), Some(verdict)) = (&event.found, verdict) {
                    let labels = vec![("verdict", verdict.as_str().to_owned())];
                    self.gates.get_or_create(&labels).inc();
                    self.contract_duration.get_or_create(&labels).observe(evidence.duration.as_secs_f64());
                    reason = verdict.as_str();
                }
            }
            Event::Human(_) => reason = "person",
            Event::Clock(_) => {}
        }
        let retries = facts.iter().filter(|fact| matches!(fact, Fact::RetryTriggered { .. })).count();
        if retries > 0 {
            let labels = vec![("reason", reason.to_owned())];
            self.retries.get_or_create(&labels).inc_by(u64::try_from(retries).unwrap_or(u64::MAX));
        }
    }

    /// Notes what an agent said; returns it in a word.
    fn count_work(&self, agent: &str, said: &AgentSaid) -> &'static str {
        let (outcome, duration, usage) = match said {
            AgentSaid::Reported(report) if report.gave_up => {
                ("gave_up", Some(report.duration), report.usage.as_ref())
            }
            AgentSaid::Reported(report) => ("reported", Some(report.duration), report.usage.as_ref()),
            AgentSaid::Overran { duration, usage, .. } => ("overran", Some(*duration), usage.as_ref()),
            AgentSaid::Asked { usage, .. } => ("asked", None, usage.as_ref()),
            AgentSaid::Faulted(fault) => ("faulted", None, fault.usage.as_ref()),
            AgentSaid::Released => ("released", None, None),
        };
        if let Some(duration) = duration {
            let labels = vec![("agent", agent.to_owned()), ("outcome", outcome.to_owned())];
            self.attempt_duration.get_or_create(&labels).observe(duration.as_secs_f64());
        }
        if let Some(usage) = usage {
            self.count_usage(usage);
        }
        outcome
    }

    fn count_usage(&self, usage: &Usage) {
        let model = self.model(usage.model.as_deref().unwrap_or("unknown"));
        let metering = |is_estimated| if is_estimated { "estimated" } else { "reported" }.to_owned();
        let uncached = usage.input_tokens.saturating_sub(usage.cached_input_tokens);
        let parts =
            [("input", uncached), ("cached", usage.cached_input_tokens), ("output", usage.output_tokens)];
        for (kind, tokens) in parts {
            let labels = vec![
                ("type", kind.to_owned()),
                ("model", model.clone()),
                ("metering", metering(usage.tokens_estimated)),
            ];
            self.tokens.get_or_create(&labels).inc_by(tokens);
        }
        if let Some(micro_usd) = usage.micro_usd {
            let labels = vec![("model", model), ("metering", metering(usage.estimated))];
            self.cost.get_or_create(&labels).inc_by(planctl_api::wire::usd(micro_usd));
        }
    }

    /// Returns a model's name as a label.
    fn model(&self, name: &str) -> String {
        let name: String = planctl_lang::printable(name).chars().take(MODEL_CHARACTERS_MAX).collect();
        let mut models = lock(&self.models);
        if models.len() < MODELS_MAX {
            models.insert(name.clone());
        }
        if models.contains(&name) { name } else { "other".to_owned() }
    }
}

fn verdict_of(fact: &Fact) -> Option<Verdict> {
    if let Fact::NodeVerified { verdict, .. } = fact { Some(*verdict) } else { None }
}

#[cfg(test)]
mod tests {
    use planctl_engine::{At, Attempt, HarnessEvent, Inconclusive, NodeId};

    use super::*;

    #[test]
    fn a40_names_of_models_are_bounded_and_hold_no_secret() {
        let metrics = Metrics::default();
        for number in 0..200 {
            metrics.count_usage(&Usage {
                model: Some(format!("model-{number}")),
                output_tokens: 1,
                ..Usage::default()
            });
        }
        metrics.count_usage(&Usage {
            model: Some("ghp_c4n4ryc4n4ryc4n4ryc4n4ryc4n4ryc4n4ry".to_owned()),
            output_tokens: 1,
            ..Usage::default()
        });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, metrics.registry()).unwrap();
        let series =
            text.lines().filter(|line| line.starts_with("planctl_tokens_total{type=\"output\"")).count();
        assert_eq!(series, MODELS_MAX + 1, "{text}");
        assert!(!text.contains("ghp_"), "{text}");
    }

    #[test]
    fn p_71_what_judges_use_is_counted_by_their_models() {
        let metrics = Metrics::default();
        let usage = Usage {
            input_tokens: 900,
            output_tokens: 100,
            micro_usd: Some(2_000_000),
            model: Some("m-large".to_owned()),
            estimated: true,
            ..Usage::default()
        };
        let found =
            HarnessResult::Nothing(Inconclusive::Unjudged { what: "no form".to_owned(), usage: Some(usage) });
        let at = At { node: NodeId::new("1"), visit: 1, attempt: Attempt::FIRST };
        metrics.count_event("", &Event::Harness(HarnessEvent { at, found }), &[]);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, metrics.registry()).unwrap();
        for line in [
            "planctl_tokens_total{type=\"input\",model=\"m-large\",metering=\"reported\"} 900",
            "planctl_tokens_total{type=\"output\",model=\"m-large\",metering=\"reported\"} 100",
            "planctl_cost_usd_total{model=\"m-large\",metering=\"estimated\"} 2.0",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
