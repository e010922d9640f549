//! Where one scenario is performed: a workspace, a home, planctl's state and a database, and what came of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use planctl_server::testing::TestDatabase;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::scenario::Scenario;
use crate::table::Effect;
use crate::tier::Tier;

/// Longer than any scenario takes on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Functions and names for all scripts of a scenario.
const PRELUDE: &str = r#"
planctl() { "$planctl" "$@"; }
run() { planctl run "$plan" --approve --no-wait --exec "$exec" "$@"; }
resume() { planctl resume @last --no-wait "$@"; }
ask() { planctl approvals --json | grep -o '"id": *[0-9]*' | head -n 1 | grep -o '[0-9]*'; }
# Proposes a step after the worker's own; the text is printf's.
propose() {
    local text=$1
    text=${text//\\n/$'\n'}
    STEP=$text python3 -c 'import json, os
print(json.dumps({"planctl": "result/1", "text": "proposed", "insert_step": os.environ["STEP"]}))' > "$PLANCTL_RESULT_FILE"
}
# Writes done.flag while a contract of this workspace runs, and only then.
late() {
    local process
    while sleep 0.03; do
        for process in /proc/[0-9]*; do
            [ "$process/cwd" -ef "$work" ] || continue
            if tr '\\0' ' ' < "$process/cmdline" 2>/dev/null | grep -q 'until . -e done[.]flag'; then
                touch "$work/done.flag"
            fi
        done
    done
}
# Waits for a condition, as long as a busy machine may need.
until_true() { local n=0; until "$@"; do sleep 0.02; n=$((n + 1)); [ "$n" -lt 3000 ] || return 1; done; }
"#;

/// Which worker performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Cheat,
    Twin,
    Flow,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Part::Cheat => "cheat",
            Part::Twin => "twin",
            Part::Flow => "flow",
        }
    }
}

/// Describes how a performance ended.
pub struct Outcome {
    /// The run's state; empty where no run began.
    state: String,
    /// The newest verdict of each step, or the verification's.
    verdicts: Vec<String>,
    /// The run's record, as people read it.
    record: String,
    /// The output of the person's commands.
    talk: String,
    /// The fault that the scenario's own look afterwards found.
    attack: Option<String>,
    /// Says that the person's commands did not come to an end.
    hung: bool,
}

impl Outcome {
    pub fn must_be_done(&self, scenario: &Scenario) -> Result<(), String> {
        if self.state != "done" || self.hung {
            return Err(format!("FALSE REFUSAL of {}: {}\n{self}", scenario.id, scenario.says));
        }
        match &self.attack {
            Some(attack) => Err(format!("{}: done, but {attack}\n{self}", scenario.id)),
            None => Ok(()),
        }
    }

    pub fn must_be_caught(&self, scenario: &Scenario) -> Result<(), String> {
        let what = self.what_succeeded(scenario);
        if let Some(what) = what {
            return Err(format!("FALSE PASS of {}: {} ({what})\n{self}", scenario.id, scenario.says));
        }
        if self.hung {
            return Err(format!("{}: planctl does not come to an end\n{self}", scenario.id));
        }
        let expected = scenario.verdicts();
        if !expected.iter().any(|verdict| self.verdicts.iter().any(|found| found == verdict)) {
            return Err(format!("{}: expected one of {expected:?}\n{self}", scenario.id));
        }
        match scenario.names().iter().find(|name| !self.record.contains(**name)) {
            Some(name) => Err(format!("{}: the record does not name `{name}`\n{self}", scenario.id)),
            None => Ok(()),
        }
    }

    /// The documentation says that this cheat succeeds in this tier, so it must.
    pub fn must_be_a_false_pass(&self, scenario: &Scenario) -> Result<(), String> {
        match self.what_succeeded(scenario) {
            Some(_) => Ok(()),
            None => Err(format!("{} is held, although `open` says that it is not\n{self}", scenario.id)),
        }
    }

    /// Returns the effect of the cheat, expected or not.
    pub fn effect(&self, scenario: &Scenario) -> Effect {
        let names = scenario.names();
        let is_verdict = |name: &str| self.verdicts.iter().any(|verdict| verdict == name);
        let is_named = !names.is_empty() && names.iter().all(|name| self.record.contains(*name));
        if self.hung || self.what_succeeded(scenario).is_some() {
            Effect::Through
        } else if is_named || is_verdict("tampered") || is_verdict("unstable") {
            Effect::Named
        } else {
            Effect::Held
        }
    }

    fn what_succeeded(&self, scenario: &Scenario) -> Option<String> {
        let is_done = self.state == "done" && !scenario.may_be_done();
        self.attack.clone().or_else(|| is_done.then(|| "the run is done".to_owned()))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { state, verdicts, record, talk, .. } = self;
        write!(out, "state {state:?}, verdicts {verdicts:?}\n--- record\n{record}\n--- talk\n{talk}")
    }
}

