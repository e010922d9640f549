//! Topics: named streams of notes that steps can subscribe to. Notes are only ever added, and count from 1.

use planctl_engine::{Actor, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::{RetryPolicy, repeated};
use crate::error::{StoreError, violates_constraint};
use crate::page::Page;
use crate::random;
use crate::requests::RequestId;
use crate::rows::time_at;
use crate::store::Store;

macro_rules! notes_where {
    ($which:literal) => {
        concat!(
            "select n.number, n.by, n.body, n.at, t.newest from notes n join topics t on t.id = n.topic where ",
            $which
        )
    };
}
pub(crate) const POST_NOTE: &str = "with topic as (insert into topics (name, newest) values ($1, 1) \
     on conflict (name) do update set newest = topics.newest + 1, posted_at = clock_timestamp() returning id, newest) \
     insert into notes (topic, number, by, body, call) select id, newest, $2, $3, $4 from topic";
pub(crate) const NOTE_OF_CALL: &str = notes_where!("n.call = $1");
pub(crate) const NOTES: &str = notes_where!("t.name = $1 and n.number > $2 order by n.number limit $3");
/// The newest notes that together fit, oldest first; the newest of all in any case.
pub(crate) const NEWEST_NOTES: &str = "select number, by, body, at, newest from (select n.*, \
       sum(octet_length(n.body)) over (order by n.number desc) as bytes from (select n.number, n.by, n.body, n.at, t.newest \
       from notes n join topics t on t.id = n.topic where t.name = $1 order by n.number desc limit $2) n) n \
     where bytes <= $3 or number = newest order by number";
pub(crate) const TOPICS: &str = "select name, newest, posted_at from topics \
     where $1::text is null or name > $1 order by name limit $2";

/// The most bytes of one note.
pub const NOTE_BYTES_MAX: usize = 64 * 1024;

/// The name of a topic: up to 100 letters, digits, `-`, `_`, `.` and `/`, as in a plan's subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicName(String);

impl TopicName {
    /// The most characters of a name.
    pub const LENGTH_MAX: usize = 100;

    /// Reads a name.
    pub fn parse(text: &str) -> Option<TopicName> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
        let fits = (1..=TopicName::LENGTH_MAX).contains(&text.len());
        (fits && is_plain).then(|| TopicName(text.to_owned()))
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A topic that has notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicRow {
    /// Its name.
    pub name: String,
    /// How many notes it has.
    pub notes: i64,
    /// When the newest was posted.
    pub posted_at: Timestamp,
}

/// One note of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicNote {
    /// Its number in the topic, from 1.
    pub number: i64,
    /// The author.
    pub by: Actor,
    /// Its text, which may say anything.
    pub text: String,
    /// When it was posted.
    pub at: Timestamp,
    /// How many notes the topic has.
    pub of: i64,
}

impl TopicNote {
    fn from_row(row: &PgRow) -> Result<TopicNote, StoreError> {
        Ok(TopicNote {
            number: row.try_get("number")?,
            by: Actor::new(row.try_get::<String, _>("by")?),
            text: row.try_get("body")?,
            at: time_at(row, "at")?,
            of: row.try_get("newest")?,
        })
    }
}

impl Store {
    /// Adds a note to a topic, which begins with its first. A NUL, which Postgres cannot hold, becomes U+FFFD. A request
    /// adds one: where it did so before, that one is returned.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLong`] and those of the connection.
    pub async fn post_note(
        &self,
        topic: &TopicName,
        by: &Actor,
        text: &str,
        request: Option<RequestId>,
    ) -> Result<TopicNote, StoreError> {
        if text.len() > NOTE_BYTES_MAX {
            return Err(StoreError::TooLong { what: "a note", bytes: text.len(), bytes_max: NOTE_BYTES_MAX });
        }
        let text = text.replace('\0', "\u{fffd}");
        let call = request.map_or_else(random::uuid, |request| request.0);
        let mut retries = RetryPolicy::new(self.settings());
        loop {
            let attempt = async {
                let mut connection = self.connections().acquire().await?;
                let query =
                    sqlx::query(POST_NOTE).bind(topic.as_str()).bind(by.as_str()).bind(&text).bind(call);
                let result = query.execute(&mut *connection).await;
                connection.recycle(result)
            };
            match attempt.await {
                Ok(_) => break,
                // Posted before the connection broke, or by an earlier call of the request.
                Err(error) if violates_constraint(&error, "notes_call_key") => break,
                Err(error) => retries.wait_or_fail(error).await?,
            }
        }
        let row =
            repeated!(self, connection => sqlx::query(NOTE_OF_CALL).bind(call).fetch_one(&mut *connection))?;
        TopicNote::from_row(&row)
    }

    /// Returns at most `limit` notes of a topic after number `since`, oldest first; of an unknown topic, none.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn notes(&self, topic: &str, since: i64, limit: i64) -> Result<Vec<TopicNote>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(NOTES).bind(topic).bind(since).bind(limit).fetch_all(&mut *connection))?;
        rows.iter().map(TopicNote::from_row).collect()
    }

    /// Returns the newest notes of a topic, at most `limit` and of about `bytes_max` bytes together, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn newest_notes(
        &self,
        topic: &str,
        limit: i64,
        bytes_max: i64,
    ) -> Result<Vec<TopicNote>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(NEWEST_NOTES).bind(topic).bind(limit).bind(bytes_max).fetch_all(&mut *connection))?;
        rows.iter().map(TopicNote::from_row).collect()
    }

    /// Returns topics, by name.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn topics(&self, page: &Page<String>) -> Result<Vec<TopicRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(TOPICS).bind(&page.after).bind(page.limit).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                Ok(TopicRow {
                    name: row.try_get("name")?,
                    notes: row.try_get("newest")?,
                    posted_at: time_at(row, "posted_at")?,
                })
            })
            .collect()
    }
}
