//! P24: the audit names every row that was changed behind the store's back.

use planctl_store::{Finding, Page, WantedRuns};
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
async fn i2_what_does_not_read_is_a_finding_and_keeps_no_list_from_the_others() {
    for trick in [
        "update runs set head = '{}'",
        "update nodes set record = '{}'",
        "update history set body = '{}' where seq = 2",
    ] {
        let findings = after(trick).await;
        assert!(
            findings.iter().any(|finding| finding.what.contains("does not read")),
            "{trick}: {findings:?}"
        );
    }
    let world = world(1).await;
    let (sick, other) = (world.begun().await, world.queued().await);
    tamper(&world, "update runs set head = '{}' where name = 'fix-auth-1'").await;
    let runs = world.store.runs(&WantedRuns::default(), &Page::ALL).await.unwrap();
    let [Ok(newest), Err(unread)] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((newest.id, unread.run), (other.id, sick.id));
    assert!(unread.error.to_string().contains(&format!("of run {}: a run's head", sick.id)), "{unread:?}");
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
async fn i2_a_list_that_shows_another_state_is_named() {
    assert_eq!(names(&after("update runs set status = 'paused'").await), ["I2"]);
}

#[tokio::test]
async fn i7_an_ask_that_nothing_stands_behind_is_named() {
    let ask = "insert into asks (item, run, node, visit, attempt, work, created_at) \
        select 'x', id, '1', 1, 1, '{}', created_at from runs";
    assert_eq!(names(&after(ask).await), ["I7"]);
}

#[tokio::test]
async fn i8_an_item_whose_generation_went_back_is_named() {
    let findings = after(
        "update items set generation = -1; update items set id = (select item from history \
        where name = 'agent.reported' order by seq desc limit 1)",
    )
    .await;
    assert!(names(&findings).contains(&"I8"), "{findings:?}");
}

#[tokio::test]
async fn i11_news_under_the_lease_of_another_try_is_named() {
    let trick = "update history set item = (select item from history where name = 'agent.reported' limit 1) \
        where name = 'harness.evaluated'";
    let findings = after(trick).await;
    assert!(names(&findings).contains(&"I11"), "{findings:?}");
}

#[tokio::test]
async fn i12_another_graph_and_an_approval_of_another_text_are_named() {
    let findings = after(
        "insert into graphs select 'sha256:other', body from graphs; update runs set graph = 'sha256:other'",
    )
    .await;
    assert_eq!(names(&findings), ["I12"], "{findings:?}");
    let findings = after(APPROVED_OTHERWISE).await;
    assert_eq!(names(&findings), ["I12"], "{findings:?}");
}

const APPROVED_OTHERWISE: &str = "with a as (insert into approvals (workspace, plan, digest, config_digest, config, \
    protected, by, nonce) select workspace, plan, 'sha256:other', 'c', '{}', '{}', 'x', gen_random_uuid() from runs \
    returning id) update runs set approval = a.id from a; select planctl_seal_settings(id) from runs";

#[tokio::test]
async fn i18_a_decision_that_was_used_twice_is_named() {
    let findings = after(
        "alter table approvals drop constraint approvals_nonce_key; insert into approvals (workspace, plan, digest, \
        config_digest, config, protected, by, nonce) select workspace, plan, revision, 'c', '{}', '{}', 'x', n from runs, \
        (select gen_random_uuid() as n) one, generate_series(1, 2); \
        update runs set approval = (select min(id) from approvals); select planctl_seal_settings(id) from runs",
    )
    .await;
    assert_eq!(names(&findings), ["I18"], "{findings:?}");
}

#[tokio::test]
async fn i20_two_active_runs_of_a_workspace_are_named() {
    let findings = after(
        "drop index one_active_run_per_workspace; create temp table twin as select * from runs; \
        update twin set id = gen_random_uuid(), number = 9, name = 'fix-auth-9'; insert into runs select * from twin",
    )
    .await;
    assert_eq!(names(&findings), ["I20"], "{findings:?}");
    assert!(findings[0].what.contains("fix-auth-9"), "{findings:?}");
}

#[tokio::test]
async fn i22_an_answer_that_was_given_and_is_not_in_the_history_is_named() {
    let findings = after(
        "insert into commands (key, run, body_hash, seq, at) select 'k7', id, '', 900, created_at from runs",
    )
    .await;
    assert_eq!(names(&findings), ["I22"], "{findings:?}");
    assert!(findings[0].what.contains("`k7`"), "{findings:?}");
}

#[tokio::test]
async fn i23_a_text_beyond_its_cap_and_an_output_that_is_gone_are_named() {
    let findings = after(
        "update history set body = replace(body::text, '\"tail\":\"done\"', '\"tail\":\"' || repeat('x', 13000) || '\"')::json \
        where name = 'agent.reported'",
    )
    .await;
    assert!(names(&findings).contains(&"I23"), "{findings:?}");
    let findings = after(
        "update history set body = replace(body::text, '\"tail\":\"done\"', '\"tail\":\"done\",\"stored\":\"sha256:gone\"')::json \
        where name = 'agent.reported'",
    )
    .await;
    let gone =
        findings.iter().find(|finding| finding.invariant == "I23").unwrap_or_else(|| panic!("{findings:?}"));
    assert!(gone.what.contains("sha256:gone"), "{findings:?}");
}

#[tokio::test]
async fn i5_i16_news_after_the_end_is_named() {
    let world = world(1).await;
    let run = world.begun().await;
    world.step(run.id, 0).await;
    tamper(
        &world,
        "create temp table last as select * from history where name = 'human.submitted'; \
        update last set seq = (select max(seq) + 1 from history), command = gen_random_uuid(); \
        insert into history select * from last; update runs set seq = seq + 1",
    )
    .await;
    let findings = world.store.audit(run.id).await.unwrap();
    assert!(names(&findings).contains(&"I5"), "{findings:?}");
    assert!(names(&findings).contains(&"I4"), "{findings:?}");
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

/// A run executes what was approved, whatever somebody wrote into the database since.
#[tokio::test]
async fn i12_a_graph_that_was_changed_is_named() {
    let findings = after(
        r#"update graphs set body = replace(body::text, '"command":"true"', '"command":"false"')::json"#,
    )
    .await;
    assert!(findings.iter().any(|finding| finding.what.ends_with("is not what was stored")), "{findings:?}");
}
