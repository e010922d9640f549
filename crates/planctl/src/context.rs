//! The context that all commands share: the workspace, the configuration, the output format, the actor.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::ValueEnum;
use planctl_config::{CandidateFile, ConfigError, Loaded, Sources, WorkspaceMode};
use planctl_server::http::socket_of;

use crate::failure::{Exit, Failure};
use crate::flags::{Format, Global};
use crate::{decide, next, person, secrecy, show};

/// Hears what a command says, in place of standard error.
pub type Hears = Arc<dyn Fn(&str) + Send + Sync>;

/// State that all commands share: the workspace, the output format, the actor.
pub struct Context {
    global: Global,
    workspace: PathBuf,
    /// The kind of place that `--workspace` names.
    mode: Option<WorkspaceMode>,
    /// Says that the command decides or looks, which a file that came with a repository must not keep a person from.
    leaves_unread: bool,
    hears: Option<Hears>,
    loaded: OnceLock<Loaded>,
}

impl Context {
    /// Returns what a command shares, for the flags that were given.
    pub fn new(global: Global) -> Result<Context, Failure> {
        let mode = global.workspace_mode();
        let workspace = find_workspace(global.named_workspace())?;
        Ok(Context { global, workspace, mode, leaves_unread: false, hears: None, loaded: OnceLock::new() })
    }

    /// Returns a context for what a daemon does for a person at the page: under their name, in a workspace, by the daemon's own
    /// socket. It asks nobody, and what it says is heard in place of standard error.
    pub fn for_page(&self, workspace: &Path, actor: &str, hears: Hears) -> Result<Context, Failure> {
        let global = Global {
            workspace: Some(workspace.to_owned()),
            actor: Some(actor.to_owned()),
            server: Some(socket_of(&self.state_dir()?).to_string_lossy().into_owned()),
            database_url: None,
            json: true,
            format: None,
            no_input: true,
            quiet: false,
            verbose: 0,
            ..self.global.clone()
        };
        Ok(Context { hears: Some(hears), ..Context::new(global)? })
    }

    /// Returns a context like this one for another workspace.
    pub fn in_workspace(&self, workspace: &Path) -> Result<Context, Failure> {
        let global = Global { workspace: Some(workspace.to_owned()), ..self.global.clone() };
        Ok(Context { mode: self.mode, leaves_unread: self.leaves_unread, ..Context::new(global)? })
    }

    /// Notes for what is said to be typed next where this command was typed.
    pub fn note_invocation(&self, is_command: fn(&str) -> bool) {
        next::note_invocation(&self.global, &self.workspace, is_command);
    }

    /// Says whether the command decides or looks, which a file that came with a repository must not keep a person from.
    pub fn set_leaves_unread(&mut self, leaves_unread: bool) {
        self.leaves_unread = leaves_unread;
    }

    /// Returns the directory that steps and contracts work in.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns planctl's state directory; there is none where no home directory is known (row 107).
    pub fn state_dir(&self) -> Result<PathBuf, Failure> {
        planctl_server::database::state_dir()
            .map_err(|error| Failure::new(Exit::Configuration, format!("could not {error}")))
    }

    /// Returns the effective configuration; says its warnings when it is read.
    pub fn config(&self) -> Result<&Loaded, Failure> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load(&self.workspace)?;
        for warning in &loaded.warnings {
            self.say(&show::styled(show::CARE, &format!("warning: {}", show::safe(warning))));
        }
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Reads the configuration for a workspace anew.
    pub fn load(&self, workspace: &Path) -> Result<Loaded, Failure> {
        self.with_sources(workspace, planctl_config::load)
    }

    /// Returns the paths of the files that are read.
    pub fn config_places(&self) -> Result<Vec<CandidateFile>, Failure> {
        self.with_sources(&self.workspace, planctl_config::places)
    }

