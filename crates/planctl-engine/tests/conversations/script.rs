//! Plays a conversation and compares each line with what the engine made of it.
//!
//! ```text
//! plan   a: task retry 1 escalate   b: task
//! -> human submits             plan asked: submitted
//! -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told a#1
//! wait 30 seconds
//! ```
//!
//! Parts of a plan and the two halves of a line stand at least two blanks apart. `approved` stands for the lines with which
//! every run begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{
    BudgetPart, Effect, End, Event, Fact, Graph, Item, ItemId, NodeId, Purpose, Refusal, Run, RunId,
    RunStatus, Scope, Timestamp, Usage, Work, advance, initial_scope,
};

use super::plan;
use super::speech::{self, Context};

/// Plays a conversation that says all of its lines.
pub fn talk(text: &str) {
    played(text);
}

/// Plays a conversation and returns its plan and what followed.
pub fn facts_after(text: &str) -> (Graph, Vec<Fact>) {
    let stage = played(text);
    let facts = stage.facts.into_iter().map(|(_, fact)| fact).collect();
    (stage.graph, facts)
}

/// Plays a conversation and returns its plan, the run at its end and what followed.
pub fn scene_after(text: &str) -> (Graph, Run, Vec<Fact>) {
    let stage = played(text);
    let facts = stage.facts.into_iter().map(|(_, fact)| fact).collect();
    (stage.graph, stage.run, facts)
}

/// Plays a conversation and returns all that there is at its end.
pub fn played(text: &str) -> Stage {
    let mut played = Vec::new();
    let mut expected = Vec::new();
    let mut stage: Option<Stage> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let halves: Vec<&str> = line.split("  ").map(str::trim).filter(|half| !half.is_empty()).collect();
        match halves.as_slice() {
            ["plan", parts @ ..] => {
                stage = Some(Stage::new(plan::read(parts)));
                continue;
            }
            [line] if line.starts_with("wait ") => {
                let seconds = plan::number(line.split_whitespace().nth(1).unwrap());
                let stage = stage.as_mut().unwrap();
                stage.now = stage.now.after(Duration::from_secs(seconds));
                continue;
            }
            [line] if line.starts_with("noted ") => {
                let words: Vec<&str> = line.split_whitespace().skip(1).collect();
                stage.as_mut().unwrap().note(&words);
                continue;
            }
            ["approved"] => {
                let stage = stage.as_mut().unwrap();
                for line in ["human submits", "human approve"] {
                    stage.hear(line);
                }
                continue;
            }
            [said, followed @ ..] => {
                let said =
                    said.strip_prefix("-> ").unwrap_or_else(|| panic!("a line begins with “->”: {line}"));
                let stage = stage.as_mut().unwrap_or_else(|| panic!("a conversation begins with its plan"));
                played.push(format!("-> {said:<40}  {}", stage.hear(said)));
                expected.push(format!("-> {said:<40}  {}", followed.join(" ")));
            }
            [] => {}
        }
    }
    assert!(
        played == expected,
        "the conversation went\n{}\nand not\n{}",
        played.join("\n"),
        expected.join("\n")
    );
    stage.unwrap()
}

pub struct Stage {
    pub graph: Graph,
    pub run: Run,
    pub now: Timestamp,
    asks: Vec<ItemId>,
    revision: u32,
    /// The usage that workers have reported so far.
    noted: BTreeMap<NodeId, Usage>,
    history: Vec<(Graph, Event, Timestamp, BTreeMap<NodeId, Usage>)>,
    pub facts: Vec<(Timestamp, Fact)>,
}

impl Stage {
    fn new(graph: Graph) -> Stage {
        let now = Timestamp::from_micros(0);
        let run = Run::new(RunId::from_u128(1), &graph, now);
        Stage {
            graph,
            run,
            now,
            asks: Vec::new(),
            revision: 1,
            noted: BTreeMap::new(),
            history: Vec::new(),
            facts: Vec::new(),
        }
    }

    fn note(&mut self, words: &[&str]) {
        let [node, used @ ..] = words else { panic!("who notes?") };
        self.noted.insert(NodeId::from(*node), speech::usage(used).unwrap());
    }

    /// Lets the engine hear a line and returns what it made of it, in words.
    fn hear(&mut self, said: &str) -> String {
        let graph = match said.strip_prefix("human revises") {
            Some(changed) => {
                self.revision += 1;
                plan::revised(&self.graph, &changed.split_whitespace().collect::<Vec<_>>(), self.revision)
            }
            None => self.graph.clone(),
        };
        let (asks, now) = (self.asks.as_slice(), self.now);
        let context = Context { graph: &self.graph, revised: &graph, run: &self.run, asks, now };
        let event = speech::read(&context, said);
        let before = self.run.clone();
        let run = self.run.clone().with_noted(self.noted.clone());
        let done = match advance(&graph, &run, &event, self.now) {
            Ok(done) => done,
            Err(refusal) => {
                assert_eq!(self.run, before, "a refusal changes nothing");
                return format!("refused: {refusal}");
            }
        };
        self.decides_alike_on_touched_records(&graph, &event, &done.run, &done.effects);
        self.graph = graph;
        self.run = done.run;
        self.noted.retain(|node, _| !done.noted.contains_key(node));
        self.history.push((self.graph.clone(), event, self.now, done.noted));
        self.facts.extend(done.facts.iter().map(|fact| (self.now, fact.clone())));
        self.fold_gives_the_same_run();
        for effect in &done.effects {
            if let Effect::Dispatch(item) = effect
                && matches!(item.work, Work::Human { .. })
            {
                self.asks.push(item.id.clone());
            }
        }
        self.words(&before, &done.facts, &done.effects)
    }

