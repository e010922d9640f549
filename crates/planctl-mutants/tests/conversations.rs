//! Each planted bug that shows in graphs only is caught by a conversation: one that nothing catches proves nothing.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use planctl_engine::mutant::{Mutant, plant};

use script::talk;

#[path = "../../planctl-engine/tests/conversations/plan.rs"]
mod plan;
#[path = "../../planctl-engine/tests/conversations/script.rs"]
#[expect(dead_code, reason = "other conversations ask for more than whether they hold")]
mod script;
#[path = "../../planctl-engine/tests/conversations/speech.rs"]
mod speech;

/// Two workers that use the budget up together; both are stopped.
const BOTH_STOPPED: &str = "
            plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2  budget 10000 tokens
            approved
            -> clock admitted           a#1 to coder; b#1 to coder
            noted a 6000 tokens
            noted b 5000 tokens
            -> clock metered            110 % used; a#1 taken back from agent; b#1 taken back from agent; a held: budget budget, 7000 short; b held: budget budget, 6000 short
            ";

/// Conversations that a planted bug makes go another way.
const CAUGHT: [(Mutant, &str); 52] = [
    (
        Mutant::ObservationUnchecked,
        "
            plan  a: task observed branch retry 1
            approved
            -> clock admitted                     a#1 to coder
            -> agent reported a#1 saw \"nothing\"  a#1 observed failed; a#2 to coder, told #1 failed
            ",
    ),
    (
        Mutant::ClaimPasses,
        "
            plan  a: task observed branch
            approved
            -> clock admitted       a#1 to coder
            -> agent reported a#1   a held: choice planned
            ",
    ),
    (
        Mutant::BudgetCountedAtEnd,
            "
            plan  x: task  f: fork j  a: task  b: task  j: join  x -on_success-> f  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  budget 1000 tokens  parallel 2
            approved
            -> clock admitted           x#1 to coder
            -> agent reported x#1 600 tokens  x#1 to harness
            -> harness found x#1 exit 0  x#1 passed; x settled passed; b queued; a#1 to coder
            ",
    ),
    (
        Mutant::NumbersKept,
            "
            plan  f: fork j  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           a#1 to coder; b#1 to coder
            -> agent reported b#1       b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed
            -> human pauses             a#1 taken back from agent; paused
            -> human revises f=b,a      queued
            -> clock admitted           goes on; a#2 to coder
            -> agent reported a#2       a#2 to harness
            -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
            ",
    ),
    (
        Mutant::BranchCountedTwice,
            "
            plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           a#1 to coder; b#1 to coder
            -> agent reported a#1       a#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed
            ",
    ),
    (
        Mutant::GoalSkipped,
            "
            plan  a: call  test: call  a -on_success-> done  a -on_fail-> test  goal test
            approved
            -> clock admitted             a#1 to harness
            -> harness found a#1 exit 0   a#1 passed; a settled passed; goal test unmet; FAILED
            ",
    ),
    (
        Mutant::CheckpointNotRestored,
            "
            plan  c: checkpoint  a: call  a -on_fail-> c
            approved
            -> clock admitted           c to be recorded
            -> harness found c#0 recorded s1  c saved as s1; a#1 to harness
            -> harness found a#1 exit 1  a#1 failed; a settled failed; c to be restored
            ",
    ),
    (
        Mutant::ParallelUnlimited,
            "
            plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j
            approved
            -> clock admitted           b queued; a#1 to coder
            ",
    ),
    (
        Mutant::RecurrenceForgotten,
            "
            plan  fix: call  test: call  test -on_exhaust-> fix  limit same 1
            approved
            -> clock admitted             fix#1 to harness
            -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test#1 to harness
            -> harness found test#1 exit 1  test#1 failed; test held: escalation same_failure
            ",
    ),
    (
        Mutant::OthersKept,
            "
            plan  f: fork j  a: task  b: task  j: join any  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           a#1 to coder; b#1 to coder
            -> agent reported a#1       a#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 1 met, 0 failed; j settled passed; b#1 taken back from agent; c#1 to coder
            ",
    ),
    (
        Mutant::BranchesUnlimited,
            "
            plan  f: fork j max 1  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 9
            approved
            -> clock admitted           a#1 to coder
            ",
    ),
    (
        Mutant::ContextLeaks,
            "
            plan  f: fork j  a: task  b: call  j: join  d: decision  c: call  e: call  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  d -always?context.x=1-> c  d -on_success-> e  parallel 2
            approved
            -> clock admitted           a#1 to coder; b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed
            -> agent reported a#1 notes x=1  a#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; e#1 to harness
            ",
    ),
    (
        Mutant::ConditionIgnored,
            "
            plan  a: call  b: call  a -always?context.x=1-> b
            approved
            -> clock admitted           a#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed; a held: escalation no_edge
            ",
    ),
    (
        Mutant::SubPlanFailureIgnored,
            "
            plan  a: plan child.md  b: task
            approved
            -> clock admitted           a#1 to its plan
            -> harness found a#1 ended failed  a ended Failed; a held: escalation no_edge
            ",
    ),
    (
        Mutant::SubPlanNotAwaited,
            "
            plan  a: plan child.md  b: task
            approved
            -> clock admitted           a#1 to its plan
            -> harness found a#1 begun  a has a run; a#1 to its plan later
            ",
    ),
    (
        Mutant::SubPlanUncharged,
            "
            plan  a: plan child.md  b: task  budget 300 tokens
            approved
            -> clock admitted           a#1 to its plan
            -> harness found a#1 ended done  a ended Done; a settled passed; 100 % used; b held: budget budget, 300 short
            ",
    ),
    (
        Mutant::SubPlanEstimated,
            "
            plan  f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
            approved
            -> clock admitted           b queued; a#1 to its plan
            ",
    ),
    (
        Mutant::RaiseForgotten,
        "
            plan  f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
            approved
            -> clock admitted           b queued; a#1 to its plan
            -> harness found a#1 begun 800 tokens  a has a run; a#1 to its plan later
            -> clock sets aside a 1000 tokens  nothing
            -> harness found a#1 begun 500 tokens  a#1 to its plan later
            ",
    ),
    (
        Mutant::RaiseTakesAnothers,
        "
            plan  f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
            approved
            -> clock admitted           b queued; a#1 to its plan
            -> harness found a#1 begun 400 tokens  a has a run; a#1 to its plan later; b#1 to coder
            -> clock sets aside a 501 tokens  refused: less than that is left of the budget around it
            ",
    ),
    (
        Mutant::DayKeepsAsk,
        "
            plan  a: task retry 1  b: task  budget 100000 tokens
            approved
            -> clock admitted           a#1 to coder
            -> clock day spent a#1      a#1 taken back from agent; a held: day_budget day, 101000 short
            -> clock day allows a       a#1 taken back from ask; a#2 to coder
            ",
    ),
    (
        Mutant::UnattendedCounted,
        "
            plan  a: task retry 1  budget 100 seconds
            approved
            -> clock admitted           a#1 to coder; wake at 100 s
            wait 3660 seconds
            -> clock unattended 3600 seconds  wake at 3700 s
            ",
    ),
    (
        Mutant::SubPlanKeepsAll,
            "
            plan  f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
            approved
            -> clock admitted           b queued; a#1 to its plan
            -> harness found a#1 begun 500 tokens  a has a run; a#1 to its plan later; b#1 to coder
            ",
    ),
    (
        Mutant::SubPlanFreesAll,
            "
            plan  f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
            approved
            -> clock admitted           b queued; a#1 to its plan
            -> harness found a#1 begun  a has a run; a#1 to its plan later
            ",
    ),
    (
        Mutant::SubPlanWaitCounted,
            "
            plan  a: plan child.md  budget 100 seconds
            approved
            -> clock admitted           a#1 to its plan; wake at 100 s
            -> harness found a#1 begun waiting  a has a run; a#1 to its plan later; no wake
            ",
    ),
    (
        Mutant::PauseForgetsPlace,
            "
            plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2
            approved
            -> clock admitted           a#1 to coder; b#1 to coder
            -> human pauses             a#1 taken back from agent; b#1 taken back from agent; paused
            -> human resumes            queued
            -> clock admitted           goes on; a#2 to coder; b#2 to coder
            ",
    ),
    (
        Mutant::UntilIgnored,
            "
            plan  p: plan child.md until context.stack.child.status=never cycles 2  b: task
            approved
            -> clock admitted           p#1 to its plan
            -> harness found p#1 ended done  p ended Done; p#2 to its plan
            ",
    ),
    (
        Mutant::CyclesUncounted,
            "
            plan  p: plan child.md until context.stack.child.status=never cycles 2  b: task
            approved
            -> clock admitted           p#1 to its plan
            -> harness found p#1 ended done  p ended Done; p#2 to its plan
            -> harness found p#2 ended done  p ended Done; p held: escalation no_edge
            ",
    ),
    (
        Mutant::MergedTwice,
            "
            plan  f: fork j apart  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           f#1 to part
            -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
            -> agent reported a#1       a#1 to harness
            -> agent reported b#1       b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed
            -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j#1 to merge
            -> harness found j#1 merged  j merged 2 files; j settled passed; c#1 to coder
            ",
    ),
    (
        Mutant::MergeSkipped,
            "
            plan  f: fork j apart  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           f#1 to part
            -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
            -> agent reported a#1       a#1 to harness
            -> agent reported b#1       b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed
            -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j#1 to merge
            ",
    ),
    (
        Mutant::ForkSkipped,
            "
            plan  f: fork j apart  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
            approved
            -> clock admitted           f#1 to part
            ",
    ),
    (
        Mutant::ProposalIgnored,
            "
            plan  a: task  b: task
            approved
            -> clock admitted           a#1 to coder
            -> agent reported a#1 proposes more  a held: insertion proposed
            ",
    ),
    (
        Mutant::RejectionPassesStep,
            "
            plan  a: task  b: task
            approved
            -> clock admitted           a#1 to coder
            -> agent reported a#1 proposes more  a held: insertion proposed
            -> human reject             a#1 to harness
            ",
    ),
    (
        Mutant::FailureUnnamed,
            "
            plan  review: task  fix: task  review -always?preferred_label=approve-> done  review -always?preferred_label=reject-> fix  fix -on_success-> review
            approved
            -> clock admitted             review#1 to coder
            -> agent reported review#1 prefers approve  review#1 to harness
            -> harness found review#1 exit 1  review#1 failed; review held: escalation no_edge
            ",
    ),
    (
        Mutant::LoopOutlivesCap,
            "
            plan  test: call visits 1  fix: call  test -on_fail-> fix  fix -on_success-> test  test -on_success-> done
            approved
            -> clock admitted           test#1 to harness
            -> harness found test#1 exit 1  test#1 failed; test settled failed; fix#1 to harness
            -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test held: escalation visits_limit
            ",
    ),
    (
        Mutant::PassageAlwaysPasses,
            "
            plan  test: call  gate: decision  test -always-> gate  gate -always-> done  goal gate
            approved
            -> clock admitted           test#1 to harness
            -> harness found test#1 exit 1  test#1 failed; test settled failed; goal gate unmet; FAILED
            ",
    ),
    (
        Mutant::NamesForgeable,
            "
            plan  audit: call  note: task  review: task  audit -on_fail-> note  audit -on_success-> note  note -always?context.tool.exit_code=3*1-> review  note -on_success-> done
            approved
            -> clock admitted           audit#1 to harness
            -> harness found audit#1 exit 3  audit#1 failed; audit settled failed; note#1 to coder, told #1 failed
            -> agent reported note#1 notes tool.exit_code=0  note may not note tool.exit_code; note#1 to harness
            -> harness found note#1 exit 0  note#1 passed; note settled passed; review#1 to coder
            ",
    ),
    (
        Mutant::PartialUnguarded,
            "
            plan  test: call warn  ship: task  fix: task  test -always?outcome=success*1-> ship  test -always?outcome=fail-> fix
            approved
            -> clock admitted           test#1 to harness
            -> harness found test#1 exit 1  test#1 failed; test held: escalation no_edge
            ",
    ),
    (
        Mutant::ExitDropsBranches,
            "
            plan  f: fork  a: call  b: call  f -always-> a  f -always-> b  a -on_success-> done  parallel 2
            approved
            -> clock admitted           a#1 to harness; b#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed
            -> harness found b#1 exit 0  b#1 passed; b settled passed; DONE
            ",
    ),
    (
        Mutant::DecisionForgetsFailure,
            "
            plan  a: call  d: decision  b: task  c: task  a -always-> d  d -on_success-> b  d -on_fail-> c
            approved
            -> clock admitted           a#1 to harness
            -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed
            ",
    ),
    (
        Mutant::RetryPassesDecision,
            "
            plan  d: decision  a: call  d -on_success-> done  d -always?context.x=1-> a  a -on_success-> done  goal a else d
            approved
            -> clock admitted           goal a unmet; d held: escalation no_edge
            -> human retry              d held: escalation no_edge
            ",
    ),
    (
        Mutant::RetryEdgeRefills,
            "
            plan  a: task retry 1  b: task  c: task  a -on_retry-> b  b -on_success-> a  a -on_exhaust-> c
            approved
            -> clock admitted           a#1 to coder
            -> agent overran a#1        b#1 to coder, told #1 failed
            -> agent reported b#1       b#1 to harness
            -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder, told #1 failed
            -> agent overran a#2        a settled failed; c#1 to coder, told #2 failed
            ",
    ),
    (
        Mutant::EpochKeepsWork,
            "
            plan  f: fork j  b: task  c: task  j: join  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  b -on_fail#-> f  parallel 2
            approved
            -> clock admitted           b#1 to coder; c#1 to coder
            -> agent overran b#1        b settled failed; epoch 1 at f; c#1 taken back from agent; b#2 to coder; c#2 to coder
            ",
    ),
    (
        Mutant::EpochKeepsContext,
            "
            plan  d: decision  a: task  d -always?context.last_stage=start-> a  a -always?context.n!=2#-> d  a -on_success-> done
            approved
            -> clock admitted           a#1 to coder
            -> agent reported a#1 notes n=1  a#1 to harness
            -> harness found a#1 exit 0  a#1 passed; a settled passed; epoch 1 at d; a#2 to coder
            ",
    ),
    (
        Mutant::EpochsUncounted,
            "
            plan  f: fork j  b: task  c: task  j: join  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  b -on_fail#-> f  parallel 2
            approved
            -> clock admitted           b#1 to coder; c#1 to coder
            -> agent overran b#1        b settled failed; epoch 1 at f; c#1 taken back from agent; b#2 to coder; c#2 to coder
            ",
    ),
    (
        Mutant::EpochNumbersAnew,
            "
            plan  f: fork j  b: task  c: task  j: join  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  b -on_fail#-> f  parallel 2
            approved
            -> clock admitted           b#1 to coder; c#1 to coder
            -> agent overran b#1        b settled failed; epoch 1 at f; c#1 taken back from agent; b#2 to coder; c#2 to coder
            ",
    ),
    (
        Mutant::EffectUnasked,
            "
            plan  a: call retry 1 asks writes
            approved
            -> clock admitted           a held: effect effect
            -> human approve            a#1 to harness
            -> harness found a#1 exit 2  a#1 failed; a held: effect effect
            ",
    ),
    (
        Mutant::EffectAllowedAgain,
            "
            plan  a: call retry 1 asks writes
            approved
            -> clock admitted           a held: effect effect
            -> human approve            a#1 to harness
            -> harness found a#1 exit 2  a#1 failed; a held: effect effect
            ",
    ),
    (
        Mutant::PromptUnasked,
            "
            plan  a: task judged-once-approved
            approved
            -> clock admitted               a rehearsed, time 1
            -> harness found a#0 recorded t1  a#1 to coder
            -> agent reported a#1           a#1 to harness
            -> harness found a#1 exit 0 judged yes  refused: the evidence is of another contract
            ",
    ),
    (
        Mutant::PromptApprovedAgain,
            "
            plan  a: task judged-once-approved retry 1 abort
            approved
            -> clock admitted               a rehearsed, time 1
            -> harness found a#0 recorded t1  a#1 to coder
            -> agent reported a#1           a#1 to harness
            -> harness found a#1 nothing: unapproved p1  a held: prompt prompt
            -> human approve                a#1 to harness
            -> harness found a#1 exit 0 judged no to p1  a#1 failed; a#2 to coder, told #1 failed
            -> agent reported a#2           a#2 to harness
            -> harness found a#2 exit 0 judged yes to p1  refused: the evidence is of another contract
            ",
    ),
    (
        Mutant::ExceededStopsOne,
            BOTH_STOPPED,
    ),
    (
        Mutant::ExceededCountsOne,
            BOTH_STOPPED,
    ),
    (
        Mutant::EffectOutlivesEntry,
            "
            plan  f: fork j  b: task  a: call asks writes  j: join  f -always-> b  f -always-> a  b -on_success-> j  a -on_success-> j
            approved
            -> clock admitted           b#1 to coder; a held: effect effect
            -> human approve            a queued
            -> human pauses             b#1 taken back from agent; paused
            -> human resumes            queued
            -> clock admitted           goes on; a held: effect effect; b#2 to coder
            ",
    ),
];

#[test]
fn each_planted_bug_of_graphs_is_caught_by_a_conversation() {
    let all = [&Mutant::OF_GRAPHS[..], &Mutant::RARE].concat();
    assert_eq!(CAUGHT.map(|(mutant, _)| mutant)[..], all);
    for (mutant, conversation) in CAUGHT {
        talk(conversation);
        plant(Some(mutant));
        let caught = std::panic::catch_unwind(|| talk(conversation));
        plant(None);
        assert!(caught.is_err(), "{mutant:?} changes nothing");
    }
}
