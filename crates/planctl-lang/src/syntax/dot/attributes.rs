//! Which attributes there are, what their values are, and which of them planctl follows (DOT rows A1–A20, section 2.1).

use std::time::Duration;

use planctl_engine::{
    AskDeadline, ChildApproval, Fidelity, JoinPolicy, Level, On, Priority, RedFirst, Subscription, WorkKind,
};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::condition;
use crate::syntax::dot::syntax::{Attribute, Of};
use crate::syntax::values::{OnFail, Unread, WorkspaceMode, flag, whole_number};
use crate::syntax::written::{
    ExitResult, FieldValue, Placed, RetryPolicy, Text, ValueForm, VerifyType, Written,
};
use crate::text::limits::{RETRIES_MAX, TESTS_MAX};
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};

/// Above this many findings, nobody is told of one more unknown key: comparing each with all known ones takes its time.
const FINDINGS_MAX: usize = 1_000;

/// An attribute that planctl knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeSpec {
    pub of: Of,
    /// The name that planctl uses, and those that others have for it.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub form: ValueForm,
    /// Why planctl does not follow it (X rows).
    pub left_out: Option<&'static str>,
}

/// The forms of numbers that have bounds.
pub(crate) const TESTS: ValueForm = ValueForm::Whole(1, TESTS_MAX as i64);
pub(crate) const RETRIES: ValueForm = ValueForm::Whole(0, RETRIES_MAX as i64);
pub(crate) const VISITS: ValueForm = ValueForm::Whole(1, 100);
pub(crate) const PARALLEL: ValueForm = ValueForm::Whole(1, 64);

const HOOKS: &str = "a worker's own hooks are its own affair, and planctl runs nothing around its tools";
const AUTO: &str = "no step passes because its worker says so: its contract decides";
const STEER: &str = "nothing is sent into a child run while it works";
const QUORUM: &str = "branches are joined when all ended, or at the first success";

const fn supported(
    of: Of,
    name: &'static str,
    aliases: &'static [&'static str],
    form: ValueForm,
) -> AttributeSpec {
    AttributeSpec { of, name, aliases, form, left_out: None }
}

const fn left_out(of: Of, name: &'static str, why: &'static str) -> AttributeSpec {
    AttributeSpec { left_out: Some(why), ..supported(of, name, &[], ValueForm::Text) }
}

use Of::{Edge, Graph, Node};

/// The attributes of a graph, a node or an edge.
pub(crate) trait Attributes {
    /// The kind of element.
    const OF: Of;

    /// Reads what is said under a name, if there is such an attribute.
    ///
    /// # Errors
    ///
    /// Returns why it can't be read; its words stay.
    fn read(&mut self, name: &str, key: Span, text: Spanned<String>) -> Result<(), Unread>;

    /// Returns all of it, and what others say of which it says nothing (D15).
    fn or(self, others: &Self) -> Self;
}

macro_rules! attributes {
    (@form $type:ty) => { <$type as FieldValue>::FORM };
    (@form $type:ty, $form:expr) => { $form };
    ($($(#[$doc:meta])* $of:ident $name:ident {
        $($key:literal $(| $alias:literal)* $field:ident: $type:ty $(= $form:expr)?,)*
    })*) => {
        const FIELDS: &[AttributeSpec] =
            &[$($(supported($of, $key, &[$($alias),*], attributes!(@form $type $(, $form)?)),)*)*];

        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Debug, Default)]
            pub struct $name {
                $(#[doc = concat!("`", $key, "`")] pub $field: Written<$type>,)*
            }

            impl Attributes for $name {
                const OF: Of = $of;

                fn read(&mut self, name: &str, key: Span, text: Spanned<String>) -> Result<(), Unread> {
                    match name {
                        $($key => self.$field.read(key, text, attributes!(@form $type $(, $form)?)),)*
                        _ => Ok(()),
                    }
                }

                fn or(self, other: &$name) -> $name {
                    $name { $($field: self.$field.or(&other.$field),)* }
                }
            }

            impl $name {
                /// Returns what is said, by name, in the order of the names.
                pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
                    let mut all = [$(($key, self.$field.raw())),*];
                    all.sort_unstable_by_key(|(key, _)| *key);
                    all.into_iter().filter_map(|(key, text)| Some((key, text?)))
                }
            }

            impl Placed for $name {
                fn forget_places(&mut self) {
                    $(self.$field.forget_places();)*
                }
            }
        )*
    };
}

