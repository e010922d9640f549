//! Findings about contracts: those that can't fail or pass, lose failures, wait, write outside, or destroy (P1xx, P6xx).

use crate::properties::worked;
use crate::sample::{facts, found, found_with, with};
use planctl_lang::Code::{self, P102, P104, P105, P109, P110, P111, P112, P113, P114, P601, P602, P604};
use planctl_lang::{Diagnostic, Facts, FileFact, Source};

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
            "ruff check --exit-zero . ",
            "pylint --exit-zero src",
            "black --diff src",
            "make -i check",
            "trap 'exit 0' EXIT\npytest",
            "trap '{ rm -f /tmp/x\nexit 0; }' EXIT\npytest",
            "t=$(mktemp -d); trap \"rm -rf $t; exit 0\" EXIT; pytest",
            "pytest | true",
            "set +e; pytest; true",
            "false || true",
            "exit 256",
            "f() { echo ok; }; pytest; f",
            "f() { pytest || true; }; f",
            "if pytest; then echo ok; fi",
            "for f in a b; do echo $f; done",
            "while read -r l; do echo $l; done <<< x",
            "[ x ]",
            "test done",
            "[[ x ]]",
            "[ 1 -eq 1 ]",
            "test a = a",
            "[[ -n x && ! -z y ]]",
            "((1))",
            "grep -q '' f",
            "grep -q \".*\" f",
            "grep -rn ^ src/",
            "pytest && true || true",
            "pytest || echo failed",
            "pytest | wc -l",
            "wc -l f",
            "bash -c 'pytest || true'",
            "pytest > log; echo $?",
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
        "f() { exit 1; }; pytest || f; echo ok",
        "f() { pytest; }; f && echo ok",
        "f() { f; }; f",
        "until test -f x; do sleep 1; done",
        "while ! test -f x; do sleep 1; done",
        "while read -r l; do echo $l; done < f",
        "[ \"$x\" ]",
        "test $(wc -l < f) -gt 3",
        "[[ $x == a ]]",
        "((x))",
        "grep -q '^x' f",
        "! grep -q '' f",
        "grep -c x f",
        "test \"$(wc -l < f)\" -ge 10",
        "pytest | grep -q passed",
        "wc -l < f | grep -qx 3",
        "bash -c 'pytest'",
        "echo < f",
    ];
    none_is(&fine, P104);
    none_is(&fine, P113);
}

#[test]
fn x_19_a_script_that_is_fed_to_a_shell_is_read_as_any_other() {
    all_are(
        &[
            "bash <<'EOF'\ntest -s f || true\nEOF",
            "sh -s <<'EOF'\ngrep -q x f\nexit 0\nEOF",
            "bash <<\"EOF\"\npytest\necho ok\nEOF",
            "/bin/bash <<'EOF'\ntest -s f || true\nEOF",
            "/usr/bin/sh -s <<'EOF'\npytest\necho ok\nEOF",
            "/bin/bash -c 'pytest || true'",
            "ksh -c 'pytest || true'",
            "env bash <<'EOF'\ntest -s f || true\nEOF",
            "timeout 60 bash -c 'pytest || true'",
            "env A=1 nice -n 5 bash -c 'pytest || true'",
            "nohup stdbuf -oL sh -c 'pytest; echo ok'",
            "sudo -u ada timeout -k 1 60 bash -c 'pytest || true'",
            "command bash -c 'pytest || true'",
            "time bash -c 'pytest || true'",
            "exec bash -c 'pytest || true'",
            "pytest; exec true",
            "pytest || timeout 5 echo failed",
            "ls | xargs bash -c 'pytest || true'",
            "pytest | nice wc -l",
            "env LC_ALL=C wc -l f",
        ],
        P104,
    );
    all_are(&["timeout 60 false", "env bash -c 'exit 1'", "exec false; true"], P113);
    all_are(&["bash <<'EOF'\npytest | tee log\nEOF"], P105);
    none_is(
        &[
            "bash <<'EOF'\ntest -s f\nEOF",
            "bash -e <<'EOF'\ntest -s f\ntrue\nEOF",
            "bash -euo pipefail -c 'test -s f; true'",
            "bash -ec 'test -s f; true'",
            "/bin/bash -ec 'test -s f; true'",
            "set -e\neval 'test -s f; true'",
            "bash check.sh <<'EOF'\ntrue\nEOF",
            "bash -c 'test -s f' <<'EOF'\ntrue\nEOF",
            "bash -n <<'EOF'\ntrue\nEOF",
            "bash <<EOF\n$COMMAND || true\nEOF",
            "timeout 60 pytest",
            "timeout 60 bash -ec 'test -s f; true'",
            "env -i bash -e <<'EOF'\ntest -s f\ntrue\nEOF",
            "exec pytest; true",
            "ls | xargs cat | wc -l | grep -qx 3",
            "ls | xargs -n 1 bash -c 'exit 1'",
            "find . -exec bash -c 'pytest || true' \\;",
            "true() { pytest; }; true",
        ],
        P104,
    );
}

#[test]
fn x_19_asserts_that_python_is_told_to_leave_out_are_found() {
    all_are(
        &[
            "python3 -O -c 'assert 1 == 2'",
            "python3 -OBc 'import f; assert f.x'",
            "python -OO - <<'EOF'\nimport f\nassert f.x\nEOF",
            "PYTHONOPTIMIZE=1 python3 -c 'import f; assert(f.x)'",
            "timeout 60 env PYTHONOPTIMIZE=2 python3.12 -c 'assert 0'",
            "/opt/pypy/bin/pypy3.10 -O -c 'assert 0'",
        ],
        P104,
    );
    none_is(
        &[
            "python3 -c 'assert 1 == 2'",
            "python3 -c 'import app; app.main(); print(\"ok\")'",
            "python3 -c 'import app; assert app.x; print(app.x == 3)'",
            "python3 -B -c 'assert 1 == 2'",
            "python3 -O -c 'import sys; sys.exit(1)'",
            "python3 -O check.py",
            "python3 check.py -O <<'EOF'\nassert x\nEOF",
            "PYTHONOPTIMIZE= python3 -c 'assert 0'",
        ],
        P104,
    );
    assert_eq!(marked("python3 -O -c 'assert 1 == 2'", P104), "-O");
}

#[test]
fn contracts_that_can_not_pass_are_found() {
    all_are(&["false", "exit 1", "pytest; exit 3", "! true", "echo x; false"], P113);
    let text = with("test -f one.txt", "false").replacen("exit_code == 0", "exit_code == 1", 1);
    assert!(found(&text).iter().any(|found| found.code == P104));
}

