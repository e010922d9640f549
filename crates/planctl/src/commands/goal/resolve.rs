//! `planctl goal resolve` and `goal verify`: finds the tool for each intent, asks where that is unclear, and writes a plan of calls.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planctl_api::wire::draft_asks::DraftQuestion;
use planctl_api::wire::goal::GoalResolveView;
use planctl_engine::Budget;
use planctl_lang::library::Entry;
use planctl_lang::{Source as PlanSource, digest, slug};
use planctl_planner::{
    Action, Capability, Catalog, Decision, Intent, Mending, NextPiece, Outcome, Planned, PlannedStep, Prompt,
    Quest, QuestAsk, QuestAskKind, QuestEvent, QuestNext, Remembered, Resolver, Source, Spending, Tool,
    Unanswered, Verified, Went, key_of, planned, type_of, verified, write_plan,
};
use planctl_server::library::Library;
use serde::{Deserialize, Serialize};

use super::super::draft::allowance::{Allowance, Metered};
use super::super::draft::database::DraftDatabase;
use super::super::draft::inbox::{self, Inbox};
use super::super::draft::kept::Kept;
use super::super::draft::shown;
use super::super::draft::write_plan_file;
use super::super::draft::writer::{self, DraftWriter};
use super::super::{Context, editing, write};
use super::{
    break_up, capabilities, embeddings, learned, mend, no_pieces_failure, resolved, tool, writer_of,
};
use crate::args::{GoalVerifyArgs, ResolutionWord, ResolveArgs, StrategyWord};
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::model::{Model, named};
use crate::next;
use crate::plan_files;
use crate::show::{self, shell_word};
use crate::stop::Stop;

/// A goal that is being resolved, as it is kept.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// The searches for what no strategy found, by intent.
    quests: BTreeMap<String, Quest>,
    /// The steps as they were resolved last.
    pub(super) planned: Option<Planned>,
    /// The file that was written last, and its text.
    pub(super) written: Option<(PathBuf, String)>,
    /// The calls that failed in runs.
    #[serde(default)]
    pub(super) mending: Mending,
    /// Names this beginning: after `--again` the same question is asked anew.
    #[serde(default)]
    begun: String,
    /// The numbers of the questions that are in the inbox.
    #[serde(default)]
    asked: BTreeMap<String, u64>,
    /// The budget that the plan gets.
    #[serde(default)]
    budget: Option<String>,
    /// The usage of answers since the goal is in pieces.
    #[serde(default)]
    pub(super) spent: Spending,
    #[serde(default)]
    unanswered: Unanswered,
}

impl Metered for Record {
    fn spent(&self) -> Spending {
        self.spent.plus_unanswered(&self.unanswered)
    }

    fn unanswered_mut(&mut self) -> &mut Unanswered {
        &mut self.unanswered
    }
}

/// The writer that a goal asks, what it may use, and the prompt that may be sent to it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) goal: &'a str,
    pub(super) begun: &'a str,
    pub(super) writer: Option<&'a DraftWriter>,
    pub(super) send: Option<&'a str>,
    pub(super) budget: &'a Budget,
    /// The usage of breaking the goal up.
    pub(super) before: Spending,
}

impl Asked<'_> {
    /// Returns the account of one more answer.
    pub(super) fn allowance<'a>(
        &'a self,
        kept: &'a Kept<'a>,
        record: &'a mut Record,
    ) -> Allowance<'a, Record> {
        Allowance {
            budget: self.budget,
            before: self.before,
            prompt: self.send,
            inbox: Inbox::of(kept, self.begun, self.goal),
            record,
        }
    }

    /// Asks the writer for one answer; the caller stores it with its price.
    pub(super) async fn ask(
        &self,
        (kept, record): (&Kept<'_>, &mut Record),
        prompt: &Prompt,
        (does, no_writer): (&str, &str),
    ) -> Result<planctl_planner::Answer, Failure> {
        let Some(writer) = self.writer else {
            let failure = Failure::new(Exit::No, format!("{no_writer}, and none is named"));
            return Err(failure.help("name one: --model NAME, or --agent NAME"));
        };
        let context = kept.database.context();
        let name = writer.name().unwrap_or_default();
        context.say(&format!("{} {does} …", show::safe(&name)));
        let mut allowance = self.allowance(kept, record);
        let answer = writer.ask(context, prompt, &mut allowance, &mut Stop::listen()?).await?;
        record.spent.add(answer.tokens, answer.micro_usd);
        Ok(answer)
    }
}

