//! `planctl fmt`: writes plans in planctl's own form, or names those that have another.

use std::path::{Path, PathBuf};

use planctl_api::wire::{FormatView, FormattedView};
use planctl_lang::workflow::Language;
use planctl_lang::{Source, digest, parse};

use super::{Context, changes, expand, write};
use crate::checking;
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::plan_files;
use crate::show::{self, BOLD, styled};

/// Formats plans; with `check`, writes nothing and answers 1 where one has another form.
pub fn run(context: &Context, files: &[PathBuf], check: bool) -> Answer {
    let is_json = context.is_json()?;
    let (mut worst, mut views) = (Exit::Yes, Vec::new());
    for file in files {
        match formatted(context, file, check) {
            Ok((source, view)) => {
                if check && view.changed {
                    worst = worst.max(Exit::No);
                }
                if !is_json {
                    report(context, &source, &view, check)?;
                }
                views.push(view);
            }
            Err(failure) if files.len() == 1 => return Err(failure),
            Err(failure) => {
                next::say_failure(&failure);
                worst = worst.max(failure.exit);
            }
        }
    }
    if is_json {
        show::print_json(&FormatView { check, files: views })?;
    } else {
        context.say(&summary(&views, check));
    }
    Ok(worst)
}

fn formatted(context: &Context, file: &Path, check: bool) -> Result<(Source, FormattedView), Failure> {
    let is_input = file == Path::new("-");
    let file = &if is_input { file.to_owned() } else { plan_files::plan_file_named(context, file)? };
    let source = if is_input { standard_input()? } else { expand::read(file)? };
    refuse_others(&source)?;
    let text = planctl_lang::format(&source);
    let view = FormattedView {
        file: file.display().to_string(),
        changed: text != source.text(),
        diff: planctl_server::diff::unified(source.text(), &text),
        text: is_input.then(|| text.clone()),
    };
    if view.changed && !check && !is_input {
        write::replace(context, file, source.text(), &text)?;
    }
    Ok((source, view))
}

/// Refuses what is no plan in markdown: it stays as it is, and is not called well formed.
fn refuse_others(source: &Source) -> Result<(), Failure> {
    let why = match Language::of(source.path()) {
        Some(language) => format!("it is {}, and only plans in markdown are formatted", language.name()),
        None if parse(source).0.steps.is_empty() => "it has no step that planctl can read".to_owned(),
        None => return Ok(()),
    };
    let failure = Failure::new(Exit::No, format!("could not format {}: {why}", show::safe(source.path())));
    Err(failure.next(format!("planctl verify {}", show::file_word(Path::new(source.path())))))
}

fn standard_input() -> Result<Source, Failure> {
    Source::from_bytes("-", checking::standard_input()?).map_err(|unreadable| {
        let why = show::safe(&unreadable.diagnostic.message);
        Failure::new(Exit::No, format!("could not read standard input: {why}"))
    })
}

fn report(context: &Context, source: &Source, view: &FormattedView, check: bool) -> Result<(), Failure> {
    if let Some(text) = view.text.as_ref().filter(|_| !check) {
        return show::print(text);
    }
    if !view.changed {
        return Ok(());
    }
    show::print(&format!("{}\n", show::safe(&view.file)))?;
    if context.verbosity() > 0 {
        show::print(&changes::draw_lines(&view.diff))?;
    }
    if !check && was_approved(source) {
        let note = "the text is another one: an approval of the earlier one no longer holds";
        context.say(&format!("{} {note}", styled(BOLD, "note:")));
    }
    Ok(())
}

fn was_approved(source: &Source) -> bool {
    let status = parse(source).0.frontmatter.status;
    status
        .is_some_and(|status| matches!(status.value.as_str(), "approved" | "in-progress" | "done" | "failed"))
        && digest(source) != digest(&Source::new(source.path(), planctl_lang::format(source)))
}

fn summary(views: &[FormattedView], check: bool) -> String {
    let changed = views.iter().filter(|view| view.changed).count();
    let count = |number: usize| if number == 1 { "1 plan".to_owned() } else { format!("{number} plans") };
    match (changed, check) {
        (0, _) => format!("{} in planctl's form already", count(views.len())),
        (_, true) => format!("{changed} of {} would be formatted; nothing was written", count(views.len())),
        (_, false) => format!("{changed} of {} formatted", count(views.len())),
    }
}