#[test]
fn a06_a_contract_that_counts_tests_and_writes_no_report_is_found() {
    let counted = |command: &str| {
        let text = with("test -f one.txt", command).replacen(
            "exit_code == 0",
            "exit_code == 0\n\n**min_tests:** 3",
            1,
        );
        found(&text).into_iter().find(|found| found.code == P113)
    };
    let without = counted("test -f one.txt").expect("a finding");
    assert!(without.message.contains("writes no report of the 3 tests"), "{without:?}");
    assert_eq!(counted("test -f one.txt > \"$PLANCTL_REPORTS/a.tap\""), None);
    let asks = with("**task:**", "**type:** human\n**min_tests:** 3\n**task:**");
    let idle = found(&asks).into_iter().find(|found| found.message.contains("no tests are counted"));
    assert_eq!(idle.map(|found| found.code), Some(Code::P015));
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
            "f() { cd src; pytest; }; f",
            "(pytest; ruff check)",
            "{ pytest\nruff check; } && test -f x",
            "set -e; (pytest; ruff check) || exit 1",
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
            "pytest | tail -3; test ${PIPESTATUS[0]} -eq 0",
            "cmp -s a b || { diff a b; exit 1; }",
            "cat > /tmp/x <<EOF\na\nEOF\ntest -f x",
            "i=0; ((i++)); test $i -eq 1",
            "set -e; (pytest; ruff check)",
            "f() { pytest && ruff check; }; f",
        ],
        P110,
    );
}

#[test]
fn d7_a_status_that_is_kept_or_chosen_by_is_not_lost() {
    none_is(
        &[
            "grep -q x f && found=1\n[ \"$found\" = 1 ]",
            "result=fail\ngrep -q x f && result=pass\n[ $result = pass ]",
            "errors=0\ntest -f a || ((errors++))\ntest -f b || ((errors++))\nexit $errors",
            "n=0\nwhile read -r f; do test -f \"$f\" && ((n++)); done < list\n[ $n -eq 4 ]",
            "while ! test -s a; do sleep 1; done\ngrep -q x a",
            "[[ -f .env ]] && source .env\npytest",
            "docker rm -f x >/dev/null 2>&1\npytest",
            "git status --short\npytest",
            "tail -5 log\npytest",
            "cat log; test -f x",
            "diff a b > /tmp/d\n[ ! -s /tmp/d ]",
            "make && ! make 2>&1 | grep -q warning",
            "cargo test -p cart --test all -- --test-threads 1",
            "cargo test --features a --no-fail-fast -j 2",
            "grep -q 'fn adds' tests/all.rs && cargo test adds",
            "cargo test adds > \"$PLANCTL_REPORTS/cargo.txt\"",
            "make gen && git diff --exit-code && test -z \"$(git status --porcelain)\"",
            "make gen && git add -A && git diff --cached --exit-code",
            "make gen && git diff --exit-code -- src/table.c",
            "pytest && git diff --exit-code",
            "git diff --quiet HEAD -- src && make && ! git diff --quiet",
            "pre-commit run --all-files && pre-commit run -a && npx nx run-many -t test",
            "npm test -- test/a.js && yarn build -t es5 && cargo +nightly test --all-features",
            "vitest run -t adds --reporter=junit --outputFile=\"$PLANCTL_REPORTS/vitest.xml\"",
            "rspec spec/a_spec.rb && phpunit tests && bats tests && bundle exec rspec",
            "go test -race ./... && python3 -m unittest tests.test_a && npx jest src/a.test.js",
            "make > /tmp/log && ! grep -q warning /tmp/log",
            "! git log -3 | grep -q WIP && ! cat a.txt | grep -q x",
            "make test | tail -5 && exit ${PIPESTATUS[0]}",
            "for f in a b; do grep -q x $f && n=$((n+1)); done; [ \"$n\" -eq 2 ]",
            "[ -d build ] || mkdir build; make",
            "fail=0; for f in a b; do test -f $f || fail=1; done; [ $fail -eq 0 ]",
            "if grep -q ERROR log; then exit 1; fi",
            "grep -q ERROR log && exit 1; exit 0",
            "if [ -f a ]; then grep -q x a; else exit 1; fi",
            "test -f a || test -f b",
            "cmp -s a b || { diff a b; exit 1; }",
            "for f in *.sh; do bash -n $f || exit 1; done",
            "set -e\n[ -f .env ] && source .env\npytest",
            "find . -name '*.sh' -exec bash -n {} +",
            "find . -name x -exec rm {} \\;; test ! -f x",
            "if ! grep -q x f; then echo no; exit 1; fi",
            "out=$(pytest)\n[ $? -eq 0 ] && echo \"$out\" | grep -q passed",
            "git diff --name-only | grep -v docs/ | grep -q src",
            "f() { test -f a || return 1; test -f b; }; f",
            "while read -r t; do bash \"$t\" < /dev/null || exit 1; done < list",
            "while read -r t; do test \"$(bash -c '. src/a.sh; a' < /dev/null)\" = \"$t\" || exit 1; done < list",
            "find tests -name '*.sh' -print0 | xargs -0 -n 1 bash",
            "while read -r t; do grep -q \"$t\" src || exit 1; echo x | ./app || exit 1; done < list",
            "bash tests/check.sh < input && bash -e <<'EOF'\ntest -f a\nEOF",
            "test \"$(./app)\" = 3 && [[ $(./app) == 3 ]] && [ $(./app | wc -l) = 3 ]",
            "n=$(./app)\ntest \"$n\" -gt 5 && m=$(grep -c x f) && ((m > 5))",
        ],
        P110,
    );
}

#[test]
fn a12_code_that_may_lead_the_contracts_shell_is_found() {
    all_are(
        &[
            "while read -r t; do bash \"$t\" || exit 1; done < list",
            "cat list | while read -r t; do test \"$(./app \"$t\")\" = x || exit 1; done",
            "while read -r t; do [[ $(python3 app.py \"$t\") == x ]] || exit 1; done < <(ls tests)",
            "bash < tests/check.sh",
            "cat tests/check.sh | bash -e",
            "bash -e <<'EOF'\n./app a\n./app b\nEOF",
            "test $(./app) = 3",
            "[ \"$(./app a)\" = 3 -a $(./app b) = 4 ]",
            "out=$(./app)\n[ $out = 3 ]",
            "[[ $(./app) -gt 5 ]]",
            "n=$(./app | tail -1)\n[[ \"$n\" -gt 5 ]]",
            "n=$(./app)\n((n > 5))",
        ],
        P110,
    );
}

