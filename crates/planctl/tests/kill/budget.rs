//! Budgets under `kill -9`: runs with retries, loops, forks, withdrawals and restarts in their way use no more than they may.
//!
//! Two runs go on at once. Each has agents of the daemon, which tell what they used at their end, and workers over HTTP, which
//! tell it with each heartbeat. The bound is worked out from the lines of their histories, at each line.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use planctl_config::{Agent, Config, RoleConfig};
use serde_json::{Value, json};

use crate::chaos::calls::{Call, Reply, Sockets, Wire};
use crate::support::chance::Chance;
use crate::support::{Going, Place, WAIT_MAX};

/// How often the daemon is killed.
const KILLS: usize = 6;
/// Tokens that an agent of the daemon uses with each attempt, and tells at its end.
const ATTEMPT: u64 = 1_000;
/// Tokens that each run may use before anybody raises its budget. Before its first attempt each of its five tasks and two
/// decisions is expected to use an equal share: as much as an attempt does.
const BUDGET: u64 = 7 * ATTEMPT;
/// Leases of the daemon's own work, in seconds.
const OWN_LEASE: u64 = 3;

/// The workers over HTTP of one run.
#[derive(Default)]
struct WorkerPool {
    name: &'static str,
    /// Tokens that are used from one heartbeat to the next.
    beat: u64,
    beats_max: u64,
    /// How long a worker works from one to the next at most.
    beat_ms: u64,
    /// How much more than its budget the run may use: what all that are out can tell between two heartbeats.
    beyond: u64,
    /// Workers that hold an item.
    holding: AtomicUsize,
    claims: AtomicUsize,
    withdrawn: AtomicUsize,
    vanished: AtomicUsize,
    /// Tokens that were told, and those of them that a daemon has said to have heard.
    told: AtomicU64,
    heard: AtomicU64,
}

/// A worker over HTTP.
struct Worker<'a> {
    pool: &'a WorkerPool,
    sockets: &'a Sockets,
    token: &'a str,
    is_over: &'a AtomicBool,
    chance: Chance,
}

