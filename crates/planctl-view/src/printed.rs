//! The output of programs as people and agents read it: without terminal sequences, and the one line that says what failed.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Returns a program's output without terminal sequences (colours, titles, links, cursor moves). Of a line that was rewritten
/// with carriage returns, the last state stays.
///
/// A sequence that is not well-formed stays as it is.
pub fn strip_terminal_sequences(text: &str) -> Cow<'_, str> {
    if !text.contains(['\x1b', '\u{9b}', '\r', '\x08']) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = match (character, sequence_length(rest)) {
            ('\x1b' | '\u{9b}', Some(length)) => &rest[length..],
            ('\x08', _) => {
                if shown.ends_with(|last| last != '\n') {
                    shown.pop();
                }
                after
            }
            _ => {
                shown.push(character);
                after
            }
        };
    }
    if !shown.contains('\r') {
        return Cow::Owned(shown);
    }
    let lines = shown.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let newest = line.split('\r').rfind(|state| !state.is_empty()).unwrap_or_default();
        format!("{newest}{end}")
    });
    Cow::Owned(lines.collect())
}

/// Returns the length of the terminal sequence at the start of a text; of one that the end of the text cuts off, of all that
/// is left. There is none where it is not well-formed.
fn sequence_length(text: &str) -> Option<usize> {
    let (opener, at) = match text.strip_prefix('\u{9b}') {
        Some(_) => ('[', '\u{9b}'.len_utf8()),
        None => {
            let after = text.strip_prefix('\x1b')?;
            let Some(opener) = after.chars().next() else { return Some(text.len()) };
            (opener, 1 + opener.len_utf8())
        }
    };
    let body = &text[at..];
    match opener {
        // A control sequence: parameters, and the letter that says what to do with them.
        '[' => sequence_end(text, at, body.find(|c| !(' '..='?').contains(&c)), '@'..='~'),
        // A string for the terminal, such as a title, until BEL or ESC \. Without its end it would swallow what follows.
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = body.find(['\x07', '\x1b', '\n'])?;
            let length =
                ["\x07", "\x1b\\"].into_iter().find(|end_mark| body[end..].starts_with(end_mark))?.len();
            Some(at + end + length)
        }
        ' '..='/' => sequence_end(text, at, body.find(|c| !(' '..='/').contains(&c)), '0'..='~'),
        '0'..='~' => Some(at),
        _ => None,
    }
}

/// Returns the length of a sequence whose body begins at `at` and ends with a character of `ends`, `end` characters later.
fn sequence_end(text: &str, at: usize, end: Option<usize>, ends: RangeInclusive<char>) -> Option<usize> {
    let Some(end) = end else { return Some(text.len()) };
    text[at + end..].chars().next().filter(|last| ends.contains(last)).map(|_| at + end + 1)
}

/// How well a line tells why something failed; the first line of the best class is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// It names the test and the reason: `FAILED tests/a.py::test - assert 1 == 2`.
    Summary,
    /// It says what is wrong: an error, a failed assertion, a panic, an exception.
    Reason,
    /// It names what failed: `test a ... FAILED`.
    Name,
    /// It says that something failed: `make: *** [test] Error 1`.
    Count,
}

/// Returns the line of a failed command's output that says why it failed, else the last one that says anything.
pub fn telling_line(stderr: &str, stdout: &str) -> Option<String> {
    let streams = [strip_terminal_sequences(stderr), strip_terminal_sequences(stdout)];
    let streams = streams.each_ref().map(|stream| stream.lines().collect::<Vec<_>>());
    let mut best: Option<(Class, String)> = None;
    for lines in &streams {
        let is_quoted = quoted_lines(lines);
        for (at, line) in lines.iter().enumerate().filter(|(at, _)| !is_quoted[*at]) {
            if let Some(class) = classify_error(line)
                && best.as_ref().is_none_or(|(best, _)| class < *best)
            {
                best = Some((class, line_with_reason(lines, at)));
            }
        }
    }
    let last = || {
        let mut said = streams.iter().filter_map(|lines| lines.iter().rfind(|line| !is_noise(line)));
        said.next().map(|line| line.trim().to_owned())
    };
    best.map(|(_, line)| line).or_else(last)
}

