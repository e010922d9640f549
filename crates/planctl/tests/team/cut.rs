//! Two daemons on two hosts with one Postgres, reached by TLS alone, and workers on a third; one host is cut off in mid-work.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use planctl_server::testing::{TestCluster, TestDatabase};
use rustix::process::Signal;

use super::hosts::{Host, Network, may_make_networks};
use crate::support::{Going, Place, Said, wait_until};
use crate::tls::{Certificates, Proxy};

/// Short enough to wait for, long enough for three heartbeats under load.
const LEASE_SECONDS: u64 = 6;
/// The ports of a daemon and of the proxy before it, the same on each host.
const PORT: u16 = 7420;
const TLS_PORT: u16 = 8443;

/// The hosts, what they share, and how it is reached.
struct Team {
    place: Place,
    a: Host,
    b: Host,
    workers: Host,
    certificates: Certificates,
    url: String,
    token: String,
    database: TestDatabase,
    _proxies: Vec<Proxy>,
    // They go last: what runs on the hosts is over by then.
    _cluster: TestCluster,
    _network: Network,
}

/// Starts a Postgres of this test alone, which takes TLS alone.
fn postgres(address: &str, certificates: &Certificates) -> (TestCluster, TestDatabase) {
    let access = certificates.path("access.conf");
    fs::write(&access, "local all all trust\nhostssl all all 0.0.0.0/0 trust\n").unwrap();
    let cluster = TestCluster::private_with([
        ("listen_addresses", address.to_owned()),
        ("hba_file", access.to_string_lossy().into_owned()),
    ]);
    // Postgres wants the key to be its own.
    let (key, owner) = (certificates.path("key.pem"), fs::metadata(cluster.cluster().data_dir()).unwrap());
    chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(cluster.empty_database());
    for (name, value) in [
        ("ssl_cert_file", certificates.path("server.pem").to_string_lossy().into_owned()),
        ("ssl_key_file", key.to_string_lossy().into_owned()),
        ("ssl", "on".to_owned()),
    ] {
        sql_of(&database, &format!("alter system set {name} = '{value}'"));
    }
    sql_of(&database, "select pg_reload_conf()");
    wait_until("TLS", || sql_of(&database, "show ssl") == "on");
    (cluster, database)
}

