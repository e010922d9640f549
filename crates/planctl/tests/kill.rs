//! `kill -9` at any moment: a run whose planctl is killed again and again ends as if it never had been.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect has failed"
)]

#[path = "kill/budget.rs"]
mod budget;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::chance::Chance;
use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{self, Going, Place, WAIT_MAX, goes_on_within};

/// How often planctl is killed in each life of a plan.
const KILLS: usize = 20;

/// When to kill: once something is seen, and a moment later.
#[derive(Clone, Debug)]
enum Seen {
    /// The process has just been started.
    Start,
    /// This path is there.
    File(PathBuf),
    /// It said these words.
    Words(&'static str),
    /// The journal of workers and contracts has grown by so many lines.
    Progress(usize),
}

/// The moments of one life, from the first millisecond on.
fn moments(chance: &mut Chance, place: &Place) -> Vec<(Seen, Duration)> {
    let mut moments = vec![
        (Seen::Start, chance.within_ms(1)),
        (Seen::Start, chance.within_ms(40)),
        (Seen::Start, chance.within_ms(400)),
        // The cluster is being made.
        (Seen::File(place.path("state/pg")), chance.within_ms(1500)),
        // The server starts; database, migration.
        (Seen::File(place.path("state/pg/postgres.log")), chance.within_ms(300)),
        // The plan, its approval, the run.
        (Seen::Words("using private Postgres"), chance.within_ms(60)),
        (Seen::Words("using private Postgres"), chance.within_ms(60)),
        (Seen::Words(" p-1"), chance.within_ms(60)),
    ];
    while moments.len() < KILLS {
        moments.push(match chance.below(8) {
            0 => (Seen::Start, chance.within_ms(500)),
            1 => (Seen::Words(" p-1"), chance.within_ms(120)),
            2..=4 => (Seen::Progress(1 + chance.below(3) as usize), chance.within_ms(3)),
            _ => (Seen::Progress(1 + chance.below(3) as usize), chance.within_ms(40)),
        });
    }
    moments
}

fn is_seen(seen: &Seen, place: &Place, going: &Going, lines: usize) -> bool {
    match seen {
        Seen::Start => true,
        Seen::File(path) => path.exists(),
        Seen::Words(words) => going.heard().contains(words),
        // At the last step nothing more is to come.
        Seen::Progress(more) => {
            place.journal().iter().skip(lines).zip(1..).any(|(entry, nth)| nth >= *more || entry.step == 10)
        }
    }
}

/// Lives a plan of ten steps through twenty kills to its end, and checks everything that must be true then.
fn live(seed: u64) {
    let began = Instant::now();
    let place = Place::untouched();
    let mut chance = Chance::new(seed);
    place.plan(10, "");
    let mut attempts = [1; 10];
    for _ in 0..3 {
        let flaky = chance.below(10) as usize;
        attempts[flaky] = 2;
        place.set(&format!("flaky-{}", flaky + 1));
    }
    // The end comes after the last kill, however quick the machine is.
    place.set("hold-work-10");

    let (mut first, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for (at, (seen, delay)) in moments(&mut chance, &place).into_iter().enumerate() {
        let lines = place.noted("");
        let started = Instant::now();
        let mut going = place.start(&["-v", "plan", "run", "p.md", "--approve", "--exec", &place.exec()]);
        let mut went_on = false;
        loop {
            // Only where the run was under way can it go on.
            if lines > 0 && !went_on && place.noted("") > lines {
                went_on = true;
                slowest = slowest.max(started.elapsed());
            }
            if lines == 0 && first.is_zero() && place.noted("") > 0 {
                first = started.elapsed();
            }
            if is_seen(&seen, &place, &going, lines) || going.is_over() {
                break;
            }
            assert!(started.elapsed() < WAIT_MAX, "seed {seed}: {seen:?} does not come: {}", going.heard());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(delay);
        // One time in six the whole host goes down, Postgres and all; else planctl alone.
        let killed = if chance.below(6) == 0 { place.kill_everything(going) } else { going.kill() };
        if let Err(said) = killed {
            panic!("seed {seed}: before kill {at} ({seen:?} + {delay:?}) it ended by itself: {said:?}");
        }
    }
    place.unset("hold-work-10");
    let said = place.start_run().end();
    assert_eq!(said.code, 0, "seed {seed}: {said:?}");
    let within = goes_on_within(first);
    assert!(slowest < within, "seed {seed}: went on after {slowest:?}, and began after {first:?}");
    must_be_done(&place, &attempts);
    must_be_in_order(&place.journal());
    let quiet = place.await_quiet();
    let text = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    assert!(text.contains("status: done") && text.matches("✅").count() == 10, "seed {seed}: {text}");
    assert_eq!(place.litter(), Vec::<PathBuf>::new(), "seed {seed}: left behind");
    eprintln!(
        "seed {seed}: {KILLS} kills in {:.1?}; went on within {slowest:.2?}; quiet after {quiet:.2?}",
        began.elapsed()
    );
}

/// Two planctl on one run and one cluster, killed in turn: the other one goes on, and owns the cluster.
fn live_together(seed: u64) {
    let began = Instant::now();
    let place = Place::new();
    let mut chance = Chance::new(seed);
    place.plan(10, "");
    place.set("flaky-4");
    place.set("hold-work-10");
    let mut two = [place.start_run(), place.start_run()];
    for at in 0..KILLS {
        let lines = place.noted("");
        let more = if chance.below(3) == 0 { 0 } else { 1 + chance.below(3) as usize };
        let started = Instant::now();
        while place.noted("") < lines + more && place.noted("work begin 10") == 0 {
            assert!(started.elapsed() < WAIT_MAX, "seed {seed}: nothing moves: {:#?}", place.alive());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(chance.within_ms(if more == 0 { 700 } else { 20 }));
        let victim = &mut two[chance.below(2) as usize];
        let killed = std::mem::replace(victim, place.start_run()).kill();
        if let Err(said) = killed {
            panic!("seed {seed}: before kill {at} it ended by itself: {said:?}");
        }
    }
    place.unset("hold-work-10");
    for going in two {
        let said = going.end();
        assert_eq!(said.code, 0, "seed {seed}: {said:?}");
    }
    must_be_done(&place, &[1, 1, 1, 2, 1, 1, 1, 1, 1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
    assert_eq!(place.litter(), Vec::<PathBuf>::new(), "seed {seed}: left behind");
    eprintln!("seed {seed}: {KILLS} kills of two in {:.1?}", began.elapsed());
}

/// Lives with the seed shown if it fails.
fn live_and_tell(live: fn(u64), seed: u64) {
    if std::panic::catch_unwind(|| live(seed)).is_err() {
        panic!("failed with seed {seed}");
    }
}

#[test]
fn p10_a_run_killed_at_twenty_moments_ends_as_if_never_killed_seed_1() {
    live_and_tell(live, 1);
}

#[test]
#[ignore = "another seed; just nightly"]
fn p10_a_run_killed_at_twenty_moments_ends_as_if_never_killed_seed_2() {
    live_and_tell(live, 2);
}

#[test]
#[ignore = "another seed; just nightly"]
fn p10_a_run_killed_at_twenty_moments_ends_as_if_never_killed_seed_3() {
    live_and_tell(live, 3);
}

#[test]
fn p8_p10_two_on_one_run_killed_in_turn_end_as_if_never_killed() {
    live_and_tell(live_together, 4);
}

/// Lives again and again with seeds that were never tried: `just soak`.
#[test]
#[ignore = "ten minutes; just soak"]
fn soak_runs_killed_with_fresh_seeds() {
    let number =
        |name, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let minutes: u64 = number("SOAK_MINUTES", 10);
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let first: u64 = number("SOAK_SEED", time.as_secs());
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let mut seed = first;
    while Instant::now() < until {
        live_and_tell(if seed.is_multiple_of(3) { live_together } else { live }, seed);
        seed += 1;
    }
    eprintln!("{} lives from seed {first}", seed - first);
}

#[test]
fn p10_p_33_a_run_killed_in_mid_work_goes_on_at_once() {
    let place = Place::new();
    place.plan(2, "");
    place.set("hold-work-1");
    let going = place.start_run();
    let first = place.await_note("work begin 1 1", 1);
    going.kill().unwrap();
    let again = place.start_run();
    let within = place.await_note("work begin 1 1", 2);
    eprintln!("killed in mid-work, went on within {within:.2?}");
    assert!(within < goes_on_within(first), "{within:?}, and {first:?} the first time");
    place.unset("hold-work-1");
    assert_eq!(again.end().code, 0);
    must_be_done(&place, &[1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p10_p11_a_run_killed_in_mid_gate_goes_on_at_once_and_never_beside_the_old_gate() {
    let place = Place::new();
    place.plan(2, "");
    place.set("hold-gate-1");
    let going = place.start_run();
    let first = place.await_note("gate begin 1", 1);
    going.kill().unwrap();
    let again = place.start_run();
    let within = place.await_note("gate begin 1", 2);
    eprintln!("killed in mid-gate, went on within {within:.2?}");
    assert!(within < goes_on_within(first), "{within:?}, and {first:?} the first time");
    place.unset("hold-gate-1");
    assert_eq!(again.end().code, 0);
    let history = must_be_done(&place, &[1, 1]);
    assert_eq!(place.noted("work begin 1"), 1, "the work was done and is not done again");
    assert_eq!(history.count("retry_triggered"), 0);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p10_a_run_killed_in_mid_rehearsal_goes_on_and_stores_what_the_rehearsal_showed_once() {
    let place = Place::new();
    place.plan(2, "**red_first:** warn");
    place.set("hold-gate-1");
    let going = place.start_run();
    place.await_note("gate begin 1", 1);
    going.kill().unwrap();
    let again = place.start_run();
    place.await_note("gate begin 1", 2);
    assert_eq!(place.noted("work begin"), 0, "no work before the contract is rehearsed");
    place.unset("hold-gate-1");
    assert_eq!(again.end().code, 0);
    let history = must_be_done(&place, &[1, 1]);
    assert_eq!((history.count("harness.rehearsed"), history.count("node_rehearsed")), (2, 2), "one per step");
    assert_eq!(place.noted("gate begin 1"), 3, "the rehearsal again, and the gate");
    assert_eq!(place.noted("work begin 1"), 1);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p11_what_the_trees_started_dies_with_planctl() {
    let place = Place::new();
    place.plan(1, "");
    place.set("hold-gate-1");
    let going = place.start_run();
    place.await_note("gate begin 1", 1);
    support::wait_until("the gate's children", || place.trees_alive().len() >= 5);
    going.kill().unwrap();
    let within = place.await_quiet();
    eprintln!("killed in mid-gate, nothing left alive after {within:.2?}");
}
