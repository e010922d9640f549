//! Removes folders, those too that their owner may not write.

use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a folder with everything in it, also folders that their owner may not write; follows no link.
///
/// Nothing that could change the folder may be alive.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_up(folder);
            std::fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Lets the owner write every folder; what can't be changed shows again at the removal.
fn open_up(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).ok();
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        folders.extend(entries.filter(is_folder).map(|entry| entry.path()));
    }
}
