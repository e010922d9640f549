//! Says in commands of planctl what the API names as next steps.

use planctl_api::words::answer_command;
use planctl_api::{Next, Starting};

use crate::failure::Failure;
use crate::show::shell_word;

/// Adds a next step to a failure.
pub fn with_next(failure: Failure, next: &Next) -> Failure {
    // These say what to write into planctl.toml, and are no commands.
    if matches!(next, Next::HoldNetwork { .. } | Next::NameWorker { .. }) {
        return failure.help(words(next));
    }
    failure.next(words(next))
}

/// Returns what to type, or to do: one command in a line, so that each can be copied whole.
pub fn words(next: &Next) -> String {
    match next {
        Next::VerifyPlan { plan, folder: None } => format!("planctl verify {}", shell_word(plan)),
        Next::VerifyPlan { plan, folder: Some(folder) } => {
            format!("planctl verify --workspace {} {}", shell_word(folder), shell_word(plan))
        }
        Next::EditPlan { plan } => format!("edit it, then planctl verify {}", shell_word(plan)),
        Next::CheckGraph { plan } => format!("planctl graph check {}", shell_word(plan)),
        Next::DiffPlan { plan } => format!("planctl diff {}", shell_word(plan)),
        Next::ApprovePlan { plan } => format!("planctl approve {}", shell_word(plan)),
        Next::StartRun { plan, how, worker } => {
            let plan = shell_word(plan);
            let worker = worker.as_deref().map(worker_flag).unwrap_or_default();
            match how {
                Starting::Usual => format!("planctl run {plan}{worker}"),
                Starting::Again => format!("planctl run --again {plan}{worker}"),
                Starting::Approved => format!("planctl run {plan} --approve{worker}"),
            }
        }
        Next::StartRunHere => "planctl run --workspace shared".to_owned(),
        Next::CommitAndStartOver { run, plan } => {
            format!("commit it, then planctl cancel {run} && planctl run {}", shell_word(plan))
        }
        Next::UseApprovedWorker { plan, approved, named } => {
            let plan = shell_word(plan);
            let flag = |worker: &String| format!(" --agent {}", shell_word(worker));
            let anew = named.as_ref().map(flag).unwrap_or_default();
            format!(
                "planctl run {plan}{}, or approve the other: planctl approve {plan}{anew}",
                flag(approved)
            )
        }
        Next::ServeRole { role } => format!("planctl worker run --role {role} --agent NAME"),
        Next::NameWorker { role } => format!(
            "name a worker with --agent NAME or --exec CMD, or in planctl.toml: [roles.{role}] agent = \"exec:CMD\""
        ),
        Next::TestWorker { agent } => format!("planctl worker test --agent {}", shell_word(agent)),
        Next::AcceptFiles { files, with } => {
            let files = files.iter().map(|file| format!(" --accept-changed {}", shell_word(file)));
            format!("put them back, or, where you mean them: {}{}", words(with), files.collect::<String>())
        }
        Next::ResumeRun { run } => format!("planctl resume {run}"),
        Next::CancelRun { run } => format!("planctl cancel {run}"),
        Next::AuditRun { run } => format!("planctl audit {run}, then planctl cancel {run}"),
        Next::KeepStep { step, run } => {
            format!("put step {step} back, or cancel the run: planctl cancel {run}")
        }
        Next::WatchRun { run } => format!("planctl watch {run}"),
        Next::ShowRun { run } => format!("planctl status {run}"),
        Next::ShowRuns => "planctl status".to_owned(),
        Next::ShowAllRuns => "planctl status --all".to_owned(),
        Next::ListRuns => "planctl ls".to_owned(),
        Next::ShowAsks => "planctl approvals".to_owned(),
        Next::ShowAsk { ask } => format!("planctl approvals show {ask}"),
        Next::AnswerAsk { ask, answers } => {
            let commands: Vec<String> = answers
                .iter()
                .map(|answer| format!("planctl approvals {} {ask}{}", typed(answer), needs(answer)))
                .collect();
            commands.join("\n      ")
        }
        Next::RestoreAndRetry { ask } => {
            format!("put it back by hand, then planctl approvals retry {ask}")
        }
        Next::HoldNetwork { role } => format!(
            "in planctl.toml write isolation = \"require:1b\", where `planctl doctor` says that this host offers it, \
             or network = \"host\" in [roles.{role}]"
        ),
        Next::ShowDatabase => "planctl db status".to_owned(),
        Next::MigrateDatabase => "planctl daemon migrate".to_owned(),
        Next::CreateToken => "planctl token create SCOPE --name NAME".to_owned(),
        Next::RevokeToken { token } => format!("planctl token revoke {token}"),
        Next::ListWorkers => "planctl worker ls".to_owned(),
        Next::ListTokens => "planctl token ls".to_owned(),
        Next::ListDeliveries => "planctl notify deliveries".to_owned(),
        Next::ReadApi => "GET /v1/openapi.json".to_owned(),
        Next::ByHand { what } => what.clone(),
    }
}

