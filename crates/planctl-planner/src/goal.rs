//! The goal in its author's words: what it requires, sentence by sentence, and what in it only pretends to be a goal.

use planctl_lang::one_line;
use serde::{Deserialize, Serialize};

/// The most requirements of one goal; more are several goals.
const REQUIREMENTS_MAX: usize = 40;
/// The most characters of a sentence that is shown.
const SHOWN_CHARACTERS: usize = 300;

/// A goal, and the text that it comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// The goal as it was typed; the source's first heading where only a source was named.
    pub text: String,
    /// The whole source, byte for byte, and its name.
    pub source: Option<(String, String)>,
    /// Its requirements, in the order of its text.
    pub requirements: Vec<Requirement>,
    /// Sentences that speak to a program and not of the work.
    pub suspicions: Vec<Suspicion>,
    /// How many requirements were not taken, since there are too many.
    pub left_out: usize,
}

/// One thing that the goal requires.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Requirement {
    /// `R1`, `R2` …
    pub id: String,
    /// The author's own words.
    pub text: String,
    /// The line of the source, from 1; `None` where it stands in the goal itself.
    pub line: Option<usize>,
}

/// A sentence that speaks to a program. It is data like the rest of the text, and no requirement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Suspicion {
    /// The line of the source, from 1; `None` where it stands in the goal itself.
    pub line: Option<usize>,
    /// The sentence.
    pub text: String,
    /// Why it stands out.
    pub why: String,
}

impl Goal {
    /// Reads a goal, and the source that says more, where there is one.
    pub fn read(text: &str, source: Option<(&str, &str)>) -> Goal {
        let text = text.trim();
        let mut goal = Goal {
            text: text.to_owned(),
            source: source.map(|(name, text)| (name.to_owned(), text.to_owned())),
            requirements: Vec::new(),
            suspicions: Vec::new(),
            left_out: 0,
        };
        let mut found = Vec::new();
        goal.sentences_of_goal(text, &mut found);
        if let Some((_, source)) = source {
            if goal.text.is_empty() {
                goal.text = title_of(source);
            }
            let mut of_source = Vec::new();
            goal.sentences_of_source(source, &mut of_source);
            // A source with requirements of its own says in full what the goal above it sums up.
            if !of_source.is_empty() || found.is_empty() {
                found = of_source;
            }
        }
        if found.is_empty() && !goal.text.is_empty() && suspicion(&goal.text).is_none() {
            found.push((None, goal.text.clone()));
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|(_, text)| seen.insert(text.to_lowercase()));
        goal.left_out = found.len().saturating_sub(REQUIREMENTS_MAX);
        found.truncate(REQUIREMENTS_MAX);
        goal.requirements = found
            .into_iter()
            .enumerate()
            .map(|(at, (line, text))| Requirement { id: format!("R{}", at + 1), text, line })
            .collect();
        goal
    }

    /// Says whether words stand in the goal or its source as they are, but for white space.
    pub fn says(&self, words: &str) -> bool {
        let words = one_line(words);
        let is_in = |text: &str| one_line(text).contains(&words);
        !words.is_empty() && (is_in(&self.text) || self.source.as_ref().is_some_and(|(_, text)| is_in(text)))
    }

    fn sentences_of_goal(&mut self, text: &str, found: &mut Vec<(Option<usize>, String)>) {
        for sentence in sentences(text) {
            match suspicion(&sentence) {
                Some(why) => self.suspicions.push(Suspicion { line: None, text: shortened(&sentence), why }),
                None => found.extend(clauses(&sentence).into_iter().map(|clause| (None, clause))),
            }
        }
    }

    fn sentences_of_source(&mut self, source: &str, found: &mut Vec<(Option<usize>, String)>) {
        let title = title_of(source);
        for Block { line, text, kind } in blocks(source) {
            if kind == Kind::Comment {
                let why = "it is in a comment, which readers of the page don't see".to_owned();
                let why = suspicion(&text).map_or(why.clone(), |more| format!("{why}, and {more}"));
                self.suspicions.push(Suspicion { line: Some(line), text: shortened(&text), why });
                continue;
            }
            for sentence in sentences(&text) {
                if let Some(why) = suspicion(&sentence) {
                    self.suspicions.push(Suspicion { line: Some(line), text: shortened(&sentence), why });
                    continue;
                }
                let is_required = match kind {
                    Kind::Done | Kind::Heading | Kind::Quoted | Kind::Comment => false,
                    Kind::Asked => true,
                    Kind::Item | Kind::Prose => is_demand(&sentence),
                };
                if is_required && sentence != title {
                    found.push((Some(line), sentence));
                }
            }
        }
    }
}

/// A part of a source.
struct Block {
    line: usize,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heading,
    Prose,
    /// An item of a list.
    Item,
    /// An open box, or an item below a heading that asks.
    Asked,
    /// A ticked box.
    Done,
    /// Output, code, tables, and what others said.
    Quoted,
    /// Text that HTML hides.
    Comment,
}

