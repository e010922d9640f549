//! A finding: its stable code, its level, where it stands, and how to mend it.

pub(crate) mod explain;
pub(crate) mod levels;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::text::Span;
pub(crate) use crate::text::characters::printable;
use crate::text::characters::{escape, hidden};
use crate::text::near::{Nearest, ask_or_say};
use crate::text::secrets::masked;

macro_rules! codes {
    ($($code:ident $level:ident $title:literal,)*) => {
        /// The stable code of a kind of finding (INTERFACE 2.5).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize)]
        pub enum Code { $(#[doc = $title] $code,)* }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// Returns the code as it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$code => stringify!($code),)* }
            }

            /// Returns what findings of this code are about.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => $title,)* }
            }

            /// Returns the code of this name, in any case.
            pub fn from_word(name: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(name))
            }

            /// Returns the text of the code's file in `explain/`.
            pub(crate) fn explanation(self) -> &'static str {
                match self {
                    $(Code::$code => include_str!(concat!("../explain/", stringify!($code), ".md")),)*
                }
            }

            /// Says that findings of this code depend on what is in the workspace and on the machine, so that they may
            /// come and go while the plan's text stays.
            pub fn is_of_the_surroundings(self) -> bool {
                matches!(self, Code::P102 | Code::P118 | Code::P123 | Code::P124 | Code::P201 | Code::P207 | Code::P211 | Code::P214 | Code::P215 | Code::P216)
            }

            /// Returns the level of a finding that says nothing else.
            pub fn default_level(self) -> Severity {
                match self { $(Code::$code => Severity::$level,)* }
            }
        }
    };
}

codes! {
    P001 Error "the frontmatter is missing or can't be read",
    P002 Warning "a frontmatter key or status is unknown",
    P003 Error "the file can't be read as text",
    P004 Error "a control, invisible or look-alike character",
    P005 Warning "the form differs from the one planctl writes",
    P006 Warning "a mark or status that the file can't decide",
    P007 Error "the title, the steps section or the steps are missing",
    P008 Error "a limit is exceeded",
    P009 Error "a required field is missing, empty, or given twice",
    P010 Error "a step has no contract",
    P011 Error "a code fence is not closed, or not where one is expected",
    P012 Error "a step heading is a template, not a number",
    P013 Error "a step number is used twice",
    P014 Warning "step numbers have a gap",
    P015 Error "a field or its value can't be understood",
    P016 Warning "what follows the last attempt is left to a default",
    P017 Error "a field is not supported yet",
    P018 Warning "the plan allows a finding that it can't, or that is not there",
    P020 Note "a default applies",
    P101 Error "the contract is not valid bash",
    P102 Error "a command is not on the PATH",
    P103 Warning "the contract passes before any work is done",
    P104 Warning "the contract can't fail",
    P105 Warning "the contract changes the workspace",
    P106 Warning "the contract's result differs between two runs",
    P107 Warning "the contract takes most of its time",
    P108 Warning "the step may edit what its own contract reads",
    P109 Warning "the contract could not be checked",
    P110 Warning "a failure in the contract does not count",
    P111 Warning "the contract waits for a person",
    P112 Warning "the contract writes outside the workspace",
    P113 Warning "the contract can't pass",
    P114 Warning "the contract leaves a process behind",
    P116 Note "a contract was not tried",
    P117 Warning "a guard's contract fails before any work is done",
    P118 Error "the contract wants a protected file to change",
    P119 Warning "it is not said whether a file that decides the contract may be changed",
    P120 Warning "nothing that decides the contract is protected",
    P121 Warning "which file the contract runs can't be told from its text",
    P122 Warning "a question of the draft is open",
    P123 Error "a judge is a step's only check",
    P124 Error "a step's judge can't be asked",
    P201 Error "a subscribed file is not there and no step before makes it",
    P202 Warning "a glob matches nothing",
    P203 Error "a subscribed file is made by a later step only",
    P204 Error "steps depend on each other in a circle",
    P205 Error "a path leaves the workspace",
    P206 Error "a subscription is of an unknown kind, or names nothing",
    P207 Error "a subscription names something that is not a file",
    P208 Warning "a subscribed file is larger than what a prompt takes",
    P209 Warning "a subscription is given twice",
    P210 Warning "a topic is unknown",
    P211 Error "a path is written in another Unicode form than the file's name",
    P212 Warning "a step names a file that only a later step makes",
    P213 Warning "the folder of a sub-plan is missing, or is not a folder",
    P214 Error "the plan that a sub-plan carries out is missing, or is not a plan",
    P215 Error "a call names something that is not there, or gives a tool arguments that do not fit",
    P216 Warning "the plan that is to follow is not there",
    P301 Error "the steps do not make a graph",
    P302 Error "the text of a graph can't be read",
    P303 Error "a condition can't be read",
    P304 Error "an edge, a target or a condition names no node",
    P305 Error "nothing leads to a node",
    P306 Error "a graph has no start, no exit, or more than one",
    P307 Error "no path leads from a node to an end",
    P308 Error "an edge that its node can't have",
    P309 Warning "nothing bounds a loop",
    P310 Warning "a run may find no path to follow from a node",
    P311 Warning "several edges leave a node at once",
    P312 Warning "a goal gate can be passed by, or leads nowhere",
    P313 Warning "a condition asks for what nothing writes",
    P314 Warning "an attribute, a shape or a type that planctl does not know or follow",
    P315 Error "branches that can't meet",
    P316 Warning "two steps that may run at once touch one file",
    P317 Warning "an edge for an outcome that its node never has",
    P318 Warning "a fork and its join disagree about how many branches are waited for",
    P319 Warning "a fork speaks of a join that it does not have",
    P320 Warning "two options of a question have one key",
    P321 Warning "a decision says how work is done, and does none",
    P401 Error "planctl.toml does not have the role",
    P402 Warning "no roles are configured",
    P403 Error "a role has characters that roles can't have",
    P404 Error "a contract does what its role is denied",
    P501 Warning "the budget is absurd for the number of steps",
    P502 Warning "a money cap can't be enforced",
    P503 Error "the budget can't be understood",
    P601 Warning "the contract needs the network",
    P602 Warning "the contract runs a destructive command",
    P603 Note "the plan lies outside the workspace",
    P604 Warning "the plan holds what looks like a credential",
}

