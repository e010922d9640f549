//! The graph of a run as a picture, around what its reader wants to see. Only nodes with a box of their own are read in full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_api::wire::{PassageView, PictureView, RunView, StepState};
use planctl_engine::{Node, NodeId, Record, RunId};
use planctl_lang::workflow::Phase;

use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::picture::{self, Addresses, Fitted, Layouts, Sketch};
use crate::runs::shown::Shown;

impl Services {
    /// Draws the graph of a run around a node, a step by its number or any node by its name; else around what is under way.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where the plan has no such node, and those of the store.
    pub(crate) async fn run_picture(
        &self,
        run: RunId,
        around: Option<&str>,
        addresses: Addresses,
        layouts: Arc<Layouts>,
    ) -> Result<PictureView, ServiceError> {
        let mut shown = self.shown_in_part(run, |_| Vec::new()).await?;
        let wanted = match around {
            Some(given) => vec![shown.step_named(given)?.id.clone()],
            None => shown.wanted(),
        };
        let (graph, known) = (Arc::clone(&shown.graph), Arc::clone(&layouts));
        let sketch = blocking(move || Sketch::new(graph, &wanted, &known)).await?;
        let nodes = sketch.nodes();
        shown.view.records.extend(self.store.records_of(run, &nodes).await?);
        let passed = self.store.passed_nodes(run).await?;
        let view = shown.view_of(&nodes);
        let stages = picture::stages(&view);
        let phases = shown.open_phases();
        let count = shown.graph.nodes().len();
        let phase = move |node: &NodeId| phase_of(&phases, &passed, node);
        let drawn = blocking(move || sketch.fitted(&stages, phase, &addresses, &layouts)).await?;
        let (svg, shown, missing) = match drawn {
            Ok(Fitted { svg, shown }) => (Some(svg), shown, None),
            Err(undrawable) => (None, 0, Some(undrawable.to_string())),
        };
        Ok(PictureView {
            run: view.run,
            title: view.title,
            state: view.state,
            nodes: count,
            shown,
            svg,
            missing,
        })
    }
}

fn phase_of(open: &BTreeMap<NodeId, Phase>, passed: &BTreeSet<NodeId>, node: &NodeId) -> Phase {
    let settled = if passed.contains(node) { Phase::Done } else { Phase::Ahead };
    open.get(node).copied().unwrap_or(settled)
}

impl Shown {
    /// Returns the nodes that somebody who looks at the run wants to see: those that wait for a person, those that are under
    /// way, those that failed.
    fn wanted(&self) -> Vec<NodeId> {
        let phases = self.open_phases();
        let of = |wanted: Phase| phases.iter().filter(move |(_, phase)| **phase == wanted);
        let wanted = of(Phase::Waiting).chain(of(Phase::Current)).chain(of(Phase::Failed));
        wanted.map(|(node, _)| node.clone()).collect()
    }

    /// Returns where the nodes stand whose records say more than that they passed or are to come.
    fn open_phases(&self) -> BTreeMap<NodeId, Phase> {
        let phases = self.view.records.iter().filter_map(|(id, record)| {
            let phase = picture::phase(self.step_state(self.graph.node(id)?, record));
            (!matches!(phase, Phase::Ahead | Phase::Done)).then(|| (id.clone(), phase))
        });
        phases.collect()
    }

    /// Returns the run with these nodes alone.
    fn view_of(&self, nodes: &[NodeId]) -> RunView {
        let none = Record::default();
        let mut view = self.view_without_nodes();
        for node in nodes.iter().filter_map(|id| self.graph.node(id)) {
            let record = self.view.records.get(&node.id);
            let step = self.step(node.step().unwrap_or(0), node, record.unwrap_or(&none));
            if node.step().is_some() {
                view.steps.push(step);
            } else if record.is_some() {
                view.passages.push(entered(step.state, step.visits, node, step.kind));
            }
        }
        view
    }
}

/// Shows a node that is no step, and was entered.
fn entered(state: StepState, visits: u32, node: &Node, kind: String) -> PassageView {
    PassageView {
        node: node.id.as_str().to_owned(),
        kind,
        title: node.title.clone(),
        state,
        visits,
        leaves_out: false,
    }
}
