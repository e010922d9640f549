//! A workspace, a state directory and a database of one test, and planctl run in it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use planctl_server::testing::TestDatabase;
use rustix::thread::CapabilitySet;
use serde_json::Value;

#[path = "../support/schema.rs"]
pub mod schema;

/// One test's place.
pub struct Fixture {
    folder: tempfile::TempDir,
    database: TestDatabase,
}

/// The output of a command.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A command that goes on, whose talk is read as it comes.
pub struct Going {
    child: Child,
    talk: BufReader<ChildStderr>,
    pub heard: String,
}

impl Fixture {
    /// A fixture whose database has planctl's schema.
    pub fn new() -> Fixture {
        Fixture::with_database(TestDatabase::migrated())
    }

    /// A fixture whose database is empty, as where planctl never was.
    #[allow(dead_code, reason = "those who look at the first start need it")]
    pub fn unmigrated() -> Fixture {
        Fixture::with_database(TestDatabase::empty())
    }

    fn with_database(database: TestDatabase) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        // As root, the private Postgres runs as another user, who must be able to pass through.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["work", "state", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Fixture { folder, database }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn write(&self, name: &str, text: &str) -> &Fixture {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A command in a clean environment; nothing of the person who runs the tests gets in.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planctl"));
        command
            .args(words)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .env("PLANCTL_STATE_DIR", self.state())
            // `just quiet`: the same without notifications.
            .envs(std::env::var_os("PLANCTL_NOTIFY").map(|word| ("PLANCTL_NOTIFY", word)))
            .env("PLANCTL_DATABASE_URL", self.database_url())
            .env("PLANCTL_ACTOR", "ann")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the address of the fixture's database.
    pub fn database_url(&self) -> String {
        self.database.url()
    }

    /// Runs a line of shell in which `planctl` is the program under test.
    #[allow(dead_code, reason = "those who type what they are told need it")]
    pub fn shell(&self, line: &str) -> Said {
        let planctl = self.command(&[]);
        let line = format!("planctl() {{ {} \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_planctl"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).current_dir(self.path("")).env_clear().stdin(Stdio::null());
        shell.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Said::from(shell.output().unwrap())
    }

    /// Runs planctl as on a host that does not offer tier 2.
    pub fn planctl_below_tier_2(&self, words: &[&str]) -> Said {
        let mut command = self.command(words);
        // SAFETY: between fork and exec the child makes one system call.
        unsafe {
            command.pre_exec(|| {
                // Another user than root has nothing to drop.
                rustix::thread::remove_capability_from_bounding_set(CapabilitySet::SYS_ADMIN).ok();
                Ok(())
            });
        }
        Said::from(command.output().unwrap())
    }

    /// Asks the fixture's database something, beside planctl.
    pub fn sql(&self, text: &str) -> String {
        Fixture::sql_of(&self.database.url(), text)
    }

    /// Asks a database something, beside planctl.
    pub fn sql_of(url: &str, text: &str) -> String {
        let said = Said::from(Fixture::psql_of(url).args(["-c", text]).output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    }

    /// Returns the program that speaks with the fixture's database, told to print bare values.
    pub fn psql(&self) -> Command {
        Fixture::psql_of(&self.database.url())
    }

    fn psql_of(url: &str) -> Command {
        let mut url = url::Url::parse(url).unwrap();
        // The other parameters are those of planctl's own driver.
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(key, _)| ["host", "port", "user", "password"].contains(&key.as_ref()))
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        url.query_pairs_mut().clear().extend_pairs(kept);
        let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let psql = installed.map(|version| version.path().join("bin/psql")).find(|path| path.exists());
        let mut psql = Command::new(psql.unwrap_or_else(|| PathBuf::from("psql")));
        psql.args([url.as_str(), "-qAt"]);
        psql
    }

    pub fn planctl(&self, words: &[&str]) -> Said {
        let said = Said::from(self.command(words).output().unwrap());
        schema::check(words, &said.out);
        said
    }

