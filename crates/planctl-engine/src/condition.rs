//! Conditions of edges and decisions: one tree for markdown, JSON and DOT, weighed against what a run knows.
//!
//! A condition is a list of clauses that must all hold (DOT rows C1–C8); a list without clauses always holds. The text
//! of conditions is read in `planctl-lang`; here they are weighed and printed.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The condition of an edge: every clause must hold for the edge to be taken. Without clauses it always holds (C1).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Condition {
    /// The clauses, in the author's order.
    pub clauses: Vec<Clause>,
}

/// One part of a condition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Clause {
    /// The value that is looked at.
    pub key: Key,
    /// The test that it must pass.
    #[serde(flatten)]
    pub test: Test,
}

/// The value that a clause looks at (C2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// `outcome`: how the node that was left ended.
    Outcome,
    /// `preferred_label`: the label that its worker, or the person it asked, named.
    PreferredLabel,
    /// `context.NAME`: a value of the run's context, `context.NAME` before `NAME`.
    Context(String),
    /// `NAME`: a value of the run's context.
    Variable(String),
    /// `steps.NODE.FIELD`: a field of another node.
    Step {
        /// The node's name.
        node: String,
        /// The field of that node.
        field: StepField,
    },
}

/// The fields of a node that a condition can name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepField {
    /// How it ended, in the words of [`STATUS_WORDS`].
    Outcome,
    /// The exit code of its last gate or command.
    ExitCode,
    /// The end of its last attempt's output, or the person's answer.
    Output,
    /// The label it named.
    Label,
    /// How many attempts it took.
    Attempts,
}

/// The test that a value must pass.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(tag = "test", content = "value", rename_all = "snake_case")]
pub enum Test {
    /// `=`: exactly this.
    Is(String),
    /// `!=`: anything else; a value that is missing is empty, and so differs (C3).
    IsNot(String),
    /// Nothing: neither empty, `0` nor `false` (C5).
    Truthy,
}

/// The words that an outcome can be (X3); `outcome=` another word asks for the label (C8).
pub const STATUS_WORDS: [&str; 5] = ["success", "fail", "partial_success", "retry", "skipped"];

/// The word of an attempt that passed.
const SUCCESS: &str = STATUS_WORDS[0];

/// The values of a run that a condition is weighed against.
pub trait ConditionInput {
    /// Returns how the node that is left ended, one of [`STATUS_WORDS`].
    fn outcome(&self) -> &str;

    /// Returns the label it named; empty where it named none.
    fn preferred_label(&self) -> &str;

    /// Returns a value of the run's context by its exact name.
    fn context(&self, name: &str) -> Option<Cow<'_, str>>;

    /// Returns what is known of a node; nothing where it was never entered.
    fn step(&self, node: &str, field: StepField) -> Option<Cow<'_, str>>;
}

/// How a condition was weighed, clause by clause (E15).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trail {
    /// Says whether all of it held.
    pub holds: bool,
    /// Every clause, also those after the first that did not hold.
    pub clauses: Vec<Weighed>,
}

/// One clause with what was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Weighed {
    /// The clause as written.
    pub clause: String,
    /// The value that was there, cut to [`FOUND_CHARS_MAX`]; none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Says whether it held.
    pub holds: bool,
}

/// The most characters of a value that a trail shows.
pub const FOUND_CHARS_MAX: usize = 80;

impl Condition {
    /// Returns the condition that always holds.
    pub fn always() -> Condition {
        Condition::default()
    }

    /// Says whether it holds for every input.
    pub fn is_always(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Says whether all clauses hold.
    pub fn holds(&self, input: &impl ConditionInput) -> bool {
        self.clauses.iter().all(|clause| clause.holds(input))
    }

    /// Says whether it can hold only where the attempt at the node that is left did not pass (DOT ruling 2).
    ///
    /// Conditions are conjunctions, so one clause that requires the failure suffices. Labels, custom outcomes and context
    /// values never do: a worker writes them. `expected` returns the exit code of a pass of the node that is left (`None`) or
    /// of a node that a clause names; nothing where that node's failure is not the one in question.
    pub fn names_failure(&self, expected: &dyn Fn(Option<&str>) -> Option<Option<u8>>) -> bool {
        self.clauses.iter().any(|clause| clause.names_failure(expected))
    }

    /// Says how each clause was weighed, for `planctl why`.
    pub fn trail(&self, input: &impl ConditionInput) -> Trail {
        let clauses: Vec<Weighed> = self.clauses.iter().map(|clause| clause.weigh(input)).collect();
        Trail { holds: clauses.iter().all(|clause| clause.holds), clauses }
    }
}

impl Clause {
    /// Says whether it holds.
    pub fn holds(&self, input: &impl ConditionInput) -> bool {
        self.is_met_by(self.found(input).as_deref().unwrap_or_default())
    }

    fn weigh(&self, input: &impl ConditionInput) -> Weighed {
        let found = self.found(input);
        let holds = self.is_met_by(found.as_deref().unwrap_or_default());
        Weighed { clause: self.to_string(), found: found.as_deref().map(shortened), holds }
    }

