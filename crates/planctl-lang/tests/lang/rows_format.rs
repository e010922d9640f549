//! The bad-input catalogue, rows 1 to 43 and 57 to 66: the form of a plan's text, and the findings about it.

use crate::properties::worked;
use crate::sample::{Expected, PLAN, expect, found, is_verified, with};
use planctl_lang::Code::{
    P001, P002, P004, P005, P006, P007, P008, P009, P010, P011, P013, P014, P015, P016, P020,
};
use planctl_lang::Severity::{Error, Note, Warning};
use planctl_lang::{Code, Diagnostic, Reach, Severity, Source, Verification, apply_fixes, digest};

fn expected(code: Code, level: Severity, says: &'static str, line: usize) -> Expected {
    Expected { code, level, says, line }
}

#[test]
fn an_exit_code_before_its_contract_is_not_lost() {
    let text = crate::sample::with(
        "**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n",
        "**exit_code:** 3\n**contract:**\n```shell\ntest -f one.txt\n```\n",
    );
    let (tree, _) = planctl_lang::parse(&planctl_lang::Source::new("plan.md", text.as_str()));
    let contract = tree.steps[0].node.contract.as_ref().unwrap();
    assert_eq!(contract.exit_code.as_ref().map(|code| code.value), Some(3));
    let twice = text.replacen("```\n", "```\nexit_code == 1\n", 1);
    let found = found(&twice);
    assert!(
        found.iter().any(|found| found.message.contains("exit_code") && found.spans.len() == 2),
        "{found:?}"
    );
}

#[test]
fn the_plan_that_the_rows_change_has_no_finding() {
    assert_eq!(found(PLAN), []);
    assert!(is_verified(PLAN));
}

#[test]
fn row_01_an_empty_file_is_said_to_have_no_content() {
    let refused = Source::from_bytes("plan.md", Vec::new()).expect_err("an empty file is no plan");
    let verification = Verification::unreadable(&refused);
    assert_eq!(verification.diagnostics[0].message, "the file has no content");
    assert!(!verification.is_verified());
}

#[test]
fn row_02_a_missing_frontmatter_is_shown_with_a_sample() {
    let text = &PLAN[PLAN.find("# Make").unwrap()..];
    let missing = expect(text, &expected(P001, Error, "line 1 must be `---`", 1));
    assert_eq!(missing.help.unwrap().lines().count(), 6);
}

#[test]
fn row_03_an_unclosed_frontmatter_names_where_it_starts() {
    let text = with("owner: orchestrator\n---\n", "owner: orchestrator\n");
    expect(&text, &expected(P001, Error, "starts at line 1, and no closing `---`", 1));
}

#[test]
fn row_04_another_type_is_refused() {
    expect(&with("type: plan", "type: spec"), &expected(P001, Error, "must be `plan`, and is `spec`", 2));
}

#[test]
fn row_05_a_missing_type_is_named() {
    expect(&with("type: plan\n", ""), &expected(P001, Error, "no `type`", 1));
}

#[test]
fn row_06_an_unknown_status_is_a_warning_with_the_six_values() {
    let text = with("status: draft", "status: aproved");
    let unknown = expect(&text, &expected(P002, Warning, "unknown status `aproved`", 3));
    assert!(
        unknown.notes[0].contains("draft, verified, approved, in-progress, done, failed; planctl sets them")
    );
    assert!(unknown.help.unwrap().starts_with("did you mean `approved`?"));
    assert!(is_verified(&text));
}

#[test]
fn row_07_a_status_that_planctl_did_not_write_is_ignored_with_a_warning() {
    let text = with("status: draft", "status: done");
    expect(&text, &expected(P006, Warning, "ignored", 3));
    assert!(is_verified(&text));
}

// Planctl drew a mark, and then warned of its own.
#[test]
fn a_mark_is_ours_where_the_frontmatter_has_no_line_for_the_status() {
    let text = with("status: draft\n", "").replace("### 1. ", "### 1. ✅ ");
    let told = expect(&text, &expected(P006, Note, "ignored: the database is the record", 14));
    assert!(told.fix.is_none() && is_verified(&text));
    let bare = text.split_once("---\n\n").unwrap().1;
    assert!(found(bare).iter().any(|found| found.code == P006 && found.fix.is_some()));
}

#[test]
fn a_title_behind_a_byte_order_mark_is_one() {
    let bare = format!("\u{feff}{}", PLAN.split_once("---\n\n").unwrap().1);
    let told = found(&bare);
    assert!(told.iter().all(|found| found.code != P007), "{told:?}");
    let source = Source::new("plan.md", bare.as_str());
    assert_eq!(planctl_lang::format(&source), bare);
    let mended = apply_fixes(&source, &told, Reach::Safe).unwrap();
    assert!(mended.starts_with("---\ntype: plan\nstatus: draft\n---\n\n# Make two files\n"), "{mended}");
}

