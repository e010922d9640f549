//! The bad-input catalogue, rows 24, 25, 34, 35, 44 to 55 and 65: a plan's text and its surroundings.

use crate::sample::{Expected, expect, expect_with, facts, found_with, with};
use planctl_lang::Code::{
    P008, P101, P102, P201, P202, P203, P204, P205, P206, P207, P208, P209, P210, P401, P402, P403, P603,
};
use planctl_lang::Severity::{Error, Note, Warning};
use planctl_lang::{Code, Facts, FileFact, Levels, Severity, Source, SpecialKind, parse};

fn expected(code: Code, level: Severity, says: &'static str, line: usize) -> Expected {
    Expected { code, level, says, line }
}

fn file(path: &str, fact: FileFact) -> Facts {
    Facts { files: [(path.to_owned(), fact)].into(), ..facts() }
}

fn reading(subscription: &str) -> String {
    with("- file:one.txt", &format!("- {subscription}"))
}

#[test]
fn row_24_an_unknown_target_lists_the_roles() {
    let unknown =
        expect(&with("coder", "codr"), &expected(P401, Error, "no agent serves the role `codr`", 17));
    assert_eq!(unknown.notes, ["the roles are coder, reviewer"]);
    assert_eq!(unknown.help.as_deref(), Some("did you mean `coder`?"));
}

#[test]
fn a_role_that_planctl_toml_lacks_is_a_warning_as_having_none_is_and_told_once() {
    let text = crate::sample::PLAN.replace("**target:** coder", "**target:** tester");
    let coder = Facts { roles: Some(vec!["coder".into()]), ..facts() };
    let lacks = expect_with(&text, &coder, &expected(P401, Warning, "no agent serves the role `tester`", 17));
    assert_eq!(lacks.spans[0].text, "planctl.toml has no `[roles.tester]`");
    let help = "add `[roles.tester]` to planctl.toml; or run with `--exec CMD` or `--agent NAME`, which serve every role; \
                or have `planctl worker run --role tester` beside a daemon";
    assert_eq!(lacks.help.as_deref(), Some(help));
    let none = Facts { roles: None, ..facts() };
    assert_eq!(expect_with(&text, &none, &expected(P402, Warning, "no roles", 17)).help, lacks.help);
}

#[test]
fn without_a_registry_roles_are_one_warning() {
    let none = Facts { roles: None, ..facts() };
    expect_with(crate::sample::PLAN, &none, &expected(P402, Warning, "no roles are configured", 17));
    assert_eq!(found_with(&with("coder", "anyone"), &Facts { serves_every_role: true, ..facts() }), []);
}

#[test]
fn row_25_a_target_has_letters_only() {
    for target in ["my coder", "../coder", "-x", "cöder"] {
        let refused =
            expect(&with("** coder", &format!("** {target}")), &expected(P403, Error, "can't be a role", 17));
        assert!(refused.help.unwrap().contains("letters, digits"), "{target}");
    }
}

#[test]
fn row_25_a_role_that_shines_through_is_offered() {
    let quoted = expect(&with("** coder", "** `coder`"), &expected(P403, Error, "can't be a role", 17));
    assert_eq!(quoted.help.as_deref(), Some("write the name alone: `**target:** coder`"));
    let facts = Facts { roles: Some(vec!["code-reviewer".into(), "coder".into()]), ..facts() };
    let spaced = expect_with(
        &with("** coder", "** Code Reviewer"),
        &facts,
        &expected(P403, Error, "can't be a role", 17),
    );
    assert!(spaced.help.unwrap().starts_with("did you mean `code-reviewer`?"));
    assert!(!spaced.fix.unwrap().safe, "who does a step is for a person to say");
}

#[test]
fn row_34_a_syntax_error_has_the_line_of_the_plan() {
    let text = with("test -f one.txt", "test -f one.txt\nif true; then");
    let said = "bash: -c: line 3: syntax error: unexpected end of file\n";
    let facts =
        Facts { syntax: [("test -f one.txt\nif true; then".into(), Some(said.into()))].into(), ..facts() };
    let invalid = expect_with(&text, &facts, &expected(P101, Error, "not valid shell", 24));
    assert_eq!(invalid.notes, ["bash -n: line 24: syntax error: unexpected end of file"]);
    expect(&text, &expected(P101, Error, "not valid shell", 24));
}

