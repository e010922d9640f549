//! The answer of `plan draft`, as people and programs read it.

use std::path::Path;
use std::time::Duration;

use planctl_api::wire::draft::{
    DraftFindingView, DraftQuestionView, DraftRevisionView, DraftSpentView, DraftState, DraftStrategy,
    DraftView, EstimateView, RequirementView, SuspicionView,
};
use planctl_planner::{Basis, Conversation, Draft, Estimate, Finding, REPAIRS_MAX, Rule, Spending};

use super::allowance::lost_words;
use super::writer::{DraftWriter, dollars};
use crate::next;
use crate::show::{self, BAD, CARE, FAINT, GOOD, shell_word, styled};

/// The most characters of a requirement and of a contract on one line.
const CHARACTERS_MAX: usize = 90;

/// Begins the view of a draft with what every end of it has.
pub fn view(conversation: &Conversation, writer: &DraftWriter, findings: &[Finding]) -> DraftView {
    let spent = conversation.spent();
    let goal = &conversation.brief().goal;
    DraftView {
        goal: goal.text.clone(),
        state: DraftState::GivenUp,
        strategy: match writer {
            DraftWriter::Pattern => DraftStrategy::Pattern,
            DraftWriter::Model(_) => DraftStrategy::Model,
            DraftWriter::Agent(..) => DraftStrategy::Agent,
        },
        writer: writer.name(),
        file: None,
        title: None,
        steps: 0,
        rounds: conversation.rounds().len(),
        repairs: conversation.repairs().len(),
        revision: None,
        confidence: None,
        requirements: Vec::new(),
        findings: findings.iter().map(finding).collect(),
        questions: Vec::new(),
        suspicions: goal
            .suspicions
            .iter()
            .map(|one| SuspicionView { line: one.line, text: one.text.clone(), why: one.why.clone() })
            .collect(),
        spent: spent_view(spent),
        estimate: None,
    }
}

/// Returns what answers have used, as people see it.
pub(in crate::commands) fn spent_view(spent: Spending) -> DraftSpentView {
    DraftSpentView {
        answers: spent.answers,
        unmetered: spent.unmetered,
        estimated: spent.estimated,
        input_tokens: spent.tokens.input,
        cached_tokens: spent.tokens.cached,
        output_tokens: spent.tokens.output,
        lost: spent.lost,
        usd: spent.micro_usd.map(|micro| micro as f64 / 1e6),
    }
}

/// Fills in what a draft has.
pub fn with_draft(mut view: DraftView, draft: &Draft, file: &Path) -> DraftView {
    view.state = if draft.questions.is_empty() { DraftState::Done } else { DraftState::Waiting };
    view.file = Some(file.display().to_string());
    view.title = Some(draft.title.clone());
    view.steps = draft.steps;
    view.confidence = Some(draft.confidence);
    view.requirements = draft
        .requirements
        .iter()
        .map(|one| RequirementView {
            id: one.id.clone(),
            text: one.text.clone(),
            steps: one.steps.clone(),
            contracts: one.contracts.clone(),
        })
        .collect();
    view.questions = draft
        .questions
        .iter()
        .map(|(id, question)| DraftQuestionView {
            id: id.clone(),
            ask: None,
            text: question.text.clone(),
            options: question.options.clone(),
        })
        .collect();
    view
}

/// Returns an estimate as people see it, with the name of the price that its money rests on.
pub fn estimate_view(estimate: Estimate, by_price: Option<String>) -> EstimateView {
    let (runs, run_steps) = match estimate.basis {
        Basis::Runs { runs, steps } => (runs, steps),
        Basis::Default => (0, 0),
    };
    EstimateView {
        tokens: estimate.tokens,
        usd: estimate.micro_usd.map(|micro| micro as f64 / 1e6),
        by_price,
        seconds: estimate.seconds,
        runs,
        run_steps,
    }
}

fn finding(finding: &Finding) -> DraftFindingView {
    let rule = match finding.rule {
        Rule::Form => "form",
        Rule::Verified => "verified",
        Rule::Red => "red",
        Rule::DataFlow => "data_flow",
        Rule::GoalCoverage => "goal_coverage",
        Rule::Clarity => "clarity",
        Rule::Injection => "injection",
        Rule::Review => "review",
    };
    DraftFindingView {
        rule: rule.to_owned(),
        code: finding.code.clone(),
        is_error: finding.is_error,
        step: finding.step,
        message: finding.message.clone(),
        help: finding.help.clone(),
    }
}

/// Draws a draft for people; `command` is what they type to go on with it.
pub fn draw(view: &DraftView, command: &str) -> String {
    let mut text = String::new();
    if let Some(file) = &view.file {
        let steps = show::counted(view.steps, "step");
        text.push_str(&format!(
            "{} {}: {steps}, a draft; every contract was tried and fails today for the right reason\n",
            styled(GOOD, "wrote"),
            show::safe(file)
        ));
    }
    let rows = view.requirements.iter().flat_map(requirement).collect::<Vec<_>>();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&show::table(&["REQUIREMENT", "STEP", "CONTRACT"], rows));
        text.push('\n');
    }
    text.push_str(&findings(view));
    for question in &view.questions {
        let options = match question.options.as_slice() {
            [] => String::new(),
            options => format!(" ({})", show::safe(&options.join(", "))),
        };
        text.push_str(&format!(
            "{} {}{options}\n",
            styled(CARE, &format!("{}:", question.id)),
            show::safe(&question.text)
        ));
        if let Some(ask) = question.ask {
            text.push_str(&format!("  it waits in your inbox, too: planctl approvals show {ask}\n"));
        }
    }
    if let Some(estimate) = &view.estimate {
        text.push_str(&format!("a run may take {}\n", estimate_words(estimate)));
    }
    let spent = match view.writer {
        Some(_) => spent_words("draft", &view.spent),
        None => "drafted by the form of the goal, without a model".to_owned(),
    };
    text.push_str(&styled(FAINT, &format!("{spent}\n")));
    match (&view.file, view.questions.first()) {
        (Some(_), Some(question)) => {
            text.push_str(&format!("{}\n", next::line(&format!("{command} --answer {}='…'", question.id))));
        }
        (Some(file), None) if view.repairs > 0 => {
            text.push_str(&format!("repair {} of {REPAIRS_MAX}\n", view.repairs));
            text.push_str(&revision(view.revision.as_ref(), file));
        }
        (Some(file), None) => {
            text.push_str(&format!(
                "{}\n",
                next::line(&format!("planctl show {}", show::file_word(Path::new(file))))
            ));
        }
        (None, _) => {}
    }
    text
}

