//! The first round trip: what a transition is decided on, and the rare looks at what happened before.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, ClockEvent, Digest, Event, Head, NodeId, Record, Refusal, Report, Scope,
    Timestamp, Usage,
};
use sha2::{Digest as _, Sha256};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Applied, ApplyError, Call, Decided, Lease, claimed_item, is_of_speaker};
use crate::claimed::Claimed;
use crate::error::StoreError;
use crate::history::Said;
use crate::proof::Proof;
use crate::rows::{from_json, optional_time_at, records, stored_run, time_at, to_json};
use crate::store::Store;

/// Reads by the function of migration 0037, which says what it returns.
pub(crate) const READ: &str = "select seq, chain, head, graph, revision, \"now\", is_ending, nodes, records, generation, item_state, \
     token_hash, used, is_over, due, noted, lineage from planctl_read_2($1, $2, $3, $4, $5, $6, $7)";
pub(crate) const READ_DUPLICATE: &str = "select h.seq, h.name, r.head::text as head from history h join runs r on r.id = h.run \
     where h.run = $1 and h.node = $4 and h.item = $2 and h.generation = $3 and h.kind = 'input' order by h.seq desc limit 1";
pub(crate) const READ_OWN_COMMAND: &str =
    "select exists (select from history where run = $1 and seq = $2 and command = $3) as found";
pub(crate) const READ_COMMAND: &str = "select c.body_hash, c.run, c.seq, r.head::text as head from commands c \
     join runs r on r.id = c.run where c.key = $1";
pub(crate) const READ_CLAIMED_NEXT: &str = "select i.generation, i.lease_until, i.hard_deadline, r.revision, r.approval, \
     r.settings::text as settings from items i join runs r on r.id = i.run \
     where i.id = $1 and i.state = 'leased' and i.token_hash = $2";

/// The state that a transition is decided on.
pub(super) struct Loaded {
    pub(super) seq: i64,
    pub(super) chain: [u8; 32],
    pub(super) head: Head,
    pub(super) graph: Digest,
    pub(super) revision: Digest,
    pub(super) now: Timestamp,
    pub(super) records: BTreeMap<NodeId, Record>,
    pub(super) item: Option<ItemRow>,
    pub(super) due: Option<Timestamp>,
    /// Usage that the holders of its other items have reported so far, by node.
    pub(super) noted: BTreeMap<NodeId, Usage>,
    /// Says that the run ended, and still has the workspace for those who worked for it.
    pub(super) is_ending: bool,
    /// Says that none of it was read: the fences decide whether it holds, and the item, too.
    pub(super) is_cached: bool,
}

pub(super) struct ItemRow {
    generation: i64,
    is_leased: bool,
    token_hash: Option<Vec<u8>>,
    is_over: bool,
    /// The usage that its holder has reported so far, as stored.
    used: Option<String>,
}

impl Loaded {
    fn from_row(row: &PgRow) -> Result<Loaded, StoreError> {
        let chain: Vec<u8> = row.try_get("chain")?;
        let generation: Option<i64> = row.try_get("generation")?;
        let item = match generation {
            Some(generation) => Some(ItemRow {
                generation,
                is_leased: row.try_get::<&str, _>("item_state")? == "leased",
                token_hash: row.try_get("token_hash")?,
                is_over: row.try_get::<Option<bool>, _>("is_over")?.unwrap_or(false),
                used: row.try_get("used")?,
            }),
            None => None,
        };
        Ok(Loaded {
            seq: row.try_get("seq")?,
            chain: chain.try_into().map_err(|_| StoreError::corrupt("a run's chain is not a hash"))?,
            head: from_json(row.try_get("head")?, "a run's head")?,
            graph: Digest::new(row.try_get::<String, _>("graph")?),
            revision: Digest::new(row.try_get::<String, _>("revision")?),
            now: time_at(row, "now")?,
            records: records(row.try_get("nodes")?, row.try_get("records")?)?,
            item,
            due: optional_time_at(row, "due")?,
            noted: match row.try_get::<Option<&str>, _>("noted")? {
                Some(noted) => from_json(noted, "what was used")?,
                None => BTreeMap::new(),
            },
            is_ending: row.try_get("is_ending")?,
            is_cached: false,
        })
    }
}

impl Loaded {
    /// Returns what the holder of the item said it has used so far.
    pub(super) fn noted_usage(&self) -> Option<&str> {
        self.item.as_ref().and_then(|item| item.used.as_deref())
    }

