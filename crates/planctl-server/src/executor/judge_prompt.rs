//! A prompt to a judge before it is sent: whether the budget suffices for an answer, and whether a person has approved it (M-35).
//!
//! Where a person has to approve it, the prompt is kept under its digest, and the gate waits. Once it was approved the contract runs
//! again. If the work is still the same, the very text that was approved is sent; what the contract printed meanwhile may differ.

use planctl_config::{JudgeConfig, ModelConfig};
use planctl_engine::{
    Budget, Contract, Digest, Inconclusive, Judge, PromptToJudge, PromptWord, Reserved, Usage,
};
use planctl_harness::{JudgePrompt, Output, digest_of};
use planctl_store::Claimed;

use super::Executor;
use crate::node::services::ServiceError;

/// A prompt that may be sent.
pub(super) struct ClearedPrompt {
    pub(super) prompt: JudgePrompt,
    /// Its digest, where a person had to approve it.
    pub(super) approved: Option<Digest>,
    /// The rest of the budget.
    pub(super) left: Budget,
}

/// A prompt that may not be sent yet.
pub(super) struct HeldPrompt {
    pub(super) why: Inconclusive,
    /// The prompt as it is kept for the person who decides.
    pub(super) kept: Option<Output>,
}

impl Executor {
    /// Decides whether a prompt may be sent to the judge of a contract.
    pub(super) async fn clear_prompt(
        &self,
        claimed: &Claimed,
        contract: &Contract,
        prompt: JudgePrompt,
    ) -> Result<Result<ClearedPrompt, HeldPrompt>, ServiceError> {
        let Some(judge) = contract.judge.as_deref() else {
            return Err(ServiceError::broken("a prompt is for a judge"));
        };
        let held = |why| Ok(Err(HeldPrompt { why, kept: None }));
        let model = match self.settings.judges.named(&judge.by) {
            Some(JudgeConfig::Model(model)) => Some(model),
            Some(JudgeConfig::Agent(_)) | None => None,
        };
        let most = self.expected_use(model, prompt.tokens());
        let estimate = Reserved { tokens: most.tokens(), micro_usd: most.micro_usd.unwrap_or(0) };
        let head = self.store.run(self.run).await?.head;
        if head.short_of(estimate, 0).is_some() {
            return held(Inconclusive::Unfunded { estimate });
        }
        let left = |limit: Option<u64>, spent: u64| limit.map(|limit| limit.saturating_sub(spent));
        let left = Budget {
            tokens: left(head.budget.tokens, head.spent.tokens),
            micro_usd: left(head.budget.micro_usd, head.spent.micro_usd),
            time: None,
        };
        match model {
            Some(model) if judge.approval => {
                let mut view = self.store.run_view(self.run).await?;
                let word = view.records.remove(&claimed.item.at.node).and_then(|record| record.prompt);
                Ok(match self.approved_prompt(word, &prompt).await? {
                    Some((prompt, digest)) => Ok(ClearedPrompt { prompt, approved: Some(digest), left }),
                    None => Err(held_for_person(judge, model, &prompt, estimate)?),
                })
            }
            // The graph has no person asked, so it was made for another configuration than the one that was approved.
            Some(model) if model.ask => {
                let what =
                    format!("a person has to approve what is sent to {}, and the plan asks nobody", judge.by);
                held(Inconclusive::Unjudged { what, usage: None })
            }
            Some(_) | None => Ok(Ok(ClearedPrompt { prompt, approved: None, left })),
        }
    }

    /// Returns the most that one answer is expected to use. How much an agent uses is not known before.
    pub(super) fn expected_use(&self, model: Option<&ModelConfig>, input_tokens: u64) -> Usage {
        let mut usage = Usage { input_tokens, tokens_estimated: true, ..Usage::default() };
        if let Some(model) = model {
            usage.output_tokens = model.max_tokens;
            usage.model = Some(model.model.clone());
            self.settings.price(&mut usage);
        }
        usage
    }

    /// Returns the prompt that a person approved, where it is about the same work.
    async fn approved_prompt(
        &self,
        word: Option<PromptWord>,
        prompt: &JudgePrompt,
    ) -> Result<Option<(JudgePrompt, Digest)>, ServiceError> {
        let Some(word) = word.filter(|word| word.is_approved) else { return Ok(None) };
        let kept = self.store.output(&word.digest).await?;
        let kept = kept.and_then(|bytes| serde_json::from_slice::<JudgePrompt>(&bytes).ok());
        Ok(kept.filter(|kept| kept.is_about_same_work(prompt)).map(|kept| (kept, word.digest)))
    }
}

fn held_for_person(
    judge: &Judge,
    model: &ModelConfig,
    prompt: &JudgePrompt,
    estimate: Reserved,
) -> Result<HeldPrompt, ServiceError> {
    let bytes = serde_json::to_vec(prompt).map_err(|error| ServiceError::broken(error.to_string()))?;
    let digest = digest_of(&bytes);
    let prompt = Box::new(PromptToJudge {
        digest: digest.clone(),
        by: judge.by.clone(),
        model: model.model.clone(),
        url: model.endpoint(),
        tokens: estimate.tokens,
    });
    Ok(HeldPrompt { why: Inconclusive::Unapproved { prompt }, kept: Some(Output { digest, bytes }) })
}
