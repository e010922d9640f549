//! The time that isolation adds to one command: `bash -c true` through the helper, each tier beside tier 0 of the same moments.

use std::ffi::OsString;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use planctl_engine::Tier;
use planctl_harness::{Command, Confinement, End, Network, Spawner, credentials};

/// How often each command is started.
const ROUNDS: usize = 400;

pub async fn measure(spawner: &Spawner) {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let offered = planctl_harness::probe_isolation(spawner).await.unwrap().tier;
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    // So many folders side by side, of which the first are workspaces of other plans.
    let workspaces = |count: usize, folders: usize| -> Vec<PathBuf> {
        let paths = (0..folders).map(|number| place.join(format!("{count} of {folders}/{number}")));
        let paths: Vec<PathBuf> = paths.collect();
        paths.iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        paths.into_iter().take(count).collect()
    };
    println!("{:<52} {:>8} {:>8} {:>10}", "bash -c true, with what is hidden", "p50 ms", "p95 ms", "over 0");
    for (name, hidden) in [
        ("nothing", Vec::new()),
        ("credentials", credentials(&home, None)),
        ("credentials, 10 workspaces", [credentials(&home, None), workspaces(10, 10)].concat()),
        (
            "credentials, 10 workspaces among 200 folders",
            [credentials(&home, None), workspaces(10, 200)].concat(),
        ),
        ("credentials, 200 workspaces", [credentials(&home, None), workspaces(200, 200)].concat()),
    ] {
        measure_hidden(spawner, &place, name, &hidden, offered).await;
    }
}

async fn measure_hidden(spawner: &Spawner, place: &Path, name: &str, hidden: &[PathBuf], offered: Tier) {
    let workspace = place.join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let commands: Vec<Command> = Tier::ALL
        .into_iter()
        .filter(|tier| *tier <= offered)
        .map(|tier| {
            let mut command =
                Command::new(["/bin/bash", "--noprofile", "--norc", "-p", "-c", "true"], &workspace);
            command.environment = vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
            command.confinement = (tier != Tier::SameUser).then(|| Confinement {
                writable: vec![workspace.clone()],
                hidden: hidden.to_vec(),
                network: Network::Loopback,
                ..Confinement::new(tier)
            });
            command
        })
        .collect();
    let mut spans: Vec<Vec<Duration>> = vec![Vec::new(); commands.len()];
    for _ in 0..ROUNDS {
        for (command, spans) in commands.iter().zip(&mut spans) {
            let begun = Instant::now();
            let finished = spawner.run(command, &mut |_, _| (), pending()).await.unwrap();
            spans.push(begun.elapsed());
            assert_eq!(finished.end, End::Exited(0));
        }
    }
    let mut base = None;
    for (tier, spans) in Tier::ALL.into_iter().zip(&mut spans) {
        spans.sort();
        let ms = |part: usize| spans[spans.len() * part / 100].as_secs_f64() * 1e3;
        let (p50, p95) = (ms(50), ms(95));
        let over = p50 - *base.get_or_insert(p50);
        println!("{:<52} {p50:>8.2} {p95:>8.2} {over:>+10.2}", format!("{name}, tier {tier}"));
    }
}
