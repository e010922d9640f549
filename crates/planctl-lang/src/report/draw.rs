//! Draws findings for people, as rustc draws its own.

use std::borrow::Cow;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Fix, Label, Severity};
use crate::syntax::source::Source;
use crate::text::Span;
use crate::text::characters::printable;
use crate::text::characters::{self, escape};
use crate::text::secrets::stars;

const NEAR_LINES: usize = 4;

/// Labels with their place in the list; the first is the primary.
type Ranked<'a> = Vec<(usize, &'a Label)>;

/// Draws all findings, one after another, with an empty line between.
pub fn render_all(diagnostics: &[Diagnostic], source: &Source, colour: bool) -> String {
    let drawn: Vec<String> = diagnostics.iter().map(|diagnostic| diagnostic.render(source, colour)).collect();
    drawn.join("\n\n")
}

/// The columns that a drawing has where nothing is known of the terminal.
const COLUMNS: usize = annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
/// Narrower drawings are of no use to anybody; a terminal that is narrower wraps them.
const COLUMNS_MIN: usize = 40;

/// Returns the name of a plan on one line; a file may have a line break in its name.
fn shown_path(source: &Source) -> String {
    printable(source.path()).replace('\n', "\\n")
}

impl Diagnostic {
    /// Draws it as rustc draws its own: title, source with carets, notes, help.
    pub fn render(&self, source: &Source, colour: bool) -> String {
        self.drawn(source, colour, None)
    }

    /// As [`Diagnostic::render`], for so many columns: long lines of the plan are cut around what is marked in them, sentences
    /// are broken between words.
    pub fn render_within(&self, source: &Source, colour: bool, columns: usize) -> String {
        self.drawn(source, colour, Some(columns.max(COLUMNS_MIN)))
    }

    fn drawn(&self, source: &Source, colour: bool, columns: Option<usize>) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(columns.unwrap_or(COLUMNS));
        let last = self.spans.iter().map(|label| source.line_of(source.clamp(label.span).end) + 1).max();
        let gutter = last.map_or(0, |line| line.to_string().len()) + " = help: ".len();
        let wrapped = |text: &str, before: usize| match columns {
            Some(columns) => wrap(&printable(text), columns.saturating_sub(before + 1)),
            None => printable(text),
        };
        let level = match self.level {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let before = "warning[P000]: ".len();
        let title = level.primary_title(wrapped(&self.message, before)).id(self.code.as_str());
        let mut group = Group::with_title(title);
        for (place, snippet) in self.snippets(source) {
            if let Some(place) = place {
                group = group.element(place);
            }
            group = group.element(snippet);
        }
        if let Some(step) = &self.step {
            let line = format!("step {} \"{}\"", escape(&step.number), escape(&step.title));
            group = group.element(Level::NOTE.no_name().message(line));
        }
        for note in &self.notes {
            group = group.element(Level::NOTE.message(wrapped(note, gutter)));
        }
        if let Some(help) = self.help_and_fix() {
            group = group.element(Level::HELP.message(wrapped(&help, gutter)));
        }
        renderer.render(&[group])
    }

    // Says behind the first line of the help which flag does it.
    fn help_and_fix(&self) -> Option<String> {
        let flag = self.fix.as_ref().map(|fix| if fix.safe { "--fix" } else { "--fix --unsafe-fixes" });
        match (&self.help, flag) {
            (None, None) => None,
            (Some(help), None) => Some(help.clone()),
            (None, Some(flag)) => Some(match self.fix.as_ref().and_then(Fix::in_words) {
                Some(words) => format!("{words}     ({flag} does it)"),
                None => format!("{flag} does it"),
            }),
            (Some(help), Some(flag)) => match help.split_once('\n') {
                Some((first, rest)) => Some(format!("{first}     ({flag} does it)\n{rest}")),
                None => Some(format!("{help}     ({flag} does it)")),
            },
        }
    }

    // Places that are near one another share a snippet; the renderer is only given the lines it needs, since it
    // walks all it is given.
    fn snippets<'a>(&'a self, source: &'a Source) -> Vec<Placed<'a>> {
        let mut groups: Vec<(usize, usize, Ranked<'_>)> = Vec::new();
        for (rank, label) in self.spans.iter().enumerate() {
            let span = source.clamp(label.span);
            let first = source.line_of(span.start);
            let last = source.line_of(span.end.saturating_sub(1).max(span.start));
            match groups
                .iter_mut()
                .find(|group| first <= group.1 + NEAR_LINES && group.0 <= last + NEAR_LINES)
            {
                Some(group) => {
                    group.0 = group.0.min(first);
                    group.1 = group.1.max(last);
                    group.2.push((rank, label));
                }
                None => groups.push((first, last, vec![(rank, label)])),
            }
        }
        groups.into_iter().map(|(first, last, labels)| self.snippet(source, first, last, labels)).collect()
    }

    fn snippet<'a>(
        &'a self,
        source: &'a Source,
        first: usize,
        last: usize,
        labels: Ranked<'a>,
    ) -> Placed<'a> {
        let top = first.saturating_sub(1);
        let spans: Vec<Span> = labels.iter().map(|(_, label)| source.clamp(label.span)).collect();
        let excerpt = Excerpt::of(source, top, last, &spans);
        let marked = spans.first().map_or(Span::at(0), |span| *span);
        let ranges: Vec<_> =
            spans.iter().map(|span| excerpt.place(span.start)..excerpt.place(span.end)).collect();
        let mut snippet = Snippet::source(excerpt.text).line_start(top + 1);
        // Of a line that is cut, the renderer can't tell the column.
        let place = excerpt.is_cut.then(|| {
            let position = source.position(marked.start);
            Origin::path(shown_path(source)).line(position.line).char_column(position.column)
        });
        if place.is_none() {
            snippet = snippet.path(shown_path(source));
        }
        for ((rank, label), range) in labels.into_iter().zip(ranges) {
            let kind = if rank == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            snippet = snippet.annotation(kind.span(range).label(printable(&label.text)));
        }
        (place, snippet)
    }
}

