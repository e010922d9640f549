//! Lines that are meant to be a field or an edge, and stand where they are read as text.

use super::{Reader, Section, budget, field, heading};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::values;
use crate::text::{Span, escape};
use crate::tree::{Field, Scope};

/// A line that is meant to be a field, and is none.
pub(super) struct Meant {
    pub field: Field,
    /// How many bytes stand before its value.
    pub until: usize,
    pub message: String,
    pub help: String,
    /// Says that it is a field but for the signs before it: a bullet, a quote, a checkbox.
    pub is_behind: bool,
    /// Says that it can be mended by other bytes before its value.
    pub is_mendable: bool,
    /// Says that only a field can be meant: its name is in bold, or its value is one of that field.
    pub is_plain: bool,
}

/// A line of a text that is meant to be a field. It is a finding where that field is missing.
pub(super) struct Missed {
    scope: Scope,
    field: Field,
    finding: Diagnostic,
}

/// The lines below a heading that is for readers.
#[derive(Default)]
pub(super) struct ForReaders {
    /// The first that would be an edge below `## Flow`.
    edge: Option<Span>,
    /// Says that the heading, or a line like one, names a flow.
    is_flow: bool,
    has_words: bool,
}

impl Reader<'_> {
    /// Looks for a field in a line that belongs to a text: a task, the context, or words around the fields.
    pub(super) fn look_into_text(&mut self, line: usize, span: Span) {
        let text = self.source.slice(span);
        if is_edge(text) {
            return self.report_edge(line, span, Severity::Warning);
        }
        let scope = if self.place == Section::Step { Scope::Step } else { Scope::Plan };
        let Some(meant) = meant(text, scope).filter(|meant| meant.is_plain) else { return };
        // A limit of the plan that nobody reads is none; other words may be there for readers.
        let is_limit = meant.field == Field::Budget || meant.is_behind;
        let level = if scope == Scope::Plan && is_limit { Severity::Error } else { Severity::Warning };
        let finding =
            Diagnostic::new(Code::P015, meant.message).level(level).at(span, "a field begins its line");
        let mut finding = finding.help(meant.help);
        if meant.is_mendable {
            let at = Span::new(span.start, span.start + meant.until);
            finding = finding.fix(at, format!("**{}:** ", meant.field.as_str()), false);
        }
        let finding = self.in_step(finding);
        self.missed.push(Missed { scope, field: meant.field, finding });
    }

    /// Reports the fields that texts seem to have, and that nothing else gives.
    pub(super) fn report_missed(&mut self) {
        for missed in std::mem::take(&mut self.missed) {
            let seen = if missed.scope == Scope::Plan { &self.seen_in_plan } else { &self.seen };
            if !seen.iter().any(|(known, _)| *known == missed.field) {
                self.found.push(missed.finding);
            }
        }
    }

    /// Takes a line of a section for readers, and says whether it would be an edge below `## Flow`.
    pub(super) fn take_line(&mut self, span: Span) -> bool {
        let text = self.source.slice(span);
        let is_edge = is_edge(text);
        if is_edge {
            self.section.edge.get_or_insert(span);
        } else {
            self.section.is_flow |= names_flow(text);
            self.section.has_words = true;
        }
        is_edge
    }

    /// Begins a section for readers, and reports the first edge of the one before. A section that is meant as a flow, as its
    /// heading says, or that holds nothing but edges, is an error: the run would go another way than the author thinks.
    pub(super) fn begin_section(&mut self, heading: &str) {
        let next = ForReaders { is_flow: names_flow(heading), ..ForReaders::default() };
        let ForReaders { edge, is_flow, has_words } = std::mem::replace(&mut self.section, next);
        let level = if is_flow || !has_words { Severity::Error } else { Severity::Warning };
        self.found.extend(edge.map(|span| self.unread_edge(span, level)));
    }

    /// Reports the first of some lines that would be edges below `## Flow`.
    pub(super) fn report_edge(&mut self, line: usize, span: Span, level: Severity) {
        let follows = line > 0 && self.last_edge == Some(line - 1);
        self.last_edge = Some(line);
        if !follows {
            self.push_in_step(self.unread_edge(span, level));
        }
    }

    fn unread_edge(&self, span: Span, level: Severity) -> Diagnostic {
        let message = format!("`{}` is not read as an edge here", escape(self.source.slice(span).trim()));
        let edge = Diagnostic::new(Code::P015, message).level(level).at(span, "");
        edge.help("edges stand in a section behind the steps, below the heading `## Flow`")
    }

    /// Reports a heading that has the name of one of the plan's fields.
    pub(super) fn look_at_heading(&mut self, heading: &heading::Heading<'_>, span: Span) {
        let word = word(heading.text);
        let Some(field) = Field::of_plan(&word).filter(|field| *field != Field::Context) else { return };
        let message = format!("`{}` is a heading, so nothing reads a field there", escape(heading.text));
        let finding = Diagnostic::new(Code::P015, message).at(span, "");
        let help = format!(
            "write `**{}:**` and its value on one line, between the title and `## Steps`",
            field.as_str()
        );
        self.missed.push(Missed { scope: Scope::Plan, field, finding: finding.help(help) });
    }

    /// Makes errors of the frontmatter's unknown keys that are fields of the plan's head, which has none of that name.
    pub(super) fn report_fields_in_frontmatter(&mut self) {
        for key in &self.tree.frontmatter.unknown {
            let field = Field::of_plan(&word(&key.value));
            if field.is_none_or(|field| self.seen_in_plan.iter().any(|(seen, _)| *seen == field)) {
                continue;
            }
            let is_of = |found: &&mut Diagnostic| {
                found.code == Code::P002 && found.spans.first().is_some_and(|label| label.span == key.span)
            };
            self.found.iter_mut().filter(is_of).for_each(|found| found.level = Severity::Error);
        }
    }
}

