//! `planctl plan draft`: a goal becomes a draft whose contracts were tried. It asks, verifies and tries; it approves and runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use planctl_api::wire::RunState;
use planctl_api::wire::draft::{DraftState, DraftView, EstimateView};
use planctl_api::wire::draft_asks::DraftQuestion;
use planctl_config::prices_known;
use planctl_engine::Budget;
use planctl_harness::ReplicaLimits;
use planctl_lang::library::{Entry, Matcher, Question, best};
use planctl_lang::workflow::Language;
use planctl_lang::{PLAN_BYTES_MAX, Source, parse, slug};
use planctl_planner::{
    Answer, Asked, Brief, Conversation, Draft, Estimate, GiveUp, Goal, Limits, Looked, Next, PastRuns,
    PatternFacts, Prompt, Proposal, Spending, Unanswered, draft_by_pattern, draft_of_entry, estimate,
    named_files,
};
use planctl_server::library::FOLDER;

use self::allowance::{Allowance, Metered};
use self::database::DraftDatabase;
use self::inbox::Inbox;
use self::kept::{Kept, Record};
use self::writer::DraftWriter;
use super::{Context, editing, write};
use crate::args::DraftArgs;
use crate::checking::Prober;
use crate::client::{Client, NoAnswer};
use crate::failure::{Answer as Ended, Exit, Failure};
use crate::flags::Format;
use crate::model::{Model, named};
use crate::person::must_be_human;
use crate::plan_files;
use crate::show::{self, shell_word};
use crate::stop::Stop;

pub(super) mod allowance;
pub(super) mod database;
pub(super) mod failed;
pub(super) mod inbox;
pub(super) mod kept;
pub(super) mod of_page;
mod shared;
pub(super) mod shown;
mod surroundings;
pub(super) mod writer;

/// Drafts a plan, or goes on with a draft.
pub async fn run(context: &Context, args: &DraftArgs) -> Ended {
    must_be_human("draft a plan")?;
    context.format(&[Format::Human, Format::Json])?;
    let database = DraftDatabase::of(context);
    let source = args.from.as_deref().map(source).transpose()?;
    let drafted =
        Drafting::begin(&database, args, source).await?.run_conversation(&mut Stop::listen()?).await?;
    if context.is_json()? {
        show::print_json(&drafted.view)?;
    } else if drafted.view.state == DraftState::GivenUp {
        show::print(&shown::findings(&drafted.view))?;
    } else {
        show::print(&shown::draw(&drafted.view, &drafted.command))?;
    }
    drafted.ended
}

/// The result of a draft, and how its command ends.
struct Drafted {
    view: DraftView,
    /// The command that goes on with it.
    command: String,
    ended: Ended,
}

/// One draft under way.
struct Drafting<'a> {
    context: &'a Context,
    database: &'a DraftDatabase<'a>,
    args: &'a DraftArgs,
    writer: DraftWriter,
    reviewer: Option<Model>,
    budget: Budget,
    kept: Kept<'a>,
    record: Record,
    facts: PatternFacts,
    /// Where its plan is written; empty is the current directory.
    folder: PathBuf,
}

