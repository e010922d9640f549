//! A value as its author wrote it: read once, with the words that say it and their place.

use std::time::Duration;

use planctl_engine::{
    AskDeadline, Backoff, ChildApproval, Fidelity, JoinPolicy, Level, On, Priority, RedFirst, Subscription,
    WorkKind,
};

use crate::syntax::condition::{self, Reading};
use crate::syntax::values::{self, OnFail, Unread, WorkspaceMode};
use crate::text::near::{ask_or_say, nearest};
use crate::text::{Span, Spanned};

/// The value of a field, if the field is there: its words stay, so that writers repeat what the author wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written<T>(Option<Box<Words<T>>>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Words<T> {
    /// The place of the field's name; that of the words where it has none.
    name: Span,
    text: Spanned<String>,
    /// Nothing where the words are blank, and where they can't be read.
    value: Option<T>,
}

/// A value of a field.
pub trait FieldValue: Sized {
    /// The form of its words.
    const FORM: ValueForm;

    /// Reads the words, by the form that the field gives them.
    ///
    /// # Errors
    ///
    /// Returns why they are no such value.
    fn read(text: &str, form: ValueForm) -> Result<Self, Unread>;

    /// Gives the parts that have places of their own the place of the words.
    fn at(self, _words: Span) -> Self {
        self
    }
}

/// A value that planctl has words for.
pub trait FieldWords: FieldValue {
    /// Returns the words by which it is read again.
    fn describe(&self) -> String;
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
    /// One of these words.
    Word(&'static [&'static str]),
    /// Words with a grammar of their own.
    Phrase,
}

impl<T> Default for Written<T> {
    fn default() -> Written<T> {
        Written(None)
    }
}

impl<T> Written<T> {
    /// Makes the field of words that were read elsewhere.
    pub(crate) fn with_words(text: Spanned<String>, value: Option<T>) -> Written<T> {
        Written(Some(Box::new(Words { name: text.span, text, value })))
    }

    /// Reads the words of a field by their form. Words that can't be read stay, without a value.
    ///
    /// # Errors
    ///
    /// Returns why they can't be read.
    pub(crate) fn read(&mut self, name: Span, text: Spanned<String>, form: ValueForm) -> Result<(), Unread>
    where
        T: FieldValue,
    {
        let is_blank = text.value.trim().is_empty();
        let read = (!is_blank).then(|| T::read(&text.value, form)).transpose();
        let (value, unread) = read.map_or_else(|unread| (None, Err(unread)), |value| (value, Ok(())));
        let value = value.map(|value| value.at(text.span));
        *self = Written(Some(Box::new(Words { name, text, value })));
        unread
    }

    /// Returns the field, or that of others where it is not there.
    pub(crate) fn or(self, other: &Written<T>) -> Written<T>
    where
        T: Clone,
    {
        Written(self.0.or_else(|| other.0.clone()))
    }

    /// Makes the field of a value that was read elsewhere.
    pub(crate) fn of(value: Spanned<T>) -> Written<T>
    where
        T: FieldWords,
    {
        let text = Spanned::new(value.value.describe(), value.span);
        Written::with_words(text, Some(value.value))
    }

    /// Returns the words; nothing where they are blank.
    pub fn text(&self) -> Option<&Spanned<String>> {
        self.raw().filter(|text| !text.value.trim().is_empty())
    }

    /// Returns the place of the field's name, and its words; nothing where they are blank.
    pub(crate) fn named(&self) -> Option<(Span, &Spanned<String>)> {
        Some((self.0.as_ref()?.name, self.text()?))
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
        (words.name, words.text.span) = <_>::default();
        words.value = words.value.take().map(|value| value.at(Span::default()));
        if T::FORM != ValueForm::Text {
            words.text.value.clear();
        }
    }
}

impl Written<condition::Read> {
    /// Returns the condition with its place; nothing of one that can't be read.
    pub(crate) fn condition(&self) -> Option<Spanned<Reading>> {
        let Spanned { value, span } = self.spanned()?;
        Some(Spanned::new(value.ok()?, span))
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
        self.entries().iter().map(|entry| entry.value.describe()).collect()
    }
}

impl<T: FieldValue> FieldValue for Vec<Spanned<T>> {
    const FORM: ValueForm = T::FORM;

    fn read(text: &str, form: ValueForm) -> Result<Self, Unread> {
        let is_one = entries(text).nth(1).is_none();
        let entry = |entry| {
            let read = T::read(entry, form).map(|value| Spanned::new(value, Span::default()));
            read.map_err(|unread| Unread { meant: unread.meant.filter(|_| is_one), ..unread })
        };
        entries(text).map(entry).collect()
    }

    fn at(mut self, words: Span) -> Self {
        self.iter_mut().for_each(|entry| entry.span = words);
        self
    }
}

impl<T: FieldWords> FieldWords for Vec<Spanned<T>> {
    fn describe(&self) -> String {
        self.iter().map(|entry| entry.value.describe()).collect::<Vec<_>>().join("\n")
    }
}

impl From<Spanned<String>> for Written<Text> {
    fn from(text: Spanned<String>) -> Written<Text> {
        let value = (!text.value.trim().is_empty()).then_some(Text);
        Written::with_words(text, value)
    }
}

