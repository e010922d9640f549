//! `tasks.json` of Task Master: tasks with ids, dependencies, test strategies and subtasks, of one tag or without tags.

use serde_json::{Map, Value};

use super::{Task, TaskList};

/// Says whether a text is such a file.
pub(super) fn is_one(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let tasks = tasks(&value);
    let has = |key: &str| tasks.iter().any(|task| task.contains_key(key));
    let are_tasks =
        !tasks.is_empty() && tasks.iter().all(|task| task.contains_key("id") && task.contains_key("title"));
    let is_plan = ["contract", "target", "role", "verify", "action", "on_fail"].into_iter().any(has);
    are_tasks && !is_plan && (has("testStrategy") || has("subtasks") || has("dependencies"))
}

// Those of the file itself, or of the tag `master`, or of its only tag.
fn tasks(value: &Value) -> Vec<&Map<String, Value>> {
    let of = |value: &'_ Value| value.get("tasks").is_some();
    let holder = if of(value) {
        Some(value)
    } else {
        let tags: Vec<&Value> =
            value.as_object().into_iter().flat_map(Map::values).filter(|tag| of(tag)).collect();
        value.get("master").filter(|tag| of(tag)).or(if tags.len() == 1 {
            tags.first().copied()
        } else {
            None
        })
    };
    let list = holder.and_then(|holder| holder.get("tasks")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_object).collect()
}

pub(super) fn read(text: &str) -> TaskList {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let mut list = TaskList { title: project(&value), ..TaskList::default() };
    let mut open: Vec<(String, &Map<String, Value>)> = Vec::new();
    for task in tasks(&value) {
        let id = said(task, "id");
        let shown = format!("{id} {}", said(task, "title"));
        match said(task, "status").as_str() {
            "done" | "completed" => list.done.push(shown),
            status @ ("cancelled" | "deferred") => list.left_out.push(format!("{shown} (it is {status})")),
            _ => open.push((id, task)),
        }
    }
    let open = in_order(open);
    let ids: Vec<&str> = open.iter().map(|(id, _)| id.as_str()).collect();
    for (id, task) in &open {
        let place = |needed: String| ids.iter().position(|id| *id == needed);
        let needs = dependencies(task).into_iter().filter_map(place).collect();
        let proof = Some(said(task, "testStrategy")).filter(|proof| !proof.trim().is_empty());
        let body = body(id, task, &mut list.done);
        list.tasks.push(Task { title: said(task, "title"), body, needs: Some(needs), proof });
    }
    list
}

// A task comes behind those that it depends on; those of a circle stay where they are.
fn in_order<'v>(mut open: Vec<(String, &'v Map<String, Value>)>) -> Vec<(String, &'v Map<String, Value>)> {
    let mut ordered: Vec<(String, &'v Map<String, Value>)> = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let waits = |task: &Map<String, Value>| {
            dependencies(task).iter().any(|needed| open.iter().any(|(id, _)| id == needed))
        };
        let next = open.iter().position(|(_, task)| !waits(task)).unwrap_or(0);
        ordered.push(open.remove(next));
    }
    ordered
}

// A dependency on a subtask, `2.1`, is one on its task.
fn dependencies(task: &Map<String, Value>) -> Vec<String> {
    let list = task.get("dependencies").and_then(Value::as_array);
    let of = |value: &Value| text(value).split('.').next().unwrap_or_default().to_owned();
    list.into_iter().flatten().map(of).collect()
}

fn body(id: &str, task: &Map<String, Value>, done: &mut Vec<String>) -> Vec<String> {
    let mut body = Vec::new();
    for key in ["description", "details"] {
        let said = said(task, key);
        body.extend(said.lines().map(str::to_owned));
    }
    if body.is_empty() {
        body.push(said(task, "title"));
    }
    let subtasks = task.get("subtasks").and_then(Value::as_array);
    for part in subtasks.into_iter().flatten().filter_map(Value::as_object) {
        let shown = format!("{id}.{} {}", said(part, "id"), said(part, "title"));
        if matches!(said(part, "status").as_str(), "done" | "completed") {
            done.push(shown);
        } else {
            let description = said(part, "description");
            let description = description.lines().next().unwrap_or_default();
            let more = if description.is_empty() { String::new() } else { format!(": {description}") };
            body.push(format!("- {shown}{more}"));
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
