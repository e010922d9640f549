//! `planctl guide`: sessions of interactive agents are held to a plan by their hooks.

mod canary;
mod doctor;
mod guard;
mod hook;
mod hooks;
mod install;
mod plugin;
mod session;
mod tree;

use planctl_api::wire::calls::Approving;
use planctl_api::wire::{CheckView, GuideState, GuideView, RunState, RunView, SessionView, StepState};
use planctl_config::Agent;
use planctl_engine::Node;
use planctl_view::Form;

use super::library;
use super::run::{self, Wish};
use super::{Context, work};
use crate::args::GuideCommand;
use crate::client::{Client, Handle, handle_of};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::guidance::{Activate, Guidance, Guided, LockedGuidance};
use crate::next;
use crate::session_agent::SessionAgent;
use crate::show::{self, shell_word, styled};

pub use guard::run as guard;
pub use hook::{main as hook, run as hook_misused};
use session::SessionTurn;

/// Does what was typed.
pub async fn run(context: &Context, command: GuideCommand) -> Answer {
    match command {
        GuideCommand::On { plan: Some(plan), approve, accept_changed, again } => {
            let approve = approve.then_some(Approving { note: None, accept_changed, worker: None });
            let plan = library::plan_for(context, &plan)?;
            let wish = Wish { approve, again, worker: Some(Agent::Session), ..Wish::default() };
            run::run(context, &plan, wish).await
        }
        GuideCommand::On { plan: None, .. } => resume_guided(context).await,
        GuideCommand::Activate { activate } => set_activation(context, activate),
        GuideCommand::Off => switch_off(context).await,
        GuideCommand::Status => status(context).await,
        GuideCommand::Install(wanted) => install::run(context, &wanted),
        GuideCommand::Doctor { canary } => doctor::run(context, canary).await,
    }
}

/// Holds the sessions of the workspace to a run that was started or taken up.
pub async fn hold_sessions(context: &Context, client: Client, handle: Handle) -> Answer {
    let mut held = LockedGuidance::open(&context.state_dir()?, context.workspace())?;
    let own = handle.id().to_string();
    if held.guidance.guards.iter().any(|guard| guard.open.as_ref().is_some_and(|open| open.id == own)) {
        client.close().await;
        context.say("the session goes on with it when its next turn ends");
        return Ok(Exit::Yes);
    }
    guard::suspend_all(&client, &mut held).await?;
    if let Some(before) = held.guidance.guided.as_ref().filter(|before| before.id != own)
        && !let_go(&client, before, "guide on another plan").await?.is_over()
    {
        let run = show::safe(&before.run);
        context.say(&next::commands_here(&format!(
            "{run} is paused; planctl resume {} takes it up",
            shell_word(&before.run)
        )));
    }
    let view = session::take_turn(&client, handle, SessionTurn::Looks).await?.view;
    let text = context_of(&client, handle, &view).await?;
    let guided = guided(&client, handle, &view.run).await?;
    client.close().await;
    held.guidance.guided = (!view.run.state.is_over()).then_some(guided);
    held.save()?;
    show::print(&format!("{text}\n"))?;
    if let Some(line) = work::waiting_line(&view.run) {
        context.say(&styled(show::CARE, &line));
    }
    say_hooks(context)?;
    let exit = super::standing::exit_of(&view.run);
    Ok(if exit == Exit::InProgress { Exit::Yes } else { exit })
}

/// Ends the runs of guards that do not hold, where another run needs their workspace; they are tried again when a session's next
/// turn ends.
pub async fn suspend_guards(context: &Context, client: &Client) -> Result<(), Failure> {
    let state_dir = context.state_dir()?;
    let Some((workspace, guidance)) = Guidance::find_from(&state_dir, context.workspace())? else {
        return Ok(());
    };
    if guidance.guards.iter().all(|guard| guard.open.is_none()) {
        return Ok(());
    }
    let mut held = LockedGuidance::open(&state_dir, &workspace)?;
    guard::suspend_all(client, &mut held).await?;
    held.save()
}

/// Says which agents have the hooks, or how they get them.
fn say_hooks(context: &Context) -> Result<(), Failure> {
    let installed = install::installed(context)?;
    if installed.is_empty() {
        context.say(&next::line("planctl guide install claude"));
    } else {
        let words: Vec<&str> = installed.iter().map(|agent| agent.as_str()).collect();
        context.say(&format!("sessions of {} in this workspace are held to it", words.join(", ")));
    }
    Ok(())
}

