//! Runs every example from its first command to its last with the real binary, as its README tells people to.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use planctl_lang::Source;
use planctl_server::testing::TestDatabase;
use serde_json::Value;

#[path = "examples/patterns.rs"]
mod patterns;
#[path = "examples/recommended.rs"]
mod recommended;
#[path = "examples/starters.rs"]
mod starters;
#[path = "examples/tried.rs"]
mod tried;

/// A home of one test, with a workspace and a database of its own.
struct Home {
    folder: tempfile::TempDir,
    database: TestDatabase,
}

impl Home {
    fn new() -> Home {
        Home { folder: tempfile::tempdir().unwrap(), database: TestDatabase::migrated() }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A command with an environment that holds nothing of this machine's own settings.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).env("HOME", self.folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("PLANCTL_STATE_DIR", self.folder.path().join("state"));
        command.env("PLANCTL_DATABASE_URL", self.database.url());
        command
    }

    /// Runs a script in the workspace, which must succeed.
    fn holds(&self, script: &str) {
        let mut bash = self.command("bash");
        let bash = bash.args(["-euo", "pipefail", "-c", script]).current_dir(self.workspace());
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{script}\n{}", told(&output));
    }
}

/// One example in a home of its own.
struct Example {
    name: &'static str,
    home: Home,
}

impl Example {
    fn new(name: &'static str) -> Example {
        let example = Example { name, home: Home::new() };
        let setup = example.folder().join("setup.sh");
        let made = example.command("bash").arg(setup).arg(example.workspace()).output().unwrap();
        assert!(made.status.success(), "{}", told(&made));
        example
    }

    fn folder(&self) -> PathBuf {
        repository().join("examples").join(self.name)
    }

    fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    fn command(&self, program: &str) -> Command {
        self.home.command(program)
    }

    fn planctl(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_planctl"));
        command.arg("-C").arg(self.workspace()).args(arguments).output().unwrap()
    }

    /// The plan's path in the workspace.
    fn plan(&self) -> String {
        format!("{}.md", self.name)
    }

    fn run(&self) -> Output {
        self.run_with(self.folder().join("worker.sh").to_str().unwrap())
    }

