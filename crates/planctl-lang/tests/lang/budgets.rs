//! The forms of a budget, and the finding for each part that is none.

use std::time::Duration;

use proptest::prelude::*;

use crate::properties::worked;
use crate::sample::{PLAN, found, with};
use planctl_lang::Code::{P015, P503};
use planctl_lang::{Diagnostic, Reach, Source, apply_fixes, parse};

const WHOLE: &str = "max 200k tokens, $1.50, 20 minutes";

fn faults(budget: &str) -> (String, Vec<Diagnostic>) {
    let text = with(WHOLE, budget);
    let all = found(&text).into_iter().filter(|found| found.code == P503).collect();
    (text, all)
}

/// Tokens, millionths of a dollar, and seconds.
fn read(budget: &str) -> (Option<u64>, Option<u64>, Option<u64>) {
    let (text, faults) = faults(budget);
    assert_eq!(faults, [], "{budget}");
    let budget = parse(&Source::new("p", text)).0.head.budget.expect("a budget is there").value;
    (budget.tokens, budget.micro_usd, budget.time.as_ref().map(Duration::as_secs))
}

#[test]
fn a_budget_is_read_as_people_write_it() {
    let all = (Some(200_000), Some(1_500_000), Some(1_200));
    for budget in [
        WHOLE,
        "200,000 tokens; 1.50 USD; 20min",
        "200 k tokens / $1.5 / 20 mins wall clock",
        "200 000 tokens and $1.50 and 20 minutes",
        "at most 0.2M tokens, up to 1.50 US dollars, and no more than 20 minutes of wall time.",
        "200 thousand tokens, 150 cents, 1200 s",
        "Tokens: 200k, Cost: $1.50, Time: 20 minutes",
        "200K TOKENS | USD 1.50 | 20 MIN",
        "$1.50,20 minutes,200k tokens",
        "200_000 tokens + 1.50$ + 20m",
        "\n- 200k tokens\n- $1.50\n- 20 minutes",
        "\n* tokens: 200,000\n* money: 1.50\n\n* time limit: 20 minutes",
        "max 200k tokens, $1.50,\n20 minutes",
    ] {
        assert_eq!(read(budget), all, "{budget}");
    }
}

#[test]
fn times_are_read_as_people_write_them() {
    for (budget, seconds) in [
        ("1 hour and 30 minutes", 5_400),
        ("1 hour, 30 minutes", 5_400),
        ("1h30m", 5_400),
        ("an hour and a half", 5_400),
        ("half an hour", 1_800),
        ("a day", 86_400),
        ("1.5 hours", 5_400),
        ("2 hours, 15 minutes and 30 seconds", 8_130),
    ] {
        assert_eq!(read(budget), (None, None, Some(seconds)), "{budget}");
    }
    assert_eq!(read("1 hour and 30 minutes, $2").1, Some(2_000_000));
}

#[test]
fn each_part_that_is_no_limit_is_named_at_its_own_place() {
    for (budget, part, why, help) in [
        ("max 200k tokens, €3, 20 minutes", "€3", "is not in US dollars", "`$1.50`"),
        (
            "200k tokens, a lot, 20 minutes",
            "a lot",
            "is not a limit that planctl knows",
            "with commas between",
        ),
        ("200k tokens, -5 minutes", "-5 minutes", "is negative", "above zero"),
        ("$0, 20 minutes", "$0", "is zero", "leave this limit out"),
        ("0 tokens, 20 minutes", "0 tokens", "is zero", "leave this limit out"),
        ("0 min, $2", "0 min", "is zero", "leave this limit out"),
        ("0.2 s, $2", "0.2 s", "is shorter than a second", "one second"),
        ("200k, $2", "200k", "does not say what it limits", "write `200k tokens`"),
        ("1M, $2", "1M", "does not say what it limits", "write `1M tokens`"),
        ("max 20, $2", "max 20", "does not say what it limits", "`20 tokens`, `$20` or `20 minutes`"),
        ("20 parsecs, $2", "20 parsecs", "has the unit `parsecs`", "with commas between"),
        ("unlimited, $2", "unlimited", "sets no limit", "delete it"),
        ("5k tokens per step, $2", "5k tokens per step", "is a limit per step", "the whole plan"),
        ("200.000 tokens, $2", "200.000 tokens", "has a decimal point", "`200,000 tokens`"),
        ("1,50 USD, 20 minutes", "1,50 USD", "has a comma", "`1.50`"),
        ("$1,50, 20 minutes", "$1,50", "has a comma", "`1.50`"),
        ("$lots, 20 minutes", "$lots", "is not an amount of money", "with commas between"),
        (
            "99999999999999999999 tokens, $2",
            "99999999999999999999 tokens",
            "more than planctl can count",
            "smaller",
        ),
        (
            "$99999999999999999999, 2 h",
            "$99999999999999999999",
            "more than planctl can count: at most $1,000",
            "smaller",
        ),
        ("1e9 days, $2", "1e9 days", "is not a limit that planctl knows", "with commas between"),
        ("999999 days, $2", "999999 days", "at most a year", "smaller"),
        ("\n- $2\n- soon\n", "soon", "is not a limit that planctl knows", "with commas between"),
    ] {
        let (text, faults) = faults(budget);
        assert_eq!(faults.len(), 1, "{budget}: {faults:?}");
        let fault = &faults[0];
        let at = fault.spans[0].span;
        assert_eq!(&text[at.start..at.end], part, "{budget}");
        assert!(fault.message.starts_with(&format!("`{part}` in the budget ")), "{}", fault.message);
        assert!(fault.message.contains(why), "{budget}: {}", fault.message);
        assert!(fault.help.as_ref().unwrap().contains(help), "{budget}: {:?}", fault.help);
    }
}

