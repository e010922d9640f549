//! A terminal that `script` lends to a command: what is typed there, and what it prints.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A terminal with a command in it.
pub struct Tty {
    child: Child,
    keyboard: Option<ChildStdin>,
    printed: Receiver<Vec<u8>>,
}

impl Tty {
    /// Opens a terminal of this size with a line of shell in it; `place` says where it works, and with which variables.
    pub fn open((columns, rows): (u16, u16), line: &str, place: impl FnOnce(&mut Command)) -> Tty {
        let line = format!("stty cols {columns} rows {rows}; {line}");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        place(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (mut screen, keyboard) = (child.stdout.take().unwrap(), child.stdin.take());
        let (says, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if says.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Tty { child, keyboard, printed }
    }

    /// Returns what it prints next; an error at its end, or where it prints nothing for so long.
    pub fn next(&self, at_most: Duration) -> Result<Vec<u8>, RecvTimeoutError> {
        self.printed.recv_timeout(at_most)
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits for the end of the command; returns its exit code.
    pub fn end(&mut self) -> i32 {
        drop(self.keyboard.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // A test that failed leaves nobody behind; one that is over has no child any more.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
