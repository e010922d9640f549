//! Failures of runs that a person has seen and leaves as they are (migration 0029).

use planctl_engine::RunId;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::notifier::WakeFor;
use crate::rows::stored_run;
use crate::store::Store;

pub(crate) const ACKNOWLEDGE: &str = "insert into acknowledgements (run, ended_at, by, note) \
     select r.id, r.ended_at, $2, $3 from runs r where r.id = $1 and r.ended_at is not null on conflict do nothing";

impl Store {
    /// Records that a person has seen how a run ended; says whether nobody had done so before.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn acknowledge_failure(
        &self,
        run: RunId,
        by: &str,
        note: Option<&str>,
    ) -> Result<bool, StoreError> {
        let id = stored_run(run);
        let done = repeated!(self, connection => sqlx::query(ACKNOWLEDGE)
            .bind(id)
            .bind(by)
            .bind(note)
            .execute(&mut *connection))?;
        // Pages that show it draw it again.
        self.notifier().notify(run, WakeFor::UNKNOWN);
        Ok(done.rows_affected() > 0)
    }
}