#[test]
fn d7_failures_that_are_lost_on_some_way_are_found() {
    all_are(
        &[
            "[ -f x ] || exit 0\ngrep -q y x",
            "if [ -f x ]; then grep -q y x; fi",
            "if ! command -v node >/dev/null; then exit 0; fi\nnode check.js",
            "pytest | grep -v Warn",
            "cat l | while read -r f; do test -f $f || fail=1; done; [ $fail -eq 0 ]",
            "(test -f a || fail=1); [ $fail -eq 0 ]",
            "test -f a || errs=1; [ -z \"$errors\" ]",
            "find . -name '*.py' -exec python3 -m py_compile {} \\;",
            "set -e\n! grep -q x f\necho ok",
            "f() { set -e; test -f a; test -f b; }; if f; then exit 0; else exit 1; fi",
            "f() { local o=$(pytest); [ $? -eq 0 ]; }; f",
            "for f in a b; do grep -q x $f; done",
            "! make 2>&1 | grep -q warning",
            "cargo test -q adds_cents",
            "cargo test -p cart --test all -- --test-threads 1 adds",
            "go test ./... -run TestAdds && test -f x",
            "timeout 60 python3 -m unittest -k adds",
            "make gen && git diff --exit-code",
            "python3 tools/gen.py; git diff --quiet -- src",
            "npx jest -t adds",
            "npm test -- --testNamePattern adds",
            "npm run test:unit -- --testNamePattern=adds",
            "yarn jest -t adds && pnpm --filter web exec tsc",
            "pnpm vitest run -t adds",
            "cargo +nightly test adds",
            "npx vitest run --passWithNoTests",
            "npx jest --onlyChanged && npx vitest run --changed",
            "pre-commit run && npx lint-staged",
            "npx nx affected -t test",
            "pytest --lf",
            "npm run check --if-present",
            "npx mocha --grep=adds test/a.js",
            "rspec -e adds spec",
            "vendor/bin/phpunit --filter testAdds",
            "bats -f adds tests",
            "node --test --test-name-pattern=adds tests",
            "set -o pipefail; if ./app | sort | grep -q old; then exit 1; fi",
            "pytest 2>&1 | grep -q Warning && exit 1; exit 0",
            "set -e; cd src && pytest; echo ok",
            "test -f x && echo ok; pytest",
            "cleanup() { rm -f /tmp/x; }; trap cleanup EXIT; pytest; test -f x",
        ],
        P110,
    );
    all_are(
        &[
            "cleanup() { rm -f /tmp/x; exit 0; }; trap cleanup EXIT; pytest",
            "pytest & ruff check & wait",
            "test \"$(grep -c x f)\"",
            "[ -n \"$(cat f | wc -l)\" ]",
        ],
        P104,
    );
    for code in [P110, P113] {
        none_is(
            &[
                "trap 'exit 1' ERR\ntest -f x\ngrep -q x y",
                "trap 'echo \"line $LINENO\"; exit $?' ERR; pytest; test -f x",
            ],
            code,
        );
    }
    none_is(
        &[
            "cleanup() { rm -f /tmp/x; }; trap cleanup EXIT; pytest",
            "pytest & wait $!",
            "date -d \"$(cat f)\"",
        ],
        P104,
    );
}

#[test]
fn d7_programs_that_succeed_whatever_they_say_prove_nothing() {
    all_are(
        &[
            "jq '.version == \"2\"' package.json",
            "curl -s http://localhost:8080/health",
            "git diff",
            "git -C x diff --stat",
            "git status",
            "make -n",
            "pytest --collect-only",
            "python3 -c 'print(1 == 2)'",
            "python3 -c 'import app; print(app.add(1, 2) == 3)'",
            "node -e 'console.log(require(\"./app\").add(1, 2) === 3)'",
            "grep -q 'z*' f",
            "grep -q '^[a-z]*' f",
        ],
        P104,
    );
    none_is(
        &[
            "jq -e '.version == \"2\"' package.json",
            "jq . package.json",
            "curl -sf http://localhost:8080/health",
            "curl -s http://localhost:8080/health | grep -q ok",
            "git diff --quiet",
            "make",
            "python3 -c 'assert 1 == 2'",
            "python3 -c 'import app; app.main(); print(\"ok\")'",
            "python3 -c 'import app; assert app.x; print(app.x == 3)'",
            "test -f x && git diff",
            "x=$(grep -c . f); [ \"$x\" -eq 3 ]",
            "grep -q 'z*y' f",
            "grep -q '^z*$' f",
        ],
        P104,
    );
}

#[test]
fn d7_a_tool_that_failed_and_printed_nothing_is_told_where_that_passes() {
    all_are(
        &[
            "[[ $(jq '.errors | length' report.json) -eq 0 ]]",
            "n=$(jq '.errors | length' report.json)\n(( n == 0 ))",
            "n=$(psql -tAc 'select count(*) from t')\n[[ \"$n\" -lt 1 ]]",
            "[[ 100000 -gt $(wc -c < dist/app.js) ]]",
            "if [[ $(stat -c %s dist/app.js) -gt 100 ]]; then exit 1; fi",
            "test -z \"$(gofmt -l .)\"",
            "[ -z \"$(npx prettier -l src | sort)\" ]",
            "out=$(./lint src)\ntest -z \"$out\"",
            "[[ -z $(jq -r '.[] | select(.ok | not)' results.json) ]]",
            "./list | while read -r f; do test -f \"$f\" || exit 1; done",
            "for f in $(python3 list.py); do test -f \"$f\" || exit 1; done",
            "python3 bench.py | awk '/p95/ { exit !($2 < 200) }'",
            "grep p95 bench.txt | awk '{ if ($2 > 200) exit 1 }'",
            "curl -fsS http://localhost:8080/health | jq -e '.status == \"ok\"'",
            "cat results.json | jq -e .ok",
            "./bench | perl -ne 'exit 1 if /slow/'",
        ],
        P110,
    );
    none_is(
        &[
            "n=$(jq '.errors | length' report.json) && [[ $n -eq 0 ]]",
            "set -e\nn=$(jq '.errors | length' report.json)\n[[ $n -eq 0 ]]",
            "n=$(jq '.errors | length' report.json) || exit 1\n[[ $n -eq 0 ]]",
            "[ \"$(jq '.errors | length' report.json)\" -eq 0 ]",
            "[[ $(jq length report.json) -ge 3 ]] && [[ $(ls docs | wc -l) -lt 9 ]]",
            "[[ $(grep -c TODO src/a.py) -eq 0 ]]",
            "test -z \"$(git status --porcelain)\" && [ -z \"$(grep -rl TODO src)\" ]",
            "test -z \"$(cut -d ' ' -f 1 a.txt | comm -23 - <(sort b.txt))\"",
            "out=$(./lint src) && test -z \"$out\"",
            "test -n \"$(./lint src)\"",
            "x=\ntest -z \"$x\"",
            "git ls-files '*.md' | while read -r f; do grep -q x \"$f\" || exit 1; done",
            "python3 bench.py | awk '/p95/ { ok = $2 < 200 } END { exit !ok }'",
            "awk '/p95/ { if ($2 > 200) exit 1 }' bench.txt && echo '{}' | jq -e .a",
            "test -f list.md && grep -c '^-' list.md | awk '{ exit ($1 > 0 ? 0 : 1) }'",
            "set -o pipefail; curl -fsS http://localhost:8080/health | jq -e .ok",
            "./app --json | jq -se 'length > 0' && jq -e .ok results.json",
        ],
        P110,
    );
}

