//! The engine, tested by conversations that a person can read.
//!
//! A conversation begins with its plan; each line that follows says what someone said (`->`) and what the engine made of
//! it. [`script`] describes the form.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "conversations/asks.rs"]
mod asks;
#[path = "conversations/branches.rs"]
mod branches;
#[path = "conversations/budgets.rs"]
mod budgets;
#[path = "conversations/choices.rs"]
mod choices;
#[path = "conversations/confirmations.rs"]
mod confirmations;
#[path = "conversations/dot_rows.rs"]
mod dot_rows;
#[path = "conversations/edges.rs"]
mod edges;
#[path = "conversations/endings.rs"]
mod endings;
#[path = "conversations/flat.rs"]
mod flat;
#[path = "conversations/gates_and_people.rs"]
mod gates_and_people;
#[path = "conversations/graph_rows.rs"]
mod graph_rows;
#[path = "conversations/judges.rs"]
mod judges;
#[path = "conversations/pace.rs"]
mod pace;
#[path = "conversations/paths.rs"]
mod paths;
#[path = "conversations/pauses.rs"]
mod pauses;
#[path = "conversations/plan.rs"]
mod plan;
#[path = "conversations/proposals.rs"]
mod proposals;
#[path = "conversations/red.rs"]
mod red;
#[path = "conversations/red_first.rs"]
mod red_first;
#[path = "conversations/retries.rs"]
mod retries;
#[path = "conversations/revised_branches.rs"]
mod revised_branches;
#[path = "conversations/script.rs"]
mod script;
#[path = "conversations/speech.rs"]
mod speech;
#[path = "conversations/sub_plans.rs"]
mod sub_plans;
#[path = "conversations/trouble.rs"]
mod trouble;
#[path = "conversations/untrusted.rs"]
mod untrusted;
