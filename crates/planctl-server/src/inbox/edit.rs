//! Editing the plan of a run that an ask holds, without an editor at this machine: the text to begin with, what verification
//! says of another, and the approval with which the run goes on.
//!
//! An approval does what `planctl approvals edit` does, in the same order: the plan's file is written, the ask is answered, and
//! the text is approved. Everything that would refuse it is looked at first.

use std::path::PathBuf;

use planctl_api::Next;
use planctl_api::wire::calls::{Approving, EditCall};
use planctl_api::wire::{Decided, PlanEditCheck, PlanEditFinding, PlanEditView};
use planctl_config::keys_that_differ;
use planctl_engine::{Answer, AskKind, Digest, Graph, Node, NodeId};
use planctl_lang::{Levels, Severity, Source, digest, insert_step};
use planctl_store::{AskRow, RunRow};

use crate::inbox::ask_view::ask_view;
use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::runs::plan_file::{self, bytes_of, plan_file};
use crate::runs::settings::RunSettings;
use crate::verify::check::{self, Checked, Checking};

/// How often a file is written anew that planctl itself has marked meanwhile.
const TRIES: usize = 5;

/// A run that is held by an ask whose answer may be another text of its plan.
struct HeldRun {
    ask: AskRow,
    run: RunRow,
    settings: RunSettings,
}

/// A plan's file as it is.
struct File {
    text: String,
    digest: Digest,
}

impl Services {
    /// Returns the workspace in which the plan of an ask's run is edited.
    ///
    /// # Errors
    ///
    /// A conflict where the ask is answered, where no answer to it changes the plan, and where its workspace is on another host.
    pub async fn workspace_of_edit(&self, ask: u64) -> Result<PathBuf, ServiceError> {
        Ok(PathBuf::from(self.ask_held_for_edit(ask).await?.run.workspace_path))
    }

    /// Returns the plan that an ask lets a person edit.
    ///
    /// # Errors
    ///
    /// Those of [`Services::workspace_of_edit`], and a conflict where the plan's file can't be read.
    pub async fn edit(&self, ask: u64) -> Result<PlanEditView, ServiceError> {
        let held = self.ask_held_for_edit(ask).await?;
        let file = held.file().await?;
        let graph = self.store.graph(&held.ask.graph).await?;
        let (text, unfit) = match held.proposed(&file.text, &graph) {
            Some(Ok(text)) => (text, None),
            Some(Err(why)) => (file.text, Some(why)),
            None => (file.text, None),
        };
        Ok(PlanEditView {
            ask: ask_view(&held.ask, &graph, None),
            text,
            is_file_changed: file.digest != held.run.revision,
            file: file.digest.as_str().to_owned(),
            unfit,
        })
    }

    /// Verifies a text where an ask's run works, and compares it with the text that runs. Writes nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Services::workspace_of_edit`], and where the workspace can't be read.
    pub async fn check_edit(&self, ask: u64, text: &str) -> Result<PlanEditCheck, ServiceError> {
        let held = self.ask_held_for_edit(ask).await?;
        let checked = self.checked_edit(&held, text).await?;
        Ok(PlanEditCheck {
            digest: checked.verification.digest.as_str().to_owned(),
            findings: findings(&checked),
            refused: self.obstacle_to_edit(&held, &checked).await?,
            diff: self.plan_diff(&checked, &held.run.id.to_string(), None).await?,
        })
    }

    /// Writes an edited text into the plan's file, and lets the run go on with it.
    ///
    /// # Errors
    ///
    /// A conflict where somebody was quicker: the ask is answered, or the file is another; [`ServiceError::NotVerified`]; and
    /// a conflict where the text can't be approved here.
    pub async fn approve_edit(&self, ask: u64, call: &EditCall) -> Result<Decided, ServiceError> {
        let held = self.ask_held_for_edit(ask).await?;
        let checked = self.checked_edit(&held, &call.text).await?;
        if !checked.verification.is_verified() {
            return Err(ServiceError::NotVerified { plan: checked.path });
        }
        if let Some(why) = self.obstacle_to_edit(&held, &checked).await? {
            let what = format!("go on with this text: {why}");
            return Err(ServiceError::Conflict { what, next: Next::ShowAsk { ask } });
        }
        self.refuse_other_config(&held)?;
        self.refuse_older_run(&held).await?;
        held.write(&Digest::new(call.file.as_str()), &call.text).await?;
        let note = call.note.clone();
        let given = Approving { note, worker: held.settings.worker.clone(), ..Approving::default() };
        self.answer(ask, Answer::Revise, &given, None).await?;
        let decided = self.approve(&checked, &given).await?;
        // Where several people approve it, the ask of the text is the one that waits.
        if decided.ask.is_some() {
            return Ok(decided);
        }
        Ok(Decided { ask: Some(ask), run_id: Some(held.run.id.to_string()), ..decided })
    }

    async fn ask_held_for_edit(&self, id: u64) -> Result<HeldRun, ServiceError> {
        let ask = self.store.ask(i64::try_from(id).unwrap_or(i64::MAX)).await?;
        if !ask.is_open {
            return Err(self.answered_before(id, &ask).await?);
        }
        let refused = |why: &str, next| ServiceError::Conflict {
            what: format!("edit the plan of ask {id}: {why}"),
            next,
        };
        if !ask.ask.kind.answers().contains(&Answer::Revise.as_str()) {
            return Err(refused("no answer to it changes the plan", Next::ShowAsk { ask: id }));
        }
        let run = self.store.run(ask.run).await?;
        if run.host != self.server_node.host() {
            return Err(refused("its workspace is on another host", Next::ShowAsk { ask: id }));
        }
        Ok(HeldRun { settings: RunSettings::of(&run)?, ask, run })
    }