/// Takes the run up that was let go last.
async fn resume_guided(context: &Context) -> Answer {
    let client = Client::open(context).await?;
    let runs = client.list(false).await?.runs;
    let mut paused = Vec::new();
    for run in runs.into_iter().filter(|run| run.state == RunState::Paused) {
        let handle = client.find(&run.run).await?;
        if client.status(handle).await?.agent.as_deref() == Some("session") {
            paused.push((run.run, handle));
        }
    }
    match paused.as_slice() {
        [(_, handle)] => {
            client.resume(*handle, None).await?;
            hold_sessions(context, client, *handle).await
        }
        [] => {
            Err(Failure::usage("no plan is named, and no guided run is paused").next("planctl guide on PLAN"))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure::usage(format!("several guided runs are paused: {}", names.join(", ")))
                .next("planctl guide on PLAN"))
        }
    }
}

/// Has the prompts of sessions matched with the library, or ends that.
fn set_activation(context: &Context, activate: Activate) -> Answer {
    let mut held = LockedGuidance::open(&context.state_dir()?, context.workspace())?;
    held.guidance.activate = activate;
    held.guidance.offered.clear();
    held.save()?;
    show::print(match activate {
        Activate::Suggest => {
            "prompts here are matched with the library; a plan that fits is suggested, and nothing begins by itself\n"
        }
        Activate::Auto => {
            "prompts here are matched with the library; a plan that fits is handed in, and begins once it is approved\n"
        }
        Activate::Off => "prompts here are not matched with the library\n",
    })?;
    if activate != Activate::Off && install::installed(context)?.is_empty() {
        context.say(&next::line("planctl guide install claude"));
    }
    Ok(Exit::Yes)
}

/// Lets the sessions of the workspace go, and pauses the run.
async fn switch_off(context: &Context) -> Answer {
    let mut held = LockedGuidance::open(&context.state_dir()?, context.workspace())?;
    let Some(guided) = held.guidance.guided.take() else {
        context.say("no plan holds the sessions of this workspace");
        return Ok(Exit::Yes);
    };
    let client = Client::open(context).await?;
    let state = let_go(&client, &guided, "guide off").await?;
    client.close().await;
    held.save()?;
    let run = show::safe(&guided.run);
    if state.is_over() {
        return show::print(&format!("{run} is {}; sessions are free\n", show::run_state(state)))
            .map(|()| Exit::Yes);
    }
    show::print(&format!("{run} is paused; sessions are free\n"))?;
    context.say(&next::line("planctl guide on"));
    Ok(Exit::Yes)
}

/// Pauses a run, so that it does not keep the workspace; returns its state before.
async fn let_go(client: &Client, guided: &Guided, why: &str) -> Result<RunState, Failure> {
    let handle = handle_of(&guided.id)?;
    let state = client.status(handle).await?.state;
    if !state.is_over() && state != RunState::Paused {
        client.pause(handle, Some(why)).await?;
    }
    Ok(state)
}

async fn status(context: &Context) -> Answer {
    let format = context.format(&[Format::Human, Format::Json])?;
    let guidance = Guidance::find_from(&context.state_dir()?, context.workspace())?;
    let guidance = guidance.map(|(_, guidance)| guidance).unwrap_or_default();
    let hooks: Vec<&str> = install::installed(context)?.into_iter().map(SessionAgent::as_str).collect();
    let (run, state) = match &guidance.guided {
        None => (None, None),
        Some(guided) => {
            let client = Client::open(context).await?;
            let handle = handle_of(&guided.id)?;
            let view = client.status(handle).await?;
            let state = state_of(&client, handle, &view, &guidance).await?;
            client.close().await;
            (Some(view), Some(state))
        }
    };
    if format == Format::Json {
        let workspace = context.workspace().to_string_lossy().into_owned();
        let guards = guidance.guards.iter().map(guard::view).collect();
        let hooks = hooks.into_iter().map(str::to_owned).collect();
        show::print_json(&GuideView { workspace, run, state, guards, hooks })?;
        return Ok(Exit::Yes);
    }
    let mut text = match &run {
        None => "no plan holds the sessions of this workspace\n".to_owned(),
        Some(run) => {
            let passed = run.steps.iter().filter(|step| step.state == StepState::Passed).count();
            let (name, state) = (show::safe(&run.run), show::run_state(run.state));
            format!("{name} {state} · {passed} of {} passed\n", run.steps.len())
        }
    };
    for guard in &guidance.guards {
        text.push_str(&guard::line(guard));
    }
    text.push_str(&match hooks.as_slice() {
        [] => next::commands_here("no agent has planctl's hooks: planctl guide install claude\n"),
        hooks => format!("hooks: {}\n", hooks.join(", ")),
    });
    show::print(&text)?;
    Ok(Exit::Yes)
}

