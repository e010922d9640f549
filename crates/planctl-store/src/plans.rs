//! Plans, their revisions, the moves of their status, and approvals.

mod approvals;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use planctl_engine::{Digest, Graph, Timestamp};
use sha2::{Digest as _, Sha256};
use sqlx::postgres::PgRow;
use sqlx::{Connection, PgConnection, Row};

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::{PlanId, WorkspaceId};
use crate::page::Page;
use crate::rows::{from_json, optional_time_at, time_at, to_json};
use crate::store::Store;
pub(crate) use approvals::{APPROVAL, APPROVAL_FOR, APPROVAL_OF_NONCE, APPROVE, VOID_OTHERS};
pub use approvals::{Approval, NewApproval};
pub use status::PlanStatus;

pub(crate) const WORKSPACE: &str = "insert into workspaces (host, path) values ($1, $2) \
     on conflict (host, path) do update set path = excluded.path returning id";
pub(crate) const FIND_WORKSPACE: &str = "select id from workspaces where host = $1 and path = $2";
pub(crate) const OTHER_WORKSPACES: &str =
    "select path from workspaces where host = $1 and path <> $2 order by path limit $3";
/// Ids are counted from 1.
const NO_WORKSPACE: i64 = 0;
pub(crate) const KEEP_GRAPH: &str =
    "insert into graphs (digest, body) values ($1, $2::json) on conflict (digest) do nothing";
pub(crate) const KEEP_REVISION: &str = "insert into revisions (plan, digest, source, graph) values ($1, $2, $3, $4) \
     on conflict (plan, digest) do update set source = excluded.source, graph = excluded.graph";
pub(crate) const PLAN_FOR_UPDATE: &str =
    "select id, status, digest from plans where workspace = $1 and path = $2 for update";
pub(crate) const NEW_PLAN: &str = "insert into plans (workspace, path, digest) values ($1, $2, $3) \
     on conflict (workspace, path) do nothing";
pub(crate) const PLAN_STATUS_FOR_UPDATE: &str =
    "select id, status, digest from plans where id = $1 for update";
pub(crate) const MOVE_PLAN: &str =
    "update plans set status = $2, digest = $3, updated_at = clock_timestamp() where id = $1";
/// Why a plan whose text was saved anew is a draft.
pub const TEXT_CHANGED: &str = "the text changed";

pub(crate) const RECORD_MOVE: &str = "insert into plan_transitions (plan, from_status, to_status, by, why, digest) \
     values ($1, $2, $3, $4, $5, $6)";
pub(crate) const GRAPH: &str = "select body::text as body from graphs where digest = $1";
pub(crate) const SOME_GRAPHS: &str = "select digest, body::text as body from graphs where digest = any($1)";
pub(crate) const REVISION: &str =
    "select source, graph, created_at from revisions where plan = $1 and digest = $2";
/// A text is rejected where its plan is a draft again for another cause than a changed text or a revision that was asked for.
pub(crate) const REVISIONS: &str = "select r.digest, r.created_at, a.by as approved_by, a.at as approved_at, a.note as approved_note, \
     t.by as rejected_by, t.at as rejected_at, t.why as rejected_note from revisions r \
     left join lateral (select by, at, note from approvals where plan = r.plan and digest = r.digest order by id desc limit 1) a on true \
     left join lateral (select by, at, why from plan_transitions where plan = r.plan and digest = r.digest and to_status = 'draft' \
     and why not in ('the text changed', 'a revision was asked for') order by id desc limit 1) t on true \
     where r.plan = $1 and ($2::text is null \
     or (r.created_at, r.digest) < (select created_at, digest from revisions where plan = $1 and digest = $2)) \
     order by r.created_at desc, r.digest desc limit $3";