/// Reads a known name that is not written as a field: behind other signs, with a colon but not in bold, or in a table.
pub(super) fn meant(text: &str, scope: Scope) -> Option<Meant> {
    let of = |word: &str| match scope {
        Scope::Plan => Field::of_plan(word),
        Scope::Step => Field::of_step(word),
    };
    let (rest, sign) = without_signs(text);
    if let Some(sign) = sign
        && let Some(field) = field::line(rest, 0).and_then(|line| of(&line.name.value))
    {
        return Some(Meant {
            field,
            until: text.len() - rest.len(),
            message: format!("`**{}:**` stands behind {sign}, so it is not read", field.as_str()),
            help: match sign {
                "a bullet" => "delete the bullet".to_owned(),
                _ => "delete all that stands before the field".to_owned(),
            },
            is_behind: true,
            is_mendable: true,
            is_plain: true,
        });
    }
    if scope == Scope::Step && says_exit_code(rest) {
        return Some(Meant {
            field: Field::ExitCode,
            until: 0,
            message: format!("`{}` is not read as the exit code of a contract", escape(rest.trim())),
            help: "write `exit_code == N` on a line of its own, below the fence of the contract".to_owned(),
            is_behind: false,
            is_mendable: false,
            is_plain: false,
        });
    }
    let bold = ["**", "__"].into_iter().find(|mark| rest.starts_with(mark));
    let (name, value) = match (rest.find([':', '：', '=', '|']), bold) {
        (Some(at), _) => rest.split_at(at),
        // `**needs** 2, 3`
        (None, Some(mark)) => rest.split_at(mark.len() + rest[mark.len()..].find(mark)?),
        // `#### needs`
        (None, None) if text.trim_start().starts_with('#') => (rest, ""),
        (None, None) => return None,
    };
    let field = of(&word(name))?;
    let separator = value.chars().next().filter(|c| !EMPHASIS.contains(c));
    let value = value.trim_start_matches([':', '：', '=', '|', '*', '_', '`']).trim_start();
    let shown = name.trim();
    let shown = match separator {
        Some(':' | '：') => &rest[..name.len() + separator.map_or(0, char::len_utf8)],
        _ => shown,
    };
    Some(Meant {
        field,
        until: text.len() - value.len(),
        message: format!("`{}` is not written as a field, so it is not read", escape(shown.trim())),
        help: format!("write `**{}:**`, if the field is meant", field.as_str()),
        is_behind: false,
        is_mendable: separator != Some('|') && !value.is_empty(),
        is_plain: bold.is_some() && separator.is_some() || is_value(field, value),
    })
}

