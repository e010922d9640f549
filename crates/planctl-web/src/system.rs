//! The daemon, its roles, workers and tokens.

use askama::Template;
use planctl_api::wire::messages::{DeliveryList, DeliveryView};
use planctl_api::wire::work::{ServiceView, TokenList, TokenView, WorkerList, WorkerView};
use planctl_api::wire::{
    DaemonState, DatabaseView, DecisionLine, DecisionLog, DoctorView, RoleWork, RoleWorkList,
};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The most rows of each list, so that the page stays small.
const ROWS_MAX: usize = 40;

/// The first rows of a list.
struct Rows<'a, T> {
    shown: Vec<&'a T>,
    /// How many there are.
    count: usize,
}

impl<'a, T> Rows<'a, T> {
    fn of(all: Vec<&'a T>) -> Rows<'a, T> {
        Rows { count: all.len(), shown: all.into_iter().take(ROWS_MAX).collect() }
    }

    fn more(&self) -> usize {
        self.count - self.shown.len()
    }
}

/// The daemon and those that work with it.
#[derive(Template)]
#[template(path = "system.html")]
pub struct SystemScreen<'a> {
    frame: Frame<'a>,
    service: &'a ServiceView,
    state: &'static str,
    database: &'a DatabaseView,
    roles: Rows<'a, RoleWork>,
    workers: Rows<'a, WorkerView>,
    /// The newest.
    deliveries: &'a [DeliveryView],
    /// The newest.
    decisions: &'a [DecisionLine],
    tokens: Option<Rows<'a, TokenView>>,
    /// Says that its reader may look at the machine.
    is_admin: bool,
    form: Option<Form<'a>>,
}

impl<'a> SystemScreen<'a> {
    /// Prepares the page; tokens are shown to those who may see them, the newest first.
    pub fn new(
        frame: Frame<'a>,
        (service, database): (&'a ServiceView, &'a DatabaseView),
        (roles, workers): (&'a RoleWorkList, &'a WorkerList),
        (deliveries, decisions): (&'a DeliveryList, &'a DecisionLog),
        tokens: Option<&'a TokenList>,
        form: Option<Form<'a>>,
    ) -> SystemScreen<'a> {
        let state = match service.health.state {
            DaemonState::Starting => "starting",
            DaemonState::Running => "running",
            DaemonState::Degraded => "waits for the database",
            DaemonState::Stopping => "stopping",
        };
        let live = |list: &'a TokenList| list.tokens.iter().rev().filter(|token| token.live).collect();
        let is_admin = tokens.is_some();
        let tokens = tokens.map(|list| Rows::of(live(list)));
        let roles = Rows::of(roles.roles.iter().collect());
        let workers = Rows::of(workers.workers.iter().collect());
        SystemScreen {
            frame,
            service,
            state,
            database,
            roles,
            workers,
            deliveries: &deliveries.deliveries,
            decisions: &decisions.decisions,
            tokens,
            is_admin,
            form,
        }
    }
}

/// This machine, as it was looked at.
#[derive(Template)]
#[template(path = "doctor.html")]
pub struct DoctorScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The checks.
    pub found: &'a DoctorView,
}
