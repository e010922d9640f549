//! The daemon, its roles, workers and tokens.

use askama::Template;
use planctl_api::wire::work::{ServiceView, TokenList, TokenView, WorkerList};
use planctl_api::wire::{DaemonState, DatabaseView, RoleWorkList};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The daemon and those that work with it.
#[derive(Template)]
#[template(path = "system.html")]
pub struct SystemScreen<'a> {
    frame: Frame<'a>,
    service: &'a ServiceView,
    state: &'static str,
    database: &'a DatabaseView,
    roles: &'a RoleWorkList,
    workers: &'a WorkerList,
    tokens: Option<Vec<&'a TokenView>>,
    form: Option<Form<'a>>,
}

impl<'a> SystemScreen<'a> {
    /// Prepares the page; tokens are shown to those who may see them.
    pub fn new(
        frame: Frame<'a>,
        (service, database): (&'a ServiceView, &'a DatabaseView),
        (roles, workers): (&'a RoleWorkList, &'a WorkerList),
        tokens: Option<&'a TokenList>,
        form: Option<Form<'a>>,
    ) -> SystemScreen<'a> {
        let state = match service.health.state {
            DaemonState::Starting => "starting",
            DaemonState::Running => "running",
            DaemonState::Degraded => "waits for the database",
            DaemonState::Stopping => "stopping",
        };
        let tokens = tokens.map(|list| list.tokens.iter().filter(|token| token.live).collect());
        SystemScreen { frame, service, state, database, roles, workers, tokens, form }
    }
}
