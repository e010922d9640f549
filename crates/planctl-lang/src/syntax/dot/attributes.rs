//! Which attributes there are, what their values are, and which of them planctl follows (DOT rows A1–A20, section 2.1).

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::dot::syntax::{Attribute, Of};
use crate::syntax::values;
use crate::text::limits::RETRIES_MAX;
use crate::text::near::nearest;
use crate::text::{Span, escape};

/// Above this many findings, nobody is told of one more unknown key: comparing each with all known ones takes its time.
const FINDINGS_MAX: usize = 1_000;

/// The type of an attribute's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Any text.
    Text,
    /// A whole number from, to.
    Whole(i64, i64),
    /// `true` or `false`.
    Flag,
    /// A duration (D10).
    Duration,
    /// The policy for a failure: `**on_fail:**` of plans, or a word of library entries.
    Policy,
    /// A time, and an answer that stops: `24 h, then reject`.
    AskDeadline,
    /// `file:` and `topic:` references, between commas or on lines.
    References,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// An attribute that planctl knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeSpec {
    pub of: Of,
    pub key: &'static str,
    pub value: Value,
    /// The name that planctl uses, where this one is another's.
    pub name: &'static str,
    /// Why planctl does not follow it (X rows).
    pub left_out: Option<&'static str>,
}

const FIDELITY: Value =
    Value::Word(&["full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"]);
const EFFORT: Value = Value::Word(&["low", "medium", "high", "minimal", "none", "xhigh", "max"]);
const ON: Value = Value::Word(&["success", "fail", "retry", "exhaust", "always"]);
const PACE: Value = Value::Word(&["primary", "alternate", "contingent", "emergency"]);
const RETRIES: Value = Value::Whole(0, RETRIES_MAX as i64);
const VISITS: Value = Value::Whole(1, 100);
const WAITS: Value = Value::Word(&["none", "standard", "aggressive", "linear", "patient"]);
const PARALLEL: Value = Value::Whole(1, 64);
const JOIN: Value = Value::Word(&["wait_all", "all", "first_success", "any"]);

/// The policies of library entries beside those of plans (H-32 to H-35).
const POLICIES: [&str; 5] = ["warn", "block", "skip", "abort", "escalate"];

const HOOKS: &str = "a worker's own hooks are its own affair, and planctl runs nothing around its tools";
const AUTO: &str = "no step passes because its worker says so: its contract decides";
const STEER: &str = "nothing is sent into a child run while it works";
const QUORUM: &str = "branches are joined when all ended, or at the first success";

const fn known(of: Of, key: &'static str, value: Value) -> AttributeSpec {
    AttributeSpec { of, key, value, name: key, left_out: None }
}

const fn alias(of: Of, key: &'static str, value: Value, name: &'static str) -> AttributeSpec {
    AttributeSpec { of, key, value, name, left_out: None }
}

const fn left_out(of: Of, key: &'static str, why: &'static str) -> AttributeSpec {
    AttributeSpec { of, key, value: Value::Text, name: key, left_out: Some(why) }
}

use Of::{Edge, Graph, Node};
use Value::{AskDeadline, Duration, Flag, Policy, References, Text, Whole, Word};

