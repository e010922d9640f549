//! Finds the comments of DOT and JSON, which a plan in another language does not have.

/// Returns where each comment begins: `//`, `/* */`, and a line of DOT that begins with `#`.
pub(super) fn places(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut is_line_start = true;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_line = rest.starts_with("//") || (next == '#' && is_line_start);
        let length = if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else if is_line {
            rest.find('\n').unwrap_or(rest.len())
        } else if next == '"' {
            quoted_length(rest)
        } else {
            next.len_utf8()
        };
        if is_line || rest.starts_with("/*") {
            found.push(at);
        }
        is_line_start = next == '\n' || (is_line_start && next.is_whitespace());
        at += length;
    }
    found
}

// A backslash takes the sign behind it with it.
fn quoted_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text[1..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}
