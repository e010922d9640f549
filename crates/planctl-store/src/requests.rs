//! Changes that come over HTTP, kept for a week with their answers: a repeated one is answered alike and done once (P14).
//!
//! The answer is stored after the change, and the process may die in between. So a request keeps its id when another
//! process takes it up. Where a change is not idempotent, its own transaction writes that id, and the process that takes
//! the request up finds that the change was made.

use std::fmt;
use std::time::Duration;

use planctl_engine::{Decision, RunId};
use sha2::{Digest as _, Sha256};
use sqlx::Row;
use uuid::Uuid;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::random;
use crate::rows::{micros, to_json};
use crate::store::Store;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// After this long without an answer, the process that worked on it counts as dead, and another may work on it.
const ABANDONED: Duration = Duration::from_secs(60);

pub(crate) const BEGIN_REQUEST: &str = "insert into requests (principal, key, route, body_hash, call) values ($1, $2, $3, $4, $5) \
     on conflict (principal, key) do update set route = excluded.route, body_hash = excluded.body_hash, \
       call = excluded.call, status = null, answer = null, at = clock_timestamp(), \
       id = case when requests.at < clock_timestamp() - $6::bigint * interval '1 microsecond' then excluded.id \
         else requests.id end \
     where requests.call = $5 or requests.at < clock_timestamp() - $6::bigint * interval '1 microsecond' \
       or (requests.status is null and requests.route = $3 and requests.body_hash = $4 and (requests.call is null \
         or requests.at < clock_timestamp() - $7::bigint * interval '1 microsecond')) \
     returning id";
pub(crate) const READ_REQUEST: &str = "select route = $3 and body_hash = $4 as is_same, status, answer from requests \
     where principal = $1 and key = $2";
pub(crate) const ANSWER_REQUEST: &str = "update requests set status = $5, answer = $6 \
     where principal = $1 and key = $2 and route = $3 and body_hash = $4 and status is null";
pub(crate) const LEAVE_REQUEST: &str =
    "update requests set call = null where principal = $1 and key = $2 and call = $3 and status is null";
pub(crate) const SWEEP_REQUESTS: &str =
    "delete from requests where at < clock_timestamp() - $1::bigint * interval '1 microsecond'";
pub(crate) const IS_ACCEPTED: &str = "select exists (select from commands where key = $1) as found";
pub(crate) const SWEEP_COMMANDS: &str =
    "delete from commands where at < clock_timestamp() - $1::bigint * interval '1 microsecond'";

/// The key under which a client repeats a request: up to 200 visible ASCII characters (row 73).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestKey(String);

impl RequestKey {
    /// The most characters of a key.
    pub const LENGTH_MAX: usize = 200;

    /// Reads a key.
    pub fn parse(text: &str) -> Option<RequestKey> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = (1..=RequestKey::LENGTH_MAX).contains(&text.len());
        (fits && is_visible).then(|| RequestKey(text.to_owned()))
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One request to change something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    principal: String,
    key: RequestKey,
    route: String,
    body_hash: Vec<u8>,
}

impl Request {
    /// Describes a request by who sends it (keys of different principals are apart), method and path, and body.
    pub fn new(principal: &str, key: RequestKey, route: &str, body: &[u8]) -> Request {
        let body_hash = Sha256::digest(body).to_vec();
        Request { principal: principal.to_owned(), key, route: route.to_owned(), body_hash }
    }
}

/// The id of a request, the same for each repetition and each process: the effect of the request is stored under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId(pub(crate) Uuid);

impl RequestId {
    /// Returns the id of planctl's own request to have another plan follow a run: the same in every process.
    pub fn for_follow_up(run: RunId) -> RequestId {
        let hash = Sha256::digest(format!("follow {run}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        RequestId(Uuid::from_bytes(bytes))
    }

    /// Returns the key of a decision that the request makes of a run: it makes each once.
    pub fn decision_key(&self, run: RunId, decision: &Decision) -> String {
        let hash = Sha256::digest(format!("{run} {}", to_json(decision)));
        format!("{self}/{}", planctl_engine::hex(&hash))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One call's turn to do a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTurn {
    /// The request.
    pub id: RequestId,
    call: Uuid,
}

/// The decision about a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// Do what of it is not done yet, then answer it or leave it.
    Fresh(RequestTurn),
    /// It was done: answer the same.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The body.
        answer: Vec<u8>,
    },
    /// It is being done; a call that was abandoned a minute ago is fresh again.
    UnderWay,
    /// The key was used for something else.
    Mismatch,
}

impl Store {
    /// Notes that a request is about to be done, unless it was or is.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn begin_request(&self, request: &Request) -> Result<Begun, StoreError> {
        let call = random::uuid();
        loop {
            let fresh = repeated!(self, connection => sqlx::query(BEGIN_REQUEST)
                .bind(&request.principal)
                .bind(request.key.as_str())
                .bind(&request.route)
                .bind(&request.body_hash)
                .bind(call)
                .bind(micros(KEPT))
                .bind(micros(ABANDONED))
                .fetch_optional(&mut *connection))?;
            if let Some(row) = fresh {
                return Ok(Begun::Fresh(RequestTurn { id: RequestId(row.try_get("id")?), call }));
            }
            let row = repeated!(self, connection => sqlx::query(READ_REQUEST)
                .bind(&request.principal)
                .bind(request.key.as_str())
                .bind(&request.route)
                .bind(&request.body_hash)
                .fetch_optional(&mut *connection))?;
            // Swept since the statement before: begin again.
            let Some(row) = row else { continue };
            if !row.try_get::<bool, _>("is_same")? {
                return Ok(Begun::Mismatch);
            }
            return Ok(match row.try_get::<Option<i32>, _>("status")? {
                Some(status) => Begun::Answered {
                    status: u16::try_from(status).unwrap_or(200),
                    answer: row.try_get::<Option<Vec<u8>>, _>("answer")?.unwrap_or_default(),
                },
                None => Begun::UnderWay,
            });
        }
    }

    /// Keeps the answer of a request that was done; the first answer stays.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn answer_request(
        &self,
        request: &Request,
        status: u16,
        answer: &[u8],
    ) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(ANSWER_REQUEST)
            .bind(&request.principal)
            .bind(request.key.as_str())
            .bind(&request.route)
            .bind(&request.body_hash)
            .bind(i32::from(status))
            .bind(answer)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Leaves a request whose answer must not be kept: it may be sent again at once, and goes on with what is done.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn abandon_request(&self, request: &Request, turn: &RequestTurn) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(LEAVE_REQUEST)
            .bind(&request.principal)
            .bind(request.key.as_str())
            .bind(turn.call)
            .execute(&mut *connection))?;
        Ok(())
    }

    /// Says whether a decision was made under a key.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn is_accepted(&self, key: &str) -> Result<bool, StoreError> {
        let row =
            repeated!(self, connection => sqlx::query(IS_ACCEPTED).bind(key).fetch_one(&mut *connection))?;
        Ok(row.try_get("found")?)
    }

    /// Deletes requests that are older than a week, the keys of their commands, and outputs that no history names; returns
    /// how many requests.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn sweep_requests(&self) -> Result<u64, StoreError> {
        let swept = repeated!(self, connection => sqlx::query(SWEEP_REQUESTS).bind(micros(KEPT)).execute(&mut *connection))?;
        repeated!(self, connection => sqlx::query(SWEEP_COMMANDS).bind(micros(KEPT)).execute(&mut *connection))?;
        self.sweep_outputs().await?;
        Ok(swept.rows_affected())
    }
}
