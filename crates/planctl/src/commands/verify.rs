//! `planctl verify`: works without a database.

use std::path::{Path, PathBuf};

use planctl_lang::{Code, Diagnostic, Levels};
use planctl_server::check::Checked;

use super::Context;
use crate::args::VerifyArgs;
use crate::checking::{self, Prober};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::plan_files;
use crate::show;

mod github;
mod human;
pub(crate) mod picture;
mod place;
mod plain;
mod probing;
mod report;
mod sarif;
mod watch;

pub use human::{
    allowed, counted, findings, fixing_line, grouped, is_shown, outcome, short_digest, summary, without_agent,
};
pub use picture::{Detail, draw, name_others, plan_view, unserved_roles, workspace_words};
pub use plain::warnings;

const FORMATS: [Format; 6] =
    [Format::Human, Format::Json, Format::Jsonl, Format::Plain, Format::Sarif, Format::Github];

/// One of the files that were named, and what came of it.
pub struct Looked {
    /// The file as it was named.
    pub file: PathBuf,
    /// The findings, or the reason that it can't be read.
    pub found: Result<Checked, Failure>,
}

/// Verifies plans and reports every finding.
pub async fn verify(context: &Context, args: &VerifyArgs) -> Answer {
    let reads_input = args.files.iter().any(|file| is_input(file));
    if reads_input && (args.watch || args.fixing.fix || args.files.len() > 1) {
        return Err(Failure::usage("`-` is standard input: alone, and without --watch and --fix"));
    }
    // A file that is not there is named by the finding that it can't be read.
    let file = |file: &PathBuf| plan_files::lookup(context.workspace(), file);
    let files = args.files.iter().map(|name| Ok(file(name)?.unwrap_or_else(|| name.clone())));
    let files = files.collect::<Result<Vec<PathBuf>, Failure>>()?;
    let args = &VerifyArgs { files, ..args.clone() };
    if args.watch {
        return watch::watch(context, args).await;
    }
    if args.fixing.fix {
        return super::fix::fix(context, &args.files, &args.levels.0, &args.fixing).await;
    }
    let prober = probing::prober(context, &args.probing)?;
    verify_and_report(context, &args.files, &args.levels.0, prober.as_ref()).await
}

/// Verifies plans' files as they are, and reports every finding.
pub async fn files(context: &Context, files: &[PathBuf], levels: &Levels) -> Answer {
    verify_and_report(context, files, levels, None).await
}

async fn verify_and_report(
    context: &Context,
    files: &[PathBuf],
    levels: &Levels,
    prober: Option<&Prober>,
) -> Answer {
    let format = context.format(&FORMATS)?;
    let looked = verify_all(context, files, levels, prober).await?;
    report::print(context, &looked, format)?;
    Ok(worst_exit(&looked))
}

/// Verifies every file; one that can't be read keeps none of the others from being verified.
async fn verify_all(
    context: &Context,
    files: &[PathBuf],
    levels: &Levels,
    prober: Option<&Prober>,
) -> Result<Vec<Looked>, Failure> {
    let mut looked = Vec::with_capacity(files.len());
    for file in files {
        let found = match prober {
            prober if is_input(file) => checking::check_input(context, prober, levels).await,
            Some(prober) => prober.check(context, file, levels).await,
            None => checking::check(context, file, None, levels).await,
        };
        match found {
            // A fault of this machine or its configuration is no finding of a file.
            Err(failure) if !matches!(failure.exit, Exit::No | Exit::NotFound) => return Err(failure),
            found => looked.push(Looked { file: file.clone(), found }),
        }
    }
    Ok(looked)
}

/// Says whether a name stands for standard input.
fn is_input(file: &Path) -> bool {
    file == Path::new("-")
}

fn worst_exit(looked: &[Looked]) -> Exit {
    let exits = looked.iter().map(|one| match &one.found {
        Ok(checked) if checked.verification.is_verified() => Exit::Yes,
        Ok(_) => Exit::No,
        Err(failure) => failure.exit,
    });
    exits.max().unwrap_or(Exit::Yes)
}

/// Makes the finding that a file can't be read at all.
fn unreadable(failure: &Failure) -> Diagnostic {
    let finding = Diagnostic::new(Code::P003, failure.message.clone());
    match &failure.help {
        Some(help) => finding.help(help.clone()),
        None => finding,
    }
}

/// Prints reports for programs: of several files as one list, or one a line.
pub fn print_reports(reports: &[planctl_lang::Report], format: Format) -> Result<(), Failure> {
    match reports {
        [one] => show::print_json(one),
        many if format == Format::Json => show::print_json(&many),
        many => many.iter().try_for_each(show::print_json),
    }
}
