//! Asks that wait for a person, and their answers.

use super::parameters::{RUN, WORKSPACE};
use super::{Answer, Call, json, number};
use crate::inbox::order::InboxPlace;

use planctl_api::Problem;
use planctl_api::wire::AskList;
use planctl_api::wire::calls::{AnswerCall, Approving, EditCall, EditCheckCall};
use planctl_api::wire::draft_asks::DraftAsksCall;
use planctl_api::wire::draft_records::{DraftRecordCall, DraftTakeCall};

use crate::node::services::Services;

pub(super) async fn list(call: Call) -> Answer {
    let services = call.services().await?;
    let run = match call.query(&RUN) {
        Some(run) => Some(services.find(run).await?),
        None => None,
    };
    let is_everywhere = run.is_some() || call.query(&WORKSPACE).is_none();
    json(&services.asks(run, is_everywhere, &call.page::<AskList, InboxPlace>(number)?).await?)
}

pub(super) async fn show(call: Call) -> Answer {
    let services = call.services().await?;
    json(&services.ask(call.parameter_as("ask", "the number of an ask")?).await?)
}

pub(super) async fn open_draft_asks(call: Call) -> Answer {
    let mut wanted: DraftAsksCall = call.body()?;
    let place = std::mem::take(&mut wanted.place);
    let config = place.config.clone();
    json(&call.services_of(place).await?.open_draft_asks(&wanted, config.as_ref()).await?)
}

pub(super) async fn draft_record(call: Call) -> Answer {
    json(&call.services().await?.draft_record(call.parameter("draft")).await?)
}

pub(super) async fn take_draft(call: Call) -> Answer {
    let DraftTakeCall { place } = call.body()?;
    json(&call.services_of(place).await?.take_draft(call.parameter("draft")).await?)
}

pub(super) async fn keep_draft(call: Call) -> Answer {
    let mut wanted: DraftRecordCall = call.body()?;
    let place = std::mem::take(&mut wanted.place);
    let config = place.config.clone();
    let services = call.services_of(place).await?;
    json(&services.keep_draft(call.parameter("draft"), &wanted, config.as_ref()).await?)
}

pub(super) async fn edit(call: Call) -> Answer {
    let (services, ask) = open_edit(&call).await?;
    json(&services.edit(ask).await?)
}

pub(super) async fn check_edit(call: Call) -> Answer {
    let wanted: EditCheckCall = call.body()?;
    let (services, ask) = open_edit(&call).await?;
    json(&services.check_edit(ask, &wanted.text).await?)
}

pub(super) async fn approve_edit(call: Call) -> Answer {
    let wanted: EditCall = call.body()?;
    let (services, ask) = open_edit(&call).await?;
    json(&services.approve_edit(ask, &wanted).await?)
}

/// Opens the workspace of an ask's run as a command there would, with the configuration that it has by now.
async fn open_edit(call: &Call) -> Result<(Services, u64), Problem> {
    let ask = call.parameter_as("ask", "the number of an ask")?;
    let workspace = call.services().await?.workspace_of_edit(ask).await?;
    let config = call.server_node().config_there(workspace.clone()).await?;
    Ok((call.services_at(Some(workspace), Some(config), false).await?, ask))
}

pub(super) async fn answer(call: Call) -> Answer {
    let wanted: AnswerCall = call.body()?;
    let ask = call.parameter_as("ask", "the number of an ask")?;
    let answer = wanted.answer.answer()?;
    let under = wanted.place.config.clone();
    let services = call.services_of(wanted.place).await?;
    let given = Approving { note: wanted.note, accept_changed: wanted.accept_changed, worker: None };
    json(&services.answer(ask, answer, &given, under.as_ref()).await?)
}
