//! Servers at an address, with the real planctl: what they are sent, what is kept of them, and what runs beside what.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use super::running::{call, plan};
use super::server::answer;
use crate::fixture::{Fixture, Said};

type Test = (&'static str, fn());

const TOKEN: &str = "tok-77aa31b0";

pub fn trials() -> Vec<Test> {
    vec![
        (
            "m_46_the_tools_of_a_server_at_an_address_are_kept_and_a_plan_calls_it_with_its_token",
            kept_and_called,
        ),
        ("m_46_tools_of_a_newer_version_are_listed_anew", newer_version),
        ("m_41_a_refusal_at_an_address_has_the_exit_code_of_its_kind", refusals),
        ("m_41_a_server_that_says_nothing_ends_at_the_deadline_of_its_step", silence),
        ("m_43_calls_that_only_read_run_beside_each_other_in_one_workspace", beside_each_other),
        ("m_43_calls_that_may_write_run_one_after_the_other", one_after_the_other),
        ("m_45_a_call_goes_through_a_list_at_once_as_far_as_the_plan_allows", list_at_once),
        ("a_confined_call_reaches_the_network_as_its_effects_say", confined),
        ("planctl_itself_is_a_server_of_tools_for_another_planctl", own_server),
    ]
}

/// A server of tools at an address of this host; one thread serves each connection.
struct Web {
    address: String,
    log: PathBuf,
    heads: Arc<Mutex<Vec<String>>>,
}

/// The way a server answers.
#[derive(Clone)]
enum Manner {
    /// As it should.
    Usual,
    /// With this status and these lines of head.
    Refusing(u16, &'static str),
    /// Never.
    Silent,
    /// A use of `close_issue` ends once so many are under way.
    Meeting(Arc<Meeting>),
    /// A use of `close_issue` breaks off where another is under way.
    Counting(Arc<Mutex<usize>>),
}

/// Uses that wait for each other.
struct Meeting {
    of: usize,
    come: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Web {
    fn serve(home: &std::path::Path, manner: Manner) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (log, heads) = (home.join("web"), Arc::new(Mutex::new(Vec::new())));
        let (noted, own) = (heads.clone(), log.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (manner, heads, log) = (manner.clone(), noted.clone(), own.clone());
                std::thread::spawn(move || converse(stream, &manner, &heads, &log.display().to_string()));
            }
        });
        Web { address, log, heads }
    }

    /// Returns what it was asked so far.
    fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn count(&self, asked: &str) -> usize {
        self.asked().iter().filter(|one| one.split(' ').next() == Some(asked)).count()
    }
}

