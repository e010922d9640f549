//! P2xx: what steps are given to read, and the order that follows from it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::Subscription;

use super::Lint;
use crate::diagnostic::{Code, Diagnostic, did_you_mean, distance};
use crate::facts::{FileFact, is_glob, leaves_workspace, task_files};
use crate::parse::name_of;
use crate::shell;
use crate::source::{Span, escape};
use crate::tree::StepTree;

/// The most bytes of a subscribed file that a prompt takes.
pub const SUBSCRIPTION_BYTES_MAX: u64 = 256 * 1024;
/// The most subscriptions a step may have (row 52).
pub(super) const SUBSCRIPTIONS_MAX: usize = 50;

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    let made = Made::read(lint);
    let circles = made.circles(lint);
    for (at, step) in lint.tree.steps.iter().enumerate() {
        let mut of_step = Vec::new();
        let mut seen: BTreeMap<&Subscription, Span> = BTreeMap::new();
        // More than the limit are reported as such; looking at each of thousands would only bury that.
        for subscription in step.subscriptions.iter().take(SUBSCRIPTIONS_MAX) {
            if let Some(first) = seen.insert(&subscription.value, subscription.span) {
                let twice = Diagnostic::new(Code::P209, "the subscription is given twice")
                    .at(subscription.span, "again here");
                of_step.push(twice.at(first, "first here").help("delete one of the two"));
                continue;
            }
            match &subscription.value {
                Subscription::File { path } => {
                    file(lint, &made, &circles, at, path, subscription.span, &mut of_step)
                }
                Subscription::Topic { name } => topic(lint, name, subscription.span, &mut of_step),
            }
        }
        for glob in &step.protects {
            if let Some(why) = leaves_workspace(&glob.value) {
                of_step.push(outside(&glob.value, why, glob.span));
            }
        }
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(name_of(step))));
    }
    report_circles(lint, &circles, found);
}

fn outside(path: &str, why: &str, span: Span) -> Diagnostic {
    let message = format!("the path `{}` {why}", escape(path));
    let outside = Diagnostic::new(Code::P205, message).at(span, "paths are relative to the workspace");
    outside.help("name a file inside the workspace, such as `file:src/main.rs`")
}

fn file(
    lint: &Lint<'_>,
    made: &Made,
    circles: &Circles,
    at: usize,
    path: &str,
    span: Span,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(why) = leaves_workspace(path) {
        return found.push(outside(path, why, span));
    }
    if is_glob(path) {
        return glob(lint, path, span, found);
    }
    match lint.facts.files.get(path) {
        None => {}
        Some(FileFact::Regular { size }) if *size > SUBSCRIPTION_BYTES_MAX => {
            let message =
                format!("`{}` has {size} bytes, and a prompt takes 262144 (256 KiB) of it", escape(path));
            let large = Diagnostic::new(Code::P208, message).at(span, "the rest will be cut");
            found.push(large.help("subscribe to a smaller file, and let the task name this one"));
        }
        Some(FileFact::Regular { .. }) => {}
        Some(FileFact::Directory) => {
            let message = format!("`{}` is a directory", escape(path));
            let directory = Diagnostic::new(Code::P207, message).at(span, "a file was expected");
            found.push(directory.help(format!("write a glob: `file:{}/*`", path.trim_end_matches('/'))));
        }
        Some(FileFact::Outside { target }) => {
            let message = format!("`{}` is a link that leaves the workspace", escape(path));
            let link =
                Diagnostic::new(Code::P205, message).at(span, format!("it points to `{}`", escape(target)));
            found.push(link.help("copy what is needed into the workspace"));
        }
        Some(FileFact::Unreadable { reason }) => {
            let message = format!("`{}` can't be read: {}", escape(path), escape(reason));
            let refused = Diagnostic::new(Code::P207, message).at(span, "");
            found.push(refused.help("let the user that runs planctl read it"));
        }
        Some(FileFact::Special { special }) => {
            let message = format!("`{}` is {}, not a file", escape(path), special.word());
            found.push(Diagnostic::new(Code::P207, message).at(span, "").help("subscribe to a regular file"));
        }
        Some(FileFact::Missing) => missing(lint, made, circles, at, path, span, found),
    }
}

fn glob(lint: &Lint<'_>, path: &str, span: Span, found: &mut Vec<Diagnostic>) {
    if let Err(error) = globset::Glob::new(path) {
        let invalid =
            Diagnostic::new(Code::P206, format!("`{}` is no valid glob: {}", escape(path), error.kind()));
        return found.push(invalid.at(span, "").help("globs know `*`, `**`, `?`, `[ab]` and `{a,b}`"));
    }
    if lint.facts.globs.get(path).is_some_and(Vec::is_empty) {
        let nothing = Diagnostic::new(Code::P202, format!("the glob `{}` matches nothing", escape(path)));
        found.push(
            nothing
                .at(span, "no file matches")
                .help("the step is given nothing for it; mend the glob or delete it"),
        );
    }
}

