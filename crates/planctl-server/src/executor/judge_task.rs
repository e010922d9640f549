//! A contract with a judge: once its command passed, a model or an agent that only reads is asked about the work (P-71).
//!
//! It is shown the task, the question, what changed since the step began, and what the command printed. Its answer is a part of
//! the evidence. Where none came there is no verdict, as where a command could not run.

use std::future::Future;
use std::path::Path;

use planctl_config::{Agent, JudgeConfig, ModelConfig, Price};
use planctl_engine::{
    Budget, Contract, Evidence, Graph, HarnessResult, Inconclusive, Judge, Judgement, NodeId, Usage, Verdict,
};
use planctl_harness::{
    ChangeKind, Changes, Checkpoints, ContractRunner, Hearing, JudgeDialogue, JudgePrompt, JudgeSaid,
    JudgeVerdict, JudgedWork, Masks, WorkspaceLock, digest_of, to_judge,
};
use planctl_store::Claimed;

use super::Executor;
use super::judge_prompt::ClearedPrompt;
use crate::node::services::ServiceError;
use crate::verify::agent_answer::{AgentAnswerError, AgentUsage, Question, ask_agent};
use crate::verify::judge::{ASK_JUDGE, JudgeOrder, JudgeReply};
use crate::verify::own_process::{NoOutput, last_words, output_of, with_order};
use crate::workspaces::checkpoints::kept_in;

