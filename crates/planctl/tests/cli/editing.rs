//! `approvals edit`: a plan changed in flight, in an editor that is a script.

use crate::console::Console;
use crate::fixture::{Fixture, Going, Said, plan};

/// Both steps' workers do nothing of use for step 2, whose contract is wrong.
const WORKER: &str = "touch done-$PLANCTL_STEP";

/// Its first step's worker proposes another, after its own.
const PROPOSING: &str = r####"touch done-$PLANCTL_STEP; [ $PLANCTL_STEP = 1 ] || exit 0; [ -e said ] && exit 0; touch said
cat > "$PLANCTL_RESULT_FILE" <<'END'
{"planctl": "result/1", "text": "One is there; between the two a third is needed.",
 "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0"}
END"####;

fn proposed() -> Fixture {
    let fixture = Fixture::new();
    let steps =
        [("One", "test -e done-1", "escalate"), ("Two", "test -e done-3 || test -e done-2", "escalate")];
    fixture.write("p.md", &plan("Two files", "5 minutes", &steps));
    let said = fixture.run(PROPOSING);
    assert_eq!(said.code, 3, "{said:?}");
    fixture
}

#[test]
fn h51_a_proposed_step_is_shown_with_its_difference_and_approved_into_the_plan() {
    let fixture = proposed();
    let ask = fixture.ask();
    let list = fixture.json(&["approvals", "--json"]);
    assert_eq!(
        (&list["asks"][0]["kind"], &list["asks"][0]["reason"]),
        (&"insertion".into(), &"proposed".into())
    );
    let page = fixture.planctl(&["approvals", "show", &ask]);
    for words in [
        "proposes a further step\n",
        "what it would change",
        "+### 2. Between",
        "planctl approvals approve",
        "planctl approvals edit",
    ] {
        assert!(page.out.contains(words), "{words}: {}", page.out);
    }
    let said = fixture.planctl(&["approvals", "approve", &ask]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("recorded: approve by ann"), "{said:?}");
    assert!(fixture.read("p.md").contains("Between"), "{}", fixture.read("p.md"));
    let done = fixture.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = fixture.status();
    let steps: Vec<(&str, u64)> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["title"].as_str().unwrap(), step["attempts"].as_u64().unwrap()))
        .collect();
    assert_eq!(steps, [("One", 1), ("Between", 1), ("Two", 1)], "what was reported is not done twice");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn h51_a_rejected_proposal_leaves_the_report_as_it_stands() {
    let fixture = proposed();
    let said = fixture.planctl(&["approvals", "reject", &fixture.ask(), "--note", "not needed"]);
    assert_eq!(said.code, 0, "{said:?}");
    let done = fixture.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = fixture.status();
    assert_eq!((status["state"].as_str(), status["steps"].as_array().map(Vec::len)), (Some("done"), Some(2)));
    assert_eq!(status["steps"][0]["attempts"], 1);
    assert!(!fixture.read("p.md").contains("Between"));
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn h51_a_proposal_that_is_no_step_is_told_and_can_be_written_by_hand() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One file", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let worker = r#"touch done-1; echo '{"planctl":"result/1","insert_step":"just do more"}'"#;
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains("cannot be put into the plan as it is"), "{page}");
    let said = fixture.planctl(&["approvals", "approve", &ask]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("planctl approvals edit"), "{said:?}");
    assert_eq!(fixture.status()["state"], "waiting");
}

/// The same three steps, of which the second's worker proposes another, in every form but markdown.
const FORMS: [(&str, &str, &str); 3] = [
    (
        "p.dot",
        r#"digraph p {
    start -> zero -> one // the cause
    one -> two [label="good", condition="outcome=success"]
    one -> failed [condition="outcome=fail"]
    two -> exit
    start
    one [contract="test -e done-one"]
    two [contract="test -e done-between"]
    zero [contract="test -e done-zero"]
    exit
    failed [shape=Msquare, result=failed]
}
"#,
        "between -> two",
    ),
    (
        "p.json",
        r#"{"title": "p", "start": "zero", "nodes": {
    "one": {"contract": "test -e done-one"},
    "two": {"contract": "test -e done-between"},
    "zero": {"contract": "test -e done-zero"},
    "exit": {"type": "exit"}
  }, "edges": [
    {"from": "zero", "to": "one", "condition": "on_success"},
    {"from": "one", "to": "two", "condition": "on_success"},
    {"from": "two", "to": "exit", "condition": "on_success"}
  ]}
