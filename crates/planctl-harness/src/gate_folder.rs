//! The private folder of one contract: its home, its folder for temporary files, its interpreters' caches and its git
//! configuration. Nothing in it comes from a worker or from another contract (A10).
//!
//! A worker could prepare the real ones: a start-up file in the home (`.npmrc`, `.cargo/config.toml`, `.gitconfig`), a
//! compiled test in a cache. So contracts get none of them. Packages and toolchains that were downloaded or installed
//! once are costly to make anew; links in the private home lead to it ([`DOWNLOADED`]), and to no configuration beside it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planctl_engine::Tier;

use crate::folder_content::{FolderContent, OldFiles};
use crate::git::clean::{GitFolders, add_user_settings};
use crate::git::front::{GitFiles, Repositories};
use crate::process::{End, Finished, find_program};
use crate::scratch::{GATE_PREFIX, ScratchFolder, create_folder};
use crate::spawn::Spawner;

/// Folders and files of a home that hold what was downloaded or installed, each with the variable that names its first
/// part where that is elsewhere.
const DOWNLOADED: [(&str, Option<&str>, &[&str]); 40] = [
    (".cargo", Some("CARGO_HOME"), &["bin", "git", "registry", ".package-cache", ".package-cache-mutate"]),
    (".rustup", Some("RUSTUP_HOME"), &[""]),
    ("go", Some("GOPATH"), &["bin", "pkg/mod"]),
    (".npm", None, &["_cacache"]),
    (".nvm", Some("NVM_DIR"), &["versions"]),
    (".volta", Some("VOLTA_HOME"), &["bin", "tools"]),
    (".bun", None, &["bin", "install/cache"]),
    (".deno", None, &["bin"]),
    (".cache/deno", Some("DENO_DIR"), &[""]),
    (".cache/yarn", None, &[""]),
    (".yarn/berry", None, &["cache"]),
    (".cache/pnpm", None, &[""]),
    (".local/share/pnpm", Some("PNPM_HOME"), &["store"]),
    (".cache/node", None, &["corepack"]),
    (".cache/ms-playwright", Some("PLAYWRIGHT_BROWSERS_PATH"), &[""]),
    (".cache/puppeteer", None, &[""]),
    (".cache/Cypress", None, &[""]),
    (".pyenv", Some("PYENV_ROOT"), &[""]),
    (".cache/pip", Some("PIP_CACHE_DIR"), &[""]),
    (".cache/uv", Some("UV_CACHE_DIR"), &[""]),
    (".local/share/uv", None, &["python", "tools"]),
    (".local/share/pipx", None, &["venvs", "shared"]),
    (".local/share/virtualenvs", None, &[""]),
    (".cache/pypoetry", None, &["cache", "virtualenvs"]),
    (".cache/pre-commit", None, &[""]),
    (".m2", None, &["repository", "wrapper"]),
    (".gradle", Some("GRADLE_USER_HOME"), &["caches", "wrapper"]),
    (".sdkman", Some("SDKMAN_DIR"), &["candidates"]),
    (".ivy2", None, &["cache"]),
    (".cache/coursier", None, &[""]),
    (".rbenv", Some("RBENV_ROOT"), &[""]),
    (".local/share/gem", None, &[""]),
    (".bundle", None, &["cache"]),
    (".cache/composer", None, &[""]),
    (".nuget", None, &["packages"]),
    (".dotnet", None, &[""]),
    (".asdf", Some("ASDF_DATA_DIR"), &["installs", "plugins", "shims"]),
    (".local/share/mise", Some("MISE_DATA_DIR"), &["installs", "shims"]),
    (".ghcup", None, &["bin", "ghc"]),
    (".cabal", None, &["packages", "store"]),
];

/// The name of the folder beside the private ones where contracts keep what Go compiled.
pub(crate) const GO_CACHE: &str = "go-build";

/// The next contract removes what one left in its folder that took less than this: it is little, and to hand it to another thread
/// costs more.
const BRIEF: Duration = Duration::from_millis(20);

