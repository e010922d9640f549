//! The scratch list of a session: an agent's own objective and steps, which no run ever sees.
//!
//! A list belongs to one session and ends with it. It is kept in memory alone, has no order between its steps and no
//! contract, and marking its steps moves nothing but itself. Each change makes another [`List`]; the one before stays as it
//! was for those who still read it, and a session keeps exactly one.

mod list;
mod prompt;
mod refusal;
mod sessions;
mod text;

pub use list::{List, ListStatus, NewStep, Step, StepStatus};
pub use prompt::{PROMPT_TOOLS, Strategy, prompt};
pub use refusal::{Kind, Refusal};
pub use sessions::{Owner, Sessions};
