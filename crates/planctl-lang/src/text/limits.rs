//! The limits of the plan language, and its defaults that several layers know.

use std::time::Duration;

/// The most bytes a plan may have (DESIGN 12).
pub const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// The most steps a plan may have (DESIGN 12).
pub const STEPS_MAX: usize = 5_000;
/// The most edges that a graph may have.
pub(crate) const EDGES_MAX: usize = 4 * STEPS_MAX;
/// The most retries a policy may grant (DESIGN 3).
pub const RETRIES_MAX: u16 = 20;
/// How often a node may be entered, where the plan says nothing (DESIGN 6).
pub const MAX_VISITS: u16 = 10;
/// Retries where the plan says nothing (DESIGN 3).
pub const RETRIES: u16 = 2;
/// The most tests that a step may ask for.
pub(crate) const TESTS_MAX: u32 = 1_000_000;
/// How long one attempt's work may take, where the plan says nothing (DESIGN 3).
pub const WORK_TIMEOUT: Duration = Duration::from_secs(600);
/// How long one evaluation of a contract may take, where the plan says nothing (DESIGN 3).
pub const CONTRACT_TIMEOUT: Duration = Duration::from_secs(600);
