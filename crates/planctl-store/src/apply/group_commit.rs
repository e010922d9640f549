//! Group commit: transitions that are decided while others are being written are written together, in one transaction.
//!
//! A commit costs the server much the same for one transition as for several, so a busy process writes more with fewer
//! commits, and an idle one waits for nothing: a transition that arrives alone is written at once. One commit is under way at
//! a time. Where it fails, each of its transitions is decided again and written alone, so that one stale report spoils no
//! other.

use std::collections::BTreeMap;

use planctl_engine::RunId;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::oneshot;

use crate::commit_queue::{CommitError, Queued};
use crate::rows::run_id;
use crate::store::Store;

/// The task that writes batches. Where it is dropped before the queue is empty, it drops the queue, and with it the senders
/// for which the callers wait.
struct Batcher {
    store: Store,
    is_done: bool,
}

impl Drop for Batcher {
    fn drop(&mut self) {
        if !self.is_done {
            self.store.commit_queue().clear();
        }
    }
}

impl Batcher {
    /// Writes until the queue is empty. It is a task of its own: a caller may be dropped while others wait for their answers.
    async fn run(mut self) {
        while let Some((batch, conflicting)) = self.store.commit_queue().take_batch() {
            let all: Vec<&str> = batch.iter().map(|queued| queued.transition.as_str()).collect();
            match self.store.commit(&all).await {
                Ok(rows) => answer_each(batch, rows),
                Err(error) => match <[Queued; 1]>::try_from(batch) {
                    Ok([alone]) => alone.answer(Err(CommitError::Failed(error))),
                    // Each caller learns of it as its sender is dropped.
                    Err(batch) => {
                        tracing::debug!(%error, transitions = batch.len(), "a batch failed; each is written alone");
                    }
                },
            }
            conflicting.into_iter().for_each(|queued| queued.answer(Err(CommitError::Conflict)));
        }
        self.is_done = true;
    }
}

fn answer_each(batch: Vec<Queued>, rows: Vec<PgRow>) {
    let mut queued: BTreeMap<RunId, Queued> = batch.into_iter().map(|queued| (queued.run, queued)).collect();
    for row in rows {
        let answer = (row.try_get("run"), row.try_get("is_late"));
        let (Ok(run), Ok(is_late)) = answer else { continue };
        if let Some(queued) = queued.remove(&run_id(run)) {
            queued.answer(if is_late { Err(CommitError::Conflict) } else { Ok(row) });
        }
    }
}

impl Store {
    /// Writes a transition together with others that are decided at the same time.
    pub(super) async fn commit_with_others(
        &self,
        run: RunId,
        transition: String,
    ) -> Result<PgRow, CommitError> {
        let (answer, answered) = oneshot::channel();
        if self.commit_queue().push(Queued { run, transition, answer }) {
            tokio::spawn(Batcher { store: self.clone(), is_done: false }.run());
        }
        answered.await.unwrap_or(Err(CommitError::Unknown))
    }
}
