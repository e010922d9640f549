//! The files that steps make and read, over tasks, contracts and subscriptions, and the order that follows from them:
//! P203, P204 and P212.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use super::Scripts;
use super::mentions::{self, Mention, Role};
use super::plainly::Right;
use crate::characters::escape;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::{FileFact, clean, leaves_workspace};
use crate::parse::name_of;
use crate::shell::{FileUse, Use};
use crate::source::{Source, Span};
use crate::tree::{PlanTree, StepTree};
use crate::workflow::Workflow;
use planctl_glob::{Glob, is_glob};

/// What every step does with every file it names.
pub(crate) struct Order {
    by_path: BTreeMap<String, Vec<Part>>,
    /// The last step that is said to make a file.
    last_makers: HashMap<String, usize>,
    by_step: Vec<Named>,
    /// Which steps may come before others, where that is not the order of the text.
    paths: Option<Paths>,
    /// The globs of `**changes:**`, each with the place of its step.
    globs: Vec<(usize, Glob)>,
}

/// The files that a step names.
#[derive(Default)]
struct Named {
    /// Those of its task, then those of its contract, then those of `**changes:**`.
    mentions: Vec<Mention>,
    /// How many are the task's.
    of_task: usize,
}

/// A step that names a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub step: usize,
    pub span: Span,
    pub role: Role,
}

impl Order {
    pub(crate) fn read(source: &Source, tree: &PlanTree, scripts: &Scripts) -> Order {
        let mut order = Order {
            by_path: BTreeMap::new(),
            last_makers: HashMap::new(),
            by_step: Vec::with_capacity(tree.steps.len()),
            paths: None,
            globs: Vec::new(),
        };
        for (at, step) in tree.steps.iter().enumerate() {
            let mut mentions =
                step.task.as_ref().map(|task| mentions::of_task(source, task)).unwrap_or_default();
            let of_task = mentions.len();
            mentions.extend(of_contract(scripts, at, step));
            let given: BTreeSet<&str> = step.subscribed_files().map(|(path, _)| path).collect();
            let declared = mentions.len();
            mentions.extend(of_changes(step));
            order.globs.extend(step.changed_globs().map(|glob| (at, glob)));
            for (place, mention) in mentions.iter_mut().enumerate() {
                // What a step is given to read, it does not make, unless it says so.
                if place < declared && mention.role != Role::Makes && given.contains(mention.path.as_str()) {
                    mention.role = Role::Reads;
                }
                let part = Part { step: at, span: mention.span, role: mention.role };
                if part.role == Role::Makes {
                    order.last_makers.insert(mention.path.clone(), at);
                }
                match order.by_path.get_mut(&mention.path) {
                    Some(parts) => parts.push(part),
                    None => drop(order.by_path.insert(mention.path.clone(), vec![part])),
                }
            }
            order.by_step.push(Named { mentions, of_task });
        }
        order
    }

    /// Returns what the step at this place names in its task and its contract.
    pub(crate) fn of_step(&self, at: usize) -> &[Mention] {
        self.by_step.get(at).map_or(&[], |named| &named.mentions)
    }

    /// Returns what the step at this place names in its task.
    pub(crate) fn of_task(&self, at: usize) -> &[Mention] {
        self.by_step.get(at).map_or(&[], |named| &named.mentions[..named.of_task])
    }

    /// Says whether any step names the path.
    pub(crate) fn names(&self, path: &str) -> bool {
        !self.parts(path).is_empty()
    }

    fn parts(&self, path: &str) -> &[Part] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    /// Has steps come one after the other along a graph, in place of the text.
    pub(crate) fn along(mut self, tree: &PlanTree, workflow: &Workflow) -> Order {
        self.paths = Some(Paths::of(tree, workflow));
        self
    }

    /// Says whether steps come in the order of the text.
    pub(super) fn is_linear(&self) -> bool {
        self.paths.is_none()
    }

    fn before(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let end = if earlier.is_some() { parts.len() } else { parts.partition_point(|part| part.step < at) };
        parts[..end]
            .iter()
            .filter(move |part| earlier.is_none_or(|earlier| part.step != at && has(earlier, part.step)))
    }

    // Parts stand in the order of the steps.
    fn after(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let start = if earlier.is_some() { 0 } else { parts.partition_point(|part| part.step <= at) };
        parts[start..]
            .iter()
            .filter(move |part| earlier.is_none_or(|earlier| part.step != at && !has(earlier, part.step)))
    }

    fn within(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let first = parts.partition_point(|part| part.step < at);
        parts[first..].iter().take_while(move |part| part.step == at)
    }

