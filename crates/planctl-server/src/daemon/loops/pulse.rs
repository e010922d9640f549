//! Feels whether the database answers and has the resources to record, and whether it still is the one this planctl knows; whether
//! the state directory is in its place; feeds the watchdog.

use std::sync::Arc;
use std::time::Duration;

use planctl_store::cluster::Cluster;

use super::Shared;
use crate::node::health::is_final;
use crate::node::services::ServiceError;
use crate::node::singleton::SingletonLock;
use crate::node::systemd;

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// An answer that takes longer is none.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// How many beats there are to one look at the schema.
const SCHEMA_EVERY: u32 = 5;

/// Feels until the daemon stops; returns earlier with what makes going on useless.
pub(crate) async fn watch_health(shared: &Arc<Shared>, singleton: &SingletonLock) -> Option<ServiceError> {
    let mut beats = 0;
    while !shared.is_stopping() {
        beats += 1;
        if !singleton.is_in_place() {
            let state_dir = shared.server_node.state_dir().to_owned();
            let error = ServiceError::StateDirGone { state_dir };
            tracing::error!("can't {error}");
            shared.health.set_last_error(format!("could not {error}"));
            return Some(error);
        }
        let store = shared.server_node.store();
        let answer = tokio::time::timeout(ANSWERS_WITHIN, async {
            store.now().await?;
            if beats % SCHEMA_EVERY == 0 {
                store.check_schema().await?;
            }
            Ok(store.shortage().await)
        });
        match answer.await {
            Ok(Ok(None)) => shared.health.set_database_up(),
            Ok(Ok(Some((of, why)))) => shared.health.set_database_short(of, &why),
            Ok(Err(error)) if is_final(&error) => return Some(error.into()),
            Ok(Err(error)) => shared.health.set_database_away(&error.to_string()),
            Err(_) => {
                let why = store.connection_refusal();
                shared.health.set_database_away(why.as_deref().unwrap_or("it does not answer"));
            }
        }
        if let Some(why) = shared.server_node.cluster().and_then(Cluster::trouble) {
            shared.health.set_outage_cause(&format!("could not {why}"));
        }
        if shared.health.is_alive() {
            systemd::is_alive(&shared.health);
        }
        shared.pause(EVERY).await;
    }
    None
}
