//! `planctl status` and `planctl run ls`: one run, and the list of all.

use anstyle::Style;
use planctl_api::wire::{DayBudgetView, RunList, RunState, RunSummary, RunView, UnreadRun, WaitingOn};

use super::standing::{exit_of, next_of};
use super::{Context, verify};
use crate::args::RunFilter;
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::progress::{self, Look};
use crate::show::{self, BOLD, Cell, Column, styled};

pub async fn status(context: &Context, run: Option<&str>, all: bool, exit_code: bool) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let Some(run) = run else {
        let mut list = client.list(all).await?;
        list.runs.retain(|run| all || !run.state.is_over() || is_json);
        if is_json {
            show::print_json(&list)?;
        } else if list.runs.is_empty() && !all {
            let over = client.list(false).await?.runs.len();
            show::print(&no_active_runs(context, over, &client.list(true).await?))?;
            show::print(&day_budgets(&list.day_budgets, all))?;
        } else {
            show::print(&run_table(context, &list.runs, all))?;
            show::print(&day_budgets(&list.day_budgets, all))?;
        }
        warn_unreadable(&list.unread);
        return Ok(Exit::Yes);
    };
    let view = client.status(client.find(run).await?).await?;
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&show::folded(&run_page(&view)))?;
    }
    Ok(if exit_code { exit_of(&view) } else { Exit::Yes })
}

/// Lists runs.
pub async fn ls(context: &Context, filter: &RunFilter) -> Answer {
    let (states, all) = (&filter.state, filter.all);
    let is_json = context.is_json()?;
    if let Some(unknown) =
        states.iter().find(|word| RunState::ALL.iter().all(|state| state.as_str() != **word))
    {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.as_str()).collect();
        return Err(Failure::usage(format!("there is no state `{}`", show::safe(unknown)))
            .help(format!("states: {}", known.join(", "))));
    }
    let client = Client::open(context).await?;
    let mut list = client.list(all).await?;
    let total = list.runs.len();
    list.runs.retain(|run| states.is_empty() || states.iter().any(|word| run.state.as_str() == word));
    if is_json {
        show::print_json(&list)?;
    } else if list.runs.is_empty() && total > 0 {
        show::print(&format!(
            "no run is {}; {} in other states\n",
            states.join(" or "),
            runs_counted(total)
        ))?;
    } else if list.runs.is_empty() && !all {
        show::print(&no_runs(context, client.list(true).await?.runs.len()))?;
    } else {
        show::print(&run_table(context, &list.runs, all))?;
    }
    warn_unreadable(&list.unread);
    Ok(Exit::Yes)
}

/// Says what was used today of the budgets that runs share, one on each line.
fn day_budgets(days: &[DayBudgetView], has_all: bool) -> String {
    let now = client::now_unix_seconds();
    days.iter().map(|day| show::folded(&format!("{}\n", show::day_budget(day, has_all, now)))).collect()
}

fn runs_counted(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// Says that a workspace has no runs, and how many there are elsewhere.
fn no_runs(context: &Context, elsewhere: usize) -> String {
    let place = show::safe(&context.workspace().display().to_string());
    match elsewhere {
        0 => format!("no runs in {place} or in any other folder\n"),
        others => format!("no runs in {place}; {others} in other folders: planctl ls --all\n"),
    }
}

/// Says that no run of a workspace is under way, and which others there are.
fn no_active_runs(context: &Context, over: usize, all: &RunList) -> String {
    if over == 0 {
        return no_runs(context, all.runs.len());
    }
    let place = show::safe(&context.workspace().display().to_string());
    let elsewhere = all.runs.iter().filter(|run| !run.state.is_over()).count();
    let elsewhere = match elsewhere {
        0 => String::new(),
        count => format!("; {count} in other folders: planctl status --all"),
    };
    format!("no active runs in {place}; {} ended: planctl ls{elsewhere}\n", runs_counted(over))
}

/// Says which runs can't be shown.
fn warn_unreadable(unread: &[UnreadRun]) {
    for run in unread {
        let name = show::safe(&run.run);
        show::say(&format!("{name} can't be shown: {}", show::safe(&run.what)));
        show::say(&next::line(&format!("planctl audit {name}")));
    }
}

fn run_table(context: &Context, runs: &[RunSummary], all: bool) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let now = client::now_unix_seconds();
    let has_ended = runs.iter().any(|run| run.ended_at.is_some());
    let has_cost = context.verbosity() > 0 || runs.iter().any(is_near_its_budget);
    let row = |run: &RunSummary| {
        let moment =
            |moment: &Option<String>| moment.as_deref().map_or("-".to_owned(), |at| show::ago(at, now));
        let started = run.started_at.as_deref().and_then(|at| show::age(at, now));
        let (style, state) = if show::is_left_alone(run.state, run.worked_on_by) {
            (show::CARE, show::LEFT_ALONE)
        } else {
            (state_style(run.state), show::run_state(run.state))
        };
        let mut cells = vec![
            Cell::from(run.run.clone()),
            Cell::styled(style, state),
            format!("{}/{}", run.steps_settled, run.steps_total).into(),
            run.waiting_on.as_ref().map_or("-".to_owned(), waiting).into(),
            started.unwrap_or_else(|| "-".to_owned()).into(),
        ];
        if has_ended {
            cells.push(moment(&run.ended_at).into());
        }
        if has_cost {
            let cost = if context.verbosity() > 0 { show::whole_cost } else { show::cost };
            cells.push(cost(&run.spent, &run.budget).into());
        }
        cells.push(show::plan(&run.plan, &run.title).into());
        if all {
            cells.push(run.workspace.clone().into());
        }
        cells
    };
    // By their use: the place of a run, and what it waits for, are what a list is read for.
    let columns = [
        (Column::uncut("RUN"), true),
        (Column::uncut("STATE"), true),
        (Column::uncut("PROGRESS").left_out(4), true),
        (Column::cuttable("WAITING ON"), true),
        (Column::uncut("AGE").left_out(1), true),
        (Column::uncut("ENDED").left_out(2), has_ended),
        (Column::uncut("SPENT").left_out(3), has_cost),
        (Column::cuttable("PLAN").left_out(5), true),
        (Column::cuttable("WORKSPACE").left_out(6), all),
    ];
    let header = columns.into_iter().filter_map(|(column, is_there)| is_there.then_some(column));
    show::list_of(&header.collect::<Vec<Column>>(), runs.iter().map(row).collect())
}

