//! Lets an agent work on one item and turns what its process did into what the engine may hear of it.

mod aider;
mod claude;
mod codex;
mod dialect;
mod exec;
mod gemini;
mod known;
mod opencode;

use std::ffi::OsString;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{
    AgentSaid, Circumstances, Ending, Fault, FaultKind, Hints, Overrun, Profile, Report, Tier,
};
use planctl_view::strip_terminal_sequences;
use tokio::sync::Notify;

pub use self::dialect::tool_in;
use self::dialect::{AgentError, Answer, ErrorKind, Listener};
use self::exec::AttemptFolder;
pub use self::known::{KnownAgent, NamedAgent, NotKnown, PermissionMode, Permissions};
use crate::blocking::blocking_in_place;
use crate::context::ContextEntry;
use crate::excerpt::{Output, excerpt, excerpt_of_text};
use crate::isolation::{Isolation, own_users_note};
use crate::masks::Masks;
use crate::process::{Command, End, Finished, Stream};
use crate::reach::Reach;
use crate::spawn::{Spawner, Stage};

/// The status that says "later it may work" (INTERFACE 3.5).
const EXIT_TEMPORARY: i32 = 75;
/// The status that says "a permission is missing" (INTERFACE 3.5).
const EXIT_PERMISSION: i32 = 77;
/// How much of an error's text is told.
const MESSAGE_CHARACTERS_MAX: usize = 2000;

/// How an agent is started, by role.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The program.
    pub program: Program,
    /// Which variables are passed on from planctl's environment.
    pub inherited: Vec<String>,
    /// Variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may print nothing.
    pub idle_timeout: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Where private folders of attempts are made; outside every workspace.
    pub scratch: PathBuf,
    /// How it is isolated; tier 0 unless said.
    pub isolation: Isolation,
    /// The part of the network that the agent reaches; the harness holds less than the host's from tier 1b, and refuses it below.
    pub network: Reach,
    /// The secret values that the harness masks in what the agent prints and says.
    pub masks: Masks,
}

/// The program to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// A command for `bash -c`, as `--exec` takes it.
    Shell(String),
    /// An agent by its name, as `--agent` takes it.
    Known(NamedAgent),
}

impl Program {
    fn known(&self) -> Option<&NamedAgent> {
        match self {
            Program::Known(known) => Some(known),
            Program::Shell(_) => None,
        }
    }
}

impl Agent {
    /// Describes an agent with nothing inherited and a grace of 5 s.
    pub fn exec(program: Program, scratch: impl Into<PathBuf>) -> Agent {
        Agent {
            program,
            inherited: Vec::new(),
            environment: Vec::new(),
            idle_timeout: None,
            grace: Duration::from_secs(5),
            scratch: scratch.into(),
            isolation: Isolation::default(),
            network: Reach::default(),
            masks: Masks::default(),
        }
    }
}

/// One item as its agent is given it.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The item's id.
    pub item: String,
    /// The run's id or name.
    pub run: String,
    /// The plan's path or title.
    pub plan: String,
    /// The step's number.
    pub step: String,
    /// The step's title.
    pub step_title: String,
    /// The node's name in the graph (DOT B16).
    pub node: String,
    /// The role it works as.
    pub role: String,
    /// The plan's requests to the agent: hints, which decide nothing.
    pub profile: Option<Profile>,
    /// The thread that it belongs to, for workers that keep sessions.
    pub thread: Option<String>,
    /// Which try this is.
    pub attempt: u16,
    /// How many tries the plan allows.
    pub attempts_max: u16,
    /// Where it works.
    pub workspace: PathBuf,
    /// The prompt; see [`assemble`](crate::assemble).
    pub prompt: String,
    /// The same context as files.
    pub context: Vec<ContextEntry>,
    /// How long it may work from its start.
    pub deadline: Duration,
    /// The deadline as RFC 3339, for its eyes.
    pub deadline_at: Option<String>,
    /// The rest of the run's tokens.
    pub budget_tokens: Option<u64>,
    /// The rest of the run's money, in millionths of a US dollar.
    pub budget_micro_usd: Option<u64>,
    /// A trace to continue.
    pub traceparent: Option<String>,
    /// Locks that stay held until its whole tree is dead.
    pub locks: Vec<Arc<OwnedFd>>,
}

/// The result of one piece of work.
#[derive(Clone, Debug)]
pub struct Worked {
    /// The event for the engine.
    pub said: AgentSaid,
    /// Texts to store before it is said.
    pub outputs: Vec<Output>,
    /// Says that standard output was empty: the report shows its standard error.
    pub is_mute: bool,
}

