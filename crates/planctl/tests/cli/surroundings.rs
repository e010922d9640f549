//! Faults around planctl: arguments, daemons, databases, clocks, disks, limits (rows 95 to 113).

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::{Fixture, Said, plan};

fn one_step() -> String {
    plan("One step", "5 minutes", &[("One", "test -e done-1", "escalate")])
}

/// Runs planctl with one variable set to another value.
fn with(fixture: &Fixture, words: &[&str], name: &str, value: &str) -> Said {
    Said::from(fixture.command(words).env(name, value).output().unwrap())
}

#[test]
fn row_95_a45_arguments_are_taken_as_they_are_and_name_no_other_file() {
    let fixture = Fixture::new();
    fixture.write("secret", "hunter2\n").write("p.md", &one_step());
    for words in [
        &["plan", "verify", "@secret"][..],
        &["plan", "run", "@secret", "--approve"],
        &["plan", "status", "@secret"],
        &["approvals", "retry", "1", "--note", "@secret"],
        &["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "@secret"],
        &["--config", "@secret", "ls"],
        &["@secret"],
    ] {
        let said = fixture.planctl(words);
        assert_ne!(said.code, 0, "{words:?} {said:?}");
        assert!(!said.out.contains("hunter2") && !said.err.contains("hunter2"), "{words:?} {said:?}");
    }
    let said = fixture.planctl(&["topic", "post", "words", "--note", "@secret -x --json"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.planctl(&["topic", "show", "words"]).out.contains("@secret -x --json"));

    // After `--` a name is a name, even one that begins with a dash.
    fixture.write("-A.md", &one_step());
    let said = fixture.planctl(&["plan", "verify", "--", "-A.md"]);
    assert!(said.code == 0 && said.out.contains("-A.md"), "{said:?}");
    let said = fixture.planctl(&["approvals", "approve", "-1"]);
    assert!(said.code == 2 && said.err.contains("invalid value '-1'"), "{said:?}");
    for words in [&["plan", "verify", ""][..], &["plan", "run", ""], &["topic", "post", "", "--note", "x"]] {
        let said = fixture.planctl(words);
        assert!([2, 4].contains(&said.code) && !said.err.is_empty(), "{words:?} {said:?}");
    }
}

#[test]
fn a_name_that_is_not_utf8_is_refused_by_every_command_and_shown() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let broken = OsStr::from_bytes(b"a\xff\x1b[2J.md");
    std::fs::copy(fixture.path("p.md"), fixture.path("").join(broken)).unwrap();
    let verbs = ["verify", "run", "status", "show", "approve", "diff", "fmt", "graph render", "guide on"];
    for verb in verbs {
        let words: Vec<&str> = verb.split(' ').collect();
        let said = Said::from(fixture.command(&words).arg(broken).output().unwrap());
        assert_eq!(said.code, 2, "{verb}: {said:?}");
        assert!(said.err.contains("is not UTF-8, so planctl can't record it"), "{verb}: {said:?}");
        assert!(!said.err.contains('\x1b'), "{verb}: {said:?}");
    }
    let folder = fixture.path("").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    let said = Said::from(fixture.command(&["ls"]).arg("--workspace").arg(&folder).output().unwrap());
    assert!(said.code == 2 && said.err.contains("is not UTF-8, so planctl can't record it"), "{said:?}");
}

#[test]
fn row_100_no_daemon_another_program_and_no_socket_are_told_apart() {
    let fixture = Fixture::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let strange = format!("http://{}", stranger.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in stranger.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            drop(stream.read(&mut head));
            drop(
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n"),
            );
        }
    });
    let none = fixture.planctl(&["item", "claim", "--role", "coder"]);
    let refused = fixture.planctl(&["--server", &closed, "ls"]);
    let socket = fixture.planctl(&["--server", "/nowhere/daemon.sock", "ls"]);
    let other = fixture.planctl(&["--server", &strange, "ls"]);
    let listen = format!("planctl daemon start --listen {}", closed.trim_start_matches("http://"));
    for (said, words, hint) in [
        (&none, "could not find a daemon: none runs in", "planctl daemon start"),
        (&refused, "could not reach a daemon at http://127.0.0.1:", &listen),
        (&socket, "could not reach a daemon at /nowhere/daemon.sock: No such file", "planctl daemon start"),
        (&other, "could not understand the daemon at http://127.0.0.1:", "is it another version"),
    ] {
        assert_eq!(said.code, 69, "{said:?}");
        assert!(said.err.contains(words) && said.err.contains(hint), "{said:?}");
    }
    let bare = fixture.planctl(&["--server", "127.0.0.1:17999", "ls"]);
    assert!(bare.code == 2 && bare.err.contains("http://127.0.0.1:17999"), "{bare:?}");
    fixture.write("p.md", &one_step());
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "-d", "--exec", "touch done-1"]);
    assert!(said.code == 69 && said.err.contains("planctl daemon start"), "{said:?}");
    assert!(!fixture.path("done-1").exists());
}