macro_rules! plans_where {
    ($which:literal) => {
        concat!(
            "select p.id, p.workspace, w.host, w.path as workspace_path, p.path, p.status, p.digest, r.graph, p.created_at, ",
            "p.updated_at from plans p join workspaces w on w.id = p.workspace ",
            "join revisions r on r.plan = p.id and r.digest = p.digest where ",
            $which
        )
    };
}
pub(crate) const PLAN: &str = plans_where!("p.id = $1");
pub(crate) const PLAN_AT: &str = plans_where!("p.workspace = $1 and p.path = $2");
pub(crate) const PLANS: &str = plans_where!(
    "($1::bigint is null or p.workspace = $1) and ($2::bigint is null or p.id < $2) order by p.id desc limit $3"
);
pub(crate) const PLAN_MOVES: &str = "select from_status, to_status, by, why, digest, at from plan_transitions \
     where plan = $1 order by id";

/// One exact text of a plan, to be kept.
#[derive(Clone, Debug)]
pub struct NewRevision<'a> {
    /// Where the plan lies.
    pub workspace: WorkspaceId,
    /// Its path, relative to the workspace.
    pub path: &'a str,
    /// The digest of its canonical text.
    pub digest: &'a Digest,
    /// Its text.
    pub source: &'a str,
    /// The graph that it compiles to.
    pub graph: &'a Graph,
    /// The author, for the record.
    pub by: &'a str,
}

/// A plan as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Its id.
    pub id: PlanId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The host that has the workspace.
    pub host: String,
    /// The workspace's path on that host.
    pub workspace_path: String,
    /// Its path, relative to the workspace.
    pub path: String,
    /// Where it stands.
    pub status: PlanStatus,
    /// Its newest revision.
    pub digest: Digest,
    /// The digest of the graph that this revision compiles to.
    pub graph: Digest,
    /// When it was first seen.
    pub created_at: Timestamp,
    /// When its status or revision last changed.
    pub updated_at: Timestamp,
}

/// One exact text of a plan, as kept.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Its text.
    pub source: String,
    /// The graph that it compiles to.
    pub graph: Arc<Graph>,
    /// When it was first kept.
    pub created_at: Timestamp,
}

/// A kept text of a plan, and the newest decisions about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevisionRow {
    /// Its digest.
    pub digest: Digest,
    /// When it was first kept.
    pub created_at: Timestamp,
    /// Its approval, whether or not that still holds.
    pub approved: Option<TextDecision>,
    /// Its rejection.
    pub rejected: Option<TextDecision>,
}

/// A decision about a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextDecision {
    /// The person, or the policy.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub note: Option<String>,
}

/// One move of a plan's status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanMoved {
    /// Where it stood.
    pub from: PlanStatus,
    /// Where it went.
    pub to: PlanStatus,
    /// The person who moved it.
    pub by: String,
    /// Why.
    pub why: String,
    /// Its revision then.
    pub digest: Digest,
    /// When.
    pub at: Timestamp,
}

fn status_at(row: &PgRow, column: &str) -> Result<PlanStatus, StoreError> {
    let word: &str = row.try_get(column)?;
    PlanStatus::from_word(word).ok_or_else(|| StoreError::corrupt(format!("a plan's status is `{word}`")))
}

pub(crate) fn digest_at(row: &PgRow, column: &str) -> Result<Digest, StoreError> {
    Ok(Digest::new(row.try_get::<String, _>(column)?))
}

impl Plan {
    fn from_row(row: &PgRow) -> Result<Plan, StoreError> {
        Ok(Plan {
            id: PlanId(row.try_get("id")?),
            workspace: WorkspaceId(row.try_get("workspace")?),
            host: row.try_get("host")?,
            workspace_path: row.try_get("workspace_path")?,
            path: row.try_get("path")?,
            status: status_at(row, "status")?,
            digest: digest_at(row, "digest")?,
            graph: digest_at(row, "graph")?,
            created_at: time_at(row, "created_at")?,
            updated_at: time_at(row, "updated_at")?,
        })
    }
}

