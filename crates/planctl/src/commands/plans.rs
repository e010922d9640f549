//! `planctl plan ls`: the plans of a workspace, and the newest run of each.

use std::path::Path;

use ignore::WalkBuilder;
use ignore::types::TypesBuilder;
use planctl_api::wire::{PlanFileList, PlanFileView, RunSummary};
use planctl_harness::read_plan;
use planctl_lang::{PlanTree, Source, parse};

use super::Context;
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::show;

/// How deep below the workspace plans are looked for.
const DEPTH_MAX: usize = 8;

/// Lists the plans; a file that git ignores is none.
pub async fn ls(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let runs = Client::open(context).await?.list(false).await?.runs;
    let plans =
        found(context.workspace())?.into_iter().map(|(path, tree)| view(path, &tree, &runs)).collect();
    let list = PlanFileList { plans };
    if is_json {
        show::print_json(&list)?;
    } else if list.plans.is_empty() {
        show::print(&format!("no plans in {}\n", show::safe(&context.workspace().display().to_string())))?;
        show::say("next: planctl new");
    } else {
        show::print(&draw(&list.plans))?;
    }
    Ok(Exit::Yes)
}

/// Returns the paths of the plans below a directory, each with its title.
pub fn paths(directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let title = |tree: PlanTree| tree.title.map(|title| title.value).unwrap_or_default();
    Ok(found(directory)?.into_iter().map(|(path, tree)| (path, title(tree))).collect())
}

/// Returns the files whose frontmatter says `type: plan`, by their paths in the workspace, in the order of their names.
fn found(workspace: &Path) -> Result<Vec<(String, PlanTree)>, Failure> {
    let unreadable = |error: ignore::Error| {
        let place = show::safe(&workspace.display().to_string());
        Failure::new(Exit::Temporary, format!("could not look for plans in {place}: {error}"))
    };
    let mut markdown = TypesBuilder::new();
    markdown.add_defaults().select("md");
    let types = markdown.build().map_err(unreadable)?;
    let walk = WalkBuilder::new(workspace)
        .types(types)
        .max_depth(Some(DEPTH_MAX))
        .sort_by_file_path(Path::cmp)
        .build();
    // A folder that can't be read holds no plan that could be run.
    let files = walk.flatten().map(ignore::DirEntry::into_path).filter(|path| path.is_file());
    Ok(files.filter_map(|path| plan_in(workspace, &path)).collect())
}

fn plan_in(workspace: &Path, file: &Path) -> Option<(String, PlanTree)> {
    let name = file.strip_prefix(workspace).unwrap_or(file).to_string_lossy().into_owned();
    let source = Source::of_text(&name, read_plan(file).ok()?).ok()?;
    let (tree, _) = parse(&source);
    let kind = tree.frontmatter.kind.as_ref()?;
    kind.value.eq_ignore_ascii_case("plan").then_some((name, tree))
}

fn view(path: String, tree: &PlanTree, runs: &[RunSummary]) -> PlanFileView {
    let newest = runs.iter().find(|run| run.plan == path);
    PlanFileView {
        title: tree.title.as_ref().map(|title| title.value.clone()),
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
