//! What the bash parser behind us is not given, and what it is known to refuse though bash does not.

const NESTING_MAX: usize = 24;
/// The parser tries each `(` in two ways, so its time doubles with each that nests.
const PARENTHESES_MAX: usize = 10;

/// Says whether a script uses the measured gaps of the parser: `select`, `for ((;;))`, and `case` inside a substitution.
pub(super) fn is_uncertain(script: &str) -> bool {
    let has_word =
        |word: &str| script.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word);
    let loops = script.contains("for ((") || script.contains("for((");
    has_word("select") || loops || (has_word("case") && (script.contains("$(") || script.contains('`')))
}

/// Says whether constructs nest too deeply, by an upper bound that has no regard to quotes.
pub(super) fn nests_too_deeply(script: &str) -> bool {
    let (mut words, mut braces, mut parentheses) = (0_usize, 0_usize, 0_usize);
    let mut word = String::new();
    let mut before = ' ';
    for character in script.chars().chain([' ']) {
        if character.is_alphanumeric() || character == '_' {
            word.push(character);
            before = character;
            continue;
        }
        match word.as_str() {
            "if" | "while" | "until" | "for" | "case" | "select" => words += 1,
            "fi" | "done" | "esac" => words = words.saturating_sub(1),
            _ => {}
        }
        word.clear();
        match character {
            _ if before == '\\' => {}
            '(' => parentheses += 1,
            ')' => parentheses = parentheses.saturating_sub(1),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        before = character;
        if parentheses > PARENTHESES_MAX || words + braces + parentheses > NESTING_MAX {
            return true;
        }
    }
    script.matches("\\`").count() > NESTING_MAX
}
