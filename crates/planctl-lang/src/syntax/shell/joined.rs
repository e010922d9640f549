//! Several scripts as one that passes where each of them does.

/// A script, and the exit code that is expected of it.
pub(crate) type Expecting<'s> = (&'s str, u8);

/// Joins scripts into one: it ends as the last of them if each before it ended as expected, else with another code than the
/// last one's.
///
/// Each runs in a subshell of its own, whose end stands on a line of its own. So no `||`, comment, here-document, `exit` or
/// `cd` of one reaches another. They are no operands of `&&`, since bash ignores `set -e` within those.
pub(crate) fn joined(scripts: &[Expecting<'_>]) -> String {
    let [before @ .., (last, expected)] = scripts else { return String::new() };
    if before.is_empty() {
        return (*last).to_owned();
    }
    let failed = if *expected == 1 { 2 } else { 1 };
    let before: String = before
        .iter()
        .map(|(script, expected)| format!("(\n{script}\n)\n[ $? -eq {expected} ] || exit {failed}\n"))
        .collect();
    format!("{before}(\n{last}\n)")
}
