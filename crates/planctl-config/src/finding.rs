//! A finding about a configuration file.

use std::fmt;

/// One thing that is wrong in a configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}
