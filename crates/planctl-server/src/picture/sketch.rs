//! A run's graph as a page draws it: within a page's size, however large the graph is.

use std::collections::BTreeMap;
use std::sync::Arc;

use planctl_api::words;
use planctl_engine::{Graph, NodeId};
use planctl_lang::workflow::{self, Phase, Stage, Stages};

use super::fold::{Fold, FoldLimits, Folding, fold};
use super::order::Order;
use super::{Drawing, FoldedBox, Layouts, Undrawable, on_page};

/// How much is drawn: as much as fits, of these.
const FOLD_LIMITS: [FoldLimits; 4] = [
    FoldLimits { block: 12, blocks: 3, folds: 12 },
    FoldLimits { block: 12, blocks: 2, folds: 8 },
    FoldLimits { block: 12, blocks: 1, folds: 6 },
    FoldLimits { block: 6, blocks: 1, folds: 4 },
];
/// A graph of so many nodes is drawn whole, where that fits.
const WHOLE_NODES_MAX: usize = 48;
/// The most bytes of a picture: a page has 60 KB.
const BYTES_MAX: usize = 50 << 10;

/// A run's graph before it is laid out.
pub(crate) struct Sketch {
    graph: Arc<Graph>,
    order: Arc<Order>,
    /// The places that its reader wants to see, the most wanted first.
    wanted: Vec<usize>,
}

/// A picture, and how many of the graph's nodes have a box of their own in it.
pub(crate) struct Fitted {
    pub(crate) svg: String,
    pub(crate) shown: usize,
}

/// Where the links of a picture lead.
pub(crate) struct Addresses {
    /// The query that names the workspace, or nothing.
    pub(crate) query: String,
}

impl Addresses {
    fn step(&self, graph: &Graph, node: &NodeId) -> String {
        let number = graph.node(node).and_then(planctl_engine::Node::step);
        let name = number.map_or_else(|| planctl_web::encoded(node.as_str()), |number| number.to_string());
        format!("steps/{name}{}", self.query)
    }

    fn around(&self, node: &NodeId) -> String {
        let mark = if self.query.is_empty() { '?' } else { '&' };
        format!("graph{}{mark}at={}", self.query, planctl_web::encoded(node.as_str()))
    }
}

impl Sketch {
    /// Begins with the nodes that its reader wants to see, the most wanted first; the start where there are none.
    pub(crate) fn new(graph: Arc<Graph>, wanted: &[NodeId], layouts: &Layouts) -> Sketch {
        let order = layouts.order_of(&graph);
        let index = |id: &NodeId| graph.nodes().binary_search_by(|node| node.id.cmp(id)).ok();
        let mut wanted: Vec<usize> = wanted.iter().filter_map(index).map(|node| order.place(node)).collect();
        if wanted.is_empty() {
            wanted.push(0);
        }
        Sketch { graph, order, wanted }
    }

    /// Returns the nodes that may get a box of their own.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let shown = if self.is_small() {
            (0..self.order.len()).collect()
        } else {
            self.folding(FOLD_LIMITS[0]).shown
        };
        shown.into_iter().map(|place| self.order.node(&self.graph, place).id.clone()).collect()
    }

    fn is_small(&self) -> bool {
        self.order.len() <= WHOLE_NODES_MAX
    }

    fn folding(&self, limits: FoldLimits) -> Folding {
        fold(&self.order, &self.wanted, limits)
    }

    /// Draws as much as fits a page. `stages` says where the nodes of [`Sketch::nodes`] stand, `phase` the same of any node.
    ///
    /// # Errors
    ///
    /// [`Undrawable`] where not even a few nodes fit.
    pub(crate) fn fitted(
        &self,
        stages: &Stages,
        phase: impl Fn(&NodeId) -> Phase,
        addresses: &Addresses,
        layouts: &Layouts,
    ) -> Result<Fitted, Undrawable> {
        let whole =
            self.is_small().then(|| Folding { shown: (0..self.order.len()).collect(), folds: Vec::new() });
        let foldings = whole.into_iter().chain(FOLD_LIMITS.into_iter().map(|limits| self.folding(limits)));
        for folding in foldings {
            let shown = folding.shown.len();
            let drawing = self.drawing(folding, stages, &phase, addresses);
            match on_page(&drawing, layouts) {
                Ok(svg) if svg.len() <= BYTES_MAX => return Ok(Fitted { svg, shown }),
                Ok(_) | Err(Undrawable::TooLarge { .. }) => {}
                Err(undrawable @ Undrawable::Layout(_)) => return Err(undrawable),
            }
        }
        Err(Undrawable::TooLarge { nodes: self.order.len(), edges: self.order.edges.len() })
    }

    fn drawing<'s>(
        &self,
        folding: Folding,
        stages: &'s Stages,
        phase: impl Fn(&NodeId) -> Phase,
        addresses: &Addresses,
    ) -> Drawing<'s> {
        let id = |place: &usize| &self.order.node(&self.graph, *place).id;
        let shown: BTreeMap<&NodeId, ()> = folding.shown.iter().map(|place| (id(place), ())).collect();
        let links = shown.keys().map(|node| (node.as_str().to_owned(), addresses.step(&self.graph, node)));
        let folded = |fold: Fold| FoldedBox {
            title: self.title_of(&fold),
            stage: stage_of(fold.nodes.iter().map(|place| phase(id(place)))),
            link: addresses.around(id(&fold.entrance())),
            from: fold.from.iter().map(|place| id(place).as_str().to_owned()).collect(),
            to: fold.to.iter().map(|place| id(place).as_str().to_owned()).collect(),
        };
        Drawing {
            links: links.collect(),
            workflow: workflow::of_part(&self.graph, |node| shown.contains_key(node)),
            stages,
            folds: folding.folds.into_iter().map(folded).collect(),
        }
    }

    /// Names what a box stands for: steps that follow one another by their numbers, else how many nodes they are.
    fn title_of(&self, fold: &Fold) -> String {
        let numbers = fold.nodes.iter().filter_map(|place| self.order.node(&self.graph, *place).step());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        match numbers[..] {
            [first, .., last]
                if usize::try_from(last - first).is_ok_and(|span| span + 1 == numbers.len()) =>
            {
                format!("Steps {first} to {last}")
            }
            _ => words::counted(fold.nodes.len(), "node"),
        }
    }
}

/// Says where the nodes of a box stand, those first that need somebody.
fn stage_of(phases: impl Iterator<Item = Phase>) -> Stage {
    const WORDS: [(Phase, &str); 5] = [
        (Phase::Waiting, "waiting for you"),
        (Phase::Failed, "failed"),
        (Phase::Current, "under way"),
        (Phase::Done, "done"),
        (Phase::Ahead, "to come"),
    ];
    let phases: Vec<Phase> = phases.collect();
    let counts =
        WORDS.map(|(phase, words)| (phase, phases.iter().filter(|own| **own == phase).count(), words));
    let told: Vec<_> = counts.into_iter().filter(|(_, count, _)| *count > 0).collect();
    // A box that is done in part is still to come.
    let is_begun =
        told.len() > 1 && told.iter().all(|(phase, _, _)| matches!(phase, Phase::Done | Phase::Ahead));
    let worst =
        if is_begun { Phase::Ahead } else { told.first().map_or(Phase::Ahead, |(phase, _, _)| *phase) };
    let said: Vec<String> = told.iter().map(|(_, count, words)| format!("{count} {words}")).collect();
    Stage { phase: worst, words: said.join(", ") }
}
