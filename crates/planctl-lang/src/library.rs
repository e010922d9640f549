//! The library of plans: its entries, and which of them a message calls for.

mod entry;
mod learn;
mod matcher;

pub use entry::{PlanPlace, entries, entry_json, entry_markdown, place_of};
pub use learn::{RUNS_MIN, RUNS_NEWEST, Success};
pub use matcher::{Fate, Hit, Matcher, Question, Weighed, best, weigh};

/// How many triggers a message must hit where the entry says nothing (H-04).
pub const THRESHOLD: u32 = 2;

/// A plan of the library, as far as it is chosen by.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Its name in the library.
    pub id: String,
    /// Its title, for people.
    pub title: String,
    /// The domains it is for; with none it is for all.
    pub domains: Vec<String>,
    /// The words that a message may contain.
    pub triggers: Vec<String>,
    /// How many of them it must contain, as written.
    pub trigger_threshold: Option<u32>,
    /// After how many turns without progress it expires, as written.
    pub stale_after_turns: Option<u32>,
    /// The plan that gets a run when one of this is done (H-50).
    pub then: Option<String>,
    /// How many steps it has.
    pub steps: u32,
    /// How its newest runs ended, where its threshold learns from that.
    pub success: Option<Success>,
}

impl Entry {
    /// Returns how many triggers a message must hit, as written.
    pub fn written_threshold(&self) -> u32 {
        self.trigger_threshold.unwrap_or(THRESHOLD)
    }

    /// Returns how many triggers a message must hit, with what was learned.
    pub fn threshold(&self) -> u32 {
        let raised = self.success.is_some_and(Success::raises_threshold);
        self.written_threshold().saturating_add(u32::from(raised))
    }
}
