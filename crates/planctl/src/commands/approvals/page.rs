//! One ask as a person reads it: the question, the evidence, the answers.

use planctl_api::wire::{
    AskPage, AskView, DriftView, FailureView, HeldPromptView, OptionView, PlanWithin, WillRun,
};
use planctl_api::words::{self, answer_meaning, answer_words, asked_about, asker, blocked, counted, follows};
use planctl_engine::Tier;

use super::super::changes::draw_lines;
use super::super::verify::picture::draw_judge;
use super::evidence;
use crate::client;
use crate::gutter::{self, Cut};
use crate::next::{self, needs, typed};
use crate::show::{self, BOLD, CARE, FAINT, shell_word, styled};

/// Draws an ask with what a person needs to decide it, and the commands that answer it; with all that is usual, if wanted.
pub fn draw_page(page: &AskPage, has_defaults: bool) -> String {
    format!("{}{}", ask_drawn(page, "", has_defaults), answers(&page.ask))
}

/// Draws an ask with what a person needs to decide it; `place` is put into its first line.
pub fn ask_drawn(page: &AskPage, place: &str, has_defaults: bool) -> String {
    let ask = &page.ask;
    let mut text = format!(
        "{} {} · {}{place}\n",
        styled(BOLD, &format!("{} {}", ask.kind, ask.id)),
        asker(ask),
        asked_about(ask)
    );
    text.push_str(&question_text(page));
    if let Some(blocks) = ask.blocks {
        text.push_str(&styled(FAINT, &format!("  blocks {}\n", blocked(blocks))));
    }
    text.push_str(&draw_votes(page));
    if let Some(level) = &page.pace {
        text.push_str(&format!("  {}\n", show::level(level)));
    }
    if ask.kind == "choice" && page.ask.role.is_some() && page.last_words.is_none() {
        text.push_str(&next::typed_in(
            &format!("  what the worker said: planctl logs {}\n", shell_word(&asker(ask))),
            &ask.workspace,
        ));
    }
    text.push_str(&draw_options(ask));
    if page.vacuous {
        let what = show::vacuous(planctl_api::wire::StepState::Waiting);
        text.push_str(&format!("  {}\n", styled(CARE, &what)));
    }
    if let Some(contract) = &page.contract {
        if !contract.command.is_empty() {
            let what = match page.is_call {
                true => "call, as the plan has it".to_owned(),
                false => format!("contract, which passes with {}", words::passes_with(contract)),
            };
            text.push_str(&heading(&what));
            indented(&mut text, "  ", &contract.command);
        }
        text.push_str(&contract.judge.as_ref().map(draw_judge).unwrap_or_default());
    }
    if let Some(failure) = &page.failure {
        text.push_str(&draw_failure(failure, page));
        text.push_str(&edit_to_allow(failure, ask));
    }
    if let Some(short) = &page.shortfall {
        let amount = |amount: f64| words::amount(&short.part, amount);
        text.push_str(&format!(
            "  {} used of {}, at least {} more needed; {} left\n",
            amount(short.spent),
            amount(short.limit),
            amount(short.needed),
            counted(usize::try_from(short.steps_remaining).unwrap_or(usize::MAX), "step")
        ));
        if let Some(until) = &short.until {
            text.push_str(&format!(
                "  raise adds to today's budget alone; it goes on by itself at {}\n",
                show::safe(until)
            ));
        }
    }
    text.push_str(&page.prompt.as_ref().map(prompt_drawn).unwrap_or_default());
    if let Some(will_run) = &page.will_run {
        text.push_str(&draw_will_run(will_run, has_defaults));
    }
    text.push_str(&draw_drift(&page.drift));
    text.push_str(&draw_uncommitted(&page.uncommitted));
    text.push_str(&draw_changes(page));
    text.push_str(&draw_plans(page));
    text.push_str(&evidence::draw(page, has_defaults, client::now_unix_seconds()));
    text
}

