//! Starts runs of plans: new ones, or those that are open already.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use planctl_api::wire::Decided;
use planctl_api::wire::calls::{Approving, ResumeCall, Start};
use planctl_api::{Next, Starting};
use planctl_config::{Agent, WorkspaceMode};
use planctl_engine::{Actor, Answer, Decision, Digest, End, Graph, RunId, RunStatus, Tier};
use planctl_harness::{FolderIdentity, Permissions, Program, RepositoryIdentity, blocking_in_place};
use planctl_store::{Approval, NewRun, NewWorktree, Plan, RunRow};

use crate::node::instance::lock_exclusively;
use crate::node::services::{ServiceError, Services};
use crate::plans::agent_scripts::approved_worker;
use crate::plans::rules::votes_wanted;
use crate::plans::{Approved, canonical};
use crate::runs::policy_approvals::policy_of;
use crate::runs::settings::RunSettings;
use crate::verify::agent_program::agent_program;
use crate::verify::check::Checked;
use crate::workspaces::baselines::Unnamed;
use crate::workspaces::notes;
use crate::workspaces::worktrees::Planned;

/// How long a start waits for another one in its workspace.
pub(crate) const STARTS_WAIT_MAX: Duration = Duration::from_secs(60);

/// The result of a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Started {
    /// A run is ready to be worked on.
    Ready {
        /// The run.
        run: RunId,
        /// Its name.
        name: String,
        /// Says that it had begun before and goes on.
        is_taken_up: bool,
    },
    /// The plan's run is done, and nobody asked for another.
    AlreadyDone {
        /// The run's name.
        name: String,
    },
    /// A person has to approve first; the ask is open.
    NeedsApproval {
        /// The run that waits.
        run: RunId,
        /// Its name.
        name: String,
        /// The ask's number.
        ask: i64,
        /// Why no policy approved it, where there are policies.
        no_policy: Vec<String>,
    },
    /// The text is not the one that was approved.
    ChangedSinceApproval {
        /// The text that was approved.
        approved_text: String,
        /// The unfinished run that goes on with it, where there is one.
        run: Option<String>,
    },
}

impl Services {
    /// Starts a run of a verified plan, or takes up the one that is not finished.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotVerified`], [`ServiceError::NoAgent`], [`ServiceError::Isolation`], and those of the store.
    pub async fn start(&self, checked: &Checked, start: &Start) -> Result<Started, ServiceError> {
        // Two that start one plan at the same moment share its run; the second takes up what the first began.
        let _starting = self.lock_starts(STARTS_WAIT_MAX).await?;
        if let Some(request) = self.caller.request
            && let Some(run) = self.store.run_of_request(request).await?
        {
            return self.repeated_start(&run, checked, start).await;
        }
        let standing = self.standing(checked).await?;
        let is_approved = start.approve.is_some() || standing.approval.is_some();
        if let Some(run) = &standing.newest_run
            && let Some(started) = self.take_up(run, checked, start, is_approved).await?
        {
            return Ok(started);
        }
        if standing.approval.is_none()
            && start.approve.is_none()
            && checked.verification.is_verified()
            && let Some(approved_text) = standing.approved_before
        {
            return Ok(Started::ChangedSinceApproval { approved_text, run: None });
        }
        if let Some(approval) = standing.approval.as_ref().filter(|_| start.approve.is_none()) {
            refuse_other_worker(approval, start.worker.as_ref(), &checked.path)?;
        }
        self.refuse_unless_startable(checked, start).await?;
        self.refuse_over_caps().await?;
        let planned = self.planned_worktree(checked).await?;
        if let Some(graph) = &checked.verification.graph {
            self.refuse_unless_branches_can_fork(graph).await?;
        }
        let plan = self.store_revision(checked).await?;
        let sub_plans = self.keep_sub_plans(checked, "", start.worker.as_ref()).await?;
        let (approval, no_policy) = self.approval_at_start(None, &plan, checked, start, &sub_plans).await?;
        let (run, settings) =
            self.make_run((checked, &plan, planned), approval.as_ref(), start, sub_plans, None).await?;
        let approval = approval.as_ref().ok_or(no_policy);
        let started = self.begin_or_ask(&run, approval, &settings.sub_plans, false).await?;
        self.with_own_vote(started, start).await
    }

