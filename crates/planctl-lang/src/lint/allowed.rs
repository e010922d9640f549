//! P018: the findings that a plan allows, taken out of those that are told, and the comments that allow nothing.

use std::collections::BTreeMap;

use super::{Needs, needs};
use crate::diagnostic::levels::{Levels, Wish};
use crate::diagnostic::{Code, Diagnostic, Edit, Severity, did_you_mean};
use crate::facts::{Facts, Trial};
use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::text::{Span, escape};
use crate::tree::{Allow, PlanTree};

/// The most comments of a plan that are compared with all codes; more are no slip.
const SUGGESTIONS_MAX: usize = 100;

/// A finding that the plan allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// The finding, at its own level.
    pub finding: Diagnostic,
    /// Why the author allows it.
    pub reason: String,
    /// The comment that says so.
    pub comment: Span,
}

/// The comments of a plan, and the findings that they have met so far.
pub(crate) struct Allowing<'a> {
    tree: &'a PlanTree,
    levels: &'a Levels,
    /// Those that can hold, by their code and the place of their step.
    comments: BTreeMap<(Code, Option<usize>), Comment<'a>>,
    allowed: Vec<Allowed>,
    refused: Vec<Diagnostic>,
}

struct Comment<'a> {
    allow: &'a Allow,
    met: Met,
}

/// The findings that a comment is about; of several the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    Nothing,
    /// An error, which no plan allows.
    Error,
    /// One whose code is denied by name where the plan is verified.
    Denied,
    Allowed,
}

impl<'a> Allowing<'a> {
    /// Reads the comments of a plan.
    pub(crate) fn of(source: &Source, tree: &'a PlanTree, levels: &'a Levels) -> Allowing<'a> {
        let (comments, allowed, refused) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut allowing = Allowing { tree, levels, comments, allowed, refused };
        for allow in &tree.allows {
            let step = tree.step_at(allow.span.start);
            let suggests = allowing.refused.len() < SUGGESTIONS_MAX;
            match code_of(source, allow, suggests)
                .and_then(|code| allowing.first_of(source, (code, step), allow))
            {
                Ok(code) => {
                    allowing.comments.insert((code, step), Comment { allow, met: Met::Nothing });
                }
                Err(refused) => allowing.refused.push(*refused),
            }
        }
        allowing
    }

    fn first_of(
        &self,
        source: &Source,
        key: (Code, Option<usize>),
        allow: &Allow,
    ) -> Result<Code, Box<Diagnostic>> {
        let Some(first) = self.comments.get(&key) else { return Ok(key.0) };
        let twice = Diagnostic::new(Code::P018, format!("`{}` is allowed twice in one place", key.0))
            .at(allow.code.span, "again here")
            .at(first.allow.code.span, "first here")
            .help("keep the comment whose reason is meant");
        Err(Box::new(without_line(twice, source, allow, false)))
    }

    /// Takes out the findings that the plan allows.
    pub(crate) fn take(&mut self, found: &mut Vec<Diagnostic>) {
        if !self.comments.is_empty() {
            *found = std::mem::take(found).into_iter().filter_map(|finding| self.told(finding)).collect();
        }
    }

    // Returns a finding unless the plan allows it.
    fn told(&mut self, finding: Diagnostic) -> Option<Diagnostic> {
        let step = finding.spans.first().and_then(|label| self.tree.step_at(label.span.start));
        // A comment of the step goes before one of the whole plan.
        let keys = [(finding.code, step), (finding.code, None)];
        let Some(key) = keys.into_iter().find(|key| self.comments.contains_key(key)) else {
            return Some(finding);
        };
        let comment = self.comments.get_mut(&key)?;
        let met = match finding.is_error() {
            true => Met::Error,
            false if self.levels.wish_of(finding.code) == Some(Wish::Deny) => Met::Denied,
            false => Met::Allowed,
        };
        comment.met = comment.met.max(met);
        match met {
            Met::Allowed => {
                let (reason, comment) = (comment.allow.reason.value.clone(), comment.allow.span);
                self.allowed.push(Allowed { finding, reason, comment });
                None
            }
            Met::Denied => Some(finding.note("the plan allows it; here its code is denied by name")),
            Met::Error | Met::Nothing => Some(finding),
        }
    }

    /// Returns the findings that the plan allows, in the order of the text, and those about comments that allow none.
    pub(crate) fn end(mut self, source: &Source, facts: &Facts) -> (Vec<Allowed>, Vec<Diagnostic>) {
        for ((code, step), comment) in &self.comments {
            let told = match comment.met {
                Met::Allowed | Met::Denied => continue,
                Met::Error => Some(error_finding(source, *code, comment.allow)),
                // Nobody looked for it.
                Met::Nothing if self.levels.hides(*code) => None,
                Met::Nothing => idle_finding(source, *code, comment.allow, self.is_tried(*step, facts)),
            };
            self.refused.extend(told);
        }
        for finding in &mut self.refused {
            let step = finding.spans.first().and_then(|label| self.tree.step_at(label.span.start));
            finding.step = step.map(|at| self.tree.steps[at].node.step_name());
        }
        let place = |allowed: &Allowed| allowed.finding.spans.first().map(|label| label.span);
        self.allowed.sort_by_key(place);
        (self.allowed, self.refused)
    }

    // Says whether the contracts that a comment is about were tried.
    fn is_tried(&self, step: Option<usize>, facts: &Facts) -> bool {
        let mut steps = match step {
            Some(at) => self.tree.steps[at..=at].iter(),
            None => self.tree.steps.iter(),
        };
        steps.all(|step| {
            let trial = step.node.number.and_then(|number| facts.trials.get(&number));
            step.node.contract.is_none() || matches!(trial, Some(Trial::Tried(_)))
        })
    }
}