/// Resolves a goal.
pub(super) async fn run(database: &DraftDatabase<'_>, args: &ResolveArgs) -> Answer {
    let context = database.context();
    let source = &args.source;
    if let Some(out) = &args.out {
        write::refuse_other_language(out, None)?;
    }
    let mut capabilities = capabilities(context, &source.tools).await?;
    let tools: Vec<Tool> = capabilities.iter().map(tool).collect();
    capabilities.push(Capability::ask_person());
    let catalog = Catalog::new(capabilities);
    let writer = writer_of(context, source)?;
    let embeds = |name| named::embedding(&context.config()?.config, name);
    let embedding = args.embeddings.as_deref().map(embeds).transpose()?;
    let models = writer.as_ref().and_then(DraftWriter::model).into_iter().chain(embedding.as_ref());
    let budget = writer::budget(source.budget.as_deref(), models)?;
    let breakdown =
        break_up(database, source, StrategyWord::Hybrid, &tools, (writer.as_ref(), &budget)).await?;
    let NextPiece::Done(pieces) = breakdown.next() else {
        return Err(no_pieces_failure(context, &breakdown)?);
    };
    let kept = lock_resolved(database, &source.goal)?;
    kept.take_newest().await?;
    let mut record = record_of(&kept, args, writer.as_ref()).await?;
    let history = learned::update_history(database).await?;
    apply_answers(database, &mut record, &source.goal, &args.answer).await?;
    kept.keep(&record, &source.goal).await?;
    let intents = &pieces.intents;
    let sources = sources(args.strategy);
    let library = plan_files::library(context);
    let entries: Vec<Entry> = library.found.iter().map(|found| found.entry.clone()).collect();
    let by_words =
        Resolver { catalog: &catalog, history: &history, sources, vectors: None, entries: &entries };
    let begun = record.begun.clone();
    let asked = Asked {
        goal: &source.goal,
        begun: &begun,
        writer: writer.as_ref(),
        send: source.send.as_deref(),
        budget: &budget,
        before: breakdown.spent(),
    };
    let vectors = match &embedding {
        Some(model) => embeddings::vectors((&kept, &mut record), model, &by_words, intents, asked).await?,
        None => None,
    };
    let resolver = Resolver { vectors: vectors.as_ref(), ..by_words };
    if let Some(run) = &args.repair {
        mend::hear(database, run, &mut record).await?;
        kept.keep(&record, &source.goal).await?;
        mend::mend((&kept, &mut record), &resolver, (intents.as_slice(), asked)).await?;
    }
    let planned = arranged((&kept, &mut record), intents, &resolver, asked).await?;
    let verified = verified(&planned, &catalog);
    let asks = asks(&planned, &record.quests);
    let is_open = !asks.is_empty();
    let file = match verified.outcome {
        Outcome::Invalid => None,
        Outcome::Ok | Outcome::Warning if only_entry(&planned).is_some() => None,
        Outcome::Ok | Outcome::Warning => {
            let files = files_of_plans(context, &library, &planned)?;
            let (file, text) = write_resolved(context, args, &record, &planned, &files)?;
            record_resolutions(database, &planned, intents, &text)?;
            record.written = Some((plan_files::in_workspace(context, &file), text));
            Some(file)
        }
    };
    record.planned = Some(planned.clone());
    kept.write(&record)?;
    ask_in_inbox(&kept, &mut record, &source.goal, &asks).await?;
    let spent = breakdown.spent().plus(record.spent());
    let questions = (asks.as_slice(), &record.asked);
    let mut view = resolved::view(&source.goal, &planned, &verified, questions, file.as_deref(), spent);
    if let (Some(run), Some(_)) = (&args.repair, &file) {
        let client = database.client().await?;
        view.revision = editing::offer_revision(context, client, run, args.approve).await?;
    }
    print_resolved(context, args, &view, only_entry(&planned))?;
    answer_of(verified.outcome, is_open)
}

