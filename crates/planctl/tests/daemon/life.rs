//! Started, looked at, refused a second time, asked to leave.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::history::{History, must_be_done, must_be_in_order};
use crate::support::{Place, wait_until};

#[test]
fn a_daemon_in_the_background_is_started_seen_and_stopped() {
    let place = Place::untouched();
    let said = place.planctl(&["daemon", "status", "--json"]);
    assert_eq!(said.code, 69, "{said:?}");
    assert!(said.err.contains("next: planctl daemon start"), "{said:?}");
    assert!(said.out.contains("\"is_running\":false"), "{said:?}");

    let said = place.must(&["daemon", "start"]);
    assert!(said.err.contains("started pid "), "{said:?}");
    let status = place.json(&["daemon", "status", "--json"]);
    let pid = status["pid"].as_u64().unwrap();
    assert_eq!(
        (&status["health"]["state"], &status["service"]["items"]["working"]),
        (&"running".into(), &0.into())
    );
    assert_eq!(status["daemon"]["pid"].as_u64(), Some(pid));
    let page = place.must(&["daemon", "status"]).out;
    let value = |name: &str| page.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert_eq!((value("state:"), value("pid:")), (Some("running"), Some(pid.to_string().as_str())), "{page}");
    assert_eq!(value("approvals:"), Some("0 waiting for you"), "{page}");
    assert!(page.lines().all(|line| line.contains(": ")), "{page}");
    for inside in ["minds", "took up", "leases", "items"] {
        assert!(!page.contains(inside), "{inside}: {page}");
    }
    let said = place.must(&["daemon", "start"]);
    assert!(said.err.contains(&format!("a daemon is there already: pid {pid}")), "{said:?}");
    let said = place.planctl(&["daemon", "start", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("does not listen on 127.0.0.1:0"), "{said:?}");
    assert!(said.err.contains("next: planctl daemon stop"), "{said:?}");
    let said = place.planctl(&["daemon", "start", "-j", "9", "--gates", "3"]);
    assert_eq!(said.code, 5, "{said:?}");
    let lacks = format!("a daemon is there already, pid {pid}, without --workers 9, --gates 3");
    assert!(said.err.contains(&lacks) && said.err.contains("next: planctl daemon stop"), "{said:?}");
    place.must(&["daemon", "start", "-j", "4", "--max-open-runs", "1000"]);
    let logs = place.must(&["daemon", "logs"]);
    assert!(logs.out.contains("using private Postgres") && logs.out.contains("ready"), "{logs:?}");
    assert_eq!(place.must(&["daemon", "logs", "--tail", "1"]).out.lines().count(), 1);

    let said = place.must(&["daemon", "stop"]);
    assert!(said.err.contains("stopped within "), "{said:?}");
    assert!(!place.path("state/daemon.json").exists());
    let said = place.must(&["daemon", "stop"]);
    assert!(said.err.contains("no daemon is there"), "{said:?}");
    place.await_quiet();
}

#[test]
fn a_daemon_that_has_the_settings_that_are_asked_for_is_there_however_they_were_typed() {
    let place = Place::new();
    let mut daemon = place.start(&["daemon", "run", "-j9", "--gates=3"]);
    daemon.hear("ready");
    let said = place.must(&["daemon", "start", "--workers", "9", "--gates", "3"]);
    assert!(said.err.contains("a daemon is there already: pid "), "{said:?}");
    // The usual number is a wish like any other, where it is typed.
    let said = place.planctl(&["daemon", "start", "-j", "4"]);
    assert!(said.code == 5 && said.err.contains(", without --workers 4\n"), "{said:?}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_daemon_does_not_say_again_what_an_earlier_one_said_of_a_plan_file() {
    let place = Place::new();
    place.plan(1, "");
    let went = place.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "false"]);
    assert_eq!(went.code, 1, "{went:?}");
    let file = place.path("work/p.md");
    std::fs::rename(&file, place.path("work/q.md")).unwrap();
    std::fs::create_dir(&file).unwrap();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    // The next run's marks are drawn after those of the runs that are over.
    place.must(&["plan", "run", "q.md", "--approve", "--no-wait", "--exec", &place.exec()]);
    daemon.signal(Signal::TERM);
    let said = daemon.end();
    assert!(!said.err.contains("was not marked"), "{said:?}");
    place.await_quiet();
}

