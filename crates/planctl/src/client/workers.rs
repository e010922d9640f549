//! The calls about tokens, roles and workers.

use planctl_api::wire::RoleWorkList;
use planctl_api::wire::calls::Nothing;
use planctl_api::wire::work::{TokenCall, TokenList, TokenMade, TokenView, WorkerList, WorkerView};

use super::Client;
use crate::api;
use crate::failure::Failure;

impl Client {
    /// Makes a token, and returns its secret this once.
    pub async fn make_token(&self, call: &TokenCall) -> Result<TokenMade, Failure> {
        self.api.post("/v1/tokens", &[], call).await
    }

    /// Returns all tokens, without their secrets.
    pub async fn tokens(&self) -> Result<TokenList, Failure> {
        self.api.get_all_pages("/v1/tokens", &[]).await
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, id: &str) -> Result<TokenView, Failure> {
        self.api.delete(&format!("/v1/tokens/{}", api::path_segment(id))).await
    }

    /// Returns the roles that have work out, or workers who offer to do theirs.
    pub async fn role_work(&self) -> Result<RoleWorkList, Failure> {
        self.api.get_all_pages("/v1/roles", &[]).await
    }

    /// Returns the workers that asked for work.
    pub async fn workers(&self) -> Result<WorkerList, Failure> {
        self.api.get_all_pages("/v1/workers", &[]).await
    }

    /// Has a worker claim nothing more, or claim again.
    pub async fn pause_worker(&self, worker: &str, pauses: bool) -> Result<WorkerView, Failure> {
        let verb = if pauses { "pause" } else { "resume" };
        self.api.post(&format!("/v1/workers/{}/{verb}", api::path_segment(worker)), &[], &Nothing {}).await
    }
}
