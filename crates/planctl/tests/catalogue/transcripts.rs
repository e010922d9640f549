//! Ten broken plans: planctl's findings about each, and the change that mends it, which must leave nothing to be found.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::case::CONFIG;
use crate::place::{Place, Said};

pub struct Plan {
    /// The folder of the plan in `tests/fixtures/broken`.
    pub name: &'static str,
    /// The story, in the author's words.
    story: &'static str,
    /// The codes that its author is told, each once.
    codes: &'static [&'static str],
    exit: i32,
    flags: &'static [&'static str],
}

const fn plan(name: &'static str, story: &'static str, codes: &'static [&'static str], exit: i32) -> Plan {
    Plan { name, story, codes, exit, flags: &[] }
}

pub const PLANS: &[Plan] = &[
    plan("login-timeout", "Three typing errors: a field, an exit code, a policy.", &["P015"], 1),
    plan(
        "release-notes",
        "Three contracts that are none yet: forgotten, not marked as code, not closed.",
        &["P010", "P011"],
        1,
    ),
    plan(
        "new-client",
        "A step was copied with its number, and the last stands for many.",
        &["P012", "P013"],
        1,
    ),
    plan(
        "api-docs",
        "Contracts that prove nothing: one can't fail, one loses the failure, one waits for a person.",
        &["P104", "P110", "P111"],
        0,
    ),
    plan(
        "nightly-import",
        "Files that are not where the plan looks for them, or not yet.",
        &["P201", "P203", "P205"],
        1,
    ),
    plan(
        "split-cart",
        "A step is given what only a later one makes, and a contract deletes.",
        &["P203", "P602"],
        1,
    ),
    plan(
        "product-index",
        "Nobody has these roles, and the budget is in another currency.",
        &["P401", "P403", "P503"],
        1,
    ),
    plan(
        "tidy-config",
        "Pasted from a chat: a long dash, curly quotes, and a character that nobody sees.",
        &["P004", "P201"],
        1,
    ),
    plan(
        "faster-tests",
        "Contracts with errors of their own: a typing error, an `if` without `fi`, an `exit 1` left behind.",
        &["P101", "P102", "P110", "P113"],
        1,
    ),
    plan(
        "check-backups",
        "Contracts that reach out of the workspace, and a pattern that matches nothing.",
        &["P112", "P202", "P601"],
        0,
    ),
];

impl Plan {
    fn file(&self, name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken").join(self.name).join(name)
    }

    fn words(&self) -> Vec<String> {
        let file = format!("{}.md", self.name);
        ["verify"].iter().chain(self.flags).map(|word| (*word).to_owned()).chain([file]).collect()
    }

    fn said_of(&self, which: &str) -> Said {
        let place = Place::new();
        place.write("planctl.toml", CONFIG.as_bytes());
        if self.file("workspace").is_dir() {
            place.copy(&self.file("workspace"));
        }
        place.write(&format!("{}.md", self.name), &std::fs::read(self.file(which)).unwrap());
        let words = self.words();
        place.planctl(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    // Lines of the broken plan beside those of the mended one, as `git diff` shows them.
    fn change(&self) -> String {
        let mut git = Command::new("git");
        git.args(["diff", "--no-index", "--no-color", "--no-ext-diff", "--unified=1"]);
        let output = git.arg(self.file("broken.md")).arg(self.file("mended.md")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}: {output:?}", self.name);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().skip_while(|line| !line.starts_with("@@")).map(|line| {
            match line.starts_with("@@") {
                true => "@@".to_owned(),
                false => line.replace('\u{200b}', "\\u{200b}"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Checks that what is said of a broken plan names what is wrong, and that nothing is said of the mended one.
pub fn is_mended(plan: &Plan) {
    let said = plan.said_of("broken.md");
    assert_eq!(said.code, plan.exit, "{}\n{}", said.out, said.err);
    let brackets = said.out.lines().filter_map(|line| {
        let code = line.strip_prefix("error[").or(line.strip_prefix("warning["))?;
        code.split(']').next()
    });
    let mut codes: Vec<&str> = brackets.collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, plan.codes, "{}", said.out);
    let mended = plan.said_of("mended.md");
    assert_eq!(mended.code, 0, "{}\n{}", mended.out, mended.err);
    let is_clean = mended.out.contains("no problems") && !mended.out.contains("warning[");
    assert!(is_clean, "{}", mended.out);
}

/// Shows all plans with what is said of them and what mends them.
pub fn section() -> String {
    let mut text = "\n# Ten broken plans\n\nEach is verified as it was written; the change below what planctl says mends it. \
                    In all of them planctl.toml has the roles `coder` and `reviewer`.\n"
        .to_owned();
    for (at, plan) in PLANS.iter().enumerate() {
        let said = plan.said_of("broken.md");
        text.push_str(&format!(
            "\n## {}. {}\n\n{}\n\n```console\n$ planctl {}\n{}{}```\n\nWhat mends it:\n\n````diff\n{}\n````\n",
            at + 1,
            plan.name,
            plan.story,
            plan.words().join(" "),
            said.err,
            said.out,
            plan.change(),
        ));
    }
    text
}
