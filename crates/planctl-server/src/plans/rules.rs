//! Rules for the asks of a plan's runs: which are for a plan that is handed in, and how it is approved under one that wants votes
//! (P-19).

use std::collections::BTreeMap;
use std::path::PathBuf;

use planctl_api::Next;
use planctl_api::wire::Decided;
use planctl_api::wire::calls::Approving;
use planctl_engine::{Answer, AskKind, Digest, RunStatus};
use planctl_store::RunRow;

use crate::node::services::{ServiceError, Services};
use crate::runs::ask_rules::{AskRules, RuledPlan};
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;

impl Services {
    /// Returns the rules for the asks of a plan's run: those of the caller's configuration, and those that this process reads
    /// where the plan lies. A client that leaves a rule out has it all the same.
    pub(super) async fn rules_for(
        &self,
        checked: &Checked,
        sub_plans: &BTreeMap<String, Digest>,
    ) -> Result<AskRules, ServiceError> {
        let mut config = self.caller.config.clone();
        let there = self.server_node.config_there(PathBuf::from(self.own_folder()?)).await?;
        config.asks.extend(there.asks);
        let paths: Vec<&str> =
            std::iter::once(checked.path.as_str()).chain(sub_plans.keys().map(String::as_str)).collect();
        let owner = checked.verification.tree.frontmatter.owner.as_ref().map(|owner| owner.value.as_str());
        let plan = RuledPlan { paths: &paths, owner, handed_in_by: &self.caller.person };
        Ok(AskRules::of(&config, plan))
    }

    /// Says which votes the approval of a text wants: by the rules of its run, else by those that hold for it here.
    pub(crate) async fn votes_on(
        &self,
        checked: &Checked,
        of_run: Option<&AskRules>,
    ) -> Result<Option<String>, ServiceError> {
        if let Some(words) = of_run.and_then(votes_wanted) {
            return Ok(Some(words));
        }
        let sub_plans = self.keep_sub_plans(checked, "", None).await?;
        Ok(votes_wanted(&self.rules_for(checked, &sub_plans).await?))
    }

    /// Approves a plan under rules that leave it to several people: as the caller's vote on the ask of the run that waits for it.
    /// `None` where no rule does so.
    pub(super) async fn approve_by_vote(
        &self,
        checked: &Checked,
        newest: Option<&RunRow>,
        given: &Approving,
    ) -> Result<Option<Decided>, ServiceError> {
        let digest = &checked.verification.digest;
        let waits = |run: &&RunRow| match run.head.status {
            RunStatus::Awaiting => run.revision == *digest,
            RunStatus::Paused => true,
            RunStatus::New | RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Ended { .. } => false,
        };
        let waiting = newest.filter(waits);
        let of_run = waiting.map(RunSettings::of).transpose()?.map(|settings| settings.asks);
        let Some(words) = self.votes_on(checked, of_run.as_ref()).await? else { return Ok(None) };
        if let Some(paused) = waiting.filter(|run| run.head.status == RunStatus::Paused) {
            return self.hand_in_revision(paused, checked, given).await.map(Some);
        }
        let ask = match waiting {
            Some(run) => self.plan_ask(run).await?,
            None => None,
        };
        let Some(ask) = ask else {
            return Err(ServiceError::Conflict {
                what: format!("approve {}: {words}; hand it in, and they approve its ask", checked.path),
                next: Next::start(&checked.path),
            });
        };
        let under = Some(&self.caller.config);
        self.answer_under(ask.number.unsigned_abs(), Answer::Approve, given, under).await.map(Some)
    }
}

/// Says which votes rules want on the approval of a plan, where they want any.
pub(super) fn votes_wanted(rules: &AskRules) -> Option<String> {
    let voting = rules.voting(AskKind::Plan, &Answer::Approve);
    let words: Vec<String> =
        voting.iter().map(|(name, rule)| format!("the rule {name} wants {}", rule.describe())).collect();
    (!words.is_empty()).then(|| words.join("; "))
}
