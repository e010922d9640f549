//! The generic `--exec` protocol, version 1 (INTERFACE 3.5): folder, environment, prompt, command line.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use planctl_engine::{Fault, FaultKind, Tier};

use super::dialect::Answer;
use super::known::{CommandLine, Given, LAST_MESSAGE, MESSAGE};
use super::{Agent, Assignment, Program};
use crate::beneath::{LastLink, Root};
use crate::context::ContextEntry;
use crate::environment::{PATH_DEFAULT, agent_environment, set};
use crate::foreign_json::read_foreign_json;
use crate::isolation::{Network, agent_named_in};
use crate::process::{Command, Input, find_program};
use crate::prompt::random_key;
use crate::proxy::{self, Hosts};
use crate::reach::Reach;
use crate::scratch::{ScratchFolder, WORK_PREFIX, create_folder, write_private};
use crate::walk::stays_inside;

/// The most bytes of a result file that are read.
const RESULT_BYTES_MAX: u64 = 1024 * 1024;
/// The kernel refuses a longer argument.
const ARGUMENT_BYTES_MAX: usize = 120 * 1024;

/// The private folder of one attempt: prompt, context and result, for nobody else to read.
pub(super) struct AttemptFolder {
    folder: ScratchFolder,
}

impl AttemptFolder {
    pub(super) fn prepare(
        scratch: &Path,
        prompt: &str,
        context: &[ContextEntry],
    ) -> io::Result<AttemptFolder> {
        let folder = AttemptFolder { folder: ScratchFolder::make(scratch, WORK_PREFIX)? };
        write_private(&folder.prompt_file(), prompt.as_bytes())?;
        create_folder(&folder.context_folder())?;
        for entry in context {
            let (Some(path), Some(bytes)) = (entry.path(), &entry.bytes) else { continue };
            if !stays_inside(Path::new(path)) {
                continue;
            }
            let target = folder.context_folder().join(path);
            if let Some(parent) = target.parent() {
                create_folder(parent)?;
            }
            write_private(&target, bytes)?;
        }
        Ok(folder)
    }

    pub(super) fn prompt_file(&self) -> PathBuf {
        self.folder.path().join("prompt.md")
    }

    fn context_folder(&self) -> PathBuf {
        self.folder.path().join("context")
    }

    fn result_file(&self) -> PathBuf {
        self.folder.path().join("result.json")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        write_private(&self.folder.path().join(name), text.as_bytes())
            .map_err(|error| format!("its file {name} could not be written: {error}"))
    }

