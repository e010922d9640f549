//! P2xx: the subscriptions of steps, and the order that follows from them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::Subscription;
use planctl_glob::{Glob, NotAGlob, is_glob};
use unicode_normalization::char::is_combining_mark;

use super::order::{Circles, Ordering};
use super::{Context, Lint, Needs};
use crate::analysis::other_forms;
use crate::diagnostic::levels::Levels;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::FileFact;
use crate::syntax::source::Source;
use crate::text::characters::escape;
use crate::text::near::{Existing, nearest};
use crate::text::paths::{clean, leaves_workspace};
use crate::text::{Span, Spanned};
use crate::tree::workflow::Workflow;

/// The most bytes of a subscribed file that a prompt takes.
pub const SUBSCRIPTION_BYTES_MAX: u64 = 256 * 1024;
/// The most subscriptions a step may have (row 52).
pub(super) const SUBSCRIPTIONS_MAX: usize = 50;
/// The most topics of a plan that are looked for.
const UNKNOWN_TOPICS_MAX: usize = 200;

pub(super) const LINT: Lint = Lint {
    codes: &[
        Code::P201,
        Code::P202,
        Code::P203,
        Code::P204,
        Code::P206,
        Code::P207,
        Code::P208,
        Code::P209,
        Code::P210,
        Code::P211,
        Code::P212,
    ],
    needs: Needs::Surroundings,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let ordering = Ordering { context, order: context.order, circles: Circles::read(context, context.order) };
    let places = Places {
        context,
        ordering: &ordering,
        existing: OnceCell::new(),
        made: OnceCell::new(),
        inputs: OnceCell::new(),
    };
    for (at, step) in context.each_step() {
        let mut of_step = Vec::new();
        let mut seen: BTreeMap<&Subscription, Span> = BTreeMap::new();
        // More than the limit are reported as such; looking at each of thousands would only hide that.
        for subscription in step.attributes.subscriptions.entries().iter().take(SUBSCRIPTIONS_MAX) {
            if let Some(first) = seen.insert(&subscription.value, subscription.span) {
                let twice = Diagnostic::new(Code::P209, "the subscription is given twice")
                    .at(subscription.span, "again here");
                let twice = twice.at(first, "first here").help("delete one of the two");
                let line = context.source.whole_line(subscription.span.start);
                let text = context.source.slice(line).trim_start();
                let is_bullet = ["- ", "* ", "+ "].iter().any(|bullet| text.starts_with(bullet));
                of_step.push(if is_bullet { twice.fix(line, "", true) } else { twice });
                continue;
            }
            match &subscription.value {
                Subscription::File { path } => places.file(at, path, subscription.span, &mut of_step),
                Subscription::Topic { name } => topic(context, name, subscription.span, &mut of_step),
            }
        }
        ordering.foreseen(at, &mut of_step);
        for entry in step.declared_changes() {
            places.changed(entry, &mut of_step);
        }
        for glob in step.attributes.protects.entries() {
            if let Some(why) = leaves_workspace(&glob.value) {
                of_step.push(outside_finding(&glob.value, why, glob.span));
            } else if let Some(invalid) = not_a_glob(&glob.value, glob.span) {
                // A line that is no list of globs has thousands of them; one tells.
                of_step.push(invalid);
                break;
            } else if is_glob(&glob.value) && context.facts.globs.get(&glob.value).is_some_and(Vec::is_empty)
            {
                let made = Glob::parse(&glob.value)
                    .is_ok_and(|it| context.order.made_paths().any(|path| it.matches(path)));
                if !made {
                    let message =
                        format!("`**protects:**` names `{}`, which matches nothing", escape(&glob.value));
                    let nothing = Diagnostic::new(Code::P202, message).level(Severity::Note);
                    let nothing = nothing.at(glob.span, "only files that are new would be protected by it");
                    of_step
                        .push(nothing.help(
                            "mend the pattern; `*` stays within a folder, `**` goes through all below",
                        ));
                }
            }
        }
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
    ordering.circles.report(context, found);
}

fn outside_finding(path: &str, why: &str, span: Span) -> Diagnostic {
    let message = format!("the path `{}` {why}", escape(path));
    let outside = Diagnostic::new(Code::P205, message).at(span, "paths are relative to the workspace");
    outside
        .help("name a file inside the workspace, relative to its top; copy one from elsewhere into it first")
}

struct Places<'a, 'b> {
    context: &'a Context<'b>,
    ordering: &'a Ordering<'a, 'b>,
    existing: OnceCell<Existing<'b>>,
    made: OnceCell<Existing<'b>>,
    inputs: OnceCell<BTreeMap<&'a str, usize>>,
}

impl<'a, 'b> Places<'a, 'b> {
    // Most plans miss no file, so names are arranged for the first that is looked for.
    fn existing(&self) -> &Existing<'b> {
        self.existing.get_or_init(|| Existing::read(self.context.facts.existing.iter().map(String::as_str)))
    }

    // Returns the files that some step makes.
    fn made(&self) -> &Existing<'b> {
        self.made.get_or_init(|| Existing::read(self.context.order.made_paths()))
    }

    // Returns the first step that is given each file.
    fn inputs(&self) -> &BTreeMap<&'a str, usize> {
        self.inputs.get_or_init(|| {
            let mut first = BTreeMap::new();
            for (at, step) in self.context.steps.iter().enumerate() {
                for (path, _) in step.subscribed_files() {
                    first.entry(path).or_insert(at);
                }
            }
            first
        })
    }

    fn file(&self, at: usize, path: &str, span: Span, found: &mut Vec<Diagnostic>) {
        if let Some(why) = leaves_workspace(path) {
            return found.push(outside_finding(path, why, span));
        }
        if is_glob(path) {
            return glob(self.context, path, span, found);
        }
        match self.context.facts.files.get(path) {
            None => {}
            Some(FileFact::Missing) => self.missing(at, path, span, found),
            Some(fact) => found.extend(refused_finding(path, fact, span)),
        }
    }

    // An entry of `**changes:**`; one that names nothing yet is what the step makes.
    fn changed(&self, entry: &Spanned<String>, found: &mut Vec<Diagnostic>) {
        let (path, span) = (clean(&entry.value), entry.span);
        if let Some(why) = leaves_workspace(&path) {
            return found.push(outside_finding(&path, why, span));
        }
        if is_glob(&path) {
            return found.extend(not_a_glob(&path, span));
        }
        let shown = escape(&path);
        if path.ends_with('/') || self.context.facts.files.get(&path) == Some(&FileFact::Directory) {
            let below = format!("{}/**", path.trim_end_matches('/'));
            let message = format!("`**changes:**` names the folder `{shown}`, which allows nothing below it");
            let folder = Diagnostic::new(Code::P207, message).at(span, "");
            found.push(folder.help(format!("write `{}`", escape(&below))).fix(span, below, true));
        }
    }

    fn missing(&self, at: usize, path: &str, span: Span, found: &mut Vec<Diagnostic>) {
        let order = self.ordering.order;
        if order.is_made_before(path, at) {
            return;
        }
        if let Some(other) = self.other_form(path) {
            let whole = path_span(self.context.source, span, path);
            let form = unicode_form(path, &other, whole).fix(whole, other, true);
            return found.push(form);
        }
        if self.ordering.is_too_early(at, path, span, found) {
            return;
        }
        let number = &self.context.steps[at].id.value;
        let shown = escape(path);
        let message = format!("step {number} reads `{shown}`, which is not there and no earlier step makes");
        let absent = Diagnostic::new(Code::P201, message).at(span, "no such file");
        // That a step which names the file only reads it, was read off its words, and these may say more than is understood.
        let absent = match order.read_before(path, at) {
            Some(_) => absent.level(Severity::Warning),
            None => absent,
        };
        // One that an earlier step is given as well is there before both.
        let is_input = self.inputs().get(path).is_some_and(|first| *first < at);
        if order.is_made_within(path, at) && !is_input {
            let absent = absent.note("this very step makes it");
            let help = "delete the subscription: the step can't read what it has not made";
            return found.push(absent.help(help));
        }
        found.push(self.absent(at, path, span, absent));
    }

    fn absent(&self, at: usize, path: &str, span: Span, absent: Diagnostic) -> Diagnostic {
        let made =
            self.made().near(path).into_iter().filter(|near| self.ordering.order.is_made_before(near, at));
        let mut near: Vec<&str> = made.collect();
        near.extend(
            self.existing().near(path).into_iter().filter(|there| !near.contains(there)).collect::<Vec<_>>(),
        );
        if let [first, ..] = near.as_slice() {
            let shown: Vec<String> = near.iter().map(|near| escape(near)).collect();
            let absent = absent.note(format!("near names: {}", shown.join(", ")));
            let place = path_span(self.context.source, span, path);
            return absent.help(format!("did you mean `file:{}`?", escape(first))).fix(place, *first, false);
        }
        let reader = self.ordering.order.read_before(path, at);
        if let Some(reader) = reader.filter(|reader| !self.ordering.is_input(path, reader.step)) {
            let reader_name = &self.context.steps[reader.step].id.value;
            let label = format!("step {reader_name} reads it too, and does not say that it makes it");
            let help = format!(
                "if step {reader_name} makes it, say so in its task: \"Write … to `{}`\"",
                escape(path)
            );
            return absent.at(reader.span, label).help(help);
        }
        absent.help("write the file before the run, mend the path, or let an earlier step's contract test for the file")
    }

    // The same name, composed or decomposed, on disk or in the plan.
    fn other_form(&self, path: &str) -> Option<String> {
        let is_there = |form: &String| {
            matches!(self.context.facts.files.get(form), Some(fact) if *fact != FileFact::Missing)
                || self.ordering.order.names(form)
        };
        other_forms(path)
            .into_iter()
            .find(is_there)
            .or_else(|| self.existing().in_other_form(path).map(str::to_owned))
    }
}

