//! Writes an expanded plan.

use std::collections::{BTreeMap, BTreeSet};

use super::numbers::Numbers;
use super::quoting::{Context, contexts, quote};

use super::{Batches, PLACEHOLDERS, Part};
use crate::diagnostic::{Code, Diagnostic};
use crate::edit::fix::{line_end, with_line_ends};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned, escape, is_plain_word};
use crate::tree::parse::heading::{heading, step};
use crate::tree::workflow::{Mention, unknown_template};
use crate::tree::{StepTree, template_key};

pub(super) struct TemplateExpander<'a> {
    pub(super) source: &'a Source,
    pub(super) numbers: Numbers,
    /// Where steps are named by their numbers, but for `needs`.
    pub(super) mentions: Vec<Mention>,
    /// The items of the latest template.
    pub(super) latest: Vec<String>,
    pub(super) found: Vec<Diagnostic>,
    /// The contract that each step must have.
    pub(super) commands: Vec<Option<String>>,
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
    pub(super) fn value(&self, placeholder: &str) -> String {
        match placeholder {
            "{item}" => self.items.join(", "),
            "{n}" => self.number.to_string(),
            "{index}" => self.index.to_string(),
            _ => self.count.to_string(),
        }
    }
}

impl TemplateExpander<'_> {
    pub(super) fn write(&mut self, part: &Part<'_>, list: Option<Batches>, text: &mut String) {
        let Some(list) = list else {
            let mut edits = self.common_edits(part, self.commands.len() + 1);
            edits.extend(self.repeat_subscription_edits(part, &self.latest));
            self.commands.push(part.step.node.contract.as_ref().map(|contract| contract.command.clone()));
            text.push_str(&self.source.edited_part(part.span, edits));
            return;
        };
        let is_last = part.span.end == self.source.text().len();
        for (at, items) in list.iter().enumerate() {
            let number = self.commands.len() + 1;
            let filling = Filling { items, number, index: at + 1, count: list.len() };
            let body = self.fill_template(part, &filling);
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
    pub(super) fn between(&mut self, span: Span) -> String {
        let edits = self.renumber_edits(span);
        self.source.edited_part(span, edits)
    }

    /// Gives the steps that a part of the text names their new numbers.
    fn renumber_edits(&mut self, span: Span) -> Vec<(Span, String)> {
        let mut edits = Vec::new();
        let inside = self.mentions.iter().filter(|it| it.span.start >= span.start && it.span.end <= span.end);
        for mention in inside {
            let number: Option<u32> = mention.name.parse().ok();
            let new = match number {
                Some(number) => self.numbers.fixed.get(&number),
                None => self.numbers.templates.get(&template_key(&mention.name)),
            };
            match new.map(Vec::as_slice) {
                Some([same]) if u32::try_from(*same).ok() == number => {}
                Some([one]) => edits.push((mention.span, one.to_string())),
                Some(several) if mention.is_end => edits.push((mention.span, listed(several))),
                Some(_) => {
                    let message =
                        format!("step {} becomes several, and a condition is about one", mention.name);
                    let refused = Diagnostic::new(Code::P012, message).at(mention.span, "here");
                    self.found.push(refused.help("name another step, or write the steps out by hand"));
                }
                None => self.found.extend(number.map(|number| self.numbers.refuse(number, mention.span))),
            }
        }
        edits
    }

    fn common_edits(&mut self, part: &Part<'_>, number: usize) -> Vec<(Span, String)> {
        let mut edits = vec![(part.step.node.id.span, number.to_string())];
        edits.extend(self.renumber_edits(part.span));
        // Where there is none, `none` stays.
        if let Some(needs) = part.step.needs() {
            let new = self.renumbered_needs(part.step, &needs);
            if !new.is_empty() {
                edits.push((needs.span, listed(&new)));
            }
        }
        edits
    }

    // In the order in which they are written, each once.
    fn renumbered_needs(&mut self, step: &StepTree, needs: &Spanned<Vec<u32>>) -> Vec<usize> {
        let mut new = Vec::new();
        for old in &needs.value {
            match self.numbers.fixed.get(old) {
                Some(numbers) => new.extend(numbers),
                None => self.found.push(self.numbers.refuse(*old, needs.span).step(step.node.step_name())),
            }
        }
        for template in &step.needed_templates {
            match self.numbers.templates.get(&template_key(&template.value)) {
                Some(numbers) => new.extend(numbers),
                None => self.found.push(unknown_template(template).step(step.node.step_name())),
            }
        }
        let mut seen = BTreeSet::new();
        new.retain(|number| seen.insert(*number));
        new
    }

    fn repeat_subscription_edits(&self, part: &Part<'_>, items: &[String]) -> Vec<(Span, String)> {
        let mut edits = Vec::new();
        for subscription in part.step.node.attributes.subscriptions.entries() {
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

    /// Writes items as the files that they name, whatever else their characters mean in a list of globs.
    fn globs(&mut self, part: &Part<'_>, items: &[String], at: Span) -> String {
        for item in items.iter().filter(|item| item.contains(',')) {
            let message = format!("the item `{}` has a comma, which ends an entry of the list", escape(item));
            let refused =
                Diagnostic::new(Code::P012, message).at(at, "here").step(part.step.node.step_name());
            self.found.push(refused.help("take it out of the items, and write its step by hand"));
        }
        let escaped = |item: &String| {
            let special = |character: char| "*?[]{}\\".contains(character);
            item.chars()
                .flat_map(|own| special(own).then_some('\\').into_iter().chain([own]))
                .collect::<String>()
        };
        items.iter().map(escaped).collect::<Vec<_>>().join(", ")
    }

    fn fill_template(&mut self, part: &Part<'_>, filling: &Filling<'_>) -> String {
        let mut edits = self.common_edits(part, filling.number);
        if filling.items.len() > 1 {
            edits.extend(self.repeat_subscription_edits(part, filling.items));
        }
        let quoting = self.quoting(part);
        let said = &part.step.node.attributes;
        let globs: Vec<Span> =
            said.changes.entries().iter().chain(said.protects.entries()).map(|glob| glob.span).collect();
        let is_glob = |at: Span| globs.iter().any(|glob| glob.contains(at));
        let mut has_item = false;
        for (at, placeholder) in placeholders(self.source.slice(part.span)) {
            let span = Span::new(part.span.start + at, part.span.start + at + placeholder.len());
            has_item |= placeholder == "{item}";
            let value = match quoting.get(&span.start) {
                Some(context) if placeholder == "{item}" => self.words(part, filling.items, *context, span),
                None if placeholder == "{item}" && is_glob(span) => self.globs(part, filling.items, span),
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
        self.check_title(part, filling, edits.clone());
        let body = self.source.edited_part(part.span, edits);
        self.commands.push(part.step.node.contract.as_ref().map(|contract| {
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

    // A mark that begins a title is planctl's, and `#` that ends one closes its heading.
    fn check_title(&mut self, part: &Part<'_>, filling: &Filling<'_>, edits: Vec<(Span, String)>) {
        let (title, own) = (part.step.title_span(), &part.step.heading);
        let inside = edits.into_iter().filter(|(at, _)| title.contains(*at));
        let wanted = self.source.edited_part(title, inside);
        let prefix = self.source.slice(Span::new(own.start, title.start));
        let line = format!("{prefix}{wanted}");
        let read = heading(&line, 0).as_ref().and_then(step);
        if read.is_some_and(|read| read.title.value == wanted.trim()) {
            return;
        }
        let item = filling.value("{item}");
        let message =
            format!("the item `{}` would be read as a mark, or as the end, of a heading", escape(&item));
        let refused =
            Diagnostic::new(Code::P012, message).at(title, "a part of it would be lost in this title");
        let refused = refused.step(part.step.node.step_name());
        self.found.push(refused.help("write `{item}` inside the title, in backticks, or change the list"));
    }

    // If a template never says `{item}`, adds the item to the title and to the task of each step.
    fn item_hints(&self, part: &Part<'_>, item: &str) -> Vec<(Span, String)> {
        let title = part.step.title_span();
        let mut edits = vec![(Span::at(title.end), format!(": {item}"))];
        if let Some(task) = &part.step.node.task {
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

    pub(super) fn quoting(&self, part: &Part<'_>) -> BTreeMap<usize, Context> {
        let Some(contract) = &part.step.node.contract else { return BTreeMap::new() };
        let contexts = contexts(&contract.command);
        contexts.into_iter().map(|(at, context)| (contract.in_plan(Span::at(at)).start, context)).collect()
    }

    /// Returns the items of a step as words of its contract.
    fn words(&mut self, part: &Part<'_>, items: &[String], context: Context, span: Span) -> String {
        if items.len() > 1 && context != Context::Bare {
            let message = "several items stand for what is one word here";
            let refused =
                Diagnostic::new(Code::P012, message).at(span, "here").step(part.step.node.step_name());
            self.found.push(refused.help("write `{item}` as a word of its own, or leave `--batch` out"));
        }
        let words: Vec<String> = items.iter().map(|item| self.quoted(part, item, context, span)).collect();
        words.join(" ")
    }

    fn quoted(&mut self, part: &Part<'_>, item: &str, context: Context, span: Span) -> String {
        if is_plain_word(item) && !(item.starts_with('-') && context == Context::Bare) {
            return item.to_owned();
        }
        let refuse = |message: String, help: &str| {
            let refused =
                Diagnostic::new(Code::P012, message).at(span, "here").step(part.step.node.step_name());
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