#[test]
fn something_else_than_a_run_that_is_missing_is_looked_for_in_its_own_list() {
    let fixture = Fixture::new();
    for (words, list) in [
        (["token", "revoke", "zzzz"], "planctl token ls"),
        (["notify", "replay", "9999"], "planctl notify deliveries"),
    ] {
        let said = fixture.planctl(&words);
        assert!(said.code == 4 && said.err.contains(&format!("next: {list}\n")), "{said:?}");
    }
}

/// A daemon whose database has no room: the first call fails, and its repetition hears that the same request is under way.
#[test]
fn row_100_a_repetition_that_is_under_way_is_told_by_what_the_first_try_met() {
    let fixture = Fixture::new();
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", full.local_addr().unwrap());
    std::thread::spawn(move || {
        for (at, stream) in full.incoming().enumerate() {
            let mut stream = stream.unwrap();
            drop(stream.read(&mut [0; 4096]));
            let (status, code, detail) = match at {
                0 => (
                    503,
                    "database_unavailable",
                    "could not reach the database in time: No space left on device",
                ),
                _ => (409, "under_way", "the same request is under way"),
            };
            let body =
                format!(r#"{{"type":"/problems/{code}","title":"x","status":{status},"detail":"{detail}"}}"#);
            let head = "content-type: application/problem+json\r\nconnection: close";
            let answer =
                format!("HTTP/1.1 {status} x\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    let said = fixture.planctl(&["--server", &server, "topic", "post", "a", "--note", "b"]);
    assert!(said.code == 69 && said.err.contains("No space left on device"), "{said:?}");
    let far = fixture.planctl(&["--server", "http://host.invalid:1", "ls"]);
    assert!(
        far.code == 69 && !far.err.contains("daemon start") && far.err.contains("on that machine"),
        "{far:?}"
    );
}

#[test]
fn row_101_each_reason_why_a_database_can_not_be_used_has_its_words() {
    let fixture = Fixture::new();
    let url = fixture.planctl(&["db", "url"]).out.trim().to_owned();
    fixture.sql("select 1");
    let name = fixture.sql("select current_database()");
    let weak = format!("weak_{}", &name[name.len().saturating_sub(12)..]).replace('-', "_");
    fixture.sql(&format!("create role {weak} login"));
    fixture.sql(&format!("revoke connect on database \"{name}\" from public"));
    let with_user = |user: &str| {
        let mut other = url::Url::parse(&url).unwrap();
        let query: Vec<(String, String)> = other
            .query_pairs()
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .filter(|(key, _)| key != "user")
            .collect();
        other.query_pairs_mut().clear().extend_pairs(query).append_pair("user", user);
        other.to_string()
    };
    let no_database = url.replace(&name, "there_is_no_such_database");
    // A server that answers the wish for TLS with a no.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let encrypted = format!("postgres://me:hunter2@{}/none?sslmode=require", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in plain.incoming() {
            let mut stream = stream.unwrap();
            let mut wish = [0; 8];
            if stream.read_exact(&mut wish).is_ok() {
                drop(stream.write_all(b"N"));
            }
        }
    });
    for (address, words) in [
        (no_database.as_str(), "does not exist"),
        (with_user(&weak).as_str(), "authentication failed"),
        (with_user("nobody_has_this_name").as_str(), "authentication failed"),
        (encrypted.as_str(), "TLS"),
        ("postgres://me:hunter2@no-such-host.invalid/none", "lookup"),
        ("postgres://me:hunter2@/%zz", "empty host"),
    ] {
        let said = with(&fixture, &["ls"], "PLANCTL_DATABASE_URL", address);
        assert!([69, 78].contains(&said.code), "{address}: {said:?}");
        assert!(said.err.contains(words), "{address}: {said:?}");
        assert!(!said.err.contains("hunter2"), "{address}: {said:?}");
    }
    fixture.sql(&format!("drop role {weak}"));
}

#[test]
fn row_102_a_half_migrated_schema_is_refused_with_what_is_wrong_and_left_alone() {
    let fixture = Fixture::new();
    fixture.planctl(&["ls"]);
    let applied = "select string_agg(version::text, ' ' order by version) from planctl_migrations";
    let all = fixture.sql(applied);
    for (damage, words, mend) in [
        (
            "update planctl_migrations set digest = repeat('0', 64) where version = 1",
            "1 (plans) was not the one that this planctl knows",
            "update planctl_migrations set digest = null where version = 1",
        ),
        (
            "delete from planctl_migrations where version = 2",
            "2 (runs) is missing below",
            "insert into planctl_migrations (version, name) values (2, 'runs')",
        ),
    ] {
        fixture.sql(damage);
        for command in [&["ls"][..], &["daemon", "migrate", "--check"], &["daemon", "migrate"]] {
            let said = fixture.planctl(command);
            assert_eq!(said.code, 78, "{command:?} {said:?}");
            assert!(said.err.contains("half migrated") && said.err.contains(words), "{command:?} {said:?}");
        }
        fixture.sql(mend);
        assert_eq!(fixture.sql(applied), all, "nobody mended it behind our back");
        assert_eq!(fixture.planctl(&["ls"]).code, 0, "a migration of a time without digests is as good");
    }
}

#[test]
fn row_103_a_database_of_something_else_is_refused_and_left_alone() {
    let fixture = Fixture::unmigrated();
    fixture.sql("create table customers (id int)");
    for words in [&["ls"][..], &["daemon", "migrate"], &["daemon", "start"], &["doctor"]] {
        let said = fixture.planctl(words);
        assert!([1, 78].contains(&said.code), "{words:?} {said:?}");
        let text = format!("{}{}", said.out, said.err);
        assert!(text.contains("tables that are not planctl's (customers)"), "{words:?} {said:?}");
    }
    assert_eq!(
        fixture.sql("select string_agg(tablename, ' ') from pg_tables where schemaname = 'public'"),
        "customers"
    );
}

#[test]
fn row_105_a_server_that_forgets_what_it_confirmed_is_told_by_the_doctor() {
    let fixture = Fixture::new();
    let warned = |fixture: &Fixture| -> String {
        let report: Value = serde_json::from_str(&fixture.planctl(&["doctor", "--json"]).out).unwrap();
        let checks = report["checks"].as_array().unwrap().iter();
        let postgres = checks.filter(|check| check["check"] == "postgres" && check["health"] == "problem");
        postgres.map(|check| check["found"].as_str().unwrap().to_owned()).collect()
    };
    // The tests' own server has fsync off.
    let before = warned(&fixture);
    assert!(before.contains("fsync") && !before.contains("synchronous_commit"), "{before}");
    let name = fixture.sql("select current_database()");
    fixture.sql(&format!("alter database \"{name}\" set synchronous_commit = off"));
    assert!(warned(&fixture).contains("synchronous_commit"), "{}", warned(&fixture));
    assert_eq!(fixture.planctl(&["doctor"]).code, 1);
}

#[test]
fn row_106_a_port_that_is_taken_or_open_to_others_is_refused_with_what_to_type() {
    let fixture = Fixture::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for words in [["daemon", "run", "--listen", &address], ["daemon", "start", "--listen", &address]] {
        let said = fixture.planctl(&words);
        assert_ne!(said.code, 0, "{said:?}");
        assert!(
            said.err.contains(&format!("could not listen on {address}: another process has that port")),
            "{said:?}"
        );
        assert!(said.err.contains(&format!("sport = :{}", taken.local_addr().unwrap().port())), "{said:?}");
    }
    for open in ["0.0.0.0:7420", "[::]:7420", "192.0.2.1:7420"] {
        let said = fixture.planctl(&["daemon", "run", "--listen", open]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("--allow-remote"), "{said:?}");
    }
}

#[test]
fn row_107_what_is_no_readable_configuration_has_its_own_words() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("folder.toml")).unwrap();
    fixture.write("bytes.toml", "");
    std::fs::write(fixture.path("bytes.toml"), b"[contracts]\ntimeout = \"\xff\"\n").unwrap();
    for (file, code) in [("folder.toml", 78), ("bytes.toml", 78), ("nowhere.toml", 4)] {
        let said = fixture.planctl(&["--config", file, "ls"]);
        assert_eq!(said.code, code, "{file}: {said:?}");
        assert!(said.err.contains("could not read") && said.err.contains(file), "{file}: {said:?}");
    }
}

