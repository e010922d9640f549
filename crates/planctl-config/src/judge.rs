//! Judges: the models and the roles that may be asked about work, and how far their word counts (P-71).

use std::collections::BTreeMap;

use planctl_engine::Role;
use serde::{Deserialize, Serialize};

use crate::model::{ModelApi, ModelConfig};
use crate::role::{Agent, RoleConfig};

/// The judges.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judges {
    /// Those that may be asked; the first is asked where a step names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<NamedJudge>,
    /// Says that a judge may be a step's only check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// A judge, and the name by which plans ask for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedJudge {
    /// The name of the model, or of the role.
    pub name: String,
    /// How it is asked.
    pub asked: JudgeConfig,
}

/// How a judge is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeConfig {
    /// A model, by a call of its service.
    Model(ModelConfig),
    /// An agent that only reads, in a copy of the workspace.
    Agent(Agent),
}

impl Judges {
    /// Finds the judges of a list of names. A name that is no model which answers and no role with an agent, or is both, is
    /// left out: a plan that asks for it is told so.
    pub(crate) fn resolved(
        names: Vec<String>,
        alone: bool,
        models: &BTreeMap<String, ModelConfig>,
        roles: &BTreeMap<Role, RoleConfig>,
    ) -> Judges {
        let by = names.into_iter().filter_map(|name| {
            let model = models.get(&name).filter(|model| model.api != ModelApi::Embeddings);
            let agent = roles.get(&Role::new(name.as_str())).and_then(|role| role.agent.as_ref());
            let asked = match (model, agent) {
                (Some(model), None) => JudgeConfig::Model(model.clone()),
                (None, Some(agent)) => JudgeConfig::Agent(agent.clone()),
                (Some(_), Some(_)) | (None, None) => return None,
            };
            Some(NamedJudge { name, asked })
        });
        Judges { by: by.collect(), alone }
    }

    /// Says whether there is nothing of them.
    pub fn is_none(&self) -> bool {
        *self == Judges::default()
    }

    /// Says whether a person approves what a judge of this name is sent.
    pub fn asks_person(&self, name: &str) -> bool {
        matches!(self.named(name), Some(JudgeConfig::Model(model)) if model.ask)
    }

    /// Returns how a judge of this name is asked.
    pub fn named(&self, name: &str) -> Option<&JudgeConfig> {
        self.by.iter().find(|judge| judge.name == name).map(|judge| &judge.asked)
    }
}
