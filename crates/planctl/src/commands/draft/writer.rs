//! The writer of a draft: a model, an agent, or a pattern.

use std::time::Duration;

use planctl_api::wire::HeldPromptView;
use planctl_config::{Agent, Config, ModelApi};
use planctl_engine::{Budget, Ending, Usage};
use planctl_harness::{KnownAgent, Spawner};
use planctl_lang::budget_of;
use planctl_planner::{Answer, Charge, Prompt, Tokens};
use planctl_server::agent_answer::{AgentAnswerError, AgentUsage, Question, ask_agent, reading_program};
use planctl_server::probe::isolation_of;

use super::allowance::{Allowance, Metered};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::model::{Account as _, AskedAgain, Model};
use crate::show;
use crate::stop::Stop;

/// The most characters of what an agent printed that are shown, where that is no answer.
const PRINTED_CHARACTERS_MAX: usize = 200;

/// The writer.
pub enum DraftWriter {
    /// The form of the goal.
    Pattern,
    /// A model.
    Model(Box<Model>),
    /// An agent, and how long it may take.
    Agent(Agent, Duration),
}

impl DraftWriter {
    /// Returns its name; nothing for a pattern.
    pub fn name(&self) -> Option<String> {
        match self {
            DraftWriter::Pattern => None,
            DraftWriter::Model(model) => Some(model.name().to_owned()),
            DraftWriter::Agent(agent, _) => Some(agent.to_string()),
        }
    }

    /// Returns the model, where it is one.
    pub fn model(&self) -> Option<&Model> {
        match self {
            DraftWriter::Model(model) => Some(model),
            DraftWriter::Pattern | DraftWriter::Agent(..) => None,
        }
    }

    /// Returns a word by which its drafts are told from those of others.
    pub fn key(&self) -> String {
        match self {
            DraftWriter::Pattern => "pattern".to_owned(),
            DraftWriter::Model(model) => format!("model {}", model.name()),
            DraftWriter::Agent(agent, _) => format!("agent {agent}"),
        }
    }

    /// Asks for one answer within the budget.
    pub async fn ask(
        &self,
        context: &Context,
        prompt: &Prompt,
        allowance: &mut Allowance<'_, impl Metered>,
        stop: &mut Stop,
    ) -> Result<Answer, Failure> {
        match self {
            DraftWriter::Pattern => {
                Err(Failure::new(Exit::No, "a pattern writes once").help("name a writer: --agent or --model"))
            }
            DraftWriter::Model(model) => ask_model(context, model, prompt, allowance, stop).await,
            DraftWriter::Agent(agent, within) => {
                ask_an_agent(context, agent, *within, prompt.to_text(), allowance, stop).await
            }
        }
    }
}

/// Checks that an agent is there and can be held to reading.
pub fn checked(agent: &Agent) -> Result<(), Failure> {
    reading_program(agent).map(drop).map_err(|error| agent_failure(agent, &error))
}

/// Names the writers that there are, for a person who named none.
pub fn configured_models(config: &Config) -> Vec<String> {
    writers(config).map(|writer| format!("--{writer}")).collect()
}

/// Names the models and the agents that can write here: `model NAME`, `agent NAME`.
pub fn writers(config: &Config) -> impl Iterator<Item = String> {
    let answering = config.models.iter().filter(|(_, model)| model.api != ModelApi::Embeddings);
    let models = answering.map(|(name, _)| format!("model {name}"));
    let installed = KnownAgent::all()
        .filter(|agent| Agent::parse(agent.name()).is_ok_and(|agent| reading_program(&agent).is_ok()));
    models.chain(installed.map(|agent| format!("agent {}", agent.name())))
}

/// Asks a model for one answer within the budget.
pub async fn ask_model(
    context: &Context,
    model: &Model,
    prompt: &Prompt,
    allowance: &mut Allowance<'_, impl Metered>,
    stop: &mut Stop,
) -> Result<Answer, Failure> {
    let most = model.most(prompt);
    allowance.open(most)?;
    if model.asks_person() {
        let view = HeldPromptView {
            digest: model.digest(prompt).as_str().to_owned(),
            name: model.name().to_owned(),
            model: model.model().to_owned(),
            url: model.endpoint().to_owned(),
            tokens: most.tokens.map_or(0, |most| most.sum()),
            text: Some(prompt.to_text()),
        };
        allowance.inbox.clear_prompt(view, allowance.prompt).await?;
    }
    let say = |again: &AskedAgain| context.say(&again.to_string());
    tokio::select! {
        answer = model.ask(prompt, &say, allowance) => answer,
        exit = stop.wait_for_signal() => Err(stopped_failure(exit)),
    }
}

