//! Runs as pages and the command line read them, and their making.

mod asks;
mod creation;
mod named;
mod row;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use planctl_engine::{At, Digest, End, Event, ItemId, NodeId, Record, RunId, RunStatus, Timestamp, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::attendance::left_at;
use crate::cache::RunMeta;
use crate::connections::repeated;
use crate::error::{StoreError, Unread};
use crate::ids::{PlanId, WorkspaceId};
use crate::page::Page;
use crate::requests::RequestId;
use crate::rows::{at_of, from_json, optional_time_at, records, run_id, stored_run, stored_runs, time_at};
use crate::store::Store;
pub(crate) use asks::{ASK, ASKS, ASKS_LAPSED, ASKS_NUMBERED, ask_deadline};
pub use asks::{AskDeadline, AskRow, LapsedAsk};
pub(crate) use creation::{ATTACH_APPROVAL, NEW_RUN, NEW_RUN_APART, NEW_SUB_PLAN};
pub use creation::{NewAround, NewRun, NewWorktree};
pub use row::{AroundRow, RunRow, WorktreeRow};
pub(crate) use waiting::{ASKS_WAITING, RUNS_WAITING};
pub use waiting::{WaitingAsk, WaitingRun};

pub(crate) const NOW: &str = "select clock_timestamp() as now";
pub(crate) const RUN_META: &str = "select r.name, r.plan, p.path as plan_path, w.host, coalesce(t.path, c.place, w.path) as path, r.graph \
     from runs r join plans p on p.id = r.plan join workspaces w on w.id = r.workspace left join worktrees t on t.run = r.id \
     left join sub_plans c on c.run = r.id where r.id = $1";
pub(crate) const BUSY: &str = "select o.name from runs r join runs o on o.workspace = r.workspace and o.active and not o.apart \
     where r.id = $1 and o.id <> r.id and not r.apart";
macro_rules! runs_where {
    ($which:literal) => {
        concat!(
            "select r.id, r.name, r.plan, p.path as plan_path, r.workspace, w.host, w.path as workspace_path, r.revision, ",
            "r.graph, r.approval, r.settings::text as settings, r.head::text as head, r.seq, r.chain, r.created_at, r.started_at, ",
            "r.ended_at, clock_timestamp() as now, ",
            left_at!(),
            " as left_at, t.root, t.path as place, t.branch, t.base, t.made_at, t.trouble, ",
            "t.left_behind, t.result, t.uncommitted, t.seen_seq, t.removed_at, c.parent, c.item as parent_item, ",
            "c.place as nested_place, c.depth, c.budget::text as nested_budget, k.by as acknowledged_by ",
            "from runs r join plans p on p.id = r.plan join workspaces w on w.id = r.workspace ",
            "left join worktrees t on t.run = r.id left join sub_plans c on c.run = r.id ",
            "left join acknowledgements k on k.run = r.id and k.ended_at = r.ended_at where ",
            $which
        )
    };
}
pub(crate) const RUN: &str = runs_where!("r.id = $1");
pub(crate) const SOME_RUNS: &str = runs_where!("r.id = any($1)");
pub(crate) const RUN_OF_REQUEST: &str = runs_where!("r.id = (select run from commands where key = $1)");
/// Those of a workspace first; as many as are named where the name is not clear.
pub(crate) const RUNS_NAMED: &str =
    runs_where!("r.name = $1 order by (r.workspace = $2) desc nulls last, r.id desc limit 9");
/// One that a person began: neither within another run, nor handed in as the next text of one.
pub(crate) const RUN_LAST: &str =
    runs_where!("c.run is null and r.settings ->> 'revises' is null order by r.id desc limit 1");
/// A range of the index of workspaces. By equality the server would expect to find one soon among all runs, and read through
/// all of them where the workspace has none.
pub(crate) const RUN_LAST_IN: &str = runs_where!(
    "r.id = (select m.id from runs m where (m.workspace, m.id) between ($1, '00000000-0000-0000-0000-000000000000'::uuid) \
     and ($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) and m.settings ->> 'revises' is null \
     and not exists (select from sub_plans s where s.run = m.id) order by m.workspace desc, m.id desc limit 1)"
);
pub(crate) const RUN_OF_PLAN: &str =
    runs_where!("r.plan = $1 and r.settings ->> 'revises' is null order by r.id desc limit 1");
/// The text that waits for its approval, or has it, and for which a paused run waits.
pub(crate) const REVISION_WAITING: &str = runs_where!(
    "r.plan = (select o.plan from runs o where o.id = $1) and r.ended_at is null and r.settings ->> 'revises' = $1::text \
     order by r.id desc limit 1"
);
pub(crate) const RUN_OF_PATH: &str = runs_where!(
    "($1::bigint is null or r.workspace = $1) and p.path = $2 and r.settings ->> 'revises' is null order by r.id desc limit 1"
);
/// By the beginning of a name, as the index of names has it, or by the first and the last id that begin so.
pub(crate) const RUNS_BEGINNING: &str = runs_where!(
    "r.id in (select b.id from (select n.id from runs n where n.name ~>=~ $1 and n.name ~<~ $2 union \
     select m.id from runs m where m.id between $3 and $4) named join runs b on b.id = named.id \
     order by (b.workspace = $5) desc nulls last, b.ended_at is null desc, b.head #>> '{status,end}' = 'failed' desc, b.id desc \
     limit 9) order by (r.workspace = $5) desc nulls last, r.id desc"
);
pub(crate) const RUNS: &str = runs_where!(
    "($1::bigint is null or r.workspace = $1) and ($3::uuid is null or r.id < $3) and ($4::text is null or p.path = $4) \
     and ($5::text is null or $5 = case r.status when 'new' then 'awaiting_approval' when 'awaiting' then 'awaiting_approval' \
     when 'active' then case when (r.head ->> 'out')::bigint = 0 then 'waiting' else 'running' end \
     when 'ended' then replace(r.head #>> '{status,end}', 'aborted', 'failed') else r.status end) order by r.id desc limit $2"
);
pub(crate) const RUNS_QUEUED: &str =
    runs_where!("r.status = 'queued' and w.host = $1 order by r.id limit $2");
pub(crate) const RUNS_OPEN: &str = runs_where!("r.ended_at is null and w.host = $1 order by r.id limit $2");
/// Of each plan its newest run, which has the last word on the plan's file; where that is over.
pub(crate) const RUNS_ENDED_LAST: &str = runs_where!(
    "r.ended_at is not null and r.id in (select n.id from workspaces o join plans q on q.workspace = o.id \
     join lateral (select l.id from runs l where l.plan = q.id and l.settings ->> 'revises' is null order by l.id desc limit 1) n on true \
     where o.host = $1 order by n.id desc limit $2)"
);
pub(crate) const RUNS_WITH_WORKTREES: &str = runs_where!(
    "t.removed_at is null and t.run is not null and w.host = $1 and ($2::bigint is null or r.workspace = $2) \
     order by r.id limit $3"
);
pub(crate) const RUNS_LEFT_IN_WORKTREES: &str = runs_where!(
    "r.ended_at is not null and t.made_at is not null and t.removed_at is null and t.seen_seq is distinct from r.seq \
     and w.host = $1 and not exists (select from items i where i.run = r.id and i.state = 'withdrawn') order by r.id limit $2"
);
pub(crate) const SUB_PLAN_OF: &str = runs_where!("c.item = $1");
pub(crate) const SUB_PLANS_OPEN: &str = runs_where!("c.parent = $1 and r.ended_at is null order by r.id");
pub(crate) const OPEN_COUNTS: &str = "select (select count(*) from runs where ended_at is null) as runs, \
     (select count(*) from asks where closed_at is null) as asks";
macro_rules! records_where {
    ($which:literal) => {
        concat!(
            "select run, array_agg(node) as names, array_agg(record::text) as records from nodes where ",
            $which,
            " group by run"
        )
    };
}
/// Of one run by equality: a statement with an array is planned each time, as a plan for any array seems dearer than one for this.
pub(crate) const RECORDS: &str = records_where!("run = $1");
pub(crate) const RECORDS_OF_SOME: &str =
    records_where!("run = any($1) and ($2 or state not in ('passed', 'skipped', 'waived', 'warned'))");
macro_rules! items_where {
    ($which:literal) => {
        concat!(
            "select i.id, i.run, i.node, i.visit, i.attempt, i.target, i.state, i.work::text as work, i.available_at, ",
            "i.generation, a.number, i.instance, i.lease_until, i.created_at, case when i.state = 'leased' ",
            "then i.hard_deadline - i.span_micros * interval '1 microsecond' end as claimed_at ",
            "from items i left join asks a on a.item = i.id where ",
            $which,
            " and i.state <> 'withdrawn' order by i.created_at, i.id"
        )
    };
}
pub(crate) const ITEMS: &str = items_where!("i.run = $1");
pub(crate) const ITEMS_OF_SOME: &str = items_where!("i.run = any($1)");
pub(crate) const REFUSALS: &str = "select item, generation, name, reason, body::text as body, at from (select * from refusals where run = $1 \
     order by id desc limit 100) newest order by id";

/// A run with everything that a page about it shows.
#[derive(Clone, PartialEq, Debug)]
pub struct RunView {
    /// The run.
    pub run: RunRow,
    /// The records of nodes that were entered.
    pub records: BTreeMap<NodeId, Record>,
    /// The items that are out.
    pub items: Vec<OpenItem>,
}

/// The nodes whose records are read with a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// Those of all nodes that were entered.
    All,
    /// Those of nodes that are under way or have failed, of runs that are not over or have failed.
    Open,
    /// Those of nodes that are under way or have failed, of every run.
    Unsettled,
}

