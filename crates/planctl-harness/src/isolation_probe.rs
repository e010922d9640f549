//! Finds out which tiers of isolation this host offers (PROMISES 3.1).

use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;

use planctl_engine::Tier;

use crate::blocking::blocking_in_place;
use crate::isolation::{Confinement, Network};
use crate::process::{Command, End};
use crate::scratch::TRIAL_PREFIX;
use crate::spawn::{self, Primitive, Spawner};

/// Describes the isolation that this host offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offered {
    /// The best tier of which every part held in a trial.
    pub tier: Tier,
    /// The finding for each primitive.
    pub primitives: Vec<Primitive>,
}

/// How long a trial may take.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Tries each tier with a real command and returns the best that held, with the primitives behind it.
///
/// # Errors
///
/// When no process can be started at all, or there is no place for a folder that it may write.
pub async fn probe_isolation(spawner: &Spawner) -> std::io::Result<Offered> {
    let mut tier = Tier::SameUser;
    let mut trials = Vec::new();
    let (workspace, writable) = blocking_in_place(|| {
        let workspace = spawner.private_folder(TRIAL_PREFIX)?;
        let writable = workspace.path().canonicalize()?;
        std::io::Result::Ok((workspace, writable))
    })?;
    for (wanted, name) in [
        (Tier::Landlock, "tier 1a: Landlock, seccomp, no new privileges"),
        (Tier::Namespaces, "tier 1b: user, mount, PID and network namespaces"),
        (Tier::OwnUser, "tier 2: users of the command's own, files by idmapped mounts"),
    ] {
        // A tier that holds writes where it is let, as the owner of what is there.
        let mut command = Command::new(["/bin/sh", "-c", "echo > made && rm made"], workspace.path());
        command.environment = vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
        command.deadline = Some(TRIAL_TIMEOUT);
        command.confinement = Some(Confinement {
            network: Network::Loopback,
            writable: vec![writable.clone()],
            ..Confinement::new(wanted)
        });
        let end = spawner.run(&command, &mut |_, _| (), pending()).await?.end;
        let held = end == End::Exited(0);
        if held {
            tier = wanted;
        }
        let finding = match end {
            End::Exited(0) if wanted == Tier::OwnUser => {
                "holds; what only root can enter, such as /root, is out of its reach".to_owned()
            }
            End::Exited(0) => "holds".to_owned(),
            End::NotStarted { errno, .. } => format!("refused: {}", std::io::Error::from_raw_os_error(errno)),
            end @ (End::Exited(_)
            | End::Signalled(_)
            | End::TimedOut
            | End::IdleTimedOut
            | End::Flooded
            | End::OverLimit(_)
            | End::Cancelled
            | End::HelperLost) => format!("the trial command ended with {end:?}"),
        };
        trials.push(Primitive { name, is_there: held, finding });
    }
    let mut primitives = spawn::primitives();
    primitives.extend(trials);
    Ok(Offered { tier, primitives })
}