#[test]
fn row_109_times_and_languages_of_the_environment_change_no_answer() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let usual = fixture.planctl(&["plan", "verify", "p.md", "--json"]);
    for (name, value) in
        [("TZ", "Nonsense/Where"), ("TZ", ":::"), ("LANG", "C"), ("LC_ALL", "xx_YY.nonsense")]
    {
        let said = with(&fixture, &["plan", "verify", "p.md", "--json"], name, value);
        assert_eq!((said.code, &said.out), (usual.code, &usual.out), "{name}={value}: {said:?}");
    }
    let said = with(&fixture, &["ls", "--json"], "PLANCTL_LOG", "planctl=nonsense");
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str::<Value>(&said.out).unwrap();
    assert_eq!(said.err.matches("PLANCTL_LOG").count(), 1, "{said:?}");
}

#[test]
fn row_110_a_folder_that_can_not_be_written_is_told_and_leaves_nothing_half_written() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step()).write("file", "");
    let file = fixture.path("file").display().to_string();
    for folder in ["/proc/planctl", file.as_str(), "/dev/null/x"] {
        let mut command = fixture.command(&["plan", "run", "p.md", "--approve", "--exec", "touch done-1"]);
        let said = Said::from(
            command.env("PLANCTL_STATE_DIR", folder).env_remove("PLANCTL_DATABASE_URL").output().unwrap(),
        );
        assert_ne!(said.code, 0, "{folder}: {said:?}");
        assert!(
            said.err.contains("could not") && said.err.contains("PLANCTL_STATE_DIR"),
            "{folder}: {said:?}"
        );
    }
    assert!(!fixture.path("done-1").exists());
    // No byte can be written: the limit stands for a full disk.
    let untidy = one_step() + "\n\n\n";
    fixture.write("untidy.md", &untidy);
    let line =
        format!("trap '' XFSZ; ulimit -f 0; exec {} plan fmt untidy.md", env!("CARGO_BIN_EXE_planctl"));
    let said = in_bash(&fixture, &line);
    assert!(said.code != 0 && said.err.contains("could not write untidy.md"), "{said:?}");
    assert_eq!(fixture.read("untidy.md"), untidy);
    let left: Vec<PathBuf> =
        std::fs::read_dir(fixture.path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(
        !left.iter().any(|path| path.extension().is_some_and(|extension| extension == "tmp")),
        "{left:?}"
    );
}

