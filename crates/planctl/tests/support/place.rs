//! A place of one test: a workspace, a private Postgres of its own, planctl processes in it, workers and contracts that keep
//! a journal, and a look at living processes.

#![allow(dead_code, reason = "each test program uses its own part")]

pub mod chance;
pub mod history;
pub mod schema;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use planctl_server::testing::{LaidCluster, lay_private_cluster};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than any wait here, also on a machine that is busy with other things; a wait this long has found a hang.
pub const WAIT_MAX: Duration = Duration::from_secs(180);

/// How often a condition is looked at in the beginning.
const LOOK: Duration = Duration::from_millis(2);

/// How long the last processes of a place, Postgres among them, may take to end.
const QUIET_WITHIN: Duration = Duration::from_secs(30);

/// Functions of workers and contracts: one lock that each tree holds as long as any process of it lives, a journal outside
/// the workspace, children that would live for minutes, and files that hold them up.
const TOOLS: &str = r#"
exec 9>>"$place/tree.lock"
note() { echo "$*" >>"$place/journal"; }
flock --nonblock 9 || note overlap
linger() {
    sleep 300 &
    setsid sleep 301 &
    ( (sleep 302 &) & )
    (cd / && exec env -i setsid bash -c 'exec -a "$0" sleep 303' "$place/linger") &
}
hold() { while [ -e "$place/$1" ]; do sleep 0.01; done; }
"#;

/// Does every step right at once, but those whose file `flaky-STEP` is there only on the second attempt.
const WORKER: &str = r#"
step=$PLANCTL_STEP
[ ! -e "$place/stubborn" ] || trap '' TERM
note work begin "$step" "$PLANCTL_ATTEMPT"
linger
hold "hold-work-$step"
if [ -e "$place/flaky-$step" ] && [ "$PLANCTL_ATTEMPT" = 1 ]; then echo bad >"out-$step"; else echo good >"out-$step"; fi
note work end "$step" "$PLANCTL_ATTEMPT"
"#;

const CHECK: &str = r#"
[ ! -e "$place/stubborn" ] || trap '' TERM
note gate begin "$1"
linger
hold "hold-gate-$1"
grep -q good "out-$1"
status=$?
note gate end "$1" "$status"
exit "$status"
"#;

/// One test's place.
pub struct Place {
    folder: tempfile::TempDir,
    processes: AtomicU32,
    lease_seconds: Option<u64>,
    cluster: Option<LaidCluster>,
}

/// The output of a command.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A planctl process that goes on.
pub struct Going {
    child: Child,
    talk: PathBuf,
    words: String,
}

/// One line of the journal: an action of a worker or a contract, and its step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// `work begin`, `work end`, `gate begin`, `gate end`, `overlap`.
    pub what: String,
    pub step: u32,
    /// The attempt of work, the exit status of a gate's end.
    pub number: Option<u32>,
}

impl Place {
    /// A place whose private Postgres has been used before: made and migrated, and stopped.
    pub fn new() -> Place {
        let mut place = Place::untouched();
        place.cluster = Some(lay_private_cluster(&place.path("state")));
        place
    }

    /// A place where planctl never was.
    pub fn untouched() -> Place {
        let folder = tempfile::Builder::new().prefix("planctl-test-").tempdir().unwrap();
        // As root, Postgres runs as another user, who must be able to pass through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = Place { folder, processes: AtomicU32::new(0), lease_seconds: None, cluster: None };
        for name in ["work", "home/.config/planctl"] {
            fs::create_dir_all(place.path(name)).unwrap();
        }
        // Nothing is alive when the last command is over.
        fs::write(place.path("home/.config/planctl/planctl.toml"), "[postgres]\nstop_after = \"0s\"\n")
            .unwrap();
        assert!(place.foreign("git").args(["init", "--quiet"]).status().unwrap().success());
        for (name, does) in [("worker.sh", WORKER), ("check.sh", CHECK)] {
            let script = format!("place='{}'\n{TOOLS}{does}", place.folder.path().display());
            fs::write(place.path(name), script).unwrap();
        }
        place
    }

