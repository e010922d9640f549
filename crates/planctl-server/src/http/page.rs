//! The page for people: HTML in a browser that signed in, over the routes of the API.
//!
//! The page is a client like any other. Each of its reads and decisions is a request to a route of the table, in this process,
//! with the browser's session as the token and its connection as the peer. So it sees and may do what the session's scope
//! allows, and it is refused what the API refuses: a decision that comes from an agent's process, an answer to an ask that
//! somebody answered meanwhile. Reading is by GET, and changes are made by POST alone.

mod address;
mod bundle;
mod decide;
mod drafts;
mod drawn;
mod edit;
mod library;
mod links;
mod live;
mod output;
mod screens;
mod session;
mod shared;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use planctl_api::{Code, Next, Problem};
use planctl_store::secret;
use planctl_web::{ReaderMarks, assets};

use self::address::Address;
use self::drawn::Drawn;
use self::session::Session;
use self::shared::Shared;
use self::visit::Visit;
use super::problem::response_of;
use super::{ApiState, Call, guard};

pub(super) use self::links::{Page, link, own_address};

/// Lets a browser do nothing with a page but load its own files, and send forms to it.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// How long a browser keeps the files that pages load.
const ASSETS_KEPT: &str = "private, max-age=300";

/// Adds the pages to the routes of the API: every address that is none of theirs is a page's.
pub(super) fn router(api: &ApiState, v1: Router) -> Router {
    let state = Arc::new(PageState {
        api: api.clone(),
        v1: v1.clone(),
        answers: Shared::default(),
        drawings: Shared::default(),
        sessions: Shared::default(),
        marks: ReaderMarks::of(&secret()),
    });
    v1.fallback(move |request: Request| {
        let state = state.clone();
        async move { state.answer(request).await }
    })
}

/// The state behind the page: the API, what was read and drawn, and the browsers' sessions.
struct PageState {
    api: ApiState,
    v1: Router,
    /// The API's answers that pages are made of, by scope and route.
    answers: Shared<Bytes>,
    /// Pages, by scope and address. They hold marks in place of what is of one reader alone.
    drawings: Shared<Arc<Drawn>>,
    /// The sessions of browsers, by the hashes of their secrets.
    sessions: Shared<Option<Session>>,
    /// The marks that stand for a reader in a page that is drawn for many.
    marks: ReaderMarks,
}

impl PageState {
    async fn answer(self: Arc<PageState>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        if parts.uri.path().starts_with("/v1/") {
            return response_of(&Problem::new(Code::NotFound, "there is no such route").next(Next::ReadApi));
        }
        if let Some(asset) = asset(parts.uri.path()).filter(|_| parts.method == Method::GET) {
            return asset;
        }
        let address = Address::of(&parts.uri);
        let visit = match Visit::begin(self, &parts).await {
            Ok(visit) => visit,
            Err(problem) => return screens::problem(None, &address, &problem),
        };
        let answered = match parts.method {
            Method::GET => get_page(&visit, &address).await,
            Method::POST => decide::post_form(&visit, &address, body).await,
            _ => Err(Problem::new(Code::MethodNotAllowed, "a page is read by GET and decides by POST")),
        };
        answered.unwrap_or_else(|problem| screens::problem(Some(&visit), &address, &problem))
    }
}

/// Answers what a browser looks at.
async fn get_page(visit: &Visit, address: &Address) -> Result<Response, Problem> {
    match address.segments().as_slice() {
        ["sign-in"] => Ok(html(StatusCode::OK, screens::sign_in(address, None))),
        ["open", code] => session::open(visit, code).await,
        // The short form that messages have; it shows the ask once the browser has signed in.
        ["a", ask] if ask.parse::<u64>().is_ok() => Ok(see_other(&format!("/asks/{ask}"))),
        ["live"] => live::stream(visit, address).await,
        ["runs", run, "bundle"] => bundle::download(visit, address, run).await,
        ["runs", run, "steps", step, "attempts", attempt, output, "download"] => {
            output::download(visit, address, (run, step, attempt), output).await
        }
        _ => Ok(html(StatusCode::OK, drawn::page(visit, address).await?)),
    }
}

/// Answers with a page.
fn html(status: StatusCode, text: String) -> Response {
    let mark = HeaderName::from_static;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
        // With `no-referrer` a browser would hide the origin of the page's own forms, too.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (mark("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (mark("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    (status, headers, text).into_response()
}

/// Sends a browser to another page, which it gets by GET.
fn see_other(path: &str) -> Response {
    let to = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// Returns a file that pages load.
fn asset(path: &str) -> Option<Response> {
    let (media, text) = match path {
        "/assets/page.css" => ("text/css; charset=utf-8", assets::STYLE.to_owned()),
        "/assets/graph.css" => ("text/css; charset=utf-8", crate::picture::style_within(".graph")),
        "/assets/page.js" => ("text/javascript; charset=utf-8", assets::SCRIPT.to_owned()),
        "/assets/icon.svg" => ("image/svg+xml", assets::ICON.to_owned()),
        _ => return None,
    };
    Some(([(header::CONTENT_TYPE, media), (header::CACHE_CONTROL, ASSETS_KEPT)], text).into_response())
}
