//! P14: a request that is repeated under its key is done once and answered alike.

use planctl_engine::{Actor, Decision, Event, HumanEvent};
use planctl_store::{Begun, Proof, Request, RequestKey, RequestTurn, TopicName};
use sqlx::Executor as _;

use crate::world::{World, world};

fn request(principal: &str, route: &str, body: &str) -> Request {
    Request::new(principal, RequestKey::parse("key-1").unwrap(), route, body.as_bytes())
}

async fn turn(world: &World, request: &Request) -> RequestTurn {
    match world.store.begin_request(request).await.unwrap() {
        Begun::Fresh(turn) => turn,
        begun @ (Begun::Answered { .. } | Begun::UnderWay | Begun::Mismatch) => panic!("{begun:?}"),
    }
}

async fn age(world: &World, how_long: &'static str) {
    let mut aside = world.aside().await;
    sqlx::query("update requests set at = at - $1::text::interval")
        .bind(how_long)
        .execute(&mut aside)
        .await
        .unwrap();
}

#[tokio::test]
async fn p14_a_repeated_request_gets_the_stored_answer_and_another_under_its_key_none() {
    let world = world(1).await;
    let store = &world.store;
    let one = request("ann", "POST /v1/runs", "{}");
    turn(&world, &one).await;
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    store.answer_request(&one, 201, b"{\"run\":1}").await.unwrap();
    store.answer_request(&one, 500, b"later").await.unwrap();
    let answered = Begun::Answered { status: 201, answer: b"{\"run\":1}".to_vec() };
    assert_eq!(store.begin_request(&one).await.unwrap(), answered);
    for other in [request("ann", "POST /v1/runs", "{ }"), request("ann", "POST /v1/plans", "{}")] {
        assert_eq!(store.begin_request(&other).await.unwrap(), Begun::Mismatch);
    }
    // Keys are each principal's own.
    turn(&world, &request("bob", "POST /v1/runs", "{ }")).await;
    age(&world, "6 days 23 hours").await;
    assert_eq!(store.sweep_requests().await.unwrap(), 0);
    assert_eq!(store.begin_request(&one).await.unwrap(), answered);
    age(&world, "2 hours").await;
    turn(&world, &request("ann", "POST /v1/plans", "{}")).await;
    assert_eq!(store.sweep_requests().await.unwrap(), 1, "the other principal's");
}

#[tokio::test]
async fn a_request_whose_process_died_is_fresh_again_and_one_that_was_left_at_once() {
    let world = world(1).await;
    let store = &world.store;
    let one = request("ann", "POST /v1/runs", "{}");
    let other = request("ann", "POST /v1/runs", "{ }");
    let first = turn(&world, &one).await;
    store.abandon_request(&one, &first).await.unwrap();
    assert_eq!(store.begin_request(&other).await.unwrap(), Begun::Mismatch);
    let second = turn(&world, &one).await;
    age(&world, "50 seconds").await;
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    age(&world, "15 seconds").await;
    assert_eq!(store.begin_request(&other).await.unwrap(), Begun::Mismatch);
    let third = turn(&world, &one).await;
    // Each try has the same request, and a lost turn does not end a later one.
    assert!(first.id == second.id && second.id == third.id, "{first:?} {second:?} {third:?}");
    store.abandon_request(&one, &second).await.unwrap();
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    store.answer_request(&one, 200, b"ok").await.unwrap();
    store.abandon_request(&one, &third).await.unwrap();
    assert!(matches!(store.begin_request(&one).await.unwrap(), Begun::Answered { status: 200, .. }));
    // After a week the key is free, and names something else.
    age(&world, "8 days").await;
    assert_ne!(turn(&world, &one).await.id, first.id);
}

#[tokio::test]
async fn p14_what_a_request_did_is_found_by_whoever_takes_it_up() {
    let world = world(1).await;
    let store = &world.store;
    let id = turn(&world, &request("ann", "POST /v1/runs", "{}")).await.id;
    // Two that believe to be the one who does it.
    let (one, two) = (world.new_run_of(Some(id)).await, world.new_run_of(Some(id)).await);
    assert_eq!(one.id, two.id);
    assert_eq!(store.run_of_request(id).await.unwrap().unwrap().id, one.id);
    let topic = TopicName::parse("t").unwrap();
    let ann = Actor::new("ann");
    let first = store.post_note(&topic, &ann, "once", Some(id)).await.unwrap();
    let again = store.post_note(&topic, &ann, "once", Some(id)).await.unwrap();
    assert_eq!((&first, again.of), (&again, 1));
    world.submit(one.id).await;
    let key = id.key(one.id, &Decision::Cancel);
    assert!(!store.is_accepted(&key).await.unwrap());
    let cancel = Event::Human(HumanEvent { by: ann, note: None, decision: Decision::Cancel });
    let person = Proof::Person { key: Some(key.clone()) };
    assert!(!store.apply(one.id, &cancel, &person, None).await.unwrap().duplicate);
    assert!(store.apply(one.id, &cancel, &person, None).await.unwrap().duplicate);
    assert!(store.is_accepted(&key).await.unwrap());
    let audit = store.audit(one.id).await.unwrap();
    assert!(audit.is_empty(), "{audit:?}");
}

#[tokio::test]
async fn of_eight_that_send_one_request_at_once_one_does_it() {
    let world = world(1).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = world.store.clone();
        calls.spawn(async move { store.begin_request(&request("ann", "POST /", "{}")).await.unwrap() });
    }
    let begun = calls.join_all().await;
    assert_eq!(begun.iter().filter(|begun| matches!(begun, Begun::Fresh(_))).count(), 1, "{begun:?}");
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::UnderWay).count(), 7, "{begun:?}");
    world.aside().await.execute("delete from requests").await.unwrap();
}

#[test]
fn row_73_a_key_is_short_and_visible() {
    for good in ["a", "0196f3e2-1111", "!~", &"x".repeat(200)] {
        assert!(RequestKey::parse(good).is_some(), "{good}");
    }
    for bad in ["", " ", "a b", "a\n", "a\u{e9}", "a\u{7f}", &"x".repeat(201)] {
        assert!(RequestKey::parse(bad).is_none(), "{bad:?}");
    }
}