/// An item that is out.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenItem {
    /// Its id.
    pub id: ItemId,
    /// Its try.
    pub at: At,
    /// The work to do.
    pub work: Work,
    /// The role, the host, or the kind of ask.
    pub target: String,
    /// Says that somebody has it: "working" and not "waiting for a worker".
    pub is_leased: bool,
    /// Before when it may not be claimed.
    pub available_at: Timestamp,
    /// The newest generation of its lease.
    pub generation: i64,
    /// The number people say, of an ask.
    pub number: Option<i64>,
    /// The instance that holds it.
    pub instance: Option<String>,
    /// Until when.
    pub lease_until: Option<Timestamp>,
    /// When it was first put in its lane.
    pub created_at: Timestamp,
    /// When its holder claimed it.
    pub claimed_at: Option<Timestamp>,
}

/// News that did not fit.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusalRow {
    /// The item it came under.
    pub item: Option<ItemId>,
    /// The generation of the lease.
    pub generation: Option<i64>,
    /// The speaker and kind.
    pub name: String,
    /// Why it was refused.
    pub reason: String,
    /// The event that arrived.
    pub event: Event,
    /// When.
    pub at: Timestamp,
}

/// Sorts rows by the run that each is about; those of one run stay in their order.
fn group_by_run(rows: Vec<PgRow>) -> Result<BTreeMap<RunId, Vec<PgRow>>, StoreError> {
    let mut sorted: BTreeMap<RunId, Vec<PgRow>> = BTreeMap::new();
    for row in rows {
        sorted.entry(run_id(row.try_get("run")?)).or_default().push(row);
    }
    Ok(sorted)
}

