//! B6: where planctl has no file left, a command waits for one; where nothing can be watched, no contract is judged.

use std::fs::File;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{HarnessResult, Inconclusive};
use planctl_harness::{Baseline, End};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::gate_folders::Place;
use super::support::{block_on, contract, script, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        b6_a_command_waits_until_there_are_files_for_it,
        b6_a_process_needs_one_of_the_users_instances_of_notifications_and_judges_nothing_without_it,
    ]
}

fn b6_a_command_waits_until_there_are_files_for_it() {
    // A limit is of a process, so a process of its own has it.
    let short = std::process::Command::new("/proc/self/exe").arg("__short").output().unwrap();
    assert!(short.status.success(), "{}", String::from_utf8_lossy(&short.stderr));
}

/// Uses up all files, starts a command, and gives them back.
pub fn short_main() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
    let (spawner, command) = (spawner(), script("exit 7"));
    block_on(async {
        let all = || std::iter::from_fn(|| File::open("/dev/null").ok()).collect::<Vec<_>>();
        let taken = all();
        let mut watch = |_, _: &[u8]| ();
        let mut run = pin!(spawner.run(&command, &mut watch, pending()));
        let waited = tokio::time::timeout(Duration::from_millis(300), &mut run).await;
        assert!(waited.is_err(), "{waited:?}");
        drop(taken);
        assert_eq!(run.await.unwrap().end, End::Exited(7));

        let _taken = all();
        let mut watch = |_, _: &[u8]| ();
        let cancelled = spawner.run(&command, &mut watch, tokio::time::sleep(Duration::from_millis(50)));
        assert_eq!(cancelled.await.unwrap().end, End::Cancelled);
    });
}

fn b6_a_process_needs_one_of_the_users_instances_of_notifications_and_judges_nothing_without_it() {
    let few = |most: u32| {
        let script =
            format!("echo {most} > /proc/sys/user/max_inotify_instances && exec \"$0\" __few {most}");
        let mut limited = std::process::Command::new("unshare");
        limited.args(["-Ur", "bash", "-c", &script]).arg(std::env::current_exe().unwrap()).output().unwrap()
    };
    for most in [0, 1] {
        let ended = few(most);
        assert!(ended.status.success(), "{most}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// Judges two contracts at once, each of which puts back what it exchanged, in a process that may have none or one instance.
pub fn few_main(most: &str) {
    let (one, two) = (Place::repository(), Place::repository());
    let exchange = "mv .git .real && cp -r .real .git && git status && rm -rf .git && mv .real .git";
    let swap = "mv tests away && mv away tests";
    let judged = |place: &Place, command: &str| {
        let baseline = Arc::new(Baseline::take(&place.work(), ["tests/check.sh"], []).unwrap());
        let (runner, contract) = (place.runner(), contract(command, Duration::from_secs(60)));
        async move { runner.evaluate(&contract, &baseline, &mut |_, _| (), pending()).await.found }
    };
    let found = block_on(async { tokio::join!(judged(&one, exchange), judged(&two, swap)) });
    for found in <[HarnessResult; 2]>::from(found) {
        let HarnessResult::Nothing(why) = found else { panic!("{most}: {found:?}") };
        let is_told = match most {
            "0" => {
                matches!(&why, Inconclusive::ToolMissing { what } if what.contains("fs.inotify.max_user_instances"))
            }
            _ => matches!(&why, Inconclusive::Unstable { .. }),
        };
        assert!(is_told, "{most}: {why:?}");
    }
}
