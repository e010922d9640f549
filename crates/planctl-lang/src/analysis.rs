//! Reads from a plan's text which files it is about: which its contracts read, which its steps make, and which a worker may change.

pub(crate) mod looks;
pub(crate) mod mentions;
pub(crate) mod order;
pub(crate) mod plainly;
mod scripts;
mod wants;

pub(crate) use scripts::Scripts;
pub(crate) use wants::{
    PACKAGE, Protected, judging_files, matches_any, may_change, named_files, other_forms, rights_of_task,
    wants_of,
};
