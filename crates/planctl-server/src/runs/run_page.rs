//! One page of a run's steps. Of a long run only what the page shows is read and built: the records of nodes that have not
//! passed, and those of the steps that it lists.

use std::sync::Arc;

use planctl_api::wire::{RunPage, StepState, StepTally, StepView};
use planctl_engine::{Graph, Node, NodeId, NodeKind, NodeState, Record, RunId};
use planctl_store::Records;

use crate::node::services::{ServiceError, Services};
use crate::runs::shown::Shown;

/// How many steps a page has.
const STEPS: usize = 100;
/// The most nodes of a graph whose run is read whole.
const WHOLE_NODES_MAX: usize = 400;

/// Those states that need somebody come first.
const ORDER: [StepState; 11] = [
    StepState::Failed,
    StepState::Waiting,
    StepState::Working,
    StepState::Checking,
    StepState::Ready,
    StepState::Resting,
    StepState::Passed,
    StepState::Warned,
    StepState::Waived,
    StepState::Skipped,
    StepState::Pending,
];

/// The steps of one page, by their numbers in the plan.
struct StepsOfPage {
    first: usize,
    total: usize,
    least: u32,
    most: u32,
}

impl StepsOfPage {
    /// Chooses the page with a place among all steps, from 1; else the one with the first step that is under way.
    fn of(shown: &Shown, from: Option<usize>) -> StepsOfPage {
        let mut numbers: Vec<u32> = shown.graph.nodes().iter().filter_map(Node::step).collect();
        numbers.sort_unstable();
        let place_of = |number: u32| numbers.binary_search(&number).unwrap_or(0);
        let under_way = || shown.first_under_way().map_or(0, place_of);
        let at = from.map_or_else(under_way, |from| from.saturating_sub(1));
        let begin = at.min(numbers.len().saturating_sub(1)) / STEPS * STEPS;
        let end = (begin + STEPS).min(numbers.len());
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        StepsOfPage {
            first: begin + 1,
            total: numbers.len(),
            least: number(begin),
            most: number(end.saturating_sub(1)),
        }
    }

    fn nodes<'g>(&self, graph: &'g Graph) -> Vec<(u32, &'g Node)> {
        let is_on_it = |number: &u32| (self.least..=self.most).contains(number);
        let nodes = graph.nodes().iter().filter_map(|node| Some((node.step().filter(is_on_it)?, node)));
        let mut nodes: Vec<_> = nodes.collect();
        nodes.sort_unstable_by_key(|(number, _)| *number);
        nodes
    }
}

impl Shown {
    /// Returns the steps that have not settled and were entered, or stand for an ask of the node before, with their states.
    fn open_steps(&self) -> impl Iterator<Item = (u32, StepState)> {
        static NONE: std::sync::LazyLock<Record> = std::sync::LazyLock::new(Record::default);
        self.graph.nodes().iter().filter_map(|node| {
            let number = node.step()?;
            let record = self.view.records.get(&node.id);
            let is_settled = record.is_some_and(|record| matches!(record.state, NodeState::Settled { .. }));
            let may_be_open = record.is_some() || matches!(node.kind, NodeKind::Escalate { .. });
            let state =
                (may_be_open && !is_settled).then(|| self.step_state(node, record.unwrap_or(&NONE)))?;
            (state != StepState::Pending).then_some((number, state))
        })
    }

    fn first_under_way(&self) -> Option<u32> {
        let under_way = self.open_steps().filter(|(_, state)| state.is_under_way());
        under_way.map(|(number, _)| number).min()
    }

    /// Counts the steps in each state. The run's head knows how many have settled.
    fn tallies(&self, steps_total: usize) -> Vec<StepTally> {
        let settled = self.view.run.head.settled;
        let open: Vec<StepState> = self.open_steps().map(|(_, state)| state).collect();
        let begun = open.len() + usize::try_from(settled.total()).unwrap_or(usize::MAX);
        let count = |state: StepState| {
            let settled = match state {
                StepState::Passed => settled.passed,
                StepState::Failed => settled.failed,
                StepState::Skipped => settled.skipped,
                StepState::Waived => settled.waived,
                StepState::Warned => settled.warned,
                StepState::Pending => return steps_total.saturating_sub(begun),
                StepState::Ready
                | StepState::Working
                | StepState::Checking
                | StepState::Resting
                | StepState::Waiting => 0,
            };
            open.iter().filter(|open| **open == state).count()
                + usize::try_from(settled).unwrap_or(usize::MAX)
        };
        let tallies = ORDER.map(|state| StepTally { state, count: count(state) });
        tallies.into_iter().filter(|tally| tally.count > 0).collect()
    }

    /// Returns the last step of the plan that failed.
    fn last_failed(&self) -> Option<StepView> {
        let records = self.view.records.iter().filter(|(_, record)| record.failure.is_some());
        let failed = records.filter_map(|(id, record)| {
            let node = self.graph.node(id)?;
            Some((node.step()?, node, record)).filter(|_| self.step_state(node, record) == StepState::Failed)
        });
        let (number, node, record) = failed.max_by_key(|(number, _, _)| *number)?;
        Some(self.step(number, node, record))
    }
}

impl Services {
    /// Shows a run with one page of its steps: the one with the step at a place among all, from 1, else the one with the
    /// first step that is under way.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn run_page(&self, run: RunId, from: Option<usize>) -> Result<RunPage, ServiceError> {
        let mut shown = self.shown_in_part(run, |_| Vec::new()).await?;
        let page = StepsOfPage::of(&shown, from);
        let graph = Arc::clone(&shown.graph);
        let nodes = page.nodes(&graph);
        let ids: Vec<NodeId> = nodes.iter().map(|(_, node)| node.id.clone()).collect();
        shown.view.records.extend(self.store.records_of(run, &ids).await?);
        let none = Record::default();
        let step = |&(number, node): &(u32, &Node)| {
            shown.step(number, node, shown.view.records.get(&node.id).unwrap_or(&none))
        };
        let mut view = self.with_surroundings(&shown, shown.view_without_nodes()).await?;
        view.steps = nodes.iter().map(step).collect();
        if is_read_whole(&graph) {
            self.add_cached_tokens(run, &mut view).await?;
        }
        Ok(RunPage {
            run: view,
            first: page.first,
            steps_total: page.total,
            tallies: shown.tallies(page.total),
            failed: shown.last_failed(),
        })
    }

    /// Returns one run with what is needed to show nodes that have not passed, and these.
    pub(super) async fn shown_in_part(
        &self,
        run: RunId,
        nodes: impl FnOnce(&Graph) -> Vec<NodeId>,
    ) -> Result<Shown, ServiceError> {
        let row = self.store.run(run).await?;
        let graph = self.store.graph_of(&row).await?;
        if is_read_whole(&graph) {
            return self.shown_of(row, Records::All).await;
        }
        let nodes = nodes(&graph);
        let mut shown = self.shown_of(row, Records::Unsettled).await?;
        if !nodes.is_empty() {
            shown.view.records.extend(self.store.records_of(run, &nodes).await?);
        }
        Ok(shown)
    }
}

/// Says whether the records of all nodes are read: those of a small plan.
fn is_read_whole(graph: &Graph) -> bool {
    graph.nodes().len() <= WHOLE_NODES_MAX
}