fn sql_of(database: &TestDatabase, statement: &str) -> String {
    let mut url = url::Url::parse(&database.url()).unwrap();
    // The other parameters are those of planctl's own driver.
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(key, _)| ["host", "port", "user", "password"].contains(&key.as_ref()))
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(kept);
    let said = std::process::Command::new("psql")
        .args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement, url.as_str()])
        .output()
        .unwrap();
    assert!(said.status.success(), "{statement}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// Writes a plan whose contracts note that they began, and wait while a file is there.
fn write_plan(place: &Place, path: &str, name: &str) {
    let folder = place.path("");
    let mut text =
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Share\n\n**Budget:** 60 minutes\n\n## Steps\n"
            .to_owned();
    for step in 1..=2 {
        write!(
            text,
            "\n### {step}. Step {step}\n\n**target:** coder\n**task:**\nDo it.\n\n**contract:**\n```bash\n\
             echo \"gate {name} {step}\" >>{0}journal\nwhile [ -e {0}hold-{name}-{step} ]; do sleep 0.01; done\n\
             grep -q good out-{step}\n```\nexit_code == 0\n",
            folder.display()
        )
        .unwrap();
    }
    fs::write(place.path(path), text).unwrap();
}

impl Team {
    fn new() -> (Team, [Going; 2]) {
        let mut network = Network::new();
        let (a, b, workers) = (network.host(), network.host(), network.host());
        let own = network.own_address();
        let certificates = Certificates::of_all(&[&own, &a.address, &b.address]);
        let (cluster, database) = postgres(&own, &certificates);
        let url = format!(
            "postgres://planctl@{own}:5432/{}?sslmode=verify-full&sslrootcert={}",
            database.name(),
            certificates.path("ca.pem").display()
        );
        let place = Place::with_leases_of(LEASE_SECONDS);
        let proxies = [&a, &b].map(|host| {
            let (at, to) = (format!("{}:{TLS_PORT}", host.address), format!("127.0.0.1:{PORT}"));
            Proxy::start(&at, &to, &certificates, host.enter())
        });
        let mut team = Team {
            place,
            a,
            b,
            workers,
            certificates,
            url,
            token: String::new(),
            database,
            _proxies: proxies.into(),
            _cluster: cluster,
            _network: network,
        };
        let daemons = [team.daemon(&team.a), team.daemon(&team.b)];
        let made = team.on(&team.a, &["token", "create", "worker", "--name", "box", "--role", "coder"]).end();
        assert_eq!(made.code, 0, "{made:?}");
        team.token = made.out.trim().to_owned();
        (team, daemons)
    }

    /// Starts planctl on the host of a daemon, as its person would.
    fn on(&self, host: &Host, words: &[&str]) -> Going {
        let state = self.place.path(&host.namespace);
        let variables: [(&str, &OsStr); 2] =
            [("PLANCTL_STATE_DIR", state.as_os_str()), ("PLANCTL_DATABASE_URL", self.url.as_ref())];
        self.place.start_through(&host.through(), words, &variables)
    }

    fn daemon(&self, host: &Host) -> Going {
        let listen = format!("127.0.0.1:{PORT}");
        let mut daemon = self.on(
            host,
            &["daemon", "run", "--listen", &listen, "--host", &host.address, "--log-format", "json"],
        );
        daemon.hear("ready");
        daemon
    }

    /// Starts planctl on the host of workers; it calls the daemon of a host.
    fn worker(&self, of: &Host, words: &[&str], more: &[(&str, &str)]) -> Going {
        let server = format!("https://{}:{TLS_PORT}", of.address);
        let (state, ca) = (self.place.path("worker"), self.certificates.path("ca.pem"));
        let variables: [(&str, &OsStr); 4] = [
            ("PLANCTL_STATE_DIR", state.as_os_str()),
            ("PLANCTL_SERVER", server.as_ref()),
            ("PLANCTL_TOKEN", self.token.as_ref()),
            ("SSL_CERT_FILE", ca.as_os_str()),
        ];
        let more = more.iter().map(|(name, value)| (*name, OsStr::new(*value)));
        let variables: Vec<(&str, &OsStr)> = variables.into_iter().chain(more).collect();
        self.place.start_through(&self.workers.through(), words, &variables)
    }

    fn start(&self, host: &Host, workspace: &str, plan: &str) {
        let workspace = self.place.path(workspace);
        let words = ["-C", workspace.to_str().unwrap(), "plan", "run", plan, "--approve", "-d"];
        let said = self.on(host, &words).end();
        assert_eq!(said.code, 0, "{said:?}");
    }

    fn state(&self, run: &str) -> String {
        sql_of(&self.database, &format!("select status from runs where name = '{run}'"))
    }

    fn noted(&self, line: &str) -> usize {
        let text = fs::read_to_string(self.place.path("journal")).unwrap_or_default();
        text.lines().filter(|noted| *noted == line).count()
    }

    fn await_noted(&self, line: &str, times: usize) {
        wait_until(&format!("{times} × {line}"), || self.noted(line) >= times);
    }
}

/// Reads a value that `item claim --shell` prints.
fn exported(said: &Said, name: &str) -> String {
    let start = format!("{name}=");
    let line = said.out.lines().find_map(|line| line.trim_start_matches("export ").strip_prefix(&start));
    line.unwrap_or_else(|| panic!("{said:?}")).trim_matches('\'').to_owned()
}

#[test]
fn p10_a_host_that_is_cut_off_loses_its_work_to_the_other_and_is_refused_when_it_is_back() {
    if !may_make_networks() {
        eprintln!("skipped: networks are made by root");
        return;
    }
    let (team, [a, b]) = Team::new();
    fs::create_dir(team.place.path("other")).unwrap();
    write_plan(&team.place, "other/q.md", "q");
    write_plan(&team.place, "work/p.md", "p");
    let work = "echo \"work $PLANCTL_RUN_ID $PLANCTL_STEP\" >>../journal; echo good >out-$PLANCTL_STEP";

    // The contract of q's first step runs on A, since its worker reports there, and waits.
    team.place.set("hold-q-1");
    team.start(&team.a, "other", "q.md");
    let once =
        team.worker(&team.a, &["worker", "run", "--role", "coder", "--exec", work, "--once"], &[]).end();
    assert_eq!(once.code, 0, "{once:?}");
    team.await_noted("gate q 1", 1);
    // A script has claimed p's first step through A.
    team.start(&team.a, "work", "p.md");
    let held =
        team.worker(&team.a, &["item", "claim", "--role", "coder", "--lease", "6s", "--shell"], &[]).end();
    assert_eq!(held.code, 0, "{held:?}");
    let item = [
        ("PLANCTL_ITEM", exported(&held, "PLANCTL_ITEM")),
        ("PLANCTL_ITEM_TOKEN", exported(&held, "PLANCTL_ITEM_TOKEN")),
    ];
    let item = item.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!((team.state("p-1"), team.state("q-1")), ("active".to_owned(), "active".to_owned()));

    team.a.cut();
    let served = team.worker(&team.b, &["worker", "run", "--role", "coder", "--exec", work], &[]);
    // The lease of the claim runs out, and B hands the step to another worker; its contracts run on B.
    wait_until("the end of p", || team.state("p-1") == "ended");
    assert_eq!(team.noted("work p-1 1"), 1, "the script never worked");
    assert_eq!(team.state("q-1"), "active", "the contract on A holds the workspace");
    // A can't say its verdict now; B judges the same attempt.
    team.place.unset("hold-q-1");
    wait_until("the end of q", || team.state("q-1") == "ended");
    assert_eq!((team.noted("gate q 1"), team.noted("work q-1 1")), (2, 1), "the work was not done again");

    team.a.mend();
    let late = || team.worker(&team.a, &["item", "complete"], &item).end();
    let mut said = late();
    wait_until("A answers again", || {
        if said.code == 69 {
            said = late();
        }
        said.code != 69
    });
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("the lease is over"), "{said:?}");
    wait_until("A is well", || {
        let status = team.on(&team.a, &["daemon", "status"]).end();
        status.code == 0
    });

    // Each attempt has one verdict, whoever ran its contract.
    let verdicts = "select string_agg(count::text, ',') from (select count(*) from history where name = 'node_verified' \
                    group by run, node, attempt) v";
    assert_eq!(sql_of(&team.database, verdicts), "1,1,1,1");
    assert_eq!(sql_of(&team.database, "select count(*) from history where name = 'retry_triggered'"), "0");
    for run in ["p-1", "q-1"] {
        let audit = team.on(&team.b, &["audit", run]).end();
        assert_eq!(audit.code, 0, "{audit:?}");
        let ends = format!(
            "select count(*) from history h join runs r on r.id = h.run where r.name = '{run}' and h.name = 'plan_completed'"
        );
        assert_eq!(sql_of(&team.database, &ends), "1");
    }
    for process in [served, a, b] {
        process.signal(Signal::TERM);
        let said = process.end();
        assert_eq!(said.code, 0, "{said:?}");
    }
}