fn view_of(run: RunRow, items: &[PgRow], nodes: Option<&PgRow>) -> Result<RunView, StoreError> {
    let items = items.iter().map(open_item).collect::<Result<_, _>>()?;
    let records = match nodes {
        Some(row) => records(row.try_get("names")?, row.try_get("records")?)?,
        None => BTreeMap::new(),
    };
    Ok(RunView { run, records, items })
}

fn open_item(row: &PgRow) -> Result<OpenItem, StoreError> {
    Ok(OpenItem {
        id: ItemId::new(row.try_get::<String, _>("id")?),
        at: at_of(row)?,
        work: from_json(row.try_get("work")?, "an item's work")?,
        target: row.try_get("target")?,
        is_leased: row.try_get::<&str, _>("state")? == "leased",
        available_at: time_at(row, "available_at")?,
        generation: row.try_get("generation")?,
        number: row.try_get("number")?,
        instance: row.try_get("instance")?,
        lease_until: optional_time_at(row, "lease_until")?,
        created_at: time_at(row, "created_at")?,
        claimed_at: optional_time_at(row, "claimed_at")?,
    })
}

/// The part of all runs that is wanted; all of them where nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedRuns<'a> {
    /// Those of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Those of the plans at this path.
    pub plan: Option<&'a str>,
    /// Those in this state, by the word that programs read.
    pub state: Option<&'a str>,
}

