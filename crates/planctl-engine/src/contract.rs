//! Contracts: the command that decides a step, the evidence of one evaluation, and the verdict that follows from it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{Reserved, Usage};
use crate::ids::Digest;
use crate::tier::Tier;

/// A shell command and the exit code it must give.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The script for `bash --noprofile --norc -p -c`, byte for byte as approved.
    pub command: String,
    /// The sha256 of `command`; evidence that names another is foreign.
    pub digest: Digest,
    /// The exit code that passes.
    pub expect: u8,
    /// How long one evaluation may take.
    pub timeout: Duration,
    /// Says that the contract is meant to be green before the work too (`**guard:** yes`).
    pub guard: bool,
    /// Whether the contract is rehearsed before the work, as the plan or the configuration asks.
    #[serde(default, skip_serializing_if = "RedFirst::is_off")]
    pub red_first: RedFirst,
    /// The fewest tests that have to pass by the reports that the command writes (PROMISES A6): an exit code alone doesn't tell
    /// a suite that passed from one that ran nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_tests: Option<u32>,
    /// The question to a judge once the command gave its exit code; without a yes the contract does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Box<Judge>>,
}

/// A question about the work that the harness puts to a model or an agent (P-71).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// The question, as approved.
    pub question: String,
    /// The sha256 of `question`; a judgement that names another is foreign.
    pub digest: Digest,
    /// The judge's name: that of a model or a role of the approved configuration.
    pub by: String,
    /// Says that a person has to approve each prompt before it is sent (M-35).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
}

/// A prompt to a judge that a person has to approve (M-35). The whole text is kept under its digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PromptToJudge {
    /// The sha256 of the prompt as it would be sent; an approval is for this prompt alone.
    pub digest: Digest,
    /// The judge's name.
    pub by: String,
    /// The model, as its service knows it.
    pub model: String,
    /// The address to which the prompt would be sent.
    pub url: String,
    /// The most tokens that the prompt and one answer are expected to use.
    pub tokens: u64,
}

/// A judge's answer. It is weaker than an exit code: a model can be wrong, and can be talked into something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The sha256 of the question.
    pub question: Digest,
    /// The judge's name.
    pub by: String,
    /// Whether the judge says that the work passes.
    pub passes: bool,
    /// The judge's reason.
    pub reason: String,
    /// The lines that the judge quotes for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<String>,
    /// The sha256 of the prompt that it answers, where a person had to approve that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Digest>,
    /// The usage of all answers that it took, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Whether a contract has to be red before the work, so that its pass afterwards proves something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedFirst {
    /// It is not rehearsed.
    #[default]
    Off,
    /// It is rehearsed; one that is not red is said wherever the step's verdict is.
    Warn,
    /// It is rehearsed; a step whose contract is not red is not worked on until a person decides.
    Deny,
}

impl RedFirst {
    /// All policies, from the mildest on.
    pub const ALL: [RedFirst; 3] = [RedFirst::Off, RedFirst::Warn, RedFirst::Deny];

    /// Returns the word of plans and configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            RedFirst::Off => "off",
            RedFirst::Warn => "warn",
            RedFirst::Deny => "deny",
        }
    }

    /// Says that nothing is asked for.
    pub fn is_off(&self) -> bool {
        *self == RedFirst::Off
    }
}

impl Contract {
    /// Draws the verdict from the evidence.
    ///
    /// Returns `None` for evidence of another contract, and for evidence without the answer of a judge whom the contract
    /// asks. Only an exit with the expected code, untouched protected files, as many tests as are asked for and that judge's yes
    /// pass; death by signal never does (seed P, PROMISES 3.2 no. 6).
    pub fn judge(&self, evidence: &Evidence) -> Option<Verdict> {
        let verdict = self.verdict_of_command(evidence)?;
        let Some(judge) = self.judge.as_deref().filter(|_| verdict == Verdict::Passed) else {
            return Some(verdict);
        };
        let judgement = evidence.judgement.as_deref().filter(|given| given.question == judge.digest)?;
        Some(if judgement.passes { Verdict::Passed } else { Verdict::Failed })
    }

    /// Draws the verdict as if nobody else were asked.
    pub fn verdict_of_command(&self, evidence: &Evidence) -> Option<Verdict> {
        if evidence.contract != self.digest {
            return None;
        }
        if !evidence.tampered.is_empty() {
            return Some(Verdict::Tampered);
        }
        Some(match evidence.ending {
            Ending::Exited { code } if code == i32::from(self.expect) && self.has_its_tests(evidence) => {
                Verdict::Passed
            }
            Ending::Exited { .. } | Ending::Signalled { .. } | Ending::OverLimit { .. } | Ending::NotRun => {
                Verdict::Failed
            }
            Ending::TimedOut => Verdict::TimedOut,
        })
    }