const KNOWN: &[AttributeSpec] = &[
    // A1–A7, A20
    known(Graph, "goal", Text),
    known(Graph, "label", Text),
    known(Graph, "default_max_retries", RETRIES),
    alias(Graph, "default_max_retry", RETRIES, "default_max_retries"),
    known(Graph, "retry_target", Text),
    known(Graph, "fallback_retry_target", Text),
    known(Graph, "default_fidelity", FIDELITY),
    alias(Graph, "context_fidelity_default", FIDELITY, "default_fidelity"),
    known(Graph, "model_stylesheet", Text),
    known(Graph, "stack.child_dotfile", Text),
    known(Graph, "stack.child_workdir", Text),
    left_out(Graph, "tool_hooks.pre", HOOKS),
    left_out(Graph, "tool_hooks.post", HOOKS),
    known(Graph, "max_visits", VISITS),
    alias(Graph, "max_node_visits", VISITS, "max_visits"),
    alias(Graph, "default_max_visits", VISITS, "max_visits"),
    known(Graph, "retry_policy", WAITS),
    alias(Graph, "default_retry_policy", WAITS, "retry_policy"),
    known(Graph, "thread_id", Text),
    alias(Graph, "default_thread_id", Text, "thread_id"),
    known(Graph, "loop_restart_persist_keys", Text),
    known(Graph, "max_restarts", VISITS),
    known(Graph, "max_parallel", PARALLEL),
    known(Graph, "stale_after", Duration),
    known(Graph, "ask_deadline", AskDeadline),
    known(Graph, "budget", Text),
    known(Graph, "priority", Word(&["low", "normal", "high", "urgent"])),
    known(Graph, "parallel_edges", Flag),
    // A8–A16, A20
    known(Node, "label", Text),
    known(Node, "prompt", Text),
    alias(Node, "llm_prompt", Text, "prompt"),
    known(Node, "shape", Text),
    known(Node, "type", Text),
    known(Node, "class", Text),
    known(Node, "max_retries", RETRIES),
    known(Node, "goal_gate", Flag),
    known(Node, "retry_target", Text),
    known(Node, "fallback_retry_target", Text),
    known(Node, "timeout", Duration),
    known(Node, "llm_model", Text),
    alias(Node, "model", Text, "llm_model"),
    known(Node, "llm_provider", Text),
    alias(Node, "provider", Text, "llm_provider"),
    known(Node, "reasoning_effort", EFFORT),
    known(Node, "fidelity", FIDELITY),
    known(Node, "thread_id", Text),
    known(Node, "profile", Text),
    known(Node, "retry_policy", WAITS),
    left_out(Node, "auto_status", AUTO),
    known(Node, "allow_partial", Flag),
    left_out(Node, "tool_hooks.pre", HOOKS),
    left_out(Node, "tool_hooks.post", HOOKS),
    known(Node, "max_visits", VISITS),
    alias(Node, "max_node_visits", VISITS, "max_visits"),
    known(Node, "human.default_choice", Text),
    known(Node, "human.free_text", Flag),
    known(Node, "mode", Text),
    known(Node, "join_policy", JOIN),
    known(Node, "max_parallel", PARALLEL),
    known(Node, "tool_command", Text),
    alias(Node, "script", Text, "tool_command"),
    known(Node, "server", Text),
    known(Node, "arguments", Text),
    known(Node, "for_each", Text),
    known(Node, "stack.child_dotfile", Text),
    known(Node, "stack.child_workdir", Text),
    known(Node, "stack.child_approval", Word(&["ask", "inherit"])),
    left_out(Node, "manager.actions", STEER),
    left_out(Node, "manager.poll_interval", STEER),
    left_out(Node, "k", QUORUM),
    left_out(Node, "quorum", QUORUM),
    left_out(Node, "error_policy", QUORUM),
    known(Node, "manager.stop_condition", Text),
    known(Node, "manager.max_cycles", VISITS),
    // Section 2.1: planctl's own attributes.
    known(Node, "contract", Text),
    known(Node, "expect_exit", Whole(0, 255)),
    known(Node, "contract_timeout", Duration),
    known(Node, "judge", Text),
    known(Node, "judge_by", Text),
    known(Node, "target", Text),
    known(Node, "subscriptions", References),
    known(Node, "changes", Text),
    known(Node, "protects", Text),
    known(Node, "locks", Text),
    known(Node, "workspace", Word(&["shared", "worktree"])),
    known(Node, "on_fail", Policy),
    known(Node, "ask_deadline", AskDeadline),
    // Section 2.4, ruling 8.
    known(Node, "escalate", Text),
    known(Node, "pace_level", PACE),
    known(Node, "result", Word(&["success", "failed", "fail"])),
    known(Node, "checkpoint", Flag),
    known(Node, "command", Text),
    // The fields of steps in markdown.
    known(Node, "needs", Text),
    known(Node, "when", Text),
    known(Node, "work", Word(&["code", "review"])),
    // The keys of a library's entries (seeds 2 and 3).
    known(Node, "description", Text),
    known(Node, "tool", Text),
    known(Node, "tool_hint", Text),
    known(Node, "required", Flag),
    known(
        Node,
        "verify.type",
        Word(&[
            "output_contains",
            "output_not_contains",
            "exit_code_zero",
            "file_exists",
            "any_output",
            "manual",
        ]),
    ),
    known(Node, "verify.value", Text),
    // A17–A19
    known(Edge, "label", Text),
    known(Edge, "condition", Text),
    known(Edge, "weight", Whole(-1_000_000, 1_000_000)),
    known(Edge, "fidelity", FIDELITY),
    known(Edge, "thread_id", Text),
    known(Edge, "loop_restart", Flag),
    known(Edge, "on", ON),
];

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
    KNOWN.iter().find(|known| known.of == of && known.key == key)
}