/// Says of each line whether it is source that a traceback or a message quotes, or the place of that.
fn quoted_lines(lines: &[&str]) -> Vec<bool> {
    let points_at_source = |at: usize| {
        let marks = lines.get(at).map_or("", |line| line.trim());
        !marks.is_empty() && marks.chars().all(|c| matches!(c, '^' | '~'))
    };
    // The indentation of the frame that the lines below it quote.
    let mut frame = None;
    let is_quoted = |(at, line): (usize, &&str)| {
        let (indentation, line) = (line.len() - line.trim_start().len(), line.trim());
        if is_frame(line) {
            frame = Some(indentation);
            return true;
        }
        frame = frame.filter(|frame| indentation > *frame);
        frame.is_some() || points_at_source(at + 1) || is_place(line) && points_at_source(at + 2)
    };
    lines.iter().enumerate().map(is_quoted).collect()
}

/// Tells a frame of a Python traceback: `File "a.py", line 3, in f`, as pytest has it `a.py:3: in f`.
fn is_frame(line: &str) -> bool {
    let is_of_pytest = || line.split_once(": in ").is_some_and(|(place, _)| is_place(place));
    line.starts_with("File \"") && line.contains("\", line ") || is_of_pytest()
}

/// Tells a place: `a.js:3`.
fn is_place(text: &str) -> bool {
    let number = text.rsplit_once(':').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && !text.contains(char::is_whitespace)
}

/// Returns a line without the mark of its tool, together with the next one where that has the reason. The bare name of a Python
/// exception is followed by the source that raised it.
fn line_with_reason(lines: &[&str], at: usize) -> String {
    let line = lines[at].trim();
    let line = line.strip_prefix("E  ").map_or(line, str::trim_start);
    if is_exception(line) && !line.contains(' ') {
        let frame = lines[..at].iter().rposition(|line| is_frame(line.trim()));
        let source = frame.and_then(|frame| lines[frame + 1..at].first());
        return source.map_or(line.to_owned(), |source| format!("{line}: {}", source.trim()));
    }
    let next = lines[at + 1..].iter().map(|next| next.trim()).find(|next| !next.is_empty());
    let continues = line.ends_with(':') || line.starts_with("--- FAIL: ");
    let is_reason = |next: &&str| !is_noise(next) && !next.starts_with("--- ") && !next.starts_with("FAIL");
    match next.filter(|next| continues && is_reason(next)) {
        Some(next) => {
            format!("{} {next}", if line.ends_with(':') { line.to_owned() } else { format!("{line}:") })
        }
        None => line.to_owned(),
    }
}

fn classify_error(line: &str) -> Option<Class> {
    // The source that pytest quotes above an error.
    let is_quoted_source = line.starts_with('>');
    let line = line.trim();
    if is_quoted_source || is_noise(line) || counts_none(line) {
        return None;
    }
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| line.starts_with(beginning));
    let has = |parts: &[&str]| parts.iter().any(|part| line.contains(part));
    if begins(&["FAILED ", "ERROR "]) && has(&["::", ".py"]) {
        return Some(if has(&[" - "]) { Class::Summary } else { Class::Name });
    }
    if begins(&CONSEQUENCES) || line == "FAIL" || line == "failures:" {
        return Some(Class::Count);
    }
    if begins(&["FAIL ", "FAIL: ", "ERROR: "]) || line.ends_with("... FAILED") {
        return Some(Class::Name);
    }
    if begins(&REASONS_BEGIN)
        || has(&REASONS_HOLD)
        || is_error(line)
        || is_exception(line)
        || is_located(line)
    {
        return Some(Class::Reason);
    }
    let lower = line.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    if words().any(|word| word.starts_with("assert")) {
        return Some(Class::Reason);
    }
    let tells = |word: &str| matches!(word, "fail" | "failed" | "failure" | "failures" | "error" | "errors");
    words().any(tells).then_some(Class::Count)
}

/// How lines begin that say what follows from a failure that other lines explain.
const CONSEQUENCES: [&str; 16] = [
    "error: test failed",
    "error: could not compile",
    "error: aborting due to",
    "error: Recipe ",
    "error Command failed",
    "make: ***",
    "make[",
    "gmake: ***",
    "npm ERR!",
    "npm error",
    "FAIL\t",
    "exit status ",
    "test result: ",
    "Tests:",
    "Test Suites:",
    "Found ",
];

const REASONS_BEGIN: [&str; 11] = [
    "not ok ",
    "✖ ",
    "✗ ",
    "✕ ",
    "× ",
    "● ",
    "--- FAIL: ",
    "E  ",
    "panic: ",
    "fatal: ",
    "Exception in thread ",
];

const REASONS_HOLD: [&str; 5] =
    [" panicked at ", "No such file or directory", "command not found", ": not found", "Permission denied"];

