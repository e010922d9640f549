//! The SALUTE report of a run: size, activity, location, unit, time, equipment (G-38).

use std::time::Duration;

use planctl_engine::{
    AskKind, Budget, End, Fact, Graph, Level, NodeId, NodeKind, NodeState, Outcomes, Record, Role, Run,
    RunStatus, Spent, Subscription, Task, Timestamp,
};

use crate::sentence::sentence;
use crate::words::{ask_name, node_name, outcomes_line};

/// How many of the last events the activity tells.
const EVENTS: usize = 5;
/// How many of the last steps entered the path tells.
const PATH: usize = 50;

/// Where a run stands, in the six parts that a supervisor asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Salute {
    /// How much there is of it.
    pub size: Size,
    /// The run's activity, and its last event.
    pub activity: Activity,
    /// Where it is.
    pub location: Location,
    /// The actor for each step that is live, or for the run as a whole.
    pub unit: Vec<Duty>,
    /// Since when.
    pub time: Times,
    /// The resources that it has left.
    pub equipment: Equipment,
}

/// How much there is of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The plan's steps.
    pub steps: u32,
    /// How those that are over went.
    pub settled: Outcomes,
    /// Steps that are worked on, checked, or wait for a person.
    pub live: u32,
}

/// A run's activity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Activity {
    /// In one sentence for each step that is live; where none is, what the run does.
    pub now: Vec<String>,
    /// The last events, oldest first.
    pub events: Vec<Past>,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Past {
    /// When.
    pub at: Timestamp,
    /// The activity, in one sentence.
    pub text: String,
}

/// Where a run is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The steps that are live.
    pub at: Vec<LiveStep>,
    /// The numbers of the steps entered, attempt for attempt, the newest last.
    pub path: Vec<u32>,
}

/// A step that is live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveStep {
    /// Its node.
    pub node: NodeId,
    /// Its number.
    pub step: u32,
    /// Its title.
    pub title: String,
    /// Which entering of it.
    pub visit: u16,
    /// Which try, or none yet.
    pub attempt: u16,
}

/// The actor that a step waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Duty {
    /// The step's number; `None` where it is the run as a whole.
    pub step: Option<u32>,
    /// The actor.
    pub who: Who,
    /// The PACE level that handles the step.
    pub level: Level,
}

/// The actor that has to act.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// A worker of this role.
    Role(Role),
    /// The harness, with the contract.
    Harness,
    /// A person.
    Person,
}

/// Since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// When the run first began.
    pub began: Option<Timestamp>,
    /// When work last moved.
    pub moved: Timestamp,
    /// How long it was active, up to now.
    pub active: Duration,
}

/// The resources of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Equipment {
    /// The budget of the run.
    pub budget: Budget,
    /// The amounts that it has used.
    pub spent: Spent,
    /// Attempts of all steps so far.
    pub attempts: u32,
    /// Files and topics that the live steps are given.
    pub given: Vec<String>,
}

/// Draws up the report of a run that is wholly loaded, from its facts in order.
pub fn salute(graph: &Graph, run: &Run, history: &[(Timestamp, Fact)], now: Timestamp) -> Salute {
    let live = live_steps(graph, run);
    let mut spent = run.head.spent;
    spent.time = run.time_spent(now);
    Salute {
        size: Size {
            steps: graph.task_count(),
            settled: run.head.settled,
            live: u32::try_from(live.len()).unwrap_or(u32::MAX),
        },
        activity: Activity { now: activity_lines(graph, run, &live), events: last_events(graph, history) },
        location: Location { at: live.iter().map(Live::live_step).collect(), path: path(graph, history) },
        unit: duties(run, &live),
        time: Times { began: started_at(history), moved: run.head.moved_at, active: spent.time },
        equipment: Equipment {
            budget: run.head.budget,
            spent,
            attempts: run.head.attempts,
            given: subscription_names(&live),
        },
    }
}

/// A step that is live, with its record.
struct Live<'a> {
    node: &'a NodeId,
    title: &'a str,
    step: u32,
    /// Nothing where it is the harness or a person that acts.
    task: Option<&'a Task>,
    record: &'a Record,
}

fn live_steps<'a>(graph: &'a Graph, run: &'a Run) -> Vec<Live<'a>> {
    let steps = graph.numbered_steps().into_iter();
    let with_record = steps.filter_map(|(step, node)| {
        let record = run.records().get(&node.id)?;
        Some(Live { node: &node.id, title: &node.title, step, task: graph.task(&node.id), record })
    });
    with_record.filter(|step| step.record.state.is_live()).collect()
}

