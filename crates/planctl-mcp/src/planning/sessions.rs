//! The lists of all sessions that one server keeps: few, in memory, each its caller's own, none for long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::list::List;
use super::refusal::Refusal;

/// The most sessions that are kept; beyond that the one goes that was idle longest.
const SESSIONS_MAX: usize = 200;
/// The most sessions of one caller.
const OWN_SESSIONS_MAX: usize = 20;
/// How long a session is kept that nobody calls.
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// The caller to whom a session belongs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner(String);

impl Owner {
    /// Names a caller; a caller has the same name at each call.
    pub fn new(name: impl Into<String>) -> Owner {
        Owner(name.into())
    }
}

/// The sessions of one server, by the secret that their caller was given.
#[derive(Debug, Default)]
pub struct Sessions {
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    owner: Owner,
    list: Arc<List>,
    used: Instant,
}

impl Sessions {
    /// Begins a session with its first list; returns the secret that names it.
    pub fn begin(&self, owner: &Owner, list: List, now: Instant) -> (String, Arc<List>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, session| now.saturating_duration_since(session.used) < IDLE_MAX);
        let own = |session: &Kept| session.owner == *owner;
        while kept.values().filter(|session| own(session)).count() >= OWN_SESSIONS_MAX {
            remove_idlest(&mut kept, own);
        }
        while kept.len() >= SESSIONS_MAX {
            remove_idlest(&mut kept, |_| true);
        }
        let name = uuid::Uuid::new_v4().simple().to_string();
        let list = Arc::new(list);
        kept.insert(name.clone(), Kept { owner: owner.clone(), list: list.clone(), used: now });
        (name, list)
    }

    /// Returns the list of a session.
    pub fn read(&self, owner: &Owner, name: &str, now: Instant) -> Result<Arc<List>, Refusal> {
        self.change(owner, name, now, |list| Ok(list.clone()))
    }

    /// Puts the list that a change makes in the place of the session's list.
    pub fn change(
        &self,
        owner: &Owner,
        name: &str,
        now: Instant,
        change: impl FnOnce(&Arc<List>) -> Result<Arc<List>, Refusal>,
    ) -> Result<Arc<List>, Refusal> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, session| now.saturating_duration_since(session.used) < IDLE_MAX);
        let session = kept.get_mut(name).filter(|session| session.owner == *owner);
        let session = session.ok_or(Refusal::ForeignSession)?;
        session.used = now;
        session.list = change(&session.list)?;
        Ok(session.list.clone())
    }
}

fn remove_idlest(kept: &mut HashMap<String, Kept>, counts: impl Fn(&Kept) -> bool) {
    let candidates = kept.iter().filter(|(_, session)| counts(session));
    let idlest = candidates.min_by_key(|(_, session)| session.used).map(|(name, _)| name.clone());
    if let Some(name) = idlest {
        kept.remove(&name);
    }
}
