//! Puts steps that somebody proposes into a plan, after a step of it; what follows is numbered anew.
//!
//! A proposal is written as steps of markdown are, whatever the plan's own form: `graph` makes nodes of it where the plan is
//! one of DOT or JSON, and leads the ways on from the new ones; `dot` and `json` edit the text.

mod dot;
mod graph;
mod json;

use std::collections::BTreeMap;

use planctl_engine::On;

use crate::diagnostic::{Code, Diagnostic};
use crate::expand::expand;
use crate::fix::line_end;
use crate::parse::parse;
use crate::source::{Source, Span};
use crate::tree::{StepKind, StepTree};
use crate::workflow::{EdgeTree, Language, flow_edges};

/// Returns a plan's text with the steps of a proposal after the step of this number.
///
/// A proposal is the text of one step or several, each with its heading (`### Title`, with or without a number). A plan in
/// DOT or JSON keeps its form, its comments and its layout: the steps become nodes of it, and what followed the step
/// follows them.
///
/// # Errors
///
/// Returns findings where the proposal is no step, where the plan has no such step, or where what follows the step depends
/// on more than its success, so that nobody but a person can say where another step belongs.
pub fn insert_steps(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    match Language::of(source.path()) {
        Some(language) => graph::insert(source, language, after, proposal),
        None => into_markdown(source, after, proposal),
    }
}

fn refused<T>(span: Span, message: String, help: &str) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::new(Code::P012, message).at(span, "").help(help)])
}

fn into_markdown(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let (tree, _) = parse(source);
    let own = tree.steps.iter().position(|step| step.fixed_number() == Some(after));
    let Some(step) = own.and_then(|at| tree.steps.get(at)) else {
        return refused(Span::at(0), format!("the plan has no step {after}"), "name a step that is there");
    };
    let ways = flow_edges(source, &tree).into_iter().filter(|edge| edge.from.value == step.number_text());
    let forks =
        matches!(step.kind.as_ref().map(|kind| kind.value), Some(StepKind::Decision | StepKind::Human));
    let unclear = |edge: &EdgeTree| {
        forks || edge.on.value == On::Always || edge.on.value == On::Success && !edge.is_plain()
    };
    if let Some(way) = ways.into_iter().find(unclear) {
        let message = format!("where the run goes from step {after} depends on more than its success");
        return refused(way.span, message, "put the step in by hand");
    }
    let titled = headed(proposal)?;
    let (end, text) = (line_end(source), source.text());
    let (before, rest) = text.split_at(step.end.min(text.len()));
    let together = format!(
        "{}{end}{end}{}{end}{end}{}",
        before.trim_end(),
        titled.lines().collect::<Vec<_>>().join(end),
        rest.trim_start_matches(['\n', '\r'])
    );
    let expanded = expand(&Source::new(source.path(), together), None)?;
    let last = after as usize + expanded.steps - tree.steps.len();
    let moved = moved_ways(&Source::new(source.path(), expanded.text), after, last);
    Ok(format!("{}{end}", moved.trim_end()))
}

/// Has what led on from a step lead on from the last of those that were put in after it: lines of `## Flow`, and what later
/// steps need.
fn moved_ways(source: &Source, after: u32, last: usize) -> String {
    let (tree, _) = parse(source);
    let edges = flow_edges(source, &tree);
    let from =
        edges.iter().filter(|edge| edge.on.value == On::Success && edge.from.value == after.to_string());
    let mut edits: BTreeMap<Span, String> = from.map(|edge| (edge.from.span, last.to_string())).collect();
    let (own, new): (Vec<&StepTree>, Vec<&StepTree>) =
        tree.steps.iter().filter(|step| step.fixed_number() != Some(after)).partition(|step| {
            step.fixed_number().is_none_or(|number| number < after || number as usize > last)
        });
    // Steps that say what they need, and not the one that proposed them, come beside what follows it.
    let follows = |step: &&StepTree| step.needs.as_ref().is_none_or(|needs| needs.value.contains(&after));
    if new.first().is_some_and(follows) {
        for needs in own.into_iter().filter_map(|step| step.needs.as_ref()) {
            if needs.value.contains(&after) {
                let moved =
                    |number: &u32| if *number == after { last.to_string() } else { number.to_string() };
                edits.insert(needs.span, needs.value.iter().map(moved).collect::<Vec<_>>().join(", "));
            }
        }
    }
    let mut text = source.text().to_owned();
    for (place, written) in edits.into_iter().rev() {
        text.replace_range(place.start..place.end, &written);
    }
    text
}

/// Returns a proposal whose headings have the number of a step that is still to be numbered.
fn headed(proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let lines: Vec<&str> = proposal.trim().lines().collect();
    if !lines.first().is_some_and(|first| first.trim_start().starts_with("##")) {
        let message = "a proposal is the text of a step: `### Title`, then its fields".to_owned();
        return refused(Span::at(0), message, "begin it with a heading");
    }
    let mut fence: Option<&str> = None;
    let mut written = Vec::with_capacity(lines.len());
    for line in lines {
        let bare = line.trim_start();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = match fence {
                None => Some(mark),
                Some(open) if open == mark => None,
                Some(open) => Some(open),
            };
        }
        if fence.is_none() && bare.starts_with('#') {
            let title = bare.trim_start_matches('#').trim();
            let number: usize = title.bytes().take_while(u8::is_ascii_digit).count();
            let rest = title[number..].trim_start();
            let title = match rest.strip_prefix(['.', ')', ':']) {
                Some(rest) if number > 0 => rest.trim_start(),
                _ => title,
            };
            written.push(format!("### N+1. {title}"));
        } else {
            written.push(line.to_owned());
        }
    }
    Ok(written.join("\n"))
}
