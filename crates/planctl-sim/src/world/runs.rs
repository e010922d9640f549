//! Runs of one database, which take turns: most seeds have one, some have more that need the same workspace and locks.

use std::cell::RefCell;
use std::rc::Rc;

use planctl_engine::Timestamp;

use super::World;
use super::at_work::AtWork;
use crate::clock::BEGINNING;
use crate::coverage::Coverage;
use crate::database::Database;
use crate::dice::{Dice, truth};
use crate::faults::Flaw;
use crate::options::Options;
use crate::plans;

/// Turns after the faults within which a run must end.
const CALM_TURNS_MAX: u32 = 6_000;

pub(super) struct Runs {
    worlds: Vec<World>,
    /// Says whose turn it is; of one run it is never asked.
    dice: Dice,
    now: Timestamp,
    pub(super) lines: Vec<String>,
}

impl Runs {
    pub(super) fn new(options: &Options, flaw: Option<Flaw>) -> Runs {
        let (database, at_work) = (Rc::<RefCell<Database>>::default(), Rc::<RefCell<AtWork>>::default());
        let mut lines = Vec::new();
        let worlds = (0..options.runs).map(|place| {
            let number = place as u64;
            let seed = if place == 0 { options.seed } else { truth(options.seed, &["another run"], number) };
            let mut dice = Dice::new(seed);
            // The plan stays the same under all options.
            dice.draw();
            let mut plan = plans::draw(&mut dice.fork(2));
            if options.runs > 1 {
                plan.graph = plans::with_locks(&mut Dice::new(seed).fork(14), &plan.graph);
            }
            // Runs of one workspace wait for each other; those of several have but their locks in common.
            let workspace = if options.seed.is_multiple_of(2) { number / 2 } else { number };
            let options = Options { seed, ..options.clone() };
            let mut world = World::new(options, plan, dice, workspace, database.clone(), at_work.clone());
            world.store.flaw = flaw;
            lines.append(&mut world.lines);
            world
        });
        let worlds = worlds.collect();
        Runs { worlds, dice: Dice::new(options.seed).fork(15), now: BEGINNING, lines }
    }

    pub(super) fn play(&mut self) -> Result<(), String> {
        let turns = self.worlds[0].options.turns * self.worlds.len() as u64;
        for _ in 0..turns {
            let place = self.pick(|_| true).unwrap_or_default();
            self.act(place, World::rough_turn)?;
        }
        self.lines.push("calm: no fault strikes from here on".to_owned());
        for world in &mut self.worlds {
            world.calm_down();
        }
        let mut turns = 0;
        while let Some(place) = self.pick(|world| !world.is_over()) {
            turns += 1;
            if turns > CALM_TURNS_MAX * self.worlds.len() as u32 {
                let heads: Vec<_> = self.worlds.iter().map(|world| &world.store.head).collect();
                return Err(format!("P3 the run does not end: {heads:?}"));
            }
            match self.pick(|world| !world.is_over() && world.is_busy()) {
                Some(busy) => self.act(busy, World::turn)?,
                None => self.sleep(place)?,
            }
        }
        self.worlds.iter().try_for_each(World::is_sound)
    }

    pub(super) fn events(&self) -> usize {
        self.worlds.iter().map(|world| world.store.history.len()).sum()
    }

    pub(super) fn coverage(&mut self) -> Coverage {
        self.worlds.iter_mut().flat_map(|world| std::mem::take(&mut world.coverage)).collect()
    }

    /// Picks one of the runs that fit; only where there are several runs does it take chance.
    fn pick(&mut self, fits: impl Fn(&World) -> bool) -> Option<usize> {
        for world in &mut self.worlds {
            world.now = self.now;
        }
        let fitting: Vec<usize> = (0..self.worlds.len()).filter(|place| fits(&self.worlds[*place])).collect();
        match fitting.len() {
            0 => None,
            _ if self.worlds.len() == 1 => Some(0),
            _ => Some(*self.dice.pick(&fitting)),
        }
    }

    fn act(
        &mut self,
        place: usize,
        act: impl FnOnce(&mut World) -> Result<(), String>,
    ) -> Result<(), String> {
        let world = &mut self.worlds[place];
        world.now = self.now;
        world.at_work.borrow_mut().pass(self.now);
        let done = act(world);
        self.now = world.now;
        let lines = std::mem::take(&mut world.lines);
        let is_alone = self.worlds.len() == 1;
        self.lines.extend(
            lines.into_iter().map(|line| if is_alone { line } else { format!("run {}: {line}", place + 1) }),
        );
        done
    }

    /// Waits for the next moment at which anything can happen to a run.
    fn sleep(&mut self, waiting: usize) -> Result<(), String> {
        let wake = self.worlds.iter().filter_map(World::next_moment).min();
        self.now = wake
            .ok_or_else(|| format!("I7 nothing waits for nothing: {:?}", self.worlds[waiting].store.head))?;
        Ok(())
    }
}
