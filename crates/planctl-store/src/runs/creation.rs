//! Makes runs.

use planctl_engine::{Budget, Digest, ItemId, Run, RunId};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::RunRow;
use crate::connections::{RetryPolicy, repeated};
use crate::error::{StoreError, violates_constraint};
use crate::history::genesis;
use crate::holder::ServedRole;
use crate::ids::{ApprovalId, PlanId};
use crate::requests::RequestId;
use crate::rows::{run_id, status_word, stored_run, stored_time, to_json};
use crate::sealed::SEAL;
use crate::store::Store;

macro_rules! new_run {
    () => {
        "insert into runs (id, plan, workspace, stem, number, name, revision, graph, approval, settings, \
     status, head, chain, created_at, served, apart) \
     select $1, p.id, p.workspace, $3, n.number, $3 || '-' || n.number, v.digest, v.graph, $5, $6::json, $7, $8::json, $9, $10, \
       $11::text[], $12::text is not null \
     from plans p join revisions v on v.plan = p.id and v.digest = $4, \
       lateral (select coalesce(max(r.number), 0) + 1 as number from runs r where r.workspace = p.workspace and r.stem = $3) n \
     where p.id = $2 on conflict (id) do nothing"
    };
}

/// A request makes one run, and that is line 0 of what was accepted under its keys.
macro_rules! of_request {
    () => {
        ", made as (insert into commands (key, run, body_hash, seq, at) select $13::text, id, ''::bytea, 0, $10 from run \
     where $13::text is not null) "
    };
}

pub(crate) const NEW_RUN: &str =
    concat!("with run as (", new_run!(), " returning id)", of_request!(), "select id from run");

/// The id's end keeps runs of different databases apart that have the same name in one repository.
pub(crate) const NEW_RUN_APART: &str = concat!(
    "with run as (",
    new_run!(),
    " returning id, name || '-' || right(replace(id::text, '-', ''), 6) as own)",
    of_request!(),
    "insert into worktrees (run, root, path, branch, base, left_behind) \
     select id, $12 || '/' || own, $12 || '/' || own || $14, 'planctl/' || own, $15, $16 from run"
);

/// A run of a sub-plan waits for nobody, as one that works apart.
pub(crate) const NEW_SUB_PLAN: &str = concat!(
    "with run as (",
    new_run!(),
    " returning id)",
    of_request!(),
    "insert into sub_plans (run, parent, item, place, depth, budget) select id, $14, $15, $16, $17, $18::json from run"
);

pub(crate) const ATTACH_APPROVAL: &str = "update runs set approval = $2 where id = $1";

/// A run to be made.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// The plan.
    pub plan: PlanId,
    /// The revision, which must be kept already.
    pub revision: &'a Digest,
    /// The beginning of its name: the plan file's stem. The name gets a number, as in `fix-auth-3`.
    pub stem: &'a str,
    /// The approval that serves, where there is one already.
    pub approval: Option<ApprovalId>,
    /// The settings of its work (agents, isolation, limits) as JSON; the store only keeps it.
    pub settings: &'a str,
    /// The roles that these settings serve.
    pub served: &'a [ServedRole],
    /// The request that makes it, and makes one.
    pub request: Option<RequestId>,
}

/// A worktree that a new run shall have.
#[derive(Clone, Debug)]
pub struct NewWorktree<'a> {
    /// The folder in which its own is made, named after the run.
    pub folder: &'a str,
    /// Where in the worktree steps work: empty, or a relative path.
    pub inside: &'a str,
    /// The commit that it begins with.
    pub base: &'a str,
    /// How many changes of the workspace are committed nowhere.
    pub left_behind: usize,
}

/// A run to be made for an item of another one.
#[derive(Clone, Copy, Debug)]
pub struct NewAround<'a> {
    /// The run around it.
    pub parent: RunId,
    /// The item that waits for its end.
    pub item: &'a ItemId,
    /// Where it works.
    pub place: &'a str,
    /// How many plans are around it.
    pub depth: i32,
}

/// Where a new run works.
enum RunLocation<'a> {
    Workspace,
    Worktree(&'a NewWorktree<'a>),
    Around(&'a NewAround<'a>),
}

impl Store {
    /// Makes a run of which nothing has been said yet; submit it with [`Store::apply`]. Where its request made one before,
    /// returns that.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] where the revision is not kept, and those of the connection.
    pub async fn create_run(&self, new: &NewRun<'_>) -> Result<RunRow, StoreError> {
        self.create(new, &RunLocation::Workspace).await
    }

    /// Makes a run that shall work in a worktree of its own; nothing is made on disk.
    ///
    /// # Errors
    ///
    /// Those of [`Store::create_run`].
    pub async fn create_run_apart(
        &self,
        new: &NewRun<'_>,
        worktree: &NewWorktree<'_>,
    ) -> Result<RunRow, StoreError> {
        self.create(new, &RunLocation::Worktree(worktree)).await
    }