    fn has_its_tests(&self, evidence: &Evidence) -> bool {
        self.min_tests.is_none_or(|least| evidence.tests.is_some_and(|tests| tests.passed >= least))
    }

    /// Says that the harness has nothing to evaluate.
    pub fn is_none(&self) -> bool {
        self.command.is_empty() && self.judge.is_none()
    }

    /// Says that a judge decides alone: no command can fail.
    pub fn is_judged_alone(&self) -> bool {
        self.command.is_empty() && self.judge.is_some()
    }

    /// Says whether the harness looks at the workspace before the work: it rehearses the contract, or records the files, so that
    /// a judge can be shown what the work changed.
    pub fn is_prepared(&self) -> bool {
        self.judge.is_some() || !self.rehearsal_mode().is_off()
    }

    /// Returns what is asked of this contract before the work; one that guards is never rehearsed.
    pub fn rehearsal_mode(&self) -> RedFirst {
        let is_asked = !self.guard && !self.command.trim().is_empty();
        if is_asked { self.red_first } else { RedFirst::Off }
    }

    /// Says what a rehearsal showed: never a verdict.
    ///
    /// Returns `None` for evidence of another contract. A contract that ran past its timeout is red, as it would have
    /// failed.
    pub fn rehearsal_result(&self, evidence: &Evidence) -> Option<RehearsalResult> {
        Some(match self.verdict_of_command(evidence)? {
            Verdict::Passed => RehearsalResult::Green,
            Verdict::Failed | Verdict::TimedOut => RehearsalResult::Red,
            Verdict::Tampered => RehearsalResult::Tampered,
        })
    }
}

/// The result of a rehearsal: how a contract ended before the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RehearsalResult {
    /// It fails without the work, so that a pass afterwards proves something.
    Red,
    /// It passes without the work: a pass afterwards proves nothing.
    Green,
    /// A protected file differs from its baseline, so the rehearsal proves nothing.
    Tampered,
}

impl RehearsalResult {
    /// Returns the word that history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            RehearsalResult::Red => "red",
            RehearsalResult::Green => "green",
            RehearsalResult::Tampered => "tampered",
        }
    }
}

/// The harness's verdict on one attempt, given once and final.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The exit code was the expected one, and so was what else the contract asks for.
    Passed,
    /// The exit code differed, a signal ended the contract, or fewer tests passed than it asks for.
    Failed,
    /// The contract ran past its timeout and was ended.
    TimedOut,
    /// A protected file differs from its baseline.
    Tampered,
}

impl Verdict {
    /// Returns the word that history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::TimedOut => "timed out",
            Verdict::Tampered => "tampered",
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this status.
    Exited {
        /// The status, 0 to 255.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// We ended it at its deadline.
    TimedOut,
    /// We ended it since it used more of a resource than it may.
    OverLimit {
        /// The resource.
        resource: Resource,
        /// The most that it may use, in the resource's unit.
        max: u64,
    },
    /// It was not started, since the evidence was already decided (a protected file had changed).
    NotRun,
}

impl Ending {
    /// Says in one line how an evaluation of a contract ended, with the protected files that had changed: `contract exit 1`.
    pub fn describe(self, tampered: &[Tampering]) -> String {
        if !tampered.is_empty() {
            let files: Vec<String> =
                tampered.iter().map(|file| format!("{} {}", file.path, file.change.as_str())).collect();
            return format!("protected files were touched: {}", files.join(", "));
        }
        match self {
            Ending::Exited { code } => format!("contract exit {code}"),
            Ending::Signalled { signal } => format!("contract ended by signal {signal}"),
            Ending::TimedOut => "contract timed out".to_owned(),
            Ending::OverLimit { resource, max } => {
                format!("contract ended by planctl: {}", resource.exceeded(max))
            }
            Ending::NotRun => "contract not run".to_owned(),
        }
    }
}

/// A resource of which a contract and all that it starts may use a limited amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Seconds of CPU time of the whole tree.
    Cpu,
    /// Bytes of memory of the whole tree, without files that are mapped.
    Memory,
    /// Processes at a time.
    Processes,
    /// Bytes in one file.
    FileSize,
    /// Files that one process has open.
    OpenFiles,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 5] =
        [Resource::Cpu, Resource::Memory, Resource::Processes, Resource::FileSize, Resource::OpenFiles];

    /// Returns the key in `[contracts.limits]` of `planctl.toml` that sets the limit.
    pub fn key(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Processes => "processes",
            Resource::FileSize => "file_size",
            Resource::OpenFiles => "open_files",
        }
    }

    /// Says what exceeded the limit, and what to change: `it used more than 512 MiB of memory (raise memory in
    /// [contracts.limits] of planctl.toml)`.
    pub fn exceeded(self, max: u64) -> String {
        let what = match self {
            Resource::Cpu => format!("it used more than {max} s of CPU time"),
            Resource::Memory => format!("it used more than {} of memory", bytes_words(max)),
            Resource::Processes => format!("it had more than {max} processes at a time"),
            Resource::FileSize => format!("it wrote more than {} into one file", bytes_words(max)),
            Resource::OpenFiles => format!("a process had more than {max} files open"),
        };
        format!("{what} (raise {} in [contracts.limits] of planctl.toml)", self.key())
    }
}

