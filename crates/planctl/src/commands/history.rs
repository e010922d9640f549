//! `planctl events`, `why`, `audit`, `plan logs` and `plan context`: the events of a run, and where they led.

use planctl_api::wire::{
    AttemptView, ChoiceView, EventLine, GateView, LookedView, StepState, WeighedView, WhyView, WorkView,
};
use planctl_engine::view::Form;

use super::Context;
use super::run::until_stopped;
use super::work::Stop;
use crate::args::Format;
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::gutter::{self, Cut};
use crate::next;
use crate::show::{self, BAD, BOLD, CARE, FAINT, GOOD, styled};

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

/// How many events `events --recent` prints (G-36).
pub const RECENT: usize = 50;

/// Prints the newest events of a run.
pub async fn newest(context: &Context, run: &str, count: usize) -> Answer {
    let format = context.format(&[Format::Human, Format::Jsonl, Format::Json])?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    for line in &client.newest_events(handle, count).await? {
        print_line(line, format)?;
    }
    Ok(Exit::Yes)
}

fn print_line(line: &EventLine, format: Format) -> Result<(), Failure> {
    match format {
        Format::Jsonl | Format::Json => show::print_json(line),
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
        | Format::Workflow => show::print(&event_drawn(line)),
    }
}

/// Prints a run's history, one event per line.
pub async fn events(context: &Context, run: &str, follow: bool, since: u64) -> Answer {
    let format = context.format(&[Format::Human, Format::Jsonl, Format::Json])?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let mut since = since;
    let mut stop = Stop::listen()?;
    loop {
        let lines = match until_stopped(&mut stop, client.events(handle, since)).await? {
            Ok(lines) => lines,
            Err(exit) => return Ok(exit),
        };
        for line in &lines {
            since = line.seq;
            print_line(line, format)?;
        }
        if !lines.is_empty() {
            continue;
        }
        if !follow || client.status(handle).await?.state.is_over() {
            return Ok(Exit::Yes);
        }
        show::flush()?;
        tokio::select! {
            news = client.until_news(handle, since, std::time::Duration::from_secs(1)) => news?,
            exit = stop.asked() => return Ok(exit),
        }
    }
}

fn event_drawn(line: &EventLine) -> String {
    let mut place = line.node.as_ref().map(|node| format!(" {}", show::safe(node))).unwrap_or_default();
    if let Some(attempt) = line.attempt {
        place.push_str(&format!("#{attempt}"));
    }
    let data = serde_json::Value::Object(line.data.clone()).to_string();
    let data = if data == "{}" { String::new() } else { show::brief(&show::safe(&data), 160) };
    format!(
        "{:>5} {} {}{place} {}\n",
        line.seq,
        styled(FAINT, &show::safe(&line.at)),
        styled(BOLD, &show::safe(&line.event)),
        styled(FAINT, &data),
    )
}

/// Returns how much a step in this state holds its run; of equals the last one does.
fn attention(state: StepState) -> u8 {
    match state {
        StepState::Waiting => 5,
        StepState::Failed => 4,
        StepState::Working | StepState::Checking => 3,
        StepState::Ready | StepState::Resting => 2,
        StepState::Passed | StepState::Skipped | StepState::Waived | StepState::Warned => 1,
        StepState::Pending => 0,
    }
}

/// Explains why a step is where it is: the one that is named, else the one that holds the run.
pub async fn why(context: &Context, run: &str, step: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let view = match step {
        Some(step) => client.why(handle, step).await?,
        None => {
            let run = client.status(handle).await?;
            let Some(step) = run.steps.iter().max_by_key(|step| attention(step.state)) else {
                return Err(Failure::not_found(format!("{} has no steps", show::safe(&run.run))));
            };
            client.why(handle, &step.node).await?
        }
    };
    if is_json {
        show::print_json(&view)?;
        return Ok(Exit::Yes);
    }
    show::print(&why_drawn(&view))?;
    Ok(Exit::Yes)
}

