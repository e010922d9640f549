//! Tier 2: users of a command's own. Run where the host offers it: as root, outside of user namespaces.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use nix::libc;
use planctl_engine::{Contract, HarnessResult, RedFirst, Resource, Tier, Verdict};
use planctl_harness::{
    Baseline, Command, Confinement, ContractRunner, End, Finished, Isolation, ResourceLimits, Stage,
    digest_of,
};

use super::{Ground, offered, text};
use crate::processes::support::{alive, block_on, eventually, marked, run, script, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        tier_2_what_only_root_may_read_cannot_be_read,
        tier_2_files_belong_to_the_owner_of_the_workspace,
        tier_2_a_workspace_in_a_folder_of_roots_alone_is_reached,
        tier_2_mounts_inside_do_not_show_on_the_host,
        tier_2_two_commands_have_different_ids_until_they_are_dead,
        tier_2_the_kernel_holds_a_fork_bomb,
        tier_2_a_program_of_roots_alone_is_named_as_out_of_reach,
    ]
}

/// Says whether it can be tested here; [`offered`] says why not.
fn is_offered() -> bool {
    offered().contains(&Tier::OwnUser)
}

/// A folder that every user can enter and that is the host's own inside, unlike `/tmp`.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    set_mode(folder.path(), 0o755);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A command in a workspace beneath the folder, which it may write.
fn command_in(folder: &Path, tier: Tier, text: &str) -> Command {
    let workspace = folder.canonicalize().unwrap().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let mut command = script(text);
    command.confinement = Some(Confinement { writable: vec![workspace.clone()], ..Confinement::new(tier) });
    command.directory = workspace;
    command
}

fn finish(command: &Command) -> Finished {
    block_on(run(&spawner(), command))
}

fn tier_2_what_only_root_may_read_cannot_be_read() {
    if !is_offered() {
        return;
    }
    let folder = open_folder();
    for (name, mode) in [("everybody", 0o644), ("owner", 0o600), ("group", 0o640)] {
        std::fs::write(folder.path().join(name), name).unwrap();
        set_mode(&folder.path().join(name), mode);
    }
    std::fs::create_dir(folder.path().join("closed")).unwrap();
    std::fs::write(folder.path().join("closed/within"), "within").unwrap();
    set_mode(&folder.path().join("closed"), 0o700);
    let look = "for name in everybody owner group closed/within; do cat ../$name && echo; done
        cat /etc/shadow > /dev/null && echo shadow; id -u; kill -0 1 && ls /proc/1/fd > /dev/null && echo traced; exit 0";
    let said = |tier| text(&finish(&command_in(folder.path(), tier, look))).0;
    // There root keeps its rights over files: the look itself works.
    assert!(said(Tier::Namespaces).starts_with("everybody\nowner\ngroup\nwithin\nshadow\n0\n"));
    assert_eq!(said(Tier::OwnUser), "everybody\n0\n");
}

fn tier_2_files_belong_to_the_owner_of_the_workspace() {
    if !is_offered() {
        return;
    }
    let git = "git -c user.name=a -c user.email=a@b";
    let work = format!(
        "set -e
        test $(stat -c %u:%g .) = 0:0; cat theirs; echo changed >> theirs
        echo new > new; mkdir folder; ln -s new link; chown 7:8 folder; test $(stat -c %u:%g folder) = 7:8
        git init -q .; git add new; {git} commit -qm one; git status -s | wc -l
        echo said > /dev/stderr; echo shared > /dev/shm/x; echo private > /tmp/x; test ! -w /etc/passwd"
    );
    // Root, a person, and somebody beyond the ids that a command has.
    for owner in [0, 4242, 1_000_000] {
        let folder = open_folder();
        let mut command = command_in(folder.path(), Tier::OwnUser, &work);
        let workspace = command.directory.clone();
        std::fs::write(workspace.join("theirs"), "of root\n").unwrap();
        command.limits.open_files = Some(256);
        chown(&workspace, Some(owner), Some(owner)).unwrap();
        let finished = finish(&command);
        assert_eq!(finished.end, End::Exited(0), "{owner}: {:?}", text(&finished));
        assert_eq!(text(&finished), ("of root\n2\n".into(), "said\n".into()), "{owner}");
        let owner_of = |name: &str| {
            let found = workspace.join(name).symlink_metadata().unwrap();
            (found.uid(), found.gid())
        };
        for name in ["new", "link", ".git/HEAD"] {
            assert_eq!(owner_of(name), (owner, owner), "{owner}: {name}");
        }
        assert_eq!((owner_of("folder"), owner_of("theirs")), ((7, 8), (0, 0)), "{owner}");
    }
}

