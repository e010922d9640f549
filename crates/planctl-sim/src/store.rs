//! A model of the store: rows, leases with generations, command ids, and the steps of `apply` in their order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use planctl_engine::{
    Advance, Effect, Event, Fact, Graph, Head, Item, ItemId, NodeId, NodeState, Record, Refusal, Run, RunId,
    RunStatus, Scope, TimerId, Timestamp, Usage, Work, advance, initial_scope,
};

use crate::database::{Database, Workspace};
use crate::faults::Flaw;
use crate::plans::Plan;

/// The tables of one run.
pub struct Store {
    pub run: RunId,
    /// Every revision; the newest is in force.
    pub plans: Vec<Plan>,
    pub head: Head,
    pub nodes: BTreeMap<NodeId, Record>,
    /// The same run, never taken apart: the parts must add up to it.
    pub whole: Run,
    pub items: BTreeMap<ItemId, Row>,
    pub timers: BTreeMap<TimerId, Timestamp>,
    pub history: Vec<Entry>,
    pub commands: BTreeMap<String, usize>,
    pub workspace: Workspace,
    pub database: Rc<RefCell<Database>>,
    /// A deliberate error of this store, which a test wants to be found.
    pub flaw: Option<Flaw>,
}

/// One accepted input and what followed.
pub struct Entry {
    pub event: Event,
    pub at: Timestamp,
    /// Which revision was in force.
    pub plan: usize,
    pub facts: Vec<Fact>,
    /// Usage that was charged because its item was taken back.
    pub noted: BTreeMap<NodeId, Usage>,
}

/// One row of the queue.
pub struct Row {
    pub item: Item,
    pub place: RowPlace,
    pub generation: u64,
    /// Usage that its holder has told so far.
    pub used: Option<Usage>,
}

/// Whether an item can be claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowPlace {
    Ready,
    Leased(Lease),
    /// The lease was revoked, and its holder has not said yet that it ended.
    Revoked(Lease),
    Closed,
}

/// The right to answer for an item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    pub until: Timestamp,
    pub hard_deadline: Timestamp,
    /// Held by one of planctl's own processes, whose stop is an interruption.
    pub is_own: bool,
}

impl Lease {
    fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now || self.hard_deadline <= now
    }
}

/// The answer to the renewal of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renewal {
    Extended,
    Revoked,
    Lost,
}

/// The right by which a caller is heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The live lease of an item.
    Lease { item: ItemId, generation: u64 },
    /// The lease ran out, as the sweep saw it.
    Sweep { item: ItemId, generation: u64 },
    /// The timer's row says so.
    Timer { timer: TimerId, due: Timestamp },
    /// None is needed.
    Anyone,
}

/// One call, under an id that its caller chose.
#[derive(Clone)]
pub struct Command {
    pub key: String,
    pub event: Event,
    pub proof: Proof,
    pub revision: Option<Plan>,
    /// The caller takes the gate along that its news brings.
    pub takes_gate: bool,
}

/// The answer to a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answered {
    Accepted,
    Duplicate,
    NoLease,
    /// Another run has the workspace, or somebody works there whose lease was revoked.
    Busy,
    Refused(Refusal),
}

impl Store {
    pub fn new(
        run: RunId,
        plan: Plan,
        now: Timestamp,
        workspace: Workspace,
        database: Rc<RefCell<Database>>,
    ) -> Store {
        let whole = Run::new(run, &plan.graph, now);
        Store {
            run,
            plans: vec![plan],
            head: whole.head.clone(),
            nodes: BTreeMap::new(),
            whole,
            items: BTreeMap::new(),
            timers: BTreeMap::new(),
            history: Vec::new(),
            commands: BTreeMap::new(),
            workspace,
            database,
            flaw: None,
        }
    }

    pub fn plan(&self) -> &Plan {
        self.plans.last().expect("a run has a revision")
    }

    pub fn open_items(&self) -> impl Iterator<Item = &Row> {
        self.items.values().filter(|row| matches!(row.place, RowPlace::Ready | RowPlace::Leased(_)))
    }

