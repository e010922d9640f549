//! Breaks the other crates on purpose: simulator, reference model, house rules.
//!
//! [`play`] expands a seed to [`Options`], draws a plan, and lets workers, gates, a person, clocks and crashes talk to
//! one run through a model of the store. After each event the run is compared with a naive reference [`Model`] and with
//! the invariants of the house; a [`Breach`] tells the whole conversation. First comes a phase with faults, then one
//! without, in which the run must end.

mod check;
mod clock;
mod coverage;
mod database;
mod dice;
mod faults;
mod model;
mod options;
mod plans;
mod store;
mod tell;
mod world;

pub use coverage::{Coverage, expected};
pub use dice::{Dice, truth};
pub use faults::{Flaw, Trouble};
pub use model::{Model, NodePosition, Status, View, view_of};
pub use options::Options;
pub use plans::{Plan, draw, revise};
pub use tell::fact as fact_in_words;
pub use world::{Breach, Tale, play, play_on, shrink, with_yes_of_judge};
