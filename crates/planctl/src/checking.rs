//! Verifies plans for the commands; needs no database.

use std::io::Read as _;
use std::path::Path;

use planctl_config::Agent;
use planctl_harness::{ReplicaError, ReplicaLimits, Spawner, Unreadable};
use planctl_lang::{Candidate, Levels, PLAN_BYTES_MAX, Reach, Source};
use planctl_server::autofix::{self, Mended};
use planctl_server::check::{self, CheckError, Checked, Checking};
use planctl_server::probe::{Probe, ProbeError, ProbeProgress, Rechecked};
use tokio::sync::watch;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::plan_files;
use crate::show;
use crate::stop::Stop;

/// Verifies a plan file. These levels go before the configured ones.
pub async fn check(
    context: &Context,
    file: &Path,
    worker: Option<&Agent>,
    levels: &Levels,
) -> Result<Checked, Failure> {
    check_in(context, "", file, worker, levels).await
}

/// Verifies a plan file that works in a folder of the workspace.
pub async fn check_in(
    context: &Context,
    folder: &str,
    file: &Path,
    worker: Option<&Agent>,
    levels: &Levels,
) -> Result<Checked, Failure> {
    let verify =
        async |checking: Checking<'_>, spawner: &Spawner| check::check(file, checking, spawner).await;
    with_helper(context, folder, worker, levels, verify).await
}

/// Verifies the text on standard input as a plan; where contracts are tried, a prober is given.
pub async fn check_input(
    context: &Context,
    prober: Option<&Prober>,
    levels: &Levels,
) -> Result<Checked, Failure> {
    let bytes = standard_input()?;
    let verify = async |checking: Checking<'_>, spawner: &Spawner| {
        check::check_bytes(Path::new("-"), bytes, checking, spawner).await
    };
    match prober {
        Some(prober) => prober.verify(context, levels, verify).await,
        None => with_helper(context, "", None, levels, verify).await,
    }
}

/// Reads standard input, up to one byte more than a plan may have.
pub fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = PLAN_BYTES_MAX as u64 + 1;
    let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(Exit::Temporary, format!("could not read standard input: {error}")))?;
    Ok(bytes)
}

/// Mends a plan's text by the fixes of its findings, in memory only.
pub async fn mend(context: &Context, file: &Path, levels: &Levels, reach: Reach) -> Result<Mended, Failure> {
    let mend =
        async |checking: Checking<'_>, spawner: &Spawner| autofix::mend(file, reach, checking, spawner).await;
    with_helper(context, "", None, levels, mend).await
}

/// Verifies a text as the plan at a path of the workspace, which works in a folder of it; an empty name is the workspace.
pub async fn check_text(
    context: &Context,
    folder: &str,
    path: &str,
    source: Source,
    worker: Option<&Agent>,
) -> Result<Checked, Failure> {
    let verify = async |checking: Checking<'_>, spawner: &Spawner| {
        check::check_text(Path::new(path), path.to_owned(), source, checking, spawner).await
    };
    with_helper(context, folder, worker, &Levels::default(), verify).await
}

