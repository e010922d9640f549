//! The daemon's doors as programs meet them: real sockets, real requests, well-formed and not.

pub use house::{Ask, House};

#[path = "http/attacks.rs"]
mod attacks;
#[path = "http/decisions.rs"]
mod decisions;
#[path = "http/document.rs"]
mod document;
#[path = "http/draft_asks.rs"]
mod draft_asks;
#[path = "http/gone.rs"]
mod gone;
#[path = "http/house.rs"]
pub mod house;
#[path = "http/keys.rs"]
mod keys;
#[path = "http/limits.rs"]
mod limits;
#[path = "http/lists.rs"]
mod lists;
#[path = "http/meanwhile.rs"]
mod meanwhile;
#[path = "http/page.rs"]
mod page;
#[path = "http/reference.rs"]
mod reference;
#[path = "http/requests.rs"]
mod requests;
#[path = "http/scopes.rs"]
mod scopes;
#[path = "http/transcripts.rs"]
mod transcripts;
#[path = "http/votes.rs"]
mod votes;
#[path = "http/waiting.rs"]
mod waiting;
#[path = "http/work.rs"]
mod work;
#[path = "http/workers.rs"]
mod workers;
#[path = "http/worktrees.rs"]
mod worktrees;
