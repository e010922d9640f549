//! Reads `[approval.NAME]`.

use planctl_engine::Role;
use planctl_lang::budget_of;

use super::{Reader, Value, is_role};
use crate::layer::Layer;
use crate::policy::ApprovalPolicy;

const KEYS: [&str; 6] = ["plans", "budget", "steps", "roles", "contracts", "repairs"];

impl Reader<'_> {
    pub(super) fn policies(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "approval.NAME") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't name a policy"), Some(help));
                continue;
            }
            if !value.get_ref().is_table() {
                let help = format!("write [approval.{name}] with `plans` and `budget` below it");
                self.report(key.span(), "an approval policy is a table with a name".to_owned(), Some(help));
                continue;
            }
            let before = self.findings.len();
            let policy = self.policy(name, value);
            if let Some(policy) = policy {
                layer.approval.insert(name.to_owned(), policy);
            } else if before == self.findings.len() {
                let message = format!("the policy {name:?} needs `plans` and `budget`");
                let help =
                    "a policy approves in your place: say of which plans, and up to what budget".to_owned();
                self.report(key.span(), message, Some(help));
            }
        }
    }

    fn policy(&mut self, name: &str, value: &Value<'_>) -> Option<ApprovalPolicy> {
        let (mut plans, mut budget, mut steps, mut repairs) = (None, None, None, None);
        let (mut roles, mut contracts) = (None, None);
        for (key, value) in self.table(value, &format!("approval.{name}")) {
            match key.get_ref().as_ref() {
                "plans" => plans = self.plans(value),
                "budget" => {
                    let Some(text) = self.string(value) else { continue };
                    budget = budget_of(text);
                    if budget.is_none() {
                        let help = "write what a plan may use at most: \"200k tokens, $1.50, 20 minutes\""
                            .to_owned();
                        self.report(value.span(), format!("{text:?} is not a budget"), Some(help));
                    }
                }
                "steps" => steps = self.count(value),
                "repairs" => repairs = self.count(value),
                "roles" => {
                    let names = self.strings(value, "a list of roles: [\"coder\"]");
                    for name in names.iter().flatten().filter(|name| !is_role(name)) {
                        self.report(value.span(), format!("{name:?} can't be a role"), None);
                    }
                    roles = names.map(|names| names.iter().map(|name| Role::new(name.as_str())).collect());
                }
                "contracts" => contracts = self.strings(value, "a list of commands: [\"cargo test\"]"),
                other => self.unknown(key.span(), other, KEYS),
            }
        }
        let plans = plans.filter(|plans| !plans.is_empty())?;
        Some(ApprovalPolicy { plans, budget: budget?, steps, roles, contracts, repairs })
    }
}
