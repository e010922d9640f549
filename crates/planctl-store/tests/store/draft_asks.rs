//! Asks of drafts: opened once, answered once, and kept as they were answered.

use std::time::Duration;

use planctl_engine::{Answer, AskKind};
use planctl_store::{
    DraftAsk, DraftRecord, NewDraftAnswer, NewDraftAsk, NewDraftAsks, NewDraftRecord, StoreError,
};

use crate::world::{World, world};

fn ask(slot: &str, text: &str) -> NewDraftAsk {
    let ask = DraftAsk { kind: AskKind::Synthesis, text: text.to_owned(), options: Vec::new(), prompt: None };
    NewDraftAsk { slot: slot.to_owned(), digest: text.to_owned(), ask: Some(ask) }
}

async fn opened(world: &World, key: &str, asks: &[NewDraftAsk]) -> Vec<planctl_store::DraftAskRow> {
    let workspace = world.workspace;
    let wanted = NewDraftAsks { workspace, key, goal: "List it", rules: "{}", asks };
    world.store.open_draft_asks(wanted).await.unwrap()
}

async fn answered(world: &World, row: &planctl_store::DraftAskRow, by: &str) -> Result<(), StoreError> {
    let answer = NewDraftAnswer {
        item: &row.item,
        by,
        answer: &Answer::Approve,
        about: "",
        note: Some("fine"),
        seen: None,
        decides: true,
    };
    world.store.answer_draft(answer).await
}

#[tokio::test]
async fn m_35_the_ask_of_a_draft_is_open_once_and_the_next_one_takes_its_slot() {
    let world = world(1).await;
    let first = opened(&world, "a", &[ask("I1", "one"), ask("I2", "two")]).await;
    let again = opened(&world, "a", &[ask("I2", "two"), ask("I1", "one")]).await;
    let numbers = |rows: &[planctl_store::DraftAskRow]| rows.iter().map(|row| row.number).collect::<Vec<_>>();
    assert_eq!(numbers(&again), numbers(&first).into_iter().rev().collect::<Vec<_>>(), "in the wanted order");
    let other = opened(&world, "b", &[ask("I1", "one")]).await;
    assert_ne!(other[0].number, first[0].number, "another draft asks for itself");
    let changed = opened(&world, "a", &[ask("I1", "changed")]).await;
    assert!(!world.store.draft_ask(first[0].number).await.unwrap().is_open, "it was taken back");
    assert!(world.store.draft_ask(first[1].number).await.unwrap().is_open, "another slot stays");
    let back = opened(&world, "a", &[ask("I1", "one")]).await;
    assert!(back[0].is_open && back[0].number > changed[0].number, "what was taken back is asked anew");
    let nothing = NewDraftAsk { slot: "I2".to_owned(), digest: String::new(), ask: None };
    assert!(opened(&world, "a", &[nothing]).await.is_empty());
    assert!(!world.store.draft_ask(first[1].number).await.unwrap().is_open, "a slot is cleared");
    let run = world.new_run().await;
    assert!(matches!(world.store.ask(back[0].number).await, Err(StoreError::NoAsk { .. })));
    assert!(world.store.asks(None, None).await.unwrap().iter().all(|row| row.run == run.id));
}

