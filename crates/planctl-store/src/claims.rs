//! Claims of several workers that wait for the same roles, at once.

use planctl_engine::Role;
use sqlx::Row;

use crate::claimed::Claimed;
use crate::error::StoreError;
use crate::holder::{ClaimRequest, Claimant};
use crate::queue::Sought;
use crate::store::Store;

impl Store {
    /// Claims due work of these roles in workspaces on a host for these workers, in the order of the requests. A paused
    /// worker gets nothing. Returns the claimed item of each request.
    ///
    /// It is tried once: a worker that got nothing claims alone.
    ///
    /// # Errors
    ///
    /// Those of the connection; and where a secret has a lease already.
    pub async fn claim_for_all(
        &self,
        roles: &[Role],
        host: &str,
        requests: &[ClaimRequest],
    ) -> Result<Vec<Option<Claimed>>, StoreError> {
        let claimants: Vec<Claimant<'_>> = requests.iter().map(ClaimRequest::claimant).collect();
        let targets = roles.iter().map(Role::as_str).collect();
        let sought = Sought { reach: "roles", lane: "agent", run: None, targets, runs: Vec::new(), host };
        let rows = self.claim_rows(sought, &claimants).await?;
        let mut all: Vec<Option<Claimed>> = requests.iter().map(|_| None).collect();
        for row in &rows {
            let place = usize::try_from(row.try_get::<i32, _>("place")?).unwrap_or_default();
            let found =
                place.checked_sub(1).and_then(|index| Some((requests.get(index)?, all.get_mut(index)?)));
            let (request, claimed) =
                found.ok_or_else(|| StoreError::corrupt("an item was claimed for nobody"))?;
            *claimed = Some(self.claimed_from_row(row, request.token.clone()).await?);
        }
        Ok(all)
    }
}
