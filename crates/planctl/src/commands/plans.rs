//! `planctl plan ls`: the plans of a workspace, and the newest run of each.

use planctl_api::wire::{PlanFileList, PlanFileView, RunSummary};
use planctl_lang::PlanTree;

use super::Context;
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::next;
use crate::plan_files::find_plans;
use crate::show;

/// Lists the plans; a file that git ignores is none.
pub async fn ls(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let runs = Client::open(context).await?.list(false).await?.runs;
    let plans =
        find_plans(context.workspace())?.into_iter().map(|(path, tree)| view(path, &tree, &runs)).collect();
    let list = PlanFileList { plans };
    if is_json {
        show::print_json(&list)?;
    } else if list.plans.is_empty() {
        show::print(&format!("no plans in {}\n", show::safe(&context.workspace().display().to_string())))?;
        show::say(&next::line("planctl new"));
    } else {
        show::print(&draw(&list.plans))?;
    }
    Ok(Exit::Yes)
}

fn view(path: String, tree: &PlanTree, runs: &[RunSummary]) -> PlanFileView {
    let newest = runs.iter().find(|run| run.plan == path);
    PlanFileView {
        title: tree.head.title.as_ref().map(|title| title.value.clone()),
        status: tree.frontmatter.status.as_ref().map(|status| status.value.clone()),
        steps: u32::try_from(tree.steps.len()).unwrap_or(u32::MAX),
        run: newest.map(|run| run.run.clone()),
        run_state: newest.map(|run| run.state),
        worked_on_by: newest.and_then(|run| run.worked_on_by),
        path,
    }
}

fn draw(plans: &[PlanFileView]) -> String {
    let rows = plans.iter().map(|plan| {
        let run = plan.run.as_deref().zip(plan.run_state);
        vec![
            show::safe(&plan.path),
            plan.status.as_deref().map_or("-".to_owned(), show::safe),
            plan.steps.to_string(),
            run.map_or("-".to_owned(), |(run, state)| {
                let is_alone = show::is_left_alone(state, plan.worked_on_by);
                let state = if is_alone { show::LEFT_ALONE } else { show::run_state(state) };
                format!("{} {state}", show::safe(run))
            }),
            show::brief(plan.title.as_deref().unwrap_or("-"), 50),
        ]
    });
    show::table(&["PLAN", "STATUS", "STEPS", "NEWEST RUN", "TITLE"], rows.collect())
}
