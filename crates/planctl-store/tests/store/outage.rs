//! The database goes away at the worst moments: nothing is lost and nothing is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use planctl_engine::{End, RunStatus};
use planctl_store::{Resource, Settings, Store, StoreError};
use sqlx::Executor as _;
use sqlx::postgres::PgConnectOptions;

use crate::world::{World, await_that, evaluated, next_claim, reported, world};

const KILL_ALL: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
     where datname = current_database() and pid <> pg_backend_pid() and application_name = 'planctl'";

#[tokio::test]
async fn p12_terminated_backends_are_replaced_and_the_run_goes_on() {
    let world = world(3).await;
    let run = world.begun().await;
    let mut aside = world.aside().await;
    aside.execute(KILL_ALL).await.unwrap();
    let work = world.claim(run.id, "me").await.expect("the claim finds another connection");
    aside.execute(KILL_ALL).await.unwrap();
    let applied = world
        .store
        .apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim()))
        .await
        .unwrap();
    let gate = applied.claimed_next.unwrap();
    aside.execute(KILL_ALL).await.unwrap();
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p12_a_full_disk_is_known_by_what_it_keeps_back_until_there_is_room() {
    a_shortage_is_known_until_it_is_over("53100", Resource::Disk).await;
}

#[tokio::test]
async fn p12_a_server_without_memory_is_known_by_what_it_keeps_back_until_there_is_some() {
    a_shortage_is_known_until_it_is_over("53200", Resource::Memory).await;
}

/// A table takes no row in; what needs nothing of the resource is answered.
async fn a_shortage_is_known_until_it_is_over(code: &str, of: Resource) {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let mut aside = world.aside().await;
    let lacks = format!(
        "create function lacks() returns trigger language plpgsql as $$ begin \
           raise exception 'the words of the server' using errcode = '{code}'; end $$; \
         create trigger lacks before insert on history for each row execute function lacks()"
    );
    aside.execute(sqlx::AssertSqlSafe(lacks)).await.unwrap();
    assert_eq!(world.store.shortage().await, None, "nothing has met it");
    let store = world.store.clone();
    let applying = tokio::spawn(async move {
        store
            .apply(run.id, &reported(&work.item.at), &work.proof(), None)
            .await
            .map(|applied| applied.duplicate)
    });
    await_that(async || world.store.shortage().await == Some((of, "the words of the server".to_owned())))
        .await;
    aside.execute("drop trigger lacks on history").await.unwrap();
    assert!(!applying.await.unwrap().unwrap(), "it was applied once there was enough");
    await_that(async || world.store.shortage().await.is_none()).await;
    world.assert_sound(run.id).await;
}

/// Of a superuser the server counts no connections, so planctl's own role connects.
#[tokio::test]
async fn p12_a_server_that_lets_no_session_in_is_named_as_that() {
    let world = world(1).await;
    let limit = format!("alter database {} connection limit 0", world.database.name());
    world.aside().await.execute(sqlx::AssertSqlSafe(limit)).await.unwrap();
    let options = world.database.connect_options().username("planctl_app");
    let settings = Settings { connect_deadline: Duration::ZERO, ..Settings::default() };
    let Err(error) = Store::connect(options, settings).await else { panic!("it was let in") };
    assert!(error.is_too_many_connections(), "{error:?}");
    let words = "connect to the database, it takes no more connections: too many connections for database";
    assert!(error.to_string().starts_with(words), "{error}");
}

/// The trigger ends the backend from within the statement, after it has written and before it commits.
#[tokio::test]
async fn p2_a_connection_lost_before_the_commit_is_applied_once_by_the_retry() {
    let world = world(1).await;
    let run = world.begun().await;
    let work = world.claim(run.id, "me").await.unwrap();
    let mut aside = world.aside().await;
    aside
        .execute(
            "create sequence hits; \
             create function cut() returns trigger language plpgsql as $$ begin \
               if nextval('hits') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if; return new; end $$; \
             create trigger cut after insert on history for each row execute function cut()",
        )
        .await
        .unwrap();
    let applied = world
        .store
        .apply(run.id, &reported(&work.item.at), &work.proof(), Some(&next_claim()))
        .await
        .unwrap();
    assert!(!applied.duplicate && applied.claimed_next.is_some());
    let hits: i64 = sqlx::query_scalar("select last_value from hits").fetch_one(&mut aside).await.unwrap();
    assert!(hits > 1, "the first try was cut");
    world.assert_sound(run.id).await;
}