// Breaks lines between words where they are wider; what stands between backticks stays whole where it can.
fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len() + 8);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            wrapped.push('\n');
        }
        if line.chars().count() <= columns {
            wrapped.push_str(line);
            continue;
        }
        let mut width = 0;
        for word in words(line, columns) {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > columns {
                wrapped.push('\n');
                width = 0;
            } else if width > 0 {
                wrapped.push(' ');
                width += 1;
            }
            wrapped.push_str(word);
            width += length;
        }
    }
    wrapped
}

fn words(line: &str, columns: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut is_quoted = false;
        let end = rest.find(|c: char| {
            is_quoted ^= c == '`';
            c == ' ' && !is_quoted
        });
        let first = rest.find(' ').unwrap_or(rest.len());
        let end = end.unwrap_or(rest.len());
        let end = if rest[..end].chars().count() > columns { first } else { end };
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

/// Lines of the plan, and where they are where the renderer can't know.
type Placed<'a> = (Option<Origin<'a>>, Snippet<'a, annotate_snippets::Annotation<'a>>);

/// The most bytes of a line that are drawn, since the renderer walks its whole input for each finding.
const LINE_BYTES_MAX: usize = 2_000;
/// How much of a line that is cut stands before what is marked in it.
const LINE_BYTES_BEFORE: usize = 200;

/// Some lines of a plan, of which long ones are cut around what is marked in them.
struct Excerpt {
    text: String,
    /// The kept part of each line, and where that part stands in the text.
    kept: Vec<(Span, usize)>,
    /// Says that a line lacks its beginning.
    is_cut: bool,
}

impl Excerpt {
    fn of(source: &Source, first: usize, last: usize, marked: &[Span]) -> Excerpt {
        let mut excerpt = Excerpt { text: String::new(), kept: Vec::new(), is_cut: false };
        for at in first..=last {
            let line = source.line_span(at);
            let line = if at == 0 { Span::new(source.bom_bytes().min(line.end), line.end) } else { line };
            let kept = shortened_line(source, line, marked);
            excerpt.is_cut |= kept.start > line.start;
            if at > first {
                excerpt.text.push('\n');
            }
            excerpt.kept.push((kept, excerpt.text.len()));
            excerpt.text.push_str(&mask(source, source.slice(kept), kept.start));
        }
        excerpt
    }

    /// Returns where an offset of the plan stands in the text, or the nearest that is kept.
    fn place(&self, offset: usize) -> usize {
        let after = self.kept.partition_point(|(kept, _)| kept.start <= offset);
        let Some((kept, at)) = self.kept.get(after.saturating_sub(1)) else { return 0 };
        at + offset.clamp(kept.start, kept.end) - kept.start
    }
}

fn shortened_line(source: &Source, line: Span, marked: &[Span]) -> Span {
    if line.end - line.start <= LINE_BYTES_MAX {
        return line;
    }
    let is_here = |span: &&Span| span.start <= line.end && span.end >= line.start;
    let first = marked.iter().find(is_here).map_or(line.start, |span| span.start.max(line.start));
    let text = source.text();
    let start = first.saturating_sub(LINE_BYTES_BEFORE).max(line.start);
    let start = (start..=line.end).find(|at| text.is_char_boundary(*at)).unwrap_or(line.end);
    let end = (start + LINE_BYTES_MAX).min(line.end);
    Span::new(start, (end..=line.end).find(|at| text.is_char_boundary(*at)).unwrap_or(line.end))
}

// Text that looks like a credential is never drawn.
fn mask<'a>(source: &'a Source, shown: &'a str, start: usize) -> Cow<'a, str> {
    if source.secrets().is_empty() {
        return mask_hidden(shown);
    }
    let starred = stars(shown, source.secrets(), start);
    Cow::Owned(mask_hidden(&starred).into_owned())
}

// Hidden characters are masked with as many bytes as they have, so that spans still fit.
fn mask_hidden(text: &str) -> Cow<'_, str> {
    let mut hidden = characters::hidden(text).peekable();
    if hidden.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, character) in hidden {
        shown.push_str(&text[shown.len()..at]);
        match character.len_utf8() {
            1 => shown.push('?'),
            2 => shown.push('¿'),
            3 => shown.push('\u{fffd}'),
            _ => shown.push_str("??\u{00bf}"),
        }
    }
    shown.push_str(&text[shown.len()..]);
    Cow::Owned(shown)
}
