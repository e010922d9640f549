//! Finds runs of tests, and of scripts, by a name that none may have: no test is run then, and nothing failed.

use std::collections::BTreeSet;

use super::masked::is_search;
use super::packages::{PackageCall, Packages};
use super::{Reading, Script, Simple, Trait, Word, all_commands, calls, each_simple, read};
use crate::text::Span;

/// Looks up the text of a script of `package.json` by its name.
pub(crate) type PackageScripts<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the places of such runs: `cargo test adds`, where nothing is searched for a test, or in what is said of it.
pub(super) fn unselected(script: &Script, package: PackageScripts<'_>) -> Vec<Span> {
    let (mut found, mut is_looked_at) = (Vec::new(), false);
    each_simple(script, &mut |simple| {
        is_looked_at |= is_search(simple);
        let is_kept = simple.redirects.iter().any(|redirect| redirect.writes && !redirect.is_document);
        if !is_kept && selects(simple, package, &mut BTreeSet::new()) {
            found.push(simple.span);
        }
    });
    found.retain(|_| !is_looked_at);
    found
}

/// Says whether it takes a `package.json` to know what a script runs.
pub(crate) fn asks_package(script: &Script) -> bool {
    let mut asks = false;
    each_simple(script, &mut |simple| {
        asks |= all_commands(&simple.words).into_iter().any(|words| package_script(words).is_some())
    });
    asks
}

// A script of the package that was looked at is not looked at again: scripts may start one another, and themselves.
fn selects(simple: &Simple, package: PackageScripts<'_>, looked_at: &mut BTreeSet<String>) -> bool {
    if calls(simple).any(|call| call.does(Trait::Selects)) {
        return true;
    }
    let mut by_script = |words| {
        let (name, more) = package_script(words)?;
        if !looked_at.insert(name.to_owned()) {
            return None;
        }
        let Reading::Read(script) = read(&format!("{} {more}", package(name)?)) else { return None };
        let mut is_it = false;
        each_simple(&script, &mut |simple| is_it |= selects(simple, package, looked_at));
        Some(is_it)
    };
    all_commands(&simple.words).into_iter().any(|words| by_script(words) == Some(true))
}

// `npm test -- -t adds`, `yarn lint --quiet`: the script's name, and the words that it is given. Where another `package.json`
// counts, nothing is known of it.
fn package_script(words: &[Word]) -> Option<(&str, String)> {
    let call = PackageCall::read(words)?;
    if call.packages == Packages::Below || !call.folders.is_empty() {
        return None;
    }
    let given: Vec<&str> = call.given.iter().map(|word| word.raw.as_str()).collect();
    Some((call.script?, given.join(" ")))
}