#[test]
fn who_starts_a_daemon_while_others_do_is_told_that_one_is_there() {
    let place = Place::new();
    let starts: Vec<_> = (0..8).map(|_| place.start(&["daemon", "start"])).collect();
    let said: Vec<_> = starts.into_iter().map(crate::support::Going::end).collect();
    assert!(said.iter().all(|said| said.code == 0), "{said:#?}");
    let started = said.iter().filter(|said| said.err.contains("started pid ")).count();
    let there = said.iter().filter(|said| said.err.contains("a daemon is there already: pid ")).count();
    assert_eq!((started, there), (1, 7), "{said:#?}");
    place.must(&["daemon", "stop"]);
    place.await_quiet();
}

#[test]
fn a_daemon_whose_state_directory_was_moved_away_says_so_and_ends_with_a_failure() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let state = place.path("state");
    std::fs::rename(&state, place.path("moved")).unwrap();
    let said = daemon.end();
    assert_eq!(said.code, 75, "a service manager starts it again: {said:?}");
    let words = format!("the state directory {} was moved or deleted", state.display());
    assert!(said.err.contains(&words), "{said:?}");
    place.await_quiet();
    // Back in its place it serves as before.
    std::fs::rename(place.path("moved"), &state).unwrap();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_daemon_whose_files_were_removed_is_told_and_can_be_stopped() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    std::fs::remove_file(place.path("state/daemon.sock")).unwrap();
    let said = place.planctl(&["daemon", "status"]);
    assert!(said.out.contains("its socket was removed: planctl daemon stop"), "{said:?}");
    std::fs::remove_file(place.path("state/daemon.json")).unwrap();
    let said = place.planctl(&["daemon", "status"]);
    assert!(said.code == 69 && said.err.contains("or its files were removed"), "{said:?}");
    assert!(said.err.contains("next: planctl daemon stop"), "{said:?}");
    place.must(&["daemon", "stop"]);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_daemon_that_cannot_start_says_why_where_it_was_started() {
    let place = Place::new();
    let wrong = "postgres://nobody@127.0.0.1:1/nothing";
    let said = place.planctl(&["daemon", "start", "--database-url", wrong]);
    assert_eq!(said.code, 69, "{said:?}");
    assert!(said.err.contains("the daemon did not start; it said:\n"), "{said:?}");
    assert!(said.err.contains("could not reach the database in time"), "{said:?}");
    place.await_quiet();
}

#[test]
fn a_daemon_whose_postgres_does_not_start_says_what_happened_before_what_postgres_said() {
    let place = Place::new();
    place.must(&["db", "psql", "--owner", "--", "-Atc", "select 1"]);
    place.await_quiet();
    let folders = std::fs::read_dir(place.path("state/pg")).unwrap();
    let settings = folders.map(|folder| folder.unwrap().path().join("postgresql.conf"));
    let settings = settings.filter(|path| path.exists()).last().unwrap();
    std::fs::write(&settings, "nonsense = 1\n".repeat(40)).unwrap();
    let said = place.planctl(&["daemon", "start"]);
    assert_eq!(said.code, 69, "{said:?}");
    assert!(said.err.contains("it said:\n  could not "), "{said:?}");
    assert!(said.err.contains("nonsense") && said.err.contains("state/daemon.log"), "{said:?}");
    place.await_quiet();
}

#[test]
fn a_state_directory_too_deep_for_a_socket_is_told_by_doctor_and_refuses_a_daemon() {
    let place = Place::new();
    let deep = place.path(&"deep/".repeat(20));
    let variables = [("PLANCTL_STATE_DIR", deep.as_os_str())];
    for words in [["daemon", "start"].as_slice(), &["daemon", "run"], &["daemon", "install-service"]] {
        let said = place.start_with(words, &variables).end();
        assert_eq!(said.code, 78, "{words:?}: {said:?}");
        assert!(said.err.contains("set PLANCTL_STATE_DIR to a shorter path"), "{words:?}: {said:?}");
    }
    let said = place.start_with(&["doctor"], &variables).end();
    assert!(said.out.contains("! state"), "{said:?}");
    assert!(said.out.contains("set PLANCTL_STATE_DIR to a shorter path"), "{said:?}");
    place.await_quiet();
}

