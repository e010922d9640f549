//! B6: where planctl has no file left, a command waits for one.

use std::fs::File;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_harness::End;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::support::{block_on, script, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![b6_a_command_waits_until_there_are_files_for_it]
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
