//! `planctl logs`: what workers and contracts printed, afterwards or as they print it, and what agents were told.

use std::time::Duration;

use planctl_api::wire::{
    AttemptView, EventLine, GateView, JudgementView, OutputLine, PromptView, RunView, StepState, WorkView,
};

use super::Context;
use super::run::until_stopped;
use super::work::Waits;
use crate::client::{Client, Handle};
use crate::failure::{Answer, Exit, Failure};
use crate::gutter::{self, Cut};
use crate::show::{self, BAD, BOLD, CARE, FAINT, GOOD, styled};
use crate::stop::Stop;

/// Which attempts and streams of a run's logs to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which {
    /// Only this step.
    pub step: Option<u32>,
    /// Only this attempt.
    pub attempt: Option<u16>,
    /// Only the contract's output.
    pub contract: bool,
    /// Only the last lines.
    pub tail: Option<usize>,
}

/// Prints what workers said and what contracts printed.
pub async fn logs(context: &Context, run: &str, which: Which) -> Answer {
    let (is_json, is_verbose) = (context.is_json()?, context.verbosity() > 0);
    let client = Client::open(context).await?;
    let view = client.logs(client.find(run).await?, which.step, which.attempt).await;
    let mut view =
        view.map_err(|failure| failure.or_list(format!("planctl status {}", show::shell_word(run))))?;
    if let Some(attempt) = which.attempt.filter(|_| view.attempts.is_empty()) {
        let run = show::safe(&view.run);
        return Err(Failure::not_found(format!("could not find attempt {attempt} in {run}"))
            .next(format!("planctl logs {}", show::shell_word(&view.run))));
    }
    if which.contract {
        for attempt in &mut view.attempts {
            attempt.work = None;
            attempt.late.clear();
        }
    }
    if is_json {
        show::print_json(&view)?;
        return Ok(Exit::Yes);
    }
    let text: String =
        view.attempts.iter().map(|attempt| draw_attempt(attempt, which.tail, is_verbose)).collect();
    show::print(&show::folded(if text.is_empty() { "nothing was said yet\n" } else { &text }))?;
    Ok(Exit::Yes)
}

/// How often is looked for what was printed.
const LOOK: Duration = Duration::from_millis(200);

/// Prints what workers and contracts print, as they print it, until the run is over.
pub async fn follow(context: &Context, run: &str, which: Which) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let mut follower = Follower { is_json, which, printed: 0, since: 0, waits: Waits::default() };
    let mut stop = Stop::listen()?;
    loop {
        let view = match until_stopped(&mut stop, follower.print_new(&client, handle)).await? {
            Ok(view) => view,
            Err(exit) => return Ok(exit),
        };
        if view.state.is_over() {
            context.say(&format!("{} is {}", show::safe(&view.run), show::run_state(view.state)));
            return Ok(Exit::Yes);
        }
        if !show::flush_to_reader()? {
            return Ok(Exit::Yes);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            exit = stop.wait_for_signal() => return Ok(exit),
        }
    }
}

struct Follower {
    is_json: bool,
    which: Which,
    /// The place in what was printed.
    printed: u64,
    /// The place in the run's history.
    since: u64,
    waits: Waits,
}

impl Follower {
    /// Prints what is new of a run, and returns where the run stood before.
    async fn print_new(&mut self, client: &Client, handle: Handle) -> Result<RunView, Failure> {
        // In this order: what was printed before an event is printed before it.
        let view = client.status(handle).await?;
        let events = client.events(handle, self.since).await?;
        loop {
            let output = client.output(handle, self.printed).await?;
            for line in
                output.lines.iter().filter(|line| self.wants(line.step, Some(line.attempt), &line.from))
            {
                if self.is_json {
                    show::print_json(line)?;
                } else {
                    show::print(&gutter::printed(&label(line), &line.text, Cut::Nothing))?;
                }
            }
            if output.next == self.printed {
                break;
            }
            self.printed = output.next;
        }
        for event in &events {
            self.since = event.seq;
            if let Some(line) = ended(event).filter(|_| !self.is_json) {
                show::print(&styled(BOLD, &line))?;
                show::print("\n")?;
            }
        }
        if let Some(line) = self.waits.update(&view).filter(|_| !self.is_json) {
            show::say(&styled(CARE, line));
        }
        Ok(view)
    }

