//! A run as it stands: its row, with the worktree that it works in and the run around it.

use std::time::Duration;

use planctl_engine::{Budget, Digest, End, Head, ItemId, RunId, RunStatus, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::claimed::RunConfig;
use crate::error::{StoreError, Unread};
use crate::ids::{ApprovalId, PlanId, WorkspaceId};
use crate::rows::{from_json, optional_time_at, run_id, time_at};

/// A run as it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// Its name, as in `fix-auth-3`.
    pub name: String,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's path in the workspace.
    pub plan_path: String,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The host that has the workspace.
    pub host: String,
    /// The workspace's path on that host: the plan's file is there.
    pub workspace_path: String,
    /// The worktree that it works in, where that is not the workspace itself.
    pub worktree: Option<WorktreeRow>,
    /// The run around it, where it carries out a node of that one's plan.
    pub around: Option<AroundRow>,
    /// The revision that runs.
    pub revision: Digest,
    /// The digest of its compiled graph.
    pub graph: Digest,
    /// The approval under which it runs.
    pub approval: Option<ApprovalId>,
    /// The settings of its work as JSON.
    pub settings: String,
    /// Its counters and status.
    pub head: Head,
    /// The number of its newest line of history.
    pub seq: i64,
    /// The hash of that line.
    pub chain: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first had the workspace.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The database's time when this was read.
    pub read_at: Timestamp,
    /// When a process was last known to work on it, where that is a while ago.
    pub left_at: Option<Timestamp>,
    /// The person who has seen how it ended, and leaves it so.
    pub acknowledged_by: Option<String>,
}

impl RunRow {
    /// Returns its revision, approval and settings.
    pub fn run_config(&self) -> RunConfig {
        RunConfig {
            revision: self.revision.clone(),
            approval: self.approval,
            settings: self.settings.clone(),
        }
    }
}

impl RunRow {
    /// Returns the time of its budget that was used. It stands still while nobody works on the run.
    pub fn time_spent(&self) -> Duration {
        self.head.time_spent(self.left_at.unwrap_or(self.read_at))
    }

    /// Says that it failed by itself, and that no person has acknowledged that. A run within another is that one's matter.
    pub fn awaits_acknowledgement(&self) -> bool {
        let has_failed = self.head.status == RunStatus::Ended { end: End::Failed };
        has_failed && self.around.is_none() && self.acknowledged_by.is_none()
    }

    /// Returns the folder where its steps and contracts work, or will.
    pub fn place(&self) -> &str {
        let around = self.around.as_ref().map_or(&self.workspace_path, |around| &around.place);
        self.worktree.as_ref().map_or(around, |worktree| &worktree.path)
    }

    /// Returns the folder whose files its contracts see at present: that of the plan until its worktree is made.
    pub fn present_folder(&self) -> &str {
        if self.is_in_worktree() || self.around.is_some() { self.place() } else { &self.workspace_path }
    }

    /// Says that it is not over and carries out a node of another run's plan.
    pub fn is_under_way_within(&self) -> bool {
        self.around.is_some() && !matches!(self.head.status, RunStatus::Ended { .. })
    }

    /// Says that it is not over and works in a worktree that was made.
    pub fn is_in_worktree(&self) -> bool {
        let is_there = |worktree: &WorktreeRow| worktree.made_at.is_some() && worktree.removed_at.is_none();
        let is_over = matches!(self.head.status, RunStatus::Ended { end: End::Done | End::Cancelled });
        !is_over && self.worktree.as_ref().is_some_and(is_there)
    }

    /// Reads rows of several runs, each by itself.
    pub(super) fn read_each(rows: &[PgRow]) -> Result<Vec<Result<RunRow, Unread>>, StoreError> {
        rows.iter()
            .map(|row| {
                let run = run_id(row.try_get("id")?);
                Ok(RunRow::from_row(row).map_err(|error| Unread::new(run, error)))
            })
            .collect()
    }

