//! The order of steps by the files they make and read: missing files, their makers, and those that only a later step makes.

use crate::properties::worked;
use crate::sample::{facts, found, found_with};
use planctl_lang::Code::{P108, P201, P203, P204, P211, P212};
use planctl_lang::{Code, Diagnostic, Facts, FileFact, Severity, Source, parse};

/// Makes a plan of steps given as subscriptions, task and contract.
fn plan(steps: &[(&[&str], &str, &str)]) -> String {
    let mut text = "---\ntype: plan\nstatus: draft\nowner: me\n---\n\n# Plan\n\n## Steps\n".to_owned();
    for (at, (files, task, contract)) in steps.iter().enumerate() {
        let number = at + 1;
        text += &format!("\n### {number}. Title {number}\n\n**target:** coder\n");
        if !files.is_empty() {
            text += "**subscriptions:**\n";
            files.iter().for_each(|file| text += &format!("- file:{file}\n"));
        }
        text += &format!(
            "\n**task:**\n{task}\n\n**contract:**\n```shell\n{contract}\n```\nexit_code == 0\n**on_fail:** escalate\n"
        );
    }
    text
}

fn missing(paths: &[&str]) -> Facts {
    let files = paths.iter().map(|path| ((*path).to_owned(), FileFact::Missing)).collect();
    Facts { files, ..facts() }
}

fn there(paths: &[&str]) -> Facts {
    let files = paths.iter().map(|path| ((*path).to_owned(), FileFact::Regular { size: 1 })).collect();
    Facts { files, ..facts() }
}

/// Returns the findings about order, and the text of each of their places.
fn places(text: &str, facts: &Facts) -> Vec<(Code, Vec<String>)> {
    let source = Source::new("plan.md", text);
    let all = found_with(text, facts).into_iter();
    let of_order = all.filter(|found| matches!(found.code, P108 | P201 | P203 | P204 | P211 | P212));
    let slices = |found: &Diagnostic| {
        found.spans.iter().map(|label| source.slice(label.span).to_owned()).collect::<Vec<_>>()
    };
    of_order.map(|found| (found.code, slices(&found))).collect()
}

/// Returns the findings about what may be changed.
fn about_rights(text: &str, facts: &Facts) -> Vec<Code> {
    let is_of_rights = |code: &Code| {
        matches!(code, Code::P118 | Code::P119 | Code::P120 | Code::P205 | Code::P206 | Code::P207)
    };
    found_with(text, facts).into_iter().map(|found| found.code).filter(is_of_rights).collect()
}

fn one(text: &str, facts: &Facts, code: Code) -> Diagnostic {
    let mut all = found_with(text, facts).into_iter().filter(|found| found.code == code);
    let first = all.next().unwrap_or_else(|| panic!("no {code} in\n{text}"));
    assert!(all.next().is_none(), "more than one {code} in\n{text}");
    first
}

fn apply(text: &str, finding: &Diagnostic) -> String {
    let mut mended = text.to_owned();
    for edit in finding.fix.as_ref().expect("it has a fix").edits.iter().rev() {
        mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
    }
    mended
}

#[test]
fn row_48_both_places_are_named_in_every_kind_of_text() {
    let steps: [(&[&str], &str, &str); 2] = [
        (&["docs/ü.md"], "日本\tRead it e\u{301} and think.", "test -f one.txt"),
        (&[], "Write `docs/ü.md` 👩\u{200d}💻.", "test -f two.txt"),
    ];
    for newline in ["\n", "\r\n"] {
        let text = plan(&steps).replace('\n', newline);
        let expected = (P203, vec!["file:docs/ü.md".to_owned(), "docs/ü.md".to_owned()]);
        assert_eq!(places(&text, &missing(&["docs/ü.md"])), [expected]);
    }
    let text = plan(&[(&["x.md"], "Think.", "true && test -f a"), (&[], "Write it.", "\ttest -s x.md")]);
    let source = Source::new("plan.md", &*text);
    let early = one(&text, &missing(&["x.md"]), P203);
    assert_eq!(source.slice(early.spans[1].span), "x.md");
    assert_eq!(source.position(early.spans[1].span.start).column, 10);
    assert_eq!(early.message, "step 1 reads a file that only step 2 produces");
    assert_eq!(
        early.help.as_deref(),
        Some("move the subscription to a new step after step 2, or renumber so that \"Title 2\" comes first")
    );
}

