//! Finds the plans of a workspace, those of its library, and the one that a person names.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;
use ignore::types::TypesBuilder;
use planctl_harness::{Unreadable, read_plan};
use planctl_lang::library::entry_markdown;
use planctl_lang::workflow::Language;
use planctl_lang::{PlanTree, Source, did_you_mean, parse};
use planctl_server::library::{FOLDER, FoundEntry, Library};

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::{next, secrecy, show};

/// How deep below the workspace plans are looked for.
const DEPTH_MAX: usize = 8;
/// The endings of the files of plans, which a name may leave out.
const ENDINGS: [&str; 4] = ["md", "dot", "gv", "json"];

/// Returns the file of the plan that a person names: a path as it is typed, or without its ending, or without the folder
/// `plans`; in the current directory, else in the workspace.
///
/// # Errors
///
/// Where nothing fits, or several files do, and for `-`.
pub fn plan_file_named(context: &Context, name: &Path) -> Result<PathBuf, Failure> {
    if name == Path::new("-") {
        return Err(Failure::usage("this command takes no plan from standard input")
            .help("`planctl verify -` and `planctl fmt -` do; here name a file"));
    }
    match lookup(context.workspace(), name)? {
        Some(file) => Ok(file),
        None => match std::fs::metadata(name).map_err(|error| error.kind()) {
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(missing(context, name)),
            // A folder says what it is when it is read, and so does what can't be read.
            Ok(_) | Err(_) => Ok(name.to_owned()),
        },
    }
}

/// Says why a file could not be read, and what to name instead.
pub fn unreadable(file: &Path, error: &Unreadable) -> Failure {
    let name = show::safe(&file.display().to_string());
    let message = format!("could not read {name}: {error}");
    if matches!(error, Unreadable::Missing) {
        return Failure::not_found(message);
    }
    let failure = Failure::new(Exit::No, message);
    match (file_in(file), error) {
        (Some(one), _) => failure.help(format!("name files in it: {one}")),
        (None, Unreadable::NotRegular("named pipe" | "device")) => {
            failure.help("`planctl verify -` and `planctl fmt -` read standard input")
        }
        (None, _) => failure,
    }
}

/// Returns one of the files in a folder that may be plans, as a word of a command.
fn file_in(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let first = entries.filter(|path| has_ending(path)).min()?;
    Some(show::file_word(&first))
}

/// Does the same where a run may be named, too: a plan takes precedence over a run that has its name. Nothing where no plan fits.
///
/// # Errors
///
/// Where several files fit, and where what is named can only be a file, and is not there.
pub fn named_unless_run(context: &Context, name: &str) -> Result<Option<PathBuf>, Failure> {
    let file = Path::new(name);
    let is_path = name == "-" || name.contains('/') || has_ending(file);
    if is_path { plan_file_named(context, file).map(Some) } else { lookup(context.workspace(), file) }
}

/// Says which plan may have been meant, where there is no run of a name either.
pub fn or_near(context: &Context, name: &str, failure: Failure) -> Failure {
    if failure.exit != Exit::NotFound || failure.help.is_some() {
        return failure;
    }
    let message = failure.message.replacen("could not find run", "could not find plan or run", 1);
    let failure = Failure { message, ..failure };
    if let Some(one) = file_in(Path::new(name)) {
        let name = show::safe(name);
        return failure.help(format!("`{name}` is a directory; name files in it: {one}"));
    }
    match nearest_plan(context, Path::new(name)) {
        Some(near) => failure.help(format!("did you mean the plan {near}?")),
        None => failure,
    }
}

/// Returns the file that a name stands for, seen from the current directory.
///
/// # Errors
///
/// Where several files fit, and where the name is no text.
pub fn lookup(workspace: &Path, name: &Path) -> Result<Option<PathBuf>, Failure> {
    if name.to_str().is_none() {
        return Err(Failure::not_text(&show::safe(&name.to_string_lossy())));
    }
    if name.is_file() {
        return Ok(Some(name.to_owned()));
    }
    let here = std::env::current_dir().unwrap_or_default();
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    let mut places = vec![here.clone()];
    if is_below {
        places.extend([here.join(FOLDER), workspace.to_owned(), workspace.join(FOLDER)]);
    }
    for place in places {
        let file = place.join(name);
        let with = |ending: &str| {
            PathBuf::from(OsString::from_iter([file.as_os_str(), ".".as_ref(), OsStr::new(ending)]))
        };
        let found = match file.is_file() {
            true => vec![file],
            false => ENDINGS.iter().map(|ending| with(ending)).filter(|file| file.is_file()).collect(),
        };
        let mut found = found.iter().map(|file| next::relative(file, &here, workspace));
        match (found.next(), found.next()) {
            (None, _) => {}
            (Some(only), None) => return Ok(Some(only)),
            (Some(one), Some(other)) => {
                let name = show::safe(&name.display().to_string());
                return Err(Failure::usage(format!(
                    "`{name}` may be several plans; name one with its ending"
                ))
                .help(format!("{} or {}", show::file_word(&one), show::file_word(&other))));
            }
        }
    }
    Ok(None)
}