    /// Completes an event that ends a lease with what its holder said while it worked.
    pub(super) fn with_noted_usage<'e>(&self, event: &'e Event) -> Result<Cow<'e, Event>, StoreError> {
        let Some(used) = self.noted_usage() else { return Ok(Cow::Borrowed(event)) };
        let used: Option<Usage> = Some(from_json(used, "what was used")?);
        let mut event = event.clone();
        match &mut event {
            Event::Agent(AgentEvent { noted, .. })
            | Event::Clock(ClockEvent::LeaseLost { noted, .. } | ClockEvent::Overran { noted, .. }) => {
                *noted = used;
            }
            Event::Harness(_)
            | Event::Human(_)
            | Event::Clock(
                ClockEvent::Admitted
                | ClockEvent::Due { .. }
                | ClockEvent::Metered
                | ClockEvent::DaySpent { .. }
                | ClockEvent::DayAllows { .. }
                | ClockEvent::SetAside { .. }
                | ClockEvent::Unattended { .. },
            ) => {}
        }
        Ok(Cow::Owned(event))
    }
}

impl Store {
    pub(super) async fn read(&self, call: &Call<'_>) -> Result<Loaded, ApplyError> {
        let (reach, ids) = match &call.scope {
            Scope::Nodes(ids) => ("nodes", Some(ids)),
            Scope::Live(ids) => ("live", Some(ids)),
            Scope::All => ("all", None),
        };
        let names: Vec<&str> = ids.into_iter().flatten().map(NodeId::as_str).collect();
        let item = call.proof.item().map(|(item, _)| item.as_str());
        let dead_instance = match call.proof {
            Proof::Expired { dead_instance, .. } => dead_instance.as_deref(),
            Proof::Lease { .. }
            | Proof::Person { .. }
            | Proof::Vote { .. }
            | Proof::Clock
            | Proof::Submit => None,
        };
        let timer = match call.event {
            Event::Clock(ClockEvent::Due { timer }) => Some(timer.stored_name()),
            Event::Clock(_) | Event::Agent(_) | Event::Harness(_) | Event::Human(_) => None,
        };
        let committed = self.cache().committed(call.run);
        let mut connection = self.connections().acquire().await?;
        let query = sqlx::query(READ)
            .bind(stored_run(call.run))
            .bind(reach)
            .bind(names)
            .bind(item)
            .bind(dead_instance)
            .bind(timer.as_deref())
            .bind(committed.map(|committed| committed.seq));
        let result = query.fetch_optional(&mut *connection).await;
        let row = connection.recycle(result)?;
        let row = row.ok_or_else(|| StoreError::not_found(format!("run {}", call.run)))?;
        let loaded = Loaded::from_row(&row)?;
        if let Some(committed) = committed {
            committed.check(loaded.seq, row.try_get("lineage")?)?;
        }
        self.server_clock().observe(loaded.now);
        Ok(loaded)
    }

    /// Checks the proof against what was read; where it does not hold, the call ends as a duplicate or as stale.
    pub(super) async fn check_proof(&self, call: &Call<'_>, before: &Loaded) -> Result<(), ApplyError> {
        let holds = match call.proof {
            Proof::Person { .. } | Proof::Vote { .. } | Proof::Submit => return Ok(()),
            Proof::Clock => {
                let is_due = before.due.is_some_and(|due| due <= before.now);
                if matches!(call.event, Event::Clock(ClockEvent::Due { .. })) && !is_due {
                    return Err(ApplyError::Final(StoreError::Refused(Refusal::WrongState)));
                }
                if matches!(call.event, Event::Clock(ClockEvent::Admitted)) && before.is_ending {
                    let run = self.run_meta(call.run).await?.name.clone();
                    return Err(ApplyError::Final(StoreError::WorkspaceBusy { run }));
                }
                return Ok(());
            }
            Proof::Lease { item, generation, token } => {
                if !is_of_speaker(item, call.run, call.event) {
                    return Err(ApplyError::Final(StoreError::Misproved { event: call.event.kind() }));
                }
                before.is_cached
                    || before.item.as_ref().is_some_and(|row| {
                        row.is_leased
                            && row.generation == *generation
                            && row.token_hash.as_ref() == Some(&token.hash())
                    })
            }
            Proof::Expired { item, generation, .. } => {
                if !is_of_speaker(item, call.run, call.event) {
                    return Err(ApplyError::Final(StoreError::Misproved { event: call.event.kind() }));
                }
                before
                    .item
                    .as_ref()
                    .is_some_and(|row| row.is_leased && row.generation == *generation && row.is_over)
            }
        };
        if holds {
            return Ok(());
        }
        if let Some(applied) = self.read_duplicate(call).await? {
            return Err(ApplyError::Answered(Box::new(applied)));
        }
        Err(ApplyError::Final(StoreError::StaleLease))
    }

