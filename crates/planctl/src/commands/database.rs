//! `planctl db …`: the database, seen and handled.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use planctl_api::wire::DatabaseView;
use planctl_api::words::counted;
use planctl_server::database::{self, ClusterStatus, Database, Rights, Stopped};

use super::Context;
use crate::args::DbCommand;
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::show::{self, CARE, styled};

/// Does what was typed.
pub async fn run(context: &Context, command: DbCommand) -> Answer {
    match command {
        DbCommand::Status => status(context).await,
        DbCommand::Url => url(context),
        DbCommand::Psql { owner, args } => {
            let arguments = args.into_iter().map(OsString::from).collect();
            let rights = if owner { Rights::Owner } else { Rights::Reader };
            client_program(context, "psql", rights, arguments).await
        }
        DbCommand::Dump { output } => {
            let arguments =
                output.map(|file| vec!["--file".into(), file.into_os_string()]).unwrap_or_default();
            client_program(context, "pg_dump", Rights::Owner, arguments).await
        }
        DbCommand::Backup { file, force } => backup(context, &file, force).await,
        DbCommand::Restore { file } => restore(context, &file).await,
        DbCommand::Prune { older_than, dry_run } => prune(context, older_than, dry_run).await,
        DbCommand::Stop => stop(context),
        DbCommand::Reset => reset(context).await,
        DbCommand::Install { from } => install(context, from.as_deref()).await,
    }
}

async fn status(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let config = &context.config()?.config;
    let cluster = match &config.database {
        Some(_) => None,
        None => {
            Some(database::status(&context.state_dir()?, &config.postgres).map_err(client::cluster_failure)?)
        }
    };
    let view = match cluster {
        Some(cluster) if !cluster.running => stopped_view(&cluster),
        Some(_) | None => Client::open(context).await?.database().await?,
    };
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&draw(&view))?;
    }
    Ok(Exit::Yes)
}

/// The private cluster while nothing uses it: it is started by the next command that needs it.
fn stopped_view(cluster: &ClusterStatus) -> DatabaseView {
    DatabaseView {
        kind: "private".to_owned(),
        place: cluster.data_dir.display().to_string(),
        version: cluster.version.clone(),
        is_up: false,
        schema: None,
        schema_known: None,
        bytes: Some(cluster.bytes),
        warnings: Vec::new(),
        role: None,
        role_may: Vec::new(),
    }
}

fn draw(view: &DatabaseView) -> String {
    let mut parts = vec![format!("{} database in {}", view.kind, show::safe(&view.place))];
    parts.extend(view.version.as_ref().map(|version| format!("Postgres {}", show::safe(version))));
    parts.push(if view.is_up {
        "up".to_owned()
    } else {
        "not running; the next command that needs it starts it".to_owned()
    });
    parts.extend(view.bytes.map(|bytes| format!("{} MB", bytes / 1_000_000)));
    parts.extend(view.schema.map(|schema| match view.schema_known {
        Some(known) => format!("schema {schema} of {known}"),
        None => format!("schema {schema}"),
    }));
    let mut text = parts.join(" · ");
    text.push('\n');
    for warning in &view.warnings {
        text.push_str(&styled(CARE, &format!("warning: {}\n", show::safe(warning))));
    }
    text
}

async fn reach(context: &Context) -> Result<Database, Failure> {
    Database::reach(&context.state_dir()?, &context.config()?.config, Some(show::fetching))
        .await
        .map_err(client::cluster_failure)
}

fn url(context: &Context) -> Answer {
    let config = &context.config()?.config;
    let url = match &config.database {
        Some(url) => url.expose().to_owned(),
        None => {
            database::status(&context.state_dir()?, &config.postgres).map_err(client::cluster_failure)?.url
        }
    };
    show::print(&format!("{url}\n"))?;
    Ok(Exit::Yes)
}

async fn client_program(
    context: &Context,
    name: &'static str,
    rights: Rights,
    arguments: Vec<OsString>,
) -> Answer {
    // In this order, so that a server which is started for this is kept up by it to the end.
    let database = reach(context).await?;
    // Making sure of the schema first means that a fresh database has something to look at.
    Client::open(context).await?.close().await;
    // Ctrl-C is for the program on the terminal; planctl has to stay, since it keeps the server up.
    let quiet = tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    let (database, status) = tokio::task::spawn_blocking(move || {
        let status = database.run(name, rights, arguments);
        (database, status)
    })
    .await
    .map_err(|error| Failure::new(Exit::Temporary, format!("could not wait for {name}: {error}")))?;
    quiet.abort();
    drop(database);
    let status = status.map_err(client::cluster_failure)?;
    Ok(if status.success() { Exit::Yes } else { Exit::No })
}

