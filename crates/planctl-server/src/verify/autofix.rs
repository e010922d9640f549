//! Mends a plan by the fixes of its findings: verifies, applies, and verifies again until nothing is left to apply.

use std::path::Path;

use planctl_harness::Spawner;
use planctl_lang::{PLAN_BYTES_MAX, Reach, Severity, Source, Verification, apply_fixes};

use crate::verify::check::{CheckError, Checked, Checking, check, check_text};

/// The most rounds of mending and verifying a text; a round mends the problems that the one before uncovered.
const ROUNDS_MAX: usize = 12;

/// A plan before and after it was mended; nothing was written.
#[derive(Clone, Debug)]
pub struct Mended {
    /// As it was read.
    pub before: Checked,
    /// With the text as it would be, and what is still to be said of it.
    pub after: Checked,
}

impl Mended {
    /// Says whether the text differs.
    pub fn is_changed(&self) -> bool {
        self.before.source.text() != self.after.source.text()
    }

    /// Returns how many findings are gone, and how many there are in all, errors and warnings.
    ///
    /// Findings that mending uncovered count among all, and never as gone.
    pub fn fixed(&self) -> (usize, usize) {
        let (before, left) =
            (findings_count(&self.before.verification), findings_count(&self.after.verification));
        let fixed = if self.is_changed() { before.saturating_sub(left).max(1) } else { 0 };
        (fixed, (fixed + left).max(before))
    }
}

/// Counts errors and warnings.
fn findings_count(verification: &Verification) -> usize {
    verification.diagnostics.iter().filter(|found| found.level != Severity::Note).count()
}

/// Verifies a plan file and mends its text, in memory only.
///
/// # Errors
///
/// [`CheckError`] where the file or the workspace can't be read.
pub async fn mend(
    file: &Path,
    reach: Reach,
    checking: Checking<'_>,
    spawner: &Spawner,
) -> Result<Mended, CheckError> {
    let before = check(file, checking, spawner).await?;
    let mut after = before.clone();
    for _ in 0..ROUNDS_MAX {
        let text = apply_fixes(&after.source, &after.verification.diagnostics, reach);
        let Some(text) = text.filter(|text| text.len() <= PLAN_BYTES_MAX) else { break };
        let source = Source::new(after.source.path(), text);
        after = check_text(file, after.path.clone(), source, checking, spawner).await?;
    }
    Ok(Mended { before, after })
}
