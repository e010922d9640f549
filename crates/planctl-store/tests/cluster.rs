//! The private cluster against real servers: first runs, sharing, take-over, crashes, strange places and users.

#![expect(clippy::unwrap_used, reason = "a test fails where a step of it does")]

#[path = "cluster/support.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use planctl_store::cluster::{Cluster, ClusterError, ClusterOptions, Stopped};
use sqlx::Connection as _;
use support::{
    Child, ClusterDir, count, is_root, kill9, kill9_servers, query, say, soon, soon_async, wait_for_rows,
};

/// Not a test of its own: the second planctl process of the tests below.
#[test]
#[ignore = "started by other tests as a process of its own"]
fn child_process() {
    support::child_process();
}

/// Not a test of its own: the watcher of a lingering server of the tests below.
#[test]
#[ignore = "started by other tests as a process of its own"]
fn watcher_process() {
    support::watcher_process();
}

async fn attach(place: &ClusterDir) -> Cluster {
    Cluster::attach(place.options()).await.unwrap()
}

#[tokio::test]
async fn a_first_run_makes_a_database_and_a_second_one_finds_it() {
    let place = ClusterDir::new();
    let began = Instant::now();
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    say(&format!("first run to first query: {:?}", began.elapsed()));
    assert!(cluster.is_owner());
    assert_eq!(
        cluster.describe(),
        format!("private Postgres {} in {}/pg/{}", cluster.major(), place.state().display(), cluster.major())
    );
    query(&cluster, "insert into kept values (1)").await.unwrap();
    let began = Instant::now();
    drop(cluster);
    say(&format!("stop: {:?}", began.elapsed()));
    assert!(!Cluster::status(&place.options()).unwrap().running, "the last one out stops the server");

    let began = Instant::now();
    let cluster = attach(&place).await;
    assert_eq!(count(&cluster, "kept").await.unwrap(), 1);
    say(&format!("warm start to first query: {:?}", began.elapsed()));
    commits_are_durable_and_nothing_listens_on_tcp(&cluster).await;
}

