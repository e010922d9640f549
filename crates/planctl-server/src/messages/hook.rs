//! Hands a message to a command of the person's own, on its input.

use std::future::pending;
use std::path::Path;
use std::time::Duration;

use planctl_harness::{Command, End, Input, Spawner, agent_environment};

use super::SendError;

/// A command that gets one message.
pub(super) struct Hook<'a> {
    pub(super) command: &'a str,
    /// The variables that it gets of planctl's own.
    pub(super) env: &'a [String],
    pub(super) directory: &'a Path,
    pub(super) timeout: Duration,
    pub(super) event: &'a str,
    /// The message as lines for people.
    pub(super) text: String,
    pub(super) body: String,
}

/// Runs it to its end. Nobody reads its output: it may hold secrets of its own.
///
/// # Errors
///
/// Where it does not exit with 0.
pub(super) async fn run(hook: Hook<'_>, spawner: &Spawner) -> Result<String, SendError> {
    let mut command =
        Command::new(["/bin/bash", "--noprofile", "--norc", "-c", hook.command], hook.directory);
    command.environment = agent_environment(hook.env.iter().map(String::as_str));
    for (name, value) in [("PLANCTL_EVENT", hook.event), ("PLANCTL_MESSAGE", &hook.text)] {
        command.environment.push((name.into(), value.replace('\0', " ").into()));
    }
    command.input = Input::Bytes(hook.body.into_bytes());
    command.deadline = Some(hook.timeout);
    let finished = spawner.run(&command, &mut |_, _| (), pending()).await;
    let finished =
        finished.map_err(|error| SendError::retryable(format!("it could not be started: {error}")))?;
    match finished.end {
        End::Exited(0) => Ok("exit 0".to_owned()),
        // Of a shell.
        End::Exited(127) => Err(SendError::retryable("exit 127: a command in it is not found")),
        End::Exited(status) => Err(SendError::retryable(format!("exit {status}"))),
        End::Signalled(signal) => Err(SendError::retryable(format!("ended by signal {signal}"))),
        End::TimedOut => Err(SendError::retryable("no end in time")),
        End::NotStarted { errno, .. } => {
            let error = std::io::Error::from_raw_os_error(errno);
            Err(SendError::retryable(format!("it could not be started: {error}")))
        }
        End::IdleTimedOut | End::Flooded | End::OverLimit(_) | End::Cancelled | End::HelperLost => {
            Err(SendError::retryable("it was ended"))
        }
    }
}