#[test]
fn row_34_what_only_bash_accepts_could_not_be_checked() {
    let script = "[[ -f a && ]]";
    let text = with("test -f one.txt", script);
    let facts = Facts { syntax: [(script.into(), None)].into(), ..facts() };
    expect_with(&text, &facts, &expected(Code::P109, Warning, "bash accepts what planctl can't read", 22));
    expect(&text, &expected(Code::P109, Warning, "could not be checked", 22));
}

#[test]
fn row_35_a_missing_tool_is_named_with_the_path() {
    let text = with("test -f one.txt", "test -f one.txt && timeout 5 ruff check .");
    let facts = Facts {
        commands: [("ruff".into(), false), ("timeout".into(), true)].into(),
        path: "/usr/bin:/bin".into(),
        ..facts()
    };
    let missing = expect_with(&text, &facts, &expected(P102, Error, "`ruff` is not on the PATH", 23));
    assert_eq!(missing.notes, ["contracts run with this PATH, not with your shell's: /usr/bin:/bin"]);
    let install = "install `ruff`, or add its directory to `[contracts] path` in planctl.toml";
    assert_eq!(missing.help.as_deref(), Some(install));
    let source = Source::new("p", text);
    let wants = planctl_lang::read(&source).wants();
    assert_eq!(wants.commands.into_iter().collect::<Vec<_>>(), ["ruff", "timeout"]);
}

#[test]
fn row_35_a_tool_of_another_name_is_no_slip_of_the_finger() {
    let missing = |name: &str| {
        let text = with("test -f one.txt", &format!("{name} -q"));
        let facts =
            Facts { commands: [(name.to_owned(), false), ("python3".into(), true)].into(), ..facts() };
        let says = "is not on the PATH";
        expect_with(&text, &facts, &expected(P102, Error, says, 23)).help.unwrap_or_default()
    };
    assert_eq!(missing("python"), "did you mean `python3`?");
    assert!(missing("pytest").starts_with("install `pytest`"), "not `test`");
}

#[test]
fn row_44_an_absolute_path_is_refused() {
    expect(&reading("file:/etc/passwd"), &expected(P205, Error, "`/etc/passwd` is absolute", 32));
    expect(&reading("file:~/x"), &expected(P205, Error, "home directory", 32));
}

#[test]
fn row_45_a_path_upwards_is_refused() {
    for path in ["../x", "a/../../x", "a/../b"] {
        expect(&reading(&format!("file:{path}")), &expected(P205, Error, "the path `", 32));
    }
}

#[test]
fn row_46_an_empty_path_is_refused() {
    for entry in ["file:", "file: ", "topic:", ""] {
        expect(&reading(entry), &expected(P206, Error, "", 32));
    }
}

#[test]
fn row_47_a_file_that_nobody_makes_is_named_with_near_names() {
    let mut facts = file("doc/analysis.md", FileFact::Missing);
    facts.existing = vec!["docs/analysis.md".into(), "src/main.rs".into()];
    let absent =
        expect_with(&reading("file:doc/analysis.md"), &facts, &expected(P201, Error, "step 2 reads", 32));
    assert_eq!(absent.notes, ["near names: docs/analysis.md"]);
    // A file that an earlier step's contract tests for is fine (P-58).
    assert_eq!(found_with(crate::sample::PLAN, &file("one.txt", FileFact::Missing)), []);
}

#[test]
fn row_48_a_file_that_a_later_step_makes_names_that_step() {
    let text = with(
        "**task:**\nMake `one.txt`.",
        "**subscriptions:**\n- file:two.txt\n\n**task:**\nMake `one.txt`.",
    );
    let text = text.replace("- file:one.txt\n", "- file:three.txt\n");
    let order = expect_with(
        &text,
        &file("two.txt", FileFact::Missing),
        &expected(P203, Error, "only step 2 produces", 19),
    );
    assert_eq!(order.spans[1].text, "first produced here (step 2 \"Make two\")");
}

