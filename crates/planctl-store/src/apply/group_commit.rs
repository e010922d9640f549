//! Group commit: transitions that are decided while others are being written are written together, in one transaction.
//!
//! A commit costs the server much the same for one transition as for several, so a busy process writes more with fewer
//! commits, and an idle one waits for nothing: a transition that arrives alone is written at once. One commit is under way at
//! a time. Where it fails, each of its transitions is decided again and written alone, so that one stale report spoils no
//! other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use planctl_engine::RunId;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::oneshot;

use crate::cache::lock;
use crate::rows::run_id;
use crate::store::Store;

/// The most transitions of one commit: it locks the rows of all until all are written.
const BATCH_MAX: usize = 16;

/// The reason why a transition was not written.
pub(super) enum CommitError {
    /// It was tried alone.
    Failed(sqlx::Error),
    /// It was tried with others, or its batcher was lost: it may have been written.
    Unknown,
    /// Another transition of its run was written first, or is being written.
    Conflict,
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> CommitError {
        CommitError::Failed(error)
    }
}

/// A transition in the queue.
struct Queued {
    run: RunId,
    transition: String,
    answer: oneshot::Sender<Result<PgRow, CommitError>>,
}

impl Queued {
    fn answer(self, answer: Result<PgRow, CommitError>) {
        // The receiver is dropped if the caller has stopped waiting.
        drop(self.answer.send(answer));
    }
}

/// The transitions that wait to be written.
#[derive(Default)]
pub(crate) struct CommitQueue {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    queued: VecDeque<Queued>,
    has_batcher: bool,
}

impl CommitQueue {
    /// Returns how many transitions wait while others are being written.
    pub(crate) fn len(&self) -> usize {
        lock(&self.queue).queued.len()
    }

    /// Adds a transition; says whether the caller must start a batcher.
    fn push(&self, queued: Queued) -> bool {
        let mut queue = lock(&self.queue);
        queue.queued.push_back(queued);
        !std::mem::replace(&mut queue.has_batcher, true)
    }

    /// Takes the next batch, one transition of a run. Other transitions of these runs come out beside it: they were decided
    /// on a state that the batch is about to change.
    fn take_batch(&self) -> Option<(Vec<Queued>, Vec<Queued>)> {
        let mut queue = lock(&self.queue);
        let mut batch = BTreeMap::new();
        let mut overtaken = Vec::new();
        while batch.len() < BATCH_MAX
            && let Some(queued) = queue.queued.pop_front()
        {
            match batch.entry(queued.run) {
                Entry::Vacant(free) => {
                    free.insert(queued);
                }
                Entry::Occupied(_) => overtaken.push(queued),
            }
        }
        queue.has_batcher = !batch.is_empty();
        queue.has_batcher.then(|| (batch.into_values().collect(), overtaken))
    }
}

/// The task that writes batches. Where it is dropped before the queue is empty, it drops the queue, and with it the senders
/// for which the callers wait.
struct Batcher {
    store: Store,
    is_done: bool,
}

impl Drop for Batcher {
    fn drop(&mut self) {
        if !self.is_done {
            *lock(&self.store.commit_queue().queue) = Queue::default();
        }
    }
}

impl Batcher {
    /// Writes until the queue is empty. It is a task of its own: a caller may be dropped while others wait for their answers.
    async fn run(mut self) {
        while let Some((batch, overtaken)) = self.store.commit_queue().take_batch() {
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
            overtaken.into_iter().for_each(|queued| queued.answer(Err(CommitError::Conflict)));
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
