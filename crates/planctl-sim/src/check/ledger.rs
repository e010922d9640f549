//! The budget's promise as arithmetic over what happened (P15): at each dispatch, what was used, what everything that is out is
//! expected to use and what this one is expected to use stay within the limit; else a person is asked, or it waits.
//!
//! Written from the promise. It reads events, effects, limits and the amount set aside for the run of a sub-plan, and no figure of usage
//! that engine or model keep.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{
    Advance, AgentSaid, Budget, ClockEvent, Effect, Event, Fact, Graph, HarnessEvent, HarnessResult,
    Inconclusive, Item, ItemId, NodeId, Purpose, Reason, Reserved, Usage, Work,
};

use super::ensure;
use crate::store::{Row, RowPlace};

/// Tokens and money.
type Sum = [u64; 2];

/// An item that is out, and its expected usage.
#[derive(Clone, Debug)]
struct Promise {
    item: ItemId,
    expected: Sum,
    /// The run of another plan has said what it may use: it is promised no less from there on.
    has_said: bool,
}

/// The usage of a run, and its items that are out.
#[derive(Default)]
pub struct Ledger {
    used: Sum,
    /// By node: the sum of the usage that its workers reported, and the number of reports.
    of: BTreeMap<NodeId, (Sum, u64)>,
    /// By node: the number of attempts whose workers reported none.
    silent: BTreeMap<NodeId, u64>,
    out: BTreeMap<NodeId, Promise>,
    limits: [Option<u64>; 2],
    /// An attempt has ended, whether its worker reported usage or not.
    has_begun: bool,
    /// Words for what the run has met so far that might lead its budget astray.
    way: BTreeSet<&'static str>,
}

