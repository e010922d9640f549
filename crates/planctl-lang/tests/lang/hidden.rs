//! Text that nothing would read: in a fence or a comment, indented like code, or a field that is not written as one. Nothing of
//! a plan is lost without a word.

use crate::sample::{PLAN, facts, with};
use planctl_lang::{Code, Diagnostic, Levels, Reach, Severity, Source, apply_fixes, verify};

fn findings(text: &str) -> Vec<Diagnostic> {
    verify(&Source::new("plan.md", text), &facts(), &Levels::default()).diagnostics
}

/// Returns the findings that are no notes, each with its line and column.
fn placed(text: &str) -> Vec<(Code, Severity, usize, usize, String)> {
    let source = Source::new("plan.md", text);
    let found = findings(text).into_iter().filter(|found| found.level != Severity::Note);
    let placed = found.map(|found| {
        let at = source.position(found.spans[0].span.start);
        (found.code, found.level, at.line, at.column, found.message)
    });
    placed.collect()
}

fn fixed(text: &str, reach: Reach) -> String {
    let mut text = text.to_owned();
    while let Some(better) = apply_fixes(&Source::new("plan.md", &*text), &findings(&text), reach) {
        text = better;
    }
    text
}

#[test]
fn lines_of_a_fence_in_flow_are_told_and_not_dropped() {
    let text = format!("{PLAN}\n## Flow\n\n```\n1 -> 2\n2 -> 1 on fail\n```\n");
    let message = "the lines in a code fence are no lines of `## Flow`, so nothing reads them".to_owned();
    assert_eq!(placed(&text), [(Code::P015, Severity::Error, 46, 1, message)]);
    let mended = fixed(&text, Reach::Unsafe);
    assert!(mended.ends_with("## Flow\n\n1 -> 2\n2 -> 1 on fail\n"), "{mended}");
    let drawn = text.replace("```\n1", "```mermaid\n1");
    assert_eq!(placed(&drawn).len(), 1);
    assert_eq!(fixed(&drawn, Reach::Unsafe), drawn, "other languages are left to their author");
}

#[test]
fn a_comment_that_is_not_closed_is_an_error_where_it_hides_a_part_of_the_plan() {
    let message = "this comment is not closed, so the rest of the file is a part of it".to_owned();
    let text = with("### 2. Make two", "<!-- later\n\n### 2. Make two");
    assert_eq!(placed(&text), [(Code::P015, Severity::Error, 28, 1, message.clone())]);
    let text = format!("{PLAN}\n<!-- to be continued\n");
    assert_eq!(placed(&text), [(Code::P015, Severity::Warning, 44, 1, message)]);
    assert_eq!(placed(&format!("{PLAN}\n<!-- over -->\n")), []);
}

#[test]
fn fields_that_are_indented_like_code_are_told_and_put_back() {
    let step = PLAN.find("### 2. Make two").unwrap();
    let (before, after) = PLAN.split_at(step);
    for indent in ["\t", "    "] {
        let (heading, fields) = after.split_once('\n').unwrap();
        let fields: String = fields
            .lines()
            .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") })
            .collect();
        let text = format!("{before}{heading}\n{fields}");
        let placed = placed(&text);
        let [(code, level, line, column, message)] = placed.as_slice() else { panic!("{placed:#?}") };
        assert_eq!((*code, *level, *line, *column), (Code::P015, Severity::Error, 30, 1));
        assert!(message.starts_with("this is indented so far that Markdown has it as code"), "{message}");
        assert_eq!(fixed(&text, Reach::Unsafe), PLAN);
    }
    // A task may hold code.
    assert_eq!(placed(&with("Make `one.txt`.", "Make `one.txt`:\n\n    one\n")), []);
}

