//! Reports to systemd: that the daemon is ready, that its loops turn, that it stops. Nobody listens elsewhere.

use sd_notify::NotifyState;

use crate::node::health::Health;
use planctl_api::wire::DaemonState;

/// Says that the sockets listen and the loops begin.
pub(crate) fn is_ready() {
    notify(&[NotifyState::Ready, NotifyState::Status("running")]);
}

/// Says that the loops turn; a daemon that does not say so for long is killed and started again.
pub(crate) fn is_alive(health: &Health) {
    let view = health.view();
    let status = match view.state {
        DaemonState::Degraded => {
            view.database_shortage.map_or("the database is away", |shortage| shortage.of.sentence())
        }
        DaemonState::Starting | DaemonState::Running | DaemonState::Stopping => "running",
    };
    notify(&[NotifyState::Watchdog, NotifyState::Status(status)]);
}

/// Says that the daemon ends.
pub(crate) fn notify_stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd was not told");
    }
}