#[test]
fn row_08_a_key_given_twice_names_both_lines() {
    let twice =
        expect(&with("owner:", "type: plan\nowner:"), &expected(P001, Error, "`type` is given twice", 4));
    assert_eq!(twice.spans[1].text, "first on line 2");
}

#[test]
fn row_09_an_unknown_key_is_kept_with_a_suggestion() {
    let text = with("owner:", "ownr: me\nowner:");
    let unknown = expect(&text, &expected(P002, Warning, "unknown frontmatter key `ownr`", 4));
    assert_eq!(unknown.help.as_deref(), Some("did you mean `owner`?"));
    let unknown = expect(&with("owner:", "budgett: 1\nowner:"), &expected(P002, Warning, "`budgett`", 4));
    assert!(unknown.help.unwrap().contains("**Budget:**"));
    assert!(is_verified(&text));
}

#[test]
fn row_10_an_empty_owner_is_an_error() {
    for owner in ["owner:", "owner: \"\""] {
        expect(&with("owner: orchestrator", owner), &expected(P001, Error, "`owner` is empty", 4));
    }
}

#[test]
fn row_11_a_tab_in_the_frontmatter_is_named_with_its_column() {
    let tab = expect(&with("owner:", "\towner:"), &expected(P001, Error, "column 1", 4));
    assert_eq!(tab.spans[0].text, "this is a tab");
}

#[test]
fn row_11_one_mistake_in_the_frontmatter_is_one_finding() {
    for owner in ["owner: [a, b", "owner: *x", "owner: \"a"] {
        let all = found(&with("owner: orchestrator", owner));
        assert_eq!(all.len(), 1, "{owner}: {all:?}");
        assert_eq!(all[0].code, P001);
    }
}

#[test]
fn frontmatter_values_are_text_and_tags_anchors_and_aliases_are_refused() {
    assert!(is_verified(&with("owner: orchestrator", "owner: no")));
    for owner in ["owner: !!str x", "owner: &a x", "owner: [a, b]", "owner: {a: b}"] {
        assert!(found(&with("owner: orchestrator", owner)).iter().any(|found| found.code == P001), "{owner}");
    }
}

#[test]
fn row_12_a_plan_without_steps_section_says_where_it_was_looked_for() {
    let missing = expect(&with("## Steps\n", "\n"), &expected(P007, Error, "no `## Steps` section", 7));
    assert!(missing.spans[0].text.contains("to the end of the file"));
}

#[test]
fn row_12_a_section_that_is_nearly_steps_is_named() {
    let near = expect(
        &with("## Steps", "## Stpes"),
        &expected(P007, Error, "no `## Steps` section, but `## Stpes`", 13),
    );
    assert_eq!(near.help.as_deref(), Some("did you mean `## Steps`?"));
    // A section within the steps is not the one that was meant.
    let within =
        PLAN.replace("## Steps\n", "").replace("Make `two.txt` from it.", "Make `two.txt`.\n\n#### Stops\n");
    assert_eq!(
        expect(&within, &expected(P007, Error, "no `## Steps` section", 7)).message,
        "the plan has no `## Steps` section"
    );
}

#[test]
fn row_12_headings_with_a_line_below_them_are_named_and_mended() {
    let text = with("# Make two files", "Make two files\n=====").replace("## Steps\n", "Steps\n-----\n");
    let all: Vec<_> = found(&text).into_iter().filter(|found| found.code == P007).collect();
    let written: Vec<&str> =
        all.iter().map(|found| found.fix.as_ref().unwrap().edits[0].replacement.as_str()).collect();
    assert_eq!(written, ["# Make two files", "## Steps"], "{all:?}");
    assert!(all.iter().all(|found| found.spans[0].text == "a heading with a line below it is not read"));
}

#[test]
fn row_13_a_steps_section_without_a_step_is_an_error() {
    let text = &PLAN[..PLAN.find("### 1.").unwrap()];
    expect(text, &expected(P007, Error, "no step", 13));
}

#[test]
fn row_14_a_gap_in_the_numbers_is_a_warning() {
    let text = with("### 2.", "### 3.");
    expect(&text, &expected(P014, Warning, "expected step 2, found 3", 28));
    assert!(is_verified(&text));
}

#[test]
fn row_15_a_number_used_twice_names_both_lines() {
    let twice = expect(&with("### 2.", "### 1."), &expected(P013, Error, "step 1 is there twice", 28));
    assert_eq!(twice.spans[1].text, "first on line 15");
}

