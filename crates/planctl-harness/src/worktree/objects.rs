//! Compares objects with their names: git itself does so when it is sent some, and not when it reads its own.
//!
//! A worker that can write the repository can put a file with other content where an object belongs, before git writes that object;
//! git finds it there and keeps it. And a reference below `refs/replace/` lets git read another object in its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::WorktreeError;
use super::call::Git;
use crate::blocking::blocking_in_place;
use crate::git::front::Repositories;
use crate::process::Input;
use crate::spawn::Spawner;

/// Says that each object that decides what a merge of a commit brings is what its name says: the commits since `base`, the
/// folders of both, and the files of `tree` that differ from it.
///
/// # Errors
///
/// [`WorktreeError::Forged`], and those of git.
pub(super) async fn verify_objects(
    git: &Git<'_>,
    base: &str,
    tip: &str,
    tree: &str,
) -> Result<(), WorktreeError> {
    let commits = git.call_checked(["rev-list", tip, &format!("^{base}")]).await?.text();
    let mut objects: BTreeMap<String, String> =
        commits.lines().map(|commit| (commit.to_owned(), format!("the commit {commit}"))).collect();
    add_trees(git, base, tree, &mut objects).await?;
    let replaced =
        git.call_checked(["for-each-ref", "--format=%(refname:lstrip=2)", "refs/replace/"]).await?;
    if let Some((object, of)) = replaced.text().lines().find_map(|object| objects.get_key_value(object)) {
        return Err(WorktreeError::Forged {
            of: of.clone(),
            how: format!("refs/replace/{object} puts another object in its place"),
            help: format!("git replace -d {object}"),
        });
    }
    refuse_untrue(git, &objects).await
}

async fn refuse_untrue(git: &Git<'_>, objects: &BTreeMap<String, String>) -> Result<(), WorktreeError> {
    let Some(object) = first_untrue(git, objects.keys().collect()).await? else { return Ok(()) };
    Err(WorktreeError::Forged {
        of: objects.get(&object).cloned().unwrap_or_default(),
        how: format!("the object {object} is not what its name says"),
        help: format!(
            "git fsck names all such objects; look at it with git cat-file -p {object}, and remove its file"
        ),
    })
}

/// Says that the objects that came to a workspace's repositories since the run was taken up are what their names say, also those in
/// packs; those that were verified and are as they were then are not read again.
///
/// # Errors
///
/// [`WorktreeError::Forged`], and those of git.
pub(crate) async fn verify_newer(
    spawner: &Spawner,
    workspace: &Path,
    repositories: &Repositories,
) -> Result<(), WorktreeError> {
    for (own, newer) in blocking_in_place(|| repositories.unverified()) {
        if let Some(folder) = newer.borrowed.first() {
            return Err(WorktreeError::Forged {
                of: "what git says".to_owned(),
                how: format!("objects/info/alternates leads to {}, and did not before", folder.display()),
                help: format!("remove that line of objects/info/alternates in {}", own.display()),
            });
        }
        let git = Git::on_repository(spawner, workspace, own)?;
        for index in &newer.packs {
            // Without its other half git reads none of it.
            let is_read = blocking_in_place(|| index.exists() && index.with_extension("pack").exists());
            let words = [OsString::from("verify-pack"), "--".into(), index.into()];
            if is_read && git.call(words).await?.status != 0 {
                return Err(untrue(format!("the pack {}", index.display()), index));
            }
        }
        let objects: Vec<&String> = newer.loose.keys().collect();
        // An object that can't be read at all is none, either.
        if let Some(object) = first_untrue(&git, objects).await? {
            return Err(untrue(format!("the object {object}"), &newer.loose[&object]));
        }
        repositories.mark_verified(own, newer);
    }
    Ok(())
}

fn untrue(what: String, file: &Path) -> WorktreeError {
    WorktreeError::Forged {
        of: "what git says".to_owned(),
        how: format!("{what} is not what its name says"),
        help: format!("look at it with git fsck, and remove the file: {}", file.display()),
    }
}

/// Returns one of these objects that has not the name under which git reads it, where there is one.
async fn first_untrue(git: &Git<'_>, mut suspects: Vec<&String>) -> Result<Option<String>, WorktreeError> {
    if suspects.is_empty() || are_true(git, &suspects).await? {
        return Ok(None);
    }
    while suspects.len() > 1 {
        let rest = suspects.split_off(suspects.len() / 2);
        if are_true(git, &suspects).await? {
            suspects = rest;
        }
    }
    Ok(suspects.first().map(|object| (*object).clone()))
}

/// Says that the folders of two trees, and the files in which they differ, are what their names say.
///
/// # Errors
///
/// [`WorktreeError::Forged`], and those of git.
pub(crate) async fn verify_trees(git: &Git<'_>, one: &str, other: &str) -> Result<(), WorktreeError> {
    let mut objects = BTreeMap::new();
    add_trees(git, one, other, &mut objects).await?;
    refuse_untrue(git, &objects).await
}

/// Adds the names of the objects of two trees that tell them apart, each with what it is.
async fn add_trees(
    git: &Git<'_>,
    one: &str,
    other: &str,
    objects: &mut BTreeMap<String, String>,
) -> Result<(), WorktreeError> {
    for side in [one, other] {
        let top = git.call_checked(["rev-parse", &format!("{side}^{{tree}}")]).await?.text();
        objects.insert(top, "the top folder".to_owned());
        let folders = git.call_checked(["ls-tree", "-r", "-d", "-z", "--full-tree", side]).await?;
        for folder in folders.records().map(String::from_utf8_lossy) {
            let Some((entry, path)) = folder.split_once('\t') else { continue };
            if let Some(object) = entry.strip_prefix("040000 tree ") {
                objects.insert(object.to_owned(), path.to_owned());
            }
        }
    }
    let changed = git.call_checked(["diff-tree", "-r", "-z", "--raw", "--no-renames", one, other]).await?;
    for pair in changed.records().map(String::from_utf8_lossy).collect::<Vec<_>>().chunks_exact(2) {
        let words: Vec<&str> = pair[0].trim_start_matches(':').split(' ').collect();
        let [mode, other_mode, object, other_object, ..] = words[..] else { continue };
        // The file that both began with decides a merge, too.
        for (mode, object) in [(mode, object), (other_mode, other_object)] {
            if !["000000", "160000"].contains(&mode) {
                objects.insert(object.to_owned(), pair[1].clone().into_owned());
            }
        }
    }
    Ok(())
}

/// Says whether what git reads for each of these objects has that object's name.
async fn are_true(git: &Git<'_>, objects: &[&String]) -> Result<bool, WorktreeError> {
    let mut input = String::new();
    objects.iter().for_each(|object| input.extend([object.as_str(), "\n"]));
    // A pack is written by the names of its objects, and verified by their content.
    let place = git.private_path().join("verified");
    let words = ["pack-objects", "--quiet", "--window=0"].map(std::ffi::OsString::from);
    let words = words.into_iter().chain([place.clone().into_os_string()]);
    let packed = git.call_with_own_objects(words, Input::Bytes(input.into_bytes())).await?;
    // Where an object can't be read at all, or is of no type.
    if packed.status != 0 {
        return Ok(false);
    }
    let name = packed.text();
    let index = format!("{}-{name}.idx", place.display());
    Ok(git.call(["verify-pack", "--", &index]).await?.status == 0)
}
