//! Works out with what exit status a script can end, over all ways through it: those that can't fail, can't pass, or pass
//! because a check failed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::programs::{is_shell, wrapped_commands};
use super::{
    Command, Compound, CompoundKind, Item, Join, Pipeline, Redirect, Script, Simple, Test, Trait, Word,
    brings, each,
};

/// The most calls of functions by functions that are followed.
const CALLS_MAX: usize = 8;

/// The exit status of a script, as far as its text decides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Always this.
    Fixed(u8),
    /// Decided when it runs.
    Varies,
}

/// A status that one way through a script ends with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum End {
    Known(u8),
    /// Not 0.
    Failing,
    Any,
}

impl End {
    fn may_succeed(self) -> bool {
        matches!(self, End::Known(0) | End::Any)
    }

    pub(super) fn may_fail(self) -> bool {
        self != End::Known(0)
    }

    fn failed(self) -> End {
        if self == End::Any { End::Failing } else { self }
    }

    fn negated(self) -> End {
        match self {
            End::Known(code) => End::Known(u8::from(code == 0)),
            End::Failing => End::Known(0),
            End::Any => End::Any,
        }
    }
}

/// The ends of some ways, each with whether it came by the pipeline that is watched.
type Ends = BTreeSet<(End, bool)>;

/// The ways through a part of a script.
#[derive(Clone, Default)]
pub(super) struct Flow {
    /// Those that go on behind it.
    pub on: Ends,
    /// Those that end the script.
    pub exits: Ends,
    /// Those that end the function.
    returns: Ends,
}

impl Flow {
    fn of(end: End) -> Flow {
        Flow { on: BTreeSet::from([(end, false)]), ..Flow::default() }
    }

    /// Adds what follows, on ways that came by the pipeline that is watched or not.
    fn follow(&mut self, came_by: bool, next: &Flow) {
        let by = |ends: &Ends| ends.iter().map(|(end, by)| (*end, *by || came_by)).collect::<Ends>();
        self.on.extend(by(&next.on));
        self.leave(came_by, next);
    }

    /// As [`Flow::follow`], without the ways that go on.
    fn leave(&mut self, came_by: bool, next: &Flow) {
        self.exits.extend(next.exits.iter().map(|(end, by)| (*end, *by || came_by)));
        self.returns.extend(next.returns.iter().map(|(end, by)| (*end, *by || came_by)));
    }

    /// Returns the flow of a command that ends the script where it fails.
    fn with_errexit(mut self) -> Flow {
        for (end, by) in std::mem::take(&mut self.on) {
            self.exits.extend(end.may_fail().then(|| (end.failed(), by)));
            self.on.extend(end.may_succeed().then_some((End::Known(0), by)));
        }
        self
    }

    /// Returns the flow of a shell of its own, which every way ends by itself.
    fn in_subshell(self) -> Flow {
        let on = self.on.into_iter().chain(self.exits).chain(self.returns).collect();
        Flow { on, ..Flow::default() }
    }

    /// Returns the one status of all ways that go on.
    pub(super) fn single_status(&self) -> Option<End> {
        let mut ends = self.on.iter().map(|(end, _)| *end);
        let first = ends.next()?;
        ends.all(|end| end == first).then_some(first)
    }
}

/// Returns the status that a whole script ends with.
pub(crate) fn status(script: &Script) -> Status {
    status_by(script, Judge::of(script))
}

fn status_by<'a>(script: &'a Script, judge: Judge<'a>) -> Status {
    if let Some(fixed) = judge.trapped(script) {
        return Status::Fixed(fixed);
    }
    match judge.list(script, false).in_subshell().single_status() {
        Some(End::Known(code)) => Status::Fixed(code),
        Some(End::Failing | End::Any) | None => Status::Varies,
    }
}

