//! One item of `planctl worker run`: an agent works, the lease is renewed, its output is shown, its end is reported.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use planctl_api::wire::calls::{ClaimedView, ProfileView};
use planctl_api::wire::{WorkerEvent, moment};
use planctl_engine::{AgentSaid, ItemId, Role};
use planctl_harness::{
    Agent, Assignment, ContextEntry, Spawner, TreeName, Worked, denial, digest_of, read_context,
};
use tokio::sync::watch;

use super::pool::{Phase, WorkerPool, is_transient, wait_until_past};
use crate::failure::{Exit, Failure};
use crate::reports::{LeasedItem, Word};

/// How often output is sent to the daemon.
const LOG_EVERY: Duration = Duration::from_secs(1);
/// The most bytes of output that are sent each time; the rest is in the report.
const LOG_BYTES_MAX: usize = 64 << 10;
/// The longest that the last output may take to be sent, before the report.
const REST_WITHIN: Duration = Duration::from_secs(2);
/// The longest pause before a report is tried again.
const REPORT_AGAIN_MOST: Duration = Duration::from_secs(5);

/// Between two heartbeats at least: each waits for news itself.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// And after one that was not answered: a quarter of what is left of the lease, between these.
const BEAT_AGAIN_LEAST: Duration = Duration::from_millis(100);
const BEAT_AGAIN: Duration = Duration::from_secs(5);

/// How many heartbeats are due while a lease lasts.
const LEASE_HEARTBEATS: u32 = 3;

/// Output of the agent that was not sent to the daemon yet.
type Printed = Arc<Mutex<Vec<u8>>>;

/// How the work on an item ended.
enum Done {
    /// The agent came to its end.
    Worked(Box<Worked>),
    /// The lease ended, so no report is due.
    Over(&'static str),
}

impl WorkerPool {
    /// Lets the agent work on an item and reports the result.
    pub(super) async fn see_through(&self, claimed: &ClaimedView) -> Result<(), Failure> {
        let held = LeasedItem::new(&self.api, &claimed.item, &claimed.token)?;
        let Some(agent) = self.agent(&claimed.role) else {
            return Err(Failure::new(Exit::Configuration, "no agent was named"));
        };
        self.lines.print_item(WorkerEvent::Started, claimed, "started")?;
        let began = planctl_server::instant();
        match self.run_agent(&agent, claimed, &held).await {
            Done::Over(why) => self.lines.print_item(WorkerEvent::Lost, claimed, why),
            Done::Worked(worked) => {
                let word = Word::of(self.settings.priced(worked.said), &worked.outputs);
                self.report(claimed, &held, &word, began.elapsed()).await
            }
        }
    }

    fn agent(&self, role: &str) -> Option<Agent> {
        let mut agent = self.settings.agent(&Role::new(role), &self.scratch)?;
        agent.idle_timeout = self.given.idle_timeout.or(agent.idle_timeout);
        for (name, value) in &self.given.variables {
            agent.environment.push((name.into(), value.into()));
        }
        Some(agent)
    }

    /// Lets the agent work as long as the lease is held.
    async fn run_agent(&self, agent: &Agent, claimed: &ClaimedView, held: &LeasedItem) -> Done {
        let (ended, mut gone) = watch::channel(false);
        let phase = self.phase.clone();
        let mut cancel = Box::pin(async move {
            tokio::select! {
                _ = gone.wait_for(|gone| *gone) => {}
                () = wait_until_past(phase, Phase::Draining) => {}
            }
        });
        let printed = Printed::default();
        let heard = Arc::clone(&printed);
        let mut watch = move |_, bytes: &[u8]| append_printed(&heard, bytes);
        let assignment = self.assignment(claimed);
        let mut work = Box::pin(async {
            tokio::select! {
                spawner = self.end_earlier_agent(claimed, &printed) => {
                    agent.run_item(&spawner, &assignment, &mut watch, cancel).await
                }
                () = &mut cancel => Worked::without_output(AgentSaid::Released),
            }
        });
        let mut minded = Box::pin(keep_lease(held, claimed.heartbeat_seconds));
        let mut shown = Box::pin(stream_output(held, &printed));
        let over = tokio::select! {
            worked = &mut work => {
                drop(shown);
                // The report waits at most this long for the last output, and only while the lease is renewed.
                tokio::select! {
                    () = show_rest(held, &printed) => {}
                    _ = &mut minded => {}
                    () = tokio::time::sleep(REST_WITHIN) => {}
                }
                return Done::Worked(Box::new(worked));
            }
            why = &mut minded => why,
            () = &mut shown => "nothing is shown any more",
        };
        ended.send_replace(true);
        work.await;
        // The next holder of the workspace waits for this release, or for the end of the lease.
        if let Err(failure) = held.say(&Word::Release).await {
            tracing::debug!(error = %failure.message, "what was said of work that was taken back");
        }
        Done::Over(over)
    }

