//! One code with its examples and their surroundings.

use std::collections::BTreeMap;

use planctl_lang::workflow::{Language, check};
use planctl_lang::{
    Code, Example, Explanation, Facts, Levels, Source, Verification, render_all, unescape, verify,
};
use serde::Deserialize;

use crate::forms::Form;
use crate::place::Place;
use crate::verified::Verified;

/// The roles of a place whose example says nothing else.
pub const CONFIG: &str = "[roles.coder]\ntimeout = \"10m\"\n\n[roles.reviewer]\ntimeout = \"10m\"\n";

pub struct Case {
    pub code: Code,
    pub explained: Explanation,
    pub tested: Tested,
}

/// The section `Tested` of an explanation.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tested {
    /// A part of the wrong example that stands there once, with `⟦` and `⟧` around what the finding marks.
    pub marks: String,
    /// Codes that the wrong example can't do without.
    pub also: Vec<String>,
    /// Says that the wrong example is only noted: `plan verify` can't see its fault.
    pub noted: bool,
    /// Codes that the fix leaves to a person.
    pub left: Vec<String>,
    /// More words for `plan verify`.
    pub flags: Vec<String>,
    /// The text of planctl.toml.
    pub config: Option<String>,
    /// Says that a person trusts planctl.toml, so that its agents count.
    pub trusted: bool,
    /// The files beside the plan.
    pub files: BTreeMap<String, Beside>,
    /// Says that what is true around the plan matters, though nothing is there beside it.
    pub real: bool,
    /// Forms that the example can't have.
    pub without: Vec<String>,
    /// The differences of the right example.
    pub good: Good,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Good {
    pub flags: Option<Vec<String>>,
    pub config: Option<String>,
}

/// The entry at a path.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Beside {
    Text(String),
    Bytes { bytes: usize },
}

impl Case {
    pub fn of(code: Code) -> Case {
        let explained = code.explain();
        let tested = toml::from_str(explained.tested).unwrap_or_else(|error| panic!("{code}: {error}"));
        Case { code, explained, tested }
    }

    pub fn bad(&self) -> Example {
        self.explained.bad.unwrap_or_else(|| panic!("{} has no wrong example", self.code))
    }

    pub fn good(&self) -> Example {
        self.explained.good.unwrap_or_else(|| panic!("{} has no right example", self.code))
    }

    pub fn bad_bytes(&self) -> Vec<u8> {
        self.bad().bytes()
    }

    /// The marked part, decoded.
    pub fn marks(&self) -> Vec<u8> {
        assert!(self.tested.marks.contains('⟦'), "{} does not say what it marks", self.code);
        unescape(&self.tested.marks)
    }

    pub fn verify_bad(&self) -> Verified {
        self.verify_bytes(&self.bad_bytes())
    }

    /// Returns the language of the examples, where they are no markdown and nothing around them matters.
    fn graph(&self) -> Option<Language> {
        Language::of(self.bad().file()).filter(|_| !self.tested.is_real())
    }

    /// Draws what is found in the wrong example, where it is a graph.
    pub fn drawn_graph(&self) -> Option<String> {
        let language = self.graph()?;
        let text = String::from_utf8(self.bad_bytes()).unwrap();
        let source = Source::new(self.bad().file(), text);
        Some(render_all(&check(&source, language).1, &source, false))
    }

    pub fn verify_good(&self) -> Verified {
        let mut tested = self.tested.clone();
        tested.flags = tested.good.flags.take().unwrap_or(tested.flags);
        tested.config = tested.good.config.take().or(tested.config);
        let bytes = self.good().bytes();
        match self.graph() {
            Some(language) => graph_verified(&bytes, self.good().file(), language),
            None => verified(&tested, &bytes, self.good().file(), str::to_owned),
        }
    }

    pub fn verify_bytes(&self, bytes: &[u8]) -> Verified {
        match self.graph() {
            Some(language) => graph_verified(bytes, self.bad().file(), language),
            None => verified(&self.tested, bytes, self.bad().file(), str::to_owned),
        }
    }

    pub fn verify_form(&self, form: &Form) -> Verified {
        match self.graph() {
            Some(language) => graph_verified(&form.bytes, self.bad().file(), language),
            None => verified(&self.tested, &form.bytes, self.bad().file(), form.path),
        }
    }
}

impl Tested {
    fn is_real(&self) -> bool {
        self.real || self.config.is_some() || !self.flags.is_empty() || !self.files.is_empty()
    }

    /// Makes the place that the plan is in, under this name; paths are as the plan's form writes them.
    pub fn place(&self, plan: &[u8], file: &str, path: fn(&str) -> String) -> Place {
        let place = Place::new();
        let config = self.config.as_deref().unwrap_or(CONFIG);
        if !config.is_empty() {
            place.write("planctl.toml", config.as_bytes());
        }
        for (name, beside) in &self.files {
            let name = path(&String::from_utf8(unescape(name)).unwrap());
            match beside {
                Beside::Text(text) => place.write(&name, text.as_bytes()),
                Beside::Bytes { bytes } => place.write(&name, &vec![b'x'; *bytes]),
            }
        }
        place.write(file, plan);
        if self.trusted {
            assert_eq!(place.planctl(&["trust", "."]).code, 0);
        }
        place
    }

    pub fn words<'a>(&'a self, file: &'a str) -> Vec<&'a str> {
        let flags = self.flags.iter().map(String::as_str);
        ["plan", "verify"].into_iter().chain(flags).chain([file]).collect()
    }
}

fn graph_verified(bytes: &[u8], file: &str, language: Language) -> Verified {
    let source = Source::new(file, String::from_utf8(bytes.to_vec()).unwrap());
    let found = check(&source, language).1;
    let is_verified = found.iter().all(|finding| !finding.is_error());
    Verified::found(&found, &source, is_verified)
}

// Where nothing around the plan matters, the language alone can say what is found.
fn verified(tested: &Tested, bytes: &[u8], file: &str, path: fn(&str) -> String) -> Verified {
    if tested.is_real() {
        let place = tested.place(bytes, file, path);
        let mut words = tested.words(file);
        words.push("--json");
        return Verified::told(bytes, &place.planctl(&words));
    }
    let facts = Facts { roles: Some(vec!["coder".into(), "reviewer".into()]), ..Facts::default() };
    match Source::from_bytes("plan.md", bytes.to_vec()) {
        Ok(source) => Verified::judged(&verify(&source, &facts, &Levels::default()), &source),
        Err(unreadable) => Verified::judged(&Verification::unreadable(&unreadable), &unreadable.source),
    }
}