    /// Waits until nobody else starts a run in the workspace, for this long at most, and keeps others from it until the answer is
    /// dropped.
    pub(super) async fn lock_starts(&self, within: Duration) -> Result<Arc<OwnedFd>, ServiceError> {
        let workspace = self.own_folder()?;
        let starting = format!("starting/{}", notes::name_of(workspace));
        let mut named = String::new();
        let hears = |holder: &str| {
            holder.clone_into(&mut named);
            self.server_node.say(&format!("waits for another start in {}: {holder}", workspace.display()));
        };
        let locking = lock_exclusively(self.server_node.state_dir(), &starting, hears);
        match tokio::time::timeout(within, locking).await {
            Ok(locked) => locked,
            Err(_elapsed) => Err(ServiceError::TooMany {
                what: format!(
                    "start a run in {}, since another start there does not end: {named}",
                    workspace.display()
                ),
                next: Next::by_hand("let that process go on, or end it"),
            }),
        }
    }

    /// Makes a run of a kept plan and submits it: approved by what is given, else its plan ask opens. Where it is a text for a paused
    /// run, the rules of that run hold, too.
    pub(super) async fn make_run(
        &self,
        (checked, plan, planned): (&Checked, &Plan, Option<Planned>),
        approval: Option<&Approval>,
        start: &Start,
        sub_plans: BTreeMap<String, Digest>,
        revised: Option<&RunRow>,
    ) -> Result<(RunRow, RunSettings), ServiceError> {
        let shown = match approval {
            Some(_) => None,
            None => Some(self.where_approved(None, checked).await?.1),
        };
        let isolation = self.tier().await?;
        let mut asks = self.rules_for(checked, &sub_plans).await?;
        if let Some(run) = revised {
            asks = asks.joined(RunSettings::of(run)?.asks);
        }
        let place = self.place_of(None)?;
        let settings = RunSettings {
            asks,
            revises: revised.map(|run| run.id),
            sub_plans,
            shown,
            auto_answer: start.auto_answer,
            home: blocking_in_place(|| FolderIdentity::of(&place)).ok(),
            repository: blocking_in_place(|| RepositoryIdentity::of(&place)),
            ..RunSettings::new(&self.caller.config, start.worker.clone(), isolation)
                .with_scripts_of(&place)?
        };
        self.store_script_copies(&place, &settings).await?;
        let new = NewRun {
            plan: plan.id,
            revision: &checked.verification.digest,
            stem: &stem(checked),
            approval: approval.map(|approval| approval.id),
            settings: &settings_json(&settings),
            served: &settings.served(),
            request: self.caller.request,
        };
        let run = match &planned {
            None => self.store.create_run(&new).await?,
            Some(planned) => {
                let worktree = NewWorktree {
                    folder: &planned.folder,
                    inside: &planned.inside,
                    base: &planned.base,
                    left_behind: planned.left_behind,
                };
                self.store.create_run_apart(&new, &worktree).await?
            }
        };
        self.decide(run.id, Decision::Submit, None).await?;
        Ok((run, settings))
    }