// `contract.NAME` is one of several contracts (section 2.1).
fn is_named_contract(of: Of, key: &str) -> bool {
    of == Of::Node && key.strip_prefix("contract.").is_some_and(|name| !name.is_empty())
}

/// Judges one attribute: its key, and its value by what the key's must be.
pub(crate) fn check_attribute(of: Of, attribute: &Attribute, found: &mut Vec<Diagnostic>) {
    let key = attribute.key.value.as_str();
    match find(of, key) {
        Some(known) => value(known, attribute, found),
        None if is_named_contract(of, key) || DRAWN.contains(&key) => {}
        None => unknown(of, attribute, found),
    }
}

// Unknown ones are kept (D21): other readers of the dialect have their own.
fn unknown(of: Of, attribute: &Attribute, found: &mut Vec<Diagnostic>) {
    if found.len() >= FINDINGS_MAX {
        return;
    }
    let key = attribute.key.value.as_str();
    let names = KNOWN.iter().filter(|known| known.of == of).map(|known| known.key);
    let shown = escape(key);
    let message = format!("`{shown}` is no attribute of {} that planctl knows", plural(of));
    let finding = Diagnostic::new(Code::P314, message).at(attribute.key.span, "");
    found.push(match nearest(key, names) {
        Some(near) => finding.help(format!("did you mean `{}`?", near.word)).fix(
            attribute.key.span,
            near.word,
            near.is_only,
        ),
        None => finding.level(Severity::Note).help("it is kept, and nothing follows from it"),
    });
}

fn plural(of: Of) -> &'static str {
    match of {
        Of::Graph => "graphs",
        Of::Node => "nodes",
        Of::Edge => "edges",
    }
}

