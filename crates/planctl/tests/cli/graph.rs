//! `planctl graph …`: graphs of DOT, JSON and markdown as a person meets them.

use super::room::Room;

const SOUND: &str = r#"digraph fix {
    start  [shape=Mdiamond]
    repair [prompt="Mend it.", contract="test -f done.txt", target=coder, max_retries=2, max_visits=3]
    ask    [shape=hexagon, escalate="The tests still fail.", pace_level=contingent]
    done   [shape=Msquare]
    start -> repair -> done
    repair -> ask [on=exhaust]
}
"#;

#[test]
fn a_sound_graph_is_said_to_be_sound_with_its_size() {
    let room = Room::new();
    room.write("fix.dot", SOUND);
    let done = room.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "fix.dot: sound · 4 nodes, 3 edges · 0 errors, 0 warnings\n")
    );
}

#[test]
fn l5_what_is_wrong_is_shown_where_it_is_and_ends_with_1() {
    let room = Room::new();
    room.write("fix.dot", &SOUND.replace("-> done\n", "-> dne\n"));
    let done = room.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(done.out.contains("fix.dot:6"), "{}", done.out);
    assert!(done.out.contains("dne"), "{}", done.out);
    let json = room.planctl(&["graph", "check", "fix.dot", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, &report["verified"]), (1, &serde_json::Value::Bool(false)));
    assert!(report["diagnostics"][0]["spans"][0]["line"].is_u64(), "{report}");
}

#[test]
fn one_graph_is_written_in_every_language() {
    let room = Room::new();
    room.write("fix.dot", SOUND);
    let rendered = |format: &str| {
        let done = room.planctl(&["graph", "render", "fix.dot", "--format", format]);
        assert_eq!(done.code, 0, "{format}: {}", done.err);
        done.out
    };
    assert!(rendered("ascii").contains("repair"));
    assert!(rendered("mermaid").starts_with("flowchart"), "{}", rendered("mermaid"));
    assert!(rendered("markdown").contains("test -f done.txt"));
    let json: serde_json::Value = serde_json::from_str(&rendered("json")).unwrap();
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(4), "{json}");
    // What was written can be read again and is the same graph.
    room.write("again.dot", &rendered("dot"));
    let again = room.planctl(&["graph", "render", "again.dot", "--format", "json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again.out).unwrap(), json);
}

#[test]
fn a_plan_in_markdown_is_drawn_too() {
    let room = Room::new();
    room.write(
        "plan.md",
        "---\ntype: plan\nstatus: draft\nowner: me\n---\n\n# Two\n\n## Steps\n\n### 1. First\n\n**target:** coder\n**task:** do\n\
         **contract:**\n\n```shell\ntest -f a\n```\n\nexit_code == 0\n\n### 2. Second\n\n**target:** coder\n**task:** do\n\
         **contract:**\n\n```shell\ntest -f b\n```\n\nexit_code == 0\n",
    );
    let done = room.planctl(&["graph", "render", "plan.md", "--format", "dot"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("->"), "{}", done.out);
}

#[test]
fn of_a_library_one_graph_is_named() {
    let room = Room::new();
    room.write(
        "two.json",
        r#"{"plans": {"first": {"name": "First", "steps": [{"name": "a", "action": "do a"}]},
                      "second": {"name": "Second", "steps": [{"name": "b", "action": "do b"}]}}}"#,
    );
    let unnamed = room.planctl(&["graph", "render", "two.json"]);
    assert_eq!(unnamed.code, 2);
    assert!(unnamed.err.contains("--entry: first, second"), "{}", unnamed.err);
    let near = room.planctl(&["graph", "render", "two.json", "--entry", "secnd"]);
    assert_eq!(near.code, 4, "{}", near.err);
    assert!(near.err.contains("did you mean `second`?"), "{}", near.err);
    let drawn = room.planctl(&["graph", "render", "two.json", "--entry", "second"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
}

#[test]
fn a_file_that_is_no_graph_is_named_as_what_it_is() {
    let room = Room::new();
    room.write("fix.dot", "not a graph");
    let done = room.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(done.code, 1, "{}", done.out);
    let gone = room.planctl(&["graph", "check", "gone.dot"]);
    assert_eq!(gone.code, 4, "{}", gone.err);
}
