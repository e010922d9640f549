//! The model's journal, and the questions it answers by reading it through.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{Digest, Level, NodeId, Outcome, Role, RunId, Signal, Timestamp};

use super::branches::Come;
use super::{Before, Context, Knowledge, Model, NodePosition};

/// One thing that happened.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// An event was accepted.
    Heard { at: Timestamp, is_running: bool, is_progress: bool },
    /// A node was entered.
    Entered { node: NodeId, refills: bool },
    /// A node is somewhere else.
    Moved { node: NodeId, to: NodePosition },
    /// An attempt began.
    Begun { node: NodeId },
    /// The harness began to part branches, or to merge them.
    Branched { node: NodeId },
    /// A rehearsal of the contract began.
    Rehearsing { node: NodeId },
    /// Something is known of the contract before the work.
    Before { node: NodeId, known: Before },
    /// An attempt failed.
    Failed { node: NodeId },
    /// A person granted an attempt.
    Granted { node: NodeId },
    /// A person has something before the node done anew, so that it has a full allowance.
    Refilled { node: NodeId },
    /// A delivery was lost.
    Lost { node: NodeId },
    /// Our own stop interrupted the work or the gate.
    Interrupted { node: NodeId },
    /// A gate was inconclusive.
    Repeated { node: NodeId },
    /// An ask was opened.
    Asked { node: NodeId, at: Timestamp },
    /// A person said something to the worker, or nothing any more.
    Noted { node: NodeId, note: Option<String> },
    /// A person chose another role.
    Reassigned { node: NodeId, role: Role },
    /// Another PACE level has the step; an agent answers there, or a person.
    Level { node: NodeId, level: Level, from: Role, by_agent: bool },
    /// The attempt whose failure the next worker is told of.
    Briefed { node: NodeId, failed: Option<usize> },
    /// An attempt was promised a part of the budget.
    Promised { node: NodeId, tokens: u64, micro_usd: u64 },
    /// A worker's use was charged.
    Charged { node: NodeId, usage: Option<(u64, u64)>, time: Duration },
    /// A judge's use was charged.
    Judged { node: NodeId, usage: (u64, u64) },
    /// A node at which nobody works was entered from another.
    EnteredFrom { node: NodeId, from: Option<(NodeId, Signal)> },
    /// The run's context came to a node, or was changed there.
    Context { node: NodeId, context: Context },
    /// Something else is known of a node.
    Known { node: NodeId, known: Option<Knowledge> },
    /// A join waits for its branches anew.
    Round { node: NodeId },
    /// A branch came into a join; at `from`, and well or not.
    Arrived { node: NodeId, branch: usize, from: NodeId, met: bool },
    /// A branch comes into a join once more.
    Forgotten { node: NodeId, branch: usize },
    /// A branch goes on at a place once it is its turn.
    Waits { node: NodeId, branch: usize, at: NodeId },
    /// It is the turn of a branch that waited.
    Called { node: NodeId, branch: usize },
    /// Another revision counts the branches of a join otherwise: these have come, or wait.
    Recounted { node: NodeId, come: Come },
    /// A fork that begins its branches one after another has begun so many.
    Begins { node: NodeId, branches: usize },
    /// A checkpoint recorded the workspace.
    Saved { node: NodeId, name: String },
    /// The outcome with which a join settles once its branches are merged; nothing, where it waits for one of them again.
    Merging { node: NodeId, outcome: Option<Outcome> },
    /// A plan within the plan is carried out by this run.
    Child { node: NodeId, run: RunId, waits: bool },
    /// The usage of a run within this one: tokens, money, metered and unmetered charges.
    ChildCharged { tokens: u64, micro_usd: u64, metered: usize, unmetered: usize },
    /// A worker proposed a step; it gave up, or did not. Nothing, once a person said what becomes of that.
    Proposed { node: NodeId, gave_up: Option<bool> },
    /// A person allowed the next attempt of a call.
    Allowed { node: NodeId },
    /// A prompt to a judge waits for a person.
    Prompted { node: NodeId, prompt: Digest },
    /// A person approved the prompt that waited.
    PromptApproved { node: NodeId },
    /// A node failed for good: in this way, so often in a row.
    Recurred { node: NodeId, how: Option<(String, usize)> },
    /// The run began anew: all earlier events at its nodes are over, but for how often each was tried and the usage.
    BeganAnew,
    /// Nobody worked on the run for this long.
    Unattended { time: Duration },
    /// The budget notice was given.
    Noticed,
    /// The budget notice may be given again.
    Unnoticed,
}

