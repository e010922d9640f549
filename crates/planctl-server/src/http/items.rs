//! Items that workers hold: shown, renewed, reported. Nothing said here passes a step; the contract does.

use std::time::Duration;

use axum::response::Response;
use planctl_engine::{AgentSaid, Ending, Fault, FaultKind, Node, Overrun, Report, Usage};
use planctl_harness::Masks;
use planctl_store::{Claimed, Leased, Renewal};

use super::claims::{LINE_CHARACTERS_MAX, Lease, no_such_item, refuse_long, view};
use super::parameters::WAIT;
use super::problem::of_store;
use super::{Answer, Call, json, no_content};
use crate::runs::settings::RunSettings;
use planctl_api::wire::calls::{
    self, AcceptedView, AskCall, CompleteCall, FailCall, FailKind, HeartbeatView, LogCall, Nothing, UsageCall,
};
use planctl_api::wire::{OutputLine, moment};
use planctl_api::{Code, Problem};

/// The longest question: a person reads it.
const QUESTION_CHARACTERS_MAX: usize = 20_000;
/// The longest step that a worker proposes.
const PROPOSAL_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn show(call: Call) -> Answer {
    let (lease, claimed) = held_lease(&call).await?;
    let now = call.server_node().store.now().await.map_err(of_store)?;
    let left =
        Duration::from_micros(u64::try_from(claimed.lease_until.as_micros() - now.as_micros()).unwrap_or(0));
    json(&view(&call, &claimed, left, lease.asked_seconds).await?)
}

pub(super) async fn heartbeat(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let _: Nothing = call.body()?;
    let wait = Duration::from_secs(call.number(&WAIT)?.unwrap_or(0));
    match lease.renewed(&call, wait).await? {
        Renewal::Held { lease_until, is_over } => {
            json(&HeartbeatView { lease_until: Some(moment(lease_until)), cancel: is_over })
        }
        Renewal::Cancelled => json(&HeartbeatView { lease_until: None, cancel: true }),
        Renewal::Lost => Err(lease.lost_lease_problem(&call).await?),
    }
}

pub(super) async fn complete(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: CompleteCall = call.body()?;
    if said.insert_step.as_ref().is_some_and(|step| step.len() > PROPOSAL_BYTES_MAX) {
        return Err(Problem::new(Code::BadRequest, "`insert_step` is longer than 16 KiB")
            .help("propose one step; what is long belongs into a file that it names"));
    }
    let text = lease.store_excerpt(&call, &said.text).await?;
    let (hints, circumstances) = (said.hints(), said.circumstances());
    let report = Report {
        text,
        gave_up: said.gave_up,
        ending: said.exit_code.map(|code| Ending::Exited { code }),
        duration: lease.work_duration(&call, said.seconds).await?,
        usage: parse_usage(said.usage)?,
        hints,
        circumstances,
        observation: None,
    };
    accepted_response(
        &lease,
        lease.apply_report(&call, AgentSaid::Reported(report)).await?,
        "the contract is checked",
    )
}

pub(super) async fn fail(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: FailCall = call.body()?;
    let usage = parse_usage(said.usage)?;
    let duration = lease.work_duration(&call, said.seconds).await?;
    let message = said.reason.chars().take(2000).collect();
    let fault = |kind| AgentSaid::Faulted(Fault { kind, message, usage: usage.clone() });
    let overran = |past| AgentSaid::Overran { past, duration, usage: usage.clone() };
    let (event, follows) = match said.kind {
        FailKind::GaveUp => {
            let text = lease.store_excerpt(&call, &said.reason).await?;
            let usage = usage.clone();
            let report = Report { text, gave_up: true, duration, usage, ..Report::default() };
            (AgentSaid::Reported(report), "the contract is checked; if it fails there is no retry")
        }
        FailKind::Transient => (fault(FaultKind::Transient), "it is tried again later"),
        FailKind::Permission => (fault(FaultKind::Permission), "a person is asked"),
        FailKind::Permanent => (fault(FaultKind::Permanent), "a person is asked"),
        FailKind::Overran => (overran(Overrun::Deadline), "the attempt is spent"),
        FailKind::Silent => (overran(Overrun::Silence), "the attempt is spent"),
    };
    accepted_response(&lease, lease.apply_report(&call, event).await?, follows)
}

