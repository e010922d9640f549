//! The address of a page: the parts of its path, and its query.

use std::str::FromStr;

use axum::http::Uri;
use planctl_web::encoded;

/// The parameters that say what a page shows.
const KEPT: [&str; 14] = [
    "workspace",
    "from",
    "cursor",
    "digest",
    "before",
    "since",
    "part",
    "at",
    "kind",
    "project",
    "role",
    "state",
    "plan",
    "message",
];

/// The address of a page.
pub(super) struct Address {
    segments: Vec<String>,
    query: Vec<(String, String)>,
}

impl Address {
    pub(super) fn of(uri: &Uri) -> Address {
        Address::parts(uri.path(), uri.query().unwrap_or_default())
    }

    /// Reads an address that a page named: its path, and a query that may follow.
    pub(super) fn parse(text: &str) -> Address {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        Address::parts(path, query)
    }

    fn parts(path: &str, query: &str) -> Address {
        let segments = path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect();
        Address { segments, query: pairs(query.as_bytes()) }
    }

    pub(super) fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    /// Returns a parameter of the query.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a parameter of the query that is a number; nothing where it is none.
    pub(super) fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.query(name)?.parse().ok()
    }

    /// Returns the first parts of its path as a path.
    pub(super) fn path_of(&self, count: usize) -> String {
        let parts = self.segments.iter().take(count).map(|segment| format!("/{}", encoded(segment)));
        let path: String = parts.collect();
        if path.is_empty() { "/".to_owned() } else { path }
    }

    /// Returns these parameters of its query as a query, which is empty where it has none of them.
    pub(super) fn query_of(&self, names: &[&str]) -> String {
        let kept = self.query.iter().filter(|(name, _)| names.contains(&name.as_str()));
        let kept: Vec<String> = kept.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
    }

    /// Returns the whole address, without the word of what was just recorded.
    pub(super) fn whole(&self) -> String {
        let path = self.path_of(usize::MAX);
        format!("{path}{}", self.query_of(&KEPT))
    }
}

/// Reads fields as browsers send them.
pub(super) fn pairs(bytes: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(bytes).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// Reads one part of a path; a plus stands for itself there.
fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_with_every_letter() {
        let address = Address::parse("/runs/a%2Fb+c%3F&d/steps?workspace=%2Ftmp%2Fx+y&recorded=retry");
        assert_eq!(address.segments(), ["runs", "a/b+c?&d", "steps"]);
        assert_eq!(address.query("workspace"), Some("/tmp/x y"));
        assert_eq!(address.whole(), "/runs/a%2Fb%2Bc%3F%26d/steps?workspace=%2Ftmp%2Fx%20y");
        assert_eq!(Address::parse("/").whole(), "/");
        assert_eq!(
            Address::parse("/runs/a/graph?at=7").whole(),
            "/runs/a/graph?at=7",
            "live updates are of the same part"
        );
    }
}