/// P211: says by code point where two forms of one name differ, since they look the same.
fn unicode_form(path: &str, other: &str, span: Span) -> Diagnostic {
    let points = |text: &str, beside: &str| {
        let same = text.chars().zip(beside.chars()).take_while(|(a, b)| a == b).count();
        let rest: Vec<char> = text.chars().skip(same).collect();
        let marks = 1 + rest.iter().skip(1).take_while(|mark| is_combining_mark(**mark)).count();
        rest.iter().take(marks).map(|c| format!("U+{:04X}", u32::from(*c))).collect::<Vec<_>>().join(" ")
    };
    let message = format!("`{}` is there, but its name is written in another Unicode form", escape(other));
    Diagnostic::new(Code::P211, message)
        .at(span, "looks the same, and is another name")
        .note(format!("the plan has {} where the name has {}", points(path, other), points(other, path)))
        .help("write the name as the file has it: copy it from `ls`")
}

// The path without its `file:`, where the plan has it as it was read.
fn path_span(source: &Source, span: Span, path: &str) -> Span {
    let entry = source.slice(span);
    entry.rfind(path).map_or(span, |at| Span::new(span.start + at, span.start + at + path.len()))
}

fn refused_finding(path: &str, fact: &FileFact, span: Span) -> Option<Diagnostic> {
    let path_shown = escape(path);
    let finding = match fact {
        FileFact::Missing => return None,
        FileFact::Regular { size } if *size <= SUBSCRIPTION_BYTES_MAX => return None,
        FileFact::Regular { size } => {
            let message =
                format!("`{path_shown}` has {size} bytes, and a prompt takes 262144 (256 KiB) of it");
            Diagnostic::new(Code::P208, message)
                .at(span, "the rest will be cut")
                .help("subscribe to a smaller file, and let the task name this one")
        }
        FileFact::Directory => Diagnostic::new(Code::P207, format!("`{path_shown}` is a directory"))
            .at(span, "a file was expected")
            .help(format!("write a glob: `file:{}/*`", path_shown.trim_end_matches('/'))),
        FileFact::Outside { target } => {
            let message = format!("`{path_shown}` is a link that leaves the workspace");
            Diagnostic::new(Code::P205, message)
                .at(span, format!("it points to `{}`", escape(target)))
                .help("copy what is needed into the workspace")
        }
        FileFact::Unreadable { reason } => {
            let message = format!("`{path_shown}` can't be read: {}", escape(reason));
            Diagnostic::new(Code::P207, message)
                .at(span, "planctl has no right to it")
                .help("let the user that runs planctl read it")
        }
        FileFact::Special { special } => {
            Diagnostic::new(Code::P207, format!("`{path_shown}` is {}, not a file", special.as_str()))
                .at(span, "a regular file was expected")
                .help("subscribe to a regular file")
        }
    };
    Some(finding)
}

