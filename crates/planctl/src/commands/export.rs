//! `plan export`: a run as a folder for other tools (DOT K9). Nothing is ever read back from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use planctl_api::wire::{AttemptView, RunView, StepView};
use planctl_server::check::Checked;
use serde_json::{Value, json};

use super::Context;
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::show;

/// Writes the folder.
pub async fn run(context: &Context, run: &str, to: &Path) -> Answer {
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let view = client.status(handle).await?;
    let checked = client.plan_of_run(handle).await?;
    let logs = client.logs(handle, None, None).await?;
    let checkpoint = client.checkpoint(handle).await?;
    let prompts = client.prompts(handle, None, None).await?.prompts;
    let name = show::safe(&to.display().to_string());
    fs::create_dir(to).map_err(|error| creation_failure(&name, "folder", &error))?;
    let written = || -> io::Result<()> {
        let folder = Folder(to);
        folder.json("manifest.json", &manifest(&view, &checked))?;
        folder.json("checkpoint.json", &serde_json::to_value(&checkpoint)?)?;
        folder.text("plan", &planctl_lang::masked(checked.source.text()))?;
        let places = places(&view.steps);
        for (step, place) in view.steps.iter().zip(&places) {
            let own: Vec<&AttemptView> =
                logs.attempts.iter().filter(|attempt| attempt.step.number == step.number).collect();
            let task = checked.verification.graph.as_ref().and_then(|graph| {
                Some(graph.task(&planctl_engine::NodeId::new(step.node.as_str()))?.prompt.clone())
            });
            write_step(&folder, place, step, task.as_deref(), &own)?;
            for prompt in prompts.iter().filter(|prompt| prompt.step == step.number) {
                let name = format!("artifacts/{place}-{}-prompt.md", prompt.attempt);
                folder.text(&name, &show::plan_block(&prompt.prompt))?;
            }
        }
        Ok(())
    };
    written().map_err(|error| Failure::of_io(format!("write {name}"), &error))?;
    context.say(&format!("wrote {name}"));
    Ok(Exit::Yes)
}

/// Says why something new could not be made.
pub fn creation_failure(name: &str, what: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::usage(format!("{name} is there already"))
            .help(format!("name a {what} that is not there yet"));
    }
    Failure::of_io(format!("write {name}"), error)
}

/// The folder that is written.
struct Folder<'f>(&'f Path);

impl Folder<'_> {
    fn text(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    }

    fn json(&self, name: &str, value: &Value) -> io::Result<()> {
        self.text(name, &format!("{}\n", planctl_lang::json_escaped(format!("{value:#}"))))
    }
}

fn manifest(view: &RunView, checked: &Checked) -> Value {
    let goal = checked.verification.workflow.attributes.goal.text().map(|goal| goal.value.as_str());
    json!({
        "name": view.title,
        "run": view.run,
        "id": view.id,
        "plan": view.plan,
        "goal": goal,
        "graph": view.digest,
        "workspace": view.workspace,
        "state": view.state,
        "end": view.end,
        "reason": view.reason,
        "start_time": view.started_at,
        "end_time": view.ended_at,
    })
}

/// Names the folders of steps, each its own: of steps whose names differ in nothing that a folder's name keeps, the later
/// ones are numbered.
fn places(steps: &[StepView]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    // Names that need no change are reserved first, in any order.
    taken.extend(steps.iter().map(|step| step.node.clone()).filter(|node| folder_name_of(node) == *node));
    let place = |step: &StepView| {
        let plain = folder_name_of(&step.node);
        if plain == step.node {
            return plain;
        }
        let count = used.entry(plain.clone()).or_default();
        loop {
            *count += 1;
            let name = if *count == 1 { plain.clone() } else { format!("{plain}-{count}") };
            if taken.insert(name.clone()) {
                return name;
            }
        }
    };
    steps.iter().map(place).collect()
}

fn write_step(
    folder: &Folder<'_>,
    place: &str,
    step: &StepView,
    task: Option<&str>,
    attempts: &[&AttemptView],
) -> io::Result<()> {
    if step.visits == 0 {
        return Ok(());
    }
    if let Some(task) = task {
        folder.text(&format!("{place}/prompt.md"), &show::plan_block(task))?;
    }
    let last = attempts.last();
    if let Some(work) = last.and_then(|attempt| attempt.work.as_ref()) {
        folder.text(&format!("{place}/response.md"), &show::printed_block(&work.text))?;
    }
    let gate = last.and_then(|attempt| attempt.gate.as_ref());
    let status = json!({
        "node": step.node,
        "title": step.title,
        "outcome": step.state,
        "attempts": step.attempts,
        "visits": step.visits,
        "verdict": step.verdict,
        "failure_reason": step.failure,
        "exit_code": gate.and_then(|gate| gate.exit_code),
    });
    folder.json(&format!("{place}/status.json"), &status)?;
    for attempt in attempts {
        let Some(gate) = &attempt.gate else { continue };
        for (stream, text) in [("stdout", &gate.stdout), ("stderr", &gate.stderr)] {
            if !text.is_empty() {
                let name = format!("artifacts/{place}-{}-{stream}.txt", attempt.attempt);
                folder.text(&name, &show::printed_block(text))?;
            }
        }
    }
    Ok(())
}

/// Returns the name of a node as a valid name of one folder.
fn folder_name_of(node: &str) -> String {
    let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let name: String = node.chars().take(100).map(|c| if is_fit(c) { c } else { '_' }).collect();
    match name.as_str() {
        "" | "artifacts" | "plan" => format!("node-{name}"),
        _ => name,
    }
}
