//! One thread, one seed: a run, the hands that work on it, and everything that goes wrong between them.

mod at_work;
mod calls;
mod children;
mod gates;
mod person;
mod probe;
mod runs;
mod tale;
mod workers;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use planctl_engine::{
    AskKind, At, BudgetPart, ClockEvent, Day, DayScope, Event, ItemId, NodeState, Record, RunId, RunStatus,
    TimerId, Timestamp, Work,
};

use crate::clock::BEGINNING;
use crate::coverage::Coverage;
use crate::database::{Database, Workspace};
use crate::dice::{Dice, truth};
use crate::faults::{Flaw, Trouble};
use crate::model::Model;
use crate::options::Options;
use crate::store::{Command, Lease, Proof, Row, RowPlace, Store};
use crate::{check, plans, tell};
pub use gates::with_yes_of_judge;
pub use tale::{Breach, Tale};

use at_work::{AtWork, Holder};
use children::Child;
use runs::Runs;

/// Plays the world of a seed to its end.
///
/// # Errors
///
/// Returns the first [`Breach`].
pub fn play(seed: u64) -> Result<Tale, Box<Breach>> {
    play_on(seed, None)
}

/// Plays the world of a seed on a store that does one thing wrongly.
///
/// # Errors
///
/// Returns the first [`Breach`].
pub fn play_on(seed: u64, flaw: Option<Flaw>) -> Result<Tale, Box<Breach>> {
    play_with(Options::expand(&mut Dice::new(seed).fork(1), seed), flaw)
}

/// Returns the breach with as few kinds of trouble and as few turns as still show one: the same plan, a shorter story.
pub fn shrink(breach: Box<Breach>, flaw: Option<Flaw>) -> Box<Breach> {
    let mut smallest = breach;
    for trouble in Trouble::ALL {
        let mut options = smallest.options.clone();
        if options.rates.remove(&trouble).is_some()
            && let Err(smaller) = play_with(options, flaw)
            && smaller.lines.len() <= smallest.lines.len()
        {
            smallest = smaller;
        }
    }
    for turns in (1..8).map(|part| smallest.options.turns * part / 8).collect::<Vec<_>>() {
        let options = Options { turns, ..smallest.options.clone() };
        if let Err(smaller) = play_with(options, flaw)
            && smaller.lines.len() <= smallest.lines.len()
        {
            return smaller;
        }
    }
    smallest
}

