//! Task lists of other tools: what they are taken for, the plans that they become, and what is left to write.

use planctl_lang::{
    Code, Diagnostic, Imported, Levels, Origin, Source, import, import_findings, tags, verify,
};

use crate::sample::facts;

const SPEC_KIT: (&str, &str) =
    ("specs/001-photo-albums/tasks.md", include_str!("../fixtures/import/spec-kit.md"));
const OPEN_SPEC: (&str, &str) =
    ("openspec/changes/add-2fa/tasks.md", include_str!("../fixtures/import/openspec.md"));
const KIRO: (&str, &str) = (".kiro/specs/user-storage/tasks.md", include_str!("../fixtures/import/kiro.md"));
const RALPHEX: (&str, &str) = ("docs/plans/rate-limits.md", include_str!("../fixtures/import/ralphex.md"));
const TASKMASTER: (&str, &str) =
    (".taskmaster/tasks/tasks.json", include_str!("../fixtures/import/taskmaster.json"));
const CHECKLIST: (&str, &str) = ("TODO.md", include_str!("../fixtures/import/checklist.md"));

fn imported((path, text): (&str, &str), beside: &[&str]) -> Imported {
    let beside: Vec<String> = beside.iter().map(|file| (*file).to_owned()).collect();
    import(&Source::new(path, text), "ann", &beside, None).expect("it is a task list")
}

fn errors(text: &str) -> Vec<Diagnostic> {
    let found = verify(&Source::new("plans/it.md", text), &facts(), &Levels::default()).diagnostics;
    found.into_iter().filter(Diagnostic::is_error).collect()
}

/// Verifies that exactly the gaps are told, and nothing once they are filled; returns the titles of the steps.
fn gaps_are_told_and_filled(plan: &Imported) -> Vec<String> {
    let told = errors(&plan.text);
    let are_gaps = told
        .iter()
        .all(|found| found.code == Code::P010 && found.message == "the contract is still to be written");
    assert!(are_gaps && told.len() == plan.gaps, "{told:#?}\n{}", plan.text);
    let lines =
        plan.text.lines().enumerate().map(|(at, line)| match line.starts_with("**contract:** TODO") {
            true => format!("**contract:**\n```bash\ntest -s proof-{at}\n```\nexit_code == 0"),
            false => line.to_owned(),
        });
    let filled = lines.collect::<Vec<_>>().join("\n");
    let verification = verify(&Source::new("plans/it.md", &*filled), &facts(), &Levels::default());
    assert!(verification.is_verified(), "{:#?}\n{filled}", verification.diagnostics);
    assert_eq!(verification.tree.steps.len(), plan.steps);
    verification.tree.steps.iter().map(|step| step.node.step_title().to_owned()).collect()
}

fn first_message((path, text): (&str, &str)) -> String {
    let found = verify(&Source::new(path, text), &facts(), &Levels::default()).diagnostics;
    let [only] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(only.code, Code::P007);
    assert!(
        only.help.as_deref().is_some_and(|help| help.ends_with(&format!("`planctl plan import {path}`")))
    );
    only.message.clone()
}

#[test]
fn a_task_list_of_spec_kit_becomes_a_step_for_each_open_task_and_parallel_ones_need_what_was_before_them() {
    assert_eq!(first_message(SPEC_KIT), "this is a task list of spec-kit, not a plan of planctl");
    let plan = imported(SPEC_KIT, &["specs/001-photo-albums/spec.md", "specs/001-photo-albums/plan.md"]);
    assert_eq!(
        (plan.origin, plan.title.as_str(), plan.steps, plan.gaps),
        (Origin::SpecKit, "Photo albums", 5, 5)
    );
    assert_eq!(
        plan.done,
        [
            "T001 Create project structure per implementation plan",
            "T002 Initialize the Python project with FastAPI in pyproject.toml"
        ]
    );
    let titles = gaps_are_told_and_filled(&plan);
    assert_eq!(titles[3], "T006 Create the Album model in src/models/album.py");
    for part in [
        "**needs:** 1\n**task:**\nIntegration test for the first album in tests/integration/test_first_album.py.\n\
         - Phase 2: User Story 1 - Make an album (Priority: P1) 🎯 MVP\n- Its goal: A user makes an album and names it\n- Its test: Make an album over the API and list it\n- User story: US1\n\n\
         Read `specs/001-photo-albums/spec.md` and `specs/001-photo-albums/plan.md` first.\n\n**contract:** TODO\n",
        "### 4. T006 Create the Album model in src/models/album.py\n\n**target:** coder\n**needs:** 2, 3\n",
        "<!-- Not imported, because it is done in specs/001-photo-albums/tasks.md:\n- T001 Create project structure",
    ] {
        assert!(plan.text.contains(part), "{part}\n\n{}", plan.text);
    }
}

