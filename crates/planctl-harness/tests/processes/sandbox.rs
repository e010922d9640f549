//! Isolation tiers 1a and 1b with real processes: the work that is possible inside, and the attacks that each tier holds.
//!
//! The attacks are this very program (`__attack NAME`), so that they need no interpreter; each exits with 0 where it
//! got out. The table says for each tier whether it is held, and a test holds the table against the host.

mod attacks;
mod cgroups;
mod users;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::{HarnessResult, Inconclusive, Tier, Verdict};
use planctl_harness::{
    Baseline, Command, Confinement, ContractRunner, End, Finished, Isolation, Network, Offered, Spawner,
    agent_state, credentials, probe_isolation,
};

use super::gate_folders::{Place, exit_code};
use super::support::{alive, block_on, marked, run, script, spawner};
use crate::trials;

pub use attacks::attack_main;

pub fn tests() -> Vec<Trial> {
    let mut trials = trials![
        row_114_the_tiers_that_the_host_offers_are_found_by_trial,
        tier_1_a_command_works_in_its_workspace_as_ever,
        tier_1b_the_view_is_its_own,
        tier_1_loopback_serves_inside,
        tier_1_a_deadline_and_a_signal_end_it_as_ever,
        tier_1_what_cannot_be_held_is_not_started,
        a15_nothing_outlives_a_confined_command,
        a15_the_death_of_its_first_process_ends_all,
        attacks_are_held_as_the_table_says,
        cheat_48_code_under_test_cannot_swap_its_judge_at_any_tier,
        agents_have_their_own_state_and_no_other,
        a_contract_in_a_linked_worktree_finds_its_repository_in_a_hidden_workspace,
    ];
    let many = Trial::test("sandbox::a15_one_hundred_times_each", || {
        outlives(100);
        Ok(())
    });
    trials.push(many.with_ignored_flag(true));
    trials.extend(users::tests());
    trials.extend(cgroups::tests());
    trials
}

fn host() -> &'static Offered {
    static HOST: std::sync::OnceLock<Offered> = std::sync::OnceLock::new();
    HOST.get_or_init(|| block_on(async { probe_isolation(&spawner()).await.unwrap() }))
}

/// The tiers to test here; says so on standard error where one is not run.
pub fn offered() -> Vec<Tier> {
    let offered = host();
    let confined = || Tier::ALL.into_iter().filter(|tier| *tier > Tier::SameUser);
    for tier in confined().filter(|tier| *tier > offered.tier) {
        eprintln!("tier {tier} is not run: {:?}", offered.primitives);
    }
    confined().filter(|tier| *tier <= offered.tier).collect()
}

/// A workspace, and things around it that a command must not reach.
pub struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    pub fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground { folder };
        for name in ["workspace/tests", "home/.ssh", "home/.claude", "outside"] {
            std::fs::create_dir_all(ground.path(name)).unwrap();
        }
        for (name, text) in [
            ("workspace/tests/check.sh", "exit 1\n"),
            ("home/.ssh/id", "the key\n"),
            ("home/.netrc", "the password\n"),
            ("outside/victim", "untouched\n"),
        ] {
            std::fs::write(ground.path(name), text).unwrap();
        }
        ground
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Returns the confinement of a contract: the workspace writable, its judges not, credentials hidden, loopback alone.
    pub fn confinement(&self, tier: Tier) -> Confinement {
        let mut confinement = Confinement::new(tier);
        confinement.writable = vec![self.path("workspace")];
        confinement.read_only = vec![self.path("workspace/tests/check.sh")];
        confinement.pinned = vec![self.path("workspace/tests")];
        confinement.hidden = vec![self.path("home/.ssh"), self.path("home/.netrc")];
        // The private /tmp would hide what is to be attacked.
        confinement.shown = vec![self.path("home"), self.path("outside")];
        confinement.shown.extend(std::env::current_exe().unwrap().parent().map(Path::to_owned));
        confinement.network = Network::Loopback;
        confinement
    }

    pub fn confined(&self, tier: Tier, text: &str) -> Command {
        let mut command = script(text);
        command.directory = self.path("workspace");
        command.confinement = (tier > Tier::SameUser).then(|| self.confinement(tier));
        command
    }
}

fn text(finished: &Finished) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&finished.stdout.head), text(&finished.stderr.head))
}

