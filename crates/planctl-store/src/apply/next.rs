//! The item that a transition leases as it dispatches it: to its caller, or to one who waits for work.

use planctl_engine::{Effect, Item, Timestamp, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Call, Decided};
use crate::claimed::{Claimed, RunConfig};
use crate::error::StoreError;
use crate::holder::{Claimant, NextClaim};
use crate::rows::time_at;
use crate::store::Store;
use crate::token::Token;
use crate::waiting::WaitingWorker;

/// An item that a transition dispatches and leases in the same transaction.
pub(super) struct Next {
    pub(super) item: Item,
    /// The one who waited for it; `None` where the caller claims it.
    pub(super) waiting: Option<Box<dyn WaitingWorker>>,
}

impl Next {
    pub(super) fn token<'n>(&'n self, call: &'n Call<'_>) -> &'n Token {
        self.waiting.as_ref().map_or(&call.token, |waiting| &waiting.request().token)
    }

    /// Returns the one to whom the item is leased.
    pub(super) fn claimant<'n>(&'n self, call: &'n Call<'_>) -> Option<Claimant<'n>> {
        if let Some(waiting) = &self.waiting {
            return Some(waiting.request().claimant());
        }
        let NextClaim { holder, lease, .. } = call.next_claim?;
        Some(Claimant::new(&call.token, &holder.boot, &holder.instance, holder.own, *lease))
    }
}

impl Store {
    /// Returns the item that the transition dispatches and leases: to the caller a gate before other work, or to one who waits
    /// the first work that somebody waits for.
    pub(super) fn next_item(&self, call: &Call<'_>, decided: &Decided) -> Option<Next> {
        let Decided { before, after, meta, graph, .. } = decided;
        let due = || {
            after.effects.iter().filter_map(|effect| match effect {
                // One that waits before it is tried again (DOT R2) is nobody's yet.
                Effect::Dispatch(item) => (item.available_at <= before.now).then_some(&**item),
                Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
            })
        };
        let claim = call.next_claim.filter(|claim| claim.holder.host == meta.host);
        let claimed = claim.and_then(|claim| {
            let claims = |item: &&Item| match &item.work {
                Work::Harness { .. } => true,
                Work::Agent { role, .. } => claim.served.iter().any(|served| served.matches(role)),
                Work::Human { .. } => false,
            };
            due().filter(claims).min_by_key(|item| matches!(item.work, Work::Agent { .. }))
        });
        if let Some(item) = claimed {
            return Some(Next { item: item.clone(), waiting: None });
        }
        if decided.nodes_freeing_locks().next().is_some() {
            // Work that waited for a lock can be claimed now, and may be due before.
            return None;
        }
        due().filter(|_| call.serves_waiting).find_map(|item| {
            let Work::Agent { role, .. } = &item.work else { return None };
            if graph.task(&item.at.node).is_some_and(|task| !task.locks.is_empty()) {
                // Locks are taken by a claim.
                return None;
            }
            let waiting = self.waiting().take(&meta.host, role, &meta.plan_path)?;
            Some(Next { item: item.clone(), waiting: Some(waiting) })
        })
    }
}

/// The lease of a claimed item, as the database set it.
pub(super) struct Lease {
    generation: i64,
    lease_until: Timestamp,
    hard_deadline: Timestamp,
    run_config: RunConfig,
}

impl Lease {
    pub(super) fn from_row(row: &PgRow) -> Result<Lease, StoreError> {
        Ok(Lease {
            generation: row.try_get("generation")?,
            lease_until: time_at(row, "lease_until")?,
            hard_deadline: time_at(row, "hard_deadline")?,
            run_config: RunConfig::from_row(row)?,
        })
    }
}

pub(super) fn claimed_item(call: &Call<'_>, decided: &Decided, lease: Lease) -> Result<Claimed, StoreError> {
    let next = decided
        .next
        .as_ref()
        .ok_or_else(|| StoreError::corrupt("an item was leased that was not dispatched"))?;
    Ok(Claimed {
        item: next.item.clone(),
        generation: lease.generation,
        token: next.token(call).clone(),
        run_name: decided.meta.name.clone(),
        graph: decided.graph.clone(),
        plan: decided.meta.plan_path.clone(),
        run_config: lease.run_config,
        host: decided.meta.host.clone(),
        workspace: decided.meta.workspace.clone(),
        lease_until: lease.lease_until,
        hard_deadline: lease.hard_deadline,
    })
}
