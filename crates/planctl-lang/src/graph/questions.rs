//! Questions for people: their options, and the answer that counts where nobody gives one.

use planctl_engine::{DefaultAnswer, Question, match_option};

use super::{Lowering, text};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::escape;
use crate::text::near::{ask_or_say, nearest};
use crate::tree::workflow::{Kind, NodeTree};

/// The most options that a finding names.
const OPTIONS_NAMED_MAX: usize = 6;

impl Lowering<'_> {
    // H1: the labels of its edges are the options.
    pub(super) fn question(&self, at: usize, node: &NodeTree) -> Question {
        let usual = self.usual(at, node);
        let default = node.attributes.timeout.value().and_then(|after| {
            let answer = usual.clone()?;
            Some(DefaultAnswer { after: *after, answer })
        });
        let options = if self.edges.takes_any_text(at) { Vec::new() } else { self.edges.options(at) };
        Question { text: self.text_of(node), options, default, usual }
    }

    /// Returns the usual answer to a question: an option is meant by its label, by the node that it leads to, or as a person's
    /// answer means one.
    fn usual(&self, at: usize, node: &NodeTree) -> Option<String> {
        let choice = text(&node.attributes.default_choice)?;
        if self.edges.takes_any_text(at) {
            return Some(choice);
        }
        let options = self.edges.options(at);
        if options.contains(&choice) {
            return Some(choice);
        }
        let by_target = self.edges.option_to(at, &choice);
        by_target.or_else(|| match_option(&options, &choice).map(str::to_owned))
    }

    /// Returns the usual answers that mean no option, or could mean two: their questions would wait for ever.
    pub(super) fn unmeant_choices(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (at, node) in self.plan.workflow.nodes.iter().enumerate() {
            let Some(choice) = node.attributes.default_choice.text() else { continue };
            if node.kind.value != Kind::Human || self.usual(at, node).is_some() {
                continue;
            }
            let message = format!(
                "the usual answer `{}` means none of the options of `{}`",
                escape(&choice.value),
                escape(&node.id.value)
            );
            let options = self.edges.options(at);
            let near = nearest(&choice.value, options.iter().map(String::as_str));
            let named: Vec<String> = options
                .iter()
                .take(OPTIONS_NAMED_MAX)
                .map(|option| format!("`{}`", escape(option)))
                .collect();
            let finding = Diagnostic::new(Code::P304, message).at(choice.span, "").step(node.step_name());
            let options = format!("the options are: {}", named.join(", "));
            found.push(finding.help(ask_or_say(near.map(|near| near.word), options)));
        }
        found
    }
}
