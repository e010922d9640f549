//! Why an event may be refused.

use crate::ids::NodeId;
use crate::scope::Scope;

/// The event does not fit the run. Not an error: late and repeated news is normal, and changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The run is in a status in which this cannot happen.
    #[error("the run is not in a state for this")]
    NotActive,
    /// The graph has no such node.
    #[error("there is no node `{0}`")]
    NoSuchNode(NodeId),
    /// The event speaks of a try that is over.
    #[error("that attempt is over")]
    StaleAttempt,
    /// The node is not where the event supposes it.
    #[error("the step is not in a state for this")]
    WrongState,
    /// The ask takes other answers.
    #[error("this ask takes one of: {}", .0.join(", "))]
    WrongAnswer(Vec<&'static str>),
    /// The choice is none of the options.
    #[error("{}", no_such_option(.option, .options))]
    NoSuchOption {
        /// The chosen option.
        option: String,
        /// The options on offer; none where any words answer.
        options: Vec<String>,
    },
    /// The answer needs a reason for the record.
    #[error("this answer needs a note that says why")]
    NoteMissing,
    /// The evidence is of another contract.
    #[error("the evidence is of another contract")]
    ForeignEvidence,
    /// The step can't be done anew by itself.
    #[error(
        "step `{0}` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others"
    )]
    NotRepeatable(NodeId),
    /// The revision changes a step that is settled.
    #[error("the revision changes step `{0}`, which is settled")]
    SettledStepChanged(NodeId),
    /// The revision adds a step where the run has passed, so that nothing would begin it.
    #[error(
        "the revision adds step `{0}` where the run has passed, so nothing would begin it: have it follow a step that has not passed"
    )]
    NeverBegun(NodeId),
    /// The change was made against another revision than the one that the run has.
    #[error("the run was revised meanwhile; look at its plan again and approve it once more")]
    RevisedMeanwhile,
    /// The raise adds to no part that has a limit.
    #[error("the raise must add to a part of the budget that has a limit")]
    NothingRaised,
    /// The run within may not use so much: less is left of the budget around it.
    #[error("less than that is left of the budget around it")]
    NotLeft,
    /// The caller did not load what the event touches; load it and ask again.
    #[error("records are missing")]
    NotLoaded(Scope),
}

fn no_such_option(option: &str, options: &[String]) -> String {
    match options {
        [] => "the answer is empty; say it in your own words".to_owned(),
        options => format!("`{option}` is not an option; the options are: {}", options.join(", ")),
    }
}
