//! `planctl verify --fix`: applies fixes, says what is left, and writes the file whole.

use std::path::{Path, PathBuf};

use planctl_lang::{Levels, Reach, Report};
use planctl_server::autofix::Mended;

use super::{Context, changes, verify, write};
use crate::args::Fixing;
use crate::checking;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::show::{self, BOLD, styled};

/// Mends plans; the remaining findings decide the exit code.
pub async fn fix(context: &Context, files: &[PathBuf], levels: &Levels, how: &Fixing) -> Answer {
    let format = context.format(&[Format::Human, Format::Json, Format::Jsonl])?;
    let reach = if how.unsafe_fixes { Reach::Unsafe } else { Reach::Safe };
    let (mut worst, mut reports) = (Exit::Yes, Vec::new());
    for file in files {
        let exit = match fix_one(context, file, levels, reach, (how, format)).await {
            Ok(mended) if format == Format::Human => report(context, file, &mended, how.diff)?,
            Ok(mended) => {
                reports.push(for_programs(&mended));
                exit_of(&mended)
            }
            Err(failure) if files.len() == 1 => return Err(failure),
            Err(failure) => {
                next::say_failure(&failure);
                failure.exit
            }
        };
        worst = worst.max(exit);
    }
    verify::print_reports(&reports, format)?;
    Ok(worst)
}

async fn fix_one(
    context: &Context,
    file: &Path,
    levels: &Levels,
    reach: Reach,
    (how, format): (&Fixing, Format),
) -> Result<Mended, Failure> {
    let mended = checking::mend(context, file, levels, reach).await?;
    let (old, new) = (mended.before.source.text(), mended.after.source.text());
    if how.diff && format != Format::Human {
        // Programs read the report alone.
    } else if how.diff {
        show::print(&changes::draw_lines(&planctl_server::diff::unified(old, new)))?;
    } else if mended.is_changed() {
        write::replace(context, file, old, new)?;
    }
    Ok(mended)
}

fn exit_of(mended: &Mended) -> Exit {
    if mended.after.verification.is_verified() { Exit::Yes } else { Exit::No }
}

fn for_programs(mended: &Mended) -> Report {
    let after = &mended.after;
    Report { fixed: Some(mended.fixed().0), ..after.verification.report(&after.source) }
}

fn report(context: &Context, file: &Path, mended: &Mended, is_shown_only: bool) -> Answer {
    let (after, exit) = (&mended.after, exit_of(mended));
    let (fixed, all) = mended.fixed();
    let line = fixed_line(fixed, all, is_shown_only);
    if is_shown_only {
        context.say(&line);
        return Ok(exit);
    }
    show::print(&verify::findings(after, context.is_quiet()))?;
    show::print(&format!("{line}\n"))?;
    if mended.is_changed() && was_approved(mended) {
        let note = "the text is another one: an approval of the earlier one no longer holds";
        show::print(&format!("{} {note}\n", styled(BOLD, "note:")))?;
    }
    show::print(&verify::summary(after, file, &verify::without_agent(context, after)?))?;
    Ok(exit)
}

fn fixed_line(fixed: usize, all: usize, is_shown_only: bool) -> String {
    let findings = if all == 1 { "finding" } else { "findings" };
    match (all, is_shown_only) {
        (0, _) => "nothing to fix".to_owned(),
        (_, true) => format!("would fix {fixed} of {all} {findings}; nothing was written"),
        (_, false) => format!("fixed {fixed} of {all} {findings}"),
    }
}

// Marks and statuses are not part of the digest, so a text may differ and still be the one that was approved.
fn was_approved(mended: &Mended) -> bool {
    let status = &mended.before.verification.tree.frontmatter.status;
    let is_past_draft = status.as_ref().is_some_and(|status| {
        matches!(status.value.as_str(), "approved" | "in-progress" | "done" | "failed")
    });
    is_past_draft && mended.before.verification.digest != mended.after.verification.digest
}
