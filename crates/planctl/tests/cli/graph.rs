//! `planctl graph …`: graphs of DOT, JSON and markdown as a person meets them.

use serde_json::json;

use super::fixture::{Fixture, plan};

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
    let fixture = Fixture::new();
    fixture.write("fix.dot", SOUND);
    let done = fixture.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (
            0,
            "fix.dot: sound graph · 4 nodes, 3 edges · 0 errors, 0 warnings\n  \
             planctl verify fix.dot has 1 warning about other things\n"
        )
    );
}

#[test]
fn l5_what_is_wrong_is_shown_where_it_is_and_ends_with_1() {
    let fixture = Fixture::new();
    fixture.write("fix.dot", &SOUND.replace("-> done\n", "-> dne\n"));
    let done = fixture.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(done.out.contains("fix.dot:6"), "{}", done.out);
    assert!(done.out.contains("dne"), "{}", done.out);
    let json = fixture.planctl(&["graph", "check", "fix.dot", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, &report["verified"]), (1, &serde_json::Value::Bool(false)));
    assert!(report["diagnostics"][0]["spans"][0]["line"].is_u64(), "{report}");
}

#[test]
fn one_graph_is_written_in_every_language() {
    let fixture = Fixture::new();
    fixture.write("fix.dot", SOUND);
    let rendered = |format: &str| {
        let done = fixture.planctl(&["graph", "render", "fix.dot", "--format", format]);
        assert_eq!(done.code, 0, "{format}: {}", done.err);
        done.out
    };
    assert!(rendered("ascii").contains("repair"));
    assert!(rendered("mermaid").starts_with("flowchart"), "{}", rendered("mermaid"));
    assert!(rendered("markdown").contains("test -f done.txt"));
    let json: serde_json::Value = serde_json::from_str(&rendered("json")).unwrap();
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(4), "{json}");
    // A written graph can be read again and is the same.
    fixture.write("again.dot", &rendered("dot"));
    let again = fixture.planctl(&["graph", "render", "again.dot", "--format", "json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again.out).unwrap(), json);
}

#[test]
fn a_plan_that_another_language_would_judge_otherwise_is_not_written() {
    let fixture = Fixture::new();
    let plan = SOUND.replace(
        "repair [",
        "part [shape=house, \"stack.child_dotfile\"=\"c.md\", \"manager.stop_condition\"=\"context.x=1\"]\n    repair [human.free_text=true, ",
    );
    fixture.write("fix.dot", &plan.replace("start -> repair", "start -> part -> repair"));
    let refused = fixture.planctl(&["graph", "render", "fix.dot", "--format", "markdown", "-o", "fix.md"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{}", refused.err);
    let said = "the plan would be judged in another way: `manager.stop_condition` of `part` can't be written";
    assert!(refused.err.contains(said), "{}", refused.err);
    assert!(refused.err.contains("not written: `human.free_text` of `repair`"), "{}", refused.err);
    assert!(!fixture.path("fix.md").exists());
    assert_eq!(fixture.planctl(&["graph", "render", "fix.dot", "--format", "json"]).code, 0);
}

#[test]
fn a_plan_that_makes_no_graph_is_written_and_not_compared_which_is_said() {
    let fixture = Fixture::new();
    fixture.write("fix.dot", &SOUND.replace("start -> repair", "start -> nowhere"));
    let written = fixture.planctl(&["graph", "render", "fix.dot", "--format", "json"]);
    assert_eq!(written.code, 0, "{written:?}");
    let said = "warning: the plan has errors, so nothing could compare the two texts\nhelp: planctl verify fix.dot\n";
    assert!(written.err.starts_with(said), "{written:?}");
}

#[test]
fn a_text_that_is_no_plan_is_not_drawn_and_the_error_says_what_a_plan_begins_with() {
    let fixture = Fixture::new();
    fixture.write("notes.md", "# Notes\n\nBuy milk.\n");
    for format in ["ascii", "svg", "dot", "json", "markdown"] {
        let done = fixture.planctl(&["graph", "render", "notes.md", "--format", format]);
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{format}: {}", done.err);
        assert!(
            done.err.contains("notes.md has no graph that can be read: the file has no step"),
            "{}",
            done.err
        );
        assert!(done.err.contains("help: planctl graph check notes.md"), "{}", done.err);
    }
    let done = fixture.planctl(&["graph", "check", "notes.md"]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.out.contains("a plan begins with frontmatter, a title and `## Steps`"), "{}", done.out);
    assert!(done.out.contains("notes.md: no sound graph · no graph · 1 error"), "{}", done.out);
}

#[test]
fn a_plan_in_markdown_is_drawn_too() {
    let fixture = Fixture::new();
    fixture.write(
        "plan.md",
        "---\ntype: plan\nstatus: draft\nowner: me\n---\n\n# Two\n\n## Steps\n\n### 1. First\n\n**target:** coder\n**task:** do\n\
         **contract:**\n\n```shell\ntest -f a\n```\n\nexit_code == 0\n\n### 2. Second\n\n**target:** coder\n**task:** do\n\
         **contract:**\n\n```shell\ntest -f b\n```\n\nexit_code == 0\n",
    );
    let done = fixture.planctl(&["graph", "render", "plan.md", "--format", "dot"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("->"), "{}", done.out);
}

#[test]
fn of_a_library_one_graph_is_named() {
    let fixture = Fixture::new();
    fixture.write(
        "two.json",
        r#"{"plans": {"first": {"name": "First", "steps": [{"name": "a", "action": "do a"}]},
                      "second": {"name": "Second", "steps": [{"name": "b", "action": "do b"}]}}}"#,
    );
    let unnamed = fixture.planctl(&["graph", "render", "two.json"]);
    assert_eq!(unnamed.code, 2);
    assert!(unnamed.err.contains("--entry: first, second"), "{}", unnamed.err);
    let near = fixture.planctl(&["graph", "render", "two.json", "--entry", "secnd"]);
    assert_eq!(near.code, 4, "{}", near.err);
    assert!(near.err.contains("did you mean `second`?"), "{}", near.err);
    let drawn = fixture.planctl(&["graph", "render", "two.json", "--entry", "second"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
}

#[test]
fn a_file_that_is_no_graph_is_named_as_what_it_is() {
    let fixture = Fixture::new();
    fixture.write("fix.dot", "not a graph");
    let done = fixture.planctl(&["graph", "check", "fix.dot"]);
    assert_eq!(done.code, 1, "{}", done.out);
    let gone = fixture.planctl(&["graph", "check", "gone.dot"]);
    assert_eq!(gone.code, 4, "{}", gone.err);
}

#[test]
fn a_graph_is_a_picture_in_a_file_of_its_own_and_never_over_its_source() {
    let fixture = Fixture::new();
    fixture.write("fix.dot", SOUND);
    let done = fixture.planctl(&["graph", "render", "fix.dot", "--format", "svg", "-o", "fix.svg"]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.err);
    let picture = fixture.read("fix.svg");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    for words in ["<title>", "exhaust", ">repair<", "coder", "prefers-color-scheme"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    assert_eq!(fixture.planctl(&["graph", "render", "fix.dot", "--format", "svg"]).out, picture);
    for (file, format) in [("a.svg", "svg"), ("a.json", "json"), ("a.mmd", "mermaid"), ("a.txt", "ascii")] {
        assert_eq!(fixture.planctl(&["graph", "render", "fix.dot", "-o", file]).code, 0, "{file}");
        let said = fixture.planctl(&["graph", "render", "fix.dot", "--format", format]);
        assert_eq!(fixture.read(file), said.out, "the ending of {file} says its form");
    }
    assert_eq!(fixture.planctl(&["graph", "render", "fix.dot", "--format", "ascii", "-o", "b.svg"]).code, 0);
    assert_eq!(fixture.read("b.svg"), fixture.read("a.txt"), "--format says it before the ending does");
    let over = fixture.planctl(&["graph", "render", "fix.dot", "--format", "dot", "-o", "fix.dot"]);
    assert_eq!(over.code, 2, "{}", over.err);
    assert_eq!(fixture.read("fix.dot"), SOUND);
}

#[test]
fn a_run_is_drawn_with_where_its_nodes_stand_and_told_to_agents_in_three_forms() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Two files",
            "5 minutes",
            &[("One", "test -e done-1", "escalate"), ("Two", "test -e done-2", "retry(1), then escalate")],
        ),
    );
    let worker = "[ $PLANCTL_STEP = 2 ] || touch done-$PLANCTL_STEP";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let drawn = fixture.planctl(&["graph", "render", "p-1"]);
    assert_eq!(drawn.code, 0, "{drawn:?}");
    assert!(drawn.out.contains("1: One  [passed]"), "{}", drawn.out);
    assert!(drawn.out.contains("2: Two  << [waiting for you, attempt 2]"), "{}", drawn.out);
    let picture = fixture.planctl(&["graph", "render", "@last", "--format", "svg"]).out;
    for words in
        ["Two files · p-1 · waiting for you", "✓ passed", "‖ waiting for you, attempt 2", "node task waiting"]
    {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    let json = fixture.json(&["graph", "render", "p-1", "--format", "json"]);
    assert_eq!(json["nodes"][1]["contract"], "test -e done-1", "{json}");
    let gone = fixture.planctl(&["graph", "render", "gone"]);
    assert_eq!(gone.code, 4, "{gone:?}");

    let status = fixture.status();
    assert_eq!(
        (&status["steps"][1]["visits"], &status["steps"][1]["visits_allowed"]),
        (&1.into(), &10.into())
    );
    assert_eq!(status["passages"][0]["node"], "start", "{status}");
    assert_eq!(status["joins"], serde_json::json!([]));
    let why = fixture.json(&["why", "p-1", "2", "--json"]);
    assert_eq!(
        (&why["choices"][0]["signal"], &why["choices"][0]["to"]),
        (&"exhausted".into(), &"ask".into())
    );
    let why = fixture.json(&["why", "p-1", "1", "--json"]);
    assert_eq!(
        (&why["choices"][0]["to"], &why["choices"][0]["looked"][0]["came"]),
        (&"2".into(), &"taken".into())
    );
    assert_eq!(fixture.json(&["why", "p-1", "start", "--json"])["step"]["number"], 0);
    assert_eq!(fixture.planctl(&["why", "p-1", "9"]).code, 4);

    let long = fixture.planctl(&["plan", "context", "p-1"]).out;
    assert!(long.starts_with("[ACTIVE PLAN: Two files]\nStep 1 of 2: One [COMPLETED]\n"), "{long}");
    let compact = fixture.planctl(&["plan", "context", "p-1", "--format", "compact"]).out;
    assert!(compact.contains("  Step 2/2: Two << CURRENT (a person is asked)\n"), "{compact}");
    let workflow = fixture.planctl(&["plan", "context", "p-1", "--format", "workflow"]).out;
    assert!(
        workflow.contains("1. One [DONE] → 2. Two << CURRENT (attempt 2/2, a person is asked)"),
        "{workflow}"
    );
    let json = fixture.json(&["plan", "context", "p-1", "--json"]);
    assert_eq!((json["form"].as_str(), json["text"].as_str()), (Some("long"), Some(long.as_str())));
    assert_eq!(fixture.planctl(&["plan", "cancel", "p-1"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "context", "p-1"]).out, "");
}

/// A plan in markdown whose steps have these fields before their task, and this `## Flow`.
fn branching(steps: &[(&str, &str)], flow: &str) -> String {
    let mut text =
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Branches\n\n**parallel:** 2\n\n## Steps\n"
            .to_owned();
    for (number, (title, fields)) in (1..).zip(steps) {
        text.push_str(&format!("\n### {number}. {title}\n\n{fields}\n**task:**\n{title}, please.\n\n"));
        if !fields.contains("**type:**") {
            text.push_str(&format!("**contract:**\n```bash\ntest -e done-{number}\n```\nexit_code == 0\n"));
        }
    }
    if flow.is_empty() { text } else { format!("{text}\n## Flow\n\n{flow}\n") }
}

#[test]
fn branches_of_a_run_are_told_in_its_status_its_line_and_its_picture() {
    let fixture = Fixture::new();
    let steps = [
        ("Begin", "**target:** coder"),
        ("Left", "**target:** coder\n**needs:** 1"),
        ("Right", "**target:** coder\n**needs:** 1"),
        ("Meet", "**target:** coder\n**needs:** 2, 3"),
    ];
    fixture.write("p.md", &branching(&steps, ""));
    let worker = "[ $PLANCTL_STEP = 3 ] || touch done-$PLANCTL_STEP";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let status = fixture.status();
    let join = &status["joins"][0];
    assert_eq!(
        (&join["join"], &join["fork"], &join["policy"]),
        (&"join-4".into(), &"fork-1".into(), &"all".into()),
        "{status}"
    );
    let states: Vec<&str> =
        join["branches"].as_array().unwrap().iter().map(|branch| branch["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["joined", "waiting"]);
    assert_eq!(join["branches"][1]["at"], serde_json::json!(["3"]));
    let page = fixture.planctl(&["plan", "status", "p-1"]).out;
    assert!(page.contains("1 joined, 1 waiting for you (3)"), "{page}");
    let drawn = fixture.planctl(&["graph", "render", "p-1"]).out;
    assert!(drawn.contains("3: Right  << [waiting for you"), "{drawn}");
    let why = fixture.planctl(&["why", "p-1", "join-4"]).out;
    assert!(why.contains("join"), "{why}");
    fixture.write("done-3", "");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let done = fixture.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(fixture.status()["joins"], serde_json::json!([]));
    let why = fixture.planctl(&["why", "p-1", "join-4"]).out;
    assert!(why.contains("2 branches succeeded, and 0 failed"), "{why}");
}

#[test]
fn e15_why_tells_every_way_that_was_looked_at_and_why_one_was_taken() {
    let fixture = Fixture::new();
    let steps = [
        ("Begin", "**target:** coder"),
        ("Which way?", "**type:** decision"),
        ("Long way", "**target:** coder"),
        ("End", "**target:** coder"),
    ];
    fixture.write("p.md", &branching(&steps, "- 2 -> 4 if steps.1.attempts=1\n- 2 -> 3"));
    let said = fixture.run("touch done-$PLANCTL_STEP");
    assert_eq!(said.code, 0, "{said:?}");
    let why = fixture.planctl(&["why", "p-1", "2"]).out;
    for words in [
        "→ 4 on ",
        "if steps.1.attempts=1 · taken: its condition held",
        "· 3 on ",
        "not taken: another came first",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let json = fixture.json(&["why", "p-1", "2", "--json"]);
    let looked = &json["choices"][0]["looked"][0];
    assert_eq!((&looked["came"], &looked["clauses"][0]["found"]), (&"taken".into(), &"1".into()), "{json}");
    assert_eq!(fixture.status()["steps"][2]["state"], "pending");
    // A step that the run went past says which decision led past it.
    let past = fixture.planctl(&["why", "p-1", "3"]).out;
    for words in
        ["step 3 Long way: gone past", "Which way?", "if steps.1.attempts=1 · taken: its condition held"]
    {
        assert!(past.contains(words), "{words}: {past}");
    }
    assert!(!past.contains("first reached"), "{past}");
}

#[test]
fn a_loop_is_told_visit_for_visit() {
    let fixture = Fixture::new();
    let steps = [("Fix", "**target:** coder"), ("Check", "**target:** coder")];
    fixture.write("p.md", &branching(&steps, "- 2 -> 1 on fail"));
    // The second step's contract holds once the first was worked on twice.
    let worker = "if [ $PLANCTL_STEP = 1 ]; then [ -e done-1 ] && touch twice; touch done-1; else [ ! -e twice ] || touch done-2; fi";
    let said = fixture.run(worker);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (&status["steps"][0]["visits"], &status["steps"][1]["visits"]),
        (&2.into(), &2.into()),
        "{status}"
    );
    let page = fixture.planctl(&["plan", "status", "p-1"]).out;
    assert!(page.contains("visit 2 of 10"), "{page}");
    let why = fixture.planctl(&["why", "p-1", "1"]).out;
    assert!(why.contains("passed, visit 2 of 10"), "{why}");
}

/// A pipeline with a branch of its own for each file, and a call that counts them.
const BRANCHES: &str = r#"digraph both {
    goal="Two files"
    start [shape=Mdiamond]
    apart [shape=component]
    one [prompt="Write one.txt. $goal.", contract="test -s one.txt"]
    two [prompt="Write two.txt. $goal.", contract="test -s two.txt", max_retries=1]
    meet [shape=tripleoctagon]
    count [shape=parallelogram, tool_command="test \"$(cat one.txt two.txt | wc -l)\" = 2"]
    done [shape=Msquare]
    start -> apart
    apart -> one -> meet
    apart -> two -> meet
    meet -> count -> done
}
"#;

const WRITER: &str = r#"case "$(cat)" in *one.txt*) echo 1 > one.txt ;; *) echo 2 > two.txt ;; esac"#;

#[test]
fn a_pipeline_in_dot_is_verified_shown_and_run() {
    let fixture = Fixture::new();
    fixture.write("both.dot", BRANCHES);
    let verified = fixture.planctl(&["plan", "verify", "both.dot"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    assert!(verified.out.contains("3 steps that branch or wait"), "{}", verified.out);
    let shown = fixture.planctl(&["plan", "show", "both.dot"]);
    assert!(shown.out.contains("a command, without an agent"), "{}", shown.out);
    assert!(shown.out.contains("one → meet"), "{}", shown.out);
    let ran = fixture.planctl(&["plan", "run", "both.dot", "--approve", "--no-wait", "--exec", WRITER]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains(" · 3 steps, "), "{}", ran.out);
    assert_eq!(fixture.read("both.dot"), BRANCHES, "no marks are drawn into a graph");
    let again = fixture.planctl(&["plan", "run", "both.dot", "--no-wait", "--exec", WRITER]);
    assert!(
        again.err.contains("is done already") || again.out.contains("is done already"),
        "{}{}",
        again.out,
        again.err
    );
}

#[test]
fn contracts_files_and_roles_of_a_graph_are_judged_where_they_stand() {
    let fixture = Fixture::new();
    let wrong = BRANCHES
        .replace("test -s one.txt", "test -s one.txt || true")
        .replace("test -s two.txt", "tets -s two.txt");
    fixture.write("both.dot", &wrong);
    let found = fixture.planctl(&["plan", "verify", "both.dot"]);
    assert_eq!(found.code, 1, "{}", found.out);
    assert!(found.out.contains("warning[P104]"), "{}", found.out);
    assert!(found.out.contains("both.dot:5:") && found.out.contains("both.dot:6:"), "{}", found.out);
    assert!(found.out.contains("did you mean `test`?"), "{}", found.out);
}

#[test]
fn an_entry_in_json_runs_and_a_library_of_several_says_which_to_take() {
    let fixture = Fixture::new();
    let entry = r#"{"name": "Two", "graph": {"start": "one", "nodes": {
        "one": {"type": "task", "action": "Write one.txt", "contract": "test -s one.txt"},
        "two": {"type": "task", "action": "Write two.txt", "verify": {"type": "file_exists", "value": "two.txt"}},
        "done": {"type": "exit"}},
      "edges": [{"from": "one", "to": "two", "condition": "on_success"}, {"from": "two", "to": "done", "condition": "on_success"}]}}"#;
    fixture.write("two.json", entry);
    let ran = fixture.planctl(&["plan", "run", "two.json", "--approve", "--no-wait", "--exec", WRITER]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    fixture.write("library.json", &format!(r#"{{"plans": {{"a": {entry}, "b": {entry}}}}}"#));
    let several = fixture.planctl(&["plan", "verify", "library.json"]);
    assert_eq!(several.code, 1, "{}", several.out);
    assert!(several.out.contains("the file has 2 graphs, and a plan is one"), "{}", several.out);
    assert!(several.out.contains("--entry NAME"), "{}", several.out);
}

#[test]
fn g_51_a_question_of_the_plan_says_what_to_type_for_each_answer() {
    let fixture = Fixture::new();
    fixture.write(
        "ask.dot",
        "digraph q {\n start [shape=Mdiamond]\n ship [shape=hexagon, label=\"Ship it?\"]\n done [shape=Msquare]\n \
         stop [shape=Msquare, result=failed]\n start -> ship\n ship -> done [label=\"Yes\"]\n ship -> stop [label=\"Not yet\"]\n}\n",
    );
    let asked = fixture.planctl(&["plan", "run", "ask.dot", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(asked.code, 3, "{}{}", asked.out, asked.err);
    assert!(asked.err.contains("ask=choice reason=planned") && !asked.err.contains("work=out"), "{asked:?}");
    let ask = fixture.ask();
    let shown = fixture.planctl(&["approvals", "show", &ask]).out;
    for words in
        [format!("planctl approvals choose {ask} Yes"), format!("planctl approvals choose {ask} 'Not yet'")]
    {
        assert!(shown.contains(&words), "{words}\n{shown}");
    }
    assert_eq!(fixture.planctl(&["approvals", "choose", &ask, "Not yet"]).code, 0);
    let status = fixture.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["state"], "failed", "{status:#}");
}

#[test]
fn the_labels_of_a_plan_in_markdown_are_what_a_person_is_asked_and_answers() {
    const STEPS: &str = "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Names\n\n## Steps\n\n### 1. Keep the old names?\n\n\
        **type:** human\n**task:**\nShall they stay?\n\n### 2. Add aliases\n\n**type:** call\n**contract:**\n```bash\n\
        touch aliases\n```\nexit_code == 0\n\n### 3. Drop them\n\n**type:** call\n**contract:**\n```bash\ntouch dropped\n```\n\
        exit_code == 0\n\n## Flow\n\n- 1 -> 2 \"Keep the old names\"\n- 1 -> 3\n- 1 -> failed \"Keep nothing\"\n- 2 -> done\n";
    for (answer, file) in
        [("keep the", "aliases"), ("1", "aliases"), ("3", "dropped"), ("Keep the OLD names", "aliases")]
    {
        let fixture = Fixture::new();
        fixture.write("p.md", STEPS);
        let asked = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
        assert_eq!(asked.code, 3, "{}{}", asked.out, asked.err);
        let ask = fixture.ask();
        let page = fixture.json(&["approvals", "show", &ask, "--json"]);
        assert_eq!(page["options"], json!(["Keep the old names", "3", "Keep nothing"]), "{page:#}");
        assert_eq!(
            page["leads_to"],
            json!([
                {"name": "Keep the old names", "node": "2", "number": 2, "title": "Add aliases"},
                {"name": "3", "node": "3", "number": 3, "title": "Drop them"},
                {"name": "Keep nothing", "node": "failed", "number": null, "title": "the run ends as failed"},
            ])
        );
        let unclear = fixture.planctl(&["approvals", "choose", &ask, "keep"]);
        assert_eq!(unclear.code, 5, "{unclear:?}");
        assert!(
            unclear.err.contains("\"keep\" may mean \"Keep the old names\" or \"Keep nothing\""),
            "{unclear:?}"
        );
        let said = fixture.planctl(&["approvals", "choose", &ask, answer]);
        assert_eq!(said.code, 0, "{answer}: {said:?}");
        assert_eq!(fixture.planctl(&["plan", "resume", "@last"]).code, 0);
        assert!(fixture.path(file).exists(), "{answer}");
    }
}

#[test]
fn verification_names_no_roles_where_nobody_works_and_counts_one_step_as_one() {
    let fixture = Fixture::new();
    let said = |statements: &str| {
        fixture.write(
            "g.dot",
            &format!("digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {statements} }}\n"),
        );
        let said = fixture.planctl(&["plan", "verify", "g.dot"]);
        assert_eq!(said.code, 0, "{said:?}");
        let line = said.out.lines().find(|line| line.starts_with("verified")).unwrap();
        line.rsplit_once(" · ").unwrap().0.to_owned()
    };
    let calls = "one [shape=parallelogram, tool_command=\"true\"] start -> one -> done";
    let how = "(planctl graph render shows how)";
    assert_eq!(said(calls), format!("verified · 1 step that branches or waits {how} · no budget"));
    let two = "two [prompt=\"Do it.\", contract=\"test -s two\", target=coder] start -> one -> two -> done";
    let both = calls.replace("start -> one -> done", two);
    assert_eq!(said(&both), format!("verified · 2 steps that branch or wait {how} · role coder · no budget"));
}

#[test]
fn graph_check_says_what_it_did_not_look_at_where_plan_verify_says_more() {
    let fixture = Fixture::new();
    let steps = |name: &str| {
        format!(
            r#"{{"name": "{name}", "steps": [{{"name": "a", "action": "do a", "contract": "test -e a"}}]}}"#
        )
    };
    fixture.write(
        "two.json",
        &format!(r#"{{"plans": {{"first": {}, "second": {}}}}}"#, steps("First"), steps("Second")),
    );
    assert_eq!(fixture.planctl(&["plan", "verify", "two.json"]).code, 1, "a run has one graph");
    let said = fixture.planctl(&["graph", "check", "two.json"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("two.json: 2 sound graphs ·")
            && said.out.contains("planctl verify takes one graph"),
        "{said:?}"
    );
    let report: serde_json::Value =
        serde_json::from_str(&fixture.planctl(&["graph", "check", "two.json", "--json"]).out).unwrap();
    assert_eq!(report["verified"], false, "{report}");

    // Nobody serves the role, which is nothing about the graph.
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    let verified = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(verified.out.contains("1 warning"), "{verified:?}");
    let said = fixture.planctl(&["graph", "check", "p.md"]);
    assert!(said.out.contains("p.md: sound graph ·"), "{said:?}");
    assert!(said.out.contains("planctl verify p.md has 1 warning about other things"), "{said:?}");
}

#[test]
fn a_graph_is_sound_where_only_a_contract_is_wrong() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", "grpe -q a p.md", "escalate")]));
    let said = fixture.planctl(&["graph", "check", "p.md"]);
    assert_eq!(said.code, 1, "it would not run: {said:?}");
    assert!(
        said.out.contains("error[P102]")
            && said
                .out
                .contains("p.md: sound graph · 3 nodes, 2 edges · 1 error about other things, 0 warnings"),
        "{said:?}"
    );
}