fn value(known: &AttributeSpec, attribute: &Attribute, found: &mut Vec<Diagnostic>) {
    let text = attribute.value.value.as_str();
    let span = attribute.value.span;
    if let Some(why) = known.left_out {
        let message = format!("`{}` has no effect here", known.key);
        let finding = Diagnostic::new(Code::P314, message).at(attribute.key.span.to(span), "");
        found.push(finding.help(format!("delete it: {why}")));
        return;
    }
    // An empty value is as good as none, as in the dialect's own table of defaults.
    if text.trim().is_empty() {
        return;
    }
    let refused = |what: String, help: String| {
        let message = format!("`{}` is no value of `{}`", escape(&cut(text)), known.key);
        Diagnostic::new(Code::P015, message).at(span, what).help(help)
    };
    match known.value {
        Text => {}
        Whole(least, most) if whole(text).is_none_or(|number| number < least || number > most) => {
            let what = format!("a whole number from {least} to {most} was expected");
            found.push(refused(what, format!("write a number from {least} to {most}")));
        }
        Flag if flag(text).is_none() => {
            found.push(refused(
                "`true` or `false` was expected".to_owned(),
                "write `true` or `false`".to_owned(),
            ));
        }
        Duration if seconds(text).is_none() => {
            let help = "write a number and a unit of time: `250ms`, `900s`, `15m`, `2h`, `1d`";
            found.push(refused("a duration was expected".to_owned(), help.to_owned()));
        }
        Word(words) if !words.contains(&text.trim()) => {
            let near = nearest(text, words.iter().copied());
            let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            let help = near
                .map_or(format!("the values are {list}"), |near| format!("did you mean `{}`?", near.word));
            let finding = refused("not one of its values".to_owned(), help);
            found.push(match near {
                Some(near) => finding.fix(span, near.word, near.is_only),
                None => finding,
            });
        }
        Policy if !POLICIES.contains(&text.trim()) && !values::is_on_fail(text.trim()) => {
            let near = nearest(text, POLICIES);
            let help = near.map_or(
                "write `retry(2), then escalate`, or one of escalate, abort, skip, warn".to_owned(),
                |near| format!("did you mean `{}`?", near.word),
            );
            found.push(refused("nothing that can follow a failure".to_owned(), help));
        }
        AskDeadline => {
            if let Err(unread) = values::ask_deadline(text) {
                found.push(refused(unread.why, unread.help));
            }
        }
        References => {
            let entries = text.split(['\n', ',']).map(str::trim).filter(|entry| !entry.is_empty());
            let mut wrong = entries.filter(|entry| {
                let named = entry.strip_prefix("file:").or(entry.strip_prefix("topic:"));
                named.is_none_or(|name| name.trim().is_empty())
            });
            if let Some(entry) = wrong.next() {
                let message = format!("`{}` is no subscription", escape(&cut(entry)));
                let finding = Diagnostic::new(Code::P206, message).at(span, "");
                found.push(
                    finding
                        .help("write `file:` and a path, or `topic:` and a name, with commas between them"),
                );
            }
        }
        Whole(..) | Flag | Duration | Word(_) | Policy => {}
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Reads a whole number; `2.0` is one.
pub(crate) fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_fraction_of_nothing = |fraction: &str| fraction.chars().all(|digit| digit == '0');
    match text.split_once('.') {
        Some((whole, fraction)) if is_fraction_of_nothing(fraction) => whole.parse().ok(),
        Some(_) | None => text.parse().ok(),
    }
}

/// Returns a value as programs write it: a number or a flag as such, everything else as text.
pub(crate) fn json_value(of: Of, key: &str, value: &str) -> serde_json::Value {
    let as_number = || whole(value).map(serde_json::Value::from);
    let as_flag = || flag(value).map(serde_json::Value::from);
    let read = match find(of, key).map(|known| known.value) {
        Some(Whole(..)) => as_number(),
        Some(Flag) => as_flag(),
        Some(Text | Duration | Policy | AskDeadline | References | Word(_)) | None => None,
    };
    read.unwrap_or_else(|| serde_json::Value::from(value))
}

/// Reads `true` or `false` (A19: also as text).
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Reads a duration as seconds, at least one (D10); a number without a unit counts seconds.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let amount: u64 = text[..digits].parse().ok()?;
    let milliseconds = match &text[digits..] {
        "ms" => Some(amount),
        "s" | "" => amount.checked_mul(1_000),
        "m" => amount.checked_mul(60_000),
        "h" => amount.checked_mul(3_600_000),
        "d" => amount.checked_mul(86_400_000),
        _ => None,
    }?;
    const YEAR: u64 = 366 * 86_400;
    let seconds = milliseconds.div_ceil(1_000);
    (1..=YEAR).contains(&seconds).then_some(seconds)
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

/// Returns the other names of an attribute.
pub(crate) fn aliases(of: Of, name: &str) -> impl Iterator<Item = &'static str> {
    KNOWN
        .iter()
        .filter(move |known| known.of == of && known.name == name && known.key != name)
        .map(|known| known.key)
}

/// Returns the names of all attributes that planctl follows.
pub(crate) fn known_names(of: Of) -> impl Iterator<Item = &'static str> {
    KNOWN
        .iter()
        .filter(move |known| known.of == of && known.left_out.is_none() && known.key == known.name)
        .map(|known| known.key)
}

/// Judges a value that stands elsewhere than in DOT, under an attribute's name; returns the name that planctl uses.
pub(crate) fn check_value_of(
    of: Of,
    key: &str,
    key_span: Span,
    value: &crate::text::Spanned<String>,
    found: &mut Vec<Diagnostic>,
) -> Option<&'static str> {
    let key = crate::text::Spanned::new(key.to_owned(), key_span);
    let attribute = Attribute { key, value: value.clone() };
    check_attribute(of, &attribute, found);
    find(of, &attribute.key.value).filter(|known| known.left_out.is_none()).map(|known| known.name)
}
