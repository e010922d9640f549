//! Owns every child process: contracts and agents.
//!
//! [`Spawner`] starts and ends process trees through the helper `planctl __spawn` ([`helper_main`]); everything else
//! is built on it.

mod capture;
mod process;
mod spawn;

pub use capture::{Captured, KEPT_BYTES};
pub use process::{Command, End, Finished, Input, Stream, find_program};
pub use spawn::{Spawner, Stage, helper_main};
