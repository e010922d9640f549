//! The API, called in this process by a command that found no daemon: the same routes, guard and handlers, without a socket.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use tokio::sync::watch;

use super::guard::Peer;
use super::serve::{HttpOptions, route_request, socket_of};
use super::{ApiState, routes};
use crate::node::ServerNode;

/// Calls the routes in this process. Cheap to clone; all clones share one router.
#[derive(Clone, Debug)]
pub struct InProcess {
    router: Router,
    peer: Peer,
}

impl InProcess {
    /// Makes the routes for this process's place at the database.
    pub fn new(server_node: ServerNode) -> InProcess {
        // Nobody says stop: a command ends by returning.
        let (_, stop) = watch::channel(false);
        let options = HttpOptions::new(socket_of(server_node.state_dir()), stop);
        // The command line itself refuses to a worker what only a person may do, before it opens the database.
        let peer = Peer::Local {
            uid: rustix::process::geteuid().as_raw(),
            is_inside_worker: false,
            is_inside_session: false,
        };
        InProcess::for_peer(&ApiState::new(server_node, options, None), peer)
    }

    /// Returns the routes of a daemon, for calls that one of its handlers makes in the name of a peer.
    pub(super) fn for_peer(api: &ApiState, peer: Peer) -> InProcess {
        InProcess { router: routes::router(api), peer }
    }

    /// Does one request; `path` has the query with it. Returns the status and the whole body.
    ///
    /// # Errors
    ///
    /// Says why the request can't be made, or its answer not be read.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Vec<u8>), axum::Error> {
        let request = Request::builder().method(method).uri(path).body(Body::from(body));
        let mut request = request.map_err(axum::Error::new)?;
        *request.headers_mut() = headers;
        request.extensions_mut().insert(self.peer);
        let (head, body) = route_request(self.router.clone(), request).await.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await?;
        Ok((head.status, body.to_vec()))
    }
}
