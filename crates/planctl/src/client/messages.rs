//! Calls about messages: to people by channels, and between steps by topics.

use planctl_api::wire::calls::{NoteCall, Nothing};
use planctl_api::wire::messages::{ChannelList, ChannelTestCall, ChannelTests, DeliveryList, DeliveryView};
use planctl_api::wire::{TopicList, TopicView};
use planctl_server::check::Checked;

use super::Client;
use crate::api;
use crate::failure::Failure;

impl Client {
    /// Lists the channels of this workspace.
    pub async fn channels(&self) -> Result<ChannelList, Failure> {
        self.api.get("/v1/channels", &[("workspace", self.workspace.as_str())]).await
    }

    /// Sends a test message on one channel of this workspace, or on all.
    pub async fn test_channels(&self, channel: Option<String>) -> Result<ChannelTests, Failure> {
        let call = ChannelTestCall { workspace: (&self.workspace).into(), channel };
        self.api.post("/v1/channels/test", &[], &call).await
    }

    /// Lists deliveries of this workspace, the newest first: at most so many.
    pub async fn deliveries(&self, is_failed: bool, limit: u16) -> Result<DeliveryList, Failure> {
        let limit = limit.to_string();
        let query = [
            ("workspace", self.workspace.as_str()),
            ("failed", if is_failed { "true" } else { "false" }),
            ("limit", limit.as_str()),
        ];
        self.api.get("/v1/deliveries", &query).await
    }

    /// Has a message delivered once more.
    pub async fn replay(&self, delivery: u64) -> Result<DeliveryView, Failure> {
        self.api.post(&format!("/v1/deliveries/{delivery}/replay"), &[], &Nothing {}).await
    }

    /// Adds a note to a topic.
    pub async fn post_note(&self, topic: &str, text: &str) -> Result<TopicView, Failure> {
        self.api.post(&topic_path(topic), &[], &NoteCall { text: text.to_owned() }).await
    }

    /// Returns all topics.
    pub async fn topics(&self) -> Result<TopicList, Failure> {
        self.api.get_all_pages("/v1/topics", &[]).await
    }

    /// Returns at most so many notes of a topic after number `since`.
    pub async fn topic(&self, topic: &str, since: u64, limit: usize) -> Result<TopicView, Failure> {
        let (since, limit) = (since.to_string(), limit.to_string());
        let query = [("since", since.as_str()), ("limit", limit.as_str())];
        self.api.get(&topic_path(topic), &query).await
    }

    /// Draws what is to be said about a plan's topics, which verification without a database can't know.
    pub async fn topic_findings(&self, checked: &Checked) -> Result<String, Failure> {
        if !names_topics(checked) {
            return Ok(String::new());
        }
        let topics: Vec<String> = self.topics().await?.topics.into_iter().map(|topic| topic.topic).collect();
        let (source, workflow) = (&checked.source, &checked.verification.workflow);
        let found = planctl_lang::unknown_topics(source, workflow, &topics, &self.config.verify);
        Ok(found.iter().map(|finding| finding.render(source, true) + "\n").collect())
    }
}

fn topic_path(topic: &str) -> String {
    format!("/v1/topics/{}", api::path_segment(topic))
}

fn names_topics(checked: &Checked) -> bool {
    let steps = checked.verification.workflow.steps();
    let mut subscriptions = steps.iter().flat_map(|step| step.attributes.subscriptions.entries());
    subscriptions.any(|subscription| matches!(subscription.value, planctl_engine::Subscription::Topic { .. }))
}