impl Worked {
    /// Returns the result of work that did not begin.
    pub fn without_output(said: AgentSaid) -> Worked {
        Worked { said, outputs: Vec::new(), is_mute: true }
    }
}

impl Agent {
    /// Runs the agent on one item until it ends, its deadline, or `cancel`.
    ///
    /// Nothing in its output decides anything: the gate follows unless its infrastructure failed (INTERFACE 3.3).
    pub async fn run_item(
        &self,
        spawner: &Spawner,
        assignment: &Assignment,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> Worked {
        let (scratch, prompt, context) =
            (self.scratch.clone(), assignment.prompt.clone(), assignment.context.clone());
        let prepared =
            tokio::task::spawn_blocking(move || AttemptFolder::prepare(&scratch, &prompt, &context)).await;
        let folder = match prepared.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            Ok(folder) => folder,
            Err(error) => return transient_fault(format!("its private folder could not be made: {error}")),
        };
        let worked = self.run_in_folder(&folder, spawner, assignment, watch, cancel).await;
        // Nobody waits until what the agent left there is removed.
        tokio::task::spawn_blocking(move || drop(folder));
        worked
    }

    async fn run_in_folder(
        &self,
        folder: &AttemptFolder,
        spawner: &Spawner,
        assignment: &Assignment,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        cancel: impl Future<Output = ()>,
    ) -> Worked {
        let command = match blocking_in_place(|| exec::command(self, assignment, folder)) {
            Ok(command) => command,
            Err(fault) => return fault_result(fault),
        };
        let mut listener = Listener::default();
        let is_refused = Notify::new();
        let mut both = |stream: Stream, chunk: &[u8]| {
            if stream == Stream::Stdout {
                listener.feed(chunk);
                // Clients try a refused login again for minutes.
                if listener.is_refused() {
                    is_refused.notify_one();
                }
            }
            watch(stream, chunk);
        };
        let ended = async {
            tokio::select! {
                () = cancel => {}
                () = is_refused.notified() => {}
            }
        };
        let finished = run(spawner, &command, &mut both, ended).await;
        match finished {
            Ok(mut finished) => {
                let was_refused = listener.is_refused();
                let heard = listener.finish(&finished.stdout, &finished.stderr);
                let mut answer = blocking_in_place(|| with_left_files(heard, folder));
                self.masks.mask_captured(&mut finished.stdout);
                self.masks.mask_captured(&mut finished.stderr);
                answer.text = answer.text.map(|text| self.masks.text(&text).into_owned());
                if was_refused && finished.end == End::Cancelled {
                    finished.end = End::Signalled(nix::libc::SIGTERM);
                    answer.error = answer.error.or(answer.notice.take());
                }
                outcome_of_exit(&command, finished, answer, self.program.known())
            }
            Err(error) => transient_fault(format!("its process could not be started: {error}")),
        }
    }
}

/// Adds to what an agent printed what it left in files.
fn with_left_files(heard: Answer, folder: &AttemptFolder) -> Answer {
    let mut answer = match folder.result() {
        Some(file) => file.or_usage_of(heard),
        None => heard,
    };
    if answer.text.is_none() {
        answer.text = folder.last_message();
    }
    answer
}

async fn run(
    spawner: &Spawner,
    command: &Command,
    watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    cancel: impl Future<Output = ()>,
) -> std::io::Result<Finished> {
    spawner.run(command, watch, cancel).await
}

fn transient_fault(message: String) -> Worked {
    fault_result(Fault::new(FaultKind::Transient, message))
}

fn fault_result(fault: Fault) -> Worked {
    Worked::without_output(AgentSaid::Faulted(fault))
}

