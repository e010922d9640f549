//! The editor's answers about a plan's places.

use serde_json::{Value, json};

use super::editor::Editor;
use super::plan;

/// Returns the text of a hover.
fn hover(editor: &mut Editor, name: &str, position: (u32, u32)) -> String {
    let hover = editor.at("textDocument/hover", name, position);
    hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn hovers_explain_findings_fields_steps_and_subscriptions() {
    let mut editor = Editor::new(&[]);
    editor.write("docs/notes.md", "notes\n");
    editor.opened("a.md", &plan("docs/notes.md", "no-such-tool docs/cause.md"));
    let said = hover(&mut editor, "a.md", (21, 3));
    assert!(said.contains("**P102** a command is not on the PATH"), "{said}");
    let said = hover(&mut editor, "a.md", (23, 3));
    assert!(said.contains("The exit code of the contract that passes"), "{said}");
    let said = hover(&mut editor, "a.md", (24, 4));
    assert!(said.contains("**on_fail** (default: retry(2), then escalate)"), "{said}");
    let said = hover(&mut editor, "a.md", (2, 2));
    assert!(said.contains("Where the plan stands"), "{said}");
    let said = hover(&mut editor, "a.md", (10, 8));
    assert!(
        said.contains("- timeout: `10 min` _(default)_") && said.contains("- target: `coder`\n"),
        "{said}"
    );
    let said = hover(&mut editor, "a.md", (14, 8));
    assert!(
        said.contains("`docs/notes.md` in `") && said.contains("6 bytes, goes into the prompt"),
        "{said}"
    );
    assert_eq!(editor.at("textDocument/hover", "a.md", (8, 0)), Value::Null);
    editor.opened("b.md", &plan("docs/*.md", "test -s docs/cause.md"));
    let said = hover(&mut editor, "b.md", (14, 8));
    assert!(said.contains("matches one file:\n- `docs/notes.md`"), "{said}");
}

#[test]
fn d12_of_findings_that_overlap_a_hover_shows_the_nearest_first_and_marks_its_place() {
    let mut editor = Editor::new(&[]);
    editor.write("notes.md", "notes\n");
    editor.opened("a.md", &plan("notes.md", "echo $(no-such-tool)"));
    let shown = editor.at("textDocument/hover", "a.md", (21, 9));
    let said = shown["contents"]["value"].as_str().unwrap();
    let at = |code: &str| said.find(code).unwrap_or_else(|| panic!("{code} is not in {said}"));
    assert!(at("**P102**") < at("**P104**"), "{said}");
    let place = json!({ "start": { "line": 21, "character": 7 }, "end": { "line": 21, "character": 19 } });
    assert_eq!(shown["range"], place);
}

#[test]
fn definitions_and_links_lead_to_the_files_that_are_there() {
    let mut editor = Editor::new(&[]);
    editor.write("docs/wörter 1.md", "notes\n");
    editor.write("docs/cause.md", "Cause\n");
    editor.opened("a.md", &plan("docs/wörter 1.md", "grep -q Cause ./docs/cause.md; cat ../home"));
    let target = editor.uri("docs/w%C3%B6rter%201.md");
    assert_eq!(editor.at("textDocument/definition", "a.md", (14, 8))[0]["uri"], target);
    let links = editor.about("textDocument/documentLink", "a.md");
    assert_eq!(links.as_array().unwrap().len(), 1, "{links}");
    assert_eq!(links[0]["target"], target);
    let cause = editor.uri("docs/cause.md");
    // In the task, in the contract, and nowhere.
    assert_eq!(editor.at("textDocument/definition", "a.md", (17, 12))[0]["uri"], cause);
    assert_eq!(editor.at("textDocument/definition", "a.md", (21, 20))[0]["uri"], cause);
    assert_eq!(editor.at("textDocument/definition", "a.md", (21, 38)), json!([]));
    assert_eq!(editor.at("textDocument/definition", "a.md", (8, 1)), json!([]));
    editor.opened("b.md", &plan("docs/*.md", "test -s docs/cause.md"));
    let all = editor.at("textDocument/definition", "b.md", (14, 8));
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn symbols_and_folds_show_the_steps() {
    let mut editor = Editor::new(&[]);
    let text = plan("docs/cause.md", "test -s docs/cause.md")
        + "\n### 2. Mend\n\n**target:** coder\n**task:**\nMend.\n\n\n";
    editor.opened("a.md", &text);
    let symbols = editor.about("textDocument/documentSymbol", "a.md");
    assert_eq!(symbols[0]["name"], "Mend it");
    let steps = &symbols[0]["children"];
    assert_eq!((&steps[0]["name"], &steps[0]["detail"]), (&json!("1. Find the cause"), &json!("coder")));
    assert_eq!(
        (&steps[0]["range"]["start"]["line"], &steps[0]["range"]["end"]["line"]),
        (&json!(10), &json!(24))
    );
    assert_eq!((&steps[1]["name"], &steps[1]["range"]["end"]["line"]), (&json!("2. Mend"), &json!(30)));
    let folds = editor.about("textDocument/foldingRange", "a.md");
    let lines: Vec<(u64, u64)> = folds
        .as_array()
        .unwrap()
        .iter()
        .map(|fold| (fold["startLine"].as_u64().unwrap(), fold["endLine"].as_u64().unwrap()))
        .collect();
    assert_eq!(lines, [(0, 4), (10, 24), (20, 21), (26, 30)]);
}

#[test]
fn completion_offers_fields_values_roles_and_files() {
    let mut editor = Editor::new(&[]);
    editor.write("docs/notes.md", "notes\n");
    let text = plan("docs/n", "test -s docs/cause.md")
        + "**\n\n### 2. Mend\n\n**target:** \n**on_fail:** \n**plan:** pl\n";
    editor.write("plans/release.md", "# Release\n");
    editor.write("plans/release.txt", "no plan\n");
    editor.opened("a.md", &text);
    let labels = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    let fields = editor.at("textDocument/completion", "a.md", (25, 2));
    assert!(labels(&fields).contains(&"timeout".to_owned()), "{fields}");
    assert!(!labels(&fields).contains(&"target".to_owned()), "it is given already: {fields}");
    let edit = fields["items"].as_array().unwrap().iter().find(|item| item["label"] == "guard").unwrap();
    assert_eq!(edit["textEdit"]["newText"], "**guard:** ");
    assert_eq!(edit["textEdit"]["range"]["start"], json!({ "line": 25, "character": 0 }));
    let files = editor.at("textDocument/completion", "a.md", (14, 13));
    assert_eq!(labels(&files), ["docs/notes.md"]);
    assert_eq!(files["items"][0]["textEdit"]["range"]["start"]["character"], 7);
    let roles = editor.at("textDocument/completion", "a.md", (29, 12));
    assert_eq!(labels(&roles), ["coder"]);
    let verbs = editor.at("textDocument/completion", "a.md", (30, 13));
    assert!(labels(&verbs).contains(&"abort".to_owned()), "{verbs}");
    let plans = editor.at("textDocument/completion", "a.md", (31, 12));
    assert_eq!(labels(&plans), ["plans/release.md"], "a sub-plan carries out a plan: {plans}");
    let statuses = editor.at("textDocument/completion", "a.md", (2, 8));
    assert_eq!(labels(&statuses), ["draft"], "planctl sets the others: {statuses}");
}

#[test]
fn d12_in_a_fence_nothing_is_offered_and_every_field_that_is_read_has_its_words() {
    let mut editor = Editor::new(&[]);
    let text = plan("docs/cause.md", "gr")
        + "\n### 2. Mend\n\n**target:**\n**type:** \n**workspace:** \n**needs:** 1\n\n**contract:**\n```shell\ngr\n";
    editor.opened("a.md", &text);
    let labels = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    for place in [(21, 2), (35, 2), (26, 6)] {
        assert_eq!(labels(&editor.at("textDocument/completion", "a.md", place)), [""; 0], "{place:?}");
    }
    let target = editor.at("textDocument/completion", "a.md", (28, 11));
    assert_eq!(target["items"][0]["textEdit"]["newText"], " coder");
    let types = editor.at("textDocument/completion", "a.md", (29, 10));
    assert!(labels(&types).contains(&"human".to_owned()), "{types}");
    assert_eq!(labels(&editor.at("textDocument/completion", "a.md", (30, 15))), ["shared", "worktree"]);
    let needs = editor.at("textDocument/hover", "a.md", (31, 3));
    assert!(needs["contents"]["value"].as_str().unwrap().contains("that must pass first"), "{needs}");
}
