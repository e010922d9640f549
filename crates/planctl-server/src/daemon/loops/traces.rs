//! Sends the traces of this host's runs, from what their histories say. A collector that is away costs one try now and then: the
//! rows wait for it, and nothing else does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::RunId;
use planctl_store::UntracedRun;
use tokio::time::Instant;

use super::wake::IDLE;
use super::{Shared, TurnResult, Turns};
use crate::clock;
use crate::node::ServerNode;
use crate::node::runtime::stopped;
use crate::node::services::ServiceError;
use crate::traces::{RunSpans, Span, Traces};

/// For how long a process may send a host's traces without another look; where it dies, another one takes over.
const LEASE: Duration = Duration::from_secs(15);
/// How many runs, and lines of each, are read in one turn.
const RUNS_AT_ONCE: i64 = 50;
const LINES_AT_ONCE: i64 = 500;
/// How many spans one request has at most.
const SPANS_AT_ONCE: usize = 512;
/// How many runs with open spans are kept; those of further ones are made anew from their histories.
const KEPT_MAX: usize = 256;
/// How long the next try waits after one that failed: twice as long each time, up to a limit.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(60);
/// How long a command waits at its end for the collector.
const REST_WITHIN: Duration = Duration::from_secs(3);

/// Makes and sends the spans of runs.
#[derive(Default)]
pub(crate) struct Tracing {
    /// The spans of runs that are not over.
    open: BTreeMap<RunId, RunSpans>,
    /// Spans that were made and not taken, and up to which lines they were made.
    unsent: Vec<Span>,
    made_up_to: Vec<UntracedRun>,
    /// How many tries failed in a row, and when the next may be made.
    failures: u32,
    again_at: Option<Instant>,
    /// Says that this process is the one that sends the host's traces.
    holds: bool,
}

impl Tracing {
    /// Makes and sends what is due; says whether there may be more.
    async fn export_due(&mut self, server_node: &ServerNode, traces: &Traces) -> Result<bool, ServiceError> {
        if self.again_at.is_some_and(|at| clock::instant() < at) {
            return Ok(false);
        }
        // Spans that could not be sent come first, so that no more than one batch is ever held.
        if self.unsent.is_empty() {
            self.collect_spans(server_node, traces).await?;
        }
        if !self.send(traces).await {
            return Ok(false);
        }
        let done = std::mem::take(&mut self.made_up_to);
        if done.is_empty() {
            if self.holds {
                server_node.store().mark_ended_traced(server_node.host()).await?;
            }
            return Ok(false);
        }
        server_node.store().mark_traced(&done).await?;
        Ok(true)
    }

    async fn collect_spans(&mut self, server_node: &ServerNode, traces: &Traces) -> Result<(), ServiceError> {
        self.unsent = traces.calls().take(SPANS_AT_ONCE);
        let (store, host) = (server_node.store(), server_node.host());
        self.holds = store.acquire_trace_lease(host, &server_node.holder()?.instance, LEASE).await?;
        if !self.holds {
            self.open.clear();
            return Ok(());
        }
        for due in store.runs_to_trace(host, RUNS_AT_ONCE).await? {
            let up_to = self.make_of(server_node, due).await?;
            self.made_up_to.push(up_to);
            if self.unsent.len() >= SPANS_AT_ONCE {
                break;
            }
        }
        if self.open.len() > KEPT_MAX {
            self.open.clear();
        }
        Ok(())
    }

    /// Makes the spans of a run whose last lines no collector knows.
    async fn make_of(
        &mut self,
        server_node: &ServerNode,
        due: UntracedRun,
    ) -> Result<UntracedRun, ServiceError> {
        let store = server_node.store();
        let row = store.run(due.run).await?;
        let graph = store.graph_of(&row).await?;
        let mut spans = match self.open.remove(&due.run) {
            // A process that sent in between knows more.
            Some(spans) if spans.seq == due.seq => spans,
            Some(_) | None => RunSpans::of(&row),
        };
        loop {
            let lines = store.history(due.run, spans.seq, LINES_AT_ONCE).await?;
            for line in &lines {
                let known = self.unsent.len();
                spans.add_line(&graph, line, &mut self.unsent);
                if line.seq <= due.seq {
                    // These were sent before this process began to read.
                    self.unsent.truncate(known);
                }
            }
            if lines.is_empty() || spans.seq > due.seq {
                break;
            }
        }
        let up_to = UntracedRun { run: due.run, seq: spans.seq };
        if spans.is_open() {
            self.open.insert(due.run, spans);
        }
        Ok(up_to)
    }

    /// Sends what was made; says whether nothing is left.
    async fn send(&mut self, traces: &Traces) -> bool {
        while !self.unsent.is_empty() {
            let count = self.unsent.len().min(SPANS_AT_ONCE);
            match traces.exporter().send(&self.unsent[..count]).await {
                Ok(()) => {
                    if std::mem::take(&mut self.failures) > 0 {
                        tracing::info!("the collector takes traces again");
                    }
                }
                Err(error) if error.is_final => {
                    tracing::warn!(
                        error = error.what,
                        spans = count,
                        "the collector refuses spans; they are left out"
                    );
                }
                Err(error) => {
                    if self.failures == 0 {
                        tracing::warn!(error = error.what, "the collector takes no traces; they wait for it");
                    }
                    let pause = AGAIN_AFTER.saturating_mul(1 << self.failures.min(10)).min(AGAIN_AFTER_MAX);
                    self.failures = self.failures.saturating_add(1);
                    self.again_at = Some(clock::instant() + pause);
                    return false;
                }
            }
            self.unsent.drain(..count);
        }
        self.again_at = None;
        true
    }
}

impl Turns for Tracing {
    const NAME: &'static str = "traces";
    const PACE: Duration = Duration::from_secs(1);

    async fn due(&self, shared: &Shared) -> Result<Option<Duration>, ServiceError> {
        let again = self.again_at.map(|at| at.saturating_duration_since(clock::instant()));
        // Calls of the API are news to nobody.
        let idle = shared.server_node.traces().map(|_| IDLE);
        Ok(again.into_iter().chain(idle).min())
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let server_node = &shared.server_node;
        let Some(traces) = server_node.traces() else { return Ok(TurnResult::Nothing) };
        let mut stop = shared.stop.clone();
        // A collector that does not answer holds up no stop: what was not marked is sent by the next process.
        let has_more = tokio::select! {
            has_more = self.export_due(server_node, traces) => has_more?,
            () = stopped(&mut stop) => false,
        };
        Ok(if has_more { TurnResult::Something } else { TurnResult::Nothing })
    }
}

/// Sends what a command's run ended with, and leaves the rest to the next process. It is no part of the command's success.
pub(crate) async fn send_rest(server_node: &ServerNode) {
    let Some(traces) = server_node.traces() else { return };
    let sending = async {
        let mut tracing = Tracing::default();
        while tracing.export_due(server_node, traces).await? {}
        let holder = server_node.holder()?;
        Ok::<_, ServiceError>(
            server_node.store().release_trace_lease(server_node.host(), &holder.instance).await?,
        )
    };
    match tokio::time::timeout(REST_WITHIN, sending).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the last spans were not sent"),
        Err(_) => tracing::debug!("the last spans were not sent in time"),
    }
}
