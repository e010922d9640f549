//! Findings that a plan allows by comments, and the comments that allow nothing (P018).

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

use planctl_lang::{
    Code, Diagnostic, Facts, Levels, Reach, Severity, Source, Trial, Verification, Wish, allowing_edit,
    apply_fixes, changes, digest, format, insert_step, show, verify,
};

use crate::sample::{PLAN, facts, with};

/// Two checks of which the first does not count: P110.
const LOST: &str = "grep -q x one.txt\ntest -f one.txt";

fn verified(text: &str) -> Verification {
    verify(&Source::new("plan.md", text), &facts(), &Levels::default())
}

/// The plan whose first step has a finding P110, with a line below its heading.
fn allowing(comment: &str) -> String {
    with("test -f one.txt", LOST).replacen("### 1. Make one\n", &format!("### 1. Make one\n\n{comment}\n"), 1)
}

fn of(code: Code, found: &Verification) -> Vec<&Diagnostic> {
    found.diagnostics.iter().filter(|found| found.code == code).collect()
}

/// The one finding about comments, with what it says and whether its fix is safe.
fn refused(text: &str) -> (Diagnostic, Option<bool>) {
    let found = verified(text);
    let [only] = of(Code::P018, &found)[..] else { panic!("{text}: {:?}", found.diagnostics) };
    (only.clone(), only.fix.as_ref().map(|fix| fix.safe))
}

#[test]
fn a_comment_in_the_step_or_above_all_steps_allows_a_finding_and_keeps_it_with_its_reason() {
    let bare = with("test -f one.txt", LOST);
    assert_eq!(of(Code::P110, &verified(&bare)).len(), 1);
    let comment = "<!-- planctl: allow P110 the first only fills the log -->";
    let in_step = allowing(comment);
    let above = bare.replacen("## Steps\n", &format!("## Steps\n\n{comment}\n"), 1);
    let in_head = bare.replacen("**Budget:**", &format!("{comment}\n**Budget:**"), 1);
    let above_contract = bare.replacen(
        "**contract:**\n",
        "<!--planctl:  ALLOW p110: the first only fills the log-->\n**contract:**\n",
        1,
    );
    for text in [in_step, above, in_head, above_contract] {
        let found = verified(&text);
        assert!(found.is_verified() && found.diagnostics.is_empty(), "{text}\n{:?}", found.diagnostics);
        let [allowed] = &found.allowed[..] else { panic!("{text}\n{:?}", found.allowed) };
        assert_eq!((allowed.finding.code, allowed.finding.level), (Code::P110, Severity::Warning));
        assert_eq!(allowed.reason, "the first only fills the log");
        assert!(text[allowed.comment.start..allowed.comment.end].starts_with("<!--"), "{text}");
        let step = found.tree.steps[0].node.task.as_ref().unwrap();
        assert_eq!(step.value, "Make `one.txt`.", "the comment is no part of the task");
        let report = found.report(&Source::new("plan.md", text.as_str()));
        assert_eq!(report.allowed[0].reason, "the first only fills the log");
        assert_eq!(report.allowed[0].finding.code, Code::P110);
    }
}

#[test]
fn a_comment_of_one_step_allows_nothing_in_another() {
    let text = with("test -f two.txt", "grep -q x two.txt\ntest -f two.txt").replacen(
        "### 1. Make one\n",
        "### 1. Make one\n\n<!-- planctl: allow P110 it is fine -->\n",
        1,
    );
    let found = verified(&text);
    assert_eq!(of(Code::P110, &found).len(), 1);
    assert_eq!(of(Code::P018, &found).len(), 1, "it allows nothing where it stands");
    assert!(found.allowed.is_empty());
}

#[test]
fn errors_and_findings_that_a_person_relies_on_stay_whatever_the_plan_says() {
    let comment = |code: Code| format!("<!-- planctl: allow {code} I know better -->");
    for code in Code::ALL.iter().filter(|code| code.guards().is_some()) {
        let (finding, is_safe) =
            refused(&PLAN.replacen("## Steps\n", &format!("## Steps\n\n{}\n", comment(*code)), 1));
        assert!(finding.message.starts_with(&format!("no plan allows `{code}`: ")), "{}", finding.message);
        assert_eq!(is_safe, Some(true));
    }
    let vacuous = with("test -f one.txt", "true");
    let text = vacuous.replacen("## Steps\n", &format!("## Steps\n\n{}\n", comment(Code::P104)), 1);
    assert_eq!(of(Code::P104, &verified(&text)).len(), 1);
    let broken = with(
        "**target:** coder\n**task:**\nMake `one",
        &format!("{}\n**task:**\nMake `one", comment(Code::P009)),
    );
    let found = verified(&broken);
    assert!(!found.is_verified() && found.allowed.is_empty());
    assert_eq!(of(Code::P018, &found)[0].message, "`P009` is an error here, and no plan allows an error");
}

