//! Says in commands of planctl what the API names as next steps, so that each can be typed where it is read.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use planctl_api::wire::{RunView, WaitingOn};
use planctl_api::words::answer_command;
use planctl_api::{Next, Starting};
use planctl_config::DatabaseUrl;

use crate::failure::Failure;
use crate::flags::Global;
use crate::show::{self, BAD, BOLD, file_word, safe_block, shell_word, styled};

/// Where a person types, and what a command there means.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The flags that chose the place, as they were typed: ` -C DIR`, ` --workspace DIR`.
    flags: String,
    /// The flag that named the configuration of this workspace.
    config: String,
    /// The flag that named the daemon, or the database.
    reached_by: String,
    /// The directory in which files are named, behind `-C`.
    directory: PathBuf,
    /// The workspace that a command with these flags is about.
    workspace: PathBuf,
    /// Says whether a word after `planctl` is a command.
    is_command: fn(&str) -> bool,
}

/// The place of this process, which `-C` has moved already.
static INVOCATION: OnceLock<Invocation> = OnceLock::new();

/// Notes where this command was typed, and the workspace that it is about; the function says whether a word is a command.
pub fn note_invocation(global: &Global, workspace: &Path, is_command: fn(&str) -> bool) {
    INVOCATION.get_or_init(|| {
        let directory = std::env::current_dir().unwrap_or_default();
        let flag = |flag: &str, path: &Path| format!(" {flag} {}", file_word(path));
        let moved = global.directory.as_deref().map(|directory| flag("-C", directory));
        let named = global.named_workspace().map(|workspace| flag("--workspace", workspace));
        Invocation {
            flags: [moved, named].into_iter().flatten().collect(),
            config: global.config.as_deref().map(|file| flag("--config", file)).unwrap_or_default(),
            reached_by: reached_by(global, &directory),
            directory,
            workspace: workspace.to_owned(),
            is_command,
        }
    });
}

/// Returns the flag by which a daemon or a database was named. One with a password is not repeated: a word stands for it.
fn reached_by(global: &Global, directory: &Path) -> String {
    match (&global.server, &global.database_url) {
        (Some(url), _) if url.contains("://") && url.contains('@') => " --server URL".to_owned(),
        (Some(url), _) if url.contains("://") => format!(" --server {}", shell_word(url)),
        (Some(socket), _) => {
            let path = Path::new(socket.strip_prefix("unix:").unwrap_or(socket));
            format!(" --server {}", file_word(&directory.join(path)))
        }
        (None, Some(url)) if DatabaseUrl::parse(url).is_ok_and(|url| !url.has_password()) => {
            format!(" --database-url {}", shell_word(url))
        }
        (None, Some(_)) => " --database-url URL".to_owned(),
        (None, None) => String::new(),
    }
}

/// Returns this process's place.
fn this_invocation() -> Invocation {
    INVOCATION.get().cloned().unwrap_or_else(unknown_place)
}

/// Returns a place that is not known, and needs no flag.
fn unknown_place() -> Invocation {
    Invocation {
        flags: String::new(),
        config: String::new(),
        reached_by: String::new(),
        directory: PathBuf::new(),
        workspace: PathBuf::new(),
        is_command: |_| false,
    }
}

/// Returns commands of the workspace of this command, with the flags that chose it.
pub fn commands_here(words: &str) -> String {
    let place = this_invocation();
    place.typed_in(words, &place.workspace)
}

/// Returns the line that says what to type next.
pub fn line(commands: &str) -> String {
    format!("{} {}", styled(BOLD, "next:"), commands_here(commands))
}

/// Writes why a command failed, and what to type next.
pub fn say_failure(failure: &Failure) {
    show::tell(&styled(BAD, &safe_block(&failure.message)));
    if let Some(help) = &failure.help {
        show::tell(&format!("{} {}", styled(BOLD, "help:"), safe_block(&commands_here(help))));
    }
    if let Some(next) = &failure.next {
        show::tell(&line(&safe_block(next)));
    }
}

