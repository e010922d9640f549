//! Reads git's configuration files without git, and keeps the few settings of them that can start no program.
//!
//! Anybody who works in a repository can write its configuration. It may name programs in many ways (hooks, filters, merge
//! drivers, fsmonitor, pagers, credential helpers, aliases, `ext::` remotes, included files), and git adds ways with each
//! release. So nothing is forbidden here by name: [`is_harmless`] lists what is kept, and everything else does not exist for
//! planctl's own git and for contracts (A10).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::beneath::{open_anywhere, read_capped};

/// The most bytes of a configuration file or a list of ignored files that are read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// One setting, as `[section "subsection"] name = value`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// In lower case.
    pub(crate) section: String,
    /// As written: it may be a branch, a remote or a path.
    pub(crate) subsection: Option<String>,
    /// In lower case.
    pub(crate) name: String,
    /// Without quotes.
    pub(crate) value: String,
}

/// The commands that `git lfs install` writes; a filter with other ones is not kept.
const LFS: [(&str, &str); 4] = [
    ("clean", "git-lfs clean -- %f"),
    ("smudge", "git-lfs smudge -- %f"),
    ("process", "git-lfs filter-process"),
    ("required", "true"),
];

/// Says whether a setting of a repository is kept: it is data that git needs to read the repository, and no value of it
/// makes git start a program that the repository names.
pub(crate) fn is_harmless(setting: &Setting) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    match (section, setting.subsection.as_deref()) {
        ("core", None) => matches!(name, "repositoryformatversion" | "bare") || is_conversion(name),
        ("extensions", None) => matches!(
            name,
            "objectformat" | "refstorage" | "partialclone" | "preciousobjects" | "noop" | "relativeworktrees"
        ),
        ("remote", Some(_)) => matches!(
            name,
            "url" | "pushurl" | "fetch" | "push" | "tagopt" | "prune" | "promisor" | "partialclonefilter"
        ),
        ("branch", Some(_)) => matches!(name, "remote" | "merge" | "rebase" | "pushremote"),
        ("submodule", Some(_)) => matches!(name, "url" | "active" | "branch" | "ignore"),
        // Of a copy in which contracts are tried: it lets nothing be pushed.
        ("url", Some("planctl-trial-never-pushes:")) => name == "pushinsteadof",
        _ => is_personal(setting),
    }
}

/// Says whether a setting of the user's own configuration is kept.
fn is_personal(setting: &Setting) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    match (section, setting.subsection.as_deref()) {
        ("user" | "author" | "committer", None) => matches!(name, "name" | "email"),
        ("core", None) => is_conversion(name),
        ("i18n", None) => matches!(name, "commitencoding" | "logoutputencoding"),
        ("init", None) => name == "defaultbranch",
        ("filter", Some("lfs")) => LFS.contains(&(name, setting.value.as_str())),
        _ => false,
    }
}

/// Says whether a setting of `core` says how the bytes of files are converted.
pub(super) fn is_conversion(name: &str) -> bool {
    matches!(name, "autocrlf" | "eol" | "safecrlf")
}

/// Returns the harmless settings of a repository's configuration file; one that can't be read has none.
pub(crate) fn harmless_settings(file: &Path) -> Vec<Setting> {
    let mut settings = read(file);
    settings.retain(is_harmless);
    settings
}

/// Holds the user's own configuration as it was when planctl started: a worker that changes it later changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct UserSettings {
    /// The user's identity, and how their files are converted.
    pub(crate) settings: Vec<Setting>,
    /// The patterns that the user lets every repository ignore.
    pub(crate) ignored: Vec<u8>,
}

