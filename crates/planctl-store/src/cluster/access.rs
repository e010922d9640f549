//! Access to the cluster: the server asks the kernel for the user of the other end, and maps users to roles.
//!
//! Where root has another user run Postgres, that user could else connect as the superuser without a password, and change
//! what planctl then does as root. The files lie beside the data, where that user can't write.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::unistd::User;
use rustix::process::geteuid;

use super::ClusterError;
use super::data::{APP, NAME, READ};
use super::error::At as _;
use super::identity::Identity;
use super::layout::Layout;

/// Users that own nothing and run Postgres for root; they are nobody whom planctl trusts.
const SERVANTS: [&str; 2] = ["postgres", "nobody"];

/// Writes the two files, and returns the settings that name them; none where the system can't identify users.
pub(crate) fn write_access_files(layout: &Layout, identity: &Identity) -> Result<Vec<String>, ClusterError> {
    let own = match identity {
        // Within its user namespace the server sees every other user as nobody.
        Identity::Mapped { .. } => return Ok(Vec::new()),
        Identity::Own { .. } | Identity::Named { .. } => identity.name(),
    };
    let me = User::from_uid(geteuid().as_raw().into()).ok().flatten().map(|user| user.name);
    let mut users: BTreeSet<String> = ["root".to_owned()].into_iter().chain(me).collect();
    if !(geteuid().is_root() && SERVANTS.contains(&own.as_str())) {
        users.insert(own);
    }
    let map: String = users
        .iter()
        .flat_map(|user| [NAME, APP, READ].map(|role| format!("planctl {} {role}\n", quoted(user))))
        .collect();
    let (access, names) = (layout.pg_dir.join("access.conf"), layout.pg_dir.join("users.conf"));
    write(&access, "local all all peer map=planctl\n")?;
    write(&names, &map)?;
    Ok(vec![format!("hba_file={}", access.display()), format!("ident_file={}", names.display())])
}

fn quoted(user: &str) -> String {
    format!("\"{}\"", user.replace('"', "\"\""))
}

/// Replaces a file by one that the server's user can read.
pub(super) fn write(path: &Path, text: &str) -> Result<(), ClusterError> {
    let draft = path.with_extension("draft");
    match fs::remove_file(&draft) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).at("remove", &draft),
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&draft).at("write", &draft)?;
    file.write_all(text.as_bytes()).at("write", &draft)?;
    // The mode above is narrowed by the umask, and nothing here is secret.
    fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o644)).at("open", &draft)?;
    fs::rename(&draft, path).at("move", &draft)
}
