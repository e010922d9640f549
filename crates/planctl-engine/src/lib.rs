//! Decides what happens next in a run: pure, without clock, randomness or IO.
//!
//! A plan compiles to a [`Graph`]: nodes, edges, one start. A [`Run`] is one execution of it: a small [`Head`] and a
//! [`Record`] for each node that was entered. Everything that happens arrives as an [`Event`] by one of four speakers:
//! an agent, the harness, a human, the clock. [`advance`] decides what one event does: it returns the changed run, the
//! [`Effect`]s to write (items to dispatch or withdraw, timers to arm or disarm) and the [`Fact`]s that followed, or a
//! [`Refusal`] that changes nothing.
//!
//! The product's promise can be read off the code: no word of an agent passes a step that has a contract. Such a step settles
//! as [`Outcome::Passed`] in one place only, after [`Contract::judge`] drew [`Verdict::Passed`] from the [`Evidence`] of
//! that very attempt. A step without one passes by a person's word or, where its plan has an [`OutputCheck`], by an
//! [`Observation`], and says so for ever ([`Grade`]).

mod advance;
mod answers;
mod ask;
mod budget;
mod choosing;
pub mod condition;
pub mod context_names;
mod contract;
mod earned;
mod effect;
mod event;
mod fact;
mod failure;
mod graph;
mod ids;
mod observation;
mod outcome;
mod pace;
mod ready_queue;
mod refusal;
mod run;
mod scope;
mod tier;
mod time;
mod timer;

pub use advance::{Advance, advance, initial_scope, key_of, match_option, plain_label};
pub use ask::{AskKind, Reason};
pub use budget::{Budget, BudgetPart, Day, DayScope, Reserved, Shortfall, Spent, Usage, estimated_tokens};
pub use choosing::{Choosing, Decider, Tried};
pub use contract::{
    Contract, Ending, Evidence, Excerpt, FileChange, Inconclusive, Judge, Judgement, PromptToJudge, RedFirst,
    RehearsalResult, Resource, Resources, Tampering, TestCount, Verdict, bytes_words,
};
pub use earned::Earned;
pub use effect::{Ask, Brief, Effect, Item, Purpose, SoFar, Work};
pub use event::{
    AgentEvent, AgentSaid, Answer, ChildEnd, Circumstances, ClockEvent, Conflict, Decision, Event, Fault,
    FaultKind, HarnessEvent, HarnessResult, Hints, HumanEvent, Overrun, Report,
};
pub use fact::Fact;
pub use failure::{Failing, Failure};
pub use graph::{
    AskDeadline, Backoff, Call, Carry, ChildApproval, Choice, Confirmation, DefaultAnswer, Edge, Fidelity,
    Fork, Gated, Goal, Graph, GraphDefect, GraphParts, Join, JoinPolicy, Limits, Node, NodeKind, On,
    Priority, Profile, Question, Restart, Signal, StoppingAnswer, SubPlan, Subscription, Task, WorkKind,
    WorktreeBranch, changed_nodes,
};
pub use ids::{Actor, At, Attempt, Digest, ItemId, NodeId, Role, RunId, hex};
pub use observation::{Grade, OBSERVED_BYTES_MAX, Observation, OutputCheck};
pub use outcome::{End, Outcome, Outcomes};
pub use pace::{Handover, Level, PaceLevel, Responder};
pub use ready_queue::ReadyQueue;
pub use refusal::Refusal;
pub use run::{
    Arrivals, AttemptDetails, BranchResult, EnteredFrom, Head, NodeState, Note, PromptWord, Record,
    Recurrence, Rehearsal, Run, RunStatus, Tally, Unchecked,
};
pub use scope::Scope;
pub use tier::{NoSuchTier, Tier};
pub use time::Timestamp;
pub use timer::TimerId;