fn row_114_the_tiers_that_the_host_offers_are_found_by_trial() {
    let offered = block_on(async { probe_isolation(&spawner()).await.unwrap() });
    let named: Vec<&str> = offered.primitives.iter().map(|primitive| primitive.name).collect();
    for name in ["Landlock", "seccomp", "user namespaces", "cgroup v2 limits"] {
        assert!(named.contains(&name), "{named:?}");
    }
    assert!(offered.primitives.iter().all(|primitive| !primitive.finding.is_empty()));
    let holds = |name: &str| {
        offered.primitives.iter().any(|primitive| primitive.name.starts_with(name) && primitive.is_there)
    };
    assert_eq!(offered.tier >= Tier::Landlock, holds("tier 1a"), "{offered:?}");
    assert_eq!(offered.tier >= Tier::Namespaces, holds("tier 1b"), "{offered:?}");
    assert_eq!(offered.tier >= Tier::OwnUser, holds("tier 2"), "{offered:?}");
}

fn tier_1_a_command_works_in_its_workspace_as_ever() {
    let work = "set -e
        echo new > new; mkdir -p a/b; mv new a/b/; ln -s b a/link; ln a/b/new a/hard; rm a/link
        cat <<< here > /dev/null; cat <(echo substituted) > /dev/null; echo said; echo more >&2
        d=$(mktemp -d -p .); rm -r $d; head -c 3 /dev/urandom | wc -c; (exit 0) & wait
        test \"$(cat /proc/self/comm)\" = cat; ulimit -n > /dev/null; test -r /etc/passwd
        git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git status -s | wc -l
        sh -c 'exit 3' || test $? = 3; exit 7";
    let spawner = spawner();
    for tier in offered() {
        let ground = Ground::new();
        let finished = block_on(run(&spawner, &ground.confined(tier, work)));
        assert_eq!(finished.end, End::Exited(7), "{tier}: {:?}", text(&finished));
        assert_eq!(text(&finished), ("said\n3\n2\n".into(), "more\n".into()), "{tier}");
        assert!(ground.path("workspace/a/hard").exists(), "{tier}: what it made stays");
        assert_eq!((finished.stragglers, finished.survivors), (0, 0), "{tier}");
        assert!(finished.max_rss_kib > 0, "{tier}");
    }
}

fn tier_1b_the_view_is_its_own() {
    if !offered().contains(&Tier::Namespaces) {
        return;
    }
    let ground = Ground::new();
    let look = format!(
        "ls {0}/home/.ssh | wc -l; cat {0}/home/.netrc | wc -c; ls /proc | grep -c '^[0-9]'; ls /dev /run
         echo x > /tmp/mine && cat /tmp/mine; cat /proc/1/comm; ls /proc/self/fd | wc -l; test -w /tmp -a ! -w /etc/passwd; echo $?",
        ground.path("").display()
    );
    let finished = block_on(run(&spawner(), &ground.confined(Tier::Namespaces, &look)));
    let (said, errors) = text(&finished);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(&lines[..2], ["0", "0"], "{said}{errors}");
    assert!(lines[2].parse::<u32>().unwrap() <= 6, "{said}");
    for device in ["null", "urandom", "pts", "shm", "fd"] {
        assert!(lines.contains(&device), "{said}");
    }
    assert!(!said.contains("vda") && !said.contains("sda"), "{said}");
    // Three streams and the listing itself are open.
    assert!(said.ends_with("x\nplanctl-spawn\n4\n0\n"), "{said}{errors}");
    assert!(!Path::new("/tmp/mine").exists());
}

fn tier_1_loopback_serves_inside() {
    let spawner = spawner();
    for tier in offered() {
        let ground = Ground::new();
        let mut command = ground.confined(tier, "");
        command.arguments =
            vec![std::env::current_exe().unwrap().into(), "__attack".into(), "serve_itself".into()];
        let finished = block_on(run(&spawner, &command));
        assert_eq!(finished.end, End::Exited(0), "{tier}: {:?}", text(&finished));
    }
}

