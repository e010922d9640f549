//! Messages to people: what is said of asks and runs, on which channels, and how each gets there.
//!
//! A message is written once, with a delivery for each channel that wants it (`planctl_store::messages`); a loop of the daemon
//! does both. A delivery reads the workspace's configuration anew, so that what a person trusts at that moment decides where
//! it goes. A channel may get a message twice, where planctl dies between sending and recording it; both have one id.

mod compose;
mod deliver;
mod digest;
mod hook;
mod mail;
mod services;
mod target;
mod text;
mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use planctl_config::{ChannelConfig, MessageEvent};
use planctl_store::{QuietHours, ToChannel};

use crate::node::ServerNode;
use crate::node::services::ServiceError;
pub(crate) use compose::Composer;
pub(crate) use deliver::LEASE;

/// Why a channel did not take a message.
#[derive(Debug)]
pub(crate) struct SendError {
    /// The reason that a person reads in the list of deliveries; never an address or a secret.
    what: String,
    /// Says that another try would meet the same.
    is_final: bool,
    /// How long the receiver wants to be left alone.
    again_after: Option<Duration>,
}

impl SendError {
    fn retryable(what: impl Into<String>) -> SendError {
        SendError { what: what.into(), is_final: false, again_after: None }
    }

    fn permanent(what: impl Into<String>) -> SendError {
        SendError { what: what.into(), is_final: true, again_after: None }
    }
}

impl ServerNode {
    /// Reads the channels of a workspace.
    pub(crate) async fn channels_of(
        &self,
        workspace: &str,
    ) -> Result<BTreeMap<String, ChannelConfig>, ServiceError> {
        Ok(self.config_there(PathBuf::from(workspace)).await?.channels)
    }
}

/// Returns the channels that want to hear of an event, and the hours in which each of them is quiet about it.
pub(crate) fn channels_wanting(
    channels: &BTreeMap<String, ChannelConfig>,
    event: MessageEvent,
) -> Vec<ToChannel> {
    let wanting = channels.iter().filter(|(_, channel)| channel.on.contains(&event));
    let to_channel = |(name, channel): (&String, &ChannelConfig)| ToChannel {
        name: name.clone(),
        quiet: channel.quiet.as_ref().filter(|quiet| !quiet.urgent.contains(&event)).map(|quiet| {
            QuietHours {
                zone: quiet.zone.clone(),
                begin: quiet.begin.to_string(),
                end: quiet.end.to_string(),
            }
        }),
    };
    wanting.map(to_channel).collect()
}

/// Returns the value of a variable that the configuration names.
fn secret(variable: &str) -> Result<String, SendError> {
    let value = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
    value.map(|value| value.trim().to_owned()).ok_or_else(|| {
        SendError::retryable(format!("the variable {variable} is not set where the daemon runs"))
    })
}
