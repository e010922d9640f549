//! The effect of `--fix` on a text: every safe fix, round after round, until nothing is left to mend.

use proptest::prelude::*;

use crate::sample::{PLAN, facts, with};
use planctl_lang::{Code, Diagnostic, Levels, Reach, Source, apply_fixes, verify};

/// More rounds than any text here needs.
const ROUNDS: usize = 20;

fn findings(text: &str) -> Vec<Diagnostic> {
    verify(&Source::new("plan.md", text), &facts(), &Levels::default()).diagnostics
}

fn fixed(text: &str, reach: Reach) -> String {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS {
        match apply_fixes(&Source::new("plan.md", &*text), &findings(&text), reach) {
            Some(better) => text = better,
            None => return text,
        }
    }
    panic!("no end of fixes:\n{text}");
}

/// Pairs of a person's spelling and planctl's own; each is mended without a question.
const SLIPS: &[(&str, &str)] = &[
    ("---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n", ""),
    ("owner: orchestrator\n---\n", "owner: orchestrator\n"),
    ("type: plan\n", ""),
    ("type: plan", "typ: plan"),
    ("type: plan", "type: Plan"),
    ("status: draft", "status: aproved"),
    ("status: draft", "status: done"),
    ("owner:", "ownr:"),
    ("owner:", "\towner:"),
    ("## Steps\n\n", ""),
    ("## Steps", "## Stpes"),
    ("## Steps", "### Step"),
    ("**target:** coder", "**target:** `coder`"),
    ("**target:** coder", "**target:** @coder"),
    ("**target:** coder", "**workspace:** shred\n**target:** coder"),
    ("- file:one.txt", "- file:one.txt\n- file:one.txt"),
    ("```shell", "```bsh"),
    ("```shell", "```shel"),
    ("max 200k tokens", "max 200k tokns"),
    ("**on_fail:** escalate", "**on_fail:** esclate"),
    ("retry(2), then escalate", "retyr(2), then escalate"),
    ("**Priority:** high", "**Priority:** hihg"),
    ("**Priority:** high", "**Prioriti:** high"),
    ("### 1. Make one", "## Step 1: Make one"),
    ("### 1. Make one", "#### 1) Make one"),
    ("### 1. Make one", "###1. ✅ Make one"),
    ("### 1. Make one", "### 2. Make one"),
    ("### 2. Make two", "### 1. Make two"),
    ("### 2. Make two", "### 7. Make two"),
    ("### 1. Make one", "### 0. Make one"),
    ("**target:** coder", "**taget:** coder"),
    ("**target:** coder", "**target**: coder"),
    ("**target:** coder", "- **target:** coder"),
    ("**target:** coder", "**status:** done\n**target:** coder"),
    ("**target:** coder", "**type:** cod\n**target:** coder"),
    ("- file:one.txt", "- fiel:one.txt"),
    ("- file:one.txt", "- one.txt"),
    ("```shell\ntest -f one.txt\n```", "```shell\ntest -f one.txt\n"),
    ("```shell\ntest -f one.txt\n```", "```shell\ntest -f one.txt\n\n"),
    ("**contract:**\n```shell\ntest -f one.txt\n```", "**contract:** `test -f one.txt`"),
    ("exit_code == 0\n", "exit_code = 0\n"),
    ("exit_code == 0\n", "exit code: 0\n"),
    ("exit_code == 0\n", "**exit_code:** 0\n"),
    ("retry(2), then escalate", "retry(2)"),
    ("retry(2), then escalate", "retry 2 then esclate"),
    ("**on_fail:** escalate", "**on_fail:** excalate"),
    ("**on_fail:** escalate", "**onfail:** escalate"),
];

#[test]
fn each_slip_is_mended_and_the_plan_is_verified_without_a_finding() {
    for (right, slip) in SLIPS {
        for ends in ["\n", "\r\n"] {
            let text = with(right, slip).replace('\n', ends);
            assert_ne!(findings(&text), [], "`{slip}` is no slip");
            let mended = fixed(&text, Reach::Safe);
            let left: Vec<_> =
                findings(&mended).into_iter().filter(|found| found.code != Code::P020).collect();
            assert_eq!(left, [], "`{slip}` becomes\n{mended}");
            assert_eq!(
                mended.matches('\n').count(),
                mended.matches(ends).count(),
                "line ends of\n{mended:?}"
            );
        }
    }
}

#[test]
fn what_is_mended_is_what_was_meant() {
    let mended = |right: &str, slip: &str| fixed(&with(right, slip), Reach::Safe);
    assert_eq!(mended("**target:** coder", "**taget:** coder"), PLAN);
    assert_eq!(mended("retry(2), then escalate", "Retry 2, then esclate"), PLAN);
    assert_eq!(mended("```\nexit_code == 0\n", "exit_code == 0\n"), PLAN);
    assert_eq!(mended("exit_code == 0\n", "exit_code = 0\n"), PLAN);
    assert_eq!(mended("## Steps\n\n", ""), PLAN);
    let late = with(
        "exit_code == 0\n**on_fail:** retry(2), then escalate\n",
        "**on_fail:** retry(2), then escalate\n**exit_code:** 0\n",
    );
    assert_eq!(fixed(&late, Reach::Safe), PLAN);
}

