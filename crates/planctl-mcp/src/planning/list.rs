//! One list: its objective, its steps, and the five changes that make another list of it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use super::text::Field;

/// The most steps of a list.
const STEPS_MAX: usize = 500;
/// The most notes of a step.
const NOTES_MAX: usize = 100;

/// The status of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListStatus {
    /// It takes changes.
    Active,
    /// Each of its steps is done.
    Completed,
    /// It was cleared.
    Abandoned,
}

impl fmt::Display for ListStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListStatus::Active => "active",
            ListStatus::Completed => "completed",
            ListStatus::Abandoned => "abandoned",
        })
    }
}

/// The status of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Something is in its way.
    Blocked,
    /// Done, by its agent's own word.
    Done,
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StepStatus::Pending => "pending",
            StepStatus::InProgress => "in_progress",
            StepStatus::Blocked => "blocked",
            StepStatus::Done => "done",
        })
    }
}

/// A step that is to be added.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStep {
    /// Its title: 1 to 160 ASCII characters.
    pub title: String,
    /// More about it: at most 512 ASCII characters.
    #[serde(default)]
    pub details: Option<String>,
}

/// A step of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Step {
    /// Its id: S001, S002, ...
    pub step_id: String,
    /// Its title.
    pub title: String,
    /// More about it.
    pub details: Option<String>,
    /// Its status.
    pub status: StepStatus,
    /// Its notes, the oldest first.
    pub notes: Vec<String>,
}

/// A list as it was after one change. It is never changed: a change makes another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct List {
    /// Its objective.
    pub objective: String,
    /// Its status.
    pub status: ListStatus,
    /// Its steps, in the order in which they were added.
    pub steps: Vec<Step>,
    /// Counts the changes of the session's list, from 1.
    pub version: u64,
}

impl List {
    /// Begins a list; it takes the place of the session's list before.
    pub fn setup(before: Option<&List>, objective: &str, steps: &[NewStep]) -> Result<List, Refusal> {
        let objective = Field::Objective.required(objective)?;
        let version = before.map_or(1, |before| before.version + 1);
        let empty = List { objective, status: ListStatus::Active, steps: Vec::new(), version };
        empty.with_added(steps)
    }

    /// Adds steps at the end.
    pub fn add(&self, steps: &[NewStep]) -> Result<List, Refusal> {
        self.must_be_active("add steps to")?;
        if steps.is_empty() {
            return Err(Refusal::NothingToAdd);
        }
        self.next().with_added(steps)
    }

    /// Gives a step another title, other details, or both.
    pub fn update(&self, step_id: &str, title: Option<&str>, details: Option<&str>) -> Result<List, Refusal> {
        self.must_be_active("update steps in")?;
        let step_id = id_of(step_id)?;
        let title = title.map(|title| Field::Title.required(title)).transpose()?;
        let details = Field::Details.optional(details)?;
        if title.is_none() && details.is_none() {
            return Err(Refusal::NothingToUpdate);
        }
        let mut list = self.next();
        let step = list.step_mut(&step_id)?;
        step.title = title.unwrap_or_else(|| step.title.clone());
        step.details = details.or_else(|| step.details.take());
        Ok(list)
    }

    /// Sets the status of a step and adds a note; the list is completed once each of its steps is done.
    pub fn mark(&self, step_id: &str, status: StepStatus, note: Option<&str>) -> Result<List, Refusal> {
        if self.status == ListStatus::Abandoned {
            return Err(Refusal::Abandoned);
        }
        self.must_be_active("mark steps in")?;
        let step_id = id_of(step_id)?;
        let mut list = self.next();
        let step = list.step_mut(&step_id)?;
        if let Some(note) = note {
            let note = Field::Note.optional(Some(note))?;
            step.notes.push(note.ok_or(Refusal::EmptyWhenProvided(Field::Note))?);
        }
        if step.notes.len() > NOTES_MAX {
            return Err(Refusal::TooManyNotes(NOTES_MAX));
        }
        step.status = status;
        if list.steps.iter().all(|step| step.status == StepStatus::Done) {
            list.status = ListStatus::Completed;
        }
        Ok(list)
    }

    /// Abandons the list: it has no steps any more.
    pub fn clear(&self) -> Result<List, Refusal> {
        if self.status == ListStatus::Abandoned {
            return Err(Refusal::AbandonedAlready);
        }
        Ok(List { status: ListStatus::Abandoned, steps: Vec::new(), ..self.next() })
    }

    fn next(&self) -> List {
        List { version: self.version + 1, ..self.clone() }
    }

    fn must_be_active(&self, action: &'static str) -> Result<(), Refusal> {
        match self.status {
            ListStatus::Active => Ok(()),
            status @ (ListStatus::Completed | ListStatus::Abandoned) => {
                Err(Refusal::NotActive { action, status })
            }
        }
    }

    fn with_added(mut self, steps: &[NewStep]) -> Result<List, Refusal> {
        if self.steps.len() + steps.len() > STEPS_MAX {
            return Err(Refusal::TooManySteps(STEPS_MAX));
        }
        for step in steps {
            let title = Field::Title.required(&step.title)?;
            let details = Field::Details.optional(step.details.as_deref())?;
            let step_id = self.next_id();
            self.steps.push(Step { step_id, title, details, status: StepStatus::Pending, notes: Vec::new() });
        }
        Ok(self)
    }

    /// Returns the id after the highest number among those of the steps; an id without a number counts nothing.
    fn next_id(&self) -> String {
        let numbers =
            self.steps.iter().filter_map(|step| step.step_id.strip_prefix('S')?.parse::<u32>().ok());
        format!("S{:03}", numbers.max().unwrap_or(0).saturating_add(1))
    }

    fn step_mut(&mut self, step_id: &str) -> Result<&mut Step, Refusal> {
        let found = self.steps.iter_mut().find(|step| step.step_id == step_id);
        found.ok_or_else(|| Refusal::NoSuchStep(step_id.to_owned()))
    }
}

fn id_of(step_id: &str) -> Result<String, Refusal> {
    Field::StepId.optional(Some(step_id))?.ok_or(Refusal::NoStepId)
}
