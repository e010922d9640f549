//! Which plan of a library a message calls for (rows H-03 to H-09, G-39, H-52, rulings ).

use planctl_lang::library::{
    Entry, Fate, Matcher, Question, Success, best, entries, entry_json, place_of, weigh,
};
use planctl_lang::{Levels, Source, TEMPLATES, digest, instantiate, parse, verify, workflow};
use proptest::prelude::*;

fn entry(id: &str, domains: &[&str], triggers: &[&str], threshold: Option<u32>) -> Entry {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Entry {
        id: id.to_owned(),
        domains: texts(domains),
        triggers: texts(triggers),
        trigger_threshold: threshold,
        ..Entry::default()
    }
}

fn asked(message: &str) -> Question<'_> {
    Question { message, ..Question::default() }
}

fn of_domain<'a>(message: &'a str, domain: &'a str) -> Question<'a> {
    Question { domain: Some(domain), ..asked(message) }
}

fn taken<'e>(entries: &'e [Entry], question: &Question<'_>) -> Option<&'e str> {
    best(entries, question).map(|weighed| weighed.entry.id.as_str())
}

fn fates<'e>(entries: &'e [Entry], question: &Question<'_>) -> Vec<Fate<'e>> {
    weigh(entries, question).into_iter().map(|weighed| weighed.fate).collect()
}

fn bugfix() -> Entry {
    let triggers = ["fix bug", "debug", "troubleshoot", "not working", "broken", "error in"];
    entry("bugfix_workflow", &["bugfix"], &triggers, Some(1))
}

fn branch() -> Entry {
    entry("git_feature_branch", &["git_ops"], &["create branch", "feature branch", "new branch"], Some(2))
}

#[test]
fn h_03_a_message_needs_as_many_triggers_as_the_threshold() {
    let library = [branch()];
    assert_eq!(fates(&library, &of_domain("new branch", "git_ops")), [Fate::TooFewHits]);
    let both = best(&library, &of_domain("create branch for new branch", "git_ops")).unwrap();
    let hits: Vec<&str> = both.hits.iter().map(|hit| hit.trigger).collect();
    assert_eq!((hits, both.score()), (vec!["create branch", "new branch"], 3));
}

#[test]
fn h_04_the_threshold_is_two_where_the_entry_says_nothing() {
    let library = [entry("one", &[], &["merge", "pull request"], None)];
    assert_eq!(taken(&library, &asked("merge it")), None);
    assert_eq!(taken(&library, &asked("merge the pull request")), Some("one"));
}

#[test]
fn h_05_an_entry_with_domains_is_for_them_and_one_without_is_for_all() {
    let library = [bugfix(), entry("any", &[], &["debug"], Some(1))];
    assert_eq!(
        fates(&library, &of_domain("debug it", "")),
        [Fate::OtherDomain, Fate::Taken],
        "an empty domain is in no list"
    );
    assert_eq!(fates(&library, &of_domain("debug it", "git_ops")), [Fate::OtherDomain, Fate::Taken]);
    assert_eq!(taken(&library, &of_domain("debug it", "bugfix")), Some("bugfix_workflow"));
    assert_eq!(taken(&library, &asked("debug it")), Some("bugfix_workflow"), "nobody said a domain");
}

#[test]
fn h_06_the_domain_counts_like_a_hit() {
    let library = [entry("any", &[], &["debug"], Some(1)), bugfix()];
    let weighed = weigh(&library, &of_domain("debug it", "bugfix"));
    assert_eq!((weighed[0].score(), weighed[1].score()), (1, 2));
    assert_eq!(weighed[0].fate, Fate::Outscored { by: "bugfix_workflow" });
    assert_eq!(weighed[1].fate, Fate::Taken);
}

#[test]
fn h_07_of_two_that_are_equal_the_first_of_the_library_is_taken() {
    let one = entry("one", &[], &["debug"], Some(1));
    let other = entry("other", &[], &["debug"], Some(1));
    let question = asked("debug it");
    assert_eq!(fates(&[one.clone(), other.clone()], &question), [Fate::Taken, Fate::Later { than: "one" }]);
    assert_eq!(taken(&[other, one], &question), Some("other"), "the order decides");
}

