//! Interactive agents (guided mode): what they are to do now, and the turns that they end. Nothing said here passes a step.

use std::time::Duration;

use planctl_engine::{ItemId, Observation, RunId};

use super::items::refuse_question;
use super::parameters::WAIT;
use super::runs::find_run;
use super::{Answer, Call, json};
use crate::clock;
use crate::node::services::Services;
use crate::node::sessions::TurnEnd;
use planctl_api::wire::SessionView;
use planctl_api::wire::calls::{AcceptedView, TurnCall};
use planctl_api::{Code, Problem};

/// How long to wait for news of a run before looking again without any.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most bytes of a session's last words that are kept.
const LAST_WORDS_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn show(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    let until = clock::instant() + Duration::from_secs(call.number(&WAIT)?.unwrap_or(0));
    let listener = services.listen(run);
    loop {
        // Registered before the look, so that no step begins between the two.
        let changed = call.server_node().sessions().changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let view = look(&call, &services, run).await?;
        let left = until.saturating_duration_since(clock::instant());
        if !view.steps.is_empty() || view.is_settled() || left.is_zero() || call.api.is_stopping() {
            return json(&view);
        }
        tokio::select! {
            () = changed => {}
            _ = call.api.wait_for_news(&listener, left.min(LOOK_AGAIN)) => {}
        }
    }
}

async fn look(call: &Call, services: &Services, run: RunId) -> Result<SessionView, Problem> {
    // In this order: a step that begins after the look at the run is not told beside a state from before it.
    let steps = call.server_node().sessions().steps(run);
    let view = services.status(run).await?;
    let others_work = steps.is_empty() && services.is_worked_on_by_agents(run).await?;
    Ok(SessionView { run: view, steps, others_work })
}

pub(super) async fn end_turn(call: Call) -> Answer {
    let said: TurnCall = call.body()?;
    let (_, run) = find_run(&call).await?;
    let (end, follows) = match said.question {
        Some(question) => {
            refuse_question(&question)?;
            (TurnEnd::Asked(question), "a person is asked")
        }
        None => {
            let words = last_of(&said.last_words, LAST_WORDS_BYTES_MAX);
            let observation = said.observation.map(|seen| {
                let cut = Observation::new(seen.command, seen.exit_code, &seen.output);
                Observation { is_cut: seen.is_cut || cut.is_cut, ..cut }
            });
            (TurnEnd::Reported { last_words: words.to_owned(), observation }, "the step is checked")
        }
    };
    let item = ItemId::new(said.item.as_str());
    if !call.server_node().sessions().end(run, &item, end) {
        return Err(Problem::new(
            Code::NotFound,
            "no session works on this item here, or its turn ended before",
        ));
    }
    json(&AcceptedView { item: said.item, follows: follows.to_owned(), repeated: false })
}

/// Returns the end of a text, of so many bytes at most.
fn last_of(text: &str, bytes_max: usize) -> &str {
    let surplus = text.len().saturating_sub(bytes_max);
    let start = (surplus..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    &text[start..]
}
