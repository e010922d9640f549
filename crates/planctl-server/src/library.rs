//! The library of plans, as this machine has it: the project's entries go before the user's, and these before planctl's own.
//!
//! It is read from files, and needs no database. A file that can't be read is told, and stops no other (H-13).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use planctl_api::wire::{
    EntryFate, EntryOrigin, EntryStats, LibraryEntryView, LibraryMatch, LibraryStats, LibraryTrouble,
    TriggerHit, WeighedEntry,
};
use planctl_harness::read_plan;
use planctl_lang::library::{Entry, Fate, Success, Weighed, entries, entry_json};
use planctl_lang::workflow::Language;
use planctl_lang::{Diagnostic, Source, TEMPLATES};

/// The folder of plans, in a project and beside a user's configuration.
pub const FOLDER: &str = "plans";
/// The most files of a folder that are read.
const FILES_MAX: usize = 2_000;

/// Returns the file of the project that a plan's `then` means: a path, or a plan of the folder of plans by its name. An entry of
/// the library may be meant where there is none.
pub fn project_file(workspace: &Path, next: &str) -> Option<PathBuf> {
    if !is_inside(next) {
        return None;
    }
    let folder = workspace.join(FOLDER);
    let named =
        [workspace.join(next), folder.join(format!("{next}.md")), folder.join(format!("{next}.json"))];
    named.into_iter().find(|file| file.is_file())
}

/// Says whether a path cannot lead out of the folder that it is relative to.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Where an entry comes from; the nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The folder `plans` of the workspace.
    Project,
    /// The folder `plans` of the user's configuration.
    User,
    /// The binary.
    BuiltIn,
}

impl Origin {
    fn view(self) -> EntryOrigin {
        match self {
            Origin::Project => EntryOrigin::Project,
            Origin::User => EntryOrigin::User,
            Origin::BuiltIn => EntryOrigin::BuiltIn,
        }
    }
}

/// An entry, and where it is.
#[derive(Clone, Debug)]
pub struct FoundEntry {
    /// The entry.
    pub entry: Entry,
    /// Where it comes from.
    pub origin: Origin,
    /// The text that it stands in.
    pub source: Source,
    /// The entries of the same name that are farther away, and so are not taken.
    pub hides: Vec<Origin>,
}

impl FoundEntry {
    /// Returns its file; there is none of planctl's own entries.
    pub fn file(&self) -> Option<&Path> {
        (self.origin != Origin::BuiltIn).then(|| Path::new(self.source.path()))
    }

    /// Says whether its text is that of this entry alone, and so can be run as it is.
    pub fn stands_alone(&self) -> bool {
        entries(&self.source).0.len() == 1
    }

    /// Returns what programs read of it, without its text.
    pub fn view(&self) -> LibraryEntryView {
        let is_json = Language::of(self.source.path()) == Some(Language::Json);
        let entry = &self.entry;
        LibraryEntryView {
            id: entry.id.clone(),
            title: entry.title.clone(),
            origin: self.origin.view(),
            file: self.file().map(|file| file.display().to_string()),
            hides: self.hides.iter().map(|origin| origin.view()).collect(),
            domains: entry.domains.clone(),
            triggers: entry.triggers.clone(),
            trigger_threshold: entry.written_threshold(),
            stale_after_turns: entry.stale_after_turns,
            then: entry.then.clone(),
            steps: entry.steps,
            plan: is_json.then(|| entry_json(&self.source, &entry.id)).flatten(),
            text: None,
        }
    }
}

/// A part of the library that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The file or folder.
    pub path: String,
    /// The place in it, as line and column from 1, where it is text.
    pub at: Option<(usize, usize)>,
    /// The problem.
    pub message: String,
}

/// All entries that can be read, the nearest first, and what can't.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The entries, each name once.
    pub found: Vec<FoundEntry>,
    /// The parts that can't be read.
    pub troubles: Vec<Trouble>,
}

impl Library {
    /// Reads the library of a workspace, and of the user whose folder of configuration this is.
    pub fn read(workspace: &Path, user: Option<&Path>) -> Library {
        let mut library = Library::default();
        library.folder(Origin::Project, &workspace.join(FOLDER));
        if let Some(user) = user {
            library.folder(Origin::User, &user.join(FOLDER));
        }
        for template in TEMPLATES {
            library.text(Origin::BuiltIn, Source::new(format!("{}.md", template.name), template.text));
        }
        library
    }

    /// Returns what programs read of the parts that can't be read.
    pub fn troubles_view(&self) -> Vec<LibraryTrouble> {
        let troubles = self.troubles.iter().map(|trouble| LibraryTrouble {
            file: trouble.path.clone(),
            line: trouble.at.map(|(line, _)| line),
            column: trouble.at.map(|(_, column)| column),
            message: trouble.message.clone(),
        });
        troubles.collect()
    }

