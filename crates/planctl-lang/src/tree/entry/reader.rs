//! Reads the keys of an entry: its head, its steps, the nodes and edges of its graph.

use jsonc_parser::ast::{Array, Object, Value};
use planctl_engine::On;

use super::json::{name_of, scalar, span_of};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::dot::{EdgeAttributes, Of, names_of, read_attribute};
use crate::syntax::source::Source;
use crate::syntax::written::{VerifyType, Written};
use crate::text::limits::RETRIES;
use crate::text::limits::{EDGES_MAX, STEPS_MAX};
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape};
use crate::tree::workflow::{
    EdgeTree, Kind, NamedContract, NodeAttributes, NodeTree, Origin, Workflow, on_named, read_condition,
    say_condition, with_command,
};
use crate::tree::{OnFail, Then};

/// The keys of an entry that stand beside its steps or its graph.
const ENTRY: [&str; 14] = [
    "name",
    "title",
    "description",
    "domains",
    "triggers",
    "trigger_threshold",
    "stale_after_turns",
    "library",
    "then",
    "steps",
    "graph",
    "start",
    "nodes",
    "edges",
];

/// The keys of nodes and steps that have another name in DOT.
const OF_NODES: [(&str, &str); 6] = [
    ("name", "label"),
    ("title", "label"),
    ("action", "prompt"),
    ("reason", "escalate"),
    ("task", "prompt"),
    ("command", "tool_command"),
];

pub(super) struct Reader<'s> {
    pub source: &'s Source,
    pub found: Vec<Diagnostic>,
    /// Says that it was told that the entry is too large.
    pub is_told: bool,
}

