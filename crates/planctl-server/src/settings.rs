//! What a run was started with: approved with its plan, stored with the run, and never read from a file again (A14).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::Role;
use planctl_harness::{Agent, Inherited, Program};
use planctl_store::ServedRole;
use serde::{Deserialize, Serialize};

use crate::config::{self, Config};

/// The effective configuration of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunSettings {
    /// The command that serves every role, where the person who started the run named one.
    pub exec: Option<String>,
    /// What serves each role.
    pub roles: BTreeMap<String, RoleSettings>,
    /// Variables that contracts get.
    pub contract_env: BTreeMap<String, String>,
    /// Directories that stand before the fixed search path of contracts.
    pub contract_path: Vec<PathBuf>,
}

/// What serves one role.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RoleSettings {
    /// The command, in the `--exec` protocol.
    pub exec: Option<String>,
    /// How long its worker may print nothing.
    pub idle_timeout: Option<Duration>,
    /// Variables set for it.
    pub env: BTreeMap<String, String>,
    /// Variables passed on to it.
    pub inherit: Vec<String>,
}

impl RunSettings {
    /// Takes what matters to a run out of the configuration.
    pub fn new(config: &Config, exec: Option<String>) -> RunSettings {
        let roles = config.roles.iter().map(|(role, config)| {
            let settings = RoleSettings {
                exec: config.agent.as_ref().map(|config::Agent::Exec(command)| command.clone()),
                idle_timeout: config.idle_timeout,
                env: config.env.set.clone(),
                inherit: config.env.inherit.clone(),
            };
            (role.as_str().to_owned(), settings)
        });
        RunSettings {
            exec,
            roles: roles.collect(),
            contract_env: config.contracts.env.clone(),
            contract_path: config.contracts.path.clone(),
        }
    }

    /// Returns the command that serves a role, if one does.
    pub fn command(&self, role: &Role) -> Option<&str> {
        let own = self.roles.get(role.as_str()).and_then(|role| role.exec.as_deref());
        self.exec.as_deref().or(own)
    }

    /// Returns the roles that these settings serve.
    pub fn served(&self) -> Vec<ServedRole> {
        if self.exec.is_some() {
            return vec![ServedRole::Any];
        }
        let roles = self.roles.keys().map(|name| Role::new(name.as_str()));
        roles.filter(|role| self.command(role).is_some()).map(ServedRole::One).collect()
    }

    /// Returns the agent that serves a role, if one does.
    pub(crate) fn agent(&self, role: &Role, scratch: &std::path::Path) -> Option<Agent> {
        let command = self.command(role)?.to_owned();
        let mut agent = Agent::exec(Program::Shell(command), scratch);
        if let Some(settings) = self.roles.get(role.as_str()) {
            agent.idle_timeout = settings.idle_timeout;
            agent.inherited = Inherited::Listed(settings.inherit.clone());
            agent.environment =
                settings.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        }
        Some(agent)
    }
}
