//! Drafts plans for the page, as the command line does at a terminal: only the command line knows writers, rules and records.

mod kept;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use futures_util::future::BoxFuture;
use planctl_api::wire::draft::{DraftState, DraftView};
use planctl_api::wire::drafting::{DraftingCall, DraftingState, DraftingView};
use planctl_api::wire::moment;
use planctl_api::{Code, Problem};
use tokio::sync::watch;

use self::kept::KeptDrafts;
use crate::clock;
use crate::mutex::lock;
use crate::node::runtime::{blocking, stopped};
use crate::node::services::ServiceError;

/// How many drafts are written at once: each asks a writer, and tries contracts.
const AT_ONCE: usize = 4;
/// How many drafts are remembered.
const REMEMBERED: usize = 50;
/// How many of the last lines that were said are kept.
const LINES_MAX: usize = 100;

/// Writes drafts. Both calls may block their thread.
pub trait Drafts: Send + Sync {
    /// Names those who may write drafts of a workspace.
    ///
    /// # Errors
    ///
    /// Where the configuration of the workspace does not read.
    fn writers(&self, workspace: &Path) -> Result<Vec<String>, Undrafted>;

    /// Drafts a plan, or goes on with a draft.
    ///
    /// # Errors
    ///
    /// Where there is no draft, with the reason.
    fn draft(&self, order: DraftOrder) -> Result<DraftView, Undrafted>;
}

/// A draft to write, on behalf of a person.
pub struct DraftOrder {
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    /// The call of that person.
    pub call: DraftingCall,
    /// The name under which it is on record.
    pub by: String,
    /// Hears what is done meanwhile.
    pub says: Arc<dyn Fn(&str) + Send + Sync>,
    /// Resolves where nobody wants it any more.
    pub stop: BoxFuture<'static, ()>,
}

/// Why there is no draft.
#[derive(Clone, PartialEq, Debug)]
pub struct Undrafted {
    /// The event.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// Says that a person has something to answer first.
    pub waits: bool,
    /// The last answer of the writer, where it was given up.
    pub last: Option<Box<DraftView>>,
}

/// Drafts of a state directory's daemons. Clones share them.
#[derive(Clone)]
pub struct Drafter {
    drafts: Arc<dyn Drafts>,
    kept: Arc<KeptDrafts>,
    /// Read once they are asked for: by then this process is the daemon.
    known: Arc<OnceLock<Mutex<VecDeque<KnownDraft>>>>,
}

/// A draft that is known.
struct KnownDraft {
    view: DraftingView,
    stop: watch::Sender<bool>,
}

impl Drafter {
    /// Takes what writes drafts, and the state directory in which those of the page are kept.
    pub fn new(drafts: impl Drafts + 'static, state_dir: PathBuf) -> Drafter {
        let kept = Arc::new(KeptDrafts::of(state_dir));
        Drafter { drafts: Arc::new(drafts), kept, known: Arc::default() }
    }

    /// Names those who may write drafts of a workspace.
    pub(crate) async fn writers(&self, workspace: PathBuf) -> Result<Vec<String>, Problem> {
        let drafts = self.drafts.clone();
        let named = blocking(move || drafts.writers(&workspace)).await.map_err(Problem::from)?;
        named.map_err(|why| {
            let problem = Problem::new(Code::Conflict, why.message);
            if let Some(help) = &why.help { problem.help(help.as_str()) } else { problem }
        })
    }

    /// Returns the drafts that are known, newest first: of a workspace, or all.
    pub(crate) fn list(&self, workspace: Option<&Path>) -> Vec<DraftingView> {
        let is_there =
            |known: &&KnownDraft| workspace.is_none_or(|workspace| known.view.call.workspace == workspace);
        self.known().iter().rev().filter(is_there).map(|known| known.view.clone()).collect()
    }

    /// Returns a draft.
    pub(crate) fn find(&self, id: &str) -> Option<DraftingView> {
        self.known().iter().find(|known| known.view.id == id).map(|known| known.view.clone())
    }

    /// Asks the writer of a draft to stop; one that is over stays as it is.
    pub(crate) fn stop(&self, id: &str) {
        if let Some(known) = self.known().iter().find(|known| known.view.id == id) {
            known.stop.send_replace(true);
        }
    }

