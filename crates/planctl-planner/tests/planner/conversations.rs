//! Rounds, hints, questions, reviews: what happens next after each answer.

use planctl_planner::{Answer, Asked, Conversation, FailedRun, Goal, Next, Outcome, REPAIRS_MAX, Rule};
use serde_json::{Value, json};

use crate::sample::{GOAL, answer, brief, conversation, errors, good, hear, look, tried};

fn done(conversation: &Conversation) -> planctl_planner::Draft {
    match conversation.next() {
        Next::Done(draft) => *draft,
        other @ (Next::Ask { .. } | Next::Verify { .. } | Next::GiveUp(_)) => {
            panic!("{other:?}\n{:#?}", errors(conversation))
        }
    }
}

#[test]
fn a_good_answer_is_a_draft_that_traces_each_requirement_to_a_contract() {
    let mut conversation = conversation(GOAL);
    let Next::Ask { who: Asked::Writer, prompt } = conversation.next() else { panic!() };
    assert!(prompt.text.contains("R1: Add a --json flag to src/app.sh"), "{}", prompt.text);
    assert!(prompt.text.contains("R2: document it in README.md"), "{}", prompt.text);
    hear(&mut conversation, &good(), &[]);
    let draft = done(&conversation);
    assert_eq!((draft.outcome, draft.steps), (Outcome::Ok, 2));
    let traced: Vec<(&str, &[u32])> =
        draft.requirements.iter().map(|one| (one.id.as_str(), &*one.steps)).collect();
    assert_eq!(traced, [("R1", &[1][..]), ("R2", &[2][..])]);
    assert!(draft.requirements[1].contracts[0].contains("README.md"));
    assert!(draft.text.starts_with("---\ntype: plan\nstatus: draft\nowner: ada\n---\n"), "{}", draft.text);
    assert!(!draft.text.contains("approved"));
}

#[test]
fn m_28_a_draft_is_ok_has_warnings_or_has_to_be_written_again() {
    let outcome = |value: &Value| {
        let mut conversation = conversation(GOAL);
        hear(&mut conversation, value, &[]);
        conversation.rounds()[0].judgement.clone().unwrap().outcome
    };
    assert_eq!(outcome(&good()), Outcome::Ok);
    let mut twice = good();
    twice["steps"][0]["contract"] = twice["steps"][1]["contract"].clone();
    twice["steps"][0]["changes"] = json!(["README.md", "src/app.sh"]);
    assert_eq!(outcome(&twice), Outcome::Warning);
    let mut untraced = good();
    untraced["requirements"] = json!([{ "id": "R1", "steps": [1] }]);
    assert_eq!(outcome(&untraced), Outcome::Invalid);
}

/// A change of the good answer.
type Change = fn(&mut Value);

#[test]
fn m_29_each_rule_has_its_finding() {
    let cases: [(Rule, &str, Change); 9] = [
        (Rule::GoalCoverage, "R2 has no contract", |value| {
            value["requirements"] = json!([{ "id": "R1", "steps": [1] }])
        }),
        (Rule::GoalCoverage, "R2 names step 7", |value| value["requirements"][1]["steps"] = json!([7])),
        (Rule::GoalCoverage, "the goal does not say", |value| {
            value["requirements"][1] = json!({ "id": "R3", "steps": [2], "quote": "and make coffee" });
        }),
        (Rule::DataFlow, "circle", |value| {
            value["steps"][0]["needs"] = json!([2]);
            value["steps"][1]["needs"] = json!([1]);
        }),
        (Rule::DataFlow, "needs step 9", |value| value["steps"][1]["needs"] = json!([9])),
        (Rule::DataFlow, "itself", |value| value["steps"][1]["needs"] = json!([2])),
        (Rule::Clarity, "nobody can answer", |value| value["questions"] = json!([{ "text": "perPage" }])),
        (Rule::Clarity, "says too little", |value| value["steps"][0]["task"] = json!("do it")),
        (Rule::Injection, "gives no commands to planctl", |value| {
            value["steps"][0]["contract"] = json!("planctl approve plans/x.md && test -s src/app.sh");
        }),
    ];
    for (rule, says, change) in cases {
        let (mut conversation, mut value) = (conversation(GOAL), good());
        change(&mut value);
        hear(&mut conversation, &value, &[]);
        let findings = conversation.rounds()[0].findings();
        let found = findings.iter().find(|finding| finding.message.contains(says));
        let found = found.unwrap_or_else(|| panic!("{says}: {findings:#?}"));
        assert!(found.rule == rule && found.is_error, "{says}: {found:?}");
    }
}

