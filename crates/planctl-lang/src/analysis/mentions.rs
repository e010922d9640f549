//! Reads a task's text for what it does with the files it names: the nearest verb before a path in its sentence tells.

use std::borrow::Cow;

use super::plainly::{self, Right};
use crate::syntax::Language;
use crate::syntax::shell::paths_in_text;
use crate::syntax::source::Source;
use crate::text::{Span, Spanned};

/// The use that a step makes of a file, as far as its text tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    /// It is said to make it.
    Makes,
    /// Its contract asks whether it is there.
    Proves,
    /// It is said to change it.
    Changes,
    /// Its contract looks into it, or runs it.
    Judges,
    /// It is named, and nothing more is known.
    Names,
    /// It is said to read it.
    Reads,
}

/// A path in a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mention {
    pub path: String,
    /// Where it stands in the plan.
    pub span: Span,
    pub role: Role,
    /// The right to change it that the task gives.
    pub right: Right,
}

/// Returns the paths that a task names, in the order of the text.
pub(crate) fn mentions_in_task(source: &Source, task: &Spanned<String>) -> Vec<Mention> {
    let mut paths = paths_in_text(&task.value);
    if paths.is_empty() {
        return Vec::new();
    }
    paths.sort_by_key(|(_, span)| span.start);
    let mut places = Places::new(source, task);
    let mut reader = Reader::default();
    let mut mentions: Vec<Mention> = Vec::with_capacity(paths.len());
    let mut end = 0;
    paths.retain(|(_, span)| {
        let is_apart = task.value.get(span.start..span.end).is_some() && span.start >= end;
        end = if is_apart { span.end } else { end };
        is_apart
    });
    let spans: Vec<Span> = paths.iter().map(|(_, span)| *span).collect();
    let rights = plainly::rights(&task.value, &spans);
    let words = without_code(&task.value);
    let mut at = 0;
    for ((path, span), right) in paths.into_iter().zip(rights) {
        let said = reader.read(&words[at..span.start], true);
        apply_to_last(said, &mut mentions);
        mentions.push(Mention { path, span: places.in_plan(span), role: reader.role(), right });
        reader.saw_path();
        at = span.end;
    }
    let said = reader.read(words.get(at..).unwrap_or(""), false);
    apply_to_last(said, &mut mentions);
    mentions
}

/// The meaning of the words that follow a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    /// It is made: `x.md` is written.
    Made,
    /// It is there: make `x.py` pass.
    There,
}

fn apply_to_last(said: Said, mentions: &mut [Mention]) {
    let Some(last) = mentions.last_mut() else { return };
    match (said, last.role) {
        (Said::Made, Role::Names) => last.role = Role::Makes,
        (Said::There, Role::Makes) => last.role = Role::Names,
        _ => {}
    }
}

// Names in code are no words of the sentence: of `test_login` and `make all`, neither is a verb.
fn without_code(text: &str) -> Cow<'_, str> {
    if !text.contains('`') {
        return Cow::Borrowed(text);
    }
    let mut words = text.as_bytes().to_vec();
    let run = |at: usize| text.as_bytes()[at..].iter().take_while(|byte| **byte == b'`').count();
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find('`') {
        at += next;
        runs.push((at, run(at)));
        at += run(at);
    }
    // Code ends with as many of them as it begins with, in its own paragraph.
    let mut open: Option<(usize, usize)> = None;
    for (at, length) in runs {
        match open {
            Some((from, begun)) if begun == length && !text[from..at].contains("\n\n") => {
                words[from..at].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b'x');
                open = None;
            }
            Some((_, begun)) if begun != length => {}
            Some(_) | None => open = Some((at + length, length)),
        }
    }
    Cow::Owned(String::from_utf8(words).unwrap_or_default())
}

/// Walks the lines of a text beside those of the plan, so that a place in one is found in the other.
struct Places<'a> {
    source: &'a Source,
    text: &'a str,
    start: usize,
    line: usize,
    line_start: usize,
    /// Up to where line ends were looked for.
    seen: usize,
    /// All of it, where it does not stand in the plan letter by letter: a value of a graph with escapes.
    whole: Option<Span>,
}