#[test]
fn numbers_are_mended_together_and_so_is_what_refers_to_them() {
    let tail = &PLAN[PLAN.find("### 2.").unwrap()..];
    let third = tail.replace("### 2. Make two", "### 9. Make three").replace("two.txt", "three.txt");
    let text = format!("{}\n{third}", with("### 2.", "### 4."));
    let found = findings(&text);
    assert!(
        found.iter().all(|found| found.code == Code::P014 && found.fix.as_ref().unwrap().edits.len() == 2)
    );
    let mended = fixed(&text, Reach::Safe);
    assert!(mended.contains("### 2. Make two") && mended.contains("### 3. Make three"), "{mended}");
    let needs = text.replace("### 9. Make three\n", "### 9. Make three\n\n**needs:** 1, 4\n");
    assert!(fixed(&needs, Reach::Safe).contains("**needs:** 1, 2\n"));
}

#[test]
fn numbers_that_a_task_speaks_of_are_not_changed_unasked() {
    let text = with("### 2.", "### 4.").replace("Make `one.txt`.", "Make `one.txt`, for step 4.");
    assert_eq!(fixed(&text, Reach::Safe), text);
    assert!(fixed(&text, Reach::Unsafe).contains("### 2. Make two"));
}

#[test]
fn a_thousand_wrong_numbers_are_one_fix() {
    let head = &PLAN[..PLAN.find("### 1.").unwrap()];
    let body = &PLAN[PLAN.find("### 1.").unwrap()..PLAN.find("### 2.").unwrap()];
    let text = head.to_owned() + &body.repeat(1_000);
    let edits: usize = findings(&text).iter().flat_map(|found| &found.fix).map(|fix| fix.edits.len()).sum();
    assert!(edits < 20_000, "{edits}");
    let left = findings(&fixed(&text, Reach::Safe));
    assert!(left.iter().all(|found| found.code != Code::P013 && found.code != Code::P014), "{left:?}");
}

#[test]
fn a_missing_contract_becomes_one_that_fails_and_only_when_asked() {
    for slip in ["", "**contract:**\n"] {
        let text = with("**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n", slip);
        assert_eq!(fixed(&text, Reach::Safe), text);
        let stub = fixed(&text, Reach::Unsafe);
        let left = findings(&stub);
        assert!(left.iter().any(|found| found.code == Code::P113), "the stub is found: {left:?}\n{stub}");
        assert!(left.iter().all(|found| !found.is_error()), "{left:?}");
    }
}

#[test]
fn what_nobody_can_know_has_no_safe_fix() {
    for (right, slip) in [
        ("type: plan", "type: spec"),
        ("**target:** coder", "**target:** codr"),
        ("```shell", "```zsh"),
        ("```shell", "```python"),
        ("**on_fail:** escalate", "**on_fail:** retry(2), then slap"),
        ("max 200k tokens", "max 200k"),
        ("owner: orchestrator", "owner:"),
        ("**target:** coder\n", ""),
        ("**task:**\nMake `one.txt`.\n", ""),
        ("**on_fail:** escalate", "**on_fail:** escalate, then retry(1)"),
        ("exit_code == 0", "exit_code != 0"),
        ("**target:** coder", "**taget:** reviewer\n**target:** coder"),
        ("**target:** coder", "**target:** coder\n**taget:** reviewer"),
        ("**contract:**\n```shell\ntest -f one.txt\n```", "**contract:** the file is there"),
        ("```shell\ntest -f one.txt\n```\nexit_code == 0\n", "```shell\ntest -f one.txt\n```text\n"),
    ] {
        let text = with(right, slip);
        assert!(findings(&text).iter().any(Diagnostic::is_error), "{slip}");
        assert_eq!(fixed(&text, Reach::Safe), text, "{slip}");
    }
}

