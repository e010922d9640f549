//! The isolation tiers that this machine offers.

use std::sync::OnceLock;

use planctl_harness::{Spawner, probe_isolation};

/// One tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tier {
    /// As docs/security.md names it.
    pub name: &'static str,
    /// The lines of the user's `planctl.toml` that ask for it.
    pub configuration: String,
    /// Says that it is the one that is tried where nothing is asked for.
    pub is_default: bool,
}

/// All tiers that the table has a column for.
pub const ALL: &[&str] = &["0", "1a", "1b", "2"];

impl Tier {
    fn new(tier: planctl_engine::Tier) -> Tier {
        let is_default = tier == planctl_engine::Tier::SameUser;
        Tier { name: tier.name(), configuration: format!("isolation = \"{tier}\""), is_default }
    }

    /// Returns what the names of its trials begin with.
    pub fn prefix(&self) -> String {
        if self.is_default { String::new() } else { format!("tier_{}::", self.name) }
    }
}

/// Returns the tiers of this machine, each of which held in a trial.
pub fn offered() -> &'static [Tier] {
    static OFFERED: OnceLock<Vec<Tier>> = OnceLock::new();
    OFFERED.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let best = runtime.block_on(async {
            let spawner = Spawner::start(env!("CARGO_BIN_EXE_planctl"), None).unwrap();
            let offered = probe_isolation(&spawner).await.unwrap();
            spawner.shutdown();
            offered.tier
        });
        planctl_engine::Tier::ALL.into_iter().filter(|tier| *tier <= best).map(Tier::new).collect()
    })
}