#[test]
fn steps_that_wait_for_each_other_are_a_circle() {
    let text = with(
        "**task:**\nMake `one.txt`.",
        "**subscriptions:**\n- file:two.txt\n\n**task:**\nMake `one.txt`.",
    );
    let missing = Facts {
        files: [("one.txt".into(), FileFact::Missing), ("two.txt".into(), FileFact::Missing)].into(),
        ..facts()
    };
    expect_with(&text, &missing, &expected(P204, Error, "in a circle: 1 → 2 → 1", 19));
    assert!(!found_with(&text, &missing).iter().any(|found| found.code == P203));
}

#[test]
fn row_49_a_link_out_of_the_workspace_says_where_it_points() {
    let facts = file("one.txt", FileFact::Outside { target: "/etc/\u{1b}[31mshadow".into() });
    let link = expect_with(
        crate::sample::PLAN,
        &facts,
        &expected(P205, Error, "a link that leaves the workspace", 32),
    );
    assert_eq!(link.spans[0].text, "it points to `/etc/\\u{1b}[31mshadow`");
}

#[test]
fn row_50_special_files_are_named_by_kind() {
    for (special, word) in [
        (SpecialKind::Fifo, "a named pipe"),
        (SpecialKind::Device, "a device"),
        (SpecialKind::Socket, "a socket"),
    ] {
        let refused = expect_with(
            crate::sample::PLAN,
            &file("one.txt", FileFact::Special { special }),
            &expected(P207, Error, "", 32),
        );
        assert!(refused.message.contains(word));
    }
    expect_with(
        crate::sample::PLAN,
        &file("one.txt", FileFact::Directory),
        &expected(P207, Error, "is a directory", 32),
    );
}

#[test]
fn row_51_a_huge_file_says_cap_and_size() {
    let facts = file("one.txt", FileFact::Regular { size: 1 << 30 });
    expect_with(
        crate::sample::PLAN,
        &facts,
        &expected(P208, Warning, "1073741824 bytes, and a prompt takes 262144", 32),
    );
}

#[test]
fn row_52_a_step_has_at_most_50_subscriptions() {
    let many: String = (0..500).map(|at| format!("- file:f{at}.txt\n")).collect();
    expect(
        &with("- file:one.txt\n", &many),
        &expected(P008, Error, "500 subscriptions, and the limit is 50", 82),
    );
}

#[test]
fn row_53_a_subscription_given_twice_is_a_warning() {
    expect(&reading("file:one.txt\n- file:one.txt"), &expected(P209, Warning, "given twice", 33));
    expect(
        &with("**subscriptions:**\n- file:one.txt\n", "**subscriptions:** file:one.txt, file:one.txt\n"),
        &expected(P209, Warning, "given twice", 31),
    );
}

#[test]
fn row_54_an_unknown_topic_is_a_warning_with_the_known_ones() {
    let topics = Facts { topics: Some(vec!["fix-auth".into()]), ..facts() };
    let unknown =
        expect_with(&reading("topic:fix-aut"), &topics, &expected(P210, Warning, "`fix-aut` is unknown", 32));
    assert_eq!(unknown.help.as_deref(), Some("did you mean `topic:fix-auth`?"));
    let none = Facts { topics: Some(Vec::new()), ..facts() };
    expect_with(&reading("topic:any"), &none, &expected(P210, Warning, "nothing will be injected", 32));
    assert!(found_with(&reading("topic:fix-auth"), &topics).iter().all(|found| found.code != P210));
    let text = reading("topic:fix-aut");
    let source = Source::new("plan.md", text.as_str());
    let (workflow, _) = planctl_lang::workflow::of_plan(&source, &parse(&source).0);
    let late = planctl_lang::unknown_topics(&source, &workflow, &["fix-auth".to_owned()], &Levels::default());
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].code, late[0].level, &late[0].help), (P210, Warning, &unknown.help));
    // Where no database was looked at, nothing is known against it.
    expect(&reading("topic:any"), &expected(P210, Note, "was not looked up", 32));
}

