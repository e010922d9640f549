//! Approvals of plans.

use planctl_engine::{Digest, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Row};

use super::PLAN_STATUS_FOR_UPDATE;
use super::digest_at;
use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::{ApprovalId, PlanId};
use crate::rows::{optional_time_at, time_at};
use crate::store::Store;

pub(crate) const VOID_OTHERS: &str = "update approvals set voided_at = clock_timestamp(), voided_why = $3 \
     where plan = $1 and voided_at is null and ($2::text is null or digest <> $2)";

macro_rules! approval_columns {
    () => {
        "id, plan, digest, config_digest, config::text as config, protected::text as protected, by, note, at, voided_at"
    };
}

pub(crate) const APPROVE: &str = concat!(
    "insert into approvals (workspace, plan, digest, config_digest, config, protected, by, note, nonce) ",
    "select p.workspace, p.id, $2, $3, $4::json, $5::json, $6, $7, $8 from plans p where p.id = $1 ",
    "on conflict (nonce) do nothing returning ",
    approval_columns!()
);

macro_rules! approvals_where {
    ($which:literal) => {
        concat!("select ", approval_columns!(), " from approvals where ", $which)
    };
}

pub(crate) const APPROVAL: &str = approvals_where!("id = $1");

pub(crate) const APPROVAL_OF_NONCE: &str = approvals_where!("nonce = $1");

pub(crate) const APPROVAL_FOR: &str = approvals_where!(
    "plan = $1 and digest = $2 and config_digest = $3 and voided_at is null order by id desc limit 1"
);

/// A decision that a plan may run.
#[derive(Clone, Debug)]
pub struct NewApproval<'a> {
    /// The plan.
    pub plan: PlanId,
    /// The revision.
    pub digest: &'a Digest,
    /// The digest of the effective configuration.
    pub config_digest: &'a Digest,
    /// The effective configuration, as JSON.
    pub config: &'a str,
    /// The baseline of the protected files, as JSON.
    pub protected: &'a str,
    /// The person who approves.
    pub by: &'a str,
    /// Why, where they say so.
    pub note: Option<&'a str>,
}

/// A decision that a plan may run, as recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The plan.
    pub plan: PlanId,
    /// The revision.
    pub digest: Digest,
    /// The digest of the effective configuration.
    pub config_digest: Digest,
    /// The effective configuration, as JSON.
    pub config: String,
    /// The baseline of the protected files, as JSON.
    pub protected: String,
    /// The person who approved.
    pub by: String,
    /// Why, where they said so.
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
    /// When it ceased to serve.
    pub voided_at: Option<Timestamp>,
}

impl Approval {
    pub(crate) fn from_row(row: &PgRow) -> Result<Approval, StoreError> {
        Ok(Approval {
            id: ApprovalId(row.try_get("id")?),
            plan: PlanId(row.try_get("plan")?),
            digest: digest_at(row, "digest")?,
            config_digest: digest_at(row, "config_digest")?,
            config: row.try_get("config")?,
            protected: row.try_get("protected")?,
            by: row.try_get("by")?,
            note: row.try_get("note")?,
            at: time_at(row, "at")?,
            voided_at: optional_time_at(row, "voided_at")?,
        })
    }
}

impl Store {
    /// Records an approval, unless it repeats the newest one that holds for its text and configuration; returns the one that
    /// then holds, and whether it was repeated. It serves until the text or the configuration changes, or it is voided.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn approve(
        &self,
        approval: &NewApproval<'_>,
        repeats: impl Fn(&Approval) -> bool,
    ) -> Result<(Approval, bool), StoreError> {
        let nonce = crate::random::uuid();
        repeated!(self, connection => approve_on(&mut connection, approval, &repeats, nonce))?
    }

    /// Returns an approval.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn approval(&self, approval: ApprovalId) -> Result<Approval, StoreError> {
        let row = repeated!(self, connection => sqlx::query(APPROVAL).bind(approval.0).fetch_optional(&mut *connection))?;
        Approval::from_row(&row.ok_or_else(|| StoreError::not_found(format!("approval {}", approval.0)))?)
    }

    /// Returns the newest approval that still holds for this text and configuration (P18).
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn approval_for(
        &self,
        plan: PlanId,
        digest: &Digest,
        config_digest: &Digest,
    ) -> Result<Option<Approval>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(APPROVAL_FOR)
            .bind(plan.0)
            .bind(digest.as_str())
            .bind(config_digest.as_str())
            .fetch_optional(&mut *connection))?;
        row.as_ref().map(Approval::from_row).transpose()
    }

    /// Voids every approval of a plan that still holds.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn void_approvals(&self, plan: PlanId, why: &str) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(VOID_OTHERS).bind(plan.0).bind(None::<&str>).bind(why).execute(&mut *connection))?;
        Ok(())
    }
}

/// Several who approve one text at once come one after the other, by the lock on the plan's row.
async fn approve_on(
    connection: &mut PgConnection,
    new: &NewApproval<'_>,
    repeats: &impl Fn(&Approval) -> bool,
    nonce: uuid::Uuid,
) -> Result<Result<(Approval, bool), StoreError>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query(PLAN_STATUS_FOR_UPDATE).bind(new.plan.0).fetch_optional(&mut *transaction).await?;
    // A try before this one may have committed unheard.
    let own = sqlx::query(APPROVAL_OF_NONCE).bind(nonce).fetch_optional(&mut *transaction).await?;
    if let Some(own) = own {
        return Ok(Approval::from_row(&own).map(|own| (own, false)));
    }
    let held = sqlx::query(APPROVAL_FOR)
        .bind(new.plan.0)
        .bind(new.digest.as_str())
        .bind(new.config_digest.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
    match held.as_ref().map(Approval::from_row).transpose() {
        Ok(Some(held)) if repeats(&held) => return Ok(Ok((held, true))),
        Ok(_) => {}
        Err(error) => return Ok(Err(error)),
    }
    let row = sqlx::query(APPROVE)
        .bind(new.plan.0)
        .bind(new.digest.as_str())
        .bind(new.config_digest.as_str())
        .bind(new.config)
        .bind(new.protected)
        .bind(new.by)
        .bind(new.note)
        .bind(nonce)
        .fetch_optional(&mut *transaction)
        .await?;
    transaction.commit().await?;
    let Some(row) = row else { return Ok(Err(StoreError::not_found(format!("plan {}", new.plan.0)))) };
    Ok(Approval::from_row(&row).map(|approval| (approval, false)))
}
