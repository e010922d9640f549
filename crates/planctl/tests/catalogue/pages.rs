//! The pages of docs/diagnostics: one for each code, with what the binary says of its wrong example, and an index.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use planctl_lang::{Code, Example, Severity, unescape};

use crate::case::Case;
use crate::transcripts;

const INTRODUCTION: &str = "\
# Findings

`planctl verify FILE` reports everything that is wrong with a plan at once. Each finding has a code that stays the
same, the place in the file, and a line that says how to mend it. An *error* means that the plan can't run as it is; a
*warning* that a person should look; a *note* is worth knowing. `planctl explain P104` says at the prompt
what stands here.

Codes that begin with the same digit are one family. Examples that begin with a step stand below a common head: the
frontmatter, `# Fix the login timeout`, a budget, and `## Steps`.

## Allowed in the plan

A comment of the plan allows a finding that is wrong, or that its author accepts, and says why:

```markdown
### 2. Run the checks

<!-- planctl: allow P110 the first command only fills the log -->
**target:** coder
```

It holds for the step that it stands in, or for the whole plan where it stands above the steps. `verify` counts what is
allowed, `verify -v` and an approval name each finding with its reason, and so do `--json` (`allowed`) and SARIF
(`suppressions`). Errors can't be allowed, nor can the findings that a person relies on who approves what somebody else
wrote:

GUARDED

`-D CODE`, or `deny` in planctl.toml, takes precedence over the comment. A comment without a reason, of an unknown code, or that
allows nothing is a finding itself ([P018](P018.md)).

These pages are written by `PLANCTL_DOCS=write cargo test -p planctl --test catalogue pages` from
`crates/planctl-lang/explain/` and from what the program prints.
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs/diagnostics")
}

pub fn are_up_to_date() {
    let mut pages: BTreeMap<String, String> =
        Code::ALL.iter().map(|code| (format!("{code}.md"), page(&Case::of(*code)))).collect();
    pages.insert("README.md".to_owned(), index());
    let is_wanted = std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write");
    let mut differences = Vec::new();
    for (name, page) in &pages {
        let path = folder().join(name);
        let there = fs::read_to_string(&path).unwrap_or_default();
        if normal(&there) == normal(page) {
            continue;
        }
        if is_wanted {
            fs::create_dir_all(folder()).unwrap();
            fs::write(path, page).unwrap();
        } else {
            differences.push(format!("{name}{}", first_difference(&there, page)));
        }
    }
    for entry in fs::read_dir(folder()).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        match pages.contains_key(&name) {
            true => {}
            false if is_wanted => fs::remove_file(folder().join(name)).unwrap(),
            false => differences.push(format!("{name} is no page of a code")),
        }
    }
    let help = "to write them anew: PLANCTL_DOCS=write cargo test -p planctl --test catalogue pages";
    assert!(differences.is_empty(), "{}\n{help}", differences.join("\n"));
}

fn first_difference(there: &str, page: &str) -> String {
    let (there, page) = (normal(there), normal(page));
    let at = there.iter().zip(&page).position(|(one, other)| one != other);
    let at = at.unwrap_or(there.len().min(page.len()));
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or("(nothing)".to_owned());
    format!(", line {}:\n  has    {}\n  should {}", at + 1, line(&there), line(&page))
}

/// The lines of a page, without what differs from run to run: how long a contract took.
fn normal(page: &str) -> Vec<String> {
    page.lines()
        .map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ").trim_end().to_owned())
        .collect()
}

fn word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_number = core.contains('.') && core.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_span = core.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len() < core.len()
        && core.contains('.')
        && core.trim_end_matches(['m', 's']).chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number || is_span { word.replace(core, "TIME") } else { word.to_owned() }
}

pub fn level(level: Severity) -> &'static str {
    match level {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn index() -> String {
    let mut text = INTRODUCTION.replace("GUARDED", &guarded());
    for family in Code::ALL.chunk_by(|one, next| one.family() == next.family()) {
        let name = family[0].family();
        let (first, rest) = name.split_at(1);
        text.push_str(&format!(
            "\n## {}{rest}\n\n| Code | Level | Finding |\n|---|---|---|\n",
            first.to_uppercase()
        ));
        for code in family {
            let level = level(code.default_level());
            text.push_str(&format!("| [{code}]({code}.md) | {level} | {} |\n", code.title()));
        }
    }
    text.push_str(&transcripts::section());
    text
}

// The codes that no plan allows, with the reasons.
fn guarded() -> String {
    let mut of_reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (code, why) in Code::ALL.iter().filter_map(|code| Some((code, code.guards()?))) {
        match of_reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, codes)) => codes.push(code.to_string()),
            None => of_reasons.push((why, vec![code.to_string()])),
        }
    }
    let parts: Vec<String> =
        of_reasons.iter().map(|(why, codes)| format!("- {}: {why}", codes.join(", "))).collect();
    parts.join("\n")
}

fn page(case: &Case) -> String {
    let code = case.code;
    let allowing =
        if code.may_be_allowed() { " · [a plan can allow it](README.md#allowed-in-the-plan)" } else { "" };
    let head = format!("{} · {}{}{allowing}", level(code.default_level()), code.family(), mending(case));
    let mut text = format!("# {code}: {}\n\n{head}\n\n{}\n", code.title(), case.explained.text);
    if case.explained.bad.is_none() {
        return text;
    }
    text.push_str(&format!("\n## Wrong\n\n{}", example(&case.bad())));
    text.push_str(&format!("\n{}", transcript(case)));
    text.push_str(&format!("\n## Right\n\n{}", example(&case.good())));
    text.push_str("\n[All findings](README.md)\n");
    text
}

// Returns planctl's remedy for the wrong example; other plans with this finding may differ.
fn mending(case: &Case) -> &'static str {
    if case.explained.bad.is_none() {
        return "";
    }
    match case.verify_bad().of(case.code).first().and_then(|found| found.fix.as_ref()) {
        Some(fix) if fix.is_safe => " · `--fix` mends it",
        Some(_) => " · planctl knows a change that may mend it",
        None => "",
    }
}

fn example(example: &Example) -> String {
    let mut text = String::new();
    if !example.about.is_empty() {
        text.push_str(&format!("{}\n\n", example.about));
    }
    if unescape(example.shown) != example.shown.as_bytes() {
        text.push_str("`\\u{…}` stands for the character of this number, `\\x…` for a byte.\n\n");
    }
    text.push_str(&format!("````{}\n{}````\n", example.language, example.shown));
    text
}

fn transcript(case: &Case) -> String {
    if let Some(drawn) = case.drawn_graph() {
        return format!("```text\n{drawn}```\n");
    }
    let tested = &case.tested;
    let file = case.bad().file();
    let place = tested.place(&case.bad_bytes(), file, str::to_owned);
    let mut words = tested.words(file);
    // Notes are shown to those who want to hear more.
    if case.code == Code::P020 {
        words.push("--json");
    }
    let said = place.planctl(&words);
    assert!(said.out.contains(case.code.as_str()), "{} is not shown: {said:?}", case.code);
    format!("```console\n$ planctl {}\n{}{}```\n", words.join(" "), said.err, said.out)
}