/// A proxy that forwards bytes and, where told to, swallows one answer of the server and hangs up: the statement was
/// done and nobody hears of it.
pub struct Proxy {
    port: u16,
    /// How many answers pass before one is swallowed; zero swallows none.
    countdown: Arc<AtomicI64>,
    _task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub async fn before(options: &PgConnectOptions) -> Proxy {
        let socket = options
            .get_socket()
            .expect("the test cluster listens on a socket")
            .join(format!(".s.PGSQL.{}", options.get_port()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let countdown = Arc::new(AtomicI64::new(0));
        let counter = countdown.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = tokio::net::UnixStream::connect(&socket).await else { continue };
                let counter = counter.clone();
                tokio::spawn(async move {
                    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
                    let (mut from_client, mut to_client) = client.into_split();
                    let (mut from_server, mut to_server) = server.into_split();
                    let upward = tokio::spawn(async move {
                        tokio::io::copy(&mut from_client, &mut to_server).await.is_ok()
                    });
                    let mut buffer = vec![0u8; 65536];
                    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
                        let is_swallowed = counter.fetch_sub(1, Ordering::SeqCst) == 1;
                        if is_swallowed || to_client.write_all(&buffer[..count]).await.is_err() {
                            break;
                        }
                    }
                    upward.abort();
                });
            }
        });
        Proxy { port, countdown, _task: task }
    }

    pub fn swallow(&self, nth: i64) {
        self.countdown.store(nth, Ordering::SeqCst);
    }

    pub fn has_swallowed(&self) -> bool {
        self.countdown.load(Ordering::SeqCst) <= 0
    }
}

pub async fn through(proxy: &Proxy, options: PgConnectOptions) -> Store {
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(proxy.port)
        .username(options.get_username())
        .database(options.get_database().unwrap())
        .ssl_mode(sqlx::postgres::PgSslMode::Disable);
    Store::connect(options, Settings::default()).await.unwrap()
}

#[tokio::test]
async fn p2_a_commit_whose_answer_was_lost_is_found_and_not_repeated() {
    let mut world = world(2).await;
    let run = world.begun().await;
    let proxy = Proxy::before(&world.database.connect_options()).await;
    world.store = through(&proxy, world.database.connect_options()).await;
    // A claim whose answer is lost is found by its token.
    proxy.swallow(1);
    let work = world.claim(run.id, "me").await.expect("the item that the lost claim leased");
    let report = reported(&work.item.at);
    let before = world.store.run(run.id).await.unwrap().seq;
    // Lose the answer of the first round trip, then of later ones: whichever it is, the report counts once.
    proxy.swallow(1);
    let applied = world.store.apply(run.id, &report, &work.proof(), Some(&next_claim())).await.unwrap();
    let gate = applied.claimed_next.expect("the gate that the lost answer told of");
    assert!(applied.seq > before && !applied.duplicate);
    world.store.apply(run.id, &evaluated(&gate.item.at, 0), &gate.proof(), None).await.unwrap();
    world.assert_sound(run.id).await;
}

#[tokio::test]
async fn p2_whichever_answer_of_a_step_is_lost_the_step_is_done_once() {
    let mut world = world(1).await;
    let direct = world.store.clone();
    let proxy = Proxy::before(&world.database.connect_options()).await;
    let mut nth = 0;
    loop {
        nth += 1;
        world.store = direct.clone();
        let run = world.begun().await;
        world.store = through(&proxy, world.database.connect_options()).await;
        proxy.swallow(nth);
        let applied = world.step(run.id, 0).await;
        let is_swallowed = proxy.has_swallowed();
        proxy.swallow(0);
        assert_eq!(applied.head.status, RunStatus::Ended { end: End::Done }, "answer {nth}");
        let lines = direct.history(run.id, 0, 1000).await.unwrap();
        assert_eq!(lines.iter().filter(|line| line.name == "node_verified").count(), 1, "answer {nth}");
        assert_eq!(lines.iter().filter(|line| line.name == "agent.reported").count(), 1, "answer {nth}");
        world.assert_sound(run.id).await;
        if !is_swallowed {
            break;
        }
    }
    assert!(nth > 10, "a step has more answers than {nth}");
}

#[tokio::test]
async fn a_database_that_stays_away_is_given_up_after_the_deadline() {
    let mut world = world(1).await;
    let run = world.begun().await;
    let settings = Settings { deadline: Duration::from_millis(300), ..Settings::default() };
    world.store = Store::connect(world.database.connect_options(), settings).await.unwrap();
    let mut aside = crate::world::database().await.connect_options();
    aside = aside.database("postgres");
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect_with(&aside).await.unwrap();
    let name = world.database.name();
    let close = format!("alter database {name} allow_connections false");
    admin.execute(sqlx::AssertSqlSafe(close)).await.unwrap();
    let kill = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
    admin.execute(sqlx::AssertSqlSafe(kill)).await.unwrap();
    let began = std::time::Instant::now();
    let outcome = world.store.run(run.id).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable { .. })), "{outcome:?}");
    let waited = began.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_secs(20)).contains(&waited), "{waited:?}");
    let open = format!("alter database {name} allow_connections true");
    admin.execute(sqlx::AssertSqlSafe(open)).await.unwrap();
    assert_eq!(world.store.run(run.id).await.unwrap().id, run.id);
}