"#,
        r#""from": "between""#,
    ),
    (
        "p.json",
        r#"{"title": "p", "steps": [
    {"title": "zero", "contract": "test -e done-zero"},
    {"title": "one", "contract": "test -e done-one"},
    {"title": "two", "contract": "test -e done-between"}
]}
"#,
        r#""title": "Between""#,
    ),
];

#[test]
fn h51_a_step_that_is_proposed_in_a_graph_is_put_into_its_own_text() {
    let worker = r####"prompt=$(cat); case $prompt in *"do it"*) touch done-between ;; esac
for step in zero one two; do case $prompt in *"$step"*) touch done-$step ;; esac; done
case $prompt in *one*) ;; *) exit 0 ;; esac; [ -e said ] && exit 0; touch said
cat > "$PLANCTL_RESULT_FILE" <<'END'
{"planctl": "result/1", "text": "A third is needed.",
 "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-between\n```"}
END"####;
    for (file, text, words) in FORMS {
        let fixture = Fixture::new();
        fixture.write(file, text);
        let said = fixture.planctl(&["plan", "run", file, "--approve", "--no-wait", "--exec", worker]);
        assert_eq!(said.code, 3, "{text}: {said:?}");
        let ask = fixture.ask();
        let page = fixture.planctl(&["approvals", "show", &ask]).out;
        assert!(page.contains("what it would change") && page.contains(words), "{text}: {page}");
        let said = fixture.planctl(&["approvals", "approve", &ask]);
        assert_eq!(said.code, 0, "{text}: {said:?}");
        let written = fixture.read(file);
        assert!(written.contains(words), "{written}");
        assert_eq!(written.contains("// the cause"), text.contains("// the cause"), "{written}");
        let done = fixture.planctl(&["plan", "resume", "p-1"]);
        assert_eq!(done.code, 0, "{text}: {done:?}");
        let status = fixture.status();
        let steps = status["steps"].as_array().unwrap();
        let attempts = |title: &str| {
            let step = steps.iter().find(|step| step["title"] == title);
            step.map(|step| (step["attempts"].as_u64().unwrap(), step["state"].as_str().unwrap().to_owned()))
        };
        for title in ["zero", "one", "Between", "two"] {
            assert_eq!(attempts(title), Some((1, "passed".to_owned())), "{title}: {status}");
        }
        assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    }
}

#[test]
fn h51_a_proposal_whose_place_in_a_graph_is_unclear_is_left_to_a_person() {
    let fixture = Fixture::new();
    let (_, text, _) = FORMS[0];
    fixture.write(
        "p.dot",
        &text.replace(
            "one -> two [label=\"good\", condition=\"outcome=success\"]",
            "one -> two [label=a]; one -> exit [label=b]",
        ),
    );
    let worker = r####"for step in zero one two between; do touch done-$step; done
echo '{"planctl": "result/1", "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-between\n```"}'"####;
    let said = fixture.planctl(&["plan", "run", "p.dot", "--approve", "--no-wait", "--exec", worker]);
    assert_eq!(said.code, 3, "{said:?}");
    // The first step has one way on; that its place is clear is no news.
    let said = fixture.planctl(&["approvals", "reject", &fixture.ask()]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    let said = fixture.planctl(&["approvals", "approve", &fixture.ask()]);
    assert_eq!(said.code, 5, "{said:?}");
    for words in
        ["could not put the step into p.dot", "depends on more than its success", "planctl approvals edit"]
    {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    assert_eq!(fixture.status()["state"], "waiting");
}

fn stuck() -> Fixture {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Two files",
            "5 minutes",
            &[("One", "test -e done-1", "escalate"), ("Two", "test -e wrong-2", "escalate")],
        ),
    );
    let said = fixture.run(WORKER);
    assert_eq!(said.code, 3, "{said:?}");
    fixture
}

