//! The folders of a state directory that only its owner can enter.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use planctl_harness::blocking_in_place;

/// Makes a folder of the state directory that only its owner can enter, and clears away what crashes left in it. The state
/// directory itself can be passed through by the user as whom root runs Postgres.
pub(crate) fn private_in(state_dir: &Path, name: &str) -> std::io::Result<PathBuf> {
    let scratch = private_folder(state_dir, name)?;
    blocking_in_place(|| planctl_harness::sweep_scratch(&scratch))?;
    Ok(scratch)
}

/// Makes a folder of the state directory that only its owner can enter.
///
/// # Errors
///
/// Those of the system.
pub fn private_folder(state_dir: &Path, name: &str) -> std::io::Result<PathBuf> {
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    let folder = state_dir.join(name);
    blocking_in_place(|| {
        let make = |path: &Path, mode| std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        make(state_dir, mode)?;
        make(&folder, 0o700)
    })?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sec_20_a_private_folder_leaves_the_state_directory_open_for_roots_postgres() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/state");
        let scratch = private_in(&state, "trials").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&scratch), 0o700);
        let open = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
        assert_eq!((mode(&state), mode(&folder.path().join("a"))), (open, open));
    }
}
