//! How much each code weighs where somebody said otherwise: `-A`, `-W` and `-D`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};

/// What is wished of a code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wish {
    /// Say nothing of it (`-A`).
    Allow,
    /// Say it as a warning (`-W`).
    Warn,
    /// Say it as an error (`-D`).
    Deny,
}

/// The wishes for all codes; the later wish for a code wins, and one for a code wins over one for all warnings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    codes: BTreeMap<Code, Wish>,
    warnings: Option<Wish>,
}

/// A wish that can't be granted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum UnknownWish {
    /// There is no such code.
    #[error("`{found}` is neither a code nor `warnings`{}", near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoSuchCode {
        /// What was given.
        found: String,
        /// The nearest code.
        near: Option<&'static str>,
    },
    /// The plan has no meaning where this is found.
    #[error("`{0}` is always an error: {title}", title = .0.title())]
    AlwaysError(Code),
}

/// Errors that depend on where the plan is verified, not on what it says: a person may know better.
const ADJUSTABLE_ERRORS: &[Code] = &[Code::P102, Code::P201, Code::P401];

impl Levels {
    /// Adds a wish for a code, or for all `warnings`.
    ///
    /// # Errors
    ///
    /// Where there is no such code, or where an error that leaves the plan without a meaning is to be less.
    pub fn add(&mut self, wish: Wish, name: &str) -> Result<(), UnknownWish> {
        if name.eq_ignore_ascii_case("warnings") {
            self.warnings = Some(wish);
            return Ok(());
        }
        let Some(code) = Code::named(name) else {
            let near = did_you_mean(name, Code::ALL.iter().map(|code| code.as_str()).chain(["warnings"]));
            return Err(UnknownWish::NoSuchCode { found: name.to_owned(), near });
        };
        let is_adjustable = code.default_level() != Severity::Error || ADJUSTABLE_ERRORS.contains(&code);
        if wish != Wish::Deny && !is_adjustable {
            return Err(UnknownWish::AlwaysError(code));
        }
        self.codes.insert(code, wish);
        Ok(())
    }

    /// Gives every finding the level that is wished for, and takes away what is allowed.
    pub fn apply(&self, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.retain_mut(|diagnostic| {
            let of_code = self.codes.get(&diagnostic.code).copied();
            let of_all = self.warnings.filter(|_| diagnostic.level == Severity::Warning);
            match of_code.or(of_all) {
                None => {}
                Some(Wish::Allow) => return false,
                Some(Wish::Warn) => diagnostic.level = Severity::Warning,
                Some(Wish::Deny) => diagnostic.level = Severity::Error,
            }
            true
        });
    }
}
