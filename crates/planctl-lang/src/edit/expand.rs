//! Turns templates of steps (`### 3–N.`, `### N+1.`, `**for_each:**`) into numbered steps, one per item.

mod numbers;
mod quoting;
mod writer;

use std::num::NonZeroUsize;

use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::markdown::{LineKind, Outline};
use crate::syntax::source::Source;
use crate::text::limits::PLAN_BYTES_MAX;
use crate::text::limits::STEPS_MAX;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};
use crate::tree::parse::layout::PartKind;
use crate::tree::parse::{heading, parse, parse_with_layout};
use crate::tree::workflow::mentions;
use crate::tree::{Field, PlanTree, StepTree};
use numbers::Numbers;
use writer::TemplateExpander;

/// The most characters an item may have.
const ITEM_CHARACTERS_MAX: usize = 500;
/// The placeholders of the item, the new step's number, the item's place in the list, and the number of items.
const PLACEHOLDERS: [&str; 4] = ["{item}", "{n}", "{index}", "{count}"];

/// The items of a template, those of one step together.
type Batches = Vec<Vec<String>>;

/// A plan whose templates are written out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// How many templates there were.
    pub templates: usize,
    /// How many steps the plan has.
    pub steps: usize,
}

/// Writes out the templates of a plan, numbers all steps anew, and lets `needs`, conditions, the lines of `## Flow` and
/// subscriptions follow.
///
/// A step's own `**for_each:**` list comes before `given` items. In a template `{item}`, `{n}`, `{index}` and `{count}`
/// are filled in; in a contract an item is quoted, so that no item becomes code. A later step's subscription that
/// names `{item}` is repeated for each item.
///
/// # Errors
///
/// Returns findings where items are missing or can't be put in, or where the plan would be too large.
pub fn expand(source: &Source, given: Option<&[String]>) -> Result<Expanded, Vec<Diagnostic>> {
    expand_in_batches(source, given, NonZeroUsize::MIN)
}

/// Writes out the templates of a plan as [`expand`] does, with a step for so many items each, the last with what is left.
///
/// In text `{item}` becomes a list with commas, in a contract words, and a subscription that names it is repeated.
///
/// # Errors
///
/// Those of [`expand`], and where several items stand in a contract for what is one word.
pub fn expand_in_batches(
    source: &Source,
    given: Option<&[String]>,
    batch: NonZeroUsize,
) -> Result<Expanded, Vec<Diagnostic>> {
    let (tree, _) = parse(source);
    let outline = Outline::read(source, body_line(source, &tree));
    let parts: Vec<Part<'_>> =
        (0..tree.steps.len()).map(|at| read_step_part(source, &tree, &outline, at)).collect();
    let mut found = Vec::new();
    let in_batches =
        |list: Vec<String>| -> Batches { list.chunks(batch.get()).map(<[String]>::to_vec).collect() };
    let lists: Vec<Option<Batches>> =
        parts.iter().map(|part| items(part, given, &mut found).map(in_batches)).collect();
    found.extend(unused(&parts, given));
    found.extend(
        parts.iter().filter(|part| part.is_several()).flat_map(|part| misspelt_placeholders(source, part)),
    );
    if !found.is_empty() {
        return Err(found);
    }
    let counts: Vec<usize> = lists.iter().map(|list| list.as_ref().map_or(1, Vec::len)).collect();
    let steps = counts.iter().sum();
    if steps > STEPS_MAX {
        let message = format!("the plan would have {steps} steps, and the limit is {STEPS_MAX}");
        return Err(vec![Diagnostic::new(Code::P008, message).at(Span::at(0), "").help("expand in parts")]);
    }
    let mut writer = TemplateExpander {
        source,
        numbers: Numbers::of(&parts, &lists),
        mentions: mentions(source, &tree),
        latest: Vec::new(),
        found,
        commands: Vec::new(),
    };
    let mut text = String::new();
    let mut at = 0;
    for (part, list) in parts.iter().zip(lists) {
        text.push_str(&writer.between(Span::new(at, part.span.start)));
        writer.write(part, list, &mut text);
        at = part.span.end;
        if text.len() > PLAN_BYTES_MAX {
            let message = format!("the plan would have more than {PLAN_BYTES_MAX} bytes (1 MiB)");
            return Err(vec![
                Diagnostic::new(Code::P008, message).at(part.step.heading, "with this template"),
            ]);
        }
    }
    text.push_str(&writer.between(Span::new(at, source.text().len())));
    if !writer.found.is_empty() {
        return Err(writer.found);
    }
    check(source, &text, &counts, &writer.commands)?;
    let templates = parts.iter().filter(|part| part.is_template()).count();
    Ok(Expanded { text, templates, steps })
}

