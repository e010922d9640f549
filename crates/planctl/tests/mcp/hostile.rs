//! A thousand messages that no client means: none ends the server, and its memory stays bounded.

use serde_json::{Value, json};

use super::client::{Client, newer_meta};
use crate::support::Place;
use crate::support::chance::Chance;

const MESSAGES: usize = 1_000;
/// Twice as much as a server uses that reads the longest message it takes.
const MEMORY_KIB_MAX: u64 = 160 << 10;

fn below(chance: &mut Chance, end: usize) -> usize {
    usize::try_from(chance.below(end as u64)).unwrap()
}

/// Values that no argument expects.
fn odd(chance: &mut Chance) -> Value {
    match below(chance, 12) {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(-1.5e300),
        3 => json!("\u{0}\u{202e}\u{feff}"),
        4 => json!("x".repeat(100_000)),
        5 => json!(vec!["S001"; 500]),
        6 => json!({ "$ref": "#", "__proto__": { "a": 1 } }),
        7 => json!("../../../../etc/passwd"),
        8 => json!("planctl://plans/%00%ff%2F"),
        9 => json!("'; drop table runs; --"),
        10 => json!(true),
        _ => json!({ "step_id": { "step_id": { "step_id": [] } } }),
    }
}

/// One message, as bytes of a line.
fn message(chance: &mut Chance, number: usize, tools: &[String]) -> Vec<u8> {
    let id = format!("hostile-{number}");
    let methods = [
        "tools/call",
        "resources/read",
        "prompts/get",
        "tools/list",
        "initialize",
        "server/discover",
        "completion/complete",
        "logging/setLevel",
        "sampling/createMessage",
        "notifications/cancelled",
        "tasks/get",
        "",
        "rpc.discover",
    ];
    let method = methods[below(chance, methods.len())];
    let tool = &tools[below(chance, tools.len())];
    let fields = [
        "step_id",
        "status",
        "steps",
        "objective",
        "path",
        "text",
        "run",
        "item",
        "token",
        "code",
        "session",
        "roles",
    ];
    let mut arguments = json!({});
    for _ in 0..below(chance, 4) {
        arguments[fields[below(chance, fields.len())]] = odd(chance);
    }
    let params = json!({ "name": tool, "arguments": arguments, "uri": odd(chance), "cursor": odd(chance) });
    let whole = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    match below(chance, 14) {
        0 => b"{".to_vec(),
        1 => "[".repeat(5_000).into_bytes(),
        2 => format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{}"#,
            "{\"a\":".repeat(3_000)
        )
        .into_bytes(),
        3 => vec![0xff, 0xfe, b'{', 0x80],
        4 => json!([whole, whole]).to_string().into_bytes(),
        5 => json!({ "jsonrpc": "1.0", "id": id, "method": method }).to_string().into_bytes(),
        6 => json!({ "jsonrpc": "2.0", "id": odd(chance), "method": method, "params": odd(chance) })
            .to_string()
            .into_bytes(),
        7 => json!({ "jsonrpc": "2.0", "id": id, "result": odd(chance) }).to_string().into_bytes(),
        8 => json!({ "jsonrpc": "2.0", "method": method, "params": odd(chance) }).to_string().into_bytes(),
        9 => {
            let mut whole = whole;
            whole["params"]["_meta"] = newer_meta();
            whole["params"]["_meta"]
                [["io.modelcontextprotocol/clientInfo", "progressToken"][below(chance, 2)]] = odd(chance);
            whole.to_string().into_bytes()
        }
        10 => whole.to_string().into_bytes().into_iter().take(below(chance, 200)).collect(),
        11 => {
            let mut bytes = whole.to_string().into_bytes();
            let at = below(chance, bytes.len());
            bytes[at] = u8::try_from(below(chance, 256)).unwrap();
            bytes.retain(|byte| *byte != b'\n');
            bytes
        }
        _ => whole.to_string().into_bytes(),
    }
}

/// Returns the most memory that a process ever had, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn half_a_surrogate_pair_is_read_and_a_line_that_is_not_json_is_refused() {
    let place = Place::untouched();
    let mut client = Client::new(&place);
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"");
    assert_eq!(client.answer_to(Value::Null)["error"]["code"], -32700);
    let call = br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"code_explain","arguments":{"code":"P\ud83d"}}}"#;
    client.send_raw(call);
    let refused = client.answer_to(8)["result"].to_string();
    assert!(refused.contains("not_found") && refused.contains('\u{fffd}'), "{refused}");
    assert!(client.end().success());
}

#[test]
fn a_thousand_hostile_messages_end_nothing_and_use_up_nothing() {
    let place = Place::untouched();
    let log = place.path("mcp.log");
    let mut client = Client::logging(&place, &log);
    client.shake_hands();
    // These alone are safe to call with anything: the others open a database, which this is not about.
    let tools: Vec<String> = client
        .tools()
        .into_iter()
        .filter(|tool| tool.starts_with("planning_") || tool.starts_with("code_"))
        .collect();
    let mut chance = Chance::new(20_260_728);
    for number in 0..MESSAGES {
        client.send_raw(&message(&mut chance, number, &tools));
        if number % 50 == 49 {
            client.must("planning_setup_plan", json!({ "objective": "still there" }));
            assert_eq!(client.must("planning_read_plan", json!({}))["plan"]["objective"], "still there");
        }
    }
    // One that is longer than any message may be, and the next one is read as ever.
    client.send_raw(&vec![b'a'; 20 << 20]);
    client.must("planning_read_plan", json!({}));
    let used = memory(client.pid());
    assert!(used < MEMORY_KIB_MAX, "{used} KiB");
    assert!(client.end().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}
