//! Shows what changed between two texts, line by line, as people know it from version control.

use std::time::Duration;

use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// After this the shortest way is no longer sought: texts with little in common cost no more.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// Returns the unified difference; empty where the texts have the same lines.
pub fn unified(before: &str, after: &str) -> String {
    let mut compared = TextDiff::configure();
    let compared = compared.timeout(DIFF_TIMEOUT).diff_lines(before, after);
    compared.unified_diff().context_radius(CONTEXT).missing_newline_hint(false).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_shows_with_its_surroundings() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(unified(before, after), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
        assert_eq!(unified(before, before), "");
    }

    #[test]
    fn a_last_line_without_an_end_is_a_line() {
        assert_eq!(unified("a\nb", "a\nc"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }

    #[test]
    fn texts_without_anything_in_common_show_whole() {
        let before: String = (0..5000).map(|n| format!("a{n}\n")).collect();
        let after: String = (0..5000).map(|n| format!("b{n}\n")).collect();
        assert_eq!(unified(&before, &after).lines().count(), 10_001);
    }
}
