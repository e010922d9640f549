//! The commands of messages to people.

use clap::Subcommand;

/// The commands of channels and deliveries.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl notify test                  send a test message on each channel of this project
  planctl notify deliveries --failed   what was not delivered, and why
  planctl notify replay 12             send it again

Channels are [notify.NAME] in planctl.toml; a daemon sends what happens.")]
pub enum NotifyCommand {
    /// Lists the channels, and what keeps each from working
    #[command(visible_alias = "list")]
    Ls,
    /// Sends a test message at once, and keeps no record of it
    Test {
        /// The channel [default: all]
        channel: Option<String>,
    },
    /// Lists what became of messages, newest first
    Deliveries {
        /// Only those that failed, or are being retried
        #[arg(long)]
        failed: bool,
        /// How many at most
        #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
    },
    /// Delivers a message again, under the same id
    Replay {
        /// The delivery's number, as `notify deliveries` lists it
        delivery: u64,
    },
}
