//! Calls while the database is away, or while it lacks a resource: refused at once, since a wait would only use up the client's
//! timeout (row 91).

use std::time::Duration;

use planctl_api::wire::ScarceResource;
use planctl_api::{Code, Next, Problem};

use super::ApiState;
use super::guard::Scope;
use super::routes::Route;
use crate::node::health::{Database, scarce};

/// How often a change that takes long looks whether a shortage is the reason.
const SHORTAGE_LOOK: Duration = Duration::from_secs(1);

/// Refuses while the database is away, and a change while the database lacks a resource.
pub(super) fn refuse_while_away(api: &ApiState, route: &Route) -> Result<(), Problem> {
    match api.options().health.database() {
        Database::Away { .. } if route.needs != Scope::Nobody => {
            let detail = "the database is away; the daemon waits for it";
            Err(Problem::new(Code::DatabaseUnavailable, detail).next(Next::ShowDatabase))
        }
        Database::Short { of, .. } if route.is_keyed => Err(shortage_problem(of)),
        Database::Away { .. } | Database::Short { .. } | Database::Up => Ok(()),
    }
}

/// Resolves once the database lacks a resource. A process without a daemon has no loop that looks for that, so the store is
/// asked.
pub(super) async fn shortage_met(api: &ApiState) -> Problem {
    loop {
        tokio::time::sleep(SHORTAGE_LOOK).await;
        if let Some((of, _)) = api.server_node().store().shortage().await {
            return shortage_problem(scarce(of));
        }
    }
}

fn shortage_problem(of: ScarceResource) -> Problem {
    let detail =
        format!("{}: nothing is recorded until that is over, and work under way goes on then", of.sentence());
    Problem::new(Code::DatabaseUnavailable, detail)
}
