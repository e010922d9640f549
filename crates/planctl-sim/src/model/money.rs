//! The model's budget: what was used, what the next attempt is expected to use, whether that is too much.

use std::time::Duration;

use planctl_engine::{Budget, NodeId};

use super::Model;

impl Model {
    pub(super) fn tokens(&self, id: Option<&NodeId>) -> u64 {
        let within = if id.is_none() { self.used_within().0 } else { 0 };
        within + self.charges_of(id).filter_map(|(usage, _)| Some(usage?.0)).sum::<u64>()
    }

    pub(super) fn micro_usd(&self, id: Option<&NodeId>) -> u64 {
        let within = if id.is_none() { self.used_within().1 } else { 0 };
        within + self.charges_of(id).filter_map(|(usage, _)| Some(usage?.1)).sum::<u64>()
    }

    pub(super) fn charges(&self, id: Option<&NodeId>, is_metered: bool) -> usize {
        let within = match (id, is_metered) {
            (Some(_), _) => 0,
            (None, true) => self.used_within().2,
            (None, false) => self.used_within().3,
        };
        within + self.charges_of(id).filter(|(usage, _)| usage.is_some() == is_metered).count()
    }

    /// Says whether what was used and what the next attempt of a step is expected to use exceed a limit.
    pub(super) fn is_short(&self, id: &NodeId) -> bool {
        let steps = u64::from(self.graph.task_count().max(1));
        let metered = self.charges(Some(id), true) as u64;
        let all = metered + self.charges(Some(id), false) as u64;
        let own_time: Duration = self.charges_of(Some(id)).map(|(_, time)| time).sum();
        let planned = self.graph.budget();
        let share = |limit: Option<u64>| limit.unwrap_or(0) / steps;
        let expected = |used: u64, times: u64, share: u64| used.checked_div(times).unwrap_or(share);
        let tokens = expected(self.tokens(Some(id)), metered, share(planned.tokens));
        let usd = expected(self.micro_usd(Some(id)), metered, share(planned.micro_usd));
        let time = expected(micros(own_time), all, share(planned.time.map(micros)));
        let is_first = self.charges(None, true) + self.charges(None, false) == 0;
        // The first step begins with whatever is left.
        let at_most =
            |limit: u64, used: u64| if is_first { limit.saturating_sub(used).max(1) } else { u64::MAX };
        let exceeds = |limit: Option<u64>, used: u64, more: u64| {
            limit.is_some_and(|limit| used + more.min(at_most(limit, used)) > limit)
        };
        exceeds(self.budget.tokens, self.tokens(None), tokens)
            || exceeds(self.budget.micro_usd, self.micro_usd(None), usd)
            || exceeds(self.budget.time.map(micros), micros(self.time_up_to_now()), time)
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