/// Returns commands about a run or an ask of a workspace: a run's name counts in its own workspace.
pub fn typed_in(words: &str, workspace: &str) -> String {
    this_invocation().typed_in(words, Path::new(workspace))
}

/// Says whether a person stands in the checkout of a workspace, so that git finds it by itself.
pub fn stands_in(workspace: &str) -> bool {
    let place = this_invocation();
    let top = planctl_harness::git_top_level(&place.directory);
    place.flags.is_empty() && top.is_some_and(|top| top == Path::new(workspace))
}

/// Returns the path of a workspace's plan as a word of a command that is typed there.
pub fn plan_word(plan: &str, workspace: &str) -> String {
    this_invocation().plan_word(plan, Path::new(workspace))
}

/// Returns a path of this command's workspace as a word of a command.
pub fn path_word(path: &str) -> String {
    let place = this_invocation();
    place.plan_word(path, &place.workspace)
}

/// Adds a next step to a failure: one of a run's workspace, where that is named, else of this command's.
pub fn with_next(failure: Failure, next: &Next, workspace: Option<&str>) -> Failure {
    let words = words_in(next, workspace);
    // These say what to write into planctl.toml, and are no commands.
    if matches!(next, Next::HoldNetwork { .. } | Next::NameWorker { .. }) {
        return failure.help(words);
    }
    failure.next(words)
}

/// Returns what to type, or to do, for a next step in a workspace, which is this command's where none is named: one command in
/// a line, so that each can be copied whole.
pub fn words_in(next: &Next, workspace: Option<&str>) -> String {
    let place = this_invocation();
    place.command_words(next, workspace.map_or(&place.workspace, Path::new))
}

/// Returns what to type for a next step of which a message tells. It is read in another place, where a run's name counts for
/// nothing unless its workspace is named; asks and workers are found anywhere.
pub fn words_elsewhere(next: &Next, workspace: &str) -> String {
    let place = Invocation { is_command: |_| true, ..unknown_place() };
    let is_found = matches!(next, Next::ShowAsk { .. } | Next::ServeRole { .. } | Next::ResumeWorker { .. });
    place.command_words(next, if is_found { &place.workspace } else { Path::new(workspace) })
}

/// Says which worker a run waits for, where it waits for one.
pub fn worker_line(wait: &WaitingOn) -> Option<String> {
    let role = wait.role.as_deref().filter(|_| wait.kind == "worker")?;
    let paused = wait.paused.as_deref().map(|worker| format!("; {} is paused", show::safe(worker)));
    Some(format!("waiting for a worker of role {}{}", show::safe(role), paused.unwrap_or_default()))
}

/// Returns what brings a worker to the role that a run waits for.
pub fn worker_wanted(view: &RunView) -> Option<String> {
    let next = view.waiting_on.as_ref()?.worker_wanted()?;
    Some(words_in(&next, Some(&view.workspace)))
}

impl Invocation {
    /// Returns what to type for a next step in a workspace.
    fn command_words(&self, next: &Next, workspace: &Path) -> String {
        self.typed_in(&step_words(next, &|plan| self.plan_word(plan, workspace)), workspace)
    }

    fn typed_in(&self, words: &str, workspace: &Path) -> String {
        let flags = self.flags_in(workspace);
        self.with_flags(words, &flags, &format!("{flags}{}", self.reached_by))
    }

    /// Puts flags into each command of a text that has none of its own: after `planctl`, where a command follows. A command about
    /// this machine's daemon or database names no other daemon.
    fn with_flags(&self, words: &str, of_machine: &str, flags: &str) -> String {
        if flags.is_empty() {
            return words.to_owned();
        }
        let (mut text, mut rest) = (String::new(), words);
        while let Some(word) = next_word(rest) {
            let (typed, after) = rest.split_at(word.end);
            text.push_str(typed);
            let name =
                next_word(after).map(|name| after[name].trim_end_matches(['`', ',', '.', ';', ':', ')']));
            let is_planctl = typed[word.start..].trim_start_matches(['`', '(']) == "planctl";
            if let Some(name) = name.filter(|name| is_planctl && (self.is_command)(name)) {
                let is_of_machine =
                    matches!(name, "daemon" | "db") && self.reached_by.starts_with(" --server");
                text.push_str(if is_of_machine { of_machine } else { flags });
            }
            rest = after;
        }
        text + rest
    }

