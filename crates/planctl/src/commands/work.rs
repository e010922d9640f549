//! Works on a run in this process, or looks at it while others do, and shows what happens.

use std::time::Duration;

use planctl_api::wire::{EventLine, RunState, RunView, WaitingOn};
use planctl_config::TerminalCall;
use planctl_engine::Answer;
use planctl_server::LiveActivity;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answer_prompt::{AnswerPrompt, open_asks, with_those_within};
use crate::attention::Attention;
use crate::client::{self, Client, Handle, Outcome, handle_of};
use crate::failure::{Exit, Failure};
use crate::next::{self, worker_line, worker_wanted};
use crate::progress::{CtrlC, Progress};
use crate::show::{self, shell_word, styled};
use crate::stop::Stop;
use crate::terminal;

pub use crate::progress::Manner;

/// How often the run is read without a notification.
pub const LOOK: Duration = Duration::from_millis(400);

/// The least time between two reads, however many notifications arrive.
const LOOK_LEAST: Duration = Duration::from_millis(100);

/// The number of looks after which a message says that a run is still queued.
const QUEUED_LOOKS: u32 = 3;

/// How to work on a run.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Whether to end when a person is needed.
    pub no_wait: bool,
    /// How to show it.
    pub manner: Manner,
    /// The place in the run's history after which events are shown; without one, only what comes is.
    pub since: Option<u64>,
    /// Whether to answer by itself what the plan asks (DOT H7).
    pub answers: bool,
    /// How a person at a terminal is called back to it.
    pub call: TerminalCall,
}

/// How working on a run ended.
pub struct Worked {
    /// Where the run stands.
    pub view: RunView,
    /// The newest place in its history that was shown.
    pub seq: u64,
    /// The exit of a stop that was asked for.
    pub asked: Option<Exit>,
}

/// Works a run's items in this process and shows what happens, until it ends or a person is needed and not waited for; a
/// person at a prompt is asked.
pub async fn work(
    client: &Client,
    handle: Handle,
    how: Work,
    answer_prompt: Option<&mut AnswerPrompt<'_>>,
    signals: &mut Stop,
) -> Result<Worked, Failure> {
    let ctrl_c = if client.is_daemon() { CtrlC::Leaves } else { CtrlC::Stops };
    let mut progress = Progress::new(how.manner, ctrl_c).with_attention(Attention::from_config(how.call));
    let worked = work_shown((client, handle), how, answer_prompt, &mut progress, signals).await;
    report_gone_daemon(client, &mut progress, worked).await
}

/// Says of a daemon that went away meanwhile what becomes of the run, whose last picture stays.
pub async fn report_gone_daemon<T>(
    client: &Client,
    progress: &mut Progress,
    followed: Result<T, Failure>,
) -> Result<T, Failure> {
    let Err(failure) = followed else { return followed };
    progress.freeze();
    let Some(run) = progress.run().filter(|_| failure.exit == Exit::Unavailable) else { return Err(failure) };
    match client.gone_daemon().await {
        Some(address) => {
            let (shown, run) = (show::safe(&run), shell_word(&run));
            let what = format!("the daemon at {address} is gone; {shown} is stored, and goes on from there");
            Err(Failure::new(Exit::Unavailable, what).next(format!("planctl resume {run}")))
        }
        None => Err(failure),
    }
}

