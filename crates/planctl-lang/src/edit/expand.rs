//! Turns templates of steps (`### 3–N.`, `### N+1.`, `**for_each:**`) into numbered steps, one per item.

mod quoting;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::fix::{line_end, with_line_ends};
use crate::syntax::markdown::{LineKind, Outline};
use crate::syntax::source::Source;
use crate::text::limits::PLAN_BYTES_MAX;
use crate::text::limits::STEPS_MAX;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};
use crate::tree::parse::{heading, name_of, parse};
use crate::tree::workflow::{Mention, mentions, unknown_template};
use crate::tree::{PlanTree, StepNumber, StepTree, template_key, template_range};
use quoting::{Context, contexts, is_plain, quote};

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
    let parts: Vec<Part<'_>> = (0..tree.steps.len()).map(|at| part(source, &tree, &outline, at)).collect();
    let mut found = Vec::new();
    let in_batches =
        |list: Vec<String>| -> Batches { list.chunks(batch.get()).map(<[String]>::to_vec).collect() };
    let lists: Vec<Option<Batches>> =
        parts.iter().map(|part| items(part, given, &mut found).map(in_batches)).collect();
    found.extend(unused(&parts, given));
    found.extend(parts.iter().filter(|part| part.is_several()).flat_map(|part| slips(source, part)));
    if !found.is_empty() {
        return Err(found);
    }
    let steps = lists.iter().map(|list| list.as_ref().map_or(1, Vec::len)).sum();
    if steps > STEPS_MAX {
        let message = format!("the plan would have {steps} steps, and the limit is {STEPS_MAX}");
        return Err(vec![Diagnostic::new(Code::P008, message).at(Span::at(0), "").help("expand in parts")]);
    }
    let mut writer = Writer {
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
    check(source, &text, &writer.commands)?;
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
        self.step.for_each.is_some()
            || matches!(&self.step.number.value, StepNumber::Template(text) if !text.contains('+'))
    }

    fn is_template(&self) -> bool {
        self.is_several() || self.step.fixed_number().is_none()
    }
}

fn body_line(source: &Source, tree: &PlanTree) -> usize {
    tree.frontmatter.span.map_or(0, |span| source.line_of(span.end) + 1)
}

// A step ends where the next one begins, or a heading of its level that is none.
fn part<'a>(source: &Source, tree: &'a PlanTree, outline: &Outline, at: usize) -> Part<'a> {
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
        let at = part.step.for_each.as_ref().map_or(part.step.number.span, |list| list.span);
        Diagnostic::new(Code::P012, message).at(at, "").step(name_of(part.step)).help(help)
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
            let message = format!("nothing says what `{}` stands for", escape(&part.step.number_text()));
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
                "the item `{}` is no item: from one to {ITEM_CHARACTERS_MAX} characters, all of them visible",
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
            .step(name_of(step))
            .help("delete `**for_each:**`, or leave the items of the command line out"),
        None => unused.at(Span::at(0), "").help("leave them out, or write a template: `### 2–N. …`"),
    })
}

