//! Asks servers for their tools, and uses one, without a database: under the harness, as contracts run.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use planctl_config::{Config, ServerConfig, ServerReach};
use planctl_engine::Ending;
use planctl_harness::{ContractRunner, Masks, Spawner, blocking_in_place};
use planctl_lang::tools::ToolList;
use planctl_tools::{Calls, KeptLists, KeptListsError, Order, Request, Server};

use crate::state_folders::private_in;
use crate::verify::check::search_path;
use crate::verify::own_process::{self, NoOutput, last_words, output_of};
use crate::verify::probe::{ProbeError, isolation_of};

/// The word by which this program speaks to a server.
const WORD: &str = "__tool";
/// The folder of the state directory that attempts and trials share.
const SCRATCH: &str = "work";
/// How long a server may take to list its tools: some are fetched when they are started.
const LISTING_WITHIN: Duration = Duration::from_secs(120);

/// Where and with what servers are asked.
#[derive(Clone, Copy, Debug)]
pub struct ToolPlace<'a> {
    /// The canonical path of the workspace.
    pub workspace: &'a Path,
    /// The state directory.
    pub state_dir: &'a Path,
    /// The effective configuration.
    pub config: &'a Config,
}

/// Why a server was not asked, or gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// planctl.toml has no such server.
    #[error("planctl.toml has no server {0:?}")]
    NoServer(String),
    /// A variable that the server needs is not set.
    #[error("the variable {0} is not set")]
    NoVariable(String),
    /// It ended without a result.
    #[error("{said}")]
    Failed {
        /// Its last words.
        said: String,
        /// Its exit code, where it has one.
        code: Option<i32>,
    },
    /// It can't be run here.
    #[error("{0}")]
    Unrunnable(String),
    /// More isolation is demanded than this host offers.
    #[error(transparent)]
    Isolation(#[from] ProbeError),
    /// The list can't be kept.
    #[error(transparent)]
    Kept(#[from] KeptListsError),
}

/// Returns how a server is reached, with the values of the variables that it is given.
///
/// # Errors
///
/// [`ToolError::NoVariable`].
pub fn resolve_server(server: &ServerConfig) -> Result<Server, ToolError> {
    let value = |name: &String| {
        let value = std::env::var(name).map_err(|_| ToolError::NoVariable(name.clone()))?;
        Ok::<_, ToolError>((name.clone(), value))
    };
    Ok(match &server.reach {
        ServerReach::Command { command, env } => Server::Command {
            command: command.clone(),
            environment: env.iter().map(value).collect::<Result<_, _>>()?,
        },
        ServerReach::Url { url, token_env } => Server::Url {
            url: url.clone(),
            token: token_env.as_ref().map(value).transpose()?.map(|(_, token)| token),
        },
    })
}

/// Returns the program, its input and its masks for an order to a server, with the network where its tool has that.
pub(crate) fn with_order(
    runner: ContractRunner,
    request: &Request,
    has_network: bool,
) -> Result<ContractRunner, String> {
    let runner = if has_network { runner.with_host_network() } else { runner };
    let masks = match &request.server {
        Server::Command { environment, .. } => {
            Masks::new(environment.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        }
        Server::Url { token, .. } => Masks::new(token.iter().map(|token| ("TOKEN", token.as_str()))),
    };
    own_process::with_order(runner, WORD, request, masks)
}

impl ToolPlace<'_> {
    /// Returns a server of planctl.toml.
    ///
    /// # Errors
    ///
    /// [`ToolError::NoServer`].
    pub fn server(&self, name: &str) -> Result<&ServerConfig, ToolError> {
        self.config.servers.get(name).ok_or_else(|| ToolError::NoServer(name.to_owned()))
    }

    /// Returns the tools of a server as they are kept, without asking it.
    pub fn cached_tools(&self, name: &str) -> Option<ToolList> {
        let server = resolve_server(self.server(name).ok()?).ok()?;
        KeptLists::new(self.state_dir).get(&server)
    }

    /// Returns the tools of a server: as they are kept, else as it lists them. `anew` asks it in any case.
    ///
    /// # Errors
    ///
    /// [`ToolError`].
    pub async fn list(
        &self,
        name: &str,
        anew: bool,
        spawner: &Spawner,
        cancel: impl Future<Output = ()>,
    ) -> Result<ToolList, ToolError> {
        let config = self.server(name)?;
        let server = resolve_server(config)?;
        let kept = KeptLists::new(self.state_dir);
        if let Some(list) = kept.get(&server).filter(|_| !anew) {
            return Ok(list);
        }
        let request = Request { server, order: Order::List };
        let limits = (LISTING_WITHIN, config.has_network(None));
        let listed = self.run_request(&request, limits, spawner, cancel).await?;
        let list: ToolList = serde_json::from_str(&listed)
            .map_err(|error| ToolError::Unrunnable(format!("the list can't be read: {error}")))?;
        kept.put(&request.server, &list)?;
        Ok(list)
    }

    /// Uses a tool once, and returns its result.
    ///
    /// # Errors
    ///
    /// [`ToolError`].
    pub async fn call(
        &self,
        name: &str,
        calls: Calls,
        within: Duration,
        spawner: &Spawner,
        cancel: impl Future<Output = ()>,
    ) -> Result<String, ToolError> {
        let config = self.server(name)?;
        let server = resolve_server(config)?;
        let limits = (within, config.has_network(Some(&calls.tool)));
        let known = KeptLists::new(self.state_dir).get(&server);
        let calls = Box::new(calls.with_known(known.as_ref()));
        self.run_request(&Request { server, order: Order::Call(calls) }, limits, spawner, cancel).await
    }

    async fn run_request(
        &self,
        request: &Request,
        (within, has_network): (Duration, bool),
        spawner: &Spawner,
        cancel: impl Future<Output = ()>,
    ) -> Result<String, ToolError> {
        let unrunnable = |what: String| ToolError::Unrunnable(what);
        let scratch = private_in(self.state_dir, SCRATCH).map_err(|error| unrunnable(error.to_string()))?;
        let spawner = spawner.with_scratch(scratch);
        let path = search_path(self.config);
        let env = self.config.contracts.env.clone();
        let make = || ContractRunner::new(spawner.clone(), self.workspace, Some(&path), env);
        let runner = blocking_in_place(make)
            .map_err(|refused| unrunnable(refused.to_string()))?
            .with_isolation(isolation_of(self.config, &spawner, self.state_dir).await?)
            .with_limits(self.config.contracts.limits)
            .at_node("tool");
        let runner = with_order(runner, request, has_network).map_err(unrunnable)?;
        output_of(&runner, within, cancel).await.map_err(|none| match none {
            NoOutput::Failed(evidence) => {
                let code = if let Ending::Exited { code } = evidence.ending { Some(code) } else { None };
                let said = match evidence.ending {
                    Ending::TimedOut => "the server did not answer in time".to_owned(),
                    Ending::Exited { .. }
                    | Ending::Signalled { .. }
                    | Ending::OverLimit { .. }
                    | Ending::NotRun => last_words(&evidence),
                };
                ToolError::Failed { said, code }
            }
            NoOutput::Interrupted => unrunnable("it was stopped".to_owned()),
            NoOutput::Unrunnable(what) => unrunnable(what),
        })
    }
}
