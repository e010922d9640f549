//! Usage that holders of items report: kept with their leases, charged with the event that ends them.

use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, Answer, Budget, ChildApproval, Decision, Event, Graph, GraphParts, NodeKind,
    Outcome, RedFirst, RunId, Spent, SubPlan, Usage,
};
use planctl_store::{
    Claim, ClaimLane, Claimed, NewAround, NewRun, Proof, Renewal, Settings, Store, StoreError, Token,
};

use crate::world::{
    World, await_lock, evaluated, hold_run, holder, human, linear, linear_with, next_claim, person, released,
    reported, world, world_of,
};

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
    for (generation, token) in [(generation, Token::generate()), (generation + 1, work.token.clone())] {
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
    world
        .store
        .apply(run.id, &reported(&second.item.at), &second.proof(), Some(&next_claim()))
        .await
        .unwrap();
    assert_eq!(spent(&world, &second).await.tokens, 10);
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}

/// Counts beyond those that the API takes may be stored by an earlier version: they are charged, and hold nothing up.
#[tokio::test]
async fn a_count_that_no_database_column_holds_is_charged_as_the_most_that_one_holds() {
    let world = world(1).await;
    let run = world.begun().await;
    let most = Usage {
        input_tokens: u64::MAX,
        cached_input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        micro_usd: Some(u64::MAX),
        estimated: true,
        tokens_estimated: true,
        ..Usage::default()
    };
    for _ in 0..2 {
        let work = work(&world, run.id).await;
        assert!(note(&world, &work, &most).await);
        world.store.apply(run.id, &released(&work.item.at), &work.proof(), None).await.unwrap();
        assert_eq!(spent(&world, &work).await.tokens, u64::MAX);
    }
    let workspace = world.store.run(run.id).await.unwrap().workspace;
    for of in [Some(workspace), None] {
        let used = world.store.spent_today("UTC", of).await.unwrap();
        assert_eq!(used, (i64::MAX as u64, i64::MAX as u64));
    }
    world.store.apply(run.id, &human(Decision::Cancel), &person(None), None).await.unwrap();
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
    world.store.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await.unwrap();
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

/// Finding B5: nobody reports what was used any more, so what was said by then is charged.
#[tokio::test]
async fn p15_b5_what_a_worker_used_is_charged_where_its_work_is_taken_back() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = work(&world, run.id).await;
    assert!(note(&world, &work, &tokens(40)).await);
    world.store.apply(run.id, &human(Decision::Cancel), &person(None), None).await.unwrap();
    assert_eq!((spent(&world, &work).await.tokens, spent(&world, &work).await.metered), (40, 1));
    let late = world.store.apply(run.id, &reported(&work.item.at), &work.proof(), None).await;
    assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
    assert_eq!(spent(&world, &work).await.tokens, 40);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p15_b5_what_a_worker_used_is_charged_where_its_step_stood_still_for_too_long() {
    let mut parts = GraphParts::from(linear(1));
    parts.limits.stale_after = Some(Duration::from_micros(1));
    let world = world_of(Graph::new(parts).unwrap()).await;
    let run = world.begun().await;
    let first = work(&world, run.id).await;
    assert!(note(&world, &first, &tokens(40)).await);
    let due = loop {
        if let Some(Ok(due)) = world.store.due_timers(&[], 1).await.unwrap().pop() {
            break due;
        }
    };
    world.store.apply(run.id, &due.event(), &Proof::Clock, None).await.unwrap();
    assert_eq!(spent(&world, &first).await.tokens, 40);
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    let again = human(Decision::Answer { item: ask.item, answer: Answer::Retry });
    world.store.apply(run.id, &again, &person(None), None).await.unwrap();
    world.store.acknowledge(&first).await.unwrap();
    let second = work(&world, run.id).await;
    world.store.apply(run.id, &reported(&second.item.at), &second.proof(), None).await.unwrap();
    assert_eq!(spent(&world, &first).await.tokens, 40, "once");
    world.assert_sound(run.id).await;
}

/// A worker is answered that its usage is kept, so it is charged, whatever is decided at that moment.
#[tokio::test]
async fn p15_what_a_worker_says_while_its_work_is_taken_back_is_charged() {
    for said_before in [None, Some(40)] {
        let world = world(1).await;
        let run = world.begun().await;
        let work = work(&world, run.id).await;
        if let Some(used) = said_before {
            assert!(note(&world, &work, &tokens(used)).await);
        }
        let (mut other, mut aside) = (world.aside().await, world.aside().await);
        let held = hold_run(&mut other, run.id).await;
        let (pause, by) = (human(Decision::Pause), person(None));
        let paused = world.store.apply(run.id, &pause, &by, None);
        let noted = async {
            await_lock(&mut aside).await;
            assert!(note(&world, &work, &tokens(140)).await);
            held.commit().await.unwrap();
        };
        let (paused, ()) = tokio::join!(paused, noted);
        paused.unwrap();
        assert_eq!(spent(&world, &work).await.tokens, 140, "{said_before:?}");
        world.assert_sound(run.id).await;
    }
}

/// A gate notes the most that its judge may use before it asks.
#[tokio::test]
async fn p_71_the_most_of_a_judge_is_charged_where_its_gate_is_lost_or_taken_back() {
    for is_lost in [true, false] {
        let world = world(1).await;
        let run = world.begun().await;
        let gate = world.gate(run.id).await;
        let most = Usage { micro_usd: Some(7), tokens_estimated: true, ..tokens(40) };
        assert!(note(&world, &gate, &most).await);
        if is_lost {
            let later = world.an_hour_later().await;
            let expired = later.expired(&[], 10).await.unwrap().remove(0).unwrap();
            later.apply(run.id, &expired.event(), &expired.proof(), None).await.unwrap();
            later.close().await;
        } else {
            world.store.apply(run.id, &human(Decision::Pause), &person(None), None).await.unwrap();
        }
        let spent = spent(&world, &gate).await;
        assert_eq!((spent.tokens, spent.micro_usd), (40, 7), "{is_lost}");
        let sums = world.store.usage_sums(run.id).await.unwrap();
        assert_eq!(sums[&gate.item.at.node].estimated_tokens, 40, "{is_lost}");
        let late = world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await;
        assert!(matches!(late, Err(StoreError::StaleLease)), "{late:?}");
        world.assert_sound(run.id).await;
    }
}

/// A plan of two steps and of a plan between them, with a thousand tokens for all.
fn around_another() -> Graph {
    let budget = Budget { tokens: Some(1000), ..Budget::default() };
    let mut parts = GraphParts::from(linear_with(3, budget, RedFirst::Off));
    for node in parts.nodes.iter_mut().filter(|node| node.id.as_str() == "2") {
        node.kind = NodeKind::SubPlan(Box::new(SubPlan {
            path: "within.md".to_owned(),
            folder: None,
            approval: ChildApproval::Inherit,
            on_exhausted: Outcome::Failed,
            until: None,
            cycles: 1,
        }));
    }
    Graph::new(parts).unwrap()
}

/// Finding B5: a plan that names no budget uses no more than the one around it has left.
#[tokio::test]
async fn p15_b5_a_run_within_another_has_what_is_left_of_its_budget() {
    let world = world_of(around_another()).await;
    let run = world.begun().await;
    let work = work(&world, run.id).await;
    assert!(note(&world, &work, &tokens(300)).await);
    let applied =
        world.store.apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await;
    let gate = applied.unwrap().claimed_next.unwrap();
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    let claim = Claim {
        lane: ClaimLane::Gate,
        run: Some(run.id),
        except: Vec::new(),
        holder: holder("me"),
        lease: Duration::from_secs(15),
    };
    let nested = world.store.claim(&claim).await.unwrap().expect("the plan within is to begin");
    let elsewhere = world.begun_at("/within", &linear(1)).await;
    let new = NewRun {
        plan: elsewhere.plan,
        revision: &elsewhere.revision,
        stem: "within",
        approval: None,
        settings: "{}",
        served: &[],
        request: None,
    };
    let around = NewAround { parent: run.id, item: &nested.item.id, place: "/somewhere", depth: 1 };
    let child = world.store.create_sub_plan(&new, &around).await.unwrap();
    assert_eq!(child.head.budget, Budget { tokens: Some(700), ..Budget::default() });
    assert_eq!(world.store.create_sub_plan(&new, &around).await.unwrap().id, child.id);
    world.submit(child.id).await;
    for run in [child.id, run.id] {
        world.assert_sound(run).await;
    }
}

#[tokio::test]
async fn p73_a_lease_whose_holder_uses_the_budget_up_ends_and_a_person_is_asked() {
    let budget = Budget { tokens: Some(1000), ..Budget::default() };
    let world = world_of(linear_with(1, budget, RedFirst::Off)).await;
    let run = world.begun().await;
    let work = work(&world, run.id).await;
    assert!(note(&world, &work, &tokens(1000)).await);
    let renewed = async || {
        let lease = Duration::from_secs(60);
        world.store.renew_by(&work.item.id, work.generation, &work.token, lease).await.unwrap()
    };
    assert!(matches!(renewed().await, Renewal::Held { .. }), "what the budget allows");
    assert!(world.store.refusals(run.id).await.unwrap().is_empty(), "and nobody hears of it");
    assert!(note(&world, &work, &tokens(1001)).await);
    assert_eq!(renewed().await, Renewal::Cancelled);
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    assert_eq!((ask.ask.kind.as_str(), ask.ask.reason.as_str()), ("budget", "budget"));
    assert_eq!(spent(&world, &work).await.tokens, 1001);
    assert!(world.store.audit(run.id).await.unwrap().is_empty());
}
