//! The time of every world.

use planctl_engine::Timestamp;

/// When every world begins.
pub(crate) const BEGINNING: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// Returns a moment as seconds since the world began.
pub fn moment(at: Timestamp) -> String {
    let micros = at.as_micros() - BEGINNING.as_micros();
    format!("{:>8}.{:03}s", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) / 1000)
}
