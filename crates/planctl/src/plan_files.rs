//! Finds the plans of a workspace, and those of its library.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::types::TypesBuilder;
use planctl_harness::read_plan;
use planctl_lang::{PlanTree, Source, parse};
use planctl_server::library::Library;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::{secrecy, show};

/// How deep below the workspace plans are looked for.
const DEPTH_MAX: usize = 8;

/// Returns the paths of the plans below a directory, each with its title.
pub fn paths(directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let title = |tree: PlanTree| tree.head.title.map(|title| title.value).unwrap_or_default();
    Ok(found(directory)?.into_iter().map(|(path, tree)| (path, title(tree))).collect())
}

/// Returns the files whose frontmatter says `type: plan`, by their paths in the workspace, in the order of their names.
pub fn found(workspace: &Path) -> Result<Vec<(String, PlanTree)>, Failure> {
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

/// Reads the library of the workspace and of the user.
pub fn library(context: &Context) -> Library {
    Library::read(context.workspace(), user_folder().as_deref())
}

/// Returns the folder of the user's own configuration and library.
pub fn user_folder() -> Option<PathBuf> {
    planctl_config::user_folder(&|name| secrecy::variable(name))
}
