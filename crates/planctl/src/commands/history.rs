//! `planctl events`, `why`, `audit` and `plan context`: the events of a run, and where they led.

use planctl_api::wire::{
    AuditView, ChoiceView, EventLine, LookedView, RunState, StepState, StepView, WeighedView, WhyView,
};
use planctl_view::Form;

use super::Context;
use super::run::end::trouble_line;
use super::run::until_stopped;
use super::standing::next_of;
use super::work::waiting_line;
use crate::client::{self, Client, Handle};
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::gutter;
use crate::next;
use crate::show::{self, BAD, BOLD, CARE, FAINT, GOOD, styled};
use crate::stop::Stop;

/// How many events `events --recent` prints (G-36).
pub const RECENT: u16 = 50;

/// Prints the newest events of a run.
pub async fn newest(context: &Context, run: &str, count: u16) -> Answer {
    let printer = Printer::of(context)?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let view = client.status(handle).await?;
    let (wanted, mut asked) = (usize::from(count), usize::from(count));
    let lines = loop {
        let lines = client.newest_events(handle, asked).await?;
        let is_all = lines.len() < asked;
        let shown: Vec<EventLine> = lines.into_iter().filter(|line| printer.shows(line)).collect();
        if is_all || shown.len() >= wanted {
            break shown;
        }
        asked *= 2;
    };
    printer.print(&lines[lines.len().saturating_sub(wanted)..], view.started_at.as_deref())?;
    view.worktree.as_ref().and_then(trouble_line).iter().for_each(|told| context.say(told));
    Ok(Exit::Yes)
}

/// Prints a run's history, one event per line.
pub async fn events(context: &Context, run: &str, follow: bool, since: u64) -> Answer {
    let printer = Printer::of(context)?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let mut since = since;
    let mut stop = Stop::listen()?;
    let (mut began, mut trouble) = (None, None);
    loop {
        // Each call may have to wait for a daemon that does not answer, and a person for none of them.
        let look = async {
            let lines = client.events(handle, since).await?;
            let needs_view = began.is_none() || (follow && lines.is_empty());
            let view = if needs_view { Some(client.status(handle).await?) } else { None };
            Ok((lines, view))
        };
        let (lines, view) = match until_stopped(&mut stop, look).await? {
            Ok(looked) => looked,
            Err(exit) => return Ok(exit),
        };
        began = began.or_else(|| view.as_ref().and_then(|view| view.started_at.clone()));
        if let Some(view) = &view {
            trouble = view.worktree.as_ref().and_then(trouble_line);
        }
        printer.print(&lines, began.as_deref())?;
        if let Some(last) = lines.last() {
            since = last.seq;
            continue;
        }
        if !follow || view.is_some_and(|view| view.state.is_over()) {
            trouble.iter().for_each(|told| context.say(told));
            return Ok(Exit::Yes);
        }
        if !show::flush_to_reader()? {
            return Ok(Exit::Yes);
        }
        tokio::select! {
            news = client.wait_for_news(handle, since, std::time::Duration::from_secs(1)) => news?,
            exit = stop.wait_for_signal() => return Ok(exit),
        }
    }
}

/// Prints lines of history, as sentences or as JSON.
struct Printer {
    is_json: bool,
    /// Says that lines without a sentence are printed, too.
    is_whole: bool,
}

impl Printer {
    fn of(context: &Context) -> Result<Printer, Failure> {
        let format = context.format(&[Format::Human, Format::Jsonl, Format::Json])?;
        Ok(Printer { is_json: format != Format::Human, is_whole: context.verbosity() > 0 })
    }

    fn print(&self, lines: &[EventLine], began: Option<&str>) -> Result<(), Failure> {
        let start = began.or_else(|| lines.first().map(|line| line.at.as_str())).unwrap_or_default();
        for line in lines.iter().filter(|line| self.shows(line)) {
            if self.is_json {
                show::print_json(line)?;
            } else {
                show::print(&draw_event(line, start))?;
            }
        }
        Ok(())
    }

    fn shows(&self, line: &EventLine) -> bool {
        self.is_json || self.is_whole || line.sentence.is_some()
    }
}

/// Draws a line of history: its number, the time since the run began, and what happened.
fn draw_event(line: &EventLine, start: &str) -> String {
    let words =
        line.sentence.as_ref().map_or_else(|| show::safe(&line.event), |sentence| show::safe(sentence));
    let margin = format!("{:>5}  {:>7}  ", line.seq, since_start(&line.at, start));
    format!("{}{}\n", styled(FAINT, &margin), show::wrapped(&words, margin.len()))
}

/// Returns the time from a run's beginning to a moment: `+4m31s`; a moment before has none.
fn since_start(at: &str, start: &str) -> String {
    let times = (show::unix_seconds(at), show::unix_seconds(start));
    let (Some(at), Some(start)) = times else { return String::new() };
    if at < start { String::new() } else { format!("+{}", show::seconds(at - start)) }
}

