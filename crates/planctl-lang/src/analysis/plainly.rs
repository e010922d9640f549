//! The closed list of phrasings by which a task gives its worker the right to change a file, or plainly withholds it.
//!
//! A right is never guessed: what is not on this list is [`Right::Unclear`], which gives none and becomes a finding (P119)
//! where a contract is judged by the file. A text is read sentence by sentence: the nearest verb that stands where a command
//! stands (`Write …`, `, then fix …`, `and add …`, `to produce …`) governs a path, and the last preposition between the two
//! says what the path is to it. docs/contracts.md has the list for people.

use crate::text::Span;
use tokens::{PathContext, Token, sentences};
use words::{
    Relation, Verb, is_filler, is_judged, is_made, is_negation, is_of_tests, is_question, is_source,
    is_subordinate, opens_clause, relation, verb,
};

/// The right that a task gives over a file that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// It plainly has the worker make or change the file.
    May,
    /// It plainly says that the file stays as it is.
    MayNot,
    /// It plainly has the worker read or run the file, or says what the file shows.
    Reads,
    /// None of these.
    Unclear,
}

impl Right {
    /// Joins what several places of a task say of one file: one that says both "change" and "do not change" is unclear.
    pub(crate) fn of_all(said: impl IntoIterator<Item = Right>) -> Option<Right> {
        let said: Vec<Right> = said.into_iter().collect();
        let has = |right: Right| said.contains(&right);
        match (has(Right::May), has(Right::MayNot)) {
            (true, true) => Some(Right::Unclear),
            (true, false) => Some(Right::May),
            (false, true) => Some(Right::MayNot),
            (false, false) if has(Right::Unclear) => Some(Right::Unclear),
            (false, false) => said.first().copied(),
        }
    }
}

/// The most words and files of a sentence that is understood; a longer one is a list of something.
const TOKENS_MAX: usize = 300;

/// Returns what a text says of each of the paths that it names, which stand in the order of the text.
pub(crate) fn rights(text: &str, paths: &[Span]) -> Vec<Right> {
    let mut rights = vec![Right::Unclear; paths.len()];
    for tokens in sentences(text, paths).iter().filter(|tokens| tokens.len() <= TOKENS_MAX) {
        for (at, token) in tokens.iter().enumerate() {
            let Token::Path { index, place } = token else { continue };
            if let Some(right) = rights.get_mut(*index) {
                *right = match place {
                    PathContext::Plain => right_at(tokens, at),
                    PathContext::Quoted => Right::Reads,
                    PathContext::Vague => Right::Unclear,
                    PathContext::Folder => right_at_folder(tokens, at),
                };
            }
        }
    }
    rights
}

// To make something in a folder takes nothing of what is there. To change it may; nobody knows which of its files.
fn right_at_folder(tokens: &[Token], at: usize) -> Right {
    let before = &tokens[clause_start(tokens, at)..at];
    let changes =
        matches!(verbs(before).last(), Some((_, Verb::Change | Verb::Remove | Verb::Move | Verb::Convert)));
    match right_at(tokens, at) {
        Right::May | Right::Unclear if changes => Right::Unclear,
        Right::MayNot => Right::MayNot,
        Right::May | Right::Unclear | Right::Reads => Right::Reads,
    }
}

fn right_at(tokens: &[Token], at: usize) -> Right {
    let start = clause_start(tokens, at);
    let before = &tokens[start..at];
    let verbs = verbs(before);
    let said_after = statement_after(tokens, at);
    if said_after == After::Stays {
        return Right::MayNot;
    }
    if let Some(right) = negated_right(before, &verbs) {
        return right;
    }
    let is_ensured = || before.iter().any(|token| matches!(token.as_str(), "sure" | "certain" | "ensure"));
    match said_after {
        After::Judges => return Right::Reads,
        After::Made => return Right::May,
        After::Exists => return if is_ensured() { Right::May } else { Right::Unclear },
        After::Stays | After::Nothing => {}
    }
    let opener = start.checked_sub(1).and_then(|at| tokens.get(at)).map_or("", Token::as_str);
    let Some((place, verb)) = verbs.last().copied() else {
        let outer = is_question(opener).then(|| destination(tokens, at, start)).flatten();
        return outer.unwrap_or_else(|| without_verb(tokens, at, before, is_subordinate(opener)));
    };
    // In `scripts that write x` nobody is told to write; in `when that is done, write x` somebody is.
    if is_subordinate(opener) && !before[..place].contains(&Token::Comma) {
        return if verb == Verb::Read { Right::Reads } else { Right::Unclear };
    }
    right_under_verb(verb, &before[place + 1..])
}

