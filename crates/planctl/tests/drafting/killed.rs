//! A draft whose planctl is killed before each thing that it writes or sends: the same command goes on, and all ends as if it never had been.

use std::path::Path;
use std::process::Command;

use planctl_server::testing::TestDatabase;
use serde_json::{Value, json};

use super::home::{GOAL, Home, app, good};
use super::service::{Call, Form, Reply, Service};
use super::traced::{End, killed_before};

const WORDS: [&str; 8] =
    ["plan", "draft", GOAL, "--model", "writer", "--reviewer", "reader", "--out=plans/app.md"];

/// The tokens of an answer of the services.
const TOKENS: u64 = 1200;

/// A life of a draft: a first answer with an error, a second one with a question, the person's answer, a third one, and a review
/// of each that the rules let pass.
struct Life {
    home: Home,
    writer: Service,
    reader: Service,
    url: String,
}

/// The traces of a life.
#[derive(PartialEq, Debug)]
struct Left {
    plan: String,
    view: Value,
    prompts: usize,
}

impl Life {
    fn new(database: &TestDatabase) -> Life {
        let home = app();
        let writer = Service::answering(Form::Messages, |call| Some(Reply::Structured(written(call))));
        let reader = Service::answering(Form::Chat, |_| {
            Some(Reply::Structured(json!({ "verdict": "ok", "findings": [] })))
        });
        home.models(&[("writer", &writer), ("reader", &reader)]);
        Life { home, writer, reader, url: database.url() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_planctl"));
        command.args(words).env("PLANCTL_DATABASE_URL", &self.url);
        command
    }

    fn json(&self, words: &[&str], code: i32) -> Value {
        let output = self.command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Drafts to the question, has it answered, and drafts to the end; planctl is killed once, before this deed of all that it does.
    /// Returns how many deeds the two commands did, where it was not killed.
    fn live(&self, deed: usize) -> Option<usize> {
        let (mut left, mut all) = (deed, 0);
        for code in [3, 0] {
            match killed_before(left, self.command(&WORDS)) {
                End::Itself { code: own, deeds } => {
                    assert_eq!(own, code, "deed {deed}");
                    all += deeds;
                    left = left.saturating_sub(deeds);
                }
                End::Killed => {
                    left = 0;
                    let output = self.command(&WORDS).output().unwrap();
                    assert_eq!(output.status.code(), Some(code), "deed {deed}: {output:?}");
                }
            }
            if code == 3 {
                let asks = self.json(&["approvals", "--json"], 0);
                let own: Vec<&Value> = asks["asks"].as_array().unwrap().iter().collect();
                assert_eq!(own.len(), 1, "deed {deed}: no question is asked twice: {asks:#}");
                let ask = own[0]["id"].to_string();
                let answered = self.command(&["approvals", "answer", &ask, "--note", "all of them"]).output();
                assert!(answered.unwrap().status.success(), "deed {deed}");
            }
        }
        (left > 0).then_some(all)
    }

    /// Looks at what is left, as people and the next command see it.
    fn left(&self) -> Left {
        // Nobody is asked for what was answered.
        let before = self.calls();
        let mut view = self.json(&[&WORDS[..], &["--json"]].concat(), 0);
        assert_eq!(self.calls(), before);
        view["estimate"] = Value::Null;
        let mut prompts: Vec<String> =
            self.writer.calls().iter().chain(&self.reader.calls()).map(Call::prompt).collect();
        prompts.sort();
        prompts.dedup();
        for folder in ["work/plans", "state/drafts"] {
            assert_eq!(unfinished(&self.home.path(folder)), Vec::<String>::new());
        }
        let asks = self.json(&["approvals", "--json"], 0);
        assert_eq!(asks["asks"], json!([]), "nothing waits");
        Left { plan: self.home.read("plans/app.md"), view, prompts: prompts.len() }
    }

    fn calls(&self) -> usize {
        self.writer.calls().len() + self.reader.calls().len()
    }
}

/// Returns the tokens that a draft counts.
fn tokens(view: &Value) -> u64 {
    let spent = &view["spent"];
    spent["input_tokens"].as_u64().unwrap() + spent["output_tokens"].as_u64().unwrap()
}

/// Answers by what the writer was told, so that a prompt which is sent again gets the same answer.
fn written(call: &Call) -> Value {
    let prompt = call.prompt();
    let mut value = good();
    if prompt.contains("Answer: all of them") {
        return value;
    }
    value["questions"] = json!([{ "text": "Which fields?", "options": [] }]);
    if !prompt.contains("R2 has no contract") {
        value["requirements"] = json!([]);
    }
    value
}

/// Names of files that only a process which writes has.
fn unfinished(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => found.extend(unfinished(&entry.path())),
            false if name.starts_with('.') => found.push(name),
            false => {}
        }
    }
    found
}

/// Lives once for each of these deeds, and compares what is left with a life that nobody disturbed.
fn killed_at(every: impl Fn(usize) -> Vec<usize>) {
    let database = TestDatabase::migrated();
    let straight = Life::new(&database);
    let deeds = straight.live(usize::MAX).unwrap();
    let (left, calls) = (straight.left(), straight.calls());
    assert_eq!((&left.view["spent"]["answers"], left.prompts, calls), (&json!(5), 5, 5), "{left:#?}");
    for deed in every(deeds) {
        let life = Life::new(&database);
        if life.live(deed).is_some() {
            continue;
        }
        let (mut own, sent) = (life.left(), life.calls());
        // A call that was under way when planctl was killed is made again and counts, and nothing else.
        let lost = own.view["spent"]["lost"].as_u64().unwrap();
        assert!(lost <= 1 && sent as u64 <= calls as u64 + lost, "deed {deed} of {deeds}: {sent} calls");
        assert!(tokens(&own.view) >= sent as u64 * TOKENS, "deed {deed} of {deeds}: {:#}", own.view["spent"]);
        assert_eq!(own.view["spent"]["answers"], left.view["spent"]["answers"], "deed {deed} of {deeds}");
        own.view["spent"] = left.view["spent"].clone();
        assert_eq!(own, left, "deed {deed} of {deeds}");
    }
}

#[test]
fn m_13_a_draft_killed_at_some_of_its_deeds_ends_as_if_never_killed() {
    killed_at(|deeds| (1..=8).map(|part| deeds * part / 8 - deeds / 16).collect());
}

/// `PLANCTL_DEEDS=100..200` tries these alone.
#[test]
#[ignore = "some minutes; just nightly"]
fn m_13_a_draft_killed_at_each_of_its_deeds_ends_as_if_never_killed() {
    let some = std::env::var("PLANCTL_DEEDS").ok().map(|text| {
        let (from, to) = text.split_once("..").unwrap();
        from.parse::<usize>().unwrap()..to.parse().unwrap()
    });
    killed_at(|deeds| {
        println!("{deeds} deeds");
        let is_asked = |deed: &usize| some.as_ref().is_none_or(|some| some.contains(deed));
        (1..=deeds).filter(is_asked).collect()
    });
}
