//! Asks servers for their tools, and uses one, without a database: under the harness, as contracts run.

use std::ffi::OsString;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use planctl_config::{Config, ServerConfig, ServerReach};
use planctl_engine::{Contract, Ending, Evidence, HarnessResult, Inconclusive, RedFirst};
use planctl_harness::{Baseline, ContractRunner, Masks, Spawner, digest_of};
use planctl_lang::tools::ToolList;
use planctl_tools::{Calls, KeptLists, KeptListsError, Order, Request, Server};

use crate::state_folders::private_in;
use crate::verify::check::search_path;
use crate::verify::probe::{ProbeError, isolation_of};

/// The program that speaks to servers: this one, whose file may have been replaced meanwhile.
const PROGRAM: [&str; 2] = ["/proc/self/exe", "__tool"];
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
pub fn reach(server: &ServerConfig) -> Result<Server, ToolError> {
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
    let input = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    let masks = match &request.server {
        Server::Command { environment, .. } => {
            Masks::new(environment.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        }
        Server::Url { token, .. } => Masks::new(token.iter().map(|token| ("TOKEN", token.as_str()))),
    };
    let program = PROGRAM.into_iter().map(OsString::from).collect();
    Ok(runner.with_program(program, masks).with_input(input))
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
    pub fn kept(&self, name: &str) -> Option<ToolList> {
        let server = reach(self.server(name).ok()?).ok()?;
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
        let server = reach(config)?;
        let kept = KeptLists::new(self.state_dir);
        if let Some(list) = kept.get(&server).filter(|_| !anew) {
            return Ok(list);
        }
        let request = Request { server, order: Order::List };
        let limits = (LISTING_WITHIN, config.has_network(None));
        let listed = self.carried_out(&request, limits, spawner, cancel).await?;
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
        let server = reach(config)?;
        let limits = (within, config.has_network(Some(&calls.tool)));
        let known = KeptLists::new(self.state_dir).get(&server);
        let calls = Box::new(calls.with_known(known.as_ref()));
        self.carried_out(&Request { server, order: Order::Call(calls) }, limits, spawner, cancel).await
    }

    async fn carried_out(
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
        let runner = ContractRunner::new(spawner.clone(), self.workspace, Some(&path), env)
            .map_err(|refused| unrunnable(refused.to_string()))?
            .with_isolation(isolation_of(self.config, &spawner, self.state_dir).await?)
            .with_limits(self.config.contracts.limits)
            .at_node("tool");
        let runner = with_order(runner, request, has_network).map_err(unrunnable)?;
        let contract = contract(within);
        let gate = runner.evaluate(&contract, &Arc::new(Baseline::default()), &mut |_, _| (), cancel).await;
        let outputs = gate.outputs;
        match gate.found {
            HarnessResult::Evidence(evidence) => {
                let whole = |stored| outputs.iter().find(|output| Some(&output.digest) == stored);
                let printed = match whole(evidence.stdout.stored.as_ref()) {
                    Some(output) => String::from_utf8_lossy(&output.bytes).into_owned(),
                    None => evidence.stdout.tail.clone(),
                };
                if evidence.ending == (Ending::Exited { code: 0 }) {
                    Ok(printed)
                } else {
                    Err(failed(&evidence))
                }
            }
            HarnessResult::Nothing(Inconclusive::Interrupted) => Err(unrunnable("it was stopped".to_owned())),
            HarnessResult::Nothing(Inconclusive::ToolMissing { what } | Inconclusive::Unstable { what }) => {
                Err(unrunnable(what))
            }
            HarnessResult::Rehearsed(_)
            | HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_) => Err(unrunnable("it gave no evidence".to_owned())),
        }
    }
}

fn failed(evidence: &Evidence) -> ToolError {
    let said = evidence.stderr.tail.trim();
    match evidence.ending {
        Ending::Exited { code } => ToolError::Failed {
            said: said.lines().next_back().unwrap_or("it said nothing").to_owned(),
            code: Some(code),
        },
        Ending::TimedOut => {
            ToolError::Failed { said: "the server did not answer in time".to_owned(), code: None }
        }
        Ending::Signalled { .. } | Ending::OverLimit { .. } | Ending::NotRun => {
            ToolError::Failed { said: format!("the call was ended: {said}"), code: None }
        }
    }
}

/// Returns the contract of something that is no step: only how long it may take matters.
fn contract(within: Duration) -> Contract {
    Contract {
        command: String::new(),
        digest: digest_of(b""),
        expect: 0,
        timeout: within,
        guard: true,
        red_first: RedFirst::Off,
    }
}
