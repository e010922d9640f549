//! Trying contracts (`--probe`), and what is shown at a terminal meanwhile.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use planctl_harness::ReplicaLimits;
use planctl_server::probe::ProbeProgress;

use crate::args::Probing;
use crate::checking::Prober;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;

/// The most of a step's title that is shown.
const TITLE_CHARACTERS_MAX: usize = 50;

/// Prepares to try contracts, where that was asked for.
pub fn prober(context: &Context, probing: &Probing) -> Result<Option<Prober>, Failure> {
    if !probing.probe {
        return Ok(None);
    }
    let limits = ReplicaLimits { bytes_max: probing.probe_max_bytes, ..ReplicaLimits::default() };
    let target = if context.is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let say = move |progress: ProbeProgress<'_>| match progress {
        ProbeProgress::Copying => bar.set_message("copying the workspace …"),
        ProbeProgress::Trying { number, of, step, title } => {
            let title = show::brief(&show::safe(title), TITLE_CHARACTERS_MAX);
            bar.set_message(format!("trying {number} of {of} … step {step} {title}"));
        }
        ProbeProgress::Done => bar.finish_and_clear(),
    };
    Prober::new(context, limits, say).map(Some)
}