/// Has pg_dump write beside the file, which is put in its place once it is whole.
async fn backup(context: &Context, file: &Path, force: bool) -> Answer {
    let shown = show::safe(&file.display().to_string());
    if file.exists() && !force {
        return Err(Failure::usage(format!("could not write {shown}: it is there already"))
            .help("name another file, or say --force"));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let broken = |error: std::io::Error| Failure::of_io(format!("write {shown}"), &error);
    // Its mode lets nobody else read it.
    let draft = tempfile::NamedTempFile::new_in(folder).map_err(broken)?;
    let arguments = vec!["--format=custom".into(), "--file".into(), draft.path().into()];
    let exit = client_program(context, "pg_dump", Rights::Owner, arguments).await?;
    if exit != Exit::Yes {
        return Ok(exit);
    }
    draft.as_file().sync_all().map_err(broken)?;
    draft.persist(file).map_err(|error| broken(error.error))?;
    context.say(&format!("backup in {shown}; the folder `secrets` of the state directory is not in it"));
    Ok(Exit::Yes)
}

async fn restore(context: &Context, file: &Path) -> Answer {
    let shown = show::safe(&file.display().to_string());
    if !file.exists() {
        return Err(Failure::not_found(format!("could not find {shown}")));
    }
    if !file.is_file() {
        return Err(Failure::usage(format!("{shown} is not a file that `planctl db backup` wrote")));
    }
    let database = reach(context).await?;
    database.prepare_restore().await.map_err(client::failure)?;
    let mut arguments: Vec<OsString> =
        ["--exit-on-error", "--single-transaction", "--no-owner"].map(OsString::from).to_vec();
    arguments.push(file.into());
    let (database, status) = tokio::task::spawn_blocking(move || {
        let status = database.run("pg_restore", Rights::Owner, arguments);
        (database, status)
    })
    .await
    .map_err(|error| Failure::new(Exit::Temporary, format!("could not wait for pg_restore: {error}")))?;
    let status = status.map_err(client::cluster_failure)?;
    if status.success() {
        // Brings a backup of an earlier version up to date, and shows that it opens.
        Client::open(context).await?.close().await;
        context.say(&format!("restored from {shown}"));
        context.say(&next::line("planctl audit"));
        drop(database);
        return Ok(Exit::Yes);
    }
    Err(Failure::new(
        Exit::No,
        format!("could not restore {shown}: pg_restore said why; the database is empty as before"),
    )
    .help("is it a whole file that planctl db backup wrote?"))
}

async fn prune(context: &Context, older_than: Duration, dry_run: bool) -> Answer {
    if !dry_run {
        context.confirm("This removes runs that ended that long ago, with their histories.").await?;
    }
    let database = reach(context).await?;
    let runs = database.prune(older_than, dry_run).await.map_err(client::failure)?;
    let runs = counted(usize::try_from(runs).unwrap_or(usize::MAX), "run");
    context.say(&match dry_run {
        true => format!("at most {runs} would go; a run stays while one within it has to stay"),
        false => format!("{runs} went"),
    });
    Ok(Exit::Yes)
}

fn private_only(context: &Context, what: &str) -> Result<(), Failure> {
    match &context.config()?.config.database {
        None => Ok(()),
        Some(url) => Err(Failure::usage(format!("could not {what} {url}: it is not planctl's own")).help(
            "this command is for the private Postgres; leave --database-url and PLANCTL_DATABASE_URL away",
        )),
    }
}

fn stop(context: &Context) -> Answer {
    private_only(context, "stop")?;
    let stopped = database::stop(&context.state_dir()?, &context.config()?.config.postgres)
        .map_err(client::cluster_failure)?;
    match stopped {
        Stopped::NotRunning => context.say("the private Postgres is not running"),
        Stopped::Stopped { server_pid, owner_pid: None } => {
            context.say(&format!("stopped (process {server_pid})"))
        }
        Stopped::Stopped { server_pid, owner_pid: Some(owner) } => {
            context.say(&format!(
                "stopped (process {server_pid}); planctl process {owner} uses it and starts it again"
            ));
        }
        Stopped::StillRunning { server_pid } => {
            return Err(Failure::new(
                Exit::Temporary,
                format!("could not stop Postgres: process {server_pid} does not end"),
            ));
        }
    }
    Ok(Exit::Yes)
}

async fn reset(context: &Context) -> Answer {
    private_only(context, "reset")?;
    context.confirm("This removes every plan, run and history of the private database.").await?;
    database::reset(&context.state_dir()?, &context.config()?.config.postgres)
        .map_err(client::cluster_failure)?;
    context.say("the private database is gone; the next command makes a new one");
    Ok(Exit::Yes)
}

async fn install(context: &Context, package: Option<&Path>) -> Answer {
    match package {
        Some(package) => {
            let postgres = &context.config()?.config.postgres;
            let dir = database::install(&context.state_dir()?, postgres, package)
                .map_err(client::cluster_failure)?;
            context.say(&format!("installed in {}", show::safe(&dir.display().to_string())));
        }
        None => {
            private_only(context, "install a Postgres for")?;
            let database = reach(context).await?;
            if let Database::Private(cluster, _) = &database {
                context.say(&format!("ready: {}", show::safe(&cluster.describe())));
            }
        }
    }
    Ok(Exit::Yes)
}