impl UserSettings {
    /// Reads the files that git reads for this user, without those that they include.
    pub(crate) fn read() -> UserSettings {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let xdg = absolute("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let xdg = xdg.map(|folder| folder.join("git"));
        let mut files = vec![PathBuf::from("/etc/gitconfig")];
        match absolute("GIT_CONFIG_GLOBAL") {
            Some(file) => files.push(file),
            None => {
                files.extend(xdg.as_ref().map(|folder| folder.join("config")));
                files.extend(home.as_ref().map(|home| home.join(".gitconfig")));
            }
        }
        let all: Vec<Setting> = files.iter().flat_map(|file| read(file)).collect();
        let named = all.iter().rev().find(|setting| {
            setting.section == "core" && setting.subsection.is_none() && setting.name == "excludesfile"
        });
        let ignored = match named {
            Some(setting) => match (setting.value.strip_prefix("~/"), &home) {
                (Some(below), Some(home)) => Some(home.join(below)),
                _ => Some(PathBuf::from(&setting.value)),
            },
            None => xdg.map(|folder| folder.join("ignore")),
        };
        let ignored = ignored.filter(|file| file.is_absolute()).map(|file| bytes_of(&file));
        let settings = all.into_iter().filter(is_personal).collect();
        UserSettings { settings, ignored: ignored.unwrap_or_default() }
    }
}

fn read(file: &Path) -> Vec<Setting> {
    parse(&String::from_utf8_lossy(&bytes_of(file)))
}

/// Returns what a file holds; one that can't be read is as good as an empty one.
pub(crate) fn bytes_of(file: &Path) -> Vec<u8> {
    open_anywhere(file).ok().and_then(|file| read_capped(file, FILE_BYTES_MAX).ok()).unwrap_or_default()
}

/// Reads settings until the first thing that is none: git itself refuses a file with such a thing.
pub(crate) fn parse(text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut section: Option<(String, Option<String>)> = None;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return settings };
        match first {
            '#' | ';' => rest = rest.split_once('\n').map_or("", |(_, rest)| rest),
            '[' => {
                let Some((read, after)) = header(&rest[1..]) else { return settings };
                section = Some(read);
                rest = after;
            }
            _ => {
                let Some(((name, value), after)) = variable(rest) else { return settings };
                let Some((section, subsection)) = section.clone() else { return settings };
                settings.push(Setting { section, subsection, name, value });
                rest = after;
            }
        }
    }
}

/// Reads `section]`, `section "subsection"]` or the old `section.subsection]`.
fn header(text: &str) -> Option<((String, Option<String>), &str)> {
    let end = text.find([']', '"', '\n'])?;
    let name = text[..end].trim_end();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    };
    if !is_name(name) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    match text.as_bytes()[end] {
        b']' => Some((
            match name.split_once('.') {
                Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                None => (name, None),
            },
            &text[end + 1..],
        )),
        b'"' => {
            let mut subsection = String::new();
            let mut characters = text[end + 1..].char_indices();
            loop {
                match characters.next()? {
                    (_, '\n') => return None,
                    (at, '"') => {
                        let after = text[end + 1 + at + 1..].strip_prefix(']')?;
                        return Some(((name, Some(subsection)), after));
                    }
                    (_, '\\') => subsection.push(characters.next()?.1),
                    (_, character) => subsection.push(character),
                }
            }
        }
        _ => None,
    }
}

/// Reads `name = value`, or a name alone, which is true.
fn variable(text: &str) -> Option<((String, String), &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
    let name = text[..end].to_ascii_lowercase();
    if !name.starts_with(|character: char| character.is_ascii_alphabetic()) {
        return None;
    }
    let rest = text[end..].trim_start_matches([' ', '\t', '\r']);
    match rest.chars().next() {
        None | Some('\n' | '#' | ';') => Some(((name, "true".to_owned()), rest)),
        Some('=') => value(&rest[1..]).map(|(value, rest)| ((name, value), rest)),
        Some(_) => None,
    }
}

fn value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let (mut value, mut is_quoted) = (String::new(), false);
    // Blanks at the end that no quote holds don't belong to the value.
    let mut kept = 0;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\n' if is_quoted => return None,
            '\n' => {
                value.truncate(kept);
                return Some((value, &text[at + 1..]));
            }
            '#' | ';' if !is_quoted => {
                value.truncate(kept);
                return Some((value, text[at..].split_once('\n').map_or("", |(_, rest)| rest)));
            }
            '"' => {
                is_quoted = !is_quoted;
                kept = value.len();
            }
            '\\' => match characters.next()?.1 {
                '\n' => {}
                escaped => {
                    value.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'b' => '\u{8}',
                        '\\' | '"' => escaped,
                        _ => return None,
                    });
                    kept = value.len();
                }
            },
            _ => {
                value.push(character);
                if is_quoted || !matches!(character, ' ' | '\t' | '\r') {
                    kept = value.len();
                }
            }
        }
    }
    value.truncate(kept);
    (!is_quoted).then_some((value, ""))
}