/// Returns the code that a comment allows.
fn code_of(source: &Source, allow: &Allow, suggests: bool) -> Result<Code, Box<Diagnostic>> {
    let refused = |message: String| Diagnostic::new(Code::P018, message).at(allow.code.span, "");
    let written = allow.code.value.as_str();
    let Some(code) = Code::from_word(written) else {
        let known = Code::ALL.iter().filter(|code| code.guards().is_none()).map(|code| code.as_str());
        let unknown = match written {
            "" => refused("the comment names no code".to_owned()),
            _ => refused(format!("`{}` is not the code of a finding", escape(written))),
        };
        return Err(Box::new(match did_you_mean(written, known.filter(|_| suggests)) {
            Some(near) => unknown.help(format!("did you mean `{near}`?")).fix(allow.code.span, near, false),
            None => without_line(unknown.help("`planctl explain` lists the codes"), source, allow, false),
        }));
    };
    if let Some(why) = code.guards() {
        let guarded = refused(format!("no plan allows `{code}`: {why}"));
        let guarded = guarded.help("mend what is found, or leave it to the person who approves the plan");
        return Err(Box::new(without_line(guarded, source, allow, true)));
    }
    if allow.reason.value.is_empty() {
        let bare = Diagnostic::new(Code::P018, format!("the plan allows `{code}` and does not say why"));
        let bare = bare.at(allow.reason.span, "the reason is missing here");
        let bare = bare.help(format!("write it behind the code: `<!-- planctl: allow {code} REASON -->`"));
        return Err(Box::new(without_line(bare, source, allow, false)));
    }
    Ok(code)
}

fn error_finding(source: &Source, code: Code, allow: &Allow) -> Diagnostic {
    let error =
        Diagnostic::new(Code::P018, format!("`{code}` is an error here, and no plan allows an error"));
    without_line(
        error.at(allow.code.span, "").help("mend the error and delete the comment"),
        source,
        allow,
        true,
    )
}

// A finding that needs more than the text may well be there another time.
fn idle_finding(source: &Source, code: Code, allow: &Allow, is_tried: bool) -> Option<Diagnostic> {
    let message = format!("the plan allows `{code}`, and nothing of that kind is found");
    let idle = Diagnostic::new(Code::P018, message).at(allow.code.span, "allows nothing");
    let idle = idle.help("delete the comment");
    match needs(code) {
        Needs::Text => Some(without_line(idle, source, allow, true)),
        Needs::Surroundings => Some(without_line(idle.level(Severity::Note), source, allow, false)),
        Needs::Trials => is_tried.then(|| without_line(idle, source, allow, false)),
    }
}

fn without_line(finding: Diagnostic, source: &Source, allow: &Allow, safe: bool) -> Diagnostic {
    finding.fix(source.whole_line(allow.span.start), "", safe)
}

/// Returns the edit that allows a finding where it is, up to the reason, which only a person can write; none where no plan
/// can allow it.
pub fn allowing_edit(source: &Source, tree: &PlanTree, finding: &Diagnostic) -> Option<Edit> {
    if finding.is_error() || finding.code.guards().is_some() || Language::of(source.path()).is_some() {
        return None;
    }
    let step = finding.spans.first().and_then(|label| tree.step_at(label.span.start));
    let above = match step {
        Some(at) => tree.steps[at].heading,
        None => tree.head.title.as_ref()?.span,
    };
    let end = source.line_span(source.line_of(above.start)).end;
    let comment = format!("\n\n<!-- planctl: allow {} -->", finding.code);
    Some(Edit { span: Span::at(end), replacement: comment })
}
