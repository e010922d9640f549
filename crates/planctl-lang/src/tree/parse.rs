//! Reads plan text into a tree, tolerant as people are, and says everything it could not read.

pub(crate) mod allow;
mod budget;
pub(crate) mod contract;
mod fences;
pub(crate) mod field;
mod frontmatter;
pub(crate) mod heading;
mod headless;
mod hidden;
pub(crate) mod layout;
mod meant;
mod missed;
mod plan;
mod step;

pub use budget::of_text as budget_of;
pub(crate) use contract::CONTRACT_STUB;
pub use frontmatter::{STATUSES, draft_frontmatter};
pub(crate) use step::kind_word;

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic, Edit, Fix, Severity};
use crate::syntax::Language;
use crate::syntax::alike;
use crate::syntax::markdown::{LineKind, Outline};
use crate::syntax::source::Source;
use crate::text::limits::STEPS_MAX;
use crate::text::{Span, Spanned, escape};
use crate::tree::workflow::{ToolFields, outlined};
use crate::tree::{Field, PlanTree, StepNumber, StepTree};
use field::{FieldLine, RawField};
use heading::{Heading, StepHeading};
use layout::{Layout, Part, PartKind};
use missed::{ForReaders, Missed};

/// Reads a plan.
///
/// Never panics and never stops at the first problem: every readable part is in the tree, and every problem is in the list,
/// in the order of the text. A graph of DOT or JSON, as its name says, has its nodes for steps.
pub fn parse(source: &Source) -> (PlanTree, Vec<Diagnostic>) {
    if let Some(language) = Language::of(source.path()) {
        let outlined = outlined(source, language);
        return (outlined.tree, outlined.found);
    }
    let (tree, found, _) = parse_with_layout(source);
    (tree, found)
}

/// Reads a plan, and says what each of its lines belongs to; a text over the limit has no layout.
pub(crate) fn parse_with_layout(source: &Source) -> (PlanTree, Vec<Diagnostic>, Option<Layout>) {
    let mut found = Vec::new();
    source.check_characters(&mut found);
    if source.text().len() > crate::text::limits::PLAN_BYTES_MAX {
        let message = format!("the plan has {} bytes, and the limit is 1048576 (1 MiB)", source.text().len());
        found.push(Diagnostic::new(Code::P008, message).at(Span::at(0), ""));
        return (PlanTree::default(), found, None);
    }
    if source.bom_bytes() > 0 {
        let bom = Diagnostic::new(Code::P005, "the file begins with a byte order mark; it is ignored");
        let bom = bom.level(Severity::Note).at(Span::new(0, source.bom_bytes()), "");
        found.push(bom.fix(Span::new(0, source.bom_bytes()), "", true));
    }
    let (frontmatter, body) = frontmatter::read(source, &mut found);
    let outline = Outline::read(source, body);
    let tree = PlanTree { frontmatter, ..PlanTree::default() };
    let mut reader = Reader {
        source,
        outline: &outline,
        found,
        tree,
        place: Section::Plan,
        parts: vec![Part { line: body, kind: PartKind::Other }],
        ..Reader::new(source, &outline)
    };
    reader.has_steps_heading = reader.find_heading(body, |heading| is_section(heading, "steps")).is_some();
    for line in body..source.line_count() {
        reader.read_line(line);
    }
    reader.report_open_comment();
    if !reader.has_steps_heading {
        reader.tree.steps_meant = reader.find_heading(body, |heading| {
            let text = heading.text.trim_end_matches(':').trim();
            heading.level <= 4 && crate::text::near::nearest(text, ["steps"]).is_some()
        });
    }
    reader.close_field(source.line_count());
    reader.begin_section("");
    reader.report_missed();
    reader.report_fields_in_frontmatter();
    reader.take_tools();
    reader.tree.steps.iter_mut().for_each(|step| step::place_work(&mut step.node));
    reader.report_fences();
    let Reader { mut found, tree, parts, second_frontmatter, .. } = reader;
    if tree.frontmatter.span.is_none() && body == 0 && !tree.steps.is_empty() {
        add_frontmatter(source, second_frontmatter, &mut found);
    }
    // Of a text without any step, that it has none says it all.
    if tree.steps.is_empty() && tree.steps_heading.is_none() && tree.steps_meant.is_none() {
        found.retain(|found| !matches!(found.code, Code::P001 | Code::P011 | Code::P015));
    }
    sort(&mut found);
    (tree, found, Some(Layout { body, parts, outline }))
}

