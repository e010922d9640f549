//! The time of a budget: it counts while a process works on the run, and not from when the last one was known to.

use std::time::Duration;

use planctl_engine::{ClockEvent, Decision, End, Event, RunId, RunStatus};
use planctl_store::{HistoryLine, LeftRun, Proof, RunRow, Said, Settings, Store};
use sqlx::Connection as _;

use crate::world::{HOST, World, await_lock, await_row_locks, hold_run, human, person, reported, world};

const A_MINUTE: Duration = Duration::from_secs(60);

/// Returns how often it was found that nobody worked on a run whose history is sound.
async fn times_unattended(store: &Store, world: &World, run: RunId) -> usize {
    let lines = store.history(run, 0, 1000).await.unwrap();
    world.assert_sound(run).await;
    let kind = |line: &HistoryLine| match &line.said {
        Said::Input(input) => Some(input.event.kind()),
        Said::Fact(_) => None,
    };
    lines.iter().filter(|line| kind(line) == Some("clock.unattended")).count()
}

#[tokio::test]
async fn p73_the_time_in_which_no_process_worked_on_a_run_is_not_counted_whoever_speaks_first() {
    let world = world(1).await;
    let run = world.begun().await.id;
    let work = world.claim(run, "w").await.unwrap();
    world.store.attend(HOST, None).await.unwrap();
    let later = world.an_hour_later().await;
    let shown = later.run(run).await.unwrap();
    assert!(shown.time_spent() < A_MINUTE, "views don't count it either: {:?}", shown.time_spent());

    later.apply(run, &reported(&work.item.at), &work.proof(), None).await.unwrap();
    let head = later.run(run).await.unwrap().head;
    assert!(head.spent.time < A_MINUTE, "{head:?}");
    later.apply(run, &human(Decision::Pause), &person(None), None).await.unwrap();
    let head = later.run(run).await.unwrap().head;
    assert!(head.spent.time < A_MINUTE && head.status == RunStatus::Paused, "{head:?}");
    assert!(times_unattended(&later, &world, run).await >= 1);
    later.close().await;
}

#[tokio::test]
async fn p73_a_process_that_begins_to_work_takes_off_the_time_in_which_none_did() {
    let world = world(1).await;
    let run = world.begun().await.id;
    world.store.attend(HOST, None).await.unwrap();
    assert_eq!(world.store.left_runs(HOST, None).await.unwrap(), [], "somebody works on it");
    let later = world.an_hour_later().await;
    assert_eq!(later.left_runs("another host", None).await.unwrap(), []);
    let left = later.left_runs(HOST, Some(&[run])).await.unwrap();
    assert_eq!(left.iter().map(|left| left.run).collect::<Vec<_>>(), [run]);
    later.apply(run, &left[0].event(), &Proof::Clock, None).await.unwrap();
    later.attend(HOST, Some(&[run])).await.unwrap();
    assert_eq!(later.left_runs(HOST, None).await.unwrap(), []);
    let shown = later.run(run).await.unwrap();
    assert!(shown.time_spent() < A_MINUTE, "{:?}", shown.time_spent());
    assert_eq!(times_unattended(&later, &world, run).await, 1);
    later.close().await;
}

#[tokio::test]
async fn p73_the_clock_of_a_run_stands_still_at_once_where_its_process_says_that_it_leaves() {
    let world = world(1).await;
    let run = world.begun().await.id;
    let ids = |left: &[LeftRun]| left.iter().map(|left| left.run).collect::<Vec<_>>();
    world.store.attend(HOST, None).await.unwrap();
    world.store.attend(HOST, Some(&[run])).await.unwrap();
    assert_eq!(world.store.leave("another host", None).await.unwrap(), []);
    assert_eq!(world.store.leave(HOST, None).await.unwrap(), [], "another process works on it");
    let left = world.store.leave(HOST, Some(&[run])).await.unwrap();
    assert_eq!(ids(&left), [run]);
    let again = world.store.left_runs(HOST, None).await.unwrap();
    assert_eq!(again, left, "a process that dies before it has told the run has counted to the same moment");
    world.store.apply(run, &left[0].event(), &Proof::Clock, None).await.unwrap();
    let counted = world.store.run(run).await.unwrap().time_spent();
    assert!(counted > Duration::ZERO, "all of the time up to here counts");
    assert_eq!(world.store.run(run).await.unwrap().time_spent(), counted);

    // A process takes the run up at once.
    let left = world.store.left_runs(HOST, Some(&[run])).await.unwrap();
    assert_eq!(ids(&left), [run]);
    world.store.apply(run, &left[0].event(), &Proof::Clock, None).await.unwrap();
    assert_eq!(world.store.run(run).await.unwrap().head.spent.time, counted);
    world.store.attend(HOST, Some(&[run])).await.unwrap();
    assert!(world.store.run(run).await.unwrap().time_spent() > counted);
    assert_eq!(times_unattended(&world.store, &world, run).await, 2);
}

#[tokio::test]
async fn p73_a_process_of_an_older_release_takes_up_a_run_that_was_left() {
    let world = world(1).await;
    let run = world.begun().await.id;
    world.store.attend(HOST, None).await.unwrap();
    assert_eq!(world.store.leave(HOST, None).await.unwrap().len(), 1);
    let mut aside = world.aside().await;
    sqlx::query("update attendance set at = clock_timestamp()").execute(&mut aside).await.unwrap();
    assert_eq!(world.store.left_runs(HOST, Some(&[run])).await.unwrap(), []);
}

