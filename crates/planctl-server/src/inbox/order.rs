//! The order of the inbox: first what blocks most.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use planctl_api::wire::BlocksView;
use planctl_engine::{NodeId, RunId};
use planctl_store::{AskRow, WaitingAsk, WaitingRun};

use crate::node::services::{ServiceError, Services};

/// The place of an ask in the inbox. It sorts by the runs that it blocks, then by the steps, then by age.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InboxPlace {
    /// The runs and steps that wait for its answer.
    pub(crate) blocks: BlocksView,
    /// Its number, by which older asks come first.
    pub(crate) number: i64,
}

impl InboxPlace {
    fn key(&self) -> (Reverse<u64>, Reverse<u64>, i64) {
        (Reverse(self.blocks.runs), Reverse(self.blocks.steps), self.number)
    }
}

impl Ord for InboxPlace {
    fn cmp(&self, other: &InboxPlace) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for InboxPlace {
    fn partial_cmp(&self, other: &InboxPlace) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes the key by which a page of the inbox names the next one.
impl fmt::Display for InboxPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.blocks.runs, self.blocks.steps, self.number)
    }
}

impl FromStr for InboxPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<InboxPlace, ()> {
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let blocks = BlocksView { runs: number()?, steps: number()? };
        let place = InboxPlace { blocks, number: i64::try_from(number()?).map_err(drop)? };
        if parts.next().is_none() { Ok(place) } else { Err(()) }
    }
}

impl Services {
    /// Returns the places of these asks in the inbox, sorted, with the runs that they are about.
    pub(super) async fn in_order(
        &self,
        asks: &[WaitingAsk],
    ) -> Result<(Vec<InboxPlace>, BTreeMap<RunId, WaitingRun>), ServiceError> {
        let runs: BTreeSet<RunId> = asks.iter().map(|ask| ask.run).collect();
        let waiting = if runs.is_empty() { BTreeMap::new() } else { self.store.runs_waiting(&runs).await? };
        let place = |ask: &WaitingAsk| InboxPlace {
            blocks: blocked_by(&waiting, ask.run, &ask.node),
            number: ask.number,
        };
        let mut places: Vec<InboxPlace> = asks.iter().map(place).collect();
        places.sort_unstable();
        Ok((places, waiting))
    }

    /// Counts what waits for the answer to one ask.
    pub(super) async fn blocked_by(&self, ask: &AskRow) -> Result<BlocksView, ServiceError> {
        let waiting = self.store.runs_waiting(&BTreeSet::from([ask.run])).await?;
        Ok(blocked_by(&waiting, ask.run, &ask.at.node))
    }
}

/// Counts what waits for the answer to an ask at a node: in its run, in those around it, and behind them.
fn blocked_by(waiting: &BTreeMap<RunId, WaitingRun>, run: RunId, node: &NodeId) -> BlocksView {
    let mut blocks = BlocksView { runs: 0, steps: 0 };
    let mut at = Some((run, node));
    while let Some((of, node)) = at.and_then(|(run, node)| Some((waiting.get(&run)?, node))) {
        blocks.runs += 1 + of.behind;
        blocks.steps += planctl_view::steps_waiting(&of.graph, node, &of.settled);
        at = of.around.as_ref().map(|(run, node)| (*run, node));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_that_blocks_more_comes_first_and_its_key_is_read_as_it_was_written() {
        let place = |runs, steps, number| InboxPlace { blocks: BlocksView { runs, steps }, number };
        let mut places = vec![place(1, 2, 3), place(1, 7, 9), place(2, 1, 8), place(1, 7, 4)];
        places.sort_unstable();
        assert_eq!(places, [place(2, 1, 8), place(1, 7, 4), place(1, 7, 9), place(1, 2, 3)]);
        for place in places {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3"] {
            assert_eq!(wrong.parse::<InboxPlace>(), Err(()), "{wrong}");
        }
    }
}
