//! A run's whole evidence apart from its database: written page by page, and audited offline.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER_PERMISSIVE;
use planctl_api::wire::{
    AuditedRun, AuditedStep, BUNDLE_VERSION, BundleLine, BundlePage, BundledEvent, BundledRun,
};
use planctl_engine::{
    Budget, Digest, End, ItemId, NodeId, NodeState, Outcome, RunId, RunStatus, Timestamp, hex,
};
use planctl_lang::Source;
use planctl_store::{BundleAudit, Bundled, HistoryLine, Said, StoreError};

use crate::node::services::{ServiceError, Services};

/// How many events a page has; a page ends early where the outputs that it holds grow large.
const EVENTS_AT_ONCE: i64 = 200;
/// After this many bytes of outputs a page ends.
const OUTPUT_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

impl Services {
    /// Returns the part of a run's bundle that begins after an event; the first part begins with the run itself.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn bundle(&self, run: RunId, after: u64) -> Result<BundlePage, ServiceError> {
        let mut lines = if after == 0 { self.bundle_head(run).await? } else { Vec::new() };
        let place = i64::try_from(after).unwrap_or(i64::MAX);
        let events = self.store.history(run, place, EVENTS_AT_ONCE).await?;
        let (mut named, mut bytes, mut last) = (BTreeSet::new(), 0, None);
        for event in &events {
            if bytes > OUTPUT_BYTES_AT_ONCE {
                break;
            }
            if let Some(graph) = event.said.graph().filter(|graph| named.insert((*graph).clone())) {
                let text = self.store.graph_text(graph).await?;
                lines.push(BundleLine::Graph { digest: graph.as_str().to_owned(), text });
            }
            for digest in event.said.outputs() {
                if !named.insert(digest.clone()) {
                    continue;
                }
                if let Some(output) = self.store.output(digest).await? {
                    bytes += output.len();
                    lines.push(output_line(digest, output));
                }
            }
            lines.push(BundleLine::Event(bundled_event(event)));
            last = Some(event.seq.unsigned_abs());
        }
        Ok(BundlePage { lines, next: last })
    }

    async fn bundle_head(&self, run: RunId) -> Result<Vec<BundleLine>, ServiceError> {
        let row = self.store.run(run).await?;
        let approval = match row.approval {
            Some(approval) => Some(self.store.approval(approval).await?),
            None => None,
        };
        let text = self.kept_text(row.plan, &row.plan_path, &row.revision).await?.source;
        let around = row.around.as_ref().map(|around| around.budget).unwrap_or_default();
        let head = BundledRun {
            version: BUNDLE_VERSION,
            run: row.name.clone(),
            run_id: row.id.to_string(),
            plan: row.plan_path.clone(),
            revision: row.revision.as_str().to_owned(),
            approved_by: approval.as_ref().map(|approval| approval.by.clone()),
            approval_note: approval.and_then(|approval| approval.note),
            created_at_micros: row.created_at.as_micros(),
            around: serde_json::to_value(around).unwrap_or_default(),
            status: status_word(row.head.status).to_owned(),
            events: row.seq.unsigned_abs(),
            head: hex(&row.chain),
        };
        let digest = row.revision.as_str().to_owned();
        Ok(vec![BundleLine::Run(head), BundleLine::Plan { digest, text }])
    }
}

/// Audits a bundle that is read line by line, without a database.
///
/// It shows that the bundle is whole and that its end follows from what it says. Somebody who can write any file can write
/// another whole bundle, so `head` must be that of an audit in the database, or one that was noted when the run ended.
#[derive(Default)]
pub struct BundleReader {
    begun: Option<(BundledRun, BundleAudit)>,
    plan: Option<Digest>,
    problems: Vec<String>,
}

impl BundleReader {
    /// Takes the next line.
    ///
    /// # Errors
    ///
    /// Why it can't be a line of a bundle, in words that go on from its place: `it must begin with the run`.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let line: BundleLine = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Some((head, audit)) = &mut self.begun else {
            let BundleLine::Run(head) = line else { return Err("it must begin with the run".to_owned()) };
            self.begun = Some(begin(head)?);
            return Ok(());
        };
        match line {
            BundleLine::Run(_) => return Err("it holds a second run".to_owned()),
            BundleLine::Plan { digest, text } => {
                let read = planctl_lang::digest(&Source::new(head.plan.as_str(), text));
                if read.as_str() != digest {
                    self.problems.push(format!("I12: the text of the plan is not that of {digest}"));
                }
                self.plan = Some(read);
            }
            BundleLine::Graph { digest, text } => audit.add_graph(&Digest::new(digest), &text),
            BundleLine::Output { digest, text, hex } => {
                let bytes = match (text, hex) {
                    (Some(text), None) => Some(text.into_bytes()),
                    (None, Some(hex)) => bytes_of(&hex),
                    (_, _) => None,
                };
                let bytes = bytes.ok_or("an output has either `text` or `hex`")?;
                audit.add_output(&Digest::new(digest), &bytes);
            }
            BundleLine::Event(event) => match history_line(&head.run_id, &event) {
                Ok(line) => audit.add_line(&line),
                Err(error) => audit.add_unreadable(event.seq, error),
            },
        }
        Ok(())
    }

    /// Says what was found.
    ///
    /// # Errors
    ///
    /// That there was no line at all.
    pub fn finish(self) -> Result<AuditedRun, String> {
        let Some((head, audit)) = self.begun else { return Err("it is empty".to_owned()) };
        let mut problems = self.problems;
        if self.plan.is_none_or(|plan| plan.as_str() != head.revision) {
            problems.push(format!("I12: the text of revision {} is missing", head.revision));
        }
        let seq = i64::try_from(head.events).unwrap_or(i64::MAX);
        let bundled = audit.finish(seq, &bytes_of(&head.head).unwrap_or_default());
        problems.extend(bundled.findings.iter().map(ToString::to_string));
        let folded = bundled.run.as_ref().map(|run| status_word(run.head.status));
        if let Some(folded) = folded.filter(|folded| *folded != head.status) {
            problems.push(format!("I2: it says {}, and its history says {folded}", head.status));
        }
        Ok(AuditedRun {
            run: head.run,
            workspace: None,
            events: bundled.lines.unsigned_abs(),
            head: Some(head.head),
            approved_by: head.approved_by,
            approval_note: head.approval_note,
            passed: passed(&bundled),
            problems,
        })
    }
}

