//! Plans of ralphex: `### Task 1: Title` with check boxes; `## Validation Commands` judge every task.

use super::lists::{self, Line};
use super::{Task, TaskList};

enum Place {
    Head,
    Overview,
    Commands,
    Task(Section),
    Elsewhere,
}

struct Section {
    task: Task,
    boxes: usize,
    open: usize,
}

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut place = Place::Head;
    for line in lists::lines(text) {
        match line {
            Line::Heading { level, text } => {
                let next = place_of(level, text);
                if matches!(place, Place::Head) && level == 1 {
                    list.title = lists::title(text);
                }
                close(std::mem::replace(&mut place, next), &mut list);
            }
            Line::Box(found) => match &mut place {
                Place::Task(section) => {
                    section.boxes += 1;
                    if found.is_done {
                        list.done.push(found.text.to_owned());
                    } else {
                        section.open += 1;
                        section.task.body.push(format!("- {}", found.text));
                    }
                }
                Place::Head | Place::Overview | Place::Commands | Place::Elsewhere if found.is_done => {
                    list.done.push(found.text.to_owned());
                }
                Place::Head | Place::Overview | Place::Commands | Place::Elsewhere => {
                    list.left_out.push(format!("{} (it stands in no task)", found.text));
                }
            },
            Line::Text(text) => match &mut place {
                Place::Commands => list.commands.extend(command(text)),
                Place::Task(section) if !text.trim().is_empty() => section.task.body.push(text.to_owned()),
                Place::Overview if list.about.is_none() && !text.trim().is_empty() => {
                    list.about = Some(text.trim().to_owned());
                }
                Place::Head | Place::Overview | Place::Task(_) | Place::Elsewhere => {}
            },
        }
    }
    close(place, &mut list);
    list
}

fn place_of(level: usize, text: &str) -> Place {
    match lists::task_title(text) {
        Some(title) => {
            let task = Task { title: title.to_owned(), ..Task::default() };
            Place::Task(Section { task, boxes: 0, open: 0 })
        }
        None if text.eq_ignore_ascii_case("Validation Commands") => Place::Commands,
        None if text.eq_ignore_ascii_case("Overview") => Place::Overview,
        None if level == 1 => Place::Head,
        None => Place::Elsewhere,
    }
}

// A task whose boxes are all ticked is done.
fn close(place: Place, list: &mut TaskList) {
    let Place::Task(Section { task, boxes, open }) = place else { return };
    if open > 0 || boxes == 0 {
        list.tasks.push(task);
    } else {
        list.done.push(task.title);
    }
}

// "- `go test ./...`", or a line of a fence.
fn command(line: &str) -> Option<String> {
    let line = line.trim();
    if line.starts_with("```") || line.starts_with("~~~") || line.is_empty() {
        return None;
    }
    let bare = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim();
    let quoted = bare.strip_prefix('`').and_then(|rest| Some(rest.split_once('`')?.0));
    Some(quoted.unwrap_or(bare).to_owned())
}
