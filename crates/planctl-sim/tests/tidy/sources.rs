//! Reads the workspace's sources, each with its code, comments and texts apart.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One source file.
pub struct Source {
    /// Its path from the top of the workspace, with slashes.
    pub path: String,
    /// All of it.
    pub text: String,
    /// The code: comments blanked, texts emptied, lines kept.
    pub code: String,
    /// The code that is shipped: without what follows `#[cfg(test)]` modules, empty in test files.
    pub shipped: String,
    /// Comments, each with its line number.
    pub comments: Vec<(usize, String)>,
    /// Texts in quotes, each with its line number; those of tests are left out.
    pub literals: Vec<(usize, String)>,
}

/// Returns the top of the workspace.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// Returns all Rust sources of the workspace, in order.
pub fn all() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(read)
}

/// Returns the other texts that people of the project write, in order: pages, migrations, templates, settings, scripts.
pub fn texts() -> Vec<(String, String)> {
    const KINDS: [&str; 9] = ["css", "html", "js", "json", "md", "mjs", "sh", "sql", "toml"];
    const FOLDERS: [&str; 6] = ["crates", "docs", "examples", "migrations", "packaging", "plans"];
    let top = top();
    let mut paths = vec![top.join("Cargo.toml"), top.join("README.md"), top.join("justfile")];
    FOLDERS.iter().for_each(|folder| gather(&top.join(folder), &KINDS, &mut paths));
    paths.sort();
    // Texts that tests bring as they were found may have any words.
    let own = paths.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "fixtures"));
    own.map(|path| {
        let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let relative = path.strip_prefix(&top).expect("it lies in the workspace");
        (relative.display().to_string(), String::from_utf8_lossy(&text).into_owned())
    })
    .collect()
}

fn read() -> Vec<Source> {
    let top = top();
    let mut paths = Vec::new();
    gather(&top.join("crates"), &["rs"], &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let relative = path.strip_prefix(&top).expect("it lies in the workspace");
        Source::new(relative.to_str().expect("our paths are text").to_owned(), text)
    };
    paths.iter().map(read).collect()
}

fn gather(folder: &Path, kinds: &[&str], into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder lists its entries").path();
        let is_made = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
        let kind = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() && !is_made {
            gather(&path, kinds, into);
        } else if kind.is_some_and(|kind| kinds.contains(&kind)) {
            into.push(path);
        }
    }
}

impl Source {
    /// Takes a file apart.
    pub fn new(path: String, text: String) -> Source {
        let (code, comments, mut literals) = take_apart(&text);
        let shipped = if is_test_file(&path) { String::new() } else { without_tests(&code) };
        let shipped_lines = shipped.lines().count();
        literals.retain(|(line, _)| *line <= shipped_lines);
        Source { path, text, code, shipped, comments, literals }
    }
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/")
        || path.contains("/benches/")
        || path.ends_with("/tests.rs")
        || path.ends_with("/testing.rs")
        || path.contains("/testing/")
}

/// Cuts the code at its first module for tests, which stands last by habit of the house.
fn without_tests(code: &str) -> String {
    let lines: Vec<&str> = code.lines().collect();
    let is_module = |from: usize| {
        let mut after = lines[from..].iter().map(|line| line.trim_start());
        let item = after.find(|line| !line.starts_with("#["));
        item.is_some_and(|item| item.starts_with("mod ") && item.contains('{'))
    };
    let module = (0..lines.len()).find(|at| lines[*at].trim() == "#[cfg(test)]" && is_module(at + 1));
    lines[..module.unwrap_or(lines.len())].join("\n")
}

type Pieces = Vec<(usize, String)>;