    /// Returns the rows of holders whose leases were revoked and who have not ended.
    pub fn revoked(&self) -> impl Iterator<Item = (&Row, &Lease)> {
        self.items.values().filter_map(|row| match &row.place {
            RowPlace::Revoked(lease) => Some((row, lease)),
            RowPlace::Ready | RowPlace::Leased(_) | RowPlace::Closed => None,
        })
    }

    fn is_held_back(&self) -> bool {
        self.revoked().next().is_some()
    }

    /// Returns the ask that waits for a person.
    pub fn open_ask(&self) -> Option<&Item> {
        self.open_items().map(|row| &row.item).find(|item| matches!(item.work, Work::Human { .. }))
    }

    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Returns the locks that the holder of an item has to itself: those of its step, whether it works or checks.
    pub fn locks(&self, item: &Item) -> Vec<String> {
        if matches!(item.work, Work::Harness { .. }) && self.has(Flaw::GatesUnlocked) {
            return Vec::new();
        }
        self.plan().graph.task(&item.at.node).map_or(Vec::new(), |task| task.locks.clone())
    }

    /// Says whether somebody may have an item now.
    pub fn is_claimable(&self, row: &Row, now: Timestamp) -> bool {
        row.place == RowPlace::Ready
            && row.item.available_at <= now
            && (!self.is_held_back() || self.has(Flaw::RevokedPassedOver))
            && (self.has(Flaw::LocksIgnored)
                || self.database.borrow().are_free(&self.locks(&row.item), self.run, &row.item.at.node))
    }

    /// Says whether a queued run may begin, or go on: nobody else has its workspace, and nobody is left there.
    pub fn is_admissible(&self) -> bool {
        let owner = self.database.borrow().workspaces.get(&self.workspace).copied();
        owner.is_none()
    }

    /// Says whether a call was accepted before.
    pub fn knows(&self, key: &str) -> bool {
        self.commands.contains_key(key) && !self.has(Flaw::CommandsForgotten)
    }

    /// Says whether the sweep looks at an item.
    pub fn sweeps(&self, row: &Row) -> bool {
        !(self.has(Flaw::GatesNotSwept) && matches!(row.item.work, Work::Harness { .. }))
    }

    /// Says whether a proof holds.
    pub fn holds(&self, proof: &Proof, now: Timestamp) -> bool {
        match proof {
            Proof::Anyone => true,
            Proof::Timer { timer, due } => self.timers.get(timer) == Some(due) && *due <= now,
            Proof::Lease { item, generation } => self.lease(item, *generation).is_some(),
            Proof::Sweep { item, generation } => {
                self.lease(item, *generation).is_some_and(|lease| lease.until <= now)
            }
        }
    }

    fn lease(&self, item: &ItemId, generation: u64) -> Option<&Lease> {
        match self.items.get(item) {
            Some(Row { place: RowPlace::Leased(lease), generation: live, .. })
                if *live == generation || self.has(Flaw::GenerationIgnored) =>
            {
                Some(lease)
            }
            Some(_) | None => None,
        }
    }

    /// Leases a ready item to a caller and returns the generation.
    pub fn claim(&mut self, id: &ItemId, lease: Lease, now: Timestamp) -> Option<u64> {
        let row = self.items.get(id)?;
        if !self.is_claimable(row, now) {
            return None;
        }
        self.lease_to(id, lease)
    }

    /// Leases a gate to the caller whose news brought it, in the same transaction.
    pub fn take(&mut self, id: &ItemId, lease: Lease, now: Timestamp) -> Option<u64> {
        if self.has(Flaw::TakenBesideRevoked) {
            return self.lease_to(id, lease);
        }
        self.claim(id, lease, now)
    }

    fn lease_to(&mut self, id: &ItemId, lease: Lease) -> Option<u64> {
        let locks = self.locks(&self.items.get(id)?.item);
        let run = self.run;
        let row = self.items.get_mut(id)?;
        let owner = (run, row.item.at.node.clone());
        self.database.borrow_mut().locks.extend(locks.into_iter().map(|lock| (lock, owner.clone())));
        row.place = RowPlace::Leased(lease);
        row.used = None;
        row.generation += u64::from(self.flaw != Some(Flaw::GenerationKept));
        Some(row.generation)
    }

