//! A run over time, made of its newest history.

use planctl_api::wire::{TimelineView, moment};
use planctl_engine::RunId;

use super::shown::run_state;
use crate::node::services::{ServiceError, Services};
use crate::traces::Timeline;

/// How many of the newest lines are drawn: some sixty steps that passed at once.
const LINES: i64 = 500;

impl Services {
    /// Shows a run over time: its attempts, gates and waits.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn timeline(&self, run: RunId) -> Result<TimelineView, ServiceError> {
        let row = self.store.run(run).await?;
        let graph = self.store.graph_of(&row).await?;
        let lines = self.store.newest_lines(run, LINES).await?;
        let until = row.ended_at.unwrap_or(row.read_at);
        let Timeline { from, lanes } = Timeline::of(&row, &graph, &lines, until);
        Ok(TimelineView {
            run: row.name.clone(),
            title: graph.title().to_owned(),
            state: run_state(&row),
            from: moment(from),
            seconds: until.since(from).as_secs_f64(),
            is_cut: lines.first().is_some_and(|line| line.seq > 1),
            lanes,
        })
    }
}
