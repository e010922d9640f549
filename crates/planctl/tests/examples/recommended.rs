//! The contracts that `docs/contracts.md` recommends: each refuses wrong work and passes for the right one. The contract beside it, which
//! it stands in place of, lets the wrong work pass.

use std::collections::BTreeMap;

use super::tried::Tried;
use super::{repository, told};

/// The scripts that a row of the table is tried with; they run in the workspace.
struct Trial {
    /// Makes the workspace, which is committed then.
    before: &'static str,
    /// Fields of the step.
    fields: &'static str,
    /// The first worker's work.
    wrong: &'static str,
    /// The second worker's work.
    right: &'static str,
    /// The findings of `plan verify` in the contract that is not recommended, at least.
    found: &'static [&'static str],
}

const COMMIT: &str = "git -c user.name=w -c user.email=w@example.org commit -qam work";

/// The trials, by the contract that is not recommended.
fn trials() -> BTreeMap<&'static str, Trial> {
    let plain = |before, wrong, right, found| Trial { before, fields: "", wrong, right, found };
    BTreeMap::from([
        (
            "test -f docs/report.md",
            Trial {
                fields: "**changes:** docs/**\n",
                ..plain("mkdir docs", "touch docs/report.md", "echo '## Cause' > docs/report.md", &[])
            },
        ),
        (
            "bash test.sh",
            plain(
                "echo 'echo 2' > app.sh; echo 'test -s app.sh' > test.sh; echo 'test \"$(bash app.sh)\" = 3' > reproduce.sh",
                "echo '# mended' >> app.sh",
                "echo 'echo 3' > app.sh",
                &[],
            ),
        ),
        (
            "make check || true",
            plain("printf 'check:\\n\\t@test -e done\\n' > Makefile", "true", "touch done", &["P104"]),
        ),
        (
            "build; echo done",
            plain("echo 'test -e done' > build.sh", "true", "touch done", &["P110", "P104"]),
        ),
        ("run | tee log", plain("echo 'test -e done' > run.sh", "true", "touch done", &["P110", "P105"])),
        (
            "grep -q \"APPROVED\\\\|REJECTED\" review.md",
            Trial {
                fields: "**changes:** review.md\n",
                ..plain("true", "echo REJECTED > review.md", "echo APPROVED > review.md", &["P104"])
            },
        ),
        (
            "! grep -q FAIL log",
            Trial {
                fields: "**changes:** log\n",
                ..plain("echo FAIL > log", "rm log; mkdir log", "rm -r log; echo ok > log", &[])
            },
        ),
        (
            "! grep -rq legacy src",
            Trial {
                fields: "**changes:** src/**\n",
                ..plain(
                    "mkdir src; echo legacy > src/a",
                    "mkdir lib; mv src/a lib/a; ln -s ../lib src/lib",
                    "rm lib/a; echo new > src/a",
                    &[],
                )
            },
        ),
        (
            "diff <(./app a) <(./app b)",
            Trial {
                fields: "**changes:** app\n",
                ..plain(
                    "printf '#!/bin/sh\nexit 1\n' > app; chmod +x app",
                    "true",
                    "printf '#!/bin/sh\necho 1\n' > app",
                    &["P110"],
                )
            },
        ),
        (
            "test -z \"$(git diff --name-only main -- docs)\"",
            Trial {
                fields: "**changes:** docs/**\n",
                ..plain(
                    "mkdir docs; echo 1 > docs/a",
                    "git branch -m other; echo 2 > docs/a",
                    "git branch -f main; git checkout -q HEAD -- docs",
                    &["P110"],
                )
            },
        ),
        ("git commit …", plain("mkdir src; echo 1 > src/a", "echo 2 > src/a", COMMIT, &["P105", "P111"])),
        (
            "git diff --quiet HEAD -- tests",
            plain(
                "mkdir tests; echo 'test -e done' > tests/a.sh",
                "echo true > tests/a.sh; git -c user.name=w -c user.email=w@example.org commit -qam cheat; touch done",
                "git checkout -q HEAD~1 -- tests",
                &[],
            ),
        ),
        ("curl …", plain("true", "true", "true", &["P104", "P601"])),
    ])
}

/// A row of the table: the contract that is not recommended, and the code that is.
struct Row {
    instead: String,
    write: Option<String>,
}

/// Returns the rows of the table, in whose cells `\|` is a pipe.
fn rows() -> Vec<Row> {
    let page = std::fs::read_to_string(repository().join("docs/contracts.md")).unwrap();
    let table = page.split_once("| Instead of | Write | Because |\n|---|---|---|\n").unwrap().1;
    let rows = table.lines().take_while(|line| line.starts_with('|')).map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let code = |cell: &str| -> Vec<String> {
            cell.split('`').skip(1).step_by(2).map(|code| code.replace('\u{1}', "|")).collect()
        };
        let cells: Vec<&str> = line.split('|').collect();
        Row { instead: code(cells[1])[0].clone(), write: code(cells[2]).pop() }
    });
    rows.collect()
}

/// Returns a step whose contract has words of the table in its place, with a program for each that stands for one.
fn step(fields: &str, contract: &str) -> String {
    let places = [("build", "bash build.sh"), ("run", "bash run.sh"), ("git commit …", COMMIT)];
    let address = contract.replace("curl …", "curl https://example.com/health");
    let contract = places.iter().fold(address, |contract, (word, program)| {
        contract.strip_prefix(word).map_or(contract.clone(), |rest| format!("{program}{rest}"))
    });
    format!(
        "### 1. Work\n\n**target:** coder\n{fields}\n**task:**\nDo the work.\n\n**contract:**\n```bash\n{contract}\n```\n\
         exit_code == 0\n**on_fail:** retry(1), then abort\n"
    )
}

#[test]
fn each_recommended_contract_is_tried_and_no_other() {
    let page: Vec<String> = rows().into_iter().map(|row| row.instead).collect();
    assert_eq!(
        page.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
        trials().into_keys().collect()
    );
}

#[test]
fn each_recommended_contract_refuses_wrong_work_that_the_one_beside_it_passes() {
    for row in rows() {
        let trial = trials().remove(row.instead.as_str()).unwrap();
        let instead = Tried::begin(&step(trial.fields, &row.instead), trial.before);
        let found = instead.findings(&[]);
        assert!(
            trial.found.iter().all(|code| found.iter().any(|found| found == code)),
            "{}: {found:?}",
            row.instead
        );
        // Without a recommended command there is nothing to try: it is the network that must not be asked.
        let Some(write) = row.write else { continue };
        let (ran, verdicts) = instead.run([trial.wrong, trial.right]);
        assert_eq!(verdicts, ["passed"], "{}: {}", row.instead, told(&ran));

        // A field protects files of a step that has some other contract.
        let is_field = write.starts_with("**");
        let (fields, contract) = if is_field {
            (format!("{write}\n"), "test -e done")
        } else {
            (trial.fields.to_owned(), write.as_str())
        };
        let recommended = Tried::begin(&step(&fields, contract), trial.before);
        let (ran, verdicts) = recommended.run([trial.wrong, trial.right]);
        assert_eq!(
            verdicts,
            [if is_field { "tampered" } else { "failed" }, "passed"],
            "{write}: {}",
            told(&ran)
        );
    }
}