/// The most bytes of changed lines that a judge is shown.
const DIFF_BYTES_MAX: usize = 96 * 1024;
/// The most files that are named to a judge.
const FILES_MAX: usize = 500;
/// How many calls of a judge may be lost before its gate is repeated.
const CALLS_LOST_MAX: u32 = 4;

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
        let hearing = match self.hear(&runner, claimed, judge, contract, &prompt, cancel).await? {
            Ok(hearing) => hearing,
            Err(Stopped { usage: None }) => return Ok(HarnessResult::Nothing(Inconclusive::Interrupted)),
            Err(Stopped { usage: Some(usage) }) => {
                return Ok(HarnessResult::Nothing(Inconclusive::Unheard { usage }));
            }
        };
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
            prompt: prompt.approved,
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

    /// Asks until there is an answer, or there will be none. Before each call the most that it may use is stored with the lease of the
    /// gate, so that a call whose answer is lost counts, whatever ends this process.
    async fn hear(
        &self,
        runner: &ContractRunner,
        claimed: &Claimed,
        judge: &Judge,
        contract: &Contract,
        prompt: &ClearedPrompt,
        mut cancel: impl Future<Output = ()> + Unpin,
    ) -> Result<Result<Hearing, Stopped>, ServiceError> {
        let Some(by) = self.settings.judges.named(&judge.by) else {
            let answer = Err(format!("the approved configuration has no judge {:?}", judge.by));
            return Ok(Ok(Hearing { answer, usage: None }));
        };
        let model = match by {
            JudgeConfig::Model(model) => Some(model),
            JudgeConfig::Agent(_) => None,
        };
        let (mut dialogue, mut lost) = (JudgeDialogue::new(&prompt.prompt), 0);
        loop {
            let call = self.expected_use(model, dialogue.tokens());
            let most = dialogue.usage().map_or(call.clone(), |used| used.and(&call));
            let called = if is_within(&most, prompt.left) {
                let Claimed { item, generation, token, .. } = claimed;
                if !self.store.note_usage(&item.id, *generation, token, &most).await? {
                    return Ok(Err(Stopped { usage: dialogue.usage().cloned() }));
                }
                match by {
                    JudgeConfig::Model(model) => {
                        self.ask_model(runner, judge, model, contract, &dialogue, &mut cancel).await
                    }
                    JudgeConfig::Agent(agent) => {
                        let left = left_of(prompt.left, dialogue.usage());
                        self.ask_agent(claimed, agent, contract, (&dialogue, left), &mut cancel).await
                    }
                }
            } else {
                Called::Refused("what is left of the budget does not suffice for one more answer".to_owned())
            };
            let said = match called {
                Called::Answered(said) => Ok(said),
                Called::Stopped => return Ok(Err(Stopped { usage: Some(most) })),
                Called::Refused(why) => Err(why),
                Called::Ended { why, usage } => {
                    dialogue.count(usage);
                    Err(why)
                }
                Called::Lost { why, may_pass } => {
                    dialogue.count(Some(call));
                    lost += 1;
                    if may_pass && lost < CALLS_LOST_MAX {
                        continue;
                    }
                    Err(why)
                }
            };
            if let Some(hearing) = dialogue.handle_answer(said) {
                return Ok(Ok(hearing));
            }
        }
    }

    /// Has a process of its own ask a model, once.
    async fn ask_model(
        &self,
        runner: &ContractRunner,
        judge: &Judge,
        model: &ModelConfig,
        contract: &Contract,
        dialogue: &JudgeDialogue<'_>,
        cancel: impl Future<Output = ()>,
    ) -> Called {
        let key = match model.key_env.as_ref().map(|name| (name, std::env::var(name))) {
            None => None,
            Some((_, Ok(key))) => Some(key.trim().to_owned()),
            Some((name, Err(_))) => {
                return Called::Refused(format!("{name} is not set where contracts run"));
            }
        };
        let masks = Masks::new(key.iter().map(|key| ("KEY", key.as_str())));
        let order = JudgeOrder {
            name: judge.by.clone(),
            model: model.clone(),
            price: Price::of(&self.settings.prices, &model.model),
            key,
            system: dialogue.system().to_owned(),
            text: dialogue.text().to_owned(),
        };
        // The model is somewhere else, and the process runs nothing but planctl.
        let runner = runner.clone().at_node("judge").with_host_network();
        let runner = match with_order(runner, ASK_JUDGE, &order, masks) {
            Ok(runner) => runner,
            Err(why) => return Called::Refused(why),
        };
        match output_of(&runner, contract.timeout, cancel).await {
            Ok(printed) => match serde_json::from_str(&printed) {
                Ok(JudgeReply::Answered { text, usage }) => {
                    Called::Answered(JudgeSaid { text, usage: Some(usage) })
                }
                Ok(JudgeReply::Lost { why, may_pass }) => Called::Lost { why, may_pass },
                Ok(JudgeReply::Refused { why }) => Called::Refused(why),
                Err(error) => {
                    Called::Lost { why: format!("its answer can't be read: {error}"), may_pass: false }
                }
            },
            Err(NoOutput::Interrupted) => Called::Stopped,
            Err(NoOutput::Failed(evidence)) => Called::Lost { why: last_words(&evidence), may_pass: false },
            Err(NoOutput::Unrunnable(why)) => Called::Refused(why),
        }
    }

    /// Asks an agent that reads a copy of the workspace.
    async fn ask_agent(
        &self,
        claimed: &Claimed,
        agent: &Agent,
        contract: &Contract,
        (dialogue, left): (&JudgeDialogue<'_>, Budget),
        cancel: impl Future<Output = ()> + Unpin,
    ) -> Called {
        let question = Question {
            agent,
            about: "judge",
            prices: &self.settings.prices,
            isolation: self.isolation(&claimed.workspace),
            workspace: Path::new(&claimed.workspace),
            state_dir: &self.state_dir,
            prompt: format!("{}\n\n{}", dialogue.system(), dialogue.text()),
            within: contract.timeout,
            budget_tokens: left.tokens,
            budget_micro_usd: left.micro_usd,
        };
        match ask_agent(question, &self.spawner, cancel).await {
            Ok(answer) => Called::Answered(JudgeSaid { text: answer.text, usage: answer.usage }),
            Err(AgentAnswerError::Stopped) => Called::Stopped,
            Err(error) => {
                let usage = match error.usage() {
                    AgentUsage::None => None,
                    AgentUsage::Reported(usage) => usage.cloned(),
                };
                Called::Ended { why: error.to_string(), usage }
            }
        }
    }
}

/// The gate was stopped while its judge was asked, or before.
struct Stopped {
    /// The usage of the calls so far, with the most of the one whose answer is lost.
    usage: Option<Usage>,
}

/// The result of one call of a judge.
enum Called {
    /// It answered.
    Answered(JudgeSaid),
    /// The gate was stopped meanwhile.
    Stopped,
    /// It was not asked, or did not take the call.
    Refused(String),
    /// It ended without an answer, and told what it used.
    Ended { why: String, usage: Option<Usage> },
    /// Its answer is lost, and may have been paid for.
    Lost { why: String, may_pass: bool },
}

fn left_of(left: Budget, used: Option<&Usage>) -> Budget {
    let (tokens, micro_usd) = used.map_or((0, 0), |used| (used.tokens(), used.micro_usd.unwrap_or(0)));
    Budget {
        tokens: left.tokens.map(|left| left.saturating_sub(tokens)),
        micro_usd: left.micro_usd.map(|left| left.saturating_sub(micro_usd)),
        time: left.time,
    }
}

fn is_within(usage: &Usage, left: Budget) -> bool {
    left.tokens.is_none_or(|left| usage.tokens() <= left)
        && left.micro_usd.is_none_or(|left| usage.micro_usd.unwrap_or(0) <= left)
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
