//! Check lists: each box that stands in no other is a step.

use super::lists::{self, ListLine};
use super::{Task, TaskList};

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut section: Option<&str> = None;
    // The indent of the box that is a step, and whether it is open.
    let mut own: Option<(usize, bool)> = None;
    for line in lists::lines(text) {
        match line {
            ListLine::Heading { level, text } => {
                if level == 1 && list.title.is_none() {
                    list.title = lists::title(text);
                } else {
                    section = Some(text);
                }
                own = None;
            }
            ListLine::Box(found) => match own.filter(|(indent, _)| found.indent > *indent) {
                Some((_, is_open)) if found.is_done || !is_open => list.done.push(found.text.to_owned()),
                Some(_) => push(&mut list, format!("- {}", found.text)),
                None if found.is_done => {
                    list.done.push(found.text.to_owned());
                    own = Some((found.indent, false));
                }
                None => {
                    let mut body = vec![format!("{}.", found.text.trim_end_matches('.'))];
                    body.extend(section.map(|section| format!("- In the list under: {section}")));
                    list.tasks.push(Task { title: found.text.to_owned(), body, ..Task::default() });
                    own = Some((found.indent, true));
                }
            },
            ListLine::Text(text) => {
                if own.is_some_and(|(_, is_open)| is_open) && text.starts_with([' ', '\t']) {
                    push(&mut list, text.trim().to_owned());
                }
            }
        }
    }
    list
}

fn push(list: &mut TaskList, line: String) {
    if let Some(task) = list.tasks.last_mut().filter(|_| !line.is_empty()) {
        task.body.push(line);
    }
}