    /// Notes that a draft begins; [`Drafter::write`] writes it.
    pub(crate) fn begin(&self, call: DraftingCall, by: &str) -> Result<DraftingView, Problem> {
        let mut known = self.known();
        let under_way = known.iter().filter(|known| known.view.state == DraftingState::Working).count();
        if under_way >= AT_ONCE {
            let detail = format!(
                "could not draft: {under_way} drafts are being written, and {AT_ONCE} may be at once"
            );
            return Err(Problem::new(Code::TooMany, detail).help("wait until one is done, or stop one"));
        }
        let view = DraftingView {
            id: uuid::Uuid::now_v7().simple().to_string(),
            call,
            by: by.to_owned(),
            begun_at: moment(clock::now()),
            ended_at: None,
            state: DraftingState::Working,
            said: Vec::new(),
            draft: None,
            plan: None,
            trouble: None,
            help: None,
        };
        known.push_back(KnownDraft::of(view.clone()));
        let surplus = known.len().saturating_sub(REMEMBERED);
        let forgotten: Vec<KnownDraft> = known.drain(..surplus).collect();
        drop(known);
        self.kept.put(&view);
        for known in forgotten {
            self.kept.remove(&known.view.id);
        }
        Ok(view)
    }

    /// Writes a draft that began, and tells `news` whenever something is said; it ends with the daemon.
    pub(crate) async fn write(
        &self,
        begun: &DraftingView,
        mut daemon_stops: watch::Receiver<bool>,
        news: impl Fn() + Send + Sync + 'static,
    ) -> Result<DraftView, Undrafted> {
        let stop =
            self.known().iter().find(|known| known.view.id == begun.id).map(|known| known.stop.subscribe());
        let (drafter, id) = (self.clone(), begun.id.clone());
        let says = move |line: &str| {
            drafter.change(&id, |view| {
                view.said.push(line.to_owned());
                let more = view.said.len().saturating_sub(LINES_MAX);
                view.said.drain(..more);
            });
            news();
        };
        let order = DraftOrder {
            workspace: begun.call.workspace.clone(),
            call: begun.call.clone(),
            by: begun.by.clone(),
            says: Arc::new(says),
            stop: Box::pin(async move {
                let asked = async {
                    match stop {
                        Some(mut stop) => stopped(&mut stop).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = asked => {}
                    () = stopped(&mut daemon_stops) => {}
                }
            }),
        };
        let drafts = self.drafts.clone();
        let written = blocking(move || drafts.draft(order)).await;
        written.unwrap_or_else(|error: ServiceError| {
            Err(Undrafted { message: error.to_string(), help: None, waits: false, last: None })
        })
    }

    /// Notes what came of a draft, and the number of its plan.
    pub(crate) fn end(&self, id: &str, written: Result<DraftView, Undrafted>, plan: Option<u64>) {
        self.change(id, |view| {
            view.ended_at = Some(moment(clock::now()));
            view.plan = plan;
            match written {
                Ok(draft) => {
                    view.state = match draft.state {
                        DraftState::Done => DraftingState::Done,
                        DraftState::Waiting => DraftingState::Waiting,
                        DraftState::GivenUp => DraftingState::GivenUp,
                    };
                    view.draft = Some(draft);
                }
                Err(why) => {
                    view.state = match why.last {
                        Some(_) => DraftingState::GivenUp,
                        None if why.waits => DraftingState::Waiting,
                        None => DraftingState::Failed,
                    };
                    view.draft = why.last.map(|last| *last);
                    (view.trouble, view.help) = (Some(why.message), why.help);
                }
            }
        });
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut DraftingView)) {
        let mut known = self.known();
        let Some(view) = known.iter_mut().map(|known| &mut known.view).find(|view| view.id == id) else {
            return;
        };
        change(view);
        let changed = view.clone();
        drop(known);
        self.kept.put(&changed);
    }

    // A writer that panicked left whole views.
    fn known(&self) -> MutexGuard<'_, VecDeque<KnownDraft>> {
        let read = || {
            let drafts = self.kept.all().into_iter().map(interrupted);
            Mutex::new(drafts.map(KnownDraft::of).collect())
        };
        lock(self.known.get_or_init(read))
    }
}

impl KnownDraft {
    fn of(view: DraftingView) -> KnownDraft {
        KnownDraft { view, stop: watch::Sender::new(false) }
    }
}

/// Says of a draft that a daemon left half written that it was interrupted.
fn interrupted(mut view: DraftingView) -> DraftingView {
    if view.state == DraftingState::Working {
        view.state = DraftingState::Interrupted;
        view.trouble = Some("The daemon stopped while this draft was being written.".to_owned());
        view.help = Some("Go on where it was: answers of the writer that came are kept.".to_owned());
    }
    view
}

impl fmt::Debug for Drafter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Drafter")
    }
}
