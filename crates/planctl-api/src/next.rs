//! The next step that a person may take, as a value: each client says it in words of its own.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A step that leads on from an answer or a problem.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Next {
    /// Verify a plan; where a folder is named, for the work in that folder of the workspace.
    VerifyPlan {
        /// Its path.
        plan: String,
        /// The folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// Edit a plan, and verify it again.
    EditPlan {
        /// Its path.
        plan: String,
    },
    /// Check the graph that a plan compiles to.
    CheckGraph {
        /// Its path.
        plan: String,
    },
    /// Look at what changed in a plan since it was approved.
    DiffPlan {
        /// Its path.
        plan: String,
    },
    /// Approve a plan.
    ApprovePlan {
        /// Its path.
        plan: String,
    },
    /// Start a run of a plan, or take up the one that is not finished.
    StartRun {
        /// The plan's path.
        plan: String,
        /// Says how.
        #[serde(default, skip_serializing_if = "Starting::is_usual")]
        how: Starting,
        /// The worker that serves every role, where one was named for the run before: `claude`, `exec:./work.sh`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// Start a run in the workspace itself, in place of a worktree.
    StartRunHere {
        /// The plan's path.
        plan: String,
    },
    /// Put a file back that is not what was committed, or commit it; then cancel the run and start another.
    CommitAndStartOver {
        /// The run.
        run: String,
        /// The plan's path.
        plan: String,
    },
    /// Start with the worker that was approved, or approve the plan for the one that was named.
    UseApprovedWorker {
        /// The plan's path.
        plan: String,
        /// The worker that was approved: `claude`, `codex:-m gpt-x`, `exec:./work.sh`.
        approved: String,
        /// The worker that was named; without one, those of the configuration were meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<String>,
    },
    /// Start a worker of a role.
    ServeRole {
        /// The role that nobody serves.
        role: String,
    },
    /// Let a paused worker claim again.
    ResumeWorker {
        /// Its name.
        worker: String,
    },
    /// Name a worker for the run, or one for the role in planctl.toml.
    NameWorker {
        /// The role that nobody serves.
        role: String,
    },
    /// Test an agent, once its program is installed.
    TestWorker {
        /// The agent: `claude`, `codex:-m gpt-x`.
        agent: String,
    },
    /// Put protected files back; or, where the change is meant, decide again and accept them by name.
    AcceptFiles {
        /// The files as they are, each as `FILE@DIGEST` for `accept_changed`.
        files: Vec<String>,
        /// The decision that accepts them.
        with: Box<Next>,
    },
    /// Take a run up.
    ResumeRun {
        /// The run.
        run: String,
    },
    /// Cancel a run.
    CancelRun {
        /// The run.
        run: String,
    },
    /// Audit a run, and cancel it.
    AuditRun {
        /// The run.
        run: String,
    },
    /// Leave a settled step as it was, or cancel the run.
    KeepStep {
        /// The step.
        step: String,
        /// The run.
        run: String,
    },
    /// Watch a run.
    WatchRun {
        /// The run.
        run: String,
    },
    /// Look where a run stands.
    ShowRun {
        /// The run.
        run: String,
    },
    /// Look which runs are not over.
    ShowRuns,
    /// Look at all runs.
    ShowAllRuns,
    /// List the runs of this workspace by plan.
    ListRuns,
    /// Look which asks wait for a person.
    ShowAsks,
    /// Look at an ask.
    ShowAsk {
        /// Its number.
        ask: u64,
    },
    /// Answer an ask with one of these words.
    AnswerAsk {
        /// Its number.
        ask: u64,
        /// The answers that it takes.
        answers: Vec<String>,
    },
    /// Put a file back by hand, and answer the ask with `retry`.
    RestoreAndRetry {
        /// The ask's number.
        ask: u64,
    },
    /// Demand an isolation that can hold the role to its network, or give the role that of the host.
    HoldNetwork {
        /// The role.
        role: String,
    },
    /// Look which database is used, and how it is.
    ShowDatabase,
    /// Bring the database to the schema of this version.
    MigrateDatabase,
    /// Make a token.
    CreateToken,
    /// Revoke a token.
    RevokeToken {
        /// Its id.
        token: String,
    },
    /// List the workers that were seen.
    ListWorkers,
    /// List the tokens.
    ListTokens,
    /// List what became of messages.
    ListDeliveries,
    /// Read the description of the API: `GET /v1/openapi.json`.
    ReadApi,
    /// Do what these words say: outside planctl, or with the same request put right.
    ByHand {
        /// The words.
        what: String,
    },
}

/// How a run is to be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Starting {
    /// As the plan stands.
    #[default]
    Usual,
    /// Once more, although the plan is done.
    Again,
    /// Approved with the start.
    Approved,
}

impl Starting {
    fn is_usual(&self) -> bool {
        *self == Starting::Usual
    }
}

impl Next {
    /// Starts a run of a plan.
    pub fn start(plan: impl Into<String>) -> Next {
        Next::StartRun { plan: plan.into(), how: Starting::Usual, worker: None }
    }

    /// Starts another run of a plan.
    pub fn start_again(plan: impl Into<String>) -> Next {
        Next::start_again_with(plan, None)
    }

    /// Starts another run of a plan with the worker that was named for the run before.
    pub fn start_again_with(plan: impl Into<String>, worker: Option<String>) -> Next {
        Next::StartRun { plan: plan.into(), how: Starting::Again, worker }
    }

    /// Approves a plan.
    pub fn approve(plan: impl Into<String>) -> Next {
        Next::ApprovePlan { plan: plan.into() }
    }

    /// Cancels a run.
    pub fn cancel(run: impl Into<String>) -> Next {
        Next::CancelRun { run: run.into() }
    }

    /// Looks where a run stands.
    pub fn show(run: impl Into<String>) -> Next {
        Next::ShowRun { run: run.into() }
    }

    /// Does something outside planctl.
    pub fn by_hand(what: impl Into<String>) -> Next {
        Next::ByHand { what: what.into() }
    }
}

/// Reads a next step; one of a later version, which is not known here, is left out.
///
/// # Errors
///
/// Where there is no JSON.
pub(crate) fn deserialize_known<'de, D: Deserializer<'de>, N: DeserializeOwned>(
    from: D,
) -> Result<Option<N>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}
