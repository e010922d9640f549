//! The frame of every page: its reader, its moment, its tab, and the parts that change while somebody looks.

use planctl_api::words;

/// The reader of a page.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The name under which decisions are on record.
    pub name: &'a str,
    /// The scope of the session, in the word of the API.
    pub scope: &'a str,
    /// Proves that a form comes from a page of this session.
    pub form: &'a str,
}

/// The hidden fields of a form, for a reader who may decide.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// The name under which the decision is on record.
    pub name: &'a str,
    /// Proves that the form comes from a page of this session.
    pub form: &'a str,
    /// The key under which what it asks for is done once.
    pub key: &'a str,
}

/// The tab that a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    /// Asks, and runs under way.
    Home,
    /// Runs and their steps.
    Runs,
    /// Plans and their texts.
    Plans,
    /// Plans that a sentence finds.
    Library,
    /// The daemon, its workers and tokens.
    System,
    /// None of them.
    Elsewhere,
}

/// The frame of every page.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The reader, once signed in.
    pub reader: Option<Reader<'a>>,
    /// The page's own address.
    pub path: &'a str,
    /// The tab.
    pub tab: Tab,
    /// The moment of its data, RFC 3339.
    pub now: &'a str,
    /// The same in seconds since 1970.
    pub now_seconds: f64,
    /// Where its live updates come from.
    pub live: Option<&'a str>,
    /// The decision that was just recorded.
    pub recorded: Option<Recorded<'a>>,
}

/// A decision that was just recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded<'a> {
    /// The sentence about it.
    pub sentence: &'static str,
    /// The word of the decision.
    pub word: &'a str,
    /// The number of the ask, or the name of the run, that it is about.
    pub about: Option<&'a str>,
}

impl Recorded<'_> {
    /// Says that an ask was answered.
    pub fn is_answer(&self) -> bool {
        self.about.is_some_and(|about| about.parse::<u64>().is_ok())
    }
}

impl<'a> Frame<'a> {
    /// Begins a page at a moment in RFC 3339.
    pub fn at(now: &'a str, path: &'a str, tab: Tab) -> Frame<'a> {
        let now_seconds = words::unix_seconds(now).unwrap_or_default();
        Frame { reader: None, path, tab, now, now_seconds, live: None, recorded: None }
    }
}

/// Finds the parts of a page that change while somebody looks: the name of each, and its HTML.
pub fn live_parts(html: &str) -> Vec<(&str, &str)> {
    const BEGIN: &str = "<!--live ";
    const END: &str = "<!--/live-->";
    let mut parts = Vec::new();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let Some((name, after)) = after.split_once("-->") else { break };
        let Some((part, after)) = after.split_once(END) else { break };
        parts.push((name, part));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::live_parts;

    #[test]
    fn live_parts_are_found_by_their_marks_and_strangers_text_makes_none() {
        let page =
            "<h1>a</h1><!--live x--><p>1</p><!--/live-->…<!--live y--><p>&lt;!--live z--&gt;</p><!--/live-->";
        assert_eq!(live_parts(page), [("x", "<p>1</p>"), ("y", "<p>&lt;!--live z--&gt;</p>")]);
        assert_eq!(live_parts("<!--live x"), []);
    }
}
