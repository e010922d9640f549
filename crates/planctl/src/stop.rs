//! Signals that ask a command to stop.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Exit, Failure};
use crate::terminal;

/// Ctrl-C and SIGTERM, as requests to stop; listened for from before a run is touched. A clone hears what comes after what
/// its origin heard.
#[derive(Clone)]
pub struct Stop {
    /// How many came, and which one last.
    received: watch::Receiver<(u32, Exit)>,
    heard: u32,
}

impl Stop {
    /// Begins to listen; from here on neither signal ends the process by itself.
    pub fn listen() -> Result<Stop, Failure> {
        let failed = |error| Failure::new(Exit::Temporary, format!("could not listen for signals: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut stop = signal(SignalKind::from_raw(nix::libc::SIGTSTP)).map_err(failed)?;
        let (says, received) = watch::channel((0, Exit::Interrupted));
        tokio::spawn(async move {
            while !says.is_closed() {
                let exit = tokio::select! {
                    _ = interrupt.recv() => Exit::Interrupted,
                    _ = terminate.recv() => Exit::Terminated,
                    _ = stop.recv() => {
                        terminal::stop_as_told();
                        continue;
                    }
                    () = says.closed() => return,
                };
                says.send_modify(|(count, last)| (*count, *last) = (*count + 1, exit));
            }
        });
        Ok(Stop { received, heard: 0 })
    }

    /// Hears somebody of this process ask, in place of a signal.
    pub fn when(asked: impl Future<Output = ()> + Send + 'static) -> Stop {
        let (says, received) = watch::channel((0, Exit::Interrupted));
        tokio::spawn(async move {
            tokio::select! {
                () = asked => says.send_modify(|(count, _)| *count += 1),
                () = says.closed() => {}
            }
        });
        Stop { received, heard: 0 }
    }

    /// Returns the exit that tells which one came last.
    pub fn last(&self) -> Exit {
        self.received.borrow().1
    }

    /// Waits for either; returns the exit that tells which.
    pub async fn wait_for_signal(&mut self) -> Exit {
        let heard = self.heard;
        let Ok(received) =
            self.received.wait_for(|(count, _)| *count > heard).await.map(|received| *received)
        else {
            // The runtime ends.
            return std::future::pending().await;
        };
        self.heard += 1;
        received.1
    }
}