/// Everything that happened, in its order, and what of it happened at each node.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    all: Vec<Entry>,
    of: BTreeMap<NodeId, Vec<usize>>,
    /// Where the newest epoch began.
    epoch: usize,
}

impl Journal {
    pub(super) fn push(&mut self, entry: Entry) {
        if let Some(node) = entry.node() {
            let at = self.all.len();
            match self.of.get_mut(node) {
                Some(places) => places.push(at),
                None => {
                    self.of.insert(node.clone(), vec![at]);
                }
            }
        }
        if matches!(entry, Entry::BeganAnew) {
            self.epoch = self.all.len();
        }
        self.all.push(entry);
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.all.iter()
    }

    /// Returns the nodes at which something happened.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.of.keys()
    }

    /// The events at a node, in this epoch and before.
    fn ever(&self, node: &NodeId) -> impl DoubleEndedIterator<Item = &Entry> {
        self.places(node).iter().map(|at| &self.all[*at])
    }

    /// The events at a node since the run began anew; a plan is approved once.
    fn of(&self, node: &NodeId, start: &NodeId) -> impl DoubleEndedIterator<Item = &Entry> {
        let places = self.places(node);
        let old = if node == start { 0 } else { places.partition_point(|at| *at < self.epoch) };
        places[old..].iter().map(|at| &self.all[*at])
    }

    fn places(&self, node: &NodeId) -> &[usize] {
        self.of.get(node).map_or(&[][..], Vec::as_slice)
    }
}

impl Entry {
    pub(super) fn node(&self) -> Option<&NodeId> {
        match self {
            Entry::Entered { node, .. }
            | Entry::Moved { node, .. }
            | Entry::Begun { node }
            | Entry::Branched { node }
            | Entry::Rehearsing { node }
            | Entry::Before { node, .. }
            | Entry::Failed { node }
            | Entry::Granted { node }
            | Entry::Refilled { node }
            | Entry::Lost { node }
            | Entry::Interrupted { node }
            | Entry::Repeated { node }
            | Entry::Asked { node, .. }
            | Entry::Noted { node, .. }
            | Entry::Reassigned { node, .. }
            | Entry::Level { node, .. }
            | Entry::Briefed { node, .. }
            | Entry::EnteredFrom { node, .. }
            | Entry::Context { node, .. }
            | Entry::Known { node, .. }
            | Entry::Round { node }
            | Entry::Arrived { node, .. }
            | Entry::Forgotten { node, .. }
            | Entry::Waits { node, .. }
            | Entry::Recounted { node, .. }
            | Entry::Called { node, .. }
            | Entry::Begins { node, .. }
            | Entry::Saved { node, .. }
            | Entry::Merging { node, .. }
            | Entry::Child { node, .. }
            | Entry::Proposed { node, .. }
            | Entry::Allowed { node }
            | Entry::Prompted { node, .. }
            | Entry::PromptApproved { node }
            | Entry::Recurred { node, .. }
            | Entry::Promised { node, .. }
            | Entry::Judged { node, .. }
            | Entry::Charged { node, .. } => Some(node),
            Entry::Heard { .. }
            | Entry::ChildCharged { .. }
            | Entry::BeganAnew
            | Entry::Unattended { .. }
            | Entry::Noticed
            | Entry::Unnoticed => None,
        }
    }
}

impl Model {
    pub(super) fn of<'a>(&'a self, id: &'a NodeId) -> impl DoubleEndedIterator<Item = &'a Entry> {
        self.journal.of(id, self.graph.start())
    }