    fn wants(&self, step: Option<u32>, attempt: Option<u16>, from: &str) -> bool {
        self.which.step.is_none_or(|wanted| step == Some(wanted))
            && self.which.attempt.is_none_or(|wanted| attempt == Some(wanted))
            && (!self.which.contract || from == "contract")
    }
}

/// Names who printed a line: `2.1 worker` is the worker of step 2 at attempt 1.
fn label(line: &OutputLine) -> String {
    let place = line.step.map_or_else(|| line.node.clone(), |step| step.to_string());
    format!("{place}.{} {}", line.attempt, line.from)
}

/// Returns what is said of the end of an attempt or of a step, while its output is followed.
fn ended(event: &EventLine) -> Option<String> {
    let is_end = matches!(
        event.event.as_str(),
        "node_verified" | "node_observed" | "node_settled" | "retry_triggered"
    );
    let is_step = event.node.as_ref().is_some_and(|node| node.bytes().all(|byte| byte.is_ascii_digit()));
    event.sentence.as_ref().filter(|_| is_end && is_step).map(|sentence| show::safe(sentence))
}

/// Prints what the agents of a run were told.
pub async fn prompts(context: &Context, run: &str, which: Which) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let list = client.prompts(client.find(run).await?, which.step, which.attempt).await?;
    if is_json {
        show::print_json(&list)?;
    } else if list.prompts.is_empty() {
        let run = show::safe(&list.run);
        show::print(&format!(
            "no prompt of {run} is kept here: none was delivered yet, or another machine delivered it\n"
        ))?;
    } else {
        show::print(&list.prompts.iter().map(draw_prompt).collect::<String>())?;
    }
    Ok(Exit::Yes)
}

fn draw_prompt(prompt: &PromptView) -> String {
    let (title, role) = (show::safe(&prompt.title), show::safe(&prompt.role));
    let heading = format!("step {} {title} · attempt {} · {role}", prompt.step, prompt.attempt);
    format!("{}\n{}\n", styled(BOLD, &heading), show::plan_block(&prompt.prompt))
}

fn draw_attempt(attempt: &AttemptView, tail: Option<usize>, is_verbose: bool) -> String {
    let mut text = format!(
        "{}\n",
        styled(
            BOLD,
            &format!(
                "step {} {} · attempt {}",
                attempt.step.number,
                show::safe(&attempt.step.title),
                attempt.attempt
            )
        )
    );
    for seen in &attempt.before {
        let style = if seen.verdict == "red" { GOOD } else { CARE };
        let shown = styled(style, &show::safe(&seen.verdict));
        draw_gate(&mut text, &format!("contract before the work: {shown}"), seen, (tail, is_verbose));
    }
    if let Some(work) = &attempt.work {
        let ending =
            work.ending.as_ref().map(|ending| format!(" · {}", show::safe(ending))).unwrap_or_default();
        let spent = spent_words(work);
        text.push_str(&format!("  worker · {}{ending}{spent}\n", show::seconds(work.seconds)));
        if let Some(why) = &work.cut_off {
            text.push_str(&format!("  {}\n", styled(CARE, &format!("cut off: {}", show::safe(why)))));
        }
        if !work.denied.is_empty() {
            let denied = show::safe(&work.denied.join(", "));
            let help = "allow it with allow = […] of the role in planctl.toml";
            text.push_str(&format!("  {}\n", styled(CARE, &format!("denied: {denied}; {help}"))));
        }
        if let Some(session) = work.session.as_ref().filter(|_| is_verbose) {
            text.push_str(&format!("  session {}\n", show::safe(session)));
        }
        draw_last_lines(&mut text, "worker", &work.text, tail);
    }
    if let Some(gate) = &attempt.gate {
        let style = if gate.verdict == "passed" { GOOD } else { BAD };
        let headline = format!("contract {}", styled(style, &show::safe(&gate.verdict)));
        draw_gate(&mut text, &headline, gate, (tail, is_verbose));
        if gate.vacuous {
            text.push_str(&format!("  {}\n", styled(CARE, &show::vacuous(StepState::Passed))));
        }
    }
    if let Some(seen) = &attempt.observed {
        let (style, verdict) = if seen.refuted.is_none() { (CARE, "passed") } else { (BAD, "failed") };
        let of =
            seen.command.as_deref().map(|command| format!(" of {}", show::safe(&show::brief(command, 60))));
        let why = seen.refuted.as_ref().unwrap_or(&seen.check);
        text.push_str(&format!(
            "  observed {}: {}{}\n",
            styled(style, verdict),
            show::safe(why),
            of.unwrap_or_default()
        ));
        draw_last_lines(&mut text, "its output", &seen.output, tail);
    }
    for late in &attempt.late {
        text.push_str(&format!(
            "  {}\n",
            styled(CARE, "worker · after its lease was over; it changed nothing")
        ));
        draw_last_lines(&mut text, "worker", &late.text, tail);
    }
    text
}