/// One step's text.
struct Part<'a> {
    step: &'a StepTree,
    span: Span,
}

impl Part<'_> {
    // `N+1` is one step, whose number is not known yet.
    fn is_several(&self) -> bool {
        let node = &self.step.node;
        self.step.for_each.is_some() || node.number.is_none() && !node.id.value.contains('+')
    }

    fn is_template(&self) -> bool {
        self.is_several() || self.step.node.number.is_none()
    }
}

fn body_line(source: &Source, tree: &PlanTree) -> usize {
    tree.frontmatter.span.map_or(0, |span| source.line_of(span.end) + 1)
}

// A step ends where the next one begins, or a heading of its level that is none.
fn read_step_part<'a>(source: &Source, tree: &'a PlanTree, outline: &Outline, at: usize) -> Part<'a> {
    let step = &tree.steps[at];
    let first = source.line_of(step.heading.start);
    let next = tree.steps.get(at + 1).map_or(source.line_count(), |next| source.line_of(next.heading.start));
    let level = |line: usize| {
        let span = source.line_span(line);
        let is_text = outline.kind(line) == LineKind::Text;
        heading::heading(source.slice(span), span.start).filter(|_| is_text).map(|heading| heading.level)
    };
    let own = level(first).unwrap_or(3);
    let end = (first + 1..next).find(|line| level(*line).is_some_and(|level| level <= own)).unwrap_or(next);
    let end = if end >= source.line_count() { source.text().len() } else { source.line_span(end).start };
    Part { step, span: Span::new(step.heading.start, end) }
}

fn items(part: &Part<'_>, given: Option<&[String]>, found: &mut Vec<Diagnostic>) -> Option<Vec<String>> {
    if !part.is_several() {
        return None;
    }
    let refuse = |message: String, help: &str| {
        let at = part.step.for_each.as_ref().map_or(part.step.node.id.span, |list| list.span);
        Diagnostic::new(Code::P012, message).at(at, "").step(part.step.node.step_name()).help(help)
    };
    let list = match (&part.step.for_each, given) {
        (Some(list), _) => match read_list(list) {
            Ok(list) => list,
            Err(help) => {
                found.push(refuse(
                    "`**for_each:**` names no list, and only lists are taken from a plan".into(),
                    &help,
                ));
                return None;
            }
        },
        (None, Some(given)) => given.to_vec(),
        (None, None) => {
            let message = format!("nothing says what `{}` stands for", escape(&part.step.node.id.value));
            let help = "name the items: `--items FILE`, `--command CMD`, `--item X`, or `**for_each:** a, b` in the step";
            found.push(refuse(message, help));
            return None;
        }
    };
    if list.is_empty() {
        found.push(refuse(
            "the list of items is empty, so no step would be left".into(),
            "name at least one item",
        ));
    }
    for item in &list {
        if item.trim().is_empty()
            || item.chars().count() > ITEM_CHARACTERS_MAX
            || item.chars().any(crate::text::characters::is_hidden)
            || item.contains(['\n', '\r'])
        {
            let message = format!(
                "the item `{}` can't be used: an item has from one to {ITEM_CHARACTERS_MAX} characters on one line, all of them visible",
                escape(item)
            );
            found.push(refuse(message, "change the list"));
        }
    }
    Some(list)
}

