//! The cost of pages: their calls of the database and their bytes must not grow with what there is to show.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "support/door.rs"]
mod door;
#[path = "support/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use door::Door;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use wire::Wire;

use planctl_config::{Agent, Config, DatabaseUrl, Postgres};
use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, ClockEvent, Decision, Ending, Event, Evidence, Excerpt, Graph,
    HarnessEvent, HarnessResult, HumanEvent, Report, Resources, Role, RunId, Tier,
};
use planctl_lang::{Facts, Levels, Source, verify};
use planctl_server::http::socket_of;
use planctl_server::{RunSettings, ServerNode, ServerNodeOptions};
use planctl_store::testing::TestDatabase;
use planctl_store::{
    Claim, ClaimLane, Holder, NewApproval, NewRevision, NewRun, NextClaim, Proof, SeenWorker, Settings, Store,
};

/// How long pages share the session that they looked up, and a little more.
const SHARED_FOR: Duration = Duration::from_millis(60);

/// How long a test waits for what must come.
const LATE: Duration = Duration::from_secs(30);

/// How large a page may be.
const PAGE_BYTES_MAX: usize = 60 << 10;

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Its plan waits for an approval.
    Approval,
    /// It waits for its workspace.
    Queue,
    /// Its first step waits for a worker.
    Begin,
    /// Its last step has failed, and a person is asked.
    Escalation,
    /// It is done.
    End,
}

const KINDS: [At; 5] = [At::Approval, At::Queue, At::Begin, At::Escalation, At::End];

/// A database, and a place for the processes that use it.
struct House {
    store: Store,
    secret: String,
    state: tempfile::TempDir,
    // Dropped last, after the connections.
    database: TestDatabase,
}

impl House {
    async fn new() -> House {
        let database = tokio::task::spawn_blocking(TestDatabase::migrated).await.unwrap();
        let store = Store::connect(database.connect_options(), Settings::default()).await.unwrap();
        let secret = door::session(&store).await;
        House { store, secret, state: tempfile::tempdir().unwrap(), database }
    }

    /// Returns a process that has nothing in its memory yet.
    async fn node(&self) -> ServerNode {
        self.node_at(&self.database.url()).await
    }

    async fn node_at(&self, url: &str) -> ServerNode {
        let options = ServerNodeOptions {
            state_dir: self.state.path().to_owned(),
            database_url: Some(DatabaseUrl::parse(url).unwrap()),
            postgres: Postgres::default(),
            announce: None,
            say: None,
            stop_after: Duration::ZERO,
            program: "/nonexistent".into(),
            migrates: false,
            store: Settings::default(),
            traces: planctl_config::TraceConfig::default(),
        };
        ServerNode::open(options).await.unwrap()
    }

    /// Makes a run in a workspace of its own.
    async fn run(&self, name: &str, steps: u32, at: At) -> RunId {
        let source = Source::new("plan.md", plan(name, steps));
        let verified = verify(&source, &Facts::default(), &Levels::default());
        let graph = verified.graph.unwrap_or_else(|| panic!("{:?}", verified.diagnostics));
        let workspace = self.store.workspace("elsewhere", &format!("/work/{name}")).await.unwrap();
        let revision = NewRevision {
            workspace,
            path: "plan.md",
            digest: &verified.digest,
            source: source.text(),
            graph: &graph,
            by: "ann",
        };
        let plan = self.store.save_revision(&revision).await.unwrap();
        let config = Config::default();
        let approval = NewApproval {
            plan: plan.id,
            digest: &verified.digest,
            config_digest: &config.digest(),
            config: "{}",
            protected: r#"{"files":{}}"#,
            by: "ann",
            note: None,
        };
        let (approval, _) = self.store.approve(&approval, |_| false).await.unwrap();
        let settings = RunSettings::new(&config, Some(Agent::Exec("true".to_owned())), Tier::SameUser);
        let new = NewRun {
            plan: plan.id,
            revision: &verified.digest,
            stem: name,
            approval: Some(approval.id),
            settings: &serde_json::to_string(&settings).unwrap(),
            served: &settings.served(),
            request: None,
        };
        let run = self.store.create_run(&new).await.unwrap().id;
        self.advance(run, &graph, steps, at).await;
        run
    }