    /// Returns the flags with which a command is about a workspace.
    fn flags_in(&self, workspace: &Path) -> String {
        if *workspace == self.workspace {
            return format!("{}{}", self.flags, self.config);
        }
        let flag = if is_found(workspace) { "-C" } else { "--workspace" };
        format!(" {flag} {}", file_word(workspace))
    }

    fn plan_word(&self, plan: &str, workspace: &Path) -> String {
        let is_moved = *workspace != self.workspace && is_found(workspace);
        let directory = if is_moved { workspace } else { &self.directory };
        file_word(&relative(&workspace.join(plan), directory, workspace))
    }
}

/// Says whether planctl finds this workspace by itself where it is the current directory.
fn is_found(workspace: &Path) -> bool {
    planctl_harness::git_top_level(workspace).is_none_or(|top| top == workspace)
}

/// Returns a file's path from a directory, by way of the folders above it where both are in the workspace.
pub fn relative(file: &Path, directory: &Path, workspace: &Path) -> PathBuf {
    if file == directory {
        return PathBuf::from(".");
    }
    if let Ok(below) = file.strip_prefix(directory) {
        return below.to_owned();
    }
    if !file.starts_with(workspace) || !directory.starts_with(workspace) {
        return file.to_owned();
    }
    let shared =
        file.components().zip(directory.components()).take_while(|(one, other)| one == other).count();
    let up = directory.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

/// Returns where the first word of a text is, as a shell parts words: quotes that begin one hold their blanks.
fn next_word(text: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find(|c: char| !c.is_whitespace())?;
    let word = &text[start..];
    let end = word.find(char::is_whitespace).unwrap_or(word.len());
    if !word.starts_with(['\'', '"']) {
        return Some(start..start + end);
    }
    let ends = word.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).chain([word.len()]);
    let whole =
        ends.into_iter().find(|end| shlex::split(&word[..*end]).is_some_and(|parts| parts.len() == 1));
    Some(start..start + whole.unwrap_or(end))
}

