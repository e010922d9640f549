//! Claims, leases and what runs out.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_engine::{ClockEvent, Event, Fact, NodeId, Role, Work};
use planctl_store::{
    Claim, ClaimLane, Holder, Leased, NewRun, News, NextClaim, Proof, Renewal, ServedRole, StoreError, Token,
};

use crate::world::{await_lock, evaluated, holder, next_claim, person, released, reported, world};

const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn p4_eight_claimers_never_get_the_same_item() {
    let world = world(1).await;
    let mut aside = world.aside().await;
    let run = world.begun().await;
    // Forty items of one run beside the one that the engine made.
    sqlx::query(
        "insert into items select id || '.' || n, run, node, visit, attempt, lane, target, state, work, available_at, \
         due_at, span_micros, generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, \
         created_at from items, generate_series(1, 40) n where lane = 'agent'",
    )
    .execute(&mut aside)
    .await
    .unwrap();
    let mut claimers = tokio::task::JoinSet::new();
    for at in 0..8 {
        let store = world.store.clone();
        let claim = Claim {
            lane: ClaimLane::Agent(vec![Role::new("coder"), Role::new("reviewer")]),
            run: (at % 2 == 0).then_some(run.id),
            except: Vec::new(),
            holder: holder(&format!("w{at}")),
            lease: SOON,
        };
        claimers.spawn(async move {
            let mut mine = Vec::new();
            // A claim may pass an item over that another claimer is just looking at, so an empty answer is tried again.
            let mut empty = 0;
            while empty < 5 {
                match store.claim(&claim).await.unwrap() {
                    Some(claimed) => mine.push(claimed.item.id.as_str().to_owned()),
                    None => empty += 1,
                }
            }
            mine
        });
    }
    let all: Vec<String> = claimers.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (41, 41));
}

