//! Texts as words of a shell.

use std::borrow::Cow;

/// Writes a text as one word of a shell, to be copied by people: bare where every shell reads it as itself.
pub fn shell_word(text: &str) -> String {
    if is_plain_word(text) {
        return text.to_owned();
    }
    // No shell takes a word with a NUL in it.
    shlex::try_quote(text).map_or_else(|_| shell_quoted(text), Cow::into_owned)
}

/// Writes a text in single quotes. Contracts that planctl writes have all their words so: the same text is the same contract.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Says whether a text is a word that no shell reads as anything but itself.
pub(crate) fn is_plain_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_./:@%+,=-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_reads_something_else_in_it() {
        assert_eq!(shell_word("plans/a.md"), "plans/a.md");
        assert_eq!(shell_word("two words"), "'two words'");
        assert_eq!(shell_word(""), "''");
        for text in ["it's here", "a\"b", "$(x)", "a\nb", "it's \"$x\""] {
            for word in [shell_word(text), shell_quoted(text)] {
                assert_eq!(shlex::split(&word).as_deref(), Some(&[text.to_owned()][..]), "{word}");
            }
        }
    }
}
