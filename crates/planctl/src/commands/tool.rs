//! `planctl tool`: the tools of the MCP servers in planctl.toml: listed, shown, tried.

use std::time::Duration;

use planctl_api::wire::tools::{ServerView, ServersView, ToolView};
use planctl_config::{Effects, ServerConfig};
use planctl_engine::Role;
use planctl_harness::Spawner;
use planctl_lang::did_you_mean;
use planctl_lang::tools::{Outputs, Tool, ToolList};
use planctl_server::tools::{ToolError, ToolPlace};
use planctl_tools::{Calls, FaultKind};
use serde_json::Value;

use super::Context;
use crate::args::ToolCommand;
use crate::checking::helper;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::person::must_be_human;
use crate::show::{self, BOLD, FAINT, styled};
use crate::stop::Stop;

/// The most characters of a description in a list.
const LINE_CHARACTERS_MAX: usize = 60;

/// Does what was typed after `planctl tool`.
pub async fn run(context: &Context, command: ToolCommand) -> Answer {
    must_be_human("start a server")?;
    context.format(&[Format::Human, Format::Json])?;
    let asking = Asking::new(context)?;
    match command {
        ToolCommand::Ls { server, role } => asking.of(role)?.listed(server.as_deref(), false).await,
        ToolCommand::Refresh { server } => asking.listed(server.as_deref(), true).await,
        ToolCommand::Show { server, tool, role } => asking.of(role)?.print_tool(&server, &tool).await,
        ToolCommand::Call { server, tool, arguments, within } => {
            asking.call_tool(&server, &tool, &arguments, within).await
        }
    }
}

/// Returns the tools of each server of planctl.toml, as it is kept or else as the server lists it, with the effects that are
/// declared of each; one that can't be asked is told of and left out.
pub async fn list_servers_tools(context: &Context) -> Result<Vec<(String, Vec<ToolView>)>, Failure> {
    let servers = &context.config()?.config.servers;
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let asking = Asking::new(context)?;
    let mut listed = Vec::new();
    for (name, config) in servers {
        match asking.list(name, false).await {
            Ok(list) => {
                let may = Effects::default();
                let tools = list.tools.iter().map(|tool| tool_view(name, Some(config), tool, &may));
                listed.push((name.clone(), tools.collect()));
            }
            Err(failure) => context.say(&format!("warning: {}", failure.message)),
        }
    }
    Ok(listed)
}

/// The place and the helper by which servers are asked.
struct Asking<'a> {
    context: &'a Context,
    state_dir: std::path::PathBuf,
    spawner: Spawner,
    /// The effects that calls of the role that was named may have.
    may: Effects,
}

impl<'a> Asking<'a> {
    fn new(context: &'a Context) -> Result<Asking<'a>, Failure> {
        let may = Effects::default();
        Ok(Asking { context, state_dir: context.state_dir()?, spawner: helper()?, may })
    }

    fn of(self, role: Option<String>) -> Result<Asking<'a>, Failure> {
        let Some(role) = role else { return Ok(self) };
        let roles = &self.context.config()?.config.roles;
        if !roles.contains_key(&Role::new(role.as_str())) {
            let near = did_you_mean(&role, roles.keys().map(Role::as_str));
            let help = near.map(|near| format!("did you mean {near}?"));
            let help = help.unwrap_or_else(|| format!("write [roles.{}] there", show::safe(&role)));
            let message = format!("planctl.toml has no role {:?}", show::safe(&role));
            return Err(Failure::new(Exit::NotFound, message).help(help));
        }
        let may = self.context.config()?.config.effects_of(Some(&Role::new(role)));
        Ok(Asking { may, ..self })
    }

