//! Settings that were found sound.

use std::collections::HashMap;
use std::sync::Mutex;

use planctl_engine::RunId;

use crate::mutex::lock;

/// The most runs whose settings are cached as sound.
const SOUND_MAX: usize = 4096;

/// The settings that were found sound, by run, since every start of an item checks them.
#[derive(Default)]
pub(crate) struct Sound(Mutex<HashMap<RunId, [u8; 32]>>);

impl Sound {
    pub(crate) fn holds(&self, run: RunId, digest: &[u8; 32]) -> bool {
        lock(&self.0).get(&run) == Some(digest)
    }

    pub(crate) fn keep(&self, run: RunId, digest: [u8; 32]) {
        let mut sound = lock(&self.0);
        if sound.len() >= SOUND_MAX {
            sound.clear();
        }
        sound.insert(run, digest);
    }
}
