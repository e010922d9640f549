//! Rows of plans as a person meets them: from the text of a plan to its run with real workers, contracts and a database.

use serde_json::{Value, json};

use super::fixture::{Fixture, plan};
use super::http::House;

/// A plan that says all that a plan of the seed can say.
const WHOLE: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Everything\n\n**Budget:** 5 minutes\n\n## Steps\n\n\
### 1. Write\n\n**target:** coder\n\n**subscriptions:**\n- file:notes.txt\n- topic:timeouts\n\n**task:**\nFirst paragraph with `code`.\n\nSecond **one**.\n\n\
**contract:**\n```bash\ntest -e a.txt &&\n  grep -q a a.txt\n```\nexit_code == 0\n**on_fail:** retry(2), then abort\n\n\
### 2. Look\n\n**target:** reviewer\n\n**task:**\nLook at it.\n\n**contract:**\n```bash\ngrep -q b a.txt\n```\nexit_code == 1\n";

#[test]
fn p_04_p_05_p_06_p_07_p_08_p_09_p_10_the_fields_of_a_step_are_read_as_they_are_written() {
    let fixture = Fixture::new();
    fixture.write("p.md", WHOLE).write("notes.txt", "n\n");
    let shown = fixture.json(&["plan", "show", "p.md", "--json"]);
    let steps = shown["steps"].as_array().unwrap();
    let text = serde_json::to_string(steps).unwrap();
    assert_eq!(steps.len(), 2, "{shown}");
    let command = steps[0]["contract"]["command"].as_str().unwrap();
    assert_eq!(command.trim(), "test -e a.txt &&\n  grep -q a a.txt", "{shown}");
    let codes = steps.iter().map(|step| step["contract"]["exit_code"].clone());
    assert_eq!(codes.collect::<Vec<_>>(), [0, 1], "{shown}");
    let roles: Vec<&Value> = steps.iter().map(|step| &step["role"]).collect();
    assert_eq!(roles, ["coder", "reviewer"], "{shown}");
    assert!(text.contains("notes.txt") && text.contains("timeouts"), "{shown}");
    assert!(text.contains("First paragraph with `code`.\\n\\nSecond **one**."), "{shown}");
    assert!(text.contains("retry(2), then abort"), "{shown}");
}

#[test]
fn p_01_p_02_the_frontmatter_has_a_type_and_one_of_six_states() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan("One", "5 minutes", &[("One", "true", "abort")]).replace("type: plan", "type: spec"),
    );
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md"]).code, 1);
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "true", "abort")]).replace("type: plan\n", ""));
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md"]).code, 1);
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "true", "abort")]).replace("draft", "bogus"));
    let odd = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(odd.code, 0, "an unknown status is a warning: {odd:?}");
    for status in ["draft", "verified", "approved", "in-progress", "done", "failed"] {
        assert!(odd.out.contains(status), "{status}: {odd:?}");
    }
}

#[test]
fn p_48_p_57_p_58_p_62_p_63_what_can_not_run_is_refused_at_once_with_all_that_is_wrong() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:true\"\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let steps = [("One", "no-such-program --x", "retry(-1)"), ("Two", "true", "retry(two)")];
    let text = plan("Wrong", "5 minutes", &steps).replacen("**target:** coder", "**target:** codre", 1);
    let reads = "**subscriptions:**\n- file:nowhere/at-all.txt\n\n**task:**";
    fixture.write("p.md", &text.replacen("**task:**", reads, 1));
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 1, "{said:?}");
    for word in ["P015", "P102", "P201", "P401", "no-such-program", "nowhere/at-all.txt", "codre"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    assert_eq!(fixture.run("touch ran").code, 1);
    assert!(!fixture.path("ran").exists(), "nothing of it runs");
}

