//! Calls of tools in graphs: their keys become one command, and what it names is compared with the servers that there are.

use serde_json::{Map, Value};

use super::tree::{Kind, NodeTree, Workflow};
use super::walks::reached;
use crate::diagnostic::{Code, Diagnostic, did_you_mean};
use crate::facts::Facts;
use crate::syntax::dot::NodeAttributes;
use crate::syntax::source::Source;
use crate::syntax::written::{Text, Written};
use crate::text::near::ask_or_say;
use crate::text::{Span, Spanned, escape};
use crate::tools::{ToolUse, coerced, is_name, misfits};

/// The fields by which a plan uses a tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ToolFields {
    pub server: Option<Spanned<String>>,
    pub tool: Option<Spanned<String>>,
    pub arguments: Option<Spanned<String>>,
    pub for_each: Option<Spanned<String>>,
}

impl ToolFields {
    /// Returns the command that the fields mean, with the place of its arguments.
    pub(crate) fn command(&self) -> Result<Spanned<String>, Box<Diagnostic>> {
        let wrong = |span: Span, message: String, help: &str| {
            Err(Box::new(Diagnostic::new(Code::P015, message).at(span, "").help(help.to_owned())))
        };
        let (server, tool) = match (&self.server, &self.tool) {
            (Some(server), Some(tool)) => (server, tool),
            (Some(one), None) => {
                return wrong(one.span, "a server is named, and no tool".into(), "name its `tool`");
            }
            (None, Some(one)) => {
                return wrong(one.span, "a tool is named, and no server".into(), "name its `server`");
            }
            (None, None) => {
                let at = self.arguments.as_ref().map_or(Span::at(0), |arguments| arguments.span);
                return wrong(
                    at,
                    "arguments are given, and no tool".into(),
                    "name a `server` and its `tool`",
                );
            }
        };
        for name in [server, tool] {
            if !is_name(&name.value) {
                let message = format!("`{}` can't be the name of a server or a tool", escape(&name.value));
                return wrong(name.span, message, "write its name alone");
            }
        }
        let arguments = match &self.arguments {
            Some(text) => match read_arguments(&text.value) {
                Ok(arguments) => Value::Object(arguments),
                Err(why) => {
                    return wrong(text.span, format!("the arguments can't be read: {why}"), ARGUMENTS);
                }
            },
            None => Value::Object(Map::new()),
        };
        let used = ToolUse {
            server: server.value.clone(),
            tool: tool.value.clone(),
            arguments,
            for_each: self.for_each.as_ref().map(|list| list.value.clone()),
        };
        let span = self.arguments.as_ref().map_or(tool.span, |arguments| arguments.span);
        Ok(Spanned::new(used.command(), span))
    }
}

const ARGUMENTS: &str = "write a JSON object, or a list of `- name: value`";

/// Takes comments away that begin a line behind everything else.
fn without_last_comments(text: &str) -> &str {
    let mut plain = text.trim();
    while let Some(before) = plain.strip_suffix("-->")
        && let Some(at) = before.rfind("<!--")
        && before[..at].trim_end_matches([' ', '\t']).ends_with('\n')
    {
        plain = before[..at].trim_end();
    }
    plain
}

/// Reads arguments: a JSON object, in a fence or not, or a list; a comment may stand behind them.
fn read_arguments(text: &str) -> Result<Map<String, Value>, String> {
    let plain = without_last_comments(text);
    let plain = match plain.strip_prefix("```").or_else(|| plain.strip_prefix("~~~")) {
        Some(fenced) => {
            let inner = fenced.split_once('\n').map_or("", |(_, inner)| inner).trim_end();
            inner.trim_end_matches(['`', '~']).trim()
        }
        None => plain,
    };
    if plain.starts_with('{') {
        return serde_json::from_str(plain).map_err(|error| error.to_string());
    }
    let mut arguments = Map::new();
    for line in plain.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let entry = line.strip_prefix(['-', '*']).map(str::trim_start).unwrap_or(line);
        let (name, value) =
            entry.split_once(':').ok_or_else(|| format!("`{line}` is not of the form `name: value`"))?;
        let (name, value) = (name.trim().trim_matches('`'), value.trim());
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(arguments)
}

/// Makes the command of a call that names a tool in place of one.
pub(crate) fn with_command(node: &mut NodeTree, found: &mut Vec<Diagnostic>) {
    let NodeAttributes { server, tool, arguments, for_each, tool_command, .. } = &mut node.attributes;
    if node.kind.value != Kind::Call || !server.is_said() || tool_command.is_said() {
        return;
    }
    let said = |field: &Written<Text>| field.text().cloned();
    let fields = ToolFields {
        server: said(server),
        tool: said(tool),
        arguments: said(arguments),
        for_each: said(for_each),
    };
    match fields.command() {
        Ok(command) => {
            *tool_command = command.into();
            for field in [server, tool, arguments, for_each] {
                *field = Written::default();
            }
        }
        Err(refused) => found.push(*refused),
    }
}

