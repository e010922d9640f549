//! One event, one transition: applied once, by one writer, under a live lease.

use planctl_engine::{
    ClockEvent, Decision, End, Event, Fact, NodeId, RunId, RunStatus, TimerId, Timestamp, Verdict,
};
use planctl_store::testing::observe_server_time;
use planctl_store::{PlanStatus, Proof, Records, Said, Settings, Store, StoreError, Token};

use crate::world::{
    HOST, World, await_locks, circular, evaluated, hold_run, human, next_claim, person, reported, world,
    world_of,
};

#[tokio::test]
async fn a_plan_of_three_steps_runs_to_its_end_with_three_commits_per_step() {
    let world = world(3).await;
    let run = world.begun().await;
    assert_eq!(run.name, "fix-auth-1");
    assert_eq!(world.store.plan(world.plan.id).await.unwrap().status, PlanStatus::InProgress);
    for _ in 0..2 {
        let applied = world.step(run.id, 0).await;
        assert_eq!(applied.head.status, RunStatus::Active);
    }
    let applied = world.step(run.id, 0).await;
    assert_eq!(applied.head.status, RunStatus::Ended { end: End::Done });
    let view = world.store.run_view(run.id).await.unwrap();
    assert_eq!(view.run.seq, applied.seq);
    assert!(view.items.is_empty(), "closed items leave the queue: {:?}", view.items);
    assert!(view.run.ended_at.is_some() && view.run.started_at.is_some());
    assert_eq!(world.store.plan(world.plan.id).await.unwrap().status, PlanStatus::Done);
    let moves: Vec<_> = world
        .store
        .plan_moves(world.plan.id)
        .await
        .unwrap()
        .into_iter()
        .map(|moved| moved.to.as_str())
        .collect();
    assert_eq!(moves, ["verified", "approved", "in-progress", "done"]);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn what_follows_before_a_node_is_entered_again_is_of_the_visit_before() {
    let world = world_of(circular()).await;
    let run = world.begun().await;
    world.step(run.id, 1).await;
    world.step(run.id, 1).await;
    world.step(run.id, 0).await;
    let lines = world.store.history(run.id, 0, 100).await.unwrap();
    let told = lines.iter().filter(|line| line.node == Some(NodeId::from("1")));
    let told: Vec<_> = told
        .filter(|line| ["node_entered", "node_verified", "node_settled"].contains(&line.name.as_str()))
        .map(|line| (line.name.as_str(), line.visit, line.attempt))
        .collect();
    assert_eq!(
        told,
        [
            ("node_entered", Some(1), Some(1)),
            ("node_verified", Some(1), Some(1)),
            ("node_verified", Some(1), Some(2)),
            ("node_settled", Some(1), Some(2)),
            ("node_entered", Some(2), Some(3)),
            ("node_verified", Some(2), Some(3)),
            ("node_settled", Some(2), Some(3)),
        ]
    );
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_failed_gate_begins_the_next_attempt_and_the_last_one_asks_a_person() {
    let world = world(1).await;
    let run = world.begun().await;
    let applied = world.step(run.id, 1).await;
    assert!(
        applied.facts.iter().any(|fact| matches!(fact, Fact::RetryTriggered { .. })),
        "{:?}",
        applied.facts
    );
    let applied = world.step(run.id, 1).await;
    assert!(applied.facts.iter().any(|fact| matches!(fact, Fact::AskOpened { .. })), "{:?}", applied.facts);
    let asks = world.store.asks(Some(run.id), None).await.unwrap();
    assert_eq!(asks.len(), 1);
    assert!(asks[0].number > 0 && asks[0].is_open);
    assert!(asks[0].ask.failure.is_some(), "the person is told what failed");
    assert_eq!(world.store.ask(asks[0].number).await.unwrap().item, asks[0].item);
    let answer =
        human(Decision::Answer { item: asks[0].item.clone(), answer: planctl_engine::Answer::Waive });
    world.store.apply(run.id, &answer, &person(None), None).await.unwrap();
    assert!(!world.store.ask(asks[0].number).await.unwrap().is_open);
    assert!(world.store.asks(None, None).await.unwrap().is_empty());
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_repeated_report_changes_nothing_and_a_late_one_is_kept_as_a_note() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let event = reported(&work.item.at);
    let first = world.store.apply(run.id, &event, &work.proof(), None).await.unwrap();
    let again = world.store.apply(run.id, &event, &work.proof(), None).await.unwrap();
    assert!(!first.duplicate && again.duplicate);
    assert_eq!((first.seq, &first.facts), (again.seq, &again.facts));
    assert!(again.claimed_next.is_none());
    // Something else under the same lease is not a repetition.
    let late = world.store.apply(run.id, &crate::world::released(&work.item.at), &work.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    let refusals = world.store.refusals(run.id).await.unwrap();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].name, "agent.released");
    assert_eq!(world.store.run(run.id).await.unwrap().seq, first.seq);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p4_a_token_of_another_lease_changes_nothing() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let seq = world.store.run(run.id).await.unwrap().seq;
    let forged = Token::parse(&"ab".repeat(32)).unwrap();
    let other = [
        Proof::Lease { item: work.item.id.clone(), generation: work.generation, token: forged },
        Proof::Lease {
            item: work.item.id.clone(),
            generation: work.generation + 1,
            token: work.token.clone(),
        },
    ];
    for proof in other {
        let outcome = world.store.apply(run.id, &reported(&work.item.at), &proof, None).await;
        assert!(matches!(outcome, Err(StoreError::StaleLease)), "{outcome:?}");
    }
    assert_eq!(world.store.run(run.id).await.unwrap().seq, seq);
    assert_eq!(world.store.refusals(run.id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn p28_an_agents_lease_does_not_carry_a_verdict() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let verdict = evaluated(&work.item.at, 0);
    let outcome = world.store.apply(run.id, &verdict, &work.proof(), None).await;
    assert!(matches!(outcome, Err(StoreError::Misproved { event: "harness.evaluated" })), "{outcome:?}");
    for proof in [Proof::Clock, Proof::Submit, person(None)] {
        let outcome = world.store.apply(run.id, &verdict, &proof, None).await;
        assert!(matches!(outcome, Err(StoreError::Misproved { .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn p1_of_eight_writers_of_one_event_one_is_heard() {
    let world = world(2).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    let (event, proof) = (evaluated(&gate.item.at, 0), gate.proof());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, event, proof) = (world.store.clone(), event.clone(), proof.clone());
        calls.spawn(async move { store.apply(run.id, &event, &proof, None).await });
    }
    let outcomes = calls.join_all().await;
    let first =
        outcomes.iter().filter(|outcome| outcome.as_ref().is_ok_and(|applied| !applied.duplicate)).count();
    assert_eq!(first, 1, "{outcomes:?}");
    assert!(outcomes.iter().all(Result::is_ok), "the others are told what the first was told: {outcomes:?}");
    let verdicts = world.store.history(run.id, 0, 1000).await.unwrap();
    assert_eq!(verdicts.iter().filter(|line| line.name == "node_verified").count(), 1);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p8_writers_of_different_events_take_turns_and_none_is_lost() {
    for is_verdict_first in [true, false] {
        let world = world(2).await;
        let run = world.begun().await.id;
        let gate = world.gate(run).await;
        let settings = Settings { notifies: false, ..Settings::default() };
        let other = Store::connect(world.database.connect_options(), settings).await.unwrap();
        let mut writers = [
            (world.store.clone(), evaluated(&gate.item.at, 0), gate.proof()),
            (other, human(Decision::Cancel), person(None)),
        ];
        if !is_verdict_first {
            writers.reverse();
        }
        // Both are decided on the same state and wait to write it, each in a process of its own.
        let (mut holder, mut aside) = (world.aside().await, world.aside().await);
        let held = hold_run(&mut holder, run).await;
        let mut writing = Vec::new();
        for (store, event, proof) in writers {
            writing.push(tokio::spawn(async move { store.apply(run, &event, &proof, None).await }));
            await_locks(&mut aside, writing.len() as i64).await;
        }
        held.rollback().await.unwrap();
        let mut written = Vec::new();
        for one in writing {
            written.push(one.await.unwrap());
        }
        if !is_verdict_first {
            written.reverse();
        }
        let (cancel, verdict) = (written.pop().unwrap(), written.pop().unwrap());
        assert!(cancel.is_ok(), "{cancel:?}");
        let lines = world.store.history(run, 0, 1000).await.unwrap();
        let is_told = lines.iter().any(|line| line.name == "node_verified");
        match verdict {
            Ok(applied) => assert!(is_told && !applied.duplicate, "{lines:?}"),
            Err(StoreError::StaleLease | StoreError::Refused(_)) => assert!(!is_told, "{lines:?}"),
            Err(error) => panic!("{error:?}"),
        }
        let view = world.store.run_view(run).await.unwrap();
        assert_eq!(view.run.head.status, RunStatus::Ended { end: End::Cancelled });
        assert!(view.items.is_empty());
        world.assert_sound(run).await;
    }
}

#[tokio::test]
async fn p16_after_a_cancellation_no_verdict_is_recorded() {
    let world = world(1).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    world.store.apply(run.id, &human(Decision::Cancel), &person(None), None).await.unwrap();
    let late = world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    assert_eq!(
        world.store.renew(&gate, next_claim().lease).await.unwrap(),
        planctl_store::Renewal::Cancelled
    );
    let lines = world.store.history(run.id, 0, 1000).await.unwrap();
    assert!(lines.iter().all(|line| line.name != "node_verified"));
    assert_eq!(world.store.plan(world.plan.id).await.unwrap().status, PlanStatus::Failed);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p14_a_persons_key_gives_the_stored_answer_and_refuses_another_command() {
    let world = world(1).await;
    let run = world.new_run().await;
    world.submit(run.id).await;
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    let approve = world.approval(&ask.item);
    let first = world.store.apply(run.id, &approve, &person(Some("k1")), None).await.unwrap();
    let again = world.store.apply(run.id, &approve, &person(Some("k1")), None).await.unwrap();
    assert!(again.duplicate);
    assert_eq!((first.seq, first.facts), (again.seq, again.facts));
    let other = world.store.apply(run.id, &human(Decision::Cancel), &person(Some("k1")), None).await;
    assert!(matches!(&other, Err(StoreError::KeyReused { key }) if key == "k1"), "{other:?}");
    // Without the key, the same answer to an answered ask is refused and changes nothing.
    let bare = world.store.apply(run.id, &approve, &person(None), None).await;
    assert!(matches!(bare, Err(StoreError::Refused(_))), "{bare:?}");
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p14_one_key_from_two_doors_at_once_decides_once() {
    let world = world(1).await;
    let run = world.new_run().await;
    world.submit(run.id).await;
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    let approve = world.approval(&ask.item);
    let proof = person(Some("both"));
    let (one, two) = tokio::join!(
        world.store.apply(run.id, &approve, &proof, None),
        world.store.apply(run.id, &approve, &proof, None),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.duplicate != two.duplicate, "{one:?} {two:?}");
    assert_eq!(one.seq, two.seq);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_second_run_of_a_workspace_waits_and_is_told_for_whom() {
    let world = world(1).await;
    let first = world.begun().await;
    let second = world.queued().await;
    let busy = world.admit(second.id).await;
    assert!(matches!(&busy, Err(StoreError::WorkspaceBusy { run }) if *run == first.name), "{busy:?}");
    let waiting = world.store.queued_runs(HOST, 1).await.unwrap();
    assert_eq!(waiting.iter().flatten().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["fix-auth-2"]);
    let elsewhere = world.store.queued_runs("host-b", 10).await.unwrap();
    assert!(elsewhere.is_empty(), "b10.11: those of one host are in the way of no other");
    world.step(first.id, 0).await;
    world.admit(second.id).await.unwrap();
    world.assert_sound(first.id).await;
    world.assert_sound(second.id).await;
}

async fn ahead_of(world: &World, run: RunId) -> Option<String> {
    world.store.waits_for(run).await.unwrap().map(|ahead| ahead.run)
}

#[tokio::test]
async fn runs_have_a_workspace_in_the_order_in_which_they_were_queued() {
    let world = world(1).await;
    let first = world.begun().await;
    let (second, third) = (world.queued().await, world.queued().await);
    let busy = async |run: planctl_engine::RunId| match world.store.admit_run(run).await {
        Err(StoreError::WorkspaceBusy { run }) => run,
        other => panic!("it was to wait: {other:?}"),
    };
    // All wait for the one that has it; the newer came back first.
    assert_eq!((busy(third.id).await, busy(second.id).await), (first.name.clone(), first.name.clone()));
    world.step(first.id, 0).await;
    assert_eq!(ahead_of(&world, third.id).await, Some(second.name.clone()));
    assert_eq!(busy(third.id).await, second.name, "it was not its turn");
    assert_eq!(ahead_of(&world, second.id).await, None);
    world.store.admit_run(second.id).await.unwrap();
    assert_eq!(busy(third.id).await, second.name);
    let again = world.store.admit_run(second.id).await;
    assert!(matches!(again, Err(StoreError::WorkspaceBusy { .. } | StoreError::Refused(_))), "{again:?}");
    world.assert_sound(second.id).await;
}

#[tokio::test]
async fn a_queued_run_goes_by_its_class_and_is_passed_over_where_nobody_waits_with_it() {
    let world = world(1).await;
    let (first, second) = (world.queued().await, world.queued().await);
    let mut aside = world.aside().await;
    let wanted: Option<bool> = sqlx::query_scalar("select bool_and(turn_at is not null) from runs")
        .fetch_one(&mut aside)
        .await
        .unwrap();
    assert_eq!(wanted, Some(true));
    // The first is of a low class: ten minutes after its turn.
    let low = "update runs set turn_at = turn_at + interval '10 minutes', wanted_at = clock_timestamp() where id = $1";
    let id = sqlx::types::Uuid::from_u128(first.id.as_u128());
    sqlx::query(low).bind(id).execute(&mut aside).await.unwrap();
    assert_eq!(ahead_of(&world, first.id).await, None, "nobody waits with the second yet");
    let ahead = "update runs set turn_at = turn_at - interval '20 minutes' where id = $1";
    sqlx::query(ahead).bind(id).execute(&mut aside).await.unwrap();
    assert_eq!(ahead_of(&world, second.id).await, Some(first.name.clone()));
    let left = "update runs set wanted_at = clock_timestamp() - interval '16 seconds' where id = $1";
    sqlx::query(left).bind(id).execute(&mut aside).await.unwrap();
    world.store.admit_run(second.id).await.unwrap();
    let busy = world.store.admit_run(first.id).await;
    assert!(matches!(&busy, Err(StoreError::WorkspaceBusy { run }) if *run == second.name), "{busy:?}");
}

#[tokio::test]
async fn of_two_runs_that_want_a_workspace_at_once_one_has_it() {
    let world = world(1).await;
    let one = world.queued().await;
    let two = world.queued().await;
    let (first, second) = tokio::join!(world.admit(one.id), world.admit(two.id));
    let admitted = [&first, &second].into_iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(admitted, 1, "{first:?} {second:?}");
    let busy = [first, second].into_iter().find_map(Result::err).unwrap();
    assert!(matches!(busy, StoreError::WorkspaceBusy { .. }), "{busy:?}");
}

#[tokio::test]
async fn a_timer_fires_only_when_it_is_due() {
    let world = world(1).await;
    let run = world.begun().await;
    let due = Event::Clock(ClockEvent::Due { timer: TimerId::Stale });
    let early = world.store.apply(run.id, &due, &Proof::Clock, None).await;
    assert!(matches!(early, Err(StoreError::Refused(_))), "{early:?}");
    assert!(world.store.due_timers(&[], 10).await.unwrap().is_empty());
    let mut aside = world.aside().await;
    sqlx::query("update timers set at = clock_timestamp() - interval '1 second'")
        .execute(&mut aside)
        .await
        .unwrap();
    let timers = world.store.due_timers(&[], 10).await.unwrap();
    let [Ok(timer)] = &timers[..] else { panic!("one timer is due: {timers:?}") };
    assert_eq!(timer.run, run.id);
    world.store.apply(run.id, &timer.event(), &Proof::Clock, None).await.unwrap();
    assert!(
        world.store.due_timers(&[], 10).await.unwrap().is_empty(),
        "the timer is armed anew, from the last movement"
    );
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn history_names_what_arrived_and_what_followed() {
    let world = world(1).await;
    let run = world.begun().await;
    world.step(run.id, 0).await;
    let lines = world.store.history(run.id, 0, 1000).await.unwrap();
    let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names[0], "human.submitted");
    assert!(lines.iter().enumerate().all(|(at, line)| usize::try_from(line.seq).unwrap() == at + 1));
    let verified = lines.iter().find(|line| line.name == "node_verified").unwrap();
    assert_eq!(verified.cause, "harness.evaluated");
    assert_eq!(
        (verified.node.as_ref().unwrap().as_str(), verified.visit, verified.attempt),
        ("1", Some(1), Some(1))
    );
    let Said::Fact(fact) = &verified.said else { panic!("a verdict is a fact") };
    assert!(matches!(**fact, Fact::NodeVerified { verdict: Verdict::Passed, .. }));
    let from_middle = world.store.history(run.id, 3, 2).await.unwrap();
    assert_eq!(from_middle.iter().map(|line| line.seq).collect::<Vec<_>>(), [4, 5]);
}

#[tokio::test]
async fn a_nul_in_what_a_worker_prints_is_stored() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let mut event = reported(&work.item.at);
    if let Event::Agent(agent) = &mut event
        && let planctl_engine::AgentSaid::Reported(report) = &mut agent.said
    {
        report.text.tail = "before\0after \u{fffd} \u{1f600}".to_owned();
    }
    world.store.apply(run.id, &event, &work.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p8_what_a_process_remembers_of_a_run_gives_way_to_what_another_wrote() {
    let world = world(6).await;
    let run = world.begun().await;
    let settings = Settings { notifies: false, ..Settings::default() };
    let other = Store::connect(world.database.connect_options(), settings).await.unwrap();
    let mut doors = [&world.store, &other].into_iter().cycle();
    for step in 0..6 {
        // Each door writes twice of three times, so that it remembers now the newest state and now an older one.
        if step % 3 == 0 {
            doors.next();
        }
        let work = world.claim(run.id, "me").await.unwrap();
        let door = doors.next().unwrap();
        let applied =
            door.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await.unwrap();
        let gate = applied.claimed_next.expect("the gate was claimed with the report");
        let door = doors.next().unwrap();
        let verdict = evaluated(&gate.item.at, i32::from(step == 4));
        let applied = door.apply(run.id, &verdict, &gate.proof(), None).await.unwrap();
        assert!(!applied.duplicate);
        // A run that is over stays over for a store whose cache says otherwise.
        let late = other.apply(run.id, &verdict, &gate.proof(), None).await.unwrap();
        assert!(late.duplicate && late.seq == applied.seq, "{late:?}");
    }
    let applied = world.step(run.id, 0).await;
    assert_eq!(applied.head.status, RunStatus::Ended { end: End::Done });
    assert!(world.store.refusals(run.id).await.unwrap().is_empty());
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p13_a_time_of_the_database_that_was_misremembered_is_noticed() {
    let world = world(3).await;
    let run = world.begun().await;
    world.step(run.id, 0).await;
    for wrong_by in [3_600_000_000, -3_600_000_000] {
        let work = world.claim(run.id, "me").await.unwrap();
        let now = world.store.now().await.unwrap();
        observe_server_time(&world.store, Timestamp::from_micros(now.as_micros() + wrong_by));
        let applied = world
            .store
            .apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim()))
            .await
            .unwrap();
        let line = world.store.history(run.id, applied.seq - 1, 1).await.unwrap().remove(0);
        assert!((line.at.as_micros() - now.as_micros()).abs() < 60_000_000, "{now:?} {line:?}");
        let gate = applied.claimed_next.unwrap();
        world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    }
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn several_runs_are_read_at_once_each_as_it_is_alone_and_in_the_order_given() {
    let world = world(2).await;
    let one = world.begun().await;
    world.step(one.id, 0).await;
    let two = world.begun_at("/two", &crate::world::linear(1)).await;
    let rows =
        || async { vec![world.store.run(two.id).await.unwrap(), world.store.run(one.id).await.unwrap()] };
    let all = world.store.run_views(rows().await, Records::All).await.unwrap();
    for (view, run) in all.iter().zip([two.id, one.id]) {
        let (view, alone) = (view.as_ref().unwrap(), world.store.run_view(run).await.unwrap());
        assert_eq!((view.run.id, &view.records, &view.items), (run, &alone.records, &alone.items));
    }
    let open = world.store.run_views(rows().await, Records::Open).await.unwrap();
    let open = open[1].as_ref().unwrap();
    assert_eq!(open.records.keys().map(NodeId::as_str).collect::<Vec<_>>(), ["2"], "the others passed");
    assert_eq!(open.items, all[1].as_ref().unwrap().items);
}