impl Ledger {
    /// Notes what an event brings that might lead the budget astray; returns all of it where a person is then asked about the
    /// budget, which was kept on that way.
    pub fn way_to_the_limit(&mut self, event: &Event, advance: &Advance) -> Vec<&'static str> {
        if matches!(event, Event::Clock(ClockEvent::LeaseLost { .. })) {
            self.way.insert("kill");
        }
        if !advance.noted.is_empty() {
            self.way.insert("withdrawal");
        }
        for fact in &advance.facts {
            let is_again = matches!(fact, Fact::NodeEntered { visit, .. } if *visit > 1);
            self.way.extend(match fact.name() {
                "retry_triggered" => Some("retry"),
                "branches_joined" => Some("fork"),
                "epoch_began" => Some("restart"),
                _ => is_again.then_some("loop"),
            });
        }
        let asks = |fact: &Fact| matches!(fact, Fact::AskOpened { reason: Reason::Budget, .. });
        let is_at_limit = advance.facts.iter().any(asks);
        if is_at_limit { self.way.iter().copied().collect() } else { Vec::new() }
    }

    /// Books an event and what followed.
    ///
    /// # Errors
    ///
    /// Tells what was sent out beyond the budget, or what a person is asked about within it.
    pub fn book(&mut self, graph: &Graph, event: &Event, advance: &Advance) -> Result<(), String> {
        self.limits = limits(advance.run.head.budget);
        self.book_event(event)?;
        if let Event::Clock(ClockEvent::SetAside { node, budget, .. }) = event {
            self.set_aside(node, *budget)?;
        }
        // An item that an event answers is out no longer, unless it goes on.
        let is_sent = |id: &ItemId| {
            advance.effects.iter().any(|effect| matches!(effect, Effect::Dispatch(item) if item.id == *id))
        };
        if let Some(at) = event.at()
            && self.out.get(&at.node).is_some_and(|promise| !is_sent(&promise.item))
        {
            self.out.remove(&at.node);
        }
        let mut noted = advance.noted.clone();
        for effect in &advance.effects {
            match effect {
                Effect::Withdraw(id) => {
                    let node =
                        self.out.iter().find(|(_, promise)| promise.item == *id).map(|(n, _)| n.clone());
                    if let Some(node) = node {
                        self.out.remove(&node);
                        if let Some(usage) = noted.remove(&node) {
                            self.charge(&node, &usage);
                        }
                    }
                }
                Effect::Dispatch(item) => {
                    let set_aside = advance.run.head.reserved.get(&item.at.node).copied();
                    self.send_out(graph, item, set_aside.unwrap_or_default())?;
                }
                Effect::Arm { .. } | Effect::Disarm(_) => {}
            }
        }
        // The most that judges may have used whose gates were taken back.
        for (node, usage) in noted {
            self.add(&node, &usage);
        }
        for fact in &advance.facts {
            if let Fact::AskOpened { node, reason: Reason::Budget, .. } = fact {
                // A gate asks for the estimated use of its judge.
                let expected = if let Event::Harness(HarnessEvent {
                    found: HarnessResult::Nothing(Inconclusive::Unfunded { estimate }),
                    ..
                }) = event
                {
                    [estimate.tokens, estimate.micro_usd]
                } else {
                    self.expected(graph, node)
                };
                self.is_short(expected, node, advance.run.head.budget)?;
            }
        }
        Ok(())
    }

    /// Checks that nobody works on once the holders of items said, with what was charged, that more is used than the budget
    /// allows: so it is over-spent by no more than what those who were out said at once (P15, P-73).
    ///
    /// # Errors
    ///
    /// Tells who works on.
    pub fn is_held<'r>(&self, open: impl Iterator<Item = &'r Row>) -> Result<(), String> {
        let works =
            |row: &&Row| matches!((&row.place, &row.item.work), (RowPlace::Leased(_), Work::Agent { .. }));
        let working: Vec<&Row> = open.filter(works).collect();
        for (part, limit) in self.limits.into_iter().enumerate() {
            let said = working.iter().filter_map(|row| row.used.as_ref());
            let said: u64 = said.map(|usage| sum_of(usage)[part]).sum();
            ensure(working.is_empty() || limit.is_none_or(|limit| self.used[part] + said <= limit), || {
                format!(
                    "P15 {} used and {said} told of {limit:?}, and {} works on",
                    self.used[part], working[0].item.id
                )
            })?;
        }
        Ok(())
    }

    fn book_event(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Agent(event) => {
                let node = &event.at.node;
                self.out.remove(node);
                match event.said.usage().or(event.noted.as_ref()) {
                    Some(usage) => self.charge(node, usage),
                    None => match event.said {
                        AgentSaid::Reported(_) | AgentSaid::Asked { .. } | AgentSaid::Overran { .. } => {
                            self.tell_nothing(node);
                        }
                        AgentSaid::Faulted(_) | AgentSaid::Released => {}
                    },
                }
            }
            Event::Clock(ClockEvent::LeaseLost { at, noted, .. }) => {
                let is_work = self.out.contains_key(&at.node);
                self.come_back(&at.node);
                match noted {
                    Some(usage) if is_work => self.charge(&at.node, usage),
                    // Of the judge of a gate.
                    Some(usage) => self.add(&at.node, usage),
                    None => {}
                }
            }
            Event::Clock(ClockEvent::Overran { at, noted }) => {
                self.come_back(&at.node);
                match noted {
                    Some(usage) => self.charge(&at.node, usage),
                    None => self.tell_nothing(&at.node),
                }
            }
            Event::Harness(HarnessEvent { at, found: HarnessResult::Ended(child) }) => {
                self.out.remove(&at.node);
                self.used = [self.used[0] + child.spent.tokens, self.used[1] + child.spent.micro_usd];
                self.has_begun |= child.spent.metered + child.spent.unmetered > 0;
            }
            Event::Harness(HarnessEvent { at, found: HarnessResult::Begun { budget, .. } }) => {
                return self.book_begun(&at.node, *budget);
            }
            Event::Harness(HarnessEvent {
                at,
                found: HarnessResult::Rehearsed(_) | HarnessResult::Recorded { .. },
            }) => {
                self.out.remove(&at.node);
            }
            Event::Harness(HarnessEvent { at, found }) => {
                // It is no report of a worker, so the average has the same number of them.
                if let Some(usage) = found.judge_usage() {
                    self.add(&at.node, usage);
                }
            }
            Event::Human(_)
            | Event::Clock(
                ClockEvent::Admitted
                | ClockEvent::Due { .. }
                | ClockEvent::Metered
                | ClockEvent::DaySpent { .. }
                | ClockEvent::DayAllows { .. }
                | ClockEvent::SetAside { .. }
                | ClockEvent::Unattended { .. },
            ) => {}
        }
        Ok(())
    }

    /// Books what the run of another plan says that it may use, which was set aside for it before.
    fn book_begun(&mut self, node: &NodeId, budget: Budget) -> Result<(), String> {
        let Some(promise) = self.out.get_mut(node) else { return Ok(()) };
        let is_promised = promise.expected != [0, 0];
        for (part, may_use) in limits(budget).into_iter().enumerate().filter(|_| is_promised) {
            let had = promise.expected[part];
            let said = self.limits[part].and(may_use).unwrap_or(had);
            ensure(promise.has_said || said <= had, || {
                format!("P15 {node} may use {said}, and {had} were set aside")
            })?;
            promise.expected[part] = if promise.has_said { said.max(had) } else { said };
        }
        promise.has_said = true;
        Ok(())
    }

    /// Promises the run of another plan more, which has to be there: beside what was used and what others are promised.
    fn set_aside(&mut self, node: &NodeId, budget: Budget) -> Result<(), String> {
        for (part, may_use) in limits(budget).into_iter().enumerate() {
            let (Some(limit), Some(may_use)) = (self.limits[part], may_use) else { continue };
            let others = self.out.iter().filter(|(other, _)| *other != node);
            let others: u64 = others.map(|(_, out)| out.expected[part]).sum();
            let Some(promise) = self.out.get_mut(node) else {
                return Err(format!("P15 {node} is promised {may_use}, and is not out"));
            };
            let used = self.used[part];
            ensure(may_use <= promise.expected[part] || used + others + may_use <= limit, || {
                format!("P15 {node} is promised {may_use}: {used} used and {others} promised of {limit}")
            })?;
            promise.expected[part] = promise.expected[part].max(may_use);
        }
        Ok(())
    }

    /// Notes that no agent is at work at a node. The run of a plan within the plan goes on without a holder, and a rehearsal that is sent
    /// out again keeps what the work after it was promised.
    fn come_back(&mut self, node: &NodeId) {
        self.out.retain(|other, promise| other != node || promise.item.agent_try().is_none());
    }

    fn charge(&mut self, node: &NodeId, usage: &Usage) {
        self.add(node, usage);
        self.of.entry(node.clone()).or_default().1 += 1;
        self.has_begun = true;
    }

    /// Notes an attempt whose worker told no usage.
    fn tell_nothing(&mut self, node: &NodeId) {
        *self.silent.entry(node.clone()).or_default() += 1;
        self.has_begun = true;
    }

    fn add(&mut self, node: &NodeId, usage: &Usage) {
        let sum = sum_of(usage);
        let (own, _) = self.of.entry(node.clone()).or_default();
        for part in 0..2 {
            self.used[part] += sum[part];
            own[part] += sum[part];
        }
    }

    fn send_out(&mut self, graph: &Graph, item: &Item, set_aside: Reserved) -> Result<(), String> {
        let node = &item.at.node;
        let goes_on = self.out.get(node).is_some_and(|promise| promise.item == item.id);
        let is_paid = match item.work {
            Work::Agent { .. } => true,
            // An evaluation uses nothing; later usage is counted from here on.
            Work::Harness { purpose: Purpose::Rehearsal | Purpose::SubPlan } => !goes_on,
            Work::Harness {
                purpose:
                    Purpose::Verdict | Purpose::Record | Purpose::Restoration | Purpose::Fork | Purpose::Merge,
            }
            | Work::Human { .. } => false,
        };
        if !is_paid {
            return Ok(());
        }
        let mut expected = self.expected(graph, node);
        for (part, limit) in self.limits.into_iter().enumerate() {
            let Some(limit) = limit else {
                expected[part] = 0;
                continue;
            };
            let others: u64 =
                self.out.iter().filter(|(other, _)| *other != node).map(|(_, out)| out.expected[part]).sum();
            if self.is_first(node) {
                expected[part] = expected[part].min(limit.saturating_sub(self.used[part]).max(1));
            }
            // The run of another plan may use all that is set aside for it.
            if is_sub_plan(&item.id) {
                expected[part] = expected[part].max([set_aside.tokens, set_aside.micro_usd][part]);
            }
            let sum = self.used[part] + others + expected[part];
            ensure(sum <= limit, || {
                format!(
                    "P15 {} goes out: {} used, {others} promised to others and {} expected are more than {limit}",
                    item.id, self.used[part], expected[part]
                )
            })?;
        }
        self.out.insert(node.clone(), Promise { item: item.id.clone(), expected, has_said: false });
        Ok(())
    }

    /// Nobody has worked and nobody else is out: the first may have all that there is.
    fn is_first(&self, node: &NodeId) -> bool {
        let promises_nothing = |promise: &Promise| promise.expected == [0, 0];
        let are_out = self.out.iter().any(|(other, promise)| other != node && !promises_nothing(promise));
        !self.has_begun && !are_out
    }

    /// The average usage of a node's workers, else its share of the plan's limit.
    fn expected(&self, graph: &Graph, node: &NodeId) -> Sum {
        let (own, times) = self.of.get(node).copied().unwrap_or_default();
        let steps = u64::from(graph.task_count().max(1));
        let planned = limits(graph.budget());
        let silent = self.silent.get(node).copied().unwrap_or_default();
        [0, 1].map(|part| {
            // A judge's use is all that is known of inconclusive attempts.
            let times = if times == 0 && own[part] > 0 { silent } else { times };
            own[part].checked_div(times).unwrap_or(planned[part].unwrap_or(0) / steps)
        })
    }

    /// A person is asked where the usage so far and the expected usage are too much, without regard to promises to others.
    fn is_short(&self, expected: Sum, node: &NodeId, budget: Budget) -> Result<(), String> {
        let parts = limits(budget).into_iter().enumerate();
        let is_over = parts
            .into_iter()
            .any(|(part, limit)| limit.is_some_and(|limit| self.used[part] + expected[part] > limit));
        // Of time, the model says so.
        ensure(is_over || budget.time.is_some(), || {
            format!("P15 a person is asked about the budget of {node}, and it suffices: {:?}", self.used)
        })
    }
}

fn sum_of(usage: &Usage) -> Sum {
    [usage.input_tokens + usage.output_tokens, usage.micro_usd.unwrap_or(0)]
}

fn limits(budget: Budget) -> [Option<u64>; 2] {
    [budget.tokens, budget.micro_usd]
}

fn is_sub_plan(item: &ItemId) -> bool {
    item.as_str().ends_with(".plan")
}
