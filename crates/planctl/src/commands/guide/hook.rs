//! `planctl hook`: the program that an agent's hook runs at each event of a session.
//!
//! It never breaks the agent: where planctl can't do its work, the session goes on, its person is told once, and nothing
//! passes. A session in a workspace without a plan and without guards costs a look at one file.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use planctl_api::wire::calls::{ObservationCall, Start};
use planctl_api::wire::{RunState, SessionStep, SessionView, StepState, WaitingOn};
use planctl_config::Agent;
use planctl_glob::Glob;
use planctl_lang::{Levels, digest_of_text};

use super::hooks::{HookInput, Reply, trouble_words};
use super::plugin::is_of_plugin;
use super::session::{self, SessionTurn, Taken};
use super::{canary, context_of, guard, guided, hooks, tasks};
use crate::args::{self, HookArgs};
use crate::caller;
use crate::checking;
use crate::client::{Client, How, handle_of};
use crate::commands::library;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Global;
use crate::guidance::{Activate, Guidance, Guided, LockedGuidance, Seen, ToldTasks};
use crate::session_agent::{SessionAgent, SessionEvent};
use crate::show::{self, shell_word};

/// The variables in which agents name the folder of their project.
const PROJECT_VARIABLES: [&str; 2] = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];
/// How long the database may take to be found. A private Postgres that is started after a crash needs some seconds.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
/// How often a session is sent back in one turn before a person is asked. Claude Code ends a turn at the eighth time.
const SENT_BACK_MAX: u32 = 6;

/// Answers a hook, unless what was typed is none; nothing here needs more than these words, so that a session without a plan
/// costs little.
pub fn main() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(2).collect();
    let [agent, event] = words.as_slice() else { return None };
    let agent = SessionAgent::from_str(agent.to_str()?, false).ok()?;
    let event = SessionEvent::from_str(event.to_str()?, false).ok()?;
    let (reply, hook) = match find(agent, event) {
        Ok((hook, guidance)) => (hook.handle(agent, event, &guidance), Some(hook)),
        Err(reply) => (reply, None),
    };
    let printed = reply.json(agent, event).map_or(Ok(()), |json| writeln!(std::io::stdout(), "{json}"));
    // An agent that does not listen is not kept.
    drop(printed);
    if let Some(hook) = hook {
        hook.note_told();
    }
    Some(ExitCode::SUCCESS)
}

/// Does the same for the word `hook` where flags stand before it.
pub fn run(_: &HookArgs) -> Answer {
    Err(Failure::usage("an agent's hook calls this, without flags before it: planctl hook AGENT EVENT"))
}

/// Finds the workspace that holds the session, with what holds it, or says how a session is answered that nothing holds.
fn find(agent: SessionAgent, event: SessionEvent) -> Result<(Hook, Guidance), Reply> {
    // A worker of planctl's own has its contract already.
    if std::env::var_os("PLANCTL_ITEM_ID").is_some() {
        return Err(Reply::Pass);
    }
    let (input, unread) = match HookInput::read() {
        Ok(input) => (input, None),
        Err(message) => (HookInput::default(), Some(message)),
    };
    let Ok(state_dir) = planctl_server::database::state_dir() else { return Err(Reply::Pass) };
    // A session may have changed to another folder, so that of its project goes first.
    let projects = PROJECT_VARIABLES.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut folders = projects.chain([input.cwd.clone(), PathBuf::from(".")]);
    let held = folders.find_map(|folder| Guidance::find_from(&state_dir, &folder).transpose());
    let (workspace, guidance) = match held {
        Some(Ok(held)) => held,
        // Where it was said can't be noted, so that it is said once in a turn.
        Some(Err(failure)) if event == SessionEvent::Stop => {
            return Err(Reply::Note(trouble_words(&failure.message)));
        }
        Some(Err(_)) | None => return Err(Reply::Pass),
    };
    if let Some(seen) = &guidance.canary {
        return Err(canary::answer_hook(seen, event));
    }
    if let Some(message) = unread {
        return Err(Reply::to_unread(event, &message));
    }
    // Where it can't be noted, the hook before each tool still refuses.
    drop(planctl_harness::note_session_agent(&state_dir, agent.as_str()));
    Ok((Hook { input, state_dir, workspace, told: RefCell::default() }, guidance))
}

