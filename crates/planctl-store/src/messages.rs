//! Messages to people: what is to be told of asks and runs, and the way of each message to the channels.
//!
//! Nothing here is part of a transition. A daemon reads which open asks, answered asks and ended runs nobody was told of, and
//! writes a message with a delivery for each channel in one statement. The message's key says what it is about, so of several
//! daemons one writes it. A delivery is claimed for a while; where its claimer dies, it becomes due again and is repeated
//! under the same id.

mod untold;

use std::time::Duration;

use planctl_engine::{RunId, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::page::Page;
use crate::random;
use crate::rows::{micros, stored_run, time_at};
use crate::store::Store;

pub use untold::Untold;
pub(crate) use untold::{
    ASKS_DECIDED, ASKS_TO_REMIND, ASKS_UNTOLD, BUDGETS_NOTICED, MARK_RUNS, ROLES_UNSERVED, RUNS_ENDED_UNTOLD,
};

/// The channels of a message, and until when each is quiet.
macro_rules! channels {
    () => {
        "(select q.channel, case when q.zone is not null then planctl_quiet_until_1(q.zone, q.begins::time, q.ends::time) end as until \
         from unnest($8::text[], $9::text[], $10::text[], $11::text[]) as q (channel, zone, begins, ends))"
    };
}

/// Written once: of a key that is known, nothing is written. A reminder moves the next one away; the decision ends them.
pub(crate) const TELL: &str = concat!(
    "with message as (insert into messages (id, workspace, run, ask, event, key, body) \
       values ($1, $2, $3, $4, $5, $6, $7) on conflict (key) do nothing returning id), \
     announced as (insert into announced_asks as n (ask, reminders, remind_at) \
       select $4, $12, clock_timestamp() + $13::bigint * interval '1 microsecond' from message where $12::int is not null \
       on conflict (ask) do update set reminders = excluded.reminders, remind_at = excluded.remind_at) \
     insert into deliveries (message, channel, due_at, held) \
     select message.id, c.channel, coalesce(c.until, clock_timestamp()), c.until is not null from message, ",
    channels!(),
    " c"
);
/// Deliveries that wait untried are of no use any more. Channels that heard of the ask hear how it ended.
pub(crate) const TELL_DECISION: &str = concat!(
    "with heard as (select d.id, d.channel, d.tries, d.state from deliveries d \
       join messages m on m.id = d.message where m.ask = $4), \
     message as (insert into messages (id, workspace, run, ask, event, key, body) \
       values ($1, $2, $3, $4, $5, $6, $7) on conflict (key) do nothing returning id), \
     superseded as (update deliveries d set state = 'superseded', ended_at = clock_timestamp() from heard h \
       where d.id = h.id and d.state = 'waiting'), \
     ended as (delete from announced_asks n where n.ask = $4) \
     insert into deliveries (message, channel, due_at, held) \
     select message.id, c.channel, coalesce(c.until, clock_timestamp()), c.until is not null from message, ",
    channels!(),
    " c where exists (select from heard h where h.channel = c.channel and h.tries > 0)"
);
/// Ends the reminders of an ask without a word.
pub(crate) const FORGET_ASK: &str = "with superseded as (update deliveries d set state = 'superseded', ended_at = clock_timestamp() \
       from messages m where m.ask = $1 and d.message = m.id and d.state = 'waiting') \
     delete from announced_asks n where n.ask = $1";

macro_rules! claim_deliveries {
    ($which:literal) => {
        concat!(
            "with due as (select d.id from deliveries d join messages m on m.id = d.message ",
            "join workspaces w on w.id = m.workspace where d.state = 'waiting' and d.due_at <= clock_timestamp() and ",
            $which,
            " order by d.due_at, d.id limit $2 for update of d skip locked) ",
            "update deliveries d set tries = d.tries + 1, due_at = clock_timestamp() + $3::bigint * interval '1 microsecond' ",
            "from due, messages m join workspaces w on w.id = m.workspace where d.id = due.id and m.id = d.message ",
            "returning d.id, d.channel, d.tries, d.held, m.id as message, m.event, m.body, m.created_at, w.path, ",
            "clock_timestamp() as now"
        )
    };
}
pub(crate) const CLAIM_DELIVERIES: &str = claim_deliveries!("w.host = $1");
/// The others that were held for the same channel of the same workspace.
pub(crate) const CLAIM_HELD: &str = claim_deliveries!(
    "d.held and (d.channel, m.workspace) = (select o.channel, p.workspace from deliveries o join messages p on p.id = o.message \
     where o.id = $1)"
);
pub(crate) const KNOWS_ZONE: &str = "select exists (select from pg_timezone_names where name = $1) as known";
pub(crate) const NEXT_DELIVERY: &str = "select (extract(epoch from least( \
       (select min(d.due_at) from deliveries d join messages m on m.id = d.message join workspaces w on w.id = m.workspace \
         where d.state = 'waiting' and w.host = $1), \
       (select min(n.remind_at) from announced_asks n join asks a on a.number = n.ask left join runs r on r.id = a.run \
         left join drafts g on g.id = a.draft join workspaces w on w.id = coalesce(r.workspace, g.workspace) \
         where w.host = $1)) - clock_timestamp()) * 1000000)::bigint as micros";
/// A delivery that was superseded meanwhile stays so; only what waits is tried again.
pub(crate) const END_TRY: &str = "with tried as (insert into delivery_tries (delivery, number, answer) values ($1, $2, $3) \
       on conflict (delivery, number) do update set answer = excluded.answer, at = clock_timestamp()) \
     update deliveries d set state = case when $4 = 'waiting' then d.state else $4 end, \
       due_at = clock_timestamp() + $5::bigint * interval '1 microsecond', \
       ended_at = case when $4 = 'waiting' then d.ended_at else clock_timestamp() end \
     where d.id = $1 and d.tries = $2 and (d.state = 'waiting' or $4 = 'delivered')";

macro_rules! deliveries_where {
    ($which:literal) => {
        concat!(
            "select d.id, d.channel, d.state, d.tries, d.due_at, d.ended_at, m.id as message, m.event, m.ask, m.created_at, ",
            "r.name as run_name, w.path, t.answer, t.at as tried_at from deliveries d join messages m on m.id = d.message ",
            "join workspaces w on w.id = m.workspace left join runs r on r.id = m.run ",
            "left join delivery_tries t on t.delivery = d.id and t.number = d.tries where ",
            $which
        )
    };
}
pub(crate) const DELIVERIES: &str = deliveries_where!(
    "($1::bigint is null or m.workspace = $1) and ($2::bigint is null or d.id < $2) \
     and (not $3 or d.state = 'failed' or d.state = 'waiting' and d.tries > 0) order by d.id desc limit $4"
);
pub(crate) const DELIVERY: &str = deliveries_where!("d.id = $1");
pub(crate) const REPLAY: &str = "update deliveries set state = 'waiting', due_at = clock_timestamp(), ended_at = null \
     where id = $1 and state <> 'waiting'";

/// A message about to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewMessage<'a> {
    /// The workspace that it is about.
    pub workspace: WorkspaceId,
    /// The run that it is about; none where it is about a draft.
    pub run: Option<RunId>,
    /// The ask that it is about.
    pub ask: Option<i64>,
    /// The name of what happened.
    pub event: &'a str,
    /// Its subject as a key; of one key there is one message.
    pub key: &'a str,
    /// Its content as JSON.
    pub body: &'a str,
    /// The channels that are to get it.
    pub channels: &'a [ToChannel],
}

