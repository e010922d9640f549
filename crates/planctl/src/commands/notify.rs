//! `planctl notify`: the channels on which people get messages, and what became of each message.

use planctl_api::wire::messages::{ChannelTests, ChannelView, DeliveryView};
use planctl_config::MessageEvent;

use super::Context;
use crate::args::NotifyCommand;
use crate::client::{self, Client};
use crate::failure::{Answer, Exit};
use crate::show;

/// Does what was asked about messages.
pub async fn run(context: &Context, command: NotifyCommand) -> Answer {
    match command {
        NotifyCommand::Ls => list(context).await,
        NotifyCommand::Test { channel } => test(context, channel).await,
        NotifyCommand::Deliveries { failed, limit } => deliveries(context, failed, limit).await,
        NotifyCommand::Replay { delivery } => replay(context, delivery).await,
    }
}

async fn list(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let list = Client::open(context).await?.channels().await?;
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    let row = |channel: &ChannelView| {
        let trouble = channel.trouble.clone().unwrap_or_default();
        let on = match channel.on.len() == MessageEvent::ALL.len() {
            true => "all".to_owned(),
            false => channel.on.join(" "),
        };
        vec![channel.name.clone(), channel.to.clone(), channel.place.clone(), on, trouble]
    };
    let rows = list.channels.iter().map(row).collect();
    let table = || show::table(&["CHANNEL", "TO", "PLACE", "ON", "TROUBLE"], rows);
    show::print(&if list.channels.is_empty() { no_channels().to_owned() } else { table() })?;
    Ok(Exit::Yes)
}

fn no_channels() -> &'static str {
    "no channels: [notify.NAME] in planctl.toml sets one up\n"
}

async fn test(context: &Context, channel: Option<String>) -> Answer {
    let is_json = context.is_json()?;
    let tests = Client::open(context).await?.test_channels(channel).await;
    let ChannelTests { tests } = tests.map_err(|failure| failure.or_list("planctl notify ls"))?;
    let exit = match &tests[..] {
        [] => Exit::Nothing,
        tests if tests.iter().all(|test| test.works) => Exit::Yes,
        _ => Exit::No,
    };
    if is_json {
        show::print_json(&ChannelTests { tests })?;
        return Ok(exit);
    }
    let lines = tests.iter().map(|test| {
        let word = if test.works { "delivered" } else { "failed" };
        format!("{}: {word}: {}\n", show::safe(&test.channel), show::safe(&test.answer))
    });
    show::print(&if tests.is_empty() { no_channels().to_owned() } else { lines.collect() })?;
    Ok(exit)
}

async fn deliveries(context: &Context, is_failed: bool, limit: u16) -> Answer {
    let is_json = context.is_json()?;
    let list = Client::open(context).await?.deliveries(is_failed, limit).await?;
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    let rows = list.deliveries.iter().map(row).collect();
    let table =
        || show::table(&["ID", "EVENT", "CHANNEL", "ABOUT", "STATE", "TRIES", "ANSWER", "NEXT"], rows);
    show::print(&if list.deliveries.is_empty() { "no deliveries\n".to_owned() } else { table() })?;
    Ok(Exit::Yes)
}

fn row(delivery: &DeliveryView) -> Vec<String> {
    let about = match (delivery.ask, &delivery.run) {
        (Some(ask), _) => format!("ask {ask}"),
        (None, Some(run)) => run.clone(),
        (None, None) => String::new(),
    };
    vec![
        delivery.id.to_string(),
        delivery.event.clone(),
        delivery.channel.clone(),
        about,
        delivery.state.clone(),
        delivery.tries.to_string(),
        delivery.answer.clone().unwrap_or_default(),
        delivery.due_at.as_deref().and_then(show::unix_seconds).map(due_words).unwrap_or_default(),
    ]
}

/// Says when a delivery is tried again.
fn due_words(due_unix_seconds: f64) -> String {
    let left = due_unix_seconds - client::now_unix_seconds();
    if left > 0.0 { format!("in {}", show::seconds(left)) } else { "now".to_owned() }
}

async fn replay(context: &Context, delivery: u64) -> Answer {
    let is_json = context.is_json()?;
    let due = Client::open(context).await?.replay(delivery).await?;
    if is_json {
        show::print_json(&due)?;
    } else {
        let (id, channel) = (due.id, show::safe(&due.channel));
        show::print(&format!("delivery {id} is due on {channel}; a daemon sends it\n"))?;
    }
    Ok(Exit::Yes)
}
