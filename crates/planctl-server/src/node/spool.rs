//! The live output of workers and contracts, and the prompts of agents: files beside the database, for people who look.
//!
//! Nothing is decided by them, so they cost no transaction and are written without fsync. Each run has two files of JSON
//! lines that only get longer, so a place in a file is a cursor. They lie on the machine whose planctl did the work. The
//! files of the oldest runs go when there are too many.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use planctl_api::wire::{OutputLine, OutputView, PromptView};
use planctl_engine::RunId;
use planctl_harness::{Masks, brief_file_work};

use crate::state_folders::private_folder;

/// The folder of the state directory in which they lie.
const FOLDER: &str = "printed";
/// The longest file of one run; what is printed beyond is in the logs of its attempts alone.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How many files are kept.
const FILES_MAX: usize = 400;
/// How much of a line is held back until it ends; a longer one is written in parts.
const LINE_BYTES_MAX: usize = 8 << 10;
/// The most bytes that one look returns.
const LOOK_BYTES_MAX: u64 = 256 << 10;

/// The files of a state directory.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    state_dir: PathBuf,
}

impl Spool {
    pub(crate) fn in_state(state_dir: &Path) -> Spool {
        Spool { state_dir: state_dir.to_owned() }
    }

    fn path(&self, run: RunId, kind: &str) -> PathBuf {
        self.state_dir.join(FOLDER).join(format!("{run}.{kind}"))
    }

    /// Opens a file of a run to add to it; clears old files away where it is new.
    fn open(&self, run: RunId, kind: &str) -> io::Result<File> {
        let path = self.path(run, kind);
        brief_file_work(|| {
            if !path.exists() {
                remove_oldest_files(&private_folder(&self.state_dir, FOLDER)?)?;
            }
            OpenOptions::new().append(true).create(true).mode(0o600).open(path)
        })
    }

    /// Begins to keep what somebody prints at an attempt.
    pub(crate) fn open_printer(&self, run: RunId, at: OutputLine, masks: Masks) -> Printer {
        let file = self.open(run, "output").inspect_err(log_unkept).ok();
        Printer { file, at, masks, pending: Vec::new() }
    }

    /// Keeps the prompt of an attempt as its agent gets it.
    pub(crate) fn add_prompt(&self, run: RunId, prompt: &PromptView) {
        let keep = || self.open(run, "prompts").and_then(|mut file| add(&mut file, prompt));
        let added = brief_file_work(keep);
        added.inspect_err(log_unkept).unwrap_or(());
    }

    /// Returns the prompts of a run that this machine's planctl delivered, oldest first.
    pub(crate) fn prompts(&self, run: RunId) -> io::Result<Vec<PromptView>> {
        let text = match std::fs::read_to_string(self.path(run, "prompts")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        // A crash may have cut the last line off.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Returns what was printed after a place, and the place to go on from.
    pub(crate) fn output(&self, run: RunId, since: u64) -> io::Result<OutputView> {
        let mut file = match File::open(self.path(run, "output")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(OutputView { lines: Vec::new(), next: since });
            }
            file => file?,
        };
        file.seek(SeekFrom::Start(since))?;
        let mut read = Vec::new();
        file.take(LOOK_BYTES_MAX).read_to_end(&mut read)?;
        let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = read[..whole].split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Ok(OutputView { lines, next: since + whole as u64 })
    }
}

fn log_unkept(error: &io::Error) {
    tracing::debug!(%error, "what is printed is not kept for watchers");
}

fn add(file: &mut File, line: &impl serde::Serialize) -> io::Result<()> {
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Ok(());
    }
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // One write, so that lines of several processes never mix.
    file.write_all(&text)
}

/// Removes the oldest files where there are too many.
fn remove_oldest_files(folder: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    for (_, path) in files.iter().take(files.len().saturating_sub(FILES_MAX)) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Keeps what somebody prints, by whole lines.
pub(crate) struct Printer {
    file: Option<File>,
    at: OutputLine,
    masks: Masks,
    pending: Vec<u8>,
}

impl Printer {
    /// Takes what was printed.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let begun = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let end = match memchr::memrchr2(b'\n', b'\r', bytes) {
            Some(end) => begun + end + 1,
            None if self.pending.len() > LINE_BYTES_MAX => self.pending.len(),
            None => return,
        };
        let rest = self.pending.split_off(end);
        let whole = std::mem::replace(&mut self.pending, rest);
        self.write(&whole);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let text = self.masks.text(&String::from_utf8_lossy(bytes)).into_owned();
        let line = OutputLine { text, ..self.at.clone() };
        if let Err(error) = brief_file_work(|| add(file, &line)) {
            log_unkept(&error);
            self.file = None;
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.write(&rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(from: &str) -> OutputLine {
        let (step, node) = (Some(2), "2".to_owned());
        OutputLine { step, node, visit: 1, attempt: 3, from: from.to_owned(), text: String::new() }
    }

    #[test]
    fn what_is_printed_is_read_by_whole_lines_from_a_place_on() {
        let state = tempfile::tempdir().unwrap();
        let (spool, run) = (Spool::in_state(state.path()), RunId::from_u128(7));
        assert_eq!(spool.output(run, 0).unwrap(), OutputView { lines: Vec::new(), next: 0 });
        let mut printer = spool.open_printer(run, at("worker"), Masks::default());
        printer.feed(b"one\ntw");
        let first = spool.output(run, 0).unwrap();
        assert_eq!(first.lines, [OutputLine { text: "one\n".into(), ..at("worker") }]);
        printer.feed("o ä".as_bytes());
        assert_eq!(spool.output(run, first.next).unwrap().lines, []);
        drop(printer);
        spool.open_printer(run, at("contract"), Masks::default()).feed(b"three\n");
        let second = spool.output(run, first.next).unwrap();
        let texts: Vec<&str> = second.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["two ä", "three\n"]);
        assert_eq!(spool.output(run, second.next).unwrap().lines, []);
    }

    #[test]
    fn the_files_of_the_oldest_runs_go() {
        let state = tempfile::tempdir().unwrap();
        let spool = Spool::in_state(state.path());
        for run in 0..FILES_MAX as u128 + 5 {
            drop(spool.open(RunId::from_u128(run), "output").unwrap());
        }
        let left = std::fs::read_dir(state.path().join(FOLDER)).unwrap().count();
        assert_eq!(left, FILES_MAX + 1);
    }
}
