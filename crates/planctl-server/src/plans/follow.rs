//! Plans in the library: what their runs taught, and the plan that follows a run that is done (H-50, H-52).
//!
//! A run that is to be followed is a row, and so is that it was: whoever finds the first without the second makes the run that
//! follows. The request that makes it has an id of its own, so that it is made once, however often that is tried.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_api::wire::calls::Start;
use planctl_api::wire::{EntryRuns, FollowUpView, LibraryEntryView, LibraryPage, LibraryRuns};
use planctl_config::Config;
use planctl_engine::{Actor, Decision, RunId, RunStatus};
use planctl_harness::blocking_in_place;
use planctl_lang::library::{Question, RUNS_NEWEST, Success, entry_markdown, place_of, weigh};
use planctl_lang::workflow::Library as Placement;
use planctl_lang::{Levels, Source, instantiate};
use planctl_store::{Plan, RequestId, RunRow, WorkspaceId};

use crate::library::{FOLDER, Library, match_view, project_file};
use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::{Caller, Caps, ServiceError, Services};
use crate::verify::check::{self, Checked, Checking};

/// How many runs are followed at once.
const AT_ONCE: i64 = 20;
/// The author of what planctl begins by itself.
const BY: &str = "planctl";

impl ServerNode {
    /// Has the plans begin that follow runs of this host, or of one workspace, that are done; each waits for its own approval.
    /// Another start is waited for that long, and then it is for the next call.
    ///
    /// # Errors
    ///
    /// Those of the store, with which it is tried again; what else keeps a plan from following is recorded, and logged.
    pub(crate) async fn follow(
        &self,
        workspace: Option<WorkspaceId>,
        within: Duration,
    ) -> Result<(), ServiceError> {
        for due in self.store().to_follow(self.host(), workspace, AT_ONCE).await? {
            let run = self.store().run(due.run).await?;
            match self.begin_next(&run, &due.next, within).await {
                Ok(made) => {
                    tracing::info!(run.name = %run.name, "{} follows, and waits for approval", due.next);
                    self.store().record_follow_up(run.id, Ok(made)).await?;
                }
                Err(ServiceError::Store(error)) => return Err(error.into()),
                // Room may be made, and another start come to its end.
                Err(ServiceError::TooMany { .. }) => {}
                Err(error) => {
                    tracing::warn!(run.name = %run.name, "{} can't follow: {error}", due.next);
                    self.store().record_follow_up(run.id, Err(&error.to_string())).await?;
                }
            }
        }
        Ok(())
    }

    async fn begin_next(&self, run: &RunRow, next: &str, within: Duration) -> Result<RunId, ServiceError> {
        let workspace = PathBuf::from(&run.workspace_path);
        let config = self.config_there(workspace.clone()).await?;
        let caller = Caller {
            workspace: Some(workspace),
            config,
            actor: Actor::new(BY),
            person: BY.to_owned(),
            caps: Caps::default(),
            is_looking: false,
            request: Some(RequestId::for_follow_up(run.id)),
        };
        self.services(caller).await?.begin_next(run, next, within).await
    }

    /// Reads the configuration of a workspace as a person's command there would, who is asked before anything follows from it.
    pub(crate) async fn config_there(&self, workspace: PathBuf) -> Result<Config, ServiceError> {
        let state_dir = self.state_dir().to_owned();
        let read = move || {
            planctl_config::load(&planctl_config::Sources {
                workspace: &workspace,
                state_dir: &state_dir,
                file: None,
                database_url: None,
                workspace_mode: None,
                leaves_unread: false,
                env: &|name| std::env::var_os(name),
            })
        };
        let read = tokio::task::spawn_blocking(read).await;
        let loaded = read.map_err(|error| ServiceError::broken(error.to_string()))?;
        let invalid = |error: planctl_config::ConfigError| ServiceError::Invalid {
            what: error.to_string(),
            help: "correct the configuration".to_owned(),
        };
        Ok(loaded.map_err(invalid)?.config)
    }
}

impl Services {
    /// Records which entry of the library a kept plan was made of, and which plan is to follow it.
    pub(super) async fn place_in_library(&self, plan: &Plan, checked: &Checked) -> Result<(), ServiceError> {
        let place = place_of(&checked.source);
        if place.entry.is_none() && place.next.is_none() {
            return Ok(());
        }
        let digest = &checked.verification.digest;
        let (entry, next) = (place.entry.as_deref(), place.next.as_deref());
        Ok(self.store.place_in_library(plan.id, digest, entry, next).await?)
    }