// A text with steps is meant to be a plan. The owner is left to its default, since nobody knows it.
fn add_frontmatter(source: &Source, second: Option<Span>, found: &mut [Diagnostic]) {
    let top = Span::at(source.bom_bytes());
    if let Some(at) = second {
        // One that is there already is only moved to the top, where nothing but blank lines stands above it.
        let above = Span::new(top.start, at.start);
        let is_blank = source.slice(above).trim().is_empty();
        let edits = vec![Edit { span: above, replacement: String::new() }];
        if let Some(missing) = found.iter_mut().find(|found| found.code == Code::P001).filter(|_| is_blank) {
            missing.fix = Some(Fix { edits, safe: true });
            missing.help = Some("delete the blank lines above the frontmatter".to_owned());
        }
        return;
    }
    if let Some(missing) = found.iter_mut().find(|found| found.code == Code::P001) {
        let block = "---\ntype: plan\nstatus: draft\n---\n\n".to_owned();
        missing.fix = Some(Fix { edits: vec![Edit { span: top, replacement: block }], safe: true });
    }
}

/// Orders findings by their place in the text.
pub(crate) fn sort(found: &mut [Diagnostic]) {
    found.sort_by_key(|diagnostic| diagnostic.spans.first().map_or(0, |label| label.span.start));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Plan,
    Steps,
    Step,
    Flow,
    /// Below a heading that would begin a step if it had a number.
    Unnumbered,
    Elsewhere,
}

