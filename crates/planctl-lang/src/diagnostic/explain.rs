//! The meaning of each code, with an example that is wrong and one that is right: the texts of `explain/`, one file per
//! code.

use crate::diagnostic::Code;

/// The head of examples that begin with a step.
const HEAD: &str = "---
type: plan
status: draft
owner: ada
---

# Fix the login timeout

**Budget:** max 200k tokens, 20 minutes

## Steps

";

/// The explanation of a code, for someone who meets it the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The meaning, the reason and the remedy: paragraphs of markdown.
    pub text: &'static str,
    /// A plan with this finding; none where no text can show it.
    pub bad: Option<Example>,
    /// The same plan without it.
    pub good: Option<Example>,
    /// Text and examples together, as one piece of markdown.
    pub markdown: &'static str,
    /// The settings of the tests: the surroundings, and the place that the finding marks; TOML.
    pub tested: &'static str,
}

/// A plan, or the steps of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Example {
    /// The facts about the place of the plan; may be empty.
    pub about: &'static str,
    /// The language it is written in: `markdown`, `dot` or `json`.
    pub language: &'static str,
    /// The text as people are shown it: `\u{…}` and `\x…` stand for characters and bytes that can't be shown.
    pub shown: &'static str,
}

impl Code {
    /// Says what the code's family is about: the digit after the `P` is the family's (INTERFACE 2.5).
    pub fn family(self) -> &'static str {
        match self.as_str().as_bytes().get(1) {
            Some(b'0') => "form of the plan",
            Some(b'1') => "contracts",
            Some(b'2') => "files and order",
            Some(b'3') => "graph",
            Some(b'4') => "roles",
            Some(b'5') => "budget",
            Some(b'6') => "safety",
            Some(_) | None => "others",
        }
    }

    /// Explains the code.
    pub fn explain(self) -> Explanation {
        let (markdown, tested) = split_section(self.explanation(), "Tested");
        let (with_bad, good) = split_section(markdown, "Good");
        let (text, bad) = split_section(with_bad, "Bad");
        let tested = tested.trim().trim_start_matches("```toml").trim_end_matches("```").trim();
        Explanation { text, bad: example(bad), good: example(good), markdown, tested }
    }
}

fn split_section(text: &'static str, heading: &str) -> (&'static str, &'static str) {
    let line = format!("\n## {heading}\n");
    let (before, after) = text.split_once(line.as_str()).unwrap_or((text, ""));
    (before.trim(), after.trim())
}

fn example(section: &'static str) -> Option<Example> {
    let (about, fenced) = section.split_once("````")?;
    let (language, text) = fenced.split_once('\n')?;
    Some(Example { about: about.trim(), language, shown: text.strip_suffix("````")? })
}

impl Example {
    /// Says whether it is a whole plan, and not steps to stand below a common head.
    pub fn is_whole(&self) -> bool {
        self.language != "markdown" || self.shown.starts_with("---") || self.shown.starts_with("# ")
    }

    /// Returns the name of the file that it would be in.
    pub fn file(&self) -> &'static str {
        match self.language {
            "dot" => "plan.dot",
            "json" => "plan.json",
            _ => "plan.md",
        }
    }

    /// Returns the plan as people are shown it, under the common head where it is not whole.
    pub fn plan(&self) -> String {
        if self.is_whole() { self.shown.to_owned() } else { format!("{HEAD}{}", self.shown) }
    }

    /// Returns the plan's bytes as they would stand in a file.
    pub fn bytes(&self) -> Vec<u8> {
        unescape(&self.plan())
    }
}

/// Returns the bytes of a text where `\u{…}` stands for a character and `\x…` for a byte.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        match escaped(rest) {
            Some((length, of)) => {
                bytes.extend(of);
                rest = &rest[length..];
            }
            None => {
                bytes.push(b'\\');
                rest = &rest[1..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

// Returns how long the escape is that a text begins with, and the bytes it stands for.
fn escaped(text: &str) -> Option<(usize, Vec<u8>)> {
    if let Some(rest) = text.strip_prefix("\\u{") {
        let digits = &rest[..rest.find('}')?];
        let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        return Some((digits.len() + 4, character.to_string().into_bytes()));
    }
    let digits = text.strip_prefix("\\x")?.get(..2)?;
    Some((4, vec![u8::from_str_radix(digits, 16).ok()?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_characters_and_bytes_and_all_else_for_itself() {
        assert_eq!(unescape("a\\u{e9}b\\xffc"), b"a\xc3\xa9b\xffc");
        for plain in ["", "\\", "\\u{", "\\u{110000}", "\\u{zz}", "\\x", "\\xf", "\\xé", "\\n\\|", "é"] {
            assert_eq!(unescape(plain), plain.as_bytes(), "{plain}");
        }
    }

    #[test]
    fn every_file_of_the_folder_belongs_to_a_code_and_has_its_parts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/explain");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("the folder of explanations is there")
            .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let codes: Vec<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
        assert_eq!(files, codes);
        for code in Code::ALL {
            let explained = code.explain();
            assert!(explained.text.len() > 100, "{code}: {}", explained.text);
            assert_eq!(explained.bad.is_some(), explained.good.is_some(), "{code}");
            assert!(!explained.markdown.contains("\n## Tested"), "{code}");
            let columns = explained.markdown.lines().map(|line| line.chars().count()).max();
            assert!(columns <= Some(115), "{code} has a line of {columns:?} characters");
        }
    }
}
