//! A plan in markdown as its author wrote it, every field with the place it was read from; and in `workflow`, what a plan of any
//! language says.

pub(crate) mod digest;
pub(crate) mod entry;
pub mod fields;
pub(crate) mod mark;
pub(crate) mod parse;
pub mod workflow;

pub use crate::syntax::values::{OnFail, Then, WorkspaceMode};
pub use mark::Mark;
pub use parse::allow::Allow;

use crate::syntax::source::Source;
use crate::text::{Span, Spanned};
use workflow::{Kind, Library, NodeTree, Workflow};

/// A plan in markdown as read: what it says, and where its author wrote it. An unreadable part is absent here and named by a
/// diagnostic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanTree {
    /// The block between the `---` lines.
    pub frontmatter: Frontmatter,
    /// The title and the plan's own fields; the graph's nodes are those of the steps.
    pub head: Workflow,
    /// The `## Steps` heading.
    pub steps_heading: Option<Span>,
    /// A heading that was meant to be `## Steps`, where there is none.
    pub steps_meant: Option<Span>,
    /// The steps, in the order of the text.
    pub steps: Vec<StepTree>,
    /// The lines of `## Flow`, with the heading first.
    pub flow: Option<Spanned<Vec<Spanned<String>>>>,
    /// The comments that allow findings, in the order of the text.
    pub allows: Vec<Allow>,
    /// The texts that no worker is given, in words for people, each at its first line.
    pub prose: Vec<Spanned<String>>,
}

impl PlanTree {
    /// Returns the place of the step that an offset of a markdown text lies in.
    pub(crate) fn step_at(&self, offset: usize) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.heading.start <= offset).checked_sub(1)?;
        (offset < self.steps[at].node.span.end).then_some(at)
    }

    /// Returns the step whose heading has this template of several, in whatever way it is written.
    pub(crate) fn template_named(&self, text: &str) -> Option<&StepTree> {
        let key = template_key(text);
        let templates = self.steps.iter().filter(|step| step.node.number.is_none());
        templates.filter(|_| !key.is_empty()).find(|step| template_key(&step.node.id.value) == key)
    }

    /// Returns the comments that stand in the step at a place, or above all steps.
    pub(crate) fn allows_of(&self, step: Option<usize>) -> impl Iterator<Item = &Allow> {
        self.allows.iter().filter(move |allow| self.step_at(allow.span.start) == step)
    }
}

/// The frontmatter's values, as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frontmatter {
    /// The whole block, both `---` lines included.
    pub span: Option<Span>,
    /// `type`
    pub kind: Option<Spanned<String>>,
    /// `status`
    pub status: Option<Spanned<String>>,
    /// `owner`
    pub owner: Option<Spanned<String>>,
    /// `library`, `domains`, `triggers`, `trigger_threshold`, `stale_after_turns`, `then`
    pub library: Library,
    /// Keys that planctl doesn't know; kept.
    pub unknown: Vec<Spanned<String>>,
}

/// A step's number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StepNumber {
    /// A number.
    Fixed(u32),
    /// A template of several numbers, as written (`3–N`).
    Template(String),
}

/// Returns the first and the last number that a template of steps stands for; the last is absent where it is a letter, and
/// both are where the first is.
pub(crate) fn template_range(text: &str) -> Option<(u32, Option<u32>)> {
    let key = template_key(text);
    let (first, last) = key.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()))
}

/// Returns a form in which two ways to write one template (`2–N`, `2-n`) are the same.
pub(crate) fn template_key(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_whitespace());
    plain.map(|c| if matches!(c, '–' | '—' | '…') { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// One step: a node of the plan's graph, with what only a text in markdown has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepTree {
    /// The fields that nodes of every language have. Its name is the number as written.
    pub node: NodeTree,
    /// The heading's line.
    pub heading: Span,
    /// A mark between number and title.
    pub mark: Option<Spanned<String>>,
    /// A `**status:**` line.
    pub status: Option<Spanned<String>>,
    /// `**intent:**`: the piece of a goal that the step serves.
    pub intent: Option<Spanned<String>>,
    /// The templates of steps that `**needs:**` names as their headings do: `2–N`.
    pub needed_templates: Vec<Spanned<String>>,
    /// `**for_each:**`: the items for which a template stands.
    pub for_each: Option<Spanned<String>>,
    /// `**gate:**`
    pub gate: Option<Spanned<String>>,
    /// Fields whose value could not be read; each has its diagnostic, so nothing reports them as missing.
    pub unread: Vec<Field>,
}

/// The contract of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractTree {
    /// The script, with line feeds as line ends.
    pub command: String,
    /// Where each line of the script begins in the source; empty where it does not stand there letter by letter.
    pub line_starts: Vec<usize>,
    /// The content of the fence.
    pub span: Span,
    /// The opening line of the fence.
    pub fence: Span,
    /// The exit code that passes, where it is said.
    pub exit_code: Option<Spanned<u8>>,
}

macro_rules! fields {
    ($($name:ident $word:literal $scope:ident $form:ident,)*) => {
        /// A field by name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum Field { $(#[doc = concat!("`**", $word, ":**`")] $name,)* }

        impl Field {
            const ALL: &[Field] = &[$(Field::$name,)*];

            /// Returns the name as authors write it.
            pub fn as_str(self) -> &'static str {
                match self { $(Field::$name => $word,)* }
            }

            /// Returns how its value is written.
            pub(crate) fn form(self) -> Form {
                match self { $(Field::$name => Form::$form,)* }
            }

            /// Returns its owner; some fields of steps are the plan's as well.
            pub(crate) fn scope(self) -> Scope {
                match self { $(Field::$name => Scope::$scope,)* }
            }
        }
    };
}

