//! Paths of a workspace as plans write them.

/// Returns a path or glob as it is compared: without a leading `./`.
pub(crate) fn clean(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// Says why a path is not one of the workspace: absolute, a home directory, or upwards.
pub(crate) fn leaves_workspace(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.starts_with('~') {
        return Some("is in a home directory");
    }
    let mut depth = 0_i64;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return Some("leaves the workspace");
        }
    }
    path.split('/').any(|part| part == "..").then_some("has `..` in it")
}
