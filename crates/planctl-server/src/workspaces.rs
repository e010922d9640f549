//! Workspaces: git worktrees of runs and their branches, protected files, checkpoints, by-products of contracts, marks in
//! plan files, and the notes that planctl keeps of each.

pub(crate) mod baselines;
pub(crate) mod branch_worktrees;
pub(crate) mod by_products;
pub(crate) mod checkpoints;
pub(crate) mod contract_writes;
pub(crate) mod marks;
pub(crate) mod neighbours;
pub(crate) mod notes;
pub(crate) mod worktrees;
