//! A plan without findings, which the tests change in one place each.

// Each test file uses its own part of this.
#![allow(dead_code)]

use planctl_lang::{Code, Diagnostic, Facts, Severity, Source, verify};

/// A plan of two steps that has no finding at all.
pub const PLAN: &str = "\
---
type: plan
status: draft
owner: orchestrator
---

# Make two files

**Context:** A plan for tests.
**Budget:** max 200k tokens, $1.50, 20 minutes
**Priority:** high

## Steps

### 1. Make one

**target:** coder
**task:**
Make `one.txt`.

**contract:**
```shell
test -f one.txt
```
exit_code == 0
**on_fail:** retry(2), then escalate

### 2. Make two

**target:** coder
**subscriptions:**
- file:one.txt

**task:**
Make `two.txt` from it.

**contract:**
```shell
test -f two.txt
```
exit_code == 0
**on_fail:** escalate
";

/// Facts of a place where nothing is missing.
pub fn facts() -> Facts {
    Facts {
        roles: Some(vec!["coder".into(), "reviewer".into()]),
        // Every file is as its commit has it.
        differing: Some(Default::default()),
        ..Facts::default()
    }
}

/// Returns the plan with one text replaced; fails where the text is not there.
pub fn with(old: &str, new: &str) -> String {
    assert!(PLAN.contains(old), "the plan has no `{old}`");
    PLAN.replacen(old, new, 1)
}

/// Verifies a text against facts and checks that every place lies in the text.
pub fn found_with(text: &str, facts: &Facts) -> Vec<Diagnostic> {
    let source = Source::new("plan.md", text);
    let found = verify(&source, facts, &planctl_lang::Levels::default()).diagnostics;
    for diagnostic in &found {
        for label in &diagnostic.spans {
            assert!(label.span.end <= text.len(), "{diagnostic:?}");
            assert!(text.get(label.span.start..label.span.end).is_some(), "{diagnostic:?}");
        }
    }
    found
}

/// Verifies a text.
pub fn found(text: &str) -> Vec<Diagnostic> {
    found_with(text, &facts())
}

/// The expected parts of one finding: code, level, a part of its message, and the line of its first place.
pub struct Expected {
    pub code: Code,
    pub level: Severity,
    pub says: &'static str,
    pub line: usize,
}

/// Checks that exactly one finding of this code is there, and that it is as expected; returns it.
pub fn expect(text: &str, expected: &Expected) -> Diagnostic {
    expect_with(text, &facts(), expected)
}

/// As [`expect`], with other facts.
pub fn expect_with(text: &str, facts: &Facts, expected: &Expected) -> Diagnostic {
    let all = found_with(text, facts);
    let source = Source::new("plan.md", text);
    let drawn = planctl_lang::render_all(&all, &source, false);
    let mut of_code = all.into_iter().filter(|diagnostic| diagnostic.code == expected.code);
    let diagnostic = of_code.next().unwrap_or_else(|| panic!("no {} in\n{drawn}", expected.code.as_str()));
    assert!(of_code.next().is_none(), "more than one {} in\n{drawn}", expected.code.as_str());
    assert!(diagnostic.message.contains(expected.says), "`{}` is not in\n{drawn}", expected.says);
    assert_eq!(diagnostic.level, expected.level, "{drawn}");
    assert_eq!(source.position(diagnostic.spans[0].span.start).line, expected.line, "{drawn}");
    diagnostic
}

/// Says that a text is verified without an error.
pub fn is_verified(text: &str) -> bool {
    verify(&Source::new("plan.md", text), &facts(), &planctl_lang::Levels::default()).is_verified()
}
