//! A database with random plans, and what must be true of each run when it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use planctl_engine::{Decision, Digest, Event, Fact, Graph, HumanEvent, Run, RunId, RunStatus, Scope};
use planctl_sim::{Dice, Model, Plan, draw, fact_in_words, view_of};
use planctl_store::testing::TestDatabase;
use planctl_store::{RunRow, Settings, Store, WorkspaceId};

use super::ground::{self, Begun};
use super::hands::Hand;

/// Hands on each run.
const HANDS: u64 = 3;

#[derive(Clone)]
pub struct Stage {
    pub store: Store,
    // Dropped last, after the connections.
    _database: Arc<TestDatabase>,
}

/// One run and what its hands know of it.
pub struct Scene {
    pub store: Store,
    pub seed: u64,
    pub run: RunId,
    pub path: String,
    pub workspace: WorkspaceId,
    /// Every revision by its digest, and which came last.
    pub revisions: Mutex<(BTreeMap<Digest, Graph>, Plan)>,
    /// What its hands met, in words.
    pub met: Mutex<BTreeSet<&'static str>>,
}

impl Stage {
    pub async fn set() -> Stage {
        let database = ground::fresh().await;
        let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
        Stage { store, _database: Arc::new(database) }
    }

    /// Plays one run to its end; returns how many events it took, and what was met on the way.
    pub async fn play(&self, seed: u64) -> (usize, BTreeSet<&'static str>) {
        let scene = Arc::new(self.scene(seed).await);
        let hands =
            (0..HANDS).map(|place| Hand::new(scene.clone(), place)).map(|hand| tokio::spawn(hand.play()));
        for hand in hands.collect::<Vec<_>>() {
            hand.await.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
        }
        let events = self.judge(&scene).await;
        (events, scene.met.lock().unwrap().clone())
    }

    async fn scene(&self, seed: u64) -> Scene {
        let plan = draw(&mut Dice::new(seed));
        let Begun { run, path, workspace, digest } =
            ground::begin(&self.store, &seed.to_string(), &plan.graph).await;
        let revisions = Mutex::new((BTreeMap::from([(digest, plan.graph.clone())]), plan));
        Scene { store: self.store.clone(), seed, run, path, workspace, revisions, met: Mutex::default() }
    }

    /// Audits a run, and has the reference model hear its history.
    async fn judge(&self, scene: &Scene) -> usize {
        let seed = scene.seed;
        let row: RunRow = self.store.run(scene.run).await.unwrap();
        assert!(matches!(row.head.status, RunStatus::Ended { .. }), "seed {seed}: {:?}", row.head);
        let findings = self.store.audit(scene.run).await.unwrap();
        assert!(findings.is_empty(), "seed {seed}: {findings:#?}");
        let view = self.store.run_view(scene.run).await.unwrap();
        assert!(view.items.is_empty(), "seed {seed}: an ended run has items out: {:?}", view.items);

        let (revisions, _) = scene.revisions.lock().unwrap().clone();
        let first = revisions[&Digest::new(format!("sha256:{seed}"))].clone();
        let mut model = Model::new(scene.run, first, row.created_at);
        let heard = ground::history(&self.store, scene.run).await;
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
        let run = Run::loaded(scene.run, view.run.head, Scope::All, view.records);
        let graph = scene.revisions.lock().unwrap().1.graph.clone();
        assert_eq!(view_of(&graph, &run), model.view(), "seed {seed}: the rows and the model differ");
        heard.len()
    }
}

impl Scene {
    /// Returns how long until something of the run becomes due; never long, since others move it too.
    pub async fn pause(&self) -> Duration {
        let wake = self.store.next_wake(self.run).await.unwrap();
        wake.unwrap_or(Duration::ZERO).clamp(Duration::from_millis(2), Duration::from_millis(40))
    }
}

/// Says how a run or a step came to its end.
fn ending(fact: &Fact) -> Option<&'static str> {
    if let Fact::NodeSettled { outcome, .. } = fact {
        return Some(outcome.word());
    }
    match fact.name() {
        "plan_completed" => Some("done"),
        "plan_failed" => Some("failed"),
        _ => None,
    }
}
