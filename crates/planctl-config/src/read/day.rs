//! Reads `[budget]`.

use planctl_engine::Budget;
use planctl_lang::budget_of;

use super::{Reader, Value};
use crate::layer::Layer;

const KEYS: [&str; 3] = ["per_day", "host_per_day", "time_zone"];

impl Reader<'_> {
    pub(super) fn day_budgets(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "budget") {
            match key.get_ref().as_ref() {
                "per_day" => layer.day.project = self.day_budget(value),
                "host_per_day" => layer.day.host = self.day_budget(value),
                "time_zone" => layer.day.zone = self.time_zone(value),
                other @ "notice_at" => self.later(key.span(), &format!("budget.{other}")),
                other => self.unknown(key.span(), other, KEYS),
            }
        }
    }

    fn day_budget(&mut self, value: &Value<'_>) -> Option<Budget> {
        let text = self.string(value)?;
        let budget = budget_of(text).filter(|budget| budget.time.is_none());
        if budget.is_none() {
            let help = "write tokens, money or both: \"2M tokens, $20\"".to_owned();
            self.report(value.span(), format!("{text:?} is not a budget of a day"), Some(help));
        }
        budget
    }
}
