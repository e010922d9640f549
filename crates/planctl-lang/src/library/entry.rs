//! The entries of a file: a plan in markdown with `domains` or `triggers`, or the plans of a library in JSON (H-01).

use serde_json::{Map, Value};

use crate::convert::{Converted, convert};
use crate::diagnostic::Diagnostic;
use crate::syntax::Language;
use crate::syntax::source::Source;
use crate::text::Spanned;
use crate::tree::entry;
use crate::tree::parse::parse;
use crate::tree::workflow::{Kind, Library, NodeTree, Workflow, of_plan};

use super::Entry;

/// Reads the entries of a file, and every complaint about its form; a plan without `domains` and `triggers` is not an entry.
pub fn entries(source: &Source) -> (Vec<Entry>, Vec<Diagnostic>) {
    match Language::of(source.path()) {
        None => {
            let (tree, found) = parse(source);
            let library = &tree.frontmatter.library;
            let is_entry = !library.domains.is_empty() || !library.triggers.is_empty();
            let title = tree.head.title.map(|title| title.value);
            let entry = of_library(stem(source.path()), title, tree.steps.len(), library);
            (is_entry.then_some(entry).into_iter().collect(), found)
        }
        Some(Language::Json) => {
            let (workflows, found) = entry::read(source);
            // A plan that was made of an entry is found by its file alone.
            let is_entry = |workflow: &&Workflow| {
                let library = &workflow.library;
                library.id.is_none() || !library.domains.is_empty() || !library.triggers.is_empty()
            };
            let meant = workflows.iter().filter(is_entry);
            (meant.map(|workflow| of_workflow(source, workflow)).collect(), found)
        }
        Some(Language::Dot) => (Vec::new(), Vec::new()),
    }
}

/// The place of a plan in the library.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanPlace {
    /// The entry whose runs its runs count as: the one that it was made of, else itself where it is one.
    pub entry: Option<String>,
    /// The plan that gets a run when one of this is done.
    pub next: Option<String>,
}

/// Returns the place of a plan in the library.
pub fn place_of(source: &Source) -> PlanPlace {
    let place = |library: &Library, own: Option<String>| PlanPlace {
        entry: library.id.as_ref().map(|id| id.value.clone()).or(own),
        next: library.then.as_ref().map(|then| then.value.clone()),
    };
    match Language::of(source.path()) {
        None => {
            let library = parse(source).0.frontmatter.library;
            let is_entry = !library.domains.is_empty() || !library.triggers.is_empty();
            place(&library, is_entry.then(|| stem(source.path())))
        }
        Some(Language::Json) => match entry::read(source).0.as_slice() {
            [one] => place(&one.library, Some(id_of(source, one))),
            _ => PlanPlace::default(),
        },
        Some(Language::Dot) => PlanPlace::default(),
    }
}

fn of_workflow(source: &Source, workflow: &Workflow) -> Entry {
    let is_step = |node: &&NodeTree| {
        !matches!(node.kind.value, Kind::Start | Kind::Exit | Kind::Fork | Kind::Join | Kind::Escalate)
    };
    let steps = workflow.nodes.iter().filter(is_step).count();
    let title = (!workflow.title().is_empty()).then(|| workflow.title().to_owned());
    of_library(id_of(source, workflow), title, steps, &workflow.library)
}

fn of_library(id: String, title: Option<String>, steps: usize, library: &Library) -> Entry {
    let texts = |list: &[Spanned<String>]| list.iter().map(|text| text.value.clone()).collect();
    Entry {
        title: title.unwrap_or_else(|| id.clone()),
        id,
        domains: texts(&library.domains),
        triggers: texts(&library.triggers),
        trigger_threshold: library.trigger_threshold.as_ref().map(|threshold| threshold.value),
        stale_after_turns: library.stale_after_turns.as_ref().map(|turns| turns.value),
        then: library.then.as_ref().map(|then| then.value.clone()),
        steps: u32::try_from(steps).unwrap_or(u32::MAX),
        success: None,
    }
}

fn id_of(source: &Source, workflow: &Workflow) -> String {
    workflow.name.as_ref().map_or_else(|| stem(source.path()), |name| name.value.clone())
}

// The name of a file without its folder and its ending.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem }).to_owned()
}

/// Returns an entry of a file as an object of JSON: with every key where the file is JSON, else as the graph that it is.
pub fn entry_json(source: &Source, id: &str) -> Option<Map<String, Value>> {
    if Language::of(source.path()) == Some(Language::Json)
        && let Some(written) = written_json(source, id)
    {
        return Some(written);
    }
    let written = convert(source, &workflow_of(source, id)?, Some(Language::Json)).text;
    let Ok(Value::Object(mut graph)) = serde_json::from_str(&written) else { return None };
    graph.remove("name");
    if let Some(title) = graph.remove("title") {
        graph.insert("name".to_owned(), title);
    }
    Some(graph)
}

/// Writes an entry as a plan in markdown, and says what of it a plan has no words for or would judge in another way.
pub fn entry_markdown(source: &Source, id: &str) -> Option<Converted> {
    match Language::of(source.path()) {
        None => {
            let (lost, changed) = <_>::default();
            Some(Converted { text: source.text().to_owned(), lost, changed, is_compared: true })
        }
        Some(_) => workflow_of(source, id).map(|workflow| convert(source, &workflow, None)),
    }
}

fn workflow_of(source: &Source, id: &str) -> Option<Workflow> {
    match Language::of(source.path()) {
        None => Some(of_plan(source, &parse(source).0).0),
        Some(Language::Json) => {
            entry::read(source).0.into_iter().find(|workflow| id_of(source, workflow) == id)
        }
        Some(Language::Dot) => None,
    }
}

// A file with comments is no JSON to other readers.
fn written_json(source: &Source, id: &str) -> Option<Map<String, Value>> {
    let text = &source.text()[source.bom_bytes()..];
    let Value::Object(mut file) = serde_json::from_str(text).ok()? else { return None };
    match file.remove("plans") {
        Some(Value::Object(mut plans)) => plans.remove(id)?.as_object().cloned(),
        Some(_) => None,
        None => Some(file),
    }
}
