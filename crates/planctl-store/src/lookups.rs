//! Reads and notes beside the hot path that concern a plan's past and a run's surroundings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_engine::{
    Digest, Event, Excerpt, Graph, HarnessEvent, HarnessResult, NodeId, Record, Role, RunId,
};
use sqlx::{Connection, PgConnection, Row};

use crate::connections::repeated;
use crate::error::StoreError;
use crate::history::Input;
use crate::holder::ServedRole;
use crate::ids::PlanId;
use crate::notifier::WakeFor;
use crate::plans::Approval;
use crate::rows::{from_json, records, stored_run};
use crate::runs::RunRow;
use crate::sealed::SEAL;
use crate::store::Store;

pub(crate) const FOUND_FILES: &str = "select h.node, h.body::text as body from history h \
     join nodes n on n.run = h.run and n.node = h.node \
     where h.run = $1 and h.node = any($2) and h.kind = 'input' \
     and (h.name = 'harness.evaluated' and n.state = 'passed' or h.name = 'harness.merged') order by h.seq";
/// The newest gate of what passed in a run, or at one of its nodes; of a sub-plan how its run ended.
pub(crate) const LAST_PASSED: &str = "select h.body::text as body from history h \
     join nodes n on n.run = h.run and n.node = h.node \
     where h.run = $1 and ($2::text is null or h.node = $2) and h.kind = 'input' \
     and h.name in ('harness.evaluated', 'harness.ended') and n.state = 'passed' order by h.seq desc limit 1";
pub(crate) const SOME_RECORDS: &str = "select array_agg(node) as names, array_agg(record::text) as records from nodes \
     where run = $1 and node = any($2)";
pub(crate) const PASSED_NODES: &str = "select array_agg(node) as names from nodes \
     where run = $1 and state in ('passed', 'skipped', 'waived', 'warned')";
/// Counted where they are stored, so that a run of many steps sends no record of them.
pub(crate) const UNPROVED: &str = "select count(*) filter (where passed and node = any($2) and record ->> 'is_observed' = 'true') as observed, \
     count(*) filter (where passed and node = any($3)) as judged, \
     count(*) filter (where passed and record #>> '{rehearsal,showed}' = 'green') as vacuous, \
     count(*) filter (where not passed) as unmerged from (select node, record, state = 'passed' as passed from nodes \
     where run = $1 and (state = 'passed' or state in ('skipped', 'waived') and node = any($4))) n";
pub(crate) const LAST_APPROVAL: &str = "select id, plan, digest, config_digest, config::text as config, \
     protected::text as protected, by, note, at, voided_at from approvals where plan = $1 order by id desc limit 1";
pub(crate) const LAST_APPROVAL_IN: &str = "select id, plan, digest, config_digest, config::text as config, \
     protected::text as protected, by, note, at, voided_at from approvals \
     where plan = $1 and coalesce(config->>'folder', '') = $2 order by id desc limit 1";
pub(crate) const SET_SETTINGS: &str =
    "update runs set settings = $2::json, served = $3::text[] where id = $1";
pub(crate) const SET_SERVED_ITEMS: &str = "update items i \
     set served_on = case when r.served && array['*', i.target] then w.host end \
     from runs r join workspaces w on w.id = r.workspace where r.id = $1 and i.run = r.id and i.lane = 'agent'";
pub(crate) const OUTSTANDING: &str = "select r.status = 'ended' or coalesce(bool_or(i.state <> 'ready' \
       or i.lane = 'harness' and not (i.available_at > clock_timestamp() + interval '1 year' \
         and exists (select from sub_plans c join runs w on w.id = c.run \
           where c.item = i.id and w.status <> 'ended'))), false) \
       or exists (select from timers t where t.run = $1 and t.at <= clock_timestamp()) as is_moving, \
     array_remove(array_agg(distinct case when i.lane = 'agent' and i.state = 'ready' then i.target end), null) as wanted \
     from runs r left join items i on i.run = r.id where r.id = $1 group by r.status";

/// How many of a run's nodes passed by less than a contract that could fail, and how many merged nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unproved {
    /// By what an agent's program reported.
    pub observed: u64,
    /// By a judge alone.
    pub judged: u64,
    /// By a contract that passed before the work, too.
    pub vacuous: u64,
    /// Joins past which a person went on without a merge of their branches.
    pub unmerged: u64,
}

