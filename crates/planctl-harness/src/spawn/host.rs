//! Looks up which primitives of isolation the running kernel has and lets this user have.

use super::cgroups::Delegated;
use super::restrict;

/// Describes what one primitive of isolation is worth on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Primitive {
    /// Its name.
    pub name: &'static str,
    /// Says whether it can be used.
    pub is_there: bool,
    /// The finding, in a few words.
    pub finding: String,
}

/// Lists the primitives behind the tiers; a look at settings only, nothing is tried.
pub(crate) fn primitives() -> Vec<Primitive> {
    let abi = restrict::landlock_abi();
    let landlock = match abi {
        0 => "not in this kernel, or not enabled (lsm=landlock)".to_owned(),
        1..6 => format!("ABI {abi}: serves tier 1b; tier 1a needs 6 (Linux 6.12)"),
        _ => format!("ABI {abi}"),
    };
    let actions = read("/proc/sys/kernel/seccomp/actions_avail");
    let users = read("/proc/sys/user/max_user_namespaces");
    let is_restricted = ["apparmor_restrict_unprivileged_userns"]
        .iter()
        .any(|name| read(&format!("/proc/sys/kernel/{name}")).as_deref() == Some("1"))
        || read("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0");
    let has_users = users.as_deref().is_some_and(|most| most != "0");
    let users = match (&users, is_restricted && !rustix::process::geteuid().is_root()) {
        (None, _) => "not in this kernel".to_owned(),
        (Some(_), true) => "kept from plain users (AppArmor or unprivileged_userns_clone)".to_owned(),
        (Some(most), false) => format!("at most {most}"),
    };
    let cgroup = Delegated::find();
    let is_root = is_root_of_the_host();
    vec![
        Primitive { name: "Landlock", is_there: abi > 0, finding: landlock },
        Primitive {
            name: "seccomp",
            is_there: actions.as_deref().is_some_and(|actions| actions.contains("errno")),
            finding: actions.unwrap_or_else(|| "not in this kernel".to_owned()),
        },
        Primitive { name: "user namespaces", is_there: has_users, finding: users },
        Primitive {
            name: "root of the host",
            is_there: is_root,
            finding: match is_root {
                true => "serves tier 2: ids and idmapped mounts".to_owned(),
                false => "tier 2 needs it, with CAP_SYS_ADMIN and outside of user namespaces".to_owned(),
            },
        },
        Primitive {
            name: "cgroup v2 limits",
            is_there: cgroup.is_ok(),
            finding: cgroup.map_or_else(str::to_owned, |cgroup| cgroup.controllers),
        },
    ]
}

fn read(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Says whether we may give away ids of the host, and have files belong to others in a mount.
fn is_root_of_the_host() -> bool {
    /// `CAP_SYS_ADMIN`.
    const ADMIN: u64 = 1 << 21;
    let status = read("/proc/self/status").unwrap_or_default();
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = rights.and_then(|rights| u64::from_str_radix(rights.trim(), 16).ok()).unwrap_or_default();
    let ids = read("/proc/self/uid_map").unwrap_or_default();
    rights & ADMIN != 0 && ids.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}
