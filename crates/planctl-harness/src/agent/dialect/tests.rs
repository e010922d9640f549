//! Captured outputs of five agents, and what is read from them.

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/", $name)).as_slice()
    };
}

fn read(output: &[u8]) -> Answer {
    let captured = Captured { head: output.to_vec(), tail: Vec::new(), bytes: output.len() as u64 };
    let whole = {
        let mut listener = Listener::default();
        listener.feed(output);
        listener.finish(&captured, &Captured::default())
    };
    // However the bytes arrive, the answer is the same.
    let mut listener = Listener::default();
    for chunk in output.chunks(7) {
        listener.feed(chunk);
    }
    assert_eq!(listener.finish(&captured, &Captured::default()), whole);
    whole
}

fn usage(input: u64, cached: u64, output: u64, micro_usd: Option<u64>, model: Option<&str>) -> Usage {
    Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        output_tokens: output,
        micro_usd,
        model: model.map(str::to_owned),
        estimated: false,
        tokens_estimated: false,
    }
}

#[test]
fn appendix_a_five_agents_that_answered() {
    let cases = [
        (fixture!("claude-ok.jsonl"), usage(135, 5, 7, Some(840), Some("claude-opus-4-8[1m]")), Some("ID")),
        (fixture!("codex-ok.jsonl"), usage(120, 5, 7, None, None), Some("ID")),
        (fixture!("gemini-ok.jsonl"), usage(120, 5, 7, None, Some("gemini-x")), Some("ID")),
        (fixture!("gemini-object.json"), usage(120, 5, 7, None, Some("gemini-x")), None),
        (fixture!("opencode-ok.jsonl"), usage(120, 5, 7, Some(129), None), Some("ID")),
        (fixture!("aider-ok.txt"), usage(120, 0, 7, Some(360), None), None),
    ];
    for (output, usage, session) in cases {
        let answer = read(output);
        assert_eq!(answer.text.as_deref(), Some("Done: wrote docs/analysis.md"));
        assert_eq!(answer.usage, Some(usage));
        assert_eq!((answer.session.as_deref(), answer.error), (session, None));
    }
}

#[test]
fn appendix_a_five_agents_whose_service_failed() {
    for output in [
        fixture!("claude-400.jsonl"),
        fixture!("codex-400.jsonl"),
        fixture!("gemini-400.jsonl"),
        fixture!("opencode-400.jsonl"),
        fixture!("aider-400.txt"),
    ] {
        let answer = read(output);
        let error = answer.error.unwrap();
        assert!(error.message.contains("fake failure") && error.kind == ErrorKind::Service, "{error:?}");
        assert_eq!(answer.usage.map_or(0, |usage| usage.tokens()), 0);
    }
}

#[test]
fn claude_over_its_own_budget_counts_by_model() {
    let answer = read(fixture!("claude-budget.jsonl"));
    assert_eq!(answer.usage.unwrap().tokens(), 142);
    let error = answer.error.unwrap();
    assert!(error.kind == ErrorKind::Own && error.message.contains("limit of money"), "{error:?}");
}

#[test]
fn a_missing_login_is_a_permission() {
    let text = String::from_utf8(fixture!("claude-400.jsonl").to_vec()).unwrap().replace("400", "401");
    assert!(read(text.as_bytes()).error.unwrap().kind == ErrorKind::Login);
    let text = String::from_utf8(fixture!("opencode-400.jsonl").to_vec()).unwrap().replace(":400", ":403");
    assert!(read(text.as_bytes()).error.unwrap().kind == ErrorKind::Login);
}

#[test]
fn the_native_line_goes_before_every_dialect() {
    let mut output = br#"{"planctl":"result/1","text":"Mine","outcome":"gave_up","session":"S"}
"#
    .to_vec();
    output.extend_from_slice(fixture!("claude-ok.jsonl"));
    let answer = read(&output);
    assert_eq!(answer.text.as_deref(), Some("Mine"));
    assert!(answer.gave_up);
    assert_eq!(answer.session.as_deref(), Some("S"));
    assert_eq!(answer.usage.unwrap().tokens(), 142, "usage comes from whoever tells it");
}

