//! A database with random plans, and what must be true of each run when it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use planctl_engine::{
    Decision, Digest, Event, Fact, Graph, HumanEvent, ItemId, Run, RunId, RunStatus, Scope,
};
use planctl_sim::{Dice, Model, Plan, draw, fact_in_words, view_of};
use planctl_store::testing::TestDatabase;
use planctl_store::{RunRow, Settings, Store, WorkspaceId};

use super::ground::{self, Begun};
use super::hands::Hand;

/// Hands on each run, each of a process of its own.
pub const HANDS: usize = 3;

#[derive(Clone)]
pub struct Stage {
    /// One for each process: with its own connections, its own snapshots of runs, and its own group commit.
    stores: Vec<Store>,
    locks: Arc<Mutex<LocksInUse>>,
    // Dropped last, after the connections.
    _database: Arc<TestDatabase>,
}

/// One run and what its hands know of it.
pub struct Scene {
    pub seed: u64,
    pub run: RunId,
    pub path: String,
    pub workspace: WorkspaceId,
    /// Every revision by its digest, and which came last.
    pub revisions: Mutex<(BTreeMap<Digest, Graph>, Plan)>,
    /// The cases that its hands met, in words.
    pub met: Mutex<BTreeSet<&'static str>>,
    /// Which hand moved the run, each time.
    pub movers: Mutex<Vec<usize>>,
    pub locks: Arc<Mutex<LocksInUse>>,
}

/// The locks of steps that are worked on, across runs, as the workers know them, and not the store.
#[derive(Default)]
pub struct LocksInUse(BTreeMap<String, (ItemId, Instant)>);

impl LocksInUse {
    /// Notes that a step is worked on until its lease is over; nobody else works under one of its locks.
    pub fn begin(&mut self, item: &ItemId, locks: &[String], until: Instant) {
        for lock in locks {
            let before = self.0.insert(lock.clone(), (item.clone(), until));
            let other = before.filter(|(other, until)| other != item && *until > Instant::now());
            assert!(other.is_none(), "{item} is worked on under the lock {lock}, and so is {other:?}");
        }
    }

    /// Notes that the work on a step has ended.
    pub fn end(&mut self, item: &ItemId) {
        self.0.retain(|_, (other, _)| other != item);
    }
}

impl Stage {
    pub async fn set() -> Stage {
        let database = ground::fresh().await;
        let mut stores = Vec::new();
        for _ in 0..HANDS {
            stores.push(Store::connect(database.connect_options(), Settings::default()).await.unwrap());
        }
        Stage { stores, locks: Arc::default(), _database: Arc::new(database) }
    }

    /// Plays one run to its end; returns how many events it took, and what was met on the way.
    pub async fn play(&self, seed: u64) -> (usize, BTreeSet<&'static str>) {
        let scene = Arc::new(self.scene(seed).await);
        let hands = (0..HANDS).map(|place| Hand::new(scene.clone(), self.stores[place].clone(), place));
        let hands = hands.map(|hand| tokio::spawn(hand.play()));
        for hand in hands.collect::<Vec<_>>() {
            hand.await.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
        }
        let events = self.judge(&scene).await;
        let movers = scene.movers.lock().unwrap();
        let turns = movers.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(turns >= 2 || events < 20, "seed {seed}: {events} events, moved by {movers:?} in turn");
        (events, scene.met.lock().unwrap().clone())
    }

    async fn scene(&self, seed: u64) -> Scene {
        let plan = draw(&mut Dice::new(seed));
        let Begun { run, path, workspace, digest } =
            ground::begin(&self.stores[0], &seed.to_string(), &plan.graph).await;
        let revisions = Mutex::new((BTreeMap::from([(digest, plan.graph.clone())]), plan));
        let (met, movers, locks) = (Mutex::default(), Mutex::default(), self.locks.clone());
        Scene { seed, run, path, workspace, revisions, met, movers, locks }
    }

    /// Audits a run, and has the reference model hear its history.
    async fn judge(&self, scene: &Scene) -> usize {
        let (seed, store) = (scene.seed, &self.stores[HANDS - 1]);
        let row: RunRow = store.run(scene.run).await.unwrap();
        assert!(matches!(row.head.status, RunStatus::Ended { .. }), "seed {seed}: {:?}", row.head);
        let findings = store.audit(scene.run).await.unwrap();
        assert!(findings.is_empty(), "seed {seed}: {findings:#?}");
        let view = store.run_view(scene.run).await.unwrap();
        assert!(view.items.is_empty(), "seed {seed}: an ended run has items out: {:?}", view.items);

        let (revisions, _) = scene.revisions.lock().unwrap().clone();
        let first = revisions[&Digest::new(format!("sha256:{seed}"))].clone();
        let mut model = Model::new(scene.run, first, row.created_at);
        let heard = ground::history(store, scene.run).await;
        for (at, event, facts) in &heard {
            let mut met = vec![event.kind()];
            met.extend(facts.iter().filter_map(ending));
            scene.met.lock().unwrap().extend(met);
            let revision = match event {
                Event::Human(HumanEvent { decision: Decision::Revise { revision, .. }, .. }) => {
                    Some(&revisions[revision])
                }
                Event::Human(_) | Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => None,
            };
            let mut told = model.hear(event, revision, *at).unwrap_or_else(|| {
                panic!("seed {seed}: the store accepted what the model refuses: {event:?}")
            });
            let mut facts: Vec<String> = facts.iter().map(fact_in_words).collect();
            told.sort();
            facts.sort();
            assert_eq!(facts, told, "seed {seed}: facts of {event:?}");
        }
        let run = Run::from_parts(scene.run, view.run.head, Scope::All, view.records);
        let graph = scene.revisions.lock().unwrap().1.graph.clone();
        assert_eq!(view_of(&graph, &run), model.view(), "seed {seed}: the rows and the model differ");
        heard.len()
    }
}

/// Says how a run or a step came to its end.
fn ending(fact: &Fact) -> Option<&'static str> {
    if let Fact::NodeSettled { outcome, .. } = fact {
        return Some(outcome.as_str());
    }
    match fact.name() {
        "plan_completed" => Some("done"),
        "plan_failed" => Some("failed"),
        _ => None,
    }
}