impl Reader<'_> {
    /// Reads one entry: `steps`, `graph`, or `nodes` and `edges` of its own.
    pub(super) fn entry(&mut self, name: Option<Spanned<String>>, object: &Object<'_>) -> Workflow {
        let known: Vec<&str> = ENTRY.into_iter().chain(names_of(Of::Graph)).collect();
        self.keys("a plan", object, &known);
        let mut workflow = Workflow { name, ..Workflow::default() };
        self.is_told = false;
        self.head(object, &mut workflow);
        let has = |key: &str| object.properties.iter().find(|property| property.name.as_str() == key);
        match (has("graph"), has("steps"), has("nodes")) {
            (Some(graph), Some(steps), _) => {
                let both = Diagnostic::new(Code::P009, "the plan has both `steps` and `graph`")
                    .at(name_of(steps), "");
                self.found.push(
                    both.at(name_of(graph), "").help("keep one of them: they are two ways to say the same"),
                );
            }
            (Some(_), None, _) => {
                if let Some(graph) = self.object(object, "graph") {
                    let known: Vec<&str> =
                        ["start", "nodes", "edges"].into_iter().chain(names_of(Of::Graph)).collect();
                    self.keys("a graph", graph, &known);
                    self.of_graph(graph, &mut workflow);
                    self.graph(graph, &mut workflow);
                }
            }
            (None, Some(_), _) => {
                if let Some(steps) = self.array(object, "steps") {
                    self.steps(steps, &mut workflow);
                }
            }
            (None, None, Some(_)) => self.graph(object, &mut workflow),
            (None, None, None) => {
                let at = Span::new(object.range.start, object.range.start + 1);
                let missing =
                    Diagnostic::new(Code::P009, "the plan has neither `steps` nor `graph`").at(at, "");
                self.found.push(
                    missing
                        .help("write `\"steps\": [ … ]`, or `\"graph\": {\"start\", \"nodes\", \"edges\"}`"),
                );
            }
        }
        workflow
    }

    fn head(&mut self, object: &Object<'_>, workflow: &mut Workflow) {
        let title = self.text(object, "title");
        let name = self.text(object, "name");
        // In a library the plan's key is its name, and `name` is what people read.
        if workflow.name.is_some() {
            workflow.title = title.or(name);
        } else if object.properties.iter().any(|property| property.name.as_str() == "nodes") {
            (workflow.name, workflow.title) = (name, title);
        } else {
            workflow.title = title.or(name);
        }
        workflow.library.domains = self.texts(object, "domains");
        workflow.library.triggers = self.texts(object, "triggers");
        workflow.library.trigger_threshold = self.count(object, "trigger_threshold", 0);
        workflow.library.stale_after_turns = self.count(object, "stale_after_turns", 1);
        workflow.library.id = self.text(object, "library");
        workflow.library.then = self.text(object, "then");
        self.of_graph(object, workflow);
    }

    fn of_graph(&mut self, object: &Object<'_>, workflow: &mut Workflow) {
        for property in &object.properties {
            let key = property.name.as_str();
            if key != "label"
                && names_of(Of::Graph).any(|name| name == key)
                && let Some(value) = self.scalar(&format!("`{key}`"), &property.value)
            {
                let key = Spanned::new(key.to_owned(), name_of(property));
                read_attribute(&mut workflow.attributes, &key, &value, &mut self.found);
            }
        }
    }

    // Linear plans are graphs too (G-10): each step leads to the next, the last to the end.
    fn steps(&mut self, steps: &Array<'_>, workflow: &mut Workflow) {
        for (at, step) in steps.elements.iter().enumerate() {
            if self.is_full(workflow.nodes.len(), STEPS_MAX, "steps", span_of(step)) {
                break;
            }
            let Value::Object(object) = step else {
                self.wrong_type(&format!("step {}", at + 1), step, "an object");
                continue;
            };
            let id = Spanned::new(
                format!("step_{}", at + 1),
                Span::new(object.range.start, object.range.start + 1),
            );
            let kind = Spanned::new(Kind::Task, id.span);
            let node = NodeTree::new(id, span_of(step), kind);
            let mut node = self.node(node, object, "a step");
            stay_on_warn(&mut node, workflow);
            workflow.nodes.push(node);
        }
        let end = Span::new(steps.range.end.saturating_sub(1), steps.range.end);
        let done = Spanned::new("done".to_owned(), end);
        let exit = NodeTree::new(done, end, Spanned::new(Kind::Exit, end));
        let exit = NodeTree { origin: Origin::Order, ..exit };
        workflow.start = workflow.nodes.first().map(|first| first.id.clone());
        let ids: Vec<Spanned<String>> =
            workflow.nodes.iter().chain([&exit]).map(|node| node.id.clone()).collect();
        for pair in ids.windows(2) {
            if let [from, to] = pair {
                let on = Spanned::new(On::Success, from.span);
                let edge = EdgeTree::new(from.clone(), to.clone(), from.span, on);
                workflow.edges.push(EdgeTree { origin: Origin::Order, ..edge });
            }
        }
        workflow.nodes.push(exit);
    }

    fn graph(&mut self, graph: &Object<'_>, workflow: &mut Workflow) {
        workflow.start = self.text(graph, "start");
        let nodes = graph.properties.iter().find(|property| property.name.as_str() == "nodes");
        match nodes.map(|nodes| &nodes.value) {
            Some(Value::Object(nodes)) => {
                self.twice(nodes);
                for property in &nodes.properties {
                    let id = Spanned::new(property.name.as_str().to_owned(), name_of(property));
                    self.graph_node(id, &property.value, workflow);
                }
            }
            Some(Value::Array(nodes)) => {
                for (at, node) in nodes.elements.iter().enumerate() {
                    let Some(object) = node.as_object() else {
                        self.wrong_type(&format!("node {}", at + 1), node, "an object with an `id`");
                        continue;
                    };
                    match self.text(object, "id") {
                        Some(id) => self.graph_node(id, node, workflow),
                        None if value_of(object, "id").is_some() => {}
                        None => self.missing(object, "id"),
                    }
                }
            }
            Some(other) => self.wrong_type("`nodes`", other, "an object of nodes"),
            None => self.missing(graph, "nodes"),
        }
        if workflow.start.is_none() {
            let start = workflow.nodes.iter().find(|node| node.kind.value == Kind::Start);
            workflow.start = start.map(|node| node.id.clone());
        }
        match self.array(graph, "edges") {
            Some(edges) => self.edges(edges, workflow),
            None if graph.properties.iter().any(|property| property.name.as_str() == "edges") => {}
            None => self.missing(graph, "edges"),
        }
    }

    fn graph_node(&mut self, id: Spanned<String>, value: &Value<'_>, workflow: &mut Workflow) {
        if self.is_full(workflow.nodes.len(), STEPS_MAX, "nodes", id.span) {
            return;
        }
        let Value::Object(object) = value else {
            return self.wrong_type(&format!("the node `{}`", escape(&id.value)), value, "an object");
        };
        if id.value.trim().is_empty() || id.value.len() > 100 {
            let refused = Diagnostic::new(Code::P015, "a node's name has 1 to 100 bytes").at(id.span, "");
            self.found.push(refused.help("give it a short name, and put what people read into `name`"));
        }
        let kind = self.kind(object, &id);
        let node = NodeTree::new(id, span_of(value), kind);
        let node = self.node(node, object, "a node");
        self.escalation(&node, object);
        workflow.nodes.push(node);
    }

    // G-06: seed 2's form says both of each escalation. planctl's own form (`kind`) also has those that a plan only implies.
    fn escalation(&mut self, node: &NodeTree, object: &Object<'_>) {
        if node.kind.value != Kind::Escalate || value_of(object, "type").is_none() {
            return;
        }
        let name = escape(&node.id.value);
        let asked = [
            (
                node.attributes.escalate.is_said(),
                "reason",
                "say what the person is to know: `\"reason\": \"…\"`",
            ),
            (
                node.attributes.pace_level.is_said(),
                "PACE level",
                "write `\"pace_level\": \"contingent\"`, or another of primary, alternate, contingent, emergency",
            ),
        ];
        for (is_said, what, help) in asked {
            if !is_said {
                let missing = Diagnostic::new(Code::P009, format!("node `{name}` has no {what}"));
                self.found.push(missing.at(node.id.span, "").help(help));
            }
        }
    }

    // Seed 2 says `type`, planctl's own JSON says `kind`.
    fn kind(&mut self, object: &Object<'_>, id: &Spanned<String>) -> Spanned<Kind> {
        let Some(word) = self.text(object, "type").or_else(|| self.text(object, "kind")) else {
            return Spanned::new(Kind::Task, id.span);
        };
        if let Some(kind) = Kind::from_word(&word.value) {
            return Spanned::new(kind, word.span);
        }
        let words = Kind::words();
        let message = format!("`{}` is not a type of node", escape(&word.value));
        let refused = Diagnostic::new(Code::P015, message).at(word.span, "");
        let otherwise = format!("the types are {}", words.join(", "));
        self.found.push(refused.near(nearest(&word.value, words), word.span, literal, otherwise));
        Spanned::new(Kind::Task, word.span)
    }

    fn node(&mut self, mut node: NodeTree, object: &Object<'_>, what: &str) -> NodeTree {
        let known: Vec<&str> = ["id", "type", "kind", "verify"]
            .into_iter()
            .chain(OF_NODES.map(|(key, _)| key))
            .chain(names_of(Of::Node))
            .collect();
        let named = |key: &str| key.strip_prefix("contract.").is_some_and(|name| !name.is_empty());
        self.twice(object);
        for property in &object.properties {
            let key = property.name.as_str();
            if !known.contains(&key) && !named(key) && !key.starts_with('_') {
                self.unknown_key(what, key, name_of(property), &known);
                continue;
            }
            match key {
                "id" | "type" | "kind" => {}
                "verify" => self.verify(&property.value, &mut node),
                _ if key == "contract" || named(key) => {
                    if let Some(command) = self.scalar(&format!("`{key}`"), &property.value) {
                        let name = key.strip_prefix("contract.").map(str::to_owned);
                        node.contracts.push(NamedContract { name, command });
                    }
                }
                "arguments" if property.value.as_object().is_some() => {
                    let span = span_of(&property.value);
                    node.attributes.arguments = Spanned::new(self.source.slice(span).to_owned(), span).into();
                }
                "class" => {
                    if let Some(classes) = self.scalar("`class`", &property.value) {
                        let classes =
                            classes.value.split(',').map(str::trim).filter(|class| !class.is_empty());
                        node.classes.extend(classes.take(20).map(str::to_owned));
                    }
                }
                _ => self.node_value(key, name_of(property), &property.value, &mut node),
            }
        }
        node.contracts.sort_by(|one, other| one.name.cmp(&other.name));
        with_command(&mut node, &mut self.found);
        node
    }

    fn node_value(&mut self, key: &str, key_span: Span, value: &Value<'_>, node: &mut NodeTree) {
        let alias = OF_NODES.iter().find(|(name, _)| *name == key).map_or(key, |(_, own)| *own);
        // A decision may have a command of its own, which is no call of a tool.
        let alias = if key == "command" && node.kind.value == Kind::Decision { "command" } else { alias };
        let text = match value {
            Value::Array(list) => {
                let entries: Option<Vec<String>> = list.elements.iter().map(scalar).collect();
                entries.map(|entries| Spanned::new(entries.join("\n"), span_of(value)))
            }
            Value::NullKeyword(_) => return,
            Value::StringLit(_) | Value::NumberLit(_) | Value::BooleanLit(_) | Value::Object(_) => {
                scalar(value).map(|text| Spanned::new(text, span_of(value)))
            }
        };
        let Some(text) = text else {
            return self.wrong_type(
                &format!("`{}`", escape(key)),
                value,
                "a text, a number, a flag or a list of texts",
            );
        };
        let key = Spanned::new(alias.to_owned(), key_span);
        read_attribute(&mut node.attributes, &key, &text, &mut self.found);
    }

    fn verify(&mut self, value: &Value<'_>, node: &mut NodeTree) {
        let Value::Object(object) = value else {
            return self.wrong_type("`verify`", value, "an object with a `type`");
        };
        self.keys("`verify`", object, &["type", "value"]);
        for (key, name) in [("type", "verify.type"), ("value", "verify.value")] {
            if let Some(text) = self.text(object, key) {
                let name = Spanned::new(name.to_owned(), text.span);
                read_attribute(&mut node.attributes, &name, &text, &mut self.found);
            }
        }
        let NodeAttributes { verify_type, verify_value, .. } = &node.attributes;
        let needs_value = matches!(
            verify_type.value(),
            Some(VerifyType::OutputContains | VerifyType::OutputNotContains | VerifyType::FileExists)
        );
        if !verify_type.is_said() {
            self.missing(object, "type");
        } else if needs_value && !verify_value.is_said() {
            self.missing(object, "value");
        }
    }

    fn edges(&mut self, edges: &Array<'_>, workflow: &mut Workflow) {
        for (at, edge) in edges.elements.iter().enumerate() {
            if self.is_full(workflow.edges.len(), EDGES_MAX, "edges", span_of(edge)) {
                return;
            }
            let Value::Object(object) = edge else {
                self.wrong_type(&format!("edge {}", at + 1), edge, "an object with `from` and `to`");
                continue;
            };
            let known = [
                "from",
                "to",
                "condition",
                "on",
                "when",
                "label",
                "weight",
                "loop_restart",
                "fidelity",
                "thread_id",
            ];
            self.keys("an edge", object, &known);
            let (from, to) = (self.text(object, "from"), self.text(object, "to"));
            let (Some(from), Some(to)) = (from, to) else {
                for key in ["from", "to"] {
                    if !object.properties.iter().any(|property| property.name.as_str() == key) {
                        self.missing(object, key);
                    }
                }
                continue;
            };
            let tree = self.edge(object, from, to, span_of(edge));
            workflow.edges.push(tree);
        }
    }

    fn edge(
        &mut self,
        object: &Object<'_>,
        from: Spanned<String>,
        to: Spanned<String>,
        span: Span,
    ) -> EdgeTree {
        // An edge without a condition is always followed (G-09).
        let mut tree = EdgeTree::new(from, to, span, Spanned::new(On::Always, span));
        for key in ["condition", "on"] {
            let Some(text) = self.text(object, key) else { continue };
            match on_named(&text.value) {
                Some(on) => tree.on = Spanned::new(on, text.span),
                None if key == "condition" && text.value.contains('=') => self.condition(&text, &mut tree),
                None => self.unknown_outcome(&text),
            }
        }
        if let Some(text) = self.text(object, "when") {
            self.condition(&text, &mut tree);
        }
        tree.label = self.text(object, "label");
        let mut said = EdgeAttributes::default();
        for key in ["weight", "loop_restart", "fidelity", "thread_id"] {
            let property = object.properties.iter().find(|property| property.name.as_str() == key);
            let Some(property) = property else { continue };
            let Some(value) = self.scalar(&format!("`{key}`"), &property.value) else { continue };
            let key = Spanned::new(key.to_owned(), name_of(property));
            read_attribute(&mut said, &key, &value, &mut self.found);
        }
        tree.say(&said);
        tree
    }

    fn condition(&mut self, text: &Spanned<String>, tree: &mut EdgeTree) {
        if let Some(reading) = read_condition(self.source, text, &mut self.found)
            && !reading.condition.is_always()
        {
            say_condition(tree, Spanned::new(reading.condition, text.span));
        }
    }

    fn unknown_outcome(&mut self, text: &Spanned<String>) {
        let words = ["on_success", "on_fail", "on_retry", "on_exhaust", "always"];
        let message = format!("`{}` is not a condition of an edge", escape(&text.value));
        let refused = Diagnostic::new(Code::P303, message).at(text.span, "");
        let otherwise = format!("write one of {}, or `KEY=VALUE`", words.join(", "));
        self.found.push(refused.near(nearest(&text.value, words), text.span, literal, otherwise));
    }

    pub(super) fn unknown_key(&mut self, what: &str, key: &str, span: Span, known: &[&str]) {
        let message = format!("`{}` is not a known key of {what}", escape(key));
        let finding = Diagnostic::new(Code::P314, message).at(span, "");
        let near = nearest(key, known.iter().copied());
        self.found.push(finding.near(near, span, literal, "delete it: nothing follows from it"));
    }

    fn missing(&mut self, object: &Object<'_>, key: &str) {
        let at = Span::new(object.range.start, object.range.start + 1);
        let missing = Diagnostic::new(Code::P009, format!("`{key}` is missing")).at(at, "in this object");
        self.found.push(missing.help(format!("write `\"{key}\": …`")));
    }

    fn is_full(&mut self, count: usize, most: usize, what: &str, span: Span) -> bool {
        if count >= most && !std::mem::replace(&mut self.is_told, true) {
            let message = format!("the graph has more than {most} {what}");
            let full = Diagnostic::new(Code::P008, message)
                .at(Span::new(span.start, span.start + 1), "the first that is too many");
            self.found.push(full.help("split it into several plans"));
        }
        count >= most
    }

    pub(super) fn object<'v, 's>(&mut self, object: &'v Object<'s>, key: &str) -> Option<&'v Object<'s>> {
        let value = value_of(object, key)?;
        let found = value.as_object();
        if found.is_none() {
            self.wrong_type(&format!("`{key}`"), value, "an object");
        }
        found
    }

    fn array<'v, 's>(&mut self, object: &'v Object<'s>, key: &str) -> Option<&'v Array<'s>> {
        let value = value_of(object, key)?;
        let found = value.as_array();
        if found.is_none() {
            self.wrong_type(&format!("`{key}`"), value, "a list");
        }
        found
    }

    fn text(&mut self, object: &Object<'_>, key: &str) -> Option<Spanned<String>> {
        let value = value_of(object, key)?;
        let text = value.as_string_lit();
        if text.is_none() {
            self.wrong_type(&format!("`{key}`"), value, "a text");
        }
        Some(Spanned::new(text?.value.to_string(), span_of(value)))
    }

    fn texts(&mut self, object: &Object<'_>, key: &str) -> Vec<Spanned<String>> {
        let Some(list) = self.array(object, key) else { return Vec::new() };
        let mut texts = Vec::new();
        for entry in &list.elements {
            match entry.as_string_lit() {
                Some(text) => texts.push(Spanned::new(text.value.to_string(), span_of(entry))),
                None => self.wrong_type(&format!("an entry of `{key}`"), entry, "a text"),
            }
        }
        texts
    }

    fn count(&mut self, object: &Object<'_>, key: &str, least: u32) -> Option<Spanned<u32>> {
        let value = value_of(object, key)?;
        let number = value.as_number_lit().and_then(|number| number.value.parse::<u32>().ok());
        let number = number.filter(|number| *number >= least);
        if number.is_none() {
            self.wrong_type(&format!("`{key}`"), value, &format!("a whole number from {least}"));
        }
        Some(Spanned::new(number?, span_of(value)))
    }

    fn scalar(&mut self, what: &str, value: &Value<'_>) -> Option<Spanned<String>> {
        let text = scalar(value);
        if text.is_none() && !matches!(value, Value::NullKeyword(_)) {
            self.wrong_type(what, value, "a text, a number or a flag");
        }
        text.map(|text| Spanned::new(text, span_of(value)))
    }
}

