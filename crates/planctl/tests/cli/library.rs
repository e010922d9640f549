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
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", ""));
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
fn h_08_h_09_where_nothing_is_called_for_nothing_is_said() {
    let fixture = Fixture::new();
    for message in ["What's the weather like?", "", "  "] {
        let said = fixture.planctl(&["library", "match", message]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{message:?}");
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