#[test]
fn row_111_a_clock_that_was_never_set_changes_nothing_but_what_the_doctor_says() {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let library = places.map(|place| Path::new(place).join("faketime/libfaketimeMT.so.1"));
    let Some(library) = library.iter().find(|path| path.exists()) else {
        eprintln!("SKIPPED: libfaketime is not installed, so no clock was wrong");
        return;
    };
    let fixture = Fixture::new();
    for (at, year) in [("@1970-01-02 00:00:00", "1970"), ("@2101-01-02 00:00:00", "2101")] {
        let name = format!("p{year}.md");
        fixture.write(
            &name,
            &plan(&format!("In {year}"), "5 minutes", &[("One", "test -e done-1", "escalate")]),
        );
        let wrong = |words: &[&str]| {
            let mut command = fixture.command(words);
            command.env("LD_PRELOAD", library).env("FAKETIME", at).env("DONT_FAKE_MONOTONIC", "1");
            Said::from(command.output().unwrap())
        };
        let said = wrong(&["plan", "run", &name, "--approve", "--exec", "touch done-1"]);
        assert_eq!(said.code, 0, "{year}: {said:?}");
        let report: Value = serde_json::from_str(&wrong(&["doctor", "--json"]).out).unwrap();
        let clock =
            report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "clock").unwrap();
        assert_eq!(clock["health"], "warning", "{clock}");
        assert!(clock["found"].as_str().unwrap().contains(year), "{clock}");
    }
    let report: Value = serde_json::from_str(&fixture.planctl(&["doctor", "--json"]).out).unwrap();
    let clock = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "clock").unwrap();
    assert_eq!(clock["health"], "good", "{clock}");
}