/// Writes a number of bytes as people set it: `512 MiB`.
pub fn bytes_words(number: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.into_iter().find(|(unit, _)| number >= *unit && number.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{number} bytes"), |(unit, name)| format!("{} {name}", number / unit))
}

/// The evidence of one evaluation of a contract; bound to one attempt and never reused for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// The sha256 of the command that ran.
    pub contract: Digest,
    /// How the command ended.
    pub ending: Ending,
    /// How long it ran.
    pub duration: Duration,
    /// The resources that it used.
    pub resources: Resources,
    /// Standard output.
    pub stdout: Excerpt,
    /// Standard error.
    pub stderr: Excerpt,
    /// The isolation that held while it ran (PROMISES 3.1).
    pub isolation: Tier,
    /// The commit that git HEAD named when the gate began.
    pub git_head: Option<String>,
    /// Digests of the protected files after the gate; `None` where the file is absent.
    pub protected: BTreeMap<String, Option<Digest>>,
    /// Protected files that differ from their baseline.
    pub tampered: Vec<Tampering>,
    /// Processes left alive by the command, ended by the harness.
    pub stragglers: u32,
    /// The tests by the reports that the command wrote; only where the contract asks for some and the command gave its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
    /// The answer of the judge whom the contract asks; only where the command passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Box<Judgement>>,
}

/// How many tests passed, beside how many had to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestCount {
    /// How many passed.
    pub passed: u32,
    /// How many the contract asks for.
    pub least: u32,
}

/// Resources a process tree used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// The largest resident set, in KiB.
    pub max_rss_kib: u64,
}

/// A text that may be large: its end is here, the rest under its digest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Excerpt {
    /// How many bytes there were in all.
    pub bytes: u64,
    /// The last 4 KiB at most, lossy UTF-8, for prompts and pages.
    pub tail: String,
    /// Where the kept head and tail are stored, when they say more than `tail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Digest>,
}

impl Excerpt {
    /// The most bytes that `tail` holds.
    pub const TAIL_BYTES_MAX: usize = 4096;
}

/// One protected file that is not what was approved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tampering {
    /// The file, relative to the workspace.
    pub path: String,
    /// The kind of change.
    pub change: FileChange,
    /// The digest of the file found in its place, where that is a regular file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// How a protected file differs from its baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// Its content or mode differs.
    Changed,
    /// It is gone.
    Deleted,
    /// It is there and was not (a protected glob matches it).
    Created,
    /// It is something other than a regular file (a symlink, a directory, a pipe).
    Replaced,
}

impl FileChange {
    /// Returns the word that history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            FileChange::Changed => "changed",
            FileChange::Deleted => "deleted",
            FileChange::Created => "created",
            FileChange::Replaced => "replaced",
        }
    }
}

/// Why a gate was inconclusive: there is no verdict, so no attempt is spent and the gate runs again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Inconclusive {
    /// We were interrupted while it ran.
    Interrupted,
    /// Something the harness itself needs (bash, the workspace) was not there.
    ToolMissing {
        /// The thing that was missing.
        what: String,
    },
    /// The workspace changed while the contract ran.
    Unstable {
        /// The thing that changed.
        what: String,
    },
    /// The command passed, and the judge gave no answer.
    Unjudged {
        /// Why not.
        what: String,
        /// The usage of the answers that were none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// The command passed, and we were interrupted while its judge was asked.
    Unheard {
        /// The usage of its answers so far, with the most of the call whose answer was lost.
        usage: Usage,
    },
    /// The command passed, and nobody has approved the prompt to its judge. Nothing was sent.
    Unapproved {
        /// The prompt.
        prompt: Box<PromptToJudge>,
    },
    /// The command passed, and what is left of the budget does not suffice for asking its judge. Nothing was sent.
    Unfunded {
        /// The usage that is expected of one answer.
        estimate: Reserved,
    },
}