#[test]
fn a_comment_that_can_not_be_read_or_allows_nothing_is_a_finding_with_its_remedy() {
    let cases: &[(&str, &str, Option<bool>)] = &[
        ("<!-- planctl: allow P110 -->", "the plan allows `P110` and does not say why", Some(false)),
        ("<!-- planctl: allow P11O because -->", "`P11O` is not the code of a finding", Some(false)),
        ("<!-- planctl: allow -->", "the comment names no code", Some(false)),
        (
            "<!-- planctl: allow P601 it is local -->",
            "the plan allows `P601`, and nothing of that kind is found",
            Some(true),
        ),
        (
            "<!-- planctl: ignore P110 it is fine -->",
            "`ignore` is not an instruction that planctl reads from a comment",
            None,
        ),
        (
            "<!-- planctl allow P110 it is fine -->",
            "a comment to planctl has a colon after the name",
            Some(false),
        ),
        ("<!--\nplanctl: allow P110 it is fine\n-->", "a comment to planctl is one line", None),
        (
            "<!-- planctl: allow P110 it is\nfine -->",
            "a comment to planctl stands whole on a line of its own",
            None,
        ),
        (
            "<!-- planctl: allow P110 one --> <!-- planctl: allow P601 two -->",
            "a comment to planctl stands whole on a line of its own",
            None,
        ),
        ("<!-- planctl: -->", "the comment tells planctl nothing", None),
        (
            "<!-- planctl: allow P110 one -->\n<!-- planctl: allow P110 two -->",
            "`P110` is allowed twice in one place",
            Some(false),
        ),
    ];
    for (comment, message, is_safe) in cases {
        let text = allowing(comment);
        let (finding, fix) = refused(&text);
        assert_eq!((finding.message.as_str(), fix), (*message, *is_safe), "{comment}");
        assert_eq!(finding.step.as_ref().map(|step| step.number.as_str()), Some("1"), "{comment}");
        assert!(finding.help.is_some(), "{comment}");
    }
    let below = format!("{PLAN}\n## Notes\n\n<!-- planctl: allow P110 it is fine -->\n");
    assert_eq!(refused(&below).0.message, "a comment that allows a finding stands where it allows none");
    for silent in [
        "<!-- planctl is a fine tool -->",
        "<!-- allow P110 it is fine -->",
        "    <!-- planctl: allow P110 x -->",
    ] {
        assert!(of(Code::P018, &verified(&allowing(silent))).is_empty(), "{silent}");
    }
}

#[test]
fn fixes_delete_a_comment_that_allows_nothing_and_mend_one_that_is_misspelt() {
    let idle = PLAN.replacen(
        "### 1. Make one\n\n",
        "### 1. Make one\n\n<!-- planctl: allow P111 it is fine -->\n",
        1,
    );
    let source = Source::new("plan.md", idle.as_str());
    assert_eq!(apply_fixes(&source, &verified(&idle).diagnostics, Reach::Safe).as_deref(), Some(PLAN));
    let misspelt = allowing("<!-- planctl allow P110 it is fine -->");
    let source = Source::new("plan.md", misspelt.as_str());
    let mended = apply_fixes(
        &source,
        &of(Code::P018, &verified(&misspelt)).into_iter().cloned().collect::<Vec<_>>(),
        Reach::Unsafe,
    );
    assert_eq!(mended.unwrap(), allowing("<!-- planctl: allow P110 it is fine -->"));
}

#[test]
fn levels_that_name_the_code_go_before_the_comment_and_all_warnings_do_not() {
    let text = allowing("<!-- planctl: allow P110 it is fine -->");
    let with_levels = |wishes: &[(Wish, &str)]| {
        let mut levels = Levels::default();
        wishes.iter().for_each(|(wish, name)| levels.add(*wish, name).unwrap());
        verify(&Source::new("plan.md", text.as_str()), &facts(), &levels)
    };
    let denied = with_levels(&[(Wish::Deny, "P110")]);
    assert_eq!((of(Code::P110, &denied).len(), denied.is_verified(), denied.allowed.len()), (1, false, 0));
    assert!(of(Code::P018, &denied).is_empty());
    let strict = with_levels(&[(Wish::Deny, "warnings")]);
    assert_eq!((strict.is_verified(), strict.allowed.len()), (true, 1), "{:?}", strict.diagnostics);
    let hidden = with_levels(&[(Wish::Allow, "P110")]);
    assert!(hidden.diagnostics.is_empty(), "{:?}", hidden.diagnostics);
    let idle = PLAN.replacen("## Steps\n", "## Steps\n\n<!-- planctl: allow P110 it is fine -->\n", 1);
    let mut levels = Levels::default();
    levels.add(Wish::Deny, "P018").unwrap();
    let idle = verify(&Source::new("plan.md", idle), &facts(), &levels);
    assert!(!idle.is_verified() && idle.graph.is_none());
}

