//! Explains: topics, the version; and trusts a directory's configuration.

use std::path::Path;

use clap::{Args as _, Subcommand as _};
use planctl_api::schema;
use planctl_api::wire::{SchemaList, SchemaName, VersionView};

use crate::args::{self, PlanVerb, RunVerb};
use crate::context::{Context, config_failure};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Global;
use crate::show;

/// How plans and runs are named in commands; docs/plan-format.md says the same.
const NAMES: &str = "\
A plan is named by its file, or without the ending or the folder `plans`: `planctl run hello` runs plans/hello.md. planctl
looks for the file as it is typed, then for NAME.md, .dot, .gv or .json: in the current directory, in its folder `plans`, in the
workspace and in the workspace's `plans`. The first place that has one counts; where it has several, name the ending.

A run is named by its name or its id, by the beginning of either, by `@last`, or by its plan, which means the newest run of it. Of
several runs that begin so, the only one that is not over is meant, else the only one that failed.

Where a plan or a run may be named (show, edit, graph render), the plan of a name takes precedence over the run of that name. Where
a run is to be named (status, logs, resume, …), the run takes precedence over the plan. A number is an ask in `approve`, `reject`
and `edit`, unless a file is called so.
";

/// Prints the help of a topic or command.
pub fn help(topic: &[String]) -> Answer {
    if topic == ["exit-codes"] {
        let rows = Exit::ALL
            .iter()
            .map(|exit| {
                let (meaning, reaction) = exit.meaning();
                vec![exit.code().to_string(), meaning.to_owned(), reaction.to_owned()]
            })
            .collect();
        show::print(&show::table(&["CODE", "MEANING", "WHAT A SCRIPT DOES"], rows))?;
        return Ok(Exit::Yes);
    }
    if topic == ["names"] {
        show::print(&show::folded(NAMES))?;
        return Ok(Exit::Yes);
    }
    if topic == ["options"] {
        let global = Global::augment_args(clap::Command::new("planctl").disable_help_flag(true));
        let global = global.help_template("{options}");
        show::print(&global.clone().render_long_help().ansi().to_string())?;
        return Ok(Exit::Yes);
    }
    let mut root = args::command();
    root.build();
    let mut command = &mut root;
    for word in topic {
        command = command.find_subcommand_mut(word).ok_or_else(|| {
            Failure::not_found(format!("there is no help on `{}`", show::safe(&topic.join(" "))))
                .help("topics: exit-codes, names, options, and every command: planctl help plan run")
        })?;
    }
    show::print(&command.render_help().ansi().to_string())?;
    Ok(Exit::Yes)
}

/// Writes the man pages of all commands into a directory.
pub fn man(context: &Context, dir: &Path) -> Answer {
    // Other tools show a page by such a word.
    let is_command = |word: &str| word == "planctl" || args::command().find_subcommand(word).is_some();
    if let Some(word) = dir.to_str().filter(|word| is_command(word)) {
        let help = if word == "planctl" { "planctl help".to_owned() } else { format!("planctl help {word}") };
        return Err(Failure::usage(format!("{word} is a command, not a folder for man pages"))
            .help(format!("for a folder of that name: planctl man ./{word}"))
            .next(help));
    }
    let written = std::fs::create_dir_all(dir)
        .and_then(|()| {
            // Short help names the options of every command in one line; a page describes them.
            let mut root = args::command().mut_args(|option| option.hide_short_help(false));
            root.build();
            write_page(dir, &root)
        })
        .and_then(|()| lead_to_verbs(dir));
    written.map_err(|error| {
        let place = show::safe(&dir.to_string_lossy());
        Failure::of_io(format!("write man pages into {place}"), &error)
    })?;
    context.say(&format!("written into {}", show::safe(&dir.to_string_lossy())));
    Ok(Exit::Yes)
}