#[test]
fn a_clear_reorder_is_offered_and_mends_the_plan() {
    for (newline, end) in [("\n", ""), ("\r\n", ""), ("\n", "\n## Notes\n\nMore.\n")] {
        let text = plan(&[
            (&["x.md"], "Use it.", "test -f a.txt"),
            (&[], "Write `b.txt`.", "test -f b.txt"),
            (&[], "Write `x.md`.", "test -f x.md"),
        ]) + end;
        let text = text.replace('\n', newline);
        let facts = missing(&["x.md", "a.txt", "b.txt"]);
        let early = one(&text, &facts, P203);
        assert!(!early.fix.as_ref().unwrap().safe, "another order is another plan");
        let mended = apply(&text, &early);
        let mut left = found_with(&mended, &facts);
        // A section after the steps is told, whatever the order.
        left.retain(|found| found.level != Severity::Note);
        assert_eq!(left, [], "{mended}");
        let titles: Vec<String> = parse(&Source::new("p", &*mended))
            .0
            .steps
            .iter()
            .map(|step| step.node.step_title().to_owned())
            .collect();
        assert_eq!(titles, ["Title 3", "Title 1", "Title 2"]);
        assert!(mended.ends_with(&end.replace('\n', newline)), "{mended}");
    }
    // Not where the step that makes it uses what stands between, or where the words tell an order.
    let tangled =
        plan(&[(&["x.md"], "Use it.", "test -f a.txt"), (&["a.txt"], "Write `x.md`.", "test -f x.md")]);
    assert!(one(&tangled, &missing(&["x.md"]), P203).fix.is_none());
    let told = plan(&[
        (&["x.md"], "Use it.", "test -f a.txt"),
        (&[], "As in step 1, write `x.md`.", "test -f x.md"),
    ]);
    assert!(one(&told, &missing(&["x.md"]), P203).fix.is_none());
}

#[test]
fn a_circle_is_printed_with_what_is_read_and_made_along_it() {
    let text = plan(&[
        (&["c.md"], "Write `a.md`.", "test -f a.md"),
        (&["a.md"], "Write `b.md`.", "test -f b.md"),
        (&["b.md"], "Write `c.md`.", "test -f c.md"),
    ]);
    let facts = missing(&["a.md", "b.md", "c.md"]);
    let circle = one(&text, &facts, P204);
    assert!(circle.message.ends_with("in a circle: 1 → 3 → 2 → 1"), "{}", circle.message);
    let expected: Vec<String> =
        ["file:c.md", "file:b.md", "file:a.md", "c.md", "b.md", "a.md"].map(str::to_owned).into();
    assert_eq!(places(&text, &facts), [(P204, expected)]);
    assert_eq!(circle.spans[0].text, "step 1 reads `c.md`");
    assert_eq!(circle.spans[3].text, "step 3 makes `c.md`");
}

#[test]
fn a_task_or_contract_that_uses_what_a_later_step_makes_is_a_warning() {
    let text = plan(&[
        (&[], "Read `docs/api.md` and write `a.md`.", "test -f a.md"),
        (&[], "Write `b.md`.", "bash tests/all.sh"),
        (&[], "Write `docs/api.md`. Create `tests/all.sh`.", "test -f docs/api.md && test -f tests/all.sh"),
    ]);
    let facts = missing(&["docs/api.md", "tests/all.sh", "a.md", "b.md"]);
    let both = |path: &str| (P212, vec![path.to_owned(), path.to_owned()]);
    assert_eq!(places(&text, &facts), [both("docs/api.md"), both("tests/all.sh")]);
    let messages: Vec<_> =
        found_with(&text, &facts).into_iter().map(|found| (found.level, found.message)).collect();
    assert_eq!(
        messages,
        [
            (Severity::Warning, "step 1's task reads `docs/api.md`, which only step 3 makes".to_owned()),
            (
                Severity::Warning,
                "step 2's contract looks at `tests/all.sh`, which only step 3 makes".to_owned()
            ),
        ]
    );
    // An existing file, or one that nothing is known about, is no finding.
    assert_eq!(places(&text, &there(&["docs/api.md", "tests/all.sh"])), []);
    assert_eq!(found(&text), []);
    let source = Source::new("p", &*text);
    let wants = planctl_lang::read(&source).wants();
    assert!(wants.files.contains("docs/api.md"), "it has to be asked for: {:?}", wants.files);
}