/// Reads the stored text of a graph of this digest.
pub(crate) fn graph_of_text(digest: &Digest, body: &str) -> Result<Graph, StoreError> {
    if graph_digest(body) != *digest {
        return Err(StoreError::corrupt(format!("graph {digest} is not what was stored")));
    }
    from_json(body, "a graph")
}

/// Computes the digest under which a compiled graph is kept.
fn graph_digest(body: &str) -> Digest {
    Digest::of_sha256(&Sha256::digest(body))
}

fn revision_row(row: &PgRow) -> Result<RevisionRow, StoreError> {
    let decision = |by: &str, at: &str, note: &str| {
        let Some(at) = optional_time_at(row, at)? else { return Ok::<_, StoreError>(None) };
        Ok(Some(TextDecision { by: row.try_get(by)?, at, note: row.try_get(note)? }))
    };
    Ok(RevisionRow {
        digest: digest_at(row, "digest")?,
        created_at: time_at(row, "created_at")?,
        approved: decision("approved_by", "approved_at", "approved_note")?,
        rejected: decision("rejected_by", "rejected_at", "rejected_note")?,
    })
}

impl Store {
    /// Returns the id of a workspace; inserts a row for an unknown one.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn workspace(&self, host: &str, path: &str) -> Result<WorkspaceId, StoreError> {
        let row = repeated!(self, connection => sqlx::query(WORKSPACE).bind(host).bind(path).fetch_one(&mut *connection))?;
        Ok(WorkspaceId(row.try_get("id")?))
    }

    /// Returns the id of a workspace without inserting it. An unknown workspace gets an id that no row has.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn find_workspace(&self, host: &str, path: &str) -> Result<WorkspaceId, StoreError> {
        let found = repeated!(self, connection => sqlx::query(FIND_WORKSPACE).bind(host).bind(path).fetch_optional(&mut *connection))?;
        let id = found.map(|row| row.try_get("id")).transpose()?;
        Ok(WorkspaceId(id.unwrap_or(NO_WORKSPACE)))
    }

    /// Returns the paths of the workspaces of a host but for one, at most `limit`.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn other_workspaces(
        &self,
        host: &str,
        path: &str,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(OTHER_WORKSPACES)
            .bind(host)
            .bind(path)
            .bind(limit)
            .fetch_all(&mut *connection))?;
        Ok(rows.iter().map(|row| row.try_get("path")).collect::<Result<_, _>>()?)
    }

    /// Keeps a revision and makes it the plan's newest. A changed text makes the plan a draft and voids approvals of
    /// other texts; a run that is under way goes on with its own.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn save_revision(&self, revision: &NewRevision<'_>) -> Result<Plan, StoreError> {
        let body = to_json(revision.graph);
        let digest = graph_digest(&body);
        let id: i64 = repeated!(self, connection => save_on(&mut connection, revision, &body, &digest))?;
        self.plan(PlanId(id)).await
    }

    /// Returns a plan.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn plan(&self, plan: PlanId) -> Result<Plan, StoreError> {
        let row =
            repeated!(self, connection => sqlx::query(PLAN).bind(plan.0).fetch_optional(&mut *connection))?;
        Plan::from_row(&row.ok_or_else(|| StoreError::not_found(format!("plan {}", plan.0)))?)
    }

    /// Returns the plan at a path of a workspace, where it is known.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn plan_at(&self, workspace: WorkspaceId, path: &str) -> Result<Option<Plan>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(PLAN_AT).bind(workspace.0).bind(path).fetch_optional(&mut *connection))?;
        row.as_ref().map(Plan::from_row).transpose()
    }

    /// Returns the plans of a workspace, or of all, in every status; the newest comes first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn plans(
        &self,
        workspace: Option<WorkspaceId>,
        page: &Page<i64>,
    ) -> Result<Vec<Plan>, StoreError> {
        let workspace = workspace.map(|workspace| workspace.0);
        let rows = repeated!(self, connection => sqlx::query(PLANS)
            .bind(workspace)
            .bind(page.after)
            .bind(page.limit)
            .fetch_all(&mut *connection))?;
        rows.iter().map(Plan::from_row).collect()
    }

    /// Moves a plan's status and records who did it and why. A plan that is there already stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::IllegalTransition`] (P-26), [`StoreError::NotFound`] and those of the connection.
    pub async fn move_plan(
        &self,
        plan: PlanId,
        to: PlanStatus,
        by: &str,
        why: &str,
    ) -> Result<PlanStatus, StoreError> {
        let outcome: Result<PlanStatus, StoreError> =
            repeated!(self, connection => move_on(&mut connection, plan, to, by, why))?;
        outcome
    }

    /// Returns the moves of a plan's status, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn plan_moves(&self, plan: PlanId) -> Result<Vec<PlanMoved>, StoreError> {
        let rows =
            repeated!(self, connection => sqlx::query(PLAN_MOVES).bind(plan.0).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                Ok(PlanMoved {
                    from: status_at(row, "from_status")?,
                    to: status_at(row, "to_status")?,
                    by: row.try_get("by")?,
                    why: row.try_get("why")?,
                    digest: digest_at(row, "digest")?,
                    at: time_at(row, "at")?,
                })
            })
            .collect()
    }

    /// Returns a kept revision of a plan.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Corrupt`] where its graph does not read, and those of the connection.
    pub async fn revision(&self, plan: PlanId, digest: &Digest) -> Result<Revision, StoreError> {
        let row = repeated!(self, connection => sqlx::query(REVISION).bind(plan.0).bind(digest.as_str()).fetch_optional(&mut *connection))?;
        let row = row.ok_or_else(|| StoreError::not_found(format!("revision {digest}")))?;
        Ok(Revision {
            source: row.try_get("source")?,
            graph: self.graph(&digest_at(&row, "graph")?).await?,
            created_at: time_at(&row, "created_at")?,
        })
    }

    /// Returns a plan's revisions with what was decided about each, newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a row does not read, and those of the connection.
    pub async fn revisions(&self, plan: PlanId, page: &Page<Digest>) -> Result<Vec<RevisionRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(REVISIONS)
            .bind(plan.0)
            .bind(page.after.as_ref().map(Digest::as_str))
            .bind(page.limit)
            .fetch_all(&mut *connection))?;
        rows.iter().map(revision_row).collect()
    }

    pub(crate) async fn graph_of_revision(&self, plan: i64, revision: &Digest) -> Result<Digest, StoreError> {
        let row = repeated!(self, connection => sqlx::query(REVISION).bind(plan).bind(revision.as_str()).fetch_optional(&mut *connection))?;
        digest_at(&row.ok_or_else(|| StoreError::not_found(format!("revision {revision}")))?, "graph")
    }

    /// Reads compiled graphs into the cache, those that are not there yet, by one statement. A graph that does not read is
    /// told to those who ask for it.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn cache_graphs<'a>(
        &self,
        digests: impl Iterator<Item = &'a Digest>,
    ) -> Result<(), StoreError> {
        let missing = digests.filter(|digest| self.cache().graph(digest).is_none()).map(Digest::as_str);
        let missing: Vec<&str> = missing.collect::<BTreeSet<_>>().into_iter().collect();
        if missing.len() < 2 {
            return Ok(());
        }
        let rows = repeated!(self, connection => sqlx::query(SOME_GRAPHS).bind(&missing).fetch_all(&mut *connection))?;
        for row in rows {
            let (digest, body) = (digest_at(&row, "digest")?, row.try_get::<String, _>("body")?);
            if let Ok(graph) = graph_of_text(&digest, &body) {
                self.cache().keep_graph(digest, Arc::new(graph), body.len());
            }
        }
        Ok(())
    }

    /// Returns the compiled graph of this digest, from the cache where it is there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where it does not read, and those of the connection.
    pub async fn graph(&self, digest: &Digest) -> Result<Arc<Graph>, StoreError> {
        match self.cache().graph(digest) {
            Some(graph) => Ok(graph),
            None => self.stored_graph(digest).await,
        }
    }

    /// Returns the stored text of a graph, whose digest is taken over it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where there is none, and those of the connection.
    pub async fn graph_text(&self, digest: &Digest) -> Result<String, StoreError> {
        let row = repeated!(self, connection => sqlx::query(GRAPH).bind(digest.as_str()).fetch_optional(&mut *connection))?;
        let row = row.ok_or_else(|| StoreError::corrupt(format!("graph {digest} is missing")))?;
        Ok(row.try_get("body")?)
    }

    /// Returns the compiled graph of this digest as it is stored; one that was changed there reads as corrupt.
    pub(crate) async fn stored_graph(&self, digest: &Digest) -> Result<Arc<Graph>, StoreError> {
        let body = self.graph_text(digest).await?;
        let graph = Arc::new(graph_of_text(digest, &body)?);
        self.cache().keep_graph(digest.clone(), graph.clone(), body.len());
        Ok(graph)
    }
}