/// A hook at work in a workspace whose sessions are held.
pub(super) struct Hook {
    input: HookInput,
    state_dir: PathBuf,
    workspace: PathBuf,
    /// The tasks that the session is told of by the reply.
    told: RefCell<Vec<ToldTasks>>,
}

impl Hook {
    fn handle(&self, agent: SessionAgent, event: SessionEvent, guidance: &Guidance) -> Reply {
        match event {
            SessionEvent::Tool => return self.check_tool_use(guidance),
            SessionEvent::ToolDone | SessionEvent::ToolFailed => {
                return self.record_output(agent, event, guidance);
            }
            SessionEvent::Stop if guidance.guided.is_none() && guard::all_hold(&self.workspace, guidance) => {
                return Reply::Pass;
            }
            SessionEvent::Start | SessionEvent::Prompt | SessionEvent::Stop => {}
        }
        let runtime = match planctl_server::runtime() {
            Ok(runtime) => runtime,
            Err(error) => return self.pass_with_warning(&error.to_string()),
        };
        let reply = runtime.block_on(async {
            match event {
                SessionEvent::Start => self.on_session_start(guidance).await,
                SessionEvent::Prompt => self.on_prompt(guidance).await,
                SessionEvent::Stop => self.on_stop(guidance).await,
                SessionEvent::Tool | SessionEvent::ToolDone | SessionEvent::ToolFailed => Ok(Reply::Pass),
            }
        });
        reply.unwrap_or_else(|failure| {
            let mends = (event == SessionEvent::Stop).then(|| self.send_back_to_mend(&failure));
            mends.flatten().unwrap_or_else(|| self.pass_with_warning(&failure.message))
        })
    }

    /// Sends a session back to a configuration of its workspace that can't be read: it may have written it.
    fn send_back_to_mend(&self, failure: &Failure) -> Option<Reply> {
        failure.file.as_ref().filter(|file| file.starts_with(&self.workspace))?;
        self.count_sent_back().ok().filter(|count| *count <= SENT_BACK_MAX)?;
        let text = format!("Not done: {}\nMend it, so that the contract can run.", failure.message);
        self.note_sent(&text).ok()?;
        Some(Reply::SendBack(text))
    }

    /// Notes the text with which the session is sent back, so that it is not taken for a prompt.
    fn note_sent(&self, text: &str) -> Result<(), Failure> {
        let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
        held.guidance.sent_text.insert(self.input.session_id.clone(), digest_of_sent(text));
        held.save()
    }

    /// Notes the tasks that the session was told of: a hook that is killed before has told it of none.
    fn note_told(self) {
        let told = self.told.into_inner();
        // Where it can't be noted, the session is told once more.
        if !told.is_empty()
            && let Ok(mut held) = LockedGuidance::open(&self.state_dir, &self.workspace)
        {
            held.guidance.note_told(told);
            drop(held.save());
        }
    }

    fn context(&self) -> Result<Context, Failure> {
        let workspace = Some(self.workspace.clone());
        // A hook must find what it is to do at once, whatever the folder that it was called in.
        Context::new(Global { workspace, no_input: true, quiet: true, ..Global::default() })
    }

    /// Lets the session go on although planctl could not do its work, and says so once.
    fn pass_with_warning(&self, message: &str) -> Reply {
        let text = trouble_words(message);
        let Ok(mut held) = LockedGuidance::open(&self.state_dir, &self.workspace) else {
            return Reply::Note(text);
        };
        if held.guidance.reported_trouble.as_ref() == Some(&text) {
            return Reply::Pass;
        }
        held.guidance.reported_trouble = Some(text.clone());
        drop(held.save());
        Reply::Note(text)
    }

