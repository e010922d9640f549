//! Asks of drafts: opened by the command that drafts, and listed, shown, voted on and answered as those of runs are.

use planctl_api::wire::calls::Approving;
use planctl_api::wire::draft_asks::{DraftAskCall, DraftAsksCall, DraftAsksView, DraftQuestion};
use planctl_api::wire::{AnswerView, AskPage, AskView, Decided, HeldPromptView, OptionView, moment};
use planctl_api::{Next, words};
use planctl_config::Config;
use planctl_engine::{Answer, AskKind, Digest, PromptToJudge};
use planctl_lang::{digest_of_text, slug};
use planctl_store::{DraftAsk, DraftAskRow, NewDraftAnswer, NewDraftAsk, NewDraftAsks};

use super::ask_view::deadline_view;
use super::options::option_chosen;
use super::votes::Given;
use crate::node::services::{ServiceError, Services};
use crate::runs::ask_rules::AskRules;
use crate::runs::words::quoted;

/// How many asks a draft may hand in at once, and how long the parts of one may be.
const ASKS_MAX: usize = 100;
const NAME_CHARACTERS_MAX: usize = 100;
const GOAL_CHARACTERS_MAX: usize = 4000;
/// How many characters of a goal name its draft.
const DRAFT_NAME_CHARACTERS: usize = 24;

impl Services {
    /// Opens the asks that a draft waits for, and says where they stand.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] where a part is too long, [`ServiceError::TooMany`] where as much is open as may be, and those of
    /// the store.
    pub async fn open_draft_asks(
        &self,
        wanted: &DraftAsksCall,
        config: Option<&Config>,
    ) -> Result<DraftAsksView, ServiceError> {
        let workspace = self.own_workspace()?;
        refuse_too_long(wanted)?;
        if wanted.asks.iter().any(|ask| ask.question.is_some()) {
            self.refuse_too_many_asks("ask").await?;
        }
        let rules = rules_json(config, self.caller.actor.as_str())?;
        let asks =
            wanted.asks.iter().map(|ask| new_ask(&wanted.begun, ask)).collect::<Result<Vec<_>, _>>()?;
        let goal = goal_kept(&wanted.goal);
        let wanted = NewDraftAsks { workspace, key: &wanted.key, goal: &goal, rules: &rules, asks: &asks };
        let rows = self.store.open_draft_asks(wanted).await?;
        Ok(DraftAsksView { asks: rows.iter().map(draft_ask_view).collect() })
    }

    /// Shows the ask of a draft.
    pub(super) async fn draft_ask(&self, number: i64) -> Result<AskPage, ServiceError> {
        let row = self.store.draft_ask(number).await?;
        let (rules, votes) = self.votes_by_rules(&rules_read(&row)?, row.ask.kind, &row.item).await?;
        let is_prompt = row.ask.prompt.is_some();
        let prompt = row.ask.prompt.as_deref().map(|prompt| HeldPromptView {
            digest: prompt.digest.as_str().to_owned(),
            name: prompt.by.clone(),
            model: prompt.model.clone(),
            url: prompt.url.clone(),
            tokens: prompt.tokens,
            text: Some(row.ask.text.clone()),
        });
        let message = (!is_prompt).then(|| row.ask.text.clone());
        Ok(AskPage { ask: draft_ask_view(&row), message, prompt, rules, votes, ..AskPage::default() })
    }

