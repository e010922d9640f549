//! A database of a test's own, and runs in it.

use planctl_engine::{
    Actor, ChildEnd, Decision, Digest, End, Event, Fact, Graph, HarnessResult, HumanEvent, ItemId, Outcomes,
    RunId, Spent, Timestamp,
};
use planctl_sim::truth;
use planctl_store::testing::{TestCluster, TestDatabase};
use planctl_store::{NewRevision, NewRun, PlanStatus, Proof, Said, Store, WorkspaceId};

pub const HOST: &str = "host-a";

/// A run that was handed in and waits for its approval.
pub struct Begun {
    pub run: RunId,
    pub path: String,
    pub workspace: WorkspaceId,
    pub digest: Digest,
}

/// Makes a database with the schema in it.
pub async fn fresh() -> TestDatabase {
    TestCluster::shared().migrated_database().await
}

/// Begins a run of a graph in a workspace of its own.
pub async fn begin(store: &Store, name: &str, graph: &Graph) -> Begun {
    let workspace = store.workspace(HOST, &format!("/somewhere/{name}")).await.unwrap();
    let path = format!("plan-{name}.md");
    let digest = Digest::new(format!("sha256:{name}"));
    let revision = NewRevision {
        workspace,
        path: &path,
        digest: &digest,
        source: "# A drawn plan",
        graph,
        by: "the author",
    };
    let saved = store.save_revision(&revision).await.unwrap().id;
    store.move_plan(saved, PlanStatus::Verified, "harness", "every check passed").await.unwrap();
    let stem = format!("plan-{name}");
    let new = NewRun {
        plan: saved,
        revision: &digest,
        stem: &stem,
        approval: None,
        settings: "{}",
        served: &[],
        request: None,
    };
    let run = store.create_run(&new).await.unwrap().id;
    store.apply(run, &human(Decision::Submit), &Proof::Submit, None).await.unwrap();
    Begun { run, path, workspace, digest }
}

/// Says that the run of a plan within the plan is over: well or not, the same each time.
pub fn run_within(seed: u64, item: &ItemId) -> HarnessResult {
    let hidden = truth(seed, &["within", item.as_str()], 0);
    let run = RunId::from_u128(u128::from(hidden) << 32 | 1);
    let end = [End::Done, End::Done, End::Failed, End::Cancelled][(hidden % 4) as usize];
    let spent = Spent { tokens: hidden / 4 % 500, metered: 1, ..Spent::default() };
    let name = format!("within-{}", hidden % 1_000);
    HarnessResult::Ended(Box::new(ChildEnd { run, name, end, settled: Outcomes::default(), spent }))
}

/// Reads inputs with their times and what followed from each.
pub async fn history(store: &Store, run: RunId) -> Vec<(Timestamp, Event, Vec<Fact>)> {
    let mut heard: Vec<(Timestamp, Event, Vec<Fact>)> = Vec::new();
    let mut seq = 0;
    loop {
        let lines = store.history(run, seq, 500).await.unwrap();
        if lines.is_empty() {
            return heard;
        }
        for line in lines {
            assert_eq!(line.seq, seq + 1, "I1 history has no gap");
            seq = line.seq;
            match line.said {
                Said::Input(input) => heard.push((line.at, input.event, Vec::new())),
                Said::Fact(fact) => heard.last_mut().expect("a fact follows an input").2.push(*fact),
            }
        }
    }
}

pub fn human(decision: Decision) -> Event {
    Event::Human(HumanEvent { by: Actor::from("the owner"), note: Some("because".to_owned()), decision })
}