// `{itme}`: a text in braces that is near a placeholder was meant to be one.
fn slips(source: &Source, part: &Part<'_>) -> Vec<Diagnostic> {
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
        let slip = slip.at(span, "").step(name_of(part.step)).help(format!("did you mean `{{{near}}}`?"));
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

/// Which new numbers the old ones stand for.
struct Numbers {
    fixed: BTreeMap<u32, Vec<usize>>,
    /// Those of templates, by their form ([`template_key`]).
    templates: BTreeMap<String, Vec<usize>>,
    /// The templates whose last number is a letter, with their first.
    open: Vec<(u32, String)>,
}

impl Numbers {
    fn of(parts: &[Part<'_>], lists: &[Option<Batches>]) -> Numbers {
        let mut numbers = Numbers { fixed: BTreeMap::new(), templates: BTreeMap::new(), open: Vec::new() };
        let mut next = 1;
        for (part, list) in parts.iter().zip(lists) {
            let new = next..next + list.as_ref().map_or(1, Vec::len);
            next = new.end;
            let old = match &part.step.number.value {
                StepNumber::Fixed(number) => *number..=*number,
                StepNumber::Template(text) => {
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
    fn refuse(&self, number: u32, span: Span) -> Diagnostic {
        match self.open.iter().find(|(first, _)| *first < number) {
            Some((_, template)) => {
                let template = escape(template);
                let message = format!("step {number} may be one of `{template}`, and nothing says which");
                let refused = Diagnostic::new(Code::P012, message).at(span, "");
                refused.help(format!("`**needs:** {template}` names all of them, `N+1` the step after them"))
            }
            None => {
                let message = format!("step {number} is named, and is not there");
                Diagnostic::new(Code::P304, message).at(span, "").help("mend the number, or delete it")
            }
        }
    }
}

struct Writer<'a> {
    source: &'a Source,
    numbers: Numbers,
    /// Where steps are named by their numbers, but for `needs`.
    mentions: Vec<Mention>,
    /// The items of the latest template.
    latest: Vec<String>,
    found: Vec<Diagnostic>,
    /// The contract that each step must have.
    commands: Vec<Option<String>>,
}

fn listed<'n>(numbers: impl IntoIterator<Item = &'n usize>) -> String {
    numbers.into_iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// One filling of a template.
struct Filling<'a> {
    items: &'a [String],
    number: usize,
    index: usize,
    count: usize,
}

impl Filling<'_> {
    fn value(&self, placeholder: &str) -> String {
        match placeholder {
            "{item}" => self.items.join(", "),
            "{n}" => self.number.to_string(),
            "{index}" => self.index.to_string(),
            _ => self.count.to_string(),
        }
    }
}

impl Writer<'_> {
    fn write(&mut self, part: &Part<'_>, list: Option<Batches>, text: &mut String) {
        let Some(list) = list else {
            let mut edits = self.common_edits(part, self.commands.len() + 1);
            edits.extend(self.repeated_subscriptions(part, &self.latest));
            self.commands.push(part.step.contract.as_ref().map(|contract| contract.command.clone()));
            text.push_str(&edited(self.source, part.span, edits));
            return;
        };
        let is_last = part.span.end == self.source.text().len();
        for (at, items) in list.iter().enumerate() {
            let number = self.commands.len() + 1;
            let filling = Filling { items, number, index: at + 1, count: list.len() };
            let body = self.filled(part, &filling);
            text.push_str(&body);
            if is_last && at + 1 < list.len() {
                let end = line_end(self.source);
                let breaks = if body.ends_with('\n') { 1 } else { 2 };
                text.push_str(&end.repeat(breaks));
            }
            if self.found.len() > 20 {
                return;
            }
        }
        self.latest = list.concat();
    }

    /// Returns what stands outside of the steps.
    fn between(&mut self, span: Span) -> String {
        let edits = self.renumbered(span);
        edited(self.source, span, edits)
    }

    /// Gives the steps that a part of the text names their new numbers.
    fn renumbered(&mut self, span: Span) -> Vec<(Span, String)> {
        let mut edits = Vec::new();
        let inside = self.mentions.iter().filter(|it| it.span.start >= span.start && it.span.end <= span.end);
        for mention in inside {
            match self.numbers.fixed.get(&mention.number).map(Vec::as_slice) {
                Some([same]) if u32::try_from(*same) == Ok(mention.number) => {}
                Some([one]) => edits.push((mention.span, one.to_string())),
                Some(several) if mention.is_end => edits.push((mention.span, listed(several))),
                Some(_) => {
                    let message =
                        format!("step {} becomes several, and a condition is about one", mention.number);
                    let refused = Diagnostic::new(Code::P012, message).at(mention.span, "here");
                    self.found.push(refused.help("name another step, or write the steps out by hand"));
                }
                None => self.found.push(self.numbers.refuse(mention.number, mention.span)),
            }
        }
        edits
    }

    fn common_edits(&mut self, part: &Part<'_>, number: usize) -> Vec<(Span, String)> {
        let mut edits = vec![(part.step.number.span, number.to_string())];
        edits.extend(self.renumbered(part.span));
        // Where there is none, `none` stays.
        if let Some(needs) = &part.step.needs {
            let new = self.needed(part.step, needs);
            if !new.is_empty() {
                edits.push((needs.span, listed(&new)));
            }
        }
        edits
    }

    // In the order in which they are written, each once.
    fn needed(&mut self, step: &StepTree, needs: &Spanned<Vec<u32>>) -> Vec<usize> {
        let mut new = Vec::new();
        for old in &needs.value {
            match self.numbers.fixed.get(old) {
                Some(numbers) => new.extend(numbers),
                None => self.found.push(self.numbers.refuse(*old, needs.span).step(name_of(step))),
            }
        }
        for template in &step.needed_templates {
            match self.numbers.templates.get(&template_key(&template.value)) {
                Some(numbers) => new.extend(numbers),
                None => self.found.push(unknown_template(template).step(name_of(step))),
            }
        }
        let mut seen = BTreeSet::new();
        new.retain(|number| seen.insert(*number));
        new
    }

    fn repeated_subscriptions(&self, part: &Part<'_>, items: &[String]) -> Vec<(Span, String)> {
        let mut edits = Vec::new();
        for subscription in &part.step.subscriptions {
            let line = self.source.whole_line(subscription.span.start);
            let text = self.source.slice(line);
            if items.is_empty() || !text.contains("{item}") || !text.trim_start().starts_with(['-', '*', '+'])
            {
                continue;
            }
            let count = items.len();
            let lines = items.iter().enumerate().map(|(at, item)| {
                let index = (at + 1).to_string();
                text.replace("{item}", item).replace("{index}", &index).replace("{count}", &count.to_string())
            });
            edits.push((line, lines.collect()));
        }
        edits
    }

    fn filled(&mut self, part: &Part<'_>, filling: &Filling<'_>) -> String {
        let mut edits = self.common_edits(part, filling.number);
        if filling.items.len() > 1 {
            edits.extend(self.repeated_subscriptions(part, filling.items));
        }
        let quoting = self.quoting(part);
        let mut has_item = false;
        for (at, placeholder) in placeholders(self.source.slice(part.span)) {
            let span = Span::new(part.span.start + at, part.span.start + at + placeholder.len());
            has_item |= placeholder == "{item}";
            let value = match quoting.get(&span.start) {
                Some(context) if placeholder == "{item}" => self.words(part, filling.items, *context, span),
                Some(_) | None => filling.value(placeholder),
            };
            edits.push((span, value));
        }
        if !has_item {
            edits.extend(self.item_hints(part, &filling.value("{item}")));
        }
        if let Some(list) = &part.step.for_each {
            edits.push((self.field_lines(list.span), String::new()));
            let removed = self.field_lines(list.span);
            edits.retain(|(span, _)| {
                *span == removed || span.start < removed.start || span.start >= removed.end
            });
        }
        let body = edited(self.source, part.span, edits);
        self.commands.push(part.step.contract.as_ref().map(|contract| {
            let mut command = String::new();
            let mut at = 0;
            for (from, placeholder) in placeholders(&contract.command) {
                let place = contract.in_plan(Span::at(from)).start;
                command.push_str(&contract.command[at..from]);
                let value = match quoting.get(&place) {
                    Some(_) if placeholder == "{item}" => {
                        filling.items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(" ")
                    }
                    Some(_) | None => filling.value(placeholder),
                };
                command.push_str(&value);
                at = from + placeholder.len();
            }
            command.push_str(&contract.command[at..]);
            command
        }));
        body
    }

    // If a template never says `{item}`, adds the item to the title and to the task of each step.
    fn item_hints(&self, part: &Part<'_>, item: &str) -> Vec<(Span, String)> {
        let title = part.step.title.span;
        let mut edits = vec![(Span::at(title.end), format!(": {item}"))];
        if let Some(task) = &part.step.task {
            let line = self.source.line_span(self.source.line_of(task.span.end));
            edits.push((
                Span::at(line.end),
                with_line_ends(&format!("\n\nThis step is for: {item}"), self.source),
            ));
        }
        edits
    }

    // The field's line and those of its value.
    fn field_lines(&self, value: Span) -> Span {
        let mut first = self.source.line_of(value.start);
        while first > 0 && !self.source.slice(self.source.line_span(first)).trim_start().starts_with("**") {
            first -= 1;
        }
        Span::new(self.source.line_span(first).start, self.source.whole_line(value.end).end)
    }

    fn quoting(&self, part: &Part<'_>) -> BTreeMap<usize, Context> {
        let Some(contract) = &part.step.contract else { return BTreeMap::new() };
        let contexts = contexts(&contract.command);
        contexts.into_iter().map(|(at, context)| (contract.in_plan(Span::at(at)).start, context)).collect()
    }

    /// Returns the items of a step as words of its contract.
    fn words(&mut self, part: &Part<'_>, items: &[String], context: Context, span: Span) -> String {
        if items.len() > 1 && context != Context::Bare {
            let message = "several items stand for what is one word here";
            let refused = Diagnostic::new(Code::P012, message).at(span, "here").step(name_of(part.step));
            self.found.push(refused.help("write `{item}` as a word of its own, or leave `--batch` out"));
        }
        let words: Vec<String> = items.iter().map(|item| self.quoted(part, item, context, span)).collect();
        words.join(" ")
    }

    fn quoted(&mut self, part: &Part<'_>, item: &str, context: Context, span: Span) -> String {
        if is_plain(item) && !(item.starts_with('-') && context == Context::Bare) {
            return item.to_owned();
        }
        let refuse = |message: String, help: &str| {
            let refused = Diagnostic::new(Code::P012, message).at(span, "here").step(name_of(part.step));
            refused.help(help)
        };
        match context {
            Context::Bare if item.starts_with('-') => {
                let message = format!(
                    "the item `{}` begins with `-`, so a command would take it for an option",
                    escape(item)
                );
                self.found.push(refuse(
                    message,
                    "write `./{item}` or `-- {item}x` so that the word begins otherwise, or change the item",
                ));
            }
            Context::Bare | Context::Joined => {}
            Context::Quoted => {
                let message = format!("the item `{}` would be read by the shell inside quotes", escape(item));
                self.found.push(refuse(
                    message,
                    "take the quotes around `{item}` away: planctl quotes what needs it",
                ));
            }
            Context::Hard => {
                let message = format!(
                    "the item `{}` can't be quoted in a contract with here-documents, backticks or arithmetic",
                    escape(item)
                );
                self.found.push(refuse(message, "put the script into a file and call it with `{item}`"));
            }
        }
        quote(item)
    }
}

// `${n}` is a variable of the shell and stays one.
fn placeholders(text: &str) -> Vec<(usize, &'static str)> {
    let braces = text.match_indices('{').filter(|(at, _)| !text[..*at].ends_with('$'));
    let named = braces.filter_map(|(at, _)| {
        PLACEHOLDERS.into_iter().find(|name| text[at..].starts_with(name)).map(|name| (at, name))
    });
    named.collect()
}

fn edited(source: &Source, span: Span, mut edits: Vec<(Span, String)>) -> String {
    edits.sort();
    let mut text = String::new();
    let mut at = span.start;
    for (place, replacement) in edits {
        if place.start < at {
            continue;
        }
        text.push_str(source.slice(Span::new(at, place.start)));
        text.push_str(&replacement);
        at = place.end;
    }
    text.push_str(source.slice(Span::new(at, span.end)));
    text
}

// Checks, for any items, that each step has exactly the contract that its template gave it, and that no step came by itself.
fn check(source: &Source, text: &str, commands: &[Option<String>]) -> Result<(), Vec<Diagnostic>> {
    let (tree, _) = parse(&Source::new(source.path(), text));
    let read: Vec<Option<&str>> = tree
        .steps
        .iter()
        .map(|step| step.contract.as_ref().map(|contract| contract.command.as_str()))
        .collect();
    let wanted: Vec<Option<&str>> = commands.iter().map(Option::as_deref).collect();
    let numbers = tree.steps.iter().zip(1_u32..).all(|(step, number)| step.fixed_number() == Some(number));
    if read == wanted && numbers {
        return Ok(());
    }
    let message = "an item would change the plan around it: it reads as a heading, a field or a fence";
    let refused = Diagnostic::new(Code::P012, message).at(Span::at(0), "");
    Err(vec![refused.help("put `{item}` inside a line, in backticks, or change the list")])
}