/// Returns the flag that has a worker serve every role.
fn worker_flag(worker: &str) -> String {
    match worker.strip_prefix("exec:") {
        Some(command) => format!(" --exec {}", shell_word(command)),
        None => format!(" --agent {}", shell_word(worker)),
    }
}

/// Returns the command that starts a worker beside the daemon.
pub fn start_worker(role: &str) -> String {
    format!("planctl worker run --role {} --exec CMD", shell_word(role))
}

/// Says that a daemon with a worker for every role is there for the asking.
pub const SERVE_ALL: &str = "a worker for every role: planctl dev --exec CMD";

/// Returns commands about a run of a workspace as they are typed in the current directory: a run's name counts in its own
/// workspace.
pub fn typed_here(words: &str, workspace: &str) -> String {
    if std::env::current_dir().is_ok_and(|here| here.starts_with(workspace)) {
        return words.to_owned();
    }
    words.replace("planctl ", &format!("planctl -C {} ", shell_word(workspace)))
}

/// Returns what is typed after an answer and the number of its ask.
pub fn needs(answer: &str) -> &'static str {
    match answer {
        "choose" => " 'YOUR ANSWER'",
        "reassign" => " ROLE",
        "raise" => " --tokens N | --cost USD | --time DUR",
        "reject" | "retry" | "skip" | "waive" | "abort" | "answer" => " --note '…'",
        _ => "",
    }
}

/// Returns the command that gives an answer, as it is typed.
pub fn typed(answer: &str) -> String {
    shell_word(answer_command(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_step_is_a_command_that_can_be_typed() {
        let accept = Next::AcceptFiles {
            files: vec!["tests/a b.rs@12ab".to_owned(), "c@34cd".to_owned()],
            with: Box::new(Next::StartRun { plan: "a.md".to_owned(), how: Starting::Approved, worker: None }),
        };
        assert_eq!(
            words(&accept),
            "put them back, or, where you mean them: planctl run a.md --approve \
             --accept-changed 'tests/a b.rs@12ab' --accept-changed c@34cd"
        );
        let again = |worker: &str| words(&Next::start_again_with("a.md", Some(worker.to_owned())));
        assert_eq!(again("exec:./a b"), "planctl run --again a.md --exec './a b'");
        assert_eq!(again("claude"), "planctl run --again a.md --agent claude");
        let worker = |named: Option<&str>| Next::UseApprovedWorker {
            plan: "a.md".to_owned(),
            approved: "exec:./a b".to_owned(),
            named: named.map(str::to_owned),
        };
        assert_eq!(
            words(&worker(Some("claude"))),
            "planctl run a.md --agent 'exec:./a b', or approve the other: planctl approve a.md --agent claude"
        );
        assert!(words(&worker(None)).ends_with("planctl approve a.md"));
        let answers = Next::AnswerAsk { ask: 3, answers: vec!["retry".to_owned(), "skip".to_owned()] };
        assert_eq!(
            words(&answers),
            "planctl approvals retry 3 --note '…'\n      planctl approvals skip 3 --note '…'"
        );
    }
}
