//! Compares objects with their names: git itself does so when it is sent some, and not when it reads its own.
//!
//! A worker that can write the repository can put a file with other content where an object belongs, before git writes that object;
//! git finds it there and keeps it. And a reference below `refs/replace/` lets git read another object in its place.

use std::collections::BTreeMap;

use super::WorktreeError;
use super::call::Git;
use crate::process::Input;

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
    let objects = deciding_objects(git, base, tip, tree).await?;
    let replaced =
        git.call_checked(["for-each-ref", "--format=%(refname:lstrip=2)", "refs/replace/"]).await?;
    if let Some((object, of)) = replaced.text().lines().find_map(|object| objects.get_key_value(object)) {
        return Err(WorktreeError::Forged {
            of: of.clone(),
            how: format!("refs/replace/{object} puts another object in its place"),
            help: format!("git replace -d {object}"),
        });
    }
    let mut suspects: Vec<&String> = objects.keys().collect();
    if are_true(git, &suspects).await? {
        return Ok(());
    }
    while suspects.len() > 1 {
        let rest = suspects.split_off(suspects.len() / 2);
        if are_true(git, &suspects).await? {
            suspects = rest;
        }
    }
    let object = suspects.first().map_or("", |object| object.as_str());
    Err(WorktreeError::Forged {
        of: objects.get(object).cloned().unwrap_or_default(),
        how: format!("the object {object} is not what its name says"),
        help: format!(
            "git fsck names all such objects; look at it with git cat-file -p {object}, and remove its file"
        ),
    })
}

/// Returns the names of the objects, each with what it is.
async fn deciding_objects(
    git: &Git<'_>,
    base: &str,
    tip: &str,
    tree: &str,
) -> Result<BTreeMap<String, String>, WorktreeError> {
    let commits = git.call_checked(["rev-list", tip, &format!("^{base}")]).await?.text();
    let mut objects: BTreeMap<String, String> =
        commits.lines().map(|commit| (commit.to_owned(), format!("the commit {commit}"))).collect();
    for side in [base, tree] {
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
    let changed = git.call_checked(["diff-tree", "-r", "-z", "--raw", "--no-renames", base, tree]).await?;
    for pair in changed.records().map(String::from_utf8_lossy).collect::<Vec<_>>().chunks_exact(2) {
        let mut words = pair[0].split(' ').skip(1);
        if let (Some(mode), Some(object)) = (words.next(), words.nth(1))
            && !["000000", "160000"].contains(&mode)
        {
            objects.insert(object.to_owned(), pair[1].clone().into_owned());
        }
    }
    Ok(objects)
}

/// Says whether what git reads for each of these objects has that object's name.
async fn are_true(git: &Git<'_>, objects: &[&String]) -> Result<bool, WorktreeError> {
    let mut input = String::new();
    objects.iter().for_each(|object| input.extend([object.as_str(), "\n"]));
    // A pack is written by the names of its objects, and verified by their content.
    let place = git.private_path().join("verified");
    let words = ["pack-objects", "--quiet", "--window=0"].map(std::ffi::OsString::from);
    let words = words.into_iter().chain([place.clone().into_os_string()]);
    let name = git.call_checked_with(words, Input::Bytes(input.into_bytes())).await?.text();
    let index = format!("{}-{name}.idx", place.display());
    Ok(git.call(["verify-pack", "--", &index]).await?.status == 0)
}