/// Headings below which each item of a list is asked for.
const ASKING: [&str; 9] = [
    "acceptance",
    "requirement",
    "criteria",
    "todo",
    "to do",
    "tasks",
    "expected",
    "done when",
    "definition of done",
];

fn blocks(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut fence, mut comment, mut asks, mut is_open) =
        (None::<&str>, None::<(usize, String)>, false, false);
    for (at, whole) in source.lines().enumerate() {
        let (line, text) = (at + 1, whole.trim());
        if let Some((_, hidden)) = &mut comment {
            let (inside, ends) = text.split_once("-->").map_or((text, false), |(inside, _)| (inside, true));
            hidden.push(' ');
            hidden.push_str(inside);
            if ends && let Some((line, text)) = comment.take() {
                blocks.push(Block { line, text: text.trim().to_owned(), kind: Kind::Comment });
            }
            continue;
        }
        if let Some(mark) = fence {
            match text.starts_with(mark) {
                true => fence = None,
                false => blocks.push(Block { line, text: text.to_owned(), kind: Kind::Quoted }),
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark)) {
            (fence, is_open) = (Some(mark), false);
            continue;
        }
        if let Some((before, hidden)) = text.split_once("<!--") {
            match hidden.split_once("-->") {
                Some((hidden, _)) => {
                    let text = hidden.trim().to_owned();
                    blocks.push(Block { line, text, kind: Kind::Comment });
                }
                None => comment = Some((line, hidden.trim().to_owned())),
            }
            if before.trim().is_empty() {
                continue;
            }
        }
        let text = text.split("<!--").next().unwrap_or_default().trim();
        if text.is_empty() {
            is_open = false;
        } else if text.starts_with(['>', '|']) {
            blocks.push(Block { line, text: text.to_owned(), kind: Kind::Quoted });
            is_open = false;
        } else if text.starts_with('#') {
            let heading = text.trim_start_matches('#').trim();
            asks = ASKING.iter().any(|word| heading.to_lowercase().contains(word));
            blocks.push(Block { line, text: heading.to_owned(), kind: Kind::Heading });
            is_open = false;
        } else if let Some(item) = list_item_text(text) {
            let (kind, text) = match boxed(item) {
                Some((true, text)) => (Kind::Done, text),
                Some((false, text)) => (Kind::Asked, text),
                None if asks => (Kind::Asked, item),
                None => (Kind::Item, item),
            };
            blocks.push(Block { line, text: text.to_owned(), kind });
            is_open = true;
        } else if let (true, Some(last)) = (is_open, blocks.last_mut()) {
            last.text.push(' ');
            last.text.push_str(text);
        } else {
            let kind = if asks { Kind::Asked } else { Kind::Prose };
            blocks.push(Block { line, text: text.to_owned(), kind });
            is_open = true;
        }
    }
    if let Some((line, text)) = comment {
        blocks.push(Block { line, text, kind: Kind::Comment });
    }
    blocks
}

fn list_item_text(text: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].into_iter().find_map(|mark| text.strip_prefix(mark));
    let numbered = || {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len()).then(|| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")))?
    };
    bullet.or_else(numbered).map(str::trim)
}

fn boxed(item: &str) -> Option<(bool, &str)> {
    let (mark, rest) = item.strip_prefix('[')?.split_once(']')?;
    match mark {
        " " | "" => Some((false, rest.trim())),
        "x" | "X" => Some((true, rest.trim())),
        _ => None,
    }
}

/// Splits a text into sentences; a stop within a name, a number or a path ends none.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut sentence = String::new();
    let mut within = None;
    let characters: Vec<char> = text.chars().collect();
    for (at, character) in characters.iter().enumerate() {
        sentence.push(*character);
        match within {
            Some(quote) if *character == quote => within = None,
            None if *character == '`' => within = Some('`'),
            Some(_) | None => {}
        }
        let is_end = within.is_none()
            && matches!(character, '.' | '!' | '?' | ';' | '\n')
            && characters.get(at + 1).is_none_or(|next| next.is_whitespace());
        if is_end || *character == '\n' {
            found.push(std::mem::take(&mut sentence));
        }
    }
    found.push(sentence);
    let trimmed = found.iter().map(|one| one.trim().trim_end_matches(['.', ';']).trim());
    trimmed.filter(|one| one.chars().any(char::is_alphanumeric)).map(one_line).collect()
}

/// Splits a sentence of a goal where another demand begins: "add X and document it" is two.
fn clauses(sentence: &str) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut rest = sentence;
    let mut from = 0;
    while let Some((at, mark)) = next_joint(&rest[from..]).map(|(at, mark)| (at + from, mark)) {
        let after = &rest[at + mark.len()..];
        if begins_with_verb(after) && !rest[..at].trim().is_empty() {
            clauses.push(rest[..at].trim().trim_end_matches(',').to_owned());
            (rest, from) = (after, 0);
        } else {
            from = at + mark.len();
        }
    }
    clauses.push(rest.trim().to_owned());
    clauses
}

