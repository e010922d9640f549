//! Approval policies: plans that a trusted file lets run without a person's word, and within what bounds (P-78).

use planctl_engine::{Budget, Contract, Graph, Node, NodeKind, Role};
use planctl_glob::Glob;
use planctl_lang::{budget_words, escape};
use serde::{Deserialize, Serialize};

/// A policy. It approves a plan that stays within every bound, and leaves each other plan to a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalPolicy {
    /// The plans that it is for, as globs over their paths.
    pub plans: Vec<Glob>,
    /// The highest budget of a plan; a plan has to limit every part that this one limits.
    pub budget: Budget,
    /// The most steps of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The roles that may work on it; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Role>>,
    /// The commands that may run as contracts, calls and decisions, word for word; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contracts: Option<Vec<String>>,
    /// The most repairs of one run that it approved; `None` is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u64>,
}

impl ApprovalPolicy {
    /// Returns each bound that a plan does not keep; none where it keeps them all.
    pub fn refusals(&self, plan: &str, graph: &Graph) -> Vec<String> {
        let mut refusals = Vec::new();
        if !self.plans.iter().any(|glob| glob.matches(plan)) {
            refusals.push(format!("it is for {}", self.plan_words()));
        }
        self.refuse_budget(graph.budget(), &mut refusals);
        let steps = graph.numbered_steps().len() as u64;
        if let Some(most) = self.steps.filter(|most| steps > *most) {
            let are = if most == 1 { "is" } else { "are" };
            refusals.push(format!("it has {steps} steps, and {most} {are} allowed"));
        }
        if let Some(allowed) = &self.roles {
            let mut roles: Vec<&Role> = graph.steps().iter().flat_map(|(_, task)| task.roles()).collect();
            roles.sort_unstable();
            roles.dedup();
            let others = roles.into_iter().filter(|role| !allowed.contains(role));
            refusals.extend(others.map(|role| format!("the role {role} works on it")));
        }
        if let Some(allowed) = &self.contracts {
            let is_other = |command: &&str| !allowed.iter().any(|known| known.trim() == *command);
            let others = graph.nodes().iter().filter_map(command_of).filter(is_other);
            refusals.extend(
                others.map(|command| format!("{} is not one of its contracts", first_line_of(command))),
            );
        }
        if graph.sub_plans().next().is_some() {
            refusals.push("it carries out other plans".to_owned());
        }
        refusals
    }

    /// Returns each bound that a repaired plan does not keep, beside those of every plan: it is the plan that ran, but for the words
    /// of tasks, and for calls that `contracts` names (M-40).
    pub fn refusals_of_repair(&self, plan: &str, ran: &Graph, repaired: &Graph) -> Vec<String> {
        let mut refusals = self.refusals(plan, repaired);
        let old = ran.nodes().iter();
        for node in old.filter(|old| !repaired.node(&old.id).is_some_and(|new| self.may_become(old, new))) {
            refusals
                .push(format!("the repair changes {} by more than the words of its task", node_words(node)));
        }
        let is_added = |node: &&Node| ran.node(&node.id).is_none();
        refusals.extend(
            repaired
                .nodes()
                .iter()
                .filter(is_added)
                .map(|node| format!("the repair adds {}", node_words(node))),
        );
        if ran.edges() != repaired.edges() {
            refusals.push("the repair changes the order of the steps".to_owned());
        }
        refusals
    }

    /// Says whether a repair may make the one node of the other.
    fn may_become(&self, old: &Node, new: &Node) -> bool {
        let mut as_ran = new.clone();
        match (&mut as_ran.kind, &old.kind) {
            (NodeKind::Task(task), NodeKind::Task(ran)) => task.prompt.clone_from(&ran.prompt),
            (NodeKind::Call(call), NodeKind::Call(ran)) if self.lists(&call.contract.command) => {
                call.contract.command.clone_from(&ran.contract.command);
            }
            (_, _) => {}
        }
        as_ran == *old
    }

    /// Says whether `contracts` is there and has this command.
    fn lists(&self, command: &str) -> bool {
        self.contracts.iter().flatten().any(|known| known.trim() == command.trim())
    }

    fn refuse_budget(&self, plan: Budget, refusals: &mut Vec<String>) {
        for ((name, most), (_, limit)) in split_budget(self.budget).into_iter().zip(split_budget(plan)) {
            if most == Budget::default() {
                continue;
            }
            if limit == Budget::default() {
                refusals.push(format!("the plan does not limit {name}"));
            } else if limit.within(most) != limit {
                let (limit, most) = (budget_words(limit), budget_words(most));
                refusals.push(format!("its budget is {limit}, and the policy allows {most}"));
            }
        }
    }

    /// Says in one line what it allows.
    pub fn describe(&self) -> String {
        let mut words =
            vec![format!("plans {}", self.plan_words()), format!("at most {}", budget_words(self.budget))];
        words.extend(self.steps.map(|steps| match steps {
            1 => "1 step".to_owned(),
            steps => format!("{steps} steps"),
        }));
        words.extend(self.roles.as_ref().map(|roles| {
            let roles: Vec<&str> = roles.iter().map(Role::as_str).collect();
            format!("roles {}", roles.join(", "))
        }));
        words.extend(self.contracts.as_ref().map(|contracts| {
            let contracts: Vec<String> =
                contracts.iter().map(|command| first_line_of(command.trim())).collect();
            format!("contracts {}", contracts.join(", "))
        }));
        words.extend(self.repairs.map(|repairs| match repairs {
            1 => "1 repair of a run".to_owned(),
            repairs => format!("{repairs} repairs of a run"),
        }));
        words.join("; ")
    }

    fn plan_words(&self) -> String {
        let plans: Vec<&str> = self.plans.iter().map(Glob::text).collect();
        escape(&plans.join(", "))
    }
}

/// Returns the command that planctl runs at a node, where it runs one.
fn command_of(node: &Node) -> Option<&str> {
    let contract: Option<&Contract> = match &node.kind {
        NodeKind::Task(task) => Some(&task.contract),
        NodeKind::Call(call) => Some(&call.contract),
        NodeKind::Decision(choice) => choice.command.as_deref(),
        NodeKind::Start
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::Join(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Escalate { .. }
        | NodeKind::Exit { .. } => None,
    };
    // A task without a command is confirmed by a person.
    contract.map(|contract| contract.command.trim()).filter(|command| !command.is_empty())
}

/// Returns each part of a budget by itself.
fn split_budget(budget: Budget) -> [(&'static str, Budget); 3] {
    let none = Budget::default();
    [
        ("tokens", Budget { tokens: budget.tokens, ..none }),
        ("money", Budget { micro_usd: budget.micro_usd, ..none }),
        ("time", Budget { time: budget.time, ..none }),
    ]
}

/// Names a node as people know it.
fn node_words(node: &Node) -> String {
    match node.step() {
        Some(step) => format!("step {step}"),
        None => escape(node.id.as_str()),
    }
}

fn first_line_of(command: &str) -> String {
    let first = command.lines().next().unwrap_or_default();
    let more = if first.len() < command.len() { "…" } else { "" };
    format!("`{}{more}`", escape(first))
}
