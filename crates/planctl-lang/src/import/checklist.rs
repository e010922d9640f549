//! Check lists: each open box that stands in no other open one is a step.

use super::lists::{self, CheckBox, ListLine};
use super::{Task, TaskList};

/// The place of a box in the plan, and of those in it.
#[derive(Clone, Copy)]
enum Fate {
    Step,
    Done,
    /// By a mark that may mean that it is under way, or that nobody wants it any more.
    LeftOut(char),
}

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::default();
    let mut section: Option<&str> = None;
    let mut own: Option<(CheckBox<'_>, Fate)> = None;
    // Details belong to the box above them.
    let mut is_told = false;
    for line in lists::lines(text) {
        match line {
            ListLine::Heading { level, text } => {
                if level == 1 && list.title.is_none() {
                    list.title = lists::title(text);
                } else {
                    section = Some(text);
                }
                (own, is_told) = (None, false);
            }
            ListLine::Box(found) => {
                is_told = false;
                let above = own.filter(|(own, _)| found.indent > own.indent);
                match (above.map(|(_, fate)| fate), fate_of_check_box(&found)) {
                    (_, Fate::Done) => list.done.push(found.text.to_owned()),
                    (Some(Fate::LeftOut(mark)), _) | (_, Fate::LeftOut(mark)) => {
                        list.left_out
                            .push(format!("{} (marked `[{mark}]`: under way, or given up?)", found.text));
                    }
                    (Some(Fate::Step), Fate::Step) => {
                        push(&mut list, format!("- {}", found.text));
                        is_told = true;
                    }
                    (Some(Fate::Done) | None, Fate::Step) => {
                        list.tasks.push(task(&found, above.map(|(above, _)| above.text), section));
                        (own, is_told) = (Some((found, Fate::Step)), true);
                    }
                }
                if above.is_none() {
                    own = Some((found, fate_of_check_box(&found)));
                }
            }
            ListLine::Text(text) => {
                if let Some((own, _)) = own.filter(|_| is_told && text.starts_with([' ', '\t'])) {
                    push(&mut list, lists::detail(text, own.indent).to_owned());
                }
            }
        }
    }
    list
}

fn fate_of_check_box(found: &CheckBox<'_>) -> Fate {
    match found.doubt {
        _ if found.is_done => Fate::Done,
        Some(mark) => Fate::LeftOut(mark),
        None => Fate::Step,
    }
}

fn task(found: &CheckBox<'_>, above: Option<&str>, section: Option<&str>) -> Task {
    let mut body = vec![format!("{}.", found.text.trim_end_matches('.'))];
    body.extend(above.map(|above| format!("- A part of: {above}")));
    body.extend(section.map(|section| format!("- In the list under: {section}")));
    Task { title: found.text.to_owned(), body, ..Task::default() }
}

fn push(list: &mut TaskList, line: String) {
    if let Some(task) = list.tasks.last_mut().filter(|_| !line.trim().is_empty()) {
        task.body.push(line);
    }
}
