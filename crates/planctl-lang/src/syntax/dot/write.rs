//! Writes DOT so that Graphviz reads it; the author's own text stays as it was written (D21).

use super::lexemes::is_name;
use super::read::is_keyword;
use super::syntax::{Attribute, Digraph, Statement};
use crate::syntax::source::Source;
use crate::text::Spanned;

/// Writes a file's graph: its own text, comments and unknown attributes included, with quotes around each word that Graphviz
/// takes only so: durations, keys with dots, words with dots, dashes or colons (D10 to D12).
pub fn write(source: &Source, digraph: &Digraph) -> String {
    let mut words: Vec<&Spanned<String>> = digraph.name.iter().collect();
    words_of(&digraph.statements, &mut words);
    words.sort_by_key(|word| word.span.start);
    let mut text = String::with_capacity(source.text().len() + 64);
    let mut done = source.bom_bytes();
    for word in words {
        let written = source.slice(word.span);
        let is_over = word.span.start < done || written.starts_with(['"', '<']);
        if is_over || is_plain_to_graphviz(written) {
            continue;
        }
        text.push_str(&source.text()[done..word.span.start]);
        text.push_str(&quoted(&word.value));
        done = word.span.end;
    }
    text.push_str(&source.text()[done..]);
    text
}

fn words_of<'d>(statements: &'d [Statement], words: &mut Vec<&'d Spanned<String>>) {
    let say = |attributes: &'d [Attribute], words: &mut Vec<&'d Spanned<String>>| {
        words.extend(attributes.iter().flat_map(|attribute| [&attribute.key, &attribute.value]));
    };
    for statement in statements {
        match statement {
            Statement::Defaults { attributes, .. } => say(attributes, words),
            Statement::Assignment(attribute) => say(std::slice::from_ref(attribute), words),
            Statement::Node { name, attributes, .. } => {
                words.push(name);
                say(attributes, words);
            }
            Statement::Edges { ends, attributes, .. } => {
                words.extend(ends.iter().flatten());
                say(attributes, words);
            }
            Statement::Subgraph { name, statements, .. } => {
                words.extend(name);
                words_of(statements, words);
            }
        }
    }
}

/// Says whether Graphviz takes a word without quotes: a name that is none of its own words, or a number.
fn is_plain_to_graphviz(word: &str) -> bool {
    let is_own = is_keyword(&word.to_ascii_lowercase());
    let number = word.strip_prefix('-').unwrap_or(word);
    let is_number = number.bytes().any(|byte| byte.is_ascii_digit())
        && number.bytes().filter(|byte| *byte == b'.').count() <= 1
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_name(word) && !is_own) || is_number
}

/// Says whether a text can name a node.
pub(crate) fn is_plain_name(name: &str) -> bool {
    is_name(name) && !is_keyword(name)
}

/// Writes a key, a value or a name: bare where every reader of the dialect and Graphviz take it so, else in quotes.
pub(crate) fn value_text(value: &str) -> String {
    if is_plain_to_graphviz(value) { value.to_owned() } else { quoted(value) }
}

fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}
