//! The client of the API: one method per call, for plans, runs, asks and history.
//!
//! All of them speak planctl's API. Where a daemon of this state directory runs, or one is named, it answers; else its
//! routes are called in this process, which then works on runs itself.

mod drafts;
mod following;
mod messages;
mod opening;
mod workers;

use std::path::Path;
use std::time::Duration;

use planctl_api::Problem;
use planctl_api::wire::calls::{
    AcceptedView, AcknowledgeCall, AnswerCall, AnswerWord, Approving, CancelCall, DecideCall, DiffCall,
    PauseCall, PlaceCall, PlanCall, ResumeCall, RunName, RunPlanView, StandingCall, Start, StartCall,
    StartedView, TurnCall,
};
use planctl_api::wire::{
    AskList, AskPage, AskView, AuditView, BundlePage, CheckpointView, CleanCall, CleanView, ContextView,
    DatabaseView, Decided, EventLine, FollowUpView, KeptRevision, LibraryRuns, LogView, OutputView,
    PlanDecisionView, PlanDiffView, PromptList, RevisionList, RunList, RunView, SaluteView, SessionView,
    TraversalView, WhyView,
};
use planctl_config::{Agent, Config};
use planctl_engine::{Answer, RunId};
use planctl_server::check::Checked;
use planctl_server::{Cleaning, ServerNode, ServiceError};
use planctl_view::Form;

use crate::api::{self, Api};
use crate::checking::check_failure;
use crate::failure::{Exit, Failure};
use crate::plan_files;

pub use following::Outcome;
pub use opening::{cluster_failure, stop_after, take_place};

/// planctl's API, and what every call of it says of this side.
pub struct Client {
    api: Api,
    workspace: String,
    config: Config,
    /// This process's place at the database, where no daemon answers.
    server_node: Option<ServerNode>,
}

/// The id of a run that a person named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(RunId);

impl Handle {
    /// Returns the run's id.
    pub fn id(self) -> RunId {
        self.0
    }
}

/// Where a plan stands before anything is done with it.
pub use planctl_api::wire::calls::StandingView as Standing;

/// A database that a command can do without is waited for so long at most, unless the command has to be quicker.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// The database did not answer, or not soon enough.
#[derive(Clone, Copy, Debug)]
pub struct NoAnswer;

/// The result of starting a plan.
pub enum How {
    /// A run can be worked on.
    Ready {
        /// The run.
        handle: Handle,
        /// Its name.
        run: String,
        /// Says that it had begun before.
        is_taken_up: bool,
    },
    /// It is done, and no other run was asked for.
    AlreadyDone {
        /// The run's name.
        run: String,
    },
    /// A person has to approve first.
    NeedsApproval {
        /// The run's name.
        run: String,
        /// The number of the ask.
        ask: u64,
        /// Why no policy approved it, a line for each.
        no_policy: Vec<String>,
    },
    /// The text is not the one that was approved.
    ChangedSinceApproval {
        /// The text that was.
        approved_text: String,
        /// The unfinished run that goes on with it.
        run: Option<String>,
    },
}

impl Client {
    /// Returns the API itself, for calls that are made by their paths.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Says whether a daemon works on runs, so that they go on when this process ends.
    pub fn is_daemon(&self) -> bool {
        self.server_node.is_none()
    }

    /// Returns the address of the daemon that was used and does not answer any more.
    pub async fn gone_daemon(&self) -> Option<String> {
        let is_gone = self.is_daemon() && !self.api.is_there().await;
        is_gone.then(|| self.api.address())
    }

    /// Closes the connection; a private Postgres that nobody uses any more stops.
    pub async fn close(self) {
        if let Some(server_node) = self.server_node {
            server_node.close().await;
        }
    }

    /// Says where a plan stands that this worker would serve, where one is named; `again` asks for a new run of a plan that is done
    /// or failed.
    pub async fn plan_standing(
        &self,
        checked: &Checked,
        worker: Option<&Agent>,
        again: bool,
    ) -> Result<Standing, Failure> {
        let call = StandingCall { plan: self.plan(checked, worker), again };
        self.api.post("/v1/plans/standing", &[], &call).await
    }

