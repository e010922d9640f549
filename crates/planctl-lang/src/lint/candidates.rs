//! Contracts before any work (`plan verify --probe`): which of them can be tried in a copy, and what trying them showed.

use std::collections::BTreeMap;

use planctl_engine::Contract;

use crate::analysis::Scripts;
use crate::diagnostic::{Code, Diagnostic};
use crate::graph::contract_of;
use crate::text::escape;
use crate::tools::ToolUse;
use crate::tree::workflow::Workflow;

/// A contract that `plan verify --probe` looks at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The step's number.
    pub step: u32,
    /// The step's title.
    pub title: String,
    /// The contract, with the language's default for a time that the plan doesn't say.
    pub contract: Contract,
    /// Says that the plan names the time.
    pub names_timeout: bool,
    /// Why it can't be tried.
    pub obstacle: Option<Obstacle>,
}

/// Why a contract can't be tried in a copy of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// An error among the findings says enough: it is no valid shell, or its command is not there.
    Broken,
    /// It would reach out of the copy, or could do harm; the reason is the end of a sentence.
    Unsafe(String),
}

/// Lists the contracts of a plan in the order of its steps. `found` are the findings about it at their own levels, also those
/// that the plan allows; `places` are paths that the copy stands for: a contract that names one of them would reach the
/// original.
///
/// The marks in the file decide nothing, so every step counts as not done.
pub fn candidates<'d>(
    workflow: &Workflow,
    found: impl IntoIterator<Item = &'d Diagnostic>,
    places: &[String],
) -> Vec<Candidate> {
    let steps = workflow.steps();
    let scripts = Scripts::read(&steps);
    let mut of_steps: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for diagnostic in found {
        if let Some(step) = &diagnostic.step {
            of_steps.entry(&step.number).or_default().push(diagnostic);
        }
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (at, step) in steps.into_iter().enumerate() {
        let (Some(number), Some(_)) = (step.number, &step.contract) else { continue };
        // A number that is used twice is an error of its own.
        if !seen.insert(number) {
            continue;
        }
        let contract = contract_of(step);
        let about = of_steps.get(step.id.value.as_str()).map_or(&[][..], Vec::as_slice);
        let obstacle = obstacle(&contract.command, about, places)
            .or_else(|| outside_path(&scripts, at).map(Obstacle::Unsafe))
            .or_else(|| uses_tool(&contract.command));
        candidates.push(Candidate {
            step: number,
            title: step.step_title().to_owned(),
            contract,
            names_timeout: step.attributes.contract_timeout.value().is_some(),
            obstacle,
        });
    }
    candidates
}

fn uses_tool(command: &str) -> Option<Obstacle> {
    ToolUse::read(command).map(|used| Obstacle::Unsafe(format!("it would use a tool of {}", used.server)))
}

fn obstacle(command: &str, about: &[&Diagnostic], places: &[String]) -> Option<Obstacle> {
    if about.iter().any(|found| found.is_error() && matches!(found.code, Code::P101 | Code::P102)) {
        return Some(Obstacle::Broken);
    }
    if let Some(place) = places.iter().find(|place| names_path(command, place)) {
        let reason = format!("it names `{}`, so it would not stay in the copy", escape(place));
        return Some(Obstacle::Unsafe(reason));
    }
    let harms = [
        (Code::P112, "it writes outside the workspace (P112)"),
        (Code::P602, "it runs a destructive command (P602)"),
    ];
    let harm = harms.iter().find(|(code, _)| about.iter().any(|found| found.code == *code));
    harm.map(|(_, reason)| Obstacle::Unsafe((*reason).to_owned()))
}

/// Says whether a text names a path or something below it: `/work/shop` is not in `/work/shop2`.
fn names_path(text: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return false;
    }
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        let goes_on = |character: Option<char>| {
            character
                .is_some_and(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '.'))
        };
        !goes_on(before) && !goes_on(after)
    })
}

/// Finds a file beside the workspace that the contract names: a copy has no such neighbours.
fn outside_path(scripts: &Scripts, at: usize) -> Option<String> {
    let path = scripts.files(at).iter().map(|file| file.path.as_str()).find(|path| leads_up(path))?;
    Some(format!("it names `{}`, outside the workspace, and a copy has no such neighbour", escape(path)))
}

fn leads_up(path: &str) -> bool {
    let mut depth = 0_i64;
    for part in path.split('/').filter(|_| !path.starts_with('/')) {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_whole_or_not_at_all() {
        for (text, is_named) in [
            ("cd /work/shop && make", true),
            ("test -f '/work/shop/x'", true),
            ("grep x /work/shop", true),
            ("P=/work/shop/", true),
            ("grep x /work/shop2 /a/work/shop.old", false),
            ("grep x /old-/work/shop-2", false),
        ] {
            assert_eq!(names_path(text, "/work/shop"), is_named, "{text}");
        }
        assert!(!names_path("cat /etc/x", "/"));
    }

    #[test]
    fn a_way_up_is_seen_however_it_is_written() {
        for (path, is_up) in [
            ("../x", true),
            ("a/../../x", true),
            ("a/../x", false),
            ("./x", false),
            ("/../x", false),
            ("..", true),
        ] {
            assert_eq!(leads_up(path), is_up, "{path}");
        }
    }
}