/// The items of a run that are out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Says that it moves without a person: somebody has something in hand, or the harness has something to do, or a timer is due, or
    /// it is over.
    /// A sub-plan that is under way is none of these, once the run around it was told how it stands.
    pub is_moving: bool,
    /// The roles of which work waits that nobody has claimed.
    pub wanted: Vec<Role>,
}

impl Store {
    /// Returns what of a run is out, as it is at one moment.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn outstanding(&self, run: RunId) -> Result<Outstanding, StoreError> {
        let id = stored_run(run);
        let row =
            repeated!(self, connection => sqlx::query(OUTSTANDING).bind(id).fetch_one(&mut *connection))?;
        let wanted: Vec<String> = row.try_get("wanted")?;
        let wanted = wanted.iter().map(|role| Role::from(role.as_str())).collect();
        Ok(Outstanding { is_moving: row.try_get("is_moving")?, wanted })
    }

    /// Returns the compiled graph that a run runs by.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where it does not read, and those of the connection.
    pub async fn graph_of(&self, run: &RunRow) -> Result<Arc<Graph>, StoreError> {
        self.graph(&run.graph).await
    }

    /// Returns the records of some nodes of a run. A node that was never entered has none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a record does not read, and those of the connection.
    pub async fn records_of(
        &self,
        run: RunId,
        nodes: &[NodeId],
    ) -> Result<BTreeMap<NodeId, Record>, StoreError> {
        let id = stored_run(run);
        let names: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
        let row = repeated!(self, connection => sqlx::query(SOME_RECORDS).bind(id).bind(&names).fetch_one(&mut *connection))?;
        records(row.try_get("names")?, row.try_get("records")?)
    }

    /// Returns the nodes of a run that have settled and did not fail.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn passed_nodes(&self, run: RunId) -> Result<BTreeSet<NodeId>, StoreError> {
        let id = stored_run(run);
        let row =
            repeated!(self, connection => sqlx::query(PASSED_NODES).bind(id).fetch_one(&mut *connection))?;
        let names: Option<Vec<String>> = row.try_get("names")?;
        Ok(names.unwrap_or_default().into_iter().map(NodeId::new).collect())
    }

    /// Counts the nodes of a run that passed and are not proved: of `observable` ones those that were observed, of `judged` ones
    /// all, and of any those whose contract was green before the work. Of `joins` those count that a person skipped or waived.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn count_unproved(
        &self,
        run: RunId,
        observable: &[NodeId],
        judged: &[NodeId],
        joins: &[NodeId],
    ) -> Result<Unproved, StoreError> {
        let id = stored_run(run);
        let names = |nodes: &[NodeId]| nodes.iter().map(|node| node.as_str().to_owned()).collect::<Vec<_>>();
        let (observable, judged, joins) = (names(observable), names(judged), names(joins));
        let row = repeated!(self, connection => sqlx::query(UNPROVED)
            .bind(id)
            .bind(&observable)
            .bind(&judged)
            .bind(&joins)
            .fetch_one(&mut *connection))?;
        let count = |name| row.try_get::<i64, _>(name).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(Unproved {
            observed: count("observed")?,
            judged: count("judged")?,
            vacuous: count("vacuous")?,
            unmerged: count("unmerged")?,
        })
    }

    /// Returns the protected files as the newest passing gate of each of these nodes found them, and as the newest merge
    /// of branches left them where a node is a join; in the order in which that was.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a line does not read, and those of the connection.
    pub async fn protected_files_found(
        &self,
        run: RunId,
        nodes: &[NodeId],
    ) -> Result<Vec<(NodeId, BTreeMap<String, Option<Digest>>)>, StoreError> {
        let id = stored_run(run);
        let names: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
        let rows = repeated!(self, connection => sqlx::query(FOUND_FILES).bind(id).bind(&names).fetch_all(&mut *connection))?;
        let mut newest: Vec<(NodeId, BTreeMap<String, Option<Digest>>)> = Vec::new();
        for row in &rows {
            let node = NodeId::new(row.try_get::<String, _>("node")?);
            let input: Input = from_json(row.try_get("body")?, "an input")?;
            let Event::Harness(event) = input.event else { continue };
            let files = match event.found {
                HarnessResult::Evidence(evidence) => evidence.protected,
                HarnessResult::Merged { protected, .. } => protected,
                HarnessResult::Rehearsed(_)
                | HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_) => continue,
            };
            newest.retain(|(other, _)| *other != node);
            newest.push((node, files));
        }
        Ok(newest)
    }

    /// Returns what the newest gates of these nodes printed.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn printed_by(
        &self,
        run: RunId,
        nodes: &[NodeId],
    ) -> Result<BTreeMap<NodeId, Excerpt>, StoreError> {
        let id = stored_run(run);
        let names: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
        let rows = repeated!(self, connection => sqlx::query(FOUND_FILES).bind(id).bind(&names).fetch_all(&mut *connection))?;
        let mut printed = BTreeMap::new();
        for row in &rows {
            let node = NodeId::new(row.try_get::<String, _>("node")?);
            let input: Input = from_json(row.try_get("body")?, "an input")?;
            if let Event::Harness(HarnessEvent { found: HarnessResult::Evidence(evidence), .. }) = input.event
            {
                printed.insert(node, evidence.stdout);
            }
        }
        Ok(printed)
    }

    /// Returns what a sub-plan printed: the newest gate that passed in its run, or in the run within that one.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn printed_within(&self, run: RunId, node: &NodeId) -> Result<Option<Excerpt>, StoreError> {
        let (mut run, mut node) = (run, Some(node.as_str()));
        loop {
            let id = stored_run(run);
            let row = repeated!(self, connection => sqlx::query(LAST_PASSED).bind(id).bind(node).fetch_optional(&mut *connection))?;
            let Some(row) = row else { return Ok(None) };
            let input: Input = from_json(row.try_get("body")?, "an input")?;
            let Event::Harness(event) = input.event else { return Ok(None) };
            if let HarnessResult::Evidence(evidence) = event.found {
                return Ok(Some(evidence.stdout));
            }
            // A run is younger than the one around it, so this comes to an end.
            let HarnessResult::Ended(end) = event.found else { return Ok(None) };
            (run, node) = (end.run, None);
        }
    }

    /// Returns the newest approval of a plan, whether it still holds or not.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn last_approval(&self, plan: PlanId) -> Result<Option<Approval>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(LAST_APPROVAL).bind(plan.0).fetch_optional(&mut *connection))?;
        row.as_ref().map(Approval::from_row).transpose()
    }

    /// Returns the newest approval of a plan for work in one folder of the workspace (empty: the workspace itself), whether
    /// it still holds or not.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn last_approval_in(&self, plan: PlanId, folder: &str) -> Result<Option<Approval>, StoreError> {
        let row = repeated!(self, connection => {
            sqlx::query(LAST_APPROVAL_IN).bind(plan.0).bind(folder).fetch_optional(&mut *connection)
        })?;
        row.as_ref().map(Approval::from_row).transpose()
    }

    /// Notes who works on a run from here on, as JSON, and the roles that this serves; seals it as what a person chose.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn set_run_settings(
        &self,
        run: RunId,
        settings: &str,
        served: &[ServedRole],
    ) -> Result<(), StoreError> {
        let served: Vec<&str> = served.iter().map(ServedRole::as_str).collect();
        repeated!(self, connection => set_settings_on(&mut connection, run, settings, &served))?;
        // Work that is out may be for somebody else now.
        self.notifier().notify(run, WakeFor::UNKNOWN);
        Ok(())
    }
}

/// Two statements, so that the second sees items of a transition that the first had to wait for.
async fn set_settings_on(
    connection: &mut PgConnection,
    run: RunId,
    settings: &str,
    served: &[&str],
) -> Result<(), sqlx::Error> {
    let id = stored_run(run);
    let mut transaction = connection.begin().await?;
    sqlx::query(SET_SETTINGS).bind(id).bind(settings).bind(served).execute(&mut *transaction).await?;
    sqlx::query(SET_SERVED_ITEMS).bind(id).execute(&mut *transaction).await?;
    sqlx::query(SEAL).bind(id).execute(&mut *transaction).await?;
    transaction.commit().await
}
