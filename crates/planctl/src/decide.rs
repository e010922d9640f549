//! Asks a person at the terminal.

use std::io::{BufRead, Write};

use crate::failure::{Exit, Failure};
use crate::show::{self, BOLD};
use crate::stop::Stop;

/// The answers to a question of which the second is harmless.
const YES_OR_NO: [(char, &str); 2] = [('y', "es"), ('n', "o")];

/// Asks for one of some letters, each shown as `[a]pprove`; asks again until one is given.
///
/// The end of the input counts as the last choice, which is the harmless one; a yes as the first.
pub fn choose(question: &str, choices: &[(char, &str)]) -> Result<char, Failure> {
    let shown: Vec<String> =
        choices.iter().map(|(letter, rest)| format!("[{BOLD}{letter}{BOLD:#}]{rest}")).collect();
    let harmless = choices.last().map_or('n', |choice| choice.0);
    loop {
        let Some(line) = read_line(&format!("{question} {} > ", shown.join("  ")))? else {
            return Ok(harmless);
        };
        match matching_choice(&line, choices) {
            Some(letter) => return Ok(letter),
            None => show::say(&letters_wanted(choices.iter().map(|choice| choice.0))),
        }
    }
}

/// Asks a question where Ctrl-C must not end the process before it said what stays behind: then it is an error.
pub async fn is_yes_or_stopped(question: &str) -> Result<bool, Failure> {
    let mut stop = Stop::listen()?;
    let question = question.to_owned();
    tokio::select! {
        chosen = tokio::task::spawn_blocking(move || choose(&question, &YES_OR_NO)) => chosen
            .map_err(|error| Failure::new(Exit::Temporary, format!("could not read the answer: {error}")))?
            .map(|chosen| chosen == 'y'),
        exit = stop.wait_for_signal() => {
            show::say("");
            Err(Failure::new(exit, "nothing was decided"))
        }
    }
}

/// Finds the choice that a line means.
fn matching_choice(line: &str, choices: &[(char, &str)]) -> Option<char> {
    let typed = line.trim().to_lowercase();
    let is_meant = |(letter, rest): &&(char, &str)| {
        typed == letter.to_string() || typed == format!("{letter}{rest}").to_lowercase()
    };
    let yes = choices.first().filter(|_| typed == "y" || typed == "yes");
    choices.iter().find(is_meant).or(yes).map(|choice| choice.0)
}

/// Says which letters answer: `Please type a, d or n.`
pub fn letters_wanted(letters: impl IntoIterator<Item = char>) -> String {
    let mut letters: Vec<String> = letters.into_iter().map(String::from).collect();
    let last = letters.pop().unwrap_or_default();
    if letters.is_empty() {
        format!("Please type {last}.")
    } else {
        format!("Please type {} or {last}.", letters.join(", "))
    }
}

/// Asks for a line of text; none at the end of the input.
pub fn read_line(question: &str) -> Result<Option<String>, Failure> {
    print_question(question);
    let mut line = String::new();
    let read = std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not read the answer: {error}")))?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Writes a question, after which a person types.
pub fn print_question(question: &str) {
    let mut talk = anstream::stderr();
    write!(talk, "{question}").and_then(|()| talk.flush()).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_a_word_or_a_yes_is_understood_and_the_letters_are_named_otherwise() {
        let choices = [('a', "pprove"), ('d', "iff"), ('n', "o")];
        for (line, meant) in [
            ("a", Some('a')),
            (" Approve ", Some('a')),
            ("y", Some('a')),
            ("YES", Some('a')),
            ("n", Some('n')),
            ("no", Some('n')),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(matching_choice(line, &choices), meant, "{line}");
        }
        assert_eq!(matching_choice("y", &[('y', "es"), ('n', "o")]), Some('y'));
        assert_eq!(letters_wanted(choices.map(|choice| choice.0)), "Please type a, d or n.");
    }
}
