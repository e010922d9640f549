//! Opens the way to the API: the daemon that is named or runs, else its routes in this process.

use std::error::Error as _;
use std::time::Duration;

use planctl_api::wire::work::ServiceView;
use planctl_server::database::{Announce, ClusterError};
use planctl_server::http::{InProcess, socket_of};
use planctl_server::{ServerNode, ServerNodeOptions, ServiceError, StoreSettings, is_full};

use super::{Client, NoAnswer, failure};
use crate::api::{Access, Address, Api};
use crate::context::Context;
use crate::failure::{Exit, Failure, exit_of_io};
use crate::{limits, person, secrecy, show};

impl Client {
    /// Finds a daemon, or makes the database reachable from here and brings its tables up to date. Says in one line which it
    /// is, where that is asked for (`-v`) or a private Postgres was just made.
    pub async fn open(context: &Context) -> Result<Client, Failure> {
        let had_cluster = context.state_dir()?.join("pg").exists();
        let client = Client::open_quietly(context).await?;
        let is_verbose = context.verbosity() > 0;
        let used = match &client.server_node {
            None if is_verbose => format!("the daemon at {}", client.api.address()),
            Some(server_node) if is_verbose || (!had_cluster && server_node.cluster().is_some()) => {
                server_node.database_line().to_owned()
            }
            None | Some(_) => return Ok(client),
        };
        if !context.is_quiet() {
            // An address is no prose to be broken.
            show::say(&show::styled(show::FAINT, &show::safe(&format!("using {used}"))));
        }
        Ok(client)
    }

    /// Asks a daemon or a database that is there already, for a command that answers without one, too: `None` where nobody
    /// named one and no private one was made.
    pub async fn ask_if_there_is_one<T>(
        context: &Context,
        within: Duration,
        ask: impl AsyncFnOnce(Client) -> Result<T, Failure>,
    ) -> Result<Option<T>, NoAnswer> {
        if !Client::has_database(context) {
            return Ok(None);
        }
        let asked = async { ask(Client::open_quietly(context).await?).await };
        match tokio::time::timeout(within, asked).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(_)) | Err(_) => Err(NoAnswer),
        }
    }

    /// Says whether there is a database already; none is made for what can do without.
    pub fn has_database(context: &Context) -> bool {
        context.server().is_some()
            || context.named_database().is_some()
            || secrecy::variable("PLANCTL_DATABASE_URL").is_some()
            || context.state_dir().is_ok_and(|folder| folder.join("pg").exists())
    }

    /// Does the same as [`Client::open`] without a word, for a command whose answer is not about runs.
    pub async fn open_quietly(context: &Context) -> Result<Client, Failure> {
        let (api, server_node) = match daemon(context).await? {
            Some(api) => (api, None),
            None => {
                let opened = take_place(context, true, stop_after(context)?).await?;
                let server_node = opened.map_err(|error| or_full_disk(context, failure(error)))?;
                let api = Api::in_process(InProcess::new(server_node.clone()), &context.actor());
                (api, Some(server_node))
            }
        };
        let workspace = context.workspace();
        let not_text = || Failure::not_text(&show::safe(&workspace.to_string_lossy()));
        let workspace = workspace.to_str().ok_or_else(not_text)?.to_owned();
        Ok(Client { api, workspace, config: context.config()?.config.clone(), server_node })
    }

    /// Finds the daemon, for what nothing but a daemon can do.
    pub async fn open_daemon(context: &Context) -> Result<Api, Failure> {
        match daemon(context).await? {
            Some(api) => Ok(api),
            None => Err(Failure::new(
                Exit::Unavailable,
                format!("could not find a daemon: none runs in {}", context.state_dir()?.display()),
            )
            .help("name another with --server URL or PLANCTL_SERVER")
            .next("planctl daemon start")),
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

/// Finds the daemon that is meant: the one that was named, else the one of this state directory, unless another database
/// is named.
async fn daemon(context: &Context) -> Result<Option<Api>, Failure> {
    let named = context.server();
    let address = match &named {
        Some(named) => Address::parse(named)?,
        None => Address::Socket(socket_of(&context.state_dir()?)),
    };
    let (token, actor) = (context.token()?, context.actor());
    let access = Access { token: token.as_deref(), actor: Some(&actor), insecure: context.is_insecure() };
    let api = Api::at(address, access)?;
    if named.is_some() {
        return Ok(Some(api));
    }
    if !api.is_there().await {
        return Ok(None);
    }
    if let Some(database) = &context.config()?.config.database {
        let view: ServiceView = api.get("/v1/daemon", &[]).await?;
        return Ok((view.database == database.to_string()).then_some(api));
    }
    Ok(Some(api))
}

/// Adds that the disk is full on which the private Postgres lies, which a server that does not come up says in words of its own.
fn or_full_disk(context: &Context, failure: Failure) -> Failure {
    let is_private = context.config().is_ok_and(|loaded| loaded.config.database.is_none());
    match context.state_dir() {
        Ok(state_dir) if is_private && failure.exit == Exit::Unavailable && is_full(&state_dir) => {
            failure.help(format!("make room on the disk of {}: it is full", state_dir.display()))
        }
        Ok(_) | Err(_) => failure,
    }
}

/// Returns how long a private Postgres goes on after a command. A server that a step's contract or worker starts ends with it,
/// and so does that of the first process of a container, with which everything ends.
pub fn stop_after(context: &Context) -> Result<Duration, Failure> {
    if person::is_in_worker() || std::process::id() == 1 {
        return Ok(Duration::ZERO);
    }
    Ok(context.config()?.config.postgres.stop_after)
}

/// Makes the database reachable from this process; `migrates` brings its tables up to date. A private Postgres that is started
/// for it goes on for `stop_after` when this process is over.
pub async fn take_place(
    context: &Context,
    migrates: bool,
    stop_after: Duration,
) -> Result<Result<ServerNode, ServiceError>, Failure> {
    let config = &context.config()?.config;
    limits::raise_limits()?;
    let options = ServerNodeOptions {
        state_dir: context.state_dir()?,
        database_url: config.database.clone(),
        postgres: config.postgres.clone(),
        announce: (!context.is_quiet()).then_some(show::fetching as Announce),
        say: (!context.is_quiet()).then_some(show::say as fn(&str)),
        stop_after,
        // The running program itself, also where its file was replaced meanwhile.
        program: "/proc/self/exe".into(),
        migrates,
        traces: config.traces.clone(),
        store: store_settings(|name| std::env::var(name).ok()),
    };
    Ok(ServerNode::open(options).await)
}

/// Says why the private Postgres can't be used; the error brings its own way out.
pub fn cluster_failure(error: ClusterError) -> Failure {
    let refusal = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_denied = refusal.is_some_and(|refusal| exit_of_io(refusal.kind()) == Exit::Denied);
    let exit = if is_denied { Exit::Denied } else { Exit::Unavailable };
    Failure::new(exit, format!("could not {error}"))
}
