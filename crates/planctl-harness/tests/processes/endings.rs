//! How a command may end, and what is said of it.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::{NodeId, RunId};
use planctl_harness::{Command, End, Input, Spawner, Stage, Stream, TreeName};

use super::support::{alive, block_on, eventually, marked, run, run_script, script, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a_command_exits_and_both_streams_are_there,
        a_signal_is_not_an_exit,
        a_missing_program_and_a_missing_directory_are_told_apart,
        a_program_is_found_in_the_commands_own_path,
        a20_the_deadline_ends_it_within_a_second,
        a20_term_is_tried_before_kill,
        a20_a_stopped_command_is_ended_at_the_deadline,
        silence_ends_it,
        a_cancel_ends_it,
        a_dropped_future_ends_it,
        a21_a_flood_is_counted_and_both_ends_are_kept,
        a21_output_over_the_cap_ends_it,
        a21_memory_stays_small_under_a_flood,
        b10_10_a_command_that_prints_without_end_is_held_up_by_its_pipe,
        b10_12_the_longest_time_is_as_good_as_none,
        a23_nobody_can_ask_for_input,
        input_arrives_whole_and_then_ends,
        input_that_nobody_reads_does_no_harm,
        an_inherited_pipe_does_not_hang_us,
        the_environment_is_only_what_was_given,
        no_descriptor_but_three_is_inherited,
        the_umask_is_kept_and_signals_are_default,
        a22_the_largest_file_is_limited,
        many_at_once,
        a_helper_that_died_is_replaced,
        a_lost_helper_ends_the_tree_and_says_so,
        a_lost_guardian_ends_the_tree_and_says_so,
        a_guardian_whose_helper_died_as_its_command_ended_serves_no_other,
        a_stopped_guardian_ends_the_tree_and_says_so,
        p9_a_lock_is_free_when_the_end_is_reported_and_not_before,
        p9_a_tree_with_a_name_is_the_only_one_and_ends_when_asked_for_the_name,
        a_large_request_arrives,
        usage_is_measured,
    ]
}

fn b10_10_a_command_that_prints_without_end_is_held_up_by_its_pipe() {
    let mut command = script("echo first >&2; timeout 2 yes; echo last >&2");
    command.kept_bytes = 100;
    let finished = block_on(run(&spawner(), &command));
    assert_eq!(finished.end, End::Exited(0));
    // 256 MiB in a second, 64 MiB at once, and a little more for a machine that is busy.
    let most = (2 * 256 + 64 + 100) << 20;
    eprintln!("{} MiB in two seconds", finished.stdout.bytes >> 20);
    assert!((1 << 20..most).contains(&finished.stdout.bytes), "{}", finished.stdout.bytes);
    assert_eq!(finished.stderr.head, b"first\nlast\n");
}

fn b10_12_the_longest_time_is_as_good_as_none() {
    let mut command = script("sleep 0.1; exit 3");
    command.deadline = Some(Duration::MAX);
    command.idle_timeout = Some(Duration::MAX);
    command.grace = Duration::MAX;
    assert_eq!(block_on(run(&spawner(), &command)).end, End::Exited(3));
}

fn a_command_exits_and_both_streams_are_there() {
    let finished = run_script("echo out; echo err >&2; exit 7");
    assert_eq!(finished.end, End::Exited(7));
    assert_eq!(finished.stdout.head, b"out\n");
    assert_eq!(finished.stderr.head, b"err\n");
    assert_eq!((finished.stragglers, finished.survivors), (0, 0));
}

fn a_signal_is_not_an_exit() {
    assert_eq!(run_script("kill -9 $$").end, End::Signalled(9));
    assert_eq!(run_script("exit 137").end, End::Exited(137));
}

fn a_missing_program_and_a_missing_directory_are_told_apart() {
    block_on(async {
        let spawner = spawner();
        let finished = run(&spawner, &Command::new(["/nowhere/bash"], "/")).await;
        assert_eq!(finished.end, End::NotStarted { stage: Stage::Execute, errno: 2 });
        let finished = run(&spawner, &Command::new(["/bin/bash"], "/nowhere")).await;
        assert_eq!(finished.end, End::NotStarted { stage: Stage::Directory, errno: 2 });
        let finished = run(&spawner, &Command::new(["no-such-program"], "/")).await;
        assert_eq!(finished.end, End::NotStarted { stage: Stage::Execute, errno: 2 });
        // The same guardian serves the next one.
        assert_eq!(run(&spawner, &script("exit 3")).await.end, End::Exited(3));
    });
}