    fn is_met_by(&self, found: &str) -> bool {
        match &self.test {
            Test::Is(value) => found == value,
            Test::IsNot(value) => found != value,
            Test::Truthy => !matches!(found, "" | "0" | "false"),
        }
    }

    fn found<'k>(&self, input: &'k impl ConditionInput) -> Option<Cow<'k, str>> {
        match &self.key {
            Key::Outcome if self.asks_for_label() => Some(Cow::Borrowed(input.preferred_label())),
            Key::Outcome => Some(Cow::Borrowed(input.outcome())),
            Key::PreferredLabel => Some(Cow::Borrowed(input.preferred_label())),
            Key::Context(name) => input.context(&format!("context.{name}")).or_else(|| input.context(name)),
            Key::Variable(name) => input.context(name),
            Key::Step { node, field } => input.step(node, *field),
        }
    }

    fn names_failure(&self, expected: &dyn Fn(Option<&str>) -> Option<Option<u8>>) -> bool {
        let fails_on_pass = || !self.is_met_by(SUCCESS);
        let fails_on_exit = |code: Option<u8>| code.is_some_and(|code| !self.is_met_by(&code.to_string()));
        match &self.key {
            Key::Outcome => !self.asks_for_label() && fails_on_pass(),
            Key::Context(name) | Key::Variable(name) => match name.as_str() {
                "outcome" => fails_on_pass(),
                "exit_code" => expected(None).is_some_and(fails_on_exit),
                _ => false,
            },
            Key::Step { node, field: StepField::Outcome } => {
                expected(Some(node)).is_some() && fails_on_pass()
            }
            Key::Step { node, field: StepField::ExitCode } => expected(Some(node)).is_some_and(fails_on_exit),
            Key::PreferredLabel
            | Key::Step { field: StepField::Output | StepField::Label | StepField::Attempts, .. } => false,
        }
    }

    /// Says whether it compares the outcome with a word that is no status, and so asks for the label (C8).
    pub fn asks_for_label(&self) -> bool {
        match (&self.key, &self.test) {
            (Key::Outcome, Test::Is(value) | Test::IsNot(value)) => !STATUS_WORDS.contains(&value.as_str()),
            (Key::Outcome, Test::Truthy) => false,
            (Key::PreferredLabel | Key::Context(_) | Key::Variable(_) | Key::Step { .. }, _) => false,
        }
    }
}

impl StepField {
    /// Returns the word as authors write it.
    pub fn as_str(self) -> &'static str {
        match self {
            StepField::Outcome => "outcome",
            StepField::ExitCode => "exit_code",
            StepField::Output => "output",
            StepField::Label => "label",
            StepField::Attempts => "attempts",
        }
    }

    /// All fields, in the order that people are told them.
    pub const ALL: [StepField; 5] =
        [StepField::Outcome, StepField::ExitCode, StepField::Output, StepField::Label, StepField::Attempts];
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(FOUND_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_owned(),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, clause) in self.clauses.iter().enumerate() {
            if at > 0 {
                f.write_str(" && ")?;
            }
            clause.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::Is(value) => write!(f, "{}={}", self.key, Literal(value)),
            Test::IsNot(value) => write!(f, "{}!={}", self.key, Literal(value)),
            Test::Truthy => self.key.fmt(f),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Outcome => f.write_str("outcome"),
            Key::PreferredLabel => f.write_str("preferred_label"),
            Key::Context(name) => write!(f, "context.{name}"),
            Key::Variable(name) => f.write_str(name),
            Key::Step { node, field } => write!(f, "steps.{node}.{}", field.as_str()),
        }
    }
}

