//! Names of things: newtypes without arithmetic, derived rather than drawn.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identifies one run; shown as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

impl RunId {
    /// Wraps the 128 bits of a UUID that the caller drew.
    pub const fn from_u128(bits: u128) -> RunId {
        RunId(bits)
    }

    /// Returns the 128 bits of the UUID.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// Reads 32 hexadecimal digits, with or without hyphens.
    pub fn parse(text: &str) -> Option<RunId> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(&digits, 16).ok().map(RunId)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(deserializer)?;
        RunId::parse(&text).ok_or_else(|| serde::de::Error::custom("a run id is a UUID"))
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text as it stands.
            pub fn new(text: impl Into<Arc<str>>) -> $name {
                $name(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(text.into())
            }
        }
    };
}

text_id! {
    /// Names a node within its graph; step 3 of a markdown plan is the node `3`.
    NodeId
}
text_id! {
    /// Names who an agent item is for: `coder`, `reviewer`.
    Role
}
text_id! {
    /// Names the person, policy or service that said something; for the record, not for authority.
    Actor
}
text_id! {
    /// Holds `sha256:` and 64 hexadecimal digits: of a plan's canonical text, a contract, a file or an output.
    Digest
}
text_id! {
    /// Names one row of the queue. Derived from run, node, visit, attempt and lane, so that nothing is enqueued twice.
    ItemId
}

impl Actor {
    /// Names an approval policy (P-78). No person goes by such a name.
    pub fn policy(name: &str) -> Actor {
        Actor::new(format!("{}{name}", Actor::POLICY))
    }

    /// Returns the name of the approval policy, where it is one.
    pub fn policy_name(&self) -> Option<&str> {
        self.as_str().strip_prefix(Actor::POLICY)
    }

    /// Stands before the name of a policy.
    const POLICY: &'static str = "policy:";
}

/// Numbers the tries at one node, from 1, for the whole run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(u16);

impl Attempt {
    /// Stands for "none yet".
    pub const NONE: Attempt = Attempt(0);
    /// The first try.
    pub const FIRST: Attempt = Attempt(1);

    /// Wraps a stored number.
    pub const fn from_number(number: u16) -> Attempt {
        Attempt(number)
    }

    /// Returns the number people say.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the attempt after this one.
    pub const fn next(self) -> Attempt {
        Attempt(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Points at one try: which node, which entering of it, which attempt.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct At {
    /// The node.
    pub node: NodeId,
    /// Which entering of the node, from 1.
    pub visit: u16,
    /// Which try at the node, from 1, counted over all visits.
    pub attempt: Attempt,
}

impl ItemId {
    /// Derives the id of the agent's work of this try.
    pub fn agent(run: RunId, at: &At) -> ItemId {
        ItemId::derive(run, at, "agent")
    }

    /// Derives the id of a gate of this try; `ordinal` counts those before it after which a person was asked about the judge.
    pub fn gate(run: RunId, at: &At, ordinal: u16) -> ItemId {
        match ordinal {
            0 => ItemId::derive(run, at, "gate"),
            ordinal => ItemId::derive(run, at, &format!("gate.{ordinal}")),
        }
    }

    /// Says whether this is the id of a gate of this try.
    pub fn is_gate(&self, run: RunId, at: &At) -> bool {
        let rest = self.0.strip_prefix(ItemId::derive(run, at, "gate").as_str());
        let ordinal =
            |rest: &str| rest.strip_prefix('.').is_some_and(|ordinal| ordinal.parse::<u16>().is_ok());
        rest.is_some_and(|rest| rest.is_empty() || ordinal(rest))
    }

    /// Derives the id of a rehearsal of the contract; `ordinal` counts the rehearsals of the node, since a person may
    /// have it rehearsed again before the same try.
    pub fn rehearsal(run: RunId, at: &At, ordinal: u16) -> ItemId {
        ItemId::derive(run, at, &format!("rehearsal.{ordinal}"))
    }

    /// Says whether this is the id of a rehearsal before this try.
    pub fn is_rehearsal(&self, run: RunId, at: &At) -> bool {
        let ordinal = self.0.strip_prefix(ItemId::derive(run, at, "rehearsal.").as_str());
        ordinal.is_some_and(|ordinal| ordinal.parse::<u16>().is_ok())
    }

    /// Derives the id of a checkpoint's record, or of its restoration; `ordinal` counts both of the node, since a person
    /// may have it done again.
    pub fn checkpoint(run: RunId, at: &At, ordinal: u16) -> ItemId {
        ItemId::derive(run, at, &format!("checkpoint.{ordinal}"))
    }

    /// Says whether this is the id of a record or a restoration of this entering.
    pub fn is_checkpoint(&self, run: RunId, at: &At) -> bool {
        let ordinal = self.0.strip_prefix(ItemId::derive(run, at, "checkpoint.").as_str());
        ordinal.is_some_and(|ordinal| ordinal.parse::<u16>().is_ok())
    }

    /// Derives the id of the worktrees of a fork's branches, or of their merge at the join.
    pub fn branches(run: RunId, at: &At) -> ItemId {
        ItemId::derive(run, at, "branches")
    }

    /// Derives the id of a sub-plan's run of this try.
    pub fn sub_plan(run: RunId, at: &At) -> ItemId {
        ItemId::derive(run, at, "plan")
    }

    /// Derives the id of an ask; `ordinal` counts the asks of the run, since one try may need several.
    pub fn ask(run: RunId, at: &At, kind: &str, ordinal: u32) -> ItemId {
        ItemId::derive(run, at, &format!("ask.{kind}.{ordinal}"))
    }

    /// Returns the run that the id was derived from.
    pub fn run(&self) -> Option<RunId> {
        RunId::parse(self.0.get(..32).filter(|_| self.0.as_bytes().get(32) == Some(&b'.'))?)
    }

    /// Returns the attempt that the id of an agent's work was derived from, so that a late event finds its try even where
    /// the item is gone.
    pub fn agent_try(&self) -> Option<(RunId, At)> {
        let run = self.run()?;
        let mut parts = self.0.get(33..)?.strip_suffix(".agent")?.rsplitn(3, '.');
        let attempt = Attempt(parts.next()?.parse().ok()?);
        let visit = parts.next()?.parse().ok()?;
        let at = At { node: NodeId::new(parts.next()?), visit, attempt };
        (ItemId::agent(run, &at) == *self).then_some((run, at))
    }

    fn derive(run: RunId, at: &At, hand: &str) -> ItemId {
        ItemId::new(format!("{:032x}.{}.{}.{}.{hand}", run.0, at.node, at.visit, at.attempt))
    }
}

impl Digest {
    /// Names a sha256 that was computed: `sha256:…`.
    pub fn of_sha256(hash: &[u8]) -> Digest {
        Digest::new(format!("sha256:{}", hex(hash)))
    }
}

/// Writes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    digits.map(|digit| char::from_digit(digit.into(), 16).expect("four bits are one digit")).collect()
}
