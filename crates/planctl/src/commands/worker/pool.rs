//! `planctl worker run`: a pool of tasks, each of which claims items from a daemon and works on them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use planctl_api::wire::WorkerEvent;
use planctl_api::wire::calls::{ClaimCall, ClaimedView};
use planctl_config::Agent;
use planctl_engine::Role;
use planctl_harness::Spawner;
use planctl_server::{RunSettings, ServiceError};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::lines::Lines;
use crate::api::{self, Api};
use crate::args::WorkerRun;
use crate::client::{self, Client};
use crate::commands::items::machine;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::reports::{LeasedItem, Word};
use crate::show;
use crate::stop::Stop;

/// How long one request waits for work.
const POLL: Duration = Duration::from_secs(30);
/// How long a worker waits for work that ends when there is none.
const DRAIN_POLL: Duration = Duration::from_secs(5);
/// The least time between two claims that found nothing.
const CLAIM_AGAIN: Duration = Duration::from_millis(500);
/// How long to leave a daemon alone that does not answer, and an item that can't be done here.
const AWAY: std::ops::RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(10);

/// The phase of the shutdown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Work is claimed.
    Working,
    /// Claimed items are finished.
    Draining,
    /// Claimed items are given back.
    Ending,
}

/// The state that the tasks of one worker share.
pub struct WorkerPool {
    /// The daemon.
    pub api: Api,
    /// The agents, with the roles and prices of planctl.toml.
    pub settings: RunSettings,
    /// How long an attempt may take, by role, where planctl.toml says so.
    pub timeouts: BTreeMap<Role, Duration>,
    /// The arguments of the command.
    pub given: WorkerRun,
    /// Starts processes.
    pub spawner: Spawner,
    /// Where the private folders of attempts are made.
    pub scratch: PathBuf,
    /// The same folder as it was when the worker began, and the state directory that it is in.
    begun_in: (File, PathBuf),
    /// Prints what happens.
    pub lines: Lines,
    /// The phase of the shutdown.
    pub phase: watch::Receiver<Phase>,
    call: ClaimCall,
    /// How many more items may be claimed.
    left: AtomicU64,
    /// Says that the worker polls, once the daemon has answered. From then on the worker waits for it during an outage.
    ready: OnceLock<Result<(), Failure>>,
}

/// Runs the command.
pub async fn run(context: &Context, given: WorkerRun) -> Answer {
    let is_json = context.is_json()?;
    let worker = agent_named(&given)?;
    let config = &context.config()?.config;
    let settings = RunSettings::new(config, Some(worker.clone()), planctl_engine::Tier::SameUser);
    let timeouts =
        config.roles.iter().filter_map(|(role, config)| Some((role.clone(), config.timeout?))).collect();
    let plans = served_plans(&settings, &given.roles)?;
    let name = given.name.clone().unwrap_or_else(|| format!("{}-{}", machine(), word_of(&worker)));
    let lines = Lines { worker: name.clone(), is_json, is_quiet: context.is_quiet() };
    let failed =
        |error: std::io::Error| Failure::new(Exit::Temporary, format!("could not start working: {error}"));
    let state_dir = context.state_dir()?;
    let scratch = planctl_server::scratch_in(&state_dir).map_err(|error| {
        Failure::new(Exit::Temporary, format!("could not start working: {error}"))
            .help("name another place with PLANCTL_STATE_DIR")
    })?;
    let (phase, seen) = watch::channel(Phase::Working);
    let api = Client::open_daemon(context).await?;
    let mut stop = Stop::listen()?;
    let pool = Arc::new(WorkerPool {
        call: ClaimCall {
            roles: given.roles.clone(),
            plans,
            worker: Some(name.clone()),
            lease_seconds: None,
            agent: Some(show::brief(&planctl_lang::masked(&worker.to_string()), 200)),
            host: Some(machine()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            capacity: Some(i32::from(given.at_once)),
        },
        left: AtomicU64::new(if given.once { 1 } else { given.max_items.unwrap_or(u64::MAX) }),
        ready: OnceLock::new(),
        spawner: Spawner::start_self(None).map_err(failed)?,
        begun_in: (File::open(&scratch).map_err(failed)?, state_dir),
        scratch,
        phase: seen,
        settings,
        timeouts,
        given,
        api,
        lines,
    });
    supervise(&pool, &phase, &mut stop).await
}

/// Starts the tasks of a pool, and waits until all have ended. The first signal drains it, the second ends it.
async fn supervise(pool: &Arc<WorkerPool>, phase: &watch::Sender<Phase>, stop: &mut Stop) -> Answer {
    let mut tasks = JoinSet::new();
    for _ in 0..pool.given.at_once {
        tasks.spawn(Arc::clone(pool).claim_loop());
    }
    let mut ended_by = None;
    let mut trouble = None;
    loop {
        tokio::select! {
            exit = stop.wait_for_signal() => match ended_by.replace(exit) {
                None => {
                    phase.send_replace(Phase::Draining);
                    pool.lines.print(WorkerEvent::Draining, "finishing what was claimed; once more gives it back")?;
                }
                Some(_) => {
                    phase.send_replace(Phase::Ending);
                }
            },
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(failure))) => {
                    trouble.get_or_insert(failure);
                    phase.send_if_modified(|phase| {
                        let is_news = *phase < Phase::Draining;
                        *phase = (*phase).max(Phase::Draining);
                        is_news
                    });
                }
                Some(Err(error)) => {
                    trouble.get_or_insert(Failure::new(Exit::Temporary, format!("could not work: {error}")));
                }
            },
        }
    }
    pool.spawner.shutdown();
    pool.lines.print(WorkerEvent::Ended, "ended")?;
    let was_cut = *phase.borrow() == Phase::Ending;
    match (trouble, ended_by) {
        (Some(failure), _) => Err(failure),
        (None, Some(exit)) if was_cut => Ok(exit),
        (None, _) => Ok(Exit::Yes),
    }
}

