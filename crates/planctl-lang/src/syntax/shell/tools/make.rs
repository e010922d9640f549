//! make: its files, what they include, and what the recipes of its goals run.

use std::collections::{BTreeMap, BTreeSet};

use planctl_glob::is_glob;

use super::super::deciding::Deciding;
use super::super::following::{At, Follower};
use super::super::values::{escape_glob, joined, normalise};
use super::super::{Arguments, Word};
use super::values_of;

/// The names that make looks for, in its order.
const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// The first or last words of goals that check and make nothing: a file of their name would have make run nothing.
const CHECKS: [&str; 14] = [
    "acceptance",
    "check",
    "checks",
    "ci",
    "coverage",
    "e2e",
    "integration",
    "lint",
    "smoke",
    "spec",
    "test",
    "tests",
    "unit",
    "verify",
];
/// The most files of one make that are read.
const FILES_MAX: usize = 50;

/// The content of a makefile.
#[derive(Default)]
struct Makefile {
    variables: BTreeMap<String, String>,
    rules: Vec<Rule>,
    /// Included files, and whether make goes on without them.
    included: Vec<(String, bool)>,
}

#[derive(Default)]
struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

impl Follower<'_> {
    /// Takes note of the files that make reads and runs.
    pub(super) fn make(&mut self, rest: &[Word], at: At) {
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, &["-C", "--directory"]) {
            self.change_folder(&folder);
        }
        let named = values_of(rest, &["-f", "--file", "--makefile"]);
        named.iter().for_each(|file| self.run_file(file, at));
        let Some(folder) = self.folder_here() else {
            self.deciding.untold(rest.first().map_or_else(Default::default, |word| word.span));
            self.shell.folder = outside;
            return;
        };
        let mut files: Vec<String> = named.iter().map(|file| joined(&folder, file.text())).collect();
        if files.is_empty() {
            let found =
                NAMES.iter().map(|name| joined(&folder, name)).find(|path| self.look.has(path) == Some(true));
            files.extend(found);
        }
        let goals = Arguments::read(rest, "CfjloIW", &["directory", "file", "makefile", "jobs"]).positional;
        let goals =
            goals.iter().map(|word| word.text().to_owned()).filter(|goal| !goal.contains('=')).collect();
        self.makefiles(&folder, files, goals);
        self.shell.folder = outside;
    }

    fn makefiles(&mut self, folder: &str, mut files: Vec<String>, goals: Vec<String>) {
        let mut made = Makefile::default();
        let (mut read, mut optional) = (BTreeSet::new(), BTreeSet::new());
        while let Some(path) = files.pop() {
            if read.len() >= FILES_MAX || !read.insert(path.clone()) {
                continue;
            }
            let Some(text) = self.look.read(&path) else { continue };
            made.read(&text);
            for (name, is_optional) in std::mem::take(&mut made.included) {
                let included = normalise(&joined(folder, &name));
                // Lists of dependencies are written by compilers.
                if is_optional && (name.ends_with(".d") || name.contains("dep")) {
                    continue;
                }
                if is_glob(&included) {
                    self.fix(included);
                    continue;
                }
                match is_optional {
                    true => drop(optional.insert(included.clone())),
                    false => self.keep(included.clone()),
                }
                files.push(included);
            }
        }
        let targets = made.rules.iter().flat_map(|rule| &rule.targets);
        let targets: BTreeSet<String> = targets.map(|target| normalise(&joined(folder, target))).collect();
        // make makes one that a rule is there for.
        for included in optional {
            match targets.contains(&included) {
                true => self.keep(included),
                false => self.fix(escape_glob(&included)),
            }
        }
        let (lines, checks) = made.recipes(goals);
        for check in checks {
            self.fix(escape_glob(&joined(folder, &check)));
        }
        self.recipes(folder, lines, &targets);
    }

    /// Follows the lines of recipes. They may run what a rule makes, or a program: a script is text, and is there.
    pub(super) fn recipes(&mut self, folder: &str, lines: Vec<String>, targets: &BTreeSet<String>) {
        let before = std::mem::take(&mut self.deciding);
        let was = std::mem::replace(&mut self.has_built, true);
        for line in lines {
            self.follow_text(folder, &line);
        }
        self.has_built = was;
        let Deciding { kept, fixed, .. } = std::mem::replace(&mut self.deciding, before);
        for path in kept.into_iter().filter(|path| !targets.contains(path)) {
            if path.contains('*') || self.look.read(&path).is_some() {
                self.keep(path);
            }
        }
        self.deciding.fixed.extend(fixed);
    }
}

