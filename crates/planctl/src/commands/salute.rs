//! `plan status RUN --salute`: the report for the supervisor of a run.

use planctl_api::wire::{DutyView, PastView, SaluteView};

use super::{Context, standing};
use crate::client::{self, Client};
use crate::failure::{Answer, Exit};
use crate::show::{self, BOLD, styled};

/// Draws the report.
pub async fn run(context: &Context, run: &str, exit_code: bool) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let report = client.salute(handle).await?;
    if is_json {
        show::print_json(&report)?;
    } else {
        show::print(&page(&report))?;
    }
    if !exit_code {
        return Ok(Exit::Yes);
    }
    Ok(standing::exit_of(&client.status(handle).await?))
}

fn page(report: &SaluteView) -> String {
    let parts = [
        ("size", size(report)),
        ("activity", activity(report)),
        ("location", location(report)),
        ("unit", unit(&report.unit)),
        ("time", time(report)),
        ("equipment", equipment(report)),
    ];
    let mut page = String::new();
    for (name, lines) in parts {
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            page.push_str(&format!("{}{}\n", styled(BOLD, &format!("{name:<11}")), show::safe(line)));
        }
    }
    page
}

fn size(report: &SaluteView) -> Vec<String> {
    let size = &report.size;
    let counts = [
        (size.passed, "passed"),
        (size.skipped, "skipped"),
        (size.waived, "waived"),
        (size.warned, "warned"),
        (size.failed, "failed"),
        (size.live, "under way"),
    ];
    let counts =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}"));
    let word = if size.total_steps == 1 { "step is" } else { "steps are" };
    vec![format!(
        "{} of {} {word} over{}",
        size.completed_steps,
        size.total_steps,
        counts.collect::<String>()
    )]
}

fn activity(report: &SaluteView) -> Vec<String> {
    let activity = &report.activity;
    let mut lines = vec![show::run_state(activity.state).to_owned()];
    lines.extend(activity.now.iter().cloned());
    let now = client::now_unix_seconds();
    let past = |past: &PastView| format!("{}  {}", show::ago(&past.at, now), past.text);
    lines.extend(activity.events.iter().map(past));
    lines
}

fn location(report: &SaluteView) -> Vec<String> {
    let location = &report.location;
    let plan = show::plan(&location.plan, &location.title);
    let mut lines = vec![format!("{}: {plan} in {}", location.run, location.workspace)];
    lines.extend(location.steps.iter().map(|step| {
        let visit = if step.visit > 1 { format!(", visit {}", step.visit) } else { String::new() };
        format!("step {} \"{}\", attempt {}{visit}", step.number, step.title, step.attempt)
    }));
    let path: Vec<String> = location.path.iter().map(ToString::to_string).collect();
    if !path.is_empty() {
        lines.push(format!("path {}", show::path(&path)));
    }
    lines
}

fn unit(duties: &[DutyView]) -> Vec<String> {
    if duties.is_empty() {
        return vec!["nobody".to_owned()];
    }
    let who = |duty: &DutyView| {
        let what = duty.step.map_or_else(|| "the run".to_owned(), |step| format!("step {step}"));
        let what = match duty.level.as_str() {
            "primary" => what,
            level => format!("{what} (PACE {level})"),
        };
        match &duty.role {
            Some(role) => format!("{what}: {role}"),
            None if duty.who == "person" => format!("{what}: a person"),
            None => format!("{what}: the harness, with its contract"),
        }
    };
    duties.iter().map(who).collect()
}

fn time(report: &SaluteView) -> Vec<String> {
    let time = &report.time;
    let began = time
        .began_at
        .as_ref()
        .map_or("not begun".to_owned(), |at| format!("began {}", show::ago(at, client::now_unix_seconds())));
    vec![format!(
        "{began}, active {}, still for {}",
        show::seconds(time.active_seconds),
        show::seconds(time.still_seconds)
    )]
}

fn equipment(report: &SaluteView) -> Vec<String> {
    let equipment = &report.equipment;
    let attempts = equipment.attempts;
    let word = if attempts == 1 { "attempt" } else { "attempts" };
    let mut lines =
        vec![format!("{} · {attempts} {word}", show::whole_cost(&equipment.spent, &equipment.budget))];
    if let Some(worker) = equipment.agent.as_ref().or(equipment.exec.as_ref()) {
        lines.push(format!("every role is served by {worker}"));
    }
    if !equipment.given.is_empty() {
        lines.push(format!("given {}", equipment.given.join(", ")));
    }
    lines
}