    async fn advance(&self, run: RunId, graph: &Graph, steps: u32, at: At) {
        let human = |decision| Event::Human(HumanEvent { by: Actor::new("ann"), note: None, decision });
        self.store.apply(run, &human(Decision::Submit), &Proof::Submit, None).await.unwrap();
        if at == At::Approval {
            return;
        }
        let item = self.store.asks(Some(run), None).await.unwrap().remove(0).item;
        let approve = human(Decision::Answer { item, answer: Answer::Approve });
        self.store.apply(run, &approve, &Proof::Person { key: None }, None).await.unwrap();
        if at == At::Queue {
            return;
        }
        self.store.apply(run, &Event::Clock(ClockEvent::Admitted), &Proof::Clock, None).await.unwrap();
        if at == At::Begin {
            return;
        }
        for step in 1..=steps {
            let code = i32::from(step == steps && at == At::Escalation);
            self.step(run, graph, code).await;
        }
    }

    /// Does one step, whose contract ends with this code.
    async fn step(&self, run: RunId, graph: &Graph, code: i32) {
        let claim = Claim {
            lane: ClaimLane::Agent(vec![Role::new("coder")]),
            run: Some(run),
            except: Vec::new(),
            holder: holder(),
            lease: Duration::from_secs(60),
        };
        let work = self.store.claim(&claim).await.unwrap().unwrap();
        let at = work.item.at.clone();
        let report = Report { text: text("I did it"), ..Report::default() };
        let reported = Event::Agent(AgentEvent::new(at.clone(), AgentSaid::Reported(report)));
        let next = NextClaim { served: Vec::new(), holder: holder(), lease: Duration::from_secs(60) };
        let applied = self.store.apply(run, &reported, &work.proof(), Some(&next)).await.unwrap();
        let gate = applied.claimed_next.unwrap();
        let contract = graph.gated(&at.node).unwrap().contract;
        let evidence = Evidence {
            contract: contract.digest.clone(),
            ending: Ending::Exited { code },
            duration: Duration::from_millis(1),
            resources: Resources::default(),
            stdout: text("ok"),
            stderr: Excerpt::default(),
            isolation: Tier::SameUser,
            git_head: None,
            protected: BTreeMap::new(),
            tampered: Vec::new(),
            stragglers: 0,
            tests: None,
            judgement: None,
        };
        let found = HarnessResult::Evidence(Box::new(evidence));
        let event = Event::Harness(HarnessEvent { at: gate.item.at.clone(), found });
        self.store.apply(run, &event, &gate.proof(), None).await.unwrap();
    }

    /// Returns how often each page calls the database, of a daemon that begins and of one that has drawn the page before.
    async fn calls(&self, pages: &[&str]) -> Vec<(u64, u64)> {
        let mut calls = Vec::new();
        for page in pages {
            let node = self.node().await;
            let door = Door::open(&node, &self.secret).await;
            let look = async |number: u32| {
                tokio::time::sleep(SHARED_FOR).await;
                let before = node.store().database_calls();
                let bytes = door.load(&anew(page, number)).await.len();
                assert!(bytes < PAGE_BYTES_MAX, "{page}: {bytes}");
                node.store().database_calls() - before
            };
            calls.push((look(1).await, look(2).await));
            door.close().await;
            node.store().close().await;
        }
        calls
    }

    /// Returns pages of a daemon that begins.
    async fn loads(&self, pages: &[String]) -> Vec<String> {
        let node = self.node().await;
        let door = Door::open(&node, &self.secret).await;
        let mut loaded = Vec::new();
        for page in pages {
            loaded.push(door.load(page).await);
        }
        door.close().await;
        node.store().close().await;
        loaded
    }
}

/// Returns a page at an address that it has not been drawn for: a drawing serves for a while.
fn anew(page: &str, look: u32) -> String {
    format!("{page}{}part={look}", if page.contains('?') { '&' } else { '?' })
}

