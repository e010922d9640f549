//! Turns a goal into the text of a plan: pure, and it asks nobody itself.
//!
//! A [`Conversation`] is told the goal, the facts of the workspace and every answer, and says what has to happen next
//! ([`Next`]): ask the writer, verify a text and try its contracts, ask the reviewer, stop. Its state is the record of what it
//! was told, so whoever stores it can go on with it in another process and pays for no answer twice. Nothing here approves or
//! runs anything: the result is a text with the status `draft`.

mod amount;
mod conversation;
mod decompose;
mod entry;
mod estimate;
mod fence;
mod goal;
mod intents;
mod judge;
mod pattern;
mod prompt;
mod proposal;
mod red;
mod repair;
mod resolve;
mod review;
mod signals;
mod write;

pub use amount::{Charge, Spending, Tokens, Unanswered};
pub use conversation::{
    Answer, Asked, Brief, Conversation, Draft, GiveUp, Hint, Limits, Next, Round, WorkspaceFacts,
};
pub use decompose::{
    Breakdown, Considered, DEPTH_MAX, Decomposition, NextPiece, Strategy, Tool, schema as intents_schema,
    serving,
};
pub use entry::draft_of_entry;
pub use estimate::{Basis, Estimate, PastRuns, estimate};
pub use goal::{Goal, Requirement, Suspicion};
pub use intents::{Intent, IntentEdge, IntentGraph, IntentKind, ROOT, Relation, question_of, topic};
pub use judge::{Finding, Judgement, Looked, Outcome, Rule, Traced, named_files};
pub use pattern::{Deferral, Matched, PATTERN_CONFIDENCE, PatternFacts, draft_by_pattern};
pub use prompt::{Prompt, tokens_of};
pub use proposal::{ANSWER_BYTES_MAX, Proposal, Question, Step, Unreadable, schema};
pub use red::{WrongReason, wrong_reason};
pub use repair::{FailedRun, REPAIRS_MAX, Repair};
pub use resolve::{
    ASK_PERSON, Action, Argument, ArgumentValue, Binding, Call, Candidate, Capability, Catalog, Decision,
    History, MendNext, Mending, Open, Parameter, ParameterKind, Planned, PlannedStep, Quest, QuestAsk,
    QuestAskKind, QuestEvent, QuestNext, Remark, Remembered, Resolution, Resolver, Served, Source, Tally,
    Tried, Vectors, Verified, Went, bind, coerced, key_of, planned, text_to_embed, type_of, verified,
    write_plan,
};
pub use review::{REVIEW_BYTES_MAX, Review, review_schema};
pub use signals::{Signal, signals};
