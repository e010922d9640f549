//! Finds the run that a person means.

use planctl_engine::{End, RunId, RunStatus};
use uuid::Uuid;

use super::{RUN_LAST, RUN_LAST_IN, RUN_OF_PATH, RUNS_BEGINNING, RUNS_NAMED, RunRow};
use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::store::Store;

impl Store {
    /// Finds the run that a person means: `@last`, a name, an id, a plan's path (its newest run), or the beginning of a
    /// name or id: of several that begin so, the only one that is not over, else the only one that failed. `@last` is the newest run
    /// that a person began. It and paths are of the workspace where one is given; of runs with one name, which different workspaces
    /// may have, that of the workspace is meant.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Ambiguous`], and those of the connection.
    pub async fn find_run(&self, given: &str, workspace: Option<WorkspaceId>) -> Result<RunRow, StoreError> {
        let place = workspace.map(|workspace| workspace.0);
        if given == "@last" {
            let (row, none) = match place {
                Some(place) => {
                    let row = repeated!(self, connection => sqlx::query(RUN_LAST_IN).bind(place).fetch_optional(&mut *connection))?;
                    (row, "a run: this workspace has none yet")
                }
                None => {
                    let row = repeated!(self, connection => sqlx::query(RUN_LAST).fetch_optional(&mut *connection))?;
                    (row, "a run: there is none yet")
                }
            };
            return RunRow::from_row(&row.ok_or_else(|| StoreError::not_found(none))?);
        }
        if let Some(id) = RunId::parse(given) {
            return self.run(id).await;
        }
        let named = repeated!(self, connection => sqlx::query(RUNS_NAMED).bind(given).bind(place).fetch_all(&mut *connection))?;
        if !named.is_empty() {
            let named = named.iter().map(RunRow::from_row).collect::<Result<Vec<_>, _>>()?;
            return only_match(given, named, workspace);
        }
        let of_path = repeated!(self, connection => sqlx::query(RUN_OF_PATH).bind(place).bind(given).fetch_optional(&mut *connection))?;
        if let Some(row) = of_path {
            return RunRow::from_row(&row);
        }
        self.find_run_beginning(given, workspace).await
    }

    async fn find_run_beginning(
        &self,
        given: &str,
        workspace: Option<WorkspaceId>,
    ) -> Result<RunRow, StoreError> {
        let missing = || StoreError::not_found(format!("run `{given}`"));
        let is_plain = given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if given.is_empty() || !is_plain {
            return Err(missing());
        }
        let (first, last) = id_range_of_prefix(given).unzip();
        let beyond = prefix_upper_bound(given);
        let rows = repeated!(self, connection => sqlx::query(RUNS_BEGINNING)
            .bind(given)
            .bind(&beyond)
            .bind(first)
            .bind(last)
            .bind(workspace.map(|workspace| workspace.0))
            .fetch_all(&mut *connection))?;
        let mut found = rows.iter().map(RunRow::from_row).collect::<Result<Vec<_>, _>>()?;
        prefer(&mut found, |run| Some(run.workspace) == workspace);
        prefer(&mut found, |run| !matches!(run.head.status, RunStatus::Ended { .. }));
        prefer(&mut found, |run| run.head.status == RunStatus::Ended { end: End::Failed });
        if found.is_empty() { Err(missing()) } else { only_match(given, found, workspace) }
    }
}

/// Returns the only run of several that a word may mean: the only one of the workspace, where that has any.
fn only_match(
    given: &str,
    mut found: Vec<RunRow>,
    workspace: Option<WorkspaceId>,
) -> Result<RunRow, StoreError> {
    prefer(&mut found, |run| Some(run.workspace) == workspace);
    let is_one_name = found.iter().all(|run| run.name == found[0].name);
    match <[RunRow; 1]>::try_from(found) {
        Ok([only]) => Ok(only),
        Err(several) => Err(StoreError::Ambiguous {
            given: given.to_owned(),
            candidates: several
                .into_iter()
                .map(
                    |run| {
                        if is_one_name { format!("{} in {}", run.id, run.workspace_path) } else { run.name }
                    },
                )
                .collect(),
        }),
    }
}

/// Leaves out the other runs, where a word may mean one of these.
fn prefer(found: &mut Vec<RunRow>, is_meant: impl Fn(&RunRow) -> bool) {
    if found.iter().any(&is_meant) {
        found.retain(is_meant);
    }
}

/// Returns the first text behind all that begin with this one, byte by byte.
fn prefix_upper_bound(plain: &str) -> String {
    let mut beyond: Vec<char> = plain.chars().collect();
    if let Some(last) = beyond.last_mut() {
        *last = char::from_u32(u32::from(*last) + 1).unwrap_or(char::MAX);
    }
    beyond.into_iter().collect()
}

/// Returns the first and the last id that begin with these digits, whose hyphens say nothing.
fn id_range_of_prefix(given: &str) -> Option<(Uuid, Uuid)> {
    let digits = given.replace('-', "");
    let of = |fill: &str| {
        let id = format!("{digits}{}", fill.repeat(32_usize.checked_sub(digits.len())?));
        u128::from_str_radix(&id, 16).ok().map(Uuid::from_u128)
    };
    if digits.is_empty() { None } else { of("0").zip(of("f")) }
}
