//! The store against a real Postgres, one database per test.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "store/world.rs"]
mod world;

#[path = "store/apply.rs"]
mod apply;
#[path = "store/attendance.rs"]
mod attendance;
#[path = "store/audit.rs"]
mod audit;
#[path = "store/days.rs"]
mod days;
#[path = "store/draft_asks.rs"]
mod draft_asks;
#[path = "store/fences.rs"]
mod fences;
#[path = "store/golden.rs"]
mod golden;
#[path = "store/group_commit.rs"]
mod group_commit;
#[path = "store/leases.rs"]
mod leases;
#[path = "store/outage.rs"]
mod outage;
#[path = "store/outputs.rs"]
mod outputs;
#[path = "store/plans.rs"]
mod plans;
#[path = "store/prune.rs"]
mod prune;
#[path = "store/queue.rs"]
mod queue;
#[path = "store/regressed.rs"]
mod regressed;
#[path = "store/requests.rs"]
mod requests;
#[path = "store/scans.rs"]
mod scans;
#[path = "store/schema.rs"]
mod schema;
#[path = "store/tokens.rs"]
mod tokens;
#[path = "store/topics.rs"]
mod topics;
#[path = "store/upgrade.rs"]
mod upgrade;
#[path = "store/usage.rs"]
mod usage;
#[path = "store/waiting.rs"]
mod waiting;
#[path = "store/withdrawn.rs"]
mod withdrawn;
#[path = "store/workers.rs"]
mod workers;
