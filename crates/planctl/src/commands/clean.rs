//! `planctl clean`: removes worktrees of runs that are over, and never what is committed nowhere without `--discard`.

use planctl_api::wire::{CleanView, CleanedView};
use planctl_server::Cleaning;

use super::Context;
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::show::{self, BOLD, CARE, styled};

/// Removes what may go, and says what stays and why.
pub async fn run(context: &Context, cleaning: Cleaning) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let view = client.clean(cleaning).await?;
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&draw(&view))?;
    }
    Ok(Exit::Yes)
}

fn draw(view: &CleanView) -> String {
    if view.worktrees.is_empty() {
        return "no run has a worktree\n".to_owned();
    }
    view.worktrees.iter().map(|worktree| line(worktree, view.dry_run) + "\n").collect()
}

fn line(view: &CleanedView, is_dry: bool) -> String {
    let (run, path) = (styled(BOLD, &show::safe(&view.run)), show::safe(&view.path));
    let branch = show::safe(&view.branch);
    match (&view.why, is_dry) {
        (Some(why), _) => format!("{run} {} {path}: {}", styled(CARE, "kept"), show::safe(why)),
        (None, true) => format!("{run} would go: {path}"),
        (None, false) if view.branch_removed => format!("{run} removed {path} and its branch {branch}"),
        (None, false) => {
            format!("{run} removed {path}; its branch {branch} stays, since it holds commits of its own")
        }
    }
}
