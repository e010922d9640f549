//! The inbox: questions for people, with what they should see to decide, and the answers they give.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use planctl_api::Next;
use planctl_engine::{
    Actor, Answer, AskKind, Budget, BudgetPart, ChildApproval, DayScope, Decision, Fact, Failure, Graph,
    Node, NodeKind, Record, Refusal, RunId, Shortfall, view,
};
use planctl_harness::{Baseline, JudgePrompt};
use planctl_lang::{Insertion, Source, budget_words, insert_step, insertion};
use planctl_store::{AskDeadline, AskRow, DayRaise, NewVote, Page, RunRow, Said, StoreError};

use super::draft_asks::draft_ask_view;
use super::options::{option_chosen, option_views};
use super::order::InboxPlace;
use super::votes::{Cast, Given, is_voted_meanwhile};
use crate::node::services::{ServiceError, Services};
use crate::plans::sub_plans::folder_of;
use crate::plans::{HandedIn, canonical};
use crate::runs::settings::RunSettings;
use crate::runs::shown::{failure_line, quoted, tampered};
use crate::verify::check;
use crate::workspaces::baselines::baseline_of;
use planctl_api::wire::calls::Approving;
use planctl_api::wire::{
    AnswerView, AskList, AskPage, AskView, BlocksView, ContractView, DeadlineView, Decided, FailureView,
    HeldPromptView, LevelView, Paged, PlanWithin, ShortfallView, StepFilesView, StepName, WillRun, moment,
    usd,
};
use planctl_config::{Config, WorkspaceMode, keys_that_differ};

/// How often a vote is looked at anew since others voted at the same moment.
const RACES_MAX: u32 = 200;

