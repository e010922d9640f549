//! Lets a worker do one small task in a throw-away folder, and says what planctl can tell of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use planctl_engine::{AgentSaid, Ending, Fault, FaultKind, Report, Usage};
use planctl_harness::{Assignment, Command, End, NamedAgent, Program, Spawner, blocking_in_place};

use crate::clock;
use crate::verify::agent_program::agent_program;
pub use crate::verify::agent_program::installed_agents;
use planctl_api::wire::{Health, HealthView, WorkerTestView};
use planctl_config::{Agent, Config, Price, RoleConfig, prices_known};

/// How long a program may take to say its version.
const VERSION_TIME: Duration = Duration::from_secs(20);

/// The agent to test, and the place of the test.
#[derive(Clone, Copy, Debug)]
pub struct Tryout<'a> {
    /// The worker.
    pub worker: &'a Agent,
    /// The settings of the role that it is tested as.
    pub role: &'a RoleConfig,
    /// The configuration, for the price of models' tokens.
    pub config: &'a Config,
    /// An empty folder; the worker works in it.
    pub workspace: &'a Path,
    /// Where the private folder of the attempt is made.
    pub scratch: &'a Path,
    /// How long it may take.
    pub within: Duration,
}

/// Tests a worker; its failures are part of the answer.
///
/// # Errors
///
/// When a process of planctl's own can't be started.
pub async fn try_worker(
    tryout: Tryout<'_>,
    spawner: &Spawner,
    cancel: impl Future<Output = ()>,
) -> io::Result<WorkerTestView> {
    let began = clock::instant();
    let mut checks = Vec::new();
    let Some(program) = tryout.worker.program(&tryout.role.permissions) else {
        let found = "a session is started by you, and can't be tested as a worker".to_owned();
        checks.push(check("program", Health::Problem, found, None));
        return Ok(view(tryout.worker, began.elapsed(), checks));
    };
    if let Program::Known(known) = &program {
        let found = check_program(known, spawner, tryout.workspace).await?;
        let is_missing = found.health == Health::Problem;
        checks.push(found);
        if is_missing {
            return Ok(view(tryout.worker, began.elapsed(), checks));
        }
    }
    let word = format!("planctl-{:x}", clock::now().as_micros());
    let may_write = may_write(&program);
    let mut agent = planctl_harness::Agent::exec(program, tryout.scratch);
    agent.inherited = tryout.role.env.inherit.clone();
    agent.environment = tryout.role.env.set.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let assignment = assignment(&tryout, &word, may_write);
    let worked = agent.run_item(spawner, &assignment, &mut |_, _| (), cancel).await;
    let mut said = worked.said;
    if let Some(usage) = said.usage_mut() {
        Price::estimate(&tryout.config.prices, usage);
    }
    let has_worked = matches!(said, AgentSaid::Reported(_));
    checks.extend(judge_tryout(said, worked.is_mute, &word, tryout));
    if has_worked && may_write {
        checks.push(blocking_in_place(|| check_written_file(&tryout, &word)));
    }
    Ok(view(tryout.worker, began.elapsed(), checks))
}

fn view(worker: &Agent, time: Duration, checks: Vec<HealthView>) -> WorkerTestView {
    let works = checks.iter().all(|check| check.health != Health::Problem);
    WorkerTestView { worker: worker.to_string(), works, seconds: time.as_secs_f64(), checks }
}

/// Looks for the agent's program and asks for its version.
///
/// # Errors
///
/// When its process can't be started by planctl's helper.
pub async fn check_program(known: &NamedAgent, spawner: &Spawner, folder: &Path) -> io::Result<HealthView> {
    let name = known.agent.name();
    let program = match agent_program(known) {
        Ok(program) => program,
        Err(missing) => {
            let found = format!("{name} is not found");
            return Ok(check("program", Health::Problem, found, Some(missing.help())));
        }
    };
    let mut command = Command::new([program.as_os_str(), OsStr::new("--version")], folder);
    command.environment = planctl_harness::agent_environment([]);
    command.deadline = Some(VERSION_TIME);
    let finished = spawner.run(&command, &mut |_, _| (), std::future::pending()).await?;
    let said = String::from_utf8_lossy(&finished.stdout.head).into_owned();
    let version = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let version: String = version.chars().take(80).collect();
    Ok(match finished.end {
        End::Exited(0) if !version.is_empty() => {
            check("program", Health::Good, format!("{version} ({})", program.display()), None)
        }
        End::Exited(_)
        | End::Signalled(_)
        | End::TimedOut
        | End::IdleTimedOut
        | End::Flooded
        | End::OverLimit(_)
        | End::Cancelled
        | End::NotStarted { .. }
        | End::HelperLost => {
            let found = format!("{} is there and does not say its version", program.display());
            check("program", Health::Warning, found, Some(format!("try: {name} --version")))
        }
    })
}

