//! Texts that are cut to what a page shows of them: ends, parts, differences.

use std::borrow::Borrow;

use planctl_api::words;

/// The most bytes of one part of a long text.
const PART_BYTES_MAX: usize = 24 << 10;

/// The most bytes of one printed text on a page.
const PRINTED_BYTES_MAX: usize = 12 << 10;

/// A part of a text.
pub struct Cut {
    /// The lines, made safe.
    pub text: String,
    /// How many they are.
    pub lines: usize,
    /// Says that there are others.
    pub is_cut: bool,
    /// The place in the text of the line that says what is wrong.
    mark: Option<(usize, usize)>,
}

impl Cut {
    /// Returns the line that says what is wrong, with what is before and after it.
    pub fn marked(&self) -> Option<(&str, &str, &str)> {
        let (from, until) = self.mark?;
        Some((&self.text[..from], &self.text[from..until], &self.text[until..]))
    }
}

/// Returns the end of what a failed command printed, with its telling line marked.
pub fn tail_marked(text: &str, lines: impl Borrow<usize>, telling: Option<String>) -> Cut {
    let mut cut = tail(text, lines);
    cut.mark = telling.and_then(|telling| {
        let telling = words::printed_block(&telling);
        let telling = telling.lines().next()?.trim();
        let at = cut.text.rfind(telling).filter(|_| !telling.is_empty())?;
        let from = cut.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let until = cut.text[at..].find('\n').map_or(cut.text.len(), |length| at + length);
        Some((from, until))
    });
    cut
}

/// Returns the end of what a program printed, within what a page holds.
pub fn tail(text: &str, lines: impl Borrow<usize>) -> Cut {
    let whole = words::printed_block(text);
    let whole = whole.trim_end();
    let lines = words::last_lines(whole, *lines.borrow());
    let mut kept: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for line in lines.iter().rev() {
        bytes += line.len() + 1;
        if bytes > PRINTED_BYTES_MAX && !kept.is_empty() {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    let (count, is_cut) = (kept.len(), kept.len() < whole.lines().count());
    let mut text = kept.join("\n");
    if text.len() > PRINTED_BYTES_MAX {
        let from = (text.len() - PRINTED_BYTES_MAX..text.len()).find(|at| text.is_char_boundary(*at));
        text.replace_range(..from.unwrap_or(0), "…");
    }
    Cut { text, lines: count, is_cut, mark: None }
}

/// A page of a long text.
pub struct Part {
    /// The lines, made safe.
    pub text: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub count: usize,
    /// The number of its first line, from 1.
    pub first_line: usize,
}

/// Returns one part of what a program printed: the one with this number, else the last.
pub fn printed_part(text: &str, number: Option<usize>) -> Part {
    cut_part(&words::printed_block(text), number.unwrap_or(usize::MAX))
}

/// Returns one part of a plan's text: the one with this number, else the first.
pub fn plan_part(text: &str, number: Option<usize>) -> Part {
    cut_part(&words::plan_block(text), number.unwrap_or(1))
}

fn cut_part(whole: &str, number: usize) -> Part {
    let mut begins = vec![(0, 1)];
    let (mut at, mut line_number) = (0, 1);
    for line in whole.split_inclusive('\n') {
        let mut rest = line;
        while !rest.is_empty() {
            let (begin, _) = begins[begins.len() - 1];
            let room = (begin + PART_BYTES_MAX).saturating_sub(at);
            if rest.len() <= room {
                break;
            }
            // A line that fills a part by itself is cut; any other begins the next part.
            let is_whole = rest.len() == line.len() && at > begin;
            let cut = if is_whole { 0 } else { floor_char_boundary(rest, room) };
            at += cut;
            rest = &rest[cut..];
            begins.push((at, line_number));
        }
        at += rest.len();
        line_number += 1;
    }
    let count = begins.len();
    let number = number.clamp(1, count);
    let (begin, first_line) = begins[number - 1];
    let end = begins.get(number).map_or(whole.len(), |(begin, _)| *begin);
    Part { text: whole[begin..end].to_owned(), number, count, first_line }
}

/// Returns the last place up to `most` where a text can be cut; behind the first letter where there is no other.
fn floor_char_boundary(text: &str, most: usize) -> usize {
    let before = (1..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    before.unwrap_or_else(|| text.chars().next().map_or(text.len(), char::len_utf8))
}

/// One line of a difference.
pub struct DiffLine {
    /// Its class in the stylesheet.
    pub kind: &'static str,
    /// The sign before it.
    pub sign: &'static str,
    /// The same in words, for those who don't see it.
    pub words: &'static str,
    /// The line.
    pub text: String,
}

/// Reads a unified difference.
pub fn diff_lines(text: &str) -> Vec<DiffLine> {
    let of = |line: &str| {
        let (kind, sign, words, text) = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++") => ("added", "+", "added", &line[1..]),
            Some(b'-') if !line.starts_with("---") => ("removed", "−", "removed", &line[1..]),
            Some(b'@') => ("hunk", "", "", line),
            Some(b' ') => ("", "", "", &line[1..]),
            Some(_) | None => ("", "", "", line),
        };
        DiffLine { kind, sign, words, text: words::plan_block(text) }
    };
    text.lines().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_is_cut_to_its_end_within_the_bytes_of_a_page() {
        let lines: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        let cut = tail(&lines, 40);
        assert!(cut.is_cut && cut.lines == 40 && cut.text.ends_with("line 9999"), "{}", cut.text);
        let flood = "ä".repeat(1 << 20);
        assert!(tail(&flood, 40).text.len() <= PRINTED_BYTES_MAX + 4);
        assert_eq!(tail("\u{1b}[31mred\u{1b}[0m\n", 40).text, "red");
    }

    #[test]
    fn a_long_output_comes_in_parts_that_together_are_the_whole() {
        let lines: String = (1..=20_000).map(|line| format!("line {line}\n")).collect();
        let long = format!("{lines}{}\nend\n", "ä".repeat(40_000));
        let last = printed_part(&long, None);
        assert!(last.number == last.count && last.text.ends_with("end\n"), "{}", last.text);
        let parts: Vec<Part> = (1..=last.count).map(|number| printed_part(&long, Some(number))).collect();
        assert!(parts.iter().all(|part| !part.text.is_empty() && part.text.len() <= PART_BYTES_MAX));
        assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), long);
        let second = &parts[1];
        assert!(second.text.starts_with(&format!("line {}\n", second.first_line)), "{}", second.first_line);
        assert_eq!((printed_part("", None).count, printed_part("a\n", Some(9)).number), (1, 1));
    }
}
