//! A15, P11: nothing that a command started is alive after its end, or after planctl's.

use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_harness::End;

use super::support::{alive, block_on, eventually, marked, run, script, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a15_no_escape_outlives_the_command,
        p11_planctls_death_ends_every_tree_and_then_frees_the_lock,
        p11_what_has_grace_if_abandoned_comes_to_its_end_after_planctls_death,
        shutdown_waits_until_all_is_dead,
        a_last_word_of_a_process_substitution_is_heard,
    ]
}

pub const ESCAPES: &[(&str, &str)] = &[
    ("a plain background child", "sleep 999 & exit 0"),
    ("two, one in front", "sleep 999 & sleep 999 & exit 0"),
    ("nohup", "nohup sleep 999 >/dev/null 2>&1 & exit 0"),
    ("disown", "sleep 999 & disown -a; exit 0"),
    ("setsid", "setsid sleep 999 & sleep 0.05; exit 0"),
    ("a double fork", "( ( sleep 999 & ) & ) ; exit 0"),
    ("a double fork with setsid", "( setsid bash -c 'sleep 999 & sleep 999' & ) ; sleep 0.05; exit 0"),
    ("a respawner", "setsid bash -c 'spawn() { sleep 0.01; (spawn &) ; }; spawn' & sleep 0.1; exit 0"),
    (
        "a respawner with many children",
        "for i in 1 2 3 4 5 6 7 8; do setsid bash -c 'while :; do sleep 0.01 & wait; done' & done; sleep 0.1",
    ),
    ("a stopped process", "setsid bash -c 'kill -STOP $$' & sleep 0.05; exit 0"),
    (
        "one that ignores TERM and HUP",
        "setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 999; done' & sleep 0.05; exit 0",
    ),
    ("one that closed its streams", "setsid sleep 999 </dev/null >/dev/null 2>&1 & exit 0"),
    ("a coprocess", "coproc sleep 999; exit 0"),
    ("a process substitution", "cat < <(sleep 999) & exit 0"),
    ("a shell that became something else", "exec -a innocent bash -c 'setsid sleep 999 & exit 0'"),
    ("a command killed by itself", "setsid sleep 999 & sleep 0.05; kill -9 $$"),
];

fn a15_no_escape_outlives_the_command() {
    block_on(async {
        let spawner = spawner();
        for (name, text) in ESCAPES {
            let (command, mark) = marked(script(text));
            let started = Instant::now();
            let finished = run(&spawner, &command).await;
            assert_eq!(alive(&mark), [0_i32; 0], "{name}");
            assert!(finished.stragglers > 0 && finished.survivors == 0, "{name}: {finished:?}");
            assert!(!matches!(finished.end, End::TimedOut | End::HelperLost), "{name}: {:?}", finished.end);
            assert!(started.elapsed() < Duration::from_secs(10), "{name}: {:?}", started.elapsed());
        }
    });
}

