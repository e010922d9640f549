//! Straight through, and with everything in memory lost after every transition: path and result are the same.
//!
//! A life claims all that can be claimed, makes one transition, and is over: connections, caches and claims go with it,
//! and its leases stay behind, as they do behind a daemon that was killed. The next life first finds the dead one's leases,
//! one in a life, and goes on.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "postgres/ground.rs"]
#[allow(dead_code, reason = "hands need more of it")]
mod ground;
#[path = "killed/life.rs"]
mod life;
#[path = "../../planctl-engine/tests/conversations/plan.rs"]
#[allow(dead_code, reason = "conversations need more of it")]
mod plan;
#[path = "killed/script.rs"]
mod script;

use std::collections::BTreeMap;

use planctl_engine::{Fact, Graph, NodeId, Outcome, RunId, RunStatus};
use planctl_sim::fact_in_words;
use planctl_store::testing::TestDatabase;
use planctl_store::{Settings, Store};

use life::Life;
use script::{PLANS, Script};

/// Random graphs, beside those that are written down.
const DRAWN: u64 = 12;
/// Lives within which a run must have ended.
const LIVES_MAX: usize = 3_000;

/// The part that must be the same: the path, the state of each node, and the end.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Story {
    path: Vec<String>,
    nodes: BTreeMap<NodeId, (Option<Outcome>, u16, u16, Option<String>)>,
    end: RunStatus,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k7_p10_a_run_that_is_killed_after_every_transition_goes_the_same_way() {
    let database = ground::fresh().await;
    for (name, plan, answers) in PLANS {
        let script = Script::written(plan, answers);
        let killed = both_ways(&database, name, &script).await;
        println!("{name}: {killed} lives");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k7_random_graphs_that_are_killed_after_every_transition_go_the_same_way() {
    let database = ground::fresh().await;
    for seed in 0..DRAWN {
        let script = Script::drawn(seed);
        let killed = both_ways(&database, &format!("drawn-{seed}"), &script).await;
        println!("drawn {seed}: {killed} lives");
    }
}

/// Runs a plan both ways, compares the stories, and returns how many lives it took.
async fn both_ways(database: &TestDatabase, name: &str, script: &Script) -> usize {
    let store = connect(database).await;
    let run = ground::begin(&store, &format!("{name}-straight"), &script.graph).await.run;
    let mut life = Life::new(store.clone(), run, "straight".to_owned());
    while life.turn(script).await {}
    let straight = story(&store, run, &script.graph).await;

    let run = ground::begin(&store, &format!("{name}-killed"), &script.graph).await.run;
    let mut lives = 0;
    loop {
        lives += 1;
        assert!(lives < LIVES_MAX, "{name}: the run does not end");
        // Nothing but the database is left of the life before.
        let mut life = Life::new(connect(database).await, run, format!("{name}-life-{lives}"));
        if !life.reap().await && !life.turn(script).await {
            break;
        }
    }
    let killed = story(&store, run, &script.graph).await;
    assert_eq!(straight.path, killed.path, "{name}: the path");
    assert_eq!(straight, killed, "{name}: the result");
    let findings = store.audit(run).await.unwrap();
    assert!(findings.is_empty(), "{name}: {findings:#?}");
    lives
}

async fn connect(database: &TestDatabase) -> Store {
    let settings = Settings { connections: 2, notifies: false, ..Settings::default() };
    Store::connect(database.connect_options(), settings).await.unwrap()
}

async fn story(store: &Store, run: RunId, graph: &Graph) -> Story {
    let mut path = Vec::new();
    let mut settled: BTreeMap<(NodeId, u16), usize> = BTreeMap::new();
    for (_, event, facts) in ground::history(store, run).await {
        for fact in &facts {
            // Facts of our own death are no part of the path.
            if matches!(fact, Fact::NodeInterrupted { .. } | Fact::GateRepeated { .. }) {
                continue;
            }
            path.push(format!("{}: {}", event.kind(), fact_in_words(fact)));
            if let Fact::NodeVerified { node, attempt, .. } = fact {
                *settled.entry((node.clone(), attempt.number())).or_default() += 1;
            }
        }
    }
    let twice: Vec<_> = settled.iter().filter(|(_, verdicts)| **verdicts > 1).collect();
    assert!(twice.is_empty(), "an attempt has one verdict, for ever: {twice:?}");
    let view = store.run_view(run).await.unwrap();
    let nodes = view.records.into_iter().filter(|(id, _)| graph.node(id).is_some()).map(|(id, record)| {
        let tally = record.tally;
        (id, (record.state.outcome(), tally.visits, tally.attempt.number(), record.saved))
    });
    Story { path, nodes: nodes.collect(), end: view.run.head.status }
}
