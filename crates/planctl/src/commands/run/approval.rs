//! The approval that a run needs before it begins.

use std::path::Path;

use planctl_api::Next;
use planctl_api::wire::DriftView;
use planctl_api::wire::calls::Approving;
use planctl_engine::Role;
use planctl_server::check::Checked;

use super::super::verify::{self, Detail};
use super::super::{Context, changes};
use super::{Wish, name};
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::show::{self, shell_word, styled};
use crate::{decide, next};

/// Decides whether this plan is approved now: `None` where the person says no.
pub(super) async fn approval(
    context: &Context,
    client: &Client,
    checked: &Checked,
    wish: &Wish,
) -> Result<Option<Option<Approving>>, Failure> {
    if wish.approve.is_some() || !context.is_interactive() {
        return Ok(Some(wish.approve.clone()));
    }
    let standing = client.plan_standing(checked, wish.worker.as_ref(), wish.again).await?;
    if !standing.needs_approval {
        return Ok(Some(None));
    }
    let Some(graph) = checked.verification.graph.as_ref() else {
        return Ok(Some(None));
    };
    let mut view = verify::plan_view(context, checked, graph)?;
    verify::name_others(&mut view, &standing.served);
    let unserved = verify::unserved_roles(&view, wish.worker.as_ref());
    // Beside a daemon a worker may still come; here nobody would do the work that a person is asked about.
    if let Some(role) = unserved.first().filter(|_| !client.is_daemon()) {
        return Err(no_worker(role));
    }
    let is_verbose = context.verbosity() > 0;
    let detail = Detail { only_step: None, has_defaults: is_verbose, has_all: is_verbose };
    show::tell(&verify::draw(&view, wish.worker.as_ref(), detail));
    say_uncommitted(&standing.uncommitted);
    say_refusals(&standing.no_policy);
    if !unserved.is_empty() {
        let roles: Vec<String> = unserved.iter().map(|role| show::safe(role.as_str())).collect();
        show::say(&styled(
            show::CARE,
            &format!(
                "no worker serves {}: name one with --agent NAME or --exec CMD, or start one with planctl worker run",
                roles.join(", ")
            ),
        ));
    }
    loop {
        let mut choices =
            vec![('a', "pprove"), ('d', "iff since last approval"), ('s', "how plan"), ('n', "o")];
        choices.retain(|(letter, _)| *letter != 'd' || standing.approved_before.is_some());
        match decide::choose("run this?", &choices)? {
            'a' => return Ok(ask_about_drift(&standing.drift).await?.map(Some)),
            'd' => {
                let before = standing.approved_before.as_deref().unwrap_or_default();
                let now = planctl_lang::canonical(&checked.source);
                show::say(&changes::draw_lines(&planctl_server::diff::unified(before, &now)));
            }
            's' => show::say(&show::plan_block(checked.source.text())),
            _ => return Ok(None),
        }
    }
}

fn no_worker(role: &Role) -> Failure {
    let failure = Failure::new(Exit::No, format!("could not start: no agent serves the role `{role}`"));
    next::with_next(failure, &Next::NameWorker { role: role.to_string() }, None)
}

/// Says which protected files an approval takes as they are although no commit has them so.
pub fn say_uncommitted(files: &[String]) {
    if !files.is_empty() {
        show::say(super::super::approvals::page::draw_uncommitted(files).trim_end());
    }
}

/// Says why no policy approved a plan.
pub(super) fn say_refusals(no_policy: &[String]) {
    for line in no_policy {
        show::tell(&format!("  {}", show::safe(line)));
    }
}

/// The question about protected files that differ from what was approved last.
pub const DRIFT_QUESTION: &str = "are these files meant as they are now?";

/// Asks whether protected files are meant that differ from what was approved last; none where the person says no.
async fn ask_about_drift(drift: &[DriftView]) -> Result<Option<Approving>, Failure> {
    if drift.is_empty() {
        return Ok(Some(Approving::default()));
    }
    show_drift(drift);
    Ok(decide::is_yes_or_stopped(DRIFT_QUESTION).await?.then(|| accepting(drift)))
}

/// Shows protected files that differ from what was approved last.
pub fn show_drift(drift: &[DriftView]) {
    show::say(super::super::approvals::page::draw_drift(drift).trim_end());
}

/// Returns the approval of protected files as they are now.
pub fn accepting(drift: &[DriftView]) -> Approving {
    let word = |file: &DriftView| match &file.now {
        Some(digest) => format!("{}@{digest}", file.path),
        None => format!("{}@absent", file.path),
    };
    Approving { accept_changed: drift.iter().map(word).collect(), ..Approving::default() }
}

pub(super) fn changed_plan_failure(
    file: &Path,
    checked: &Checked,
    approved_text: &str,
    run: Option<&str>,
) -> Result<Failure, Failure> {
    let now = planctl_lang::canonical(&checked.source);
    show::print(&changes::draw_lines(&planctl_server::diff::unified(approved_text, &now)))?;
    let approved = planctl_lang::digest_of_text(approved_text);
    let failure = Failure::new(
        Exit::Conflict,
        format!(
            "could not run {}: it changed after its approval (approved {approved}, now {})",
            file.display(),
            checked.verification.digest
        ),
    );
    Ok(match run {
        Some(run) => failure
            .help("a run of the approved text is not over: take it up, or cancel it before this text can run")
            .next(format!("planctl resume {}", shell_word(run))),
        None => failure
            .help("read the difference above, then approve the plan as it stands")
            .next(format!("planctl approve {}", name(file))),
    })
}