/// Explains a step: its events, and under each edge that was chosen the others that there were.
fn why_drawn(view: &WhyView) -> String {
    let name = match view.step.number {
        0 => show::safe(&view.step.kind),
        number => format!("step {number}"),
    };
    let title = styled(BOLD, &show::safe(&view.step.title));
    let now = planctl_server::now().as_micros() as f64 / 1e6;
    let state = show::step_words(&view.step, now);
    let mut text = format!("{} {name} {title}: {state}{}\n", show::safe(&view.run), round_words(view));
    if let Some(level) = &view.step.pace {
        text.push_str(&format!("  {}\n", show::level(level)));
    }
    if view.step.vacuous {
        text.push_str(&format!("  {}\n", styled(CARE, &show::vacuous(view.step.state))));
    }
    for because in &view.because {
        let at = because.at.get(..19).unwrap_or(&because.at);
        text.push_str(&format!("  {} {}\n", styled(FAINT, &show::safe(at)), show::safe(&because.text)));
        // Where only the outcome had a say, and the one other way is that of the other outcome, the sentence says it all.
        let is_notable = |choice: &&ChoiceView| choice.by != "outcome" || choice.looked.len() > 2;
        if let Some(choice) = view.choices.iter().filter(is_notable).find(|choice| choice.seq == because.seq)
        {
            choice.looked.iter().for_each(|edge| text.push_str(&looked_drawn(edge, &choice.by)));
        }
    }
    if let Some(next) = &view.next {
        text.push_str(&format!("{} {}\n", styled(BOLD, "next:"), show::safe(&next::words(next))));
    }
    text
}

fn round_words(view: &WhyView) -> String {
    match view.step.visits {
        0 | 1 => String::new(),
        visits => format!(", visit {visits} of {}", view.step.visits_allowed),
    }
}

/// Draws an edge that was looked at: where it leads, when it is taken, and what came of it.
fn looked_drawn(edge: &LookedView, by: &str) -> String {
    let label = edge.label.as_ref().map(|label| format!(" \"{}\"", show::safe(label))).unwrap_or_default();
    let clauses: Vec<&str> = edge.clauses.iter().map(|clause| clause.clause.as_str()).collect();
    let when =
        if clauses.is_empty() { String::new() } else { format!(" if {}", show::safe(&clauses.join(" && "))) };
    let found = |clause: &WeighedView| {
        let key = clause.clause.split(['=', '!']).next().unwrap_or_default();
        match &clause.found {
            Some(found) => format!("{} is \"{}\"", show::safe(key), show::safe(found)),
            None => format!("nothing is known of {}", show::safe(key)),
        }
    };
    let failed: Vec<String> = edge.clauses.iter().filter(|clause| !clause.holds).map(found).collect();
    let (mark, why) = match (edge.came.as_str(), by) {
        ("taken", "condition") => ('→', "taken: its condition held".to_owned()),
        ("taken", "label") => ('→', "taken: its label was preferred".to_owned()),
        ("taken", "suggestion") => ('→', "taken: the worker suggested it".to_owned()),
        ("taken", "weight") => ('→', "taken: the heaviest, or of equals the first by name".to_owned()),
        ("taken", _) => ('→', "taken: it is for this outcome".to_owned()),
        ("other_outcome", _) => ('·', "not taken: it is for another outcome".to_owned()),
        ("condition_failed", _) => ('·', format!("not taken: {}", failed.join(", "))),
        _ => ('·', "not taken: another came first".to_owned()),
    };
    let line = format!("      {mark} {}{label} on {}{when}", show::safe(&edge.to), show::safe(&edge.on));
    let style = if mark == '→' { BOLD } else { FAINT };
    format!("{}{}\n", styled(style, &line), styled(FAINT, &format!(" · {why}")))
}

/// Prints the brief of a run for an agent that claims no items.
pub async fn brief(context: &Context, run: &str) -> Answer {
    let known = [Format::Long, Format::Compact, Format::Workflow, Format::Json];
    let format = context.format(&known)?;
    let named = [(Format::Compact, Form::Compact), (Format::Workflow, Form::Workflow)];
    let form = named.into_iter().find(|(name, _)| *name == format).map_or(Form::Long, |(_, form)| form);
    let client = Client::open(context).await?;
    let view = client.context(client.find(run).await?, form).await?;
    if format == Format::Json {
        show::print_json(&view)?;
    } else {
        show::print(&show::plan_block(&view.text))?;
    }
    Ok(Exit::Yes)
}

