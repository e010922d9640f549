//! Asks an agent one question: it reads a throw-away copy of the workspace, and nothing that it writes there stays.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use planctl_config::{Agent, Price};
use planctl_engine::{AgentSaid, Ending, Fault, Report, Usage};
use planctl_harness::{
    Assignment, Isolation, Output, PermissionMode, Permissions, Program, Replica, ReplicaError,
    ReplicaLimits, Spawner,
};

use crate::state_folders::private_in;
use crate::verify::agent_program::{MissingProgram, agent_program};

/// The folder of the state directory that attempts and trials share.
const SCRATCH: &str = "work";

/// A question to an agent.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The subject of the question, as its environment names it: `plan-draft`.
    pub about: &'a str,
    /// The prices of models.
    pub prices: &'a BTreeMap<String, Price>,
    /// How it is isolated.
    pub isolation: Isolation,
    /// The workspace, a canonical path.
    pub workspace: &'a Path,
    /// The state directory.
    pub state_dir: &'a Path,
    /// The prompt.
    pub prompt: String,
    /// How long it may take.
    pub within: Duration,
    /// The tokens that are left for it, where there is a limit.
    pub budget_tokens: Option<u64>,
    /// The money that is left for it, in millionths of a US dollar.
    pub budget_micro_usd: Option<u64>,
}

/// An agent's answer.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentAnswer {
    /// Its last words, whole.
    pub text: String,
    /// Its usage, where it told any.
    pub usage: Option<Usage>,
    /// How its process ended, which says nothing of an answer that can be used.
    pub ending: Option<Ending>,
}

/// Why there is no answer of an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentAnswerError {
    /// Its program is not there.
    #[error("{} is not found", .0.name)]
    Missing(MissingProgram),
    /// It can't be held to reading only.
    #[error("{0}")]
    Permissions(String),
    /// It failed for a reason that is not the question's.
    #[error("{}", .0.message)]
    Faulted(Fault),
    /// It was still at work at its deadline.
    #[error("it was still at work after {} s and was ended", .0.as_secs())]
    Overran(Duration, Option<Usage>),
    /// The caller asked to stop.
    #[error("it was stopped")]
    Stopped,
    /// There is no copy of the workspace.
    #[error("copy the workspace: {0}")]
    Copy(#[from] ReplicaError),
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The usage of an agent without an answer.
#[derive(Clone, Copy, Debug)]
pub enum AgentUsage<'e> {
    /// Nothing: it did not begin.
    None,
    /// As it told; `None` where it told nothing.
    Reported(Option<&'e Usage>),
}

impl AgentAnswerError {
    /// Returns what the agent used.
    pub fn usage(&self) -> AgentUsage<'_> {
        match self {
            AgentAnswerError::Missing(_) | AgentAnswerError::Permissions(_) | AgentAnswerError::Copy(_) => {
                AgentUsage::None
            }
            AgentAnswerError::Faulted(fault) => AgentUsage::Reported(fault.usage.as_ref()),
            AgentAnswerError::Overran(_, usage) => AgentUsage::Reported(usage.as_ref()),
            AgentAnswerError::Stopped | AgentAnswerError::Io(_) => AgentUsage::Reported(None),
        }
    }
}

/// Returns the program of an agent that is held to reading, as far as it can be.
///
/// # Errors
///
/// [`AgentAnswerError`] where the agent is not installed, or is a session that a person started.
pub fn reading_program(agent: &Agent) -> Result<Program, AgentAnswerError> {
    let permissions = match agent {
        Agent::Known { .. } => Permissions { mode: PermissionMode::Deny, allow: None },
        Agent::Exec(_) | Agent::Session => Permissions::default(),
    };
    agent.can_keep(&permissions).map_err(AgentAnswerError::Permissions)?;
    let session =
        || AgentAnswerError::Permissions("a session is started by a person and answers nobody".to_owned());
    let program = agent.program(&permissions).ok_or_else(session)?;
    if let Program::Known(known) = &program {
        agent_program(known).map_err(AgentAnswerError::Missing)?;
    }
    Ok(program)
}

/// Asks an agent, and waits for its last words.
///
/// # Errors
///
/// [`AgentAnswerError`] where none came.
pub async fn ask_agent(
    question: Question<'_>,
    spawner: &Spawner,
    cancel: impl Future<Output = ()>,
) -> Result<AgentAnswer, AgentAnswerError> {
    let program = reading_program(question.agent)?;
    let scratch = private_in(question.state_dir, SCRATCH)?;
    let (room, workspace): (PathBuf, PathBuf) = (scratch.clone(), question.workspace.to_owned());
    let never = Arc::new(|| false);
    let copied = tokio::task::spawn_blocking(move || {
        Replica::make(&room, &workspace, ReplicaLimits::default(), never)
    });
    let replica = copied.await.map_err(io::Error::other)??;
    let mut agent = planctl_harness::Agent::exec(program, &scratch);
    agent.isolation = question.isolation.clone();
    let assignment = assignment(&question, &replica);
    let worked = agent.run_item(spawner, &assignment, &mut |_, _| (), cancel).await;
    // Nobody waits until the copy is removed.
    tokio::task::spawn_blocking(move || drop(replica));
    let mut said = worked.said;
    if let Some(usage) = said.usage_mut() {
        Price::estimate(question.prices, usage);
    }
    match said {
        AgentSaid::Reported(report) => Ok(collect_answer(report, &worked.outputs)),
        AgentSaid::Asked { question, usage } => Ok(AgentAnswer { text: question, usage, ending: None }),
        AgentSaid::Faulted(fault) => Err(AgentAnswerError::Faulted(fault)),
        AgentSaid::Overran { usage, .. } => Err(AgentAnswerError::Overran(question.within, usage)),
        AgentSaid::Released => Err(AgentAnswerError::Stopped),
    }
}

/// Puts the whole of its words together: a long text is kept beside the report.
fn collect_answer(report: Report, outputs: &[Output]) -> AgentAnswer {
    let whole =
        report.text.stored.as_ref().and_then(|digest| outputs.iter().find(|output| output.digest == *digest));
    let text = match whole {
        Some(output) => String::from_utf8_lossy(&output.bytes).into_owned(),
        None => report.text.tail,
    };
    AgentAnswer { text, usage: report.usage, ending: report.ending }
}

fn assignment(question: &Question<'_>, replica: &Replica) -> Assignment {
    Assignment {
        item: question.about.to_owned(),
        run: question.about.to_owned(),
        plan: question.about.to_owned(),
        step: "1".to_owned(),
        step_title: "Answer a question".to_owned(),
        node: "1".to_owned(),
        role: "planner".to_owned(),
        profile: None,
        thread: None,
        attempt: 1,
        attempts_max: 1,
        workspace: replica.workspace().to_owned(),
        prompt: question.prompt.clone(),
        context: Vec::new(),
        deadline: question.within,
        deadline_at: None,
        budget_tokens: question.budget_tokens,
        budget_micro_usd: question.budget_micro_usd,
        traceparent: None,
        locks: vec![replica.lock()],
    }
}