fn a_program_is_found_in_the_commands_own_path() {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tool");
    std::fs::write(&tool, "#!/bin/sh\necho found\n").unwrap();
    std::os::unix::fs::chown(&tool, None, None).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(["tool"], "/");
    command.environment = vec![("PATH".into(), format!("relative:{}", folder.path().display()).into())];
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.stdout.head, b"found\n");
}

fn a20_the_deadline_ends_it_within_a_second() {
    let mut command = script("trap '' TERM; while :; do sleep 999; done");
    command.deadline = Some(Duration::from_millis(300));
    command.grace = Duration::from_millis(200);
    let started = Instant::now();
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.end, End::TimedOut);
    assert!(
        started.elapsed() >= Duration::from_millis(500) && started.elapsed() < Duration::from_millis(1500)
    );
}

fn a20_term_is_tried_before_kill() {
    let mut command = script("trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    command.deadline = Some(Duration::from_millis(300));
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.end, End::TimedOut, "an exit after our TERM is no success");
    assert_eq!(finished.stdout.head, b"ready\nasked\n");
}

fn a20_a_stopped_command_is_ended_at_the_deadline() {
    let (mut command, mark) = marked(script("kill -STOP $$"));
    command.deadline = Some(Duration::from_millis(200));
    command.grace = Duration::from_millis(100);
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(alive(&mark), [0_i32; 0]);
}

fn silence_ends_it() {
    let mut command = script("echo one; sleep 0.1; echo two; sleep 999");
    command.idle_timeout = Some(Duration::from_millis(400));
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.end, End::IdleTimedOut);
    assert_eq!(finished.stdout.head, b"one\ntwo\n");
}

fn a_cancel_ends_it() {
    let (command, mark) = marked(script("echo started; sleep 999"));
    let finished = block_on(async {
        let (started, wait) = tokio::sync::oneshot::channel();
        let mut started = Some(started);
        let mut watch = |_: Stream, _: &[u8]| {
            if let Some(started) = started.take() {
                started.send(()).unwrap();
            }
        };
        spawner()
            .run(&command, &mut watch, async {
                wait.await.unwrap();
            })
            .await
            .unwrap()
    });
    assert_eq!(finished.end, End::Cancelled);
    assert_eq!(alive(&mark), [0_i32; 0]);
}

fn a_dropped_future_ends_it() {
    let (command, mark) = marked(script("setsid sleep 999 & sleep 999"));
    block_on(async {
        let spawner = spawner();
        let running = run(&spawner, &command);
        assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
        eventually("the tree is dead", Duration::from_secs(5), || alive(&mark).is_empty());
        assert_eq!(run(&spawner, &script("exit 3")).await.end, End::Exited(3));
    });
}

fn a21_a_flood_is_counted_and_both_ends_are_kept() {
    let finished = run_script("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last");
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.bytes, 200_000_012);
    assert!(finished.stdout.head.starts_with(b"first\nxxx") && finished.stdout.tail.ends_with(b"x\nlast\n"));
    assert_eq!((finished.stdout.head.len(), finished.stdout.tail.len()), (65536, 65536));
}

fn a21_output_over_the_cap_ends_it() {
    let (mut command, mark) = marked(script("yes"));
    command.output_bytes_max = Some(1_000_000);
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.end, End::Flooded);
    assert_eq!(alive(&mark), [0_i32; 0]);
}

fn a21_memory_stays_small_under_a_flood() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = resident();
    let mut largest = 0;
    block_on(async {
        let command = script("head -c 200000000 /dev/zero");
        let mut watch = |_: Stream, _: &[u8]| largest = largest.max(resident());
        spawner().run(&command, &mut watch, std::future::pending()).await.unwrap();
    });
    assert!(largest < before + 8 * 1024, "{before} KiB before, {largest} KiB at most");
}

fn a23_nobody_can_ask_for_input() {
    assert_eq!(run_script("read answer").end, End::Exited(1));
    assert_eq!(run_script("read answer < /dev/tty").end, End::Exited(1));
}

fn input_arrives_whole_and_then_ends() {
    for size in [0, 10, 1_000_000] {
        let mut command = script("cat | wc -c");
        command.input = Input::Bytes(vec![b'x'; size]);
        let finished = block_on(async { run(&spawner(), &command).await });
        assert_eq!(String::from_utf8_lossy(&finished.stdout.head).trim(), size.to_string());
    }
}

fn input_that_nobody_reads_does_no_harm() {
    let mut command = script("exit 4");
    command.input = Input::Bytes(vec![b'x'; 1_000_000]);
    assert_eq!(block_on(async { run(&spawner(), &command).await }).end, End::Exited(4));
}

