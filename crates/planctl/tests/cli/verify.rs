//! `plan verify`, `plan show` and `plan diff`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::fixture::{Fixture, Said, plan, steady};

fn two_steps() -> String {
    plan(
        "Two steps",
        "10k tokens, $0.10, 5 minutes",
        &[("First", "test -s one.txt", "retry(2), then escalate"), ("Second", "test -s two.txt", "abort")],
    )
}

#[test]
fn a_good_plan_is_verified_and_says_what_comes_next() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps()).write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n");
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        steady(&said.out, &fixture.path("")),
        "p.md: 2 steps, contracts not tried · no problems\n\
         verified · 2 steps in order 1→2 · role coder · 10k tokens · $0.10 · 5m00s · sha256 …\n\
         no agent is named for the role coder: name one here, or in planctl.toml below [roles.coder]\n\
         next: planctl run p.md --agent NAME\n"
    );
}

#[test]
fn verification_needs_no_database() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps());
    let said = Said::from(
        fixture
            .command(&["plan", "verify", "p.md"])
            .env("PLANCTL_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(std::fs::read_dir(fixture.state()).unwrap().count(), 0, "and writes nothing");
}

#[test]
fn every_finding_is_told_with_its_place_and_the_exit_is_1() {
    let fixture = Fixture::new();
    let text =
        two_steps().replace("exit_code == 0\n**on_fail:** abort", "exit_code == zero\n**on_fail:** ignore");
    fixture.write("p.md", &text);
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("error[P015]") && said.out.contains("--> p.md:"), "{}", said.out);
    assert!(said.out.contains("not verified"), "{}", said.out);

    let report: serde_json::Value =
        serde_json::from_str(&fixture.planctl(&["plan", "verify", "p.md", "--format", "json"]).out).unwrap();
    assert_eq!(report["verified"], false);
    assert_eq!(report["file"], "p.md");
    assert!(report["digest"].as_str().unwrap().starts_with("sha256:"));
    let errors: Vec<&serde_json::Value> =
        report["diagnostics"].as_array().unwrap().iter().filter(|found| found["level"] == "error").collect();
    assert_eq!(errors.len(), 2, "{report}");
    assert!(errors.iter().all(|error| error["spans"][0]["line"].as_u64().unwrap() > 20));
}

#[test]
fn warnings_pass_unless_they_are_denied() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps().replace("test -s two.txt", "test -s two.txt || true"));
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md"]).code, 0);
    let said = fixture.planctl(&["plan", "verify", "p.md", "-D", "warnings"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("error[P104]"), "{}", said.out);
}

#[test]
fn of_allow_warn_and_deny_the_later_wins_and_a_wrong_code_is_refused() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps().replace("test -s two.txt", "test -s two.txt || true"));
    let code = |words: &[&str]| fixture.planctl(&[&["plan", "verify", "p.md"][..], words].concat()).code;
    assert_eq!(code(&["-D", "P104"]), 1);
    assert_eq!(code(&["-D", "P104", "--allow", "P402,P104"]), 0);
    assert_eq!(code(&["-A", "P104,P402", "-D", "P104"]), 1);
    assert_eq!(code(&["-A", "P104", "-A", "P402", "-D", "warnings"]), 0, "what is allowed is no warning");
    let said = fixture.planctl(&["plan", "verify", "p.md", "-D", "P1O4"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("-D: `P1O4` is neither a code nor `warnings`; did you mean"), "{said:?}");
    let said = fixture.planctl(&["plan", "verify", "p.md", "-A", "P010"]);
    assert!(said.code == 2 && said.err.contains("is always an error"), "{said:?}");
}

#[test]
fn configured_levels_hold_for_verify_approve_and_run_alike_and_a_flag_goes_before_them() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps().replace("test -s two.txt", "test -s two.txt || true"));
    fixture.write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n[verify]\ndeny = [\"P104\"]\n");
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md"]).code, 1);
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md", "-W", "P104"]).code, 0);
    for words in [&["plan", "approve", "p.md"][..], &["plan", "run", "p.md", "--approve", "--exec", "true"]] {
        let said = fixture.planctl(words);
        assert!(said.code == 1 && said.err.contains("error[P104]"), "{said:?}");
    }
    fixture.write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n[verify]\ndeny = [\"P1O4\"]\n");
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 78);
    assert!(said.err.contains("planctl.toml:4:9  `P1O4` is neither a code"), "{said:?}");
}