async fn work_shown(
    (client, handle): (&Client, Handle),
    how: Work,
    mut answer_prompt: Option<&mut AnswerPrompt<'_>>,
    progress: &mut Progress,
    signals: &mut Stop,
) -> Result<Worked, Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut asked = None;
    let mut shown = Shown::begin_after(client, handle, how.since).await?;
    let (mut looks, mut has_said_asks) = (0, false);
    let activity = LiveActivity::default();
    let working = client.work_on(handle, how.no_wait, activity.clone(), stopped);
    tokio::pin!(working);
    // A separate task, so that signals are heard while a terminal or a pipe blocks the output.
    let mut hearing = JoinSet::new();
    let mut heard = signals.clone();
    hearing.spawn(async move {
        heard.wait_for_signal().await;
        stop.send_replace(true);
        // A second signal ends the process at once: the next process recovers what is left.
        let exit = heard.wait_for_signal().await;
        terminal::restore_modes();
        std::process::exit(i32::from(exit.code()));
    });
    let outcome = loop {
        let exit = tokio::select! {
            outcome = &mut working => break outcome?,
            news = pace(client, handle, shown.seq()) => {
                news?;
                answer_prompt.take_if(|prompt| prompt.has_ended());
                let opened = print_new_events(client, progress, &mut shown).await?;
                // A run within this one tells nothing to this one's history.
                if how.answers && !how.no_wait {
                    answer_choices(client, handle).await?;
                }
                if how.manner == Manner::Plain {
                    looks += 1;
                    if opened && answer_prompt.is_none() && !how.no_wait {
                        say_asks(client, handle).await?;
                        has_said_asks = true;
                    } else if looks == QUEUED_LOOKS {
                        let has_said_asks = has_said_asks || answer_prompt.is_some() || how.no_wait;
                        say_waiting(client, handle, has_said_asks).await?;
                    }
                }
                if how.manner != Manner::Live && answer_prompt.is_none() {
                    continue;
                }
                let view = client.status(handle).await?;
                progress.draw(&view, client::now_unix_seconds(), activity.now().as_ref());
                match &mut answer_prompt {
                    Some(answer_prompt) if asked.is_none() => {
                        answer_prompt.answer_asks((client, handle), &view, progress, signals).await?
                    }
                    Some(_) | None => None,
                }
            }
            exit = signals.wait_for_signal() => Some(exit),
        };
        if let Some(exit) = exit {
            asked = Some(exit);
            progress.say(if client.is_daemon() { "detaching …" } else { "stopping …" });
        }
    };
    print_new_events(client, progress, &mut shown).await?;
    let view = client.status(handle).await?;
    progress.finish(&view, client::now_unix_seconds());
    // The work may have ended before this heard the signal that ended it.
    let asked = (outcome == Outcome::Stopped).then(|| asked.unwrap_or_else(|| signals.last()));
    Ok(Worked { view, seq: shown.seq(), asked })
}

/// The answer to a question that takes any text and declares no usual answer.
const UNATTENDED: &str = "go on";

/// Answers what a plan and the plans within it ask of a person: with the usual answer that it declares, else with the first
/// option (DOT H7, H9). Says whether there was anything that it could answer.
pub async fn answer_choices(client: &Client, handle: Handle) -> Result<bool, Failure> {
    let mut has_answered = false;
    for ask in open_asks(client, handle).await?.into_iter().filter(|ask| ask.kind == "choice") {
        let first = ask.options.first().cloned();
        let option = ask.usual.or(first).unwrap_or_else(|| UNATTENDED.to_owned());
        let note = "answered by --auto-answer: nobody was asked";
        client.answer(ask.id, Answer::Choose { option }, Some(note)).await?;
        has_answered = true;
    }
    Ok(has_answered)
}

/// Waits for news, but never looks more often than people can read: looking costs the database what working needs.
async fn pace(client: &Client, handle: Handle, since: u64) -> Result<(), Failure> {
    tokio::time::sleep(LOOK_LEAST).await;
    client.wait_for_news(handle, since, LOOK).await
}

/// How far the histories of a run and of those within it were shown.
pub struct Shown {
    /// The runs, each with the place of the last line, the one that is worked on before those within it.
    runs: Vec<(Handle, u64)>,
}

impl Shown {
    /// Begins behind a place in a run's history; without one behind all that there is, of the runs within it, too.
    pub async fn begin_after(client: &Client, handle: Handle, since: Option<u64>) -> Result<Shown, Failure> {
        let mut runs = match since {
            Some(0) => return Ok(Shown { runs: vec![(handle, 0)] }),
            Some(_) | None => Vec::new(),
        };
        for run in with_those_within(client, handle).await? {
            runs.push((run, client.newest_seq(run).await?));
        }
        if let (Some(seq), Some((_, own))) = (since, runs.first_mut()) {
            *own = seq;
        }
        Ok(Shown { runs })
    }

    /// Returns the place of the last line of the run that is worked on.
    pub fn seq(&self) -> u64 {
        self.runs.first().map_or(0, |(_, seq)| *seq)
    }

    /// Returns lines that were not shown, a part of them where there are many; on wish with those of the runs within.
    async fn new_lines(
        &mut self,
        client: &Client,
        has_those_within: bool,
    ) -> Result<Vec<EventLine>, Failure> {
        let mut lines = Vec::new();
        let mut at = 0;
        while let Some((run, seq)) = self.runs.get(at).copied().filter(|_| at == 0 || has_those_within) {
            let new = client.events(run, seq).await?;
            self.runs[at].1 = new.last().map_or(seq, |line| line.seq);
            for begun in new.iter().filter_map(begun_run) {
                if self.runs.iter().all(|(known, _)| *known != begun) {
                    self.runs.push((begun, 0));
                }
            }
            lines.extend(new);
            at += 1;
        }
        if at > 1 {
            let time = |line: &EventLine| show::unix_seconds(&line.at).unwrap_or_default();
            lines.sort_by(|one, other| time(one).total_cmp(&time(other)));
        }
        Ok(lines)
    }
}