#[test]
fn a_step_that_may_edit_its_own_judge_is_a_warning() {
    let edits = [
        ("Extend `tests/a.py`.", "uv run pytest tests/a.py -x", "tests/a.py"),
        ("Change `check.sh` until it passes.", "./check.sh", "./check.sh"),
        ("Update `tests/auth/b.py`.", "prove tests/auth/", "tests/auth/"),
    ];
    for (task, contract, judge) in edits {
        let text = plan(&[(&[], task, contract)]);
        let path = task.split('`').nth(1).unwrap();
        let expected = (P108, vec![judge.to_owned(), path.to_owned()]);
        let of_judges = |text: &str| {
            let mut found = places(text, &there(&[path]));
            found.retain(|(code, _)| *code == P108);
            found
        };
        assert_eq!(of_judges(&text), [expected], "{task}");
        let help = one(&text, &there(&[path]), P108).help.unwrap();
        assert!(help.starts_with(&format!("add `**protects:** {path}`")), "{help}");
        for field in ["protects", "changes"] {
            let said = text.replace("**target:** coder", &format!("**{field}:** {path}\n**target:** coder"));
            assert_eq!(of_judges(&said), [], "{field} {task}");
        }
    }
    let given = plan(&[(&["repro.sh"], "Fix it.", "bash repro.sh")]);
    assert_eq!(places(&given, &there(&["repro.sh"])), [], "a subscription gives no right");
}

#[test]
fn what_a_step_makes_its_contract_may_look_at() {
    let fine: [(&str, &str); 6] = [
        ("Write `check.sh`.", "bash check.sh"),
        ("Write `a.md`.", "test -f a.md && grep -q x a.md"),
        ("Change `slug.sh`.", "bash slug.sh x | grep -q y"),
        ("Change `lib.sh`.", "bash -n lib.sh"),
        ("Fix `src/a.py`.", "uv run ruff check src/ && bash tests/run.sh"),
        ("Fix it.", "bash tests/run.sh"),
    ];
    for (task, contract) in fine {
        let text = plan(&[(&[], task, contract)]);
        let path = task.split('`').nth(1).unwrap_or("tests/run.sh");
        let facts = if task.starts_with("Write") { missing(&[path]) } else { there(&[path]) };
        assert_eq!(places(&text, &facts), [], "{task} {contract}");
    }
}

fn may_change(text: &str) -> Vec<String> {
    let source = Source::new("p", text);
    let graph = planctl_lang::verify(&source, &facts(), &planctl_lang::Levels::default()).graph;
    let graph = graph.expect("a sound plan is a graph");
    let task = graph.task(&planctl_engine::NodeId::new("1")).expect("its first step is a task");
    task.may_change.iter().cloned().collect()
}

#[test]
fn what_a_step_may_change_is_what_its_task_plainly_changes_or_what_it_lists() {
    let text =
        plan(&[(&["repro.sh"], "Change `src/a.py` and `b.py` until `repro.sh` passes.", "bash repro.sh")]);
    assert_eq!(may_change(&text), ["b.py", "src/a.py"]);
    let with = |field: &str| text.replace("**target:** coder", &format!("{field}\n**target:** coder"));
    assert_eq!(may_change(&with("**protects:** src/*.py")), ["b.py"]);
    assert_eq!(may_change(&with("**changes:** ./lib/x.py, src/**")), ["lib/x.py", "src/**"]);
    assert_eq!(may_change(&with("**changes:**\n- src/**\n- t.sh\n**protects:** t.sh")), ["src/**"]);
    assert!(may_change(&with("**changes:** none")).is_empty());
}