    /// Says whether a later step is said to make the file.
    fn is_made_later(&self, path: &str, at: usize) -> bool {
        self.last_makers.get(path).is_some_and(|last| *last > at || !self.is_linear())
    }

    /// Returns the files that several steps name, each with those that do.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (&str, &[Part])> {
        let is_shared =
            |parts: &Vec<Part>| parts.first().map(|part| part.step) != parts.last().map(|part| part.step);
        self.by_path
            .iter()
            .filter(move |(_, parts)| is_shared(parts))
            .map(|(path, parts)| (path.as_str(), parts.as_slice()))
    }

    /// Returns the paths that some step may make.
    pub(crate) fn made(&self) -> impl Iterator<Item = &str> {
        let made = self.by_path.iter().filter(|(_, parts)| parts.iter().any(|part| part.role != Role::Reads));
        made.map(|(path, _)| path.as_str())
    }

    /// Says whether a step before this one may make the file; whoever only reads it does not.
    pub(crate) fn is_made_before(&self, path: &str, at: usize) -> bool {
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let is_earlier = |step: usize| earlier.map_or(step < at, |earlier| step != at && has(earlier, step));
        self.before(path, at).any(|part| part.role != Role::Reads)
            || self.globs.iter().any(|(step, glob)| is_earlier(*step) && glob.matches(path))
    }

    /// Says whether the step at this place may make the file.
    pub(crate) fn is_made_within(&self, path: &str, at: usize) -> bool {
        self.within(path, at).any(|part| part.role != Role::Reads)
            || self.globs.iter().any(|(step, glob)| *step == at && glob.matches(path))
    }

    /// Returns an earlier step that reads the file, where none makes it.
    pub(crate) fn read_before(&self, path: &str, at: usize) -> Option<Part> {
        self.before(path, at).next().copied()
    }

    /// Returns the first later step that makes the file, with the best place to show: the contract that asks for it,
    /// else the words of the task.
    pub(crate) fn made_after(&self, path: &str, at: usize) -> Option<Part> {
        let is_clear = |role: Role| matches!(role, Role::Makes | Role::Proves);
        let first = self
            .after(path, at)
            .find(|part| is_clear(part.role))
            .or_else(|| self.after(path, at).find(|part| part.role != Role::Reads))?;
        let rank = |role: Role| match role {
            Role::Proves => 0,
            Role::Makes => 1,
            Role::Changes => 2,
            Role::Judges => 3,
            Role::Names | Role::Reads => 4,
        };
        self.within(path, first.step).min_by_key(|part| rank(part.role)).copied()
    }

    /// Returns the paths whose place in the order can only be judged by knowing whether they are there.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &str> {
        let is_read = |part: &Part| matches!(part.role, Role::Reads | Role::Judges);
        self.by_path
            .iter()
            .filter(move |(_, parts)| parts.len() > 1 && parts.iter().any(is_read))
            .map(|(path, _)| path.as_str())
            .filter(|path| !is_glob(path) && leaves_workspace(path).is_none())
    }
}

/// Which steps may come before each, as far as the edges of a graph tell.
struct Paths {
    /// The nodes with an edge to each node.
    back: Vec<Vec<usize>>,
    /// The node that each step is, and the step that each node is.
    nodes: Vec<Option<usize>>,
    steps: Vec<Option<usize>>,
    /// By step, a bit for every step that may come before it; found when it is first asked.
    before: Vec<OnceLock<Vec<u64>>>,
}

impl Paths {
    fn of(tree: &PlanTree, workflow: &Workflow) -> Paths {
        let places = workflow.places();
        let mut back = vec![Vec::new(); workflow.nodes.len()];
        for (from, ways) in workflow.ways().iter().enumerate() {
            for (to, _) in ways {
                back[*to].push(from);
            }
        }
        let nodes: Vec<Option<usize>> =
            tree.steps.iter().map(|step| places.get(step.number_text().as_str()).copied()).collect();
        let mut steps = vec![None; workflow.nodes.len()];
        for (step, node) in nodes.iter().enumerate() {
            if let Some(node) = node {
                steps[*node] = Some(step);
            }
        }
        Paths { back, before: nodes.iter().map(|_| OnceLock::new()).collect(), nodes, steps }
    }