attributes! {
    /// The attributes of a graph (A1 to A7, A20).
    Graph GraphAttributes {
        "goal" goal: Text,
        "label" label: Text,
        "default_max_retries" | "default_max_retry" default_max_retries: u16 = RETRIES,
        "retry_target" retry_target: Text,
        "fallback_retry_target" fallback_retry_target: Text,
        "default_fidelity" | "context_fidelity_default" default_fidelity: Fidelity,
        "model_stylesheet" model_stylesheet: Text,
        "stack.child_dotfile" child_dotfile: Text,
        "stack.child_workdir" child_workdir: Text,
        "max_visits" | "max_node_visits" | "default_max_visits" max_visits: u16 = VISITS,
        "retry_policy" | "default_retry_policy" retry_policy: RetryPolicy,
        "thread_id" | "default_thread_id" thread_id: Text,
        "loop_restart_persist_keys" loop_restart_persist_keys: Vec<String>,
        "max_restarts" max_restarts: u16 = VISITS,
        "max_parallel" max_parallel: u16 = PARALLEL,
        "stale_after" stale_after: Duration,
        "ask_deadline" ask_deadline: AskDeadline,
        "budget" budget: Text,
        "red_first" red_first: RedFirst,
        "priority" priority: Priority,
        "parallel_edges" parallel_edges: bool,
    }

    /// The attributes of a node (A8 to A16, A20); in which words it has its own, section 2 says.
    Node NodeAttributes {
        "label" label: Text,
        "prompt" | "llm_prompt" prompt: Text,
        "shape" shape: Text,
        "type" type_name: Text,
        "class" class: Text,
        "max_retries" max_retries: u16 = RETRIES,
        "goal_gate" goal_gate: bool,
        "retry_target" retry_target: Text,
        "fallback_retry_target" fallback_retry_target: Text,
        "timeout" timeout: Duration,
        "llm_model" | "model" llm_model: Text,
        "llm_provider" | "provider" llm_provider: Text,
        "reasoning_effort" reasoning_effort: Text =
            ValueForm::Word(&["low", "medium", "high", "minimal", "none", "xhigh", "max"]),
        "fidelity" fidelity: Fidelity,
        "thread_id" thread_id: Text,
        "profile" profile: Text,
        "retry_policy" retry_policy: RetryPolicy,
        "allow_partial" allow_partial: bool,
        "max_visits" | "max_node_visits" max_visits: u16 = VISITS,
        "human.default_choice" default_choice: Text,
        "human.free_text" free_text: bool,
        "mode" mode: Text,
        "join_policy" join_policy: JoinPolicy,
        "max_parallel" max_parallel: u16 = PARALLEL,
        "tool_command" | "script" tool_command: Text,
        "server" server: Text,
        "arguments" arguments: Text,
        "for_each" for_each: Text,
        "stack.child_dotfile" child_dotfile: Text,
        "stack.child_workdir" child_workdir: Text,
        "stack.child_approval" child_approval: ChildApproval,
        "manager.stop_condition" stop_condition: condition::Read,
        "manager.max_cycles" max_cycles: u16 = VISITS,
        // Section 2.1: planctl's own attributes.
        "contract" contract: Text,
        "expect_exit" expect_exit: u8,
        "contract_timeout" contract_timeout: Duration,
        "min_tests" min_tests: u32 = TESTS,
        "guard" guard: bool,
        "red_first" red_first: RedFirst,
        "judge" judge: Text,
        "judge_by" judge_by: Text,
        "target" target: Text,
        "subscriptions" subscriptions: Vec<Spanned<Subscription>>,
        "changes" changes: Vec<Spanned<String>>,
        "protects" protects: Vec<Spanned<String>>,
        "locks" locks: Vec<Spanned<String>>,
        "workspace" workspace: WorkspaceMode,
        "on_fail" on_fail: OnFail,
        // Section 2.4, ruling 8.
        "escalate" escalate: Text,
        "pace_level" pace_level: Level,
        "ask_deadline" ask_deadline: AskDeadline,
        "result" result: ExitResult,
        "checkpoint" checkpoint: bool,
        "command" command: Text,
        // The fields of steps in markdown.
        "needs" needs: Vec<String>,
        "when" when: condition::Read,
        "work" work: WorkKind,
        // The keys of a library's entries (seeds 2 and 3).
        "description" description: Text,
        "tool" tool: Text,
        "tool_hint" tool_hint: Text,
        "required" required: bool,
        "verify.type" verify_type: VerifyType,
        "verify.value" verify_value: Text,
    }

    /// The attributes of an edge (A17 to A19).
    Edge EdgeAttributes {
        "label" label: Text,
        "condition" condition: Text,
        "weight" weight: i64 = ValueForm::Whole(-1_000_000, 1_000_000),
        "loop_restart" loop_restart: bool,
        "on" on: On,
        "fidelity" fidelity: Fidelity,
        "thread_id" thread_id: Text,
    }
}

