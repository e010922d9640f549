//! `plan draft` with the real binary: models on loopback that speak both forms, agents, real repositories, real contracts.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "drafting/agents.rs"]
mod agents;
#[path = "drafting/command.rs"]
mod command;
#[path = "drafting/goals.rs"]
mod goals;
#[path = "drafting/home.rs"]
mod home;
#[path = "drafting/judges.rs"]
mod judges;
#[path = "drafting/killed.rs"]
mod killed;
#[path = "drafting/models.rs"]
mod models;
#[path = "drafting/pieces.rs"]
mod pieces;
#[path = "drafting/repaired.rs"]
mod repaired;
#[path = "drafting/resolving.rs"]
mod resolving;
#[path = "drafting/service.rs"]
mod service;
#[path = "drafting/traced.rs"]
mod traced;

use crate::fixture::schema;