#[test]
fn a_change_of_openspec_becomes_a_step_for_each_section_that_is_open() {
    assert_eq!(first_message(OPEN_SPEC), "this is a task list of OpenSpec, not a plan of planctl");
    let plan = imported(OPEN_SPEC, &["openspec/changes/add-2fa/proposal.md"]);
    assert_eq!((plan.origin, plan.title.as_str(), plan.gaps), (Origin::OpenSpec, "add 2fa", 2));
    assert_eq!(plan.done.len(), 2, "{:?}", plan.done);
    assert_eq!(gaps_are_told_and_filled(&plan), ["Database setup", "Backend implementation"]);
    assert!(
        plan.text.contains("- 2.2 Require a code at login\n  - only for users who turned it on\n- 2.3 Test"),
        "{}",
        plan.text
    );
    assert!(plan.text.contains("Read `openspec/changes/add-2fa/proposal.md` first."));
}

#[test]
fn a_spec_of_kiro_becomes_a_step_for_each_part_with_its_details_and_requirements() {
    assert_eq!(first_message(KIRO), "this is a task list of Kiro, not a plan of planctl");
    let plan = imported(KIRO, &[]);
    assert_eq!((plan.origin, plan.title.as_str()), (Origin::Kiro, "user storage"));
    assert_eq!(plan.done, ["1. Set up the project structure and core interfaces"]);
    assert_eq!(
        gaps_are_told_and_filled(&plan),
        [
            "2.1 Create the interfaces and validation of the core data",
            "2.2 Implement the User model with validation",
            "2.3 Write property tests for the models",
            "Wire the storage into the API"
        ]
    );
    for part in [
        "- A part of: 2. Implement the data models\n- Write TypeScript interfaces for all data models\n- Implement validation functions\n- Requirements: 2.1, 3.3\n",
        "- The spec marks it as optional.\n- Property 1: Users are unique\n- Validates: Requirements 1.2\n",
    ] {
        assert!(plan.text.contains(part), "{part}\n\n{}", plan.text);
    }
}

#[test]
fn a_plan_of_ralphex_has_its_validation_commands_for_contract_and_no_gap() {
    assert_eq!(first_message(RALPHEX), "this is a plan of ralphex, not a plan of planctl");
    let plan = imported(RALPHEX, &[]);
    assert_eq!(
        (plan.origin, plan.title.as_str(), plan.gaps),
        (Origin::Ralphex, "Rate limits for the API", 0)
    );
    assert_eq!(gaps_are_told_and_filled(&plan), ["Limit requests per key", "Document the limits"]);
    assert!(plan.done.contains(&"implement the bucket".to_owned()), "{:?}", plan.done);
    assert!(plan.done.contains(&"Add a token bucket".to_owned()), "{:?}", plan.done);
    assert_eq!(plan.left_out, ["watch the error rate for a day (it stands in no task)"]);
    for part in [
        "**Context:** Requests above a limit per key get 429 with `Retry-After`. Imported from",
        "**contract:**\n```bash\n(\nbash lint.sh\n)\n[ $? -eq 0 ] || exit 1\n(\nbash test.sh\n)\n```\nexit_code == 0\n",
        "> **Files:**\n- Modify: `app.py`\n- answer 429 with `Retry-After`\n",
    ] {
        assert!(plan.text.contains(part), "{part}\n\n{}", plan.text);
    }
}