#[test]
fn p_29_p_34_p_35_p_36_p_37_p_38_p_42_p_65_each_worker_is_fresh_and_contracts_alone_decide() {
    let fixture = Fixture::new();
    let steps = [
        ("Alpha", "test -e one.txt", "abort"),
        ("Beta", "cat one.txt; echo seen >&2; test -s two.txt", "abort"),
    ];
    fixture.write("p.md", &plan("Two", "5 minutes", &steps));
    // Each writes a file into the shared workspace; the first says that it failed, and its exit code says so too.
    let worker = "cat > prompt-$PLANCTL_STEP.txt; if [ $PLANCTL_STEP = 1 ]; then echo made > one.txt; echo I failed, sorry; exit 3; fi; cp one.txt two.txt; pwd > where.txt; echo All tests pass";
    let said = fixture.run(worker);
    assert_eq!(said.code, 0, "{said:?}");
    let (first, second) = (fixture.read("prompt-1.txt"), fixture.read("prompt-2.txt"));
    assert!(first.contains("Alpha, please.") && !first.contains("Beta"), "{first}");
    assert!(second.contains("Beta, please.") && !second.contains("Alpha"), "no history of another: {second}");
    for prompt in [&first, &second] {
        assert!(!prompt.contains("p.md") && !prompt.contains("test -"), "no plan, and no contract: {prompt}");
    }
    assert_eq!(
        (fixture.read("one.txt"), fixture.read("two.txt")),
        ("made\n".to_owned(), "made\n".to_owned())
    );
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    let gate = &logs["attempts"][1]["gate"];
    assert!(gate["stdout"].as_str().unwrap().contains("made"), "{logs}");
    assert!(gate["stderr"].as_str().unwrap().contains("seen"), "{logs}");
    assert_eq!(gate["exit_code"], 0, "{logs}");
    assert!(gate["seconds"].is_number(), "{logs}");
    // A contract that is red fails the step, whatever its worker says.
    fixture.write("p.md", &plan("Red", "5 minutes", &[("Gamma", "test -e three.txt", "abort")]));
    assert_eq!(fixture.run("echo Analysis done, all tests pass").code, 1);
}

#[test]
fn p_21_p_43_p_44_p_45_p_50_policies_are_followed_to_the_letter() {
    let fixture = Fixture::new();
    let steps = [("One", "echo why-it-is-red >&2; false", "retry(3), then escalate")];
    fixture.write("p.md", &plan("Retried", "5 minutes", &steps));
    let said = fixture.run("echo x >> tries");
    assert_eq!(said.code, 3, "a person is needed: {said:?}");
    assert_eq!(fixture.read("tries").lines().count(), 4, "retry(3) is three more");
    assert!(fixture.read("p.md").contains("status: in-progress"), "{}", fixture.read("p.md"));
    let ask = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(ask.out.contains("why-it-is-red"), "the failure is told: {ask:?}");
    let history = fixture.event_names("@last");
    let retries = history.iter().filter(|event| *event == "retry_triggered").count();
    assert_eq!(retries, 3, "{history:?}");
    assert!(!history.iter().any(|event| event.contains("skip") || event.contains("revis")), "{history:?}");
    let fixture = Fixture::new();
    let steps = [("One", "false", "abort"), ("Two", "true", "abort")];
    fixture.write("p.md", &plan("Aborted", "5 minutes", &steps));
    let said = fixture.run("echo $PLANCTL_STEP >> tries");
    assert_eq!((said.code, fixture.read("tries").as_str()), (1, "1\n"), "{said:?}");
    assert_eq!(format!("{}{}", said.out, said.err).matches("contract exit 1").count(), 1, "once: {said:?}");
    assert_eq!(fixture.status()["state"], "failed");
}

#[test]
fn p_35_a_planctl_that_a_worker_starts_finds_the_state_of_the_run() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "test -s where", "abort")]));
    let said = fixture.run("printf %s \"$PLANCTL_STATE_DIR\" > where");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(std::path::Path::new(&fixture.read("where")), fixture.state());
}

