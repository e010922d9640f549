#!/usr/bin/env bash
# Makes an empty project with the plan in it:  setup.sh DIR
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
cp "$here/plan.md" hello.md
git add hello.md
git commit --quiet --message "Begin with a plan"