#[test]
fn several_files_are_all_verified_and_the_worst_decides() {
    let fixture = Fixture::new();
    fixture.write("a.md", &two_steps()).write("b.md", "no plan\n");
    let said = fixture.planctl(&["plan", "verify", "a.md", "b.md", "c.md"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.out.contains("a.md: ") && said.out.contains("b.md: ") && said.err.contains("c.md"),
        "{said:?}"
    );
    assert!(
        said.out
            .contains("\n\n3 plans: 1 verified, 1 not verified, 1 not read · 1 error, 1 warning\nfor more: "),
        "{}",
        said.out
    );
}

#[test]
fn several_files_are_a_list_in_json_and_lines_in_jsonl_also_those_that_cannot_be_read() {
    let fixture = Fixture::new();
    fixture.write("a.md", &two_steps()).write("b.md", "no plan\n");
    let said = fixture.planctl(&["plan", "verify", "a.md", "b.md", "c.md", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let verified: Vec<_> =
        list.as_array().unwrap().iter().map(|one| one["verified"].as_bool().unwrap()).collect();
    assert_eq!((said.code, verified), (4, vec![true, false, false]));
    assert_eq!(list[2]["file"], "c.md");
    assert_eq!(list[2]["digest"], serde_json::Value::Null);
    assert_eq!(list[2]["diagnostics"][0]["code"], "P003");
    assert!(list[2]["diagnostics"][0]["message"].as_str().unwrap().contains("does not exist"));
    let lines = fixture.planctl(&["plan", "verify", "a.md", "b.md", "c.md", "--format", "jsonl"]);
    let lines: Vec<serde_json::Value> =
        lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, list.as_array().unwrap());
}

#[test]
fn row_64_what_is_no_readable_file_has_its_own_message_and_never_hangs() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("folder.md")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, fixture.path("pipe.md"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    for (file, code, words) in [
        ("missing.md", 4, "does not exist"),
        ("folder.md", 1, "directory"),
        ("pipe.md", 1, "pipe"),
        ("/dev/zero", 1, "device"),
    ] {
        let said = fixture.planctl(&["plan", "verify", file]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(words), "{file}: {said:?}");
        assert_eq!(fixture.planctl(&["plan", "run", file, "--approve"]).code, code);
    }
}

#[test]
fn row_65_a_plan_outside_the_workspace_is_allowed_and_said() {
    let fixture = Fixture::new();
    let outside = fixture.home().join("elsewhere.md");
    std::fs::write(&outside, two_steps()).unwrap();
    let said = fixture.planctl(&["plan", "verify", outside.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("P603") && said.out.contains("outside the workspace"), "{}", said.out);
}

#[test]
fn row_66_a_text_that_is_approved_already_is_known_by_its_digest() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps());
    let first = fixture.json(&["plan", "approve", "p.md", "--json"]);
    assert_eq!(first["repeated"], false);
    // Line marks and the status are planctl's own, so they are no other text.
    fixture.write(
        "p.md",
        &two_steps().replace("status: draft", "status: approved").replace("### 1. First", "### 1. ✅ First"),
    );
    let second = fixture.json(&["plan", "approve", "p.md", "--json"]);
    assert_eq!(second["repeated"], true, "{second}");
}

#[test]
fn show_tells_what_would_run_with_every_contract_in_full() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps()).write("check.sh", "true").write("one.txt", "");
    let said = fixture.planctl(&["plan", "show", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in [
        "Two steps",
        "test -s one.txt",
        "test -s two.txt",
        "on failure retry(2), then escalate",
        "on failure abort",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    let view = fixture.json(&["plan", "show", "p.md", "--json"]);
    assert_eq!(view["steps"][1]["contract"]["command"].as_str().unwrap().trim(), "test -s two.txt");
    assert_eq!(view["budget"]["seconds"], 300.0);
    let one = fixture.planctl(&["plan", "show", "p.md", "--step", "2"]);
    assert!(!one.out.contains("test -s one.txt") && one.out.contains("test -s two.txt"));
    assert_eq!(fixture.planctl(&["plan", "show", "p.md", "--step", "9"]).code, 4);
}

#[test]
fn p03_show_tells_the_context_and_the_priority() {
    let fixture = Fixture::new();
    let plan = two_steps().replace("## Steps", "**Context:** Logins fail.\n\n**Priority:** high\n\n## Steps");
    fixture.write("p.md", &plan).write("q.md", &two_steps()).write("check.sh", "true").write("one.txt", "");
    let view = fixture.json(&["plan", "show", "p.md", "--json"]);
    assert_eq!(
        (view["context"].as_str(), view["priority"].as_str()),
        (Some("Logins fail."), Some("high")),
        "{view}"
    );
    let said = fixture.planctl(&["plan", "show", "p.md"]);
    for words in ["context    Logins fail.", "priority   high"] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    let plain = fixture.json(&["plan", "show", "q.md", "--json"]);
    assert_eq!((&plain["context"], plain["priority"].as_str()), (&serde_json::Value::Null, Some("normal")));
}

#[test]
fn g26_show_tells_what_a_decision_is_about() {
    let fixture = Fixture::new();
    let graph = r#"{"name": "Fix", "graph": {"start": "a", "nodes": {
        "a": {"action": "Mend it", "contract": "test -s one.txt"},
        "which": {"type": "decision", "name": "Which way", "description": "A small fix, or a rewrite"},
        "end": {"type": "exit"}},
        "edges": [{"from": "a", "to": "which"}, {"from": "which", "to": "end"}]}}"#;
    fixture.write("p.json", graph);
    let view = fixture.json(&["plan", "show", "p.json", "--json"]);
    assert_eq!(view["nodes"][0]["description"], "A small fix, or a rewrite", "{view}");
    let said = fixture.planctl(&["plan", "show", "p.json"]);
    assert!(said.out.contains("A small fix, or a rewrite"), "{}", said.out);
}

