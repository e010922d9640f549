//! Runs in worktrees beside a daemon: the worker learns the place, contracts run there, and the API removes it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::house::{Ask, House, plan, wait_until};
use crate::fixture::git;

fn house() -> House {
    let house = House::new();
    git(&house.fixture.path(""), &["init", "--quiet"]);
    house.fixture.write("hello.md", &plan("hello", "hello")).write("other.md", &plan("other", "other"));
    git(&house.fixture.path(""), &["add", "-A"]);
    git(&house.fixture.path(""), &["commit", "--quiet", "-m", "all"]);
    house
}

fn complete(house: &House, claimed: &Value) {
    let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
    let ask = Ask { token: Some(token), body: Some(r#"{"text": "done"}"#.to_owned()), ..Ask::default() };
    let said = house.network("POST", &format!("/v1/items/{item}/complete"), &ask);
    assert_eq!(said.status, 200, "{said:?}");
}

/// Waits until the daemon has looked at what the run left.
fn seen(house: &House, run: &str) -> Value {
    let mut view = Value::Null;
    wait_until(|| {
        view = house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json();
        view["worktree"]["uncommitted"].is_u64().then(|| view.clone())
    })
    .unwrap_or_else(|| panic!("{view}"))
}

#[test]
fn a_remote_worker_is_told_the_worktree_and_its_contract_runs_there() {
    let house = house();
    let words = ["plan", "run", "hello.md", "--approve", "-d", "--workspace", "worktree"];
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
    let claimed = house.claim();
    let place = PathBuf::from(claimed["workspace"].as_str().unwrap());
    assert!(place.starts_with(house.fixture.state().canonicalize().unwrap().join("worktrees")), "{claimed}");
    assert!(place.join("hello.md").exists());
    // The right word in the workspace itself proves nothing.
    house.fixture.write("out.txt", "hello\n");
    complete(&house, &claimed);
    let again = house.claim();
    assert_eq!(again["attempt"], 2, "{again}");
    std::fs::write(place.join("out.txt"), "hello\n").unwrap();
    complete(&house, &again);
    house.until(said.out.trim(), "done");
    assert_eq!(seen(&house, said.out.trim())["worktree"]["uncommitted"], 1);
    let clean = |body: Value| {
        let ask = Ask { key: Some("clean-1"), body: Some(body.to_string()), ..Ask::default() };
        house.local("POST", "/v1/worktrees/clean", &ask).json()
    };
    let workspace = house.fixture.path("");
    let kept = house.fixture.json(&["clean", "--json"]);
    assert_eq!(kept["worktrees"][0]["removed"], false, "{kept}");
    let gone = clean(json!({ "workspace": workspace.canonicalize().unwrap(), "discards": true }));
    assert_eq!(gone["worktrees"][0]["removed"], true, "{gone}");
    assert!(!place.exists());
}

#[test]
fn a_program_asks_for_a_worktree_in_the_body_and_two_runs_go_on_at_once() {
    let house = house();
    let workspace = house.fixture.path("").canonicalize().unwrap();
    let start = |name: &str| {
        let body = json!({
            "plan": {
                "workspace": workspace,
                "path": format!("{name}.md"),
                "text": plan(name, name),
                "config": { "workspace": { "mode": "worktree", "git": "commit" } },
            },
            "start": { "approve": {}, "waits_for_workers": true },
        });
        let ask = Ask { key: Some(name), body: Some(body.to_string()), ..Ask::default() };
        let started = house.local("POST", "/v1/runs", &ask);
        assert_eq!(started.status, 200, "{started:?}");
        started.json()["run"].as_str().unwrap().to_owned()
    };
    let runs = [start("hello"), start("other")];
    // Both are out at the same time.
    let claims = [house.claim(), house.claim()];
    for claimed in &claims {
        let word = claimed["run"].as_str().unwrap().rsplit_once('-').unwrap().0;
        std::fs::write(
            Path::new(claimed["workspace"].as_str().unwrap()).join("out.txt"),
            format!("{word}\n"),
        )
        .unwrap();
        complete(&house, claimed);
    }
    for run in &runs {
        house.until(run, "done");
        let view = seen(&house, run);
        assert_eq!(view["worktree"]["uncommitted"], 0, "{view}");
        let shown = format!("{}:out.txt", view["worktree"]["branch"].as_str().unwrap());
        assert_eq!(git(&workspace, &["show", &shown]), run.rsplit_once('-').unwrap().0);
    }
}

#[test]
fn a_daemon_holds_a_run_whose_worktree_can_t_be_made_and_goes_on_when_told_to() {
    let house = house();
    std::fs::write(house.fixture.state().join("worktrees"), "in the way").unwrap();
    let words = [
        "plan",
        "run",
        "hello.md",
        "--approve",
        "-d",
        "--workspace",
        "worktree",
        "--exec",
        "echo hello > out.txt",
    ];
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
    let held = house.until("hello-1", "waiting");
    assert_eq!(held["waiting_on"]["kind"], "worktree", "{held}");
    let watched = house.fixture.planctl(&["plan", "resume", "hello-1", "--no-wait"]);
    assert_eq!(watched.code, 3, "{watched:?}");
    std::fs::remove_file(house.fixture.state().join("worktrees")).unwrap();
    let resumed = house.fixture.planctl(&["plan", "resume", "hello-1"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

#[test]
fn a6_a_remote_worker_is_told_the_folder_of_a_plan_within_and_its_contract_runs_there() {
    let house = house();
    let outer = "digraph outer { start inner [shape=house, stack.child_dotfile=\"hello.md\", stack.child_workdir=\"services/api\", \
                 stack.child_approval=inherit] exit start -> inner -> exit }\n";
    house.fixture.write("outer.dot", outer).write("services/api/README", "The API.\n");
    let said = house.fixture.planctl(&["plan", "run", "outer.dot", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let claimed = house.claim();
    let place = PathBuf::from(claimed["workspace"].as_str().unwrap());
    assert_eq!(place, house.fixture.path("services/api").canonicalize().unwrap(), "{claimed}");
    // The right word in the workspace itself proves nothing.
    house.fixture.write("out.txt", "hello\n");
    complete(&house, &claimed);
    let again = house.claim();
    assert_eq!(again["attempt"], 2, "{again}");
    std::fs::write(place.join("out.txt"), "hello\n").unwrap();
    complete(&house, &again);
    house.until(said.out.trim(), "done");
    let child = house.local("GET", "/v1/runs/hello-1", &Ask::default()).json();
    assert_eq!((&child["state"], &child["folder"]), (&"done".into(), &"services/api".into()), "{child}");
}