fn tier_1_a_deadline_and_a_signal_end_it_as_ever() {
    let spawner = spawner();
    for tier in offered() {
        let ground = Ground::new();
        let mut polite = ground.confined(tier, "trap 'echo asked; exit 4' TERM; sleep 999 & wait");
        polite.deadline = Some(Duration::from_millis(400));
        polite.grace = Duration::from_secs(10);
        let finished = block_on(run(&spawner, &polite));
        assert_eq!((finished.end.clone(), text(&finished).0.as_str()), (End::TimedOut, "asked\n"), "{tier}");
        let mut deaf = ground.confined(tier, "trap '' TERM; sleep 999; sleep 999");
        deaf.deadline = Some(Duration::from_millis(200));
        deaf.grace = Duration::from_millis(200);
        let started = Instant::now();
        assert_eq!(block_on(run(&spawner, &deaf)).end, End::TimedOut, "{tier}");
        assert!(started.elapsed() < Duration::from_secs(60), "{tier}: {:?}", started.elapsed());
        let killed = block_on(run(&spawner, &ground.confined(tier, "kill -9 $$")));
        assert_eq!(killed.end, End::Signalled(9), "{tier}");
        let missing = block_on(async {
            let mut command = ground.confined(tier, "");
            command.directory = "/nowhere".into();
            run(&spawner, &command).await
        });
        assert!(
            matches!(missing.end, End::NotStarted { stage: planctl_harness::Stage::Directory, errno: 2 }),
            "{tier}: {:?}",
            missing.end
        );
    }
}

/// A tier never falls back: where a part of it fails, nothing runs.
fn tier_1_what_cannot_be_held_is_not_started() {
    if !offered().contains(&Tier::Namespaces) {
        return;
    }
    let ground = Ground::new();
    let mut command = ground.confined(Tier::Namespaces, "touch ran");
    let nowhere = format!("/{}", "too long for the kernel/".repeat(300));
    command.confinement.as_mut().unwrap().writable.push(nowhere.into());
    let finished = block_on(run(&spawner(), &command));
    assert!(
        matches!(finished.end, End::NotStarted { stage: planctl_harness::Stage::Isolate, .. }),
        "{:?} {:?}",
        finished.end,
        text(&finished)
    );
    assert!(!ground.path("workspace/ran").exists());
}

fn a15_nothing_outlives_a_confined_command() {
    outlives(1);
}

/// Runs every escape of A15 so many times at each tier, and looks for what is left at once and two seconds later.
fn outlives(times: usize) {
    let spawner = spawner();
    for tier in offered() {
        let ground = Ground::new();
        let mut marks = Vec::new();
        let mut survivors = 0;
        for (name, text) in super::escapes::ESCAPES {
            for _ in 0..times {
                let (command, mark) = marked(ground.confined(tier, text));
                let finished = block_on(run(&spawner, &command));
                let left = alive(&mark);
                assert!(
                    !matches!(finished.end, End::TimedOut | End::HelperLost),
                    "{tier} {name}: {finished:?}"
                );
                assert!(finished.stragglers > 0, "{tier} {name}: {finished:?}");
                assert_eq!(left, [0_i32; 0], "{tier} {name}");
                survivors += left.len() + usize::try_from(finished.survivors).unwrap();
                marks.push(mark);
            }
        }
        std::thread::sleep(Duration::from_secs(2));
        survivors += marks.iter().map(|mark| alive(mark).len()).sum::<usize>();
        assert_eq!(survivors, 0, "{tier}");
        eprintln!("tier {tier}: {} escapes x {times}: {survivors} survivors", super::escapes::ESCAPES.len());
    }
}

fn a15_the_death_of_its_first_process_ends_all() {
    if !offered().contains(&Tier::Namespaces) {
        return;
    }
    let ground = Ground::new();
    let (command, mark) = marked(ground.confined(Tier::Namespaces, "setsid sleep 999 & touch up; sleep 999"));
    block_on(async {
        let spawner: Spawner = spawner();
        let running = run(&spawner, &command);
        let kill = async {
            while !ground.path("workspace/up").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let shell = alive(&mark)[0];
            let stat = std::fs::read_to_string(format!("/proc/{shell}/status")).unwrap();
            let field = |name: &str| -> i32 {
                let line = stat.lines().find(|line| line.starts_with(name)).unwrap();
                line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
            };
            let mut first = field("PPid:");
            if first == 0 {
                first = shell;
            }
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::Signal::SIGKILL)
                .unwrap();
        };
        let (finished, ()) = tokio::join!(running, kill);
        assert_eq!(finished.end, End::Signalled(9));
        assert_eq!(alive(&mark), [0_i32; 0]);
    });
}

