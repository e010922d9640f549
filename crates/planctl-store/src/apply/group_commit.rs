//! Group commit: plain steps that are decided while another is being written are written together, by one statement.
//!
//! What a statement costs the server is for the most part the same for one step as for several, so a busy process writes
//! more with fewer of them, and an idle one waits for nothing: who comes alone is written at once. One statement is under
//! way at a time. All that it writes holds or nothing does; where it does not, each of its steps is decided again and
//! written apart, so that one stale report spoils no other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use planctl_engine::RunId;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::oneshot;

use super::Decided;
use super::write::{self, WRITE_STEPS};
use crate::cache::lock;
use crate::connections::Planning;
use crate::effects::{Put, micros};
use crate::queue::Take;
use crate::rows::{run_id, stored_run, stored_time, time_at, to_json};
use crate::store::Store;

/// The most steps that one statement writes: it holds their rows until all are written.
const STEPS_MAX: usize = 16;

/// A transition that ends one item and puts at most one.
pub(super) struct Step {
    pub(super) decided: Arc<Decided>,
    /// The hash of the secret that proves the item that ends.
    pub(super) token_hash: Vec<u8>,
    pub(super) put: Option<Put>,
    /// Who takes the put item along, and the hash of the secret that proves it.
    pub(super) taken: Option<(Take, Vec<u8>)>,
}

/// Why a transition was not written, as far as it is known.
pub(super) enum CommitError {
    /// It was tried alone.
    Failed(sqlx::Error),
    /// It was tried with others, or its writer was lost: it may have been written.
    Unknown,
    /// Another transition of its run was written first.
    Conflict,
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> CommitError {
        CommitError::Failed(error)
    }
}

struct Waiting {
    step: Step,
    answer: oneshot::Sender<Result<PgRow, CommitError>>,
}

impl Waiting {
    fn run(&self) -> RunId {
        self.step.decided.after.run.id
    }

    fn answer(self, answer: Result<PgRow, CommitError>) {
        // Whoever does not wait any more needs none.
        drop(self.answer.send(answer));
    }
}

/// The steps that wait to be written.
#[derive(Default)]
pub(crate) struct Steps {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    has_batcher: bool,
}

impl Steps {
    /// Returns how many wait while one is being written.
    pub(crate) fn queued(&self) -> usize {
        lock(&self.queue).waiting.len()
    }

    /// Queues a step; says whether somebody must begin to write.
    fn put(&self, waiting: Waiting) -> bool {
        let mut queue = lock(&self.queue);
        queue.waiting.push_back(waiting);
        !std::mem::replace(&mut queue.has_batcher, true)
    }

    /// Takes what is to be written next, one step of a run. The others of these runs come out beside them: they were
    /// decided on what is about to change.
    fn take(&self) -> Option<(Vec<Waiting>, Vec<Waiting>)> {
        let mut queue = lock(&self.queue);
        let mut batch = BTreeMap::new();
        let mut overtaken = Vec::new();
        while batch.len() < STEPS_MAX
            && let Some(waiting) = queue.waiting.pop_front()
        {
            match batch.entry(waiting.run()) {
                Entry::Vacant(free) => {
                    free.insert(waiting);
                }
                Entry::Occupied(_) => overtaken.push(waiting),
            }
        }
        queue.has_batcher = !batch.is_empty();
        queue.has_batcher.then(|| (batch.into_values().collect(), overtaken))
    }
}

/// The task that writes batches. Where it is dropped before it is done, those in the queue learn that nobody will.
struct Batcher {
    store: Store,
    is_done: bool,
}

impl Drop for Batcher {
    fn drop(&mut self) {
        if !self.is_done {
            *lock(&self.store.steps().queue) = Queue::default();
        }
    }
}

impl Batcher {
    /// Writes until nothing waits. It is a task of its own: who waits may go away, and the others stay.
    async fn write(mut self) {
        while let Some((mut batch, overtaken)) = self.store.steps().take() {
            match self.store.write_batch(&batch).await {
                Ok(mut rows) => {
                    for waiting in batch {
                        if let Some(row) = rows.remove(&waiting.run()) {
                            waiting.answer(Ok(row));
                        }
                    }
                }
                Err(error) if batch.len() == 1 => {
                    if let Some(waiting) = batch.pop() {
                        waiting.answer(Err(CommitError::Failed(error)));
                    }
                }
                // Each learns that by not being answered.
                Err(error) => tracing::debug!(%error, steps = batch.len(), "steps are written apart"),
            }
            overtaken.into_iter().for_each(|waiting| waiting.answer(Err(CommitError::Conflict)));
        }
        self.is_done = true;
    }
}

impl Store {
    /// Writes a plain step, with those that are decided at the same time.
    pub(super) async fn write_step(&self, step: Step) -> Result<PgRow, CommitError> {
        let (answer, answered) = oneshot::channel();
        if self.steps().put(Waiting { step, answer }) {
            tokio::spawn(Batcher { store: self.clone(), is_done: false }.write());
        }
        answered.await.unwrap_or(Err(CommitError::Unknown))
    }

    async fn write_batch(&self, batch: &[Waiting]) -> Result<BTreeMap<RunId, PgRow>, sqlx::Error> {
        let each = Each(batch);
        let all = each.step(|step| &*step.decided);
        let query = write::bind_lines(sqlx::query(WRITE_STEPS), &all)
            .bind(each.step(|step| stored_run(step.decided.after.run.id)))
            .bind(each.step(|step| step.decided.before.seq))
            .bind(each.step(|step| step.decided.seq()))
            .bind(each.step(|step| step.decided.hash().to_vec()))
            .bind(each.step(|step| to_json(&step.decided.after.run.head)))
            .bind(each.step(|step| stored_time(step.decided.before.now)))
            .bind(each.step(|step| step.decided.before.is_remembered))
            .bind(each.step(|step| step.decided.item.as_ref().map(|(item, _)| item.as_str())))
            .bind(each.step(|step| step.decided.item.as_ref().map(|(_, generation)| *generation)))
            .bind(each.step(|step| &step.token_hash[..]))
            .bind(each.taken(|_, token_hash| token_hash))
            .bind(each.taken(|take, _| take.holder.host.as_str()))
            .bind(each.taken(|take, _| take.holder.boot.as_str()))
            .bind(each.taken(|take, _| take.holder.instance.as_str()))
            .bind(each.taken(|take, _| take.holder.own))
            .bind(each.taken(|take, _| micros(take.lease)))
            .bind(each.step(|step| step.decided.meta.host.as_str()));
        let query = write::bind_puts(query, &each.step(|step| step.put.as_ref()))
            .bind(each.step(|step| step.decided.before.used()))
            .bind(each.step(|step| &step.decided.before.chain[..]));
        let mut connection = self.connections().acquire(Planning::ByIndex).await?;
        let result = query.fetch_all(&mut *connection).await;
        let rows = connection.recycle(result)?;
        if let Some(row) = rows.first() {
            self.server_clock().observe(time_at(row, "now")?);
        }
        rows.into_iter().map(|row| Ok((run_id(row.try_get("run")?), row))).collect()
    }
}

/// The columns of a batch.
struct Each<'a>(&'a [Waiting]);

impl<'a> Each<'a> {
    fn step<T>(&self, value: impl Fn(&'a Step) -> T) -> Vec<T> {
        self.0.iter().map(|waiting| value(&waiting.step)).collect()
    }

    fn taken<T>(&self, value: impl Fn(&'a Take, &'a [u8]) -> T) -> Vec<Option<T>> {
        self.step(|step| step.taken.as_ref().map(|(take, token_hash)| value(take, token_hash)))
    }
}