async fn save_on(
    connection: &mut PgConnection,
    revision: &NewRevision<'_>,
    body: &str,
    graph: &Digest,
) -> Result<i64, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query(NEW_PLAN)
        .bind(revision.workspace.0)
        .bind(revision.path)
        .bind(revision.digest.as_str())
        .execute(&mut *transaction)
        .await?;
    let row = sqlx::query(PLAN_FOR_UPDATE)
        .bind(revision.workspace.0)
        .bind(revision.path)
        .fetch_one(&mut *transaction)
        .await?;
    let plan: i64 = row.try_get("id")?;
    sqlx::query(KEEP_GRAPH).bind(graph.as_str()).bind(body).execute(&mut *transaction).await?;
    sqlx::query(KEEP_REVISION)
        .bind(plan)
        .bind(revision.digest.as_str())
        .bind(revision.source)
        .bind(graph.as_str())
        .execute(&mut *transaction)
        .await?;
    if row.try_get::<&str, _>("digest")? != revision.digest.as_str() {
        let from: &str = row.try_get("status")?;
        let draft = PlanStatus::Draft.as_str();
        sqlx::query(MOVE_PLAN)
            .bind(plan)
            .bind(draft)
            .bind(revision.digest.as_str())
            .execute(&mut *transaction)
            .await?;
        if from != draft {
            sqlx::query(RECORD_MOVE)
                .bind(plan)
                .bind(from)
                .bind(draft)
                .bind(revision.by)
                .bind(TEXT_CHANGED)
                .bind(revision.digest.as_str())
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query(VOID_OTHERS)
            .bind(plan)
            .bind(revision.digest.as_str())
            .bind(TEXT_CHANGED)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(plan)
}

async fn move_on(
    connection: &mut PgConnection,
    plan: PlanId,
    to: PlanStatus,
    by: &str,
    why: &str,
) -> Result<Result<PlanStatus, StoreError>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let row = sqlx::query(PLAN_STATUS_FOR_UPDATE).bind(plan.0).fetch_optional(&mut *transaction).await?;
    let Some(row) = row else {
        return Ok(Err(StoreError::not_found(format!("plan {}", plan.0))));
    };
    let from = match status_at(&row, "status") {
        Ok(from) => from,
        Err(error) => return Ok(Err(error)),
    };
    let digest: &str = row.try_get("digest")?;
    if from != to {
        if !from.may_become(to) {
            let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
            transaction.rollback().await?;
            return Ok(Err(StoreError::IllegalTransition { from, to }));
        }
        sqlx::query(MOVE_PLAN).bind(plan.0).bind(to.as_str()).bind(digest).execute(&mut *transaction).await?;
        sqlx::query(RECORD_MOVE)
            .bind(plan.0)
            .bind(from.as_str())
            .bind(to.as_str())
            .bind(by)
            .bind(why)
            .bind(digest)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(Ok(from))
}