    /// Answers the ask of a draft. Of several who answer at once, one decides; the same answer of the same person counts once.
    pub(super) async fn answer_draft(
        &self,
        number: i64,
        answer: Answer,
        given: &Approving,
    ) -> Result<Decided, ServiceError> {
        let row = self.store.draft_ask(number).await?;
        let note = given.note.as_deref();
        let answer = option_of(&row, answer)?;
        let id = number.unsigned_abs();
        if let Some(before) = &row.answer {
            let is_repeated = before.answer == answer
                && before.note.as_deref() == note
                && [self.caller.actor.as_str(), &self.caller.person].contains(&before.by.as_str());
            return match is_repeated {
                true => Ok(Decided { repeated: true, ..decided(&row, &answer, &before.by) }),
                false => Err(conflict_of_ended(
                    &row,
                    format!("{} answered it with {}", before.by, before.answer.as_str()),
                )),
            };
        }
        if !row.is_open {
            return Err(conflict_of_ended(&row, "it was taken back".to_owned()));
        }
        let takes = answers_of(row.ask.kind);
        if !takes.contains(&answer.as_str()) {
            return Err(ServiceError::Conflict {
                what: format!(
                    "answer ask {id} with {}: it is {}",
                    answer.as_str(),
                    planctl_view::ask_name(row.ask.kind)
                ),
                next: Next::AnswerAsk { ask: id, answers: takes.iter().map(ToString::to_string).collect() },
            });
        }
        if answer == Answer::Reply && note.is_none_or(|note| note.trim().is_empty()) {
            return Err(ServiceError::Conflict {
                what: format!("answer ask {id}: the answer is empty"),
                next: Next::ShowAsk { ask: id },
            });
        }
        let new = NewDraftAnswer {
            item: &row.item,
            by: self.caller.actor.as_str(),
            answer: &answer,
            about: "",
            note,
            seen: None,
            decides: true,
        };
        let rules = rules_read(&row)?;
        let voting = rules.voting(row.ask.kind, &answer);
        if voting.is_empty() {
            self.store.answer_draft(new).await?;
            return Ok(decided(&row, &answer, new.by));
        }
        let given = Given { item: &row.item, number, answer: &answer, note, about: "" };
        let tally = self.tally(given, &rules, &voting).await?;
        let note = tally.words.as_deref().or(note);
        let decides = tally.lacks.is_none();
        let new =
            NewDraftAnswer { by: &tally.vote.voter, note, seen: Some(&tally.vote.seen), decides, ..new };
        if decides || !tally.is_repeated {
            self.store.answer_draft(new).await?;
        }
        let decided = decided(&row, &answer, new.by);
        Ok(match tally.lacks {
            Some(lacks) => Decided {
                next: Some(Next::ShowAsk { ask: id }),
                repeated: tally.is_repeated,
                voted: Some(lacks),
                ..decided
            },
            None => decided,
        })
    }
}

/// Says that an ask is over.
fn conflict_of_ended(row: &DraftAskRow, how: String) -> ServiceError {
    let id = row.number.unsigned_abs();
    ServiceError::Conflict { what: format!("answer ask {id}: {how}"), next: Next::ShowAsk { ask: id } }
}

fn decided(row: &DraftAskRow, answer: &Answer, by: &str) -> Decided {
    Decided {
        workspace: Some(row.workspace_path.clone()),
        ask: Some(row.number.unsigned_abs()),
        decision: answer.as_str().to_owned(),
        by: by.to_owned(),
        next: Some(Next::by_hand(format!(
            "the command that works on \"{}\" goes on when it is given again",
            words::safe(&first_line(&row.goal))
        ))),
        ..Decided::default()
    }
}

fn refuse_too_long(wanted: &DraftAsksCall) -> Result<(), ServiceError> {
    let is_long = |text: &str, most: usize| text.chars().count() > most;
    let is_word = |slot: &str| !slot.is_empty() && !slot.contains('/') && !is_long(slot, NAME_CHARACTERS_MAX);
    let fits = wanted.asks.len() <= ASKS_MAX
        && !is_long(&wanted.key, NAME_CHARACTERS_MAX)
        && wanted.asks.iter().all(|ask| is_word(&ask.slot));
    match fits {
        true => Ok(()),
        false => Err(ServiceError::Invalid {
            what: "ask for this draft".to_owned(),
            help: format!(
                "{ASKS_MAX} asks at most; the key and each slot have {NAME_CHARACTERS_MAX} characters at most, and a slot has no /"
            ),
        }),
    }
}

/// Refuses a key that is no name of a draft.
pub(super) fn refuse_long_key(key: &str) -> Result<(), ServiceError> {
    match (1..=NAME_CHARACTERS_MAX).contains(&key.chars().count()) {
        true => Ok(()),
        false => Err(ServiceError::Invalid {
            what: "keep this draft".to_owned(),
            help: format!("its key has {NAME_CHARACTERS_MAX} characters at most"),
        }),
    }
}

/// Returns as much of a goal as is kept.
pub(super) fn goal_kept(goal: &str) -> String {
    goal.chars().take(GOAL_CHARACTERS_MAX).collect()
}

/// Returns the rules for the asks of drafts, as JSON: those that are for every plan.
pub(super) fn rules_json(config: Option<&Config>, asked_by: &str) -> Result<String, ServiceError> {
    let of = |config| AskRules::of_draft(config, asked_by, answers_of);
    let rules = config.map(of).unwrap_or_default();
    serde_json::to_string(&rules).map_err(|error| ServiceError::broken(error.to_string()))
}

fn rules_read(row: &DraftAskRow) -> Result<AskRules, ServiceError> {
    serde_json::from_str(&row.rules).map_err(|error| ServiceError::broken(error.to_string()))
}

