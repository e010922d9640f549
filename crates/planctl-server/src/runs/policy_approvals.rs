//! Approvals that a policy gave: known by their name, and checked against the policy's own settings (P-78).

use planctl_config::approved_policy;
use planctl_engine::{Actor, Graph};
use planctl_store::Approval;

use crate::node::services::ServiceError;

/// Names the policy that gave an approval; `None` where a person did.
pub(crate) fn policy_of(approval: &Approval) -> Option<String> {
    Actor::from(approval.by.as_str()).policy_name().map(str::to_owned)
}

/// Says why an approval that a policy gave is none that it could give; `None` where it could, or a person gave it.
pub(crate) fn fault_of(
    approval: &Approval,
    plan: &str,
    graph: &Graph,
) -> Result<Option<String>, ServiceError> {
    let Some(name) = policy_of(approval) else { return Ok(None) };
    let config = serde_json::from_str(&approval.config)
        .map_err(|error| ServiceError::broken(format!("an approval does not read: {error}")))?;
    Ok(match approved_policy(&config, &name) {
        None => Some(format!("the policy {name} approved it, but its settings have no such policy")),
        Some(policy) => match policy.refusals(plan, graph).as_slice() {
            [] => None,
            refusals => {
                Some(format!("the policy {name} approved it, and does not allow it: {}", refusals.join("; ")))
            }
        },
    })
}
