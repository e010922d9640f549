//! The queue: claim, renew, and what has run out. None of it touches a run.

mod counts;
mod expired;

use std::time::Duration;

use planctl_engine::{Digest, Item, ItemId, Role, RunId, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::claimed::{Claimed, RunConfig};
use crate::connections::{RetryPolicy, repeated};
use crate::error::{StoreError, violates_constraint};
use crate::holder::{Claimant, Holder};
use crate::rows::{at_of, from_json, optional_time_at, run_id, stored_run, stored_runs, time_at, to_json};
use crate::store::Store;
use crate::token::Token;
pub(crate) use counts::{ASK_WAITS, ITEM_COUNTS, ITEM_GROUPS, ROLES};
pub use counts::{AskWaits, ItemCounts, ItemGroup, RoleRow};
pub(crate) use expired::{EXPIRED, HELD_BY, HOLDERS, STANDING};
pub use expired::{Expired, Standing};

macro_rules! leased_columns {
    () => {
        "i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, \
         i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings"
    };
}

// The work that can be claimed, as `planctl_claim_1` says. Runs with a holder of a revoked lease are few, and read once for all candidates.
pub(crate) const WORK_READY: &str = "select distinct i.target, i.run, p.path \
     from items i join runs r on r.id = i.run join plans p on p.id = r.plan join workspaces w on w.id = r.workspace \
     where i.state = 'ready' and i.available_at <= clock_timestamp() \
       and (i.locks is null or not exists (select from locks l \
         where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) \
       and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) \
       and i.lane = 'agent' and i.target = any($1) and i.served_on is null and w.host = $2";
macro_rules! claimed_where {
    ($which:literal) => {
        concat!(
            "select ",
            leased_columns!(),
            ", i.state, i.token_hash from items i join runs r on r.id = i.run where ",
            $which
        )
    };
}
pub(crate) const CLAIMED_BEFORE: &str = claimed_where!("i.state = 'leased' and i.token_hash = $1");
pub(crate) const ITEM: &str = claimed_where!("i.id = $1");
macro_rules! next_due {
    ($which:literal) => {
        // An item that became due a moment ago may not have been due at the last look.
        concat!(
            "select (extract(epoch from min(i.available_at) - clock_timestamp()) * 1000000)::bigint as wait_micros ",
            "from items i where i.state = 'ready' and i.available_at > clock_timestamp() - interval '1 second' and ",
            $which
        )
    };
}
pub(crate) const NEXT_GATE: &str = next_due!("i.lane = 'harness' and i.target = $1 and i.home = $1");
pub(crate) const NEXT_SERVED: &str = next_due!("i.served_on = $1");
pub(crate) const NEXT_WORK: &str = next_due!(
    "i.lane = 'agent' and (cardinality($2::text[]) = 0 or i.target = any($2)) and i.served_on is null and i.home = $1"
);

/// Claims by the function of migration 0012, which says which items.
pub(crate) const CLAIM: &str = "select place, id, run, node, visit, attempt, work, available_at, generation, lease_until, \
     hard_deadline, graph, revision, approval, settings from planctl_claim_1($1, $2, $3, $4, $5, $6, $7::json)";

/// The items that a claim looks for, as `planctl_claim_1` reads it.
pub(crate) struct Sought<'a> {
    pub(crate) reach: &'static str,
    pub(crate) lane: &'static str,
    pub(crate) run: Option<Uuid>,
    pub(crate) targets: Vec<&'a str>,
    pub(crate) runs: Vec<Uuid>,
    pub(crate) host: &'a str,
}

/// The items to claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The lane, with the roles or the runs that it is limited to.
    pub lane: ClaimLane,
    /// Only items of this run.
    pub run: Option<RunId>,
    /// No items of these runs, where no run is named.
    pub except: Vec<RunId>,
    /// The claimant.
    pub holder: Holder,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
}

/// The lanes that can be claimed; people answer without a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimLane {
    /// Work for an agent of one of these roles; where no run is named, only in workspaces on the holder's host, and
    /// without what runs serve themselves.
    Agent(Vec<Role>),
    /// The same, only for these roles in these runs.
    Among(Vec<WorkOf>),
    /// Work for an agent that its run serves itself, in a workspace on the holder's host.
    Served,
    /// Gates of workspaces on the holder's host.
    Gate,
}

/// The work of a run for one role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkOf {
    /// The role.
    pub role: Role,
    /// The run.
    pub run: RunId,
}