    /// Reads the message that an agent left as its last, where it left one.
    pub(super) fn last_message(&self) -> Option<String> {
        let root = Root::open(self.folder.path()).ok()?;
        let content = root.read(Path::new(LAST_MESSAGE), LastLink::Refuse, RESULT_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&content).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Reads the result file, where the agent wrote one that makes sense.
    pub(super) fn result(&self) -> Option<Answer> {
        let root = Root::open(self.folder.path()).ok()?;
        let content = root.read(Path::new("result.json"), LastLink::Refuse, RESULT_BYTES_MAX).ok()?;
        Answer::from_result_json(&read_foreign_json(&content).ok()?)
    }
}

/// Makes the process that does the work.
///
/// # Errors
///
/// The trouble that there can be none: lasting where the agent can't be held, passing where a file could not be written.
pub(super) fn command(
    agent: &Agent,
    assignment: &Assignment,
    folder: &AttemptFolder,
) -> Result<Command, Fault> {
    let passing = |message: String| Fault::new(FaultKind::Transient, message);
    let mut environment = environment(agent, assignment, folder);
    let places = Places { prompt: &assignment.prompt, prompt_file: &folder.prompt_file() };
    let (arguments, has_prompt) = match &agent.program {
        Program::Shell(script) => places.shell(&bash_in(&environment), script),
        Program::Known(known) => {
            let session = random_uuid();
            let variable = |name: &str| {
                let found = environment.iter().rev().find(|(own, _)| own == name);
                found.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
            };
            let line = known.command_line(&Given {
                workspace: &assignment.workspace,
                folder: folder.folder.path(),
                session: &session,
                title: &assignment.step_title,
                budget_micro_usd: assignment.budget_micro_usd,
                variable: &variable,
            });
            let line = line.map_err(|message| Fault::new(FaultKind::Permanent, message))?;
            let CommandLine { arguments, environment: own, files, reads_file } = line;
            for (name, text) in files {
                folder.write(name, &text).map_err(passing)?;
            }
            if reads_file {
                // A message that begins with `/` or `!` is a command.
                folder
                    .write(MESSAGE, &format!("This is the task.\n\n{}", assignment.prompt))
                    .map_err(passing)?;
            }
            for (name, value) in own {
                set(&mut environment, name.into(), value.into());
            }
            (arguments, reads_file)
        }
    };
    if arguments.iter().any(|argument| argument.len() > ARGUMENT_BYTES_MAX) {
        let message = "the prompt is too long for an argument; use {prompt_file} or standard input";
        return Err(Fault::new(FaultKind::Permanent, message.to_owned()));
    }
    let mut command = Command::new(arguments, &assignment.workspace);
    command.environment = environment;
    command.input =
        if has_prompt { Input::Null } else { Input::Bytes(assignment.prompt.as_bytes().to_vec()) };
    command.deadline = Some(assignment.deadline);
    command.idle_timeout = agent.idle_timeout;
    command.grace = agent.grace;
    command.locks.clone_from(&assignment.locks);
    command.locks.push(folder.folder.lock());
    let name = match &agent.program {
        Program::Known(known) => Some(known.agent.name()),
        Program::Shell(script) => agent_named_in(script),
    };
    let private = [folder.folder.path().to_owned()];
    let network = network(agent, assignment).map_err(passing)?;
    if let Network::Hosts(_) = network {
        for (name, value) in proxy::variables() {
            set(&mut command.environment, name.into(), value.into());
        }
    }
    command.confinement = agent.isolation.of_worker(&assignment.workspace, &private, name, network);
    if command.confinement.is_some() {
        let temporary = folder.folder.path().join("tmp");
        create_folder(&temporary)
            .map_err(|error| passing(format!("its folder {}: {error}", temporary.display())))?;
        set(&mut command.environment, "TMPDIR".into(), temporary.into());
    }
    Ok(command)
}

/// Says which network the worker gets.
///
/// # Errors
///
/// Text that says why it can't be kept from the host's.
fn network(agent: &Agent, assignment: &Assignment) -> Result<Network, String> {
    let network = match &agent.network {
        Reach::Host => return Ok(Network::Host),
        Reach::Nothing => Network::Loopback,
        Reach::Hosts(listed) => {
            Network::Hosts(Arc::new(Hosts { role: assignment.role.clone(), listed: listed.clone() }))
        }
    };
    match agent.isolation.tier {
        Tier::Namespaces | Tier::OwnUser => Ok(network),
        tier @ (Tier::SameUser | Tier::Landlock) => {
            Err(format!("a network of its own needs isolation tier 1b, and this is tier {tier}"))
        }
    }
}

/// Draws a UUID of version 4, for a session of this attempt's own.
fn random_uuid() -> String {
    let mut key = random_key();
    key.replace_range(12..13, "4");
    key.replace_range(16..17, "8");
    for at in [8, 13, 18, 23] {
        key.insert(at, '-');
    }
    key
}

fn environment(agent: &Agent, assignment: &Assignment, folder: &AttemptFolder) -> Vec<(OsString, OsString)> {
    let own =
        agent.program.known().into_iter().flat_map(|known| known.agent.variables()).map(|name| name as &str);
    let mut environment = agent_environment(agent.inherited.iter().map(String::as_str).chain(own));
    for (name, value) in &agent.environment {
        set(&mut environment, name.clone(), value.clone());
    }
    let mut tell = |name: &str, value: OsString| set(&mut environment, name.into(), value);
    tell("PLANCTL_PROTOCOL", "1".into());
    for (name, value) in [
        ("PLANCTL_ITEM_ID", &assignment.item),
        ("PLANCTL_RUN_ID", &assignment.run),
        ("PLANCTL_PLAN", &assignment.plan),
        ("PLANCTL_STEP", &assignment.step),
        ("PLANCTL_STEP_TITLE", &assignment.step_title),
        ("PLANCTL_NODE", &assignment.node),
        ("PLANCTL_ROLE", &assignment.role),
    ] {
        tell(name, value.replace('\0', "").into());
    }
    let profile = assignment.profile.clone().unwrap_or_default();
    for (name, value) in [
        ("PLANCTL_PROFILE", &profile.name),
        ("PLANCTL_MODEL", &profile.model),
        ("PLANCTL_PROVIDER", &profile.provider),
        ("PLANCTL_EFFORT", &profile.effort),
        ("PLANCTL_THREAD", &assignment.thread),
    ] {
        if let Some(value) = value {
            tell(name, value.replace('\0', "").into());
        }
    }
    tell("PLANCTL_ATTEMPT", assignment.attempt.to_string().into());
    tell("PLANCTL_MAX_ATTEMPTS", assignment.attempts_max.to_string().into());
    tell("PLANCTL_WORKSPACE", assignment.workspace.clone().into());
    tell("PLANCTL_PROMPT_FILE", folder.prompt_file().into());
    tell("PLANCTL_CONTEXT_DIR", folder.context_folder().into());
    tell("PLANCTL_RESULT_FILE", folder.result_file().into());
    // A `planctl` that the agent starts finds the daemon by its state directory. Whether it can reach that is for the isolation
    // to say, and what it may do there for the daemon, which knows workers by their ancestry.
    let state_dir = std::env::var_os("PLANCTL_STATE_DIR").filter(|dir| !dir.is_empty());
    if let Some(state_dir) = state_dir.and_then(|dir| std::path::absolute(dir).ok()) {
        tell("PLANCTL_STATE_DIR", state_dir.into());
    }
    if let Some(deadline) = &assignment.deadline_at {
        tell("PLANCTL_DEADLINE", deadline.into());
    }
    if let Some(tokens) = assignment.budget_tokens {
        tell("PLANCTL_BUDGET_TOKENS", tokens.to_string().into());
    }
    if let Some(money) = assignment.budget_micro_usd {
        tell("PLANCTL_BUDGET_USD", format!("{}.{:06}", money / 1_000_000, money % 1_000_000).into());
    }
    if let Some(trace) = &assignment.traceparent {
        tell("TRACEPARENT", trace.into());
    }
    environment
}

/// Returns the bash of the machine, which is in no folder of its own everywhere: where contracts find theirs.
fn bash_in(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
    let paths = path.into_iter().chain([OsStr::new(PATH_DEFAULT)]);
    let mut found = paths.filter_map(|path| find_program(OsStr::new("bash"), path));
    found.next().unwrap_or_else(|| "/bin/bash".into())
}

/// The values of placeholders.
struct Places<'a> {
    prompt: &'a str,
    prompt_file: &'a Path,
}