    fn tool_place(&self) -> Result<ToolPlace<'_>, Failure> {
        let config = &self.context.config()?.config;
        Ok(ToolPlace { workspace: self.context.workspace(), state_dir: &self.state_dir, config })
    }

    async fn list(&self, server: &str, anew: bool) -> Result<ToolList, Failure> {
        let mut stop = Stop::listen()?;
        let stopped = async {
            stop.wait_for_signal().await;
        };
        let list = self.tool_place()?.list(server, anew, &self.spawner, stopped).await;
        list.map_err(|error| self.failure(server, &error))
    }

    async fn listed(&self, one: Option<&str>, anew: bool) -> Answer {
        let config = &self.context.config()?.config;
        let names: Vec<&str> = match one {
            Some(name) => vec![name],
            None => config.servers.keys().map(String::as_str).collect(),
        };
        let mut servers = Vec::new();
        for name in names {
            let config = config.servers.get(name);
            match self.list(name, anew).await {
                Ok(list) => servers.push(server_view(name, config, Ok(&list), &self.may)),
                Err(failure) if one.is_some() => return Err(failure),
                Err(failure) => {
                    servers.push(server_view(name, config, Err(&failure.message), &self.may));
                }
            }
        }
        let is_whole = servers.iter().all(|server| server.problem.is_none());
        if self.context.is_json()? {
            show::print_json(&ServersView { servers })?;
        } else {
            show::print(&table(&servers))?;
        }
        Ok(if is_whole { Exit::Yes } else { Exit::No })
    }

    async fn print_tool(&self, server: &str, tool: &str) -> Answer {
        let list = self.list(server, false).await?;
        let Some(found) = list.tool(tool) else { return Err(no_tool(server, tool, &list)) };
        let config = self.context.config()?.config.servers.get(server);
        let view = tool_view(server, config, found, &self.may);
        if self.context.is_json()? {
            show::print_json(&view)?;
            return Ok(Exit::Yes);
        }
        let mut text = format!("{} of {}\n", styled(BOLD, &show::safe(&view.name)), show::safe(server));
        text.push_str(&format!("{}\n", show::safe_block(&view.description)));
        text.push_str(&format!("effects: {}\n", effects_words(&view)));
        if let Some(why) = &view.asks {
            text.push_str(&format!("a person is asked before each use: {}\n", show::safe(why)));
        }
        if !view.hints.is_empty() {
            let hints = format!("its server says: {} (no decision rests on it)\n", view.hints.join(", "));
            text.push_str(&styled(FAINT, &hints));
        }
        let schema = serde_json::to_string_pretty(&view.input).unwrap_or_default();
        text.push_str(&format!("arguments:\n{}\n", show::safe_block(&schema)));
        show::print(&text)?;
        Ok(Exit::Yes)
    }

    async fn call_tool(&self, server: &str, tool: &str, arguments: &str, within: Duration) -> Answer {
        let arguments: Value = serde_json::from_str(arguments).map_err(|error| {
            Failure::usage(format!("the arguments are not JSON: {error}")).help("write a JSON object: '{}'")
        })?;
        let calls = Calls {
            known: None,
            tool: tool.to_owned(),
            arguments,
            for_each: None,
            at_once: 1,
            outputs: Outputs::new(),
        };
        let mut stop = Stop::listen()?;
        let stopped = async {
            stop.wait_for_signal().await;
        };
        let result = self.tool_place()?.call(server, calls, within, &self.spawner, stopped).await;
        let result = result.map_err(|error| self.failure(server, &error))?;
        show::print(&format!("{}\n", show::safe_block(&result)))?;
        Ok(Exit::Yes)
    }

    fn failure(&self, server: &str, error: &ToolError) -> Failure {
        let said = show::safe(&error.to_string());
        match error {
            ToolError::NoServer(_) => {
                let known = self.context.config().ok().map(|loaded| &loaded.config.servers);
                let names = known.iter().flat_map(|servers| servers.keys().map(String::as_str));
                let near = did_you_mean(server, names).map(|near| format!("did you mean {near}?"));
                let help = near.unwrap_or_else(|| format!("write [servers.{}] there", show::safe(server)));
                Failure::new(Exit::NotFound, said).help(help)
            }
            ToolError::NoVariable(name) => Failure::new(Exit::No, said).help(format!("export {name}=…")),
            ToolError::Failed { code, .. } => {
                let kind = FaultKind::ALL.into_iter().find(|kind| Some(i32::from(kind.exit_code())) == *code);
                let exit = kind.map_or(Exit::No, exit_of);
                Failure::new(exit, format!("could not use {}: {said}", show::safe(server)))
            }
            ToolError::Unrunnable(_) | ToolError::Isolation(_) | ToolError::Kept(_) => {
                Failure::new(Exit::No, format!("could not use {}: {said}", show::safe(server)))
            }
        }
    }
}

