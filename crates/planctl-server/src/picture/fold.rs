//! Which nodes of a large graph get a box of their own: those in blocks around what its reader wants to see. The others are
//! folded: those that hang together are one box. A block stays as it is while a run goes through it, so the picture does, too.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{IndexedEdge, Order};

/// How much is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldLimits {
    /// How many nodes that follow one another are shown or folded together.
    pub(super) block: usize,
    /// How many such blocks are shown.
    pub(super) blocks: usize,
    /// The most boxes that stand for several nodes.
    pub(super) folds: usize,
}

/// A graph in part, by the places of an [`Order`].
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Folding {
    /// The nodes that have a box of their own, in order.
    pub(super) shown: Vec<usize>,
    /// The boxes that stand for several.
    pub(super) folds: Vec<Fold>,
}

/// Nodes that share one box.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct Fold {
    /// The nodes, in order.
    pub(super) nodes: Vec<usize>,
    /// The shown nodes that lead into it.
    pub(super) from: BTreeSet<usize>,
    /// The shown nodes that it leads to.
    pub(super) to: BTreeSet<usize>,
}

impl Fold {
    /// Returns the node around which the picture is drawn that shows more of it: where it meets what is shown.
    pub(super) fn entrance(&self) -> usize {
        let (first, last) = (self.nodes[0], self.nodes[self.nodes.len() - 1]);
        if self.from.is_empty() && !self.to.is_empty() { last } else { first }
    }
}

/// Folds a graph around some places, the most wanted first.
pub(super) fn fold(order: &Order, wanted: &[usize], limits: FoldLimits) -> Folding {
    let blocks = blocks_around(order.len(), wanted, limits);
    let mut is_shown: Vec<bool> =
        (0..order.len()).map(|place| blocks.contains(&(place / limits.block))).collect();
    let mut folds = hanging_together(order, &is_shown);
    // A box for one node is that node.
    for fold in folds.all.iter().filter(|fold| fold.nodes.len() == 1).take(limits.block) {
        is_shown[fold.nodes[0]] = true;
    }
    // Lines of trouble are told of where nothing else leads to a box.
    for is_trouble in [false, true] {
        let is_reached: Vec<bool> = folds
            .all
            .iter()
            .map(|fold| is_trouble && !(fold.from.is_empty() && fold.to.is_empty()))
            .collect();
        for edge in order.edges.iter().filter(|edge| edge.is_trouble == is_trouble) {
            match (is_shown[edge.from], is_shown[edge.to]) {
                (true, false) if !is_reached[folds.of[edge.to]] => {
                    folds.all[folds.of[edge.to]].from.insert(edge.from);
                }
                (false, true) if !is_reached[folds.of[edge.from]] => {
                    folds.all[folds.of[edge.from]].to.insert(edge.to);
                }
                (true, _) | (_, true) | (false, false) => {}
            }
        }
    }
    folds.all.retain(|fold| !is_shown[fold.nodes[0]]);
    Folding {
        shown: (0..order.len()).filter(|place| is_shown[*place]).collect(),
        folds: merge_folds(folds.all, limits.folds),
    }
}

/// Chooses the blocks of the wanted places, then those beside them.
fn blocks_around(count: usize, wanted: &[usize], limits: FoldLimits) -> BTreeSet<usize> {
    let last = count.saturating_sub(1) / limits.block;
    let mut chosen = BTreeSet::new();
    for distance in 0..=last {
        for place in wanted {
            let block = place / limits.block;
            for beside in
                [block.checked_add(distance).filter(|block| *block <= last), block.checked_sub(distance)]
            {
                if chosen.len() == limits.blocks {
                    return chosen;
                }
                chosen.extend(beside);
            }
        }
    }
    chosen
}

struct Folds {
    all: Vec<Fold>,
    /// The fold of each place that is not shown.
    of: Vec<usize>,
}

/// Gathers the places that are not shown by the ways of success between them: those of trouble often lead to one node from all
/// others.
fn hanging_together(order: &Order, is_shown: &[bool]) -> Folds {
    let mut head: Vec<usize> = (0..order.len()).collect();
    fn head_of(head: &mut [usize], mut at: usize) -> usize {
        while head[at] != at {
            head[at] = head[head[at]];
            at = head[at];
        }
        at
    }
    let is_within = |edge: &&IndexedEdge| !edge.is_trouble && !is_shown[edge.from] && !is_shown[edge.to];
    for edge in order.edges.iter().filter(is_within) {
        let (one, other) = (head_of(&mut head, edge.from), head_of(&mut head, edge.to));
        head[one.max(other)] = one.min(other);
    }
    let mut folds = Folds { all: Vec::new(), of: vec![0; order.len()] };
    let mut fold_of_head: BTreeMap<usize, usize> = BTreeMap::new();
    for place in (0..order.len()).filter(|place| !is_shown[*place]) {
        let fold = *fold_of_head.entry(head_of(&mut head, place)).or_insert_with(|| {
            folds.all.push(Fold::default());
            folds.all.len() - 1
        });
        folds.of[place] = fold;
        folds.all[fold].nodes.push(place);
    }
    folds
}

/// Makes one of those that lie between the same nodes, then one of all that are too many.
fn merge_folds(all: Vec<Fold>, most: usize) -> Vec<Fold> {
    let mut alike: BTreeMap<(BTreeSet<usize>, BTreeSet<usize>), Vec<usize>> = BTreeMap::new();
    for fold in all {
        alike.entry((fold.from, fold.to)).or_default().extend(fold.nodes);
    }
    let mut folds: Vec<Fold> =
        alike.into_iter().map(|((from, to), nodes)| Fold { nodes, from, to }).collect();
    folds.sort_by_key(|fold| std::cmp::Reverse(fold.nodes.len()));
    if folds.len() > most {
        let mut rest = Fold::default();
        for fold in folds.drain(most - 1..) {
            rest.nodes.extend(fold.nodes);
            rest.from.extend(fold.from);
            rest.to.extend(fold.to);
        }
        folds.push(rest);
    }
    for fold in &mut folds {
        fold.nodes.sort_unstable();
    }
    folds.sort_by_key(|fold| fold.nodes[0]);
    folds
}