#[test]
fn row_16_the_first_step_is_one() {
    let zero = PLAN.replace("### 1.", "### 0.").replace("### 2.", "### 1.");
    expect(&zero, &expected(P014, Error, "the first step must be 1", 15));
    let text = PLAN.replace("### 2.", "### 3.").replace("### 1.", "### 2.");
    expect(&text, &expected(P014, Warning, "the first step must be 1, and is 2", 15));
}

#[test]
fn row_17_a_number_beyond_all_bounds_is_a_range_error() {
    expect(&with("### 2.", "### 99999999999999999999."), &expected(P008, Error, "too large", 28));
}

#[test]
fn row_18_a_step_without_title_is_an_error() {
    expect(&with("### 1. Make one", "### 1."), &expected(P009, Error, "no title", 15));
}

#[test]
fn row_19_a_title_has_a_limit() {
    let text = with("Make one", &"x".repeat(5_000));
    expect(&text, &expected(P008, Error, "5000 characters, and the limit is 200", 15));
}

fn is_mended(heading: &str) {
    let text = with("### 1. Make one", heading);
    let drift = expect(&text, &expected(P005, Warning, "is written `### 1. Title`", 15));
    let fix = drift.fix.expect("drift has a fix").edits.remove(0);
    let mut mended = text.clone();
    mended.replace_range(fix.span.start..fix.span.end, &fix.replacement);
    assert_eq!(mended, PLAN, "{heading}");
    assert!(is_verified(&text), "{heading}");
}

#[test]
fn row_20_a_heading_of_another_level_is_read_with_a_warning_and_a_fix() {
    is_mended("#### 1. Make one");
    is_mended("## 1. Make one");
}

#[test]
fn row_21_a_number_in_another_form_is_read_with_a_warning_and_a_fix() {
    for heading in ["### 1) Make one", "###1. Make one", "### Step 1: Make one", "### 1: Make one"] {
        is_mended(heading);
    }
}

#[test]
fn row_22_a_missing_target_is_an_error() {
    let missing =
        expect(&with("**target:** coder\n", ""), &expected(P009, Error, "step 1: target is missing", 15));
    assert_eq!(missing.notes, ["the roles are coder, reviewer"]);
    expect(&with("**target:** coder", "**target:**\n"), &expected(P009, Error, "`**target:**` is empty", 17));
}

#[test]
fn a_guard_that_is_asked_to_be_red_first_is_a_contradiction() {
    let both = |policy: &str| {
        with("**on_fail:**", &format!("**guard:** yes\n**red_first:** {policy}\n**on_fail:**"))
    };
    let says = "`red_first: deny` has no effect on a step that is a guard";
    let idle = found(&both("deny")).into_iter().find(|found| found.message == says).unwrap();
    assert_eq!((idle.code, idle.level, idle.spans.len()), (P015, Warning, 2));
    assert_eq!(found(&both("off")), []);
    assert_eq!(found(&both("deny").replace("yes", "no")), []);
}

#[test]
fn row_23_two_targets_name_both_lines() {
    let text = with("**target:** coder\n", "**target:** coder\n**target:** reviewer\n");
    let twice = expect(&text, &expected(P009, Error, "`**target:**` is given twice", 18));
    assert_eq!(twice.spans[1].text, "first on line 17");
}

#[test]
fn row_26_a_missing_or_empty_task_is_an_error() {
    expect(&with("**task:**\nMake `one.txt`.\n", ""), &expected(P009, Error, "step 1: task is missing", 15));
    expect(&with("Make `one.txt`.\n", ""), &expected(P009, Error, "`**task:**` is empty", 18));
}

#[test]
fn row_27_a_missing_contract_is_an_error() {
    let text = with("**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n", "");
    expect(&text, &expected(P010, Error, "step 1 has no contract", 15));
}

#[test]
fn row_28_a_contract_without_a_fence_is_shown_the_fence() {
    let bare = "```shell\ntest -f one.txt\n```";
    for text in [with(bare, "test -f one.txt"), with(&format!("\n{bare}"), " `test -f one.txt`")] {
        let loose = expect(&text, &expected(P011, Error, "not in a code fence", 21));
        assert!(loose.help.unwrap().contains("```shell"));
    }
}

#[test]
fn row_29_an_empty_fence_is_no_contract() {
    expect(&with("test -f one.txt\n", ""), &expected(P010, Error, "the contract is empty", 22));
    expect(&with("test -f one.txt\n", "\n  \n"), &expected(P010, Error, "the contract is empty", 22));
}

#[test]
fn row_30_a_fence_of_comments_is_no_contract() {
    expect(&with("test -f one.txt\n", "# later\n"), &expected(P010, Error, "has only comments", 22));
}