impl<'a> Places<'a> {
    fn new(source: &'a Source, text: &'a Spanned<String>) -> Places<'a> {
        let line = source.line_of(text.span.start);
        let is_moved = Language::of(source.path()).is_some() && source.slice(text.span) != text.value;
        let whole = is_moved.then_some(text.span);
        Places { source, text: &text.value, start: text.span.start, line, line_start: 0, seen: 0, whole }
    }

    // Spans come in order, so the walk is linear in the text.
    fn in_plan(&mut self, span: Span) -> Span {
        if let Some(whole) = self.whole {
            return whole;
        }
        while let Some(end) = self.text[self.seen..span.start].find('\n') {
            self.line += 1;
            self.line_start = self.seen + end + 1;
            self.seen = self.line_start;
            self.start = self.source.line_span(self.line).start;
        }
        self.seen = span.start;
        let start = self.start + span.start - self.line_start;
        Span::new(start, start + span.end - span.start)
    }
}

/// Reads the words between paths and remembers the verb that holds.
#[derive(Default)]
struct Reader {
    verb: Option<Role>,
    /// The verb of the line that introduces a list.
    intro: Option<Role>,
    is_source: bool,
    is_negated: bool,
    is_target_due: bool,
    is_make: bool,
    is_number: bool,
    is_noun_due: bool,
    /// How many words ago a path was named in this sentence.
    since_path: Option<usize>,
}

impl Reader {
    fn role(&self) -> Role {
        match self.verb {
            _ if self.is_source => Role::Reads,
            Some(role) => role,
            None => Role::Names,
        }
    }

    fn saw_path(&mut self) {
        self.since_path = Some(0);
    }

    // Returns what the words say of the path before them.
    fn read(&mut self, text: &str, is_before_path: bool) -> Said {
        let mut said = Said::Nothing;
        let mut rest = text;
        while !rest.is_empty() {
            let end = while_all(
                rest,
                |byte| byte.is_ascii_alphanumeric() || byte == b'\'',
                |character| character.is_alphanumeric() || character == '’',
            );
            let (word, after) = rest.split_at(end);
            if !word.is_empty() {
                let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
                let by_word = if is_plain { self.word(word) } else { self.word(&word.to_lowercase()) };
                said = if by_word == Said::Nothing { said } else { by_word };
            }
            let gap = while_all(
                after,
                |byte| byte.is_ascii() && !byte.is_ascii_alphanumeric(),
                |character| !character.is_alphanumeric(),
            );
            let is_last = gap == after.len() && !is_before_path;
            if !is_last {
                self.gap(&after[..gap]);
            }
            rest = &after[gap..];
        }
        said
    }

    fn gap(&mut self, gap: &str) {
        // Most words end nothing; the gap after them is looked at.
        if gap == " " {
            self.is_number = false;
            return;
        }
        let is_line_end = gap.contains('\n');
        if is_line_end && gap.lines().next().is_some_and(|line| line.contains(':')) {
            self.intro = self.verb;
        }
        let last_line = gap.rsplit('\n').next().unwrap_or("").trim_start();
        let is_item = is_line_end && last_line.starts_with(['-', '*', '+']);
        let is_numbered = std::mem::take(&mut self.is_number) && gap.starts_with([')', '.']);
        if is_item || is_numbered {
            return self.begin(self.intro);
        }
        let ends = |mark: char| {
            gap.find(mark)
                .is_some_and(|at| gap[at + 1..].is_empty() || gap[at + 1..].starts_with(char::is_whitespace))
        };
        if ['.', '!', '?', ';'].into_iter().any(ends) || gap.contains("\n\n") {
            self.begin(None);
        }
    }

    fn begin(&mut self, verb: Option<Role>) {
        *self = Reader { verb, intro: self.intro, ..Reader::default() };
    }

    fn word(&mut self, word: &str) -> Said {
        let since = self.since_path;
        self.since_path = since.map(|count| count + 1);
        self.is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        match word {
            "not" | "never" | "without" | "avoid" | "don't" | "don’t" | "doesn't" | "cannot" => {
                self.is_negated = true;
            }
            "from" | "of" | "per" | "than" | "against" | "like" | "by" | "with" | "via" => {
                self.is_source = true
            }
            "to" | "into" | "in" | "as" | "at" | "onto" => self.arrive(word),
            "written" | "created" | "made" | "produced" | "generated" | "exist" | "exists"
                if since.is_some_and(|count| count <= 3) && !self.is_negated =>
            {
                return Said::Made;
            }
            // `Make x.py pass`: nobody makes what has to be there.
            "pass" | "passes" | "green" | "work" | "works" | "run" | "compile" | "build" | "start"
            | "succeed"
                if since == Some(0) && self.is_make =>
            {
                return Said::There;
            }
            _ => self.take_verb(word),
        }
        Said::Nothing
    }