#[test]
fn entries_of_changes_are_files_and_globs_of_the_workspace() {
    let text = |entry: &str| {
        let text = plan(&[(&[], "Write `x.md`.", "test -f x.md")]);
        text.replace("**target:** coder", &format!("**changes:** {entry}\n**target:** coder"))
    };
    let codes = |entry: &str| -> Vec<planctl_lang::Code> {
        let mut facts = facts();
        facts.files.insert("src".to_owned(), FileFact::Directory);
        about_rights(&text(entry), &facts)
    };
    use planctl_lang::Code::{P205, P206, P207};
    for (entry, found) in [
        ("x.md, docs/*.md", vec![]),
        ("none", vec![]),
        ("../x.md", vec![P205]),
        ("/etc/passwd", vec![P205]),
        ("~/x", vec![P205]),
        ("src", vec![P207]),
        ("docs/", vec![P207]),
        ("src/[", vec![P206]),
    ] {
        assert_eq!(codes(entry), found, "{entry}");
    }
    let many = "{a,".repeat(11) + "x" + &"}".repeat(11);
    assert_eq!(codes(&many), [P206], "braces have ten levels at most");
}

#[test]
fn a_glob_of_changes_makes_what_a_later_step_is_given() {
    let text = plan(&[(&[], "Work.", "true"), (&["docs/a.md"], "Work.", "true")]);
    let facts = missing(&["docs/a.md"]);
    assert!(places(&text, &facts).iter().any(|(code, _)| *code == planctl_lang::Code::P201));
    let said = text.replacen("**target:** coder", "**changes:** docs/*.md\n**target:** coder", 1);
    assert!(!places(&said, &facts).iter().any(|(code, _)| *code == planctl_lang::Code::P201));
}

#[test]
fn a_contract_that_needs_a_protected_file_to_change_is_refused_with_the_line_to_add() {
    use planctl_lang::Code::P118;
    let needs = [
        ("Use the new host.", "! grep -q old deploy.conf", "deploy.conf"),
        ("Use the new host.", "bash check.sh && ! grep -q old deploy.conf", "deploy.conf"),
        ("Use the new host.", "! git diff --quiet HEAD -- deploy.conf", "deploy.conf"),
        ("Use the new host.", "git diff HEAD -- deploy.conf | grep -q new", "deploy.conf"),
        ("Use the new host.", "grep -q new deploy.conf", "deploy.conf"),
        (
            "Use the new host.",
            "set -e; ! grep -q x y.txt; grep -q new deploy.conf; bash check.sh",
            "deploy.conf",
        ),
        ("Use the new host.", "[ -z \"$(grep old deploy.conf)\" ]", "deploy.conf"),
        ("Use the new host.", "! grep -qE 'elder|^old' deploy.conf", "deploy.conf"),
        ("Use the new host.", "if grep -q old deploy.conf; then exit 1; fi; bash check.sh", "deploy.conf"),
        ("Use the new host.", "[ \"$(cat deploy.conf)\" = new ]", "deploy.conf"),
        ("Lower case, please.", "./slug.sh 'A B' | grep -qx a-b", "slug.sh"),
        ("Lower case, please.", "[ \"$(bash slug.sh 'A B')\" = a-b ]", "slug.sh"),
    ];
    for (task, contract, path) in needs {
        let text = plan(&[(&[], task, contract)]);
        let texts = [("deploy.conf".to_owned(), "host = old\nold\n".to_owned())].into();
        let facts = Facts { texts, ..there(&["deploy.conf", "slug.sh", "check.sh"]) };
        let needed = one(&text, &facts, P118);
        assert!(needed.help.unwrap().starts_with(&format!("add `**changes:** {path}`")), "{contract}");
        let has = |text: &str, facts: &Facts| about_rights(text, facts).contains(&P118);
        let said = |line: &str| text.replace("**target:** coder", &format!("{line}\n**target:** coder"));
        assert!(!has(&said(&format!("**changes:** {path}")), &facts), "{contract}");
        assert!(!has(&said("**guard:** yes"), &facts), "{contract}");
        assert!(!has(&text.replace(task, &format!("Fix `{path}`.")), &facts), "{contract}");
        assert!(!has(&text, &missing(&["deploy.conf", "slug.sh", "check.sh"])), "it is not there yet");
        let before = plan(&[(&[], &format!("Fix `{path}`."), "true"), (&[], task, contract)]);
        assert!(!has(&before, &facts), "an earlier step changes it: {contract}");
    }
    let fine = [
        ("Make it green.", "bash check.sh"),
        ("Make it green.", "./check.sh | grep -q ok"),
        ("Fix `lib.sh`.", "./slug.sh 'A B' | grep -qx a-b"),
        ("Keep it.", "git diff --quiet HEAD -- deploy.conf"),
        ("Write `x.md`.", "grep -q x x.md && ! grep -q y x.md"),
        ("Fix it.", "grep -q new \"$F\" deploy.conf"),
        ("Fix it.", "grep -rq new src"),
    ];
    for (task, contract) in fine {
        let text = plan(&[(&[], task, contract)]);
        let found = about_rights(&text, &there(&["deploy.conf", "slug.sh", "check.sh"]));
        assert_eq!(found, [], "{task} {contract}");
    }
}