/// The statuses with which the commands of a script can end.
pub(super) struct Judge<'a> {
    pub errexit: bool,
    pub pipefail: bool,
    functions: BTreeMap<&'a str, &'a Script>,
    /// The functions that are being looked into, so that one that calls itself ends.
    open: RefCell<Vec<&'a str>>,
    /// The flow of each function; nothing in functions is watched.
    known: RefCell<BTreeMap<(&'a str, bool), Flow>>,
    /// The pipeline that is made to end so, less its `!`.
    watched: Option<(&'a Pipeline, End)>,
    /// The status that the next command finds in `$?`, where it asks for it.
    last: Cell<Option<End>>,
}

impl<'a> Judge<'a> {
    pub(super) fn of(script: &'a Script) -> Judge<'a> {
        let mut functions = BTreeMap::new();
        each(script, &mut |command| {
            if let Command::Function { name, body, .. } = command {
                functions.insert(name.as_str(), body);
            }
        });
        let mut judge = Judge {
            errexit: uses_option(script, 'e', "errexit"),
            pipefail: uses_option(script, '\0', "pipefail"),
            functions,
            open: RefCell::default(),
            known: RefCell::default(),
            watched: None,
            last: Cell::default(),
        };
        let on_failure = judge.ends_trapped(script, &["ERR"]);
        judge.errexit |= on_failure.is_some_and(|ends| !ends.contains(&End::Known(0)));
        judge
    }

    /// Returns what a whole script ends with on the ways by a pipeline that ends so.
    pub(super) fn ends_given(
        &mut self,
        script: &'a Script,
        pipeline: &'a Pipeline,
        end: End,
    ) -> BTreeSet<End> {
        self.watched = Some((pipeline, end));
        let flow = self.list(script, false).in_subshell();
        self.watched = None;
        flow.on.into_iter().filter(|(_, by)| *by).map(|(end, _)| end).collect()
    }

    /// Says whether a whole script may end with a status where a pipeline ends so.
    pub(super) fn may_end(
        &mut self,
        script: &'a Script,
        pipeline: &'a Pipeline,
        end: End,
        expected: u8,
    ) -> bool {
        self.watched = Some((pipeline, end));
        let flow = self.list(script, false).in_subshell();
        self.watched = None;
        flow.on.iter().any(|(end, _)| match end {
            End::Any => true,
            End::Failing => expected != 0,
            End::Known(code) => *code == expected,
        })
    }

    /// Returns the ways through a list; under `set -e` a failure ends the script, unless somebody asks for it.
    pub(super) fn list(&self, script: &'a Script, is_asked: bool) -> Flow {
        let mut flow = Flow::of(End::Known(0));
        for item in &script.items {
            let asks = asks_last_status(&item.first);
            let ends = std::mem::take(&mut flow.on).into_iter();
            let came: BTreeSet<(Option<End>, bool)> =
                ends.map(|(end, by)| (asks.then_some(end), by)).collect();
            for (last, by) in came {
                self.last.set(last);
                let next = self.item(item, is_asked);
                self.last.set(None);
                flow.follow(by, &next);
            }
            if flow.on.is_empty() {
                break;
            }
        }
        flow
    }

    pub(super) fn item(&self, item: &'a Item, is_asked: bool) -> Flow {
        if item.is_background {
            return Flow::of(End::Known(0));
        }
        // Only the last of a list that `&&` and `||` join ends the script.
        let last = |pipeline: &'a Pipeline| {
            let flow = self.pipeline(pipeline, is_asked);
            if self.errexit && !is_asked && !pipeline.is_negated { flow.with_errexit() } else { flow }
        };
        if item.rest.is_empty() {
            return last(&item.first);
        }
        let mut flow = self.pipeline(&item.first, true);
        for (at, (how, next)) in item.rest.iter().enumerate() {
            let is_last = at + 1 == item.rest.len();
            let after = if is_last { last(next) } else { self.pipeline(next, true) };
            for (end, by) in std::mem::take(&mut flow.on) {
                let (runs, skips) = match how {
                    Join::And => (end.may_succeed(), end.may_fail().then(|| end.failed())),
                    Join::Or => (end.may_fail(), end.may_succeed().then_some(End::Known(0))),
                };
                if runs {
                    flow.follow(by, &after);
                }
                flow.on.extend(skips.map(|end| (end, by)));
            }
        }
        flow
    }

    fn pipeline(&self, pipeline: &'a Pipeline, is_asked: bool) -> Flow {
        let is_asked = is_asked || pipeline.is_negated;
        let mut flow = match self.watched {
            Some((watched, end)) if std::ptr::eq(watched, pipeline) => {
                Flow { on: BTreeSet::from([(end, true)]), ..Flow::default() }
            }
            Some(_) | None => self.piped(pipeline, is_asked),
        };
        if pipeline.is_negated {
            flow.on = flow.on.into_iter().map(|(end, by)| (end.negated(), by)).collect();
        }
        flow
    }

    fn piped(&self, pipeline: &'a Pipeline, is_asked: bool) -> Flow {
        let Some((last, before)) = pipeline.commands.split_last() else { return Flow::of(End::Known(0)) };
        if before.is_empty() {
            return self.command(last, is_asked);
        }
        // Each part of a pipe runs in a shell of its own, so an `exit` ends that part only.
        let mut flow = if only_counts(last) {
            Flow::of(End::Known(0))
        } else {
            self.command(last, is_asked).in_subshell()
        };
        let may_fail = |part: &'a Command| {
            self.command(part, true).in_subshell().on.iter().any(|(end, _)| end.may_fail())
        };
        if self.pipefail && before.iter().any(may_fail) {
            flow.on.insert((End::Any, false));
        }
        flow
    }

    fn command(&self, command: &'a Command, is_asked: bool) -> Flow {
        match command {
            Command::Simple(simple) if reads_file(&simple.redirects) => Flow::of(End::Any),
            Command::Simple(simple) => self.simple(simple, is_asked),
            Command::Compound(compound) => {
                let mut flow = self.compound(compound, is_asked);
                // Where the file is not there, nothing runs and the status is 1.
                if reads_file(&compound.redirects) {
                    flow.on.insert((End::Any, false));
                }
                flow
            }
            Command::Function { .. } => Flow::of(End::Known(0)),
            Command::Test { test, .. } => Flow::of(of_constant(test.constant())),
        }
    }

    fn simple(&self, simple: &'a Simple, is_asked: bool) -> Flow {
        let Some(name) = simple.words.first() else {
            // Assignments end with the status of the last substitution in them.
            let substitutes = simple.assignments.iter().any(|word| !word.nested.is_empty());
            return Flow::of(if substitutes { End::Any } else { End::Known(0) });
        };
        let name = name.literal.as_deref();
        if let Some((name, body)) = name.and_then(|name| self.functions.get_key_value(name)) {
            return self.called(name, body, is_asked);
        }
        if let Some(test) = Test::of(simple) {
            let of_last = || self.last.take().and_then(|last| of_last_status(&test, last));
            return Flow::of(of_constant(test.constant().or_else(of_last)));
        }
        if let [wrappers @ .., inner] = wrapped_commands(&simple.words).as_slice()
            && !wrappers.is_empty()
        {
            return self.wrapped(simple, wrappers, inner);
        }
        let argument = simple.words.get(1).map(|word| word.raw.as_str());
        let assigns = argument.is_some_and(|argument| argument.contains('='));
        match name {
            Some(name) if brings(name, Trait::Succeeds) => Flow::of(End::Known(0)),
            // bash says that the bracket is missing, and asks nothing.
            Some("[") if simple.words.last().is_none_or(|last| last.raw != "]") => Flow::of(End::Known(2)),
            // A failure in `local x=$(…)` is not its own; a `wait` for all of them has none.
            Some("local" | "declare" | "readonly" | "typeset") if assigns => Flow::of(End::Known(0)),
            Some("wait") if argument.is_none() => Flow::of(End::Known(0)),
            Some("date") if argument.is_none_or(|argument| argument.starts_with('+')) => {
                Flow::of(End::Known(0))
            }
            Some("false") => Flow::of(End::Known(1)),
            Some(word @ ("exit" | "return")) => {
                let code = argument.and_then(|text| text.parse::<i64>().ok());
                let end =
                    code.map_or(End::Any, |code| End::Known(u8::try_from(code.rem_euclid(256)).unwrap_or(0)));
                let ends = BTreeSet::from([(end, false)]);
                if word == "exit" {
                    Flow { exits: ends, ..Flow::default() }
                } else {
                    Flow { returns: ends, ..Flow::default() }
                }
            }
            // `eval` runs its words in this very shell.
            Some("eval") => Flow::of(of_inline(simple, self.errexit && !is_asked)),
            Some(shell) if is_shell(shell) => Flow::of(of_inline(simple, sets_errexit(&simple.words))),
            Some(_) | None => Flow::of(End::Any),
        }
    }

    // `timeout 60 bash -c '…'` ends as what it starts, `xargs` fails where that does, and `exec` ends the script with it.
    fn wrapped(&self, simple: &Simple, wrappers: &[&[Word]], inner: &[Word]) -> Flow {
        let is_started_by = |name| wrappers.iter().any(|words| words[0].text() == name);
        let end = match inner[0].literal.as_deref() {
            _ if is_started_by("find") => End::Any,
            Some(name) if brings(name, Trait::Succeeds) => End::Known(0),
            Some("false") => End::Known(1),
            Some(shell) if is_shell(shell) => of_inline(simple, sets_errexit(inner)),
            Some(_) | None => End::Any,
        };
        let end = if is_started_by("xargs") && end != End::Known(0) { End::Any } else { end };
        let ends = Flow::of(end);
        if is_started_by("exec") { Flow { exits: ends.on, ..Flow::default() } } else { ends }
    }

    // A `return` ends the function, an `exit` the script.
    fn called(&self, name: &'a str, body: &'a Script, is_asked: bool) -> Flow {
        if self.open.borrow().contains(&name) || self.open.borrow().len() >= CALLS_MAX {
            return Flow::of(End::Any);
        }
        let key = (name, is_asked);
        if let Some(flow) = self.known.borrow().get(&key) {
            return flow.clone();
        }
        self.open.borrow_mut().push(name);
        let mut flow = self.list(body, is_asked);
        self.open.borrow_mut().pop();
        flow.on.append(&mut flow.returns);
        self.known.borrow_mut().insert(key, flow.clone());
        flow
    }

    fn compound(&self, compound: &'a Compound, is_asked: bool) -> Flow {
        let body =
            || compound.bodies.first().map_or(Flow::of(End::Known(0)), |body| self.list(body, is_asked));
        match compound.kind {
            CompoundKind::Arithmetic => Flow::of(arithmetic(compound)),
            CompoundKind::Coprocess => Flow::of(End::Known(0)),
            CompoundKind::Group => body(),
            CompoundKind::Subshell => body().in_subshell(),
            CompoundKind::If => self.branches(compound, is_asked),
            CompoundKind::Case => {
                let mut flow = Flow::default();
                compound.bodies.iter().for_each(|body| flow.follow(false, &self.list(body, is_asked)));
                if !compound.is_exhaustive {
                    flow.on.insert((End::Known(0), false));
                }
                flow
            }
            CompoundKind::For | CompoundKind::Select => {
                let mut flow = body();
                flow.on.insert((End::Known(0), false));
                flow
            }
            CompoundKind::While => {
                let mut flow = body();
                compound.conditions.iter().for_each(|asked| flow.leave(false, &self.list(asked, true)));
                // A loop that waits ends well or not at all: then the time limit decides.
                let end = if reads_lines(compound) { End::Known(0) } else { End::Any };
                flow.on.insert((end, false));
                flow
            }
        }
    }

    fn branches(&self, compound: &'a Compound, is_asked: bool) -> Flow {
        let mut flow = Flow::default();
        let mut arrives = BTreeSet::from([false]);
        for (condition, body) in compound.conditions.iter().zip(&compound.bodies) {
            let (asked, then) = (self.list(condition, true), self.list(body, is_asked));
            for came_by in std::mem::take(&mut arrives) {
                flow.leave(came_by, &asked);
                for (end, by) in asked.on.iter().map(|(end, by)| (*end, *by || came_by)) {
                    if end.may_succeed() {
                        flow.follow(by, &then);
                    }
                    if end.may_fail() {
                        arrives.insert(by);
                    }
                }
            }
        }
        let rest = match compound.bodies.get(compound.conditions.len()) {
            Some(rest) => self.list(rest, is_asked),
            None => Flow::of(End::Known(0)),
        };
        arrives.into_iter().for_each(|by| flow.follow(by, &rest));
        flow
    }

    pub(super) fn is_trapped(&self, script: &'a Script) -> bool {
        self.trapped(script).is_some()
    }

    // `trap 'exit 0' EXIT` decides the status in every case, and so does the function that it calls.
    fn trapped(&self, script: &'a Script) -> Option<u8> {
        let code = |signals| match self.ends_trapped(script, signals)?.as_slice() {
            [End::Known(code)] => Some(*code),
            _ => None,
        };
        // A script without a failure ends with 0 as well.
        code(&["EXIT", "0"]).or_else(|| code(&["ERR"]).filter(|code| *code == 0))
    }

    // The ends of the first trap for one of these signals, where that always ends the script.
    fn ends_trapped(&self, script: &'a Script, signals: &[&str]) -> Option<Vec<End>> {
        let mut ends = None;
        super::each_simple(script, &mut |simple| {
            let is_for = |word: &Word| signals.contains(&word.text());
            if simple.name() != Some("trap") || !simple.words.iter().skip(2).any(is_for) || ends.is_some() {
                return;
            }
            let flow = simple.inline.first().map(|action| self.list(action, true));
            let flow = flow.filter(|flow| flow.on.is_empty() && flow.returns.is_empty());
            ends = flow.map(|flow| flow.exits.into_iter().map(|(end, _)| end).collect());
        });
        ends
    }
}

