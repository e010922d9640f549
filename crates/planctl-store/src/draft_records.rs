//! The records of drafts (migration 0032): the newest that a machine kept, which another one goes on with.

use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::store::Store;

pub(crate) const DRAFT_RECORD: &str =
    "select record, record_version from drafts where workspace = $1 and key = $2 and record is not null";
/// Moves a draft with its asks to the workspace that goes on with it, from the same path on another machine, and reads its version.
pub(crate) const TAKE_DRAFT: &str = "with taken as ( \
       update drafts d set workspace = $1 where d.id = ( \
         select o.id from drafts o join workspaces w on w.id = o.workspace join workspaces own on own.id = $1 \
         where o.key = $2 and o.record is not null and o.workspace <> $1 and w.path = own.path \
           and not exists (select from drafts n where n.workspace = $1 and n.key = $2) \
         order by o.record_at desc limit 1) \
       returning d.record_version) \
     select coalesce((select record_version from taken), \
       (select record_version from drafts where workspace = $1 and key = $2), 0) as record_version";
/// Writes over the version that the machine knows. A repeated call finds its own version, and changes nothing. A draft that was
/// known and is not there went to another machine.
pub(crate) const KEEP_DRAFT: &str = "insert into drafts as d (workspace, key, goal, rules, record, record_version, record_at) \
     select $1::bigint, $2::text, $3::text, $4::text, $5::text, $6::bigint, clock_timestamp() \
     where $7::bigint = 0 or exists (select from drafts o where o.workspace = $1 and o.key = $2) \
     on conflict (workspace, key) do update set record = excluded.record, record_version = excluded.record_version, \
       record_at = excluded.record_at \
     where d.record_version = $7 or (d.record_version = excluded.record_version and d.record = excluded.record) \
     returning record_version";

/// A draft as it was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftRecord {
    /// How often it was kept.
    pub version: u64,
    /// The draft, as the command that works on it wrote it.
    pub record: String,
}

/// A draft that is to be kept.
#[derive(Clone, Copy, Debug)]
pub struct NewDraftRecord<'a> {
    /// The workspace of the draft.
    pub workspace: WorkspaceId,
    /// The key that tells it from other drafts of its workspace.
    pub key: &'a str,
    /// Its goal, in a person's words.
    pub goal: &'a str,
    /// The rules for its asks as JSON, where it has asked nothing yet.
    pub rules: &'a str,
    /// The draft, as the command that works on it wrote it.
    pub record: &'a str,
    /// How often it was kept.
    pub version: u64,
    /// The version that the machine knows; 0 where it knows none.
    pub known: u64,
}

impl Store {
    /// Makes a draft that another machine kept, in a workspace of the same path, one of this workspace, and returns its version; 0
    /// where none was kept.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn take_draft(&self, workspace: WorkspaceId, key: &str) -> Result<u64, StoreError> {
        let row = repeated!(self, connection => sqlx::query(TAKE_DRAFT)
            .bind(workspace.0)
            .bind(key)
            .fetch_one(&mut *connection))?;
        Ok(row.try_get::<i64, _>("record_version")?.unsigned_abs())
    }

    /// Returns a draft as it was kept last; nothing where none was kept.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn draft_record(
        &self,
        workspace: WorkspaceId,
        key: &str,
    ) -> Result<Option<DraftRecord>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(DRAFT_RECORD)
            .bind(workspace.0)
            .bind(key)
            .fetch_optional(&mut *connection))?;
        let Some(row) = row else { return Ok(None) };
        let version = row.try_get::<i64, _>("record_version")?.unsigned_abs();
        Ok(Some(DraftRecord { version, record: row.try_get("record")? }))
    }

    /// Keeps a draft. Returns false where another machine kept it since the version that this one knows.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn keep_draft(&self, new: NewDraftRecord<'_>) -> Result<bool, StoreError> {
        let number = |version: u64| i64::try_from(version).unwrap_or(i64::MAX);
        let row = repeated!(self, connection => sqlx::query(KEEP_DRAFT)
            .bind(new.workspace.0)
            .bind(new.key)
            .bind(new.goal)
            .bind(new.rules)
            .bind(new.record)
            .bind(number(new.version))
            .bind(number(new.known))
            .fetch_optional(&mut *connection))?;
        Ok(row.is_some())
    }
}
