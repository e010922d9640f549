//! A migrated database with one plan in it, and the few words a test needs to move a run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;
use std::time::Duration;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, At, Budget, ClockEvent, Contract, Decision, Digest, Edge, Ending,
    Event, Evidence, Excerpt, Graph, GraphParts, HarnessEvent, HarnessResult, HumanEvent, Limits, Node,
    NodeKind, On, Outcome, Priority, RedFirst, Report, Resources, Role, RunId, Task, WorkKind,
};
use planctl_store::testing::{TestCluster, TestDatabase};
use planctl_store::{
    Applied, Claim, ClaimLane, Claimed, Holder, NewRevision, NewRun, NextClaim, Plan, PlanStatus, Proof,
    RequestId, RunRow, STATEMENTS, Settings, Store, StoreError, WorkspaceId,
};

#[path = "rewriting.rs"]
mod rewriting;

pub const HOST: &str = "host-a";

pub struct World {
    pub store: Store,
    pub plan: Plan,
    pub workspace: WorkspaceId,
    pub graph: Graph,
    pub digest: Digest,
    // Dropped last, after the connections.
    pub database: TestDatabase,
}

/// A plan of `steps` steps in a row; each failing gate is retried once, and then a person is asked.
pub fn linear(steps: u32) -> Graph {
    linear_with(steps, Budget::default(), RedFirst::Off)
}

/// The same with a budget, and with contracts that are tried before the work.
pub fn linear_with(steps: u32, budget: Budget, red_first: RedFirst) -> Graph {
    let mut nodes = vec![node("start", NodeKind::Start), node("done", NodeKind::Exit { success: true })];
    nodes.push(node("ask", NodeKind::Escalate { reason: None, pace_level: None }));
    let mut edges = vec![edge("start", "1", On::Success)];
    for step in 1..=steps {
        let id = step.to_string();
        let next = if step == steps { "done".to_owned() } else { (step + 1).to_string() };
        nodes.push(node(&id, NodeKind::Task(Box::new(task(step, red_first)))));
        edges.push(edge(&id, &next, On::Success));
        edges.push(edge(&id, "ask", On::Exhaust));
    }
    let limits = Limits { stale_after: Some(Duration::from_secs(3600)), ..Limits::default() };
    Graph::new(GraphParts {
        title: "a plan".to_owned(),
        start: "start".into(),
        nodes,
        edges,
        budget,
        limits,
        priority: Priority::Urgent,
        goals: Vec::new(),
        context: BTreeMap::new(),
    })
    .unwrap()
}

/// A step to which its last failure leads back.
pub fn circular() -> Graph {
    let nodes = vec![
        node("start", NodeKind::Start),
        node("1", NodeKind::Task(Box::new(task(1, RedFirst::Off)))),
        node("done", NodeKind::Exit { success: true }),
    ];
    let edges =
        vec![edge("start", "1", On::Success), edge("1", "done", On::Success), edge("1", "1", On::Exhaust)];
    Graph::new(GraphParts {
        title: "a circle".to_owned(),
        start: "start".into(),
        nodes,
        edges,
        budget: Budget::default(),
        limits: Limits::default(),
        priority: Priority::Normal,
        goals: Vec::new(),
        context: BTreeMap::new(),
    })
    .unwrap()
}

fn node(id: &str, kind: NodeKind) -> Node {
    Node::new(id, id, kind)
}

fn edge(from: &str, to: &str, on: On) -> Edge {
    Edge::new(from, to, on)
}

/// One of the steps of [`linear`].
pub fn task(step: u32, red_first: RedFirst) -> Task {
    Task {
        step,
        role: Role::new("coder"),
        pace: Vec::new(),
        work: WorkKind::Code,
        prompt: format!("do step {step}"),
        subscriptions: Vec::new(),
        contract: Contract { red_first, ..contract() },
        max_retries: 1,
        on_exhausted: Outcome::Failed,
        work_timeout: Duration::from_secs(600),
        protects: Vec::new(),
        locks: Vec::new(),
        excludes: Vec::new(),
        contract_files: BTreeSet::new(),
        may_change: BTreeSet::new(),
    }
}

