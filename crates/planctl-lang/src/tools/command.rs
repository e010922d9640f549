//! A call of a tool as a command: the one line that a plan's text, an approval and a digest have of it.

use super::template::{Reference, Unfilled, references};
use serde_json::Value;

use crate::text::shell_quoted;

const BEGINS: &str = "planctl tool call ";
const FOR_EACH: &str = " --for-each ";

/// The use of a tool at a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolUse {
    /// The server, by its name in planctl.toml.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments, with references.
    pub arguments: Value,
    /// The list that it is used for, with references.
    pub for_each: Option<String>,
}

impl ToolUse {
    /// Writes it as a command that a person can type as well, where it refers to nothing.
    pub fn command(&self) -> String {
        let mut command =
            format!("{BEGINS}{} {} {}", self.server, self.tool, shell_quoted(&self.arguments.to_string()));
        if let Some(list) = &self.for_each {
            command.push_str(FOR_EACH);
            command.push_str(&shell_quoted(list));
        }
        command
    }

    /// Reads a command; `None` where it is another one, which the shell runs.
    pub fn read(command: &str) -> Option<ToolUse> {
        let rest = command.trim().strip_prefix(BEGINS)?;
        let (server, rest) = rest.split_once(' ')?;
        let (tool, rest) = rest.split_once(' ')?;
        let (arguments, rest) = unquoted(rest)?;
        let for_each = match rest {
            "" => None,
            rest => match unquoted(rest.strip_prefix(FOR_EACH)?)? {
                (list, "") => Some(list),
                (_, _) => return None,
            },
        };
        let is_named = is_name(server) && is_name(tool);
        let arguments = serde_json::from_str(&arguments).ok()?;
        is_named.then(|| ToolUse { server: server.to_owned(), tool: tool.to_owned(), arguments, for_each })
    }

    /// Returns every reference in the arguments and in the list.
    pub fn references(&self) -> Vec<Result<Reference, Unfilled>> {
        let list = self.for_each.iter().flat_map(|list| references(&Value::from(list.as_str())));
        references(&self.arguments).into_iter().chain(list).collect()
    }
}

/// Says whether a text can be the name of a server or of a tool.
pub fn is_name(text: &str) -> bool {
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(may_be) && !text.starts_with('-')
}

/// Reads a text in single quotes, and returns what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut whole = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        whole.push_str(part);
        match after.strip_prefix(r"\''") {
            Some(more) => {
                whole.push('\'');
                rest = more;
            }
            None => return Some((whole, after)),
        }
    }
}

/// The variable that names the folder with the outputs of earlier steps, to the commands of calls and decisions.
pub const OUTPUTS: &str = "PLANCTL_OUTPUTS";

/// Returns the steps whose outputs a command reads: it names them as `$PLANCTL_OUTPUTS/3`.
pub fn outputs_read(command: &str) -> Vec<String> {
    let mut read: Vec<String> = Vec::new();
    for (_, rest) in command.match_indices(OUTPUTS).map(|(at, word)| command.split_at(at + word.len())) {
        let rest = rest.strip_prefix('}').unwrap_or(rest);
        let rest = rest.strip_prefix('"').unwrap_or(rest);
        let Some(rest) = rest.strip_prefix('/') else { continue };
        let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let name = name.trim_end_matches('.');
        let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if is_name && !read.iter().any(|known| known == name) {
            read.push(name.to_owned());
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_of_a_tool_is_read_as_it_is_written() {
        for (arguments, for_each) in [
            (json!({}), None),
            (json!({"title": "it's 'quoted'", "n": 1}), Some("${steps.2.output.a}")),
            (json!({"deep": [{"x": "${item.y}"}], "line": "a\nb"}), Some("it's")),
        ] {
            let used = ToolUse {
                server: "github".into(),
                tool: "list_issues".into(),
                arguments,
                for_each: for_each.map(str::to_owned),
            };
            assert_eq!(ToolUse::read(&used.command()), Some(used.clone()), "{}", used.command());
        }
    }

    #[test]
    fn other_commands_are_left_to_the_shell() {
        for command in [
            "planctl tool call a b '{}' | jq .",
            "planctl tool call a b '{}' && rm -rf x",
            "planctl tool call a b \"{}\"",
            "planctl tool call a b 'no json'",
            "planctl tool call a; b '{}'",
            "echo planctl tool call a b '{}'",
        ] {
            assert_eq!(ToolUse::read(command), None, "{command}");
        }
    }

    #[test]
    fn the_outputs_that_a_command_reads_are_named_in_it() {
        let script = "jq .a \"$PLANCTL_OUTPUTS/3\" \"${PLANCTL_OUTPUTS}/list-issues\" \"$PLANCTL_OUTPUTS\"/3 $PLANCTL_OUTPUTS";
        assert_eq!(outputs_read(script), ["3", "list-issues"]);
    }
}
