//! What is said of contracts: those that can't fail or pass, lose failures, wait, write outside, or destroy (P1xx, P6xx).

use crate::sample::{found, with};
use planctl_lang::Code::{self, P104, P109, P110, P111, P112, P113, P601, P602};

fn codes(script: &str) -> Vec<Code> {
    let text = with("test -f one.txt", script);
    let mut codes: Vec<Code> = found(&text).into_iter().map(|found| found.code).collect();
    codes.dedup();
    codes
}

fn all_are(scripts: &[&str], code: Code) {
    for script in scripts {
        assert!(codes(script).contains(&code), "{script}: {:?}", codes(script));
    }
}

fn none_is(scripts: &[&str], code: Code) {
    for script in scripts {
        assert!(!codes(script).contains(&code), "{script}: {:?}", codes(script));
    }
}

#[test]
fn x_19_contracts_that_can_not_fail_are_found() {
    all_are(
        &[
            "true",
            ":",
            "echo done",
            "pytest || true",
            "pytest || :",
            "pytest; exit 0",
            "pytest\nexit 0",
            "pytest; echo ok",
            "pytest && echo ok || echo bad",
            "! false",
            "if pytest; then echo ok; else echo bad; fi",
            "pytest &",
            "(pytest; true)",
            "{ pytest; true; }",
            "if pytest; then exit 0; else exit 0; fi",
            "x=1",
            "printf 'ok'",
            "trap 'exit 0' EXIT\npytest",
            "pytest | true",
            "set +e; pytest; true",
            "false || true",
            "exit 256",
        ],
        P104,
    );
}

#[test]
fn contracts_that_can_fail_are_left_alone() {
    let fine = [
        "test -f x && echo ok",
        "pytest || exit 1; echo ok",
        "set -e\npytest\necho ok",
        "pytest || { echo bad; exit 1; }",
        "if pytest; then exit 0; else exit 1; fi",
        "grep -q x f",
        "! grep -r x src/",
        "x=$(pytest)",
        "[[ -f x ]]",
        "(( $(wc -l < f) > 3 ))",
        "for f in a b; do test -f $f || exit 1; done",
        "case $x in a) true ;; *) false ;; esac",
        "cat f | grep -q x",
        "echo x | grep -q y",
        "f() { pytest; }; f",
        "pytest && true",
        "exit $(cat code)",
        "set -o pipefail; pytest | tee log",
        "test -f x || (echo bad; exit 1)",
    ];
    none_is(&fine, P104);
    none_is(&fine, P113);
}

#[test]
fn contracts_that_can_not_pass_are_found() {
    all_are(&["false", "exit 1", "pytest; exit 3", "! true", "echo x; false"], P113);
    let text = with("test -f one.txt", "false").replacen("exit_code == 0", "exit_code == 1", 1);
    assert!(found(&text).iter().any(|found| found.code == P104));
}

#[test]
fn failures_that_do_not_count_are_found() {
    all_are(
        &[
            "cd src\npytest",
            "pytest; ruff check",
            "pytest\ntest -f x",
            "pytest | tee log",
            "pytest tests | tail -5",
            "set -e; pytest | cat\ntest -f x",
        ],
        P110,
    );
    none_is(
        &[
            "cd src && pytest",
            "set -e\ncd src\npytest",
            "x=$(ls | wc -l)\ntest $x -gt 3",
            "pytest || exit 1\ntest -f x",
            "pytest\ntest $? -eq 1",
            "mkdir -p out\ntest -d out",
            "echo start\npytest",
            "echo a | tee f",
            "set -o pipefail\npytest | tee log",
        ],
        P110,
    );
}

#[test]
fn commands_that_wait_for_a_person_are_found() {
    all_are(
        &[
            "vim x",
            "less f && test -f x",
            "git commit && test -f x",
            "git rebase -i HEAD~2",
            "python",
            "sudo test -f x",
        ],
        P111,
    );
    none_is(
        &["python check.py", "git commit -m x", "python < check.py", "ssh -o BatchMode=yes h true"],
        P111,
    );
}

#[test]
fn writes_outside_of_the_workspace_are_found() {
    all_are(
        &[
            "test -f x > ../log",
            "cp f /etc/x && test -f x",
            "touch ~/done && test -f x",
            "grep x f | tee /var/log/x",
        ],
        P112,
    );
    none_is(
        &[
            "test -f x > /dev/null 2>&1",
            "cp f /tmp/x && test -f x",
            "diff /etc/hosts f",
            "test -f x > out/log",
        ],
        P112,
    );
}

#[test]
fn network_and_destruction_are_found() {
    all_are(
        &["curl -f https://example.org", "gh pr view", "git fetch && test -f x", "test -f $(wget -q x)"],
        P601,
    );
    none_is(&["curl -f http://localhost:8080/", "git status", "cargo test"], P601);
    all_are(
        &[
            "rm -rf build && make",
            "git reset --hard",
            "sudo -n rm -r x",
            "find . -name x -delete",
            "bash -c 'x' && pkill y",
        ],
        P602,
    );
    none_is(&["rm x && test -f y", "git diff --exit-code", "find . -name x"], P602);
}

#[test]
fn scripts_beyond_the_reader_are_said_to_be_unchecked_and_never_crash() {
    for deep in [
        "(".repeat(5_000),
        "$(".repeat(3_000),
        "if true; then ".repeat(1_000),
        "{ ".repeat(2_000),
        "`".repeat(7_001),
    ] {
        assert!(!codes(&deep).is_empty());
    }
    all_are(&["for ((;;)); do break; done", "v=$(case x in x) echo 1 ;; esac)"], P109);
}

#[test]
fn a_nested_script_is_read_in_a_blink() {
    let began = std::time::Instant::now();
    let nested = ["((", "( (", "$((", "$( (", "if ( (", "{ ( {", "[[ ( ( ", "\"$(\"$("];
    for piece in nested {
        for count in 1..=12 {
            codes(&piece.repeat(count));
        }
    }
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}