/// The contract of every step.
pub fn contract() -> Contract {
    Contract {
        command: "true".to_owned(),
        digest: Digest::new("sha256:contract"),
        expect: 0,
        timeout: Duration::from_secs(60),
        guard: false,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
    }
}

/// Names a check to do without: the function of the database or the statement of the store that has it, the check and what stands in
/// its place, with U+001F between them; without a function, a statement that drops an index or a trigger.
pub const REMOVED_CHECK: &str = "PLANCTL_TEST_REMOVED_CHECK";

pub async fn database() -> TestDatabase {
    use sqlx::{Connection as _, Executor as _};
    let mut database = TestCluster::shared().migrated_database().await;
    let Ok(removed) = std::env::var(REMOVED_CHECK) else { return database };
    let [of, check, instead] = removed.split('\u{1f}').collect::<Vec<_>>()[..] else { return database };
    if let Some((_, statement)) = STATEMENTS.iter().find(|(name, _)| *name == of) {
        let without = statement.replace(check, instead);
        assert_ne!(without, *statement, "the function has no {check}");
        database.go_through(rewriting::listen(&database.connect_options(), statement, without).await);
        return database;
    }
    let mut connection = sqlx::PgConnection::connect_with(&database.connect_options()).await.unwrap();
    if of.is_empty() {
        connection.execute(sqlx::AssertSqlSafe(check)).await.unwrap();
    } else {
        remove(&mut connection, of, check, instead).await;
    }
    connection.close().await.unwrap();
    database
}

/// Takes a check out of a function of the database.
async fn remove(connection: &mut sqlx::PgConnection, function: &str, check: &str, instead: &str) {
    use sqlx::Executor as _;
    // Without the spaces that only indent a line.
    let squeezed = |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    let definition: String = sqlx::query_scalar("select pg_get_functiondef($1::text::regprocedure)")
        .bind(function)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let definition = squeezed(&definition);
    let without = definition.replace(&squeezed(check), instead);
    assert_ne!(without, definition, "the function has no {check}");
    connection.execute(sqlx::AssertSqlSafe(without)).await.unwrap();
}

pub async fn world(steps: u32) -> World {
    world_of(linear(steps)).await
}

pub async fn world_of(graph: Graph) -> World {
    let database = database().await;
    // The whole suite can be run without notifications: only a test that waits for a notification may take longer.
    let notifies = std::env::var("PLANCTL_NOTIFY").is_ok_and(|word| word == "off").not();
    // Tests hold rows while others come to wait for them, which takes long on a busy machine.
    let settings = Settings {
        deadline: Duration::from_secs(30),
        statement_timeout: Duration::from_secs(60),
        lock_timeout: Duration::from_secs(60),
        notifies,
        ..Settings::default()
    };
    let store = Store::connect(database.connect_options(), settings).await.unwrap();
    let workspace = store.workspace(HOST, "/somewhere").await.unwrap();
    let digest = Digest::new("sha256:text");
    let plan = store
        .save_revision(&NewRevision {
            workspace,
            path: "fix-auth.md",
            digest: &digest,
            source: "# A plan",
            graph: &graph,
            by: "the author",
        })
        .await
        .unwrap();
    store.move_plan(plan.id, PlanStatus::Verified, "harness", "every check passed").await.unwrap();
    World { store, plan, workspace, graph, digest, database }
}

pub fn holder(instance: &str) -> Holder {
    Holder { host: HOST.to_owned(), boot: "boot".to_owned(), instance: instance.to_owned(), own: true }
}

pub fn next_claim() -> NextClaim {
    NextClaim { served: Vec::new(), holder: holder("me"), lease: Duration::from_secs(15) }
}

pub fn human(decision: Decision) -> Event {
    Event::Human(HumanEvent { by: Actor::new("the owner"), note: Some("because".to_owned()), decision })
}

pub fn person(key: Option<&str>) -> Proof {
    Proof::Person { key: key.map(str::to_owned) }
}

