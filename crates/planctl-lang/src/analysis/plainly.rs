//! The closed list of phrasings by which a task gives its worker the right to change a file, or plainly withholds it.
//!
//! A right is never guessed: a wording that is not on this list is [`Right::Unclear`], which gives none and becomes a
//! finding (P119) where a contract is judged by the file. A text is read sentence by sentence: the nearest verb that stands
//! where a command stands (`Write …`, `, then fix …`, `and add …`, `to produce …`) governs a path, and the last preposition
//! between the two says what the path is to it. docs/contracts.md has the list for people.

use std::ops::Range;

use crate::text::Span;

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
                };
            }
        }
    }
    rights
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    /// In lower case.
    Word(String),
    /// A file, by its place among the paths.
    Path {
        index: usize,
        place: PathContext,
    },
    /// Code that is no path: a name.
    Code,
    Comma,
    Colon,
    /// Ends a clause: a semicolon, a bracket, a dash.
    Break,
}

/// Where a path stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PathContext {
    /// In a sentence.
    Plain,
    /// In a command that is quoted, or in a block of code.
    Quoted,
    /// In a command that may change it; or it is a folder, or the beginning of a glob.
    Vague,
}

impl Token {
    fn word(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Path { .. } | Token::Code | Token::Comma | Token::Colon | Token::Break => "",
        }
    }

    fn is_path(&self) -> bool {
        matches!(self, Token::Path { .. })
    }
}

// Each item of a list is a sentence that begins with the words that introduce the list.
fn sentences(text: &str, paths: &[Span]) -> Vec<Vec<Token>> {
    let mut reader = Reader::default();
    let mut next = 0;
    let mut offset = 0;
    let (mut in_fence, mut in_code) = (false, false);
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        let is_fence = body.starts_with("```") || body.starts_with("~~~");
        in_fence ^= is_fence;
        if body.trim().is_empty() {
            reader.end();
            reader.is_after_blank = true;
            in_code = false;
        } else if let Some(marker) = item_marker(body) {
            reader.end();
            reader.begin_item();
            offset += line.len() - body.len() + marker;
            let rest = &body[marker..];
            read_line(rest, offset, paths, &mut next, (in_fence || is_fence, &mut in_code), &mut reader);
            offset += rest.len();
            continue;
        } else if reader.is_after_blank {
            reader.intro.clear();
        }
        reader.is_after_blank &= body.trim().is_empty();
        read_line(line, offset, paths, &mut next, (in_fence || is_fence, &mut in_code), &mut reader);
        offset += line.len();
    }
    reader.end();
    reader.done
}

#[derive(Default)]
struct Reader {
    done: Vec<Vec<Token>>,
    tokens: Vec<Token>,
    /// The words that introduce a list.
    intro: Vec<Token>,
    is_after_blank: bool,
}

impl Reader {
    fn end(&mut self) {
        if self.tokens.last() == Some(&Token::Colon) {
            self.intro = std::mem::take(&mut self.tokens);
            self.done.push(self.intro.clone());
            self.intro.truncate(TOKENS_MAX);
        } else if !self.tokens.is_empty() {
            self.done.push(std::mem::take(&mut self.tokens));
        }
    }

    fn begin_item(&mut self) {
        self.is_after_blank = false;
        self.tokens = self.intro.clone();
    }
}

fn item_marker(body: &str) -> Option<usize> {
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let marked = match body.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if digits > 0 => digits + 1,
        _ => return None,
    };
    body[marked..].starts_with([' ', '\t']).then_some(marked + 1)
}