    // `Move … to x`, `list … in x`: the path after the preposition is the one that is made.
    fn arrive(&mut self, word: &str) {
        self.is_source = false;
        if std::mem::take(&mut self.is_target_due) {
            self.verb = Some(Role::Makes);
        } else if self.verb == Some(Role::Reads) && matches!(word, "to" | "into" | "onto") {
            // Where something goes is not what is read: import `x.csv` into `y.db`.
            self.verb = Some(Role::Names);
        } else if word == "in" && self.is_make {
            self.verb = Some(Role::Names);
        }
    }

    // Behind `the` or `all` stands a noun: "update all imports".
    fn take_verb(&mut self, word: &str) {
        let is_noun = std::mem::replace(&mut self.is_noun_due, is_determiner(word));
        let Some(role) = verb(word).filter(|_| !is_noun) else { return };
        self.is_source = false;
        self.is_make = word == "make";
        let is_negated = std::mem::take(&mut self.is_negated);
        self.is_target_due = has_target(word) && !is_negated;
        self.verb = Some(if is_negated { Role::Names } else { role });
    }
}

// Returns how much of a text has only characters of a kind; most are ASCII, and those are told by their byte.
fn while_all(text: &str, ascii: impl Fn(u8) -> bool, other: impl Fn(char) -> bool) -> usize {
    let mut end = 0;
    loop {
        end += text.as_bytes()[end..].iter().take_while(|byte| ascii(**byte)).count();
        match text[end..].chars().next().filter(|next| !next.is_ascii() && other(*next)) {
            Some(next) => end += next.len_utf8(),
            None => return end,
        }
    }
}

fn is_determiner(word: &str) -> bool {
    matches!(
        word,
        "the"
            | "a"
            | "an"
            | "all"
            | "any"
            | "every"
            | "each"
            | "its"
            | "this"
            | "that"
            | "these"
            | "those"
            | "no"
            | "new"
            | "some"
            | "their"
            | "your"
            | "our"
            | "which"
    )
}

// Verbs whose object is there already, and that make what `to` or `in` names.
fn has_target(word: &str) -> bool {
    matches!(
        word,
        "move"
            | "moves"
            | "rename"
            | "copy"
            | "extract"
            | "list"
            | "collect"
            | "summarize"
            | "summarise"
            | "document"
            | "redirect"
    )
}

