//! Audits a run apart from its database: its lines, graphs and outputs, as somebody carried them elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_engine::{Budget, Digest, Graph, Run, RunId, Timestamp};
use sha2::{Digest as _, Sha256};

use super::{Audit, Finding};
use crate::error::StoreError;
use crate::history::HistoryLine;
use crate::plans::graph_of_text;

/// An audit of lines that come one by one, each after the graph and the outputs that it names.
pub struct BundleAudit {
    audit: Audit,
    graphs: BTreeMap<Digest, Arc<Graph>>,
    outputs: BTreeSet<String>,
}

/// The result of such an audit.
pub struct Bundled {
    /// The problems.
    pub findings: Vec<Finding>,
    /// How many lines there were.
    pub lines: i64,
    /// The run as the fold of its inputs; nothing where no input could be read.
    pub run: Option<Run>,
    /// The graph that decided last.
    pub graph: Option<Arc<Graph>>,
}

impl BundleAudit {
    /// Begins with a run of which no line is known; `around` is the budget that the run around it left for it.
    pub fn new(run: RunId, created: Timestamp, around: Budget) -> BundleAudit {
        BundleAudit {
            audit: Audit::new(run, created, around),
            graphs: BTreeMap::new(),
            outputs: BTreeSet::new(),
        }
    }

    /// Takes the text of a graph, which must be that of its digest [I12].
    pub fn add_graph(&mut self, digest: &Digest, text: &str) {
        match graph_of_text(digest, text) {
            Ok(graph) => {
                self.graphs.insert(digest.clone(), Arc::new(graph));
            }
            Err(error) => self.audit.add_finding("I12", None, problem(error)),
        }
    }

    /// Takes an output, which must be that of its digest [I23].
    pub fn add_output(&mut self, digest: &Digest, bytes: &[u8]) {
        if *digest == Digest::of_sha256(&Sha256::digest(bytes)) {
            self.outputs.insert(digest.as_str().to_owned());
        } else {
            self.audit.add_finding("I23", None, format!("output {digest} is not what was printed"));
        }
    }

    /// Takes the next line of the history.
    pub fn add_line(&mut self, line: &HistoryLine) {
        if let Some(digest) = line.said.graph() {
            match self.graphs.get(digest) {
                Some(graph) => self.audit.use_graph(digest, graph.clone()),
                None => self.audit.add_finding("I12", Some(line.seq), format!("graph {digest} is missing")),
            }
        }
        self.audit.check_line(line);
    }

    /// Notes a line that does not read.
    pub fn add_unreadable(&mut self, seq: u64, error: StoreError) {
        self.audit.add_finding("I4", i64::try_from(seq).ok(), problem(error));
    }

    /// Compares the end with what the run says of itself: how many lines it has, and the hash of the last.
    pub fn finish(mut self, seq: i64, chain: &[u8]) -> Bundled {
        self.audit.check_end(seq, chain);
        let missing: Vec<String> = self.audit.outputs.difference(&self.outputs).cloned().collect();
        for digest in missing {
            self.audit.add_finding("I23", None, format!("output {digest} is named and not kept"));
        }
        Bundled {
            findings: self.audit.findings,
            lines: self.audit.seq,
            run: self.audit.folded,
            graph: self.audit.graph,
        }
    }
}

fn problem(error: StoreError) -> String {
    if let StoreError::Corrupt { what, .. } = error { what } else { error.to_string() }
}
