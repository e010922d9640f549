//! `planctl edit`: a plan in a person's editor; a run's is verified, compared, approved, and the run goes on with it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_api::wire::calls::Approving;
use planctl_api::wire::draft::DraftRevisionView;
use planctl_api::wire::{AskPage, AskView, Decided, RunState, RunView, StepState};
use planctl_config::Agent;
use planctl_engine::{Answer as Word, changed_nodes};
use planctl_harness::{Editor, read_plan};
use planctl_lang::{Levels, Source, canonical, insert_step, render_all};
use planctl_server::check::Checked;

use super::recorded::{print_recorded, recorded_word};
use super::{Context, approvals, changes, run as running, verify, write};
use crate::args::EditArgs;
use crate::client::{self, Client, Handle};
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, shell_word};
use crate::stop::Stop;
use crate::{checking, decide, next, plan_files};

/// Opens in a person's editor the plan of the run that an ask holds or that is paused for it, or a file that no run waits with.
pub async fn run(context: &Context, args: &EditArgs) -> Answer {
    context.is_json()?;
    let client = Client::open(context).await?;
    let named = args.what.as_deref();
    let is_ask = |word: &&str| word.parse::<u64>().is_ok() && !Path::new(word).is_file();
    let file = named.filter(|word| !is_ask(word)).map(|word| plan_files::named_unless_run(context, word));
    let file = file.transpose()?.flatten();
    let ask = match (named, &file) {
        (Some(word), None) if is_ask(&word) => word.parse().ok(),
        (Some(_), Some(file)) => ask_of_run(&client, &file.to_string_lossy(), true).await?,
        (Some(word), None) => ask_of_run(&client, word, false)
            .await
            .map_err(|failure| plan_files::or_near(context, word, failure))?,
        (None, _) => only_editable_ask(&client).await?,
    };
    match (ask, file) {
        (Some(ask), _) => edit(context, &client, ask, args).await,
        (None, Some(file)) => edit_file(context, &file).await,
        (None, None) => edit_paused(context, &client, named.unwrap_or_default(), args).await,
    }
}

/// Returns the only open ask that lets the plan of its run be edited.
async fn only_editable_ask(client: &Client) -> Result<Option<u64>, Failure> {
    match approvals::resolve_asks(client, &[], Some(Word::Revise.as_str())).await {
        Ok(asks) => Ok(asks.first().copied()),
        Err(none) if none.exit == Exit::NotFound => {
            Err(Failure::usage("no plan is named, and no run waits for a change of its plan")
                .help("planctl plan ls lists the plans of this workspace")
                .next("planctl edit FILE"))
        }
        Err(failure) => Err(failure),
    }
}

/// Lets a person change the plan of a run that no ask holds: it is paused first, and stays so until the change is approved.
async fn edit_paused(context: &Context, client: &Client, named: &str, args: &EditArgs) -> Answer {
    let handle = client.find(named).await?;
    let mut editing = Editing::new(context, client, handle, None).await?;
    let run = show::safe(&editing.view.run);
    if editing.view.state.is_over() || editing.view.state == RunState::AwaitingApproval {
        let what = format!("could not edit the plan of {run}: it does not go on");
        let failure = Failure::new(Exit::Conflict, what).help("edit its file for the next run");
        return Err(failure.next("planctl approvals"));
    }
    let editor = editor()?;
    if editing.view.state != RunState::Paused {
        let pause = format!("planctl pause {}", shell_word(&editing.view.run));
        context
            .confirm(&format!("Pause {run} and edit its plan?"))
            .await
            .map_err(|failure| if failure.exit == Exit::Usage { failure.next(pause) } else { failure })?;
        client.pause(editing.handle, args.note.as_deref()).await?;
        context.say(&format!("{run} is paused"));
        // Steps may have ended meanwhile.
        editing = Editing::new(context, client, handle, None).await?;
    }
    let Some(checked) = editing.edited(context, client, &editor).await? else {
        context.say(&format!("nothing changed; {run} stays paused"));
        context.say(&next::line(&editing.resume()));
        return Ok(Exit::Yes);
    };
    editing.go_on(context, client, &checked, args).await
}

