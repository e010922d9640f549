//! The gateway of a process that an agent started: the same calls as a command in this workspace makes, with and without a daemon.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use planctl_api::wire::calls::Start;
use planctl_lang::{Levels, Source, parse};
use planctl_mcp::{ApiCall, ApiGateway, PlanText, Refused, Screens};
use planctl_server::check::Checked;
use serde_json::{Value, json};

use crate::api::{self, Api};
use crate::checking;
use crate::client::{Client, How};
use crate::commands::write;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::next;
use crate::person;

/// The extension of the files that are drafted.
const DRAFT_EXTENSION: &str = "md";
/// The files that agents read as instructions, whatever plan stands in them.
const INSTRUCTIONS: [&str; 6] =
    ["agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "skill.md"];

/// The way to planctl of an agent that works in a workspace.
pub struct WorkspaceGateway {
    context: Context,
    /// The files that this agent drafted, with their texts as it wrote them.
    drafted: Mutex<HashMap<PathBuf, String>>,
}

impl WorkspaceGateway {
    /// Opens nothing yet: the database is opened by the first call that needs it.
    pub fn new(context: Context) -> WorkspaceGateway {
        WorkspaceGateway { context, drafted: Mutex::default() }
    }

    /// Returns where a plan lies that is named by its path in the workspace.
    fn file_of(&self, path: &str) -> Result<PathBuf, Refused> {
        let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !is_plain {
            return Err(Refused::bad_request(format!("`{path}` is not a path within the workspace")));
        }
        Ok(self.context.workspace().join(path))
    }

    async fn checked(&self, path: &str, text: Option<String>) -> Result<Checked, Failure> {
        match text {
            Some(text) => checking::check_text(&self.context, "", path, Source::new(path, text), None).await,
            None => {
                let file = self.context.workspace().join(path);
                checking::check(&self.context, &file, None, &Levels::default()).await
            }
        }
    }

    /// Writes a file that is not there yet, or replaces the text that this agent wrote last.
    fn write(&self, file: &Path, text: &str) -> Result<(), Refused> {
        let mut drafted = self.drafted.lock().unwrap_or_else(PoisonError::into_inner);
        match drafted.get(file) {
            Some(before) if before == text => return Ok(()),
            Some(before) => write::replace(&self.context, file, before, text),
            None => write::create(file, text),
        }
        .map_err(refused)?;
        drafted.insert(file.to_owned(), text.to_owned());
        Ok(())
    }

    /// Refuses a file whose folders lead out of the workspace by a symlink, and one that programs look for by its name or its
    /// folder, such as `.claude` and `.git`.
    fn refuse_place(&self, path: &str, file: &Path) -> Result<(), Refused> {
        let real = file.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok()).unwrap_or_default();
        let Ok(folder) = real.strip_prefix(self.context.workspace()) else {
            let file = file.display();
            let message = format!("could not write {file}: its folder leads out of the workspace");
            return Err(Refused::new("scope", message));
        };
        let parts = Path::new(path).components().chain(folder.components());
        let is_hidden = parts.into_iter().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
        let name = file.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if is_hidden || INSTRUCTIONS.contains(&name.as_str()) {
            let meant =
                Refused::bad_request(format!("could not write {path}: other programs read it as theirs"));
            return Err(meant.help("a plan lies in a folder of its own, such as plans/fix.md"));
        }
        Ok(())
    }
}

impl ApiGateway for WorkspaceGateway {
    fn takes_plans(&self) -> bool {
        !person::is_in_worker()
    }

    fn screens(&self) -> Screens {
        let asks =
            !person::is_in_worker() && self.context.config().is_ok_and(|loaded| loaded.config.asks_at_client);
        if asks { Screens::Persons } else { Screens::Nobodys }
    }

    fn workspace(&self) -> Option<String> {
        Some(self.context.workspace().to_string_lossy().into_owned())
    }

    async fn call(&self, call: ApiCall) -> Result<Option<Value>, Refused> {
        if call.path.starts_with("/v1/items/") {
            let api = Client::open_daemon(&self.context).await.map_err(refused)?;
            let api = match &call.lease_token {
                Some(token) => api.with_token(token).map_err(refused)?,
                None => api,
            };
            return sent(&api, call).await.map_err(refused);
        }
        let client = Client::open_quietly(&self.context).await.map_err(refused)?;
        let answer = sent(client.api(), call).await;
        client.close().await;
        answer.map_err(refused)
    }

    async fn verify(&self, plan: PlanText) -> Result<Value, Refused> {
        self.file_of(&plan.path)?;
        let checked = self.checked(&plan.path, plan.text).await.map_err(refused)?;
        report(&checked)
    }