    async fn checked_edit(&self, held: &HeldRun, text: &str) -> Result<Checked, ServiceError> {
        let config = &self.caller.config;
        let levels = config.verify.clone().then(&Levels::default());
        let checking = Checking {
            workspace: self.own_folder()?,
            folder: &held.settings.folder,
            config,
            state_dir: Some(self.state_dir()),
            worker: held.settings.worker.as_ref(),
            levels: &levels,
            probe: None,
        };
        let file = plan_file(&held.run);
        Ok(check::check_bytes(&file, text.as_bytes().to_vec(), checking, self.spawner()?).await?)
    }

    /// Says why a run can't go on with a text.
    async fn obstacle_to_edit(
        &self,
        held: &HeldRun,
        checked: &Checked,
    ) -> Result<Option<String>, ServiceError> {
        let verification = &checked.verification;
        let Some(graph) = verification.graph.as_ref().filter(|_| verification.is_verified()) else {
            return Ok(Some("it is not verified".to_owned()));
        };
        if verification.digest == held.run.revision {
            return Ok(Some("it is the text that runs".to_owned()));
        }
        let over = self.settled_and_changed(&held.run, graph).await?;
        let over: Vec<&str> = over.iter().map(NodeId::as_str).collect();
        Ok(match over.as_slice() {
            [] => None,
            [only] => Some(format!("it changes step {only}, which is over and stays as it is")),
            several => {
                Some(format!("it changes steps {}, which are over and stay as they are", several.join(", ")))
            }
        })
    }

    /// Refuses where the configuration of the workspace is another than the run's, which a person has to see first.
    fn refuse_other_config(&self, held: &HeldRun) -> Result<(), ServiceError> {
        let changed = keys_that_differ(&held.settings.config, &self.caller.config.approved());
        if changed.is_empty() {
            return Ok(());
        }
        Err(ServiceError::Conflict {
            what: format!(
                "approve this text here: the configuration is another than that of {} ({})",
                held.run.name,
                changed.join(", ")
            ),
            next: Next::by_hand("approve it in a terminal, where the configuration is shown"),
        })
    }

    /// Refuses where the plan has a newer run, which an approval would be about.
    async fn refuse_older_run(&self, held: &HeldRun) -> Result<(), ServiceError> {
        match self.store.newest_run_of(held.run.plan).await? {
            Some(newest) if newest.id != held.run.id => Err(ServiceError::Conflict {
                what: format!("approve this text: {} is a newer run of its plan", newest.name),
                next: Next::show(&newest.name),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

impl HeldRun {
    fn id(&self) -> u64 {
        self.ask.number.unsigned_abs()
    }

    /// Returns a text with the step that a worker proposes, or says why it can't be put in.
    fn proposed(&self, text: &str, graph: &Graph) -> Option<Result<String, String>> {
        if self.ask.ask.kind != AskKind::Insertion {
            return None;
        }
        let step = graph.node(&self.ask.at.node).and_then(Node::step)?;
        let source = Source::new(self.run.plan_path.as_str(), text);
        let inserted = insert_step(&source, step, self.ask.ask.message.as_deref().unwrap_or_default());
        Some(inserted.map_err(|found| {
            let why: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            why.join("; ")
        }))
    }

    async fn file(&self) -> Result<File, ServiceError> {
        let (file, name) = (plan_file(&self.run), self.run.plan_path.clone());
        let conflict = move |why: String| ServiceError::Conflict {
            what: format!("edit {name}: {why}"),
            next: Next::by_hand("put the file back where it was"),
        };
        let read = blocking(move || bytes_of(&file)).await?.map_err(&conflict)?;
        let bytes = read.ok_or_else(|| conflict("its file is gone".to_owned()))?;
        let text = String::from_utf8(bytes).map_err(|_| conflict("its file is not text".to_owned()))?;
        let digest = digest(&Source::new(self.run.plan_path.as_str(), text.as_str()));
        Ok(File { text, digest })
    }

    /// Writes the plan's file, which nobody may have changed since it was read but planctl with its marks.
    async fn write(&self, read: &Digest, text: &str) -> Result<(), ServiceError> {
        let moved = || ServiceError::Conflict {
            what: format!("write {}: somebody changed the file meanwhile", self.run.plan_path),
            next: Next::ShowAsk { ask: self.id() },
        };
        for _ in 0..TRIES {
            let now = self.file().await?;
            if now.digest != *read {
                return Err(moved());
            }
            let (file, workspace) = (plan_file(&self.run), PathBuf::from(&self.run.workspace_path));
            let new = text.to_owned();
            let written = blocking(move || plan_file::replace(&file, &workspace, &now.text, &new)).await?;
            if written.map_err(ServiceError::io(format!("write {}", self.run.plan_path)))? {
                return Ok(());
            }
        }
        Err(moved())
    }
}

/// Returns the findings of a text that a person should look at: errors and warnings.
pub(crate) fn findings(checked: &Checked) -> Vec<PlanEditFinding> {
    let finding = |found: planctl_lang::Finding| PlanEditFinding {
        line: found.spans.first().map(|place| place.at.line),
        code: found.code.to_string(),
        is_error: found.level == Severity::Error,
        message: found.message,
        help: found.help,
    };
    let worth_a_look = checked.findings_of_edit().filter(|found| found.level != Severity::Note);
    worth_a_look.map(|found| finding(found.report(&checked.source))).collect()
}