pub fn reported(at: &At) -> Event {
    let report = Report {
        text: Excerpt { bytes: 4, tail: "done".to_owned(), stored: None },
        ending: Some(Ending::Exited { code: 0 }),
        duration: Duration::from_millis(1),
        ..Report::default()
    };
    Event::Agent(AgentEvent::new(at.clone(), AgentSaid::Reported(report)))
}

pub fn released(at: &At) -> Event {
    Event::Agent(AgentEvent::new(at.clone(), AgentSaid::Released))
}

pub fn evaluated(at: &At, code: i32) -> Event {
    let evidence = Evidence {
        contract: Digest::new("sha256:contract"),
        ending: Ending::Exited { code },
        duration: Duration::from_millis(1),
        resources: Resources::default(),
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        isolation: planctl_engine::Tier::SameUser,
        git_head: None,
        protected: BTreeMap::new(),
        tampered: Vec::new(),
        stragglers: 0,
        tests: None,
        judgement: None,
    };
    Event::Harness(HarnessEvent { at: at.clone(), found: HarnessResult::Evidence(Box::new(evidence)) })
}

impl World {
    pub async fn new_run(&self) -> RunRow {
        self.new_run_of(None).await
    }

    pub async fn new_run_of(&self, request: Option<RequestId>) -> RunRow {
        let new = NewRun {
            plan: self.plan.id,
            revision: &self.digest,
            stem: "fix-auth",
            approval: None,
            settings: "{}",
            served: &[],
            request,
        };
        self.store.create_run(&new).await.unwrap()
    }

    pub async fn submit(&self, run: RunId) {
        self.store.apply(run, &human(Decision::Submit), &Proof::Submit, None).await.unwrap();
    }

    pub fn approval(&self, item: &planctl_engine::ItemId) -> Event {
        human(Decision::Answer { item: item.clone(), answer: Answer::Approve })
    }

    pub async fn admit(&self, run: RunId) -> Result<Applied, StoreError> {
        self.store.apply(run, &Event::Clock(ClockEvent::Admitted), &Proof::Clock, None).await
    }

    /// Makes a run, has it approved and admitted: its first step is ready.
    pub async fn begun(&self) -> RunRow {
        let run = self.queued().await;
        self.admit(run.id).await.unwrap();
        run
    }

    /// Makes a run of a plan in a workspace of its own, up to its first item.
    pub async fn begun_at(&self, place: &str, graph: &Graph) -> RunRow {
        let workspace = self.store.workspace(HOST, place).await.unwrap();
        let digest = Digest::new(format!("sha256:{place}"));
        let revision = NewRevision {
            workspace,
            path: "p.md",
            digest: &digest,
            source: "# Elsewhere",
            graph,
            by: "the author",
        };
        let plan = self.store.save_revision(&revision).await.unwrap().id;
        self.store.move_plan(plan, PlanStatus::Verified, "harness", "fine").await.unwrap();
        let new = NewRun {
            plan,
            revision: &digest,
            stem: "at",
            approval: None,
            settings: "{}",
            served: &[],
            request: None,
        };
        let run = self.store.create_run(&new).await.unwrap();
        self.submit(run.id).await;
        let ask = self.store.asks(Some(run.id), None).await.unwrap().remove(0);
        self.store.apply(run.id, &self.approval(&ask.item), &person(None), None).await.unwrap();
        self.admit(run.id).await.unwrap();
        run
    }

    /// Makes a run that waits for its workspace.
    pub async fn queued(&self) -> RunRow {
        let run = self.new_run().await;
        self.submit(run.id).await;
        let asks = self.store.asks(Some(run.id), None).await.unwrap();
        let event = self.approval(&asks[0].item);
        self.store.apply(run.id, &event, &person(None), None).await.unwrap();
        run
    }

    pub async fn claim(&self, run: RunId, instance: &str) -> Option<Claimed> {
        self.claim_for(run, instance, Duration::from_secs(15)).await
    }

    pub async fn claim_for(&self, run: RunId, instance: &str, lease: Duration) -> Option<Claimed> {
        let claim = Claim {
            lane: ClaimLane::Agent(vec![Role::new("coder")]),
            run: Some(run),
            except: Vec::new(),
            holder: holder(instance),
            lease,
        };
        self.store.claim(&claim).await.unwrap()
    }

