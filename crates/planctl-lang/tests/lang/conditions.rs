//! Conditions as rows C1–C8 say them: accepted ones, refused ones with their places, and that a printed condition reads as
//! the same.

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use planctl_lang::condition::{Reading, Refused, read};
use proptest::prelude::*;

fn condition(text: &str) -> Condition {
    read(text).unwrap_or_else(|refused| panic!("{text}: {refused:?}")).condition
}

fn refused(text: &str) -> (String, String) {
    let Refused { span, message, .. } = read(text).expect_err(text);
    (text[span.start..span.end].to_owned(), message)
}

fn one(key: Key, test: Test) -> Condition {
    Condition { clauses: vec![Clause { key, test }] }
}

fn is(value: &str) -> Test {
    Test::Is(value.to_owned())
}

#[test]
fn c1_clauses_are_joined_and_an_empty_text_always_holds() {
    assert!(condition("").is_always());
    assert!(condition("  ").is_always());
    assert_eq!(condition("outcome=success"), one(Key::Outcome, is("success")));
    assert_eq!(condition(" outcome != fail "), one(Key::Outcome, Test::IsNot("fail".to_owned())));
    assert_eq!(condition("outcome=success&&preferred_label=Fix").clauses.len(), 2);
    assert_eq!(condition("outcome==success"), condition("outcome=success"));
    assert_eq!(read("outcome == success").unwrap().double_signs.len(), 1);
}

#[test]
fn c2_keys_are_the_outcome_the_label_the_context_and_other_steps() {
    assert_eq!(condition("preferred_label=Fix"), one(Key::PreferredLabel, is("Fix")));
    assert_eq!(condition("context.a.b=1"), one(Key::Context("a.b".to_owned()), is("1")));
    // A name may begin as a word that conditions don't have.
    assert_eq!(condition("or_3.-95=1"), one(Key::Variable("or_3.-95".to_owned()), is("1")));
    assert_eq!(condition("not-yet=1"), one(Key::Variable("not-yet".to_owned()), is("1")));
    assert_eq!(condition("human.gate.label=1"), one(Key::Variable("human.gate.label".to_owned()), is("1")));
    let exit_code = Key::Step { node: "4".to_owned(), field: StepField::ExitCode };
    assert_eq!(condition("steps.4.exit_code != 2"), one(exit_code, Test::IsNot("2".to_owned())));
    assert_eq!(refused("steps.4.exit_cod=2"), ("exit_cod".to_owned(), "a step has no `exit_cod`".to_owned()));
    assert_eq!(refused("steps.4=2").0, "steps.4");
}

#[test]
fn c4_values_are_quoted_or_bare() {
    assert_eq!(
        condition("context.x=\"a && \\\"b\\\"\\n\""),
        one(Key::Context("x".to_owned()), is("a && \"b\"\n"))
    );
    assert_eq!(condition("context.x='a b'"), one(Key::Context("x".to_owned()), is("a b")));
    assert_eq!(condition("context.x=-1"), one(Key::Context("x".to_owned()), is("-1")));
    assert_eq!(condition("context.x=true"), one(Key::Context("x".to_owned()), is("true")));
    assert_eq!(condition("context.x=\"\""), one(Key::Context("x".to_owned()), is("")));
    assert_eq!(
        refused("preferred_label=Fix it"),
        ("Fix it".to_owned(), "a value of several words stands in quotes".to_owned())
    );
}

#[test]
fn c5_a_key_alone_asks_for_truth() {
    assert_eq!(condition("context.ready"), one(Key::Context("ready".to_owned()), Test::Truthy));
    assert_eq!(condition("context.ready && outcome=success").clauses.len(), 2);
}

#[test]
fn c6_bad_syntax_is_refused_at_its_place() {
    let wrong = [
        ("outcome=", "", "expected a value, found the end of the condition"),
        ("outcome=success &&", "", "expected a key, found the end of the condition"),
        ("&& outcome=success", "&", "expected a key, found `&`"),
        ("outcome=success outcome=fail", "o", "expected `&&` or the end of the condition, found `o`"),
        ("outcome=\"success", "\"", "the text is not closed"),
        ("outcome=success & x", "&", "expected `&&` or the end of the condition, found `&`"),
        ("=x", "=", "expected a key, found `=`"),
        ("a..b=1", "a..b", "`a..b` is not a key"),
        ("1a=1", "1a", "`1a` is not a key"),
        ("é=1", "é", "expected a key, found `é`"),
    ];
    for (text, marked, message) in wrong {
        assert_eq!(refused(text), (marked.to_owned(), message.to_owned()), "{text}");
    }
    assert!(read(&"a && ".repeat(1_000)).is_err());
}

#[test]
fn c7_what_is_reserved_is_refused_by_name() {
    let reserved = [
        ("outcome=success || outcome=fail", "||"),
        ("!context.x", "!"),
        ("context.x < 3", "<"),
        ("context.x >= 3", ">="),
        ("context.x contains y", "contains"),
        ("context.x matches y", "matches"),
        ("outcome=success or outcome=fail", "or"),
        ("(outcome=success)", "("),
        ("not context.x", "not"),
    ];
    for (text, word) in reserved {
        assert_eq!(
            refused(text),
            (word.to_owned(), format!("`{word}` is not in the language of conditions")),
            "{text}"
        );
    }
    assert_eq!(condition("or=1"), one(Key::Variable("or".to_owned()), is("1")));
}

#[test]
fn c8_an_outcome_may_be_a_word_of_the_workers_own() {
    assert!(condition("outcome=needs_dod").clauses[0].asks_for_label());
    assert!(!condition("outcome=success").clauses[0].asks_for_label());
}

fn keys() -> impl Strategy<Value = Key> {
    let path = "[a-z_][a-z0-9_-]{0,5}(\\.[a-z0-9_-]{1,4}){0,2}";
    let free = path.prop_filter("not another kind of key", |path| {
        !path.starts_with("steps.")
            && !path.starts_with("context.")
            && !["outcome", "preferred_label", "contains", "matches", "or", "and", "not"]
                .contains(&path.as_str())
    });
    let field = proptest::sample::select(StepField::ALL.to_vec());
    prop_oneof![
        Just(Key::Outcome),
        Just(Key::PreferredLabel),
        path.prop_map(Key::Context),
        free.prop_map(Key::Variable),
        ("[a-z0-9_-]{1,6}", field).prop_map(|(node, field)| Key::Step { node, field }),
    ]
}

fn clauses() -> impl Strategy<Value = Clause> {
    let tests =
        prop_oneof!["\\PC{0,12}".prop_map(Test::Is), "(?s).{0,12}".prop_map(Test::IsNot), Just(Test::Truthy)];
    (keys(), tests).prop_map(|(key, test)| Clause { key, test })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_as_the_same(clauses in proptest::collection::vec(clauses(), 0..5)) {
        let printed = Condition { clauses }.to_string();
        let again = condition(&printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_inside(text in "[a-z.=!&|<>()'\"\\\\ é1]{0,40}") {
        match read(&text) {
            Ok(Reading { clauses, condition, .. }) => {
                prop_assert_eq!(clauses.len(), condition.clauses.len());
                prop_assert!(clauses.iter().all(|span| text.get(span.start..span.end).is_some()));
            }
            Err(refused) => prop_assert!(text.get(refused.span.start..refused.span.end).is_some()),
        }
    }
}