// Items of the command line that no template takes were meant for one.
fn unused(parts: &[Part<'_>], given: Option<&[String]>) -> Option<Diagnostic> {
    given?;
    let takes = |part: &&Part<'_>| part.is_several() && part.step.for_each.is_none();
    if parts.iter().any(|part| takes(&part)) {
        return None;
    }
    let own = parts.iter().find_map(|part| Some((part.step, part.step.for_each.as_ref()?)));
    let message = "no template takes the items that the command line names";
    let unused = Diagnostic::new(Code::P012, message);
    Some(match own {
        Some((step, list)) => unused
            .at(list.span, "this step has a list of its own")
            .step(step.node.step_name())
            .help("delete `**for_each:**`, or leave the items of the command line out"),
        None => unused.at(Span::at(0), "").help("leave them out, or write a template: `### 2–N. …`"),
    })
}

// `{itme}`: a text in braces that is near a placeholder was meant to be one.
fn misspelt_placeholders(source: &Source, part: &Part<'_>) -> Vec<Diagnostic> {
    let text = source.slice(part.span);
    let braces = text.match_indices('{').filter(|(at, _)| !text[..*at].ends_with('$'));
    let meant = braces.filter_map(|(at, _)| {
        let word = &text[at + 1..at + text[at..].find('}')?];
        let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic()) && word.len() <= 12;
        let names = ["item", "index", "count"];
        let is_plural = word.strip_suffix('s').is_some_and(|word| names.contains(&word));
        if !is_word || names.contains(&word) || is_plural {
            return None;
        }
        let near = nearest(word, names)?.word;
        let span = Span::new(part.span.start + at, part.span.start + at + word.len() + 2);
        let slip = Diagnostic::new(Code::P012, format!("`{{{word}}}` stands for nothing"));
        let slip =
            slip.at(span, "").step(part.step.node.step_name()).help(format!("did you mean `{{{near}}}`?"));
        Some(slip.fix(span, format!("{{{near}}}"), false))
    });
    meant.collect()
}

// Reads `a, b` or bullets; a list that would have to be read from a file or a command is only taken from the command line.
fn read_list(list: &Spanned<String>) -> Result<Vec<String>, String> {
    let text = list.value.trim();
    if let Some(file) = text.strip_prefix("file:") {
        return Err(format!("delete the field and type `--items {}`", escape(file.trim())));
    }
    if let Some(command) = text.strip_prefix("command:") {
        let command = command.trim().trim_matches('`').replace('\'', r"'\''");
        return Err(format!("delete the field and type `--command '{}'`", escape(&command)));
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_bulleted = lines.iter().all(|line| line.starts_with(['-', '*', '+']));
    let entries: Vec<&str> = if is_bulleted {
        lines.iter().map(|line| &line[1..]).collect()
    } else {
        lines.iter().flat_map(|line| line.split(',')).collect()
    };
    let entries = entries.into_iter().map(str::trim);
    let bare = |entry: &str| {
        entry.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap_or(entry).to_owned()
    };
    Ok(entries.filter(|entry| !entry.is_empty()).map(bare).collect())
}

// The fields of each step, in their order.
fn fields(source: &Source) -> Vec<Vec<Field>> {
    let mut steps = Vec::new();
    for part in parse_with_layout(source).2.into_iter().flat_map(|layout| layout.parts) {
        match (part.kind, steps.last_mut()) {
            (PartKind::Step { .. }, _) => steps.push(Vec::new()),
            (PartKind::Field { field, in_step: true, .. }, Some(step)) if field != Field::ForEach => {
                step.push(field)
            }
            (_, _) => {}
        }
    }
    steps
}

// Checks, for any items, that each step has exactly the contract and the fields that its template gave it, and that no step came
// by itself.
fn check(
    source: &Source,
    text: &str,
    counts: &[usize],
    commands: &[Option<String>],
) -> Result<(), Vec<Diagnostic>> {
    let written = Source::new(source.path(), text);
    let (tree, _) = parse(&written);
    let read: Vec<Option<&str>> = tree
        .steps
        .iter()
        .map(|step| step.node.contract.as_ref().map(|contract| contract.command.as_str()))
        .collect();
    let wanted: Vec<Option<&str>> = commands.iter().map(Option::as_deref).collect();
    let numbers = tree.steps.iter().zip(1_u32..).all(|(step, number)| step.node.number == Some(number));
    let given = fields(source).into_iter().zip(counts);
    let given = given.flat_map(|(fields, count)| std::iter::repeat_n(fields, *count));
    if read == wanted && numbers && given.eq(fields(&written)) {
        return Ok(());
    }
    let message = "an item would change the plan around it: it reads as a heading, a field or a fence";
    let refused = Diagnostic::new(Code::P012, message).at(Span::at(0), "");
    Err(vec![refused.help("put `{item}` inside a line, in backticks, or change the list")])
}