/// Draws a prompt that waits, and to where it would be sent.
pub fn prompt_drawn(prompt: &HeldPromptView) -> String {
    let (name, model, url) = (show::safe(&prompt.name), show::safe(&prompt.model), show::safe(&prompt.url));
    let mut text = format!(
        "  nothing was sent yet; your approval is for this prompt alone\n  to       {name} ({model}) at {url}\n  \
         tokens   up to {} with one answer\n  digest   {}\n",
        show::tokens(prompt.tokens),
        prompt.digest
    );
    match &prompt.text {
        Some(prompt) => {
            text.push_str(&heading("what would be sent"));
            text.push_str(&gutter::labelled("prompt", prompt, Cut::Nothing));
        }
        None => text.push_str("  its text is kept no longer\n"),
    }
    text
}

/// Draws the rules that an ask is under: the votes that they want, those that were cast, and when a rule answers it.
fn draw_votes(page: &AskPage) -> String {
    let mut text = String::new();
    for rule in &page.rules {
        text.push_str(&format!(
            "  the rule {} wants {}\n",
            show::safe(&rule.rule),
            show::safe(&rule.demands)
        ));
    }
    for vote in &page.votes {
        let note = vote.note.as_ref().map(|note| format!(": {}", show::safe(note))).unwrap_or_default();
        let void = vote.void.as_ref().map(|why| format!(" (counts no more: {why})")).unwrap_or_default();
        let (by, answer, at) = (show::safe(&vote.by), show::safe(&vote.answer), &vote.at);
        text.push_str(&format!("    {by} votes for {answer}, {at}{note}{void}\n"));
    }
    if let Some(deadline) = &page.ask.deadline {
        text.push_str(&styled(CARE, &format!("  {}\n", words::deadline(deadline))));
    }
    text
}

/// Lists the options of a choice, each with what follows.
fn draw_options(ask: &AskView) -> String {
    let name = |option: &OptionView| show::safe(&option.name);
    let widest = ask.leads_to.iter().map(|option| name(option).chars().count()).max().unwrap_or(0).min(40);
    let lines = ask.leads_to.iter().enumerate().map(|(at, option)| {
        let name = name(option);
        let pad = " ".repeat(widest.saturating_sub(name.chars().count()));
        let key = if are_numbered(ask) { format!("{}  {name}{pad}", at + 1) } else { name };
        let usual = if ask.usual.as_ref() == Some(&option.name) { "  (usual)" } else { "" };
        format!("    {key}{}{usual}\n", styled(FAINT, &follows(option)))
    });
    lines.collect()
}

/// Says whether the options of a choice are listed with numbers. An option without a name of its own is called by the number
/// of its step, beside which another number would confuse.
pub fn are_numbered(ask: &AskView) -> bool {
    ask.leads_to.iter().any(|option| option.name.parse::<u32>().is_err())
}

/// Draws the last failure of a step: the changed protected files and the end of the gate's output.
fn draw_failure(failure: &FailureView, page: &AskPage) -> String {
    let (run, from) = (asker(&page.ask), if page.is_call { "call" } else { "contract" });
    let mut text = heading(&failure_line(failure));
    for file in &failure.tampered {
        let line = format!("  protected file {} {}\n", show::safe(&file.path), show::safe(&file.change));
        text.push_str(&styled(CARE, &line));
        if let Some(diff) = file.diff.as_ref().filter(|diff| !diff.is_empty()) {
            text.push_str(&draw_lines(diff));
        }
    }
    for (name, tail) in [("stdout", &failure.stdout_tail), ("stderr", &failure.stderr_tail)] {
        let tail = planctl_view::strip_terminal_sequences(tail);
        let lines = show::last_lines(&tail, 10);
        if !lines.is_empty() {
            let which = match lines.len() {
                1 => "last line".to_owned(),
                several => format!("last {several} lines"),
            };
            text.push_str(&styled(FAINT, &format!("  {name}, {which}\n")));
            let all = next::typed_in(&format!("planctl logs {}", shell_word(&run)), &page.ask.workspace);
            text.push_str(&gutter::printed(from, &lines.join("\n"), Cut::BeforeEnd(&all)));
        }
    }
    text
}

