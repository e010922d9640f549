//! The answers of workers, gates and people in a run that is played more than once: the same each time.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    Answer, Ask, AskKind, At, Budget, ChildEnd, Conflict, End, Excerpt, Graph, GraphParts, HarnessResult,
    Hints, NodeKind, Outcomes, RunId, RunStatus, Spent,
};
use planctl_sim::{Dice, draw, truth};

use super::plan;

/// Plans by name; the attempts after `fails` are those whose gate is red. Then the answers, first to last.
pub const PLANS: [(&str, &str, &[&str]); 17] = [
    ("loop", "fix: task  test: call  test -on_fail-> fix  limit same 9  fails test#1  fails test#2", &[]),
    (
        "diamond",
        "a: call  d: decision  b: task  c: task  e: call  a -on_success-> d  a -on_exhaust-> d  d -always?outcome=fail-> c  d -on_success-> b  b -on_success-> e  c -on_success-> e  fails a#1",
        &[],
    ),
    (
        "fan-out of all",
        "f: fork j  a: task retry 1  b: task  c: call  x: task  j: join  end: call  f -always-> a  f -always-> b  f -always-> c  a -on_success-> x  x -on_success-> j  b -on_success-> j  c -on_success-> j  parallel 3  fails a#1",
        &[],
    ),
    (
        "fan-out of any",
        "f: fork j  a: task  b: task  c: task  j: join any  end: call  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  c -on_exhaust-> j  parallel 3  fails a#1",
        &[],
    ),
    (
        "branches one after another, in a fork of two",
        "f: fork j  a: task  g: fork k max 1  b: task  c: call  e: task  k: join  j: join partial  end: call  f -always-> a  f -always-> g  g -always-> b  g -always-> c  g -always-> e  b -on_success-> k  c -on_success-> k  c -on_exhaust-> k  e -on_success-> k  k -on_success-> j  k -on_fail-> j  a -on_success-> j  j -on_success-> end  parallel 2  fails c#1",
        &[],
    ),
    (
        "checkpoint",
        "c: checkpoint  a: task  b: call  b -on_fail-> c  limit same 9  fails b#1  fails b#2",
        &[],
    ),
    (
        "answers",
        "h: human yes no default no  a: call  k: human yes no  b: call  h -on_success@yes-> b  h -on_success@no-> a  a -on_success-> k  k -on_success@yes-> b  k -on_success@no-> a  b -on_success-> done  b -on_exhaust-> ask  fails b#1",
        &["choose no", "choose yes", "retry"],
    ),
    (
        "goal",
        "fix: task  test: call  doc: call  test -on_fail-> doc  goal test else fix  limit same 9  fails test#1",
        &[],
    ),
    (
        "resumed at its visits",
        "a: task visits 3  b: call  b -on_fail-> a  b -on_exhaust-> failed  limit same 9  fails b#1  fails b#2  resumes 2",
        &["skip", "skip"],
    ),
    (
        "one failed branch, taken up again",
        "f: fork j  a: task abort  b: task  c: task  j: join  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  parallel 3  fails a#1  resumes 1",
        &[],
    ),
    (
        "a step for another role",
        "a: task alternate strong contingent human escalate  b: task  fails a#1  fails a#2",
        &["waive"],
    ),
    (
        "epochs",
        "a: task  f: fork j  b: task  c: call  j: join  d: decision  a -on_success-> f  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  j -on_success-> d  d -always?steps.a.attempts!=3#-> a  d -on_success-> done  parallel 2  fails b#1  b -on_fail#-> a",
        &[],
    ),
    (
        "waits before retries",
        "a: task retry 2 waits standard  b: call retry 1 waits linear  fails a#1  fails a#2  fails b#1",
        &[],
    ),
    (
        "partial",
        "a: task warn  b: task  c: call  a -on_success-> b  a -always?outcome=partial_success-> c  c -on_success-> b  b -on_success-> done  fails a#1",
        &[],
    ),
    (
        "joins of nobody's fork, in a loop",
        "f: fork  2: call  3: call  4: task  j: join  k: join  7: call  f -always-> 2  f -always-> 3  f -always-> 4  2 -on_success-> j  3 -on_success-> g  g: fork  g -always-> j  g -always-> k  4 -on_success-> k  j -on_success-> l  k -on_success-> l  l: join  l -on_success-> 7  7 -on_fail-> f  7 -on_success-> done  parallel 3  fails 7#1",
        &[],
    ),
    (
        "a question that nobody answers",
        "k: human yes no  a: call  b: call  k -on_success@yes-> a  k -on_success@no-> done  k -on_fail-> b  b -on_success-> done",
        &["skip"],
    ),
    (
        "told of the run",
        "a: task told full class all  b: call  c: task told compact retry 1  a -on_success-> b  b -on_success~truncate~own-> c  c -on_success-> done  fails c#1",
        &[],
    ),
];

/// The answers of everybody.
pub struct Script {
    pub graph: Graph,
    /// How often a failed run is taken up again.
    pub resumes: usize,
    fails: Vec<String>,
    answers: Vec<String>,
    seed: Option<u64>,
}

impl Script {
    /// Reads a plan with what goes wrong in it.
    pub fn written(text: &str, answers: &[&str]) -> Script {
        let mut script = Script {
            graph: plan::read(&["x: task"]),
            resumes: 0,
            fails: Vec::new(),
            answers: Vec::new(),
            seed: None,
        };
        let mut parts = Vec::new();
        for part in text.split("  ") {
            match part.split_once(' ') {
                Some(("fails", attempt)) => script.fails.push(attempt.to_owned()),
                Some(("resumes", times)) => script.resumes = times.parse().unwrap(),
                Some(_) | None => parts.push(part),
            }
        }
        script.graph = patient(plan::read(&parts));
        script.answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        script
    }

