//! Traces of runs: spans that are made from history, and sent to a collector by OTLP.
//!
//! A run may last for days and be carried on by one process after another, so no process holds its spans. Each span's id is
//! derived from what it is about, and each span is made from lines of history once it is over. A process that reads the same lines makes
//! the same spans: a process that is killed leaves nothing behind that another one would not make again. The trace's id is the
//! run's, and what workers and contracts are given to join it (`TRACEPARENT`) is derived in the same way.
//!
//! Calls of the API that come with a trace of their own are the exception: they are kept in memory, few of them, until they
//! are sent.

mod calls;
mod export;
mod ids;
mod span;
mod spans;
mod timeline;

use std::sync::Arc;

use planctl_config::TraceConfig;
use planctl_engine::{At, RunId};

pub(crate) use calls::{CallSpan, Calls};
pub(crate) use export::Exporter;
pub(crate) use span::Span;
pub(crate) use spans::RunSpans;
pub(crate) use timeline::Timeline;

/// Where traces are sent, and what waits for it. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    exporter: Arc<Exporter>,
    calls: Arc<Calls>,
}

impl Traces {
    /// Makes the exporter that the environment and the configuration ask for; `None` where they ask for none.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the settings.
    pub(crate) fn from_config(config: &TraceConfig) -> Result<Option<Traces>, String> {
        let exporter = Exporter::from_config(config, |name| std::env::var(name).ok())?;
        Ok(exporter.map(|exporter| Traces { exporter: Arc::new(exporter), calls: Arc::default() }))
    }

    pub(crate) fn exporter(&self) -> &Exporter {
        &self.exporter
    }

    /// Returns the calls of the API that belong to traces of their callers.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns what a program that works at a try is given, so that its spans join the run's trace.
    pub(crate) fn parent_of(&self, run: RunId, at: &At) -> String {
        ids::traceparent(run, at)
    }
}