    /// Tells a session that begins, or whose context was made shorter, where the plan stands.
    async fn on_session_start(&self, guidance: &Guidance) -> Result<Reply, Failure> {
        let mut parts = Vec::new();
        if let Some(guided) = &guidance.guided {
            let client = open_client(&self.context()?).await?;
            let handle = handle_of(&guided.id)?;
            let view = session::take_turn(&client, handle, SessionTurn::Looks).await?.view;
            if !view.run.state.is_over() {
                parts.push(context_of(&client, handle, &view).await?);
            }
            self.record_session(&view)?;
            client.close().await;
        }
        parts.extend(guard::guards_text(guidance));
        if parts.is_empty() {
            return Ok(Reply::Pass);
        }
        parts.push("planctl runs the contract itself whenever you end your turn: what you say of it decides nothing.".to_owned());
        Ok(Reply::Context(parts.join("\n\n")))
    }

    /// Begins a turn: the session has been sent back never, and hears what a person answered. The text with which planctl itself
    /// sends the session back is no person's prompt, and begins none.
    async fn on_prompt(&self, guidance: &Guidance) -> Result<Reply, Failure> {
        let session = &self.input.session_id;
        if guidance.sent_text.get(session).is_some_and(|own| *own == digest_of_sent(&self.input.prompt)) {
            return Ok(Reply::Pass);
        }
        if guidance.sent_back.contains_key(session) {
            let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
            held.guidance.sent_back.remove(session);
            held.guidance.sent_text.remove(session);
            held.save()?;
        }
        let Some(guided) = &guidance.guided else { return self.suggest_plan(guidance).await };
        if !guided.waits {
            return Ok(Reply::Pass);
        }
        let client = open_client(&self.context()?).await?;
        let view = session::take_turn(&client, handle_of(&guided.id)?, SessionTurn::Looks).await?.view;
        client.close().await;
        if view.steps.is_empty() {
            return Ok(Reply::Pass);
        }
        self.record_session(&view)?;
        Ok(Reply::Context(format!("{} goes on.\n\n{}", guided.run, tasks(&view))))
    }

    /// Suggests the plan of the library that a prompt calls for, or hands it in; each session hears of a plan once.
    async fn suggest_plan(&self, guidance: &Guidance) -> Result<Reply, Failure> {
        if guidance.activate == Activate::Off {
            return Ok(Reply::Pass);
        }
        let context = self.context()?;
        let Some((id, title)) = library::suggest_plan(&context, &self.input.prompt) else {
            return Ok(Reply::Pass);
        };
        let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
        let offered = held.guidance.offered.entry(self.input.session_id.clone()).or_default();
        if offered.contains(&id) {
            return Ok(Reply::Pass);
        }
        offered.push(id.clone());
        held.save()?;
        drop(held);
        let plan = format!("{} ({})", show::safe(&id), show::safe(&title));
        let id = show::safe(&shell_word(&id));
        let suggestion = format!(
            "A plan of this project's library fits this request: {plan}. Tell the person that `planctl guide on {id}` begins \
             it; only they can. If they do not want it, go on as usual."
        );
        if guidance.activate == Activate::Suggest {
            return Ok(Reply::Context(suggestion));
        }
        let client = open_client(&context).await?;
        let handed_in = self.submit_plan(&context, &client, Path::new(&id)).await;
        client.close().await;
        Ok(handed_in?.unwrap_or(Reply::Context(suggestion)))
    }

