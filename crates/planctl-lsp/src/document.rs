//! A file that an editor has open: its unsaved text, and what is known about it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gen_lsp_types::{TextDocumentContentChangeEvent, Uri};
use planctl_lang::{PlanTree, Source, StepTree, Verification, parse};
use serde_json::Value;
use url::Url;

use super::text::{Encoding, Text};

/// An open file.
pub struct Document {
    /// Its address, exactly as the editor writes it.
    pub uri: Uri,
    /// Its path; for a text that was never saved one that it could have.
    pub path: PathBuf,
    /// The directory that its steps would work in.
    pub workspace: PathBuf,
    /// The editor's number of this text.
    pub version: i32,
    /// The text.
    pub text: Text,
    /// The findings of this very text.
    pub findings: Option<Verification>,
    /// Says that the editor shows findings of this file.
    pub is_marked: bool,
    /// Requests that wait for the findings.
    pub waiting: Vec<WaitingRequest>,
    /// Counts what may have changed the findings; those of an older count are stale.
    pub generation: u64,
    /// The generation that is being verified.
    pub checking: Option<u64>,
    reading: OnceCell<Rc<Reading>>,
}

/// A request that waits.
pub struct WaitingRequest {
    /// Its id.
    pub id: Value,
    /// The method of the request.
    pub method: String,
    /// About what.
    pub params: Value,
}

/// A text as the language reads it.
pub struct Reading {
    /// The text.
    pub source: Source,
    /// The plan in the file.
    pub tree: PlanTree,
}

impl Document {
    /// Takes a file that was opened.
    pub fn new(uri: Uri, path: PathBuf, workspace: PathBuf, version: i32, text: Text) -> Document {
        Document {
            uri,
            path,
            workspace,
            version,
            text,
            findings: None,
            is_marked: false,
            waiting: Vec::new(),
            generation: 0,
            checking: None,
            reading: OnceCell::new(),
        }
    }

    /// Applies what was typed, in the order it was typed.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>, encoding: Encoding) {
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    self.text.edit(part.range, &part.text)
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    self.text = Text::new(whole.text, encoding)
                }
            }
        }
        self.version = version;
        self.reading = OnceCell::new();
        self.invalidate();
    }

    /// Says that the findings may differ by now.
    pub fn invalidate(&mut self) {
        self.findings = None;
        self.generation += 1;
    }

    /// Reads the text, once per text.
    pub fn reading(&self) -> Rc<Reading> {
        let read = || {
            let source = Source::new(self.path.to_string_lossy(), self.text.as_str());
            let (tree, _) = parse(&source);
            Rc::new(Reading { source, tree })
        };
        self.reading.get_or_init(read).clone()
    }

    /// Says whether this markdown file is a plan: its frontmatter says so, or it says nothing and is called `….plan.md`
    /// or lies in a folder `plans`.
    pub fn is_plan(&self) -> bool {
        match frontmatter_type(self.text.as_str()) {
            Some(kind) => kind.eq_ignore_ascii_case("plan"),
            None => is_named_as_plan(&self.path),
        }
    }
}

impl Reading {
    /// Returns the step that holds an offset, with its place in the plan.
    pub fn step_at(&self, offset: usize) -> Option<(usize, &StepTree)> {
        let after = self.tree.steps.partition_point(|step| step.heading.start <= offset);
        let at = after.checked_sub(1)?;
        Some((at, &self.tree.steps[at]))
    }

    /// Returns where a step ends: where the next one begins.
    pub fn end_of(&self, at: usize) -> usize {
        let next = self.tree.steps.get(at + 1).map(|step| step.heading.start);
        let flow = self.tree.flow.as_ref().map(|flow| flow.span.start);
        let start = self.tree.steps.get(at).map_or(0, |step| step.heading.start);
        let end = next.or(flow.filter(|flow| *flow > start));
        end.unwrap_or(self.source.text().len())
    }
}

/// Returns the path of a file's address; other addresses have none.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    Url::parse(&uri.0).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
}

/// Returns the address of a file.
pub fn uri_of(path: &Path) -> Option<Uri> {
    Url::from_file_path(path).ok().map(|url| Uri(url.into()))
}

fn frontmatter_type(text: &str) -> Option<&str> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let kind = lines
        .take(50)
        .take_while(|line| line.trim_end() != "---")
        .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "type"));
    kind.map(|(_, value)| value.trim().trim_matches(['"', '\'']))
}

fn is_named_as_plan(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let is_in_plans = path.parent().is_some_and(|parent| parent.ends_with("plans"));
    name.ends_with(".plan.md") || (is_in_plans && name.ends_with(".md") && name != "readme.md")
}
