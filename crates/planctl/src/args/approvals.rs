//! The arguments of `planctl approvals`: asks, and their answers.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use planctl_engine::AskKind;

use super::plan::EditArgs;
use crate::amounts::{parse_cost, parse_time, parse_tokens};
use crate::completing;

/// Returns the kinds of asks; those that are categories of approvals elsewhere have their names, too.
fn kinds() -> impl Iterator<Item = PossibleValue> {
    AskKind::ALL.into_iter().map(|kind| {
        let value = PossibleValue::new(kind.as_str());
        match kind {
            AskKind::Effect => value.alias("EffectApproval"),
            AskKind::Prompt => value.alias("LlmPromptApproval"),
            AskKind::Synthesis => value.alias("SynthesisApproval"),
            AskKind::Plan
            | AskKind::Escalation
            | AskKind::Budget
            | AskKind::Question
            | AskKind::Choice
            | AskKind::Insertion
            | AskKind::Day => value,
        }
    })
}

fn kind_named(typed: String) -> String {
    let meant = kinds().find(|kind| kind.matches(&typed, false));
    meant.map_or(typed, |kind| kind.get_name().to_owned())
}

/// Which asks to list.
#[derive(Args, Clone, Debug, Default)]
pub struct AskFilter {
    /// Only asks of this run
    #[arg(long, add = completing::run())]
    pub run: Option<String>,
    /// Only asks of this kind
    #[arg(long, visible_alias = "category", value_parser = PossibleValuesParser::new(kinds()).map(kind_named))]
    pub kind: Option<String>,
}

/// The commands of asks. Where no ask is named, the only one that is open is meant.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl approvals                                    lists what waits for you
  planctl approvals show                               the only ask that waits, in full
  planctl approvals retry 17 --note 'the limit is inclusive'
  planctl approvals raise 19 --cost 2.00 --tokens 100k

Without a number, the only open ask of this folder is meant.")]
pub enum ApprovalsCommand {
    /// Lists what waits for a person
    #[command(visible_alias = "list")]
    Ls(AskFilter),
    /// Shows one ask with what you need to decide it
    Show {
        /// The number of the ask [default: the only open one]
        #[arg(add = completing::ask())]
        id: Option<u64>,
    },
    /// Opens the plan of a run in your editor ($VISUAL, $EDITOR); what you save and approve is what the run goes on with
    #[command(before_help = "Examples:
  planctl approvals edit 17            change what is left; steps that passed stay as they are
  EDITOR='code -w' planctl approvals edit 17")]
    Edit(EditArgs),
    /// Approves plans; or adds the step that a worker proposes to its plan
    Approve {
        /// The numbers of the asks [default: the only open one]
        #[arg(add = completing::ask())]
        ids: Vec<u64>,
        /// Why
        #[arg(long)]
        note: Option<String>,
        /// Accept this protected file as it is, although it differs from what was approved last
        #[arg(long, value_name = "FILE[@DIGEST]")]
        accept_changed: Vec<String>,
    },
    /// Rejects plans, or the step that a worker proposes
    Reject(Noted),
    /// Tries the step once more, with your note in its prompt
    Retry(Noted),
    /// Accepts changed protected files, for this step only; its contract then decides
    Allow {
        /// The number of the ask, and which of its files [default: the only open one, and all files]
        #[arg(value_name = "ID|FILE", add = completing::ask())]
        what: Vec<String>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Puts the approved copies of protected files back, and tries the step once more
    Restore(Noted),
    /// Leaves the step out
    Skip(Noted),
    /// Counts the step as met, and shows it as waived
    Waive(Noted),
    /// Answers a worker's question
    Answer {
        /// The number of the ask [default: the only open one]
        #[arg(add = completing::ask())]
        id: Option<u64>,
        /// The answer
        #[arg(long, visible_alias = "text")]
        note: String,
    },
    /// Chooses what the plan asks: one of the options, or any text where there are none
    #[command(allow_missing_positional = true)]
    Choose {
        /// The number of the ask [default: the only open one]
        #[arg(add = completing::ask())]
        id: Option<u64>,
        /// The option
        #[arg(required = true)]
        option: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Gives the step to another role and tries once more
    #[command(allow_missing_positional = true)]
    Reassign {
        /// The number of the ask [default: the only open one]
        #[arg(add = completing::ask())]
        id: Option<u64>,
        /// The role
        #[arg(required = true, add = completing::role())]
        role: String,
        /// Words for the worker
        #[arg(long)]
        note: Option<String>,
    },
    /// Adds to the budget
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Raise {
        /// The number of the ask [default: the only open one]
        #[arg(add = completing::ask())]
        id: Option<u64>,
        /// Tokens to add: 100k
        #[arg(long, group = "what", value_parser = parse_tokens, value_name = "N")]
        tokens: Option<u64>,
        /// US dollars to add: 2.00
        #[arg(long, group = "what", value_parser = parse_cost, value_name = "USD")]
        cost: Option<u64>,
        /// Time to add: 10m
        #[arg(long, group = "what", value_parser = parse_time, value_name = "DUR")]
        time: Option<std::time::Duration>,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Ends the run for good, as `planctl cancel` does
    Cancel(Noted),
    /// Pauses the run until another revision of its plan is approved
    Revise(Noted),
}

/// Asks and words about them.
#[derive(Args, Clone, Debug)]
pub struct Noted {
    /// The numbers of the asks [default: the only open one]
    #[arg(add = completing::ask())]
    pub ids: Vec<u64>,
    /// Why, or words for the worker
    #[arg(long)]
    pub note: Option<String>,
}
