//! The way of one message to one channel, and when it is tried again.

use std::path::Path;
use std::time::Duration;

use planctl_api::wire::messages::MessageView;
use planctl_api::wire::moment;
use planctl_config::{ChannelConfig, ChannelTarget, MessageEvent, WebShape};
use planctl_engine::Timestamp;
use planctl_store::{DeliveryState, DueDelivery};
use serde_json::json;

use super::digest::digest;
use super::web::{self, Request};
use super::{SendError, hook, mail, text};
use crate::clock;
use crate::node::ServerNode;
use crate::node::services::ServiceError;

/// For how long a delivery is claimed: longer than a try may take.
pub(crate) const LEASE: Duration = Duration::from_secs(120);
/// The longest that a try may take, whatever the configuration says.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// How long a delivery waits after each failed try; after the last one it has failed.
const BACK_OFF: [u64; 8] = [5, 60, 300, 1800, 7200, 21_600, 43_200, 86_400];

/// The command that shows a message on a desktop, and the variables by which it finds it.
const ON_DESKTOP: &str = "exec notify-send --app-name=planctl -- planctl \"$PLANCTL_MESSAGE\"";
const DESKTOP_VARIABLES: [&str; 4] =
    ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/// One message on its way.
pub(super) struct Parcel<'a> {
    /// The same at each try.
    pub(super) id: String,
    pub(super) event: &'a str,
    pub(super) created_at: Timestamp,
    pub(super) message: &'a MessageView,
    pub(super) workspace: &'a Path,
}

impl ServerNode {
    /// Makes one try, and records how it ended: of one delivery, or of those that were held in quiet hours for the same channel.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn deliver(&self, together: &[DueDelivery]) -> Result<(), ServiceError> {
        let sent = self.try_to_deliver(together).await;
        for delivery in together {
            self.end_try(delivery, &sent).await?;
        }
        Ok(())
    }

    async fn end_try(
        &self,
        delivery: &DueDelivery,
        sent: &Result<String, SendError>,
    ) -> Result<(), ServiceError> {
        let (state, again_after, answer) = match sent {
            Ok(answer) => (DeliveryState::Delivered, Duration::ZERO, answer),
            Err(error) => match back_off(delivery.tries).filter(|_| !error.is_final) {
                Some(usual) => {
                    let again_after = error.again_after.unwrap_or_default().max(usual);
                    (DeliveryState::Waiting, again_after, &error.what)
                }
                None => (DeliveryState::Failed, Duration::ZERO, &error.what),
            },
        };
        self.metrics().count_delivery(
            &delivery.channel,
            if state == DeliveryState::Waiting { "again" } else { state.as_str() },
        );
        if state != DeliveryState::Delivered {
            tracing::warn!(
                delivery.id,
                channel = %delivery.channel,
                message.event = %delivery.event,
                "a message was not delivered: {answer}"
            );
        }
        Ok(self.store().end_try(delivery, state, again_after, answer).await?)
    }

    async fn try_to_deliver(&self, together: &[DueDelivery]) -> Result<String, SendError> {
        let Some(delivery) = together.first() else { return Ok(String::new()) };
        let channels = self.channels_of(&delivery.workspace_path).await;
        let channels = channels.map_err(|error| SendError::retryable(format!("could not {error}")))?;
        let Some(channel) = channels.get(&delivery.channel) else {
            return Err(SendError::permanent(
                "the channel is not configured any more, or its file is not trusted",
            ));
        };
        let read = |delivery: &DueDelivery| serde_json::from_str::<MessageView>(&delivery.body);
        let messages: Vec<MessageView> =
            together.iter().map(read).collect::<Result<_, _>>().map_err(|error| {
                SendError::permanent(format!("the stored message does not read: {error}"))
            })?;
        let Some(mut message) = digest(&messages) else { return Ok(String::new()) };
        message.link = channel.page.as_deref().and_then(|page| link(page, &message));
        let parcel = Parcel {
            id: format!("msg_{}", delivery.message.simple()),
            event: &message.event,
            created_at: delivery.created_at,
            message: &message,
            workspace: Path::new(&delivery.workspace_path),
        };
        self.send(channel, &parcel).await
    }

    /// Hands a message to a channel; returns what its receiver answered.
    pub(super) async fn send(
        &self,
        channel: &ChannelConfig,
        parcel: &Parcel<'_>,
    ) -> Result<String, SendError> {
        let timeout = channel.timeout.min(TIMEOUT_MAX);
        match &channel.to {
            ChannelTarget::Web { shape, address, secret_env, allow_private } => {
                let body = match shape {
                    WebShape::Standard => standard_webhook_body(parcel),
                    WebShape::Slack => text::slack(parcel.message),
                };
                let timestamp = clock::now().as_micros() / 1_000_000;
                let secret_env = secret_env.as_deref();
                let (shape, allow_private) = (*shape, *allow_private);
                let id = &parcel.id;
                web::send(Request { shape, address, secret_env, allow_private, timeout, id, timestamp, body })
                    .await
            }
            ChannelTarget::Mail { mail, allow_private } => {
                mail::send(mail, *allow_private, timeout, &parcel.id, parcel.message).await
            }
            ChannelTarget::Exec { command, env } => {
                self.run_hook(command, env, text::plain(parcel.message), timeout, parcel).await
            }
            ChannelTarget::Desktop => {
                let env = DESKTOP_VARIABLES.map(str::to_owned);
                self.run_hook(ON_DESKTOP, &env, text::desktop(parcel.message), timeout, parcel).await
            }
        }
    }

    async fn run_hook(
        &self,
        command: &str,
        env: &[String],
        text: String,
        timeout: Duration,
        parcel: &Parcel<'_>,
    ) -> Result<String, SendError> {
        let spawner = self.spawner().map_err(|error| SendError::retryable(format!("could not {error}")))?;
        let (directory, event) = (parcel.workspace, parcel.event);
        let hook =
            hook::Hook { command, env, directory, timeout, event, text, body: standard_webhook_body(parcel) };
        hook::run(hook, spawner).await
    }
}