#[test]
fn a_finding_of_the_surroundings_may_come_back_and_one_of_trials_is_only_missed_where_they_were_made() {
    let comment = |code: &str| {
        PLAN.replacen("## Steps\n", &format!("## Steps\n\n<!-- planctl: allow {code} not here -->\n"), 1)
    };
    assert_eq!(refused(&comment("P202")).0.level, Severity::Note);
    assert!(of(Code::P018, &verified(&comment("P107"))).is_empty());
    let tried = serde_json::json!({
        "runs": [], "timeout": { "secs": 60, "nanos": 0 }, "changed": [], "changed_count": 0,
    });
    let trial = |_| Trial::Tried(serde_json::from_value(tried.clone()).unwrap());
    let facts = Facts { trials: [1, 2].into_iter().map(|step| (step, trial(step))).collect(), ..facts() };
    let found = verify(&Source::new("plan.md", comment("P107")), &facts, &Levels::default());
    assert_eq!(of(Code::P018, &found).len(), 1, "{:?}", found.diagnostics);
}

#[test]
fn a_comment_is_part_of_the_digest_and_of_what_changed_by_meaning() {
    let bare = with("test -f one.txt", LOST);
    let text = allowing("<!-- planctl: allow P110 the first only fills the log -->");
    let (old, new) = (Source::new("plan.md", bare), Source::new("plan.md", text));
    assert_ne!(digest(&old), digest(&new));
    let changed: Vec<String> = changes(&show(&old), &show(&new)).iter().map(ToString::to_string).collect();
    assert_eq!(changed, ["step 1: allowed `` → `P110: the first only fills the log`"]);
}

#[test]
fn the_form_of_planctl_has_the_comment_below_the_heading_and_keeps_every_one() {
    let comment = "<!-- planctl: allow P110 the first only fills the log -->";
    let formatted = |text: &str| format(&Source::new("plan.md", text));
    let form = allowing(comment).replace(&format!("{comment}\n\n"), &format!("{comment}\n"));
    assert_eq!(formatted(&form), form, "it stays");
    let moved =
        with("test -f one.txt", LOST).replacen("**contract:**\n", &format!("{comment}\n**contract:**\n"), 1);
    assert_eq!(formatted(&moved), form);
    let head = PLAN.replacen("## Steps\n", &format!("{comment}\n\n## Steps\n"), 1);
    assert_eq!(formatted(&head), head);
    for text in [&form, &moved, &head] {
        crate::sound::formatted(text);
    }
}

#[test]
fn an_editor_can_write_the_comment_up_to_its_reason() {
    let text = with("test -f one.txt", LOST);
    let source = Source::new("plan.md", text.as_str());
    let found = verified(&text);
    let edit = allowing_edit(&source, &found.tree, of(Code::P110, &found)[0]).unwrap();
    let mut written = text.clone();
    written.insert_str(edit.span.start, &edit.replacement);
    let again = verified(&written);
    assert_eq!(of(Code::P018, &again)[0].message, "the plan allows `P110` and does not say why");
    let reasoned = written.replace("allow P110 -->", "allow P110 it is fine -->");
    assert_eq!(verified(&reasoned).allowed.len(), 1);
    let vacuous = with("test -f one.txt", "true");
    let found = verified(&vacuous);
    let source = Source::new("plan.md", vacuous.as_str());
    assert_eq!(allowing_edit(&source, &found.tree, of(Code::P104, &found)[0]), None, "no plan can allow it");
}

#[test]
fn a_step_that_a_worker_proposes_allows_nothing() {
    let source = Source::new("plan.md", PLAN);
    let proposal = "### Look again\n\n<!-- planctl: allow P110 trust me -->\n**target:** coder\n**task:**\nLook.\n\n\
                    **contract:**\n```shell\ntest -f three.txt\n```\nexit_code == 0\n";
    let refused = insert_step(&source, 1, proposal).unwrap_err();
    assert_eq!(refused[0].message, "a proposal can't allow what is found in it");
}
