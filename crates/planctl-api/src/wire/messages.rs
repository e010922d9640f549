//! Messages to people, their channels and deliveries, as JSON says them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnswerView, StepName};

/// A message to people: the `data` of a webhook, and the input of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MessageView {
    /// The event, as `approval.opened`.
    pub event: String,
    /// It in one sentence.
    pub sentence: String,
    /// The workspace.
    pub workspace: String,
    /// The plan's path in the workspace.
    pub plan: Option<String>,
    /// The plan's title.
    pub title: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The run's id.
    pub run_id: Option<String>,
    /// The step that it is about.
    pub step: Option<StepName>,
    /// The ask that it is about.
    pub ask: Option<MessageAsk>,
    /// The last lines of what failed.
    pub lines: Vec<String>,
    /// The command to type to see more, and to decide.
    pub command: Option<String>,
    /// The page that shows more, where the channel names the daemon's; it decides nothing by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// The ask that a message is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MessageAsk {
    /// Its number.
    pub id: u64,
    /// Its kind.
    pub kind: String,
    /// The answers that it takes.
    pub answers: Vec<String>,
    /// The answer that the plan declares as the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
    /// When it was opened, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub opened_at: String,
    /// How many reminders there were, with this one.
    pub reminders: u32,
    /// How it was answered; null while it is open, and where it was taken back.
    pub answer: Option<AnswerView>,
}

/// The answer of `notify ls --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChannelList {
    /// The channels of the workspace, by name.
    pub channels: Vec<ChannelView>,
}

/// A channel, without its secrets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChannelView {
    /// Its name.
    pub name: String,
    /// Where it leads: webhook, slack, smtp, desktop or exec.
    pub to: String,
    /// The host, the command, or the variable that holds the address.
    pub place: String,
    /// The events that it carries.
    pub on: Vec<String>,
    /// The reason that keeps it from working, as a variable that is not set.
    pub trouble: Option<String>,
}

/// How the try of one channel ended: the answer of `notify test --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChannelTests {
    /// The channels that were tried.
    pub tests: Vec<ChannelTest>,
}

/// How the try of one channel ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ChannelTest {
    /// Its name.
    pub channel: String,
    /// Says that it took the message.
    pub works: bool,
    /// The answer of the receiver, or what went wrong.
    pub answer: String,
}

/// The answer of `notify deliveries --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeliveryList {
    /// The deliveries, the newest first.
    pub deliveries: Vec<DeliveryView>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The way of one message to one channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeliveryView {
    /// Its number.
    pub id: u64,
    /// The message's id, the `webhook-id` of each try.
    pub message: String,
    /// The event.
    pub event: String,
    /// The channel.
    pub channel: String,
    /// The run.
    pub run: Option<String>,
    /// The number of the ask.
    pub ask: Option<u64>,
    /// The workspace.
    pub workspace: String,
    /// Its state: waiting, delivered, failed or superseded.
    pub state: String,
    /// How often it was tried.
    pub tries: u32,
    /// The outcome of the newest try.
    pub answer: Option<String>,
    /// When that was, RFC 3339.
    pub tried_at: Option<String>,
    /// When it is tried next, while it waits.
    pub due_at: Option<String>,
    /// When the message was written, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

/// The body of `POST /v1/channels/test`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelTestCall {
    /// The workspace whose channels are meant.
    pub workspace: std::path::PathBuf,
    /// The channel; all of the workspace where it is left out.
    #[serde(default)]
    pub channel: Option<String>,
}
