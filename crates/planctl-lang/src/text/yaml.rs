//! Values of a frontmatter.

/// Writes a text on one line as a value of YAML; one that YAML would take for something else is quoted as in JSON, which YAML reads.
pub(crate) fn yaml_text(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '@'));
    if is_plain { text } else { serde_json::Value::from(text).to_string() }
}