#[test]
fn row_55_other_kinds_of_subscription_are_refused() {
    let refused =
        expect(&reading("url:https://example.org"), &expected(P206, Error, "`url:` is not a kind", 32));
    let bare = expect(&reading("src/one.txt"), &expected(P206, Error, "`src/one.txt` has no kind", 32));
    assert_eq!(bare.help.as_deref(), Some("write the kind before it: `file:src/one.txt`"));
    assert!(refused.help.unwrap().contains("`file:`"));
}

#[test]
fn a_glob_that_matches_nothing_is_a_warning() {
    let facts = Facts { globs: [("src/*.rs".into(), Vec::new())].into(), ..facts() };
    expect_with(&reading("file:src/*.rs"), &facts, &expected(P202, Warning, "matches nothing", 32));
}

#[test]
fn row_65_a_plan_outside_the_workspace_is_allowed_and_said() {
    let facts = Facts { plan_is_inside: Some(false), ..facts() };
    expect_with(
        crate::sample::PLAN,
        &facts,
        &expected(P603, Note, "outside the workspace; it runs all the same", 1),
    );
}

#[test]
fn a_money_cap_that_nobody_counts_is_a_warning() {
    let facts = Facts { unpriced_roles: vec!["coder".into()], ..facts() };
    expect_with(
        crate::sample::PLAN,
        &facts,
        &expected(Code::P502, Warning, "the role `coder` reports no cost", 10),
    );
}

#[test]
fn a_file_that_can_not_be_read_says_why() {
    let facts = file("one.txt", FileFact::Unreadable { reason: "permission denied".into() });
    expect_with(crate::sample::PLAN, &facts, &expected(P207, Error, "can't be read: permission denied", 32));
}

#[test]
fn a_script_that_is_not_there_and_that_no_task_names_is_a_warning() {
    let text = with("test -f one.txt", "./checks/one.sh");
    let facts = file("checks/one.sh", FileFact::Missing);
    expect_with(&text, &facts, &expected(P102, Warning, "`./checks/one.sh` is not there", 23));
    let built = with("test -f one.txt", "make -s checks && ./checks/one.sh");
    assert!(
        !found_with(&built, &facts).iter().any(|found| found.code == P102),
        "made by the contract itself"
    );
    let named = text.replace("Make `one.txt`.", "Make `one.txt` and `checks/one.sh`.");
    assert!(!found_with(&named, &facts).iter().any(|found| found.code == P102));
}

#[test]
fn d18_a_script_that_a_shell_is_handed_and_that_no_task_names_is_a_warning() {
    let facts = file("checks/one.sh", FileFact::Missing);
    let has = |contract: &str, task: &str| {
        let text = with("test -f one.txt", contract).replace("Make `one.txt`.", task);
        found_with(&text, &facts).iter().any(|found| found.code == P102 && found.level == Warning)
    };
    for contract in
        ["bash checks/one.sh", "test -s one.txt && bash ./checks/one.sh one.txt", "sh -eu checks/one.sh"]
    {
        assert!(has(contract, "Make `one.txt`."), "{contract}");
        assert!(!has(contract, "Make `one.txt`, and `checks/one.sh`, which looks at it."), "{contract}");
        assert!(!has(contract, "Make `one.txt`.\n\n**changes:** checks/**, one.txt"), "{contract}");
    }
    for contract in [
        "cp one.txt checks/one.sh && bash checks/one.sh",
        "make -s checks && bash checks/one.sh",
        "cd web && bash checks/one.sh",
        "bash -c 'test -s one.txt' checks/one.sh",
        "test -s one.txt || bash \"$CHECK\"",
    ] {
        assert!(!has(contract, "Make `one.txt`."), "{contract}");
    }
}