/// Holds the settings that every contract of one workspace gets; made once, before anybody works there.
#[derive(Clone, Debug)]
pub(crate) struct GateSetting {
    links: Vec<(PathBuf, PathBuf)>,
    /// Folders that no contract uses at the moment.
    idle: Arc<Mutex<Vec<ScratchFolder>>>,
    repositories: Repositories,
    bash: Option<PathBuf>,
    git: Option<PathBuf>,
    has_go: bool,
}

impl GateSetting {
    /// Looks what there is to be linked, and what the workspace's repositories say.
    pub(crate) fn new(workspace: &Path, path: &OsStr, bash: Option<PathBuf>) -> GateSetting {
        GateSetting {
            links: links(std::env::var_os("HOME").map(PathBuf::from).as_deref()),
            idle: Arc::default(),
            repositories: Repositories::snapshot(workspace),
            bash,
            git: find_program(OsStr::new("git"), path),
            has_go: find_program(OsStr::new("go"), path).is_some(),
        }
    }

    /// Returns the workspace's repositories as they were.
    pub(crate) fn repositories(&self) -> &Repositories {
        &self.repositories
    }

    /// Takes over what another setting knows of repositories.
    pub(crate) fn take_repositories(&mut self, other: &GateSetting) {
        self.repositories.clone_from(&other.repositories);
    }

    /// Takes the repositories as they were when they were noted in a file.
    pub(crate) fn note_repositories(&mut self, file: &Path) -> io::Result<()> {
        self.repositories = std::mem::take(&mut self.repositories).noted(file)?;
        Ok(())
    }

    /// Returns the folders that no contract uses. No panic leaves the list half changed.
    fn idle(&self) -> MutexGuard<'_, Vec<ScratchFolder>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says whether nobody else can make something in a folder, under whatever name.
fn is_private(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.mode() & 0o077 == 0)
}

fn links(home: Option<&Path>) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    for (name, variable, parts) in DOWNLOADED {
        let elsewhere = variable.and_then(std::env::var_os).map(PathBuf::from);
        let root = elsewhere.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(name)));
        let Some(root) = root.filter(|root| root.is_dir()) else { continue };
        for part in parts {
            let (link, target) = match part.is_empty() {
                true => (PathBuf::from(name), root.clone()),
                false => (Path::new(name).join(part), root.join(part)),
            };
            if target.exists() {
                links.push((link, target));
            }
        }
    }
    links
}

/// A contract's private folder; it goes when it is dropped, and with the next sweep where planctl was killed before.
#[derive(Debug)]
pub(crate) struct GateFolder {
    folder: ScratchFolder,
    content: FolderContent,
    variables: Vec<(OsString, OsString)>,
    git: Option<GitFiles>,
    is_of_checkout: bool,
}

impl GateFolder {
    /// Makes the folder with everything in it. One that a contract of the same workspace has used is used again, once nothing
    /// of that contract is in it. At a tier at which workers can't reach the folder, what could still be open for writing is
    /// made anew; at tier 0 they can, while a contract runs, in a new folder as well.
    pub(crate) fn acquire(
        spawner: &Spawner,
        setting: &GateSetting,
        workspace: &Path,
        tier: Tier,
    ) -> io::Result<GateFolder> {
        let old = match tier {
            Tier::SameUser => OldFiles::Keep,
            Tier::Landlock | Tier::Namespaces | Tier::OwnUser => OldFiles::Replace,
        };
        while let Some(idle) = { setting.idle().pop() } {
            let folder = GateFolder::describe(idle, spawner, setting, workspace)?;
            if folder.restore(old).is_ok() {
                return Ok(folder);
            }
        }
        let folder = GateFolder::describe(spawner.private_folder(GATE_PREFIX)?, spawner, setting, workspace)?;
        folder.restore(old)?;
        Ok(folder)
    }

