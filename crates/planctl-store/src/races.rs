//! Lets those who write to one run in this process take turns, once one of them lost a race for it.
//!
//! Nobody waits who hasn't lost: mostly one alone writes to a run. But of 64 agents that report at once each would make
//! 63 others decide anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use planctl_engine::RunId;
use tokio::sync::OwnedMutexGuard;

use crate::mutex::lock;

/// The holder of each run's turn.
#[derive(Default)]
pub(crate) struct Races {
    turns: Mutex<HashMap<RunId, Weak<tokio::sync::Mutex<()>>>>,
}

/// A turn of a run, until this is dropped.
pub(crate) type RunGuard = OwnedMutexGuard<()>;

impl Races {
    /// Waits for a turn of the run; those who lost first have it first.
    pub(crate) async fn wait_turn(&self, run: RunId) -> RunGuard {
        let turn = {
            let mut turns = lock(&self.turns);
            match turns.get(&run).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    turns.retain(|_, turn| turn.strong_count() > 0);
                    let turn = Arc::default();
                    turns.insert(run, Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}
