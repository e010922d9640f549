//! The calls about drafts: the asks that they wait for, and what is kept of them.

use planctl_api::wire::AskView;
use planctl_api::wire::draft_asks::{DraftAsksCall, DraftAsksView};
use planctl_api::wire::draft_records::{DraftRecordCall, DraftRecordView, DraftTakeCall, DraftVersionView};

use super::Client;
use crate::failure::Failure;

impl Client {
    /// Opens the asks that a draft waits for; returns them in the same order, with the answers that were given.
    pub async fn open_draft_asks(&self, call: DraftAsksCall) -> Result<Vec<AskView>, Failure> {
        let view: DraftAsksView = self.api.post("/v1/drafts/asks", &[], &call).await?;
        Ok(view.asks)
    }

    /// Takes over a draft of this workspace that another machine kept; returns how often it was kept.
    pub async fn take_draft(&self, key: &str) -> Result<u64, Failure> {
        let call = DraftTakeCall { place: self.place_call() };
        let view: DraftVersionView = self.api.post(&format!("/v1/drafts/{key}/take"), &[], &call).await?;
        Ok(view.version)
    }

    /// Returns a draft of this workspace as it was kept last.
    pub async fn draft_record(&self, key: &str) -> Result<DraftRecordView, Failure> {
        self.api.get(&format!("/v1/drafts/{key}"), &[("workspace", self.workspace.as_str())]).await
    }

    /// Keeps a draft of this workspace; exit 5 where another machine kept it meanwhile.
    pub async fn keep_draft(&self, key: &str, call: DraftRecordCall) -> Result<(), Failure> {
        let call = DraftRecordCall { place: self.place_call(), ..call };
        self.api.post::<DraftVersionView>(&format!("/v1/drafts/{key}"), &[], &call).await.map(drop)
    }
}