    /// The store loads the touched records alone; the engine decides the same on them.
    fn decides_alike_on_touched_records(
        &self,
        graph: &Graph,
        event: &Event,
        after: &Run,
        effects: &[Effect],
    ) {
        let mut scope = initial_scope(graph, event);
        let part = loop {
            let is_loaded = |id: &planctl_engine::NodeId, is_live: bool| match &scope {
                Scope::All => true,
                Scope::Nodes(ids) => ids.contains(id),
                Scope::Live(ids) => ids.contains(id) || is_live,
            };
            let loaded =
                self.run.records().iter().filter(|(id, record)| is_loaded(id, record.state.is_live()));
            let nodes = loaded.map(|(id, record)| (id.clone(), record.clone())).collect();
            let part = Run::from_parts(self.run.id, self.run.head.clone(), scope.clone(), nodes)
                .with_noted(self.noted.clone());
            match advance(graph, &part, event, self.now) {
                Err(Refusal::NotLoaded(more)) => scope = scope.union(more),
                decided => break decided.unwrap(),
            }
        };
        assert_eq!((&part.run.head, part.effects.as_slice()), (&after.head, effects));
        for (id, record) in part.run.records() {
            assert_eq!(Some(record), after.records().get(id), "the record of {id}");
        }
    }

    /// A run's state is the fold of its inputs (HOUSE 3.6, invariant 3).
    fn fold_gives_the_same_run(&self) {
        let (first, ..) = &self.history[0];
        let mut run = Run::new(self.run.id, first, Timestamp::from_micros(0));
        for (graph, event, at, noted) in &self.history {
            run = advance(graph, &run.with_noted(noted.clone()), event, *at).unwrap().run;
        }
        assert_eq!(run, self.run);
    }

    fn words(&self, before: &Run, facts: &[Fact], effects: &[Effect]) -> String {
        let mut words: Vec<String> = facts.iter().filter_map(fact_in_words).collect();
        words.extend(effects.iter().map(|effect| self.effect_in_words(effect)));
        if before.head.status != self.run.head.status {
            let status = match self.run.head.status {
                RunStatus::New | RunStatus::Awaiting | RunStatus::Active => None,
                RunStatus::Queued { .. } => Some("queued"),
                RunStatus::Paused => Some("paused"),
                RunStatus::Ended { end: End::Done } => Some("DONE"),
                RunStatus::Ended { end: End::Failed } => Some("FAILED"),
                RunStatus::Ended { end: End::Aborted } => Some("ABORTED"),
                RunStatus::Ended { end: End::Cancelled } => Some("CANCELLED"),
            };
            words.extend(status.map(str::to_owned));
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join("; ") }
    }

    fn effect_in_words(&self, effect: &Effect) -> String {
        match effect {
            Effect::Dispatch(item) => self.item_in_words(item),
            Effect::Withdraw(id) => {
                let words: Vec<&str> = id.as_str().split('.').collect();
                format!("{}#{} taken back from {}", words[1], words[3], words[4])
            }
            Effect::Arm { at, .. } => format!("wake at {} s", at.as_micros() / 1_000_000),
            Effect::Disarm(_) => "no wake".to_owned(),
        }
    }