/// Takes Rust text apart into code, comments and quoted texts; lines stay where they are in the code.
fn take_apart(text: &str) -> (String, Pieces, Pieces) {
    let mut scanner = Scanner { rest: text.chars().collect(), at: 0, line: 1, code: String::new() };
    let (mut comments, mut literals) = (Vec::new(), Vec::new());
    while let Some(next) = scanner.peek(0) {
        let line = scanner.line;
        match (next, scanner.peek(1)) {
            ('/', Some('/')) => comments.push((line, scanner.until(|text| text.ends_with('\n')))),
            ('/', Some('*')) => {
                comments.push((line, scanner.until(|text| text.len() > 3 && text.ends_with("*/"))))
            }
            ('r' | 'b', _) if !scanner.is_in_word() && scanner.raw_hashes().is_some() => {
                let hashes = scanner.raw_hashes().unwrap_or(0);
                let end = format!("\"{}", "#".repeat(hashes));
                let opening = scanner.take_opening();
                scanner.code.push('"');
                literals.push((line, scanner.until(|text| text.ends_with(&end))));
                scanner.code.push('"');
                debug_assert!(opening.ends_with('"'), "a raw text opens with a quote");
            }
            ('"', _) => {
                scanner.step();
                scanner.code.push('"');
                literals.push((line, scanner.quoted()));
                scanner.code.push('"');
            }
            ('\'', Some('\\')) => {
                scanner.step();
                scanner.step();
                scanner.step();
                scanner.until(|text| text.ends_with('\''));
            }
            ('\'', Some(_)) if scanner.peek(2) == Some('\'') => {
                for _ in 0..3 {
                    scanner.step();
                }
            }
            (other, _) => {
                scanner.step();
                scanner.code.push(other);
            }
        }
    }
    (scanner.code, comments, literals)
}

struct Scanner {
    rest: Vec<char>,
    at: usize,
    line: usize,
    code: String,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    /// Goes on by one character; a line end stays in the code unless the caller writes it.
    fn step(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn is_in_word(&self) -> bool {
        self.at > 0 && (self.rest[self.at - 1].is_alphanumeric() || self.rest[self.at - 1] == '_')
    }

    /// Returns how many hashes a raw text that begins here has.
    fn raw_hashes(&self) -> Option<usize> {
        let mut ahead = usize::from(self.peek(0) == Some('b'));
        if self.peek(ahead) != Some('r') {
            return None;
        }
        ahead += 1;
        let hashes = (0..).take_while(|more| self.peek(ahead + more) == Some('#')).count();
        (self.peek(ahead + hashes) == Some('"')).then_some(hashes)
    }

    fn take_opening(&mut self) -> String {
        let mut opening = String::new();
        while let Some(next) = self.step() {
            opening.push(next);
            if next == '"' {
                break;
            }
        }
        opening
    }

    /// Takes characters until what was taken says it is enough; keeps only the line ends in the code.
    fn until(&mut self, is_enough: impl Fn(&str) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.step() {
            taken.push(next);
            if next == '\n' {
                self.code.push('\n');
            }
            if is_enough(&taken) {
                break;
            }
        }
        taken
    }

    fn quoted(&mut self) -> String {
        let mut taken = String::new();
        while let Some(next) = self.step() {
            match next {
                '"' => break,
                '\\' => {
                    let escaped = self.step();
                    if escaped == Some('\n') {
                        self.code.push('\n');
                    }
                    taken.push(' ');
                }
                '\n' => {
                    self.code.push('\n');
                    taken.push(' ');
                }
                other => taken.push(other),
            }
        }
        taken
    }
}

#[test]
fn sources_are_taken_apart() {
    let text = "//! Says.\nlet a = \"x // y\"; // why\nlet b = r#\"c\"d\"#; let q = '\"'; let l: &'a str;\n\
                #[cfg(test)]\nmod tests {\n    let z = \"t\";\n}\n";
    let source = Source::new("crates/a/src/lib.rs".to_owned(), text.to_owned());
    let words: Vec<&str> = source.literals.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(words, ["x // y", "c\"d\"#"]);
    assert_eq!(source.comments.len(), 2, "{:?}", source.comments);
    assert_eq!(source.comments[1], (2, "// why\n".to_owned()));
    assert!(source.code.contains("let l: &'a str"), "{}", source.code);
    assert_eq!(source.shipped.lines().count(), 3);
    assert_eq!(source.code.lines().count(), text.lines().count());
}