// `Write what causes it to x`: the words after the question belong to the verb before it.
fn destination(tokens: &[Token], at: usize, start: usize) -> Option<Right> {
    let is_target = tokens[start..at].iter().rev().find(|token| !is_filler(token));
    let outer = clause_start(tokens, start - 1);
    let (_, verb) = verbs(&tokens[outer..start - 1]).last().copied()?;
    let is_made = matches!(verb, Verb::Make | Verb::Add | Verb::Copy);
    (is_made && matches!(is_target?.as_str(), "to" | "into")).then_some(Right::May)
}

/// Returns the right that the words between a verb and a path give.
fn right_under_verb(verb: Verb, between: &[Token]) -> Right {
    let last = between.iter().rposition(|token| relation(token.as_str()).is_some());
    let relation = last.map_or(Relation::Object, |at| {
        let source = at.checked_sub(1).and_then(|at| between.get(at)).map_or("", Token::as_str);
        // `according to`, `described in`.
        if is_source(source) || source == "as" {
            Relation::Other
        } else {
            relation(between[at].as_str()).unwrap_or(Relation::Object)
        }
    });
    let is_listed = |from: usize| {
        let comma = between[from..].iter().rposition(|token| *token == Token::Comma).map(|at| at + from);
        comma.is_none_or(|comma| {
            let is_between_paths = comma > 0 && between[comma - 1].is_path();
            is_between_paths && between[comma + 1..].iter().all(is_filler)
                || between[comma + 1..].iter().any(|token| matches!(token.as_str(), "and" | "or"))
        })
    };
    if between.iter().any(|token| is_source(token.as_str())) && relation == Relation::Object {
        return Right::Reads;
    }
    let has_colon = between.contains(&Token::Colon);
    if has_colon && verb != Verb::Make || !is_listed(last.map_or(0, |at| at + 1)) {
        return if verb == Verb::Read { Right::Reads } else { Right::Unclear };
    }
    let is_vague = between.iter().any(|token| is_of_tests(token.as_str()));
    match (verb, relation) {
        (Verb::Read, _) | (_, Relation::Other) => Right::Reads,
        (Verb::Make, Relation::From | Relation::Of) => Right::Reads,
        (Verb::Make | Verb::Add | Verb::Move | Verb::Remove, _) => match (verb, relation) {
            (Verb::Remove, Relation::To) | (Verb::Add, Relation::From | Relation::Of) => Right::Unclear,
            (Verb::Move | Verb::Remove, Relation::Of) => Right::Unclear,
            (
                _,
                Relation::Object
                | Relation::To
                | Relation::In
                | Relation::From
                | Relation::Of
                | Relation::Other,
            ) => Right::May,
        },
        (Verb::Change, Relation::Object | Relation::In) if is_vague => Right::Unclear,
        (Verb::Change, Relation::Object | Relation::In) => Right::May,
        (Verb::Change, Relation::To | Relation::From | Relation::Of) => Right::Unclear,
        (Verb::Copy, Relation::To | Relation::In) => Right::May,
        (Verb::Copy, Relation::Object | Relation::From | Relation::Of) => Right::Reads,
        (Verb::Convert, Relation::To | Relation::In) => Right::May,
        (Verb::Convert, Relation::Object | Relation::From | Relation::Of) => Right::Unclear,
    }
}

