//! The outlines of nodes, one for each kind, so that a picture needs no colours.

use planctl_lang::workflow::Kind;

use super::{number, push_fmt};

/// The shape of a node's box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// A start: round ends.
    Pill,
    /// An exit: round ends, drawn twice.
    DoublePill,
    /// An exit of a run that failed: round ends, drawn twice, with a bar.
    FailedPill,
    /// A task.
    Box,
    /// A decision.
    Diamond,
    /// A question for a person.
    Hexagon,
    /// A command without an agent.
    Slanted,
    /// A checkpoint.
    Drum,
    /// A fork: it widens.
    Widening,
    /// A join: it narrows.
    Narrowing,
    /// An escalation: it points upwards.
    Upwards,
    /// A run of another plan: a box with sides.
    Sided,
    /// Several nodes that are folded: a box before others.
    Stack,
}

/// How far slanted sides come in.
const SLANT: f64 = 14.0;
/// The height of a drum's lid.
const LID: f64 = 6.0;
/// The height of a roof.
const ROOF: f64 = 14.0;

impl Shape {
    pub(super) fn of(kind: Kind, is_failed_exit: bool) -> Shape {
        match kind {
            Kind::Start => Shape::Pill,
            Kind::Exit if is_failed_exit => Shape::FailedPill,
            Kind::Exit => Shape::DoublePill,
            Kind::Task => Shape::Box,
            Kind::Decision => Shape::Diamond,
            Kind::Human => Shape::Hexagon,
            Kind::Call => Shape::Slanted,
            Kind::Checkpoint => Shape::Drum,
            Kind::Fork => Shape::Widening,
            Kind::Join => Shape::Narrowing,
            Kind::Escalate => Shape::Upwards,
            Kind::SubPlan => Shape::Sided,
        }
    }

