//! Facts about the place where the plan will run, given to the lints as plain data; this crate touches no files itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{Ending, Verdict};
use serde::{Deserialize, Serialize};

use crate::tools::ToolList;

/// The questions of the lints about a plan's surroundings.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Wants {
    /// Paths relative to the workspace, to look up.
    pub files: BTreeSet<String>,
    /// Globs relative to the workspace, to match.
    pub globs: BTreeSet<String>,
    /// Files whose text contracts search, relative to the workspace.
    #[serde(default)]
    pub texts: BTreeSet<String>,
    /// Files that contracts compare with their commit, relative to the workspace.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub compared: BTreeSet<String>,
    /// Programs: are they on the contracts' PATH?
    pub commands: BTreeSet<String>,
    /// Contracts that our own reader refuses: does `bash -n` accept them?
    pub scripts: BTreeSet<String>,
    /// Files of sub-plans to read, relative to the workspace even where the plan works in a folder of it.
    #[serde(default)]
    pub sub_plans: BTreeSet<String>,
    /// The plan that is to follow: is it there?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The answers. A question without an answer is never reported: silence is not a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// The entry at each path.
    pub files: BTreeMap<String, FileFact>,
    /// The texts of files that contracts search; those that are no text, and large ones, are left out.
    #[serde(skip)]
    pub texts: BTreeMap<String, String>,
    /// The files among those compared with their commit that differ from it; `None` where nobody looked.
    #[serde(skip)]
    pub differing: Option<BTreeSet<String>>,
    /// Paths that exist, for near names of missing ones; capped by who gathers them.
    pub existing: Vec<String>,
    /// The files that each glob matches.
    pub globs: BTreeMap<String, Vec<String>>,
    /// Whether a program is on the PATH.
    pub commands: BTreeMap<String, bool>,
    /// The PATH that was searched.
    pub path: String,
    /// The complaint of `bash -n` about each contract; `None` where it accepts it.
    pub syntax: BTreeMap<String, Option<String>>,
    /// The roles of planctl.toml; `None` where it has none.
    pub roles: Option<Vec<String>>,
    /// The types of nodes that roles serve, each with its role (DOT S12).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
    /// Says that one worker serves every role (`--exec`), so that those of planctl.toml don't matter.
    #[serde(default)]
    pub serves_every_role: bool,
    /// The roles whose agent reports no cost and has no price.
    #[serde(default)]
    pub unpriced_roles: Vec<String>,
    /// Says that the one worker that serves every role reports no cost and has no price.
    #[serde(default)]
    pub unpriced_worker: bool,
    /// The effects denied to each role, where any are (`effects.deny`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, BTreeSet<String>>,
    /// The topics that exist; `None` where nobody looked.
    pub topics: Option<Vec<String>>,
    /// Whether the plan's file lies in the workspace.
    pub plan_is_inside: Option<bool>,
    /// The servers of planctl.toml, each with its tools where it was asked for them; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<BTreeMap<String, Option<ToolList>>>,
    /// The judges that can be asked about work; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judges: Option<Judges>,
    /// The results of contracts tried before any work, by step number; empty where nothing was tried (`--probe`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trials: BTreeMap<u32, Trial>,
    /// The files of sub-plans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sub_plans: BTreeMap<String, SubPlanFact>,
    /// Whether the plan that is to follow is there; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextFact>,
    /// Existing paths of the workspace, even where the plan works in a folder of it, for near names of missing plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub existing_around: Vec<String>,
}

/// The judges that can be asked about work, and how far their word counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Judges {
    /// The names of those that can be asked; the first is asked where a step names none.
    pub names: Vec<String>,
    /// Says that a trusted file lets a judge be a step's only check.
    pub alone: bool,
}

/// The file of a sub-plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SubPlanFact {
    /// A text that can be read as a plan, be it verified or not.
    Readable,
    /// Nothing.
    Missing,
    /// Something that is no text of a plan.
    Refused {
        /// Why.
        why: String,
    },
}

/// The plan that is to follow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NextFact {
    /// A file of the workspace, or an entry of the library.
    Found,
    /// Nothing.
    Missing {
        /// The names of the plans that could follow.
        others: Vec<String>,
    },
}

/// The entry at a path of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileFact {
    /// Nothing.
    Missing,
    /// A regular file, or a link to one inside the workspace.
    Regular {
        /// Its size in bytes.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link whose target is outside the workspace.
    Outside {
        /// Where it points.
        target: String,
    },
    /// Something that the system does not let us read.
    Unreadable {
        /// The error of the system.
        reason: String,
    },
    /// Something that is read without end or not at all.
    Special {
        /// Its kind.
        special: SpecialKind,
    },
}

/// Files that are no files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A device.
    Device,
    /// A socket.
    Socket,
}

impl SpecialKind {
    /// Returns the word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            SpecialKind::Fifo => "a named pipe",
            SpecialKind::Device => "a device",
            SpecialKind::Socket => "a socket",
        }
    }
}

/// The result of trying a step's contract before any work is done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trial {
    /// It was not tried.
    Skipped {
        /// Why, as the end of a sentence: `it names …`.
        reason: String,
    },
    /// It ran, twice unless it ran past its time.
    Tried(Tried),
}

/// The findings of the trial runs of one contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// The runs, in order; the second one met what the first one left.
    pub runs: Vec<TrialRun>,
    /// The last line that the first run printed, its standard error before its standard output; may be empty.
    #[serde(default)]
    pub printed: String,
    /// The ends of what the first run printed, its standard error before its standard output.
    #[serde(default)]
    pub output: String,
    /// How long one run may take.
    pub timeout: Duration,
    /// Files of the workspace that differed afterwards, those first that people would name; ignored files don't count.
    pub changed: Vec<String>,
    /// How many differed, also of those that are not listed.
    pub changed_count: usize,
}

/// One trial run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrialRun {
    /// The verdict that a gate would have given.
    pub verdict: Verdict,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
}
