//! Texts with no step that planctl can read: plans of other tools, check lists, notes. One finding shows how a step is written.

use super::Context;
use crate::diagnostic::{Code, Diagnostic, Edit, Fix};
use crate::import::Origin;
use crate::syntax::Language;
use crate::syntax::markdown::{LineKind, Outline};
use crate::syntax::source::Source;
use crate::text::{Span, escape, shell_word};
use crate::tree::parse::heading;

/// The most characters of an item that are shown as a step's title.
const TITLE_CHARACTERS_MAX: usize = 80;
/// The lines at the top of a text in which a fence around all of it is looked for.
const FENCE_LINES_MAX: usize = 30;

/// Says of another tool's task list what it is, and how it becomes a plan.
pub(crate) fn of_tool(source: &Source) -> Option<Diagnostic> {
    let origin = Origin::of(source).filter(|origin| *origin != Origin::Checklist)?;
    let message = format!("this is {}, not a plan of planctl", origin.name());
    let foreign = Diagnostic::new(Code::P007, message).at(first_line(source), "begins here");
    Some(
        foreign
            .note("its open tasks become steps; what proves each of them is left to you")
            .help(format!("make a plan of it: `planctl plan import {}`", escape(&shell_word(source.path())))),
    )
}

/// Says that the whole plan stands in a code fence, as answers of models have it: nothing in it would be read as it is meant.
pub(crate) fn fenced(source: &Source) -> Option<Diagnostic> {
    if Language::of(source.path()).is_some() {
        return None;
    }
    let line = |at: usize| source.slice(source.line_span(at)).trim();
    let is_key = |at: usize| ["type:", "status:", "owner:"].iter().any(|key| line(at).starts_with(key));
    let last = source.line_count().saturating_sub(1);
    let lines = (0..last.min(FENCE_LINES_MAX)).filter(|at| !line(*at).is_empty());
    let first =
        lines.clone().find(|at| line(*at).starts_with("---") || line(*at).starts_with(['`', '~', '#']))?;
    let sign = line(first).chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line(first).trim_start_matches(sign);
    let length = line(first).len() - rest.len();
    let is_markdown = matches!(rest.trim().to_ascii_lowercase().as_str(), "" | "markdown" | "md");
    if length < 3 || !is_markdown || line(first + 1) != "---" || !is_key((first + 2).min(last)) {
        return None;
    }
    let end = (0..=last).rev().find(|at| !line(*at).is_empty()).filter(|at| {
        let bare = line(*at).trim_start_matches(sign);
        bare.is_empty() && line(*at).len() >= length
    });
    let message = "the whole plan stands in a code fence, so nothing of it is read";
    let at = source.words_span(first);
    let fenced = Diagnostic::new(Code::P007, message).at(at, "the fence begins here");
    let is_alone = lines.clone().next() == Some(first);
    let edits: Vec<Edit> = [Some(first), end]
        .into_iter()
        .flatten()
        .map(|at| source.line_span(at))
        .map(|line| Edit { span: source.whole_line(line.start), replacement: String::new() })
        .collect();
    Some(match (is_alone, end) {
        (true, Some(end)) => Diagnostic {
            fix: Some(Fix { edits, safe: true }),
            ..fenced.help(format!("delete this line, and line {} that closes it", end + 1))
        },
        (false, _) | (_, None) => {
            fenced.help("delete all lines up to this one, and the line below the plan that closes the fence")
        }
    })
}

/// Says that the text has no step, with its own first item as one.
pub(super) fn finding(context: &Context<'_>) -> Diagnostic {
    let source = context.source;
    let outline = Outline::read(source, 0);
    let lines = (0..source.line_count()).filter(|line| outline.kind(*line) == LineKind::Text);
    let spans: Vec<Span> = lines.map(|line| source.line_span(line)).collect();
    let of_kind = |kind: fn(&str) -> Option<&str>| {
        spans.iter().find_map(|span| Some((*span, kind(source.slice(*span).trim())?)))
    };
    let item = of_kind(check_box).or_else(|| of_kind(numbered)).or_else(|| of_kind(section));
    let message = "the file has no step that planctl can read";
    let none = Diagnostic::new(Code::P007, message);
    let none = match item {
        Some((span, _)) => none.at(span, "this may be one, in another form"),
        None => none.at(first_line(source), "a plan begins with frontmatter, a title and `## Steps`"),
    };
    let title = item.map_or("Find the cause", |(_, title)| title);
    let title: String = title.chars().take(TITLE_CHARACTERS_MAX).collect();
    let title = escape(&title);
    let none = match Origin::of(source) {
        Some(_) => none.note(format!(
            "`planctl plan import {}` makes a plan of its open boxes",
            escape(&shell_word(source.path()))
        )),
        None => none,
    };
    none.note("`planctl new` writes a plan to begin with; how plans are written: docs/plan-format.md").help(format!(
        "below `## Steps`, a step says who does it, what to do, and what proves it:\n### 1. {title}\n\n**target:** \
         coder\n**task:**\n{title}\n\n**contract:**\n```shell\ntest -s docs/analysis.md\n```\nexit_code == 0"
    ))
}

fn first_line(source: &Source) -> Span {
    let spans = (0..source.line_count()).map(|line| source.line_span(line));
    let mut full = spans.filter(|span| !source.slice(*span).trim().is_empty());
    full.next().unwrap_or(Span::at(0))
}

// `- [ ] Add X`
fn check_box(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+'])?.trim_start();
    let title = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| rest.strip_prefix(mark))?.trim();
    (!title.is_empty()).then_some(title)
}

// `1. Add X`
fn numbered(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let title = line[digits..].strip_prefix(['.', ')'])?.trim();
    (digits > 0 && !title.is_empty()).then_some(title)
}

// `### Add X`
fn section(line: &str) -> Option<&str> {
    let heading = heading::heading(line, 0)?;
    (heading.level > 1 && !heading.text.is_empty()).then_some(heading.text)
}