    /// A place whose leases end after so many seconds, for tests that wait for that.
    pub fn with_leases_of(seconds: u64) -> Place {
        let mut place = Place::new();
        place.lease_seconds = Some(seconds);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the plan `p.md` of so many steps; each is tried twice at most.
    pub fn plan(&self, steps: u32, more_fields: &str) {
        let mut text =
            "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Survive\n\n**Budget:** 60 minutes\n\n## Steps\n"
                .to_owned();
        let check = self.path("check.sh");
        for step in 1..=steps {
            write!(
                text,
                "\n### {step}. Step {step}\n\n**target:** coder\n{more_fields}\n**task:**\nDo it.\n\n**contract:**\n```bash\nbash {} {step}\n```\nexit_code == 0\n**on_fail:** retry(1), then abort\n",
                check.display()
            )
            .unwrap();
        }
        fs::write(self.path("work/p.md"), text).unwrap();
    }

    /// Makes a workspace beside the place's own, with its plan under another name; returns its path.
    pub fn other(&self, plan: &str) -> String {
        let other = self.path("other");
        fs::create_dir(&other).unwrap();
        fs::copy(self.path("work/p.md"), other.join(plan)).unwrap();
        other.to_string_lossy().into_owned()
    }

    /// Commits all that is in the workspace.
    pub fn commit(&self) {
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        for words in [&["add", "--all"][..], &["commit", "--quiet", "--message", "all"]] {
            assert!(self.foreign("git").args(who).args(words).status().unwrap().success());
        }
    }

    /// Makes the file with this name, which the tools look for.
    pub fn set(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub fn unset(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub fn exec(&self) -> String {
        format!("bash {}", self.path("worker.sh").display())
    }

    /// A program in a clean environment, in the workspace; nothing of the person who runs the tests gets in.
    pub fn foreign(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("PLANCTL_STATE_DIR", self.path("state"))
            .env("PLANCTL_ACTOR", "ann")
            // `just quiet`: the same without notifications.
            .envs(std::env::var_os("PLANCTL_NOTIFY").map(|word| ("PLANCTL_NOTIFY", word)))
            .envs(self.lease_seconds.map(|seconds| ("PLANCTL_LEASE_SECONDS", seconds.to_string())))
            .stdin(Stdio::null());
        command
    }

    /// Starts planctl; its output goes into files, so that nobody has to read along.
    pub fn start(&self, words: &[&str]) -> Going {
        self.start_with(words, &[])
    }

    /// Starts planctl with further variables.
    pub fn start_with(&self, words: &[&str], variables: &[(&str, &std::ffi::OsStr)]) -> Going {
        self.start_through(&[], words, variables)
    }

    /// Starts planctl by these words, which start what stands behind them.
    pub fn start_through(
        &self,
        through: &[&str],
        words: &[&str],
        variables: &[(&str, &std::ffi::OsStr)],
    ) -> Going {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let talk = self.path(&format!("talk-{number}"));
        let planctl = env!("CARGO_BIN_EXE_planctl");
        let mut command = self.foreign(through.first().unwrap_or(&planctl));
        command.args(through.iter().skip(1)).args((!through.is_empty()).then_some(planctl));
        command.args(words).envs(variables.iter().copied());
        command.stdout(File::create(talk.with_extension("out")).unwrap());
        command.stderr(File::create(talk.with_extension("err")).unwrap());
        Going { child: command.spawn().unwrap(), talk, words: words.join(" ") }
    }

    /// Starts `plan run p.md`, which begins the run or takes it up.
    pub fn start_run(&self) -> Going {
        self.start(&["plan", "run", "p.md", "--approve", "--exec", &self.exec()])
    }

    /// Starts a daemon in the foreground.
    pub fn daemon(&self) -> Going {
        self.start(&["daemon", "run"])
    }

    /// Has `p.md` run by the processes that drive runs here, and waits for this note in its journal; no process stays for
    /// it.
    pub fn start_and_leave(&self, note: &str) {
        let said = self.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &self.exec()]);
        assert_eq!(said.code, 3, "nobody has approved it: {said:?}");
        let asks = self.json(&["approvals", "--json"]);
        self.must(&["approvals", "approve", &asks["asks"][0]["id"].to_string()]);
        self.await_note(note, 1);
    }

    /// Waits until the newest run is in this state.
    pub fn await_state(&self, state: &str) {
        wait_until(&format!("the run is {state}"), || {
            self.json(&["plan", "status", "@last", "--json"])["state"] == state
        });
    }

    /// Runs planctl to its end.
    pub fn planctl(&self, words: &[&str]) -> Said {
        self.start(words).end()
    }

    /// Runs planctl to its end, which must be a success.
    pub fn must(&self, words: &[&str]) -> Said {
        let said = self.planctl(words);
        assert_eq!(said.code, 0, "planctl {}: {said:?}", words.join(" "));
        said
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let said = self.must(words);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    pub fn journal(&self) -> Vec<Entry> {
        let text = fs::read_to_string(self.path("journal")).unwrap_or_default();
        text.lines().map(entry).collect()
    }

    /// Takes the locks with which starts of plans here wait for one another, as another planctl has them.
    pub fn lock_starts(&self) -> Vec<File> {
        let locks = fs::read_dir(self.path("state/starting")).unwrap();
        let locks: Vec<File> = locks.map(|lock| File::open(lock.unwrap().path()).unwrap()).collect();
        locks.iter().for_each(|lock| lock.lock().unwrap());
        locks
    }

    /// Counts the journal's lines that begin with these words.
    pub fn noted(&self, words: &str) -> usize {
        let text = fs::read_to_string(self.path("journal")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(words)).count()
    }

    /// Waits until the journal has so many lines that begin with these words; returns how long that took.
    pub fn await_note(&self, words: &str, times: usize) -> Duration {
        wait_until(&format!("{times} × {words:?} in the journal"), || self.noted(words) >= times)
    }

    /// Lists the processes that belong to this place: by their environment, their folder, what they are called or the files
    /// that they have open, such as the lock of their tree: in the middle of an exec a process has nothing else.
    pub fn alive(&self) -> Vec<String> {
        let mark = self.folder.path().file_name().unwrap().as_encoded_bytes();
        let holds = |text: &[u8]| text.windows(mark.len()).any(|window| window == mark);
        let own = i32::try_from(std::process::id()).unwrap();
        processes()
            .filter(|pid| *pid != own)
            .filter(|pid| {
                let file = |name| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                let leads_here = |link: &Path| {
                    holds(fs::read_link(link).unwrap_or_default().as_os_str().as_encoded_bytes())
                };
                holds(&file("cmdline"))
                    || holds(&file("environ"))
                    || leads_here(Path::new(&format!("/proc/{pid}/cwd")))
                    || open_files(*pid).any(|file| leads_here(&file))
            })
            .map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }

    /// Returns the processes that have a file open whose path holds these words.
    pub fn those_that_have_open(&self, words: &str) -> Vec<Pid> {
        let has_it = |pid: &i32| open_files(*pid).any(|file| leads_to(&file, words));
        processes().filter(has_it).filter_map(Pid::from_raw).collect()
    }

    /// Lists the processes that workers and contracts started; planctl's own and Postgres are not among them.
    pub fn trees_alive(&self) -> Vec<String> {
        let is_ours = |line: &String| {
            let line = line.as_str();
            line.contains("postgres")
                || line.contains("planctl plan")
                || line.contains("planctl daemon")
                || line.contains("__spawn")
        };
        self.alive().into_iter().filter(|line| !is_ours(line)).collect()
    }

    /// Waits until nothing of this place is alive, Postgres included; returns how long that took.
    pub fn await_quiet(&self) -> Duration {
        let began = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return began.elapsed();
            }
            assert!(began.elapsed() < QUIET_WITHIN, "still alive: {alive:#?}");
            look_again(began);
        }
    }

