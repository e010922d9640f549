#!/usr/bin/env bash
# A worker that does each step of plan.md once. It reads its task on standard input and works in the workspace.
set -euo pipefail
prompt=$(cat)

case $prompt in
*'Commit `greet.sh`'*)
    git add greet.sh
    git commit --quiet --message "Greet people by name"
    echo "Committed greet.sh."
    ;;
*'Write `greet.sh`'*)
    cat >greet.sh <<'SCRIPT'
#!/usr/bin/env bash
echo "Hello, ${1:-world}!"
SCRIPT
    chmod +x greet.sh
    echo "Wrote greet.sh."
    ;;
*)
    echo "I don't know how to do this." >&2
    exit 1
    ;;
esac