/// Returns how much a step holds its run; of equals the last one does.
fn attention(step: &StepView) -> u8 {
    match step.state {
        StepState::Waiting => 5,
        StepState::Failed => 4,
        StepState::Working | StepState::Checking => 3,
        // Its run was cancelled meanwhile.
        StepState::Pending if step.attempts > 0 => 3,
        StepState::Ready | StepState::Resting => 2,
        StepState::Passed | StepState::Skipped | StepState::Waived | StepState::Warned => 1,
        StepState::Pending => 0,
    }
}

/// Explains why a step is where it is: the one that is named, else the one that holds the run.
pub async fn why(context: &Context, run: &str, step: Option<&str>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let (handle, step) = run_and_step(&client, run, step).await?;
    let run = client.status(handle).await?;
    let holding = || run.steps.iter().max_by_key(|step| attention(step)).map(|step| step.node.as_str());
    let Some(name) = step.or_else(holding) else {
        return Err(Failure::not_found(format!("{} has no steps", show::safe(&run.run))));
    };
    let view = client.why(handle, name).await;
    let view =
        view.map_err(|failure| failure.or_list(format!("planctl status {}", show::shell_word(&run.run))))?;
    if is_json {
        show::print_json(&view)?;
        return Ok(Exit::Yes);
    }
    let is_stopped = matches!(run.state, RunState::Cancelled | RunState::Paused) && step.is_none();
    let stopped = run.reason.as_ref().filter(|_| is_stopped);
    let stopped = stopped.map(|reason| format!("{} was {}\n", show::safe(&view.run), show::safe(reason)));
    // The answer to a step's own ask, else what the run needs.
    let own = view.next.as_ref().map(|next| show::safe_block(&next::words_in(next, Some(&run.workspace))));
    let next = own.or_else(|| next_of(&run).filter(|_| step.is_none() || is_open(&view.step)));
    let next = next.map(|next| format!("{}\n", next::line(&next)));
    let waits = waiting_line(&run).filter(|_| run.state == RunState::Queued);
    let waits = waits.map(|line| format!("  {line}\n")).unwrap_or_default();
    let text = [stopped.unwrap_or_default(), draw_why(&view), waits, next.unwrap_or_default()].concat();
    show::print(&show::folded(&text))?;
    Ok(Exit::Yes)
}

/// Finds the run and the step that are meant: a number alone is a step of the newest run, as lists of steps have it.
async fn run_and_step<'w>(
    client: &Client,
    run: &'w str,
    step: Option<&'w str>,
) -> Result<(Handle, Option<&'w str>), Failure> {
    match client.find(run).await {
        Err(missing) if missing.exit == Exit::NotFound && step.is_none() && client::is_number(run) => {
            Ok((client.find("@last").await?, Some(run)))
        }
        found => Ok((found?, step)),
    }
}

/// Says whether a step was entered and is not settled.
fn is_open(step: &StepView) -> bool {
    match step.state {
        StepState::Ready
        | StepState::Working
        | StepState::Checking
        | StepState::Resting
        | StepState::Waiting
        | StepState::Failed => true,
        StepState::Pending
        | StepState::Passed
        | StepState::Skipped
        | StepState::Waived
        | StepState::Warned => false,
    }
}

/// Explains a step: its events by attempt, and under each edge that was chosen the others that there were.
fn draw_why(view: &WhyView) -> String {
    let name = match view.step.number {
        0 => show::safe(&view.step.kind),
        number => format!("step {number}"),
    };
    let title = styled(BOLD, &show::safe(&view.step.title));
    let now = planctl_server::now().as_micros() as f64 / 1e6;
    // Its run may have been stopped while it was tried.
    let is_unfinished = view.step.state == StepState::Pending && view.step.attempts > 0;
    let state = match (view.is_gone_past, is_unfinished) {
        (true, _) => "gone past".to_owned(),
        (false, true) => "not finished".to_owned(),
        (false, false) => show::step_words(&view.step, now),
    };
    let mut text = format!("{} {name} {title}: {state}{}\n", show::safe(&view.run), round_words(view));
    if let Some(level) = &view.step.pace {
        text.push_str(&format!("  {}\n", show::level(level)));
    }
    if let Some(intent) = &view.intent {
        text.push_str(&format!("  serves {}\n", show::safe(intent)));
    }
    if let Some(caveat) = show::caveat(&view.step) {
        text.push_str(&format!("  {}\n", styled(CARE, &caveat)));
    }
    let start = view.because.first().map(|because| because.at.as_str()).unwrap_or_default();
    if !start.is_empty() && !view.is_gone_past {
        text.push_str(&styled(FAINT, &format!("  first reached {}\n", show::ago(start, now))));
    }
    let mut drawn = None;
    for because in &view.because {
        if because.attempt.is_some_and(|attempt| drawn != Some(attempt)) {
            drawn = because.attempt;
            text.push_str(&attempt_heading(view, because.attempt.unwrap_or_default()));
        }
        let margin = format!("    {:>7}  ", since_start(&because.at, start));
        let words = show::safe(&about_itself(&because.text, view));
        text.push_str(&format!("{}{}\n", styled(FAINT, &margin), show::wrapped(&words, margin.len())));
        // Where only the outcome had a say, and the one other way is that of the other outcome, the sentence says it all.
        let is_notable = |choice: &&ChoiceView| choice.by != "outcome" || choice.looked.len() > 2;
        if let Some(choice) = view.choices.iter().filter(is_notable).find(|choice| choice.seq == because.seq)
        {
            choice.looked.iter().for_each(|edge| text.push_str(&draw_looked_edge(edge, &choice.by)));
        }
    }
    text
}

