//! The needs of a plan's steps, by `**needs:**` or by the order of the text: numbers that no step has, and circles.

use std::collections::{BTreeMap, BTreeSet};

use super::walks::left_waiting;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, Spanned, escape};
use crate::tree::{PlanTree, StepTree, template_key, template_range};

/// The most needs of one step that count.
const NEEDS_MAX: usize = 100;
/// The most circles that are reported.
const CIRCLES_MAX: usize = 20;
/// The most steps of a circle that are shown.
const SHOWN_MAX: usize = 8;

/// Refuses a template of steps that `**needs:**` names and no heading has.
pub(crate) fn unknown_template(template: &Spanned<String>) -> Diagnostic {
    let message =
        format!("`**needs:**` names `{}`, which is not the number of a step", escape(&template.value));
    let help = "write `**needs:** 1, 2`, `none`, or a template as its heading has it: `2–N`";
    Diagnostic::new(Code::P015, message).at(template.span, "").help(help)
}

/// Returns, for each of some steps of a plan, the numbers that it needs: nothing where it says nothing, and neither
/// numbers that no step has nor those that would close a circle, which are reported.
///
/// `leaves` says of a step that the order of the text does not lead on from it.
pub(super) fn sound_needs(
    tree: &PlanTree,
    steps: &[&StepTree],
    leaves: impl Fn(&StepTree) -> bool,
    found: &mut Vec<Diagnostic>,
) -> Vec<Option<Vec<u32>>> {
    let known = KnownSteps::of(tree);
    let mut needs: Vec<Option<Vec<u32>>> = steps.iter().map(|step| known.needs(step, found)).collect();
    // Numbers are compared with places, so a plan with steps of one number is left to the finding that says so.
    let places: BTreeMap<u32, usize> =
        steps.iter().enumerate().filter_map(|(at, step)| Some((step.node.number?, at))).collect();
    let before = |needs: &[Option<Vec<u32>>], at: usize| -> Vec<usize> {
        match &needs[at] {
            Some(numbers) => numbers.iter().filter_map(|number| places.get(number).copied()).collect(),
            None if at > 0 && !leaves(steps[at - 1]) => vec![at - 1],
            None => Vec::new(),
        }
    };
    for count in 0.. {
        let waits: Vec<Vec<usize>> = (0..steps.len()).map(|at| before(&needs, at)).collect();
        let Some(ring) = find_cycle(&waits) else { break };
        // An edge that leads back closes the circle, and without it the rest can be judged.
        let cut: BTreeSet<usize> = if count < CIRCLES_MAX {
            found.push(cycle_finding(steps, &needs, &ring));
            ring.into_iter().collect()
        } else {
            (0..steps.len()).collect()
        };
        for at in cut {
            if let Some(numbers) = &mut needs[at] {
                numbers.retain(|number| places.get(number).is_none_or(|place| *place < at));
            }
        }
    }
    needs
}

/// The steps that can be needed.
struct KnownSteps {
    numbers: BTreeSet<u32>,
    templates: BTreeSet<String>,
    /// From which number on steps may be those of a template.
    open: Option<u32>,
}

impl KnownSteps {
    fn of(tree: &PlanTree) -> KnownSteps {
        let mut known = KnownSteps { numbers: BTreeSet::new(), templates: BTreeSet::new(), open: None };
        for step in &tree.steps {
            let text = &step.node.id.value;
            match step.node.number {
                Some(number) => drop(known.numbers.insert(number)),
                None => {
                    known.templates.insert(template_key(text));
                    let first = template_range(text).map(|(first, _)| first);
                    known.open = known.open.into_iter().chain(first).min();
                }
            }
        }
        known
    }

    fn needs(&self, step: &StepTree, found: &mut Vec<Diagnostic>) -> Option<Vec<u32>> {
        let said = step.needs()?;
        let unknown = step
            .needed_templates
            .iter()
            .filter(|needed| !self.templates.contains(&template_key(&needed.value)));
        found.extend(unknown.map(|needed| unknown_template(needed).step(step.node.step_name())));
        let mut needs: Vec<u32> = Vec::new();
        let numbers: BTreeSet<u32> = said.value.into_iter().collect();
        for number in numbers.into_iter().take(NEEDS_MAX) {
            if self.numbers.contains(&number) {
                needs.push(number);
            } else if self.open.is_none_or(|first| number < first) {
                let name = &step.node.id.value;
                let message = format!("step {name} needs step {number}, which is not there");
                let missing = Diagnostic::new(Code::P304, message).at(said.span, "");
                let missing = missing.step(step.node.step_name());
                found.push(missing.help("mend the number, or delete it"));
            }
        }
        Some(needs)
    }
}

/// Returns steps that wait for one another in a circle, each before the one that it waits for.
pub(crate) fn find_cycle(waits: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (at, others) in waits.iter().enumerate() {
        others.iter().for_each(|other| waiting[*other].push(at));
    }
    let left = left_waiting(&waiting);
    // Each that is left waits for another that is left, so a walk among them comes round.
    let mut walk = vec![left.iter().position(|left| *left)?];
    loop {
        let last = *walk.last()?;
        let next = waits[last].iter().copied().find(|next| left[*next])?;
        if let Some(begin) = walk.iter().position(|at| *at == next) {
            let mut ring = walk.split_off(begin);
            let first = ring.iter().enumerate().min_by_key(|(_, at)| **at).map_or(0, |(place, _)| place);
            ring.rotate_left(first);
            return Some(ring);
        }
        walk.push(next);
    }
}

fn cycle_finding(steps: &[&StepTree], needs: &[Option<Vec<u32>>], ring: &[usize]) -> Diagnostic {
    let name = |at: usize| steps[at].node.id.value.clone();
    let shown = &ring[..ring.len().min(SHOWN_MAX)];
    let mut cycle: Vec<String> = shown.iter().map(|at| name(*at)).collect();
    if ring.len() > SHOWN_MAX {
        cycle.push("…".to_owned());
    }
    cycle.push(name(ring[0]));
    let message = format!("steps depend on each other in a circle: {}", cycle.join(" → "));
    let mut circle = Diagnostic::new(Code::P204, message).step(steps[ring[0]].node.step_name());
    let mut follows = None;
    for (place, at) in shown.iter().enumerate() {
        let other = name(ring[(place + 1) % ring.len()]);
        let step = name(*at);
        let (span, label): (Span, String) = match (&needs[*at], steps[*at].node.attributes.needs.raw()) {
            (Some(_), Some(needs)) if ring.len() == 1 => (needs.span, format!("step {step} needs itself")),
            (Some(_), Some(needs)) => (needs.span, format!("step {step} needs step {other}")),
            _ => {
                follows = Some(step.clone());
                (
                    steps[*at].node.id.span,
                    format!("step {step} says no `**needs:**`, so it follows step {other}"),
                )
            }
        };
        circle = circle.at(span, label);
    }
    circle.help(match follows {
        Some(step) => format!(
            "none of these steps could begin: delete one of the needs, or say `**needs:**` at step {step}, too"
        ),
        None => "none of these steps could begin: delete one of the needs".to_owned(),
    })
}
