//! Worktrees of runs that work apart: where each is, and what became of it.

use planctl_engine::RunId;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::stored_run;
use crate::runs::RunRow;
use crate::store::Store;

pub(crate) const WORKTREE_MADE: &str = "update worktrees set made_at = coalesce(made_at, clock_timestamp()), trouble = null \
     where run = $1";
pub(crate) const WORKTREE_TROUBLE: &str = "update worktrees set trouble = $2 where run = $1 and made_at is null \
     and trouble is distinct from $2";
pub(crate) const WORKTREE_RESULT: &str =
    "update worktrees set result = $2, uncommitted = $3, seen_seq = $4, trouble = $5 where run = $1";
pub(crate) const WORKTREE_BASE: &str =
    "update worktrees set base = $2, left_behind = $3 where run = $1 and made_at is null";
pub(crate) const WORKTREE_AGAIN: &str = "update worktrees set trouble = null where run = $1";
pub(crate) const WORKTREE_REMOVED: &str =
    "update worktrees set removed_at = coalesce(removed_at, clock_timestamp()) where run = $1";

/// The state of a run's worktree when the run ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorktreeResult {
    /// The commit of its branch; none of one that can't be looked at.
    pub commit: Option<String>,
    /// How many changes are in no commit.
    pub uncommitted: Option<usize>,
    /// Why a person should not merge it.
    pub trouble: Option<String>,
}

/// Postgres keeps no NUL in a text.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl Store {
    /// Lets a run's worktree begin with another commit, unless it is made already.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn set_worktree_base(
        &self,
        run: RunId,
        base: &str,
        left_behind: usize,
    ) -> Result<(), StoreError> {
        let (id, left_behind) = (stored_run(run), i32::try_from(left_behind).unwrap_or(i32::MAX));
        repeated!(self, connection => sqlx::query(WORKTREE_BASE)
            .bind(id)
            .bind(base)
            .bind(left_behind)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Notes that a run's worktree is there with all its files.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn mark_worktree_made(&self, run: RunId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, connection => sqlx::query(WORKTREE_MADE).bind(id).execute(&mut *connection))?;
        Ok(())
    }

    /// Notes why a run's worktree could not be made.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn record_worktree_trouble(&self, run: RunId, what: &str) -> Result<(), StoreError> {
        let id = stored_run(run);
        let what = without_nul(what);
        repeated!(self, connection => sqlx::query(WORKTREE_TROUBLE).bind(id).bind(&what).execute(&mut *connection))?;
        Ok(())
    }

    /// Lets a run's worktree be tried again that could not be made.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn retry_worktree(&self, run: RunId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, connection => sqlx::query(WORKTREE_AGAIN).bind(id).execute(&mut *connection))?;
        Ok(())
    }

    /// Notes what a run's worktree held when the run had come so far.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn record_worktree_result(
        &self,
        run: &RunRow,
        result: &WorktreeResult,
    ) -> Result<(), StoreError> {
        let id = stored_run(run.id);
        let uncommitted = result.uncommitted.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
        let trouble = result.trouble.as_ref().map(|trouble| without_nul(trouble));
        repeated!(self, connection => sqlx::query(WORKTREE_RESULT)
            .bind(id)
            .bind(&result.commit)
            .bind(uncommitted)
            .bind(run.seq)
            .bind(&trouble)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Notes that a run's worktree was removed on request.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn mark_worktree_removed(&self, run: RunId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, connection => sqlx::query(WORKTREE_REMOVED).bind(id).execute(&mut *connection))?;
        Ok(())
    }
}
