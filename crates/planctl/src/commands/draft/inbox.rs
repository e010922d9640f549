//! The asks of a draft or a goal: they wait in the inbox beside those of runs, and the command goes on with what was answered there.

use std::collections::BTreeMap;

use planctl_api::wire::draft_asks::{DraftAskCall, DraftAsksCall, DraftQuestion};
use planctl_api::wire::{AnswerView, AskView, HeldPromptView};
use planctl_engine::Answer;

use super::database::DraftDatabase;
use super::kept::Kept;
use crate::client::Client;
use crate::commands::approvals::page::prompt_drawn;
use crate::commands::recorded::{recorded_exit, recorded_word};
use crate::context::Context;
use crate::decide;
use crate::failure::{Exit, Failure};
use crate::show;

/// The slot of the prompt that waits.
const PROMPT: &str = "prompt";

/// The place of a draft in the inbox.
#[derive(Clone, Copy)]
pub struct Inbox<'a> {
    pub(super) kept: &'a Kept<'a>,
    begun: &'a str,
    pub(super) goal: &'a str,
}

impl<'a> Inbox<'a> {
    /// Names the place of a draft: by where it is kept and when it began, and by its goal for people.
    pub fn of(kept: &'a Kept<'a>, begun: &'a str, goal: &'a str) -> Inbox<'a> {
        Inbox { kept, begun, goal }
    }

    async fn open(&self, client: &Client, asks: Vec<DraftAskCall>) -> Result<Vec<AskView>, Failure> {
        let (key, begun, goal) = (self.kept.key().to_owned(), self.begun.to_owned(), self.goal.to_owned());
        client.open_draft_asks(DraftAsksCall { place: client.place_call(), key, begun, goal, asks }).await
    }

    /// Makes sure that a person approves a prompt before it is sent (M-35): in the inbox, at this terminal, or beforehand by its
    /// digest. Each of these answers the same ask, so the first decides.
    pub async fn clear_prompt(&self, prompt: HeldPromptView, sent: Option<&str>) -> Result<(), Failure> {
        let (context, client) = (self.kept.database.context(), self.kept.database.client().await?);
        let question = DraftQuestion::Prompt {
            digest: prompt.digest.clone(),
            name: prompt.name.clone(),
            model: prompt.model.clone(),
            url: prompt.url.clone(),
            tokens: prompt.tokens,
            text: prompt.text.clone().unwrap_or_default(),
        };
        let asks = self.open(client, vec![call(PROMPT, Some(question))]).await?;
        let Some(ask) = asks.into_iter().next() else {
            return Err(Failure::new(Exit::Temporary, "the prompt was not asked about"));
        };
        let name = show::safe(&prompt.name);
        if let Some(answer) = &ask.answer {
            return go_on_after_prompt(&name, ask.id, answer);
        }
        if sent == Some(prompt.digest.as_str()) {
            return record_answer(context, client, ask.id, &Answer::Approve, None).await;
        }
        let drawn = prompt_drawn(&prompt);
        if context.is_json()? {
            context.tell(&drawn);
        } else {
            show::print(&drawn)?;
        }
        if context.is_interactive() {
            let question = format!("Send this prompt to {name} (ask {})?", ask.id);
            return match decide::choose(&question, &[('y', "es"), ('n', "ot yet")])? {
                'y' => record_answer(context, client, ask.id, &Answer::Approve, None).await,
                _ => Err(Failure::new(Exit::Cancelled, "nothing was sent").next(show_command(ask.id))),
            };
        }
        let message = match sent {
            Some(_) => format!("the prompt to {name} is another than the one that you approved"),
            None => format!("the prompt to {name} waits for your approval: ask {}", ask.id),
        };
        let help = format!("the same command with --send {} sends it, and no other", prompt.digest);
        Err(Failure::new(Exit::Waiting, message)
            .help(help)
            .page_help(format!("answer ask {}, then go on where it was", ask.id))
            .next(format!("planctl approvals approve {}", ask.id)))
    }

    /// Puts open questions into the inbox, each by the id that its draft knows it by, and takes back those of before that are open no
    /// more; returns the number of each.
    pub async fn put_questions(
        &self,
        before: &BTreeMap<String, u64>,
        questions: Vec<(String, DraftQuestion)>,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let is_open = |id: &String| questions.iter().any(|(open, _)| open == id);
        let over: Vec<DraftAskCall> =
            before.keys().filter(|id| !is_open(id)).map(|id| call(id, None)).collect();
        if questions.is_empty() && over.is_empty() {
            return Ok(BTreeMap::new());
        }
        let client = self.kept.database.client().await?;
        let ids: Vec<String> = questions.iter().map(|(id, _)| id.clone()).collect();
        let calls = questions.into_iter().map(|(id, question)| call(&id, Some(question)));
        let asks = self.open(client, calls.chain(over).collect()).await?;
        Ok(ids.into_iter().zip(asks).map(|(id, ask)| (id, ask.id)).collect())
    }
}

