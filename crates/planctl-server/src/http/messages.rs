//! Channels on which people get messages, and the deliveries of these.

use planctl_api::Next;
use planctl_api::wire::calls::Nothing;
use planctl_api::wire::messages::{ChannelTestCall, DeliveryList};

use super::parameters::FAILED;
use super::problem::of_listed;
use super::{Answer, Call, json};

pub(super) async fn channels(call: Call) -> Answer {
    json(&call.services().await?.channels().await?)
}

pub(super) async fn test_channels(call: Call) -> Answer {
    let ChannelTestCall { workspace, channel } = call.body()?;
    let services = call.services_at(Some(workspace), None, true).await?;
    json(&services.test_channels(channel.as_deref()).await?)
}

pub(super) async fn deliveries(call: Call) -> Answer {
    let page = call.page::<DeliveryList, _>(|key| key.parse().ok())?;
    let is_failed = call.query(&FAILED) == Some("true");
    json(&call.services().await?.deliveries(is_failed, &page).await?)
}

pub(super) async fn replay(call: Call) -> Answer {
    let _: Nothing = call.body()?;
    let delivery = call.parameter_as("delivery", "the number of a delivery")?;
    let replayed = call.services().await?.replay(delivery).await;
    json(&replayed.map_err(|error| of_listed(error, Next::ListDeliveries))?)
}
