//! A console at a terminal: what is typed there, when, and what its screen shows.

use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::fixture::Fixture;
use crate::tty::Tty;

/// Longer than any answer takes here, also on a machine that is busy with other things.
const WAIT_MAX: Duration = Duration::from_secs(60);
const ROWS: u16 = 30;

/// A command at a terminal that goes on.
pub struct Console {
    terminal: Tty,
    pub heard: String,
    /// How much of that was asked for already.
    read: usize,
    /// Bytes of a character whose end is still to come.
    begun: Vec<u8>,
    tty: String,
}

impl Console {
    /// Sits down at a terminal of so many columns, and has a shell do this; `planctl` is the program under test there.
    pub fn new(fixture: &Fixture, columns: u16, line: &str) -> Console {
        let planctl = fixture.command(&[]);
        let program = env!("CARGO_BIN_EXE_planctl");
        let line = format!("planctl() {{ {program} \"$@\"; }}; echo \"<$(tty)>\"; {line}");
        let terminal = Tty::open((columns, ROWS), &line, |command| {
            command.current_dir(fixture.path(""));
            command.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("TERM", "xterm").env("SHELL", "/bin/bash");
        });
        let mut console =
            Console { terminal, heard: String::new(), read: 0, begun: Vec::new(), tty: String::new() };
        console.hear(">");
        console.tty = console.heard.split(['<', '>']).nth(1).unwrap().to_owned();
        console
    }

    /// Waits until the terminal has printed these words after those that were heard last.
    pub fn hear(&mut self, words: &str) -> &mut Console {
        loop {
            if let Some(at) = self.heard[self.read..].find(words) {
                self.read += at + words.len();
                return self;
            }
            match self.terminal.next(WAIT_MAX) {
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
    pub fn keys(&mut self, keys: &str) -> &mut Console {
        self.terminal.keys(keys);
        self
    }

    /// Gives the terminal another width.
    pub fn resize(&mut self, columns: u16) -> &mut Console {
        let columns = columns.to_string();
        let done = Command::new("stty").args(["-F", &self.tty, "cols", &columns]).status().unwrap();
        assert!(done.success());
        self
    }

    /// Waits until the end; returns the exit code and all that was printed.
    pub fn end(mut self) -> (i32, String) {
        loop {
            match self.terminal.next(WAIT_MAX) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it never ended; it said:\n{}", self.heard),
            }
        }
        (self.terminal.end(), self.heard)
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
