//! The calls of the database that each page costs: they must not grow with what there is to show.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_config::{Agent, Config, DatabaseUrl, Postgres};
use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, ClockEvent, Decision, Ending, Event, Evidence, Excerpt, Graph,
    HarnessEvent, HarnessResult, HumanEvent, Report, Resources, Role, RunId, Tier,
};
use planctl_lang::{Facts, Levels, Source, verify};
use planctl_server::http::{HttpOptions, Listening, serve, socket_of};
use planctl_server::{Caps, Health, RunSettings, ServerNode, ServerNodeOptions};
use planctl_store::testing::TestDatabase;
use planctl_store::{
    Claim, ClaimLane, Holder, NewApproval, NewRevision, NewRun, NewToken, NewlyMade, NextClaim, Proof,
    SeenWorker, Settings, Store, TokenScope,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

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
        let new = NewToken {
            name: "ann",
            scope: TokenScope::Admin,
            roles: &[],
            lasts: None,
            request: None,
            person: None,
        };
        let NewlyMade::Token(_, secret) = store.create_token(&new).await.unwrap() else { panic!() };
        House { store, secret, state: tempfile::tempdir().unwrap(), database }
    }

    /// Returns a process that has nothing in its memory yet.
    async fn node(&self) -> ServerNode {
        let options = ServerNodeOptions {
            state_dir: self.state.path().to_owned(),
            database_url: Some(DatabaseUrl::parse(&self.database.url()).unwrap()),
            postgres: Postgres::default(),
            announce: None,
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
        let approval = self.store.approve(&approval).await.unwrap();
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
            let (stop, stopped) = watch::channel(false);
            let options = HttpOptions {
                socket: socket_of(node.state_dir()),
                listen: Some(([127, 0, 0, 1], 0).into()),
                hosts: Vec::new(),
                caps: Caps::default(),
                health: Health::default(),
                slots: None,
                stop: stopped,
            };
            let listening = Listening::open(options).await.unwrap();
            let port = listening.info().tcp.unwrap();
            let serving = tokio::spawn(serve(node.clone(), listening));
            calls.push((self.look(&node, &port, page).await, self.look(&node, &port, page).await));
            stop.send(true).unwrap();
            serving.await.unwrap();
            node.store().close().await;
        }
        calls
    }

    async fn look(&self, node: &ServerNode, port: &str, page: &str) -> u64 {
        let before = node.store().calls();
        let mut stream = TcpStream::connect(port).await.unwrap();
        let request = format!(
            "GET {page} HTTP/1.1\r\nhost: {port}\r\nconnection: close\r\ncookie: planctl_session={}\r\n\r\n",
            self.secret
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("</html>"), "{page}: {reply}");
        node.store().calls() - before
    }
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
            house.store.see_worker(&seen).await.unwrap();
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
