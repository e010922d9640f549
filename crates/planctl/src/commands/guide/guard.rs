//! `planctl guard`: a command that must succeed before a session may stop as done, as a plan of one step behind the scenes.

use std::collections::BTreeMap;
use std::path::Path;

use planctl_api::wire::calls::{Approving, Start};
use planctl_api::wire::{GuardList, GuardView, RunState};
use planctl_api::words::GUARD_TITLE;
use planctl_config::Agent;
use planctl_glob::Glob;
use planctl_lang::{NamedFiles, draft_frontmatter};

use super::hook::{Hook, open_client};
use super::hooks::Reply;
use super::tree::state_of_files;
use super::{guided, install};
use crate::args::{GuardArgs, GuardCommand};
use crate::checking;
use crate::client::{Client, How, handle_of};
use crate::commands::verify;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::guidance::{Guard, Guidance, LockedGuidance};
use crate::next;
use crate::show::{self, shell_word};

/// How often a session tries before a person is asked; the last failure is told by the ask.
const RETRIES: u32 = 5;
/// How many of the files that a session may not change are named to the person who adds a guard.
const PROTECTED_SHOWN_MAX: usize = 6;

/// Does what was typed.
pub async fn run(context: &Context, given: GuardArgs) -> Answer {
    match given.command {
        None => add(context, given.line.unwrap_or_default().trim(), given.paths).await,
        Some(GuardCommand::Ls) => list(context),
        Some(GuardCommand::Rm { numbers }) => remove(context, &numbers).await,
    }
}

async fn add(context: &Context, command: &str, paths: Vec<String>) -> Answer {
    if command.is_empty() || command.contains("```") {
        return Err(Failure::usage("a guard is one shell command").next("planctl guard 'cargo test'"));
    }
    let globs = globs_of(&paths)?;
    let mut held = LockedGuidance::open(&context.state_dir()?, context.workspace())?;
    if let Some(same) =
        held.guidance.guards.iter().find(|guard| guard.command == command && guard.paths == paths)
    {
        return Err(Failure::new(Exit::Conflict, format!("guard {} is this very command", same.number)));
    }
    // A number that was used before has the approval of another command.
    let highest = held.guidance.guards.iter().map(|guard| guard.number).max().unwrap_or(0);
    let is_free = |number: &u32| !held.plan_of(*number).exists();
    let number = (highest + 1..u32::MAX).find(is_free).unwrap_or(u32::MAX);
    let plan = held.plan_of(number);
    let named = planctl_server::named_files(command, context.workspace());
    write(&plan, &text_of(command, &context.actor(), &work_among(&named, &paths, &globs)))?;
    let protected = match approve(context, &plan, number).await {
        Ok(protected) => protected,
        Err(failure) => {
            std::fs::remove_file(&plan).ok();
            return Err(failure);
        }
    };
    // Files that lie there already are not the session's work.
    let passed = if globs.is_empty() { None } else { state_of_files(context.workspace(), &globs) };
    let command = command.to_owned();
    let guard = Guard { number, command, paths, passed, open: None };
    held.guidance.guards.push(guard.clone());
    held.save()?;
    drop(held);
    show::print(&format!(
        "guard {number}: no session here stops as done while this fails: {}\n",
        show::safe(&guard.command)
    ))?;
    say_protected(context, &guard, &protected, &named);
    if install::installed(context)?.is_empty() {
        context.say(&next::line("planctl guide install claude"));
    }
    Ok(Exit::Yes)
}

/// Returns the files that are a session's work although the command names them: those that it only looks at, and where paths are
/// given, those of them that match. A path without wildcards is the person's word for the very file.
fn work_among(named: &NamedFiles, paths: &[String], globs: &[Glob]) -> Vec<String> {
    let can_be_written = |path: &&String| {
        let is_plain = |c: char| c.is_alphanumeric() || "_-./@+ ".contains(c);
        path.chars().all(is_plain) && path.trim() == path.as_str()
    };
    let all = named.examined.iter().chain(&named.unclear).chain(&named.deciding);
    let is_work = |path: &&String| match globs {
        [] => named.examined.contains(*path),
        globs => {
            let is_matched = globs.iter().any(|glob| glob.matches(path.as_str()));
            let is_named = paths.iter().any(|given| given.trim_start_matches("./") == path.as_str());
            is_named || is_matched && !named.deciding.contains(*path)
        }
    };
    all.filter(is_work).filter(can_be_written).cloned().collect()
}

/// Says which files a session may not change, and how the person says that one is the work all the same.
fn say_protected(context: &Context, guard: &Guard, protected: &[String], named: &NamedFiles) {
    if protected.is_empty() {
        return;
    }
    let shown: Vec<String> =
        protected.iter().take(PROTECTED_SHOWN_MAX).map(|path| show::safe(path)).collect();
    let more = match protected.len() - shown.len() {
        0 => String::new(),
        left => format!(" and {left} more"),
    };
    context.say(&format!("a session may not change what decides it: {}{more}", shown.join(", ")));
    if let Some(path) = protected.iter().find(|path| named.unclear.contains(*path)) {
        let (number, command, path) = (guard.number, shell_word(&guard.command), shell_word(path));
        context.say(&next::commands_here(&format!(
            "where {path} is the work: planctl guard rm {number}; planctl guard {command} --paths {path}"
        )));
    }
}