/// A channel that is to get a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToChannel {
    /// Its name.
    pub name: String,
    /// The hours in which the message is held.
    pub quiet: Option<QuietHours>,
}

/// Hours of each day in which messages are held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuietHours {
    /// The name of the time zone, as Postgres knows it.
    pub zone: String,
    /// When they begin, as `22:00`.
    pub begin: String,
    /// When they end.
    pub end: String,
}

/// The messages that follow from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follows {
    /// Nothing.
    Nothing,
    /// A reminder of its ask, after this long; so many were sent already.
    Reminder {
        /// How many reminders were sent, with this one.
        sent: u32,
        /// When the next is due.
        after: Duration,
    },
    /// No further message of its ask.
    Decision,
}

/// A delivery that is claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueDelivery {
    /// Its number.
    pub id: i64,
    /// The message's id, the same at each try and on each channel.
    pub message: Uuid,
    /// The name of what happened.
    pub event: String,
    /// The message's content as JSON.
    pub body: String,
    /// The channel's name.
    pub channel: String,
    /// Which try this is, from 1.
    pub tries: u32,
    /// Says that it was held in quiet hours, so that it goes together with the others that were.
    pub is_held: bool,
    /// The workspace whose configuration says what the channel is.
    pub workspace_path: String,
    /// When the message was written.
    pub created_at: Timestamp,
    /// The database's time.
    pub now: Timestamp,
}

