//! The inbox: asks that wait for a person, with their answers, and the notes that people and programs leave for steps.

mod answers;
mod ask_page;
pub(crate) mod ask_view;
mod asks;
pub(crate) mod draft_asks;
mod draft_records;
pub(crate) mod edit;
mod evidence;
mod options;
pub(crate) mod order;
mod topics;
mod votes;