impl Worker<'_> {
    fn work(&mut self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let key = format!("{}-{}", self.pool.name, self.chance.number());
            let body = json!({"roles": [self.pool.name], "lease_seconds": 5});
            let claimed = self.say("/v1/items/claim?wait=1", self.token, Some(&key), &body);
            if let Some(claimed) = claimed.filter(|reply| reply.status == 200) {
                self.pool.claims.fetch_add(1, Ordering::SeqCst);
                self.pool.holding.fetch_add(1, Ordering::SeqCst);
                self.attempt(&claimed.body);
                self.pool.holding.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Uses tokens and tells it with each heartbeat until the work is done, or nobody waits for it; now and then it vanishes,
    /// gives the work back, or fails.
    fn attempt(&mut self, claimed: &Value) {
        let pool = self.pool;
        let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
        // Most use much less than a few, which so use more than is expected of them.
        let most = if self.chance.below(3) == 0 { pool.beats_max } else { pool.beats_max.div_ceil(8) };
        let beats = most - self.chance.below(most.div_ceil(2));
        let is_first_to_vanish = pool.vanished.load(Ordering::SeqCst) == 0;
        for beat in 1..=beats {
            std::thread::sleep(self.chance.within_ms(pool.beat_ms));
            let usage = json!({"output_tokens": beat * pool.beat});
            pool.told.fetch_add(pool.beat, Ordering::SeqCst);
            let heard = self.of(item, "usage", token, &usage);
            if heard.is_some() {
                pool.heard.fetch_add(pool.beat, Ordering::SeqCst);
            }
            let beaten = heard.and_then(|_| self.of(item, "heartbeat", token, &json!({})));
            if beaten.is_none_or(|reply| reply.body["cancel"] == true) {
                pool.withdrawn.fetch_add(1, Ordering::SeqCst);
                self.of(item, "release", token, &json!({}));
                return;
            }
        }
        std::thread::sleep(self.chance.within_ms(pool.beat_ms));
        let usage = json!({"output_tokens": beats * pool.beat});
        let (route, body) = match self.chance.below(12) {
            _ if is_first_to_vanish => {
                pool.vanished.fetch_add(1, Ordering::SeqCst);
                return;
            }
            0 => ("release", json!({})),
            1 => ("fail", json!({"kind": "transient", "reason": "rain", "usage": usage})),
            _ => ("complete", json!({"text": "ok", "usage": usage})),
        };
        note_try(claimed);
        if self.of(item, route, token, &body).is_none() {
            pool.withdrawn.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Calls a route of an item that is held; nothing where it is held no longer.
    fn of(&self, item: &str, route: &str, token: &str, body: &Value) -> Option<Reply> {
        let path = format!("/v1/items/{item}/{route}");
        self.say(&path, token, None, body).filter(|reply| reply.status < 300)
    }

    /// Says something until it is answered, whoever is killed meanwhile.
    fn say(&self, path: &str, token: &str, key: Option<&str>, body: &Value) -> Option<Reply> {
        let call = Call { method: "POST", path, token: Some(token), key, body: Some(body.to_string()) };
        while !self.is_over.load(Ordering::SeqCst) {
            match Wire::default().send(&self.sockets.0[0], &call) {
                Some(reply) if !reply.is_passing() => return Some(reply),
                Some(_) | None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        None
    }
}

/// Notes an attempt for the contract, as the daemon's agents do.
fn note_try(claimed: &Value) {
    let workspace = Path::new(claimed["workspace"].as_str().unwrap());
    let tries = workspace.join(format!("tries-{}", claimed["node"].as_str().unwrap()));
    let had = fs::read_to_string(&tries).unwrap_or_default();
    fs::write(tries, had + "try\n").unwrap();
}

/// An agent of the daemon.
const AGENT: &str = r#"
echo try >>"tries-$PLANCTL_NODE"
sleep 0.3
echo '{"planctl":"result/1","text":"ok","usage":{"input_tokens":900,"output_tokens":100}}' >"$PLANCTL_RESULT_FILE"
"#;

/// A contract that holds at each second try, or at once; and decisions, which go on from the second time on.
const CHECK: &str = r#"
case $1 in
once) [ -e "tries-$2" ] ;;
twice) [ $(($(wc -l <"tries-$2") % 2)) -eq 0 ] ;;
turn) echo turn >>"turns-$2" && [ "$(wc -l <"turns-$2")" -ge 2 ] ;;
esac
"#;

/// A graph with a fork of four branches, a loop, and an edge by which the run starts over.
fn graph(check: &Path, role: &str) -> String {
    let task = |name, target: &str, how| {
        format!(
            "    {name} [prompt=\"Do it.\", target={target}, contract=\"bash {} {how} {name}\", max_retries=9, max_visits=40]\n",
            check.display()
        )
    };
    let turn = |name| {
        format!(
            "    {name} [shape=diamond, command=\"bash {} turn {name}\", max_visits=40]\n",
            check.display()
        )
    };
    format!(
        "digraph spend {{\n    budget=\"{BUDGET} tokens\"\n    max_parallel=4\n    start [shape=Mdiamond]\n{}{}{}{}{}{}{}    \
         split [shape=component]\n    meet [shape=tripleoctagon]\n    done [shape=Msquare]\n    start -> first -> split\n    \
         split -> {{ near left far right }} -> meet -> round\n    round -> anew\n    round -> first [on=fail]\n    \
         anew -> done\n    anew -> first [on=fail, loop_restart=true]\n}}\n",
        task("first", "coder", "once"),
        task("near", "coder", "once"),
        task("left", "coder", "twice"),
        task("far", role, "once"),
        task("right", role, "twice"),
        turn("round"),
        turn("anew"),
    )
}

/// One of the runs.
struct Run<'a> {
    pool: &'a WorkerPool,
    place_call: Value,
    id: String,
    /// How often its workers have claimed work by the time of the next pause.
    pause_after: usize,
    pauses: usize,
}

fn start<'a>(place: &Place, sockets: &Sockets, pool: &'a WorkerPool) -> Run<'a> {
    let workspace = place.path(pool.name);
    fs::create_dir(&workspace).unwrap();
    let text = graph(&place.path("budget-check.sh"), pool.name);
    fs::write(workspace.join("spend.dot"), &text).unwrap();
    let agent = Agent::Exec(format!("bash {}", place.path("agent.sh").display()));
    let mut config = Config::default();
    config.roles.insert(
        planctl_engine::Role::new("coder"),
        RoleConfig { agent: Some(agent), ..RoleConfig::default() },
    );
    let body = json!({
        "plan": {"workspace": workspace, "path": "spend.dot", "text": text, "config": config},
        "start": {"approve": {}, "waits_for_workers": true},
    });
    let started = sockets.post("/v1/runs", &format!("start-{}", pool.name), &body);
    let id = started["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    Run { pool, place_call: json!({"workspace": workspace, "config": config}), id, pause_after: 2, pauses: 0 }
}

/// The person, and whoever kills the daemon.
struct Stage<'a> {
    place: &'a Place,
    sockets: &'a Sockets,
    daemon: Option<Going>,
    chance: Chance,
    kills: usize,
    raises: usize,
}

