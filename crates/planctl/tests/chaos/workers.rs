//! Scripted workers: they claim, write a file, show that they live, and say so; some vanish, and some are killed.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::{Call, Reply, Sockets, Wire};
use super::{Scale, is_flaky};
use crate::support::chance::Chance;

/// How often a worker looks around while it works, and waits before it asks again.
const SLICE: Duration = Duration::from_millis(20);
/// One in so many claims is dropped without a word.
const VANISHES: u64 = 20;

/// The state that the workers of one batch share.
pub struct WorkerPool {
    pub(super) scale: Scale,
    pub seed: u64,
    pub sockets: Sockets,
    pub token: String,
    /// Nobody claims any more.
    pub is_over: AtomicBool,
    /// The last steps of plans may end: every kind of fault has happened.
    pub may_end: AtomicBool,
    pub members: Vec<Member>,
    /// Reports that a daemon has accepted.
    pub accepted: Mutex<Vec<Accepted>>,
    /// Answers that no worker should ever get.
    pub odd: Mutex<Vec<String>>,
    pub vanished: AtomicUsize,
    pub lost: AtomicUsize,
    pub repeated: AtomicUsize,
}

/// One worker, as the nemesis sees it.
#[derive(Default)]
pub struct Member {
    /// How often it was killed; a thread that began under a lower number is dead.
    lives: AtomicUsize,
    wire: Wire,
}

impl Member {
    pub fn kill(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
        self.wire.cut();
    }
}

/// A report that was answered with 200.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    pub run: String,
    pub text: String,
}

/// One life of one worker.
struct Life<'a> {
    pool: &'a WorkerPool,
    member: &'a Member,
    life: usize,
    name: String,
    chance: Chance,
    said: usize,
}

impl WorkerPool {
    /// Works as member `number` until it is over; a worker that was killed is followed by another.
    pub fn work(&self, number: usize) {
        let member = &self.members[number];
        let mut chance = Chance::new(self.seed.wrapping_mul(1_000).wrapping_add(number as u64));
        while !self.is_over.load(Ordering::SeqCst) {
            let life = member.lives.load(Ordering::SeqCst);
            let name = format!("worker-{number}-{life}");
            let mut one =
                Life { pool: self, member, life, name, chance: Chance::new(chance.number()), said: 0 };
            while one.lives() && !self.is_over.load(Ordering::SeqCst) {
                one.turn();
            }
        }
    }

    fn odd(&self, what: &str, reply: &Reply) {
        self.odd.lock().unwrap().push(format!("{what}: {reply:?}"));
    }
}