fn plan(title: &str, steps: u32) -> String {
    let step = |step| {
        format!(
            "\n### {step}. Do part {step}\n\n**target:** coder\n\n**task:** Do it.\n\n**contract:**\n```bash\n\
             test -e part-{step}\n```\nexit_code == 0\n\n**on_fail:** escalate\n"
        )
    };
    let steps: String = (1..=steps).map(step).collect();
    format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# {title}\n\n## Steps\n{steps}")
}

fn holder() -> Holder {
    Holder { host: "elsewhere".to_owned(), boot: "boot".to_owned(), instance: "one".to_owned(), own: true }
}

fn text(words: &str) -> Excerpt {
    Excerpt { bytes: words.len() as u64, tail: words.to_owned(), stored: None }
}

#[tokio::test]
async fn lists_cost_as_many_calls_with_two_hundred_rows_as_with_ten() {
    const LISTS: [&str; 4] = ["/", "/runs", "/plans", "/system"];
    let house = House::new().await;
    let mut made = 0;
    let mut fill = async |until: usize| {
        for number in made..until {
            house.run(&format!("part-{number}"), 2, KINDS[number % KINDS.len()]).await;
            let worker = format!("worker-{number}");
            let seen = SeenWorker {
                id: &worker,
                roles: &[Role::new(worker.clone())],
                agent: "exec:true",
                host: "elsewhere",
                version: "1",
                capacity: 1,
            };
            house.store.record_worker_seen(&seen).await.unwrap();
        }
        made = until;
    };
    fill(10).await;
    let few = house.calls(&LISTS).await;
    fill(200).await;
    assert_eq!(house.calls(&LISTS).await, few);
}

#[tokio::test]
async fn pages_of_a_run_cost_as_many_calls_with_two_hundred_steps_as_with_ten() {
    let house = House::new().await;
    let mut costs = Vec::new();
    for (name, steps) in [("few", 10), ("many", 200)] {
        let run = house.run(name, steps, At::Escalation).await;
        let ask = house.store.asks(Some(run), None).await.unwrap()[0].number;
        let pages = [
            format!("/runs/{run}"),
            format!("/runs/{run}/steps/5"),
            format!("/runs/{run}/graph"),
            format!("/asks/{ask}"),
        ];
        let pages = pages.each_ref().map(String::as_str);
        costs.push(house.calls(&pages).await);
    }
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test]
async fn pages_of_a_run_of_600_steps_show_a_part_and_tell_of_the_rest() {
    let house = House::new().await;
    let run = house.run("long", 600, At::Begin).await;
    let graph = house.store.graph_of(&house.store.run(run).await.unwrap()).await.unwrap();
    for step in 1..=130 {
        house.step(run, &graph, i32::from(step == 130)).await;
    }
    let pages =
        ["", "?from=250", "/steps/130", "/graph", "/graph?at=590"].map(|page| format!("/runs/{run}{page}"));
    let loaded = house.loads(&pages).await;
    for (page, html) in pages.iter().zip(&loaded) {
        assert!(html.len() < PAGE_BYTES_MAX, "{page}: {}", html.len());
    }
    let [current, middle, step, graph, far] = loaded.try_into().unwrap();
    for told in ["1 waiting for you", "129 passed", "470 not started", "Steps 101–200 of 600", "129/600"] {
        assert!(current.contains(told), "{told}: {current}");
    }
    assert!(middle.contains("Steps 201–300 of 600") && !middle.contains(">Do part 130<"), "{middle}");
    assert!(step.contains("Do part 130") && step.contains("waiting for you"), "{step}");
    for told in ["Steps 1 to ", " done", "‖ waiting for you", "to come", "It shows "] {
        assert!(graph.contains(told), "{told}: {graph}");
    }
    assert!(graph.matches("class=\"node ").count() <= 48, "{graph}");
    assert!(far.contains("Do part 590") && far.contains("around the one that you chose"), "{far}");
}