#[test]
fn row_112_a_second_daemon_is_refused_and_told_who_is_there() {
    let place = Place::new();
    let mut first = place.daemon();
    first.hear("ready");
    let pid = first.pid().as_raw_nonzero();
    let said = place.planctl(&["daemon", "run"]);
    assert_eq!(said.code, 5, "{said:?}");
    let there = format!("could not start a daemon: one is there already: pid {pid}, started ");
    let started = said.err.lines().find_map(|line| line.strip_prefix(&there));
    assert!(started.is_some_and(|started| started.ends_with("s ago")), "{said:?}");
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, 0);
    // One that was killed leaves its file, and is in nobody's way.
    let mut second = place.daemon();
    second.hear("ready");
    second.kill().unwrap();
    assert!(place.path("state/daemon.json").exists());
    assert_eq!(place.planctl(&["daemon", "status"]).code, 69);
    let mut third = place.daemon();
    third.hear("ready");
    third.signal(Signal::INT);
    assert_eq!(third.end().code, 0);
    place.await_quiet();
}

#[test]
fn what_others_started_is_finished_by_the_daemon_and_marked_in_the_file() {
    let place = Place::new();
    place.plan(3, "");
    place.set("flaky-2");
    place.set("hold-work-1");
    let starting = place.start_run();
    place.await_note("work begin 1", 1);
    starting.signal(Signal::TERM);
    assert_eq!(starting.end().code, 143);
    place.unset("hold-work-1");

    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.await_state("done");
    must_be_done(&place, &[1, 2, 1]);
    must_be_in_order(&place.journal());
    let text = || std::fs::read_to_string(place.path("work/p.md")).unwrap();
    wait_until("the marks", || text().contains("status: done") && text().matches('✅').count() == 3);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn p8_a_run_that_planctl_works_on_beside_the_daemon_is_done_once() {
    let place = Place::new();
    place.plan(6, "");
    place.set("flaky-3");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let said = place.start_run().end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 1, 2, 1, 1, 1]);
    must_be_in_order(&place.journal());
    assert_eq!((place.noted("work begin"), place.noted("gate begin")), (7, 7), "nothing was done twice");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

/// Asks a daemon to leave while `note` is the newest line of the journal.
fn leave(hold: &str, note: &str) {
    let place = Place::new();
    place.plan(2, "");
    place.set(hold);
    place.set("stubborn");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave(note);
    let asked = Instant::now();
    daemon.signal(Signal::TERM);
    let said = daemon.end();
    let within = asked.elapsed();
    eprintln!("in {note:?}: left within {within:.2?}");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.err.contains("left to the next process"), "{said:?}");
    place.await_quiet();

    let leased = "select count(*) from items where state = 'leased'";
    assert_eq!(
        place.must(&["db", "psql", "--owner", "--", "-Atc", leased]).out,
        "0\n",
        "leases were given back"
    );
    let history = History::of(&place, "@last");
    history.must_be_whole();
    assert_eq!(history.count("clock.lease_lost"), 0, "given back, not lost: {:?}", history.names());
    assert_eq!(history.count("retry_triggered"), 0, "no attempt was spent: {:?}", history.names());

    place.unset(hold);
    let mut next = place.daemon();
    next.hear("ready");
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    must_be_in_order(&place.journal());
    next.signal(Signal::TERM);
    assert_eq!(next.end().code, 0);
    place.await_quiet();
    assert!(within < Duration::from_secs(30), "it hung: {within:?}");
}

#[test]
fn p22_terminated_in_mid_work_it_hands_back_and_spends_no_attempt() {
    leave("hold-work-1", "work begin 1");
}

#[test]
fn p22_terminated_in_mid_gate_it_hands_back_and_spends_no_attempt() {
    leave("hold-gate-1", "gate begin 1");
}

#[test]
fn p22_a_gate_that_is_about_to_end_ends_before_the_daemon_does() {
    let place = Place::new();
    place.plan(2, "");
    place.set("hold-gate-1");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave("gate begin 1");
    daemon.signal(Signal::TERM);
    daemon.hear("stopping");
    place.unset("hold-gate-1");
    assert_eq!(daemon.end().code, 0);
    let status = place.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["steps"][0]["state"], "passed", "{status}");
    assert_eq!(place.noted("gate begin 1"), 1);
    place.await_quiet();
}