    /// The events at a node since its allowance was last refilled.
    fn since_refill<'a>(&'a self, id: &'a NodeId) -> impl Iterator<Item = &'a Entry> {
        let refills =
            |entry: &&Entry| matches!(entry, Entry::Entered { refills: true, .. } | Entry::Refilled { .. });
        self.of(id).rev().take_while(move |entry| !refills(entry))
    }

    /// The events at a node since its newest attempt, or its newest rehearsal, began.
    fn since_begun<'a>(&'a self, id: &'a NodeId) -> impl Iterator<Item = &'a Entry> {
        let begins = |entry: &&Entry| {
            matches!(entry, Entry::Begun { .. } | Entry::Branched { .. } | Entry::Rehearsing { .. })
        };
        self.of(id).rev().take_while(move |entry| !begins(entry))
    }

    /// Returns what the newest fitting entry of a node says.
    pub(super) fn newest<T>(&self, id: &NodeId, reads: impl Fn(&Entry) -> Option<T>) -> Option<T> {
        self.of(id).rev().find_map(reads)
    }

    pub(super) fn place(&self, id: &NodeId) -> NodePosition {
        let newest = self
            .newest(id, |entry| if let Entry::Moved { to, .. } = entry { Some(to.clone()) } else { None });
        newest.unwrap_or(NodePosition::Nowhere)
    }

    pub(super) fn visits(&self, id: &NodeId) -> usize {
        self.of(id).filter(|entry| matches!(entry, Entry::Entered { .. })).count()
    }

    pub(super) fn attempt(&self, id: &NodeId) -> usize {
        let begins = |entry: &&Entry| matches!(entry, Entry::Begun { .. } | Entry::Branched { .. });
        self.journal.ever(id).filter(begins).count()
    }

    pub(super) fn failed(&self, id: &NodeId) -> usize {
        self.since_refill(id).filter(|entry| matches!(entry, Entry::Failed { .. })).count()
    }

    pub(super) fn granted(&self, id: &NodeId) -> usize {
        self.since_refill(id).filter(|entry| matches!(entry, Entry::Granted { .. })).count()
    }

    pub(super) fn deliveries(&self, id: &NodeId) -> usize {
        self.since_begun(id).filter(|entry| matches!(entry, Entry::Lost { .. })).count()
    }

    pub(super) fn interruptions(&self, id: &NodeId) -> usize {
        self.since_begun(id).filter(|entry| matches!(entry, Entry::Interrupted { .. })).count()
    }

    pub(super) fn repeats(&self, id: &NodeId) -> usize {
        self.since_begun(id).filter(|entry| matches!(entry, Entry::Repeated { .. })).count()
    }

    pub(super) fn rehearsals(&self, id: &NodeId) -> usize {
        self.journal.ever(id).filter(|entry| matches!(entry, Entry::Rehearsing { .. })).count()
    }

    pub(super) fn before(&self, id: &NodeId) -> Before {
        let newest =
            self.newest(
                id,
                |entry| if let Entry::Before { known, .. } = entry { Some(known.clone()) } else { None },
            );
        newest.unwrap_or(Before::Unasked)
    }

    pub(super) fn role(&self, id: &NodeId) -> Option<Role> {
        self.newest(id, |entry| {
            if let Entry::Reassigned { role, .. } = entry {
                return Some(Some(role.clone()));
            }
            matches!(entry, Entry::Level { by_agent: true, .. }).then_some(None)
        })?
    }

    pub(super) fn level(&self, id: &NodeId) -> Level {
        let newest =
            self.newest(id, |entry| if let Entry::Level { level, .. } = entry { Some(*level) } else { None });
        newest.unwrap_or(Level::Primary)
    }

    /// Returns who had the step before the level that has it; nobody at the primary.
    pub(super) fn had_it_before(&self, id: &NodeId) -> Option<Role> {
        self.newest(id, |entry| {
            if let Entry::Level { level, from, .. } = entry {
                Some((*level != Level::Primary).then(|| from.clone()))
            } else {
                None
            }
        })?
    }

