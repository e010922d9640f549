//! Findings about the order in which steps make and read files: P203, P204 and P212.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::mentions::{Mention, Role};
use crate::analysis::order::{Order, Part};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::FileFact;
use crate::text::{Span, escape};
use crate::tree::workflow::{NodeTree, left_waiting};

/// The inputs of the findings about order.
pub(super) struct Ordering<'a, 'b> {
    pub context: &'a super::Context<'b>,
    pub order: &'a Order,
    pub circles: Circles,
}

impl Ordering<'_, '_> {
    /// P203: a missing file that only a later step makes; says whether that is so.
    pub(super) fn is_too_early(
        &self,
        at: usize,
        path: &str,
        span: Span,
        found: &mut Vec<Diagnostic>,
    ) -> bool {
        if self.circles.holds(at, path) {
            return true;
        }
        let Some(part) = self.order.made_after(path, at) else { return false };
        let steps = &self.context.steps;
        if self.is_input(path, part.step) {
            return false;
        }
        let (reader, maker) = (&steps[at], &steps[part.step]);
        let (number, later, title) = (&reader.id.value, &maker.id.value, escape(maker.step_title()));
        let message = format!("step {number} reads a file that only step {later} produces");
        let early = Diagnostic::new(Code::P203, message);
        // An earlier step that names the file may make it: only its words say that it reads it.
        let early = match self.order.read_before(path, at) {
            Some(_) => early.level(Severity::Warning),
            None => early,
        };
        let mut early = early
            .at(span, "needed here, before it exists")
            .at(part.span, format!("first produced here (step {later} \"{title}\")"));
        if !self.order.is_linear() {
            found.push(early.help(format!(
                "lead the path from step {later} to step {number}, or let {number} do without the file"
            )));
            return true;
        }
        let next = steps.get(part.step + 1).map_or_else(
            || format!("a new step after step {later}"),
            |next| format!("step {} or later", next.id.value),
        );
        early = early
            .help(format!("move the subscription to {next}, or renumber so that \"{title}\" comes first"));
        if let Some(edits) = self.reordered(at, part.step) {
            early = edits.into_iter().fold(early, |early, (span, text)| early.fix(span, text, false));
        }
        found.push(early);
        true
    }

    /// Says whether a step is given a file when it begins, so that others make it, even where the words of its task seem to.
    pub(super) fn is_input(&self, path: &str, step: usize) -> bool {
        self.context.steps[step].subscribed_files().any(|(subscribed, _)| subscribed == path)
    }

    /// P212: the task reads, or the contract looks into, a file that is not there and that only a later step makes.
    pub(super) fn foreseen(&self, at: usize, found: &mut Vec<Diagnostic>) {
        let step = &self.context.steps[at];
        let subscribed: BTreeSet<&str> = step.subscribed_files().map(|(path, _)| path).collect();
        let mut seen = BTreeSet::new();
        for mention in self.order.mentions_in_step(at) {
            let is_read = matches!(mention.role, Role::Reads | Role::Judges);
            let path = mention.path.as_str();
            // A file that no later step makes can't come too early: that rules out most files of most plans.
            if !is_read || !self.order.is_made_later(path, at) || subscribed.contains(path) {
                continue;
            }
            let is_missing = self.context.facts.files.get(path) == Some(&FileFact::Missing);
            if !is_missing || !seen.insert(path) {
                continue;
            }
            let is_own = |part: &Part| !matches!(part.role, Role::Reads | Role::Judges);
            if self.order.is_made_before(path, at) || self.order.within(path, at).any(is_own) {
                continue;
            }
            let Some(part) = self.order.made_after(path, at) else { continue };
            found.push(self.too_early_mention(step, mention, part));
        }
    }

