//! The programs and scripts in the workspace that the agents' own commands run: a worker that rewrites one decides what the next worker
//! does. They are looked at when the agent is named, sealed with the run's settings, and protected as the
//! files of contracts are; no worker starts as long as one differs.

use std::collections::BTreeSet;
use std::path::Path;

use planctl_harness::{Baseline, ProtectError, blocking_in_place};
use planctl_store::Approval;
use serde_json::Value;

use crate::node::services::ServiceError;
use crate::runs::settings::RunSettings;
use planctl_config::{Agent, WORKER};

/// The most files that a message names.
const NAMED_MAX: usize = 5;

/// Takes the scripts in a workspace that these agents' commands run, as they are now.
pub fn agent_scripts<'a>(
    agents: impl IntoIterator<Item = &'a Agent>,
    workspace: &Path,
) -> Result<Baseline, ProtectError> {
    let mut named = BTreeSet::new();
    for agent in agents {
        match agent {
            Agent::Exec(command) => named.extend(planctl_lang::scripts_of_command(command)),
            Agent::Known { .. } | Agent::Session => {}
        }
    }
    blocking_in_place(|| Baseline::take(workspace, named.iter().map(String::as_str), []))
}

/// Returns the one worker that an approval is of, where it is.
pub(crate) fn approved_worker(approval: &Approval) -> Result<Option<Agent>, ServiceError> {
    let broken =
        |error: serde_json::Error| ServiceError::broken(format!("an approval does not read: {error}"));
    let config: Value = serde_json::from_str(&approval.config).map_err(broken)?;
    config.get(WORKER).map(|worker| serde_json::from_value(worker.clone())).transpose().map_err(broken)
}

impl RunSettings {
    /// Seals the scripts that the commands of this run's agents run, as they are in a place now.
    ///
    /// # Errors
    ///
    /// When the place can't be opened.
    pub(crate) fn with_scripts_of(mut self, place: &Path) -> Result<RunSettings, ServiceError> {
        let scripts = agent_scripts(self.agents(), place)?;
        self.scripts = Some(scripts).filter(|scripts| !scripts.is_empty());
        Ok(self)
    }

    /// Protects the scripts of the agents as the files of contracts are.
    pub(crate) fn protect_scripts(&self, baseline: &mut Baseline) {
        for (path, state) in self.scripts.iter().flat_map(|scripts| &scripts.files) {
            baseline.files.entry(path.clone()).or_insert_with(|| state.clone());
        }
    }

    /// Says which scripts of agents differ from what was sealed, and what to do about it.
    pub(crate) fn changed_scripts(&self, place: &Path) -> Result<Option<String>, ServiceError> {
        let Some(sealed) = &self.scripts else { return Ok(None) };
        let changed = blocking_in_place(|| sealed.compare(place))?.tampered;
        if changed.is_empty() {
            return Ok(None);
        }
        let named = changed.iter().take(NAMED_MAX);
        let named: Vec<String> =
            named.map(|file| format!("{} ({})", file.path, file.change.as_str())).collect();
        let again = match &self.worker {
            Some(worker) => format!("resume the run and name its worker again, {worker}"),
            None => "cancel the run and start another".to_owned(),
        };
        Ok(Some(format!(
            "the agent's own script is not what it was when the run was approved: {}; put it back and retry, or, where \
             you mean it: {again}",
            named.join(", ")
        )))
    }
}