impl Stage<'_> {
    fn play(&mut self, runs: &mut [Run<'_>], seed: u64) {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < WAIT_MAX, "seed {seed}: {}", self.sockets.get("/v1/approvals"));
            let states: Vec<Value> =
                runs.iter().map(|run| self.sockets.get(&format!("/v1/runs/{}", run.id))).collect();
            if states.iter().all(|state| state["state"] == "done") {
                return;
            }
            self.answer(runs);
            std::thread::sleep(self.chance.within_ms(200));
            if self.kills < KILLS && self.chance.below(5) == 0 {
                self.kill();
            }
            for run in runs.iter_mut() {
                let is_due = run.pool.claims.load(Ordering::SeqCst) >= run.pause_after;
                if is_due && run.pool.holding.load(Ordering::SeqCst) > 0 {
                    self.pause(run);
                }
            }
        }
    }

    fn kill(&mut self) {
        self.kills += 1;
        let daemon = self.daemon.take().unwrap();
        // One time in four the whole host goes down, Postgres and all; else the daemon alone.
        let killed =
            if self.chance.below(4) == 0 { self.place.kill_everything(daemon) } else { daemon.kill() };
        killed.unwrap();
        self.daemon = Some(self.place.daemon());
    }

    /// Raises budgets, and has all else tried again.
    fn answer(&mut self, runs: &[Run<'_>]) {
        for ask in self.sockets.get("/v1/approvals")["asks"].as_array().unwrap() {
            let answer = match ask["kind"].as_str().unwrap() {
                "budget" => {
                    self.raises += 1;
                    json!({"answer": "raise", "by": {"tokens": 2_000 + self.chance.below(3_000)}})
                }
                _ => json!({"answer": "retry"}),
            };
            let run = runs.iter().find(|run| ask["run_id"] == run.id.as_str()).unwrap();
            let body = json!({"place": run.place_call, "answer": answer});
            self.decide(&format!("/v1/approvals/{}/answer", ask["id"]), &body);
        }
    }

    /// Takes back all that is out, and lets the run go on; every other time at its first step anew.
    fn pause(&mut self, run: &mut Run<'_>) {
        run.pauses += 1;
        run.pause_after += 3 + self.chance.below(4) as usize;
        if !self.decide(&format!("/v1/runs/{}/pause", run.id), &json!({})) {
            return;
        }
        let from = (run.pauses % 2 == 1).then_some(1);
        let path = format!("/v1/runs/{}/resume", run.id);
        if !self.decide(&path, &json!({"place": run.place_call, "from": from})) {
            assert!(self.decide(&path, &json!({"place": run.place_call})), "a paused run goes on");
        }
    }

    /// Decides something, unless it is decided by now; says whether it did.
    fn decide(&mut self, path: &str, body: &Value) -> bool {
        let key = format!("{path}-{}", self.chance.number());
        let body = Some(body.to_string());
        let reply = self.sockets.insist(&Call { method: "POST", path, token: None, key: Some(&key), body });
        assert!([200, 404, 409].contains(&reply.status), "{path}: {reply:?}");
        reply.status == 200
    }
}

/// The evidence of a run's history: each line's name, and its event with what was told under leases that it ended.
struct Told(Vec<(String, Value)>);

impl Told {
    fn of(place: &Place, run: &str) -> Told {
        let lines = format!(
            "select json_build_object('name', name, 'body', body) from history where run = '{run}' order by seq"
        );
        let said = place.must(&["db", "psql", "--owner", "--", "-qAt", "-c", &lines]).out;
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        Told(lines.map(|line| (line["name"].as_str().unwrap().to_owned(), line["body"].clone())).collect())
    }

    fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(other, _)| other == name).count()
    }

    /// At no line is more charged than the budget as raised by then and what all that were out may tell at once; and what was
    /// told is charged, once. Returns what is charged in the end.
    fn must_be_within(&self, pool: &WorkerPool, seed: u64) -> u64 {
        let name = pool.name;
        let (mut budget, mut charged, mut of_agents) = (BUDGET, 0, 0);
        for (at, (event, body)) in self.0.iter().enumerate() {
            let event_body = &body["event"];
            budget += event_body["decision"]["answer"]["by"]["tokens"].as_u64().unwrap_or(0);
            let said = &event_body["said"]["usage"];
            let of_event = tokens(if said.is_object() { said } else { &event_body["noted"] });
            let taken_back: u64 =
                body["noted"].as_object().into_iter().flatten().map(|(_, usage)| tokens(usage)).sum();
            charged += of_event + taken_back;
            // Agents of the daemon alone tell tokens of input.
            of_agents += said["input_tokens"].as_u64().filter(|input| *input > 0).map_or(0, |_| of_event);
            assert!(
                charged <= budget + pool.beyond,
                "seed {seed}: {name}: {charged} are charged of {budget} at line {at}, {event}: {body}"
            );
        }
        let (told, heard) = (pool.told.load(Ordering::SeqCst), pool.heard.load(Ordering::SeqCst));
        let of_workers = charged - of_agents;
        assert!(
            (heard..=told).contains(&of_workers),
            "seed {seed}: {name}: {of_workers} are charged of {told} told, {heard} heard"
        );
        let met = [
            "retry_triggered",
            "branches_joined",
            "epoch_began",
            "human.paused",
            "node_reopened",
            "plan_completed",
        ];
        for met in met {
            assert!(self.count(met) > 0, "seed {seed}: {name}: no {met}");
        }
        charged
    }
}

