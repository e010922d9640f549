//! Where the branches of a run stand, and why it took the ways it took, as programs read it.

use planctl_engine::{JoinPolicy, NodeId, Signal};
use planctl_view::{Choice, Joining, Stands};

use planctl_api::wire::{BranchState, BranchView, ChoiceView, JoinView, LookedView, WeighedView};

/// Shows a join that waits for branches.
pub(crate) fn join_view(joining: Joining, title: String) -> JoinView {
    let name = |id: &NodeId| id.as_str().to_owned();
    let branches = joining.branches.into_iter().zip(1..).map(|(branch, number)| BranchView {
        branch: number,
        state: match branch.stands {
            Stands::Joined => BranchState::Joined,
            Stands::Failed => BranchState::Failed,
            Stands::UnderWay => BranchState::UnderWay,
            Stands::Held => BranchState::Waiting,
            Stands::Queued => BranchState::Queued,
            Stands::Left => BranchState::Left,
        },
        at: branch.at.iter().map(name).collect(),
    });
    JoinView {
        join: name(&joining.join),
        title,
        fork: joining.fork.as_ref().map(name),
        policy: match joining.policy {
            JoinPolicy::All => "all".to_owned(),
            JoinPolicy::Any => "any".to_owned(),
        },
        branches: branches.collect(),
    }
}

/// Shows a choice of a way on.
pub(crate) fn choice_view(seq: u64, choice: Choice) -> ChoiceView {
    let looked = choice.looked.into_iter().map(|edge| LookedView {
        to: edge.to.as_str().to_owned(),
        on: edge.on.as_str().to_owned(),
        label: edge.label,
        clauses: edge
            .clauses
            .into_iter()
            .map(|clause| WeighedView { clause: clause.clause, found: clause.found, holds: clause.holds })
            .collect(),
        result: edge.result.as_str().to_owned(),
    });
    ChoiceView {
        seq,
        to: choice.to.as_str().to_owned(),
        signal: match choice.signal {
            Signal::Success => "success".to_owned(),
            Signal::Retry => "retry".to_owned(),
            Signal::Exhausted => "exhausted".to_owned(),
        },
        by: planctl_view::decider_word(choice.by).to_owned(),
        looked: looked.collect(),
    }
}
