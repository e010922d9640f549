//! The records of drafts: kept by the command that drafts, and read by the same command on another machine.

use planctl_api::Next;
use planctl_api::wire::draft_records::{DraftRecordCall, DraftRecordView, DraftVersionView};
use planctl_config::Config;
use planctl_store::NewDraftRecord;

use super::draft_asks::{goal_kept, refuse_long_key, rules_json};
use crate::node::services::{ServiceError, Services};

impl Services {
    /// Makes a draft of the same workspace on another machine one of this machine, with its asks.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn take_draft(&self, key: &str) -> Result<DraftVersionView, ServiceError> {
        let version = self.store.take_draft(self.own_workspace()?, key).await?;
        Ok(DraftVersionView { version })
    }

    /// Returns a draft as it was kept last.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn draft_record(&self, key: &str) -> Result<DraftRecordView, ServiceError> {
        let kept = self.store.draft_record(self.own_workspace()?, key).await?;
        Ok(kept.map_or_else(DraftRecordView::default, |kept| DraftRecordView {
            version: kept.version,
            record: Some(kept.record),
        }))
    }

    /// Keeps a draft over the version that its machine knows.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] where a part is too long, [`ServiceError::Conflict`] where another machine kept it meanwhile, and
    /// those of the store.
    pub async fn keep_draft(
        &self,
        key: &str,
        wanted: &DraftRecordCall,
        config: Option<&Config>,
    ) -> Result<DraftVersionView, ServiceError> {
        let workspace = self.own_workspace()?;
        refuse_long_key(key)?;
        let (rules, goal) = (rules_json(config, self.caller.actor.as_str())?, goal_kept(&wanted.goal));
        let (record, version, known) = (wanted.record.as_str(), wanted.version, wanted.known);
        let new = NewDraftRecord { workspace, key, goal: &goal, rules: &rules, record, version, known };
        match self.store.keep_draft(new).await? {
            true => Ok(DraftVersionView { version }),
            false => Err(ServiceError::Conflict {
                what: "keep this draft: another machine went on with it".to_owned(),
                next: Next::by_hand("the same command goes on with what that machine kept"),
            }),
        }
    }
}
