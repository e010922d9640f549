//! Task lists of Kiro's specs: `- [ ] 1. Task`, `- [ ] 1.1 Part`, details and `_Requirements: 1.1_` below. A task without parts is
//! a step, and so is each part.

use super::lists::{self, CheckBox, ListLine};
use super::{Task, TaskList};

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let lines = lists::lines(text);
    let mut around: Option<&str> = None;
    let mut is_open = false;
    for (at, line) in lines.iter().enumerate() {
        match line {
            ListLine::Heading { level: 1, text } => {
                list.title = list.title.or_else(|| lists::title(text));
                is_open = false;
            }
            ListLine::Heading { .. } => is_open = false,
            ListLine::Box(found) => {
                let is_part = lists::dotted(found.text).is_some();
                is_open = false;
                if !is_part {
                    around = None;
                }
                if !is_part && has_parts(&lines[at + 1..]) {
                    around = Some(found.text);
                } else if found.is_done {
                    list.done.push(found.text.to_owned());
                } else {
                    list.tasks.push(task(found, around));
                    is_open = true;
                }
            }
            ListLine::Text(text) => {
                let said = text.trim();
                if let Some(task) = list.tasks.last_mut().filter(|_| is_open && !said.is_empty()) {
                    let said = said.trim_start_matches(['-', '*', '+', ' ']).replace("**", "");
                    task.body.push(format!("- {}", said.trim_matches('_')));
                }
            }
        }
    }
    list
}

fn task(found: &CheckBox<'_>, around: Option<&str>) -> Task {
    let title = lists::numbered(found.text).unwrap_or(found.text).to_owned();
    let mut body = vec![format!("{title}.").replace("..", ".")];
    body.extend(around.map(|around| format!("- A part of: {around}")));
    if found.is_optional {
        body.push("- The spec marks it as optional.".to_owned());
    }
    Task { title, body, ..Task::default() }
}

// The next check box is a part.
fn has_parts(rest: &[ListLine<'_>]) -> bool {
    let next =
        rest.iter().find_map(|line| if let ListLine::Box(found) = line { Some(found.text) } else { None });
    next.is_some_and(|text| lists::dotted(text).is_some())
}
