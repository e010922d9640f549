//! The lease of an item, as its holder shows it: renewed, reported under, lost.

use std::time::Duration;

use planctl_engine::{AgentEvent, AgentSaid, At, Event, Excerpt, ItemId, RunId};
use planctl_harness::{Masks, excerpt_of};
use planctl_store::{Claimed, Leased, NextClaim, Proof, Renewal, StoreError, Token};

use crate::clock;
use crate::executor::masked;
use crate::http::guard::LEASE_PREFIX;
use crate::http::problem::of_store;
use crate::http::slots::TakenGate;
use crate::http::{Call, Scope};
use crate::runs::settings::RunSettings;
use planctl_api::wire::calls;
use planctl_api::{Code, Problem};

/// How long a heartbeat waits without a notification before it looks again.
const BEAT_LOOKS_AGAIN: Duration = Duration::from_secs(5);
/// Between which a lease may last, in seconds.
pub(super) const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 5..=600;
/// How many heartbeats fit into a lease.
pub(super) const HEARTBEATS: u32 = 3;

/// A lease, as the holder of an item shows it.
pub(in crate::http) struct Lease {
    pub(in crate::http) item: ItemId,
    pub(in crate::http) run: RunId,
    pub(in crate::http) at: At,
    pub(in crate::http) generation: i64,
    /// How long its claim wanted it to last, where it said so.
    pub(in crate::http) asked_seconds: Option<u64>,
    pub(in crate::http) token: Token,
}

impl Lease {
    /// Reads the item of the path and the bearer's secret; anything that does not fit is simply not there (row 69).
    pub(in crate::http) fn of(call: &Call) -> Result<Lease, Problem> {
        let item = ItemId::new(call.parameter("item"));
        let secret = call.principal.secret.as_deref().filter(|_| call.principal.scope == Scope::Item);
        let shown = secret.and_then(|secret| secret.strip_prefix(LEASE_PREFIX)?.split_once('_'));
        let read = shown.and_then(|(generation, digits)| {
            let (run, at) = item.agent_try()?;
            let (generation, asked_seconds) = match generation.split_once('.') {
                Some((generation, seconds)) => (generation, Some(seconds.parse().ok()?)),
                None => (generation, None),
            };
            let generation = generation.parse().ok().filter(|_| is_lease(asked_seconds))?;
            Some((run, at, generation, asked_seconds, Token::parse(digits)?))
        });
        let (run, at, generation, asked_seconds, token) = read.ok_or_else(no_such_item)?;
        Ok(Lease { item, run, at, generation, asked_seconds, token })
    }

    /// Applies what the holder says of the work. The gate that follows is claimed with it if a slot is free.
    pub(in crate::http) async fn apply_report(&self, call: &Call, said: AgentSaid) -> Result<bool, Problem> {
        let server_node = call.server_node();
        let slots = call.api.options().slots.as_ref().filter(|_| matches!(said, AgentSaid::Reported(_)));
        let slot = match slots {
            Some(slots) => slots.try_slot(self.run).await,
            None => None,
        };
        let next_claim = match &slot {
            Some(_) => Some(NextClaim {
                served: Vec::new(),
                holder: server_node.holder()?,
                lease: server_node.store.own_lease(),
            }),
            None => None,
        };
        let said = masked(&self.masks(call).await?, self.with_cost(call, said).await?, &mut [])?;
        let event = Event::Agent(AgentEvent::new(self.at.clone(), said));
        let proof =
            Proof::Lease { item: self.item.clone(), generation: self.generation, token: self.token.clone() };
        match server_node.store.apply(self.run, &event, &proof, next_claim.as_ref()).await {
            Ok(applied) => {
                if !applied.duplicate {
                    server_node.metrics().count_event("remote", &event, &applied.facts);
                }
                call.api.claims().printed().forget(&self.item);
                if let (Some(slots), Some(slot), Some(claimed)) = (slots, slot, applied.claimed_next) {
                    slots.run(TakenGate { claimed, slot });
                }
                Ok(applied.duplicate)
            }
            Err(StoreError::StaleLease | StoreError::Refused(_)) => {
                Err(self.lost_lease_problem(call).await?)
            }
            Err(error) => Err(of_store(error)),
        }
    }

    /// Renews the lease and waits for as long as it is held, but no longer than to the next heartbeat; where it ends meanwhile,
    /// says so at once. The wait itself renews nothing: its caller may be gone.
    pub(in crate::http) async fn renewed(&self, call: &Call, wait: Duration) -> Result<Renewal, Problem> {
        let store = &call.server_node().store;
        let lasts = lease_for(call, self.asked_seconds);
        let renew = async || {
            store.settle_standstill(call.server_node().host()).await?;
            store.renew_by(&self.item, self.generation, &self.token, lasts).await
        };
        let listener = store.listen_to_revocations(self.run);
        let until = clock::instant() + wait.min(lasts / HEARTBEATS);
        let renewal = renew().await.map_err(of_store)?;
        if !matches!(renewal, Renewal::Held { is_over: false, .. }) {
            return Ok(renewal);
        }
        loop {
            let left = until.saturating_duration_since(clock::instant());
            if left.is_zero() || call.api.is_stopping() {
                return Ok(renewal);
            }
            call.api.wait_for_news(&listener, left.min(BEAT_LOOKS_AGAIN)).await;
            if !store.is_held(&self.item, self.generation, &self.token).await.map_err(of_store)? {
                return renew().await.map_err(of_store);
            }
        }
    }

