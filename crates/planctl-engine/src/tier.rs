//! Names the isolation tiers: how far a contract or a worker was kept apart from the host.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An isolation tier; each one holds everything that the ones before it hold (PROMISES 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// `0`: the rights of planctl's own user.
    #[default]
    SameUser,
    /// `1a`: Landlock, seccomp and no new privileges.
    Landlock,
    /// `1b`: user, mount, PID and network namespaces as well.
    Namespaces,
    /// `2`: users of the command's own on the host as well.
    OwnUser,
}

impl Tier {
    /// Lists the tiers from the weakest to the strongest.
    pub const ALL: [Tier; 4] = [Tier::SameUser, Tier::Landlock, Tier::Namespaces, Tier::OwnUser];

    /// Returns the name that people and programs read: `0`, `1a`, `1b` or `2`.
    pub fn name(self) -> &'static str {
        match self {
            Tier::SameUser => "0",
            Tier::Landlock => "1a",
            Tier::Namespaces => "1b",
            Tier::OwnUser => "2",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no isolation tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an isolation tier is \"0\", \"1a\", \"1b\" or \"2\"")]
pub struct NoSuchTier;

impl FromStr for Tier {
    type Err = NoSuchTier;

    /// Reads a tier's name; `1` is the weakest tier 1.
    fn from_str(text: &str) -> Result<Tier, NoSuchTier> {
        match text {
            "1" => Ok(Tier::Landlock),
            _ => Tier::ALL.into_iter().find(|tier| tier.name() == text).ok_or(NoSuchTier),
        }
    }
}

impl Serialize for Tier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Tier {
    /// Reads a name, or the number that histories of version 0.1 hold.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tier, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Tier;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&NoSuchTier, f)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Tier, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Tier, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_written_by_name_and_read_from_the_numbers_of_old_histories_too() {
        for tier in Tier::ALL {
            let text = serde_json::to_string(&tier).unwrap();
            assert_eq!(text, format!("\"{tier}\""));
            assert_eq!(serde_json::from_str::<Tier>(&text).unwrap(), tier);
        }
        assert_eq!(serde_json::from_str::<Tier>("0").unwrap(), Tier::SameUser);
        assert!(Tier::SameUser < Tier::Landlock && Tier::Landlock < Tier::Namespaces);
        assert!("1c".parse::<Tier>().is_err() && serde_json::from_str::<Tier>("3").is_err());
    }
}
