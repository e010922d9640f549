//! Profiles: the model and effort that a node asks of its agent, the part of the run that the agent is told, and the wait
//! before another try.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;

/// A node's requests to the agent that works on it (DOT A13, G-52): hints for the worker, which decide nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of a set of tools or settings that the worker knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How much the model is to think: `low`, `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How much of the run its prompt tells, where the edge that led here does not say (DOT F1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// The thread that it belongs to, regardless of the edge that led here (DOT F3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The thread that it belongs to where no edge says another: that of its graph or class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_thread: Option<String>,
}

/// The part of the run that an agent is told beside its task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carry {
    /// How much of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// Which work it goes on with, as a hint to workers that keep sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// How much of a run an agent is told (DOT F1), least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Fidelity {
    /// The goal and the run's name.
    #[serde(rename = "truncate")]
    Truncate,
    /// A line for each node that is over, and what conditions can look at.
    #[serde(rename = "compact")]
    Compact,
    /// The last few nodes.
    #[serde(rename = "summary:low")]
    SummaryLow,
    /// More nodes, with their titles.
    #[serde(rename = "summary:medium")]
    SummaryMedium,
    /// All that is kept of many nodes.
    #[serde(rename = "summary:high")]
    SummaryHigh,
    /// The whole conversation. Workers own their sessions, so this is a wish: the prompt tells as much as `summary:high`.
    #[serde(rename = "full")]
    Full,
}

impl Fidelity {
    /// All of them, in the order that people are told them.
    pub const ALL: [Fidelity; 6] = [
        Fidelity::Full,
        Fidelity::Truncate,
        Fidelity::Compact,
        Fidelity::SummaryLow,
        Fidelity::SummaryMedium,
        Fidelity::SummaryHigh,
    ];

    /// Returns the word that authors write.
    pub fn as_str(self) -> &'static str {
        match self {
            Fidelity::Full => "full",
            Fidelity::Truncate => "truncate",
            Fidelity::Compact => "compact",
            Fidelity::SummaryLow => "summary:low",
            Fidelity::SummaryMedium => "summary:medium",
            Fidelity::SummaryHigh => "summary:high",
        }
    }

    /// Returns the one of this word.
    pub fn from_word(word: &str) -> Option<Fidelity> {
        Fidelity::ALL.into_iter().find(|fidelity| fidelity.as_str() == word)
    }

    /// Returns the fidelity that a prompt can have where this one is asked for.
    pub fn supported(self) -> Fidelity {
        match self {
            Fidelity::Full => Fidelity::SummaryHigh,
            Fidelity::Truncate
            | Fidelity::Compact
            | Fidelity::SummaryLow
            | Fidelity::SummaryMedium
            | Fidelity::SummaryHigh => self,
        }
    }
}

/// How long a node that failed waits before it is tried again (DOT R2): longer each time, up to a minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The longest wait before the second attempt, in milliseconds.
    pub initial_ms: u32,
    /// By how much each wait is longer than the one before.
    pub factor: u16,
}

impl Backoff {
    /// The longest wait.
    pub const MOST: Duration = Duration::from_secs(60);

    /// Returns the policy of this name, with the attempts beyond the first that it allows where nothing else says how many;
    /// the first part is missing where the next attempt follows at once.
    pub fn from_word(word: &str) -> Option<(Option<Backoff>, u16)> {
        let waits = |initial_ms, factor| Some(Backoff { initial_ms, factor });
        match word {
            "none" => Some((None, 0)),
            "standard" => Some((waits(200, 2), 4)),
            "aggressive" => Some((waits(500, 2), 4)),
            "linear" => Some((waits(500, 1), 2)),
            "patient" => Some((waits(2_000, 3), 2)),
            _ => None,
        }
    }

    /// Returns the wait before the next attempt of an item, of which so many attempts have failed in a row. The second half of
    /// it is drawn from the item's name, so that a replay agrees and many that failed at once do not come back at once.
    pub fn delay(self, item: &ItemId, failed: u16) -> Duration {
        let factor = u64::from(self.factor).checked_pow(u32::from(failed.saturating_sub(1)));
        let ceiling = u64::from(self.initial_ms).saturating_mul(factor.unwrap_or(u64::MAX));
        let most = u64::try_from(Backoff::MOST.as_millis()).unwrap_or(u64::MAX);
        jittered(item, failed, ceiling.min(most))
    }
}

/// Returns between a half and all of some milliseconds, as the item's name and a number decide.
pub(crate) fn jittered(item: &ItemId, number: u16, ceiling_ms: u64) -> Duration {
    let seed = format!("{item}#{number}");
    let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Duration::from_millis(ceiling_ms / 2 + hash % (ceiling_ms / 2 + 1))
}