#[test]
fn what_a_plan_says_can_not_rewrite_the_terminal() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps().replace("First, please.", "Hide \u{202e}this\u{1b}[2J."));
    for words in [&["plan", "verify", "p.md"][..], &["plan", "show", "p.md"]] {
        let said = fixture.planctl(words);
        assert!(
            !said.out.contains(['\u{1b}', '\u{202e}']) && !said.err.contains(['\u{1b}', '\u{202e}']),
            "{said:?}"
        );
    }
}

#[test]
fn diff_shows_what_changed_since_the_approval() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps());
    assert_eq!(fixture.planctl(&["plan", "diff", "p.md"]).code, 4, "never approved");
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "diff", "p.md"]).code, 0, "nothing changed");
    fixture.write("p.md", &two_steps().replace("test -s two.txt", "test -s three.txt"));
    let said = fixture.planctl(&["plan", "diff", "p.md"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("step 2: contract `test -s two.txt` → `test -s three.txt`\n"), "{}", said.out);
    assert!(!said.out.contains("-test -s two.txt"), "{}", said.out);
    let said = fixture.planctl(&["plan", "diff", "p.md", "--text"]);
    assert!(said.out.contains("-test -s two.txt\n+test -s three.txt\n"), "{}", said.out);
}

#[test]
fn p_76_diff_compares_kept_revisions_and_knows_moved_steps() {
    let fixture = Fixture::new();
    let first = two_steps();
    fixture.write("p.md", &first);
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    let before = fixture.json(&["plan", "show", "p.md", "--json"])["digest"].as_str().unwrap().to_owned();
    let step = first.find("### 1.").unwrap();
    let between = "### 1. Look around\n**target:** coder\n**task:** Look.\n**contract:**\n```shell\ntest -s look.txt\n```\n\
        exit_code == 0\n**on_fail:** escalate\n\n";
    let second = format!("{}{between}{}", &first[..step], &first[step..])
        .replace("### 2.", "### 3.")
        .replacen("### 1. Look", "### 0. Look", 1)
        .replacen("### 1.", "### 2.", 1)
        .replace("### 0. Look", "### 1. Look");
    fixture.write("p.md", &second);
    let said = fixture.planctl(&["plan", "diff", "p.md", "--json", "--since", &before[7..15]]);
    assert_eq!(said.code, 1, "{said:?}");
    let view: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let changes: Vec<&str> =
        view["changes"].as_array().unwrap().iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["added", "moved", "moved"], "{view}");
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    let again = fixture.planctl(&["plan", "diff", "p.md", "--since", "approved", "--until", &before]);
    assert_eq!(again.code, 1);
    assert!(again.out.contains("step 1 removed: Look around"), "{}", again.out);
    let unknown = fixture.planctl(&["plan", "diff", "p.md", "--since", "deadbeef"]);
    assert_eq!(unknown.code, 4);
    assert!(unknown.err.contains("kept are") && unknown.err.contains(&before[7..19]), "{}", unknown.err);
    let times = unknown.err.split(['(', ')']).skip(1).step_by(2);
    let is_shown = |time: &str| time.len() == "2026-11-28 19:48 UTC".len() && time.ends_with(" UTC");
    assert_eq!(times.clone().count(), 2, "{}", unknown.err);
    assert!(times.into_iter().all(is_shown), "{}", unknown.err);
    assert_eq!(fixture.planctl(&["plan", "diff", "p.md", "--since", "run"]).code, 4, "it never ran");
}