/// Says that there is no such plan, and what may have been meant; where nothing is near, how to write it.
pub fn missing(context: &Context, name: &Path) -> Failure {
    let shown = show::safe(&name.display().to_string());
    let failure = Failure::not_found(format!("could not read {shown}: it does not exist"));
    // A pattern that the shell left as it is fits no file.
    if shown.contains('*') {
        return failure.next("planctl plan ls");
    }
    let word = name.to_string_lossy();
    if let Some(found) = library(context).entry(&word) {
        let file = in_folder(context, &word).with_extension(ending_of(found));
        let (file, entry) = (show::file_word(&file), show::shell_word(&word));
        let message = format!("`{shown}` is an entry of the library, and this project has no plan of it");
        return Failure::not_found(message).next(format!("planctl new {file} --from {entry}"));
    }
    if let Some(near) = nearest_plan(context, name) {
        return failure.help(format!("did you mean {near}?")).next("planctl plan ls");
    }
    match (Language::of(&word), name.extension()) {
        (Some(_), _) => failure.next("planctl plan ls"),
        (None, None) if is_bare(name) => {
            failure.next(format!("planctl new {}", show::file_word(&in_folder(context, &word))))
        }
        (None, _) => failure.next(format!("planctl new {}", show::file_word(name))),
    }
}

/// Returns where a plan of this name is written if nobody says where: in the folder of the workspace's plans, seen from here.
pub fn in_folder(context: &Context, name: &str) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let file = context.workspace().join(FOLDER).join(format!("{name}.md"));
    next::relative(&file, &here, context.workspace())
}

/// Returns the path of a file in the workspace, by which it is found from any folder; one that lies elsewhere keeps its whole path.
pub fn in_workspace(context: &Context, file: &Path) -> PathBuf {
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    whole.strip_prefix(context.workspace()).map(Path::to_owned).unwrap_or(whole)
}

/// Returns a file that is named by its path in the workspace as it is seen from here.
pub fn path_from_here(context: &Context, file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    next::relative(&context.workspace().join(file), &here, context.workspace())
}

/// Returns the words that stand for a plan of the workspace where a person types: those below the current directory, and others by
/// their paths in the workspace.
pub fn plan_words(context: &Context) -> Vec<(String, String)> {
    let mut known = std::env::current_dir().ok().and_then(|here| paths(&here).ok()).unwrap_or_default();
    let workspace = context.workspace();
    let is_other = |word: &str, known: &[(String, String)]| {
        let seen = path_from_here(context, Path::new(word));
        !known.iter().any(|(own, _)| *own == word || Path::new(own) == seen)
    };
    let others = paths(workspace).unwrap_or_default().into_iter();
    let others: Vec<_> = others.filter(|(word, _)| is_other(word, &known)).collect();
    known.extend(others);
    known
}

/// Returns how the name of a plan ends that says all that an entry does: in markdown, else as JSON.
pub fn ending_of(found: &FoundEntry) -> &'static str {
    let written = entry_markdown(&found.source, &found.entry.id);
    let is_whole = written.is_none_or(|written| written.lost.is_empty() && written.changed.is_empty());
    if is_whole { "md" } else { "json" }
}

/// Says whether a name has neither a folder nor an ending.
pub fn is_bare(name: &Path) -> bool {
    name.extension().is_none() && name.file_name() == Some(name.as_os_str())
}

fn has_ending(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Returns the plan with the nearest name, as a word of a command that is typed here.
fn nearest_plan(context: &Context, name: &Path) -> Option<String> {
    let (here, workspace) = (std::env::current_dir().ok()?, context.workspace());
    let beside = here.join(name.parent().unwrap_or(Path::new("")));
    let in_folder = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let beside = [beside, here.join(FOLDER), workspace.join(FOLDER)].into_iter().flat_map(in_folder);
    let beside = beside.map(|entry| entry.path()).filter(|path| has_ending(path) && path.is_file());
    let plans = paths(workspace).unwrap_or_default().into_iter().map(|(path, _)| workspace.join(path));
    let known: Vec<PathBuf> =
        plans.chain(beside).map(|file| next::relative(&file, &here, workspace)).collect();
    let whole = known.iter().map(|file| (file.to_string_lossy(), file));
    let names = known.iter().filter_map(|file| Some((file.file_name()?.to_string_lossy(), file)));
    let stems = known.iter().filter_map(|file| Some((file.file_stem()?.to_string_lossy(), file)));
    let typed = name.to_string_lossy();
    let last = name.file_name()?.to_string_lossy();
    let nearest = |typed: &str, known: Vec<(std::borrow::Cow<'_, str>, &PathBuf)>| {
        let near = did_you_mean(typed, known.iter().map(|(word, _)| &**word))?;
        known.iter().find(|(word, _)| word == near).map(|(_, file)| show::file_word(file))
    };
    nearest(&typed, whole.collect())
        .or_else(|| nearest(&last, names.collect()))
        .or_else(|| nearest(&last, stems.collect()))
}

/// Returns the paths of the plans below a directory, each with its title.
pub fn paths(directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let title = |tree: PlanTree| tree.head.title.map(|title| title.value).unwrap_or_default();
    Ok(find_plans(directory)?.into_iter().map(|(path, tree)| (path, title(tree))).collect())
}

/// Returns the files whose frontmatter says `type: plan`, by their paths in the workspace, in the order of their names.
pub fn find_plans(workspace: &Path) -> Result<Vec<(String, PlanTree)>, Failure> {
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