#[test]
fn a_question_needs_an_outcome_that_asks() {
    let ask = br#"{"planctl":"result/1","outcome":"needs_input","question":"Which?"}"#;
    assert_eq!(read(ask).question.as_deref(), Some("Which?"));
    let text = br#"{"planctl":"result/1","outcome":"needs_input","text":"Which one?"}"#;
    assert_eq!(read(text).question.as_deref(), Some("Which one?"));
    let worked = br#"{"planctl":"result/1","outcome":"worked","question":null}"#;
    assert_eq!(read(worked).question, None);
}

#[test]
fn unknown_lines_plain_text_and_nonsense_are_no_answer() {
    for output in [
        b"".as_slice(),
        b"all tests pass\n",
        b"{\"type\":\"result\"}\n{\"type\":\"progress\",\"x\":[1]}\n{broken\n",
        b"{\"planctl\":\"result/9\",\"text\":\"x\"}\n",
        b"\xff\xfe{\n\0\n",
        b"Tokens: many sent, 7 received.\nTokens: 1, 2\nTokens:\n",
    ] {
        assert_eq!(read(output), Answer::default(), "{:?}", String::from_utf8_lossy(output));
    }
}

#[test]
fn hole_20_absurd_numbers_make_the_work_unmetered() {
    let output = br#"{"planctl":"result/1","usage":{"input_tokens":-5,"output_tokens":1e300,"cost_usd":-1,"cached_input_tokens":"x"}}"#;
    assert_eq!(read(output).usage, None);
}