#[tokio::test]
async fn p73_a_run_of_whose_work_somebody_holds_a_lease_is_worked_on_whatever_release_they_are_of() {
    let world = world(1).await;
    let run = world.begun().await.id;
    world.store.attend(HOST, None).await.unwrap();
    world.claim(run, "w").await.unwrap();
    let mut aside = world.aside().await;
    let mut change = async |statement| sqlx::query(statement).execute(&mut aside).await.unwrap();
    change("update attendance set at = at - interval '1 hour'").await;
    assert_eq!(world.store.left_runs(HOST, None).await.unwrap(), []);
    change("update items set lease_until = clock_timestamp() - interval '1 second' where state = 'leased'")
        .await;
    let left = world.store.left_runs(HOST, None).await.unwrap();
    assert_eq!(left.iter().map(|left| left.run).collect::<Vec<_>>(), [run]);
}

#[tokio::test]
async fn p73_the_time_of_a_run_on_which_a_process_works_counts() {
    let world = world(1).await;
    let run = world.begun().await.id;
    world.store.attend(HOST, Some(&[run])).await.unwrap();
    let later = world.an_hour_later().await;
    later.attend(HOST, Some(&[run])).await.unwrap();
    let shown = later.run(run).await.unwrap();
    assert!(shown.time_spent() > A_MINUTE * 59, "{:?}", shown.time_spent());
    later.apply(run, &human(Decision::Pause), &person(None), None).await.unwrap();
    assert!(later.run(run).await.unwrap().head.spent.time > A_MINUTE * 59);
    assert_eq!(times_unattended(&later, &world, run).await, 0);
    later.forget_attendance().await.unwrap();
    later.close().await;
}

#[tokio::test]
async fn p73_a_person_who_loses_two_races_is_answered_though_the_run_has_to_be_told_that_nobody_worked() {
    let world = world(1).await;
    let RunRow { id: run, created_at: since, .. } = world.queued().await;
    world.store.attend(HOST, None).await.unwrap();
    world.store.leave(HOST, None).await.unwrap();
    let other = Store::connect(world.database.connect_options(), Settings::default()).await.unwrap();
    let apply = |store: &Store, event: Event, proof: Proof| {
        let store = store.clone();
        tokio::spawn(async move { store.apply(run, &event, &proof, None).await })
    };
    let [mut holding, mut hiding, mut aside] =
        [world.aside().await, world.aside().await, world.aside().await];

    // Another process is quicker and lets time count; whether anybody works on the run is not read yet.
    let mut hidden = hiding.begin().await.unwrap();
    sqlx::query("lock table attendance in access exclusive mode").execute(&mut *hidden).await.unwrap();
    let held = hold_run(&mut holding, run).await;
    let quicker = apply(&other, Event::Clock(ClockEvent::Admitted), Proof::Clock);
    await_row_locks(&mut aside, 1).await;
    let slower = apply(&world.store, human(Decision::Cancel), person(None));
    await_row_locks(&mut aside, 2).await;
    held.rollback().await.unwrap();
    quicker.await.unwrap().unwrap();
    await_lock(&mut aside).await;

    // It is quicker again, with what the slower one has to say first.
    let held = hold_run(&mut holding, run).await;
    let quicker = apply(&other, LeftRun { run, since }.event(), Proof::Clock);
    await_row_locks(&mut aside, 1).await;
    hidden.rollback().await.unwrap();
    await_row_locks(&mut aside, 2).await;
    held.rollback().await.unwrap();
    quicker.await.unwrap().unwrap();
    tokio::time::timeout(A_MINUTE, slower).await.expect("nobody waits for themselves").unwrap().unwrap();
    assert_eq!(world.store.run(run).await.unwrap().head.status, RunStatus::Ended { end: End::Cancelled });
    world.assert_sound(run).await;
    other.close().await;
}

#[tokio::test]
async fn p73_a_machine_that_slept_extends_the_leases_of_its_host_that_ran_out_once() {
    let world = world(1).await;
    let run = world.begun().await.id;
    world.store.attend(HOST, None).await.unwrap();
    let claimed = world.claim(run, "w").await.unwrap();
    world.prepare_clock().await;
    let (one, two, elsewhere) = (world.connected().await, world.connected().await, world.connected().await);
    for (store, host) in [(&one, HOST), (&two, HOST), (&elsewhere, "another host")] {
        assert_eq!(store.settle_standstill(host).await.unwrap(), None, "it is the first look");
    }
    let extended_by = async || {
        let minutes = "select (extract(epoch from lease_until - planctl_time($1)) / 60)::int, \
             (extract(epoch from hard_deadline - planctl_time($2)) / 60)::int from items where state = 'leased'";
        let query = sqlx::query_as::<_, (i32, i32)>(minutes);
        let query = query.bind(claimed.lease_until.as_micros()).bind(claimed.hard_deadline.as_micros());
        query.fetch_one(&mut world.aside().await).await.unwrap()
    };
    world.pass_an_hour().await;
    for (store, host, minutes) in [(&elsewhere, "another host", 0), (&one, HOST, 60), (&two, HOST, 60)] {
        let slept = store.settle_standstill(host).await.unwrap().unwrap();
        assert!(slept > A_MINUTE * 59, "{slept:?}");
        assert_eq!(extended_by().await, (minutes, minutes), "{host}");
        assert_eq!(store.settle_standstill(host).await.unwrap(), None, "{host}");
    }
    assert_eq!(times_unattended(&one, &world, run).await, 1);
    assert!(one.run(run).await.unwrap().time_spent() < A_MINUTE);
}
