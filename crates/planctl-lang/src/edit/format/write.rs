//! Writes the parts of a plan one after the other, each in planctl's form where its lines are as expected.

use crate::edit::fix::line_end;
use crate::syntax::markdown::{Fence, LineKind};
use crate::syntax::source::Source;
use crate::syntax::values;
use crate::text::Span;
use crate::tree::fields;
use crate::tree::parse::contract::is_expectation;
use crate::tree::parse::layout::{Layout, PartKind};
use crate::tree::{Field, Form, PlanTree, StepTree};

use super::portrait::{Portrait, steps_before_part};

/// The parts of a section that may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Its fields may be put in order.
    Order,
    /// Its fields stay in their places.
    Form,
    /// It stays as it is.
    Nothing,
}

impl Care {
    pub fn relaxed(self) -> Care {
        match self {
            Care::Order => Care::Form,
            Care::Form | Care::Nothing => Care::Nothing,
        }
    }
}

/// The order of a step's fields; those that planctl's own plans have come as they do there.
const ORDER: [Field; 33] = [
    Field::Target,
    Field::Kind,
    Field::Intent,
    Field::Subscriptions,
    Field::Needs,
    Field::When,
    Field::ForEach,
    Field::Locks,
    Field::Workspace,
    Field::Changes,
    Field::Protects,
    Field::Plan,
    Field::Folder,
    Field::Approval,
    Field::Task,
    Field::Server,
    Field::Tool,
    Field::Arguments,
    Field::Contract,
    Field::ExitCode,
    Field::MinTests,
    Field::Judge,
    Field::JudgeBy,
    Field::OnFail,
    Field::MaxRetries,
    Field::MaxVisits,
    Field::Timeout,
    Field::ContractTimeout,
    Field::Guard,
    Field::RedFirst,
    Field::AskDeadline,
    Field::Gate,
    Field::Status,
];

/// The kind of a block, as its neighbours see it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Heading,
    Field(Field),
    /// A field with its entries on lines of their own.
    List(Field),
    /// A comment that allows a finding; it comes to stand below the heading.
    Allow,
    Other,
}

/// A part as it will be written, without blank lines around it.
struct Block {
    shape: Shape,
    lines: Vec<String>,
    /// Blank lines above it in the source.
    blanks: usize,
    /// Says that its lines were as expected, so that it may be moved.
    is_clean: bool,
}

/// A part with its lines in the source.
#[derive(Clone, Copy)]
struct Lines {
    kind: PartKind,
    first: usize,
    end: usize,
}

struct PlanFormatter<'a> {
    source: &'a Source,
    layout: &'a Layout,
    tree: &'a PlanTree,
    ends: &'static str,
}

/// Writes a text anew.
pub(super) fn write(source: &Source, before: &Portrait, cares: &[Care], levels: bool) -> String {
    let writer = PlanFormatter { source, layout: &before.layout, tree: &before.tree, ends: line_end(source) };
    let mut written = String::with_capacity(source.text().len() + 64);
    let last_care = cares.last().copied().unwrap_or(Care::Nothing);
    writer.frontmatter(cares[0], &mut written);
    let mut blanks = 0;
    let parts = writer.parts();
    let mut at = 0;
    let mut care_above = Care::Nothing;
    for (section, care) in cares.iter().copied().enumerate() {
        let is_next = |part: &Lines| matches!(part.kind, PartKind::Step { .. });
        let count =
            parts[at..].iter().skip(usize::from(section > 0)).take_while(|part| !is_next(part)).count();
        let end = at + count + usize::from(section > 0);
        let step = section.checked_sub(1).and_then(|step| before.tree.steps.get(step));
        let mut blocks = Vec::new();
        for part in &parts[at..end] {
            let block = writer.block(*part, step, care, levels, &mut blanks);
            blocks.extend(block);
        }
        if care != Care::Nothing {
            take_exit_code(step, &mut blocks, writer.ends);
        }
        let is_moved = care == Care::Order && put_in_order(&mut blocks);
        let mut shape_above = None;
        for block in &blocks {
            let gap = match shape_above {
                _ if written.trim_start_matches('\u{feff}').is_empty() => block.blanks,
                None if care == Care::Nothing && care_above == Care::Nothing => block.blanks,
                None if section == 0 && before.tree.frontmatter.span.is_none() => block.blanks,
                None => 1,
                Some(_) if care == Care::Nothing => block.blanks,
                Some(above) => gap(above, block.shape, if is_moved { 0 } else { block.blanks.min(1) }),
            };
            (0..gap).for_each(|_| written.push_str(writer.ends));
            block.lines.iter().for_each(|line| written.push_str(line));
            shape_above = Some(block.shape);
        }
        (at, care_above) = (end, care);
    }
    if last_care == Care::Nothing {
        (0..blanks).for_each(|_| written.push_str(writer.ends));
    }
    let bom = &source.text()[..source.bom_bytes()];
    if !written.starts_with(bom) {
        written.insert_str(0, bom);
    }
    written
}

