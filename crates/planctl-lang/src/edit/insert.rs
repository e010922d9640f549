//! Puts a step that a worker proposes into a plan, after a step of it; the steps after it are numbered anew.
//!
//! A proposal is written as a step of markdown in every form of plan: `graph` makes a node of it where the plan is one of
//! DOT or JSON, and leads the ways on from the new one; `dot` and `json` edit the text. The proposal is untrusted: `alone`
//! parses it by itself first, and the plan without the new step must mean what it meant before.

mod alone;
mod dot;
mod graph;
mod json;

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;

use crate::analysis::may_change;
use crate::diagnostic::{Code, Diagnostic};
use crate::edit::expand::expand;
use crate::edit::fix::line_end;
use crate::report::changes::{Change, changes};
use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::text::Span;
use crate::tree::parse::parse;
use crate::tree::workflow::{EdgeTree, Kind, NodeTree, flow_edges};
use crate::tree::{PlanTree, StepTree};
use crate::verify::read;

/// Returns a plan's text with the step of a proposal after the step of this number.
///
/// A proposal is the text of exactly one step with its heading (`### Title`, with or without a number). A plan in DOT or
/// JSON keeps its form, its comments and its layout: the step becomes a node of it, and what followed the step follows it.
///
/// # Errors
///
/// Returns findings where the proposal is not exactly one step or leaves text open, where the plan has no such step, where
/// the plan without the new step would mean something else than before, or where what follows the step
/// depends on more than its success, so that nobody but a person can say where another step belongs.
pub fn insert_step(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    match Language::of(source.path()) {
        Some(language) => graph::insert(source, language, after, proposal),
        None => into_markdown(source, after, proposal),
    }
}

/// The plan with the step put in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Insertion {
    /// The changes to the plan's meaning.
    pub changes: Vec<Change>,
    /// Names and patterns of the files that its worker may change: protected ones among them move when it passes.
    pub may_change: BTreeSet<String>,
}

/// Says what a step that was put in makes of a plan, given both texts.
pub fn insertion(before: &Source, after: &Source) -> Insertion {
    let (old, new) = (read(before), read(after));
    let changes = changes(&old.shown(), &new.shown());
    let is_added = |node: &NodeTree| {
        changes.iter().any(|change| matches!(change, Change::Added { step, .. } if *step == node.id.value))
    };
    let steps = new.workflow.steps().into_iter().enumerate().filter(|(_, step)| is_added(step));
    let may_change = steps.flat_map(|(at, step)| may_change(&new.order, at, step)).collect();
    Insertion { changes, may_change }
}

fn refused<T>(span: Span, message: String, help: &str) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::new(Code::P012, message).at(span, "").help(help)])
}

fn into_markdown(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let (tree, _) = parse(source);
    let own = tree.steps.iter().position(|step| step.node.number == Some(after));
    let Some(step) = own.and_then(|at| tree.steps.get(at)) else {
        return refused(Span::at(0), format!("the plan has no step {after}"), "name a step that is there");
    };
    let edges = flow_edges(source, &tree, &mut Vec::new());
    let mut edges = edges.into_iter().filter(|edge| edge.from.value == step.node.id.value);
    let forks = matches!(step.node.kind.value, Kind::Decision | Kind::Human);
    let unclear = |edge: &EdgeTree| {
        forks || edge.on.value == On::Always || edge.on.value == On::Success && !edge.is_plain()
    };
    if let Some(edge) = edges.find(unclear) {
        let message = format!("where the run goes from step {after} depends on more than its success");
        return refused(edge.span, message, "put the step in by hand");
    }
    let titled = alone::one_step(proposal)?;
    let (end, text) = (line_end(source), source.text());
    let (before, rest) = text.split_at(step.node.span.end.min(text.len()));
    let together = format!(
        "{}{end}{end}{}{end}{end}{}",
        before.trim_end(),
        titled.lines().collect::<Vec<_>>().join(end),
        rest.trim_start_matches(['\n', '\r'])
    );
    let expanded = expand(&Source::new(source.path(), together), None)?;
    let last = after as usize + expanded.steps - tree.steps.len();
    let moved = moved_edges(&Source::new(source.path(), expanded.text), after, last);
    let text = format!("{}{end}", moved.trim_end());
    let (new, _) = parse(&Source::new(source.path(), text.as_str()));
    let place = own.map_or(0, |own| own + 1);
    match differs(tree, new, place) {
        None => Ok(text),
        Some(what) => {
            let message = format!("the new step would change more of the plan than its place: {what}");
            refused(Span::at(0), message, "put the step in by hand")
        }
    }
}

/// Names a part of a plan that a step at this place changed, besides the numbers of the steps after it.
fn differs(old: PlanTree, mut new: PlanTree, place: usize) -> Option<String> {
    if new.steps.len() != old.steps.len() + 1 {
        return Some(format!("it has {} steps where {} were meant", new.steps.len(), old.steps.len() + 1));
    }
    new.steps.remove(place);
    for (old, new) in old.steps.iter().zip(&new.steps) {
        if alone::meaning_of_step(old) != alone::meaning_of_step(new) {
            return Some(format!("step {} would differ", old.node.id.value));
        }
    }
    (alone::meaning_of_plan(old) != alone::meaning_of_plan(new)).then(|| "the plan's own fields".to_owned())
}

/// Has what led on from a step lead on from the last of those that were put in after it: lines of `## Flow`, and what later
/// steps need.
fn moved_edges(source: &Source, after: u32, last: usize) -> String {
    let (tree, _) = parse(source);
    let edges = flow_edges(source, &tree, &mut Vec::new());
    let from =
        edges.iter().filter(|edge| edge.on.value == On::Success && edge.from.value == after.to_string());
    let mut edits: BTreeMap<Span, String> = from.map(|edge| (edge.from.span, last.to_string())).collect();
    let (own, new): (Vec<&StepTree>, Vec<&StepTree>) = tree
        .steps
        .iter()
        .filter(|step| step.node.number != Some(after))
        .partition(|step| step.node.number.is_none_or(|number| number < after || number as usize > last));
    // Steps that say what they need, and not the one that proposed them, come beside what follows it.
    let follows = |step: &&StepTree| step.needs().is_none_or(|needs| needs.value.contains(&after));
    if new.first().is_some_and(follows) {
        for needs in own.into_iter().filter_map(StepTree::needs) {
            if needs.value.contains(&after) {
                let moved =
                    |number: &u32| if *number == after { last.to_string() } else { number.to_string() };
                edits.insert(needs.span, needs.value.iter().map(moved).collect::<Vec<_>>().join(", "));
            }
        }
    }
    source.edited(edits)
}