    /// Returns the plan as a run executes it: the stored revision.
    pub async fn plan_of_run(&self, run: Handle) -> Result<Checked, Failure> {
        let plan: RunPlanView = self.api.get(&format!("/v1/runs/{}/plan", run.0), &[]).await?;
        Ok(planctl_server::check::restore_checked(plan))
    }

    /// Compares two texts of a plan by what they mean.
    pub async fn plan_diff(
        &self,
        checked: &Checked,
        since: &str,
        until: Option<&str>,
    ) -> Result<PlanDiffView, Failure> {
        let (since, until) = (since.to_owned(), until.map(str::to_owned));
        let call = DiffCall { plan: self.plan(checked, None), since, until };
        self.api.post("/v1/plans/diff", &[], &call).await
    }

    /// Approves a plan as it stands, verified with what will serve every role.
    pub async fn approve(&self, checked: &Checked, given: &Approving) -> Result<Decided, Failure> {
        let Approving { note, accept_changed, worker } = given.clone();
        let plan = self.plan(checked, worker.as_ref());
        let call = DecideCall { plan, note, accept_changed, repairs: None };
        self.api.post("/v1/plans/approve", &[], &call).await
    }

    /// Has the policy that approved a run approve the plan as a repair of it; a conflict says why that is left to a person.
    pub async fn approve_repair(&self, checked: &Checked, run: Handle) -> Result<Decided, Failure> {
        let (plan, repairs) = (self.plan(checked, None), Some(run.0.to_string()));
        let call = DecideCall { plan, note: None, accept_changed: Vec::new(), repairs };
        self.api.post("/v1/plans/approve", &[], &call).await
    }

    /// Returns the newest decision about a text, where this database has it.
    pub async fn decided_about(&self, checked: &Checked) -> Result<Option<PlanDecisionView>, Failure> {
        let plan = api::path_segment(&checked.path);
        let list: Result<RevisionList, Failure> = self
            .api
            .get(&format!("/v1/plans/{plan}/revisions"), &[("workspace", self.workspace.as_str())])
            .await;
        let kept = match list {
            Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
            list => list?.revisions,
        };
        let digest = checked.verification.digest.as_str();
        Ok(kept.iter().find(|kept| kept.digest == digest).and_then(KeptRevision::decided))
    }

    /// Rejects a plan.
    pub async fn reject(&self, checked: &Checked, note: &str) -> Result<Decided, Failure> {
        let (plan, note) = (self.plan(checked, None), Some(note.to_owned()));
        let call = DecideCall { plan, note, accept_changed: Vec::new(), repairs: None };
        self.api.post("/v1/plans/reject", &[], &call).await
    }

    /// Starts a run of a plan, or takes up the one that is not finished.
    pub async fn start(&self, checked: &Checked, start: &Start) -> Result<How, Failure> {
        // With a daemon, a role without an agent here waits for a worker.
        let waits_for_workers = start.waits_for_workers || self.is_daemon();
        let start = Start { waits_for_workers, ..start.clone() };
        let call = StartCall { plan: self.plan(checked, start.worker.as_ref()), start };
        Ok(match self.api.post("/v1/runs", &[], &call).await? {
            StartedView::Ready { id, run, is_taken_up } => {
                How::Ready { handle: handle_of(&id)?, run, is_taken_up }
            }
            StartedView::AlreadyDone { run } => How::AlreadyDone { run },
            StartedView::NeedsApproval { run, ask, no_policy, .. } => {
                How::NeedsApproval { run, ask, no_policy }
            }
            StartedView::ChangedSinceApproval { approved_text, run } => {
                How::ChangedSinceApproval { approved_text, run }
            }
        })
    }

    /// Takes a run up by itself.
    pub async fn resume(&self, handle: Handle, worker: Option<&Agent>) -> Result<Decided, Failure> {
        self.resume_from(handle, worker, None).await
    }

    /// Takes up a run at a step that passed, and says why; without one, where it stopped.
    pub async fn resume_from(
        &self,
        handle: Handle,
        worker: Option<&Agent>,
        from: Option<(u32, Option<String>)>,
    ) -> Result<Decided, Failure> {
        let (from, note) = from.unzip();
        let call =
            ResumeCall { place: self.place_call(), worker: worker.cloned(), from, note: note.flatten() };
        self.api.post(&format!("/v1/runs/{}/resume", handle.0), &[], &call).await
    }

