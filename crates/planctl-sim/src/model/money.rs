//! The model's budget: the usage so far, the expected usage of the next attempt, and whether that is too much.

use std::time::Duration;

use planctl_engine::{Budget, NodeId, NodeKind, Timestamp, Usage};

use super::journal::Entry;
use super::rules::{Fits, No, time_after};
use super::{Model, NodePosition};

/// Whether the next attempt can be paid for.
pub(super) enum Means {
    /// It can, and is expected to use this much.
    Enough { tokens: u64, micro_usd: u64 },
    /// Not before those under way are done.
    Promised,
    /// Not without more.
    None,
}

/// One part of the budget, seen before an attempt.
struct Part {
    limit: Option<u64>,
    used: u64,
    promised: u64,
    expected: u64,
}

impl Part {
    fn exceeds(&self, before: u64) -> bool {
        self.limit.is_some_and(|limit| before + self.expected > limit)
    }
}

impl Model {
    pub(super) fn tokens(&self, id: Option<&NodeId>) -> u64 {
        let within = if id.is_none() { self.used_within().0 } else { 0 };
        let judged: u64 = self.judged(id).map(|usage| usage.0).sum();
        within + judged + self.charges_of(id).filter_map(|(usage, _)| Some(usage?.0)).sum::<u64>()
    }

    pub(super) fn micro_usd(&self, id: Option<&NodeId>) -> u64 {
        let within = if id.is_none() { self.used_within().1 } else { 0 };
        let judged: u64 = self.judged(id).map(|usage| usage.1).sum();
        within + judged + self.charges_of(id).filter_map(|(usage, _)| Some(usage?.1)).sum::<u64>()
    }

    pub(super) fn charges(&self, id: Option<&NodeId>, is_metered: bool) -> usize {
        let within = match (id, is_metered) {
            (Some(_), _) => 0,
            (None, true) => self.used_within().2,
            (None, false) => self.used_within().3,
        };
        within + self.charges_of(id).filter(|(usage, _)| usage.is_some() == is_metered).count()
    }

    /// Says whether the next attempt at a node can be paid for, and with how much: tokens and money.
    ///
    /// By the promise (P15): a budget is never over-spent, and counts what an attempt is expected to use when it is sent out.
    /// So with every part that has a limit, what was used, what those under way are promised and what this one is expected to
    /// use together stay within it. Where only promises stand against it, it waits until they are kept; else a person decides.
    pub(super) fn means(&self, id: &NodeId) -> Means {
        let (promised_tokens, promised_usd) = self.promised(Some(id));
        let nobody_began = self.charges(None, true) + self.charges(None, false) == 0;
        let is_alone = promised_tokens + promised_usd == 0;
        let mut all = [
            Part {
                limit: self.budget.tokens,
                used: self.tokens(None),
                promised: promised_tokens,
                expected: 0,
            },
            Part {
                limit: self.budget.micro_usd,
                used: self.micro_usd(None),
                promised: promised_usd,
                expected: 0,
            },
            Part {
                limit: self.budget.time.map(micros),
                used: micros(self.time_up_to_now()),
                // All of them spend the same time.
                promised: 0,
                expected: 0,
            },
        ];
        for (part, expected) in all.iter_mut().zip(self.expected(id)) {
            let Some(limit) = part.limit else { continue };
            // The very first attempt begins with the rest of the budget, however small.
            let most = if nobody_began && is_alone && part.used <= limit {
                limit.saturating_sub(part.used).max(1)
            } else {
                u64::MAX
            };
            part.expected = expected.min(most);
        }
        if all.iter().any(|part| part.exceeds(part.used)) {
            return Means::None;
        }
        if self.is_paid(id) && all.iter().any(|part| part.exceeds(part.used + part.promised)) {
            return Means::Promised;
        }
        let [tokens, usd, _] = all;
        Means::Enough { tokens: tokens.expected, micro_usd: usd.expected }
    }

    /// Says whether so much more stays within the budget, whatever others are promised.
    pub(super) fn can_pay(&self, tokens: u64, micro_usd: u64) -> bool {
        let fits = |limit: Option<u64>, sum: u64| limit.is_none_or(|limit| sum <= limit);
        fits(self.budget.tokens, self.tokens(None) + tokens)
            && fits(self.budget.micro_usd, self.micro_usd(None) + micro_usd)
    }

    /// The average use of the attempts at a node, or its share of the plan's budget where there was none: tokens, money
    /// and time.
    fn expected(&self, id: &NodeId) -> [u64; 3] {
        let steps = u64::from(self.graph.task_count().max(1));
        let metered = self.charges(Some(id), true) as u64;
        let all = metered + self.charges(Some(id), false) as u64;
        let own_time: Duration = self.charges_of(Some(id)).map(|(_, time)| time).sum();
        let planned = self.graph.budget();
        let mean = |used: u64, times: u64, limit: Option<u64>| {
            used.checked_div(times).unwrap_or(limit.unwrap_or(0) / steps)
        };
        // Of inconclusive attempts, no more is known than what their judges used.
        let times = |used: u64| if metered == 0 && used > 0 { all } else { metered };
        let (tokens, usd) = (self.tokens(Some(id)), self.micro_usd(Some(id)));
        [
            mean(tokens, times(tokens), planned.tokens),
            mean(usd, times(usd), planned.micro_usd),
            mean(micros(own_time), all, planned.time.map(micros)),
        ]
    }