    fn before(&self, step: usize) -> &[u64] {
        let Some(known) = self.before.get(step) else { return &[] };
        known.get_or_init(|| {
            let mut before = vec![0; self.nodes.len().div_ceil(64)];
            let mut seen = vec![false; self.back.len()];
            let mut open: Vec<usize> = self.nodes[step].into_iter().collect();
            while let Some(at) = open.pop() {
                for from in &self.back[at] {
                    if !std::mem::replace(&mut seen[*from], true) {
                        if let Some(step) = self.steps[*from] {
                            before[step / 64] |= 1 << (step % 64);
                        }
                        open.push(*from);
                    }
                }
            }
            before
        })
    }
}

fn has(steps: &[u64], step: usize) -> bool {
    steps.get(step / 64).is_some_and(|bits| bits >> (step % 64) & 1 == 1)
}

fn of_changes(step: &StepTree) -> impl Iterator<Item = Mention> {
    step.declared_changes()
        .filter(|entry| !is_glob(&entry.value) && leaves_workspace(&entry.value).is_none())
        .map(|entry| Mention {
            path: clean(&entry.value),
            span: entry.span,
            role: Role::Changes,
            right: Right::May,
        })
}

fn of_contract(scripts: &Scripts, at: usize, step: &StepTree) -> Vec<Mention> {
    let Some(contract) = &step.contract else { return Vec::new() };
    let mention = |file: &FileUse| {
        let role = match file.how {
            Use::Writes => Role::Makes,
            Use::Tests => Role::Proves,
            Use::Reads if file.is_certain => Role::Judges,
            Use::Reads => Role::Names,
            Use::TestsAbsence => return None,
        };
        let path = file.path.trim_end_matches('/').to_owned();
        Some(Mention { path, span: contract.in_plan(file.span), role, right: Right::Reads })
    };
    scripts.files(at).iter().filter_map(mention).collect()
}