fn play_with(options: Options, flaw: Option<Flaw>) -> Result<Tale, Box<Breach>> {
    let mut runs = Runs::new(&options, flaw);
    let played = catch_unwind(AssertUnwindSafe(|| runs.play()));
    let broken = match played {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some(what),
        Err(panic) => Some(panic_text(panic.as_ref())),
    };
    let lines = std::mem::take(&mut runs.lines);
    match broken {
        None => Ok(Tale { coverage: runs.coverage(), events: runs.events(), lines }),
        Some(what) => Err(Box::new(Breach { seed: options.seed, options, what, lines })),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without words"))
}

/// Someone who holds an item.
#[derive(Clone, Debug)]
struct Hand {
    item: ItemId,
    at: At,
    generation: u64,
}

struct World {
    options: Options,
    dice: Dice,
    now: Timestamp,
    store: Store,
    /// The workers in each place, of all runs.
    at_work: Rc<RefCell<AtWork>>,
    model: Model,
    ledger: check::Ledger,
    /// Workers; those with an even place are planctl's own processes.
    workers: Vec<Option<Hand>>,
    gate: Option<Hand>,
    /// Calls that were not answered yet, or arrive late, or again.
    outbox: Vec<Command>,
    /// Runs of plans within the plan, by the item that waits for each.
    children: BTreeMap<ItemId, Child>,
    keys: u64,
    /// Ids of calls that were accepted, as the clients remember them.
    accepted: BTreeSet<String>,
    /// The generation of each item's newest claim.
    generations: BTreeMap<ItemId, u64>,
    /// No fault strikes any more.
    is_calm: bool,
    answers_in_calm: u32,
    coverage: Coverage,
    lines: Vec<String>,
}

/// One thing that may happen in a turn.
#[derive(Clone, Copy)]
enum Move {
    Tick,
    Claim,
    Work,
    ClaimGate,
    Gate,
    Answer,
    Decide,
    Sweep,
    Timer,
    Admit,
    Deliver,
    Child,
    Probe,
}

impl World {
    fn new(
        options: Options,
        plan: plans::Plan,
        dice: Dice,
        workspace: Workspace,
        database: Rc<RefCell<Database>>,
        at_work: Rc<RefCell<AtWork>>,
    ) -> World {
        let run = RunId::from_u128(u128::from(options.seed) + 1);
        let model = Model::new(run, plan.graph.clone(), BEGINNING);
        let lines = tell::plan(&plan.graph);
        World {
            workers: vec![None; options.workers],
            store: Store::new(run, plan, BEGINNING, workspace, database),
            at_work,
            model,
            ledger: check::Ledger::default(),
            options,
            dice,
            now: BEGINNING,
            gate: None,
            outbox: Vec::new(),
            children: BTreeMap::new(),
            keys: 0,
            accepted: BTreeSet::new(),
            generations: BTreeMap::new(),
            is_calm: false,
            answers_in_calm: 0,
            coverage: Coverage::new(),
            lines,
        }
    }

    /// Takes a turn in which anything may go wrong.
    fn rough_turn(&mut self) -> Result<(), String> {
        if self.dice.happens(150) {
            self.jump_or_crash()?;
        }
        self.pass_days()?;
        self.raise_children()?;
        self.turn()
    }

    /// Begins the phase in which no fault strikes.
    fn calm_down(&mut self) {
        self.is_calm = true;
        if self.workers.is_empty() {
            self.workers.push(None);
        }
    }

    /// Says whether nothing more is to happen in the calm phase.
    fn is_over(&self) -> bool {
        self.has_ended()
            && self.outbox.is_empty()
            && !self.has_children_to_tend()
            && self.store.revoked().next().is_none()
    }

    /// Checks what only the whole run shows.
    fn is_sound(&self) -> Result<(), String> {
        self.children_are_sound()?;
        check::at_the_end(&self.store, BEGINNING)
    }

    fn has_ended(&self) -> bool {
        matches!(self.store.head.status, RunStatus::Ended { .. })
    }

    fn jump_or_crash(&mut self) -> Result<(), String> {
        let hour = 3_600_000_000;
        if self.strikes(Trouble::ClockAhead) {
            self.now = Timestamp::from_micros(self.now.as_micros() + hour);
            self.lines.push("         the clock jumps an hour ahead".to_owned());
        } else if self.strikes(Trouble::ClockBack) {
            self.now = Timestamp::from_micros(self.now.as_micros() - hour);
            self.lines.push("         the clock jumps an hour back".to_owned());
        } else if self.strikes(Trouble::Crashed) {
            self.crash();
            self.is_found_unattended()?;
        }
        Ok(())
    }

    /// Has the budget of a day used up now and then, before somebody claims work, and lets another day begin. When is drawn by a
    /// sequence of its own.
    fn pass_days(&mut self) -> Result<(), String> {
        let drawn = truth(self.options.seed, &["day"], self.store.head.transitions.into()) % 16;
        let waits = |record: &Record| matches!(record.state, NodeState::Held { ask: AskKind::Day, .. });
        let held = self.store.whole.records().iter().find(|(_, record)| waits(record));
        let event = match (drawn, held) {
            (0..6, Some((node, _))) => ClockEvent::DayAllows { node: node.clone() },
            (0, None) => {
                let is_ready = |row: &&Row| {
                    matches!(row.item.work, Work::Agent { .. }) && matches!(row.place, RowPlace::Ready)
                };
                let Some(row) = self.store.open_items().find(is_ready) else { return Ok(()) };
                let day = Day { of: DayScope::Project, until: self.now.after(Duration::from_secs(3600)) };
                let at = row.item.at.clone();
                ClockEvent::DaySpent { at, part: BudgetPart::Tokens, limit: 1_000, spent: 1_200, day }
            }
            _ => return Ok(()),
        };
        self.say(Event::Clock(event), Proof::Anyone)
    }

    /// Finds that nobody worked on the run for up to a minute. How long is drawn by a sequence of its own.
    fn is_found_unattended(&mut self) -> Result<(), String> {
        let micros =
            truth(self.options.seed, &["unattended"], self.store.head.transitions.into()) % 60_000_000;
        let since =
            Timestamp::from_micros(self.now.as_micros() - i64::try_from(micros).expect("a minute fits"));
        self.say(Event::Clock(ClockEvent::Unattended { since }), Proof::Anyone)
    }

    /// Loses everything in flight. Leases of our own processes are found dead at once, those of others run out.
    fn crash(&mut self) {
        self.lines.push("         everything in flight is lost".to_owned());
        let own = (0..self.workers.len()).step_by(2).filter_map(|place| self.workers[place].take());
        let lost: Vec<Hand> = own.chain(self.gate.take()).collect();
        lost.iter().for_each(|hand| self.ends_work(hand));
        if self.dice.happens(500) {
            self.outbox.clear();
        }
        for row in self.store.items.values_mut() {
            if let RowPlace::Leased(lease) | RowPlace::Revoked(lease) = &mut row.place
                && lease.is_own
            {
                lease.until = lease.until.min(self.now);
            }
        }
    }

    /// Weighs what may happen now.
    fn moves(&self) -> [(Move, u64); 13] {
        let is_waiting = self.store.open_ask().is_some();
        let is_claimable = |lane_fits: fn(&Work) -> bool| {
            self.store
                .open_items()
                .any(|row| lane_fits(&row.item.work) && self.store.is_claimable(row, self.now))
        };
        let works = is_claimable(|work| matches!(work, Work::Agent { .. }))
            && self.workers.iter().any(Option::is_none);
        let gates = is_claimable(|work| matches!(work, Work::Harness { .. })) && self.gate.is_none();
        let is_expired = self.expired().is_some() || self.store.lost(self.now).is_some();
        let is_due = self.due().is_some();
        let is_queued = matches!(self.store.head.status, RunStatus::Queued { .. });
        let may_begin = !self.is_calm || self.store.is_admissible();
        let rests =
            matches!(self.store.head.status, RunStatus::New | RunStatus::Paused | RunStatus::Ended { .. });
        let on = u64::from;
        // Where runs are in each other's way, people change their minds more often, and work takes longer.
        let (restless, works_for) = if self.options.runs > 1 { (3, 3) } else { (1, 8) };
        [
            (Move::Claim, on(works) * 8),
            (Move::Work, on(self.workers.iter().any(Option::is_some)) * works_for),
            (Move::ClaimGate, on(gates) * 10),
            (Move::Gate, on(self.gate.is_some()) * 10),
            (Move::Answer, on(is_waiting) * 6),
            (Move::Decide, if rests { 5 } else { on(!self.is_calm) * restless }),
            (Move::Sweep, on(is_expired) * 5),
            (Move::Timer, on(is_due) * 5),
            (Move::Admit, on(is_queued && may_begin) * 6),
            (Move::Deliver, on(!self.outbox.is_empty()) * 5),
            (Move::Child, on(self.has_children_to_tend()) * 6),
            (Move::Probe, if self.is_calm { 1 } else { 4 }),
            (Move::Tick, 3),
        ]
    }

    /// Says whether anything but the passing of time can happen.
    fn is_busy(&self) -> bool {
        // Nobody decides about a run that has ended, once it is calm.
        let is_idle = |of: Move| matches!(of, Move::Decide) && self.has_ended();
        self.moves()[..11].iter().any(|(of, weight)| *weight > 0 && !is_idle(*of))
    }

    fn turn(&mut self) -> Result<(), String> {
        let moves = self.moves();
        let weights: Vec<u64> = moves.iter().map(|(_, weight)| *weight).collect();
        match moves[self.dice.weighted(&weights)].0 {
            Move::Tick => {
                let most = if self.is_calm { 500_000 } else { 20_000_000 };
                self.now = self.now.after(Duration::from_micros(self.dice.between(1, most)));
                Ok(())
            }
            Move::Claim => self.claim_work(),
            Move::Work => self.work(),
            Move::ClaimGate => self.claim_gate(),
            Move::Gate => self.evaluate(),
            Move::Answer => self.answer(),
            Move::Decide => self.decide(),
            Move::Sweep => self.sweep(),
            Move::Timer => self.timer(),
            Move::Admit => self.say(Event::Clock(ClockEvent::Admitted), Proof::Anyone),
            Move::Deliver => self.deliver(),
            Move::Child => self.tend_children(),
            Move::Probe => self.probe(),
        }
    }

    /// Returns the next moment at which anything can happen to the run.
    fn next_moment(&self) -> Option<Timestamp> {
        let rows = self.store.open_items().map(|row| match &row.place {
            RowPlace::Leased(lease) => lease.until,
            RowPlace::Ready | RowPlace::Revoked(_) | RowPlace::Closed => row.item.available_at,
        });
        let revoked = self.store.revoked().map(|(_, lease)| lease.until.min(lease.hard_deadline));
        let timers = self.store.timers.values().copied();
        rows.chain(revoked).chain(timers).filter(|at| *at > self.now).min()
    }

    /// Claims an item for somebody, or has it taken along; each claim gives a generation above all before (I8), and nobody is
    /// at work in its place.
    fn claim(&mut self, item: ItemId, at: At, lease: Lease, is_taken: bool) -> Result<Option<Hand>, String> {
        let (until, hard_deadline) = (lease.until, lease.hard_deadline);
        let claimed = if is_taken {
            self.store.take(&item, lease, self.now)
        } else {
            self.store.claim(&item, lease, self.now)
        };
        let Some(generation) = claimed else { return Ok(None) };
        let before = self.generations.insert(item.clone(), generation);
        if before.is_some_and(|before| before >= generation) {
            return Err(format!("I8 {item} was claimed under generation {generation}, after {before:?}"));
        }
        self.at_work.borrow_mut().begin(Holder {
            run: self.store.run,
            workspace: self.store.workspace,
            item: item.clone(),
            generation,
            locks: self.store.plan().graph.task(&at.node).map_or(Vec::new(), |task| task.locks.clone()),
            until,
            hard_deadline,
            is_revoked: false,
        })?;
        Ok(Some(Hand { item, at, generation }))
    }

    /// Notes that somebody has ended what it did.
    fn ends_work(&self, hand: &Hand) {
        self.at_work.borrow_mut().end(&hand.item, hand.generation);
    }

    fn expired(&self) -> Option<&ItemId> {
        let is_over = |place: &RowPlace| match place {
            RowPlace::Leased(lease) => lease.until <= self.now || lease.hard_deadline <= self.now,
            RowPlace::Ready | RowPlace::Revoked(_) | RowPlace::Closed => false,
        };
        let is_swept = |row: &Row| self.store.sweeps(row) && is_over(&row.place);
        self.store.items.iter().find(|(_, row)| is_swept(row)).map(|(id, _)| id)
    }

    /// Tells the run of a lease that ran out, or of work past its hard deadline.
    fn sweep(&mut self) -> Result<(), String> {
        if let Some(id) = self.store.lost(self.now) {
            self.met("revoked", "lost");
            self.lines.push(format!("         the revoked lease of {id} is over"));
            self.store.release(&id);
            return Ok(());
        }
        let Some(id) = self.expired().cloned() else { return Ok(()) };
        let row = &self.store.items[&id];
        let RowPlace::Leased(lease) = row.place.clone() else { return Ok(()) };
        let (at, generation, noted) = (row.item.at.clone(), row.generation, row.used.clone());
        let is_work = matches!(row.item.work, Work::Agent { .. });
        let clock = if is_work && lease.hard_deadline <= self.now {
            ClockEvent::Overran { at, noted }
        } else {
            ClockEvent::LeaseLost { at, interrupted: lease.is_own, noted }
        };
        if lease.until > self.now
            && let Some(Row { place: RowPlace::Leased(lease), .. }) = self.store.items.get_mut(&id)
        {
            lease.until = self.now;
        }
        self.say(Event::Clock(clock), Proof::Sweep { item: id, generation })
    }

    fn due(&self) -> Option<(TimerId, Timestamp)> {
        self.store.timers.iter().find(|(_, at)| **at <= self.now).map(|(timer, at)| (timer.clone(), *at))
    }

    fn timer(&mut self) -> Result<(), String> {
        let Some((timer, due)) = self.due() else { return Ok(()) };
        self.say(Event::Clock(ClockEvent::Due { timer: timer.clone() }), Proof::Timer { timer, due })
    }

    fn deliver(&mut self) -> Result<(), String> {
        let at = usize::try_from(self.dice.below(self.outbox.len() as u64)).expect("an index fits");
        let command = self.outbox.swap_remove(at);
        self.commit(&command).map(|_| ())
    }

    /// Picks one of several; only where there is a choice does it take chance.
    fn any_of<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        match from.len() {
            0 | 1 => from.pop(),
            several => {
                let at = usize::try_from(self.dice.below(several as u64)).expect("an index fits");
                Some(from.swap_remove(at))
            }
        }
    }

    /// Rolls for a trouble, and notes that it struck.
    fn strikes(&mut self, trouble: Trouble) -> bool {
        let rate = self.options.rates.get(&trouble).copied().unwrap_or(0);
        let strikes = !self.is_calm && rate > 0 && self.dice.happens(rate);
        if strikes {
            self.met("trouble", &format!("{trouble:?}"));
        }
        strikes
    }

    fn met(&mut self, kind: &str, word: &str) {
        self.coverage.insert(format!("{kind} {word}"));
    }
}
