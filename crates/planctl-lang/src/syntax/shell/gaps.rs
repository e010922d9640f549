//! Rewrites the three forms that bash reads and the parser behind us does not, so that every place stays known.

use super::text::Text;
use crate::text::Span;

/// Returns the script with `select` as `for`, `;;` in the head of `for ((…))` as `; ;`, and `(` before the patterns of
/// `case`; `None` where it has none of them.
pub(super) fn rewrite_unsupported(script: &str) -> Option<Text> {
    let text = Text::of(script);
    let characters: Vec<(char, Span)> = text.chars().collect();
    let mut made = Text::default();
    let mut is_changed = false;
    let mut cases: Vec<Case> = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let (character, place) = characters[at];
        if character == '\'' {
            let close = characters[at + 1..].iter().position(|(other, _)| *other == '\'');
            let end = close.map_or(at, |close| at + 1 + close);
            characters[at..=end].iter().for_each(|(other, place)| made.push(*other, *place));
            at = end + 1;
            continue;
        }
        let word = word_at(&characters, at);
        match word.as_str() {
            "select" => {
                is_changed = true;
                let places: Vec<Span> = characters[at..at + 6].iter().map(|(_, place)| *place).collect();
                made.push_select(&places);
                at += places.len();
                continue;
            }
            "for" => {
                let (head, end) = loop_head(&characters, at);
                for index in at..end {
                    let is_second = index > 0 && characters[index].0 == ';' && characters[index - 1].0 == ';';
                    if head && is_second {
                        is_changed = true;
                        made.push(' ', characters[index].1);
                    }
                    made.push(characters[index].0, characters[index].1);
                }
                at = end;
                continue;
            }
            "case" => cases.push(Case::Subject),
            "esac" => {
                cases.pop();
            }
            "in" if cases.last() == Some(&Case::Subject) => {
                let _ = cases.pop();
                cases.push(Case::Pattern);
                made.push('i', place);
                made.push('n', characters[at + 1].1);
                at += 2;
                continue;
            }
            _ => {}
        }
        if word.is_empty() && character == ';' && !cases.is_empty() && next_is(&characters, at, &[';', '&']) {
            while characters.get(at).is_some_and(|(other, _)| matches!(other, ';' | '&')) {
                made.push(characters[at].0, characters[at].1);
                at += 1;
            }
            if let Some(last) = cases.last_mut() {
                *last = Case::Pattern;
            }
            continue;
        }
        if cases.last() == Some(&Case::Pattern) && !character.is_whitespace() {
            if let Some(last) = cases.last_mut() {
                *last = Case::Body;
            }
            if character != '(' && word != "esac" {
                is_changed = true;
                made.push('(', Span::at(place.start));
            }
        }
        let length = word.chars().count().max(1);
        characters[at..at + length].iter().for_each(|(other, place)| made.push(*other, *place));
        at += length;
    }
    is_changed.then_some(made)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Subject,
    Pattern,
    Body,
}

fn next_is(characters: &[(char, Span)], at: usize, wanted: &[char]) -> bool {
    characters.get(at + 1).is_some_and(|(next, _)| wanted.contains(next))
}

// The whole word that begins here; empty inside of one.
fn word_at(characters: &[(char, Span)], at: usize) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.' | '/' | '=');
    if at > 0 && is_part(characters[at - 1].0) {
        return String::new();
    }
    characters[at..].iter().map(|(character, _)| *character).take_while(|c| is_part(*c)).collect()
}

// Says whether a `for` has `((`, and where its head ends.
fn loop_head(characters: &[(char, Span)], at: usize) -> (bool, usize) {
    let mut open = at + 3;
    while characters.get(open).is_some_and(|(c, _)| matches!(c, ' ' | '\t')) {
        open += 1;
    }
    if characters.get(open).is_none_or(|(c, _)| *c != '(') || !next_is(characters, open, &['(']) {
        return (false, at + 3);
    }
    let mut depth = 0_usize;
    for (index, (character, _)) in characters.iter().enumerate().skip(open) {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (true, index + 1);
        }
    }
    (false, at + 3)
}
