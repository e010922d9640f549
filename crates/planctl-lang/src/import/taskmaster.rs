//! `tasks.json` of Task Master: tasks with ids, dependencies, test strategies and subtasks, of one tag or without tags.

use std::collections::{HashMap, HashSet};

use jsonc_parser::ast;
use serde_json::{Map, Value};

use super::{Task, TaskList};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned, escape};
use crate::tree::entry::json;
use crate::tree::workflow::find_cycle;

/// The tag that is read where none is named.
const USUAL: &str = "master";
/// The most tasks of a circle that are shown.
const SHOWN_MAX: usize = 12;

/// An open task, with the tasks that it depends on.
struct Open<'v> {
    id: String,
    task: &'v Map<String, Value>,
    needs: Vec<String>,
}

/// Says whether a text is such a file.
pub(super) fn is_one(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let tasks: Vec<_> = holders(&value).into_iter().flat_map(|(_, holder)| tasks(holder)).collect();
    let has = |key: &str| tasks.iter().any(|task| task.contains_key(key));
    let are_tasks =
        !tasks.is_empty() && tasks.iter().all(|task| task.contains_key("id") && task.contains_key("title"));
    let is_plan = ["contract", "target", "role", "verify", "action", "on_fail"].into_iter().any(has);
    are_tasks && !is_plan && (has("testStrategy") || has("subtasks") || has("dependencies"))
}

/// Returns the tags of a file, the one that is read where none is named first; nothing where it has none, or is another file.
pub(super) fn tags(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let mut tags: Vec<String> =
        holders(&value).into_iter().filter_map(|(tag, _)| tag).map(str::to_owned).collect();
    tags.sort_by_key(|tag| tag != USUAL);
    tags
}

// The file itself, or each of its tags.
fn holders(value: &Value) -> Vec<(Option<&str>, &Value)> {
    let has_tasks = |value: &Value| value.get("tasks").is_some();
    if has_tasks(value) {
        return vec![(None, value)];
    }
    let tags = value.as_object().into_iter().flatten().filter(|(_, tag)| has_tasks(tag));
    tags.map(|(name, tag)| (Some(name.as_str()), tag)).collect()
}

fn tasks(holder: &Value) -> Vec<&Map<String, Value>> {
    let list = holder.get("tasks").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_object).collect()
}

/// Reads the tasks of a tag; of the usual one, or the first, where none is named.
pub(super) fn read(text: &str, tag: Option<&str>) -> TaskList {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let holders = holders(&value);
    let of = |name: Option<&str>| holders.iter().find(|(tag, _)| *tag == name);
    let holder = match tag {
        Some(_) => of(tag),
        None => of(Some(USUAL)).or(holders.first()),
    };
    let tasks = holder.map(|(_, holder)| tasks(holder)).unwrap_or_default();
    let mut list = TaskList { title: project(&value), ..TaskList::default() };
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut parts: Vec<Task> = Vec::new();
    for task in tasks {
        let id = text_of_key(task, "id");
        if list.takes(&id, task) {
            open.push(Open { id, task, needs: dependencies(task) });
        } else if is_done(task) {
            parts.extend(subtasks(task).filter_map(|part| of_done(&id, task, part, &mut list)));
        }
    }
    let open = in_order(open);
    let places: HashMap<&str, usize> =
        open.iter().enumerate().rev().map(|(at, one)| (one.id.as_str(), at)).collect();
    for (at, Open { id, task, needs }) in open.iter().enumerate() {
        let needs = needs.iter().filter_map(|needed| places.get(needed.as_str()).copied());
        let needs = needs.filter(|place| *place != at).collect();
        let body = body(id, task, &mut list);
        list.tasks.push(Task {
            title: text_of_key(task, "title"),
            body,
            needs: Some(needs),
            proof: proof(task),
        });
    }
    list.tasks.extend(parts);
    list
}

/// Finds the dependencies of open tasks that no order can keep: a circle, and tasks that the list does not have.
pub(super) fn lint(source: &Source, tag: Option<&str>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let Some(ast::Value::Object(root)) = json::parse(source, source.text(), &mut Vec::new()) else {
        return found;
    };
    let holder = match (root.get_array("tasks"), tag) {
        (None, Some(tag)) => root.get_object(tag),
        (None, None) => root.get_object(USUAL),
        (Some(_), _) => Some(&root),
    };
    let tasks = holder.and_then(|holder| holder.get_array("tasks"));
    let tasks = tasks.into_iter().flat_map(|tasks| &tasks.elements).filter_map(ast::Value::as_object);
    let text = |task: &ast::Object<'_>, key: &str| {
        task.get(key).and_then(|said| json::scalar(&said.value)).unwrap_or_default()
    };
    let (all, open): (Vec<_>, Vec<_>) =
        tasks.map(|task| (text(task, "id"), text(task, "status"), task)).partition(|(_, status, _)| {
            matches!(status.as_str(), "done" | "completed" | "cancelled" | "deferred")
        });
    let known: HashSet<&str> = all.iter().chain(&open).map(|(id, ..)| id.as_str()).collect();
    let places: HashMap<&str, usize> =
        open.iter().enumerate().rev().map(|(at, (id, ..))| (id.as_str(), at)).collect();
    let mut waits: Vec<Vec<usize>> = Vec::with_capacity(open.len());
    let mut spans: Vec<Vec<Span>> = Vec::with_capacity(open.len());
    for (at, (id, _, task)) in open.iter().enumerate() {
        let (mut others, mut own) = (Vec::new(), Vec::new());
        for needed in needed(task) {
            let whole = needed.value.split('.').next().unwrap_or_default();
            match places.get(whole) {
                // A part of the task itself is a line of it.
                Some(place) if *place == at && whole != needed.value => {}
                Some(place) => {
                    others.push(*place);
                    own.push(needed.span);
                }
                None if known.contains(whole) => {}
                None => {
                    let (id, needed_id) = (escape(id), escape(&needed.value));
                    let message = format!("task {id} depends on {needed_id}, which the list does not have");
                    let missing = Diagnostic::new(Code::P304, message).at(needed.span, "");
                    found.push(
                        missing.level(Severity::Warning).help("the step waits for nothing in its place"),
                    );
                }
            }
        }
        waits.push(others);
        spans.push(own);
    }
    let name = |at: usize| escape(&open[at].0);
    found.extend(find_cycle(&waits).map(|ring| circle(&ring, &waits, &spans, name)));
    found
}

