//! The output of `plan fmt`: planctl's own form, with nothing of the meaning changed and nothing of the author's lost.

use planctl_lang::{Code, Source, format, parse};

use crate::properties::worked;
use crate::sample::{PLAN, found, with};

fn formatted(text: &str) -> String {
    let formatted = format(&Source::new("plan.md", text));
    crate::sound::formatted(text);
    formatted
}

/// A person's text, and its form after `plan fmt`.
const DRIFTS: &[(&str, &str)] = &[
    ("### 1. Make one", "## Step 1: Make one"),
    ("### 1. Make one", "#### 1) Make one"),
    ("### 1. Make one", "###1. Make one ###"),
    ("### 1. Make one", "### 1.   Make one  "),
    ("### 1. Make one\n\n", "### 1. Make one\n"),
    ("### 1. Make one\n\n", "### 1. Make one\n\n\n\n"),
    ("# Make two files", "#   Make two files  #"),
    ("## Steps", "### steps:"),
    ("## Steps\n\n", "## Steps\n"),
    ("---\n\n# Make", "---\n# Make"),
    ("type: plan\n", "type: plan  \n"),
    ("**target:** coder", "**target**: coder"),
    ("**target:** coder", "**Target :**   coder"),
    ("**target:** coder", "**target: coder**"),
    ("**target:** coder", "**target:**\ncoder"),
    ("**target:** coder", "  **TARGET:** coder \t"),
    ("**Budget:**", "**budget**:"),
    ("**Context:**", "**context:**"),
    ("**on_fail:** escalate", "**On-Fail:** escalate"),
    ("- file:one.txt\n\n", "* file:one.txt\n"),
    ("- file:one.txt\n\n", "\n  +   file:one.txt   \n\n\n"),
    ("**task:**\nMake `one.txt`.\n", "**Task:**\n\nMake `one.txt`. \n\n"),
    ("```shell\ntest -f one.txt\n```", "~~~ bash\ntest -f one.txt\n~~~"),
    ("```shell\ntest -f one.txt\n```", "````\ntest -f one.txt\n`````"),
    ("```shell\ntest -f one.txt\n```", "  ```sh\n  test -f one.txt\n  ```"),
    (
        "**contract:**\n```shell\ntest -f one.txt\n```\n",
        "**contract:**\n\n```shell\ntest -f one.txt\n```\n\n",
    ),
    ("exit_code == 0\n**on_fail:** escalate", "**on_fail:** escalate"),
    ("exit_code == 0\n", "`exit_code==0`\n"),
    ("exit_code == 0\n", "**exit_code:** 0\n"),
    (
        "test -f two.txt\n```\nexit_code == 0\n**on_fail:** escalate\n",
        "test -f two.txt\n```\nexit_code == 0\n**on_fail:** escalate",
    ),
    ("**on_fail:** escalate\n", "**on_fail:** escalate\n\n \n"),
];

#[test]
fn every_drift_becomes_the_form_that_planctl_writes() {
    assert_eq!(formatted(PLAN), PLAN);
    for (right, drift) in DRIFTS {
        for ends in ["\n", "\r\n"] {
            let text = with(right, drift).replace('\n', ends);
            assert_eq!(formatted(&text), PLAN.replace('\n', ends), "{drift}");
            let marked = format!("\u{feff}{text}");
            assert_eq!(formatted(&marked), format!("\u{feff}{}", PLAN.replace('\n', ends)), "{drift}");
        }
    }
    let all = with("### 1. Make one", "## Step 1: Make one").replace("### 2. Make two", "#### 2)  Make two");
    assert_eq!(formatted(&all), PLAN);
}

#[test]
fn the_fields_of_a_step_come_in_one_order() {
    let (first, contract) = (
        "**target:** coder\n**subscriptions:**\n- file:one.txt\n\n",
        "**contract:**\n```shell\ntest -f two.txt\n```\nexit_code == 0\n",
    );
    let task = "**task:**\nMake `two.txt` from it.\n\n";
    let ordered = format!("{first}{task}{contract}**on_fail:** escalate\n");
    for mixed in [
        format!("**on_fail:** escalate\n{contract}\n{task}{first}"),
        format!("{task}**on_fail:** escalate\n\n{first}{contract}"),
        format!("{contract}**on_fail:** escalate\n\n{first}{task}"),
    ] {
        assert_eq!(formatted(&with(&ordered, &mixed)), PLAN);
    }
}

