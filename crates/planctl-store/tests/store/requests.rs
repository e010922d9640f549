//! P14: a request that is repeated under its key is done once and answered alike.

use planctl_store::{Begun, Request, RequestKey};
use sqlx::Executor as _;

use crate::world::{World, world};

fn request(principal: &str, route: &str, body: &str) -> Request {
    Request::new(principal, RequestKey::parse("key-1").unwrap(), route, body.as_bytes())
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
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::Fresh);
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    store.answer_request(&one, 201, b"{\"run\":1}").await.unwrap();
    store.answer_request(&one, 500, b"later").await.unwrap();
    let answered = Begun::Answered { status: 201, answer: b"{\"run\":1}".to_vec() };
    assert_eq!(store.begin_request(&one).await.unwrap(), answered);
    for other in [request("ann", "POST /v1/runs", "{ }"), request("ann", "POST /v1/plans", "{}")] {
        assert_eq!(store.begin_request(&other).await.unwrap(), Begun::Mismatch);
    }
    // Keys are each principal's own.
    assert_eq!(store.begin_request(&request("bob", "POST /v1/runs", "{ }")).await.unwrap(), Begun::Fresh);
    age(&world, "6 days 23 hours").await;
    assert_eq!(store.sweep_requests().await.unwrap(), 0);
    assert_eq!(store.begin_request(&one).await.unwrap(), answered);
    age(&world, "2 hours").await;
    assert_eq!(store.begin_request(&request("ann", "POST /v1/plans", "{}")).await.unwrap(), Begun::Fresh);
    assert_eq!(store.sweep_requests().await.unwrap(), 1, "the other principal's");
}

#[tokio::test]
async fn a_request_whose_process_died_is_fresh_again_and_a_forgotten_one_at_once() {
    let world = world(1).await;
    let store = &world.store;
    let one = request("ann", "POST /v1/runs", "{}");
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::Fresh);
    store.forget_request(&one).await.unwrap();
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::Fresh);
    age(&world, "50 seconds").await;
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    age(&world, "15 seconds").await;
    assert_eq!(store.begin_request(&request("ann", "POST /v1/runs", "{ }")).await.unwrap(), Begun::Mismatch);
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::Fresh);
    assert_eq!(store.begin_request(&one).await.unwrap(), Begun::UnderWay);
    store.answer_request(&one, 200, b"ok").await.unwrap();
    store.forget_request(&one).await.unwrap();
    assert!(matches!(store.begin_request(&one).await.unwrap(), Begun::Answered { status: 200, .. }));
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
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::Fresh).count(), 1, "{begun:?}");
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
