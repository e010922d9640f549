//! Deliberate bugs that the simulator must catch.
//!
//! A simulator that cannot find a planted bug proves nothing (PROMISES 1.4 A). `mutants.patch` plants them in a copy of the
//! engine's source: there each decision that matters asks here whether it should be made wrongly.

use std::cell::Cell;

/// One deliberate bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A gate passes with any evidence.
    GateAlwaysPasses,
    /// A report settles the step without a gate.
    ReportPassesStep,
    /// An output that does not show what the plan checks passes the step.
    ObservationUnchecked,
    /// A worker's word passes a step that nobody saw and no person confirmed.
    ClaimPasses,
    /// News of an attempt that is over is accepted.
    StaleAttemptAccepted,
    /// One retry too many is granted.
    AllowanceOffByOne,
    /// A lost lease spends an attempt.
    LostLeaseSpendsAttempt,
    /// Deliveries are never counted, so a worker that always dies is retried for ever.
    DeliveriesUncounted,
    /// Work past its deadline spends nothing.
    OverrunSpendsNothing,
    /// A failing gate exhausts the node at once.
    RetriesIgnored,
    /// The fail edge is preferred to the exhaust edge.
    EdgeOrderSwapped,
    /// A person's retry grants no attempt.
    RetryGrantsNothing,
    /// Cancelling leaves items out.
    CancelKeepsItems,
    /// The budget is not looked at before a dispatch.
    BudgetIgnored,
    /// The budget counts what attempts use when they end, and not when they are sent out (P15).
    BudgetCountedAtEnd,
    /// Workers go on although the budget is exceeded in mid-attempt (P-73).
    ExceededGoesOn,
    /// Of several workers that exceed the budget together only the first is stopped (P-73).
    ExceededStopsOne,
    /// The budget counts only the first of several workers' reports in mid-attempt (P-73).
    ExceededCountsOne,
    /// Nothing looks at the budget's time between two transitions (P-73).
    BudgetTimeForgotten,
    /// An attempt whose worker was lost goes out again without regard to the usage (P15).
    DeliveriesUnbudgeted,
    /// The usage of a worker whose item is taken back is not charged.
    WithdrawnUncharged,
    /// A waived step shows as passed.
    WaiverHidden,
    /// The count of visits is not kept.
    VisitsUncounted,
    /// An ended run accepts events.
    EndedRunMoves,
    /// A skipped step is left pending.
    SkipForgets,
    /// Resuming runs passed steps again.
    ResumeRunsPassedSteps,
    /// The stale timer is not armed again.
    StaleTimerForgotten,
    /// Evidence of another contract is accepted.
    ForeignEvidenceAccepted,
    /// A judge's no counts for nothing.
    JudgeIgnored,
    /// A judge's usage is not charged.
    JudgeUncharged,
    /// Usage is charged twice.
    UsageChargedTwice,
    /// A green rehearsal settles the step as passed.
    RehearsalPassesStep,
    /// The result of a rehearsal is taken for the evidence of an attempt.
    RehearsalJudged,
    /// A step is worked on though its contract was not red and had to be.
    DenialIgnored,
    /// The contract is not rehearsed.
    RehearsalSkipped,
    /// It is forgotten that the contract passed before the work.
    VacuousForgotten,
    /// The PACE level is not kept, so that the same responder gets the step for ever.
    PaceForgotten,
    /// A PACE level is left out.
    PaceSkipsLevel,
    /// An attempt that comes back over a retry edge begins the count anew.
    RetryEdgeRefills,
    /// A join counts a branch twice.
    BranchCountedTwice,
    /// Branches keep their numbers though another revision numbers them otherwise.
    NumbersKept,
    /// A goal that is unmet is passed over.
    GoalSkipped,
    /// A checkpoint records again what it should restore.
    CheckpointNotRestored,
    /// More nodes are under way at once than may be.
    ParallelUnlimited,
    /// It is not counted how often a step failed in the same way.
    RecurrenceForgotten,
    /// A join that needs no more branches leaves the others under way.
    OthersKept,
    /// A fork begins all of its branches at once, however many may be.
    BranchesUnlimited,
    /// A branch's context is known after its join.
    ContextLeaks,
    /// A condition that does not hold is taken for one that does.
    ConditionIgnored,
    /// A resumed run has forgotten how often its nodes were entered.
    VisitsLostOnResume,
    /// A run that was paused at several nodes goes on at one of them.
    PauseForgetsPlace,
    /// Work under way is not withdrawn where the run begins anew.
    EpochKeepsWork,
    /// The next epoch knows all that the one before knew.
    EpochKeepsContext,
    /// It is not counted how often a run began anew.
    EpochsUncounted,
    /// Attempts are numbered from one again where the run begins anew.
    EpochNumbersAnew,
    /// An attempt at a call whose effects ask a person is made before anybody allowed it (M-36).
    EffectUnasked,
    /// A person's word for one attempt at a call serves the next as well (M-36).
    EffectAllowedAgain,
    /// A person's word for a call serves the next entering of its node, which may be given other arguments (M-36).
    EffectOutlivesEntry,
    /// A judge's answer counts whose prompt nobody has approved (M-35).
    PromptUnasked,
    /// A person's word on a prompt serves the next attempt as well (M-35).
    PromptApprovedAgain,
    /// A sub-plan's run that failed is taken for one that is done.
    SubPlanFailureIgnored,
    /// A run goes on from a sub-plan as soon as its run has begun.
    SubPlanNotAwaited,
    /// Of the budget only an estimate is set aside for the run of a sub-plan, which may use all that is left (P15).
    SubPlanEstimated,
    /// All that was left stays set aside for the run of a sub-plan whose own plan allows less (P15).
    SubPlanKeepsAll,
    /// Nothing stays set aside for the run of a sub-plan that has begun (P15).
    SubPlanFreesAll,
    /// The amount that a raise of a sub-plan's run had set aside is given back when that run is heard of again (P15).
    RaiseForgotten,
    /// A raise of a sub-plan's run takes what is set aside for another branch (P15).
    RaiseTakesAnothers,
    /// An ask about the budget of a day stays open once the day allows the work.
    DayKeepsAsk,
    /// The time in which nobody worked on a run counts (P-73).
    UnattendedCounted,
    /// The clock of a run goes on while the run of its sub-plan waits for a person (P-73).
    SubPlanWaitCounted,
    /// The usage of a sub-plan's run is not counted.
    SubPlanUncharged,
    /// A sub-plan is done with its first run, although its condition does not hold.
    UntilIgnored,
    /// It is not counted how many runs of a sub-plan followed each other.
    CyclesUncounted,
    /// The worktrees of branches are merged twice.
    MergedTwice,
    /// A join goes on without the worktrees of its branches being merged.
    MergeSkipped,
    /// Branches begin without worktrees of their own.
    ForkSkipped,
    /// A step that a worker proposes is passed over.
    ProposalIgnored,
    /// A report whose proposal was rejected passes its step without a gate.
    RejectionPassesStep,
    /// After a failure a worker's label, suggestion or context opens edges that do not name the failure (DOT A1).
    FailureUnnamed,
    /// A node over its visits is left along an edge of its own loop (DOT A5).
    LoopOutlivesCap,
    /// A decision counts as passed although a failure passes through it (DOT A4).
    PassageAlwaysPasses,
    /// A worker sets names of the context that planctl itself writes.
    NamesForgeable,
    /// A step that is let pass takes an edge whose condition does not hold (DOT A2).
    PartialUnguarded,
    /// The first branch that comes to the exit ends the run, and the others are dropped (DOT A3).
    ExitDropsBranches,
    /// A decision at which nobody works goes on from a failure as from a pass (DOT B1).
    DecisionForgetsFailure,
    /// A decision that a person has tried again goes on as from a pass, although it was entered with a failure.
    RetryPassesDecision,
}

