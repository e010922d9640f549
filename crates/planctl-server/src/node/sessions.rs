//! Interactive agents at work (guided mode): the steps that they work on, and the turns that they end.
//!
//! A session is not started by planctl: a person talks to it. The process that works on its run claims the item, keeps its
//! lease, and waits here until the session's hook says that the turn ended. No word of a session decides anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use planctl_api::wire::SessionStep;
use planctl_engine::{ItemId, Observation, RunId};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::mutex::lock;

/// How a session ended a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TurnEnd {
    /// It says that the step is done.
    Reported {
        /// In these last words.
        last_words: String,
        /// The output that its program reported, where the plan checks one.
        observation: Option<Observation>,
    },
    /// It can't go on by itself: a person is asked this.
    Asked(String),
}

/// The steps at which sessions work. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Sessions {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    begun: Mutex<Begun>,
    changed: Notify,
}

#[derive(Default)]
struct Begun {
    count: u64,
    steps: BTreeMap<ItemId, BegunStep>,
}

struct BegunStep {
    number: u64,
    run: RunId,
    step: SessionStep,
    ends: Option<oneshot::Sender<TurnEnd>>,
}

impl Sessions {
    /// Tells sessions of a step to work on, until the returned guard is dropped.
    pub(crate) fn begin(&self, run: RunId, item: &ItemId, step: SessionStep) -> AtWork {
        let (ends, ended) = oneshot::channel();
        let number = {
            let mut begun = lock(&self.inner.begun);
            begun.count += 1;
            let number = begun.count;
            begun.steps.insert(item.clone(), BegunStep { number, run, step, ends: Some(ends) });
            number
        };
        self.inner.changed.notify_waiters();
        AtWork { sessions: self.clone(), item: item.clone(), number, ended }
    }

    /// Returns the steps of a run whose turn has not ended.
    pub(crate) fn steps(&self, run: RunId) -> Vec<SessionStep> {
        let begun = lock(&self.inner.begun);
        let open = begun.steps.values().filter(|begun| begun.run == run && begun.ends.is_some());
        open.map(|begun| begun.step.clone()).collect()
    }

    /// Ends the turn of one step of a run; says whether it was open.
    pub(crate) fn end(&self, run: RunId, item: &ItemId, end: TurnEnd) -> bool {
        let ends = match lock(&self.inner.begun).steps.get_mut(item) {
            Some(begun) if begun.run == run => begun.ends.take(),
            Some(_) | None => None,
        };
        ends.is_some_and(|ends| ends.send(end).is_ok())
    }

    /// Resolves when a step begins that had not begun when this was called.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.inner.changed.notified()
    }
}

/// Guard of a step at which a session works.
pub(crate) struct AtWork {
    sessions: Sessions,
    item: ItemId,
    number: u64,
    ended: oneshot::Receiver<TurnEnd>,
}

impl AtWork {
    /// Waits until the turn ends; `None` where this process took the step up anew meanwhile. Cancel-safe.
    pub(crate) async fn until_turn_ends(&mut self) -> Option<TurnEnd> {
        (&mut self.ended).await.ok()
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut begun = lock(&self.sessions.inner.begun);
        if begun.steps.get(&self.item).is_some_and(|step| step.number == self.number) {
            begun.steps.remove(&self.item);
        }
    }
}