#[tokio::test]
async fn m_35_the_ask_of_a_draft_is_answered_once_and_its_answer_never_changes() {
    let world = world(1).await;
    let asked = opened(&world, "a", &[ask("I1", "one")]).await;
    answered(&world, &asked[0], "ann").await.unwrap();
    let second = answered(&world, &asked[0], "ben").await;
    assert!(matches!(second, Err(StoreError::VotedMeanwhile)), "{second:?}");
    let kept = opened(&world, "a", &[ask("I1", "one")]).await;
    let answer = kept[0].answer.clone().unwrap();
    assert_eq!((answer.by.as_str(), answer.note.as_deref()), ("ann", Some("fine")));
    let mut aside = world.aside().await;
    for change in ["update draft_answers set by = 'eve'", "delete from draft_answers"] {
        let refused = sqlx::query(change).execute(&mut aside).await.unwrap_err();
        assert!(refused.to_string().contains("only ever added to"), "{change}: {refused}");
    }
    world.store.prune(Duration::from_secs(3600)).await.unwrap();
    assert!(world.store.draft_ask(asked[0].number).await.is_ok(), "it is not old enough");
    sqlx::query("update drafts set created_at = clock_timestamp() - interval '2 hours'")
        .execute(&mut aside)
        .await
        .unwrap();
    sqlx::query("update asks set closed_at = clock_timestamp() - interval '2 hours'")
        .execute(&mut aside)
        .await
        .unwrap();
    world.store.prune(Duration::from_secs(3600)).await.unwrap();
    assert!(matches!(world.store.draft_ask(asked[0].number).await, Err(StoreError::NoAsk { .. })));
}

#[tokio::test]
async fn m_13_a_draft_is_kept_over_the_version_that_its_machine_knows_and_over_no_other() {
    let world = world(1).await;
    let (workspace, key) = (world.workspace, "d");
    let keep = async |record: &str, version: u64, known: u64| {
        let new = NewDraftRecord { workspace, key, goal: "List it", rules: "{}", record, version, known };
        world.store.keep_draft(new).await.unwrap()
    };
    let kept = async || world.store.draft_record(workspace, key).await.unwrap();
    assert_eq!(kept().await, None);
    opened(&world, key, &[ask("I1", "one")]).await;
    assert_eq!(kept().await, None, "a draft that only asked was not kept");
    assert!(keep("first", 1, 0).await);
    assert!(keep("second", 3, 1).await);
    assert!(keep("second", 3, 1).await, "a repeated call changes nothing");
    assert!(!keep("other", 3, 1).await, "another machine kept it meanwhile");
    assert_eq!(kept().await, Some(DraftRecord { version: 3, record: "second".to_owned() }));
    // A machine whose workspace has the same path takes it over with its asks, and the first one can't write over it any more.
    let other = world.store.workspace("another host", "/somewhere").await.unwrap();
    let elsewhere = world.store.workspace("another host", "/elsewhere").await.unwrap();
    assert_eq!(
        world.store.take_draft(elsewhere, key).await.unwrap(),
        0,
        "a workspace of another path has its own"
    );
    assert_eq!(world.store.take_draft(workspace, key).await.unwrap(), 3, "it is there already");
    assert_eq!(world.store.take_draft(other, key).await.unwrap(), 3);
    assert_eq!(world.store.take_draft(other, "unknown").await.unwrap(), 0);
    assert!(!keep("first again", 4, 3).await);
    assert_eq!(world.store.draft_asks(Some(other)).await.unwrap().len(), 1, "its ask is listed there");
    assert_eq!(world.store.take_draft(workspace, key).await.unwrap(), 3, "and back");
    assert!(keep("third", 4, 3).await);
    let mut aside = world.aside().await;
    let age = "update drafts set created_at = clock_timestamp() - interval '2 hours'";
    sqlx::query(age).execute(&mut aside).await.unwrap();
    opened(&world, key, &[NewDraftAsk { slot: "I1".to_owned(), digest: String::new(), ask: None }]).await;
    let age = "update asks set closed_at = clock_timestamp() - interval '2 hours'";
    sqlx::query(age).execute(&mut aside).await.unwrap();
    world.store.prune(Duration::from_secs(3600)).await.unwrap();
    assert!(kept().await.is_some(), "it was kept a moment ago");
    let age = "update drafts set record_at = clock_timestamp() - interval '2 hours'";
    sqlx::query(age).execute(&mut aside).await.unwrap();
    world.store.prune(Duration::from_secs(3600)).await.unwrap();
    assert_eq!(kept().await, None);
}