/// The part of a budget from which on a list shows what was spent.
const NEAR: f64 = 0.8;

fn is_near_its_budget(run: &RunSummary) -> bool {
    let (spent, budget) = (&run.spent, &run.budget);
    let is_near =
        |spent: f64, limit: Option<f64>| limit.is_some_and(|limit| spent >= limit * NEAR && spent > 0.0);
    !run.state.is_over()
        && (is_near(spent.seconds, budget.seconds)
            || is_near(spent.usd, budget.usd)
            || is_near(spent.tokens as f64, budget.tokens.map(|tokens| tokens as f64)))
}

fn state_style(state: RunState) -> Style {
    match state {
        RunState::Done => show::GOOD,
        RunState::Failed => show::BAD,
        RunState::AwaitingApproval | RunState::Waiting | RunState::Paused => show::CARE,
        RunState::Running => BOLD,
        RunState::Queued => Style::new(),
        RunState::Cancelled => show::FAINT,
    }
}

fn waiting(wait: &WaitingOn) -> String {
    if let (Some(lock), Some(run)) = (&wait.lock, &wait.run) {
        return format!("lock {lock} of run {run}");
    }
    match (wait.id, &wait.role, &wait.run) {
        (Some(id), _, _) => format!("you: {} {id}", wait.kind),
        (None, Some(role), _) => match &wait.paused {
            Some(worker) => format!("worker {worker}, paused"),
            None => format!("a {role} worker"),
        },
        (None, None, Some(run)) if wait.kind == "ending" => format!("the end of run {run}'s agent"),
        (None, None, Some(run)) => format!("run {run}"),
        (None, None, None) if wait.kind == "revision" => "you: resume".to_owned(),
        (None, None, None) => wait.kind.clone(),
    }
}

fn run_page(view: &RunView) -> String {
    let is_left_alone = show::is_left_alone(view.state, view.worked_on_by);
    let mut text = format!(
        "{} {} · {} · {}\n",
        styled(BOLD, &show::safe(&view.run)),
        if is_left_alone { show::LEFT_ALONE } else { show::run_state(view.state) },
        show::plan(&view.plan, &view.title),
        verify::short_digest(&view.digest)
    );
    let now_unix_seconds = client::now_unix_seconds();
    let look = Look { now_unix_seconds, lines_max: usize::MAX, columns: show::columns(), ctrl_c: None };
    for line in progress::picture(view, &look) {
        text.push_str(&line);
        text.push('\n');
    }
    // Of a run that failed by itself it is the failure of a step, which stands below that step.
    let has_failed = view.state == RunState::Failed && view.end.as_deref() != Some("aborted");
    let is_drawn = |reason: &str| {
        let mut failures = view.steps.iter().filter_map(|step| step.failure.as_deref());
        has_failed && failures.any(|failure| reason.contains(failure))
    };
    let is_news = |reason: &&String| view.state != RunState::Done && !is_drawn(reason);
    if let Some(reason) = view.reason.as_ref().filter(is_news) {
        text.push_str(&format!("  {}\n", show::safe(reason)));
    }
    text.push_str(&super::run::end::left_out_line(view));
    for day in view.day_budgets.iter().filter(|_| !view.state.is_over()) {
        text.push_str(&format!("  {}\n", show::day_budget(day, false, now_unix_seconds)));
    }
    if view.is_plan_file_changed && !view.state.is_over() {
        text.push_str(&format!("  {}\n", styled(show::CARE, &super::run::end::changed_file_line(view))));
    }
    if let Some(policy) = view.approved_by.as_deref().and_then(show::policy) {
        text.push_str(&format!("  approved by {policy}\n"));
    }
    if let Some(folder) = &view.folder {
        text.push_str(&format!("  works in the folder {}\n", show::safe(folder)));
    }
    if let Some(worktree) = &view.worktree {
        text.push_str(&format!("  {}\n", super::run::end::worktree_line(worktree)));
    }
    if let Some(next) = next_of(view) {
        text.push_str(&format!("{}\n", next::line(&next)));
    }
    text
}