/// Returns the run of a plan within that began, as an event says.
fn begun_run(line: &EventLine) -> Option<Handle> {
    let found = line.data.get("found").filter(|_| line.event == "harness.begun")?;
    handle_of(found.get("run")?.as_str()?).ok()
}

/// Shows what happened since; says whether a person was asked.
pub async fn print_new_events(
    client: &Client,
    progress: &mut Progress,
    shown: &mut Shown,
) -> Result<bool, Failure> {
    let mut opened = false;
    loop {
        let lines = shown.new_lines(client, progress.has_lines()).await?;
        for line in &lines {
            opened |= line.event == "ask_opened";
            progress.event(line)?;
        }
        if lines.is_empty() {
            progress.flush_pending()?;
            return Ok(opened);
        }
    }
}

/// Tells a person who reads the plain output where to answer.
async fn say_asks(client: &Client, handle: Handle) -> Result<(), Failure> {
    for ask in open_asks(client, handle).await? {
        show::tell(&styled(
            show::CARE,
            &next::commands_here(&format!("waiting for you: planctl approvals show {}", ask.id)),
        ));
    }
    Ok(())
}

/// Says what the run waits for: the holder of the workspace, a worker that is missing, or an ask that was open before the run was
/// taken up.
async fn say_waiting(client: &Client, handle: Handle, has_said_asks: bool) -> Result<(), Failure> {
    let view = client.status(handle).await?;
    let is_ask = view.waiting_on.as_ref().is_some_and(|wait| wait.id.is_some());
    if !(is_ask && has_said_asks)
        && let Some(line) = waiting_line(&view)
    {
        show::tell(&styled(show::CARE, &line));
    }
    Ok(())
}

/// Says what a run waits for that others have to do, and what to type for that.
pub fn waiting_line(view: &RunView) -> Option<String> {
    waiting_words(view).map(|words| next::typed_in(&words, &view.workspace))
}

fn waiting_words(view: &RunView) -> Option<String> {
    let alone = show::is_left_alone(view.state, view.worked_on_by)
        .then(|| format!("{}: planctl resume {}", show::LEFT_ALONE, shell_word(&view.run)));
    let Some(wait) = &view.waiting_on else { return alone };
    match (view.state, wait.id, &wait.run) {
        (_, Some(ask), _) => Some(format!("waiting for you: planctl approvals show {ask}")),
        (RunState::Waiting, ..) if wait.kind == "worktree" => {
            let reason = view.reason.as_deref().map(show::safe).unwrap_or_default();
            Some(format!("{reason}; once that is fixed: planctl resume {}", shell_word(&view.run)))
        }
        (RunState::Queued, _, Some(run)) if wait.kind == "ending" => {
            Some(format!("waiting for run {}, whose agent is being ended", show::safe(run)))
        }
        (RunState::Queued, _, Some(run)) => Some(
            holder_line(view)
                .unwrap_or_else(|| format!("waiting for run {}, which has the workspace", show::safe(run))),
        ),
        (RunState::Running, ..) if let Some((line, next)) = worker_line(wait).zip(worker_wanted(view)) => {
            Some(format!("{line}: {next}"))
        }
        _ => alone,
    }
}

/// Says why the run that has the workspace does not go on by itself, and what to type for that.
fn holder_line(view: &RunView) -> Option<String> {
    let holder = view.holder.as_ref()?;
    let (shown, run) = (show::safe(&holder.run), shell_word(&holder.run));
    if let Some(ask) = holder.ask() {
        return Some(format!(
            "run {shown} has the workspace, and waits for you: planctl approvals show {ask}"
        ));
    }
    let alone = format!(
        "run {shown} has the workspace, and {}: planctl resume {run}, or planctl cancel {run}",
        show::LEFT_ALONE
    );
    holder.is_left_alone().then_some(alone)
}

/// Tells once what a run waits for, as soon as that is no passing thing.
#[derive(Default)]
pub struct Waits {
    line: Option<String>,
    looks: u32,
}

impl Waits {
    /// Looks at a run; returns the lines to print.
    pub fn update(&mut self, view: &RunView) -> Option<&str> {
        let line = waiting_line(view);
        self.looks = if self.line == line { self.looks + 1 } else { 1 };
        self.line = line;
        let is_for_people = view.waiting_on.as_ref().is_some_and(WaitingOn::is_for_people);
        let due = if is_for_people { 1 } else { QUEUED_LOOKS };
        self.line.as_deref().filter(|_| self.looks == due)
    }
}