    /// Returns the word that says what it stands for.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Shape::Pill => "start",
            Shape::DoublePill | Shape::FailedPill => "exit",
            Shape::Box => "task",
            Shape::Diamond => "decision",
            Shape::Hexagon => "a person chooses",
            Shape::Slanted => "command",
            Shape::Drum => "checkpoint",
            Shape::Widening => "fork",
            Shape::Narrowing => "join",
            Shape::Upwards => "escalate",
            Shape::Sided => "sub-plan",
            Shape::Stack => "several",
        }
    }

    /// Returns how many letters a line in it takes.
    pub(super) fn columns(self) -> usize {
        if self == Shape::Diamond { 18 } else { 26 }
    }

    /// Returns the width and height around a text.
    pub(super) fn size(self, width: f64, height: f64) -> (f64, f64) {
        let (wide, high) = (width.max(40.0) + 22.0, height + 14.0);
        match self {
            Shape::Box | Shape::Stack => (wide, high),
            Shape::Pill | Shape::DoublePill | Shape::FailedPill => (wide + high * 0.5, high + 2.0),
            Shape::Diamond => ((wide * 1.55).ceil(), (high * 2.1).ceil()),
            Shape::Hexagon | Shape::Slanted | Shape::Widening | Shape::Narrowing => {
                (wide + 2.0 * SLANT, high)
            }
            Shape::Drum => (wide, high + 2.0 * LID),
            Shape::Upwards => (wide, high + ROOF),
            Shape::Sided => (wide + 16.0, high),
        }
    }

    /// Returns how far below the middle its text stands.
    pub(super) fn text_shift(self) -> f64 {
        match self {
            Shape::Upwards => ROOF / 2.0,
            Shape::Drum => LID / 2.0,
            Shape::Pill
            | Shape::DoublePill
            | Shape::FailedPill
            | Shape::Box
            | Shape::Diamond
            | Shape::Hexagon
            | Shape::Slanted
            | Shape::Widening
            | Shape::Narrowing
            | Shape::Sided
            | Shape::Stack => 0.0,
        }
    }

    /// Returns its corners around its middle; edges end there.
    pub(super) fn outline(self, (width, height): (f64, f64)) -> Vec<(f64, f64)> {
        let (x, y) = (width / 2.0, height / 2.0);
        match self {
            Shape::Pill | Shape::DoublePill | Shape::FailedPill => {
                let end = x - y;
                let cap = |angle: f64, middle: f64| (middle + y * angle.cos(), y * angle.sin());
                let right = (-4..=4).map(|step| cap(f64::from(step) * std::f64::consts::PI / 8.0, end));
                let left = (4..=12).map(|step| cap(f64::from(step) * std::f64::consts::PI / 8.0, -end));
                right.chain(left).collect()
            }
            Shape::Box | Shape::Sided | Shape::Drum | Shape::Stack => {
                vec![(-x, -y), (x, -y), (x, y), (-x, y)]
            }
            Shape::Diamond => vec![(0.0, -y), (x, 0.0), (0.0, y), (-x, 0.0)],
            Shape::Hexagon => {
                vec![(-x + SLANT, -y), (x - SLANT, -y), (x, 0.0), (x - SLANT, y), (-x + SLANT, y), (-x, 0.0)]
            }
            Shape::Slanted => vec![(-x + SLANT, -y), (x, -y), (x - SLANT, y), (-x, y)],
            Shape::Widening => vec![(-x + SLANT, -y), (x - SLANT, -y), (x, y), (-x, y)],
            Shape::Narrowing => vec![(-x, -y), (x, -y), (x - SLANT, y), (-x + SLANT, y)],
            Shape::Upwards => vec![(0.0, -y), (x, -y + ROOF), (x, y), (-x, y), (-x, -y + ROOF)],
        }
    }

    /// Draws it.
    pub(super) fn draw(self, text: &mut String, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (left, top) = (x - width / 2.0, y - height / 2.0);
        let boxed = |text: &mut String, class: &str, inset: f64, radius: f64| {
            push_fmt(
                text,
                format_args!(
                    "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
                    number(left + inset),
                    number(top + inset),
                    number(width - 2.0 * inset),
                    number(height - 2.0 * inset),
                    number(radius)
                ),
            );
        };
        let line = |text: &mut String, from: (f64, f64), to: (f64, f64)| {
            push_fmt(
                text,
                format_args!(
                    "<path class=\"line\" d=\"M{} {}L{} {}\"/>",
                    number(from.0),
                    number(from.1),
                    number(to.0),
                    number(to.1)
                ),
            );
        };
        match self {
            Shape::Pill => boxed(text, "shape", 0.0, height / 2.0),
            Shape::DoublePill | Shape::FailedPill => {
                boxed(text, "shape", 0.0, height / 2.0);
                boxed(text, "line", 3.0, height / 2.0 - 3.0);
                if self == Shape::FailedPill {
                    let inner = height * 0.25;
                    line(text, (left + inner, top + height - inner), (left + inner * 2.0, top + inner));
                    line(text, (left + inner, top + inner), (left + inner * 2.0, top + height - inner));
                }
            }
            Shape::Box => boxed(text, "shape", 0.0, 4.0),
            Shape::Stack => {
                boxed(text, "shape", 0.0, 4.0);
                boxed(text, "line", 4.0, 2.0);
            }
            Shape::Sided => {
                boxed(text, "shape", 0.0, 2.0);
                for side in [left + 7.0, left + width - 7.0] {
                    line(text, (side, top), (side, top + height));
                }
            }
            Shape::Drum => {
                let (right, bottom) = (left + width, top + height);
                let (rx, lid) = (number(width / 2.0), number(LID));
                let (l, r) = (number(left), number(right));
                let (t, b) = (number(top + LID), number(bottom - LID));
                push_fmt(
                    text,
                    format_args!(
                        "<path class=\"shape\" d=\"M{l} {t}A{rx} {lid} 0 0 1 {r} {t}V{b}A{rx} {lid} 0 0 1 {l} {b}Z\"/>\
                         <path class=\"line\" d=\"M{l} {t}A{rx} {lid} 0 0 0 {r} {t}\"/>"
                    ),
                );
            }
            Shape::Diamond
            | Shape::Hexagon
            | Shape::Slanted
            | Shape::Widening
            | Shape::Narrowing
            | Shape::Upwards => {
                let corners: Vec<String> = self
                    .outline((width, height))
                    .into_iter()
                    .map(|(dx, dy)| format!("{},{}", number(x + dx), number(y + dy)))
                    .collect();
                push_fmt(text, format_args!("<polygon class=\"shape\" points=\"{}\"/>", corners.join(" ")));
            }
        }
    }
}