impl Inbox<'_> {
    /// Takes back what a draft asked before it began anew; prompts, where its models ask about them.
    pub async fn take_back(&self, asked: &BTreeMap<String, u64>, has_prompts: bool) -> Result<(), Failure> {
        let prompt = has_prompts.then_some(PROMPT);
        let slots: Vec<&str> = asked.keys().map(String::as_str).chain(prompt).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let client = self.kept.database.client().await?;
        self.open(client, slots.into_iter().map(|slot| call(slot, None)).collect()).await.map(drop)
    }
}

fn call(slot: &str, question: Option<DraftQuestion>) -> DraftAskCall {
    DraftAskCall { slot: slot.replace('/', "-"), question }
}

fn show_command(ask: u64) -> String {
    format!("planctl approvals show {ask}")
}

/// Goes on with the answer that a prompt got, or says why not.
fn go_on_after_prompt(name: &str, ask: u64, answer: &AnswerView) -> Result<(), Failure> {
    if answer.answer == Answer::Approve.as_str() {
        return Ok(());
    }
    let by = show::safe(&answer.by);
    let note = answer.note.as_deref().map(|note| format!(": {}", show::safe(note))).unwrap_or_default();
    let failure = Failure::new(Exit::No, format!("{by} rejected the prompt to {name} (ask {ask}){note}"));
    Err(failure
        .help("nothing was sent; --again starts over, with a new prompt")
        .page_help("nothing was sent; a draft that starts from scratch has a new prompt"))
}

async fn record_answer(
    context: &Context,
    client: &Client,
    ask: u64,
    answer: &Answer,
    note: Option<&str>,
) -> Result<(), Failure> {
    let decided = client.answer(ask, answer.clone(), note).await?;
    context.say(&recorded_word(&decided));
    if recorded_exit(&decided) == Exit::Waiting {
        let failure = Failure::new(Exit::Waiting, format!("ask {ask} waits for others, too"));
        return Err(failure.next(show_command(ask)));
    }
    Ok(())
}

/// Says what an answer to a question means to the goal that asked it.
fn answer_meaning(answer: &AnswerView) -> String {
    match (answer.answer.as_str(), &answer.option) {
        ("approve", _) => "Yes".to_owned(),
        ("reject", _) => "No".to_owned(),
        (_, Some(option)) => option.clone(),
        (_, None) => answer.note.clone().unwrap_or_default(),
    }
}

/// Answers questions that are in the inbox, as the person said at the command, and returns all that are answered by now, in words.
pub async fn answers(
    database: &DraftDatabase<'_>,
    numbers: &BTreeMap<String, u64>,
    given: &[(String, String)],
) -> Result<Vec<(String, String)>, Failure> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let (context, client) = (database.context(), database.client().await?);
    let mut found = Vec::new();
    for (own, number) in numbers {
        let mut ask = client.ask(*number).await?.ask;
        if let Some((_, text)) = given.iter().find(|(id, _)| id == own) {
            let (answer, note) = answer_meant(&ask, text);
            record_answer(context, client, *number, &answer, note).await?;
            ask = client.ask(*number).await?.ask;
        }
        found.extend(ask.answer.as_ref().map(|answer| (own.clone(), answer_meaning(answer))));
    }
    Ok(found)
}

/// Reads an answer to a question of this kind, and the note that it has.
fn answer_meant<'t>(ask: &AskView, text: &'t str) -> (Answer, Option<&'t str>) {
    let lower = text.trim().to_lowercase();
    match ask.kind.as_str() {
        "synthesis" if lower == "1" || (!lower.is_empty() && "yes".starts_with(&lower)) => {
            (Answer::Approve, None)
        }
        "synthesis" => (Answer::Reject, Some(text)),
        "question" => (Answer::Reply, Some(text)),
        _ => (Answer::Choose { option: text.to_owned() }, None),
    }
}

/// Reads `ID=TEXT` as it is typed after `--answer`.
pub fn parse_answers(answers: &[String], form: &str) -> Result<Vec<(String, String)>, Failure> {
    let read = |answer: &String| match answer.split_once('=') {
        Some((id, text)) => Ok((id.to_owned(), text.to_owned())),
        None => Err(Failure::usage(format!("`{}` is not an answer", show::safe(answer))).help(form)),
    };
    answers.iter().map(read).collect()
}