#[test]
fn the_runner_behind_a_script_of_a_package_says_whether_tests_are_chosen_by_name() {
    let package = r#"{"scripts": {"test": "mocha test", "test:web": "cross-env CI=1 vitest run", "unit": "jest", "rust": "cargo test",
                      "all": "npm run unit -- -t adds", "loop": "npm run loop"}}"#;
    let found = |script: &str, package: &str| {
        let mut known = facts();
        known.texts.insert("package.json".into(), package.into());
        found_with(&with("test -f one.txt", script), &known).iter().any(|found| found.code == P110)
    };
    for script in [
        "npm run test:web -- -t adds",
        "yarn unit -t adds",
        "pnpm run unit -t adds",
        "npm test -- --grep adds",
        "npm run all",
        "CI=1 npm run unit -- --onlyChanged",
        "npm run --silent unit -- -t adds",
        "npm run rust adds",
        "pnpm -w run unit -t adds",
        "yarn unit -w -t adds",
        "bun run unit -t adds",
    ] {
        assert!(found(script, package), "{script}");
    }
    for script in [
        "npm test -- -t 5000",
        "npm t -- --timeout 5000 test/a.js",
        "npm run unit -t 3",
        "npm run unit && npm run test:web",
        "npm run loop -- -t adds",
        "npm run lint -- -t adds",
        "cd web && npm run unit -- -t adds",
        "npm --prefix web run unit -- -t adds",
        "npm run unit -C web -- -t adds",
        "npm run unit -w web -- -t adds",
        "pnpm -r run unit -t adds",
        "pnpm -rF web run unit -t adds",
        "yarn workspace unit run other -t adds",
        "bun run -F web unit -t adds",
        "bun test -t adds",
        "npm run unit -- -t adds --json --outputFile=\"$PLANCTL_REPORTS/a.xml\"",
        "grep -q adds test/a.js && npm run unit -- -t adds",
    ] {
        assert!(!found(script, package), "{script}");
    }
    assert!(!found("npm test -- -t 5000", "no JSON"));
    let each_other =
        format!(r#"{{"scripts": {{"test": "{0}", "unit": "{0}"}}}}"#, "npm t; npm run unit; ".repeat(500));
    assert!(!found("npm test -- -t 5000", &each_other), "each is looked at once");
    assert!(!codes("npm test -- -t 5000").contains(&P110));
    let wants = |script: &str| {
        let text = with("test -f one.txt", script);
        planctl_lang::read(&Source::new("p", &*text)).wants().texts
    };
    assert!(wants("npm test -- -t 5000").contains("package.json"));
    assert!(!wants("make test").contains("package.json"));
}

#[test]
fn two_commands_that_failed_print_the_same_and_that_is_told_where_they_are_compared() {
    all_are(
        &[
            "diff <(sort a.txt) <(sort b.txt)",
            "diff <(./app a) <(./app b)",
            "cmp -s <(python3 gen.py) <(node gen.js) && test -f one.txt",
            "diff -u <(jq -S . a.json) <(jq -S . b.json) > /dev/null",
            "diff <(cd a && find . | sort) <(cd b && find . | sort)",
            "if ! diff -q <(ls src) <(ls dist); then exit 1; fi",
            "test \"$(cat a.txt)\" = \"$(cat b.txt)\"",
            "[ \"$(sha256sum < a.txt)\" = \"$(sha256sum < b.txt)\" ]",
            "[ \"$(./app a | sha256sum)\" == \"$(./app b | sha256sum)\" ]",
            "[[ $(./app a) == $(./app b) ]]",
            "a=$(./app a)\nb=$(./app b)\n[ \"$a\" = \"$b\" ]",
            "if [[ $(./app a) != $(./app b) ]]; then exit 1; fi",
            "test -f one.txt && [ \"$(ls a | wc -l)\" = \"$(ls b | wc -l)\" ]",
        ],
        P110,
    );
    none_is(
        &[
            "test -s a.txt && diff <(sort a.txt) <(sort b.txt)",
            "diff <(printf 'a\\nb\\n') <(sort out.txt)",
            "diff <(echo 3) <(./app)",
            "diff expected.txt <(./app)",
            "./app a > /dev/null && diff <(./app a) <(./app b)",
            "set -o pipefail; diff <(git show HEAD:a.txt) a.txt",
            "diff <(git ls-files docs) <(sort files.txt)",
            "diff a.txt b.txt && ! diff -q <(./app a) <(./app b)",
            "set -e\na=$(./app a)\nb=$(./app b)\n[ \"$a\" = \"$b\" ]",
            "[ \"$(./app a | wc -l)\" = \"$(./app b)\" ]",
            "[ \"$(id -u)\" = \"$(id -g)\" ]",
            "[ \"$(git rev-parse HEAD)\" = \"$(git rev-parse HEAD~1)\" ] || test -f one.txt",
            "[ \"$(jq -r .version a.json)\" = 1.2.0 ] && grep -q x b.json",
            "grep -q x b.json && [ \"$(jq -r .v a.json)\" = \"$(jq -r .v b.json)\" ]",
        ],
        P110,
    );
    // A file that is there today, and protected, is printed.
    let text = with("test -f one.txt", "diff <(sort expected.txt) <(sort out.txt)");
    let mut known = facts();
    assert!(found_with(&text, &known).iter().any(|found| found.code == P110));
    known.files.insert("expected.txt".into(), FileFact::Regular { size: 9 });
    assert!(!found_with(&text, &known).iter().any(|found| found.code == P110));
    known.files.insert("expected.txt".into(), FileFact::Regular { size: 0 });
    assert!(found_with(&text, &known).iter().any(|found| found.code == P110));
    let text = with("test -f one.txt", "diff <(ls src) <(ls dist)");
    known.files.insert("src".into(), FileFact::Directory);
    assert!(!found_with(&text, &known).iter().any(|found| found.code == P110));
}

#[test]
fn git_prints_nothing_of_a_branch_that_is_not_there() {
    all_are(
        &[
            "test -z \"$(git diff --name-only main -- docs)\"",
            "test -z \"$(git -C web diff --name-only feature-x -- docs)\"",
            "[[ -z $(git log --oneline origin/main..HEAD -- docs) ]]",
            "out=$(git diff --name-only main...HEAD)\n[ -z \"$out\" ]",
            "! git diff --name-only origin/main...HEAD | grep -q '^docs/'",
            "[ \"$(git log --oneline main..HEAD -- docs | wc -l)\" -eq 0 ]",
            "[ $(git rev-list main..HEAD --count) = 0 ] || [ -z \"$(git diff v1.2.0 -- api)\" ]",
        ],
        P110,
    );
    none_is(
        &[
            "test -z \"$(git diff --name-only)\"",
            "test -z \"$(git diff --name-only HEAD -- docs)\"",
            "test -z \"$(git diff --name-only HEAD~1 HEAD -- docs)\"",
            "test -z \"$(git diff --name-only 1c9f02ab -- docs)\"",
            "test -z \"$(git diff --name-only -- src/main)\"",
            "test -z \"$(git status --porcelain docs)\"",
            "test -z \"$(git log -n 3 --grep WIP -- docs)\"",
            "git diff --quiet main -- docs",
            "git rev-parse -q --verify main > /dev/null && out=$(git diff --name-only main) && [ -z \"$out\" ]",
            "test -n \"$(git log main..HEAD --oneline)\"",
            "! git log -3 | grep -q WIP",
        ],
        P110,
    );
}

