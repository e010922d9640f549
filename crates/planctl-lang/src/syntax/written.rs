//! A value as its author wrote it: read once, with the words that say it and their place.

use std::time::Duration;

use planctl_engine::condition::Condition;
use planctl_engine::{
    AskDeadline, Backoff, ChildApproval, Fidelity, JoinPolicy, Level, Priority, Subscription, WorkKind,
};

use crate::syntax::condition::{self, Reading};
use crate::syntax::values::{self, OnFail, WorkspaceMode};
use crate::text::{Span, Spanned};

/// The value of a field, if the field is there: its words stay, so that writers repeat what the author wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written<T>(Option<Box<Words<T>>>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Words<T> {
    text: Spanned<String>,
    /// Nothing where the words are blank, where nothing follows from them (`block` of a library, H-33), and where they can't
    /// be read, which the reader of the language reports.
    value: Option<T>,
}

/// A value that the dialect of DOT has a form for.
pub trait FieldValue: Sized {
    /// The form of its words.
    const FORM: ValueForm;

    /// Reads the words.
    fn read(text: &str) -> Option<Self>;

    /// Gives the parts that have places of their own the place of the words.
    fn at(self, _words: Span) -> Self {
        self
    }
}

/// A value that planctl has words for.
pub trait FieldWords: FieldValue {
    /// Returns the words by which it is read again.
    fn words(&self) -> String;
}

/// The form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueForm {
    /// Any text.
    Text,
    /// A whole number from, to.
    Whole(i64, i64),
    /// `true` or `false`.
    Flag,
    /// A duration (D10).
    Duration,
    /// The policy for a failure: `**on_fail:**` of plans, or a word of library entries.
    Policy,
    /// A time, and an answer that stops: `24 h, then reject`.
    AskDeadline,
    /// `file:` and `topic:` references, between commas or on lines.
    References,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl<T> Default for Written<T> {
    fn default() -> Written<T> {
        Written(None)
    }
}

impl<T> Written<T> {
    /// Makes the field of words that were read elsewhere.
    pub(crate) fn with_words(text: Spanned<String>, value: Option<T>) -> Written<T> {
        Written(Some(Box::new(Words { text, value })))
    }

    /// Reads the words of a field.
    pub fn read(text: Spanned<String>) -> Written<T>
    where
        T: FieldValue,
    {
        let value = if text.value.trim().is_empty() { None } else { T::read(&text.value) };
        let value = value.map(|value| value.at(text.span));
        Written::with_words(text, value)
    }

    /// Makes the field of a value that was read elsewhere.
    pub fn of(value: Spanned<T>) -> Written<T>
    where
        T: FieldWords,
    {
        let text = Spanned::new(value.value.words(), value.span);
        Written::with_words(text, Some(value.value))
    }

    /// Returns the words; nothing where they are blank.
    pub fn text(&self) -> Option<&Spanned<String>> {
        self.raw().filter(|text| !text.value.trim().is_empty())
    }

    /// Returns the words, be they blank.
    pub fn raw(&self) -> Option<&Spanned<String>> {
        self.0.as_ref().map(|words| &words.text)
    }

    /// Says whether the field is there and not blank.
    pub fn is_said(&self) -> bool {
        self.text().is_some()
    }

    /// Returns the value, where it can be read.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref()?.value.as_ref()
    }

    /// Says whether it is this value.
    pub fn is(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        self.value() == Some(value)
    }

    /// Returns the value with its place.
    pub fn spanned(&self) -> Option<Spanned<T>>
    where
        T: Clone,
    {
        let words = self.0.as_ref()?;
        Some(Spanned::new(words.value.clone()?, words.text.span))
    }
}

/// Fields with the places of their words.
pub(crate) trait Placed {
    /// Forgets the places, and the words by which another value than a text is said.
    fn forget_places(&mut self);
}

impl<T: FieldValue> Placed for Written<T> {
    fn forget_places(&mut self) {
        let Some(words) = &mut self.0 else { return };
        words.text.span = Span::default();
        words.value = words.value.take().map(|value| value.at(Span::default()));
        if T::FORM != ValueForm::Text {
            words.text.value.clear();
        }
    }
}

impl<T: FieldWords + Clone> Written<Vec<Spanned<T>>> {
    /// Makes a list of entries; nothing of none.
    pub(crate) fn list(entries: &[Spanned<T>]) -> Written<Vec<Spanned<T>>> {
        let span = entries.iter().map(|entry| entry.span).reduce(Span::to);
        span.map(|span| Spanned::new(entries.to_vec(), span)).into()
    }

    /// Returns the entries, each with its place: that of the whole where the words say all of them at once.
    pub fn entries(&self) -> &[Spanned<T>] {
        self.value().map_or(&[], Vec::as_slice)
    }

    /// Returns the words of each entry.
    pub(crate) fn entry_words(&self) -> Vec<String> {
        self.entries().iter().map(|entry| entry.value.words()).collect()
    }
}

impl<T: FieldValue> FieldValue for Vec<Spanned<T>> {
    const FORM: ValueForm = T::FORM;

    fn read(text: &str) -> Option<Self> {
        let read = entries(text).filter_map(T::read);
        Some(read.map(|entry| Spanned::new(entry, Span::default())).collect())
    }

    fn at(mut self, words: Span) -> Self {
        self.iter_mut().for_each(|entry| entry.span = words);
        self
    }
}

