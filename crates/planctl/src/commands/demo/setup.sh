# Makes the throw-away project in the current directory: a till with a bug, and the test that shows it.
set -eu
mkdir -p tests
cat > till.sh <<'SCRIPT'
#!/usr/bin/env bash
# Adds up a receipt: one "cents item" per line.
sum=0
while read -r cents item; do
    sum=$((sum + ${cents#-}))
done
echo "$sum"
SCRIPT
cat > tests/till.sh <<'SCRIPT'
check() {
    found=$(printf '%b' "$1" | bash till.sh)
    if [ "$found" != "$2" ]; then
        echo "FAIL: $3: expected $2, found $found" >&2
        exit 1
    fi
    echo "ok: $3"
}
check '250 tea\n330 bread\n' 580 'two lines'
check '250 tea\n-50 coupon\n' 200 'a refund is taken off'
check '' 0 'an empty receipt'
SCRIPT
echo '# Changes' > CHANGES.md
git init --quiet
git config user.name "planctl demo"
git config user.email "demo@example.invalid"
git add till.sh tests CHANGES.md till.md
git commit --quiet --message "A till that can't take anything back"
