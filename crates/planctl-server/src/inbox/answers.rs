//! The answers that people give to asks.

use std::collections::BTreeSet;

use planctl_api::Next;
use planctl_api::wire::calls::Approving;
use planctl_api::wire::{AnswerView, Decided, moment};
use planctl_config::{Config, keys_that_differ};
use planctl_engine::{
    Actor, Answer, AskKind, Budget, BudgetPart, DayScope, Decision, Fact, Graph, Refusal, Role,
};
use planctl_lang::budget_words;
use planctl_store::{AskRow, DayRaise, NewVote, Page, RunRow, Said, StoreError};

use super::options::{option_chosen, option_views};
use super::votes::{Cast, Given, is_voted_meanwhile};
use crate::node::services::{ServiceError, Services};
use crate::plans::HandedIn;
use crate::runs::settings::RunSettings;
use crate::runs::words::quoted;

/// How often a vote is looked at anew since others voted at the same moment.
const RACES_MAX: u32 = 200;

impl Services {
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
        let word = answer.as_str();
        let graph = self.store.graph(&row.graph).await?;
        let answers = row.ask.answers(&graph, &row.at.node);
        if !answers.contains(&word) {
            return Err(ServiceError::Conflict {
                what: format!("answer ask {id} with {word}: it is {}", planctl_view::ask_name(row.ask.kind)),
                next: Next::AnswerAsk { ask: id, answers: answers.iter().map(ToString::to_string).collect() },
            });
        }
        if let Answer::Raise { by } = &answer
            && !is_repeated
        {
            self.refuse_beyond_around(&row, *by).await?;
        }
        if let Answer::Reassign { role } = &answer
            && !is_repeated
        {
            self.refuse_unknown_role(&row, &graph, role).await?;
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
        let (id, word) = (row.number.unsigned_abs(), answer.as_str());
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
            ..Decided::default()
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
            Some(BudgetPart::MicroSeconds) | None => false,
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

    /// Refuses to give a step to a role that nothing knows: what serves the run, its configuration, its plan and the workers that
    /// were seen.
    async fn refuse_unknown_role(
        &self,
        row: &AskRow,
        graph: &Graph,
        role: &Role,
    ) -> Result<(), ServiceError> {
        let settings = RunSettings::of(&self.store.run(row.run).await?)?;
        if settings.worker_for(role).is_some() {
            return Ok(());
        }
        let mut known: BTreeSet<Role> = settings.roles.keys().map(|name| Role::new(name.as_str())).collect();
        known.extend(graph.steps().into_iter().flat_map(|(_, task)| task.roles().cloned()));
        known.extend(self.store.workers(&Page::ALL).await?.into_iter().flat_map(|worker| worker.roles));
        if known.contains(role) {
            return Ok(());
        }
        let known: Vec<&str> = known.iter().map(Role::as_str).collect();
        Err(ServiceError::Invalid {
            what: format!("reassign ask {}: there is no role {}", row.number, quoted(role.as_str())),
            help: format!("roles: {}; a worker that serves another makes it known", known.join(", ")),
        })
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
        if let Some(around) = run.around.as_ref().filter(|_| plan.digest != run.revision) {
            let around = self.store.run(around.run).await?;
            return Err(ServiceError::Conflict {
                what: format!(
                    "approve {}: {} has changed since it was handed in; reject it, then answer what {} asks with `revise`, approve {} \
                     anew, and it begins the plan as it is then",
                    run.name, run.plan_path, around.name, around.plan_path
                ),
                next: Next::AnswerAsk { ask: row.number.unsigned_abs(), answers: vec!["reject".to_owned()] },
            });
        }
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

/// Returns the parts of a budget that another one names.
fn named_parts(named: Budget, budget: Budget) -> Budget {
    Budget {
        tokens: named.tokens.and(budget.tokens),
        micro_usd: named.micro_usd.and(budget.micro_usd),
        time: named.time.and(budget.time),
    }
}
