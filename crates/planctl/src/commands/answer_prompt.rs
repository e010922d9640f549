//! Asks shown and answered at the terminal where a person follows the run.

use std::collections::HashSet;
use std::time::Duration;

use planctl_api::wire::calls::Approving;
use planctl_api::wire::{AskPage, AskView, RunView, StepState};
use planctl_api::words::{answer_meaning, answer_words};
use planctl_engine::{Answer as Word, Budget, Role};

use super::work::Manner;
use super::{Context, approvals, editing, run};
use crate::amounts::{parse_cost, parse_time, parse_tokens};
use crate::client::{self, Client, Handle};
use crate::decide;
use crate::failure::{Exit, Failure};
use crate::next;
use crate::progress::Progress;
use crate::show::{self, BOLD, CARE, FAINT, styled};
use crate::stop::Stop;
use crate::terminal::{Lines, Typed};

/// How often it is looked whether somebody else has answered.
const LOOK_ELSEWHERE: Duration = Duration::from_millis(500);

/// Asks a person at the terminal where the run is followed.
pub struct AnswerPrompt<'c> {
    context: &'c Context,
    lines: Lines,
    /// The asks that the person left open.
    put_off: HashSet<u64>,
    /// Says that nobody can type any more.
    has_ended: bool,
}

/// How a question that was put ended.
enum Heard {
    /// The person typed something.
    Words(String),
    /// The person answers later.
    Later,
    /// Nobody types any more: Ctrl-D, or the terminal is gone.
    Ended,
    /// The ask is not open any more.
    Closed,
    /// A signal came.
    Stopped(Exit),
}

/// How an ask was left.
enum Left {
    Answered,
    Open,
    /// Open, and nobody can answer it here.
    Ended,
    Stopped(Exit),
}

/// How an answer was taken.
enum Taken {
    /// It is recorded.
    Recorded,
    /// The person thought better of it.
    Back,
    /// The person answers later, or nobody can any more.
    Ended(Left),
}

/// A key that answers an ask.
struct AnswerKey {
    letter: char,
    /// The word of the command line.
    word: &'static str,
    /// The word as it is shown, with its letter in brackets.
    shown: &'static str,
}

const ANSWER_KEYS: [AnswerKey; 13] = [
    AnswerKey { letter: 'a', word: "approve", shown: "[a]pprove" },
    AnswerKey { letter: 'n', word: "reject", shown: "[n]o" },
    AnswerKey { letter: 'r', word: "retry", shown: "[r]etry" },
    AnswerKey { letter: 'l', word: "allow", shown: "a[l]low" },
    AnswerKey { letter: 't', word: "restore", shown: "res[t]ore" },
    AnswerKey { letter: 'a', word: "answer", shown: "[a]nswer" },
    AnswerKey { letter: 'c', word: "choose", shown: "[c]hoose" },
    AnswerKey { letter: 'r', word: "raise", shown: "[r]aise" },
    AnswerKey { letter: 's', word: "skip", shown: "[s]kip" },
    AnswerKey { letter: 'w', word: "waive", shown: "[w]aive" },
    AnswerKey { letter: 'g', word: "reassign", shown: "reassi[g]n" },
    AnswerKey { letter: 'e', word: "edit", shown: "[e]dit" },
    AnswerKey { letter: 'x', word: "abort", shown: "[x] cancel" },
];

