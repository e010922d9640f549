//! The person at the client's own screen: asked by elicitation, or by input that a call requires.
//!
//! Their answer comes over the agent's connection, and nobody can tell whether a person gave it. So it goes back to the agent as an
//! answer to its question, and decides nothing: it is no answer to an ask of planctl, which needs the right to decide.

use std::time::Duration;

use planctl_api::words::plan_block;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer};
use serde_json::Value;

use crate::gateway::Screens;

/// The name of the one input.
const ANSWER: &str = "answer";
/// The longest answer, in characters.
const ANSWER_CHARS_MAX: usize = 8_000;
/// How long a person has; then the question goes to planctl's inbox.
const WITHIN: Duration = Duration::from_secs(10 * 60);

/// How a client has the person at its screen answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Screen {
    /// The server asks while the call waits (2025-11-25).
    Elicits,
    /// The call is answered by what it needs, and made again with it (2026-07-28).
    TakesInput,
}

impl Screen {
    /// Returns how the client of a request asks the person at its screen; nothing where it can't, or where the screen is not known
    /// to be a person's.
    pub(crate) fn of(screens: Screens, context: &RequestContext<RoleServer>) -> Option<Screen> {
        // A client that names no mode means forms.
        let capability = context.client_capabilities()?.elicitation?;
        if capability.form.is_none() && capability.url.is_some() {
            return None;
        }
        let version = context.protocol_version()?;
        let takes_input = version == ProtocolVersion::V_2026_07_28;
        match screens {
            Screens::Nobodys => None,
            Screens::Persons | Screens::OfRequests if takes_input => Some(Screen::TakesInput),
            Screens::Persons => Some(Screen::Elicits),
            Screens::OfRequests => None,
        }
    }
}

/// Asks the person while the call waits; nothing where they gave no answer.
pub(crate) async fn ask_by_elicitation(
    context: &RequestContext<RoleServer>,
    question: &str,
) -> Option<String> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(question)));
    let options = PeerRequestOptions::with_timeout(WITHIN);
    let asked = context.peer.send_request_with_option(request, options).await.ok()?;
    let ClientResult::ElicitResult(result) = asked.await_response().await.ok()? else { return None };
    answer_of(result)
}

/// Returns what a client is told that shall ask the person and make the call again.
pub(crate) fn input_required(question: &str) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(question)));
    InputRequiredResult::from_input_requests(InputRequests::from([(ANSWER.to_owned(), request)]))
}

/// Returns the person's answer that a call brings; nothing where they gave none.
pub(crate) fn answer_in(responses: &InputResponses) -> Option<String> {
    let result: ElicitResult = serde_json::from_value(responses.get(ANSWER)?.clone()).ok()?;
    answer_of(result)
}

fn answer_of(result: ElicitResult) -> Option<String> {
    let content = result.content.filter(|_| result.action == ElicitationAction::Accept)?;
    let answer = content.get(ANSWER).and_then(Value::as_str)?.trim();
    (!answer.is_empty()).then(|| answer.chars().take(ANSWER_CHARS_MAX).collect())
}

/// Writes the form: an agent's words are shown as such, and can't pose as planctl's.
fn form(question: &str) -> ElicitRequestParams {
    let quoted: Vec<String> = plan_block(question.trim()).lines().map(|line| format!("> {line}")).collect();
    let message = format!(
        "An agent that works on a step of a plan asks you:\n\n{}\n\nYour answer goes to the agent. It approves and decides \
         nothing in planctl.",
        quoted.join("\n")
    );
    let requested_schema = ElicitationSchema::builder().required_string(ANSWER).build();
    let requested_schema = requested_schema.expect("a form of one text is a form");
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}
