//! `plan verify --probe`: contracts tried in a throw-away copy before any work is done.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::fixture::{Fixture, Said, plan};

/// Replaces times, which differ from run to run.
fn timeless(text: &str) -> String {
    let mut words = text.split(' ').collect::<Vec<_>>();
    for at in 1..words.len() {
        if words[at].trim_end_matches([',', '\n']) == "s" && words[at - 1].parse::<f64>().is_ok() {
            words[at - 1] = "…";
        }
    }
    words.join(" ")
}

/// A plan with one step for each contract; a guard's is given with a `!` before it.
fn steps(contracts: &[&str]) -> String {
    let steps: Vec<(&str, &str, &str)> = contracts
        .iter()
        .map(|contract| ("Work", contract.trim_start_matches("guard:"), "retry(1), then escalate"))
        .collect();
    let mut text = plan("Red first", "10k tokens, $0.10, 50 minutes", &steps);
    for contract in contracts.iter().filter_map(|contract| contract.strip_prefix("guard:")) {
        let before = format!("```bash\n{contract}\n```\nexit_code == 0\n");
        text = text.replace(&before, &format!("{before}**guard:** yes\n"));
    }
    text
}

fn fixture(contracts: &[&str]) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("p.md", &steps(contracts)).write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n");
    fixture
}

fn probe(fixture: &Fixture, more: &[&str]) -> Said {
    fixture.planctl(&[&["plan", "verify", "--probe", "p.md"], more].concat())
}

