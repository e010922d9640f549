//! Audits the rows beside a run's history, which must fit it: its columns, its approval, its asks, answers given, outputs
//! named.

use planctl_engine::RunStatus;
use sha2::{Digest as _, Sha256};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Audit;
use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{status_word, stored_run};
use crate::runs::RunView;
use crate::store::Store;

pub(crate) const AUDIT_BESIDE: &str = "select r.status, r.active, a.digest as approved, a.plan as approved_plan, \
     (select count(*) from approvals b where b.nonce = a.nonce) as of_nonce, \
     (select o.name from runs o where o.workspace = r.workspace and o.active and o.id <> r.id and not (o.apart or r.apart) limit 1) as other, \
     exists (select from items i where i.run = r.id and i.state = 'withdrawn') as is_ending, \
     array(select c.key from commands c where c.run = r.id and c.seq > 0 and not exists (select from history h \
       where h.run = c.run and h.seq = c.seq and h.kind = 'input' and h.name like 'human.%') order by 1 limit 10) as lost, \
     array(select v.voter || ' on ask ' || k.number from votes v join asks k on k.item = v.item where k.run = r.id \
       and not exists (select from history h where h.run = r.id and h.kind = 'input' and h.name in ('human.voted', 'human.answered') \
         and h.body #>> '{event,decision,item}' = v.item and h.body #>> '{event,by}' = v.voter \
         and h.body #>> '{event,decision,answer}' = v.answer) order by v.id limit 10) as unheard, \
     array(select k.number from asks k where k.run = r.id and k.closed_at is null \
       and not exists (select from items i where i.id = k.item) order by 1 limit 10) as dangling, \
     array(select d.digest from unnest($2::text[]) as d (digest) \
       where not exists (select from outputs o where o.digest = d.digest) order by 1 limit 10) as missing \
     from runs r left join approvals a on a.id = r.approval where r.id = $1";

impl Store {
    pub(super) async fn audit_beside(&self, audit: &mut Audit, view: &RunView) -> Result<(), StoreError> {
        let id = stored_run(view.run.id);
        let outputs: Vec<&str> = audit.outputs.iter().map(String::as_str).collect();
        let row = repeated!(self, connection => sqlx::query(AUDIT_BESIDE).bind(id).bind(&outputs).fetch_one(&mut *connection))?;
        audit.check_columns(view, &row)?;
        audit.check_approval(view, &row)?;
        self.audit_settings(audit, view).await?;
        for key in row.try_get::<Vec<String>, _>("lost")? {
            audit.add_finding(
                "I22",
                None,
                format!("what was accepted under the key `{key}` is not in its history"),
            );
        }
        for number in row.try_get::<Vec<i64>, _>("dangling")? {
            audit.add_finding("I7", None, format!("ask {number} is open and no item stands behind it"));
        }
        for vote in row.try_get::<Vec<String>, _>("unheard")? {
            audit.add_finding("I18", None, format!("the vote of {vote} is not in its history"));
        }
        for digest in row.try_get::<Vec<String>, _>("missing")? {
            audit.add_finding("I23", None, format!("output {digest} is named and not kept"));
        }
        Ok(())
    }

    /// Before a run is approved its settings may still change; approved settings may not.
    async fn audit_settings(&self, audit: &mut Audit, view: &RunView) -> Result<(), StoreError> {
        if view.run.approval.is_none() {
            return Ok(());
        }
        let digest = Sha256::digest(&view.run.settings).into();
        if let Some(fault) = self.find_settings_fault(view.run.id, &digest).await? {
            audit.add_finding("I12", None, fault);
        }
        Ok(())
    }
}

impl Audit {
    fn check_columns(&mut self, view: &RunView, row: &PgRow) -> Result<(), StoreError> {
        let status = view.run.head.status;
        let is_active = status == RunStatus::Active;
        let (word, active): (&str, bool) = (row.try_get("status")?, row.try_get("active")?);
        // A run that ended has its workspace until nobody works for it any more and another one wants it.
        let has_left = !active && (is_active || row.try_get("is_ending")?);
        if word != status_word(status) || has_left {
            self.add_finding(
                "I2",
                None,
                format!("lists show it as {word} and it is {}", status_word(status)),
            );
        }
        if is_active && let Some(other) = row.try_get::<Option<String>, _>("other")? {
            self.add_finding("I20", None, format!("{other} is active in the same workspace"));
        }
        if self.named_graph.as_ref().is_some_and(|named| *named != view.run.graph) {
            self.add_finding("I12", None, "its graph is not the one that its history names");
        }
        for item in &view.items {
            let spoken = self.generations.get(item.id.as_str());
            if spoken.is_some_and(|spoken| *spoken > item.generation) {
                self.add_finding(
                    "I8",
                    None,
                    format!("item {} is back at generation {}", item.id, item.generation),
                );
            }
        }
        Ok(())
    }

    /// Only of a run that goes on: an approval stands beside a run before the decision that it is for.
    fn check_approval(&mut self, view: &RunView, row: &PgRow) -> Result<(), StoreError> {
        let Some(approved) = row.try_get::<Option<&str>, _>("approved")? else { return Ok(()) };
        let plan: i64 = row.try_get("approved_plan")?;
        let is_of_it = approved == view.run.revision.as_str() && plan == view.run.plan.number();
        if view.run.head.status == RunStatus::Active && !is_of_it {
            self.add_finding("I12", None, "its approval is of another text");
        }
        if row.try_get::<i64, _>("of_nonce")? > 1 {
            self.add_finding("I18", None, "the decision to approve it was used twice");
        }
        Ok(())
    }
}