/// Says what becomes of a mended plan: a run goes on with it, or waits for an approval of it, or there is none that could.
pub(in crate::commands) fn revision(revision: Option<&DraftRevisionView>, file: &str) -> String {
    let (says, next) = match revision {
        Some(DraftRevisionView { run, approved: true, .. }) => {
            (format!("{} goes on with it\n", show::safe(run)), format!("planctl resume {}", shell_word(run)))
        }
        Some(DraftRevisionView { run, ask, approved: false, .. }) => {
            let what = ask.map_or_else(|| shell_word(run), |ask| ask.to_string());
            (
                format!("{} waits for your approval of it\n", show::safe(run)),
                format!("planctl plan edit {what}"),
            )
        }
        None => (String::new(), format!("planctl plan diff {}", show::file_word(Path::new(file)))),
    };
    format!("{says}{}\n", next::line(&next))
}

fn requirement(view: &RequirementView) -> Vec<Vec<String>> {
    let first = format!("{} {}", view.id, show::brief(&show::safe(&view.text), CHARACTERS_MAX));
    let proofs = view.steps.iter().zip(&view.contracts).map(|(step, contract)| {
        let line = contract.lines().next().unwrap_or_default();
        (step.to_string(), show::brief(&show::safe(line), CHARACTERS_MAX))
    });
    let mut rows: Vec<Vec<String>> =
        proofs.map(|(step, contract)| vec![String::new(), step, contract]).collect();
    match rows.first_mut() {
        Some(row) => row[0] = first,
        None => rows.push(vec![first, "none".to_owned(), String::new()]),
    }
    rows
}

/// Draws the findings, and the sentences that speak to a program.
pub fn findings(view: &DraftView) -> String {
    let mut text = String::new();
    for found in &view.findings {
        let (word, style) = if found.is_error { ("error", BAD) } else { ("warning", CARE) };
        let code = found.code.as_ref().map(|code| format!("[{code}]")).unwrap_or_default();
        let step = found.step.map(|step| format!("step {step}: ")).unwrap_or_default();
        let label = styled(style, &format!("{word}{code}:"));
        text.push_str(&format!("{label} {step}{}\n", show::safe(&found.message)));
        if let Some(help) = &found.help {
            text.push_str(&format!("  help: {}\n", show::safe(help)));
        }
    }
    for one in &view.suspicions {
        let line = one.line.map(|line| format!("line {line} of the source: ")).unwrap_or_default();
        text.push_str(&format!(
            "{} {line}\"{}\" is not a requirement: {}\n",
            styled(CARE, "warning:"),
            show::safe(&one.text),
            show::safe(&one.why)
        ));
    }
    text
}

fn estimate_words(view: &EstimateView) -> String {
    let money = match view.usd {
        Some(usd) => dollars((usd * 1e6).round() as u64),
        None => "money unknown, as no price is known".to_owned(),
    };
    let basis = match view.runs {
        0 => "by planctl's default for a step, since too few runs of this workspace ended".to_owned(),
        runs => format!(
            "by the mean of {} in {} of this workspace",
            show::counted(usize::try_from(view.run_steps).unwrap_or(usize::MAX), "step"),
            show::counted(usize::try_from(runs).unwrap_or(usize::MAX), "run")
        ),
    };
    let by_price = view
        .by_price
        .as_ref()
        .map(|price| format!("; money estimated by the price of {}", show::safe(price)));
    let time = show::span(Duration::from_secs(view.seconds));
    let tokens = show::tokens(view.tokens);
    format!("{tokens} tokens, {money}, {time}: {basis}{}", by_price.unwrap_or_default())
}

/// Says what a draft or a goal took.
pub(in crate::commands) fn spent_words(what: &str, spent: &DraftSpentView) -> String {
    let answers = show::counted(usize::try_from(spent.answers).unwrap_or(0), "answer");
    let mut words = format!("the {what} took {answers}");
    words.push_str(&format!(
        ", {} tokens",
        show::tokens(spent.input_tokens.saturating_add(spent.output_tokens))
    ));
    if let Some(usd) = spent.usd {
        words.push_str(&format!(", {}", dollars((usd * 1e6).round() as u64)));
    }
    words.push_str(&planctl_api::words::estimated_answers(spent.estimated, spent.answers));
    if spent.unmetered > 0 {
        words.push_str(&format!(", {} unmetered", spent.unmetered));
    }
    if spent.lost > 0 {
        words.push_str(&format!(", {}", lost_words(spent.lost)));
    }
    words
}
