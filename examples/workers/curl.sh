#!/usr/bin/env bash
# A worker made of bash and curl: claims a step, works on it, keeps its lease, reports. ONCE=1 ends it after one step.
#   PLANCTL_SERVER=http://127.0.0.1:7420 PLANCTL_TOKEN=… ./curl.sh coder ./my-agent.sh
set -euo pipefail
set -m # every job is a process group of its own, so that it can be ended as a whole
role=${1:?a role} said=$(mktemp)
shift
trap 'rm -f "$said"' EXIT

post() { # TOKEN PATH [KEY] < BODY; the token goes through a file, since anybody can read a command line
  curl -sS --fail -m 90 --retry 8 --retry-connrefused -H 'Content-Type: application/json' \
    -H "Idempotency-Key: ${3:-$(uuid)}" -K <(printf 'header = "Authorization: Bearer %s"\n' "$1") \
    --data-binary @- "$PLANCTL_SERVER$2"
}
uuid() { cat /proc/sys/kernel/random/uuid; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]], end="")' "$1" <<<"$claimed"; }

while true; do
  claimed=$(printf '{"roles": ["%s"], "worker": "curl"}' "$role" | post "$PLANCTL_TOKEN" '/v1/items/claim?wait=30')
  [ -n "$claimed" ] || continue # 204: there is nothing to do
  item=/v1/items/$(field item) token=$(field token) beat=$(field heartbeat_seconds) seconds=0
  (cd "$(field workspace)" && field prompt | "$@") >"$said" 2>&1 &
  work=$!
  while kill -0 "$work" 2>/dev/null; do
    sleep 1
    ((++seconds % beat == 0)) || continue
    answer=$(post "$token" "$item/heartbeat" <<<'{}') || answer='lost'
    if [[ $answer != *'"cancel":false'* ]]; then # cancelled, or the lease is lost: stop, nobody waits for a report
      kill -KILL -- "-$work" || true
      wait "$work" || continue 2
    fi
  done
  wait "$work" && code=0 || code=$?
  python3 -c 'import json, sys
text = open(sys.argv[1], errors="replace").read()[-65536:].replace("\0", "?")
print(json.dumps({"text": text, "exit_code": int(sys.argv[2])}))' "$said" "$code" | post "$token" "$item/complete"
  [ -z "${ONCE:-}" ] || exit 0
done