/// Verifies and approves the plan of a guard: the person typed its command. Returns the protected files.
async fn approve(context: &Context, plan: &Path, number: u32) -> Result<Vec<String>, Failure> {
    let session = Agent::Session;
    let checked = checking::check(context, plan, Some(&session), &planctl_lang::Levels::default()).await?;
    if !checked.verification.is_verified() {
        show::say(verify::findings(&checked, true).trim_end());
        return Err(Failure::new(Exit::No, "the command can't be a contract; nothing was added"));
    }
    let client = Client::open(context).await?;
    let note = Some(format!("planctl guard, number {number}"));
    let given = Approving { note, accept_changed: Vec::new(), worker: Some(session) };
    client.approve(&checked, &given).await?;
    client.close().await;
    Ok(checked.baseline.files.into_keys().collect())
}

/// The plan of a guard.
fn text_of(command: &str, owner: &str, work: &[String]) -> String {
    let title = format!("{GUARD_TITLE}{}", command.lines().next().unwrap_or_default());
    let head = draft_frontmatter(owner);
    let changes: String = work.iter().map(|path| format!("\n- {path}")).collect();
    let changes = if work.is_empty() { " none" } else { changes.as_str() };
    format!(
        "{head}\n# {title}\n\n## Steps\n\n### 1. The guard \
         holds\n\n**target:** session\n\n**task:**\nThe work is not done while the contract below fails. Find out why it \
         fails, and mend the cause; do not weaken the check.\n\n**changes:**{changes}\n**guard:** yes\n\n**contract:**\n```shell\n{command}\n```\nexit_code == \
         0\n**on_fail:** retry({RETRIES}), then escalate\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: std::io::Error| Failure::of_state(format!("write {}", path.display()), &error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(refused)?;
    }
    std::fs::write(path, text).map_err(refused)
}

fn globs_of(paths: &[String]) -> Result<Vec<Glob>, Failure> {
    let read =
        |path: &String| Glob::parse(path).map_err(|error| Failure::usage(format!("--paths {path}: {error}")));
    paths.iter().map(read).collect()
}

fn list(context: &Context) -> Answer {
    let format = context.format(&[Format::Human, Format::Json])?;
    let found = Guidance::find_from(&context.state_dir()?, context.workspace())?;
    let guards = found.map(|(_, guidance)| guidance.guards).unwrap_or_default();
    if format == Format::Json {
        show::print_json(&GuardList { guards: guards.iter().map(view).collect() })?;
    } else if guards.is_empty() {
        context.say("no guards in this workspace: planctl guard 'cargo test' adds one");
    } else {
        show::print(&guards.iter().map(line).collect::<String>())?;
    }
    Ok(Exit::Yes)
}

/// A guard as programs read it.
pub(super) fn view(guard: &Guard) -> GuardView {
    let state = match (&guard.open, &guard.passed) {
        (Some(_), _) => "fails",
        (None, Some(_)) => "holds",
        (None, None) => "untried",
    };
    GuardView {
        number: guard.number,
        command: guard.command.clone(),
        paths: guard.paths.clone(),
        state: state.to_owned(),
        run: guard.open.as_ref().map(|open| open.run.clone()),
    }
}

/// A guard in one line.
pub(super) fn line(guard: &Guard) -> String {
    let paths = if guard.paths.is_empty() { String::new() } else { format!(" · {}", guard.paths.join(" ")) };
    let state = match (&guard.open, &guard.passed) {
        (Some(open), _) => format!(" · fails: planctl why {}", open.run),
        (None, Some(_)) => " · holds".to_owned(),
        (None, None) => " · not tried yet".to_owned(),
    };
    format!("guard {}: {}{}{state}\n", guard.number, show::safe(&guard.command), show::safe(&paths))
}

async fn remove(context: &Context, numbers: &[u32]) -> Answer {
    let mut held = LockedGuidance::open(&context.state_dir()?, context.workspace())?;
    for number in numbers {
        let Some(at) = held.guidance.guards.iter().position(|guard| guard.number == *number) else {
            return Err(
                Failure::not_found(format!("there is no guard {number} here")).next("planctl guard ls")
            );
        };
        let guard = held.guidance.guards.remove(at);
        if let Some(open) = &guard.open {
            let client = Client::open(context).await?;
            let handle = handle_of(&open.id)?;
            if !client.status(handle).await?.state.is_over() {
                client.cancel(handle, Some("the guard was removed")).await?;
            }
            client.close().await;
        }
        held.save()?;
        show::print(&format!("removed guard {number}: {}\n", show::safe(&guard.command)))?;
    }
    Ok(Exit::Yes)
}

