#!/usr/bin/env bash
# Works on the starter plans as it is told:  worker.sh success|retry|escalation
# `retry` goes wrong once and comes well; `escalation` goes wrong until a person is asked.
set -euo pipefail
scenario=${1:?usage: worker.sh success|retry|escalation}
cat >/dev/null
plan=$(basename "$PLANCTL_PLAN" .md)
plan=${plan##*/}

# Which time this step is worked on; one that was cut off does not count.
time=$PLANCTL_ATTEMPT
echo "$plan, step $PLANCTL_STEP, the ${time}. time ($scenario)"

# Says whether this is to go wrong: always, or the first so many times.
goes_wrong() {
    [ "$scenario" = escalation ] || { [ "$scenario" = retry ] && [ "$time" -le "${1:-1}" ]; }
}

git_quiet() { git "$@" --quiet; }

case $plan:$PLANCTL_STEP in
bugfix_workflow:1)
    # It takes what was gathered to make the bug show; `escalation` never finds it.
    if [ "$scenario" = escalation ] || { [ "$scenario" = retry ] && [ ! -e context.md ]; }; then
        echo 'exit 0' >reproduce.sh
    else
        printf 'got=$(bash count.sh "*")\n[ "$got" = 1 ] && exit 0\necho "got $got, wanted 1"\nexit 1\n' >reproduce.sh
    fi
    ;;
bugfix_workflow:2) echo 'bash count.sh "*" in a folder with more than one file' >context.md ;;
bugfix_workflow:3) echo 'cause: count.sh:3' >cause.md ;;
bugfix_workflow:4)
    if goes_wrong; then
        printf '#!/usr/bin/env bash\necho 1\n' >count.sh # The bug is gone, and everything else too.
    else
        printf '#!/usr/bin/env bash\nset -f\nset -- $1\necho "$#"\n' >count.sh
    fi
    ;;
bugfix_workflow:6) echo 'verdict: good' >review.md ;;

git_feature_branch:2) git_quiet checkout -b feature/version main ;;
git_feature_branch:3)
    sed -i '2i [ "$1" = --version ] \&\& { echo 1; exit; }' count.sh
    echo '[ "$(bash count.sh --version)" = 1 ]' >tests/version_test.sh
    git add tests/version_test.sh
    ;;
git_feature_branch:4) git commit --quiet --all --message 'count: say the version' ;;
git_feature_branch:5) git push --quiet --set-upstream origin HEAD ;;
git_feature_branch:6) goes_wrong 0 || git stash push --quiet --message 'found in the working tree' ;;

codegen_module:1) echo none >questions.md ;;
codegen_module:2)
    mkdir -p module
    echo 'echo "not implemented"; exit 1' >module/double.sh
    printf '[ "$(bash module/double.sh 4)" = 8 ] || exit 1\nbash module/double.sh; [ $? = 2 ]\n' >module/tests.sh
    ;;
codegen_module:3 | codegen_module:5)
    right='[ $# = 1 ] || exit 2; echo "$(($1 * 2))"'
    if [ "$PLANCTL_STEP" = 3 ] && [ "$scenario" != success ]; then right='echo "$(($1 * 2))"'; fi
    if [ "$PLANCTL_STEP" = 5 ] && [ "$scenario" = escalation ]; then right='echo 9; exit 2'; fi
    echo "$right" >module/double.sh
    ;;
codegen_module:6) printf '```\nbash module/double.sh 4\n```\n' >module/README.md ;;

refactor_safe:2) echo '- put the counting into a function' >steps.md ;;
refactor_safe:4)
    if goes_wrong; then
        echo 'words() { echo 0; }; words "$1"' >count.sh
    else
        printf '#!/usr/bin/env bash\nwords() { set -- $1; echo "$#"; }\nwords "$1"\n' >count.sh
    fi
    ;;
refactor_safe:6) git add count.sh && git commit --quiet --message 'refactor: words in a function' ;;