#[test]
fn names_of_locks_are_names_and_no_paths_and_none_is_empty() {
    let locks = |line: &str| {
        with(
            "**contract:**\n```shell\ntest -f one.txt",
            &format!("**locks:** {line}\n**contract:**\n```shell\ntest -f one.txt"),
        )
    };
    for fine in ["a", "db/staging, printer-2", "a, b,"] {
        assert_eq!(found(&locks(fine)), [], "{fine}");
    }
    for (line, wrong) in
        [("../x", "../x"), ("a,,b", ""), (", a", ""), ("-a", "-a"), ("a b", "a b"), ("ä", "ä")]
    {
        let refused = found(&locks(line));
        assert_eq!(refused.len(), 1, "{line}: {refused:?}");
        let says = format!("`{wrong}` can't be the name of a lock");
        assert!(refused[0].code == P015 && refused[0].message == says, "{line}: {refused:?}");
    }
}

#[test]
fn row_31_two_contract_blocks_name_both_lines() {
    let text = with("exit_code == 0", "```shell\ntrue\n```\nexit_code == 0");
    let twice = expect(&text, &expected(P009, Error, "the contract is given twice", 25));
    assert_eq!(twice.spans[1].text, "first on line 22");
}

#[test]
fn row_32_an_open_fence_names_its_first_line_and_the_rest_is_still_read() {
    let open = with("test -f one.txt\n```\n", "test -f one.txt\n");
    expect(&open, &expected(P011, Error, "starts on line 22 is not closed", 22));
    assert_eq!(found(&open).len(), 1, "the rest of the plan is read as it was meant");
    let last = with("test -f two.txt\n```\n", "test -f two.txt\n");
    expect(&last, &expected(P011, Error, "starts on line 38 is not closed", 38));
}

#[test]
fn row_33_a_contract_in_another_language_is_refused() {
    let refused =
        expect(&with("```shell", "```python"), &expected(P011, Error, "can't be written in `python`", 22));
    assert!(refused.help.unwrap().contains("`shell`, `sh` or `bash`"));
    for opener in ["```bash", "```sh", "```", "~~~shell", "````shell"] {
        let close: String = opener.chars().take_while(|c| !c.is_alphabetic()).collect();
        let text = with("```shell\ntest -f one.txt\n```", &format!("{opener}\ntest -f one.txt\n{close}"));
        assert_eq!(found(&text), [], "{opener}");
    }
}

#[test]
fn row_33_a_language_that_is_nearly_a_shell_is_mended_and_another_shell_is_not() {
    let near = expect(&with("```shell", "```bsh"), &expected(P011, Error, "can't be written in `bsh`", 22));
    assert_eq!(near.help.as_deref(), Some("did you mean `bash`?"));
    for other in ["zsh", "dash", "fish", "python"] {
        let text = with("```shell", &format!("```{other}"));
        let refused = expect(&text, &expected(P011, Error, "can't be written in", 22));
        assert_eq!(refused.fix, None, "{other}");
        assert!(refused.help.unwrap().contains("called from bash"), "{other}");
    }
}

#[test]
fn row_36_a_contract_has_a_limit() {
    let large = "test -f one.txt && ".repeat(6_000) + "true && test -f x";
    expect(&with("test -f one.txt", &large), &expected(P008, Error, "limit is 16384", 22));
}

#[test]
fn row_37_control_and_invisible_characters_are_named_and_never_printed() {
    for (bad, name) in
        [("\0", "U+0000"), ("\u{1b}", "U+001B"), ("\u{202e}", "U+202E"), ("\u{200b}", "U+200B")]
    {
        let text = with("test -f one.txt", &format!("test{bad} -f one.txt"));
        let all = found(&text);
        let named = all.iter().find(|found| found.code == P004).expect("the character is reported");
        assert!(named.message.starts_with(name), "{}", named.message);
        let source = Source::new("plan.md", text);
        assert_eq!(source.position(named.spans[0].span.start).line, 23);
        assert!(!planctl_lang::render_all(&all, &source, false).contains(bad));
        let levels = planctl_lang::Levels::default();
        let report = planctl_lang::verify(&source, &crate::sample::facts(), &levels).report(&source);
        assert!(!serde_json::to_string(&report).unwrap().contains(bad));
    }
}

#[test]
fn row_38_a_missing_exit_code_is_a_note() {
    let text = with("exit_code == 0\n", "");
    expect(&text, &expected(P020, Note, "`exit_code == 0` applies", 22));
    assert!(is_verified(&text));
}

#[test]
fn row_39_an_exit_code_is_a_whole_number_after_two_equal_signs() {
    for line in ["== 256", "== -1", "== 0x0", "== zero", "= 0", "!= 0"] {
        let text = with("exit_code == 0", &format!("exit_code {line}"));
        let refused = expect(&text, &expected(P015, Error, "exit code", 25));
        assert!(refused.help.unwrap().contains("N a whole number from 0 to 255"), "{line}");
        assert_eq!(found(&text).len(), 1, "{line}");
    }
}