    /// Hands the plan of an entry in: it begins where an approval holds or a policy gives one, else a person is asked. Returns
    /// nothing where it can't run as it is.
    async fn submit_plan(
        &self,
        context: &Context,
        client: &Client,
        entry: &Path,
    ) -> Result<Option<Reply>, Failure> {
        let file = library::plan_for(context, entry)?;
        let session = Agent::Session;
        let checked = checking::check(context, &file, Some(&session), &Levels::default()).await?;
        if !checked.verification.is_verified() {
            return Ok(None);
        }
        let start = Start { worker: Some(session), ..Start::default() };
        let (handle, asks) = match client.start(&checked, &start).await? {
            How::Ready { handle, .. } => (handle, None),
            How::NeedsApproval { run, ask, .. } => (client.find(&run).await?, Some(ask)),
            How::AlreadyDone { .. } | How::ChangedSinceApproval { .. } => return Ok(None),
        };
        let view = session::take_turn(client, handle, SessionTurn::Looks).await?.view;
        let guided = guided(client, handle, &view.run).await?;
        let run = show::safe(&guided.run);
        let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
        held.guidance.guided = Some(guided);
        held.save()?;
        drop(held);
        if let Some(ask) = asks {
            return Ok(Some(Reply::Context(format!(
                "A plan of this project's library fits this request, and was handed in as {run}. It begins once a person approves \
                 it: tell them to type `planctl approvals show {ask}`. Until then do nothing of it."
            ))));
        }
        self.record_session(&view)?;
        let plan = context_of(client, handle, &view).await?;
        Ok(Some(Reply::Context(format!(
            "{run} began, a plan of this project's library that fits this request.\n\n{plan}"
        ))))
    }

    /// Refuses what would change the judge, or decide in a person's place.
    fn check_tool_use(&self, guidance: &Guidance) -> Reply {
        if let Some(command) = self.input.command()
            && let Some(decides) = deciding_command(&command)
        {
            return Reply::Refuse(format!(
                "`planctl {decides}` is a person's: a session does not decide about the plan that holds it. Say what you \
                 need; the person types it in a terminal of their own."
            ));
        }
        let files = self.input.files();
        let files = files.iter().filter_map(|file| self.resolve_path(Path::new(file)));
        for file in files {
            if file.starts_with(&self.state_dir) || self.is_of_hooks(&file) {
                return Reply::Refuse(format!(
                    "{} holds this session to its plan; it is a person's",
                    file.display()
                ));
            }
            let Ok(file) = file.strip_prefix(&self.workspace) else { continue };
            let text = file.to_string_lossy();
            for guided in guidance.runs() {
                if guided.protected.iter().any(|entry| is_meant(entry, &text)) {
                    return Reply::Refuse(format!(
                        "{text} decides a contract of {}, and no step may change it. Do the work that the contract \
                         checks instead; if the file itself is wrong, say so: the person changes it.",
                        guided.run
                    ));
                }
            }
        }
        Reply::Pass
    }

    /// Keeps the output of a tool until the turn ends, where a step passes by one.
    fn record_output(&self, agent: SessionAgent, event: SessionEvent, guidance: &Guidance) -> Reply {
        let observes = guidance.runs().any(|run| run.observes);
        let observation = self.input.observation(agent, event);
        let has_failed =
            event == SessionEvent::ToolFailed || observation.exit_code.is_some_and(|code| code != 0);
        let counts = has_failed && guidance.guided.is_some();
        if !(observes || counts) {
            return Reply::Pass;
        }
        let kept = || {
            let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
            if let Some(guided) = held.guidance.guided.as_mut().filter(|_| has_failed) {
                guided.tool_failures += 1;
            }
            if !observes {
                return held.save();
            }
            let items: Vec<String> = held.guidance.runs().flat_map(|run| run.read.clone()).collect();
            let seen = held.guidance.seen.entry(self.input.session_id.clone()).or_default();
            if seen.items != items {
                *seen = Seen { items, ..Seen::default() };
            }
            if observation.command.is_some() {
                seen.command = Some(observation.clone());
            }
            seen.tool = Some(observation);
            held.save()
        };
        kept().map_or_else(|failure| self.pass_with_warning(&failure.message), |()| Reply::Pass)
    }

    /// Returns the output that a step of this session may pass by: what it saw since it read the task, and nothing before it.
    fn observation_for(guidance: &Guidance, session: &str, step: &SessionStep) -> Option<ObservationCall> {
        let check = step.check.as_ref()?;
        let seen = guidance.seen.get(session).filter(|seen| seen.items.contains(&step.item))?;
        if check.takes_any_tool { seen.tool.clone() } else { seen.command.clone() }
    }