impl Mutant {
    /// Every deliberate bug that shows in a list of steps.
    pub const ALL: [Mutant; 34] = [
        Mutant::DeliveriesUnbudgeted,
        Mutant::WithdrawnUncharged,
        Mutant::GateAlwaysPasses,
        Mutant::ReportPassesStep,
        Mutant::StaleAttemptAccepted,
        Mutant::AllowanceOffByOne,
        Mutant::LostLeaseSpendsAttempt,
        Mutant::DeliveriesUncounted,
        Mutant::OverrunSpendsNothing,
        Mutant::RetriesIgnored,
        Mutant::EdgeOrderSwapped,
        Mutant::RetryGrantsNothing,
        Mutant::CancelKeepsItems,
        Mutant::BudgetIgnored,
        Mutant::ExceededGoesOn,
        Mutant::BudgetTimeForgotten,
        Mutant::WaiverHidden,
        Mutant::VisitsUncounted,
        Mutant::EndedRunMoves,
        Mutant::SkipForgets,
        Mutant::ResumeRunsPassedSteps,
        Mutant::StaleTimerForgotten,
        Mutant::ForeignEvidenceAccepted,
        Mutant::JudgeIgnored,
        Mutant::JudgeUncharged,
        Mutant::UsageChargedTwice,
        Mutant::RehearsalPassesStep,
        Mutant::RehearsalJudged,
        Mutant::DenialIgnored,
        Mutant::RehearsalSkipped,
        Mutant::VacuousForgotten,
        Mutant::PaceForgotten,
        Mutant::PaceSkipsLevel,
        Mutant::VisitsLostOnResume,
    ];

