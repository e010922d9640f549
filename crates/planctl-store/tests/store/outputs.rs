//! The limits of storage for anybody who calls: outputs under a held lease only, and a bounded number of refusals.

use std::collections::BTreeMap;

use planctl_engine::{AgentEvent, AgentSaid, Digest, Event, Excerpt, Hints, Report};
use planctl_store::{Claimed, StoreError, Token};
use sqlx::Executor as _;

use crate::world::{World, next_claim, reported, world};

async fn put(world: &World, work: &Claimed, text: &str) -> Digest {
    let digest = Digest::new(format!("sha256:{text}"));
    let (item, generation) = (&work.item.id, work.generation);
    world.store.put_output_under(item, generation, &work.token, &digest, text.as_bytes()).await.unwrap();
    digest
}

async fn is_kept(world: &World, digest: &Digest) -> bool {
    world.store.output(digest).await.unwrap().is_some()
}

/// A report whose whole text is stored under a digest.
fn reported_with(work: &Claimed, stored: &Digest) -> Event {
    let Event::Agent(mut event) = reported(&work.item.at) else { unreachable!("a worker reports") };
    if let AgentSaid::Reported(report) = &mut event.said {
        report.text = Excerpt { bytes: 9000, tail: "done".to_owned(), stored: Some(stored.clone()) };
    }
    Event::Agent(event)
}

#[tokio::test]
async fn p20_b1_an_output_is_stored_under_a_lease_that_is_held_and_no_other() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let forged = Claimed { token: Token::generate(), ..work.clone() };
    let other = Claimed { generation: work.generation + 1, ..work.clone() };
    for not_held in [&forged, &other] {
        assert!(!is_kept(&world, &put(&world, not_held, "a text").await).await);
    }
    assert!(is_kept(&world, &put(&world, &work, "a text").await).await);
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    assert!(!is_kept(&world, &put(&world, &work, "a late one").await).await, "the lease is over");
}

#[tokio::test]
async fn p20_b1_outputs_of_which_no_history_tells_are_swept_after_a_day() {
    let world = world(2).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let [named, unnamed, again] = [
        put(&world, &work, "named").await,
        put(&world, &work, "unnamed").await,
        put(&world, &work, "again").await,
    ];
    let own = Digest::new("sha256:own");
    world.store.put_output(&own, b"copy of a protected file").await.unwrap();
    let gate = world
        .store
        .apply(run.id, &reported_with(&work, &named), &work.proof(), Some(&next_claim()))
        .await
        .unwrap()
        .claimed_next
        .unwrap();
    assert_eq!(world.store.sweep_outputs().await.unwrap(), 0, "their reports may be under way");
    let mut aside = world.aside().await;
    let age = "update outputs set created_at = created_at - interval '25 hours'";
    aside.execute(age).await.unwrap();
    // An output that comes once more is as young as its newest copy.
    world.store.apply(run.id, &crate::world::evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    let next = world.claim(run.id, "me").await.unwrap();
    put(&world, &next, "again").await;
    assert_eq!(world.store.sweep_outputs().await.unwrap(), 1);
    let kept = [&named, &unnamed, &again, &own].map(|digest| is_kept(&world, digest));
    let mut found = Vec::new();
    for kept in kept {
        found.push(kept.await);
    }
    assert_eq!(found, [true, false, true, true]);
    // An output that a history names is kept, even where it is put again without a name.
    put(&world, &next, "named").await;
    aside.execute(age).await.unwrap();
    assert_eq!(world.store.sweep_outputs().await.unwrap(), 1, "the one that came again");
    assert!(is_kept(&world, &named).await && is_kept(&world, &own).await);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p20_b1_of_refused_news_the_newest_hundred_are_kept_and_none_is_long() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let forged = Claimed { token: Token::generate(), ..work.clone() };
    let context = BTreeMap::from([("name".to_owned(), "x".repeat(900_000))]);
    let hints = Some(Box::new(Hints { context, ..Hints::default() }));
    let Event::Agent(AgentEvent { said: AgentSaid::Reported(report), .. }) = reported(&work.item.at) else {
        unreachable!("a worker reports")
    };
    let said = AgentSaid::Reported(Report { hints, ..report });
    let long = Event::Agent(AgentEvent::new(work.item.at.clone(), said));
    for number in 0..103 {
        let event = if number == 102 { &long } else { &reported(&work.item.at) };
        let refused = world.store.apply(run.id, event, &forged.proof(), None).await;
        assert!(matches!(refused, Err(StoreError::StaleLease)), "{refused:?}");
    }
    let kept: (i64, i64, i32) =
        sqlx::query_as("select count(*), max(id) - min(id), max(octet_length(body::text)) from refusals")
            .fetch_one(&mut world.aside().await)
            .await
            .unwrap();
    assert_eq!((kept.0, kept.1), (100, 99));
    assert!(kept.2 < 16 * 1024, "{} bytes", kept.2);
    assert_eq!(world.store.refusals(run.id).await.unwrap().len(), 100);
}
