//! Changes the text of a plan: fixes, planctl's own form, templates, marks, and steps that workers propose.

pub(crate) mod annotate;
pub(crate) mod expand;
pub(crate) mod fix;
pub(crate) mod format;
pub(crate) mod insert;
mod placeless;
pub(crate) mod template;