#[test]
fn a_check_for_what_must_not_be_printed_passes_where_nothing_is() {
    all_are(
        &[
            "! [ \"$(jq .errors report.json)\" -gt 0 ]",
            "if [ \"$(jq .errors report.json)\" -gt 0 ]; then exit 1; fi",
            "[ \"$(jq .errors report.json)\" -ne 0 ] && exit 1; exit 0",
            "if test $(jq .errors report.json) != 0; then exit 1; fi",
            "[ \"$(./lint src)\" = '' ] && test -f one.txt",
            "[[ \"$(./lint src)\" == \"\" ]]",
            "! [ -n \"$(./lint src)\" ]",
            "! test \"$(npx prettier -l src)\"",
            "[ ! \"$(gofmt -l .)\" ]",
            "[[ ! $(gofmt -l .) ]]",
            "[[ $(./app) != *error* ]]",
            "[[ ! $(./app) =~ FAIL ]]",
            "if [[ \"$(./app check)\" == *FAIL* ]]; then exit 1; fi",
            "[ \"$(./app version)\" != 1.0 ]",
            "test \"$(gofmt -l . | wc -l)\" -eq 0",
            "[ 0 = \"$(./lint src | grep -c error)\" ]",
            "n=$(./lint src | wc -l)\n[ \"$n\" -lt 1 ]",
        ],
        P110,
    );
    none_is(
        &[
            "[ \"$(jq .errors report.json)\" -eq 0 ]",
            "[ \"$(jq .errors report.json)\" = 0 ]",
            "if [ \"$(jq .errors report.json)\" != 0 ]; then exit 1; fi",
            "[[ $(./app) == *ok* ]]",
            "[[ $(./app) =~ ^ok ]]",
            "[ \"$(id -u)\" != 0 ]",
            "[ \"$(uname)\" != Darwin ] && [[ $(hostname) != *prod* ]]",
            "[ \"$(git status --porcelain | wc -l)\" -eq 0 ]",
            "[ \"$(git branch --show-current)\" != main ]",
            "[ \"$(cat log | grep -c ERROR)\" -eq 0 ]",
            "[ \"$(ls docs | wc -l)\" -lt 9 ]",
            "[ \"$(./app | wc -l)\" -gt 3 ]",
            "[ \"$(wc -l < notes.md)\" -lt 100 ]",
            "[ $(find . -name '*.orig' | wc -l) -eq 0 ]",
            "[ \"$(grep -rc TODO src)\" != 3 ]",
            "test $(docker ps -q | wc -l) -eq 0",
            "[ -n \"$(./lint src)\" ] && [ ! -f old.txt ]",
            "! test -f old.txt && ! [ \"$HOME\" = / ]",
        ],
        P110,
    );
}

#[test]
fn d7_one_test_that_passed_does_not_say_that_none_failed() {
    all_are(
        &[
            "pytest -q | grep -q passed",
            "pytest 2>&1 | grep -qE '[0-9]+ passed'",
            "cargo test 2>&1 | grep -q 'test result: ok'",
            "npm test 2>&1 | grep passing",
            "npx jest 2>&1 | grep -q 'Tests:.*passed'",
            "make test | grep -q '0 failed'",
            "python3 -m unittest 2>&1 | grep -q OK",
        ],
        P110,
    );
    none_is(
        &[
            "cargo test 2>&1 | grep -q 'test cart::adds ... ok'",
            "go test -v ./... | grep -q -- '--- PASS: TestAdds'",
            "make build | grep -q done && cargo run | grep -q ok",
            "set -o pipefail; pytest -q | grep -q passed",
            "pytest > /tmp/log && grep -q passed /tmp/log",
            "npx jest --json --outputFile=\"$TMPDIR/j.json\"; jq -e '.numPassedTests > 5' \"$TMPDIR/j.json\"",
        ],
        P110,
    );
}

#[test]
fn d7_a_pattern_that_grep_refuses_finds_nothing() {
    let refused =
        ["! grep -rE 'console.log(' src", "! grep -q '[a' f", "! rg -q 'print(' src", "! egrep -q 'a|(b' f"];
    all_are(&refused, P104);
    all_are(&["grep -qE 'print(' f", "grep -q 'a\\(b' f", "grep -q '[^]a' f && test -f x"], P113);
    let fine = [
        "! grep -q 'print(' f",
        "grep -qF '[a' f",
        "grep -qE '\\(a[(]' f",
        "grep -qE 'a)' f",
        "grep -q '[]a]' f",
        "grep -q '[[:digit:](]' f",
        "grep -qP '\\Q(\\E' f",
        "grep -qE \"$x(\" f",
    ];
    for code in [P104, P113] {
        none_is(&fine, code);
    }
}

#[test]
fn d7_what_is_lost_is_marked_at_its_place() {
    assert_eq!(marked("[ -f x ] || exit 0\ngrep -q y x", P110), "[ -f x ]");
    assert_eq!(marked("for f in a b; do grep -q x $f; done", P110), "grep -q x $f");
    assert_eq!(marked("test -f a || errs=1; [ -z \"$errors\" ]", P110), "errs=1");
}

#[test]
fn d7_calls_of_functions_by_functions_are_followed_once() {
    let calls = |at: usize| format!("f{at}() {{ {} }}\n", format!("f{};", at + 1).repeat(60));
    let script: String = (0..7).map(calls).collect();
    let began = worked();
    codes(&format!("{script}f7() {{ test -f x; }}\nf0"));
    let time = worked() - began;
    assert!(time.as_secs() < 20, "{time:?}");
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
    all_are(&["cat ~99999999999999999999/x", "echo `if`"], P109);
    none_is(&["for ((;;)); do break; done", "v=$(case x in x) echo 1 ;; esac)"], P109);
}

#[test]
fn a_nested_script_is_read_in_a_blink() {
    let began = worked();
    let nested = ["((", "( (", "$((", "$( (", "if ( (", "{ ( {", "[[ ( ( ", "\"$(\"$("];
    for piece in nested {
        for count in 1..=12 {
            codes(&piece.repeat(count));
        }
    }
    let time = worked() - began;
    assert!(time.as_secs() < 10, "{time:?}");
}

fn found_in(script: &str) -> Vec<Diagnostic> {
    found(&with("test -f one.txt", script))
}

/// The text that the first finding of a code points at.
fn marked(script: &str, code: Code) -> String {
    marked_in(&with("test -f one.txt", script), code)
}

fn marked_in(text: &str, code: Code) -> String {
    let found = found(text);
    let of_code =
        found.iter().find(|found| found.code == code).unwrap_or_else(|| panic!("{code}: {found:?}"));
    let span = of_code.spans[0].span;
    text[span.start..span.end].to_owned()
}

#[test]
fn x_19_a_search_that_finds_either_verdict_proves_nothing() {
    all_are(
        &[
            "grep -q \"APPROVED\\|CHANGES_REQUESTED\" docs/review.md",
            "grep -qE '^(approved|rejected)$' f",
            "grep -Eq 'verdict: (pass|fail)' f",
            "grep -qi -e yes -e no f",
            "rg -q 'true|false' f",
            "grep -q approved f || grep -q rejected f",
            "[[ $verdict =~ ok|error ]]",
            "egrep 'success|failure' log",
            "test -f f && grep -qE 'DONE|PENDING' f",
        ],
        P104,
    );
    none_is(
        &[
            "grep -q APPROVED docs/review.md",
            "grep -qE 'APPROVED|LGTM' f",
            "grep -Eq 'passed|ok' log",
            "! grep -qE 'error|fail' log",
            "grep -qE '0 failed|all passed' log",
            "grep -q 'approved|rejected' f",
            "grep -F 'approved|rejected' f",
            "grep -qE 'approved|rejected' f && grep -q approved f",
            "grep -q a f || grep -q b f",
            "grep -vqE 'pass|fail' f",
        ],
        P104,
    );
    let script = "grep -q \"APPROVED\\|CHANGES_REQUESTED\" docs/review.md";
    assert_eq!(marked(script, P104), "\"APPROVED\\|CHANGES_REQUESTED\"");
    let found = found_in(script);
    let help = found[0].help.as_deref().unwrap_or("");
    assert!(help.contains("`APPROVED`"), "{help}");
}

