//! `planctl plan import`: makes a plan of another tool's task list, and says what is left to write.

use std::path::{Path, PathBuf};

use planctl_lang::{Imported, Origin, Source, import, slug};

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
pub fn run(context: &Context, file: &Path, output: Option<&Path>) -> Answer {
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
    let imported = import(&source, &context.actor(), &beside(context, &file, origin));
    let Some(imported) = imported.filter(|imported| imported.steps > 0) else {
        return Err(Failure::new(Exit::No, format!("{name} has no open task; nothing was written")));
    };
    let made = output.map_or_else(|| plan_files::in_folder(context, &slug(&imported.title)), Path::to_owned);
    write::create(&made, &imported.text).map_err(|failure| {
        if failure.exit == Exit::Conflict { failure.help("name another file: -o FILE") } else { failure }
    })?;
    show::print(&report(&imported, &name, &made))?;
    Ok(Exit::Yes)
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
fn beside(context: &Context, file: &Path, origin: Origin) -> Vec<String> {
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
