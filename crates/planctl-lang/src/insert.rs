//! Puts steps that somebody proposes into a plan, after a step of it; what follows is numbered anew.

use crate::diagnostic::{Code, Diagnostic};
use crate::expand::expand;
use crate::fix::line_end;
use crate::parse::parse;
use crate::source::{Source, Span};

/// Returns a plan's text with the steps of a proposal after the step of this number.
///
/// A proposal is the text of one step or several, each with its heading (`### Title`, with or without a number).
///
/// # Errors
///
/// Returns findings where the proposal is no step, where the plan has no such step, or where ways are said as prose by the
/// numbers of steps, so that nobody but a person can say what they mean afterwards.
pub fn insert_steps(source: &Source, after: u32, proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let (tree, _) = parse(source);
    let refused = |span: Span, message: String, help: &str| {
        Err(vec![Diagnostic::new(Code::P012, message).at(span, "").help(help)])
    };
    let own = tree.steps.iter().position(|step| step.fixed_number() == Some(after));
    let Some(step) = own.and_then(|at| tree.steps.get(at)) else {
        return refused(Span::at(0), format!("the plan has no step {after}"), "name a step that is there");
    };
    if let Some(flow) = tree.flow.as_ref().filter(|flow| !flow.value.is_empty()) {
        let message = "the plan says its ways by the numbers of steps, which would mean others".to_owned();
        return refused(flow.span, message, "put the step in by hand");
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
    Ok(format!("{}{end}", expanded.text.trim_end()))
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