#[test]
fn a_check_that_does_not_decide_or_already_holds_wants_no_file_to_change() {
    use planctl_lang::Code::P118;
    let texts = [("deploy.conf".to_owned(), "host = old\n".to_owned())];
    let facts = Facts { texts: texts.into(), ..there(&["deploy.conf", "check.sh"]) };
    let needs = |contract: &str, exit_code: u8, facts: &Facts| {
        let text = plan(&[(&[], "Use the new host.", contract)]);
        let text = text.replace("exit_code == 0", &format!("exit_code == {exit_code}"));
        found_with(&text, facts).into_iter().find(|found| found.code == P118)
    };
    for (contract, exit_code) in [
        // Its status is not the contract's, without `set -e`.
        ("! grep -q old deploy.conf\nbash check.sh", 0),
        ("! grep -q old deploy.conf; bash check.sh", 0),
        ("set -e\n! grep -q old deploy.conf\nbash check.sh", 0),
        ("! grep -q old deploy.conf || bash check.sh", 0),
        ("f() { ! grep -q old deploy.conf; }\nbash check.sh", 0),
        ("trap 'exit 0' EXIT; ! grep -q old deploy.conf", 0),
        // The failure is what is expected.
        ("! grep -q old deploy.conf", 1),
        ("bash check.sh && ! grep -q old deploy.conf", 1),
        ("! git diff --quiet HEAD -- deploy.conf", 1),
        // Nothing may be there.
        ("! git diff HEAD -- deploy.conf | grep -q x", 0),
        ("[ -z \"$(git diff HEAD -- deploy.conf)\" ]", 0),
        // It is so already.
        ("! grep -q new deploy.conf && bash check.sh", 0),
        ("! grep -qE '^new|elder' deploy.conf && bash check.sh", 0),
        ("grep -q old deploy.conf && bash check.sh", 0),
        ("grep -q old deploy.conf", 0),
        ("grep -q new deploy.conf", 1),
        // The contract writes it.
        ("sed s/old/new/ tpl > deploy.conf && ! grep -q old deploy.conf", 0),
        ("bash check.sh > deploy.conf; ! grep -q old deploy.conf", 0),
    ] {
        let found = needs(contract, exit_code, &facts);
        assert!(found.is_none(), "{contract}, exit code {exit_code}: {found:?}");
    }
    // Without the file's text nobody knows, and where the contract looks at nothing else, it is told as what it is.
    let unknown = there(&["deploy.conf", "check.sh"]);
    for (contract, level, says) in [
        (
            "! grep -q old deploy.conf",
            Severity::Warning,
            "asks something of `deploy.conf`, which step 1 may not change",
        ),
        (
            "! git diff --quiet HEAD -- deploy.conf",
            Severity::Error,
            "wants `deploy.conf` to change, but step 1 may not change it",
        ),
        (
            "[ \"$(cat deploy.conf)\" = new ]",
            Severity::Warning,
            "asks something of `deploy.conf`, which step 1 may not change",
        ),
    ] {
        let found = needs(contract, 0, &unknown).expect(contract);
        assert_eq!(found.level, level, "{contract}");
        assert!(found.message.ends_with(says), "{contract}: {}", found.message);
        let help = found.help.unwrap();
        assert!(help.contains("or name it in the task: \"Change `deploy.conf`\""), "{help}");
    }
}