#[test]
fn h_09_an_empty_message_calls_for_nothing() {
    let library = [bugfix(), entry("always", &["bugfix"], &[], Some(0))];
    for message in ["", " \n\t"] {
        assert_eq!(fates(&library, &of_domain(message, "bugfix")), [Fate::NoMessage, Fate::NoMessage]);
    }
    assert_eq!(taken(&library, &of_domain("hello", "bugfix")), Some("always"), "its domain is enough");
    assert_eq!(fates(&library, &asked("hello")), [Fate::TooFewHits, Fate::NoScore]);
}

#[test]
fn g_39_an_entry_that_the_roles_list_does_not_name_is_not_taken() {
    let library = [bugfix(), branch()];
    let allowed = ["git_feature_branch".to_owned()];
    let question = Question { allowed: Some(&allowed), ..asked("debug, then create a new branch") };
    assert_eq!(fates(&library, &question), [Fate::NotOfRole, Fate::Taken]);
    assert_eq!(
        taken(&library, &Question { allowed: Some(&[]), ..question }),
        None,
        "an empty list allows none"
    );
}

#[test]
fn x_10_the_words_of_a_trigger_stand_in_order_with_at_most_two_others_between() {
    let library = [bugfix()];
    let found = |message: &str| best(&library, &asked(message)).map(|weighed| weighed.hits[0].found.clone());
    assert_eq!(found("I need to fix a bug in the login module").as_deref(), Some("fix a bug"));
    assert_eq!(found("fix the bug in /tmp/test.py").as_deref(), Some("fix the bug"));
    assert_eq!(found("fix that nasty bug").as_deref(), Some("fix that nasty bug"));
    assert_eq!(found("fix this one old bug"), None, "three words between");
    assert_eq!(found("the bug has a fix"), None, "another order");
    assert_eq!(
        found("fix it, I mean, please fix the bug").as_deref(),
        Some("fix the bug"),
        "a second beginning"
    );
    assert_eq!(found("What's the weather like?"), None);
}

#[test]
fn x_10_a_word_of_a_trigger_is_a_whole_word_and_the_old_matcher_is_at_hand() {
    let library = [entry("git_merge_pr", &[], &["merge"], Some(1))];
    let emergency = asked("this is an emergency");
    assert_eq!(taken(&library, &emergency), None);
    let old = Question { matcher: Matcher::Substring, ..emergency };
    assert_eq!(taken(&library, &old), Some("git_merge_pr"));
    for message in ["Merge!", "(merge)", "'merge'", "re-merge", "please\nmerge"] {
        assert_eq!(taken(&library, &asked(message)), Some("git_merge_pr"), "{message:?}");
    }
    assert_eq!(taken(&library, &asked("merge_tool")), None, "a name with underscores is one word");
    let old = Question { matcher: Matcher::Substring, ..asked("fix a bug") };
    assert_eq!(taken(&[bugfix()], &old), None, "which knows no words between");
}

#[test]
fn x_11_neither_the_messages_nor_the_triggers_case_counts() {
    let library = [entry("one", &[], &["Fix BUG", "ÄRGER"], Some(2))];
    for matcher in [Matcher::Words, Matcher::Substring] {
        let question = Question { matcher, ..asked("fIX bug: ärger") };
        assert_eq!(taken(&library, &question), Some("one"), "{matcher:?}");
    }
}

#[test]
fn h_52_what_runs_taught_raises_the_threshold_by_one_and_is_never_below_the_written_one() {
    let mut learned = bugfix();
    let failed = Success { ended: 5, done: 2 };
    learned.success = Some(failed);
    assert_eq!((learned.written_threshold(), learned.threshold()), (1, 2));
    assert_eq!(taken(&[learned.clone()], &asked("debug it")), None);
    assert_eq!(taken(&[learned.clone()], &asked("debug it, it is broken")), Some("bugfix_workflow"));
    learned.success = Some(Success { ended: 20, done: 20 });
    assert_eq!(learned.threshold(), 1);
    let most = Entry { success: Some(failed), ..entry("most", &[], &[], Some(u32::MAX)) };
    assert_eq!(most.threshold(), u32::MAX);
}

