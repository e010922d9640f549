//! The settings of a run: approved with its plan, stored with the run, and never read from a file again (A14).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{AgentSaid, Digest, Role, RunId, Tier, Usage};
use planctl_glob::Glob;
use planctl_harness::{
    Baseline, FolderIdentity, Masks, PermissionMode, Permissions, Reach, RepositoryIdentity, ResourceLimits,
};
use planctl_store::{RunRow, ServedRole};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ask_rules::AskRules;
use crate::clock;
use crate::node::secrets::Secrets;
use crate::node::services::ServiceError;
use planctl_config::{
    Agent, Commits, Config, DayBudgets, Effects, Judges, Pace, Price, ServerConfig, in_folder,
    permission_words, takes_plan,
};

/// The effective configuration of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunSettings {
    /// The agent of every role, where the person who started the run named one.
    pub worker: Option<Agent>,
    /// The settings of each role.
    pub roles: BTreeMap<String, RoleSettings>,
    /// Variables that contracts get; of those of a run the seals of their values.
    pub contract_env: BTreeMap<String, String>,
    /// Directories that stand before the fixed search path of contracts.
    pub contract_path: Vec<PathBuf>,
    /// The resource limits of one evaluation of a contract.
    #[serde(default, skip_serializing_if = "ResourceLimits::is_none")]
    pub contract_limits: ResourceLimits,
    /// The price of models' tokens, where an agent does not report its cost.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// The servers whose tools it may use; the values of their variables are planctl's own and kept nowhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerConfig>,
    /// The judges that may be asked about its work.
    #[serde(default, skip_serializing_if = "Judges::is_none")]
    pub judges: Judges,
    /// Whether its changes in a worktree of its own are committed.
    #[serde(default, skip_serializing_if = "Commits::is_none")]
    pub commits: Commits,
    /// The plans within the run's plan, and those within them, with their texts as they were when the run was made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sub_plans: BTreeMap<String, Digest>,
    /// The folder of the workspace in which it works; empty where that is the workspace itself (DOT A6).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Whether the plan's own questions take their default answers, as the person who started the run chose (DOT H7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_answer: bool,
    /// The isolation tier of its contracts and workers, found when it was started; below it nothing of it runs.
    #[serde(default, skip_serializing_if = "is_no_isolation")]
    pub isolation: Tier,
    /// The whole configuration that it was handed in with, which an approval of the run covers besides its text.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub config: Value,
    /// The rules for its asks.
    #[serde(default, skip_serializing_if = "AskRules::is_none")]
    pub asks: AskRules,
    /// The budgets of the day that it shares with other runs. The database reads them where work is claimed (migration 0024).
    #[serde(default, skip_serializing_if = "DayBudgets::is_none")]
    pub day: DayBudgets,
    /// The paused run that goes on with this text once it is approved: this one was handed in for its plan ask alone, and never
    /// works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<RunId>,
    /// The protected files as its plan ask shows them, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Baseline>,
    /// The scripts in the workspace that the commands of its agents run, as they were when those were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Baseline>,
    /// Which folder the workspace was when the run was started or approved anew; in another one nothing of it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<FolderIdentity>,
    /// Which git repository that was in then; where another one stands in its place, nothing of it runs, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryIdentity>,
    /// The agent that serves roles that nothing else serves, in the process that named it; never stored.
    #[serde(skip)]
    pub otherwise: Option<Agent>,
}

/// The settings of one role.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RoleSettings {
    /// The agent that does the work.
    pub agent: Option<Agent>,
    /// How long its worker may print nothing.
    pub idle_timeout: Option<Duration>,
    /// Variables set for it; of those of a run the seals of their values.
    pub env: BTreeMap<String, String>,
    /// Variables passed on to it.
    pub inherit: Vec<String>,
    /// The permissions that an agent known by name has without a person.
    #[serde(default)]
    pub permissions: Permissions,
    /// The effects that its tools may have.
    #[serde(default)]
    pub effects: Effects,
    /// The plans that it may take; `None` is all (G-39).
    #[serde(default)]
    pub plans: Option<Vec<Glob>>,
    /// The responders when it can't go on.
    #[serde(default)]
    pub pace: Pace,
    /// The hosts that its agent can reach on the network.
    #[serde(default, skip_serializing_if = "Reach::is_host")]
    pub network: Reach,
}

