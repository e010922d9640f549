//! Shows plans and findings to people and programs.

pub(crate) mod changes;
pub(crate) mod draw;
pub(crate) mod findings;
pub(crate) mod group;
pub(crate) mod render;
pub(crate) mod requirements;
