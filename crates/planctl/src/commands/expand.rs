//! `planctl expand`: templates of steps become numbered steps, to be read before they are approved.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use planctl_harness::{Command, End, Spawner, contract_environment, read_plan};
use planctl_lang::workflow::Language;
use planctl_lang::{Expanded, Source, Unreadable, expand_in_batches};

use super::verify::grouped;
use super::{Context, write};
use crate::args::Expanding;
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::plan_files;
use crate::show;

/// How long the command that names the items may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// The most that items may take, as a file or as output.
const ITEMS_BYTES_MAX: usize = 1024 * 1024;

/// Expands a plan and prints it, or writes it where that is asked for.
pub async fn run(context: &Context, file: &Path, how: &Expanding) -> Answer {
    let file = &plan_files::plan_file_named(context, file)?;
    let source = read(file)?;
    let items = items(context, how).await?;
    let expanded = match expand_in_batches(&source, items.as_deref(), how.batch.unwrap_or(NonZeroUsize::MIN))
    {
        Ok(expanded) => expanded,
        Err(found) => {
            show::print(&grouped(&found, &source))?;
            let name = show::safe(&file.display().to_string());
            return Err(Failure::new(Exit::No, format!("{name} was not expanded; nothing was written")));
        }
    };
    if expanded.templates == 0 {
        context.say("no step is a template; the plan is as it was");
    }
    let written = match (&how.output, how.write) {
        (Some(output), _) => {
            write::create_plan(output, &expanded.text, Language::of(source.path()))?;
            output
        }
        (None, true) => {
            if expanded.text != source.text() {
                write::replace(context, file, source.text(), &expanded.text)?;
            }
            file
        }
        (None, false) => {
            show::print(&expanded.text)?;
            return Ok(Exit::Yes);
        }
    };
    show::print(&summary(&expanded, written))?;
    Ok(Exit::Yes)
}

fn summary(expanded: &Expanded, written: &Path) -> String {
    let name = show::safe(&written.display().to_string());
    let templates = if expanded.templates == 1 { "template" } else { "templates" };
    let steps = if expanded.steps == 1 { "step" } else { "steps" };
    format!(
        "{name}: {} {templates} expanded, {} {steps} in all\n{}\n",
        expanded.templates,
        expanded.steps,
        next::line(&format!("planctl verify {}", show::file_word(written)))
    )
}

/// Reads a plan file as text.
pub fn read(file: &Path) -> Result<Source, Failure> {
    read_as(file, Source::from_bytes)
}

/// Reads a file of any language, such as a library of JSON.
pub fn read_any(file: &Path) -> Result<Source, Failure> {
    read_as(file, Source::of_text)
}

fn read_as(
    file: &Path,
    source: fn(String, Vec<u8>) -> Result<Source, Box<Unreadable>>,
) -> Result<Source, Failure> {
    let name = show::safe(&file.display().to_string());
    let bytes = read_plan(file).map_err(|error| plan_files::unreadable(file, &error))?;
    source(file.to_string_lossy().into_owned(), bytes).map_err(|unreadable| {
        Failure::new(
            Exit::No,
            format!("could not read {name}: {}", show::safe(&unreadable.diagnostic.message)),
        )
    })
}

async fn items(context: &Context, how: &Expanding) -> Result<Option<Vec<String>>, Failure> {
    if let Some(file) = &how.items {
        let name = show::safe(&file.display().to_string());
        let bytes = read_plan(file)
            .map_err(|error| Failure::not_found(format!("could not read the items in {name}: {error}")))?;
        return lines(bytes, &format!("{name} names")).map(Some);
    }
    if let Some(command) = &how.command {
        return printed(context, command).await.map(Some);
    }
    Ok((!how.item.is_empty()).then(|| how.item.clone()))
}

fn lines(bytes: Vec<u8>, what: &str) -> Result<Vec<String>, Failure> {
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Exit::No, format!("{what} items that are not UTF-8")))?;
    let text = text.trim_start_matches('\u{feff}');
    let items: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if items.is_empty() {
        return Err(Failure::new(Exit::No, format!("{what} no item, so there is nothing to expand"))
            .help("name at least one item, one per line"));
    }
    Ok(items)
}

// The command is the user's own, typed just now; nothing that stands in a plan is run here.
async fn printed(context: &Context, typed: &str) -> Result<Vec<String>, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(["/bin/bash", "--noprofile", "--norc", "-c", typed], context.workspace());
    command.environment = contract_environment(context.workspace(), &path, [])
        .map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    command.deadline = Some(COMMAND_TIMEOUT);
    command.kept_bytes = ITEMS_BYTES_MAX;
    command.output_bytes_max = Some(ITEMS_BYTES_MAX as u64);
    let spawner = Spawner::start_self(None)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not start the helper: {error}")))?;
    let finished = spawner.run(&command, &mut |_, _| (), std::future::pending()).await;
    spawner.shutdown();
    let finished = finished
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not run the command: {error}")))?;
    let shown = show::safe(typed);
    let said = String::from_utf8_lossy(&finished.stderr.joined()).into_owned();
    let failed = |why: String| {
        let last = show::safe(show::last_line(&planctl_view::strip_terminal_sequences(&said)));
        let failure = Failure::new(Exit::No, format!("`{shown}` {why}; nothing was expanded"));
        if last.is_empty() { failure } else { failure.help(format!("it said: {last}")) }
    };
    match finished.end {
        End::Exited(0) => lines(finished.stdout.joined(), &format!("`{shown}` printed")),
        End::Exited(status) => Err(failed(format!("ended with exit code {status}"))),
        End::TimedOut | End::IdleTimedOut => {
            Err(failed(format!("took more than {} s", COMMAND_TIMEOUT.as_secs())))
        }
        End::Flooded => Err(failed("printed more than 1 MiB".to_owned())),
        End::Signalled(signal) => Err(failed(format!("was ended by signal {signal}"))),
        End::OverLimit(_) | End::Cancelled | End::HelperLost | End::NotStarted { .. } => {
            Err(failed("could not be run".to_owned()))
        }
    }
}