#[tokio::test]
async fn a_claim_takes_only_its_roles_its_lane_and_its_host() {
    let world = world(1).await;
    let run = world.begun().await;
    let claim = |lane, holder| Claim { lane, run: None, except: Vec::new(), holder, lease: SOON };
    let reviewer = claim(ClaimLane::Agent(vec![Role::new("reviewer")]), holder("a"));
    assert!(world.store.claim(&reviewer).await.unwrap().is_none());
    let gate = claim(ClaimLane::Gate, holder("a"));
    assert!(world.store.claim(&gate).await.unwrap().is_none());
    let coder = claim(ClaimLane::Agent(vec![Role::new("coder")]), holder("a"));
    let work = world.store.claim(&coder).await.unwrap().unwrap();
    assert_eq!((work.run_name.as_str(), work.workspace.as_str()), ("fix-auth-1", "/somewhere"));
    // Somebody else's host has no workspace for the gate, so it stays in its lane.
    let elsewhere = NextClaim {
        served: Vec::new(),
        holder: Holder { host: "host-b".to_owned(), ..holder("a") },
        lease: SOON,
    };
    let applied =
        world.store.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&elsewhere)).await.unwrap();
    assert!(applied.claimed_next.is_none());
    let foreign = claim(ClaimLane::Gate, elsewhere.holder);
    assert!(world.store.claim(&foreign).await.unwrap().is_none());
    let gate = world.store.claim(&gate).await.unwrap().unwrap();
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_gate_that_is_taken_along_is_leased_in_the_same_transaction() {
    let world = world(1).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    let view = world.store.run_view(run.id).await.unwrap();
    assert!(view.items[0].is_leased && view.items[0].id == gate.item.id);
    assert!(matches!(world.store.renew(&gate, SOON).await.unwrap(), Renewal::Held { is_over: false, .. }));
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_given_back_item_is_ready_at_once_under_another_generation() {
    let world = world(1).await;
    let run = world.begun().await;
    let first = world.claim(run.id, "one").await.unwrap();
    assert!(world.claim(run.id, "two").await.is_none(), "one holder at a time");
    let applied = world.store.apply(run.id, &released(&first.item.at), &first.proof(), None).await.unwrap();
    assert!(
        applied.facts.iter().any(|fact| matches!(fact, Fact::NodeInterrupted { .. })),
        "{:?}",
        applied.facts
    );
    let second = world.claim(run.id, "two").await.expect("it is ready again");
    assert_eq!(second.item.id, first.item.id);
    assert!(second.generation > first.generation);
    assert_eq!(world.store.renew(&first, SOON).await.unwrap(), Renewal::Lost);
    let late = world.store.apply(run.id, &reported(&first.item.at), &first.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    world.store.apply(run.id, &reported(&second.item.at), &second.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p5_a_swept_lease_refuses_the_late_report() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim_for(run.id, "gone", Duration::ZERO).await.unwrap();
    let [Ok(expired)] = &world.store.expired(&[], 10).await.unwrap()[..] else { panic!("one lease is over") };
    assert_eq!((&expired.item, expired.own), (&work.item.id, true));
    world.store.apply(run.id, &expired.event(), &expired.proof(), None).await.unwrap();
    let late = world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    assert_eq!(world.store.refusals(run.id).await.unwrap().len(), 1, "the late report is kept as a note");
    assert!(world.claim(run.id, "next").await.is_some());
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p5_a_report_before_the_sweep_counts_and_the_sweep_then_changes_nothing() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim_for(run.id, "slow", Duration::ZERO).await.unwrap();
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    let swept = world.store.apply(run.id, &expired.event(), &expired.proof(), None).await;
    assert!(matches!(swept, Err(StoreError::StaleLease)), "{swept:?}");
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_renewed_lease_is_not_swept() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim_for(run.id, "late", Duration::ZERO).await.unwrap();
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    assert!(matches!(world.store.renew(&work, SOON).await.unwrap(), Renewal::Held { .. }));
    let swept = world.store.apply(run.id, &expired.event(), &expired.proof(), None).await;
    assert!(matches!(swept, Err(StoreError::StaleLease)), "{swept:?}");
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_dead_instance_loses_its_leases_at_once_as_interruptions() {
    let world = world(1).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    assert!(world.store.expired(&[], 10).await.unwrap().is_empty());
    assert_eq!(world.store.holders("host-a").await.unwrap(), [("boot".to_owned(), "me".to_owned())]);
    let held = world.store.leases_of_dead_instance("host-a", "me", &[]).await.unwrap();
    let [Ok(held)] = &held[..] else { panic!("one lease is held: {held:?}") };
    assert_eq!(held.item, gate.item.id);
    let applied = world.store.apply(run.id, &held.event(), &held.proof(), None).await.unwrap();
    assert!(
        applied
            .facts
            .iter()
            .any(|fact| matches!(fact, Fact::NodeInterrupted { .. } | Fact::GateRepeated { .. }))
    );
    // The gate of the same attempt goes out again, under another generation.
    let claim = Claim {
        lane: ClaimLane::Gate,
        run: Some(run.id),
        except: Vec::new(),
        holder: holder("heir"),
        lease: SOON,
    };
    let again = world.store.claim(&claim).await.unwrap().unwrap();
    assert_eq!(again.item.id, gate.item.id);
    assert!(again.generation > gate.generation);
    let zombie = world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await;
    assert!(matches!(zombie, Err(StoreError::StaleLease)), "{zombie:?}");
    world.store.apply(run.id, &evaluated(&again.item.at, 0), &again.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_live_instance_cannot_be_swept_by_naming_another() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "alive").await.unwrap();
    let event =
        Event::Clock(ClockEvent::LeaseLost { at: work.item.at.clone(), interrupted: true, noted: None });
    let proof = planctl_store::Proof::Expired {
        item: work.item.id.clone(),
        generation: work.generation,
        dead_instance: Some("another".to_owned()),
    };
    let swept = world.store.apply(run.id, &event, &proof, None).await;
    assert!(matches!(swept, Err(StoreError::StaleLease)), "{swept:?}");
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
}

#[tokio::test]
async fn what_rests_is_told_by_lane_with_how_long_it_rests() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "one").await.unwrap();
    let coder = ClaimLane::Agent(vec![Role::new("coder")]);
    let reviewer = ClaimLane::Agent(vec![Role::new("reviewer")]);
    let any = ClaimLane::Agent(Vec::new());
    let due = async |lane: &ClaimLane| world.store.next_due(lane, "host-a").await.unwrap();
    assert_eq!(due(&any).await, None, "it is in hand");
    world.store.apply(run.id, &released(&work.item.at), &work.proof(), None).await.unwrap();
    assert_eq!(due(&coder).await, Some(Duration::ZERO), "it may not have been due when somebody looked");
    let mut aside = world.aside().await;
    let mut set = async |text: &'static str| {
        sqlx::query(text).execute(&mut aside).await.unwrap();
    };
    set("update items set available_at = clock_timestamp() + interval '1 hour'").await;
    for lane in [&coder, &any] {
        let wait = due(lane).await.unwrap();
        assert!(wait <= Duration::from_secs(3600) && wait > Duration::from_secs(1800), "{wait:?}");
    }
    assert_eq!((due(&reviewer).await, due(&ClaimLane::Gate).await), (None, None));
    assert_eq!(world.store.next_due(&coder, "host-b").await.unwrap(), None);
    set("update items set served_on = 'host-a'").await;
    assert_eq!(due(&coder).await, None);
    assert!(due(&ClaimLane::Served).await.is_some());
    set("update items set available_at = clock_timestamp() - interval '1 hour'").await;
    assert_eq!(due(&ClaimLane::Served).await, None, "what nobody claims for so long wakes nobody");
    set("update items set lane = 'harness', target = 'host-a', available_at = clock_timestamp() + interval '1 hour'")
        .await;
    assert!(due(&ClaimLane::Gate).await.is_some());
}

#[tokio::test]
async fn a_gate_that_waits_for_its_workspace_uses_up_nothing_of_its_time() {
    let world = world(1).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    let mut aside = world.aside().await;
    sqlx::query("update items set hard_deadline = clock_timestamp() - interval '1 second'")
        .execute(&mut aside)
        .await
        .unwrap();
    assert_eq!(world.store.expired(&[], 10).await.unwrap().len(), 1);
    assert!(matches!(
        world.store.renew_waiting(&gate, SOON).await.unwrap(),
        Renewal::Held { is_over: false, .. }
    ));
    assert!(world.store.expired(&[], 10).await.unwrap().is_empty());
    let whole: bool = sqlx::query_scalar(
        "select hard_deadline > clock_timestamp() + span_micros / 2 * interval '1 microsecond' from items",
    )
    .fetch_one(&mut aside)
    .await
    .unwrap();
    assert!(whole);
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert_eq!(world.store.renew_waiting(&gate, SOON).await.unwrap(), Renewal::Cancelled);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_worker_past_its_hard_deadline_is_told_and_its_attempt_is_over() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "slow").await.unwrap();
    let mut aside = world.aside().await;
    sqlx::query("update items set hard_deadline = clock_timestamp() - interval '1 second'")
        .execute(&mut aside)
        .await
        .unwrap();
    assert!(matches!(world.store.renew(&work, SOON).await.unwrap(), Renewal::Held { is_over: true, .. }));
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    assert!(expired.is_overrun);
    let applied = world.store.apply(run.id, &expired.event(), &expired.proof(), None).await.unwrap();
    assert!(
        applied.facts.iter().any(|fact| matches!(fact, Fact::RetryTriggered { .. })),
        "{:?}",
        applied.facts
    );
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn the_bell_rings_here_at_once_and_in_other_processes_soon() {
    let world = world(1).await;
    let other =
        planctl_store::Store::connect(world.database.connect_options(), planctl_store::Settings::default())
            .await
            .unwrap();
    let run = world.queued().await;
    let here = world.store.listen_to(run.id);
    let there = other.listen_to(run.id);
    let everywhere = other.listen(News::Any);
    let carry = async {
        tokio::join!(world.store.exchange_notifications(), other.exchange_notifications());
    };
    let check = async {
        // The first notification says that the listener is there; the others are news.
        there.notified().await;
        everywhere.notified().await;
        world.admit(run.id).await.unwrap();
        here.notified().await;
        there.notified().await;
        everywhere.notified().await;
    };
    tokio::select! {
        () = carry => panic!("notifications are carried for ever"),
        () = check => {}
    }
}

/// Says whether a notification has arrived since the last call; within a process it arrives at once.
async fn was_notified(listener: &planctl_store::Listener) -> bool {
    tokio::time::timeout(Duration::ZERO, listener.notified()).await.is_ok()
}

#[tokio::test]
async fn who_waits_for_work_hears_of_such_work_only() {
    let world = world(2).await;
    let run = world.queued().await;
    let agents = world.store.listen(News::Agents);
    let gates = world.store.listen(News::Gates);
    world.admit(run.id).await.unwrap();
    assert_eq!((was_notified(&agents).await, was_notified(&gates).await), (true, false), "a step begins");
    let claimed = world.claim(run.id, "w").await.unwrap();
    let said = reported(&claimed.item.at);
    let applied = world.store.apply(run.id, &said, &claimed.proof(), Some(&next_claim())).await.unwrap();
    assert_eq!(
        (was_notified(&agents).await, was_notified(&gates).await),
        (false, false),
        "the gate is claimed with the report"
    );
    let gate = applied.claimed_next.unwrap();
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    assert_eq!(
        (was_notified(&agents).await, was_notified(&gates).await),
        (true, false),
        "the next step begins"
    );
    let claimed = world.claim(run.id, "w").await.unwrap();
    world.store.apply(run.id, &reported(&claimed.item.at), &claimed.proof(), None).await.unwrap();
    assert_eq!(
        (was_notified(&agents).await, was_notified(&gates).await),
        (false, true),
        "the gate is for anybody"
    );
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_claimant_gets_the_next_work_of_its_roles_with_the_verdict() {
    let world = world(3).await;
    let run = world.begun().await;
    let with = |role: &str| NextClaim { served: vec![ServedRole::One(Role::new(role))], ..next_claim() };
    let gate = world.gate(run.id).await;
    let agents = world.store.listen(News::Agents);
    was_notified(&agents).await;
    let passed = evaluated(&gate.item.at, 0);
    let applied = world.store.apply(run.id, &passed, &gate.proof(), Some(&with("reviewer"))).await.unwrap();
    assert!(applied.claimed_next.is_none(), "the work of a role that it doesn't serve is for others");
    assert!(was_notified(&agents).await);
    let gate = world.gate(run.id).await;
    was_notified(&agents).await;
    let passed = evaluated(&gate.item.at, 0);
    let applied = world.store.apply(run.id, &passed, &gate.proof(), Some(&with("coder"))).await.unwrap();
    let work = applied.claimed_next.unwrap();
    assert!(matches!(work.item.work, Work::Agent { .. }));
    assert_eq!(work.item.at.node, NodeId::new("3"));
    assert!(!was_notified(&agents).await, "nothing is left for anybody else");
    assert!(world.claim(run.id, "another").await.is_none());
    assert!(matches!(world.store.renew(&work, SOON).await.unwrap(), Renewal::Held { .. }));
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

fn any_of(lane: ClaimLane, instance: &str) -> Claim {
    Claim { lane, run: None, except: Vec::new(), holder: holder(instance), lease: SOON }
}

fn coder() -> ClaimLane {
    ClaimLane::Agent(vec![Role::new("coder")])
}

#[tokio::test]
async fn what_a_run_serves_itself_is_for_the_daemon_of_its_host_and_for_no_remote_worker() {
    let world = world(1).await;
    let run = world.begun().await;
    let settings = |served: ServedRole| {
        let store = world.store.clone();
        async move { store.set_run_settings(run.id, "{}", &[served]).await.unwrap() }
    };
    assert!(world.store.claim(&any_of(ClaimLane::Served, "d")).await.unwrap().is_none(), "nobody serves it");
    let listener = world.store.listen(News::Served);
    settings(ServedRole::One(Role::new("coder"))).await;
    assert!(was_notified(&listener).await, "it is for somebody else now");
    assert!(world.store.claim(&any_of(coder(), "w")).await.unwrap().is_none(), "its own run serves it");
    let elsewhere = Holder { host: "host-b".to_owned(), ..holder("d") };
    let elsewhere = Claim { holder: elsewhere, ..any_of(ClaimLane::Served, "d") };
    assert!(world.store.claim(&elsewhere).await.unwrap().is_none(), "its workspace is on another host");
    let work = world.store.claim(&any_of(ClaimLane::Served, "d")).await.unwrap().unwrap();
    // The engine's next transition puts an item, by the settings as they are then.
    settings(ServedRole::One(Role::new("reviewer"))).await;
    assert!(was_notified(&listener).await);
    world.store.apply(run.id, &released(&work.item.at), &work.proof(), None).await.unwrap();
    assert!(!was_notified(&listener).await, "what comes is for workers");
    assert!(world.store.claim(&any_of(ClaimLane::Served, "d")).await.unwrap().is_none());
    let work = world.store.claim(&any_of(coder(), "w")).await.unwrap().unwrap();
    settings(ServedRole::Any).await;
    assert!(was_notified(&listener).await);
    world.store.apply(run.id, &released(&work.item.at), &work.proof(), None).await.unwrap();
    assert!(was_notified(&listener).await, "what comes is served by its run");
    assert!(world.store.claim(&any_of(coder(), "w")).await.unwrap().is_none());
    let not_that = Claim { except: vec![run.id], ..any_of(ClaimLane::Served, "d") };
    assert!(world.store.claim(&not_that).await.unwrap().is_none());
    let of_that = Claim { run: Some(run.id), ..any_of(ClaimLane::Served, "d") };
    let work = world.store.claim(&of_that).await.unwrap().unwrap();
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_new_run_is_served_from_its_first_item_and_an_excepted_run_is_passed_over() {
    let world = world(1).await;
    let new = NewRun {
        plan: world.plan.id,
        revision: &world.digest,
        stem: "fix-auth",
        approval: None,
        settings: "{}",
        served: &[ServedRole::Any],
        request: None,
    };
    let run = world.store.create_run(&new).await.unwrap();
    world.submit(run.id).await;
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    world.store.apply(run.id, &world.approval(&ask.item), &person(None), None).await.unwrap();
    world.admit(run.id).await.unwrap();
    assert!(world.store.claim(&any_of(coder(), "w")).await.unwrap().is_none());
    world.store.set_run_settings(run.id, "{}", &[]).await.unwrap();
    let not_that = Claim { except: vec![run.id], ..any_of(coder(), "w") };
    assert!(world.store.claim(&not_that).await.unwrap().is_none());
    assert!(world.store.claim(&any_of(coder(), "w")).await.unwrap().is_some());
}

#[tokio::test]
async fn rows_69_70_a_door_without_memory_acts_on_what_the_holder_shows() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "remote").await.unwrap();
    let (id, generation) = (work.item.id.clone(), work.generation);
    let secret = Token::parse(&work.token.reveal()).unwrap();
    let other = Token::parse(&"ab".repeat(32)).unwrap();
    let Leased::Held(held) = world.store.find_lease(&id, generation, &secret).await.unwrap() else {
        panic!("the holder is known");
    };
    assert_eq!((held.item.id.clone(), held.workspace.as_str()), (id.clone(), "/somewhere"));
    for (generation, token) in [(generation, &other), (generation + 1, &secret)] {
        let unknown = world.store.find_lease(&id, generation, token).await.unwrap();
        assert!(matches!(unknown, Leased::Unknown), "{unknown:?}");
    }
    let renewed = world.store.renew_by(&id, generation, &secret, SOON).await.unwrap();
    assert!(matches!(renewed, Renewal::Held { is_over: false, .. }), "{renewed:?}");
    assert_eq!(world.store.renew_by(&id, generation, &other, SOON).await.unwrap(), Renewal::Lost);
    world.store.apply(run.id, &released(&held.item.at), &held.proof(), None).await.unwrap();
    assert!(matches!(world.store.find_lease(&id, generation, &secret).await.unwrap(), Leased::Lost));
    let again = world.claim(run.id, "another").await.unwrap();
    assert!(matches!(world.store.find_lease(&id, generation, &secret).await.unwrap(), Leased::Lost));
    world.store.apply(run.id, &reported(&again.item.at), &again.proof(), None).await.unwrap();
    // The item is gone, and what comes late is still of the try that its id names.
    assert!(matches!(world.store.find_lease(&id, generation, &secret).await.unwrap(), Leased::Lost));
    let (of_run, at) = id.agent_try().unwrap();
    let proof = Proof::Lease { item: id.clone(), generation, token: secret.clone() };
    let late = world.store.apply(of_run, &reported(&at), &proof, None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    assert_eq!(world.store.refusals(run.id).await.unwrap().len(), 1);
    let nowhere = planctl_engine::ItemId::new(format!("{}.1.1.1.agent", "0".repeat(32)));
    for id in [nowhere, "anything".into(), "".into()] {
        assert!(matches!(world.store.find_lease(&id, 1, &secret).await.unwrap(), Leased::Unknown));
    }
    world
        .store
        .apply(run.id, &crate::world::human(planctl_engine::Decision::Cancel), &person(None), None)
        .await
        .unwrap();
    assert_eq!(world.store.renew_by(&id, generation, &secret, SOON).await.unwrap(), Renewal::Cancelled);
}

#[tokio::test]
async fn without_notifications_nothing_is_announced_or_heard_and_looking_again_finds_everything() {
    let world = world(1).await;
    let mut listening = sqlx::postgres::PgListener::connect_with(
        &sqlx::postgres::PgPoolOptions::new().connect_lazy_with(world.database.connect_options()),
    )
    .await
    .unwrap();
    listening.listen("planctl").await.unwrap();
    let quiet = planctl_store::Settings { notifies: false, ..planctl_store::Settings::default() };
    let quiet = planctl_store::Store::connect(world.database.connect_options(), quiet).await.unwrap();
    let run = world.new_run().await;
    let everywhere = quiet.listen(News::Any);
    let steps = async {
        quiet
            .apply(run.id, &crate::world::human(planctl_engine::Decision::Submit), &Proof::Submit, None)
            .await
            .unwrap();
        let ask = quiet.asks(Some(run.id), None).await.unwrap().remove(0);
        quiet.apply(run.id, &world.approval(&ask.item), &person(None), None).await.unwrap();
        quiet.admit_run(run.id).await.unwrap();
        // It wakes the listeners of its own process.
        everywhere.notified().await;
        // A notification by hand arrives after all that could have been announced before.
        sqlx::query("select pg_notify('planctl', 'by hand')")
            .execute(&mut world.aside().await)
            .await
            .unwrap();
        listening.recv().await.unwrap().payload().to_owned()
    };
    let first = tokio::select! {
        () = quiet.exchange_notifications() => panic!("notifications are carried for ever"),
        first = steps => first,
    };
    assert_eq!(first, "by hand", "something was announced");
    assert!(world.claim(run.id, "another").await.is_some(), "another process finds the work by looking");
    world.assert_sound(run.id).await;
}

/// Makes a run of its own workspace whose one step wants these locks, up to its first item.
async fn locking(world: &crate::world::World, place: &str, locks: &[&str]) -> planctl_store::RunRow {
    let mut parts = planctl_engine::GraphParts::from(crate::world::linear(1));
    for node in &mut parts.nodes {
        if let planctl_engine::NodeKind::Task(task) = &mut node.kind {
            task.locks = locks.iter().map(|lock| (*lock).to_owned()).collect();
        }
    }
    world.begun_at(place, &planctl_engine::Graph::new(parts).unwrap()).await
}

#[tokio::test]
async fn a_lock_is_held_from_the_claim_to_the_verdict_whatever_run_asks_for_it() {
    let world = world(1).await;
    let one = locking(&world, "/one", &["db", "printer"]).await;
    let two = locking(&world, "/two", &["db"]).await;
    let free = locking(&world, "/free", &["other"]).await;
    let work = world.claim(one.id, "a").await.unwrap();
    assert!(world.claim(two.id, "b").await.is_none(), "the lock is taken");
    let awaited = world.store.awaited_locks(&[free.id, two.id]).await.unwrap();
    assert_eq!(awaited.keys().collect::<Vec<_>>(), [&two.id], "the other run waits for no lock");
    let awaited = &awaited[&two.id];
    assert_eq!(awaited.len(), 1);
    assert_eq!(
        (awaited[0].lock.as_str(), awaited[0].run.as_str(), awaited[0].node.as_str()),
        ("db", "at-1", "1")
    );
    // Somebody who takes any work of the role gets what is free.
    let any = world.store.claim(&any_of(coder(), "c")).await.unwrap().unwrap();
    assert_eq!(any.item.run, free.id);
    let gate = world
        .store
        .apply(one.id, &reported(&work.item.at), &work.proof(), Some(&next_claim()))
        .await
        .unwrap();
    let gate = gate.claimed_next.unwrap();
    assert!(world.claim(two.id, "b").await.is_none(), "the gate needs it, too");
    // The verdict fails the attempt: between two attempts it is free.
    world.store.apply(one.id, &evaluated(&gate.item.at, 1), &gate.proof(), None).await.unwrap();
    let other = world.claim(two.id, "b").await.unwrap();
    assert!(world.claim(one.id, "a").await.is_none(), "now the second has it");
    world.store.apply(two.id, &released(&other.item.at), &other.proof(), None).await.unwrap();
    let again = world.claim(one.id, "a").await.unwrap();
    world
        .store
        .apply(one.id, &crate::world::human(planctl_engine::Decision::Cancel), &person(None), None)
        .await
        .unwrap();
    let late = world.store.apply(one.id, &reported(&again.item.at), &again.proof(), None).await;
    assert!(late.is_err(), "{late:?}");
    let other =
        world.claim_for(two.id, "b", Duration::ZERO).await.expect("a cancelled run gives its locks back");
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    world.store.apply(two.id, &expired.event(), &expired.proof(), None).await.unwrap();
    assert_eq!(expired.item, other.item.id);
    let left: i64 = sqlx::query_scalar("select count(*) from locks where name <> 'other'")
        .fetch_one(&mut world.aside().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "a lease that ran out gives its locks back");
    for run in [one.id, two.id, free.id] {
        world.assert_sound(run).await;
    }
}

#[tokio::test]
async fn one_look_tells_whether_something_is_to_be_swept_and_whether_anything_moved() {
    let world = world(1).await;
    let empty = world.store.standing().await.unwrap();
    assert_eq!((empty.has_work_out, empty.due_in, empty.claimable_in), (false, None, None));
    let run = world.begun().await;
    let begun = world.store.standing().await.unwrap();
    assert_eq!((begun.has_work_out, begun.claimable_in), (false, Some(Duration::ZERO)));
    assert_ne!(begun.open, empty.open);
    let work = world.claim(run.id, "me").await.unwrap();
    let claimed = world.store.standing().await.unwrap();
    assert_eq!((claimed.has_work_out, claimed.claimable_in), (true, None));
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    assert_ne!(world.store.standing().await.unwrap().open, begun.open);

    let mut aside = world.aside().await;
    sqlx::raw_sql("delete from timers; insert into timers (run, timer, at) select id, 'run', clock_timestamp() + interval '1 hour' from runs")
        .execute(&mut aside)
        .await
        .unwrap();
    let due_in = world.store.standing().await.unwrap().due_in.unwrap();
    assert!(due_in > SOON && due_in <= Duration::from_secs(3600), "{due_in:?}");
    sqlx::raw_sql("update timers set at = clock_timestamp() - interval '1 second'")
        .execute(&mut aside)
        .await
        .unwrap();
    assert_eq!(world.store.standing().await.unwrap().due_in, Some(Duration::ZERO));
}

#[tokio::test]
async fn a_lock_that_another_claim_is_about_to_take_is_left_to_it() {
    let world = world(1).await;
    let first = locking(&world, "/first", &["db"]).await.id;
    let second = locking(&world, "/second", &["db"]).await.id;
    let (mut quicker, mut aside) = (world.aside().await, world.aside().await);
    // The later claim sees the lock free, and meets this row, which is not committed yet, where it takes it.
    sqlx::query("begin").execute(&mut quicker).await.unwrap();
    let taken = sqlx::query("insert into locks (name, run, node) values ('db', $1::uuid, 's1')")
        .bind(first.to_string());
    taken.execute(&mut quicker).await.unwrap();
    let (late, ()) = tokio::join!(world.claim(second, "late"), async {
        await_lock(&mut aside).await;
        sqlx::query("commit").execute(&mut quicker).await.unwrap();
    });
    assert!(late.is_none(), "the first run has the lock");
}

#[tokio::test]
async fn of_eight_that_want_crossing_locks_at_once_no_two_have_one() {
    let world = world(1).await;
    let mut runs = Vec::new();
    for at in 0..8 {
        let names = [format!("l{}", at % 4), format!("l{}", (at + 1) % 4)];
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        runs.push(locking(&world, &format!("/at{at}"), &names).await.id);
    }
    for _ in 0..5 {
        let mut claimers = tokio::task::JoinSet::new();
        for (at, run) in runs.iter().copied().enumerate() {
            let claim = Claim { run: Some(run), ..any_of(coder(), &format!("w{at}")) };
            let store = world.store.clone();
            claimers.spawn(async move { store.claim(&claim).await.unwrap().map(|claimed| (at, claimed)) });
        }
        let claimed: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
        let names: Vec<usize> = claimed.iter().flat_map(|(at, _)| [at % 4, (at + 1) % 4]).collect();
        let distinct: BTreeSet<&usize> = names.iter().collect();
        assert!(!claimed.is_empty() && names.len() == distinct.len(), "{names:?}");
        for (at, claimed) in claimed {
            let event = released(&claimed.item.at);
            world.store.apply(runs[at], &event, &claimed.proof(), None).await.unwrap();
        }
    }
}
