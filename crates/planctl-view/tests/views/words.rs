//! Words for budgets.

use planctl_engine::{BudgetPart, Shortfall};
use planctl_view::shortfall_line;

#[test]
fn p54_a_budget_that_does_not_suffice_says_what_is_left_to_do_and_what_it_lacks() {
    let short = Shortfall {
        part: BudgetPart::MicroUsd,
        spent: 900_000,
        limit: 1_000_000,
        estimate: 340_000,
        steps_remaining: 1,
        day: None,
    };
    assert_eq!(
        shortfall_line(&short),
        "budget exceeded, 1 step remaining, need $0.24 more ($0.90 of $1.00 used)"
    );
    let short = Shortfall { steps_remaining: 2, ..short };
    assert!(shortfall_line(&short).contains("2 steps remaining"), "{}", shortfall_line(&short));
}

#[test]
fn p54_time_is_told_to_the_tenth_of_a_second_and_never_as_less_than_it_is() {
    let short = |spent, estimate| Shortfall {
        part: BudgetPart::MicroSeconds,
        limit: 5_000_000,
        spent,
        estimate,
        steps_remaining: 1,
        day: None,
    };
    let line = shortfall_line(&short(4_080_000, 2_040_000));
    assert!(line.ends_with("need 1.2 s more (4.1 s of 5 s used)"), "{line}");
    let line = shortfall_line(&short(5_000_001, 0));
    assert!(line.ends_with("need 0.1 s more (5.1 s of 5 s used)"), "{line}");
}
