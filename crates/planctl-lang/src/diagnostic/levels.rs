//! How much each code weighs where somebody said otherwise: `-A`, `-W` and `-D`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::text::characters::escape;

/// The level wished for a code.
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

/// The wishes for all codes. Of wishes that touch the same finding the later one wins; `warnings` touches only what would
/// be a warning, so that what is allowed stays allowed when all warnings are denied afterwards.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Vec<(String, Wish)>", try_from = "Vec<(String, Wish)>")]
pub struct Levels {
    codes: BTreeMap<Code, Ranked>,
    warnings: Option<Ranked>,
    count: usize,
}

/// A wish and its place among all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ranked {
    at: usize,
    wish: Wish,
}

/// A wish that can't be granted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum UnknownWish {
    /// There is no such code.
    #[error("`{found}` is neither a code nor `warnings`{}", near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoSuchCode {
        /// The name that was given.
        found: String,
        /// The nearest code.
        near: Option<&'static str>,
    },
    /// The plan has no meaning where this is found.
    #[error("`{0}` is always an error: {title}", title = .0.title())]
    AlwaysError(Code),
}

/// Wishes of equal effect are equal, in any order.
impl PartialEq for Levels {
    fn eq(&self, other: &Levels) -> bool {
        self.wishes() == other.wishes()
    }
}

impl Eq for Levels {}

impl From<Levels> for Vec<(String, Wish)> {
    fn from(levels: Levels) -> Self {
        levels.wishes().into_iter().map(|(name, wish)| (name.to_owned(), wish)).collect()
    }
}

impl TryFrom<Vec<(String, Wish)>> for Levels {
    type Error = UnknownWish;

    fn try_from(wishes: Vec<(String, Wish)>) -> Result<Levels, UnknownWish> {
        let mut levels = Levels::default();
        for (name, wish) in wishes {
            levels.add(wish, &name)?;
        }
        Ok(levels)
    }
}

/// The name of all warnings at once.
const ALL_WARNINGS: &str = "warnings";

/// Errors that depend on where the plan is verified, not on what it says: a person may know better.
const ADJUSTABLE_ERRORS: &[Code] = &[Code::P102, Code::P201, Code::P401];

impl Levels {
    /// Adds a wish for a code, or for all `warnings`.
    ///
    /// # Errors
    ///
    /// Where there is no such code, or where an error that leaves the plan without a meaning is to be less.
    pub fn add(&mut self, wish: Wish, name: &str) -> Result<(), UnknownWish> {
        let ranked = Ranked { at: self.count, wish };
        if name.eq_ignore_ascii_case(ALL_WARNINGS) {
            self.warnings = Some(ranked);
            self.count += 1;
            return Ok(());
        }
        let Some(code) = Code::from_word(name) else {
            let near = did_you_mean(name, Code::ALL.iter().map(|code| code.as_str()).chain([ALL_WARNINGS]));
            return Err(UnknownWish::NoSuchCode { found: escape(name), near });
        };
        let is_adjustable = code.default_level() != Severity::Error || ADJUSTABLE_ERRORS.contains(&code);
        if wish != Wish::Deny && !is_adjustable {
            return Err(UnknownWish::AlwaysError(code));
        }
        self.codes.insert(code, ranked);
        self.count += 1;
        Ok(())
    }

    /// Adds the wishes of another, which are later than all of these.
    #[must_use]
    pub fn then(mut self, later: &Levels) -> Levels {
        let moved = |ranked: &Ranked| Ranked { at: ranked.at + self.count, wish: ranked.wish };
        let codes: Vec<_> = later.codes.iter().map(|(code, ranked)| (*code, moved(ranked))).collect();
        self.warnings = later.warnings.as_ref().map(moved).or(self.warnings);
        self.codes.extend(codes);
        self.count += later.count;
        self
    }

    /// Takes out the wishes that make findings less than they are.
    ///
    /// Returns the names that were wished less: a person can't approve a hidden finding.
    pub fn only_stricter(&mut self) -> Vec<&'static str> {
        let mut taken = Vec::new();
        self.codes.retain(|code, ranked| {
            let is_kept = ranked.wish == Wish::Deny;
            if !is_kept {
                taken.push(code.as_str());
            }
            is_kept
        });
        if self.warnings.is_some_and(|ranked| ranked.wish == Wish::Allow) {
            self.warnings = None;
            taken.push(ALL_WARNINGS);
        }
        taken
    }

    /// Says that nothing is wished.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty() && self.warnings.is_none()
    }

    /// Returns every wish as it was given, in an order that is the same for equal effects.
    pub fn wishes(&self) -> Vec<(&'static str, Wish)> {
        let codes = self.codes.iter().map(|(code, ranked)| (ranked.at, code.as_str(), ranked.wish));
        let warnings = self.warnings.map(|ranked| (ranked.at, ALL_WARNINGS, ranked.wish));
        let before = |at: usize| self.warnings.is_none_or(|ranked| at < ranked.at);
        let mut all: Vec<_> = codes.collect();
        all.sort_by_key(|(at, name, _)| (!before(*at), *name));
        let middle = all.iter().filter(|(at, _, _)| before(*at)).count();
        all.splice(middle..middle, warnings);
        all.into_iter().map(|(_, name, wish)| (name, wish)).collect()
    }

    /// Returns the wish for a code by its name.
    pub(crate) fn wish_of(&self, code: Code) -> Option<Wish> {
        self.codes.get(&code).map(|ranked| ranked.wish)
    }

    /// Says that no finding of a code is shown, whatever its level.
    pub(crate) fn hides(&self, code: Code) -> bool {
        self.wish_of(code) == Some(Wish::Allow)
    }

    /// Gives every finding the level that is wished for, and takes away what is allowed.
    pub fn apply(&self, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.retain_mut(|diagnostic| {
            match self.wish_for(diagnostic.code, diagnostic.level) {
                None => {}
                Some(Wish::Allow) => return false,
                Some(Wish::Warn) => diagnostic.level = Severity::Warning,
                Some(Wish::Deny) => diagnostic.level = Severity::Error,
            }
            true
        });
    }

    fn wish_for(&self, code: Code, level: Severity) -> Option<Wish> {
        let of_code = self.codes.get(&code).copied();
        let is_warning = of_code.map_or(level == Severity::Warning, |ranked| ranked.wish == Wish::Warn);
        let of_all = self.warnings.filter(|_| is_warning);
        let later = [of_code, of_all].into_iter().flatten().max_by_key(|ranked| ranked.at);
        later.map(|ranked| ranked.wish)
    }
}
