//! The services behind the API: a handle on one workspace, on behalf of one caller.

use std::io;
use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_engine::{Actor, Digest, Role, RunId, Tier};
use planctl_harness::{ProtectError, Spawner};
use planctl_store::cluster::{Cluster, ClusterError};
use planctl_store::{Listener, RequestId, RunRow, Store, StoreError, WorkspaceId};

use crate::node::ServerNode;
use crate::verify::agent_program::MissingProgram;
use crate::verify::check::CheckError;
use planctl_config::{Agent, Config};

/// Which workspace the services are about, under which configuration, and for whom they speak.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The canonical path of the workspace; without one, runs of all are found, and no plan is handed in.
    pub workspace: Option<PathBuf>,
    /// The effective configuration.
    pub config: Config,
    /// The actor in the history.
    pub actor: Actor,
    /// The person as planctl knows them by itself, however they sign: the user of this machine, or the holder of a token.
    pub person: String,
    /// From how much on nothing more is taken on.
    pub caps: Caps,
    /// Says that only what is there is looked at: a workspace that nobody named before is not noted.
    pub is_looking: bool,
    /// The request that is being done, which may be sent again.
    pub request: Option<RequestId>,
}

/// How much may be open at once; beyond it no further run begins, so that a loop gone wild fills no database (row 92).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Runs that are not over.
    pub open_runs: u32,
    /// Asks that wait for a person.
    pub open_asks: u32,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { open_runs: 1000, open_asks: 1000 }
    }
}

/// The handle on everything that needs the database.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) server_node: ServerNode,
    pub(crate) store: Store,
    pub(crate) caller: Caller,
    pub(crate) workspace: Option<WorkspaceId>,
}