    /// Pauses a run.
    pub async fn pause(&self, handle: Handle, note: Option<&str>) -> Result<Decided, Failure> {
        let call = PauseCall { note: note.map(str::to_owned) };
        self.api.post(&format!("/v1/runs/{}/pause", handle.0), &[], &call).await
    }

    /// Cancels a run for good.
    pub async fn cancel(&self, handle: Handle, note: Option<&str>) -> Result<Decided, Failure> {
        let call = CancelCall { note: note.map(str::to_owned) };
        self.api.post(&format!("/v1/runs/{}/cancel", handle.0), &[], &call).await
    }

    /// Acknowledges that a run failed.
    pub async fn acknowledge(&self, handle: Handle, note: Option<&str>) -> Result<Decided, Failure> {
        let call = AcknowledgeCall { note: note.map(str::to_owned) };
        self.api.post(&format!("/v1/runs/{}/acknowledge", handle.0), &[], &call).await
    }

    /// Returns what an interactive agent is to do at a run; waits so many seconds where nothing is known yet.
    pub async fn session(&self, handle: Handle, wait: u64) -> Result<SessionView, Failure> {
        let wait = wait.to_string();
        self.api.get(&format!("/v1/runs/{}/session", handle.0), &[("wait", wait.as_str())]).await
    }

    /// Says that an interactive agent ended its turn.
    pub async fn end_turn(&self, handle: Handle, call: &TurnCall) -> Result<AcceptedView, Failure> {
        self.api.post(&format!("/v1/runs/{}/session/turn", handle.0), &[], call).await
    }

    /// Finds the run that a person means: a name, an id, a beginning of either, `@last`, or a plan's path.
    pub async fn find(&self, given: &str) -> Result<Handle, Failure> {
        match self.run_named(given).await {
            // The API may be in another folder than the person, so a plan's path is worked out here.
            Err(missing) if missing.exit == Exit::NotFound && !given.starts_with('@') => {
                let workspace = Path::new(&self.workspace);
                let file = plan_files::lookup(workspace, Path::new(given)).ok().flatten();
                let path = planctl_server::check::plan_path(&file.unwrap_or_else(|| given.into()), workspace);
                match self.run_named(&path).await {
                    // The message names the text that the person typed, not the path made of it.
                    Err(failure) if failure.exit == Exit::NotFound => Err(about_number(missing, given)),
                    found => found,
                }
            }
            Err(none) if none.exit == Exit::NotFound => Err(none.next("planctl ls --all")),
            found => found,
        }
    }

    async fn run_named(&self, given: &str) -> Result<Handle, Failure> {
        self.find_in(given, &self.workspace).await
    }

    /// Finds the run of this name in a workspace, where it is the only one.
    pub async fn find_in(&self, name: &str, workspace: &str) -> Result<Handle, Failure> {
        let path = format!("/v1/runs/{}/name", api::path_segment(name));
        let found: RunName = self.api.get(&path, &[("workspace", workspace)]).await?;
        handle_of(&found.id)
    }

    /// Returns where a run stands.
    pub async fn status(&self, handle: Handle) -> Result<RunView, Failure> {
        self.api.get(&format!("/v1/runs/{}", handle.0), &[]).await
    }

    /// Returns the runs of this workspace, or of all.
    pub async fn list(&self, all_workspaces: bool) -> Result<RunList, Failure> {
        let here = [("workspace", self.workspace.as_str())];
        self.api.get("/v1/runs", if all_workspaces { &[] } else { &here }).await
    }

    /// Returns what happened after a place in a run's history.
    pub async fn events(&self, handle: Handle, since: u64) -> Result<Vec<EventLine>, Failure> {
        let (since, limit) = (since.to_string(), EVENTS_MAX.to_string());
        let query = [("since", since.as_str()), ("limit", limit.as_str())];
        self.api.get(&format!("/v1/runs/{}/history", handle.0), &query).await
    }

    /// Returns the newest events of a run, at most `count`, in their order.
    pub async fn newest_events(&self, handle: Handle, count: usize) -> Result<Vec<EventLine>, Failure> {
        let count = count.to_string();
        let path = format!("/v1/runs/{}/history", handle.0);
        self.api.get(&path, &[("newest", count.as_str())]).await
    }

    /// Returns the place of the newest event in a run's history; none has zero.
    pub async fn newest_seq(&self, handle: Handle) -> Result<u64, Failure> {
        Ok(self.newest_events(handle, 1).await?.last().map_or(0, |line| line.seq))
    }