#[tokio::test]
async fn pages_of_a_run_cost_as_many_calls_with_1500_steps_as_with_500() {
    let house = House::new().await;
    let mut costs = Vec::new();
    for (name, steps) in [("long", 500), ("longer", 1500)] {
        let run = house.run(name, steps, At::Begin).await;
        let pages = ["", "?from=400", "/steps/5", "/graph"].map(|page| format!("/runs/{run}{page}"));
        costs.push(house.calls(&pages.each_ref().map(String::as_str)).await);
    }
    assert_eq!(costs[0], costs[1]);
}

/// All records of a run of 410 steps are 200 KB and more.
#[tokio::test]
async fn pages_of_a_long_run_that_is_done_cost_the_database_what_they_show() {
    let house = House::new().await;
    let mut costs = Vec::new();
    for steps in [410, 820] {
        let run = house.run(&format!("done-{steps}"), steps, At::End).await;
        let wire = Wire::before(&house.database).await;
        let node = house.node_at(wire.url()).await;
        let door = Door::open(&node, &house.secret).await;
        let mut cost = Vec::new();
        for page in ["", "?from=400", "/steps/5"].map(|page| format!("/runs/{run}{page}")) {
            // The first look also reads the graph, which stays in memory.
            for look in 0..2 {
                tokio::time::sleep(SHARED_FOR).await;
                let before = (node.store().database_calls(), wire.bytes());
                let html = door.load(&anew(&page, look)).await;
                assert!(html.len() < PAGE_BYTES_MAX && html.contains("passed"), "{page}: {html}");
                let bytes = wire.bytes() - before.1;
                assert!(look == 0 || bytes < 120_000, "{page}: {bytes} bytes of {steps} steps");
                if look == 1 {
                    cost.push(node.store().database_calls() - before.0);
                }
            }
        }
        costs.push(cost);
        door.close().await;
        node.store().close().await;
    }
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test]
async fn two_hundred_loads_of_a_page_at_once_cost_the_database_little_more_than_one() {
    let house = House::new().await;
    for number in 0..20 {
        house.run(&format!("part-{number}"), 2, KINDS[number % KINDS.len()]).await;
    }
    let node = house.node().await;
    let door = std::sync::Arc::new(Door::open(&node, &house.secret).await);
    let cost = async |loads: u64| {
        let before = node.store().database_calls();
        let loading: Vec<_> = (0..loads)
            .map(|_| {
                let door = door.clone();
                tokio::spawn(async move { door.load("/").await })
            })
            .collect();
        for load in loading {
            load.await.unwrap();
        }
        node.store().database_calls() - before
    };
    let one = cost(1).await;
    let many = cost(200).await;
    // On a machine that is busy, several drawings are made one after the other.
    assert!(many < 20 * one, "{many} calls, one page is {one}");
}

/// Reads the updates of a tab until one says something, and counts them.
async fn updates_until(tab: &mut TcpStream, said: &str) -> usize {
    let (mut read, mut buffer) = (Vec::new(), [0; 64 << 10]);
    loop {
        let bytes =
            tokio::time::timeout(LATE, tab.read(&mut buffer)).await.expect("an update is due").unwrap();
        assert!(bytes > 0, "the stream has ended");
        read.extend_from_slice(&buffer[..bytes]);
        let text = String::from_utf8_lossy(&read);
        if text.contains(said) && text.ends_with("\n\n\r\n") {
            return text.matches("event: at").count();
        }
    }
}

