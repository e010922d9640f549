//! The kit of cheats: workers that want a step to pass without doing it, each beside an honest twin, and honest work that
//! looks like a cheat (A1–A29, A50, A51 and the classes of escape in docs/security.md).
//!
//! A cheat must not end `done`, and the record must name what it did. A twin and an honest flow must end `done`.
//! `tests/cheats/kit/*.md` holds the scenarios; [`scenario`] says how they are written. Scenarios that need minutes or
//! a better isolation than this machine's default are ignored unless `--include-ignored` is given (`just cheats`). So is every
//! scenario of which each family is in the short form already: [`Kit::short_form`] has each attack and each project once.
//! `PLANCTL_DOCS=write` writes `tests/cheats/outcomes.txt` and the table of docs/security.md: the whole with
//! `--include-ignored`, and with a filter only what that names.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]
#![allow(clippy::print_stdout, reason = "the counts are what people run this for")]

#[path = "cheats/place.rs"]
mod place;
#[path = "cheats/scenario.rs"]
mod scenario;
#[path = "cheats/table.rs"]
mod table;
#[path = "cheats/tier.rs"]
mod tier;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use place::{Outcome, Part};
use scenario::{Kit, Scenario};
use table::{Came, Effect, Table};
use tier::Tier;

/// How many scenarios run at once: each waits for Postgres and for its own children a good part of its time.
const AT_ONCE: usize = 3;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let kit = Arc::new(Kit::read());
    let short_form = kit.short_form();
    let table = Arc::new(Mutex::new(Table::default()));
    let mut trials = vec![Trial::test("the_kit_is_as_large_as_it_says", {
        let kit = kit.clone();
        move || the_kit_is_large_enough(&kit)
    })];
    let mut performed = BTreeSet::new();
    for tier in tier::offered() {
        for scenario in &kit.scenarios {
            trials.extend(trials_of(&short_form, scenario, tier, &table, &mut performed));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if arguments.list {
        conclusion.exit();
    }
    let table = table.lock().unwrap();
    println!("{}", table.summary());
    if let Err(difference) = table.page(&kit) {
        println!("{difference}");
        std::process::exit(101);
    }
    conclusion.exit();
}

/// One trial for a cheat and one for its twin, or one for an honest flow.
fn trials_of(
    short_form: &BTreeSet<String>,
    scenario: &Arc<Scenario>,
    tier: &Tier,
    table: &Arc<Mutex<Table>>,
    performed: &mut BTreeSet<String>,
) -> Vec<Trial> {
    let parts: &[Part] = if scenario.is_cheat() { &[Part::Cheat, Part::Twin] } else { &[Part::Flow] };
    let mut trial = |part: Part| {
        let name = format!("{}{}::{}::{}", tier.prefix(), part.name(), scenario.category, scenario.id);
        let is_short = !scenario.is_slow() && tier.is_default && short_form.contains(&scenario.id);
        // Where each trial has a process of its own, nothing remembers a performance; the first trial of it stands for all.
        let is_again = is_short
            && !performed.insert(format!("{}{:?}", scenario.key(part), scenario.value("needs")))
            && std::env::var_os("NEXTEST").is_some();
        let is_ignored = !is_short || is_again;
        let (scenario, tier, table) = (scenario.clone(), tier.clone(), table.clone());
        let run = move || {
            let missing = scenario.missing_programs(&tier);
            if !missing.is_empty() {
                table.lock().unwrap().add(&scenario, part, &tier, Came::NotRun, Effect::NotRun);
                return Ok(Completion::ignored_with(format!("not run: no {}", missing.join(", "))));
            }
            let (judged, effect) = judge(&scenario, part, &tier);
            let came = match judged {
                Ok(()) => Came::Right,
                Err(_) => Came::Wrong,
            };
            table.lock().unwrap().add(&scenario, part, &tier, came, effect);
            judged.map(|()| Completion::Completed).map_err(Failed::from)
        };
        Trial::ignorable_test(name, run).with_ignored_flag(is_ignored)
    };
    parts.iter().copied().map(&mut trial).collect()
}

/// Performs one part, and says whether it came out as it has to and what it achieved.
fn judge(scenario: &Scenario, part: Part, tier: &Tier) -> (Result<(), String>, Effect) {
    let outcome = performed_once(scenario, part, tier);
    let judged = match part {
        // A cheat that fools a bare harness does so in every tier.
        Part::Cheat if tier.is_default && scenario.has_bare_proof() => {
            place::fools_a_bare_harness(scenario).and_then(|()| judge_cheat(&outcome, scenario, tier))
        }
        Part::Cheat => judge_cheat(&outcome, scenario, tier),
        Part::Twin | Part::Flow => outcome.must_be_done(scenario),
    };
    (judged, outcome.effect(scenario))
}

fn judge_cheat(outcome: &Outcome, scenario: &Scenario, tier: &Tier) -> Result<(), String> {
    match scenario.is_open_at(tier) {
        true => outcome.must_be_a_false_pass(scenario),
        false => outcome.must_be_caught(scenario),
    }
}

/// Twins that do the same in the same project are performed once.
fn performed_once(scenario: &Scenario, part: Part, tier: &Tier) -> Arc<Outcome> {
    type Cell = Arc<OnceLock<Arc<Outcome>>>;
    static PERFORMED: OnceLock<Mutex<HashMap<String, Cell>>> = OnceLock::new();
    let key = format!("{}\n{}", tier.name, scenario.key(part));
    let cell = PERFORMED.get_or_init(Mutex::default).lock().unwrap().entry(key).or_default().clone();
    cell.get_or_init(|| Arc::new(place::perform(scenario, part, tier))).clone()
}

fn the_kit_is_large_enough(kit: &Kit) -> Result<(), Failed> {
    let cheats = kit.scenarios.iter().filter(|scenario| scenario.is_cheat()).count();
    let flows = kit.scenarios.len() - cheats;
    let short = kit.short_form().len();
    println!("{cheats} cheats with a twin each, {flows} honest flows; {short} of them are the short form");
    if cheats < 80 || flows < 60 {
        return Err(format!("{cheats} cheats and {flows} honest flows; 80 and 60 are promised").into());
    }
    Ok(())
}
