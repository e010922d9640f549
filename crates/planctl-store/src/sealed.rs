//! Commands and settings of runs, sealed when a person approves them: a value changed beside planctl starts nothing.
//!
//! The rows of `run_settings` are a chain of their own, each bound to the line of history at which it was made. The digest of
//! the settings that start work must be the newest row's (A2).

use planctl_engine::RunId;
use sha2::{Digest as _, Sha256};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::stored_run;
use crate::store::Store;

pub(crate) const SEAL: &str = "select planctl_seal_settings($1)";
pub(crate) const SEALS: &str = "select s.number, s.seq, s.chain, s.approval, s.digest, s.hash, \
     (s.seq = 0 or exists (select from history h where h.run = s.run and h.seq = s.seq and h.hash = s.chain)) as is_linked \
     from run_settings s where s.run = $1 order by s.number";

impl Store {
    /// Says why a run's settings may start nothing, where they are not those that a person approved.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn settings_fault(&self, run: RunId, settings: &str) -> Result<Option<String>, StoreError> {
        let digest: [u8; 32] = Sha256::digest(settings).into();
        if self.sound().holds(run, &digest) {
            return Ok(None);
        }
        let fault = self.find_settings_fault(run, &digest).await?;
        if fault.is_none() {
            self.sound().keep(run, digest);
        }
        Ok(fault)
    }

    /// Checks the chain of a run's settings, and that its newest link is of these; for `audit`, which uses no cache.
    pub(crate) async fn find_settings_fault(
        &self,
        run: RunId,
        digest: &[u8; 32],
    ) -> Result<Option<String>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(SEALS).bind(id).fetch_all(&mut *connection))?;
        let mut before: Vec<u8> = Vec::new();
        let mut newest: Vec<u8> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let number: i64 = row.try_get("number")?;
            newest = row.try_get("digest")?;
            let hash = Sha256::new()
                .chain_update(&before)
                .chain_update(id.as_bytes())
                .chain_update(number.to_be_bytes())
                .chain_update(row.try_get::<i64, _>("seq")?.to_be_bytes())
                .chain_update(row.try_get::<Vec<u8>, _>("chain")?)
                .chain_update(row.try_get::<Option<i64>, _>("approval")?.unwrap_or(0).to_be_bytes())
                .chain_update(&newest)
                .finalize();
            before = row.try_get("hash")?;
            let is_next = usize::try_from(number).is_ok_and(|number| number == at + 1);
            if !is_next || hash[..] != before[..] || !row.try_get::<bool, _>("is_linked")? {
                return Ok(Some(format!(
                    "row {number} of run_settings for this run was changed beside planctl"
                )));
            }
        }
        if newest[..] == digest[..] {
            return Ok(None);
        }
        Ok(Some(match rows.len() {
            0 => "nobody approved the settings of this run".to_owned(),
            _ => "the column `settings` of this run's row in `runs` is not what was approved".to_owned(),
        }))
    }
}
