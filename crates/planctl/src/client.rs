//! The one seam behind which plans, runs, asks and history live: commands see these methods and what `wire` says.
//!
//! Where a daemon of this state directory runs, or one is named, it answers; else the services run in this process.

use std::path::Path;
use std::time::Duration;

use planctl_engine::view::Form;
use planctl_engine::{Actor, Answer, RunId};
use planctl_server::check::Checked;
use planctl_server::config::{Agent, Config};
use planctl_server::database::ClusterError;
use planctl_server::http::Problem;
use planctl_server::wire::calls::{
    AnswerCall, AnswerWord, CancelCall, DecideCall, DiffCall, NoteCall, PlaceCall, PlanCall, ResumeCall,
    RunName, RunPlanView, StandingCall, StartCall, StartedView,
};
use planctl_server::wire::work::ServiceView;
use planctl_server::wire::{
    AskList, AskPage, AuditView, CheckpointView, CleanCall, CleanView, ContextView, DatabaseView, Decided,
    EventLine, LogView, PlanDiffView, RunList, RunView, SaluteView, TopicList, TopicView, TraversalView,
    WhyView,
};
use planctl_server::{
    Approving, Cleaning, Drive, Driven, Live, Open, Page, ServiceError, Services, Start, StoreSettings,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::checking::check_failure;
use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::remote::{self, Access, Address, Remote};
use crate::show;

/// A connection to planctl's services: in this process, or in a daemon.
pub struct Client {
    via: Via,
}

enum Via {
    /// The services run here.
    Here(Box<Services>),
    /// A daemon runs them.
    Daemon(Box<Daemon>),
}

/// A daemon, and what every call to it says of this side.
struct Daemon {
    remote: Remote,
    workspace: String,
    config: Config,
}

/// One run, found by whatever name a person gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(RunId);

/// Where a plan stands before anything is done with it.
pub use planctl_server::wire::calls::StandingView as Standing;

/// What came of starting a plan.
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
    },
    /// The text is not the one that was approved.
    ChangedSinceApproval {
        /// The text that was.
        approved_text: String,
        /// The unfinished run that goes on with it.
        run: Option<String>,
    },
}

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

impl Client {
    /// Finds a daemon, or makes the database reachable from here and brings its tables up to date; says in one line
    /// which it is.
    pub async fn open(context: &Context) -> Result<Client, Failure> {
        if let Some(daemon) = Daemon::find(context).await? {
            let line = format!("using the daemon at {}", daemon.remote.address());
            context.say(&show::styled(show::FAINT, &show::safe(&line)));
            return Ok(Client { via: Via::Daemon(Box::new(daemon)) });
        }
        Client::open_here(context).await
    }

    /// Finds the daemon, for what nothing but a daemon can do.
    pub async fn remote(context: &Context) -> Result<Remote, Failure> {
        match Daemon::find(context).await? {
            Some(daemon) => Ok(daemon.remote),
            None => Err(Failure::new(
                Exit::Unavailable,
                format!("could not find a daemon: none runs in {}", context.state_dir()?.display()),
            )
            .help("name another with --server URL or PLANCTL_SERVER")
            .next("planctl daemon start")),
        }
    }

    /// Makes the database reachable from this process, whether a daemon runs or not.
    pub async fn open_here(context: &Context) -> Result<Client, Failure> {
        let config = context.config()?.config.clone();
        limits::enough()?;
        let open = Open {
            state_dir: context.state_dir()?,
            workspace: context.workspace().to_owned(),
            database_url: config.database.clone(),
            config,
            actor: Actor::new(context.actor()),
            // The running program itself, also where its file was replaced meanwhile.
            program: "/proc/self/exe".into(),
            store: store_settings(|name| std::env::var(name).ok()),
        };
        let services = Services::open(open).await.map_err(failure)?;
        context.say(&show::styled(show::FAINT, &show::safe(&format!("using {}", services.database_line()))));
        Ok(Client { via: Via::Here(Box::new(services)) })
    }

    /// Says whether a daemon works on runs, so that they go on when this process ends.
    pub fn is_daemon(&self) -> bool {
        matches!(self.via, Via::Daemon(_))
    }

