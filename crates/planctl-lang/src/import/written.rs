//! Writes the tasks of another tool as a plan. Their words become titles and tasks; they can't become fields or headings.

use super::{Imported, Origin, Task, TaskList};
use crate::syntax::shell::joined;
use crate::text::one_line;
use crate::tree::parse::draft_frontmatter;
use crate::tree::parse::heading::MARKS;

/// The most characters of a title; the whole is in the task.
const TITLE_CHARACTERS_MAX: usize = 100;

pub(super) fn plan(origin: Origin, list: TaskList, path: &str, owner: &str, beside: &[String]) -> Imported {
    let title = list.title.as_deref().map(title).unwrap_or_else(|| title_of_path(origin, path));
    let mut text = format!(
        "{}\n# {title}\n\n**Context:** {}Imported from `{path}`, {}.\n\n## Steps\n",
        draft_frontmatter(owner),
        list.about
            .as_deref()
            .map(|about| format!("{} ", line(about).trim_start_matches("> ")))
            .unwrap_or_default(),
        origin.name()
    );
    for (at, task) in list.tasks.iter().enumerate() {
        step(&mut text, at, task, &list.commands, beside);
    }
    for (why, left) in [("done", &list.done), ("left out", &list.left_out)] {
        if !left.is_empty() {
            let items: String = left.iter().map(|item| format!("- {}\n", line(item))).collect();
            text.push_str(&format!("\n<!-- Not imported, because it is {why} in {path}:\n{items}-->\n"));
        }
    }
    Imported {
        origin,
        title,
        steps: list.tasks.len(),
        gaps: if list.commands.is_empty() { list.tasks.len() } else { 0 },
        text,
        done: list.done,
        left_out: list.left_out,
    }
}

fn step(text: &mut String, at: usize, task: &Task, commands: &[String], beside: &[String]) {
    text.push_str(&format!("\n### {}. {}\n\n**target:** coder\n", at + 1, title(&task.title)));
    if let Some(needs) = needs(at, task) {
        text.push_str(&format!("**needs:** {needs}\n"));
    }
    text.push_str("**task:**\n");
    let mut fence = false;
    for part in &task.body {
        // Fenced lines are quoted whole, so that their fences need not be even.
        let is_fence = part.trim_start().starts_with("```") || part.trim_start().starts_with("~~~");
        fence ^= is_fence;
        let part = if fence || is_fence { format!("> {}", safe(part)) } else { line(part) };
        text.push_str(part.trim_end());
        text.push('\n');
    }
    if !beside.is_empty() {
        let files: Vec<String> = beside.iter().map(|file| format!("`{file}`")).collect();
        text.push_str(&format!("\nRead {} first.\n", files.join(" and ")));
    }
    if commands.is_empty() {
        let proof = task.proof.as_deref().map(|proof| format!(": {}", one_line(proof))).unwrap_or_default();
        text.push_str(&format!("\n**contract:** TODO{}\n", safe(&proof)));
    } else {
        text.push_str(&format!(
            "\n**contract:**\n```bash\n{}\n```\nexit_code == 0\n",
            joined(&commands.iter().map(|command| (command.as_str(), 0)).collect::<Vec<_>>())
        ));
    }
}

// Nothing where a step follows the one before it anyway.
fn needs(at: usize, task: &Task) -> Option<String> {
    let mut needs = task.needs.clone()?;
    needs.sort_unstable();
    needs.dedup();
    if at == 0 && needs.is_empty() || at.checked_sub(1).is_some_and(|before| needs == [before]) {
        return None;
    }
    if needs.is_empty() {
        return Some("none".to_owned());
    }
    Some(needs.iter().map(|need| (need + 1).to_string()).collect::<Vec<_>>().join(", "))
}

// A line that is neither heading, field nor fence.
fn line(text: &str) -> String {
    let text = safe(text.trim_end());
    let inner = text.trim_start();
    let is_bold = inner.starts_with("**") || inner.starts_with("__");
    match inner.starts_with('#') || is_bold || inner.starts_with("exit_code") || inner == "---" {
        true => format!("> {inner}"),
        false => text,
    }
}

fn title(text: &str) -> String {
    let text = safe(&one_line(&text.replace("**", "")));
    let hashes = text.trim_start_matches('#');
    let mut text = if hashes.is_empty() || hashes.starts_with(' ') { hashes.trim_start() } else { &text };
    // A mark before a title would be taken for planctl's own.
    while let Some(rest) = MARKS.iter().find_map(|mark| text.strip_prefix(mark)) {
        text = rest.trim_start_matches(['\u{fe0f}', ' ']);
    }
    if text.chars().count() <= TITLE_CHARACTERS_MAX {
        return if text.is_empty() { "Task".to_owned() } else { text.to_owned() };
    }
    let cut: String = text.chars().take(TITLE_CHARACTERS_MAX - 1).collect();
    format!("{}…", cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words))
}

// The folder names a change or a spec, the file another list.
fn title_of_path(origin: Origin, path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let file = parts.last().map_or("plan", |file| file.split('.').next().unwrap_or(file));
    let folder = parts.len().checked_sub(2).and_then(|at| parts.get(at)).copied();
    let name = match origin {
        Origin::SpecKit | Origin::OpenSpec | Origin::Kiro => folder.unwrap_or(file),
        Origin::Ralphex | Origin::Taskmaster | Origin::Checklist => file,
    };
    title(&name.replace(['-', '_'], " "))
}

// A comment that begins in a task would take in the fields behind it.
fn safe(text: &str) -> String {
    text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")
}
