//! Drafting as conversations: goals and answers in, questions, findings and plans out.

#[path = "planner/conversations.rs"]
mod conversations;
#[path = "planner/decomposing.rs"]
mod decomposing;
#[path = "planner/goals.rs"]
mod goals;
#[path = "planner/hostile.rs"]
mod hostile;
#[path = "planner/mending.rs"]
mod mending;
#[path = "planner/patterns.rs"]
mod patterns;
#[path = "planner/quests.rs"]
mod quests;
#[path = "planner/red.rs"]
mod red;
#[path = "planner/resolving.rs"]
mod resolving;
#[path = "planner/sample.rs"]
mod sample;
