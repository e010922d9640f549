//! Claims of several workers that wait for the same roles, in one statement.

use std::time::Duration;

use planctl_engine::Role;
use sqlx::Row;

use crate::connections::Planning;
use crate::effects::micros;
use crate::error::StoreError;
use crate::queue::{Claimed, claimable, first_of_each, leased_columns};
use crate::store::Store;
use crate::token::Token;

macro_rules! claim_for_all {
    ($which:expr) => {
        concat!(
            "with able as materialized (select array(select s.n::int from unnest($4::text[]) with ordinality ",
            "as s (instance, n) where not exists (select from workers k where k.id = s.instance and k.paused)) as places), ",
            "candidate as materialized (select i.id, i.due_at, i.locks from items i where ",
            claimable!(),
            " and i.lane = 'agent' and ",
            $which,
            " and i.served_on is null and i.home = $2 ",
            "order by i.due_at, i.id limit (select cardinality(places) from able) for update skip locked), ",
            // Of two that need the same lock, the one that is due later waits for another claim.
            "chosen as materialized (select array(select c.id from candidate c where c.locks is null or not exists ",
            "(select from candidate e where e.locks && c.locks and (e.due_at, e.id) < (c.due_at, c.id))) as ids), ",
            // An item's place among the chosen is whose it is among those who can have one.
            "taken as (update items i set state = 'leased', generation = i.generation + 1, ",
            "token_hash = ($3::bytea[])[a.places[array_position(c.ids, i.id)]], ",
            "instance = ($4::text[])[a.places[array_position(c.ids, i.id)]], ",
            "host = $2, boot = '', own = false, lease_until = clock_timestamp() + interval '1 microsecond' ",
            "* ($5::bigint[])[a.places[array_position(c.ids, i.id)]], ",
            "hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' ",
            "from able a, chosen c where i.id = any(c.ids) ",
            "and (i.locks is null or planctl_take_locks(i.locks, i.run, i.node)) ",
            "returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, ",
            "i.hard_deadline, a.places[array_position(c.ids, i.id)] as place) ",
            "select ",
            leased_columns!(),
            ", i.place from taken i join runs r on r.id = i.run"
        )
    };
}

pub(crate) const CLAIM_OF_ONE_FOR_ALL: &str = claim_for_all!("i.target = ($1::text[])[1]");
pub(crate) const CLAIM_OF_ANY_FOR_ALL: &str =
    claim_for_all!(first_of_each!("$1::text[]", "$2", "", "64 + cardinality($4::text[])"));

/// A worker that waits for an item.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Who claims.
    pub instance: String,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
    /// The secret that the lease is to be proved by.
    pub token: Token,
}

impl Store {
    /// Claims work of these roles in workspaces on a host for as many of the waiting as there is some, what is due first
    /// for the first; nothing for those whom somebody paused. Returns what each got.
    ///
    /// It is tried once, for all or for none: whoever is not served claims alone.
    ///
    /// # Errors
    ///
    /// Those of the connection; and where a secret has a lease already, or another claim took a lock at the same moment.
    pub async fn claim_for_all(
        &self,
        roles: &[Role],
        host: &str,
        waiting: &[Waiting],
    ) -> Result<Vec<Option<Claimed>>, StoreError> {
        let statement = if roles.len() == 1 { CLAIM_OF_ONE_FOR_ALL } else { CLAIM_OF_ANY_FOR_ALL };
        let query = sqlx::query(statement)
            .bind(roles.iter().map(Role::as_str).collect::<Vec<_>>())
            .bind(host)
            .bind(waiting.iter().map(|waiting| waiting.token.hash()).collect::<Vec<_>>())
            .bind(waiting.iter().map(|waiting| waiting.instance.as_str()).collect::<Vec<_>>())
            .bind(waiting.iter().map(|waiting| micros(waiting.lease)).collect::<Vec<_>>());
        let mut connection = self.connections().acquire(Planning::ByIndex).await?;
        let result = query.fetch_all(&mut *connection).await;
        let rows = connection.recycle(result)?;
        let mut all: Vec<Option<Claimed>> = waiting.iter().map(|_| None).collect();
        for row in &rows {
            let place = usize::try_from(row.try_get::<i32, _>("place")?).unwrap_or_default();
            let found =
                place.checked_sub(1).and_then(|index| Some((waiting.get(index)?, all.get_mut(index)?)));
            let (waiting, claimed) =
                found.ok_or_else(|| StoreError::corrupt("an item was claimed for nobody"))?;
            *claimed = Some(self.claimed(row, waiting.token.clone()).await?);
        }
        Ok(all)
    }
}
