//! Asks that wait for a person, and their answers.

use super::parameters::{RUN, WORKSPACE};
use super::{Answer, Call, json, number};
use crate::inbox::order::InboxPlace;

use planctl_api::wire::AskList;
use planctl_api::wire::calls::{AnswerCall, Approving};

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

pub(super) async fn answer(call: Call) -> Answer {
    let wanted: AnswerCall = call.body()?;
    let ask = call.parameter_as("ask", "the number of an ask")?;
    let answer = wanted.answer.answer()?;
    let under = wanted.place.config.clone();
    let services = call.services_of(wanted.place).await?;
    let given = Approving { note: wanted.note, accept_changed: wanted.accept_changed, worker: None };
    json(&services.answer(ask, answer, &given, under.as_ref()).await?)
}