fn is_no_isolation(tier: &Tier) -> bool {
    *tier == Tier::SameUser
}

/// Returns the budgets of a day with the name of the time zone, where there are some.
fn days_of(config: &Config) -> DayBudgets {
    let zone = || config.day.zone.clone().or_else(|| Some(clock::time_zone()));
    if config.day.is_none() {
        return DayBudgets::default();
    }
    DayBudgets { zone: zone(), ..config.day.clone() }
}

impl RunSettings {
    /// Takes what matters to a run out of the configuration.
    pub fn new(config: &Config, worker: Option<Agent>, isolation: Tier) -> RunSettings {
        let roles = config.roles.iter().map(|(role, config)| {
            let settings = RoleSettings {
                agent: config.agent.clone(),
                idle_timeout: config.idle_timeout,
                env: config.env.set.clone(),
                inherit: config.env.inherit.clone(),
                permissions: config.permissions.clone(),
                effects: config.effects.clone(),
                plans: config.plans.clone(),
                pace: config.pace.clone(),
                network: config.network.clone(),
            };
            (role.as_str().to_owned(), settings)
        });
        RunSettings {
            worker,
            roles: roles.collect(),
            contract_env: config.contracts.env.clone(),
            contract_path: config.contracts.path.clone(),
            contract_limits: config.contracts.limits,
            prices: config.prices.clone(),
            servers: config.servers.clone(),
            judges: config.judges.clone(),
            commits: config.workspace.git,
            sub_plans: BTreeMap::new(),
            folder: String::new(),
            auto_answer: false,
            isolation,
            config: config.approved(),
            asks: AskRules::default(),
            day: days_of(config),
            revises: None,
            shown: None,
            scripts: None,
            home: None,
            repository: None,
            otherwise: None,
        }
    }

    /// Reads what a run was started with.
    pub(crate) fn of(row: &RunRow) -> Result<RunSettings, ServiceError> {
        RunSettings::parse(&row.settings)
    }

    /// Reads what a run was started with, as it was stored.
    pub(crate) fn parse(stored: &str) -> Result<RunSettings, ServiceError> {
        serde_json::from_str(stored)
            .map_err(|error| ServiceError::broken(format!("a run's settings do not read: {error}")))
    }

    /// Returns what an approval of the run covers besides its text, where the run works (P18).
    pub(crate) fn approved(&self) -> Value {
        in_folder(self.config.clone(), &self.folder)
    }

    /// Returns what serves a role, if something does.
    pub fn worker_for(&self, role: &Role) -> Option<&Agent> {
        let own = self.roles.get(role.as_str()).and_then(|role| role.agent.as_ref());
        let own_first = own.filter(|_| self.keeps_own_agent(role.as_str()));
        own_first.or(self.worker.as_ref()).or(own).or(self.otherwise.as_ref())
    }

    /// Says whether the agent that is configured for a role does its work whatever serves the others: a session does not review
    /// its own work (guided mode). The same roles do steps of type `review` where nothing else is said.
    fn keeps_own_agent(&self, role: &str) -> bool {
        self.worker == Some(Agent::Session) && role.starts_with("review")
    }

    /// Says that something serves a role, and that it may take work of this plan.
    pub(crate) fn serves(&self, role: &Role, plan: &str) -> bool {
        self.worker_for(role).is_some() && self.may_take(role, plan)
    }

    /// Says whether an interactive agent does the work of a role (guided mode).
    pub(crate) fn is_guided(&self, role: &Role) -> bool {
        self.worker_for(role) == Some(&Agent::Session)
    }

