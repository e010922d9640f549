//! How a conversation begins, goes wrong and ends.

use serde_json::{Value, json};

use super::editor::Editor;
use super::{of_code, plan};

#[test]
fn the_encoding_is_utf_8_where_the_editor_knows_it_and_utf_16_where_not() {
    Editor::new(&["utf-16", "utf-8"]);
    Editor::new(&["utf-32", "utf-16"]);
    Editor::new(&[]);
}

#[test]
fn shutdown_and_exit_end_in_order() {
    let mut editor = Editor::new(&[]);
    assert_eq!(editor.request("shutdown", Value::Null), Value::Null);
    let refused = editor.try_request("textDocument/hover", json!({})).unwrap_err();
    assert_eq!(refused.0, -32600);
    editor.notify("exit", Value::Null);
    assert_eq!(editor.ended().code(), Some(0));
}

#[test]
fn an_exit_or_an_end_without_shutdown_is_out_of_order() {
    let mut editor = Editor::new(&[]);
    editor.notify("exit", Value::Null);
    assert_eq!(editor.ended().code(), Some(1));
    let mut editor = Editor::new(&[]);
    editor.hang_up();
    assert_eq!(editor.ended().code(), Some(1));
    let mut editor = Editor::silent();
    editor.notify("exit", Value::Null);
    assert_eq!(editor.ended().code(), Some(1));
}

#[test]
fn the_server_ends_when_the_editors_process_does() {
    let mut other = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let mut editor = Editor::silent();
    editor.request("initialize", json!({ "processId": other.id(), "capabilities": {} }));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(editor.ended().code(), Some(1), "though its input is open");
}

#[test]
fn requests_before_initialize_are_refused() {
    let mut editor = Editor::silent();
    let refused = editor.try_request("textDocument/hover", json!({})).unwrap_err();
    assert_eq!(refused.0, -32002);
    editor.initialize(&[]);
    let refused = editor.try_request("initialize", json!({})).unwrap_err();
    assert_eq!(refused.0, -32600);
}

#[test]
fn what_is_no_proper_message_is_answered_and_the_conversation_goes_on() {
    let mut editor = Editor::new(&[]);
    let cases = [
        ("{\"jsonrpc\": \"2.0\", ", -32700),
        ("\u{0}", -32700),
        ("[]", -32600),
        ("17", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"shutdown"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"shutdown"}"#, -32600),
    ];
    for (body, code) in cases {
        editor.send_body(body);
        let answer = editor.wait(|message| message["id"].is_null() && message.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{body}");
    }
    assert_eq!(editor.try_request("planctl/nonsense", json!({})).unwrap_err().0, -32601);
    assert_eq!(editor.try_request("textDocument/hover", json!({ "position": 7 })).unwrap_err().0, -32602);
    let unknown = json!({ "textDocument": { "uri": "file:///nowhere.md" } });
    assert_eq!(editor.try_request("textDocument/foldingRange", unknown).unwrap_err().0, -32602);
    for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/nonsense"] {
        editor.notify(method, json!({ "textDocument": 7 }));
    }
    let document = json!({ "uri": "file:///nowhere.md", "version": 1 });
    editor.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [] }));
    assert_eq!(editor.opened("plans/a.md", "no plan")[0]["code"], "P007");
}

#[test]
fn headers_that_do_not_tell_the_length_end_the_conversation() {
    for bytes in ["\r\n", "Content-Length: many\r\n\r\n", "nonsense\r\n\r\n", "Content-Length: 99\r\n\r\n{}"]
    {
        let mut editor = Editor::new(&[]);
        editor.send_raw(bytes.as_bytes());
        editor.hang_up();
        assert_eq!(editor.ended().code(), Some(1), "{bytes:?}");
    }
}

#[test]
fn only_plans_have_findings() {
    let mut editor = Editor::new(&[]);
    let broken = plan("gone.md", "true");
    let other = broken.replace("type: plan", "type: note");
    editor.open("README.md", 1, "# Readme\n\n### 1. A step\n");
    editor.open("plans/README.md", 1, "# Plans\n");
    editor.open("plans/note.md", 1, &other);
    editor.open("notes.md", 1, &other);
    assert_eq!(editor.about("textDocument/codeLens", "README.md"), Value::Null);
    assert!(!editor.opened("anywhere.md", &broken).is_empty());
    assert!(!editor.opened("plans/new.md", "# No frontmatter\n").is_empty());
    assert!(!editor.opened("fix.plan.md", "").is_empty());
    let published = editor.came("textDocument/publishDiagnostics");
    assert!(published.is_empty(), "{published:?}");
    // Findings go when the file stops being a plan, and when it is closed.
    editor.change("anywhere.md", 2, json!([{ "text": other }]));
    assert_eq!(editor.findings("anywhere.md", 2), [] as [Value; 0]);
    let uri = editor.uri("fix.plan.md");
    editor.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(editor.findings("fix.plan.md", 1), [] as [Value; 0]);
}

#[test]
fn a_request_that_waits_for_findings_can_be_taken_back() {
    let mut editor = Editor::new(&[]);
    let long: String =
        (1..=300).map(|step| format!("\n### {step}. S\n\n**target:** a\n**task:** t\n")).collect();
    let text = format!("---\ntype: plan\n---\n\n# T\n\n## Steps\n{long}");
    editor.open("a.md", 1, &text);
    let uri = editor.uri("a.md");
    let position = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 0 } });
    let id = editor.ask("textDocument/hover", position);
    editor.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(editor.answer(id).unwrap_err().0, -32800);
    assert!(!editor.findings("a.md", 1).is_empty());
}

#[test]
fn saving_looks_at_the_files_again() {
    let mut editor = Editor::new(&[]);
    let found = editor.opened("a.md", &plan("docs/notes.md", "test -s docs/cause.md"));
    assert_eq!(of_code(&found, "P201").len(), 1, "{found:?}");
    editor.write("docs/notes.md", "notes\n");
    let uri = editor.uri("a.md");
    editor.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    let found = editor.findings("a.md", 1);
    assert_eq!(of_code(&found, "P201").len(), 0, "{found:?}");
}

#[test]
fn a_configuration_that_cannot_be_read_is_said_once() {
    let mut editor = Editor::new(&[]);
    editor.write("planctl.toml", "[roles\n");
    editor.opened("a.md", &plan("docs/cause.md", "test -s docs/cause.md"));
    let shown = editor.notified("window/showMessage");
    assert!(shown["message"].as_str().unwrap().contains("planctl.toml"), "{shown}");
    editor.opened("b.md", &plan("docs/cause.md", "test -s docs/cause.md"));
    assert_eq!(editor.came("window/showMessage").len(), 0);
}

#[test]
fn what_a_finding_weighs_is_what_the_configuration_says() {
    let mut editor = Editor::new(&[]);
    let text = plan("docs/notes.md", "test -s docs/cause.md");
    let found = editor.opened("a.md", &text);
    assert_eq!(of_code(&found, "P402")[0]["severity"], 2, "{found:?}");
    editor.write("planctl.toml", "[verify]\ndeny = [\"P402\"]\n");
    let found = editor.opened("b.md", &text);
    assert_eq!(of_code(&found, "P402")[0]["severity"], 1, "{found:?}");
}
