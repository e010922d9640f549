//! Breaks the other crates on purpose: simulator, reference model, house rules.