/// The codes that no plan allows, since a person relies on them who approves what somebody else wrote.
const GUARDS: &[(&[Code], &str)] = {
    use Code::*;
    &[
        (&[P004, P006, P604], "what a person reads may not be what is there"),
        (&[P018], "it is about what the plan allows"),
        (&[P103, P104, P312], "a step would pass that proves nothing"),
        (&[P108, P118, P119, P120, P121], "a worker may change what judges it"),
        (&[P109], "planctl could not look at the contract"),
        (&[P122], "a question waits for an answer"),
        (&[P123, P124], "a judge would stand alone"),
        (&[P404, P502], "a limit that a person has set would not hold"),
    ]
};

impl Code {
    /// Returns why no plan may allow findings of this code; nothing where it may.
    pub fn guards(self) -> Option<&'static str> {
        GUARDS.iter().find(|(codes, _)| codes.contains(&self)).map(|(_, why)| *why)
    }

    /// Says that a plan may allow findings of this code, with a reason.
    pub fn may_be_allowed(self) -> bool {
        self.default_level() != Severity::Error && self.guards().is_none()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a finding weighs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The plan is not verified.
    Error,
    /// The plan is verified, but a person should look.
    Warning,
    /// Something worth knowing.
    Note,
}

/// A place that a finding points to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// The note on the place; may be empty.
    pub text: String,
}

/// One replacement of text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edit {
    /// The text to replace; empty where text is inserted.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// How a finding can be mended by replacing text; its edits do not overlap and only make sense together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// The replacements, in the order of the text.
    pub edits: Vec<Edit>,
    /// Says that the meaning stays the same, so that no person needs to look.
    pub safe: bool,
}

