//! Checks of every run's history, whichever processes wrote it and were killed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Entry, Place};

/// The whole history of a run.
pub struct History(Vec<Value>);

impl History {
    pub fn of(place: &Place, run: &str) -> History {
        let said = place.must(&["events", "--run", run, "--json"]);
        History(said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    pub fn count(&self, event: &str) -> usize {
        self.0.iter().filter(|line| line["event"] == event).count()
    }

    /// Returns the names of the events, in order.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|line| line["event"].as_str().unwrap()).collect()
    }

    /// Returns the texts of workers' reports, in order.
    pub fn reports(&self) -> Vec<&str> {
        let reported = self.0.iter().filter(|line| line["event"] == "agent.reported");
        reported.map(|line| text_in(line).unwrap_or_else(|| panic!("no text in {line}"))).collect()
    }

    /// Returns how many verdicts each attempt has, by step and attempt.
    pub fn verdicts(&self) -> BTreeMap<(u32, u64), usize> {
        let mut verdicts = BTreeMap::new();
        for line in self.0.iter().filter(|line| line["event"] == "node_verified") {
            let step = line["node"].as_str().unwrap().parse().unwrap();
            *verdicts.entry((step, line["attempt"].as_u64().unwrap())).or_default() += 1;
        }
        verdicts
    }

    /// The numbers begin with 1 and leave none out, and each attempt has one verdict at most.
    pub fn must_be_whole(&self) {
        let numbers: Vec<u64> = self.0.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "the history has gaps");
        let verdicts = self.verdicts();
        assert!(verdicts.values().all(|count| *count == 1), "verdicts by step and attempt: {verdicts:?}");
        assert_eq!(self.count("harness.evaluated"), verdicts.len(), "one evaluation is one verdict");
    }
}

/// Returns the words of the first excerpt in a line.
fn text_in(value: &Value) -> Option<&str> {
    let fields = value.as_object()?;
    let tail = fields.get("tail").and_then(Value::as_str);
    tail.or_else(|| fields.values().find_map(text_in))
}

/// The run is done, every attempt has its one verdict and no others were made, and the audit finds the run sound.
pub fn must_be_done(place: &Place, attempts: &[u64]) -> History {
    let status = place.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["state"], "done", "{status}");
    let made: Vec<u64> =
        status["steps"].as_array().unwrap().iter().map(|step| step["attempts"].as_u64().unwrap()).collect();
    assert_eq!(made, attempts, "attempts by step");
    let audit = place.must(&["audit"]);
    assert!(audit.out.starts_with("sound "), "{audit:?}");
    let history = History::of(place, "@last");
    history.must_be_whole();
    let expected: Vec<(u32, u64)> = (1..)
        .zip(attempts)
        .flat_map(|(step, attempts)| (1..=*attempts).map(move |one| (step, one)))
        .collect();
    assert_eq!(history.verdicts().into_keys().collect::<Vec<_>>(), expected);
    assert_eq!(history.names().last(), Some(&"plan_completed"));
    history
}

/// No step is touched again once a later one has begun, attempts rise, and no tree met what was left of another.
pub fn must_be_in_order(journal: &[Entry]) {
    let overlaps = journal.iter().filter(|entry| entry.what == "overlap").count();
    assert_eq!(overlaps, 0, "a worker or a contract began while an earlier one lived: {journal:#?}");
    for (before, after) in journal.iter().zip(&journal[1..]) {
        assert!(
            before.step <= after.step,
            "step {} ran again after {}: {journal:#?}",
            after.step,
            before.step
        );
    }
    let mut passed = 0;
    for entry in journal {
        assert!(
            entry.step > passed || entry.what.starts_with("gate"),
            "step {passed} was worked on after it passed"
        );
        if entry.what == "gate end" && entry.number == Some(0) {
            passed = entry.step;
        }
    }
}