#[test]
fn p_79_the_batches_of_an_inventory_are_planned_while_the_run_that_made_it_waits() {
    let fixture = Fixture::new();
    let first = [("Inventory", "test -s all.txt", "escalate")];
    let head = plan("Migrate", "5 minutes", &first);
    fixture.write(
        "p.md",
        &format!("{head}\n### 2. Plan the batches\n\n**type:** human\n\n**task:**\nExpand them.\n"),
    );
    fixture.write(
        "template.md",
        &format!("{head}\n### 2–N. Migrate\n\n**target:** coder\n\n**task:**\nMigrate {{item}}\n\n**contract:**\n```bash\ncat {{item}}\n```\n"),
    );
    let worker = "case $PLANCTL_STEP in 1) echo once >> ran; printf '%s\n' a.py b.py c.py > all.txt;; *) grep -o '[abc]\\.py' | xargs touch;; esac";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    let words = ["plan", "expand", "template.md", "--items", "all.txt", "--batch", "2", "-o", "all.md"];
    assert_eq!(fixture.planctl(&words).code, 0);
    fixture.write("p.md", &fixture.read("all.md"));
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["state"], "done");
    assert_eq!(fixture.read("ran"), "once\n", "the inventory is not made again");
    assert!(["a.py", "b.py", "c.py"].iter().all(|file| fixture.path(file).exists()));
    let passed = fixture.event_names("@last").iter().filter(|event| *event == "node_verified").count();
    assert_eq!(passed, 3, "the inventory, and two batches");
}

#[test]
fn p_25_a_plan_that_is_changed_after_its_approval_needs_another_one() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "true", "abort")]));
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "test -e made", "abort")]));
    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", "touch made"]);
    assert!([3, 5].contains(&said.code), "the approval is of another text: {said:?}");
    assert!(!fixture.path("made").exists(), "nothing ran");
}

#[test]
fn p_30_p_31_p_32_p_80_one_item_at_a_time_is_handed_out_with_all_that_its_worker_needs() {
    let house = House::new();
    let steps = [("One", "true", "abort"), ("Two", "true", "abort")];
    house.fixture.write("p.md", &plan("Two", "5 minutes", &steps));
    let said = house.fixture.planctl(&["plan", "run", "p.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    // The claim waits for the run to be admitted: it is woken, and polls nothing.
    let claimed = house.claim();
    let work = &claimed["work"];
    assert_eq!((&work["agent_id"], &work["type"]), (&json!("coder"), &json!("CODE")), "{claimed}");
    assert!(work["input"]["prompt"].as_str().unwrap().contains("One, please."), "{claimed}");
    assert_eq!(
        (&work["payload"]["plan_id"], &work["payload"]["step"]),
        (&json!("p.md"), &json!(1)),
        "{claimed}"
    );
    let none = house.fixture.planctl(&["item", "claim", "--role", "coder", "--no-wait"]);
    assert_eq!(none.code, 10, "the second step waits for the first: {none:?}");
}

#[test]
fn p_39_a_second_run_in_a_workspace_is_queued_and_says_behind_which() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("First", "5 minutes", &[("One", "false", "escalate")]));
    assert_eq!(fixture.run("true").code, 3);
    fixture.write("q.md", &plan("Second", "5 minutes", &[("One", "true", "abort")]));
    let said = fixture.planctl(&["plan", "run", "q.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_ne!(said.code, 0, "{said:?}");
    let status = fixture.json(&["plan", "status", "q-1", "--json"]);
    assert_eq!(status["state"], "queued", "{status}");
    assert_eq!(status["waiting_on"]["run"], "p-1", "{status}");
}

#[test]
fn p_40_a_contract_runs_in_the_workspace_as_a_process_of_the_harness() {
    let fixture = Fixture::new();
    let contract =
        "tr '\\0' ' ' < /proc/$PPID/cmdline > parent.txt; pwd > where.txt; grep -q __spawn parent.txt";
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", contract, "abort")]));
    let said = fixture.run("true");
    assert_eq!(said.code, 0, "{said:?} {}", fixture.read("parent.txt"));
    let folder = fixture.path("").canonicalize().unwrap();
    assert_eq!(fixture.read("where.txt").trim(), folder.to_string_lossy().trim_end_matches('/'));
}
