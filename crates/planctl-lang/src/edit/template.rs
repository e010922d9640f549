//! Plans to begin with: embedded ones, and how any plan becomes a new one.

use std::collections::BTreeMap;

use crate::edit::annotate::annotate;
use crate::edit::fix::line_end;
use crate::syntax::source::Source;
use crate::text::Span;
use crate::tree::parse::parse;

/// A plan to begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    /// Its name, as `--from` takes it.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// The plan.
    pub text: &'static str,
}

/// The embedded templates; the first is the one that is taken where none is named.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "hello",
        about: "one step that can be run as it stands",
        text: include_str!("../../templates/hello.md"),
    },
    Template {
        name: "bugfix",
        about: "reproduce, fix, review",
        text: include_str!("../../templates/bugfix.md"),
    },
    Template {
        name: "refactor",
        about: "keep what works working while its form changes",
        text: include_str!("../../templates/refactor.md"),
    },
    Template {
        name: "review",
        about: "read a change, write what is found",
        text: include_str!("../../templates/review.md"),
    },
];

/// Returns a plan as a new one: its own title and owner where they are given, status `draft`, no marks of any run.
pub fn instantiate(source: &Source, title: Option<&str>, owner: &str) -> String {
    let fresh = Source::new(source.path(), annotate(source, "draft", &BTreeMap::new()));
    let (tree, _) = parse(&fresh);
    let mut edits: Vec<(Span, String)> = Vec::new();
    if let (Some(title), Some(old)) = (title, &tree.title) {
        edits.push((old.span, one_line(title)));
    }
    let owner = yaml_text(&one_line(owner));
    match (&tree.frontmatter.owner, tree.frontmatter.span) {
        (Some(old), _) if !old.span.is_empty() => edits.push((old.span, owner)),
        (None, Some(span)) => {
            let at = fresh.whole_line(span.start).end;
            edits.push((Span::at(at), format!("owner: {owner}{}", line_end(&fresh))));
        }
        (Some(_) | None, _) => {}
    }
    let statuses = tree.steps.iter().filter_map(|step| step.status.as_ref());
    edits.extend(statuses.map(|status| (fresh.whole_line(status.span.start), String::new())));
    edits.sort();
    let mut text = String::new();
    let mut at = 0;
    for (span, replacement) in edits {
        text.push_str(&fresh.text()[at..span.start]);
        text.push_str(&replacement);
        at = span.end;
    }
    text.push_str(&fresh.text()[at..]);
    text
}

/// Returns the file name that a title makes, without its ending: `Fix the login` becomes `fix-the-login`.
pub fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").chars().take(60).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "plan".to_owned() } else { slug.to_owned() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

// Text that YAML would take for something else is quoted.
fn yaml_text(text: &str) -> String {
    let is_plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '@'));
    if is_plain {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