    /// Returns the attempts of a run's steps.
    pub async fn logs(
        &self,
        handle: Handle,
        step: Option<u32>,
        attempt: Option<u16>,
    ) -> Result<LogView, Failure> {
        let query = attempt_query(step, attempt);
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.api.get_all_pages(&format!("/v1/runs/{}/logs", handle.0), &query).await
    }

    /// Returns what workers and contracts of a run printed after a place.
    pub async fn output(&self, handle: Handle, since: u64) -> Result<OutputView, Failure> {
        let since = since.to_string();
        self.api.get(&format!("/v1/runs/{}/output", handle.0), &[("since", since.as_str())]).await
    }

    /// Returns what the agents of a run were told, as far as the machine that answers delivered it.
    pub async fn prompts(
        &self,
        handle: Handle,
        step: Option<u32>,
        attempt: Option<u16>,
    ) -> Result<PromptList, Failure> {
        let query = attempt_query(step, attempt);
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.api.get(&format!("/v1/runs/{}/prompts", handle.0), &query).await
    }

    /// Returns the SALUTE report of a run.
    pub async fn salute(&self, handle: Handle) -> Result<SaluteView, Failure> {
        self.api.get(&format!("/v1/runs/{}/salute", handle.0), &[]).await
    }

    /// Says where a run is on its way through its graph.
    pub async fn traversal(&self, handle: Handle) -> Result<TraversalView, Failure> {
        self.api.get(&format!("/v1/runs/{}/traversal", handle.0), &[]).await
    }

    /// Says what a run is resumed from.
    pub async fn checkpoint(&self, handle: Handle) -> Result<CheckpointView, Failure> {
        self.api.get(&format!("/v1/runs/{}/checkpoint", handle.0), &[]).await
    }

    /// Explains why a step is where it is.
    pub async fn why(&self, handle: Handle, step: &str) -> Result<WhyView, Failure> {
        self.api.get(&format!("/v1/runs/{}/why/{}", handle.0, api::path_segment(step)), &[]).await
    }

    /// Writes the brief of a run for an agent that claims no items.
    pub async fn context(&self, handle: Handle, form: Form) -> Result<ContextView, Failure> {
        self.api.get(&format!("/v1/runs/{}/context", handle.0), &[("form", form.as_str())]).await
    }

    /// Returns a part of a run's bundle.
    pub async fn bundle(&self, handle: Handle, after: u64) -> Result<BundlePage, Failure> {
        self.api.get(&format!("/v1/runs/{}/bundle", handle.0), &[("since", &after.to_string())]).await
    }

    /// Checks the history of a run, or of all.
    pub async fn audit(&self, handle: Option<Handle>) -> Result<AuditView, Failure> {
        match handle {
            None => self.api.get_all_pages("/v1/audit", &[("limit", AUDITED_AT_ONCE)]).await,
            Some(handle) => self.api.get(&format!("/v1/runs/{}/audit", handle.0), &[]).await,
        }
    }

    /// Removes worktrees of runs that are over.
    pub async fn clean(&self, cleaning: Cleaning) -> Result<CleanView, Failure> {
        let call = CleanCall {
            workspace: (!cleaning.everywhere).then(|| self.workspace.clone().into()),
            failed: cleaning.failed,
            discards: cleaning.discards,
            dry_run: cleaning.dry_run,
        };
        self.api.post("/v1/worktrees/clean", &[], &call).await
    }

    /// Says which run follows a run that is done, or why none does.
    pub async fn follow_up(&self, handle: Handle) -> Result<FollowUpView, Failure> {
        self.api.get(&format!("/v1/runs/{}/follow-up", handle.0), &[]).await
    }

    /// Says how the newest runs of each entry of the library ended in this workspace.
    pub async fn library_runs(&self) -> Result<LibraryRuns, Failure> {
        self.api.get("/v1/library/runs", &[("workspace", self.workspace.as_str())]).await
    }

    /// Returns how the database is.
    pub async fn database(&self) -> Result<DatabaseView, Failure> {
        self.api.get("/v1/database", &[]).await
    }

