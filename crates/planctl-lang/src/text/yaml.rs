//! Values of a frontmatter.

use super::one_line;

/// Writes a text on one line as a value of YAML; one that YAML would take for something else is quoted as in JSON, which YAML reads.
pub(crate) fn yaml_text(text: &str) -> String {
    let text = one_line(text);
    let is_plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '@'));
    if is_plain { text } else { serde_json::Value::from(text).to_string() }
}