impl From<Option<Spanned<String>>> for Written<Text> {
    fn from(text: Option<Spanned<String>>) -> Written<Text> {
        text.map(Written::from).unwrap_or_default()
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

            fn read(text: &str, form: ValueForm) -> Result<$type, Unread> {
                let read: fn(&str, ValueForm) -> Result<$type, Unread> = $read;
                read(text, form)
            }
        }

        $(impl FieldWords for $type {
            fn describe(&self) -> String {
                let write: fn(&$type) -> String = $write;
                write(self)
            }
        })?
    )*};
}

values! {
    Text: ValueForm::Text, |text, form| word(text, form, |_| Some(Text));
    bool: ValueForm::Flag, |text, _| values::flag(text), bool::to_string;
    u8: ValueForm::Whole(0, 255), whole_number_in, u8::to_string;
    u16: ValueForm::Whole(0, 65_535), whole_number_in, u16::to_string;
    u32: ValueForm::Whole(0, 4_294_967_295), whole_number_in, u32::to_string;
    i64: ValueForm::Whole(i64::MIN, i64::MAX), whole_number_in, i64::to_string;
    Duration: ValueForm::Phrase, |text, _| values::seconds(text), |time| format!("{}s", time.as_secs());
    OnFail: ValueForm::Phrase, |text, _| match text.trim() {
        // H-33: a library's word for what is done where nothing is said.
        "block" => Ok(OnFail::default()),
        text => values::on_fail(text),
    }, OnFail::to_string;
    AskDeadline: ValueForm::Phrase, |text, _| values::ask_deadline(text),
        |deadline| values::ask_deadline_words(*deadline);
    condition::Read: ValueForm::Text, |text, _| Ok(condition::read(text));
    String: ValueForm::Text, |text, _| Ok(text.to_owned()), String::clone;
    Subscription: ValueForm::Phrase, |text, _| values::subscription(text), values::subscription_words;
    Vec<String>: ValueForm::Text, |text, _| Ok(entries(text).map(str::to_owned).collect()), |list| list.join("\n");
    RetryPolicy: ValueForm::Word(&["none", "standard", "aggressive", "linear", "patient"]), |text, form| {
        word(text, form, |text| Backoff::from_word(text).map(|(backoff, retries)| RetryPolicy { backoff, retries }))
    };
    Fidelity: ValueForm::Word(&["full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"]),
        |text, form| word(text, form, Fidelity::from_word), |fidelity| fidelity.as_str().to_owned();
}

fn whole_number_in<N: TryFrom<i64>>(text: &str, form: ValueForm) -> Result<N, Unread> {
    let (least, most) = match form {
        ValueForm::Whole(least, most) => (least, most),
        ValueForm::Text | ValueForm::Flag | ValueForm::Word(_) | ValueForm::Phrase => (i64::MIN, i64::MAX),
    };
    let number = values::whole_number(text).filter(|number| (least..=most).contains(number));
    number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| {
        let why = format!("a whole number from {least} to {most} was expected");
        Unread::new(why, format!("write a whole number from {least} to {most}"))
    })
}

fn word<T>(text: &str, form: ValueForm, value: fn(&str) -> Option<T>) -> Result<T, Unread> {
    let text = text.trim();
    let words = match form {
        ValueForm::Word(words) => words,
        ValueForm::Text | ValueForm::Whole(..) | ValueForm::Flag | ValueForm::Phrase => &[],
    };
    let is_one = words.is_empty() || words.contains(&text);
    value(text).filter(|_| is_one).ok_or_else(|| {
        let near = nearest(text, words.iter().copied());
        let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let help = ask_or_say(near.map(|near| near.word), format!("the values are {list}"));
        let meant = near.map(|near| (near.word.to_owned(), near.is_only));
        Unread { meant, ..Unread::new("not one of its values", help) }
    })
}

/// Entries, on lines or between commas.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ',']).map(str::trim).filter(|entry| !entry.is_empty())
}

/// The words of each value; of several for one the first is written.
macro_rules! words {
    ($($type:ident { $($value:ident $word:literal $(| $other:literal)*,)* })*) => {values! {$(
        $type: ValueForm::Word(&[$($word, $($other,)*)*]),
            |text, form| word(text, form, |text| match text {
                $($word $(| $other)* => Some($type::$value),)*
                _ => None,
            }),
            |value| match value { $($type::$value => $word.to_owned(),)* };
    )*}};
}

words! {
    Priority { Low "low", Normal "normal", High "high", Urgent "urgent", }
    On { Success "success", Fail "fail", Retry "retry", Exhaust "exhaust", Always "always", }
    WorkKind { Code "code", Review "review", }
    WorkspaceMode { Shared "shared", Worktree "worktree", }
    ChildApproval { Ask "ask", Inherit "inherit", }
    // P3, P4: how many branches a join waits for.
    JoinPolicy { All "wait_all" | "all", Any "first_success" | "any", }
    Level { Primary "primary", Alternate "alternate", Contingent "contingent", Emergency "emergency", }
    RedFirst { Off "off", Warn "warn", Deny "deny", }
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