#[test]
fn a_plan_without_findings_is_left_alone() {
    assert_eq!(apply_fixes(&Source::new("p", PLAN), &findings(PLAN), Reach::Unsafe), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // The promise of `--fix`: where every error has a safe fix, the result is verified.
    #[test]
    fn whatever_is_wrong_at_once_is_mended_at_once(picked in proptest::sample::subsequence((0..SLIPS.len()).collect::<Vec<_>>(), 1..6)) {
        let mut text = PLAN.to_owned();
        for at in picked {
            let (right, slip) = SLIPS[at];
            text = text.replacen(right, slip, 1);
        }
        let mended = fixed(&text, Reach::Safe);
        let left = findings(&mended);
        let open = left.iter().filter(|found| found.is_error() && found.fix.is_some()).count();
        prop_assert_eq!(open, 0, "a fix was left out of\n{}", mended);
        let verified = verify(&Source::new("plan.md", &*mended), &facts(), &Levels::default()).is_verified();
        prop_assert!(verified, "{:?}\n{}\nbecomes\n{}", left, text, mended);
    }
}

#[test]
fn an_exit_code_stays_with_the_contract_that_it_stands_by() {
    let text = with("### 1. Make one", "## Step 1: Make one").replace("### 2. Make two", "### 7. Make two");
    let (one, two) = text.split_at(text.find("### 7.").unwrap());
    for said in ["exit code: 0\n", ""] {
        let one = one.replace("exit_code == 0\n", said);
        let two = two.replace("exit_code == 0\n", "**exit_code:** 3\n");
        let mended = fixed(&format!("{one}{two}"), Reach::Safe);
        let (one, two) = mended.split_at(mended.find("### 2. Make two").unwrap());
        assert!(!one.contains("3\n") && two.contains("```\nexit_code == 3\n"), "{mended}");
    }
}

#[test]
fn an_exit_code_that_is_given_twice_is_an_error_also_as_a_field() {
    for first in ["exit_code == 0", "exit code: 0"] {
        let text = with("exit_code == 0\n", &format!("{first}\n**exit_code:** 1\n"));
        let found = findings(&fixed(&text, Reach::Safe));
        let twice: Vec<_> = found.iter().filter(|found| found.code == Code::P009).collect();
        assert!(twice.len() == 1 && twice[0].is_error(), "{found:?}");
    }
}

#[test]
fn d10_a_fence_behind_a_bullet_is_closed_with_its_own_signs_and_once() {
    for (opened, closing) in [("- ```$1", "  ```"), ("> ~~~~ x", "> ~~~~"), ("1. ```sh", "   ```")] {
        let text = with("Make `one.txt`.\n", &format!("Make `one.txt`.\n\n{opened}\n"));
        let unclosed: Vec<Diagnostic> =
            findings(&text).into_iter().filter(|found| found.code == Code::P011).collect();
        let help = unclosed[0].help.clone().unwrap_or_default();
        assert!(
            help.contains(&format!("write {} on a line", closing.trim_start_matches(['>', ' ']))),
            "{help}"
        );
        let mended = fixed(&text, Reach::Unsafe);
        assert!(mended.contains(&format!("{opened}\n{closing}\n")), "{mended}");
        assert!(findings(&mended).iter().all(|found| found.code != Code::P011), "{mended}");
    }
}

#[test]
fn a_word_in_quotes_is_mended_in_quotes() {
    let json = r#"{"title": "t", "steps": [{"name": "s", "action": "x", "contract": "test -s f", "fidelity": "sumary:low"}]}"#;
    let dot = r#"digraph g { start a [prompt=x, contract="test -s f", fidelity="sumary:low"] exit start -> a -> exit }"#;
    for (name, text) in [("plan.json", json), ("plan.dot", dot)] {
        let source = Source::new(name, text);
        let found = verify(&source, &facts(), &Levels::default()).diagnostics;
        let mended = text.replace("sumary", "summary");
        assert_eq!(apply_fixes(&source, &found, Reach::Safe), Some(mended), "{found:#?}");
    }
}

/// Ways in which people and models change a line.
const DRIFTS: [fn(&str) -> String; 9] = [
    |line| format!("- {line}"),
    |line| format!("> {line}"),
    |line| format!("    {line}"),
    |line| format!("\u{a0}{line}"),
    |line| format!("#{line}"),
    |line| format!("{line}\n{line}"),
    |line| line.replace("**", ""),
    |line| line.replace("**", "__"),
    |_| String::new(),
];

#[test]
fn each_fix_by_itself_takes_its_finding_away_and_no_words_with_it() {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let plan = format!("{PLAN}\n## Flow\n\n- 2 -> 1 on fail\n");
    let lines: Vec<&str> = plan.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        for drift in DRIFTS {
            let mut drifted: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            drifted[at] = drift(line);
            let text = format!("{}\n", drifted.join("\n"));
            let (source, all) = (Source::new("plan.md", &*text), findings(&text));
            for found in all.iter().filter(|found| found.fix.is_some()) {
                let alone = std::slice::from_ref(found);
                let Some(mended) = apply_fixes(&source, alone, Reach::Unsafe) else {
                    panic!("{found:?} changes nothing of\n{text}");
                };
                let of = |all: &[Diagnostic]| {
                    all.iter()
                        .filter(|other| (other.code, &other.message) == (found.code, &found.message))
                        .count()
                };
                assert!(of(&findings(&mended)) < of(&all), "{found:#?} is still there in\n{mended}");
                let kept = words(&mended);
                for edit in
                    found.fix.iter().flat_map(|fix| &fix.edits).filter(|edit| edit.replacement.is_empty())
                {
                    let lost: Vec<String> = words(source.slice(edit.span));
                    let lost: Vec<&String> = lost.iter().filter(|word| !kept.contains(word)).collect();
                    assert!(lost.is_empty(), "{found:#?} takes {lost:?} away from\n{text}");
                }
            }
        }
    }
}