/// Names the edit that lets a step change protected files that it had to leave alone.
fn edit_to_allow(failure: &FailureView, ask: &AskView) -> String {
    let files: Vec<String> = failure.tampered.iter().map(|file| show::safe(&file.path)).collect();
    if files.is_empty() || ask.answer.is_some() || !answer_words(ask).contains(&"edit") {
        return String::new();
    }
    let (files, id) = (files.join(", "), ask.id);
    format!(
        "\n  if the step should change it, or its contract makes it: name {files} in the step's task or **changes:**: \
         planctl approvals edit {id}\n"
    )
}

/// Draws the text of the plan that is to be approved, and of the sub-plans that are approved together with it.
fn draw_plans(page: &AskPage) -> String {
    let mut text = String::new();
    if let Some(plan) = &page.plan_text {
        text.push('\n');
        indented(&mut text, "", plan);
    }
    for sub_plan in page.will_run.iter().flat_map(|will_run| &will_run.plans) {
        if let Some(plan) = &sub_plan.text {
            text.push_str(&heading(&format!(
                "{}, which is approved together with it",
                show::safe(&sub_plan.plan)
            )));
            indented(&mut text, "", plan);
        }
    }
    text
}

/// Draws what a proposed step would change, or what has changed of the plan since it was approved.
fn draw_changes(page: &AskPage) -> String {
    let mut text = String::new();
    let worker = page.ask.role.as_deref().unwrap_or("worker");
    if !page.changes.is_empty() {
        text.push_str(&heading("what it would change of the plan"));
        for change in &page.changes {
            text.push_str(&gutter::labelled(worker, &change.to_string(), Cut::Nothing));
        }
    }
    let Some(diff) = &page.diff else { return text };
    if page.ask.kind != "insertion" {
        return format!("{text}{}{}", heading("changed since the last approval"), draw_lines(diff));
    }
    let files: Vec<String> = page.may_change.iter().map(|path| show::safe(path)).collect();
    if files.is_empty() {
        text.push_str("  it may change no protected file\n");
    } else {
        let files = files.join(", ");
        let line = format!("  it may change protected files, by which steps are judged: {files}\n");
        text.push_str(&styled(CARE, &line));
    }
    text.push_str(&heading("what it would change of its text"));
    text.push_str(&gutter::labelled(worker, diff, Cut::Nothing));
    text
}

pub(super) fn heading(words: &str) -> String {
    format!("\n{}\n", styled(BOLD, words))
}

/// Says what is asked. Where a worker wrote it, its words have a label on each line.
fn question_text(page: &AskPage) -> String {
    let ask = &page.ask;
    let step = ask.step.as_ref();
    let step = step.map(|step| format!("step {} \"{}\"", step.number, show::safe(&step.title)));
    let step = step.unwrap_or_else(|| "a step".to_owned());
    let asks = match ask.kind.as_str() {
        "question" => format!("{step} asks:"),
        // Its text is shown as a change of the plan.
        "insertion" if page.diff.is_some() => return format!("  {step} proposes a further step\n"),
        "insertion" => format!("{step} proposes a further step:"),
        _ => show::paragraphs(&ask.asks, 2)
            .iter()
            .map(|line| show::safe(line))
            .collect::<Vec<_>>()
            .join("\n  "),
    };
    let mut text = format!("  {asks}\n");
    if let Some(message) = page.message.as_ref().filter(|_| ask.draft.is_some()) {
        return format!("{text}{}", gutter::labelled("draft", message, Cut::Nothing));
    }
    // Why a call has a person asked stands in the sentence.
    if let Some(message) = page.message.as_ref().filter(|_| !matches!(ask.kind.as_str(), "choice" | "effect"))
    {
        let worker = page.ask.role.as_deref().unwrap_or("worker");
        let who = match ask.reason.as_str() {
            "visits_limit" if message.contains("is at its limit: visits") => "planctl",
            // The plan says why it has a person asked.
            "exhausted" | "planned" | "no_edge" | "visits_limit" => "plan",
            "stale" | "undelivered" | "interrupted" | "inconclusive" => "planctl",
            _ => worker,
        };
        let all = next::commands_here(&format!("planctl approvals show {} --json", ask.id));
        text.push_str(&gutter::printed(who, message, Cut::AfterStart(&all)));
    }
    if let Some(unfit) = &page.unfit {
        text.push_str(&format!("  it cannot be put into the plan as it is: {}\n", show::safe(unfit)));
    }
    text
}

