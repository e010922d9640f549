//! The request and answer types of the API, as JSON says them (DESIGN 11).

pub mod calls;
pub mod work;

mod amounts;
mod asks;
mod attempts;
mod audit;
mod branches;
mod bundle;
pub mod daemon;
mod decisions;
pub mod draft;
pub mod draft_asks;
pub mod draft_records;
pub mod drafting;
mod edits;
mod evidence;
pub mod goal;
mod library;
pub mod messages;
mod moments;
mod pace;
mod pages;
mod plans;
mod printed;
mod run_page;
mod runs;
mod salute;
pub mod schema;
mod sessions;
mod settings;
mod system;
mod timeline;
pub mod tools;
mod topics;
mod traversal;
mod workers;
mod worktrees;

pub use amounts::{BudgetView, DayBudgetView, ShortfallView, SpentToday, SpentView, usd};
pub use asks::{
    AnswerView, ApprovedView, AskList, AskPage, AskRuleView, AskView, BlocksView, DeadlineView, Decided,
    HeldPromptView, OptionView, PlanWithin, VoteView, VotedView, WillRun,
};
pub use attempts::{
    AttemptSummary, AttemptView, BecauseView, ContextView, GateView, LogView, ObservedView, TestsView,
    WhyView, WorkView,
};
pub use audit::{AuditView, AuditedRun, AuditedStep};
pub use branches::{BranchState, BranchView, ChoiceView, JoinView, LookedView, PassageView, WeighedView};
pub use bundle::{BUNDLE_VERSION, BundleLine, BundlePage, BundledEvent, BundledRun};
pub use daemon::{
    DaemonHealthView, DaemonInfo, DaemonState, DaemonView, LoopView, PageLink, ScarceResource, ShortageView,
    TroubleView,
};
pub use decisions::{DecisionLine, DecisionLog};
pub use edits::{PlanEditCheck, PlanEditFinding, PlanEditView, PlanFindings};
pub use evidence::{
    ChangedFile, ContractView, DriftView, FailureView, JudgeView, JudgementView, StepFilesView, TamperView,
    WorkspaceChanges,
};
pub use library::{
    EntryFate, EntryOrigin, EntryRuns, EntryStats, FollowUpView, LibraryEntryView, LibraryList, LibraryMatch,
    LibraryPage, LibraryRuns, LibraryStats, LibraryTrouble, TriggerHit, WeighedEntry,
};
pub use moments::moment;
pub use pace::{LevelView, RungView};
pub use pages::Paged;
pub use plans::{
    DefaultFrom, DefaultView, FormatView, FormattedView, KeptDecision, KeptRevision, PlanDecisionView,
    PlanDiffView, PlanList, PlanNodeView, PlanStepView, PlanSummary, PlanView, RevisionList, RevisionPage,
    RevisionView,
};
pub use printed::{OutputLine, OutputView, PromptList, PromptView};
pub use run_page::{PictureView, RunPage, StepTally};
pub use runs::{
    BeforeView, EventLine, HolderView, LockView, PlanFileList, PlanFileView, RunList, RunState, RunSummary,
    RunView, StepName, StepState, StepView, UnreadRun, WaitingOn, WorkedOnBy,
};
pub use salute::{
    ActivityView, DutyView, EquipmentView, LocationView, PastView, PlaceView, SaluteView, SizeView, TimesView,
};
pub use sessions::{CheckView, GuardList, GuardView, GuideState, GuideView, SessionStep, SessionView};
pub use settings::{ConfigFile, ConfigPaths, ConfigValue, ConfigView, IgnoredKey, IgnoredView, OriginView};
pub use system::{DatabaseView, DoctorView, Health, HealthView, SchemaList, SchemaName, VersionView};
pub use timeline::{BarKind, TimelineBar, TimelineLane, TimelineView};
pub use topics::{NoteView, TopicList, TopicSummary, TopicView};
pub use traversal::{CheckpointView, ParallelView, SideBySide, TraversalEvent, TraversalView, VisitedView};
pub use workers::{
    EffectsView, PaceView, RoleList, RoleView, RoleWork, RoleWorkList, WorkerEvent, WorkerLine,
    WorkerTestView,
};
pub use worktrees::{CleanCall, CleanView, CleanedView, WorktreeView};