#[test]
fn longer_fences_stay_where_the_script_needs_them() {
    let script = "````shell\ncat > x.md <<'EOF'\n```\nx\n```\nEOF\n````";
    let text = with("```shell\ntest -f one.txt\n```", script);
    assert_eq!(formatted(&text), text);
    let waves = with("```shell\ntest -f one.txt\n```", &script.replace("````", "~~~"));
    assert_eq!(formatted(&waves), text);
}

#[test]
fn what_the_author_wrote_keeps_its_bytes() {
    let prose = "**task:**\n- one  \n  two\n\n\n~~~py\nx = 1   \n~~~\n* three\n1) four\n\nlike so:\n\n    code  \n\nlast.\n";
    let text = with("**task:**\nMake `one.txt`.\n", prose).replace("**task:**\n- one", "**task:**\n\n- one");
    assert_eq!(formatted(&text), text);
    for kept in
        ["**colour:**  red \nand   more \n\n\nlines\n", "text   of nobody \n", "<!-- a  \n\n\n comment -->\n"]
    {
        let text = with("**target:** coder\n**task:**", &format!("**target:** coder\n{kept}**task:**"));
        let text = formatted(&text);
        assert!(text.contains(kept.trim_end()), "{text}");
    }
}

#[test]
fn a_step_with_errors_is_left_alone_and_the_others_are_formatted() {
    let broken = "**on_fail:** maybe\n**target:** coder\n**target:** twice\n";
    let text = with("**target:** coder\n**task:**\nMake `one", &format!("{broken}**task:**\nMake `one"));
    let text = text
        .replace("### 2. Make two", "### 2)  Make two")
        .replace("**on_fail:** escalate", "**On_fail**: escalate");
    let formatted = formatted(&text);
    assert!(formatted.contains(broken), "{formatted}");
    assert!(
        formatted.contains("### 2. Make two\n") && formatted.ends_with("**on_fail:** escalate\n"),
        "{formatted}"
    );
}

#[test]
fn headings_keep_their_level_where_another_would_change_the_plan() {
    let text =
        PLAN.replace("### ", "## ").replace("Make `one.txt`.", "Make `one.txt`.\n\n### Notes\n\nMore.");
    let formatted = formatted(&text);
    assert_eq!(formatted, text);
}

#[test]
fn a_formatted_plan_has_no_finding_about_its_form() {
    for (right, drift) in DRIFTS {
        let left: Vec<Code> =
            found(&formatted(&with(right, drift))).into_iter().map(|found| found.code).collect();
        assert_eq!(left, [], "{drift}");
    }
}

#[test]
fn what_is_no_plan_stays_as_it_is() {
    for text in ["", "\n\n", "{\"a\": 1}", "print(1)\n"] {
        assert_eq!(format(&Source::new("p", text)), text);
    }
}

#[test]
fn templates_and_fixtures_are_formatted() {
    for template in planctl_lang::TEMPLATES {
        assert_eq!(formatted(template.text), template.text, "{}", template.name);
    }
    for text in [
        include_str!("../fixtures/fix-auth-timeout.md"),
        include_str!("../fixtures/extract-config.md"),
        include_str!("../fixtures/migrate-httpx.md"),
    ] {
        assert_eq!(formatted(text), text);
        assert!(!parse(&Source::new("p", text)).0.steps.is_empty());
    }
}

#[test]
fn the_time_to_format_grows_with_the_text_and_no_faster() {
    let plan = |steps: usize| {
        let (head, step) = PLAN.split_at(PLAN.find("### 1.").unwrap_or_default());
        let step = &step[..step.find("### 2.").unwrap_or_default()];
        let drift = |number: usize| match number % 3 {
            0 => step.replace("### 1.", &format!("## Step {number}:")).replace("one", &format!("f{number}")),
            1 => step.replace("### 1.", &format!("### {number})")).replace("**target:** coder\n", ""),
            _ => step
                .replace("### 1.", &format!("#### {number}."))
                .replace("**task:**", "**on_fail:** x\n\n**Task**:"),
        };
        head.to_owned() + &(1..=steps).map(drift).collect::<String>()
    };
    let time = |steps: usize| {
        let source = Source::new("plan.md", plan(steps));
        let began = worked();
        assert_ne!(format(&source), source.text());
        worked() - began
    };
    // The best of two, since other work on the machine only ever adds.
    let best = |steps: usize| time(steps).min(time(steps));
    let (small, large) = (best(100), best(1_000));
    assert!(large < small * 30, "100 steps: {small:?}, 1,000 steps: {large:?}");
}
