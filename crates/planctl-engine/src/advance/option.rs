//! Which of a question's options an answer means: its words, its key, or its number (DOT H1, E3).

/// Returns a label as it is compared: in small letters, without the key before it (`[Y] `, `Y) `, `Y - `; DOT E3).
pub fn plain_label(label: &str) -> String {
    parts(label).1.trim().to_lowercase()
}

/// Returns the key that a label gives itself, in small letters: `y` of `[Y] Yes`, `Y) Yes` and `Y - Yes` (DOT H1).
pub fn key_of(label: &str) -> Option<String> {
    parts(label).0.map(str::to_lowercase)
}

/// Returns the option that an answer means; nothing where it means none, or where it could mean two: a typo chooses
/// nothing (DOT H3).
///
/// In this order: the option's words, with or without its key; the key; the number that counts from 1; its first letter.
pub fn match_option<'o>(options: &'o [String], answer: &str) -> Option<&'o str> {
    let wanted = plain_label(answer);
    if wanted.is_empty() {
        return None;
    }
    let by_words = options.iter().find(|option| plain_label(option) == wanted);
    if let Some(option) = by_words {
        return Some(option);
    }
    let bare = answer.trim().to_lowercase();
    let keyed = unique_match(options, |option| key_of(option).as_deref() == Some(bare.as_str()));
    if !matches!(keyed, Meant::None) {
        return keyed.one();
    }
    if let Ok(number) = bare.parse::<usize>() {
        return options.get(number.checked_sub(1)?).map(String::as_str);
    }
    let is_letter = bare.chars().count() == 1;
    let first = |option: &str| key_of(option).is_none() && plain_label(option).starts_with(&bare);
    unique_match(options, |option| is_letter && first(option)).one()
}

enum Meant<'o> {
    None,
    One(&'o str),
    Several,
}

impl<'o> Meant<'o> {
    fn one(self) -> Option<&'o str> {
        match self {
            Meant::One(option) => Some(option),
            Meant::None | Meant::Several => None,
        }
    }
}

fn unique_match<'o>(options: &'o [String], fits: impl Fn(&str) -> bool) -> Meant<'o> {
    let mut fitting = options.iter().filter(|option| fits(option));
    match (fitting.next(), fitting.next()) {
        (None, _) => Meant::None,
        (Some(option), None) => Meant::One(option),
        (Some(_), Some(_)) => Meant::Several,
    }
}

// The key of a label and the rest of it.
fn parts(label: &str) -> (Option<&str>, &str) {
    let label = label.trim();
    let mut letters = label.chars();
    let split = match (letters.next(), letters.next()) {
        (Some('['), Some(_)) => label.split_once("] ").filter(|(key, _)| key.chars().count() == 2),
        (Some(_), Some(')')) => label.split_once(") "),
        (Some(_), Some(' ')) => label.split_once(" - ").filter(|(key, _)| key.chars().count() == 1),
        _ => None,
    };
    match split {
        Some((key, rest)) => (Some(key.trim_start_matches('[')), rest),
        None => (None, label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(options: &[&str], answer: &str) -> Option<String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        match_option(&options, answer).map(str::to_owned)
    }

    #[test]
    fn dot_h1_an_option_is_meant_by_its_words_its_key_its_number_or_its_first_letter() {
        let options = ["[Y] Yes", "N) Not yet", "R - Review it", "Abort"];
        for (answer, option) in [
            ("[Y] Yes", "[Y] Yes"),
            ("yes", "[Y] Yes"),
            ("Y", "[Y] Yes"),
            (" y ", "[Y] Yes"),
            ("1", "[Y] Yes"),
            ("n", "N) Not yet"),
            ("not yet", "N) Not yet"),
            ("2", "N) Not yet"),
            ("r", "R - Review it"),
            ("a", "Abort"),
            ("4", "Abort"),
        ] {
            assert_eq!(meant(&options, answer).as_deref(), Some(option), "{answer}");
        }
    }

    #[test]
    fn dot_h3_what_is_none_of_the_options_or_might_be_two_chooses_nothing() {
        for answer in ["", " ", "0", "3", "ye", "x", "-1", "yess", "[Y]"] {
            assert_eq!(meant(&["[Y] Yes", "[N] No"], answer), None, "{answer}");
        }
        assert_eq!(meant(&["Approve", "Abort"], "a"), None);
        assert_eq!(meant(&["[A] Approve", "[A] Abort"], "a"), None);
        assert_eq!(meant(&["[A] Yes", "Abort"], "a").as_deref(), Some("[A] Yes"));
        assert_eq!(meant(&["Abort", "[2] Two", "Three"], "2").as_deref(), Some("[2] Two"));
    }
}
