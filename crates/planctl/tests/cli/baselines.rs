//! Approved content stays approved: protected files over insertions, edits and re-approvals.

use crate::fixture::{Fixture, git, plan};

/// A check that nobody meets by doing nothing.
const STRICT: &str = "test -e fixed\n";

/// Weakens the check of step 2 in step 1, and proposes a step that reads well.
fn laundering(proposal: &str) -> String {
    format!(
        r####"touch done-$PLANCTL_STEP; [ $PLANCTL_STEP = 1 ] || exit 0; [ -e said ] && exit 0; touch said; echo true >check.sh
cat > "$PLANCTL_RESULT_FILE" <<'END'
{{"planctl": "result/1", "text": "A changelog is needed.", "insert_step": "{proposal}"}}
END"####
    )
}

const CHANGELOG: &str = r"### Changelog\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0";

fn two_steps(fixture: &Fixture) {
    fixture.write("check.sh", STRICT);
    let steps = [("Find", "test -e done-1", "escalate"), ("Mend", "bash check.sh", "escalate")];
    fixture.write("p.md", &plan("Mend it", "5 minutes", &steps));
}

fn run(fixture: &Fixture, words: &[&str], worker: &str) -> crate::fixture::Said {
    let all: Vec<&str> = ["plan", "run", "p.md", "--no-wait", "--exec", worker]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    fixture.planctl(&all)
}

#[test]
fn hole_2_an_inserted_step_launders_no_weakened_check() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    let said = run(&fixture, &["--approve"], &laundering(CHANGELOG));
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]);
    for words in [
        "step 2 added: Changelog",
        "step 2 is now step 3: Mend",
        "may change no protected file",
        "protected file check.sh changed",
    ] {
        assert!(page.out.contains(words), "{words}: {}", page.out);
    }
    let said = fixture.planctl(&["approvals", "approve", &ask]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("contract=tampered"), "{said:?}");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    // The honest twin: a file that the worker put back is judged.
    fixture.write("check.sh", STRICT).write("fixed", "");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let done = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn hole_1_a_proposal_with_an_open_comment_is_not_put_into_the_plan() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    let said = run(&fixture, &["--approve"], &laundering(&format!(r"{CHANGELOG}\n\n<!--")));
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains("leaves a comment or a fence open"), "{page}");
    let said = fixture.planctl(&["approvals", "approve", &ask]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(fixture.read("p.md").contains("bash check.sh") && !fixture.read("p.md").contains("Changelog"));
}

#[test]
fn a_proposed_step_that_names_the_judge_of_a_later_step_is_told() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    let proposal = CHANGELOG.replace("do it", "Change check.sh.");
    let said = run(&fixture, &["--approve"], &laundering(&proposal));
    assert_eq!(said.code, 3, "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(page.contains("it may change protected files, by which steps are judged: check.sh"), "{page}");
}