fn without_verb(tokens: &[Token], at: usize, before: &[Token], is_subordinate: bool) -> Right {
    let is_place =
        before.iter().all(|token| is_filler(token) || matches!(token.as_str(), "in" | "inside" | "within"))
            && before.iter().any(|token| matches!(token.as_str(), "in" | "inside" | "within"));
    if is_place && !is_subordinate {
        // `In src/a.py, rename …`: the action that follows happens there.
        let rest = &tokens[at + 1..];
        let end = rest.iter().position(|token| *token == Token::Break).unwrap_or(rest.len());
        let rest = &rest[..end];
        if rest.iter().any(|token| is_negation(token.as_str())) {
            return negated_right(rest, &[]).unwrap_or(Right::Unclear);
        }
        let start = rest.iter().position(|token| !is_filler(token) && *token != Token::Comma);
        let word = start.and_then(|start| rest.get(start)).map_or("", Token::as_str);
        let names_other = rest[start.unwrap_or(0)..].iter().any(Token::is_path);
        return match verb(word) {
            Some(Verb::Change | Verb::Add | Verb::Remove | Verb::Move) => Right::May,
            Some(Verb::Make) if !names_other => Right::May,
            Some(Verb::Read) => Right::Reads,
            Some(Verb::Make | Verb::Copy | Verb::Convert) | None => Right::Unclear,
        };
    }
    let word = before.iter().rev().find(|token| !is_filler(token)).map_or("", Token::as_str);
    let is_read = is_source(word)
        || matches!(relation(word), Some(Relation::Other))
        || matches!(verb(word), Some(Verb::Read))
        || before.windows(2).any(|pair| {
            (is_source(pair[0].as_str()) || pair[0].as_str() == "as") && relation(pair[1].as_str()).is_some()
        });
    if is_read { Right::Reads } else { Right::Unclear }
}

/// The meaning of the words after a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// `x must be written`, `x must exist`.
    Made,
    /// `x stays as it is`, `x must not be changed`.
    Stays,
    /// `x passes`, `x says`.
    Judges,
    /// `x exists`.
    Exists,
    Nothing,
}

fn statement_after(tokens: &[Token], at: usize) -> After {
    let mut rest = &tokens[at + 1..];
    // A statement about a list of files holds for each.
    while let Some(skip) = list_length(rest) {
        rest = &rest[skip..];
    }
    let words: Vec<&str> =
        rest.iter().map(Token::as_str).take_while(|word| !word.is_empty()).take(8).collect();
    let is_auxiliary = |word: &&&str| {
        matches!(
            **word,
            "must"
                | "should"
                | "shall"
                | "will"
                | "has"
                | "have"
                | "needs"
                | "need"
                | "to"
                | "still"
                | "then"
                | "now"
                | "also"
                | "again"
                | "both"
                | "all"
        )
    };
    let lead = words.iter().take_while(is_auxiliary).count();
    let due = &words[..lead];
    let is_due = due.iter().any(|word| matches!(*word, "must" | "should" | "shall"))
        || due.windows(2).any(|pair| matches!(pair, ["has" | "have" | "need" | "needs", "to"]));
    let Some(verb) = words.get(lead).copied() else { return After::Nothing };
    let next = |ahead: usize| words.get(lead + ahead).copied().unwrap_or("");
    let is_not = |word: &str| matches!(word, "not" | "never");
    let is_forbidden = is_not(verb)
        || matches!(verb, "may" | "can" | "is" | "are") && is_not(next(1))
        || matches!(verb, "cannot" | "can't" | "mustn't" | "shouldn't" | "isn't" | "aren't");
    let is_as_before = |from: usize| {
        matches!(next(from), "unchanged" | "untouched" | "alone" | "final")
            || next(from) == "as" && matches!(next(from + 1), "it" | "they" | "is")
            || next(from) == "the" && next(from + 1) == "same"
    };
    if is_forbidden {
        let is_touched = words.iter().any(|word| is_made(word) || matches!(*word, "touched" | "change"));
        return if is_touched { After::Stays } else { After::Nothing };
    }
    match verb {
        _ if is_as_before(0) => After::Stays,
        "stay" | "stays" | "remain" | "remains" | "is" | "are" | "be" if is_as_before(1) => After::Stays,
        "be" if is_due && is_made(next(1)) => After::Made,
        "exist" | "contain" | "list" | "hold" | "name" | "state" if is_due => After::Made,
        "exist" | "exists" => After::Exists,
        word if is_judged(word) => After::Judges,
        "is" | "are" | "be" | "turns" | "exits" if matches!(next(1), "green" | "0" | "with") => After::Judges,
        _ if is_due && due.last() == Some(&"have") => After::Made,
        _ => After::Nothing,
    }
}

