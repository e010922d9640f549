//! Budgets of a day, which many runs share (P15).

use planctl_engine::Budget;
use serde::{Deserialize, Serialize};

/// The budgets of a day. They limit tokens and money, and no time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DayBudgets {
    /// The budget that the runs of the project share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Budget>,
    /// The budget that all runs of the machine share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Budget>,
    /// The name of the time zone whose days they are; the machine's own where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl DayBudgets {
    /// Says whether no day is limited.
    pub fn is_none(&self) -> bool {
        self.project.is_none() && self.host.is_none()
    }
}
