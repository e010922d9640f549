//! Writes a proposal as a plan: the writer's words become titles, tasks and contracts, and can become nothing else.

use planctl_lang::{ContractTree, REQUIREMENTS, Source, draft_frontmatter, one_line, parse};

use crate::goal::{Goal, Suspicion};
use crate::proposal::{Proposal, Step};

/// The parts of a draft beside the proposal.
pub(crate) struct Around<'a> {
    pub(crate) goal: &'a Goal,
    pub(crate) owner: &'a str,
    /// The budget that the plan gets, as planctl writes it.
    pub(crate) budget: Option<&'a str>,
    /// The questions that nobody answered, with their ids.
    pub(crate) open: &'a [(String, String)],
}

/// Writes the plan.
pub(crate) fn plan(proposal: &Proposal, around: &Around<'_>) -> String {
    let mut text = format!("{}\n# {}\n\n", draft_frontmatter(around.owner), heading(&proposal.title));
    let context = one_line(&proposal.context);
    let from = match &around.goal.source {
        Some((name, _)) => format!("Drafted from `{}`.", one_line(name).replace('`', "'")),
        None => format!("Drafted for the goal: {}", one_line(&around.goal.text)),
    };
    let context = if context.is_empty() { from } else { format!("{context} {from}") };
    text.push_str(&format!("**Context:** {}\n", safe(&context)));
    if let Some(budget) = around.budget {
        text.push_str(&format!("**Budget:** {}\n", one_line(budget)));
    }
    text.push_str(&table(proposal, around.goal));
    for (id, question) in around.open {
        text.push_str(&format!("\n<!-- open question {id}: {} -->\n", uncommented(question)));
    }
    text.push_str(&suspicions(&around.goal.suspicions));
    text.push_str("\n## Steps\n");
    for (at, one) in proposal.steps.iter().enumerate() {
        step(&mut text, at, one);
    }
    text
}

/// Says what of a proposal a written plan has lost or gained: a text that reads otherwise than it was meant is not shown to a
/// person as the proposal.
pub(crate) fn differences(proposal: &Proposal, text: &str) -> Vec<(Option<u32>, String)> {
    let (tree, _) = parse(&Source::new("draft.md", text));
    let mut found = Vec::new();
    if tree.steps.len() != proposal.steps.len() {
        let (read, meant) = (tree.steps.len(), proposal.steps.len());
        found.push((None, format!("the text reads as {read} steps, and the answer has {meant}")));
        return found;
    }
    for (at, (read, meant)) in tree.steps.iter().zip(&proposal.steps).enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let contract_read = read.node.contract.as_ref();
        let command = contract_read.map(|contract| contract.command.trim().to_owned());
        if command.as_deref() != Some(contract(meant).trim()) {
            found.push((Some(number), "the contract does not read as it was written".to_owned()));
        }
        let expected = contract_read.map_or(0, ContractTree::expected);
        if expected != meant.exit_code {
            found.push((Some(number), "the exit code does not read as it was written".to_owned()));
        }
    }
    found
}

fn step(text: &mut String, at: usize, step: &Step) {
    text.push_str(&format!("\n### {}. {}\n\n", at + 1, heading(&step.title)));
    text.push_str(&format!("**target:** {}\n", one_line(&step.role)));
    if !step.reads.is_empty() {
        text.push_str("**subscriptions:**\n");
        for file in &step.reads {
            text.push_str(&format!("- file:{}\n", one_line(file)));
        }
    }
    if let Some(needs) = needs(at, step) {
        text.push_str(&format!("**needs:** {needs}\n"));
    }
    if !step.changes.is_empty() {
        text.push_str("**changes:**\n");
        for file in &step.changes {
            text.push_str(&format!("- {}\n", one_line(file)));
        }
    }
    text.push_str(&format!("\n**task:**\n{}\n", task(&step.task)));
    let (contract, fence) = (contract(step), fence(&step.contract));
    text.push_str(&format!("\n**contract:**\n{fence}shell\n{contract}\n{fence}\n"));
    text.push_str(&format!("exit_code == {}\n**on_fail:** retry(2), then escalate\n", step.exit_code));
}

// Where a step follows the one before it nothing has to be said.
fn needs(at: usize, step: &Step) -> Option<String> {
    let mut needs = step.needs.clone()?;
    needs.sort_unstable();
    needs.dedup();
    let before = u32::try_from(at).unwrap_or(u32::MAX);
    if needs == [before] || at == 0 && needs.is_empty() {
        return None;
    }
    if needs.is_empty() {
        return Some("none".to_owned());
    }
    Some(needs.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

fn contract(step: &Step) -> String {
    step.contract.replace("\r\n", "\n").trim_matches('\n').trim_end().to_owned()
}

// Longer than any run of backticks within, so that the script can't end its fence.
pub(crate) fn fence(script: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in script.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest.max(2) + 1)
}

// Lines that are neither heading, field nor fence.
pub(crate) fn task(task: &str) -> String {
    let mut is_fenced = false;
    let lines = safe(task.trim()).replace("\r\n", "\n");
    let lines = lines.lines().map(|line| {
        let inner = line.trim_start();
        let is_fence = inner.starts_with("```") || inner.starts_with("~~~");
        is_fenced ^= is_fence;
        let is_marked = ["**", "__", "#", "exit_code", "---"].iter().any(|mark| inner.starts_with(mark));
        match is_fence || is_fenced || is_marked {
            true => format!("> {inner}"),
            false => line.trim_end().to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn table(proposal: &Proposal, goal: &Goal) -> String {
    let traces = proposal.traces();
    let mut rows = String::new();
    for requirement in &goal.requirements {
        let steps =
            traces.get(requirement.id.as_str()).map(|trace| trace.steps.as_slice()).unwrap_or_default();
        let steps: Vec<String> = steps.iter().map(u32::to_string).collect();
        let steps = if steps.is_empty() { "none".to_owned() } else { steps.join(", ") };
        let line = requirement.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        rows.push_str(&format!(
            "{}: step {steps}{line}: {}\n",
            requirement.id,
            uncommented(&requirement.text)
        ));
    }
    format!("\n{REQUIREMENTS}{rows}-->\n")
}

fn suspicions(found: &[Suspicion]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let rows: String = found
        .iter()
        .map(|one| {
            let line = one.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{} ({})\n", uncommented(&one.text), uncommented(&one.why))
        })
        .collect();
    format!(
        "\n<!-- These sentences of the goal speak to a program and were taken as data, not as requirements:\n{rows}-->\n"
    )
}

pub(crate) fn heading(text: &str) -> String {
    let text = safe(&one_line(text));
    text.trim_start_matches(['#', '*', ' ']).trim_end_matches([' ', '#']).to_owned()
}

// A comment that began here would take in the fields behind it.
pub(crate) fn safe(text: &str) -> String {
    text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")
}

// Words within a comment can't end it.
pub(crate) fn uncommented(text: &str) -> String {
    one_line(text).replace("--", "- -").replace(['<', '>'], "'")
}
