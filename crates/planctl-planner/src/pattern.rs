//! Drafts without a model: goals of a few forms that are handled whole, or not at all (M-01, M-02, M-04).

use std::collections::BTreeSet;

use planctl_lang::shell_quoted;
use serde::{Deserialize, Serialize};

use crate::goal::Goal;
use crate::proposal::{Proposal, Step, Trace};
use crate::signals::{Signal, signals};

/// How sure a pattern that fits is: its form leaves nothing open, and its contract is still to be tried.
pub const PATTERN_CONFIDENCE: f64 = 0.9;
/// The longest text that a pattern takes over.
const TEXT_CHARACTERS_MAX: usize = 200;

/// The facts of the workspace that patterns need.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PatternFacts {
    /// Its files.
    pub files: BTreeSet<String>,
    /// Programs that contracts find.
    pub commands: BTreeSet<String>,
}

/// A goal that a pattern handles.
#[derive(Clone, PartialEq, Debug)]
pub struct Matched {
    /// The pattern, in words.
    pub pattern: &'static str,
    /// Its plan.
    pub proposal: Proposal,
}

/// Why no pattern handles a goal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Deferral {
    /// Signs of complexity.
    pub signals: Vec<Signal>,
    /// Other reasons, each the end of a sentence.
    pub reasons: Vec<String>,
}

/// Drafts what a pattern can draft whole.
///
/// # Errors
///
/// [`Deferral`] where that is not all of the goal: a guess would be worse than a question.
pub fn draft_by_pattern(goal: &Goal, facts: &PatternFacts) -> Result<Matched, Deferral> {
    let signals = signals(&goal.text);
    let mut deferral = Deferral { signals, reasons: Vec::new() };
    if goal.requirements.len() > 1 {
        deferral
            .reasons
            .push(format!("it has {} requirements, and a pattern handles one", goal.requirements.len()));
    }
    if !goal.suspicions.is_empty() {
        deferral.reasons.push("a sentence of it speaks to a program".to_owned());
    }
    if !deferral.signals.is_empty() || !deferral.reasons.is_empty() {
        return Err(deferral);
    }
    let sentence = goal.requirements.first().map_or(goal.text.as_str(), |own| own.text.as_str());
    let words = words_of(sentence);
    let mut reasons = Vec::new();
    for pattern in PATTERNS {
        match (pattern.draft)(&words, facts) {
            Fit::Step(step) => {
                return Ok(Matched {
                    pattern: pattern.words,
                    proposal: proposal_of_one_step(sentence, *step),
                });
            }
            Fit::Not => {}
            Fit::Almost(why) => reasons.push(why),
        }
    }
    if reasons.is_empty() {
        let forms: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.words).collect();
        reasons.push(format!("it has none of the forms that planctl drafts by itself: {}", forms.join("; ")));
    }
    Err(Deferral { signals: Vec::new(), reasons })
}

struct Pattern {
    words: &'static str,
    draft: fn(&[Word], &PatternFacts) -> Fit,
}

/// How a pattern fits.
enum Fit {
    /// Whole.
    Step(Box<Step>),
    /// Not at all.
    Not,
    /// Its form does, and something else is in the way.
    Almost(String),
}

const PATTERNS: [Pattern; 6] = [
    Pattern { words: "fix failing test FILE", draft: failing_test },
    Pattern { words: "remove FILE", draft: removed },
    Pattern { words: "create FILE with \"TEXT\"", draft: created },
    Pattern { words: "replace \"OLD\" with \"NEW\" in FILE", draft: replaced },
    Pattern { words: "document \"TEXT\" in FILE", draft: documented },
    Pattern { words: "rename FILE to FILE", draft: renamed },
];

/// A word of a goal.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Word {
    Plain(String),
    Quoted(String),
}

impl Word {
    fn is_any_of(&self, words: &[&str]) -> bool {
        matches!(self, Word::Plain(word) if words.contains(&word.to_lowercase().as_str()))
    }

    fn text(&self) -> &str {
        match self {
            Word::Plain(text) | Word::Quoted(text) => text,
        }
    }

    fn path(&self) -> Option<&str> {
        let path = self.text().trim_start_matches("./");
        let is_safe = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'));
        let stays =
            !path.starts_with(['/', '-']) && path.split('/').all(|part| !part.is_empty() && part != "..");
        (path.contains('.') && is_safe && stays).then_some(path)
    }