fn glob(context: &Context<'_>, path: &str, span: Span, found: &mut Vec<Diagnostic>) {
    if let Some(invalid) = not_a_glob(path, span) {
        return found.push(invalid);
    }
    if context.facts.globs.get(path).is_some_and(Vec::is_empty) {
        let nothing = Diagnostic::new(Code::P202, format!("the glob `{}` matches nothing", escape(path)));
        found.push(
            nothing.at(span, "no file matches").help(
                "mend the pattern or delete it; `*` stays within a folder, `**` goes through all below",
            ),
        );
    }
}

/// Finds what is wrong with a glob: an error in its text, or a limit that it passes.
fn not_a_glob(glob: &str, span: Span) -> Option<Diagnostic> {
    let NotAGlob { glob, reason } = Glob::parse(glob).err()?;
    let invalid = Diagnostic::new(Code::P206, format!("`{}` is not a valid glob: {reason}", escape(&glob)));
    Some(invalid.at(span, "").help("globs know `*`, `**`, `?`, `[ab]` and `{a,b}`"))
}

fn topic(context: &Context<'_>, name: &str, span: Span, found: &mut Vec<Diagnostic>) {
    let fits = name.len() <= 100
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    if !fits {
        let message = format!("`{}` can't be the name of a topic", escape(name));
        let refused = Diagnostic::new(Code::P206, message).at(span, "");
        return found.push(refused.help("topics have letters, digits, `-`, `_`, `.` and `/`"));
    }
    match &context.facts.topics {
        Some(topics) => found.extend(unknown_topic(context.source, name, span, topics)),
        None => {
            let message = format!("whether the topic `{name}` has notes was not looked up");
            let unseen = Diagnostic::new(Code::P210, message).level(Severity::Note);
            let unseen = unseen.at(span, "topics are in the database, which is not needed here");
            found.push(unseen.help("planctl topic ls lists them"));
        }
    }
}

