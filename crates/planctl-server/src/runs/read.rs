//! Reads runs with what is needed to show them. Many runs take as many statements as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_engine::{Fact, Graph, NodeId, NodeState, Record, Role, RunId, RunStatus, Work};
use planctl_store::{Ahead, AwaitedLock, Records, RunRow, RunView, Store, StoreError, Unread};

use crate::node::in_flight::InFlight;
use crate::node::services::{ServiceError, Services};
use crate::runs::shown::{Inner, Shown};
use crate::runs::worked_on::ONLINE;

/// A run with its graph.
struct Loaded {
    view: RunView,
    graph: Arc<Graph>,
}

impl Loaded {
    fn id(&self) -> RunId {
        self.view.run.id
    }

    /// Returns the nodes whose work for an agent nobody has claimed, each with its role.
    fn unclaimed(&self) -> impl Iterator<Item = (&NodeId, &Role)> {
        self.view.items.iter().filter_map(|item| match &item.work {
            Work::Agent { role, .. } if !item.is_leased => Some((&item.at.node, role)),
            Work::Agent { .. } | Work::Harness { .. } | Work::Human { .. } => None,
        })
    }

    fn has_unclaimed_work(&self) -> bool {
        self.unclaimed().next().is_some()
    }

    fn has_unclaimed_work_with_locks(&self) -> bool {
        self.unclaimed().filter_map(|(node, _)| self.graph.task(node)).any(|task| !task.locks.is_empty())
    }

    fn is_queued(&self) -> bool {
        matches!(self.view.run.head.status, RunStatus::Queued { .. })
    }

    fn resting(&self) -> impl Iterator<Item = (RunId, &NodeId)> {
        let rests = |record: &Record| matches!(record.state, NodeState::Resting { .. });
        let resting = self.view.records.iter().filter(move |(_, record)| rests(record));
        resting.map(|(node, _)| (self.id(), node))
    }

    /// Returns the newest run of each plan that a node carries out, and whether this run waits for its end.
    fn children(&self) -> Vec<(NodeId, RunId, bool)> {
        let children = self.graph.sub_plans().filter_map(|(node, _)| {
            let record = self.view.records.get(&node.id)?;
            let is_waited_for = matches!(record.state, NodeState::Nested { .. });
            Some((node.id.clone(), record.child?, is_waited_for))
        });
        children.collect()
    }
}

/// The obstacles of runs, by these runs.
struct Obstacles {
    ahead: BTreeMap<RunId, Ahead>,
    held_back: BTreeSet<RunId>,
    locks: BTreeMap<RunId, Vec<AwaitedLock>>,
    rests: BTreeMap<(RunId, NodeId), Result<Fact, StoreError>>,
    paused: Arc<BTreeMap<Role, String>>,
}

impl Obstacles {
    async fn of(store: &Store, runs: &[&Loaded]) -> Result<Obstacles, StoreError> {
        let ids = |is_wanted: &dyn Fn(&Loaded) -> bool| -> Vec<RunId> {
            runs.iter().filter(|run| is_wanted(run)).map(|run| run.id()).collect()
        };
        let queued = ids(&Loaded::is_queued);
        let unclaimed = ids(&Loaded::has_unclaimed_work);
        let locking = ids(&Loaded::has_unclaimed_work_with_locks);
        let resting: Vec<_> = runs.iter().flat_map(|run| run.resting()).collect();
        let mut found = Obstacles {
            ahead: BTreeMap::new(),
            held_back: BTreeSet::new(),
            locks: BTreeMap::new(),
            rests: BTreeMap::new(),
            paused: Arc::default(),
        };
        if !queued.is_empty() {
            found.ahead = store.each_waits_for(&queued).await?;
        }
        if !unclaimed.is_empty() {
            found.held_back = store.runs_held_back(&unclaimed).await?;
            let roles = runs.iter().flat_map(|run| run.unclaimed()).map(|(_, role)| role);
            let roles: BTreeSet<&Role> = roles.collect();
            found.paused = Arc::new(store.paused_workers(&Vec::from_iter(roles), ONLINE).await?);
        }
        if !locking.is_empty() {
            found.locks = store.awaited_locks(&locking).await?;
        }
        if !resting.is_empty() {
            found.rests = store.newest_resting_facts(&resting).await?;
        }
        Ok(found)
    }

    /// Returns the trouble that kept workers from the work of a run's nodes that rest, and keeps those of this process from it.
    fn troubles_of(
        &mut self,
        run: &Loaded,
        in_flight: &InFlight,
    ) -> Result<BTreeMap<NodeId, String>, StoreError> {
        let mut troubles = BTreeMap::new();
        for (id, node) in run.resting() {
            let rest = self.rests.remove(&(id, node.clone())).transpose()?;
            if let Some(Fact::NodeResting { message, .. }) = rest {
                troubles.insert(node.clone(), message);
            }
        }
        for item in run.view.items.iter().filter(|item| item.is_leased) {
            troubles.extend(in_flight.obstacle(&item.id).map(|words| (item.at.node.clone(), words)));
        }
        Ok(troubles)
    }
}