impl<'a> Drafting<'a> {
    async fn begin(
        database: &'a DraftDatabase<'a>,
        args: &'a DraftArgs,
        source: Option<(String, String)>,
    ) -> Result<Drafting<'a>, Failure> {
        let context = database.context();
        let config = &context.config()?.config;
        if let Some(out) = &args.out {
            write::refuse_other_language(out, None)?;
        }
        let text = args.goal.clone().unwrap_or_default();
        let named = source.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let goal = Goal::read(&text, named);
        if goal.text.is_empty() {
            return Err(empty_goal());
        }
        if goal.left_out > 0 {
            let all = goal.requirements.len() + goal.left_out;
            return Err(Failure::new(
                Exit::No,
                format!("the goal has {all} requirements, too many for one plan"),
            )
            .help("split it, and draft a plan for each part"));
        }
        let writer = writer_of(context, args)?;
        let reviewer = args.reviewer.as_deref().map(|name| named::answering(config, name)).transpose()?;
        let models = writer.model().into_iter().chain(reviewer.as_ref());
        let budget = writer::budget(args.budget.as_deref(), models)?;
        let workspace = context.workspace().to_string_lossy().into_owned();
        let (name, content) = named.unwrap_or_default();
        let reads = args.reviewer.as_deref().unwrap_or_default();
        let parts = [workspace.as_str(), &text, name, content, &writer.key(), reads];
        let kept = Kept::lock(database, &parts)?;
        let (workspace, facts) = surroundings::survey_workspace(context.workspace(), config);
        kept.take_newest().await?;
        let (earlier, written) = match args.again {
            true => {
                let models = [writer.model(), reviewer.as_ref()];
                let has_prompts = models.into_iter().flatten().any(Model::asks_person);
                (None, begin_anew(&kept, has_prompts).await?)
            }
            false => (kept.read::<Record>()?, None),
        };
        let earlier = earlier.map(|mut record| {
            record.conversation.set_workspace(workspace.clone());
            if let Some(budget) = &args.plan_budget {
                record.conversation.set_budget(budget.clone());
            }
            record
        });
        let record = earlier.unwrap_or_else(|| Record {
            conversation: Conversation::new(Brief {
                goal,
                workspace,
                owner: context.actor(),
                budget: args.plan_budget.clone(),
                has_reviewer: args.reviewer.is_some(),
                limits: Limits::default(),
                key: uuid::Uuid::now_v7().to_string(),
            }),
            written,
            asked: BTreeMap::new(),
        });
        let folder = PathBuf::new();
        Ok(Drafting { context, database, args, writer, reviewer, budget, kept, record, facts, folder })
    }

    async fn run_conversation(mut self, stop: &mut Stop) -> Result<Drafted, Failure> {
        self.hear_answers().await?;
        self.apply_person_input()?;
        if let Some(run) = &self.args.repair {
            failed::record_failed_run(self.database, run, &mut self.record).await?;
        }
        self.keep().await?;
        let prober = Prober::stopped_by(stop.clone(), self.context, ReplicaLimits::default(), |_| ())?;
        loop {
            match self.record.conversation.next() {
                Next::Ask { who, prompt } => {
                    let answer = self.ask(who, &prompt, stop).await?;
                    self.record.conversation.apply_answer(who, answer);
                    self.keep().await?;
                }
                Next::Verify { text } => {
                    self.verify(&prober, &text).await?;
                    self.kept.write(&self.record)?;
                }
                Next::Done(draft) => return self.finish_draft(&draft).await,
                Next::GiveUp(end) => return self.report_give_up(&end),
            }
        }
    }

    /// Stores the draft here, then in the database, where there is one.
    async fn keep(&self) -> Result<(), Failure> {
        self.kept.keep(&self.record, &self.record.conversation.brief().goal.text).await
    }

    /// Tells the conversation what people answered: at this command, and in the inbox.
    async fn hear_answers(&mut self) -> Result<(), Failure> {
        let given = inbox::parse_answers(&self.args.answer, "write --answer Q1='…'")?;
        let mut heard = inbox::answers(self.database, &self.record.asked, &given).await?;
        heard.extend(given.into_iter().filter(|(id, _)| !self.record.asked.contains_key(id)));
        for (id, text) in &heard {
            let answered = self.record.conversation.answer_question(id, text);
            answered.map_err(|known| unknown("question", id, &known))?;
            self.record.asked.remove(id);
        }
        Ok(())
    }

    /// Puts the questions of a draft into the inbox, where there is a database.
    async fn ask_questions(&mut self, draft: &Draft) -> Result<(), Failure> {
        if !Client::has_database(self.context) {
            return Ok(());
        }
        let questions = draft.questions.iter().map(|(id, question)| {
            let text = match question.options.as_slice() {
                [] => question.text.clone(),
                options => format!("{}\n\n{}", question.text, options.join("\n")),
            };
            (id.clone(), DraftQuestion::Question { text })
        });
        let asked = self.inbox().put_questions(&self.record.asked, questions.collect()).await?;
        self.record.asked = asked;
        self.kept.write(&self.record)
    }

    fn inbox(&self) -> Inbox<'_> {
        let brief = self.record.conversation.brief();
        Inbox::of(&self.kept, &brief.key, &brief.goal.text)
    }

    /// Tells the conversation what the person said on the command line.
    fn apply_person_input(&mut self) -> Result<(), Failure> {
        let conversation = &mut self.record.conversation;
        // A pattern writes once.
        let rounds = if matches!(self.writer, DraftWriter::Pattern) { 1 } else { self.args.rounds };
        conversation.set_limits(Limits { rounds });
        for id in &self.args.without {
            conversation.take_out(id).map_err(|known| unknown("requirement", id, &known))?;
        }
        if let Some(hint) = &self.args.hint {
            if conversation.rounds().is_empty() {
                return Err(Failure::usage("there is no draft yet that a hint could be about")
                    .help("say it in the goal, or draft first with the same goal and writer"));
            }
            conversation.apply_hint(hint);
        }
        Ok(())
    }

    /// Asks the one whose answer comes next.
    async fn ask(&mut self, who: Asked, prompt: &Prompt, stop: &mut Stop) -> Result<Answer, Failure> {
        let rounds = self.record.conversation.rounds().len();
        match (who, &self.reviewer, self.writer.name()) {
            (Asked::Writer, _, Some(name)) => {
                let verb = if rounds == 0 { "drafts" } else { "drafts again, with what was found" };
                self.context.say(&format!("{} {verb} …", show::safe(&name)));
            }
            (Asked::Writer, _, None) if rounds == 0 => return self.by_pattern(),
            (Asked::Writer, _, None) => {
                return Err(self.no_writer("the form of the goal gives no other plan".to_owned()));
            }
            (Asked::Reviewer, Some(model), _) => {
                self.context.say(&format!("{} reads the draft …", show::safe(model.name())));
            }
            // A record of a draft with a reviewer has its own place.
            (Asked::Reviewer, None, _) => return Ok(Answer::new("{\"verdict\": \"ok\"}")),
        }
        let brief = self.record.conversation.brief();
        let (begun, goal) = (brief.key.clone(), brief.goal.text.clone());
        let mut allowance = Allowance {
            budget: &self.budget,
            before: Spending::default(),
            prompt: self.args.send.as_deref(),
            inbox: Inbox::of(&self.kept, &begun, &goal),
            record: &mut self.record,
        };
        match (who, &self.reviewer) {
            (Asked::Reviewer, Some(model)) => {
                writer::ask_model(self.context, model, prompt, &mut allowance, stop).await
            }
            (Asked::Writer, _) | (Asked::Reviewer, None) => {
                self.writer.ask(self.context, prompt, &mut allowance, stop).await
            }
        }
    }

    fn by_pattern(&self) -> Result<Answer, Failure> {
        let goal = &self.record.conversation.brief().goal;
        match draft_by_pattern(goal, &self.facts) {
            Ok(matched) => written_by_form(&matched.proposal),
            Err(deferral) => {
                let entry = if deferral.signals.is_empty() { self.entry() } else { None };
                if let Some((name, proposal)) = entry {
                    let Some(proposal) = proposal else {
                        let why =
                            format!("the entry {name} of the library fits, and is more than a list of steps");
                        let command = format!("planctl new --from {}", shell_word(&name));
                        let failure = self.no_writer(why);
                        return Err(failure.page_help(format!("in a terminal: {command}")).next(command));
                    };
                    return written_by_form(&proposal);
                }
                let signals = deferral.signals.iter().map(|signal| signal.describe().to_owned());
                let reasons: Vec<String> = signals.chain(deferral.reasons).collect();
                Err(self.no_writer(reasons.join("; ")))
            }
        }
    }

    /// Finds the entry of the library that the goal calls for, and what it gives, where it is a list of steps.
    fn entry(&self) -> Option<(String, Option<Proposal>)> {
        let goal = &self.record.conversation.brief().goal;
        let library = plan_files::library(self.context);
        let entries: Vec<Entry> = library.found.iter().map(|found| found.entry.clone()).collect();
        let question = Question { message: &goal.text, domain: None, allowed: None, matcher: Matcher::Words };
        let id = best(&entries, &question)?.entry.id.clone();
        let found = library.entry(&id)?;
        let is_markdown = Language::of(found.source.path()).is_none();
        let proposal = is_markdown.then(|| draft_of_entry(&id, &parse(&found.source).0, goal)).flatten();
        Some((id, proposal))
    }

    /// Says which writers there are, where a pattern does not suffice.
    fn no_writer(&self, why: String) -> Failure {
        let message = format!("could not draft this without a model: {}", show::safe(&why));
        let config = self.context.config().map(|loaded| &loaded.config);
        let offered = config.map(writer::configured_models).unwrap_or_default();
        let command = self.command(None);
        match offered.first() {
            Some(first) => Failure::new(Exit::No, message)
                .help(format!("name a writer: {}", offered.join(", ")))
                .page_help("choose a writer")
                .next(format!("{command} {first}")),
            None => Failure::new(Exit::No, message).help(
                "install an agent (claude, codex, gemini, opencode, aider), name a command (--agent exec:CMD), or set \
                 [models.NAME] in planctl.toml with api, url, model and key_env",
            )
            .page_help(
                "on the daemon's host, install an agent (claude, codex, gemini, opencode, aider), or set [models.NAME] in \
                 planctl.toml with api, url, model and key_env; then choose that writer here",
            ),
        }
    }

    async fn verify(&mut self, prober: &Prober, text: &str) -> Result<(), Failure> {
        self.context.say("verifying, and trying every contract in a copy of the workspace …");
        let path = format!("plans/{}.md", slug("draft"));
        let checked = prober.check_text(self.context, &path, Source::new(&path, text)).await?;
        let named = named_files(&checked.verification);
        let missing: BTreeSet<String> = named
            .into_iter()
            .filter(|path| self.context.workspace().join(path).symlink_metadata().is_err())
            .collect();
        self.record.conversation.apply_verification(Looked {
            verification: &checked.verification,
            trials: &checked.trials,
            missing: &missing,
        });
        Ok(())
    }

    async fn finish_draft(mut self, draft: &Draft) -> Result<Drafted, Failure> {
        let is_of_page = !self.folder.as_os_str().is_empty();
        let seen = |file: &Path| match is_of_page {
            true => self.folder.join(file),
            false => plan_files::path_from_here(self.context, file),
        };
        let written = self.record.written.as_ref().map(|(file, text)| (seen(file), text.clone()));
        let file = match (&self.args.out, &written) {
            (Some(out), _) => self.folder.join(out),
            (None, Some((file, _))) => file.clone(),
            (None, None) if is_of_page => self.folder.join(FOLDER).join(format!("{}.md", slug(&draft.title))),
            (None, None) => plan_files::in_folder(self.context, &slug(&draft.title)),
        };
        write_plan_file(self.context, &file, &draft.text, written.as_ref())?;
        self.record.written = Some((plan_files::in_workspace(self.context, &file), draft.text.clone()));
        self.kept.write(&self.record)?;
        self.ask_questions(draft).await?;
        self.keep().await?;
        let steps = u64::try_from(draft.steps).unwrap_or(u64::MAX);
        let estimate = self.estimate(steps).await?;
        let view = shown::view(&self.record.conversation, &self.writer, &draft.findings);
        let mut view = shown::with_draft(view, draft, &file);
        view.estimate = Some(self.estimate_view(estimate)?);
        for question in &mut view.questions {
            question.ask = self.record.asked.get(&question.id).copied();
        }
        if let Some(run) = self.args.repair.as_deref().filter(|_| draft.questions.is_empty()) {
            let client = self.database.client().await?;
            view.revision = editing::offer_revision(self.context, client, run, self.args.approve).await?;
        }
        let command = self.command(self.args.out.as_deref());
        Ok(Drafted {
            view,
            command,
            ended: Ok(if draft.questions.is_empty() { Exit::Yes } else { Exit::Waiting }),
        })
    }

    fn report_give_up(self, end: &GiveUp) -> Result<Drafted, Failure> {
        let view = shown::view(&self.record.conversation, &self.writer, &end.findings);
        let answers = if end.rounds == 1 { "1 answer".to_owned() } else { format!("{} answers", end.rounds) };
        let mut failure =
            Failure::new(Exit::No, format!("no draft was written: {answers}, and the last has errors"));
        if let Some(text) = &end.text {
            let path = self.kept.write_refused(text)?;
            let path = path.display();
            let on_page = format!("say below what should be different; the last text is in {path} there");
            failure = failure.help(format!("the last text is in {path}")).page_help(on_page);
        }
        let command = self.command(self.args.out.as_deref());
        let failure = match self.writer {
            DraftWriter::Pattern => {
                self.no_writer("the contract that its form gives proves nothing here".to_owned())
            }
            DraftWriter::Model(_) | DraftWriter::Agent(..) => failure.next(format!("{command} --hint '…'")),
        };
        Ok(Drafted { view, command, ended: Err(failure) })
    }

    async fn estimate(&self, steps: u64) -> Result<Estimate, Failure> {
        let past = past_runs(self.database).await;
        // A million tokens of a coding agent are read for the most part: four in five, as measured runs have it.
        let price = self.context.config()?.config.usual_price();
        let price = price.map(|(_, price)| (price.input * 4 + price.output) / 5);
        Ok(estimate(steps, past, price))
    }

    /// Returns the estimate as people see it, with the price that its money rests on.
    fn estimate_view(&self, estimate: Estimate) -> Result<EstimateView, Failure> {
        let config = &self.context.config()?.config;
        let by_price = config.usual_price().filter(|_| estimate.is_by_price).map(|(model, _)| {
            let known = if config.prices.contains_key(&model) {
                String::new()
            } else {
                format!(" {}", prices_known())
            };
            format!("{model}{known}")
        });
        Ok(shown::estimate_view(estimate, by_price))
    }

    /// Returns the command that goes on with this draft.
    fn command(&self, out: Option<&Path>) -> String {
        let mut words = vec!["planctl plan draft".to_owned()];
        words.extend(self.args.goal.as_deref().map(shell_word));
        let path = |flag: &str, path: &Path| format!("{flag} {}", show::file_word(path));
        words.extend(self.args.from.as_deref().map(|from| path("--from", from)));
        words.extend(
            self.args.agent.as_ref().map(|agent| format!("--agent {}", shell_word(&agent.to_string()))),
        );
        words.extend(self.args.model.as_deref().map(|model| format!("--model {}", shell_word(model))));
        words.extend(self.args.reviewer.as_deref().map(|model| format!("--reviewer {}", shell_word(model))));
        words.extend(out.map(|out| path("--out", out)));
        words.join(" ")
    }
}