/// Says the usage that a worker reported, and the cost that was computed where it reported none.
fn spent_words(work: &WorkView) -> String {
    let Some(spent) = &work.spent else { return String::new() };
    let money = match (spent.usd > 0.0, work.estimated) {
        (true, true) => format!(" · ${:.2} estimated", spent.usd),
        (true, false) => format!(" · ${:.2}", spent.usd),
        (false, _) => String::new(),
    };
    let cached = spent.cached_tokens.filter(|cached| *cached > 0);
    let cached = cached.map(|cached| format!(" ({} cached)", show::tokens(cached))).unwrap_or_default();
    format!(" · {} tok{cached}{money}", show::tokens(spent.tokens))
}

/// Draws a judge's answer: its reason, the lines that it quotes, and what it took.
fn draw_judgement(judgement: &JudgementView) -> String {
    let said = if judgement.passes { styled(GOOD, "yes") } else { styled(BAD, "no") };
    let estimated = if judgement.tokens_estimated { ", estimated" } else { "" };
    let took = judgement.tokens.map(|tokens| format!(" ({} tokens{estimated})", show::tokens(tokens)));
    let took = took.unwrap_or_default();
    let mut text = format!("  judge {}: {said}{took}\n", show::safe(&judgement.by));
    for line in show::plan_block(judgement.reason.trim()).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    for quote in &judgement.quotes {
        text.push_str(&format!("    | {}\n", show::safe(quote)));
    }
    text
}

fn draw_gate(text: &mut String, headline: &str, gate: &GateView, (tail, is_verbose): (Option<usize>, bool)) {
    // Tier 0 confines nothing: it is the rule where no isolation was asked for.
    let tier = match gate.isolation.as_str() {
        "0" if !is_verbose => String::new(),
        tier => format!(" · isolation tier {}", show::safe(tier)),
    };
    text.push_str(&format!(
        "  {headline} · {} (expected {}) · {}{tier}\n",
        show::safe(&gate.ending),
        gate.expected,
        show::seconds(gate.seconds),
    ));
    for file in &gate.tampered {
        text.push_str(&format!("  protected file {} {}\n", show::safe(&file.path), show::safe(&file.change)));
    }
    for line in show::plan_block(gate.command.trim_end()).lines() {
        text.push_str(&styled(FAINT, &format!("    $ {line}\n")));
    }
    stream(text, "stdout", &gate.stdout, gate.stdout_bytes, tail);
    stream(text, "stderr", &gate.stderr, gate.stderr_bytes, tail);
    if let Some(judgement) = &gate.judgement {
        text.push_str(&draw_judgement(judgement));
    }
}

fn stream(text: &mut String, name: &str, content: &str, bytes: u64, tail: Option<usize>) {
    if content.is_empty() {
        return;
    }
    text.push_str(&styled(FAINT, &format!("    {name}, {bytes} bytes\n")));
    draw_last_lines(text, "contract", content, tail);
}

/// Draws the last lines of somebody's output, each with a label.
fn draw_last_lines(text: &mut String, who: &str, content: &str, tail: Option<usize>) {
    if !content.is_empty() {
        let lines = show::last_lines(content, tail.unwrap_or(usize::MAX));
        text.push_str(&gutter::printed(who, &lines.join("\n"), Cut::Nothing));
    }
}