    pub(crate) fn from_row(row: &PgRow) -> Result<RunRow, StoreError> {
        let id = run_id(row.try_get("id")?);
        RunRow::of(id, row).map_err(|error| error.in_run(id))
    }

    fn of(id: RunId, row: &PgRow) -> Result<RunRow, StoreError> {
        Ok(RunRow {
            id,
            name: row.try_get("name")?,
            plan: PlanId(row.try_get("plan")?),
            plan_path: row.try_get("plan_path")?,
            workspace: WorkspaceId(row.try_get("workspace")?),
            host: row.try_get("host")?,
            workspace_path: row.try_get("workspace_path")?,
            worktree: WorktreeRow::from_row(row)?,
            around: AroundRow::from_row(row)?,
            revision: Digest::new(row.try_get::<String, _>("revision")?),
            graph: Digest::new(row.try_get::<String, _>("graph")?),
            approval: row.try_get::<Option<i64>, _>("approval")?.map(ApprovalId),
            settings: row.try_get("settings")?,
            head: from_json(row.try_get("head")?, "a run's head")?,
            seq: row.try_get("seq")?,
            chain: row.try_get("chain")?,
            created_at: time_at(row, "created_at")?,
            started_at: optional_time_at(row, "started_at")?,
            ended_at: optional_time_at(row, "ended_at")?,
            read_at: time_at(row, "now")?,
            left_at: optional_time_at(row, "left_at")?,
            acknowledged_by: row.try_get("acknowledged_by")?,
        })
    }
}

/// A run's worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorktreeRow {
    /// Its top.
    pub root: String,
    /// Where steps work.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it began with.
    pub base: String,
    /// When all of its files were there; before that nothing works in it.
    pub made_at: Option<Timestamp>,
    /// Why it could not be made; once its run is done, why a person should not merge what it holds.
    pub trouble: Option<String>,
    /// How many changes of the workspace were committed nowhere when it was made, and are not in it.
    pub left_behind: i32,
    /// The commit of its branch when the run ended.
    pub result: Option<String>,
    /// How many changes it held then that are in no commit.
    pub uncommitted: Option<i32>,
    /// How far the run had come then.
    pub seen_seq: Option<i64>,
    /// When it was removed.
    pub removed_at: Option<Timestamp>,
}

impl WorktreeRow {
    /// Reads the columns of a run's worktree, where it has one.
    pub(crate) fn from_row(row: &PgRow) -> Result<Option<WorktreeRow>, StoreError> {
        let Some(root) = row.try_get("root")? else { return Ok(None) };
        Ok(Some(WorktreeRow {
            root,
            path: row.try_get("place")?,
            branch: row.try_get("branch")?,
            base: row.try_get("base")?,
            made_at: optional_time_at(row, "made_at")?,
            trouble: row.try_get("trouble")?,
            left_behind: row.try_get("left_behind")?,
            result: row.try_get("result")?,
            uncommitted: row.try_get("uncommitted")?,
            seen_seq: row.try_get("seen_seq")?,
            removed_at: optional_time_at(row, "removed_at")?,
        }))
    }
}

/// The run around another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AroundRow {
    /// The run.
    pub run: RunId,
    /// The item of that run that waits.
    pub item: ItemId,
    /// Where the run within works.
    pub place: String,
    /// How many plans are around the run within.
    pub depth: i32,
    /// The budget that was left for the run within when it was made.
    pub budget: Budget,
}

impl AroundRow {
    /// Reads the columns of the run around another, where there is one.
    pub(crate) fn from_row(row: &PgRow) -> Result<Option<AroundRow>, StoreError> {
        let Some(parent) = row.try_get("parent")? else { return Ok(None) };
        Ok(Some(AroundRow {
            run: run_id(parent),
            item: ItemId::new(row.try_get::<String, _>("parent_item")?),
            place: row.try_get("nested_place")?,
            depth: row.try_get("depth")?,
            budget: match row.try_get::<Option<&str>, _>("nested_budget")? {
                Some(budget) => from_json(budget, "what was left for a run")?,
                None => Budget::default(),
            },
        }))
    }
}
