#!/usr/bin/env bash
# Makes a script that has grown too long, its tests, and the plan:  setup.sh DIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=${1:?usage: setup.sh DIR}
if [ -n "$(ls -A "$project" 2>/dev/null)" ]; then
    echo "$project is not empty; name a folder that is not there yet" >&2
    exit 1
fi

mkdir -p "$project/tests"
cd "$project"
git init --quiet
git config user.name "Example"
git config user.email "example@example.invalid"

cat >report.sh <<'SCRIPT'
#!/usr/bin/env bash
# Reads "cents item" lines and prints a report.
set -eu

format_money() {
    printf '%d.%02d' $(($1 / 100)) $(($1 % 100))
}

format_line() {
    printf '%-12s %10s\n' "$1" "$(format_money "$2")"
}

read_sales() {
    total=0
    while read -r cents item; do
        format_line "$item" "$cents"
        total=$((total + cents))
    done
}

read_sales
format_line total "$total"
SCRIPT

printf '1250 tea\n330 bread\n99 salt\n' >tests/sales.txt
bash report.sh <tests/sales.txt >tests/expected.txt
cat >tests/run.sh <<'SCRIPT'
#!/usr/bin/env bash
# The report must stay what it was.
if bash report.sh <tests/sales.txt 2>&1 | diff tests/expected.txt -; then
    echo "ok    the report is unchanged"
else
    echo "FAIL  the report differs"
    exit 1
fi
SCRIPT

cp "$here/plan.md" refactor.md
git add report.sh tests refactor.md
git commit --quiet --message "A report in one long script"
