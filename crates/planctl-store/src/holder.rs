//! The holder of a lease, and the roles that a run serves itself.

use std::time::Duration;

use planctl_engine::Role;
use serde::Serialize;

use crate::rows::{bytea_literal, micros};
use crate::token::Token;

/// The holder of a lease: a process on a host, one start of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The host's id.
    pub host: String,
    /// The boot of the host.
    pub boot: String,
    /// The process, by a name that is never used again; a remote worker's is its own.
    pub instance: String,
    /// Says that it is one of planctl's own processes, whose loss is an interruption and not a lost delivery.
    pub own: bool,
}

/// The holder of a lease that is being made, as the functions of the database read it.
#[derive(Clone, Serialize)]
pub(crate) struct Claimant<'a> {
    token_hash: String,
    boot: &'a str,
    instance: &'a str,
    own: bool,
    lease_micros: i64,
}

impl<'a> Claimant<'a> {
    pub(crate) fn new(
        token: &Token,
        boot: &'a str,
        instance: &'a str,
        own: bool,
        lease: Duration,
    ) -> Claimant<'a> {
        Claimant {
            token_hash: bytea_literal(&token.hash()),
            boot,
            instance,
            own,
            lease_micros: micros(lease),
        }
    }
}

/// The claim of a worker that waits for an item.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The claimant.
    pub instance: String,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
    /// The secret that the lease is to be proved by.
    pub token: Token,
}

impl ClaimRequest {
    pub(crate) fn claimant(&self) -> Claimant<'_> {
        Claimant::new(&self.token, "", &self.instance, false, self.lease)
    }
}

/// Claims an item that a transition dispatches, in the same transaction: a gate or whatever else is the harness's, or work of
/// a role that the claimant serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextClaim {
    /// The roles that the claimant serves; without one it claims no work.
    pub served: Vec<ServedRole>,
    /// The claimant. Its host must have the workspace.
    pub holder: Holder,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
}

/// The roles that a run's own settings serve.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ServedRole {
    /// Every role.
    Any,
    /// This one.
    One(Role),
}

impl ServedRole {
    pub(crate) fn matches(&self, role: &Role) -> bool {
        match self {
            ServedRole::Any => true,
            ServedRole::One(served) => served == role,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            ServedRole::Any => "*",
            ServedRole::One(role) => role.as_str(),
        }
    }
}
