//! How an item becomes one word of a script, wherever it is put in.

use crate::text::{is_plain_word, shell_quoted};

/// Where in a script a placeholder stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Context {
    /// At the begin of a word.
    Bare,
    /// Inside a word.
    Joined,
    /// Inside quotes.
    Quoted,
    /// Where quoting has other rules.
    Hard,
}

/// Returns where in a script the item is put in, and what stands around each place.
pub(super) fn contexts(script: &str) -> Vec<(usize, Context)> {
    let here = script.replace("<<<", "   ");
    let has = |part: &str| here.contains(part);
    // Nested quotes and commands that read their words as code have rules of their own.
    let is_nested = has("\"") && (has("$(") || has("${"));
    let is_hard = is_nested || ["<<", "((", "`", "$'", "eval", " -c "].into_iter().any(has);
    let mut found = Vec::new();
    let mut quote: Option<char> = None;
    let mut before = ' ';
    let mut characters = script.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character == '{' && script[at..].starts_with("{item}") && before != '$' {
            let context = match (is_hard, quote) {
                (true, _) => Context::Hard,
                (false, Some(_)) => Context::Quoted,
                (false, None) if before.is_whitespace() || ";&|(".contains(before) => Context::Bare,
                (false, None) => Context::Joined,
            };
            found.push((at, context));
        }
        match (character, quote) {
            ('\\', None | Some('"')) => {
                let next = characters.next();
                found.extend(
                    next.filter(|(at, _)| script[*at..].starts_with("{item}"))
                        .map(|(at, _)| (at, Context::Hard)),
                );
            }
            ('#', None) if before.is_whitespace() || ";&|(".contains(before) => {
                while characters.peek().is_some_and(|(_, next)| *next != '\n') {
                    characters.next();
                }
            }
            ('\'' | '"', None) => quote = Some(character),
            (same, Some(open)) if same == open => quote = None,
            _ => {}
        }
        before = character;
    }
    found
}

/// Quotes an item so that a shell reads it as one word.
pub(super) fn quote(item: &str) -> String {
    if is_plain_word(item) { item.to_owned() } else { shell_quoted(item) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::shell;

    #[test]
    fn an_item_in_a_script_is_known_by_what_stands_around_it() {
        let context =
            |script: &str| contexts(script).into_iter().map(|(_, context)| context).collect::<Vec<_>>();
        assert_eq!(context("test -f {item} && x a/{item}"), [Context::Bare, Context::Joined]);
        assert_eq!(
            context("x '{item}' \"a{item}\" \\' {item}"),
            [Context::Quoted, Context::Quoted, Context::Bare]
        );
        assert_eq!(context("# don't {item}\nx '{item}'"), [Context::Quoted]);
        assert_eq!(context("cat <<E\n{item}\nE"), [Context::Hard]);
        assert_eq!(context("x ${item}"), []);
        for hard in ["x \\{item}", "x \"$(y \"{item}\")\"", "eval x {item}", "bash -c 'x {item}'"] {
            assert_eq!(context(hard), [Context::Hard], "{hard}");
        }
        assert_eq!(context("x <<< {item}"), [Context::Bare]);
    }

    #[test]
    fn a_quoted_item_is_one_word_of_a_shell() {
        for item in ["a b", "it's", "$(touch x)", "`x`", "a;b", "\"", "a\\"] {
            let script = format!("test -f {}", quote(item));
            let shell::Reading::Read(read) = shell::read(&script) else { panic!("{script}") };
            assert_eq!(read.items.len(), 1, "{script}");
        }
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}
