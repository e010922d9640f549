//! Owns every child process: contracts and agents.
//!
//! [`Spawner`] starts and ends process trees through the helper `planctl __spawn` ([`helper_main`]), and everything else
//! is built on it: [`ContractRunner::evaluate`] runs a contract and says what it showed, [`Agent::run_item`] lets an agent work on
//! one item. [`Baseline`] keeps the files a step is judged by; [`assemble`] and [`read_context`] make the prompt; the
//! `probe_…` functions find out what is true of a workspace before a plan runs.
//!
//! Three rules hold here: nothing that was started outlives planctl; no text that a child prints decides anything; and
//! no file of a workspace is opened in a way that could lead out of it, hang, or fill the memory.

mod agent;
mod ancestry;
mod beneath;
mod blocking;
mod browser;
mod capture;
mod checkpoint;
mod committed_files;
mod context;
mod contract;
mod detached;
mod digest;
mod editor;
mod environment;
mod excerpt;
mod folder_content;
mod foreign_json;
mod gate_folder;
mod git;
mod isolation;
mod isolation_probe;
mod judging;
mod masks;
mod open_files;
mod probe;
mod process;
mod prompt;
mod protect;
mod proxy;
mod reach;
mod removal;
mod replica;
mod running;
mod scratch;
mod spawn;
mod stamp;
mod test_reports;
mod tool_server;
mod trial;
mod walk;
mod workspace;
mod worktree;

pub use agent::{
    Agent, Assignment, KnownAgent, NamedAgent, NotKnown, PermissionMode, Permissions, Program, Worked,
    tool_in,
};
pub use ancestry::{Connection, describe_process, is_inside_session, is_inside_worker, note_session_agent};
pub use beneath::{Unreadable, folder_in};
pub use blocking::{blocking_in_place, brief_file_work};
pub use browser::Browser;
pub use capture::{Captured, KEPT_BYTES};
pub use checkpoint::Checkpoints;
pub use context::{
    CONTEXT_BYTES_MAX, ContextEntry, FILE_BYTES_MAX, GLOB_FILES_MAX, escape_hidden, read_context,
    withheld_reason,
};
pub use contract::{ContractRunner, Gate, OUTPUT_BYTES_MAX, PROCESSES_MAX};
pub use detached::{Detached, detach_from_terminal};
pub use digest::digest_of;
pub use editor::Editor;
pub use environment::{PATH_DEFAULT, RefusedVariable, agent_environment, contract_environment, safe_path};
pub use excerpt::{Output, excerpt_of};
pub use foreign_json::{mended_json, read_foreign_json};
pub use git::{git_branch, git_head, git_top_level};
pub use isolation::{Confinement, Isolation, Network, agent_state, credentials};
pub use isolation_probe::{Offered, probe_isolation};
pub use judging::{
    Hearing, JudgeAnswer, JudgeDialogue, JudgePrompt, JudgeSaid, JudgeVerdict, JudgedWork, judge_schema,
    to_judge,
};
pub use masks::Masks;
pub use open_files::raise_open_files;
pub use probe::{PathKind, Syntax, existing_files, probe_commands, probe_paths, probe_scripts, probe_texts};
pub use process::{Command, End, Finished, Input, ResourceLimits, Stream, find_program};
pub use prompt::{PromptParts, assemble, denial};
pub use protect::{
    Baseline, Comparison, ContractWrite, EntryKind, FileState, PROTECTED_FILES_MAX, ProtectError, Stability,
    Written, put_entry, read_entry,
};
pub use proxy::Hosts;
pub use reach::{HostPattern, NoHost, Reach};
pub use replica::{Differences, Replica, ReplicaError, ReplicaLimits};
pub use scratch::sweep_scratch;
pub use spawn::{Primitive, Spawner, Stage, TreeName, helper_main};
pub use tool_server::ToolServer;
pub use trial::{Trial, TrialPlace, TrialRunner};
pub use walk::{ENTRIES_MAX, FoundFiles, expand as expand_glob, list_files};
pub use workspace::{
    FolderIdentity, PLAN_BYTES_MAX, PlanFileLock, RepositoryIdentity, WorkspaceLock, boot_id, create_plan,
    host_id, read_plan, write_plan,
};
pub use worktree::{
    BranchWorktrees, Change, ChangeKind, Changes, Checkout, Conflict, Intact, Joined, Merged, NewWorktree,
    Survey, WorktreeError, changes_since_head, commit_all, differing_from_head, merge as merge_branch,
    tracked_of, uncommitted, verify_result, worktree_intact,
};
