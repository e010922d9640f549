//! Works out what exit status a script can have, to find contracts that can't fail and failures that don't count.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Command, Compound, CompoundKind, Item, Join, Pipeline, Redirect, Script, Simple, Test, each};
use crate::source::Span;

/// The most calls of functions by functions that are followed.
const CALLS_MAX: usize = 8;

/// The exit status of a command, as far as its text decides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Always this.
    Fixed(u8),
    /// Decided when it runs.
    Varies,
}

/// What is known of a list: the status it ends with, and what an `exit` on the way may end the script with.
#[derive(Clone, Copy)]
struct Flow {
    status: Status,
    /// The status of an `exit` that may happen before the end.
    may_exit: Option<Status>,
    /// Says that the end is never reached, since an `exit` always happens.
    always_exits: bool,
}

impl Flow {
    fn of(status: Status) -> Flow {
        Flow { status, may_exit: None, always_exits: false }
    }
}

/// Returns the status that a whole script ends with.
pub(crate) fn status(script: &Script) -> Status {
    if let Some(fixed) = trapped(script) {
        return Status::Fixed(fixed);
    }
    Judge::of(script).whole(script)
}

#[derive(Clone, Copy)]
struct Modes {
    errexit: bool,
    pipefail: bool,
}

fn join(a: Status, b: Status) -> Status {
    if a == b { a } else { Status::Varies }
}

fn join_early(a: Option<Status>, b: Option<Status>) -> Option<Status> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (some, None) | (None, some) => some,
    }
}

/// What the commands of a script can end with.
struct Judge<'a> {
    modes: Modes,
    functions: BTreeMap<&'a str, &'a Script>,
    /// The functions that are being looked into, so that one that calls itself ends.
    open: RefCell<Vec<&'a str>>,
}

impl<'a> Judge<'a> {
    fn of(script: &'a Script) -> Judge<'a> {
        let mut functions = BTreeMap::new();
        each(script, &mut |command| {
            if let Command::Function { name, body, .. } = command {
                functions.insert(name.as_str(), body);
            }
        });
        let modes = Modes { errexit: uses_errexit(script), pipefail: uses_pipefail(script) };
        Judge { modes, functions, open: RefCell::default() }
    }

    fn whole(&self, script: &'a Script) -> Status {
        let flow = self.list(script);
        flow.may_exit.map_or(flow.status, |early| join(early, flow.status))
    }

    fn list(&self, script: &'a Script) -> Flow {
        let mut flow = Flow::of(Status::Fixed(0));
        for item in &script.items {
            let next = self.item(item);
            let early = join_early(flow.may_exit, next.may_exit);
            // Under `set -e` a command that may fail may end the script.
            let ends = (self.modes.errexit && next.status != Status::Fixed(0) && !is_last(script, item))
                .then_some(Status::Varies);
            flow = Flow { may_exit: join_early(early, ends), ..next };
            if flow.always_exits {
                break;
            }
        }
        flow
    }

    fn item(&self, item: &'a Item) -> Flow {
        if item.is_background {
            return Flow::of(Status::Fixed(0));
        }
        let mut flow = self.pipeline(&item.first);
        for (how, next) in &item.rest {
            let after = self.pipeline(next);
            flow = match (how, flow.status) {
                _ if flow.always_exits => flow,
                (Join::And, Status::Fixed(0)) => sequence(flow, after),
                (Join::And, Status::Fixed(_)) | (Join::Or, Status::Fixed(0)) => flow,
                (Join::Or, Status::Fixed(_)) => sequence(flow, after),
                (Join::Or, Status::Varies) => maybe(flow, after, Status::Fixed(0)),
                (Join::And, Status::Varies) => maybe(flow, after, Status::Varies),
            };
        }
        flow
    }

    fn pipeline(&self, pipeline: &'a Pipeline) -> Flow {
        let Some((last, before)) = pipeline.commands.split_last() else { return Flow::of(Status::Fixed(0)) };
        let mut flow = if !before.is_empty() && only_counts(last) {
            Flow::of(Status::Fixed(0))
        } else {
            self.command(last)
        };
        if !before.is_empty() {
            // Each part of a pipe runs in a shell of its own, so an `exit` ends that part only.
            flow = Flow::of(flow.may_exit.map_or(flow.status, |early| join(early, flow.status)));
            if self.modes.pipefail && before.iter().any(|part| self.command(part).status == Status::Varies) {
                flow.status = Status::Varies;
            }
        }
        if pipeline.is_negated && !flow.always_exits {
            flow.status = match flow.status {
                Status::Fixed(code) => Status::Fixed(u8::from(code == 0)),
                Status::Varies => Status::Varies,
            };
        }
        flow
    }

    fn command(&self, command: &'a Command) -> Flow {
        match command {
            Command::Simple(simple) if reads_file(&simple.redirects) => Flow::of(Status::Varies),
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound) => {
                let flow = self.compound(compound);
                // Where the file is not there, nothing runs and the status is 1.
                if reads_file(&compound.redirects) { Flow { status: Status::Varies, ..flow } } else { flow }
            }
            Command::Function { .. } => Flow::of(Status::Fixed(0)),
            Command::Test { test, .. } => Flow::of(of_constant(test.constant())),
        }
    }