fn tier_2_a_workspace_in_a_folder_of_roots_alone_is_reached() {
    if !is_offered() {
        return;
    }
    let folder = open_folder();
    let closed = folder.path().join("closed/deeper");
    std::fs::create_dir_all(&closed).unwrap();
    std::fs::write(closed.join("secret"), "x").unwrap();
    let mut command = command_in(&closed, Tier::OwnUser, "echo x > made; ls -A ..; cat shown; pwd");
    let shown = command.directory.join("shown");
    std::fs::write(&shown, "shown\n").unwrap();
    set_mode(&shown, 0o600);
    command.confinement.as_mut().unwrap().shown.push(shown);
    for path in [folder.path().join("closed"), closed.clone()] {
        set_mode(&path, 0o700);
    }
    let finished = finish(&command);
    let expected = format!("workspace\nshown\n{}\n", command.directory.display());
    assert_eq!(text(&finished), (expected, String::new()), "{:?}", finished.end);
    assert!(command.directory.join("made").exists());
}

fn tier_2_mounts_inside_do_not_show_on_the_host() {
    if !is_offered() {
        return;
    }
    let ground = Ground::new();
    let mut command = ground.confined(Tier::OwnUser, "touch up; sleep 999");
    command.deadline = Some(Duration::from_secs(20));
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    block_on(async {
        let spawner = spawner();
        let look = async {
            while !ground.path("workspace/up").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            mounts()
        };
        tokio::select! {
            finished = run(&spawner, &command) => panic!("{finished:?} {:?}", text(&finished)),
            mounts = look => assert!(!mounts.contains(ground.path("").to_str().unwrap()), "{mounts}"),
        }
    });
}

/// Reads the first id that a process's users have on the host.
fn first_id(process: i32) -> u64 {
    let map = std::fs::read_to_string(format!("/proc/{process}/uid_map")).unwrap();
    let fields: Vec<u64> = map.split_ascii_whitespace().map(|field| field.parse().unwrap()).collect();
    assert_eq!((fields[0], fields[2], fields.len()), (0, 65_536, 3), "{map}");
    fields[1]
}

fn field_of(process: i32, name: &str) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Says whether the range that begins with this id is free, by taking it for a moment.
fn is_free(first: u64) -> bool {
    let file = std::fs::OpenOptions::new().write(true).open("/run/planctl-users").unwrap();
    // SAFETY: all-zero is a valid lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_start = i64::try_from((first - 0x7800_0000) / 65_536).unwrap();
    lock.l_len = 1;
    // SAFETY: the descriptor is open and the structure is the kernel's own.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_OFD_SETLK, &raw const lock) == 0 }
}