/// Checks the history.
pub async fn audit(context: &Context, run: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let handle = match run {
        Some(run) => Some(client.find(run).await?),
        None => None,
    };
    let view = client.audit(handle).await?;
    let exit = if view.is_sound() { Exit::Yes } else { Exit::No };
    if is_json {
        show::print_json(&view)?;
        return Ok(exit);
    }
    let mut text = String::new();
    for run in &view.runs {
        let head = run
            .head
            .as_ref()
            .map(|head| format!(" · chain {}", head.get(..12).unwrap_or(head)))
            .unwrap_or_default();
        let mark = if run.problems.is_empty() { styled(GOOD, "sound") } else { styled(BAD, "BROKEN") };
        text.push_str(&format!(
            "{mark}  {} · {} events{}\n",
            show::safe(&run.run),
            run.events,
            show::safe(&head)
        ));
        let policy = run.approved_by.as_deref().and_then(show::policy);
        if let Some(policy) = policy {
            let note = run.approval_note.as_deref().unwrap_or_default();
            text.push_str(&format!("    approved by {policy}: {}\n", show::safe(note)));
        }
        for problem in &run.problems {
            text.push_str(&format!("    {}\n", show::safe(problem)));
        }
    }
    if view.runs.is_empty() {
        text.push_str("no runs\n");
    }
    show::print(&text)?;
    Ok(exit)
}

/// Prints what workers said and what contracts printed.
pub async fn logs(context: &Context, run: &str, which: Which) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let mut view = client.logs(client.find(run).await?, which.step, which.attempt).await?;
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
    let text: String = view.attempts.iter().map(|attempt| attempt_drawn(attempt, which.tail)).collect();
    show::print(if text.is_empty() { "nothing was said yet\n" } else { &text })?;
    Ok(Exit::Yes)
}

fn attempt_drawn(attempt: &AttemptView, tail: Option<usize>) -> String {
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
        gate_drawn(&mut text, &format!("contract before the work: {shown}"), seen, tail);
    }
    if let Some(work) = &attempt.work {
        let ending =
            work.ending.as_ref().map(|ending| format!(" · {}", show::safe(ending))).unwrap_or_default();
        let spent = spent_words(work);
        text.push_str(&format!("  worker · {}{ending}{spent}\n", show::seconds(work.seconds)));
        said(&mut text, "worker", &work.text, tail);
    }
    if let Some(gate) = &attempt.gate {
        let style = if gate.verdict == "passed" { GOOD } else { BAD };
        gate_drawn(&mut text, &format!("contract {}", styled(style, &show::safe(&gate.verdict))), gate, tail);
        if gate.vacuous {
            text.push_str(&format!("  {}\n", styled(CARE, &show::vacuous(StepState::Passed))));
        }
    }
    for late in &attempt.late {
        text.push_str(&format!(
            "  {}\n",
            styled(CARE, "worker · after its lease was over; it changed nothing")
        ));
        said(&mut text, "worker", &late.text, tail);
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
    format!(" · {} tok{money}", show::tokens(spent.tokens))
}

fn gate_drawn(text: &mut String, headline: &str, gate: &GateView, tail: Option<usize>) {
    text.push_str(&format!(
        "  {headline} · {} (expected {}) · {} · isolation tier {}\n",
        show::safe(&gate.ending),
        gate.expected,
        show::seconds(gate.seconds),
        gate.isolation
    ));
    for file in &gate.tampered {
        text.push_str(&format!("  protected file {} {}\n", show::safe(&file.path), show::safe(&file.change)));
    }
    for line in show::plan_block(gate.command.trim_end()).lines() {
        text.push_str(&styled(FAINT, &format!("    $ {line}\n")));
    }
    stream(text, "stdout", &gate.stdout, gate.stdout_bytes, tail);
    stream(text, "stderr", &gate.stderr, gate.stderr_bytes, tail);
}

fn stream(text: &mut String, name: &str, content: &str, bytes: u64, tail: Option<usize>) {
    if content.is_empty() {
        return;
    }
    text.push_str(&styled(FAINT, &format!("    {name}, {bytes} bytes\n")));
    said(text, "contract", content, tail);
}

/// Draws the last lines of somebody's output, each with a label.
fn said(text: &mut String, who: &str, content: &str, tail: Option<usize>) {
    if !content.is_empty() {
        let lines = show::last_lines(content, tail.unwrap_or(usize::MAX));
        text.push_str(&gutter::labelled(who, &lines.join("\n"), Cut::Nothing));
    }
}