/// Writes settings as git reads them.
pub(crate) fn draw<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> String {
    let quoted = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
            .replace('\t', "\\t")
            .replace('\u{8}', "\\b")
    };
    let mut drawn = String::new();
    for Setting { section, subsection, name, value } in settings {
        let header = match subsection {
            // Nothing but these two is written otherwise within a subsection's quotes.
            Some(subsection) => {
                format!("[{section} \"{}\"]", subsection.replace('\\', "\\\\").replace('"', "\\\""))
            }
            None => format!("[{section}]"),
        };
        drawn.push_str(&format!("{header}\n\t{name} = \"{}\"\n", quoted(value)));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARD: &str = r#"# a comment
[core] bare = false ; another
	repositoryFormatVersion = 1
[remote "or\"i]gin\\"]
	URL = "https://example.org/a # b"  # c
	fetch = +refs/heads/*:refs/remotes/origin/*
	pushurl = one \
two
	prune
[Branch.Main]
	merge = refs/heads/main   
[user]
	name = A "  B " C
"#;

    fn git_lists(file: &Path) -> Vec<(String, String)> {
        let output = std::process::Command::new("git")
            .args(["config", "--null", "--list", "--file"])
            .arg(file)
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let entries = text.split('\0').filter(|entry| !entry.is_empty());
        entries
            .map(|entry| match entry.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => (entry.to_owned(), "true".to_owned()),
            })
            .collect()
    }

    fn listed(settings: &[Setting]) -> Vec<(String, String)> {
        let key = |setting: &Setting| match &setting.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", setting.section, setting.name),
            None => format!("{}.{}", setting.section, setting.name),
        };
        settings.iter().map(|setting| (key(setting), setting.value.clone())).collect()
    }

    #[test]
    fn a_configuration_is_read_as_git_reads_it_and_written_so_that_git_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, HARD).unwrap();
        let settings = parse(HARD);
        assert_eq!(listed(&settings), git_lists(&file));
        std::fs::write(&file, draw(&settings)).unwrap();
        assert_eq!(listed(&settings), git_lists(&file));
        for broken in ["[core\nbare = true", "[a \"b\nc\"]\nx = 1", "x = 1", "[a]\n1x = 1", "[a]\nx = \"y"] {
            assert_eq!(parse(broken), [], "{broken}");
        }
    }

    #[test]
    fn hole_11_no_setting_that_starts_a_program_is_kept() {
        let text = r#"
[core]
	fsmonitor = /evil
	hooksPath = /evil
	sshCommand = /evil
	pager = /evil
	editor = /evil
	askPass = /evil
	gitProxy = /evil
	alternateRefsCommand = /evil
	attributesFile = /evil
	worktree = /elsewhere
	bare = false
[filter "x"]
	clean = /evil
	smudge = /evil
	process = /evil
[filter "lfs"]
	clean = /evil
	process = git-lfs filter-process
[merge "x"]
	driver = /evil
[diff]
	external = /evil
[diff "x"]
	textconv = /evil
	command = /evil
[mergetool "x"]
	cmd = /evil
[gpg]
	program = /evil
[gpg "ssh"]
	program = /evil
	defaultKeyCommand = /evil
[credential]
	helper = !/evil
[sequence]
	editor = /evil
[interactive]
	diffFilter = /evil
[attr]
	tree = HEAD
[alias]
	status = !/evil
[include]
	path = /evil
[includeIf "gitdir:/"]
	path = /evil
[submodule "x"]
	update = !/evil
	url = ../x
[remote "origin"]
	url = https://example.org
	uploadpack = /evil
	receivepack = /evil
	vcs = evil
[url "ext::/evil"]
	insteadOf = https://
[protocol "ext"]
	allow = always
[uploadpack]
	packObjectsHook = /evil
[extensions]
	worktreeConfig = true
[trailer "x"]
	command = /evil
[browser "x"]
	cmd = /evil
"#;
        let mut settings = parse(text);
        settings.retain(is_harmless);
        let kept: Vec<String> = listed(&settings).into_iter().map(|(key, _)| key).collect();
        assert_eq!(kept, ["core.bare", "filter.lfs.process", "submodule.x.url", "remote.origin.url"]);
    }
}
