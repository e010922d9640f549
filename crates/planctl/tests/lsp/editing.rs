//! Findings and fixes while text is typed, in both encodings.

use serde_json::{Value, json};

use super::editor::Editor;
use super::{of_code, plan};

/// Counts a text in the units of an encoding.
fn units(encoding: &str, text: &str) -> usize {
    if encoding == "utf-8" { text.len() } else { text.encode_utf16().count() }
}

/// Returns the place of a byte as an editor names it.
fn position(encoding: &str, text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    json!({ "line": line, "character": units(encoding, &before[start..]) })
}

fn range(encoding: &str, text: &str, part: &str) -> Value {
    let start = text.find(part).unwrap();
    let (from, to) = (position(encoding, text, start), position(encoding, text, start + part.len()));
    json!({ "start": from, "end": to })
}

/// Applies edits of a change as an editor does, the last first.
fn applied(encoding: &str, text: &str, edits: &Value) -> String {
    let offset = |place: &Value| {
        let offsets = (0..=text.len()).filter(|offset| text.is_char_boundary(*offset));
        offsets.into_iter().find(|offset| position(encoding, text, *offset) == *place).unwrap()
    };
    let mut edits: Vec<(usize, usize, &str)> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            (offset(&range["start"]), offset(&range["end"]), edit["newText"].as_str().unwrap())
        })
        .collect();
    edits.sort();
    let mut text = text.to_owned();
    for (start, end, part) in edits.into_iter().rev() {
        text.replace_range(start..end, part);
    }
    text
}

#[test]
fn ranges_are_exact_with_wide_and_combining_characters_and_crlf() {
    for encoding in ["utf-8", "utf-16"] {
        for line_end in ["\n", "\r\n"] {
            let mut editor = Editor::new(&[encoding]);
            let text =
                plan("docs/𝒳语e\u{301}.md", "echo '👩‍👩‍👧 𝒳 语 e\u{301}' | no-such-tool").replace('\n', line_end);
            let found = editor.opened("a.md", &text);
            let tools = of_code(&found, "P102");
            assert_eq!(tools.len(), 1, "{found:?}");
            assert_eq!(tools[0]["range"], range(encoding, &text, "no-such-tool"), "{encoding} {line_end:?}");
            assert_eq!((&tools[0]["severity"], &tools[0]["source"]), (&json!(1), &json!("planctl")));
            let files = of_code(&found, "P201");
            let wanted = range(encoding, &text, "file:docs/𝒳语e\u{301}.md");
            assert_eq!(files[0]["range"], wanted, "{encoding} {line_end:?} {files:?}");
        }
    }
}

#[test]
fn a_second_place_is_related_information() {
    let mut editor = Editor::new(&[]);
    let text = plan("docs/a.md", "test -s docs/cause.md")
        .replace("- file:docs/a.md", "- file:docs/a.md\n- file:docs/a.md");
    let twice = of_code(&editor.opened("a.md", &text), "P209");
    assert_eq!(twice[0]["range"]["start"]["line"], 15);
    let first = &twice[0]["relatedInformation"][0];
    assert_eq!(
        (&first["location"]["range"]["start"]["line"], &first["message"]),
        (&json!(14), &json!("first here"))
    );
    assert_eq!(twice[0]["tags"], json!([1]), "one of them is needless");
}

#[test]
fn a_finding_can_be_allowed_where_it_is_and_waits_for_its_reason() {
    let mut editor = Editor::new(&[]);
    let text = plan("docs/a.md", "grep -q x docs/cause.md\ntest -s docs/cause.md");
    let found = editor.opened("a.md", &text);
    let lost = of_code(&found, "P110")[0].clone();
    let uri = editor.uri("a.md");
    let params = json!({
        "textDocument": { "uri": uri }, "range": lost["range"], "context": { "diagnostics": [lost] }
    });
    let actions = editor.request("textDocument/codeAction", params);
    let allow =
        actions.as_array().unwrap().iter().find(|one| one["title"] == "P110: allow it here, and say why");
    let allow = allow.unwrap_or_else(|| panic!("{actions}"));
    assert!(allow["isPreferred"].is_null(), "{allow}");
    let written = applied("utf-16", &text, &allow["edit"]["changes"][&uri]);
    editor.change("a.md", 2, json!([{ "text": written }]));
    let after = editor.findings("a.md", 2);
    assert_eq!(
        of_code(&after, "P018")[0]["message"].as_str().unwrap().lines().next(),
        Some("the plan allows `P110` and does not say why: the reason is missing here")
    );
    let reasoned = written.replace("allow P110 -->", "allow P110 the log is for people -->");
    editor.change("a.md", 3, json!([{ "text": reasoned }]));
    let after = editor.findings("a.md", 3);
    assert_eq!((of_code(&after, "P018"), of_code(&after, "P110")), (vec![], vec![]));
}