/// Returns the lines that are the author's own and in no value of the tree, each with its section.
pub(super) fn kept_lines(source: &Source, layout: &Layout, tree: &PlanTree) -> Vec<(usize, String)> {
    let writer = PlanFormatter { source, layout, tree, ends: "\n" };
    let mut section = 0;
    let mut kept = Vec::new();
    for part in writer.parts() {
        section = steps_before_part(part.kind, section);
        let step = section.checked_sub(1).and_then(|step| tree.steps.get(step));
        let body = part.first + 1..part.end;
        let lines = match part.kind {
            PartKind::Refused | PartKind::Allow | PartKind::Other => part.first..part.end,
            PartKind::Title | PartKind::Steps | PartKind::Step { .. } => body,
            PartKind::Field { field, value, .. } if writer.clean(part, field, value, step).is_none() => {
                kept.push((section, source.slice(value).trim().to_owned()));
                body
            }
            PartKind::Field { .. } => continue,
        };
        let texts = lines.map(|line| source.slice(source.line_span(line)).trim_end());
        kept.extend(texts.filter(|text| !text.is_empty()).map(|text| (section, text.to_owned())));
    }
    kept
}

fn gap(above: Shape, below: Shape, wished: usize) -> usize {
    match (above, below) {
        (Shape::Heading, _) | (_, Shape::Heading | Shape::Field(Field::Contract)) => 1,
        (Shape::Field(Field::Task | Field::ForEach), _) | (Shape::List(_), Shape::Field(Field::Task)) => 1,
        (
            Shape::Field(_) | Shape::List(_) | Shape::Allow | Shape::Other,
            Shape::Field(_) | Shape::List(_) | Shape::Allow | Shape::Other,
        ) => wished,
    }
}

// A step's fields are moved where all of them are as expected, so that nothing beside them loses its place.
fn put_in_order(blocks: &mut [Block]) -> bool {
    let Some((heading, fields)) = blocks.split_first_mut() else { return false };
    let rank = |block: &Block| match block.shape {
        Shape::Allow => Some(0),
        Shape::Field(field) | Shape::List(field) => {
            ORDER.iter().position(|known| *known == field).map(|at| at + 1)
        }
        Shape::Heading | Shape::Other => None,
    };
    let may_move = heading.is_clean && fields.iter().all(|block| block.is_clean && rank(block).is_some());
    if !may_move || heading.shape != Shape::Heading || fields.is_sorted_by_key(rank) {
        return false;
    }
    fields.sort_by_key(rank);
    true
}

