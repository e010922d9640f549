//! A person's browser, opened at their desktop.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The program that opens a link for a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Browser(OsString);

impl Browser {
    /// Returns the program that `BROWSER` names; else, at a desktop, the one that desktops have for it.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Browser> {
        let has = |name: &str| variable(name).filter(|value| !value.is_empty());
        let desktop =
            || has("WAYLAND_DISPLAY").or_else(|| has("DISPLAY")).map(|_| OsString::from("xdg-open"));
        has("BROWSER").or_else(desktop).map(Browser)
    }

    /// Opens a link, and does not wait for the browser's end. Its output is discarded.
    ///
    /// # Errors
    ///
    /// When the program can't be started.
    pub fn open(&self, link: &str) -> io::Result<()> {
        let mut browser = Command::new(&self.0);
        browser.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C at the terminal is not the browser's.
        browser.process_group(0).spawn().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> Option<Browser> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        Browser::from_environment(value)
    }

    #[test]
    fn the_person_s_own_browser_goes_before_that_of_the_desktop() {
        assert_eq!(named(&[("BROWSER", "w3m"), ("DISPLAY", ":0")]), Some(Browser("w3m".into())));
        assert_eq!(named(&[("DISPLAY", ":0")]), Some(Browser("xdg-open".into())));
        assert_eq!(named(&[("BROWSER", "")]), None, "without a desktop nothing opens a link");
    }
}