    fn simple(&self, simple: &'a Simple) -> Flow {
        let Some(name) = simple.words.first() else {
            // Assignments end with the status of the last substitution in them.
            let substitutes = simple.assignments.iter().any(|word| !word.nested.is_empty());
            return Flow::of(if substitutes { Status::Varies } else { Status::Fixed(0) });
        };
        let name = name.literal.as_deref();
        if let Some((name, body)) = name.and_then(|name| self.functions.get_key_value(name)) {
            return self.called(name, body);
        }
        if let Some(test) = Test::of(simple) {
            return Flow::of(of_constant(test.constant()));
        }
        let argument = simple.words.get(1).map(|word| word.raw.as_str());
        match name {
            Some(
                "true" | ":" | "echo" | "printf" | "pwd" | "date" | "sleep" | "export" | "unset" | "set"
                | "shopt" | "trap" | "alias" | "disown",
            ) => Flow::of(Status::Fixed(0)),
            Some("false") => Flow::of(Status::Fixed(1)),
            Some("exit" | "return") => {
                let code = argument.map(|text| text.parse::<i64>().ok());
                let status = match code {
                    Some(Some(code)) => Status::Fixed(u8::try_from(code.rem_euclid(256)).unwrap_or(0)),
                    Some(None) | None => Status::Varies,
                };
                Flow { status, may_exit: None, always_exits: true }
            }
            Some("bash" | "sh" | "eval") => match simple.inline.as_slice() {
                [inner] => Flow::of(status(inner)),
                _ => Flow::of(Status::Varies),
            },
            Some(_) | None => Flow::of(Status::Varies),
        }
    }

    // A `return` ends the function, an `exit` the script.
    fn called(&self, name: &'a str, body: &'a Script) -> Flow {
        if self.open.borrow().contains(&name) || self.open.borrow().len() >= CALLS_MAX {
            return Flow::of(Status::Varies);
        }
        let mut exits = false;
        super::each_simple(body, &mut |simple| exits |= simple.name() == Some("exit"));
        if exits {
            return Flow { status: Status::Varies, may_exit: Some(Status::Varies), always_exits: false };
        }
        self.open.borrow_mut().push(name);
        let status = self.whole(body);
        self.open.borrow_mut().pop();
        Flow::of(status)
    }

    fn compound(&self, compound: &'a Compound) -> Flow {
        let bodies: Vec<Flow> = compound.bodies.iter().map(|body| self.list(body)).collect();
        let early = bodies.iter().fold(None, |early, body| {
            join_early(early, join_early(body.may_exit, body.always_exits.then_some(body.status)))
        });
        let ends = || bodies.iter().filter(|body| !body.always_exits).map(|body| body.status);
        let all_exit = compound.is_exhaustive && bodies.iter().all(|body| body.always_exits);
        match compound.kind {
            CompoundKind::Arithmetic => Flow::of(arithmetic(compound)),
            CompoundKind::Coprocess => Flow::of(Status::Fixed(0)),
            CompoundKind::Group => bodies.first().copied().unwrap_or(Flow::of(Status::Fixed(0))),
            CompoundKind::Subshell => {
                let body = bodies.first().copied().unwrap_or(Flow::of(Status::Fixed(0)));
                Flow::of(body.may_exit.map_or(body.status, |early| join(early, body.status)))
            }
            // A loop that waits ends well or not at all: then the time limit decides.
            CompoundKind::While if !reads_lines(compound) => {
                Flow { status: Status::Varies, may_exit: early, always_exits: false }
            }
            CompoundKind::If
            | CompoundKind::Case
            | CompoundKind::For
            | CompoundKind::Select
            | CompoundKind::While => {
                let skipped = (!compound.is_exhaustive).then_some(Status::Fixed(0));
                let status = skipped.into_iter().chain(ends()).reduce(join);
                match status {
                    Some(status) => Flow { status, may_exit: early, always_exits: false },
                    None => Flow {
                        status: early.unwrap_or(Status::Varies),
                        may_exit: None,
                        always_exits: all_exit,
                    },
                }
            }
        }
    }
}