fn tokens(usage: &Value) -> u64 {
    usage["input_tokens"].as_u64().unwrap_or(0) + usage["output_tokens"].as_u64().unwrap_or(0)
}

/// Lives two runs through kills, raises and pauses to their ends, and looks at each line of their histories.
fn live_within_budgets(seed: u64) {
    let began = Instant::now();
    let place = Place::with_leases_of(OWN_LEASE);
    fs::write(place.path("agent.sh"), AGENT).unwrap();
    fs::write(place.path("budget-check.sh"), CHECK).unwrap();
    let sockets = Sockets(vec![place.path("state").join("daemon.sock")]);
    let daemon = place.daemon();
    let made = sockets.post("/v1/tokens", "token", &json!({"name": "pool", "scope": "worker"}));
    let token = made["secret"].as_str().unwrap();
    // Each attempt of the first run uses what is expected of it, so nothing is used beyond the budget. The workers of the
    // second use more: each is stopped at its next heartbeat, while two agents come to their ends.
    let pools = [
        WorkerPool {
            name: "exact",
            beat: ATTEMPT,
            beats_max: 1,
            beat_ms: 400,
            beyond: 0,
            ..WorkerPool::default()
        },
        WorkerPool {
            name: "greedy",
            beat: 300,
            beats_max: 40,
            beat_ms: 40,
            beyond: 2 * ATTEMPT + 2 * 300,
            ..WorkerPool::default()
        },
    ];
    let is_over = AtomicBool::new(false);
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let mut stage = Stage {
        place: &place,
        sockets: &sockets,
        daemon: Some(daemon),
        chance: Chance::new(seed),
        kills: 0,
        raises: 0,
    };
    let ids = std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        for (number, pool) in pools.iter().flat_map(|pool| [pool, pool]).enumerate() {
            let chance = Chance::new(seed.wrapping_mul(1_000).wrapping_add(number as u64));
            let mut worker = Worker { pool, sockets: &sockets, token, is_over: &is_over, chance };
            scope.spawn(move || worker.work());
        }
        let mut runs = [0, 1].map(|of| start(&place, &sockets, &pools[of]));
        stage.play(&mut runs, seed);
        runs.map(|run| run.id)
    });
    let mut leases_lost = 0;
    for (pool, id) in pools.iter().zip(&ids) {
        let told = Told::of(&place, id);
        let spent = told.must_be_within(pool, seed);
        leases_lost += told.count("clock.lease_lost");
        let view = sockets.get(&format!("/v1/runs/{id}"));
        assert_eq!(view["spent"]["tokens"], spent, "seed {seed}: {}: {view}", pool.name);
    }
    let withdrawn: usize = pools.iter().map(|pool| pool.withdrawn.load(Ordering::SeqCst)).sum();
    assert!(
        leases_lost > 0 && withdrawn > 0,
        "seed {seed}: {leases_lost} leases lost, {withdrawn} taken back"
    );
    place.must(&["audit"]);
    let daemon = stage.daemon.unwrap();
    daemon.signal(rustix::process::Signal::TERM);
    daemon.end();
    place.await_quiet();
    eprintln!(
        "seed {seed}: {} kills, {} raises, {leases_lost} leases lost, {withdrawn} taken back in {:.1?}",
        stage.kills,
        stage.raises,
        began.elapsed()
    );
}

#[test]
fn p15_runs_that_fork_and_loop_and_are_killed_and_taken_back_stay_within_their_budgets() {
    live_within_budgets(1);
}

#[test]
#[ignore = "more seeds; just nightly"]
fn p15_seed_2_to_50_of_runs_that_are_killed_and_taken_back_stay_within_their_budgets() {
    (2..=50).for_each(live_within_budgets);
}