fields! {
    Context "context" Plan Text,
    Budget "budget" Plan Line,
    Priority "priority" Plan Line,
    StaleAfter "stale_after" Plan Line,
    Parallel "parallel" Plan Line,
    Target "target" Step Line,
    Kind "type" Step Line,
    Intent "intent" Step Line,
    Subscriptions "subscriptions" Step List,
    Task "task" Step Text,
    Contract "contract" Step Contract,
    Server "server" Step Line,
    Tool "tool" Step Line,
    Arguments "arguments" Step Text,
    Plan "plan" Step Line,
    Folder "folder" Step Line,
    Approval "approval" Step Line,
    ExitCode "exit_code" Step Line,
    OnFail "on_fail" Step Line,
    Timeout "timeout" Step Line,
    ContractTimeout "contract_timeout" Step Line,
    Changes "changes" Step List,
    Protects "protects" Step List,
    Guard "guard" Step Line,
    RedFirst "red_first" Step Line,
    Judge "judge" Step Text,
    JudgeBy "judge_by" Step Line,
    MaxRetries "max_retries" Step Line,
    MaxVisits "max_visits" Step Line,
    AskDeadline "ask_deadline" Step Line,
    Needs "needs" Step Line,
    When "when" Step Line,
    ForEach "for_each" Step Text,
    Gate "gate" Step Line,
    MinTests "min_tests" Step Line,
    Locks "locks" Step List,
    Workspace "workspace" Step Line,
    Status "status" Step Line,
}

/// The owner of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The head of the plan.
    Plan,
    /// A step.
    Step,
}

impl Field {
    /// The plan's own fields, of which some are fields of steps as well.
    pub const OF_PLANS: [Field; 8] = [
        Field::Context,
        Field::Budget,
        Field::Priority,
        Field::MaxVisits,
        Field::StaleAfter,
        Field::AskDeadline,
        Field::Parallel,
        Field::RedFirst,
    ];

    /// Returns the fields of steps.
    pub fn of_steps() -> impl Iterator<Item = Field> {
        Field::ALL.iter().copied().filter(|field| field.scope() == Scope::Step)
    }

    /// Returns the plan's own field of this name, in lower case with underscores.
    pub fn of_plan(word: &str) -> Option<Field> {
        Field::OF_PLANS.into_iter().find(|field| field.as_str() == word)
    }

    /// Returns the field of steps of this name, in lower case with underscores.
    pub fn of_step(word: &str) -> Option<Field> {
        Field::of_steps().find(|field| field.as_str() == word)
    }
}

/// How the value of a field is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// One value, on the field's line or alone on the next one.
    Line,
    /// Text of any length.
    Text,
    /// Entries, on the line or below.
    List,
    /// A script in a fence, with its exit code.
    Contract,
}

impl StepTree {
    /// Makes a step of which only the heading is known: work for an agent where nothing else is said.
    pub(crate) fn new(number: Spanned<StepNumber>, heading: Span, title: Spanned<String>) -> StepTree {
        let (number, name, at) = match number.value {
            StepNumber::Fixed(fixed) => (Some(fixed), fixed.to_string(), number.span),
            StepNumber::Template(text) => (None, text, number.span),
        };
        let node = NodeTree::new(Spanned::new(name, at), heading, Spanned::new(Kind::Task, at));
        let mut node = NodeTree { number, ..node };
        node.attributes.label = title.into();
        StepTree {
            node,
            heading,
            mark: None,
            status: None,
            intent: None,
            needed_templates: Vec::new(),
            for_each: None,
            gate: None,
            unread: Vec::new(),
        }
    }

    /// Returns the place of the title.
    pub fn title_span(&self) -> Span {
        self.node.attributes.label.raw().map_or(self.heading, |title| title.span)
    }

    /// Returns the numbers of `**needs:**`.
    pub fn needs(&self) -> Option<Spanned<Vec<u32>>> {
        let needs = self.node.attributes.needs.spanned()?;
        let numbers = needs.value.iter().filter_map(|name| name.parse().ok()).collect();
        Some(Spanned::new(numbers, needs.span))
    }
}

impl ContractTree {
    /// Returns the exit code that passes.
    pub fn expected(&self) -> u8 {
        self.exit_code.as_ref().map_or(0, |code| code.value)
    }

    /// Returns the place in the plan of a span in the script.
    pub fn in_plan(&self, span: Span) -> Span {
        if self.line_starts.is_empty() {
            return self.span;
        }
        Span::new(self.offset_in_plan(span.start), self.offset_in_plan(span.end))
    }

    /// Returns the place in the plan of a line of the script, counted from 1.
    pub fn line_in_plan(&self, line: usize, source: &Source) -> Span {
        if self.line_starts.is_empty() {
            return self.span;
        }
        let at = line.saturating_sub(1).min(self.line_starts.len().saturating_sub(1));
        let start = self.line_starts.get(at).copied().unwrap_or(self.fence.end);
        Span::new(start, source.line_span(source.line_of(start)).end)
    }

    fn offset_in_plan(&self, offset: usize) -> usize {
        let offset = offset.min(self.command.len());
        let before = &self.command.as_bytes()[..offset];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let from = self.line_starts.get(line).copied().unwrap_or(self.span.end);
        (from + offset - start).min(self.span.end.max(self.fence.end))
    }
}
