//! Follows a run until it ends or needs a person, and works on it where no daemon does.

use std::time::Duration;

use planctl_api::wire::{EventLine, HolderView, RunState, RunView, WaitingOn};
use planctl_server::{LiveActivity, RunLoopEnd, RunLoopOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Client, Handle, failure};
use crate::failure::{Exit, Failure};

/// How working on a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The run is over.
    Ended,
    /// It waits for a person.
    Waiting,
    /// It was asked to stop.
    Stopped,
}

/// How long to wait for news of a run that a daemon works on before looking without any.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a run that is over is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How many times it is looked at for what is in its worktree.
const LOOKS_AFTER_END: u32 = 25;

/// Says whether a run stands still until a person does something: for itself, or for the run that has the workspace.
fn waits_for_people(view: &RunView) -> bool {
    if view.state == RunState::Queued {
        return view.holder.as_ref().is_some_and(HolderView::is_for_people);
    }
    // One branch may ask while another is worked on.
    let is_moving = view.state == RunState::Running && view.worked_on_by.is_some();
    !is_moving && view.waiting_on.as_ref().is_some_and(WaitingOn::is_for_people)
}

impl Client {
    /// Works a run's items in this process, or waits while a daemon does, until it ends, waits for a person and
    /// `no_wait` is set, or `stopped` says so.
    pub async fn work_on(
        &self,
        handle: Handle,
        no_wait: bool,
        activity: LiveActivity,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Outcome, Failure> {
        let stop = async move {
            if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
                // Nobody can ask for a stop any more.
                std::future::pending::<()>().await;
            }
        };
        let Some(server_node) = self.server_node.clone() else {
            return tokio::select! {
                outcome = self.until_settled(handle, no_wait) => outcome,
                () = stop => Ok(Outcome::Stopped),
            };
        };
        let options = RunLoopOptions { returns_when_waiting: no_wait, activity };
        // A task of its own: the caller may be kept by a terminal. The task ends with the caller.
        let mut run_loop = JoinSet::new();
        run_loop.spawn(async move { server_node.run_loop(handle.0, &options, stop).await });
        match run_loop.join_next().await {
            Some(Ok(end)) => Ok(match end.map_err(failure)? {
                RunLoopEnd::Ended(_) => Outcome::Ended,
                RunLoopEnd::Waiting(_) => Outcome::Waiting,
                RunLoopEnd::Stopped => Outcome::Stopped,
            }),
            Some(Err(error)) => Err(Failure::new(Exit::Temporary, format!("a defect of planctl: {error}"))),
            None => Ok(Outcome::Stopped),
        }
    }

    async fn until_settled(&self, handle: Handle, no_wait: bool) -> Result<Outcome, Failure> {
        let mut looks = 0;
        loop {
            let since = self.newest_seq(handle).await?;
            let view = self.status(handle).await?;
            if view.state.is_over() {
                // The daemon looks at the worktree right after the end.
                let is_due = view.worktree.as_ref().is_some_and(|tree| tree.is_made && tree.commit.is_none());
                looks += 1;
                if !is_due || looks > LOOKS_AFTER_END {
                    return Ok(Outcome::Ended);
                }
                tokio::time::sleep(LOOK).await;
                continue;
            }
            if no_wait && waits_for_people(&view) {
                return Ok(Outcome::Waiting);
            }
            self.wait_for_news(handle, since, LOOK_AGAIN).await?;
        }
    }

    /// Waits until a run's history has a line after `since`, or for at most this long, a second at the longest.
    pub async fn wait_for_news(&self, handle: Handle, since: u64, most: Duration) -> Result<(), Failure> {
        let (path, since) = (format!("/v1/runs/{}/history", handle.0), since.to_string());
        let query = [("since", since.as_str()), ("limit", "1"), ("wait", "1")];
        match tokio::time::timeout(most, self.api.get::<Vec<EventLine>>(&path, &query)).await {
            Ok(lines) => lines.map(drop),
            Err(_) => Ok(()),
        }
    }
}