pub(super) async fn ask(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: AskCall = call.body()?;
    refuse_question(&said.question)?;
    let usage = parse_usage(said.usage)?;
    let asked = AgentSaid::Asked { question: said.question, usage };
    accepted_response(
        &lease,
        lease.apply_report(&call, asked).await?,
        "a person is asked; this worker is free",
    )
}

/// Refuses a question that nobody could answer.
pub(super) fn refuse_question(question: &str) -> Result<(), Problem> {
    if question.trim().is_empty() {
        return Err(Problem::new(Code::BadRequest, "`question` is empty"));
    }
    refuse_long("question", question, QUESTION_CHARACTERS_MAX)
}

pub(super) async fn release(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let _: Nothing = call.body()?;
    accepted_response(
        &lease,
        lease.apply_report(&call, AgentSaid::Released).await?,
        "somebody else can claim it",
    )
}

pub(super) async fn log(call: Call) -> Answer {
    let (lease, claimed) = held_lease(&call).await?;
    let said: LogCall = call.body()?;
    let text = lease.masks(&call).await?.text(&said.text).into_owned();
    call.api.claims().printed().add(&lease.item, lease.generation, &text);
    let at = &claimed.item.at;
    let line = OutputLine {
        step: claimed.graph.node(&at.node).and_then(Node::step),
        node: at.node.as_str().to_owned(),
        visit: at.visit,
        attempt: at.attempt.number(),
        from: "worker".to_owned(),
        text: String::new(),
    };
    let spool = call.server_node().spool();
    spool.open_printer(claimed.item.run, line, Masks::default()).feed(text.as_bytes());
    Ok(no_content())
}

pub(super) async fn usage(call: Call) -> Answer {
    let lease = Lease::of(&call)?;
    let said: UsageCall = call.body()?;
    let mut usage = usage_of(&said)?;
    let store = &call.server_node().store;
    if usage.micro_usd.is_none() && usage.model.is_some() {
        RunSettings::of(&store.run(lease.run).await.map_err(of_store)?)?.price(&mut usage);
    }
    if store.note_usage(&lease.item, lease.generation, &lease.token, &usage).await.map_err(of_store)? {
        Ok(no_content())
    } else {
        Err(lease.lost_lease_problem(&call).await?)
    }
}

/// Returns the lease where it is held right now.
async fn held_lease(call: &Call) -> Result<(Lease, Box<Claimed>), Problem> {
    let lease = Lease::of(call)?;
    match lease.find(call).await? {
        Leased::Held(claimed) => Ok((lease, claimed)),
        Leased::Lost => Err(Problem::new(Code::LeaseLost, "the lease is over: stop working")),
        Leased::Unknown => Err(no_such_item()),
    }
}

/// Refuses callers without a token of the item before their body is read. Only for a long body is the token looked up.
pub(super) async fn refuse_without_item_token(call: &Call, is_long: bool) -> Result<(), Problem> {
    let lease = Lease::of(call)?;
    if !is_long {
        return Ok(());
    }
    match lease.find(call).await? {
        // The route answers a late call, and records it.
        Leased::Held(_) | Leased::Lost => Ok(()),
        Leased::Unknown => Err(no_such_item()),
    }
}

fn accepted_response(lease: &Lease, repeated: bool, follows: &str) -> Result<Response, Problem> {
    json(&AcceptedView { item: lease.item.as_str().to_owned(), follows: follows.to_owned(), repeated })
}

/// Takes what the call says was used; where it says nothing, what the worker said while it worked stands with its lease.
fn parse_usage(said: Option<UsageCall>) -> Result<Option<Usage>, Problem> {
    said.as_ref().map(usage_of).transpose()
}

fn usage_of(said: &UsageCall) -> Result<Usage, Problem> {
    let micro_usd = said.cost_usd.map(|cost| calls::micro_usd("cost_usd", cost)).transpose()?;
    refuse_long("usage.model", said.model.as_deref().unwrap_or_default(), LINE_CHARACTERS_MAX)?;
    Ok(Usage {
        input_tokens: calls::tokens("input_tokens", said.input_tokens)?,
        cached_input_tokens: calls::tokens("cached_input_tokens", said.cached_input_tokens)?,
        output_tokens: calls::tokens("output_tokens", said.output_tokens)?,
        micro_usd,
        model: said.model.clone(),
        estimated: said.estimated,
        tokens_estimated: false,
    })
}
