//! Goals in pieces: by strategy, down to one piece of work each, and the graph that traces them.

use planctl_planner::{
    Answer, Breakdown, Considered, Decomposition, IntentGraph, IntentKind, NextPiece, Relation, Signal,
    Strategy, Tool, question_of, topic,
};
use serde_json::{Value, json};

fn tools() -> Vec<Tool> {
    let tool = |name: &str, parameters: &[&str]| Tool {
        name: name.to_owned(),
        about: format!("Does {name}."),
        parameters: parameters.iter().map(|one| (*one).to_owned()).collect(),
    };
    vec![
        tool("github.list_issues", &["owner", "repo", "perPage", "state"]),
        tool("github.close_issue", &["number"]),
        tool("github.list_issue_types", &[]),
    ]
}

fn begin(goal: &str, strategy: Strategy, tools: &[Tool]) -> Breakdown {
    Breakdown::new(goal, strategy, tools, true, "key")
}

fn done(breakdown: &Breakdown) -> Decomposition {
    match breakdown.next() {
        NextPiece::Done(pieces) => pieces,
        other @ (NextPiece::Ask(_)
        | NextPiece::Deferred(..)
        | NextPiece::TooDeep(_)
        | NextPiece::Unreadable(_)) => panic!("{other:?}"),
    }
}

fn prompt(breakdown: &Breakdown) -> String {
    let NextPiece::Ask(prompt) = breakdown.next() else { panic!("{:?}", breakdown.next()) };
    prompt.to_text()
}

fn answer(intents: &Value) -> Answer {
    Answer::new(&json!({ "title": "x", "confidence": 0.8, "intents": intents }).to_string())
}

#[test]
fn m_01_a_listing_is_a_pattern_s_with_confidence_0_9() {
    let breakdown = begin("list issues in owner/repo", Strategy::Pattern, &[]);
    let pieces = done(&breakdown);
    assert_eq!((pieces.strategy, pieces.confidence), (Strategy::Pattern, 0.9));
    assert_eq!(pieces.intents.len(), 1);
    assert_eq!(done(&breakdown), pieces, "deterministic");
}

#[test]
fn m_02_signs_of_complexity_defer() {
    for (goal, sign) in [
        ("list issues and filter per X asked to user", Signal::UserInteraction),
        ("list issues and sort and show them", Signal::SeveralClauses),
        ("list issues then show them", Signal::TimeOrder),
    ] {
        let NextPiece::Deferred(signs, _) = begin(goal, Strategy::Pattern, &[]).next() else {
            panic!("{goal}")
        };
        assert!(signs.contains(&sign), "{goal}: {signs:?}");
    }
}

#[test]
fn m_03_a_listing_that_asks_is_a_question_and_what_needs_it() {
    let pieces =
        done(&begin("list issues in owner/repo but ask me for the page size first", Strategy::Pattern, &[]));
    assert_eq!(pieces.intents[0].kind, IntentKind::Ask);
    assert_eq!(pieces.intents[0].topic.as_deref(), Some("page size"));
    assert_eq!(
        (pieces.intents[1].text.as_str(), &*pieces.intents[1].needs),
        ("list issues in owner/repo", &["I1".to_owned()][..])
    );
}

#[test]
fn m_04_a_clause_that_is_left_over_defers() {
    for goal in [
        "list issues in owner/repo quickly",
        "list issues in owner/repo and close them",
        "list issues in owner",
        "list issues but ask me for the page size and the state",
        "list",
        "list all of the issues that anybody ever wrote",
    ] {
        assert!(matches!(begin(goal, Strategy::Pattern, &[]).next(), NextPiece::Deferred(..)), "{goal}");
    }
}

#[test]
fn m_05_intents_first_shows_the_writer_no_tool() {
    let asked = prompt(&begin("close stale issues", Strategy::IntentFirst, &tools()));
    assert!(!asked.contains("github") && !asked.contains("perPage"), "{asked}");
}

#[test]
fn m_06_grounded_shows_the_tools_of_the_beginning_with_their_parameters() {
    let mut known = tools();
    let breakdown = begin("close stale issues", Strategy::Grounded, &known);
    known.push(Tool { name: "late.tool".into(), about: String::new(), parameters: Vec::new() });
    let asked = prompt(&breakdown);
    assert!(asked.contains("github.list_issues(owner, repo, perPage, state)"), "{asked}");
    assert!(!asked.contains("late.tool"));
    let mut invented = breakdown;
    invented.take_answer(answer(&json!([{ "id": "a", "text": "close them", "tool": "github.burn" }])));
    assert!(prompt(&invented).contains("there is no tool `github.burn`"));
}

