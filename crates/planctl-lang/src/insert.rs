//! Puts steps that somebody proposes into a plan, after a step of it; what follows is numbered anew.

use std::collections::BTreeSet;

use planctl_engine::On;

use crate::diagnostic::{Code, Diagnostic};
use crate::expand::expand;
use crate::fix::line_end;
use crate::parse::parse;
use crate::source::{Source, Span};
use crate::tree::StepKind;
use crate::workflow::{EdgeTree, flow_edges};

/// Returns a plan's text with the steps of a proposal after the step of this number.
///
/// A proposal is the text of one step or several, each with its heading (`### Title`, with or without a number).
///
/// # Errors
///
/// Returns findings where the proposal is no step, where the plan has no such step, or where what follows the step depends
/// on more than its success, so that nobody but a person can say where another step belongs.
pub fn insert_steps(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let (tree, _) = parse(source);
    let refused = |span: Span, message: String, help: &str| {
        Err(vec![Diagnostic::new(Code::P012, message).at(span, "").help(help)])
    };
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
    let Some(titled) = headed(proposal) else {
        let message = "a proposal is the text of a step: `### Title`, then its fields".to_owned();
        return refused(Span::at(0), message, "begin it with a heading");
    };
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

/// Has the ways that led on from a step lead on from the last of those that were put in after it.
fn moved_ways(source: &Source, after: u32, last: usize) -> String {
    let (tree, _) = parse(source);
    let edges = flow_edges(source, &tree);
    let from =
        edges.iter().filter(|edge| edge.on.value == On::Success && edge.from.value == after.to_string());
    let places: BTreeSet<Span> = from.map(|edge| edge.from.span).collect();
    let mut text = source.text().to_owned();
    for place in places.into_iter().rev() {
        text.replace_range(place.start..place.end, &last.to_string());
    }
    text
}

/// Returns a proposal whose headings have the number of a step that is still to be numbered; nothing where it has none.
fn headed(proposal: &str) -> Option<String> {
    let lines: Vec<&str> = proposal.trim().lines().collect();
    let first = lines.first()?.trim_start();
    if !first.starts_with("###") && !first.starts_with("##") {
        return None;
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
    Some(written.join("\n"))
}