// A value as it can be read again: bare where it is one word, else quoted (C4).
struct Literal<'a>(&'a str);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        if !self.0.is_empty() && self.0.chars().all(is_bare) {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Default)]
    struct TestInput {
        outcome: &'static str,
        label: &'static str,
        context: BTreeMap<&'static str, &'static str>,
        exit_code: Option<&'static str>,
    }

    impl ConditionInput for TestInput {
        fn outcome(&self) -> &str {
            self.outcome
        }

        fn preferred_label(&self) -> &str {
            self.label
        }

        fn context(&self, name: &str) -> Option<Cow<'_, str>> {
            self.context.get(name).map(|value| Cow::Borrowed(*value))
        }

        fn step(&self, node: &str, field: StepField) -> Option<Cow<'_, str>> {
            self.exit_code
                .filter(|_| node == "4" && field == StepField::ExitCode)
                .map(|code| Cow::Owned(code.to_owned()))
        }
    }

    fn condition(clauses: impl IntoIterator<Item = (Key, Test)>) -> Condition {
        Condition { clauses: clauses.into_iter().map(|(key, test)| Clause { key, test }).collect() }
    }

    fn is(value: &str) -> Test {
        Test::Is(value.to_owned())
    }

    fn is_not(value: &str) -> Test {
        Test::IsNot(value.to_owned())
    }

    fn context(name: &str) -> Key {
        Key::Context(name.to_owned())
    }

    #[test]
    fn c1_all_clauses_must_hold_exactly_and_none_always_do() {
        let input = TestInput { outcome: "success", label: "Ship it", ..TestInput::default() };
        assert!(Condition::always().holds(&input));
        assert!(condition([(Key::Outcome, is("success"))]).holds(&input));
        assert!(!condition([(Key::PreferredLabel, is("ship it"))]).holds(&input));
        let both = [(Key::Outcome, is("success")), (Key::PreferredLabel, is_not("Ship it"))];
        assert!(!condition(both).holds(&input));
    }

    #[test]
    fn c2_context_is_looked_up_with_its_prefix_first() {
        let context_of = |pairs: &[(&'static str, &'static str)]| TestInput {
            context: pairs.iter().copied().collect(),
            ..TestInput::default()
        };
        let asks = condition([(context("a.b"), is("1"))]);
        assert!(asks.holds(&context_of(&[("a.b", "1")])));
        assert!(asks.holds(&context_of(&[("context.a.b", "1"), ("a.b", "2")])));
        assert!(!asks.holds(&context_of(&[("context.a.b", "2"), ("a.b", "1")])));
        let bare = condition([(Key::Variable("x".to_owned()), is("1"))]);
        assert!(!bare.holds(&context_of(&[("context.x", "1")])));
    }

    #[test]
    fn c3_a_missing_value_is_empty_and_so_differs() {
        let input = TestInput::default();
        assert!(condition([(context("x"), is_not("foo"))]).holds(&input));
        assert!(condition([(context("x"), is(""))]).holds(&input));
        assert!(!condition([(context("x"), is("foo"))]).holds(&input));
    }

    #[test]
    fn c5_empty_zero_and_false_are_no_truth() {
        for (value, holds) in [("", false), ("0", false), ("false", false), ("no", true), ("00", true)] {
            let input = TestInput { context: BTreeMap::from([("x", value)]), ..TestInput::default() };
            assert_eq!(condition([(context("x"), Test::Truthy)]).holds(&input), holds, "{value}");
        }
        assert!(!condition([(context("y"), Test::Truthy)]).holds(&TestInput::default()));
    }

    #[test]
    fn c8_an_outcome_that_is_no_status_asks_for_the_label() {
        let input = TestInput { outcome: "success", label: "needs_dod", ..TestInput::default() };
        assert!(condition([(Key::Outcome, is("needs_dod"))]).holds(&input));
        assert!(!condition([(Key::Outcome, is_not("needs_dod"))]).holds(&input));
        assert!(condition([(Key::Outcome, is("success"))]).holds(&input));
        let passed = TestInput { outcome: "success", ..TestInput::default() };
        assert!(!condition([(Key::Outcome, is("needs_dod"))]).holds(&passed));
        assert!(!condition([(Key::Outcome, is("fail"))]).holds(&TestInput {
            outcome: "success",
            label: "fail",
            ..TestInput::default()
        }));
    }

    #[test]
    fn e15_the_trail_says_what_was_found_for_every_clause() {
        let input = TestInput { outcome: "fail", exit_code: Some("2"), ..TestInput::default() };
        let step = Key::Step { node: "4".to_owned(), field: StepField::ExitCode };
        let asks =
            condition([(Key::Outcome, is("success")), (step, is_not("2")), (context("x"), is_not("a b"))]);
        let trail = asks.trail(&input);
        assert!(!trail.holds);
        let shown: Vec<_> = trail
            .clauses
            .iter()
            .map(|clause| (clause.clause.as_str(), clause.found.as_deref(), clause.holds))
            .collect();
        assert_eq!(
            shown,
            [
                ("outcome=success", Some("fail"), false),
                ("steps.4.exit_code!=2", Some("2"), false),
                ("context.x!=\"a b\"", None, true),
            ]
        );
    }

    #[test]
    fn a_trail_shows_the_beginning_of_a_long_value() {
        let label: &'static str = Box::leak("é".repeat(1_000).into_boxed_str());
        let trail =
            condition([(Key::PreferredLabel, is("x"))]).trail(&TestInput { label, ..TestInput::default() });
        let found = trail.clauses[0].found.as_deref().unwrap_or_default();
        assert_eq!(found.chars().count(), FOUND_CHARS_MAX + 1);
    }

    #[test]
    fn a_condition_is_stored_and_read_again() {
        let step = Key::Step { node: "build".to_owned(), field: StepField::Output };
        let asks = condition([
            (Key::Outcome, is("success")),
            (Key::PreferredLabel, is_not("a \"quoted\"\n\tword \\")),
            (context("a.b"), Test::Truthy),
            (Key::Variable("x".to_owned()), is("")),
            (step, is("1")),
        ]);
        let stored = serde_json::to_string(&asks).expect("a condition can be stored");
        assert_eq!(serde_json::from_str::<Condition>(&stored).expect("and read"), asks);
        assert_eq!(
            asks.to_string(),
            "outcome=success && preferred_label!=\"a \\\"quoted\\\"\\n\\tword \\\\\" && context.a.b && x=\"\" && \
             steps.build.output=1"
        );
    }
}
