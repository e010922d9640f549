//! Decisions of people and rules, of all runs.

use planctl_api::wire::{DecisionLine, DecisionLog, moment};
use planctl_engine::{Decision, Event, HumanEvent};
use planctl_store::{HistoryLine, Said};

use crate::node::services::{ServiceError, Services};

impl Services {
    /// Lists what people and rules decided of all runs, newest first.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn decisions(&self, limit: i64) -> Result<DecisionLog, ServiceError> {
        let lines = self.store.decisions(limit).await?;
        let decisions = lines.iter().filter_map(|(run, line)| Some(decision_line(run, line, human(line)?)));
        Ok(DecisionLog { decisions: decisions.collect() })
    }
}

fn human(line: &HistoryLine) -> Option<&HumanEvent> {
    match &line.said {
        Said::Input(input) => match &input.event {
            Event::Human(event) => Some(event),
            Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => None,
        },
        Said::Fact(_) => None,
    }
}

fn decision_line(run: &str, line: &HistoryLine, event: &HumanEvent) -> DecisionLine {
    DecisionLine {
        at: moment(line.at),
        by: event.by.to_string(),
        decision: word_of(&event.decision).to_owned(),
        run: run.to_owned(),
        run_id: line.run.to_string(),
        seq: line.seq.unsigned_abs(),
        note: event.note.clone(),
    }
}

fn word_of(decision: &Decision) -> &'static str {
    match decision {
        Decision::Submit => "hand-in",
        Decision::Answer { answer, .. } => answer.as_str(),
        Decision::Vote { .. } => "vote",
        Decision::Cancel => "cancel",
        Decision::Pause => "pause",
        Decision::Resume { .. } => "resume",
        Decision::Revise { .. } => "revise",
    }
}
