//! A person's editor, opened at their terminal.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The editor that a person named in their environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Editor(OsString);

impl Editor {
    /// Returns the editor that `VISUAL` names, else `EDITOR`; nothing where neither names one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Editor> {
        let named = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
        named.into_iter().find(|command| !command.to_string_lossy().trim().is_empty()).map(Editor)
    }

    /// Opens a file and waits until the editor ends. The value is a command of the shell, which may have arguments.
    ///
    /// Ctrl-C is the editor's while it is open, and this process's again afterwards.
    ///
    /// # Errors
    ///
    /// When no shell can be started.
    pub fn edit(&self, file: &Path) -> io::Result<ExitStatus> {
        let mut script = self.0.clone();
        script.push(" \"$@\"");
        let mut editor = Command::new("/bin/sh");
        editor.arg("-c").arg(script).arg(&self.0).arg(file);
        let ignored = Ignored::interrupts()?;
        let own = ignored.before;
        // SAFETY: between fork and exec the child makes one system call.
        unsafe {
            editor.pre_exec(move || {
                // The editor is interrupted as this process was before.
                sigaction(Signal::SIGINT, &own).map(drop).map_err(io::Error::from)
            });
        }
        editor.status()
    }
}

/// Has this process ignore Ctrl-C until it is dropped.
struct Ignored {
    before: SigAction,
}

impl Ignored {
    fn interrupts() -> io::Result<Ignored> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: no handler of ours runs.
        let before = unsafe { sigaction(Signal::SIGINT, &ignore) }?;
        Ok(Ignored { before })
    }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        // SAFETY: it is what was in force before. A valid signal and action are never refused.
        unsafe { sigaction(Signal::SIGINT, &self.before) }.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visual_goes_before_editor_and_an_empty_name_is_none() {
        let with = |visual: &str, editor: &str| {
            let (visual, editor) = (OsString::from(visual), OsString::from(editor));
            Editor::from_environment(|name| {
                Some(if name == "VISUAL" { visual.clone() } else { editor.clone() })
            })
        };
        assert_eq!(with("code -w", "vi"), Some(Editor("code -w".into())));
        assert_eq!(with(" ", "vi"), Some(Editor("vi".into())));
        assert_eq!(with("", ""), None);
        assert_eq!(Editor::from_environment(|_| None), None);
    }

    #[test]
    fn b10_6_ctrl_c_is_the_editors_while_it_is_open_and_ours_again_afterwards() {
        use std::os::unix::process::ExitStatusExt as _;
        let interrupts = || {
            let text = std::fs::read_to_string("/proc/self/status").expect("read");
            let ignored = text
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))
                .expect("a line of ignored signals");
            u64::from_str_radix(ignored.trim(), 16).expect("a number") & 2 == 0
        };
        // The process that started the tests may ignore SIGINT, and this one inherits that.
        let interrupted = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default is no handler.
        unsafe { sigaction(Signal::SIGINT, &interrupted) }.expect("set");
        assert!(interrupts());
        // This process outlives the signal, its editor does not.
        let ended = Editor("kill -INT $PPID; kill -INT $$; exit 4;".into()).edit(Path::new("x"));
        assert_eq!(ended.expect("it starts").signal(), Some(2));
        assert!(interrupts(), "and is interrupted again afterwards");
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