impl<'c> AnswerPrompt<'c> {
    /// Opens a prompt where a person can be asked and waits for that; none elsewhere.
    pub fn open(context: &'c Context, manner: Manner, no_wait: bool) -> Option<AnswerPrompt<'c>> {
        let can_ask = !no_wait && manner != Manner::Jsonl && context.is_interactive();
        can_ask.then(|| AnswerPrompt {
            context,
            lines: Lines::default(),
            put_off: HashSet::new(),
            has_ended: false,
        })
    }

    /// Says that the input has ended: asks wait for an answer from elsewhere, as where no input is wanted.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Puts what a run asks to the person, one ask after the other; returns the exit of a signal that came meanwhile.
    pub async fn answer_asks(
        &mut self,
        (client, handle): (&Client, Handle),
        view: &RunView,
        progress: &mut Progress,
        signals: &mut Stop,
    ) -> Result<Option<Exit>, Failure> {
        let waits = view.waiting_on.as_ref().is_some_and(|wait| wait.id.is_some());
        if !waits && view.steps.iter().all(|step| step.state != StepState::Waiting) {
            return Ok(None);
        }
        // A person who left an ask open comes back to it with Enter.
        if !self.put_off.is_empty() && matches!(self.lines.try_next()?, Some(Typed::Line(_))) {
            self.put_off.clear();
        }
        let mut asks = open_asks(client, handle).await?;
        asks.retain(|ask| !self.put_off.contains(&ask.id));
        let count = asks.len();
        for (at, ask) in asks.iter().enumerate() {
            let page = client.ask(ask.id).await?;
            if page.ask.answer.is_some() {
                continue;
            }
            progress.make_room();
            self.lines.clear()?;
            let place = if count > 1 { format!(" · {} of {count}", at + 1) } else { String::new() };
            match self.ask(client, &page, &place, signals).await? {
                Left::Answered => {}
                Left::Open => {
                    self.put_off.insert(ask.id);
                    let later = format!("planctl approvals show {}", ask.id);
                    show::tell(&styled(FAINT, &format!("left open; Enter comes back to it, or: {later}")));
                }
                Left::Ended => {
                    self.has_ended = true;
                    let elsewhere = format!("planctl approvals show {}", ask.id);
                    show::tell(&styled(
                        FAINT,
                        &format!("the input has ended; answer from elsewhere: {elsewhere}"),
                    ));
                    return Ok(None);
                }
                Left::Stopped(exit) => return Ok(Some(exit)),
            }
        }
        Ok(None)
    }

    /// Shows an ask and takes its answer.
    async fn ask(
        &mut self,
        client: &Client,
        page: &AskPage,
        place: &str,
        signals: &mut Stop,
    ) -> Result<Left, Failure> {
        let ask = &page.ask;
        let keys = keys(ask);
        show::tell(&format!("\n{}", approvals::page::ask_drawn(page, place, false).trim_end()));
        show::tell(&keys_drawn(ask, &keys));
        let takes_words = keys.iter().any(|key| key.word == "answer" || key.word == "choose");
        let question = match (takes_words, ask.options.is_empty()) {
            (false, _) => "your answer? Enter leaves it open > ",
            (true, true) => "your answer? a letter or your own words; Enter leaves it open > ",
            (true, false) if approvals::page::are_numbered(ask) => {
                "your answer? a number, a name or a letter; Enter leaves it open > "
            }
            (true, false) => "your answer? an option or a letter; Enter leaves it open > ",
        };
        loop {
            let typed = match self.read_line(client, ask, question, signals).await? {
                Heard::Words(typed) => typed,
                Heard::Later => return Ok(Left::Open),
                Heard::Ended => return Ok(Left::Ended),
                Heard::Closed => return closed(client, ask.id).await,
                Heard::Stopped(exit) => return Ok(Left::Stopped(exit)),
            };
            let taken = match (key_meant(&keys, &typed), takes_words) {
                (Some(key), _) => self.answer_with_key(client, page, key, signals).await,
                (None, true) => self.say_words(client, ask, typed).await,
                (None, false) => {
                    show::say(&decide::letters_wanted(keys.iter().map(|key| key.letter)));
                    continue;
                }
            };
            match taken {
                Ok(Taken::Recorded) => return Ok(Left::Answered),
                Ok(Taken::Back) => {}
                Ok(Taken::Ended(left)) => return Ok(left),
                Err(failure) if is_recoverable(&failure) => {
                    if client.ask(ask.id).await?.ask.answer.is_some() {
                        return closed(client, ask.id).await;
                    }
                    next::say_failure(&failure);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes words that are no key: the answer to a worker's question, or to what the plan asks.
    async fn say_words(&self, client: &Client, ask: &AskView, typed: String) -> Result<Taken, Failure> {
        if ask.kind == "choice" {
            let word = Word::Choose { option: typed.trim().to_owned() };
            self.record(client, ask, &word, &Approving::default()).await
        } else {
            self.record(client, ask, &Word::Reply, &Approving::with_note(Some(&typed))).await
        }
    }

    /// Takes the answer of a key, after it has asked for what the answer needs.
    async fn answer_with_key(
        &mut self,
        client: &Client,
        page: &AskPage,
        key: &AnswerKey,
        signals: &mut Stop,
    ) -> Result<Taken, Failure> {
        let ask = &page.ask;
        let drift_question = format!("{} [y]es  [n]o > ", run::approval::DRIFT_QUESTION);
        let wanted = match key.word {
            "approve" => {
                if ask.kind == "insertion" {
                    editing::insert_here(self.context, client, page, None, false).await?;
                    return Ok(Taken::Recorded);
                }
                if page.drift.is_empty() {
                    return self.record(client, ask, &Word::Approve, &Approving::default()).await;
                }
                run::approval::show_drift(&page.drift);
                &drift_question
            }
            "edit" => {
                let is_changed = editing::edit_here(self.context, client, page).await?;
                return Ok(if is_changed { Taken::Recorded } else { Taken::Back });
            }
            "retry" => "a note for the worker? Enter: none > ",
            "answer" | "choose" => "your words > ",
            "reassign" => "to which role? > ",
            "raise" => amount_wanted(page),
            "skip" | "waive" => "why? > ",
            _ => "why? Enter: no note > ",
        };
        let typed = match self.read_line(client, ask, wanted, signals).await? {
            Heard::Words(typed) => typed.trim().to_owned(),
            // Some notes may be left out; the rest is what the answer is made of.
            Heard::Later if needs_words(key) => return Ok(Taken::Back),
            Heard::Later => String::new(),
            Heard::Ended => return Ok(Taken::Ended(Left::Ended)),
            Heard::Closed => return Ok(Taken::Ended(closed(client, ask.id).await?)),
            Heard::Stopped(exit) => return Ok(Taken::Ended(Left::Stopped(exit))),
        };
        let word = match key.word {
            "reject" => Word::Reject,
            "retry" => Word::Retry,
            "allow" => Word::Allow { files: Vec::new() },
            "restore" => Word::Restore,
            "answer" => Word::Reply,
            "skip" => Word::Skip,
            "waive" => Word::Waive,
            "approve" if matches!(typed.to_lowercase().as_str(), "y" | "yes") => {
                let given = run::approval::accepting(&page.drift);
                return self.record(client, ask, &Word::Approve, &given).await;
            }
            "approve" => return Ok(Taken::Back),
            "choose" => return self.say_words(client, ask, typed).await,
            "reassign" => Word::Reassign { role: Role::new(typed.clone()) },
            "raise" => Word::Raise { by: amount(page, &typed)? },
            _ => {
                let note = Some(typed.as_str()).filter(|typed| !typed.is_empty());
                let decided = approvals::cancel_run_of_ask(client, ask, note).await?;
                self.context.say(&super::recorded::recorded_word(&decided));
                return Ok(Taken::Recorded);
            }
        };
        let is_note = !matches!(key.word, "reassign" | "raise");
        let note = Some(typed.as_str()).filter(|typed| is_note && !typed.is_empty());
        self.record(client, ask, &word, &Approving::with_note(note)).await
    }

    async fn record(
        &self,
        client: &Client,
        ask: &AskView,
        word: &Word,
        given: &Approving,
    ) -> Result<Taken, Failure> {
        let decided = client.answer_given(ask.id, word.clone(), given).await?;
        self.context.say(&super::recorded::recorded_word(&decided));
        // Others have to vote; this person has answered.
        Ok(if decided.voted.is_some() { Taken::Ended(Left::Open) } else { Taken::Recorded })
    }

    /// Puts a question, and waits until something is typed or the ask is not open any more.
    async fn read_line(
        &mut self,
        client: &Client,
        ask: &AskView,
        question: &str,
        signals: &mut Stop,
    ) -> Result<Heard, Failure> {
        loop {
            self.lines.listen();
            decide::print_question(question);
            let typed = tokio::select! {
                typed = self.lines.next() => typed?,
                exit = signals.wait_for_signal() => {
                    show::say("");
                    return Ok(Heard::Stopped(exit));
                }
                closed = until_closed(client, ask) => {
                    closed?;
                    show::say("");
                    return Ok(Heard::Closed);
                }
            };
            match typed {
                Typed::Line(line) if line.trim().is_empty() => return Ok(Heard::Later),
                Typed::Line(line) => return Ok(Heard::Words(line)),
                Typed::Escape => {
                    show::say("");
                    return Ok(Heard::Later);
                }
                Typed::End => {
                    show::say("");
                    return Ok(Heard::Ended);
                }
                Typed::Key => show::say(""),
            }
        }
    }
}

/// Returns the open asks of a run, and of the runs within it.
pub async fn open_asks(client: &Client, handle: Handle) -> Result<Vec<AskView>, Failure> {
    let mut asks = Vec::new();
    for run in with_those_within(client, handle).await? {
        asks.extend(client.asks(Some(run)).await?.asks);
    }
    asks.sort_by_key(|ask| ask.id);
    Ok(asks)
}

/// Returns a run and those within it that are not over, each after the one that it is within.
pub async fn with_those_within(client: &Client, handle: Handle) -> Result<Vec<Handle>, Failure> {
    let mut runs = vec![handle];
    let mut at = 0;
    while let Some(run) = runs.get(at).copied() {
        let view = client.status(run).await?;
        for step in view.steps.iter().filter(|step| !step.state.is_settled()) {
            if let Some(inner) = &step.run {
                runs.push(client.find_in(inner, &view.workspace).await?);
            }
        }
        at += 1;
    }
    Ok(runs)
}

/// Waits until an ask is answered or taken back.
async fn until_closed(client: &Client, ask: &AskView) -> Result<(), Failure> {
    let run = client::run_of(ask)?;
    loop {
        tokio::time::sleep(LOOK_ELSEWHERE).await;
        if client.asks(Some(run)).await?.asks.iter().all(|open| open.id != ask.id) {
            return Ok(());
        }
    }
}

/// Says who answered an ask elsewhere.
async fn closed(client: &Client, id: u64) -> Result<Left, Failure> {
    let line = match client.ask(id).await?.ask.answer {
        Some(answer) => {
            let note = answer.note.map(|note| format!(": {}", show::safe(&note))).unwrap_or_default();
            let (word, by) = (show::safe(&answer.answer), show::safe(&answer.by));
            format!("ask {id} was answered meanwhile: {word} by {by}{note}")
        }
        None => format!("ask {id} was taken back meanwhile"),
    };
    show::say(&styled(CARE, &line));
    Ok(Left::Answered)
}

/// Says whether a failure is about this answer alone, so that another one may be given.
fn is_recoverable(failure: &Failure) -> bool {
    matches!(
        failure.exit,
        Exit::No
            | Exit::Usage
            | Exit::Conflict
            | Exit::Configuration
            | Exit::Cancelled
            | Exit::Denied
            | Exit::NotFound
    )
}

fn keys(ask: &AskView) -> Vec<&'static AnswerKey> {
    let words = answer_words(ask);
    ANSWER_KEYS.iter().filter(|key| words.contains(&key.word)).collect()
}

fn keys_drawn(ask: &AskView, keys: &[&AnswerKey]) -> String {
    // An option is chosen by its number or its name, which are listed above.
    let shown = keys.iter().filter(|key| key.word != "choose" || ask.options.is_empty());
    let lines = shown.map(|key| {
        let pad = " ".repeat(12_usize.saturating_sub(key.shown.len()));
        let letter = format!("{BOLD}{}{BOLD:#}", key.letter);
        let shown = key.shown.replacen(key.letter, &letter, 1);
        format!("  {shown}{pad} {}", styled(FAINT, answer_meaning(ask, key.word)))
    });
    let lines: Vec<String> = lines.collect();
    format!("\n{}", lines.join("\n"))
}

/// Says whether the answer of a key needs words.
fn needs_words(key: &AnswerKey) -> bool {
    matches!(key.word, "answer" | "choose" | "reassign" | "raise" | "skip" | "waive")
}

/// Finds the key that was typed: by its letter or its word; a yes is an approval.
fn key_meant<'w>(keys: &[&'w AnswerKey], typed: &str) -> Option<&'w AnswerKey> {
    let typed = typed.trim().to_lowercase();
    let word = match typed.as_str() {
        "y" | "yes" => "approve",
        "no" => "reject",
        "revise" => "edit",
        "cancel" => "abort",
        other => other,
    };
    keys.iter().find(|key| word == key.word || word == key.letter.to_string()).copied()
}

fn part_that_is_short(page: &AskPage) -> &str {
    page.shortfall.as_ref().map_or("tokens", |short| short.part.as_str())
}

fn amount_wanted(page: &AskPage) -> &'static str {
    match part_that_is_short(page) {
        "usd" => "by how many dollars? for example 2.50 > ",
        "seconds" => "by how much time? for example 30m > ",
        _ => "by how many tokens? for example 50k > ",
    }
}