#[test]
fn hole_2_a_tampered_file_does_not_become_the_baseline_of_the_next_run() {
    let fixture = Fixture::new();
    fixture.write("check.sh", STRICT);
    fixture.write("p.md", &plan("Mend it", "5 minutes", &[("Mend", "bash check.sh", "escalate")]));
    let said = run(&fixture, &["--approve"], "echo true >check.sh");
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "cancel", "p-1"]).code, 0);
    for words in [
        &["plan", "approve", "p.md"][..],
        &["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "true"],
    ] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 5, "{said:?}");
        for words in [
            "protected files differ from what was approved last: check.sh changed",
            "--accept-changed check.sh@",
        ] {
            assert!(said.err.contains(words), "{words}: {said:?}");
        }
    }
    // A digest that is not the one that is there accepts nothing; the right one does, and so does the name alone.
    let wrong = fixture.planctl(&["plan", "approve", "p.md", "--accept-changed", "check.sh@000000"]);
    assert_eq!(wrong.code, 5, "{wrong:?}");
    let accepted = run(&fixture, &["--approve", "--accept-changed", "check.sh"], "true");
    assert_eq!(accepted.code, 0, "{accepted:?}");
    // Once it was accepted, nothing differs any more.
    let again = run(&fixture, &["--approve", "--again"], "true");
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn hole_2_an_answer_binds_the_files_that_its_ask_showed() {
    let fixture = Fixture::new();
    fixture.write("check.sh", STRICT);
    fixture.write("p.md", &plan("Mend it", "5 minutes", &[("Mend", "bash check.sh", "escalate")]));
    let said = run(&fixture, &[], "touch fixed");
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    assert!(page["will_run"]["digests"]["check.sh"].is_string(), "{page}");
    fixture.write("check.sh", "true\n");
    for words in [&["approvals", "approve", &ask][..], &["plan", "approve", "p.md"]] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 5, "{said:?}");
        assert!(said.err.contains("protected files changed since its ask was opened: check.sh"), "{said:?}");
    }
    // Handed in anew it is asked anew, with the file as it is.
    let said = run(&fixture, &[], "touch fixed");
    assert_eq!(said.code, 3, "{said:?}");
    let other = fixture.ask();
    assert_ne!(ask, other);
    assert_eq!(fixture.planctl(&["approvals", "approve", &other]).code, 0);
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn cheats_56_57_hole_8_what_appears_under_a_protected_pattern_is_seen_and_caches_are_not() {
    let protecting = |glob: &str, contract: &str| {
        plan("Mend it", "5 minutes", &[("Mend", contract, "retry(1), then escalate")])
            .replace("**target:** coder", &format!("**target:** coder\n**protects:** {glob}"))
    };
    for (glob, worker) in [
        ("conftest.py", "touch evil; ln -s evil conftest.py"),
        ("tests/**", "mv tests moved; ln -s moved tests; touch moved/new.py"),
        ("tests/**", "touch \"tests/$(printf '\\377')\""),
    ] {
        let fixture = Fixture::new();
        fixture.write("tests/one.sh", "true\n");
        fixture.write("p.md", &protecting(glob, "bash tests/one.sh"));
        let said = run(&fixture, &["--approve"], worker);
        assert_eq!(said.code, 3, "{worker}: {said:?}");
        assert!(said.err.contains("contract=tampered"), "{worker}: {said:?}");
    }
    let fixture = Fixture::new();
    let leaves =
        "cd tests; mkdir -p __pycache__; echo $$ >__pycache__/one.pyc; echo $$ >.coverage; test -e ../fixed";
    fixture.write("tests/one.sh", &format!("{leaves}\n"));
    fixture.write("p.md", &protecting("tests/**", "bash tests/one.sh"));
    // Its contract fails at first and leaves files behind; that is not the worker's tampering.
    let worker = "mkdir -p tests/__pycache__; touch tests/__pycache__/two.pyc; [ $PLANCTL_ATTEMPT = 1 ] || touch fixed";
    let done = run(&fixture, &["--approve"], worker);
    assert_eq!(done.code, 0, "{done:?}");
    let again = run(&fixture, &["--approve", "--again"], worker);
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn a_tampered_ask_shows_the_difference_and_is_answered_by_allow_or_restore() {
    // Each worker counts its turns, and the second one that works does what is right.
    let worker = "cat >prompt-$PLANCTL_ATTEMPT; echo x >>turns; touch fixed; [ $PLANCTL_ATTEMPT != 1 ] || echo '# formatted' >>check.sh";
    let stuck = || {
        let fixture = Fixture::new();
        fixture.write("check.sh", STRICT);
        fixture.write("p.md", &plan("Mend it", "5 minutes", &[("Mend", "bash check.sh", "escalate")]));
        let said = run(&fixture, &["--approve"], worker);
        assert_eq!(said.code, 3, "{said:?}");
        let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
        for words in ["+# formatted", "planctl approvals allow", "planctl approvals restore"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        fixture
    };
    let allowed = stuck();
    let wrong = allowed.planctl(&["approvals", "allow", &allowed.ask(), "other.sh"]);
    assert_eq!(wrong.code, 5, "{wrong:?}");
    let said = allowed.planctl(&["approvals", "allow", &allowed.ask(), "check.sh", "--note", "a formatter"]);
    assert_eq!(said.code, 0, "{said:?}");
    let done = allowed.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(allowed.read("turns"), "x\n", "nobody works again");
    assert_eq!(allowed.status()["steps"][0]["attempts"], 2);
    assert_eq!(allowed.planctl(&["audit", "@last"]).code, 0);

    // Only that content was allowed.
    let other = stuck();
    // The only open ask needs no number.
    assert_eq!(other.planctl(&["approvals", "allow"]).code, 0);
    other.write("check.sh", "true\n");
    let again = other.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(again.code, 3, "{again:?}");
    assert!(again.err.contains("contract=tampered"), "{again:?}");

    let restored = stuck();
    let said = restored.planctl(&["approvals", "restore", &restored.ask()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(restored.read("check.sh"), STRICT);
    let done = restored.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(restored.read("turns"), "x\nx\n");
    let prompt = restored.read("prompt-2");
    assert!(
        prompt.contains("the approved content of check.sh") && prompt.contains("test -e fixed"),
        "{prompt}"
    );
    assert_eq!(restored.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn a_file_that_a_worker_created_under_a_protected_pattern_is_removed_by_restore() {
    let fixture = Fixture::new();
    fixture.write("tests/one.sh", STRICT);
    let text = plan("Mend it", "5 minutes", &[("Mend", "test -e fixed", "escalate")])
        .replace("**target:** coder", "**target:** coder\n**protects:** tests/**");
    fixture.write("p.md", &text);
    let worker = "touch fixed; [ $PLANCTL_ATTEMPT != 1 ] || touch tests/conftest.py";
    assert_eq!(run(&fixture, &["--approve"], worker).code, 3);
    assert_eq!(fixture.planctl(&["approvals", "restore", &fixture.ask()]).code, 0);
    assert!(!fixture.path("tests/conftest.py").exists() && fixture.path("tests/one.sh").exists());
    let done = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn hole_2_an_approval_shows_which_protected_files_are_not_as_head_has_them() {
    let fixture = Fixture::new();
    let work = fixture.path("");
    fixture.write("check.sh", STRICT).write("other.sh", "true\n");
    fixture.write(
        "p.md",
        &plan("Mend it", "5 minutes", &[("Mend", "bash check.sh && bash other.sh", "escalate")]),
    );
    git(&work, &["init", "--quiet"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "--quiet", "-m", "one"]);
    // Files of a worker that hide themselves from git.
    fixture.write("check.sh", "true\n");
    git(&work, &["update-index", "--assume-unchanged", "check.sh"]);
    let said = run(&fixture, &[], "touch fixed");
    assert_eq!(said.code, 3, "{said:?}");
    let words = "protected file check.sh is not as HEAD has it";
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(page.contains(words) && !page.contains("other.sh is not as HEAD"), "{page}");
    let page = fixture.json(&["approvals", "show", &fixture.ask(), "--json"]);
    assert_eq!(page["uncommitted"], serde_json::json!(["check.sh"]));
    let said = fixture.planctl(&["plan", "approve", "p.md"]);
    assert!(said.code == 0 && said.err.contains(words), "{said:?}");
}

#[test]
fn a_protected_plan_file_is_compared_without_the_marks_that_planctl_draws() {
    let steps = [
        ("Begin", "grep -q Finish p.md && test -e done-1", "escalate"),
        ("Finish", "test -e done-2", "escalate"),
    ];
    let text = plan("Mend it", "5 minutes", &steps).replacen(
        "**target:** coder",
        "**target:** coder\n**protects:** *.md",
        1,
    );
    let worker = "touch done-$PLANCTL_STEP";
    let fixture = Fixture::new();
    fixture.write("p.md", &text);
    for words in [&["--approve"][..], &["--approve", "--again"]] {
        let done = run(&fixture, words, worker);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(fixture.read("p.md").contains("### 1. ✅ Begin"), "{}", fixture.read("p.md"));
        assert!(!done.err.contains("p.md changed"), "{done:?}");
    }
    // Another text is tampering, and the text that was approved can be put back.
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &text.replacen("grep -q Finish", "grep -q Nothing-more", 1).replacen("done-1", "mended", 1),
    );
    let tampers = "touch done-$PLANCTL_STEP; [ -e mended ] || echo Nothing-to-do >>p.md; touch mended";
    let said = run(&fixture, &["--approve"], tampers);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("contract=tampered"), "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains("+Nothing-to-do"), "{page}");
    assert_eq!(fixture.planctl(&["approvals", "restore", &ask]).code, 0);
    assert!(!fixture.read("p.md").contains("Nothing-to-do"), "{}", fixture.read("p.md"));
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fixture.read("p.md").contains("### 1. ✅ Begin"), "{}", fixture.read("p.md"));
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    // planctl writes no other status than its own words, and no such line in a step.
    for words in ["status: all reviewed", "status: draft\n**status:** all reviewed"] {
        let fixture = Fixture::new();
        fixture.write("p.md", &text.replacen("grep -q Finish", "grep -q 'all reviewed'", 1));
        let edit = format!("touch done-1; sed -i 's/^status: .*/{}/' p.md", words.replace('\n', "\\n"));
        let said = run(&fixture, &["--approve"], &edit);
        assert_eq!(said.code, 3, "{words}: {said:?}");
        assert!(said.err.contains("contract=tampered"), "{words}: {said:?}");
    }
}

#[test]
fn marks_in_a_protected_plan_that_is_carried_out_and_in_a_link_to_a_plan_are_no_tampering() {
    let fixture = Fixture::new();
    let inner = plan("Inner", "5 minutes", &[("In", "test -e in-done", "escalate")]);
    let sub = "### 1. Sub\n\n**type:** sub-plan\n**plan:** sub/in.md\n**approval:** inherit\n\n### 2. After";
    let outer = plan("Outer", "5 minutes", &[("After", "test -e after", "escalate")])
        .replace("**target:** coder", "**target:** coder\n**protects:** sub/**, docs/**")
        .replace("### 1. After", sub);
    fixture.write("sub/in.md", &inner).write("p.md", &outer).write("docs/note.txt", "");
    std::os::unix::fs::symlink("../p.md", fixture.path("docs/current.md")).unwrap();
    // The gate comes when marks are drawn in both.
    let worker = "[ $PLANCTL_STEP = 2 ] || exec touch in-done; touch after; \
                  until grep -q '✅ In' sub/in.md && grep -q '⏳ After' p.md; do sleep 0.05; done";
    let done = run(&fixture, &["--approve"], worker);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fixture.read("sub/in.md").contains("✅ In"), "{}", fixture.read("sub/in.md"));
}

#[test]
fn what_a_contract_made_and_a_person_keeps_is_not_removed() {
    let protecting = |contract: &str| {
        plan("Make it", "5 minutes", &[("Make", contract, "escalate")])
            .replace("**target:** coder", "**target:** coder\n**protects:** tests/**")
    };
    let after_a_first_run = || {
        let fixture = Fixture::new();
        git(&fixture.path(""), &["init", "--quiet"]);
        fixture.write("mk.sh", "mkdir -p tests && echo snap >tests/snap.txt && echo $$ >tests/.coverage\n");
        fixture.write("p.md", &protecting("bash mk.sh && test -e out.txt"));
        let done = run(&fixture, &["--approve"], "touch out.txt");
        assert_eq!(done.code, 0, "{done:?}");
        fixture
    };
    let second = |fixture: &Fixture, contract: &str| {
        fixture.write("q.md", &protecting(contract));
        let words = ["plan", "run", "q.md", "--no-wait", "--approve", "--exec", "touch out2.txt"];
        let done = fixture.planctl(&words);
        assert_eq!(done.code, 0, "{done:?}");
    };
    let reading = "test -e out2.txt && grep -q snap tests/snap.txt";
    let committed = after_a_first_run();
    git(&committed.path(""), &["add", "tests/snap.txt"]);
    git(&committed.path(""), &["commit", "--quiet", "-m", "one"]);
    second(&committed, reading);
    assert_eq!(committed.read("tests/snap.txt"), "snap\n");
    assert_eq!(committed.planctl(&["audit", "@last"]).code, 0);

    // A file that nobody has committed is a person's where the contract of another plan names it.
    let named = after_a_first_run();
    second(&named, reading);
    assert_eq!(named.read("tests/snap.txt"), "snap\n");

    // Any other one is left over.
    let left = after_a_first_run();
    second(&left, "test -e out2.txt && test -z \"$(ls -A tests)\"");
}
