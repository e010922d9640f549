//! A session's turn at a run: the steps that it works on, the turn that ends, what the contract found.

use planctl_api::wire::calls::{ObservationCall, TurnCall};
use planctl_api::wire::{RunState, SessionStep, SessionView, StepState};
use planctl_server::LiveActivity;
use tokio::sync::watch;

use crate::client::{Client, Handle};
use crate::commands::work;
use crate::failure::Failure;
use crate::show;

/// How long one look waits for a step or a verdict, in seconds.
const LOOK_WAITS: u64 = 1;
/// How often a run is looked at whose workspace another run has.
const LOOKS_WHILE_QUEUED: u32 = 3;
/// How often a run is looked at whose step another process has: one that was killed is known to be gone soon.
const LOOKS_WHILE_WORKED_ON: u32 = 20;

/// Returns the output that a session's program reported, for a step that passes by one.
pub type SeenOutput<'a> = &'a dyn Fn(&SessionStep) -> Option<ObservationCall>;

/// A session's act at its run.
#[derive(Clone, Copy)]
pub enum SessionTurn<'a> {
    /// It looks what there is to do.
    Looks,
    /// It says that it is done with the steps that it knows of.
    Ends {
        /// Its last words.
        last_words: &'a str,
        /// Says whether the session has read the task of a step. A step that it does not know costs it no attempt.
        knows: &'a dyn Fn(&SessionStep) -> bool,
        /// Returns the output that its program reported, for a step that passes by one. Without an output such a step costs no
        /// attempt either (H-22).
        seen: SeenOutput<'a>,
    },
    /// It asks a person.
    Asks(&'a str),
}

/// The result of a turn.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The items that the session worked on when it took the turn.
    pub before: Vec<SessionStep>,
    /// The state that followed, and the steps to work on now.
    pub view: SessionView,
}

/// Takes a turn at a run and waits for what follows: steps to work on, a person who is asked, or the end. Without a daemon
/// this process works on the run meanwhile.
pub async fn take_turn(client: &Client, handle: Handle, turn: SessionTurn<'_>) -> Result<Taken, Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut before = Vec::new();
    let working = async {
        if client.is_daemon() {
            return std::future::pending().await;
        }
        client.work_on(handle, true, LiveActivity::default(), stopped).await
    };
    tokio::pin!(working);
    let seen = tokio::select! {
        seen = take_turn_here(client, handle, turn, &mut before) => Some(seen?),
        worked = &mut working => {
            worked?;
            None
        }
    };
    let view = match seen {
        Some(view) => {
            if !client.is_daemon() {
                stop.send_replace(true);
                working.await?;
            }
            view
        }
        None => client.session(handle, 0).await?,
    };
    Ok(Taken { before, view })
}

async fn take_turn_here(
    client: &Client,
    handle: Handle,
    turn: SessionTurn<'_>,
    before: &mut Vec<SessionStep>,
) -> Result<SessionView, Failure> {
    let view = wait_until_known(client, handle).await?;
    before.clone_from(&view.steps);
    let none: SeenOutput<'_> = &|_| None;
    let (last_words, question, seen) = match turn {
        SessionTurn::Looks => return Ok(view),
        SessionTurn::Ends { knows, .. } if !view.steps.iter().all(knows) => return Ok(view),
        SessionTurn::Ends { seen, .. }
            if view.steps.iter().any(|step| step.check.is_some() && seen(step).is_none()) =>
        {
            return Ok(view);
        }
        SessionTurn::Ends { last_words, seen, .. } => (last_words, None, seen),
        SessionTurn::Asks(question) => ("", Some(question.to_owned()), none),
    };
    if view.steps.is_empty() {
        return Ok(view);
    }
    for step in &view.steps {
        let call = TurnCall {
            item: step.item.clone(),
            last_words: last_words.to_owned(),
            question: question.clone(),
            observation: seen(step),
        };
        client.end_turn(handle, &call).await?;
    }
    wait_until_known(client, handle).await
}

/// Waits until it is known what a session is to do; a contract has as long as it needs.
async fn wait_until_known(client: &Client, handle: Handle) -> Result<SessionView, Failure> {
    let (mut queued, mut held) = (0, 0);
    loop {
        let view = client.session(handle, LOOK_WAITS).await?;
        if !view.steps.is_empty() || view.is_settled() {
            return Ok(view);
        }
        let count = |count: u32, is_so: bool| if is_so { count + 1 } else { 0 };
        queued = count(queued, view.run.state == RunState::Queued);
        let is_working = view.run.steps.iter().any(|step| step.state == StepState::Working);
        held = count(held, is_working && !view.others_work);
        if queued > LOOKS_WHILE_QUEUED || held > LOOKS_WHILE_WORKED_ON {
            return Ok(view);
        }
    }
}

/// Tells the person how a turn ended.
pub(super) fn ended_line(view: &SessionView) -> String {
    let run = show::safe(&view.run.run);
    let steps = view.run.steps.len();
    let s = if steps == 1 { "" } else { "s" };
    let passed = view.run.steps.iter().filter(|step| step.state == StepState::Passed).count();
    match view.run.state {
        RunState::Done if passed == steps => {
            let graded = |grade: &str| {
                view.run.steps.iter().filter(|step| step.grade.as_deref() == Some(grade)).count()
            };
            match (graded("observed"), graded("proved")) {
                (_, proved) if proved == steps => {
                    format!("planctl: {run} is done; {steps} step{s}, each passed by its contract")
                }
                (0, _) => format!("planctl: {run} is done; {passed} of {steps} step{s} passed"),
                (observed, _) => format!(
                    "planctl: {run} is done; {steps} step{s} passed, {observed} of them as observed by the agent's own program, not \
                     proved by a contract"
                ),
            }
        }
        RunState::Done => format!("planctl: {run} is done; {passed} of {steps} step{s} passed"),
        RunState::Failed | RunState::Cancelled => {
            let reason = view.run.reason.as_deref().map(show::safe).unwrap_or_default();
            format!("planctl: {run} is {}, not done. {reason}", show::run_state(view.run.state))
        }
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Paused => {
            let what =
                work::waiting_line(&view.run).unwrap_or_else(|| "another process works on it".to_owned());
            format!("planctl: {run} is not done; {what}")
        }
    }
}