/// Writes the page of a command, and those of the commands below it.
fn write_page(dir: &Path, command: &clap::Command) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_page(dir, below)?;
    }
    let man = clap_mangen::Man::new(command.clone().after_help(None::<&str>));
    let mut page = Vec::new();
    man.render(&mut page)?;
    let before = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let (head, examples) = before.split_once('\n').unwrap_or_default();
    if head.starts_with("Example") {
        let examples = examples.replace('\\', "\\e").replace('-', "\\-");
        // No line is joined with the next one, and none is a request.
        let lines: String = examples.lines().map(|line| format!("\\&{line}\n")).collect();
        page.extend_from_slice(format!(".SH EXAMPLES\n.nf\n{lines}.fi\n").as_bytes());
    }
    std::fs::write(dir.join(man.get_filename()), page)
}

/// Has the page of a verb that is named with its noun lead to the page of the verb, which is the same command.
fn lead_to_verbs(dir: &Path) -> std::io::Result<()> {
    for noun in ["plan", "run"] {
        let is_verb = |name: &str| match noun {
            // `planctl ls` lists runs.
            "run" => RunVerb::has_subcommand(name) || name == "ls",
            _ => RunVerb::has_subcommand(name) || PlanVerb::has_subcommand(name),
        };
        let root = args::command();
        let below = root.find_subcommand(noun).into_iter().flat_map(clap::Command::get_subcommands);
        for verb in below.map(clap::Command::get_name).filter(|name| is_verb(name)) {
            let page = dir.join(format!("planctl-{noun}-{verb}.1"));
            // A verb that is not in the list of all commands has the page with its noun alone.
            if page.exists() && dir.join(format!("planctl-{verb}.1")).exists() {
                std::fs::write(page, format!(".so man1/planctl-{verb}.1\n"))?;
            }
        }
    }
    Ok(())
}

/// Prints the version.
pub fn version(context: &Context) -> Answer {
    let version = env!("CARGO_PKG_VERSION");
    if context.is_json()? {
        show::print_json(&VersionView { version: version.to_owned() })?;
    } else {
        show::print(&format!("planctl {version}\n"))?;
    }
    Ok(Exit::Yes)
}

/// Prints a JSON Schema, or the names of all.
pub fn schema(context: &Context, name: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    if let Some(name) = name {
        let Some(schema) = schema::schema(name) else {
            let names = schema::ALL.iter().map(|(name, _)| *name);
            let near = planctl_lang::did_you_mean(name, names);
            let help =
                near.map_or("planctl schema lists them".to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(Failure::not_found(format!("there is no schema `{}`", show::safe(name))).help(help));
        };
        show::print(&format!("{schema:#}\n"))?;
        return Ok(Exit::Yes);
    }
    if is_json {
        let name = |(name, describes): &(&str, &str)| SchemaName {
            name: (*name).to_owned(),
            describes: (*describes).to_owned(),
        };
        show::print_json(&SchemaList { schemas: schema::ALL.iter().map(name).collect() })?;
    } else {
        let rows =
            schema::ALL.iter().map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()]).collect();
        show::print(&show::table(&["NAME", "DESCRIBES"], rows))?;
    }
    Ok(Exit::Yes)
}

/// Trusts a directory's planctl.toml as it stands.
pub fn trust(context: &Context, dir: &Path) -> Answer {
    let shown = show::safe(&dir.display().to_string());
    if dir.is_file() {
        let folder = dir.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Err(Failure::usage(format!("{shown} is a file, and a directory is trusted"))
            .next(format!("planctl trust {}", show::file_word(folder))));
    }
    if !dir.exists() {
        return Err(Failure::not_found(format!("could not find {shown}")));
    }
    match planctl_config::trust(&context.state_dir()?, dir) {
        Ok(path) => {
            context.say(&format!("trusted: {}, until it changes", show::safe(&path.display().to_string())));
            Ok(Exit::Yes)
        }
        Err(error) => Err(config_failure(&error)),
    }
}

#[cfg(test)]
mod named;
#[cfg(test)]
mod reference;