impl Services {
    /// Lists open asks of a run, or of this workspace and all others: first those that block most.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn asks(
        &self,
        run: Option<RunId>,
        is_everywhere: bool,
        page: &Page<InboxPlace>,
    ) -> Result<AskList, ServiceError> {
        let workspace = self.workspace.filter(|_| !is_everywhere);
        let (mut places, waiting) = self.in_order(&self.store.asks_waiting(run, workspace).await?).await?;
        // No run waits for a draft, so its asks come after those that something waits for.
        let drafts = if run.is_some() { Vec::new() } else { self.store.draft_asks(workspace).await? };
        let nothing = BlocksView { runs: 0, steps: 0 };
        places.extend(drafts.iter().map(|row| InboxPlace { blocks: nothing, number: row.number }));
        places.retain(|place| page.after.is_none_or(|after| *place > after));
        places.truncate(usize::try_from(page.limit).unwrap_or(usize::MAX));
        let next = page.next(&places, |place| *place).map(AskList::cursor);
        let numbers: Vec<i64> = places.iter().map(|place| place.number).collect();
        let blocks: BTreeMap<i64, BlocksView> =
            places.iter().map(|place| (place.number, place.blocks)).collect();
        let rows = self.store.asks_numbered(&numbers).await?;
        let of_runs = rows.iter().filter_map(|row| {
            let view = ask_view(row, &waiting.get(&row.run)?.graph, None);
            Some(AskView { blocks: blocks.get(&row.number).copied(), ..view })
        });
        let of_drafts = drafts.iter().filter(|row| numbers.contains(&row.number)).map(draft_ask_view);
        Ok(AskList { asks: of_runs.chain(of_drafts).collect(), next })
    }

    /// Shows one ask, open or answered, with the evidence on it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] with not found, and those of the connection.
    pub async fn ask(&self, id: u64) -> Result<AskPage, ServiceError> {
        let row = match self.store.ask(i64::try_from(id).unwrap_or(i64::MAX)).await {
            Err(StoreError::NoAsk { number }) => return self.draft_ask(number).await,
            row => row?,
        };
        let run = self.store.run(row.run).await?;
        let revision = self.kept_text(run.plan, &run.plan_path, &run.revision).await?;
        let answer = if row.is_open { None } else { self.answer_of(&row).await? };
        let blocks = if row.is_open { Some(self.blocked_by(&row).await?) } else { None };
        let gated = revision.graph.gated(&row.at.node);
        let is_plan = row.ask.kind == AskKind::Plan;
        let record = self.record_of(&row).await?;
        let approval = match run.approval.filter(|_| !is_plan) {
            Some(approval) => Some(self.store.approval(approval).await?),
            None => None,
        };
        let before = if is_plan { self.store.last_approval(run.plan).await? } else { None };
        let mut diff = match before {
            Some(before) if before.digest != run.revision => {
                let old = self.kept_text(run.plan, &run.plan_path, &before.digest).await?.source;
                Some(crate::verify::diff::unified(&canonical(&old), &canonical(&revision.source)))
            }
            Some(_) | None => None,
        };
        let (mut will_run, mut drift, mut uncommitted) = (None, Vec::new(), Vec::new());
        let place = Path::new(run.present_folder());
        if is_plan {
            let (view, shown) = self.will_run(&run, &revision.graph).await?;
            drift = self.drift(run.plan, None, &revision.graph, &shown).await?;
            uncommitted = self.differing_from_head(place, &shown).await;
            will_run = Some(view);
        }
        let mut unfit = None;
        let (mut changes, mut may_change) = (Vec::new(), Vec::new());
        if row.ask.kind == AskKind::Insertion {
            match preview_insertion(&row, &revision.graph, &revision.source) {
                Ok((text, insertion)) => {
                    let approved = approval.as_ref().map(baseline_of).transpose()?.unwrap_or_default();
                    let own = Baseline { free: insertion.may_change, ..Baseline::default() };
                    let now = self.baseline_now(&revision.graph, place).await.unwrap_or_default();
                    drift = self.drift(run.plan, Some(&run), &revision.graph, &now).await?;
                    uncommitted = self.differing_from_head(place, &now).await;
                    may_change = approved.files.keys().filter(|path| own.may_change(path)).cloned().collect();
                    (diff, changes) = (Some(text), insertion.changes);
                }
                Err(why) => unfit = Some(why),
            }
        }
        let mut failure = row.ask.failure.as_deref().map(failure_view);
        if let Some(view) = failure.as_mut().filter(|_| row.is_open) {
            self.compare_tampered(&run, &mut view.tampered).await?;
        }
        let (rules, votes) = self.votes_shown(&row).await?;
        let node = revision.graph.node(&row.at.node).filter(|node| node.gated().is_some());
        let (mut attempts, mut last_words, mut workspace_changes) = (Vec::new(), None, None);
        if let Some(node) = node.filter(|_| !is_plan) {
            (attempts, last_words) = self.newest_attempts(&run, node).await?;
            if row.is_open {
                workspace_changes =
                    self.workspace_changes(&run, &revision.graph, node, approval.as_ref()).await?;
            }
        }
        let approved = match &approval {
            Some(approval) => Some(self.approved(&run, approval).await?),
            None => None,
        };
        Ok(AskPage {
            ask: AskView { blocks, ..ask_view(&row, &revision.graph, answer) },
            message: row.ask.message.clone(),
            unfit,
            contract: gated
                .filter(|gated| !gated.contract.is_none())
                .map(|gated| ContractView::of(gated.contract)),
            failure,
            vacuous: record.as_ref().is_some_and(Record::is_vacuous),
            pace: revision
                .graph
                .task(&row.at.node)
                .zip(record.as_ref())
                .and_then(|(task, record)| LevelView::of(task, record)),
            shortfall: row.ask.shortfall.as_ref().map(shortfall_view),
            prompt: self.prompt_shown(&row).await?,
            will_run,
            plan_text: is_plan.then(|| revision.source.clone()),
            diff,
            changes,
            may_change,
            drift,
            uncommitted,
            attempts,
            last_words,
            workspace_changes,
            approved,
            rules,
            votes,
        })
    }

    /// Shows the prompt that an ask is about, whole.
    async fn prompt_shown(&self, row: &AskRow) -> Result<Option<HeldPromptView>, ServiceError> {
        let Some(prompt) = row.ask.prompt.as_deref() else { return Ok(None) };
        let kept = self.store.output(&prompt.digest).await?;
        let kept = kept.and_then(|bytes| serde_json::from_slice::<JudgePrompt>(&bytes).ok());
        Ok(Some(HeldPromptView {
            digest: prompt.digest.as_str().to_owned(),
            name: prompt.by.clone(),
            model: prompt.model.clone(),
            url: prompt.url.clone(),
            tokens: prompt.tokens,
            text: kept.map(|prompt| prompt.whole()),
        }))
    }

    async fn will_run(&self, run: &RunRow, graph: &Arc<Graph>) -> Result<(WillRun, Baseline), ServiceError> {
        let settings: RunSettings = serde_json::from_str(&run.settings).unwrap_or_default();
        let plans = self.plans_within(run, graph, &settings).await?;
        // Where the workspace is on another host there is nothing to look at; approving there takes the files as they are.
        let baseline = match &settings.shown {
            Some(shown) => shown.clone(),
            None => self.baseline_now(graph, Path::new(run.present_folder())).await.unwrap_or_default(),
        };
        let mut protected = baseline.clone();
        settings.protect_scripts(&mut protected);
        Ok((WillRun { plans, ..will_run(run, graph, &settings, &protected) }, baseline))
    }

    /// Lists the plans that a run carries out, as they were kept when it was made, and those within them.
    async fn plans_within(
        &self,
        run: &RunRow,
        graph: &Arc<Graph>,
        settings: &RunSettings,
    ) -> Result<Vec<PlanWithin>, ServiceError> {
        let (mut plans, mut seen) = (Vec::new(), BTreeSet::new());
        let first = (run.plan_path.clone(), settings.folder.clone(), graph.clone(), true);
        let mut open = VecDeque::from([first]);
        let home = Path::new(&run.workspace_path);
        while let Some((around, place, graph, is_approved)) = open.pop_front() {
            for (_, within) in graph.sub_plans() {
                let Some(digest) = settings.sub_plans.get(&within.path) else { continue };
                let is_approved_too = is_approved && within.approval == ChildApproval::Inherit;
                let folder = folder_of(&place, within);
                if !seen.insert((around.clone(), within.path.clone(), folder.clone(), is_approved_too)) {
                    continue;
                }
                let path = check::plan_path(&home.join(&within.path), home);
                let Some(kept) = self.store.plan_at(run.workspace, &path).await? else { continue };
                let revision = self.kept_text(kept.id, &path, digest).await?;
                plans.push(PlanWithin {
                    plan: path.clone(),
                    within: around.clone(),
                    folder: Some(folder.clone()).filter(|folder| !folder.is_empty()),
                    digest: digest.as_str().to_owned(),
                    title: revision.graph.title().to_owned(),
                    steps: revision.graph.task_count(),
                    is_approved_too,
                    text: is_approved_too.then(|| revision.source.clone()),
                });
                open.push_back((path, folder, revision.graph.clone(), is_approved_too));
            }
        }
        Ok(plans)
    }

    /// Returns what is remembered of the step that is held.
    async fn record_of(&self, row: &AskRow) -> Result<Option<Record>, ServiceError> {
        if row.ask.kind == AskKind::Plan {
            return Ok(None);
        }
        let mut view = self.store.run_view(row.run).await?;
        Ok(view.records.remove(&row.at.node))
    }

    /// Answers an ask.
    ///
    /// Approving or rejecting the plan ask of a run is done by [`Services::approve`] and [`Services::reject`], which
    /// verify the file again; here it is answered for what the ask shows: the revision and the configuration with which
    /// it was handed in (P18). If the caller has a configuration, it must be the same.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where somebody answered already or the ask takes other answers, and those of the store.
    pub async fn answer(
        &self,
        id: u64,
        answer: Answer,
        given: &Approving,
        under: Option<&Config>,
    ) -> Result<Decided, ServiceError> {
        let under = under.map(|config| self.server_node.seal_secrets(config.clone())).transpose()?;
        self.answer_under(id, answer, given, under.as_ref()).await
    }

    /// Answers an ask under a sealed configuration. Where others vote at the same moment, the vote is looked at anew.
    pub(crate) async fn answer_under(
        &self,
        id: u64,
        answer: Answer,
        given: &Approving,
        under: Option<&Config>,
    ) -> Result<Decided, ServiceError> {
        let mut races = 0;
        loop {
            let decided = self.answer_once(id, answer.clone(), given, under).await;
            if !is_voted_meanwhile(&decided) || races == RACES_MAX {
                return decided;
            }
            races += 1;
        }
    }

    async fn answer_once(
        &self,
        id: u64,
        answer: Answer,
        given: &Approving,
        under: Option<&Config>,
    ) -> Result<Decided, ServiceError> {
        let note = given.note.as_deref();
        let row = match self.store.ask(i64::try_from(id).unwrap_or(i64::MAX)).await {
            Err(StoreError::NoAsk { number }) => return self.answer_draft(number, answer, given).await,
            row => row?,
        };
        let answer = self.option_named(&row, answer).await?;
        let decision = Decision::Answer { item: row.item.clone(), answer: answer.clone() };
        let is_repeated = self.has_decided(row.run, &decision).await?;
        if !row.is_open && !is_repeated {
            return Err(self.answered_before(id, &row).await?);
        }
        let word = answer.word();
        let answers = row.ask.kind.answers_for_failure(row.ask.failure.as_deref());
        if !answers.contains(&word) {
            return Err(ServiceError::Conflict {
                what: format!("answer ask {id} with {word}: it is {}", view::ask_name(row.ask.kind)),
                next: Next::AnswerAsk { ask: id, answers: answers.iter().map(ToString::to_string).collect() },
            });
        }
        if let Answer::Raise { by } = &answer
            && !is_repeated
        {
            self.refuse_beyond_around(&row, *by).await?;
        }
        let shown = match answer == Answer::Approve && row.ask.kind == AskKind::Plan && !is_repeated {
            true => Some(self.as_shown(&row, given, under).await?),
            false => None,
        };
        let rules = self.ask_rules(&row).await?;
        let voting = rules.voting(row.ask.kind, &answer);
        let vote = match is_repeated || voting.is_empty() {
            true => None,
            false => {
                let about = shown.as_ref().map(|shown| shown.digest()).unwrap_or_default();
                let (item, number) = (&row.item, row.number);
                let given = Given { item, number, answer: &answer, note, about: &about };
                match self.cast(&row, given, &rules, &voting).await? {
                    Cast::Counted(decided) => return Ok(*decided),
                    Cast::Decides(vote, words) => Some((vote, words)),
                }
            }
        };
        // A vote is the vote of the person whom planctl knows, whichever name they sign with.
        let decider = match &vote {
            Some((vote, _)) => &self.with_actor(Actor::new(vote.voter.as_str())),
            None => self,
        };
        let (vote, words) = vote.unzip();
        let words = words.unwrap_or_else(|| note.map(str::to_owned));
        if let Some(shown) = &shown {
            decider.approve_as_handed_in(shown, words.as_deref(), given).await?;
        }
        if answer == Answer::Restore && !is_repeated {
            self.restore_approved(&row).await?;
        }
        decider.decide_ask(&row, &answer, words.as_deref(), vote).await
    }

    /// Gives the answer to an ask, and does what follows it beside the run.
    async fn decide_ask(
        &self,
        row: &AskRow,
        answer: &Answer,
        note: Option<&str>,
        vote: Option<Box<NewVote>>,
    ) -> Result<Decided, ServiceError> {
        let (id, word) = (row.number.unsigned_abs(), answer.word());
        if let Answer::Raise { by } = answer
            && let Some(day) = row.ask.shortfall.and_then(|short| short.day)
        {
            self.raise_day(row, day.of, *by, note).await?;
        } else if let Answer::Raise { by } = answer
            && row.is_open
        {
            self.set_aside_around(row, *by).await?;
        }
        let decision = Decision::Answer { item: row.item.clone(), answer: answer.clone() };
        match self.decide_with(row.run, decision, note, vote).await {
            Ok(_) => {}
            Err(ServiceError::Store(StoreError::Refused(refusal))) => {
                let now = self.store.ask(row.number).await?;
                if now.is_open {
                    return Err(ServiceError::Conflict {
                        what: format!("{word} ask {id}: {refusal}"),
                        next: Next::ShowAsk { ask: id },
                    });
                }
                return Err(self.answered_before(id, &now).await?);
            }
            Err(error) => return Err(error),
        }
        if matches!(answer, Answer::Raise { .. }) {
            self.store.wake_raised(row.run).await?;
        }
        if *answer == Answer::Reject && row.ask.kind == AskKind::Plan {
            let run = self.store.run(row.run).await?;
            self.store.void_approvals(run.plan, note.unwrap_or("rejected")).await?;
        }
        let moved = match *answer == Answer::Approve && row.ask.kind == AskKind::Plan {
            true => self.revised_by(row).await?,
            false => None,
        };
        let (run, name) = moved.map_or((row.run, row.run_name.clone()), |run| (run.id, run.name));
        Ok(Decided {
            run: Some(name.clone()),
            run_id: Some(run.to_string()),
            workspace: Some(row.workspace_path.clone()),
            ask: Some(id),
            decision: word.to_owned(),
            by: self.caller.actor.to_string(),
            next: Some(Next::WatchRun { run: name }),
            repeated: false,
            voted: None,
        })
    }

    /// Returns the paused run that goes on with a text that was handed in for it and is approved.
    async fn revised_by(&self, row: &AskRow) -> Result<Option<RunRow>, ServiceError> {
        let handed_in = self.store.run(row.run).await?;
        let Some(revised) = RunSettings::of(&handed_in)?.revises else { return Ok(None) };
        self.server_node.admit(&handed_in).await?;
        Ok(Some(self.store.run(revised).await?))
    }

    /// Adds to the budget of the day that is short, for that day alone; its runs go on by themselves.
    async fn raise_day(
        &self,
        row: &AskRow,
        of: DayScope,
        by: Budget,
        note: Option<&str>,
    ) -> Result<(), ServiceError> {
        let is_more = match row.ask.shortfall.map(|short| short.part) {
            Some(BudgetPart::Tokens) => by.tokens.is_some_and(|tokens| tokens > 0),
            Some(BudgetPart::MicroUsd) => by.micro_usd.is_some_and(|money| money > 0),
            Some(BudgetPart::Seconds) | None => false,
        };
        if !is_more {
            let id = row.number.unsigned_abs();
            return Err(ServiceError::Conflict {
                what: format!(
                    "raise ask {id}: the raise must add to the part of the day's budget that is used up"
                ),
                next: Next::ShowAsk { ask: id },
            });
        }
        let (item, person) = (row.item.as_str(), self.caller.actor.as_str());
        Ok(self.store.raise_day(DayRaise { run: row.run, item, of, by, person, note }).await?)
    }

    /// Returns an answer with the option that it means, where it chooses one.
    async fn option_named(&self, row: &AskRow, answer: Answer) -> Result<Answer, ServiceError> {
        let Answer::Choose { option } = answer else { return Ok(answer) };
        let graph = self.store.graph(&row.graph).await?;
        let options = option_views(&graph, &row.at.node, &row.ask.options);
        match option_chosen(&options, &option) {
            Ok(option) => Ok(Answer::Choose { option }),
            Err(ambiguous) => {
                let id = row.number.unsigned_abs();
                let options = ambiguous.options.iter().map(|option| quoted(option)).collect::<Vec<_>>();
                Err(ServiceError::Conflict {
                    what: format!("choose ask {id}: {} may mean {}", quoted(&option), options.join(" or ")),
                    next: Next::ShowAsk { ask: id },
                })
            }
        }
    }

    /// Refuses to let the run of a sub-plan use more than is left of the budget around it (P15).
    async fn refuse_beyond_around(&self, row: &AskRow, by: Budget) -> Result<(), ServiceError> {
        let run = self.store.run(row.run).await?;
        let Some(around) = &run.around else { return Ok(()) };
        let wanted = named_parts(by, run.head.budget.raised(by));
        let most = named_parts(wanted, self.store.budget_max_for(&run, &around.item).await?);
        if wanted.within(most) == wanted {
            return Ok(());
        }
        let around = self.store.run(around.run).await?.name;
        let id = row.number.unsigned_abs();
        Err(ServiceError::Conflict {
            what: format!(
                "raise ask {id} to {}: {} is the most that {} may use, by what is left of the budget of {around}",
                budget_words(wanted),
                budget_words(most),
                run.name
            ),
            next: Next::AnswerAsk { ask: id, answers: vec!["raise".to_owned(), "abort".to_owned()] },
        })
    }

    /// Sets aside what a raise lets the run of a sub-plan use, in the budget around it, before the raise: a branch beside it can't
    /// take the same rest in between (P15).
    async fn set_aside_around(&self, row: &AskRow, by: Budget) -> Result<(), ServiceError> {
        let run = self.store.run(row.run).await?;
        let Some(around) = &run.around else { return Ok(()) };
        let wanted = named_parts(by, run.head.budget.raised(by));
        match self.store.set_aside(&run, around, wanted).await {
            Err(StoreError::Refused(Refusal::NotLeft)) => {
                self.refuse_beyond_around(row, by).await?;
                let id = row.number.unsigned_abs();
                let what = format!("raise ask {id}: another step took what was left meanwhile");
                Err(ServiceError::Conflict { what, next: Next::ShowAsk { ask: id } })
            }
            // The run around it has not heard that this one began, so all that is left is set aside, or it waits no more.
            Ok(()) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what an approval of a run would be of, as its ask shows it, with the protected files as they are now. Refuses it
    /// where something of it has changed since.
    async fn as_shown(
        &self,
        row: &AskRow,
        given: &Approving,
        under: Option<&Config>,
    ) -> Result<HandedIn, ServiceError> {
        let run = self.store.run(row.run).await?;
        let plan = self.store.plan(run.plan).await?;
        if plan.digest != run.revision {
            return Err(ServiceError::Conflict {
                what: format!("approve {}: its plan has changed since it was handed in", run.name),
                next: Next::DiffPlan { plan: run.plan_path },
            });
        }
        let own = self.caller.workspace.as_ref().map(|path| path.to_string_lossy());
        if own.is_some_and(|own| own != run.workspace_path) {
            return Err(ServiceError::Conflict {
                what: format!("approve {} from here: its workspace is {}", run.name, run.workspace_path),
                next: Next::by_hand(format!("cd {} and approve it there", run.workspace_path)),
            });
        }
        if let Some(under) = under {
            let changed = keys_that_differ(&RunSettings::of(&run)?.config, &under.approved());
            if !changed.is_empty() {
                let changed = changed.join(", ");
                return Err(ServiceError::Conflict {
                    what: format!(
                        "approve {}: the configuration has changed since it was handed in ({changed})",
                        run.name
                    ),
                    next: Next::start(run.plan_path),
                });
            }
        }
        let graph = self.store.revision(run.plan, &run.revision).await?.graph;
        self.submission((run, row.number), plan, graph, given).await
    }

    pub(super) async fn answered_before(&self, id: u64, row: &AskRow) -> Result<ServiceError, ServiceError> {
        let how = match self.answer_of(row).await? {
            Some(answer) => format!("{} answered it with {}", answer.by, answer.answer),
            None => "it was taken back".to_owned(),
        };
        Ok(ServiceError::Conflict {
            what: format!("answer ask {id}: {how}"),
            next: Next::show(&row.run_name),
        })
    }

    pub(crate) async fn answer_of(&self, row: &AskRow) -> Result<Option<AnswerView>, ServiceError> {
        let Some(line) = self.store.answer_line(row.run, &row.item).await? else { return Ok(None) };
        let Said::Fact(fact) = &line.said else { return Ok(None) };
        let Fact::AskAnswered { answer, option, by, note, .. } = &**fact else { return Ok(None) };
        Ok(Some(AnswerView {
            answer: answer.clone(),
            option: option.clone(),
            by: by.to_string(),
            note: note.clone(),
            at: Some(moment(line.at)),
        }))
    }
}

/// Says what a proposed step would change in a plan's text and meaning, or why it cannot be put in.
fn preview_insertion(row: &AskRow, graph: &Graph, source: &str) -> Result<(String, Insertion), String> {
    let step = graph.node(&row.at.node).and_then(Node::step).unwrap_or(0);
    let text = row.ask.message.as_deref().unwrap_or_default();
    let before = Source::new(row.plan_path.as_str(), source);
    match insert_step(&before, step, text) {
        Ok(text) => {
            let after = Source::new(row.plan_path.as_str(), text);
            let diff = crate::verify::diff::unified(&canonical(source), &canonical(after.text()));
            Ok((diff, insertion(&before, &after)))
        }
        Err(found) => {
            let why: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            Err(why.join("; "))
        }
    }
}

fn will_run(run: &RunRow, graph: &Graph, settings: &RunSettings, baseline: &Baseline) -> WillRun {
    let mode = if run.worktree.is_some() { WorkspaceMode::Worktree } else { WorkspaceMode::Shared };
    let workers = graph
        .steps()
        .into_iter()
        .flat_map(|(_, task)| task.roles())
        .map(|role| (role.as_str().to_owned(), settings.shown(role)));
    WillRun {
        workspace: run.workspace_path.clone(),
        folder: Some(settings.folder.clone()).filter(|folder| !folder.is_empty()),
        mode: mode.word().to_owned(),
        git: settings.commits.word().to_owned(),
        budget: graph.budget().into(),
        workers: workers.collect(),
        digests: baseline
            .files
            .iter()
            .map(|(path, state)| (path.clone(), state.digest.as_str().to_owned()))
            .collect(),
        protected: baseline.shown(),
        steps: graph.nodes().iter().filter_map(|node| step_files(node, baseline)).collect(),
        isolation: settings.isolation.to_string(),
        plans: Vec::new(),
    }
}

fn step_files(node: &Node, baseline: &Baseline) -> Option<StepFilesView> {
    let gated = node.gated()?;
    let view = StepFilesView {
        number: node.step()?,
        title: node.title.clone(),
        judged_by: crate::verify::protection::judges_of(baseline, &gated),
        may_change: gated.may_change.iter().cloned().collect(),
    };
    Some(view).filter(|view| !view.judged_by.is_empty() || !view.may_change.is_empty())
}

pub(crate) fn ask_view(row: &AskRow, graph: &Graph, answer: Option<AnswerView>) -> AskView {
    let step = graph
        .node(&row.at.node)
        .and_then(|node| Some(StepName { number: node.step()?, title: node.title.clone() }));
    AskView {
        id: u64::try_from(row.number).unwrap_or(0),
        kind: row.ask.kind.word().to_owned(),
        run: Some(row.run_name.clone()),
        run_id: Some(row.run.to_string()),
        draft: None,
        workspace: row.workspace_path.clone(),
        plan: row.plan_path.clone(),
        title: graph.title().to_owned(),
        step,
        role: graph.task(&row.at.node).map(|task| task.role.as_str().to_owned()),
        asks: asks_line(row, graph),
        reason: row.ask.reason.word().to_owned(),
        answers: row
            .ask
            .kind
            .answers_for_failure(row.ask.failure.as_deref())
            .iter()
            .map(|answer| (*answer).to_owned())
            .collect(),
        options: row.ask.options.clone(),
        leads_to: option_views(graph, &row.at.node, &row.ask.options),
        usual: default_answer(row, graph),
        blocks: None,
        deadline: row.deadline.as_ref().filter(|_| row.is_open).map(deadline_view),
        about: about_line(row, graph),
        opened_at: moment(row.created_at),
        answer,
    }
}

/// Shows when an ask that nobody has answered is answered, and how.
pub(super) fn deadline_view(deadline: &AskDeadline) -> DeadlineView {
    DeadlineView {
        at: moment(deadline.at),
        answer: deadline.answer.word().to_owned(),
        rule: deadline.rule.clone(),
    }
}

/// Returns the answer that a plan declares as the usual one to what it asks.
fn default_answer(row: &AskRow, graph: &Graph) -> Option<String> {
    let node = graph.node(&row.at.node);
    if let Some(confirmation) = node.and_then(|node| node.confirmation.as_deref())
        && row.ask.kind == AskKind::Choice
    {
        return confirmation.question.usual.clone();
    }
    match graph.node(&row.at.node).map(|node| &node.kind) {
        Some(NodeKind::Human(question)) if row.ask.kind == AskKind::Choice => question.usual.clone(),
        Some(_) | None => None,
    }
}

/// Says in one line what is asked.
fn asks_line(row: &AskRow, graph: &Graph) -> String {
    let name = view::node_name(graph, &row.at.node);
    match row.ask.kind {
        AskKind::Plan => match graph.task_count() {
            1 => format!("approve 1 step of \"{}\"", graph.title()),
            count => format!("approve {count} steps of \"{}\"", graph.title()),
        },
        AskKind::Budget | AskKind::Day => {
            let short = row.ask.shortfall.as_ref().map(view::shortfall_line).unwrap_or_default();
            format!("{name}: {short}")
        }
        AskKind::Effect => {
            let why = row.ask.message.as_deref().unwrap_or_default();
            format!("{name}: {}: {why}", view::reason_words(row.ask.reason))
        }
        AskKind::Prompt => {
            let about = row.ask.prompt.as_deref().map(|prompt| {
                format!(": about {} tokens to {} ({})", prompt.tokens, prompt.by, prompt.model)
            });
            format!("{name}: {}{}", view::reason_words(row.ask.reason), about.unwrap_or_default())
        }
        AskKind::Choice | AskKind::Synthesis => {
            format!("{name}: {}", row.ask.message.clone().unwrap_or_default())
        }
        AskKind::Insertion => {
            let text = row.ask.message.as_deref().unwrap_or_default();
            let heading =
                text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
            format!("{name} proposes a further step: {}", quoted(heading.unwrap_or("(without a heading)")))
        }
        AskKind::Question => {
            let text = row.ask.message.as_deref().unwrap_or_default().trim();
            let first = text.lines().next().unwrap_or_default();
            let more = if first.len() < text.len() { " …" } else { "" };
            format!("{name} asks: {}{more}", quoted(first))
        }
        AskKind::Escalation => {
            let failed = row.ask.failure.as_deref().map(|failure| format!("; {}", failure_line(failure)));
            format!("{name}: {}{}", view::reason_words(row.ask.reason), failed.unwrap_or_default())
        }
    }
}

/// Says what an ask is about without the step's name, which a table has in a column of its own.
fn about_line(row: &AskRow, graph: &Graph) -> String {
    let name = view::node_name(graph, &row.at.node);
    let whole = match (row.ask.kind, row.ask.failure.as_deref()) {
        (AskKind::Escalation, Some(failure)) => failure_line(failure),
        _ => asks_line(row, graph),
    };
    match whole.strip_prefix(&name) {
        Some(rest) => rest.trim_start_matches([':', ' ']).to_owned(),
        None => whole,
    }
}

fn failure_view(failure: &Failure) -> FailureView {
    let files = match &failure.what {
        planctl_engine::Failing::Contract { tampered: files, .. }
        | planctl_engine::Failing::NotRed { tampered: files, .. } => tampered(files),
        planctl_engine::Failing::Overran { .. }
        | planctl_engine::Failing::Undelivered { .. }
        | planctl_engine::Failing::Permission { .. }
        | planctl_engine::Failing::Conflict { .. }
        | planctl_engine::Failing::SubPlan { .. }
        | planctl_engine::Failing::Unconfirmed { .. }
        | planctl_engine::Failing::Unobserved { .. }
        | planctl_engine::Failing::Judged { .. }
        | planctl_engine::Failing::Inconclusive { .. } => Vec::new(),
    };
    FailureView {
        attempt: failure.attempt.number(),
        what: view::failed_line(failure),
        tampered: files,
        stdout_tail: failure.stdout.tail.clone(),
        stderr_tail: failure.stderr.tail.clone(),
    }
}

/// Returns the parts of a budget that another one names.
fn named_parts(named: Budget, budget: Budget) -> Budget {
    Budget {
        tokens: named.tokens.and(budget.tokens),
        micro_usd: named.micro_usd.and(budget.micro_usd),
        time: named.time.and(budget.time),
    }
}

fn shortfall_view(short: &Shortfall) -> ShortfallView {
    let (part, amount): (_, fn(u64) -> f64) = match short.part {
        BudgetPart::Tokens => ("tokens", |count| count as f64),
        BudgetPart::MicroUsd => ("usd", usd),
        BudgetPart::Seconds => ("seconds", |count| count as f64),
    };
    ShortfallView {
        part: part.to_owned(),
        limit: amount(short.limit),
        spent: amount(short.spent),
        needed: amount(short.needed()),
        steps_remaining: short.steps_remaining,
        until: short.day.map(|day| moment(day.until)),
    }
}
