//! A database that runs out of something: the daemon says so, and goes on by itself once there is enough (P12).

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::support::history::must_be_done;
use crate::support::{Place, wait_until};

/// A small file system of its own at a path, as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one; `None` where that is not allowed.
    fn at(path: &Path, megabytes: u32) -> Option<SmallDisk> {
        fs::create_dir_all(path).unwrap();
        let options = format!("size={megabytes}m,mode=755");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output().unwrap();
        if !mounted.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&mounted.stderr));
            return None;
        }
        Some(SmallDisk(path.to_owned()))
    }

    /// Takes all the room there is, but for what processes made room for themselves.
    fn fill(&self) {
        let mut file = File::options().append(true).create(true).open(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Of a test that failed processes may still use it.
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

#[test]
fn p12_a_full_disk_is_told_and_the_run_goes_on_once_there_is_room() {
    let place = Place::untouched();
    let Some(disk) = SmallDisk::at(&place.path("state"), 160) else { return };
    place.plan(4, "");
    place.set("hold-work-2");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave("work begin 2");
    disk.fill();
    place.unset("hold-work-2");
    let health = || place.json(&["daemon", "status", "--json"])["health"].clone();
    wait_until("the daemon says so", || health()["state"] == "degraded");
    daemon.hear("the disk of the database is full");
    let health = health();
    let last_error = health["last_error"]["what"].as_str().unwrap();
    // How Postgres says it depends on whether half a page found room.
    let said_so = ["No space left on device", "wrote only 4096 of 8192 bytes"]
        .iter()
        .any(|words| last_error.contains(words));
    assert!(said_so, "{health}");
    let said = place.planctl(&["cancel", "p-1"]);
    assert!(said.code == 69 && said.err.contains("full"), "{said:?}");
    let said = place.planctl(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("make room there"), "{said:?}");
    disk.make_room();
    place.await_state("done");
    must_be_done(&place, &[1, 1, 1, 1]);
    assert_eq!(place.noted("work begin"), 4, "no work was done twice: {:#?}", place.journal());
    wait_until("the daemon is well", || {
        place.json(&["daemon", "status", "--json"])["health"]["state"] == "running"
    });
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn p12_a_database_without_memory_is_told_and_the_run_goes_on_once_there_is_some() {
    let place = Place::new();
    place.plan(2, "");
    place.set("hold-work-1");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave("work begin 1");
    let sql = |text: &str| place.must(&["db", "psql", "--owner", "--", "-c", text]);
    sql("create function lacks() returns trigger language plpgsql as $$ begin \
         raise exception 'out of memory' using errcode = '53200'; end $$; \
         create trigger lacks before insert on history for each row execute function lacks()");
    place.unset("hold-work-1");
    let health = || place.json(&["daemon", "status", "--json"])["health"].clone();
    wait_until("the daemon says so", || health()["database_shortage"]["of"] == "memory");
    daemon.hear("the database is out of memory, what is under way waits: out of memory");
    let said = place.planctl(&["cancel", "p-1"]);
    assert!(said.code == 69 && said.err.contains("the database is out of memory"), "{said:?}");
    sql("drop trigger lacks on history");
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    wait_until("the daemon is well", || health()["state"] == "running");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_state_directory_that_can_not_be_written_is_named_by_the_doctor() {
    let place = Place::untouched();
    let Some(disk) = SmallDisk::at(&place.path("state"), 1) else { return };
    let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.0).status().unwrap();
    assert!(mounted.success());
    let said = place.planctl(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("state can't be written"), "{said:?}");
}

#[test]
fn a_disk_that_is_full_is_said_before_anything_meets_it_by_a_run_and_by_a_daemon() {
    let place = Place::untouched();
    let Some(disk) = SmallDisk::at(&place.path("state"), 160) else { return };
    place.plan(1, "");
    place.set("hold-work-1");
    let full = format!("the disk of {} is full", place.path("state").display());
    let mut run = place.start_run();
    place.await_note("work begin 1", 1);
    disk.fill();
    run.hear(&full);
    disk.make_room();
    run.hear("has room again");
    place.unset("hold-work-1");
    assert_eq!(run.end().code, 0);
    let mut daemon = place.daemon();
    daemon.hear("ready");
    disk.fill();
    daemon.hear(&full);
    let last_error = || place.json(&["daemon", "status", "--json"])["health"]["last_error"]["what"].clone();
    assert!(last_error().as_str().is_some_and(|words| words.contains(&full)), "{}", last_error());
    disk.make_room();
    daemon.hear("has room again");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_private_postgres_that_can_not_be_made_says_why_in_one_line_and_where_the_rest_is() {
    let place = Place::untouched();
    let Some(_disk) = SmallDisk::at(&place.path("state"), 10) else { return };
    let said = place.planctl(&["ls"]);
    assert_eq!(said.code, 69, "{said:?}");
    let (first, help) = said.err.split_once('\n').unwrap();
    assert!(first.starts_with("could not make the private Postgres in "), "{said:?}");
    assert!(first.contains("No space left on device"), "{said:?}");
    let log = place.path("state/pg/postgres.log");
    assert!(help.starts_with("help: make room there") && help.lines().count() == 1, "{said:?}");
    assert!(help.contains(&format!("all that it said is in {}", log.display())), "{said:?}");
    let logged = fs::read_to_string(log).unwrap();
    assert!(logged.contains("creating subdirectories") && logged.contains("No space left"), "{logged}");
}