#[test]
fn a_field_that_is_not_written_as_one_is_named_and_mended() {
    for written in
        ["target: coder", "Target: coder", "__target:__ coder", "*target*: coder", "**target：** coder"]
    {
        let text = with(
            "**target:** coder\n**task:**\nMake `one.txt`.",
            &format!("{written}\n**task:**\nMake `one.txt`."),
        );
        let placed = placed(&text);
        let message =
            placed.iter().find(|(code, ..)| *code == Code::P015).map(|(.., message)| message.as_str());
        let message = message.unwrap_or_else(|| panic!("{written}: {placed:#?}"));
        assert!(message.ends_with("is not written as a field, so it is not read"), "{message}");
        assert_eq!(fixed(&text, Reach::Safe), PLAN, "{written}");
    }
    // It may be there already, or be meant otherwise.
    let twice =
        with("### 2. Make two\n\n**target:** coder", "### 2. Make two\n\n**target:** coder\ntarget: coder");
    assert_eq!(fixed(&twice, Reach::Unsafe), twice);
    let more = with("### 2. Make two\n", "### 2. Make two\n\ntimeout: 5 min\n");
    assert_eq!(fixed(&more, Reach::Safe), more);
    assert!(fixed(&more, Reach::Unsafe).contains("**timeout:** 5 min\n"));
}

#[test]
fn a_plan_in_a_code_fence_is_taken_out_of_it() {
    for (open, close) in [("```markdown", "```"), ("```", "```"), ("~~~md", "~~~~")] {
        let text = format!("{open}\n{PLAN}{close}\n");
        let [only] = findings(&text).try_into().unwrap_or_else(|all| panic!("{all:#?}"));
        let only: Diagnostic = only;
        assert_eq!(only.code, Code::P007);
        assert_eq!(only.help.as_deref(), Some("delete this line, and line 44 that closes it"));
        assert_eq!(fixed(&text, Reach::Safe), PLAN);
    }
    let spoken = format!("Here is the plan:\n\n```markdown\n{PLAN}```\n\nAnything else?\n");
    assert_eq!(placed(&spoken).len(), 1);
    assert_eq!(fixed(&spoken, Reach::Unsafe), spoken, "the words around it are somebody's");
}

#[test]
fn frontmatter_below_blank_lines_is_moved_to_the_top_and_no_second_one_is_written() {
    let text = format!("\n \n{PLAN}");
    assert_eq!(fixed(&text, Reach::Safe), PLAN);
    let spoken = format!("Here is the plan:\n\n{PLAN}");
    assert_eq!(fixed(&spoken, Reach::Unsafe), spoken);
}

#[test]
fn warnings_are_kept_before_notes_where_there_are_too_many() {
    let head = &PLAN[..PLAN.find("### 1.").unwrap()];
    let step = |number: usize| {
        format!(
            "### {number}. Make it\n\n**target:** coder\n**task:**\nMake `f{number}.txt`.\n\n**contract:**\n```shell\ntest -f \
             f{number}.txt\n```\nexit_code == 0\n\n"
        )
    };
    let steps: String = (1..=1_200).map(step).collect();
    let text = format!("{head}{steps}A lost line.\n");
    assert!(placed(&text).iter().any(|(.., message)| message.starts_with("this text belongs to no field")));
    let last = findings(&text).pop().unwrap();
    assert!(last.message.ends_with("more notes are not listed"), "{}", last.message);
}

/// Returns the messages of P015 and P002 at a level.
fn messages(text: &str, level: Severity) -> Vec<String> {
    let found = findings(text).into_iter().filter(|found| found.level == level);
    found.filter(|found| matches!(found.code, Code::P015 | Code::P002)).map(|found| found.message).collect()
}