impl<T: FieldWords> FieldWords for Vec<Spanned<T>> {
    fn words(&self) -> String {
        self.iter().map(|entry| entry.value.words()).collect::<Vec<_>>().join("\n")
    }
}

impl From<Spanned<String>> for Written<Text> {
    fn from(text: Spanned<String>) -> Written<Text> {
        Written::read(text)
    }
}

impl From<Option<Spanned<String>>> for Written<Text> {
    fn from(text: Option<Spanned<String>>) -> Written<Text> {
        text.map(Written::read).unwrap_or_default()
    }
}

impl<T: FieldWords> From<Option<Spanned<T>>> for Written<T> {
    fn from(value: Option<Spanned<T>>) -> Written<T> {
        value.map(Written::of).unwrap_or_default()
    }
}

/// A text, which is its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text;

/// How long each attempt waits for the next, and how many there are where no number says it (R2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    /// The wait; nothing where the next attempt follows at once.
    pub backoff: Option<Backoff>,
    /// The attempts beyond the first.
    pub retries: u16,
}

/// How a run ends at an exit (ruling 8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitResult {
    /// It is done.
    Success,
    /// It failed.
    Failed,
}

/// A check that a library asks for beside the contract of a step (H-25 to H-30).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerifyType {
    /// The output has a text in it.
    OutputContains,
    /// The output does not have a text in it.
    OutputNotContains,
    /// The command exits with 0.
    ExitCodeZero,
    /// A file is there.
    FileExists,
    /// The output is more than space.
    AnyOutput,
    /// A person confirms it.
    Manual,
}

/// The form of each type, how its words are read, and how they are written where planctl writes it.
macro_rules! values {
    ($($type:ty: $form:expr, $read:expr $(, $write:expr)?;)*) => {$(
        impl FieldValue for $type {
            const FORM: ValueForm = $form;

            fn read(text: &str) -> Option<$type> {
                let read: fn(&str) -> Option<$type> = $read;
                read(text)
            }
        }

        $(impl FieldWords for $type {
            fn words(&self) -> String {
                let write: fn(&$type) -> String = $write;
                write(self)
            }
        })?
    )*};
}

values! {
    Text: ValueForm::Text, |_| Some(Text);
    bool: ValueForm::Flag, values::flag, bool::to_string;
    u8: ValueForm::Whole(0, 255), |text| values::whole(text)?.try_into().ok(), u8::to_string;
    u16: ValueForm::Whole(0, 65_535), |text| values::whole(text)?.try_into().ok(), u16::to_string;
    u32: ValueForm::Whole(0, 4_294_967_295), |text| values::whole(text)?.try_into().ok(), u32::to_string;
    Duration: ValueForm::Duration, |text| values::seconds(text).map(Duration::from_secs), |time| format!("{}s", time.as_secs());
    OnFail: ValueForm::Policy, values::on_fail_of, OnFail::to_string;
    AskDeadline: ValueForm::AskDeadline, |text| values::ask_deadline(text).ok(),
        |deadline| values::ask_deadline_words(*deadline);
    Condition: ValueForm::Text, |text| Some(condition::read(text).ok()?.condition), Condition::to_string;
    Reading: ValueForm::Text, |text| condition::read(text).ok();
    String: ValueForm::Text, |text| Some(text.to_owned()), String::clone;
    Subscription: ValueForm::References, subscription, subscription_words;
    Vec<String>: ValueForm::Text, |text| Some(entries(text).map(str::to_owned).collect()), |list| list.join("\n");
    RetryPolicy: ValueForm::Word(&["none", "standard", "aggressive", "linear", "patient"]), |text| {
        Backoff::from_word(text).map(|(backoff, retries)| RetryPolicy { backoff, retries })
    };
    Fidelity: ValueForm::Word(&["full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"]),
        Fidelity::from_word, |fidelity| fidelity.word().to_owned();
}

/// Entries, on lines or between commas.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ',']).map(str::trim).filter(|entry| !entry.is_empty())
}

fn subscription(entry: &str) -> Option<Subscription> {
    let (kind, name) = entry.split_once(':')?;
    let name = name.trim().to_owned();
    match kind.trim() {
        "topic" => Some(Subscription::Topic { name }),
        "file" => Some(Subscription::File { path: name }),
        _ => None,
    }
}

fn subscription_words(subscription: &Subscription) -> String {
    match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    }
}

/// The words of each value; of several for one the first is written.
macro_rules! words {
    ($($type:ident { $($value:ident $word:literal $(| $other:literal)*,)* })*) => {values! {$(
        $type: ValueForm::Word(&[$($word, $($other,)*)*]),
            |text| match text { $($word $(| $other)* => Some($type::$value),)* _ => None },
            |value| match value { $($type::$value => $word.to_owned(),)* };
    )*}};
}

words! {
    Priority { Low "low", Normal "normal", High "high", Urgent "urgent", }
    WorkKind { Code "code", Review "review", }
    WorkspaceMode { Shared "shared", Worktree "worktree", }
    ChildApproval { Ask "ask", Inherit "inherit", }
    // P3, P4: how many branches a join waits for.
    JoinPolicy { All "wait_all" | "all", Any "first_success" | "any", }
    Level { Primary "primary", Alternate "alternate", Contingent "contingent", Emergency "emergency", }
    ExitResult { Success "success", Failed "failed" | "fail", }
    VerifyType {
        OutputContains "output_contains",
        OutputNotContains "output_not_contains",
        ExitCodeZero "exit_code_zero",
        FileExists "file_exists",
        AnyOutput "any_output",
        Manual "manual",
    }
}
