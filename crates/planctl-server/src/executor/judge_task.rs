//! A contract with a judge: once its command passed, a model or an agent that only reads is asked about the work (P-71).
//!
//! It is shown the task, the question, what changed since the step began, and what the command printed. Its answer is a part of
//! the evidence. Where none came there is no verdict, as where a command could not run.

use std::future::Future;
use std::path::Path;

use planctl_config::{Agent, JudgeConfig, ModelConfig, Price};
use planctl_engine::{
    Contract, Evidence, Graph, HarnessResult, Inconclusive, Judge, Judgement, NodeId, Usage, Verdict,
};
use planctl_harness::{
    ChangeKind, Changes, Checkpoints, ContractRunner, Hearing, JudgeDialogue, JudgePrompt, JudgeSaid,
    JudgeVerdict, JudgedWork, Masks, WorkspaceLock, digest_of, to_judge,
};
use planctl_store::Claimed;

use super::Executor;
use super::judge_prompt::ClearedPrompt;
use crate::node::services::ServiceError;
use crate::verify::agent_answer::{AgentAnswerError, Question, ask_agent};
use crate::verify::judge::{ASK_JUDGE, JudgeOrder};
use crate::verify::own_process::{NoOutput, last_words, output_of, with_order};
use crate::workspaces::checkpoints::kept_in;

/// The most bytes of changed lines that a judge is shown.
const DIFF_BYTES_MAX: usize = 96 * 1024;
/// The most files that are named to a judge.
const FILES_MAX: usize = 500;

impl Executor {
    /// Records the files of the workspace before the work, so that a judge can be shown what it changed.
    pub(super) async fn record_for_judge(
        &self,
        claimed: &Claimed,
        lock: &WorkspaceLock,
    ) -> Result<(), Inconclusive> {
        let checkpoints = self.checkpoints(claimed, lock);
        let recorded = checkpoints.record_as(Path::new(&claimed.workspace), &name_of(claimed)).await;
        recorded.map_err(|error| Inconclusive::ToolMissing { what: error.to_string() })
    }

    /// Writes what the judge of a contract is asked, where its command passed.
    pub(super) async fn question_to_judge(
        &self,
        claimed: &Claimed,
        lock: &WorkspaceLock,
        contract: &Contract,
        found: &HarnessResult,
    ) -> Option<Result<JudgePrompt, String>> {
        let judge = contract.judge.as_deref()?;
        let HarnessResult::Evidence(evidence) = found else { return None };
        if contract.verdict_of_command(evidence) != Some(Verdict::Passed) {
            return None;
        }
        if self.is_judged_alone(&claimed.graph, &claimed.item.at.node, contract) {
            return Some(Err("the approved configuration lets no judge be a step's only check".to_owned()));
        }
        Some(self.question(claimed, lock, judge, evidence).await)
    }

    /// Asks the judge, and adds its answer to the evidence; without one there is no verdict.
    pub(super) async fn judged(
        &self,
        runner: ContractRunner,
        claimed: &Claimed,
        contract: &Contract,
        prompt: ClearedPrompt,
        found: HarnessResult,
        cancel: impl Future<Output = ()> + Unpin,
    ) -> Result<HarnessResult, ServiceError> {
        let (HarnessResult::Evidence(mut evidence), Some(judge)) = (found, contract.judge.as_deref()) else {
            return Err(ServiceError::broken("a judge is asked about evidence"));
        };
        let approved = prompt.approved.clone();
        let asked = match self.settings.judges.named(&judge.by) {
            Some(JudgeConfig::Model(model)) => {
                self.ask_model(runner, judge, model, contract, prompt, cancel).await
            }
            Some(JudgeConfig::Agent(agent)) => {
                self.ask_agent(claimed, agent, contract, &prompt, cancel).await
            }
            None => Ok(unanswered_hearing(format!("the approved configuration has no judge {:?}", judge.by))),
        };
        let Ok(hearing) = asked else { return Ok(HarnessResult::Nothing(Inconclusive::Interrupted)) };
        let usage = hearing.usage.map(|mut usage| {
            self.settings.price(&mut usage);
            usage
        });
        let answer = match hearing.answer {
            Ok(answer) => answer,
            Err(what) => {
                let what = self.masks().text(&what).into_owned();
                return Ok(HarnessResult::Nothing(Inconclusive::Unjudged { what, usage }));
            }
        };
        let masked = |text: &String| self.masks().text(text).into_owned();
        evidence.judgement = Some(Box::new(Judgement {
            question: judge.digest.clone(),
            by: judge.by.clone(),
            passes: answer.verdict == JudgeVerdict::Pass,
            reason: masked(&answer.reason),
            quotes: answer.quotes.iter().map(masked).collect(),
            prompt: approved,
            usage,
        }));
        Ok(HarnessResult::Evidence(evidence))
    }

    /// Says whether nothing but a judge decides a step, and the approved configuration does not let that be.
    fn is_judged_alone(&self, graph: &Graph, node: &NodeId, contract: &Contract) -> bool {
        let is_confirmed = graph.node(node).is_some_and(|node| node.confirmation.is_some());
        contract.is_judged_alone() && !is_confirmed && !self.settings.judges.alone
    }

    fn checkpoints(&self, claimed: &Claimed, lock: &WorkspaceLock) -> Checkpoints {
        let kept = kept_in(&self.state_dir, self.run, &claimed.graph, &claimed.item.at.node);
        Checkpoints::new(self.spawner.with_locks(lock.descriptors()), kept)
    }

