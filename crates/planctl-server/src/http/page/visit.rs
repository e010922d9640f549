//! One request of a browser, and the requests to the API that it leads to.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use planctl_api::{Code, Problem};
use planctl_store::secret;
use planctl_web::joined_key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::session::Session;
use super::{PageState, guard};
use crate::clock;
use crate::http::capacity::StrangerSlot;
use crate::http::guard::{FoundToken, KEY_HEADER, Peer};
use crate::http::serve::route_request;

/// The headers by which a browser says where a request comes from. The API's guard looks at them, too.
const OF_BROWSER: [HeaderName; 3] = [header::HOST, header::ORIGIN, HeaderName::from_static("sec-fetch-site")];
/// How large an answer of the API a page reads.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// How old an answer may be that pages share. An answer from before a decision by this daemon is always too old.
const SHARED_FOR: Duration = Duration::from_millis(50);
/// How long the session of a tab that stays open counts as valid after it was looked up.
const SESSION_HOLDS: Duration = Duration::from_secs(1);

/// One request of a browser.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) state: Arc<PageState>,
    pub(super) peer: Peer,
    pub(super) session: Option<Session>,
    pub(super) headers: HeaderMap,
    /// From when on an answer counts that others have asked for.
    since: Instant,
    /// Says that a page is drawn for all readers of the session's scope.
    is_of_anybody: bool,
    stranger: Option<StrangerSlot>,
}

impl Visit {
    /// Lets a browser in that calls this daemon by its name; finds its session, where it has one.
    pub(super) async fn begin(state: Arc<PageState>, parts: &Parts) -> Result<Visit, Problem> {
        let peer = parts.extensions.get::<Peer>().copied();
        let peer = peer.ok_or_else(|| Problem::new(Code::Defect, "a request without a peer"))?;
        guard::refuse_strangers(&state.api, &peer, parts)?;
        let since = not_before(SHARED_FOR).max(state.api.page().decided_at());
        let session = Session::of(&state, &parts.headers, since).await?;
        let stranger = parts.extensions.get::<StrangerSlot>().cloned();
        let headers =
            OF_BROWSER.into_iter().filter_map(|name| Some((name.clone(), parts.headers.get(name)?.clone())));
        Ok(Visit { state, peer, session, headers: headers.collect(), since, is_of_anybody: false, stranger })
    }

    /// Refuses where the token of the session was revoked or has run out meanwhile.
    pub(super) async fn session_still_holds(&self) -> Result<(), Problem> {
        let since = not_before(SESSION_HOLDS).max(self.decided_at());
        self.session()?.still_holds(&self.state, since).await
    }

    /// Returns when something was decided last by a call of this daemon.
    pub(super) fn decided_at(&self) -> Instant {
        self.state.api.page().decided_at()
    }

    /// Returns the session.
    pub(super) fn session(&self) -> Result<&Session, Problem> {
        self.session.as_ref().ok_or_else(guard::unauthenticated_problem)
    }

    /// Returns the same browser's visit once more, whose answers are no older than this.
    pub(super) fn again(&self, since: Instant) -> Visit {
        Visit { since: since.max(self.decided_at()), ..self.clone() }
    }

    /// Returns a visit that draws a page for all readers of the session's scope: marks stand in the reader's place.
    pub(super) fn of_anybody(&self) -> Visit {
        let session = self.session.as_ref().map(|session| session.of_anybody(&self.state.marks));
        Visit { session, is_of_anybody: true, ..self.clone() }
    }

    /// Makes the key of a page's forms, under which what they ask for is done once.
    pub(super) fn new_key(&self) -> String {
        if self.is_of_anybody { self.state.marks.key().to_owned() } else { secret() }
    }

    /// Names an address for its readers of one scope, who see the same there.
    pub(super) fn shared_name(&self, address: &str) -> Result<String, Problem> {
        Ok(format!("{} {address}", self.session()?.reader().scope))
    }

    /// Takes the answer of a route of the API that others of the same scope asked for a moment ago, or asks it.
    pub(super) async fn look<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        let name = self.shared_name(path)?;
        let mut request = self.request(Method::GET, path, None, Body::empty())?;
        // The token was found a moment ago, as all that pages share.
        request.extensions_mut().insert(FoundToken(self.session()?.token().clone()));
        read(&self.state.answers.since(&name, self.since, self.answer(request)).await?)
    }

    /// Asks a route of the API.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.call(Method::GET, path, None, Body::empty()).await
    }

    /// Has a route of the API do something, once for its key and what is asked for: the form of a page that was left and is open
    /// again may ask for something else, as where the first answer could not be taken.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        call: &impl Serialize,
    ) -> Result<T, Problem> {
        let body = serde_json::to_vec(call).map_err(|error| Problem::new(Code::Defect, error.to_string()))?;
        let key = joined_key(key, &guard::hash_of(&[&body])[..16]);
        self.call(Method::POST, path, Some(&key), Body::from(body)).await
    }

    /// Has a route of the API take something away, once for its key.
    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str, key: &str) -> Result<T, Problem> {
        self.call(Method::DELETE, path, Some(key), Body::empty()).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Body,
    ) -> Result<T, Problem> {
        read(&self.answer(self.request(method, path, key, body)?).await?)
    }

    fn request(&self, method: Method, path: &str, key: Option<&str>, body: Body) -> Result<Request, Problem> {
        let bearer = format!("Bearer {}", self.session()?.secret());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, bearer)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        let mut request = request.map_err(|error| defect(error.to_string()))?;
        request.headers_mut().extend(self.headers.clone());
        if let Some(key) = key {
            let key = HeaderValue::from_str(key).map_err(|error| defect(error.to_string()))?;
            request.headers_mut().insert(KEY_HEADER, key);
        }
        request.extensions_mut().insert(self.peer);
        if let Some(stranger) = &self.stranger {
            request.extensions_mut().insert(stranger.clone());
        }
        Ok(request)
    }

    async fn answer(&self, request: Request) -> Result<Bytes, Problem> {
        let (head, body) = route_request(self.state.v1.clone(), request).await.into_parts();
        let body = axum::body::to_bytes(body, ANSWER_BYTES_MAX).await;
        let body = body.map_err(|error| defect(error.to_string()))?;
        if head.status.is_success() {
            return Ok(body);
        }
        Err(serde_json::from_slice(&body).unwrap_or_else(|error| defect(error.to_string())))
    }
}

/// Returns the moment that is so long ago.
fn not_before(age: Duration) -> Instant {
    let now = clock::instant();
    now.checked_sub(age).unwrap_or(now)
}

fn defect(what: String) -> Problem {
    Problem::new(Code::Defect, what)
}

fn read<T: DeserializeOwned>(answer: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(answer).map_err(|error| defect(error.to_string()))
}
