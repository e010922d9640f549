#!@BASH@ -p
# Made by planctl for one contract. Runs git; on the workspace's own repository with a configuration, and for commands
# that look with an index, that nobody who worked there has written.
git=@GIT@
arguments=("$@") options=()
while (( $# )); do
  case $1 in
    -C|-c|--git-dir|--work-tree|--namespace|--config-env|--attr-source|--exec-path)
      options+=("$1" "${2-}"); shift; (( $# )) && shift ;;
    -*) options+=("$1"); shift ;;
    *) break ;;
  esac
done
verb=${1-} first=${2-}
# These read and write the configuration itself, or make a repository.
case $verb in
  ''|config|init|clone|worktree|submodule|help|version) exec "$git" "${arguments[@]}" ;;
  remote) [[ $first == @(update|show|prune) ]] || exec "$git" "${arguments[@]}" ;;
esac
# The copy of the user's settings that nobody writes.
settings=@SETTINGS@
own=$(GIT_CONFIG_GLOBAL=$settings "$git" "${options[@]}" rev-parse --absolute-git-dir 2>/dev/null)
case $own in
@REPOSITORIES@*) exec "$git" "${arguments[@]}" ;;
esac
# Code under test may have written what the contract left to it since. Of that, who the contract is holds, and no other setting.
# A contract may have variables of these names.
run=exec new= names= looks=
case $verb in
  diff|status|ls-files|grep|diff-index|diff-files|blame|annotate|describe|write-tree) looks=yes ;;
  log|show|rev-parse|rev-list|diff-tree|ls-tree|cat-file|merge-base|for-each-ref|show-ref) ;;
  *) names=$("$git" "${options[@]}" config --get-regexp '^(user|author|committer)\.(name|email)$') ;;
esac
count=${GIT_CONFIG_COUNT:-0}
while read -r key value; do
  [[ -z $key ]] || export "GIT_CONFIG_KEY_$count=$key" "GIT_CONFIG_VALUE_$count=$value" GIT_CONFIG_COUNT=$((++count))
done <<< "core.attributesFile /dev/null"$'\n'"$names"
case $verb in
  branch|checkout|switch|push|lfs|sparse-checkout|maintenance)
    # These write settings: what one of them writes is for it alone.
    /bin/cp -a "$clean" "$clean.$$" || exit 128
    clean+=.$$ run= ;;
  fetch|pull)
    # These move the ends of a shallow clone, so the repository's own have to follow.
    [[ " $* " != *' --'@(depth|deepen|shallow-|unshallow|update-shallow)* ]] || /bin/ln -sfn "$common/shallow" "$clean/shallow" ;;
esac
export GIT_CONFIG_GLOBAL=$settings GIT_COMMON_DIR=$clean GIT_ATTR_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1
if [[ $looks ]]; then
  top=$("$git" "${options[@]}" rev-parse --show-toplevel 2>/dev/null)
  if [[ -n $top && -z ${GIT_INDEX_FILE+set} ]]; then
    # Each command has its own, under a name that was not there before and that says how often it is moved to its place: once to make
    # it, and once more with the times of the files, or by `write-tree`. planctl sees whether others wrote it.
    case $verb in
      ls-files|grep|blame|annotate) moves=1 ;;
      *) moves=2 ;;
    esac
    new=$clean/index.$moves.$$.$RANDOM run=
    at=("$git" "--git-dir=$own" "--work-tree=$top" -C "$top")
    set -o pipefail
    "${at[@]}" ls-files --stage -z | GIT_INDEX_FILE=$new "${at[@]}" update-index -z --index-info || exit 128
    export GIT_INDEX_FILE=$new GIT_OPTIONAL_LOCKS=0
    [[ -e $new ]] || "${at[@]}" read-tree --empty || exit 128
    if [[ $moves = 2 && $verb != write-tree ]]; then
      # It ends with 1 where files differ from the index, which is for the contract to find out.
      "${at[@]}" update-index --force-write-index -q --refresh >/dev/null
      (( $? <= 1 )) || exit 128
    fi
  fi
fi
$run "$git" "${arguments[@]}"
code=$?
[[ -z $new || -e $new ]] || exit 128
/bin/rm -rf "${new:-$clean}"
exit $code