/// Why a service could not do what was asked; each text fits after "could not".
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The plan's file can't be read.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The private cluster can't be had.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Protected files can't be digested.
    #[error("protect files: {0}")]
    Protect(#[from] ProtectError),
    /// The plan has errors; only a verified plan can be approved or run.
    #[error("use {plan}: it is not verified")]
    NotVerified {
        /// The plan's path.
        plan: String,
    },
    /// Nobody serves a role, so the run would wait for ever.
    #[error("start: no agent serves the role `{role}`")]
    NoAgent {
        /// The role.
        role: Role,
    },
    /// The program of an agent is not installed, so no attempt could begin.
    #[error("start: the program {} is not found, which serves the role `{role}`", .missing.name)]
    NotInstalled {
        /// The role.
        role: Role,
        /// The agent.
        agent: Agent,
        /// The program, and where it was looked for.
        missing: MissingProgram,
    },
    /// A role's list of plans lacks this one (G-39).
    #[error("start: the role `{role}` does not take {plan}")]
    NotForRole {
        /// The role.
        role: Role,
        /// The plan's path.
        plan: String,
    },
    /// The agent that serves a role can't be held to the role's permissions.
    #[error("start: what serves the role `{role}` can't be held to its permissions: {what}")]
    Unheld {
        /// The role.
        role: Role,
        /// The permission that it can't be held to.
        what: String,
    },
    /// A role may reach less of the network than the host does, and the tier can't hold it to that.
    #[error("start: `network` of [roles.{role}] needs isolation tier 1b, and this is tier {tier}")]
    Network {
        /// The role.
        role: Role,
        /// The tier that holds.
        tier: Tier,
    },
    /// The isolation that the configuration asks for is not to be had.
    #[error("start: isolation `{wanted}` is not available, this host offers tier {offered}")]
    Isolation {
        /// The tier that is asked for.
        wanted: String,
        /// The tier that the host offers.
        offered: Tier,
    },
    /// The run is not in a state for what was asked.
    #[error("{what}")]
    Conflict {
        /// The part that does not fit.
        what: String,
        /// The next step.
        next: Next,
    },
    /// A rule leaves the answer to other people.
    #[error("{what}")]
    NotAsked {
        /// The rule.
        what: String,
        /// The next step.
        next: Next,
    },
    /// As much is open as may be.
    #[error("{what}")]
    TooMany {
        /// The limit that is reached.
        what: String,
        /// The next step.
        next: Next,
    },
    /// The given value can't be used.
    #[error("{what}")]
    Invalid {
        /// The part that does not fit.
        what: String,
        /// The values that are allowed.
        help: String,
    },
    /// There is no such thing.
    #[error("find {what}")]
    NotFound {
        /// The name or id that was looked for.
        what: String,
    },
    /// A file or a process of planctl's own failed.
    #[error("{what}: {source}")]
    Io {
        /// The action.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The state directory is not where it was when this process began.
    #[error("go on: the state directory {} was moved or deleted", .state_dir.display())]
    StateDirGone {
        /// Where it was.
        state_dir: PathBuf,
    },
    /// Something that cannot be is so: a defect of planctl.
    #[error("go on: {what} (this is a defect of planctl)")]
    Broken {
        /// The broken invariant.
        what: String,
    },
}

impl ServiceError {
    pub(crate) fn broken(what: impl Into<String>) -> ServiceError {
        ServiceError::Broken { what: what.into() }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServiceError {
        let what = what.into();
        move |source| ServiceError::Io { what, source }
    }
}

impl From<io::Error> for ServiceError {
    fn from(source: io::Error) -> ServiceError {
        ServiceError::Io { what: "read the workspace".to_owned(), source }
    }
}

impl Services {
    pub(crate) fn new(server_node: ServerNode, caller: Caller, workspace: Option<WorkspaceId>) -> Services {
        Services { store: server_node.store.clone(), server_node, caller, workspace }
    }

    /// Says in one line which database is used, without any password.
    pub fn database_line(&self) -> &str {
        self.server_node.database_line()
    }

    /// Returns the private cluster, where it is the one in use.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.server_node.cluster()
    }

    /// Returns the store, for tests and for tools that read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the directory that holds what is not in the database.
    pub fn state_dir(&self) -> &Path {
        self.server_node.state_dir()
    }

    /// Returns what starts and ends child processes.
    ///
    /// # Errors
    ///
    /// When the helper can't be started.
    pub fn spawner(&self) -> Result<&Spawner, ServiceError> {
        self.server_node.spawner()
    }

    /// Registers for the transitions of a run. A notification only says "look again" and may be lost, so callers also
    /// look every second.
    pub fn listen(&self, run: RunId) -> Listener {
        self.server_node.listen(run)
    }

    /// Finds the run that a person means: a name, an id, the beginning of either, `@last`, or a plan's path.
    ///
    /// # Errors
    ///
    /// Those of the store: not found, ambiguous, unavailable.
    pub async fn find(&self, given: &str) -> Result<RunId, ServiceError> {
        match self.find_row(given).await {
            // It is found, and its audit tells more.
            Err(ServiceError::Store(StoreError::Corrupt { run: Some(run), .. })) => Ok(run),
            found => Ok(found?.id),
        }
    }

    pub(crate) async fn find_row(&self, given: &str) -> Result<RunRow, ServiceError> {
        let named = self.caller.workspace.as_ref();
        let path = named.map(|workspace| crate::verify::check::plan_path(Path::new(given), workspace));
        match self.store.find_run(given, self.workspace).await {
            // It is another workspace where a folder above became a checkout since the run began.
            Err(StoreError::NotFound { .. }) if given == "@last" && named.is_some() => {
                let place = named.map(|workspace| workspace.display().to_string()).unwrap_or_default();
                let what = format!("a run: the workspace {place} has none yet");
                Err(StoreError::NotFound { what }.into())
            }
            Err(missing @ StoreError::NotFound { .. })
                if path.as_ref().is_some_and(|path| path != given) && !given.starts_with('@') =>
            {
                match self.store.find_run(&path.unwrap_or_default(), self.workspace).await {
                    // The message names the text that the person typed, not the path made of it.
                    Err(StoreError::NotFound { .. }) => Err(missing.into()),
                    found => Ok(found?),
                }
            }
            found => Ok(found?),
        }
    }

    /// Returns the workspace that a plan is handed in for.
    pub(crate) fn own_workspace(&self) -> Result<WorkspaceId, ServiceError> {
        self.workspace.ok_or_else(|| ServiceError::Conflict {
            what: "tell which workspace the plan is for".to_owned(),
            next: Next::by_hand("name the workspace"),
        })
    }

    pub(crate) fn config_digest(&self) -> Digest {
        self.caller.config.digest()
    }

    /// Returns the same services, for another actor.
    pub(crate) fn with_actor(&self, actor: Actor) -> Services {
        let mut services = self.clone();
        services.caller.actor = actor;
        services
    }

    /// Returns the folder that the caller is in.
    pub(crate) fn own_folder(&self) -> Result<&Path, ServiceError> {
        self.caller.workspace.as_deref().ok_or_else(|| ServiceError::broken("no workspace"))
    }
}
