//! Shows what changed between two texts, line by line, as people know it from version control.

use std::fmt::Write;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Texts with more changed lines than this are shown as one whole replacement, so that the cost stays bounded.
const EDITS_MAX: usize = 1000;

/// One line of the way from one text to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line<'t> {
    Same(&'t str),
    Gone(&'t str),
    Come(&'t str),
}

/// Returns the unified difference; empty where the texts have the same lines.
pub fn unified(before: &str, after: &str) -> String {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let lines = compare(&before, &after);
    let mut text = String::new();
    for (from, to) in hunks(&lines) {
        write_hunk(&mut text, &lines, from, to);
    }
    text
}

fn compare<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<Line<'t>> {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (rest_before, rest_after) = (&before[head..], &after[head..]);
    let tail = rest_before.iter().rev().zip(rest_after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle_before, kept) = rest_before.split_at(rest_before.len() - tail);
    let middle_after = &rest_after[..rest_after.len() - tail];
    let mut lines: Vec<Line<'t>> = before[..head].iter().map(|line| Line::Same(line)).collect();
    match shortest(middle_before, middle_after) {
        Some(middle) => lines.extend(middle),
        None => {
            lines.extend(middle_before.iter().map(|line| Line::Gone(line)));
            lines.extend(middle_after.iter().map(|line| Line::Come(line)));
        }
    }
    lines.extend(kept.iter().map(|line| Line::Same(line)));
    lines
}

/// Finds a shortest way by walking the diagonals, furthest first; `reach[k]` is how far diagonal k was followed.
fn shortest<'t>(before: &[&'t str], after: &[&'t str]) -> Option<Vec<Line<'t>>> {
    let (n, m) = (before.len(), after.len());
    let most = (n + m).min(EDITS_MAX);
    let middle = most + 1;
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=most {
        trace.push(reach[middle - edits - 1..=middle + edits + 1].to_vec());
        for step in 0..=edits {
            // Diagonals of this round lie two apart: -edits, -edits + 2, …, edits.
            let at = middle + 2 * step - edits;
            let comes_down = step == 0 || (step != edits && reach[at - 1] < reach[at + 1]);
            let mut x = if comes_down { reach[at + 1] } else { reach[at - 1] + 1 };
            while let Some(y) = (x + middle).checked_sub(at)
                && x < n
                && y < m
                && before[x] == after[y]
            {
                x += 1;
            }
            reach[at] = x;
            if x == n && (x + middle).checked_sub(at) == Some(m) {
                return Some(walk_back(before, after, &trace));
            }
        }
    }
    None
}

fn walk_back<'t>(before: &[&'t str], after: &[&'t str], trace: &[Vec<usize>]) -> Vec<Line<'t>> {
    let (mut x, mut y) = (before.len(), after.len());
    let mut lines = Vec::new();
    for (edits, reach) in trace.iter().enumerate().rev() {
        // Index of diagonal x - y in the slice that was kept of this round.
        let at = x + edits + 1 - y;
        let comes_down = edits > 0 && (x + edits == y || (y + edits != x && reach[at - 1] < reach[at + 1]));
        let start_x = match (edits, comes_down) {
            (0, _) => 0,
            (_, true) => reach[at + 1],
            (_, false) => reach[at - 1] + 1,
        };
        while x > start_x && y > 0 {
            x -= 1;
            y -= 1;
            lines.push(Line::Same(before[x]));
        }
        if edits == 0 {
            break;
        }
        if comes_down {
            y -= 1;
            lines.push(Line::Come(after[y]));
        } else {
            x -= 1;
            lines.push(Line::Gone(before[x]));
        }
    }
    lines.reverse();
    lines
}

fn hunks(lines: &[Line<'_>]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if matches!(line, Line::Same(_)) {
            continue;
        }
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            Some(_) | None => hunks.push((from, to)),
        }
    }
    hunks
}

fn write_hunk(text: &mut String, lines: &[Line<'_>], from: usize, to: usize) {
    let counted = |lines: &[Line<'_>]| {
        let gone = lines.iter().filter(|line| matches!(line, Line::Gone(_))).count();
        let come = lines.iter().filter(|line| matches!(line, Line::Come(_))).count();
        let same = lines.len() - gone - come;
        (same + gone, same + come)
    };
    let (skipped_before, skipped_after) = counted(&lines[..from]);
    let (count_before, count_after) = counted(&lines[from..to]);
    let heading =
        format!("@@ -{},{count_before} +{},{count_after} @@\n", skipped_before + 1, skipped_after + 1);
    text.push_str(&heading);
    for line in &lines[from..to] {
        let (mark, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Gone(line) => ('-', line),
            Line::Come(line) => ('+', line),
        };
        // Writing into a String can't fail.
        writeln!(text, "{mark}{line}").unwrap_or(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebuilt(lines: &[Line<'_>], is_after: bool) -> Vec<String> {
        let keep = |line: &Line<'_>| match line {
            Line::Same(text) => Some((*text).to_owned()),
            Line::Gone(text) => (!is_after).then(|| (*text).to_owned()),
            Line::Come(text) => is_after.then(|| (*text).to_owned()),
        };
        lines.iter().filter_map(keep).collect()
    }

    #[test]
    fn a_changed_line_shows_with_its_surroundings() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(unified(before, after), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
        assert_eq!(unified(before, before), "");
    }

    #[test]
    fn texts_that_are_empty_or_wholly_different_show() {
        assert_eq!(unified("", "a\n"), "@@ -1,0 +1,1 @@\n+a\n");
        assert_eq!(unified("a\nb\n", "c\n"), "@@ -1,2 +1,1 @@\n-a\n-b\n+c\n");
    }

    #[test]
    fn changes_far_apart_are_separate_hunks() {
        let before: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let mut after = before.clone();
        after[3] = "three".into();
        after.remove(30);
        assert_eq!(unified(&before.join("\n"), &after.join("\n")).matches("@@ -").count(), 2);
    }

    #[test]
    fn every_difference_leads_from_one_text_to_the_other_by_a_short_way() {
        // A small generator of its own, so that the cases are the same on every machine.
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let words = ["a", "b", "c", "d"];
        for _ in 0..2000 {
            let mut text = || -> Vec<&str> { (0..next(9)).map(|_| words[next(4) as usize]).collect() };
            let (before, after) = (text(), text());
            let lines = compare(&before, &after);
            assert_eq!(rebuilt(&lines, false), before);
            assert_eq!(rebuilt(&lines, true), after);
            let same = lines.iter().filter(|line| matches!(line, Line::Same(_))).count();
            assert_eq!(same, longest_common(&before, &after), "{before:?} {after:?}");
        }
    }

    fn longest_common(a: &[&str], b: &[&str]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                table[i + 1][j + 1] =
                    if a[i] == b[j] { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn texts_without_anything_in_common_cost_little() {
        let before: String = (0..5000).map(|n| format!("a{n}\n")).collect();
        let after: String = (0..5000).map(|n| format!("b{n}\n")).collect();
        assert_eq!(unified(&before, &after).lines().count(), 10_001);
    }
}
