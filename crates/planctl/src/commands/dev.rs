//! `planctl dev`: daemon, private Postgres and a worker for every role, in one foreground process.

use planctl_api::wire::DaemonInfo;
use planctl_config::Agent;

use super::Context;
use super::daemon::{options, refuse_remote, serve_here};
use crate::args::AtOnce;
use crate::failure::Answer;
use crate::show::{self, BOLD, GOOD, styled};

/// Serves until Ctrl-C.
pub async fn run(context: &Context, work: AtOnce, agent: Option<Agent>) -> Answer {
    refuse_remote(&work)?;
    let worker = agent.as_ref().map(ToString::to_string);
    let ready = |info: &DaemonInfo| context.say(&screen(context, info, worker.as_deref()));
    let exit = serve_here(context, options(context, work, agent)?, ready).await?;
    context.say("stopped; what was under way goes on when a daemon or `planctl run` takes it up");
    Ok(exit)
}

/// One screen that says what is there and what to type next.
fn screen(context: &Context, info: &DaemonInfo, exec: Option<&str>) -> String {
    let worker = match exec {
        Some(command) => format!("every role: {}", show::safe(command)),
        None => "only roles that planctl.toml or --exec of a run serve; name one for all with --exec CMD"
            .to_owned(),
    };
    let commands = [
        ("planctl new plans/hello.md", "a plan to begin with"),
        ("planctl run plans/hello.md", "approve it and see it run"),
        ("planctl approvals", "what waits for you"),
        ("planctl status", "where runs stand"),
    ];
    let commands = commands.map(|(command, what)| (command.to_owned(), what));
    format!(
        "{} · pid {} · workspace {}\nworker     {worker}\n\n{}\n{}\nCtrl-C stops all of it",
        styled(GOOD, "ready"),
        info.pid,
        show::safe(&context.workspace().display().to_string()),
        styled(BOLD, "next, in another terminal:"),
        show::commands(&commands)
    )
}
