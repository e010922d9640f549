//! npm and its kin: the scripts of `package.json`, and programs of `node_modules`.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::super::following::{At, Follower};
use super::super::packages::{PackageCall, Packages};
use super::super::programs::{is_python, is_shell, started_by_runner};
use super::super::values::{joined, normalise, parent};
use super::super::{Arguments, Call, Reading, Word, commands, read};
use super::{after_options, upward, values_of};

/// The files that `npm ci` and its kin read.
const LOCK_FILES: [&str; 5] =
    ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"];

/// Programs that a script of `package.json` takes from the host: a package that brings one goes before it.
const OF_THE_HOST: [&str; 24] = [
    "node", "npm", "npx", "env", "make", "git", "cargo", "go", "perl", "ruby", "php", "java", "timeout",
    "xargs", "find", "grep", "sed", "awk", "diff", "cmp", "cat", "ls", "sort", "head",
];

impl Follower<'_> {
    /// `npm test`, `npm run NAME`, `yarn NAME`, `pnpm exec PROGRAM`, `pnpm PROGRAM`
    pub(super) fn npm(&mut self, command: &[Word], at: At) {
        let Some(call) = PackageCall::read(command) else { return };
        let outside = self.shell.folder.clone();
        for folder in &call.folders {
            self.change_folder(folder);
        }
        match call.packages {
            Packages::Here => {}
            Packages::Top => self.workspace_top(),
            Packages::Below => self.workspace_packages(&call),
        }
        let is_frozen = |word: &Word| word.raw.contains("frozen-lockfile") || word.raw == "--immutable";
        match Call::of(command).verb() {
            "ci" => self.lock_files(),
            "install" | "i" if command.iter().any(is_frozen) => self.lock_files(),
            _ => {}
        }
        if let Some(name) = call.script {
            self.package_script(name);
        }
        if let Some(inner) = started_by_runner(command) {
            self.npx(inner, at);
        }
        self.shell.folder = outside;
    }

    /// `npx PROGRAM ARGUMENTS`
    pub(super) fn npx(&mut self, rest: &[Word], at: At) {
        let words = after_options(rest);
        let Some(name) = words.first().and_then(|word| word.literal.clone()) else { return };
        self.node_program(&name);
        self.run(words, at);
    }

    /// `composer test`, `composer run NAME`
    pub(super) fn composer(&mut self, rest: &[Word]) {
        let read = Arguments::read(rest, "d", &["working-dir"]);
        let words: Vec<&str> = read.positional.iter().map(|word| word.text()).collect();
        let (["run" | "run-script", name, ..] | [name, ..]) = words.as_slice() else { return };
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, &["-d", "--working-dir"]) {
            self.change_folder(&folder);
        }
        let package = self.folder_here().and_then(|here| {
            let text = self.look.read(&joined(&here, "composer.json"))?;
            Some((here, serde_json::from_str::<Json>(&text).ok()?))
        });
        if let Some((here, package)) = package {
            self.composer_script(&here, &package["scripts"], name);
        }
        self.shell.folder = outside;
    }

    /// Follows the lines of a script, and of those that they name: `@unit`.
    fn composer_script(&mut self, here: &str, scripts: &Json, name: &str) {
        let mut open = vec![name];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop().filter(|name| seen.insert(*name)) {
            let script = &scripts[name];
            let lines = script.as_array().map_or(std::slice::from_ref(script), Vec::as_slice);
            for line in lines.iter().filter_map(Json::as_str) {
                let command = line.trim_start_matches('@');
                let first = command.split_whitespace().next().unwrap_or_default();
                if line.starts_with('@') && !scripts[first].is_null() {
                    open.push(first);
                    continue;
                }
                self.follow_text(here, command);
                // It runs the commands, with the folder of packages' programs first on the path.
                let programs = match read(command) {
                    Reading::Read(read) => commands(&read).into_iter().map(|started| started.name).collect(),
                    Reading::Refused { .. } | Reading::TooDeep => Vec::new(),
                };
                for program in programs.iter().map(String::as_str).chain(["sh"]) {
                    self.program_of_packages(&joined(here, "vendor/bin"), program);
                }
            }
        }
    }

    fn node_program(&mut self, name: &str) {
        let Some(here) = self.folder_here() else { return };
        for folder in upward(&here) {
            self.program_of_packages(&joined(folder, "node_modules/.bin"), name);
        }
    }

    /// Protects a program that a package brings; a new one goes before that of the host.
    fn program_of_packages(&mut self, folder: &str, name: &str) {
        let is_of_the_host = OF_THE_HOST.contains(&name) || is_shell(name) || is_python(name);
        if !name.contains('/') {
            let program = joined(folder, name);
            if is_of_the_host { self.fix(program) } else { self.keep(program) }
        }
    }

    /// Protects the `package.json` of each package that the one here has in its workspace, and follows the script that a command has
    /// some of them run.
    fn workspace_packages(&mut self, call: &PackageCall<'_>) {
        let Some(here) = self.folder_here() else { return };
        let read = |name: &str| self.look.read(&joined(&here, name)).unwrap_or_default();
        let package: Json = serde_json::from_str(&read("package.json")).unwrap_or_default();
        let listed =
            package["workspaces"].as_array().or_else(|| package["workspaces"]["packages"].as_array());
        let mut folders: Vec<String> =
            listed.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect();
        // Those of pnpm are the list of its file.
        let entries = read("pnpm-workspace.yaml");
        let entries = entries.lines().filter_map(|line| line.trim().strip_prefix("- "));
        folders.extend(entries.map(|entry| entry.trim().trim_matches(['\'', '"']).to_owned()));
        for folder in folders.iter().filter(|folder| !folder.starts_with('!')) {
            let manifests = normalise(&joined(&here, &format!("{folder}/package.json")));
            self.keep(manifests.clone());
            let Some(script) = call.script else { continue };
            for manifest in self.look.matching(&manifests) {
                let folder = parent(&manifest);
                let text = self.look.read(&manifest).unwrap_or_default();
                let package: Json = serde_json::from_str(&text).unwrap_or_default();
                let from_here = folder.strip_prefix(&here).unwrap_or(folder).trim_start_matches('/');
                if call.takes(package["name"].as_str().unwrap_or_default(), from_here) {
                    self.shell.folder = Some(folder.to_owned());
                    self.package_script(script);
                }
            }
        }
        self.shell.folder = Some(here);
    }

    /// Goes to the top of the workspace of packages.
    fn workspace_top(&mut self) {
        let Some(here) = self.folder_here() else { return };
        let has_list = |folder: &&str| self.look.has(&joined(folder, "pnpm-workspace.yaml")) == Some(true);
        if let Some(top) = upward(&here).find(has_list) {
            self.shell.folder = Some(top.to_owned());
        }
    }

    fn lock_files(&mut self) {
        let Some(here) = self.folder_here() else { return };
        LOCK_FILES.iter().for_each(|name| self.keep(joined(&here, name)));
    }

    /// Follows a script of `package.json`, where it can be read, with those that run before and after it.
    fn package_script(&mut self, name: &str) {
        let Some(here) = self.folder_here() else { return };
        let read_in =
            |folder: &str| Some((folder.to_owned(), self.look.read(&joined(folder, "package.json"))?));
        let Some((folder, text)) = upward(&here).find_map(read_in) else { return };
        self.fix_nearer(&here, "package.json");
        // It runs the scripts.
        self.node_program("sh");
        let Ok(package) = serde_json::from_str::<Json>(&text) else { return };
        for name in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
            let Some(script) = package["scripts"][&name].as_str() else { continue };
            self.follow_text(&folder, script);
            if let Reading::Read(read) = read(script) {
                commands(&read).iter().for_each(|started| self.node_program(&started.name));
            }
        }
    }
}
