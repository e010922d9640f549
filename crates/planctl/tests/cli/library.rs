//! `planctl library`: entries of three places, found by what a message says (rows H-01 to H-14, H-52, H-53, G-39, G-43).

use serde_json::{Value, json};

use crate::fixture::{Fixture, plan};

/// The example of seed 3, in a library of two.
const SEED: &str = r#"{
  "_meta": {"version": "1.0", "description": "HTN Plan Library for Agent-Zero"},
  "plans": {
    "bugfix_of_ours": {
      "name": "Bug Fix Workflow",
      "domains": ["bugfix"],
      "triggers": ["fix bug", "debug"],
      "trigger_threshold": 1,
      "stale_after_turns": 15,
      "steps": [
        {
          "name": "Reproduce the issue",
          "action": "Run the failing code",
          "tool": "code_execution_tool",
          "tool_hint": "Run the command",
          "verify": {"type": "any_output"},
          "on_fail": "warn",
          "required": true
        },
        {
          "name": "Test the fix",
          "action": "Run it again",
          "tool": "code_execution_tool",
          "verify": {"type": "output_not_contains", "value": "error"},
          "on_fail": "block",
          "required": false
        }
      ]
    },
    "plain": {"name": "Plain", "steps": [{"name": "One", "action": "Do it"}]}
  }
}
"#;