/// Returns the plans whose work each role takes; refuses a role that can't be served here.
fn served_plans(settings: &RunSettings, roles: &[String]) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut plans = BTreeMap::new();
    for name in roles {
        let role = Role::new(name.as_str());
        let shown = show::safe(name);
        settings.can_be_held(&role).map_err(|what| {
            Failure::new(Exit::Configuration, format!("could not serve the role {shown}: {what}"))
        })?;
        if settings.can_isolate_network(&role).is_err() {
            return Err(Failure::new(
                Exit::Configuration,
                format!("could not serve the role {shown}: `network` of [roles.{shown}] is held by a daemon's workers alone"),
            )
            .help(format!(
                "name its agent in planctl.toml ([roles.{shown}] agent), or write network = \"host\" there"
            )));
        }
        if let Some(taken) = settings.roles.get(name).and_then(|role| role.plans.clone()) {
            plans.insert(name.clone(), taken.iter().map(ToString::to_string).collect());
        }
    }
    Ok(plans)
}

fn agent_named(given: &WorkerRun) -> Result<Agent, Failure> {
    let worker = given.worker.agent.clone().or_else(|| given.worker.exec.clone().map(Agent::Exec));
    match worker {
        Some(Agent::Session) => {
            Err(Failure::usage("planctl cannot start a session as a worker").next("planctl guide on PLAN"))
        }
        Some(worker) => Ok(worker),
        None => Err(Failure::usage("name a worker: --agent NAME or --exec CMD")),
    }
}

fn word_of(worker: &Agent) -> &'static str {
    match worker {
        Agent::Exec(_) => "exec",
        Agent::Known { agent, .. } => agent.name(),
        Agent::Session => "session",
    }
}

/// Says that a failure may pass by itself.
pub fn is_transient(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unavailable | Exit::Temporary)
}