fn next_joint(text: &str) -> Option<(usize, &'static str)> {
    [", and ", " and ", ", then ", " then ", ", "]
        .into_iter()
        .filter_map(|mark| text.find(mark).map(|at| (at, mark)))
        .min_by_key(|(at, mark)| (*at, std::cmp::Reverse(mark.len())))
}

const VERBS: [&str; 46] = [
    "accept",
    "add",
    "allow",
    "bump",
    "change",
    "check",
    "convert",
    "count",
    "create",
    "delete",
    "describe",
    "document",
    "drop",
    "ensure",
    "explain",
    "export",
    "extend",
    "extract",
    "fix",
    "handle",
    "implement",
    "import",
    "improve",
    "introduce",
    "keep",
    "list",
    "make",
    "mention",
    "migrate",
    "move",
    "print",
    "provide",
    "refactor",
    "refuse",
    "reject",
    "remove",
    "rename",
    "replace",
    "report",
    "return",
    "show",
    "split",
    "support",
    "test",
    "update",
    "write",
];
const MODALS: [&str; 18] = [
    "must", "should", "shall", "need", "needs", "expected", "never", "required", "cannot", "can't", "fails",
    "crashes", "broken", "wrong", "instead", "want", "wants", "has to",
];

fn begins_with_verb(text: &str) -> bool {
    let first = text.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    VERBS.contains(&first.to_lowercase().as_str())
}

/// Says whether a sentence asks for something: it begins with a verb of work, or says what must be, or what is wrong.
fn is_demand(sentence: &str) -> bool {
    let lower = format!(" {} ", sentence.to_lowercase());
    begins_with_verb(sentence)
        || MODALS.iter().any(|word| {
            let padded = lower.replace(|c: char| !c.is_alphanumeric() && c != '\'', " ");
            padded.contains(&format!(" {word} "))
        })
}

const SPEAKS_TO_A_PROGRAM: [(&str, &str); 17] = [
    ("ignore all previous", "it asks to ignore what was said before"),
    ("ignore previous", "it asks to ignore what was said before"),
    ("ignore the previous", "it asks to ignore what was said before"),
    ("ignore your", "it asks to ignore what was said before"),
    ("ignore the above", "it asks to ignore what was said before"),
    ("ignore all instructions", "it asks to ignore what was said before"),
    ("disregard", "it asks to disregard what was said before"),
    ("system prompt", "it speaks of a system prompt"),
    ("you are now", "it gives the reader another role"),
    ("as an ai", "it speaks to a language model"),
    ("assistant:", "it plays a part of a conversation"),
    ("<system>", "it plays a part of a conversation"),
    ("[inst]", "it plays a part of a conversation"),
    ("do not tell the", "it asks to hide something"),
    ("without asking", "it asks to leave a person out"),
    ("don't tell the", "it asks to hide something"),
    ("do not mention this", "it asks to hide something"),
];

/// Says why a sentence speaks to a program and not of the work, where it does.
pub(crate) fn suspicion(sentence: &str) -> Option<String> {
    let lower = sentence.to_lowercase();
    if planctl_lang::has_hidden(sentence) {
        return Some("it has characters that nobody sees".to_owned());
    }
    if let Some((_, why)) = SPEAKS_TO_A_PROGRAM.iter().find(|(words, _)| lower.contains(words)) {
        return Some((*why).to_owned());
    }
    let approves = ["approve", "approval"].iter().any(|word| lower.contains(word));
    let of_plan = ["this plan", "the plan", "this draft", "the draft"];
    if approves && of_plan.iter().any(|words| lower.contains(words)) {
        return Some("it speaks of approving the plan, which a person does".to_owned());
    }
    if lower.contains("planctl")
        && ["run", "approve", "trust", "skip", "waive"].iter().any(|word| lower.contains(word))
    {
        return Some("it gives commands to planctl".to_owned());
    }
    let pipes = ["| sh", "|sh", "| bash", "|bash"].iter().any(|pipe| lower.contains(pipe));
    if pipes && (lower.contains("curl") || lower.contains("wget")) {
        return Some("it runs what it downloads".to_owned());
    }
    None
}

fn title_of(source: &str) -> String {
    let lines = || source.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "---");
    let heading = lines().find_map(|line| line.strip_prefix("# "));
    let title = heading.or_else(|| lines().next()).unwrap_or_default();
    shortened(title.trim_start_matches('#').trim())
}

fn shortened(text: &str) -> String {
    let text = one_line(text);
    match text.chars().count() > SHOWN_CHARACTERS {
        true => text.chars().take(SHOWN_CHARACTERS).chain(['…']).collect(),
        false => text,
    }
}