/// Decides what the engine hears: our own ending first, then errors by shape, then the exit status (INTERFACE 3.3).
fn outcome_of_exit(
    command: &Command,
    finished: Finished,
    mut answer: Answer,
    known: Option<&NamedAgent>,
) -> Worked {
    if let (Some(usage), Some(known)) = (&mut answer.usage, known)
        && usage.model.is_none()
    {
        usage.model = known.model().map(str::to_owned);
    }
    let mut outputs = Vec::new();
    let usage = answer.usage.clone();
    let said = match fault_of_exit(command, &finished, &answer, known) {
        // Something of the work may be done: the contract says whether all of it is.
        Some(fault) if answer.worked => {
            let mut report = build_report(&finished, &answer, known, &mut outputs);
            report.circumstances.get_or_insert_default().cut_off = Some(fault);
            AgentSaid::Reported(report)
        }
        Some(fault) => AgentSaid::Faulted(Fault { usage, ..fault }),
        None => match &finished.end {
            End::TimedOut => {
                AgentSaid::Overran { past: Overrun::Deadline, duration: finished.duration, usage }
            }
            End::IdleTimedOut => {
                AgentSaid::Overran { past: Overrun::Silence, duration: finished.duration, usage }
            }
            End::Cancelled | End::HelperLost | End::NotStarted { .. } => AgentSaid::Released,
            End::Exited(_) | End::Signalled(_) | End::Flooded | End::OverLimit(_) => {
                match answer.question.clone().or_else(|| denial_question(&answer, known)) {
                    Some(question) => AgentSaid::Asked { question, usage },
                    None => AgentSaid::Reported(build_report(&finished, &answer, known, &mut outputs)),
                }
            }
        },
    };
    let is_mute = answer.text.is_none() && finished.stdout.bytes == 0;
    Worked { said, outputs, is_mute }
}

/// Names what there was no way to start a command with.
fn missing_program(command: &Command, stage: Stage) -> String {
    match stage {
        Stage::Execute => {
            command.arguments.first().map_or(String::new(), |program| program.display().to_string())
        }
        Stage::Directory => command.directory.display().to_string(),
        Stage::Fork | Stage::Prepare => "a process".to_owned(),
        Stage::Isolate => "the isolation that is required".to_owned(),
        Stage::Name => "another attempt at the step is under way on this host".to_owned(),
    }
}

/// Makes a question of an agent's denied requests, where a person is to be asked.
fn denial_question(answer: &Answer, known: Option<&NamedAgent>) -> Option<String> {
    let asks = known.is_some_and(|known| known.permissions.mode == PermissionMode::Ask);
    (asks && !answer.denials.is_empty()).then(|| {
        format!(
            "It was not allowed to use: {}. Answer what it should do instead, or allow it in planctl.toml and retry.",
            answer.denials.join(", ")
        )
    })
}

/// Finds infrastructure trouble, which spends no attempt: the process that would not start, what the agent says of its service,
/// and the statuses that mean trouble.
fn fault_of_exit(
    command: &Command,
    finished: &Finished,
    answer: &Answer,
    known: Option<&NamedAgent>,
) -> Option<Fault> {
    let permission_exits = known.map_or(&[][..], |known| known.agent.permission_exits());
    let spoken = || {
        let spoken = if finished.stderr.bytes > 0 { &finished.stderr } else { &finished.stdout };
        shorten(&String::from_utf8_lossy(&spoken.last(MESSAGE_CHARACTERS_MAX)))
    };
    let error = answer.error.as_ref().filter(|error| error.kind != ErrorKind::Own);
    let (kind, message) = match finished.end {
        End::Cancelled | End::HelperLost => return None,
        End::NotStarted { stage, errno } => return Some(spawn_fault(command, stage, errno)),
        // It was at it still, and waited for its service.
        End::TimedOut | End::IdleTimedOut => {
            let notice = answer.notice.as_ref().filter(|notice| notice.kind != ErrorKind::Own)?;
            let past = if finished.end == End::TimedOut { "at its deadline" } else { "after a long silence" };
            (kind_of(notice), format!("{} (ended {past})", notice.message))
        }
        End::Exited(code) if permission_exits.contains(&code) => {
            (FaultKind::Permission, error.map_or_else(spoken, |error| error.message.clone()))
        }
        End::Exited(_) | End::Signalled(_) | End::Flooded | End::OverLimit(_) if error.is_some() => {
            let error = error?;
            (kind_of(error), error.message.clone())
        }
        End::Exited(EXIT_TEMPORARY) => (FaultKind::Transient, spoken()),
        End::Exited(EXIT_PERMISSION) => (FaultKind::Permission, spoken()),
        End::Exited(status) if status != 0 && known.is_some() && !answer.is_heard => {
            let name = known.map(|known| known.agent.name()).unwrap_or_default();
            let why = refusal_line(finished).unwrap_or_else(|| "no word".to_owned());
            (FaultKind::Permanent, format!("{name} did not begin: exit {status}, {why}"))
        }
        End::Exited(_) | End::Signalled(_) | End::Flooded | End::OverLimit(_) => return None,
    };
    let message = if let (End::Exited(status), true) = (&finished.end, message.is_empty()) {
        format!("it exited with status {status} and no word")
    } else {
        shorten(&message)
    };
    let sign_in = known.filter(|_| kind == FaultKind::Permission).map(|known| known.agent.sign_in_hint());
    let message = sign_in.map_or(message.clone(), |sign_in| format!("{message} ({sign_in})"));
    Some(Fault::new(kind, message))
}

