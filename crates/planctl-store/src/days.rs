//! Budgets of a day, which many runs share (migration 0024): work that one holds back, asks that wait for one, and what people add.

use planctl_engine::{Budget, BudgetPart, ClockEvent, Day, DayScope, Event, NodeId, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::rows::{at_of, run_id, stored_run, stored_runs, time_at};
use crate::store::Store;

/// The budgets of the day of a run `r` in a workspace `w`.
macro_rules! days {
    ($kind:literal) => {
        concat!(
            "select d.scope, d.until, d.tokens, d.micro_usd, d.tokens_limit, d.micro_usd_limit from ",
            "planctl_days_1(r.workspace, w.host, r.settings -> 'day') d",
            $kind
        )
    };
}

pub(crate) const DAYS: &str = concat!(
    "select r.id, x.* from runs r join workspaces w on w.id = r.workspace, lateral (",
    days!(""),
    ") x where r.id = any($1::uuid[]) and r.settings -> 'day' is not null order by r.id desc, x.scope desc"
);
pub(crate) const HELD_BACK_BY_DAYS: &str = concat!(
    "select i.run, i.node, i.visit, i.attempt, x.* from items i join runs r on r.id = i.run ",
    "join workspaces w on w.id = r.workspace, lateral (",
    days!(" where d.is_over limit 1"),
    ") x where i.held_until is not null and i.state = 'ready' and i.run <> all($1::uuid[]) order by i.run, i.id limit $2"
);
pub(crate) const DAYS_BEGUN: &str = "select a.run, a.node from asks a join runs r on r.id = a.run join workspaces w on w.id = r.workspace \
     where a.closed_at is null and a.work -> 'ask' ->> 'kind' = 'day_budget' and a.run <> all($1::uuid[]) \
     and not exists (select from planctl_days_1(r.workspace, w.host, r.settings -> 'day') d where d.is_over) \
     order by a.number limit $2";
/// Of each workspace with open runs, by the settings of its newest one.
pub(crate) const OPEN_DAYS: &str = concat!(
    "select r.workspace, x.* from (select distinct on (o.workspace) o.workspace, o.settings from runs o ",
    "where o.ended_at is null and o.settings -> 'day' is not null order by o.workspace, o.id desc limit $2) r ",
    "join workspaces w on w.id = r.workspace and w.host = $1, lateral (",
    days!(""),
    ") x order by r.workspace, x.scope desc"
);
/// Where there is nothing of these, nothing follows from a budget of a day.
pub(crate) const HOLDS_OR_ASKS: &str = "select exists (select from items where held_until is not null and state = 'ready') \
     or exists (select from asks where closed_at is null and work -> 'ask' ->> 'kind' = 'day_budget')";
/// Items that another day held back can be claimed as soon as a budget allows it.
pub(crate) const RELEASE_HELD_BACK: &str = "update items i set held_until = null, available_at = clock_timestamp() from runs r, workspaces w \
     where i.held_until is not null and i.state = 'ready' and r.id = i.run and w.id = r.workspace and i.run <> all($1::uuid[]) \
     and not exists (select from planctl_days_1(r.workspace, w.host, r.settings -> 'day') d where d.is_over)";
/// Of one workspace, or of all.
pub(crate) const SPENT_TODAY: &str = "select tokens, micro_usd from planctl_spent_today_1($1, $2)";
pub(crate) const RAISE_DAY: &str = "insert into day_raises (item, workspace, host, tokens, micro_usd, by, note) \
     select $1, case when $3 then r.workspace end, w.host, $4, $5, $6, $7 from runs r join workspaces w on w.id = r.workspace \
     where r.id = $2 on conflict (item) do nothing";

/// A budget of a day, and what was used of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayRow {
    /// The day.
    pub day: Day,
    /// The amounts that may be used, with what people added; its time is never limited.
    pub limit: Budget,
    /// The tokens that were used.
    pub tokens: u64,
    /// The money that was used, in millionths of a US dollar.
    pub micro_usd: u64,
}

/// Something for the engine that follows from a day's budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayNews {
    /// The run.
    pub run: RunId,
    /// The news; applied with `Proof::Clock`.
    pub event: Event,
}

/// An amount that a person adds to the budget of a day.
#[derive(Clone, Copy, Debug)]
pub struct DayRaise<'a> {
    /// The run that asked.
    pub run: RunId,
    /// The item of the ask: an answer that is repeated adds nothing.
    pub item: &'a str,
    /// The runs that share the budget.
    pub of: DayScope,
    /// How much is added.
    pub by: Budget,
    /// The person.
    pub person: &'a str,
    /// Why.
    pub note: Option<&'a str>,
}

impl DayRow {
    fn read(row: &PgRow) -> Result<DayRow, StoreError> {
        let of = match row.try_get::<&str, _>("scope")? {
            "project" => DayScope::Project,
            "host" => DayScope::Host,
            other => return Err(StoreError::corrupt(format!("a day is of `{other}`"))),
        };
        let amount = |column: &str| Ok::<_, StoreError>(row.try_get::<Option<i64>, _>(column)?.map(unsigned));
        Ok(DayRow {
            day: Day { of, until: time_at(row, "until")? },
            limit: Budget {
                tokens: amount("tokens_limit")?,
                micro_usd: amount("micro_usd_limit")?,
                time: None,
            },
            tokens: amount("tokens")?.unwrap_or(0),
            micro_usd: amount("micro_usd")?.unwrap_or(0),
        })
    }

