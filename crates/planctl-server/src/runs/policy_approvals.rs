//! Approvals that a policy gave: known by their name, and checked against the policy's own settings (P-78).

use planctl_config::approved_policy;
use planctl_engine::{Actor, Graph};
use planctl_store::Approval;

use crate::node::services::ServiceError;

/// Says that a policy gave an approval.
pub(crate) fn is_of_policy(approval: &Approval) -> bool {
    Actor::from(approval.by.as_str()).policy_name().is_some()
}

/// Says why an approval that a policy gave is none that it could give; `None` where it could, or a person gave it.
pub(crate) fn fault_of(
    approval: &Approval,
    plan: &str,
    graph: &Graph,
) -> Result<Option<String>, ServiceError> {
    if !is_of_policy(approval) {
        return Ok(None);
    }
    let by = Actor::from(approval.by.as_str());
    let name = by.policy_name().unwrap_or_default();
    let config = serde_json::from_str(&approval.config)
        .map_err(|error| ServiceError::broken(format!("an approval does not read: {error}")))?;
    Ok(match approved_policy(&config, name) {
        None => Some(format!("the policy {name} approved it, and is none of its settings")),
        Some(policy) => match policy.refusals(plan, graph).as_slice() {
            [] => None,
            refusals => {
                Some(format!("the policy {name} approved it, and does not allow it: {}", refusals.join("; ")))
            }
        },
    })
}
