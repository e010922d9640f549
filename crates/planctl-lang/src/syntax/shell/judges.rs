//! Finds the files whose own verdict a contract asks for: scripts it runs for their exit code, and tests it names.

use super::files::looks_like_path;
use super::programs::{is_python, is_shell};
use super::{Command, Script, Simple, Word, all_commands};
use crate::text::Span;

/// A file, or a folder of files, that decides a contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judge {
    /// The path, without a leading `./` and a closing `/`.
    pub path: String,
    /// Where it stands in the script.
    pub span: Span,
}

/// Returns the scripts and tests whose exit code decides a script; a command that only feeds a pipe or a comparison is no
/// judge.
pub fn judges(script: &Script) -> Vec<Judge> {
    let mut found = Vec::new();
    of_script(script, &mut found);
    found
}

fn of_script(script: &Script, found: &mut Vec<Judge>) {
    for item in script.items.iter().filter(|item| !item.is_background) {
        let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
        for command in pipelines.filter_map(|pipeline| pipeline.commands.last()) {
            match command {
                Command::Simple(simple) => of_simple(simple, found),
                Command::Compound(compound) => {
                    compound
                        .conditions
                        .iter()
                        .chain(&compound.bodies)
                        .for_each(|inner| of_script(inner, found));
                }
                Command::Function { body, .. } => of_script(body, found),
                Command::Test { .. } => {}
            }
        }
    }
}

fn of_simple(simple: &Simple, found: &mut Vec<Judge>) {
    // A trap's command decides nothing.
    if simple.name() != Some("trap") {
        simple.inline.iter().for_each(|script| of_script(script, found));
    }
    let Some((program, arguments)) = all_commands(&simple.words).pop().and_then(<[Word]>::split_first) else {
        return;
    };
    let Some(name) = program.literal.as_deref() else { return };
    let has = |flags: &[&str]| arguments.iter().any(|word| flags.contains(&word.raw.as_str()));
    match name {
        shell if is_shell(shell) && !has(&["-c", "-n"]) => first_path(arguments, found),
        python if is_python(python) && !has(&["-c", "-m"]) => first_path(arguments, found),
        "node" | "ruby" | "perl" | "php" if !has(&["-c", "-e", "-p", "-n", "--check", "-l"]) => {
            first_path(arguments, found);
        }
        "source" | "." => first_path(arguments, found),
        "pytest" | "py.test" | "unittest" | "nose2" | "jest" | "vitest" | "mocha" | "ava" | "bats"
        | "prove" | "rspec" | "phpunit" | "shellspec" | "busted" | "tap" => {
            arguments.iter().for_each(|word| add(word, found));
        }
        "deno" if has(&["test", "run"]) => arguments.iter().skip(1).for_each(|word| add(word, found)),
        _ if name.contains('/') && !name.starts_with(['/', '~']) => add(program, found),
        _ => {}
    }
}

fn first_path(arguments: &[Word], found: &mut Vec<Judge>) {
    if let Some(word) = arguments.iter().find(|word| !word.raw.starts_with('-')) {
        add(word, found);
    }
}

fn add(word: &Word, found: &mut Vec<Judge>) {
    let Some(text) = word.literal.as_deref() else { return };
    let mut path = text.split_once("::").map_or(text, |(path, _)| path);
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    if looks_like_path(path) {
        found.push(Judge { path: path.trim_end_matches('/').to_owned(), span: word.span });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::shell::{Reading, read};

    #[test]
    fn what_is_run_for_its_exit_code_judges() {
        let scripts: [(&str, &[&str]); 17] = [
            ("bash tests/run.sh", &["tests/run.sh"]),
            ("./check.sh && test -f a.md", &["check.sh"]),
            ("uv run pytest tests/auth/ -x", &["tests/auth"]),
            ("timeout -k 1 60 python -m pytest tests/a.py::test_one", &["tests/a.py"]),
            ("npx jest src/a.test.js", &["src/a.test.js"]),
            ("sudo -u ada pytest tests/a.py", &["tests/a.py"]),
            ("env CI=1 timeout 60 uv run pytest tests/a.py", &["tests/a.py"]),
            ("git ls-files 'tests/*.sh' | xargs -n 1 bash tests/run.sh", &["tests/run.sh"]),
            ("if bash check.sh; then true; fi", &["check.sh"]),
            ("bash -c './check.sh'", &["check.sh"]),
            ("! bash repro.sh", &["repro.sh"]),
            ("bash slug.sh x | grep -q y", &[]),
            ("test \"$(bash slug.sh x)\" = y", &[]),
            ("bash -n lib/format.sh", &[]),
            ("uv run ruff check src/auth/", &[]),
            ("/usr/local/bin/check.sh", &[]),
            ("grep -q x docs/a.md", &[]),
        ];
        for (script, expected) in scripts {
            let Reading::Read(read) = read(script) else { panic!("{script} is bash") };
            let paths: Vec<String> = judges(&read).into_iter().map(|judge| judge.path).collect();
            assert_eq!(paths, expected, "{script}");
        }
    }
}