async fn ask_an_agent(
    context: &Context,
    agent: &Agent,
    within: Duration,
    prompt: String,
    allowance: &mut Allowance<'_, impl Metered>,
    stop: &mut Stop,
) -> Result<Answer, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Exit::Temporary, format!("could not start the helper: {error}"));
    let spawner = Spawner::start_self(None).map_err(failed)?;
    let state_dir = context.state_dir()?;
    let config = &context.config()?.config;
    let isolation = isolation_of(config, &spawner, &state_dir).await;
    let isolation = isolation.map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    // An agent may use what is left.
    let most = allowance.left();
    allowance.enter(most).await?;
    let question = Question {
        agent,
        about: "plan-draft",
        prices: &config.prices,
        isolation,
        workspace: context.workspace(),
        state_dir: &state_dir,
        prompt,
        within,
        budget_tokens: most.tokens.map(|most| most.sum()),
        budget_micro_usd: most.micro_usd,
    };
    let mut exit = None;
    let cancelled = async { exit = Some(stop.wait_for_signal().await) };
    let answered = ask_agent(question, &spawner, cancelled).await;
    spawner.shutdown();
    if let Some(exit) = exit {
        return Err(stopped_failure(exit));
    }
    let said = match answered {
        Ok(said) => said,
        Err(error) => {
            match error.usage() {
                AgentUsage::None => allowance.strike().await?,
                AgentUsage::Reported(usage) => allowance.ended(charge(usage)).await?,
            }
            return Err(agent_failure(agent, &error));
        }
    };
    let Charge { tokens, micro_usd } = charge(said.usage.as_ref());
    if let Some(Ending::Exited { code: code @ 1.. }) = said.ending
        && !said.text.contains('{')
    {
        allowance.ended(charge(said.usage.as_ref())).await?;
        return Err(unanswered(agent, code, &said.text));
    }
    allowance.strike_in_memory();
    Ok(Answer { tokens, micro_usd, ..Answer::new(&said.text) })
}

/// Says that an agent failed and gave no answer, with the end of what it printed.
fn unanswered(agent: &Agent, code: i32, text: &str) -> Failure {
    let command = show::safe(&agent.display_command());
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let printed = match show::brief(&show::safe(last), PRINTED_CHARACTERS_MAX) {
        nothing if nothing.is_empty() => "it printed nothing".to_owned(),
        last => format!("it printed: {last}"),
    };
    Failure::new(Exit::Temporary, format!("could not ask {command}: it ended with exit code {code}; {printed}"))
        .help("its answer is what it prints, and the prompt is its standard input; the same goal goes on where it was")
}

fn charge(usage: Option<&Usage>) -> Charge {
    let tokens = usage.map(|usage| Tokens {
        input: usage.input_tokens,
        cached: usage.cached_input_tokens,
        output: usage.output_tokens,
        estimated: usage.tokens_estimated,
    });
    Charge { tokens, micro_usd: usage.and_then(|usage| usage.micro_usd) }
}

/// Says that a person stopped it.
pub fn stopped_failure(exit: Exit) -> Failure {
    Failure::new(exit, "stopped").help("the same goal goes on where it was; what was answered is kept")
}

fn agent_failure(agent: &Agent, error: &AgentAnswerError) -> Failure {
    let message = format!("could not ask {}: {error}", show::safe(&agent.display_command()));
    match error {
        AgentAnswerError::Missing(missing) => Failure::new(Exit::NotFound, message).help(missing.help()),
        AgentAnswerError::Permissions(_) => Failure::new(Exit::Denied, message),
        AgentAnswerError::Overran(..) => {
            let failure = Failure::new(Exit::Temporary, message).help("allow more: --within 20m");
            failure.page_help("in a terminal more is allowed: planctl plan draft 'GOAL' --within 20m")
        }
        AgentAnswerError::Faulted(_)
        | AgentAnswerError::Stopped
        | AgentAnswerError::Copy(_)
        | AgentAnswerError::Io(_) => {
            Failure::new(Exit::Temporary, message).help("the same goal goes on where it was")
        }
    }
}

/// Reads what a draft or a goal may use, and holds it to the models that are asked: money needs the price of each.
pub fn budget<'m>(
    text: Option<&str>,
    models: impl IntoIterator<Item = &'m Model>,
) -> Result<Budget, Failure> {
    let Some(text) = text else { return Ok(Budget::default()) };
    let Some(budget) = budget_of(text) else {
        let failure = Failure::usage(format!("could not read the budget `{}`", show::safe(text)));
        return Err(failure
            .help("write tokens and money: --budget '200k tokens, $1'")
            .page_help("write tokens and money: 200k tokens, $1"));
    };
    if budget.time.is_some() {
        return Err(Failure::usage("this budget has no time")
            .help("an agent's time is --within")
            .page_help("write tokens and money: 200k tokens, $1"));
    }
    let one = Tokens { input: 1, output: 1, ..Tokens::default() };
    let unpriced = models.into_iter().find(|model| model.cost(one).is_none());
    if let (Some(_), Some(model)) = (budget.micro_usd, unpriced) {
        let message = format!(
            "the model {} has no price, so a budget of money can't hold it",
            show::safe(model.name())
        );
        return Err(Failure::new(Exit::Configuration, message).help("set [prices.\"MODEL\"] in planctl.toml"));
    }
    Ok(budget)
}

/// Returns money as people say it.
pub fn dollars(micro_usd: u64) -> String {
    let usd = micro_usd as f64 / 1e6;
    if micro_usd < 10_000 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}
