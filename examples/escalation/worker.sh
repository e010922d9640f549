#!/usr/bin/env bash
# A worker that guesses, and guesses again. Only a person's note in the prompt gives it a port that is free.
set -euo pipefail
prompt=$(cat)

choose() {
    local taken noted port=8080
    taken=$(sed -n 's/^.*port \([0-9][0-9]*\) is taken.*$/\1/p' <<<"$prompt" | tail -n 1)
    noted=$(sed -n 's/^.*[Uu]se port \([0-9][0-9]*\).*$/\1/p' <<<"$prompt" | tail -n 1)
    if [ -n "$noted" ]; then
        port=$noted
    elif [ -n "$taken" ]; then
        port=$((taken + 1))
    fi
    sed -i "s/^port=.*/port=$port/" service.conf
    echo "The service listens on port $port."
}

case $prompt in
*'Commit `service.conf`'*)
    git add service.conf
    git commit --quiet --message "service: choose a port"
    git log -1 --format='Committed: %s'
    ;;
*'Replace the placeholder'*) choose ;;
*)
    echo "I don't know how to do this." >&2
    exit 1
    ;;
esac