// Every contract says its exit code below its fence, where one in a field of its own comes to stand as well.
fn take_exit_code(step: Option<&StepTree>, blocks: &mut Vec<Block>, ends: &str) {
    let place = |blocks: &[Block], field| blocks.iter().position(|block| block.shape == Shape::Field(field));
    let Some(at) = place(blocks, Field::Contract).filter(|at| blocks[*at].is_clean) else { return };
    let has_line = blocks[at].lines.last().is_some_and(|line| is_expectation(line.trim()));
    let Some(contract) = step.and_then(|step| step.node.contract.as_ref()).filter(|_| !has_line) else {
        return;
    };
    match (place(blocks, Field::ExitCode), &contract.exit_code) {
        (None, None) => blocks[at].lines.push(format!("exit_code == 0{ends}")),
        (Some(field), Some(code)) if field > at && blocks[field].is_clean => {
            blocks[at].lines.push(format!("exit_code == {}{ends}", code.value));
            blocks.remove(field);
        }
        (None | Some(_), None | Some(_)) => {}
    }
}

impl PlanFormatter<'_> {
    fn parts(&self) -> Vec<Lines> {
        let parts = &self.layout.parts;
        let ends = parts.iter().skip(1).map(|part| part.line).chain([self.source.line_count()]);
        parts.iter().zip(ends).map(|(part, end)| Lines { kind: part.kind, first: part.line, end }).collect()
    }

    fn frontmatter(&self, care: Care, written: &mut String) {
        for line in 0..self.layout.body {
            let text = self.text(line);
            let key = text.split_once(':').map_or(text.trim_end(), |(key, _)| key);
            let is_ours = key == "---" || fields::FRONTMATTER.iter().any(|help| help.name == key);
            match care != Care::Nothing && is_ours && self.tree.frontmatter.span.is_some() {
                true => written.push_str(&self.line(line, text.trim_end_matches(BLANKS))),
                false => written.push_str(&self.line(line, text)),
            }
        }
    }

    fn text(&self, line: usize) -> &str {
        self.source.slice(self.source.line_span(line))
    }

    fn is_blank(&self, line: usize) -> bool {
        self.layout.outline.kind(line) == LineKind::Text && self.text(line).trim_matches(BLANKS).is_empty()
    }

    /// Returns a text with the end of a line of the source.
    fn line(&self, line: usize, text: &str) -> String {
        let span = self.source.line_span(line);
        let whole = self.source.whole_line(span.start);
        let end = self.source.slice(Span::new(span.end, whole.end));
        format!("{text}{}", if end.ends_with('\n') { end } else { self.ends })
    }

    fn raw(&self, lines: std::ops::Range<usize>) -> Vec<String> {
        lines.map(|line| self.line(line, self.text(line))).collect()
    }

    // Two blanks at the end of a line break it, where the paragraph goes on.
    fn prose(&self, lines: std::ops::Range<usize>) -> Vec<String> {
        let end = lines.end;
        let tidy = |line: usize| {
            let text = self.text(line);
            let bare = text.trim_end_matches(BLANKS);
            let goes_on = line + 1 < end && !self.is_blank(line + 1);
            let is_break = text.ends_with("  ") && !bare.is_empty() && goes_on;
            let is_text = self.layout.outline.kind(line) == LineKind::Text;
            self.line(line, if is_text && !is_break { bare } else { text })
        };
        lines.map(tidy).collect()
    }

    /// Makes a part's block, and counts the blank lines below it.
    fn block(
        &self,
        part: Lines,
        step: Option<&StepTree>,
        care: Care,
        levels: bool,
        blanks: &mut usize,
    ) -> Option<Block> {
        let first = (part.first..part.end).find(|line| !self.is_blank(*line));
        let Some(first) = first else {
            *blanks += part.end - part.first;
            return None;
        };
        let last = (first..part.end).rfind(|line| !self.is_blank(*line)).unwrap_or(first);
        let above = *blanks + first - part.first;
        *blanks = part.end - last - 1;
        let part = Lines { first, end: last + 1, ..part };
        let (shape, lines, is_clean) = match care {
            Care::Nothing => (Shape::Other, self.raw(first..last + 1), false),
            Care::Form | Care::Order => self.formed(part, step, levels),
        };
        Some(Block { shape, lines, blanks: above, is_clean })
    }

    fn formed(&self, part: Lines, step: Option<&StepTree>, levels: bool) -> (Shape, Vec<String>, bool) {
        let heading = |text: String| {
            let mut lines = vec![self.line(part.first, text.trim_end())];
            let body = (part.first + 1..part.end).find(|line| !self.is_blank(*line));
            if let Some(body) = body {
                lines.push(self.ends.to_owned());
                lines.extend(self.prose(body..part.end));
            }
            (Shape::Heading, lines, body.is_none())
        };
        match part.kind {
            PartKind::Title => {
                heading(format!("# {}", self.tree.head.title.as_ref().map_or("", |title| &title.value)))
            }
            PartKind::Steps => heading("## Steps".to_owned()),
            PartKind::Step { level } => {
                let level = if levels { 3 } else { level };
                heading(step.map_or_else(String::new, |step| self.step_heading(step, level)))
            }
            PartKind::Field { field, value, in_step } => self.field(part, field, value, in_step, step),
            PartKind::Refused => (Shape::Other, self.raw(part.first..part.end), false),
            PartKind::Allow => {
                let lines = self.prose(part.first..part.end);
                (Shape::Allow, lines, part.end == part.first + 1)
            }
            PartKind::Other => {
                let is_heading = self.text(part.first).trim_start().starts_with('#');
                let shape = if is_heading { Shape::Heading } else { Shape::Other };
                (shape, self.prose(part.first..part.end), false)
            }
        }
    }

    fn step_heading(&self, step: &StepTree, level: usize) -> String {
        let mark = step.mark.as_ref().map_or("", |mark| self.source.slice(mark.span).trim_end());
        let mark = if mark.is_empty() { String::new() } else { format!("{mark} ") };
        let (number, title) = (self.source.slice(step.node.id.span), step.node.step_title());
        format!("{} {number}. {mark}{title}", "#".repeat(level))
    }

    fn field(
        &self,
        part: Lines,
        field: Field,
        value: Span,
        in_step: bool,
        step: Option<&StepTree>,
    ) -> (Shape, Vec<String>, bool) {
        let label = if in_step { field.as_str() } else { label(field) };
        let first = |value: &str| {
            let space = if value.is_empty() { "" } else { " " };
            self.line(part.first, &format!("**{label}:**{space}{value}"))
        };
        let Some(clean) = self.clean(part, field, value, step) else {
            let mut lines = vec![first(self.source.slice(value).trim_matches(BLANKS))];
            lines.extend(self.prose(part.first + 1..part.end));
            return (Shape::Field(field), lines, false);
        };
        let mut lines = vec![first(&clean.value)];
        lines.extend(clean.below);
        (if clean.is_list { Shape::List(field) } else { Shape::Field(field) }, lines, true)
    }

    /// Returns a field's lines where they are as expected.
    fn clean(&self, part: Lines, field: Field, value: Span, step: Option<&StepTree>) -> Option<Clean> {
        let inline = self.source.slice(value).trim().to_owned();
        let body: Vec<usize> = (part.first + 1..part.end).filter(|line| !self.is_blank(*line)).collect();
        match field.form() {
            Form::Text => self.clean_text(part, inline, value, &body),
            Form::Contract => self.clean_contract(&inline, &body, step),
            Form::List => self.clean_list(inline, &body),
            Form::Line => self.clean_line(inline, &body),
        }
    }

    fn clean_line(&self, inline: String, body: &[usize]) -> Option<Clean> {
        let value = match body {
            [] => inline,
            [line] if inline.is_empty() && self.layout.outline.kind(*line) == LineKind::Text => {
                self.text(*line).trim().to_owned()
            }
            _ => return None,
        };
        (!value.is_empty()).then_some(Clean { value, below: Vec::new(), is_list: false })
    }

    fn clean_list(&self, inline: String, body: &[usize]) -> Option<Clean> {
        let mut below = Vec::new();
        for line in body {
            let is_text = self.layout.outline.kind(*line) == LineKind::Text;
            let rest = self.text(*line).trim().strip_prefix(['-', '*', '+']).filter(|_| is_text)?;
            let entry = rest.strip_prefix([' ', '\t'])?.trim();
            if entry.is_empty() || crate::tree::parse::field::is_separator(self.text(*line)) {
                return None;
            }
            below.push(self.line(*line, &format!("- {entry}")));
        }
        let is_list = !below.is_empty();
        (is_list || !inline.is_empty()).then_some(Clean { value: inline, below, is_list })
    }

    // A text begins on the line below its name, or beside it; one that is indented or marked up may need the blank line.
    fn clean_text(&self, part: Lines, inline: String, value: Span, body: &[usize]) -> Option<Clean> {
        let Some(first) = body.first().copied() else {
            return (!inline.is_empty()).then_some(Clean {
                value: inline,
                below: Vec::new(),
                is_list: false,
            });
        };
        let mut below = Vec::new();
        let has_blank = first > part.first + 1;
        if has_blank && (!inline.is_empty() || !self.text(first).starts_with(char::is_alphanumeric)) {
            below.push(self.ends.to_owned());
        }
        below.extend(self.prose(first..part.end));
        let is_break = !has_blank && self.source.slice(value).ends_with("  ");
        let inline = if is_break && !inline.is_empty() { format!("{inline}  ") } else { inline };
        Some(Clean { value: inline, below, is_list: false })
    }

    fn clean_contract(&self, inline: &str, body: &[usize], step: Option<&StepTree>) -> Option<Clean> {
        let (first, rest) = body.split_first()?;
        let LineKind::Fence(index) = self.layout.outline.kind(*first) else { return None };
        let fence = self.layout.outline.fences.get(index).filter(|fence| fence.first_line == *first)?;
        let is_read =
            step.and_then(|step| step.node.contract.as_ref()).is_some_and(|read| read.fence == fence.opener);
        let is_plain = self.source.slice(fence.opener).starts_with(['`', '~']);
        if !inline.is_empty() || !fence.is_closed || !is_read || !is_plain {
            return None;
        }
        let mut below = self.fence(fence);
        match rest.iter().filter(|line| **line > fence.last_line).collect::<Vec<_>>().as_slice() {
            [] => {}
            [line] if is_expectation(self.text(**line).trim()) => {
                let code = values::exit_code(self.text(**line)).ok()?;
                below.push(self.line(**line, &format!("exit_code == {code}")));
            }
            _ => return None,
        }
        Some(Clean { value: String::new(), below, is_list: false })
    }

    fn fence(&self, fence: &Fence) -> Vec<String> {
        let contents = || fence.content.iter().map(|span| self.source.slice(*span));
        let run = |text: &str| text.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        let inner = contents().map(run).max().unwrap_or(0);
        let marks = "`".repeat(if inner >= 3 { inner + 1 } else { 3 });
        let info = self.source.slice(fence.opener).trim_start_matches(['`', '~']).trim();
        let is_tag =
            info.split_whitespace().count() < 2 && matches!(fence.language.as_str(), "" | "sh" | "bash");
        let info = if is_tag { "shell" } else { info };
        let mut lines = vec![self.line(fence.first_line, &format!("{marks}{info}"))];
        let body = fence.first_line + 1..;
        lines.extend(contents().zip(body).map(|(text, line)| self.line(line, text)));
        lines.push(self.line(fence.last_line, &marks));
        lines
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

/// A field's lines in planctl's form.
struct Clean {
    value: String,
    below: Vec<String>,
    is_list: bool,
}

/// Returns the name of a plan's own field as authors write it.
fn label(field: Field) -> &'static str {
    let word = field.as_str();
    fields::OF_PLAN.iter().find(|known| known.name == word).map_or(word, |known| known.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_step_has_its_place() {
        // An exit code stands at the end of its contract.
        for field in Field::of_steps().filter(|field| *field != Field::ExitCode) {
            assert!(ORDER.contains(&field), "{field:?}");
        }
    }
}