    /// Takes how long the worker says that it worked; where it says nothing, the time since the claim.
    pub(in crate::http) async fn work_duration(
        &self,
        call: &Call,
        seconds: Option<f64>,
    ) -> Result<Duration, Problem> {
        match seconds {
            Some(seconds) => Ok(calls::duration("seconds", seconds)?),
            None => {
                let held = call
                    .server_node()
                    .store
                    .lease_age(&self.item, self.generation, &self.token)
                    .await
                    .map_err(of_store)?;
                // The duration of an ended lease is unknown; a report under it changes nothing.
                Ok(held.unwrap_or_default())
            }
        }
    }

    /// Computes the money of reported usage, where the worker names its model and not the money.
    async fn with_cost(&self, call: &Call, said: AgentSaid) -> Result<AgentSaid, Problem> {
        if !said.usage().is_some_and(|usage| usage.micro_usd.is_none() && usage.model.is_some()) {
            return Ok(said);
        }
        let row = call.server_node().store.run(self.run).await.map_err(of_store)?;
        Ok(RunSettings::of(&row)?.priced(said))
    }

    /// Says that there is no run of which the item could have been.
    async fn is_of_no_run(&self, call: &Call) -> Result<bool, Problem> {
        match call.server_node().store.run(self.run).await {
            Ok(_) => Ok(false),
            Err(StoreError::NotFound { .. }) => Ok(true),
            Err(error) => Err(of_store(error)),
        }
    }

    /// Returns what is masked in what the worker says. Where no value was ever kept there is nothing to look up.
    pub(in crate::http) async fn masks(&self, call: &Call) -> Result<Masks, Problem> {
        let secrets = call.server_node().secrets();
        if secrets.is_empty() {
            return Ok(Masks::default());
        }
        Ok(RunSettings::of(&call.server_node().store.run(self.run).await.map_err(of_store)?)?.masks(&secrets))
    }

    /// Returns what history holds of a text; the rest is stored separately, as long as the lease is held: anybody can make up a
    /// bearer's secret, and what comes under none is refused later.
    pub(in crate::http) async fn store_excerpt(&self, call: &Call, text: &str) -> Result<Excerpt, Problem> {
        let (excerpt, outputs) = excerpt_of(&self.masks(call).await?.text(text));
        let store = &call.server_node().store;
        for output in &outputs {
            let (digest, bytes) = (&output.digest, &output.bytes);
            store
                .put_output_under(&self.item, self.generation, &self.token, digest, bytes)
                .await
                .map_err(of_store)?;
        }
        Ok(excerpt)
    }

    /// Looks whether it is held right now.
    pub(in crate::http) async fn find(&self, call: &Call) -> Result<Leased, Problem> {
        let store = &call.server_node().store;
        store.find_lease(&self.item, self.generation, &self.token).await.map_err(of_store)
    }

    /// Says why a lease is none: it was lost, or there never was one.
    pub(in crate::http) async fn lost_lease_problem(&self, call: &Call) -> Result<Problem, Problem> {
        let leased = self.find(call).await?;
        if self.is_of_no_run(call).await? {
            return Ok(no_such_item());
        }
        Ok(match leased {
            Leased::Unknown => no_such_item(),
            Leased::Held(_) | Leased::Lost => {
                Problem::new(Code::LeaseLost, "the lease is over: stop working, nobody waits for this report")
            }
        })
    }
}

/// Says whether a lease may last for as long as is asked for; where nothing is asked for, it lasts as long as all do.
pub(super) fn is_lease(seconds: Option<u64>) -> bool {
    seconds.is_none_or(|seconds| LEASE_SECONDS.contains(&seconds))
}

pub(super) fn lease_for(call: &Call, seconds: Option<u64>) -> Duration {
    seconds.map_or_else(|| call.server_node().store().remote_lease(), Duration::from_secs)
}

pub(super) fn shown_lease(claimed: &Claimed, asked_seconds: Option<u64>) -> String {
    let asked = asked_seconds.map_or(String::new(), |seconds| format!(".{seconds}"));
    format!("{LEASE_PREFIX}{}{asked}_{}", claimed.generation, claimed.token.reveal())
}

pub(in crate::http) fn no_such_item() -> Problem {
    Problem::new(Code::NotFound, "there is no such item for this token")
}
