//! `planctl approvals …`: lists and answers the asks that wait for a person.

mod evidence;

use planctl_api::wire::calls::Approving;
use planctl_api::wire::{
    AskPage, AskView, Decided, DriftView, FailureView, HeldPromptView, OptionView, PlanWithin, WillRun,
};
use planctl_api::words::{self, answer_meaning, answer_words, asked_about, asker, blocked, counted, follows};
use planctl_engine::{Answer as Word, Budget, Role, Tier};

use super::changes::draw_lines;
use super::plan::{print_recorded, recorded_exit, recorded_word, shell_word};
use super::verify::picture::draw_judge;
use super::{Context, editing};
use crate::args::{ApprovalsCommand, AskFilter, Noted};
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::gutter::{self, Cut};
use crate::next;
use crate::show::{self, BOLD, CARE, Cell, FAINT, styled};

/// Does what was typed.
pub async fn run(context: &Context, list: AskFilter, command: Option<ApprovalsCommand>) -> Answer {
    match command {
        None => ls(context, list).await,
        Some(ApprovalsCommand::Ls(list)) => ls(context, list).await,
        Some(ApprovalsCommand::Show { id }) => show_ask(context, id).await,
        Some(ApprovalsCommand::Edit(args)) => editing::run(context, &args).await,
        Some(ApprovalsCommand::Approve { ids, note, accept_changed }) => {
            approve(context, &ids, &Approving { note, accept_changed, worker: None }).await
        }
        Some(ApprovalsCommand::Reject(noted)) => reject(context, &noted.ids, noted.note.as_deref()).await,
        Some(ApprovalsCommand::Retry(noted)) => answer_several(context, &noted, &Word::Retry).await,
        Some(ApprovalsCommand::Allow { id, files, note }) => {
            answer(context, &[id], &Word::Allow { files }, note.as_deref()).await
        }
        Some(ApprovalsCommand::Restore(noted)) => answer_several(context, &noted, &Word::Restore).await,
        Some(ApprovalsCommand::Skip(noted)) => answer_several(context, &noted, &Word::Skip).await,
        Some(ApprovalsCommand::Waive(noted)) => answer_several(context, &noted, &Word::Waive).await,
        Some(ApprovalsCommand::Cancel(noted)) => cancel(context, &noted).await,
        Some(ApprovalsCommand::Revise(noted)) => answer_several(context, &noted, &Word::Revise).await,
        Some(ApprovalsCommand::Answer { id, note }) => {
            answer(context, id.as_slice(), &Word::Reply, Some(&note)).await
        }
        Some(ApprovalsCommand::Choose { id, option, note }) => {
            answer(context, id.as_slice(), &Word::Choose { option }, note.as_deref()).await
        }
        Some(ApprovalsCommand::Reassign { id, role, note }) => {
            let word = Word::Reassign { role: Role::new(role) };
            answer(context, id.as_slice(), &word, note.as_deref()).await
        }
        Some(ApprovalsCommand::Raise { id, tokens, cost, time, note }) => {
            let word = Word::Raise { by: Budget { tokens, micro_usd: cost, time } };
            answer(context, id.as_slice(), &word, note.as_deref()).await
        }
    }
}

/// Returns the asks that are meant: those that are named, else the only open one that takes this answer.
///
/// Where several are open, the only one of this workspace is meant.
///
/// # Errors
///
/// When none is named, and no ask is open, or more than one.
pub async fn resolve_asks(client: &Client, ids: &[u64], word: Option<&str>) -> Result<Vec<u64>, Failure> {
    if !ids.is_empty() {
        return Ok(ids.to_vec());
    }
    let mut open = client.asks(None).await?.asks;
    open.retain(|ask| word.is_none_or(|word| takes(ask, word)));
    if open.len() > 1 {
        let here = client.list(false).await?.runs;
        let is_here = |ask: &AskView| here.iter().any(|run| ask.run.as_ref() == Some(&run.run));
        if open.iter().any(is_here) {
            open.retain(is_here);
        }
    }
    match open.as_slice() {
        [only] => Ok(vec![only.id]),
        [] => {
            let of = word.map(|word| format!(" that takes the answer `{word}`")).unwrap_or_default();
            Err(Failure::not_found(format!("no ask is open{of}")).next("planctl approvals"))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|ask| ask.id.to_string()).collect();
            let message = format!("{} asks are open: {}; name one", ids.len(), ids.join(", "));
            Err(Failure::usage(message).next("planctl approvals"))
        }
    }
}