fn read_line(
    line: &str,
    offset: usize,
    paths: &[Span],
    next: &mut usize,
    (is_fenced, in_code): (bool, &mut bool),
    reader: &mut Reader,
) {
    let mut at = 0;
    while at < line.len() {
        while paths.get(*next).is_some_and(|path| path.start < offset + at) {
            *next += 1;
        }
        if let Some(path) = paths.get(*next).filter(|path| path.start == offset + at) {
            let end = (path.end - offset).min(line.len());
            let place = place(line, at..end, is_fenced, *in_code);
            reader.tokens.push(Token::Path { index: *next, place });
            *next += 1;
            at = end;
            continue;
        }
        let rest = &line[at..];
        let Some(first) = rest.chars().next() else { break };
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_');
        if is_of_word(first) {
            let until =
                paths.get(*next).map_or(line.len(), |path| path.start.saturating_sub(offset).min(line.len()));
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let length = if until > at { length.min(until - at) } else { length };
            if *in_code {
                reader.tokens.push(Token::Code);
            } else {
                reader.tokens.push(Token::Word(rest[..length].to_lowercase().replace('’', "'")));
            }
            at += length;
            continue;
        }
        let after = &rest[first.len_utf8()..];
        let is_end = after.is_empty()
            || after.starts_with(|c: char| c.is_whitespace() || matches!(c, '"' | '*' | ')'));
        match first {
            '`' => *in_code = !*in_code,
            _ if *in_code => {}
            '.' | '!' | '?' if is_end => reader.end(),
            ',' => reader.tokens.push(Token::Comma),
            ':' if is_end => reader.tokens.push(Token::Colon),
            ';' | '(' | ')' | '—' | '–' => reader.tokens.push(Token::Break),
            _ => {}
        }
        at += first.len_utf8();
    }
}

fn place(line: &str, path: Range<usize>, is_fenced: bool, in_code: bool) -> PathContext {
    let (before, after) = (&line[..path.start], &line[path.end..]);
    let is_whole = !in_code || before.ends_with('`') && after.starts_with('`');
    if is_fenced {
        PathContext::Quoted
    } else if line[path].ends_with('/') || after.starts_with(['*', '{', '?', '[']) {
        PathContext::Vague
    } else if is_whole {
        PathContext::Plain
    } else {
        let code = &before[before.rfind('`').map_or(0, |at| at + 1)..];
        let may_write = code.contains('>') || code.contains(" -i") || code.starts_with("tee ");
        if may_write { PathContext::Vague } else { PathContext::Quoted }
    }
}

fn right_at(tokens: &[Token], at: usize) -> Right {
    let start = clause_start(tokens, at);
    let before = &tokens[start..at];
    let verbs = verbs(before);
    let said_after = after(tokens, at);
    if said_after == After::Stays {
        return Right::MayNot;
    }
    if let Some(right) = withheld(before, &verbs) {
        return right;
    }
    let is_ensured = || before.iter().any(|token| matches!(token.word(), "sure" | "certain" | "ensure"));
    match said_after {
        After::Judges => return Right::Reads,
        After::Made => return Right::May,
        After::Exists => return if is_ensured() { Right::May } else { Right::Unclear },
        After::Stays | After::Nothing => {}
    }
    let opener = start.checked_sub(1).and_then(|at| tokens.get(at)).map_or("", Token::word);
    let Some((place, verb)) = verbs.last().copied() else {
        let outer = is_question(opener).then(|| destination(tokens, at, start)).flatten();
        return outer.unwrap_or_else(|| without_verb(tokens, at, before, is_subordinate(opener)));
    };
    // In `scripts that write x` nobody is told to write; in `when that is done, write x` somebody is.
    if is_subordinate(opener) && !before[..place].contains(&Token::Comma) {
        return if verb == Verb::Read { Right::Reads } else { Right::Unclear };
    }
    governed(verb, &before[place + 1..])
}

// `Write what causes it to x`: the words after the question belong to the verb before it.
fn destination(tokens: &[Token], at: usize, start: usize) -> Option<Right> {
    let is_target = tokens[start..at].iter().rev().find(|token| !is_filler(token));
    let outer = clause_start(tokens, start - 1);
    let (_, verb) = verbs(&tokens[outer..start - 1]).last().copied()?;
    let is_made = matches!(verb, Verb::Make | Verb::Add | Verb::Copy);
    (is_made && matches!(is_target?.word(), "to" | "into")).then_some(Right::May)
}

