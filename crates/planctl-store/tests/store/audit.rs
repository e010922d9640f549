//! P24: the audit names whatever was changed behind the store's back.

use planctl_store::Finding;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::world::{World, world};

/// Plays one trick on a finished run and returns what the audit finds.
async fn after(trick: &'static str) -> Vec<Finding> {
    let world = world(2).await;
    let run = world.begun().await;
    world.step(run.id, 1).await;
    world.step(run.id, 0).await;
    world.assert_sound(run.id).await;
    tamper(&world, trick).await;
    world.store.audit(run.id).await.unwrap()
}

async fn tamper(world: &World, trick: &'static str) {
    let mut aside = world.aside().await;
    let script = format!("alter table history disable trigger history_is_final; {trick}");
    aside.execute(AssertSqlSafe(script)).await.unwrap();
}

fn names(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.invariant).collect()
}

#[tokio::test]
async fn i4_an_edited_row_is_named() {
    let findings = after(
        "update history set body = replace(body::text, 'failed', 'passed')::json where name = 'node_verified' and attempt = 1",
    )
    .await;
    assert!(names(&findings).contains(&"I4") && names(&findings).contains(&"I2"), "{findings:?}");
    assert!(findings.iter().all(|finding| finding.seq.is_some()), "{findings:?}");
}

#[tokio::test]
async fn i4_an_edited_time_is_named() {
    let findings = after("update history set at = at + interval '1 second' where seq = 5").await;
    assert!(findings.contains(&Finding {
        invariant: "I4",
        seq: Some(5),
        what: "its hash does not fit what it says and the line before".to_owned()
    }));
}

#[tokio::test]
async fn i1_a_missing_line_is_named() {
    let findings = after("delete from history where seq = 4").await;
    assert!(names(&findings).contains(&"I1"), "{findings:?}");
    let findings = after("delete from history where seq = (select max(seq) from history)").await;
    assert!(names(&findings).contains(&"I1"), "a cut end is found by the run's own count: {findings:?}");
}

#[tokio::test]
async fn i2_a_changed_state_is_named() {
    let findings =
        after("update runs set head = replace(head::text, '\"passed\":1', '\"passed\":2')::json").await;
    assert_eq!(names(&findings), ["I2"], "{findings:?}");
    let findings = after("update nodes set record = replace(record::text, '\"visits\":1', '\"visits\":2')::json where node = '1'").await;
    assert_eq!(names(&findings), ["I2"], "{findings:?}");
    assert!(findings[0].what.contains('1'));
}

#[tokio::test]
async fn i7_a_lost_item_is_named() {
    let findings = after("delete from items where lane = 'agent'").await;
    assert_eq!(names(&findings), ["I7", "I7"], "{findings:?}");
}

#[tokio::test]
async fn i3_a_repeated_command_is_named() {
    let findings = after(
        "update history set command = (select command from history where seq = 1) \
         where seq = (select max(seq) from history where kind = 'input')",
    )
    .await;
    assert!(names(&findings).contains(&"I3"), "{findings:?}");
}

#[tokio::test]
async fn p6_history_refuses_changes() {
    let world = world(1).await;
    world.begun().await;
    let mut aside = world.aside().await;
    for change in ["update history set name = 'x'", "delete from history"] {
        assert!(aside.execute(change).await.is_err(), "{change}");
    }
}