fn begin(head: BundledRun) -> Result<(BundledRun, BundleAudit), String> {
    if head.version != BUNDLE_VERSION {
        return Err(format!(
            "its format is version {}, and this planctl reads {BUNDLE_VERSION}",
            head.version
        ));
    }
    let run = RunId::parse(&head.run_id).ok_or("its run has no id")?;
    let around: Budget = serde_json::from_value(head.around.clone()).map_err(|error| error.to_string())?;
    let audit = BundleAudit::new(run, Timestamp::from_micros(head.created_at_micros), around);
    Ok((head, audit))
}

/// Lists the steps that passed, with what each rests on.
fn passed(bundled: &Bundled) -> Vec<AuditedStep> {
    let (Some(run), Some(graph)) = (&bundled.run, &bundled.graph) else { return Vec::new() };
    let graded = graph.nodes().iter().filter_map(|node| {
        let record = run.records().get(&node.id)?;
        let is_passed = matches!(record.state, NodeState::Settled { outcome: Outcome::Passed, .. });
        let grade = record.grade(node).filter(|_| is_passed)?;
        Some(AuditedStep {
            number: node.step()?,
            title: node.title.clone(),
            grade: grade.as_str().to_owned(),
        })
    });
    graded.collect()
}

fn bundled_event(line: &HistoryLine) -> BundledEvent {
    BundledEvent {
        seq: line.seq.unsigned_abs(),
        at_micros: line.at.as_micros(),
        kind: line.said.kind().to_owned(),
        name: line.name.clone(),
        cause: line.cause.clone(),
        node: line.node.as_ref().map(|node| node.as_str().to_owned()),
        visit: line.visit,
        attempt: line.attempt,
        item: line.item.as_ref().map(|item| item.as_str().to_owned()),
        generation: line.generation,
        command: line.command.map(|command| command.to_string()),
        body: line.body.clone(),
        hash: hex(&line.hash),
    }
}

fn history_line(run: &str, event: &BundledEvent) -> Result<HistoryLine, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt { run: None, what: what.to_owned() };
    let command = event.command.as_deref().map(str::parse).transpose();
    Ok(HistoryLine {
        run: RunId::parse(run).ok_or_else(|| corrupt("its run has no id"))?,
        seq: i64::try_from(event.seq).unwrap_or(i64::MAX),
        at: Timestamp::from_micros(event.at_micros),
        said: Said::read(&event.kind, &event.body)?,
        name: event.name.clone(),
        cause: event.cause.clone(),
        node: event.node.clone().map(NodeId::new),
        visit: event.visit,
        attempt: event.attempt,
        item: event.item.clone().map(ItemId::new),
        generation: event.generation,
        command: command.map_err(|_| corrupt("its command is not an id"))?,
        body: event.body.clone(),
        hash: bytes_of(&event.hash).ok_or_else(|| corrupt("its hash is not in hexadecimal"))?,
    })
}

fn output_line(digest: &Digest, bytes: Vec<u8>) -> BundleLine {
    let digest = digest.as_str().to_owned();
    match String::from_utf8(bytes) {
        Ok(text) => BundleLine::Output { digest, text: Some(text), hex: None },
        Err(error) => BundleLine::Output { digest, text: None, hex: Some(hex(error.as_bytes())) },
    }
}

/// Returns the word for where a run stands, its end included.
fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::New => "new",
        RunStatus::Awaiting => "awaiting",
        RunStatus::Queued { .. } => "queued",
        RunStatus::Active => "active",
        RunStatus::Paused => "paused",
        RunStatus::Ended { end: End::Done } => "done",
        RunStatus::Ended { end: End::Failed } => "failed",
        RunStatus::Ended { end: End::Aborted } => "aborted",
        RunStatus::Ended { end: End::Cancelled } => "cancelled",
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()
}
