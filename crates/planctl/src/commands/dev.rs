//! `planctl dev`: daemon, private Postgres and a worker for every role, in one foreground process.

use std::path::Path;

use planctl_api::wire::DaemonInfo;
use planctl_config::Agent;

use super::Context;
use super::daemon::{options, refuse_remote, serve_here};
use crate::args::AtOnce;
use crate::failure::Answer;
use crate::plan_files;
use crate::show::{self, BOLD, GOOD, styled};

/// The plan that is proposed where there is none.
const HELLO: &str = "plans/hello.md";

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
    let plans = plan_files::find_plans(context.workspace()).unwrap_or_default();
    let own = plans.first().map(|(path, _)| plan_files::path_from_here(context, Path::new(path)));
    let run = format!("planctl run {}", show::file_word(own.as_deref().unwrap_or(Path::new(HELLO))));
    let begin = own.is_none().then(|| (format!("planctl new {HELLO}"), "a plan to begin with"));
    let commands: Vec<_> = begin
        .into_iter()
        .chain([
            (run, "approve it and see it run"),
            ("planctl approvals".to_owned(), "what waits for you"),
            ("planctl status".to_owned(), "where runs stand"),
        ])
        .collect();
    format!(
        "{} · pid {} · workspace {}\nworker     {worker}\n\n{}\n{}\nCtrl-C stops all of it",
        styled(GOOD, "ready"),
        info.pid,
        show::safe(&context.workspace().display().to_string()),
        styled(BOLD, "next, in another terminal:"),
        show::commands(&commands)
    )
}