    /// Kills planctl, its helper, its trees and Postgres, as when the host goes down; says whether planctl was alive.
    pub fn kill_everything(&self, mut going: Going) -> Result<(), Said> {
        if going.is_over() {
            return Err(going.end());
        }
        going.child.kill().unwrap();
        wait_until("the end of everything", || {
            let alive = self.alive();
            alive.iter().for_each(|line| kill_line(line));
            alive.is_empty()
        });
        going.child.wait().unwrap();
        Ok(())
    }

    /// Lists what lies in the workspace and in planctl's folders and is of no use once nothing runs.
    pub fn litter(&self) -> Vec<PathBuf> {
        let in_folder = |name: &str| {
            let entries = fs::read_dir(self.path(name)).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let is_litter = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_wanted = name == "p.md" || name == ".git" || name.starts_with("out-");
            let is_kept = [
                "access.conf",
                "attached.lock",
                "home",
                "made",
                "postgres.log",
                "programs.json",
                "run",
                "supervisor.lock",
                "users.conf",
            ];
            !(is_wanted || is_kept.contains(&name.as_str()) || name.parse::<u32>().is_ok())
        };
        let folders = ["work", "state/work", "state/instances", "state/pg"];
        folders.into_iter().flat_map(in_folder).filter(is_litter).collect()
    }