#[test]
fn fixes_leave_a_text_without_the_finding() {
    for encoding in ["utf-8", "utf-16"] {
        let mut editor = Editor::new(&[encoding]);
        editor.write("docs/𝒳.md", "x\n");
        let text = plan("docs/𝒳.md", "test -s docs/cause.md")
            .replace("status: draft", "status: done")
            .replace("### 1. Find", "### Step 1: 𝒳 Find");
        let found = editor.opened("a.md", &text);
        let codes: Vec<&str> = found.iter().filter_map(|found| found["code"].as_str()).collect();
        assert!(codes.contains(&"P005"), "{found:?}");
        let uri = editor.uri("a.md");
        let drift = of_code(&found, "P005")[0].clone();
        let params = json!({
            "textDocument": { "uri": uri }, "range": drift["range"], "context": { "diagnostics": [drift] }
        });
        let actions = editor.request("textDocument/codeAction", params.clone());
        let fix = &actions[0];
        assert_eq!((&fix["kind"], &fix["isPreferred"]), (&json!("quickfix"), &json!(true)), "{actions}");
        assert_eq!(fix["diagnostics"][0]["code"], "P005");
        let mended = applied(encoding, &text, &fix["edit"]["changes"][&uri]);
        editor.change("a.md", 2, json!([{ "text": mended }]));
        let after = editor.findings("a.md", 2);
        assert_eq!(of_code(&after, "P005"), [] as [Value; 0], "{mended}");

        let all = json!({
            "textDocument": { "uri": uri },
            "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } },
            "context": { "diagnostics": [], "only": ["source.fixAll"] },
        });
        editor.change("a.md", 3, json!([{ "text": text }]));
        let actions = editor.request("textDocument/codeAction", all.clone());
        assert_eq!(actions.as_array().unwrap().len(), 1, "{actions}");
        assert_eq!(actions[0]["kind"], "source.fixAll");
        let mended = applied(encoding, &text, &actions[0]["edit"]["changes"][&uri]);
        editor.change("a.md", 4, json!([{ "text": mended }]));
        assert_eq!(of_code(&editor.findings("a.md", 4), "P005"), [] as [Value; 0], "{mended}");
        assert_eq!(editor.request("textDocument/codeAction", all), json!([]), "nothing is left to mend");
    }
}

/// Numbers that are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