#[test]
fn every_wrong_part_has_its_own_finding() {
    let (text, faults) = faults("€3; tokens, -1 h and 20 minutes");
    let parts: Vec<&str> =
        faults.iter().map(|fault| &text[fault.spans[0].span.start..fault.spans[0].span.end]).collect();
    assert_eq!(parts, ["€3", "tokens", "-1 h"]);
}

#[test]
fn a_limit_given_twice_shows_both() {
    for (budget, first, again, kind) in [
        ("200k tokens, 300k tokens", "200k tokens", "300k tokens", "tokens"),
        ("$2 and 3 USD", "$2", "3 USD", "money"),
        ("20 minutes, 30 minutes", "20 minutes", "30 minutes", "time"),
        ("20 minutes, $2, 1 hour", "20 minutes", "1 hour", "time"),
    ] {
        let (text, faults) = faults(budget);
        assert_eq!(faults.len(), 1, "{budget}: {faults:?}");
        let shown: Vec<&str> =
            faults[0].spans.iter().map(|label| &text[label.span.start..label.span.end]).collect();
        assert_eq!(shown, [again, first]);
        assert!(faults[0].message.contains(&format!("limits {kind} a second time")), "{}", faults[0].message);
    }
}

#[test]
fn a_unit_that_is_nearly_right_is_mended() {
    for (budget, mended) in [
        ("max 200k tokns, $1.50, 20 minutes", WHOLE),
        ("max 200k tokens, $1.50, 20 minuts", WHOLE),
        ("max 200k tokens, 1.50 dolars, 20 minutes", "max 200k tokens, 1.50 dollars, 20 minutes"),
    ] {
        let (text, faults) = faults(budget);
        assert!(faults[0].help.as_ref().unwrap().starts_with("did you mean `"), "{faults:?}");
        let source = Source::new("p", text);
        assert_eq!(apply_fixes(&source, &faults, Reach::Safe).unwrap(), with(WHOLE, mended));
    }
    let (text, faults) = faults("200k, $1.50");
    let source = Source::new("p", text);
    assert_eq!(apply_fixes(&source, &faults, Reach::Safe), None, "nobody knows that tokens are meant");
    assert_eq!(apply_fixes(&source, &faults, Reach::Unsafe).unwrap(), with(WHOLE, "200k tokens, $1.50"));
}

#[test]
fn what_follows_a_budget_and_is_none_is_still_said() {
    let text = PLAN.replace(WHOLE, "max 200k tokens\nThis is for the tests.");
    let all = found(&text);
    assert_eq!(all.len(), 1);
    assert!(all[0].code == P015 && all[0].message.contains("belongs to no field"), "{all:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    // `found` checks that every place lies in the text and between characters.
    #[test]
    fn any_budget_is_read(pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..12), other in "\\PC{0,6}") {
        found(&with(WHOLE, &(pieces.concat() + &other)));
        found(&with(WHOLE, &(other + &pieces.join("\u{1f574}"))));
    }
}

const PIECES: &[&str] = &[
    "1",
    "200",
    "k",
    "M",
    " ",
    ",",
    ";",
    "/",
    " and ",
    "$",
    "€",
    "¢",
    "tokens",
    "tokns",
    "max ",
    "min",
    " minuts",
    "h",
    "an ",
    "half an hour",
    "half",
    ".",
    "-",
    "−",
    ":",
    "time",
    "usd",
    "USD ",
    "\n- ",
    "\n",
    "٣",
    "é",
    "İ",
    "0",
    "of",
    "per step",
];

#[test]
fn a_budget_of_many_parts_takes_linear_time() {
    let began = worked();
    for part in [",1", "1 h,", "max ", "1 s", "1 and ", "é/"] {
        let lines = part.repeat(150_000 / part.len());
        parse(&Source::new("p", with(WHOLE, &lines)));
    }
    // A reader that looks at the rest of the line for each part takes minutes.
    let time = worked() - began;
    assert!(time.as_secs() < 20, "{time:?}");
}

#[test]
fn a_budget_in_bullets_keeps_its_limits_when_the_plan_is_formatted() {
    let text = with(WHOLE, "\n- 200k tokens\n- $1.50\n- 20 minutes");
    let source = Source::new("p", text);
    let formatted = planctl_lang::format(&source);
    let budget = |source: &Source| parse(source).0.head.budget.map(|budget| budget.value);
    assert_eq!(budget(&Source::new("p", formatted)), budget(&source));
}
