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
own=$("$git" "${options[@]}" rev-parse --absolute-git-dir 2>/dev/null)
case $own in
@REPOSITORIES@*) exec "$git" "${arguments[@]}" ;;
esac
export GIT_COMMON_DIR=$clean GIT_NO_REPLACE_OBJECTS=1
case $verb in
  diff|status|ls-files|grep|diff-index|diff-files|blame|annotate|describe|write-tree)
    top=$("$git" "${options[@]}" rev-parse --show-toplevel 2>/dev/null)
    if [[ -n $top && -z ${GIT_INDEX_FILE+set} ]]; then
      index=$clean/index
      if [[ ! -e $index ]]; then
        new=$index.$$
        at=("$git" "--git-dir=$own" "--work-tree=$top")
        set -o pipefail
        "${at[@]}" -C "$top" ls-files --stage -z | GIT_INDEX_FILE=$new "${at[@]}" update-index -z --index-info || exit 128
        [[ -e $new ]] || GIT_INDEX_FILE=$new "${at[@]}" read-tree --empty || exit 128
        # It ends with 1 where files differ from the index, which is for the contract to find out.
        GIT_INDEX_FILE=$new "${at[@]}" -C "$top" update-index -q --refresh >/dev/null
        /bin/mv -f "$new" "$index" || exit 128
      fi
      export GIT_INDEX_FILE=$index
    fi ;;
  log|show|rev-parse|rev-list|diff-tree|ls-tree|cat-file|merge-base|for-each-ref|show-ref|name-rev|check-ignore|check-attr|\
  shortlog|show-branch|whatchanged|cherry|range-diff|verify-commit|verify-tag|fsck|count-objects|archive|ls-remote|var) ;;
  fetch|pull)
    # These move the ends of a shallow clone, so the repository's own have to follow.
    [[ " $* " != *' --'@(depth|deepen|shallow-|unshallow|update-shallow)* ]] || /bin/ln -sfn "$common/shallow" "$clean/shallow"
    /bin/rm -f "$clean/index" ;;
  # Any other command may change the repository's own index, and the clean one has to follow.
  *) /bin/rm -f "$clean/index" ;;
esac
exec "$git" "${arguments[@]}"