#[test]
fn after_any_edits_the_server_has_the_editors_text() {
    let parts = [
        "",
        "x",
        "\n",
        "\r\n",
        "𝒳",
        "e\u{301}",
        "语\n",
        "**target:** a\n",
        "### 7. S\n",
        "```\n",
        "nope | grep\r\n",
    ];
    for (seed, encoding) in [(11, "utf-8"), (12, "utf-16"), (13, "utf-16"), (14, "utf-8")] {
        let mut chance = Chance(seed);
        let mut editor = Editor::new(&[encoding]);
        let mut text = plan("docs/语.md", "echo '𝒳' | no-such-tool");
        let fixed = text.find("# Mend").unwrap();
        editor.open("a.md", 1, &text);
        for version in 2..=60 {
            let mut changes = Vec::new();
            for _ in 0..=chance.below(3) {
                let places: Vec<usize> =
                    (fixed..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
                let one = chance.below(places.len());
                let two = (one + chance.below(4)).min(places.len() - 1);
                let (start, end) = (places[one], places[two]);
                // Between the two halves of a line's end there is no place that an editor could name.
                let splits = |at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
                if splits(start) || splits(end) {
                    continue;
                }
                let part = parts[chance.below(parts.len())];
                let range = json!({
                    "start": position(encoding, &text, start), "end": position(encoding, &text, end)
                });
                let edited = format!("{}{part}{}", &text[..start], &text[end..]);
                // A lone `\r` would be a line's end for the server, and none for this editor.
                if edited.replace("\r\n", "").contains('\r') {
                    continue;
                }
                changes.push(json!({ "range": range, "text": part }));
                text = edited;
            }
            editor.change("a.md", version, json!(changes));
        }
        let found = editor.findings("a.md", 60);
        let fresh = editor.opened("b.md", &text);
        let without_uri = |found: &[Value], uri: &str| json!(found).to_string().replace(uri, "uri");
        let (one, other) = (editor.uri("a.md"), editor.uri("b.md"));
        assert_eq!(without_uri(&found, &one), without_uri(&fresh, &other), "seed {seed}: {text}");
        let ways = ["textDocument/documentSymbol", "textDocument/foldingRange"];
        for way in ways {
            assert_eq!(editor.about(way, "a.md"), editor.about(way, "b.md"), "seed {seed}");
        }
    }
}

#[test]
fn a_plan_of_a_mebibyte_is_answered() {
    let mut editor = Editor::new(&[]);
    let task = "Look at everything 𝒳 there is, and write down what you see.\n".repeat(14);
    let steps: String = (1..=1000)
        .map(|step| {
            format!(
                "### {step}. Step 语\n\n**target:** coder\n**task:**\n{task}\n**contract:**\n```bash\n\
                 test -s out/{step}.md\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n\n"
            )
        })
        .collect();
    let text = format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Long\n\n## Steps\n\n{steps}");
    assert!((1_000_000..1_048_576).contains(&text.len()), "{}", text.len());
    editor.open("a.md", 1, &text);
    // Each key outdates what the one before began; the last has its findings.
    for version in 2..=20 {
        let place = json!({ "line": 6, "character": 2 });
        editor.change("a.md", version, json!([{ "range": { "start": place, "end": place }, "text": "x" }]));
    }
    let found = editor.findings("a.md", 20);
    assert!(found.iter().all(|found| found["severity"] != 1), "{found:?}");
    assert_eq!(editor.about("textDocument/codeLens", "a.md").as_array().unwrap().len(), 1000);
    let symbols = editor.about("textDocument/documentSymbol", "a.md");
    assert_eq!(symbols[0]["children"].as_array().unwrap().len(), 1000);
    assert!(symbols[0]["name"].as_str().unwrap().ends_with("Long"), "{}", symbols[0]["name"]);
    // One byte more than a plan may have.
    let line = text.matches('\n').count();
    let end = json!({ "line": line, "character": 0 });
    let more = "x".repeat(1_048_577 - text.len());
    editor.change("a.md", 21, json!([{ "range": { "start": end, "end": end }, "text": more }]));
    assert_eq!(editor.findings("a.md", 21)[0]["code"], "P008");
}

#[test]
fn formatting_is_one_edit_and_a_formatted_plan_needs_none() {
    for (encoding, line_end) in [("utf-8", "\n"), ("utf-16", "\r\n")] {
        let mut editor = Editor::new(&[encoding]);
        let formatted = plan("docs/𝒳.md", "test -s docs/cause.md").replace("```bash", "```shell");
        let formatted = formatted.replace('\n', line_end);
        let text = formatted.replace("### 1. ", "## Step 1: ").replace("**task:**", "**Task**:");
        editor.opened("a.md", text.trim_end());
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        let uri = editor.uri("a.md");
        let wish = json!({ "textDocument": { "uri": uri }, "options": options });
        let edits = editor.request("textDocument/formatting", wish.clone());
        assert_eq!(edits.as_array().unwrap().len(), 1, "{edits}");
        assert_eq!(applied(encoding, text.trim_end(), &edits), formatted);
        editor.change("a.md", 2, json!([{ "text": formatted }]));
        assert_eq!(editor.request("textDocument/formatting", wish), json!([]));
    }
}
