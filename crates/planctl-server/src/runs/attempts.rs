//! The attempts at one step in short, each compared with those before: what people look at to see whether anything moves.

use planctl_api::wire::{AttemptSummary, SpentView, usd};
use planctl_engine::{
    AgentEvent, AgentSaid, Event, Evidence, Failing, Failure, HarnessEvent, HarnessResult, Node, Report,
    Usage, Verdict,
};

use crate::runs::sentences::last_line;
use crate::runs::words::{failure_line, verdict_word};

/// The attempts at a node, as its workers and its contract told of them.
pub(crate) struct Attempts<'a> {
    node: &'a Node,
    all: Vec<Attempt>,
}

/// One attempt, and the end of what its contract printed.
struct Attempt {
    summary: AttemptSummary,
    printed: Option<Printed>,
    report: String,
}

/// The end of a contract's output.
struct Printed {
    lines: Vec<String>,
    /// The lines with each number replaced by one sign: times and counts differ where nothing else does.
    numberless: Vec<String>,
}

impl<'a> Attempts<'a> {
    /// Begins with no attempt.
    pub(crate) fn at(node: &'a Node) -> Attempts<'a> {
        Attempts { node, all: Vec::new() }
    }

    /// Notes what a worker reported, or how a contract ended, where it is about this node.
    pub(crate) fn note(&mut self, event: &Event) {
        let Some(at) = event.at().filter(|at| at.node == self.node.id) else { return };
        let (visit, attempt) = (at.visit, at.attempt.number());
        match event {
            Event::Agent(event) => {
                let place = self.place(visit, attempt);
                if let AgentEvent { said: AgentSaid::Reported(report), .. } = event {
                    self.all[place].report(report, event.reported_usage());
                }
            }
            Event::Harness(HarnessEvent { found: HarnessResult::Evidence(evidence), .. }) => {
                let place = self.place(visit, attempt);
                let gated = self.node.gated();
                if let Some(verdict) = gated.and_then(|gated| gated.contract.judge(evidence)) {
                    self.all[place].judge(verdict, evidence, at.attempt);
                    self.compare(place);
                }
            }
            Event::Harness(_) | Event::Human(_) | Event::Clock(_) => {}
        }
    }

    /// Returns where an attempt is in the list, which gets it where it has none yet.
    fn place(&mut self, visit: u16, attempt: u16) -> usize {
        let known = |known: &Attempt| (known.summary.visit, known.summary.attempt) == (visit, attempt);
        self.all.iter().position(known).unwrap_or_else(|| {
            let summary = AttemptSummary { visit, attempt, ..AttemptSummary::default() };
            self.all.push(Attempt { summary, printed: None, report: String::new() });
            self.all.len() - 1
        })
    }

    /// Compares what a contract printed with what it printed at earlier attempts, the newest first.
    fn compare(&mut self, place: usize) {
        let (before, own) = self.all.split_at_mut(place);
        let Some(Attempt { summary, printed: Some(printed), .. }) = own.first_mut() else { return };
        let known = || before.iter().rev().filter(|known| known.summary.visit == summary.visit);
        let same = known().find(|known| {
            let is_alike = |known: &Printed| known.numberless == printed.numberless;
            known.summary.verdict == summary.verdict && known.printed.as_ref().is_some_and(is_alike)
        });
        let same = same.map(|same| same.summary.attempt);
        let last = known().next().and_then(|last| last.printed.as_ref());
        if same.is_none()
            && let Some(last) = last
        {
            // A line that is new but for its numbers says more than one in which only numbers moved.
            let all = 0..printed.lines.len();
            let is_new = |at: &usize| !last.numberless.contains(&printed.numberless[*at]);
            let has_moved = |at: &usize| !last.lines.contains(&printed.lines[*at]);
            let first = all.clone().find(is_new).or_else(|| all.clone().find(has_moved));
            summary.first_difference = first.map(|first| printed.lines[first].clone());
        }
        summary.same_as = same;
    }

    /// Returns the attempts in the order in which they began.
    pub(crate) fn summaries(self) -> Vec<AttemptSummary> {
        self.all.into_iter().map(|attempt| attempt.summary).collect()
    }

    /// Returns the end of the newest report; nothing where its worker said nothing.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.all.last().map(|newest| newest.report.clone()).filter(|report| !report.trim().is_empty())
    }
}

impl Attempt {
    fn report(&mut self, report: &Report, used: Option<&Usage>) {
        let seconds = report.duration.as_secs_f64();
        self.summary.said = last_line(&report.text);
        self.summary.seconds = Some(seconds);
        self.summary.spent = used.map(|usage| SpentView {
            tokens: usage.tokens(),
            cached_tokens: Some(usage.cached_input_tokens),
            estimated_tokens: usage.tokens_estimated.then(|| usage.tokens()),
            usd: usd(usage.micro_usd.unwrap_or(0)),
            estimated_usd: usage.estimated.then(|| usd(usage.micro_usd.unwrap_or(0))),
            seconds,
            unmetered: 0,
        });
        self.summary.estimated = used.is_some_and(|usage| usage.estimated);
        self.report = planctl_view::strip_terminal_sequences(&report.text.tail).into_owned();
    }

    fn judge(&mut self, verdict: Verdict, evidence: &Evidence, attempt: planctl_engine::Attempt) {
        self.summary.verdict = Some(verdict_word(verdict).to_owned());
        self.printed = Some(Printed::of(evidence));
        if verdict != Verdict::Passed {
            let what = Failing::from_verdict(verdict, evidence);
            self.summary.failure = Some(failure_line(&Failure::from_evidence(attempt, what, evidence)));
        }
    }
}

impl Printed {
    /// Reads the ends of both streams, errors first, as people read them.
    fn of(evidence: &Evidence) -> Printed {
        let both = [&evidence.stderr, &evidence.stdout];
        let plain = both.map(|excerpt| planctl_view::strip_terminal_sequences(&excerpt.tail));
        let lines = plain.iter().flat_map(|text| text.lines()).map(str::trim_end);
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Printed { numberless: lines.iter().map(|line| numberless(line)).collect(), lines }
    }
}

/// Replaces each run of digits by one sign.
fn numberless(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for sign in line.chars() {
        let sign = if sign.is_ascii_digit() { '#' } else { sign };
        if sign != '#' || !text.ends_with('#') {
            text.push(sign);
        }
    }
    text
}