#[test]
fn a_budget_that_is_read_as_text_is_an_error() {
    let budget = "**Budget:** max 200k tokens, $1.50, 20 minutes";
    for written in [
        "Budget: max 200k tokens, $1.50, 20 minutes",
        "- Budget: 200k tokens",
        "- **Budget:** max 200k tokens, $1.50, 20 minutes",
        "> **Budget:** max 200k tokens",
        "* [ ] **Budget:** max 200k tokens",
        "| Budget | 200k tokens, $1.50, 20 minutes |\n|---|---|",
        "\u{a0}**Budget:** 200k tokens",
    ] {
        let text = with(budget, written);
        let errors = messages(&text, Severity::Error);
        assert_eq!(errors.len(), 1, "{written}: {errors:?}");
        assert!(errors[0].ends_with("so it is not read"), "{written}: {errors:?}");
        // Beside the budget itself it is text.
        let text = with("A plan for tests.", &format!("A plan for tests.\n{written}"));
        assert_eq!(messages(&text, Severity::Error), [""; 0], "{written}");
    }
    let text = with(budget, "Budget: max 200k tokens, $1.50, 20 minutes");
    assert_eq!(fixed(&text, Reach::Unsafe), PLAN.replace("Budget:** max", "budget:** max"));
    // A heading, or a key of the frontmatter, is none either.
    let text = with(budget, "").replace("## Steps", "## Budget\n\n200k tokens\n\n## Steps");
    assert_eq!(messages(&text, Severity::Error), ["`Budget` is a heading, so nothing reads a field there"]);
    let text = format!("{}\n## Budget\n\n200k tokens\n", with(budget, ""));
    assert_eq!(messages(&text, Severity::Error), ["`Budget` is a heading, so nothing reads a field there"]);
    let text = format!("{}\n## Limits\n\n{budget}\n", with(budget, ""));
    assert_eq!(
        messages(&text, Severity::Error),
        ["`**budget:**` stands outside of a step and has no effect"]
    );
    let text =
        with(budget, "").replace("owner: orchestrator", "owner: orchestrator\nbudget: \"200k tokens\"");
    assert_eq!(messages(&text, Severity::Error), ["unknown frontmatter key `budget`; it is kept"]);
    let text = with("owner: orchestrator", "owner: orchestrator\nbudget: \"200k tokens\"");
    assert_eq!(messages(&text, Severity::Warning), ["unknown frontmatter key `budget`; it is kept"]);
}

#[test]
fn a_field_of_a_step_that_nothing_reads_is_an_error_between_fields_and_a_warning_in_a_task() {
    let step = "### 2. Make two\n\n";
    for written in [
        "needs: none",
        "> **needs:** 1",
        "**needs** 1",
        "`needs`: 1",
        "**needs** = 1",
        "| needs | 1 |",
        "#### needs\n1",
        "* [ ] needs: 1",
        "\u{a0}**needs:** 1",
    ] {
        let text = with(step, &format!("{step}{written}\n"));
        let errors = messages(&text, Severity::Error);
        assert_eq!(errors.len(), 1, "{written}: {errors:?}");
    }
    let task = "Make `two.txt` from it.";
    for written in ["needs: 1", "- **needs:** 1", "- needs: 1", "> timeout: 5 min", "- **changes:** two.txt"]
    {
        let warnings = messages(&with(task, &format!("{task}\n\n{written}")), Severity::Warning);
        assert_eq!(warnings.len(), 1, "{written}: {warnings:?}");
        let text = with(task, &format!("{task}\n\n{written}"));
        let given = "**needs:** 1\n**timeout:** 5 min\n**changes:** two.txt\n**task:**\nMake `two.txt`";
        assert_eq!(messages(&text.replace("**task:**\nMake `two.txt`", given), Severity::Warning), [""; 0]);
    }
    for prose in
        ["- changes: the file `two.txt`", "type: a word", "The step needs: 1 file", "```\nneeds: 1\n```"]
    {
        let text = with(task, &format!("{task}\n\n{prose}"));
        assert_eq!(messages(&text, Severity::Warning), [""; 0], "{prose}");
    }
}

#[test]
fn edges_that_nothing_reads_are_errors() {
    for heading in ["## Control flow", "## **Flow**", "## 🔀 Flow", "**Flow**", "#### Flow", "Flow\n----"] {
        for line in
            ["- 2 -> 1 on fail", "2 → 1 on fail if steps.2.exit_code != 3", "* #2 => done", "1 -> 2 -> done"]
        {
            let text = format!("{PLAN}\n{heading}\n\n{line}\n- 1 -> 2\n");
            let errors = messages(&text, Severity::Error);
            assert_eq!(errors, [format!("`{line}` is not read as an edge here")], "{heading}");
        }
        let text = format!("{PLAN}\n{heading}\n\n- 30 -> 20 seconds\n- from 2 -> to 1\n");
        assert_eq!(messages(&text, Severity::Error), [""; 0], "{heading}");
    }
    let above = with("## Steps", "## Flow\n\n- 2 -> 1 on fail\n\n## Steps");
    assert_eq!(messages(&above, Severity::Error), ["`- 2 -> 1 on fail` is not read as an edge here"]);
    let drawn = format!("{PLAN}\n## Picture\n\n```\n1 -> 2\n```\n");
    assert_eq!(messages(&drawn, Severity::Error), [""; 0]);
}