// X-13, H-36: `warn` of a step in a library, which holds where nothing is said, keeps the run at the step, which is tried again; a person is asked after the last
// attempt. Only a step that is not required is passed over with a warning.
fn stay_on_warn(node: &mut NodeTree, workflow: &Workflow) {
    let said = &node.attributes;
    let span = match said.on_fail.text() {
        Some(policy) if policy.value.trim() == "warn" => policy.span,
        Some(_) => return,
        None => node.id.span,
    };
    if said.required.is(&false) || said.allow_partial.is(&true) {
        return;
    }
    let says_how_often = said.max_retries.is_said()
        || said.retry_policy.is_said()
        || workflow.attributes.default_max_retries.is_said()
        || workflow.attributes.retry_policy.is_said();
    let retries = (!says_how_often).then_some(RETRIES);
    let policy = OnFail { retries, then: Some(Then::Escalate) };
    node.attributes.on_fail = Written::of(Spanned::new(policy, span));
}

fn literal(word: &str) -> String {
    format!("\"{word}\"")
}

// Of a key that is given twice the last counts, as everywhere in JSON.
fn value_of<'v, 's>(object: &'v Object<'s>, key: &str) -> Option<&'v Value<'s>> {
    object.properties.iter().rfind(|property| property.name.as_str() == key).map(|property| &property.value)
}
