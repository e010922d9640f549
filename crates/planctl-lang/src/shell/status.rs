//! Works out what exit status a script can have, to find contracts that can't fail and failures that don't count.

use super::{Command, Compound, CompoundKind, Item, Join, Pipeline, Script, Simple};
use crate::source::Span;

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
    let flow = list(script, Modes { errexit: uses_errexit(script), pipefail: uses_pipefail(script) });
    flow.may_exit.map_or(flow.status, |early| join(early, flow.status))
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

fn list(script: &Script, modes: Modes) -> Flow {
    let mut flow = Flow::of(Status::Fixed(0));
    for item in &script.items {
        let next = item_flow(item, modes);
        let early = join_early(flow.may_exit, next.may_exit);
        // Under `set -e` a command that may fail may end the script.
        let ends = (modes.errexit && next.status == Status::Varies && !is_last(script, item))
            .then_some(Status::Varies);
        flow = Flow { may_exit: join_early(early, ends), ..next };
        if flow.always_exits {
            break;
        }
    }
    flow
}

fn is_last(script: &Script, item: &Item) -> bool {
    script.items.last().is_some_and(|last| std::ptr::eq(last, item))
}

fn item_flow(item: &Item, modes: Modes) -> Flow {
    if item.is_background {
        return Flow::of(Status::Fixed(0));
    }
    let mut flow = pipeline(&item.first, modes);
    for (how, next) in &item.rest {
        let after = pipeline(next, modes);
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

fn pipeline(pipeline: &Pipeline, modes: Modes) -> Flow {
    let Some(last) = pipeline.commands.last() else { return Flow::of(Status::Fixed(0)) };
    let mut flow = command(last, modes);
    if pipeline.commands.len() > 1 {
        // Each part of a pipe runs in a shell of its own, so an `exit` ends that part only.
        flow = Flow::of(flow.may_exit.map_or(flow.status, |early| join(early, flow.status)));
        let before = &pipeline.commands[..pipeline.commands.len() - 1];
        if modes.pipefail && before.iter().any(|part| command(part, modes).status == Status::Varies) {
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

fn command(command: &Command, modes: Modes) -> Flow {
    match command {
        Command::Simple(simple) => simple_flow(simple),
        Command::Compound(compound) => compound_flow(compound, modes),
        Command::Function { .. } => Flow::of(Status::Fixed(0)),
        Command::Test { .. } => Flow::of(Status::Varies),
    }
}

fn simple_flow(simple: &Simple) -> Flow {
    let Some(name) = simple.words.first() else {
        let substitutes = simple.assignments.iter().any(|word| !word.nested.is_empty());
        return Flow::of(if substitutes { Status::Varies } else { Status::Fixed(0) });
    };
    let argument = simple.words.get(1).and_then(|word| word.literal.as_deref());
    // A redirect can fail before the command runs, but a person who writes `echo x > f` doesn't mean a check.
    match name.literal.as_deref() {
        Some(
            "true" | ":" | "echo" | "printf" | "pwd" | "date" | "sleep" | "export" | "unset" | "set"
            | "shopt" | "trap",
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
        Some(_) | None => Flow::of(Status::Varies),
    }
}

fn compound_flow(compound: &Compound, modes: Modes) -> Flow {
    let bodies: Vec<Flow> = compound.bodies.iter().map(|body| list(body, modes)).collect();
    let early = bodies.iter().fold(None, |early, body| {
        join_early(early, join_early(body.may_exit, body.always_exits.then_some(body.status)))
    });
    let ends = || bodies.iter().filter(|body| !body.always_exits).map(|body| body.status);
    let all_exit = compound.is_exhaustive && bodies.iter().all(|body| body.always_exits);
    match compound.kind {
        CompoundKind::Arithmetic | CompoundKind::Coprocess => Flow::of(Status::Varies),
        CompoundKind::Group => bodies.first().copied().unwrap_or(Flow::of(Status::Fixed(0))),
        CompoundKind::Subshell => {
            let body = bodies.first().copied().unwrap_or(Flow::of(Status::Fixed(0)));
            Flow::of(body.may_exit.map_or(body.status, |early| join(early, body.status)))
        }
        CompoundKind::If | CompoundKind::Case | CompoundKind::Loop => {
            let skipped = (!compound.is_exhaustive).then_some(Status::Fixed(0));
            let status = skipped.into_iter().chain(ends()).reduce(join);
            match status {
                Some(status) => Flow { status, may_exit: early, always_exits: false },
                None => {
                    Flow { status: early.unwrap_or(Status::Varies), may_exit: None, always_exits: all_exit }
                }
            }
        }
    }
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
    let modes = Modes { errexit: uses_errexit(script), pipefail: uses_pipefail(script) };
    let mut found = Vec::new();
    for (at, item) in script.items.iter().enumerate() {
        let is_last = at + 1 == script.items.len();
        let flow = item_flow(item, modes);
        let guards = flow.may_exit.is_some() || flow.always_exits;
        let decides = is_check(item) && flow.status == Status::Varies;
        if !is_last && !modes.errexit && decides && !guards && !feeds_later(script, at) {
            found.push(Masked { span: item.span, in_pipe: false });
        }
        if !modes.pipefail && (is_last || modes.errexit) {
            let pipelines =
                std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
            found.extend(
                pipelines
                    .filter(|pipeline| loses(pipeline))
                    .map(|pipeline| Masked { span: pipeline.span, in_pipe: true }),
            );
        }
    }
    found
}

// Assignments and the commands that prepare a check are no checks themselves.
fn is_check(item: &Item) -> bool {
    let Some(Command::Simple(simple)) = item.first.commands.first() else { return true };
    let name = simple.words.first().and_then(|word| word.literal.as_deref());
    !matches!(
        name,
        None | Some("source" | "." | "mkdir" | "local" | "declare" | "read" | "rm" | "wait" | "kill")
    )
}

// The next command may look at `$?`.
fn feeds_later(script: &Script, at: usize) -> bool {
    let Some(next) = script.items.get(at + 1) else { return false };
    let mut looks = false;
    let one = Script { items: vec![next.clone()] };
    super::each_simple(&one, &mut |simple| {
        looks |= simple.words.iter().chain(&simple.assignments).any(|word| word.raw.contains("$?"));
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
                | "wc"
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