// Returns how many tokens lead to the next file of a list.
fn list_length(rest: &[Token]) -> Option<usize> {
    let joined = rest
        .iter()
        .take_while(|token| **token == Token::Comma || is_filler(token) && !token.is_path())
        .count();
    let has_joint =
        rest[..joined].iter().any(|token| *token == Token::Comma || matches!(token.as_str(), "and" | "or"));
    (has_joint && rest.get(joined).is_some_and(Token::is_path)).then_some(joined + 1)
}

// The clause around a path begins behind the last word that begins one.
fn clause_start(tokens: &[Token], at: usize) -> usize {
    let opens = |token: &Token| *token == Token::Break || opens_clause(token.as_str());
    tokens[..at].iter().rposition(opens).map_or(0, |open| open + 1)
}

// `do not change`, `never edit`, `without touching`, `leave … alone`, `no changes to`. Returns nothing where no negation holds.
fn negated_right(before: &[Token], verbs: &[(usize, Verb)]) -> Option<Right> {
    let negation = before.iter().rposition(|token| is_negation(token.as_str()))?;
    let (place, _) = verbs.last().copied().unwrap_or((negation, Verb::Read));
    let behind = &before[negation + 1..];
    let is_next = behind.iter().all(is_filler);
    if matches!(before[negation].as_str(), "leave" | "keep") {
        return if is_next { Some(Right::MayNot) } else { (place <= negation).then_some(Right::Unclear) };
    }
    let touches = |token: &Token| {
        let word = token.as_str();
        matches!(word, "touch" | "alter" | "touching" | "altering" | "changes" | "edits" | "modifications")
            || matches!(verb(word), Some(Verb::Make | Verb::Change | Verb::Add | Verb::Remove | Verb::Move))
    };
    if is_next || behind.iter().any(touches) {
        let is_other = place > negation && before[negation..place].contains(&Token::Comma);
        return Some(if is_other { Right::Unclear } else { Right::MayNot });
    }
    // `Write a text without jargon to x` negates something else.
    (place >= negation || negation == place + 1).then_some(Right::Unclear)
}

// A verb stands where a command does: first, behind a comma, behind `and`, `to`, `must` or an adverb; or it is `by …ing`.
fn verbs(before: &[Token]) -> Vec<(usize, Verb)> {
    let is_place = |at: usize| {
        let Some(previous) = at.checked_sub(1).and_then(|at| before.get(at)) else { return true };
        matches!(previous, Token::Comma | Token::Colon)
            || matches!(
                previous.as_str(),
                "and"
                    | "or"
                    | "to"
                    | "must"
                    | "should"
                    | "shall"
                    | "can"
                    | "may"
                    | "will"
                    | "please"
                    | "also"
                    | "finally"
                    | "now"
                    | "first"
                    | "next"
                    | "second"
                    | "third"
                    | "last"
                    | "lastly"
                    | "only"
                    | "just"
                    | "simply"
                    | "carefully"
                    | "by"
                    | "i"
                    | "you"
                    | "we"
                    | "step"
                    | "again"
            )
    };
    let of = |at: usize| {
        let word = before[at].as_str();
        let next = before.get(at + 1).map_or("", Token::as_str);
        if word == "make" && matches!(next, "sure" | "certain") || matches!(word, "ensure" | "be") {
            return Some(Verb::Read).filter(|_| is_place(at));
        }
        verb(word).filter(|_| is_place(at))
    };
    (0..before.len()).filter_map(|at| Some((at, of(at)?))).collect()
}

#[cfg(test)]
mod tests;
mod tokens;
mod words;
