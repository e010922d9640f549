//! `tasks.json` of Task Master: tasks with ids, dependencies, test strategies and subtasks, of one tag or without tags.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Task, TaskList};

/// The tag that is read where none is named.
const USUAL: &str = "master";

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
        let id = said(task, "id");
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
        list.tasks.push(Task { title: said(task, "title"), body, needs: Some(needs), proof: proof(task) });
    }
    list.tasks.extend(parts);
    list
}

fn is_done(task: &Map<String, Value>) -> bool {
    matches!(said(task, "status").as_str(), "done" | "completed")
}

impl TaskList {
    /// Says whether a task is open, and notes it as what it is otherwise.
    fn takes(&mut self, id: &str, task: &Map<String, Value>) -> bool {
        let shown = format!("{id} {}", said(task, "title"));
        match said(task, "status").as_str() {
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
    Some(said(task, "testStrategy")).filter(|proof| !proof.trim().is_empty())
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
    let own = format!("{id}.{}", said(part, "id"));
    list.takes(&own, part).then(|| {
        let mut body = body(&own, part, list);
        body.push(format!("- A part of: {}", said(task, "title")));
        Task { title: said(part, "title"), body, needs: Some(Vec::new()), proof: proof(part) }
    })
}

fn body(id: &str, task: &Map<String, Value>, list: &mut TaskList) -> Vec<String> {
    let mut body = Vec::new();
    for key in ["description", "details"] {
        let said = said(task, key);
        body.extend(said.lines().map(str::to_owned));
    }
    if body.is_empty() {
        body.push(said(task, "title"));
    }
    for part in subtasks(task) {
        let own = format!("{id}.{}", said(part, "id"));
        if list.takes(&own, part) {
            let description = said(part, "description");
            let description = description.lines().next().unwrap_or_default();
            let more = if description.is_empty() { String::new() } else { format!(": {description}") };
            body.push(format!("- {own} {}{more}", said(part, "title")));
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

fn said(task: &Map<String, Value>, key: &str) -> String {
    task.get(key).map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