    /// Says what the folder holds, and with which variables a contract finds it.
    fn describe(
        folder: ScratchFolder,
        spawner: &Spawner,
        setting: &GateSetting,
        workspace: &Path,
    ) -> io::Result<GateFolder> {
        let mut content = FolderContent::default();
        let at = |name: &str| folder.path().join(name);
        let (home, caches) = (at("home"), at("home/.cache"));
        for name in ["tmp", "home/.cache"] {
            content.folder(name);
        }
        for (name, target) in &setting.links {
            content.link(Path::new("home").join(name), target);
        }
        // A build of Go's own library takes long; its cache is a contract's and no worker's.
        if let Some(scratch) = spawner.scratch().filter(|scratch| setting.has_go && is_private(scratch)) {
            let kept = scratch.join(GO_CACHE);
            create_folder(&kept)?;
            content.link("home/.cache/go-build", kept);
        }
        let found = GitFolders::find(workspace);
        let is_of_checkout = found.is_some();
        let trusted: Vec<&Path> = found.iter().map(|(_, top)| top.as_path()).collect();
        let mut variables: Vec<(OsString, OsString)> =
            add_user_settings(&mut content, folder.path(), spawner.user_settings(), &trusted).into();
        let mut put = |name: &str, value: OsString| variables.push((name.into(), value));
        put("TMPDIR", at("tmp").into());
        put("XDG_CACHE_HOME", caches.into());
        put("XDG_CONFIG_HOME", home.join(".config").into());
        put("XDG_DATA_HOME", home.join(".local/share").into());
        put("XDG_STATE_HOME", home.join(".local/state").into());
        put("PYTHONPYCACHEPREFIX", at("pycache").into());
        put("PYTHONNOUSERSITE", "1".into());
        // By these they know a file that they found no fault in again, by its size and time alone.
        put("MYPY_CACHE_DIR", at("mypy").into());
        put("RUFF_CACHE_DIR", at("ruff").into());
        // These show what a task printed and gave before, by what is kept in the workspace.
        put("TURBO_FORCE", "true".into());
        put("NX_SKIP_NX_CACHE", "true".into());
        put("CARGO_HOME", home.join(".cargo").into());
        put("GOENV", "off".into());
        put("GRADLE_USER_HOME", home.join(".gradle").into());
        // Java takes the home from the system's list of users.
        let mut user_home = OsString::from("-Duser.home=");
        user_home.push(&home);
        put("MAVEN_OPTS", user_home);
        put("MAVEN_SKIP_RC", "1".into());
        put("HOME", home.into());
        let git = match (&setting.bash, &setting.git) {
            (Some(bash), Some(git)) => {
                let user = spawner.user_settings();
                setting.repositories.add_front(&mut content, folder.path(), found, user, (bash, git))?
            }
            _ => None,
        };
        Ok(GateFolder { folder, content, variables, git, is_of_checkout })
    }

    fn restore(&self, old: OldFiles) -> io::Result<()> {
        self.folder.restore(&self.content, old)
    }

    /// Keeps the folder for the next contract, where nothing of this one is alive; else the folder goes, with everything in it.
    pub(crate) fn release(self, setting: &GateSetting, finished: &io::Result<Finished>) {
        let ended = finished.as_ref().ok();
        let ended = ended.filter(|finished| finished.survivors == 0 && finished.end != End::HelperLost);
        if ended.is_some_and(|finished| finished.duration < BRIEF) {
            return setting.idle().push(self.folder);
        }
        let (setting, is_over) = (setting.clone(), ended.is_some());
        // Nobody waits until what the contract left there is removed.
        tokio::task::spawn_blocking(move || {
            if is_over && self.restore(OldFiles::Keep).is_ok() {
                setting.idle().push(self.folder);
            }
        });
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the variables that lead there.
    pub(crate) fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// Returns the git that the contract finds; `None` where the workspace lies in no checkout.
    pub(crate) fn git(&self) -> Option<&GitFiles> {
        self.git.as_ref()
    }

    /// Says whether the workspace lies in a checkout.
    pub(crate) fn is_of_checkout(&self) -> bool {
        self.is_of_checkout
    }

    /// Returns the lock that everything which uses the folder has to hold.
    pub(crate) fn lock(&self) -> Arc<OwnedFd> {
        self.folder.lock()
    }
}