git_merge_pr:1) git fetch --quiet origin ;;
git_merge_pr:2) git_quiet checkout topic ;;
git_merge_pr:3) git merge --quiet --no-edit origin/main || true ;;
git_merge_pr:5) git push --quiet --set-upstream origin HEAD ;;
git_merge_pr:6)
    if ! goes_wrong 0; then
        printf '#!/usr/bin/env bash\n# Both sides.\nset -- $1\necho "$#"\n' >count.sh
        git add count.sh && git commit --quiet --no-edit
        echo 'count.sh: both comments' >resolved.md
    fi
    ;;

file_backup_restore:1) find data -type f -exec sha256sum {} + >inventory.txt ;;
file_backup_restore:3)
    mkdir -p data/old && mv data/*.txt data/old/
    if [ "$scenario" = escalation ]; then echo lost >data/old/b.txt; fi
    # The first answer of `retry` says nothing at all.
    if [ "$scenario" = retry ] && [ "$time" = 1 ]; then mv data/old/*.txt data/; else
        find data -type f -exec sha256sum {} + >promise.txt
    fi
    ;;
file_backup_restore:5) rm backup.tar inventory.txt promise.txt ;;

api_integration:1) mkdir -p client && printf '## The hour\nGET /hour\n' >client/notes.md ;;
api_integration:2)
    printf '[ -n "${API_TOKEN:-}" ] || { echo "set API_TOKEN" >&2; exit 2; }\necho "Authorization: Bearer $API_TOKEN"\n' >client/auth.sh
    ;;
api_integration:3) printf -- '- 401: asks for another token\n- 429: tries again after a minute\n- 500: gives up\n' >client/errors.md ;;
api_integration:4 | api_integration:6)
    echo '[ "$(bash client/call.sh <<<"{hour: 7}")" = 7 ]' >client/tests.sh
    wrong=no
    if [ "$PLANCTL_STEP" = 4 ] && [ "$scenario" != success ]; then wrong=yes; fi
    if [ "$PLANCTL_STEP" = 6 ] && [ "$scenario" = escalation ]; then wrong=yes; fi
    if [ "$wrong" = yes ]; then echo 'echo 0' >client/call.sh; else echo 'tr -dc 0-9' >client/call.sh; fi
    ;;

dependency_update:1) echo '- left: 1.0 -> 2.0, two years behind' >audit.md ;;
dependency_update:3)
    if goes_wrong; then
        printf 'left 3.0\nright 3.0\n' >deps.lock
    else
        printf 'left 2.0\nright 2.0\n' >deps.lock
    fi
    ;;
dependency_update:5) git commit --quiet --message 'deps: left and right 2.0' deps.lock ;;

log_investigation:1) echo logs/app.log >logs.txt ;;
log_investigation:2)
    # A net that is too tight catches one line.
    pattern='disk|write failed'
    if goes_wrong; then pattern=disk; fi
    grep -HnE "$pattern" logs/app.log >lines.txt
    ;;
log_investigation:3) if [ "$(wc -l <lines.txt)" -gt 1 ]; then echo 'write failed'; else echo 'no such words'; fi >pattern.txt ;;
log_investigation:4) echo 'orders were lost (logs/app.log:3) since the disk was full (logs/app.log:2)' >trace.md ;;
log_investigation:5) printf '## Cause\nA full disk.\n\n## Timeline\n10:00:05\n\n## Prevention\nAn alarm.\n' >report.md ;;

docker_build_deploy:1) echo "image: ${PLANCTL_IMAGE:-planctl-starter:test}" >image.md ;;
docker_build_deploy:4)
    docker rm --force deployed >/dev/null 2>&1 || true
    docker run --detach --name deployed "$(sed -n 's/^image: //p' image.md)" >/dev/null
    ;;
docker_build_deploy:6 | docker_build_deploy:7)
    if ! goes_wrong 0; then printf 'FROM busybox\nCMD ["sleep", "600"]\n' >Dockerfile; fi
    ;;
*)
    echo "nobody said what to do at step $PLANCTL_STEP of $plan" >&2
    exit 1
    ;;
esac
