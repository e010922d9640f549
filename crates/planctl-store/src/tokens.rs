//! Tokens of the HTTP API, and their scopes. A secret is shown once and stored as its hash.

use std::time::Duration;

use planctl_engine::{Role, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::page::Page;
use crate::random;
use crate::requests::RequestId;
use crate::rows::{micros, optional_time_at, time_at};
use crate::store::Store;
use crate::token::Token;

macro_rules! tokens_where {
    ($which:literal) => {
        concat!(
            "select id, name, coalesce(person, name) as person, scope, roles, created_at, expires_at, revoked_at, last_used_at, ",
            "revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) as is_live from tokens where ",
            $which
        )
    };
}
pub(crate) const NEW_TOKEN: &str = "insert into tokens (id, name, scope, roles, hash, expires_at, request, person) \
     values ($1, $2, $3, $4::text[], $5, clock_timestamp() + $6::bigint * interval '1 microsecond', $7, $8) \
     on conflict do nothing";
pub(crate) const TOKEN_OF: &str = concat!(
    "with used as (update tokens set last_used_at = clock_timestamp() where hash = $1 and revoked_at is null ",
    "and (expires_at is null or expires_at > clock_timestamp()) ",
    "and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')) ",
    tokens_where!(
        "hash = $1 and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())"
    )
);
pub(crate) const TOKENS: &str = tokens_where!(
    "($1::text is null or (created_at, id) > (select created_at, id from tokens where id = $1)) \
     order by created_at, id limit $2"
);
pub(crate) const TOKEN_MADE: &str = tokens_where!("hash = $1");
pub(crate) const TOKEN_OF_REQUEST: &str = tokens_where!("request = $1");
pub(crate) const TOKEN: &str = tokens_where!("id = $1");
pub(crate) const REVOKE_TOKEN: &str =
    "update tokens set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = $1";

/// The prefix of every secret, so that scanners recognise one where it does not belong.
const PREFIX: &str = "planctl_";

/// The rights of a token's bearer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TokenScope {
    /// Claim work of its roles and say what came of it.
    Worker,
    /// Read, and decide as a person.
    Approve,
    /// Read.
    Read,
    /// Everything.
    Admin,
}

impl TokenScope {
    /// All scopes.
    pub const ALL: [TokenScope; 4] =
        [TokenScope::Worker, TokenScope::Approve, TokenScope::Read, TokenScope::Admin];

    /// Returns the word that people and secrets use.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenScope::Worker => "worker",
            TokenScope::Approve => "approve",
            TokenScope::Read => "read",
            TokenScope::Admin => "admin",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<TokenScope> {
        TokenScope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// The holder: actions with the token are on record under this name.
    pub name: &'a str,
    /// The person who is known to hold it, where the name is only how they sign.
    pub person: Option<&'a str>,
    /// The scope that it grants.
    pub scope: TokenScope,
    /// Of a worker's: the roles whose work it may claim; empty means any.
    pub roles: &'a [Role],
    /// How long it holds; for ever where it is left out.
    pub lasts: Option<Duration>,
    /// The request that makes it, and makes one.
    pub request: Option<RequestId>,
}

/// The result of making a token.
#[derive(Clone, Debug)]
pub enum NewlyMade {
    /// It was made, with this secret, which is shown here and never again.
    Token(TokenRow, String),
    /// The request had made this one before.
    Before(TokenRow),
}

/// A token as recorded; the secret is nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRow {
    /// The short id under which people revoke it.
    pub id: String,
    /// The holder.
    pub name: String,
    /// The person whose votes it casts.
    pub person: String,
    /// The scope that it grants.
    pub scope: TokenScope,
    /// Of a worker's: the roles whose work it may claim; empty means any.
    pub roles: Vec<Role>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ceases to hold.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// Says that it holds: neither expired nor revoked.
    pub is_live: bool,
}