/// The test is weakened while it is run, and put back before anybody looks.
fn cheat_48_code_under_test_cannot_swap_its_judge_at_any_tier() {
    let swap = "cp tests/check.sh kept; echo exit 0 > tests/check.sh; bash tests/check.sh; said=$?
        cat kept > tests/check.sh; rm kept; exit $said";
    for tier in [Tier::SameUser].into_iter().chain(offered()) {
        let ground = Ground::new();
        let workspace = ground.path("workspace");
        let contract = super::support::contract(swap, Duration::from_secs(20));
        let baseline = Arc::new(Baseline::take(&workspace, ["tests/check.sh"], []).unwrap());
        let isolation = Isolation { tier, hidden: vec![ground.path("home")], writable: Vec::new() };
        let scratch = ground.path("home/scratch");
        std::fs::create_dir(&scratch).unwrap();
        let spawner = spawner().with_scratch(scratch);
        let runner = ContractRunner::new(spawner, &workspace, None, []).unwrap().with_isolation(isolation);
        let found = block_on(async {
            runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()).await.found
        });
        if tier < Tier::Namespaces {
            let HarnessResult::Nothing(Inconclusive::Unstable { what }) = &found else {
                panic!("{tier}: {found:?}")
            };
            assert!(what.contains("tests/check.sh"), "{tier}: {what}");
            continue;
        }
        let HarnessResult::Evidence(evidence) = found else { panic!("{tier}: {found:?}") };
        assert_eq!(evidence.isolation, tier);
        assert_eq!(contract.judge(&evidence), Some(Verdict::Failed), "{tier}: {evidence:?}");
    }
}

fn a_contract_in_a_linked_worktree_finds_its_repository_in_a_hidden_workspace() {
    for tier in offered() {
        let place = Place::repository();
        let linked = place.at("linked");
        place.git(&["worktree", "add", "-b", "side", &linked.to_string_lossy()]);
        let isolation = Isolation { tier, hidden: vec![place.work()], writable: Vec::new() };
        let spawner = spawner().with_scratch(place.at("scratch"));
        let runner = ContractRunner::new(spawner, &linked, None, []).unwrap().with_isolation(isolation);
        let ask = "git diff --quiet HEAD && git log --oneline side | grep -q one";
        assert_eq!(exit_code(&runner, ask), 0, "{tier}");
        let file = place.work().join("a.txt");
        assert_ne!(
            exit_code(&runner, &format!("cat {}", file.display())),
            0,
            "{tier}: the other workspace is hidden"
        );
        let write = format!("echo x > {}", place.work().join(".git/x").display());
        assert_ne!(exit_code(&runner, &write), 0, "{tier}");
    }
}

fn agents_have_their_own_state_and_no_other() {
    let ground = Ground::new();
    std::fs::create_dir(ground.path("home/.codex")).unwrap();
    let home = ground.path("home");
    let hidden = credentials(&home, Some("claude"));
    for name in [".ssh", ".netrc", ".codex"] {
        assert!(hidden.contains(&home.join(name)), "{name}: {hidden:?}");
    }
    assert!(!hidden.contains(&home.join(".claude")));
    assert_eq!(agent_state(&home, "claude"), [home.join(".claude")]);
    assert!(credentials(&home, None).contains(&home.join(".claude")));
}

/// `PLANCTL_DOCS=write` puts what came of each attack where the table of docs/security.md is made from.
fn attacks_are_held_as_the_table_says() {
    let spawner = spawner();
    let mut wrong = Vec::new();
    let mut found = Outcomes::default();
    for tier in [Tier::SameUser].into_iter().chain(offered()) {
        for attack in attacks::ATTACKS {
            let ground = Ground::new();
            let said = attacks::play(&spawner, &ground, tier, attack);
            eprintln!("{tier:2} {:44} {}", attack.name, if said.is_held { "held" } else { "NOT HELD" });
            found.add(attack, tier, said.is_held);
            if attack.promise(tier).is_some_and(|holds| holds != said.is_held) {
                wrong.push(format!("tier {tier}, {}: held is {}: {}", attack.name, said.is_held, said.why));
            }
        }
    }
    if std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write") {
        found.write();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The result of each attack in each tier of this host: `name (rows): 0 through, 1a held`.
#[derive(Default)]
struct Outcomes(Vec<(String, Vec<String>)>);

impl Outcomes {
    fn add(&mut self, attack: &attacks::Attack, tier: Tier, is_held: bool) {
        let name = format!("{} ({})", attack.name, attack.rows);
        let outcome = format!("{tier} {}", if is_held { "held" } else { "through" });
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.0.push((name, vec![outcome])),
        }
    }

    fn write(&self) {
        let head = "# What came of each way out of the sandbox in each tier, written by\n\
                    # PLANCTL_DOCS=write cargo test -p planctl-harness --test processes attacks_are_held\n";
        let lines = self.0.iter().map(|(name, outcomes)| format!("{name}: {}\n", outcomes.join(", ")));
        let text: String = std::iter::once(head.to_owned()).chain(lines).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/sandbox/outcomes.txt");
        std::fs::write(path, text).unwrap();
    }
}