#[test]
fn row_113_too_few_open_files_are_told_with_the_limit_that_is_needed() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let program = env!("CARGO_BIN_EXE_planctl");
    let said = in_bash(&fixture, &format!("ulimit -n 32; exec {program} ls"));
    assert_eq!(said.code, 69, "{said:?}");
    assert!(said.err.contains("32 files open at once") && said.err.contains("ulimit -n 1024"), "{said:?}");
    // A low soft limit is raised.
    let said = in_bash(
        &fixture,
        &format!("ulimit -Sn 32; exec {program} plan run p.md --approve --exec 'touch done-1'"),
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(in_bash(&fixture, &format!("ulimit -n 32; exec {program} plan verify p.md")).code, 0);
}

fn in_bash(fixture: &Fixture, line: &str) -> Said {
    let planctl = fixture.command(&[]);
    let mut bash = std::process::Command::new("bash");
    bash.arg("-c").arg(line).current_dir(fixture.path("")).env_clear();
    bash.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Said::from(bash.stdin(std::process::Stdio::null()).output().unwrap())
}

#[test]
fn credentials_in_an_agent_s_command_line_are_shown_nowhere() {
    let fixture = Fixture::new();
    let key = concat!("sk-ant-", "api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4");
    fixture.write("planctl.toml", &format!("[roles.coder]\nagent = \"exec:./work --token {key}\"\n"));
    fixture.write("p.md", &one_step());
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    for words in [
        &["roles", "ls"][..],
        &["roles", "ls", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["config", "show"],
        &["plan", "show", "p.md"],
        &["plan", "show", "p.md", "--json"],
    ] {
        let said = fixture.planctl(words);
        assert!(said.out.contains("./work"), "{words:?} {said:?}");
        assert!(!said.out.contains(key) && !said.err.contains(key), "{words:?} {said:?}");
    }
}

#[test]
fn a_run_goes_on_with_warnings_and_says_them_first() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan("P", "5 minutes", &[("One", "test -e done-1 || true; touch done-1", "escalate")]),
    );
    let verified = fixture.planctl(&["plan", "verify", "p.md", "-A", "P402", "--format", "plain"]);
    let warnings: Vec<&str> = verified.out.lines().filter(|line| line.contains(" warning[")).collect();
    assert!(!warnings.is_empty(), "{verified:?}");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", "true"]);
    let begins = said.err.find("run p-1 · ").unwrap();
    for warning in &warnings {
        let short = warning.split("; help: ").next().unwrap();
        assert!(said.err.find(short).is_some_and(|at| at < begins), "{warning}: {said:?}");
    }
    assert!(
        !fixture
            .planctl(&["plan", "run", "p.md", "--again", "--approve", "--exec", "true", "-q"])
            .err
            .contains("warning[")
    );
}

#[test]
fn the_page_of_a_plan_lists_its_locks() {
    let fixture = Fixture::new();
    let text = one_step().replace("**target:** coder", "**target:** coder\n**locks:** staging-db, ports");
    fixture.write("p.md", &text);
    let said = fixture.planctl(&["plan", "show", "p.md"]);
    assert!(said.out.contains("  locks ports, staging-db\n"), "{said:?}");
    assert_eq!(fixture.json(&["plan", "show", "p.md", "--json"])["steps"][0]["locks"][0], "ports");
}

