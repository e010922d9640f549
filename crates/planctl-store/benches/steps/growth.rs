//! The cost of a step in graphs of 10 and of 5,000 nodes: by the engine alone, and with the database.
//!
//! Both sizes are played side by side, so that what disturbs one disturbs the other, and the ratio of their means is told.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use planctl_engine::{
    Answer, At, ClockEvent, Decision, Effect, Event, Graph, Item, NodeId, Record, Refusal, Run, RunId, Scope,
    Timestamp, Work, advance, initial_scope,
};
use planctl_store::{Claim, ClaimLane, Claimed};

use super::shapes::Shape;
use super::{Bench, is_ended};
use crate::world::{self, evaluated, human, next_claim, reported};

/// The sizes that are compared.
const SIZES: [usize; 2] = [10, 5_000];
/// Turns of the large graph with the database: enough to tell, and it begins with the most nodes waiting.
const TURNS_MAX: usize = 1_500;
/// Steps of the large graph between two of the small one's runs.
const STRETCH: usize = 10;

/// Prints what a transition costs the engine, on the records alone that it asks for.
pub fn of_the_engine() {
    for shape in Shape::ALL {
        let [small, large] = SIZES.map(|nodes| shape.graph(nodes));
        let mut means = [Mean::default(), Mean::default()];
        let mut long = Walk::begun(&large);
        while !long.is_over() {
            for _ in 0..STRETCH {
                means[1].add(long.turn());
            }
            let mut short = Walk::begun(&small);
            while !short.is_over() {
                means[0].add(short.turn());
            }
        }
        tell(&format!("engine, {shape:?}"), "µs a transition", &means, 1e6);
    }
}

impl Bench {
    /// Prints what a step costs from its claim to its verdict.
    pub async fn growth(&self) {
        for (at, shape) in Shape::ALL.into_iter().enumerate() {
            let [small, large] = SIZES.map(|nodes| shape.graph(nodes));
            let mut means = [Mean::default(), Mean::default()];
            let long = self.begun_with(&large, &format!("large-{at}")).await;
            for number in 1..=TURNS_MAX / STRETCH {
                for _ in 0..STRETCH {
                    means[1].add(self.turn(long).await);
                }
                let short = self.begun_with(&small, &format!("small-{at}-{number}")).await;
                while let Some(span) = self.turn(short).await {
                    means[0].add(Some(span));
                }
                if is_ended(&self.store, long).await {
                    break;
                }
            }
            tell(&format!("database, {shape:?}"), "ms a step", &means, 1e3);
        }
    }

    /// Does one item, from its claim to what followed from it; nothing where the run is over.
    async fn turn(&self, run: RunId) -> Option<Duration> {
        let begun = Instant::now();
        let claimed =
            match self.claimed(run, ClaimLane::Agent(vec![planctl_engine::Role::new("coder")])).await {
                Some(work) => {
                    let said = reported(&work.item.at);
                    self.store
                        .apply(run, &said, &work.proof(), Some(&next_claim()))
                        .await
                        .unwrap()
                        .claimed_next
                        .unwrap()
                }
                None => self.claimed(run, ClaimLane::Gate).await?,
            };
        let event = evaluated(&claimed.item.at, code(&claimed.item.at));
        self.store.apply(run, &event, &claimed.proof(), None).await.unwrap();
        Some(begun.elapsed())
    }

    async fn claimed(&self, run: RunId, lane: ClaimLane) -> Option<Claimed> {
        let holder = world::holder("bench");
        let lease = Duration::from_secs(15);
        self.store.claim(&Claim { lane, run: Some(run), except: Vec::new(), holder, lease }).await.unwrap()
    }
}

/// How a gate ends: each check fails once, so that its loop is walked twice.
fn code(at: &At) -> i32 {
    i32::from(at.node.as_str().starts_with("check") && at.attempt.number() == 1)
}

/// A run in memory, of which each transition is given what it asks for.
struct Walk<'g> {
    graph: &'g Graph,
    id: RunId,
    head: planctl_engine::Head,
    records: BTreeMap<NodeId, Record>,
    out: VecDeque<Item>,
}

impl<'g> Walk<'g> {
    fn begun(graph: &'g Graph) -> Walk<'g> {
        let id = RunId::from_u128(1);
        let head = Run::new(id, graph, Timestamp::from_micros(0)).head;
        let mut walk = Walk { graph, id, head, records: BTreeMap::new(), out: VecDeque::new() };
        walk.hear(&human(Decision::Submit));
        let item = walk.out.pop_front().unwrap().id;
        walk.hear(&human(Decision::Answer { item, answer: Answer::Approve }));
        walk.hear(&Event::Clock(ClockEvent::Admitted));
        walk
    }

    fn is_over(&self) -> bool {
        self.out.is_empty()
    }

    /// Answers the oldest item; returns what that took.
    fn turn(&mut self) -> Option<Duration> {
        let item = self.out.pop_front()?;
        let event = match item.work {
            Work::Agent { .. } => reported(&item.at),
            Work::Harness { .. } | Work::Human { .. } => evaluated(&item.at, code(&item.at)),
        };
        Some(self.hear(&event))
    }

    fn hear(&mut self, event: &Event) -> Duration {
        let begun = Instant::now();
        let mut scope = initial_scope(self.graph, event);
        let after = loop {
            let is_loaded = |id: &NodeId, record: &Record| match &scope {
                Scope::All => true,
                Scope::Nodes(ids) => ids.contains(id),
                Scope::Live(ids) => ids.contains(id) || record.state.is_live(),
            };
            let records = match &scope {
                Scope::Nodes(ids) => {
                    ids.iter().filter_map(|id| Some((id.clone(), self.records.get(id)?.clone()))).collect()
                }
                Scope::All | Scope::Live(_) => self
                    .records
                    .iter()
                    .filter(|(id, record)| is_loaded(id, record))
                    .map(|(id, record)| (id.clone(), record.clone()))
                    .collect(),
            };
            let run = Run::from_parts(self.id, self.head.clone(), scope.clone(), records);
            match advance(self.graph, &run, event, Timestamp::from_micros(1)) {
                Ok(after) => break after,
                Err(Refusal::NotLoaded(more)) => scope = scope.union(more),
                Err(refusal) => panic!("{refusal}: {event:?}"),
            }
        };
        let took = begun.elapsed();
        self.records.extend(after.run.records().clone());
        self.head = after.run.head;
        for effect in after.effects {
            match effect {
                Effect::Dispatch(item) => self.out.push_back(*item),
                Effect::Withdraw(id) => self.out.retain(|item| item.id != id),
                Effect::Arm { .. } | Effect::Disarm(_) => {}
            }
        }
        took
    }
}

/// The average time of one transition without the slowest ones, since the machine does other things, too.
#[derive(Default)]
struct Mean {
    spans: Vec<Duration>,
}

impl Mean {
    fn add(&mut self, span: Option<Duration>) {
        self.spans.extend(span);
    }

    fn seconds(&mut self) -> f64 {
        self.spans.sort();
        let kept = &self.spans[..self.spans.len() * 98 / 100];
        kept.iter().sum::<Duration>().as_secs_f64() / kept.len() as f64
    }
}

fn tell(what: &str, unit: &str, means: &[Mean; 2], scale: f64) {
    let [small, large] = means;
    let mut of = [small.spans.clone(), large.spans.clone()].map(|spans| Mean { spans });
    let [small, large] = [of[0].seconds(), of[1].seconds()];
    println!(
        "{what:<28} {:>9.3} {:>9.3} {unit:<16} ratio {:.2}",
        small * scale,
        large * scale,
        large / small
    );
}