/// Returns where the plan of a session stands, with the names of seed 3 (H-15).
async fn state_of(
    client: &Client,
    handle: Handle,
    run: &RunView,
    guidance: &Guidance,
) -> Result<GuideState, Failure> {
    let way = client.traversal(handle).await?;
    let plan = client.plan_of_run(handle).await?;
    let entry = planctl_lang::library::entries(&plan.source).0.into_iter().next();
    let place = planctl_lang::library::place_of(&plan.source);
    let numbers = |is_meant: fn(StepState) -> bool| {
        let steps = run.steps.iter().filter(|step| is_meant(step.state));
        steps.map(|step| step.number.saturating_sub(1)).collect()
    };
    let failed = run.steps.iter().map(|step| {
        let is_last_good = !matches!(step.state, StepState::Failed | StepState::Skipped | StepState::Warned);
        step.attempts.saturating_sub(u32::from(is_last_good))
    });
    let newest = guidance.seen.values().find_map(|seen| seen.command.as_ref().or(seen.tool.as_ref()));
    Ok(GuideState {
        plan_id: place.entry.unwrap_or(way.plan_id),
        plan_name: way.plan_name,
        domain: entry.and_then(|entry| entry.domains.into_iter().next()).unwrap_or_default(),
        current_step: way.current_step.filter(|_| !run.state.is_over()),
        steps_completed: numbers(|state| {
            matches!(state, StepState::Passed | StepState::Waived | StepState::Warned)
        }),
        steps_failed: numbers(|state| matches!(state, StepState::Failed | StepState::Skipped)),
        total_steps: way.total_steps,
        stale_after_turns: way.stale_after_turns,
        turns_since_progress: way.turns_since_progress,
        started_turn: way.started_turn,
        last_tool_output: newest.map(|seen| seen.output.clone()).unwrap_or_default(),
        verification_failures: failed.sum(),
        tool_failures: guidance.guided.as_ref().map_or(0, |guided| guided.tool_failures),
    })
}

/// Returns what hooks have to know of a run.
async fn guided(client: &Client, handle: Handle, run: &RunView) -> Result<Guided, Failure> {
    let checked = client.plan_of_run(handle).await?;
    let nodes = checked.verification.graph.iter().flat_map(|graph| graph.nodes());
    let free: Vec<&String> = nodes.filter_map(Node::gated).flat_map(|gated| gated.may_change).collect();
    let decides = |entry: &&String| !free.contains(entry);
    let baseline = &checked.baseline;
    let named = baseline.files.keys().chain(&baseline.globs).chain(baseline.deciding.keys());
    let protected: std::collections::BTreeSet<&String> = named.filter(decides).collect();
    Ok(Guided {
        id: run.id.clone(),
        run: run.run.clone(),
        plan: run.plan.clone(),
        protected: protected.into_iter().cloned().collect(),
        waits: run.waiting_on.as_ref().is_some_and(|on| on.is_for_people()),
        read: Vec::new(),
        observes: false,
        tool_failures: 0,
    })
}

/// The context of a session: the plan with the present step marked, and the task of that step.
async fn context_of(client: &Client, handle: Handle, view: &SessionView) -> Result<String, Failure> {
    let plan = client.context(handle, Form::Long).await?.text;
    let plan = plan.trim_end().to_owned();
    Ok([plan, tasks(view)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"))
}

/// Says by which output a step passes.
fn check_words(check: &CheckView) -> String {
    let of = if check.takes_any_tool { "tool" } else { "command" };
    format!(
        "\n\nThis step passes by the output of your last {of}, as your own program reports it: {}. End your turn when that is so.",
        check.what
    )
}

/// The tasks that a session works on, as an agent is told them.
fn tasks(view: &SessionView) -> String {
    let several = view.steps.len() > 1;
    let tasks = view.steps.iter().map(|step| {
        let place = if several { format!("In {}:\n", step.workspace) } else { String::new() };
        let check = step.check.as_ref().map(check_words).unwrap_or_default();
        format!("{place}{}{check}", step.prompt.trim_end())
    });
    tasks.collect::<Vec<_>>().join("\n\n")
}