/// Writes the plan into its file; returns both.
fn write_resolved(
    context: &Context,
    args: &ResolveArgs,
    record: &Record,
    planned: &Planned,
    files: &BTreeMap<String, String>,
) -> Result<(PathBuf, String), Failure> {
    let budget = record.budget.as_deref();
    let text = write_plan(&args.source.goal, &context.actor(), budget, planned, files);
    let seen = |(file, text): &(PathBuf, String)| (plan_files::path_from_here(context, file), text.clone());
    let written = record.written.as_ref().map(seen);
    let file = match (&args.out, &written) {
        (Some(out), _) => out.clone(),
        (None, Some((file, _))) => file.clone(),
        (None, None) => plan_files::in_folder(context, &slug(&args.source.goal)),
    };
    write_plan_file(context, &file, &text, written.as_ref())?;
    Ok((file, text))
}

/// Takes up what is kept of a goal, and its writer's questions with it.
async fn record_of(
    kept: &Kept<'_>,
    args: &ResolveArgs,
    writer: Option<&DraftWriter>,
) -> Result<Record, Failure> {
    let mut record = match args.source.again {
        true => begun_anew(kept, &args.source.goal, writer).await?,
        false => kept.read::<Record>()?.unwrap_or_default(),
    };
    if record.begun.is_empty() {
        record.begun = uuid::Uuid::now_v7().to_string();
    }
    if args.plan_budget.is_some() {
        record.budget.clone_from(&args.plan_budget);
    }
    Ok(record)
}

/// Puts the open questions into the inbox, and takes back those that are open no more.
async fn ask_in_inbox(
    kept: &Kept<'_>,
    record: &mut Record,
    goal: &str,
    asks: &[(String, QuestAsk)],
) -> Result<(), Failure> {
    let context = kept.database.context();
    // A question waits in the inbox where there is one; whether an agent may write something is decided there alone.
    let is_put =
        |ask: &QuestAsk| ask.kind == QuestAskKind::SynthesisApproval || Client::has_database(context);
    let put = asks.iter().filter(|(_, ask)| is_put(ask)).map(|(_, ask)| (ask.id.clone(), question(ask)));
    let inbox = Inbox::of(kept, &record.begun, goal);
    record.asked = inbox.put_questions(&record.asked, put.collect()).await?;
    kept.keep(&*record, goal).await
}

fn answer_of(outcome: Outcome, is_open: bool) -> Answer {
    match (outcome, is_open) {
        (Outcome::Ok | Outcome::Warning, _) => Ok(Exit::Yes),
        (Outcome::Invalid, true) => Ok(Exit::Waiting),
        (Outcome::Invalid, false) => {
            Err(Failure::new(Exit::No, "the goal can't be carried out as it was resolved")
                .help("say the missing part in the goal, or name tools that have it: --tools SERVER=FILE"))
        }
    }
}

/// Prints how a goal was resolved, and the command that makes the plan of the one entry that serves it.
fn print_resolved(
    context: &Context,
    args: &ResolveArgs,
    view: &GoalResolveView,
    entry: Option<&str>,
) -> Result<(), Failure> {
    if context.is_json()? {
        show::print_json(view)?;
    } else {
        let mut text = resolved::draw(view, args.source.explain, &command(&args.source.goal));
        if let Some(file) = &view.file {
            text.push_str(&match args.repair {
                Some(_) => shown::revision(view.revision.as_ref(), file),
                None => {
                    let servers = &context.config()?.config.servers;
                    resolved::next(view, file, |server| servers.contains_key(server))
                }
            });
        }
        show::print(&text)?;
    }
    if let (Some(entry), false) = (entry, context.is_json()?) {
        let command = format!("planctl new --from {}", shell_word(entry));
        context.say(&next::line(&command));
    }
    Ok(())
}

/// Takes the questions of an earlier beginning back, and forgets it but for the file that it wrote.
async fn begun_anew(kept: &Kept<'_>, goal: &str, writer: Option<&DraftWriter>) -> Result<Record, Failure> {
    // A record that does not read is forgotten, too.
    let earlier = kept.read::<Record>().ok().flatten().unwrap_or_default();
    let has_prompts = writer.and_then(DraftWriter::model).is_some_and(Model::asks_person);
    Inbox::of(kept, &earlier.begun, goal).take_back(&earlier.asked, has_prompts).await?;
    // The file is still the goal's own.
    Ok(Record { written: earlier.written, ..Record::default() })
}

