//! Copies the engine's source and plants the bugs of `mutants.patch` in the copy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the patch says that the files are.
const PREFIX: &str = "b/crates/planctl-engine/src/";

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let (source, patch) = (own.join("../planctl-engine/src"), own.join("mutants.patch"));
    for path in [&source, &patch, &own.join("mutant.rs"), &own.join("build.rs")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let mut files = BTreeMap::new();
    read(&source, Path::new(""), &mut files);
    for (name, part) in parts(&read_text(&patch)) {
        let file = files.get_mut(&name).unwrap_or_else(|| panic!("mutants.patch: no file {name}; {HELP}"));
        let patch =
            diffy::Patch::from_str(&part).unwrap_or_else(|error| panic!("mutants.patch: {name}: {error}"));
        *file = diffy::apply(file, &patch)
            .unwrap_or_else(|error| panic!("mutants.patch: {name}: {error}; {HELP}"));
    }
    files.insert("mutant.rs".to_owned(), read_text(&own.join("mutant.rs")));
    // Included in another file, which may not begin with inner attributes.
    let root = files.remove("lib.rs").expect("the engine has a root");
    let root = root.lines().filter(|line| !line.starts_with("//!") && !line.starts_with("#!"));
    files.insert("engine.rs".to_owned(), root.collect::<Vec<_>>().join("\n"));
    for (name, text) in files {
        let path = out.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }
}

const HELP: &str =
    "the engine's source has changed around a bug: `just mutants-edit`, then `just mutants-save`";

/// Reads all files of a folder, each by its path from the first one.
fn read(folder: &Path, within: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder.join(within)).expect("the engine's source is there") {
        let entry = entry.expect("the engine's source is there");
        let name = within.join(entry.file_name());
        if entry.path().is_dir() {
            read(folder, &name, files);
        } else {
            files.insert(name.to_str().expect("names are UTF-8").to_owned(), read_text(&entry.path()));
        }
    }
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Cuts a patch of git into one part per file.
fn parts(patch: &str) -> Vec<(String, String)> {
    let parts = patch.split("diff --git ").skip(1).map(|part| {
        let from = part.find("--- ").expect("git writes both names");
        let name = part.lines().find_map(|line| line.strip_prefix("+++ ")).expect("git writes both names");
        let name = name
            .strip_prefix(PREFIX)
            .unwrap_or_else(|| panic!("mutants.patch: {name} is no file of the engine"));
        (name.to_owned(), part[from..].to_owned())
    });
    parts.collect()
}