/// Tells of tasks that wait for one another, each before the one that it waits for.
fn circle(
    ring: &[usize],
    waits: &[Vec<usize>],
    spans: &[Vec<Span>],
    name: impl Fn(usize) -> String,
) -> Diagnostic {
    let mut names: Vec<String> = ring.iter().take(SHOWN_MAX).map(|at| name(*at)).collect();
    names.extend((ring.len() > SHOWN_MAX).then(|| "…".to_owned()));
    names.push(name(ring[0]));
    let message = format!("tasks depend on each other in a circle: {}", names.join(" → "));
    let mut circle = Diagnostic::new(Code::P204, message);
    for (place, at) in ring.iter().enumerate().take(SHOWN_MAX) {
        let next = ring[(place + 1) % ring.len()];
        let span = waits[*at].iter().zip(&spans[*at]).find(|(other, _)| **other == next);
        let label = format!("task {} depends on {}", name(*at), name(next));
        circle = circle.at(span.map_or(Span::at(0), |(_, span)| *span), label);
    }
    circle.help("none of these tasks could begin: delete one of the dependencies, then import the list again")
}

fn needed(task: &ast::Object<'_>) -> Vec<Spanned<String>> {
    let list = task.get_array("dependencies").into_iter().flat_map(|list| &list.elements);
    list.filter_map(|value| Some(Spanned::new(json::scalar(value)?, json::span_of(value)))).collect()
}

fn is_done(task: &Map<String, Value>) -> bool {
    matches!(text_of_key(task, "status").as_str(), "done" | "completed")
}

impl TaskList {
    /// Says whether a task is open, and notes it as what it is otherwise.
    fn takes(&mut self, id: &str, task: &Map<String, Value>) -> bool {
        let shown = format!("{id} {}", text_of_key(task, "title"));
        match text_of_key(task, "status").as_str() {
            _ if is_done(task) => self.done.push(shown),
            status @ ("cancelled" | "deferred") => self.left_out.push(format!("{shown} (it is {status})")),
            _ => return true,
        }
        false
    }
}

// A task comes behind those that it depends on; those of a circle stay where they are.
fn in_order(mut open: Vec<Open<'_>>) -> Vec<Open<'_>> {
    let mut ordered = Vec::with_capacity(open.len());
    let mut ids: HashSet<String> = open.iter().map(|one| one.id.clone()).collect();
    while !open.is_empty() {
        let waits = |one: &Open<'_>| one.needs.iter().any(|needed| ids.contains(needed));
        let next = open.iter().position(|one| !waits(one)).unwrap_or(0);
        let next = open.remove(next);
        ids.remove(&next.id);
        ordered.push(next);
    }
    ordered
}

// A dependency on a subtask, `2.1`, is one on its task.
fn dependencies(task: &Map<String, Value>) -> Vec<String> {
    let list = task.get("dependencies").and_then(Value::as_array);
    let of = |value: &Value| text(value).split('.').next().unwrap_or_default().to_owned();
    list.into_iter().flatten().map(of).collect()
}

fn proof(task: &Map<String, Value>) -> Option<String> {
    Some(text_of_key(task, "testStrategy")).filter(|proof| !proof.trim().is_empty())
}

fn subtasks(task: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    task.get("subtasks").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

// An open part of a task that is done is a step of its own.
fn of_done(
    id: &str,
    task: &Map<String, Value>,
    part: &Map<String, Value>,
    list: &mut TaskList,
) -> Option<Task> {
    let own = format!("{id}.{}", text_of_key(part, "id"));
    list.takes(&own, part).then(|| {
        let mut body = body(&own, part, list);
        body.push(format!("- A part of: {}", text_of_key(task, "title")));
        Task { title: text_of_key(part, "title"), body, needs: Some(Vec::new()), proof: proof(part) }
    })
}

fn body(id: &str, task: &Map<String, Value>, list: &mut TaskList) -> Vec<String> {
    let mut body = Vec::new();
    for key in ["description", "details"] {
        let said = text_of_key(task, key);
        body.extend(said.lines().map(str::to_owned));
    }
    if body.is_empty() {
        body.push(text_of_key(task, "title"));
    }
    for part in subtasks(task) {
        let own = format!("{id}.{}", text_of_key(part, "id"));
        if list.takes(&own, part) {
            let description = text_of_key(part, "description");
            let description = description.lines().next().unwrap_or_default();
            let more = if description.is_empty() { String::new() } else { format!(": {description}") };
            body.push(format!("- {own} {}{more}", text_of_key(part, "title")));
        }
    }
    body
}

fn project(value: &Value) -> Option<String> {
    let name = ["meta", "metadata"].iter().find_map(|key| {
        let meta = value.get(*key)?;
        meta.get("projectName").or_else(|| meta.get("project"))?.as_str()
    });
    name.map(str::to_owned)
}

fn text_of_key(task: &Map<String, Value>, key: &str) -> String {
    task.get(key).map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
