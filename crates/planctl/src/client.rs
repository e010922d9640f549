//! The one seam behind which plans, runs, asks and history live: commands see these methods and what `wire` says.
//!
//! The services run in this process. A daemon's socket would stand here, with the same methods.

use std::time::Duration;

use planctl_engine::{Actor, Answer, RunId};
use planctl_server::check::Checked;
use planctl_server::config::Agent;
use planctl_server::database::ClusterError;
use planctl_server::wire::{
    AskList, AskPage, AuditView, DatabaseView, Decided, EventLine, LogView, PlanDiffView, RunList, RunView,
    TopicList, TopicView, WhyView,
};
use planctl_server::{
    Drive, Driven, Live, Open, ServiceError, Services, Start, Started, StoreError, StoreSettings,
};
use tokio::sync::watch;

use crate::checking::check_failure;
use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::show;

/// A connection to planctl's services.
pub struct Client {
    services: Services,
}

/// One run, found by whatever name a person gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(RunId);

/// Where a plan stands before anything is done with it.
pub struct Standing {
    /// The text that was approved last, where it is another one.
    pub approved_before: Option<String>,
    /// Says that nothing runs before a person approves this text.
    pub needs_approval: bool,
}

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

impl Client {
    /// Makes the database reachable, brings its tables up to date, and says in one line which it is.
    pub async fn open(context: &Context) -> Result<Client, Failure> {
        let config = context.config()?.config.clone();
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
        Ok(Client { services })
    }

    /// Closes the connection; a private Postgres that nobody uses any more stops.
    pub async fn close(self) {
        self.services.close().await;
    }

    /// Says where a plan stands; `again` asks for a new run of a plan that is done or failed.
    pub async fn standing(&self, checked: &Checked, again: bool) -> Result<Standing, Failure> {
        let view = self.services.standing_view(checked, again).await.map_err(failure)?;
        Ok(Standing { approved_before: view.approved_before, needs_approval: view.needs_approval })
    }

    /// Returns the plan as a run executes it: the stored revision.
    pub async fn plan_of_run(&self, run: Handle) -> Result<Checked, Failure> {
        self.services.plan_of_run(run.0).await.map_err(failure)
    }

    /// Compares two texts of a plan by what they mean.
    pub async fn plan_diff(
        &self,
        checked: &Checked,
        since: &str,
        until: Option<&str>,
    ) -> Result<PlanDiffView, Failure> {
        self.services.plan_diff(checked, since, until).await.map_err(failure)
    }

    /// Approves a plan as it stands.
    pub async fn approve(&self, checked: &Checked, note: Option<&str>) -> Result<Decided, Failure> {
        self.services.approve(checked, note).await.map_err(failure)
    }

    /// Rejects a plan.
    pub async fn reject(&self, checked: &Checked, note: &str) -> Result<Decided, Failure> {
        self.services.reject(checked, note).await.map_err(failure)
    }

    /// Starts a run of a plan, or takes up the one that is not finished.
    pub async fn start(&self, checked: &Checked, start: &Start) -> Result<How, Failure> {
        Ok(match self.services.start(checked, start).await.map_err(failure)? {
            Started::Ready { run, name, is_taken_up } => {
                How::Ready { handle: Handle(run), run: name, is_taken_up }
            }
            Started::AlreadyDone { name } => How::AlreadyDone { run: name },
            Started::NeedsApproval { name, ask, .. } => {
                How::NeedsApproval { run: name, ask: u64::try_from(ask).unwrap_or(0) }
            }
            Started::ChangedSinceApproval { approved_text, run } => {
                How::ChangedSinceApproval { approved_text, run }
            }
        })
    }

    /// Takes a run up by itself.
    pub async fn resume(&self, handle: Handle, worker: Option<&Agent>) -> Result<Decided, Failure> {
        self.services.resume(handle.0, worker).await.map_err(failure)
    }

    /// Cancels a run for good.
    pub async fn cancel(&self, handle: Handle, note: Option<&str>) -> Result<Decided, Failure> {
        self.services.cancel(handle.0, note).await.map_err(failure)
    }

