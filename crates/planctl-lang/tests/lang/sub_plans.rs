//! Steps that carry out another plan: `**type:** sub-plan`, in markdown as in graphs.

use std::collections::BTreeMap;

use crate::walk::walk;
use planctl_engine::{ChildApproval, Outcome, SubPlan};
use planctl_lang::workflow::{Language, check, of_graph, to_graph, to_json, to_markdown};
use planctl_lang::{Code, Facts, Levels, Severity, Source, SubPlanFact, Verification, format, show, verify};

/// A plan of three steps, the second of which is another plan whose output the third takes.
const PLAN: &str = "\
---
type: plan
status: draft
owner: orchestrator
---

# Ship it

## Steps

### 1. Build

**type:** call

**contract:**
```shell
make build
```
exit_code == 0

### 2. Release

**type:** sub-plan
**plan:** plans/release.md
**folder:** services/api
**approval:** inherit

### 3. Tell everybody

**type:** call
**server:** chat
**tool:** post
**arguments:**
```json
{\"text\": \"${steps.2.output}\"}
```
";

fn verified(text: &str) -> Verification {
    verify(&Source::new("plan.md", text), &Facts::default(), &Levels::default())
}

fn errors(text: &str) -> Vec<(Code, String)> {
    let found = verified(text).diagnostics;
    found.into_iter().filter(|one| one.is_error()).map(|one| (one.code, one.message)).collect()
}

#[test]
fn a_comment_may_stand_behind_the_arguments_of_a_call() {
    let with = |arguments: &str| {
        let (before, _) = PLAN.split_once("```json\n{\"text\"").unwrap();
        errors(&format!("{before}{arguments}\n"))
    };
    for arguments in [
        "```json\n{\"text\": \"a\"}\n```\n<!-- why -->",
        "{\"text\": \"a <!-- b -->\"}\n\n<!-- why -->\n<!-- and\nhow -->",
        "- text: a\n<!-- why -->",
    ] {
        assert_eq!(with(arguments), [], "{arguments}");
    }
    assert_eq!(with("{\"text\": \"a\"} and more")[0].0, Code::P015);
}

fn sub_plan(verification: &Verification) -> SubPlan {
    let graph = verification.graph.as_ref().expect("a graph");
    let mut plans = graph.sub_plans().map(|(_, plan)| plan.clone());
    let plan = plans.next().expect("a sub-plan");
    assert!(plans.next().is_none());
    plan
}

#[test]
fn s8_a_step_of_markdown_carries_out_another_plan_in_the_middle_and_gives_its_output() {
    assert_eq!(errors(PLAN), []);
    let plan = sub_plan(&verified(PLAN));
    assert_eq!(plan.path, "plans/release.md");
    assert_eq!(plan.folder.as_deref(), Some("services/api"));
    assert_eq!((plan.approval, plan.on_exhausted), (ChildApproval::Inherit, Outcome::Failed));
    let source = Source::new("plan.md", PLAN);
    let wants = planctl_lang::read(&source).wants();
    assert!(wants.sub_plans.contains("plans/release.md") && wants.files.contains("services/api"));
    // A person is asked where nothing else is said, and the words may be written as JSON has them.
    let asked = PLAN.replace("**approval:** inherit\n", "").replace("sub-plan", "Sub_Plan");
    assert_eq!(sub_plan(&verified(&asked)).approval, ChildApproval::Ask);
    let warned = PLAN.replace("**approval:** inherit\n", "**on_fail:** warn\n");
    assert_eq!(sub_plan(&verified(&warned)).on_exhausted, Outcome::Warned);
}

#[test]
fn s8_a_plan_that_is_not_there_is_told_at_its_field() {
    let facts = Facts {
        sub_plans: BTreeMap::from([("plans/release.md".to_owned(), SubPlanFact::Missing)]),
        ..Facts::default()
    };
    let found = verify(&Source::new("plan.md", PLAN), &facts, &Levels::default()).diagnostics;
    let missing = found.iter().find(|one| one.code == Code::P214).expect("a finding");
    let at = missing.spans[0].span;
    assert_eq!(&PLAN[at.start..at.end], "plans/release.md");
}

#[test]
fn s8_the_fields_of_a_sub_plan_are_required_there_and_refused_elsewhere() {
    let missing = PLAN.replace("**plan:** plans/release.md\n", "");
    assert_eq!(errors(&missing), [(Code::P009, "step 2: plan is missing".to_owned())]);
    let elsewhere = PLAN.replace("**type:** sub-plan\n", "**target:** coder\n**task:**\nRelease it.\n");
    let found = errors(&elsewhere);
    for field in ["plan", "folder", "approval"] {
        let message = format!("`**{field}:**` is of a sub-plan alone");
        assert!(found.contains(&(Code::P015, message)), "{field}: {found:?}");
    }
    let outside = PLAN.replace("services/api", "../api");
    assert_eq!(errors(&outside)[0].0, Code::P205);
    let unknown = PLAN.replace("inherit", "nobody");
    assert_eq!(errors(&unknown), [(Code::P015, "`nobody` is not a value of `**approval:**`".to_owned())]);
    let contract =
        PLAN.replace("**approval:** inherit\n", "\n**contract:**\n```shell\ntrue\n```\nexit_code == 0\n");
    assert!(
        errors(&contract)
            .contains(&(Code::P015, "no contract runs at a step of `type: sub-plan`".to_owned()))
    );
    // The plan within says itself what follows a failure.
    let retried = verified(&PLAN.replace("**approval:** inherit", "**on_fail:** retry(2), then abort"));
    let warning = retried.diagnostics.iter().find(|one| one.message.contains("not tried again"));
    assert_eq!(warning.map(|one| (one.code, one.level)), Some((Code::P015, Severity::Warning)));
}