#[test]
fn row_102_a_newer_schema_is_refused_at_the_start_and_ends_a_daemon_that_meets_it() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let said = place.must(&["daemon", "migrate", "--check"]);
    assert!(said.err.contains("the schema is up to date"), "{said:?}");
    let newer = "insert into planctl_migrations (version, name) values (900, 'later')";
    place.must(&["db", "psql", "--owner", "--", "-Atc", newer]);
    let said = daemon.end();
    assert_eq!(said.code, 78, "{said:?}");
    let words = "could not use this database: its schema is 900 and this planctl knows up to";
    assert!(said.err.contains(words), "{said:?}");
    for words_typed in
        [["daemon", "run"].as_slice(), &["daemon", "migrate"], &["daemon", "migrate", "--check"]]
    {
        let said = place.planctl(words_typed);
        assert_eq!(said.code, 78, "systemd does not try again: {said:?}");
        assert!(said.err.contains(words) && said.err.contains("help: another planctl"), "{said:?}");
    }
    place.await_quiet();
}

#[test]
fn row_102_an_older_schema_is_told_and_not_touched_by_a_check() {
    let place = Place::new();
    place.must(&["daemon", "migrate"]);
    let older =
        "delete from planctl_migrations where version = (select max(version) from planctl_migrations)";
    place.must(&["db", "psql", "--owner", "--", "-Atc", older]);
    let said = place.planctl(&["daemon", "migrate", "--check"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("next: planctl daemon migrate"), "{said:?}");
    place.await_quiet();
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let place = Place::new();
    std::fs::create_dir(place.path("units")).unwrap();
    let told = std::process::Command::new("systemd-analyze").arg("--version").output();
    if !told.is_ok_and(|told| told.status.success()) {
        eprintln!("SKIPPED: systemd-analyze is not installed, so no unit was checked");
        return;
    }
    for words in [["--system"].as_slice(), &["--user"], &["--system", "--run-as", "root"]] {
        let said = place.must(&[&["daemon", "install-service", "--print"], words].concat());
        assert!(said.out.contains("Type=notify\n") && said.out.contains("WatchdogSec="), "{said:?}");
        // Each mounts over a part of /proc, and then the kernel refuses a new one to whoever is confined at tier 1b.
        for fence in ["ProtectKernelTunables=", "ProtectKernelLogs=", "ProtectHostname=", "ProtectProc="] {
            assert!(!said.out.lines().any(|line| line.starts_with(fence)), "{fence} in {said:?}");
        }
        let unit = place.path("units/planctl.service");
        std::fs::write(&unit, &said.out).unwrap();
        let mut verify = std::process::Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).arg(&unit).env("XDG_RUNTIME_DIR", place.path("units"));
        let told = verify.output().unwrap();
        let words_told = String::from_utf8_lossy(&told.stderr);
        let about_ours: Vec<&str> =
            words_told.lines().filter(|line| line.contains("planctl.service")).collect();
        assert!(told.status.success() && about_ours.is_empty(), "{words:?}: {told:?}");
    }
    let said = place.planctl(&["daemon", "install-service", "--system", "--run-as", "a b", "--print"]);
    assert_eq!(said.code, 2, "{said:?}");
    let said = place.must(&["daemon", "install-service", "--user"]);
    assert!(said.err.contains("systemctl --user enable --now planctl"), "{said:?}");
    let unit = place.path("home/.config/systemd/user/planctl.service");
    assert!(std::fs::read_to_string(&unit).unwrap().starts_with("# Written by"));
    place.must(&["daemon", "install-service", "--user"]);
    std::fs::write(&unit, "[Unit]\n").unwrap();
    assert_eq!(place.planctl(&["daemon", "install-service", "--user"]).code, 5);
}

