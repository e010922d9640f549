//! `planctl diff`: the changes in a plan, by meaning and line by line.

use std::path::Path;

use planctl_api::wire::{PlanDiffView, RevisionView};
use planctl_lang::{Change, Levels};

use super::Context;
use super::plan::show_command;
use super::verify::short_digest;
use crate::checking;
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::plan_files;
use crate::show::{self, BOLD, FAINT, styled};

/// Which texts are compared.
pub struct Between {
    /// The older one.
    pub since: String,
    /// The newer one; the file where it is absent.
    pub until: Option<String>,
    /// Says that the lines are shown, too.
    pub text: bool,
}

/// Shows what changed; answers 1 where something did.
pub async fn diff(context: &Context, file: &Path, between: &Between) -> Answer {
    let is_json = context.is_json()?;
    let file = &plan_files::plan_file_named(context, file)?;
    let checked = checking::check(context, file, None, &Levels::default()).await?;
    let client = Client::open(context).await?;
    let view = client.plan_diff(&checked, &between.since, between.until.as_deref()).await;
    let view = view.map_err(|failure| failure.or_list(show_command(file)))?;
    if is_json {
        show::print_json(&view)?;
    } else if view.changed {
        show::print(&draw(&view, between.text))?;
    } else {
        context.say(&format!("no difference from {}", side(&view.since)));
    }
    Ok(if view.changed { Exit::No } else { Exit::Yes })
}

/// Draws what changed by what it means; the lines, too, where that is asked for or nothing else tells.
pub fn draw(view: &PlanDiffView, with_lines: bool) -> String {
    let mut text = styled(FAINT, &format!("{} → {}", side(&view.since), side(&view.until)));
    text.push('\n');
    for change in &view.changes {
        text.push_str(&draw_change(change));
    }
    if view.changes.is_empty() {
        text.push_str("the wording differs; what runs is the same\n");
    }
    if with_lines || view.changes.is_empty() {
        text.push('\n');
        text.push_str(&draw_lines(&view.diff));
    }
    text
}

fn side(revision: &RevisionView) -> String {
    format!("{} ({})", show::safe(&revision.what), short_digest(&revision.digest))
}

// A value of several lines is shown by the lines that differ.
fn draw_change(change: &Change) -> String {
    match change {
        Change::Changed { step, field, old, new } if old.contains('\n') || new.contains('\n') => {
            let place = step.as_ref().map_or("plan".to_owned(), |step| format!("step {step}"));
            let heading = styled(BOLD, &format!("{}: {field}", show::safe(&place)));
            let lines = draw_lines(&planctl_server::diff::unified(&end_line(old), &end_line(new)));
            let indented: String = lines.lines().map(|line| format!("  {line}\n")).collect();
            format!("{heading}\n{indented}")
        }
        Change::Changed { .. } | Change::Added { .. } | Change::Removed { .. } | Change::Moved { .. } => {
            format!("{}\n", styled(BOLD, &show::safe(&change.to_string())))
        }
    }
}

fn end_line(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

/// Draws a difference in colour, each line made safe.
pub fn draw_lines(changed: &str) -> String {
    let mut text = String::new();
    for line in changed.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => show::GOOD,
            Some(b'-') => show::BAD,
            Some(b'@') => show::FAINT,
            Some(_) | None => anstyle::Style::new(),
        };
        text.push_str(&styled(style, &show::plan_block(line)));
        text.push('\n');
    }
    text
}
