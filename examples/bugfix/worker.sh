#!/usr/bin/env bash
# A worker as hasty as they come: it does what the task says, claims success without looking, and does better
# only when its prompt shows it how it failed.
set -euo pipefail
prompt=$(cat)

reproduce() {
    cat >reproduce.sh <<'SCRIPT'
#!/usr/bin/env bash
got=$(bash slug.sh 'Hello,  World!')
[ "$got" = hello-world ] && exit 0
echo "got $got, wanted hello-world"
exit 1
SCRIPT
    echo "The bug shows: $(bash reproduce.sh || true)"
}

fix() {
    # The failure of the attempt before: what slug.sh made, and what it should have made.
    local got wanted
    got=$(sed -n 's/^.*got \([a-z0-9-]*\), wanted .*$/\1/p' <<<"$prompt" | tail -n 1)
    wanted=$(sed -n 's/^.*wanted \([a-z0-9-]*\).*$/\1/p' <<<"$prompt" | tail -n 1)

    if [ -n "$got" ] && [ "$got" = "$wanted-" ]; then
        # Only the hyphen at the end is too many.
        sed -i "s/tr -cs 'a-z0-9' '-'\$/tr -cs 'a-z0-9' '-' | sed 's,^-,,; s,-\$,,'/" slug.sh
        echo "The hyphen at the end was left; it goes now."
    else
        # `tr -s` squeezes repeated hyphens into one, as the task asks. Nobody said a word about the end.
        sed -i "s/tr -c 'a-z0-9' '-'\$/tr -cs 'a-z0-9' '-'/" slug.sh
        echo "Fixed. All tests pass."
    fi
}

case $prompt in
*'Commit `slug.sh`'*)
    git add slug.sh reproduce.sh
    git commit --quiet --message "slug: one hyphen between words, none at the ends"
    git log -1 --format='Committed: %s'
    ;;
*'Change `slug.sh`'*) fix ;;
*'Write `reproduce.sh`'*) reproduce ;;
*)
    echo "I don't know how to do this." >&2
    exit 1
    ;;
esac