impl Rule {
    fn is_of(&self, target: &str) -> bool {
        self.targets.iter().any(|one| one == target)
    }
}

impl Makefile {
    fn read(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            if let Some(recipe) = line.strip_prefix('\t') {
                if let Some(rule) = self.rules.last_mut() {
                    rule.recipe.push(recipe.trim_start_matches(['@', '-', '+', ' ']).to_owned());
                }
                continue;
            }
            let line = line.split('#').next().unwrap_or("").trim();
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if matches!(word, "include" | "-include" | "sinclude") {
                let names = without_wildcards(&self.expanded(rest));
                let names = names.split_whitespace().filter(|name| !name.contains('$'));
                self.included.extend(names.map(|name| (name.to_owned(), word != "include" || is_glob(name))));
                continue;
            }
            if let Some((name, value)) = assigned(line) {
                self.variables.insert(name.to_owned(), value.to_owned());
                continue;
            }
            if let Some((targets, needs)) = line.split_once(':') {
                let (needs, recipe) = needs.split_once(';').unwrap_or((needs, ""));
                let words = |text: &str| self.expanded(text).split_whitespace().map(str::to_owned).collect();
                let recipe: Vec<String> = Some(recipe.trim())
                    .filter(|line| !line.is_empty())
                    .map(str::to_owned)
                    .into_iter()
                    .collect();
                let rule =
                    Rule { targets: words(targets), needs: words(needs.trim_start_matches(':')), recipe };
                self.rules.push(rule);
            }
        }
    }

    /// Returns the commands that making some goals may run, and the goals among all of these that a file would stand for.
    fn recipes(&self, goals: Vec<String>) -> (Vec<String>, Vec<String>) {
        let first = || {
            let targets = self.rules.iter().flat_map(|rule| &rule.targets);
            targets
                .filter(|target| !target.starts_with('.') && !target.contains('%'))
                .take(1)
                .cloned()
                .collect()
        };
        let mut open: Vec<String> = if goals.is_empty() { first() } else { goals };
        let mut seen = BTreeSet::new();
        let (mut lines, mut checks) = (Vec::new(), Vec::new());
        let is_phony =
            |goal: &String| self.rules.iter().any(|rule| rule.is_of(".PHONY") && rule.needs.contains(goal));
        while let Some(goal) = open.pop() {
            if !seen.insert(goal.clone()) {
                continue;
            }
            let rules = || self.rules.iter().filter(|rule| rule.is_of(&goal));
            let makes_nothing = |line: &String| !line.contains("$@") && !line.contains("-o ");
            if is_check(&goal)
                && !is_phony(&goal)
                && rules().any(|rule| !rule.recipe.is_empty())
                && rules().all(|rule| rule.recipe.iter().all(makes_nothing))
            {
                checks.push(goal.clone());
            }
            for rule in rules() {
                open.extend(rule.needs.iter().cloned());
                let script =
                    rule.recipe.iter().map(|line| self.expanded(line)).map(|line| line.replace("$$", "$"));
                lines.extend(script);
            }
        }
        (lines, checks)
    }

    // `$(NAME)` by its value; a name that is not known stays, as a variable that nobody can tell.
    fn expanded(&self, text: &str) -> String {
        let mut text = text.replace("$(MAKE)", "make").replace("${MAKE}", "make");
        for _ in 0..3 {
            for (name, value) in &self.variables {
                if text.contains(name.as_str()) {
                    text = text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
                }
            }
        }
        text
    }
}

// `$(wildcard *.mk)` is the files that match.
fn without_wildcards(text: &str) -> String {
    let mut parts = text.split("$(wildcard ");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        made.push_str(&part.replacen(')', " ", 1));
    }
    made
}

/// Says whether a goal's name is that of a check: `test`, `unit-tests`, `lint_python`.
fn is_check(goal: &str) -> bool {
    let mut words = goal.split(['-', '_', ':']);
    let (first, last) = (words.next(), words.next_back());
    !goal.contains(['.', '/', '%', '$']) && first.into_iter().chain(last).any(|word| CHECKS.contains(&word))
}

fn assigned(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").or(line.strip_prefix("override ")).unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!', ' ']).trim();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(is_name)).then(|| (name, value.trim()))
}