#[test]
fn a_doubtful_mention_of_what_decides_is_told_and_two_lines_end_the_doubt() {
    use planctl_lang::Code::P119;
    for task in [
        "Look after `check.sh`.",
        "Fix the failing test in `check.sh`.",
        "Fix `check.sh`. Do not edit `check.sh`.",
    ] {
        let text = plan(&[(&[], task, "bash check.sh")]);
        let codes = |text: &str| about_rights(text, &there(&["check.sh"]));
        assert_eq!(codes(&text), [P119], "{task}");
        assert!(may_change(&text).is_empty(), "{task}");
        for field in ["protects", "changes"] {
            let said =
                text.replace("**target:** coder", &format!("**{field}:** check.sh\n**target:** coder"));
            assert_eq!(codes(&said), [], "{field} {task}");
        }
    }
    for task in ["Make `check.sh` pass.", "Do not change `check.sh`.", "See `check.sh`."] {
        let text = plan(&[(&[], task, "bash check.sh")]);
        assert_eq!(about_rights(&text, &there(&["check.sh"])), [], "{task}");
    }
}

#[test]
fn a_folder_of_tests_that_a_task_changes_is_in_doubt_as_a_file_is() {
    use planctl_lang::Code::P119;
    let found = |task: &str, contract: &str, field: &str| {
        let text =
            plan(&[(&[], task, contract)]).replace("**target:** coder", &format!("{field}**target:** coder"));
        let mut facts = there(&["tests/run.sh"]);
        ["tests", "tests/", "src", "src/"].iter().for_each(|folder| {
            facts.files.insert((*folder).into(), FileFact::Directory);
        });
        about_rights(&text, &facts)
    };
    for (task, contract) in [
        ("Rewrite the tests in `tests/`.", "pytest tests/"),
        ("Rewrite the tests in tests/ without mocks.", "pytest"),
        ("Fix the failing tests in `tests/`.", "bash tests/run.sh"),
        ("Rename the helpers, and remove the old ones from `tests/`.", "cargo test"),
        ("Update `tests/`. Do not change `src/`.", "for t in tests/*.sh; do bash \"$t\" || exit 1; done"),
    ] {
        assert_eq!(found(task, contract, ""), [P119], "{task}");
        for field in ["**changes:** tests/**\n", "**protects:** tests/**\n", "**protects:** tests/*.py\n"] {
            assert_eq!(found(task, contract, field), [], "{task} {field}");
        }
    }
    for (task, contract) in [
        ("Make the tests in `tests/` pass.", "pytest tests/"),
        ("Add a test for the parser to `tests/`, and fix `src/a.py`.", "pytest tests/"),
        ("Write tests in `tests/`.", "pytest tests/"),
        ("Mend the bug that `tests/` shows.", "bash tests/run.sh"),
        ("Do not change `tests/`.", "bash tests/run.sh"),
        ("Run what is in tests/ and fix `src/a.py`.", "bash tests/run.sh"),
        ("Refactor `src/` so that `tests/` stay green.", "pytest tests/"),
        ("Fix all in `src/`, with the tests in `tests/` as they are.", "pytest tests/"),
        ("The tests are in `tests/`. Fix `src/a.py`.", "pytest tests/"),
        ("Rewrite the tests in `tests/`.", "grep -q x src/a.py"),
        ("Move the code to `src/`.", "test -f src/new.py"),
    ] {
        assert_eq!(found(task, contract, ""), [], "{task}");
    }
}

