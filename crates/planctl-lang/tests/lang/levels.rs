//! How much a code weighs: of wishes that touch the same finding the later wins.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

use planctl_lang::{Code, Levels, Severity, Source, Wish, verify};

use Wish::{Allow, Deny, Warn};

/// Wishes in the order they are typed.
type Typed = &'static [(Wish, &'static str)];

fn levels(wishes: &[(Wish, &str)]) -> Levels {
    let mut levels = Levels::default();
    for (wish, name) in wishes {
        levels.add(*wish, name).unwrap();
    }
    levels
}

/// The level that a contract which can't fail (P104, a warning by itself) has; nothing where it is not reported.
fn level_of_p104(levels: &Levels) -> Option<Severity> {
    let text = crate::sample::with("test -f two.txt", "true");
    let found = verify(&Source::new("p.md", text), &crate::sample::facts(), levels);
    let level = found.diagnostics.iter().find(|found| found.code == Code::P104).map(|found| found.level);
    assert_eq!(found.is_verified(), level != Some(Severity::Error));
    level
}

#[test]
fn the_later_wish_wins_and_warnings_touches_warnings_only() {
    let cases: &[(Typed, Option<Severity>)] = &[
        (&[], Some(Severity::Warning)),
        (&[(Deny, "P104")], Some(Severity::Error)),
        (&[(Allow, "p104")], None),
        (&[(Deny, "P104"), (Allow, "P104")], None),
        (&[(Allow, "P104"), (Deny, "P104")], Some(Severity::Error)),
        (&[(Deny, "warnings")], Some(Severity::Error)),
        (&[(Deny, "warnings"), (Warn, "warnings")], Some(Severity::Warning)),
        (&[(Deny, "warnings"), (Allow, "P104")], None),
        (&[(Deny, "warnings"), (Warn, "P104")], Some(Severity::Warning)),
        // An allowed finding is no warning any more, and a denied one is none either.
        (&[(Allow, "P104"), (Deny, "warnings")], None),
        (&[(Deny, "P104"), (Allow, "warnings")], Some(Severity::Error)),
        (&[(Warn, "P104"), (Deny, "warnings")], Some(Severity::Error)),
        (&[(Allow, "warnings"), (Warn, "P104")], Some(Severity::Warning)),
        (&[(Allow, "P110"), (Deny, "P101")], Some(Severity::Warning)),
    ];
    for (wishes, expected) in cases {
        assert_eq!(level_of_p104(&levels(wishes)), *expected, "{wishes:?}");
    }
}

#[test]
fn later_levels_go_before_earlier_ones_as_if_they_were_typed_after_them() {
    let cases: &[(Typed, Typed)] = &[
        (&[(Allow, "P104")], &[(Deny, "warnings")]),
        (&[(Deny, "warnings")], &[(Allow, "P104")]),
        (&[(Warn, "P104")], &[(Deny, "warnings")]),
        (&[(Deny, "P104"), (Allow, "warnings")], &[(Warn, "P104")]),
        (&[(Deny, "P104")], &[]),
    ];
    for (first, second) in cases {
        let typed = levels(&[*first, *second].concat());
        let joined = levels(first).then(&levels(second));
        assert_eq!(level_of_p104(&joined), level_of_p104(&typed), "{first:?} {second:?}");
        assert_eq!(joined.wishes(), typed.wishes());
    }
}

#[test]
fn wishes_read_the_same_where_they_mean_the_same() {
    let one = levels(&[(Allow, "P110"), (Deny, "P104")]);
    let other = levels(&[(Warn, "P104"), (Deny, "P104"), (Allow, "P110")]);
    assert_eq!(one.wishes(), other.wishes());
    let before = levels(&[(Allow, "P104"), (Deny, "warnings"), (Warn, "P110")]);
    assert_eq!(before.wishes(), [("P104", Allow), ("warnings", Deny), ("P110", Warn)]);
    assert_ne!(before.wishes(), levels(&[(Deny, "warnings"), (Allow, "P104"), (Warn, "P110")]).wishes());
}

#[test]
fn only_what_is_stricter_may_be_left() {
    let mut levels = levels(&[(Allow, "P104"), (Warn, "P102"), (Deny, "P110"), (Allow, "warnings")]);
    assert_eq!(levels.only_stricter(), ["P102", "P104", "warnings"]);
    assert_eq!(levels.wishes(), [("P110", Deny)]);
}

#[test]
fn an_unknown_code_is_named_with_the_nearest_and_a_real_error_stays_one() {
    let refused = |wish, name: &str| Levels::default().add(wish, name).unwrap_err().to_string();
    assert_eq!(refused(Deny, "P14"), "`P14` is neither a code nor `warnings`; did you mean `P014`?");
    assert_eq!(
        refused(Deny, "warning"),
        "`warning` is neither a code nor `warnings`; did you mean `warnings`?"
    );
    assert_eq!(refused(Allow, "a\u{202e}b"), "`a\\u{202e}b` is neither a code nor `warnings`");
    assert_eq!(refused(Allow, "P010"), "`P010` is always an error: a step has no contract");
    assert_eq!(refused(Warn, "P101"), "`P101` is always an error: the contract is not valid bash");
    for name in ["P102", "P201", "P401"] {
        assert_eq!(Levels::default().add(Allow, name), Ok(()), "{name}: a person may know better");
    }
}