#[test]
fn m_07_hybrid_takes_a_pattern_then_tools_then_intents() {
    let why = |goal: &str, tools: &[Tool]| {
        let considered = begin(goal, Strategy::Hybrid, tools).considered();
        considered.into_iter().map(|Considered { strategy, .. }| strategy).collect::<Vec<_>>()
    };
    assert_eq!(why("list issues in owner/repo", &tools()), [Strategy::Pattern]);
    assert_eq!(why("close stale issues", &tools()), [Strategy::Pattern, Strategy::Grounded]);
    assert_eq!(
        why("close stale issues", &[]),
        [Strategy::Pattern, Strategy::Grounded, Strategy::IntentFirst]
    );
    let alone = Breakdown::new("close stale issues", Strategy::Hybrid, &[], false, "key");
    assert!(matches!(alone.next(), NextPiece::Deferred(..)));
}

#[test]
fn m_08_a_coarse_piece_is_broken_up_and_only_so_deep() {
    let mut breakdown = begin("tidy up", Strategy::Grounded, &tools());
    breakdown.take_answer(answer(&json!([{ "id": "a", "text": "list and close the issues" }, { "id": "b", "text": "report", "needs": ["a"] }])));
    let asked = prompt(&breakdown);
    assert!(asked.contains("Break up this piece") && asked.contains("list and close the issues"), "{asked}");
    breakdown.take_answer(answer(&json!([{ "id": "x", "text": "list issues" }, { "id": "y", "text": "close each issue", "needs": ["x"] }])));
    let pieces = done(&breakdown);
    let ids: Vec<&str> = pieces.intents.iter().map(|intent| intent.id.as_str()).collect();
    assert_eq!(ids, ["I1", "I1.1", "I1.2", "I2"]);
    assert_eq!(pieces.intents[2].needs, ["I1.1"]);
    let mut endless = begin("tidy up", Strategy::IntentFirst, &[]);
    let coarse = answer(&json!([{ "id": "a", "text": "tidy up", "coarse": true }]));
    for _ in 0..3 {
        endless.take_answer(coarse.clone());
    }
    assert!(
        matches!(endless.next(), NextPiece::TooDeep(intent) if intent.id == "I1.1.1"),
        "{:?}",
        endless.next()
    );
}

#[test]
fn m_11_each_intent_leads_back_to_the_goal() {
    let mut breakdown = begin("tidy up", Strategy::Grounded, &tools());
    breakdown.take_answer(answer(&json!([{ "id": "a", "text": "list and close the issues" }, { "id": "b", "text": "report", "needs": ["a"] }])));
    breakdown.take_answer(answer(&json!([{ "id": "x", "text": "list issues" }, { "id": "y", "text": "close each issue", "needs": ["x"] }])));
    let graph = IntentGraph::of("tidy up", &done(&breakdown).intents);
    let of = |kind: Relation| {
        let edges = graph.edges.iter().filter(|edge| edge.kind == kind);
        edges.map(|edge| format!("{} {}", edge.from, edge.to)).collect::<Vec<_>>()
    };
    assert_eq!(of(Relation::IsSubgoalOf), ["I1 G", "I1.1 I1", "I1.2 I1", "I2 G"]);
    assert_eq!(of(Relation::DependsOn), ["I1.2 I1.1", "I2 I1"]);
    let trace: Vec<&str> = graph.trace("I1.2").iter().map(|intent| intent.text.as_str()).collect();
    assert_eq!(trace, ["close each issue", "list and close the issues"]);
}

#[test]
fn an_answer_that_can_t_be_read_is_asked_for_three_times() {
    let mut breakdown = begin("tidy up", Strategy::IntentFirst, &[]);
    for text in [
        "no",
        "{\"title\": 1, \"intents\": 3}",
        "{\"title\": \"x\", \"intents\": [{\"id\": \"a\", \"text\": \"b\", \"needs\": [\"a\"]}]}",
    ] {
        assert!(matches!(breakdown.next(), NextPiece::Ask(_)));
        breakdown.take_answer(Answer::new(text));
    }
    assert!(matches!(breakdown.next(), NextPiece::Unreadable(faults) if faults[0].contains("not before it")));
}

#[test]
fn m_31_parameters_are_asked_for_in_words() {
    assert_eq!(question_of("perPage"), "How many items per page? (e.g., 10, 25, 50)");
    assert_eq!(question_of("state"), "Issue state: open, closed, or all?");
    assert_eq!(question_of("labels"), "Labels to filter by (comma-separated, e.g., bug, enhancement)");
    assert_eq!(question_of("assignee"), "Assignee username (or 'none' for unassigned)");
    assert_eq!(question_of("sortOrder"), "Sort order?");
}

#[test]
fn m_32_fillers_say_nothing_of_a_topic() {
    assert_eq!(topic("please the page size first"), "page size");
}
