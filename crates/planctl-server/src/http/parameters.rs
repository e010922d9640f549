//! The parameters of routes, in path, query and head: the type of each, for the parser and for the OpenAPI document.

use planctl_store::RequestKey;
use planctl_view::Form;
use serde_json::{Value, json};

use planctl_api::wire::RunState;
use planctl_api::{Code, Problem};

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its meaning, in one line.
    pub summary: &'static str,
    /// Says that a query without it is refused.
    pub is_required: bool,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number within bounds.
    Whole {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// The key of a mutation.
    Key,
}

impl Parameter {
    const fn text(name: &'static str, summary: &'static str) -> Parameter {
        Parameter { name, kind: Kind::Text, summary, is_required: false }
    }

    const fn integer(name: &'static str, least: u64, most: u64, summary: &'static str) -> Parameter {
        Parameter { name, kind: Kind::Whole { least, most }, summary, is_required: false }
    }

    /// Says in a few words what it must be.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Text => self.summary.to_owned(),
            Kind::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Word(words) => words.join(", "),
            Kind::Key => format!("1 to {} visible ASCII characters", RequestKey::LENGTH_MAX),
        }
    }

    /// Reads a number within its bounds.
    pub(super) fn number<T: TryFrom<u64>>(&self, given: &str) -> Result<T, Problem> {
        let is_within = |number: &u64| match self.kind {
            Kind::Whole { least, most } => (least..=most).contains(number),
            Kind::Text | Kind::Word(_) | Kind::Key => true,
        };
        let read = given.parse().ok().filter(is_within).and_then(|number| T::try_from(number).ok());
        read.ok_or_else(|| {
            let (name, expected) = (self.name, self.expected());
            Problem::new(Code::BadRequest, format!("`{name}` must be {expected}, found {given:?}"))
        })
    }

    /// Refuses a word that is not one of its words.
    pub(super) fn refuse_other_word(&self, given: &str) -> Result<(), Problem> {
        match self.kind {
            Kind::Word(words) if !words.contains(&given) => {
                let (name, expected) = (self.name, self.expected());
                Err(Problem::new(Code::BadRequest, format!("`{name}` must be {expected}, found {given:?}")))
            }
            Kind::Text | Kind::Whole { .. } | Kind::Word(_) | Kind::Key => Ok(()),
        }
    }

    /// Returns its JSON Schema.
    pub fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Whole { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Key => {
                json!({ "type": "string", "maxLength": RequestKey::LENGTH_MAX, "pattern": "^[!-~]+$" })
            }
        }
    }
}

/// The most lines or notes in one answer.
pub(super) const LINES_MAX: usize = 1000;
/// How many entries a page of a list has where nothing is said.
pub(super) const ENTRIES_USUAL: i64 = 200;
/// The most entries in one page of a list.
pub(super) const ENTRIES_MAX: u64 = 500;
/// A place in a run's history or in a topic; neither gets that long.
const PLACE_MAX: u64 = u32::MAX as u64;

pub(super) const WORKSPACE: Parameter =
    Parameter::text("workspace", "the absolute path of a workspace on the daemon's host");
/// Of a route that answers for one workspace.
pub(super) const OF_WORKSPACE: Parameter = Parameter { is_required: true, ..WORKSPACE };
pub(super) const MESSAGE: Parameter =
    Parameter::text("message", "a sentence that may call for a plan of the library");
pub(super) const RUN: Parameter = Parameter::text(
    "run",
    "a run: its id, its name, the beginning of either, `@last`, or the path of a plan in `workspace`",
);
pub(super) const SINCE: Parameter = Parameter::integer(
    "since",
    0,
    PLACE_MAX,
    "the number after which to begin; the beginning where it is left out",
);
pub(super) const AT: Parameter = Parameter::text(
    "at",
    "the number of a step, or the name of a node; what is under way where it is left out",
);
pub(super) const FROM: Parameter = Parameter::integer(
    "from",
    1,
    PLACE_MAX,
    "the place of a step among all of the run; the first that is under way where it is left out",
);
pub(super) const LINES: Parameter = Parameter::integer(
    "limit",
    1,
    LINES_MAX as u64,
    "how many at most; as many as may be where it is left out",
);
pub(super) const LIMIT: Parameter =
    Parameter::integer("limit", 1, ENTRIES_MAX, "how many entries at most; 200 where it is left out");
