//! The place of revisions in the library: the entry that each was made of, how its runs ended, and which plan follows them.

use std::collections::BTreeMap;

use planctl_engine::{Digest, End, Head, RunId, RunStatus};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::{PlanId, WorkspaceId};
use crate::rows::{from_json, run_id, stored_run};
use crate::store::Store;

pub(crate) const PLACE: &str = "insert into library_places (plan, digest, entry, next) values ($1, $2, $3, $4) \
     on conflict (plan, digest) do update set entry = excluded.entry, next = excluded.next";
pub(crate) const ENDED_RUNS: &str = "select l.entry, r.head::text as head from library_places l \
     join plans p on p.id = l.plan join runs r on r.plan = l.plan and r.revision = l.digest \
     where p.workspace = $1 and l.entry is not null and r.ended_at is not null order by r.id desc limit $2";
/// Of a run within another one nothing follows but that one's next step.
pub(crate) const TO_FOLLOW: &str = "select r.id, l.next from library_places l \
     join runs r on r.plan = l.plan and r.revision = l.digest join workspaces w on w.id = r.workspace \
     where l.next is not null and r.ended_at is not null and r.head -> 'status' ->> 'end' = 'done' and w.host = $1 \
       and ($2::bigint is null or r.workspace = $2) and not exists (select from follow_ups f where f.run = r.id) \
       and not exists (select from sub_plans c where c.run = r.id) order by r.id limit $3";
pub(crate) const FOLLOWED: &str =
    "insert into follow_ups (run, made, trouble) values ($1, $2, $3) on conflict (run) do nothing";
pub(crate) const FOLLOW_UP: &str =
    "select f.trouble, r.name from follow_ups f left join runs r on r.id = f.made where f.run = $1";

/// The most ended runs that are looked at.
const ENDED_MAX: i64 = 2_000;

/// How the newest runs of one entry's plans ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndedRuns {
    /// How many ended; cancelled ones are left out.
    pub ended: u32,
    /// How many of these were done.
    pub done: u32,
}

/// A run that is done, and the plan that is to follow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToFollow {
    /// The run.
    pub run: RunId,
    /// The plan, as its own plan names it.
    pub next: String,
}

/// The run that follows another one, or the reason that none does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowUp {
    /// The name of the run that was made.
    pub run: Option<String>,
    /// Why none was made.
    pub trouble: Option<String>,
}

impl Store {
    /// Records the place of a revision in the library.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn place_in_library(
        &self,
        plan: PlanId,
        digest: &Digest,
        entry: Option<&str>,
        next: Option<&str>,
    ) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(PLACE)
            .bind(plan.0)
            .bind(digest.as_str())
            .bind(entry)
            .bind(next)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Says how the newest runs of each entry's plans ended in a workspace, at most so many of each.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn ended_runs(
        &self,
        workspace: WorkspaceId,
        of_each: u32,
    ) -> Result<BTreeMap<String, EndedRuns>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(ENDED_RUNS)
            .bind(workspace.0)
            .bind(ENDED_MAX)
            .fetch_all(&mut *connection))?;
        let mut ended: BTreeMap<String, EndedRuns> = BTreeMap::new();
        for row in rows {
            let head: Head = from_json(row.try_get("head")?, "run head")?;
            let RunStatus::Ended { end } = head.status else { continue };
            let of_entry = ended.entry(row.try_get("entry")?).or_default();
            if of_entry.ended >= of_each || end == End::Cancelled {
                continue;
            }
            of_entry.ended += 1;
            of_entry.done += u32::from(end == End::Done);
        }
        Ok(ended)
    }

    /// Returns runs of a host that are done, that another plan is to follow, and that were not looked at yet.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn to_follow(
        &self,
        host: &str,
        workspace: Option<WorkspaceId>,
        limit: i64,
    ) -> Result<Vec<ToFollow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(TO_FOLLOW)
            .bind(host)
            .bind(workspace.map(|workspace| workspace.0))
            .bind(limit)
            .fetch_all(&mut *connection))?;
        let read = |row: &sqlx::postgres::PgRow| {
            Ok(ToFollow { run: run_id(row.try_get("id")?), next: row.try_get("next")? })
        };
        rows.iter().map(read).collect()
    }

    /// Records that a run was followed by another, or why it was not; the first record stays.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn record_follow_up(&self, run: RunId, made: Result<RunId, &str>) -> Result<(), StoreError> {
        let (made, trouble) = match made {
            Ok(made) => (Some(stored_run(made)), None),
            Err(trouble) => (None, Some(trouble)),
        };
        repeated!(self, connection => sqlx::query(FOLLOWED)
            .bind(stored_run(run))
            .bind(made)
            .bind(trouble)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Returns what came of a run that another plan was to follow, where it was looked at.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn follow_up(&self, run: RunId) -> Result<Option<FollowUp>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(FOLLOW_UP).bind(stored_run(run)).fetch_optional(&mut *connection))?;
        let read = |row: sqlx::postgres::PgRow| {
            Ok(FollowUp { run: row.try_get("name")?, trouble: row.try_get("trouble")? })
        };
        row.map(read).transpose()
    }
}