/// What the findings about order need.
pub(super) struct Ordering<'a, 'b> {
    pub lint: &'a super::Lint<'b>,
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
        let steps = &self.lint.tree.steps;
        let (reader, maker) = (&steps[at], &steps[part.step]);
        let (number, later, title) = (reader.number_text(), maker.number_text(), escape(&maker.title.value));
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
                "lead the way from step {later} to step {number}, or let {number} do without the file"
            )));
            return true;
        }
        let next = steps.get(part.step + 1).map_or_else(
            || format!("a new step after step {later}"),
            |next| format!("step {} or later", next.number_text()),
        );
        early = early
            .help(format!("move the subscription to {next}, or renumber so that \"{title}\" comes first"));
        if let Some(edits) = self.reordered(at, part.step) {
            early = edits.into_iter().fold(early, |early, (span, text)| early.fix(span, text, false));
        }
        found.push(early);
        true
    }

    /// P212: the task reads, or the contract looks into, a file that is not there and that only a later step makes.
    pub(super) fn foreseen(&self, at: usize, found: &mut Vec<Diagnostic>) {
        let step = &self.lint.tree.steps[at];
        let subscribed: BTreeSet<&str> = step.subscribed_files().map(|(path, _)| path).collect();
        let mut seen = BTreeSet::new();
        for mention in self.order.of_step(at) {
            let is_read = matches!(mention.role, Role::Reads | Role::Judges);
            let path = mention.path.as_str();
            // What no later step makes can't come too early: that rules out most files of most plans.
            if !is_read || !self.order.is_made_later(path, at) || subscribed.contains(path) {
                continue;
            }
            let is_missing = self.lint.facts.files.get(path) == Some(&FileFact::Missing);
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

    fn too_early_mention(&self, step: &StepTree, mention: &Mention, part: Part) -> Diagnostic {
        let maker = &self.lint.tree.steps[part.step];
        let (number, later) = (step.number_text(), maker.number_text());
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
            .at(part.span, format!("made here (step {later} \"{}\")", escape(&maker.title.value)))
            .help(help)
    }

    // Moves the step that makes before the one that reads, where nothing else is touched by that.
    fn reordered(&self, at: usize, maker: usize) -> Option<Vec<(Span, String)>> {
        let steps = self.lint.tree.steps.get(at..=maker).filter(|steps| steps.len() <= MOVED_STEPS_MAX)?;
        let first = steps.first()?.fixed_number()?;
        let is_counted = steps.iter().zip(first..).all(|(step, number)| step.fixed_number() == Some(number));
        let tells_order = |step: &StepTree| {
            let text = step.task.as_ref().map_or(String::new(), |task| task.value.to_lowercase());
            ["step ", "previous", "above", "earlier", "later"].iter().any(|word| text.contains(word))
        };
        if !is_counted || steps.iter().any(tells_order) || !self.is_independent(at, maker) {
            return None;
        }
        let source = self.lint.source;
        let newline = if source.text().contains("\r\n") { "\r\n" } else { "\n" };
        let moved = steps.last()?;
        let start = moved.heading.start;
        let body = source.slice(Span::new(start, moved.end)).trim_end();
        let number = Span::new(moved.number.span.start - start, moved.number.span.end - start);
        let (head, tail) = (body.get(..number.start)?, body.get(number.end..)?);
        let mut edits =
            vec![(Span::at(steps.first()?.heading.start), format!("{head}{first}{tail}{newline}{newline}"))];
        for (step, number) in steps[..steps.len() - 1].iter().zip(first + 1..) {
            edits.push((step.number.span, number.to_string()));
        }
        let gap = source.text()[..start].trim_end().len();
        edits.push((Span::new(gap, start + body.len()), String::new()));
        Some(edits)
    }

    // Says whether a step uses nothing that the steps from `at` up to it make.
    fn is_independent(&self, at: usize, maker: usize) -> bool {
        let subscribed = self.lint.tree.steps[maker].subscribed_files().map(|(path, _)| path);
        let named = self.order.of_step(maker).iter().map(|mention| mention.path.as_str());
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
    pub(super) fn read(lint: &super::Lint<'_>, order: &Order) -> Circles {
        let mut needs: BTreeMap<usize, Vec<Need>> = BTreeMap::new();
        for (at, step) in lint.tree.steps.iter().enumerate() {
            for (path, span) in step.subscribed_files() {
                if lint.facts.files.get(path) != Some(&FileFact::Missing) {
                    continue;
                }
                let Some(made) = only_maker(order, path).filter(|made| made.step != at) else { continue };
                let need = Need { maker: made.step, path: path.to_owned(), span, made: made.span };
                needs.entry(at).or_default().push(need);
            }
        }
        let mut circles = Circles { rings: Vec::new(), held: BTreeSet::new() };
        let mut in_ring = BTreeSet::new();
        for start in held(&needs) {
            if !in_ring.contains(&start)
                && let Some(ring) = ring_from(start, &needs)
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
    pub(super) fn report(&self, lint: &super::Lint<'_>, found: &mut Vec<Diagnostic>) {
        for ring in &self.rings {
            let name = |at: usize| lint.tree.steps[at].number_text();
            let shown = ring.iter().take(RING_SHOWN_MAX);
            let mut way: Vec<String> = shown.clone().map(|(reader, _)| name(*reader)).collect();
            if ring.len() > RING_SHOWN_MAX {
                way.push("…".to_owned());
            }
            way.extend(ring.first().map(|(reader, _)| name(*reader)));
            let message = format!("steps depend on each other in a circle: {}", way.join(" → "));
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
            let first = ring.first().and_then(|(reader, _)| lint.tree.steps.get(*reader));
            let circle = circle.help(help);
            found.push(match first {
                Some(step) => circle.step(name_of(step)),
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

// Returns the steps that wait, directly or not, for a circle: what is left when every step that waits for nothing is
// taken away, again and again.
fn held(needs: &BTreeMap<usize, Vec<Need>>) -> Vec<usize> {
    let mut waits: BTreeMap<usize, usize> = needs.iter().map(|(step, needs)| (*step, needs.len())).collect();
    let mut readers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (reader, needs) in needs {
        for need in needs {
            readers.entry(need.maker).or_default().push(*reader);
        }
    }
    let mut free: Vec<usize> = readers.keys().copied().filter(|step| !needs.contains_key(step)).collect();
    while let Some(step) = free.pop() {
        for reader in readers.get(&step).into_iter().flatten() {
            let Some(left) = waits.get_mut(reader) else { continue };
            *left -= 1;
            if *left == 0 {
                waits.remove(reader);
                free.push(*reader);
            }
        }
    }
    waits.into_keys().collect()
}

// Returns the way from a step back to itself: each reader with what it needs.
fn ring_from(start: usize, needs: &BTreeMap<usize, Vec<Need>>) -> Option<Vec<(usize, Need)>> {
    let mut came: BTreeMap<usize, (usize, &Need)> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for need in needs.get(&at).into_iter().flatten() {
            if came.contains_key(&need.maker) {
                continue;
            }
            came.insert(need.maker, (at, need));
            open.push(need.maker);
        }
    }
    let mut ring = Vec::new();
    let mut at = start;
    loop {
        let (reader, need) = came.get(&at)?;
        ring.push((*reader, (*need).clone()));
        at = *reader;
        if at == start {
            ring.reverse();
            return Some(ring);
        }
    }
}
