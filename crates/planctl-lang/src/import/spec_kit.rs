//! Task lists of spec-kit: `- [ ] T001 [P] [US1] Description with a path`, below phases.

use super::lists::{self, ListLine};
use super::{Task, TaskList};

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut phase: Option<String> = None;
    let mut goal: Option<String> = None;
    // The sentence about the test that shows the phase to work.
    let mut test: Option<String> = None;
    // The tasks of which each may run beside the others, and those before them.
    let (mut beside, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut follows_parallel = false;
    // Details belong to the task above them.
    let mut is_told = false;
    for line in lists::lines(text) {
        match line {
            ListLine::Heading { level: 1, text } => list.title = list.title.or_else(|| lists::title(text)),
            ListLine::Heading { level: 2, text } => {
                (phase, goal, follows_parallel) = (Some(text.to_owned()), None, false);
                (test, is_told) = (None, false);
            }
            ListLine::Heading { .. } => is_told = false,
            ListLine::Text(text) => {
                let said = text.trim().replace("**", "");
                if let Some(said) = said.strip_prefix("Goal:").or_else(|| said.strip_prefix("Purpose:")) {
                    goal = Some(said.trim().to_owned());
                } else if let Some(said) = said.strip_prefix("Independent Test:") {
                    test = Some(said.trim().to_owned());
                } else if is_told
                    && text.starts_with([' ', '\t'])
                    && !said.is_empty()
                    && let Some(task) = list.tasks.last_mut()
                {
                    task.body.push(said);
                }
            }
            ListLine::Box(found) => {
                let (id, rest) = lists::task_id(found.text).unwrap_or(("", found.text));
                let (tags, what) = tags(rest);
                let title = if id.is_empty() { what.to_owned() } else { format!("{id} {what}") };
                is_told = !found.is_done;
                if found.is_done {
                    list.done.push(title);
                    continue;
                }
                let is_parallel = tags.contains(&"P");
                if !(is_parallel && follows_parallel) {
                    before = std::mem::take(&mut beside);
                }
                follows_parallel = is_parallel;
                beside.push(list.tasks.len());
                let mut body = vec![format!("{what}.").replace("..", ".")];
                body.extend(phase.iter().map(|phase| format!("- {phase}")));
                body.extend(goal.iter().map(|goal| format!("- Its goal: {goal}")));
                body.extend(test.iter().map(|test| format!("- Its test: {test}")));
                let stories = tags.iter().filter(|tag| **tag != "P");
                body.extend(stories.map(|story| format!("- User story: {story}")));
                list.tasks.push(Task { title, body, needs: Some(before.clone()), proof: None });
            }
        }
    }
    list
}

// `[P] [US1] Description` → its tags, and the description.
fn tags(text: &str) -> (Vec<&str>, &str) {
    let mut tags = Vec::new();
    let mut rest = text.trim();
    while let Some((tag, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        tags.push(tag);
        rest = after.trim_start();
    }
    (tags, rest)
}
