//! A workspace of one verification, with the real binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

pub struct Place {
    folder: tempfile::TempDir,
}

#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Place { folder }
    }

    pub fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Copies what is in a folder here.
    pub fn copy(&self, from: &Path) {
        let mut folders = vec![from.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let name = path.strip_prefix(from).unwrap().to_str().unwrap().to_owned();
                        self.write(&name, &fs::read(&path).unwrap());
                    }
                }
            }
        }
    }

    /// Runs planctl in a clean environment, so that nothing of the person who runs the tests gets in.
    pub fn planctl(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planctl"));
        command
            .args(words)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("PLANCTL_STATE_DIR", self.folder.path().join("state"))
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}
