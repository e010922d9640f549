#!/usr/bin/env bash
# Makes a project with a bug, a test that does not see it, and the plan:  setup.sh DIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=${1:?usage: setup.sh DIR}
if [ -n "$(ls -A "$project" 2>/dev/null)" ]; then
    echo "$project is not empty; name a folder that is not there yet" >&2
    exit 1
fi

mkdir -p "$project"
cd "$project"
git init --quiet
git config user.name "Example"
git config user.email "example@example.invalid"

cat >slug.sh <<'SCRIPT'
#!/usr/bin/env bash
# Turns a title into the last part of a web address.
printf '%s' "$*" |
    tr '[:upper:]' '[:lower:]' |
    tr -c 'a-z0-9' '-'
echo
SCRIPT

cat >test.sh <<'SCRIPT'
#!/usr/bin/env bash
# Compares what slug.sh makes of some titles with what it should.
failed=0
expect() {
    local got
    got=$(bash slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    $2"
    else
        echo "FAIL  title '$1': got '$got', wanted '$2'"
        failed=1
    fi
}
expect 'Readme' 'readme'
expect 'Release 2' 'release-2'
expect 'A plan of three words' 'a-plan-of-three-words'
exit "$failed"
SCRIPT

cp "$here/plan.md" bugfix.md
git add slug.sh test.sh bugfix.md
git commit --quiet --message "A script that makes slugs, with a bug"