fn editor() -> Result<Editor, Failure> {
    Editor::from_environment(|name| std::env::var_os(name)).ok_or_else(|| {
        Failure::new(Exit::Configuration, "could not open an editor: neither VISUAL nor EDITOR names one")
            .help("name one: EDITOR=vi planctl edit …")
    })
}

/// Returns the ask of a run that lets its plan be edited; a plan's file may have no run.
async fn ask_of_run(client: &Client, run: &str, is_file: bool) -> Result<Option<u64>, Failure> {
    let handle = match client.find(run).await {
        Err(missing) if is_file && missing.exit == Exit::NotFound => return Ok(None),
        found => found?,
    };
    let open = client.asks(Some(handle)).await?.asks;
    let is_revisable = |ask: &&AskView| ask.answers.iter().any(|answer| answer == Word::Revise.as_str());
    Ok(open.iter().find(is_revisable).map(|ask| ask.id))
}

/// Opens a plan's file, and verifies what was saved.
pub(super) async fn edit_file(context: &Context, file: &Path) -> Answer {
    let (editor, path) = (editor()?, file.to_owned());
    let ended = tokio::task::spawn_blocking(move || editor.edit(&path)).await;
    let failed = |why: String| Failure::new(Exit::No, format!("could not edit {}: {why}", file.display()));
    match ended {
        Ok(Ok(status)) if status.success() => {
            verify::files(context, &[file.to_owned()], &Levels::default()).await
        }
        Ok(Ok(status)) => Err(failed(format!("the editor ended with {status}"))),
        Ok(Err(error)) => Err(failed(format!("the editor did not start: {error}"))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Lets a person change the plan of the run that an ask holds.
async fn edit(context: &Context, client: &Client, id: u64, args: &EditArgs) -> Answer {
    let editor = editor()?;
    let page = client.ask(id).await?;
    let Some((editing, checked)) = edit_with_person(context, client, &page, &editor).await? else {
        return Ok(Exit::Yes);
    };
    editing.go_on(context, client, &checked, args).await
}

/// Does the same for a person who follows the run; says whether anything was changed.
pub async fn edit_here(context: &Context, client: &Client, page: &AskPage) -> Result<bool, Failure> {
    let changed = edit_with_person(context, client, page, &editor()?).await?;
    let Some((editing, checked)) = changed else { return Ok(false) };
    editing.ask_approval(context).await?;
    editing.submit_edit(context, client, &checked, None, false).await?;
    Ok(true)
}

/// Has a person change a plan; nothing where it stays as it is.
async fn edit_with_person(
    context: &Context,
    client: &Client,
    page: &AskPage,
    editor: &Editor,
) -> Result<Option<(Editing, Checked)>, Failure> {
    refuse_unless_revisable(page)?;
    let handle = client::run_of(&page.ask)?;
    let editing = Editing::new(context, client, handle, Some(page)).await?;
    let checked = editing.edited(context, client, editor).await?;
    if checked.is_none() {
        context.say(&format!("nothing changed; ask {} is open as before", page.ask.id));
    }
    Ok(checked.map(|checked| (editing, checked)))
}

/// Puts a step into the plan that a worker proposes, and lets the run go on; says what to type next where nobody follows it.
pub async fn insert(
    context: &Context,
    client: &Client,
    page: &AskPage,
    note: Option<&str>,
) -> Result<(), Failure> {
    let is_json = context.is_json()?;
    insert_here(context, client, page, note, is_json).await?.say_next(context, client, is_json).await
}

/// Does the same for a person who follows the run.
pub async fn insert_here(
    context: &Context,
    client: &Client,
    page: &AskPage,
    note: Option<&str>,
    is_json: bool,
) -> Result<Editing, Failure> {
    let editing = Editing::new(context, client, client::run_of(&page.ask)?, Some(page)).await?;
    let by_hand = |failure: Failure| failure.next(format!("planctl approvals edit {}", page.ask.id));
    let text = match editing.proposed() {
        Some(Ok(text)) => text,
        Some(Err(why)) => {
            let what = format!("could not put the step into {}: {why}", show::safe(&page.ask.plan));
            return Err(by_hand(Failure::new(Exit::Conflict, what)));
        }
        None => return Err(Failure::new(Exit::Conflict, "nothing is proposed")),
    };
    let source = Source::new(editing.view.plan.as_str(), text);
    let checked = editing.verified(context, source).await?;
    if let Some(fault) = editing.obstacle(context, &checked) {
        return Err(by_hand(Failure::new(Exit::No, format!("could not go on with this text: {fault}"))));
    }
    editing.show(client, &checked).await?;
    editing.submit_edit(context, client, &checked, note, is_json).await?;
    Ok(editing)
}

/// Offers a run the text that its plan's file has by now: verified where the run works, shown as what changes, and approved by
/// a person, or by the policy that approved the run where that allows it. Nothing where the run does not wait for a change, or
/// has this text already.
pub(super) async fn offer_revision(
    context: &Context,
    client: &Client,
    named: &str,
    approve: bool,
) -> Result<Option<DraftRevisionView>, Failure> {
    let handle = client.find(named).await?;
    let ask = ask_of_run(client, named, false).await?;
    let page = match ask {
        Some(ask) => Some(client.ask(ask).await?),
        None if client.status(handle).await?.state == RunState::Paused => None,
        None => return Ok(None),
    };
    let editing = Editing::new(context, client, handle, page.as_ref()).await?;
    let (folder, worker) = (editing.folder(), editing.worker.as_ref());
    let checked = checking::check_in(context, folder, &editing.file, worker, &Levels::default()).await?;
    if checked.verification.digest.as_str() == editing.view.digest {
        return Ok(None);
    }
    let run = editing.view.run.clone();
    if let Some(fault) = editing.obstacle(context, &checked) {
        let what = format!("{} can't go on with the corrected plan: {fault}", show::safe(&run));
        return Err(Failure::new(Exit::Conflict, what).next(command_to_reopen(&editing.view, ask)));
    }
    editing.show(client, &checked).await?;
    let policy = editing.view.approved_by.as_deref().and_then(|by| by.strip_prefix("policy:"));
    if let Some(policy) = policy.filter(|_| !approve) {
        match client.approve_repair(&checked, handle).await {
            Ok(decided) => {
                context.say(&recorded_word(&decided));
                let by_policy = Some(policy.to_owned());
                return Ok(Some(DraftRevisionView { run, ask, approved: true, by_policy }));
            }
            Err(left) if left.exit == Exit::Conflict => context.say(&left.message),
            Err(failure) => return Err(failure),
        }
    }
    let is_json = context.is_json()?;
    if !approve && (is_json || !context.is_interactive()) {
        return Ok(Some(DraftRevisionView { run, ask, approved: false, by_policy: None }));
    }
    let approved = approve
        || match editing.ask_approval(context).await {
            Ok(()) => true,
            Err(failure) if failure.exit == Exit::Cancelled => false,
            Err(failure) => return Err(failure),
        };
    if approved {
        let decided = editing.decide(context, client, &checked, None).await?;
        context.say(&recorded_word(&decided));
    }
    Ok(Some(DraftRevisionView { run, ask, approved, by_policy: None }))
}

fn refuse_unless_revisable(page: &AskPage) -> Result<(), Failure> {
    let ask = &page.ask;
    let refused = |why: String| Failure::new(Exit::Conflict, format!("could not edit: ask {} {why}", ask.id));
    if let Some(answer) = &ask.answer {
        let (by, word) = (show::safe(&answer.by), show::safe(&answer.answer));
        return Err(refused(format!("is answered already: {word}, by {by}")));
    }
    if ask.answers.iter().any(|answer| answer == "revise") {
        return Ok(());
    }
    let (why, next) = match ask.kind.as_str() {
        "plan" => ("about a plan that has not begun: edit its file".to_owned(), Next::start(&ask.plan)),
        kind => (
            format!("a {} ask, and no answer to it changes the plan", show::safe(kind)),
            Next::ShowAsk { ask: ask.id },
        ),
    };
    Err(next::with_next(refused(format!("is {why}")), &next, Some(&ask.workspace)))
}

/// A run's plan while a person edits it.
pub struct Editing {
    /// The ask that holds the run; a run without one is paused.
    ask: Option<u64>,
    handle: Handle,
    view: RunView,
    /// The plan that the run executes.
    kept: Checked,
    /// The plan's file, and its text before the edit; nothing where the file is gone.
    file: PathBuf,
    before: Option<String>,
    /// Where the text is edited; it stays there until it is approved.
    draft: PathBuf,
    /// The agent that serves the run's roles.
    worker: Option<Agent>,
    /// The step whose worker proposes another, and its text.
    proposal: Option<(u32, String)>,
}

impl Editing {
    async fn new(
        context: &Context,
        client: &Client,
        handle: Handle,
        page: Option<&AskPage>,
    ) -> Result<Editing, Failure> {
        let view = client.status(handle).await?;
        if context.workspace() != Path::new(&view.workspace) {
            let run = show::safe(&view.run);
            return Err(Failure::new(
                Exit::Conflict,
                format!("could not edit the plan of {run} from here: its workspace is another"),
            )
            .next(next::typed_in(&command_to_reopen(&view, page.map(|page| page.ask.id)), &view.workspace)));
        }
        let kept = client.plan_of_run(handle).await?;
        let file = Path::new(&view.workspace).join(&view.plan);
        let before = read_plan(&file).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let ending = file.extension().map_or("md".into(), |ending| ending.to_string_lossy().into_owned());
        let held_by = page.map_or("paused".to_owned(), |page| page.ask.id.to_string());
        let draft = context.state_dir()?.join("edits").join(format!("{}-{held_by}.{ending}", view.run));
        let proposal = page
            .filter(|page| page.ask.kind == "insertion")
            .and_then(|page| page.ask.step.as_ref().map(|step| step.number).zip(page.message.clone()));
        let named = || Agent::parse(view.agent.as_deref()?).ok();
        let worker = view.exec.clone().map(Agent::Exec).or_else(named);
        Ok(Editing {
            ask: page.map(|page| page.ask.id),
            handle,
            kept,
            file,
            before,
            draft,
            worker,
            proposal,
            view,
        })
    }

    /// Returns the text of the plan's file, where it means what the run executes; else that of the run.
    fn base(&self) -> &str {
        let before = self.before.as_deref();
        let is_same = |text: &&str| canonical(&Source::new("", *text)) == canonical(&self.kept.source);
        before.filter(is_same).unwrap_or(self.kept.source.text())
    }

    /// Returns the plan with the step that a worker proposes, or says why it cannot be put in.
    fn proposed(&self) -> Option<Result<String, String>> {
        let (step, proposal) = self.proposal.as_ref()?;
        let inserted = insert_step(&Source::new(self.view.plan.as_str(), self.base()), *step, proposal);
        Some(inserted.map_err(|found| {
            let why: Vec<String> = found.iter().map(|found| show::safe(&found.message)).collect();
            why.join("; ")
        }))
    }

    /// Opens the editor until what it leaves can be approved; nothing where it leaves what there was.
    async fn edited(
        &self,
        context: &Context,
        client: &Client,
        editor: &Editor,
    ) -> Result<Option<Checked>, Failure> {
        self.write_draft_file(context)?;
        loop {
            self.run_editor(editor).await?;
            let checked = self.checked(context).await;
            let fault = match &checked {
                Ok(checked) => {
                    if checked.verification.digest.as_str() == self.view.digest {
                        self.remove_draft();
                        return Ok(None);
                    }
                    self.obstacle(context, checked)
                }
                Err(failure) => Some(failure.message.clone()),
            };
            let Some(fault) = fault else {
                let checked = checked?;
                self.show(client, &checked).await?;
                return Ok(Some(checked));
            };
            if !context.is_interactive() {
                return Err(self
                    .kept_words(Failure::new(Exit::No, format!("could not go on with this text: {fault}"))));
            }
            show::say(&format!("could not go on with this text: {fault}"));
            let again = decide::is_yes_or_stopped("open it again?").await;
            if !again.map_err(|failure| self.kept_words(failure))? {
                return Err(self.kept_words(Failure::new(Exit::Cancelled, "nothing was decided")));
            }
        }
    }

    /// Puts the text where it is edited: the one that was kept of an edit before, else the file's, else the run's.
    fn write_draft_file(&self, context: &Context) -> Result<(), Failure> {
        let refused = |error: std::io::Error| {
            let place = show::safe(&self.draft.display().to_string());
            Failure::of_state(format!("write {place}"), &error)
        };
        if self.draft.exists() {
            context.say("going on with the text that was kept of the last edit");
            return Ok(());
        }
        let mut text = self.before.as_deref().unwrap_or(self.base()).to_owned();
        if canonical(&Source::new("", text.as_str())) != canonical(&self.kept.source) {
            let file = show::safe(&self.view.plan);
            context.say(&format!("{file} has changed since the run began; you edit the text of the file"));
        } else {
            match self.proposed() {
                Some(Ok(inserted)) => text = inserted,
                Some(Err(why)) => context.say(&format!("the proposed step is not in the text: {why}")),
                None => {}
            }
        }
        if let Some(folder) = self.draft.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
        }
        std::fs::write(&self.draft, text).map_err(refused)
    }

    async fn run_editor(&self, editor: &Editor) -> Result<(), Failure> {
        let _listening = Stop::listen()?;
        let (editor, draft) = (editor.clone(), self.draft.clone());
        let ended = tokio::task::spawn_blocking(move || editor.edit(&draft)).await;
        let failed = |why: String| Failure::new(Exit::No, format!("nothing was decided: {why}"));
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(self.kept_words(failed(format!("the editor ended with {status}")))),
            Ok(Err(error)) => Err(self.kept_words(failed(format!("the editor did not start: {error}")))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn checked(&self, context: &Context) -> Result<Checked, Failure> {
        let bytes = read_plan(&self.draft)
            .map_err(|unread| Failure::new(Exit::No, format!("the text could not be read: {unread}")))?;
        let source = Source::of_text(&self.view.plan, bytes).map_err(|unread| {
            show::say(&render_all(&[unread.diagnostic], &unread.source, true));
            Failure::new(Exit::No, "it is not text that can be read")
        })?;
        self.verified(context, source).await
    }

    /// Verifies a text where the run works.
    async fn verified(&self, context: &Context, source: Source) -> Result<Checked, Failure> {
        checking::check_text(context, self.folder(), &self.view.plan, source, self.worker.as_ref()).await
    }

    fn folder(&self) -> &str {
        self.view.folder.as_deref().unwrap_or_default()
    }

    /// Says what keeps the run from going on with a text.
    fn obstacle(&self, context: &Context, checked: &Checked) -> Option<String> {
        if !checked.verification.is_verified() {
            let found =
                checked.findings_of_edit().filter(|found| verify::is_shown(found, context.is_quiet()));
            show::say(verify::grouped(found, &checked.source).trim_end());
            return Some(verify::counted(&checked.verification));
        }
        let (Some(old), Some(new)) = (&self.kept.verification.graph, &checked.verification.graph) else {
            return Some("it makes no graph".to_owned());
        };
        let is_met = |node: &str| {
            let step = self.view.steps.iter().find(|step| step.node == node);
            step.is_some_and(|step| step.state.is_settled() && step.state != StepState::Failed)
        };
        let settled: Vec<String> = changed_nodes(old, new)
            .iter()
            .filter(|node| old.gated(node).is_some() && is_met(node.as_str()))
            .map(|node| show::safe(node.as_str()))
            .collect();
        match settled.as_slice() {
            [] => None,
            [only] => Some(format!("it changes step {only}, which is over and stays as it is")),
            several => {
                Some(format!("it changes steps {}, which are over and stay as they are", several.join(", ")))
            }
        }
    }

    async fn show(&self, client: &Client, checked: &Checked) -> Result<(), Failure> {
        let view = client.plan_diff(checked, &self.view.run, None).await?;
        show::say(changes::draw(&view, false).trim_end());
        let stay = self.view.steps.iter().filter(|step| step.state.is_settled()).count();
        if stay > 0 {
            show::say(&format!("{stay} of its steps are over, and stay so"));
        }
        Ok(())
    }

    /// Asks a person whether the changed plan is approved.
    async fn ask_approval(&self, context: &Context) -> Result<(), Failure> {
        let run = show::safe(&self.view.run);
        let at = self.view.steps.iter().find(|step| step.state.is_under_way());
        let at = at.map(|step| format!(" at step {}", step.number)).unwrap_or_default();
        let question = format!("Approve this, and go on with {run}{at}?");
        context.ask_for_approval(&question).await.map_err(|failure| self.kept_words(failure))
    }

    /// Lets the run go on with what a person approves, and says where it stands.
    async fn go_on(&self, context: &Context, client: &Client, checked: &Checked, args: &EditArgs) -> Answer {
        if !args.approve {
            self.ask_approval(context).await?;
        }
        let is_json = context.is_json()?;
        self.submit_edit(context, client, checked, args.note.as_deref(), is_json).await?;
        self.say_next(context, client, is_json).await?;
        Ok(Exit::Yes)
    }

    /// Writes the plan's file, and lets the run go on with it.
    async fn submit_edit(
        &self,
        context: &Context,
        client: &Client,
        checked: &Checked,
        note: Option<&str>,
        is_json: bool,
    ) -> Result<(), Failure> {
        let decided = self.decide(context, client, checked, note).await?;
        if is_json {
            return print_recorded(context, &decided, is_json);
        }
        context.say(&recorded_word(&decided));
        Ok(())
    }

    async fn decide(
        &self,
        context: &Context,
        client: &Client,
        checked: &Checked,
        note: Option<&str>,
    ) -> Result<Decided, Failure> {
        self.write(context, checked.source.text()).map_err(|failure| self.kept_words(failure))?;
        let (folder, worker) = (self.folder(), self.worker.as_ref());
        let checked = checking::check_in(context, folder, &self.file, worker, &Levels::default()).await?;
        if let Some(ask) = self.ask {
            client.answer(ask, Word::Revise, note).await?;
        }
        let given = Approving { worker: self.worker.clone(), ..Approving::with_note(note) };
        let decided = client.approve(&checked, &given).await.map_err(|failure| {
            // The run is paused by now, and waits for an approval of the file.
            next::with_next(failure, &Next::approve(&self.view.plan), Some(&self.view.workspace))
        })?;
        self.remove_draft();
        Ok(decided)
    }

    /// Says where the run stands by now, and what to type next.
    async fn say_next(&self, context: &Context, client: &Client, is_json: bool) -> Result<(), Failure> {
        if !is_json {
            let view = client.status(self.handle).await?;
            context.say(&format!("{} is {}", show::safe(&view.run), show::run_state(view.state)));
            context.say(&next::line(&running::end::after_answer(&view, &Word::Retry)));
        }
        Ok(())
    }

    /// Writes the plan's file, which nobody may have changed meanwhile but planctl with its marks.
    fn write(&self, context: &Context, text: &str) -> Result<(), Failure> {
        let Some(before) = &self.before else { return write::create(&self.file, text) };
        let now =
            read_plan(&self.file).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let meant = |text: &str| canonical(&Source::new("", text));
        let old = if meant(&now) == meant(before) { &now } else { before };
        write::replace(context, &self.file, old, text)
    }

    fn remove_draft(&self) {
        // A draft that stays is offered again, which does no harm.
        std::fs::remove_file(&self.draft).unwrap_or_default();
    }

    fn kept_words(&self, failure: Failure) -> Failure {
        let draft = show::safe(&self.draft.display().to_string());
        let (kept, again) =
            (format!("your text is kept in {draft}"), command_to_reopen(&self.view, self.ask));
        match self.ask {
            Some(_) => failure.help(kept).next(again),
            None => {
                let run = show::safe(&self.view.run);
                failure
                    .help(format!("{kept}; {run} stays paused, and {again} opens the text again"))
                    .next(self.resume())
            }
        }
    }

    fn resume(&self) -> String {
        format!("planctl resume {}", shell_word(&self.view.run))
    }
}

/// Returns the command that opens a run's plan again.
fn command_to_reopen(view: &RunView, ask: Option<u64>) -> String {
    match ask {
        Some(ask) => format!("planctl approvals edit {ask}"),
        None => format!("planctl edit {}", shell_word(&view.run)),
    }
}