impl Store {
    /// Returns the database's time.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        let row = repeated!(self, connection => sqlx::query(NOW).fetch_one(&mut *connection))?;
        Ok(time_at(&row, "now")?)
    }

    /// Returns a run.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn run(&self, run: RunId) -> Result<RunRow, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, connection => sqlx::query(RUN).bind(id).fetch_optional(&mut *connection))?;
        RunRow::from_row(&row.ok_or_else(|| StoreError::not_found(format!("run {run}")))?)
    }

    /// Returns the run that a request made, where it made one.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn run_of_request(&self, request: RequestId) -> Result<Option<RunRow>, StoreError> {
        let key = request.to_string();
        let row = repeated!(self, connection => sqlx::query(RUN_OF_REQUEST).bind(&key).fetch_optional(&mut *connection))?;
        row.as_ref().map(RunRow::from_row).transpose()
    }

    /// Returns the newest run of a plan.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn newest_run_of(&self, plan: PlanId) -> Result<Option<RunRow>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(RUN_OF_PLAN).bind(plan.0).fetch_optional(&mut *connection))?;
        row.as_ref().map(RunRow::from_row).transpose()
    }

    /// Returns the run that was handed in so that a paused one goes on with its text, while it is not over.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn revision_waiting(&self, paused: RunId) -> Result<Option<RunRow>, StoreError> {
        let id = stored_run(paused);
        let row = repeated!(self, connection => sqlx::query(REVISION_WAITING).bind(id).fetch_optional(&mut *connection))?;
        row.as_ref().map(RunRow::from_row).transpose()
    }

    /// Returns the runs of a workspace, or of all, newest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs(
        &self,
        wanted: &WantedRuns<'_>,
        page: &Page<RunId>,
    ) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let workspace = wanted.workspace.map(|workspace| workspace.0);
        let before = page.after.map(stored_run);
        let rows = repeated!(self, connection => sqlx::query(RUNS)
            .bind(workspace)
            .bind(page.limit)
            .bind(before)
            .bind(wanted.plan)
            .bind(wanted.state)
            .fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Returns runs that wait for their workspace on this host, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn queued_runs(
        &self,
        host: &str,
        limit: i64,
    ) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RUNS_QUEUED).bind(host).bind(limit).fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Returns runs of a host's workspaces that are not over, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn open_runs(&self, host: &str, limit: i64) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RUNS_OPEN).bind(host).bind(limit).fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Returns the newest run of each plan of a host's workspaces, where it is over: at most so many of the newest.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_ended_last(
        &self,
        host: &str,
        limit: i64,
    ) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RUNS_ENDED_LAST).bind(host).bind(limit).fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Returns the runs of a host, of one workspace or of all, that have a worktree, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_with_worktrees(
        &self,
        host: &str,
        workspace: Option<WorkspaceId>,
        limit: i64,
    ) -> Result<Vec<RunRow>, StoreError> {
        let workspace = workspace.map(|workspace| workspace.0);
        let rows = repeated!(self, connection => sqlx::query(RUNS_WITH_WORKTREES)
            .bind(host)
            .bind(workspace)
            .bind(limit)
            .fetch_all(&mut *connection))?;
        rows.iter().map(RunRow::from_row).collect()
    }

    /// Returns the runs of a host that ended in a worktree at which nobody looked since, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_left_in_worktrees(
        &self,
        host: &str,
        limit: i64,
    ) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RUNS_LEFT_IN_WORKTREES)
            .bind(host)
            .bind(limit)
            .fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Counts the runs that are not over and the asks that are open, of all workspaces.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn open_counts(&self) -> Result<(u64, u64), StoreError> {
        let row = repeated!(self, connection => sqlx::query(OPEN_COUNTS).fetch_one(&mut *connection))?;
        let count = |name| row.try_get::<i64, _>(name).map(|count| u64::try_from(count).unwrap_or(0));
        Ok((count("runs")?, count("asks")?))
    }

    /// Returns a run with the records of its nodes and the items that are out.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn run_view(&self, run: RunId) -> Result<RunView, StoreError> {
        let row = self.run(run).await?;
        let id = stored_run(run);
        let items = repeated!(self, connection => sqlx::query(ITEMS).bind(id).fetch_all(&mut *connection))?;
        let nodes =
            repeated!(self, connection => sqlx::query(RECORDS).bind(id).fetch_optional(&mut *connection))?;
        view_of(row, &items, nodes.as_ref())
    }

    /// Returns runs with the records of their nodes and the items that are out, each by itself and in the order given. It
    /// takes as many statements as one run does.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn run_views(
        &self,
        runs: Vec<RunRow>,
        which: Records,
    ) -> Result<Vec<Result<RunView, Unread>>, StoreError> {
        let (is_all, is_open) = (which == Records::All, which == Records::Open);
        let is_over =
            |run: &RunRow| matches!(run.head.status, RunStatus::Ended { end: End::Done | End::Cancelled });
        let wanted = runs.iter().filter(|run| !is_open || !is_over(run)).map(|run| stored_run(run.id));
        let wanted: Vec<Uuid> = wanted.collect();
        let (mut items, mut nodes) = (Vec::new(), Vec::new());
        if !wanted.is_empty() {
            items = repeated!(self, connection => sqlx::query(ITEMS_OF_SOME).bind(&wanted).fetch_all(&mut *connection))?;
            nodes = repeated!(self, connection => sqlx::query(RECORDS_OF_SOME).bind(&wanted).bind(is_all).fetch_all(&mut *connection))?;
        }
        let (mut items, mut nodes) = (group_by_run(items)?, group_by_run(nodes)?);
        let views = runs.into_iter().map(|run| {
            let id = run.id;
            let (items, nodes) =
                (items.remove(&id).unwrap_or_default(), nodes.remove(&id).unwrap_or_default());
            view_of(run, &items, nodes.first()).map_err(|error| Unread::new(id, error))
        });
        Ok(views.collect())
    }

    /// Returns these runs, each by itself; those that are not there are left out.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn some_runs(&self, runs: &[RunId]) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        let ids = stored_runs(runs);
        let rows =
            repeated!(self, connection => sqlx::query(SOME_RUNS).bind(&ids).fetch_all(&mut *connection))?;
        RunRow::read_each(&rows)
    }

    /// Returns the news of a run that did not fit, oldest first: the newest hundred.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn refusals(&self, run: RunId) -> Result<Vec<RefusalRow>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(REFUSALS).bind(id).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                Ok(RefusalRow {
                    item: row.try_get::<Option<String>, _>("item")?.map(ItemId::new),
                    generation: row.try_get("generation")?,
                    name: row.try_get("name")?,
                    reason: row.try_get("reason")?,
                    event: from_json(row.try_get("body")?, "news that did not fit")?,
                    at: time_at(row, "at")?,
                })
            })
            .collect()
    }

    /// Returns the name of a run, also of one that does not read.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn name_of(&self, run: RunId) -> Result<String, StoreError> {
        Ok(self.run_meta(run).await?.name.clone())
    }

    /// Returns what never changes of a run, from the cache where it is there.
    pub(crate) async fn run_meta(&self, run: RunId) -> Result<Arc<RunMeta>, StoreError> {
        if let Some(meta) = self.cache().run(run) {
            return Ok(meta);
        }
        let id = stored_run(run);
        let row =
            repeated!(self, connection => sqlx::query(RUN_META).bind(id).fetch_optional(&mut *connection))?;
        let row = row.ok_or_else(|| StoreError::not_found(format!("run {run}")))?;
        let meta = Arc::new(RunMeta {
            name: row.try_get("name")?,
            plan: row.try_get("plan")?,
            plan_path: row.try_get("plan_path")?,
            host: row.try_get("host")?,
            workspace: row.try_get("path")?,
            graph: Digest::new(row.try_get::<String, _>("graph")?),
        });
        self.cache().keep_run(run, meta.clone());
        Ok(meta)
    }

    /// Returns the name of the other run that has the workspace of this one.
    pub(crate) async fn run_that_has_the_workspace_of(
        &self,
        run: RunId,
    ) -> Result<Option<String>, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, connection => sqlx::query(BUSY).bind(id).fetch_optional(&mut *connection))?;
        Ok(row.map(|row| row.try_get("name")).transpose()?)
    }
}