// Starts a helper process for one verification.
async fn with_helper<T>(
    context: &Context,
    folder: &str,
    worker: Option<&Agent>,
    levels: &Levels,
    verify: impl AsyncFnOnce(Checking<'_>, &Spawner) -> Result<T, CheckError>,
) -> Result<T, Failure> {
    let config = &context.config()?.config;
    let levels = &config.verify.clone().then(levels);
    let state_dir = context.state_dir().ok();
    let (workspace, state_dir) = (context.workspace(), state_dir.as_deref());
    let checking = Checking { workspace, folder, config, state_dir, worker, levels, probe: None };
    let spawner = helper()?;
    let answer = verify(checking, &spawner).await;
    spawner.shutdown();
    answer.map_err(|error| failure_in(context, error))
}

/// Starts a helper process.
pub fn helper() -> Result<Spawner, Failure> {
    Spawner::start_self(None)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not start the helper: {error}")))
}

/// Verifies plan files and tries their contracts in one throw-away copy of the workspace.
pub struct Prober {
    spawner: Spawner,
    probe: Option<Probe>,
    stopped: watch::Receiver<Option<Exit>>,
}

impl Prober {
    /// Prepares to try contracts; Ctrl-C and SIGTERM then end what runs and remove the copy.
    pub fn new(
        context: &Context,
        limits: ReplicaLimits,
        progress: impl Fn(ProbeProgress<'_>) + Send + Sync + 'static,
    ) -> Result<Prober, Failure> {
        Prober::stopped_by(Stop::listen()?, context, limits, progress)
    }

    /// Prepares to try contracts until it is asked to stop.
    pub fn stopped_by(
        mut stop: Stop,
        context: &Context,
        limits: ReplicaLimits,
        progress: impl Fn(ProbeProgress<'_>) + Send + Sync + 'static,
    ) -> Result<Prober, Failure> {
        let spawner = helper()?;
        let ((say_stopped, stopped), (end, is_stopped)) = (watch::channel(None), watch::channel(false));
        tokio::spawn(async move {
            tokio::select! {
                exit = stop.wait_for_signal() => {
                    say_stopped.send_replace(Some(exit));
                    end.send_replace(true);
                }
                // Its prober is gone.
                () = say_stopped.closed() => {}
            }
        });
        let probe = Probe::new(spawner.clone(), context.state_dir()?, limits, is_stopped, progress);
        Ok(Prober { spawner, probe: Some(probe), stopped })
    }

    /// Verifies a plan file and tries its contracts.
    pub async fn check(&self, context: &Context, file: &Path, levels: &Levels) -> Result<Checked, Failure> {
        let check =
            async |checking: Checking<'_>, spawner: &Spawner| check::check(file, checking, spawner).await;
        self.verify(context, levels, check).await
    }

    /// Verifies a text as the plan at a path of the workspace, and tries its contracts.
    pub async fn check_text(
        &self,
        context: &Context,
        path: &str,
        source: Source,
    ) -> Result<Checked, Failure> {
        let check = async |checking: Checking<'_>, spawner: &Spawner| {
            check::check_text(Path::new(path), path.to_owned(), source, checking, spawner).await
        };
        self.verify(context, &Levels::default(), check).await
    }

    /// Says whether the contract of a step that passed would still pass in a workspace.
    pub async fn recheck(
        &self,
        context: &Context,
        candidate: &Candidate,
        workspace: &Path,
    ) -> Result<Rechecked, Failure> {
        let Some(probe) = &self.probe else {
            return Err(Failure::new(Exit::Temporary, "the helper is gone"));
        };
        let config = &context.config()?.config;
        probe
            .recheck(candidate, workspace, config)
            .await
            .map_err(|error| self.failure(context, CheckError::Probe(error)))
    }

    fn failure(&self, context: &Context, error: CheckError) -> Failure {
        match (&error, *self.stopped.borrow()) {
            (CheckError::Probe(ProbeError::Interrupted), Some(exit)) => {
                Failure::new(exit, "stopped; the copy of the workspace is removed")
            }
            _ => failure_in(context, error),
        }
    }

    async fn verify(
        &self,
        context: &Context,
        levels: &Levels,
        verify: impl AsyncFnOnce(Checking<'_>, &Spawner) -> Result<Checked, CheckError>,
    ) -> Result<Checked, Failure> {
        let config = &context.config()?.config;
        let levels = &config.verify.clone().then(levels);
        let (workspace, probe) = (context.workspace(), self.probe.as_ref());
        let state_dir = context.state_dir().ok();
        let state_dir = state_dir.as_deref();
        let checking = Checking { workspace, folder: "", config, state_dir, worker: None, levels, probe };
        verify(checking, &self.spawner).await.map_err(|error| self.failure(context, error))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.spawner.shutdown();
        self.probe = None;
    }
}

/// Says why a plan of this workspace could not be verified, and which may have been meant.
fn failure_in(context: &Context, error: CheckError) -> Failure {
    if let CheckError::Unreadable { file, source: Unreadable::Missing } = &error {
        return plan_files::plan_file_named(context, file)
            .err()
            .unwrap_or_else(|| plan_files::missing(context, file));
    }
    check_failure(error)
}

/// Says why a plan could not be verified, and what to type.
pub fn check_failure(error: CheckError) -> Failure {
    let message = format!("could not {error}");
    match error {
        CheckError::Unreadable { source: Unreadable::Missing, .. } => {
            Failure::not_found(message).next("planctl plan ls")
        }
        CheckError::Unreadable { file, source } => plan_files::unreadable(&file, &source),
        CheckError::Probe(error) => probe_failure(&error, message),
        CheckError::Workspace { .. } | CheckError::Broken { .. } => Failure::new(Exit::Temporary, message),
    }
}

fn probe_failure(error: &ProbeError, message: String) -> Failure {
    let without = "or verify without --probe";
    match error {
        ProbeError::Isolation { .. } => Failure::new(Exit::Configuration, message)
            .help("nothing runs below what is demanded; set isolation = \"auto\", or verify without --probe"),
        ProbeError::Interrupted => Failure::new(Exit::Interrupted, message),
        ProbeError::Copy {
            source: ReplicaError::TooLarge { bytes, limit, largest, largest_bytes },
            workspace,
        } => {
            let size = show::bytes;
            let help = format!(
                "most of it is `{}` ({}): clear that away, allow more with --probe-max-bytes {}, {without}",
                show::safe(largest),
                size(*largest_bytes),
                bytes.div_ceil(1 << 30).to_string() + "G",
            );
            let message = format!(
                "could not copy the workspace {}: it has {}, and at most {} are copied",
                workspace.display(),
                size(*bytes),
                size(*limit)
            );
            Failure::new(Exit::Temporary, message).help(help)
        }
        ProbeError::Copy { source: ReplicaError::TooMany { largest, .. }, .. } => {
            Failure::new(Exit::Temporary, message)
                .help(format!("most of them are in `{}`: clear that away, {without}", show::safe(largest)))
        }
        ProbeError::Copy { source: ReplicaError::NoRoom { .. }, .. } => {
            Failure::new(Exit::Temporary, message)
                .help(format!("make room there, name another place with PLANCTL_STATE_DIR, {without}"))
        }
        ProbeError::Copy { .. } | ProbeError::Io { .. } => Failure::new(Exit::Temporary, message),
    }
}