    /// Closes the connection; a private Postgres that nobody uses any more stops.
    pub async fn close(self) {
        match self.via {
            Via::Here(services) => services.close().await,
            Via::Daemon(_) => {}
        }
    }

    /// Says where a plan stands; `again` asks for a new run of a plan that is done or failed.
    pub async fn standing(&self, checked: &Checked, again: bool) -> Result<Standing, Failure> {
        match &self.via {
            Via::Here(services) => services.standing_view(checked, again).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = StandingCall { plan: daemon.plan(checked, None), again };
                daemon.remote.post("/v1/plans/standing", &[], &call).await
            }
        }
    }

    /// Returns the plan as a run executes it: the stored revision.
    pub async fn plan_of_run(&self, run: Handle) -> Result<Checked, Failure> {
        match &self.via {
            Via::Here(services) => services.plan_of_run(run.0).await.map_err(failure),
            Via::Daemon(daemon) => {
                let path = format!("/v1/runs/{}/plan", run.0);
                let plan: RunPlanView = daemon.remote.get(&path, &[]).await?;
                Ok(planctl_server::check::kept(plan))
            }
        }
    }

    /// Compares two texts of a plan by what they mean.
    pub async fn plan_diff(
        &self,
        checked: &Checked,
        since: &str,
        until: Option<&str>,
    ) -> Result<PlanDiffView, Failure> {
        match &self.via {
            Via::Here(services) => services.plan_diff(checked, since, until).await.map_err(failure),
            Via::Daemon(daemon) => {
                let (since, until) = (since.to_owned(), until.map(str::to_owned));
                let call = DiffCall { plan: daemon.plan(checked, None), since, until };
                daemon.remote.post("/v1/plans/diff", &[], &call).await
            }
        }
    }

    /// Approves a plan as it stands, verified with what will serve every role.
    pub async fn approve(&self, checked: &Checked, given: &Approving) -> Result<Decided, Failure> {
        match &self.via {
            Via::Here(services) => services.approve(checked, given).await.map_err(failure),
            Via::Daemon(daemon) => {
                let Approving { note, accept_changed, worker } = given.clone();
                let plan = daemon.plan(checked, worker.as_ref());
                let call = DecideCall { plan, note, accept_changed };
                daemon.remote.post("/v1/plans/approve", &[], &call).await
            }
        }
    }

    /// Rejects a plan.
    pub async fn reject(&self, checked: &Checked, note: &str) -> Result<Decided, Failure> {
        match &self.via {
            Via::Here(services) => services.reject(checked, note).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = DecideCall {
                    plan: daemon.plan(checked, None),
                    note: Some(note.to_owned()),
                    accept_changed: Vec::new(),
                };
                daemon.remote.post("/v1/plans/reject", &[], &call).await
            }
        }
    }

    /// Starts a run of a plan, or takes up the one that is not finished.
    pub async fn start(&self, checked: &Checked, start: &Start) -> Result<How, Failure> {
        let started = match &self.via {
            Via::Here(services) => services.start(checked, start).await.map_err(failure)?.into(),
            Via::Daemon(daemon) => {
                // Beside a daemon a role that nobody serves here waits for a worker.
                let start = Start { waits_for_workers: true, ..start.clone() };
                let call = StartCall { plan: daemon.plan(checked, start.worker.as_ref()), start };
                daemon.remote.post("/v1/runs", &[], &call).await?
            }
        };
        Ok(match started {
            StartedView::Ready { id, run, is_taken_up } => {
                How::Ready { handle: handle_of(&id)?, run, is_taken_up }
            }
            StartedView::AlreadyDone { run } => How::AlreadyDone { run },
            StartedView::NeedsApproval { run, ask, .. } => How::NeedsApproval { run, ask },
            StartedView::ChangedSinceApproval { approved_text, run } => {
                How::ChangedSinceApproval { approved_text, run }
            }
        })
    }

    /// Takes a run up by itself.
    pub async fn resume(&self, handle: Handle, worker: Option<&Agent>) -> Result<Decided, Failure> {
        match &self.via {
            Via::Here(services) => services.resume(handle.0, worker).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = ResumeCall { place: daemon.place(), worker: worker.cloned() };
                daemon.remote.post(&format!("/v1/runs/{}/resume", handle.0), &[], &call).await
            }
        }
    }

    /// Cancels a run for good.
    pub async fn cancel(&self, handle: Handle, note: Option<&str>) -> Result<Decided, Failure> {
        match &self.via {
            Via::Here(services) => services.cancel(handle.0, note).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = CancelCall { note: note.map(str::to_owned) };
                daemon.remote.post(&format!("/v1/runs/{}/cancel", handle.0), &[], &call).await
            }
        }
    }

    /// Works a run's items in this process, or waits while a daemon does, until it ends, waits for a person and
    /// `no_wait` is set, or is told to stop.
    pub async fn drive(
        &self,
        handle: Handle,
        no_wait: bool,
        live: Live,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Outcome, Failure> {
        let stop = async move {
            if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
                // Nobody can ask for a stop any more.
                std::future::pending::<()>().await;
            }
        };
        match &self.via {
            Via::Here(services) => {
                let (station, drive) =
                    (services.station().clone(), Drive { returns_when_waiting: no_wait, live });
                // A task of its own: whoever awaits this may be kept by a terminal. It ends with who awaits it.
                let mut driving = JoinSet::new();
                driving.spawn(async move { station.drive(handle.0, &drive, stop).await });
                match driving.join_next().await {
                    Some(Ok(driven)) => Ok(match driven.map_err(failure)? {
                        Driven::Ended(_) => Outcome::Ended,
                        Driven::Waiting(_) => Outcome::Waiting,
                        Driven::Stopped => Outcome::Stopped,
                    }),
                    Some(Err(error)) => {
                        Err(Failure::new(Exit::Temporary, format!("a defect of planctl: {error}")))
                    }
                    None => Ok(Outcome::Stopped),
                }
            }
            Via::Daemon(_) => {
                tokio::select! {
                    outcome = self.until_settled(handle, no_wait) => outcome,
                    () = stop => Ok(Outcome::Stopped),
                }
            }
        }
    }

    async fn until_settled(&self, handle: Handle, no_wait: bool) -> Result<Outcome, Failure> {
        let mut looks = 0;
        loop {
            let view = self.status(handle).await?;
            if view.state.is_over() {
                // The daemon looks at the worktree right after the end.
                let is_due = view.worktree.as_ref().is_some_and(|tree| tree.is_made && tree.commit.is_none());
                looks += 1;
                if !is_due || looks > LOOKS_AFTER_END {
                    return Ok(Outcome::Ended);
                }
            }
            let waits = view.waiting_on.as_ref().is_some_and(|on| on.is_for_people());
            if no_wait && waits {
                return Ok(Outcome::Waiting);
            }
            self.rung(handle, LOOK).await;
        }
    }

    /// Finds the run that a person means: a name, an id, a beginning of either, `@last`, or a plan's path.
    pub async fn find(&self, given: &str) -> Result<Handle, Failure> {
        match &self.via {
            Via::Here(services) => services.find(given).await.map(Handle).map_err(failure),
            Via::Daemon(daemon) => match daemon.run_named(given).await {
                // The daemon is in another folder than the person, so a plan's path is worked out here.
                Err(missing) if missing.exit == Exit::NotFound && !given.starts_with('@') => {
                    let path =
                        planctl_server::check::plan_path(Path::new(given), Path::new(&daemon.workspace));
                    match daemon.run_named(&path).await {
                        // A person is told of what they typed, not of what was made of it.
                        Err(failure) if failure.exit == Exit::NotFound => Err(missing),
                        found => found,
                    }
                }
                found => found,
            },
        }
    }

    /// Waits until a run may have moved, or for at most this long.
    pub async fn rung(&self, handle: Handle, most: Duration) {
        match &self.via {
            Via::Here(services) => {
                let listener = services.listen(handle.0);
                // A bell that does not ring in time is no failure: look again then.
                tokio::time::timeout(most, listener.rung()).await.unwrap_or(());
            }
            Via::Daemon(_) => tokio::time::sleep(most.min(LOOK)).await,
        }
    }

    /// Returns where a run stands.
    pub async fn status(&self, handle: Handle) -> Result<RunView, Failure> {
        match &self.via {
            Via::Here(services) => services.status(handle.0).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get(&format!("/v1/runs/{}", handle.0), &[]).await,
        }
    }

    /// Returns the runs of this workspace, or of all.
    pub async fn list(&self, all_workspaces: bool) -> Result<RunList, Failure> {
        match &self.via {
            Via::Here(services) => services.list(all_workspaces, &NEWEST_RUNS).await.map_err(failure),
            Via::Daemon(daemon) => {
                let here = [("workspace", daemon.workspace.as_str())];
                let query: &[(&str, &str)] = if all_workspaces { &[] } else { &here };
                daemon.remote.get("/v1/runs", query).await
            }
        }
    }

    /// Returns what happened after a place in a run's history.
    pub async fn events(&self, handle: Handle, since: u64) -> Result<Vec<EventLine>, Failure> {
        match &self.via {
            Via::Here(services) => services.events(handle.0, since, EVENTS_MAX).await.map_err(failure),
            Via::Daemon(daemon) => {
                let (since, limit) = (since.to_string(), EVENTS_MAX.to_string());
                let query = [("since", since.as_str()), ("limit", limit.as_str())];
                daemon.remote.get(&format!("/v1/runs/{}/history", handle.0), &query).await
            }
        }
    }

    /// Returns the newest events of a run, at most `count`, in their order.
    pub async fn newest_events(&self, handle: Handle, count: usize) -> Result<Vec<EventLine>, Failure> {
        match &self.via {
            Via::Here(services) => services.newest_events(handle.0, count).await.map_err(failure),
            Via::Daemon(daemon) => {
                let count = count.to_string();
                let path = format!("/v1/runs/{}/history", handle.0);
                daemon.remote.get(&path, &[("newest", count.as_str())]).await
            }
        }
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
        match &self.via {
            Via::Here(services) => services.logs(handle.0, step, attempt, &Page::ALL).await.map_err(failure),
            Via::Daemon(daemon) => {
                let (step, attempt) = (step.map(|step| step.to_string()), attempt.map(|one| one.to_string()));
                let given = [("step", step.as_deref()), ("attempt", attempt.as_deref())];
                let query: Vec<(&str, &str)> =
                    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                daemon.remote.all(&format!("/v1/runs/{}/logs", handle.0), &query).await
            }
        }
    }

    /// Returns the SALUTE report of a run.
    pub async fn salute(&self, handle: Handle) -> Result<SaluteView, Failure> {
        match &self.via {
            Via::Here(services) => services.salute(handle.0).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get(&format!("/v1/runs/{}/salute", handle.0), &[]).await,
        }
    }

    /// Says where a run is on its way through its graph.
    pub async fn traversal(&self, handle: Handle) -> Result<TraversalView, Failure> {
        match &self.via {
            Via::Here(services) => services.traversal(handle.0).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get(&format!("/v1/runs/{}/traversal", handle.0), &[]).await,
        }
    }

    /// Says what a run is resumed from.
    pub async fn checkpoint(&self, handle: Handle) -> Result<CheckpointView, Failure> {
        match &self.via {
            Via::Here(services) => services.checkpoint(handle.0).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get(&format!("/v1/runs/{}/checkpoint", handle.0), &[]).await,
        }
    }

    /// Explains why a step is where it is.
    pub async fn why(&self, handle: Handle, step: &str) -> Result<WhyView, Failure> {
        match &self.via {
            Via::Here(services) => services.why(handle.0, step).await.map_err(failure),
            Via::Daemon(daemon) => {
                let path = format!("/v1/runs/{}/why/{}", handle.0, remote::part(step));
                daemon.remote.get(&path, &[]).await
            }
        }
    }

    /// Writes what an agent that drives itself is told of a run.
    pub async fn context(&self, handle: Handle, form: Form) -> Result<ContextView, Failure> {
        match &self.via {
            Via::Here(services) => services.context(handle.0, form).await.map_err(failure),
            Via::Daemon(daemon) => {
                let path = format!("/v1/runs/{}/context", handle.0);
                daemon.remote.get(&path, &[("form", form.word())]).await
            }
        }
    }

    /// Checks the history of a run, or of all.
    pub async fn audit(&self, handle: Option<Handle>) -> Result<AuditView, Failure> {
        match (&self.via, handle) {
            (Via::Here(services), _) => services.audit(handle.map(|handle| handle.0)).await.map_err(failure),
            (Via::Daemon(daemon), None) => daemon.remote.get("/v1/audit", &[]).await,
            (Via::Daemon(daemon), Some(handle)) => {
                daemon.remote.get(&format!("/v1/runs/{}/audit", handle.0), &[]).await
            }
        }
    }

    /// Removes worktrees of runs that are over.
    pub async fn clean(&self, cleaning: Cleaning) -> Result<CleanView, Failure> {
        match &self.via {
            Via::Here(services) => services.clean(cleaning).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = CleanCall {
                    workspace: (!cleaning.everywhere).then(|| daemon.workspace.clone().into()),
                    failed: cleaning.failed,
                    discards: cleaning.discards,
                    dry_run: cleaning.dry_run,
                };
                daemon.remote.post("/v1/worktrees/clean", &[], &call).await
            }
        }
    }

    /// Adds a note to a topic.
    pub async fn post_note(&self, topic: &str, text: &str) -> Result<TopicView, Failure> {
        match &self.via {
            Via::Here(services) => services.post_note(topic, text).await.map_err(failure),
            Via::Daemon(daemon) => {
                let call = NoteCall { text: text.to_owned() };
                daemon.remote.post(&topic_path(topic), &[], &call).await
            }
        }
    }

    /// Returns all topics.
    pub async fn topics(&self) -> Result<TopicList, Failure> {
        match &self.via {
            Via::Here(services) => services.topics(&Page::ALL).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.all("/v1/topics", &[]).await,
        }
    }

    /// Returns at most so many notes of a topic after number `since`.
    pub async fn topic(&self, topic: &str, since: u64, limit: usize) -> Result<TopicView, Failure> {
        match &self.via {
            Via::Here(services) => services.topic(topic, since, limit).await.map_err(failure),
            Via::Daemon(daemon) => {
                let (since, limit) = (since.to_string(), limit.to_string());
                let query = [("since", since.as_str()), ("limit", limit.as_str())];
                daemon.remote.get(&topic_path(topic), &query).await
            }
        }
    }

    /// Draws what is to be said about a plan's topics, which verification without a database can't know.
    pub async fn topic_findings(&self, checked: &Checked) -> Result<String, Failure> {
        let found = match &self.via {
            Via::Here(services) => services.unknown_topics(checked).await.map_err(failure)?,
            Via::Daemon(daemon) if names_topics(checked) => {
                let topics = self.topics().await?.topics.into_iter().map(|topic| topic.topic);
                let topics: Vec<String> = topics.collect();
                let tree = &checked.verification.tree;
                planctl_lang::unknown_topics(&checked.source, tree, &topics, &daemon.config.verify)
            }
            Via::Daemon(_) => Vec::new(),
        };
        Ok(found.iter().map(|finding| finding.render(&checked.source, true) + "\n").collect())
    }

    /// Returns how the database is.
    pub async fn database(&self) -> Result<DatabaseView, Failure> {
        match &self.via {
            Via::Here(services) => services.database().await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get("/v1/database", &[]).await,
        }
    }

    /// Returns the open asks of a run, or of all.
    pub async fn asks(&self, handle: Option<Handle>) -> Result<AskList, Failure> {
        match &self.via {
            Via::Here(services) => {
                services.asks(handle.map(|handle| handle.0), true, &Page::ALL).await.map_err(failure)
            }
            Via::Daemon(daemon) => {
                let run = handle.map(|handle| handle.0.to_string());
                let query: Vec<(&str, &str)> = run.iter().map(|run| ("run", run.as_str())).collect();
                daemon.remote.all("/v1/approvals", &query).await
            }
        }
    }

    /// Returns one ask with what a person needs to decide it.
    pub async fn ask(&self, id: u64) -> Result<AskPage, Failure> {
        match &self.via {
            Via::Here(services) => services.ask(id).await.map_err(failure),
            Via::Daemon(daemon) => daemon.remote.get(&format!("/v1/approvals/{id}"), &[]).await,
        }
    }

    /// Answers an ask.
    pub async fn answer(&self, id: u64, answer: Answer, note: Option<&str>) -> Result<Decided, Failure> {
        self.answer_given(id, answer, &Approving::with_note(note)).await
    }

    /// Answers an ask; of an approval, names the protected files that are meant as they are.
    pub async fn answer_given(&self, id: u64, answer: Answer, given: &Approving) -> Result<Decided, Failure> {
        match &self.via {
            Via::Here(services) => services.answer_here(id, answer, given).await.map_err(failure),
            Via::Daemon(daemon) => {
                let answer = AnswerWord::of(&answer);
                let Approving { note, accept_changed, worker: _ } = given.clone();
                let call = AnswerCall { place: daemon.place(), answer, note, accept_changed };
                daemon.remote.post(&format!("/v1/approvals/{id}/answer"), &[], &call).await
            }
        }
    }
}

