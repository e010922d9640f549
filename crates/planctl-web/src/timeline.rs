//! A run over time: a bar for each attempt, gate and wait.

use askama::Template;
use planctl_api::wire::{BarKind, TimelineBar, TimelineLane, TimelineView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Frame, Tab};

/// How wide a lane is drawn; a browser stretches it to the width that there is.
const WIDTH: f64 = 1000.0;
/// The least width of a bar, so that what took a moment is seen.
const BAR_MIN: f64 = 5.0;

/// A step with its bars.
struct Lane<'a> {
    lane: &'a TimelineLane,
    bars: Vec<Bar>,
    /// The same in words.
    words: String,
}

/// A bar as it is drawn.
struct Bar {
    class: &'static str,
    x: String,
    y: u8,
    width: String,
    height: u8,
    words: String,
}

impl Bar {
    fn of(bar: &TimelineBar, seconds: f64) -> Bar {
        let scale = WIDTH / seconds.max(f64::MIN_POSITIVE);
        let width = (bar.seconds * scale).clamp(BAR_MIN, WIDTH);
        // Each kind has a height of its own, since colours alone tell nobody anything.
        let (class, y, height) = match bar.kind {
            BarKind::Attempt => ("span attempt", 1, 22),
            BarKind::Queued => ("span queued", 10, 4),
            BarKind::Work => ("span work", 6, 12),
            BarKind::Gate if bar.failed => ("span gate failed", 3, 18),
            BarKind::Gate | BarKind::Rehearsal => ("span gate", 3, 18),
            BarKind::Ask => ("span ask", 8, 8),
        };
        Bar {
            class,
            x: format!("{:.1}", (bar.from_seconds * scale).min(WIDTH - width).max(0.0)),
            y,
            width: format!("{width:.1}"),
            height,
            words: bar_words(bar),
        }
    }
}

/// One run over time.
#[derive(Template)]
#[template(path = "timeline.html")]
pub struct TimelineScreen<'a> {
    frame: Frame<'a>,
    view: &'a TimelineView,
    lanes: Vec<Lane<'a>>,
    path: &'a str,
    query: &'a str,
}

impl<'a> TimelineScreen<'a> {
    /// Prepares the page; `path` and `query` name the run.
    pub fn new(
        frame: Frame<'a>,
        view: &'a TimelineView,
        (path, query): (&'a str, &'a str),
    ) -> TimelineScreen<'a> {
        let lanes = view.lanes.iter().map(|lane| Lane {
            lane,
            bars: lane.bars.iter().map(|bar| Bar::of(bar, view.seconds)).collect(),
            words: lane_words(&lane.bars),
        });
        TimelineScreen { lanes: lanes.collect(), frame, view, path, query }
    }
}

fn bar_words(bar: &TimelineBar) -> String {
    let took = words::seconds(bar.seconds);
    let kind = match bar.kind {
        BarKind::Attempt => "in all",
        BarKind::Queued => "wait for a worker",
        BarKind::Work => "work",
        BarKind::Gate => "contract",
        BarKind::Rehearsal => "contract before the work",
        BarKind::Ask => "wait for a person",
    };
    let attempt = bar.attempt.map(|attempt| format!("attempt {attempt}: ")).unwrap_or_default();
    let outcome =
        bar.outcome.as_ref().map(|outcome| format!(", {}", words::safe(outcome))).unwrap_or_default();
    let open = if bar.is_open { ", not over" } else { "" };
    format!("{attempt}{kind} {took}{outcome}{open}")
}

/// Says in one line what took how long.
fn lane_words(bars: &[TimelineBar]) -> String {
    let sum = |kinds: &[BarKind]| -> f64 {
        bars.iter().filter(|bar| kinds.contains(&bar.kind)).map(|bar| bar.seconds).sum()
    };
    let attempts = bars.iter().filter(|bar| bar.kind == BarKind::Attempt).count();
    let failed = bars.iter().filter(|bar| bar.kind == BarKind::Attempt && bar.failed).count();
    let mut parts = Vec::new();
    if attempts > 0 {
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        parts.push(format!("{}{failed}", words::counted(attempts, "attempt")));
    }
    for (name, kinds) in [
        ("waited", &[BarKind::Queued] as &[BarKind]),
        ("work", &[BarKind::Work]),
        ("contract", &[BarKind::Gate, BarKind::Rehearsal]),
        ("asked", &[BarKind::Ask]),
    ] {
        let seconds = sum(kinds);
        if seconds > 0.0 {
            parts.push(format!("{name} {}", words::seconds(seconds)));
        }
    }
    parts.join(" · ")
}