    /// Extends a live lease, and says of another one whether it was revoked.
    pub fn renew(&mut self, id: &ItemId, generation: u64, until: Timestamp) -> Renewal {
        let Some(row) = self.items.get_mut(id).filter(|row| row.generation == generation) else {
            return Renewal::Lost;
        };
        match &mut row.place {
            RowPlace::Leased(lease) => {
                lease.until = lease.until.max(until);
                Renewal::Extended
            }
            RowPlace::Revoked(_) => Renewal::Revoked,
            RowPlace::Ready | RowPlace::Closed => Renewal::Lost,
        }
    }

    /// Hears from the holder of a revoked lease that it has ended; of any other lease, nothing.
    pub fn acknowledge(&mut self, id: &ItemId, generation: u64) -> bool {
        let is_any = self.has(Flaw::AnyoneAcknowledges);
        let is_it = |row: &&Row| {
            matches!(row.place, RowPlace::Revoked(_)) && (row.generation == generation || is_any)
        };
        let is_known = self.items.get(id).filter(is_it).is_some();
        if is_known {
            self.release(&id.clone());
        }
        is_known
    }

    /// Names a revoked lease whose time is over.
    pub fn lost(&self, now: Timestamp) -> Option<ItemId> {
        let is_lost = |lease: &Lease| lease.is_over(now) && !self.has(Flaw::RevokedKept);
        self.revoked().find(|(_, lease)| is_lost(lease)).map(|(row, _)| row.item.id.clone())
    }

    /// Releases what a revoked lease stood for: the locks of its node, and the workspace where the run is not active.
    pub fn release(&mut self, id: &ItemId) {
        let Some(row) = self.items.get_mut(id) else { return };
        row.place = RowPlace::Closed;
        let node = row.item.at.node.clone();
        if !self.has(Flaw::RevokedLocksKept) {
            self.database.borrow_mut().free(self.run, &node);
        }
        self.keep_or_leave_workspace();
    }

    /// Keeps the workspace while the run is active or a revoked holder of it is left.
    fn keep_or_leave_workspace(&mut self) {
        let is_left_over = self.is_held_back() && !self.has(Flaw::WorkspaceLeftEarly);
        let mut database = self.database.borrow_mut();
        if self.head.status == RunStatus::Active || is_left_over {
            database.workspaces.entry(self.workspace).or_insert(self.run);
        } else if database.workspaces.get(&self.workspace) == Some(&self.run) {
            database.workspaces.remove(&self.workspace);
        }
    }

    /// Gives back the locks of nodes that an event changed and at which nobody works or checks any more.
    fn free_locks(&mut self, before: &BTreeMap<NodeId, Record>) {
        let is_left = |node: &NodeId| {
            !self.has(Flaw::LocksFreedAtRevocation)
                && self.revoked().any(|(row, _)| row.item.at.node == *node)
        };
        let is_freed = |(node, record): &(&NodeId, &Record)| {
            before.get(*node) != Some(*record)
                && !matches!(record.state, NodeState::Checking { .. })
                && !is_left(node)
        };
        for (node, _) in self.nodes.iter().filter(is_freed) {
            if !self.has(Flaw::LocksKept) {
                self.database.borrow_mut().free(self.run, node);
            }
        }
    }

    /// Keeps with a live lease what its holder says it has used so far.
    pub fn note(&mut self, id: &ItemId, generation: u64, usage: Usage) {
        if let Some(row) = self.items.get_mut(id)
            && row.generation == generation
            && matches!(row.place, RowPlace::Leased(_))
        {
            row.used = Some(usage);
        }
    }

    /// Returns what the holders of items said so far that they use, but for the one that an event comes from, by node.
    pub fn noted_beside(&self, event: &Event) -> BTreeMap<NodeId, Usage> {
        let own = event.at().map(|at| &at.node);
        let others = self
            .open_items()
            .filter(|row| matches!(row.place, RowPlace::Leased(_)) && Some(&row.item.at.node) != own);
        others.filter_map(|row| Some((row.item.at.node.clone(), row.used.clone()?))).collect()
    }

