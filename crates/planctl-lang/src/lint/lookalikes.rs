//! P004 where a character looks like another: a person approves what they see, and bash runs what is there (DESIGN 3).

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::alike::{ascii_of, described};
use crate::text::{Span, Spanned};
use crate::tree::ContractTree;

pub(super) const LINT: Lint = Lint { codes: &[], needs: Needs::Text, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.source.text().is_ascii() {
        return;
    }
    context.tree.frontmatter.owner.iter().for_each(|owner| of_value(owner, found));
    for step in context.steps {
        let mut of_step = Vec::new();
        let lists = [&step.attributes.changes, &step.attributes.protects];
        let values = step.role.iter().chain(lists.into_iter().flat_map(|list| list.entries()));
        values.for_each(|value| of_value(value, &mut of_step));
        for (path, span) in step.subscribed_files() {
            of_value(&Spanned::new(path.to_owned(), span), &mut of_step);
        }
        step.contract.iter().for_each(|contract| of_contract(contract, &mut of_step));
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
}

// The value may have been trimmed of a prefix, so it is the whole value that is pointed at.
fn of_value(value: &Spanned<String>, found: &mut Vec<Diagnostic>) {
    if let Some((character, like)) = value.value.chars().find_map(|c| Some((c, imitation(c)?))) {
        found.push(report(character, like, value.span));
    } else if let Some((_, _, character)) = mixed_words(&value.value).next() {
        found.push(report(character, &latin(character), value.span));
    }
}

fn of_contract(contract: &ContractTree, found: &mut Vec<Diagnostic>) {
    let mut quote = None;
    let mut before = ' ';
    for (at, character) in contract.command.char_indices() {
        let span = contract.in_plan(Span::new(at, at + character.len_utf8()));
        // Quoted text is data; a space that is none is never meant.
        let is_dash = matches!(character, '–' | '—' | '−') && before.is_whitespace() && quote.is_none();
        let is_quote = matches!(character, '“' | '”' | '‘' | '’' | '´') && quote.is_none();
        if let Some(like) = imitation(character).filter(|like| quote.is_none() || *like == "a space") {
            found.push(report(character, like, span));
        } else if is_dash {
            found.push(report(character, "`-`", span));
        } else if is_quote {
            found.push(report(character, "a quote", span));
        }
        match (character, quote) {
            _ if before == '\\' => {}
            ('\'' | '"', None) => quote = Some(character),
            (same, Some(open)) if same == open => quote = None,
            _ => {}
        }
        before = character;
    }
    for (start, end, character) in mixed_words(&contract.command) {
        found.push(report(character, &latin(character), contract.in_plan(Span::new(start, end))));
    }
}

fn report(character: char, like: &str, span: Span) -> Diagnostic {
    let like = if like == FULL_WIDTH { latin(character) } else { like.to_owned() };
    let message = format!("{} looks like {like} but is another character", described(character));
    Diagnostic::new(Code::P004, message).at(span, "").help("type the text anew with plain characters")
}

const FULL_WIDTH: &str = "an ASCII character";

fn latin(character: char) -> String {
    ascii_of(character).map_or("a Latin letter".to_owned(), |like| format!("`{like}`"))
}

fn imitation(character: char) -> Option<&'static str> {
    match character {
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Some("a space")
        }
        '\u{ff01}'..='\u{ff5e}' => Some(FULL_WIDTH),
        '\u{2024}' | '\u{2215}' | '\u{2044}' | '\u{29f8}' | '\u{ff61}' | '\u{a789}' => {
            Some("a mark of paths")
        }
        _ => None,
    }
}

/// Returns the words that mix Latin letters with others that only look Latin, with the first of those.
fn mixed_words(text: &str) -> impl Iterator<Item = (usize, usize, char)> {
    let mut words = Vec::new();
    let mut start = 0;
    let (mut latin, mut foreign) = (false, None);
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        if !character.is_alphabetic() {
            words.extend(foreign.filter(|_| latin).map(|letter| (start, at, letter)));
            (latin, foreign) = (false, None);
            start = at + character.len_utf8();
            continue;
        }
        latin |= character.is_ascii_alphabetic();
        if ascii_of(character).is_some_and(|like| like.is_ascii_alphanumeric()) {
            foreign = foreign.or(Some(character));
        }
    }
    words.into_iter()
}