    fn with_sources<T>(
        &self,
        workspace: &Path,
        asked: impl Fn(&Sources<'_>) -> Result<T, ConfigError>,
    ) -> Result<T, Failure> {
        asked(&Sources {
            workspace,
            state_dir: &self.state_dir()?,
            file: self.global.config.as_deref(),
            database_url: self.global.database_url.as_deref(),
            workspace_mode: self.mode,
            leaves_unread: self.leaves_unread,
            env: &|name| secrecy::variable(name),
        })
        .map_err(|error| config_failure(&error))
    }

    /// Returns the database that was named on the command line; it may hold a password.
    pub fn named_database(&self) -> Option<&str> {
        self.global.database_url.as_deref()
    }

    /// Returns the configuration file that was named.
    pub fn config_named(&self) -> Option<PathBuf> {
        self.global.config.clone().or_else(|| std::env::var_os("PLANCTL_CONFIG").map(PathBuf::from))
    }

    /// Returns how often `-v` was given.
    pub fn verbosity(&self) -> u8 {
        self.global.verbose
    }

    /// Says that the workspace was named on the command line.
    pub fn names_workspace(&self) -> bool {
        self.global.workspace.is_some() && self.mode.is_none()
    }

    /// Returns the daemon that was named.
    pub fn server(&self) -> Option<String> {
        let named = self.global.server.clone().or_else(|| std::env::var("PLANCTL_SERVER").ok());
        named.filter(|named| !named.trim().is_empty())
    }

    /// Says that a token may be sent to another machine unencrypted.
    pub fn is_insecure(&self) -> bool {
        self.global.insecure
    }

    /// Returns the token to show to a daemon.
    ///
    /// # Errors
    ///
    /// When the file that is said to hold it can't be read, or others can read it too (row 107).
    pub fn token(&self) -> Result<Option<String>, Failure> {
        let given = secrecy::variable("PLANCTL_TOKEN").and_then(|token| token.into_string().ok());
        if let Some(token) = given.filter(|token| !token.trim().is_empty()) {
            return Ok(Some(token.trim().to_owned()));
        }
        let Some(path) = std::env::var_os("PLANCTL_TOKEN_FILE").map(PathBuf::from) else { return Ok(None) };
        let wrong = |what: String| {
            Failure::new(
                Exit::Configuration,
                format!("could not read the token in {}: {what}", path.display()),
            )
        };
        let meta = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?;
        if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 != 0 {
            return Err(wrong("others can read it".to_owned()).next(format!("chmod 600 {}", path.display())));
        }
        let token = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(token.trim().to_owned()))
    }

    /// Returns the configuration files that were read, or the one that was named.
    pub fn config_files(&self) -> Vec<PathBuf> {
        let named =
            self.global.config.clone().or_else(|| std::env::var_os("PLANCTL_CONFIG").map(PathBuf::from));
        let read = self.loaded.get().map(|loaded| loaded.files.clone());
        read.unwrap_or_default().into_iter().chain(named).collect()
    }

    /// Returns the actor of a decision.
    pub fn actor(&self) -> String {
        // Read here: clap would show the flag as required wherever the variable is set.
        let named = self.global.actor.clone().or_else(|| std::env::var("PLANCTL_ACTOR").ok());
        named
            .filter(|name| !name.trim().is_empty())
            .or_else(login)
            .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
    }

    /// Returns how to answer, of the ways this command knows; `--json` means the first JSON among them.
    pub fn format(&self, known: &[Format]) -> Result<Format, Failure> {
        let json = [Format::Json, Format::Jsonl].into_iter().find(|format| known.contains(format));
        let wanted = if self.global.json { json.or(Some(Format::Json)) } else { self.global.format };
        let Some(wanted) = wanted else {
            // The variable is meant for all commands, so those that don't know its format answer as they do without.
            let usual =
                std::env::var("PLANCTL_FORMAT").ok().and_then(|word| Format::from_str(&word, true).ok());
            return Ok(usual.filter(|format| known.contains(format)).unwrap_or(known[0]));
        };
        if known.contains(&wanted) {
            return Ok(wanted);
        }
        let names: Vec<String> = known.iter().map(|format| format!("{format:?}").to_lowercase()).collect();
        let wanted = format!("{wanted:?}").to_lowercase();
        Err(Failure::usage(format!("this command does not answer as {wanted}"))
            .help(format!("it knows --format {}", names.join(", "))))
    }

    /// Says whether a flag says how to answer.
    pub fn names_format(&self) -> bool {
        self.global.json || self.global.format.is_some()
    }

    /// Says whether to answer with JSON, for commands that know human and JSON.
    pub fn is_json(&self) -> Result<bool, Failure> {
        Ok(self.format(&[Format::Human, Format::Json])? == Format::Json)
    }

