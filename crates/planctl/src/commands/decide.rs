//! Asks a person at the terminal.

use std::io::{BufRead, Write};

use crate::failure::{Exit, Failure};
use crate::show::{self, BOLD};

/// Asks for one of some letters, each shown as `[a]pprove`; asks again until one is given.
///
/// The end of the input counts as the last choice, which is the harmless one.
pub fn choose(question: &str, choices: &[(char, &str)]) -> Result<char, Failure> {
    let shown: Vec<String> =
        choices.iter().map(|(letter, rest)| format!("[{BOLD}{letter}{BOLD:#}]{rest}")).collect();
    let harmless = choices.last().map_or('n', |choice| choice.0);
    loop {
        let Some(line) = read_line(&format!("{question} {} > ", shown.join("  ")))? else {
            return Ok(harmless);
        };
        let typed = line.trim().to_lowercase();
        let chosen = choices.iter().find(|(letter, rest)| {
            typed == letter.to_string() || typed == format!("{letter}{rest}").to_lowercase()
        });
        match chosen {
            Some((letter, _)) => return Ok(*letter),
            None => show::say("one of these letters, please"),
        }
    }
}

/// Asks for a line of text; none at the end of the input.
pub fn read_line(question: &str) -> Result<Option<String>, Failure> {
    let mut talk = anstream::stderr();
    write!(talk, "{question}").and_then(|()| talk.flush()).unwrap_or(());
    let mut line = String::new();
    let read = std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not read the answer: {error}")))?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}
