//! `planctl run`, `resume` and `watch`: a run worked on or followed until it ends or needs a person.

pub(super) mod approval;
pub(super) mod end;

use std::path::Path;

use planctl_api::wire::calls::{Approving, Start};
use planctl_api::wire::{HolderView, RunView, WaitingOn};
use planctl_config::{Agent, Isolation};
use planctl_engine::Tier;
use planctl_harness::{Offered, Spawner, probe_isolation};
use planctl_lang::Code;
use planctl_lang::workflow::{Kind, NodeTree};
use planctl_server::check::Checked;

use super::answer_prompt::{AnswerPrompt, open_asks};
use super::plan::not_verified;
use super::standing::{command_to_run_again, exit_of, follow_up_command};
use super::work::{
    LOOK, Manner, Shown, Waits, Work, answer_choices, print_new_events, report_gone_daemon, waiting_line,
    work,
};
use super::{Context, guide, library, recheck, verify};
use crate::attention::Attention;
use crate::checking;
use crate::client::{self, Client, Handle, How};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::plan_files;
use crate::progress::{CtrlC, Progress};
use crate::show::{self, BOLD, CARE, shell_word, styled};
use crate::stop::Stop;
use crate::terminal;

use approval::{approval, changed_plan_failure, say_refusals};
use end::{print_end, worktree_lines};

/// The options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The person approves the plan as it stands.
    pub approve: Option<Approving>,
    /// A new run, also of a plan that is done.
    pub again: bool,
    /// The agent that serves every role.
    pub worker: Option<Agent>,
    /// Whether to end when a person is needed.
    pub no_wait: bool,
    /// Whether to leave the run to a daemon.
    pub detach: bool,
    /// Whether to answer by itself what the plan asks.
    pub auto_answer: bool,
}

/// Runs a plan, or takes it up.
pub async fn run(context: &Context, file: &Path, wish: Wish) -> Answer {
    let file = &plan_files::plan_file_named(context, file)?;
    let manner = manner(context)?;
    let checked =
        checking::check(context, file, wish.worker.as_ref(), &planctl_lang::Levels::default()).await?;
    if !checked.verification.is_verified() && !is_taken_up(context, &checked, wish.again).await? {
        show::say(verify::findings(&checked, context.is_quiet()).trim_end());
        return Err(not_verified(file, &checked));
    }
    let tier = isolation(context).await?;
    let client = Client::open(context).await?;
    if wish.detach && !client.is_daemon() {
        return Err(Failure::new(
            Exit::Unavailable,
            "could not detach: no daemon runs that would go on with it",
        )
        .next("planctl daemon start"));
    }
    context.say_findings(&client.topic_findings(&checked).await?);
    let served = served_roles(&client, &checked, &wish).await?;
    context.say_findings(&verify::warnings(&checked, &served));
    context.say_findings(&verify::allowed(&checked));
    let Some(approve) = approval(context, &client, &checked, &wish).await? else {
        context.say("not approved; nothing ran");
        return Ok(Exit::Cancelled);
    };
    let mut stop = Stop::listen()?;
    let auto_answer = wish.auto_answer;
    if auto_answer {
        context.say_findings(&unjudged_steps_words(&checked));
    }
    let is_guided = wish.worker == Some(Agent::Session);
    let is_approved_here = approve.is_some();
    let start = Start { worker: wish.worker, approve, again: wish.again, auto_answer, ..Start::default() };
    guide::suspend_guards(context, &client).await?;
    let started = until_stopped(&mut stop, client.start(&checked, &start)).await?;
    match started.map_err(stopped_before)? {
        How::Ready { handle, run, is_taken_up } => {
            let verb = if is_taken_up { "taken up" } else { "run" };
            let title = checked.verification.graph.as_ref().map_or("", |graph| graph.title());
            let (run, isolation) = (styled(BOLD, &show::safe(&run)), isolation_words(context, tier)?);
            context.say(&format!("{verb} {run} · {}{isolation}", show::safe(title)));
            let view = client.status(handle).await?;
            let unbegun = (is_taken_up && wish.again).then(|| not_over_words(&view));
            context.say_findings(&unbegun.unwrap_or_default());
            let is_begun_by_this = !is_taken_up && !is_approved_here;
            if let Some(line) = approved_line(&view, is_begun_by_this.then(|| name(file))) {
                context.say(&styled(CARE, &line));
            }
            if let Some(worktree) = &view.worktree {
                context.say(&worktree_lines(worktree, is_taken_up));
            }
            if is_guided {
                return guide::hold_sessions(context, client, handle).await;
            }
            if wish.detach {
                return status_at_once(context, &client, handle, manner).await;
            }
            let since = (!is_taken_up).then_some(0);
            let call = context.config()?.config.terminal_call;
            let how = Work { no_wait: wish.no_wait, manner, since, answers: auto_answer, call };
            work_to_the_end(context, client, handle, how, stop).await
        }
        How::AlreadyDone { run } => {
            context.say(&format!("{} is done already: {}", name(file), show::safe(&run)));
            let view = client.status(client.find(&run).await?).await?;
            context.say(&next::line(&command_again(&view, start.worker.as_ref())));
            Ok(Exit::Yes)
        }
        How::NeedsApproval { run, ask, no_policy } => {
            context.say(&format!("{} waits for approval: {}", show::safe(&run), name(file)));
            say_refusals(&no_policy);
            context.say(&next::line(&format!("planctl approvals show {ask}")));
            Ok(Exit::Waiting)
        }
        How::ChangedSinceApproval { approved_text, run } => {
            Err(changed_plan_failure(file, &checked, &approved_text, run.as_deref())?)
        }
    }
}