#[test]
fn figures_of_claude_that_are_not_there_or_can_not_be_are_unmetered() {
    let said = |usage: &str| {
        let line =
            format!(r#"{{"type":"result","session_id":"s","result":"x","total_cost_usd":0.5,{usage}}}"#);
        read(format!("{line}\n").as_bytes())
    };
    for usage in [
        r#""usage":null"#,
        r#""x":1"#,
        r#""usage":{"output_tokens":1e30}"#,
        r#""usage":{"input_tokens":-1}"#,
        r#""modelUsage":{"m":{"outputTokens":1e30}},"usage":{"output_tokens":1}"#,
    ] {
        let answer = said(usage);
        assert_eq!((answer.usage, answer.text.as_deref()), (None, Some("x")), "{usage}");
    }
    let metered = said(r#""usage":{"input_tokens":1,"output_tokens":2}"#).usage.unwrap();
    assert_eq!((metered.input_tokens, metered.output_tokens, metered.micro_usd), (1, 2, Some(500_000)));
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let mut output =
        format!("{{\"planctl\":\"result/1\",\"text\":\"{}\"}}\n", "x".repeat(LINE_BYTES_MAX)).into_bytes();
    output.extend_from_slice(b"{\"planctl\":\"result/1\",\"text\":\"short\"}\n");
    assert_eq!(read(&output).text.as_deref(), Some("short"));
}

#[test]
fn aiders_counts_may_be_shortened_and_are_summed() {
    let output = b"Fixed.\nTokens: 1.2k sent, 3 cache hit, 7 received. Cost: $0.01 message, $0.01 session.\n\
        Tokens: 2k sent, 1.1k received. Cost: $0.02 message, $0.03 session.\n";
    assert_eq!(read(output).usage, Some(usage(3200, 3, 1107, Some(30_000), None)));
}

#[test]
fn aider_names_its_model_in_its_header() {
    let output =
        b"Aider v0.86.2\nMain model: gpt-x with diff edit format\nDone.\nTokens: 1 sent, 2 received.\n";
    assert_eq!(read(output).usage, Some(usage(1, 0, 2, None, Some("gpt-x"))));
}

#[test]
fn an_object_that_gemini_prints_on_standard_error_is_an_error() {
    let on_stderr = |text: &str| {
        let stderr = Captured { head: text.into(), tail: Vec::new(), bytes: text.len() as u64 };
        Listener::default().finish(&Captured::default(), &stderr).error
    };
    let object = |code: u32| {
        format!(
            "Loaded cached credentials.\n{{\n  \"session_id\": \"ID\",\n  \"error\": {{\n    \"type\": \"Error\",\n    \"message\": \"fake failure\",\n    \"code\": {code}\n  }}\n}}\n"
        )
    };
    let error = on_stderr(&object(400)).unwrap();
    assert_eq!((error.message.as_str(), error.kind), ("fake failure", ErrorKind::Service));
    assert!(on_stderr(&object(41)).unwrap().kind == ErrorKind::Login);
    assert_eq!(on_stderr("{\"a\": 1}\n{broken\nerror: {x}\n"), None);
    assert_eq!(on_stderr(&"{\n".repeat(60_000)), None);
}

#[test]
fn d9_what_claude_was_denied_is_told() {
    let denied = r#""permission_denials":[{"tool_name":"Bash","tool_use_id":"T","tool_input":{"command":"rm -rf x"}},{"tool_name":"WebFetch","tool_input":{}}]"#;
    let text = String::from_utf8(fixture!("claude-ok.jsonl").to_vec()).unwrap();
    let text = text.replace(r#""permission_denials":[]"#, denied);
    assert_eq!(read(text.as_bytes()).denials, ["Bash(rm -rf x)", "WebFetch"]);
}

#[test]
fn hole_20_figures_that_can_not_be_are_unmetered_and_not_nought() {
    let said = |usage: &str| {
        let value = serde_json::from_str(&format!(r#"{{"planctl": "result/1", "usage": {usage}}}"#)).unwrap();
        Answer::from_result_json(&value).unwrap().usage
    };
    for usage in [
        r#"{"input_tokens": -5}"#,
        r#"{"input_tokens": 18446744073709551616}"#,
        r#"{"output_tokens": 1e308}"#,
        r#"{"output_tokens": "many"}"#,
        r#"{"cost_usd": -1}"#,
        "7",
    ] {
        assert_eq!(said(usage), None, "{usage}");
    }
    let long = format!(r#"{{"input_tokens": 5, "model": "{}"}}"#, "m".repeat(500_000));
    assert_eq!(said(&long).unwrap().model.unwrap().len(), MODEL_CHARACTERS_MAX);
}

#[test]
fn d1_d2_a_login_that_is_missing_or_refused_is_one() {
    for (output, words) in [
        (fixture!("claude-not-signed-in.jsonl"), "Not logged in"),
        (fixture!("codex-401.jsonl"), "401 Unauthorized"),
        (fixture!("codex-not-signed-in.jsonl"), "401 Unauthorized"),
        (fixture!("aider-not-signed-in.txt"), "no API keys were provided"),
        (fixture!("aider-401.txt"), "fake failure 401"),
        (fixture!("gemini-401.jsonl"), "fake failure 401"),
        (fixture!("opencode-401.jsonl"), "fake failure 401"),
    ] {
        let answer = read(output);
        let error = answer.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Login, "{error:?}");
        assert!(error.message.contains(words) && !error.message.contains('{'), "{error:?}");
        assert!(!answer.worked);
    }
}

#[test]
fn d1_a_service_that_refuses_time_after_time_is_heard_while_the_agent_tries_on() {
    let refused_after = |output: &[u8]| {
        let mut listener = Listener::default();
        output.split_inclusive(|byte| *byte == b'\n').position(|line| {
            listener.feed(line);
            listener.is_refused()
        })
    };
    assert_eq!(refused_after(fixture!("claude-401.jsonl")), Some(2), "the second of ten tries");
    assert_eq!(refused_after(fixture!("codex-401.jsonl")), Some(3));
    let busy = String::from_utf8(fixture!("claude-401.jsonl").to_vec()).unwrap();
    let busy = busy.replace("401", "529").replace("authentication_failed", "overloaded");
    assert_eq!(refused_after(busy.as_bytes()), None);
    let notice = read(busy.as_bytes()).notice.unwrap();
    assert_eq!(notice.kind, ErrorKind::Service);
    assert_eq!(notice.message, "its service answers 529 overloaded, try 7 of 10");
    assert_eq!(refused_after(fixture!("codex-not-signed-in.jsonl")), Some(4));
    assert!(refused_after(fixture!("aider-not-signed-in.txt")).is_some(), "aider waits for a browser");
    // Gemini CLI says it by its status, and its words are no error of a service.
    let gemini =
        Captured { head: fixture!("gemini-not-signed-in.txt").to_vec(), tail: Vec::new(), bytes: 207 };
    let answer = Listener::default().finish(&Captured::default(), &gemini);
    assert!(answer.error.is_none() && !answer.is_heard, "{answer:?}");
}

#[test]
fn d3_d4_a_service_that_fails_in_the_middle_of_the_work_is_trouble_after_work() {
    for (output, tokens) in [
        (fixture!("claude-cut-off.jsonl"), Some(2430)),
        (fixture!("codex-cut-off.jsonl"), None),
        (fixture!("gemini-cut-off.jsonl"), Some(2448)),
        (fixture!("opencode-cut-off.jsonl"), Some(1215)),
    ] {
        let answer = read(output);
        let error = answer.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Service, "{error:?}");
        assert!(error.message.contains("fake failure") && !error.message.contains('{'), "{error:?}");
        assert!(answer.worked, "{error:?}");
        assert_eq!(answer.usage.map(|usage| usage.tokens()), tokens, "{error:?}");
    }
}

#[test]
fn d6_thoughts_of_gemini_count() {
    let stats = r#"{"type":"result","status":"success","stats":{"total_tokens":3672,"input_tokens":3600,"output_tokens":45,"cached":600,"models":{}}}"#;
    let usage = read(stats.as_bytes()).usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (3600, 72));
}

#[test]
fn d8_a_line_of_a_dialect_is_shown_as_the_tool_it_uses() {
    for (output, expected) in [
        (fixture!("claude-cut-off.jsonl"), "Write(/work/app/one.txt)"),
        (fixture!("codex-cut-off.jsonl"), "Bash(/bin/bash -lc \"echo 'Hello' > one.txt\")"),
        (fixture!("gemini-cut-off.jsonl"), "write_file(one.txt)"),
        (fixture!("opencode-cut-off.jsonl"), "write(/work/app/one.txt)"),
    ] {
        let tools: Vec<String> = std::str::from_utf8(output).unwrap().lines().filter_map(tool_in).collect();
        assert_eq!(tools.last().map(String::as_str), Some(expected));
    }
    assert_eq!(tool_in("{\"type\":\"init\"}"), None);
    assert_eq!(tool_in("plain words"), None);
}

#[test]
fn d14_a_result_of_two_megabytes_is_read_with_its_usage() {
    let long = "x".repeat(2 << 20);
    let text = String::from_utf8(fixture!("claude-ok.jsonl").to_vec()).unwrap();
    let answer = read(text.replace("Done: wrote docs/analysis.md", &long).as_bytes());
    assert_eq!(answer.usage, Some(usage(135, 5, 7, Some(840), Some("claude-opus-4-8[1m]"))));
    assert!(answer.text.is_some_and(|text| text.starts_with("xxx")));
}

#[test]
fn d8_an_agent_that_was_ended_in_the_middle_said_nothing_for_people() {
    let answer = read(b"{\"type\":\"thread.started\",\"thread_id\":\"T\"}\n{\"type\":\"turn.started\"}\n");
    assert!(answer.is_known && answer.text.is_none() && answer.error.is_none());
    assert_eq!(answer.session.as_deref(), Some("T"));
    let looped =
        read(br#"{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}"#);
    assert_eq!(looped.notice.unwrap().message, "Loop detected, stopping execution");
}
