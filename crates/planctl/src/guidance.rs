//! The guidance of a workspace: the run and the guards that hold its interactive agents, in one small file outside of it.
//!
//! Hooks look at this file and, where it is not there, do nothing more. It says which run is meant and decides nothing: what
//! is done stands in the database.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use planctl_api::wire::calls::ObservationCall;
use planctl_lang::digest_of_text;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};

/// How many characters of a digest name a workspace.
const NAME_CHARACTERS: usize = 32;

/// The guidance of one workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Guidance {
    /// The workspace, for people who read the file.
    pub workspace: PathBuf,
    /// The run to which sessions are held.
    #[serde(default)]
    pub guided: Option<Guided>,
    /// Commands that must succeed before a session may stop as done.
    #[serde(default)]
    pub guards: Vec<Guard>,
    /// The use that is made of the library for prompts without a plan.
    #[serde(default)]
    pub activate: Activate,
    /// The entries that each session heard of, so that each is named once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offered: BTreeMap<String, Vec<String>>,
    /// How often each session was sent back in its present turn.
    #[serde(default)]
    pub sent_back: BTreeMap<String, u32>,
    /// The digest of the text with which each session was sent back last: Gemini CLI tells it to its hook as a prompt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_text: BTreeMap<String, String>,
    /// The newest outputs that each session's program reported, where a step passes by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, Seen>,
    /// The file in which calls of hooks are noted, of a canary that `planctl guide doctor` started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<PathBuf>,
    /// The trouble that a person was told of last, so that it is said once.
    #[serde(default)]
    pub reported_trouble: Option<String>,
}

/// The use that is made of the library for a prompt of a session that no plan holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Activate {
    /// None
    #[default]
    Off,
    /// The plan that fits is suggested
    Suggest,
    /// The plan that fits is handed in; it begins where it is approved
    Auto,
}

/// A run to which sessions are held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Guided {
    /// The id of the run.
    pub id: String,
    /// Its name.
    pub run: String,
    /// The plan's path, for people.
    pub plan: String,
    /// Files and globs that decide its contracts, which no step may change.
    #[serde(default)]
    pub protected: Vec<String>,
    /// Says that a person's answer was waited for when a hook looked last.
    #[serde(default)]
    pub waits: bool,
    /// The items whose tasks a session has read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Says that one of these passes by the output of a tool.
    #[serde(default)]
    pub observes: bool,
    /// How often a tool of a session failed since the plan began.
    #[serde(default)]
    pub tool_failures: u32,
}

/// The tasks of a run that a session is told of.
pub struct ToldTasks {
    /// The id of the run.
    pub run: String,
    /// The items.
    pub items: Vec<String>,
}

/// The newest outputs that a session's program reported while it worked on the same items.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// The items.
    pub items: Vec<String>,
    /// The output of the newest command.
    #[serde(default)]
    pub command: Option<ObservationCall>,
    /// The output of the newest tool of any kind.
    #[serde(default)]
    pub tool: Option<ObservationCall>,
}

/// A command that must succeed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Guard {
    /// Its number in this workspace.
    pub number: u32,
    /// The command.
    pub command: String,
    /// It counts only where files that match these changed; always where there are none.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The state of the files with which it held last.
    #[serde(default)]
    pub passed: Option<String>,
    /// Its run, where that is not over.
    #[serde(default)]
    pub open: Option<Guided>,
}

/// The guidance of a workspace, held against other processes that change it.
pub struct LockedGuidance {
    /// The guidance; [`LockedGuidance::save`] writes it.
    pub guidance: Guidance,
    file: PathBuf,
    _lock: File,
}

impl Guidance {
    /// Notes that a session has read the tasks that it was told of.
    pub fn note_told(&mut self, told: Vec<ToldTasks>) {
        for ToldTasks { run, items } in told {
            if let Some(run) = self.run_mut(&run) {
                run.read = items;
            }
        }
    }

    /// Finds the guidance of the folder or of a folder around it. Costs a look per folder.
    ///
    /// # Errors
    ///
    /// Says which guidance does not read, such as one that another version of planctl wrote.
    pub fn find_from(state_dir: &Path, folder: &Path) -> Result<Option<(PathBuf, Guidance)>, Failure> {
        let Ok(folder) = folder.canonicalize() else { return Ok(None) };
        for folder in folder.ancestors() {
            if let Some(guidance) = Guidance::read(&file_of(state_dir, folder))? {
                return Ok(Some((folder.to_owned(), guidance)));
            }
        }
        Ok(None)
    }

    fn read(file: &Path) -> Result<Option<Guidance>, Failure> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::of_state(format!("read {}", file.display()), &error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Failure::new(Exit::Configuration, format!("could not read {}: {error}", file.display()))
                .help("it holds no work: remove it, and begin again with planctl guide on or planctl guard")
        })
    }

    /// Says whether nothing holds anybody.
    pub fn is_empty(&self) -> bool {
        self.guided.is_none()
            && self.guards.is_empty()
            && self.activate == Activate::Off
            && self.canary.is_none()
    }

    /// Returns the run of this id, where sessions are held to it.
    pub fn run_mut(&mut self, id: &str) -> Option<&mut Guided> {
        let of_guards = self.guards.iter_mut().filter_map(|guard| guard.open.as_mut());
        self.guided.iter_mut().chain(of_guards).find(|run| run.id == id)
    }

    /// Returns the runs to which sessions are held.
    pub fn runs(&self) -> impl Iterator<Item = &Guided> {
        self.guided.iter().chain(self.guards.iter().filter_map(|guard| guard.open.as_ref()))
    }
}

impl LockedGuidance {
    /// Reads the guidance of a workspace to change it; waits for another process that does.
    pub fn open(state_dir: &Path, workspace: &Path) -> Result<LockedGuidance, Failure> {
        let file = file_of(state_dir, workspace);
        let refused = |error: io::Error| Failure::of_state(format!("use {}", file.display()), &error);
        let folder = file.parent().unwrap_or(state_dir);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
        let lock = File::create(file.with_extension("lock")).map_err(refused)?;
        lock.lock().map_err(refused)?;
        let guidance = Guidance::read(&file)?
            .unwrap_or_else(|| Guidance { workspace: workspace.to_owned(), ..Guidance::default() });
        Ok(LockedGuidance { guidance, file, _lock: lock })
    }

    /// Writes the guidance whole; the file goes where nothing holds anybody any more.
    pub fn save(&self) -> Result<(), Failure> {
        let refused = |error: io::Error| Failure::of_state(format!("write {}", self.file.display()), &error);
        if self.guidance.is_empty() {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(refused(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(&self.guidance)
            .map_err(|error| Failure::new(Exit::Temporary, format!("could not write JSON: {error}")))?;
        let mut draft = tempfile::NamedTempFile::new_in(self.folder()).map_err(refused)?;
        draft.write_all(text.as_bytes()).map_err(refused)?;
        draft.persist(&self.file).map_err(|error| refused(error.error))?;
        Ok(())
    }

    /// Returns the path of the plan of a guard.
    pub fn plan_of(&self, guard: u32) -> PathBuf {
        self.file.with_extension("").join(format!("guard-{guard}.md"))
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }
}

fn file_of(state_dir: &Path, workspace: &Path) -> PathBuf {
    let digest = digest_of_text(&workspace.to_string_lossy());
    let name = digest.as_str().trim_start_matches("sha256:");
    state_dir.join("guide").join(format!("{}.json", &name[..NAME_CHARACTERS.min(name.len())]))
}