impl Fix {
    /// Says what to write, where that is one short text.
    pub fn in_words(&self) -> Option<String> {
        const BYTES_MAX: usize = 60;
        let [Edit { replacement, .. }] = self.edits.as_slice() else { return None };
        let text = masked(replacement.trim());
        let is_short = text.len() <= BYTES_MAX && !text.contains(['\n', '`']);
        match text.is_empty() {
            true => Some("take it out".to_owned()),
            false => is_short.then(|| format!("write `{}`", escape(&text))),
        }
    }
}

/// The step a finding is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepName {
    /// Its number, or its template as written.
    pub number: String,
    /// Its title.
    pub title: String,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The code of the finding.
    pub code: Code,
    /// How much it weighs.
    pub level: Severity,
    /// The problem, in one line.
    pub message: String,
    /// Where, the primary place first.
    pub spans: Vec<Label>,
    /// The step it is about.
    pub step: Option<StepName>,
    /// Further notes.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
    /// The one line that mends every finding of this kind in the file; people read it where there are several.
    pub mends_all: Option<String>,
    /// How text can be replaced to mend it.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// Makes a finding at the code's own level.
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            level: code.default_level(),
            message: message.into(),
            spans: Vec::new(),
            step: None,
            notes: Vec::new(),
            help: None,
            mends_all: None,
            fix: None,
        }
    }

    /// Adds a place; the first one added is the primary.
    #[must_use]
    pub fn at(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.spans.push(Label { span, text: label.into() });
        self
    }

    /// Replaces the code's own level.
    #[must_use]
    pub fn level(mut self, level: Severity) -> Diagnostic {
        self.level = level;
        self
    }

    /// Names the step.
    #[must_use]
    pub fn step(mut self, step: StepName) -> Diagnostic {
        self.step = Some(step);
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Asks whether the nearest known word was meant, which is written at a place; helps otherwise where none is near.
    #[must_use]
    pub(crate) fn near(
        self,
        near: Option<Nearest<'_>>,
        at: Span,
        written: impl Fn(&str) -> String,
        otherwise: impl Into<String>,
    ) -> Diagnostic {
        let helped = self.help(ask_or_say(near.map(|near| near.word), otherwise));
        match near {
            Some(near) => helped.fix(at, written(near.word), near.is_only),
            None => helped,
        }
    }

    /// Says which one line mends every finding of this kind in the file.
    #[must_use]
    pub fn fix_all_with(mut self, line: impl Into<String>) -> Diagnostic {
        self.mends_all = Some(line.into());
        self
    }

    /// Says which replacement mends it; more than one where they only make sense together.
    #[must_use]
    pub fn fix(mut self, span: Span, replacement: impl Into<String>, safe: bool) -> Diagnostic {
        let fix = self.fix.get_or_insert(Fix { edits: Vec::new(), safe });
        fix.edits.push(Edit { span, replacement: replacement.into() });
        fix.edits.sort();
        fix.safe &= safe;
        self
    }

    /// Escapes every hidden character in its texts, masks what looks like a credential, and drops a replacement that would write one anew.
    pub(crate) fn make_printable(&mut self) {
        let labels = self.spans.iter_mut().map(|label| &mut label.text);
        let texts = labels
            .chain(&mut self.notes)
            .chain(&mut self.help)
            .chain(&mut self.mends_all)
            .chain([&mut self.message]);
        let needs_it = |text: &&mut String| {
            !text.is_ascii()
                || text.contains(char::is_control)
                || !crate::text::secrets::secrets(text).is_empty()
        };
        for text in texts.filter(needs_it) {
            *text = printable(text);
        }
        if let Some(step) = &mut self.step {
            step.title = printable(&step.title);
            step.number = printable(&step.number);
        }
        self.fix.take_if(|fix| fix.edits.iter().any(|edit| hidden(&edit.replacement).next().is_some()));
    }

    /// Says whether the plan can't be verified because of it.
    pub fn is_error(&self) -> bool {
        self.level == Severity::Error
    }
}

/// Returns the nearest of the known words to what was found, where one is near enough to be meant.
pub fn did_you_mean<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    crate::text::near::nearest(found, known).map(|nearest| nearest.word)
}