    /// Claims, reports and takes the gate along.
    pub async fn gate(&self, run: RunId) -> Claimed {
        let work = self.claim(run, "me").await.expect("work is ready");
        let applied = self
            .store
            .apply(run, &reported(&work.item.at), &work.proof(), Some(&next_claim()))
            .await
            .unwrap();
        applied.claimed_next.expect("the gate was claimed with the report")
    }

    /// Does one step with a gate that exits with `code`.
    pub async fn step(&self, run: RunId, code: i32) -> Applied {
        let gate = self.gate(run).await;
        let event = evaluated(&gate.item.at, code);
        self.store.apply(run, &event, &gate.proof(), None).await.unwrap()
    }

    /// Fails the test unless the audit of the run finds nothing.
    pub async fn assert_sound(&self, run: RunId) {
        let findings = self.store.audit(run).await.unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }

    /// Lets an hour pass, as those who connect from here on see it; returns one of them.
    pub async fn an_hour_later(&self) -> Store {
        self.prepare_clock().await;
        self.pass_an_hour().await;
        self.connected().await
    }

    /// Has the database's clock go by what a table says, for those who connect from here on.
    pub async fn prepare_clock(&self) {
        use sqlx::Executor as _;
        let clock = "create table passed (span interval); insert into passed values ('0');
             create function clock_timestamp() returns timestamptz language sql volatile as
             $now$ select pg_catalog.clock_timestamp() + (select span from passed) $now$;
             do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$";
        self.aside().await.execute(clock).await.unwrap();
    }

    /// Lets an hour pass by that clock, and no time by this machine's steady one.
    pub async fn pass_an_hour(&self) {
        use sqlx::Executor as _;
        self.aside().await.execute("update passed set span = span + interval '1 hour'").await.unwrap();
    }

    /// Connects another process.
    pub async fn connected(&self) -> Store {
        Store::connect(self.database.connect_options(), Settings::default()).await.unwrap()
    }

    /// A plain connection beside the store's, to play tricks.
    pub async fn aside(&self) -> sqlx::PgConnection {
        connect(&self.database).await
    }
}

pub async fn connect(database: &TestDatabase) -> sqlx::PgConnection {
    use sqlx::Connection as _;
    sqlx::PgConnection::connect_with(&database.connect_options()).await.unwrap()
}

/// Waits until something holds; looks every few milliseconds, for a minute.
pub async fn await_that(mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.expect("it comes to that");
}

/// Waits until some session waits for a row that another one has locked.
pub async fn await_lock(aside: &mut sqlx::PgConnection) {
    await_locks(aside, 1).await;
}

/// Waits until as many sessions wait for locks.
pub async fn await_locks(aside: &mut sqlx::PgConnection, count: i64) {
    await_waiting(aside, count, None).await;
}

/// Waits until as many sessions wait for rows.
pub async fn await_row_locks(aside: &mut sqlx::PgConnection, count: i64) {
    await_waiting(aside, count, Some(&["transactionid", "tuple"])).await;
}

async fn await_waiting(aside: &mut sqlx::PgConnection, count: i64, events: Option<&[&str]>) {
    await_that(async || {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
            and wait_event_type = 'Lock' and ($1::text[] is null or wait_event = any($1))";
        let waiting: i64 = sqlx::query_scalar(waiting).bind(events).fetch_one(&mut *aside).await.unwrap();
        waiting >= count
    })
    .await;
}

/// Keeps everybody from writing a run, until what it returns is over. A commit waits for it as long as anybody here does.
pub async fn hold_run(
    connection: &mut sqlx::PgConnection,
    run: RunId,
) -> sqlx::Transaction<'_, sqlx::Postgres> {
    use sqlx::{Connection as _, Executor as _};
    connection.execute("alter function planctl_commit_1 set lock_timeout = '60s'").await.unwrap();
    let mut held = connection.begin().await.unwrap();
    let run = uuid::Uuid::from_u128(run.as_u128());
    sqlx::query("select from runs where id = $1 for update").bind(run).execute(&mut *held).await.unwrap();
    held
}
