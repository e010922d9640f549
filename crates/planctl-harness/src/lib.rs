//! Owns every child process: contracts and agents.
//!
//! [`Spawner`] starts and ends process trees through the helper `planctl __spawn` ([`helper_main`]); everything else
//! is built on it.

mod beneath;
mod capture;
mod contract;
mod digest;
mod environment;
mod excerpt;
mod git;
mod process;
mod protect;
mod spawn;
mod walk;

pub use beneath::Unreadable;
pub use capture::{Captured, KEPT_BYTES};
pub use contract::{Bench, Gate, ISOLATION_TIER, OUTPUT_BYTES_MAX};
pub use digest::digest_of;
pub use environment::{PATH_DEFAULT, RefusedVariable, agent_environment, contract_environment, safe_path};
pub use excerpt::Output;
pub use git::{git_head, git_top_level};
pub use process::{Command, End, Finished, Input, Stream, find_program};
pub use protect::{Baseline, Comparison, FileState, PROTECTED_FILES_MAX, ProtectError};
pub use spawn::{Spawner, Stage, helper_main};
pub use walk::{
    ENTRIES_MAX, Found as FoundFiles, NotAGlob, expand as expand_glob, files as list_files, is_glob,
};