/// A run's own file may give its plan a finding afterwards; the text was verified when it was approved.
#[test]
fn p118_a_run_that_made_its_file_is_taken_up_and_found_done_all_the_same() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("Do it", "grep -q good out.txt", "escalate")]));
    let run = |worker: &str| fixture.run(worker);
    let said = run("echo bad > out.txt");
    assert_eq!(said.code, 3, "{said:?}");
    let verified = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(verified.code == 1 && verified.out.contains("error[P118]"), "{verified:?}");
    let said = run("true");
    assert!(said.code == 3 && said.err.contains("taken up p-1"), "{said:?}");
    fixture.write("out.txt", "good\n");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = run("true");
    assert!(said.code == 0 && fixture.status()["state"] == "done", "{said:?}");
    let said = run("true");
    assert!(said.code == 0 && said.err.contains("p-1"), "{said:?}");
    // A new run has to be verified, and so has another text.
    fixture.write("out.txt", "bad\n");
    let again =
        fixture.planctl(&["plan", "run", "p.md", "--again", "--approve", "--no-wait", "--exec", "true"]);
    assert!(again.code == 1 && again.err.contains("error[P118]"), "{again:?}");
}

#[test]
fn the_doctor_lists_agents_with_their_version_and_the_names_of_their_logins() {
    let fixture = Fixture::new();
    let bin = fixture.path("../bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, says) in [("claude", "9.9.1 (Claude Code)"), ("codex", "codex-cli 9.9.2"), ("gemini", "9.9.3")]
    {
        let program = bin.join(name);
        std::fs::write(&program, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = fixture.path("../home");
    std::fs::create_dir(home.join(".codex")).unwrap();
    std::fs::write(home.join(".codex/auth.json"), "{\"tokens\":\"secret-2\"}").unwrap();
    let mut command = fixture.command(&["doctor", "--json"]);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("PATH", path).env("HOME", &home).env("ANTHROPIC_API_KEY", "secret-1");
    for name in
        ["CODEX_API_KEY", "CODEX_HOME", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"]
    {
        command.env_remove(name);
    }
    let said = Said::from(command.output().unwrap());
    assert!(!said.out.contains("secret-"), "{said:?}");
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "agent");
    let told: Vec<(&str, &str)> =
        checks.map(|check| (check["health"].as_str().unwrap(), check["found"].as_str().unwrap())).collect();
    let [claude, codex, gemini] = told.as_slice() else { panic!("{told:?}") };
    assert!(
        claude.1.starts_with("claude: 9.9.1 (Claude Code) (")
            && claude.1.ends_with("login: ANTHROPIC_API_KEY")
    );
    assert!(
        codex.1.starts_with("codex: codex-cli 9.9.2 (") && codex.1.ends_with(".codex/auth.json"),
        "{codex:?}"
    );
    assert!(gemini.0 == "warning" && gemini.1.ends_with("no login seen"), "{gemini:?}");
}

#[test]
fn a_protected_file_with_a_change_that_nobody_committed_meets_a_contract_that_asks_for_a_difference() {
    let fixture = Fixture::new();
    fixture.write("deploy.conf", "old.example.org\n");
    let commit = "git init --quiet && git add deploy.conf && git -c user.name=ann -c user.email=ann@example.org \
                  commit --quiet --message all";
    let mut git = std::process::Command::new("bash");
    assert!(git.args(["-c", commit]).current_dir(fixture.path("")).status().unwrap().success());
    let contract = "! git diff --quiet HEAD -- deploy.conf";
    fixture.write("p.md", &plan("Hosts", "5 minutes", &[("Use the new host", contract, "escalate")]));
    let said = fixture.planctl(&["verify", "p.md"]);
    assert!(said.code == 1 && said.out.contains("error[P118]"), "{said:?}");
    fixture.write("deploy.conf", "new.example.org\n");
    let said = fixture.planctl(&["verify", "p.md"]);
    assert!(said.code == 0 && !said.out.contains("P118"), "{said:?}");
    // It is as the workspace has it that the harness keeps it, and so the step passes.
    let said = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
}