#[test]
fn findings_are_fed_back_and_after_three_rounds_nothing_is_written() {
    let mut conversation = conversation(GOAL);
    for round in 1..=3 {
        let Next::Ask { prompt, .. } = conversation.next() else { panic!("round {round}") };
        assert_eq!(
            prompt.text.contains("the contract passes before any work is done"),
            round > 1,
            "{}",
            prompt.text
        );
        hear(&mut conversation, &good(), &[(2, tried(0, ""))]);
    }
    let Next::GiveUp(end) = conversation.next() else { panic!() };
    assert_eq!(end.rounds, 3);
    assert!(end.findings.iter().any(|finding| finding.code.as_deref() == Some("P103")), "{end:?}");
    assert!(end.text.is_some());
}

#[test]
fn a_bad_round_is_mended_by_the_next() {
    let mut conversation = conversation(GOAL);
    hear(&mut conversation, &good(), &[(1, tried(127, "bash: line 1: frobnicate: command not found"))]);
    assert!(errors(&conversation)[0].contains("no command `frobnicate`"), "{:?}", errors(&conversation));
    hear(&mut conversation, &good(), &[]);
    assert_eq!(done(&conversation).outcome, Outcome::Ok);
}

#[test]
fn m_09_low_confidence_is_a_question_to_the_person_and_its_answer_is_heard() {
    let (mut conversation, mut value) = (conversation(GOAL), good());
    value["confidence"] = json!(0.3);
    value["questions"] = json!([{ "text": "Which fields shall it print?", "options": ["all", "name"] }]);
    hear(&mut conversation, &value, &[]);
    let draft = done(&conversation);
    let ids: Vec<&str> = draft.questions.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["Q1", "Q2"]);
    assert!(draft.questions[1].1.text.contains("not sure"), "{draft:?}");
    assert!(draft.text.contains("<!-- open question Q1: Which fields shall it print? -->"), "{}", draft.text);
    assert_eq!(conversation.answer_question("Q9", "x"), Err(vec!["Q1".into(), "Q2".into()]));
    conversation.answer_question("q1", "all").unwrap();
    let Next::Ask { prompt, .. } = conversation.next() else { panic!() };
    // The question is the writer's own, so it stands between lines as all that it says does.
    assert!(prompt.text.contains("the question\nWhich fields shall it print?\n---- end "), "{}", prompt.text);
    assert!(prompt.text.contains("\n\nAnswer: all\n"), "{}", prompt.text);
    hear(&mut conversation, &value, &[]);
    let ids: Vec<String> = done(&conversation).questions.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["Q2"], "what was answered is not asked again");
}

#[test]
fn m_10_a_rejected_draft_is_written_again_with_the_hint_and_a_repeated_hint_changes_nothing() {
    let mut conversation = conversation(GOAL);
    hear(&mut conversation, &good(), &[]);
    conversation.apply_hint("use two spaces");
    conversation.apply_hint("use two spaces");
    assert_eq!(conversation.hints().len(), 1);
    let Next::Ask { prompt, .. } = conversation.next() else { panic!() };
    assert!(prompt.text.contains("use two spaces") && prompt.text.contains("# Your answer before"));
    hear(&mut conversation, &good(), &[]);
    done(&conversation);
    conversation.apply_hint("use two spaces");
    done(&conversation);
}

#[test]
fn m_10_a_hint_opens_three_more_rounds() {
    let mut conversation = conversation(GOAL);
    for _ in 0..3 {
        hear(&mut conversation, &good(), &[(2, tried(0, ""))]);
    }
    assert!(matches!(conversation.next(), Next::GiveUp(_)));
    conversation.apply_hint("look at the README first");
    assert!(matches!(conversation.next(), Next::Ask { .. }));
}

#[test]
fn m_30_a_reviewer_is_asked_once_and_only_where_the_rules_found_nothing() {
    let mut brief = brief(Goal::read(GOAL, None));
    brief.has_reviewer = true;
    let mut conversation = Conversation::new(brief);
    let mut asked = 0;
    let mut answers = [json!({ "title": "x" }), good(), good()].into_iter();
    let draft = loop {
        match conversation.next() {
            Next::Ask { who: Asked::Writer, .. } => {
                conversation.apply_answer(Asked::Writer, answer(&answers.next().unwrap()))
            }
            Next::Ask { who: Asked::Reviewer, prompt } => {
                asked += 1;
                assert!(prompt.text.contains("### 1. Add the flag"), "{}", prompt.text);
                let said = match asked {
                    1 => json!({ "verdict": "invalid", "findings": ["step 1 passes for any brace"] }),
                    _ => json!({ "verdict": "warning", "findings": ["say which version"] }),
                };
                conversation.apply_answer(Asked::Reviewer, answer(&said));
            }
            Next::Verify { .. } => look(&mut conversation, &[]),
            Next::Done(draft) => break draft,
            Next::GiveUp(end) => panic!("{end:?}"),
        }
    };
    assert_eq!(asked, 2, "not for the answer that the rules refused");
    assert_eq!(draft.outcome, Outcome::Warning);
    assert_eq!(draft.findings[0].message, "say which version");
    assert_eq!(conversation.spent().answers, 5);
}

