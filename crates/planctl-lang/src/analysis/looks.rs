//! The finds that a contract needs in files: a text or none, other bytes, a difference to what git has; and whether it would find
//! that in the files as they are.

use crate::facts::Facts;
use crate::syntax::shell::{
    Call, Command, FileUse, Need, Part, Pipeline, Script, Simple, Test, Use, Word, arguments, needed,
};
use crate::text::Span;

/// A look at files that must end well for the contract to pass.
pub(crate) struct FileLook<'a> {
    /// The files, in order.
    pub files: Vec<&'a FileUse>,
    /// Where it stands in the script.
    pub span: Span,
    kind: Kind,
}

enum Kind {
    /// A search that must find something, or nothing.
    Search { search: Search, finds: bool },
    /// Two files that must differ.
    Different,
    /// Files that must not be as git has them.
    Changed,
}

/// The end of a look at the files as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Today {
    /// It ends well.
    Well,
    /// It does not: no file has what one must have.
    Absent,
    /// It does not: the file at this place has what none may have.
    Present(usize),
    /// The files or the words of the contract don't tell.
    Unknown {
        /// Says that the contract wants something gone or different, which is asked where it is not so.
        wants_change: bool,
    },
}

/// Returns the looks at files that a contract needs to end with a status, given the files that it names; and whether it needs
/// nothing else.
pub(crate) fn file_looks<'a>(
    script: &'a Script,
    files: &'a [FileUse],
    expected: u8,
) -> (Vec<FileLook<'a>>, bool) {
    let needs = needed(script, expected);
    let looks: Vec<FileLook<'a>> = needs.iter().filter_map(|need| look(need, files)).collect();
    let is_all = !looks.is_empty() && looks.len() == needs.len();
    (looks, is_all)
}

fn look<'a>(need: &Need<'_>, files: &'a [FileUse]) -> Option<FileLook<'a>> {
    let kind = of_pipeline(need.pipeline, need.succeeds)?;
    let span = need.pipeline.span;
    let files: Vec<&FileUse> = files.iter().filter(|file| span.contains(file.span)).collect();
    let is_read = !files.is_empty() && files.iter().all(|file| file.how == Use::Reads);
    let is_whole = match &kind {
        // A glob or a variable names no file that we know.
        Kind::Search { search, .. } => search.files.len() == files.len(),
        Kind::Different => files.len() == 2,
        Kind::Changed => true,
    };
    (is_read && is_whole).then_some(FileLook { files, span, kind })
}

impl FileLook<'_> {
    /// Says whether it compares the files with their commit.
    pub(crate) fn compares(&self) -> bool {
        matches!(self.kind, Kind::Changed)
    }

    /// Says how it ends, given the texts of files and which of them differ from their commit.
    pub(crate) fn today(&self, facts: &Facts) -> Today {
        let of_files: Option<Vec<&String>> =
            self.files.iter().map(|file| facts.texts.get(&file.path)).collect();
        match (&self.kind, of_files.as_deref()) {
            (Kind::Search { search, finds }, Some(texts)) => match (search.first_in(texts), finds) {
                (None, finds) => Today::Unknown { wants_change: !finds },
                (Some(None), true) => Today::Absent,
                (Some(Some(at)), false) => Today::Present(at),
                (Some(Some(_)), true) | (Some(None), false) => Today::Well,
            },
            (Kind::Search { finds, .. }, None) => Today::Unknown { wants_change: !finds },
            (Kind::Different, Some([one, other])) if one == other => Today::Absent,
            (Kind::Different, Some(_)) => Today::Well,
            (Kind::Different, None) => Today::Unknown { wants_change: true },
            // A protected file stays as its approval finds it in the workspace, with changes that nobody committed.
            (Kind::Changed, _) => match &facts.differing {
                Some(differing) if self.files.iter().any(|file| differing.contains(&file.path)) => {
                    Today::Well
                }
                Some(_) => Today::Absent,
                None => Today::Unknown { wants_change: true },
            },
        }
    }
}

