//! Says what a decision recorded.

use planctl_api::wire::Decided;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::next;
use crate::show::{self, BOLD, styled};

/// Says what was recorded, by whom, and what follows.
pub fn print_recorded(context: &Context, decided: &Decided, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return show::print_json(decided);
    }
    context.say(&recorded_word(decided));
    if let Some(next) = &decided.next {
        let words = next::words_in(next, decided.workspace.as_deref());
        context.say(&format!("{} {}", styled(BOLD, "next:"), show::safe(&words)));
    }
    Ok(())
}

/// Says what was recorded, and by whom.
pub fn recorded_word(decided: &Decided) -> String {
    let repeated = if decided.repeated { " (already recorded)" } else { "" };
    let (decision, by) = (show::safe(&decided.decision), show::safe(&decided.by));
    let Some(voted) = &decided.voted else { return format!("recorded: {decision} by {by}{repeated}") };
    let more = voted.needed.saturating_sub(voted.have);
    let are = if more == 1 { "is" } else { "are" };
    format!(
        "recorded: {by} votes for {decision}{repeated}: {} of {} (rule {}), {more} more {are} needed",
        voted.have,
        voted.needed,
        show::safe(&voted.rule)
    )
}

/// Returns the code with which a recorded decision ends: where more votes are needed, a person has to answer.
pub fn recorded_exit(decided: &Decided) -> Exit {
    if decided.voted.is_some() { Exit::Waiting } else { Exit::Yes }
}