fn verb(word: &str) -> Option<Role> {
    match word {
        "write" | "writes" | "writing" | "create" | "creates" | "creating" | "save" | "saves" | "saving"
        | "put" | "puts" | "produce" | "produces" | "producing" | "generate" | "generates" | "generating"
        | "make" | "makes" | "output" | "outputs" | "record" | "records" | "recording" | "store"
        | "stores" | "export" | "exports" | "emit" | "emits" | "build" | "builds" | "draft" | "dump"
        | "scaffold" | "touch" => Some(Role::Makes),
        "update" | "updates" | "updating" | "change" | "changes" | "changing" | "edit" | "edits"
        | "editing" | "modify" | "modifies" | "fix" | "fixes" | "fixing" | "replace" | "rewrite"
        | "extend" | "adjust" | "refactor" | "correct" | "delete" | "remove" | "add" | "adds" | "adding"
        | "append" | "appends" | "insert" | "mend" | "move" | "moves" | "rename" | "complete"
        | "implement" | "finish" | "fill" => Some(Role::Changes),
        "read" | "reads" | "reading" | "see" | "use" | "uses" | "using" | "follow" | "follows"
        | "following" | "check" | "checks" | "compare" | "call" | "calls" | "run" | "runs" | "running"
        | "load" | "loads" | "import" | "imports" | "consult" | "review" | "study" | "analyze"
        | "analyse" | "inspect" | "look" | "open" | "parse" | "based" | "commit" | "test" | "lint"
        | "verify" | "according" | "given" | "apply" | "list" | "collect" | "summarize" | "summarise"
        | "document" | "copy" | "extract" => Some(Role::Reads),
        // The rest of the sentence decides how these verbs use a file.
        "leave" | "leaves" | "leaving" | "keep" | "keeps" | "keeping" | "report" | "reports" | "log"
        | "logs" | "redirect" | "set" | "sets" | "give" | "gives" | "giving" | "type" => Some(Role::Names),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Changes, Makes, Names, Reads};

    fn roles(task: &str) -> Vec<(String, Role)> {
        let source = Source::new("p.md", task);
        let text = Spanned::new(task.to_owned(), Span::new(0, task.len()));
        let mentions = mentions_in_task(&source, &text);
        for mention in &mentions {
            assert_eq!(source.slice(mention.span), mention.path, "{task}");
        }
        mentions.into_iter().map(|mention| (mention.path, mention.role)).collect()
    }

    #[test]
    fn the_nearest_verb_tells_what_happens_to_a_file() {
        let tasks: [(&str, &[(&str, Role)]); 22] = [
            ("Write a root cause\nanalysis to `docs/a.md` with the path.", &[("docs/a.md", Makes)]),
            ("Categorize by: simple, auth. Output to `docs/i.md`.", &[("docs/i.md", Makes)]),
            (
                "Move config code to `src/config.py`. Update all imports in `src/app.py`.",
                &[("src/config.py", Makes), ("src/app.py", Changes)],
            ),
            (
                "List every function of `report.sh` in `docs/f.md`, one per line.",
                &[("report.sh", Reads), ("docs/f.md", Makes)],
            ),
            (
                "Move the functions from `report.sh` to `lib/format.sh`, unchanged.",
                &[("report.sh", Reads), ("lib/format.sh", Makes)],
            ),
            (
                "Write `reproduce.sh`, a bash script: it calls `slug.sh` with the title.",
                &[("reproduce.sh", Makes), ("slug.sh", Reads)],
            ),
            ("Based on `docs/a.md`, implement the fix.", &[("docs/a.md", Reads)]),
            ("Do not change `src/api.py`. Write `x.md`.", &[("src/api.py", Names), ("x.md", Makes)]),
            ("Commit `slug.sh` and `reproduce.sh`.", &[("slug.sh", Reads), ("reproduce.sh", Reads)]),
            (
                "Create these files:\n- `a.md`\n- `b.md`: see `c.md`\n\nThen stop.",
                &[("a.md", Makes), ("b.md", Makes), ("c.md", Reads)],
            ),
            ("`docs/x.md` must exist with one line.", &[("docs/x.md", Makes)]),
            ("The file `docs/x.md` is written by hand.", &[("docs/x.md", Makes)]),
            (
                "Use `a.txt` and `b.txt` to produce `c.txt`.",
                &[("a.txt", Reads), ("b.txt", Reads), ("c.txt", Makes)],
            ),
            ("Summarize src/a.py in docs/s.md.", &[("src/a.py", Reads), ("docs/s.md", Makes)]),
            ("Make `two.txt` from `one.txt`.", &[("two.txt", Makes), ("one.txt", Reads)]),
            ("Look at e.g. `a.txt`, v1.2. Save `b.txt`.", &[("a.txt", Names), ("b.txt", Makes)]),
            ("1. Create:\n\n1. `a.md`\n2) `b.md`\n", &[("a.md", Makes), ("b.md", Makes)]),
            (
                "Make the tests in `t/a.py` pass. Move `a.c` to `b.c`.",
                &[("t/a.py", Names), ("a.c", Changes), ("b.c", Makes)],
            ),
            ("", &[]),
            ("`a.txt`", &[("a.txt", Names)]),
            ("Größe: schreibe größe.txt", &[("größe.txt", Names)]),
            ("Write it without reading `a.txt`.", &[("a.txt", Names)]),
        ];
        for (task, expected) in tasks {
            let expected: Vec<_> = expected.iter().map(|(path, role)| ((*path).to_owned(), *role)).collect();
            assert_eq!(roles(task), expected, "{task}");
        }
    }
}