/// The contract as the fix of its first finding leaves it.
fn mended(script: &str) -> Option<String> {
    let text = with("test -f one.txt", script);
    let found = found(&text);
    let fix = found.iter().find(|found| found.code == P104)?.fix.clone()?;
    assert!(!fix.safe, "what decides becomes another command");
    let mut mended = text;
    for edit in fix.edits.iter().rev() {
        mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
    }
    assert!(!found_codes(&mended).contains(&P104), "{mended}");
    let begin = mended.find("```shell\n")? + 9;
    let end = begin + mended[begin..].find("\n```")?;
    Some(mended[begin..end].to_owned())
}

fn found_codes(text: &str) -> Vec<Code> {
    found(text).into_iter().map(|found| found.code).collect()
}

#[test]
fn what_makes_a_contract_vacuous_can_be_dropped() {
    for (script, fixed) in [
        ("pytest || true", "pytest"),
        ("cd src && pytest || :", "cd src && pytest"),
        ("pytest; exit 0", "pytest"),
        ("pytest\necho done", "pytest"),
        ("\tpytest 'é' || echo bad", "\tpytest 'é'"),
        ("pytest &", "pytest"),
        ("pytest | wc -l", "pytest"),
        ("grep -q x <<EOF || true\nx\nEOF", "grep -q x <<EOF\nx\nEOF"),
    ] {
        assert_eq!(mended(script).as_deref(), Some(fixed), "{script}");
    }
    for script in ["true", "echo done", "if pytest; then echo ok; fi", "echo a; echo b"] {
        assert_eq!(mended(script), None, "{script}");
    }
    let windows = with("test -f one.txt", "pytest\necho done").replace('\n', "\r\n");
    assert_eq!(marked_in(&windows, P104), "echo done");
}

fn missing(script: &str, commands: &[&str]) -> Vec<(String, usize)> {
    let commands = commands.iter().map(|name| ((*name).to_owned(), false)).collect();
    let facts = Facts { commands, ..crate::sample::facts() };
    let text = with("test -f one.txt", script);
    let start = text.find(script).unwrap_or(0);
    let found = crate::sample::found_with(&text, &facts);
    let of_code = found.iter().filter(|found| found.code == P102);
    of_code
        .map(|found| {
            let span = found.spans[0].span;
            (text[span.start..span.end].to_owned(), span.start - start)
        })
        .collect()
}

#[test]
fn commands_are_looked_for_wherever_they_are_started() {
    for script in [
        "frob x",
        "f() { frob x; }; f",
        "test -n \"$(frob x)\"",
        "test -n `frob x`",
        "ls | xargs -I{} frob {}",
        "ls | xargs -n 1 frob",
        "env A=1 B=2 frob x",
        "timeout 5 frob x",
        "timeout -k 1 5 frob x",
        "find . -name x -exec frob {} \\;",
        "find . -exec frob {} +",
        "sudo -n frob",
        "command frob x",
        "nice -n 5 frob",
        "time frob x",
        "bash -c 'frob x'",
        "bash -lc \"frob x\"",
        "timeout 5 bash -c 'cd x && frob'",
        "diff <(frob a) b",
        "cat <<EOF\né $(frob x)\nEOF",
        "cat <<-EOF\n\t\t$(frob x)\n\tEOF",
        "if frob; then true; else false; fi",
        "[[ -n $(frob) ]]",
        "(( $(frob) > 3 ))",
        "echo $(( $(frob) + 1 ))",
        "x=\"${y:-$(frob)}\"; test $x",
        "trap 'frob x' EXIT; test -f x",
        "A=1 frob",
        "! frob",
        "echo \\\n  a | \\\n  frob",
        "v=$(case $x in a) frob ;; esac); test $v",
        "echo \"é ü 漢\t$(echo `frob`)\"",
        "echo \"$(echo \"$(echo \"é $(frob)\")\")\"",
        "a=(1\n  $(frob) # x\n 2)",
    ] {
        let at = script.find("frob").unwrap_or(0);
        assert_eq!(missing(script, &["frob"]), [("frob".to_owned(), at)], "{script}");
    }
}

#[test]
fn names_that_are_no_programs_are_not_looked_for() {
    for script in [
        "frob() { test -f x; }; frob",
        "alias frob='test -f'; frob x",
        "if command -v frob >/dev/null; then frob x; else test -f x; fi",
        "command -v frob && frob x",
        "type frob && frob",
        "PATH=$PWD/bin:$PATH; frob",
        "export PATH=bin:$PATH; frob",
        "source venv/bin/activate; frob",
        "echo frob",
        "test -f frob",
        "grep -q frob f",
        "cat <<'EOF'\n$(frob)\nEOF",
        "echo '$(frob)'",
        "echo \\$\\(frob\\)",
        "case frob in frob) test -f x ;; esac",
        "for frob in a; do test -f $frob; done",
        "# frob\ntest -f x",
        "\"$frob\" x",
    ] {
        assert_eq!(missing(script, &["frob"]), [], "{script}");
    }
}

#[test]
fn places_are_exact_with_tabs_carriage_returns_and_wide_characters() {
    let script = "\ttest -f 'ü漢🦀' && x=$(\n\t\techo é | curl -s http://e.org/ \\\n\t\t  -o -)";
    for text in [with("test -f one.txt", script), with("test -f one.txt", script).replace('\n', "\r\n")] {
        let curl = marked_in(&text, P601);
        assert!(curl.starts_with("curl -s") && curl.ends_with("-o -"), "{curl}");
    }
    assert_eq!(marked("cat <<EOF\n\té $(curl http://e.org/é) x\nEOF", P601), "curl http://e.org/é");
    assert_eq!(marked("bash -c \"test -f x; curl \\\"http://e.org\\\"\"", P601), "curl \\\"http://e.org\\\"");
}

#[test]
fn processes_that_are_left_behind_are_found() {
    all_are(
        &[
            "server & test -f x",
            "nohup server; test -f x",
            "server & disown; test -f x",
            "setsid server; test -f x",
            "coproc cat; test -f x",
            "docker run -d x; test -f x",
            "docker compose up -d && test -f x",
            "npm start & sleep 1; test -f x",
            "(server &); test -f x",
            "f() { server & }; f; test -f x",
            "bash -c 'server & test -f x'",
            "server & kill -0 $!",
        ],
        P114,
    );
    none_is(
        &[
            "a & b & wait",
            "server & pid=$!; test -f x; kill $pid",
            "server &\ntrap 'kill $!' EXIT\ntest -f x",
            "server & pid=$!\ntrap \"kill $pid; rm -rf \\\"${TMPDIR}/s\\\"\" EXIT\ntest -f x",
            "server & bash -c \"kill $!\"; test -f x",
            "docker run --rm x",
            "docker compose up -d && test -f x; docker compose down",
            "test -f x && test -f y",
            "test -f x 2>&1",
            "test -f 'a & b'",
        ],
        P114,
    );
    assert_eq!(marked("server --port 1 & test -f x", P114), "server --port 1 &");
}