impl Store {
    /// Claims the item that is due first, if there is one: nobody else can claim it while the lease lasts. A worker that
    /// somebody paused finds nothing.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn claim(&self, claim: &Claim) -> Result<Option<Claimed>, StoreError> {
        self.claim_under(claim, Token::generate()).await
    }

    /// Returns what was claimed under a secret, and is still held.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn claim_of_token(&self, token: &Token) -> Result<Option<Claimed>, StoreError> {
        match self.leased_row_of_token(token).await? {
            Some(row) => Ok(Some(self.claimed_from_row(&row, token.clone()).await?)),
            None => Ok(None),
        }
    }

    /// Claims under a secret that the caller chose. Where something has been claimed under it before, and is still held,
    /// nothing else is.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn claim_under(&self, claim: &Claim, token: Token) -> Result<Option<Claimed>, StoreError> {
        let mut retries = RetryPolicy::new(self.settings());
        let mut is_unsure = false;
        let row = loop {
            match self.try_claim(claim, &token).await {
                Ok(Some(row)) => break Some(row),
                Ok(None) if !is_unsure => break None,
                Ok(None) => break self.leased_row_of_token(&token).await?,
                // The secret has a lease already; where that has ended by now, the claim is made again.
                Err(error) if violates_constraint(&error, "items_token") => {
                    if let Some(row) = self.leased_row_of_token(&token).await? {
                        break Some(row);
                    }
                }
                Err(error) => {
                    retries.wait_or_fail(error).await?;
                    // It may have been committed before the connection broke: then the item carries our token.
                    is_unsure = true;
                }
            }
        };
        match row {
            Some(row) => Ok(Some(self.claimed_from_row(&row, token).await?)),
            None => Ok(None),
        }
    }

    async fn leased_row_of_token(&self, token: &Token) -> Result<Option<PgRow>, StoreError> {
        repeated!(self, connection => sqlx::query(CLAIMED_BEFORE).bind(token.hash()).fetch_optional(&mut *connection))
    }

    async fn try_claim(&self, claim: &Claim, token: &Token) -> Result<Option<PgRow>, sqlx::Error> {
        let holder = &claim.holder;
        let (lane, targets): (_, Vec<&str>) = match &claim.lane {
            ClaimLane::Agent(roles) => ("agent", roles.iter().map(Role::as_str).collect()),
            ClaimLane::Among(work) => ("agent", work.iter().map(|work| work.role.as_str()).collect()),
            ClaimLane::Served => ("agent", Vec::new()),
            ClaimLane::Gate => ("harness", vec![&holder.host]),
        };
        let (reach, runs) = match (&claim.lane, claim.run) {
            (ClaimLane::Served, _) => ("served", stored_runs(&claim.except)),
            (ClaimLane::Among(work), _) => ("pairs", work.iter().map(|work| stored_run(work.run)).collect()),
            (ClaimLane::Agent(_) | ClaimLane::Gate, Some(_)) => ("run", Vec::new()),
            (ClaimLane::Agent(_) | ClaimLane::Gate, None) => ("roles", stored_runs(&claim.except)),
        };
        let sought =
            Sought { reach, lane, run: claim.run.map(stored_run), targets, runs, host: &holder.host };
        let claimant = Claimant::new(token, &holder.boot, &holder.instance, holder.own, claim.lease);
        Ok(self.claim_rows(sought, &[claimant]).await?.pop())
    }

    /// Claims an item for each of these claimants, as far as there are some.
    pub(crate) async fn claim_rows(
        &self,
        sought: Sought<'_>,
        claimants: &[Claimant<'_>],
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let query = sqlx::query(CLAIM)
            .bind(sought.reach)
            .bind(sought.lane)
            .bind(sought.run)
            .bind(sought.targets)
            .bind(sought.runs)
            .bind(sought.host)
            .bind(to_json(&claimants));
        let mut connection = self.connections().acquire().await?;
        let result = query.fetch_all(&mut *connection).await;
        let mut rows = connection.recycle(result)?;
        // An item that the budget of the day holds back is returned without a lease.
        rows.retain(|row| !matches!(optional_time_at(row, "lease_until"), Ok(None)));
        Ok(rows)
    }

    /// Returns the work of these roles that anybody can claim in workspaces on a host, each with the path of its plan.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn ready_work(&self, roles: &[Role], host: &str) -> Result<Vec<(WorkOf, String)>, StoreError> {
        let roles: Vec<&str> = roles.iter().map(Role::as_str).collect();
        let rows = repeated!(self, connection => sqlx::query(WORK_READY).bind(&roles).bind(host).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                let role = Role::from(row.try_get::<&str, _>("target")?);
                Ok((WorkOf { role, run: run_id(row.try_get("run")?) }, row.try_get("path")?))
            })
            .collect()
    }

    pub(crate) async fn claimed_from_row(&self, row: &PgRow, token: Token) -> Result<Claimed, StoreError> {
        let run = run_id(row.try_get("run")?);
        let meta = self.run_meta(run).await?;
        let work: Work = from_json(row.try_get("work")?, "an item's work")?;
        let item = Item {
            id: ItemId::new(row.try_get::<String, _>("id")?),
            run,
            at: at_of(row)?,
            available_at: time_at(row, "available_at")?,
            work,
        };
        Ok(Claimed {
            item,
            generation: row.try_get("generation")?,
            token,
            run_name: meta.name.clone(),
            graph: self.graph(&Digest::new(row.try_get::<String, _>("graph")?)).await?,
            plan: meta.plan_path.clone(),
            run_config: RunConfig::from_row(row)?,
            host: meta.host.clone(),
            workspace: meta.workspace.clone(),
            lease_until: time_at(row, "lease_until")?,
            hard_deadline: time_at(row, "hard_deadline")?,
        })
    }

    /// Returns how long from now something of a lane becomes due in a host's workspaces that rests, or did just now; of agents
    /// of any role, where none is named. `None` where nothing rests.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn next_due(&self, lane: &ClaimLane, host: &str) -> Result<Option<Duration>, StoreError> {
        let (statement, roles) = match lane {
            ClaimLane::Gate => (NEXT_GATE, None),
            ClaimLane::Served => (NEXT_SERVED, None),
            ClaimLane::Agent(roles) => (NEXT_WORK, Some(roles.iter().map(Role::as_str).collect::<Vec<_>>())),
            ClaimLane::Among(work) => (NEXT_WORK, Some(work.iter().map(|work| work.role.as_str()).collect())),
        };
        let row = repeated!(self, connection => {
            let query = sqlx::query(statement).bind(host);
            let query = match &roles {
                Some(roles) => query.bind(roles),
                None => query,
            };
            query.fetch_one(&mut *connection)
        })?;
        wait_of(&row)
    }
}

fn wait_of(row: &PgRow) -> Result<Option<Duration>, StoreError> {
    let wait: Option<i64> = row.try_get("wait_micros")?;
    Ok(wait.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
}
