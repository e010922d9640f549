//! Work that this process does right now, for the person who watches: never stored, never decisive.

use std::sync::{Arc, Mutex, PoisonError};

use planctl_engine::Attempt;

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
}

/// A window on what this process does. Cheap to clone; all clones look at the same.
#[derive(Clone, Debug, Default)]
pub struct LiveActivity {
    doing: Arc<Mutex<Option<Activity>>>,
}

/// The longest line that is shown.
const LINE_CHARS_MAX: usize = 200;

impl LiveActivity {
    /// Returns what is under way.
    pub fn now(&self) -> Option<Activity> {
        self.lock().clone()
    }

    pub(crate) fn begin(&self, doing: Activity) {
        *self.lock() = Some(doing);
    }

    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    /// Notes that something was printed; keeps the last line of it that is not blank.
    pub(crate) fn printed(&self, bytes: &[u8]) {
        let mut doing = self.lock();
        let Some(doing) = doing.as_mut() else { return };
        doing.printed_at = Some(crate::clock::instant());
        let end = &bytes[bytes.len().saturating_sub(4 * LINE_CHARS_MAX)..];
        let text = String::from_utf8_lossy(end);
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            doing.last_line = Some(line.chars().take(LINE_CHARS_MAX).collect());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Activity>> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