    /// Ends what is left on this host of an earlier agent of the step; returns what starts the next one under the same name.
    async fn end_earlier_agent(&self, claimed: &ClaimedView, printed: &Printed) -> Spawner {
        // An id of another form is that of a daemon of another version.
        let Some((run, at)) = ItemId::new(claimed.item.as_str()).agent_try() else {
            return self.spawner.clone();
        };
        let name = TreeName::of_agent(run, &at.node);
        name.end_earlier_agent(|words| append_printed(printed, format!("planctl {words}\n").as_bytes()))
            .await;
        self.spawner.with_name(name)
    }

    /// Returns the assignment of the daemon, restricted by this worker's own configuration of the role.
    fn assignment(&self, claimed: &ClaimedView) -> Assignment {
        let role = Role::new(claimed.role.as_str());
        let own = self.timeouts.get(&role).copied().into_iter().chain(self.given.timeout).min();
        let allowed = Duration::try_from_secs_f64(claimed.deadline_seconds).unwrap_or(Duration::ZERO);
        let (deadline, deadline_at) = match own.filter(|own| *own < allowed) {
            Some(own) => (own, moment(planctl_server::now().after(own))),
            None => (allowed, claimed.deadline.clone()),
        };
        let mut prompt = claimed.prompt.clone();
        let mut denied = self.settings.denied(&role);
        denied.retain(|effect| !claimed.denied.contains(effect));
        if !denied.is_empty() {
            prompt.push_str(&denial(&denied));
        }
        Assignment {
            item: claimed.item.clone(),
            run: claimed.run.clone(),
            plan: claimed.work.payload.plan_id.clone(),
            step: claimed.step.to_string(),
            step_title: claimed.step_title.clone(),
            node: claimed.node.clone(),
            role: claimed.role.clone(),
            profile: claimed.work.payload.profile.as_ref().map(ProfileView::profile),
            thread: claimed.work.payload.profile.as_ref().and_then(|profile| profile.thread.clone()),
            attempt: claimed.attempt,
            attempts_max: claimed.attempts_max,
            workspace: claimed.workspace.clone(),
            prompt,
            context: context(claimed),
            deadline,
            deadline_at: Some(deadline_at),
            budget_tokens: claimed.budget.tokens,
            budget_micro_usd: claimed.budget.usd.map(|usd| (usd * 1e6).round() as u64),
            traceparent: claimed.traceparent.clone(),
            locks: Vec::new(),
        }
    }

    /// Sends the report until the daemon has accepted or refused it.
    async fn report(
        &self,
        claimed: &ClaimedView,
        held: &LeasedItem,
        word: &Word,
        time: Duration,
    ) -> Result<(), Failure> {
        let mut pause = LOG_EVERY;
        loop {
            match held.say(word).await {
                Ok(accepted) => return self.lines.print_accepted(claimed, word, time, &accepted.follows),
                Err(failure) if failure.exit == Exit::Conflict => {
                    return self.lines.print_item(WorkerEvent::Lost, claimed, &failure.message);
                }
                Err(failure) if is_transient(&failure) && self.phase() < Phase::Ending => {
                    self.lines.print_item(WorkerEvent::Away, claimed, &failure.message)?;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = wait_until_past(self.phase.clone(), Phase::Draining) => {}
                    }
                    pause = (pause * 2).min(REPORT_AGAIN_MOST);
                }
                Err(failure) => {
                    return self.lines.print_item(WorkerEvent::Refused, claimed, &failure.message);
                }
            }
        }
    }
}