/// Returns the right that the words between a verb and a path give.
fn governed(verb: Verb, between: &[Token]) -> Right {
    let last = between.iter().rposition(|token| relation(token.word()).is_some());
    let relation = last.map_or(Relation::Object, |at| {
        let source = at.checked_sub(1).and_then(|at| between.get(at)).map_or("", Token::word);
        // `according to`, `described in`.
        if is_source(source) || source == "as" {
            Relation::Other
        } else {
            relation(between[at].word()).unwrap_or(Relation::Object)
        }
    });
    let is_listed = |from: usize| {
        let comma = between[from..].iter().rposition(|token| *token == Token::Comma).map(|at| at + from);
        comma.is_none_or(|comma| {
            let is_between_paths = comma > 0 && between[comma - 1].is_path();
            is_between_paths && between[comma + 1..].iter().all(is_filler)
                || between[comma + 1..].iter().any(|token| matches!(token.word(), "and" | "or"))
        })
    };
    if between.iter().any(|token| is_source(token.word())) && relation == Relation::Object {
        return Right::Reads;
    }
    let has_colon = between.contains(&Token::Colon);
    if has_colon && verb != Verb::Make || !is_listed(last.map_or(0, |at| at + 1)) {
        return if verb == Verb::Read { Right::Reads } else { Right::Unclear };
    }
    let is_vague = between.iter().any(|token| is_of_tests(token.word()));
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
        before.iter().all(|token| is_filler(token) || matches!(token.word(), "in" | "inside" | "within"))
            && before.iter().any(|token| matches!(token.word(), "in" | "inside" | "within"));
    if is_place && !is_subordinate {
        // `In src/a.py, rename …`: the action that follows happens there.
        let rest = &tokens[at + 1..];
        let end = rest.iter().position(|token| *token == Token::Break).unwrap_or(rest.len());
        let rest = &rest[..end];
        if rest.iter().any(|token| is_negation(token.word())) {
            return withheld(rest, &[]).unwrap_or(Right::Unclear);
        }
        let start = rest.iter().position(|token| !is_filler(token) && *token != Token::Comma);
        let word = start.and_then(|start| rest.get(start)).map_or("", Token::word);
        let names_other = rest[start.unwrap_or(0)..].iter().any(Token::is_path);
        return match verb(word) {
            Some(Verb::Change | Verb::Add | Verb::Remove | Verb::Move) => Right::May,
            Some(Verb::Make) if !names_other => Right::May,
            Some(Verb::Read) => Right::Reads,
            Some(Verb::Make | Verb::Copy | Verb::Convert) | None => Right::Unclear,
        };
    }
    let word = before.iter().rev().find(|token| !is_filler(token)).map_or("", Token::word);
    let is_read = is_source(word)
        || matches!(relation(word), Some(Relation::Other))
        || matches!(verb(word), Some(Verb::Read))
        || before.windows(2).any(|pair| {
            (is_source(pair[0].word()) || pair[0].word() == "as") && relation(pair[1].word()).is_some()
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

fn after(tokens: &[Token], at: usize) -> After {
    let mut rest = &tokens[at + 1..];
    // A statement about a list of files holds for each.
    while let Some(skip) = listed(rest) {
        rest = &rest[skip..];
    }
    let words: Vec<&str> = rest.iter().map(Token::word).take_while(|word| !word.is_empty()).take(8).collect();
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
fn listed(rest: &[Token]) -> Option<usize> {
    let joined = rest
        .iter()
        .take_while(|token| **token == Token::Comma || is_filler(token) && !token.is_path())
        .count();
    let has_joint =
        rest[..joined].iter().any(|token| *token == Token::Comma || matches!(token.word(), "and" | "or"));
    (has_joint && rest.get(joined).is_some_and(Token::is_path)).then_some(joined + 1)
}

fn is_judged(word: &str) -> bool {
    matches!(
        word,
        "pass"
            | "passes"
            | "passing"
            | "succeed"
            | "succeeds"
            | "agree"
            | "agrees"
            | "green"
            | "says"
            | "wants"
            | "requires"
            | "expects"
            | "expect"
            | "checks"
            | "tests"
            | "judges"
            | "proves"
            | "verifies"
            | "shows"
            | "reports"
            | "complains"
            | "describes"
            | "demands"
            | "asserts"
            | "asks"
            | "fails"
            | "fail"
            | "specifies"
    )
}

fn is_made(word: &str) -> bool {
    matches!(
        word,
        "written"
            | "created"
            | "made"
            | "produced"
            | "generated"
            | "changed"
            | "updated"
            | "fixed"
            | "edited"
            | "extended"
            | "added"
            | "removed"
            | "deleted"
            | "renamed"
            | "replaced"
            | "rewritten"
            | "filled"
            | "completed"
            | "corrected"
            | "modified"
            | "mended"
            | "saved"
    )
}

// The clause around a path begins behind the last word that begins one.
fn clause_start(tokens: &[Token], at: usize) -> usize {
    let opens = |token: &Token| *token == Token::Break || opens_clause(token.word());
    tokens[..at].iter().rposition(opens).map_or(0, |open| open + 1)
}

fn opens_clause(word: &str) -> bool {
    matches!(word, "but" | "then" | "afterwards" | "otherwise" | "else") || is_subordinate(word)
}

fn is_subordinate(word: &str) -> bool {
    is_question(word)
        || matches!(
            word,
            "so" | "that"
                | "until"
                | "till"
                | "because"
                | "since"
                | "when"
                | "whenever"
                | "while"
                | "if"
                | "unless"
                | "once"
                | "before"
                | "after"
                | "which"
                | "whose"
                | "whatever"
                | "soon"
        )
}

fn is_question(word: &str) -> bool {
    matches!(word, "what" | "how" | "why" | "whether" | "where" | "who")
}

fn is_negation(word: &str) -> bool {
    matches!(
        word,
        "not"
            | "never"
            | "don't"
            | "dont"
            | "doesn't"
            | "cannot"
            | "can't"
            | "mustn't"
            | "shouldn't"
            | "won't"
            | "without"
            | "avoid"
            | "nor"
            | "neither"
            | "no"
            | "nothing"
            | "instead"
            | "rather"
            | "except"
            | "leave"
            | "keep"
            | "refrain"
            | "nobody"
            | "none"
    )
}

// `do not change`, `never edit`, `without touching`, `leave … alone`, `no changes to`. Returns nothing where no negation holds.
fn withheld(before: &[Token], verbs: &[(usize, Verb)]) -> Option<Right> {
    let negation = before.iter().rposition(|token| is_negation(token.word()))?;
    let (place, _) = verbs.last().copied().unwrap_or((negation, Verb::Read));
    let behind = &before[negation + 1..];
    let is_next = behind.iter().all(is_filler);
    if matches!(before[negation].word(), "leave" | "keep") {
        return if is_next { Some(Right::MayNot) } else { (place <= negation).then_some(Right::Unclear) };
    }
    let touches = |token: &Token| {
        let word = token.word();
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

/// The effect of a verb on its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    /// Makes it; a path behind `to`, `in` or `as` is made too.
    Make,
    /// Changes it, or what is in it.
    Change,
    /// Puts something into what stands behind `to` or `in`; alone, it makes its object.
    Add,
    /// Takes its object away, or something from it.
    Remove,
    /// Takes its object away and makes what stands behind `to`.
    Move,
    /// Reads its object, and makes what stands behind `to` or `in`.
    Copy,
    /// Makes what stands behind `to`; whether its object stays is not said.
    Convert,
    /// Reads or runs it.
    Read,
}

// A verb stands where a command does: first, behind a comma, behind `and`, `to`, `must` or an adverb; or it is `by …ing`.
fn verbs(before: &[Token]) -> Vec<(usize, Verb)> {
    let is_place = |at: usize| {
        let Some(previous) = at.checked_sub(1).and_then(|at| before.get(at)) else { return true };
        matches!(previous, Token::Comma | Token::Colon)
            || matches!(
                previous.word(),
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
        let word = before[at].word();
        let next = before.get(at + 1).map_or("", Token::word);
        if word == "make" && matches!(next, "sure" | "certain") || matches!(word, "ensure" | "be") {
            return Some(Verb::Read).filter(|_| is_place(at));
        }
        verb(word).filter(|_| is_place(at))
    };
    (0..before.len()).filter_map(|at| Some((at, of(at)?))).collect()
}

fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "write" | "writing" | "create" | "creating" | "save" | "saving" | "put" | "putting" | "produce"
        | "producing" | "generate" | "generating" | "make" | "making" | "output" | "record" | "recording"
        | "store" | "storing" | "export" | "emit" | "build" | "draft" | "dump" | "scaffold" | "touch"
        | "place" | "print" | "compose" | "set" | "capture" | "regenerate" => Verb::Make,
        "update" | "updating" | "change" | "changing" | "edit" | "editing" | "modify" | "modifying"
        | "fix" | "fixing" | "replace" | "replacing" | "rewrite" | "rewriting" | "adjust" | "refactor"
        | "correct" | "mend" | "raise" | "lower" | "increase" | "reduce" | "mending" | "repair"
        | "complete" | "implement" | "implementing" | "finish" | "fill" | "improve" | "simplify"
        | "format" | "reformat" | "tidy" | "patch" | "rework" | "shorten" | "clean" | "extend"
        | "translate" | "sort" | "bump" | "enable" | "disable" | "weaken" | "harden" | "speed"
        | "rearrange" => Verb::Change,
        "add" | "adding" | "append" | "appending" | "insert" | "inserting" | "prepend" | "include" => {
            Verb::Add
        }
        "remove" | "removing" | "delete" | "deleting" | "drop" | "strip" | "cut" => Verb::Remove,
        "move" | "moving" | "rename" | "renaming" => Verb::Move,
        "copy" | "copying" | "extract" | "list" | "collect" | "summarize" | "summarise" | "document"
        | "describe" | "explain" | "note" | "apply" | "report" | "log" | "answer" | "sum" | "state" => {
            Verb::Copy
        }
        "convert" | "turn" | "port" | "migrate" | "split" | "merge" | "compile" | "render" | "transform" => {
            Verb::Convert
        }
        "read" | "reading" | "see" | "use" | "using" | "follow" | "following" | "check" | "compare"
        | "call" | "run" | "running" | "load" | "import" | "consult" | "review" | "study" | "analyze"
        | "analyse" | "inspect" | "look" | "open" | "parse" | "based" | "commit" | "test" | "lint"
        | "verify" | "given" | "match" | "satisfy" | "pass" | "meet" | "respect" | "obey" | "conform"
        | "trace" | "reproduce" | "investigate" | "find" | "search" | "understand" | "debug" | "measure"
        | "count" | "validate" | "confirm" | "prove" | "start" | "execute" | "judge" | "get" | "suit"
        | "fit" | "agree" | "examine" | "audit" | "mind" => Verb::Read,
        _ => return None,
    })
}

/// The relation of a path to the verb before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Object,
    /// Where something goes.
    To,
    /// Where something is, or is done.
    In,
    From,
    Of,
    /// A file that is looked at meanwhile.
    Other,
}

fn relation(word: &str) -> Option<Relation> {
    Some(match word {
        "to" | "into" | "onto" | "as" => Relation::To,
        "in" | "inside" | "within" | "at" | "on" | "under" | "throughout" | "across" => Relation::In,
        "from" => Relation::From,
        "of" => Relation::Of,
        "per" | "than" | "against" | "like" | "by" | "with" | "via" | "for" | "about" | "through"
        | "beside" | "besides" | "between" | "over" | "behind" | "near" | "towards" | "above" | "below"
        | "following" | "using" => Relation::Other,
        _ => return None,
    })
}

// `as described in`, `based on`, `according to`.
fn is_source(word: &str) -> bool {
    matches!(
        word,
        "according"
            | "based"
            | "given"
            | "described"
            | "listed"
            | "specified"
            | "documented"
            | "shown"
            | "said"
            | "stated"
            | "mentioned"
            | "reported"
            | "see"
            | "similar"
    )
}

// `fix the failure in x`, `fix the function used in x`: whether x itself is meant is not said.
fn is_of_tests(word: &str) -> bool {
    matches!(
        word,
        "found"
            | "defined"
            | "required"
            | "used"
            | "tested"
            | "test"
            | "tests"
            | "failing"
            | "failure"
            | "failures"
            | "error"
            | "errors"
            | "check"
            | "checks"
            | "finding"
            | "findings"
            | "complaint"
            | "complaints"
            | "assertion"
            | "assertions"
    )
}

// Words that may stand beside a path without meaning anything for it.
fn is_filler(token: &Token) -> bool {
    match token {
        Token::Path { .. } | Token::Code => true,
        Token::Word(word) => matches!(
            word.as_str(),
            "the"
                | "a"
                | "an"
                | "file"
                | "files"
                | "script"
                | "module"
                | "program"
                | "document"
                | "page"
                | "new"
                | "existing"
                | "both"
                | "all"
                | "only"
                | "and"
                | "or"
                | "also"
                | "named"
                | "called"
                | "our"
                | "your"
        ),
        Token::Comma | Token::Colon | Token::Break => false,
    }
}

#[cfg(test)]
mod tests;