/// The state of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeliveryState {
    /// It is due, or will be.
    Waiting,
    /// The channel took it.
    Delivered,
    /// It is not tried again.
    Failed,
    /// Its ask was decided before the channel took it.
    Superseded,
}

impl DeliveryState {
    const ALL: [DeliveryState; 4] =
        [DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Failed, DeliveryState::Superseded];

    /// Returns the word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
            DeliveryState::Superseded => "superseded",
        }
    }
}

/// One delivery as lists show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryRow {
    /// Its number.
    pub id: i64,
    /// The message's id.
    pub message: Uuid,
    /// The name of what happened.
    pub event: String,
    /// The channel's name.
    pub channel: String,
    /// The run that it is about.
    pub run_name: Option<String>,
    /// The ask that it is about.
    pub ask: Option<i64>,
    /// The workspace.
    pub workspace_path: String,
    /// Its state.
    pub state: DeliveryState,
    /// How often it was tried.
    pub tries: u32,
    /// The outcome of the newest try.
    pub answer: Option<String>,
    /// When that was.
    pub tried_at: Option<Timestamp>,
    /// When it is tried next, while it waits.
    pub due_at: Option<Timestamp>,
    /// When the message was written.
    pub created_at: Timestamp,
}

impl Store {
    /// Writes a message with a delivery for each of its channels, unless one of its key is there.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn enqueue_message(&self, new: &NewMessage<'_>, follows: Follows) -> Result<(), StoreError> {
        let (statement, reminder) = match follows {
            Follows::Nothing => (TELL, None),
            Follows::Reminder { sent, after } => (TELL, Some((sent, after))),
            Follows::Decision => (TELL_DECISION, None),
        };
        let id = random::uuid();
        let names: Vec<&str> = new.channels.iter().map(|channel| channel.name.as_str()).collect();
        let of_quiet = |part: fn(&QuietHours) -> &str| -> Vec<Option<&str>> {
            new.channels.iter().map(|channel| channel.quiet.as_ref().map(part)).collect()
        };
        let (zones, begins, ends) =
            (of_quiet(|quiet| &quiet.zone), of_quiet(|quiet| &quiet.begin), of_quiet(|quiet| &quiet.end));
        repeated!(self, connection => {
            let query = sqlx::query(statement)
                .bind(id)
                .bind(new.workspace.0)
                .bind(new.run.map(stored_run))
                .bind(new.ask)
                .bind(new.event)
                .bind(new.key)
                .bind(new.body)
                .bind(&names)
                .bind(&zones)
                .bind(&begins)
                .bind(&ends);
            let query = match follows {
                Follows::Decision => query,
                Follows::Nothing | Follows::Reminder { .. } => query
                    .bind(reminder.map(|(sent, _)| i32::try_from(sent).unwrap_or(i32::MAX)))
                    .bind(reminder.map(|(_, after)| micros(after))),
            };
            query.execute(&mut *connection)
        })?;
        Ok(())
    }

    /// Ends the messages of an ask that is over where no channel wants to hear how.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn cancel_ask_messages(&self, ask: i64) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(FORGET_ASK).bind(ask).execute(&mut *connection))?;
        Ok(())
    }

    /// Claims deliveries of a host that are due; each becomes due again after the lease, unless its try ends before.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn claim_deliveries(
        &self,
        host: &str,
        limit: i64,
        lease: Duration,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(CLAIM_DELIVERIES)
            .bind(host)
            .bind(limit)
            .bind(micros(lease))
            .fetch_all(&mut *connection))?;
        rows.iter().map(due_delivery).collect()
    }

    /// Claims the other deliveries that were held in quiet hours for the channel of this one.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn claim_held_with(
        &self,
        delivery: &DueDelivery,
        limit: i64,
        lease: Duration,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(CLAIM_HELD)
            .bind(delivery.id)
            .bind(limit)
            .bind(micros(lease))
            .fetch_all(&mut *connection))?;
        rows.iter().map(due_delivery).collect()
    }

    /// Says whether Postgres knows a time zone by this name.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn knows_time_zone(&self, name: &str) -> Result<bool, StoreError> {
        let row =
            repeated!(self, connection => sqlx::query(KNOWS_ZONE).bind(name).fetch_one(&mut *connection))?;
        Ok(row.try_get("known")?)
    }

    /// Returns in how long the next delivery or reminder of a host is due.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn next_delivery(&self, host: &str) -> Result<Option<Duration>, StoreError> {
        let row =
            repeated!(self, connection => sqlx::query(NEXT_DELIVERY).bind(host).fetch_one(&mut *connection))?;
        let micros: Option<i64> = row.try_get("micros")?;
        Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    /// Records how a try ended; one that waits is tried again after this long.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn end_try(
        &self,
        delivery: &DueDelivery,
        state: DeliveryState,
        again_after: Duration,
        answer: &str,
    ) -> Result<(), StoreError> {
        let answer = answer.replace('\0', "\u{fffd}");
        repeated!(self, connection => sqlx::query(END_TRY)
            .bind(delivery.id)
            .bind(i32::try_from(delivery.tries).unwrap_or(i32::MAX))
            .bind(&answer)
            .bind(state.as_str())
            .bind(micros(again_after))
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Returns a page of deliveries, the newest first; on request those alone that failed or fail.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn deliveries(
        &self,
        workspace: Option<WorkspaceId>,
        is_failed: bool,
        page: &Page<i64>,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(DELIVERIES)
            .bind(workspace.map(|workspace| workspace.0))
            .bind(page.after)
            .bind(is_failed)
            .bind(page.limit)
            .fetch_all(&mut *connection))?;
        rows.iter().map(delivery_row).collect()
    }

    /// Makes a delivery that is over due again, under the same message; returns it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], and those of the connection.
    pub async fn replay(&self, delivery: i64) -> Result<DeliveryRow, StoreError> {
        repeated!(self, connection => sqlx::query(REPLAY).bind(delivery).execute(&mut *connection))?;
        let row = repeated!(self, connection => sqlx::query(DELIVERY).bind(delivery).fetch_optional(&mut *connection))?;
        let row = row.ok_or_else(|| StoreError::NotFound { what: format!("delivery {delivery}") })?;
        delivery_row(&row)
    }
}