/// Lists protected files that differ from what was approved last.
pub fn draw_drift(drift: &[DriftView]) -> String {
    let short = |digest: &Option<String>| match digest {
        Some(digest) => super::super::verify::short_digest(digest),
        None => "absent".to_owned(),
    };
    let mut text = String::new();
    for file in drift {
        let (path, change) = (show::safe(&file.path), show::safe(&file.change));
        let line = format!(
            "  protected file {path} {change} since the last approval ({} → {})\n",
            short(&file.before),
            short(&file.now)
        );
        text.push_str(&styled(CARE, &line));
    }
    text
}

/// Draws the protected files that are not as the newest commit has them.
pub fn draw_uncommitted(files: &[String]) -> String {
    let line = |path: &String| format!("  protected file {} is not as HEAD has it\n", show::safe(path));
    files.iter().map(|path| styled(CARE, &line(path))).collect()
}

fn draw_will_run(will_run: &WillRun, has_defaults: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<11}{value}\n"));
    line(
        "workspace",
        super::super::verify::workspace_words(&will_run.workspace, &will_run.mode, &will_run.git),
    );
    if let Some(folder) = &will_run.folder {
        line("folder", show::safe(folder));
    }
    line("budget", show::budget(&will_run.budget));
    if has_defaults || will_run.isolation != Tier::SameUser.to_string() {
        line("isolation", format!("tier {}", will_run.isolation));
    }
    for (role, worker) in &will_run.workers {
        let worker =
            worker.as_ref().map_or_else(|| styled(CARE, "nothing serves it"), |worker| show::safe(worker));
        line("worker", format!("{}: {worker}", show::safe(role)));
    }
    let protected: Vec<String> = will_run.protected.iter().map(|path| show::safe(path)).collect();
    line("protected", if protected.is_empty() { "no files".to_owned() } else { protected.join(", ") });
    for step in &will_run.steps {
        line(&format!("step {}", step.number), file_lines(&step.judged_by, &step.may_change).join(" · "));
    }
    for within in &will_run.plans {
        line("runs", plan_within_line(within));
    }
    text
}

/// Says by which files a step is judged, and which its worker may change; nothing of a set without any.
pub fn file_lines(judged_by: &[String], may_change: &[String]) -> Vec<String> {
    let sets = [("judged by", judged_by), ("may change", may_change)];
    let sets = sets.into_iter().filter(|(_, files)| !files.is_empty());
    sets.map(|(what, files)| format!("{what} {}", show::safe(&files.join(", ")))).collect()
}

fn plan_within_line(within: &PlanWithin) -> String {
    let steps = if within.steps == 1 { "1 step".to_owned() } else { format!("{} steps", within.steps) };
    let approved = if within.is_approved_too {
        "approved together with this plan; its text is below"
    } else {
        "a person is asked to approve it when its turn comes"
    };
    let folder = within.folder.as_ref().map(|folder| format!(" · in {}", show::safe(folder)));
    format!(
        "{} \"{}\" · {} · {steps}{} · a part of {}: {approved}",
        show::safe(&within.plan),
        show::safe(&within.title),
        super::super::verify::short_digest(&within.digest),
        folder.unwrap_or_default(),
        show::safe(&within.within)
    )
}