/// Says whether an ask is open to this answer; a proposed step is put in by what is called an approval.
fn takes(ask: &AskView, word: &str) -> bool {
    let is_proposal = ask.kind == "insertion" && word == "approve";
    is_proposal || ask.answers.iter().any(|answer| answer == word)
}

async fn ls(context: &Context, filter: AskFilter) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let run = match &filter.run {
        Some(run) => Some(client.find(run).await?),
        None => None,
    };
    let mut list = client.asks(run).await?;
    list.asks.retain(|ask| filter.kind.as_ref().is_none_or(|kind| ask.kind == *kind));
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    if list.asks.is_empty() {
        show::print("nothing waits for you, in any folder\n")?;
        return Ok(Exit::Yes);
    }
    let now = client::now_unix_seconds();
    let has_deadlines = list.asks.iter().any(|ask| ask.deadline.is_some());
    let rows = list.asks.iter().map(|ask| {
        let step = ask.step.as_ref().map(|step| format!("{} {}", step.number, step.title));
        // A daemon of an earlier planctl says it together with the step's name.
        let reason = if ask.about.is_empty() { &ask.asks } else { &ask.about };
        let mut row: Vec<Cell> = vec![
            Cell::styled(BOLD, &ask.id.to_string()),
            ask.kind.as_str().into(),
            asker(ask).as_str().into(),
            step.unwrap_or_else(|| "-".to_owned()).into(),
            reason.as_str().into(),
            ask.blocks.map_or_else(|| "-".to_owned(), blocked).into(),
        ];
        row.extend(has_deadlines.then(|| Cell::from(deadline_cell(ask, now))));
        row.push(show::age(&ask.opened_at, now).unwrap_or_else(|| "-".to_owned()).into());
        row
    });
    let mut header = vec!["ID", "KIND", "RUN", "STEP", "REASON", "BLOCKS"];
    header.extend(has_deadlines.then_some("DEADLINE"));
    header.push("AGE");
    show::print(&show::list(&header, rows.collect()))?;
    Ok(Exit::Yes)
}

/// Says in how long a rule answers an ask, and how.
fn deadline_cell(ask: &AskView, now: f64) -> String {
    let left = ask.deadline.as_ref().and_then(|deadline| {
        let left = show::unix_seconds(&deadline.at)? - now;
        let in_time = planctl_lang::duration_words(std::time::Duration::from_secs_f64(left.max(0.0).round()));
        Some(format!("{} in {in_time}", show::safe(&deadline.answer)))
    });
    left.unwrap_or_else(|| "-".to_owned())
}