/// Has the session that makes a workspace run an expression, and returns its process.
async fn in_a_session_of(world: &World, expression: &str) -> i32 {
    let mut aside = world.aside().await;
    let script = format!(
        "create table did (pid int, value text); \
         create function does() returns trigger language plpgsql as $$ begin \
           insert into did select pg_backend_pid(), {expression}; return new; end $$; \
         create trigger does after insert on workspaces for each row execute function does()"
    );
    aside.execute(sqlx::AssertSqlSafe(script)).await.unwrap();
    world.store.workspace("host-a", "/another").await.unwrap();
    sqlx::query_scalar("select pid from did").fetch_one(&mut aside).await.unwrap()
}

/// Finding B6: 57P05 is of no class that asks for another try, but its severity says that the session is over.
#[tokio::test]
async fn p12_b6_a_session_that_the_server_ends_for_standing_idle_is_replaced() {
    let mut world = world(1).await;
    let run = world.begun().await;
    // Its last words reach a session that is far away; a socket of this host may be closed before they are read.
    let proxy = Proxy::before(&world.database.connect_options()).await;
    world.store = through(&proxy, world.database.connect_options()).await;
    let pid = in_a_session_of(&world, "set_config('idle_session_timeout', '1', false)").await;
    let mut aside = world.aside().await;
    await_that(async || {
        let is_gone = "select not exists (select from pg_stat_activity where pid = $1)";
        sqlx::query_scalar(is_gone).bind(pid).fetch_one(&mut aside).await.unwrap()
    })
    .await;
    assert_eq!(world.store.run(run.id).await.unwrap().id, run.id);
}

/// Finding B6: after a failover the sessions that were left open may be those of a standby.
#[tokio::test]
async fn p12_b6_a_session_that_may_only_read_is_replaced() {
    let world = world(1).await;
    let pid = in_a_session_of(&world, "set_config('default_transaction_read_only', 'on', false)").await;
    world.store.workspace("host-a", "/a third").await.unwrap();
    let pids = "select pid from did where pid <> $1";
    let other: i32 = sqlx::query_scalar(pids).bind(pid).fetch_one(&mut world.aside().await).await.unwrap();
    assert_ne!(other, pid);
}

#[tokio::test]
async fn b6_the_sessions_of_the_store_are_never_ended_for_standing_idle() {
    let mut world = world(1).await;
    let mut aside = world.aside().await;
    let limit = format!("alter database {} set idle_session_timeout = '1h'", world.database.name());
    aside.execute(sqlx::AssertSqlSafe(limit)).await.unwrap();
    world.store = Store::connect(world.database.connect_options(), Settings::default()).await.unwrap();
    in_a_session_of(&world, "current_setting('idle_session_timeout')").await;
    let limit: String = sqlx::query_scalar("select value from did").fetch_one(&mut aside).await.unwrap();
    assert_eq!(limit, "0");
}

/// A session costs the server a process, so each who waits has the one that is opened first, and not one of its own.
#[tokio::test]
async fn of_eight_who_find_no_session_at_once_not_each_opens_one() {
    let world = world(1).await;
    let settings = Settings { application_name: "crowd".to_owned(), ..Settings::default() };
    let store = Store::connect(world.database.connect_options(), settings).await.unwrap();
    let mut aside = world.aside().await;
    aside.execute("begin; lock table workers in access exclusive mode").await.unwrap();
    // It has the one session until the lock is released.
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.is_paused("nobody").await }
    });
    let mut looking = world.aside().await;
    let mut count = async |and: &str| -> i64 {
        let sessions = "select count(*) from pg_stat_activity where application_name = 'crowd' and datname = current_database()";
        let counted = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("{sessions}{and}")));
        counted.fetch_one(&mut looking).await.unwrap()
    };
    await_that(async || count(" and wait_event_type = 'Lock'").await == 1).await;
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        others.spawn(async move { store.newest_notes("news", 1, 1).await.unwrap().len() });
    }
    assert_eq!(others.join_all().await, [0; 8]);
    let sessions = count("").await;
    assert!(sessions < 6, "{sessions} sessions for nine callers");
    aside.execute("rollback").await.unwrap();
    assert!(!first.await.unwrap().unwrap());
}