async fn commits_are_durable_and_nothing_listens_on_tcp(cluster: &Cluster) {
    for (setting, value) in
        [("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on"), ("listen_addresses", "")]
    {
        assert_eq!(query(cluster, &format!("show {setting}")).await.unwrap(), value, "{setting}");
    }
    assert_eq!(query(cluster, "show server_encoding").await.unwrap(), "UTF8");
    let mode = fs::metadata(cluster.data_dir()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert_eq!(fs::metadata(cluster.socket_dir()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_server_has_no_memory_that_a_worker_may_write_to_or_a_logout_removes() {
    let place = ClusterDir::new();
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    let postmaster = server_pid(&place).unwrap();
    let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap();
    let own = postmaster.to_string();
    for process in children.split_whitespace().chain([own.as_str()]) {
        let mapped = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        assert!(!mapped.contains("/dev/shm/"), "{process}: {mapped}");
    }
}

#[tokio::test]
async fn the_owners_leaving_hands_the_server_to_the_next_one() {
    let place = ClusterDir::new();
    let first = attach(&place).await;
    let began = Instant::now();
    let second = attach(&place).await;
    say(&format!("attach beside an owner: {:?}", began.elapsed()));
    assert!(first.is_owner() && !second.is_owner());
    query(&first, "create table kept (n int)").await.unwrap();
    assert_eq!(count(&second, "kept").await.unwrap(), 0);
    let began = Instant::now();
    drop(first);
    soon("the second one owns the server", || second.is_owner());
    assert_eq!(count(&second, "kept").await.unwrap(), 0);
    say(&format!("handed over within {:?}", began.elapsed()));
}

#[tokio::test]
async fn attaching_opens_no_session_whether_the_server_is_started_shared_or_adopted() {
    let place = ClusterDir::new();
    let lingering = place.lingering(Duration::from_secs(600));
    let first = Cluster::attach(lingering.clone()).await.unwrap();
    let guest = attach(&place).await;
    assert!(first.is_owner() && !guest.is_owner());
    drop((first, guest));
    let heir = attach(&place).await;
    assert!(heir.is_owner());
    assert_eq!(support::sessions(&heir).await, 0);
    assert_eq!(query(&heir, "select '1'").await.unwrap(), "1");
    assert_eq!(support::sessions(&heir).await, 1);
}

#[tokio::test]
async fn database_and_roles_are_made_again_where_they_are_missing() {
    let place = ClusterDir::new();
    let cluster = attach(&place).await;
    let mut server = support::server(&cluster).await;
    for statement in ["drop database planctl", "drop role planctl_app"] {
        sqlx::query(statement).execute(&mut server).await.unwrap();
    }
    let (one, two) = tokio::join!(cluster.create_roles(), cluster.create_roles());
    one.and(two).unwrap();
    let mut app = sqlx::PgConnection::connect_with(&cluster.connect_options()).await.unwrap();
    sqlx::query("select 1").execute(&mut app).await.unwrap();
}

#[tokio::test]
async fn an_owner_killed_with_9_is_replaced_by_one_of_the_others_and_pools_reconnect() {
    let place = ClusterDir::new();
    let owner = Child::attach(&place);
    let (one, two) = (attach(&place).await, attach(&place).await);
    assert!(!one.is_owner() && !two.is_owner());
    let pool = sqlx::PgPool::connect_with(one.owner_options()).await.unwrap();
    sqlx::query("create table kept (n int)").execute(&pool).await.unwrap();
    sqlx::query("insert into kept values (7)").execute(&pool).await.unwrap();
    let began = Instant::now();
    owner.kill9();
    soon("one of them owns the server", || one.is_owner() || two.is_owner());
    wait_for_rows(&pool, 1).await;
    say(&format!("owner killed with 9; query answered after {:?}", began.elapsed()));
    soon_async("the other is served", async || count(&two, "kept").await.is_ok()).await;
    assert!(one.is_owner() != two.is_owner(), "there is one owner");
}

#[tokio::test]
async fn a_server_killed_with_9_comes_back_with_its_data() {
    let place = ClusterDir::new();
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    query(&cluster, "insert into kept values (1)").await.unwrap();
    let before = Cluster::status(&place.options()).unwrap().server_pid.unwrap();
    let began = Instant::now();
    kill9(before);
    soon_async("the data are served", async || matches!(count(&cluster, "kept").await, Ok(1))).await;
    say(&format!("server killed with 9; query answered after {:?}", began.elapsed()));
    let after = Cluster::status(&place.options()).unwrap().server_pid.unwrap();
    assert_ne!(before, after);
    assert!(cluster.is_owner());
}

#[tokio::test]
async fn everything_killed_with_9_at_once_starts_again_also_where_nobody_reaps() {
    // The orphans come to this process, which leaves them zombies, as a container without an init does.
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).unwrap();
    let place = ClusterDir::new();
    let owner = Child::attach(&place);
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    query(&cluster, "insert into kept values (1)").await.unwrap();
    drop(cluster);
    let server = Cluster::status(&place.options()).unwrap().server_pid.unwrap();
    owner.stop_process();
    kill9_servers(server);
    owner.kill9();
    let began = Instant::now();
    let cluster = attach(&place).await;
    assert_eq!(count(&cluster, "kept").await.unwrap(), 1);
    say(&format!("after kill -9 of all: first query after {:?}", began.elapsed()));
}

#[tokio::test]
async fn a_dead_owner_leaves_no_server_behind() {
    let place = ClusterDir::new();
    let owner = Child::attach(&place);
    assert!(Cluster::status(&place.options()).unwrap().running);
    owner.kill9();
    soon("the server is gone", || !Cluster::status(&place.options()).unwrap().running);
}

fn server_pid(place: &ClusterDir) -> Option<u32> {
    Cluster::status(&place.options()).unwrap().server_pid
}

#[tokio::test]
async fn a_server_that_lingers_is_adopted_by_the_next_process_also_by_one_that_stops_its_own() {
    let place = ClusterDir::new();
    let first = Cluster::attach(place.lingering(Duration::from_secs(600))).await.unwrap();
    query(&first, "create table kept (n int)").await.unwrap();
    let server = server_pid(&place);
    drop(first);
    let began = Instant::now();
    let second = attach(&place).await;
    say(&format!("attached to a server that lingers: {:?}", began.elapsed()));
    assert!(second.is_owner());
    assert_eq!(count(&second, "kept").await.unwrap(), 0);
    assert_eq!(server_pid(&place), server);
    drop(second);
    assert_eq!(server_pid(&place), server, "its watcher ends it");

    assert!(matches!(Cluster::stop(&place.options()).unwrap(), Stopped::Stopped { owner_pid: None, .. }));
    let third = attach(&place).await;
    assert_ne!(server_pid(&place), server);
    drop(third);
    assert_eq!(server_pid(&place), None, "nobody watches this one");
}

#[tokio::test]
async fn a_server_that_lingers_outlives_the_kill_of_its_owner() {
    let place = ClusterDir::new();
    let owner = Child::attach_lingering(&place, Duration::from_secs(600));
    let server = server_pid(&place);
    owner.kill9();
    let next = attach(&place).await;
    assert_eq!(query(&next, "select '1'").await.unwrap(), "1");
    assert_eq!(server_pid(&place), server);
}

#[tokio::test]
async fn a_server_that_lingers_ends_once_nobody_is_attached_for_a_while() {
    let place = ClusterDir::new();
    let cluster = Cluster::attach(place.lingering(Duration::from_millis(5))).await.unwrap();
    let server = server_pid(&place);
    for _ in 0..50 {
        query(&cluster, "select pg_sleep(0.005)::text").await.unwrap();
    }
    assert_eq!(server_pid(&place), server, "it stays while a process is attached");
    drop(cluster);
    soon("the server has ended", || server_pid(&place).is_none());
    // A process that comes while it ends waits, and starts another.
    for _ in 0..5 {
        let cluster = Cluster::attach(place.lingering(Duration::from_millis(5))).await.unwrap();
        assert_eq!(query(&cluster, "select '1'").await.unwrap(), "1");
    }
}

#[tokio::test]
async fn a_server_that_lingers_ends_with_its_folder_and_is_not_adopted_without_its_watcher() {
    let place = ClusterDir::new();
    drop(Cluster::attach(place.lingering(Duration::from_secs(600))).await.unwrap());
    let unwatched = server_pid(&place).unwrap();
    let watcher = support::watcher_of(unwatched);
    kill9(watcher);
    soon("the watcher has ended", || {
        fs::read_to_string(format!("/proc/{watcher}/stat")).map_or(true, |stat| stat.contains(") Z"))
    });
    let next = Cluster::attach(place.lingering(Duration::from_secs(600))).await.unwrap();
    assert_ne!(server_pid(&place), Some(unwatched));
    drop(next);
    let server = server_pid(&place).unwrap();
    drop(place);
    // A child of this process that nobody waits for keeps its number, and has no command line any more.
    soon("the server has ended", || {
        fs::read(format!("/proc/{server}/cmdline")).is_ok_and(|line| line.is_empty())
    });
}

#[tokio::test]
async fn an_interrupted_first_run_leaves_nothing_half_made() {
    let place = ClusterDir::new();
    let pg = place.state().join("pg");
    for _ in 0..3 {
        let child = Child::start(&place);
        soon("initdb is at work", || {
            fs::read_dir(&pg).is_ok_and(|entries| {
                entries.flatten().any(|entry| entry.path().extension().is_some_and(|e| e == "tmp"))
            })
        });
        child.kill9();
        assert!(Cluster::status(&place.options()).unwrap().major.is_none(), "no data are there yet");
    }
    let cluster = attach(&place).await;
    query(&cluster, "select 1").await.unwrap();
    let left: Vec<_> = fs::read_dir(&pg)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn many_processes_may_make_the_first_run_at_once() {
    let place = ClusterDir::new();
    let children: Vec<Child> = (0..4).map(|_| Child::start(&place)).collect();
    let owners = children.iter().filter(|child| child.await_attached().contains("owner=true")).count();
    assert_eq!(owners, 1);
}

#[tokio::test]
async fn a_parent_that_the_database_user_cant_pass_is_named() {
    let place = ClusterDir::new();
    let closed = place.root().join("closed");
    fs::create_dir_all(closed.join("neighbour")).unwrap();
    let mode = if is_root() { 0o700 } else { 0o600 };
    fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
    let error = Cluster::attach(ClusterOptions::new(closed.join("state"))).await.unwrap_err();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let text = error.to_string();
    assert!(
        matches!(error, ClusterError::ParentNotTraversable { ref parent, .. } if *parent == closed),
        "{text}"
    );
    assert!(text.contains("PLANCTL_STATE_DIR"), "{text}");
}

#[tokio::test]
async fn an_empty_closed_state_directory_is_taken_as_ours() {
    let place = ClusterDir::new();
    fs::create_dir(place.state()).unwrap();
    fs::set_permissions(place.state(), fs::Permissions::from_mode(0o700)).unwrap();
    let cluster = attach(&place).await;
    query(&cluster, "select 1").await.unwrap();
    drop(cluster);
    fs::set_permissions(place.state(), fs::Permissions::from_mode(0o700)).unwrap();
    let cluster = attach(&place).await;
    query(&cluster, "select 1").await.unwrap();
}

#[tokio::test]
async fn a_first_run_killed_at_any_moment_can_be_taken_up() {
    let place = ClusterDir::new();
    for round in 0..12u32 {
        let child = Child::start(&place);
        // The moments spread over the whole first run: the first is before anything, the last after its end.
        tokio::time::sleep(Duration::from_millis(u64::from(round * round * 5))).await;
        child.kill9();
    }
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    assert_eq!(count(&cluster, "kept").await.unwrap(), 0);
}

#[tokio::test]
async fn long_and_strange_state_directories_work() {
    let place = ClusterDir::new();
    for name in [format!("{}/{}", "long".repeat(30), "er".repeat(30)), "a b,\"c\" 'd' %e ü".to_owned()] {
        let options = ClusterOptions::new(place.root().join(name));
        let cluster = Cluster::attach(options.clone()).await.unwrap();
        assert_eq!(query(&cluster, "select 'here'").await.unwrap(), "here");
        let pool = sqlx::PgPool::connect(&cluster.url()).await.unwrap();
        sqlx::query("select 1").execute(&pool).await.unwrap();
        pool.close().await;
        let elsewhere =
            cluster.socket_dir().starts_with("/tmp/planctl-").then(|| cluster.socket_dir().to_owned());
        drop(cluster);
        Cluster::reset(&options).unwrap();
        if let Some(dir) = elsewhere {
            fs::remove_dir_all(dir).unwrap();
        }
    }
}

#[tokio::test]
async fn reset_refuses_while_anyone_is_attached_and_removes_the_data_after() {
    let place = ClusterDir::new();
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    let data = cluster.data_dir();
    let error = Cluster::reset(&place.options()).unwrap_err();
    assert!(matches!(error, ClusterError::InUse { .. }), "{error}");
    drop(cluster);
    Cluster::reset(&place.options()).unwrap();
    assert!(!data.exists());
    let cluster = attach(&place).await;
    assert!(count(&cluster, "kept").await.is_err(), "the table is gone");
}

#[tokio::test]
async fn data_that_are_gone_are_missed_and_not_made_anew_until_a_reset() {
    let place = ClusterDir::new();
    let cluster = attach(&place).await;
    query(&cluster, "create table kept (n int)").await.unwrap();
    let (data, away) = (cluster.data_dir(), place.root().join("away"));
    fs::rename(&data, &away).unwrap();
    let server = fs::read_to_string(away.join("postmaster.pid")).unwrap();
    kill9_servers(server.lines().next().unwrap().parse().unwrap());
    let trouble = || cluster.trouble().unwrap_or_default();
    soon("the process that runs it says so", || trouble().contains("find the data of the private Postgres"));
    assert!(!data.exists());
    fs::rename(&away, &data).unwrap();
    soon_async("it is back", async || count(&cluster, "kept").await.is_ok()).await;
    assert_eq!(cluster.trouble(), None);
    drop(cluster);

    fs::rename(&data, &away).unwrap();
    let error = Cluster::attach(place.options()).await.unwrap_err();
    assert!(matches!(error, ClusterError::DataGone { .. }), "{error}");
    assert!(!data.exists());
    Cluster::reset(&place.options()).unwrap();
    let cluster = attach(&place).await;
    assert!(count(&cluster, "kept").await.is_err(), "the table is elsewhere");
}

#[tokio::test]
async fn status_tells_what_is_there_and_a_stopped_server_is_started_again_by_its_owner() {
    let place = ClusterDir::new();
    let before = Cluster::status(&place.options()).unwrap();
    assert!(!before.running && before.major.is_none() && before.bytes == 0);
    assert!(before.version.is_some(), "the machine has a Postgres");
    assert_eq!(Cluster::stop(&place.options()).unwrap(), Stopped::NotRunning);
    let cluster = attach(&place).await;
    let during = Cluster::status(&place.options()).unwrap();
    assert!(during.running && during.bytes > 10 << 20, "{during:?}");
    assert_eq!(during.owner_pid, Some(std::process::id()));
    assert_eq!(during.major, Some(cluster.major()));
    assert_eq!(during.url, cluster.url());
    assert_eq!(during.socket_dir, cluster.socket_dir());

    let stopped = Cluster::stop(&place.options()).unwrap();
    assert!(
        matches!(stopped, Stopped::Stopped { owner_pid: Some(pid), .. } if pid == std::process::id()),
        "{stopped:?}"
    );
    soon_async("it is back", async || query(&cluster, "select 1").await.is_ok()).await;
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_start_is_named_with_a_way_out() {
    let place = ClusterDir::new();
    drop(attach(&place).await);
    let mut options = place.options();
    options.settings = vec![("shared_buffers".into(), "banana".into())];
    let error = Cluster::attach(options).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClusterError::StartFailed { .. }), "{text}");
    assert!(text.contains("banana") && text.contains("postgres.log"), "the end of the log: {text}");

    let data = Cluster::status(&place.options()).unwrap().data_dir;
    let future = data.with_file_name("14999");
    fs::rename(&data, &future).unwrap();
    let error = Cluster::attach(place.options()).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClusterError::MajorMissing { major: 14999, .. }), "{text}");
    assert!(text.contains("planctl db reset"), "{text}");

    if Path::new("/usr/lib/postgresql/18").exists() {
        return;
    }
    // Data of the major version that would be fetched, and none installed.
    fs::rename(&future, data.with_file_name("18")).unwrap();
    let mut options = place.options();
    options.download = false;
    let text = Cluster::attach(options).await.unwrap_err().to_string();
    for way in ["apt install postgresql", "--database-url", "planctl db install --from FILE"] {
        assert!(text.contains(way), "{text}");
    }
}

#[tokio::test]
async fn a_configured_directory_without_postgres_is_named() {
    let place = ClusterDir::new();
    let mut options = place.options();
    options.bin_dir = Some("/usr/bin/nowhere".into());
    let error = Cluster::attach(options).await.unwrap_err();
    assert!(matches!(error, ClusterError::BadBinDir { .. }), "{error}");
}

#[tokio::test]
async fn a_package_from_a_file_is_installed_and_preferred() {
    let place = ClusterDir::new();
    let system = Cluster::status(&place.options()).unwrap().bin_dir.unwrap();
    let package = place.root().join("package/native");
    fs::create_dir_all(package.join("bin")).unwrap();
    for name in ["initdb", "postgres"] {
        let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", system.join(name).display());
        fs::write(package.join("bin").join(name), script).unwrap();
    }
    let links = r#"[{"source":"native/bin/postgres","target":"native/bin/postmaster"}]"#;
    fs::write(package.join("pg-symlinks.json"), links).unwrap();
    let archive = place.root().join("postgres package.tgz");
    let tar = std::process::Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(place.root())
        .arg("package")
        .status()
        .unwrap();
    assert!(tar.success());
    let programs = Cluster::install_from_file(&place.options(), &archive).unwrap();
    assert!(programs.join("postmaster").exists(), "the link is made");
    assert_eq!(Cluster::status(&place.options()).unwrap().bin_dir, Some(programs));
    let cluster = attach(&place).await;
    query(&cluster, "select 1").await.unwrap();

    fs::write(package.join("pg-symlinks.json"), links.replace("native/bin/postm", "../native/postm"))
        .unwrap();
    let error = Cluster::install_from_file(&place.options(), &place.root().join("package")).unwrap_err();
    assert!(error.to_string().contains("leads out of the package"), "{error}");
}

#[tokio::test]
async fn root_may_run_it_as_nobody_as_a_stranger_and_in_a_user_namespace() {
    if !is_root() {
        say("skipped: only root can become other users");
        return;
    }
    // 65534 is nobody; 54321 has no entry in /etc/passwd, which Postgres itself refuses.
    for uid in [65534, 54321] {
        let place = ClusterDir::new();
        place.give_to(uid);
        let child = Child::attach_as(&place, uid);
        let line = child.await_attached();
        assert!(line.contains("owner=true") && line.contains("answer=1"), "{line}");
    }
}

#[tokio::test]
async fn root_that_may_not_change_its_user_uses_a_user_namespace() {
    let place = ClusterDir::new();
    let Some(child) = Child::attach_as_bare_root(&place) else {
        say("skipped: this machine has no unshare(1) or allows no user namespaces");
        return;
    };
    let line = child.await_attached();
    assert!(line.contains("owner=true") && line.contains("answer=1"), "{line}");
}