fn kind_of(error: &AgentError) -> FaultKind {
    match error.kind {
        ErrorKind::Login => FaultKind::Permission,
        ErrorKind::Service | ErrorKind::Own => FaultKind::Transient,
    }
}

/// Says why there is no process; a program that is not there will not be there in a second either.
fn spawn_fault(command: &Command, stage: Stage, errno: i32) -> Fault {
    let error = std::io::Error::from_raw_os_error(errno);
    let tier = command.confinement.as_ref().map_or(Tier::SameUser, |confinement| confinement.tier);
    let note = own_users_note(tier, stage, errno);
    let is_permanent = matches!(stage, Stage::Execute)
        && matches!(errno, nix::libc::ENOENT | nix::libc::EACCES | nix::libc::ENOTDIR | nix::libc::ENOEXEC);
    let kind = if is_permanent { FaultKind::Permanent } else { FaultKind::Transient };
    Fault::new(kind, format!("it could not be started: {}: {error}{note}", missing_program(command, stage)))
}

/// Returns the line by which a program refuses its arguments or its surroundings; its usage text says nothing.
fn refusal_line(finished: &Finished) -> Option<String> {
    let words = ["error", "unknown", "invalid", "unexpected", "cannot", "can't", "not "];
    let printed = [&finished.stderr, &finished.stdout].map(|stream| {
        let text = String::from_utf8_lossy(&stream.joined()).into_owned();
        strip_terminal_sequences(&text).into_owned()
    });
    let lines = || printed.iter().flat_map(|text| text.lines()).map(str::trim);
    let is_telling = |line: &&str| {
        let line = line.to_lowercase();
        !line.starts_with('-') && words.iter().any(|word| line.contains(word))
    };
    let found = lines().find(is_telling).or_else(|| lines().find(|line| !line.is_empty()));
    found.map(|line| line.chars().take(LINE_CHARACTERS_MAX).collect())
}

/// How much of one line is told.
const LINE_CHARACTERS_MAX: usize = 300;

fn build_report(
    finished: &Finished,
    answer: &Answer,
    known: Option<&NamedAgent>,
    outputs: &mut Vec<Output>,
) -> Report {
    let is_dialect = answer.is_known || known.is_some_and(|known| known.agent.speaks_json());
    let told = answer.error.as_ref().or(answer.notice.as_ref()).map(|error| error.message.as_str());
    let text = match (&answer.text, finished.stdout.bytes) {
        (Some(text), _) => excerpt_of_text(text, outputs),
        // Its output is for programs.
        (None, _) if is_dialect => excerpt_of_text(
            told.map(str::to_owned)
                .or_else(|| refusal_line(finished).filter(|line| !line.starts_with('{')))
                .as_deref()
                .unwrap_or_default(),
            outputs,
        ),
        (None, 0) => excerpt(&finished.stderr, outputs),
        (None, _) => excerpt(&finished.stdout, outputs),
    };
    let ending = match &finished.end {
        End::Exited(code) => Some(Ending::Exited { code: *code }),
        End::Signalled(signal) => Some(Ending::Signalled { signal: *signal }),
        End::Flooded | End::OverLimit(_) => Some(Ending::Signalled { signal: nix::libc::SIGKILL }),
        End::TimedOut | End::IdleTimedOut => Some(Ending::TimedOut),
        End::Cancelled | End::HelperLost | End::NotStarted { .. } => None,
    };
    let (duration, usage) = (finished.duration, answer.usage.clone());
    let hints = (answer.hints != Hints::default()).then(|| Box::new(answer.hints.clone()));
    let circumstances =
        Circumstances { cut_off: None, denied: answer.denials.clone(), session: answer.session.clone() };
    let circumstances = (circumstances != Circumstances::default()).then(|| Box::new(circumstances));
    let gave_up = answer.gave_up;
    Report { text, gave_up, ending, duration, usage, hints, circumstances, observation: None }
}

fn shorten(message: &str) -> String {
    let message = message.replace('\0', "\u{fffd}");
    let message = message.trim();
    let surplus = message.chars().count().saturating_sub(MESSAGE_CHARACTERS_MAX);
    message.chars().skip(surplus).collect()
}
