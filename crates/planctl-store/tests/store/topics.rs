//! Topics: notes in one order, none lost and none twice.

use planctl_engine::Actor;
use planctl_store::{NOTE_BYTES_MAX, Page, StoreError, TopicName};

use crate::world::world;

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

#[tokio::test]
async fn notes_count_from_one_whoever_posts_them_at_once() {
    let world = world(1).await;
    let mut posts = tokio::task::JoinSet::new();
    for by in 0..8 {
        let store = world.store.clone();
        posts.spawn(async move {
            for n in 0..5 {
                let text = format!("{by}.{n}");
                store
                    .post_note(&topic("fix/auth"), &Actor::new(format!("w{by}")), &text, None)
                    .await
                    .unwrap();
            }
        });
    }
    posts.join_all().await;
    let first = world.store.post_note(&topic("other"), &Actor::new("ann"), "a\0b\n", None).await.unwrap();
    assert_eq!((first.number, first.of, first.text.as_str()), (1, 1, "a\u{fffd}b\n"));
    let notes = world.store.notes("fix/auth", 0, 1000).await.unwrap();
    assert_eq!(notes.iter().map(|note| note.number).collect::<Vec<_>>(), (1..=40).collect::<Vec<_>>());
    for by in 0..8 {
        let own: Vec<_> = notes.iter().filter(|note| note.by.as_str() == format!("w{by}")).collect();
        assert_eq!(own.len(), 5);
        assert!(own.windows(2).all(|pair| pair[0].text < pair[1].text && pair[0].at <= pair[1].at));
    }
    let page = world.store.notes("fix/auth", 38, 1).await.unwrap();
    assert_eq!((page.len(), page[0].number, page[0].of), (1, 39, 40));
    let topics = world.store.topics(&Page::ALL).await.unwrap();
    assert_eq!(
        topics.iter().map(|topic| (topic.name.as_str(), topic.notes)).collect::<Vec<_>>(),
        [("fix/auth", 40), ("other", 1)]
    );
    assert!(world.store.notes("nosuch", 0, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_newest_notes_are_those_that_fit() {
    let world = world(1).await;
    for n in 1..=6 {
        let text = n.to_string().repeat(if n == 6 { 100 } else { 10 });
        world.store.post_note(&topic("t"), &Actor::new("ann"), &text, None).await.unwrap();
    }
    let newest = async |limit, bytes| {
        let notes = world.store.newest_notes("t", limit, bytes).await.unwrap();
        notes.iter().map(|note| note.number).collect::<Vec<_>>()
    };
    assert_eq!(newest(1000, 1000).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(newest(3, 1000).await, [4, 5, 6]);
    assert_eq!(newest(1000, 125).await, [4, 5, 6]);
    assert_eq!(newest(1000, 20).await, [6], "the newest is there whatever its length");
}

#[tokio::test]
async fn a_note_too_long_and_a_name_that_is_none_are_refused() {
    let world = world(1).await;
    let long = "x".repeat(NOTE_BYTES_MAX + 1);
    let refused = world.store.post_note(&topic("t"), &Actor::new("ann"), &long, None).await;
    assert!(matches!(refused, Err(StoreError::TooLong { bytes_max: NOTE_BYTES_MAX, .. })), "{refused:?}");
    world.store.post_note(&topic("t"), &Actor::new("ann"), &long[1..], None).await.unwrap();
    for bad in ["", "a b", "ä", "a\n", &"x".repeat(101)] {
        assert!(TopicName::parse(bad).is_none(), "{bad:?}");
    }
}