    /// The sum promised to attempts that are under way, but for those at one node: tokens and money.
    pub(super) fn promised(&self, but: Option<&NodeId>) -> (u64, u64) {
        let at_work = |id: &&NodeId| {
            matches!(
                self.place(id),
                NodePosition::Rehearsed
                    | NodePosition::WithAgent
                    | NodePosition::Resting
                    | NodePosition::Within
            )
        };
        self.journal.nodes().filter(|id| Some(*id) != but).filter(at_work).fold((0, 0), |sum, id| {
            let (tokens, usd) = self.promised_to(id);
            (sum.0 + tokens, sum.1 + usd)
        })
    }

    /// Returns the rest of the parts that have a limit, without what is promised to others: the run of another plan may use it all.
    pub(super) fn left_beside(&self, id: &NodeId) -> (u64, u64) {
        let (tokens, usd) = self.promised(Some(id));
        let left = |limit: Option<u64>, used: u64| limit.map_or(0, |limit| limit.saturating_sub(used));
        (
            left(self.budget.tokens, self.tokens(None) + tokens),
            left(self.budget.micro_usd, self.micro_usd(None) + usd),
        )
    }

    /// Promises the run of another plan what it may use after a raise, if that is left.
    pub(super) fn promise_a_raise(&mut self, id: &NodeId, may_use: Budget) -> Fits {
        let (had, left) = (self.promised_to(id), self.left_beside(id));
        let part = |limit: Option<u64>, wanted: Option<u64>, had: u64, left: u64| {
            let wanted = limit.and(wanted).unwrap_or(had).max(had);
            (wanted == had || wanted <= left).then_some(wanted).ok_or(No)
        };
        let tokens = part(self.budget.tokens, may_use.tokens, had.0, left.0)?;
        let micro_usd = part(self.budget.micro_usd, may_use.micro_usd, had.1, left.1)?;
        self.journal.push(Entry::Promised { node: id.clone(), tokens, micro_usd });
        Ok(())
    }

    /// Promises the run of another plan what it says that it may use; of one that said so before, nothing is taken back.
    pub(super) fn promise_what_a_run_may_use(&mut self, id: &NodeId, may_use: Budget, is_known: bool) {
        let floor = if is_known { self.promised_to(id) } else { (0, 0) };
        let (tokens, micro_usd) = self.promised_to(id);
        if tokens + micro_usd == 0 {
            return;
        }
        let tokens = self.budget.tokens.and(may_use.tokens).unwrap_or(tokens);
        let micro_usd = self.budget.micro_usd.and(may_use.micro_usd).unwrap_or(micro_usd);
        let (tokens, micro_usd) = (tokens.max(floor.0), micro_usd.max(floor.1));
        self.journal.push(Entry::Promised { node: id.clone(), tokens, micro_usd });
    }

    fn promised_to(&self, id: &NodeId) -> (u64, u64) {
        let of_one = self.newest(id, |entry| {
            if let Entry::Promised { tokens, micro_usd, .. } = entry {
                Some((*tokens, *micro_usd))
            } else {
                None
            }
        });
        of_one.unwrap_or((0, 0))
    }

    /// Says whether the work at a node is paid by the budget: an agent's, or that of a sub-plan's run.
    pub(super) fn is_paid(&self, id: &NodeId) -> bool {
        matches!(self.kind(id), NodeKind::Task(_) | NodeKind::SubPlan(_))
    }

    /// Says whether more than some limit is used, with what those who work said so far.
    pub(super) fn overspends(&self, working: &[NodeId]) -> bool {
        let said = |part: fn(&Usage) -> u64| -> u64 {
            working.iter().filter_map(|node| self.so_far.get(node)).map(part).sum()
        };
        let tokens = self.tokens(None) + said(|usage| usage.input_tokens + usage.output_tokens);
        let micro_usd = self.micro_usd(None) + said(|usage| usage.micro_usd.unwrap_or(0));
        self.budget.tokens.is_some_and(|limit| tokens > limit)
            || self.budget.micro_usd.is_some_and(|limit| micro_usd > limit)
            || self.budget.time.is_some_and(|limit| self.time_up_to_now() > limit)
    }

    /// Returns the first moment at which more time than is allowed is used, if the run goes on and that is to come.
    pub(super) fn budget_ends(&self) -> Option<Timestamp> {
        let left = self.budget.time?.checked_sub(self.time_up_to_now())?;
        Some(time_after(self.now, left + Duration::from_micros(1)))
    }

    /// Says whether four fifths of some limit are used.
    pub(super) fn is_mostly_used(&self) -> bool {
        let mostly = |limit: Option<u64>, used: u64| {
            limit.is_some_and(|limit| limit > 0 && u128::from(used) * 5 >= u128::from(limit) * 4)
        };
        mostly(self.budget.tokens, self.tokens(None))
            || mostly(self.budget.micro_usd, self.micro_usd(None))
            || mostly(self.budget.time.map(micros), micros(self.time_of_run()))
    }
}

/// Returns a budget with more of each part that is limited.
pub(super) fn raised(budget: Budget, by: Budget) -> Budget {
    Budget {
        tokens: budget.tokens.map(|limit| limit + by.tokens.unwrap_or(0)),
        micro_usd: budget.micro_usd.map(|limit| limit + by.micro_usd.unwrap_or(0)),
        time: budget.time.map(|limit| limit + by.time.unwrap_or(Duration::ZERO)),
    }
}

/// Returns a new revision's budget, never less than what people had already allowed.
pub(super) fn carried_over(planned: Budget, before: Budget) -> Budget {
    Budget {
        tokens: planned.tokens.map(|limit| before.tokens.map_or(limit, |had| limit.max(had))),
        micro_usd: planned.micro_usd.map(|limit| before.micro_usd.map_or(limit, |had| limit.max(had))),
        time: planned.time.map(|limit| before.time.map_or(limit, |had| limit.max(had))),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("simulated times are short")
}