#[test]
fn changes_of_the_workspace_are_found() {
    all_are(
        &[
            "test -f x > out/log",
            "touch done; test -f x",
            "sed -i 's/a/b/' f && test -f x",
            "rm x && test -f y",
            "mv a b && test -f b",
            "pytest | tee log",
            "git commit -m x && test -f x",
            "git add -A && git diff --cached --quiet",
            "git checkout main && test -f x",
            "cargo fmt && git diff --quiet",
            "mkdir -p out && test -d out",
            "F=out/log; pytest > $F",
            "black src && test -f x",
            "for f in a.txt b.txt; do touch $f; done; test -f a.txt",
        ],
        P105,
    );
    none_is(
        &[
            "test -f x > /dev/null 2>&1",
            "pytest > /tmp/log",
            "t=$(mktemp); pytest > $t",
            "pytest > \"$TMPDIR/log\"",
            "cd \"$(mktemp -d)\" && touch x && test -f x",
            "git status --porcelain | grep -q .",
            "git diff --quiet -- src",
            "git branch --list x",
            "git tag -l",
            "cargo fmt --check",
            "cargo fmt --all -- --check",
            "black --check src",
            "sed -n 1p f | grep -q x",
            "cat f 2>&1 | grep -q x",
            "test -f x >&2",
        ],
        P105,
    );
    assert_eq!(marked("pytest -q > 'out/é.log'", P105), "'out/é.log'");
}

#[test]
fn more_writes_outside_and_more_questions_are_found() {
    all_are(
        &["touch $HOME/x && test -f x", "H=/etc/x; test -f x > $H", "tee ~/x < f", "dd if=f of=/opt/x"],
        P112,
    );
    none_is(&["H=/tmp/x; test -f x > $H", "test -f $HOME/x", "dd if=f of=/dev/null"], P112);
    all_are(
        &[
            "select x in a b; do break; done",
            "read -p 'ok?' x && test $x",
            "docker run -it x",
            "npm init",
            "timeout 5 vim x",
        ],
        P111,
    );
    none_is(&["read -r x < f && test $x", "docker run --rm x", "npm init -y", "echo vim"], P111);
}

#[test]
fn more_of_the_network_and_of_destruction_is_found() {
    all_are(
        &[
            "git -C sub fetch && test -f x",
            "npm ci && npm test",
            "pip install -r r.txt && pytest",
            "python -m pip install x && pytest",
            "cargo install x",
            "rsync a host:b",
            "docker pull x",
            "apt-get install -y x",
            "exec 3<>/dev/tcp/e.org/80; test -f x",
            "timeout 5 curl http://e.org",
            "bash -c 'wget http://e.org'",
            "terraform plan",
        ],
        P601,
    );
    none_is(
        &[
            "rsync -a a/ b/",
            "git -C sub diff --quiet",
            "npm test",
            "npm run install-check",
            "docker build .",
            "pip install --no-index x",
            "cat < /dev/tcp/localhost/80",
            "grep -q 'curl' f",
            "nc -z localhost 80",
            "curl --version",
        ],
        P601,
    );
    all_are(
        &[
            "git clean -fd && test -f x",
            "git push --force origin x",
            "git push origin +x",
            "dd if=/dev/zero of=x",
            "mkfs.ext4 /dev/x",
            "chmod -R 777 .",
            "psql -c 'DROP TABLE a'",
            "docker system prune -f",
            "kill -9 -1",
            ":(){ :|:& };:",
            "truncate -s 0 f && test -f x",
            "terraform destroy",
            "kubectl delete pod x",
            "find . -name x -exec rm -rf {} +",
            "ls | xargs rm -rf",
        ],
        P602,
    );
    none_is(
        &[
            "t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT; test -d $t",
            "rm -rf /tmp/x; test -f x",
            "git clean -n",
            "git checkout main",
            "psql -c 'select 1'",
            "chmod 600 x",
            "kill $pid",
            "f() { f2 & }; f",
            "git restore --staged x",
        ],
        P602,
    );
}

#[test]
fn credentials_are_found_and_never_shown() {
    let token = format!("ghp_{}", "a1B2c3D4".repeat(5));
    let password = "geh3im-und-lang";
    let texts = [
        (with("Make `one.txt`.", &format!("Make `one.txt` with {token}.")), token.as_str()),
        (with("test -f one.txt", &format!("{token} -H 'é: {token}' x")), token.as_str()),
        (with("test -f one.txt", &format!("PGPASSWORD={password} psql -c 'select 1'")), password),
        (
            with("test -f one.txt", &format!("psql postgres://me:{password}@localhost/x -c 'DROP TABLE a'")),
            password,
        ),
        (
            with("test -f one.txt", &format!("curl -H 'Authorization: Bearer {password}12' http://e.org")),
            password,
        ),
        (with("# Make two files", &format!("# Make {token}")), token.as_str()),
        (with("**target:** coder", &format!("**target:** {token}")), token.as_str()),
        (with("- file:one.txt", &format!("- file:docs/{token}.md")), token.as_str()),
    ];
    for (text, secret) in texts {
        let commands = [(token.clone(), false)].into();
        let facts = Facts { commands, ..crate::sample::facts() };
        let verified = planctl_lang::verify(
            &Source::new("plan.md", text.as_str()),
            &facts,
            &planctl_lang::Levels::default(),
        );
        let source = Source::new("plan.md", text.as_str());
        let found = verified.diagnostics;
        let holds = found.iter().find(|found| found.code == P604).unwrap_or_else(|| panic!("{text}"));
        let span = holds.spans[0].span;
        assert!(text[span.start..span.end].contains(secret), "{holds:?}");
        for found in &found {
            for colour in [false, true] {
                assert!(!found.render(&source, colour).contains(secret), "{}", found.render(&source, colour));
            }
            let reported =
                serde_json::to_string(&found.report(&source)).unwrap_or_else(|error| panic!("{error}"));
            assert!(!reported.contains(secret), "{reported}");
            assert!(
                !format!("{}{:?}{:?}", found.message, found.notes, found.help).contains(secret),
                "{found:?}"
            );
        }
    }
    let key =
        "test -n '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIabc\nxyzMHcCAQ\n-----END EC PRIVATE KEY-----'";
    let text = with("test -f one.txt", key);
    let source = Source::new("plan.md", text.as_str());
    let drawn = planctl_lang::render_all(&found(&text), &source, false);
    assert!(drawn.contains("P604") && !drawn.contains("MHcC") && !drawn.contains("xyz"), "{drawn}");
}