#[test]
fn a_code_is_explained_where_no_plan_is_named() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["plan", "verify", "--explain", "p104"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("warning[P104]: the contract can't fail\n"), "{}", said.out);
    assert!(said.out.contains("\nwrong\n") && said.out.contains("|| true"), "{}", said.out);
    let listed = fixture.planctl(&["plan", "verify", "--explain"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(
        listed.out.contains("\ncontracts\n  P101  error    the contract is not valid bash\n"),
        "{}",
        listed.out
    );
    let unknown = fixture.planctl(&["plan", "verify", "--explain", "P1044"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("no code `P1044`") && unknown.err.contains("P104"), "{}", unknown.err);
    assert_eq!(fixture.planctl(&["plan", "verify"]).code, 2, "a plan or a code");
    let told = fixture.json(&["plan", "verify", "--explain", "P104", "--json"]);
    assert_eq!(told["codes"][0]["level"], "warning");
}

#[test]
fn the_gravest_finding_is_named_once_for_more() {
    let fixture = Fixture::new();
    let late = two_steps().replace("test -s two.txt", "test -s two.txt || true");
    fixture.write("a.md", &late).write("b.md", &late.replace("**target:** coder", "**target:** my coder"));
    let said = fixture.planctl(&["plan", "verify", "a.md", "b.md"]);
    let more: Vec<&str> = said.out.lines().filter(|line| line.starts_with("for more:")).collect();
    assert_eq!(more, ["for more: planctl explain P403"], "{}", said.out);
    assert!(!fixture.planctl(&["plan", "verify", "-q", "a.md"]).out.contains("for more:"));
}

#[test]
fn show_names_every_default_that_applies_and_where_it_comes_from() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[contracts]\ntimeout = \"90s\"\n");
    fixture.write("p.md", &two_steps().replace("exit_code == 0\n", ""));
    let said = fixture.planctl(&["plan", "show", "p.md", "-v"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("contract_timeout 1 min 30 s (planctl.toml)"), "{}", said.out);
    assert!(said.out.contains("exit_code == 0") && said.out.contains("timeout 10 min"), "{}", said.out);
    let view = fixture.json(&["plan", "show", "p.md", "--json"]);
    let of_contract = &view["steps"][0]["defaults"];
    let found = of_contract.as_array().unwrap().iter().find(|default| default["field"] == "contract_timeout");
    assert_eq!(found.unwrap()["from"], "configuration", "{of_contract}");
}

#[test]
fn show_of_a_run_is_the_plan_that_runs_not_the_file() {
    let fixture = Fixture::new();
    fixture.write("p.md", &two_steps());
    let words = ["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "true"];
    assert_eq!(fixture.planctl(&words).code, 3);
    fixture.write("p.md", &two_steps().replace("test -s two.txt", "test -s three.txt"));
    let of_run = fixture.planctl(&["plan", "show", "@last"]);
    assert!(of_run.out.contains("test -s two.txt") && !of_run.out.contains("three.txt"), "{of_run:?}");
    assert!(fixture.planctl(&["plan", "show", "p.md"]).out.contains("three.txt"));
}

#[test]
fn d20_the_plan_on_standard_input_is_verified_and_nothing_is_offered_that_needs_a_file() {
    let fixture = Fixture::new();
    let verified = |words: &[&str], text: &str| {
        let mut command = fixture.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Where the command line is refused, nobody reads.
        child.stdin.take().unwrap().write_all(text.as_bytes()).ok();
        Said::from(child.wait_with_output().unwrap())
    };
    let text = plan("One step", "5 minutes", &[("First", "test -s one.txt", "abort")]);
    let said = verified(&["plan", "verify", "-"], &text);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!format!("{}{}", said.out, said.err).contains("next:"), "{said:?}");
    let report: Value =
        serde_json::from_str(&verified(&["plan", "verify", "-", "--json"], "# T\n").out).unwrap();
    assert_eq!(
        (&report["file"], &report["diagnostics"][0]["code"]),
        (&"-".into(), &"P007".into()),
        "{report}"
    );
    for words in [&["plan", "verify", "--fix", "-"][..], &["plan", "verify", "-", "-"]] {
        assert_eq!(verified(words, &text).code, 2, "{words:?}");
    }
}
