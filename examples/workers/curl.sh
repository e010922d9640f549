#!/usr/bin/env bash
# A worker made of bash and curl: claims a step, works on it, keeps its lease, reports. ONCE=1 ends it after one report.
#   PLANCTL_SERVER=http://127.0.0.1:7420 PLANCTL_TOKEN=… ./curl.sh coder ./my-agent.sh
set -euo pipefail
set -m # every job is a process group of its own, so that it can be ended as a whole
role=${1:?a role} said=$(mktemp)
shift
trap 'rm -f "$said"' EXIT

post() { # TOKEN PATH [SECONDS] < BODY: again until it is answered or refused; the token is on no command line
  local answer body=$(cat) key=$(cat /proc/sys/kernel/random/uuid) began=$SECONDS
  while kill -0 $$ && ((SECONDS - began < ${3:-86400})); do # as long as the worker lives
    answer=$(curl -sS -m 90 -w '\n%{http_code}' -H 'Content-Type: application/json' -H "Idempotency-Key: $key" \
      -K <(printf 'header = "Authorization: Bearer %s"\n' "$1") --data-binary "@-" "$PLANCTL_SERVER$2" <<<"$body") || true
    case ${answer##*$'\n'} in
    2??) printf '%s\n' "${answer%$'\n'*}" && return ;;
    '' | 000 | 429 | 5??) sleep 2 ;; # the daemon is away for a moment; the key makes it safe to repeat
    *) printf '%s\n' "${answer%$'\n'*}" >&2 && return 1 ;;
    esac
  done
  return 1
}
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]], end="")' "$1" <<<"$claimed"; }

while true; do
  claimed=$(printf '{"roles": ["%s"], "worker": "curl"}' "$role" | post "$PLANCTL_TOKEN" '/v1/items/claim?wait=30')
  [ -n "$claimed" ] || continue # 204: there is nothing to do
  item=/v1/items/$(field item) token=$(field token) beat=$(field heartbeat_seconds) seconds=0 code=0
  # The agent gets no credential.
  (cd "$(field workspace)" && field prompt | env -u PLANCTL_TOKEN "$@") >"$said" 2>&1 &
  work=$!
  while kill -0 "$work" 2>/dev/null; do
    sleep 1
    ((++seconds % beat == 0)) || continue
    answer=$(post "$token" "$item/heartbeat" $((beat * 2)) <<<'{}') || answer='lost'
    if [[ $answer != *'"cancel":false'* ]]; then # cancelled, or the lease is lost: stop, nobody waits for a report
      kill -KILL -- "-$work" || true
      wait "$work" || { post "$token" "$item/release" 30 <<<'{}' || true; continue 2; } # says that it has ended
    fi
  done
  wait "$work" || code=$?
  # What comes too late is refused, of a run that was cancelled say; the next step is another matter.
  python3 -c 'import json, sys
text = open(sys.argv[1], errors="replace").read()[-65536:].replace("\0", "?")
print(json.dumps({"text": text, "exit_code": int(sys.argv[2])}))' "$said" "$code" |
    post "$token" "$item/complete" && [ -n "${ONCE:-}" ] && exit 0
done