fn entry<'v>(list: &'v Value, id: &str) -> &'v Value {
    let entries = list["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

fn taken(fixture: &Fixture, words: &[&str]) -> Value {
    fixture.json(&[&["library", "match", "--json"], words].concat())["taken"].clone()
}

/// The words for a person; standard output stays empty.
const NO_MATCH: &str = "no plan of the library matches; `--explain` says why\n";

#[test]
fn h_01_h_02_a_library_of_json_is_taken_over_with_every_key() {
    let fixture = Fixture::new();
    fixture.write("from/htn.json", SEED);
    let said = fixture.planctl(&["library", "import", "from/htn.json"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "wrote plans/htn.json: bugfix_of_ours, plain\n"),
        "{said:?}"
    );
    let seed: Value = serde_json::from_str(SEED).unwrap();
    let list = fixture.json(&["library", "ls", "--json"]);
    for id in ["bugfix_of_ours", "plain"] {
        assert_eq!(entry(&list, id)["plan"], seed["plans"][id]);
        assert_eq!(fixture.json(&["library", "show", id, "--json"])["plan"], seed["plans"][id]);
    }
    assert_eq!(entry(&list, "bugfix_of_ours")["steps"], 2);
    assert_eq!(entry(&list, "plain")["trigger_threshold"], 2, "H-04");
    let out = fixture.planctl(&["library", "export", "bugfix_of_ours", "plain"]).out;
    let exported: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(exported["plans"], seed["plans"]);
    let said = fixture.planctl(&["library", "show", "plain"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), seed["plans"]["plain"]);
}

#[test]
fn h_03_h_05_h_06_a_message_finds_the_entry_that_its_words_and_its_domain_speak_for() {
    let fixture = Fixture::new();
    let none = fixture.planctl(&["library", "match", "--domain", "git_ops", "new branch"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", NO_MATCH));
    assert_eq!(
        taken(&fixture, &["--domain", "git_ops", "create branch for new branch"]),
        "git_feature_branch"
    );
    assert_eq!(taken(&fixture, &["--domain", "bugfix", "create branch for new branch"]), Value::Null);
    assert_eq!(taken(&fixture, &["--domain", "", "debug it"]), Value::Null);
    for message in ["I need to fix a bug in the login module", "fix the bug in /tmp/test.py"] {
        assert_eq!(taken(&fixture, &[message]), "bugfix_workflow", "X-10: {message}");
        assert_eq!(taken(&fixture, &[message, "--matcher", "substring"]), Value::Null, "{message}");
    }
    let said = fixture.planctl(&["library", "match", "please debug"]);
    assert_eq!((said.code, said.out.as_str()), (0, "bugfix_workflow  Fix a bug\n"));
    assert_eq!(said.err, "next: planctl new --from bugfix_workflow\n");
}

#[test]
fn h_08_h_09_where_nothing_is_called_for_programs_read_nothing() {
    let fixture = Fixture::new();
    for message in ["What's the weather like?", "", "  "] {
        let said = fixture.planctl(&["library", "match", message]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", NO_MATCH), "{message:?}");
    }
    assert!(!fixture.state().join("pg").exists(), "no database was begun");
}

#[test]
fn match_explains_what_each_entry_weighs_and_why_the_others_were_not_taken() {
    let fixture = Fixture::new();
    let words = ["library", "match", "--explain", "--domain", "bugfix", "fix the bug, it is not working"];
    let said = fixture.planctl(&words);
    let first: Vec<&str> = said.out.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "✔ bugfix_workflow  score 3: \"fix bug\" in \"fix the bug\", \"not working\" · its domain (+1) · threshold 1",
            "    taken"
        ]
    );
    assert!(
        said.out.contains("✘ git_merge_pr  score 0: no trigger · threshold 2\n    it is for git_ops\n"),
        "{said:?}"
    );
    let view = fixture.json(&[&words[..2], &["--json"], &words[3..]].concat());
    assert_eq!(view["taken"], "bugfix_workflow");
    let bugfix = entry(&view, "bugfix_workflow");
    assert_eq!((&bugfix["score"], &bugfix["fate"]), (&json!(3), &json!("taken")));
    assert_eq!(bugfix["hits"][0], json!({"trigger": "fix bug", "found": "fix the bug"}));
    assert_eq!(entry(&view, "git_merge_pr")["fate"], "other_domain");
}

#[test]
fn h_10_the_library_has_the_ten_starter_plans_and_the_nearest_of_a_name_wins() {
    let fixture = Fixture::new();
    let list = fixture.json(&["library", "ls", "--json"]);
    assert_eq!(list["entries"].as_array().unwrap().len(), 10);
    assert_eq!(entry(&list, "refactor_safe")["origin"], "built_in");
    let own = plan("Ours", "$1", &[("One", "test -f x", "abort")]).replacen(
        "---\n\n",
        "triggers: [debug]\ntrigger_threshold: 1\n---\n\n",
        1,
    );
    fixture.write("plans/bugfix_workflow.md", &own);
    let list = fixture.json(&["library", "ls", "--json"]);
    let bugfix = entry(&list, "bugfix_workflow");
    assert_eq!((&bugfix["origin"], &bugfix["hides"]), (&json!("project"), &json!(["built_in"])));
    let said = fixture.planctl(&["library", "ls"]);
    assert!(said.out.contains("plans/bugfix_workflow.md (not planctl's)"), "{said:?}");
    assert_eq!(fixture.json(&["library", "show", "bugfix_workflow", "--json"])["title"], "Ours");
}

#[test]
fn h_13_a_library_that_cannot_be_read_is_told_and_stops_nothing_else() {
    let fixture = Fixture::new();
    fixture.write("plans/broken.json", "{\"plans\": {\"x\": ");
    let said = fixture.planctl(&["library", "ls"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("plans/broken.json:1:") && said.out.contains("refactor_safe"), "{said:?}");
    let said = fixture.planctl(&["library", "match", "debug it"]);
    assert_eq!(said.code, 0);
    assert!(said.out.starts_with("bugfix_workflow"), "{said:?}");
    assert_eq!(fixture.planctl(&["new", "plans/a.md", "--from", "bugfix_workflow"]).code, 0);
    let missing = fixture.planctl(&["library", "show", "bugfix_worklfow"]);
    assert_eq!(missing.code, 4);
    assert!(missing.err.contains("did you mean `bugfix_workflow`?"), "{missing:?}");
}

#[test]
fn g_39_a_role_begins_only_the_plans_of_its_list() {
    let fixture = Fixture::new();
    fixture.write(
        "planctl.toml",
        "[roles.bugfix_specialist]\nplans = [\"bugfix_*\"]\n[roles.brancher]\nplans = [\"git_feature_branch\"]\n[roles.any]\n",
    );
    let message = "debug it, it is broken";
    assert_eq!(taken(&fixture, &["--role", "bugfix_specialist", message]), "bugfix_workflow");
    assert_eq!(taken(&fixture, &["--role", "any", message]), "bugfix_workflow", "no list allows all");
    assert_eq!(taken(&fixture, &["--role", "brancher", message]), Value::Null);
    let view = fixture.json(&["library", "match", "--json", "--role", "brancher", message]);
    assert_eq!(entry(&view, "bugfix_workflow")["fate"], "not_of_role");
    assert_eq!(fixture.planctl(&["library", "match", "--role", "nobody", message]).code, 4);
}

#[test]
fn g_43_a_library_that_is_replaced_is_kept_beside_the_new_one() {
    let fixture = Fixture::new();
    fixture.write("from/htn.json", SEED);
    fixture.write("plans/other.md", "# Not touched\n");
    assert_eq!(fixture.planctl(&["library", "import", "from/htn.json"]).code, 0);
    for round in ["second", "third"] {
        fixture.write("from/htn.json", &SEED.replace("Bug Fix Workflow", round));
        let refused = fixture.planctl(&["library", "import", "from/htn.json"]);
        assert_eq!(refused.code, 5, "{refused:?}");
        assert_eq!(fixture.planctl(&["library", "import", "from/htn.json", "--replace"]).code, 0);
        assert!(fixture.read("plans/htn.json").contains(round));
    }
    assert_eq!(fixture.read("plans/htn.json.bak"), SEED);
    assert!(fixture.read("plans/htn.json.bak2").contains("second"));
    assert_eq!(fixture.read("plans/other.md"), "# Not touched\n");
    fixture.write("from/bad.json", "{\"plans\": {\"x\": {\"steps\": 1}}}");
    let refused = fixture.planctl(&["library", "import", "from/bad.json"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("bad.json:1:") && !fixture.path("plans/bad.json").exists(), "{refused:?}");
}

#[test]
fn h_53_a_person_writes_an_entry_of_their_own_and_makes_a_plan_of_it() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&[
        "library",
        "new",
        "fix_login",
        "--from",
        "bugfix_workflow",
        "--trigger",
        "repair login",
        "--domain",
        "web",
    ]);
    assert_eq!((said.code, said.out.lines().next()), (0, Some("wrote plans/fix_login.md")), "{said:?}");
    let text = fixture.read("plans/fix_login.md");
    assert!(
        text.contains("\ndomains: [web]\ntriggers: [repair login]\ntrigger_threshold: 1\n---\n"),
        "{text}"
    );
    assert!(text.contains("# Fix login\n") && !text.contains("debug"), "{text}");
    fixture.write("BUG.md", "It fails.\n");
    let verified = fixture.planctl(&["verify", "plans/fix_login.md"]);
    assert!(!verified.err.contains("P001") && !verified.out.contains("P001"), "{verified:?}");
    assert_eq!(taken(&fixture, &["please repair the login"]), "fix_login");
    assert_eq!(fixture.planctl(&["library", "new", "fix_login"]).code, 5);
    let refused = fixture.planctl(&["library", "edit", "refactor_safe"]);
    assert_eq!(refused.code, 77);
    assert!(refused.err.contains("planctl library new refactor_safe --from refactor_safe"), "{refused:?}");

    let said = fixture.planctl(&["new", "plans/today.md", "--from", "fix_login"]);
    assert_eq!(said.code, 0, "{said:?}");
    let made = fixture.read("plans/today.md");
    assert!(made.contains("\nlibrary: fix_login\n") && !made.contains("triggers"), "{made}");
    let list = fixture.json(&["library", "ls", "--json"]);
    assert!(list["entries"].as_array().unwrap().iter().all(|entry| entry["id"] != "today"));
}

#[test]
fn a_plan_of_the_project_is_run_by_its_name_and_an_entry_without_one_says_how_to_make_it() {
    let fixture = Fixture::new();
    fixture.write("plans/mine.md", &plan("Mine", "5 minutes", &[("One", "test -e done-1", "abort")]));
    let said = fixture.planctl(&[&["run", "mine", "--approve"], &DOES[..]].concat());
    assert!(said.code == 0 && said.out.contains("mine-1 "), "{said:?}");
    let said = fixture.planctl(&["run", "refactor_safe"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("planctl new plans/refactor_safe.md --from refactor_safe"), "{said:?}");
    assert_eq!(fixture.planctl(&["run", "nowhere"]).code, 4);
}

#[test]
fn an_entry_of_json_becomes_a_plan_in_json_or_in_markdown() {
    let fixture = Fixture::new();
    fixture.write("from/htn.json", SEED);
    assert_eq!(fixture.planctl(&["library", "import", "from/htn.json"]).code, 0);
    assert_eq!(fixture.planctl(&["new", "plans/a.json", "--from", "bugfix_of_ours"]).code, 0);
    let made: Value = serde_json::from_str(&fixture.read("plans/a.json")).unwrap();
    let seed: Value = serde_json::from_str(SEED).unwrap();
    assert_eq!(made["steps"], seed["plans"]["bugfix_of_ours"]["steps"]);
    assert_eq!((&made["library"], &made["triggers"]), (&json!("bugfix_of_ours"), &Value::Null));
    assert_eq!(fixture.planctl(&["new", "plans/b.md", "--from", "bugfix_of_ours"]).code, 0);
    let text = fixture.read("plans/b.md");
    assert!(
        text.contains("library: bugfix_of_ours") && text.contains("### 1. Reproduce the issue"),
        "{text}"
    );
    assert!(text.contains("\nowner: ") && text.matches("**target:** coder").count() == 2, "{text}");
}

#[test]
fn h_52_what_runs_taught_is_counted_shown_and_can_be_switched_off() {
    let fixture = Fixture::new();
    let text = plan("Debug", "5 minutes", &[("One", "test -e done-1", "abort")]).replacen(
        "---\n\n",
        "triggers: [debug, broken]\ntrigger_threshold: 1\n---\n\n",
        1,
    );
    fixture.write("plans/mine.md", &text);
    for _ in 0..5 {
        let said = fixture.planctl(&["run", "plans/mine.md", "--approve", "--again", "--exec", "true"]);
        assert_eq!(said.code, 1, "{said:?}");
    }
    let stats = fixture.json(&["library", "stats", "--json"]);
    assert_eq!(
        entry(&stats, "mine"),
        &json!({"id": "mine", "ended": 5, "done": 0, "written_threshold": 1, "threshold": 2})
    );
    assert_eq!(entry(&stats, "refactor_safe")["ended"], 0);
    let once = ["library", "match", "debug it", "--matcher", "words"];
    let view = fixture.json(&[&once[..], &["--json"]].concat());
    let mine = entry(&view, "mine");
    assert_eq!((&mine["fate"], &mine["threshold"]), (&json!("too_few_hits"), &json!(2)));
    assert_eq!(view["taken"], "bugfix_workflow");
    let said = fixture.planctl(&["library", "match", "--explain", "debug it"]);
    let words = "✘ mine  score 1: \"debug\" · threshold 2 (written 1; most of its newest runs failed)\n    \
                 1 of its triggers, and 2 are needed\n";
    assert!(said.out.contains(words), "{said:?}");
    assert_eq!(taken(&fixture, &["debug it, it is broken"]), "mine");
    fixture.write("planctl.toml", "[library]\nlearn = false\n");
    assert_eq!(taken(&fixture, &["debug it"]), "mine");
    let said = fixture.planctl(&["library", "stats"]);
    assert!(said.out.contains("thresholds don't follow"), "{said:?}");
}

/// A plan of one step that the worker `touch done-1` passes, and the plan that is to follow it.
fn chained(title: &str, then: &str) -> String {
    plan(title, "5 minutes", &[("One", "test -e done-1", "abort")]).replacen(
        "---\n\n",
        &format!("then: {then}\n---\n\n"),
        1,
    )
}

fn runs(fixture: &Fixture) -> Vec<(String, String)> {
    let list = fixture.json(&["run", "ls", "--json"]);
    let word = |run: &Value, key: &str| run[key].as_str().unwrap().to_owned();
    let runs = list["runs"].as_array().unwrap().iter();
    let mut runs: Vec<_> = runs.map(|run| (word(run, "run"), word(run, "state"))).collect();
    runs.sort();
    runs
}

fn pair(run: &str, state: &str) -> (String, String) {
    (run.to_owned(), state.to_owned())
}

const DOES: [&str; 2] = ["--exec", "touch done-1"];

#[test]
fn h_50_the_plan_that_follows_gets_a_run_of_its_own_that_waits_for_its_own_approval() {
    let fixture = Fixture::new();
    fixture.write("plans/first.md", &chained("First", "second"));
    fixture.write("plans/second.md", &plan("Second", "5 minutes", &[("One", "test -e done-1", "abort")]));
    // An approval that holds does not begin what only a plan asked for.
    assert_eq!(fixture.planctl(&["approve", "plans/second.md"]).code, 0);
    let said = fixture.planctl(&[&["run", "plans/first.md", "--approve"], &DOES[..]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("second-1 follows: planctl approvals\n"), "{said:?}");
    assert_eq!(runs(&fixture), [pair("first-1", "done"), pair("second-1", "awaiting_approval")]);
    let ask = fixture.ask();
    assert_eq!(fixture.planctl(&["approvals", "approve", &ask]).code, 0);
    let said = fixture.planctl(&[&["run", "plans/second.md"], &DOES[..]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(runs(&fixture), [pair("first-1", "done"), pair("second-1", "done")]);
}

#[test]
fn h_50_whoever_is_killed_at_the_end_of_a_run_loses_no_follow_up_and_none_is_made_twice() {
    let fixture = Fixture::new();
    fixture.write("plans/first.md", &chained("First", "second"));
    fixture.write("plans/second.md", &plan("Second", "5 minutes", &[("One", "test -e done-1", "abort")]));
    fixture.write("other.md", &plan("Other", "5 minutes", &[("One", "test -e done-1", "abort")]));
    assert_eq!(fixture.planctl(&[&["run", "plans/first.md", "--approve"], &DOES[..]].concat()).code, 0);
    let both = [pair("first-1", "done"), pair("second-1", "awaiting_approval")];
    assert_eq!(runs(&fixture), both);
    // Killed after the run was made, before that was recorded.
    fixture.sql("delete from follow_ups");
    assert_eq!(fixture.planctl(&[&["run", "other.md", "--approve"], &DOES[..]].concat()).code, 0);
    assert_eq!(runs(&fixture), [&both[..1], &[pair("other-1", "done")], &both[1..]].concat());
    // The same once the run that followed is over: its request tells that it was made.
    assert_eq!(fixture.planctl(&["cancel", "second-1", "--yes"]).code, 0);
    fixture.sql("delete from follow_ups");
    let again = [&["run", "other.md", "--approve", "--again"], &DOES[..]].concat();
    assert_eq!(fixture.planctl(&again).code, 0);
    assert!(!runs(&fixture).iter().any(|(run, _)| run == "second-2"), "{:?}", runs(&fixture));
    // Killed before anything was made: nothing of it is there.
    fixture.sql("delete from follow_ups; delete from commands where seq = 0");
    assert_eq!(fixture.planctl(&again).code, 0);
    let made: Vec<_> = runs(&fixture).into_iter().filter(|(run, _)| run.starts_with("second")).collect();
    assert_eq!(made, [pair("second-1", "cancelled"), pair("second-2", "awaiting_approval")]);
}

#[test]
fn h_50_an_entry_of_the_library_follows_and_what_is_no_plan_is_told_once() {
    let fixture = Fixture::new();
    fixture.write("SPEC.md", "A module.\n").write("CHANGE.md", "A change.\n");
    fixture.write("plans/first.md", &chained("First", "git_feature_branch"));
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:true\"\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let said = fixture.planctl(&[&["run", "plans/first.md", "--approve"], &DOES[..]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("git_feature_branch-1 follows"), "{said:?}");
    let text = fixture.read("plans/git_feature_branch.md");
    assert!(text.contains("\nlibrary: git_feature_branch\n") && !text.contains("triggers"), "{text}");

    fixture.write("plans/lost.md", &chained("Lost", "../elsewhere"));
    let said = fixture.planctl(&[&["run", "plans/lost.md", "--approve"], &DOES[..]].concat());
    assert_eq!(said.code, 0, "the run itself is done: {said:?}");
    assert!(said.err.contains("warning: no plan follows: could not find the plan ../elsewhere"), "{said:?}");
    assert_eq!(runs(&fixture).len(), 3);
}

#[test]
fn h_50_a_plan_that_is_to_follow_and_is_not_there_is_told_before_any_run() {
    let fixture = Fixture::new();
    fixture.write("plans/second.md", &plan("Second", "5 minutes", &[("One", "test -e done-1", "abort")]));
    fixture.write("next.md", &plan("Next", "5 minutes", &[("One", "test -e done-1", "abort")]));
    let verified = |next: &str| {
        fixture.write("first.md", &chained("First", next));
        fixture.planctl(&["verify", "first.md"])
    };
    for next in ["second", "next.md", "plans/second.md", "git_feature_branch"] {
        let said = verified(next);
        assert!(said.code == 0 && !said.err.contains("P216") && !said.out.contains("P216"), "{said:?}");
    }
    let told = |next: &str, help: &str| {
        let said = verified(next);
        let text = format!("{}{}", said.out, said.err);
        assert_eq!(said.code, 0, "the run itself can go: {said:?}");
        assert!(
            text.contains("P216") && text.contains(&format!("`{next}`")) && text.contains(help),
            "{text}"
        );
    };
    told("secnod", "did you mean `second`?");
    told("git_feature_brnch", "did you mean `git_feature_branch`?");
    told("../elsewhere", "`planctl library ls`");

    let chain = |then: &str| {
        SEED.replace(
            "\"triggers\": [\"fix bug\"",
            &format!("\"then\": \"{then}\", \"triggers\": [\"fix bug\""),
        )
    };
    fixture.write("from/htn.json", &chain("bugfix_of_our"));
    let said = fixture.planctl(&["library", "import", "from/htn.json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let warning = "warning[P216]: bugfix_of_ours: the plan `bugfix_of_our`, which is to follow, is not there";
    assert!(said.err.contains(warning) && said.err.contains("did you mean `bugfix_of_ours`?"), "{said:?}");
    let shown = fixture.planctl(&["library", "show", "bugfix_of_ours"]);
    assert!(shown.err.contains(warning), "{shown:?}");
    fixture.write("from/htn.json", &chain("second"));
    let said = fixture.planctl(&["library", "import", "from/htn.json", "--replace"]);
    assert!(said.code == 0 && !said.err.contains("P216"), "{said:?}");
}

#[test]
fn h_50_nothing_follows_a_run_that_failed() {
    let fixture = Fixture::new();
    fixture.write("plans/first.md", &chained("First", "second"));
    fixture.write("plans/second.md", &plan("Second", "5 minutes", &[("One", "test -e done-1", "abort")]));
    let said = fixture.planctl(&["run", "plans/first.md", "--approve", "--exec", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(runs(&fixture), [pair("first-1", "failed")]);
}

#[test]
fn an_entry_that_is_a_plan_of_the_project_is_run_and_not_written_once_more() {
    let fixture = Fixture::new();
    let new = ["library", "new", "fix_login", "--from", "bugfix_workflow", "--trigger", "login broken"];
    assert_eq!(fixture.planctl(&new).code, 0);
    let said = fixture.planctl(&["library", "match", "login broken"]);
    assert_eq!(said.err, "next: planctl run plans/fix_login.md\n", "{said:?}");
}