    /// Looks whether the same news under the same lease was accepted before.
    async fn read_duplicate(&self, call: &Call<'_>) -> Result<Option<Applied>, ApplyError> {
        let Some((item, generation)) = call.proof.item() else { return Ok(None) };
        let mut connection = self.connections().acquire().await?;
        let query = sqlx::query(READ_DUPLICATE)
            .bind(stored_run(call.run))
            .bind(item.as_str())
            .bind(generation)
            .bind(call.event.at().map(|at| at.node.as_str()));
        let result = query.fetch_optional(&mut *connection).await;
        let Some(row) = connection.recycle(result)? else { return Ok(None) };
        if row.try_get::<&str, _>("name")? != call.event.kind() {
            return Ok(None);
        }
        let head = from_json(row.try_get("head")?, "a run's head")?;
        let seq: i64 = row.try_get("seq")?;
        if let Event::Agent(event) = call.event {
            // A worker that says something else under the same lease has not said it twice (row 71).
            let before = self.history(call.run, seq - 1, 1).await?;
            let is_same = before
                .iter()
                .any(|line| matches!(&line.said, Said::Input(input) if is_repeated(&input.event, event)));
            if !is_same {
                return Err(ApplyError::Final(StoreError::KeyReused { key: item.as_str().to_owned() }));
            }
        }
        Ok(Some(self.answered_before(call, seq, head).await?))
    }

    /// Returns the stored answer where a person's key was used before.
    pub(super) async fn read_command(&self, call: &Call<'_>) -> Result<Option<Applied>, ApplyError> {
        let Some(key) = call.proof.key() else { return Ok(None) };
        let mut connection = self.connections().acquire().await?;
        let result = sqlx::query(READ_COMMAND).bind(key).fetch_optional(&mut *connection).await;
        let Some(row) = connection.recycle(result)? else { return Ok(None) };
        let is_same = row.try_get::<uuid::Uuid, _>("run")? == stored_run(call.run)
            && row.try_get::<Vec<u8>, _>("body_hash")? == body_hash(call.event);
        if !is_same {
            return Err(ApplyError::Final(StoreError::KeyReused { key: key.to_owned() }));
        }
        let head = from_json(row.try_get("head")?, "a run's head")?;
        Ok(Some(self.answered_before(call, row.try_get("seq")?, head).await?))
    }

    /// Puts the answer together that an input at this line of history got.
    async fn answered_before(&self, call: &Call<'_>, seq: i64, head: Head) -> Result<Applied, ApplyError> {
        let mut facts = Vec::new();
        let mut last = seq;
        for line in self.history(call.run, seq, 1000).await? {
            match line.said {
                Said::Input(_) => break,
                Said::Fact(fact) => facts.push(*fact),
            }
            last = line.seq;
        }
        Ok(Applied { seq: last, head, facts, claimed_next: None, duplicate: true })
    }

    /// Says whether a transition of this call, whose outcome was unknown, was written.
    pub(super) async fn read_own_command(
        &self,
        call: &Call<'_>,
        decided: &Decided,
    ) -> Result<bool, ApplyError> {
        let mut connection = self.connections().acquire().await?;
        let query = sqlx::query(READ_OWN_COMMAND)
            .bind(stored_run(call.run))
            .bind(decided.before.seq + 1)
            .bind(call.command);
        let result = query.fetch_one(&mut *connection).await;
        Ok(connection.recycle(result)?.try_get("found")?)
    }

    /// Reads the lease of the item that the transition was to lease.
    pub(super) async fn read_leased(
        &self,
        call: &Call<'_>,
        decided: &Decided,
    ) -> Result<Option<Claimed>, ApplyError> {
        let Some(next) = &decided.next else { return Ok(None) };
        let mut connection = self.connections().acquire().await?;
        let query = sqlx::query(READ_CLAIMED_NEXT).bind(next.item.id.as_str()).bind(next.token(call).hash());
        let result = query.fetch_optional(&mut *connection).await;
        let Some(row) = connection.recycle(result)? else { return Ok(None) };
        Ok(Some(claimed_item(call, decided, Lease::from_row(&row)?)?))
    }
}

pub(super) fn body_hash(event: &Event) -> Vec<u8> {
    Sha256::digest(to_json(event)).to_vec()
}

/// Says whether a worker says the same again. The duration may differ: each sender measures it anew.
fn is_repeated(before: &Event, again: &AgentEvent) -> bool {
    let Event::Agent(before) = before else { return false };
    let said = |event: &AgentEvent| {
        let mut said = event.said.clone();
        match &mut said {
            AgentSaid::Reported(Report { duration, .. }) | AgentSaid::Overran { duration, .. } => {
                *duration = Duration::ZERO;
            }
            AgentSaid::Asked { .. } | AgentSaid::Faulted(_) | AgentSaid::Released => {}
        }
        said
    };
    before.at == again.at && said(before) == said(again)
}