/// Returns the roles that somebody serves although planctl.toml does not say so, where a finding misses a worker.
async fn served_roles(client: &Client, checked: &Checked, wish: &Wish) -> Result<Vec<String>, Failure> {
    let mut found = checked.verification.diagnostics.iter();
    let is_missed = found.any(|found| matches!(found.code, Code::P401 | Code::P402));
    if wish.worker.is_some() || !is_missed {
        return Ok(Vec::new());
    }
    Ok(client.plan_standing(checked, None, wish.again).await?.served)
}

fn command_again(view: &RunView, named: Option<&Agent>) -> String {
    match named {
        Some(Agent::Session) => {
            format!("planctl guide on --again {}", next::plan_word(&view.plan, &view.workspace))
        }
        Some(Agent::Exec(_) | Agent::Known { .. }) | None => command_to_run_again(view, named),
    }
}

/// Says by whose approval a run goes on that nobody was asked about at this command: a policy's, or one that a person gave
/// to this text before, which serves until they take it back.
fn approved_line(view: &RunView, begun: Option<String>) -> Option<String> {
    let by = view.approved_by.as_deref()?;
    if let Some(policy) = show::policy(by) {
        return Some(format!("approved by {policy}"));
    }
    let (plan, at) = (begun?, view.approved_at.as_deref()?);
    let (by, ago) = (show::safe(by), show::ago(at, client::now_unix_seconds()));
    let back = next::commands_here(&format!("planctl reject {plan} --note WHY"));
    Some(format!("approved by {by} {ago}; to take that back: {back}"))
}

/// Says how the run is isolated, where that was asked for by its tier, or with -v where it is not isolated.
fn isolation_words(context: &Context, tier: Tier) -> Result<String, Failure> {
    let wanted = context.config()?.config.isolation;
    Ok(match (tier, wanted) {
        (Tier::SameUser, Isolation::Auto) if context.verbosity() > 0 => {
            " · isolation off, planctl doctor says how to confine it".to_owned()
        }
        (Tier::SameUser, Isolation::Require(_)) | (_, Isolation::Exactly(_)) => {
            format!(" · isolation tier {tier}")
        }
        (_, Isolation::Auto | Isolation::Require(_)) => String::new(),
    })
}

/// Says whether a run goes on with this text, or is over, although the plan would not be verified as its workspace is now:
/// it was verified when it was approved, and its own run may have made the files that are found fault with.
async fn is_taken_up(context: &Context, checked: &Checked, again: bool) -> Result<bool, Failure> {
    let mut errors = checked.verification.diagnostics.iter().filter(|finding| finding.is_error());
    if !errors.all(|error| error.code.is_of_the_surroundings()) {
        return Ok(false);
    }
    Ok(Client::open(context).await?.plan_standing(checked, None, again).await?.goes_on)
}

