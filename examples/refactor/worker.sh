#!/usr/bin/env bash
# Two workers in one file: the role decides. The coder moves functions and forgets to load them, until its prompt
# shows what broke; the reviewer really compares the lines.
set -euo pipefail
prompt=$(cat)

# Prints the functions whose names match, each with the blank line after it.
functions() { sed -n "/^$1[a-z_]*()/,/^}/{p; /^}/s/.*//p}" report.sh; }

map() {
    local name
    mkdir -p docs
    echo "# Functions of report.sh" >docs/functions.md
    for name in $(sed -n 's/^\([a-z_]*\)() .*/\1/p' report.sh); do
        echo "- $name: $(grep -v "^$name()" report.sh | grep -c "\b$name\b") calls" >>docs/functions.md
    done
    cat docs/functions.md
}

extract() {
    if [ ! -f lib/format.sh ]; then
        mkdir -p lib
        {
            echo "# Formats what reports print; to be sourced."
            functions format_
        } >lib/format.sh
        sed '/^format_[a-z_]*()/,/^}/d' report.sh | cat -s >report.new
        mv report.new report.sh
        echo "Moved. The report is unchanged."
    elif grep -q 'format_[a-z]*: command not found' <<<"$prompt"; then
        # The failure names functions that are in lib/format.sh: it was never loaded.
        sed -i 's,^set -eu$,set -eu\n. lib/format.sh,' report.sh
        echo "report.sh loads lib/format.sh."
    else
        echo "I don't see what is wrong." >&2
        exit 1
    fi
}

review() {
    local line missing=0
    mkdir -p docs
    {
        echo "# Review"
        while IFS= read -r line; do
            [ -n "$line" ] || continue
            grep -qxF -e "$line" lib/format.sh || { echo "- lost: \`$line\`"; missing=1; }
        done < <(git diff HEAD -- report.sh | sed -n 's/^-\([^-].*\)$/\1/p')
        echo "- lines added to report.sh: $(git diff HEAD -- report.sh | grep -c '^+[^+]')"
        if [ "$missing" -eq 0 ] && git diff HEAD -- report.sh | grep -qx '+. lib/format.sh'; then
            echo "APPROVED"
        else
            echo "CHANGES_REQUESTED"
        fi
    } >docs/review.md
    cat docs/review.md
}

case $PLANCTL_ROLE:$prompt in
reviewer:*) review ;;
coder:*'Commit `report.sh`'*)
    git add report.sh lib/format.sh docs/functions.md docs/review.md
    git commit --quiet --message "Move the formatting to lib/format.sh"
    git log -1 --format='Committed: %s'
    ;;
coder:*'Move the functions'*) extract ;;
coder:*'List every function'*) map ;;
*)
    echo "I don't know how to do this." >&2
    exit 1
    ;;
esac
