//! `planctl export --bundle` and `planctl audit FILE.jsonl`: a run's whole evidence in one file, checked without a database.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use planctl_api::wire::{AuditView, BundleLine};
use planctl_server::BundleReader;

use super::Context;
use super::export::creation_failure;
use super::history::audited;
use crate::client::{Client, Handle};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::show;

/// The most bytes of a line that are read: more than any that planctl writes.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Says whether a bundle is meant and no run: a name with the ending of lines of JSON.
pub fn is_bundle(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "jsonl")
}

/// Writes the bundle of a run.
pub async fn write(context: &Context, run: &str, to: &Path) -> Answer {
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let name = show::safe(&to.display().to_string());
    let file = File::create_new(to).map_err(|error| creation_failure(&name, "file", &error))?;
    let written = write_all(&client, handle, file).await;
    if written.is_err()
        && let Err(error) = fs::remove_file(to)
    {
        // Half a bundle is found to be broken by any audit.
        tracing::warn!(%error, %name, "half a bundle could not be removed");
    }
    let events = written?;
    context.say(&format!("wrote {name}: {events} events"));
    context.say(&next::line(&format!("planctl audit {}", show::file_word(to))));
    Ok(Exit::Yes)
}

/// Writes the parts of a bundle until the event at which the run stood when it began; returns how many events there are.
async fn write_all(client: &Client, handle: Handle, file: File) -> Result<u64, Failure> {
    let denied = |error: io::Error| Failure::of_io("write the bundle", &error);
    let mut file = BufWriter::new(file);
    let (mut after, mut end) = (0, 0);
    loop {
        let page = client.bundle(handle, after).await?;
        for line in &page.lines {
            match line {
                BundleLine::Run(run) => end = run.events,
                BundleLine::Event(event) if event.seq > end => continue,
                BundleLine::Event(_)
                | BundleLine::Plan { .. }
                | BundleLine::Graph { .. }
                | BundleLine::Output { .. } => {}
            }
            serde_json::to_writer(&mut file, line).map_err(|error| denied(error.into()))?;
            file.write_all(b"\n").map_err(denied)?;
        }
        match page.next {
            Some(next) if next < end => after = next,
            Some(_) | None => break,
        }
    }
    file.flush().map_err(denied)?;
    Ok(end)
}

/// Audits a bundle.
pub fn audit(context: &Context, file: &str) -> Answer {
    let name = show::safe(file);
    let unread = |error: io::Error| Failure::of_io(format!("read {name}"), &error);
    let broken = |line: usize, why: &str| {
        Failure::new(Exit::No, format!("{name}:{line}: this is not a line of a bundle: {}", show::safe(why)))
            .help("a bundle is what `planctl export RUN --bundle FILE.jsonl` writes")
    };
    let is_json = context.is_json()?;
    if !Path::new(file).exists() {
        return Err(Failure::not_found(format!("could not read {name}: it does not exist")));
    }
    let mut lines = BufReader::new(File::open(file).map_err(unread)?);
    let (mut reader, mut bytes, mut number) = (BundleReader::default(), Vec::new(), 0);
    loop {
        bytes.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).map_err(unread)?;
        if read == 0 {
            break;
        }
        number += 1;
        if bytes.pop() != Some(b'\n') {
            return Err(broken(number, "its end is missing"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| broken(number, "it is not UTF-8"))?;
        reader.line(text).map_err(|why| broken(number, &why))?;
    }
    let run = reader.finish().map_err(|why| broken(1, &why))?;
    audited(&AuditView { runs: vec![run], next: None }, is_json)
}
