//! TLS of both clients: towards a daemon behind a proxy, and towards a Postgres that takes nothing else (B3).

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;

use planctl_server::testing::TestCluster;

use crate::fixture::{Fixture, Said};
use crate::http::House;
use crate::support_tls::{Certificates, Proxy};

/// Runs planctl with variables of its own.
fn with(fixture: &Fixture, words: &[&str], variables: &[(&str, &str)]) -> Said {
    Said::from(fixture.command(words).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn b3_a_person_and_a_worker_reach_a_daemon_behind_tls() {
    let house = House::new();
    let certificates = Certificates::of("localhost");
    let proxy = Proxy::before(&house.port, &certificates);
    let url = format!("https://localhost:{}", proxy.port);
    let (read, worker) = (house.token("read"), house.token("worker"));
    let ca = certificates.path("ca.pem");
    let ca = ca.to_str().unwrap();
    let run = house.run("a", "word");

    let exec = "echo word >out.txt";
    let words = ["worker", "run", "--server", &url, "--role", "coder", "--exec", exec, "--once"];
    let worked = with(&house.fixture, &words, &[("PLANCTL_TOKEN", &worker), ("SSL_CERT_FILE", ca)]);
    assert_eq!(worked.code, 0, "{worked:?}");
    house.until(&run, "done");
    let variables = [("PLANCTL_TOKEN", &*read), ("PLANCTL_SERVER", &*url), ("SSL_CERT_FILE", ca)];
    let shown = with(&house.fixture, &["plan", "status", &run], &variables);
    assert!(shown.code == 0 && shown.out.contains("done"), "{shown:?}");
    assert!(proxy.greeted() >= 2);
}

#[test]
fn b3_a_certificate_that_nobody_vouches_for_is_said_once_with_what_to_do() {
    let house = House::new();
    let (certificates, others) = (Certificates::of("localhost"), Certificates::of("localhost"));
    let proxy = Proxy::before(&house.port, &certificates);
    let (own, other) = (certificates.path("ca.pem"), others.path("ca.pem"));
    let token = house.token("read");
    let asked = |url: &str, ca: &PathBuf| {
        let variables = [("PLANCTL_TOKEN", &*token), ("SSL_CERT_FILE", ca.to_str().unwrap())];
        with(&house.fixture, &["ls", "--server", url], &variables)
    };
    for (url, ca, fault, help) in [
        (format!("https://localhost:{}", proxy.port), &other, "UnknownIssuer", "SSL_CERT_FILE=ca.pem"),
        (format!("https://127.0.0.1:{}", proxy.port), &own, "not valid for name", "its certificate"),
        (format!("https://{}", house.port), &own, "corrupt message", "it does not speak TLS there"),
    ] {
        let before = proxy.greeted();
        let said = asked(&url, ca);
        assert_eq!(said.code, 69, "{said:?}");
        assert!(said.err.contains(fault) && said.err.contains(help), "{said:?}");
        assert!(proxy.greeted() <= before + 1, "it is tried again though nothing can have changed");
    }
    let none = others.path("none.pem");
    let said = asked(&format!("https://localhost:{}", proxy.port), &none);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("ca-certificates"), "{said:?}");
}

#[test]
fn b3_a_token_crosses_no_network_unencrypted_unless_that_is_meant() {
    // 0.0.0.0 is no loopback address, and leads nowhere else.
    let house = House::with_words(&["--host", "0.0.0.0"]);
    let token = house.token("read");
    let port = house.port.rsplit_once(':').unwrap().1;
    let far = format!("http://0.0.0.0:{port}");
    let shown = [("PLANCTL_TOKEN", &*token), ("PLANCTL_SERVER", &*far)];
    let refused = with(&house.fixture, &["ls"], &shown);
    assert_eq!(refused.code, 2, "{refused:?}");
    for word in [far.as_str(), "https://", "--insecure"] {
        assert!(refused.err.contains(word), "{refused:?}");
    }
    assert!(!refused.err.contains(&token), "{refused:?}");

    let meant = with(&house.fixture, &["ls", "--insecure"], &shown);
    assert_eq!(meant.code, 0, "{meant:?}");
    let meant = with(&house.fixture, &["ls"], &[&shown[..], &[("PLANCTL_INSECURE", "1")]].concat());
    assert_eq!(meant.code, 0, "{meant:?}");
    let near = [("PLANCTL_TOKEN", &*token), ("PLANCTL_SERVER", &format!("http://localhost:{port}"))];
    let said = with(&house.fixture, &["ls"], &near);
    assert_eq!(said.code, 0, "this machine keeps it to itself: {said:?}");
    let nothing = with(&house.fixture, &["ls"], &[("PLANCTL_SERVER", &far)]);
    assert_eq!(nothing.code, 77, "without a token there is nothing to keep: {nothing:?}");
}

#[test]
fn b3_a_postgres_that_takes_tls_only_is_used_and_its_certificate_is_checked() {
    // Every address of 127.0.0.0/8 is this machine, so no other server has this one's port there.
    let own = std::process::id().to_be_bytes();
    let host = format!("127.{}.{}.{}", own[1].max(1), own[2], own[3].clamp(1, 254));
    let (certificates, others) = (Certificates::of(&host), Certificates::of(&host));
    let access = certificates.path("access.conf");
    std::fs::write(&access, "local all all trust\nhostssl all all 127.0.0.0/8 trust\n").unwrap();
    let cluster = TestCluster::private_with([
        ("listen_addresses", host.clone()),
        ("hba_file", access.to_string_lossy().into_owned()),
    ]);
    // Postgres wants the key to be its own.
    let key = certificates.path("key.pem");
    let owner = std::fs::metadata(cluster.cluster().data_dir()).unwrap();
    chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(cluster.empty_database());
    let fixture = Fixture::new();
    for (name, file) in [("ssl_cert_file", "server.pem"), ("ssl_key_file", "key.pem")] {
        let path = certificates.path(file);
        Fixture::sql_of(&database.url(), &format!("alter system set {name} = '{}'", path.display()));
    }
    let set_tls = |on: &str| {
        Fixture::sql_of(&database.url(), &format!("alter system set ssl = {on}"));
        Fixture::sql_of(&database.url(), "select pg_reload_conf()");
        // The server reads its settings in its own time; clients that connect afterwards find them.
        while Fixture::sql_of(&database.url(), "show ssl") != on {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    set_tls("on");

    let url = |more: &str| format!("postgres://planctl@{host}:5432/{}?{more}", database.name());
    let verified =
        |ca: &Certificates| url(&format!("sslmode=verify-full&sslrootcert={}", ca.path("ca.pem").display()));
    let used = with(&fixture, &["ls", "--database-url", &verified(&certificates)], &[]);
    assert_eq!(used.code, 0, "{used:?}");
    let by_variable = [("SSL_CERT_FILE", certificates.path("ca.pem").to_string_lossy().into_owned())];
    let by_variable = by_variable.each_ref().map(|(name, value)| (*name, value.as_str()));
    let used = with(&fixture, &["ls", "--database-url", &url("sslmode=verify-full")], &by_variable);
    assert_eq!(used.code, 0, "{used:?}");
    let used = with(&fixture, &["ls", "--database-url", &url("")], &[]);
    assert_eq!(used.code, 0, "it is encrypted also where nothing is said: {used:?}");

    let refused = with(&fixture, &["ls", "--database-url", &verified(&others)], &[]);
    assert!(refused.code == 69 && refused.err.contains("UnknownIssuer"), "{refused:?}");
    assert!(refused.err.contains("`sslrootcert=ca.pem`"), "{refused:?}");
    let missing = url("sslmode=verify-ca&sslrootcert=/none/ca.pem");
    let refused = with(&fixture, &["ls", "--database-url", &missing], &[]);
    assert!(refused.code == 69 && refused.err.contains("sslrootcert"), "{refused:?}");
    set_tls("off");
    let refused = with(&fixture, &["ls", "--database-url", &verified(&certificates)], &[]);
    assert!(refused.code == 69 && refused.err.contains("does not support TLS"), "{refused:?}");
    assert!(refused.err.contains("`sslmode=disable`"), "{refused:?}");
}