/// The attributes that planctl does not follow.
const LEFT_OUT: &[AttributeSpec] = &[
    left_out(Graph, "tool_hooks.pre", HOOKS),
    left_out(Graph, "tool_hooks.post", HOOKS),
    left_out(Node, "auto_status", AUTO),
    left_out(Node, "tool_hooks.pre", HOOKS),
    left_out(Node, "tool_hooks.post", HOOKS),
    left_out(Node, "manager.actions", STEER),
    left_out(Node, "manager.poll_interval", STEER),
    left_out(Node, "k", QUORUM),
    left_out(Node, "quorum", QUORUM),
    left_out(Node, "error_policy", QUORUM),
];

/// Returns every attribute that there is.
fn all() -> impl Iterator<Item = &'static AttributeSpec> {
    FIELDS.iter().chain(LEFT_OUT)
}

impl GraphAttributes {
    /// Returns the nodes to go back to, the first choice first.
    pub fn retry_targets(&self) -> impl Iterator<Item = &Spanned<String>> {
        [&self.retry_target, &self.fallback_retry_target].into_iter().filter_map(Written::text)
    }
}

impl NodeAttributes {
    /// Returns the nodes to go back to, the first choice first.
    pub fn retry_targets(&self) -> impl Iterator<Item = &Spanned<String>> {
        [&self.retry_target, &self.fallback_retry_target].into_iter().filter_map(Written::text)
    }

    /// Returns the command that the harness runs at a call or a decision.
    pub(crate) fn own_command(&self) -> Option<&Spanned<String>> {
        self.tool_command.text().or_else(|| self.command.text())
    }
}

/// Graphviz's own attributes for drawing; planctl keeps them and is silent.
const DRAWN: &[&str] = &[
    "rankdir",
    "rank",
    "ranksep",
    "nodesep",
    "splines",
    "bgcolor",
    "color",
    "fillcolor",
    "fontcolor",
    "fontname",
    "fontsize",
    "style",
    "penwidth",
    "width",
    "height",
    "fixedsize",
    "margin",
    "pad",
    "size",
    "ratio",
    "dpi",
    "pos",
    "peripheries",
    "arrowhead",
    "arrowtail",
    "arrowsize",
    "dir",
    "minlen",
    "constraint",
    "concentrate",
    "compound",
    "ltail",
    "lhead",
    "headlabel",
    "taillabel",
    "labelloc",
    "labeljust",
    "labelfontsize",
    "labelfontcolor",
    "labelfontname",
    "labeldistance",
    "labelangle",
    "tooltip",
    "xlabel",
    "URL",
    "href",
    "target_url",
    "group",
    "ordering",
    "newrank",
    "clusterrank",
    "pencolor",
    "gradientangle",
    "image",
    "sides",
    "orientation",
    "overlap",
    "layout",
    "outputorder",
    "charset",
    "comment",
    "id",
    "nojustify",
    "center",
    "remincross",
    "searchsize",
    "decorate",
    "headport",
    "tailport",
    "edgetooltip",
    "layers",
    "layer",
];

/// Returns what is known of an attribute.
pub(crate) fn find(of: Of, key: &str) -> Option<&'static AttributeSpec> {
    all().find(|known| known.of == of && (known.name == key || known.aliases.contains(&key)))
}

/// Says whether a key is the name of an attribute that planctl uses.
pub(super) fn is_own_name(of: Of, key: &str) -> bool {
    find(of, key).is_some_and(|known| known.name == key)
}

