//! Reads the fields of the plan's head.

use planctl_engine::{Budget, Priority};

use super::field::RawField;
use super::step::with_meant;
use super::{Reader, values};
use crate::diagnostic::{Code, Diagnostic, did_you_mean};
use crate::source::{Span, Spanned, escape};
use crate::tree::Field;

impl Reader<'_> {
    pub(super) fn take_plan_field(&mut self, known: Field, field: &RawField, end: usize) {
        if known == Field::Context {
            self.tree.context = self.text(field, end);
            return;
        }
        let Some(value) = self.single(field, end) else {
            return self.report_empty(known, field);
        };
        match known {
            Field::Budget => self.tree.budget = Some(self.budget(&value)),
            Field::Priority => self.tree.priority = self.priority(&value),
            Field::MaxVisits => self.tree.max_visits = self.number(known, &value, 1, 100),
            Field::StaleAfter => self.tree.stale_after = self.duration(known, &value),
            Field::Parallel => self.tree.parallel = self.number(known, &value, 1, 64),
            // These belong to steps, or were read above.
            Field::Context
            | Field::Target
            | Field::Kind
            | Field::Subscriptions
            | Field::Task
            | Field::Contract
            | Field::ExitCode
            | Field::OnFail
            | Field::Timeout
            | Field::ContractTimeout
            | Field::Protects
            | Field::Guard
            | Field::MaxRetries
            | Field::Needs
            | Field::When
            | Field::ForEach
            | Field::Gate
            | Field::MinTests
            | Field::Locks
            | Field::Workspace
            | Field::Status => {}
        }
    }

    fn budget(&mut self, value: &Spanned<String>) -> Spanned<Budget> {
        let (budget, faults) = values::budget(&value.value);
        for fault in faults {
            let at = Span::new(value.span.start + fault.start, value.span.start + fault.end);
            let unread =
                Diagnostic::new(Code::P503, format!("the budget can't be understood: {}", fault.unread.why));
            self.found.push(unread.at(at, "this part").help(fault.unread.help));
        }
        Spanned::new(budget, value.span)
    }

    fn priority(&mut self, value: &Spanned<String>) -> Option<Spanned<Priority>> {
        let priority = match value.value.to_lowercase().as_str() {
            "low" => Priority::Low,
            "normal" => Priority::Normal,
            "high" => Priority::High,
            "urgent" => Priority::Urgent,
            other => {
                let message = format!("`{}` is no priority", escape(other));
                let near = did_you_mean(other, ["low", "normal", "high", "urgent"]);
                let help = near.map_or("write low, normal, high or urgent".into(), |near| {
                    format!("did you mean `{near}`?")
                });
                let refused = Diagnostic::new(Code::P015, message).at(value.span, "").help(help);
                self.found.push(with_meant(refused, value.span, near));
                return None;
            }
        };
        Some(Spanned::new(priority, value.span))
    }
}
