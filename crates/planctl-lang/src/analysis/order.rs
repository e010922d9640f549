//! The files that steps make and read, over tasks, contracts and subscriptions, and the order that follows from them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use super::Scripts;
use super::mentions::{self, Mention, Role};
use super::plainly::Right;
use crate::syntax::shell::{FileUse, Use};
use crate::syntax::source::Source;
use crate::text::Span;
use crate::text::paths::{clean, leaves_workspace};
use crate::tree::workflow::{NodeTree, Workflow, nodes_before, reached};
use planctl_glob::{Glob, is_glob};

/// For every file that the plan names, the steps that read it and the steps that make it.
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
    pub(crate) fn read(source: &Source, steps: &[&NodeTree], scripts: &Scripts) -> Order {
        let mut order = Order {
            by_path: BTreeMap::new(),
            last_makers: HashMap::new(),
            by_step: Vec::with_capacity(steps.len()),
            paths: None,
            globs: Vec::new(),
        };
        for (at, step) in steps.iter().enumerate() {
            let mut mentions =
                step.task.as_ref().map(|task| mentions::mentions_in_task(source, task)).unwrap_or_default();
            let of_task = mentions.len();
            mentions.extend(of_contract(scripts, at, step));
            let given: BTreeSet<&str> = step.subscribed_files().map(|(path, _)| path).collect();
            let declared = mentions.len();
            mentions.extend(of_changes(step));
            order.globs.extend(step.changed_globs().map(|glob| (at, glob)));
            for (place, mention) in mentions.iter_mut().enumerate() {
                // A step does not make a file that it is given to read, unless it says so.
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
    pub(crate) fn mentions_in_step(&self, at: usize) -> &[Mention] {
        self.by_step.get(at).map_or(&[], |named| &named.mentions)
    }

    /// Returns what the step at this place names in its task.
    pub(crate) fn mentions_in_task(&self, at: usize) -> &[Mention] {
        self.by_step.get(at).map_or(&[], |named| &named.mentions[..named.of_task])
    }

    /// Says whether any step names the path.
    pub(crate) fn names(&self, path: &str) -> bool {
        !self.parts(path).is_empty()
    }

    pub(crate) fn parts(&self, path: &str) -> &[Part] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    /// Has steps come one after the other along a graph, in place of the text.
    pub(crate) fn ordered_by_graph(mut self, steps: &[&NodeTree], workflow: &Workflow) -> Order {
        self.paths = Some(Paths::of(steps, workflow));
        self
    }

    /// Says whether steps come in the order of the text.
    pub(crate) fn is_linear(&self) -> bool {
        self.paths.is_none()
    }

    fn before(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let end = if earlier.is_some() { parts.len() } else { parts.partition_point(|part| part.step < at) };
        parts[..end].iter().filter(move |part| {
            earlier.is_none_or(|earlier| part.step != at && contains_step(earlier, part.step))
        })
    }

    // Parts stand in the order of the steps.
    fn after(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let start = if earlier.is_some() { 0 } else { parts.partition_point(|part| part.step <= at) };
        parts[start..].iter().filter(move |part| {
            earlier.is_none_or(|earlier| part.step != at && !contains_step(earlier, part.step))
        })
    }

    pub(crate) fn within(&self, path: &str, at: usize) -> impl Iterator<Item = &Part> {
        let parts = self.parts(path);
        let first = parts.partition_point(|part| part.step < at);
        parts[first..].iter().take_while(move |part| part.step == at)
    }

    /// Says whether a later step is said to make the file.
    pub(crate) fn is_made_later(&self, path: &str, at: usize) -> bool {
        self.last_makers.get(path).is_some_and(|last| *last > at || !self.is_linear())
    }

    /// Returns the files that several steps name, each with those that do.
    pub(crate) fn shared_files(&self) -> impl Iterator<Item = (&str, &[Part])> {
        let is_shared =
            |parts: &Vec<Part>| parts.first().map(|part| part.step) != parts.last().map(|part| part.step);
        self.by_path
            .iter()
            .filter(move |(_, parts)| is_shared(parts))
            .map(|(path, parts)| (path.as_str(), parts.as_slice()))
    }

    /// Returns the paths that some step may make.
    pub(crate) fn made_paths(&self) -> impl Iterator<Item = &str> {
        let made = self.by_path.iter().filter(|(_, parts)| parts.iter().any(|part| part.role != Role::Reads));
        made.map(|(path, _)| path.as_str())
    }

    /// Says whether a step before this one may make the file; a step that only reads it does not.
    pub(crate) fn is_made_before(&self, path: &str, at: usize) -> bool {
        let earlier = self.paths.as_ref().map(|paths| paths.before(at));
        let is_earlier =
            |step: usize| earlier.map_or(step < at, |earlier| step != at && contains_step(earlier, step));
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

    /// Returns the first later step that makes the file, which a step that only names it is not said to do, with the best place to show: the contract that asks for it,
    /// else the words of the task.
    pub(crate) fn made_after(&self, path: &str, at: usize) -> Option<Part> {
        let is_clear = |role: Role| matches!(role, Role::Makes | Role::Proves);
        let first = self.after(path, at).find(|part| is_clear(part.role)).or_else(|| {
            self.after(path, at).find(|part| matches!(part.role, Role::Changes | Role::Judges))
        })?;
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
    pub(crate) fn paths_to_probe(&self) -> impl Iterator<Item = &str> {
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
    fn of(steps: &[&NodeTree], workflow: &Workflow) -> Paths {
        let places = workflow.places();
        let back = nodes_before(&workflow.out_edges());
        let nodes: Vec<Option<usize>> =
            steps.iter().map(|step| places.get(step.id.value.as_str()).copied()).collect();
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
            let next = |at: usize| self.back[at].iter().copied();
            for step in reached(self.back.len(), self.nodes[step], next).filter_map(|at| self.steps[at]) {
                before[step / 64] |= 1 << (step % 64);
            }
            before
        })
    }
}

fn contains_step(steps: &[u64], step: usize) -> bool {
    steps.get(step / 64).is_some_and(|bits| bits >> (step % 64) & 1 == 1)
}

fn of_changes(step: &NodeTree) -> impl Iterator<Item = Mention> {
    step.declared_changes()
        .filter(|entry| !is_glob(&entry.value) && leaves_workspace(&entry.value).is_none())
        .map(|entry| Mention {
            path: clean(&entry.value),
            span: entry.span,
            role: Role::Changes,
            right: Right::May,
        })
}

fn of_contract(scripts: &Scripts, at: usize, step: &NodeTree) -> Vec<Mention> {
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