fn of_pipeline(pipeline: &Pipeline, succeeds: bool) -> Option<Kind> {
    match pipeline.commands.as_slice() {
        [Command::Test { test, .. }] => of_test(test, succeeds),
        [Command::Simple(simple)] => match simple.name()? {
            "test" | "[" => of_test(&Test::of(simple)?, succeeds),
            "cmp" | "diff" => (!succeeds).then_some(Kind::Different),
            "git" => (!succeeds && is_git_diff(simple)).then_some(Kind::Changed),
            _ => Some(Kind::Search { search: Search::of(simple)?, finds: succeeds }),
        },
        [Command::Simple(first), .., Command::Simple(last)] if is_git_diff(first) => {
            (succeeds && is_search(last)).then_some(Kind::Changed)
        }
        _ => None,
    }
}

fn of_test(test: &Test, holds: bool) -> Option<Kind> {
    match test {
        Test::Not(inner) => of_test(inner, !holds),
        Test::And(a, b) if holds => of_test(a, holds).or_else(|| of_test(b, holds)),
        Test::Or(a, b) if !holds => of_test(a, holds).or_else(|| of_test(b, holds)),
        Test::And(..) | Test::Or(..) => None,
        Test::Unary(operator, word) => match operator.as_str() {
            "-z" => of_output(word, false, !holds),
            "-n" => of_output(word, false, holds),
            _ => None,
        },
        Test::Binary(left, operator, right) => {
            let right = right.literal.as_deref()?;
            let (is_count, is_some) = match (operator.as_str(), right) {
                ("=" | "==", "") => (false, false),
                ("!=", "") => (false, true),
                ("=" | "==" | "-eq" | "-le", "0") | ("-lt", "1") => (true, false),
                ("!=" | "-ne" | "-gt", "0") | ("-ge", "1") => (true, true),
                _ => return None,
            };
            of_output(left, is_count, is_some == holds)
        }
    }
}

// `$(grep old f)`, `$(grep -c old f)`, `$(git diff f | wc -l)`, which must print something or nothing, or a count of it.
fn of_output(word: &Word, is_count: bool, is_some: bool) -> Option<Kind> {
    let ([Part::Output(_)], [script]) = (word.parts.as_slice(), word.nested.as_slice()) else { return None };
    let [item] = script.items.as_slice() else { return None };
    if !item.rest.is_empty() || item.is_background || item.first.is_negated {
        return None;
    }
    let (first, counts) = match item.first.commands.as_slice() {
        [Command::Simple(first)] => (first, false),
        [Command::Simple(first), Command::Simple(last)] if last.name() == Some("wc") => (first, true),
        _ => return None,
    };
    if is_git_diff(first) {
        let is_silent = first.texts().iter().any(|text| matches!(*text, "--quiet" | "-q"));
        return (is_some && counts == is_count && !is_silent).then_some(Kind::Changed);
    }
    let search = Search::of(first)?;
    let is_counted = counts || search.is_count;
    (is_counted == is_count && !search.is_silent).then_some(Kind::Search { search, finds: is_some })
}

fn is_git_diff(simple: &Simple) -> bool {
    let call = Call::of(&simple.words);
    let is_staged = || call.words().iter().any(|word| matches!(*word, "--cached" | "--staged"));
    call.is_of("git") && call.verb() == "diff" && !is_staged()
}

fn is_search(simple: &Simple) -> bool {
    Search::of(simple).is_some_and(|search| !search.is_inverted)
}

/// A `grep`.
struct Search {
    /// The patterns; nothing where one of them is more than a text with dots and anchors.
    patterns: Option<Vec<Pattern>>,
    /// The words that name its files.
    files: Vec<Span>,
    is_inverted: bool,
    is_count: bool,
    is_silent: bool,
}

