//! Running a contract from the lens over it.

use serde_json::{Value, json};

use super::editor::Editor;
use super::plan;

fn run(editor: &mut Editor, arguments: Value) -> Result<Value, (i64, String)> {
    let command = json!({ "command": "planctl.runContract", "arguments": [arguments] });
    editor.try_request("workspace/executeCommand", command)
}

#[test]
fn the_lens_runs_the_contract_of_the_unsaved_text() {
    let mut editor = Editor::new(&[]);
    editor.opened("a.md", &plan("docs/cause.md", "echo looked; grep -q Cause docs/cause.md"));
    let lenses = editor.about("textDocument/codeLens", "a.md");
    assert_eq!(lenses.as_array().unwrap().len(), 1, "{lenses}");
    let lens = &lenses[0];
    assert_eq!(
        (&lens["range"]["start"]["line"], &lens["command"]["title"]),
        (&json!(20), &json!("run contract"))
    );
    let arguments = lens["command"]["arguments"][0].clone();

    let failed = run(&mut editor, arguments.clone()).unwrap();
    assert_eq!((&failed["verdict"], &failed["exit_code"]), (&json!("failed"), &json!(2)), "{failed}");
    assert_eq!(failed["stdout"], "looked\n");
    let shown = editor.notified("window/showMessage");
    assert_eq!(shown["type"], 2);
    assert!(
        shown["message"].as_str().unwrap().starts_with("step 1: the contract fails (exit code 2, expected 0")
    );
    let logged = editor.notified("window/logMessage");
    assert!(logged["message"].as_str().unwrap().contains("looked"), "{logged}");

    editor.write("docs/cause.md", "Cause\n");
    let passed = run(&mut editor, arguments).unwrap();
    assert_eq!((&passed["verdict"], &passed["exit_code"]), (&json!("passed"), &json!(0)), "{passed}");
    assert_eq!(editor.notified("window/showMessage")["type"], 3);
}

#[test]
fn a_run_shows_progress_and_can_be_cancelled() {
    let mut editor = Editor::new(&[]);
    editor.opened("a.md", &plan("docs/cause.md", "sleep 300"));
    let arguments = json!({ "uri": editor.uri("a.md"), "step": "1" });
    let command = json!({ "command": "planctl.runContract", "arguments": [arguments] });
    let id = editor.ask("workspace/executeCommand", command.clone());
    let create = editor.wait(|message| message["method"] == "window/workDoneProgress/create");
    editor.send_body(&json!({ "jsonrpc": "2.0", "id": create["id"], "result": null }).to_string());
    let begun = editor.notified("$/progress");
    assert_eq!((&begun["value"]["kind"], &begun["token"]), (&json!("begin"), &create["params"]["token"]));
    editor.notify("window/workDoneProgress/cancel", json!({ "token": begun["token"] }));
    assert_eq!(editor.answer(id).unwrap_err().0, -32800);
    assert_eq!(editor.notified("$/progress")["value"]["kind"], "end");

    let id = editor.ask("workspace/executeCommand", command);
    editor.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(editor.answer(id).unwrap_err().0, -32800);
}

#[test]
fn what_runs_ends_with_the_server() {
    let mut editor = Editor::new(&[]);
    let outside = tempfile::tempdir().unwrap();
    let fifo = outside.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    editor.opened("a.md", &plan("docs/cause.md", &format!("exec sleep 300 < {}", fifo.display())));
    let arguments = json!({ "uri": editor.uri("a.md"), "step": 1 });
    editor.ask(
        "workspace/executeCommand",
        json!({ "command": "planctl.runContract", "arguments": [arguments] }),
    );
    // Opening waits for the contract to open its end; the pipe breaks when nothing holds that any more.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    editor.hang_up();
    editor.ended();
    let broken = std::io::Write::write(&mut pipe, &[0]).unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn what_a_contract_writes_stays_in_the_copy() {
    let mut editor = Editor::new(&[]);
    editor.write("docs/cause.md", "Cause\n");
    editor.opened("a.md", &plan("docs/cause.md", "echo changed > docs/cause.md; touch made; pwd"));
    let arguments = json!({ "uri": editor.uri("a.md"), "step": 1 });
    let ran = run(&mut editor, arguments).unwrap();
    assert_eq!(ran["verdict"], "passed", "{ran}");
    assert_ne!(
        ran["stdout"].as_str().unwrap().trim(),
        editor.path("").to_str().unwrap().trim_end_matches('/')
    );
    assert_eq!(std::fs::read_to_string(editor.path("docs/cause.md")).unwrap(), "Cause\n");
    assert!(!editor.path("made").exists());
}

#[test]
fn what_would_reach_out_of_the_copy_is_not_run() {
    let mut editor = Editor::new(&[]);
    let mark = editor.path("mark");
    let named = format!("touch {}", mark.display());
    for (at, (contract, why)) in [
        (named.as_str(), "would not stay in the copy"),
        ("rm -rf build; touch mark", "destructive"),
        ("echo x > ../mark; touch mark", "outside the workspace"),
        ("touch mark; if", "not valid bash"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{at}.md");
        editor.opened(&name, &plan("docs/cause.md", contract));
        let arguments = json!({ "uri": editor.uri(&name), "step": 1 });
        let (code, message) = run(&mut editor, arguments).unwrap_err();
        assert!(code == -32602 && message.contains(why), "{contract}: {code} {message}");
    }
    assert!(!mark.exists());
}

#[test]
fn what_cannot_be_run_says_why() {
    let mut editor = Editor::new(&[]);
    editor.opened("a.md", &plan("docs/cause.md", "true"));
    let uri = editor.uri("a.md");
    for (arguments, why) in [
        (json!({ "uri": uri, "step": 7 }), "no step 7"),
        (json!({ "uri": "file:///nowhere.md", "step": 1 }), "not open"),
        (json!({ "uri": uri }), "takes"),
        (json!(null), "takes"),
    ] {
        let (code, message) = run(&mut editor, arguments).unwrap_err();
        assert!(code == -32602 && message.contains(why), "{code} {message}");
    }
    let command = json!({ "command": "planctl.format", "arguments": [] });
    assert_eq!(editor.try_request("workspace/executeCommand", command).unwrap_err().0, -32602);
}