    async fn question(
        &self,
        claimed: &Claimed,
        lock: &WorkspaceLock,
        judge: &Judge,
        evidence: &Evidence,
    ) -> Result<JudgePrompt, String> {
        let Some(task) = claimed.graph.task(&claimed.item.at.node) else {
            return Err("only the work of an agent is judged".to_owned());
        };
        let (checkpoints, place) = (self.checkpoints(claimed, lock), Path::new(&claimed.workspace));
        let changes = checkpoints.changes_since(place, &name_of(claimed), &self.plan, DIFF_BYTES_MAX).await;
        let changes = changes.map_err(|error| error.to_string())?;
        let changes =
            changes.ok_or("this host does not know what the files were before the step".to_owned())?;
        let masks = self.masks();
        let shown = |text: &str| masks.text(text).into_owned();
        Ok(to_judge(&JudgedWork {
            task: &task.prompt,
            question: &judge.question,
            files: &shown(&files(&changes)),
            diff: &shown(&changes.diff),
            is_cut: changes.is_cut,
            stdout: &shown(&evidence.stdout.tail),
            stderr: &shown(&evidence.stderr.tail),
        }))
    }

    /// Has a process of its own ask a model.
    async fn ask_model(
        &self,
        runner: ContractRunner,
        judge: &Judge,
        model: &ModelConfig,
        contract: &Contract,
        prompt: ClearedPrompt,
        cancel: impl Future<Output = ()>,
    ) -> Result<Hearing, Stopped> {
        let key = match model.key_env.as_ref().map(|name| (name, std::env::var(name))) {
            None => None,
            Some((_, Ok(key))) => Some(key.trim().to_owned()),
            Some((name, Err(_))) => {
                return Ok(unanswered_hearing(format!("{name} is not set where contracts run")));
            }
        };
        let masks = Masks::new(key.iter().map(|key| ("KEY", key.as_str())));
        let order = JudgeOrder {
            name: judge.by.clone(),
            model: model.clone(),
            price: Price::of(&self.settings.prices, &model.model),
            key,
            prompt: prompt.prompt,
            left: prompt.left,
        };
        // The model is somewhere else, and the process runs nothing but planctl.
        let runner = runner.at_node("judge").with_host_network();
        let runner = match with_order(runner, ASK_JUDGE, &order, masks) {
            Ok(runner) => runner,
            Err(what) => return Ok(unanswered_hearing(what)),
        };
        match output_of(&runner, contract.timeout, cancel).await {
            Ok(printed) => {
                let hearing: Result<Hearing, _> = serde_json::from_str(&printed);
                let mut hearing = hearing
                    .unwrap_or_else(|error| unanswered_hearing(format!("its answer can't be read: {error}")));
                if let Some(usage) = &mut hearing.usage {
                    usage.model.get_or_insert_with(|| model.model.clone());
                }
                Ok(hearing)
            }
            Err(NoOutput::Interrupted) => Err(Stopped),
            Err(NoOutput::Failed(evidence)) => Ok(unanswered_hearing(last_words(&evidence))),
            Err(NoOutput::Unrunnable(what)) => Ok(unanswered_hearing(what)),
        }
    }

    /// Asks an agent that reads a copy of the workspace.
    async fn ask_agent(
        &self,
        claimed: &Claimed,
        agent: &Agent,
        contract: &Contract,
        prompt: &ClearedPrompt,
        mut cancel: impl Future<Output = ()> + Unpin,
    ) -> Result<Hearing, Stopped> {
        let mut dialogue = JudgeDialogue::new(&prompt.prompt);
        loop {
            let question = Question {
                agent,
                about: "judge",
                prices: &self.settings.prices,
                isolation: self.isolation(&claimed.workspace),
                workspace: Path::new(&claimed.workspace),
                state_dir: &self.state_dir,
                prompt: format!("{}\n\n{}", dialogue.system(), dialogue.text()),
                within: contract.timeout,
                budget_tokens: prompt.left.tokens,
                budget_micro_usd: prompt.left.micro_usd,
            };
            let said = match ask_agent(question, &self.spawner, &mut cancel).await {
                Ok(answer) => Ok(JudgeSaid { text: answer.text, usage: answer.usage }),
                Err(AgentAnswerError::Stopped) => return Err(Stopped),
                Err(error) => Err(error.to_string()),
            };
            if let Some(hearing) = dialogue.handle_answer(said) {
                return Ok(hearing);
            }
        }
    }
}

/// The gate was stopped while its judge was asked.
struct Stopped;

fn unanswered_hearing(what: String) -> Hearing {
    let usage: Option<Usage> = None;
    Hearing { answer: Err(what), usage }
}

/// Returns the name under which the files are recorded that a step found: of letters and digits, whatever the node's name is.
fn name_of(claimed: &Claimed) -> String {
    let digest = digest_of(claimed.item.at.node.as_str().as_bytes());
    digest.as_str().trim_start_matches("sha256:").to_owned()
}

/// Lists the files that changed, each with how.
fn files(changes: &Changes) -> String {
    let word = |kind: ChangeKind| match kind {
        ChangeKind::Added => "added",
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "deleted",
    };
    let mut lines: Vec<String> = changes
        .files
        .iter()
        .take(FILES_MAX)
        .map(|(path, change)| match change.lines {
            Some((added, removed)) => format!("{} {path} (+{added} -{removed})", word(change.kind)),
            None => format!("{} {path} (no text)", word(change.kind)),
        })
        .collect();
    match changes.files.len().saturating_sub(FILES_MAX) {
        0 => {}
        more => lines.push(format!("… and {more} more")),
    }
    lines.join("\n")
}