impl Places<'_> {
    /// Hands values over as positional parameters, so that the shell never reads them as its own text (A13).
    fn shell(&self, bash: &Path, script: &str) -> (Vec<OsString>, bool) {
        let (script, has_prompt) = substitute(script);
        let arguments: [OsString; 6] = [
            bash.into(),
            "-c".into(),
            script.into(),
            "planctl-agent".into(),
            if has_prompt.text { self.prompt.replace('\0', "").into() } else { OsString::new() },
            self.prompt_file.into(),
        ];
        (arguments.into(), has_prompt.text || has_prompt.file)
    }
}

#[derive(Default)]
struct Substituted {
    text: bool,
    file: bool,
}

/// Puts parameters in place of placeholders, quoted as their place needs it.
fn substitute(script: &str) -> (String, Substituted) {
    #[derive(PartialEq)]
    enum Quote {
        None,
        Single,
        Double,
    }
    let mut done = Substituted::default();
    let mut text = String::new();
    let mut quote = Quote::None;
    let mut rest = script;
    while let Some(next) = rest.chars().next() {
        let placeholder = [("{prompt}", "${1}"), ("{prompt_file}", "${2}")]
            .into_iter()
            .find(|(placeholder, _)| rest.starts_with(placeholder));
        if let Some((placeholder, parameter)) = placeholder {
            match placeholder {
                "{prompt}" => done.text = true,
                _ => done.file = true,
            }
            text.push_str(&match quote {
                Quote::None => format!("\"{parameter}\""),
                Quote::Double => parameter.to_owned(),
                Quote::Single => format!("'\"{parameter}\"'"),
            });
            rest = &rest[placeholder.len()..];
            continue;
        }
        let mut length = next.len_utf8();
        match (next, &quote) {
            ('\\', Quote::None | Quote::Double) => {
                length += rest[1..].chars().next().map_or(0, char::len_utf8)
            }
            ('\'', Quote::None) => quote = Quote::Single,
            ('\'', Quote::Single) | ('"', Quote::Double) => quote = Quote::None,
            ('"', Quote::None) => quote = Quote::Double,
            _ => {}
        }
        text.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (text, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a13_placeholders_become_parameters_quoted_for_their_place() {
        for (script, expected) in [
            ("agent -p {prompt}", "agent -p \"${1}\""),
            ("agent -p \"{prompt}\"", "agent -p \"${1}\""),
            ("agent -p 'x {prompt} y'", "agent -p 'x '\"${1}\"' y'"),
            ("agent --file={prompt_file} \\'{prompt}", "agent --file=\"${2}\" \\'\"${1}\""),
            ("echo ${HOME} {other} é\\", "echo ${HOME} {other} é\\"),
        ] {
            assert_eq!(substitute(script).0, expected, "{script}");
        }
    }

    #[test]
    fn b10_9_bash_is_looked_for_where_the_worker_finds_programs() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let bash = folder.path().join("bash");
        std::fs::write(&bash, "").unwrap();
        std::fs::set_permissions(&bash, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = |folder: &Path| vec![("PATH".into(), folder.as_os_str().to_owned())];
        assert_eq!(bash_in(&path(folder.path())), bash);
        assert_eq!(bash_in(&path(Path::new("/none"))), bash_in(&[]));
    }

    #[test]
    fn a_session_is_a_uuid_of_version_4_and_never_the_same() {
        let uuid = random_uuid();
        assert_ne!(uuid, random_uuid());
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert_eq!((&uuid[14..15], &uuid[19..20]), ("4", "8"));
    }
}
