//! The requirements of the goal for which a plan was drafted, each with the steps that prove it: a comment of the plan has them.

/// Begins that comment; a line for each requirement follows.
pub const REQUIREMENTS: &str = "<!-- Which step proves each requirement of the goal:\n";

/// A requirement of a drafted plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// `R1`
    pub id: String,
    /// The numbers of the steps whose contracts prove it.
    pub steps: Vec<u32>,
    /// Its author's words.
    pub text: String,
}

/// Returns the requirements that a plan's text has; none where it was not drafted.
pub fn requirements(text: &str) -> Vec<Requirement> {
    let comment = text.split_once(REQUIREMENTS).and_then(|(_, after)| after.split_once("-->"));
    comment.map(|(lines, _)| lines.lines().filter_map(requirement).collect()).unwrap_or_default()
}

/// Reads `R1: step 1, 2 (line 4): its words`.
fn requirement(line: &str) -> Option<Requirement> {
    let (id, rest) = line.split_once(": step ")?;
    let (steps, text) = rest.split_once(": ")?;
    let numbers = steps.split(" (").next().unwrap_or_default();
    let steps = numbers.split(", ").filter_map(|number| number.parse().ok()).collect();
    Some(Requirement { id: id.to_owned(), steps, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_comment_is_a_requirement_and_words_with_colons_stay_whole() {
        let text = format!(
            "# A\n\n{REQUIREMENTS}R1: step 1, 12 (line 4): print: all\nR2: step none: nothing\nno requirement\n-->\nR3: step 1: x"
        );
        let read = |id: &str, steps: &[u32], text: &str| Requirement {
            id: id.to_owned(),
            steps: steps.to_vec(),
            text: text.to_owned(),
        };
        assert_eq!(requirements(&text), [read("R1", &[1, 12], "print: all"), read("R2", &[], "nothing")]);
        assert_eq!(requirements("# A\n"), []);
        assert_eq!(requirements(REQUIREMENTS), [], "a comment without an end is none");
    }
}
