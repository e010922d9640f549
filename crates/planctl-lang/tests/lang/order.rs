//! The order of steps by the files they make and read: what is needed, what makes it, and what only a later step does.

use crate::sample::{facts, found, found_with};
use planctl_lang::Code::{P108, P201, P203, P204, P211, P212};
use planctl_lang::{Code, Diagnostic, Facts, FileFact, Severity, Source, parse, wants};

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
        assert_eq!(found_with(&mended, &facts), [], "{mended}");
        let titles: Vec<String> =
            parse(&Source::new("p", &*mended)).0.steps.into_iter().map(|step| step.title.value).collect();
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
    // What is there, or nobody said anything about, is no finding.
    assert_eq!(places(&text, &there(&["docs/api.md", "tests/all.sh"])), []);
    assert_eq!(found(&text), []);
    let source = Source::new("p", &*text);
    let wants = wants(&source, &parse(&source).0);
    assert!(wants.files.contains("docs/api.md"), "it has to be asked for: {:?}", wants.files);
}

#[test]
fn a_step_that_may_edit_its_own_judge_is_a_warning() {
    let edits = [
        ("Make the tests in `tests/a.py` pass.", "uv run pytest tests/a.py -x", "tests/a.py"),
        ("Change `check.sh` until it passes.", "./check.sh", "./check.sh"),
        ("Update `tests/auth/b.py`.", "pytest tests/auth/", "tests/auth/"),
    ];
    for (task, contract, judge) in edits {
        let text = plan(&[(&[], task, contract)]);
        let path = task.split('`').nth(1).unwrap();
        let expected = (P108, vec![judge.to_owned(), path.to_owned()]);
        assert_eq!(places(&text, &there(&[path])), [expected], "{task}");
        let help = one(&text, &there(&[path]), P108).help.unwrap();
        assert!(help.starts_with(&format!("add `**protects:** {path}`")), "{help}");
        let protected =
            text.replace("**target:** coder", &format!("**protects:** {path}\n**target:** coder"));
        assert_eq!(places(&protected, &there(&[path])), [], "{task}");
    }
    let given = plan(&[(&["repro.sh"], "Fix it.", "bash repro.sh")]);
    assert_eq!(
        places(&given, &there(&["repro.sh"])),
        [(P108, vec!["repro.sh".to_owned(), "file:repro.sh".to_owned()])]
    );
}

#[test]
fn what_a_step_makes_its_contract_may_look_at() {
    let fine: [(&str, &str); 6] = [
        ("Write `check.sh`.", "bash check.sh"),
        ("Write `a.md`.", "test -f a.md && grep -q x a.md"),
        ("Change `slug.sh`.", "bash slug.sh x | grep -q y"),
        ("Change `lib.sh`.", "bash -n lib.sh"),
        ("Fix `src/a.py`.", "uv run ruff check src/ && pytest tests/"),
        ("Fix it.", "bash tests/run.sh"),
    ];
    for (task, contract) in fine {
        let text = plan(&[(&[], task, contract)]);
        let path = task.split('`').nth(1).unwrap_or("tests/run.sh");
        let facts = if task.starts_with("Write") { missing(&[path]) } else { there(&[path]) };
        assert_eq!(places(&text, &facts), [], "{task} {contract}");
    }
}

#[test]
fn what_a_step_protects_is_not_its_own_to_change() {
    let text = plan(&[(&["repro.sh"], "Change `src/a.py` until `repro.sh` passes.", "bash repro.sh")]);
    let own = |text: &str| {
        let source = Source::new("p", text);
        let graph = planctl_lang::verify(&source, &facts(), &planctl_lang::Levels::default()).graph.unwrap();
        graph.task(&planctl_engine::NodeId::new("1")).unwrap().own_files.clone()
    };
    assert_eq!(own(&text).into_iter().collect::<Vec<_>>(), ["repro.sh", "src/a.py"]);
    let protected = text.replace("**target:** coder", "**protects:** repro.sh\n**target:** coder");
    assert_eq!(own(&protected).into_iter().collect::<Vec<_>>(), ["src/a.py"]);
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
    assert!(wants(&source, &parse(&source).0).files.contains("docs/cafe\u{301}.md"));
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
    let began = std::time::Instant::now();
    assert_eq!(found_with(&text, &facts).len(), 1_001);
    // A build without optimisation on a busy machine; comparing all with all takes many minutes.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
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