    /// Decides as the store does, on the touched rows alone, and says where that differs from deciding on all of them.
    ///
    /// # Errors
    ///
    /// Tells the difference.
    pub fn decide(
        &self,
        graph: &Graph,
        event: &Event,
        now: Timestamp,
    ) -> Result<Result<(Advance, Advance), Refusal>, String> {
        let noted = self.noted_beside(event);
        let whole = advance(graph, &self.whole.clone().with_noted(noted), event, now);
        let part = self.decide_on_part(graph, event, now)?;
        match (part, whole) {
            (Ok(part), Ok(whole)) => {
                let mut nodes = self.nodes.clone();
                nodes.extend(part.run.records().clone());
                if (&part.effects, &part.facts, &part.run.head)
                    != (&whole.effects, &whole.facts, &whole.run.head)
                    || entered(&nodes) != entered(whole.run.records())
                {
                    return Err(format!(
                        "deciding on the touched rows differs:\n{:?}\n{:?}\nthan on all:\n{:?}\n{:?}",
                        part.run, part.facts, whole.run, whole.facts
                    ));
                }
                Ok(Ok((part, whole)))
            }
            (Err(part), Err(whole)) if part == whole => Ok(Err(part)),
            (part, whole) => Err(format!(
                "touched rows give {:?}, all give {:?}",
                part.map(|advance| advance.facts),
                whole.map(|advance| advance.facts)
            )),
        }
    }

    fn decide_on_part(
        &self,
        graph: &Graph,
        event: &Event,
        now: Timestamp,
    ) -> Result<Result<Advance, Refusal>, String> {
        let mut scope = initial_scope(graph, event);
        for _ in 0..graph.nodes().len() + 3 {
            let nodes = self.load(&scope);
            let loaded = nodes.len();
            let run = Run::from_parts(self.run, self.head.clone(), scope.clone(), nodes)
                .with_noted(self.noted_beside(event));
            match advance(graph, &run, event, now) {
                Err(Refusal::NotLoaded(more)) => scope = scope.union(more),
                Ok(decided) if event.at().is_some() && !self.plan().is_woven => {
                    let edges = graph.nodes().iter().map(|node| graph.edges_from(&node.id).len()).max();
                    let followed =
                        decided.facts.iter().filter(|fact| matches!(fact, Fact::EdgeFollowed { .. }));
                    let most = (1 + edges.unwrap_or(0)) * (1 + followed.count());
                    if loaded > most {
                        return Err(format!("{loaded} rows are read where {most} could be touched"));
                    }
                    return Ok(Ok(decided));
                }
                decided => return Ok(decided),
            }
        }
        Err(format!("the engine asks for more and more rows: {scope:?}"))
    }

    fn load(&self, scope: &Scope) -> BTreeMap<NodeId, Record> {
        let is_loaded = |(id, record): &(&NodeId, &Record)| match scope {
            Scope::All => true,
            Scope::Nodes(ids) => ids.contains(*id),
            Scope::Live(ids) => ids.contains(*id) || record.state.is_live(),
        };
        self.nodes.iter().filter(is_loaded).map(|(id, record)| (id.clone(), record.clone())).collect()
    }