#[test]
fn tasks_of_task_master_come_behind_what_they_depend_on_and_their_test_strategy_marks_the_gap() {
    assert_eq!(first_message(TASKMASTER), "this is a task list of Task Master, not a plan of planctl");
    let plan = imported(TASKMASTER, &[]);
    assert_eq!((plan.origin, plan.gaps, plan.title.as_str()), (Origin::Taskmaster, 3, "tasks"));
    assert_eq!(plan.done, ["1 Initialize the repository", "3.1 Parse the header"]);
    assert_eq!(plan.left_out, ["5 Publish to npm (it is deferred)"]);
    assert_eq!(
        gaps_are_told_and_filled(&plan),
        ["Import orders from CSV", "Count orders per day", "Render the report"]
    );
    for part in [
        "- 3.2 Parse rows: Quoted fields too\n\n**contract:** TODO: Import the 3 fixtures; a wrong header is refused\n",
        "**needs:** none\n**task:**\nA pure function.\n\n**contract:** TODO\n",
        "**needs:** 1, 2\n**task:**\nShow the imported rows as a table.\n> # Layout\nOne row per order.\n> ```js\n> render(rows)\n> ```\n> **contract:** none\n",
    ] {
        assert!(plan.text.contains(part), "{part}\n\n{}", plan.text);
    }
    let told = errors(&plan.text);
    assert_eq!(told[0].notes, ["to be proved: Import the 3 fixtures; a wrong header is refused"]);
    let untagged = TASKMASTER.1.replacen("\"master\": {", "", 1);
    let untagged = untagged.trim_end().strip_suffix('}').unwrap().to_owned();
    assert_eq!(imported(("tasks.json", &untagged), &[]).title, "Orders");
}

#[test]
fn tasks_of_task_master_that_depend_on_each_other_in_a_circle_are_told_at_their_place() {
    let text = r#"{"master": {"tasks": [
  {"id": 1, "title": "A", "status": "pending", "dependencies": [9, 3]},
  {"id": 2, "title": "B", "status": "done", "dependencies": [1]},
  {"id": 3, "title": "C", "status": "pending", "dependencies": [2, "4.1"], "subtasks": []},
  {"id": 4, "title": "D", "status": "pending", "dependencies": ["4.2", 1]}
]}, "other": {"tasks": [{"id": 5, "title": "E", "dependencies": [5]}]}}"#;
    let source = Source::new("tasks.json", text);
    let told = |tag: &str| {
        let found = import_findings(&source, Some(tag)).into_iter().map(|found| {
            let places = found.spans.iter().map(|label| source.position(label.span.start));
            let places: Vec<(usize, usize)> = places.map(|at| (at.line, at.column)).collect();
            (found.code, found.message, places)
        });
        found.collect::<Vec<_>>()
    };
    let circle = |names: &str| format!("tasks depend on each other in a circle: {names}");
    assert_eq!(
        told("master"),
        [
            (Code::P304, "task 1 depends on 9, which the list does not have".to_owned(), vec![(2, 65)]),
            (Code::P204, circle("1 → 3 → 4 → 1"), vec![(2, 68), (4, 68), (5, 72)]),
        ]
    );
    assert_eq!(told("other"), [(Code::P204, circle("5 → 5"), vec![(6, 66)])]);
    assert_eq!(import_findings(&Source::new(TASKMASTER.0, TASKMASTER.1), None), []);
}

#[test]
fn a_check_list_becomes_a_step_for_each_box_and_its_words_end_no_field() {
    let plan = imported(CHECKLIST, &[]);
    assert_eq!((plan.origin, plan.title.as_str()), (Origin::Checklist, "Release 2.0"));
    assert_eq!(plan.done, ["bump the version", "collect the pull requests"]);
    let titles = gaps_are_told_and_filled(&plan);
    assert_eq!(titles[0], "write the changelog");
    assert_eq!(&titles[2..], ["build the packages", "tell the list"]);
    assert!(plan.text.contains("write the changelog.\n- name everybody who helped\n"), "{}", plan.text);
    assert!(plan.text.contains("- In the list under: After the tag\n"), "{}", plan.text);
}

fn titles(plan: &Imported) -> Vec<String> {
    let source = Source::new("plans/it.md", &*plan.text);
    let steps = verify(&source, &facts(), &Levels::default()).tree.steps;
    steps.iter().map(|step| step.node.step_title().to_owned()).collect()
}

// An open box below a ticked one was said to be done, and a numbered one was lost.
#[test]
fn open_boxes_of_a_check_list_are_steps_wherever_they_stand_and_doubtful_ones_are_named() {
    let list = "\u{feff}---\r\n# no title\r\n---\r\n# Work\r\n- [x] d\r\n  how it was done\r\n  - [x] d1\r\n  - [ ] e\r\n    - [ ] in e\r\n    - [x] ready\r\n      by ann\r\n1. [ ] f\r\n   - how\r\n\r\n         f()\r\n\r\n   ```\r\n   if x:\r\n       y\r\n   ```\r\n2) [/] g\r\n- [-] h\r\n  - [ ] in h\r\n- [✓] i\r\n- [a](b) j\r\n- [1] k\r\n";
    let plan = imported(("TODO.md", list), &[]);
    assert_eq!((titles(&plan), plan.title.as_str()), (["e", "f", "g"].map(str::to_owned).to_vec(), "Work"));
    assert_eq!(plan.done, ["d", "d1", "ready", "i"]);
    assert_eq!(
        plan.left_out,
        ["h (marked `[-]`: under way, or given up?)", "in h (marked `[-]`: under way, or given up?)"]
    );
    assert!(plan.text.contains("e.\n- A part of: d\n- in e\n\n**contract"), "{}", plan.text);
    assert!(
        plan.text.contains("f.\n - how\n       f()\n>  ```\n>  if x:\n>      y\n>  ```\n"),
        "{}",
        plan.text
    );
}

