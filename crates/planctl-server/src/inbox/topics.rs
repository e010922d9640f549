//! Topics: notes that people, programs and other plans leave for steps.

use planctl_store::{Page, TopicName, TopicNote};

use crate::node::services::{ServiceError, Services};
use planctl_api::wire::{NoteView, Paged, TopicList, TopicSummary, TopicView, moment};

/// The most notes that are shown at once.
const NOTES_MAX: usize = 1_000;

impl Services {
    /// Adds a note to a topic, which begins with its first.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for what can't be a topic's name or an empty note, and those of the store.
    pub async fn post_note(&self, topic: &str, text: &str) -> Result<TopicView, ServiceError> {
        let name = topic_name(topic)?;
        if text.trim().is_empty() {
            return Err(ServiceError::Invalid {
                what: "post an empty note".to_owned(),
                help: "a note says what others are to know".to_owned(),
            });
        }
        let note = self.store.post_note(&name, &self.caller.actor, text, self.caller.request).await?;
        Ok(TopicView { topic: topic.to_owned(), total: note.of.unsigned_abs(), notes: vec![note_view(note)] })
    }

    /// Lists topics, by name.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn topics(&self, page: &Page<String>) -> Result<TopicList, ServiceError> {
        let rows = self.store.topics(page).await?;
        let next = page.next(&rows, |row| row.name.clone()).map(TopicList::cursor);
        let topics = rows.into_iter().map(|row| TopicSummary {
            topic: row.name,
            notes: row.notes.unsigned_abs(),
            posted_at: moment(row.posted_at),
        });
        Ok(TopicList { topics: topics.collect(), next })
    }

    /// Shows notes of a topic after number `since`, oldest first, at most a thousand.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`], [`ServiceError::NotFound`] where nobody has posted to it, and those of the store.
    pub async fn topic(&self, topic: &str, since: u64, limit: usize) -> Result<TopicView, ServiceError> {
        let name = topic_name(topic)?;
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit.min(NOTES_MAX)).unwrap_or(1);
        let total = self.store.topics(&Page::ALL).await?.into_iter().find(|row| row.name == name.as_str());
        let total = total.ok_or_else(|| ServiceError::NotFound { what: format!("topic `{topic}`") })?.notes;
        let notes = self.store.notes(topic, since, limit).await?.into_iter().map(note_view).collect();
        Ok(TopicView { topic: topic.to_owned(), total: total.unsigned_abs(), notes })
    }
}

fn note_view(note: TopicNote) -> NoteView {
    NoteView {
        number: note.number.unsigned_abs(),
        at: moment(note.at),
        by: note.by.to_string(),
        text: note.text,
    }
}

fn topic_name(text: &str) -> Result<TopicName, ServiceError> {
    TopicName::parse(text).ok_or_else(|| ServiceError::Invalid {
        what: format!("use `{}` as the name of a topic", planctl_lang::escape(text)),
        help: "topics have up to 100 letters, digits, `-`, `_`, `.` and `/`".to_owned(),
    })
}
