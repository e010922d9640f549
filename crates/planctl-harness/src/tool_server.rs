//! Starts a tool server as a child of the process that calls it; both are of one tree, which the helper of planctl ends.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long a server has to end once its input is closed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A server that speaks over its standard streams; its standard error is that of the process that started it.
#[derive(Debug)]
pub struct ToolServer {
    child: Child,
}

impl ToolServer {
    /// Starts a program, and returns its streams.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start(
        command: &[String],
        environment: &[(String, String)],
    ) -> io::Result<(ToolServer, ChildStdout, ChildStdin)> {
        let nothing = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
        let (program, arguments) = command.split_first().ok_or_else(nothing)?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        let streams = (child.stdout.take(), child.stdin.take());
        let (Some(output), Some(input)) = streams else {
            return Err(io::Error::other("its streams are not there"));
        };
        Ok((ToolServer { child }, output, input))
    }

    /// Waits until the server has ended, whose input was closed; one that does not end is killed.
    pub async fn shut_down(mut self) {
        if tokio::time::timeout(ENDS_WITHIN, self.child.wait()).await.is_err() {
            // One that can't be killed is left to the helper.
            self.child.kill().await.ok();
        }
    }
}
