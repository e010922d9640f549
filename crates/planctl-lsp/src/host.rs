//! The facts that the program that starts the server knows about its surroundings.

use std::path::{Path, PathBuf};

use planctl_config::Loaded;

/// Says where plans are worked on, and under which configuration.
pub trait Host {
    /// Returns the workspace that holds for files of which no other is known.
    fn workspace(&self) -> &Path;

    /// Says that a person named that workspace, so that it holds for every file.
    fn names_workspace(&self) -> bool;

    /// Reads the configuration for a workspace anew.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it, for people.
    fn load(&self, workspace: &Path) -> Result<Loaded, String>;

    /// Returns the directory below which copies of workspaces may be made.
    ///
    /// # Errors
    ///
    /// Says why there is none, for people.
    fn state_dir(&self) -> Result<PathBuf, String>;
}
