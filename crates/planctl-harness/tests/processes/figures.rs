//! The cost of the way through the helper; run with `--ignored --nocapture`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::Tier;
use planctl_harness::{Baseline, Command, ContractRunner};

use super::sandbox::{Ground, offered};
use super::support::{block_on, run, spawner};

pub fn tests() -> Vec<Trial> {
    let cost = || {
        cost_of_a_spawn();
        Ok(())
    };
    let rate = || {
        rate_of_fifty_at_once();
        Ok(())
    };
    vec![
        Trial::test("figures::cost_of_a_spawn", cost).with_ignored_flag(true),
        Trial::test("figures::cost_of_a_gate", || {
            cost_of_a_gate();
            Ok(())
        })
        .with_ignored_flag(true),
        Trial::test("figures::cost_of_each_tier", || {
            cost_of_each_tier();
            Ok(())
        })
        .with_ignored_flag(true),
        Trial::test("figures::five_gigabytes_of_output", || {
            five_gigabytes_of_output();
            Ok(())
        })
        .with_ignored_flag(true),
        Trial::test("figures::rate_of_fifty_at_once", rate).with_ignored_flag(true),
    ]
}

const ROUNDS: usize = 2000;

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

fn cost_of_a_spawn() {
    let cases: [(&str, &[&str]); 2] =
        [("true", &["/usr/bin/true"]), ("bash", &["/bin/bash", "--noprofile", "--norc", "-p", "-c", "true"])];
    block_on(async {
        let spawner = spawner();
        for (name, arguments) in cases {
            let (mut direct, mut through) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS + 50 {
                let started = Instant::now();
                let output = tokio::process::Command::new(arguments[0])
                    .args(&arguments[1..])
                    .env_clear()
                    .env("PATH", "/usr/bin:/bin")
                    .stdin(std::process::Stdio::null())
                    .process_group(0)
                    .output()
                    .await
                    .unwrap();
                assert!(output.status.success());
                let direct_time = started.elapsed();
                let mut command = Command::new(arguments, "/");
                command.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
                command.deadline = Some(Duration::from_secs(10));
                let started = Instant::now();
                run(&spawner, &command).await;
                if round >= 50 {
                    direct.push(direct_time);
                    through.push(started.elapsed());
                }
            }
            let (direct_50, through_50) = (percentile(&mut direct, 0.5), percentile(&mut through, 0.5));
            let (direct_95, through_95) = (percentile(&mut direct, 0.95), percentile(&mut through, 0.95));
            eprintln!(
                "{name}: direct p50 {direct_50:?} p95 {direct_95:?}; helper p50 {through_50:?} p95 {through_95:?}"
            );
        }
    });
}

fn rate_of_fifty_at_once() {
    let arguments = ["/bin/bash", "--noprofile", "--norc", "-p", "-c", "true"];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let spawner = spawner();
        for (name, through_helper) in
            [("direct", false), ("helper", true), ("direct", false), ("helper", true)]
        {
            let started = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..50 {
                let spawner = spawner.clone();
                tasks.spawn(async move {
                    for _ in 0..20 {
                        if through_helper {
                            let mut command = Command::new(arguments, "/");
                            command.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
                            run(&spawner, &command).await;
                        } else {
                            let mut command = tokio::process::Command::new(arguments[0]);
                            command.args(&arguments[1..]).env_clear().stdin(std::process::Stdio::null());
                            command.process_group(0).output().await.unwrap();
                        }
                    }
                });
            }
            tasks.join_all().await;
            eprintln!("{name}: {:.0} spawns/s", 1000.0 / started.elapsed().as_secs_f64());
        }
    });
}

fn five_gigabytes_of_output() {
    let started = Instant::now();
    let command = super::support::script(
        "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 5000000000",
    );
    let mut command = command;
    command.deadline = None;
    let finished = block_on(async { run(&spawner(), &command).await });
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
    eprintln!("{} bytes in {:?}; {most}", finished.stdout.bytes, started.elapsed());
}

fn cost_of_a_gate() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("test.sh"), "exit 0").unwrap();
    let runner = ContractRunner::new(spawner(), folder.path(), None, []).unwrap();
    let contract = super::support::contract("true", Duration::from_secs(10));
    let protected = Baseline::take(folder.path(), ["test.sh"], []).unwrap();
    for (name, baseline) in [("nothing", Baseline::default()), ("one file", protected)] {
        let baseline = Arc::new(baseline);
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| Duration::ZERO).collect();
        block_on(async {
            for time in &mut times {
                let started = Instant::now();
                runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()).await;
                *time = started.elapsed();
            }
        });
        let (p50, p95) = (percentile(&mut times, 0.5), percentile(&mut times, 0.95));
        eprintln!("a gate with {name} protected: p50 {p50:?} p95 {p95:?}");
    }
}

/// Measures the time that isolation adds to a bash that does nothing; the tiers take turns, so that all see the same
/// machine.
fn cost_of_each_tier() {
    let ground = Ground::new();
    let tiers: Vec<Tier> = [Tier::SameUser].into_iter().chain(offered()).collect();
    let mut times = vec![Vec::new(); tiers.len()];
    block_on(async {
        let spawner = spawner();
        for round in 0..ROUNDS / 2 {
            for (tier, times) in tiers.iter().zip(&mut times) {
                let command = ground.confined(*tier, "true");
                let started = Instant::now();
                run(&spawner, &command).await;
                if round >= 20 {
                    times.push(started.elapsed());
                }
            }
        }
    });
    for (tier, times) in tiers.iter().zip(&mut times) {
        eprintln!("tier {tier:2}: p50 {:?} p95 {:?}", percentile(times, 0.5), percentile(times, 0.95));
    }
}
