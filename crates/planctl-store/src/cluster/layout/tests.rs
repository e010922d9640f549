//! Tests of where the cluster lies: its state directory, its socket, its parents.

use super::*;

fn own() -> Identity {
    Identity::Own { uid: geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

#[test]
fn the_named_directory_wins_then_the_systems_as_root_then_xdg() {
    let xdg = || Some(PathBuf::from("/home/ann/.local/state"));
    let at = |explicit: Option<&str>, root| state_dir_from(explicit.map(OsStr::new), root, xdg).unwrap();
    assert_eq!(at(Some("/srv/p"), true), Path::new("/srv/p"));
    assert_eq!(at(Some("/srv/p"), false), Path::new("/srv/p"));
    assert_eq!(at(None, true), Path::new("/var/lib/planctl"));
    assert_eq!(at(None, false), Path::new("/home/ann/.local/state/planctl"));
    assert_eq!(at(Some(""), false), Path::new("/home/ann/.local/state/planctl"));
    let relative = state_dir_from(Some(OsStr::new("state")), false, xdg).unwrap_err();
    assert!(relative.to_string().contains("has to be an absolute path"), "{relative}");
    assert!(matches!(state_dir_from(None, false, || None), Err(ClusterError::NoStateDir)));
}

#[test]
fn a_long_state_directory_gets_a_short_socket_of_its_own() {
    let near = Layout::new(Path::new("/var/lib/planctl")).unwrap();
    assert_eq!(near.socket_dir(7), Path::new("/var/lib/planctl/pg/run"));
    let far =
        |name: &str| Layout::new(Path::new(&format!("/{}{name}", "d".repeat(120)))).unwrap().socket_dir(7);
    assert!(far("a").starts_with("/tmp/planctl-7"));
    assert!(far("a").as_os_str().len() + "/.s.PGSQL.5432".len() <= SOCKET_PATH_BYTES_MAX);
    assert_ne!(far("a"), far("b"));
    assert_eq!(far("a"), far("a"));
}

#[test]
fn the_socket_stays_near_up_to_the_last_byte_that_fits() {
    let of_length = |bytes: usize| {
        let pad = bytes - "/".len() - "/pg/run/.s.PGSQL.5432".len();
        Layout::new(Path::new(&format!("/{}", "d".repeat(pad)))).unwrap().socket_dir(7)
    };
    assert!(of_length(107).ends_with("pg/run"));
    assert!(of_length(108).starts_with("/tmp"));
}

#[test]
fn a_closed_parent_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let other = Identity::Named { name: "postgres".into(), uid: 4242, gid: 4242 };
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let layout = Layout::new(&closed.join("deep/state")).unwrap();
    let error = layout.prepare(&other).unwrap_err();
    assert!(
        matches!(&error, ClusterError::ParentNotTraversable { parent, mode: 0o700, .. } if *parent == closed),
        "{error}"
    );
    assert!(error.to_string().contains("PLANCTL_STATE_DIR"), "{error}");
    assert!(!closed.join("deep").exists(), "a refused place is left as it was");
}

#[test]
fn a_socket_directory_of_another_kind_is_refused_and_an_open_one_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    assert!(make_private_dir(&link, &own()).is_err());
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    make_private_dir(&open, &own()).unwrap();
    assert_eq!(fs::metadata(&open).unwrap().mode() & 0o777, 0o700);
}
