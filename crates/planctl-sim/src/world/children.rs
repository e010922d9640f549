//! Plans within the plan: each is a run of its own, which ends some time, wakes who waits for it, and is ended where nobody
//! does any more.

use planctl_engine::{
    Budget, ChildEnd, ClockEvent, End, Event, Fact, HarnessResult, ItemId, NodeId, NodeState, Outcomes,
    RunId, Spent,
};

use super::World;
use crate::dice::truth;
use crate::store::{Proof, RowPlace};

/// The run of a plan within the plan.
#[derive(Clone, Debug)]
pub(super) struct Child {
    node: NodeId,
    run: RunId,
    /// The budget of its own plan, within what was set aside for it.
    budget: Budget,
    /// Nothing of it goes on until a person decides.
    waits: bool,
    /// How often it begins to wait for a person, or goes on, until it ends.
    changes: u64,
    /// How it ended, once it has.
    ended: Option<ChildEnd>,
}

impl Child {
    /// Says where it stands, as the harness does who looks after it.
    pub(super) fn look(&self) -> HarnessResult {
        match &self.ended {
            None => HarnessResult::Begun { run: self.run, budget: self.budget, waits: self.waits },
            Some(child) => HarnessResult::Ended(Box::new(child.clone())),
        }
    }
}

impl World {
    /// Returns the run for which an item waits; it is made when somebody looks for the first time.
    pub(super) fn child_of(&mut self, item: &ItemId) -> &Child {
        let number = self.children.len() as u128 + 1;
        let node = self.store.items[item].item.at.node.clone();
        let allowed = truth(self.options.seed, &["allowed", item.as_str()], 0);
        let set_aside = self.store.head.budget_set_aside_for(&node);
        self.children.entry(item.clone()).or_insert_with(|| Child {
            node,
            run: RunId::from_u128((1 << 100) + number),
            budget: Budget {
                tokens: allowed.is_multiple_of(2).then_some(allowed / 2 % 2_000),
                ..Budget::default()
            }
            .within(set_aside),
            waits: false,
            changes: u64::from(self.options.has_pauses)
                * (truth(self.options.seed, &["asks", item.as_str()], 0) % 4),
            ended: None,
        })
    }

    /// Has a person raise what the run of a plan within may use, now and then: at times by more than there is. When is drawn by a
    /// sequence of its own.
    pub(super) fn raise_children(&mut self) -> Result<(), String> {
        let drawn = truth(self.options.seed, &["raise within"], self.store.head.transitions.into());
        if !drawn.is_multiple_of(8) {
            return Ok(());
        }
        let Some(child) = self.children.values().find(|child| child.ended.is_none()) else { return Ok(()) };
        let (node, run) = (child.node.clone(), child.run);
        let tokens = if drawn.is_multiple_of(16) { drawn / 16 % 4_000 } else { 10_000_000 };
        let budget =
            Budget { tokens: Some(tokens), micro_usd: Some(drawn / 16 % 40_000), ..Budget::default() };
        self.say(Event::Clock(ClockEvent::SetAside { node, run, budget }), Proof::Anyone)
    }

    pub(super) fn has_children_to_tend(&self) -> bool {
        self.children.iter().any(|(item, child)| child.ended.is_none() || self.rests(item))
    }

    /// Says whether an item rests until somebody wakes it.
    fn rests(&self, item: &ItemId) -> bool {
        let row = &self.store.items[item];
        row.place == RowPlace::Ready && row.item.available_at > self.now
    }

    /// Lets one run within the run go on: it ends, or who waits for it is woken.
    pub(super) fn tend_children(&mut self) -> Result<(), String> {
        let to_tend: Vec<ItemId> = self
            .children
            .iter()
            .filter(|(item, child)| child.ended.is_none() || self.rests(item))
            .map(|(item, _)| item.clone())
            .collect();
        let Some(item) = self.any_of(to_tend) else { return Ok(()) };
        let (seed, passes) = (self.options.seed, self.options.passes);
        let is_left = matches!(self.store.items[&item].place, RowPlace::Revoked(_) | RowPlace::Closed);
        let rests = self.rests(&item);
        let Some(child) = self.children.get_mut(&item) else { return Ok(()) };
        let state = self.store.nodes.get(&child.node).map(|record| &record.state);
        let is_told = matches!(state, Some(NodeState::Nested { waits, .. }) if *waits == child.waits);
        if !is_left && child.ended.is_none() && (child.changes > 0 || rests && !is_told) {
            if rests && !is_told {
                if let Some(row) = self.store.items.get_mut(&item) {
                    row.item.available_at = self.now;
                }
                self.lines.push(format!("         {item} is woken"));
            } else {
                child.changes -= 1;
                child.waits = !child.waits;
                let (word, rest) = if child.waits { ("waits", "for a person") } else { ("goes", "on") };
                self.lines.push(format!("         the run within {} {word} {rest}", child.node));
                self.met("child", word);
            }
            return Ok(());
        }
        if child.ended.is_some() {
            if let Some(row) = self.store.items.get_mut(&item) {
                row.item.available_at = self.now;
            }
            self.lines.push(format!("         the run within {} is over, and {item} is woken", child.node));
            return Ok(());
        }
        let hidden = truth(seed, &["child", item.as_str()], 0);
        let end = match hidden % 1000 < passes {
            _ if is_left => End::Cancelled,
            true => End::Done,
            false => [End::Failed, End::Aborted, End::Cancelled][(hidden / 1000 % 3) as usize],
        };
        let spent = Spent {
            tokens: hidden / 7 % 3_000,
            micro_usd: hidden / 11 % 30_000,
            metered: (hidden / 13 % 3) as u32,
            unmetered: (hidden / 17 % 2) as u32,
            ..Spent::default()
        };
        let name = format!("within-{}", child.run);
        let settled = Outcomes::default();
        child.ended = Some(ChildEnd { run: child.run, name, end, settled, spent });
        self.lines.push(format!("         the run within {} ends: {end:?}", child.node));
        Ok(())
    }

    /// Each run within the run is over, and the run heard of each once at most: of that end, and of no other.
    pub(super) fn children_are_sound(&self) -> Result<(), String> {
        for (item, child) in &self.children {
            let Some(ended) = &child.ended else { return Err(format!("the run for {item} never ended")) };
            let facts = self.store.history.iter().flat_map(|entry| &entry.facts);
            let told =
                facts.filter(|fact| matches!(fact, Fact::SubPlanEnded { name, .. } if *name == ended.name));
            let ends: Vec<_> = told
                .map(|fact| if let Fact::SubPlanEnded { end, .. } = fact { Some(*end) } else { None })
                .collect();
            if ends.len() > 1 || ends.first().is_some_and(|end| *end != Some(ended.end)) {
                return Err(format!(
                    "the run for {item} ended {:?}, and was heard to end {ends:?}",
                    ended.end
                ));
            }
        }
        Ok(())
    }
}
