//! Finds the program of an agent that is known by its name, or says how to install it.

use std::ffi::OsStr;
use std::path::PathBuf;

use planctl_harness::{KnownAgent, NamedAgent, agent_environment, blocking_in_place, find_program};

/// A program that is in no folder of the agents' `PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingProgram {
    /// Its name.
    pub name: &'static str,
    /// The folders that were searched, as `PATH` lists them.
    pub searched: String,
}

impl MissingProgram {
    /// Says how to install it.
    pub fn help(&self) -> String {
        let searched = &self.searched;
        match installed_by(self.name) {
            Some(command) => {
                format!("install it: {command}, or add its folder to PATH (searched: {searched})")
            }
            None => format!("install it, or add its folder to PATH (searched: {searched})"),
        }
    }
}

/// Returns the command that installs an agent's program.
fn installed_by(name: &str) -> Option<&'static str> {
    Some(match name {
        "aider" => "python3 -m pip install aider-chat",
        "claude" => "npm install -g @anthropic-ai/claude-code",
        "codex" => "npm install -g @openai/codex",
        "gemini" => "npm install -g @google/gemini-cli",
        "opencode" => "npm install -g opencode-ai",
        _ => return None,
    })
}

/// Returns the agents whose programs are there.
pub fn installed_agents() -> impl Iterator<Item = NamedAgent> {
    KnownAgent::all()
        .filter_map(|agent| NamedAgent::parse(agent.name()).ok())
        .filter(|agent| agent_program(agent).is_ok())
}

/// Finds the program of an agent where agents look for it.
///
/// # Errors
///
/// [`MissingProgram`] where it is not installed.
pub fn agent_program(known: &NamedAgent) -> Result<PathBuf, MissingProgram> {
    let name = known.agent.name();
    let environment = agent_environment([]);
    let path = environment.into_iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let path = path.unwrap_or_default();
    blocking_in_place(|| find_program(OsStr::new(name), &path))
        .ok_or_else(|| MissingProgram { name, searched: path.to_string_lossy().into_owned() })
}