    /// Says what came of a start whose run was made and whose answer got lost.
    async fn repeated_start(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
    ) -> Result<Started, ServiceError> {
        match run.head.status {
            RunStatus::New | RunStatus::Awaiting => {
                self.refuse_unless_startable(checked, start).await?;
                let folder = RunSettings::of(run)?.folder;
                let sub_plans = self.keep_sub_plans(checked, &folder, start.worker.as_ref()).await?;
                self.submit_run(run, checked, start, &sub_plans, false).await
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused | RunStatus::Ended { .. } => {
                Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up: false })
            }
        }
    }

    /// Submits a run that has not begun, and approves it where the start says so.
    async fn submit_run(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
        is_taken_up: bool,
    ) -> Result<Started, ServiceError> {
        if run.head.status == RunStatus::New {
            self.decide(run.id, Decision::Submit, None).await?;
        }
        self.plan_worktree_anew(run, checked).await?;
        self.change_worker(run, start.worker.as_ref()).await?;
        let plan = self.store_revision(checked).await?;
        let (approval, no_policy) =
            self.approval_at_start(Some(run), &plan, checked, start, sub_plans).await?;
        let approval = approval.as_ref().ok_or(no_policy);
        let started = self.begin_or_ask(run, approval, sub_plans, is_taken_up).await?;
        self.with_own_vote(started, start).await
    }

    /// Casts the vote of a person who starts a run with their approval, where a rule wants votes.
    async fn with_own_vote(&self, started: Started, start: &Start) -> Result<Started, ServiceError> {
        let (Started::NeedsApproval { run, name, ask, mut no_policy }, Some(given)) =
            (started.clone(), &start.approve)
        else {
            return Ok(started);
        };
        let under = Some(&self.caller.config);
        match self.answer_under(ask.unsigned_abs(), Answer::Approve, given, under).await {
            Ok(Decided { voted: None, .. }) => Ok(Started::Ready { run, name, is_taken_up: false }),
            Ok(Decided { voted: Some(voted), .. }) => {
                no_policy.push(format!("your vote is counted: {} of {}", voted.have, voted.needed));
                Ok(Started::NeedsApproval { run, name, ask, no_policy })
            }
            Err(ServiceError::NotAsked { what, .. }) => {
                no_policy.push(format!("could not {what}"));
                Ok(Started::NeedsApproval { run, name, ask, no_policy })
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses one more run where as much is open as may be (row 92).
    pub(super) async fn refuse_over_caps(&self) -> Result<(), ServiceError> {
        let caps = self.caller.caps;
        let (runs, asks) = self.store.open_counts().await?;
        if runs >= u64::from(caps.open_runs) {
            let what = format!("start: {runs} runs are open, and {} may be at once", caps.open_runs);
            return Err(ServiceError::TooMany { what, next: Next::ShowAllRuns });
        }
        self.refuse_over_asks_cap("start", asks)
    }

    /// Refuses one more ask where as many are open as may be.
    pub(crate) async fn refuse_too_many_asks(&self, verb: &str) -> Result<(), ServiceError> {
        let (_, asks) = self.store.open_counts().await?;
        self.refuse_over_asks_cap(verb, asks)
    }

    fn refuse_over_asks_cap(&self, verb: &str, asks: u64) -> Result<(), ServiceError> {
        let most = self.caller.caps.open_asks;
        if asks < u64::from(most) {
            return Ok(());
        }
        let what = format!("{verb}: {asks} asks wait for a person, and {most} may at once");
        Err(ServiceError::TooMany { what, next: Next::ShowAsks })
    }

    /// Goes on with a plan's newest run, where it is not over; `None` where a new one is due.
    async fn take_up(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        is_approved: bool,
    ) -> Result<Option<Started>, ServiceError> {
        let is_same_text = run.revision == checked.verification.digest;
        let is_same_place =
            run.worktree.is_some() == (self.caller.config.workspace.mode == WorkspaceMode::Worktree);
        match run.head.status {
            // A run within another one's is that one's affair.
            RunStatus::Ended { .. } if run.around.is_some() => return Ok(None),
            RunStatus::Ended { end: End::Done } if is_same_text && !start.again => {
                return Ok(Some(Started::AlreadyDone { name: run.name.clone() }));
            }
            RunStatus::Ended { end: End::Failed | End::Aborted } | RunStatus::Paused
                if is_same_text && (!start.again || run.head.status == RunStatus::Paused) =>
            {
                self.refuse_other_place(run)?;
                if let Some(given) = &start.approve {
                    self.approve(checked, given).await?;
                }
                let call = ResumeCall { worker: start.worker.clone(), ..ResumeCall::default() };
                self.resume(run.id, &call).await?;
            }
            RunStatus::Ended { .. } => return Ok(None),
            RunStatus::New | RunStatus::Awaiting if !is_same_text || !is_same_place => {
                let note = Some(match is_same_text {
                    true => "it shall work in another kind of workspace",
                    false => "the plan's text changed before it was approved",
                });
                self.decide(run.id, Decision::Cancel, note).await?;
                return Ok(None);
            }
            RunStatus::New | RunStatus::Awaiting => {
                self.refuse_unless_startable(checked, start).await?;
                let folder = RunSettings::of(run)?.folder;
                let sub_plans = self.keep_sub_plans(checked, &folder, start.worker.as_ref()).await?;
                // A person is shown the plan that will run; a plan handed in otherwise is asked anew (P18).
                if !is_approved && !self.is_unchanged_since_submitted(run, checked, start, &sub_plans).await?
                {
                    let note = "its configuration, its worker, a protected file or a plan within it changed before it \
                        was approved";
                    self.decide(run.id, Decision::Cancel, Some(note)).await?;
                    return Ok(None);
                }
                return Ok(Some(self.submit_run(run, checked, start, &sub_plans, true).await?));
            }
            RunStatus::Paused if !is_same_text && start.approve.is_some() => {
                self.change_worker(run, start.worker.as_ref()).await?;
                let given = start.approve.clone().unwrap_or_default();
                let decided = self.approve(checked, &given).await?;
                if let (Some(ask), Some(voted)) = (decided.ask, decided.voted) {
                    let ask = self.store.ask(i64::try_from(ask).unwrap_or(i64::MAX)).await?;
                    let no_policy = vec![format!("your vote is counted: {} of {}", voted.have, voted.needed)];
                    let (run, name) = (ask.run, ask.run_name);
                    return Ok(Some(Started::NeedsApproval { run, name, ask: ask.number, no_policy }));
                }
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused if !is_same_text => {
                let approved_text = canonical(&self.store.revision(run.plan, &run.revision).await?.source);
                // A paused run waits for just such a change; the others go on with the text that was approved.
                let goes_on = run.head.status != RunStatus::Paused;
                let run = goes_on.then(|| run.name.clone());
                return Ok(Some(Started::ChangedSinceApproval { approved_text, run }));
            }
            RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused => {
                self.refuse_other_place(run)?;
                self.server_node.try_worktree_again(run).await?;
                self.change_worker(run, start.worker.as_ref()).await?;
            }
        }
        Ok(Some(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up: true }))
    }

    /// Says whether a run that waits for its approval would be the same if it were handed in now.
    async fn is_unchanged_since_submitted(
        &self,
        run: &RunRow,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<bool, ServiceError> {
        let kept = RunSettings::of(run)?;
        let is_same_worker = start.worker.is_none() || start.worker == kept.worker;
        let is_same_script = kept.changed_scripts(&self.place_of(Some(run))?)?.is_none();
        let (_, now) = self.where_approved(Some(run), checked).await?;
        Ok(is_same_worker
            && is_same_script
            && kept.config == self.caller.config.approved()
            && kept.sub_plans == *sub_plans
            && self.refuse_unless_as_shown(run, kept.shown.as_ref(), &now).is_ok())
    }

    /// Returns the approval that serves a start: the one given with it, else one that holds, else that of a policy; where there
    /// is none, why no policy gave one.
    async fn approval_at_start(
        &self,
        run: Option<&RunRow>,
        plan: &Plan,
        checked: &Checked,
        start: &Start,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<(Option<Approval>, Vec<String>), ServiceError> {
        let digest = &checked.verification.digest;
        // One that works in a worktree of its own begins with what is committed.
        let within = run.filter(|run| run.is_under_way_within());
        let (folder, now) = self.where_approved(within, checked).await?;
        let wanted = votes_wanted(&self.rules_for(checked, sub_plans).await?);
        let given = start.approve.as_ref().filter(|_| wanted.is_none());
        let (given, decider) = match given {
            Some(given) => (given.clone(), self.clone()),
            None => {
                let config = self.caller.config.digest_in(&folder);
                if let Some(approval) = self.store.approval_for(plan.id, digest, &config).await? {
                    return Ok((Some(approval), Vec::new()));
                }
                if let Some(wanted) = wanted {
                    return Ok((None, vec![wanted]));
                }
                match self.policy_for(checked, start.worker.as_ref(), run).await? {
                    Err(no_policy) => return Ok((None, no_policy)),
                    Ok(policy) => {
                        let by = &self.caller.actor;
                        let note = Some(format!("handed in by {by}; the policy allows {}", policy.words));
                        let given = Approving { note, ..Approving::default() };
                        (given, self.with_actor(Actor::policy(&policy.name)))
                    }
                }
            }
        };
        let with = Next::StartRun { plan: checked.path.clone(), how: Starting::Approved, worker: None };
        let unnamed = Unnamed::Refuse(with);
        let baseline = self.baseline_of_checked((plan.id, None), checked, &now, &given, &unnamed).await?;
        let config = self.caller.config.approved_in(&folder);
        let approving = Approved { digest, config: &config, baseline: &baseline, worker: None };
        let (approval, _) = decider.record_approval(plan, &approving, given.note.as_deref()).await?;
        self.keep_copies(&self.place_of(within)?, &baseline).await?;
        if let Some(graph) = &checked.verification.graph {
            decider.approve_inherited(&self.home()?, graph, &config, sub_plans, &given).await?;
        }
        Ok((Some(approval), Vec::new()))
    }

    /// Keeps copies of the agents' scripts, so that they can be put back.
    pub(super) async fn store_script_copies(
        &self,
        place: &std::path::Path,
        settings: &RunSettings,
    ) -> Result<(), ServiceError> {
        match &settings.scripts {
            Some(scripts) => self.keep_copies(place, scripts).await,
            None => Ok(()),
        }
    }

    /// Answers the plan ask of a run whose approval holds; says which ask a person has to answer otherwise.
    async fn begin_or_ask(
        &self,
        run: &RunRow,
        approval: Result<&Approval, Vec<String>>,
        sub_plans: &BTreeMap<String, Digest>,
        is_taken_up: bool,
    ) -> Result<Started, ServiceError> {
        let no_policy = match approval {
            Ok(approval) => {
                self.answer_plan_ask(run, approval, sub_plans, approval.note.as_deref()).await?;
                return Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up });
            }
            Err(no_policy) => no_policy,
        };
        match self.plan_ask(run).await? {
            Some(ask) => {
                let (run, name) = (run.id, run.name.clone());
                Ok(Started::NeedsApproval { run, name, ask: ask.number, no_policy })
            }
            None => Ok(Started::Ready { run: run.id, name: run.name.clone(), is_taken_up }),
        }
    }

    /// Returns the isolation tier that a run gets here.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Isolation`] where the host does not offer what is demanded.
    pub(crate) async fn tier(&self) -> Result<Tier, ServiceError> {
        let wanted = self.caller.config.isolation;
        let offered =
            if wanted.needs_probe() { self.server_node.offered_tier().await? } else { Tier::SameUser };
        wanted.tier(offered).ok_or_else(|| ServiceError::Isolation { wanted: wanted.to_string(), offered })
    }

    /// Refuses a run that could not go on: unverified, without an agent for a role, or below the isolation asked for.
    async fn refuse_unless_startable(&self, checked: &Checked, start: &Start) -> Result<(), ServiceError> {
        let Some(graph) = checked.verification.graph.as_ref().filter(|_| checked.verification.is_verified())
        else {
            return Err(ServiceError::NotVerified { plan: checked.path.clone() });
        };
        let isolation = self.tier().await?;
        let settings = RunSettings::new(&self.caller.config, start.worker.clone(), isolation);
        for (_, task) in graph.steps() {
            let role = &task.role;
            if settings.worker_for(role).is_none() && !start.waits_for_workers {
                return Err(ServiceError::NoAgent { role: role.clone() });
            }
            for role in task.roles() {
                if !settings.may_take(role, &checked.path) {
                    return Err(ServiceError::NotForRole { role: role.clone(), plan: checked.path.clone() });
                }
                if let Err(what) = settings.can_be_held(role) {
                    return Err(ServiceError::Unheld { role: role.clone(), what });
                }
                settings.can_isolate_network(role)?;
            }
        }
        refuse_missing_programs(graph, &settings)
    }
}

/// Refuses work whose agents are not installed; a role with a `PATH` of its own is left to the attempt.
pub(super) fn refuse_missing_programs(graph: &Graph, settings: &RunSettings) -> Result<(), ServiceError> {
    for (_, task) in graph.steps() {
        let role = &task.role;
        let has_own_path = settings.roles.get(role.as_str()).is_some_and(|own| own.env.contains_key("PATH"));
        let Some(worker) = settings.worker_for(role).filter(|_| !has_own_path) else { continue };
        if let Some(Program::Known(known)) = worker.program(&Permissions::default())
            && let Err(missing) = agent_program(&known)
        {
            return Err(ServiceError::NotInstalled { role: role.clone(), missing, agent: worker.clone() });
        }
    }
    Ok(())
}

/// Refuses a worker that is not the one which was approved.
pub(super) fn refuse_other_worker(
    approval: &Approval,
    worker: Option<&Agent>,
    plan: &str,
) -> Result<(), ServiceError> {
    if let (Some(policy), Some(worker)) = (policy_of(approval), worker) {
        return Err(ServiceError::Conflict {
            what: format!(
                "start {plan} with {}: it was approved by the policy {policy}, which allows no worker but those configured",
                worker.display_command()
            ),
            next: Next::approve(plan),
        });
    }
    let Some(approved) = approved_worker(approval)?.filter(|approved| Some(approved) != worker) else {
        return Ok(());
    };
    let named = worker.map_or("what is configured".to_owned(), Agent::display_command);
    Err(ServiceError::Conflict {
        what: format!("start {plan} with {named}: it was approved for {}", approved.display_command()),
        next: Next::UseApprovedWorker {
            plan: plan.to_owned(),
            approved: approved.to_string(),
            named: worker.map(Agent::to_string),
        },
    })
}

pub(crate) fn settings_json(settings: &RunSettings) -> String {
    serde_json::to_string(settings).expect("settings have string keys and no failing serializer")
}

/// Returns what a run's name begins with: the plan file's name without its ending, as plain characters.
fn stem(checked: &Checked) -> String {
    stem_of(&checked.file)
}

/// Returns what the names of runs of a plan's file begin with.
pub(crate) fn stem_of(file: &std::path::Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c.to_ascii_lowercase() } else { '-' })
        .take(60)
        .collect();
    let plain = plain.trim_matches(|c| c == '-' || c == '.').to_owned();
    if plain.is_empty() { "plan".to_owned() } else { plain }
}
