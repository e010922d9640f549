//! The words and the JSON of the API, as programs that use this crate see them.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod words {
    use std::time::Duration;

    use planctl_api::wire::{BudgetView, RunState, SpentView, StepState};
    use planctl_api::words::{
        age, ago, brief, cost, run_state, safe, safe_block, span, step_state, tokens, unix_seconds,
        whole_cost,
    };

    #[test]
    fn a31_strangers_text_cannot_rewrite_the_terminal() {
        assert_eq!(safe("ok\x1b[2K\rno"), "ok\\u{1b}[2K\\rno");
        assert_eq!(safe("a\u{202e}b\u{200b}c\u{2066}"), "a\\u{202e}b\\u{200b}c\\u{2066}");
        assert_eq!(safe("ü ✅ 日本"), "ü ✅ 日本");
        assert_eq!(safe_block("a\r\n\tb\x07\rc"), "a\n\tb\\u{7}\\rc");
    }

    #[test]
    fn what_is_safe_to_show_is_what_a_plan_may_hold() {
        for code in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = code.to_string();
            assert_eq!(safe(&text), planctl_lang::escape(&text), "U+{:04X}", u32::from(code));
        }
    }

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!(span(Duration::from_millis(340)), "340ms");
        assert_eq!(span(Duration::from_millis(3_420)), "3.4s");
        assert_eq!(span(Duration::from_secs(271)), "4m31s");
        assert_eq!(span(Duration::from_secs(8_100)), "2h15m");
        assert_eq!(
            (tokens(9_999), tokens(129_400), tokens(2_500_000)),
            ("9999".into(), "129k".into(), "2.5M".into())
        );
        let budget = BudgetView { tokens: Some(200_000), usd: Some(1.5), seconds: None };
        let spent =
            SpentView { tokens: 129_000, usd: 0.6, seconds: 395.0, unmetered: 1, ..SpentView::default() };
        assert_eq!(whole_cost(&spent, &budget), "6m35s · 129k tok of 200k · $0.60 of $1.50 · 1 unmetered");
        assert_eq!(cost(&spent, &budget), "6m35s · 129k tok of 200k · $0.60 of $1.50");
        let cached = SpentView { cached_tokens: Some(90_500), unmetered: 0, ..spent };
        assert_eq!(whole_cost(&cached, &budget), "6m35s · 129k tok of 200k (90k cached) · $0.60 of $1.50");
        let estimated = |usd| cost(&SpentView { estimated_usd: Some(usd), ..spent }, &budget);
        assert_eq!(estimated(0.6), "6m35s · 129k tok of 200k · $0.60 of $1.50 (estimated)");
        assert_eq!(estimated(0.25), "6m35s · 129k tok of 200k · $0.60 of $1.50 ($0.25 estimated)");
        assert_eq!(estimated(0.0), cost(&spent, &budget));
        let guessed = |tokens| cost(&SpentView { estimated_tokens: Some(tokens), ..spent }, &budget);
        assert_eq!(guessed(129_000), "6m35s · 129k tok of 200k (estimated) · $0.60 of $1.50");
        assert_eq!(guessed(4_000), "6m35s · 129k tok of 200k (4000 estimated) · $0.60 of $1.50");
        assert_eq!(cost(&SpentView { tokens: 0, usd: 0.0, ..spent }, &budget), "6m35s");
    }

    #[test]
    fn a_time_is_said_from_now() {
        let now = unix_seconds("2026-01-03T00:00:00Z").unwrap();
        assert_eq!(ago("2026-01-02T23:55:29Z", now), "4m31s ago");
        assert_eq!(age("2025-12-01T00:00:00Z", now).as_deref(), Some("33d"));
        assert_eq!(ago("soon", now), "soon");
    }

    #[test]
    fn the_words_for_people_are_those_of_the_glossary() {
        assert_eq!(step_state(StepState::Pending), "not started");
        assert_eq!(run_state(RunState::Waiting), "waiting for you");
        assert_eq!(brief("abcdef", 4), "abc…");
    }
}

mod runs {
    use planctl_engine::Timestamp;
    use serde_json::{Map, Value};

    use planctl_api::wire::{EventLine, RunState, StepState, moment};

    #[test]
    fn states_are_written_with_the_words_of_design_11() {
        for state in RunState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for word in ["pending", "ready", "working", "checking", "resting", "waiting"] {
            assert!(serde_json::from_value::<StepState>(Value::from(word)).is_ok(), "{word}");
        }
    }

    #[test]
    fn the_data_of_an_event_stands_beside_its_fields() {
        let line = EventLine {
            run: "hello-1".into(),
            seq: 7,
            at: moment(Timestamp::from_micros(1_000_000)),
            event: "node_verified".into(),
            node: Some("1".into()),
            visit: Some(1),
            attempt: Some(2),
            cause: "harness.evaluated".into(),
            data: Map::from_iter([("verdict".to_owned(), Value::from("failed"))]),
            sentence: None,
        };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""at":"1970-01-01T00:00:01Z""#) && text.contains(r#""verdict":"failed""#));
        assert_eq!(serde_json::from_str::<EventLine>(&text).unwrap(), line);
    }
}

mod schema {
    use planctl_api::schema::{ALL, schema};

    #[test]
    fn every_name_has_its_schema() {
        for (name, _) in ALL {
            let schema = schema(name).unwrap();
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        }
        assert_eq!(schema("nothing"), None);
    }
}

mod next {
    use planctl_api::{Next, Problem};
    use serde_json::{Value, json};

    #[test]
    fn a_next_step_is_an_object_that_says_what_to_do() {
        let again = serde_json::to_value(Next::start_again("plans/a.md")).unwrap();
        assert_eq!(again, json!({"do": "start_run", "plan": "plans/a.md", "how": "again"}));
        assert_eq!(serde_json::to_value(Next::ShowRuns).unwrap(), json!({"do": "show_runs"}));
        let accept =
            Next::AcceptFiles { files: vec!["a@1".to_owned()], with: Box::new(Next::approve("a.md")) };
        let written =
            json!({"do": "accept_files", "files": ["a@1"], "with": {"do": "approve_plan", "plan": "a.md"}});
        assert_eq!(serde_json::to_value(&accept).unwrap(), written);
        assert_eq!(serde_json::from_value::<Next>(written).unwrap(), accept);
    }

    #[test]
    fn a_problem_of_a_later_version_is_read_without_the_step_that_is_not_known() {
        let problem = |next: Value| {
            let text = json!({"type": "/problems/conflict", "status": 409, "title": "t", "detail": "d", "next": next});
            serde_json::from_value::<Problem>(text).unwrap().next.map(|next| *next)
        };
        assert_eq!(problem(json!({"do": "dance"})), None);
        assert_eq!(problem(json!("planctl ls")), None);
        assert_eq!(problem(json!({"do": "list_runs"})), Some(Next::ListRuns));
    }
}
