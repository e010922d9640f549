//! Finds what each way on which a script ends as expected has in common: the pipelines that must succeed, and those that
//! must fail.

use super::masked::looks_at;
use super::status::{End, Judge};
use super::{Command, CompoundKind, Item, Pipeline, Script};

/// The most pipelines of a script that are asked about.
const NEEDS_MAX: usize = 40;

/// A pipeline whose end every good way through its script needs.
pub(crate) struct Need<'a> {
    pub pipeline: &'a Pipeline,
    /// Whether its commands must succeed; a `!` before them is taken off.
    pub succeeds: bool,
}

/// Returns what a script needs so that it ends with a status.
pub(crate) fn needed(script: &Script, expected: u8) -> Vec<Need<'_>> {
    let mut judge = Judge::of(script);
    if judge.is_trapped(script) {
        return Vec::new();
    }
    let mut pipelines = Vec::new();
    of_list(script, &mut pipelines);
    let need = |pipeline| {
        let mut may_end = |end| judge.may_end(script, pipeline, end, expected);
        let (passes, fails) = (may_end(End::Known(0)), may_end(End::Failing));
        (passes != fails).then_some(Need { pipeline, succeeds: passes })
    };
    pipelines.into_iter().take(NEEDS_MAX).filter_map(need).collect()
}

// A loop may have no round, and a function no call.
fn of_list<'a>(script: &'a Script, found: &mut Vec<&'a Pipeline>) {
    for item in script.items.iter().filter(|item| !item.is_background) {
        // One that asks for the status of another needs what that needs, and a group what is in it.
        for pipeline in pipelines_of_item(item).filter(|pipeline| !looks_at(pipeline)) {
            let [Command::Compound(compound)] = pipeline.commands.as_slice() else {
                found.push(pipeline);
                continue;
            };
            let is_group = matches!(compound.kind, CompoundKind::Group | CompoundKind::Subshell);
            if !is_group {
                found.push(pipeline);
            }
            if is_group || compound.kind == CompoundKind::If {
                compound.conditions.iter().chain(&compound.bodies).for_each(|list| of_list(list, found));
            }
        }
    }
}

fn pipelines_of_item(item: &Item) -> impl Iterator<Item = &Pipeline> {
    std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next))
}