fn missing(
    lint: &Lint<'_>,
    made: &Made,
    circles: &Circles,
    at: usize,
    path: &str,
    span: Span,
    found: &mut Vec<Diagnostic>,
) {
    let makers = made.by_path.get(path).map_or(&[][..], Vec::as_slice);
    if makers.iter().any(|maker| maker.step < at) || circles.holds(at, path) {
        return;
    }
    let number = lint.tree.steps[at].number_text();
    if let Some(maker) = makers.iter().find(|maker| maker.step > at) {
        let later = &lint.tree.steps[maker.step];
        let message = format!("step {number} reads a file that only step {} produces", later.number_text());
        let order = Diagnostic::new(Code::P203, message).at(span, "needed here, before it exists");
        let order = order.at(
            maker.span,
            format!("first produced here (step {} \"{}\")", later.number_text(), escape(&later.title.value)),
        );
        let title = escape(&later.title.value);
        let next = next_number(lint, maker.step);
        return found.push(order.help(format!(
            "move the subscription to step {next} or later, or renumber so that \"{title}\" comes first"
        )));
    }
    let message =
        format!("step {number} reads `{}`, which is not there and no earlier step makes", escape(path));
    let mut absent = Diagnostic::new(Code::P201, message).at(span, "no such file");
    let near = made.near_names(path, &lint.facts.existing);
    if !near.is_empty() {
        absent = absent.note(format!("near names: {}", near.join(", ")));
    }
    if makers.iter().any(|maker| maker.step == at) {
        absent = absent.note("this very step makes it");
        return found.push(absent.help("delete the subscription: the step can't read what it has not made"));
    }
    let help = near.first().map(|near| format!("did you mean `file:{near}`?"));
    found.push(
        absent.help(
            help.unwrap_or("mend the path, or let an earlier step's contract test for the file".into()),
        ),
    );
}

fn next_number(lint: &Lint<'_>, at: usize) -> String {
    let own = lint.tree.steps[at].fixed_number().unwrap_or(0);
    lint.tree.steps.get(at + 1).map_or((own + 1).to_string(), StepTree::number_text)
}

fn near_names(path: &str, existing: &[String]) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut near: Vec<(usize, &String)> = Vec::new();
    for known in existing.iter().take(NEAR_CANDIDATES_MAX) {
        let same_name = known.rsplit('/').next() == Some(name);
        let length_differs = known.len().abs_diff(path.len()) > 3;
        if same_name {
            near.push((0, known));
        } else if !length_differs {
            let edits = distance(path, known);
            if edits <= 3 {
                near.push((edits, known));
            }
        }
    }
    near.sort();
    near.into_iter().take(3).map(|(_, known)| escape(known)).collect()
}

const NEAR_CANDIDATES_MAX: usize = 20_000;
const COMPARISONS_MAX: u32 = 50;

fn topic(lint: &Lint<'_>, name: &str, span: Span, found: &mut Vec<Diagnostic>) {
    let fits = name.len() <= 100
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    if !fits {
        let message = format!("`{}` can't be the name of a topic", escape(name));
        let refused = Diagnostic::new(Code::P206, message).at(span, "");
        return found.push(refused.help("topics have letters, digits, `-`, `_`, `.` and `/`"));
    }
    let unknown =
        Diagnostic::new(Code::P210, format!("the topic `{name}` is unknown; nothing will be injected"));
    match &lint.facts.topics {
        Some(topics) if topics.iter().any(|known| known == name) => {}
        Some(topics) => {
            let unknown = unknown.at(span, "no such topic");
            let near = did_you_mean(name, topics.iter().map(String::as_str));
            let help = near.map_or(format!("the topics are {}", list(topics)), |near| {
                format!("did you mean `topic:{near}`?")
            });
            found.push(unknown.help(help));
        }
        None => found.push(unknown.at(span, "no topics exist yet")),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none yet".to_owned(),
        names => names.iter().take(20).map(|name| escape(name)).collect::<Vec<_>>().join(", "),
    }
}

/// A step that makes a file, as far as its contract and task tell.
struct Maker {
    step: usize,
    span: Span,
}

struct Made {
    by_path: BTreeMap<String, Vec<Maker>>,
    /// How many more missing files are compared with what is there.
    comparisons: Cell<u32>,
}