fn of_constant(answer: Option<bool>) -> Status {
    answer.map_or(Status::Varies, |answer| Status::Fixed(u8::from(!answer)))
}

fn arithmetic(compound: &Compound) -> Status {
    let number = compound.words.first().and_then(|word| word.raw.trim().parse::<i64>().ok());
    of_constant(number.map(|number| number != 0))
}

fn reads_file(redirects: &[Redirect]) -> bool {
    let is_there =
        |redirect: &Redirect| redirect.target.raw == "/dev/null" || !redirect.target.nested.is_empty();
    redirects.iter().any(|redirect| redirect.feeds_input && !redirect.is_document && !is_there(redirect))
}

// `while read line; do … done` ends with its input.
fn reads_lines(compound: &Compound) -> bool {
    let first = compound.conditions.first().and_then(|list| list.items.last());
    let first = first.and_then(|item| item.first.commands.first()).and_then(Command::as_simple);
    first.and_then(Simple::name) == Some("read")
}

// Counts what it is fed, and succeeds whatever that is.
fn only_counts(command: &Command) -> bool {
    let Some(simple) = command.as_simple() else { return false };
    simple.name() == Some("wc") && simple.words[1..].iter().all(|word| word.raw.starts_with('-'))
}

fn is_last(script: &Script, item: &Item) -> bool {
    script.items.last().is_some_and(|last| std::ptr::eq(last, item))
}

fn sequence(before: Flow, after: Flow) -> Flow {
    Flow { may_exit: join_early(before.may_exit, after.may_exit), ..after }
}

// The second command may run; where it doesn't, the status is `otherwise`.
fn maybe(before: Flow, after: Flow, otherwise: Status) -> Flow {
    let early = join_early(before.may_exit, after.may_exit);
    if after.always_exits {
        return Flow {
            status: otherwise,
            may_exit: join_early(early, Some(after.status)),
            always_exits: false,
        };
    }
    Flow { status: join(otherwise, after.status), may_exit: early, always_exits: false }
}

// `trap 'exit 0' EXIT` decides the status whatever happens.
fn trapped(script: &Script) -> Option<u8> {
    let mut fixed = None;
    super::each_simple(script, &mut |simple| {
        let words: Vec<&str> = simple.words.iter().filter_map(|word| word.literal.as_deref()).collect();
        if let ["trap", action, signals @ ..] = words.as_slice()
            && signals.iter().any(|signal| matches!(*signal, "EXIT" | "0" | "ERR"))
        {
            let code = action.rsplit(';').next().and_then(|last| last.trim().strip_prefix("exit "));
            fixed = fixed.or(code.and_then(|code| code.trim().parse::<u8>().ok()));
        }
    });
    fixed
}

/// Says whether a script begins with `set -e` or the like.
pub(crate) fn uses_errexit(script: &Script) -> bool {
    uses_option(script, 'e', "errexit")
}