impl Search {
    fn of(simple: &Simple) -> Option<Search> {
        let name = simple.name().filter(|name| matches!(*name, "grep" | "egrep" | "fgrep"))?;
        let read = arguments(&simple.words);
        let mut given: Vec<&Word> = read.values("e", "regexp").collect();
        let mut files = read.positional.iter().copied();
        let is_listed = read.values("f", "file").next().is_some();
        if given.is_empty() && !is_listed {
            given.extend(files.next());
        }
        let form = Form {
            is_fixed: name == "fgrep" || read.has('F', "fixed-strings"),
            is_extended: name == "egrep" || read.has('E', "extended-regexp") || read.has('P', "perl-regexp"),
            ignores_case: read.has('i', "ignore-case"),
            is_line: read.has('x', "line-regexp"),
        };
        let is_inverted = read.has('v', "invert-match") || read.has('L', "files-without-match");
        let is_plain =
            !is_inverted && !is_listed && !read.has('w', "word-regexp") && !read.has('z', "null-data");
        let mut patterns = Some(Vec::new());
        for word in given {
            let own = word.literal.as_deref().and_then(|text| form.patterns(text));
            patterns = patterns.zip(own).map(|(patterns, own)| [patterns, own].concat());
        }
        Some(Search {
            patterns: patterns.filter(|_| is_plain),
            files: files.map(|word| word.span).collect(),
            is_inverted,
            is_count: read.has('c', "count"),
            is_silent: read.has('q', "quiet"),
        })
    }

    // Returns the first text in which the check finds something; `None` if planctl cannot evaluate it.
    fn first_in(&self, texts: &[&String]) -> Option<Option<usize>> {
        let patterns = self.patterns.as_ref()?;
        let finds = |text: &&String| text.lines().any(|line| patterns.iter().any(|one| one.is_in(line)));
        Some(texts.iter().position(finds))
    }
}

/// The way in which a search reads its patterns.
struct Form {
    is_fixed: bool,
    is_extended: bool,
    ignores_case: bool,
    is_line: bool,
}

/// A text with anchors, in which some characters may be any.
#[derive(Clone)]
struct Pattern {
    /// The characters; nothing stands for any one.
    characters: Vec<Option<char>>,
    at_start: bool,
    at_end: bool,
    ignores_case: bool,
}

impl Form {
    // A text divides alternatives by `|`, or by `\\|` where it is no extended one.
    fn patterns(&self, text: &str) -> Option<Vec<Pattern>> {
        match (self.is_fixed, self.is_extended) {
            (true, _) => Some(vec![self.pattern(text)?]),
            (false, true) if text.contains("\\|") => None,
            (false, true) => text.split('|').map(|text| self.pattern(text)).collect(),
            (false, false) => text.split("\\|").map(|text| self.pattern(text)).collect(),
        }
    }

    fn pattern(&self, text: &str) -> Option<Pattern> {
        let (ignores_case, is_fixed) = (self.ignores_case, self.is_fixed);
        let (text, at_start) =
            text.strip_prefix('^').filter(|_| !is_fixed).map_or((text, false), |rest| (rest, true));
        let is_escaped = text.ends_with("\\$");
        let ending = text.strip_suffix('$').filter(|_| !is_fixed && !is_escaped);
        let (text, at_end) = ending.map_or((text, false), |rest| (rest, true));
        let mut characters = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let character =
                match c {
                    _ if is_fixed => Some(c),
                    '.' => None,
                    '\\' => Some(rest.next().filter(|next| {
                        matches!(next, '.' | '*' | '[' | ']' | '^' | '$' | '\\' | '/' | '-')
                    })?),
                    '*' | '[' | '^' | '$' => return None,
                    '+' | '?' | '|' | '(' | ')' | '{' | '}' if self.is_extended => return None,
                    c => Some(c),
                };
            characters.push(character.map(|c| if ignores_case { c.to_ascii_lowercase() } else { c }));
        }
        // A line feed divides alternatives.
        let is_one = !text.contains('\n') && (text.is_ascii() || !ignores_case);
        let (at_start, at_end) = (at_start || self.is_line, at_end || self.is_line);
        is_one.then_some(Pattern { characters, at_start, at_end, ignores_case })
    }
}

impl Pattern {
    fn is_in(&self, line: &str) -> bool {
        let fold = |c: char| if self.ignores_case { c.to_ascii_lowercase() } else { c };
        let line: Vec<char> = line.chars().map(fold).collect();
        let Some(last) = line.len().checked_sub(self.characters.len()) else { return false };
        let fits = |at: usize| {
            let part = line[at..].iter().zip(&self.characters);
            part.into_iter().all(|(c, wanted)| wanted.is_none_or(|wanted| wanted == *c))
        };
        let first = if self.at_end { last } else { 0 };
        let end = if self.at_start { 0 } else { last };
        (first..=end).any(fits)
    }
}