#[test]
fn what_only_looks_like_a_credential_is_left_alone() {
    none_is(
        &[
            "PGPASSWORD=\"$PGPASSWORD\" psql -c 'select 1'",
            "test -n \"$API_TOKEN\"",
            "TOKEN=$(cat token); test $TOKEN",
            "grep -q 'password:' f",
            "grep -q 'token=' f",
            "git clone git@github.com:a/b.git",
            "pytest tests/sk-test-of-something-long-enough-here.py",
        ],
        P604,
    );
}

#[test]
fn d14_what_stays_on_this_machine_or_in_a_place_of_its_own_is_no_danger() {
    none_is(
        &[
            "kubectl kustomize k8s | grep -q x",
            "kubectl version --client",
            "kubectl apply --dry-run=client -f x.yaml",
            "base=http://localhost:8080; curl -f \"$base/health\"",
            "url=http://127.0.0.1:3000\ncurl -sf ${url}/x | grep -q ok",
        ],
        P601,
    );
    all_are(&["kubectl get pods", "base=https://example.org; curl -f \"$base/health\""], P601);
    none_is(
        &[
            "dd if=build/boot.bin bs=1 count=4 | od | grep -q x",
            "dd if=/dev/zero of=/tmp/big bs=1M count=1; test -s /tmp/big",
            "truncate -s 0 /tmp/x; test ! -s /tmp/x",
        ],
        P602,
    );
    all_are(&["dd if=a of=b", "dd if=a of=/dev/sda", "truncate -s 0 x", "truncate -s 0 /tmp/x y"], P602);
}

#[test]
fn d15_the_verdict_to_search_for_is_whole() {
    for script in
        ["grep -Eq 'Verdict: (APPROVED|REJECTED)' f", "grep -q 'Verdict: \\(APPROVED\\|REJECTED\\)' f"]
    {
        let found = found_in(script);
        let help = found[0].help.as_deref().unwrap_or("");
        assert!(help.ends_with("lets the plan go on: `APPROVED`"), "{help}");
    }
}

#[test]
fn d19_the_target_of_a_step_that_no_agent_does_is_no_role() {
    let human = with("**target:** coder", "**target:** architecture\n**type:** human")
        .replacen("**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n", "", 1);
    assert!(found(&human).iter().all(|found| found.code != Code::P401), "{:?}", found(&human));
    let work = with("**target:** coder", "**target:** architecture");
    assert!(found(&work).iter().any(|found| found.code == Code::P401));
    let accent = found(&with("**target:** coder", "**target:** \u{fc}bersetzer"));
    let refused = accent.iter().find(|found| found.code == Code::P403).expect("no role");
    assert!(refused.help.as_deref().is_some_and(|help| help.contains("ASCII letters")), "{refused:?}");
}

#[test]
fn d_07_programs_are_known_behind_whatever_starts_them() {
    all_are(&["uv run rm -rf x", "npx rm -rf x", "sudo -n /bin/rm -r x", "docker compose down -v"], P602);
    all_are(
        &[
            "poetry run curl https://x.y",
            "uv run git push",
            "python3 -m pip install x",
            "xargs -n 1 ssh h < f",
        ],
        P601,
    );
    all_are(&["uv run black .", "npx eslint --fix .", "poetry run ruff format"], P105);
    all_are(&["env CI=1 python3", "uv run vim x"], P111);
    none_is(&["uv run pytest", "python3 -m pytest", "npx eslint .", "sudo -n true"], P602);
}

#[test]
fn d_07_programs_that_end_with_0_whatever_they_find_prove_nothing() {
    all_are(
        &[
            "python3 -m pytest --collect-only",
            "uv run pytest --co",
            "jq .x f.json",
            "jq -r '.a.b' f.json",
            "find . -name '*.md'",
            "git log --oneline",
        ],
        P104,
    );
    none_is(
        &[
            "jq . f.json",
            "jq empty f.json",
            "jq -e .x f.json",
            "jq 'if .x then 1 else error end' f",
            "find . -name x -exec test -s {} +",
        ],
        P104,
    );
    let call = with("**target:** coder\n**task:**\nMake `one", "**type:** call\n**task:**\nMake `one")
        .replace("test -f one.txt", "git log --oneline");
    assert!(found(&call).iter().all(|found| found.code != P104), "a call is run for what it prints");
}

#[test]
fn d_07_a_variable_that_nothing_sets_is_always_empty() {
    all_are(
        &["[ -z \"$errors\" ]", "grep -q x f || err=1\n[ -z \"$errors\" ]", "[[ -z $missing && -f a ]]"],
        P104,
    );
    none_is(
        &[
            "errors=$(grep x f)\n[ -z \"$errors\" ]",
            "[ -z \"$CI\" ]",
            "read -r line < f; [ -z \"$line\" ]",
            "for f in a b; do [ -z \"$f\" ] || exit 1; done",
            "export x=$(cat f); test -z \"$x\"",
            "mapfile -t lines < f; [ -z \"$lines\" ]",
            ". ./lib.sh; [ -z \"$errors\" ]",
            "x=(a b); [ -z \"$x\" ]",
            "[ -z \"${x:-}\" ]",
            "[ -z \"$(cat f)\" ]",
        ],
        P104,
    );
}

#[test]
fn d_07_a_search_through_all_files_finds_the_plan_itself() {
    all_are(&["grep -rq TODO .", "grep -r x", "rg TODO .", "test -s a && grep -rq x ./"], P104);
    all_are(&["! grep -rq TODO .", "if grep -r x .; then exit 1; fi"], P113);
    for fine in [
        "grep -rq x src",
        "grep -rq --include='*.py' x .",
        "grep -rq --exclude-dir=plans x .",
        "cd src && grep -rq x .",
        "grep -q x ./a",
    ] {
        assert!(!codes(fine).contains(&P104) && !codes(fine).contains(&P113), "{fine}: {:?}", codes(fine));
    }
    let text = with("test -f one.txt", "grep -rq TODO .");
    let outside = Facts { plan_is_inside: Some(false), ..crate::sample::facts() };
    let found = crate::sample::found_with(&text, &outside);
    assert!(found.iter().all(|found| found.code != P104), "{found:?}");
}

#[test]
fn d_07_empty_input_is_no_check() {
    all_are(
        &["ls *.md | xargs -r grep -q x", "find . -name x | xargs --no-run-if-empty -n 1 python3 check.py"],
        P110,
    );
    none_is(
        &["ls *.md | xargs grep -q x", "test -s a && ls *.md | xargs -r grep -q x", "ls | xargs -r rm"],
        P110,
    );
}

#[test]
fn d_20_a_test_without_its_bracket_is_named_and_mended() {
    for script in ["[ -f a", "[ -f a && test -s b", "if [ -f a; then exit 0; fi; exit 1"] {
        let found = found_in(script);
        let unclosed =
            found.iter().find(|found| found.code == P113).unwrap_or_else(|| panic!("{script}: {found:?}"));
        assert!(unclosed.message.starts_with("`[` has no `]`"), "{}", unclosed.message);
        assert_eq!(
            unclosed.fix.as_ref().map(|fix| (fix.edits[0].replacement.as_str(), fix.safe)),
            Some((" ]", false))
        );
    }
    none_is(&["[ -f a ]", "[[ -f a ]]", "echo ["], P113);
}