async fn show_ask(context: &Context, id: Option<u64>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    for id in resolve_asks(&client, id.as_slice(), None).await? {
        let page = client.ask(id).await?;
        if is_json {
            show::print_json(&page)?;
        } else {
            show::print(&show::folded(&draw_page(&page, context.verbosity() > 0)))?;
        }
    }
    Ok(Exit::Yes)
}

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
        text.push_str(&format!("  what the worker said: planctl logs {}\n", shell_word(&asker(ask))));
    }
    text.push_str(&draw_options(ask));
    if page.vacuous {
        let what = show::vacuous(planctl_api::wire::StepState::Waiting);
        text.push_str(&format!("  {}\n", styled(CARE, &what)));
    }
    if let Some(contract) = &page.contract {
        if !contract.command.is_empty() {
            text.push_str(&heading(&format!("contract, exit code {}", contract.exit_code)));
            indented(&mut text, "  ", &contract.command);
        }
        text.push_str(&contract.judge.as_ref().map(draw_judge).unwrap_or_default());
    }
    if let Some(failure) = &page.failure {
        text.push_str(&draw_failure(failure, &asker(ask)));
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
    text.push_str(&draw_plans(page));
    text.push_str(&draw_drift(&page.drift));
    text.push_str(&draw_uncommitted(&page.uncommitted));
    text.push_str(&draw_changes(page));
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
fn draw_failure(failure: &FailureView, run: &str) -> String {
    let mut text = heading(&failure_line(failure));
    for file in &failure.tampered {
        let line = format!("  protected file {} {}\n", show::safe(&file.path), show::safe(&file.change));
        text.push_str(&styled(CARE, &line));
        if let Some(diff) = file.diff.as_ref().filter(|diff| !diff.is_empty()) {
            text.push_str(&draw_lines(diff));
        }
    }
    for (name, tail) in [("stdout", &failure.stdout_tail), ("stderr", &failure.stderr_tail)] {
        let tail = planctl_engine::view::strip_terminal_sequences(tail);
        let lines = show::last_lines(&tail, 10);
        if !lines.is_empty() {
            let which = match lines.len() {
                1 => "last line".to_owned(),
                several => format!("last {several} lines"),
            };
            text.push_str(&styled(FAINT, &format!("  {name}, {which}\n")));
            let all = format!("planctl logs {}", shell_word(run));
            text.push_str(&gutter::printed("contract", &lines.join("\n"), Cut::BeforeEnd(&all)));
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
        "\n  if the step should change it: name {files} in the step's task: planctl approvals edit {id}\n"
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

fn heading(words: &str) -> String {
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
    if let Some(message) = page.message.as_ref().filter(|_| ask.kind != "choice") {
        let worker = page.ask.role.as_deref().unwrap_or("worker");
        let who = match ask.reason.as_str() {
            "visits_limit" if message.contains("is at its limit: visits") => "planctl",
            // The plan says why it has a person asked.
            "exhausted" | "planned" | "no_edge" | "visits_limit" => "plan",
            "stale" | "undelivered" | "interrupted" | "inconclusive" => "planctl",
            _ => worker,
        };
        let all = format!("planctl approvals show {} --json", ask.id);
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
        Some(digest) => super::verify::short_digest(digest),
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
    line("workspace", super::verify::place(&will_run.workspace, &will_run.mode, &will_run.git));
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
        super::verify::short_digest(&within.digest),
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
    format!("{}{}", heading("next:"), show::commands(&rows))
}

/// Returns what is typed after an answer and the number of its ask.
pub fn needs(answer: &str) -> &'static str {
    match answer {
        "choose" => " 'YOUR ANSWER'",
        "reassign" => " ROLE",
        "raise" => " --tokens N | --cost USD | --time DUR",
        "reject" | "retry" | "skip" | "waive" | "abort" | "answer" => " --note '…'",
        _ => "",
    }
}

/// Returns the command that gives an answer: a run is cancelled, whatever the engine calls it.
pub fn typed(answer: &str) -> String {
    shell_word(if answer == Word::Abort.word() { "cancel" } else { answer })
}

fn failure_line(failure: &FailureView) -> String {
    let what = show::safe(&failure.what);
    if failure.attempt == 0 { what } else { format!("attempt {}: {what}", failure.attempt) }
}

fn indented(text: &mut String, prefix: &str, block: &str) {
    for line in show::plan_block(block.trim_end()).lines() {
        text.push_str(&format!("  {prefix}{line}\n"));
    }
}

async fn answer_several(context: &Context, noted: &Noted, word: &Word) -> Answer {
    answer(context, &noted.ids, word, noted.note.as_deref()).await
}

/// Does not let plans run, and leaves proposed steps out.
pub async fn reject(context: &Context, ids: &[u64], note: Option<&str>) -> Answer {
    answer(context, ids, &Word::Reject, note).await
}

/// Ends the runs of asks for good.
async fn cancel(context: &Context, noted: &Noted) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    for id in resolve_asks(&client, &noted.ids, Some(Word::Abort.word())).await? {
        let ask = client.ask(id).await?.ask;
        print_recorded(context, &cancel_run_of_ask(&client, &ask, noted.note.as_deref()).await?, is_json)?;
    }
    Ok(Exit::Yes)
}

/// Cancels the run of an ask, which ends it for good whatever the ask is about.
pub async fn cancel_run_of_ask(
    client: &Client,
    ask: &AskView,
    note: Option<&str>,
) -> Result<Decided, Failure> {
    client.cancel(client::run_of(ask)?, note).await
}

/// Lets plans run, and puts proposed steps into theirs.
pub async fn approve(context: &Context, ids: &[u64], given: &Approving) -> Answer {
    let client = Client::open(context).await?;
    let ids = resolve_asks(&client, ids, Some(Word::Approve.word())).await?;
    let mut others = Vec::with_capacity(ids.len());
    for id in ids {
        let page = client.ask(id).await?;
        if page.ask.kind == "insertion" && page.ask.answer.is_none() {
            editing::insert(context, &client, &page, given.note.as_deref()).await?;
        } else {
            others.push(id);
        }
    }
    if others.is_empty() {
        Ok(Exit::Yes)
    } else {
        answer_all(context, &client, &others, &Word::Approve, given).await
    }
}

/// Approves every ask of a run that waits for an approval, one after another: each is a decision of its own.
pub async fn approve_all_of(context: &Context, run: &str, given: &Approving) -> Answer {
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let open = client.asks(Some(handle)).await?.asks;
    let ids: Vec<u64> = open.iter().filter(|ask| takes(ask, "approve")).map(|ask| ask.id).collect();
    if ids.is_empty() {
        let run = shell_word(run);
        let message = format!("no ask of {} waits for an approval", show::safe(&run));
        return Err(Failure::not_found(message).next(format!("planctl status {run}")));
    }
    approve(context, &ids, given).await
}

async fn answer(context: &Context, ids: &[u64], word: &Word, note: Option<&str>) -> Answer {
    let client = Client::open(context).await?;
    let ids = resolve_asks(&client, ids, Some(word.word())).await?;
    answer_all(context, &client, &ids, word, &Approving::with_note(note)).await
}

async fn answer_all(
    context: &Context,
    client: &Client,
    ids: &[u64],
    word: &Word,
    given: &Approving,
) -> Answer {
    let is_json = context.is_json()?;
    let (mut next, mut waits) = (None, false);
    for id in ids {
        let decided = client.answer_given(*id, word.clone(), given).await?;
        if recorded_exit(&decided) == Exit::Waiting {
            print_recorded(context, &decided, is_json)?;
            waits = true;
            continue;
        }
        match &decided.run {
            // The consequence is said below, once.
            Some(_) if !is_json => context.say(&recorded_word(&decided)),
            Some(_) | None => print_recorded(context, &decided, is_json)?,
        }
        next = decided.run_id;
    }
    let exit = if waits { Exit::Waiting } else { Exit::Yes };
    let Some(run) = next.filter(|_| !is_json) else { return Ok(exit) };
    let view = client.status(client::handle_of(&run)?).await?;
    let next = if view.state.is_over() {
        context.say(&format!("{} is {}", show::safe(&view.run), show::run_state(view.state)));
        super::plan::next_of(&view)
    } else {
        let words = super::run::after_answer(&view, word);
        Some(next::typed_here(&words, &view.workspace))
    };
    if let Some(next) = next {
        context.say(&format!("{} {next}", styled(BOLD, "next:")));
    }
    Ok(exit)
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
