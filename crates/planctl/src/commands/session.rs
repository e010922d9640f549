//! `planctl session`: the scratch list that agents keep by the planning tools, as far as a person has to do with it.

use planctl_mcp::planning;

use super::Context;
use crate::args::SessionCommand;
use crate::failure::{Answer, Exit};
use crate::flags::Format;
use crate::show;

/// Does what was asked about sessions.
pub fn run(context: &Context, command: &SessionCommand) -> Answer {
    context.format(&[Format::Human])?;
    let SessionCommand::Prompt { strategy } = command;
    show::print(&planning::prompt((*strategy).into()))?;
    Ok(Exit::Yes)
}
