//! Says how a command is kept apart from the host (PROMISES 3.1).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use planctl_engine::Tier;

use crate::git::git_top_level;
use crate::proxy::Hosts;
use crate::spawn::{self, Stage};

/// Folders and files of a person's home that hold credentials, or that programs run or obey by themselves at a login.
const CREDENTIALS: [&str; 36] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".terraform.d",
    ".vault-token",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/git/credentials",
    ".config/doctl",
    ".config/heroku",
    ".config/rclone",
    ".config/containers",
    ".config/sops",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
];

/// Folders and files of agents' own state in a person's home: logins, sessions, settings.
const AGENT_STATE: [(&str, &[&str]); 5] = [
    ("claude", &[".claude", ".claude.json", ".config/claude"]),
    ("codex", &[".codex"]),
    ("gemini", &[".gemini"]),
    ("opencode", &[".local/share/opencode", ".config/opencode", ".cache/opencode", ".local/state/opencode"]),
    ("aider", &[".aider", ".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"]),
];

/// Which network a confined command has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Network {
    /// The host's own.
    #[default]
    Host,
    /// One of its own with a loopback device and nothing else. Tier 1a can't give it: there it is the host's.
    Loopback,
    /// One of its own, out of which a proxy leads to these hosts. Below tier 1b it is refused.
    Hosts(Arc<Hosts>),
}

/// How a command is kept apart from the host. All of it holds, or the command is not started.
///
/// Paths are absolute and free of symlinks; those that do not exist are passed over, since nothing outside the writable
/// ones can be made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Confinement {
    /// The tier; never [`Tier::SameUser`], which is no confinement.
    pub tier: Tier,
    /// The paths that it may write, with everything beneath; all else is read-only.
    pub writable: Vec<PathBuf>,
    /// Files and folders beneath the writable ones that it may not write (from tier 1b).
    pub read_only: Vec<PathBuf>,
    /// Folders beneath the writable ones that it may not move or replace, though it may write in them (from tier 1b).
    pub pinned: Vec<PathBuf>,
    /// The paths that it can't read. At tier 1a names in hidden folders can be listed; from 1b the folders are empty.
    pub hidden: Vec<PathBuf>,
    /// The paths that it can read though they lie beneath a hidden path, or in a folder that is private from tier 1b.
    pub shown: Vec<PathBuf>,
    /// Its network.
    pub network: Network,
}

impl Confinement {
    /// Describes a tier that lets the command write nothing.
    pub fn new(tier: Tier) -> Confinement {
        Confinement { tier, ..Confinement::default() }
    }

    /// Returns the hosts that a proxy leads to.
    pub(crate) fn hosts(&self) -> Option<&Arc<Hosts>> {
        match &self.network {
            Network::Hosts(hosts) => Some(hosts),
            Network::Host | Network::Loopback => None,
        }
    }

    pub(crate) fn to_wire(&self) -> Result<Box<spawn::Confinement>, i32> {
        let texts = |paths: &[PathBuf]| -> Result<Vec<CString>, i32> {
            let texts = paths.iter().map(|path| CString::new(path.as_os_str().as_bytes()));
            texts.map(|text| text.map_err(|_| nix::libc::EINVAL)).collect()
        };
        let has_namespaces = self.tier >= Tier::Namespaces;
        if self.hosts().is_some() && !has_namespaces {
            return Err(nix::libc::EOPNOTSUPP);
        }
        Ok(Box::new(spawn::Confinement {
            has_namespaces,
            has_own_users: self.tier >= Tier::OwnUser,
            has_own_network: has_namespaces && self.network != Network::Host,
            has_proxy: self.hosts().is_some(),
            writable: texts(&self.writable)?,
            read_only: texts(&self.read_only)?,
            pinned: texts(&self.pinned)?,
            hidden: texts(&self.hidden)?,
            shown: texts(&self.shown)?,
        }))
    }
}

/// Returns the paths of a home folder that no worker or contract may read: credentials, and the state of every agent but
/// the named one. Only paths that exist are returned, with their links followed.
pub fn credentials(home: &Path, agent: Option<&str>) -> Vec<PathBuf> {
    let others = AGENT_STATE.iter().filter(|(name, _)| Some(*name) != agent).flat_map(|(_, paths)| *paths);
    let paths = CREDENTIALS.iter().chain(others).map(|path| home.join(path));
    paths.filter_map(|path| path.canonicalize().ok()).collect()
}

/// Returns the paths of a home folder where the named agent keeps its own state, of those that exist, with their links
/// followed.
pub fn agent_state(home: &Path, agent: &str) -> Vec<PathBuf> {
    let own = AGENT_STATE.iter().filter(|(name, _)| *name == agent).flat_map(|(_, paths)| *paths);
    own.filter_map(|path| home.join(path).canonicalize().ok()).collect()
}

