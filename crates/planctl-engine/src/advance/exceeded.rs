//! A budget that is used up in mid-attempt: the workers are stopped, and a person is asked (P-73).

use crate::ids::NodeId;
use crate::refusal::Refusal;
use crate::run::NodeState;

use super::dispatch::{self, Funds};
use super::{Transition, hold};

/// Takes back the work of all agents if the run has used more than its budget, together with what they have reported so far;
/// says whether it did. No attempt of the allowance is spent. A gate that is out goes on: the work that it judges is paid for.
pub(super) fn stop_over_budget(transition: &mut Transition<'_>) -> Result<bool, Refusal> {
    transition.refuse_unless_active()?;
    let mut working = Vec::new();
    for node in transition.run.live_nodes()? {
        if matches!(transition.state(&node)?, NodeState::Working { .. } | NodeState::Resting { .. }) {
            working.push(node);
        }
    }
    if working.is_empty() || !is_exceeded(transition, &working) {
        return Ok(false);
    }
    for node in &working {
        transition.withdraw(node)?;
    }
    for node in &working {
        let Funds::Short(shortfall) = dispatch::check_budget(transition, node)? else {
            return Err(Refusal::WrongState);
        };
        hold::for_budget(transition, node, shortfall)?;
    }
    Ok(true)
}

fn is_exceeded(transition: &Transition<'_>, working: &[NodeId]) -> bool {
    let head = &transition.run.head;
    head.is_overspent(working.iter().filter_map(|node| transition.run.noted.get(node)))
        || head.budget.time.is_some_and(|limit| head.time_spent(transition.now) > limit)
}