impl TokenRow {
    fn from_row(row: &PgRow) -> Result<TokenRow, StoreError> {
        let word: &str = row.try_get("scope")?;
        Ok(TokenRow {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            person: row.try_get("person")?,
            scope: TokenScope::from_word(word)
                .ok_or_else(|| StoreError::corrupt(format!("a token's scope is `{word}`")))?,
            roles: row.try_get::<Vec<String>, _>("roles")?.into_iter().map(Role::new).collect(),
            created_at: time_at(row, "created_at")?,
            expires_at: optional_time_at(row, "expires_at")?,
            revoked_at: optional_time_at(row, "revoked_at")?,
            last_used_at: optional_time_at(row, "last_used_at")?,
            is_live: row.try_get("is_live")?,
        })
    }
}

/// Takes a secret apart: `planctl_worker_` and 64 hexadecimal digits.
fn parse(secret: &str) -> Option<(TokenScope, Token)> {
    let (scope, digits) = secret.strip_prefix(PREFIX)?.split_once('_')?;
    Some((TokenScope::from_word(scope)?, Token::parse(digits)?))
}

impl Store {
    /// Makes a token.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn create_token(&self, new: &NewToken<'_>) -> Result<NewlyMade, StoreError> {
        let token = Token::generate();
        let hash = token.hash();
        let roles: Vec<&str> = new.roles.iter().map(Role::as_str).collect();
        loop {
            let id = random::digits().split_off(8);
            repeated!(self, connection => sqlx::query(NEW_TOKEN)
                .bind(&id)
                .bind(new.name)
                .bind(new.scope.as_str())
                .bind(&roles)
                .bind(&hash)
                .bind(new.lasts.map(micros))
                .bind(new.request.map(|request| request.0))
                .bind(new.person)
                .execute(&mut *connection))?;
            let made = repeated!(self, connection => sqlx::query(TOKEN_MADE).bind(&hash).fetch_optional(&mut *connection))?;
            if let Some(row) = made {
                let secret = format!("{PREFIX}{}_{}", new.scope.as_str(), token.reveal());
                return Ok(NewlyMade::Token(TokenRow::from_row(&row)?, secret));
            }
            if let Some(request) = new.request
                && let Some(row) = repeated!(self, connection => sqlx::query(TOKEN_OF_REQUEST).bind(request.0).fetch_optional(&mut *connection))?
            {
                return Ok(NewlyMade::Before(TokenRow::from_row(&row)?));
            }
            // The short id was taken: another is drawn.
        }
    }

    /// Returns the token with this secret, where it holds: an unknown, an expired and a revoked one are alike here.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn token_of(&self, secret: &str) -> Result<Option<TokenRow>, StoreError> {
        let Some((scope, token)) = parse(secret) else { return Ok(None) };
        let hash = token.hash();
        let row = repeated!(self, connection => sqlx::query(TOKEN_OF).bind(&hash).fetch_optional(&mut *connection))?;
        let row = row.as_ref().map(TokenRow::from_row).transpose()?;
        Ok(row.filter(|row| row.scope == scope))
    }

    /// Returns tokens, oldest first; those that ceased to hold too.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn tokens(&self, page: &Page<String>) -> Result<Vec<TokenRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(TOKENS).bind(&page.after).bind(page.limit).fetch_all(&mut *connection))?;
        rows.iter().map(TokenRow::from_row).collect()
    }

    /// Takes a token back; one that was taken back before stays so since then.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and those of the connection.
    pub async fn revoke_token(&self, id: &str) -> Result<TokenRow, StoreError> {
        repeated!(self, connection => sqlx::query(REVOKE_TOKEN).bind(id).execute(&mut *connection))?;
        let row =
            repeated!(self, connection => sqlx::query(TOKEN).bind(id).fetch_optional(&mut *connection))?;
        TokenRow::from_row(&row.ok_or_else(|| StoreError::not_found(format!("token {id}")))?)
    }
}