    /// Returns the least part of the budget that is left, from 0 to 1; none where it allows nothing at all.
    pub fn left(&self) -> Option<f64> {
        let left = |limit: Option<u64>, used: u64| {
            limit.filter(|limit| *limit > 0).map(|limit| limit.saturating_sub(used) as f64 / limit as f64)
        };
        let parts = [left(self.limit.tokens, self.tokens), left(self.limit.micro_usd, self.micro_usd)];
        parts.into_iter().flatten().min_by(f64::total_cmp)
    }

    /// Returns the part that is used up, with its limit and what was used of it.
    fn used_up(&self) -> Option<(BudgetPart, u64, u64)> {
        let tokens = self.limit.tokens.map(|limit| (BudgetPart::Tokens, limit, self.tokens));
        let money = self.limit.micro_usd.map(|limit| (BudgetPart::MicroUsd, limit, self.micro_usd));
        tokens.into_iter().chain(money).find(|(_, limit, used)| used >= limit)
    }
}

/// Usage is taken off again where a run within another one was counted, and never below nothing for long.
fn unsigned(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

impl Store {
    /// Returns the budgets of the day that runs have, of the newest run first: its project's, then its machine's.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn days(&self, runs: &[RunId]) -> Result<Vec<(RunId, DayRow)>, StoreError> {
        let runs = stored_runs(runs);
        let rows = repeated!(self, connection => sqlx::query(DAYS).bind(&runs).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok((run_id(row.try_get("id")?), DayRow::read(row)?))).collect()
    }

    /// Returns the tokens and the millionths of a US dollar that runs used today, in a time zone: those of a workspace, or all.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn spent_today(
        &self,
        zone: &str,
        workspace: Option<WorkspaceId>,
    ) -> Result<(u64, u64), StoreError> {
        let workspace = workspace.map(|workspace| workspace.0);
        let row = repeated!(self, connection => sqlx::query(SPENT_TODAY)
            .bind(zone)
            .bind(workspace)
            .fetch_one(&mut *connection))?;
        Ok((unsigned(row.try_get("tokens")?), unsigned(row.try_get("micro_usd")?)))
    }

    /// Returns the budgets of the day of workspaces on a host in which runs are open, each with the number of its workspace.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn open_days(&self, host: &str, limit: i64) -> Result<Vec<(i64, DayRow)>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(OPEN_DAYS).bind(host).bind(limit).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok((row.try_get("workspace")?, DayRow::read(row)?))).collect()
    }

    /// Returns what follows for runs from budgets of days, but none of these runs: work that one holds back, and asks that
    /// nobody needs to answer any more. Work that was held back and may be done is given back to its lane.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn day_news(&self, except: &[RunId], limit: i64) -> Result<Vec<DayNews>, StoreError> {
        let is_concerned: bool =
            repeated!(self, connection => sqlx::query_scalar(HOLDS_OR_ASKS).fetch_one(&mut *connection))?;
        if !is_concerned {
            return Ok(Vec::new());
        }
        let except = stored_runs(except);
        repeated!(self, connection => sqlx::query(RELEASE_HELD_BACK).bind(&except).execute(&mut *connection))?;
        let held = repeated!(self, connection => sqlx::query(HELD_BACK_BY_DAYS)
            .bind(&except)
            .bind(limit)
            .fetch_all(&mut *connection))?;
        let begun = repeated!(self, connection => sqlx::query(DAYS_BEGUN).bind(&except).bind(limit).fetch_all(&mut *connection))?;
        let mut news = Vec::new();
        for row in &held {
            let (of_day, at) = (DayRow::read(row)?, at_of(row)?);
            let Some((part, limit, spent)) = of_day.used_up() else { continue };
            let event = Event::Clock(ClockEvent::DaySpent { at, part, limit, spent, day: of_day.day });
            news.push(DayNews { run: run_id(row.try_get("run")?), event });
        }
        for row in &begun {
            let node = NodeId::new(row.try_get::<String, _>("node")?);
            news.push(DayNews {
                run: run_id(row.try_get("run")?),
                event: Event::Clock(ClockEvent::DayAllows { node }),
            });
        }
        Ok(news)
    }

    /// Adds to the budget of a day, for that day alone.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn raise_day(&self, raise: DayRaise<'_>) -> Result<(), StoreError> {
        let stored = |amount: Option<u64>| i64::try_from(amount.unwrap_or(0)).unwrap_or(i64::MAX);
        let (run, is_of_project) = (stored_run(raise.run), raise.of == DayScope::Project);
        repeated!(self, connection => sqlx::query(RAISE_DAY)
            .bind(raise.item)
            .bind(run)
            .bind(is_of_project)
            .bind(stored(raise.by.tokens))
            .bind(stored(raise.by.micro_usd))
            .bind(raise.person)
            .bind(raise.note)
            .execute(&mut *connection))?;
        Ok(())
    }
}