/// Performs one part of a scenario.
pub fn perform(scenario: &Scenario, part: Part, tier: &Tier) -> Outcome {
    let place = Place::new(scenario, part, &tier.configuration, !scenario.has_own_database());
    place.set_up(scenario);
    let (talk, hung) = place.script("drive", scenario.drive());
    let mut outcome = Outcome {
        state: String::new(),
        verdicts: Vec::new(),
        record: String::new(),
        talk,
        attack: None,
        hung,
    };
    place.look(&mut outcome);
    let held = scenario.fence("held");
    if !held.is_empty() {
        let (said, hung) = place.script("held", &format!("{held}\necho \"held: $?\""));
        if hung || !said.trim_end().ends_with("held: 0") {
            outcome.attack = Some(format!("the attack had its effect: {said}"));
        }
    }
    outcome
}

/// How often a cheat may try that has to win a race with a busy machine.
const TRIES: usize = 3;

/// A cheat that would not even fool `worker; contract` proves nothing where it is caught.
pub fn fools_a_bare_harness(scenario: &Scenario) -> Result<(), String> {
    (1..TRIES).fold(fools_once(scenario), |tried, _| tried.or_else(|_| fools_once(scenario)))
}

fn fools_once(scenario: &Scenario) -> Result<(), String> {
    // Without planctl nobody looks at the database, unless the worker itself calls planctl.
    let has_database = !scenario.has_own_database() && scenario.worker(Part::Cheat).contains("planctl");
    let place = Place::new(scenario, Part::Cheat, "isolation = \"0\"", has_database);
    place.set_up(scenario);
    for (at, contract) in scenario.contracts().iter().enumerate() {
        let worker = format!(
            "export PLANCTL_STEP={} PLANCTL_ATTEMPT=1 PLANCTL_RESULT_FILE=\"$place/result\" PLANCTL_WORKSPACE=\"$work\"\n\
             eval \"$exec\" </dev/null >\"$place/worker.log\" 2>&1",
            at + 1
        );
        let (worked, _) = place.script("bare-worker", &worker);
        fs::write(place.path("contract"), contract).unwrap();
        let (judged, _) =
            place.script("bare-contract", "bash -c \"$(cat \"$place/contract\")\"\necho \"exit $?\"");
        if !judged.trim_end().ends_with("exit 0") {
            let log = fs::read_to_string(place.path("worker.log")).unwrap_or_default();
            return Err(format!(
                "{}: a harness that only runs worker and contract would not be fooled:\n{worked}{log}{judged}",
                scenario.id
            ));
        }
    }
    Ok(())
}

/// Tells whether the scripts of the kit have a program in a tier: in tier 2 it lies where every user can go.
pub fn has_program(name: &str, tier: &Tier) -> bool {
    let is_open =
        |folder: &Path| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
    let is_reached = |folder: &Path| tier.name != "2" || folder.ancestors().all(is_open);
    std::env::split_paths(path()).any(|folder| folder.join(name).is_file() && is_reached(&folder))
}

/// The PATH of the person, with the toolchain that builds this test.
fn path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let usual = "/usr/local/bin:/usr/bin:/bin";
        toolchain().map_or(usual.to_owned(), |folder| format!("{usual}:{}", folder.display()))
    })
}

/// The folder with the real cargo, so that no rustup has to be found in a home.
fn toolchain() -> Option<PathBuf> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).stderr(Stdio::null()).output().ok()?;
    let folder = Path::new(std::str::from_utf8(&said.stdout).ok()?.trim()).join("bin");
    folder.join("cargo").is_file().then_some(folder)
}

struct Place {
    folder: tempfile::TempDir,
    database: Option<TestDatabase>,
    plan: &'static str,
    part: Part,
    exec: String,
    environment: String,
}

/// Says whether every user can pass through a folder.
fn others_can_enter(folder: &Path) -> bool {
    folder
        .ancestors()
        .all(|folder| fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o1 != 0))
}