/// Finds subscriptions to topics that are not among these (row 54), for those who know them once the plan is verified;
/// each topic is named once.
pub fn unknown_topics(
    source: &Source,
    workflow: &Workflow,
    topics: &[String],
    levels: &Levels,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for step in workflow.steps() {
        for subscription in step.attributes.subscriptions.entries().iter().take(SUBSCRIPTIONS_MAX) {
            if let Subscription::Topic { name } = &subscription.value
                && seen.insert(name)
                && seen.len() <= UNKNOWN_TOPICS_MAX
            {
                let unknown = unknown_topic(source, name, subscription.span, topics);
                found.extend(unknown.map(|unknown| unknown.step(step.step_name())));
            }
        }
    }
    levels.apply(&mut found);
    found.iter_mut().for_each(Diagnostic::make_printable);
    found
}

fn unknown_topic(source: &Source, name: &str, span: Span, topics: &[String]) -> Option<Diagnostic> {
    if topics.iter().any(|known| known == name) {
        return None;
    }
    let message = format!("the topic `{}` is unknown; nothing will be injected", escape(name));
    let unknown = Diagnostic::new(Code::P210, message).at(span, "nobody has posted to it");
    Some(match nearest(name, topics.iter().map(String::as_str)) {
        Some(near) => unknown.help(format!("did you mean `topic:{}`?", escape(near.word))).fix(
            path_span(source, span, name),
            near.word,
            false,
        ),
        None if topics.is_empty() => unknown.help("planctl topic post NAME --note TEXT posts the first note"),
        None => unknown.help(format!("the topics are {}", list(topics))),
    })
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none yet".to_owned(),
        names => names.iter().take(20).map(|name| escape(name)).collect::<Vec<_>>().join(", "),
    }
}
