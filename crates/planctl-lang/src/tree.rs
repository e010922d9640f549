//! A plan as its author wrote it: every field with the place it was read from.

pub(crate) mod digest;
pub(crate) mod entry;
pub mod fields;
pub(crate) mod mark;
pub(crate) mod parse;
pub mod workflow;

pub use crate::syntax::values::{OnFail, Then, WorkspaceMode};
pub use mark::Mark;
pub use parse::allow::Allow;

use std::time::Duration;

use planctl_engine::{AskDeadline, Budget, ChildApproval, Priority, RedFirst, Subscription, WorkKind};
use planctl_glob::{Glob, is_glob};

use crate::syntax::source::Source;
use crate::text::paths::clean;
use crate::text::{Span, Spanned};
use workflow::{Kind, Library};

/// A plan as read; an unreadable part is absent here and named by a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanTree {
    /// The block between the `---` lines.
    pub frontmatter: Frontmatter,
    /// The text of `# Title`.
    pub title: Option<Spanned<String>>,
    /// `**Context:**`
    pub context: Option<Spanned<String>>,
    /// `**Budget:**`
    pub budget: Option<Spanned<Budget>>,
    /// `**Priority:**`
    pub priority: Option<Spanned<Priority>>,
    /// `**max_visits:**`, for every step that says nothing else.
    pub max_visits: Option<Spanned<u16>>,
    /// `**stale_after:**`
    pub stale_after: Option<Spanned<Duration>>,
    /// `**ask_deadline:**`, for every ask of a step that says nothing else.
    pub ask_deadline: Option<Spanned<AskDeadline>>,
    /// `**parallel:**`
    pub parallel: Option<Spanned<u16>>,
    /// `**red_first:**`, for every step that says nothing else.
    pub red_first: Option<Spanned<RedFirst>>,
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
}

impl PlanTree {
    /// Returns the place of the step that an offset of a markdown text lies in.
    pub(crate) fn step_at(&self, offset: usize) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.heading.start <= offset).checked_sub(1)?;
        (offset < self.steps[at].end).then_some(at)
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
pub enum StepNumber {
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

impl Default for StepNumber {
    fn default() -> StepNumber {
        StepNumber::Fixed(0)
    }
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepTree {
    /// Its number.
    pub number: Spanned<StepNumber>,
    /// The heading's line.
    pub heading: Span,
    /// Where what follows the step begins.
    pub end: usize,
    /// Its title, without a mark.
    pub title: Spanned<String>,
    /// A mark between number and title.
    pub mark: Option<Spanned<String>>,
    /// A `**status:**` line.
    pub status: Option<Spanned<String>>,
    /// `**target:**`
    pub target: Option<Spanned<String>>,
    /// `**type:**`, as the kind of node that the step is.
    pub kind: Option<Spanned<Kind>>,
    /// The kind of an agent's work, where `**type:**` says it.
    pub work: Option<WorkKind>,
    /// `**intent:**`: the piece of a goal that the step serves.
    pub intent: Option<Spanned<String>>,
    /// `**subscriptions:**`
    pub subscriptions: Vec<Spanned<Subscription>>,
    /// `**task:**`
    pub task: Option<Spanned<String>>,
    /// `**contract:**`
    pub contract: Option<ContractTree>,
    /// `**on_fail:**`
    pub on_fail: Option<Spanned<OnFail>>,
    /// `**timeout:**` of the work.
    pub timeout: Option<Spanned<Duration>>,
    /// `**contract_timeout:**`
    pub contract_timeout: Option<Spanned<Duration>>,
    /// `**changes:**`: files and globs that the worker may change, or the one word `none`.
    pub changes: Vec<Spanned<String>>,
    /// `**protects:**`
    pub protects: Vec<Spanned<String>>,
    /// `**guard:**`
    pub guard: Option<Spanned<bool>>,
    /// `**red_first:**`
    pub red_first: Option<Spanned<RedFirst>>,
    /// `**judge:**`: what a model is asked about the work.
    pub judge: Option<Spanned<String>>,
    /// `**judge_by:**`: the model or the role that is asked.
    pub judge_by: Option<Spanned<String>>,
    /// `**ask_deadline:**`, for the asks of this step.
    pub ask_deadline: Option<Spanned<AskDeadline>>,
    /// `**max_retries:**`
    pub max_retries: Option<Spanned<u16>>,
    /// `**max_visits:**`
    pub max_visits: Option<Spanned<u16>>,
    /// `**needs:**`, as far as it names steps by their numbers.
    pub needs: Option<Spanned<Vec<u32>>>,
    /// The templates of steps that `**needs:**` names as their headings do: `2–N`.
    pub needed_templates: Vec<Spanned<String>>,
    /// `**when:**`
    pub when: Option<Spanned<String>>,
    /// `**for_each:**`
    pub for_each: Option<Spanned<String>>,
    /// `**gate:**`
    pub gate: Option<Spanned<String>>,
    /// `**min_tests:**`: the fewest tests that have to pass.
    pub min_tests: Option<Spanned<u32>>,
    /// `**locks:**`
    pub locks: Vec<Spanned<String>>,
    /// `**workspace:**`
    pub workspace: Option<Spanned<WorkspaceMode>>,
    /// `**plan:**`: the file of the plan that a sub-plan carries out.
    pub plan: Option<Spanned<String>>,
    /// `**folder:**`: the folder in which a sub-plan works.
    pub folder: Option<Spanned<String>>,
    /// `**approval:**`: who approves a sub-plan.
    pub approval: Option<Spanned<ChildApproval>>,
    /// Its node's name, where the plan is a graph of another language than markdown.
    pub node: Option<String>,
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
            pub fn word(self) -> &'static str {
                match self { $(Field::$name => $word,)* }
            }