/// The file that a worker is to write.
const FILE: &str = "planctl-test.txt";

/// Says whether the worker's permissions let it write files; a command of one's own is held to none.
fn may_write(program: &Program) -> bool {
    match program {
        Program::Known(known) => known.may_edit(),
        Program::Shell(_) => true,
    }
}

fn check_written_file(tryout: &Tryout<'_>, word: &str) -> HealthView {
    let text = std::fs::read_to_string(tryout.workspace.join(FILE)).unwrap_or_default();
    if text.contains(word) {
        return check("file", Health::Good, "it wrote the file that it was asked for".to_owned(), None);
    }
    let is_known = matches!(tryout.worker, Agent::Known { .. });
    let health = if is_known { Health::Problem } else { Health::Warning };
    let help = "its permissions, or settings of its own, keep it from editing; or its model did not do as it was asked";
    check("file", health, "it did not write the file that it was asked for".to_owned(), Some(help.to_owned()))
}

fn assignment(tryout: &Tryout<'_>, word: &str, may_write: bool) -> Assignment {
    let task = if may_write {
        format!("Write the file {FILE} in this folder, with this one line in it: {word}\nThen reply")
    } else {
        "Use no tools and change no files. Reply".to_owned()
    };
    Assignment {
        item: "worker-test".to_owned(),
        run: "worker-test".to_owned(),
        plan: "worker-test".to_owned(),
        step: "1".to_owned(),
        step_title: "A test".to_owned(),
        node: "1".to_owned(),
        role: "tester".to_owned(),
        profile: None,
        thread: None,
        attempt: 1,
        attempts_max: 1,
        workspace: tryout.workspace.to_owned(),
        prompt: format!(
            "This is a test of the connection. {task} with this one word and nothing else: {word}\n"
        ),
        context: Vec::new(),
        deadline: tryout.within,
        deadline_at: None,
        budget_tokens: None,
        budget_micro_usd: None,
        traceparent: None,
        locks: Vec::new(),
    }
}

fn judge_tryout(said: AgentSaid, is_mute: bool, word: &str, tryout: Tryout<'_>) -> Vec<HealthView> {
    let is_known = matches!(tryout.worker, Agent::Known { .. });
    match said {
        AgentSaid::Faulted(fault) => vec![faulted(fault)],
        AgentSaid::Released => vec![check("run", Health::Problem, "it was stopped".to_owned(), None)],
        AgentSaid::Overran { usage, .. } => {
            let found = format!("it was still at work after {} s and was ended", tryout.within.as_secs());
            let mut checks =
                vec![check("run", Health::Problem, found, Some("allow more: --within 5m".to_owned()))];
            checks.extend(metered(usage.as_ref(), &tryout.config.prices));
            checks
        }
        AgentSaid::Asked { question, usage } => {
            let mut checks = vec![check("run", Health::Good, format!("it asked: {question}"), None)];
            checks.extend(metered(usage.as_ref(), &tryout.config.prices));
            checks
        }
        AgentSaid::Reported(report) => {
            let mut checks = vec![ended(&report)];
            checks.extend(answered(if is_mute { "" } else { report.text.tail.trim() }, word, is_known));
            checks.extend(metered(report.usage.as_ref(), &tryout.config.prices));
            checks
        }
    }
}

fn faulted(fault: Fault) -> HealthView {
    let help = match fault.kind {
        FaultKind::Permission => "sign in, or pass its key on: env = [\"…\"] of the role in planctl.toml",
        FaultKind::Permanent => "planctl would ask you at once: trying again would not help",
        FaultKind::Transient => "planctl would try again later, and ask you after five tries",
    };
    check("run", Health::Problem, fault.message, Some(help.to_owned()))
}

