//! A runtime, a helper, and a look at living processes, which the tests share.

use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use planctl_engine::{Contract, RedFirst};
use planctl_harness::{Command, Finished, PATH_DEFAULT, Spawner, digest_of};

/// Makes a list of trials from functions of the same names.
#[macro_export]
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(
            concat!(module_path!(), "::", stringify!($name)).replacen("processes::", "", 2),
            || { $name(); Ok(()) },
        )),*]
    };
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub fn spawner() -> Spawner {
    Spawner::start_self(None).unwrap()
}

/// A contract that expects 0 within this time.
pub fn contract(command: &str, timeout: Duration) -> Contract {
    Contract {
        command: command.into(),
        digest: digest_of(command.as_bytes()),
        expect: 0,
        timeout,
        guard: false,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
    }
}

/// A bash script with a path and a mark in its environment.
pub fn script(text: &str) -> Command {
    let mut command = Command::new(["/bin/bash", "--noprofile", "--norc", "-p", "-c", text], "/");
    command.environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    command.deadline = Some(Duration::from_secs(20));
    command
}

/// Marks a command, so that everything it starts can be found again.
pub fn marked(mut command: Command) -> (Command, String) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mark = format!("planctl-test-mark-{}-{count}-", std::process::id());
    command.environment.push(("PLANCTL_TEST_MARK".into(), mark.clone().into()));
    (command, mark)
}

/// Lists the living processes whose environment carries the mark.
pub fn alive(mark: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment.windows(mark.len()).any(|window| window == mark.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

pub async fn run(spawner: &Spawner, command: &Command) -> Finished {
    spawner.run(command, &mut |_, _| (), std::future::pending()).await.unwrap()
}

pub fn run_script(text: &str) -> Finished {
    block_on(async { run(&spawner(), &script(text)).await })
}

/// Waits until something holds; panics when it doesn't within the time.
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + within;
    while !holds() {
        assert!(std::time::Instant::now() < until, "{what} within {within:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs git with a person's name and no configuration; returns what it says.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "maintenance.auto=false"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH_DEFAULT)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
