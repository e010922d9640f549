//! One source of configuration, where each key may be absent, and how a stronger source goes before a weaker one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{RedFirst, Role};
use planctl_lang::Levels;

use super::{Agent, Config, Contracts, DatabaseUrl, Isolation, Postgres, RoleConfig, RoleEnv};

/// What one source says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Layer {
    pub(super) project: Option<String>,
    pub(super) contract_timeout: Option<Duration>,
    pub(super) contract_env: BTreeMap<String, String>,
    pub(super) contract_path: Option<Vec<PathBuf>>,
    pub(super) red_first: Option<RedFirst>,
    pub(super) roles: BTreeMap<Role, RoleLayer>,
    pub(super) database: Option<DatabaseUrl>,
    pub(super) bin_dir: Option<PathBuf>,
    pub(super) download: Option<bool>,
    pub(super) isolation: Option<Isolation>,
    pub(super) verify: Levels,
}

/// What one source says of one role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RoleLayer {
    pub(super) agent: Option<Agent>,
    pub(super) timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) env: Option<RoleEnv>,
}

impl Layer {
    /// Takes out the keys that start processes, hand over secrets, weaken isolation or hide findings, and names them.
    pub(super) fn distrust(&mut self) -> Vec<String> {
        let mut ignored = Vec::new();
        if !std::mem::take(&mut self.contract_env).is_empty() {
            ignored.push("contracts.env".to_owned());
        }
        if self.contract_path.take().is_some() {
            ignored.push("contracts.path".to_owned());
        }
        for (role, layer) in &mut self.roles {
            if layer.agent.take().is_some() {
                ignored.push(format!("roles.{role}.agent"));
            }
            if layer.env.take().is_some() {
                ignored.push(format!("roles.{role}.env"));
            }
        }
        // Whoever names the database answers the asks in it.
        if self.database.take().is_some() {
            ignored.push("database.url".to_owned());
        }
        if self.bin_dir.take().is_some() {
            ignored.push("postgres.bin_dir".to_owned());
        }
        // Whoever hides a finding hides it from the person who approves.
        ignored.extend(self.verify.only_stricter().into_iter().map(|name| format!("verify: {name}")));
        ignored
    }

    /// Lets this source go before a weaker one.
    pub(super) fn over(self, weaker: Layer) -> Layer {
        let mut contract_env = weaker.contract_env;
        contract_env.extend(self.contract_env);
        let mut roles = weaker.roles;
        for (role, layer) in self.roles {
            let below = roles.remove(&role).unwrap_or_default();
            roles.insert(role, layer.over(below));
        }
        Layer {
            project: self.project.or(weaker.project),
            contract_timeout: self.contract_timeout.or(weaker.contract_timeout),
            contract_env,
            contract_path: self.contract_path.or(weaker.contract_path),
            red_first: self.red_first.or(weaker.red_first),
            roles,
            database: self.database.or(weaker.database),
            bin_dir: self.bin_dir.or(weaker.bin_dir),
            download: self.download.or(weaker.download),
            verify: weaker.verify.then(&self.verify),
            // Nothing is downgraded silently: of two demands the stricter one counts.
            isolation: match (self.isolation, weaker.isolation) {
                (Some(strong), Some(weak)) => Some(strong.stricter(weak)),
                (one, other) => one.or(other),
            },
        }
    }

    /// Fills in the defaults.
    pub(super) fn effective(self) -> Config {
        let roles = self.roles.into_iter().map(|(role, layer)| (role, layer.effective())).collect();
        Config {
            project: self.project,
            contracts: Contracts {
                timeout: self.contract_timeout,
                env: self.contract_env,
                path: self.contract_path.unwrap_or_default(),
                red_first: self.red_first.unwrap_or_default(),
            },
            roles,
            database: self.database,
            postgres: Postgres { bin_dir: self.bin_dir, download: self.download.unwrap_or(true) },
            isolation: self.isolation.unwrap_or_default(),
            verify: self.verify,
        }
    }
}

impl RoleLayer {
    fn over(self, weaker: RoleLayer) -> RoleLayer {
        RoleLayer {
            agent: self.agent.or(weaker.agent),
            timeout: self.timeout.or(weaker.timeout),
            idle_timeout: self.idle_timeout.or(weaker.idle_timeout),
            env: self.env.or(weaker.env),
        }
    }

    fn effective(self) -> RoleConfig {
        RoleConfig {
            agent: self.agent,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            env: self.env.unwrap_or_default(),
        }
    }
}