/// Renews the lease periodically and notices at once when it ends; returns why the work ended.
///
/// The daemon renews when it reads a heartbeat, and answers after the wait that it asks for. Both the wait and the time that the answer
/// may take shrink with what is left of the lease, so that several are tried: the daemon may stand still, or one may be lost on its way.
async fn keep_lease(held: &LeasedItem, heartbeat_seconds: u64) -> &'static str {
    let pause = Duration::from_secs(heartbeat_seconds.max(1));
    let lease = pause * LEASE_HEARTBEATS;
    let mut asked_at = planctl_server::instant();
    let (mut ends_at, mut rest) = (asked_at + lease, BEAT_EVERY);
    loop {
        tokio::time::sleep_until(ends_at.min(asked_at + jittered(rest))).await;
        asked_at = planctl_server::instant();
        let left = ends_at.saturating_duration_since(asked_at);
        if left.is_zero() {
            // Another worker may already work on it, in the same workspace.
            return "the daemon was away for longer than the lease lasts; the work was ended";
        }
        let wait = pause.min(left / 2);
        rest = (left / 4).clamp(BEAT_AGAIN_LEAST, BEAT_AGAIN);
        match tokio::time::timeout(wait + (left - wait) / 4, held.send_heartbeat(wait)).await {
            Ok(Ok(view)) if view.cancel => {
                return "the run is over, or the work was taken back; the work was ended";
            }
            // It counts from when it was asked for: the answer takes its time.
            Ok(Ok(_)) => (ends_at, rest) = (asked_at + lease, BEAT_EVERY),
            Ok(Err(failure)) if matches!(failure.exit, Exit::Conflict | Exit::NotFound) => {
                return "its lease was lost; the work was ended";
            }
            // The lease outlives a short outage.
            Ok(Err(failure)) => tracing::warn!(error = %failure.message, "a lease was not renewed"),
            Err(_) => tracing::warn!("a heartbeat was not answered"),
        }
    }
}

/// Changes a span by up to a tenth, so that many workers do not call at the same moments.
fn jittered(span: Duration) -> Duration {
    let random = uuid::Uuid::now_v7().as_bytes()[15];
    span.mul_f64(0.9 + 0.2 * f64::from(random) / 255.0)
}

/// Sends the output to the daemon periodically; never ends.
async fn stream_output(held: &LeasedItem, printed: &Printed) {
    loop {
        tokio::time::sleep(LOG_EVERY).await;
        show_rest(held, printed).await;
    }
}

async fn show_rest(held: &LeasedItem, printed: &Printed) {
    let bytes = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    if bytes.is_empty() {
        return;
    }
    if let Err(failure) = held.log(&String::from_utf8_lossy(&bytes)).await {
        tracing::debug!(error = %failure.message, "what was printed is not shown");
    }
}

fn append_printed(printed: &Printed, bytes: &[u8]) {
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    printed.extend_from_slice(bytes);
    let surplus = printed.len().saturating_sub(LOG_BYTES_MAX);
    printed.drain(..surplus);
}

/// Reads the subscribed files for the context folder, where they are still what the prompt shows.
fn context(claimed: &ClaimedView) -> Vec<ContextEntry> {
    let paths = claimed.context.iter().filter_map(|entry| entry.path.as_deref());
    let read = read_context(&claimed.workspace, paths).unwrap_or_default();
    let is_same = |entry: &ContextEntry| {
        let shown = claimed.context.iter().find(|shown| shown.reference == entry.source);
        let digest = entry.bytes.as_deref().map(|bytes| digest_of(bytes).as_str().to_owned());
        shown.is_some_and(|shown| shown.sha256 == digest)
    };
    read.into_iter().filter(is_same).collect()
}
