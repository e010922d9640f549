//! The rules for the asks of a run: those of the configuration that are for its plan, as they were when it was handed in.

use std::collections::{BTreeMap, BTreeSet};

use planctl_config::{AskRule, Config};
use planctl_engine::{Answer, AskKind};
use serde::{Deserialize, Serialize};

/// The rules for the asks of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AskRules {
    /// The rules by name.
    rules: BTreeMap<String, AskRule>,
    /// The plan's owner, and the person who handed it in.
    own: BTreeSet<String>,
    /// When and how an ask of each kind is answered by a rule. The database reads it when an ask opens (migration 0030).
    deadlines: BTreeMap<String, Deadline>,
}

/// The answer of a rule to asks of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Deadline {
    seconds: u64,
    answer: String,
    rule: String,
}

/// The plan that is handed in, as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct RuledPlan<'a> {
    /// Its path, and those of the plans within it.
    pub paths: &'a [&'a str],
    /// Its owner.
    pub owner: Option<&'a str>,
    /// The person who hands it in.
    pub handed_in_by: &'a str,
}

impl AskRules {
    /// Returns the rules of a configuration that are for a plan.
    pub fn of(config: &Config, plan: RuledPlan<'_>) -> AskRules {
        let fitting = config.asks.iter().filter(|(_, rule)| rule.is_for_plan(plan.paths, plan.owner));
        let rules: BTreeMap<String, AskRule> =
            fitting.map(|(name, rule)| (name.clone(), rule.clone())).collect();
        let own = [plan.owner, Some(plan.handed_in_by)].into_iter().flatten().map(str::to_owned).collect();
        let deadlines = AskRules::deadlines_of(&rules, AskKind::answers);
        AskRules { deadlines, own, rules }
    }

    /// Returns the rules of a configuration for the asks of a draft, which take these answers. A draft has no plan yet.
    pub fn of_draft(
        config: &Config,
        asked_by: &str,
        answers: impl Fn(AskKind) -> &'static [&'static str],
    ) -> AskRules {
        let plan = RuledPlan { paths: &[], owner: None, handed_in_by: asked_by };
        let all = AskRules::of(config, plan);
        AskRules { deadlines: AskRules::deadlines_of(&all.rules, answers), ..all }
    }

    fn deadlines_of(
        rules: &BTreeMap<String, AskRule>,
        answers: impl Fn(AskKind) -> &'static [&'static str],
    ) -> BTreeMap<String, Deadline> {
        let deadlines = AskKind::ALL.into_iter().filter_map(|kind| {
            let of_rule = |(name, rule): (&String, &AskRule)| {
                let seconds = rule.deadline.filter(|_| rule.is_for(kind))?.as_secs();
                let answer = rule.on_deadline.answer(answers(kind))?.as_str().to_owned();
                Some(Deadline { seconds, answer, rule: name.clone() })
            };
            let first = rules.iter().filter_map(of_rule).min_by_key(|deadline| deadline.seconds)?;
            Some((kind.as_str().to_owned(), first))
        });
        deadlines.collect()
    }

    /// Returns the rules for a run's asks and others beside them; of two with one name the other one counts, and of two deadlines
    /// the one that is over first.
    pub fn joined(mut self, other: AskRules) -> AskRules {
        self.rules.extend(other.rules);
        self.own.extend(other.own);
        AskRules { deadlines: AskRules::deadlines_of(&self.rules, AskKind::answers), ..self }
    }

    /// Says that no rule is for the run.
    pub fn is_none(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rules that leave an answer to several people. An answer that lets nothing go on needs one person.
    pub fn voting(&self, kind: AskKind, answer: &Answer) -> Vec<(&str, &AskRule)> {
        if matches!(answer, Answer::Reject | Answer::Abort | Answer::Revise) {
            return Vec::new();
        }
        self.on(kind).filter(|(_, rule)| rule.wants_votes()).collect()
    }

    /// Returns the rules for asks of a kind.
    pub fn on(&self, kind: AskKind) -> impl Iterator<Item = (&str, &AskRule)> {
        self.rules.iter().filter(move |(_, rule)| rule.is_for(kind)).map(|(name, rule)| (name.as_str(), rule))
    }

    /// Says whether a person's vote counts by a rule.
    pub fn counts_vote_of(&self, rule: &AskRule, person: &str) -> bool {
        rule.counts_vote_of(person, &self.own)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planctl_config::OnDeadline;

    use super::*;

    fn rules(name: &str, hours: u64) -> AskRules {
        let rule = AskRule {
            kinds: None,
            plans: None,
            owners: None,
            approvals: 1,
            of: None,
            self_approval: true,
            deadline: Some(Duration::from_secs(hours * 3600)),
            on_deadline: OnDeadline::Abort,
        };
        let config = Config { asks: BTreeMap::from([(name.to_owned(), rule)]), ..Config::default() };
        AskRules::of(&config, RuledPlan { paths: &["p.md"], owner: None, handed_in_by: "ann" })
    }

    fn deadline(rules: &AskRules) -> (&str, u64) {
        let deadline = &rules.deadlines[AskKind::Escalation.as_str()];
        (&deadline.rule, deadline.seconds / 3600)
    }

    #[test]
    fn x_35_of_the_deadlines_of_a_paused_run_and_of_newer_rules_the_earlier_counts() {
        let (early, late) = (rules("early", 1), rules("late", 5));
        assert_eq!(deadline(&early.clone().joined(late.clone())), ("early", 1));
        assert_eq!(deadline(&late.joined(early)), ("early", 1));
        let joined = rules("one", 1).joined(rules("one", 2));
        assert_eq!(deadline(&joined), ("one", 2), "the other one of that name counts");
    }
}
