//! Agents that planctl knows by name: how each is started, what it is allowed, what it tells of itself.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{aider, claude, codex, gemini, opencode};

/// All of them, in the order in which people are told.
const ADAPTERS: [&Adapter; 5] =
    [&claude::ADAPTER, &codex::ADAPTER, &gemini::ADAPTER, &opencode::ADAPTER, &aider::ADAPTER];

/// Variables that every one of them may need to reach its service, through proxies and with the user's own settings.
const VARIABLES: [&str; 17] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "ALL_PROXY",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
];

/// The particulars of one agent (INTERFACE 3.2); its output is recognised by shape, not by name.
pub(super) struct Adapter {
    pub(super) name: &'static str,
    /// Says that its output tells what it cost.
    pub(super) reports_money: bool,
    /// Says that its output tells what it was not allowed to do.
    pub(super) reports_denials: bool,
    /// Exit statuses by which it says that a login or a right is missing.
    pub(super) permission_exits: &'static [i32],
    /// Says that all it prints is for programs.
    pub(super) speaks_json: bool,
    /// Its usual permissions, in words.
    pub(super) usual: &'static str,
    /// How a person signs in to it, in a few words.
    pub(super) sign_in: &'static str,
    /// Its own variables: logins, addresses, folders.
    pub(super) variables: &'static [&'static str],
    /// The variables and files by which it is signed in.
    pub(super) logins: Logins,
    /// Writes its command line.
    pub(super) line: fn(&Order<'_>) -> Result<CommandLine, String>,
}

/// The places where a login of an agent stands. Nothing reads their values.
pub(super) struct Logins {
    /// Variables with a key, or that choose a service with a login of its own.
    pub(super) variables: &'static [&'static str],
    /// Files with a login.
    pub(super) files: &'static [LoginFile],
}

/// A file with a login.
pub(super) struct LoginFile {
    /// The variable that names its folder, where it is set.
    pub(super) folder_variable: &'static str,
    /// Its folder below the home otherwise.
    pub(super) folder: &'static str,
    /// Its name.
    pub(super) name: &'static str,
}

/// The inputs of a command line.
pub(super) struct Order<'a> {
    pub(super) permissions: &'a Permissions,
    /// The arguments after `NAME:`.
    pub(super) arguments: &'a [String],
    pub(super) given: &'a Given<'a>,
}

/// The circumstances of one attempt, as a command line needs them.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) workspace: &'a Path,
    /// The private folder of the attempt, for files that the agent is to read or write.
    pub(super) folder: &'a Path,
    /// A UUID of this attempt's own.
    pub(super) session: &'a str,
    /// The title of the step.
    pub(super) title: &'a str,
    pub(super) budget_micro_usd: Option<u64>,
    /// The value of a variable that the agent gets.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Given<'_> {
    /// Where it may leave its last message.
    pub(super) fn last_file(&self) -> PathBuf {
        self.folder.join(LAST_MESSAGE)
    }

    /// The prompt for an agent that reads it as a message of its own, which may be a command: it begins with words.
    pub(super) fn message_file(&self) -> PathBuf {
        self.folder.join(MESSAGE)
    }
}

/// The file with an agent's last message, in the folder of its attempt.
pub(super) const LAST_MESSAGE: &str = "last-message.txt";
/// The file with the prompt as a message, in the folder of its attempt.
pub(super) const MESSAGE: &str = "message.md";
/// The usual tools of every agent, in words of lists: it edits files, and uses git.
pub(super) const USUAL: [&str; 3] = ["Edit", "Write", "Bash(git *)"];

/// A command line.
#[derive(Default)]
pub(super) struct CommandLine {
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, String)>,
    /// Files that it is to find in the folder of its attempt.
    pub(super) files: Vec<(&'static str, String)>,
    /// Says that it reads its prompt from the file of messages, and nothing on standard input.
    pub(super) reads_file: bool,
}

impl CommandLine {
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> CommandLine {
        CommandLine { arguments: words.into_iter().map(OsString::from).collect(), ..CommandLine::default() }
    }

    pub(super) fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> CommandLine {
        self.environment.push((name, value.into()));
        self
    }