    async fn draft(&self, path: String, text: String) -> Result<Value, Refused> {
        let file = self.file_of(&path)?;
        if file.extension().is_none_or(|extension| extension != DRAFT_EXTENSION) {
            return Err(Refused::bad_request(format!("`{path}` does not end with .{DRAFT_EXTENSION}")));
        }
        self.refuse_place(&path, &file)?;
        let head = parse(&Source::new(path.as_str(), text.as_str())).0.frontmatter;
        if head.kind.is_none_or(|kind| kind.value != "plan") {
            let other = Refused::bad_request("the text is not a plan: its frontmatter has no `type: plan`");
            return Err(other.help("begin it with ---, the lines `type: plan` and `status: draft`, and ---"));
        }
        self.write(&file, &text)?;
        let checked = self.checked(&path, None).await.map_err(refused)?;
        report(&checked)
    }

    async fn submit(&self, path: String) -> Result<Value, Refused> {
        person::must_be_human("submit a plan").map_err(refused)?;
        self.file_of(&path)?;
        let checked = self.checked(&path, None).await.map_err(refused)?;
        if !checked.verification.is_verified() {
            let unverified = Refused::new("not_verified", format!("{path} is not verified"));
            return Err(unverified.help("plan_verify returns what is wrong with it"));
        }
        let client = Client::open_quietly(&self.context).await.map_err(refused)?;
        let submitted = submitted(&client, &checked, &path).await;
        client.close().await;
        submitted
    }
}

/// Starts a run that waits for its approval. A plan that needs none is a person's to start.
async fn submitted(client: &Client, checked: &Checked, path: &str) -> Result<Value, Refused> {
    let run = next::commands_here(&format!("planctl run {}", next::path_word(path)));
    let ready = |why: &str| {
        let ready = Refused::new("conflict", format!("{path} {why}; a person starts it"));
        Refused { next: Some(json!(run)), ..ready }
    };
    let standing = client.plan_standing(checked, None, false).await.map_err(refused)?;
    if let Some(policy) = &standing.by_policy {
        return Err(ready(&format!("needs no approval, by the policy {policy}")));
    }
    if !standing.needs_approval {
        return Err(ready("is approved already"));
    }
    // A person who approves it may name the worker then.
    let start = Start { waits_for_workers: true, ..Start::default() };
    match client.start(checked, &start).await.map_err(refused)? {
        How::NeedsApproval { run, ask, .. } => {
            let next = next::commands_here(&format!("planctl approvals show {ask}"));
            Ok(json!({ "run": run, "ask": ask, "waits_for": "a person's approval", "next": next }))
        }
        How::Ready { run, .. } => Ok(json!({ "run": run, "waits_for": null })),
        How::AlreadyDone { run } => Err(ready(&format!("is done already, by {run}"))),
        How::ChangedSinceApproval { .. } => {
            let changed = Refused::new("conflict", format!("{path} changed since it was approved"));
            let next = json!(next::commands_here(&format!("planctl approve {}", next::path_word(path))));
            Err(Refused {
                next: Some(next),
                ..changed.help("a person decides whether it goes on with this text")
            })
        }
    }
}

async fn sent(api: &Api, call: ApiCall) -> Result<Option<Value>, Failure> {
    let query: Vec<(&str, &str)> = call.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    match &call.body {
        None => api.get(&call.path, &query).await.map(Some),
        Some(body) => api.post_maybe(&call.path, &query, body, &api::uuid_of()).await,
    }
}

fn report(checked: &Checked) -> Result<Value, Refused> {
    let report = serde_json::to_value(checked.verification.report(&checked.source));
    report.map_err(|error| Refused::new("defect", format!("could not write the findings: {error}")))
}

/// Says to an agent why a command would have failed.
fn refused(failure: Failure) -> Refused {
    let code = match failure.exit {
        Exit::Usage => "bad_request",
        Exit::NotFound => "not_found",
        Exit::Conflict => "conflict",
        Exit::Denied => "scope",
        Exit::Unavailable => "database_unavailable",
        Exit::Configuration => "configuration",
        Exit::No
        | Exit::Data
        | Exit::Protocol
        | Exit::Yes
        | Exit::Waiting
        | Exit::Budget
        | Exit::Cancelled
        | Exit::InProgress
        | Exit::Nothing
        | Exit::Temporary
        | Exit::Interrupted
        | Exit::Terminated => "temporary",
    };
    Refused {
        help: failure.help,
        next: failure.next.map(|next| Value::from(next::commands_here(&next))),
        ..Refused::new(code, failure.message)
    }
}