#[test]
fn row_40_a_missing_policy_names_its_default() {
    let text = with("**on_fail:** retry(2), then escalate\n", "");
    expect(&text, &expected(P020, Note, "`retry(2), then escalate` applies", 15));
}

fn is_refused(policies: &[&str], says: &'static str) {
    for policy in policies {
        let text = with("retry(2), then escalate", policy);
        let refused = expect(&text, &expected(P015, Error, says, 26));
        assert!(
            refused
                .help
                .expect("the grammar is shown")
                .contains("`retry(N), then <one of those>`, N from 1 to 20"),
            "{policy}"
        );
        assert_eq!(found(&text).len(), 1, "{policy}");
    }
}

#[test]
fn row_41_retries_are_a_whole_number_from_1_to_20() {
    is_refused(
        &["retry(-1)", "retry(0)", "retry(1e3)", "retry()", "retry(9999)", "retry(two)"],
        "from 1 to 20",
    );
}

#[test]
fn row_42_a_policy_out_of_order_is_shown_the_grammar() {
    let wrong = ["retry 2 then escalate", "escalate, then retry(1)", "retry(1), then retry(2)"];
    is_refused(&wrong, "`**on_fail:**` can't be read");
}

#[test]
fn row_42_the_word_that_is_wrong_is_pointed_at() {
    for (policy, part, meant) in [
        ("retry(2), then esclate", "esclate", "did you mean `retry(2), then escalate`?"),
        ("retyr(2), then abort", "retyr(2)", "did you mean `retry(2), then abort`?"),
        ("retry(99), then abort", "retry(99)", "write `retry(N)`"),
        ("retry(1), then retry(2)", "retry(2)", "write `retry(N)`"),
        ("retry(2) -> escalate", "-> escalate", "write `retry(N)`"),
    ] {
        let text = with("retry(2), then escalate", policy);
        let refused = expect(&text, &expected(P015, Error, "`**on_fail:**` can't be read", 26));
        let at = refused.spans[0].span;
        assert_eq!(&text[at.start..at.end], part);
        assert!(refused.help.as_ref().unwrap().starts_with(meant), "{policy}: {:?}", refused.help);
    }
}

#[test]
fn row_43_an_unknown_policy_is_shown_the_list() {
    is_refused(&["ignore"], "`ignore` is not a policy");
}

#[test]
fn a_policy_without_end_is_a_warning_with_a_fix() {
    let open = expect(
        &with("retry(2), then escalate", "retry(2)"),
        &expected(P016, Warning, "a person is asked", 26),
    );
    assert_eq!(open.fix.unwrap().edits[0].replacement, "retry(2), then escalate");
}

#[test]
fn row_56_an_unknown_field_has_a_suggestion() {
    let text = with("**contract:**", "**contrct:**");
    let unknown = expect(&text, &expected(P015, Error, "unknown field `**contrct:**`", 21));
    let messages: Vec<_> = found(&text).into_iter().map(|found| found.message).collect();
    assert_eq!(messages, ["unknown field `**contrct:**`"], "one mistake, one finding");
    assert_eq!(unknown.help.as_deref(), Some("did you mean `**contract:**`?"));
}

#[test]
fn row_56_a_field_that_is_there_already_is_not_offered_a_second_time() {
    let text = with("**target:** coder", "**target:** coder\n**targt:** reviewer");
    let unknown = expect(&text, &expected(P015, Error, "unknown field `**targt:**`", 18));
    assert_eq!(unknown.fix, None);
    assert!(unknown.help.unwrap().ends_with("It is here already; delete one of the two"));
}

#[test]
fn row_57_fields_stand_in_any_order() {
    let text = with("**target:** coder\n**task:**", "**task:**");
    let text = text.replacen("**on_fail:** retry(2)", "**target:** coder\n**on_fail:** retry(2)", 1);
    assert_eq!(found(&text), []);
}

#[test]
fn row_58_line_ends_of_windows_are_read_and_count_in_the_digest() {
    let text = PLAN.replace('\n', "\r\n");
    assert_eq!(found(&text), []);
    let (unix, windows) = (Source::new("p", PLAN), Source::new("p", text));
    assert_ne!(digest(&unix), digest(&windows));
    let command =
        |source| planctl_lang::parse(source).0.steps[0].node.contract.as_ref().unwrap().command.clone();
    assert_eq!(command(&windows), command(&unix));
}

#[test]
fn row_59_a_byte_order_mark_is_accepted_with_a_note() {
    let text = format!("\u{feff}{PLAN}");
    expect(&text, &expected(P005, Note, "byte order mark", 1));
    assert!(is_verified(&text));
}

