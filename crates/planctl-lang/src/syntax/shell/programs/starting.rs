//! Which commands a command starts: `sudo`, `timeout`, `xargs`, `find -exec`, `uv run`, `npx` and their kin.

use super::{Program, Wraps, verb_at};
use crate::syntax::shell::Word;

/// Returns the command, and, behind programs like `sudo`, `timeout`, `xargs` and `find -exec`, each that they start from the
/// PATH.
pub(crate) fn wrapped_commands(words: &[Word]) -> Vec<&[Word]> {
    started(words, false)
}

/// Returns the command, and each that it starts, also in the way of `uv run`, `npx` and `python -m`.
pub(crate) fn all_commands(words: &[Word]) -> Vec<&[Word]> {
    started(words, true)
}

fn started(words: &[Word], from_anywhere: bool) -> Vec<&[Word]> {
    let mut found: Vec<&[Word]> = Vec::new();
    let mut words = words;
    while let Some(name) = words.first().and_then(|word| word.literal.as_deref()) {
        found.push(words);
        if name == "find" {
            found.extend(started_by_find(words));
            break;
        }
        match started_by(words) {
            Some((inner, has_own_path)) if from_anywhere || !has_own_path => words = inner,
            Some(_) | None => break,
        }
    }
    found
}

/// Returns the command that `uv run`, `bundle exec` and the like start in places of their own.
pub(in super::super) fn started_by_runner(words: &[Word]) -> Option<&[Word]> {
    started_by(words).and_then(|(inner, has_own_path)| has_own_path.then_some(inner))
}

// One level is enough: nobody nests them deeper.
fn started_by_find(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    let starts = |word: &Word| matches!(word.raw.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let places = (0..words.len()).filter(move |at| starts(&words[*at]));
    let inner = places.map(|at| {
        let rest = &words[at + 1..];
        let end = rest.iter().position(|word| matches!(word.text(), ";" | "+")).unwrap_or(rest.len());
        &rest[..end]
    });
    inner.filter(|inner| !inner.is_empty())
}

// Returns what a wrapper starts, and whether it looks that up in places of its own.
fn started_by(words: &[Word]) -> Option<(&[Word], bool)> {
    let (name, rest) = words.split_first()?;
    let known = Program::named(name.literal.as_deref()?)?;
    let wraps = known.wraps?;
    let asks = |word: &Word| matches!(word.raw.as_str(), "-v" | "-V");
    if name.raw == "command" && rest.first().is_some_and(asks) {
        return None;
    }
    let texts: Vec<&str> = words.iter().map(Word::text).collect();
    let own = match wraps.verbs {
        [] => rest,
        verbs => {
            let at = verb_at(&texts, Some(known))?;
            let is_name = || Program::named(texts[at]).is_some_and(|other| !other.reads.is_empty());
            match verbs.contains(&texts[at]) {
                true => &words[at + 1..],
                false if wraps.takes_names && is_name() => &words[at..],
                false => return None,
            }
        }
    };
    let inner = match wraps.behind {
        "" => behind_own_words(own, known, &wraps),
        option => {
            let mut at = 0;
            while own.get(at)?.raw != option {
                let word = own[at].raw.as_str();
                at += 1 + usize::from(word.starts_with('-').then(|| known.takes_next(word))?);
            }
            &own[at + 1..]
        }
    };
    Some((inner, wraps.has_own_path)).filter(|(inner, _)| !inner.is_empty())
}

fn behind_own_words<'a>(words: &'a [Word], known: &Program, wraps: &Wraps) -> &'a [Word] {
    let mut at = 0;
    let mut positionals = wraps.positionals;
    while let Some(word) = words.get(at) {
        let text = word.raw.as_str();
        if text.starts_with('-') && text.len() > 1 {
            at += 1 + usize::from(known.takes_next(text));
        } else if wraps.takes_assignments && text.contains('=') && !text.starts_with('=') {
            at += 1;
        } else if positionals > 0 {
            positionals -= 1;
            at += 1;
        } else {
            break;
        }
    }
    words.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tests::words_of;
    use super::*;

    #[test]
    fn wrappers_are_known_once_whatever_starts_the_program() {
        for (command, inner) in [
            ("uv run rm -rf x", "rm -rf x"),
            ("uv run --with rich -p 3.12 pytest -q", "pytest -q"),
            ("uv --project a run pytest", "pytest"),
            ("uv run -m pytest x", "pytest x"),
            ("sudo -u ada pytest tests", "pytest tests"),
            ("timeout -k 1 60 python3 -m pytest -x", "pytest -x"),
            ("env -C a B=1 nice -n 5 make", "make"),
            ("npx --yes eslint .", "eslint ."),
            ("pnpm -C web exec vitest run", "vitest run"),
            ("npm exec -- jest", "jest"),
            ("pnpm --filter web vitest run", "vitest run"),
            ("yarn test x", "yarn test x"),
            ("npm jest", "npm jest"),
            ("poetry run mypy .", "mypy ."),
            ("coverage run -m pytest", "pytest"),
            ("xargs -r -n 1 grep -q x", "grep -q x"),
            ("find . -name x -exec rm -r {} +", "rm -r {}"),
            ("uv pip install x", "uv pip install x"),
            ("command -v uv", "command -v uv"),
            ("python3 a.py -m b", "python3 a.py -m b"),
        ] {
            let words = words_of(command);
            let last = all_commands(&words).last().copied().unwrap_or_default();
            let texts: Vec<&str> = last.iter().map(Word::text).collect();
            assert_eq!(texts.join(" "), inner, "{command}");
        }
    }
}