#[test]
fn the_unit_has_what_was_asked_for_no_secret_and_nothing_of_another_hand() {
    let place = Place::new();
    std::fs::write(place.path("work/own file.toml"), "").unwrap();
    let words =
        ["daemon", "install-service", "--user", "--config", "own file.toml", "--listen", "127.0.0.1:7420"];
    place.must(&words);
    let unit = place.path("home/.config/systemd/user/planctl.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    let command = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let config = place.path("work").canonicalize().unwrap().join("own file.toml");
    let given = format!(" daemon run --listen 127.0.0.1:7420 --config \"{}\"", config.display());
    assert!(command.ends_with(&given), "{command}");

    // A unit that nobody changed is written anew.
    place.must(&["daemon", "install-service", "--user"]);
    let text = std::fs::read_to_string(&unit).unwrap();
    assert!(!text.contains("--listen"), "{text}");
    std::fs::write(&unit, text.replace("WatchdogSec=90", "WatchdogSec=900")).unwrap();
    let said = place.planctl(&["daemon", "install-service", "--user"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("systemctl --user edit planctl"), "{said:?}");
    assert!(std::fs::read_to_string(&unit).unwrap().contains("WatchdogSec=900"));

    let url = "postgres://ann:secret@127.0.0.1:1/planctl";
    let named = place.planctl(&["daemon", "install-service", "--user", "--print", "--database-url", url]);
    let variable = [("PLANCTL_DATABASE_URL", url.as_ref())];
    let told = place.start_with(&["daemon", "install-service", "--user", "--print"], &variable).end();
    for said in [named, told] {
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
        assert!(said.err.contains("planctl.toml") && !said.err.contains("secret@"), "{said:?}");
    }
}

#[test]
fn systemd_is_told_that_it_is_ready_that_it_turns_and_that_it_stops() {
    let place = Place::new();
    let path = place.path("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(crate::support::WAIT_MAX)).unwrap();
    let mut heard = String::new();
    let mut until = |words: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(words) {
            let length = socket.recv(&mut buffer).unwrap();
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
            heard.push('\n');
        }
    };
    let daemon = place.start_with(&["daemon", "run"], &[("NOTIFY_SOCKET", path.as_os_str())]);
    until("READY=1");
    until("WATCHDOG=1");
    daemon.signal(Signal::TERM);
    until("STOPPING=1");
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn dev_serves_every_role_that_nothing_else_serves() {
    let place = Place::new();
    place.plan(2, "");
    let mut dev = place.start(&["dev", "--exec", &place.exec()]);
    dev.hear("Ctrl-C stops all of it");
    // The project has a plan, so none is proposed.
    let proposed = ["planctl run p.md", "planctl new"].map(|command| dev.heard().contains(command));
    assert_eq!(proposed, [true, false], "{}", dev.heard());
    let said = place.planctl(&["plan", "run", "p.md", "--approve", "--detach"]);
    assert_eq!(said.code, 0, "{said:?}");
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, 0);
    place.await_quiet();
}

#[test]
fn without_notifications_everything_works_and_is_slower_only() {
    let place = Place::new();
    place.plan(3, "");
    place.set("flaky-2");
    let mut daemon = place.start_with(&["daemon", "run"], &[("PLANCTL_NOTIFY", "off".as_ref())]);
    daemon.hear("ready");
    place.start_and_leave("work begin 1");
    place.await_state("done");
    must_be_done(&place, &[1, 2, 1]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn p20_what_children_print_costs_the_daemon_no_memory() {
    let place = Place::new();
    place.plan(1, "");
    // More than the daemon may have in memory, once from the worker and once from the contract.
    let flood = "head -c 250000000 /dev/zero | tr '\\0' x; ";
    let worker = std::fs::read_to_string(place.path("worker.sh")).unwrap();
    std::fs::write(place.path("worker.sh"), format!("{flood}{worker}")).unwrap();
    let check = std::fs::read_to_string(place.path("check.sh")).unwrap();
    std::fs::write(place.path("check.sh"), format!("{flood}{check}")).unwrap();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave("work begin 1");
    place.await_state("done");
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid().as_raw_nonzero())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    assert!(kilobytes < 200_000, "{peak}");
    must_be_done(&place, &[1]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn p27_the_marks_are_in_the_file_when_a_run_beside_the_daemon_returns() {
    let place = Place::new();
    place.plan(2, "");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let said = place.start_run().end();
    let text = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(text.contains("status: done") && text.matches('✅').count() == 2, "{text}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}
