//! Drafts for the page: what `plan draft` does at a terminal, begun by a person in a browser.

use std::path::Path;

use planctl_api::wire::draft::DraftView;
use planctl_api::wire::drafting::DraftingCall;
use planctl_config::{Agent, Config};
use planctl_server::{DraftOrder, Drafts, Undrafted};
use tokio::runtime::Handle;

use super::database::DraftDatabase;
use super::{Drafted, Drafting, writer};
use crate::amounts::{parse_time, plan_budget};
use crate::args::{DRAFT_ROUNDS, DRAFT_WITHIN, DraftArgs};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::stop::Stop;

/// The name of the text that a person pasted, for the plan and its requirements.
const SOURCE: &str = "the text on the page";

/// Drafts as the daemon's own command line does.
pub struct PageDrafts(pub Context);

impl Drafts for PageDrafts {
    fn writers(&self, workspace: &Path) -> Result<Vec<String>, Undrafted> {
        let named =
            |context: &Context| -> Result<Vec<String>, Failure> { Ok(writers(&context.config()?.config)) };
        self.0.in_workspace(workspace).and_then(|context| named(&context)).map_err(undrafted)
    }

    fn draft(&self, order: DraftOrder) -> Result<DraftView, Undrafted> {
        let DraftOrder { workspace, call, by, says, stop } = order;
        let drafted = Handle::current().block_on(async {
            let context = self.0.for_page(&workspace, &by, says)?;
            draft(&context, &call, Stop::when(stop)).await
        });
        match drafted {
            // A draft with open questions waits for a person, and is written.
            Ok(Drafted { view, ended: Ok(_), .. }) => Ok(view),
            Ok(Drafted { view, ended: Err(failure), .. }) => {
                Err(Undrafted { last: Some(Box::new(view)), ..undrafted(failure) })
            }
            Err(failure) => Err(undrafted(failure)),
        }
    }
}

async fn draft(context: &Context, call: &DraftingCall, mut stop: Stop) -> Result<Drafted, Failure> {
    let config = &context.config()?.config;
    if let Some(writer) = call.writer.as_ref().filter(|writer| !writers(config).contains(writer)) {
        return Err(Failure::new(
            Exit::Configuration,
            format!("no {writer} writes drafts in this workspace"),
        )
        .help("name a model in [models], or the agent of a role, in planctl.toml"));
    }
    let args = arguments(call)?;
    let database = DraftDatabase::of(context);
    let source = call.source.clone().map(|text| (SOURCE.to_owned(), text));
    let mut drafting = Drafting::begin(&database, &args, source).await?;
    drafting.folder = context.workspace().to_owned();
    drafting.run_conversation(&mut stop).await
}

/// Names those who may write a draft that a browser asks for: what the configuration has, and agents that planctl knows. A command of
/// the browser's own is never started.
fn writers(config: &Config) -> Vec<String> {
    let agents = config.roles.values().filter_map(|role| role.agent.as_ref());
    let agents = agents.filter(|agent| writer::checked(agent).is_ok());
    let mut agents: Vec<String> = agents.map(|agent| format!("agent {agent}")).collect();
    agents.sort_unstable();
    agents.dedup();
    let mut named: Vec<String> = writer::writers(config).collect();
    agents.retain(|agent| !named.contains(agent));
    named.extend(agents);
    named
}

fn arguments(call: &DraftingCall) -> Result<DraftArgs, Failure> {
    let named = |kind: &str| call.writer.as_deref().and_then(|writer| writer.strip_prefix(kind));
    let agent = named("agent ").map(Agent::parse).transpose().map_err(Failure::usage)?;
    let plan_budget = call.plan_budget.as_deref().map(plan_budget).transpose().map_err(Failure::usage)?;
    Ok(DraftArgs {
        goal: Some(call.goal.clone()),
        from: None,
        agent,
        model: named("model ").map(str::to_owned),
        reviewer: None,
        out: None,
        budget: call.budget.clone(),
        plan_budget,
        rounds: DRAFT_ROUNDS,
        within: parse_time(DRAFT_WITHIN).map_err(Failure::usage)?,
        send: None,
        hint: call.hint.clone(),
        repair: None,
        approve: false,
        answer: Vec::new(),
        without: Vec::new(),
        again: call.again,
    })
}

/// Says to a person at the page why there is no draft: how to mend that there, else in a terminal.
fn undrafted(failure: Failure) -> Undrafted {
    let in_terminal = failure.next.map(|command| format!("in a terminal: {command}"));
    let help: Vec<String> = failure.help.into_iter().chain(in_terminal).collect();
    let help = Some(help.join("; ")).filter(|help| !help.is_empty());
    Undrafted {
        waits: failure.exit == Exit::Waiting,
        message: failure.message,
        help: failure.page_help.or(help),
        last: None,
    }
}