    /// Deliberate bugs that show in graphs only.
    pub const OF_GRAPHS: [Mutant; 49] = [
        Mutant::ObservationUnchecked,
        Mutant::ClaimPasses,
        Mutant::BudgetCountedAtEnd,
        Mutant::NumbersKept,
        Mutant::BranchCountedTwice,
        Mutant::GoalSkipped,
        Mutant::CheckpointNotRestored,
        Mutant::ParallelUnlimited,
        Mutant::RecurrenceForgotten,
        Mutant::OthersKept,
        Mutant::BranchesUnlimited,
        Mutant::ContextLeaks,
        Mutant::ConditionIgnored,
        Mutant::SubPlanFailureIgnored,
        Mutant::SubPlanNotAwaited,
        Mutant::SubPlanUncharged,
        Mutant::SubPlanEstimated,
        Mutant::RaiseForgotten,
        Mutant::RaiseTakesAnothers,
        Mutant::DayKeepsAsk,
        Mutant::UnattendedCounted,
        Mutant::SubPlanKeepsAll,
        Mutant::SubPlanFreesAll,
        Mutant::SubPlanWaitCounted,
        Mutant::PauseForgetsPlace,
        Mutant::UntilIgnored,
        Mutant::CyclesUncounted,
        Mutant::MergedTwice,
        Mutant::MergeSkipped,
        Mutant::ForkSkipped,
        Mutant::ProposalIgnored,
        Mutant::RejectionPassesStep,
        Mutant::FailureUnnamed,
        Mutant::LoopOutlivesCap,
        Mutant::PassageAlwaysPasses,
        Mutant::NamesForgeable,
        Mutant::PartialUnguarded,
        Mutant::ExitDropsBranches,
        Mutant::DecisionForgetsFailure,
        Mutant::RetryPassesDecision,
        Mutant::RetryEdgeRefills,
        Mutant::EpochKeepsWork,
        Mutant::EpochKeepsContext,
        Mutant::EpochsUncounted,
        Mutant::EpochNumbersAnew,
        Mutant::EffectUnasked,
        Mutant::EffectAllowedAgain,
        Mutant::PromptUnasked,
        Mutant::PromptApprovedAgain,
    ];

    /// Deliberate bugs that a conversation has to show: two workers at once seldom use a budget up together, and a call that was
    /// allowed seldom waits until its node is entered again.
    pub const RARE: [Mutant; 3] =
        [Mutant::ExceededStopsOne, Mutant::ExceededCountsOne, Mutant::EffectOutlivesEntry];
}

thread_local! {
    static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Plants a bug in this thread, or removes it.
pub fn plant(mutant: Option<Mutant>) {
    PLANTED.set(mutant);
}

pub(crate) fn planted(mutant: Mutant) -> bool {
    PLANTED.get() == Some(mutant)
}
