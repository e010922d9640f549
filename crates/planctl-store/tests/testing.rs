//! The tests' own support: databases apart from one another, and one cluster for all processes.

#![expect(clippy::unwrap_used, reason = "a test fails where a step of it does")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use planctl_store::cluster::Cluster;
use planctl_store::testing::TestCluster;
use sqlx::PgPool;

async fn pool(options: sqlx::postgres::PgConnectOptions) -> PgPool {
    PgPool::connect_with(options).await.unwrap()
}

#[tokio::test]
async fn each_test_gets_a_copy_of_the_migrated_template() {
    static MIGRATED: AtomicU32 = AtomicU32::new(0);
    // The name changes with each run of the tests, so that the migration is seen to run once.
    let template = format!("copy-{}", std::process::id());
    let fresh = || {
        TestCluster::shared().fresh_database(&template, async |options| {
            MIGRATED.fetch_add(1, Ordering::Relaxed);
            let pool = pool(options).await;
            sqlx::query("create table kept (n int)").execute(&pool).await?;
            pool.close().await;
            Ok(())
        })
    };
    let began = Instant::now();
    let (one, two) = (fresh().await, fresh().await);
    eprintln!("  two databases: {:?}", began.elapsed());
    assert_eq!(MIGRATED.load(Ordering::Relaxed), 1);
    let (one_pool, two_pool) = (pool(one.connect_options()).await, pool(two.connect_options()).await);
    sqlx::query("insert into kept values (1)").execute(&one_pool).await.unwrap();
    let count = sqlx::query_scalar::<_, i64>("select count(*) from kept");
    assert_eq!(count.fetch_one(&two_pool).await.unwrap(), 0);

    let name = one.name().to_owned();
    drop(one);
    let left = sqlx::query_scalar::<_, i64>("select count(*) from pg_database where datname = $1");
    assert_eq!(left.bind(name).fetch_one(&two_pool).await.unwrap(), 0, "a dropped database is gone");
    TestCluster::shared().drop_template(&template).await;
}

#[tokio::test]
async fn a_template_whose_migration_failed_is_made_anew() {
    let template = format!("failing-{}", std::process::id());
    let failed = tokio::spawn({
        let template = template.clone();
        async move { TestCluster::shared().fresh_database(&template, async |_| Err("out of luck".into())).await }
    });
    assert!(failed.await.unwrap_err().is_panic());
    let database = TestCluster::shared().fresh_database(&template, async |_| Ok(())).await;
    pool(database.connect_options()).await;
    TestCluster::shared().drop_template(&template).await;
}

/// Not a test of its own: another test process, for the test below.
#[tokio::test]
#[ignore = "started by another test as a process of its own"]
async fn other_process() {
    let database = TestCluster::shared().empty_database().await;
    let pool = pool(database.connect_options()).await;
    for _ in 0..200 {
        sqlx::query("select 1").execute(&pool).await.unwrap();
    }
}

#[tokio::test]
async fn test_processes_come_and_go_without_disturbing_one_another() {
    let mut others: Vec<_> = (0..6)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "other_process", "--ignored"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    others[0].kill().unwrap();
    others[0].wait().unwrap();
    for other in &mut others[1..] {
        assert!(other.wait().unwrap().success(), "no connection of it was cut");
    }
}

#[tokio::test]
async fn a_private_cluster_leaves_nothing() {
    let test = TestCluster::private();
    let options = test.options().clone();
    let server = Cluster::status(&options).unwrap().server_pid.unwrap();
    pool(test.empty_database().await.connect_options()).await;
    drop(test);
    assert!(!options.state_dir.exists());
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::path::Path::new(&format!("/proc/{server}")).exists() {
        assert!(Instant::now() < deadline, "the server is gone");
        std::thread::sleep(Duration::from_millis(1));
    }
}