#[test]
fn row_62_a_plan_has_at_most_5000_steps() {
    let step = |number: usize| {
        format!(
            "### {number}. S\n**target:** coder\n**task:** t\n**contract:**\n```\ntest -f x\n```\n**on_fail:** skip\n\n"
        )
    };
    let head = &PLAN[..PLAN.find("### 1.").unwrap()];
    let most = head.replace("$1.50", "$500").replace("200k", "90M").replace("20 minutes", "9 hours")
        + &(1..=5_000).map(step).collect::<String>();
    assert!(is_verified(&most));
    let source = Source::new("plan.md", most + &step(5_001));
    let verification =
        planctl_lang::verify(&source, &crate::sample::facts(), &planctl_lang::Levels::default());
    assert!(
        verification
            .diagnostics
            .iter()
            .any(|found| found.code == P008 && found.message.contains("more than 5000"))
    );
    assert_eq!(verification.tree.steps.len(), 5_000);
}

#[test]
fn row_63_deep_nesting_is_read_in_a_blink() {
    let began = worked();
    for nested in [">".repeat(100_000), "- ".repeat(100_000), "[".repeat(100_000), "> \n".repeat(100_000)] {
        let text = with("Make `one.txt`.", &nested);
        let source = Source::new("plan.md", text);
        assert!(planctl_lang::parse(&source).0.steps.len() == 2);
    }
    // Four texts in a build without optimisation; a quadratic reader takes minutes.
    let time = worked() - began;
    assert!(time.as_secs() < 20, "{time:?}");
}

#[test]
fn row_66_an_equal_text_has_an_equal_digest() {
    assert_eq!(digest(&Source::new("a.md", PLAN)), digest(&Source::new("b.md", PLAN)));
}

#[test]
fn characters_that_look_like_others_are_errors_where_they_decide() {
    for script in
        ["test\u{a0}-f one.txt", "test –f one.txt", "grep “x” f", "test -f оne.txt", "ｔest -f one.txt"]
    {
        let text = with("test -f one.txt", script);
        assert!(found(&text).iter().any(|found| found.code == P004), "{script}");
    }
    for value in ["**target:** codеr", "**protects:** tеsts/**\n**target:** coder"] {
        assert!(found(&with("**target:** coder", value)).iter().any(|found| found.code == P004), "{value}");
    }
    // Quoted text is data, and words of other scripts are words.
    for script in ["grep -q '“x” – y' f", "grep -q привет f", "test -f größe.txt"] {
        assert!(!found(&with("test -f one.txt", script)).iter().any(|found| found.code == P004), "{script}");
    }
}

#[test]
fn rules_between_steps_are_no_text() {
    assert_eq!(
        found(
            &PLAN
                .replace("\n### 2.", "\n---\n\n### 2.")
                .replace("retry(2), then escalate\n", "retry(2), then escalate\n---\n")
        ),
        []
    );
}

#[test]
fn steps_out_of_order_are_an_error() {
    let third =
        PLAN[PLAN.find("### 2.").unwrap()..].replace("### 2.", "### 3.").replace("two.txt", "three.txt");
    let text = PLAN.replace("\n### 2.", &format!("\n{third}\n### 2."));
    let gaps: Vec<_> =
        found(&text).into_iter().filter(|found| found.code == P014).map(|found| found.message).collect();
    assert_eq!(gaps, ["expected step 2, found 3", "step 2 stands after step 3"]);
}

#[test]
fn a_flood_of_findings_is_cut_and_errors_come_first() {
    let text = with("**Priority:** high", &format!("**Priority:** high\n{}", "**abc:** x\n".repeat(3_000)));
    let all = found(&text.replace("### 2.", "### 1."));
    assert_eq!(all.len(), 1_001);
    assert_eq!(all.last().unwrap().message, "2001 more findings are not listed");
}

#[test]
fn code_in_prose_is_no_finding() {
    let text = with("**Priority:** high", "**Priority:** high\n\n```\nsome code\n```");
    assert_eq!(found(&text), []);
    let more = found(&(text + "\n## Notes\n\n```\nmore code\n```\n"));
    assert!(matches!(more.as_slice(), [only] if only.message.starts_with("the section `Notes`")), "{more:?}");
    let lost = with(
        "exit_code == 0\n**on_fail:** retry(2), then escalate",
        "exit_code == 0\n**on_fail:** escalate\n```\nlost\n```",
    );
    expect(&lost, &expected(P011, Error, "stands where no field takes one", 27));
}

