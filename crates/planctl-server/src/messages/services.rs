//! Channels and deliveries as the API shows them, tests and replays.

use planctl_api::wire::messages::{
    ChannelList, ChannelTest, ChannelTests, ChannelView, DeliveryList, DeliveryView,
};
use planctl_api::wire::{Paged, moment};
use planctl_config::{ChannelConfig, ChannelTarget, MessageEvent, WebAddress};
use planctl_store::{DeliveryRow, Page, StoreError};

use super::deliver::{Parcel, test_message};
use super::{SendError, mail, secret, web};
use crate::clock;
use crate::node::services::{ServiceError, Services};

impl Services {
    /// Lists the channels of this workspace.
    ///
    /// # Errors
    ///
    /// Where its configuration does not read.
    pub(crate) async fn channels(&self) -> Result<ChannelList, ServiceError> {
        let channels = self.server_node.channels_of(&self.own_folder()?.to_string_lossy()).await?;
        let mut views = Vec::new();
        for (name, channel) in &channels {
            let mut view = view(name, channel);
            if let (Some(quiet), None) = (&channel.quiet, &view.trouble)
                && !self.store.knows_time_zone(&quiet.zone).await?
            {
                view.trouble = Some(format!("there is no time zone {}, so it is never quiet", quiet.zone));
            }
            views.push(view);
        }
        Ok(ChannelList { channels: views })
    }

    /// Sends a test message on one channel of this workspace, or on all.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where there is no such channel; a channel that does not work is part of the answer.
    pub(crate) async fn test_channels(&self, wanted: Option<&str>) -> Result<ChannelTests, ServiceError> {
        let workspace = self.own_folder()?;
        let channels = self.server_node.channels_of(&workspace.to_string_lossy()).await?;
        if let Some(name) = wanted.filter(|name| !channels.contains_key(*name)) {
            return Err(ServiceError::NotFound { what: format!("the channel {name:?}") });
        }
        let mut tests = Vec::new();
        for (name, channel) in channels.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name))
        {
            let message = test_message(&workspace.to_string_lossy(), name);
            let created_at = clock::now();
            let parcel = Parcel {
                id: format!("msg_test_{:x}", created_at.as_micros()),
                event: MessageEvent::Test.as_str(),
                created_at,
                message: &message,
                workspace,
            };
            let sent = self.server_node.send(channel, &parcel).await;
            let (works, answer) = match sent {
                Ok(answer) => (true, answer),
                Err(error) => (false, error.what),
            };
            tests.push(ChannelTest { channel: name.clone(), works, answer });
        }
        Ok(ChannelTests { tests })
    }

    /// Lists deliveries of this workspace, or of all, the newest first.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn deliveries(
        &self,
        is_failed: bool,
        page: &Page<i64>,
    ) -> Result<DeliveryList, ServiceError> {
        let rows = self.store.deliveries(self.workspace, is_failed, page).await?;
        let next = page.next(&rows, |row| row.id).map(DeliveryList::cursor);
        Ok(DeliveryList { deliveries: rows.into_iter().map(delivery_view).collect(), next })
    }

    /// Has a message delivered once more.
    ///
    /// # Errors
    ///
    /// Those of the store: there may be no such delivery.
    pub(crate) async fn replay(&self, delivery: u64) -> Result<DeliveryView, StoreError> {
        let id = i64::try_from(delivery).unwrap_or(i64::MAX);
        Ok(delivery_view(self.store.replay(id).await?))
    }
}

fn view(name: &str, channel: &ChannelConfig) -> ChannelView {
    let (place, trouble) = match &channel.to {
        ChannelTarget::Web { address, secret_env, allow_private, .. } => {
            let place = match address {
                WebAddress::Given(url) => host_of(url),
                WebAddress::Variable(variable) => format!("the address in {variable}"),
            };
            (place, web::usable_address(address, *allow_private).and(readable(secret_env.as_deref())).err())
        }
        ChannelTarget::Mail { mail, allow_private } => {
            let place = format!("{} by {}", mail.recipients.join(" "), mail.server);
            let password = readable(mail.password_env.as_deref());
            (place, mail::usable_host(mail, *allow_private).and(password).err())
        }
        ChannelTarget::Desktop => ("notify-send".to_owned(), None),
        ChannelTarget::Exec { command, .. } => (planctl_lang::masked(command).into_owned(), None),
    };
    ChannelView {
        name: name.to_owned(),
        to: channel.to.as_str().to_owned(),
        place,
        on: channel.on.iter().map(|event| event.as_str().to_owned()).collect(),
        trouble: trouble.map(|error| error.what),
    }
}

/// Refuses a variable that has no secret.
fn readable(variable: Option<&str>) -> Result<(), SendError> {
    variable.map_or(Ok(()), |variable| secret(variable).map(drop))
}

/// Returns the host alone: the rest of an address may be a secret.
fn host_of(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "an address that does not read".to_owned())
}

fn delivery_view(row: DeliveryRow) -> DeliveryView {
    DeliveryView {
        id: row.id.unsigned_abs(),
        message: format!("msg_{}", row.message.simple()),
        event: row.event,
        channel: row.channel,
        run: row.run_name,
        ask: row.ask.map(i64::unsigned_abs),
        workspace: row.workspace_path,
        state: row.state.as_str().to_owned(),
        tries: row.tries,
        answer: row.answer,
        tried_at: row.tried_at.map(moment),
        due_at: row.due_at.map(moment),
        created_at: moment(row.created_at),
    }
}