impl Place {
    fn new(scenario: &Scenario, part: Part, configuration: &str, has_database: bool) -> Place {
        let built = env!("CARGO_TARGET_TMPDIR");
        let folder = tempfile::Builder::new()
            .prefix("planctl-cheat-")
            // Better tiers have a private `/tmp`, and workspaces of people are elsewhere. A private Postgres runs as
            // another user when we are root, who may be able to pass through `/tmp` alone.
            .tempdir_in(match scenario.has_own_database() && !others_can_enter(built.as_ref()) {
                true => "/tmp",
                false => built,
            })
            .unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let database = has_database.then(TestDatabase::migrated);
        let (plan, text) = scenario.plan();
        let exec = scenario.value("exec").map_or_else(
            || format!("bash '{}'", folder.path().join("worker.sh").display()),
            ToOwned::to_owned,
        );
        let environment = scenario.fence("environment").to_owned();
        let place = Place { folder, database, plan, part, exec, environment };
        for name in ["work", "home/.config/planctl", "state", "tmp"] {
            fs::create_dir_all(place.path(name)).unwrap();
        }
        let worker = format!("{}{PRELUDE}\n{}", place.names(), scenario.worker(part));
        fs::write(place.path("worker.sh"), worker).unwrap();
        fs::write(place.path("work").join(plan), text).unwrap();
        let path = toolchain().map_or(String::new(), |folder| format!("path = [{folder:?}]\n"));
        let own = scenario.fence("configuration");
        let all = format!("{configuration}\n[contracts]\n{path}{own}");
        fs::write(place.path("home/.config/planctl/planctl.toml"), all).unwrap();
        let identity = "[user]\n\tname = ann\n\temail = ann@example.org\n";
        fs::write(place.path("home/.gitconfig"), identity).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> String {
        let quoted = |path: &Path| format!("'{}'", path.display());
        format!(
            "place={}\nwork={}\nhome={}\nstate={}\nplanctl={}\nplan={}\npart={}\nexec=\"{}\"\n",
            quoted(self.folder.path()),
            quoted(&self.path("work")),
            quoted(&self.path("home")),
            quoted(&self.path("state")),
            quoted(Path::new(env!("CARGO_BIN_EXE_planctl"))),
            self.plan,
            self.part.name(),
            self.exec,
        )
    }

    /// Makes the project and commits it, the plan included.
    fn set_up(&self, scenario: &Scenario) {
        let commit = "git add --all && git commit --quiet --message 'The project'";
        let script = format!(
            "set -e\ngit init --quiet --initial-branch main\n{}\n{commit}\necho made\n",
            scenario.fence("setup")
        );
        let (said, _) = self.script("setup", &script);
        assert!(said.trim_end().ends_with("made"), "{}: the project could not be made\n{said}", scenario.id);
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("PLANCTL_STATE_DIR", self.path("state"))
            .env("PLANCTL_ACTOR", "ann")
            .envs(std::env::var_os("PLANCTL_NOTIFY").map(|word| ("PLANCTL_NOTIFY", word)))
            .envs(self.database.as_ref().map(|database| ("PLANCTL_DATABASE_URL", database.url())))
            .stdin(Stdio::null());
        command
    }

    /// Runs what a person types; returns what it printed, and whether it had to be killed.
    fn script(&self, name: &str, text: &str) -> (String, bool) {
        let log = self.path(&format!("{name}.log"));
        let script = self.path(&format!("{name}.sh"));
        let mut file = fs::File::create(&script).unwrap();
        write!(file, "{}{PRELUDE}\n{}\n{text}\n", self.names(), self.environment).unwrap();
        let out = fs::File::create(&log).unwrap();
        let mut command = self.command("bash");
        command.args(["--noprofile", "--norc"]).arg(&script).process_group(0);
        let mut child = command.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        let began = Instant::now();
        let hung = loop {
            if child.try_wait().unwrap().is_some() {
                break false;
            }
            if began.elapsed() > WAIT_MAX {
                kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
                child.wait().unwrap();
                break true;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        (String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned(), hung)
    }

    /// Reads what planctl says of the newest run.
    fn look(&self, outcome: &mut Outcome) {
        let said = self
            .command(env!("CARGO_BIN_EXE_planctl"))
            .args(["plan", "status", "@last", "--json"])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        outcome.record = outcome.talk.clone();
        let Ok(status) = serde_json::from_slice::<Value>(&said.stdout) else {
            outcome.verdicts.push("refused".to_owned());
            return;
        };
        outcome.state = status["state"].as_str().unwrap_or_default().to_owned();
        for step in status["steps"].as_array().into_iter().flatten() {
            for key in ["verdict", "red_first"] {
                outcome.verdicts.extend(step[key].as_str().map(ToOwned::to_owned));
            }
            outcome.record.push_str(&format!("\n{} {}", step["verdict"], step["failure"]));
        }
        if outcome.state == "waiting" || outcome.verdicts.is_empty() {
            outcome.verdicts.push(outcome.state.clone());
        }
        let events = self
            .command(env!("CARGO_BIN_EXE_planctl"))
            .args(["events", "--run", "@last", "--json"])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        for line in String::from_utf8_lossy(&events.stdout).lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            let is_told = matches!(event["event"].as_str(), Some("harness.evaluated" | "node_verified"));
            if is_told {
                outcome.record.push('\n');
                outcome.record.push_str(line);
            }
        }
    }
}

impl Drop for Place {
    /// Ends the scenario's remaining processes, and only those: they have this folder's name in their arguments, variables
    /// or paths.
    fn drop(&mut self) {
        let mark = self.folder.path().file_name().unwrap().as_encoded_bytes();
        let holds = |text: &[u8]| text.windows(mark.len()).any(|window| window == mark);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for process in processes.filter(|process| *process != std::process::id().cast_signed()) {
            let file = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
            let folder = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
            let is_ours = holds(&file("cmdline")) || holds(&file("environ"));
            if is_ours || holds(folder.as_os_str().as_encoded_bytes()) {
                Pid::from_raw(process).map(|process| kill_process(process, Signal::KILL).ok());
            }
        }
    }
}