// `[ $? -eq 0 ]`
fn asks_last_status(pipeline: &Pipeline) -> bool {
    let [Command::Simple(simple)] = pipeline.commands.as_slice() else { return false };
    Test::of(simple).is_some_and(|test| matches!(test, Test::Binary(left, ..) if is_last_status(&left)))
}

fn is_last_status(word: &Word) -> bool {
    matches!(word.raw.as_str(), "$?" | "\"$?\"")
}

fn of_last_status(test: &Test, last: End) -> Option<bool> {
    let Test::Binary(_, operator, right) = test else { return None };
    let asked: u8 = right.literal.as_deref()?.parse().ok()?;
    let is_equal = match last {
        End::Known(code) => code == asked,
        End::Failing if asked == 0 => false,
        End::Failing | End::Any => return None,
    };
    match operator.as_str() {
        "-eq" | "=" | "==" => Some(is_equal),
        "-ne" | "!=" => Some(!is_equal),
        _ => None,
    }
}

fn of_constant(answer: Option<bool>) -> End {
    answer.map_or(End::Any, |answer| End::Known(u8::from(!answer)))
}

fn arithmetic(compound: &Compound) -> End {
    let number = compound.words.first().and_then(|word| word.raw.trim().parse::<i64>().ok());
    of_constant(number.map(|number| number != 0))
}