/// Returns the words of a next step; the function given says how a plan is named.
fn step_words(next: &Next, file: &dyn Fn(&str) -> String) -> String {
    match next {
        Next::VerifyPlan { plan, folder: None } => format!("planctl verify {}", file(plan)),
        Next::VerifyPlan { plan, folder: Some(folder) } => {
            format!("planctl verify --workspace {} {}", file(folder), file(plan))
        }
        Next::EditPlan { plan } => format!("edit it, then planctl verify {}", file(plan)),
        Next::CheckGraph { plan } => format!("planctl graph check {}", file(plan)),
        Next::DiffPlan { plan } => format!("planctl diff {}", file(plan)),
        Next::ApprovePlan { plan } => format!("planctl approve {}", file(plan)),
        Next::StartRun { plan, how, worker } => {
            let plan = file(plan);
            let worker = worker.as_deref().map(worker_flag).unwrap_or_default();
            match how {
                Starting::Usual => format!("planctl run {plan}{worker}"),
                Starting::Again => format!("planctl run --again {plan}{worker}"),
                Starting::Approved => format!("planctl run {plan} --approve{worker}"),
            }
        }
        Next::StartRunHere { plan } => format!("planctl run --workspace shared {}", file(plan)),
        Next::CommitAndStartOver { run, plan } => {
            format!("commit it, then planctl cancel {} && planctl run {}", shell_word(run), file(plan))
        }
        Next::UseApprovedWorker { plan, approved, named } => {
            let (plan, approved) = (file(plan), worker_flag(approved));
            let anew = named.as_deref().map(worker_flag).unwrap_or_default();
            format!(
                "planctl run {plan}{approved}\n      planctl approve {plan}{anew}    (approves the other)"
            )
        }
        Next::ServeRole { role } => format!("planctl worker run --role {} --agent NAME", shell_word(role)),
        Next::ResumeWorker { worker } => format!("planctl worker resume {}", shell_word(worker)),
        Next::NameWorker { role } => format!(
            "name a worker with --agent NAME or --exec CMD, or in planctl.toml: [roles.{role}] agent = \"exec:CMD\""
        ),
        Next::TestWorker { agent } => format!("planctl worker test --agent {}", shell_word(agent)),
        Next::AcceptFiles { files, with } => {
            let files = files.iter().map(|file| format!(" --accept-changed {}", shell_word(file)));
            format!(
                "put them back, or, where you mean them: {}{}",
                step_words(with, file),
                files.collect::<String>()
            )
        }
        Next::ResumeRun { run } => format!("planctl resume {}", shell_word(run)),
        Next::CancelRun { run } => format!("planctl cancel {}", shell_word(run)),
        Next::AuditRun { run } => format!("planctl audit {0}, then planctl cancel {0}", shell_word(run)),
        Next::KeepStep { step, run } => {
            format!("put step {step} back, or cancel the run: planctl cancel {}", shell_word(run))
        }
        Next::WatchRun { run } => format!("planctl watch {}", shell_word(run)),
        Next::ShowRun { run } => format!("planctl status {}", shell_word(run)),
        Next::ShowRuns => "planctl status".to_owned(),
        Next::ShowAllRuns => "planctl status --all".to_owned(),
        Next::ListRuns => "planctl ls".to_owned(),
        Next::ShowAsks => "planctl approvals".to_owned(),
        Next::ShowAsk { ask } => format!("planctl approvals show {ask}"),
        Next::AnswerAsk { ask, answers } => {
            let commands: Vec<String> = answers
                .iter()
                .map(|answer| format!("planctl approvals {} {ask}{}", typed(answer), needs(answer)))
                .collect();
            commands.join("\n      ")
        }
        Next::RestoreAndRetry { ask } => format!("put it back by hand, then planctl approvals retry {ask}"),
        Next::HoldNetwork { role } => format!(
            "in planctl.toml write isolation = \"require:1b\", where `planctl doctor` says that this host offers it, \
             or network = \"host\" in [roles.{role}]"
        ),
        Next::ShowDatabase => "planctl db status".to_owned(),
        Next::MigrateDatabase => "planctl daemon migrate".to_owned(),
        Next::CreateToken => "planctl token create SCOPE --name NAME".to_owned(),
        Next::RevokeToken { token } => format!("planctl token revoke {token}"),
        Next::ListWorkers => "planctl worker ls".to_owned(),
        Next::ListTokens => "planctl token ls".to_owned(),
        Next::ListDeliveries => "planctl notify deliveries".to_owned(),
        Next::ReadApi => "GET /v1/openapi.json".to_owned(),
        Next::ByHand { what } => what.clone(),
    }
}

/// Returns the flag that has a worker serve every role.
fn worker_flag(worker: &str) -> String {
    match worker.strip_prefix("exec:") {
        Some(command) => format!(" --exec {}", shell_word(command)),
        None => format!(" --agent {}", shell_word(worker)),
    }
}

/// Says that a daemon with a worker for every role is there for the asking.
pub const SERVE_ALL: &str = "a worker for every role: planctl dev --exec CMD";

/// Returns what is typed after an answer and the number of its ask.
pub fn needs(answer: &str) -> &'static str {
    match answer {
        "choose" => " 'YOUR ANSWER'",
        "reassign" => " ROLE",
        "raise" => " --tokens N | --cost USD | --time DUR",
        "reject" | "retry" | "skip" | "waive" | "abort" | "answer" => " --note '…'",
        _ => "",
    }
}

/// Returns the command that gives an answer, as it is typed.
pub fn typed(answer: &str) -> String {
    shell_word(answer_command(answer))
}

#[cfg(test)]
mod tests;
