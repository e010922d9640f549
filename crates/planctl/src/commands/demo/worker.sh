# A scripted worker: reads its task on standard input, works in the workspace, and is not always right.
set -u
prompt=$(cat)
printf '%s\n' "$prompt" > "$DEMO_PROMPTS/step-$PLANCTL_STEP-attempt-$PLANCTL_ATTEMPT.txt"
case "$PLANCTL_STEP" in
1)
    printf '%s\n' 'test "$(printf "250 tea\n-50 coupon\n" | bash till.sh)" = 200' > repro.sh
    echo "repro.sh fails: the coupon is added."
    ;;
2)
    case "$prompt" in
    *"an empty receipt"*)
        sed -i 's/^sum=.*/sum=0/' till.sh
        echo "An empty receipt is 0 again."
        ;;
    *)
        sed -i 's/\${cents#-}/cents/; s/^sum=0/sum=/' till.sh
        echo "Refunds are taken off. All tests pass."
        ;;
    esac
    ;;
3)
    case "$prompt" in
    *"- Fixed: "*) echo "- Fixed: refunds are taken off the sum." >> CHANGES.md ;;
    *) echo "Repaired the till." >> CHANGES.md ;;
    esac
    echo "The change is noted."
    ;;
4)
    git add till.sh repro.sh CHANGES.md
    git commit --quiet --message "Take refunds off the sum"
    echo "Committed."
    # A worker's own exit status decides nothing: the contract does.
    exit 1
    ;;
esac
