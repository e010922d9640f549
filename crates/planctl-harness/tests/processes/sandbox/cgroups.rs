//! A cgroup of a command's own. Run where one is delegated: `just cgroups` does it in a virtual machine.

use std::path::Path;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{Resource, Tier};
use planctl_harness::{Command, End, ResourceLimits};

use super::users::the_kernel_holds_a_fork_bomb;
use super::{Ground, host, offered, text};
use crate::processes::support::{alive, block_on, marked, run, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a18_in_its_own_cgroup_the_kernel_holds_a_fork_bomb,
        a19_in_its_own_cgroup_files_in_memory_count,
        a19_in_its_own_cgroup_no_moment_is_too_short_to_be_seen,
        a_cgroup_goes_with_its_command,
    ]
}

/// The tiers at which a command has a cgroup of its own here.
fn tiers() -> Vec<Tier> {
    let found = host().primitives.iter().find(|primitive| primitive.name == "cgroup v2 limits").unwrap();
    if !found.is_there {
        eprintln!("cgroups are not tested: {}", found.finding);
        return Vec::new();
    }
    offered().into_iter().filter(|tier| *tier >= Tier::Namespaces).collect()
}

fn a18_in_its_own_cgroup_the_kernel_holds_a_fork_bomb() {
    for tier in tiers() {
        the_kernel_holds_a_fork_bomb(tier);
    }
}

fn within(ground: &Ground, tier: Tier, memory: u64, command: &str) -> (Command, String) {
    let (mut command, mark) = marked(ground.confined(tier, command));
    command.limits = ResourceLimits { memory: Some(memory), ..ResourceLimits::default() };
    // A virtual machine may be slow.
    command.deadline = Some(Duration::from_secs(300));
    (command, mark)
}

/// A look at its processes doesn't see them.
fn a19_in_its_own_cgroup_files_in_memory_count() {
    let over = End::OverLimit(Resource::Memory);
    for (tier, (bytes, end)) in tiers()
        .into_iter()
        .flat_map(|tier| [(80_000_000, &over), (20_000_000, &End::Exited(0))].map(|of| (tier, of)))
    {
        let ground = Ground::new();
        let fill = format!("head -c {bytes} /dev/zero > /tmp/large");
        let (command, mark) = within(&ground, tier, 64 << 20, &fill);
        let finished = block_on(run(&spawner(), &command));
        assert_eq!(finished.end, *end, "{tier}: {bytes} {:?}", text(&finished));
        assert_eq!(alive(&mark), [0_i32; 0], "{tier}");
    }
}

/// The look comes ten times a second; this takes less.
fn a19_in_its_own_cgroup_no_moment_is_too_short_to_be_seen() {
    for tier in tiers() {
        let ground = Ground::new();
        let (command, _) = within(&ground, tier, 32 << 20, "x=$(head -c 60000000 /dev/zero | tr '\\0' x)");
        let finished = block_on(run(&spawner(), &command));
        assert_eq!(finished.end, End::OverLimit(Resource::Memory), "{tier}: {:?}", text(&finished));
    }
}

fn a_cgroup_goes_with_its_command() {
    for tier in tiers() {
        let ground = Ground::new();
        let spawner = spawner();
        let (command, _) = within(&ground, tier, 64 << 20, "cat /proc/self/cgroup; setsid sleep 99 & exit 3");
        let finished = block_on(run(&spawner, &command));
        assert_eq!(finished.end, End::Exited(3), "{tier}: {:?}", text(&finished));
        let said = text(&finished).0;
        let own = said.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
        assert!(own.contains("/planctl-command-"), "{tier}: {own}");
        assert!(!Path::new("/sys/fs/cgroup").join(own).exists(), "{tier}: {own}");
    }
}
