//! The contracts of `docs/patterns.md`: each is red before the work, refuses wrong work, and passes for the right one.

use std::collections::BTreeMap;
use std::fs;

use super::tried::Tried;
use super::{repository, told};

/// The scripts that a pattern is tried with; they run in the workspace.
struct Trial {
    /// Makes the workspace, which is committed then.
    before: &'static str,
    /// The first worker's work.
    wrong: &'static str,
    /// The verdict on it.
    verdict: &'static str,
    /// The second worker's work.
    right: &'static str,
}

const fn trial(before: &'static str, wrong: &'static str, right: &'static str) -> Trial {
    Trial { before, wrong, verdict: "failed", right }
}

/// The trials, by the headings of the page.
fn trials() -> BTreeMap<&'static str, Trial> {
    let tests = "mkdir tests; echo 'test \"$(bash total.sh 0.10 0.20)\" = 0.30' > tests/cents.sh
        echo 'test -n \"$(bash total.sh 1 2)\"' > tests/all.sh
        echo 'awk \"BEGIN { print $1 + $2 }\"' > total.sh";
    let names =
        "mkdir src; echo 'old_total() { echo 3; }' > src/a.sh; echo '. src/a.sh; old_total' > src/b.sh
        echo 'test \"$(bash src/b.sh)\" = 3' > test.sh";
    let generated = "printf 'name\\nage\\n' > schema.txt; mkdir gen; echo 'field name' > gen/client
        printf 'generate:\\n\\t@mkdir -p $(OUT)\\n\\t@sed \"s/^/field /\" schema.txt > $(OUT)/client\\n' > Makefile";
    let versions = "echo 'requests==2.31.0' > requirements.txt; echo 'requests==2.31.0 --hash=sha256:1' > requirements.lock
        echo 'test -s requirements.txt' > test.sh";
    let page = "mkdir docs; printf '# Deploying\\n\\nRun it.\\n' > docs/deploy.md";
    let written = "sed -i /TODO/d docs/deploy.md; printf '\\n## Rollback\\n\\nFirst stop the service. Then put the link back to the release before, start the \
        service again, and look at its status page: it names the version that runs.\\n' >> docs/deploy.md";
    let refactored = "mkdir cases; printf 'b\\na\\n' > cases/1.in; printf 'a\\nb\\n' > cases/1.out
        printf 'sorted=$(\\n  cat |\\n  LC_ALL=C sort |\\n  cat\\n)\\nprintf \"%%s\\\\n\" \"$sorted\"\\n' > report.sh";
    let service = "echo 'echo starting' > serve.sh";
    let bundle = "mkdir src; echo 'main' > src/app.txt; printf '%0400d\\n' 0 > src/data.txt
        printf 'dist:\\n\\t@cat src/*.txt > $(OUT)\\n' > Makefile";
    BTreeMap::from([
        (
            "A bug is fixed",
            Trial {
                verdict: "tampered",
                ..trial(
                    tests,
                    "echo true > tests/cents.sh",
                    "git checkout -q tests; echo 'awk \"BEGIN { printf \\\"%.2f\\n\\\", $1 + $2 }\"' > total.sh",
                )
            },
        ),
        (
            "A name is gone everywhere",
            trial(names, "sed -i s/old_total/total/ src/a.sh", "sed -i s/old_total/total/ src/*.sh"),
        ),
        (
            "Generated files are up to date",
            trial(generated, "echo 'field age' > gen/client", "make generate OUT=gen"),
        ),
        (
            "A dependency is at its new version",
            trial(
                versions,
                "sed -i s/2.31.0/2.32.3/ requirements.txt",
                "sed -i s/2.31.0/2.32.3/ requirements.txt requirements.lock",
            ),
        ),
        (
            "A page says what it must",
            trial(page, "printf '\\n## Rollback\\n\\nTODO\\n' >> docs/deploy.md", written),
        ),
        (
            "A refactoring changes nothing",
            trial(refactored, "echo cat > report.sh", "echo 'LC_ALL=C sort' > report.sh"),
        ),
        (
            "A script is valid and does what it says",
            trial(
                "echo 'exit 1' > deploy.sh",
                "echo 'echo copied' > deploy.sh",
                "echo 'if [[ $1 == --dry-run ]]; then echo would copy app.tar; fi' > deploy.sh",
            ),
        ),
        (
            "The work is committed",
            trial(
                "echo 'echo 0' > total.sh; echo 'test \"$(bash total.sh 1 2)\" = 3' > test.sh",
                "echo 'echo $(($1 + $2))' > total.sh",
                "git -c user.name=w -c user.email=w@example.org commit -qam 'total: adds its arguments'",
            ),
        ),
        (
            "A service comes up and answers",
            trial(
                service,
                "printf 'echo \"status: ok\" > \"$1/status\"\\nsleep 0.2\\n' > serve.sh",
                "printf 'echo \"status: ok\" > \"$1/status\"\\nexec sleep 60\\n' > serve.sh",
            ),
        ),
        (
            "It is small enough",
            trial(
                bundle,
                "rm src/*.txt; echo x > src/app.txt",
                "echo main > src/app.txt; rm -f src/data.txt",
            ),
        ),
    ])
}

/// Returns the steps of the page, by their headings.
fn patterns() -> BTreeMap<String, String> {
    let page = fs::read_to_string(repository().join("docs/patterns.md")).unwrap();
    let sections = page.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap());
    let steps = sections.map(|(heading, text)| {
        let step = text.split_once("````markdown\n").and_then(|(_, rest)| rest.split_once("````"));
        (heading.to_owned(), step.unwrap_or_else(|| panic!("{heading}: there is no step")).0.to_owned())
    });
    steps.collect()
}

#[test]
fn each_pattern_is_tried_and_no_other() {
    let page: Vec<String> = patterns().into_keys().collect();
    assert_eq!(page, trials().into_keys().collect::<Vec<_>>());
}

/// Lets a first worker do what is wrong, and a second one what is right.
fn try_pattern(heading: &str) {
    let trial = trials().remove(heading).unwrap();
    let tried = Tried::begin(&patterns().remove(heading).unwrap(), trial.before);
    let found = tried.findings(&["--probe"]);
    assert!(found.is_empty(), "{heading}: {found:?}");
    let (ran, verdicts) = tried.run([trial.wrong, trial.right]);
    assert!(ran.status.success(), "{heading}: {}", told(&ran));
    assert_eq!(verdicts, [trial.verdict, "passed"], "{heading}");
}

macro_rules! tried {
    ($($name:ident: $heading:literal;)*) => {$(
        #[test]
        fn $name() {
            try_pattern($heading);
        }
    )*};
}

tried! {
    a_bug: "A bug is fixed";
    a_name: "A name is gone everywhere";
    generated_files: "Generated files are up to date";
    a_dependency: "A dependency is at its new version";
    a_page: "A page says what it must";
    a_refactoring: "A refactoring changes nothing";
    a_script: "A script is valid and does what it says";
    a_commit: "The work is committed";
    a_service: "A service comes up and answers";
    a_size: "It is small enough";
}
