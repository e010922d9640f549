//! The nemesis: it kills daemons and workers, cuts sessions, stops Postgres at once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::workers::WorkerPool;
use crate::support::chance::Chance;
use crate::support::{Going, Place};

/// From one fault to the next.
const EVERY: Duration = Duration::from_secs(3);
/// How often it looks whether its daemons are there.
const LOOK: Duration = Duration::from_millis(20);

/// Kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    DaemonKilled,
    WorkersKilled,
    SessionsCut,
    PostgresStopped,
}

pub const FAULTS: [Fault; 4] =
    [Fault::DaemonKilled, Fault::WorkersKilled, Fault::SessionsCut, Fault::PostgresStopped];

/// A daemon with a state directory of its own, which is started again whenever it is gone.
pub struct Daemon {
    name: String,
    url: String,
    going: Going,
}

impl Daemon {
    pub fn start(place: &Place, name: &str, url: &str) -> Daemon {
        let state = place.path(name);
        let words = ["daemon", "run", "--database-url", url];
        let going = place.start_with(&words, &[("PLANCTL_STATE_DIR", state.as_os_str() as &OsStr)]);
        Daemon { name: name.to_owned(), url: url.to_owned(), going }
    }

    pub fn hear_ready(&mut self) {
        self.going.hear("ready");
    }

    /// Kills it and starts another in its place; says whether it was alive.
    fn kill(&mut self, place: &Place) -> bool {
        if self.going.is_over() {
            return false;
        }
        kill_process(self.going.pid(), Signal::KILL).unwrap();
        let next = Daemon::start(place, &self.name, &self.url);
        let said = std::mem::replace(self, next).going.end();
        assert_eq!(said.code, -1, "{said:?}");
        true
    }

    /// Starts it again where it ended by itself, which it may only before it was ready: the database was away.
    fn mind(&mut self, place: &Place) -> bool {
        if !self.going.is_over() {
            return false;
        }
        let heard = self.going.heard();
        assert!(!heard.contains("ready"), "daemon {} ended by itself: {heard}", self.name);
        *self = Daemon::start(place, &self.name, &self.url);
        true
    }

    pub fn leave(self) {
        self.going.signal(Signal::TERM);
        let said = self.going.end();
        assert_eq!(said.code, 0, "{said:?}");
    }
}

/// The harm done.
#[derive(Clone, Debug, Default)]
pub struct Done {
    pub faults: BTreeMap<Fault, usize>,
    pub workers_killed: usize,
    pub sessions_cut: usize,
    /// Daemons that found no database at their start and were started again.
    pub started_again: usize,
}

/// Does harm every three seconds until `is_over`, each kind once before any comes again.
pub fn rage(place: &Place, daemons: &mut [Daemon], pool: &WorkerPool, is_over: &AtomicBool) -> Done {
    let mut chance = Chance::new(pool.seed);
    let (mut done, mut deck) = (Done::default(), Vec::new());
    let mut due = Instant::now() + EVERY;
    while !is_over.load(Ordering::SeqCst) {
        done.started_again += daemons.iter_mut().map(|daemon| usize::from(daemon.mind(place))).sum::<usize>();
        if Instant::now() < due {
            std::thread::sleep(LOOK);
            continue;
        }
        due = Instant::now() + EVERY;
        if deck.is_empty() {
            deck = shuffled(&mut chance);
        }
        let fault = deck.pop().unwrap();
        if harm(fault, place, daemons, pool, &mut chance, &mut done) {
            *done.faults.entry(fault).or_default() += 1;
        } else {
            deck.push(fault);
        }
        if done.faults.len() == FAULTS.len() {
            pool.may_end.store(true, Ordering::SeqCst);
        }
    }
    done
}

fn shuffled(chance: &mut Chance) -> Vec<Fault> {
    let mut left = FAULTS.to_vec();
    let mut deck = Vec::new();
    while !left.is_empty() {
        deck.push(left.swap_remove(chance.below(left.len() as u64) as usize));
    }
    deck
}

/// Does one fault; says whether it happened.
fn harm(
    fault: Fault,
    place: &Place,
    daemons: &mut [Daemon],
    pool: &WorkerPool,
    chance: &mut Chance,
    done: &mut Done,
) -> bool {
    match fault {
        Fault::DaemonKilled => {
            let victim = chance.below(daemons.len() as u64) as usize;
            daemons[victim].kill(place)
        }
        Fault::WorkersKilled => {
            let some = 1 + chance.below(pool.members.len() as u64 / 4);
            for _ in 0..some {
                pool.members[chance.below(pool.members.len() as u64) as usize].kill();
            }
            done.workers_killed += some as usize;
            true
        }
        Fault::SessionsCut => {
            let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                       where application_name = 'planctl' and pid <> pg_backend_pid()";
            let said = place.planctl(&["db", "psql", "--owner", "--", "-Atc", cut]);
            let sessions: usize = said.out.trim().parse().unwrap_or(0);
            done.sessions_cut += sessions;
            sessions > 0
        }
        Fault::PostgresStopped => {
            place.postmaster().is_some_and(|server| kill_process(server, Signal::QUIT).is_ok())
        }
    }
}
