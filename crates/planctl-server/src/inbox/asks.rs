//! The inbox: questions for people, those first that block most.

use std::collections::BTreeMap;

use planctl_api::wire::{AskList, AskView, BlocksView, Paged};
use planctl_engine::RunId;
use planctl_store::Page;

use super::ask_view::ask_view;
use super::draft_asks::draft_ask_view;
use super::order::InboxPlace;
use crate::node::services::{ServiceError, Services};

impl Services {
    /// Lists open asks of a run, or of this workspace and all others: first those that block most.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn asks(
        &self,
        run: Option<RunId>,
        is_everywhere: bool,
        page: &Page<InboxPlace>,
    ) -> Result<AskList, ServiceError> {
        let workspace = self.workspace.filter(|_| !is_everywhere);
        let (mut places, waiting) = self.in_order(&self.store.asks_waiting(run, workspace).await?).await?;
        // No run waits for a draft, so its asks come after those that something waits for.
        let drafts = if run.is_some() { Vec::new() } else { self.store.draft_asks(workspace).await? };
        let nothing = BlocksView { runs: 0, steps: 0 };
        places.extend(drafts.iter().map(|row| InboxPlace { blocks: nothing, number: row.number }));
        places.retain(|place| page.after.is_none_or(|after| *place > after));
        places.truncate(usize::try_from(page.limit).unwrap_or(usize::MAX));
        let next = page.next(&places, |place| *place).map(AskList::cursor);
        let numbers: Vec<i64> = places.iter().map(|place| place.number).collect();
        let blocks: BTreeMap<i64, BlocksView> =
            places.iter().map(|place| (place.number, place.blocks)).collect();
        let rows = self.store.asks_numbered(&numbers).await?;
        let of_runs = rows.iter().filter_map(|row| {
            let view = ask_view(row, &waiting.get(&row.run)?.graph, None);
            Some(AskView { blocks: blocks.get(&row.number).copied(), ..view })
        });
        let of_drafts = drafts.iter().filter(|row| numbers.contains(&row.number)).map(draft_ask_view);
        Ok(AskList { asks: of_runs.chain(of_drafts).collect(), next })
    }
}