/// Names the steps that nobody judges when questions answer themselves: neither a contract nor a person looks at them.
fn unjudged_steps_words(checked: &Checked) -> String {
    let graph = checked.verification.graph.as_ref();
    let is_confirmed = |step: &NodeTree| {
        let nodes = graph.into_iter().flat_map(|graph| graph.nodes());
        nodes.filter(|node| node.step() == step.number).any(|node| node.confirmation.is_some())
    };
    let is_unseen = |step: &&NodeTree| {
        let is_question = step.kind.value == Kind::Human;
        step.contract.is_none() && (is_question || is_confirmed(step))
    };
    let steps: Vec<_> = checked.verification.workflow.steps().into_iter().filter(is_unseen).collect();
    let Some(first) = steps.first() else { return String::new() };
    let more = match steps.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let title = show::safe(first.step_title());
    format!(
        "--auto-answer: nobody is asked at step {} \"{title}\"{more}; where such a step stands for work without a contract, \
         it counts as done\n",
        first.id.value
    )
}

/// Where a run that is taken up goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begins {
    /// Where it stands.
    WhereItStands,
    /// At the first step that passed and would pass no longer.
    AtRegressed,
    /// At a step that passed, which is done anew: its number or title, or its node's name.
    AtStep(String),
}

/// Takes a run up.
pub async fn resume(
    context: &Context,
    run: Option<&str>,
    worker: Option<Agent>,
    no_wait: bool,
    auto_answer: Option<bool>,
    begins: Begins,
) -> Answer {
    let manner = manner(context)?;
    isolation(context).await?;
    let client = Client::open(context).await?;
    let handle = match run {
        Some(run) => client.find(run).await?,
        None => open_run(context, &client).await?,
    };
    // The person who started the run said it for all of it; a word at this command counts for this time.
    let before = client.status(handle).await?;
    let auto_answer = auto_answer.unwrap_or(before.auto_answer);
    let from = match begins {
        Begins::AtRegressed => recheck::first_regressed(context, &client, handle, &before).await?,
        Begins::AtStep(step) => {
            let number = step_number(&client, handle, &step).await;
            let list = format!("planctl status {}", shell_word(&before.run));
            Some((number.map_err(|failure| failure.or_list(list))?, None))
        }
        Begins::WhereItStands => None,
    };
    let mut stop = Stop::listen()?;
    let resumed = until_stopped(&mut stop, client.resume_from(handle, worker.as_ref(), from)).await?;
    resumed.map_err(stopped_before)?;
    let is_guided = match worker {
        Some(worker) => worker == Agent::Session,
        None => before.agent.is_some_and(|agent| agent == Agent::Session.to_string()),
    };
    if is_guided {
        return guide::hold_sessions(context, client, handle).await;
    }
    work_to_the_end(
        context,
        client,
        handle,
        Work {
            no_wait,
            manner,
            since: None,
            answers: auto_answer,
            call: context.config()?.config.terminal_call,
        },
        stop,
    )
    .await
}

/// Returns the number of the step that a person names.
async fn step_number(client: &Client, handle: Handle, named: &str) -> Result<u32, Failure> {
    match named.parse() {
        Ok(number) => Ok(number),
        Err(_) => Ok(client.why(handle, named).await?.step.number),
    }
}

/// Finds the run that `planctl resume` alone goes on with: the newest, or the one that has the workspace for which that one waits,
/// where nobody works on it.
async fn open_run(context: &Context, client: &Client) -> Result<Handle, Failure> {
    let newest = client.find("@last").await?;
    let view = client.status(newest).await?;
    let Some(holder) = view.holder.filter(HolderView::is_left_alone) else { return Ok(newest) };
    context.say(&format!(
        "{} has the workspace for which {} waits, and is taken up",
        show::safe(&holder.run),
        show::safe(&view.run)
    ));
    client.find_in(&holder.run, &view.workspace).await
}

