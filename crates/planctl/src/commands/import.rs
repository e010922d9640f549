//! `planctl plan import`: makes a plan of another tool's task list, and says what is left to write.

use std::path::{Path, PathBuf};

use planctl_lang::{
    Diagnostic, Imported, Origin, PLAN_BYTES_MAX, STEPS_MAX, Source, did_you_mean, import, import_findings,
    slug, tags,
};

use super::verify::grouped;
use super::{Context, expand, write};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::plan_files;
use crate::show;

/// The files of a folder that are tried where a folder is named.
const LISTS: [&str; 3] = ["tasks.md", "tasks.json", "tasks/tasks.json"];
/// The most tasks without a step that are listed; the plan has all of them in its comments.
const LEFT_OUT_MAX: usize = 10;

/// Makes a plan that is not there yet.
pub fn run(context: &Context, file: &Path, output: Option<&Path>, tag: Option<&str>) -> Answer {
    context.format(&[Format::Human])?;
    let file = list_of(file);
    let name = show::safe(&file.display().to_string());
    let read = expand::read(&file)?;
    // Sentences of the plan name files as its steps find them: from the workspace.
    let source = Source::new(from_workspace(context, &file), read.text());
    let Some(origin) = Origin::of(&source) else {
        let message = format!("{name} is not a task list that planctl knows");
        return Err(Failure::new(Exit::No, message).help(
            "it reads spec-kit, OpenSpec and Kiro tasks.md, plans of ralphex, tasks.json of Task Master, and check lists \
             (`- [ ] …`); a plan of planctl needs no import",
        ));
    };
    let tags = tags(&source);
    let tag = chosen(&tags, tag, &file)?;
    let found = import_findings(&source, tag);
    show::print(&grouped(&found, &read))?;
    if found.iter().any(Diagnostic::is_error) {
        return Err(Failure::new(Exit::No, format!("{name} was not imported; nothing was written")));
    }
    let Some(imported) = import(&source, &context.actor(), &companions_beside(context, &file, origin), tag)
    else {
        return Err(Failure::new(Exit::No, format!("{name} has no open task; nothing was written")));
    };
    refuse_unfit(&imported, &name)?;
    let made = output.map_or_else(|| plan_files::in_folder(context, &slug(&imported.title)), Path::to_owned);
    write::create_plan(&made, &imported.text, None).map_err(|failure| {
        if failure.exit == Exit::Conflict { failure.help("name another file: -o FILE") } else { failure }
    })?;
    let others: Vec<String> =
        tags.iter().filter(|other| Some(other.as_str()) != tag).map(|other| show::safe(other)).collect();
    if !others.is_empty() {
        context.say(&format!("not read: tasks with the tag {} (--tag TAG)", others.join(", ")));
    }
    show::print(&report(&imported, &name, &made))?;
    Ok(Exit::Yes)
}

/// Returns the tag whose tasks are read: the one that was named, the usual one, or the only one.
fn chosen<'t>(tags: &'t [String], named: Option<&str>, file: &Path) -> Result<Option<&'t str>, Failure> {
    let name = file.display().to_string();
    let listed = || show::safe(&tags.join(", "));
    match (tags, named) {
        (_, Some(named)) => match tags.iter().find(|tag| *tag == named) {
            Some(tag) => Ok(Some(tag)),
            None => {
                let missing =
                    Failure::not_found(format!("{} has no tag `{}`", show::safe(&name), show::safe(named)));
                Err(match (did_you_mean(named, tags.iter().map(String::as_str)), tags) {
                    (_, []) => missing.help("only files of Task Master have tags: leave --tag out"),
                    (Some(near), _) => missing.help(format!("did you mean `{}`?", show::safe(near))),
                    (None, _) => missing.help(format!("it has {}", listed())),
                })
            }
        },
        ([], None) => Ok(None),
        ([first, others @ ..], None) if others.is_empty() || first == "master" => Ok(Some(first)),
        ([first, ..], None) => {
            let message = format!("{} has tasks with the tags {}", show::safe(&name), listed());
            let (file, tag) = (show::shell_word(&name), show::shell_word(first));
            Err(Failure::new(Exit::No, message)
                .help("name the one to import, with --tag")
                .next(format!("planctl plan import {file} --tag {tag}")))
        }
    }
}

/// Refuses a list without an open task, and one that makes a larger plan than there may be.
fn refuse_unfit(imported: &Imported, name: &str) -> Result<(), Failure> {
    let refused = |message: String| Err(Failure::new(Exit::No, message));
    let steps = imported.steps;
    if steps == 0 {
        let left: Vec<String> =
            imported.left_out.iter().take(LEFT_OUT_MAX).map(|task| show::safe(task)).collect();
        let left = if left.is_empty() { left.concat() } else { format!("; left out: {}", left.join("; ")) };
        return refused(format!("{name} has no open task; nothing was written{left}"));
    }
    let size = imported.text.len();
    let what = match (steps > STEPS_MAX, size > PLAN_BYTES_MAX) {
        (true, _) => format!("{steps} steps, and a plan may have {STEPS_MAX}"),
        (false, true) => format!("{size} bytes, and a plan may have {PLAN_BYTES_MAX}"),
        (false, false) => return Ok(()),
    };
    refused(format!("the plan of {name} would have {what}; nothing was written"))
        .map_err(|failure| failure.help("import a part of the list at a time"))
}

fn list_of(file: &Path) -> PathBuf {
    let lists = LISTS.iter().map(|list| file.join(list));
    let mut there = lists.filter(|list| file.is_dir() && list.is_file());
    there.next().unwrap_or_else(|| file.to_owned())
}

fn from_workspace(context: &Context, file: &Path) -> String {
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    whole.strip_prefix(context.workspace()).unwrap_or(file).to_string_lossy().into_owned()
}

// The files beside the list that say more, where they are in the workspace.
fn companions_beside(context: &Context, file: &Path, origin: Origin) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let there = origin.companions().iter().map(|name| folder.join(name)).filter(|path| path.is_file());
    let there = there.map(|path| from_workspace(context, &path));
    there.filter(|path| Path::new(path).is_relative()).collect()
}

fn report(imported: &Imported, from: &str, made: &Path) -> String {
    let steps = if imported.steps == 1 { "1 step".to_owned() } else { format!("{} steps", imported.steps) };
    let name = show::safe(&made.display().to_string());
    let mut text = format!("wrote {name}: {steps} from {from}, {}\n", imported.origin.name());
    for (what, left) in [("already done, so not imported", &imported.done), ("left out", &imported.left_out)]
    {
        if !left.is_empty() {
            let shown: Vec<String> = left.iter().take(LEFT_OUT_MAX).map(|task| show::safe(task)).collect();
            let rest = left.len() - shown.len();
            let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
            text.push_str(&format!("{what}: {}{more}\n", shown.join("; ")));
        }
    }
    if imported.gaps > 0 {
        let contracts =
            if imported.gaps == 1 { "1 contract" } else { &format!("{} contracts", imported.gaps) };
        text.push_str(&format!("left to write: {contracts}, marked `**contract:** TODO`\n"));
    }
    text.push_str(&format!("{}\n", next::line(&format!("planctl verify {}", show::file_word(made)))));
    text
}