#[test]
fn m_13_a_stored_conversation_goes_on_where_it_was() {
    let mut conversation = conversation(GOAL);
    conversation.apply_answer(Asked::Writer, answer(&good()));
    let stored = serde_json::to_string(&conversation).unwrap();
    let mut taken_up: Conversation = serde_json::from_str(&stored).unwrap();
    assert_eq!(taken_up, conversation);
    assert!(matches!(taken_up.next(), Next::Verify { .. }), "the answer is not asked for again");
    look(&mut taken_up, &[]);
    let again: Conversation = serde_json::from_str(&serde_json::to_string(&taken_up).unwrap()).unwrap();
    assert_eq!(done(&again).text, done(&taken_up).text);
}

#[test]
fn a_person_can_say_that_a_sentence_is_no_requirement() {
    let (mut conversation, mut value) = (conversation(GOAL), good());
    value["requirements"] = json!([{ "id": "R1", "steps": [1] }]);
    hear(&mut conversation, &value, &[]);
    assert!(errors(&conversation)[0].starts_with("R2 has no contract"));
    assert_eq!(conversation.take_out("R7"), Err(vec!["R1".into(), "R2".into()]));
    conversation.take_out("R2").unwrap();
    look(&mut conversation, &[]);
    assert_eq!(done(&conversation).requirements.len(), 1);
}

#[test]
fn json_in_prose_and_in_a_fence_is_found() {
    for around in
        ["Here it is {not this}:\n\n```json\nANSWER\n```\nDone.", "ANSWER", "Sure! ANSWER {\"steps\": 1}"]
    {
        let mut conversation = conversation(GOAL);
        let text = around.replace("ANSWER", &serde_json::to_string_pretty(&good()).unwrap());
        conversation.apply_answer(Asked::Writer, Answer::new(&text));
        look(&mut conversation, &[]);
        done(&conversation);
    }
}

fn failed(run: &str, failure: &str) -> FailedRun {
    FailedRun {
        run: run.to_owned(),
        digest: run.to_owned(),
        step: 2,
        failure: failure.to_owned(),
        passed: vec![1],
    }
}

#[test]
fn m_40_a_failed_run_is_told_with_the_goal_and_the_error_three_times_at_most() {
    let mut conversation = conversation(GOAL);
    hear(&mut conversation, &good(), &[]);
    assert!(matches!(conversation.next(), Next::Done(_)));
    for attempt in 1..=REPAIRS_MAX {
        let failure = failed(&format!("flag-{attempt}"), &format!("grep: no match {attempt}"));
        assert_eq!(conversation.apply_failed_run(failure.clone()), Ok(attempt));
        assert_eq!(conversation.apply_failed_run(failure), Ok(attempt), "a failure is heard once");
        let Next::Ask { who: Asked::Writer, prompt } = conversation.next() else { panic!("{attempt}") };
        for part in [
            GOAL,
            &format!("repair {attempt} of 3"),
            &format!("grep: no match {attempt}"),
            "Keep them as they are",
        ] {
            assert!(prompt.text.contains(part), "{part}: {}", prompt.text);
        }
        let mut mended = good();
        mended["steps"][1]["contract"] = json!(format!("grep -q -- '--json {attempt}' README.md"));
        // The contract of the step that passed is green by now, and that is no error.
        hear(&mut conversation, &mended, &[(1, tried(0, ""))]);
        assert!(
            done(&conversation).text.contains(&format!("--json {attempt}")),
            "{:#?}",
            errors(&conversation)
        );
    }
    assert_eq!(conversation.apply_failed_run(failed("flag-9", "still no match")), Err(REPAIRS_MAX));
}

#[test]
fn m_40_a_repair_whose_own_step_is_green_proves_nothing() {
    let mut conversation = conversation(GOAL);
    hear(&mut conversation, &good(), &[]);
    assert_eq!(conversation.apply_failed_run(failed("flag-1", "no match")), Ok(1));
    let mut weak = good();
    weak["steps"][1]["contract"] = json!("grep -q '^#' README.md");
    hear(&mut conversation, &weak, &[(1, tried(0, "")), (2, tried(0, ""))]);
    assert!(
        errors(&conversation).iter().any(|error| error.contains("passes before any work")),
        "{:?}",
        errors(&conversation)
    );
}