/// The exit code of a fault, which is the same for a call that is a step of a plan.
fn exit_of(kind: FaultKind) -> Exit {
    match kind {
        FaultKind::Tool => Exit::No,
        FaultKind::Arguments => Exit::Data,
        FaultKind::Network => Exit::Unavailable,
        FaultKind::RateLimit => Exit::Temporary,
        FaultKind::Protocol => Exit::Protocol,
        FaultKind::Auth => Exit::Denied,
        FaultKind::Changed => Exit::Configuration,
    }
}

fn no_tool(server: &str, tool: &str, list: &ToolList) -> Failure {
    let near = did_you_mean(tool, list.tools.iter().map(|tool| tool.name.as_str()));
    let failure =
        Failure::new(Exit::NotFound, format!("{} has no tool {:?}", show::safe(server), show::safe(tool)));
    match near {
        Some(near) => failure.help(format!("did you mean {}?", show::safe(near))),
        None => failure.next(format!("planctl tool ls {}", show::safe(server))),
    }
}

fn server_view(
    name: &str,
    config: Option<&ServerConfig>,
    list: Result<&ToolList, &str>,
    may: &Effects,
) -> ServerView {
    let known = list.ok();
    let tools = known.iter().flat_map(|list| &list.tools);
    ServerView {
        name: name.to_owned(),
        server: known.map(|list| list.server.clone()),
        version: known.map(|list| list.version.clone()),
        problem: list.err().map(str::to_owned),
        tools: tools.map(|tool| tool_view(name, config, tool, may)).collect(),
    }
}

fn tool_view(server: &str, config: Option<&ServerConfig>, tool: &Tool, may: &Effects) -> ToolView {
    let effects = config.and_then(|config| config.effects_of(&tool.name));
    ToolView {
        server: server.to_owned(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        effects: effects.map(|effects| effects.iter().cloned().collect()),
        asks: may.asks(effects),
        hints: tool.hints.clone(),
        input: tool.input.clone(),
    }
}

fn effects_words(view: &ToolView) -> String {
    let effects = match &view.effects {
        Some(effects) if effects.is_empty() => "none".to_owned(),
        Some(effects) => effects.join(", "),
        None => "not declared".to_owned(),
    };
    match &view.asks {
        Some(_) => format!("{effects} (a person is asked)"),
        None => effects,
    }
}

fn table(servers: &[ServerView]) -> String {
    if servers.is_empty() {
        return "planctl.toml has no [servers.NAME], such as:\n\n[servers.github]\ncommand = [\"github-mcp-server\", \"stdio\"]\n"
            .to_owned();
    }
    let mut text = String::new();
    for server in servers {
        let name = styled(BOLD, &show::safe(&server.name));
        if let Some(problem) = &server.problem {
            text.push_str(&format!("{name}: {}\n", show::safe(problem)));
            continue;
        }
        let version = format!(
            "{} {}",
            server.server.as_deref().unwrap_or_default(),
            server.version.as_deref().unwrap_or_default()
        );
        text.push_str(&format!("{name} {}\n", styled(FAINT, &show::safe(version.trim()))));
        let rows = server.tools.iter().map(|tool| {
            let first = tool.description.lines().next().unwrap_or_default();
            vec![
                show::safe(&tool.name),
                effects_words(tool),
                show::safe(&show::brief(first, LINE_CHARACTERS_MAX)),
            ]
        });
        text.push_str(&show::table(&["TOOL", "EFFECTS", "WHAT"], rows.collect()));
    }
    text
}