    /// Runs a command that must succeed, and reads its JSON.
    pub fn json(&self, words: &[&str]) -> Value {
        let said = self.planctl(words);
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Runs `p.md` with a worker to its end, or until a person is needed.
    pub fn run(&self, worker: &str) -> Said {
        self.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", worker])
    }

    /// Returns the history of a run, an event after the other.
    pub fn events(&self, run: &str) -> Vec<Value> {
        let said = self.planctl(&["events", "--run", run, "--json"]);
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn event_names(&self, run: &str) -> Vec<String> {
        self.events(run).iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    }

    pub fn events_named(&self, run: &str, name: &str) -> Vec<Value> {
        self.events(run).into_iter().filter(|event| event["event"] == name).collect()
    }

    pub fn status(&self) -> Value {
        self.json(&["plan", "status", "@last", "--json"])
    }

    /// Returns the number of the one ask that is open.
    pub fn ask(&self) -> String {
        let list = self.json(&["approvals", "--json"]);
        let asks = list["asks"].as_array().unwrap();
        assert_eq!(asks.len(), 1, "{list}");
        asks[0]["id"].to_string()
    }

    pub fn start(&self, words: &[&str]) -> Going {
        self.start_on(words, &[])
    }

    /// Starts planctl with folders before those of its path.
    pub fn start_on(&self, words: &[&str], folders: &[PathBuf]) -> Going {
        let mut command = self.command(words);
        let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        command.env("PATH", std::env::join_paths(folders.iter().chain(&usual)).unwrap());
        let mut child = command.spawn().unwrap();
        let talk = BufReader::new(child.stderr.take().unwrap());
        Going { child, talk, heard: String::new() }
    }
}

impl Going {
    /// Reads talk until a line holds these words.
    pub fn hear(&mut self, words: &str) -> &mut Going {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let read = self.talk.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it said {words:?}; it said:\n{}", self.heard);
            self.heard.push_str(&line);
        }
        self
    }

    #[allow(dead_code, reason = "those who kill need it, and others wait")]
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits until Ctrl-C does not end it by itself.
    #[allow(dead_code, reason = "those who interrupt need it")]
    pub fn until_it_listens(&self) {
        let caught = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap()
        };
        while caught() & 2 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Waits until it is gone, without regard to its output.
    pub fn hear_the_end(mut self) {
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            stdout.read_to_string(&mut out).unwrap();
            out
        });
        self.talk.read_to_string(&mut self.heard).unwrap();
        let status = self.child.wait().unwrap();
        Said { code: status.code().unwrap_or(-1), out: reader.join().unwrap(), err: self.heard }
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs git in a folder with nothing of this machine's settings, and returns what it says.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "maintenance.auto=false"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A plan of steps: number, title, contract and policy of each.
pub fn plan(title: &str, budget: &str, steps: &[(&str, &str, &str)]) -> String {
    let mut text = format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# {title}\n\n**Budget:** {budget}\n\n## Steps\n"
    );
    for (at, (name, contract, on_fail)) in steps.iter().enumerate() {
        text.push_str(&format!(
            "\n### {}. {name}\n\n**target:** coder\n\n**task:**\n{name}, please.\n\n**contract:**\n```bash\n{contract}\n```\nexit_code == 0\n**on_fail:** {on_fail}\n",
            at + 1
        ));
    }
    text
}

/// Replaces what differs from run to run.
pub fn steady(text: &str, fixture: &Path) -> String {
    let canonical = fixture.canonicalize().unwrap();
    let mut text = text
        .replace(&canonical.display().to_string(), "ROOM")
        .replace(&fixture.display().to_string(), "ROOM");
    while let Some(at) = text.find("sha256 ").filter(|at| !text[at + 7..].starts_with('…')) {
        let end = at + 7 + text[at + 7..].bytes().take_while(u8::is_ascii_hexdigit).count();
        text.replace_range(at..end, "sha256 …");
    }
    text
}
