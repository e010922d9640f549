//! Plans of ralphex: `### Task 1: Title` with check boxes; `## Validation Commands` judge every task.

use super::lists::{self, ListLine};
use super::{Task, TaskList};

enum FilePart {
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
    /// Says that a line below belongs to a box that is ticked.
    is_below_done: bool,
}

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut place = FilePart::Head;
    let mut is_about_whole = false;
    for line in lists::lines(text) {
        match line {
            ListLine::Heading { level, text } => {
                let next = place_of(level, text);
                if matches!(place, FilePart::Head) && level == 1 {
                    list.title = lists::title(text);
                }
                close(std::mem::replace(&mut place, next), &mut list);
            }
            ListLine::Box(found) => match &mut place {
                FilePart::Task(section) => {
                    section.boxes += 1;
                    section.is_below_done = found.is_done;
                    if found.is_done {
                        list.done.push(found.text.to_owned());
                    } else {
                        section.open += 1;
                        section.task.body.push(format!("- {}", found.text));
                    }
                }
                FilePart::Head | FilePart::Overview | FilePart::Commands | FilePart::Elsewhere
                    if found.is_done =>
                {
                    list.done.push(found.text.to_owned());
                }
                FilePart::Head | FilePart::Overview | FilePart::Commands | FilePart::Elsewhere => {
                    list.left_out.push(format!("{} (it stands in no task)", found.text));
                }
            },
            ListLine::Text(text) => match &mut place {
                FilePart::Commands => list.commands.extend(command(text)),
                FilePart::Task(section) if !text.trim().is_empty() => {
                    section.is_below_done &= text.starts_with([' ', '\t']);
                    if !section.is_below_done {
                        section.task.body.push(text.to_owned());
                    }
                }
                FilePart::Overview => overview(text.trim(), &mut list.about, &mut is_about_whole),
                FilePart::Head | FilePart::Task(_) | FilePart::Elsewhere => {}
            },
        }
    }
    close(place, &mut list);
    list
}

fn place_of(level: usize, text: &str) -> FilePart {
    match lists::task_title(text) {
        Some(title) => {
            let task = Task { title: title.to_owned(), ..Task::default() };
            FilePart::Task(Section { task, boxes: 0, open: 0, is_below_done: false })
        }
        None if text.eq_ignore_ascii_case("Validation Commands") => FilePart::Commands,
        None if text.eq_ignore_ascii_case("Overview") => FilePart::Overview,
        None if level == 1 => FilePart::Head,
        None => FilePart::Elsewhere,
    }
}

// The first paragraph.
fn overview(line: &str, about: &mut Option<String>, is_whole: &mut bool) {
    match about {
        _ if *is_whole => {}
        Some(_) if line.is_empty() => *is_whole = true,
        Some(about) => *about = format!("{about} {line}"),
        None => *about = Some(line.to_owned()).filter(|line| !line.is_empty()),
    }
}

// A task whose boxes are all ticked is done.
fn close(place: FilePart, list: &mut TaskList) {
    let FilePart::Task(Section { task, boxes, open, .. }) = place else { return };
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