impl Life<'_> {
    fn lives(&self) -> bool {
        self.member.lives.load(Ordering::SeqCst) == self.life
    }

    /// Claims something and does it.
    fn turn(&mut self) {
        let Some(claimed) = self.claim() else { return };
        if self.chance.below(VANISHES) == 0 || self.pool.vanished.load(Ordering::SeqCst) == 0 {
            self.pool.vanished.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if self.mind(&claimed) {
            self.report(&claimed);
        }
    }

    /// Claims under a key, so that a claim whose answer was lost is found again.
    fn claim(&mut self) -> Option<Value> {
        let key = format!("{}-{}", self.name, self.chance.number());
        let body = json!({"roles": ["coder"], "worker": self.name, "lease_seconds": 5}).to_string();
        let reply = self.insist("/v1/items/claim?wait=5", &self.pool.token.clone(), Some(&key), &body)?;
        match reply.status {
            200 => Some(reply.body),
            204 => None,
            _ => {
                self.pool.odd("claim", &reply);
                None
            }
        }
    }

    /// Works, and says now and then that it lives; says whether anybody still waits for what comes of it.
    fn mind(&mut self, claimed: &Value) -> bool {
        let (least, most) = self.pool.scale.work_ms;
        let mut left = Duration::from_millis(least) + self.chance.within_ms(most - least);
        let every = Duration::from_secs(claimed["heartbeat_seconds"].as_u64().unwrap());
        let is_last = claimed["step"].as_u64() == Some(u64::from(self.pool.scale.steps));
        let mut beaten = Instant::now();
        loop {
            if !self.lives() {
                return false;
            }
            let is_held = is_last && !self.pool.may_end.load(Ordering::SeqCst);
            if left.is_zero() && !is_held {
                break;
            }
            std::thread::sleep(SLICE);
            left = left.saturating_sub(SLICE);
            if beaten.elapsed() >= every {
                beaten = Instant::now();
                if !self.beat(claimed) {
                    return false;
                }
            }
        }
        self.write(claimed);
        self.lives()
    }

    /// Says that it lives, once; an unanswered beat is tried again at the next one.
    fn beat(&self, claimed: &Value) -> bool {
        let path = format!("/v1/items/{}/heartbeat", claimed["item"].as_str().unwrap());
        let call = Call {
            method: "POST",
            path: &path,
            token: claimed["token"].as_str(),
            key: None,
            body: Some("{}".to_owned()),
        };
        let sockets = &self.pool.sockets.0;
        let answered = self.member.wire.send(&sockets[self.said % sockets.len()], &call);
        match answered {
            Some(reply) if reply.status == 200 => reply.body["cancel"] == false,
            Some(reply) if reply.code() == "lease_lost" => {
                self.pool.lost.fetch_add(1, Ordering::SeqCst);
                false
            }
            Some(reply) if !reply.is_passing() => {
                self.pool.odd("heartbeat", &reply);
                false
            }
            Some(_) | None => true,
        }
    }

    /// Does the step: right, but for steps that fail the first time. A late first attempt never undoes a later one.
    fn write(&self, claimed: &Value) {
        let (workspace, step) = place_of(claimed);
        let path = workspace.join(format!("out-{step}"));
        let plan = workspace.file_name().unwrap().to_str().unwrap().parse().unwrap();
        if is_flaky(self.pool.seed, plan, step) && claimed["attempt"] == 1 {
            if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(&path) {
                writeln!(file, "bad").unwrap();
            }
            return;
        }
        let draft = workspace.join(format!(".out-{step}-{}", self.name));
        fs::write(&draft, "good\n").unwrap();
        fs::rename(&draft, &path).unwrap();
    }

    /// Reports until it is answered, and notes what was accepted.
    fn report(&mut self, claimed: &Value) {
        self.said += 1;
        let text = format!("{} says {} of {}", self.name, self.said, claimed["item"].as_str().unwrap());
        let path = format!("/v1/items/{}/complete", claimed["item"].as_str().unwrap());
        let token = claimed["token"].as_str().unwrap().to_owned();
        let Some(reply) = self.insist(&path, &token, None, &json!({"text": text}).to_string()) else {
            return;
        };
        if reply.status == 200 {
            if reply.body["repeated"] == true {
                self.pool.repeated.fetch_add(1, Ordering::SeqCst);
            }
            let run = claimed["run"].as_str().unwrap().to_owned();
            self.pool.accepted.lock().unwrap().push(Accepted { run, text });
        } else if reply.code() == "lease_lost" {
            self.pool.lost.fetch_add(1, Ordering::SeqCst);
        } else {
            self.pool.odd("complete", &reply);
        }
    }

    /// Asks one daemon after another until it has an answer, or is dead.
    fn insist(&mut self, path: &str, token: &str, key: Option<&str>, body: &str) -> Option<Reply> {
        let call = Call { method: "POST", path, token: Some(token), key, body: Some(body.to_owned()) };
        while self.lives() {
            let sockets = &self.pool.sockets.0;
            let socket = &sockets[self.chance.below(sockets.len() as u64) as usize];
            match self.member.wire.send(socket, &call) {
                // A dead worker's answer is nobody's.
                Some(reply) if !reply.is_passing() => return self.lives().then_some(reply),
                Some(_) | None => std::thread::sleep(SLICE),
            }
        }
        None
    }
}

fn place_of(claimed: &Value) -> (&Path, u32) {
    let workspace = Path::new(claimed["workspace"].as_str().unwrap());
    (workspace, u32::try_from(claimed["step"].as_u64().unwrap()).unwrap())
}

/// Returns the folder of a plan's workspace.
pub fn workspace_of(plans: &Path, plan: u32) -> PathBuf {
    plans.join(plan.to_string())
}
