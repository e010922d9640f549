//! The record of a seed: the conversation in lines, and the rule that broke.

use std::fmt;

use crate::coverage::Coverage;
use crate::options::Options;

/// The record of one seed.
#[derive(Debug)]
pub struct Tale {
    /// The cases met, in words.
    pub coverage: Coverage,
    /// Events accepted.
    pub events: usize,
    /// The conversation.
    pub lines: Vec<String>,
}

/// A promise that was broken, and the conversation that led there.
#[derive(Debug)]
pub struct Breach {
    /// The seed.
    pub seed: u64,
    /// The options that it expands to.
    pub options: Options,
    /// The rule that broke.
    pub what: String,
    /// The conversation.
    pub lines: Vec<String>,
}

impl Breach {
    /// Returns the first line of the broken promise, cut to 160 characters.
    pub fn headline(&self) -> String {
        self.what.lines().next().unwrap_or_default().chars().take(160).collect()
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.options)?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        write!(f, "broken: {}\nagain with: PLANCTL_SIM_SEED={} just sim", self.what, self.seed)
    }
}