    pub(super) fn with(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> CommandLine {
        self.arguments.extend(words.into_iter().map(Into::into));
        self
    }
}

/// An agent that planctl knows by name: `claude`, `codex`, `gemini`, `opencode` or `aider`.
#[derive(Clone, Copy)]
pub struct KnownAgent(&'static Adapter);

impl KnownAgent {
    /// Returns all of them.
    pub fn all() -> impl Iterator<Item = KnownAgent> {
        ADAPTERS.into_iter().map(KnownAgent)
    }

    /// Returns the one of this name.
    pub fn from_word(name: &str) -> Option<KnownAgent> {
        KnownAgent::all().find(|agent| agent.name() == name)
    }

    /// Returns its name, which is also its program's.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Says that its output tells what it cost; the others tell tokens only.
    pub fn reports_money(self) -> bool {
        self.0.reports_money
    }

    /// Returns how a person signs in to it: "sign in: `codex login`, or set CODEX_API_KEY".
    pub fn sign_in_hint(self) -> &'static str {
        self.0.sign_in
    }

    /// Returns the names of the variables and files by which it is signed in, and of those only the ones that are there and
    /// not empty. Their values are not read.
    pub fn logins_seen(self, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        let logins = &self.0.logins;
        let variables = logins.variables.iter().filter(|name| value(name).is_some());
        let files = logins.files.iter().filter_map(|file| {
            let named = value(file.folder_variable).map(PathBuf::from);
            let usual = || Some(PathBuf::from(value("HOME")?).join(file.folder));
            let path = named.or_else(usual)?.join(file.name);
            let is_there = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0);
            is_there.then(|| path.display().to_string())
        });
        variables.map(|name| (*name).to_owned()).chain(files).collect()
    }

    pub(super) fn speaks_json(self) -> bool {
        self.0.speaks_json
    }

    pub(super) fn permission_exits(self) -> &'static [i32] {
        self.0.permission_exits
    }

    pub(super) fn variables(self) -> impl Iterator<Item = &'static str> {
        VARIABLES.into_iter().chain(self.0.variables.iter().copied())
    }
}

impl PartialEq for KnownAgent {
    fn eq(&self, other: &KnownAgent) -> bool {
        self.name() == other.name()
    }
}

impl Eq for KnownAgent {}

impl fmt::Debug for KnownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for KnownAgent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for KnownAgent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KnownAgent, D::Error> {
        let name = String::deserialize(deserializer)?;
        KnownAgent::from_word(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("no agent is called {name:?}")))
    }
}

/// The permissions that an agent has without a person.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// How it is held.
    pub mode: PermissionMode,
    /// The tools it may use, `Edit`, `Write`, `Bash`, `Bash(git *)`, `*`; `None` is the agent's usual.
    pub allow: Option<Vec<String>>,
}

/// How an agent is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// It reads, and changes nothing.
    Deny,
    /// It does what the list allows, and the rest is denied.
    #[default]
    List,
    /// As `List`; a denied action becomes a question to a person.
    Ask,
}

impl PermissionMode {
    /// All of them, the strictest first.
    pub const ALL: [PermissionMode; 3] = [PermissionMode::Deny, PermissionMode::List, PermissionMode::Ask];

    /// Returns the word of configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::Deny => "deny",
            PermissionMode::List => "list",
            PermissionMode::Ask => "ask",
        }
    }
}

/// One entry of a list of tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool<'a> {
    /// `*`
    Every,
    /// `Edit`, `Write`
    Edit,
    /// `Bash`, or `Bash(git *)`
    Bash(Option<&'a str>),
    /// Any other: the agent's own name for it.
    Named(&'a str),
}

impl<'a> Tool<'a> {
    fn read(entry: &'a str) -> Result<Tool<'a>, String> {
        let wrong =
            || format!("{entry:?} can't be a tool; write its name, or one with a pattern: \"Bash(git *)\"");
        if entry == "*" {
            return Ok(Tool::Every);
        }
        let (name, pattern) = match entry.split_once('(') {
            Some((name, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(wrong)?;
                (name, Some(pattern))
            }
            None => (entry, None),
        };
        let is_name = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        let is_pattern = pattern.is_none_or(|text| {
            !text.trim().is_empty()
                && !text.contains(['"', '(', ')', ','])
                && !text.chars().any(char::is_control)
        });
        if !is_name || !is_pattern {
            return Err(wrong());
        }
        Ok(match (name, pattern) {
            ("Edit" | "Write", None) => Tool::Edit,
            ("Bash", pattern) => Tool::Bash(pattern),
            _ => Tool::Named(entry),
        })
    }
}

impl Permissions {
    /// Says that nothing is held back.
    pub(super) fn is_everything(&self) -> bool {
        self.mode != PermissionMode::Deny
            && self.allow.as_ref().is_some_and(|list| list.iter().any(|tool| tool == "*"))
    }

    /// Returns the usual list of tools.
    pub(super) fn default_tools<'a>() -> Vec<Tool<'a>> {
        vec![Tool::Edit, Tool::Bash(Some("git *"))]
    }

    /// Reads the list of tools; `None` where there is none.
    pub(super) fn tools(&self) -> Result<Option<Vec<Tool<'_>>>, String> {
        self.allow.as_ref().map(|list| list.iter().map(|entry| Tool::read(entry)).collect()).transpose()
    }
}

/// An agent by its name, with arguments of the user's own and what it is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedAgent {
    /// Which.
    pub agent: KnownAgent,
    /// Arguments that follow planctl's own.
    pub arguments: Vec<String>,
    /// Its permissions.
    pub permissions: Permissions,
}

/// Why a text names no agent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotKnown {
    /// No agent has this name.
    #[error("no agent is called {name:?}")]
    Name {
        /// The name.
        name: String,
    },
    /// The words after the name don't split as a shell would.
    #[error("a quote in {arguments:?} is not closed")]
    Arguments {
        /// The words.
        arguments: String,
    },
}

