//! The isolation tiers that this machine offers.

/// One tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tier {
    /// As docs/security.md names it.
    pub name: &'static str,
    /// What the user's `planctl.toml` says to have it.
    pub configuration: &'static str,
    /// Says that it is the one that is tried where nothing is asked for.
    pub is_default: bool,
}

/// All tiers that the table has a column for.
pub const ALL: &[&str] = &["0", "1a", "1b", "2"];

impl Tier {
    /// Returns what the names of its trials begin with.
    pub fn prefix(&self) -> String {
        if self.is_default { String::new() } else { format!("tier_{}::", self.name) }
    }
}

/// Returns the tiers of this machine.
pub fn offered() -> Vec<Tier> {
    vec![Tier { name: "0", configuration: "", is_default: true }]
}