fn amount(page: &AskPage, typed: &str) -> Result<Budget, Failure> {
    let mut by = Budget::default();
    let read = match part_that_is_short(page) {
        "usd" => parse_cost(typed).map(|cost| by.micro_usd = Some(cost)),
        "seconds" => parse_time(typed).map(|time| by.time = Some(time)),
        _ => parse_tokens(typed).map(|tokens| by.tokens = Some(tokens)),
    };
    read.map(|()| by).map_err(|why| Failure::usage(format!("could not read `{}`: {why}", show::safe(typed))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ways_of_answering_one_ask_have_the_same_letter() {
        use planctl_engine::AskKind::{Budget, Choice, Effect, Escalation, Insertion, Plan, Question};
        for kind in [Plan, Escalation, Budget, Question, Choice, Insertion, Effect] {
            let words = kind.answers();
            let mut letters: Vec<char> =
                ANSWER_KEYS.iter().filter(|key| words.contains(&key.word)).map(|key| key.letter).collect();
            letters.extend(ANSWER_KEYS.iter().filter(|key| key.word == "edit").map(|key| key.letter));
            let count = letters.len();
            letters.sort_unstable();
            letters.dedup();
            assert_eq!(letters.len(), count, "{kind:?}");
        }
        for key in &ANSWER_KEYS {
            assert!(key.shown.contains(&format!("[{}]", key.letter)), "{}", key.shown);
        }
    }
}
