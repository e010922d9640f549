//! Looks at this machine for the page, as the command line does at a terminal: only the command line knows all that it needs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use planctl_api::wire::DoctorView;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;

/// How long an answer serves those who ask after it: a look starts processes.
const SERVES: Duration = Duration::from_secs(10);

/// Looks at this machine. Clones share what was found last.
#[derive(Clone)]
pub struct Doctor {
    look: Arc<dyn Fn() -> DoctorView + Send + Sync>,
    last: Arc<Mutex<Option<(Instant, DoctorView)>>>,
}

impl Doctor {
    /// Takes what looks at the machine. It may block its thread.
    pub fn new(look: impl Fn() -> DoctorView + Send + Sync + 'static) -> Doctor {
        Doctor { look: Arc::new(look), last: Arc::default() }
    }

    /// Returns what is there and what is missing.
    pub(crate) async fn examine(&self) -> Result<DoctorView, ServiceError> {
        let mut last = self.last.lock().await;
        if let Some((_, view)) = last.as_ref().filter(|(at, _)| at.elapsed() < SERVES) {
            return Ok(view.clone());
        }
        let look = self.look.clone();
        let view = blocking(move || look()).await?;
        *last = Some((clock::instant(), view.clone()));
        Ok(view)
    }
}

impl fmt::Debug for Doctor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Doctor")
    }
}
