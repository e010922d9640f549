//! Our reading of contracts against bash's own: where both speak, they agree, but for the gaps that are known.

use std::process::Command;

use planctl_lang::{Code, Facts};

/// Scripts that bash accepts.
const VALID: &[&str] = &[
    "test -f x && test -d y",
    "if test -f x; then true; else false; fi",
    "for f in *.md; do grep -q x \"$f\" || exit 1; done",
    "while read -r line; do echo \"$line\"; done < f",
    "case $x in a|b) test -f x ;; *) false ;; esac",
    "x=$(cat f | wc -l); test $x -gt 3",
    "cat <<EOF > f\n$x\nEOF\ntest -f f",
    "cat <<'EOF'\n$(\nEOF",
    "cat <<-EOF\n\tx\n\tEOF",
    "[[ -f x && $y == z* ]]",
    "[[ $x =~ ^[0-9]+$ ]]",
    "diff <(sort a) <(sort b)",
    "(( $(wc -l < f) > 3 ))",
    "! grep -r x src/",
    "f() { test -f \"$1\"; }; f x",
    "function g { test -f x; }; g",
    "a=(1 2 3); test ${#a[@]} -eq 3",
    "set -euo pipefail\ntest -f x",
    "test -f x || { echo no; exit 1; }",
    "(cd src && make)",
    "echo \"a $(echo \"b $(echo c)\") d\" | grep -q c",
    "test \"${x:-y}\" = y",
    "timeout 5 bash -c 'test -f x'",
    "true & wait",
    "test -f x &> log",
    "grep -q 'it'\\''s' f",
    "printf '%s\\n' \"$x\" | grep -q é",
    "until test -f x; do sleep 1; done",
    "for ((i=0;i<3;i++)); do echo $i; done",
    "echo $((1 + 2))",
    "exec 3< f; read -u 3 x; test -n \"$x\"",
    "test -f x && \\\n  test -f y",
    "# only\ntest -f x # tail",
    "{ test -f x; }",
    "select x in a b; do break; done",
    "coproc cat; test -f x",
    "x=1 y=2 env | grep -q x",
    "ls *.{md,txt}",
    "test -f x 2>&1 | tee log",
];

/// Scripts that bash refuses.
const BROKEN: &[&str] = &[
    "test -f x &&",
    "if test -f x; then true",
    "if true; fi",
    "for f in a b; echo",
    "case x in a) true",
    "echo 'open",
    "echo \"open",
    "echo $(open",
    "( test -f x",
    "test -f x )",
    "{ test -f x",
    "fi",
    "done",
    "then",
    "while true; do",
    "test -f x ||",
    "| grep x",
    "&& true",
    "cat < ",
    "echo ;; x",
    "f() {",
    "if; then true; fi",
    "esac",
    "x=(1 2",
    "[[ -f x",
    "do echo; done",
    "for in a; do true; done",
];

fn bash(script: &str) -> Option<String> {
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-n", "-c", script])
        .output()
        .expect("bash is there");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn codes(script: &str, facts: &Facts) -> Vec<Code> {
    let text = crate::sample::with("test -f one.txt", script);
    crate::sample::found_with(&text, facts).into_iter().map(|found| found.code).collect()
}

#[test]
fn p_56_what_bash_refuses_is_refused_with_and_without_bash() {
    for script in BROKEN {
        let said = bash(script);
        assert!(said.is_some(), "bash accepts `{script}`");
        assert!(codes(script, &crate::sample::facts()).contains(&Code::P101), "we accept `{script}`");
        let facts = Facts { syntax: [((*script).to_owned(), said)].into(), ..crate::sample::facts() };
        assert!(codes(script, &facts).contains(&Code::P101), "`{script}`");
    }
}

#[test]
fn p_56_what_bash_accepts_is_accepted_or_said_to_be_unchecked() {
    let mut unchecked = Vec::new();
    for script in VALID {
        assert_eq!(bash(script), None, "`{script}`");
        let codes = codes(script, &crate::sample::facts());
        assert!(!codes.contains(&Code::P101), "we refuse `{script}`");
        if codes.contains(&Code::P109) {
            unchecked.push(*script);
        }
    }
    assert_eq!(unchecked, ["select x in a b; do break; done"]);
}
