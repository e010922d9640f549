//! The scripts that the bash parser behind us is not given, and those that it is known to refuse though bash does not.

/// Each level takes stack of the parser, which recurses.
const NESTING_MAX: usize = 24;
/// The parser tries each `(` in two ways, so its time doubles with each that nests.
const PARENTHESES_MAX: usize = 10;
/// The last branch of a `case` is read twice, so time doubles with each that nests.
const CASES_MAX: usize = 8;

/// Says whether a script uses the measured gaps of the parser: `select`, `for ((;;))`, `case` inside a substitution, and
/// `[[`, of which bash accepts more than it can run.
pub(super) fn is_uncertain(script: &str) -> bool {
    let has_word =
        |word: &str| script.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word);
    let loops = script.contains("for ((") || script.contains("for((");
    has_word("select")
        || loops
        || script.contains("[[ ")
        || (has_word("case") && (script.contains("$(") || script.contains('`')))
}

/// Says whether the parser would panic: it takes the digits after `~` for a number that fits into 64 bits.
pub(super) fn has_endless_number(script: &str) -> bool {
    let after = script.split('~').skip(1).map(|rest| rest.trim_start_matches(['+', '-']));
    after.into_iter().any(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() > 15)
}

/// Says whether constructs nest too deeply, by an upper bound.
pub(super) fn nests_too_deeply(script: &str) -> bool {
    let is_clear = !(script.contains("<<") || script.contains('"') && script.contains("$("));
    let depth = if is_clear { depth(script, true) } else { None };
    // Where a quote stays open, or where quotes can't be told without reading, what looks quoted counts as well.
    let depth = depth.or_else(|| depth_of_all(script)).unwrap_or(Depth { over: true, ..Depth::default() });
    depth.over || script.matches("\\`").count() > NESTING_MAX
}

fn depth_of_all(script: &str) -> Option<Depth> {
    depth(script, false)
}

#[derive(Default)]
struct Depth {
    words: usize,
    cases: usize,
    braces: usize,
    parentheses: usize,
    over: bool,
}

impl Depth {
    fn word(&mut self, word: &str) {
        match word {
            "case" => {
                self.words += 1;
                self.cases += 1;
            }
            "if" | "while" | "until" | "for" | "select" => self.words += 1,
            "esac" => {
                self.words = self.words.saturating_sub(1);
                self.cases = self.cases.saturating_sub(1);
            }
            "fi" | "done" => self.words = self.words.saturating_sub(1),
            _ => {}
        }
    }

    fn mark(&mut self, character: char) {
        match character {
            '(' => self.parentheses += 1,
            ')' => self.parentheses = self.parentheses.saturating_sub(1),
            '{' => self.braces += 1,
            '}' => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        let sum = self.words + self.braces + self.parentheses;
        self.over |= self.parentheses > PARENTHESES_MAX || sum > NESTING_MAX || self.cases > CASES_MAX;
    }
}

// Text in single quotes is skipped where that is asked for; `None` where one stays open.
fn depth(script: &str, skips_quoted: bool) -> Option<Depth> {
    let mut depth = Depth::default();
    let mut word = String::new();
    let (mut before, mut is_double) = (' ', false);
    let mut characters = script.chars().chain([' ']);
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            word.push(character);
            before = character;
            continue;
        }
        depth.word(&word);
        word.clear();
        match character {
            _ if before == '\\' => {}
            '"' => is_double = !is_double,
            '\'' if skips_quoted && !is_double && before != '$' => {
                characters.by_ref().find(|other| *other == '\'')?;
            }
            other => depth.mark(other),
        }
        before = if before == '\\' { ' ' } else { character };
    }
    (!(skips_quoted && is_double)).then_some(depth)
}