#[test]
fn a_tool_of_which_nothing_is_protected_is_told() {
    use planctl_lang::Code::P120;
    let bare = plan(&[(&[], "Fix `src/a.pl`.", "prove")]);
    assert_eq!(about_rights(&bare, &there(&["src/a.pl"])), [P120]);
    let said = bare.replace("**target:** coder", "**protects:** t/**\n**target:** coder");
    assert_eq!(about_rights(&said, &there(&["src/a.pl"])), []);
    let named = plan(&[(&[], "Fix `src/a.pl`.", "prove t/a.t")]);
    assert_eq!(about_rights(&named, &there(&["src/a.pl", "t/a.t"])), []);
}

#[test]
fn a_name_in_another_unicode_form_is_told_by_code_point() {
    let text = plan(&[(&["docs/caf\u{e9}.md"], "Read it.", "test -f a.txt")]);
    let mut facts = missing(&["docs/caf\u{e9}.md"]);
    facts.files.insert("docs/cafe\u{301}.md".into(), FileFact::Regular { size: 1 });
    let form = one(&text, &facts, P211);
    assert_eq!(form.notes, ["the plan has U+00E9 where the name has U+0065 U+0301"]);
    assert_eq!(places(&text, &facts), [(P211, vec!["docs/caf\u{e9}.md".to_owned()])]);
    assert!(form.fix.as_ref().unwrap().safe);
    assert_eq!(apply(&text, &form), text.replace('\u{e9}', "e\u{301}"));
    let source = Source::new("p", &*text);
    assert!(planctl_lang::read(&source).wants().files.contains("docs/cafe\u{301}.md"));
    // The other way round, and two forms of one name in the plan.
    let text = plan(&[
        (&[], "Write `cafe\u{301}.md`.", "test -f cafe\u{301}.md"),
        (&["caf\u{e9}.md"], "Read it.", "test -f b.txt"),
    ]);
    let form = one(&text, &missing(&["caf\u{e9}.md", "cafe\u{301}.md"]), P211);
    assert_eq!(form.notes, ["the plan has U+00E9 where the name has U+0065 U+0301"]);
}

#[test]
fn thousands_of_missing_files_are_no_quadratic_search() {
    let steps: Vec<(Vec<String>, String)> = (0..600)
        .map(|step| {
            let files = (0..50).map(|file| format!("src/part{step}/file{file}.rs")).collect();
            (files, format!("Write `out/step{step}.md`."))
        })
        .collect();
    let borrowed: Vec<Vec<&str>> =
        steps.iter().map(|(files, _)| files.iter().map(String::as_str).collect()).collect();
    let steps: Vec<(&[&str], &str, &str)> = borrowed
        .iter()
        .zip(&steps)
        .map(|(files, (_, task))| (files.as_slice(), task.as_str(), "test -f x"))
        .collect();
    let text = plan(&steps);
    let mut facts = facts();
    facts.files = borrowed.iter().flatten().map(|path| ((*path).to_owned(), FileFact::Missing)).collect();
    facts.existing = (0..20_000).map(|at| format!("src/part{}/file_{}.rs", at % 700, at % 90)).collect();
    let began = worked();
    assert_eq!(found_with(&text, &facts).len(), 1_001);
    // A build without optimisation on a busy machine; comparing all with all takes many minutes.
    let time = worked() - began;
    assert!(time.as_secs() < 60, "{time:?}");
}

#[test]
fn row_47_the_near_name_of_a_file_that_an_earlier_step_makes_is_offered() {
    let text = crate::sample::with("- file:one.txt", "- file:onne.txt");
    let missing = ("onne.txt".to_owned(), planctl_lang::FileFact::Missing);
    let facts = planctl_lang::Facts { files: [missing].into(), ..crate::sample::facts() };
    let found = crate::sample::found_with(&text, &facts);
    let absent = found.iter().find(|found| found.code == planctl_lang::Code::P201).expect("it is missing");
    assert_eq!(absent.help.as_deref(), Some("did you mean `file:one.txt`?"));
}