    fn run_with(&self, worker: &str) -> Output {
        self.planctl(&["plan", "run", &self.plan(), "--approve", "--no-wait", "--exec", worker])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.planctl(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", told(&output)))
    }

    /// Asserts that the newest run is done, and how many attempts each step took.
    fn assert_done(&self, attempts: &[u64]) {
        let status = self.json(&["plan", "status", "@last", "--json"]);
        assert_eq!(status["state"], "done", "{status:#}");
        let steps = status["steps"].as_array().unwrap();
        let taken: Vec<u64> = steps.iter().map(|step| step["attempts"].as_u64().unwrap()).collect();
        assert_eq!(taken, attempts, "{status:#}");
        assert!(
            steps.iter().all(|step| step["verdict"] == "passed" && step["state"] == "passed"),
            "{status:#}"
        );
        let audit = self.planctl(&["audit", "@last"]);
        assert!(audit.status.success(), "{}", told(&audit));
    }

    /// Asserts the subjects of the workspace's commits, the newest first.
    fn assert_commits(&self, subjects: &[&str]) {
        let log = self
            .command("git")
            .arg("-C")
            .arg(self.workspace())
            .args(["log", "--format=%s"])
            .output()
            .unwrap();
        let log = String::from_utf8(log.stdout).unwrap();
        assert_eq!(log.lines().collect::<Vec<_>>(), subjects);
    }

    /// Asserts that planctl finds nothing to say about the plan but that no roles are configured.
    fn assert_verified(&self) {
        let output = self.planctl(&["plan", "verify", &self.plan(), "--format", "json"]);
        assert!(output.status.success(), "{}", told(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let report = report.as_array().map_or(&report, |reports| &reports[0]);
        let codes: Vec<&str> = report["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["code"].as_str().unwrap())
            .collect();
        assert!(codes.iter().all(|code| *code == "P402"), "{report:#}");
    }

    /// Asserts that each contract says "not done" before any work, so that it proves something afterwards.
    fn assert_red(&self) {
        let text = std::fs::read_to_string(self.workspace().join(self.plan())).unwrap();
        let (tree, _) = planctl_lang::parse(&Source::new(self.plan(), text));
        assert!(!tree.steps.is_empty());
        for step in &tree.steps {
            let contract = step.node.contract.as_ref().unwrap();
            let expected = i32::from(contract.expected());
            let mut bash = self.command("bash");
            bash.args(["--noprofile", "--norc", "-p", "-c", &contract.command]).current_dir(self.workspace());
            let output = bash.output().unwrap();
            assert_ne!(
                output.status.code(),
                Some(expected),
                "step \"{}\": {}",
                step.node.step_title(),
                told(&output)
            );
        }
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn told(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", output.status)
}

#[test]
fn hello_passes_each_step_at_once() {
    let hello = Example::new("hello");
    hello.assert_verified();
    hello.assert_red();
    let run = hello.run();
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    hello.assert_done(&[1, 1]);
    hello.assert_commits(&["Greet people by name", "Begin with a plan"]);
    let again = hello.run();
    assert_eq!(again.status.code(), Some(0), "a plan that is done says so: {}", told(&again));
    let text = std::fs::read_to_string(hello.workspace().join(hello.plan())).unwrap();
    assert!(text.contains("status: done") && text.contains("### 1. ✅ Write"), "{text}");
}

#[test]
fn bugfix_is_really_fixed_on_the_second_attempt() {
    let bugfix = Example::new("bugfix");
    bugfix.assert_verified();
    bugfix.assert_red();
    let run = bugfix.run();
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    bugfix.assert_done(&[1, 2, 1]);
    bugfix.assert_commits(&[
        "slug: one hyphen between words, none at the ends",
        "A script that makes slugs, with a bug",
    ]);
    let slug =
        bugfix.command("bash").args(["slug.sh", "  What, again?! "]).current_dir(bugfix.workspace()).output();
    assert_eq!(String::from_utf8(slug.unwrap().stdout).unwrap(), "what-again\n");
}

#[test]
fn bugfix_with_an_edited_test_is_tampered() {
    let bugfix = Example::new("bugfix");
    let honest = bugfix.folder().join("worker.sh");
    let cheat =
        format!("bash '{}'; if [ \"$PLANCTL_STEP\" = 2 ]; then echo 'exit 0' >test.sh; fi", honest.display());
    let run = bugfix.run_with(&cheat);
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    let status = bugfix.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["steps"][1]["verdict"], "tampered", "{status:#}");
    assert_eq!(status["steps"][1]["attempts"], 3, "{status:#}");
    let page = bugfix.planctl(&["approvals", "show", &status["waiting_on"]["id"].to_string()]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("test.sh"), "{}", told(&page));
}

#[test]
fn refactor_takes_two_roles_and_a_second_attempt() {
    let refactor = Example::new("refactor");
    refactor.assert_verified();
    refactor.assert_red();
    let run = refactor.run();
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    refactor.assert_done(&[1, 2, 1, 1]);
    refactor.assert_commits(&["Move the formatting to lib/format.sh", "A report in one long script"]);
    let status = refactor.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["steps"][2]["role"], "reviewer");
}

#[test]
fn escalation_goes_on_with_a_persons_note() {
    let escalation = Example::new("escalation");
    escalation.assert_verified();
    escalation.assert_red();
    let run = escalation.run();
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    let asks = escalation.json(&["approvals", "--json"]);
    assert_eq!(asks["asks"].as_array().unwrap().len(), 1, "{asks:#}");
    assert_eq!(asks["asks"][0]["kind"], "escalation");
    let id = asks["asks"][0]["id"].to_string();
    let answer = escalation.planctl(&["approvals", "retry", &id, "--note", "Use port 7443, it is free."]);
    assert!(answer.status.success(), "{}", told(&answer));
    let resumed = escalation.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", told(&resumed));
    escalation.assert_done(&[3, 1]);
    escalation.assert_commits(&["service: choose a port", "A service without a port"]);
}

#[test]
fn the_shipped_hello_plan_runs_with_a_line_of_shell() {
    let hello = Example::new("hello");
    std::fs::copy(repository().join("plans/hello.md"), hello.workspace().join(hello.plan())).unwrap();
    hello.assert_verified();
    hello.assert_red();
    let run = hello.run_with("echo \"Hello from planctl\" > hello.txt");
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    hello.assert_done(&[1]);
}
