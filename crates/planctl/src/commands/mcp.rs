//! `planctl mcp`: serves one agent over standard input and output, by the Model Context Protocol; `install` has it started.

mod gateway;
mod install;

use planctl_harness::mended_json;
use planctl_mcp::{Scratch, serve_stdio};

use self::gateway::WorkspaceGateway;
use super::Context;
use crate::args::{McpArgs, McpCommand};
use crate::failure::{Answer, Exit, Failure};
use crate::next;

/// Does what was typed.
pub async fn run(context: Context, given: McpArgs) -> Answer {
    if let Some(McpCommand::Install(wanted)) = &given.command {
        return install::run(&context, wanted);
    }
    // Nobody types the messages of an agent.
    if context.is_interactive() {
        context.say("an agent starts this and talks to it here; Ctrl-C ends it");
        context.say(&next::line("planctl mcp install claude      or codex, gemini, opencode, vscode"));
    }
    let scratch = if given.no_planning { Scratch::Off } else { Scratch::for_this_process() };
    let served = serve_stdio(WorkspaceGateway::new(context), scratch, mended_json).await;
    served.map_err(|error| Failure::new(Exit::No, format!("could not go on with the client: {error}")))?;
    Ok(Exit::Yes)
}