    fn too_early_mention(&self, step: &NodeTree, mention: &Mention, part: Part) -> Diagnostic {
        let maker = &self.context.steps[part.step];
        let (number, later) = (&step.id.value, &maker.id.value);
        let (what, help) = if mention.role == Role::Judges {
            (
                "contract looks at",
                format!("let step {number} make the file, or move this check to step {later}"),
            )
        } else {
            (
                "task reads",
                format!("move step {later} before step {number}, or say that step {number} makes the file"),
            )
        };
        let message =
            format!("step {number}'s {what} `{}`, which only step {later} makes", escape(&mention.path));
        Diagnostic::new(Code::P212, message)
            .at(mention.span, "not there yet")
            .at(part.span, format!("made here (step {later} \"{}\")", escape(maker.step_title())))
            .help(help)
    }

    // Moves the step that makes before the one that reads, where nothing else is touched by that.
    fn reordered(&self, at: usize, maker: usize) -> Option<Vec<(Span, String)>> {
        let steps = self.context.steps.get(at..=maker).filter(|steps| steps.len() <= MOVED_STEPS_MAX)?;
        let first = steps.first()?.number?;
        let is_counted = steps.iter().zip(first..).all(|(step, number)| step.number == Some(number));
        let tells_order = |step: &&NodeTree| {
            let text = step.task.as_ref().map_or(String::new(), |task| task.value.to_lowercase());
            ["step ", "previous", "above", "earlier", "later"].iter().any(|word| text.contains(word))
        };
        if !is_counted || steps.iter().any(tells_order) || !self.is_independent(at, maker) {
            return None;
        }
        let source = self.context.source;
        let newline = if source.text().contains("\r\n") { "\r\n" } else { "\n" };
        let moved = steps.last()?;
        let start = moved.span.start;
        let body = source.slice(Span::new(start, moved.span.end)).trim_end();
        let number = Span::new(moved.id.span.start - start, moved.id.span.end - start);
        let (head, tail) = (body.get(..number.start)?, body.get(number.end..)?);
        let mut edits =
            vec![(Span::at(steps.first()?.span.start), format!("{head}{first}{tail}{newline}{newline}"))];
        for (step, number) in steps[..steps.len() - 1].iter().zip(first + 1..) {
            edits.push((step.id.span, number.to_string()));
        }
        let gap = source.text()[..start].trim_end().len();
        edits.push((Span::new(gap, start + body.len()), String::new()));
        Some(edits)
    }

    // Says whether a step uses nothing that the steps from `at` up to it make.
    fn is_independent(&self, at: usize, maker: usize) -> bool {
        let subscribed = self.context.steps[maker].subscribed_files().map(|(path, _)| path);
        let named = self.order.mentions_in_step(maker).iter().map(|mention| mention.path.as_str());
        subscribed.chain(named).all(|path| {
            let parts = self.order.parts(path);
            let first = parts.partition_point(|part| part.step < at);
            !parts[first..].iter().take_while(|part| part.step < maker).any(|part| part.role != Role::Reads)
        })
    }
}

/// The most steps that a proposed order renumbers.
const MOVED_STEPS_MAX: usize = 20;

/// A step that needs a file of another: that one, the path, where it is needed, and where it is made.
#[derive(Clone, Debug)]
struct Need {
    maker: usize,
    path: String,
    span: Span,
    made: Span,
}

/// Steps that wait for one another.
pub(super) struct Circles {
    rings: Vec<Vec<(usize, Need)>>,
    held: BTreeSet<(usize, String)>,
}

