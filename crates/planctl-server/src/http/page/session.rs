//! Signing in and out: a session is a token of the API, in a cookie that no script reads.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use planctl_api::{Code, Problem};
use planctl_store::{NewToken, NewlyMade, TokenRow, TokenScope};
use planctl_web::{Form, Reader, ReaderMarks};
use tokio::time::Instant;

use super::visit::Visit;
use super::{Address, ApiState, PageState, guard, html, screens, see_other};
use crate::http::guard::hash_of;
use crate::http::problem::of_store;

/// The cookie's name.
const COOKIE: &str = "planctl_session";
/// Stands before the secret in the cookie of a session whose token was made for it, by a link.
const OWN: &str = "own.";
/// How long a session holds that a link began.
const HOLDS: Duration = Duration::from_secs(12 * 3600);

/// A person who is signed in.
#[derive(Clone)]
pub(super) struct Session {
    secret: String,
    token: Arc<TokenRow>,
    /// Says that the token was made for this session alone.
    is_own: bool,
    name: String,
    form: String,
}

impl Session {
    /// Finds the session that a browser shows; one whose token is revoked or over is none.
    ///
    /// A browser that asks often has its session looked up once in a moment.
    pub(super) async fn of(
        state: &PageState,
        headers: &HeaderMap,
        since: Instant,
    ) -> Result<Option<Session>, Problem> {
        let Some(cookie) = cookie(headers) else { return Ok(None) };
        let own = cookie.strip_prefix(OWN);
        let found = Session::found(state, own.unwrap_or(cookie), since).await?;
        Ok(found.map(|session| Session { is_own: own.is_some(), ..session }))
    }

    /// Finds the session that a secret begins, looked up since a moment.
    async fn found(state: &PageState, secret: &str, since: Instant) -> Result<Option<Session>, Problem> {
        let name = hash_of(&[b"a session of the page", secret.as_bytes()]);
        state.sessions.since(&name, since, Session::from_secret(&state.api, secret)).await
    }

    /// Returns the session with marks in the place of its reader.
    pub(super) fn of_anybody(&self, marks: &ReaderMarks) -> Session {
        Session { name: marks.name().to_owned(), form: marks.form().to_owned(), ..self.clone() }
    }

    /// Finds the session that a secret begins.
    async fn from_secret(api: &ApiState, secret: &str) -> Result<Option<Session>, Problem> {
        let token = api.server_node().store().token_of(secret).await.map_err(of_store)?;
        // A worker's token shows no pages.
        let token = token.filter(|token| token.scope != TokenScope::Worker);
        Ok(token.map(|token| Session {
            secret: secret.to_owned(),
            is_own: false,
            name: token.name.clone(),
            token: Arc::new(token),
            form: hash_of(&[b"forms of the page", secret.as_bytes()]),
        }))
    }

    /// Refuses where its token was revoked or has run out, as it was looked up since a moment.
    pub(super) async fn still_holds(&self, state: &PageState, since: Instant) -> Result<(), Problem> {
        let found = Session::found(state, &self.secret, since).await?;
        found.map(drop).ok_or_else(guard::unauthenticated_problem)
    }

    /// Returns the row of its token, as it was found.
    pub(super) fn token(&self) -> &Arc<TokenRow> {
        &self.token
    }

    /// Returns the token.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns what pages say of their reader.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { name: &self.name, scope: self.token.scope.as_str(), form: &self.form }
    }

    /// Returns what a form carries, for somebody who may decide.
    pub(super) fn form<'a>(&'a self, key: &'a str) -> Option<Form<'a>> {
        let may_decide = matches!(self.token.scope, TokenScope::Approve | TokenScope::Admin);
        may_decide.then(|| Form { name: &self.name, form: &self.form, key })
    }

    /// Says that it reaches what only administrators do.
    pub(super) fn is_admin(&self) -> bool {
        self.token.scope == TokenScope::Admin
    }

    /// Refuses a form that comes from no page of this session (A38).
    pub(super) fn refuse_foreign(&self, form: &str) -> Result<(), Problem> {
        if form == self.form {
            return Ok(());
        }
        Err(Problem::new(Code::Origin, "the form comes from no page of this session")
            .help("load the page again, and decide there"))
    }
}

/// Returns the secret in the cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value).filter(|value| !value.is_empty())
}

/// Signs in with a token that somebody pasted.
pub(super) async fn sign_in(visit: &Visit, address: &Address, token: &str) -> Result<Response, Problem> {
    let token = token.trim();
    match Session::from_secret(&visit.state.api, token).await? {
        Some(session) => Ok(sign_in_response(visit, &session.secret)),
        None => {
            let refused = "This token is not valid, or may not read.";
            Ok(html(StatusCode::UNAUTHORIZED, screens::sign_in(address, Some(refused))))
        }
    }
}

/// Signs in with a link that was made for somebody at this machine, and is used up by it.
pub(super) async fn open(visit: &Visit, code: &str) -> Result<Response, Problem> {
    let api = &visit.state.api;
    // An agent can read the link on this machine, in a list of processes for instance.
    guard::refuse_agents(api, visit.peer, false).await?;
    let Some(visitor) = api.page().redeem_link(code, crate::clock::instant()) else {
        let refused = "This link was used before, or its time is over.";
        let address = Address::parse("/sign-in");
        return Ok(html(StatusCode::UNAUTHORIZED, screens::sign_in(&address, Some(refused))));
    };
    let new = NewToken {
        name: visitor.actor.as_str(),
        person: Some(&visitor.person),
        scope: TokenScope::Admin,
        roles: &[],
        lasts: Some(HOLDS),
        request: None,
    };
    match api.server_node().store().create_token(&new).await.map_err(of_store)? {
        NewlyMade::Token(_, secret) => Ok(sign_in_response(visit, &format!("{OWN}{secret}"))),
        NewlyMade::Before(_) => Err(Problem::new(Code::Defect, "a session was made without a request")),
    }
}

/// Signs out: the browser forgets the session. A token that was made for the session is revoked; one that was pasted may be
/// in use elsewhere, and holds on.
pub(super) async fn sign_out(visit: &Visit) -> Result<Response, Problem> {
    let session = visit.session()?;
    if session.is_own {
        visit.state.api.server_node().store().revoke_token(&session.token.id).await.map_err(of_store)?;
        visit.state.api.page().note_decision();
    }
    let forgotten = format!("{COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict");
    Ok(with_cookie(see_other("/sign-in"), &forgotten))
}

fn sign_in_response(visit: &Visit, cookie: &str) -> Response {
    // A browser that came by TLS, through a proxy, sends the cookie by TLS alone.
    let origin = visit.headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
    let secure = if origin.is_some_and(|origin| origin.starts_with("https://")) { "; Secure" } else { "" };
    with_cookie(see_other("/"), &format!("{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}"))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    // The secret of a token that holds is hexadecimal digits behind words.
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