/// Compares the calls of tools with the servers that there are, and what they refer to with what comes before them.
pub(crate) fn lint_there(source: &Source, workflow: &Workflow, facts: &Facts, found: &mut Vec<Diagnostic>) {
    for node in &workflow.nodes {
        let Some(command) = node.attributes.own_command() else { continue };
        let mut report = |span: Span, message: String, help: String| {
            let name = escape(node.title());
            found.push(Diagnostic::new(Code::P215, format!("`{name}`: {message}")).at(span, "").help(help));
        };
        let Some(used) = ToolUse::read(&command.value) else {
            for name in crate::tools::outputs_read(&command.value) {
                if let Err((message, help)) = check_is_before(workflow, node, &name) {
                    report(place_of_word(source, command.span, &name), message, help);
                }
            }
            continue;
        };
        for reference in used.references() {
            let written = match &reference {
                Ok(reference) => reference.to_string(),
                Err(_) => "${".to_owned(),
            };
            let span = place_of_word(source, command.span, &written);
            match reference {
                Err(unreadable) => report(span, unreadable.to_string(), REFERENCES.to_owned()),
                Ok(reference) => match &reference.node {
                    None if used.for_each.is_none() => {
                        report(span, "`${item}` is for a step with `for_each`".into(), REFERENCES.to_owned());
                    }
                    None => {}
                    Some(name) => {
                        if let Err((message, help)) = check_is_before(workflow, node, name) {
                            report(span, message, help);
                        }
                    }
                },
            }
        }
        served(source, command.span, &used, facts, &mut report);
    }
}

const REFERENCES: &str = "write `${steps.2.output}`, or a part of it: `${steps.2.output.items[0].id}`";

const EARLIER: &str = "refer to a step that comes before this one";

/// Says whether a node comes before another one on some path.
fn check_is_before(workflow: &Workflow, node: &NodeTree, name: &str) -> Result<(), (String, String)> {
    let Some(other) = workflow.nodes.iter().find(|other| other.id.value == name) else {
        let near = did_you_mean(name, workflow.nodes.iter().map(|node| node.id.value.as_str()));
        return Err((format!("there is no step `{}`", escape(name)), ask_or_say(near, EARLIER)));
    };
    let gives =
        matches!(other.kind.value, Kind::Call | Kind::Human | Kind::Task | Kind::Decision | Kind::SubPlan);
    if !gives {
        let help = "calls, questions, tasks and sub-plans give an output".to_owned();
        return Err((format!("`{}` gives no output", escape(name)), help));
    }
    let (places, out_edges) = (workflow.places(), workflow.out_edges());
    let place = |name: &str| places.get(name).copied();
    let next = |at: usize| out_edges[at].iter().map(|(to, _)| *to);
    let mut after = reached(out_edges.len(), place(name), next);
    match after.any(|at| Some(at) == place(&node.id.value)) {
        true => Ok(()),
        false => Err((format!("step `{}` does not come before it", escape(name)), EARLIER.to_owned())),
    }
}

/// Compares a call with the server that it names, as far as that is known.
fn served(
    source: &Source,
    at: Span,
    used: &ToolUse,
    facts: &Facts,
    report: &mut impl FnMut(Span, String, String),
) {
    let Some(servers) = &facts.servers else { return };
    let Some(list) = servers.get(&used.server) else {
        let near = did_you_mean(&used.server, servers.keys().map(String::as_str));
        let otherwise = format!("add `[servers.{}]` to planctl.toml, and trust it", escape(&used.server));
        let help = ask_or_say(near, otherwise);
        return report(at, format!("planctl.toml has no server `{}`", escape(&used.server)), help);
    };
    // A server that was never asked is asked when the step runs.
    let Some(list) = list else { return };
    let Some(tool) = list.tool(&used.tool) else {
        let near = did_you_mean(&used.tool, list.tools.iter().map(|tool| tool.name.as_str()));
        let help = ask_or_say(near, format!("`planctl tool ls {}` lists them", escape(&used.server)));
        let message = format!("the server `{}` has no tool `{}`", escape(&used.server), escape(&used.tool));
        return report(at, message, help);
    };
    let arguments = coerced(used.arguments.clone(), &tool.input);
    for misfit in misfits(&arguments, &tool.input) {
        if is_filled_later(&used.arguments, &misfit.at) {
            continue;
        }
        let named = misfit.at.first().map_or("", String::as_str);
        let help =
            format!("`planctl tool show {} {}` has the schema", escape(&used.server), escape(&used.tool));
        report(line_from(source, place_of_word(source, at, named)), escape(&misfit.message), help);
    }
}

/// Says whether a value, or the text that it was read out of, has a reference in it, so that nobody knows yet what it will be.
fn is_filled_later(arguments: &Value, path: &[String]) -> bool {
    let mut value = arguments;
    for name in path {
        let next = value.get(name).or_else(|| value.get(name.parse::<usize>().ok()?));
        let Some(next) = next else { break };
        value = next;
    }
    !std::ptr::eq(value, arguments) && !crate::tools::references(value).is_empty()
}

/// Finds a word within a place of the plan; the whole place where it is not there letter by letter.
fn place_of_word(source: &Source, at: Span, word: &str) -> Span {
    match source.slice(at).find(word).filter(|_| !word.is_empty()) {
        Some(found) => Span::new(at.start + found, at.start + found + word.len()),
        None => at,
    }
}

/// Returns the rest of the line on which a place is.
fn line_from(source: &Source, at: Span) -> Span {
    let line = source.line_span(source.line_of(at.start));
    let end = line.start + source.slice(line).trim_end().len();
    Span::new(at.start, end.max(at.end))
}