/// A trigger looked for by trying every way to place its words.
fn tried(words: &[&str], trigger: &[&str]) -> bool {
    fn from(words: &[&str], at: usize, rest: &[&str]) -> bool {
        rest.is_empty()
            || (at + 1..at + 4).any(|next| words.get(next) == Some(&rest[0]) && from(words, next, &rest[1..]))
    }
    !trigger.is_empty()
        && (0..words.len()).any(|at| words[at] == trigger[0] && from(words, at, &trigger[1..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn x_10_a_trigger_hits_exactly_where_trying_every_way_finds_it(
        words in proptest::collection::vec(prop_oneof!["a", "b", "c", "ab"], 0..14),
        trigger in proptest::collection::vec(prop_oneof!["a", "b", "c"], 0..5),
        between in prop_oneof![Just(" "), Just(", "), Just("-"), Just("\n")],
    ) {
        let library = [entry("one", &[], &[&trigger.join(" ")], Some(1))];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let trigger: Vec<&str> = trigger.iter().map(String::as_str).collect();
        let message = words.join(between);
        let weighed = weigh(&library, &asked(&message));
        prop_assert_eq!(weighed[0].fate == Fate::Taken, tried(&words, &trigger));
        if let [hit] = weighed[0].hits.as_slice() {
            let found: Vec<&str> = hit.found.split(' ').collect();
            prop_assert!(words.windows(found.len()).any(|window| window == found), "{}", hit.found);
            prop_assert!(tried(&found, &trigger));
        }
    }

    #[test]
    fn h_07_of_any_library_at_most_one_is_taken_and_none_before_it_is_as_good(
        entries in proptest::collection::vec(
            (proptest::collection::vec("[ab]", 0..3), proptest::collection::vec("[xyz]", 0..3), 0_u32..4), 0..6),
        message in "[abc ]{0,12}",
        domain in proptest::option::of("[xyz]?"),
    ) {
        let entries: Vec<Entry> = entries.into_iter().enumerate().map(|(at, (triggers, domains, threshold))| Entry {
            id: at.to_string(), triggers, domains, trigger_threshold: Some(threshold), ..Entry::default()
        }).collect();
        let question = Question { message: &message, domain: domain.as_deref(), ..Question::default() };
        let weighed = weigh(&entries, &question);
        let taken: Vec<usize> = (0..weighed.len()).filter(|at| weighed[*at].fate == Fate::Taken).collect();
        prop_assert!(taken.len() <= 1);
        for (at, one) in weighed.iter().enumerate() {
            let competes = matches!(one.fate, Fate::Outscored { .. } | Fate::Later { .. });
            let is_behind = |best: &usize| {
                one.score() < weighed[*best].score() || one.score() == weighed[*best].score() && at > *best
            };
            let follows = !competes || taken.iter().any(is_behind);
            prop_assert!(follows, "{} competes and is not behind", at);
        }
    }

    #[test]
    fn any_message_and_any_trigger_are_weighed(message in any::<String>(), trigger in any::<String>()) {
        let library = [entry("one", &[], &[&trigger], Some(1))];
        for matcher in [Matcher::Words, Matcher::Substring] {
            let weighed = weigh(&library, &Question { matcher, ..asked(&message) });
            prop_assert_eq!(weighed.len(), 1);
        }
    }
}

fn read(path: &str, text: &str) -> (Vec<Entry>, Vec<String>) {
    let source = Source::new(path, text);
    let (entries, found) = entries(&source);
    let lines = found.iter().map(|one| {
        let at = source.position(one.spans.first().map_or(0, |label| label.span.start));
        format!("{}:{} {}", at.line, at.column, one.message)
    });
    (entries, lines.collect())
}

fn with_head(keys: &str) -> String {
    crate::sample::PLAN.replacen("owner: ", &format!("{keys}\nowner: "), 1)
}

/// The ten starter plans with what a message finds them by (row H-10).
const STARTERS: [(&str, &str, &[&str]); 10] = [
    ("git_feature_branch", "git_ops", &["create branch", "feature branch", "new branch"]),
    ("git_merge_pr", "git_ops", &["merge", "pull request", "merge branch"]),
    ("docker_build_deploy", "docker_ops", &["build image", "docker build", "deploy container"]),
    ("bugfix_workflow", "bugfix", &["fix bug", "debug", "troubleshoot", "not working", "broken", "error in"]),
    ("file_backup_restore", "file_ops", &["backup", "migrate", "move files"]),
    ("api_integration", "api_integration", &["connect api", "integrate", "endpoint"]),
    ("codegen_module", "codegen", &["create module", "new component", "build feature"]),
    ("refactor_safe", "refactor", &["refactor", "restructure", "clean up"]),
    ("dependency_update", "dependency_mgmt", &["update deps", "upgrade packages"]),
    ("log_investigation", "log_analysis", &["check logs", "investigate", "diagnose"]),
];

#[test]
fn h_10_the_ten_starter_plans_have_the_ids_the_domains_and_the_triggers_of_the_seed() {
    let mut found = Vec::new();
    for template in TEMPLATES {
        found.extend(read(&format!("{}.md", template.name), template.text).0);
    }
    assert_eq!(found.len(), STARTERS.len());
    for (id, domain, triggers) in STARTERS {
        let entry = found.iter().find(|entry| entry.id == id).unwrap_or_else(|| panic!("no {id}"));
        assert_eq!(entry.domains, [domain]);
        assert_eq!(entry.triggers, triggers);
        assert!(entry.steps >= if id == "docker_build_deploy" { 4 } else { 5 }, "{id}: {}", entry.steps);
        let (threshold, stale) = if id == "bugfix_workflow" { (Some(1), Some(15)) } else { (None, None) };
        assert_eq!((entry.trigger_threshold, entry.stale_after_turns), (threshold, stale), "{id}");
    }
    for (message, id) in [
        ("I need to fix a bug in the login module", Some("bugfix_workflow")),
        ("fix the bug in /tmp/test.py", Some("bugfix_workflow")),
        ("create branch for new branch", Some("git_feature_branch")),
        ("What's the weather like?", None),
        ("this is an emergency", None),
    ] {
        assert_eq!(taken(&found, &asked(message)), id, "{message}");
    }
}

#[test]
fn h_01_an_entry_is_a_plan_in_markdown_with_keys_in_its_frontmatter() {
    let keys = "domains: [git_ops, 'x: y']\ntriggers:\n  - Create Branch\n  - \"new: branch\"\ntrigger_threshold: 1\n\
                stale_after_turns: 7\nthen: next_one";
    let text = with_head(keys);
    let (entries, found) = read("plans/my_entry.md", &text);
    assert_eq!(found, [""; 0]);
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.id.as_str(), entry.steps), ("my_entry", 2));
    assert_eq!(entry.domains, ["git_ops", "x: y"]);
    assert_eq!(entry.triggers, ["Create Branch", "new: branch"]);
    assert_eq!((entry.trigger_threshold, entry.stale_after_turns), (Some(1), Some(7)));
    assert_eq!(entry.then.as_deref(), Some("next_one"));
    assert_eq!(read("plans/plain.md", crate::sample::PLAN).0, [], "a plan that nothing finds is no entry");
    let one = with_head("domains: bugfix\ntriggers: debug");
    assert_eq!(read("one.md", &one).0[0].triggers, ["debug"], "one text is a list of one");
    let verification =
        verify(&Source::new("plans/my_entry.md", &*text), &crate::sample::facts(), &Levels::default());
    assert!(verification.is_verified(), "{:?}", verification.diagnostics);
    assert_eq!(verification.graph.unwrap().limits().stale_after_turns, Some(7), "H-16: a run follows it");
    assert_ne!(
        digest(&Source::new("p.md", &*text)),
        digest(&Source::new("p.md", text.replace("next_one", "another"))),
        "an approval is of these keys as well"
    );
}

#[test]
fn h_01_an_entry_in_markdown_is_the_same_after_it_was_json_and_formatted() {
    let text =
        with_head("domains: [a, b]\ntriggers: [Fix bug, 'x: y']\ntrigger_threshold: 0\nthen: n\nlibrary: l");
    let source = Source::new("e.md", text);
    let (before, _) = entries(&source);
    let (tree, _) = parse(&source);
    let (workflow, _) = workflow::of_plan(&source, &tree);
    let written = workflow::to_markdown(&workflow).text;
    assert_eq!(entries(&Source::new("e.md", written)).0, before);
    let json = workflow::to_json(&workflow).to_string();
    let again = entries(&Source::new("e.json", json)).0.remove(0);
    assert_eq!(Entry { steps: before[0].steps, ..again }, before[0]);
    assert_eq!(entries(&Source::new("e.md", planctl_lang::format(&source))).0, before);
}

#[test]
fn h_11_the_seeds_bugfix_workflow_is_an_entry_with_every_key_as_printed() {
    let text = include_str!("../fixtures/bugfix-steps.json");
    let (entries, found) = read("bugfix_workflow.json", text);
    let [entry] = entries.as_slice() else { panic!("{entries:?} {found:?}") };
    assert_eq!(
        (entry.id.as_str(), entry.title.as_str(), entry.steps),
        ("bugfix_workflow", "Bug Fix Workflow", 5)
    );
    assert_eq!((entry.trigger_threshold, entry.stale_after_turns), (Some(1), Some(15)));
    let written: serde_json::Value = serde_json::from_str(text).unwrap();
    let json = entry_json(&Source::new("bugfix_workflow.json", text), "bugfix_workflow");
    assert_eq!(serde_json::Value::Object(json.unwrap()), written);
}

#[test]
fn h_53_a_key_that_is_no_number_no_list_or_stands_twice_is_told_at_its_place() {
    for (keys, told) in [
        ("trigger_threshold: many", "4:20 `trigger_threshold` must be a whole number from 0"),
        ("trigger_threshold: -1", "4:20 `trigger_threshold` must be a whole number from 0"),
        ("stale_after_turns: 0", "4:20 `stale_after_turns` must be a whole number from 1"),
        ("stale_after_turns: [1]", "4:1 `stale_after_turns` must be a whole number from 1"),
        ("triggers: {a: b}", "4:1 `triggers` must be a list of texts"),
        ("triggers: [a, '']", "4:15 `triggers` has an empty entry"),
        ("then: [a]", "4:1 `then` must be text"),
        ("triggers: [a]\ntriggers: [b]", "5:1 `triggers` is given twice"),
        ("trigers: [a]", "4:1 unknown frontmatter key `trigers`; it is kept"),
    ] {
        let (_, found) = read("e.md", &with_head(keys));
        assert_eq!(found, [told], "{keys}");
    }
}

#[test]
fn a_new_plan_names_the_entry_that_it_was_made_of_and_is_found_by_nobody() {
    let text = with_head(
        "domains:\n- a\ntriggers:\n  - b\n  - c\ntrigger_threshold: 1\nstale_after_turns: 9\nthen: n",
    );
    let source = Source::new("e.md", text);
    let made = Source::new(
        "plans/mine.md",
        instantiate(&source, Some("Mine"), "ada", Some(&workflow::Library::made_of("e"))),
    );
    assert_eq!(entries(&made).0, [], "{}", made.text());
    assert_eq!(place_of(&made).entry.as_deref(), Some("e"));
    let library = parse(&made).0.frontmatter.library;
    assert_eq!(library.stale_after_turns.unwrap().value, 9);
    assert_eq!(library.then.unwrap().value, "n", "what follows still follows");
    assert!(made.text().contains("# Mine\n") && made.text().contains("owner: ada\n"), "{}", made.text());
    assert_eq!(place_of(&source).entry.as_deref(), Some("e"), "an entry's own runs are its own");
    assert_eq!(place_of(&Source::new("p.md", crate::sample::PLAN)).entry, None);
}