    /// Writes what was decided.
    ///
    /// # Errors
    ///
    /// Tells which row does not fit.
    pub fn write(
        &mut self,
        command: &Command,
        part: Advance,
        whole: Advance,
        now: Timestamp,
    ) -> Result<(), String> {
        if let Some(plan) = &command.revision {
            self.plans.push(plan.clone());
        }
        self.history.push(Entry {
            event: command.event.clone(),
            at: now,
            plan: self.plans.len() - 1,
            facts: part.facts,
            noted: part.noted,
        });
        self.commands.insert(command.key.clone(), self.history.len());
        self.head = part.run.head.clone();
        // Where nobody has a lock, nobody gives one back.
        let before = (!self.database.borrow().locks.is_empty()).then(|| self.nodes.clone());
        self.nodes.extend(part.run.records().clone());
        self.whole = whole.run;
        let again: BTreeSet<ItemId> = part
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Dispatch(item) => Some(item.id.clone()),
                Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
            })
            .collect();
        if let Some(id) = self.answered_by(command)
            && !again.contains(&id)
            && let Some(row) = self.items.get_mut(&id)
        {
            row.place = RowPlace::Closed;
        }
        // A timer that came due is over, unless it is armed anew.
        if let Event::Clock(planctl_engine::ClockEvent::Due { timer }) = &command.event {
            self.timers.remove(timer);
        }
        part.effects.into_iter().try_for_each(|effect| self.carry_out(effect, now))?;
        if let Some(before) = before {
            self.free_locks(&before);
        }
        self.keep_or_leave_workspace();
        Ok(())
    }

    /// Names the item that an event answers.
    fn answered_by(&self, command: &Command) -> Option<ItemId> {
        use planctl_engine::{ClockEvent, Decision};
        match (&command.event, &command.proof) {
            (_, Proof::Lease { item, .. } | Proof::Sweep { item, .. }) => Some(item.clone()),
            (Event::Agent(event), _) => Some(ItemId::agent(self.run, &event.at)),
            (Event::Harness(event), _) => Some(ItemId::gate(self.run, &event.at, 0)),
            (Event::Clock(ClockEvent::Overran { at, .. }), _) => Some(ItemId::agent(self.run, at)),
            (Event::Human(event), _) => match &event.decision {
                Decision::Answer { item, .. } => Some(item.clone()),
                Decision::Submit
                | Decision::Vote { .. }
                | Decision::Cancel
                | Decision::Pause
                | Decision::Resume { .. }
                | Decision::Revise { .. } => None,
            },
            (Event::Clock(_), _) => None,
        }
    }

    fn carry_out(&mut self, effect: Effect, now: Timestamp) -> Result<(), String> {
        let flaw = self.flaw;
        match effect {
            Effect::Dispatch(item) => match self.items.get_mut(&item.id) {
                Some(Row { place: RowPlace::Closed | RowPlace::Revoked(_), .. }) => {
                    return Err(format!("item {} goes out again after it was closed", item.id));
                }
                Some(row) => {
                    row.generation += u64::from(flaw != Some(Flaw::GenerationKept));
                    row.place = RowPlace::Ready;
                    row.used = None;
                    row.item = *item;
                }
                None => {
                    let row =
                        Row { item: (*item).clone(), place: RowPlace::Ready, generation: 1, used: None };
                    self.items.insert(item.id, row);
                }
            },
            Effect::Withdraw(id) => match self.items.get_mut(&id) {
                Some(_) if flaw == Some(Flaw::WithdrawalIgnored) => {}
                Some(Row { place: place @ RowPlace::Leased(_), .. })
                    if flaw != Some(Flaw::RevocationForgotten) =>
                {
                    let lease = std::mem::replace(place, RowPlace::Closed);
                    if let RowPlace::Leased(lease) = lease {
                        *place = RowPlace::Revoked(lease);
                    }
                }
                Some(Row { place: place @ (RowPlace::Ready | RowPlace::Leased(_)), .. }) => {
                    *place = RowPlace::Closed;
                }
                Some(_) | None => return Err(format!("item {id} is taken back and is not out")),
            },
            Effect::Arm { timer, at } => {
                if at < now {
                    return Err(format!("a timer is armed for the past: {at:?} at {now:?}"));
                }
                if flaw != Some(Flaw::TimersForgotten) {
                    self.timers.insert(timer, at);
                }
            }
            Effect::Disarm(timer) => {
                self.timers.remove(&timer);
            }
        }
        Ok(())
    }
}

/// Leaves out the records that say no more than absence.
fn entered(nodes: &BTreeMap<NodeId, Record>) -> Vec<(&NodeId, &Record)> {
    nodes.iter().filter(|(_, record)| **record != Record::default()).collect()
}