/// Lists what probes left.
fn copies(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture.state().join("work")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn p103_a_contract_that_passes_already_is_told_with_its_exit_and_time() {
    let fixture = fixture(&["test -f done.txt", "test -s planctl.toml", "test -d none"]);
    let said = probe(&fixture, &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        timeless(&said.out).split("verified ·").next().unwrap(),
        "warning[P103]: the contract passes before any work is done\n  \
         --> p.md:36:1\n   \
            |\n\
         36 | test -s planctl.toml\n   \
            | ^^^^^^^^^^^^^^^^^^^^ exit 0 in … s on a clean copy of the workspace\n   \
            |\n   \
            = step 2 \"Work\"\n   \
            = note: a step whose contract is already true proves nothing when it finishes\n   \
            = note: for a \"keep it green\" step write `**guard:** yes` to accept this\n   \
            = help: add a check that is false now, e.g. `test -s PATH &&`\n\
         \n\
         p.md: 3 steps, 3 of 3 contracts tried in … s (copy discarded) · 1 warning\n"
    );
    assert_eq!(said.err, "", "progress is for terminals");
    assert!(copies(&fixture).is_empty(), "{:?}", copies(&fixture));
    assert_eq!(probe(&fixture, &["-D", "warnings"]).code, 1);
}

#[test]
fn each_code_stands_at_its_own_contract() {
    let fixture = fixture(&[
        "echo x >>seen.txt && test -f none",
        "! test -e flag && touch flag",
        "sleep 0.9; test -f none",
        "guard:test -f none",
        "guard:test -f planctl.toml",
        "sleep 30",
        "test -s ../beside",
    ]);
    let mut text = fixture.read("p.md");
    for slow in ["sleep 0.9; test -f none", "sleep 30"] {
        let before = format!("```bash\n{slow}\n```\nexit_code == 0\n");
        assert!(text.contains(&before));
        text = text.replace(&before, &format!("{before}**contract_timeout:** 1 s\n"));
    }
    fixture.write("p.md", &text);
    let said = probe(&fixture, &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let found: Vec<(&str, u64)> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|found| {
            let code = found["code"].as_str().unwrap();
            ["P103", "P105", "P106", "P107", "P116", "P117"].contains(&code)
        })
        .map(|found| (found["code"].as_str().unwrap(), found["step"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        found,
        [("P105", 1), ("P105", 2), ("P106", 2), ("P107", 3), ("P117", 4), ("P107", 6), ("P116", 7)],
        "{said:?}"
    );
    assert_eq!((&report["probe"]["contracts"], &report["probe"]["tried"]), (&7.into(), &6.into()));
    assert!(report["probe"]["seconds"].as_f64().unwrap() > 0.0);
    assert!(copies(&fixture).is_empty(), "{:?}", copies(&fixture));
    assert!(!fixture.path("seen.txt").exists() && !fixture.path("flag").exists());
}

#[test]
fn without_probe_nothing_is_executed_and_the_report_says_so() {
    let fixture = fixture(&["touch executed && test -f none"]);
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(said.out.contains("p.md: 1 step, contracts not tried · "), "{said:?}");
    assert!(!fixture.path("executed").exists());
    let report: serde_json::Value =
        serde_json::from_str(&fixture.planctl(&["plan", "verify", "p.md", "--json"]).out).unwrap();
    assert_eq!(report["probe"], serde_json::Value::Null);
    let help = fixture.planctl(&["plan", "verify", "--help"]).out;
    assert!(help.contains("runs the plan's shell commands with your rights"), "{help}");
}

#[test]
fn a_plan_with_errors_has_its_sound_contracts_tried() {
    let fixture = fixture(&["test -f none &&", "test -f planctl.toml", "nosuchcommand --check"]);
    let said = probe(&fixture, &[]);
    assert_eq!(said.code, 1);
    for words in ["error[P101]", "error[P102]", "warning[P103]", "3 steps, 1 of 3 contracts tried in "] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(!said.out.contains("P116"), "{}", said.out);
}

#[test]
fn several_plans_share_one_copy() {
    let fixture = fixture(&["test -f planctl.toml"]);
    fixture.write("q.md", &steps(&["echo x >>planctl.toml; grep -q x planctl.toml"]));
    let said = fixture.planctl(&["plan", "verify", "--probe", "p.md", "q.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("1 of 1 contracts tried").count(), 2, "{}", said.out);
    assert!(said.out.contains("changed `planctl.toml`"), "{}", said.out);
    assert!(copies(&fixture).is_empty(), "{:?}", copies(&fixture));
}

#[test]
fn a_contract_that_names_the_workspace_is_not_tried() {
    let fixture = Fixture::new();
    let work = fixture.path("").canonicalize().unwrap();
    let script = format!("touch {}/escaped", work.display());
    fixture.write("p.md", &steps(&[&script, "! test -e escaped"]));
    let said = probe(&fixture, &[]);
    assert!(said.out.contains("note[P116]: the contract was not tried"), "{}", said.out);
    assert!(said.out.contains("so it would not stay in the copy"), "{}", said.out);
    assert!(said.out.contains("2 steps, 1 of 2 contracts tried"), "{}", said.out);
    assert!(!fixture.path("escaped").exists());
}

#[test]
fn a_workspace_that_is_too_large_is_refused_and_the_way_out_is_named() {
    let fixture = fixture(&["test -f none"]);
    fixture.write("build/huge", "");
    std::fs::File::create(fixture.path("build/huge")).unwrap().set_len(5 << 30).unwrap();
    let said = probe(&fixture, &[]);
    assert_eq!(said.code, 75, "{said:?}");
    for words in [
        "could not copy the workspace",
        "it has 5.0 GiB, and at most 4.0 GiB are copied",
        "most of it is `build` (5.0 GiB)",
        "--probe-max-bytes 6G",
        "without --probe",
    ] {
        assert!(said.err.contains(words), "{words}\n{said:?}");
    }
    let said = probe(&fixture, &["--probe-max-bytes", "1X"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert_eq!(
        fixture.planctl(&["plan", "verify", "p.md", "--probe-max-bytes", "1G"]).code,
        2,
        "needs --probe"
    );
    assert!(copies(&fixture).is_empty(), "{:?}", copies(&fixture));
}

#[test]
fn row_114_more_isolation_than_there_is_tries_nothing() {
    let fixture = fixture(&["touch executed"]);
    fixture.write("planctl.toml", "isolation = \"require:2\"\n[roles.coder]\ntimeout = \"1m\"\n");
    let said = fixture.planctl_below_tier_2(&["plan", "verify", "--probe", "p.md"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("isolation = \"require:2\" is demanded"), "{said:?}");
}

#[test]
fn a_state_directory_in_the_workspace_does_not_hold_the_copy() {
    let fixture = fixture(&["test -f planctl.toml && test ! -e .state/work/none"]);
    let temporary = fixture.home().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = fixture.command(&["plan", "verify", "--probe", "p.md"]);
    let said = Said::from(
        command.env("PLANCTL_STATE_DIR", fixture.path(".state")).env("TMPDIR", &temporary).output().unwrap(),
    );
    assert!(said.out.contains("1 of 1 contracts tried"), "{said:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

/// Waits until a contract runs in a copy: it makes this file there.
fn await_contract(fixture: &Fixture) -> PathBuf {
    let began = std::time::Instant::now();
    loop {
        let found = copies(fixture).into_iter().find(|copy| copy.join("tree/work/begun").exists());
        if let Some(copy) = found {
            return copy;
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "no contract runs");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Lists the processes that work in a folder.
fn working_in(folder: &Path) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(folder)).collect()
}

#[test]
fn ctrl_c_ends_the_contract_removes_the_copy_and_says_so() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let fixture = fixture(&["touch begun; setsid sleep 300 & sleep 300"]);
        let going = fixture.start(&["plan", "verify", "--probe", "p.md"]);
        let copy = await_contract(&fixture);
        going.signal(signal);
        let said = going.end();
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains("stopped; the copy of the workspace is removed"), "{said:?}");
        assert!(!copy.exists() && working_in(&copy).is_empty());
    }
}

#[test]
fn kill_9_leaves_no_process_and_the_next_probe_removes_the_copy() {
    let fixture = fixture(&["touch begun; setsid sleep 300 & sleep 300"]);
    let going = fixture.start(&["plan", "verify", "--probe", "p.md"]);
    let copy = await_contract(&fixture);
    going.signal(Signal::KILL);
    assert_eq!(going.end().code, -1);
    let began = std::time::Instant::now();
    while !working_in(&copy).is_empty() {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "alive: {:?}", working_in(&copy));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(copy.exists());
    // The helper holds the lock until it has seen all of them end.
    while copy.exists() {
        fixture.write("p.md", &steps(&["test -f none"]));
        assert_eq!(probe(&fixture, &[]).code, 0);
        assert!(began.elapsed() < std::time::Duration::from_secs(40));
    }
    assert!(copies(&fixture).is_empty(), "{:?}", copies(&fixture));
}

#[test]
fn a_git_checkout_is_tried_as_it_is_and_stays_as_it_is() {
    let fixture = fixture(&[
        "git add -A && git -c user.name=t -c user.email=t@example.org commit -qm x",
        "test \"$(git status --porcelain | wc -l)\" = 2",
    ]);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(words).current_dir(fixture.path("")).env_clear().env("PATH", "/usr/bin:/bin");
        let output = git.env("HOME", fixture.home()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let said = probe(&fixture, &[]);
    assert!(said.out.contains("changed `.git/HEAD`"), "{}", said.out);
    assert!(said.out.contains("warning[P103]"), "the second sees two files that nobody added: {}", said.out);
    assert_eq!(git(&["status", "--porcelain"]), "?? p.md\n?? planctl.toml\n");
    assert_eq!(git(&["log", "--oneline"]), "");
}