/// Says whether a script sets `pipefail`.
pub(crate) fn uses_pipefail(script: &Script) -> bool {
    uses_option(script, '\0', "pipefail")
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

/// A failure that the script's status never shows.
pub(crate) struct Masked {
    pub span: Span,
    /// Says that the failure is lost in a pipe; else in the middle of the list.
    pub in_pipe: bool,
}

/// Returns the commands whose failure does not count.
pub(crate) fn masked(script: &Script) -> Vec<Masked> {
    let judge = Judge::of(script);
    let mut found = Vec::new();
    judge.masked_in(script, false, &mut found);
    found
}

impl<'a> Judge<'a> {
    // Looks into groups, subshells and functions too: what is lost there is lost for the whole.
    fn masked_in(&self, script: &'a Script, is_guarded: bool, found: &mut Vec<Masked>) {
        for (at, item) in script.items.iter().enumerate() {
            let is_last = at + 1 == script.items.len();
            let flow = self.item(item);
            let guards = flow.may_exit.is_some() || flow.always_exits;
            let decides = is_check(item) && flow.status == Status::Varies;
            // Bash forgets `set -e` inside of a condition.
            let stops = self.modes.errexit && !is_guarded;
            if !is_last && !stops && decides && !guards && !feeds_later(script, at) {
                found.push(Masked { span: item.span, in_pipe: false });
            }
            let pipelines: Vec<&Pipeline> =
                std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)).collect();
            if !self.modes.pipefail && (is_last || stops) && !item.is_background {
                let lost = pipelines.iter().filter(|pipeline| loses(pipeline));
                found.extend(lost.map(|pipeline| Masked { span: pipeline.span, in_pipe: true }));
            }
            for pipeline in &pipelines {
                let [command] = pipeline.commands.as_slice() else { continue };
                match command {
                    Command::Compound(compound)
                        if matches!(compound.kind, CompoundKind::Group | CompoundKind::Subshell) =>
                    {
                        let guarded = is_guarded || !item.rest.is_empty();
                        // `|| { diff a b; exit 1; }` tells why and then fails.
                        let counts = |body: &&'a Script| !self.list(body).always_exits;
                        let bodies = compound.bodies.iter().filter(counts);
                        bodies.for_each(|body| self.masked_in(body, guarded, found));
                    }
                    Command::Function { body, .. } => self.masked_in(body, is_guarded, found),
                    Command::Compound(_) | Command::Simple(_) | Command::Test { .. } => {}
                }
            }
        }
    }
}

// Assignments and the commands that prepare a check are no checks themselves.
fn is_check(item: &Item) -> bool {
    match item.first.commands.first() {
        Some(Command::Simple(simple)) => {
            let writes_text = simple.redirects.iter().any(|redirect| redirect.writes)
                && simple.redirects.iter().any(|redirect| redirect.is_document);
            !writes_text && !prepares(simple)
        }
        Some(Command::Compound(compound)) => compound.kind != CompoundKind::Arithmetic,
        Some(Command::Function { .. }) => false,
        Some(Command::Test { .. }) | None => true,
    }
}

fn prepares(simple: &Simple) -> bool {
    matches!(
        simple.name(),
        None | Some(
            "source"
                | "."
                | "mkdir"
                | "local"
                | "declare"
                | "readonly"
                | "read"
                | "rm"
                | "wait"
                | "kill"
                | "trap"
                | "mapfile"
                | "readarray"
                | "eval"
                | "shift"
                | "getopts"
                | "let"
                | "exec"
                | "ulimit"
                | "umask"
                | "touch"
                | "cp"
                | "bind"
                | "hash"
                | "type"
                | "export"
                | "unset"
        )
    )
}

// The next command may look at `$?`.
fn feeds_later(script: &Script, at: usize) -> bool {
    let Some(next) = script.items.get(at + 1) else { return false };
    let mut looks = false;
    let one = Script { items: vec![next.clone()] };
    super::each_simple(&one, &mut |simple| {
        looks |= simple
            .words
            .iter()
            .chain(&simple.assignments)
            .any(|word| word.raw.contains("$?") || word.raw.contains("PIPESTATUS"));
    });
    looks
}

// The last part of the pipe succeeds whatever it is fed.
fn loses(pipeline: &Pipeline) -> bool {
    let [before @ .., last] = pipeline.commands.as_slice() else { return false };
    let Command::Simple(last) = last else { return false };
    let name = last.words.first().and_then(|word| word.literal.as_deref());
    let swallows = matches!(
        name,
        Some(
            "tee"
                | "cat"
                | "head"
                | "tail"
                | "sort"
                | "uniq"
                | "tr"
                | "cut"
                | "sed"
                | "less"
                | "more"
                | "column"
        )
    );
    let prints_only = |command: &Command| match command {
        Command::Simple(simple) => {
            let name = simple.words.first().and_then(|word| word.literal.as_deref());
            matches!(name, Some("echo" | "printf" | "cat" | "ls" | "date" | "seq"))
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => false,
    };
    swallows && before.first().is_some_and(|first| !prints_only(first))
}