fn tier_2_two_commands_have_different_ids_until_they_are_dead() {
    if !is_offered() {
        return;
    }
    let folder = open_folder();
    let (one, one_mark) = marked(command_in(folder.path(), Tier::OwnUser, "setsid sleep 999 & sleep 999"));
    let (other, other_mark) = marked(command_in(folder.path(), Tier::OwnUser, "sleep 999"));
    let shells = || (alive(&one_mark).first().copied(), alive(&other_mark).first().copied());
    block_on(async {
        let spawner = spawner();
        let spawner = &spawner;
        let running = async { tokio::join!(run(spawner, &one), run(spawner, &other)) };
        let look = async {
            let (one, other) = loop {
                if let (Some(one), Some(other)) = shells() {
                    break (one, other);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            let (one_id, other_id) = (first_id(one), first_id(other));
            assert_ne!(one_id, other_id);
            assert_eq!(u64::try_from(field_of(one, "Uid:")).unwrap(), one_id);
            assert!(!is_free(one_id) && !is_free(other_id));
            // The guardian holds the ids: it is the parent of the first process of the namespaces.
            let guardian = field_of(field_of(one, "PPid:"), "PPid:");
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(guardian), nix::sys::signal::Signal::SIGKILL)
                .unwrap();
            eventually("its ids are free", Duration::from_secs(10), || is_free(one_id));
            eventually("its processes are dead", Duration::from_secs(10), || alive(&one_mark).is_empty());
            assert!(!is_free(other_id));
            assert_eq!(alive(&other_mark), [other]);
        };
        // A process that still runs ends with the helper.
        tokio::select! {
            finished = running => panic!("{finished:?}"),
            () = look => {}
        }
    });
    eventually("all are dead", Duration::from_secs(10), || alive(&other_mark).is_empty());
}

fn tier_2_the_kernel_holds_a_fork_bomb() {
    if is_offered() {
        the_kernel_holds_a_fork_bomb(Tier::OwnUser);
    }
}

pub fn the_kernel_holds_a_fork_bomb(tier: Tier) {
    let attacker = std::env::current_exe().unwrap();
    // Bounded ones first, of one user and of many, which the kernel alone holds; both limits hold the bomb.
    let by_guardian = End::OverLimit(Resource::Processes);
    for (attack, end) in
        [("start_many", End::Exited(0)), ("start_many_as_others", End::Exited(0)), ("fork_bomb", by_guardian)]
    {
        let ground = Ground::new();
        let text_of = format!("{} __attack {attack}", attacker.display());
        let (mut command, mark) = marked(ground.confined(tier, &text_of));
        command.limits = ResourceLimits { processes: Some(64), ..ResourceLimits::default() };
        let finished = finish(&command);
        let made = std::fs::metadata(ground.path("workspace/made")).map_or(0, |made| made.len());
        assert_eq!(
            (finished.end.clone(), finished.survivors),
            (end, 0),
            "{attack}: {made} {:?}",
            text(&finished)
        );
        // The first process of the namespaces and the attacker count, too.
        assert!(made <= 126, "{attack}: {made}");
        assert!(made >= 120 || attack == "fork_bomb", "{attack}: {made}");
        assert_eq!(alive(&mark), [0_i32; 0], "{attack}");
    }
}

fn tier_2_a_program_of_roots_alone_is_named_as_out_of_reach() {
    if !is_offered() {
        return;
    }
    let folder = open_folder();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let program = closed.join("program");
    std::fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
    for path in [&closed, &program] {
        set_mode(path, 0o700);
    }
    let mut command = command_in(folder.path(), Tier::OwnUser, "");
    command.arguments = vec![program.clone().into()];
    let end = finish(&command).end;
    assert_eq!(end, End::NotStarted { stage: Stage::Execute, errno: libc::EACCES });

    let scratch = tempfile::tempdir().unwrap();
    let workspace: PathBuf = command.directory;
    let isolation = Isolation { tier: Tier::OwnUser, ..Isolation::default() };
    let runner = ContractRunner::new(spawner().with_scratch(scratch.path()), &workspace, None, []).unwrap();
    let runner = runner.with_isolation(isolation);
    for (text, verdict) in
        [(program.display().to_string(), Verdict::Failed), ("true".into(), Verdict::Passed)]
    {
        let contract = Contract {
            digest: digest_of(text.as_bytes()),
            command: text,
            expect: 0,
            timeout: Duration::from_secs(20),
            guard: false,
            red_first: RedFirst::Off,
            min_tests: None,
            judge: None,
        };
        let baseline = std::sync::Arc::new(Baseline::default());
        let found = block_on(async {
            runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()).await.found
        });
        let HarnessResult::Evidence(evidence) = found else { panic!("{found:?}") };
        assert_eq!((evidence.isolation, contract.judge(&evidence)), (Tier::OwnUser, Some(verdict)));
        let is_hinted = evidence.stderr.tail.contains("isolation tier 2 can't reach it");
        assert_eq!(is_hinted, verdict == Verdict::Failed, "{evidence:?}");
    }
}