/// How the contracts and workers of one run are isolated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Isolation {
    /// The tier that they run at.
    pub tier: Tier,
    /// The paths that none of them may read, free of symlinks: planctl's own state, and the workspaces of other plans. The
    /// files of planctl's state that they need are shown one by one.
    pub hidden: Vec<PathBuf>,
    /// The paths that all of them may write beside their workspace.
    pub writable: Vec<PathBuf>,
}

impl Isolation {
    /// Describes what a contract gets: its workspace and private folder writable, what it is judged by read-only, and a
    /// network of its own. `None` at tier 0.
    pub(crate) fn of_contract(
        &self,
        workspace: &Path,
        private: &[PathBuf],
        judges: impl Iterator<Item = PathBuf>,
    ) -> Option<Confinement> {
        let mut confinement = self.around(workspace, private, None)?;
        confinement.network = Network::Loopback;
        // The checkout that a linked worktree belongs to may be another plan's workspace, or lie in a private folder.
        let repository = git_folders(workspace).into_iter().filter(|folder| !folder.starts_with(workspace));
        confinement.shown.extend(repository);
        for file in judges {
            // Code under test could replace an entry that it can move away.
            let folders = file.ancestors().skip(1).take_while(|folder| *folder != workspace);
            for folder in folders.filter(|folder| folder.starts_with(workspace)) {
                if !confinement.pinned.iter().any(|pinned| pinned == folder) {
                    confinement.pinned.push(folder.to_owned());
                }
            }
            confinement.read_only.push(file);
        }
        Some(confinement)
    }

    /// Describes what a worker gets: its workspace with the repository around it, its private folder, the state of the
    /// agent that it is, and a network. `None` at tier 0.
    pub(crate) fn of_worker(
        &self,
        workspace: &Path,
        private: &[PathBuf],
        agent: Option<&str>,
        network: Network,
    ) -> Option<Confinement> {
        let mut confinement = self.around(workspace, private, agent)?;
        confinement.network = network;
        confinement.writable.extend(git_folders(workspace));
        if let (Some(home), Some(agent)) = (home(), agent) {
            confinement.writable.extend(agent_state(&home, agent));
        }
        Some(confinement)
    }

    fn around(&self, workspace: &Path, private: &[PathBuf], agent: Option<&str>) -> Option<Confinement> {
        if self.tier == Tier::SameUser {
            return None;
        }
        let mut confinement = Confinement::new(self.tier);
        let writable =
            [workspace].into_iter().chain(private.iter().chain(&self.writable).map(PathBuf::as_path));
        confinement.writable = writable.filter_map(|path| path.canonicalize().ok()).collect();
        confinement.hidden.clone_from(&self.hidden);
        if let Some(home) = home() {
            confinement.hidden.extend(credentials(&home, agent));
        }
        Some(confinement)
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Returns where git keeps what belongs to a workspace: of a worktree, the repository's own folder, which lies outside of it.
fn git_folders(workspace: &Path) -> Vec<PathBuf> {
    let Some(top) = git_top_level(workspace) else { return Vec::new() };
    let git = top.join(".git");
    if git.is_dir() {
        return vec![git];
    }
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let Some(text) = read(git) else { return Vec::new() };
    let Some(own) = text.trim().strip_prefix("gitdir:") else { return Vec::new() };
    let own = top.join(own.trim());
    let common = read(own.join("commondir")).map(|common| own.join(common.trim()));
    common.into_iter().chain([own]).filter_map(|path| path.canonicalize().ok()).collect()
}

/// Finds the agent that a command of one's own starts, by the words of the command.
pub(crate) fn agent_named_in(command: &str) -> Option<&'static str> {
    let is_end = |character: char| !(character.is_alphanumeric() || character == '-' || character == '_');
    let mut words = command.split(is_end);
    words.find_map(|word| AGENT_STATE.iter().find(|(name, _)| *name == word).map(|(name, _)| *name))
}

/// Says why a command that planctl finds can't be started at tier 2, in words that follow the system's own; empty where
/// that is no matter of the tier.
pub(crate) fn own_users_note(tier: Tier, stage: Stage, errno: i32) -> &'static str {
    match (tier, stage, errno) {
        (Tier::OwnUser, Stage::Execute | Stage::Directory, nix::libc::EACCES | nix::libc::ENOENT) => {
            " (at isolation tier 2 nothing in a folder that only root can enter is in reach: put it where every user \
             can go, or take tier 1b)"
        }
        (Tier::OwnUser, Stage::Isolate, nix::libc::EINVAL) => {
            " (isolation tier 2 needs file systems with idmapped mounts for all that may be written; take tier 1b where \
             one has none)"
        }
        _ => "",
    }
}