/// The child program of the next test: holds a lock, runs two trees, and never ends by itself.
fn p11_planctls_death_ends_every_tree_and_then_frees_the_lock() {
    if let Ok(folder) = std::env::var("PLANCTL_TEST_CHILD_FOLDER") {
        return hold_two_trees(folder.as_ref());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut planctl = std::process::Command::new("/proc/self/exe")
        .args(["--exact", "escapes::p11_planctls_death_ends_every_tree_and_then_frees_the_lock"])
        .env("PLANCTL_TEST_CHILD_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mark = format!("PLANCTL_TEST_FOLDER={}", folder.path().display());
    eventually("both trees are up", Duration::from_secs(10), || {
        folder.path().join("one").exists() && folder.path().join("two").exists() && alive(&mark).len() >= 4
    });
    let lock = std::fs::File::open(folder.path().join("lock")).unwrap();
    assert!(lock.try_lock().is_err(), "the trees hold the lock");
    planctl.kill().unwrap();
    planctl.wait().unwrap();
    let died = Instant::now();
    lock.lock().unwrap();
    assert_eq!(alive(&mark), [0_i32; 0], "a free lock proves that nothing is left");
    assert!(died.elapsed() < Duration::from_secs(10), "{:?}", died.elapsed());
}

fn hold_two_trees(folder: &std::path::Path) {
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    block_on(async {
        let spawner = planctl_harness::Spawner::start_self(Some(lock.into())).unwrap();
        let tree = |name: &str| {
            let mut command = script(&format!(
                "trap '' TERM; ( setsid bash -c 'trap \"\" TERM; sleep 999; sleep 999' & ); touch {name}; sleep 999; sleep 999"
            ));
            command.directory = folder.into();
            command.environment.push(("PLANCTL_TEST_FOLDER".into(), folder.into()));
            command
        };
        let (one, two) = (tree("one"), tree("two"));
        tokio::join!(run(&spawner, &one), run(&spawner, &two));
    });
}

/// A process that locks files of the user's, as git does, may go on for a while, is then asked to end, and is killed at
/// last.
fn p11_what_has_grace_if_abandoned_comes_to_its_end_after_planctls_death() {
    const NAME: &str = "escapes::p11_what_has_grace_if_abandoned_comes_to_its_end_after_planctls_death";
    if let Ok(folder) = std::env::var("PLANCTL_TEST_CHILD_FOLDER") {
        return hold_what_has_grace_if_abandoned(folder.as_ref());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut planctl = std::process::Command::new("/proc/self/exe")
        .args(["--exact", NAME])
        .env("PLANCTL_TEST_CHILD_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_there = |name: &str| folder.path().join(name).exists();
    eventually("all are up", Duration::from_secs(10), || ["short", "long", "deaf"].into_iter().all(is_there));
    planctl.kill().unwrap();
    planctl.wait().unwrap();
    std::fs::write(folder.path().join("go on"), "").unwrap();
    std::fs::File::open(folder.path().join("lock")).unwrap().lock().unwrap();
    assert!(is_there("short is done"), "it was let alone");
    assert!(!is_there("long"), "asked to end, it has removed what it made");
    assert!(is_there("deaf"), "who hears nothing is killed");
    let mark = format!("PLANCTL_TEST_FOLDER={}", folder.path().display());
    assert_eq!(alive(&mark), [0_i32; 0], "the lock was held until then");
}

fn hold_what_has_grace_if_abandoned(folder: &std::path::Path) {
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    block_on(async {
        let spawner = spawner().with_locks([std::sync::Arc::new(lock.into())]);
        let command = |text: &str| {
            let mut command = script(text);
            command.directory = folder.into();
            command.environment.push(("PLANCTL_TEST_FOLDER".into(), folder.into()));
            command.grace_if_abandoned = Duration::from_secs(1);
            command
        };
        let short = command("touch short; until [ -e 'go on' ]; do sleep 0.01; done; touch 'short is done'");
        let long = command("trap 'rm long; exit 1' TERM; touch long; sleep 999 & wait");
        let deaf = command("trap '' TERM; touch deaf; sleep 999; rm deaf");
        tokio::join!(run(&spawner, &short), run(&spawner, &long), run(&spawner, &deaf));
    });
}

fn shutdown_waits_until_all_is_dead() {
    let (command, mark) = marked(script("setsid sleep 999 & sleep 999"));
    block_on(async {
        let spawner = spawner();
        let running = run(&spawner, &command);
        assert!(tokio::time::timeout(Duration::from_millis(200), running).await.is_err());
        spawner.shutdown();
        assert_eq!(alive(&mark), [0_i32; 0]);
        // And it may be used again.
        assert_eq!(run(&spawner, &script("exit 3")).await.end, End::Exited(3));
    });
}

fn a_last_word_of_a_process_substitution_is_heard() {
    block_on(async {
        let spawner = spawner();
        for _ in 0..20 {
            let finished = run(&spawner, &script("echo heard > >(cat)")).await;
            assert_eq!((finished.stdout.head.as_slice(), finished.stragglers), (b"heard\n".as_slice(), 0));
        }
    });
}