impl Live<'_> {
    fn live_step(&self) -> LiveStep {
        LiveStep {
            node: self.node.clone(),
            step: self.step,
            title: self.title.to_owned(),
            visit: self.record.tally.visits,
            attempt: self.record.tally.attempt.number(),
        }
    }

    fn role(&self) -> Option<&Role> {
        Some(self.record.worker_role(self.task?))
    }

    fn responsible(&self) -> Who {
        match self.record.state {
            NodeState::Rehearsing
            | NodeState::Checking { .. }
            | NodeState::Saving { .. }
            | NodeState::Nested { .. }
            | NodeState::Branching => Who::Harness,
            NodeState::Held { .. } => Who::Person,
            NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Ready
            | NodeState::Pending
            | NodeState::Settled { .. } => self.role().map_or(Who::Harness, |role| Who::Role(role.clone())),
        }
    }

    fn sentence(&self, graph: &Graph) -> String {
        let name = node_name(graph, self.node);
        let role = self.role().map_or("harness", Role::as_str);
        match &self.record.state {
            NodeState::Working { attempt } => format!("attempt {attempt} of {name} is the {role}'s"),
            NodeState::Resting { attempt, .. } => {
                format!("attempt {attempt} of {name} goes out to the {role} again later")
            }
            NodeState::Checking { attempt, .. } => {
                format!("the contract of {name} judges attempt {attempt}")
            }
            NodeState::Rehearsing => format!("the contract of {name} runs before the work"),
            NodeState::Ready => format!("{name} waits until there is room for it"),
            NodeState::Saving { restores: false } => format!("{name} records the workspace"),
            NodeState::Saving { restores: true } => format!("{name} restores the workspace"),
            NodeState::Nested { .. } => format!("the plan of {name} has a run of its own"),
            NodeState::Branching => match graph.node(self.node).map(|node| &node.kind) {
                Some(NodeKind::Fork(_)) => format!("{name} makes worktrees for its branches"),
                Some(_) | None => format!("{name} merges its branches"),
            },
            NodeState::Held { ask, .. } => format!("{name} waits for a person: {}", ask_name(*ask)),
            NodeState::Pending | NodeState::Settled { .. } => name,
        }
    }
}

fn activity_lines(graph: &Graph, run: &Run, live: &[Live<'_>]) -> Vec<String> {
    if !live.is_empty() {
        return live.iter().map(|step| step.sentence(graph)).collect();
    }
    let settled = outcomes_line(run.head.settled);
    let says = match run.head.status {
        RunStatus::New => "nothing was said yet".to_owned(),
        RunStatus::Awaiting => format!("the run waits for a person: {}", ask_name(AskKind::Plan)),
        RunStatus::Queued { .. } => "the run waits for the workspace".to_owned(),
        RunStatus::Active => "the run is between two steps".to_owned(),
        RunStatus::Paused => {
            "the run is paused until it is resumed, or another revision of its plan is approved".to_owned()
        }
        RunStatus::Ended { end: End::Done } => format!("the run is done: {settled}"),
        RunStatus::Ended { end: End::Failed } => format!("the run failed: {settled}"),
        RunStatus::Ended { end: End::Aborted } => format!("a person ended the run: {settled}"),
        RunStatus::Ended { end: End::Cancelled } => format!("the run was cancelled: {settled}"),
    };
    vec![says]
}

fn duties(run: &Run, live: &[Live<'_>]) -> Vec<Duty> {
    if matches!(run.head.status, RunStatus::Awaiting | RunStatus::Paused) {
        return vec![Duty { step: None, who: Who::Person, level: Level::Primary }];
    }
    let duty =
        |step: &Live<'_>| Duty { step: Some(step.step), who: step.responsible(), level: step.record.level() };
    live.iter().map(duty).collect()
}

fn last_events(graph: &Graph, history: &[(Timestamp, Fact)]) -> Vec<Past> {
    let from = history.len().saturating_sub(EVENTS);
    history[from..].iter().map(|(at, fact)| Past { at: *at, text: sentence(graph, fact) }).collect()
}

fn path(graph: &Graph, history: &[(Timestamp, Fact)]) -> Vec<u32> {
    let entered = history.iter().rev().filter_map(|(_, fact)| {
        let (Fact::NodeEntered { node, .. } | Fact::RetryTriggered { node, .. }) = fact else { return None };
        graph.node(node)?.step()
    });
    let mut path: Vec<u32> = entered.take(PATH).collect();
    path.reverse();
    path
}

fn started_at(history: &[(Timestamp, Fact)]) -> Option<Timestamp> {
    let begins = |fact: &Fact| matches!(fact, Fact::PlanActivated { resumed: false });
    history.iter().find(|(_, fact)| begins(fact)).map(|(at, _)| *at)
}

fn subscription_names(live: &[Live<'_>]) -> Vec<String> {
    let named = |given: &Subscription| match given {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    };
    let mut given: Vec<String> =
        live.iter().filter_map(|step| step.task).flat_map(|task| &task.subscriptions).map(named).collect();
    given.sort();
    given.dedup();
    given
}