impl Made {
    // A contract that names a file proves that the step leaves it there; a task that names it may make it (P-58).
    fn read(lint: &Lint<'_>) -> Made {
        let mut by_path: BTreeMap<String, Vec<Maker>> = BTreeMap::new();
        for (at, step) in lint.tree.steps.iter().enumerate() {
            let mut own = BTreeSet::new();
            let files = lint.scripts.read_of(at).map(shell::files).unwrap_or_default();
            let contract = step.contract.as_ref();
            let in_contract =
                files.into_iter().filter_map(|file| Some((file.path, contract?.in_plan(file.span))));
            let subscribed: BTreeSet<&str> = step.subscribed_files().map(|(path, _)| path).collect();
            for (path, span) in in_contract.chain(task_files(step)) {
                // What a step is given to read, it does not make.
                if !subscribed.contains(path.as_str()) && own.insert(path.clone()) {
                    by_path.entry(path).or_default().push(Maker { step: at, span });
                }
            }
        }
        Made { by_path, comparisons: Cell::new(COMPARISONS_MAX) }
    }

    fn near_names(&self, path: &str, existing: &[String]) -> Vec<String> {
        match self.comparisons.get() {
            0 => Vec::new(),
            left => {
                self.comparisons.set(left - 1);
                near_names(path, existing)
            }
        }
    }

    // Edges lead from a step that reads a missing file to the steps that make it; a way back is a circle.
    fn circles(&self, lint: &Lint<'_>) -> Circles {
        let mut needs: BTreeMap<usize, Vec<(usize, String, Span)>> = BTreeMap::new();
        for (at, step) in lint.tree.steps.iter().enumerate() {
            for (path, span) in step.subscribed_files() {
                let is_missing = lint.facts.files.get(path) == Some(&FileFact::Missing);
                let makers = self.by_path.get(path).filter(|makers| is_missing && makers.len() == 1);
                for maker in makers.into_iter().flatten().filter(|maker| maker.step != at) {
                    needs.entry(at).or_default().push((maker.step, path.to_owned(), span));
                }
            }
        }
        let mut circles = Circles { rings: Vec::new() };
        let held = held(&needs);
        for start in &held {
            if !circles.rings.iter().flatten().any(|(step, _, _)| step == start)
                && let Some(ring) = ring_from(*start, &needs)
            {
                circles.rings.push(ring);
            }
        }
        circles
    }
}

type Need = (usize, String, Span);

struct Circles {
    rings: Vec<Vec<Need>>,
}

impl Circles {
    fn holds(&self, step: usize, path: &str) -> bool {
        self.rings.iter().flatten().any(|(reader, read, _)| *reader == step && read == path)
    }
}

// Returns the steps that wait, directly or not, for a circle: what is left when every step that waits for nothing is
// taken away, again and again.
fn held(needs: &BTreeMap<usize, Vec<Need>>) -> Vec<usize> {
    let mut waits: BTreeMap<usize, usize> =
        needs.iter().map(|(step, makers)| (*step, makers.len())).collect();
    let mut readers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (reader, makers) in needs {
        for (maker, _, _) in makers {
            readers.entry(*maker).or_default().push(*reader);
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

// Returns the way from a step back to itself: each reader with what it reads.
fn ring_from(start: usize, needs: &BTreeMap<usize, Vec<Need>>) -> Option<Vec<Need>> {
    let mut came: BTreeMap<usize, (usize, String, Span)> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for (maker, path, span) in needs.get(&at).into_iter().flatten() {
            if came.contains_key(maker) {
                continue;
            }
            came.insert(*maker, (at, path.clone(), *span));
            open.push(*maker);
        }
    }
    let mut ring = Vec::new();
    let mut at = start;
    loop {
        let (reader, path, span) = came.get(&at)?;
        ring.push((*reader, path.clone(), *span));
        at = *reader;
        if at == start {
            ring.reverse();
            return Some(ring);
        }
    }
}

fn report_circles(lint: &Lint<'_>, circles: &Circles, found: &mut Vec<Diagnostic>) {
    for ring in &circles.rings {
        let name = |at: usize| lint.tree.steps[at].number_text();
        let mut way: Vec<String> = ring.iter().map(|(reader, _, _)| name(*reader)).collect();
        way.extend(ring.first().map(|(reader, _, _)| name(*reader)));
        let mut circle = Diagnostic::new(
            Code::P204,
            format!("steps depend on each other in a circle: {}", way.join(" → ")),
        );
        for (reader, path, span) in ring {
            circle = circle.at(*span, format!("step {} reads `{}`", name(*reader), escape(path)));
        }
        found.push(circle.help("let one of these steps work without the other's file"));
    }
}