    /// Says how the newest runs of each entry's plans ended in this workspace.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn library_runs(&self) -> Result<LibraryRuns, ServiceError> {
        let ended = self.store.ended_runs(self.own_workspace()?, RUNS_NEWEST).await?;
        let entries =
            ended.into_iter().map(|(id, runs)| EntryRuns { id, ended: runs.ended, done: runs.done });
        Ok(LibraryRuns { entries: entries.collect() })
    }

    /// Shows the library of a workspace that has plans or runs, and what a message finds in it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for a folder that is no such workspace, so that nobody at a port looks into others; where
    /// its configuration can't be read; and those of the store.
    pub async fn library(&self, message: Option<&str>) -> Result<LibraryPage, ServiceError> {
        if self.own_workspace()?.number() == 0 {
            return Err(ServiceError::NotFound { what: "a workspace with plans or runs there".to_owned() });
        }
        let workspace = self.own_folder()?.to_owned();
        let learns = self.server_node.config_there(workspace.clone()).await?.library.learn;
        let user = planctl_config::user_folder(&|name| std::env::var_os(name));
        let library = blocking(move || Library::read(&workspace, user.as_deref())).await?;
        let runs = self.library_runs().await?.entries.into_iter();
        let successes = runs.map(|one| (one.id, Success { ended: one.ended, done: one.done })).collect();
        let entries = library.entries(&successes, learns);
        let matched = message.map(|message| {
            let question = Question { message, ..Question::default() };
            match_view(&weigh(&entries, &question))
        });
        let shown = library.found.iter().map(|found| LibraryEntryView { plan: None, ..found.view() });
        Ok(LibraryPage {
            entries: shown.collect(),
            troubles: library.troubles_view(),
            stats: library.stats(&successes, learns),
            matched,
        })
    }

    /// Says which run follows a run that is done, or why none does.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn follow_up(&self, run: RunId) -> Result<FollowUpView, ServiceError> {
        let found = self.store.follow_up(run).await?;
        Ok(found.map_or_else(FollowUpView::default, |found| FollowUpView {
            run: found.run,
            trouble: found.trouble,
        }))
    }

    /// Makes the run of the plan that follows another, unless one of it is open; returns it.
    async fn begin_next(&self, before: &RunRow, next: &str, within: Duration) -> Result<RunId, ServiceError> {
        let _starting = self.lock_starts(within).await?;
        let request = RequestId::for_follow_up(before.id);
        if let Some(made) = self.store.run_of_request(request).await? {
            if made.head.status == RunStatus::New {
                self.decide(made.id, Decision::Submit, None).await?;
            }
            return Ok(made.id);
        }
        let own = self.own_folder()?;
        let file = blocking_in_place(|| file_of_next(own, next))?;
        let workspace = self.own_folder()?;
        let (config, levels) =
            (&self.caller.config, self.caller.config.verify.clone().then(&Levels::default()));
        let state_dir = Some(self.state_dir());
        let levels = &levels;
        let checking =
            Checking { workspace, folder: "", config, state_dir, worker: None, levels, probe: None };
        let checked = check::check(&file, checking, self.spawner()?).await?;
        let planned = self.planned_worktree(&checked).await?;
        let plan = self.store_revision(&checked).await?;
        let newest = self.store.newest_run_of(plan.id).await?;
        if let Some(open) = newest.filter(|run| !matches!(run.head.status, RunStatus::Ended { .. })) {
            return Ok(open.id);
        }
        self.refuse_over_caps().await?;
        let sub_plans = self.keep_sub_plans(&checked, "", None).await?;
        let start = Start { again: true, waits_for_workers: true, ..Start::default() };
        // Without an approval, also where one holds: nobody asked for this run but a plan.
        Ok(self.make_run((&checked, &plan, planned), None, &start, sub_plans, None).await?.0.id)
    }
}

/// Returns the file of the plan that follows: a path, a plan of the project by its name, or an entry of the library, of which
/// the project gets a plan.
fn file_of_next(workspace: &Path, next: &str) -> Result<PathBuf, ServiceError> {
    if let Some(file) = project_file(workspace, next) {
        return Ok(file);
    }
    let nothing = || ServiceError::NotFound { what: format!("the plan {next}") };
    let user = planctl_config::user_folder(&|name| std::env::var_os(name));
    let library = Library::read(workspace, user.as_deref());
    let found = library.entry(next).ok_or_else(nothing)?;
    let written = entry_markdown(&found.source, next).ok_or_else(nothing)?;
    if !written.changed.is_empty() {
        let changed = written.changed.join(", ");
        return Err(ServiceError::Invalid {
            what: format!("in markdown the plan {next} would be judged in another way: {changed}"),
            help: "make a plan of it that ends with .json, and let that follow".to_owned(),
        });
    }
    if !written.is_compared {
        return Err(ServiceError::Invalid {
            what: format!("the plan {next} of the library has errors"),
            help: "mend it, or make a plan of it and let that follow".to_owned(),
        });
    }
    let folder = workspace.join(FOLDER);
    let source = Source::new(format!("{next}.md"), written.text);
    let text = instantiate(&source, None, "orchestrator", Some(&Placement::made_of(next)));
    let file = folder.join(format!("{next}.md"));
    write_new_file(&folder, &file, &text).map_err(ServiceError::io(format!("write {}", file.display())))?;
    Ok(file)
}

/// Writes a plan that is not there yet, whole or not at all.
fn write_new_file(folder: &Path, file: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut draft = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    match draft.persist_noclobber(file) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}
