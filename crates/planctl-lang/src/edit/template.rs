//! Plans to begin with: embedded ones, and how any plan becomes a new one.

use std::collections::BTreeMap;

use crate::edit::annotate::annotate;
use crate::edit::fix::line_end;
use crate::syntax::source::Source;
use crate::text::{Span, one_line, yaml_text};
use crate::tree::parse::parse;
use crate::tree::workflow::{Library, library_keys};

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

/// The embedded templates, and behind them the plans of the library; the first is the one that is taken where none is named.
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
    Template {
        name: "bugfix_workflow",
        about: "reproduce a bug, isolate, fix, test and verify it (reads BUG.md)",
        text: include_str!("../../../../plans/bugfix_workflow.md"),
    },
    Template {
        name: "git_feature_branch",
        about: "make a change on a branch of its own, and push it (reads CHANGE.md)",
        text: include_str!("../../../../plans/git_feature_branch.md"),
    },
    Template {
        name: "git_merge_pr",
        about: "merge main into a branch, and push it (reads BRANCH.md)",
        text: include_str!("../../../../plans/git_merge_pr.md"),
    },
    Template {
        name: "docker_build_deploy",
        about: "build an image, test it, and run it (reads Dockerfile)",
        text: include_str!("../../../../plans/docker_build_deploy.md"),
    },
    Template {
        name: "file_backup_restore",
        about: "change many files, with a way back (reads MOVE.md)",
        text: include_str!("../../../../plans/file_backup_restore.md"),
    },
    Template {
        name: "api_integration",
        about: "integrate an API (reads API.md)",
        text: include_str!("../../../../plans/api_integration.md"),
    },
    Template {
        name: "codegen_module",
        about: "write a module (reads SPEC.md)",
        text: include_str!("../../../../plans/codegen_module.md"),
    },
    Template {
        name: "refactor_safe",
        about: "restructure code; the checkpoint comes back where tests fail (reads REFACTOR.md)",
        text: include_str!("../../../../plans/refactor_safe.md"),
    },
    Template {
        name: "dependency_update",
        about: "update dependencies; the lock file comes back where tests fail (reads deps.lock)",
        text: include_str!("../../../../plans/dependency_update.md"),
    },
    Template {
        name: "log_investigation",
        about: "find out from logs what went wrong (reads INCIDENT.md)",
        text: include_str!("../../../../plans/log_investigation.md"),
    },
];

/// The keys by which a message finds an entry of a library, and the one that names the entry that a plan was made of.
const OF_ENTRIES: [&str; 4] = ["domains", "triggers", "trigger_threshold", "library"];

/// Returns a plan as a new one: its own title and owner where they are given, status `draft`, no marks of any run.
///
/// Where its place in the library is given, that replaces what it was found by: a plan to run names the entry that it was made
/// of and is found by nobody, and another entry is found by words of its own.
pub fn instantiate(source: &Source, title: Option<&str>, owner: &str, place: Option<&Library>) -> String {
    let source = &match place {
        Some(place) => Source::new(source.path(), placed(source, place)),
        None => source.clone(),
    };
    let fresh = Source::new(source.path(), annotate(source, "draft", &BTreeMap::new()));
    let (tree, _) = parse(&fresh);
    let mut edits: Vec<(Span, String)> = Vec::new();
    if let (Some(title), Some(old)) = (title, &tree.head.title) {
        edits.push((old.span, one_line(title)));
    }
    let owner = yaml_text(owner);
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
    fresh.edited(edits)
}

// The lines of a key are its own and the indented ones below it.
fn placed(source: &Source, place: &Library) -> String {
    let mut lines: Vec<&str> = source.text().split_inclusive('\n').collect();
    let is_end = |line: &&str| matches!(line.trim_end(), "---" | "...");
    let Some(closing) = lines.iter().skip(1).position(is_end).map(|at| at + 1) else {
        return source.text().to_owned();
    };
    let key_of = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
    let mut is_left_out = false;
    let mut head = Vec::new();
    for line in lines.drain(..closing) {
        let goes_on = line.starts_with([' ', '-']) && line.trim_end() != "---";
        if !goes_on {
            let key = key_of(line).unwrap_or_default();
            is_left_out = OF_ENTRIES.contains(&key.as_str());
        }
        if !is_left_out {
            head.push(line);
        }
    }
    let keys = library_keys(place).replace('\n', line_end(source));
    head.concat() + &keys + &lines.concat()
}

/// Returns the file name that a title makes, without its ending: `Fix the login` becomes `fix-the-login`.
pub fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").chars().take(60).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "plan".to_owned() } else { slug.to_owned() }
}
