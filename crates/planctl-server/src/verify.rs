//! Says whether a plan and what serves it are fit to run, and makes them so where findings say how; needs no database.

pub mod agent_answer;
pub mod agent_check;
pub mod agent_program;
pub mod autofix;
pub mod check;
pub mod diff;
pub mod judge;
pub(crate) mod own_process;
pub mod probe;
pub(crate) mod protection;
pub mod tools;
