//! Why a planning tool refuses; the texts are fixed, since agents are trained on them.

use super::list::ListStatus;
use super::text::Field;

/// The reason of a refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A text that has to say something is empty.
    #[error("{0} must not be empty.")]
    Empty(Field),
    /// A text that may be left out is given, and empty.
    #[error("{0} must not be empty when provided.")]
    EmptyWhenProvided(Field),
    /// A text is too long.
    #[error("{0} must be <= {max} characters.", max = .0.characters_max())]
    TooLong(Field),
    /// A text has characters beyond ASCII.
    #[error("{0} must be ASCII.")]
    NotAscii(Field),
    /// The id of a step is blank.
    #[error("Step ID must be provided.")]
    NoStepId,
    /// An addition adds nothing.
    #[error("Provide at least one step to add.")]
    NothingToAdd,
    /// An update changes nothing.
    #[error("Provide a new title or details to update a step.")]
    NothingToUpdate,
    /// The list has no such step.
    #[error("Step {0} does not exist.")]
    NoSuchStep(String),
    /// The session has no list.
    #[error("No plan is currently initialised.")]
    NoList,
    /// The list takes no changes any more.
    #[error("Plan must be active to {action}. Current status: {status}.")]
    NotActive {
        /// The change that was asked for.
        action: &'static str,
        /// The status that forbids it.
        status: ListStatus,
    },
    /// Steps of an abandoned list are marked.
    #[error("Cannot mark steps on an abandoned plan.")]
    Abandoned,
    /// The list is abandoned once more.
    #[error("Plan already abandoned.")]
    AbandonedAlready,
    /// A list would have more steps than are kept.
    #[error("Plan must have <= {0} steps.")]
    TooManySteps(usize),
    /// A step would have more notes than are kept.
    #[error("Step must have <= {0} notes.")]
    TooManyNotes(usize),
    /// The caller names no session where several share one server.
    #[error("A session is needed: name the one that planning_setup_plan returned.")]
    NoSession,
    /// There is no such session, or it is another caller's: one answer for both.
    #[error("This session does not exist, is over, or is another caller's.")]
    ForeignSession,
}

/// The kind of a refusal, by what helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The call itself is wrong.
    Invalid,
    /// The list, step or session does not exist.
    Missing,
    /// The list's status forbids it.
    Conflict,
}

impl Kind {
    /// Returns the exit code by which the command line says the same.
    pub fn exit(self) -> u8 {
        match self {
            Kind::Invalid => 2,
            Kind::Missing => 4,
            Kind::Conflict => 5,
        }
    }
}

impl Refusal {
    /// Returns the kind of this refusal.
    pub fn kind(&self) -> Kind {
        match self {
            Refusal::Empty(_)
            | Refusal::EmptyWhenProvided(_)
            | Refusal::TooLong(_)
            | Refusal::NotAscii(_)
            | Refusal::NoStepId
            | Refusal::NothingToAdd
            | Refusal::NothingToUpdate
            | Refusal::TooManySteps(_)
            | Refusal::TooManyNotes(_)
            | Refusal::NoSession => Kind::Invalid,
            Refusal::NoSuchStep(_) | Refusal::NoList | Refusal::ForeignSession => Kind::Missing,
            Refusal::NotActive { .. } | Refusal::Abandoned | Refusal::AbandonedAlready => Kind::Conflict,
        }
    }
}