/// Resolves the intents by what persons and writers decided so far, as long as a search comes to a decision.
async fn arranged(
    (kept, record): (&Kept<'_>, &mut Record),
    intents: &[Intent],
    resolver: &Resolver<'_>,
    asked: Asked<'_>,
) -> Result<Planned, Failure> {
    loop {
        let mut decided_so_far = decisions(&record.quests);
        decided_so_far.extend(record.mending.decisions());
        let decided = planned(intents, resolver, &decided_so_far);
        let mut is_new = false;
        for open in &decided.open {
            let known =
                record.quests.get(&open.intent.id).is_some_and(|quest| *quest.intent() == open.intent);
            if !known {
                record.quests.insert(open.intent.id.clone(), Quest::new(open));
            }
            // A person's answer counts, also where its consequence has to wait.
            kept.keep(&*record, asked.goal).await?;
            is_new |= search((kept, record), &open.intent.id, resolver, asked).await?;
            kept.keep(&*record, asked.goal).await?;
        }
        if !is_new {
            return Ok(decided);
        }
    }
}

/// Holds what was resolved to the tools that there are.
pub(super) async fn verify(database: &DraftDatabase<'_>, args: &GoalVerifyArgs) -> Answer {
    let context = database.context();
    let mut capabilities = capabilities(context, &args.tools).await?;
    capabilities.push(Capability::ask_person());
    let record = lock_resolved(database, &args.goal)?.read::<Record>()?;
    let Some(planned) = record.and_then(|record| record.planned) else {
        let failure = Failure::not_found("this goal was not resolved in this workspace");
        return Err(failure.next(command(&args.goal)));
    };
    let verified = verified(&planned, &Catalog::new(capabilities));
    let view = resolved::verify_view(&args.goal, &verified);
    if context.is_json()? {
        show::print_json(&view)?;
    } else {
        show::print(&resolved::verify_drawn(&view))?;
    }
    Ok(if verified.outcome == Outcome::Invalid { Exit::No } else { Exit::Yes })
}

fn lock_resolved<'a>(database: &'a DraftDatabase<'a>, goal: &str) -> Result<Kept<'a>, Failure> {
    let workspace = database.context().workspace().to_string_lossy().into_owned();
    Kept::lock(database, &["resolved", &workspace, goal.trim()])
}

fn sources(word: ResolutionWord) -> &'static [Source] {
    match word {
        ResolutionWord::Composite => &Source::ALL,
        ResolutionWord::Catalog => &[Source::Catalog],
        ResolutionWord::Mcp => &[Source::Mcp],
        ResolutionWord::Library => &[Source::Library],
        ResolutionWord::Semantic => &[Source::Semantic],
    }
}

/// Returns a question as the inbox has it.
fn question(ask: &QuestAsk) -> DraftQuestion {
    let (text, options) = (ask.text.clone(), ask.options.clone());
    match ask.kind {
        QuestAskKind::SynthesisApproval => DraftQuestion::Synthesis { text },
        QuestAskKind::Alternatives
        | QuestAskKind::Implementation
        | QuestAskKind::Discovery
        | QuestAskKind::Command
        | QuestAskKind::Hint => DraftQuestion::Choice { text, options },
    }
}

/// Tells the searches what people answered: at this command, and in the inbox.
async fn apply_answers(
    database: &DraftDatabase<'_>,
    record: &mut Record,
    goal: &str,
    answers: &[String],
) -> Result<(), Failure> {
    let given = inbox::parse_answers(answers, "write --answer ID=NUMBER, or ID=WORDS")?;
    let mut heard = inbox::answers(database, &record.asked, &given).await?;
    heard.extend(given.into_iter().filter(|(id, _)| !record.asked.contains_key(id)));
    let quests = &mut record.quests;
    for (id, text) in &heard {
        let quest = id.rsplit_once('-').and_then(|(intent, _)| quests.get_mut(intent));
        let unknown = || Failure::not_found(format!("there is no open question {}", show::safe(id)));
        let Some(quest) = quest else {
            // The goal's own command shows the questions that there are.
            return Err(unknown().next(command(goal)));
        };
        quest.take_answer(id, text).map_err(|open| match open.is_empty() {
            true => unknown().help("the intent is decided; --again begins from nothing"),
            false => unknown().help(format!("the open question is {open}")),
        })?;
        record.asked.remove(id);
    }
    Ok(())
}

