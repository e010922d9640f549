//! A terminal with a person at it: `script` lends it, and its screen is read as a person sees it.

use std::num::NonZeroU16;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::tty::Tty;

/// Longer than anything takes that is waited for here, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// The prompt of the shell.
const PROMPT: &str = "$ ";
const ROWS: u16 = 50;

pub struct Terminal {
    tty: Tty,
    screen: vt100::Parser,
    keys: usize,
}

impl Terminal {
    /// Opens a terminal of so many columns, with bash in it, in this home and with a folder of programs on its path.
    pub fn open(home: &Path, columns: u16, bin: &Path) -> Terminal {
        let tty = Tty::open((columns, ROWS), "exec bash --noprofile --norc --noediting -i", |command| {
            command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
            command.env("HOME", home).env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("PS1", PROMPT);
            command.env("PLANCTL_STATE_DIR", home.join("state")).env("PLANCTL_ACTOR", "ada");
            command.current_dir(home);
        });
        let mut terminal = Terminal { tty, screen: parser(columns), keys: 0 };
        terminal.until("the prompt", ends_with_prompt);
        terminal
    }

    /// Types a line of a text that goes on, once the shell asks for it, and waits until the terminal shows it.
    pub fn enter_further(&mut self, line: &str) {
        self.until_screen(line, |screen| {
            let row = screen.rows(0, screen.size().1.get()).nth(screen.cursor_position().0.into());
            row.is_some_and(|row| row.trim_end() == ">")
        });
        let (row, _) = self.screen.screen().cursor_position();
        self.enter(line);
        self.until_screen(line, |screen| screen.cursor_position().0 > row);
    }

    /// Types a line.
    pub fn enter(&mut self, line: &str) {
        self.keys += line.chars().count() + 1;
        self.tty.keys(&format!("{line}\n"));
    }

    /// Clears the screen, types a command, waits until it has ended, and returns the screen.
    pub fn run(&mut self, command: &str) -> String {
        self.begin(command);
        self.until(command, ends_with_prompt)
    }

    /// Clears the screen and types a command.
    pub fn begin(&mut self, command: &str) {
        self.screen = parser(self.columns());
        self.screen.process(PROMPT.as_bytes());
        self.enter(command);
        // The terminal shows what is typed; a long line goes on in the next row.
        let shown: String = command.chars().take(30).collect();
        self.until(command, |screen| screen.contains(&shown));
    }

    /// Waits until the screen shows a text.
    pub fn see(&mut self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits until the command that was begun has ended.
    pub fn end(&mut self) -> String {
        self.until("the end", ends_with_prompt)
    }

    fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        self.until_screen(what, |screen| is_there(&screen.contents()))
    }

    fn until_screen(&mut self, what: &str, is_there: impl Fn(&vt100::Screen) -> bool) -> String {
        let began = Instant::now();
        loop {
            let shown = self.screen.screen().contents();
            if is_there(self.screen.screen()) {
                return shown;
            }
            match self.tty.next(WAIT_MAX.saturating_sub(began.elapsed())) {
                Ok(more) => self.screen.process(&more),
                Err(_) => panic!("{what} does not show; the screen is\n{shown}"),
            }
        }
    }

    fn columns(&self) -> u16 {
        self.screen.screen().size().1.into()
    }

    /// How many keys were pressed.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Returns the screen's lines with their colours.
    pub fn coloured(&self) -> Vec<String> {
        let rows = self.screen.screen().rows_formatted(0, self.columns());
        rows.collect()
    }
}

fn parser(columns: u16) -> vt100::Parser {
    let [rows, columns] = [ROWS, columns].map(|size| NonZeroU16::new(size).unwrap());
    vt100::Parser::new(rows, columns, 0)
}

/// Says whether the shell waits for a command below what the command before it printed.
fn ends_with_prompt(screen: &str) -> bool {
    screen
        .trim_end_matches('\n')
        .rsplit('\n')
        .next()
        .is_some_and(|last| last == PROMPT.trim_end() || last == PROMPT)
}
