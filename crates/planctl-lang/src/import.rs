//! Task lists of other tools: which tool wrote a text, and the plan that its open tasks are. A part that they don't name is a marked gap.

mod checklist;
mod kiro;
mod lists;
mod openspec;
mod ralphex;
mod spec_kit;
mod taskmaster;
mod written;

use crate::diagnostic::Diagnostic;
use crate::syntax::Language;
use crate::syntax::source::Source;

/// The tool whose form a text has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `- [ ] T001 [P] [US1] …` below phases.
    SpecKit,
    /// `tasks.md` of a change: `## 1. …`, `- [ ] 1.1 …`.
    OpenSpec,
    /// `tasks.md` of a spec: `- [ ] 1. …`, `- [ ] 1.1 …`, `_Requirements: 1.1_`.
    Kiro,
    /// `### Task 1: …` with check boxes, `## Validation Commands`.
    Ralphex,
    /// `tasks.json` with ids, dependencies and test strategies.
    Taskmaster,
    /// Check boxes, of no tool in particular.
    Checklist,
}

/// A plan that was made of another tool's task list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The tool that wrote the list.
    pub origin: Origin,
    /// The plan's text.
    pub text: String,
    /// The plan's title.
    pub title: String,
    /// How many steps it has.
    pub steps: usize,
    /// How many of them have no contract yet.
    pub gaps: usize,
    /// The tasks that are done, which became no steps.
    pub done: Vec<String>,
    /// Other tasks that became no steps, each with the reason.
    pub left_out: Vec<String>,
}

/// The content of a task list.
#[derive(Default)]
struct TaskList {
    title: Option<String>,
    about: Option<String>,
    tasks: Vec<Task>,
    done: Vec<String>,
    left_out: Vec<String>,
    /// The commands that judge every task.
    commands: Vec<String>,
}

/// One open task.
#[derive(Default)]
struct Task {
    title: String,
    /// The lines of what is to be done.
    body: Vec<String>,
    /// The tasks before it that it waits for, by their places in the list; none where it waits for the one before.
    needs: Option<Vec<usize>>,
    /// The words in which the list says how the task is proved.
    proof: Option<String>,
}

impl Origin {
    /// Returns the tool's form that a text has; none for a plan of planctl.
    pub fn of(source: &Source) -> Option<Origin> {
        match Language::of(source.path()) {
            Some(Language::Json) => taskmaster::is_one(source.text()).then_some(Origin::Taskmaster),
            Some(Language::Dot) => None,
            None if is_plan(source.text()) => None,
            None => lists::origin(source),
        }
    }

    /// Names it with its tool.
    pub fn name(self) -> &'static str {
        match self {
            Origin::SpecKit => "a task list of spec-kit",
            Origin::OpenSpec => "a task list of OpenSpec",
            Origin::Kiro => "a task list of Kiro",
            Origin::Ralphex => "a plan of ralphex",
            Origin::Taskmaster => "a task list of Task Master",
            Origin::Checklist => "a check list",
        }
    }

    /// Returns the names of files beside it that say more, as its tool calls them.
    pub fn companions(self) -> &'static [&'static str] {
        match self {
            Origin::SpecKit => &["spec.md", "plan.md"],
            Origin::OpenSpec => &["proposal.md", "design.md"],
            Origin::Kiro => &["requirements.md", "design.md"],
            Origin::Ralphex | Origin::Taskmaster | Origin::Checklist => &[],
        }
    }
}

/// Returns the tags of a file of Task Master, the one that is read where none is named first; nothing where it has none.
pub fn tags(source: &Source) -> Vec<String> {
    let has_tags = Origin::of(source) == Some(Origin::Taskmaster);
    if has_tags { taskmaster::tags(source.text()) } else { Vec::new() }
}

/// Finds what keeps the tasks of a list from being steps in an order, each at its place in the list.
pub fn import_findings(source: &Source, tag: Option<&str>) -> Vec<Diagnostic> {
    match Origin::of(source) {
        Some(Origin::Taskmaster) => taskmaster::lint(source, tag),
        Some(Origin::SpecKit | Origin::OpenSpec | Origin::Kiro | Origin::Ralphex | Origin::Checklist)
        | None => Vec::new(),
    }
}

/// Makes a plan of another tool's task list, or of those tasks of it that have a tag; none where the text is none. `beside` are
/// the companions that are there, as paths from the workspace.
pub fn import(source: &Source, owner: &str, beside: &[String], tag: Option<&str>) -> Option<Imported> {
    let origin = Origin::of(source)?;
    let list = match origin {
        Origin::SpecKit => spec_kit::read(source.text()),
        Origin::OpenSpec => openspec::read(source.text()),
        Origin::Kiro => kiro::read(source.text()),
        Origin::Ralphex => ralphex::read(source.text()),
        Origin::Taskmaster => taskmaster::read(source.text(), tag),
        Origin::Checklist => checklist::read(source.text()),
    };
    Some(written::plan(origin, list, source.path(), owner, beside))
}

// A text with a contract, or whose frontmatter says so, is meant to be a plan.
fn is_plan(text: &str) -> bool {
    let has_type = text.starts_with("---") && text.lines().take(20).any(|line| line.trim() == "type: plan");
    has_type || text.lines().any(|line| line.to_ascii_lowercase().starts_with("**contract"))
}