/// Returns the findings for a step that is given a file which the step before, in these words, may make.
fn after(task: &str, path: &str) -> Vec<(Code, Severity)> {
    let text = plan(&[(&[], task, "make test"), (&[path], "Use it.", "test -f done.txt")]);
    let all = found_with(&text, &missing(&[path])).into_iter();
    all.filter(|found| matches!(found.code, P201 | P203 | P212))
        .map(|found| (found.code, found.level))
        .collect()
}

#[test]
fn d8_no_english_verb_decides_an_error() {
    for task in [
        "Add a test `test_login` to `out/x.py`.",
        "Run `s.sh` and redirect its output to `out/x.py`.",
        "Analyse the logs, and leave your analysis in `out/x.py`.",
        "Check every function and log what you find to `out/x.py`.",
        "Following `g.md`, set up `out/x.py`.",
        "Import the data of the old system into `out/x.py`.",
        "Apply the template `t.tpl`, giving `out/x.py`.",
        "Run `make all` and `create db`. See `out/x.py`: it is there then.",
    ] {
        assert!(after(task, "out/x.py").iter().all(|(_, level)| *level == Severity::Warning), "{task}");
    }
    for task in ["Add a test `test_login` to `out/x.py`.", "Import the data into `out/x.py`."] {
        assert_eq!(after(task, "out/x.py"), [], "{task}");
    }
    assert_eq!(after("Read `out/x.py`.", "out/x.py"), [(P201, Severity::Warning)]);
    assert_eq!(after("Read `other.py`.", "out/x.py"), [(P201, Severity::Error)]);
}

#[test]
fn d8_words_in_code_are_no_verbs_and_nobody_makes_what_is_to_pass() {
    let text = plan(&[
        (&[], "Add a test `test_leap_day` to `tests/test_leap.py`.", "grep -q leap tests/test_leap.py"),
        (&[], "Make `tests/test_leap.py` pass by changing `src/leap.py`.", "test -f src/leap.py"),
    ]);
    let facts = missing(&["tests/test_leap.py"]);
    assert!(found_with(&text, &facts).iter().all(|found| found.code != P212), "{:?}", places(&text, &facts));
}

#[test]
fn d9_a_task_of_one_long_line_is_read_in_time_that_grows_with_it() {
    let paths: String = (0..40_000).map(|at| format!("`a{at}/b.md` ")).collect();
    let text = plan(&[(&[], &format!("Write {paths}"), "test -f x")]);
    let began = worked();
    found_with(&text, &facts());
    // A build without optimisation on a busy machine; looking for each path from the line's start takes minutes.
    let time = worked() - began;
    assert!(time.as_secs() < 40, "{time:?}");
}

#[test]
fn p59_a_step_that_only_names_a_file_is_not_said_to_produce_it() {
    let text = plan(&[
        (&["CHANGE.md"], "Think.", "test -f one.txt"),
        (&[], "Look after the change that `CHANGE.md` describes.", "test -f two.txt"),
    ]);
    let codes: Vec<Code> =
        places(&text, &missing(&["CHANGE.md"])).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [P201]);
}

#[test]
fn a_file_that_the_step_which_seems_to_make_it_is_given_has_to_be_there_first() {
    let text = plan(&[
        (&["CHANGE.md"], "Make the branch.", "test -f one.txt"),
        (&["CHANGE.md"], "Make the change that `CHANGE.md` describes.", "test -f two.txt"),
    ]);
    let found = found_with(&text, &missing(&["CHANGE.md"]));
    let found: Vec<(Code, &str)> = found
        .iter()
        .filter(|found| matches!(found.code, P201 | P203 | P212))
        .map(|found| (found.code, found.help.as_deref().unwrap_or_default()))
        .collect();
    let help =
        "write the file before the run, mend the path, or let an earlier step's contract test for the file";
    assert_eq!(found, [(P201, help), (P201, help)]);
}