    /// Makes the run that an item of another one waits for; where that was done before, returns what was made then.
    ///
    /// # Errors
    ///
    /// Those of [`Store::create_run`].
    pub async fn create_sub_plan(
        &self,
        new: &NewRun<'_>,
        around: &NewAround<'_>,
    ) -> Result<RunRow, StoreError> {
        match self.create(new, &RunLocation::Around(around)).await {
            Err(StoreError::NotFound { .. }) if self.sub_plan_of(around.item).await?.is_some() => {}
            made => return made,
        }
        let made = self.sub_plan_of(around.item).await?;
        made.ok_or_else(|| StoreError::not_found(format!("the run of {}", around.item)))
    }

    async fn create(&self, new: &NewRun<'_>, location: &RunLocation<'_>) -> Result<RunRow, StoreError> {
        let revision = self.revision(new.plan, new.revision).await?;
        let now = self.now().await?;
        let millis = u64::try_from(now.as_micros() / 1000).unwrap_or(0);
        let id = run_id(crate::random::uuid_at(millis));
        let left = match location {
            RunLocation::Around(around) => self.budget_set_aside_for(around.item).await?,
            RunLocation::Workspace | RunLocation::Worktree(_) => Budget::default(),
        };
        let run = Run::new(id, &revision.graph, now).within(left);
        let head = to_json(&run.head);
        let served: Vec<&str> = new.served.iter().map(ServedRole::as_str).collect();
        let mut retries = RetryPolicy::new(self.settings());
        loop {
            let attempt = async {
                let mut connection = self.connections().acquire().await?;
                let (statement, folder) = match location {
                    RunLocation::Workspace => (NEW_RUN, None),
                    RunLocation::Worktree(worktree) => (NEW_RUN_APART, Some(worktree.folder)),
                    RunLocation::Around(around) => (NEW_SUB_PLAN, Some(around.place)),
                };
                let mut query = sqlx::query(statement)
                    .bind(stored_run(id))
                    .bind(new.plan.0)
                    .bind(new.stem)
                    .bind(new.revision.as_str())
                    .bind(new.approval.map(|approval| approval.0))
                    .bind(new.settings)
                    .bind(status_word(run.head.status))
                    .bind(&head)
                    .bind(&genesis(id)[..])
                    .bind(stored_time(now))
                    .bind(&served)
                    .bind(folder)
                    .bind(new.request.map(|request| request.to_string()));
                if let RunLocation::Around(NewAround { parent, item, place, depth }) = location {
                    query = query.bind(stored_run(*parent)).bind(item.as_str()).bind(*place).bind(*depth);
                    query = query.bind((left != Budget::default()).then(|| to_json(&left)));
                }
                if let RunLocation::Worktree(NewWorktree { inside, base, left_behind, .. }) = location {
                    let inside = if inside.is_empty() { String::new() } else { format!("/{inside}") };
                    let left_behind = i32::try_from(*left_behind).unwrap_or(i32::MAX);
                    query = query.bind(inside).bind(*base).bind(left_behind);
                }
                let result = query.execute(&mut *connection).await;
                connection.recycle(result)
            };
            match attempt.await {
                Ok(_) => {
                    if let Some(approval) = new.approval {
                        self.attach_approval(id, approval).await?;
                    }
                    return self.run(id).await;
                }
                // Somebody else made it at the same moment.
                Err(error) if violates_constraint(&error, "sub_plans_item_key") => return self.run(id).await,
                // Another call of the request made it at the same moment.
                Err(error) if violates_constraint(&error, "commands_pkey") => {
                    let made = match new.request {
                        Some(request) => self.run_of_request(request).await?,
                        None => None,
                    };
                    return made.ok_or_else(|| StoreError::not_found("the run of a request"));
                }
                // Somebody else took the number at the same moment.
                Err(error) if violates_constraint(&error, "runs_stem_number_key") => {}
                Err(error) => retries.wait_or_fail(error).await?,
            }
        }
    }

    /// Notes under which approval a run runs, and seals the settings that it has.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn attach_approval(&self, run: RunId, approval: ApprovalId) -> Result<(), StoreError> {
        let id = stored_run(run);
        repeated!(self, connection => attach_on(&mut connection, id, approval))?;
        Ok(())
    }
}

/// Two statements, so that the second sees the row that the first has changed and holds.
async fn attach_on(
    connection: &mut PgConnection,
    run: Uuid,
    approval: ApprovalId,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query(ATTACH_APPROVAL).bind(run).bind(approval.0).execute(&mut *transaction).await?;
    sqlx::query(SEAL).bind(run).execute(&mut *transaction).await?;
    transaction.commit().await
}