    pub(super) fn note(&self, id: &NodeId) -> Option<String> {
        self.newest(
            id,
            |entry| if let Entry::Noted { note, .. } = entry { Some(note.clone()) } else { None },
        )?
    }

    pub(super) fn failure_of(&self, id: &NodeId) -> Option<usize> {
        self.newest(id, |entry| if let Entry::Briefed { failed, .. } = entry { Some(*failed) } else { None })?
    }

    pub(super) fn known(&self, id: &NodeId) -> Option<Knowledge> {
        self.newest(
            id,
            |entry| if let Entry::Known { known, .. } = entry { Some(known.clone()) } else { None },
        )?
    }

    pub(super) fn saved(&self, id: &NodeId) -> Option<String> {
        self.newest(id, |entry| if let Entry::Saved { name, .. } = entry { Some(name.clone()) } else { None })
    }

    pub(super) fn merging(&self, id: &NodeId) -> Option<Outcome> {
        self.newest(id, |entry| {
            if let Entry::Merging { outcome, .. } = entry {
                return Some(*outcome);
            }
            // A fork that is entered begins all of it anew.
            matches!(entry, Entry::Round { .. }).then_some(None)
        })?
    }

    pub(super) fn child(&self, id: &NodeId) -> Option<RunId> {
        self.newest(id, |entry| if let Entry::Child { run, .. } = entry { Some(*run) } else { None })
    }

    /// Says whether the run within waits for a person, as it was heard of last.
    pub(super) fn child_waits(&self, id: &NodeId) -> bool {
        let heard = self.newest(id, |entry| {
            if let Entry::Child { waits, .. } = entry {
                return Some(*waits);
            }
            matches!(entry, Entry::Begun { .. }).then_some(false)
        });
        self.place(id) == NodePosition::Within && heard == Some(true)
    }

    /// A report that waits, with whether its worker gave up, until a person has said what becomes of the proposal in it.
    pub(super) fn proposed(&self, id: &NodeId) -> Option<bool> {
        self.newest(id, |entry| {
            if let Entry::Proposed { gave_up, .. } = entry {
                return Some(*gave_up);
            }
            // It was of an attempt that is over.
            matches!(entry, Entry::Entered { .. } | Entry::Begun { .. }).then_some(None)
        })?
    }

    /// Says whether a person allowed the next attempt of a call.
    pub(super) fn is_allowed(&self, id: &NodeId) -> bool {
        let allowed = self.newest(id, |entry| {
            let is_over = matches!(entry, Entry::Entered { .. } | Entry::Begun { .. });
            (is_over || matches!(entry, Entry::Allowed { .. })).then_some(!is_over)
        });
        allowed == Some(true)
    }

    /// Returns the prompt to the judge of the newest attempt on which a person was asked, and whether they approved it.
    pub(super) fn prompt(&self, id: &NodeId) -> Option<(Digest, bool)> {
        let is_over = |entry: &Entry| matches!(entry, Entry::Entered { .. } | Entry::Begun { .. });
        let prompt = self.newest(id, |entry| {
            if let Entry::Prompted { prompt, .. } = entry {
                return Some(Some(prompt.clone()));
            }
            is_over(entry).then_some(None)
        });
        let is_approved = self.newest(id, |entry| {
            let is_word = matches!(entry, Entry::PromptApproved { .. });
            (is_word || is_over(entry) || matches!(entry, Entry::Prompted { .. })).then_some(is_word)
        });
        Some((prompt??, is_approved == Some(true)))
    }

    /// The usage of the runs within this one: tokens and money, and how many charges of either kind.
    pub(super) fn used_within(&self) -> (u64, u64, usize, usize) {
        let mut sum = (0, 0, 0, 0);
        for entry in self.journal.iter() {
            if let Entry::ChildCharged { tokens, micro_usd, metered, unmetered } = entry {
                sum = (sum.0 + tokens, sum.1 + micro_usd, sum.2 + metered, sum.3 + unmetered);
            }
        }
        sum
    }