fn an_inherited_pipe_does_not_hang_us() {
    let started = Instant::now();
    let finished = run_script("setsid sleep 999 & echo said");
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.head, b"said\n");
    assert_eq!(finished.stragglers, 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

fn the_environment_is_only_what_was_given() {
    let mut command = Command::new(["/usr/bin/env"], "/");
    command.environment = vec![("A".into(), "1".into()), ("B".into(), "two words".into())];
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.stdout.head, b"A=1\nB=two words\n");
}

fn no_descriptor_but_three_is_inherited() {
    let lock = std::sync::Arc::new(tempfile::tempfile().unwrap().into());
    let mut command = Command::new(["/bin/ls", "/proc/self/fd"], "/");
    command.locks = vec![lock];
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.stdout.head, b"0\n1\n2\n3\n", "the last is the folder that ls reads");
}

fn the_umask_is_kept_and_signals_are_default() {
    let umask = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = umask.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap().to_owned();
    let finished = run_script("grep -E '^(Umask|SigBlk|SigIgn)' /proc/self/status");
    let text = String::from_utf8_lossy(&finished.stdout.head).into_owned();
    let expected = format!("Umask:\t{umask}\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    assert_eq!(text, expected);
}

fn a22_the_largest_file_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = script("head -c 2000000 /dev/zero > large; stat -c %s large");
    command.directory = folder.path().into();
    command.limits.file_size = Some(1_048_576);
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.stdout.head, b"1048576\n");
}

fn many_at_once() {
    block_on(async {
        let spawner = spawner();
        let mut running = Vec::new();
        for number in 0..40 {
            let spawner = spawner.clone();
            running.push(tokio::spawn(async move {
                let command = script(&format!("sleep 0.05; exit {number}"));
                spawner.run(&command, &mut |_, _| (), std::future::pending()).await.unwrap()
            }));
        }
        for (number, running) in running.into_iter().enumerate() {
            assert_eq!(running.await.unwrap().end, End::Exited(number as i32));
        }
    });
}

fn kill(pid: u32) {
    signal("-KILL", &pid.to_string());
}

fn signal(signal: &str, pid: &str) {
    assert!(std::process::Command::new("kill").args([signal, pid]).status().unwrap().success());
}

fn a_helper_that_died_is_replaced() {
    block_on(async {
        let spawner = spawner();
        assert_eq!(run(&spawner, &script("exit 3")).await.end, End::Exited(3));
        for _ in 0..3 {
            let helper = spawner.helper_id().unwrap();
            kill(helper);
            // As long as a guardian of the dead helper waits, it does either the whole run or nothing.
            while spawner.helper_id() == Some(helper) {
                let end = run(&spawner, &script("exit 4")).await.end;
                assert!(matches!(end, End::Exited(4) | End::HelperLost), "{end:?}");
            }
            assert_eq!(run(&spawner, &script("exit 5")).await.end, End::Exited(5));
        }
    });
}

/// Runs `script` and calls `then` with the first line it prints.
fn interrupted(spawner: &Spawner, text: &str, then: impl FnMut(&str) + Send) -> (End, String) {
    let (command, mark) = marked(script(text));
    let mut then = then;
    let mut watch = |_: Stream, chunk: &[u8]| then(String::from_utf8_lossy(chunk).trim());
    let finished =
        block_on(async { spawner.run(&command, &mut watch, std::future::pending()).await.unwrap() });
    (finished.end, mark)
}

fn a_lost_helper_ends_the_tree_and_says_so() {
    let spawner = spawner();
    let helper = spawner.helper_id().unwrap();
    let (end, mark) = interrupted(&spawner, "setsid sleep 999 & echo started; sleep 999", |_| kill(helper));
    assert_eq!(end, End::HelperLost);
    eventually("the tree is dead", Duration::from_secs(5), || alive(&mark).is_empty());
    assert_eq!(block_on(async { run(&spawner, &script("exit 5")).await }).end, End::Exited(5));
}

fn a_lost_guardian_ends_the_tree_and_says_so() {
    let spawner = spawner();
    let (end, mark) = interrupted(&spawner, "setsid sleep 999 & echo $PPID; sleep 999", |guardian| {
        kill(guardian.parse().unwrap());
    });
    assert_eq!(end, End::HelperLost);
    eventually("the tree is dead", Duration::from_secs(5), || alive(&mark).is_empty());
    assert_eq!(block_on(async { run(&spawner, &script("exit 5")).await }).end, End::Exited(5));
}