fn reads_file(redirects: &[Redirect]) -> bool {
    let is_there =
        |redirect: &Redirect| redirect.target.raw == "/dev/null" || !redirect.target.nested.is_empty();
    redirects.iter().any(|redirect| redirect.feeds_input && !redirect.is_document && !is_there(redirect))
}

// `while read line; do … done` ends with its input.
pub(super) fn reads_lines(compound: &Compound) -> bool {
    let first = compound.conditions.first().and_then(|list| list.items.last());
    let first = first.and_then(|item| item.first.commands.first()).and_then(Command::as_simple);
    first.and_then(Simple::name) == Some("read")
}

// Counts its input, and succeeds on any.
fn only_counts(command: &Command) -> bool {
    let wrapped = command.as_simple().and_then(|simple| wrapped_commands(&simple.words).pop());
    let Some((name, arguments)) = wrapped.and_then(<[Word]>::split_first) else { return false };
    name.text() == "wc" && arguments.iter().all(|word| word.raw.starts_with('-'))
}

// The end of a shell that is given its script.
fn of_inline(simple: &Simple, sets_errexit: bool) -> End {
    let [inner] = simple.inline.as_slice() else { return End::Any };
    let mut judge = Judge::of(inner);
    judge.errexit |= sets_errexit;
    match status_by(inner, judge) {
        Status::Fixed(code) => End::Known(code),
        Status::Varies => End::Any,
    }
}

// The options of a shell stand before its script.
fn sets_errexit(words: &[Word]) -> bool {
    let words = words.iter().skip(1).map(|word| word.raw.as_str());
    let mut options = words.take_while(|word| word.starts_with('-') || *word == "errexit");
    options.any(|word| word == "errexit" || !word.starts_with("--") && word.contains('e'))
}

fn uses_option(script: &Script, letter: char, name: &str) -> bool {
    let mut uses = false;
    super::each_simple(script, &mut |simple| {
        let words: Vec<&str> = simple.words.iter().map(|word| word.raw.as_str()).collect();
        if words.first() == Some(&"set") {
            uses |= words[1..].iter().any(|word| {
                *word == name || (word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
            });
        }
    });
    uses
}
