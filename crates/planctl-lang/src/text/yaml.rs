//! Values of a frontmatter.

/// Writes a text as a value of YAML; one that YAML would take for something else is quoted.
pub(crate) fn yaml_text(text: &str) -> String {
    let is_plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '@'));
    if is_plain {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