/// Says that a goal has no word.
pub(super) fn empty_goal() -> Failure {
    Failure::usage("the goal is empty").help("say what is to be reached, in your words")
}

impl Metered for Record {
    fn spent(&self) -> Spending {
        self.conversation.spent()
    }

    fn unanswered_mut(&mut self) -> &mut Unanswered {
        self.conversation.unanswered_mut()
    }
}

/// Writes a plan's file. One that was written before is replaced as long as nobody changed it.
pub(super) fn write_plan_file(
    context: &Context,
    file: &Path,
    text: &str,
    before: Option<&(PathBuf, String)>,
) -> Result<(), Failure> {
    let found = std::fs::read_to_string(file).ok();
    let says_the_same = |one: &str, other: &str| {
        let digest = |text: &str| planctl_lang::digest(&Source::new("plan.md", text));
        digest(one) == digest(other)
    };
    // The marks of a run are no change of the plan.
    if let Some(found) = &found
        && says_the_same(found, text)
    {
        return Ok(());
    }
    if let (Some(found), Some((written, old))) = (&found, before)
        && written.canonicalize().is_ok_and(|written| file.canonicalize().is_ok_and(|file| file == written))
        && says_the_same(found, old)
    {
        return write::replace(context, file, found, text);
    }
    write::create_plan(file, text, None).map_err(|failure| {
        if failure.exit != Exit::Conflict {
            return failure;
        }
        failure
            .help("name another file: --out FILE")
            .page_help("move that file, or name another in a terminal: planctl plan draft 'GOAL' --out FILE")
    })
}

