//! Output for people: text made safe for a terminal, tables, colours, and the two streams.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use planctl_api::wire::StepState;
use planctl_server::database::Fetching;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::failure::{Exit, Failure};

mod folding;
mod list;

pub use folding::{commands, folded, folded_in, paragraphs, paragraphs_in};
pub use list::{Cell, Column, list, list_of, wrapped};
pub use planctl_api::words::{
    LEFT_ALONE, age, ago, brief, budget, bytes, caveat, cost, counted, day_budget, is_left_alone,
    is_of_guard, last_lines, level, plan, plan_block, policy, printed_block, run_state, safe, safe_block,
    seconds, span, step_state, step_words, tokens, unix_seconds, vacuous, whole_cost,
};

/// Headings and names.
pub const BOLD: Style = Style::new().bold();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Failure.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// A thing that a person should look at.
pub const CARE: Style = AnsiColor::Yellow.on_default();
/// A side note.
pub const FAINT: Style = Style::new().dimmed();

/// Returns how many columns the terminal has, where standard output is one.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes a text in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Shortens what failed at an attempt for a line that has little room.
pub fn brief_failure(failure: &str) -> String {
    match failure.strip_prefix("protected files were touched: ") {
        Some(files) => format!("tampered: {files}"),
        None => failure.to_owned(),
    }
}

/// Returns the last line that says something.
pub fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("")
}

/// Returns the mark of a step, as the live view and `plan status` draw it.
pub fn step_mark(state: StepState) -> (char, Style) {
    match state {
        StepState::Pending => ('·', FAINT),
        StepState::Ready | StepState::Working | StepState::Checking => ('▸', BOLD),
        StepState::Resting => ('↻', CARE),
        StepState::Waiting => ('✋', CARE),
        StepState::Passed => ('✔', GOOD),
        StepState::Failed => ('✖', BAD),
        StepState::Skipped => ('↷', CARE),
        StepState::Waived => ('~', CARE),
        StepState::Warned => ('!', CARE),
    }
}

/// Draws a table without lines; cells are made safe.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| safe(cell)).collect::<Vec<_>>());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Draws the path of a run; a step that was tried several times in a row stands there once: `1 → 2 ×3 → 1`.
pub fn path(steps: &[String]) -> String {
    let runs = steps.chunk_by(|one, next| one == next);
    let named = runs.map(|same| match same.len() {
        1 => same[0].clone(),
        count => format!("{} ×{count}", same[0]),
    });
    named.collect::<Vec<_>>().join(" → ")
}

/// Writes data to standard output. A reader that has gone away is no failure (row 96); a full disk is one (row 97).
pub fn print(text: &str) -> Result<(), Failure> {
    write_result(anstream::stdout().write_all(text.as_bytes()))
}

/// Makes a new file that standard output goes to one that only its owner reads, since a secret follows. One that holds something
/// already stays as it is.
pub fn keep_output_private() {
    let out = io::stdout();
    let is_new = |stat: rustix::fs::Stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_size == 0
    };
    if rustix::fs::fstat(&out).is_ok_and(is_new) {
        // Where it is somebody else's file, the command that is to read the token says so.
        rustix::fs::fchmod(&out, rustix::fs::Mode::from_raw_mode(0o600)).ok();
    }
}

/// Writes a value as one line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not write JSON: {error}")))?;
    print(&format!("{}\n", planctl_lang::json_escaped(text)))
}

/// Flushes standard output, so that a failure to write it is known.
pub fn flush() -> Result<(), Failure> {
    write_result(io::stdout().flush())
}

/// Flushes standard output, and says whether anybody reads it: a pipe may have no reader any more.
pub fn flush_to_reader() -> Result<bool, Failure> {
    flush()?;
    let out = io::stdout();
    let mut watched = [PollFd::new(&out, PollFlags::empty())];
    let is_known = poll(&mut watched, Some(&Timespec::default())).is_ok();
    Ok(!(is_known && watched[0].revents().contains(PollFlags::ERR)))
}

fn write_result(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::of_io("write to standard output", &error)),
    }
}

/// Writes talk to standard error; where nobody listens, nothing is lost.
pub fn say(text: &str) {
    writeln!(anstream::stderr(), "{text}").unwrap_or(());
}

/// Writes prose to standard error, broken between words where the terminal is narrower.
pub fn tell(text: &str) {
    say(&folded(text));
}

/// Says how far the fetching of Postgres is: in place at a terminal, once elsewhere.
pub fn fetching(fetching: &Fetching) {
    let Fetching { client, major, megabytes, bytes, elapsed, is_over } = fetching;
    let line = format!("no Postgres is installed: fetching Postgres {major} with {client} ({megabytes} MB)");
    if !io::stderr().is_terminal() {
        if elapsed.is_zero() {
            say(&line);
        }
        return;
    }
    let arrived = match bytes {
        0 => String::new(),
        bytes => format!(" · {:.1} MB", *bytes as f64 / 1e6),
    };
    let end = if *is_over { "\n" } else { "" };
    write!(anstream::stderr(), "\r\x1b[J{line}{arrived} · {}{end}", span(*elapsed)).unwrap_or(());
}

/// Writes a path as a word of a command: one word of a shell, and no flag.
pub fn file_word(path: &Path) -> String {
    let path = path.to_string_lossy();
    if path.starts_with('-') && path != "-" { shell_word(&format!("./{path}")) } else { shell_word(&path) }
}

/// Writes a word so that a shell reads it as one, made safe for the terminal.
pub fn shell_word(text: &str) -> String {
    planctl_lang::shell_word(&safe(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_step_that_is_tried_again_once() {
        let steps = ["1", "2", "2", "2", "1"].map(str::to_owned);
        assert_eq!(path(&steps), "1 → 2 ×3 → 1");
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        assert_eq!(last_line("one\ntwo\n\n"), "two");
    }

    #[test]
    fn words_of_a_command_to_type_are_quoted_where_needed() {
        assert_eq!(shell_word("plans/a.md"), "plans/a.md");
        assert_eq!(shell_word("it's here"), "\"it's here\"");
        assert_eq!(shell_word(""), "''");
    }
}
