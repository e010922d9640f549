#!/usr/bin/env bash
# Makes a service without a port, a check that knows which ports are free, and the plan:  setup.sh DIR
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

printf 'name=orders\nport=PLACEHOLDER\n' >service.conf
cat >check-port.sh <<'SCRIPT'
#!/usr/bin/env bash
# Exits 0 if the port of service.conf is one that operations left free.
port=$(sed -n 's/^port=//p' service.conf)
case $port in
7443 | 7444) exit 0 ;;
*)
    echo "port $port is taken; ask operations for one"
    exit 1
    ;;
esac
SCRIPT

cp "$here/plan.md" escalation.md
git add service.conf check-port.sh escalation.md
git commit --quiet --message "A service without a port"
