//! Task lists of OpenSpec's changes: `## 1. Section` with `- [ ] 1.1 Item`. A section is a step.

use super::lists::{self, ListLine};
use super::{Task, TaskList};

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut section: Option<&str> = None;
    let mut is_begun = false;
    // Details belong to the item above them.
    let mut is_told = false;
    for line in lists::lines(text) {
        match line {
            ListLine::Heading { level: 1, text } => list.title = list.title.or_else(|| lists::title(text)),
            ListLine::Heading { text, .. } => {
                section = Some(lists::numbered(text).unwrap_or(text));
                (is_begun, is_told) = (false, false);
            }
            ListLine::Box(found) if found.is_done => {
                list.done.push(found.text.to_owned());
                is_told = false;
            }
            ListLine::Box(found) => {
                match list.tasks.last_mut().filter(|_| is_begun) {
                    Some(task) => task.body.push(format!("- {}", found.text)),
                    None => list.tasks.push(Task {
                        title: section.unwrap_or(found.text).to_owned(),
                        body: vec![format!("- {}", found.text)],
                        ..Task::default()
                    }),
                }
                (is_begun, is_told) = (section.is_some(), true);
            }
            ListLine::Text(text) => {
                if let Some(task) = list.tasks.last_mut().filter(|_| is_told && !text.trim().is_empty()) {
                    task.body.push(text.to_owned());
                }
            }
        }
    }
    list
}