/// Draws the heading of an attempt: what its worker said, and the verdict.
fn attempt_heading(view: &WhyView, attempt: u16) -> String {
    let mut text = format!("  {}", styled(BOLD, &format!("attempt {attempt}")));
    let Some(known) = view.attempts.iter().rev().find(|known| known.attempt == attempt) else {
        return text + "\n";
    };
    let said = known.said.as_ref().map(|said| format!("  worker said {}", gutter::quoted(said, 80)));
    text.push_str(&said.unwrap_or_default());
    let verdict = match (known.verdict.as_deref(), &known.failure) {
        (Some("passed"), _) => Some((GOOD, "passed".to_owned())),
        (Some("tampered"), Some(failure)) => Some((BAD, show::safe(&show::brief_failure(failure)))),
        (Some(_), Some(failure)) => Some((BAD, show::safe(failure))),
        (Some(verdict), None) => Some((BAD, show::safe(verdict))),
        (None, _) => None,
    };
    if let Some((style, words)) = verdict {
        text.push_str(&format!("  → {}", styled(style, &words)));
    }
    text + "\n"
}

/// Returns a sentence about a step without the step's name, which the heading has.
fn about_itself(sentence: &str, view: &WhyView) -> String {
    let step = &view.step;
    let name = match step.number {
        0 => format!("{} \"{}\"", step.kind, step.title),
        number => format!("step {number} \"{}\"", step.title),
    };
    let shorter = sentence.replace(&format!("went to {name}"), "came here");
    let shorter = ["of", "about", "at"]
        .into_iter()
        .fold(shorter, |text, word| text.replace(&format!(" {word} {name}"), ""));
    shorter.strip_prefix(&format!("{name} ")).map(str::to_owned).unwrap_or(shorter)
}

fn round_words(view: &WhyView) -> String {
    match view.step.visits {
        0 | 1 => String::new(),
        visits => format!(", visit {visits} of {}", view.step.visits_allowed),
    }
}

/// Draws an edge that was looked at: where it leads, when it is taken, and what came of it.
fn draw_looked_edge(edge: &LookedView, by: &str) -> String {
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
    let (mark, why) = match (edge.result.as_str(), by) {
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
    audited(&client.audit(handle).await?, is_json)
}

/// Prints the result of an audit.
pub fn audited(view: &AuditView, is_json: bool) -> Answer {
    let exit = if view.is_sound() { Exit::Yes } else { Exit::No };
    if is_json {
        show::print_json(view)?;
        return Ok(exit);
    }
    let mut text = String::new();
    // A run's name counts in its own workspace.
    let has_several = view.runs.iter().any(|run| run.workspace != view.runs[0].workspace);
    for run in &view.runs {
        let head = run.head.as_ref().map(|head| format!(" · chain {}", head.get(..12).unwrap_or(head)));
        let place = run.workspace.as_ref().filter(|_| has_several).map(|place| format!(" · {place}"));
        let more = show::safe(&[head, place].into_iter().flatten().collect::<String>());
        let mark = if run.problems.is_empty() { styled(GOOD, "sound") } else { styled(BAD, "BROKEN") };
        text.push_str(&format!("{mark}  {} · {} events{more}\n", show::safe(&run.run), run.events));
        let policy = run.approved_by.as_deref().and_then(show::policy);
        if let Some(policy) = policy {
            let note = run.approval_note.as_deref().unwrap_or_default();
            text.push_str(&format!("    approved by {policy}: {}\n", show::safe(note)));
        }
        for step in run.passed.iter().filter(|step| step.grade != "proved") {
            let line =
                format!("step {} {}: {}, not proved", step.number, show::safe(&step.title), step.grade);
            text.push_str(&format!("    {}\n", styled(CARE, &line)));
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