/// Reads what tests set in place of the usual: shorter leases, no notifications.
pub fn store_settings(variable: impl Fn(&str) -> Option<String>) -> StoreSettings {
    let mut settings = StoreSettings::default();
    let seconds: Option<u64> = variable("PLANCTL_LEASE_SECONDS").and_then(|text| text.parse().ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        settings.own_lease = Duration::from_secs(seconds);
        // Both in the usual proportion.
        settings.remote_lease = settings.own_lease.saturating_mul(4);
    }
    settings.notifies = variable("PLANCTL_NOTIFY").is_none_or(|word| word != "off");
    settings
}

fn topic_path(topic: &str) -> String {
    format!("/v1/topics/{}", remote::part(topic))
}

fn names_topics(checked: &Checked) -> bool {
    let steps = &checked.verification.tree.steps;
    let mut subscriptions = steps.iter().flat_map(|step| &step.subscriptions);
    subscriptions.any(|subscription| matches!(subscription.value, planctl_engine::Subscription::Topic { .. }))
}

fn handle_of(id: &str) -> Result<Handle, Failure> {
    let run = RunId::parse(id);
    run.map(Handle)
        .ok_or_else(|| Failure::new(Exit::Unavailable, format!("could not read the run's id {id:?}")))
}

impl Daemon {
    /// Finds the daemon that is meant: the one that was named, else the one of this state directory, unless another
    /// database is named.
    async fn find(context: &Context) -> Result<Option<Daemon>, Failure> {
        let config = &context.config()?.config;
        let named = context.server();
        let address = match &named {
            Some(named) => Address::parse(named)?,
            None => Address::Socket(planctl_server::daemon::socket_of(&context.state_dir()?)),
        };
        let (token, actor) = (context.token()?, context.actor());
        let access = Access { token: token.as_deref(), actor: Some(&actor), insecure: context.is_insecure() };
        let remote = Remote::new(address, access)?;
        let daemon = Daemon {
            remote,
            workspace: context.workspace().to_string_lossy().into_owned(),
            config: config.clone(),
        };
        if named.is_some() {
            return Ok(Some(daemon));
        }
        if !daemon.remote.is_there().await {
            return Ok(None);
        }
        let is_same = match &config.database {
            Some(database) => daemon.database_line().await? == database.to_string(),
            None => true,
        };
        Ok(is_same.then_some(daemon))
    }