    /// The path of a file that a tool names, with links and `..` resolved as far as it exists.
    fn resolve_path(&self, file: &Path) -> Option<PathBuf> {
        let base = if self.input.cwd.as_os_str().is_empty() { &self.workspace } else { &self.input.cwd };
        let path = base.join(file);
        if let Ok(path) = path.canonicalize() {
            return Some(path);
        }
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    }

    /// Says whether a file sets which hooks an agent calls.
    fn is_of_hooks(&self, file: &Path) -> bool {
        let text = file.to_string_lossy();
        is_of_plugin(file)
            || [
                ".claude/settings.json",
                ".claude/settings.local.json",
                ".codex/hooks.json",
                ".codex/config.toml",
                ".gemini/settings.json",
                ".opencode/plugins/planctl.js",
            ]
            .iter()
            .any(|name| text.ends_with(&format!("/{name}")))
    }

    /// Ends a turn: the contract runs, and where it fails the session is sent back. Guards come after the plan, whose run has
    /// the workspace.
    async fn on_stop(&self, guidance: &Guidance) -> Result<Reply, Failure> {
        let context = self.context()?;
        let mut note = None;
        if let Some(guided) = &guidance.guided {
            let client = open_client(&context).await?;
            let ended = self.end_turn(&client, (guidance, guided), false).await;
            client.close().await;
            let (reply, state) = ended?;
            if !state.is_over() {
                return Ok(reply);
            }
            note = Some(reply);
        }
        let reply = guard::stop(&context, self, guidance).await?;
        Ok(match (note, reply) {
            (Some(Reply::Note(note)), Reply::Note(more)) => Reply::Note(format!("{note}\n{more}")),
            (Some(note), Reply::Pass) => note,
            (_, reply) => reply,
        })
    }

    /// Ends the turn at one run; says what becomes of the session. The first attempt of a guard is one that sessions know of.
    pub(super) async fn end_turn(
        &self,
        client: &Client,
        (guidance, guided): (&Guidance, &Guided),
        is_guard: bool,
    ) -> Result<(Reply, RunState), Failure> {
        let handle = handle_of(&guided.id)?;
        let knows = |step: &SessionStep| guided.read.contains(&step.item) || is_guard && step.attempt == 1;
        let seen = |step: &SessionStep| Hook::observation_for(guidance, &self.input.session_id, step);
        let ends = SessionTurn::Ends { last_words: self.input.last_words(), knows: &knows, seen: &seen };
        let Taken { before, mut view } = session::take_turn(client, handle, ends).await?;
        let is_sent_back = !view.steps.is_empty();
        if is_sent_back && self.count_sent_back()? > SENT_BACK_MAX {
            let question = format!(
                "This session was sent back {SENT_BACK_MAX} times in one turn, and the step is not done. Is it to go on? Your \
                 answer is told to it."
            );
            view = session::take_turn(client, handle, SessionTurn::Asks(&question)).await?.view;
        }
        self.record_session(&view)?;
        if view.steps.is_empty() {
            return Ok((Reply::Note(session::ended_line(&view)), view.run.state));
        }
        let lead = match step_without_output(guided, &view) {
            Some(step) => unseen_words(step),
            None => reason_sent_back(&before, &view),
        };
        let text = format!("{}: {lead}\n\n{}", guided.run, tasks(&view));
        self.note_sent(&text)?;
        Ok((Reply::SendBack(text), view.run.state))
    }

    /// Counts that the session is sent back once more in this turn.
    fn count_sent_back(&self) -> Result<u32, Failure> {
        let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
        let count = held.guidance.sent_back.entry(self.input.session_id.clone()).or_default();
        *count += 1;
        let count = *count;
        held.save()?;
        Ok(count)
    }

