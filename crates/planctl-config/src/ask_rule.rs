//! Rules for asks: how many of which people have to agree, and by when somebody has to answer, as a trusted file says (P-19).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{AskKind, StoppingAnswer};
use planctl_glob::Glob;
use serde::{Deserialize, Serialize};

/// A rule for some asks. Every rule that is for an ask holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskRule {
    /// The kinds of asks that it is for; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<BTreeSet<AskKind>>,
    /// The plans that it is for, as globs over their paths; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<Vec<Glob>>,
    /// The owners of plans that it is for; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owners: Option<BTreeSet<String>>,
    /// How many people have to give the same answer before it counts.
    pub approvals: u64,
    /// The people whose votes count; `None` is everybody who may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<BTreeSet<String>>,
    /// Says that the plan's owner and the person who handed it in may vote, too.
    pub self_approval: bool,
    /// How long an ask waits before the rule answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// The rule's answer after that time.
    #[serde(default)]
    pub on_deadline: OnDeadline,
}

/// The answer of a rule to an ask that nobody has answered in time. It never lets anything go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    /// None: the ask waits on.
    #[default]
    Wait,
    /// `reject`; `abort` where the ask takes no `reject`.
    Reject,
    /// `abort`; `reject` where the ask takes no `abort`.
    Abort,
}

impl Default for AskRule {
    fn default() -> AskRule {
        AskRule {
            kinds: None,
            plans: None,
            owners: None,
            approvals: 1,
            of: None,
            self_approval: true,
            deadline: None,
            on_deadline: OnDeadline::Wait,
        }
    }
}

impl AskRule {
    /// Says whether it is for a plan, which may have other plans within it and an owner.
    pub fn is_for_plan(&self, paths: &[&str], owner: Option<&str>) -> bool {
        let fits = |globs: &Vec<Glob>| globs.iter().any(|glob| paths.iter().any(|path| glob.matches(path)));
        let owns = |owners: &BTreeSet<String>| owner.is_some_and(|owner| owners.contains(owner));
        self.plans.as_ref().is_none_or(fits) && self.owners.as_ref().is_none_or(owns)
    }

    /// Says whether it is for asks of a kind.
    pub fn is_for(&self, kind: AskKind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Says whether it leaves an answer to more than one person, or not to everybody.
    pub fn wants_votes(&self) -> bool {
        self.approvals > 1 || self.of.is_some() || !self.self_approval
    }

    /// Says whether a person's vote counts; `own` are the people whose own plan it is.
    pub fn counts_vote_of(&self, person: &str, own: &BTreeSet<String>) -> bool {
        self.of.as_ref().is_none_or(|of| of.contains(person)) && (self.self_approval || !own.contains(person))
    }

    /// Puts people in place of the groups that `of` names. A group that no file has stays, and nobody is in it.
    pub(crate) fn with_people_of(mut self, groups: &BTreeMap<String, BTreeSet<String>>) -> AskRule {
        let people = |name: String| match group_of(&name).and_then(|group| groups.get(group)) {
            Some(people) => people.clone(),
            None => BTreeSet::from([name]),
        };
        self.of = self.of.map(|of| of.into_iter().flat_map(people).collect());
        self
    }

    /// Says in one line what it demands of an answer.
    pub fn describe(&self) -> String {
        let mut words = match &self.of {
            Some(of) => {
                let names: Vec<&str> = of.iter().map(String::as_str).collect();
                format!("{} of {}", self.approvals, names.join(", "))
            }
            None if self.approvals == 1 => "1 person".to_owned(),
            None => format!("{} people", self.approvals),
        };
        if !self.self_approval {
            words.push_str(", and nobody for a plan of their own");
        }
        words
    }
}

/// Returns the name of the group that a name in `of` means: `group:leads`.
pub(crate) fn group_of(name: &str) -> Option<&str> {
    name.strip_prefix("group:")
}

impl OnDeadline {
    /// All of them.
    pub const ALL: [OnDeadline; 3] = [OnDeadline::Wait, OnDeadline::Reject, OnDeadline::Abort];

    /// Returns its word in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            OnDeadline::Wait => "wait",
            OnDeadline::Reject => "reject",
            OnDeadline::Abort => "abort",
        }
    }

    /// Returns its answer to an ask that takes these answers; none where it waits.
    pub fn answer(self, answers: &[&str]) -> Option<StoppingAnswer> {
        match self {
            OnDeadline::Wait => None,
            OnDeadline::Reject => StoppingAnswer::Reject.among(answers),
            OnDeadline::Abort => StoppingAnswer::Abort.among(answers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_35_no_answer_of_a_rule_lets_anything_go_on() {
        for kind in AskKind::ALL {
            assert_eq!(OnDeadline::Wait.answer(kind.answers()), None);
            for answer in [OnDeadline::Reject, OnDeadline::Abort] {
                let answer = answer.answer(kind.answers()).unwrap_or_else(|| panic!("{kind:?} is answered"));
                assert!(kind.answers().contains(&answer.as_str()), "{kind:?}: {answer:?}");
            }
        }
    }

    #[test]
    fn i17_a_vote_for_ones_own_plan_counts_only_where_the_rule_allows_it() {
        let people = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let own = people(&["ann"]);
        let open = AskRule::default();
        assert!(open.counts_vote_of("ann", &own) && !open.wants_votes());
        let strict = AskRule { of: Some(people(&["ann", "ben"])), self_approval: false, ..open };
        assert!(strict.wants_votes());
        assert_eq!(
            ["ann", "ben", "eve"].map(|person| strict.counts_vote_of(person, &own)),
            [false, true, false]
        );
    }
}
