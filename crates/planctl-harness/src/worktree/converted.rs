//! Compares files that were judged with what a checkout makes of the commit that has them, where attributes convert them: a worker can
//! write code that runs in its worktree, and of which the commit has nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::WorktreeError;
use super::call::Git;
use crate::beneath::open_anywhere;
use crate::blocking::blocking_in_place;
use crate::process::Input;

/// The attributes by which git drops or replaces text; one that changes line ends alone drops nothing.
const CONVERTING: [&str; 2] = ["ident", "working-tree-encoding"];
/// The beginning of the text that git replaces in a file with the attribute `ident`.
const KEYWORD: &[u8] = b"$Id:";

/// Says that the files of a work tree that differ from a commit are in a tree as they are, but for line ends, and for the names of
/// objects in `$Id: … $`. The index of this git holds that tree.
///
/// # Errors
///
/// [`WorktreeError::Forged`], and those of git and of the disk.
pub(super) async fn verify_conversions(
    git: &Git<'_>,
    folder: &Path,
    base: &str,
    tree: &str,
) -> Result<(), WorktreeError> {
    let words = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d", base, tree];
    let changed = git.call_checked(words).await?.printed;
    if changed.is_empty() {
        return Ok(());
    }
    let words = ["check-attr", "-z", "--stdin"].into_iter().chain(CONVERTING);
    let printed = git.call_checked_with(words, Input::Bytes(changed)).await?.printed;
    // A path, an attribute and its value, which may be empty.
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let converts = |value: &[u8]| value != b"unspecified" && value != b"unset";
    let mut paths: Vec<(&[u8], &[u8])> =
        fields.chunks_exact(3).filter(|one| converts(one[2])).map(|one| (one[0], one[1])).collect();
    paths.dedup_by_key(|(path, _)| *path);
    if paths.is_empty() {
        return Ok(());
    }
    let place = git.private_path().join("converted");
    let prefix = format!("--prefix={}/", place.display());
    let words = ["checkout-index", "--quiet", "--force", "-z", "--stdin", &prefix];
    let listed = paths.iter().flat_map(|(path, _)| [path, &b"\0"[..]].concat()).collect();
    git.call_checked_with(words, Input::Bytes(listed)).await?;
    let other = blocking_in_place(|| {
        paths.iter().find(|(path, _)| {
            let path = Path::new(OsStr::from_bytes(path));
            is_other(&folder.join(path), &place.join(path)).unwrap_or(true)
        })
    });
    let Some((path, attribute)) = other else { return Ok(()) };
    let (path, attribute) = (String::from_utf8_lossy(path), String::from_utf8_lossy(attribute));
    Err(WorktreeError::Forged {
        of: path.clone().into_owned(),
        how: format!("the attribute {attribute} has git drop or replace a part of the file"),
        help: format!("look at git check-attr --all {path}, and take the attribute out of .gitattributes"),
    })
}

/// Says whether two files differ in more than line ends and names of objects.
fn is_other(judged: &Path, committed: &Path) -> std::io::Result<bool> {
    if judged.symlink_metadata()?.is_symlink() {
        return Ok(std::fs::read_link(judged)? != std::fs::read_link(committed)?);
    }
    let read = |path: &Path| {
        let mut bytes = Vec::new();
        let mut file = open_anywhere(path).map_err(std::io::Error::other)?;
        std::io::Read::read_to_end(&mut file, &mut bytes).map(|_| without_conversions(&bytes))
    };
    Ok(read(judged)? != read(committed)?)
}

/// Returns a content without carriage returns before line ends, and without the names of objects that git puts into `$Id: … $`.
fn without_conversions(content: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(b"\r\n") {
            rest = after;
        } else if let Some(end) = rest.strip_prefix(KEYWORD).and_then(end_of_name) {
            kept.extend(b"$Id$");
            rest = end;
        } else {
            kept.push(*first);
            rest = after;
        }
    }
    kept
}

/// Returns the rest of a text behind the name of an object and a dollar sign.
fn end_of_name(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b'$')?;
    let name = text[..end].trim_ascii();
    let is_name = matches!(name.len(), 40 | 64) && name.iter().all(u8::is_ascii_hexdigit);
    is_name.then(|| &text[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_and_line_ends_count_for_nothing_and_all_else_does() {
        let name = "0123456789012345678901234567890123456789";
        let named = format!("a\r\n# $Id: {name} $ b\n");
        assert_eq!(without_conversions(named.as_bytes()), b"a\n# $Id$ b\n");
        for other in ["$Id: echo good $", "$Id: $", "$Id$", "a\rb", "$Id: 0123", "$Id:"] {
            assert_eq!(without_conversions(other.as_bytes()), other.as_bytes());
        }
    }
}