    async fn run_named(&self, given: &str) -> Result<Handle, Failure> {
        let path = format!("/v1/runs/{}/name", remote::part(given));
        let found: RunName = self.remote.get(&path, &[("workspace", self.workspace.as_str())]).await?;
        handle_of(&found.id)
    }

    async fn database_line(&self) -> Result<String, Failure> {
        let view: ServiceView = self.remote.get("/v1/daemon", &[]).await?;
        Ok(view.database)
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

    fn place(&self) -> PlaceCall {
        PlaceCall { workspace: Some(self.workspace.clone().into()), config: Some(self.config.clone()) }
    }
}

/// How often a run that a daemon works on is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often a run that is over is looked at for what is in its worktree.
const LOOKS_AFTER_END: u32 = 25;

/// The runs that a list shows: the newest, as many as a page of the daemon's.
const NEWEST_RUNS: Page<RunId> = Page { after: None, limit: 200 };

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
    let failure = remote::failure_of(&Problem::of(&error));
    if matches!(&error, ServiceError::Store(error) if planctl_server::is_final(error)) {
        // A service manager knows by it that no later try helps.
        return Failure { exit: Exit::Configuration, ..failure };
    }
    failure
}

/// Says why the private Postgres can't be used; the error brings its own way out.
pub fn cluster_failure(error: ClusterError) -> Failure {
    Failure::new(Exit::Unavailable, format!("could not {error}"))
}