            /// Returns how its value is written.
            pub(crate) fn form(self) -> Form {
                match self { $(Field::$name => Form::$form,)* }
            }

            fn scope(self) -> Scope {
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
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Plan,
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
        Field::OF_PLANS.into_iter().find(|field| field.word() == word)
    }

    /// Returns the field of steps of this name, in lower case with underscores.
    pub fn of_step(word: &str) -> Option<Field> {
        Field::of_steps().find(|field| field.word() == word)
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
    /// Makes a step of which only the heading is known.
    pub fn new(number: Spanned<StepNumber>, heading: Span, title: Spanned<String>) -> StepTree {
        StepTree { number, end: heading.end, heading, title, ..StepTree::default() }
    }

    /// Returns the number, unless it is a template.
    pub fn fixed_number(&self) -> Option<u32> {
        match self.number.value {
            StepNumber::Fixed(number) => Some(number),
            StepNumber::Template(_) => None,
        }
    }

    /// Returns the kind of node that it is: work for an agent where nothing is said.
    pub fn node_kind(&self) -> Kind {
        self.kind.as_ref().map_or(Kind::Task, |kind| kind.value)
    }

    /// Returns its name: the number as written, or that of its node.
    pub fn number_text(&self) -> String {
        match (&self.node, &self.number.value) {
            (Some(node), _) => node.clone(),
            (None, StepNumber::Fixed(number)) => number.to_string(),
            (None, StepNumber::Template(text)) => text.clone(),
        }
    }

    /// Returns the entries of `**changes:**`, of which `none` is none.
    pub(crate) fn declared_changes(&self) -> impl Iterator<Item = &Spanned<String>> {
        let is_none = matches!(self.changes.as_slice(), [only] if only.value.eq_ignore_ascii_case("none"));
        self.changes.iter().filter(move |_| !is_none)
    }

    /// Returns the globs among the entries of `**changes:**`; one that is none is a finding of its own.
    pub(crate) fn changed_globs(&self) -> impl Iterator<Item = Glob> {
        let globs = self.declared_changes().filter(|entry| is_glob(&entry.value));
        globs.filter_map(|entry| Glob::parse(&clean(&entry.value)).ok())
    }

    /// Returns the paths and globs of the `file:` subscriptions.
    pub fn subscribed_files(&self) -> impl Iterator<Item = (&str, Span)> {
        self.subscriptions.iter().filter_map(|subscription| match &subscription.value {
            Subscription::File { path } => Some((path.as_str(), subscription.span)),
            Subscription::Topic { .. } => None,
        })
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
