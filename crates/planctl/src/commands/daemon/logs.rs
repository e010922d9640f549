//! `planctl daemon logs`: the end of the log file, and what comes after it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::failure::{Answer, Exit, Failure};
use crate::show;
use crate::stop::Stop;

/// How much of a long log is read to find its last lines.
const READ_MAX: u64 = 4 * 1024 * 1024;
/// How often is looked for more.
const LOOK: Duration = Duration::from_millis(200);

/// Prints the last lines, and with `follow` what comes, until Ctrl-C.
pub async fn run(path: &Path, follow: bool, tail: usize) -> Answer {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::not_found(format!("there is no log at {}", path.display())).help(
                "`planctl daemon start` writes it; a daemon of systemd logs to its journal: journalctl -u planctl",
            ));
        }
        opened => opened.map_err(|error| unreadable(path, &error))?,
    };
    let text = read_rest(&mut file).map_err(|error| unreadable(path, &error))?;
    for line in show::last_lines(&text, tail) {
        show::print(&format!("{}\n", show::safe(line)))?;
    }
    if !follow {
        return Ok(Exit::Yes);
    }
    let mut signals = Stop::listen()?;
    let mut part = String::new();
    loop {
        if !show::flush_to_reader()? {
            return Ok(Exit::Yes);
        }
        tokio::select! {
            exit = signals.wait_for_signal() => return Ok(exit),
            () = tokio::time::sleep(LOOK) => {}
        }
        part.push_str(&read_rest(&mut file).map_err(|error| unreadable(path, &error))?);
        // Half a line waits for its other half.
        while let Some(end) = part.find('\n') {
            let line: String = part.drain(..=end).collect();
            show::print(&format!("{}\n", show::safe(line.trim_end_matches('\n'))))?;
        }
        if was_rotated(&file, path) {
            file = File::open(path).map_err(|error| unreadable(path, &error))?;
        }
    }
}

/// Returns what was written after a place in a log.
pub fn read_after(path: &Path, place: u64) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(place))?;
        read_rest(&mut file)
    };
    read().unwrap_or_default()
}

/// Reads on to the end, at most the last few megabytes.
fn read_rest(file: &mut File) -> io::Result<String> {
    let (at, end) = (file.stream_position()?, file.metadata()?.len());
    file.seek(SeekFrom::Start(at.max(end.saturating_sub(READ_MAX))))?;
    let mut bytes = Vec::new();
    file.by_ref().take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns true if the log was rotated: another file has its name, since a daemon was started meanwhile.
fn was_rotated(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.ino() != named.ino(),
        (Ok(_), Err(_)) | (Err(_), _) => false,
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::of_state(format!("read {}", path.display()), error)
}