pub(super) const CURSOR: Parameter =
    Parameter::text("cursor", "what the page before named as `next`; the first page where it is left out");
pub(super) const FAILED: Parameter = Parameter {
    name: "failed",
    kind: Kind::Word(&["true", "false"]),
    summary: "only those that failed, or fail; all where it is left out",
    is_required: false,
};
pub(super) const NEWEST: Parameter = Parameter::integer(
    "newest",
    1,
    LINES_MAX as u64,
    "so many of the newest, in place of those after `since`",
);
pub(super) const STEP: Parameter = Parameter::integer("step", 1, u32::MAX as u64, "the number of a step");
pub(super) const ATTEMPT: Parameter =
    Parameter::integer("attempt", 1, u16::MAX as u64, "the number of an attempt");
pub(super) const WAIT: Parameter = Parameter::integer(
    "wait",
    0,
    60,
    "how many seconds to wait for what is asked for; not at all where it is left out",
);
pub(super) const PLAN: Parameter =
    Parameter::text("plan", "the path of a plan, as runs have it; all where it is left out");
pub(super) const STATE: Parameter = Parameter {
    name: "state",
    kind: Kind::Word(&[
        RunState::AwaitingApproval.as_str(),
        RunState::Queued.as_str(),
        RunState::Running.as_str(),
        RunState::Waiting.as_str(),
        RunState::Paused.as_str(),
        RunState::Done.as_str(),
        RunState::Failed.as_str(),
        RunState::Cancelled.as_str(),
    ]),
    summary: "the state of a run; all where it is left out",
    is_required: false,
};
pub(super) const FORM: Parameter = Parameter {
    name: "form",
    kind: Kind::Word(&[Form::Long.as_str(), Form::Compact.as_str(), Form::Workflow.as_str()]),
    summary: "the form of the text; long where it is left out",
    is_required: false,
};
pub(super) const LAST_EVENT_ID: Parameter = Parameter::integer(
    "Last-Event-ID",
    0,
    PLACE_MAX,
    "the `id` of the last event that came; goes before `since`",
);
/// The key of a mutation.
pub(super) const KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    kind: Kind::Key,
    summary: "one of your own for each intent: repeated under it, the call is answered alike and done once",
    is_required: false,
};

/// The parameters of paths.
const OF_PATHS: &[Parameter] = &[
    RUN,
    Parameter::text("step", "a step: its number, or the name of any node"),
    Parameter::integer("ask", 0, i64::MAX as u64, "the number of an ask"),
    Parameter::text("draft", "the own key of a draft"),
    Parameter::text("drafting", "the id of a draft that the daemon writes, or wrote since it began"),
    Parameter::integer("delivery", 1, i64::MAX as u64, "the number of a delivery"),
    Parameter::text("item", "an item, as it was claimed"),
    Parameter::text("topic", "the name of a topic, its `/` written as `%2F`"),
    Parameter::text("worker", "the name of a worker"),
    Parameter::text("token", "the id of a token"),
    Parameter::text("plan", "a plan: its number, or its path in `workspace`, its `/` written as `%2F`"),
    Parameter::text("digest", "the digest of a revision, or the beginning of one"),
];

/// Returns the parameters of a path, in order.
pub(super) fn of_path(path: &str) -> impl Iterator<Item = &'static Parameter> + '_ {
    let names = path.split(['{', '}']).skip(1).step_by(2);
    names.map(|name| {
        let known = OF_PATHS.iter().find(|parameter| parameter.name == name);
        known.expect("every parameter of a path is listed")
    })
}
