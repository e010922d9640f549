//! A home of one test: a git repository, a user's configuration with a model, and planctl in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use super::service::{Form, Service};

/// The output of a command.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub struct Home {
    folder: tempfile::TempDir,
}

/// The key of every model here; nothing that planctl writes may hold it.
pub const KEY: &str = "key-that-nobody-may-see-4711";

impl Home {
    /// A repository with these files, committed.
    pub fn with(files: &[(&str, &str)]) -> Home {
        let home = Home { folder: tempfile::Builder::new().prefix("planctl-draft-").tempdir().unwrap() };
        fs::create_dir_all(home.path("home/.config/planctl")).unwrap();
        for (name, text) in files {
            home.write(name, text);
        }
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        for words in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "all"]]
        {
            let done = home.command("git").args(who).args(words).status().unwrap();
            assert!(done.success(), "{words:?}");
        }
        home
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path("work").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path("work").join(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.path("work").join(name).exists()
    }

    /// Configures the services as models of these names.
    pub fn models(&self, models: &[(&str, &Service)]) {
        let tables = models.iter().map(|(name, service)| {
            let api = match service.form {
                Form::Messages => "messages",
                Form::Chat => "chat",
                Form::Embeddings => "embeddings",
            };
            format!(
                "[models.{name}]\napi = \"{api}\"\nurl = \"{}\"\nmodel = \"m-1\"\nkey_env = \"MODEL_KEY\"\nmax_tokens = 4000\n",
                service.url()
            )
        });
        let text = "[postgres]\nstop_after = \"0s\"\n".to_owned()
            + &tables.collect::<String>()
            + "[prices.m-1]\ninput = 1.0\ncached = 0.1\noutput = 10.0\n";
        fs::write(self.path("home/.config/planctl/planctl.toml"), text).unwrap();
    }

    /// Adds to the user's configuration.
    pub fn configure(&self, more: &str) {
        let file = self.path("home/.config/planctl/planctl.toml");
        let text = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, text + more).unwrap();
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        fs::create_dir_all(self.path("work")).unwrap();
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("PLANCTL_STATE_DIR", self.path("state"))
            .env("PLANCTL_ACTOR", "ann")
            .env("MODEL_KEY", KEY)
            .stdin(Stdio::null());
        command
    }

    pub fn planctl(&self, words: &[&str]) -> Said {
        self.planctl_with(words, &[])
    }

    pub fn planctl_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_planctl"));
        said(command.args(words).envs(variables.iter().copied()).output().unwrap())
    }

    pub fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(env!("CARGO_BIN_EXE_planctl"));
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs a command that answers with JSON of its schema, and ends with this code.
    pub fn json(&self, words: &[&str], code: i32) -> Value {
        let said = self.planctl(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        let value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        super::schema::check(words, &said.out);
        value
    }

    /// Verifies a plan and tries its contracts; returns the codes of what was found.
    pub fn verified(&self, plan: &str) -> (bool, Vec<String>) {
        let said = self.planctl(&["plan", "verify", "--probe", "--json", plan]);
        let report: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let found = report["diagnostics"].as_array().unwrap().iter();
        let codes = found.map(|one| one["code"].as_str().unwrap().to_owned());
        (report["verified"] == true, codes.collect())
    }

    /// Every file of the state directory that holds these words.
    pub fn state_files_with(&self, words: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.path("state"), &mut |path| {
            if fs::read(path)
                .is_ok_and(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
            {
                found.push(path.to_owned());
            }
        });
        found
    }
}

fn walk(folder: &Path, look: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => walk(&path, look),
            path => look(&path),
        }
    }
}

fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A small program with a README.
pub fn app() -> Home {
    Home::with(&[
        ("README.md", "# App\n\nPrints a greeting.\n"),
        ("src/app.sh", "#!/bin/bash\necho hello\n"),
        ("tests/app.sh", "#!/bin/bash\n[ \"$(bash src/app.sh)\" = hello ]\n"),
    ])
}

pub const GOAL: &str = "Add a --json flag to src/app.sh and document it in README.md";

/// An answer that reaches [`GOAL`] in [`app`].
pub fn good() -> Value {
    json!({
        "title": "A --json flag",
        "context": "",
        "confidence": 0.9,
        "steps": [
            { "title": "Add the flag", "role": "coder", "task": "Teach `src/app.sh` the flag --json, which prints an object.",
              "contract": "bash src/app.sh --json | grep -q '^{'", "exit_code": 0, "changes": ["src/app.sh"],
              "reads": ["src/app.sh"], "needs": [] },
            { "title": "Document it", "role": "coder", "task": "Describe the flag --json in `README.md`.",
              "contract": "grep -q -- '--json' README.md", "exit_code": 0, "changes": ["README.md"], "reads": [], "needs": [1] },
        ],
        "requirements": [{ "id": "R1", "steps": [1], "quote": null }, { "id": "R2", "steps": [2], "quote": null }],
        "questions": [],
    })
}