/// Tabs that were opened one after another, at times of their own.
#[tokio::test]
async fn thirty_tabs_of_one_page_cost_the_database_as_many_drawings_as_the_quickest_of_them_shows() {
    const TABS: usize = 30;
    const STEPS: u32 = 40;
    let house = House::new().await;
    let run = house.run("busy", STEPS, At::Begin).await;
    let graph = house.store.graph_of(&house.store.run(run).await.unwrap()).await.unwrap();
    let node = house.node().await;
    let door = Door::open(&node, &house.secret).await;
    let before = node.store().database_calls();
    let mut tabs = vec![door.ask(&format!("/live?page=%2Fruns%2F{run}")).await];
    updates_until(&mut tabs[0], "event: at").await;
    let one = node.store().database_calls() - before;
    for _ in 1..TABS {
        let mut tab = door.ask(&format!("/live?page=%2Fruns%2F{run}")).await;
        updates_until(&mut tab, "event: at").await;
        tabs.push(tab);
    }
    let (before, began) = (node.store().database_calls(), Instant::now());
    let reading: Vec<_> = tabs
        .into_iter()
        .map(|mut tab| tokio::spawn(async move { updates_until(&mut tab, "40 passed").await }))
        .collect();
    for _ in 0..STEPS {
        house.step(run, &graph, 0).await;
    }
    let mut drawings = 0;
    for tab in reading {
        drawings = drawings.max(tab.await.unwrap());
    }
    let calls = node.store().database_calls() - before;
    // A tab looks up its session once in a second, and one drawing may be under way for each that is shown last.
    let most = one * (drawings as u64 + 2) + began.elapsed().as_secs() + 1;
    assert!(calls <= most, "{calls} calls, {drawings} drawings of {one} each");
    door.close().await;
    node.store().close().await;
}

#[tokio::test]
async fn a_page_of_a_run_to_which_nothing_happens_is_not_drawn_again_at_once_and_one_with_news_is() {
    let house = House::new().await;
    let run = house.run("quiet", 3, At::Begin).await;
    let graph = house.store.graph_of(&house.store.run(run).await.unwrap()).await.unwrap();
    let node = house.node().await;
    let door = Door::open(&node, &house.secret).await;
    let page = format!("/runs/{run}");
    let drawn = Instant::now();
    let first = door.load(&page).await;
    let before = node.store().database_calls();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = door.load(&page).await;
    let calls = node.store().database_calls() - before;
    if drawn.elapsed() < Duration::from_secs(1) {
        assert!(calls <= 1, "{calls} calls; the session is one of them");
        assert_eq!(first.contains("passed"), second.contains("passed"));
    }
    let tab = &mut door.ask(&format!("/live?page=%2Fruns%2F{run}")).await;
    updates_until(tab, "event: at").await;
    house.step(run, &graph, 0).await;
    updates_until(tab, "1 passed").await;
    assert!(door.load(&page).await.contains("1 passed"), "what tabs show is on the page");
    door.close().await;
    node.store().close().await;
}

#[tokio::test]
async fn what_is_drawn_once_for_all_readers_of_a_page_holds_nothing_of_one_of_them() {
    let house = House::new().await;
    let run = house.run("part", 3, At::Escalation).await;
    let pages = [
        "/",
        "/system",
        &format!("/runs/{run}"),
        &format!("/runs/{run}/graph"),
        &format!("/runs/{run}/steps/3"),
    ];
    for (page, html) in pages.iter().zip(house.loads(&pages.map(str::to_owned)).await) {
        let parts: Vec<&str> =
            html.split("<!--live ").skip(1).filter_map(|part| part.split("<!--/live-->").next()).collect();
        assert!(!parts.is_empty(), "{page}: {html}");
        for part in parts {
            assert!(!part.contains("<form") && !part.contains("name=\"key\""), "{page}: {part}");
        }
    }
}

/// Returns the address of the link that a node's daemon makes for this user, whose port is the page's own.
async fn linked_address(node: &ServerNode) -> String {
    let mut stream = UnixStream::connect(socket_of(node.state_dir())).await.unwrap();
    let request =
        "POST /v1/page/link HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let (_, rest) = reply.split_once("http://").unwrap_or_else(|| panic!("{reply}"));
    rest.split('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a34_the_pages_own_port_is_open_as_soon_as_a_daemon_says_that_it_listens() {
    let house = House::new().await;
    let node = house.node().await;
    let door = Door::open(&node, &house.secret).await;
    let address = linked_address(&node).await;
    door.close().await;
    TcpStream::connect(&address).await.unwrap_err();
    // A browser that waits for the daemon's return tries the old address as soon as it is back.
    let (_stop, listening) = door::listen(&node).await;
    assert!(listening.info().tcp.is_some());
    TcpStream::connect(&address).await.unwrap();
}