    /// Returns the server's process.
    pub fn postmaster(&self) -> Option<Pid> {
        let versions = fs::read_dir(self.path("state/pg")).ok()?;
        let text = versions
            .flatten()
            .find_map(|version| fs::read_to_string(version.path().join("postmaster.pid")).ok())?;
        // While the cluster is being made it is a negative number.
        Pid::from_raw(text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 0)?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.alive().iter().for_each(|line| kill_line(line));
    }
}

/// Kills a process that was listed; gone in the meantime is as good.
pub fn kill_line(line: &str) {
    if let Some(pid) = line.split(' ').next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}

impl Going {
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns what it said so far on standard error.
    pub fn heard(&self) -> String {
        fs::read_to_string(self.talk.with_extension("err")).unwrap_or_default()
    }

    /// Waits until it says these words.
    pub fn hear(&mut self, words: &str) {
        wait_until(&format!("{words:?} from planctl {}", self.words), || {
            let over = self.is_over();
            let heard = self.heard();
            assert!(heard.contains(words) || !over, "it ended before it said {words:?}: {heard}");
            heard.contains(words)
        });
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until it has a file open whose path holds these words.
    pub fn await_open(&self, words: &str) {
        wait_until(&format!("{words} is open in planctl {}", self.words), || {
            open_files(self.pid().as_raw_nonzero().get()).any(|file| leads_to(&file, words))
        });
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills it; says whether it was still alive.
    pub fn kill(mut self) -> Result<(), Said> {
        if self.is_over() {
            return Err(self.end());
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Ok(())
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > WAIT_MAX {
                self.child.kill().unwrap();
                panic!("planctl {} does not end; it said: {}", self.words, self.heard());
            }
            look_again(began);
        };
        let said = Said {
            code: status.code().unwrap_or(-1),
            out: fs::read_to_string(self.talk.with_extension("out")).unwrap(),
            err: self.heard(),
        };
        // A signal may cut the output short within a line.
        if said.code >= 0 {
            schema::check(&self.words.split(' ').collect::<Vec<_>>(), &said.out);
        }
        said
    }
}

/// Waits until something is so; returns how long that took.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WAIT_MAX, "waited in vain for {what}");
        look_again(began);
    }
    began.elapsed()
}

/// Waits a twentieth of the time that has been waited: some looks start a process, and take the time of what they wait for.
pub fn look_again(began: Instant) {
    std::thread::sleep((began.elapsed() / 20).max(LOOK));
}

/// Returns the time within which a run goes on where its planctl was killed on the same host (P10): five seconds, or five
/// times what the first start took, where the machine is busy with other things; in any case before its lease of a minute
/// ends.
pub fn goes_on_within(first: Duration) -> Duration {
    (5 * first).clamp(Duration::from_secs(5), Duration::from_secs(50))
}

/// Lists the processes of this machine.
pub fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn open_files(pid: i32) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Says whether a link leads to a path that holds these words.
fn leads_to(link: &Path, words: &str) -> bool {
    fs::read_link(link).is_ok_and(|path| path.to_string_lossy().contains(words))
}

/// Says whether a process is there and not a zombie.
pub fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

fn entry(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let names = words.iter().take_while(|word| word.parse::<u32>().is_err()).count();
    let mut numbers = words[names..].iter().map(|word| word.parse().unwrap());
    Entry { what: words[..names].join(" "), step: numbers.next().unwrap_or(0), number: numbers.next() }
}