fn edit(fixture: &Fixture, editor: &str, words: &[&str]) -> Said {
    let ask = fixture.ask();
    let all: Vec<&str> =
        ["approvals", "edit", ask.as_str()].into_iter().chain(words.iter().copied()).collect();
    Said::from(fixture.command(&all).env("EDITOR", editor).output().unwrap())
}

#[test]
fn a_plan_is_changed_in_flight_and_what_passed_stays_passed() {
    let fixture = stuck();
    let said = edit(&fixture, "sed -i s/wrong-2/done-2/", &["--approve", "--note", "the contract was wrong"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in [
        "step 2: contract",
        "test -e done-2",
        "1 of its steps are over",
        "recorded: approve by ann",
        "planctl resume p-1",
    ] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    assert!(fixture.read("p.md").contains("test -e done-2"));
    let done = fixture.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = fixture.status();
    assert_eq!(status["state"], "done", "{status}");
    let attempts: Vec<u64> =
        status["steps"].as_array().unwrap().iter().map(|step| step["attempts"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [1, 2], "the first step was not worked on again");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn ctrl_c_at_the_question_after_an_edit_says_where_the_text_is_kept() {
    let fixture = stuck();
    let line = format!("EDITOR='sed -i s/wrong-2/done-2/' planctl approvals edit {}", fixture.ask());
    let mut console = Console::new(&fixture, 200, &line);
    console.hear("Approve this").hear("> ").keys("\u{3}");
    let said = console.end().1;
    assert!(said.contains("your text is kept in") && said.contains("planctl approvals edit"), "{said}");
}

#[test]
fn a_bad_edit_is_told_and_kept_and_goes_on_where_it_was() {
    let fixture = stuck();
    let said = edit(&fixture, "sed -i 's/test -e wrong-2/if then/'", &["--approve"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("could not go on with this text: 1 error"), "{said:?}");
    assert!(
        said.err.contains("your text is kept in") && said.err.contains("next: planctl approvals edit"),
        "{said:?}"
    );
    assert!(fixture.read("p.md").contains("test -e wrong-2"), "the plan itself is as it was");
    let again = edit(&fixture, "sed -i 's/if then/test -e done-2/'", &["--approve"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.err.contains("going on with the text that was kept"), "{again:?}");
    assert_eq!(fixture.planctl(&["plan", "resume", "p-1"]).code, 0);
}

#[test]
fn a_step_that_is_over_is_not_changed_any_more() {
    let fixture = stuck();
    let said = edit(&fixture, "sed -i s/done-1/done-9/", &["--approve"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("it changes step 1, which is over and stays as it is"), "{said:?}");
    assert_eq!(fixture.status()["state"], "waiting", "nothing was decided");
}

#[test]
fn steps_may_come_and_go_after_the_ones_that_are_over() {
    let fixture = stuck();
    let script = fixture.path("editor.sh");
    fixture.write(
        "editor.sh",
        "sed -i '/^### 2\\. /,$d' \"$1\"\ncat >> \"$1\" <<'END'\n### 2. Prepare\n\n**target:** coder\n**task:** do\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0\n\n### 3. Two\n\n**target:** coder\n**task:** do\n**contract:**\n\n```shell\ntest -e done-3\n```\n\nexit_code == 0\nEND\n",
    );
    let said = edit(&fixture, &format!("sh {}", script.display()), &["--approve"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "resume", "p-1"]).code, 0);
    assert_eq!(fixture.status()["steps"].as_array().map(Vec::len), Some(3));
}

#[test]
fn without_an_editor_a_change_or_an_approval_nothing_is_decided() {
    let fixture = stuck();
    let ask = fixture.ask();
    let none = fixture.planctl(&["approvals", "edit", &ask]);
    assert_eq!(none.code, 78, "{none:?}");
    assert!(none.err.contains("neither VISUAL nor EDITOR names one"), "{none:?}");
    let same = edit(&fixture, "true", &[]);
    assert_eq!(same.code, 0, "{same:?}");
    assert!(same.err.contains("nothing changed"), "{same:?}");
    let failed = edit(&fixture, "exit 3;", &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("exit status: 3"), "{failed:?}");
    // `--yes` answers questions, and approves nothing.
    for words in [&[][..], &["--yes"]] {
        let unsure = edit(&fixture, "sed -i s/wrong-2/done-2/", words);
        assert_eq!(unsure.code, 2, "{words:?}: {unsure:?}");
        assert!(unsure.err.contains("your text is kept in"), "{unsure:?}");
        assert!(unsure.err.contains("or --approve"), "{unsure:?}");
    }
    assert_eq!(fixture.status()["state"], "waiting");
    let worker = Said::from(
        fixture
            .command(&["approvals", "edit", &ask])
            .env("EDITOR", "true")
            .env("PLANCTL_ITEM_ID", "x")
            .output()
            .unwrap(),
    );
    assert_eq!(worker.code, 77, "{worker:?}");
}

/// A run whose worker is at its only step until it is told to go.
pub fn at_work(fixture: &Fixture) -> Going {
    fixture.write("p.md", &plan("Long", "5 minutes", &[("One", "test -e wrong-1", "escalate")]));
    let worker = "test -e go && touch done-1 || { touch begun; sleep 600; }";
    let going = fixture.start(&["plan", "run", "p.md", "--approve", "--exec", worker]);
    while !fixture.path("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    going
}

#[test]
fn a_run_that_is_worked_on_is_paused_and_goes_on_where_it_stopped() {
    let fixture = Fixture::new();
    let going = at_work(&fixture);
    let paused = fixture.planctl(&["pause", "--note", "lunch"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert!(paused.err.contains("recorded: pause by ann\nnext: planctl resume p-1\n"), "{paused:?}");
    let again = fixture.planctl(&["plan", "pause", "p-1"]);
    assert!(again.code == 0 && again.err.contains("already recorded"), "{again:?}");
    let status = fixture.status();
    assert_eq!((&status["state"], &status["steps"][0]["state"]), (&"paused".into(), &"pending".into()));
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 3);
    let events = fixture.planctl(&["events", "--json"]).out;
    let paused = events.lines().find(|line| line.contains("\"plan_paused\"")).unwrap_or_default();
    assert!(paused.contains("ann") && paused.contains("lunch"), "{events}");
    fixture.write("go", "").write("wrong-1", "");
    assert_eq!(fixture.planctl(&["resume", "--no-wait"]).code, 0);
    let said = going.end();
    assert_eq!(said.code, 0, "the first process saw it to its end: {said:?}");
    assert_eq!(fixture.status()["steps"][0]["attempts"], 2);
    let late = fixture.planctl(&["run", "pause", "p-1"]);
    assert_eq!(late.code, 5, "{late:?}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a_run_that_is_worked_on_is_paused_edited_and_goes_on() {
    let fixture = Fixture::new();
    let going = at_work(&fixture);
    let edit = |editor: &str, words: &[&str]| {
        let all: Vec<&str> = ["plan", "edit", "p-1"].into_iter().chain(words.iter().copied()).collect();
        Said::from(fixture.command(&all).env("EDITOR", editor).output().unwrap())
    };
    let refused = edit("true", &[]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("Pause p-1 and edit its plan?"), "{refused:?}");
    assert!(refused.err.contains("next: planctl pause p-1"), "{refused:?}");
    assert_eq!(fixture.status()["state"], "running");

    let same = edit("true", &["--yes"]);
    assert_eq!(same.code, 0, "{same:?}");
    assert!(same.err.contains("nothing changed; p-1 stays paused"), "{same:?}");
    assert!(same.err.contains("next: planctl resume p-1"), "{same:?}");
    let bad = edit("sed -i s/test/if/", &["--approve"]);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(
        bad.err.contains("your text is kept in") && bad.err.contains("next: planctl resume p-1"),
        "{bad:?}"
    );
    assert_eq!(fixture.status()["state"], "paused");

    fixture.write("go", "");
    let said = edit("sed -i -e s/if/test/ -e s/wrong-1/done-1/", &["--approve"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("recorded: approve by ann"), "{said:?}");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
    let over = edit("true", &["--yes"]);
    assert_eq!(over.code, 5, "{over:?}");
}
