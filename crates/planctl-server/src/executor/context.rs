//! Context that a step subscribes to, read when its work begins: files of the workspace, then the notes of topics.

use std::fmt::Write as _;
use std::path::Path;

use planctl_engine::{Subscription, Task};
use planctl_harness::{ContextEntry, escape_hidden, read_context};
use planctl_store::{Store, TopicNote};

use crate::node::runtime::blocking;
use crate::node::services::ServiceError;
use planctl_api::wire::moment;

/// The most notes of a topic that go into a prompt.
const NOTES_MAX: i64 = 1_000;
/// The most bytes of a topic that go into a prompt.
const TOPIC_BYTES_MAX: i64 = 256 * 1024;

/// Reads a task's subscriptions; one that cannot be read is an entry that says why (P-53, P-55). Where the folder in which
/// the run works is `lost`, for this reason, nothing of it is read.
///
/// # Errors
///
/// When the workspace can't be opened, and those of the store.
pub(crate) async fn context_of(
    store: &Store,
    workspace: &Path,
    lost: Option<String>,
    task: &Task,
) -> Result<Vec<ContextEntry>, ServiceError> {
    let (mut paths, mut topics) = (Vec::new(), Vec::new());
    for subscription in &task.subscriptions {
        match subscription {
            Subscription::File { path } => paths.push(path.clone()),
            Subscription::Topic { name } if topics.contains(&name) => {}
            Subscription::Topic { name } => topics.push(name),
        }
    }
    let mut entries = Vec::new();
    if let Some(why) = lost {
        let absent = |path| ContextEntry {
            source: format!("file:{path}"),
            text: String::new(),
            remark: Some(why.clone()),
            bytes: None,
        };
        entries.extend(paths.into_iter().map(absent));
    } else if !paths.is_empty() {
        let workspace = workspace.to_owned();
        entries = blocking(move || read_context(&workspace, paths.iter().map(String::as_str))).await??;
    }
    for topic in topics {
        let notes = store.newest_notes(topic, NOTES_MAX, TOPIC_BYTES_MAX).await?;
        entries.push(entry(topic, &notes));
    }
    Ok(entries)
}

fn entry(topic: &str, notes: &[TopicNote]) -> ContextEntry {
    let all = notes.last().map_or(0, |note| note.of);
    let shown = i64::try_from(notes.len()).unwrap_or(i64::MAX);
    let remark = match (all, shown) {
        (0, _) => Some("no notes yet".to_owned()),
        (all, shown) if shown < all => Some(format!("the newest {shown} of {all} notes")),
        _ => None,
    };
    let mut text = String::new();
    for note in notes {
        let said = escape_hidden(&note.text).unwrap_or_else(|| note.text.clone());
        let by = escape_hidden(note.by.as_str()).unwrap_or_else(|| note.by.to_string());
        // Writing to a String can't fail.
        writeln!(text, "[note {} by {by} at {}]\n{}", note.number, moment(note.at), said.trim_end()).ok();
    }
    ContextEntry { source: format!("topic:{topic}"), text, remark, bytes: None }
}