    /// Returns what does the work of the run.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Agent> {
        // One that serves every role stands before all others.
        let is_used = |role: &str| self.worker.is_none() || self.keeps_own_agent(role);
        let of_roles = self.roles.iter().filter(move |(role, _)| is_used(role));
        self.worker.iter().chain(of_roles.filter_map(|(_, role)| role.agent.as_ref()))
    }

    /// Returns the text that shows a role's agent, and its permissions where they are not the default.
    pub(crate) fn shown(&self, role: &Role) -> Option<String> {
        let agent = self.worker_for(role)?;
        let shown = agent.display_command();
        let may = permission_words(Some(agent), &self.permissions(role), self.network(role));
        Some(match may {
            Some(may) => format!("{shown} ({may})"),
            None => shown,
        })
    }

    /// Says whether a role may take a plan at all (G-39).
    pub fn may_take(&self, role: &Role, plan: &str) -> bool {
        takes_plan(self.roles.get(role.as_str()).and_then(|role| role.plans.as_deref()), plan)
    }

    /// Says whether what serves a role can be held to what the role may do.
    ///
    /// # Errors
    ///
    /// Says what it can't be held to.
    pub fn can_be_held(&self, role: &Role) -> Result<(), String> {
        self.worker_for(role).map_or(Ok(()), |agent| agent.can_keep(&self.permissions(role)))
    }

    /// Refuses a role that may reach less than the host does, where the tier can't hold it to that.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Network`].
    pub fn can_isolate_network(&self, role: &Role) -> Result<(), ServiceError> {
        if self.network(role).is_host() || self.isolation >= Tier::Namespaces {
            return Ok(());
        }
        Err(ServiceError::Network { role: role.clone(), tier: self.isolation })
    }

    /// Returns what the agent of a role reaches of the network.
    fn network(&self, role: &Role) -> &Reach {
        self.roles.get(role.as_str()).map_or(&Reach::Host, |settings| &settings.network)
    }

    /// Returns what the agent of a role may do without a person. One that planctl knows only reads where its role may
    /// change no files; a custom command can only be asked to.
    fn permissions(&self, role: &Role) -> Permissions {
        let Some(settings) = self.roles.get(role.as_str()) else { return Permissions::default() };
        let is_known = matches!(self.worker_for(role), Some(Agent::Known { .. }));
        if is_known && settings.effects.deny_changes() {
            return Permissions { mode: PermissionMode::Deny, ..Permissions::default() };
        }
        settings.permissions.clone()
    }

    /// Returns what a role may not bring about.
    pub fn denied(&self, role: &Role) -> Vec<String> {
        let settings = self.roles.get(role.as_str());
        settings.map(|settings| settings.effects.deny.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the effects that a role may have; those of nobody in particular where it is unknown, or none is named.
    pub(crate) fn effects_of(&self, role: Option<&Role>) -> Effects {
        let settings = role.and_then(|role| self.roles.get(role.as_str()));
        settings.map(|settings| settings.effects.clone()).unwrap_or_default()
    }

    /// Returns the roles that these settings serve.
    pub fn served(&self) -> Vec<ServedRole> {
        if self.worker.is_some() {
            return vec![ServedRole::Any];
        }
        let roles = self.roles.keys().map(|name| Role::new(name.as_str()));
        roles.filter(|role| self.worker_for(role).is_some()).map(ServedRole::One).collect()
    }

    /// Returns the agent that serves a role, if one does.
    pub fn agent(&self, role: &Role, scratch: &std::path::Path) -> Option<planctl_harness::Agent> {
        let settings = self.roles.get(role.as_str());
        let program = self.worker_for(role)?.program(&self.permissions(role))?;
        let mut agent = planctl_harness::Agent::exec(program, scratch);
        if let Some(settings) = settings {
            agent.idle_timeout = settings.idle_timeout;
            agent.network = settings.network.clone();
            agent.inherited = settings.inherit.clone();
            agent.environment =
                settings.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        }
        Some(agent)
    }

    /// Returns the variables that are set for a role's agent.
    pub(crate) fn variables(&self, role: &Role) -> BTreeMap<String, String> {
        self.roles.get(role.as_str()).map(|settings| settings.env.clone()).unwrap_or_default()
    }

    /// Returns what is masked in what the workers of a run say. A value that is not kept here can't be masked here; no
    /// command that gets it is started here either.
    pub(crate) fn masks(&self, secrets: &Secrets) -> Masks {
        if secrets.is_empty() {
            return Masks::default();
        }
        let of_roles = self.roles.values().map(|role| &role.env);
        let opened: Vec<BTreeMap<String, String>> =
            of_roles.chain([&self.contract_env]).filter_map(|sealed| secrets.open(sealed).ok()).collect();
        Masks::new(opened.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Works out what it cost where a worker reported tokens and no money, and its model has a price.
    pub fn priced(&self, mut said: AgentSaid) -> AgentSaid {
        if let Some(usage) = said.usage_mut() {
            self.price(usage);
        }
        said
    }

    /// Computes the cost of usage, where none was reported and the model has a price.
    pub(crate) fn price(&self, usage: &mut Usage) {
        Price::estimate(&self.prices, usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_34_a_known_agent_whose_role_may_change_no_files_only_reads() {
        let settings = |agent: &str, denied: &str| {
            let effects = Effects { deny: [denied.to_owned()].into(), ..Effects::default() };
            let agent = Some(Agent::parse(agent).unwrap());
            let role = RoleSettings { agent, effects, ..RoleSettings::default() };
            RunSettings { roles: BTreeMap::from([("coder".to_owned(), role)]), ..RunSettings::default() }
        };
        let shown = |agent, denied| settings(agent, denied).shown(&Role::new("coder")).unwrap();
        assert!(shown("claude", "filesystem").ends_with("(only reads)"));
        assert!(shown("claude", "write").ends_with("(only reads)"));
        assert!(!shown("claude", "network").contains("only reads"));
        assert!(
            !shown("exec:./agent", "write").contains("only reads"),
            "it is told, and can't be held to it"
        );
        assert!(settings("exec:./agent", "write").can_be_held(&Role::new("coder")).is_ok());
    }

    #[test]
    fn a_named_agent_is_stored_with_the_run() {
        let worker = Agent::parse("codex:-m 'gpt x'").unwrap();
        let settings = RunSettings { worker: Some(worker.clone()), ..RunSettings::default() };
        let stored = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<RunSettings>(&stored).unwrap().worker, Some(worker));
    }

    #[test]
    fn money_is_worked_out_only_where_nobody_told_it_and_is_marked() {
        let price = Price { input: 1_250_000, cached: 125_000, output: 10_000_000 };
        let settings =
            RunSettings { prices: BTreeMap::from([("gpt-x".to_owned(), price)]), ..RunSettings::default() };
        let priced = |micro_usd, model: Option<&str>| {
            let usage = Usage {
                input_tokens: 120,
                cached_input_tokens: 20,
                output_tokens: 7,
                micro_usd,
                model: model.map(str::to_owned),
                ..Usage::default()
            };
            let said = settings.priced(AgentSaid::Asked { question: String::new(), usage: Some(usage) });
            let AgentSaid::Asked { usage: Some(usage), .. } = said else { panic!("{said:?}") };
            (usage.micro_usd, usage.estimated)
        };
        // 100 × $1.25 + 20 × $0.125 + 7 × $10, per million: 197.5 millionths, rounded up.
        assert_eq!(priced(None, Some("gpt-x")), (Some(198), true));
        assert_eq!(priced(Some(3), Some("gpt-x")), (Some(3), false));
        assert_eq!(priced(None, Some("gpt-y")), (None, false));
        assert_eq!(priced(None, None), (None, false));
    }

    #[test]
    fn g_39_a_role_takes_only_the_plans_of_its_list() {
        let roles = |plans: Option<&[&str]>| {
            let plans = plans.map(|plans| plans.iter().map(|plan| Glob::parse(plan).unwrap()).collect());
            let role = RoleSettings { plans, ..RoleSettings::default() };
            RunSettings { roles: BTreeMap::from([("coder".to_owned(), role)]), ..RunSettings::default() }
        };
        let takes = |plans, plan| roles(plans).may_take(&Role::new("coder"), plan);
        assert!(takes(None, "plans/anything.md"));
        assert!(!takes(Some(&[]), "plans/anything.md"));
        assert!(takes(Some(&["bugfix_workflow"]), "plans/bugfix_workflow.md"));
        assert!(takes(Some(&["bugfix-*.md"]), "plans/deep/bugfix-7.md"));
        assert!(takes(Some(&["plans/**/*.md"]), "plans/deep/bugfix-7.md"));
        assert!(!takes(Some(&["plans/*.md", "feature"]), "plans/deep/bugfix-7.md"));
        assert!(roles(Some(&[])).may_take(&Role::new("writer"), "x.md"), "another role has no list");
    }
}
