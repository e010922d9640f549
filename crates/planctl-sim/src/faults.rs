//! The kinds of trouble that the world may make, each with its word.

/// One kind of trouble.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trouble {
    /// A worker vanishes; its lease runs out.
    WorkerLost,
    /// A worker hands its work back.
    WorkReleased,
    /// A worker cannot run for now.
    WorkerFaulted,
    /// A worker lacks a permission.
    PermissionMissing,
    /// A worker runs past its deadline.
    WorkOverran,
    /// A worker gives up.
    WorkerGaveUp,
    /// A worker asks a question.
    WorkerAsked,
    /// A worker reports of an attempt that is not its own.
    AttemptGarbled,
    /// A message arrives late, after others.
    MessageLate,
    /// A message arrives twice under one command id.
    MessageDoubled,
    /// A message arrives again under another command id.
    MessageRepeated,
    /// The transaction is lost before it commits; the client tries again.
    CommitLost,
    /// The transaction commits and its answer is lost; the client tries again.
    AnswerLost,
    /// The gate's process vanishes; its lease runs out.
    GateLost,
    /// The gate is interrupted and says so.
    GateInterrupted,
    /// The gate lacks a tool.
    ToolMissing,
    /// The workspace changes while the gate runs.
    WorkspaceUnstable,
    /// A protected file has changed.
    FileTampered,
    /// The evidence is of another contract.
    EvidenceForeign,
    /// A contract flaps: its ending is not the one it had before.
    ContractFlapped,
    /// Everything in flight is lost, between two transactions.
    Crashed,
    /// The database's clock jumps an hour ahead.
    ClockAhead,
    /// The database's clock jumps an hour back.
    ClockBack,
    /// A person gives an answer that the ask does not take, or no reason.
    AnswerWrong,
    /// A person answers an ask that is closed.
    AnswerLate,
    /// A person answers twice.
    AnswerDoubled,
    /// A person cancels the run.
    RunCancelled,
    /// A person resumes a failed or paused run.
    RunResumed,
    /// A person pauses the run.
    RunPaused,
    /// A revision changes a settled step.
    RevisionForged,
    /// A timer comes due early, or again.
    TimerOdd,
    /// A worker whose lease was revoked pays no attention to that, and works until its time is over.
    RevocationIgnored,
}

/// One deliberate flaw of the store's model, which the simulator must find as it finds those of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// A lease is compared by its item alone (P4).
    GenerationIgnored,
    /// Command ids are not kept (P2).
    CommandsForgotten,
    /// The sweep passes over gates (P3).
    GatesNotSwept,
    /// A withdrawn item stays out (P16).
    WithdrawalIgnored,
    /// An item that is claimed again keeps its generation (P4).
    GenerationKept,
    /// A timer is not stored.
    TimersForgotten,
    /// A lease that is revoked is forgotten at once, though its holder is still at work (P4).
    RevocationForgotten,
    /// Claims pass over those whose leases were revoked (P4).
    RevokedPassedOver,
    /// A gate is taken along by the report that brings it, though a revoked holder is still at work (P4).
    TakenBesideRevoked,
    /// An acknowledgement is compared by its item alone (P4).
    AnyoneAcknowledges,
    /// Revoked leases whose time is over are never released (P3).
    RevokedKept,
    /// The locks of a revoked holder go with its lease, before it has ended (P4).
    LocksFreedAtRevocation,
    /// The locks of a revoked holder are kept for ever (P3).
    RevokedLocksKept,
    /// A run that ends leaves its workspace to the next one, though a revoked holder is still at work there (P4).
    WorkspaceLeftEarly,
    /// A run begins in a workspace that another one has (P4).
    WorkspaceShared,
    /// Claims pay no attention to locks (P4).
    LocksIgnored,
    /// Gates and rehearsals take no locks (P4).
    GatesUnlocked,
    /// Locks are never given back (P3).
    LocksKept,
}

impl Flaw {
    /// Every flaw.
    pub const ALL: [Flaw; 18] = [
        Flaw::GenerationIgnored,
        Flaw::CommandsForgotten,
        Flaw::GatesNotSwept,
        Flaw::WithdrawalIgnored,
        Flaw::GenerationKept,
        Flaw::TimersForgotten,
        Flaw::RevocationForgotten,
        Flaw::RevokedPassedOver,
        Flaw::TakenBesideRevoked,
        Flaw::AnyoneAcknowledges,
        Flaw::RevokedKept,
        Flaw::LocksFreedAtRevocation,
        Flaw::RevokedLocksKept,
        Flaw::WorkspaceLeftEarly,
        Flaw::WorkspaceShared,
        Flaw::LocksIgnored,
        Flaw::GatesUnlocked,
        Flaw::LocksKept,
    ];
}

impl Trouble {
    /// Every kind of trouble.
    pub const ALL: [Trouble; 32] = [
        Trouble::WorkerLost,
        Trouble::WorkReleased,
        Trouble::WorkerFaulted,
        Trouble::PermissionMissing,
        Trouble::WorkOverran,
        Trouble::WorkerGaveUp,
        Trouble::WorkerAsked,
        Trouble::AttemptGarbled,
        Trouble::MessageLate,
        Trouble::MessageDoubled,
        Trouble::MessageRepeated,
        Trouble::CommitLost,
        Trouble::AnswerLost,
        Trouble::GateLost,
        Trouble::GateInterrupted,
        Trouble::ToolMissing,
        Trouble::WorkspaceUnstable,
        Trouble::FileTampered,
        Trouble::EvidenceForeign,
        Trouble::ContractFlapped,
        Trouble::Crashed,
        Trouble::ClockAhead,
        Trouble::ClockBack,
        Trouble::AnswerWrong,
        Trouble::AnswerLate,
        Trouble::AnswerDoubled,
        Trouble::RunCancelled,
        Trouble::RunResumed,
        Trouble::RunPaused,
        Trouble::RevisionForged,
        Trouble::TimerOdd,
        Trouble::RevocationIgnored,
    ];

    /// Returns how often in a thousand chances it strikes at most.
    pub(crate) fn per_mille_max(self) -> u64 {
        match self {
            Trouble::Crashed | Trouble::ClockAhead | Trouble::ClockBack | Trouble::RunCancelled => 25,
            Trouble::RunPaused => 100,
            Trouble::RunResumed | Trouble::RevisionForged | Trouble::RevocationIgnored => 400,
            Trouble::WorkerLost
            | Trouble::WorkReleased
            | Trouble::WorkerFaulted
            | Trouble::PermissionMissing
            | Trouble::WorkOverran
            | Trouble::WorkerGaveUp
            | Trouble::WorkerAsked
            | Trouble::AttemptGarbled
            | Trouble::MessageLate
            | Trouble::MessageDoubled
            | Trouble::MessageRepeated
            | Trouble::CommitLost
            | Trouble::AnswerLost
            | Trouble::GateLost
            | Trouble::GateInterrupted
            | Trouble::ToolMissing
            | Trouble::WorkspaceUnstable
            | Trouble::FileTampered
            | Trouble::EvidenceForeign
            | Trouble::ContractFlapped
            | Trouble::AnswerWrong
            | Trouble::AnswerLate
            | Trouble::AnswerDoubled
            | Trouble::TimerOdd => 200,
        }
    }
}