    /// Works a run's items in this process until it ends, waits for a person and `no_wait` is set, or is told to stop.
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
        let drive = Drive { returns_when_waiting: no_wait, live };
        Ok(match self.services.station().drive(handle.0, &drive, stop).await.map_err(failure)? {
            Driven::Ended(_) => Outcome::Ended,
            Driven::Waiting(_) => Outcome::Waiting,
            Driven::Stopped => Outcome::Stopped,
        })
    }

    /// Finds the run that a person means: a name, an id, a beginning of either, `@last`, or a plan's path.
    pub async fn find(&self, given: &str) -> Result<Handle, Failure> {
        self.services.find(given).await.map(Handle).map_err(failure)
    }

    /// Waits until a run moved, or for at most this long.
    pub async fn rung(&self, handle: Handle, most: Duration) {
        let listener = self.services.listen(handle.0);
        // A bell that does not ring in time is no failure: look again then.
        tokio::time::timeout(most, listener.rung()).await.unwrap_or(());
    }

    /// Returns where a run stands.
    pub async fn status(&self, handle: Handle) -> Result<RunView, Failure> {
        self.services.status(handle.0).await.map_err(failure)
    }

    /// Returns the runs of this workspace, or of all.
    pub async fn list(&self, all_workspaces: bool) -> Result<RunList, Failure> {
        self.services.list(all_workspaces).await.map_err(failure)
    }

    /// Returns what happened after a place in a run's history.
    pub async fn events(&self, handle: Handle, since: u64) -> Result<Vec<EventLine>, Failure> {
        self.services.events(handle.0, since, EVENTS_MAX).await.map_err(failure)
    }

    /// Returns the place of the newest event in a run's history; none has zero.
    pub async fn newest_seq(&self, handle: Handle) -> Result<u64, Failure> {
        let mut newest = 0;
        loop {
            let lines = self.events(handle, newest).await?;
            match lines.last() {
                Some(line) => newest = line.seq,
                None => return Ok(newest),
            }
        }
    }

    /// Returns the attempts of a run's steps.
    pub async fn logs(
        &self,
        handle: Handle,
        step: Option<u32>,
        attempt: Option<u16>,
    ) -> Result<LogView, Failure> {
        self.services.logs(handle.0, step, attempt).await.map_err(failure)
    }

    /// Explains why a step is where it is.
    pub async fn why(&self, handle: Handle, step: u32) -> Result<WhyView, Failure> {
        self.services.why(handle.0, step).await.map_err(failure)
    }

    /// Checks the history of a run, or of all.
    pub async fn audit(&self, handle: Option<Handle>) -> Result<AuditView, Failure> {
        self.services.audit(handle.map(|handle| handle.0)).await.map_err(failure)
    }

    /// Adds a note to a topic.
    pub async fn post_note(&self, topic: &str, text: &str) -> Result<TopicView, Failure> {
        self.services.post_note(topic, text).await.map_err(failure)
    }

    /// Returns all topics.
    pub async fn topics(&self) -> Result<TopicList, Failure> {
        self.services.topics().await.map_err(failure)
    }

    /// Returns at most so many notes of a topic after number `since`.
    pub async fn topic(&self, topic: &str, since: u64, limit: usize) -> Result<TopicView, Failure> {
        self.services.topic(topic, since, limit).await.map_err(failure)
    }

    /// Draws what is to be said about a plan's topics, which verification without a database can't know.
    pub async fn topic_findings(&self, checked: &Checked) -> Result<String, Failure> {
        let found = self.services.unknown_topics(checked).await.map_err(failure)?;
        Ok(found.iter().map(|finding| finding.render(&checked.source, true) + "\n").collect())
    }

    /// Returns how the database is.
    pub async fn database(&self) -> Result<DatabaseView, Failure> {
        self.services.database().await.map_err(failure)
    }

    /// Returns the open asks of a run, or of all.
    pub async fn asks(&self, handle: Option<Handle>) -> Result<AskList, Failure> {
        self.services.asks(handle.map(|handle| handle.0)).await.map_err(failure)
    }

    /// Returns one ask with what a person needs to decide it.
    pub async fn ask(&self, id: u64) -> Result<AskPage, Failure> {
        self.services.ask(id).await.map_err(failure)
    }

    /// Answers an ask.
    pub async fn answer(&self, id: u64, answer: Answer, note: Option<&str>) -> Result<Decided, Failure> {
        self.services.answer(id, answer, note).await.map_err(failure)
    }
}

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
    use ServiceError as Error;
    let message = format!("could not {error}");
    match error {
        Error::Check(error) => check_failure(error),
        Error::Cluster(error) => cluster_failure(error),
        Error::Store(error) => store_failure(&error),
        Error::NotVerified { plan } => {
            Failure::new(Exit::No, message).next(format!("planctl plan verify {plan}"))
        }
        Error::NoAgent { role } => Failure::new(Exit::Configuration, message).help(format!(
            "name a worker with --agent NAME or --exec CMD, or in planctl.toml: [roles.{role}] agent = \"exec:CMD\""
        )),
        Error::NotForRole { role, .. } => Failure::new(Exit::Configuration, message).help(format!(
            "add it to `plans` of [roles.{role}] in planctl.toml, or give the step another target"
        )),
        Error::Unheld { role, .. } => Failure::new(Exit::Configuration, message)
            .help(format!("change `permissions` and `allow` of [roles.{role}] in planctl.toml, or name another agent")),
        Error::Isolation { .. } => Failure::new(Exit::Configuration, message)
            .help("nothing runs below what is demanded; set isolation = \"auto\" to run as you"),
        Error::Invalid { help, .. } => Failure::usage(message).help(help),
        Error::Conflict { help, .. } => Failure::new(Exit::Conflict, message).next(help),
        Error::NotFound { .. } => Failure::not_found(message),
        Error::Protect(_) | Error::Io { .. } | Error::Broken { .. } => Failure::new(Exit::Temporary, message),
    }
}

fn store_failure(error: &StoreError) -> Failure {
    use StoreError as Error;
    let message = format!("could not {error}");
    match error {
        Error::Unavailable { source } => {
            Failure::new(Exit::Unavailable, format!("{message}: {source}")).next("planctl db status")
        }
        Error::Denied { .. }
        | Error::Foreign { .. }
        | Error::NewerSchema { .. }
        | Error::OlderSchema { .. }
        | Error::OldPostgres { .. } => Failure::new(Exit::Unavailable, message).next("planctl db status"),
        Error::NotFound { .. } => Failure::not_found(message).next("planctl plan ls"),
        Error::Ambiguous { .. } => Failure::not_found(message).help("give more of its name"),
        Error::WorkspaceBusy { run } => {
            Failure::new(Exit::Conflict, message).next(format!("planctl plan status {run}"))
        }
        Error::Refused(_) | Error::StaleLease | Error::KeyReused { .. } | Error::IllegalTransition { .. } => {
            Failure::new(Exit::Conflict, message)
        }
        Error::TooLong { .. } => Failure::usage(message),
        Error::Misproved { .. } | Error::Corrupt { .. } => Failure::new(Exit::Temporary, message),
    }
}

/// Says why the private Postgres can't be used; the error brings its own way out.
pub fn cluster_failure(error: ClusterError) -> Failure {
    Failure::new(Exit::Unavailable, format!("could not {error}"))
}
