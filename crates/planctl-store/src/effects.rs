//! Turns the engine's effects into rows: items to put and to remove, timers to arm and to disarm.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_engine::{Effect, Graph, Item, ItemId, Purpose, Timestamp, Work};
use serde::Serialize;

use crate::error::StoreError;
use crate::holder::Claimant;
use crate::rows::{micros, micros_of, to_json};

/// How long after its contract's timeout a gate's lease may be renewed: time to kill the tree and to report.
const GATE_GRACE: Duration = Duration::from_secs(60);

/// How long the record of a workspace may take, or its restoration.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(600);

/// How long after its deadline the lease of an agent's work may be renewed: whoever minds the worker ends it and says so
/// itself, with what it used; only where nobody does, the deadline is found to have passed.
pub const WORK_GRACE: Duration = Duration::from_secs(20);

/// An item to write, as `planctl_commit_1` reads it.
#[derive(Serialize)]
pub(crate) struct Put<'a> {
    id: String,
    node: String,
    visit: i32,
    attempt: i32,
    lane: &'static str,
    target: String,
    work: String,
    available_micros: i64,
    due_micros: i64,
    span_micros: i64,
    locks: Option<Vec<String>>,
    /// The lease, where the caller claims the item in the same transaction.
    #[serde(flatten)]
    claimant: Option<Claimant<'a>>,
}

/// A timer to arm.
#[derive(Serialize)]
pub(crate) struct Armed {
    pub(crate) timer: String,
    at_micros: i64,
}

/// Everything the effects of one transition write.
#[derive(Default)]
pub(crate) struct Rows<'a> {
    pub(crate) puts: Vec<Put<'a>>,
    pub(crate) removed: Vec<String>,
    pub(crate) armed: Vec<Armed>,
    pub(crate) disarmed: Vec<String>,
}

/// Turns effects into rows. `answered` is the ask that the event answers: it goes, unless it is dispatched again. `proven` is the
/// item that proves the event, which the commit removes by itself. `claimed` is the item that the caller claims in the same
/// transaction.
pub(crate) fn rows_of_effects<'a>(
    effects: &[Effect],
    graph: &Graph,
    host: &str,
    now: Timestamp,
    answered: Option<&ItemId>,
    proven: Option<&ItemId>,
    claimed: Option<(&ItemId, Claimant<'a>)>,
) -> Result<Rows<'a>, StoreError> {
    let mut rows = Rows::default();
    let mut removed: BTreeSet<&ItemId> = answered.into_iter().collect();
    for effect in effects {
        match effect {
            Effect::Dispatch(item) => {
                removed.remove(&item.id);
                let claimant =
                    claimed.as_ref().filter(|(id, _)| *id == &item.id).map(|(_, claimant)| claimant.clone());
                rows.puts.push(item_row(item, graph, host, now, claimant)?);
            }
            Effect::Withdraw(item) => {
                removed.insert(item);
            }
            Effect::Arm { timer, at } => {
                rows.disarmed.retain(|name| *name != timer.stored_name());
                rows.armed.push(Armed { timer: timer.stored_name().into_owned(), at_micros: micros_of(*at) });
            }
            Effect::Disarm(timer) => {
                rows.armed.retain(|armed| armed.timer != timer.stored_name());
                rows.disarmed.push(timer.stored_name().into_owned());
            }
        }
    }
    rows.removed = removed
        .into_iter()
        .filter(|item| Some(*item) != proven)
        .map(|item| item.as_str().to_owned())
        .collect();
    Ok(rows)
}

fn item_row<'a>(
    item: &Item,
    graph: &Graph,
    host: &str,
    now: Timestamp,
    claimant: Option<Claimant<'a>>,
) -> Result<Put<'a>, StoreError> {
    let (lane, target, span) = match &item.work {
        Work::Agent { role, timeout, .. } => {
            ("agent", role.as_str().to_owned(), timeout.saturating_add(WORK_GRACE))
        }
        Work::Harness {
            purpose:
                Purpose::Record | Purpose::Restoration | Purpose::Fork | Purpose::Merge | Purpose::SubPlan,
        } => ("harness", host.to_owned(), CHECKPOINT_TIMEOUT),
        Work::Harness { purpose: Purpose::Verdict | Purpose::Rehearsal } => {
            let gated = graph.gated(&item.at.node).ok_or_else(|| {
                StoreError::corrupt(format!("node {} has a gate and no contract", item.at.node))
            })?;
            ("harness", host.to_owned(), gated.contract.timeout.saturating_add(GATE_GRACE))
        }
        Work::Human { ask } => ("human", ask.kind.as_str().to_owned(), Duration::ZERO),
    };
    let due = item.available_at.max(now).after(graph.priority().delay());
    // A verdict comes under the locks that the work took.
    let takes_locks = matches!(item.work, Work::Agent { .. } | Work::Harness { purpose: Purpose::Rehearsal });
    let locks = graph.task(&item.at.node).map(|task| &task.locks).filter(|_| takes_locks);
    Ok(Put {
        id: item.id.as_str().to_owned(),
        node: item.at.node.as_str().to_owned(),
        visit: i32::from(item.at.visit),
        attempt: i32::from(item.at.attempt.number()),
        lane,
        target,
        work: to_json(&item.work),
        available_micros: micros_of(item.available_at),
        due_micros: micros_of(due),
        span_micros: micros(span),
        locks: locks.filter(|locks| !locks.is_empty()).cloned(),
        claimant,
    })
}