struct Reader<'a> {
    source: &'a Source,
    outline: &'a Outline,
    found: Vec<Diagnostic>,
    tree: PlanTree,
    place: Section,
    has_steps_heading: bool,
    step_level: usize,
    field: Option<RawField>,
    seen: Vec<(Field, Span)>,
    seen_in_plan: Vec<(Field, Span)>,
    /// Fields that unknown names were taken for, with the finding that says so.
    guessed: Vec<(Field, usize)>,
    /// Says that there are too many steps, and the rest is not read.
    is_full: bool,
    used_fences: Vec<bool>,
    second_frontmatter: Option<Span>,
    last_stray: Option<usize>,
    last_edge: Option<usize>,
    section: ForReaders,
    /// Lines of texts that are meant to be fields of the step, or of the head.
    missed: Vec<Missed>,
    is_unread_told: bool,
    /// The level of the last reported heading outside the steps.
    elsewhere_level: usize,
    /// An exit code that stands before its contract, with the count of steps at that place.
    exit_code_ahead: Option<(usize, Spanned<u8>)>,
    /// The fields about tools of steps, by their place.
    tools: BTreeMap<usize, ToolFields>,
    parts: Vec<Part>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source, outline: &'a Outline) -> Reader<'a> {
        Reader {
            source,
            outline,
            found: Vec::new(),
            tree: PlanTree::default(),
            place: Section::Plan,
            has_steps_heading: false,
            step_level: 3,
            field: None,
            seen: Vec::new(),
            seen_in_plan: Vec::new(),
            guessed: Vec::new(),
            is_full: false,
            used_fences: vec![false; outline.fences.len()],
            second_frontmatter: None,
            last_stray: None,
            last_edge: None,
            section: ForReaders::default(),
            missed: Vec::new(),
            is_unread_told: false,
            elsewhere_level: 0,
            exit_code_ahead: None,
            tools: BTreeMap::new(),
            parts: Vec::new(),
        }
    }

    fn begin_part(&mut self, line: usize, kind: PartKind) {
        self.parts.push(Part { line, kind });
    }

    fn find_heading(&self, body: usize, is_meant: impl Fn(&Heading<'_>) -> bool) -> Option<Span> {
        let spans = (body..self.source.line_count())
            .filter(|line| self.outline.kind(*line) == LineKind::Text)
            .map(|line| self.source.words_span(line));
        let mut found = spans.filter(|span| {
            heading::heading(self.source.slice(*span), span.start).is_some_and(|heading| is_meant(&heading))
        });
        found.next()
    }

    fn read_line(&mut self, line: usize) {
        match self.outline.kind(line) {
            LineKind::Text => {}
            LineKind::Comment => return self.read_comment(line),
            LineKind::Indented => return self.read_indented(line),
            LineKind::Fence(index) => {
                self.read_fence_in_flow(index, line);
                // Prose may hold code, and what follows a refused field is that field's.
                let is_prose = matches!(
                    self.place,
                    Section::Plan | Section::Flow | Section::Unnumbered | Section::Elsewhere
                );
                let is_refused = self.field.as_ref().is_some_and(|field| field.field.is_none());
                self.used_fences[index] |= is_prose || is_refused;
                return;
            }
        }
        let span = self.source.words_span(line);
        let text = self.source.slice(span);
        if text.trim_end() == "---" && self.begins_frontmatter(line + 1) {
            self.second_frontmatter.get_or_insert(span);
            let message = "a second frontmatter is not read: only the one at the top of the file is";
            let second = Diagnostic::new(Code::P002, message).at(span, "");
            self.found.push(second.help("move its lines to the top, or delete it"));
        }
        if let Some(heading) = heading::heading(text, span.start) {
            return self.read_heading(&heading, line, span);
        }
        if self.read_underlined(line, span) {
            return;
        }
        match field::line(text, span.start) {
            Some(found) => self.read_field(found, line),
            None if field::is_separator(text) => {}
            None if self.field.is_none() => self.read_prose(line, span),
            None if self.is_in_text() => self.look_into_text(line, span),
            None => {}
        }
    }

    fn begins_frontmatter(&self, line: usize) -> bool {
        let is_key = |text: &str| ["type:", "status:", "owner:"].iter().any(|key| text.starts_with(key));
        line < self.source.line_count() && is_key(self.source.slice(self.source.line_span(line)))
    }

    // Authors take fields out by a comment; that one is not read should not come as a surprise.
    fn read_comment(&mut self, line: usize) {
        let span = self.source.line_span(line);
        let is_told = matches!(self.place, Section::Unnumbered | Section::Elsewhere) || self.is_in_text();
        if self.read_remark(line, span) {
            return;
        }
        if !is_told && self.source.slice(span).trim_start().starts_with("<!--") {
            self.tree.prose.push(Spanned::new("the comment".to_owned(), span));
        }
        let Some(found) = field::line(self.source.slice(span), span.start) else { return };
        if self.place == Section::Step && Field::of_step(&found.name.value).is_some() {
            let message = format!("`**{}:**` stands in a comment, so it is not read", found.name.value);
            self.push_in_step(
                Diagnostic::new(Code::P015, message).level(Severity::Note).at(found.name.span, ""),
            );
        }
    }

    fn read_heading(&mut self, heading: &Heading<'_>, line: usize, span: Span) {
        self.begin_section(heading.text);
        if is_section(heading, "steps") && self.tree.steps_heading.is_none() {
            self.close_field(line);
            self.begin_part(line, PartKind::Steps);
            self.tree.steps_heading = Some(span);
            self.place = Section::Steps;
            return;
        }
        if self.tree.steps_heading.is_some()
            && is_section(heading, "flow")
            && heading.level <= self.step_level
        {
            self.close_field(line);
            self.begin_part(line, PartKind::Other);
            self.tree.flow.get_or_insert_with(|| Spanned::new(Vec::new(), span));
            self.place = Section::Flow;
            return;
        }
        let in_steps = !self.has_steps_heading || self.tree.steps_heading.is_some();
        let may_be_step = in_steps && (2..=4).contains(&heading.level);
        if may_be_step && let Some(step) = heading::step(heading) {
            let is_inner =
                self.place == Section::Step && heading.level > self.step_level && !self.continues(&step);
            if !is_inner {
                return self.begin_step(heading, step, line, span);
            }
        }
        self.read_other_heading(heading, line, span);
    }

    // A deeper numbered heading inside a step begins the next step only if its number does; else it is task text.
    fn continues(&self, step: &StepHeading) -> bool {
        let last = self.tree.steps.iter().rev().find_map(|step| step.node.number);
        match (&step.number, last) {
            (Ok(number), Some(last)) => number.value == StepNumber::Fixed(last.saturating_add(1)),
            (Ok(_), None) | (Err(_), _) => true,
        }
    }

    fn begin_step(&mut self, heading: &Heading<'_>, step: StepHeading, line: usize, span: Span) {
        self.close_field(line);
        self.place = Section::Step;
        self.step_level = heading.level;
        self.report_missed();
        self.seen.clear();
        self.guessed.clear();
        let number = match step.number {
            Ok(number) => number,
            Err(at) => {
                let message = "the step number is too large".to_owned();
                let range = Diagnostic::new(Code::P008, message).at(at, "at most 5000");
                self.found.push(range.help("number the steps 1, 2, 3 …"));
                Spanned::new(StepNumber::Fixed(u32::MAX), at)
            }
        };
        if self.tree.steps.len() >= STEPS_MAX && !std::mem::replace(&mut self.is_full, true) {
            let message = "the plan has more than 5000 steps; the rest is not read";
            let limit = Diagnostic::new(Code::P008, message).at(span, "step 5001");
            self.found.push(limit.help("split the plan"));
            self.place = Section::Elsewhere;
        }
        if self.tree.steps.len() >= STEPS_MAX {
            self.begin_part(line, PartKind::Other);
            self.place = Section::Elsewhere;
            return;
        }
        self.begin_part(line, PartKind::Step { level: heading.level });
        let mut tree = StepTree { mark: step.mark, ..StepTree::new(number, span, step.title) };
        tree.node.step = Some(self.tree.steps.len());
        if heading.level != 3 || !step.is_plain {
            let written = format!("### {}. ", tree.node.id.value);
            let message = format!("a step's heading is written `{written}Title`");
            let prefix = Span::new(
                span.start,
                tree.mark.as_ref().map_or(tree.title_span().start, |mark| mark.span.start),
            );
            let drift =
                Diagnostic::new(Code::P005, message).at(span, "read as a step").step(tree.node.step_name());
            self.found.push(drift.fix(prefix, written, true));
        }
        self.tree.steps.push(tree);
    }

    fn read_other_heading(&mut self, heading: &Heading<'_>, line: usize, span: Span) {
        match self.place {
            Section::Plan => {
                self.close_field(line);
                if heading.level == 1 && self.tree.head.title.is_none() {
                    let at = Span::new(heading.at, heading.at + heading.text.len());
                    self.tree.head.title = Some(Spanned::new(heading.text.to_owned(), at));
                    self.begin_part(line, PartKind::Title);
                } else {
                    self.look_at_heading(heading, span);
                    self.begin_part(line, PartKind::Other);
                }
            }
            Section::Step if heading.level > self.step_level => {
                let in_task = self.field.as_ref().is_some_and(|field| field.field == Some(Field::Task));
                if !in_task {
                    self.read_prose(line, span);
                }
            }
            Section::Steps | Section::Step | Section::Unnumbered
                if heading.level == self.step_level
                    || (heading.level > 2 && self.place != Section::Unnumbered) =>
            {
                self.close_field(line);
                self.begin_part(line, PartKind::Other);
                self.place = Section::Unnumbered;
                if let Some(number) = alike_number(heading) {
                    return self.found.push(number);
                }
                let message = format!("the heading `{}` has no step number", escape(heading.text));
                let unnumbered =
                    Diagnostic::new(Code::P015, message).at(span, "a step's heading is `### N. Title`");
                let help =
                    "number it to make it a step, or write it deeper (`####`) to keep it in the task above";
                self.found.push(unnumbered.help(help));
            }
            Section::Unnumbered if heading.level > self.step_level => {}
            Section::Steps | Section::Step | Section::Unnumbered | Section::Flow | Section::Elsewhere => {
                self.close_field(line);
                self.begin_part(line, PartKind::Other);
                let is_below = self.place == Section::Elsewhere && heading.level > self.elsewhere_level;
                self.place = Section::Elsewhere;
                self.look_at_heading(heading, span);
                if !is_below && !self.is_full {
                    self.elsewhere_level = heading.level;
                    let section = format!("the section `{}`", escape(heading.text));
                    let message =
                        format!("{section} is for readers: no worker is given it, and nothing checks it");
                    self.tree.prose.push(Spanned::new(section, span));
                    let unread = Diagnostic::new(Code::P015, message).level(Severity::Note).at(span, "");
                    self.found.push(unread.help("what a step has to do belongs into its `**task:**`, what proves it into its `**contract:**`"));
                }
            }
        }
    }

    fn read_prose(&mut self, line: usize, span: Span) {
        match self.place {
            Section::Plan => {
                if !self.take_line(span) {
                    self.look_into_text(line, span);
                }
                self.report_unread(span);
            }
            Section::Elsewhere if !self.is_full => {
                self.take_line(span);
            }
            Section::Unnumbered | Section::Elsewhere => {}
            Section::Flow => {
                if let Some(flow) = &mut self.tree.flow {
                    flow.value.push(Spanned::new(self.source.slice(span).trim().to_owned(), span));
                }
            }
            Section::Steps | Section::Step => self.report_stray(line, span),
        }
    }

    // A field above the steps looks as if it held for them.
    fn report_unread(&mut self, span: Span) {
        let is_told = std::mem::replace(&mut self.is_unread_told, true);
        if is_told || self.tree.head.title.is_none() && self.source.slice(span).starts_with("# ") {
            return;
        }
        self.tree.prose.push(Spanned::new("the text above the steps".to_owned(), span));
        let message = "text above the steps is for readers: no worker is given it";
        let unread = Diagnostic::new(Code::P015, message).level(Severity::Note).at(span, "");
        self.found
            .push(unread.help("what workers have to know belongs into the task of each step that it is for"));
    }

    fn read_field(&mut self, found: FieldLine, line: usize) {
        let word = found.name.value.as_str();
        let in_step = self.place == Section::Step;
        let (field, elsewhere) = if in_step {
            (Field::of_step(word), Field::of_plan(word))
        } else {
            (Field::of_plan(word), Field::of_step(word))
        };
        match (field, self.place) {
            (Some(field), Section::Plan | Section::Step) => self.begin_field(field, found, line),
            (_, Section::Unnumbered) => {}
            (_, Section::Elsewhere) => {
                if let Some(field) = field.or(elsewhere).filter(|_| !self.is_full) {
                    let message = format!("`**{word}:**` stands outside of a step and has no effect");
                    let level = if field == Field::Context { Severity::Warning } else { Severity::Error };
                    let outside = Diagnostic::new(Code::P015, message).level(level).at(found.name.span, "");
                    let help = "move it into its step, or above the steps; or take the colon away";
                    self.found.push(outside.help(help));
                }
            }
            (_, Section::Flow) => self.read_prose(line, self.source.line_span(line)),
            (_, Section::Steps) if Field::of_step(word).is_some() => self.report_headless(&found, line),
            (None, Section::Plan | Section::Step) | (_, Section::Steps) => {
                self.read_unknown_field(&found, elsewhere, line)
            }
        }
    }

    fn begin_field(&mut self, field: Field, found: FieldLine, line: usize) {
        self.close_field(line);
        let seen = if self.place == Section::Step { &mut self.seen } else { &mut self.seen_in_plan };
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == field) {
            let first_line = self.source.position(first.start).line;
            let twice = Diagnostic::new(Code::P009, format!("`**{}:**` is given twice", field.as_str()));
            let twice =
                twice.at(found.name.span, "again here").at(*first, format!("first on line {first_line}"));
            self.push_in_step(twice.help("keep one of the two"));
            self.begin_part(line, PartKind::Refused);
            self.field = Some(RawField::ignored(found, line));
            return;
        }
        seen.push((field, found.name.span));
        // A field that is there can't be what another name was meant to be.
        if let Some(at) = self.guessed.iter().position(|(guessed, _)| *guessed == field) {
            let (_, finding) = self.guessed.swap_remove(at);
            if let Some(finding) = self.found.get_mut(finding) {
                finding.fix = None;
            }
        }
        if !found.is_plain {
            let written = format!("**{}:**", found.name.value);
            let drift = Diagnostic::new(Code::P005, format!("a field is written `{written}`"));
            let value = self.source.slice(found.value).trim();
            let space = if value.is_empty() { "" } else { " " };
            let drift = drift.at(found.whole, "read as a field").fix(
                found.whole,
                format!("{written}{space}{value}"),
                true,
            );
            self.push_in_step(drift);
        }
        let in_step = self.place == Section::Step;
        self.begin_part(line, PartKind::Field { field, value: found.value, in_step });
        self.field = Some(RawField::known(field, found, line, in_step));
    }

    // In the task, a bold word that is near no field is emphasis; anywhere else it was meant to be a field.
    fn read_unknown_field(&mut self, found: &FieldLine, elsewhere: Option<Field>, line: usize) {
        let word = found.name.value.as_str();
        let shown = escape(&found.label);
        let known: Vec<&str> = if self.place == Section::Plan {
            Field::OF_PLANS.map(Field::as_str).to_vec()
        } else {
            // An exit code stands at the end of its contract.
            Field::of_steps().filter(|field| *field != Field::ExitCode).map(Field::as_str).collect()
        };
        let nearest = crate::text::near::nearest(word, known.iter().copied());
        let near = nearest.map(|near| near.word);
        let meant = Some(word).filter(|_| self.place == Section::Step).and_then(meant::of_step);
        // A typo in one of planctl's own names is reported as a typo, not as another tool's name.
        let meant =
            meant.filter(|meant| elsewhere.is_none() && near.and_then(Field::of_step) != Some(*meant));
        let in_text =
            self.is_in_text() && self.field.as_ref().is_some_and(|field| field.field != Some(Field::Judge));
        if in_text && near.is_none() && elsewhere.is_none() {
            let message = format!(
                "`**{shown}:**` looks like a field, but there is no such field; the line stays part of the text"
            );
            let emphasis =
                Diagnostic::new(Code::P015, message).level(Severity::Warning).at(found.name.span, "");
            let help = "begin the line with another word, or leave the bold out";
            return self.push_in_step(emphasis.help(match meant {
                Some(meant) => format!("did you mean `**{}:**`? Else {help}", meant.as_str()),
                None => help.to_owned(),
            }));
        }
        self.close_field(line);
        self.begin_part(line, PartKind::Refused);
        if self.report_alike(found) {
            self.field = Some(RawField::ignored(found.clone(), line));
            return;
        }
        // The field that was meant is not reported as missing as well.
        meant.or(near.and_then(Field::of_step)).into_iter().for_each(|meant| self.mark_unread(meant));
        let mut unknown =
            Diagnostic::new(Code::P015, format!("unknown field `**{shown}:**`")).at(found.name.span, "");
        if let Some(meant) = meant {
            let unknown = self.of_other_tools(found, meant, unknown);
            self.push_in_step(unknown);
            self.field = Some(RawField::ignored(found.clone(), line));
            return;
        }
        let help = match (near, elsewhere) {
            (Some(near), _) => {
                let meant =
                    if self.place == Section::Plan { Field::of_plan(near) } else { Field::of_step(near) };
                if let Some(meant) = meant.filter(|field| !self.is_seen(*field)) {
                    unknown = unknown.fix(found.name.span, near, nearest.is_some_and(|near| near.is_only));
                    self.guessed.push((meant, self.found.len()));
                    format!("did you mean `**{near}:**`?")
                } else {
                    format!("did you mean `**{near}:**`? It is here already; delete one of the two")
                }
            }
            (None, Some(_)) if self.place == Section::Plan => "this field belongs to a step".to_owned(),
            (None, Some(_)) => "this field belongs to the head of the plan".to_owned(),
            (None, None) => format!("the fields here are {}", known.join(", ")),
        };
        self.push_in_step(unknown.help(help));
        self.field = Some(RawField::ignored(found.clone(), line));
    }

    // A name that other tools have for a field.
    fn of_other_tools(&mut self, found: &FieldLine, meant: Field, unknown: Diagnostic) -> Diagnostic {
        let written = meant::written(meant, self.source.slice(found.value));
        if self.is_seen(meant) {
            return unknown
                .help(format!("did you mean `{written}`? It is here already; delete one of the two"));
        }
        let name = Span::new(found.whole.start, found.value.start);
        let place = if written.ends_with(":**") { name } else { found.whole };
        self.guessed.push((meant, self.found.len()));
        unknown.help(format!("did you mean `{written}`?")).fix(place, written, false)
    }

    // A name that only looks like that of a field.
    fn report_alike(&mut self, found: &FieldLine) -> bool {
        let Some(word) = alike::in_ascii(&found.name.value) else { return false };
        let in_plan = self.place == Section::Plan;
        let Some(meant) = (if in_plan { Field::of_plan(&word) } else { Field::of_step(&word) }) else {
            return false;
        };
        let plain = alike::in_ascii(&found.label).unwrap_or(word);
        let mut report = alike::report(&found.label, &plain, found.name.span);
        self.mark_unread(meant);
        if self.is_seen(meant) {
            report.fix = None;
        } else {
            self.guessed.push((meant, self.found.len()));
        }
        self.push_in_step(report);
        true
    }

    // Text that somebody is given as it stands.
    fn is_in_text(&self) -> bool {
        let field = self.field.as_ref().and_then(|field| field.field);
        matches!(field, Some(Field::Task | Field::Judge | Field::Context))
    }

    fn is_seen(&self, field: Field) -> bool {
        let seen = if self.place == Section::Step { &self.seen } else { &self.seen_in_plan };
        seen.iter().any(|(known, _)| *known == field)
            || self.guessed.iter().any(|(guessed, _)| *guessed == field)
    }

    fn close_field(&mut self, end: usize) {
        if self.place == Section::Step
            && let Some(step) = self.tree.steps.last_mut()
        {
            step.node.span.end = self.source.line_span(end).start;
        }
        let Some(field) = self.field.take() else { return };
        let Some(known) = field.field else { return };
        self.take_field(known, &field, end);
    }

    fn report_empty(&mut self, known: Field, field: &RawField) {
        self.mark_unread(known);
        let empty = Diagnostic::new(Code::P009, format!("`**{}:**` is empty", known.as_str()));
        self.push_in_step(
            empty
                .at(field.name.span, "a value was expected after this")
                .help("write the value, or delete the line"),
        );
    }

    fn mark_unread(&mut self, known: Field) {
        if self.field_is_in_step()
            && let Some(step) = self.tree.steps.last_mut()
        {
            step.unread.push(known);
        }
    }

    fn field_is_in_step(&self) -> bool {
        self.place != Section::Plan
    }

    fn push_in_step(&mut self, diagnostic: Diagnostic) {
        let diagnostic = self.in_step(diagnostic);
        self.found.push(diagnostic);
    }

    fn in_step(&self, diagnostic: Diagnostic) -> Diagnostic {
        let step =
            self.tree.steps.last().filter(|_| self.place != Section::Plan && diagnostic.step.is_none());
        let step = step.map(|step| step.node.step_name());
        Diagnostic { step: step.or(diagnostic.step.clone()), ..diagnostic }
    }
}

// A number of digits that only look like digits, or with a point that only looks like one.
fn alike_number(heading: &Heading<'_>) -> Option<Diagnostic> {
    let end = heading.text.find(' ')?;
    let written = &heading.text[..end];
    let meant = alike::in_ascii(written)?;
    let number = meant.strip_suffix(['.', ')', ':']).filter(|number| !number.is_empty())?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| alike::report(written, &meant, Span::new(heading.at, heading.at + end)))
}

fn is_section(heading: &Heading<'_>, name: &str) -> bool {
    heading.level <= 4 && heading.text.trim_end_matches(':').trim().eq_ignore_ascii_case(name)
}
