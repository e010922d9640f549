//! A seat at a terminal: what is typed there, when, and what its screen shows.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::fixture::Fixture;

/// Longer than any answer takes here, also on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command at a terminal that goes on; `script` lends the terminal.
pub struct Seat {
    child: Child,
    keyboard: Option<ChildStdin>,
    printed: Receiver<Vec<u8>>,
    pub heard: String,
    /// How much of that was asked for already.
    read: usize,
    /// Bytes of a character whose end is still to come.
    begun: Vec<u8>,
    tty: String,
}

impl Seat {
    /// Sits down at a terminal of so many columns, and has a shell do this; `planctl` is the program under test there.
    pub fn new(fixture: &Fixture, columns: u16, line: &str) -> Seat {
        let planctl = fixture.command(&[]);
        let mut command = Command::new("script");
        let line = format!(
            "planctl() {{ {} \"$@\"; }}; stty cols {columns} rows 30; echo \"<$(tty)>\"; {line}",
            env!("CARGO_BIN_EXE_planctl")
        );
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.current_dir(fixture.path("")).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm").env("SHELL", "/bin/bash");
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (mut screen, keyboard) = (child.stdout.take().unwrap(), child.stdin.take());
        let (says, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = screen.read(&mut bytes) {
                if count == 0 || says.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (heard, tty) = (String::new(), String::new());
        let mut seat = Seat { child, keyboard, printed, heard, read: 0, begun: Vec::new(), tty };
        seat.hear(">");
        seat.tty = seat.heard.split(['<', '>']).nth(1).unwrap().to_owned();
        seat
    }

    /// Waits until the terminal has printed these words after those that were heard last.
    pub fn hear(&mut self, words: &str) -> &mut Seat {
        loop {
            if let Some(at) = self.heard[self.read..].find(words) {
                self.read += at + words.len();
                return self;
            }
            match self.printed.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(_) => panic!("it never said {words:?}; it said:\n{}", self.heard),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.begun.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut self.begun, rest)).unwrap();
        self.heard.push_str(&text);
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) -> &mut Seat {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
        self
    }

    /// Gives the terminal another width.
    pub fn resize(&mut self, columns: u16) -> &mut Seat {
        let columns = columns.to_string();
        let done = Command::new("stty").args(["-F", &self.tty, "cols", &columns]).status().unwrap();
        assert!(done.success());
        self
    }

    /// Waits until the end; returns the exit code and all that was printed.
    pub fn end(mut self) -> (i32, String) {
        loop {
            match self.printed.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it never ended; it said:\n{}", self.heard),
            }
        }
        drop(self.keyboard.take());
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), std::mem::take(&mut self.heard))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A test that failed leaves nobody behind; one that is over has no child any more.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the rows of a screen of so many columns on which this was printed; a row that is too long goes on in the next.
pub fn screen(columns: usize, printed: &str) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut rest = printed.chars();
    while let Some(character) = rest.next() {
        match character {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                let mut count = String::new();
                let end = rest.by_ref().skip(1).find(|code| {
                    count.extend(code.is_ascii_digit().then_some(code));
                    code.is_ascii_alphabetic()
                });
                match end {
                    Some('A') => row = row.saturating_sub(count.parse().unwrap_or(1)),
                    Some('J') => {
                        rows.truncate(row + 1);
                        rows[row].truncate(column);
                    }
                    _ => {}
                }
            }
            other => {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                rows.resize(rows.len().max(row + 1), Vec::new());
                let length = rows[row].len().max(column + 1);
                rows[row].resize(length, ' ');
                rows[row][column] = other;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), Vec::new());
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}
