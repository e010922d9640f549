//! Proofs: the right by which an event comes, and whether the two fit.

use planctl_engine::{Answer, ClockEvent, Decision, Event, ItemId};

use crate::error::StoreError;
use crate::token::Token;

/// The right by which an event comes.
#[derive(Clone, Debug)]
pub enum Proof {
    /// The speaker holds the item: agents and the harness.
    Lease {
        /// The item.
        item: ItemId,
        /// The generation that was claimed.
        generation: i64,
        /// The secret that came with the claim.
        token: Token,
    },
    /// A person decided, through a door that knows who they are.
    Person {
        /// The key under which a repeated call gets the stored answer (P14).
        key: Option<String>,
    },
    /// A person voted, or their vote decided together with those of others.
    Vote {
        /// The key under which a repeated call gets the stored answer (P14).
        key: Option<String>,
        /// The vote, which is written with the transition.
        vote: Box<NewVote>,
    },
    /// Time passed: the run may have the workspace, or a timer is due.
    Clock,
    /// The item's lease or hard deadline is over, or its holder is known to be dead; checked again when it is written.
    Expired {
        /// The item.
        item: ItemId,
        /// The generation that is over.
        generation: i64,
        /// The instance of planctl that held it and is known to be dead.
        dead_instance: Option<String>,
    },
    /// The plan is handed in by the one who made the run.
    Submit,
}

/// A vote about to be cast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVote {
    /// The ask.
    pub item: ItemId,
    /// The person.
    pub voter: String,
    /// Their answer.
    pub answer: Answer,
    /// The digest of what the ask showed.
    pub about: String,
    /// Why.
    pub note: Option<String>,
    /// The votes that counted when the caller looked; where others have voted since, the vote is refused.
    pub seen: Vec<i64>,
}

impl Proof {
    /// Refuses an event that cannot come with this proof.
    pub(crate) fn check(&self, event: &Event) -> Result<(), StoreError> {
        let fits = match (event, self) {
            (Event::Agent(_) | Event::Harness(_), Proof::Lease { .. }) => true,
            (Event::Human(human), Proof::Submit) => human.decision == Decision::Submit,
            (Event::Human(_), Proof::Person { .. }) => true,
            (Event::Human(human), Proof::Vote { vote, .. }) => {
                matches!(&human.decision, Decision::Answer { item, answer } | Decision::Vote { item, answer, .. }
                    if *item == vote.item && *answer == vote.answer)
            }
            (
                Event::Clock(
                    ClockEvent::Admitted
                    | ClockEvent::Due { .. }
                    | ClockEvent::Metered
                    | ClockEvent::DaySpent { .. }
                    | ClockEvent::DayAllows { .. }
                    | ClockEvent::SetAside { .. }
                    | ClockEvent::Unattended { .. },
                ),
                Proof::Clock,
            ) => true,
            (
                Event::Clock(ClockEvent::LeaseLost { .. } | ClockEvent::Overran { .. }),
                Proof::Expired { .. },
            ) => true,
            (Event::Agent(_) | Event::Harness(_) | Event::Human(_) | Event::Clock(_), _) => false,
        };
        if fits { Ok(()) } else { Err(StoreError::Misproved { event: event.kind() }) }
    }

    /// Returns the item and generation that the proof names.
    pub(crate) fn item(&self) -> Option<(&ItemId, i64)> {
        match self {
            Proof::Lease { item, generation, .. } | Proof::Expired { item, generation, .. } => {
                Some((item, *generation))
            }
            Proof::Person { .. } | Proof::Vote { .. } | Proof::Clock | Proof::Submit => None,
        }
    }

    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Proof::Person { key } | Proof::Vote { key, .. } => key.as_deref(),
            Proof::Lease { .. } | Proof::Clock | Proof::Expired { .. } | Proof::Submit => None,
        }
    }
}