impl Circles {
    // Edges lead from a step that subscribes to a missing file to the only step that makes it.
    pub(super) fn read(context: &super::Context<'_>, order: &Order) -> Circles {
        let mut needs: BTreeMap<usize, Vec<Need>> = BTreeMap::new();
        for (at, step) in context.each_step() {
            for (path, span) in step.subscribed_files() {
                if context.facts.files.get(path) != Some(&FileFact::Missing) {
                    continue;
                }
                let Some(made) = only_maker(order, path).filter(|made| made.step != at) else { continue };
                let need = Need { maker: made.step, path: path.to_owned(), span, made: made.span };
                needs.entry(at).or_default().push(need);
            }
        }
        let mut circles = Circles { rings: Vec::new(), held: BTreeSet::new() };
        let mut in_ring = BTreeSet::new();
        for start in blocked_steps(&needs, context.steps.len()) {
            if !in_ring.contains(&start)
                && let Some(ring) = cycle_from(start, &needs)
            {
                in_ring.extend(ring.iter().map(|(reader, _)| *reader));
                circles.held.extend(ring.iter().map(|(reader, need)| (*reader, need.path.clone())));
                circles.rings.push(ring);
            }
        }
        circles
    }

    fn holds(&self, step: usize, path: &str) -> bool {
        !self.held.is_empty() && self.held.contains(&(step, path.to_owned()))
    }

    /// P204: each circle once, with what is needed and made along it.
    pub(super) fn report(&self, context: &super::Context<'_>, found: &mut Vec<Diagnostic>) {
        for ring in &self.rings {
            let name = |at: usize| context.steps[at].id.value.clone();
            let shown = ring.iter().take(RING_SHOWN_MAX);
            let mut cycle: Vec<String> = shown.clone().map(|(reader, _)| name(*reader)).collect();
            if ring.len() > RING_SHOWN_MAX {
                cycle.push("…".to_owned());
            }
            cycle.extend(ring.first().map(|(reader, _)| name(*reader)));
            let message = format!("steps depend on each other in a circle: {}", cycle.join(" → "));
            let mut circle = Diagnostic::new(Code::P204, message);
            for (reader, need) in shown.clone() {
                let path = escape(&need.path);
                circle = circle.at(need.span, format!("step {} reads `{path}`", name(*reader)));
            }
            for (_, need) in shown {
                circle =
                    circle.at(need.made, format!("step {} makes `{}`", name(need.maker), escape(&need.path)));
            }
            let help = "no order of the steps can work: let one of them do without the other's file, or split it in two";
            let first = ring.first().and_then(|(reader, _)| context.steps.get(*reader));
            let circle = circle.help(help);
            found.push(match first {
                Some(step) => circle.step(step.step_name()),
                None => circle,
            });
        }
    }
}

/// The most steps of a circle that are shown.
const RING_SHOWN_MAX: usize = 8;

// The one step that makes a file.
fn only_maker(order: &Order, path: &str) -> Option<Part> {
    let mut makers = order.parts(path).iter().filter(|part| part.role != Role::Reads);
    let first = makers.next()?;
    makers.all(|part| part.step == first.step).then_some(())?;
    let own = order.within(path, first.step).filter(|part| part.role != Role::Reads);
    own.min_by_key(|part| u8::from(part.role != Role::Proves)).copied()
}

// Returns the steps that wait, directly or not, for a circle.
fn blocked_steps(needs: &BTreeMap<usize, Vec<Need>>, count: usize) -> Vec<usize> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (reader, needs) in needs {
        needs.iter().for_each(|need| readers[need.maker].push(*reader));
    }
    let left = left_waiting(&readers);
    (0..count).filter(|at| left[*at]).collect()
}

// Returns the path from a step back to itself: each reader with what it needs.
fn cycle_from(start: usize, needs: &BTreeMap<usize, Vec<Need>>) -> Option<Vec<(usize, Need)>> {
    let mut reached_from: BTreeMap<usize, (usize, &Need)> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for need in needs.get(&at).into_iter().flatten() {
            if reached_from.contains_key(&need.maker) {
                continue;
            }
            reached_from.insert(need.maker, (at, need));
            open.push(need.maker);
        }
    }
    let mut ring = Vec::new();
    let mut at = start;
    loop {
        let (reader, need) = reached_from.get(&at)?;
        ring.push((*reader, (*need).clone()));
        at = *reader;
        if at == start {
            ring.reverse();
            return Some(ring);
        }
    }
}
