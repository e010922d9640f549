//! Draws planctl's pages: takes what the API answers, and returns HTML that needs no script.
//!
//! It asks nobody and decides nothing. A part of a page that changes while a run goes on stands between two marks
//! (`<!--live NAME-->`), so that a live update is a part of the very same page: [`live_parts`] finds them.

mod ask;
pub mod assets;
mod drafts;
mod draw;
mod edit;
mod frame;
mod history;
mod home;
mod library;
mod margin;
mod output;
mod plain;
mod plans;
mod reader_marks;
mod run;
mod step;
mod system;
mod timeline;

use askama::Template;

pub use ask::{AskScreen, Draft};
pub use drafts::{DraftScreen, DraftsScreen};
pub use draw::{encoded, joined_key, safe_text};
pub use edit::{EditDraft, EditNews, EditScreen};
pub use frame::{Form, Frame, Reader, Recorded, Tab, live_parts};
pub use history::HistoryScreen;
pub use home::{Filters, HomeScreen, RunFilters, RunsScreen};
pub use library::LibraryScreen;
pub use output::{Output, OutputScreen};
pub use plain::{ProblemScreen, SignInScreen};
pub use plans::{PlanScreen, PlansScreen};
pub use reader_marks::ReaderMarks;
pub use run::{GraphScreen, RunScreen};
pub use step::{AttemptWindow, StepScreen};
pub use system::{DoctorScreen, SystemScreen};
pub use timeline::TimelineScreen;

/// A screen that can be drawn.
pub trait Screen {
    /// Draws it as a whole page.
    fn html(&self) -> String;
}

impl<T: Template> Screen for T {
    fn html(&self) -> String {
        // Templates write into memory, which does not fail.
        self.render().unwrap_or_else(|error| format!("<!doctype html><title>planctl</title><p>{error}"))
    }
}
