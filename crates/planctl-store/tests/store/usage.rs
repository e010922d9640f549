//! What holders of items say they have used so far: kept with their leases, charged with whatever ends them.

use std::time::Duration;

use planctl_engine::{AgentEvent, AgentSaid, Event, RunId, Spent, Usage};
use planctl_store::{Claimed, Settings, Store, StoreError, Token};

use crate::world::{World, released, reported, take, world};

fn tokens(tokens: u64) -> Usage {
    Usage { output_tokens: tokens, ..Usage::default() }
}

async fn note(world: &World, work: &Claimed, usage: &Usage) -> bool {
    world.store.note_usage(&work.item.id, work.generation, &work.token, usage).await.unwrap()
}

async fn work(world: &World, run: RunId) -> Claimed {
    world.claim(run, "w").await.unwrap()
}

async fn spent(world: &World, work: &Claimed) -> Spent {
    world.store.run(work.item.run).await.unwrap().head.spent
}

#[tokio::test]
async fn a_report_charges_what_was_said_before_it_and_its_repetition_is_the_same() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = work(&world, run.id).await;
    assert!(note(&world, &work, &tokens(100)).await);
    assert!(note(&world, &work, &tokens(120)).await, "so far: the newest counts");
    let (item, generation) = (&work.item.id, work.generation);
    for (generation, token) in [(generation, Token::draw()), (generation + 1, work.token.clone())] {
        assert!(!world.store.note_usage(item, generation, &token, &tokens(9)).await.unwrap());
    }
    let said = AgentSaid::Asked { question: "which?".to_owned(), usage: None };
    let event = Event::Agent(AgentEvent::new(work.item.at.clone(), said));
    world.store.apply(run.id, &event, &work.proof(), None).await.unwrap();
    assert_eq!((spent(&world, &work).await.tokens, spent(&world, &work).await.unmetered), (120, 0));
    assert!(world.store.apply(run.id, &event, &work.proof(), None).await.unwrap().duplicate);
    let said = AgentSaid::Asked { question: "which?".to_owned(), usage: Some(tokens(120)) };
    let other = Event::Agent(AgentEvent::new(work.item.at.clone(), said));
    let refused = world.store.apply(run.id, &other, &work.proof(), None).await;
    assert!(matches!(refused, Err(StoreError::KeyReused { .. })), "{refused:?}");
    assert!(!note(&world, &work, &tokens(200)).await, "the lease is over");
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_lease_used_that_came_to_nothing_is_charged_and_not_that_of_the_next() {
    let world = world(1).await;
    let run = world.begun().await;
    let first = work(&world, run.id).await;
    assert!(note(&world, &first, &tokens(10)).await);
    world.store.apply(run.id, &released(&first.item.at), &first.proof(), None).await.unwrap();
    assert_eq!(spent(&world, &first).await.tokens, 10);
    // The run is known to this process by now, and what is said under the next lease is nobody's memory.
    let second = work(&world, run.id).await;
    assert_eq!(second.item.id, first.item.id);
    world.store.apply(run.id, &reported(&second.item.at), &second.proof(), Some(&take())).await.unwrap();
    assert_eq!(spent(&world, &second).await.tokens, 10);
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_another_process_heard_is_charged_by_one_that_remembers_the_run() {
    let world = world(2).await;
    let run = world.begun().await;
    world.step(run.id, 0).await;
    let work = work(&world, run.id).await;
    let other = Store::connect(world.database.connect_options(), Settings::default()).await.unwrap();
    assert!(other.note_usage(&work.item.id, work.generation, &work.token, &tokens(70)).await.unwrap());
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&take())).await.unwrap();
    assert_eq!(spent(&world, &work).await.tokens, 70);
    other.close().await;
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_worker_used_that_vanished_is_charged() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim_for(run.id, "gone", Duration::from_micros(1)).await.unwrap();
    assert!(note(&world, &work, &tokens(30)).await);
    let expired = world.store.expired(&[], 10).await.unwrap().remove(0).unwrap();
    world.store.apply(run.id, &expired.event(), &expired.proof(), None).await.unwrap();
    assert_eq!(spent(&world, &work).await.tokens, 30);
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}
