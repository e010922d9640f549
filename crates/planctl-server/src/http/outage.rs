//! Calls while the database is away, or while its disk is full: refused at once, since a wait would only use up the client's
//! timeout (row 91).

use std::time::Duration;

use planctl_api::{Code, Problem};

use super::ApiState;
use super::guard::Scope;
use super::routes::Route;
use crate::node::health::Database;

/// How often a change that takes long looks whether a full disk is the reason.
const FULL_DISK_LOOK: Duration = Duration::from_secs(1);
const FULL_DISK: &str = "the disk of the database is full: nothing is recorded until there is room, and work under way goes on then";

/// Refuses while the database is away, and a change while its disk is full.
pub(super) fn refuse_while_away(api: &ApiState, route: &Route) -> Result<(), Problem> {
    match api.options().health.database() {
        Database::Away { .. } if route.needs != Scope::Nobody => {
            Err(Problem::new(Code::DatabaseUnavailable, "the database is away; the daemon waits for it"))
        }
        Database::Full { .. } if route.is_keyed => Err(Problem::new(Code::DatabaseUnavailable, FULL_DISK)),
        Database::Away { .. } | Database::Full { .. } | Database::Up => Ok(()),
    }
}

/// Resolves once the disk of the database is full. A process without a daemon has no loop that looks for that, so the store is
/// asked.
pub(super) async fn full_disk_problem(api: &ApiState) -> Problem {
    loop {
        tokio::time::sleep(FULL_DISK_LOOK).await;
        if api.server_node().store().full_disk().await.is_some() {
            return Problem::new(Code::DatabaseUnavailable, FULL_DISK);
        }
    }
}
