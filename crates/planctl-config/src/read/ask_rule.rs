//! Reads `[asks.NAME]`.

use planctl_engine::AskKind;

use super::{Reader, Value, is_role};
use crate::ask_rule::{AskRule, OnDeadline, group_of};
use crate::layer::Layer;

const KEYS: [&str; 8] =
    ["kinds", "plans", "owners", "approvals", "of", "self_approval", "deadline", "on_deadline"];

impl Reader<'_> {
    pub(super) fn ask_rules(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "asks.NAME") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't name a rule"), Some(help));
                continue;
            }
            if !value.get_ref().is_table() {
                let help = format!("write [asks.{name}] with `approvals` or `deadline` below it");
                self.report(key.span(), "a rule for asks is a table with a name".to_owned(), Some(help));
                continue;
            }
            let before = self.findings.len();
            let rule = self.ask_rule(name, value);
            if before == self.findings.len() {
                match rule_trouble(&rule) {
                    Some((message, help)) => self.report(key.span(), message, Some(help.to_owned())),
                    None => drop(layer.asks.insert(name.to_owned(), rule)),
                }
            }
        }
    }

    pub(super) fn groups(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "groups") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't name a group"), Some(help));
                continue;
            }
            if let Some(people) = self.strings(value, "a list of people: [\"ann\", \"ben\"]") {
                layer.groups.insert(name.to_owned(), people.into_iter().collect());
            }
        }
    }

    fn ask_rule(&mut self, name: &str, value: &Value<'_>) -> AskRule {
        let mut rule = AskRule::default();
        for (key, value) in self.table(value, &format!("asks.{name}")) {
            match key.get_ref().as_ref() {
                "kinds" => {
                    let Some(array) = value.get_ref().as_array() else {
                        self.wrong_type(value, "a list of kinds of asks: [\"plan\", \"effect\"]");
                        continue;
                    };
                    let kinds = array.iter().filter_map(|kind| {
                        self.read_word(kind, "kinds", &AskKind::ALL, |kind| kind.as_str())
                    });
                    rule.kinds = Some(kinds.collect());
                }
                "plans" => rule.plans = self.plans(value),
                "owners" => {
                    rule.owners = self
                        .strings(value, "a list of owners: [\"ann\"]")
                        .map(|names| names.into_iter().collect());
                }
                "approvals" => rule.approvals = self.count(value).unwrap_or(1),
                "of" => {
                    rule.of = self
                        .strings(value, "a list of people: [\"ann\", \"ben\"]")
                        .map(|names| names.into_iter().collect());
                }
                "self_approval" => match value.get_ref().as_bool() {
                    Some(may) => rule.self_approval = may,
                    None => self.wrong_type(value, "true or false"),
                },
                "deadline" => rule.deadline = self.duration(value),
                "on_deadline" => {
                    let word =
                        self.read_word(value, "on_deadline", &OnDeadline::ALL, |answer| answer.as_str());
                    rule.on_deadline = word.unwrap_or_default();
                }
                other => self.unknown(key.span(), other, KEYS),
            }
        }
        rule
    }
}

/// Says why a rule can't be kept by anybody, or says nothing.
fn rule_trouble(rule: &AskRule) -> Option<(String, &'static str)> {
    // How many people a group has is known once all files are read.
    let named = rule.of.as_ref().filter(|of| of.iter().all(|name| group_of(name).is_none()));
    let people = named.map(|of| of.len() as u64);
    if let Some(people) = people.filter(|people| *people < rule.approvals) {
        let message = format!("the rule wants {} votes of {people} people", rule.approvals);
        return Some((message, "name as many people in `of` as have to agree"));
    }
    if rule.on_deadline != OnDeadline::Wait && rule.deadline.is_none() {
        return Some((
            "`on_deadline` needs a `deadline`".to_owned(),
            "say after how long: deadline = \"24h\"",
        ));
    }
    if !rule.wants_votes() && rule.deadline.is_none() {
        let help = "say how many have to agree (`approvals`), who (`of`), or by when (`deadline`)";
        return Some(("the rule demands nothing".to_owned(), help));
    }
    None
}
