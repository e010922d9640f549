//! What one caller can use up of the daemon (A44, sec holes 4, 16).

use super::house::{Ask, House};

#[test]
fn hole_4_no_glob_of_a_worker_ends_the_daemon() {
    let house = House::new();
    let worker = house.token("worker");
    let deep = |levels: usize| format!("{}x{}", "{a,".repeat(levels), "}".repeat(levels));
    let log = || std::fs::metadata(house.room.state().join("daemon.log")).map_or(0, |meta| meta.len());
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
