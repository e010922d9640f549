//! The forms that a file can have while it says the same: other line ends, tabs, wide and combining characters, a mark.

use std::ops::Range;

const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';
/// Two columns and three bytes each, then a letter with an accent of its own: one column, three bytes.
const WIDE: &str = "漢字e\u{301}";

pub struct Form {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// Where the marked part is now.
    pub marked: Range<usize>,
    /// How paths are written in this form.
    pub path: fn(&str) -> String,
}

type Change = fn(&str) -> String;

const FORMS: &[(&str, &[Change], Change)] = &[
    ("crlf", &[crlf], str::to_owned),
    ("tabs", &[tabs], str::to_owned),
    ("wide", &[wide], wide_path),
    ("bom", &[bom], str::to_owned),
    ("everything", &[wide, tabs, crlf, bom], wide_path),
];

/// Returns a text in every form; `marks` is a part of it with `⟦` and `⟧` in it.
pub fn all(bytes: &[u8], marks: &[u8]) -> Vec<Form> {
    let (before, marked, after) = taken_apart(marks);
    let part = [&before[..], &marked, &after].concat();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&part)).collect();
    assert_eq!(places.len(), 1, "what is marked stands there once: {}", String::from_utf8_lossy(marks));
    let start = places[0] + before.len();
    let plain = Form {
        name: "plain",
        bytes: bytes.to_vec(),
        marked: start..start + marked.len(),
        path: str::to_owned,
    };
    let mut forms = vec![plain];
    // A file that is no text has one form only.
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (head, rest) = text.split_at(start);
        let (inner, tail) = rest.split_at(marked.len());
        let text = format!("{head}{OPEN}{inner}{CLOSE}{tail}");
        forms.extend(FORMS.iter().map(|(name, changes, path)| {
            let changed = changes.iter().fold(text.clone(), |text, change| change(&text));
            formed(name, &changed, *path)
        }));
    }
    forms
}

fn formed(name: &'static str, changed: &str, path: Change) -> Form {
    let start = changed.find(OPEN).unwrap();
    let end = changed.find(CLOSE).unwrap() - OPEN.len_utf8();
    let text = changed.replace([OPEN, CLOSE], "");
    Form { name, bytes: text.into_bytes(), marked: start..end, path }
}

fn taken_apart(marks: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let find = |part: &str| marks.windows(part.len()).position(|window| window == part.as_bytes()).unwrap();
    let (open, close) = (find("⟦"), find("⟧"));
    let width = "⟦".len();
    (marks[..open].to_vec(), marks[open + width..close].to_vec(), marks[close + width..].to_vec())
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

fn bom(text: &str) -> String {
    format!("\u{feff}{text}")
}

// After the names of fields, after bullets, before and between the commands of contracts.
fn tabs(text: &str) -> String {
    let mut is_code = false;
    let lines = text.split_inclusive('\n').map(|line| {
        if line.contains("```") {
            is_code = !is_code;
            return line.to_owned();
        }
        match line {
            code if is_code => format!("\t{}", code.replace("&& ", "&&\t").replace("|| ", "||\t")),
            text if text.starts_with("**") => text.replacen(":** ", ":**\t", 1),
            text if text.starts_with("- ") => text.replacen("- ", "-\t", 1),
            text => text.to_owned(),
        }
    });
    lines.collect()
}

// In titles, before prose, in paths and in the words that contracts look for.
fn wide(text: &str) -> String {
    let mut is_task = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let begins_prose = std::mem::replace(&mut is_task, line.starts_with("**task:**"));
        let marks = line.len() - line.trim_start_matches(OPEN).len();
        let title = match &line[marks..] {
            heading if heading.starts_with('#') && !matches!(heading.trim_end(), "## Steps" | "## Flow") => {
                [". ", ": ", "# "].iter().find_map(|end| Some(line.find(end)? + end.len()))
            }
            _ => None,
        };
        let at = title.or(begins_prose.then_some(0));
        at.map_or(line.to_owned(), |at| format!("{}{WIDE} {}", &line[..at], &line[at..]))
    });
    wide_path(&lines.collect::<String>()).replace("'^## ", &format!("'^## {WIDE}"))
}

fn wide_path(path: &str) -> String {
    ["docs/", "src/"]
        .iter()
        .fold(path.to_owned(), |path, folder| path.replace(folder, &format!("{folder}{WIDE}-")))
}
