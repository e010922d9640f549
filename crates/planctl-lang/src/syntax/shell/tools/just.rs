//! just: its files, what they import, and what the recipes that are asked for run.

use std::collections::{BTreeMap, BTreeSet};

use super::super::following::{At, Follower};
use super::super::values::{joined, normalise, parent};
use super::super::{Arguments, Word};
use super::{upward, values_of};

/// The names that just looks for, in this folder and upward.
const NAMES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
/// The most files of one just that are read.
const FILES_MAX: usize = 50;

/// The content of justfiles.
#[derive(Default)]
struct Justfile {
    variables: BTreeMap<String, String>,
    recipes: Vec<Recipe>,
    /// Imported files and modules: one of the names, and whether just goes on without it.
    imported: Vec<(Vec<String>, bool)>,
}

#[derive(Default)]
struct Recipe {
    name: String,
    needs: Vec<String>,
    lines: Vec<String>,
}

impl Follower<'_> {
    /// Takes note of the files that just reads and runs.
    pub(super) fn just(&mut self, rest: &[Word], at: At) {
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, &["-d", "--working-directory"]) {
            self.change_folder(&folder);
        }
        let named = values_of(rest, &["-f", "--justfile"]);
        named.iter().for_each(|file| self.run_file(file, at));
        if let Some(here) = self.folder_here() {
            let found = || {
                let places = upward(&here).flat_map(|folder| NAMES.map(|name| joined(folder, name)));
                places.into_iter().find(|path| self.look.has(path) == Some(true))
            };
            let file = match named.first() {
                Some(file) => Some(normalise(&joined(&here, file.text()))),
                None => found(),
            };
            let options = ["working-directory", "justfile", "set", "shell", "dotenv-path"];
            let asked = Arguments::read(rest, "df", &options).positional;
            let asked = asked.iter().map(|word| word.text().to_owned()).collect();
            if let Some(file) = file {
                self.keep(file.clone());
                self.justfiles(file, asked);
            }
        }
        self.shell.folder = outside;
    }

    fn justfiles(&mut self, file: String, asked: Vec<String>) {
        let folder = parent(&file).to_owned();
        let mut just = Justfile::default();
        let (mut files, mut read) = (vec![file], BTreeSet::new());
        while let Some(path) = files.pop() {
            if read.len() >= FILES_MAX || !read.insert(path.clone()) {
                continue;
            }
            let Some(text) = self.look.read(&path) else { continue };
            just.read(&text);
            for (names, is_optional) in std::mem::take(&mut just.imported) {
                let mut names: Vec<String> =
                    names.iter().map(|name| normalise(&joined(parent(&path), name))).collect();
                if let Some(at) = names.iter().position(|name| self.look.has(name) == Some(true)) {
                    names = vec![names.swap_remove(at)];
                }
                for name in names {
                    // One that just goes on without decides by being there.
                    if is_optional {
                        self.fix(name.clone())
                    } else {
                        self.keep(name.clone())
                    }
                    files.push(name);
                }
            }
        }
        self.recipes(&folder, just.lines(asked), &BTreeSet::new());
    }
}

impl Justfile {
    fn read(&mut self, text: &str) {
        for line in text.lines() {
            if line.starts_with([' ', '\t']) {
                if let Some(recipe) = self.recipes.last_mut() {
                    recipe.lines.push(line.trim().trim_start_matches(['@', '-']).to_owned());
                }
                continue;
            }
            let line = line.trim();
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if let Some((name, value)) = line.split_once(":=") {
                self.variables.insert(name.trim().to_owned(), unquoted(value.trim()).to_owned());
            } else if matches!(word, "import" | "import?") {
                self.imported.push((vec![unquoted(rest.trim()).to_owned()], word == "import?"));
            } else if matches!(word, "mod" | "mod?") {
                let (name, path) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
                let names = match unquoted(path.trim()) {
                    "" => {
                        vec![format!("{name}.just"), format!("{name}/mod.just"), format!("{name}/justfile")]
                    }
                    path => vec![path.to_owned()],
                };
                self.imported.push((names, word == "mod?"));
            } else if let Some((head, needs)) = line.split_once(':')
                && !line.starts_with(['#', '['])
                && word != "set"
            {
                let name = head.split_whitespace().next().unwrap_or("").trim_start_matches('@');
                let is_name = |word: &&str| !word.is_empty() && *word != "&&";
                let needs = needs.split([' ', '(', ')']).filter(is_name).map(str::to_owned).collect();
                self.recipes.push(Recipe { name: name.to_owned(), needs, lines: Vec::new() });
            }
        }
    }

    /// Returns the commands that the recipes which are asked for may run: the first one's where none is named. A word that
    /// names no recipe is an argument.
    fn lines(&self, asked: Vec<String>) -> Vec<String> {
        let is_recipe = |name: &String| self.recipes.iter().any(|recipe| recipe.name == *name);
        let mut open: Vec<String> = asked
            .iter()
            .map(|name| name.rsplit("::").next().unwrap_or(name).to_owned())
            .filter(is_recipe)
            .collect();
        if open.is_empty() {
            open.extend(self.recipes.first().map(|recipe| recipe.name.clone()));
        }
        let (mut seen, mut lines) = (BTreeSet::new(), Vec::new());
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            for recipe in self.recipes.iter().filter(|recipe| recipe.name == name) {
                open.extend(recipe.needs.iter().filter(|need| is_recipe(need)).cloned());
                match recipe.lines.first().is_some_and(|line| line.starts_with("#!")) {
                    // Such a body is one script.
                    true => lines.push(self.expanded(&recipe.lines.join("\n"))),
                    false => lines.extend(recipe.lines.iter().map(|line| self.expanded(line))),
                }
            }
        }
        lines
    }

    // Replaces `{{name}}` by its value; an unknown one stays, as a word that names no file.
    fn expanded(&self, text: &str) -> String {
        self.variables.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{{{name}}}}}"), value).replace(&format!("{{{{ {name} }}}}"), value)
        })
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['\'', '"'])
}
