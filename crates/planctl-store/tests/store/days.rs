//! Budgets of a day: all runs of a project or a machine share them, and work waits for the next day.

use planctl_engine::{AskKind, Budget, ClockEvent, DayScope, Event, NodeState, RunId, Usage};
use planctl_store::{DayNews, DayRaise, NextClaim, Proof, ServedRole, Store};

use crate::world::{HOST, World, evaluated, next_claim, reported, world};

/// Gives a run the budgets of a day, as its settings hold them.
pub async fn limit(world: &World, run: RunId, days: &str) {
    let settings = format!(r#"{{"day": {days}}}"#);
    let statement = "update runs set settings = $1::json where id = $2::text::uuid";
    let query = sqlx::query(statement).bind(settings).bind(run.to_string());
    query.execute(&mut world.aside().await).await.unwrap();
}

/// Says that other runs of the workspace, or of another one of its host, used this much today.
pub async fn used(world: &World, tokens: i64) {
    let statement = "select planctl_use_1(r.workspace, $1, 0) from runs r limit 1";
    sqlx::query(statement).bind(tokens).execute(&mut world.aside().await).await.unwrap();
}

pub async fn tell(store: &Store) -> Vec<DayNews> {
    let news = store.day_news(&[], 100).await.unwrap();
    for one in &news {
        store.apply(one.run, &one.event, &Proof::Clock, None).await.unwrap();
    }
    news
}

pub fn is_spent(news: &[DayNews]) -> bool {
    matches!(news, [DayNews { event: Event::Clock(ClockEvent::DaySpent { .. }), .. }])
}

pub fn allows(news: &[DayNews]) -> bool {
    matches!(news, [DayNews { event: Event::Clock(ClockEvent::DayAllows { .. }), .. }])
}

async fn held_item(store: &Store, run: RunId) -> Option<String> {
    let view = store.run_view(run).await.unwrap();
    view.records.values().find_map(|record| {
        let NodeState::Held { ask: AskKind::Day, item } = &record.state else { return None };
        Some(item.as_str().to_owned())
    })
}

#[tokio::test]
async fn p15_work_is_held_back_once_the_day_s_budget_is_used_up_and_goes_on_when_it_is_raised_for_the_day() {
    let world = world(2).await;
    let run = world.begun().await.id;
    limit(&world, run, r#"{"project": {"tokens": 1000}, "zone": "Europe/Berlin"}"#).await;
    used(&world, 999).await;
    assert!(tell(&world.store).await.is_empty());
    world.step(run, 0).await;
    used(&world, 1).await;
    assert!(world.claim(run, "w").await.is_none(), "nobody is given the work");
    assert!(world.claim(run, "w").await.is_none());
    assert!(is_spent(&tell(&world.store).await));
    assert!(tell(&world.store).await.is_empty(), "a person is asked once");
    let item = held_item(&world.store, run).await.expect("a person is asked");
    let ask = world.store.asks(Some(run), None).await.unwrap().remove(0);
    let short = ask.ask.shortfall.unwrap();
    assert_eq!((short.limit, short.spent, short.day.unwrap().of), (1000, 1000, DayScope::Project));
    let head = world.store.run(run).await.unwrap().head;
    assert!(head.clock_since.is_none(), "no time is used meanwhile");

    let by = Budget { tokens: Some(500), ..Budget::default() };
    for _ in 0..2 {
        let raise = DayRaise { run, item: &item, of: DayScope::Project, by, person: "anna", note: None };
        world.store.raise_day(raise).await.unwrap();
    }
    let day = world.store.days(&[run]).await.unwrap().remove(0).1;
    assert_eq!((day.tokens, day.limit.tokens), (1000, Some(1500)), "a repetition adds nothing");
    let open = world.store.open_days(HOST, 10).await.unwrap();
    assert_eq!(open.iter().map(|(_, of_day)| *of_day).collect::<Vec<_>>(), [day]);
    assert!(day.left().is_some_and(|left| (0.33..0.34).contains(&left)), "{:?}", day.left());
    assert!(allows(&tell(&world.store).await));
    assert!(world.claim(run, "w").await.is_some());
    world.assert_sound(run).await;
}

#[tokio::test]
async fn p15_a_raise_or_a_limit_beyond_all_counting_holds_up_no_claim_of_the_machine() {
    let world = world(1).await;
    let run = world.begun().await.id;
    let most = u64::MAX;
    limit(
        &world,
        run,
        &format!(r#"{{"project": {{"tokens": 10}}, "host": {{"tokens": {most}}}, "zone": "UTC"}}"#),
    )
    .await;
    used(&world, 10).await;
    assert!(world.claim(run, "w").await.is_none());
    assert!(is_spent(&tell(&world.store).await));
    let item = held_item(&world.store, run).await.expect("a person is asked");
    let by = Budget { tokens: Some(most), ..Budget::default() };
    for (item, of) in [(item.as_str(), DayScope::Project), ("another", DayScope::Project)] {
        let raise = DayRaise { run, item, of, by, person: "anna", note: None };
        world.store.raise_day(raise).await.unwrap();
    }
    let days = world.store.days(&[run]).await.unwrap();
    let limits: Vec<_> = days.iter().map(|(_, day)| day.limit.tokens).collect();
    assert_eq!(limits, [Some(i64::MAX as u64); 2]);
    assert!(allows(&tell(&world.store).await));
    assert!(world.claim(run, "w").await.is_some());
    world.assert_sound(run).await;
}

#[tokio::test]
async fn p15_the_next_day_in_the_named_time_zone_lets_work_go_on_by_itself() {
    let world = world(1).await;
    let run = world.begun().await.id;
    limit(&world, run, r#"{"host": {"micro_usd": 1000}, "zone": "Asia/Kathmandu"}"#).await;
    sqlx::query("select planctl_use_1(w.id, 0, 5000) from workspaces w")
        .execute(&mut world.aside().await)
        .await
        .unwrap();
    assert!(world.claim(run, "w").await.is_none());
    assert!(is_spent(&tell(&world.store).await));
    let until = world.store.days(&[run]).await.unwrap().remove(0).1.day.until;
    let here = "select to_char(to_timestamp($1) at time zone 'Asia/Kathmandu', 'HH24:MI:SS')";
    let seconds = until.as_micros() as f64 / 1e6;
    let midnight: String =
        sqlx::query_scalar(here).bind(seconds).fetch_one(&mut world.aside().await).await.unwrap();
    assert_eq!(midnight, "00:00:00");
    // As if all of it had been used the day before.
    sqlx::query("update used set quarter = quarter - interval '1 day'")
        .execute(&mut world.aside().await)
        .await
        .unwrap();
    assert!(allows(&tell(&world.store).await));
    assert!(held_item(&world.store, run).await.is_none());
    assert!(world.claim(run, "w").await.is_some());
    world.assert_sound(run).await;
}

#[tokio::test]
async fn p15_what_reports_charge_counts_for_the_day_of_the_workspace_and_a_zone_that_nobody_knows_is_utc() {
    let world = world(2).await;
    let run = world.begun().await.id;
    limit(&world, run, r#"{"project": {"tokens": 100}, "host": {"tokens": 7000}, "zone": "Nowhere/None"}"#)
        .await;
    let work = world.claim(run, "w").await.unwrap();
    let usage = Usage { output_tokens: 150, ..Usage::default() };
    assert!(world.store.note_usage(&work.item.id, work.generation, &work.token, &usage).await.unwrap());
    let next = next_claim();
    let report = reported(&work.item.at);
    let applied = world.store.apply(run, &report, &work.proof(), Some(&next)).await.unwrap();
    let days = world.store.days(&[run]).await.unwrap();
    assert_eq!(
        days.iter().map(|(_, day)| (day.day.of, day.tokens)).collect::<Vec<_>>(),
        [(DayScope::Project, 150), (DayScope::Host, 150)]
    );
    let gate = applied.claimed_next.unwrap();
    let evidence = evaluated(&gate.item.at, 0);
    let next = NextClaim { served: vec![ServedRole::Any], ..next };
    let applied = world.store.apply(run, &evidence, &gate.proof(), Some(&next)).await.unwrap();
    assert!(applied.claimed_next.is_none(), "the verdict takes no work along");
    assert!(is_spent(&tell(&world.store).await));
    world.assert_sound(run).await;
}