    fn item_in_words(&self, item: &Item) -> String {
        let at = format!("{}#{}", item.at.node, item.at.attempt);
        let later = if item.available_at > self.now { " later" } else { "" };
        match &item.work {
            Work::Harness { purpose: Purpose::Verdict } => format!("{at} to harness{later}"),
            Work::Harness { purpose: Purpose::Record } => format!("{} to be recorded", item.at.node),
            Work::Harness { purpose: Purpose::SubPlan } => format!("{at} to its plan{later}"),
            Work::Harness { purpose: Purpose::Fork } => format!("{at} to part{later}"),
            Work::Harness { purpose: Purpose::Merge } => format!("{at} to merge{later}"),
            Work::Harness { purpose: Purpose::Restoration } => format!("{} to be restored", item.at.node),
            Work::Harness { purpose: Purpose::Rehearsal } => {
                let ordinal = item.id.as_str().rsplit('.').next().unwrap();
                format!("{} rehearsed{later}, time {ordinal}", item.at.node)
            }
            Work::Human { ask } => {
                let short = ask.shortfall.map_or_else(String::new, |short| match short.part {
                    BudgetPart::MicroSeconds => format!(", {} s short", short.needed() as f64 / 1e6),
                    BudgetPart::Tokens | BudgetPart::MicroUsd => format!(", {} short", short.needed()),
                });
                format!("{} held: {} {}{short}", item.at.node, ask.kind.as_str(), ask.reason.as_str())
            }
            Work::Agent { role, brief, .. } => {
                let mut told = BTreeSet::new();
                told.extend(
                    brief.handover.as_ref().map(|handover| {
                        format!("{} could not ({})", handover.from, handover.reason.as_str())
                    }),
                );
                told.extend(brief.failure.as_ref().map(|failure| format!("#{} failed", failure.attempt)));
                told.extend(
                    brief
                        .so_far
                        .as_ref()
                        .map(|told| format!("{} of {}", told.fidelity.as_str(), told.thread)),
                );
                told.extend(brief.note.as_ref().map(|note| format!("“{}”", note.text)));
                let told: Vec<String> = told.into_iter().collect();
                let told =
                    if told.is_empty() { String::new() } else { format!(", told {}", told.join(" and ")) };
                format!("{at} to {role}{later}{told}")
            }
        }
    }
}

/// Says what a fact adds to the effects: verdicts, settlements, edges off the beaten track.
fn fact_in_words(fact: &Fact) -> Option<String> {
    match fact {
        Fact::NodeVerified { node, attempt, verdict, vacuous } => {
            let vacuous = if *vacuous { " and proves nothing" } else { "" };
            Some(format!("{node}#{attempt} {}{vacuous}", verdict.as_str()))
        }
        Fact::NodeObserved { node, attempt, refuted, .. } => {
            Some(format!("{node}#{attempt} observed {}", if refuted.is_none() { "passed" } else { "failed" }))
        }
        Fact::NodeRehearsed { node, showed, .. } => {
            Some(format!("{node} {} before the work", showed.as_str()))
        }
        Fact::NodeSettled { node, outcome, by, .. } if node.as_str() != "start" => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            Some(format!("{node} settled {}{by}", outcome.as_str()))
        }
        Fact::PaceChanged { node, from, to, responder, .. } => {
            Some(format!("{node} from {from} to {to}, {responder}"))
        }
        Fact::BudgetNoticed { percent } => Some(format!("{percent} % used")),
        Fact::PlanExpired { turns: Some(turns), .. } => Some(format!("expired after {turns} turns")),
        Fact::PlanExpired { seconds, turns: None } => Some(format!("expired after {seconds} s")),
        Fact::PlanActivated { resumed: true } => Some("goes on".to_owned()),
        Fact::BranchesJoined { node, met, failed } => {
            Some(format!("{node} joined {met} met, {failed} failed"))
        }
        Fact::GoalUnmet { node, .. } => Some(format!("goal {node} unmet")),
        Fact::EpochBegan { epoch, node, kept, .. } => {
            let kept = if kept.is_empty() { String::new() } else { format!(", keeping {}", kept.join(" ")) };
            Some(format!("epoch {epoch} at {node}{kept}"))
        }
        Fact::FidelityReduced { node, given, .. } => Some(format!("{node} told {}", given.as_str())),
        Fact::ContextRefused { node, names, .. } => Some(format!("{node} may not note {}", names.join(", "))),
        Fact::NodeQueued { node } => Some(format!("{node} queued")),
        Fact::NodeDecided { node, met, .. } => {
            Some(format!("{node} says {}", if *met { "yes" } else { "no" }))
        }
        Fact::CheckpointSaved { node, name } => Some(format!("{node} saved as {name}")),
        Fact::CheckpointRestored { node } => Some(format!("{node} restored")),
        Fact::BranchesForked { node, base } => Some(format!("{node} forked at {base}")),
        Fact::SubPlanBegan { node, .. } => Some(format!("{node} has a run")),
        Fact::SubPlanEnded { node, end, .. } => Some(format!("{node} ended {end:?}")),
        Fact::BranchesMerged { node, files } => Some(format!("{node} merged {files} files")),
        Fact::MergeConflicted { node, files } => Some(format!("{node} conflicts in {}", files.join(", "))),
        Fact::EdgeFollowed { .. }
        | Fact::NodeSettled { .. }
        | Fact::PlanActivated { .. }
        | Fact::NodeEntered { .. }
        | Fact::RetryTriggered { .. }
        | Fact::NodeResting { .. }
        | Fact::NodeInterrupted { .. }
        | Fact::GateRepeated { .. }
        | Fact::AskOpened { .. }
        | Fact::AskAnswered { .. }
        | Fact::PlanEscalated { .. }
        | Fact::NodeReopened { .. }
        | Fact::PlanPaused { .. }
        | Fact::PlanCompleted { .. }
        | Fact::PlanFailed { .. }
        | Fact::PlanCancelled { .. } => None,
    }
}
