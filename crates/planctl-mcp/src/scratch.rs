//! The planning tools of one caller: which session they are of, and what each of them answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::arguments::{AddStep, MarkStep, OfSession, SetupPlan, UpdateStep};
use crate::gateway::Refused;
use crate::planning::{Kind, List, Owner, Refusal, Sessions};

/// The scratch lists that a caller reaches.
#[derive(Clone, Debug)]
pub enum Scratch {
    /// None: the tools are not offered.
    Off,
    /// The one of this process, which is the session.
    Own(Arc<Mutex<Option<Arc<List>>>>),
    /// Its own among those of a server with several callers.
    Shared {
        /// The sessions of all callers.
        sessions: Arc<Sessions>,
        /// The caller.
        owner: Owner,
        /// Reads the clock by which sessions end.
        now: fn() -> Instant,
    },
}

impl Scratch {
    /// Begins the session of a process.
    pub fn for_this_process() -> Scratch {
        Scratch::Own(Arc::default())
    }

    /// Says whether the tools are offered.
    pub fn is_offered(&self) -> bool {
        !matches!(self, Scratch::Off)
    }

    /// Says whether a call has to name its session.
    pub fn names_session(&self) -> bool {
        matches!(self, Scratch::Shared { .. })
    }

    pub(crate) fn setup(&self, given: &SetupPlan) -> Result<Value, Refused> {
        let begun = |before: Option<&List>| List::setup(before, &given.objective, &given.initial_steps);
        let (session, list) = match (self, &given.session) {
            (Scratch::Shared { sessions, owner, now }, None) => {
                let (session, list) = sessions.begin(owner, begun(None)?, now());
                (Some(session), list)
            }
            (Scratch::Off | Scratch::Own(_) | Scratch::Shared { .. }, session) => {
                (session.clone(), self.change_list(session.as_deref(), begun)?)
            }
        };
        let mut answer = answer(format!("Plan initialised with {}.", steps(list.steps.len())), &list);
        if let Some(session) = session {
            answer["session"] = json!(session);
        }
        Ok(answer)
    }

    pub(crate) fn add(&self, given: &AddStep) -> Result<Value, Refused> {
        let list =
            self.change_list(given.session.as_deref(), |list| require_list(list)?.add(&given.steps))?;
        Ok(answer(format!("Added {}.", steps(given.steps.len())), &list))
    }

    pub(crate) fn update(&self, given: &UpdateStep) -> Result<Value, Refused> {
        let (title, details) = (given.title.as_deref(), given.details.as_deref());
        let change = |list: Option<&List>| require_list(list)?.update(&given.step_id, title, details);
        let list = self.change_list(given.session.as_deref(), change)?;
        Ok(answer(format!("Step {} updated.", given.step_id.trim()), &list))
    }

    pub(crate) fn mark(&self, given: &MarkStep) -> Result<Value, Refused> {
        let change = |list: Option<&List>| {
            require_list(list)?.mark(&given.step_id, given.status, given.note.as_deref())
        };
        let list = self.change_list(given.session.as_deref(), change)?;
        Ok(answer(format!("Step {} marked as {}.", given.step_id.trim(), given.status), &list))
    }

    pub(crate) fn clear(&self, given: &OfSession) -> Result<Value, Refused> {
        let list = self.change_list(given.session.as_deref(), |list| require_list(list)?.clear())?;
        Ok(answer("Plan marked as abandoned.".to_owned(), &list))
    }

    pub(crate) fn read(&self, given: &OfSession) -> Result<Value, Refused> {
        let list = match (self, given.session.as_deref()) {
            (Scratch::Own(kept), None) => {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.clone().ok_or(Refusal::NoList)?
            }
            (Scratch::Shared { sessions, owner, now }, Some(session)) => {
                sessions.read(owner, session, now())?
            }
            (Scratch::Shared { .. }, None) => return Err(Refusal::NoSession.into()),
            (Scratch::Own(_), Some(_)) | (Scratch::Off, _) => return Err(Refusal::ForeignSession.into()),
        };
        let message = match list.steps.len() {
            0 => "Retrieved the current plan (no steps recorded).".to_owned(),
            count => format!("Retrieved the current plan with {}.", steps(count)),
        };
        Ok(answer(message, &list))
    }

    /// Puts what a change makes of the session's list in its place.
    fn change_list(
        &self,
        session: Option<&str>,
        change: impl FnOnce(Option<&List>) -> Result<List, Refusal>,
    ) -> Result<Arc<List>, Refusal> {
        match (self, session) {
            (Scratch::Own(kept), None) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let list = Arc::new(change(kept.as_deref())?);
                *kept = Some(list.clone());
                Ok(list)
            }
            (Scratch::Shared { sessions, owner, now }, Some(session)) => {
                sessions.change(owner, session, now(), |list| Ok(Arc::new(change(Some(list))?)))
            }
            (Scratch::Shared { .. }, None) => Err(Refusal::NoSession),
            (Scratch::Own(_), Some(_)) | (Scratch::Off, _) => Err(Refusal::ForeignSession),
        }
    }
}

fn require_list(list: Option<&List>) -> Result<&List, Refusal> {
    list.ok_or(Refusal::NoList)
}

fn answer(message: String, list: &List) -> Value {
    json!({ "message": message, "plan": list })
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let code = match refusal.kind() {
            Kind::Invalid => "bad_request",
            Kind::Missing => "not_found",
            Kind::Conflict => "conflict",
        };
        Refused::new(code, refusal.to_string())
    }
}
