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
        listener.hear(output);
        listener.finish(&captured, &Captured::default())
    };
    // However the bytes arrive, the answer is the same.
    let mut listener = Listener::default();
    for chunk in output.chunks(7) {
        listener.hear(chunk);
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
        assert!(error.message.contains("fake failure") && !error.is_permission, "{error:?}");
        assert_eq!(answer.usage.map_or(0, |usage| usage.tokens()), 0);
    }
}

#[test]
fn claude_over_its_own_budget_counts_by_model() {
    let answer = read(fixture!("claude-budget.jsonl"));
    assert_eq!(answer.usage.unwrap().tokens(), 142);
    assert_eq!(answer.error.unwrap().message, "error_max_budget_usd");
}

#[test]
fn a_missing_login_is_a_permission() {
    let text = String::from_utf8(fixture!("claude-400.jsonl").to_vec()).unwrap().replace("400", "401");
    assert!(read(text.as_bytes()).error.unwrap().is_permission);
    let text = String::from_utf8(fixture!("opencode-400.jsonl").to_vec()).unwrap().replace(":400", ":403");
    assert!(read(text.as_bytes()).error.unwrap().is_permission);
}

#[test]
fn the_native_line_goes_before_every_dialect() {
    let mut output =
        br#"{"planctl":"result/1","text":"Mine","outcome":"gave_up","artifacts":["a"],"session":"S"}
"#
        .to_vec();
    output.extend_from_slice(fixture!("claude-ok.jsonl"));
    let answer = read(&output);
    assert_eq!(answer.text.as_deref(), Some("Mine"));
    assert!(answer.gave_up);
    assert_eq!(
        (answer.session.as_deref(), answer.artifacts.as_slice()),
        (Some("S"), ["a".to_owned()].as_slice())
    );
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
    assert_eq!((error.message.as_str(), error.is_permission), ("fake failure", false));
    assert!(on_stderr(&object(41)).unwrap().is_permission);
    assert_eq!(on_stderr("{\"a\": 1}\n{broken\nerror: {x}\n"), None);
    assert_eq!(on_stderr(&"{\n".repeat(60_000)), None);
}

#[test]
fn what_claude_was_denied_is_told() {
    let denied = r#""permission_denials":[{"tool_name":"Bash","tool_use_id":"T","tool_input":{"command":"rm -rf x"}},{"tool_name":"WebFetch","tool_input":{}}]"#;
    let text = String::from_utf8(fixture!("claude-ok.jsonl").to_vec()).unwrap();
    let text = text.replace(r#""permission_denials":[]"#, denied);
    assert_eq!(read(text.as_bytes()).denials, ["Bash(rm -rf x)", "WebFetch"]);
}

#[test]
fn hole_20_figures_that_can_not_be_are_unmetered_and_not_nought() {
    let said = |usage: &str| {
        let value = serde_json::from_str(&format!(r#"{{"planctl": "result/1", "usage": {usage}}}"#)).unwrap();
        Answer::native(&value).unwrap().usage
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