#[test]
fn a_line_like_an_edge_among_the_words_of_a_section_is_a_warning_but_where_the_section_names_a_flow() {
    let unread = ["`1 -> 2` is not read as an edge here"];
    let notes = "## Notes\n\nThe order of the two:\n\n1 -> 2\n";
    for text in [format!("{PLAN}\n{notes}"), with("## Steps", &format!("{notes}\n## Steps"))] {
        assert_eq!(messages(&text, Severity::Error), [""; 0], "{text}");
        assert_eq!(messages(&text, Severity::Warning), unread, "{text}");
        for (words, flow) in [
            ("## Notes", "## The flow"),
            ("## Notes", "## Notes\n\n### **Flow**"),
            ("The order of the two:", "**Flow**"),
            ("The order of the two:", ""),
        ] {
            let text = text.replace(words, flow);
            assert_eq!(messages(&text, Severity::Error), unread, "{text}");
        }
        let text = text.replace("## Notes", "## How the work flows from one to the next");
        assert_eq!(messages(&text, Severity::Error), [""; 0], "{text}");
    }
}

#[test]
fn a_step_below_a_heading_that_begins_none_is_an_error() {
    let errors = messages(&with("### 2. Make two", "# 2. Make two"), Severity::Error);
    let of = |name: &str| format!("`**{name}:**` stands outside of a step and has no effect");
    assert_eq!(errors, ["target", "subscriptions", "task", "contract", "on_fail"].map(of));
}

#[test]
fn an_exit_code_that_is_not_read_is_an_error() {
    let end = "test -f two.txt\n```\nexit_code == 0\n**on_fail:** escalate";
    for written in ["- exit_code == 1", "Expected exit code: 1", "exits with exit status 1"] {
        let text = with(end, &end.replace("exit_code == 0", written));
        let message =
            format!("`{}` is not read as the exit code of a contract", written.trim_start_matches("- "));
        assert_eq!(messages(&text, Severity::Error), [message], "{written}");
    }
    let late = with(end, "test -f two.txt\n```\n**on_fail:** escalate\nexit_code == 1");
    assert_eq!(
        messages(&late, Severity::Error),
        ["`exit_code == 1` is not read as the exit code of a contract"]
    );
}

#[test]
fn a_field_at_the_end_of_a_contracts_fence_is_moved_below_it() {
    let end = "test -f two.txt\n```\nexit_code == 0\n**on_fail:** escalate";
    let text = with(end, "test -f two.txt\nexit_code == 0\n**on_fail:** escalate\n```");
    assert_eq!(
        messages(&text, Severity::Error),
        ["`**on_fail:**` stands inside the fence, where commands stand"]
    );
    assert_eq!(fixed(&text, Reach::Safe), PLAN);
    let written = with("test -f two.txt", "grep -q x <<'END'\n**on_fail:** escalate\nEND");
    assert_eq!(messages(&written, Severity::Error), [""; 0], "a command may write such text");
}

#[test]
fn numbers_below_needs_and_outcomes_behind_if_are_errors() {
    let text = with("### 2. Make two\n\n", "### 2. Make two\n\n**needs:** 1,\n2\n");
    assert!(
        messages(&text, Severity::Error)
            .contains(&"`**needs:**` ends with a comma, and is read up to the end of its line".to_owned())
    );
    let text = format!("{PLAN}\n## Flow\n\n- 2 -> 1 if fail\n");
    let found = findings(&text);
    assert!(found.iter().any(|found| found.code == Code::P303), "{found:?}");
    assert!(fixed(&text, Reach::Safe).ends_with("- 2 -> 1 on fail\n"));
}