#[test]
fn a_field_behind_a_bullet_is_not_read_and_that_is_said() {
    let hidden = expect(
        &with("**target:** coder", "- **target:** coder"),
        &expected(P015, Error, "behind a bullet", 17),
    );
    assert_eq!(hidden.help.as_deref(), Some("delete the bullet"));
    assert_eq!(
        found(&with("Make `one.txt`.", "- **Target:** make `one.txt`.")),
        [],
        "in the task it is text"
    );
}

#[test]
fn d9_d20_of_a_long_line_only_what_is_near_the_place_is_drawn() {
    let paths: String = (0..3_000).map(|at| format!("ghp_{at:036} é ")).collect();
    let text = with("Make `one.txt`.", &format!("Make `one.txt`: {paths}"));
    let source = Source::new("plan.md", &*text);
    let all = found(&text);
    assert!(all.len() > 500, "{}", all.len());
    let began = worked();
    for finding in &all {
        let drawn = finding.render(&source, false);
        assert!(drawn.len() < 6_000, "{drawn}");
        let position = source.position(finding.spans[0].span.start);
        let place = format!("--> plan.md:{}:{}\n", position.line, position.column);
        assert!(drawn.contains(&place), "{place}{drawn}");
        assert!(!drawn.contains("ghp_"), "{drawn}");
    }
    // A build without optimisation on a busy machine; drawing all of the line each time takes minutes.
    let time = worked() - began;
    assert!(time.as_secs() < 60, "{time:?}");
    let span = with("Make `one.txt`.", &format!("`{}\u{200b}`", "x".repeat(500_000)));
    let drawn = planctl_lang::render_all(&found(&span), &Source::new("plan.md", &*span), false);
    assert!(drawn.len() < 20_000, "{}", drawn.len());
}

fn told(text: &str) -> Vec<(Code, String)> {
    found(text).into_iter().map(|found| (found.code, found.message)).collect()
}

#[test]
fn d5_an_exit_code_inside_the_fence_is_read_and_moved_below_it() {
    let inside = with("test -f one.txt\n```\nexit_code == 0", "test -f one.txt\n\nexit_code == 0\n```");
    let all = found(&inside);
    let [drift] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((drift.code, drift.level), (Code::P005, Warning));
    let source = Source::new("plan.md", &*inside);
    let mended = planctl_lang::apply_fixes(&source, &all, planctl_lang::Reach::Safe).expect("a safe fix");
    assert_eq!(found(&mended), [], "{mended}");
    let both = with("test -f one.txt\n```", "test -f one.txt\nexit_code == 0\n```");
    assert_eq!(told(&both), [(Code::P009, "`exit_code` is given twice".to_owned())]);
    let variable = with("test -f one.txt", "exit_code=$?\ntest $exit_code -eq 0");
    assert_eq!(told(&variable), []);
}

#[test]
fn d6_lines_that_end_with_cr_alone_and_fields_in_comments_are_told() {
    let cr = PLAN.replace('\n', "\r");
    let all = told(&cr);
    assert_eq!(all, [(Code::P003, "the lines of the file end with CR alone, so it is one line".to_owned())]);
    let comment = with("**on_fail:** escalate\n", "**on_fail:** escalate\n\n<!--\n**needs:** 1\n-->\n");
    assert_eq!(
        told(&comment),
        [(Code::P015, "`**needs:**` stands in a comment, so it is not read".to_owned())]
    );
}

#[test]
fn d11_a_text_of_another_tool_gets_one_finding_that_shows_its_first_item_as_a_step() {
    for (text, marked) in [
        ("# Tasks\n\n- [ ] Add X\n- [x] Add Y\n", "- [ ] Add X"),
        ("1. Add X\n2. Add Y\n", "1. Add X"),
        ("# Plan\n\n## Add X\n\nText.\n", "## Add X"),
        ("Plan\n====\n\n1. Add X\n--------\n\n**target:** coder\n", "1. Add X"),
        ("---\nname: x\n---\n\n- [ ] Add X\n", "- [ ] Add X"),
    ] {
        let all = found(text);
        let none = all.iter().filter(|found| found.is_error()).collect::<Vec<_>>();
        let [none] = none.as_slice() else { panic!("{text}: {all:?}") };
        assert_eq!(none.code, Code::P007);
        let span = none.spans[0].span;
        assert_eq!(&text[span.start..span.end], marked);
        assert!(
            none.help.as_deref().is_some_and(|help| help.contains("### 1. Add X\n\n**target:** coder")),
            "{none:?}"
        );
    }
    let tasks = Source::new("tasks.json", r#"{"tasks": [{"id": 1}]}"#);
    let all =
        planctl_lang::verify(&tasks, &crate::sample::facts(), &planctl_lang::Levels::default()).diagnostics;
    let errors: Vec<Code> = all.iter().filter(|found| found.is_error()).map(|found| found.code).collect();
    assert_eq!(errors, [Code::P009], "{all:?}");
}

#[test]
fn d11_every_heading_without_a_number_is_told_and_tasks_with_one_are_steps() {
    let notes = "\n### Notes\n\nText.\n\n### More\n\n**target:** x\n\n#### Deeper\n\n### Last\n\n## Appendix\n\n### Free\n";
    let all = told(&format!("{PLAN}{notes}"));
    let mut messages: Vec<&str> = all.iter().map(|(_, message)| message.as_str()).collect();
    assert!(messages.pop().is_some_and(|last| last.starts_with("the section `Appendix`")), "{messages:?}");
    let unnumbered = |name: &str| format!("the heading `{name}` has no step number");
    assert_eq!(messages, [unnumbered("Notes"), unnumbered("More"), unnumbered("Last")]);
    let tasks = PLAN.replace("### 1. Make", "### Task 1: Make").replace("### 2. Make", "### Task 2: Make");
    let codes: Vec<Code> = told(&tasks).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::P005, Code::P005]);
}