    /// Returns the open asks of a run, or of all.
    pub async fn asks(&self, handle: Option<Handle>) -> Result<AskList, Failure> {
        let run = handle.map(|handle| handle.0.to_string());
        let query: Vec<(&str, &str)> = run.iter().map(|run| ("run", run.as_str())).collect();
        self.api.get_all_pages("/v1/approvals", &query).await
    }

    /// Returns one ask with what a person needs to decide it.
    pub async fn ask(&self, id: u64) -> Result<AskPage, Failure> {
        self.api.get(&format!("/v1/approvals/{id}"), &[]).await
    }

    /// Answers an ask.
    pub async fn answer(&self, id: u64, answer: Answer, note: Option<&str>) -> Result<Decided, Failure> {
        self.answer_given(id, answer, &Approving::with_note(note)).await
    }

    /// Answers an ask; of an approval, names the protected files that are meant as they are.
    pub async fn answer_given(&self, id: u64, answer: Answer, given: &Approving) -> Result<Decided, Failure> {
        let Approving { note, accept_changed, worker: _ } = given.clone();
        let call =
            AnswerCall { place: self.place_call(), answer: AnswerWord::of(&answer), note, accept_changed };
        self.api.post(&format!("/v1/approvals/{id}/answer"), &[], &call).await
    }

    fn plan(&self, checked: &Checked, worker: Option<&Agent>) -> PlanCall {
        PlanCall {
            workspace: self.workspace.clone().into(),
            path: checked.path.clone(),
            text: checked.source.text().to_owned(),
            folder: Some(checked.folder.clone()).filter(|folder| !folder.is_empty()),
            config: Some(self.config.clone()),
            worker: worker.cloned(),
        }
    }

    /// Returns the workspace of this command.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Returns the workspace and the configuration of this command.
    pub fn place_call(&self) -> PlaceCall {
        PlaceCall { workspace: Some(self.workspace.clone().into()), config: Some(self.config.clone()) }
    }
}

/// Returns the run that an ask is about.
///
/// # Errors
///
/// Where a draft asks, which is no run.
pub fn run_of(ask: &AskView) -> Result<Handle, Failure> {
    match &ask.run_id {
        Some(run) => handle_of(run),
        None => Err(Failure::new(Exit::Conflict, format!("ask {} is of a draft, not of a run", ask.id))
            .next(format!("planctl approvals show {}", ask.id))),
    }
}

/// Says whether a word is a number, as people see numbers of steps and of asks.
pub fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Adds, where a number was typed for a run, what else it may be the number of.
fn about_number(missing: Failure, given: &str) -> Failure {
    if !is_number(given) {
        return missing;
    }
    missing.help(format!(
        "`planctl ls` lists the names of runs; of step {given}: planctl why {given}; of ask {given}: planctl approvals show {given}"
    ))
}

fn attempt_query(step: Option<u32>, attempt: Option<u16>) -> Vec<(&'static str, String)> {
    let given =
        [("step", step.map(|step| step.to_string())), ("attempt", attempt.map(|one| one.to_string()))];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Returns the handle of a run by its id.
///
/// # Errors
///
/// Where a daemon sent what is no id.
pub fn handle_of(id: &str) -> Result<Handle, Failure> {
    let run = RunId::parse(id);
    run.map(Handle)
        .ok_or_else(|| Failure::new(Exit::Unavailable, format!("could not read the run's id {id:?}")))
}

/// So many runs are audited by one call, since that of a long run takes a while.
const AUDITED_AT_ONCE: &str = "20";

/// The most events that are read at once.
const EVENTS_MAX: usize = 500;

/// Returns this machine's time, for people to see how long ago something was.
pub fn now_unix_seconds() -> f64 {
    planctl_server::now().as_micros() as f64 / 1e6
}

/// Returns this machine's time in millionths of a second since 1970, for people.
pub fn now_unix_micros() -> i64 {
    planctl_server::now().as_micros()
}

/// Says why a service could not do what was asked.
pub fn failure(error: ServiceError) -> Failure {
    if let ServiceError::Check(error) = error {
        return check_failure(error);
    }
    if let ServiceError::Cluster(error) = error {
        return cluster_failure(error);
    }
    let is_final = matches!(&error, ServiceError::Store(error) if planctl_server::is_final(error));
    let failure = api::failure_of(&Problem::from(error));
    // A service manager knows by it that no later try helps.
    if is_final { Failure { exit: Exit::Configuration, ..failure } } else { failure }
}
