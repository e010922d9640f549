//! Parts of lists that may be long.

/// The part of a list that is wanted: the entries after a key, up to a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<K> {
    /// The entry that it comes after; the beginning where it is left out.
    pub after: Option<K>,
    /// How many entries at most.
    pub limit: i64,
}

impl<K> Page<K> {
    /// The whole list.
    pub const ALL: Page<K> = Page { after: None, limit: i64::MAX };

    /// Returns after which entry the next page comes, where there may be one.
    pub fn next<T>(&self, entries: &[T], key: impl FnOnce(&T) -> K) -> Option<K> {
        let is_full = i64::try_from(entries.len()).is_ok_and(|count| count >= self.limit);
        entries.last().filter(|_| is_full).map(key)
    }
}