#[test]
fn a_title_keeps_its_words_and_takes_no_mark_and_a_heading_within_a_box_is_its_own() {
    let list = "- [ ] first\n> - [ ] quoted\n- [ ] ✅ ⚠\u{fe0f} marked\n- [ ] #3 of many\n- [ ] second\n  ## inner\n  **target:** root\n- [ ] third\n";
    let plan = imported(("TODO.md", list), &[]);
    assert_eq!(titles(&plan), ["first", "quoted", "marked", "#3 of many", "second", "third"]);
    assert!(plan.text.contains("second.\n> ## inner\n> **target:** root\n"), "{}", plan.text);
}

#[test]
fn details_of_what_is_done_are_in_no_step() {
    let list = "## Phase 1\n- [ ] T001 One\n  open one\n- [x] T002 Two\n  done two\n";
    let plan = imported(("tasks.md", list), &[]);
    assert!(plan.text.contains("open one") && !plan.text.contains("done two"), "{}", plan.text);
    let list = "## 1. Section\n- [ ] 1.1 One\n  - open one\n- [x] 1.2 Two\n  - done two\n";
    let plan = imported(("openspec/changes/x/tasks.md", list), &[]);
    assert!(plan.text.contains("open one") && !plan.text.contains("done two"), "{}", plan.text);
    let list = "# Plan: P\n## Overview\n\nA sentence in\ntwo lines.\n\nMore.\n### Task 1: One\n- [x] Two\n  - done two\n\nFor all.\n- [ ] Three\n";
    let plan = imported(("docs/plans/x.md", list), &[]);
    assert!(plan.text.contains("\nFor all.\n- Three\n") && !plan.text.contains("done two"), "{}", plan.text);
    assert!(plan.text.contains("**Context:** A sentence in two lines. Imported"), "{}", plan.text);
}

#[test]
fn open_parts_of_a_task_that_is_done_are_steps_and_a_tag_is_read_alone() {
    let list = r#"{"b": {"tasks": [{"id": 1, "title": "Of b", "dependencies": [1]}]}, "a": {"tasks": [
        {"id": 1, "title": "Done", "status": "done", "dependencies": [], "subtasks": [
            {"id": 1, "title": "was done", "status": "done"}, {"id": 2, "title": "is open", "status": "pending"}]},
        {"id": 2, "title": "Open", "subtasks": [{"id": 1, "title": "not now", "status": "deferred"}]}]}}"#;
    let source = Source::new("tasks.json", list);
    assert_eq!(tags(&source), ["a", "b"]);
    let plan = import(&source, "ann", &[], Some("a")).unwrap();
    assert_eq!(titles(&plan), ["Open", "is open"]);
    assert_eq!(
        (plan.done.len(), plan.left_out.as_slice()),
        (2, &["2.1 not now (it is deferred)".to_owned()][..])
    );
    assert!(plan.text.contains("**needs:** none\n**task:**\nis open\n- A part of: Done\n"), "{}", plan.text);
    assert_eq!(titles(&import(&source, "ann", &[], Some("b")).unwrap()), ["Of b"]);
}

#[test]
fn a_plan_of_planctl_is_nobody_elses() {
    for (path, text) in [
        ("plan.md", crate::sample::PLAN),
        (
            "plan.md",
            "# T\n\n## Steps\n\n### Task 1: X\n\n**target:** coder\n**task:**\n- [ ] do it\n\n**contract:**\n```\ntrue\n```\n",
        ),
        ("plan.json", r#"{"tasks": [{"id": 1, "title": "x", "dependencies": [], "contract": "true"}]}"#),
        ("plan.json", r#"{"tasks": [{"id": 1}]}"#),
        ("g.dot", "digraph { start -> exit }"),
        ("notes.md", "# Notes\n\n1. One\n"),
    ] {
        assert_eq!(Origin::of(&Source::new(path, text)), None, "{path} {text}");
    }
}