fn a_guardian_whose_helper_died_as_its_command_ended_serves_no_other() {
    let spawner = spawner();
    let helper = spawner.helper_id().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut guardian = String::new();
    let waits = format!("echo $$ $PPID; until [ -e {} ]; do sleep 0.01; done", go.display());
    let (end, _) = interrupted(&spawner, &waits, |line| {
        let Some((command, parent)) = line.split_once(' ') else { return };
        guardian = parent.to_owned();
        // It hears of the end of both at once. The helper would end a guardian that is stopped, so that one comes first.
        signal("-STOP", &helper.to_string());
        signal("-STOP", parent);
        kill(helper);
        std::fs::write(&go, "").unwrap();
        eventually("the command has ended", Duration::from_secs(10), || state_of(command) == Some('Z'));
        signal("-CONT", parent);
    });
    assert_eq!(end, End::Exited(0));
    eventually("the guardian has left", Duration::from_secs(10), || {
        matches!(state_of(&guardian), None | Some('Z'))
    });
    assert_eq!(block_on(async { run(&spawner, &script("exit 5")).await }).end, End::Exited(5));
}

/// Returns the state of a process by its letter; `None` where there is no such process.
fn state_of(pid: &str) -> Option<char> {
    let found = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    found.rsplit_once(") ")?.1.chars().next()
}

fn a_stopped_guardian_ends_the_tree_and_says_so() {
    let spawner = spawner();
    let (end, mark) = interrupted(&spawner, "setsid sleep 999 & echo; kill -STOP $PPID; sleep 999", |_| ());
    assert_eq!(end, End::HelperLost);
    eventually("the tree is dead", Duration::from_secs(5), || alive(&mark).is_empty());
}

fn p9_a_tree_with_a_name_is_the_only_one_and_ends_when_asked_for_the_name() {
    let (command, mark) = marked(script("setsid sleep 999 & echo; sleep 999"));
    let run_id = RunId::from_u128(u128::from(std::process::id()));
    let name = TreeName::of_agent(run_id, &NodeId::new("1"));
    let [first, second] = [spawner(), spawner()].map(|spawner| spawner.with_name(name.clone()));
    let other = spawner().with_name(TreeName::of_agent(run_id, &NodeId::new("2")));
    let begun = tokio::sync::Notify::new();
    let mut watch = |_: Stream, _: &[u8]| begun.notify_one();
    let asking = async {
        begun.notified().await;
        let refused = run(&second, &script("exit 5")).await.end;
        assert!(matches!(refused, End::NotStarted { stage: Stage::Name, .. }), "{refused:?}");
        assert_eq!(run(&other, &script("exit 5")).await.end, End::Exited(5));
        name.end_earlier_agent(|_| ()).await;
        assert!(alive(&mark).is_empty(), "the name was free before the tree was dead");
        assert_eq!(run(&second, &script("exit 5")).await.end, End::Exited(5));
    };
    let (finished, ()) =
        block_on(async { tokio::join!(first.run(&command, &mut watch, std::future::pending()), asking) });
    assert_eq!(finished.unwrap().end, End::HelperLost);
}

fn p9_a_lock_is_free_when_the_end_is_reported_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let taken = |state: &tempfile::TempDir| {
        planctl_harness::WorkspaceLock::try_take(state.path(), workspace.path()).unwrap()
    };
    let take = || taken(&folder);
    let spawner = spawner();
    for _ in 0..50 {
        // Other tests of this program fork at the same time, and for a moment their children have our descriptors.
        let mut lock = None;
        eventually("the lock is free", Duration::from_millis(100), || {
            lock = take();
            lock.is_some()
        });
        let lock = lock.unwrap();
        let mut command = script("setsid sleep 999 & echo");
        command.locks = lock.descriptors();
        drop(lock);
        let mut watch = |_: Stream, _: &[u8]| assert!(take().is_none() && taken(&elsewhere).is_none());
        let finished =
            block_on(async { spawner.run(&command, &mut watch, std::future::pending()).await.unwrap() });
        assert_eq!(finished.stragglers, 1);
        drop(command);
    }
}

fn a_large_request_arrives() {
    let mut command = script("echo ${#LARGE}");
    command.environment.push(("LARGE".into(), "x".repeat(100_000).into()));
    let finished = block_on(async { run(&spawner(), &command).await });
    assert_eq!(finished.stdout.head, b"100000\n");
}

fn usage_is_measured() {
    let finished = run_script("for ((i = 0; i < 200000; i++)); do :; done");
    assert!(finished.user > Duration::from_millis(10) && finished.max_rss_kib > 1000, "{finished:?}");
    assert!(finished.duration >= finished.user / 2);
}