/// Tells a session that begins of the guards.
pub(super) fn guards_text(guidance: &Guidance) -> Option<String> {
    if guidance.guards.is_empty() {
        return None;
    }
    let commands = guidance.guards.iter().map(|guard| format!("- {}", guard.command));
    let commands: Vec<String> = commands.collect();
    Some(format!("Your turn does not end as done while one of these fails:\n{}", commands.join("\n")))
}

/// Says whether each guard held with the very files that lie there. This needs no database, and is what most turns end with.
pub(super) fn all_hold(workspace: &Path, guidance: &Guidance) -> bool {
    let mut states: BTreeMap<&[String], Option<String>> = BTreeMap::new();
    guidance.guards.iter().all(|guard| {
        let files = states.entry(&guard.paths).or_insert_with(|| {
            globs_of(&guard.paths).ok().and_then(|globs| state_of_files(workspace, &globs))
        });
        holds_with(guard, files.as_ref())
    })
}

fn holds_with(guard: &Guard, files: Option<&String>) -> bool {
    guard.open.is_none() && guard.passed.is_some() && guard.passed.as_ref() == files
}

/// Tries the guards whose files changed since they held; says what becomes of the session where one does not hold.
pub(super) async fn stop(context: &Context, hook: &Hook, guidance: &Guidance) -> Result<Reply, Failure> {
    // The run of a guard that does not hold has the workspace, so it comes first.
    let mut guards: Vec<&Guard> = guidance.guards.iter().collect();
    guards.sort_by_key(|guard| guard.open.is_none());
    for guard in guards {
        let files = state_of_files(hook.workspace(), &globs_of(&guard.paths)?);
        if holds_with(guard, files.as_ref()) {
            continue;
        }
        let client = open_client(context).await?;
        let reply = try_guard(context, &client, (hook, guidance), guard, files).await;
        client.close().await;
        match reply? {
            Reply::Pass => {}
            other @ (Reply::Note(_) | Reply::Context(_) | Reply::Refuse(_) | Reply::SendBack(_)) => {
                return Ok(other);
            }
        }
    }
    Ok(Reply::Pass)
}

/// Tries one guard: takes its run up, or begins one.
async fn try_guard(
    context: &Context,
    client: &Client,
    (hook, guidance): (&Hook, &Guidance),
    guard: &Guard,
    files: Option<String>,
) -> Result<Reply, Failure> {
    let state_dir = &context.state_dir()?;
    let run = match &guard.open {
        Some(open) => open.clone(),
        None => {
            let session = Agent::Session;
            let plan = LockedGuidance::open(state_dir, hook.workspace())?.plan_of(guard.number);
            let checked =
                checking::check(context, &plan, Some(&session), &planctl_lang::Levels::default()).await?;
            let start = Start { worker: Some(session), again: true, ..Start::default() };
            match client.start(&checked, &start).await? {
                How::Ready { handle, .. } => guided(client, handle, &client.status(handle).await?).await?,
                How::NeedsApproval { ask, .. } => {
                    let line = format!(
                        "planctl: guard {} is not tried: files that decide it changed. planctl approvals show {ask}",
                        guard.number
                    );
                    return Ok(Reply::Note(line));
                }
                How::AlreadyDone { .. } => return Ok(Reply::Pass),
                How::ChangedSinceApproval { .. } => {
                    let line = format!(
                        "planctl: guard {} is not tried: its plan was changed. planctl guard rm {0}, then add it again",
                        guard.number
                    );
                    return Ok(Reply::Note(line));
                }
            }
        }
    };
    update_guard(state_dir, hook.workspace(), guard.number, |guard| guard.open = Some(run.clone()))?;
    let (reply, state) = hook.end_turn(client, (guidance, &run), true).await?;
    update_guard(state_dir, hook.workspace(), guard.number, |guard| {
        if state.is_over() {
            guard.open = None;
            guard.passed = files.filter(|_| state == RunState::Done);
        }
    })?;
    if state == RunState::Done {
        return Ok(Reply::Pass);
    }
    Ok(reply)
}

fn update_guard(
    state_dir: &Path,
    workspace: &Path,
    number: u32,
    change: impl FnOnce(&mut Guard),
) -> Result<(), Failure> {
    let mut held = LockedGuidance::open(state_dir, workspace)?;
    if let Some(guard) = held.guidance.guards.iter_mut().find(|guard| guard.number == number) {
        change(guard);
    }
    held.save()
}

/// Ends the runs of guards that do not hold, since a plan needs the workspace; they are tried again once it is over.
pub(super) async fn suspend_all(client: &Client, held: &mut LockedGuidance) -> Result<(), Failure> {
    for guard in &mut held.guidance.guards {
        let Some(open) = guard.open.take() else { continue };
        let handle = handle_of(&open.id)?;
        if !client.status(handle).await?.state.is_over() {
            client.cancel(handle, Some("another run has the workspace now")).await?;
        }
    }
    Ok(())
}