/// Goes on with the search for an intent until a person has to answer; says whether it came to a decision.
async fn search(
    (kept, record): (&Kept<'_>, &mut Record),
    intent: &str,
    resolver: &Resolver<'_>,
    asked: Asked<'_>,
) -> Result<bool, Failure> {
    loop {
        let Some(quest) = record.quests.get_mut(intent) else { return Ok(false) };
        let prompt = match quest.next() {
            QuestNext::Discover(patterns) => {
                let found = resolver.discover(quest.intent(), &patterns);
                quest.apply_event(QuestEvent::Discovered(found));
                continue;
            }
            QuestNext::AskModel(prompt) => prompt,
            QuestNext::Decided(_) => return Ok(true),
            QuestNext::Ask(_) | QuestNext::GivenUp => return Ok(false),
        };
        let words = ("looks for another way", "a model is to be asked for alternatives");
        let answer = asked.ask((kept, record), &prompt, words).await?;
        if let Some(quest) = record.quests.get_mut(intent) {
            quest.apply_event(QuestEvent::Said(answer));
        }
        // An answer is stored before it is looked at.
        kept.keep(&*record, asked.goal).await?;
    }
}

fn decisions(quests: &BTreeMap<String, Quest>) -> BTreeMap<String, Decision> {
    let decided = quests.iter().filter_map(|(id, quest)| match quest.next() {
        QuestNext::Decided(decision) => Some((id.clone(), decision)),
        QuestNext::Discover(_) | QuestNext::Ask(_) | QuestNext::AskModel(_) | QuestNext::GivenUp => None,
    });
    decided.collect()
}

/// Returns the questions that are open, with their intents.
fn asks(planned: &Planned, quests: &BTreeMap<String, Quest>) -> Vec<(String, QuestAsk)> {
    let open = planned.open.iter().filter_map(|open| quests.get(&open.intent.id));
    let asked = open.filter_map(|quest| match quest.next() {
        QuestNext::Ask(ask) => Some((quest.intent().id.clone(), ask)),
        QuestNext::Discover(_) | QuestNext::AskModel(_) | QuestNext::Decided(_) | QuestNext::GivenUp => None,
    });
    asked.collect()
}

/// Returns the entry of the library that does all that a goal asks for; there is nothing to write beside it.
fn only_entry(planned: &Planned) -> Option<&str> {
    match planned.steps.as_slice() {
        [PlannedStep { action: Action::SubPlan { entry, .. }, .. }] => Some(entry),
        _ => None,
    }
}

/// Returns the file of each plan of the library that is a step. An entry that is not of this project becomes a file of it.
fn files_of_plans(
    context: &Context,
    library: &Library,
    planned: &Planned,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut files = BTreeMap::new();
    for step in &planned.steps {
        let Action::SubPlan { entry, .. } = &step.action else { continue };
        let file = super::super::library::file_of_entry(context, library, entry)?;
        let own = file.strip_prefix(context.workspace()).unwrap_or(&file);
        files.insert(entry.clone(), own.display().to_string());
    }
    Ok(files)
}

/// Remembers which capability was found for which intent, and the step of the plan that will show how it went.
fn record_resolutions(
    database: &DraftDatabase<'_>,
    planned: &Planned,
    intents: &[Intent],
    text: &str,
) -> Result<(), Failure> {
    let digest = digest(&PlanSource::new("plan.md", text)).to_string();
    let found = planned.steps.iter().enumerate().filter_map(|(at, step)| {
        let Action::Call(call) = &step.action else { return None };
        let intent = intents.iter().find(|own| own.id == step.id)?;
        Some(Remembered {
            key: key_of(intent),
            intent_type: type_of(intent),
            source: call.source,
            capability: call.capability.id(),
            went: Went::Unknown,
            step: Some((digest.clone(), u32::try_from(at + 1).unwrap_or(u32::MAX))),
        })
    });
    learned::change_history(database, |history| found.for_each(|one| history.remember(one))).map(drop)
}

fn command(goal: &str) -> String {
    format!("planctl goal resolve {}", shell_word(goal))
}

/// Returns the verdict's word.
pub(super) fn outcome(verified: &Verified) -> &'static str {
    match verified.outcome {
        Outcome::Ok => "ok",
        Outcome::Warning => "warning",
        Outcome::Invalid => "invalid",
    }
}
