//! A small MCP server, over standard streams or at an address. It notes each method that it is asked, and each call with its arguments.

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Serves until its input ends.
pub fn serve(manner: &str, log: &str) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(asked) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(answer) = answer(&asked, manner, log) else { continue };
        let mut out = std::io::stdout().lock();
        // As JavaScript writes half of a surrogate pair.
        let answer = answer.to_string().replace("HALF", "\\ud83d");
        writeln!(out, "{answer}").and_then(|()| out.flush()).unwrap();
    }
}

/// Returns the answer to a message, where it wants one.
pub fn answer(asked: &Value, manner: &str, log: &str) -> Option<Value> {
    let method = asked["method"].as_str().unwrap_or_default();
    note(log, method, &asked["params"]);
    let id = asked.get("id")?;
    let answer = match method {
        "initialize" => Ok(json!({
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "issues", "version": if manner == "newer" { "2.0.0" } else { "1.0.0" }},
        })),
        "tools/list" => Ok(json!({"tools": tools(manner)})),
        "tools/call" => call(&asked["params"], log),
        _ => Err(json!({"code": -32601, "message": "no such method"})),
    };
    Some(match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    })
}

fn note(log: &str, method: &str, params: &Value) {
    let mut file = OpenOptions::new().append(true).create(true).open(log).unwrap();
    let line = match method {
        "tools/call" => format!("{} {}\n", params["name"].as_str().unwrap_or_default(), params["arguments"]),
        method => format!("{method}\n"),
    };
    file.write_all(line.as_bytes()).unwrap();
}

fn tools(manner: &str) -> Value {
    let page = if manner == "newer" { "string" } else { "integer" };
    json!([
        {
            "name": "list_issues",
            "description": "Lists the issues of a repository",
            "annotations": {"readOnlyHint": true},
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repo": {"type": "string"},
                    "state": {"enum": ["open", "closed", "all"]},
                    "perPage": {"type": page},
                },
                "required": ["repo"],
                "additionalProperties": false,
            },
        },
        {
            "name": "close_issue",
            "description": "Closes an issue",
            "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
        },
        {
            "name": "fail",
            "description": "Fails with the words it is given",
            "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}},
        },
        {
            "name": "refuse",
            "description": "Answers with an error of the protocol",
            "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}},
        },
        {"name": "meet", "description": "Waits for another call", "inputSchema": {"type": "object"}},
        {"name": "vanish", "description": "Ends in the middle", "inputSchema": {"type": "object"}},
        {"name": "connect", "description": "Reaches a port", "inputSchema": {"type": "object"}},
        {"name": "secret", "description": "Tells the token", "inputSchema": {"type": "object"}},
    ])
}

fn issues() -> Vec<Value> {
    let issue = |number: u32, title: &str, state: &str, label: &str| json!({"number": number, "title": title, "state": state, "labels": [label]});
    vec![
        issue(7, "Zoom is wrong", "open", "bug"),
        issue(3, "Add a map", "open", "feature"),
        issue(5, "Crash at start", "open", "bug"),
        issue(2, "Typo", "closed", "bug"),
    ]
}

fn call(params: &Value, log: &str) -> Result<Value, Value> {
    let arguments = &params["arguments"];
    let words = arguments["words"].as_str().unwrap_or_default();
    match params["name"].as_str().unwrap_or_default() {
        "list_issues" if arguments["repo"] == "acme/lost" => Ok(
            json!({"isError": true, "content": [{"type": "text", "text": "there is no repository acme/lost"}]}),
        ),
        "list_issues" if arguments["repo"] == "acme/limited" => {
            Ok(json!({"isError": true, "content": [{"type": "text", "text": "rate limit exceeded"}]}))
        }
        "list_issues" => {
            let state = arguments["state"].as_str().unwrap_or("open");
            let most = arguments["perPage"].as_u64().unwrap_or(10) as usize;
            let fits = |issue: &Value| state == "all" || issue["state"] == state;
            let found: Vec<Value> = issues().into_iter().filter(fits).take(most).collect();
            let structured = json!({"total": found.len(), "issues": found});
            Ok(
                json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured}),
            )
        }
        "close_issue" => {
            Ok(json!({"content": [{"type": "text", "text": format!("closed {}", arguments["number"])}]}))
        }
        "fail" => Ok(json!({"isError": true, "content": [{"type": "text", "text": words}]})),
        "refuse" => Err(json!({"code": -32000, "message": words})),
        "meet" => {
            // Ends once the other call has come, which it can only where both are under way.
            let of = |name: &str| format!("{log}-{}", arguments[name].as_str().unwrap_or_default());
            std::fs::write(of("own"), "").unwrap();
            while !std::path::Path::new(&of("other")).exists() {
                std::thread::yield_now();
            }
            Ok(json!({"content": [{"type": "text", "text": "met"}]}))
        }
        "connect" => {
            let address = arguments["address"].as_str().unwrap_or_default();
            let reached = std::net::TcpStream::connect(address).map(drop);
            let words =
                reached.map_or_else(|error| format!("not reached: {error}"), |()| "reached".to_owned());
            Ok(json!({"content": [{"type": "text", "text": words}]}))
        }
        "vanish" => std::process::exit(3),
        "secret" => {
            let token = std::env::var("ISSUES_TOKEN").unwrap_or_default();
            Ok(json!({"content": [{"type": "text", "text": format!("it is {token}")}]}))
        }
        other => Err(json!({"code": -32602, "message": format!("Unknown tool: {other}")})),
    }
}