/// Tells `error: …`, `error[E0308]: …`, `a.ts(3,7): error TS2322: …` and `1:7  error  …` from prose about errors.
fn is_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.match_indices("error").any(|(at, word)| {
        let (before, after) = (&lower[..at], &lower[at + word.len()..]);
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric());
        let is_column = before.ends_with("  ") && after.starts_with("  ");
        is_word && (is_column || after.starts_with([':', '[']) || after.starts_with(" ts"))
    })
}

/// Tells the line of an exception: `ValueError: …`, `AssertionError [ERR_ASSERTION]: …`, or its bare name.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let rest = &line[name.len()..];
    let is_said = rest.is_empty() || rest.starts_with(": ") || rest.starts_with(" [");
    is_name
        && is_said
        && ["Error", "Exception"].iter().any(|end| name.ends_with(end) && name.len() > end.len())
}

/// Tells a finding with its place: `a.py:1:8: F401 …`, `./a.go:5:2: undefined: x`, or with its code: `F401 [*] …`.
fn is_located(line: &str) -> bool {
    let lower = line.to_lowercase();
    if ["warning", "note:", "info:", "remark:"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    let mut parts = line.splitn(3, ':');
    let (path, number, said) = (parts.next(), parts.next(), parts.next());
    let is_path = path.is_some_and(|path| path.contains(['.', '/']) && !path.contains(char::is_whitespace));
    let is_number =
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    let code = line.split(' ').next().unwrap_or_default();
    let digits = code.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = code.len() - digits.len();
    let is_code = (1..=4).contains(&letters)
        && (3..=4).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit());
    (is_path && is_number && said.is_some_and(|said| said.len() > 2)) || is_code && line.len() > code.len()
}

/// Tells a count of nothing: `0 errors`, `no failures`.
fn counts_none(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| {
        let (first, second) = (pair[0], pair[1]);
        let counts = |word: &str| ["error", "fail", "problem"].iter().any(|noun| word.starts_with(noun));
        matches!(first, "0" | "no") && counts(second) || second == "0" && counts(first)
    })
}

/// Recognizes lines that say nothing about a failure: blank ones, bars, comments, gutters of quoted source, calls on a stack, notes,
/// what passed.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    let is_bar = |c: char| {
        let mark = c.to_string().repeat(3);
        line.starts_with(&mark) && line.ends_with(c)
    };
    let has_gutter = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('|');
    let is_call = line.strip_prefix("at ").is_some_and(|frame| {
        let place = frame.trim_end_matches(')').rsplit(['(', ' ']).next();
        place.is_some_and(is_place)
    });
    let beginnings = [
        "#",
        "ℹ ",
        "ok ",
        "1..",
        "TAP version",
        "note:",
        "help:",
        "hint:",
        "warning:",
        "-->",
        "= note",
        "= help",
        "duration_ms",
        "Node.js v",
        "(Use `node ",
    ];
    !line.contains(char::is_alphanumeric)
        || ['=', '_', '-', '*', '~'].into_iter().any(is_bar)
        || has_gutter
        || is_call
        || beginnings.iter().any(|beginning| line.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_are_taken_out_and_the_text_stays() {
        let cases = [
            ("plain\ntext\t1\n", "plain\ntext\t1\n"),
            ("\x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m139 passed", "1 failed, 139 passed"),
            ("\x1b[38;2;1;2;3mrgb\x1b[m \u{9b}1mc1", "rgb c1"),
            ("\x1b]8;;https://a.b/\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07end", "link end"),
            ("\x1b(B\x1b=\x1b7\x1bPq#0\x1b\\kept", "kept"),
            ("\x1b[2K\x1b[1Aup", "up"),
            ("cut \x1b[3", "cut "),
            ("cut \x1b", "cut "),
            ("\x1b]0;no end\nnext line", "\x1b]0;no end\nnext line"),
            ("\x1bä", "\x1bä"),
            (" 10%\r 50%\r100%\r\ndone\r\n", "100%\ndone\n"),
            ("one\r\ntwo\r", "one\ntwo"),
            ("|\x08/\x08-\x08ok\n\x08x", "ok\nx"),
        ];
        for (raw, shown) in cases {
            assert_eq!(strip_terminal_sequences(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn without_a_line_that_says_why_the_last_one_that_says_anything_is_taken() {
        assert_eq!(telling_line("", ""), None);
        assert_eq!(telling_line("\n----\n", ""), None);
        assert_eq!(telling_line("", "one\ntwo\n\n# duration_ms 12\n======\n").as_deref(), Some("two"));
        assert_eq!(telling_line("on stderr\n", "on stdout\n").as_deref(), Some("on stderr"));
        assert_eq!(telling_line("", "0 errors\nno failures\nlast\n").as_deref(), Some("last"));
    }
}