/// Awaits `work`, or returns the exit code of the signal that asks to stop first.
pub async fn until_stopped<T>(
    stop: &mut Stop,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Exit>, Failure> {
    tokio::select! {
        done = work => done.map(Ok),
        exit = stop.wait_for_signal() => Ok(Err(exit)),
    }
}

/// Says why a run goes on in place of a new one that was wanted.
fn not_over_words(view: &RunView) -> String {
    let cancel = next::commands_here(&format!("planctl cancel {}", shell_word(&view.run)));
    format!("{} is not over, so no new run begins; to end it: {cancel}", show::safe(&view.run))
}

/// Says that a signal came before the work on a run.
fn stopped_before(exit: Exit) -> Failure {
    Failure::new(exit, "stopped; the run may have begun").next("planctl ls")
}

/// Follows a run that another process works on.
pub async fn watch(context: &Context, run: &str, no_wait: bool) -> Answer {
    let manner = manner(context)?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let attention = Attention::from_config(context.config()?.config.terminal_call);
    let mut progress = Progress::new(manner, CtrlC::Leaves).with_attention(attention);
    let mut stop = Stop::listen()?;
    let watched = watch_run(context, &client, handle, no_wait, &mut progress, &mut stop).await;
    report_gone_daemon(&client, &mut progress, watched).await
}

async fn watch_run(
    context: &Context,
    client: &Client,
    handle: Handle,
    no_wait: bool,
    progress: &mut Progress,
    stop: &mut Stop,
) -> Answer {
    let manner = progress.manner();
    let mut answer_prompt = AnswerPrompt::open(context, manner, no_wait);
    let mut shown = Shown::begin_after(client, handle, Some(0)).await?;
    let mut waits = Waits::default();
    loop {
        let seen = async {
            // In this order: the events that led to the state are printed before the state of the run.
            let view = client.status(handle).await?;
            print_new_events(client, progress, &mut shown).await?;
            Ok(view)
        };
        let view = match until_stopped(stop, seen).await? {
            Ok(view) => view,
            Err(exit) => {
                context.say("detached");
                return Ok(exit);
            }
        };
        progress.draw(&view, client::now_unix_seconds(), None);
        answer_prompt.take_if(|prompt| prompt.has_ended());
        if let Some(answer_prompt) = &mut answer_prompt
            && let Some(exit) = answer_prompt.answer_asks((client, handle), &view, progress, stop).await?
        {
            return Ok(print_detached(context, &view, progress, exit));
        }
        if manner == Manner::Plain
            && answer_prompt.is_none()
            && !no_wait
            && let Some(line) = waits.update(&view)
        {
            context.say(&styled(show::CARE, line));
        }
        let is_to_end = no_wait && matches!(exit_of(&view), Exit::Waiting | Exit::Budget);
        if view.state.is_over() || is_to_end {
            progress.finish(&view, client::now_unix_seconds());
            let question = question_of(client, handle, &view).await?;
            return print_end(context, &view, question.as_deref(), manner);
        }
        if !show::flush_to_reader()? {
            return Ok(print_detached(context, &view, progress, Exit::Yes));
        }
        tokio::select! {
            exit = stop.wait_for_signal() => return Ok(print_detached(context, &view, progress, exit)),
            news = client.wait_for_news(handle, shown.seq(), LOOK) => news?,
        }
    }
}

/// Says that a run is not followed any more.
fn print_detached(context: &Context, view: &RunView, progress: &mut Progress, exit: Exit) -> Exit {
    progress.finish(view, client::now_unix_seconds());
    let run = show::safe(&view.run);
    context.say(&match waiting_line(view) {
        Some(line) => format!("detached from {run}: {line}"),
        None => format!("detached; {run} goes on where it is worked on"),
    });
    exit
}

/// Works on a run until it ends, needs a person who isn't there, or a signal stops it; says how it ended.
pub async fn work_to_the_end(
    context: &Context,
    client: Client,
    handle: Handle,
    how: Work,
    mut stop: Stop,
) -> Answer {
    let mut answer_prompt = AnswerPrompt::open(context, how.manner, how.no_wait);
    let mut worked = work(&client, handle, how, answer_prompt.as_mut(), &mut stop).await?;
    while how.answers && worked.asked.is_none() && answer_choices(&client, handle).await? {
        let how = Work { since: Some(worked.seq), ..how };
        worked = work(&client, handle, how, answer_prompt.as_mut(), &mut stop).await?;
    }
    let is_daemon = client.is_daemon();
    let question = question_of(&client, handle, &worked.view).await?;
    let follow_up = library::follow_up(&client, handle, &worked.view).await?;
    client.close().await;
    match worked.asked {
        Some(exit) if is_daemon => {
            let run = shell_word(&worked.view.run);
            let typed = |words: &str| next::typed_in(words, &worked.view.workspace);
            context.say(&typed(&format!("detached; {run} goes on.   planctl watch {run}")));
            context.say(&typed(&format!("stop it for good: planctl cancel {run}")));
            Ok(exit)
        }
        Some(exit) => {
            context.say(&stopped_words(&worked.view));
            Ok(exit)
        }
        None => {
            let exit = print_end(context, &worked.view, question.as_deref(), how.manner)?;
            follow_up.iter().for_each(|line| context.say(line));
            Ok(exit)
        }
    }
}

/// Says that this process works on a run no longer, and what to type next.
fn stopped_words(view: &RunView) -> String {
    let follow_up = next::typed_in(&follow_up_command(view), &view.workspace);
    match view.worked_on_by {
        Some(_) => {
            format!("stopped here; {} goes on, as others work on it.   {follow_up}", show::safe(&view.run))
        }
        None => format!("stopped; {follow_up}"),
    }
}

/// Returns the question of a worker, why a person is asked, or the ask of a run within, where the run waits for that and no step's
/// failure says it.
async fn question_of(client: &Client, handle: Handle, view: &RunView) -> Result<Option<String>, Failure> {
    let Some(WaitingOn { id: Some(id), .. }) = &view.waiting_on else { return Ok(None) };
    let Some(ask) = open_asks(client, handle).await?.into_iter().find(|ask| ask.id == *id) else {
        return Ok(None);
    };
    if let Some(run) = ask.run.as_ref().filter(|run| **run != view.run) {
        return Ok(Some(format!("{run}: {}", ask.asks)));
    }
    let is_told = ask.step.is_some() && !matches!(ask.reason.as_str(), "visits_limit" | "not_red");
    Ok(match ask.kind.as_str() {
        "question" => Some(ask.asks),
        "escalation" if !is_told => Some(ask.asks),
        _ => None,
    })
}

/// Says where a run stands that a daemon goes on with, and how to follow it.
async fn status_at_once(context: &Context, client: &Client, handle: Handle, manner: Manner) -> Answer {
    let view = client.status(handle).await?;
    let run = shell_word(&view.run);
    if manner != Manner::Jsonl {
        show::print(&format!("{run}\n"))?;
    } else {
        show::print_json(&view)?;
    }
    let watch = format!("the daemon goes on with it.   planctl watch {run}");
    context.say(&next::typed_in(&watch, &view.workspace));
    Ok(Exit::Yes)
}

/// Returns the isolation tier that runs get on this host, and the best one that it offers where that was tried.
///
/// # Errors
///
/// Refuses to run below the isolation that the configuration demands.
pub async fn isolation(context: &Context) -> Result<Tier, Failure> {
    let wanted = context.config()?.config.isolation;
    let offered = if wanted.needs_probe() { offered().await?.tier } else { Tier::SameUser };
    wanted.tier(offered).ok_or_else(|| {
        Failure::new(
            Exit::Configuration,
            format!(
                "could not run: isolation = \"{wanted}\" is demanded, and this host offers tier {offered}"
            ),
        )
        .help("planctl doctor shows what is missing; isolation = \"auto\" in planctl.toml runs as you")
        .next("planctl doctor")
    })
}

/// Tries which isolation this host offers.
pub async fn offered() -> Result<Offered, Failure> {
    let wrong = |error| Failure::new(Exit::Temporary, format!("could not try the isolation: {error}"));
    let spawner = Spawner::start_self(None).map_err(wrong)?;
    let offered = probe_isolation(&spawner).await.map_err(wrong);
    spawner.shutdown();
    offered
}

/// Returns how progress is shown.
pub fn manner(context: &Context) -> Result<Manner, Failure> {
    use std::io::IsTerminal;
    Ok(match context.format(&[Format::Human, Format::Jsonl, Format::Plain])? {
        Format::Jsonl | Format::Json => Manner::Jsonl,
        Format::Human | Format::Plain if context.is_quiet() => Manner::Silent,
        Format::Human if std::io::stderr().is_terminal() && !terminal::is_dumb() => Manner::Live,
        Format::Human
        | Format::Plain
        | Format::Sarif
        | Format::Github
        | Format::Ascii
        | Format::Dot
        | Format::Mermaid
        | Format::Markdown
        | Format::Svg
        | Format::Long
        | Format::Compact
        | Format::Workflow => Manner::Plain,
    })
}

pub(super) fn name(file: &Path) -> String {
    show::file_word(file)
}
