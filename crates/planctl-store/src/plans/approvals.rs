//! Approvals of plans.

use planctl_engine::{Digest, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::digest_at;
use super::{ApprovalId, PlanId};
use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{optional_time_at, time_at};
use crate::store::Store;

pub(crate) const VOID_OTHERS: &str = "update approvals set voided_at = clock_timestamp(), voided_why = $3 \
     where plan = $1 and voided_at is null and ($2::text is null or digest <> $2)";

pub(crate) const APPROVE: &str = "insert into approvals (workspace, plan, digest, config_digest, config, protected, by, note, nonce) \
     select p.workspace, p.id, $2, $3, $4::json, $5::json, $6, $7, $8 from plans p where p.id = $1 \
     on conflict (nonce) do nothing";

macro_rules! approvals_where {
    ($which:literal) => {
        concat!(
            "select id, plan, digest, config_digest, config::text as config, protected::text as protected, by, note, ",
            "at, voided_at from approvals where ",
            $which
        )
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
    /// Records an approval. It serves until the text or the configuration changes, or it is voided.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn approve(&self, approval: &NewApproval<'_>) -> Result<Approval, StoreError> {
        let nonce = crate::random::uuid();
        repeated!(self, connection => sqlx::query(APPROVE)
            .bind(approval.plan.0)
            .bind(approval.digest.as_str())
            .bind(approval.config_digest.as_str())
            .bind(approval.config)
            .bind(approval.protected)
            .bind(approval.by)
            .bind(approval.note)
            .bind(nonce)
            .execute(&mut *connection))?;
        let row = repeated!(self, connection => sqlx::query(APPROVAL_OF_NONCE).bind(nonce).fetch_optional(&mut *connection))?;
        Approval::from_row(&row.ok_or_else(|| StoreError::not_found(format!("plan {}", approval.plan.0)))?)
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