impl NamedAgent {
    /// Reads `NAME` or `NAME:ARGUMENTS`, whose words are split as a shell would; the permissions are the usual.
    ///
    /// # Errors
    ///
    /// Where no agent has that name, or a quote is not closed.
    pub fn parse(text: &str) -> Result<NamedAgent, NotKnown> {
        let (name, words) = text.split_once(':').unwrap_or((text, ""));
        let agent = KnownAgent::from_word(name.trim())
            .ok_or_else(|| NotKnown::Name { name: name.trim().to_owned() })?;
        let arguments = shlex::split(words)
            .filter(|words| !words.iter().any(|word| word.contains('\0')))
            .ok_or_else(|| NotKnown::Arguments { arguments: words.to_owned() })?;
        Ok(NamedAgent { agent, arguments, permissions: Permissions::default() })
    }

    /// Says whether this agent can be held to its permissions.
    ///
    /// # Errors
    ///
    /// Text that says what it can't be held to, and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        let nowhere = Path::new("/dev/null");
        let given = Given {
            workspace: nowhere,
            folder: nowhere,
            session: "",
            title: "",
            budget_micro_usd: None,
            variable: &|_| None,
        };
        self.command_line(&given).map(drop)
    }

    /// Says that it may change files.
    pub fn may_edit(&self) -> bool {
        let tools = self.permissions.tools().ok();
        self.permissions.mode != PermissionMode::Deny
            && tools.is_some_and(|tools| {
                tools.is_none_or(|tools| tools.iter().any(|tool| matches!(tool, Tool::Every | Tool::Edit)))
            })
    }

    /// Says in words what it may do without a person: `edit, git *`.
    pub fn may(&self) -> String {
        match (self.permissions.mode, &self.permissions.allow) {
            (PermissionMode::Deny, _) => "read".to_owned(),
            (PermissionMode::List | PermissionMode::Ask, None) => self.agent.0.usual.to_owned(),
            (PermissionMode::List | PermissionMode::Ask, Some(list))
                if list.iter().any(|tool| tool == "*") =>
            {
                "everything".to_owned()
            }
            (PermissionMode::List | PermissionMode::Ask, Some(list)) if list.is_empty() => "read".to_owned(),
            (PermissionMode::List | PermissionMode::Ask, Some(list)) => list.join(", "),
        }
    }

    pub(super) fn command_line(&self, given: &Given<'_>) -> Result<CommandLine, String> {
        let name = self.agent.name();
        if self.permissions.mode == PermissionMode::Ask && !self.agent.0.reports_denials {
            return Err(format!(
                "{name} does not tell what it was denied, so nobody can be asked; write \"deny\" or \"list\""
            ));
        }
        if self.permissions.mode == PermissionMode::Deny && self.permissions.allow.is_some() {
            return Err("with \"deny\" nothing is allowed; remove `allow`, or write \"list\"".to_owned());
        }
        let order = Order { permissions: &self.permissions, arguments: &self.arguments, given };
        (self.agent.0.line)(&order)
    }

    /// Returns the model that its arguments name.
    pub fn model(&self) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        let mut model = None;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-m" | "--model" => model = arguments.next().map(String::as_str),
                other => model = other.strip_prefix("--model=").or(model),
            }
        }
        model
    }
}

impl fmt::Display for NamedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.agent.name())?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        let words = self.arguments.iter().map(String::as_str);
        write!(f, ":{}", shlex::try_join(words).map_err(|_| fmt::Error)?)
    }
}

/// Says that an agent can't be held to a list of tools.
pub(super) fn no_list(name: &str, instead: &str) -> String {
    format!("{name} can't be held to a list of tools: remove `allow`, or write allow = [\"*\"], {instead}")
}

#[cfg(test)]
mod tests;