    /// Returns the entries; where thresholds follow what their runs taught, with that.
    pub fn entries(&self, successes: &BTreeMap<String, Success>, learns: bool) -> Vec<Entry> {
        let entries = self.found.iter().map(|found| {
            let success = successes.get(&found.entry.id).copied().unwrap_or_default();
            Entry { success: learns.then_some(success), ..found.entry.clone() }
        });
        entries.collect()
    }

    /// Says how often the plans of each entry succeed.
    pub fn stats(&self, successes: &BTreeMap<String, Success>, learns: bool) -> LibraryStats {
        let entries = self.entries(successes, learns).into_iter().map(|entry| {
            let success = successes.get(&entry.id).copied().unwrap_or_default();
            EntryStats {
                ended: success.ended,
                done: success.done,
                written_threshold: entry.written_threshold(),
                threshold: entry.threshold(),
                id: entry.id,
            }
        });
        LibraryStats { learns, entries: entries.collect() }
    }

    /// Returns the names of the plans that can follow another: the entries, and the project's plans that are none.
    pub fn names(&self, workspace: &Path) -> Vec<String> {
        let listed = std::fs::read_dir(workspace.join(FOLDER)).into_iter().flatten().flatten();
        let stem = |file: std::fs::DirEntry| Some(file.path().file_stem()?.to_str()?.to_owned());
        let plans = listed.filter_map(stem).take(FILES_MAX);
        let entries = self.found.iter().map(|found| found.entry.id.clone());
        plans.chain(entries).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the entry of this name.
    pub fn entry(&self, id: &str) -> Option<&FoundEntry> {
        self.found.iter().find(|found| found.entry.id == id)
    }

    fn folder(&mut self, origin: Origin, folder: &Path) {
        let listed = match std::fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.trouble(folder, error.to_string()),
        };
        let is_entry = |path: &PathBuf| {
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
            matches!(ending.as_deref(), Some("md" | "json" | "jsonc")) && !path.is_dir()
        };
        let mut files: Vec<PathBuf> =
            listed.flatten().map(|file| file.path()).filter(is_entry).take(FILES_MAX + 1).collect();
        files.sort();
        if files.len() > FILES_MAX {
            files.truncate(FILES_MAX);
            self.trouble(folder, format!("it has more than {FILES_MAX} plans; the others are not read"));
        }
        for file in files {
            let name = file.to_string_lossy().into_owned();
            match read_plan(&file) {
                Err(error) => self.trouble(&file, error.to_string()),
                Ok(bytes) => match Source::of_text(name, bytes) {
                    Err(unreadable) => self.finding(&unreadable.source, &unreadable.diagnostic),
                    Ok(source) => self.text(origin, source),
                },
            }
        }
    }

    fn text(&mut self, origin: Origin, source: Source) {
        let (entries, findings) = entries(&source);
        // A plan that is no entry is no business of the library's, unless its head can't be read: it might be one.
        let is_json = !source.path().ends_with(".md");
        let has_head = source.text().starts_with("---");
        let is_of_head = |finding: &Diagnostic| has_head && finding.code == planctl_lang::Code::P001;
        for finding in findings.iter().filter(|finding| finding.is_error()) {
            if is_json || !entries.is_empty() || is_of_head(finding) {
                self.finding(&source, finding);
            }
        }
        let mut places: BTreeMap<String, usize> =
            self.found.iter().enumerate().map(|(at, found)| (found.entry.id.clone(), at)).collect();
        for entry in entries {
            let Some(at) = places.get(&entry.id).copied() else {
                places.insert(entry.id.clone(), self.found.len());
                self.found.push(FoundEntry { entry, origin, source: source.clone(), hides: Vec::new() });
                continue;
            };
            if self.found[at].origin == origin {
                let first = self.found[at].source.path().to_owned();
                let message = format!("the entry {:?} is in {first} already; that one counts", entry.id);
                self.trouble(Path::new(source.path()), planctl_lang::escape(&message));
            } else if !self.found[at].hides.contains(&origin) {
                self.found[at].hides.push(origin);
            }
        }
    }

    fn trouble(&mut self, path: &Path, message: String) {
        self.troubles.push(Trouble { path: path.to_string_lossy().into_owned(), at: None, message });
    }

    fn finding(&mut self, source: &Source, finding: &Diagnostic) {
        let place = finding.spans.first().map(|label| source.position(source.clamp(label.span).start));
        self.troubles.push(Trouble {
            path: source.path().to_owned(),
            at: place.map(|place| (place.line, place.column)),
            message: format!("[{}] {}", finding.code, finding.message),
        });
    }
}

