//! Where a page plays: a home of its own with a checkout in it, and one shell that goes from block to block.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than any command of a page takes.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Takes commands that end with a NUL; after each it prints a NUL, the exit status and a NUL.
const TURNS: &str = r#"
exec 2>&1
__status=0
while IFS= read -r -d '' __command; do
    (exit "$__status")
    eval "$__command" </dev/null
    __status=$?
    printf '\0%s\0' "$__status"
done
"#;

/// The port that pages name; each scene has another one.
const PORT: &str = "7420";

pub struct Scene {
    folder: tempfile::TempDir,
    port: u16,
    shell: Child,
    heard: Receiver<Vec<u8>>,
}

impl Scene {
    pub fn new(repository: &Path) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        // As root, Postgres runs as another user, who must be able to pass through.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["home/planctl", "bin", "tmp"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["examples", "plans"] {
            symlink(repository.join(name), at("home/planctl").join(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_planctl"), at("bin/planctl")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

        let mut shell = Command::new("bash");
        shell
            .args(["--noprofile", "--norc", "-c", TURNS])
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", at("bin").display()))
            .env("HOME", at("home"))
            .env("LANG", "C.UTF-8")
            .env("PLANCTL_STATE_DIR", at("home/.local/state/planctl"))
            .env("PLANCTL_ACTOR", "ada")
            .current_dir(at("home/planctl"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let (said, heard) = channel();
        let mut talk = shell.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = talk.read(&mut buffer) {
                if said.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Scene { folder, port, shell, heard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Types a command as a person would; returns what it prints, standard error included, and its status.
    pub fn run(&mut self, command: &str) -> (String, i32) {
        let tmp = format!("{}/", self.path("tmp").display());
        let typed = command.replace("/tmp/", &tmp).replace(PORT, &self.port.to_string());
        let mut input = self.shell.stdin.as_ref().unwrap();
        input.write_all(format!("{typed}\0").as_bytes()).unwrap();
        let (printed, status) = self.until_the_end(command);
        let printed = printed
            .replace(&tmp, "/tmp/")
            .replace(&self.path("home").display().to_string(), "~")
            .replace(env!("CARGO_BIN_EXE_planctl"), "/usr/local/bin/planctl")
            .replace(&self.port.to_string(), PORT);
        // The pages show what a user sees who isn't root.
        let is_shown = |line: &&str| !line.starts_with("warning: planctl runs as root");
        let printed: String = printed.split_inclusive('\n').filter(is_shown).collect();
        // Output that ends in mid-line is a line of the page all the same.
        let end = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
        (printed + end, status)
    }

    fn until_the_end(&self, command: &str) -> (String, i32) {
        let (began, mut bytes) = (Instant::now(), Vec::new());
        loop {
            let parts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
            if let [printed, status, ..] = parts.as_slice()
                && parts.len() > 2
            {
                let status = String::from_utf8_lossy(status).parse().unwrap();
                return (String::from_utf8_lossy(printed).into_owned(), status);
            }
            match self.heard.recv_timeout(WAIT_MAX.saturating_sub(began.elapsed())) {
                Ok(more) => bytes.extend(more),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{command} does not end; it printed {}", String::from_utf8_lossy(&bytes))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{command} ended the shell; it printed {}", String::from_utf8_lossy(&bytes))
                }
            }
        }
    }
}

/// Stops the daemon of a home, where one was started.
pub fn stop_daemon(home: &Path, state: &Path) {
    if state.join("daemon.json").exists() {
        let mut stop = Command::new(env!("CARGO_BIN_EXE_planctl"));
        stop.args(["daemon", "stop"]).env("PLANCTL_STATE_DIR", state).env("HOME", home);
        drop(stop.output());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        stop_daemon(&self.path("home"), &self.path("home/.local/state/planctl"));
        let group = rustix::process::Pid::from_child(&self.shell);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.shell.wait().ok();
    }
}
