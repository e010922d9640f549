//! The host as confined workers and contracts see it, through the whole program.

use crate::fixture::{Fixture, git, plan};

/// The tiers that confine and that this host offers.
fn offered(fixture: &Fixture) -> impl Iterator<Item = &'static str> {
    ["1a", "1b"].into_iter().filter(|tier| {
        let said = fixture.command(&["doctor"]).env("PLANCTL_ISOLATION", tier).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains(&format!("isolation        tier {tier}"))
    })
}

#[test]
fn other_workspaces_are_not_seen_by_a_confined_worker_or_contract() {
    let fixture = Fixture::new();
    // At tier 1b nothing of the host's /tmp is there anyway.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), text).unwrap();
    };
    let seen = || std::fs::read_to_string(at("blog/seen.txt")).unwrap();
    write("shop/secret.txt", "of the shop\n");
    write("tools/worker.sh", "cat ../shop/secret.txt > seen.txt 2>/dev/null; true\n");
    for (folder, contract) in [
        ("shop", "test -e seen.txt"),
        ("tools", "test -e seen.txt"),
        ("blog", "test -e seen.txt && ! cat ../shop/secret.txt"),
    ] {
        let step = ("Write `seen.txt`", contract, "escalate");
        write(&format!("{folder}/p.md"), &plan(folder, "5 minutes", &[step]));
        git(&at(folder), &["init", "--quiet"]);
    }
    let run = |folder: &str, tier: &str, worker: &str| {
        let place = at(folder).display().to_string();
        let words =
            ["-C", &place, "plan", "run", "p.md", "--approve", "--no-wait", "--again", "--exec", worker];
        let said = fixture.command(&words).env("PLANCTL_ISOLATION", tier).output().unwrap();
        (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    // The known folders: the shop, and the folder of a script that the worker's command names.
    for folder in ["shop", "tools"] {
        let (code, said) = run(folder, "0", "touch seen.txt");
        assert_eq!(code, Some(0), "{said}");
    }
    let worker = format!("bash {}", at("tools/worker.sh").canonicalize().unwrap().display());
    for tier in offered(&fixture) {
        let (code, said) = run("blog", tier, &worker);
        assert_eq!(code, Some(0), "tier {tier}: {said}");
        assert_eq!(seen(), "", "tier {tier}");
        std::fs::remove_file(at("blog/seen.txt")).unwrap();
    }
    let (code, said) = run("blog", "0", &worker);
    assert!(code == Some(3) && seen() == "of the shop\n", "{said}");
}
