//! Repairs of runs that a policy approved: the policy approves them, too, within bounds of its own (M-40).
//!
//! A repair is another text of a run that waits for one. A policy that names `repairs` approves as many of one run, each of which
//! changes the words of tasks alone, or a call to one that its `contracts` name; every other is left to a person.

use planctl_api::Next;
use planctl_api::wire::Decided;
use planctl_api::wire::calls::Approving;
use planctl_config::keys_that_differ;
use planctl_engine::{Actor, Answer, Decision, RunId, RunStatus};
use planctl_store::{AskRow, RunRow};

use crate::node::services::{ServiceError, Services};
use crate::plans::policies::Approving as ByPolicy;
use crate::runs::policy_approvals::policy_of;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;

impl Services {
    /// Lets a run that waits for another text go on with this one by the word of the policy that approved the run.
    ///
    /// # Errors
    ///
    /// A conflict that says why it is left to a person; nothing is decided then. Those of [`Services::approve`].
    pub async fn approve_repair(&self, checked: &Checked, run: RunId) -> Result<Decided, ServiceError> {
        let run = self.store.run(run).await?;
        let plan = self.store_revision(checked).await?;
        self.refuse_unless_revisable(&run, &plan, checked).await?;
        let held = self.ask_for_revision(&run).await?;
        let policy = match self.policy_for_repair(&run, held.as_ref(), checked).await? {
            Ok(policy) => policy,
            Err(why) => {
                return Err(ServiceError::Conflict {
                    what: format!("have a policy approve the repair of {}: {why}", run.name),
                    next: Next::show(&run.name),
                });
            }
        };
        let by = &self.caller.actor;
        let note = Some(format!("repaired for {by}; the policy allows {}", policy.words));
        let given = Approving { note, ..Approving::default() };
        let decider = self.with_actor(Actor::policy(&policy.name));
        if let Some(ask) = held {
            let revise = Decision::Answer { item: ask.item, answer: Answer::Revise };
            decider.decide(run.id, revise, given.note.as_deref()).await?;
        }
        decider.approve(checked, &given).await
    }

    /// Returns the open ask of a run whose answer may be another text.
    async fn ask_for_revision(&self, run: &RunRow) -> Result<Option<AskRow>, ServiceError> {
        let asks = self.store.asks(Some(run.id), None).await?;
        let takes_text = |ask: &AskRow| ask.ask.kind.answers().contains(&Answer::Revise.as_str());
        Ok(asks.into_iter().find(takes_text))
    }

    /// Returns the policy that approves a repair; else says why a person has to.
    async fn policy_for_repair(
        &self,
        run: &RunRow,
        held: Option<&AskRow>,
        checked: &Checked,
    ) -> Result<Result<ByPolicy, String>, ServiceError> {
        let refused = |why: String| Ok(Err(why));
        if held.is_none() && run.head.status != RunStatus::Paused {
            return refused("it does not wait for another text".to_owned());
        }
        if self.store.newest_run_of(run.plan).await?.is_some_and(|newest| newest.id != run.id) {
            return refused("its plan has a newer run".to_owned());
        }
        let approval = match run.approval {
            Some(approval) => self.store.approval(approval).await?,
            None => return refused("nobody approved it".to_owned()),
        };
        let Some(name) = policy_of(&approval) else {
            return refused(format!("{} approved its plan", approval.by));
        };
        let changed = keys_that_differ(&RunSettings::of(run)?.config, &self.caller.config.approved());
        if !changed.is_empty() {
            return refused(format!("the configuration is another ({})", changed.join(", ")));
        }
        let (Some(policy), Some(graph)) =
            (self.caller.config.approval.get(&name), &checked.verification.graph)
        else {
            return refused(format!("the policy {name} is not there"));
        };
        let ran = self.store.graph_of(run).await?;
        let mut why = policy.refusals_of_repair(&checked.path, &ran, graph);
        let (most, before) = (policy.repairs.unwrap_or(0), self.store.revisions_by_policy(run.id).await?);
        if before >= most {
            why.push(match most {
                0 => "it approves no repairs".to_owned(),
                most => format!("it approves {most} of a run, and that many were made"),
            });
        }
        if !why.is_empty() {
            return refused(format!("the policy {name} does not approve it: {}", why.join("; ")));
        }
        let for_people = self.reasons_for_person(checked, graph, None, (Some(run), true)).await?;
        match for_people.is_empty() {
            true => Ok(Ok(ByPolicy { name, words: policy.describe() })),
            false => refused(format!("the policy {name} leaves it to a person: {}", for_people.join("; "))),
        }
    }
}
