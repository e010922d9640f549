//! The activity of this process, for the live view: never stored, never part of a decision.

use std::sync::{Arc, Mutex};

use planctl_engine::Attempt;
use planctl_harness::tool_in;
use planctl_view::strip_terminal_sequences;

use crate::mutex::lock;

/// The work or gate that is under way in this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Activity {
    /// The step's number, where it is one.
    pub step: Option<u32>,
    /// The try.
    pub attempt: Attempt,
    /// Says that the contract runs, and not the worker.
    pub is_gate: bool,
    /// When it began, on the monotonic clock.
    pub since: tokio::time::Instant,
    /// When it last printed something.
    pub printed_at: Option<tokio::time::Instant>,
    /// The last whole line it printed, lossy and at most 200 characters.
    pub last_line: Option<String>,
    /// The line of an agent's JSON that has not ended.
    pub begun_line: Vec<u8>,
}

/// The current activity of this process. Cheap to clone; all clones share it.
#[derive(Clone, Debug, Default)]
pub struct LiveActivity {
    activity: Arc<Mutex<Option<Activity>>>,
}

/// The longest line that is read whole.
const BEGUN_LINE_BYTES_MAX: usize = 1024 * 1024;
/// The longest line that is shown.
const LINE_CHARS_MAX: usize = 200;

impl LiveActivity {
    /// Returns what is under way.
    pub fn now(&self) -> Option<Activity> {
        lock(&self.activity).clone()
    }

    pub(crate) fn begin(&self, activity: Activity) {
        *lock(&self.activity) = Some(activity);
    }

    pub(crate) fn end(&self) {
        *lock(&self.activity) = None;
    }

    /// Notes that something was printed; keeps the last line of it that is not blank.
    pub(crate) fn printed(&self, bytes: &[u8]) {
        let mut activity = lock(&self.activity);
        let Some(activity) = activity.as_mut() else { return };
        activity.printed_at = Some(crate::clock::instant());
        // Of agents that print JSON the tool is told that they use.
        let begun = activity.begun_line.len();
        activity.begun_line.extend_from_slice(bytes);
        let mut complete = memchr::memrchr(b'\n', bytes).map_or(0, |at| begun + at + 1);
        if activity.begun_line.len() > BEGUN_LINE_BYTES_MAX {
            activity.begun_line.clear();
            complete = 0;
        }
        let is_json = activity.begun_line.first() == Some(&b'{');
        let complete: Vec<u8> = activity.begun_line.drain(..complete).collect();
        let mut tools = complete.split(|byte| *byte == b'\n').filter_map(|line| {
            line.starts_with(b"{").then(|| tool_in(&String::from_utf8_lossy(line))).flatten()
        });
        if let Some(tool) = tools.next_back() {
            activity.last_line = Some(strip_terminal_sequences(&tool).chars().take(LINE_CHARS_MAX).collect());
        }
        if is_json {
            return;
        }
        let end = &bytes[bytes.len().saturating_sub(4 * LINE_CHARS_MAX)..];
        let text = String::from_utf8_lossy(end);
        let text = strip_terminal_sequences(&text);
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            activity.last_line = Some(line.chars().take(LINE_CHARS_MAX).collect());
        }
    }
}