fn answers(ask: &AskView) -> String {
    if let Some(answer) = &ask.answer {
        let note = answer.note.as_ref().map(|note| format!(": {}", show::safe(note))).unwrap_or_default();
        let waited = answer.at.as_deref().and_then(|at| show::age(&ask.opened_at, show::unix_seconds(at)?));
        let waited = waited.map(|waited| format!(" after {waited}")).unwrap_or_default();
        let (word, by) = (show::safe(&answer.answer), show::safe(&answer.by));
        return format!("\nanswered {word} by {by}{waited}{note}\n");
    }
    let mut rows = Vec::new();
    let follows: Vec<String> =
        ask.leads_to.iter().map(|option| follows(option).trim_start().to_owned()).collect();
    for word in answer_words(ask) {
        if word == "choose" && !ask.options.is_empty() {
            let command = |option: &OptionView| {
                format!("planctl approvals choose {} {}", ask.id, shell_word(&option.name))
            };
            rows.extend(ask.leads_to.iter().map(command).zip(follows.iter().map(String::as_str)));
            continue;
        }
        let extra = match word {
            "reject" if ask.kind == "insertion" => "",
            word => needs(word),
        };
        rows.push((
            format!("planctl approvals {} {}{extra}", typed(word), ask.id),
            answer_meaning(ask, word),
        ));
    }
    let rows: Vec<(String, &str)> =
        rows.into_iter().map(|(command, what)| (next::commands_here(&command), what)).collect();
    format!("{}{}", heading("next:"), show::commands(&rows))
}

fn failure_line(failure: &FailureView) -> String {
    // The files follow one by one, each with what was changed.
    let what = match failure.tampered.is_empty() {
        true => show::safe(&failure.what),
        false => "protected files were touched".to_owned(),
    };
    if failure.attempt == 0 { what } else { format!("attempt {}: {what}", failure.attempt) }
}

fn indented(text: &mut String, prefix: &str, block: &str) {
    for line in show::plan_block(block.trim_end()).lines() {
        text.push_str(&format!("  {prefix}{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_an_ask_shows_the_failure_and_every_answer_and_nothing_raw() {
        let page = AskPage {
            ask: AskView {
                id: 17,
                kind: "escalation".into(),
                run: Some("fix-1".into()),
                run_id: None,
                draft: None,
                workspace: "/work".into(),
                plan: "fix.md".into(),
                title: "Fix it".into(),
                step: None,
                role: None,
                asks: "step 2 failed its contract 3 times".into(),
                reason: "exhausted".into(),
                about: String::new(),
                answers: vec!["retry".into(), "waive".into()],
                is_of_branches: false,
                usual: None,
                options: Vec::new(),
                leads_to: Vec::new(),
                blocks: None,
                deadline: None,
                opened_at: "2026-01-01T00:00:00Z".into(),
                answer: None,
            },
            message: None,
            unfit: None,
            contract: None,
            is_call: false,
            failure: Some(FailureView {
                attempt: 3,
                what: "contract exit 1".into(),
                tampered: Vec::new(),
                stdout_tail: "FAILED\u{1b}[2J\n".into(),
                stderr_tail: String::new(),
            }),
            shortfall: None,
            prompt: None,
            will_run: None,
            plan_text: None,
            diff: None,
            changes: Vec::new(),
            may_change: Vec::new(),
            drift: Vec::new(),
            uncommitted: Vec::new(),
            vacuous: false,
            pace: None,
            attempts: Vec::new(),
            last_words: None,
            workspace_changes: None,
            approved: None,
            rules: Vec::new(),
            votes: Vec::new(),
        };
        let text = draw_page(&page, false);
        assert!(text.contains("contract │ FAILED\n"), "{text}");
        assert!(
            text.contains("planctl approvals retry 17 --note '…'")
                && text.contains("planctl approvals waive 17")
        );
        assert!(text.contains("attempt 3: contract exit 1"));
    }
}
