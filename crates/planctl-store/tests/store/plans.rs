//! Plans, approvals, and finding runs by what people type.

use planctl_engine::{ClockEvent, Decision, Digest, End, Event, Refusal, RunStatus};
use planctl_store::{NewApproval, NewRevision, NewRun, Page, PlanStatus, StoreError};

use crate::world::{HOST, await_lock, evaluated, human, linear, person, world};
use sqlx::Connection as _;

#[tokio::test]
async fn p26_only_the_moves_of_a_plans_life_are_allowed() {
    let world = world(1).await;
    let mut allowed = Vec::new();
    for from in PlanStatus::ALL {
        for to in PlanStatus::ALL {
            if from.may_become(to) {
                allowed.push(format!("{} {}", from.as_str(), to.as_str()));
            }
        }
    }
    let expected = [
        "draft verified",
        "verified draft",
        "verified approved",
        "approved draft",
        "approved in-progress",
        "in-progress draft",
        "in-progress done",
        "in-progress failed",
        "done draft",
        "done approved",
        "failed draft",
        "failed approved",
        "failed in-progress",
    ];
    assert_eq!(allowed, expected);
    let refused = world.store.move_plan(world.plan.id, PlanStatus::Done, "somebody", "a wish").await;
    assert!(
        matches!(&refused, Err(StoreError::IllegalTransition { from, to }) if from == "verified" && to == "done"),
        "{refused:?}"
    );
    assert_eq!(world.store.plan(world.plan.id).await.unwrap().status, PlanStatus::Verified);
    // Being there already is no move.
    world.store.move_plan(world.plan.id, PlanStatus::Verified, "harness", "again").await.unwrap();
    assert_eq!(world.store.plan_moves(world.plan.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn p18_an_approval_serves_one_text_and_one_configuration_until_the_text_changes() {
    let world = world(1).await;
    let (config, other) = (Digest::new("sha256:config"), Digest::new("sha256:other"));
    let new = NewApproval {
        plan: world.plan.id,
        digest: &world.digest,
        config_digest: &config,
        config: r#"{"isolation":"auto"}"#,
        protected: r#"{"test.sh":"sha256:x"}"#,
        by: "the owner",
        note: None,
    };
    let (approval, _) = world.store.approve(&new, |_| false).await.unwrap();
    let found = world.store.approval_for(world.plan.id, &world.digest, &config).await.unwrap();
    assert_eq!(found, Some(approval.clone()));
    assert_eq!(world.store.approval_for(world.plan.id, &world.digest, &other).await.unwrap(), None);
    assert_eq!(world.store.approval_for(world.plan.id, &other, &config).await.unwrap(), None);

    let changed = Digest::new("sha256:changed");
    let revision = NewRevision {
        workspace: world.workspace,
        path: "fix-auth.md",
        digest: &changed,
        source: "# Another",
        graph: &linear(2),
        by: "the author",
    };
    let plan = world.store.save_revision(&revision).await.unwrap();
    assert_eq!((plan.id, plan.status, plan.digest), (world.plan.id, PlanStatus::Draft, changed));
    assert_eq!(world.store.approval_for(world.plan.id, &world.digest, &config).await.unwrap(), None);
    assert!(world.store.approval(approval.id).await.unwrap().voided_at.is_some());
    // The old text is still there for the runs that execute it.
    let old = world.store.revision(world.plan.id, &world.digest).await.unwrap();
    assert_eq!((old.source.as_str(), &*old.graph), ("# A plan", &world.graph));
}

#[tokio::test]
async fn saving_the_same_text_again_changes_nothing() {
    let world = world(1).await;
    let revision = NewRevision {
        workspace: world.workspace,
        path: "fix-auth.md",
        digest: &world.digest,
        source: "# A plan",
        graph: &world.graph,
        by: "the author",
    };
    let plan = world.store.save_revision(&revision).await.unwrap();
    assert_eq!(plan.status, PlanStatus::Verified);
    assert_eq!(world.store.workspace(HOST, "/somewhere").await.unwrap(), world.workspace);
    assert_eq!(world.store.plan_at(world.workspace, "fix-auth.md").await.unwrap(), Some(plan));
    assert_eq!(world.store.plan_at(world.workspace, "other.md").await.unwrap(), None);
    assert_eq!(world.store.plans(None, &Page::ALL).await.unwrap().len(), 1);
}

#[tokio::test]
async fn runs_are_found_by_what_people_type() {
    let world = world(1).await;
    let first = world.new_run().await;
    let second = world.new_run().await;
    assert_eq!((first.name.as_str(), second.name.as_str()), ("fix-auth-1", "fix-auth-2"));
    let here = Some(world.workspace);
    let find = async |given: &str| world.store.find_run(given, here).await.map(|run| run.name);
    assert_eq!(find("@last").await.unwrap(), "fix-auth-2");
    // The newest run of another workspace is never meant: a person who cancels it has lost it.
    let elsewhere = Some(world.store.workspace(HOST, "/elsewhere").await.unwrap());
    let newest = world.store.find_run("@last", elsewhere).await;
    assert!(matches!(newest, Err(StoreError::NotFound { .. })), "{newest:?}");
    assert_eq!(world.store.find_run("@last", None).await.unwrap().name, "fix-auth-2");
    assert_eq!(find("fix-auth-1").await.unwrap(), "fix-auth-1");
    assert_eq!(find(&first.id.to_string()).await.unwrap(), "fix-auth-1");
    assert_eq!(find("fix-auth.md").await.unwrap(), "fix-auth-2");
    assert_eq!(find(&second.id.to_string()[..35]).await.unwrap(), "fix-auth-2");
    let ambiguous = find("fix-a").await;
    assert!(
        matches!(&ambiguous, Err(StoreError::Ambiguous { candidates, .. }) if candidates.len() == 2),
        "{ambiguous:?}"
    );
    // Of several the only one that goes on is meant, and where none does, the only one that failed.
    let cancel = async |run| {
        world.store.apply(run, &human(Decision::Cancel), &person(None), None).await.unwrap();
    };
    cancel(second.id).await;
    assert_eq!(find("fix-a").await.unwrap(), "fix-auth-1");
    cancel(first.id).await;
    assert!(matches!(find("fix-a").await, Err(StoreError::Ambiguous { .. })));
    let mut aside = world.aside().await;
    let failed = "update runs set head = jsonb_set(head::jsonb, '{status,end}', '\"failed\"')::json where name = 'fix-auth-1'";
    sqlx::query(failed).execute(&mut aside).await.unwrap();
    assert_eq!(find("fix-a").await.unwrap(), "fix-auth-1");
    for nothing in ["nope", "", "%", "fix_auth-1", "'; drop table runs"] {
        let outcome = find(nothing).await;
        assert!(matches!(outcome, Err(StoreError::NotFound { .. })), "{nothing}: {outcome:?}");
    }
    assert_eq!(world.store.newest_run_of(world.plan.id).await.unwrap().unwrap().id, second.id);
}

#[tokio::test]
async fn runs_are_counted_in_each_workspace_and_a_name_means_the_one_that_is_here() {
    let world = world(1).await;
    let first = world.new_run().await;
    let there = world.store.workspace(HOST, "/elsewhere").await.unwrap();
    let revision = NewRevision {
        workspace: there,
        path: "fix-auth.md",
        digest: &world.digest,
        source: "# A plan",
        graph: &world.graph,
        by: "the author",
    };
    let plan = world.store.save_revision(&revision).await.unwrap();
    let new = NewRun {
        plan: plan.id,
        revision: &world.digest,
        stem: "fix-auth",
        approval: None,
        settings: "{}",
        served: &[],
        request: None,
    };
    let other = world.store.create_run(&new).await.unwrap();
    assert_eq!((first.name.as_str(), other.name.as_str()), ("fix-auth-1", "fix-auth-1"));
    let find = async |given: &str, place| world.store.find_run(given, place).await.map(|run| run.id);
    for given in ["fix-auth-1", "fix-a", "fix-auth.md"] {
        assert_eq!(find(given, Some(world.workspace)).await.unwrap(), first.id, "{given}");
        assert_eq!(find(given, Some(there)).await.unwrap(), other.id, "{given}");
    }
    let ambiguous = find("fix-auth-1", None).await;
    assert!(
        matches!(&ambiguous, Err(StoreError::Ambiguous { candidates, .. })
            if candidates.iter().any(|one| one == &format!("{} in /elsewhere", other.id))),
        "{ambiguous:?}"
    );
    let nowhere = world.store.workspace(HOST, "/nowhere").await.unwrap();
    assert!(matches!(find("fix-auth-1", Some(nowhere)).await, Err(StoreError::Ambiguous { .. })));
    let second = world.new_run().await;
    assert_eq!(second.name, "fix-auth-2");
    assert_eq!(find("fix-auth-2", Some(there)).await.unwrap(), second.id, "a name that one run has is found");
}

#[tokio::test]
async fn runs_made_at_once_get_different_names() {
    let world = world(1).await;
    let new = NewRun {
        plan: world.plan.id,
        revision: &world.digest,
        stem: "x",
        approval: None,
        settings: "{}",
        served: &[],
        request: None,
    };
    let made = tokio::join!(
        world.store.create_run(&new),
        world.store.create_run(&new),
        world.store.create_run(&new),
        world.store.create_run(&new)
    );
    let mut names: Vec<_> =
        [made.0, made.1, made.2, made.3].into_iter().map(|run| run.unwrap().name).collect();
    names.sort();
    assert_eq!(names, ["x-1", "x-2", "x-3", "x-4"]);
}

#[tokio::test]
async fn a_paused_run_goes_on_with_the_graph_of_its_new_revision() {
    let world = world(1).await;
    let run = world.begun().await;
    world.step(run.id, 1).await;
    world.step(run.id, 1).await;
    let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
    let revise = human(Decision::Answer { item: ask.item, answer: planctl_engine::Answer::Revise });
    world.store.apply(run.id, &revise, &person(None), None).await.unwrap();
    assert_eq!(world.store.plan(world.plan.id).await.unwrap().status, PlanStatus::Draft);
    let changed = Digest::new("sha256:changed");
    let graph = linear(2);
    let revision = NewRevision {
        workspace: world.workspace,
        path: "fix-auth.md",
        digest: &changed,
        source: "# Two steps",
        graph: &graph,
        by: "the author",
    };
    world.store.save_revision(&revision).await.unwrap();
    let event = human(Decision::revise(changed.clone(), &world.graph, &graph, None));
    world.store.apply(run.id, &event, &person(None), None).await.unwrap();
    let row = world.store.run(run.id).await.unwrap();
    assert_eq!(row.revision, changed);
    let admitted = Event::Clock(ClockEvent::Admitted);
    world.store.apply(run.id, &admitted, &planctl_store::Proof::Clock, None).await.unwrap();
    world.step(run.id, 0).await;
    let applied = world.step(run.id, 0).await;
    assert!(matches!(applied.head.status, planctl_engine::RunStatus::Ended { .. }), "{:?}", applied.head);
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn a_revision_that_was_made_against_an_older_one_is_refused() {
    let world = world(1).await;
    let run = world.begun().await;
    let pause = async || {
        world.step(run.id, 1).await;
        world.step(run.id, 1).await;
        let ask = world.store.asks(Some(run.id), None).await.unwrap().remove(0);
        let revise = human(Decision::Answer { item: ask.item, answer: planctl_engine::Answer::Revise });
        world.store.apply(run.id, &revise, &person(None), None).await.unwrap();
    };
    let saved = async |digest: &str, graph: &planctl_engine::Graph| {
        let digest = Digest::new(digest);
        let revision = NewRevision {
            workspace: world.workspace,
            path: "fix-auth.md",
            digest: &digest,
            source: "# Steps",
            graph,
            by: "the author",
        };
        world.store.save_revision(&revision).await.unwrap();
        digest
    };
    let revise = async |revision: &Digest, old: &planctl_engine::Graph, new: &planctl_engine::Graph| {
        let event = human(Decision::revise(revision.clone(), old, new, None));
        world.store.apply(run.id, &event, &person(None), None).await
    };
    let (two, three) = (linear(2), linear(3));
    let (second, third) = (saved("sha256:two", &two).await, saved("sha256:three", &three).await);
    pause().await;
    revise(&second, &world.graph, &two).await.unwrap();
    world.store.admit_run(run.id).await.unwrap();
    pause().await;
    let late = revise(&third, &world.graph, &three).await;
    assert!(matches!(late, Err(StoreError::Refused(Refusal::RevisedMeanwhile))), "{late:?}");
    revise(&third, &two, &three).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn an_output_is_kept_under_its_digest_once() {
    let world = world(1).await;
    let digest = Digest::new("sha256:out");
    world.store.put_output(&digest, b"a\0b").await.unwrap();
    world.store.put_output(&digest, b"a\0b").await.unwrap();
    assert_eq!(world.store.output(&digest).await.unwrap().as_deref(), Some(&b"a\0b"[..]));
    let empty = Digest::new("sha256:empty");
    world.store.put_output(&empty, b"").await.unwrap();
    assert_eq!(world.store.output(&empty).await.unwrap(), None);
}

#[tokio::test]
async fn a_run_that_does_not_exist_is_said_not_to() {
    let world = world(1).await;
    let nobody = planctl_engine::RunId::from_u128(7);
    let outcome = world
        .store
        .apply(nobody, &Event::Clock(ClockEvent::Admitted), &planctl_store::Proof::Clock, None)
        .await;
    assert!(matches!(outcome, Err(StoreError::NotFound { .. })), "{outcome:?}");
    assert!(matches!(world.store.ask(99).await, Err(StoreError::NoAsk { number: 99 })));
}

/// Finding B3: the last verdict waits for the row of the plan while its author saves another text.
#[tokio::test]
async fn b3_a_text_that_is_saved_while_its_run_ends_stays_a_draft() {
    let world = world(1).await;
    let run = world.begun().await;
    let gate = world.gate(run.id).await;
    let (mut author, mut aside) = (world.aside().await, world.aside().await);
    let mut saving = author.begin().await.unwrap();
    let saves = "with saved as (insert into revisions (plan, digest, source, graph) \
                 select plan, 'sha256:new', source, graph from revisions) \
                 update plans set digest = 'sha256:new', status = 'draft'";
    sqlx::query(saves).execute(&mut *saving).await.unwrap();
    let store = world.store.clone();
    let ending = tokio::spawn(async move {
        store.apply(gate.item.run, &evaluated(&gate.item.at, 0), &gate.proof(), None).await
    });
    await_lock(&mut aside).await;
    saving.commit().await.unwrap();
    let applied = ending.await.unwrap().unwrap();
    assert_eq!(applied.head.status, RunStatus::Ended { end: End::Done });
    let plan = world.store.plan(world.plan.id).await.unwrap();
    assert_eq!((plan.status, plan.digest.as_str()), (PlanStatus::Draft, "sha256:new"));
    let moves = world.store.plan_moves(world.plan.id).await.unwrap();
    assert!(moves.iter().all(|moved| moved.to != PlanStatus::Done), "nobody ran the new text: {moves:?}");
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn several_who_approve_one_text_at_once_record_one_approval() {
    let world = world(1).await;
    let approving = (0..16).map(|_| {
        let (store, plan, digest) = (world.store.clone(), world.plan.id, world.digest.clone());
        tokio::spawn(async move {
            let config_digest = Digest::new("sha256:config");
            let new = NewApproval {
                plan,
                digest: &digest,
                config_digest: &config_digest,
                config: "{}",
                protected: "{}",
                by: "the owner",
                note: None,
            };
            store.approve(&new, |held| held.by == "the owner").await.unwrap()
        })
    });
    let mut approvals = Vec::new();
    for approving in approving.collect::<Vec<_>>() {
        approvals.push(approving.await.unwrap());
    }
    assert_eq!(approvals.iter().filter(|(_, repeated)| !repeated).count(), 1);
    assert!(approvals.iter().all(|(approval, _)| *approval == approvals[0].0), "{approvals:#?}");
}
