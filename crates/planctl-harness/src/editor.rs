//! A person's editor, opened at their terminal.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The editor that a person named in their environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Editor(OsString);

impl Editor {
    /// Returns the editor that `VISUAL` names, else `EDITOR`; nothing where neither names one.
    pub fn named(variable: impl Fn(&str) -> Option<OsString>) -> Option<Editor> {
        let named = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
        named.into_iter().find(|command| !command.to_string_lossy().trim().is_empty()).map(Editor)
    }

    /// Opens a file and waits until the editor ends. What is named is a command of the shell, with words of its own.
    ///
    /// # Errors
    ///
    /// When no shell can be started.
    pub fn edit(&self, file: &Path) -> io::Result<ExitStatus> {
        let mut script = self.0.clone();
        script.push(" \"$@\"");
        Command::new("/bin/sh").arg("-c").arg(script).arg(&self.0).arg(file).status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visual_goes_before_editor_and_an_empty_name_is_none() {
        let with = |visual: &str, editor: &str| {
            let (visual, editor) = (OsString::from(visual), OsString::from(editor));
            Editor::named(|name| Some(if name == "VISUAL" { visual.clone() } else { editor.clone() }))
        };
        assert_eq!(with("code -w", "vi"), Some(Editor("code -w".into())));
        assert_eq!(with(" ", "vi"), Some(Editor("vi".into())));
        assert_eq!(with("", ""), None);
        assert_eq!(Editor::named(|_| None), None);
    }

    #[test]
    fn a_command_with_words_is_given_the_file_as_it_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a plan's text.md");
        std::fs::write(&file, "bad\n").expect("written");
        let editor = Editor("sed -i s/bad/good/".into());
        assert!(editor.edit(&file).expect("it starts").success());
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "good\n");
        assert_eq!(Editor("exit 3;".into()).edit(&file).expect("it starts").code(), Some(3));
    }
}