// `contract.NAME` is one of several contracts (section 2.1).
fn is_named_contract(of: Of, key: &str) -> bool {
    of == Of::Node && key.strip_prefix("contract.").is_some_and(|name| !name.is_empty())
}

/// Reads one attribute, and reports what is wrong with its key or its value.
pub(crate) fn read<A: Attributes>(
    said: &mut A,
    key: &Spanned<String>,
    value: &Spanned<String>,
    found: &mut Vec<Diagnostic>,
) {
    match find(A::OF, &key.value) {
        Some(AttributeSpec { left_out: Some(why), .. }) => {
            let message = format!("`{}` has no effect here", key.value);
            let finding = Diagnostic::new(Code::P314, message).at(key.span.to(value.span), "");
            found.push(finding.help(format!("delete it: {why}")));
        }
        Some(known) => {
            let read = said.read(known.name, key.span, value.clone());
            found.extend(read.err().map(|unread| refused(&key.value, value, unread)));
        }
        None if is_named_contract(A::OF, &key.value) || DRAWN.contains(&key.value.as_str()) => {}
        None => unknown(A::OF, key, found),
    }
}

fn refused(key: &str, value: &Spanned<String>, unread: Unread) -> Diagnostic {
    let Spanned { value: text, span } = value;
    let finding = if unread.code == Code::P015 {
        let shown: String = text.chars().take(40).collect();
        let message = format!("`{}` is not a value of `{key}`", escape(&shown));
        Diagnostic::new(Code::P015, message).at(*span, unread.why)
    } else {
        Diagnostic::new(unread.code, unread.why).at(*span, "")
    };
    let finding = finding.help(unread.help);
    let is_quoted = span.end - span.start > text.len();
    match unread.meant {
        Some((meant, is_only)) if is_quoted => finding.fix(*span, format!("\"{meant}\""), is_only),
        Some((meant, is_only)) => finding.fix(*span, meant, is_only),
        None => finding,
    }
}

// Unknown ones are kept (D21): other readers of the dialect have their own.
fn unknown(of: Of, key: &Spanned<String>, found: &mut Vec<Diagnostic>) {
    if found.len() >= FINDINGS_MAX {
        return;
    }
    let Spanned { value: key, span } = key;
    let of_same = all().filter(|known| known.of == of);
    let names = of_same.flat_map(|known| std::iter::once(known.name).chain(known.aliases.iter().copied()));
    let shown = escape(key);
    let message = format!("`{shown}` is not a known attribute of {}", plural(of));
    let finding = Diagnostic::new(Code::P314, message).at(*span, "");
    let near = nearest(key, names);
    let finding = if near.is_none() { finding.level(Severity::Note) } else { finding };
    found.push(finding.near(near, *span, str::to_owned, "it is kept, and nothing follows from it"));
}

fn plural(of: Of) -> &'static str {
    match of {
        Of::Graph => "graphs",
        Of::Node => "nodes",
        Of::Edge => "edges",
    }
}

/// Returns a value as programs write it: a number or a flag as such, everything else as text.
pub(crate) fn json_value(of: Of, key: &str, value: &str) -> serde_json::Value {
    let as_number = || whole_number(value).map(serde_json::Value::from);
    let as_flag = || flag(value).ok().map(serde_json::Value::from);
    let read = match find(of, key).map(|known| known.form) {
        Some(ValueForm::Whole(..)) => as_number(),
        Some(ValueForm::Flag) => as_flag(),
        Some(ValueForm::Text | ValueForm::Phrase | ValueForm::Word(_)) | None => None,
    };
    read.unwrap_or_else(|| serde_json::Value::from(value))
}

/// Makes the class that a subgraph's label gives to its nodes (D18): `Loop A` gives `loop-a`.
pub(crate) fn class_of_label(label: &str) -> String {
    let letters = label.trim().chars().take(60).flat_map(char::to_lowercase);
    letters
        .filter_map(|c| match c {
            _ if c.is_whitespace() => Some('-'),
            '-' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        })
        .collect()
}

/// Returns the place of a span for people who look for what was said.
pub(crate) fn place(attribute: &Attribute) -> Span {
    attribute.key.span.to(attribute.value.span)
}

/// Returns the names of all attributes that planctl follows.
pub(crate) fn known_names(of: Of) -> impl Iterator<Item = &'static str> {
    all().filter(move |known| known.of == of && known.left_out.is_none()).map(|known| known.name)
}