#[test]
fn d18_a_time_limit_that_one_step_may_use_up_is_told() {
    let text = crate::sample::with("**target:** coder\n", "**target:** coder\n**timeout:** 3 h\n");
    let all = crate::sample::found(&text);
    let [short] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(short.code, planctl_lang::Code::P501);
    assert!(
        short.message.starts_with("step 1 may work for 3 h, and the budget of the whole plan is 20 min"),
        "{short:?}"
    );
    let fits = crate::sample::with("**target:** coder\n", "**target:** coder\n**timeout:** 20 min\n");
    assert_eq!(crate::sample::found(&fits), []);
}

#[test]
fn d18_protects_that_match_nothing_are_told() {
    let text = crate::sample::with("**target:** coder\n", "**target:** coder\n**protects:** test/**\n");
    let facts = |matches: &[&str]| planctl_lang::Facts {
        globs: [("test/**".to_owned(), matches.iter().map(|path| (*path).to_owned()).collect())].into(),
        ..crate::sample::facts()
    };
    let codes = |text: &str, facts: &planctl_lang::Facts| -> Vec<planctl_lang::Code> {
        crate::sample::found_with(text, facts).into_iter().map(|found| found.code).collect()
    };
    assert_eq!(codes(&text, &facts(&[])), [planctl_lang::Code::P202]);
    assert_eq!(codes(&text, &facts(&["test/a.py"])), []);
    let made = text.replace("Make `two.txt` from it.", "Make `two.txt` and `test/b.py` from it.");
    assert!(!codes(&made, &facts(&[])).contains(&planctl_lang::Code::P202));
}

#[test]
fn d18_a_check_of_files_that_is_an_earlier_steps_proves_nothing() {
    let text = crate::sample::with("test -f two.txt", "test -f one.txt");
    let all = crate::sample::found(&text);
    let same = all.iter().find(|found| found.code == planctl_lang::Code::P103).expect("it is the same");
    assert_eq!(same.message, "the contract is that of step 1, so it passes before any work is done");
    let is_told =
        |text: &str| crate::sample::found(text).iter().any(|found| found.code == planctl_lang::Code::P103);
    let guard = text.replace("**target:** coder\n**sub", "**target:** coder\n**guard:** yes\n**sub");
    assert!(!is_told(&guard));
    assert!(!is_told(&text.replace("test -f one.txt", "make test")), "tests may fail by what the step does");
}

#[test]
fn d17_text_above_the_steps_and_a_second_frontmatter_are_told() {
    let head = "\n## Constraints\n\nAdd no dependency.\nNone.\n\n## Steps";
    let text = crate::sample::with("\n## Steps", head);
    let all = crate::sample::found(&text);
    let [unread] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((unread.code, unread.level), (planctl_lang::Code::P015, planctl_lang::Severity::Note));
    let span = unread.spans[0].span;
    assert_eq!(&text[span.start..span.end], "Add no dependency.");
    let second = format!("{}\n## Notes\n\n---\ntype: plan\nowner: x\n---\n", crate::sample::PLAN);
    let codes: Vec<_> = crate::sample::found(&second).into_iter().map(|found| found.code).collect();
    assert_eq!(codes, [planctl_lang::Code::P015, planctl_lang::Code::P002]);
}

#[test]
fn sentences_are_broken_between_words_where_the_terminal_is_narrow() {
    let text = crate::sample::PLAN.replace("**target:** coder", "**target:** tester");
    let found = crate::sample::found(&text);
    let lacks = found.iter().find(|found| found.code == planctl_lang::Code::P401).expect("nobody serves it");
    let source = planctl_lang::Source::new("plan.md", &*text);
    for columns in [60, 80, 100] {
        let drawn = lacks.render_within(&source, false, columns);
        for line in drawn.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}\n{drawn}");
        }
        assert!(drawn.contains("`planctl worker run --role tester`"), "a command stays whole:\n{drawn}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&drawn).contains(&words(lacks.help.as_deref().unwrap())), "{drawn}");
    }
    assert!(lacks.render(&source, false).contains(lacks.help.as_deref().unwrap()), "a pipe has no width");
}
