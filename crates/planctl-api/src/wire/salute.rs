//! The SALUTE report, as JSON says it.

use planctl_view::{Duty, LiveStep, Salute, Who};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BudgetView, RunState, SpentView, moment};

/// A run in the six parts a supervisor asks for: the answer of `plan status RUN --salute --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SaluteView {
    /// How much there is of it.
    pub size: SizeView,
    /// The run's activity, and its last event.
    pub activity: ActivityView,
    /// Where it is.
    pub location: LocationView,
    /// The actor for each step that is live.
    pub unit: Vec<DutyView>,
    /// Since when.
    pub time: TimesView,
    /// The resources that it has left.
    pub equipment: EquipmentView,
}

/// How much there is of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SizeView {
    /// The plan's steps.
    pub total_steps: u32,
    /// Steps that are over, in any way.
    pub completed_steps: u32,
    /// Of these, those whose gate passed.
    pub passed: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that were left out.
    pub skipped: u32,
    /// Those that a person let count as met.
    pub waived: u32,
    /// Those that failed where the plan goes on.
    pub warned: u32,
    /// Steps that are worked on, checked, or wait for a person.
    pub live: u32,
}

/// A run's activity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ActivityView {
    /// Where the run stands.
    pub state: RunState,
    /// In one sentence for each step that is live; where none is, what the run does.
    pub now: Vec<String>,
    /// The last events, at most five, oldest first.
    pub events: Vec<PastView>,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PastView {
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The activity, in one sentence.
    pub text: String,
}

/// Where a run is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LocationView {
    /// The run.
    pub run: String,
    /// The plan's path.
    pub plan: String,
    /// The plan's title.
    #[serde(default)]
    pub title: String,
    /// The host that has the workspace.
    pub host: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The steps that are live.
    pub steps: Vec<PlaceView>,
    /// The numbers of the steps entered, attempt for attempt, the newest last; at most fifty.
    pub path: Vec<u32>,
}

/// A step that is live.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlaceView {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Its node in the graph.
    pub node: String,
    /// Which entering of it.
    pub visit: u16,
    /// Which try; 0 where none began.
    pub attempt: u16,
}

/// The actor that a step waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DutyView {
    /// The step's number; `null` where it is the run as a whole.
    pub step: Option<u32>,
    /// `role`, `harness`, or `person`.
    #[schemars(extend("enum" = ["role", "harness", "person"]))]
    pub who: String,
    /// The role, where it is one.
    pub role: Option<String>,
    /// The PACE level that handles the step.
    #[serde(default = "super::pace::primary")]
    #[schemars(extend("enum" = ["primary", "alternate", "contingent", "emergency"]))]
    pub level: String,
}

/// Since when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimesView {
    /// When the report was drawn up, RFC 3339, by the database's clock.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// When the run first began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub began_at: Option<String>,
    /// When work last moved, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub moved_at: String,
    /// How long ago that was, in seconds.
    pub still_seconds: f64,
    /// How long the run was active, in seconds.
    pub active_seconds: f64,
}

/// The resources of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EquipmentView {
    /// The limits of the run; `null` parts have no limit.
    pub budget: BudgetView,
    /// The amounts that it has used.
    pub spent: SpentView,
    /// Attempts of all steps so far.
    pub attempts: u32,
    /// The command that serves every role, where `--exec` named one.
    pub exec: Option<String>,
    /// The agent that serves every role, where `--agent` named one.
    pub agent: Option<String>,
    /// Files and topics that the live steps are given.
    pub given: Vec<String>,
}

impl SaluteView {
    /// Says a report in the words of programs, of a run that was read at this time.
    pub fn of(
        salute: &Salute,
        run: super::RunView,
        host: String,
        now: planctl_engine::Timestamp,
    ) -> SaluteView {
        let settled = salute.size.settled;
        SaluteView {
            size: SizeView {
                total_steps: salute.size.steps,
                completed_steps: settled.total(),
                passed: settled.passed,
                failed: settled.failed,
                skipped: settled.skipped,
                waived: settled.waived,
                warned: settled.warned,
                live: salute.size.live,
            },
            activity: ActivityView {
                state: run.state,
                now: salute.activity.now.clone(),
                events: salute
                    .activity
                    .events
                    .iter()
                    .map(|past| PastView { at: moment(past.at), text: past.text.clone() })
                    .collect(),
            },
            location: LocationView {
                run: run.run,
                plan: run.plan,
                title: run.title,
                host,
                workspace: run.workspace,
                steps: salute.location.at.iter().map(PlaceView::of).collect(),
                path: salute.location.path.clone(),
            },
            unit: salute.unit.iter().map(DutyView::of).collect(),
            time: TimesView {
                at: moment(now),
                began_at: salute.time.began.map(moment),
                moved_at: moment(salute.time.moved),
                still_seconds: now.since(salute.time.moved).as_secs_f64(),
                active_seconds: salute.time.active.as_secs_f64(),
            },
            equipment: EquipmentView {
                budget: salute.equipment.budget.into(),
                spent: salute.equipment.spent.into(),
                attempts: salute.equipment.attempts,
                exec: run.exec,
                agent: run.agent,
                given: salute.equipment.given.clone(),
            },
        }
    }
}

impl PlaceView {
    fn of(place: &LiveStep) -> PlaceView {
        PlaceView {
            number: place.step,
            title: place.title.clone(),
            node: place.node.as_str().to_owned(),
            visit: place.visit,
            attempt: place.attempt,
        }
    }
}

impl DutyView {
    fn of(duty: &Duty) -> DutyView {
        let (who, role) = match &duty.who {
            Who::Role(role) => ("role", Some(role.as_str().to_owned())),
            Who::Harness => ("harness", None),
            Who::Person => ("person", None),
        };
        DutyView { step: duty.step, who: who.to_owned(), role, level: duty.level.as_str().to_owned() }
    }
}
