//! The commands.

use planctl_server::Cleaning;

use crate::args::{
    self, Cli, Command, DaemonCommand, DbCommand, GuardArgs, LibraryCommand, PlanCommand, PlanVerb, RunArgs,
    RunCommand, RunVerb,
};
use crate::completions;
use crate::context::Context;
use crate::failure::Answer;
use crate::flags::Format;

mod answer_prompt;
mod approvals;
mod bundle;
mod changes;
mod clean;
mod configuration;
mod daemon;
mod database;
mod demo;
mod dev;
mod doctor;
mod draft;
mod editing;
mod expand;
mod explain;
mod export;
mod fix;
mod format;
mod goal;
mod graph;
pub(crate) mod guide;
mod help;
mod history;
mod import;
mod init;
mod items;
pub(crate) mod judge;
mod library;
mod logs;
mod lsp;
mod mcp;
mod new;
mod notify;
mod open;
mod plan;
mod plans;
mod recheck;
mod recorded;
mod review;
mod run;
mod runs;
mod salute;
mod session;
mod settings;
mod standing;
mod token;
mod tool;
mod topic;
mod traversal;
mod verify;
mod work;
mod worker;
mod write;

/// Does what was typed.
pub async fn run(cli: Cli) -> Answer {
    let mut context = Context::new(cli.global)?;
    context.note_invocation(|word| args::command().find_subcommand(word).is_some());
    context.set_leaves_unread(leaves_unread(&cli.command));
    if matches!(
        cli.command,
        Command::Completions { .. }
            | Command::Man { .. }
            | Command::Trust { .. }
            | Command::Help { .. }
            | Command::Demo { .. }
            | Command::Guard(GuardArgs { command: None, .. })
            | Command::Db(DbCommand::Url | DbCommand::Dump { .. })
            | Command::Daemon(DaemonCommand::InstallService { .. })
            | Command::Library(LibraryCommand::New(_))
            | Command::OfPlan(PlanVerb::Expand { .. })
            | Command::Plan(PlanCommand::Verb(PlanVerb::Expand { .. }))
    ) {
        context.format(&[Format::Human])?;
    }
    match cli.command {
        Command::Plan(command) => plan::run(&context, command).await,
        Command::Run(args) => plan::run_noun(&context, args).await,
        Command::OfPlan(verb) => plan::on_file(&context, verb).await,
        Command::Ls(filter) => runs::ls(&context, &filter).await,
        Command::OfRun(verb) => plan::on_run(&context, verb).await,
        Command::Approvals { list, command } => approvals::run(&context, list, command).await,
        Command::Goal(command) => goal::run(&context, command).await,
        Command::Notify(command) => notify::run(&context, command).await,
        Command::Tool(command) => tool::run(&context, command).await,
        Command::Topic(command) => topic::run(&context, command).await,
        Command::Guard(given) => guide::guard(&context, given).await,
        Command::Guide(command) => guide::run(&context, command).await,
        Command::Hook(given) => guide::hook_misused(&given),
        Command::Worker(command) => worker::run(&context, command).await,
        Command::Item(command) => items::run(&context, command).await,
        Command::Roles(command) => worker::roles(&context, &command).await,
        Command::Token(command) => token::run(&context, command).await,
        Command::Db(command) => database::run(&context, command).await,
        Command::Daemon(command) => daemon::run(&context, command).await,
        Command::Dev { work, worker } => dev::run(&context, work, worker.worker()).await,
        Command::Open { print } => open::run(&context, print).await,
        Command::Demo { keep, asks } => demo::run(&context, keep, asks).await,
        Command::Doctor => doctor::run(&context).await,
        Command::Clean { all, failed, discard, dry_run } => {
            let cleaning = Cleaning { failed, discards: discard, everywhere: all, dry_run };
            clean::run(&context, cleaning).await
        }
        Command::Lsp { .. } => lsp::run(&context).await,
        Command::Mcp(given) => mcp::run(context, given).await,
        Command::Session(command) => session::run(&context, &command),
        Command::Completions { shell } => completions::script(shell),
        Command::Man { dir } => help::man(&context, &dir),
        Command::Init { example, force } => init::run(&context, example, force).await,
        Command::Config(command) => configuration::run(&context, &command),
        Command::Trust { dir } => help::trust(&context, &dir),
        Command::Graph(command) => graph::run(&context, command).await,
        Command::Library(command) => library::run(&context, command).await,
        Command::Schema { name } => help::schema(&context, name.as_deref()),
        Command::Help { topic } => help::help(&topic),
        Command::Version => help::version(&context),
    }
}

/// Says that a command decides or looks, and starts nothing.
fn leaves_unread(command: &Command) -> bool {
    if let Command::OfRun(verb)
    | Command::Plan(PlanCommand::OfRun(verb))
    | Command::Run(RunArgs { command: Some(RunCommand::Verb(verb)), .. }) = command
    {
        return !matches!(verb, RunVerb::Resume { .. });
    }
    matches!(
        command,
        Command::Approvals { .. }
            | Command::Ls(_)
            | Command::Run(RunArgs { command: Some(RunCommand::Ls(_) | RunCommand::Show { .. }), .. })
    )
}
