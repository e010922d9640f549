//! Changes that come over HTTP, kept for a week with their answers: a repeated one is answered alike and done once (P14).

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sqlx::Row;

use crate::connections::repeated;
use crate::effects::micros;
use crate::error::StoreError;
use crate::random;
use crate::store::Store;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// After this long without an answer, whoever worked on it is dead, and another may.
const ABANDONED: Duration = Duration::from_secs(60);

pub(crate) const BEGIN_REQUEST: &str = "insert into requests (principal, key, route, body_hash, call) values ($1, $2, $3, $4, $5) \
     on conflict (principal, key) do update set route = excluded.route, body_hash = excluded.body_hash, \
       call = excluded.call, status = null, answer = null, at = clock_timestamp() \
     where requests.call = $5 or requests.at < clock_timestamp() - $6::bigint * interval '1 microsecond' \
       or (requests.status is null and requests.route = $3 and requests.body_hash = $4 \
         and requests.at < clock_timestamp() - $7::bigint * interval '1 microsecond') \
     returning true as is_fresh";
pub(crate) const READ_REQUEST: &str = "select route = $3 and body_hash = $4 as is_same, status, answer from requests \
     where principal = $1 and key = $2";
pub(crate) const ANSWER_REQUEST: &str = "update requests set status = $5, answer = $6 \
     where principal = $1 and key = $2 and route = $3 and body_hash = $4 and status is null";
pub(crate) const FORGET_REQUEST: &str = "delete from requests where principal = $1 and key = $2 and route = $3 and body_hash = $4 and status is null";
pub(crate) const SWEEP_REQUESTS: &str =
    "delete from requests where at < clock_timestamp() - $1::bigint * interval '1 microsecond'";

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

/// What to do about a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// Do it, then answer it or forget it.
    Fresh,
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
            let fresh = repeated!(self, lent => sqlx::query(BEGIN_REQUEST)
                .bind(&request.principal)
                .bind(request.key.as_str())
                .bind(&request.route)
                .bind(&request.body_hash)
                .bind(call)
                .bind(micros(KEPT))
                .bind(micros(ABANDONED))
                .fetch_optional(&mut *lent))?;
            if fresh.is_some() {
                return Ok(Begun::Fresh);
            }
            let row = repeated!(self, lent => sqlx::query(READ_REQUEST)
                .bind(&request.principal)
                .bind(request.key.as_str())
                .bind(&request.route)
                .bind(&request.body_hash)
                .fetch_optional(&mut *lent))?;
            // Forgotten or swept since the statement before: begin again.
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
        repeated!(self, lent => sqlx::query(ANSWER_REQUEST)
            .bind(&request.principal)
            .bind(request.key.as_str())
            .bind(&request.route)
            .bind(&request.body_hash)
            .bind(i32::from(status))
            .bind(answer)
            .execute(&mut *lent))?;
        Ok(())
    }

    /// Forgets a request whose answer must not be kept: it may be sent again at once.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn forget_request(&self, request: &Request) -> Result<(), StoreError> {
        repeated!(self, lent => sqlx::query(FORGET_REQUEST)
            .bind(&request.principal)
            .bind(request.key.as_str())
            .bind(&request.route)
            .bind(&request.body_hash)
            .execute(&mut *lent))?;
        Ok(())
    }

    /// Deletes requests that are older than a week; says how many.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn sweep_requests(&self) -> Result<u64, StoreError> {
        let swept =
            repeated!(self, lent => sqlx::query(SWEEP_REQUESTS).bind(micros(KEPT)).execute(&mut *lent))?;
        Ok(swept.rows_affected())
    }
}
