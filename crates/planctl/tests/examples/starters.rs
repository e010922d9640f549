//! The ten starter plans in `plans/`, for real: a small repository, real git, make and tar, and a worker who is told how it
//! goes. Each is run to its success, with something that goes wrong once, and to the person who is asked (H-10, G-41).

use std::process::Command;

use serde_json::Value;

use super::{Home, repository, told};

/// How one run of a plan goes.
struct Story {
    /// The worker's instructions.
    scenario: &'static str,
    /// Commands that prepare the repository.
    before: &'static str,
    /// The steps that were entered, in order; steps of branches that run at once stand together.
    path: &'static [&'static str],
    /// How it ends: `done`, or why a person is asked.
    end: &'static str,
    /// A test that must hold in the repository then.
    holds: &'static str,
}

struct Fixture {
    home: Home,
}

impl Fixture {
    fn new(before: &str) -> Fixture {
        let fixture = Fixture { home: Home::new() };
        let setup = repository().join("crates/planctl/tests/starters/setup.sh");
        let made = fixture.home.command("bash").arg(setup).arg(fixture.home.workspace()).output().unwrap();
        assert!(made.status.success(), "{}", told(&made));
        fixture.home.holds(before);
        fixture
    }

    fn planctl(&self) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_planctl"));
        command.arg("-C").arg(self.home.workspace());
        command
    }

    fn worker(scenario: &str) -> String {
        let worker = repository().join("crates/planctl/tests/starters/worker.sh");
        format!("bash {} {scenario}", worker.display())
    }

    /// The state of the newest run.
    fn state(&self) -> String {
        let output = self.planctl().args(["plan", "status", "@last", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["state"].as_str().unwrap().to_owned()
    }

    /// The events of the newest run.
    fn events(&self) -> Vec<Value> {
        let output = self.planctl().args(["events", "--run", "@last", "--format", "jsonl"]).output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{}", told(&output));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The steps that were entered, in order; those that follow one fork are sorted, as they begin at once.
    fn path(events: &[Value]) -> Vec<String> {
        let of = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let followed = events.iter().filter(|event| event["event"] == "edge_followed");
        let mut path: Vec<(String, String)> = Vec::new();
        for event in followed {
            let (from, to) = (of(event, "from"), of(event, "to"));
            if to.chars().all(|c| c.is_ascii_digit()) {
                path.push((if from.starts_with("fork-") { from } else { String::new() }, to));
            }
        }
        let groups = path.chunk_by(|one, next| !one.0.is_empty() && one.0 == next.0);
        let sorted = groups.flat_map(|group| {
            let mut group: Vec<String> = group.iter().map(|(_, to)| to.clone()).collect();
            group.sort();
            group
        });
        sorted.collect()
    }
}

fn play(plan: &str, story: &Story) {
    let fixture = Fixture::new(story.before);
    let file = format!("plans/{plan}.md");
    let run = |words: &[&str]| {
        let mut command = fixture.planctl();
        command.args(words).args(["--no-wait", "--exec", &Fixture::worker(story.scenario)]).output().unwrap()
    };
    let mut output = run(&["plan", "run", &file, "--approve"]);
    // The plan's own questions are answered as planned.
    while fixture.state() != "done" {
        let asks = fixture.planctl().args(["approvals", "ls", "--json"]).output().unwrap();
        let asks: Value = serde_json::from_slice(&asks.stdout).unwrap();
        let Some(ask) = asks["asks"].as_array().unwrap().iter().find(|ask| ask["kind"] == "choice") else {
            break;
        };
        let id = ask["id"].to_string();
        let chosen = fixture.planctl().args(["approvals", "choose", &id, "done"]).output().unwrap();
        assert!(chosen.status.success(), "{}", told(&chosen));
        // Where nothing follows the answer, the run is over with it.
        if fixture.state() != "done" {
            output = run(&["plan", "resume", "@last"]);
        }
    }
    let events = fixture.events();
    let (name, shown) = (format!("{plan}, {}", story.scenario), told(&output));
    assert_eq!(Fixture::path(&events), story.path, "{name}\n{shown}");
    let asked =
        events.iter().rev().find(|event| event["event"] == "ask_opened" && event["kind"] == "escalation");
    let end = match (fixture.state(), asked) {
        (state, Some(asked)) if state != "done" => asked["reason"].as_str().unwrap_or_default().to_owned(),
        (state, _) => state,
    };
    assert_eq!(end, story.end, "{name}\n{shown}");
    fixture.home.holds(story.holds);
    let audit = fixture.planctl().args(["audit", "@last"]).output().unwrap();
    assert!(audit.status.success(), "{name}\n{}", told(&audit));
}

/// Says that nothing at all is wrong with a plan where its files and roles are there.
fn is_clean(plan: &str) {
    let fixture = Fixture::new("printf '[roles.coder]\\n[roles.reviewer]\\n' > planctl.toml");
    let file = format!("plans/{plan}.md");
    let output =
        fixture.planctl().args(["plan", "verify", &file, "--json", "-D", "warnings"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = report.as_array().map_or(&report, |reports| &reports[0]);
    let found = report["diagnostics"].as_array().unwrap();
    let told: Vec<&Value> = found.iter().filter(|found| found["level"] != "note").collect();
    assert!(output.status.success() && told.is_empty(), "{plan}: {told:#?}");
    let drawn = fixture.planctl().args(["graph", "check", &file]).output().unwrap();
    assert!(drawn.status.success(), "{plan}: {}", super::told(&drawn));
}

macro_rules! starters {
    ($(fn $test:ident $plan:literal [$($story:expr),* $(,)?])*) => {
        $(#[test]
        fn $test() {
            is_clean($plan);
            for story in [$($story),*] {
                play($plan, &story);
            }
        })*
    };
}

const fn story(
    scenario: &'static str,
    before: &'static str,
    path: &'static [&'static str],
    end: &'static str,
    holds: &'static str,
) -> Story {
    Story { scenario, before, path, end, holds }
}

/// A branch that goes on beside main, on the same line of the same file.
const CONFLICT: &str = "git checkout -q -b topic && sed -i '2s/.*/# Counts words./' count.sh && git commit -qam topic && git push -q -u origin topic && \
     git checkout -q main && sed -i '2s/.*/# How many words there are./' count.sh && git commit -qam main && git push -q origin main && \
     git reset -q --hard HEAD~1";
const APART: &str = "git checkout -q -b topic && echo x > notes.txt && git add notes.txt && git commit -qm topic && \
     git push -q -u origin topic && git checkout -q main";

starters! {
    fn h_10_g_41_bugfix_workflow "bugfix_workflow" [
        story("success", ":", &["1", "3", "4", "5", "6"], "done", "bash reproduce.sh && make test"),
        story("retry", ":", &["1", "2", "1", "3", "4", "5", "4", "5", "6"], "done", "test -s context.md && make test"),
        story("escalation", ":", &["1", "2", "1", "2", "1"], "same_failure", "test ! -e cause.md"),
    ]
    fn h_10_g_41_git_feature_branch "git_feature_branch" [
        story("success", ":", &["1", "2", "3", "4", "5"], "done", "git rev-parse --verify origin/feature/version"),
        story("retry", "echo '# more' >> count.sh", &["1", "6", "1", "2", "3", "4", "5"], "done", "git stash list | grep -q found"),
        story("escalation", "echo '# more' >> count.sh", &["1", "6", "7"], "exhausted", "grep -q '# more' count.sh"),
    ]
    fn h_10_g_41_codegen_module "codegen_module" [
        story("success", ":", &["1", "2", "3", "4", "6"], "done", "bash module/tests.sh"),
        story("retry", ":", &["1", "2", "3", "4", "5", "4", "6"], "done", "bash module/tests.sh"),
        story("escalation", ":", &["1", "2", "3", "4", "5", "4", "5", "4", "5", "7"], "visits_limit", "! bash module/tests.sh"),
    ]
    fn h_10_g_41_refactor_safe "refactor_safe" [
        story("success", ":", &["1", "2", "3", "4", "5", "6"], "done", "git log -1 --format=%s | grep -q '^refactor: ' && make test"),
        story("retry", ":", &["1", "2", "3", "4", "5", "3", "4", "5", "6"], "done", "make test"),
        story("escalation", ":", &["1", "2", "3", "4", "5", "3", "4", "5", "3", "4", "7"], "visits_limit", "git diff --quiet -- count.sh"),
    ]
    fn h_10_g_42_git_merge_pr "git_merge_pr" [
        story("success", APART, &["1", "2", "3", "4", "5"], "done", "git merge-base --is-ancestor origin/main origin/topic"),
        story("retry", CONFLICT, &["1", "2", "3", "6", "7", "4", "5"], "done", "git merge-base --is-ancestor origin/main origin/topic && grep -q 'Both sides' count.sh"),
        story("escalation", CONFLICT, &["1", "2", "3", "6", "8"], "exhausted", "test -n \"$(git ls-files --unmerged)\""),
    ]
    fn h_10_g_42_file_backup_restore "file_backup_restore" [
        story("success", ":", &["1", "2", "3", "4", "5"], "done", "test -s data/old/a.txt && test ! -e backup.tar"),
        story("retry", ":", &["1", "2", "3", "4", "5"], "done", "test -s data/old/b.txt"),
        story("escalation", ":", &["1", "2", "3", "4", "6", "7"], "planned", "sha256sum --check --quiet inventory.txt"),
    ]
    fn h_10_g_42_api_integration "api_integration" [
        story("success", ":", &["1", "2", "3", "4", "5"], "done", "bash client/tests.sh"),
        story("retry", ":", &["1", "2", "3", "4", "5", "6", "5"], "done", "bash client/tests.sh"),
        story("escalation", ":", &["1", "2", "3", "4", "5", "6", "5", "6", "5"], "same_failure", "! bash client/tests.sh"),
    ]
    fn h_10_g_42_dependency_update "dependency_update" [
        story("success", ":", &["1", "2", "3", "4", "5"], "done", "git log -1 --format=%s | grep -q '^deps: ' && make test"),
        story("retry", ":", &["1", "2", "3", "4", "2", "3", "4", "5"], "done", "make test"),
        story("escalation", ":", &["1", "2", "3", "4", "2", "3", "4", "2", "3", "4"], "same_failure", "test ! -e nothing"),
    ]
    fn h_10_g_42_log_investigation "log_investigation" [
        story("success", ":", &["1", "2", "3", "4", "5", "6"], "done", "test -s report.md"),
        story("retry", ":", &["1", "2", "3", "2", "3", "4", "5", "6"], "done", "test -s report.md"),
        story("escalation", ":", &["1", "2", "3", "2", "3", "2", "3"], "same_failure", "test ! -e trace.md"),
    ]
}

/// Images are built and run where a docker server is; elsewhere what is missing is said.
#[test]
fn h_10_g_41_docker_build_deploy() {
    is_clean("docker_build_deploy");
    let server = Command::new("docker").arg("info").output();
    if !server.is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED: docker_build_deploy was verified and not run: no docker server answers here (`docker info`)"
        );
        return;
    }
    let broken = "printf 'FROM busybox\\nRUN exit 7\\n' > Dockerfile";
    for story in [
        story("success", ":", &["1", "2", "3", "4", "5"], "done", "docker rm --force deployed"),
        story("retry", broken, &["1", "2", "6", "2", "3", "4", "5"], "done", "docker rm --force deployed"),
        story("escalation", broken, &["1", "2", "6", "2", "6", "2"], "same_failure", ":"),
    ] {
        play("docker_build_deploy", &story);
    }
}