    /// Draws a graph of nodes of all kinds.
    pub fn drawn(seed: u64) -> Script {
        let woven = (0..).map(|more| draw(&mut Dice::new(seed * 1_000 + more))).find(|plan| plan.is_woven);
        let graph = patient(woven.expect("every other one is").graph);
        Script { graph, resumes: 1, fails: Vec::new(), answers: Vec::new(), seed: Some(seed) }
    }

    /// Says whether the gate of an attempt is red.
    pub fn fails(&self, at: &At) -> bool {
        match self.seed {
            Some(seed) => truth(seed, &[at.node.as_str()], at.attempt.number().into()) % 10 < 4,
            None => self.fails.contains(&format!("{}#{}", at.node, at.attempt)),
        }
    }

    /// Returns the result of a join's merge: in a random graph the branches sometimes conflict.
    pub fn merged(&self, at: &At) -> HarnessResult {
        let hidden =
            self.seed.map(|seed| truth(seed, &["merge", at.node.as_str()], at.attempt.number().into()));
        if hidden.is_some_and(|hidden| hidden.is_multiple_of(3)) {
            return HarnessResult::Conflicted(Box::new(Conflict {
                branch: Some(0),
                files: vec!["src/lib.rs".to_owned()],
                folder: "branches".to_owned(),
                hunks: Excerpt::default(),
            }));
        }
        HarnessResult::Merged { files: 2, protected: BTreeMap::new() }
    }

    /// How the run of a plan within the plan ended.
    pub fn run_within(&self, at: &At) -> HarnessResult {
        let end = if self.fails(at) { End::Failed } else { End::Done };
        HarnessResult::Ended(Box::new(ChildEnd {
            run: RunId::from_u128(7 + u128::from(at.attempt.number())),
            name: format!("within-{}", at.attempt),
            end,
            settled: Outcomes::default(),
            spent: Spent::default(),
        }))
    }

    /// Returns a worker's hints about the next edge.
    pub fn hints(&self, at: &At) -> Option<Box<Hints>> {
        let hidden = truth(self.seed?, &["hints", at.node.as_str()], at.attempt.number().into());
        let label = ["red", "blue", "none"][usize::try_from(hidden % 3).unwrap()].to_owned();
        let context = BTreeMap::from([("x".to_owned(), (hidden / 3 % 3).to_string())]);
        let insert_step = (hidden / 9).is_multiple_of(8).then(|| "### 2. One more".to_owned());
        Some(Box::new(Hints { label: Some(label), suggested: Vec::new(), context, insert_step }))
    }

    /// Says whether nobody answers, so that the declared answer counts in time.
    pub fn leaves_to_time(&self, ask: &Ask) -> bool {
        ask.kind == AskKind::Choice && ask.message.as_deref() == Some("h?")
    }

    /// The answer to an ask, after so many others.
    pub fn answer(&self, ask: &Ask, answered: usize) -> Answer {
        if ask.kind == AskKind::Plan {
            return Answer::Approve;
        }
        if self.seed.is_some() {
            return self.drawn_answer(ask, answered);
        }
        let at = answered.checked_sub(1).expect("the plan was approved");
        // Those that time answered are no business of the list, which names them all the same.
        match self.answers.get(at).and_then(|answer| answer.split(' ').next().map(|word| (word, answer))) {
            Some(("choose", answer)) => {
                Answer::Choose { option: answer.trim_start_matches("choose ").to_owned() }
            }
            Some(("retry", _)) => Answer::Retry,
            Some(("skip", _)) => Answer::Skip,
            Some(("waive", _)) => Answer::Waive,
            other => panic!("{other:?} is no answer to {ask:?}"),
        }
    }

    fn drawn_answer(&self, ask: &Ask, answered: usize) -> Answer {
        let hidden = truth(self.seed.unwrap_or(0), &["answer"], answered as u64);
        match ask.kind {
            _ if answered > 8 => Answer::Abort,
            AskKind::Choice => {
                let options = &ask.options;
                let option = options.get(usize::try_from(hidden).unwrap_or(0) % options.len().max(1));
                Answer::Choose { option: option.cloned().unwrap_or_else(|| "blue".to_owned()) }
            }
            AskKind::Prompt | AskKind::Synthesis => Answer::Approve,
            AskKind::Insertion | AskKind::Effect => Answer::Reject,
            AskKind::Budget | AskKind::Day => Answer::Abort,
            AskKind::Plan | AskKind::Escalation | AskKind::Question => match hidden % 4 {
                0 | 1 => Answer::Retry,
                2 => Answer::Skip,
                _ => Answer::Waive,
            },
        }
    }

    /// Says whether a run that ended so is taken up again.
    pub fn may_resume(&self, status: RunStatus) -> bool {
        matches!(status, RunStatus::Ended { end: End::Failed | End::Aborted })
    }
}

/// The plan without what depends on how long a run takes: it is killed often, which takes a while.
fn patient(graph: Graph) -> Graph {
    let mut parts = GraphParts::from(graph);
    parts.budget = Budget::default();
    parts.limits.stale_after = None;
    parts.limits.interruptions = u16::MAX;
    parts.limits.attempts = 30;
    for node in &mut parts.nodes {
        if let NodeKind::Human(question) = &mut node.kind {
            // The clock answers only the asks that the script leaves to it.
            match &mut question.default {
                Some(default) if question.text == "h?" => default.after = Duration::from_millis(1),
                Some(_) | None => question.default = None,
            }
        }
    }
    Graph::new(parts).unwrap()
}
