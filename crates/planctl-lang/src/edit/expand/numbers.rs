//! The numbers that steps have once templates are expanded.

use std::collections::BTreeMap;

use super::{Batches, Part};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::limits::STEPS_MAX;
use crate::text::{Span, escape};
use crate::tree::{template_key, template_range};

/// Which new numbers the old ones stand for.
pub(super) struct Numbers {
    pub(super) fixed: BTreeMap<u32, Vec<usize>>,
    /// Those of templates, by their form ([`template_key`]).
    pub(super) templates: BTreeMap<String, Vec<usize>>,
    /// The templates whose last number is a letter, with their first.
    open: Vec<(u32, String)>,
}

impl Numbers {
    pub(super) fn of(parts: &[Part<'_>], lists: &[Option<Batches>]) -> Numbers {
        let mut numbers = Numbers { fixed: BTreeMap::new(), templates: BTreeMap::new(), open: Vec::new() };
        let mut next = 1;
        for (part, list) in parts.iter().zip(lists) {
            let new = next..next + list.as_ref().map_or(1, Vec::len);
            next = new.end;
            let text = &part.step.node.id.value;
            let old = match part.step.node.number {
                Some(number) => number..=number,
                None => {
                    numbers.templates.entry(template_key(text)).or_default().extend(new.clone());
                    let Some((first, last)) = template_range(text) else { continue };
                    if last.is_none() {
                        numbers.open.push((first, text.clone()));
                    }
                    first..=last.unwrap_or(first)
                }
            };
            for number in old.take(STEPS_MAX) {
                numbers.fixed.entry(number).or_default().extend(new.clone());
            }
        }
        numbers
    }

    /// Refuses a number that no step has: it could come to be that of another.
    pub(super) fn refuse(&self, number: u32, span: Span) -> Diagnostic {
        match self.open.iter().find(|(first, _)| *first < number) {
            Some((_, template)) => {
                let template = escape(template);
                let message = format!("step {number} may be one of `{template}`, and nothing says which");
                let refused = Diagnostic::new(Code::P012, message).at(span, "");
                refused.help(format!("`{template}` names all of them, `N+1` the step after them"))
            }
            None => {
                let message = format!("step {number} is named, and is not there");
                Diagnostic::new(Code::P304, message).at(span, "").help("mend the number, or delete it")
            }
        }
    }
}
