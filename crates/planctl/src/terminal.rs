//! The terminal that this process has: its size, its modes while something is drawn or asked there, and what is typed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

use crate::failure::{Exit, Failure};

/// The size that is assumed of a terminal that does not tell its own.
const SIZE_UNKNOWN: (usize, usize) = (80, 24);

/// How long the rest of a key such as an arrow may come after its first byte, which is that of the key Esc.
const KEY_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 30_000_000 };

/// How often it is looked whether something was typed. Only looking tells, too, that this process is in front again.
const LOOK: Duration = Duration::from_millis(40);

const ESCAPE: u8 = 0x1b;

/// Says that this process has switched the terminal's echo off.
static IS_ECHO_OFF: AtomicBool = AtomicBool::new(false);

/// Says that this process has the key Esc end a line.
static ENDS_AT_ESCAPE: AtomicBool = AtomicBool::new(false);

/// Says that others have written to the terminal since something was drawn there.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// Says whether the terminal knows no cursor movements, or nothing is known of it.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Returns the columns and rows of the terminal at standard error.
pub fn size() -> (usize, usize) {
    let size = tcgetwinsize(std::io::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(SIZE_UNKNOWN, |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Says whether this process may change the terminal: one in the background would be stopped for it. Nothing is said of a
/// terminal that controls nobody here.
pub fn is_in_front() -> Option<bool> {
    tcgetpgrp(std::io::stderr()).ok().map(|group| group == rustix::process::getpgrp())
}

/// Says once that others have written to the terminal meanwhile.
pub fn others_wrote() -> bool {
    IS_LEFT.swap(false, Ordering::SeqCst)
}

/// Keeps the terminal from echoing what is typed; it stays for whoever reads next.
pub fn hide_echo() {
    change(&IS_ECHO_OFF, |modes| {
        let is_on = modes.local_modes.contains(LocalModes::ECHO);
        modes.local_modes.remove(LocalModes::ECHO);
        is_on
    });
}

/// Has the key Esc end a line as Enter does.
fn end_lines_at_escape() {
    change(&ENDS_AT_ESCAPE, |modes| {
        let is_new = modes.special_codes[SpecialCodeIndex::VEOL] != ESCAPE;
        modes.special_codes[SpecialCodeIndex::VEOL] = ESCAPE;
        is_new
    });
}

/// Changes the terminal's modes where that is still to do, and remembers that.
fn change(is_changed: &AtomicBool, modes_of: impl Fn(&mut Termios) -> bool) {
    let Ok(mut modes) = tcgetattr(std::io::stderr()) else { return };
    if is_in_front() == Some(true)
        && modes_of(&mut modes)
        && tcsetattr(std::io::stderr(), OptionalActions::Now, &modes).is_ok()
    {
        is_changed.store(true, Ordering::SeqCst);
    }
}

/// Gives the terminal back as it was. Every way out of the process comes here.
pub fn restore_modes() {
    let is_echo_off = IS_ECHO_OFF.swap(false, Ordering::SeqCst);
    let ends_at_escape = ENDS_AT_ESCAPE.swap(false, Ordering::SeqCst);
    if !(is_echo_off || ends_at_escape) || is_in_front() != Some(true) {
        return;
    }
    let Ok(mut modes) = tcgetattr(std::io::stderr()) else { return };
    if is_echo_off {
        modes.local_modes.insert(LocalModes::ECHO);
    }
    if ends_at_escape {
        modes.special_codes[SpecialCodeIndex::VEOL] = 0;
    }
    // A terminal that is gone needs nothing back.
    tcsetattr(std::io::stderr(), OptionalActions::Now, &modes).unwrap_or(());
}

/// Stops this process as Ctrl-Z does, with the terminal as it was before; returns when it goes on.
pub fn stop_as_told() {
    restore_modes();
    IS_LEFT.store(true, Ordering::SeqCst);
    let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: neither action runs code of ours that was not run before: one is the system's, the other was there already.
    unsafe {
        let Ok(own) = sigaction(Signal::SIGTSTP, &usual) else { return };
        // The system knows whether somebody is there who could let it go on.
        raise(Signal::SIGTSTP).unwrap_or(());
        sigaction(Signal::SIGTSTP, &own).map(drop).unwrap_or(());
    }
}

/// One thing that a person typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Typed {
    /// A line, without its end.
    Line(String),
    /// The key Esc.
    Escape,
    /// A key such as an arrow, which means nothing here.
    Key,
    /// There is nobody who types any more.
    End,
}

/// The lines that are typed at this terminal, in their order.
#[derive(Debug, Default)]
pub struct Lines {
    ahead: VecDeque<Typed>,
}

impl Lines {
    /// Has the key Esc answer, too, from here on.
    pub fn listen(&self) {
        end_lines_at_escape();
    }

    /// Reads what was typed before a question is put: Enter alone was not meant for it.
    pub fn clear(&mut self) -> Result<(), Failure> {
        while let Some(typed) = self.try_next()? {
            let is_over = typed == Typed::End;
            if typed != Typed::Line(String::new()) {
                self.ahead.push_back(typed);
            }
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Returns what was typed next, where that is there.
    pub fn try_next(&mut self) -> Result<Option<Typed>, Failure> {
        if is_in_front() == Some(false) || !is_readable(None)? { Ok(None) } else { read().map(Some) }
    }

    /// Waits for what is typed next.
    pub async fn next(&mut self) -> Result<Typed, Failure> {
        if let Some(typed) = self.ahead.pop_front() {
            return Ok(typed);
        }
        loop {
            end_lines_at_escape();
            if let Some(typed) = self.try_next()? {
                return Ok(typed);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn read_failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Temporary, format!("could not read the answer: {error}"))
}

/// Says whether a whole line is there, or comes within this time.
fn is_readable(within: Option<&Timespec>) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut terminal, Some(within.unwrap_or(&at_once))) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(read_failure(error)),
    }
}

/// Reads a line that is there.
fn read() -> Result<Typed, Failure> {
    // No terminal has longer lines.
    let mut line = [0; 4096];
    let count = match rustix::io::read(std::io::stdin(), &mut line) {
        Ok(count) => count,
        // A terminal that was hung up.
        Err(rustix::io::Errno::IO) => 0,
        Err(error) => return Err(read_failure(error)),
    };
    match line[..count] {
        [] => Ok(Typed::End),
        [ref text @ .., ESCAPE] if !text.is_empty() || begins_a_key()? => Ok(Typed::Key),
        [ESCAPE] => Ok(Typed::Escape),
        ref text => {
            let text = String::from_utf8_lossy(text);
            match text.trim_end_matches(['\n', '\r']) {
                // Typed before that key ended a line.
                "\u{1b}" => Ok(Typed::Escape),
                text => Ok(Typed::Line(text.to_owned())),
            }
        }
    }
}

/// Says whether a byte that the key Esc sends is the first of several, and reads those that follow.
fn begins_a_key() -> Result<bool, Failure> {
    let Ok(modes) = tcgetattr(std::io::stdin()) else { return Ok(false) };
    let mut bytewise = modes.clone();
    bytewise.local_modes.remove(LocalModes::ICANON);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &bytewise).map_err(read_failure)?;
    let is_key = is_readable(Some(&KEY_WITHIN));
    if matches!(is_key, Ok(true)) {
        rustix::io::read(std::io::stdin(), &mut [0; 16]).map_err(read_failure)?;
    }
    tcsetattr(std::io::stdin(), OptionalActions::Now, &modes).map_err(read_failure)?;
    is_key
}
