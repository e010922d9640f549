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
