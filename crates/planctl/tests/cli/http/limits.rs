//! Bounds the share of the daemon that one caller can use up (A44).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::house::{Ask, House, plan};

#[test]
fn hole_4_no_glob_of_a_worker_ends_the_daemon() {
    let house = House::new();
    let worker = house.token("worker");
    let deep = |levels: usize| format!("{}x{}", "{a,".repeat(levels), "}".repeat(levels));
    let log = || std::fs::metadata(house.fixture.state().join("daemon.log")).map_or(0, |meta| meta.len());
    let before = log();
    for glob in [deep(11), deep(200), deep(220), deep(50_000), "[".repeat(900), "x".repeat(1025)] {
        let body = format!(r#"{{"roles": ["coder"], "plans": {{"coder": ["{glob}"]}}}}"#);
        let ask = Ask { token: Some(&worker), body: Some(body), ..Ask::default() };
        let refused = house.network("POST", "/v1/items/claim?wait=1", &ask);
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad_request"), "{refused:?}");
        assert!(refused.body.len() < 500, "the answer does not repeat all of it: {refused:?}");
    }
    let many: Vec<String> = (0..100).map(|at| format!("\"{at:0>200}\"")).collect();
    let body = format!(r#"{{"roles": ["coder"], "plans": {{"coder": [{}]}}}}"#, many.join(","));
    let ask = Ask { token: Some(&worker), body: Some(body), ..Ask::default() };
    let refused = house.network("POST", "/v1/items/claim?wait=1", &ask);
    assert!(refused.body.contains("`plans` have at most 16384 bytes"), "{refused:?}");
    let body = r#"{"roles": ["coder"], "plans": {"coder": ["{a,{b,*.md}}"]}}"#.to_owned();
    let ask = Ask { token: Some(&worker), body: Some(body), ..Ask::default() };
    assert_eq!(house.network("POST", "/v1/items/claim", &ask).status, 204);
    assert!(log() - before < 4_000, "a refusal is no news for the log: {} bytes", log() - before);
}

/// Sends the beginning of a request and leaves it there.
fn stalled(port: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(port).unwrap();
    stream.write_all(bytes).ok();
    stream
}

/// Says whether a stalled request got an answer, which must be a 429; waits up to 50 ms for it.
fn is_refused(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let mut answer = [0; 400];
    match stream.read(&mut answer) {
        Ok(count) => {
            let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
            assert!(answer.starts_with("http/1.1 429") && answer.contains("retry-after: 1"), "{answer}");
            true
        }
        // Any other error: the daemon answered and closed while the client was still sending.
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

fn peak_mebibytes(pid: i64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

#[test]
fn hole_16_bodies_that_do_not_arrive_share_a_bound_and_other_callers_are_served() {
    let house = House::new();
    let worker = house.token("worker");
    let pid = house.local("GET", "/v1/daemon", &Ask::default()).json()["daemon"]["pid"].as_i64().unwrap();
    let head = format!(
        "POST /v1/items/claim HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {worker}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        house.port,
        1 << 20
    );
    let request = [head.as_bytes(), &vec![b' '; (1 << 20) - 1]].concat();
    let streams: Vec<TcpStream> = (0..300).map(|_| stalled(&house.port, &request)).collect();
    // The daemon refuses the bodies that it has no room for; the others wait for their last byte. A busy machine takes
    // its time to answer, so a stream counts as held only once most of them have been answered.
    let mut held: Vec<&TcpStream> = streams.iter().collect();
    let began = std::time::Instant::now();
    while held.len() > 100 && began.elapsed().as_secs() < 30 {
        held.retain(|stream| !is_refused(stream));
    }
    held.retain(|stream| !is_refused(stream));
    let (held, refused) = (held.len(), streams.len() - held.len());
    let peak = peak_mebibytes(pid);
    eprintln!("300 stalled bodies of 1 MiB: {refused} refused, {held} held, peak {peak} MiB");
    assert!(held <= 100, "{held}");
    assert!(peak <= 200, "{peak} MiB");
    // People on the socket have room of their own.
    let run = house.run("a", "word");
    assert_eq!(house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).status, 200);
    drop(streams);
    house.fixture.planctl(&["plan", "cancel", &run]);
}

#[test]
fn hole_16_half_heads_of_strangers_do_not_keep_out_who_has_a_token() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let house = House::new();
    let token = house.token("read");
    let _half: Vec<TcpStream> =
        (0..2_100).map(|_| stalled(&house.port, b"GET /v1/runs HTTP/1.1\r\nhost: x\r\n")).collect();
    let began = std::time::Instant::now();
    for _ in 0..5 {
        let ask = Ask { token: Some(&token), ..Ask::default() };
        assert_eq!(house.network("GET", "/v1/runs", &ask).status, 200);
    }
    eprintln!("five requests beside 2,100 half heads: {:?}", began.elapsed());
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn sec_20_an_absolute_address_of_another_host_is_refused() {
    let house = House::new();
    let token = house.token("read");
    let request = |address: &str| {
        let text = format!(
            "GET {address} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n",
            house.port
        );
        house.raw(text.as_bytes())
    };
    let refused = request("http://evil.example/v1/runs");
    assert_eq!((refused.status, refused.code().as_str()), (403, "origin"), "{refused:?}");
    assert_eq!(request(&format!("http://{}/v1/runs", house.port)).status, 200);
}

#[test]
fn sec_20_who_looks_is_not_told_which_paths_there_are() {
    let house = House::new();
    let token = house.token("read");
    let ask = Ask { token: Some(&token), ..Ask::default() };
    let [there, file, absent] = ["/etc", "/etc/passwd", "/no/such/place"].map(|path| {
        let reply = house.network("GET", &format!("/v1/runs?workspace={path}"), &ask);
        (reply.status, reply.body)
    });
    assert_eq!(there.0, 200, "{there:?}");
    assert_eq!((&there, &there), (&file, &absent));
}

#[test]
fn sec_20_an_item_of_no_run_is_not_there_as_another_s_is_not() {
    let house = House::new();
    let secret = format!("planctl_item_1_{}", "0".repeat(64));
    let item = format!("{}.1.1.1.agent", "0".repeat(32));
    for path in [format!("/v1/items/{item}/complete"), format!("/v1/items/{item}/release")] {
        let body = if path.ends_with("complete") { r#"{"text": "x"}"# } else { "{}" };
        let ask = Ask { token: Some(&secret), body: Some(body.to_owned()), ..Ask::default() };
        let reply = house.network("POST", &path, &ask);
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}: {reply:?}");
    }
}

#[test]
fn a_question_beyond_the_limit_is_refused_and_the_item_stays_held() {
    let house = House::new();
    let run = house.run("a", "word");
    let claimed = house.claim();
    let (item, secret) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
    let say = |question: &str| {
        let body = serde_json::json!({ "question": question }).to_string();
        let ask = Ask { token: Some(secret), body: Some(body), ..Ask::default() };
        house.network("POST", &format!("/v1/items/{item}/ask"), &ask)
    };
    let refused = say(&"ü".repeat(20_001));
    assert_eq!((refused.status, refused.code().as_str()), (400, "bad_request"), "{refused:?}");
    assert!(refused.body.contains("question") && refused.body.len() < 1_000, "{refused:?}");
    assert_eq!(say(&"ü".repeat(20_000)).status, 200, "the item is still held, and so much may be asked");
    house.until(&run, "waiting");
}

#[test]
fn p20_b1_a_secret_that_somebody_made_up_stores_nothing() {
    let house = House::new();
    let run = house.run("a", "word");
    let claimed = house.claim();
    let (item, held) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
    let made_up = format!("planctl_item_1_{}", "0".repeat(64));
    let of_no_run = format!("{}.1.1.1.agent", "0".repeat(32));
    let say = |item: &str, verb: &str, secret: &str| {
        let text = "x".repeat(100_000);
        let body = match verb {
            "complete" => serde_json::json!({ "text": text }),
            _ => serde_json::json!({ "kind": "gave_up", "reason": text }),
        };
        let ask = Ask { token: Some(secret), body: Some(body.to_string()), ..Ask::default() };
        house.network("POST", &format!("/v1/items/{item}/{verb}"), &ask).status
    };
    for verb in ["complete", "fail"] {
        for item in [item, of_no_run.as_str()] {
            assert_eq!(say(item, verb, &made_up), 404, "{verb} {item}");
        }
    }
    assert_eq!(house.fixture.sql("select count(*) from outputs"), "0");
    assert_eq!(say(item, "complete", held), 200);
    assert_eq!(house.fixture.sql("select count(*) from outputs"), "1");
    house.fixture.planctl(&["plan", "cancel", &run]);
}

#[test]
fn hole_7_work_of_a_run_whose_settings_were_changed_by_sql_is_not_handed_out_over_http() {
    let house = House::new();
    let run = house.run("a", "word");
    house.fixture.sql(&format!(
        "update runs set settings = (settings::jsonb || '{{\"auto_answer\": true}}')::json where name = '{run}'"
    ));
    let ask = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
    let refused = house.local("POST", "/v1/items/claim?wait=1", &ask);
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"), "{refused:?}");
    assert!(refused.body.contains("is not what was approved"), "{refused:?}");
    assert!(!refused.body.contains("planctl_item_"), "no lease is handed out: {refused:?}");
    house.fixture.planctl(&["plan", "cancel", &run]);
}

#[test]
fn b7_who_makes_up_the_token_of_an_item_has_nothing_taken_in() {
    let house = House::new();
    let run = house.run("a", "word");
    let claimed = house.claim();
    let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
    let (begin, digits) = token.rsplit_once('_').unwrap();
    let made_up = format!("{begin}_{}", "0".repeat(digits.len()));
    let length = (1 << 20) - 1;
    let path = format!("/v1/items/{}/complete", item.replace('/', "%2F").replace('#', "%23"));
    let request = |token: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n",
            house.port
        );
        let text = r#"{"text": ""#;
        [head, text.to_owned(), "a".repeat(length - text.len() - 3)].concat().into_bytes()
    };
    // Its last bytes never come: a server that waits for them has taken in all the others.
    let streams: Vec<TcpStream> = (0..40).map(|_| stalled(&house.port, &request(&made_up))).collect();
    for mut stream in &streams {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let mut answer = [0; 400];
        match stream.read(&mut answer) {
            Ok(count) => {
                let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
                assert!(answer.starts_with("http/1.1 404"), "{answer}");
            }
            // It was answered while it still sent.
            Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it is waited for"),
        }
    }
    let whole = [&request(token)[..], b"\"}\n"].concat();
    let accepted = house.raw(&whole);
    assert_eq!(accepted.status, 200, "{accepted:?}");
    house.fixture.planctl(&["plan", "cancel", &run]);
}

/// The limits of a process's open files, soft and hard.
fn files_of(pid: i64) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn b6_the_daemon_takes_the_files_that_it_may_and_what_it_starts_has_those_that_it_was_given() {
    let house = House::with_files(300, 4_096);
    let pid = house.local("GET", "/v1/daemon", &Ask::default()).json()["daemon"]["pid"].as_i64().unwrap();
    assert_eq!(files_of(pid), (4_096, 4_096));
    let check = "test \"$(ulimit -Sn) $(ulimit -Hn)\" = \"300 4096\"";
    let text = plan("limits", "word").replace("grep -qx word out.txt", check);
    house.fixture.write("limits.md", &text);
    let exec = format!("{check} && echo word >out.txt");
    let said = house.fixture.planctl(&["plan", "run", "limits.md", "--approve", "--exec", &exec]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(house.fixture.read("out.txt"), "word\n", "the worker has the limit too");
}

#[test]
fn b6_callers_leave_gates_the_files_that_they_need() {
    let house = House::with_files(200, 200);
    let worker = house.token("worker");
    let run = house.run("a", "word");
    let claimed = house.claim();
    house.fixture.write("out.txt", "word\n");
    // Ten times as many callers as there are files; those for whom there is none wait.
    let doors = (0..1_000).map(|_| {
        let local = std::os::unix::net::UnixStream::connect(house.fixture.state().join("daemon.sock"));
        (stalled(&house.port, b"GET /v1/runs HTTP/1.1\r\nhost: x\r\n"), local.ok())
    });
    let doors: Vec<_> = doors.take_while(|(_, local)| local.is_some()).collect();
    let ask = Ask {
        token: claimed["token"].as_str(),
        body: Some(r#"{"text": "done"}"#.to_owned()),
        ..Ask::default()
    };
    let path = format!("/v1/items/{}/complete", claimed["item"].as_str().unwrap());
    assert_eq!(house.network("POST", &path, &ask).status, 200);
    drop(worker);
    drop(doors);
    let view = house.until(&run, "done");
    assert_eq!(view["steps"][0]["attempts"], 1, "{view}");
    let events = house.fixture.planctl(&["events", "--run", &run, "--json"]).out;
    assert!(!events.contains("gate_repeated"), "{events}");
}