#[test]
fn s8_markdown_json_and_back_say_the_same_sub_plan() {
    let first = verified(PLAN);
    let graph = first.graph.as_ref().expect("a graph");
    let markdown = to_markdown(&of_graph(graph));
    assert_eq!(markdown.lost, Vec::<String>::new(), "{}", markdown.text);
    assert_eq!(sub_plan(&verified(&markdown.text)), sub_plan(&first), "{}", markdown.text);
    let json = Source::new("plan.json", to_json(&of_graph(graph)).to_string());
    let (workflows, _) = check(&json, Language::Json);
    let again = to_graph(&json, &workflows[0]).expect("a graph");
    assert_eq!(again.sub_plans().map(|(_, plan)| plan.clone()).collect::<Vec<_>>(), [sub_plan(&first)]);
}

#[test]
fn s8_fmt_orders_the_fields_of_a_sub_plan_and_show_names_them() {
    let mixed = PLAN.replace(
        "**type:** sub-plan\n**plan:** plans/release.md\n**folder:** services/api\n**approval:** inherit\n",
        "**approval:** inherit\n**folder:** services/api\n**plan:** plans/release.md\n**type:** sub-plan\n",
    );
    assert_ne!(mixed, PLAN);
    assert_eq!(format(&Source::new("plan.md", mixed.as_str())), PLAN);
    let source = Source::new("plan.md", PLAN);
    let shown = show(&source);
    let settings: BTreeMap<&str, &str> =
        shown.steps[1].settings.iter().map(|setting| (setting.name, setting.value.as_str())).collect();
    for (name, value) in [
        ("type", "sub-plan"),
        ("plan", "plans/release.md"),
        ("folder", "services/api"),
        ("approval", "inherit"),
    ] {
        assert_eq!(settings.get(name), Some(&value), "{name}");
    }
}

#[test]
fn n1_what_follows_a_sub_plan_that_failed_is_as_its_policy_says_in_every_language() {
    let markdown = |policy: &str| {
        let said = if policy.is_empty() { String::new() } else { format!("**on_fail:** {policy}\n") };
        PLAN.replace("**approval:** inherit\n", &said)
            .replace("**type:** call\n**server:** chat\n**tool:** post\n**arguments:**\n```json\n{\"text\": \"${steps.2.output}\"}\n```", "**type:** call\n\n**contract:**\n```shell\nmake news\n```\nexit_code == 0")
    };
    let dot = |policy: &str| {
        let said = if policy.is_empty() { String::new() } else { format!(", on_fail=\"{policy}\"") };
        format!(
            "digraph G {{ start exit a [shape=parallelogram, tool_command=\"make\"] b [shape=house, stack.child_dotfile=\"c.md\"{said}] \
            c [shape=parallelogram, tool_command=\"make news\"] start -> a -> b -> c -> exit }}"
        )
    };
    let json = |said: &str| {
        format!(
            r#"{{"graph": {{"start": "a", "nodes": {{"a": {{"type": "tool", "tool_command": "make"}},
            "b": {{"type": "sub_plan", "stack.child_dotfile": "c.md"{said}}}, "c": {{"type": "tool", "tool_command": "make news"}}, "end": {{"type": "exit"}}}},
            "edges": [{{"from": "a", "to": "b", "condition": "on_success"}}, {{"from": "b", "to": "c", "condition": "on_success"}}, {{"from": "c", "to": "end", "condition": "on_success"}}]}}}}"#
        )
    };
    let outcome = |name: &str, text: &str| {
        let verification = verify(&Source::new(name, text), &Facts::default(), &Levels::default());
        let graph = verification.graph.unwrap_or_else(|| panic!("{text}\n{:?}", verification.diagnostics));
        let walk = walk(&graph, &|node, _| i32::from(matches!(node.as_str(), "b" | "2")), &|_, _| None);
        format!("{} of {}", walk.end, walk.path.len())
    };
    for (policy, end) in [
        ("", "asks b: no_edge of 2"),
        ("escalate", "asks b: exhausted of 2"),
        ("abort", "failed of 2"),
        ("skip", "done of 3"),
        ("warn", "done of 3"),
    ] {
        assert_eq!(outcome("plan.dot", &dot(policy)), end, "{policy}");
        let said = if policy.is_empty() { String::new() } else { format!(", \"on_fail\": \"{policy}\"") };
        assert_eq!(outcome("plan.json", &json(&said)), end, "{policy}");
        assert_eq!(outcome("plan.md", &markdown(policy)), end.replace(" b:", " 2:"), "{policy}");
    }
    assert_eq!(outcome("plan.json", &json(", \"required\": false")), "done of 3");
}