/// Says whether a line would be an edge below `## Flow`: `- 3 -> 2 on fail`.
pub(super) fn is_edge(text: &str) -> bool {
    const ARROWS: [&str; 3] = ["->", "→", "=>"];
    let (rest, _) = without_signs(text);
    let Some((from, to)) = ARROWS.into_iter().find_map(|arrow| rest.split_once(arrow)) else { return false };
    let is_step = |name: &str| name.trim().trim_start_matches('#').parse::<u32>().is_ok();
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, ',' | '#' | ' ');
    let to = to.trim();
    let ends = ["done", "failed"].into_iter().find_map(|end| to.strip_prefix(end));
    let behind = ends.unwrap_or_else(|| to.trim_start_matches(is_digit));
    let words = ["on ", "if ", "\""];
    from.split(',').all(is_step)
        && behind.len() < to.len()
        && (behind.is_empty()
            || words.iter().chain(&ARROWS).any(|word| behind.trim_start().starts_with(word)))
}

// `Control flow`, `**Flow**`: a sentence about flows has more words.
fn names_flow(heading: &str) -> bool {
    const WORDS_MAX: usize = 3;
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.clone().count() <= WORDS_MAX && words.into_iter().any(|word| word.to_lowercase().contains("flow"))
}

const EMPHASIS: [char; 3] = ['*', '_', '`'];

// A name as fields have it.
fn word(name: &str) -> String {
    let bare = name.trim().trim_end_matches([':', '：']).trim_matches(EMPHASIS).trim();
    bare.trim_end_matches([':', '：']).to_lowercase().replace([' ', '-', '\u{a0}'], "_")
}

// Returns the words of a line, and the sign before them.
fn without_signs(text: &str) -> (&str, Option<&'static str>) {
    let mut rest = text.trim_start();
    let mut sign = (rest.len() < text.trim_start_matches(' ').len()).then_some("a blank other than a space");
    loop {
        let (found, after) = if let Some(after) = rest.strip_prefix('>') {
            ("`>`", after)
        } else if let Some(after) = rest.strip_prefix('|') {
            ("`|`", after)
        } else if let Some(after) =
            ["[ ]", "[x]", "[X]"].into_iter().find_map(|checkbox| rest.strip_prefix(checkbox))
        {
            ("a checkbox", after)
        } else if rest.starts_with('#') {
            ("`#`", rest.trim_start_matches('#'))
        } else if let Some(after) =
            rest.strip_prefix(['-', '*', '+', '•']).filter(|after| after.starts_with(char::is_whitespace))
        {
            ("a bullet", after)
        } else {
            return (rest, sign);
        };
        sign = sign.or(Some(found));
        rest = after.trim_start();
    }
}

// `Expected exit code: 1`
fn says_exit_code(text: &str) -> bool {
    let lower = text.to_lowercase().replace('_', " ");
    let is_said = ["exit code", "exit status"].iter().any(|name| lower.contains(name));
    is_said && lower.bytes().any(|byte| byte.is_ascii_digit())
}

// Says whether a text can be nothing but a value of the field.
fn is_value(field: Field, value: &str) -> bool {
    let value = value.trim().trim_end_matches(['*', '|', ' ']);
    let is_number = value.parse::<u32>().is_ok();
    match field {
        Field::Budget => budget::of_text(value).is_some(),
        Field::Needs => {
            let is_number = |part: &str| part.trim().trim_start_matches('#').parse::<u32>().is_ok();
            value.split([',', ' ']).filter(|part| !part.is_empty()).all(is_number) && !value.is_empty()
        }
        Field::OnFail => values::on_fail(&value.to_lowercase()).is_ok(),
        Field::Timeout | Field::ContractTimeout | Field::StaleAfter => values::duration(value).is_ok(),
        Field::AskDeadline => values::ask_deadline(value).is_ok(),
        Field::MaxRetries | Field::MaxVisits | Field::MinTests | Field::Parallel => is_number,
        Field::Priority => ["low", "normal", "high", "urgent"].contains(&&*value.to_lowercase()),
        Field::RedFirst => ["off", "warn", "deny"].contains(&&*value.to_lowercase()),
        Field::Context
        | Field::Target
        | Field::Kind
        | Field::Intent
        | Field::Subscriptions
        | Field::Task
        | Field::Contract
        | Field::ExitCode
        | Field::Judge
        | Field::JudgeBy
        | Field::Changes
        | Field::Protects
        | Field::Guard
        | Field::When
        | Field::ForEach
        | Field::Gate
        | Field::Locks
        | Field::Workspace
        | Field::Server
        | Field::Tool
        | Field::Plan
        | Field::Folder
        | Field::Approval
        | Field::Arguments
        | Field::Status => false,
    }
}