    fn quoted(&self) -> Option<&str> {
        let Word::Quoted(text) = self else { return None };
        let fits = !text.trim().is_empty() && text.chars().count() <= TEXT_CHARACTERS_MAX;
        fits.then_some(text.as_str())
    }
}

/// Splits a goal into words, a text in quotes as one; articles say nothing.
fn words_of(sentence: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = sentence.trim().trim_end_matches(['.', '!']);
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if let ('"' | '`' | '\'', Some(end)) = (first, rest[first.len_utf8()..].find(first)) {
            words.push(Word::Quoted(rest[1..=end].to_owned()));
            rest = &rest[end + 2..];
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            words.push(Word::Plain(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    words.retain(|word| !word.is_any_of(&["a", "an", "the", "please", "first"]));
    words
}

fn proposal_of_one_step(sentence: &str, step: Step) -> Proposal {
    let mut title: String = sentence.chars().take(100).collect();
    if let Some(first) = title.get(..1) {
        title = format!("{}{}", first.to_uppercase(), &title[1..]);
    }
    Proposal {
        title,
        context: "Drafted by a pattern, without a model.".to_owned(),
        confidence: PATTERN_CONFIDENCE,
        steps: vec![step],
        requirements: vec![Trace { id: "R1".to_owned(), steps: vec![1], quote: None }],
        questions: Vec::new(),
    }
}

fn step(title: String, task: String, contract: String, changes: &[&str]) -> Fit {
    Fit::Step(Box::new(Step {
        title,
        role: "coder".to_owned(),
        task,
        contract,
        changes: changes.iter().map(|path| (*path).to_owned()).collect(),
        ..Step::default()
    }))
}

fn failing_test(words: &[Word], facts: &PatternFacts) -> Fit {
    let file = match words {
        [verb, state, noun, file] if verb.is_any_of(&["fix", "mend", "repair"]) => {
            (state.is_any_of(&["failing", "broken", "red"]) && noun.is_any_of(&["test", "tests"]))
                .then_some(file)
        }
        [verb, state, noun, joint, file]
            if verb.is_any_of(&["fix", "mend", "repair"]) && joint.is_any_of(&["in", "of"]) =>
        {
            (state.is_any_of(&["failing", "broken", "red"]) && noun.is_any_of(&["test", "tests"]))
                .then_some(file)
        }
        [verb, file, end] if verb.is_any_of(&["make"]) && end.is_any_of(&["pass", "green"]) => Some(file),
        [verb, noun, file, end]
            if verb.is_any_of(&["make"])
                && noun.is_any_of(&["test"])
                && end.is_any_of(&["pass", "green"]) =>
        {
            Some(file)
        }
        _ => None,
    };
    let Some(file) = file else { return Fit::Not };
    let Some(path) = file.path() else {
        return Fit::Almost(format!(
            "`{}` is not the path of a test file",
            planctl_lang::escape(file.text())
        ));
    };
    if !facts.files.contains(path) {
        return Fit::Almost(format!("there is no file `{path}`"));
    }
    let Some((program, contract)) = runner(path, facts) else {
        return Fit::Almost(format!("nothing says how `{path}` is run"));
    };
    if !facts.commands.contains(program) {
        return Fit::Almost(format!("`{program}` runs `{path}`, and is not there"));
    }
    let task = format!("Make the test `{path}` pass. Mend the code that it tests; do not change the test.");
    step(format!("Make {path} pass"), task, contract, &[])
}

fn runner(path: &str, facts: &PatternFacts) -> Option<(&'static str, String)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.')?;
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    Some(match ending {
        "sh" | "bash" => ("bash", format!("bash {path}")),
        "bats" => ("bats", format!("bats {path}")),
        "py" if facts.commands.contains("pytest") => ("pytest", format!("pytest -q {path}")),
        "py" => ("python3", format!("python3 -m unittest {path}")),
        "js" | "mjs" | "cjs" => ("node", format!("node --test {path}")),
        "rb" => ("ruby", format!("ruby {path}")),
        "pl" | "t" => ("perl", format!("perl {path}")),
        "go" if stem.ends_with("_test") => ("go", format!("go test ./{folder}")),
        "rs" if folder == "tests" => ("cargo", format!("cargo test --test {stem}")),
        _ => return None,
    })
}

fn removed(words: &[Word], facts: &PatternFacts) -> Fit {
    let file = match words {
        [verb, file] if verb.is_any_of(&["remove", "delete"]) => file,
        [verb, noun, file] if verb.is_any_of(&["remove", "delete"]) && noun.is_any_of(&["file"]) => file,
        _ => return Fit::Not,
    };
    let Some(path) = file.path() else { return Fit::Not };
    if !facts.files.contains(path) {
        return Fit::Almost(format!("there is no file `{path}`"));
    }
    let task = format!("Remove the file `{path}`, and change nothing else.");
    step(format!("Remove {path}"), task, format!("test ! -e {path}"), &[path])
}

fn created(words: &[Word], facts: &PatternFacts) -> Fit {
    let (file, text) = match words {
        [verb, file, joint, text] if verb.is_any_of(&CREATE) && joint.is_any_of(&HOLDING) => (file, text),
        [verb, noun, file, joint, text]
            if verb.is_any_of(&CREATE) && noun.is_any_of(&["file"]) && joint.is_any_of(&HOLDING) =>
        {
            (file, text)
        }
        _ => return Fit::Not,
    };
    let (Some(path), Some(text)) = (file.path(), text.quoted()) else { return Fit::Not };
    if facts.files.contains(path) {
        return Fit::Almost(format!("`{path}` is there already"));
    }
    let task = format!("Create the file `{path}` with the text `{}` in it.", text.replace('`', "'"));
    step(format!("Create {path}"), task, format!("grep -qF -- {} {path}", shell_quoted(text)), &[path])
}

const CREATE: [&str; 3] = ["create", "add", "write"];
const HOLDING: [&str; 4] = ["with", "containing", "saying", "holding"];

fn replaced(words: &[Word], facts: &PatternFacts) -> Fit {
    let [verb, old, joint, new, inside, file] = words else { return Fit::Not };
    if !(verb.is_any_of(&["replace", "rename", "change"])
        && joint.is_any_of(&["with", "by", "to"])
        && inside.is_any_of(&["in"]))
    {
        return Fit::Not;
    }
    let (Some(old), Some(new), Some(path)) = (old.quoted(), new.quoted(), file.path()) else {
        return Fit::Not;
    };
    if !facts.files.contains(path) {
        return Fit::Almost(format!("there is no file `{path}`"));
    }
    if new.contains(old) {
        return Fit::Almost("the new text holds the old one, so a search can't tell them apart".to_owned());
    }
    let (old_shown, new_shown) = (old.replace('`', "'"), new.replace('`', "'"));
    let task = format!("Replace `{old_shown}` with `{new_shown}` wherever it stands in `{path}`.");
    let contract =
        format!("grep -qF -- {} {path} && ! grep -qF -- {} {path}", shell_quoted(new), shell_quoted(old));
    step(format!("Replace a text in {path}"), task, contract, &[path])
}

fn documented(words: &[Word], facts: &PatternFacts) -> Fit {
    let [verb, text, inside, file] = words else { return Fit::Not };
    if !(verb.is_any_of(&["document", "mention", "describe", "explain"]) && inside.is_any_of(&["in"])) {
        return Fit::Not;
    }
    let (Some(text), Some(path)) = (text.quoted(), file.path()) else { return Fit::Not };
    if !facts.files.contains(path) {
        return Fit::Almost(format!("there is no file `{path}`"));
    }
    let task =
        format!("Describe `{}` in `{path}`, in the style of the text around it.", text.replace('`', "'"));
    step(
        format!("Document it in {path}"),
        task,
        format!("grep -qF -- {} {path}", shell_quoted(text)),
        &[path],
    )
}

fn renamed(words: &[Word], facts: &PatternFacts) -> Fit {
    let (from, to) = match words {
        [verb, from, joint, to] if verb.is_any_of(&["rename", "move"]) && joint.is_any_of(&["to"]) => {
            (from, to)
        }
        _ => return Fit::Not,
    };
    let (Some(from), Some(to)) = (from.path(), to.path()) else { return Fit::Not };
    if !facts.files.contains(from) {
        return Fit::Almost(format!("there is no file `{from}`"));
    }
    if facts.files.contains(to) {
        return Fit::Almost(format!("`{to}` is there already"));
    }
    let task = format!("Rename the file `{from}` to `{to}`, and mend what names it.");
    step(format!("Rename {from}"), task, format!("test -s {to} && test ! -e {from}"), &[from, to])
}
