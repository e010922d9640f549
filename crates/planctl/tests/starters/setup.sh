#!/usr/bin/env bash
# Makes a small repository with everything that the starter plans ask for:  setup.sh DIR
set -euo pipefail
project=${1:?usage: setup.sh DIR}
plans=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../../plans" && pwd)
mkdir -p "$project"
cd "$project"
git init --quiet --initial-branch main
git config user.name "Example"
git config user.email "example@example.invalid"

# The project: a script that counts words, and its tests.
cat >count.sh <<'SCRIPT'
#!/usr/bin/env bash
# Counts the words of its argument.
set -- $1
echo "$#"
SCRIPT
mkdir tests data logs plans
cat >tests/run.sh <<'SCRIPT'
#!/usr/bin/env bash
# Every test is a script of its own.
for test in tests/*_test.sh; do
    bash "$test" || { echo "FAIL $test"; exit 1; }
done
SCRIPT
cat >tests/count_test.sh <<'SCRIPT'
[ "$(bash count.sh 'one two')" = 2 ]
SCRIPT
printf 'test:\n\t@bash tests/run.sh\n' >Makefile
printf 'left 1.0\nright 1.0\n' >deps.lock
cat >tests/deps_test.sh <<'SCRIPT'
# The two only fit with the same major version, and `left 3` with nothing.
left=$(sed -n 's/^left \([0-9]*\).*/\1/p' deps.lock)
right=$(sed -n 's/^right \([0-9]*\).*/\1/p' deps.lock)
[ "$left" = "$right" ] && [ "$left" != 3 ]
SCRIPT
printf 'FROM busybox\nCMD ["sleep", "600"]\n' >Dockerfile
printf 'test -x /bin/busybox\n' >smoke.sh
printf 'alpha\n' >data/a.txt
printf 'beta\n' >data/b.txt
cat >logs/app.log <<'LOG'
10:00:00 started
10:00:05 disk full on /var
10:00:06 write failed: order 17
10:00:07 write failed: order 18
10:00:09 gave up
LOG

printf 'The pattern `*` is counted as the names of files: `count.sh "*"` should say 1.\n' >BUG.md
printf 'Add `--version` to count.sh: it prints `1`.\n' >CHANGE.md
printf 'module/double.sh prints twice the number it is given, and exits 2 without one.\n' >SPEC.md
printf 'Rename the counting in count.sh into a function `words`.\n' >REFACTOR.md
printf 'The time service: see docs/time.md. We want the current hour.\n' >API.md
printf 'Move the files of data/ into data/old/.\n' >MOVE.md
printf 'Since ten o-clock orders were lost. The logs lie in logs/.\n' >INCIDENT.md
printf 'topic\n' >BRANCH.md
cp "$plans"/*_*.md plans/
git add .
git commit --quiet --message "A script that counts words"

# Another repository to fetch from and push to.
git clone --quiet --bare . "$project/../origin.git" 2>/dev/null
git remote add origin "$project/../origin.git"
git fetch --quiet origin
git branch --quiet --set-upstream-to origin/main main