fn new_ask(begun: &str, wanted: &DraftAskCall) -> Result<NewDraftAsk, ServiceError> {
    let bare = |kind, text: &str| DraftAsk { kind, text: text.to_owned(), options: Vec::new(), prompt: None };
    let Some(question) = &wanted.question else {
        return Ok(NewDraftAsk { slot: wanted.slot.clone(), digest: String::new(), ask: None });
    };
    let ask = match question {
        DraftQuestion::Prompt { digest, name, model, url, tokens, text } => DraftAsk {
            prompt: Some(Box::new(PromptToJudge {
                digest: Digest::new(digest.as_str()),
                by: name.clone(),
                model: model.clone(),
                url: url.clone(),
                tokens: *tokens,
            })),
            ..bare(AskKind::Prompt, text)
        },
        DraftQuestion::Synthesis { text } => bare(AskKind::Synthesis, text),
        DraftQuestion::Choice { text, options } => {
            DraftAsk { options: options.clone(), ..bare(AskKind::Choice, text) }
        }
        DraftQuestion::Question { text } => bare(AskKind::Question, text),
    };
    let text = serde_json::to_string(&ask).map_err(|error| ServiceError::broken(error.to_string()))?;
    let digest =
        digest_of_text(&format!("{begun}\n{text}")).as_str().trim_start_matches("sha256:").to_owned();
    Ok(NewDraftAsk { slot: wanted.slot.clone(), digest, ask: Some(ask) })
}

/// Returns the answers to an ask of a draft, which has no run that could be ended or changed.
fn answers_of(kind: AskKind) -> &'static [&'static str] {
    match kind {
        AskKind::Prompt | AskKind::Synthesis => &["approve", "reject"],
        AskKind::Choice => &["choose"],
        AskKind::Question => &["answer"],
        AskKind::Plan
        | AskKind::Escalation
        | AskKind::Budget
        | AskKind::Insertion
        | AskKind::Effect
        | AskKind::Day => &[],
    }
}

/// Returns an answer with the option that it means, where it chooses one.
fn option_of(row: &DraftAskRow, answer: Answer) -> Result<Answer, ServiceError> {
    let Answer::Choose { option } = answer else { return Ok(answer) };
    let chosen = option_chosen(&options_of(row), &option).ok();
    let is_one = |option: &String| row.ask.options.is_empty() || row.ask.options.contains(option);
    match chosen.filter(|chosen| is_one(chosen) && !chosen.trim().is_empty()) {
        Some(option) => Ok(Answer::Choose { option }),
        None => Err(ServiceError::Conflict {
            what: format!("choose ask {}: {} is not one of its options", row.number, quoted(&option)),
            next: Next::ShowAsk { ask: row.number.unsigned_abs() },
        }),
    }
}

fn options_of(row: &DraftAskRow) -> Vec<OptionView> {
    let view = |name: &String| OptionView { name: name.clone(), node: None, number: None, title: None };
    row.ask.options.iter().map(view).collect()
}

/// Shows an ask of a draft in a list.
pub(crate) fn draft_ask_view(row: &DraftAskRow) -> AskView {
    let asks = asks_line(row);
    AskView {
        id: row.number.unsigned_abs(),
        kind: row.ask.kind.as_str().to_owned(),
        draft: Some(draft_name(&row.goal)),
        workspace: row.workspace_path.clone(),
        title: row.goal.clone(),
        about: asks.clone(),
        asks,
        reason: row.ask.kind.as_str().to_owned(),
        answers: answers_of(row.ask.kind).iter().map(ToString::to_string).collect(),
        options: row.ask.options.clone(),
        leads_to: options_of(row),
        deadline: row.deadline.as_ref().filter(|_| row.is_open).map(deadline_view),
        opened_at: moment(row.created_at),
        answer: row.answer.as_ref().map(|given| AnswerView {
            answer: given.answer.as_str().to_owned(),
            option: chosen(&given.answer),
            by: given.by.clone(),
            note: given.note.clone(),
            at: Some(moment(given.at)),
        }),
        ..AskView::default()
    }
}

fn chosen(answer: &Answer) -> Option<String> {
    if let Answer::Choose { option } = answer { Some(option.clone()) } else { None }
}

/// Names a draft by the beginning of its goal.
pub(crate) fn draft_name(goal: &str) -> String {
    let name: String = slug(&first_line(goal)).chars().take(DRAFT_NAME_CHARACTERS).collect();
    name.trim_end_matches('-').to_owned()
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_owned()
}

/// Says in one line what is asked.
fn asks_line(row: &DraftAskRow) -> String {
    match (row.ask.kind, row.ask.prompt.as_deref()) {
        (_, Some(prompt)) => {
            format!("about {} tokens to {} ({})", prompt.tokens, prompt.by, prompt.model)
        }
        (AskKind::Synthesis, None) => {
            format!("an agent may write it: {}", quoted(&first_line(&row.ask.text)))
        }
        (_, None) => quoted(&first_line(&row.ask.text)),
    }
}