#[test]
fn a_name_of_another_tool_is_told_with_the_field_that_it_means_and_nothing_is_missing_beside_it() {
    let text = with(
        "**target:** coder\n**task:**\nMake `one.txt`.\n\n**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n",
        "**role:** coder\n**description:** Make `one.txt`.\n**retries:** 3\n**check:**\n```bash\ntest -f one.txt\n```\n",
    )
    .replace("**subscriptions:**\n- file:one.txt\n", "**depends_on:** 1\n");
    let all = found(&text);
    let told: Vec<(&str, &str)> = all
        .iter()
        .filter(|found| found.level == Severity::Error)
        .map(|found| (found.message.as_str(), found.help.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            ("unknown field `**role:**`", "did you mean `**target:**`?"),
            ("unknown field `**description:**`", "did you mean `**task:**`?"),
            ("unknown field `**retries:**`", "did you mean `**on_fail:** retry(3)`?"),
            ("unknown field `**check:**`", "did you mean `**contract:**`?"),
            ("unknown field `**depends_on:**`", "did you mean `**needs:**`?"),
        ]
    );
    let mut mended = text.clone();
    for found in all.iter().rev().filter_map(|found| found.fix.as_ref()) {
        for edit in found.edits.iter().rev() {
            mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
        }
    }
    assert!(is_verified(&mended), "{mended}");
}

#[test]
fn text_after_the_steps_that_nobody_reads_is_told_with_its_line() {
    let text = format!("{PLAN}\n## Done when\n\nAll is green.\n\n### Really\n\nYes.\n\n## Risks\n\nNone.\n");
    let told: Vec<(Severity, usize, String)> = found(&text)
        .into_iter()
        .map(|found| {
            let line = text[..found.spans[0].span.start].lines().count() + 1;
            (found.level, line, found.message)
        })
        .collect();
    let says = |title: &str| {
        format!("the section `{title}` is for readers: no worker is given it, and nothing checks it")
    };
    assert_eq!(told, [(Severity::Note, 44, says("Done when")), (Severity::Note, 52, says("Risks"))]);
}

#[test]
fn d_06_a_step_whose_heading_has_a_line_below_it_is_named_with_the_line_to_type_and_mended() {
    for under in ["-------", "==="] {
        let text = with("### 2. Make two\n", &format!("2. Make two\n{under}\n"));
        let heading =
            expect(&text, &expected(P015, Error, "the heading `2. Make two` has a line below it", 28));
        assert_eq!(heading.help.as_deref(), Some("write `### 2. Make two`"));
        let all: Vec<Code> = found(&text).iter().map(|found| found.code).collect();
        assert_eq!(all, [P015], "nothing is said of the fields below it");
        let mended = apply_fixes(&Source::new("plan.md", text.as_str()), &found(&text), Reach::Safe);
        assert_eq!(mended.as_deref(), Some(crate::sample::PLAN));
    }
    let both =
        with("### 1. Make one\n", "1. Make one\n---\n").replace("### 2. Make two\n", "2. Make two\n---\n");
    let named: Vec<Diagnostic> = found(&both).into_iter().filter(|found| found.code == P015).collect();
    assert_eq!(named.len(), 2, "{named:?}");
    let list = with("Make `one.txt`.\n", "Do this:\n\n1. Make `one.txt`\n---\n");
    assert!(found(&list).iter().all(|found| found.code != P015), "a list of a task is no heading");
}

#[test]
fn d_06_fields_above_the_first_step_are_named_once() {
    let text = with("### 1. Make one\n\n", "");
    let headless = expect(&text, &expected(P015, Error, "`**target:**` belongs to no step", 15));
    assert_eq!(headless.help.as_deref(), Some("write the heading of its step above it: `### 1. Title`"));
}
