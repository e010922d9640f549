//! Asks of drafts: opened once, answered once, and kept as they were answered.

use std::time::Duration;

use planctl_engine::{Answer, AskKind};
use planctl_store::{DraftAsk, NewDraftAnswer, NewDraftAsk, NewDraftAsks, StoreError};

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