    /// Says whether less should be said.
    pub fn is_quiet(&self) -> bool {
        self.global.quiet
    }

    /// Says whether a person can be asked: both ends are a terminal, and nobody forbade it.
    pub fn is_interactive(&self) -> bool {
        !self.global.no_input
            && !person::is_in_worker()
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal()
    }

    /// Writes talk to standard error, unless `--quiet`.
    pub fn say(&self, line: &str) {
        match &self.hears {
            Some(hears) => hears(&anstream::adapter::strip_str(line).to_string()),
            None if self.global.quiet => {}
            None => show::tell(line),
        }
    }

    /// Writes to standard error what a person has to see before they answer; whoever hears this command sees it elsewhere.
    pub fn tell(&self, text: &str) {
        if self.hears.is_none() {
            show::tell(text);
        }
    }

    /// Writes findings to standard error, where there are any and unless `--quiet`.
    pub fn say_findings(&self, findings: &str) {
        if !findings.is_empty() {
            self.say(findings.trim_end());
        }
    }

    /// Makes sure that a person means it, where something is lost for good. Ctrl-C is an error.
    pub async fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.global.yes {
            return Ok(());
        }
        self.refuse_unless_interactive(question, "A terminal is needed to confirm, or --yes")?;
        done_if(decide::is_yes_or_stopped(question).await?)
    }

    /// Makes sure that a person approves something; `--yes` is not an approval. Ctrl-C is an error.
    pub async fn ask_for_approval(&self, question: &str) -> Result<(), Failure> {
        self.refuse_unless_interactive(question, "A terminal is needed to approve, or --approve")?;
        done_if(decide::is_yes_or_stopped(question).await?)
    }

    fn refuse_unless_interactive(&self, question: &str, otherwise: &str) -> Result<(), Failure> {
        if self.is_interactive() { Ok(()) } else { Err(Failure::usage(format!("{question} {otherwise}"))) }
    }
}

fn done_if(is_yes: bool) -> Result<(), Failure> {
    if is_yes { Ok(()) } else { Err(Failure::new(Exit::Cancelled, "nothing was done")) }
}

/// Returns the login of the user that this process runs as; `USER` may be anybody's.
fn login() -> Option<String> {
    // The system also knows users of directories such as LDAP.
    nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name)
}

fn find_workspace(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let current = || {
        std::env::current_dir()
            .map_err(|error| Failure::not_found(format!("could not find the current directory: {error}")))
    };
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let current = current()?;
            planctl_harness::git_top_level(&current).map_or(current.clone(), Path::to_owned)
        }
    };
    let canonical = path.canonicalize().map_err(|error| {
        Failure::not_found(format!("could not use the workspace {}: {error}", path.display()))
    })?;
    if !canonical.is_dir() {
        return Err(Failure::not_found(format!("the workspace {} is not a directory", path.display())));
    }
    Ok(canonical)
}

/// Says everything that is wrong with the configuration, each finding with its place.
pub fn config_failure(error: &ConfigError) -> Failure {
    let mut message = format!("could not {error}");
    if let ConfigError::Invalid { path, findings } = error {
        for finding in findings {
            message.push_str(&format!(
                "\n  {}:{}:{}  {}",
                path.display(),
                finding.line,
                finding.column,
                finding.message
            ));
            if let Some(help) = &finding.help {
                message.push_str(&format!("\n      help: {help}"));
            }
        }
    }
    let exit = match error {
        ConfigError::Missing { .. } => Exit::NotFound,
        ConfigError::Unwritable { path, source } => {
            return Failure::of_state(format!("write {}", path.display()), source);
        }
        ConfigError::Unreadable { .. }
        | ConfigError::NotAFile { .. }
        | ConfigError::Invalid { .. }
        | ConfigError::Exposed { .. }
        | ConfigError::Value { .. }
        | ConfigError::TrustDamaged { .. } => Exit::Configuration,
    };
    let failure =
        Failure { file: error.file().map(|file| Box::new(file.to_owned())), ..Failure::new(exit, message) };
    if let ConfigError::Exposed { path } = error {
        return failure.next(format!("chmod o-r {}", show::file_word(path)));
    }
    failure
}
