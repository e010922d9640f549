//! The marks that a run leaves before the titles of steps.

/// How a step stands, as its heading shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Its gate passed.
    Passed,
    /// Its gate passed and proves nothing: the contract passed before the work, too.
    Vacuous,
    /// It failed for good.
    Failed,
    /// It was skipped.
    Skipped,
    /// It failed and the run went on.
    Warned,
    /// A person let it pass by name.
    Waived,
    /// It is worked on, checked, or waits for a person.
    Working,
}

impl Mark {
    /// Returns the character that stands before the title.
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Passed => "✅",
            Mark::Vacuous => "✅⚠",
            Mark::Failed => "❌",
            Mark::Skipped => "⏭",
            Mark::Warned => "⚠",
            Mark::Waived => "☑",
            Mark::Working => "⏳",
        }
    }
}