/// The statuses by which a shell says that a command is not there, or is none.
const NO_COMMAND: std::ops::RangeInclusive<i32> = 126..=127;

fn ended(report: &Report) -> HealthView {
    if let Some(Ending::Exited { code }) = report.ending
        && NO_COMMAND.contains(&code)
    {
        let last = report.text.tail.trim().lines().last().unwrap_or_default();
        let last: String = last.chars().take(200).collect();
        let help = "name a command that is there and can be run; its folder has to be in PATH";
        return check("run", Health::Problem, format!("exit {code}: {last}"), Some(help.to_owned()));
    }
    let (health, found) = match report.ending {
        Some(Ending::Exited { code: 0 }) => (Health::Good, "exit 0".to_owned()),
        Some(Ending::Exited { code }) => (Health::Warning, format!("exit {code}")),
        Some(Ending::Signalled { signal }) => (Health::Warning, format!("ended by signal {signal}")),
        Some(Ending::TimedOut | Ending::OverLimit { .. } | Ending::NotRun) | None => {
            (Health::Warning, "no exit".to_owned())
        }
    };
    let help = (health != Health::Good).then(|| "recorded; the contract decides all the same".to_owned());
    check("run", health, found, help)
}

/// A command of one's own may be silent; an agent that answers nothing was not understood.
fn answered(text: &str, word: &str, is_known: bool) -> Vec<HealthView> {
    let failing = if is_known { Health::Problem } else { Health::Warning };
    if text.is_empty() {
        let help = "planctl shows a worker's last words beside its step; print some".to_owned();
        return vec![check("final text", failing, "none".to_owned(), Some(help))];
    }
    let brief: String = text.chars().take(80).collect();
    let prompt = if text.contains(word) {
        check("prompt", Health::Good, "it came through".to_owned(), None)
    } else {
        let help = "the answer lacks the word that the prompt asked for".to_owned();
        check("prompt", failing, "whether it arrived is unknown".to_owned(), Some(help))
    };
    vec![prompt, check("final text", Health::Good, brief, None)]
}

fn metered(usage: Option<&Usage>, prices: &BTreeMap<String, Price>) -> Vec<HealthView> {
    let usage = usage.filter(|usage| usage.tokens() > 0 || usage.micro_usd.is_some());
    let Some(usage) = usage else {
        let help = "shown as unmetered; a limit of tokens or money does not hold it".to_owned();
        return vec![check("tokens", Health::Warning, "not reported".to_owned(), Some(help))];
    };
    let tokens = format!(
        "{} in ({} cached), {} out",
        usage.input_tokens, usage.cached_input_tokens, usage.output_tokens
    );
    let money = |micro_usd: u64| format!("${}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000);
    let cost = match (usage.micro_usd, &usage.model) {
        (Some(micro_usd), Some(model)) if usage.estimated => {
            let known = match prices.contains_key(model) {
                true => String::new(),
                false => format!(" {}", prices_known()),
            };
            let found = format!("{} (estimated by the price of {model}{known})", money(micro_usd));
            check("cost", Health::Good, found, None)
        }
        (Some(micro_usd), _) => check("cost", Health::Good, money(micro_usd), None),
        (None, Some(model)) => {
            let known: Vec<&str> = prices.keys().map(String::as_str).collect();
            let has = if known.is_empty() { String::new() } else { format!(" (has: {})", known.join(", ")) };
            let help = format!("set [prices.\"{model}\"] in planctl.toml{has}");
            check("cost", Health::Warning, "not reported".to_owned(), Some(help))
        }
        (None, None) => {
            let help = "name its model (NAME:-m MODEL) and set [prices.\"MODEL\"] in planctl.toml".to_owned();
            check("cost", Health::Warning, "not reported".to_owned(), Some(help))
        }
    };
    vec![check("tokens", Health::Good, tokens, None), cost]
}

fn check(check: &str, health: Health, found: String, help: Option<String>) -> HealthView {
    HealthView { check: check.to_owned(), health, found, help }
}