/// Answers the requests of a connection, each with its body's length.
fn converse(stream: TcpStream, manner: &Manner, heads: &Mutex<Vec<String>>, log: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((head, body)) = request(&mut reader) {
        heads.lock().unwrap().push(head.clone());
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_use = asked["method"] == "tools/call";
        let closes = is_use && asked["params"]["name"] == "close_issue";
        let reply = |status: u16, more: &str, body: &str| {
            let length = body.len();
            format!("HTTP/1.1 {status} x\r\n{more}content-length: {length}\r\n\r\n{body}")
        };
        let text = match manner {
            Manner::Silent if is_use => {
                // The client goes away at its deadline.
                let _ended = reader.read(&mut [0]);
                return;
            }
            Manner::Refusing(status, more) => reply(*status, more, "no"),
            _ if !head.starts_with("POST ") => reply(405, "", ""),
            Manner::Meeting(meeting) if closes => {
                meeting.wait(&asked["params"]["arguments"].to_string());
                answered(&asked, log, reply)
            }
            Manner::Counting(busy) if closes => {
                let before = std::mem::replace(&mut *busy.lock().unwrap(), 1);
                let text = answered(&asked, log, reply);
                *busy.lock().unwrap() -= 1;
                assert_eq!(before, 0, "another use was under way");
                text
            }
            Manner::Usual | Manner::Silent | Manner::Meeting(_) | Manner::Counting(_) => {
                answered(&asked, log, reply)
            }
        };
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn answered(asked: &Value, log: &str, reply: impl Fn(u16, &str, &str) -> String) -> String {
    match answer(asked, "usual", log) {
        Some(answer) => reply(200, "content-type: application/json\r\n", &answer.to_string()),
        None => reply(202, "", ""),
    }
}

/// Reads a request: its head in lower case, and its body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head[before..].trim().is_empty() {
            break;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

impl Meeting {
    fn of(count: usize) -> Manner {
        Manner::Meeting(Arc::new(Meeting { of: count, come: Mutex::default(), changed: Condvar::new() }))
    }

    /// Waits until so many have come, which they can only where they are under way at once.
    fn wait(&self, who: &str) {
        let mut come = self.come.lock().unwrap();
        come.insert(who.to_owned());
        self.changed.notify_all();
        while come.len() < self.of {
            come = self.changed.wait(come).unwrap();
        }
    }
}

/// A workspace whose trusted planctl.toml has the server `issues` at an address.
struct Place {
    fixture: Fixture,
    web: Web,
}

impl Place {
    fn new(manner: Manner, effects: &str) -> Place {
        let fixture = Fixture::new();
        let web = Web::serve(&fixture.home(), manner);
        let url = format!("http://{}/mcp", web.address);
        configure(&fixture, &url, &format!("token_env = \"ISSUES_TOKEN\"\n{effects}"));
        Place { fixture, web }
    }

    fn planctl(&self, words: &[&str]) -> Said {
        Said::from(self.fixture.command(words).env("ISSUES_TOKEN", TOKEN).output().unwrap())
    }

    fn run(&self, name: &str, text: &str) -> Said {
        self.fixture.write(name, text);
        self.planctl(&["run", name, "--approve", "--no-wait"])
    }
}

fn configure(fixture: &Fixture, url: &str, more: &str) {
    fixture.write("planctl.toml", &format!("[servers.issues]\nurl = {url:?}\n{more}\n"));
    let said = fixture.planctl(&["trust", "."]);
    assert_eq!(said.code, 0, "{said:?}");
}

const LIST: &str = "- repo: acme/shop";

fn kept_and_called() {
    let place = Place::new(Manner::Usual, "effects = [\"read\"]");
    let missing = place.fixture.planctl(&["tool", "ls"]);
    assert!(missing.out.contains("the variable ISSUES_TOKEN is not set"), "{missing:?}");
    let first = place.planctl(&["tool", "ls"]);
    assert!(first.code == 0 && first.out.contains("list_issues"), "{first:?}");
    assert_eq!(place.web.count("tools/list"), 1, "{:?}", place.web.asked());
    let asked = place.web.asked().len();
    assert_eq!(place.planctl(&["tool", "ls"]).out, first.out);
    assert_eq!(place.web.asked().len(), asked, "the second look asked the server");
    let done = place.run("web.md", &plan(&[call(1, "list_issues", LIST, "")]));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!((place.web.count("list_issues"), place.web.count("tools/list")), (1, 1));
    let heads = place.web.heads.lock().unwrap().clone();
    let bearer = format!("authorization: bearer {TOKEN}");
    assert!(heads.iter().all(|head| head.to_lowercase().contains(&bearer)), "{heads:?}");
    let logs = place.planctl(&["logs", "@last", "--json"]).out;
    assert!(logs.contains("Zoom is wrong") && !logs.contains(TOKEN), "{logs}");
}

fn newer_version() {
    let place = Place::new(Manner::Usual, "effects = [\"read\"]");
    place.planctl(&["tool", "ls"]);
    let folder = place.fixture.state().join("tools");
    let kept = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut list: Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    list["version"] = json!("0.9.0");
    std::fs::write(&kept, list.to_string()).unwrap();
    let done = place.run("web.md", &plan(&[call(1, "list_issues", LIST, "")]));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(place.web.count("tools/list"), 2, "it was asked again: {:?}", place.web.asked());
}

fn refusals() {
    for (status, more, code) in
        [(401, "www-authenticate: Bearer\r\n", 77), (429, "retry-after: 90\r\n", 75), (502, "", 69)]
    {
        let place = Place::new(Manner::Refusing(status, more), "effects = []");
        let step = call(1, "list_issues", LIST, "**on_fail:** abort");
        let failed = place.run("refused.md", &plan(&[step]));
        assert_eq!(failed.code, 1, "{failed:?}");
        let logs: Value = serde_json::from_str(&place.planctl(&["logs", "@last", "--json"]).out).unwrap();
        let gate = &logs["attempts"][0]["gate"];
        assert!(gate["ending"].to_string().contains(&code.to_string()), "{status}: {gate}");
        assert!(!logs.to_string().contains(TOKEN), "{logs}");
    }
    let place = Place::new(Manner::Usual, "effects = []");
    configure(&place.fixture, "http://127.0.0.1:1/mcp", "effects = []");
    let gone = place.planctl(&["tool", "ls", "issues"]);
    assert!(gone.code == 69 && gone.err.contains("network error"), "{gone:?}");
}

fn silence() {
    let place = Place::new(Manner::Silent, "effects = []");
    let step = call(1, "list_issues", LIST, "**contract_timeout:** 1 s\n**on_fail:** abort");
    let failed = place.run("silent.md", &plan(&[step]));
    assert_eq!(failed.code, 1, "{failed:?}");
    let status = place.fixture.status();
    assert!(status["steps"][0].to_string().contains("timed_out"), "{status}");
}

/// A plan of steps that need none of each other.
fn side_by_side(steps: &[String]) -> String {
    plan(steps).replace("**Budget:**", "**parallel:** 4\n**Budget:**")
}

fn alone(number: u32) -> String {
    let more = "**needs:** none\n**contract_timeout:** 60 s\n**on_fail:** abort";
    call(number, "close_issue", &format!("- number: {number}"), more)
}

fn beside_each_other() {
    let place = Place::new(Meeting::of(3), "effects = [\"read\", \"network\"]");
    let done = place.run("meet.md", &side_by_side(&[alone(1), alone(2), alone(3)]));
    assert_eq!(done.code, 0, "each waits for the others: {done:?}");
}

fn one_after_the_other() {
    let place = Place::new(Manner::Counting(Arc::default()), "effects = [\"write\"]");
    let roles = "\n[roles.closer]\neffects = { allow = [\"write\"] }";
    let toml = place.fixture.read("planctl.toml");
    place.fixture.write("planctl.toml", &format!("{toml}{roles}\n"));
    assert_eq!(place.planctl(&["trust", "."]).code, 0);
    let steps: Vec<String> = (1..=4)
        .map(|number| alone(number).replace("**type:** call", "**type:** call\n**target:** closer"))
        .collect();
    let done = place.run("write.md", &side_by_side(&steps));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(place.web.count("close_issue"), 4);
}

fn list_at_once() {
    let place = Place::new(Meeting::of(2), "effects = [\"read\"]");
    let first = call(1, "list_issues", "- repo: acme/shop\n- perPage: 2", "");
    let each = "**for_each:** ${steps.1.output.issues}\n**contract_timeout:** 60 s\n**on_fail:** abort";
    let second = call(2, "close_issue", "- number: ${item.number}", each);
    let done =
        place.run("list.md", &plan(&[first, second]).replace("**Budget:**", "**parallel:** 2\n**Budget:**"));
    assert_eq!(done.code, 0, "each entry waits for the other: {done:?}");
    let logs = place.planctl(&["logs", "@last", "--json"]).out;
    let (seven, three) = (logs.find("closed 7"), logs.find("closed 3"));
    assert!(seven.is_some() && seven < three, "the results are in the order of the list: {logs}");
}

fn confined() {
    let place = Place::new(Manner::Usual, "effects = []");
    let local = Fixture::new();
    let program = std::env::current_exe().unwrap().display().to_string();
    // A confined server writes in the workspace alone.
    let log = local.path("asked").display().to_string();
    let reaching = |effects: &str, tier: &str| {
        let command = format!("command = [{program:?}, \"serve-tools\", \"usual\", {log:?}]");
        local.write("planctl.toml", &format!("[servers.issues]\n{command}\n{effects}\n"));
        assert_eq!(local.planctl(&["trust", "."]).code, 0);
        let arguments = json!({"address": place.web.address}).to_string();
        let mut command = local.command(&["tool", "call", "issues", "connect", &arguments]);
        let said = Said::from(command.env("PLANCTL_ISOLATION", tier).output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };
    for tier in ["1a", "1b"] {
        let doctor =
            Said::from(place.fixture.command(&["doctor"]).env("PLANCTL_ISOLATION", tier).output().unwrap());
        if !doctor.out.contains(&format!("isolation        tier {tier}")) {
            continue;
        }
        let name = format!("at-{tier}.md");
        place.fixture.write(&name, &plan(&[call(1, "list_issues", LIST, "")]));
        let mut run = place.fixture.command(&["run", &name, "--approve", "--no-wait"]);
        let done =
            Said::from(run.env("ISSUES_TOKEN", TOKEN).env("PLANCTL_ISOLATION", tier).output().unwrap());
        assert_eq!(done.code, 0, "tier {tier}: {done:?}");
        assert_eq!(reaching("effects = [\"network\"]", tier), "reached\n", "tier {tier}");
        assert_eq!(reaching("", tier), "reached\n", "nobody knows what it does: tier {tier}");
        if tier == "1b" {
            let held = reaching("effects = [\"read\"]", tier);
            assert!(held.starts_with("not reached: "), "tier {tier}: {held}");
        }
    }
}

fn own_server() {
    let (server, client) = (Fixture::new(), Fixture::new());
    let mut daemon = server.start(&["daemon", "run", "--listen", "127.0.0.1:0"]);
    daemon.hear("ready");
    let info: Value =
        serde_json::from_str(&std::fs::read_to_string(server.state().join("daemon.json")).unwrap()).unwrap();
    let url = format!("http://{}/mcp", info["tcp"].as_str().unwrap());
    let token = server.planctl(&["token", "create", "read", "--name", "reader"]).out.trim().to_owned();
    configure(&client, &url, "token_env = \"PLANS_TOKEN\"\neffects = [\"read\"]");
    let planctl = |words: &[&str], token: &str| {
        Said::from(client.command(words).env("PLANS_TOKEN", token).output().unwrap())
    };
    let refused = planctl(&["tool", "ls", "issues"], "wrong");
    assert!(refused.code == 77 && refused.err.contains("not authorised"), "{refused:?}");
    let listed = planctl(&["tool", "ls", "issues"], &token);
    assert!(listed.code == 0 && listed.out.contains("run_status"), "{listed:?}");
    let step = call(1, "run_status", "{}", "");
    client.write("ask.md", &plan(&[step]));
    let done = planctl(&["run", "ask.md", "--approve", "--no-wait"], &token);
    assert_eq!(done.code, 0, "{done:?}");
    daemon.signal(rustix::process::Signal::TERM);
    daemon.end();
    let again = planctl(&["tool", "ls", "issues"], &token);
    assert_eq!(again.out, listed.out, "the list is kept");
}