/// Waits until the phase is past `than`; for ever if the sender is gone.
pub async fn wait_until_past(mut phase: watch::Receiver<Phase>, than: Phase) {
    if phase.wait_for(|phase| *phase > than).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl WorkerPool {
    fn say_ready(&self) -> Result<(), Failure> {
        let (roles, at_once) = (self.given.roles.join(", "), self.given.at_once);
        let message = format!(
            "worker {} ({roles} ×{at_once}) · polling {} · Ctrl-C finishes current work and exits, again stops now",
            self.lines.worker,
            self.api.address()
        );
        self.lines.print(WorkerEvent::Ready, &message)
    }

    /// Returns the phase.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Claims and works on one item after another.
    async fn claim_loop(self: Arc<Self>) -> Result<(), Failure> {
        let mut pause = *AWAY.start();
        while self.takes_one() {
            let Some(claimed) = self.claimed().await? else { return Ok(()) };
            let (folder, state_dir) = &self.begun_in;
            if !planctl_server::is_at(folder, &self.scratch) {
                // No attempt can be made here any more, and each that is claimed would be one less for others.
                let error = ServiceError::StateDirGone { state_dir: state_dir.clone() };
                self.give_back(&claimed, &format!("could not {error}")).await?;
                return Err(client::failure(error).help("put it back, and start the worker again"));
            }
            if claimed.workspace.is_dir() {
                pause = *AWAY.start();
                self.see_through(&claimed).await?;
                continue;
            }
            self.left.fetch_add(1, Ordering::Relaxed);
            let message = format!("its workspace {} is not on this machine", claimed.workspace.display());
            self.give_back(&claimed, &message).await?;
            pause = self.back_off(pause).await;
        }
        Ok(())
    }

    /// Gives back an item that can't be worked on here, and says why.
    async fn give_back(&self, claimed: &ClaimedView, why: &str) -> Result<(), Failure> {
        match LeasedItem::new(&self.api, &claimed.item, &claimed.token)?.say(&Word::Release).await {
            Ok(_) => self.lines.print_item(WorkerEvent::Released, claimed, why),
            // It is free again when its lease ends.
            Err(failure) => self.lines.print_item(WorkerEvent::Refused, claimed, &failure.message),
        }
    }

    fn takes_one(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Waits a while, and returns how long to wait the next time.
    async fn back_off(&self, pause: Duration) -> Duration {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = wait_until_past(self.phase.clone(), Phase::Working) => {}
        }
        (pause * 2).min(*AWAY.end())
    }

    /// Claims the next item. Returns `None` when the worker ends, or drains and found nothing.
    async fn claimed(&self) -> Result<Option<ClaimedView>, Failure> {
        let mut pause = *AWAY.start();
        let mut key = api::uuid_of();
        while self.phase() == Phase::Working {
            let began = planctl_server::instant();
            let was_there = self.ready.get().is_some();
            let wait = match self.given.drain {
                // The first answer says that the daemon is there, and comes at once.
                _ if !was_there => Duration::ZERO,
                true => DRAIN_POLL,
                false => POLL,
            };
            let asked = tokio::select! {
                asked = self.ask(&key, wait) => asked,
                () = wait_until_past(self.phase.clone(), Phase::Working) => {
                    self.release_unseen(&key).await;
                    return Ok(None);
                }
            };
            match asked {
                Ok(claimed) => {
                    self.ready.get_or_init(|| self.say_ready()).clone()?;
                    if claimed.is_some() || self.given.drain && was_there {
                        return Ok(claimed);
                    }
                    pause = *AWAY.start();
                    key = api::uuid_of();
                    if was_there && began.elapsed() < CLAIM_AGAIN {
                        self.back_off(CLAIM_AGAIN).await;
                    }
                }
                // The same key finds the item of a lost answer again.
                Err(failure) if is_transient(&failure) && was_there => {
                    if pause == *AWAY.start() {
                        self.lines.print(WorkerEvent::Away, &failure.message)?;
                    }
                    pause = self.back_off(pause).await;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }

    async fn ask(&self, key: &str, wait: Duration) -> Result<Option<ClaimedView>, Failure> {
        let wait = wait.as_secs().to_string();
        self.api.post_maybe("/v1/items/claim", &[("wait", &wait)], &self.call, key).await
    }

    /// Gives back the item of a claim whose answer was not awaited.
    async fn release_unseen(&self, key: &str) {
        let given_back = async {
            if let Some(claimed) = self.ask(key, Duration::ZERO).await? {
                LeasedItem::new(&self.api, &claimed.item, &claimed.token)?.say(&Word::Release).await?;
            }
            Ok::<_, Failure>(())
        };
        tokio::select! {
            done = given_back => if let Err(failure) = done {
                tracing::debug!(error = %failure.message, "a claim may be out until its lease ends");
            },
            () = wait_until_past(self.phase.clone(), Phase::Draining) => {}
        }
    }
}