/// Returns the short address that leads to what a message is about, on a page at this address.
fn link(page: &str, message: &MessageView) -> Option<String> {
    let page = page.trim_end_matches('/');
    match (&message.ask, &message.run) {
        (Some(ask), _) => Some(format!("{page}/a/{}", ask.id)),
        (None, Some(run)) => Some(format!("{page}/runs/{run}")),
        (None, None) => None,
    }
}

/// Returns the payload that Standard Webhooks recommends.
fn standard_webhook_body(parcel: &Parcel<'_>) -> String {
    let at = moment(parcel.created_at);
    json!({ "type": parcel.event, "timestamp": at, "data": parcel.message }).to_string()
}

/// Returns how long to wait after so many tries; `None` after the last.
fn back_off(tries: u32) -> Option<Duration> {
    let nth = usize::try_from(tries).ok()?.checked_sub(1)?;
    BACK_OFF.get(nth).copied().map(Duration::from_secs)
}

/// How long after an ask was opened, or after so many reminders, the next one is due.
pub(crate) fn reminder_after(reminders: u32) -> Duration {
    Duration::from_secs(match reminders {
        0 => 600,
        1 => 3600,
        _ => 86_400,
    })
}

/// The message of `notify test`.
pub(super) fn test_message(workspace: &str, channel: &str) -> MessageView {
    MessageView {
        event: MessageEvent::Test.as_str().to_owned(),
        sentence: format!("a test of the channel {channel}: no answer is needed"),
        workspace: workspace.to_owned(),
        plan: None,
        title: None,
        run: None,
        run_id: None,
        step: None,
        ask: None,
        lines: Vec::new(),
        command: None,
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_further_apart_each_time_and_end() {
        let waits: Vec<_> = (1..).map_while(back_off).collect();
        assert_eq!(waits.len(), BACK_OFF.len());
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!([0, 1, 2, 9].map(|count| reminder_after(count).as_secs()), [600, 3600, 86_400, 86_400]);
    }
}
