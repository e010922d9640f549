//! `planctl lsp`: lends the language server this command's surroundings.

use std::path::{Path, PathBuf};

use planctl_config::Loaded;
use planctl_lsp::Host;

use super::Context;
use crate::failure::{Answer, Exit};

/// Serves one editor over standard input and output.
pub async fn run(context: &Context) -> Answer {
    // Nobody types the frames of an editor.
    if context.is_interactive() {
        context.say("your editor starts this and talks to it here, as docs/editors.md says; Ctrl-C ends it");
    }
    Ok(if planctl_lsp::serve(context).await { Exit::Yes } else { Exit::No })
}

impl Host for Context {
    fn workspace(&self) -> &Path {
        Context::workspace(self)
    }

    fn names_workspace(&self) -> bool {
        Context::names_workspace(self)
    }

    fn load(&self, workspace: &Path) -> Result<Loaded, String> {
        Context::load(self, workspace).map_err(|failure| failure.message)
    }

    fn state_dir(&self) -> Result<PathBuf, String> {
        Context::state_dir(self).map_err(|failure| failure.message)
    }
}
