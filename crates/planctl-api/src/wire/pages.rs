//! Lists that come in pages: a page names a `next` cursor, which the call for the following page takes as `cursor`.

use std::fmt::Display;

use super::messages::{DeliveryList, DeliveryView};
use super::work::{TokenList, TokenView, WorkerList, WorkerView};
use super::{
    AskList, AskView, AttemptView, AuditView, AuditedRun, KeptRevision, LogView, PlanList, PlanSummary,
    RevisionList, RoleWork, RoleWorkList, RunList, RunSummary, TopicList, TopicSummary,
};

/// A list that comes in pages.
pub trait Paged {
    /// The name of the list; a cursor of one list is not valid for another.
    const NAME: &'static str;
    /// The type of its entries.
    type Entry;

    /// Returns its entries, and what names the next page.
    fn parts(&mut self) -> (&mut Vec<Self::Entry>, &mut Option<String>);

    /// Names the page after the entry with this key.
    fn cursor(key: impl Display) -> String {
        format!("{}:{}", Self::NAME, escape_key(&key.to_string()))
    }

    /// Reads the key out of a cursor of this list.
    fn key(cursor: &str) -> Option<String> {
        read(cursor.strip_prefix(Self::NAME)?.strip_prefix(':')?)
    }
}

/// Writes a key so that it stands in an address as it is: other bytes than letters, digits, `-`, `_` and `.` as `~` and two digits.
fn escape_key(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut text = String::new();
    for byte in key.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("~{byte:02x}"));
        }
    }
    text
}

fn read(text: &str) -> Option<String> {
    let mut parts = text.split('~');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

macro_rules! paged {
    ($($list:ident, $name:ident: $entry:ident;)*) => {
        paged! { $($list, $name: $entry = stringify!($name);)* }
    };
    ($($list:ident, $field:ident: $entry:ident = $name:expr;)*) => {
        $(impl Paged for $list {
            const NAME: &'static str = $name;
            type Entry = $entry;

            fn parts(&mut self) -> (&mut Vec<$entry>, &mut Option<String>) {
                (&mut self.$field, &mut self.next)
            }
        })*
    };
}

paged! {
    PlanList, plans: PlanSummary;
    RevisionList, revisions: KeptRevision;
    RoleWorkList, roles: RoleWork;
    RunList, runs: RunSummary;
    LogView, attempts: AttemptView;
    AskList, asks: AskView;
    TopicList, topics: TopicSummary;
    WorkerList, workers: WorkerView;
    TokenList, tokens: TokenView;
    DeliveryList, deliveries: DeliveryView;
}

paged! {
    // `runs` is the list of runs.
    AuditView, runs: AuditedRun = "audits";
}