    /// Notes whether a person is waited for, and what the session will have read; lets the sessions go where a plan's run is over.
    fn record_session(&self, view: &SessionView) -> Result<(), Failure> {
        let mut held = LockedGuidance::open(&self.state_dir, &self.workspace)?;
        held.guidance.reported_trouble = None;
        // An output is evidence for one step, once.
        let is_open = |item: &String| view.steps.iter().any(|step| step.item == *item);
        held.guidance.seen.retain(|_, seen| seen.items.iter().any(is_open));
        if let Some(run) = held.guidance.run_mut(&view.run.id) {
            run.waits = view.run.waiting_on.as_ref().is_some_and(WaitingOn::is_for_people);
            run.observes = view.steps.iter().any(|step| step.check.is_some());
        }
        if view.run.state.is_over() {
            held.guidance.guided.take_if(|guided| guided.id == view.run.id);
        }
        held.save()?;
        let items = view.steps.iter().map(|step| step.item.clone()).collect();
        self.told.borrow_mut().push(ToldTasks { run: view.run.id.clone(), items });
        Ok(())
    }

    /// The folder whose sessions are held.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }
}

/// The digest of a text that a session is sent back with, as its agent reads it.
fn digest_of_sent(text: &str) -> String {
    digest_of_text(hooks::cut_middle(text).trim()).as_str().to_owned()
}

/// Finds a daemon, or the database; an agent is not kept by one that does not answer.
pub(super) async fn open_client(context: &Context) -> Result<Client, Failure> {
    let opening = tokio::time::timeout(OPENS_WITHIN, Client::open_quietly(context));
    opening.await.unwrap_or_else(|_| {
        Err(Failure::new(Exit::Unavailable, format!("the database did not answer within {OPENS_WITHIN:?}")))
    })
}

/// Says why a session is sent back.
fn reason_sent_back(before: &[SessionStep], view: &SessionView) -> String {
    let again = view.steps.iter().find(|step| before.iter().any(|old| old.step == step.step));
    match again {
        Some(step) if before.iter().any(|old| old.item == step.item) => "The step to work on:".to_owned(),
        Some(_) => "Not done: the contract failed.".to_owned(),
        None => {
            let left = |old: &SessionStep| view.run.steps.iter().find(|step| step.number == old.step);
            let left: Vec<_> = before.iter().filter_map(left).collect();
            if left.iter().all(|step| step.state == StepState::Passed) {
                return "The contract passed. The next step:".to_owned();
            }
            let words =
                left.iter().map(|step| format!("Step {} was {}.", step.number, show::step_state(step.state)));
            format!("{} The next step:", words.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Returns a step that the session has read and that passes by an output, where none was seen.
fn step_without_output<'v>(guided: &Guided, view: &'v SessionView) -> Option<&'v SessionStep> {
    view.steps.iter().find(|step| step.check.is_some() && guided.read.contains(&step.item))
}

fn unseen_words(step: &SessionStep) -> String {
    let any = step.check.as_ref().is_some_and(|check| check.takes_any_tool);
    let of = if any { "tool" } else { "command" };
    format!("Not done: your program has reported the output of no {of} since this step began. The step:")
}

/// Says whether an entry of a baseline, a name or a pattern, is the file or has it below it.
fn is_meant(entry: &str, file: &str) -> bool {
    if entry == file || file.strip_prefix(entry).is_some_and(|rest| rest.starts_with('/')) {
        return true;
    }
    Glob::parse(entry).is_ok_and(|glob| glob.matches(file))
}

/// Returns the command of planctl in a shell command that only a person may give.
fn deciding_command(command: &str) -> Option<String> {
    if !command.contains("planctl") {
        return None;
    }
    let mut parts = command.split(['\n', ';', '|', '&', '(', ')', '`', '{', '}']);
    parts.find_map(|part| {
        let words: Vec<&str> = part.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        let at = words.iter().position(|word| *word == "planctl" || word.ends_with("/planctl"))?;
        let typed = std::iter::once("planctl").chain(words[at + 1..].iter().copied());
        match args::command().try_get_matches_from(typed) {
            Ok(matches) => Some(caller::path_of(&matches)).filter(|path| caller::is_persons(path)),
            // A variable in the place of an argument does not parse, and is filled in when the command runs.
            Err(_) => {
                let words: Vec<&str> =
                    words[at + 1..].iter().copied().filter(|word| !word.starts_with('-')).collect();
                caller::begins_as_persons(&words).then(|| words.join(" "))
            }
        }
    })
}