/// Returns what programs read of the weights of entries.
pub fn match_view(weighed: &[Weighed<'_>]) -> LibraryMatch {
    let taken = weighed.iter().find(|weighed| weighed.fate == Fate::Taken);
    LibraryMatch {
        taken: taken.map(|weighed| weighed.entry.id.clone()),
        entries: weighed.iter().map(weighed_view).collect(),
    }
}

fn weighed_view(weighed: &Weighed<'_>) -> WeighedEntry {
    let (fate, behind) = match weighed.fate {
        Fate::Taken => (EntryFate::Taken, None),
        Fate::NoMessage => (EntryFate::NoMessage, None),
        Fate::NotOfRole => (EntryFate::NotOfRole, None),
        Fate::OtherDomain => (EntryFate::OtherDomain, None),
        Fate::TooFewHits => (EntryFate::TooFewHits, None),
        Fate::NoScore => (EntryFate::NoScore, None),
        Fate::Outscored { by } => (EntryFate::Outscored, Some(by.to_owned())),
        Fate::Later { than } => (EntryFate::Later, Some(than.to_owned())),
    };
    let hits = weighed.hits.iter();
    WeighedEntry {
        id: weighed.entry.id.clone(),
        hits: hits
            .map(|hit| TriggerHit { trigger: hit.trigger.to_owned(), found: hit.found.clone() })
            .collect(),
        is_of_domain: weighed.is_of_domain,
        score: weighed.score(),
        written_threshold: weighed.entry.written_threshold(),
        threshold: weighed.entry.threshold(),
        fate,
        behind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "---\ntype: plan\nowner: ann\ndomains: [d]\ntriggers: [t]\n---\n\n# Mine\n\n## Steps\n\n\
                        ### 1. One\n\n**target:** coder\n**task:**\nDo.\n\n**contract:**\n```bash\ntest -f x\n```\n";

    fn put(folder: &Path, name: &str, text: &[u8]) {
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        std::fs::write(folder.join(FOLDER).join(name), text).unwrap();
    }

    #[test]
    fn the_nearest_entry_wins_and_says_which_it_hides() {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(user.path(), "bugfix_workflow.md", PLAN.as_bytes());
        put(user.path(), "own.md", PLAN.as_bytes());
        put(project.path(), "own.md", PLAN.replace("# Mine", "# Ours").as_bytes());
        put(project.path(), "notes.md", b"# No plan\n");
        let library = Library::read(project.path(), Some(user.path()));
        assert_eq!(library.troubles, []);
        assert_eq!(library.found.len(), 11);
        let own = library.entry("own").unwrap();
        assert_eq!((own.origin, own.entry.title.as_str()), (Origin::Project, "Ours"));
        assert_eq!(own.hides, [Origin::User]);
        let bugfix = library.entry("bugfix_workflow").unwrap();
        assert_eq!((bugfix.origin, bugfix.hides.as_slice()), (Origin::User, &[Origin::BuiltIn][..]));
        let origins: Vec<Origin> = library.found.iter().map(|found| found.origin).collect();
        assert!(origins.is_sorted(), "{origins:?}");
    }

    #[test]
    fn h_13_a_file_that_cannot_be_read_is_told_at_its_place_and_stops_no_other() {
        let project = tempfile::tempdir().unwrap();
        put(project.path(), "a.json", b"{\"plans\": {\"x\": {\"steps\": [");
        put(project.path(), "b.md", b"---\ntype: plan\n\ttriggers: [a\n---\n\n# B\n\n## Steps\n");
        put(project.path(), "headless.md", b"# B\n\n## Steps\n\n### 1. One\n");
        put(project.path(), "c.md", b"---\ntype: plan\n\xff\n");
        put(project.path(), "d.md", PLAN.as_bytes());
        std::os::unix::fs::symlink("nowhere", project.path().join("plans/e.md")).unwrap();
        let library = Library::read(project.path(), None);
        assert!(library.entry("d").is_some() && library.entry("bugfix_workflow").is_some());
        let told: Vec<String> = library
            .troubles
            .iter()
            .map(|trouble| {
                let name = trouble.path.rsplit('/').next().unwrap();
                format!("{name}:{:?}", trouble.at)
            })
            .collect();
        for name in ["a.json:Some((1,", "b.md:Some((3, 1))", "c.md:Some((3, 1))", "e.md:None"] {
            assert!(told.iter().any(|one| one.starts_with(name)), "{name} in {:?}", library.troubles);
        }
    }

    #[test]
    fn two_entries_of_one_name_in_one_place_are_told() {
        let project = tempfile::tempdir().unwrap();
        put(
            project.path(),
            "a.json",
            br#"{"plans": {"own": {"name": "A", "steps": [{"name": "x", "action": "y"}]}}}"#,
        );
        put(project.path(), "own.md", PLAN.as_bytes());
        let library = Library::read(project.path(), None);
        assert_eq!(library.entry("own").unwrap().entry.title, "A");
        let [trouble] = library.troubles.as_slice() else { panic!("{:?}", library.troubles) };
        assert!(
            trouble.path.ends_with("own.md") && trouble.message.contains("a.json already"),
            "{trouble:?}"
        );
    }
}