impl Services {
    /// Returns one run with what is needed to show it.
    pub(super) async fn shown(&self, run: RunId) -> Result<Shown, ServiceError> {
        let row = self.store.run(run).await?;
        self.shown_of(row, Records::All).await
    }

    /// Returns the run of a row with these records.
    pub(super) async fn shown_of(&self, row: RunRow, which: Records) -> Result<Shown, ServiceError> {
        let shown = self.shown_each(vec![row], which).await?.pop();
        let shown = shown.ok_or_else(|| ServiceError::broken("a run that was read is not there"))?;
        Ok(shown.map_err(|unread| unread.error)?)
    }

    /// Returns runs with what is needed to show them, each by itself and in the order given.
    pub(super) async fn shown_each(
        &self,
        rows: Vec<RunRow>,
        which: Records,
    ) -> Result<Vec<Result<Shown, Unread>>, ServiceError> {
        let loaded = self.load(rows, which).await?;
        let read: Vec<&Loaded> = loaded.iter().filter_map(|run| run.as_ref().ok()).collect();
        let mut obstacles = Obstacles::of(&self.store, &read).await?;
        let mut inner = self.runs_within(&read, which).await?;
        let in_flight = self.server_node.in_flight();
        let mut shown = |run: Loaded| {
            let id = run.id();
            let troubles =
                obstacles.troubles_of(&run, in_flight).map_err(|error| Unread { run: id, error })?;
            let mut within = BTreeMap::new();
            for (node, child, _) in run.children() {
                let inner = inner.remove(&child).transpose().map_err(|error| Unread { run: id, error })?;
                within.extend(inner.map(|inner| (node, inner)));
            }
            Ok(Shown {
                settings: serde_json::from_str(&run.view.run.settings).unwrap_or_default(),
                ahead: obstacles.ahead.remove(&id),
                is_held_back: obstacles.held_back.contains(&id),
                locks: obstacles.locks.remove(&id).unwrap_or_default(),
                within,
                paused: Arc::clone(&obstacles.paused),
                troubles,
                view: run.view,
                graph: run.graph,
            })
        };
        Ok(loaded.into_iter().map(|run| run.and_then(&mut shown)).collect())
    }

    async fn load(
        &self,
        rows: Vec<RunRow>,
        which: Records,
    ) -> Result<Vec<Result<Loaded, Unread>>, ServiceError> {
        self.store.cache_graphs(rows.iter().map(|row| &row.graph)).await?;
        let mut loaded = Vec::with_capacity(rows.len());
        for view in self.store.run_views(rows, which).await? {
            loaded.push(match view {
                Ok(view) => match self.store.graph_of(&view.run).await {
                    Ok(graph) => Ok(Loaded { view, graph }),
                    Err(error @ StoreError::Corrupt { .. }) => Err(Unread { run: view.run.id, error }),
                    Err(error) => return Err(error.into()),
                },
                Err(unread) => Err(unread),
            });
        }
        Ok(loaded)
    }

    /// Returns the runs of the plans that nodes of some runs carry out; those that are waited for with where they stand.
    async fn runs_within(
        &self,
        runs: &[&Loaded],
        which: Records,
    ) -> Result<BTreeMap<RunId, Result<Inner, StoreError>>, ServiceError> {
        let children: BTreeMap<RunId, bool> =
            runs.iter().flat_map(|run| run.children()).map(|(_, child, waits)| (child, waits)).collect();
        if children.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<RunId> = children.keys().copied().collect();
        let (mut within, mut waited_for) = (BTreeMap::new(), Vec::new());
        for row in self.store.some_runs(&ids).await? {
            match row {
                Ok(row) if children.get(&row.id) == Some(&true) => waited_for.push(row),
                Ok(row) => {
                    within.insert(row.id, Ok(Inner { name: row.name, waits: None }));
                }
                Err(unread) => {
                    within.insert(unread.run, Err(unread.error));
                }
            }
        }
        for shown in Box::pin(self.shown_each(waited_for, which)).await? {
            match shown {
                Ok(shown) => {
                    let waits = Some((shown.state(), shown.waiting_on()));
                    let Shown { view, .. } = shown;
                    within.insert(view.run.id, Ok(Inner { name: view.run.name, waits }));
                }
                Err(unread) => {
                    within.insert(unread.run, Err(unread.error));
                }
            }
        }
        Ok(within)
    }
}