fn written_by_form(proposal: &Proposal) -> Result<Answer, Failure> {
    let text = serde_json::to_string(proposal)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not write the draft: {error}")))?;
    Ok(Answer::new(&text))
}

fn unknown(what: &str, id: &str, known: &[String]) -> Failure {
    let message = format!("the draft has no {what} {}", show::safe(id));
    let help = match known {
        [] => format!("it has no {what}s"),
        known => format!("it has {}", known.join(", ")),
    };
    Failure::not_found(message).help(help)
}

/// Reads the text that a goal comes from.
fn source(path: &Path) -> Result<(String, String), Failure> {
    let name = show::safe(&path.display().to_string());
    if name.contains("://") {
        return Err(Failure::usage(format!("{name} is an address, and planctl fetches nothing"))
            .help("save the page as a file, or hand it in on standard input: --from -"));
    }
    let most = u64::try_from(PLAN_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::of_io(format!("read {name}"), &error))?;
    if bytes.len() > PLAN_BYTES_MAX {
        return Err(Failure::new(Exit::No, format!("could not read {name}: it is larger than 1 MiB")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Exit::No, format!("could not read {name}: it is not text in UTF-8")))?;
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    Ok((name, text))
}

/// Takes the asks of an earlier beginning back; prompts, where its models ask about them. Returns the file that it wrote, which is
/// still the draft's own.
async fn begin_anew(kept: &Kept<'_>, has_prompts: bool) -> Result<Option<(PathBuf, String)>, Failure> {
    // A record that does not read is forgotten, too.
    let Some(earlier) = kept.read::<Record>().ok().flatten() else { return Ok(None) };
    let brief = earlier.conversation.brief();
    let inbox = Inbox::of(kept, &brief.key, &brief.goal.text);
    inbox.take_back(&earlier.asked, has_prompts).await?;
    Ok(earlier.written)
}

fn writer_of(context: &Context, args: &DraftArgs) -> Result<DraftWriter, Failure> {
    if let Some(agent) = &args.agent {
        writer::checked(agent)?;
        return Ok(DraftWriter::Agent(agent.clone(), args.within));
    }
    match &args.model {
        Some(name) => {
            named::answering(&context.config()?.config, name).map(|model| DraftWriter::Model(Box::new(model)))
        }
        None => Ok(DraftWriter::Pattern),
    }
}

/// Adds up what ended runs of this workspace took, where there is a database.
async fn past_runs(database: &DraftDatabase<'_>) -> Option<PastRuns> {
    let list = match database.ask_if_there_is_one(async |client| client.list(false).await).await {
        Ok(list) => list?,
        Err(NoAnswer) => {
            let says = "warning: the database does not answer, so the estimate rests on a default";
            database.context().say(says);
            return None;
        }
    };
    let mut past = PastRuns::default();
    for run in list.runs.iter().filter(|run| run.state == RunState::Done) {
        past.runs += 1;
        past.steps += u64::from(run.steps_settled);
        past.tokens = past.tokens.saturating_add(run.spent.tokens);
        past.seconds = past.seconds.saturating_add(run.spent.seconds.ceil() as u64);
        if run.spent.usd > 0.0 {
            let micro = (run.spent.usd * 1e6).round() as u64;
            past.micro_usd = Some(past.micro_usd.unwrap_or(0).saturating_add(micro));
        }
    }
    Some(past)
}