    pub(super) fn recurred(&self, id: &NodeId) -> Option<(String, usize)> {
        self.newest(
            id,
            |entry| if let Entry::Recurred { how, .. } = entry { Some(how.clone()) } else { None },
        )?
    }

    pub(super) fn asked_at(&self, id: &NodeId) -> Option<Timestamp> {
        self.newest(id, |entry| if let Entry::Asked { at, .. } = entry { Some(*at) } else { None })
    }

    pub(super) fn attempts_of_run(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry, Entry::Begun { .. })).count()
    }

    pub(super) fn asks(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry, Entry::Asked { .. })).count()
    }

    /// How often the run began anew.
    pub(super) fn restarts(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry, Entry::BeganAnew)).count()
    }

    pub(super) fn transitions(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry, Entry::Heard { .. })).count()
    }

    /// Returns each accepted event's time, whether something was out after it, and whether it moved the work.
    pub(super) fn heard(&self) -> impl DoubleEndedIterator<Item = (Timestamp, bool, bool)> + '_ {
        self.journal.iter().filter_map(|entry| {
            if let Entry::Heard { at, is_running, is_progress } = entry {
                Some((*at, *is_running, *is_progress))
            } else {
                None
            }
        })
    }

    /// Returns when work last moved.
    pub(super) fn moved_at(&self) -> Option<Timestamp> {
        self.heard().rev().find(|(_, _, is_progress)| *is_progress).map(|(at, ..)| at)
    }

    /// Returns the time between events for as long as something was out and somebody worked on the run.
    pub(super) fn time_of_run(&self) -> Duration {
        self.time_up_to(None)
    }

    /// Returns the run's time up to now, the stretch since the newest event included.
    pub(super) fn time_up_to_now(&self) -> Duration {
        self.time_up_to(Some((self.now, false, false)))
    }

    fn time_up_to(&self, end: Option<(Timestamp, bool, bool)>) -> Duration {
        let heard: Vec<_> = self.heard().chain(end).collect();
        let out: Duration =
            heard.windows(2).filter(|pair| pair[0].1).map(|pair| elapsed(pair[0].0, pair[1].0)).sum();
        let unattended = self.journal.iter().filter_map(|entry| {
            let Entry::Unattended { time } = entry else { return None };
            Some(*time)
        });
        out - unattended.sum::<Duration>()
    }

    pub(super) fn is_noticed(&self) -> bool {
        let newest = self.journal.iter().rev().find(|e| matches!(e, Entry::Noticed | Entry::Unnoticed));
        matches!(newest, Some(Entry::Noticed))
    }

    /// The usage of judges, of a node or of all: tokens and money.
    pub(super) fn judged<'a>(&'a self, id: Option<&'a NodeId>) -> impl Iterator<Item = (u64, u64)> + 'a {
        self.journal.iter().filter_map(move |entry| {
            let Entry::Judged { node, usage } = entry else { return None };
            id.is_none_or(|id| id == node).then_some(*usage)
        })
    }

    pub(super) fn charges_of<'a>(
        &'a self,
        id: Option<&'a NodeId>,
    ) -> impl Iterator<Item = (Option<(u64, u64)>, Duration)> + 'a {
        self.journal.iter().filter_map(move |entry| {
            if let Entry::Charged { node, usage, time } = entry
                && id.is_none_or(|id| id == node)
            {
                Some((*usage, *time))
            } else {
                None
            }
        })
    }

    pub(super) fn settled(&self, id: &NodeId) -> Option<Outcome> {
        match self.place(id) {
            NodePosition::Over(outcome) => Some(outcome),
            NodePosition::Nowhere
            | NodePosition::InLine
            | NodePosition::Saved { .. }
            | NodePosition::Forking { .. }
            | NodePosition::Within
            | NodePosition::Rehearsed
            | NodePosition::WithAgent
            | NodePosition::Resting
            | NodePosition::WithHarness { .. }
            | NodePosition::WithPerson(..) => None,
        }
    }
}

/// Returns the time from one moment to a later one; none where the clock went backwards.
pub(super) fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(to.as_micros() - from.as_micros()).unwrap_or(0))
}