fn due_delivery(row: &PgRow) -> Result<DueDelivery, StoreError> {
    Ok(DueDelivery {
        id: row.try_get("id")?,
        message: row.try_get("message")?,
        event: row.try_get("event")?,
        body: row.try_get("body")?,
        channel: row.try_get("channel")?,
        tries: tries(row)?,
        is_held: row.try_get("held")?,
        workspace_path: row.try_get("path")?,
        created_at: time_at(row, "created_at")?,
        now: time_at(row, "now")?,
    })
}

fn tries(row: &PgRow) -> Result<u32, StoreError> {
    Ok(u32::try_from(row.try_get::<i32, _>("tries")?).unwrap_or(0))
}

fn delivery_row(row: &PgRow) -> Result<DeliveryRow, StoreError> {
    let word: String = row.try_get("state")?;
    let state = DeliveryState::ALL.into_iter().find(|state| state.as_str() == word);
    let state = state.ok_or_else(|| StoreError::corrupt(format!("a delivery is `{word}`")))?;
    Ok(DeliveryRow {
        id: row.try_get("id")?,
        message: row.try_get("message")?,
        event: row.try_get("event")?,
        channel: row.try_get("channel")?,
        run_name: row.try_get("run_name")?,
        ask: row.try_get("ask")?,
        workspace_path: row.try_get("path")?,
        state,
        tries: tries(row)?,
        answer: row.try_get("answer")?,
        tried_at: crate::rows::optional_time_at(row, "tried_at")?,
        due_at: if state == DeliveryState::Waiting { Some(time_at(row, "due_at")?) } else { None },
        created_at: time_at(row, "created_at")?,
    })
}
